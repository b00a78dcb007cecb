"""Vertices and edges are counted once, each has one owner, and only faces of sound solids may ever be culled."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from probe_scenes import box, grid

from rtcore.geometry.topology import components, label
from rtcore.geometry.tree import build_tree
from rtcore.tables import TRIANGLE


def labelled(vertices, faces, degenerate=()):
    triangles = np.zeros(len(faces), TRIANGLE)
    triangles["vertices"] = np.asarray(vertices, dtype=float)[np.asarray(faces)]
    triangles["degenerate"][list(degenerate)] = 1
    label(triangles)
    return triangles


def joined(*meshes):
    start = np.cumsum([0] + [len(vertices) for vertices, _ in meshes])
    vertices = np.concatenate([vertices for vertices, _ in meshes])
    return vertices, np.concatenate([faces + s for (_, faces), s in zip(meshes, start[:-1], strict=True)])


def moebius(n=12):
    """Strip of n quads whose end is joined to its beginning with a half twist."""
    turn = 2 * np.pi * np.arange(n) / n
    across = 0.3 * np.stack(
        (np.cos(turn / 2) * np.cos(turn), np.cos(turn / 2) * np.sin(turn), np.sin(turn / 2)), axis=1
    )
    middle = np.stack((np.cos(turn), np.sin(turn), 0 * turn), axis=1)
    a = np.arange(n)
    b, c, d = a + 1, a + n + 1, a + n
    b[-1], c[-1] = n, 0  # upper meets lower
    return np.concatenate((middle + across, middle - across)), np.r_[np.c_[a, d, c], np.c_[a, c, b]]


def counts(triangles):
    return int(triangles["vertex_ids"].max()) + 1, int(triangles["edge_ids"].max()) + 1


def check_owners(triangles):
    """Every vertex and every edge has exactly one owner, and it is a triangle that has it."""
    for field, shift in (("vertex_ids", 0), ("edge_ids", 3)):
        owned = (triangles["owned"][:, None] >> (shift + np.arange(3))) & 1 == 1
        np.testing.assert_array_equal(np.sort(triangles[field][owned]), np.arange(triangles[field].max() + 1))
    assert (triangles["owned"] >> 6 == 0).all()


MESHES = {
    # mesh, vertices, edges, open triangles
    "cube": (box(1, 1, 1), 8, 18, 0),
    "soup of a cube": ((box(1, 1, 1)[0][box(1, 1, 1)[1]].reshape(-1, 3), np.arange(36).reshape(-1, 3)), 8, 18, 0),
    "inverted cube": ((box(1, 1, 1)[0], box(1, 1, 1)[1][:, ::-1]), 8, 18, 12),
    "cube without lid": ((box(1, 1, 1)[0], box(1, 1, 1)[1][:-2]), 8, 17, 10),
    "sheet": (grid(3, 1.0), 16, 33, 18),
    "Moebius strip": (moebius(), 24, 48, 24),
    "two cubes apart": (joined(box(1, 1, 1), (box(1, 1, 1)[0] + 5.0, box(1, 1, 1)[1])), 16, 36, 0),
    # All four faces at the common edge, from (.5, .5, -.5) to (.5, .5, .5), have a triangle there.
    "two cubes at an edge": (joined(box(1, 1, 1), (box(1, 1, 1)[0] + [1, 1, 0], box(1, 1, 1)[1])), 14, 35, 4),
    "two cubes at a corner": (joined(box(1, 1, 1), (box(1, 1, 1)[0] + 1.0, box(1, 1, 1)[1])), 15, 36, 0),
    "cavity in a cube": (joined(box(2, 2, 2), (box(1, 1, 1)[0], box(1, 1, 1)[1][:, ::-1])), 16, 36, 12),
    "duplicate face": ((box(1, 1, 1)[0], np.r_[box(1, 1, 1)[1], box(1, 1, 1)[1][:1]]), 8, 18, 13),
    "turned face": ((box(1, 1, 1)[0], np.r_[box(1, 1, 1)[1][:1, ::-1], box(1, 1, 1)[1][1:]]), 8, 18, 12),
    "two sides of a sheet": ((np.eye(3), np.array([[0, 1, 2], [0, 2, 1]])), 3, 3, 2),
}


@pytest.mark.parametrize("name", MESHES)
def test_meshes_with_known_answers(name):
    mesh, vertices, edges, open_ = MESHES[name]
    for scale in (1.0, 1e-100, 1e100):
        triangles = labelled(mesh[0] * scale, mesh[1])
        assert counts(triangles) == (vertices, edges)
        assert triangles["open"].sum() == open_
        check_owners(triangles)


def test_the_open_triangles_of_two_cubes_at_an_edge_are_those_at_the_edge():
    triangles = labelled(*MESHES["two cubes at an edge"][0])
    at_edge = (np.abs(triangles["vertices"][:, :, :2] - 0.5).max(axis=2) < 1e-12).sum(axis=1) == 2
    np.testing.assert_array_equal(triangles["open"], at_edge)


def test_an_inverted_sphere_is_open_whole_and_a_sphere_nowhere():
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=3, radius=0.05)
    ball.apply_translation((7.0, 0.0, 0.0))
    assert not labelled(ball.vertices, ball.faces)["open"].any()
    assert labelled(ball.vertices, ball.faces[:, ::-1])["open"].all()


def test_equal_corners_and_edges_have_equal_numbers_and_only_those():
    triangles = labelled(*grid(5, 1.0, lambda x, y: x * y))
    for k in range(3):
        ends = np.stack((triangles["vertices"][:, k], triangles["vertices"][:, (k + 1) % 3]), axis=1)
        for row in range(len(triangles)):
            same = np.array([np.array_equal(ends[row], e) or np.array_equal(ends[row], e[::-1]) for e in ends])
            np.testing.assert_array_equal(triangles["edge_ids"][:, k] == triangles["edge_ids"][row, k], same)
            same = (triangles["vertices"][:, k] == triangles["vertices"][row, k]).all(axis=1)
            np.testing.assert_array_equal(triangles["vertex_ids"][:, k] == triangles["vertex_ids"][row, k], same)


def test_minus_zero_is_zero():
    triangles = labelled([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [-0.0, 0, -0.0], [0, -1, 0]], [[0, 1, 2], [3, 4, 1]])
    assert counts(triangles) == (4, 5)


def test_work_is_spread_evenly():
    # A closed surface has 1.5 edges and 0.5 vertices per triangle.
    triangles = labelled(*box(1, 1, 1))
    owned = np.array([int(o).bit_count() for o in triangles["owned"]])
    assert owned.sum() == 26 and owned.max() <= 3
    triangles = labelled(*grid(30, 1.0))
    owned = np.array([int(o).bit_count() for o in triangles["owned"]])
    assert owned.mean() == pytest.approx((961 + 2760) / 1800) and owned.max() <= 4


def test_triangles_without_area_are_open_and_no_neighbours():
    # A needle closes the slit of a T-junction; beside it the faces are at a border, so that the whole part is open.
    vertices, faces = box(1, 1, 1)
    vertices = np.r_[vertices, [[-0.5, -0.5, 0.0]]]  # on the edge from corner 0 to corner 1
    rows = [row for row, face in enumerate(faces) if {0, 1} <= set(face)]
    split = faces[rows[0]]
    parts = [np.where(split == old, 8, split) for old in (0, 1)]
    needle = [0, 1, 8]
    mesh = vertices, np.r_[np.delete(faces, rows[0], axis=0), parts, [needle]]
    triangles = labelled(*mesh, degenerate=[len(mesh[1]) - 1])
    assert triangles["open"].all()
    check_owners(triangles)
    # Two corners in one close nothing and tear nothing: the cube stays closed.
    triangles = labelled(box(1, 1, 1)[0], np.r_[faces, [[0, 0, 1]], [[5, 5, 5]]], degenerate=[12, 13])
    np.testing.assert_array_equal(triangles["open"], [0] * 12 + [1, 1])
    check_owners(triangles)
    assert counts(triangles) == (8, 20)  # an edge without length is an edge


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 6)] * 3), min_size=1, max_size=30))
def test_every_feature_of_any_soup_has_one_owner(faces):
    faces = np.array(faces)
    corners = np.random.default_rng(0).normal(size=(7, 3))
    flat = [i for i, face in enumerate(faces) if len(set(face)) < 3]
    triangles = labelled(corners, faces, flat)
    check_owners(triangles)
    edges = {frozenset((f[k], f[(k + 1) % 3])) for f in faces.tolist() for k in range(3)}
    assert counts(triangles) == (len(np.unique(faces)), len(edges))
    assert triangles["open"][flat].all()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20))
def test_parts_are_those_that_walking_reaches(links):
    labels = components(12, np.array([a for a, _ in links], np.int64), np.array([b for _, b in links], np.int64))
    near = np.eye(12, dtype=bool)
    for a, b in links:
        near[a, b] = near[b, a] = True
    for _ in range(4):
        near = (near.astype(int) @ near) > 0
    np.testing.assert_array_equal(labels[:, None] == labels, near)
    firsts = [labels.tolist().index(k) for k in range(labels.max() + 1)]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("name", MESHES)
def test_neighbours_are_mutual_and_share_the_edge(name):
    """Where just two triangles have an edge, each names the other one; elsewhere none is named."""
    triangles = labelled(*MESHES[name][0])
    edges = triangles["edge_ids"]
    uses = np.bincount(edges.ravel())
    for row in range(len(triangles)):
        for k in range(3):
            step = triangles["across"][row, k]
            assert (step != 0) == (uses[edges[row, k]] == 2)
            if step != 0:
                back = list(edges[row + step]).index(edges[row, k])
                assert triangles["across"][row + step, back] == -step


def test_no_neighbour_without_area_is_named():
    triangles = labelled(*box(1, 1, 1), degenerate=[3])
    assert (triangles["across"][3] == 0).all()
    assert (triangles["across"] != 0).sum() == 36 - 6


def test_flat_edges_are_those_inside_of_a_plane():
    """The diagonals of a cube's faces; none of its 12 edges, none at the border of a sheet, and no slight bend."""
    for mesh, flat in ((box(1, 1, 1), 12), (grid(3, 1.0), 42), (grid(3, 1.0, lambda x, y: 1e-4 * x * y), 0)):
        triangles = build_tree(*mesh)[1]
        bits = (triangles["flat"][:, None] >> np.arange(3)) & 1
        assert bits.sum() == flat
        assert (triangles["across"][bits == 1] != 0).all()


