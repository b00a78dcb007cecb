"""What inspection says about a surface is true of it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.scene.frames import compose, place, shortest_turn
from bridge.scene.mesh import join, make_mesh
from bridge.scene.primitives import make_primitive
from bridge.scene.topology import analyse, winding_number
from bridge.scene.walls import thinnest_wall
from rtcore.geometry.tree import build_tree

BOX = make_primitive("box", (1.0, 2.0, 3.0), 2)
unit = st.tuples(*[st.floats(-1, 1)] * 4).map(np.array).filter(lambda q: np.linalg.norm(q) > 0.1)
unit = unit.map(lambda q: q / np.linalg.norm(q))


def without(mesh, faces):
    return make_mesh(mesh.vertices, np.delete(mesh.faces, faces, axis=0))


def test_closed_box():
    found = analyse(BOX.vertices, BOX.faces)
    assert found.closed and found.consistent and found.components == 1 and found.inward_components == 0
    assert not found.loops and not len(found.boundary_edges) and found.unused_vertices == 0


def test_missing_faces_are_holes_with_their_rims():
    """Without the 32 faces of its top, a 1 x 2 x 3 box is open along 6 m of rim at z = 1.5."""
    top = np.flatnonzero((BOX.vertices[BOX.faces][:, :, 2] == 1.5).all(axis=1))
    found = analyse(*_arrays(without(BOX, top)))
    assert len(top) == 32 and not found.closed and found.consistent
    (loop,) = found.loops
    assert loop.closed and loop.edges == 16 and loop.length == pytest.approx(6.0)
    np.testing.assert_allclose(loop.centre, [0, 0, 1.5], atol=1e-12)
    assert (loop.points[:, 2] == 1.5).all()


def test_two_holes_are_two_loops():
    found = analyse(*_arrays(without(BOX, [0, 100])))
    assert sorted(loop.edges for loop in found.loops) == [3, 3]


def test_a_flipped_face_is_inconsistent():
    faces = BOX.faces.copy()
    faces[7] = faces[7][::-1]
    found = analyse(BOX.vertices, faces)
    assert found.closed and not found.consistent and len(found.inconsistent_edges) == 3


def test_inside_out_and_cavities():
    inner = make_primitive("sphere", (0.3,))
    turned = make_mesh(inner.vertices, inner.faces[:, ::-1])
    assert analyse(turned.vertices, turned.faces).inward_components == 1
    both = join([BOX, turned])
    found = analyse(both.vertices, both.faces)
    assert found.components == 2 and found.inward_components == 1 and found.closed


def test_non_manifold_degenerate_duplicate_unused():
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [2, 0, 0], [9, 9, 9]], dtype=float)
    faces = np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4], [0, 1, 5], [1, 1, 2], [2, 0, 1], [1, 0, 2]])
    found = analyse(points, faces)
    assert found.degenerate_faces.tolist() == [3, 4]
    assert found.duplicate_faces.tolist() == [5, 6]
    assert [0, 1] in found.non_manifold_edges.tolist()
    assert found.unused_vertices == 1


def _arrays(mesh):
    return mesh.vertices, mesh.faces


@settings(max_examples=50, deadline=None)
@given(st.tuples(*[st.floats(-2, 2)] * 3))
def test_winding_number_tells_inside_from_outside(point):
    half = np.array([0.5, 1.0, 1.5])
    margin = np.abs(np.abs(point) - half).min()
    if margin > 1e-6:
        inside = bool((np.abs(point) < half).all())
        assert winding_number(np.array(point), BOX.vertices, BOX.faces) == pytest.approx(float(inside), abs=1e-9)


def _wall(mesh, inward=False):
    return thinnest_wall(mesh.faces, *build_tree(mesh.vertices, mesh.faces), inward)


def test_thinnest_wall():
    plate = make_primitive("plate", (0.2, 0.2, 0.0005), 2)
    assert _wall(plate).thickness == pytest.approx(0.0005, rel=1e-12)
    assert _wall(make_primitive("box", (1.0, 2.0, 3.0))).thickness == pytest.approx(1.0)
    # A hollow sphere: 0.1 of wall, less the sagitta of both polyhedra (0.46 % of each radius).
    inner = make_primitive("sphere", (0.9,))
    hollow = join([make_primitive("sphere", (1.0,)), make_mesh(inner.vertices, inner.faces[:, ::-1])])
    assert 0.1 - 0.0046 <= _wall(hollow).thickness <= 0.1 + 0.0046
    assert _wall(make_primitive("plane", (1.0, 1.0), 2)) is None


def test_an_inside_out_plate_has_the_same_wall():
    plate = make_primitive("plate", (0.2, 0.2, 0.0005), 1)
    turned = make_mesh(plate.vertices, plate.faces[:, ::-1])
    assert _wall(turned, inward=True).thickness == pytest.approx(0.0005, rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(unit, unit, st.tuples(*[st.floats(-3, 3)] * 3).map(np.array))
def test_frames(p, q, shift):
    """Placing by a composed pose is placing by one pose after the other."""
    outer, inner = (shift, p), (np.array([1.0, 2.0, 3.0]), q)
    points = np.array([[0.3, -0.2, 0.9], [-1.0, 0.5, 0.0]])
    np.testing.assert_allclose(place(compose(outer, inner), points), place(outer, place(inner, points)), atol=1e-12)
    x, y, z, w = p / np.linalg.norm(p)
    t = 2.0 * np.cross((x, y, z), points)  # Rodrigues' formula
    np.testing.assert_allclose(place(outer, points), points + w * t + np.cross((x, y, z), t) + shift, atol=1e-12)


@pytest.mark.parametrize("direction", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (-0.3, 0.4, -0.5), (1e-9, 0, -1)])
@pytest.mark.parametrize("start", [(0, 0, 2), (0, 1, 0), (0.6, -0.5, 0.1)])
def test_the_shortest_turn_goes_there_by_the_angle_between(start, direction):
    start, direction = np.array(start, float), np.array(direction, float)
    for end in (direction, -start):
        turn = shortest_turn(start, end)
        a, b = start / np.linalg.norm(start), end / np.linalg.norm(end)
        np.testing.assert_allclose(turn.apply(a), b, atol=1e-8)
        assert turn.magnitude() == pytest.approx(math.atan2(np.linalg.norm(np.cross(a, b)), a @ b), abs=1e-8)
