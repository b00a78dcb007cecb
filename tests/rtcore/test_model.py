"""The model builder refuses what the kernels could not handle, and keeps what it is given."""

import numpy as np
import pytest
from probe_scenes import EPS, box, grid

from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.state import make_state
from rtcore.tables import BOX_NODE, HELD


@pytest.fixture
def builder():
    builder = ModelBuilder()
    builder.add_mesh(*build_tree(*box(0.1, 0.1, 0.1)))
    return builder


def test_indices_of_several_meshes_count_over_the_whole_tables(builder):
    vertices, faces = grid(9, 0.1)
    builder.add_mesh(*build_tree(vertices, faces))
    builder.add_body(1)
    builder.add_body(0, (1, 2, 3), (0, 0, 2, 0), 0.5, 0.25, HELD)
    model = builder.build(0.001, (0, 0, 0.1), *EPS)
    assert len(model.nodes) == model.meshes["node_count"].sum()
    assert len(model.triangles) == model.meshes["triangle_count"].sum() == 12 + 162
    for mesh in model.meshes:
        own = slice(mesh["node_first"], mesh["node_first"] + mesh["node_count"])
        leaves = model.nodes[own][model.nodes[own]["count"] > 0]
        covered = np.concatenate([np.arange(n["first"], n["first"] + n["count"]) for n in leaves])
        np.testing.assert_array_equal(covered, mesh["triangle_first"] + np.arange(mesh["triangle_count"]))
        for node in leaves:
            part = model.triangles["vertices"][node["first"]]
            assert (np.abs((part - node["centre"]) @ node["axes"].T) <= node["half"]).all()
        inner = mesh["node_first"] + np.flatnonzero(model.nodes[own]["count"] == 0)
        np.testing.assert_array_equal(model.nodes["parent"][inner + 1], inner)
        np.testing.assert_array_equal(model.nodes["parent"][model.nodes["right"][inner]], inner)
        assert model.nodes["parent"][mesh["node_first"]] == -1
    np.testing.assert_array_equal(model.bodies["mesh_id"], [1, 0])
    np.testing.assert_array_equal(model.bodies["orientation"][1], [0, 0, 1, 0])  # normalised
    state = make_state(model, (0.2, 0.2, 0.2), (0, 0, 0, 3))
    np.testing.assert_array_equal(state.poses["position"][1], [1, 2, 3])
    np.testing.assert_array_equal(state.proxy["orientation"][0], [0, 0, 0, 1])


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"friction_static": 0.2, "friction_kinetic": 0.3}, "kinetic friction 0.3 must not be above static"),
        ({"friction_kinetic": -0.1}, "kinetic friction"),
        ({"friction_static": float("nan")}, "static friction"),
        ({"orientation": (0, 0, 0, 0)}, "orientation"),
        ({"position": (0, 0, float("inf"))}, "position"),
        ({"mesh_id": 1}, "no mesh 1"),
        ({"kind": 7}, "STATIC"),
    ],
)
def test_bad_bodies_are_refused(builder, arguments, word):
    with pytest.raises(ValueError, match=word):
        builder.add_body(**({"mesh_id": 0} | arguments))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((-0.001, (0, 0, 0), 1e-5, 2e-5, 3e-5), "tip radius"),
        ((0.001, (0, 0), 1e-5, 2e-5, 3e-5), "tip offset"),
        ((0.001, (0, 0, 0), 0.0, 2e-5, 3e-5), "eps_alert < eps_safety < eps_break"),
        ((0.001, (0, 0, 0), 3e-5, 2e-5, 1e-5), "eps_alert < eps_safety < eps_break"),
        ((0.001, (0, 0, 0), 1e-5, 2e-5, 2e-5), "eps_alert < eps_safety < eps_break"),
        ((0.001, (0, 0, 0), 1e-12, 2e-5, 3e-5), "too small"),
        ((0.001, (0, 0, 0), 1e-5, 2e-5, float("nan")), "eps_break"),
        ((0.0, (0, 0, 0), 1e-5, 2e-5, 3e-5, -1, 1e-3), "turning belongs to a tool that is a mesh"),
        ((0.0, (0, 0, 0), 1e-5, 2e-5, 3e-5, 0, -1e-3), "turning"),
        ((0.0, (0, 0, 0), 1e-5, 2e-5, 3e-5, 0, float("nan")), "turning"),
    ],
)
def test_bad_tools_and_distances_are_refused(builder, arguments, word):
    builder.add_body(0)
    with pytest.raises(ValueError, match=word):
        builder.build(*arguments)


def test_tables_of_another_kind_are_refused(builder):
    nodes, triangles = build_tree(*grid(9, 0.1))
    with pytest.raises(ValueError, match="BOX_NODE table"):
        builder.add_mesh(np.zeros(3), triangles)
    with pytest.raises(ValueError, match="cover"):
        builder.add_mesh(nodes, triangles[:-1])
    with pytest.raises(ValueError, match="at least one"):
        builder.add_mesh(np.zeros(0, BOX_NODE), triangles[:0])


@pytest.mark.parametrize(
    ("field", "row", "value", "word"),
    [
        ("depth", 0, 63, "deeper"),
        ("depth", 3, 1, "depth wrongly"),
        ("right", 0, 0, "depth first"),
        ("parent", 1, -1, "parents"),
        ("count", -1, 2, "cover"),
        ("centre", 0, np.nan, "not finite .centre"),
        ("half", 5, -1.0, "negative"),
        ("size", 1, 1e3, "greater size"),
        ("size", -1, 1e-9, "greater size"),
        ("axes", 2, 0.5, "square and right-handed"),
        ("axes", 2, -np.eye(3), "square and right-handed"),
        ("cone_axis", 4, 0.0, "cone whose axis"),
        ("cone_angle", 4, 4.0, "cone whose angle"),
    ],
)
def test_broken_trees_are_refused(builder, field, row, value, word):
    nodes, triangles = build_tree(*grid(9, 0.1))
    nodes[field][row] = value
    with pytest.raises(ValueError, match=word):
        builder.add_mesh(nodes, triangles)


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("owned", 0, "stands for"),
        ("owned", 63, "stands for"),
        ("vertex_ids", 500, "vertices"),
        ("edge_ids", -1, "edges"),
        ("across", 10**6, "not there"),
        ("across", 50, "does not share"),
    ],
)
def test_features_without_one_owner_are_refused(builder, field, value, word):
    nodes, triangles = build_tree(*grid(9, 0.1))
    triangles[field][0] = value
    with pytest.raises(ValueError, match=word):
        builder.add_mesh(nodes, triangles)


def test_a_start_that_is_no_point_is_refused(builder):
    model = builder.build(0.001, (0, 0, 0), *EPS)
    with pytest.raises(ValueError, match="start position"):
        make_state(model, (0, 0, float("nan")))
    with pytest.raises(ValueError, match="start orientation"):
        make_state(model, (0, 0, 0), (0, 0, 0, 0))