def owners_of_edges(vertices, faces):
    """How many owners each edge has, by its two (sorted) vertices."""
    triangles = build_tree(np.asarray(vertices, dtype=float), np.asarray(faces))[1]
    found: dict[tuple, int] = {}
    for triangle in triangles:
        for k in range(3):
            ends = tuple(sorted(tuple(triangle["vertices"][j].tolist()) for j in (k, (k + 1) % 3)))
            found[ends] = found.get(ends, 0) + int(triangle["owned"] >> (3 + k) & 1)
    return found


def test_only_an_edge_inside_a_plane_has_no_owner():
    for ends, owners in owners_of_edges(*box(1, 2, 3)).items():
        diagonal = np.count_nonzero(np.subtract(*ends)) == 2
        assert owners == (0 if diagonal else 1), ends


@pytest.mark.parametrize(
    ("lift", "owners"),
    [(0.0, 0), (1e-15, 0), (1e-13, 1), (-1e-13, 1), (1e-3, 1), (-1.0, 1)],
)
def test_a_bend_that_can_be_told_from_rounding_makes_an_edge(lift, owners):
    found = owners_of_edges([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, lift]], [[0, 1, 2], [0, 2, 3]])
    assert found[((0.0, 0.0, 0.0), (1.0, 1.0, 0.0))] == owners
    assert sum(found.values()) == 4 + owners


def test_a_fold_is_an_edge_although_both_sides_lie_in_one_plane():
    found = owners_of_edges([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.2, 0.7, 0]], [[0, 1, 2], [1, 0, 3]])
    assert found[((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))] == 1
