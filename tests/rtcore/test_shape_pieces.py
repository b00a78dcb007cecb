"""Pieces hold their shape on every level, shrink to it, and stick out by no more than they say."""

import numpy as np
import pytest
import shape_truth as truth
from hypothesis import given, settings
from hypothesis import strategies as st

from rtcore.collision.shape_pieces import CORE_PLANE, CORE_POINTS, PIECE, half_path, load_piece, root_path, support
from rtcore.geometry import shapes
from rtcore.geometry.tree import build_tree
from rtcore.tables import BOX_NODE, TRIANGLE

TURN = (0.3, -0.2, 0.4, 0.8)
PLACE = (0.03, -0.02, 0.05)
RNG = np.random.default_rng(0)
NET = RNG.normal(0, 0.03, (4, 4, 3)) + np.stack(
    (*np.meshgrid(np.linspace(-0.1, 0.1, 4), np.linspace(-0.1, 0.1, 4), indexing="ij"), np.zeros((4, 4))), axis=-1
)
WHOLE = {
    "sphere": shapes.sphere(0.06, PLACE),
    "capsule": shapes.capsule(0.03, 0.06, PLACE, TURN),
    "box": shapes.box((0.03, 0.05, 0.08), PLACE, TURN),
    "cylinder": shapes.cylinder(0.05, 0.06, PLACE, TURN),
    "cone": shapes.cone(0.06, 0.12, PLACE, TURN),
}
SPLIT = {
    "torus": shapes.torus(0.07, 0.02, PLACE, TURN),
    "height_field": shapes.height_field(0.04 * RNG.random((6, 8)), (0.03, 0.02), PLACE, TURN),
    "gyroid": shapes.gyroid((0.05, 0.06, 0.04), 0.08, 0.6, PLACE, TURN),
    "patch": shapes.patch(NET, PLACE, TURN),
}
NO_NODES, NO_TRIANGLES = np.zeros(1, BOX_NODE), np.zeros(1, TRIANGLE)
DIRECTIONS = RNG.normal(size=(60, 3))
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1)[:, None]


def load(made, path, tolerance=1e-6):
    """The piece at a path, or None."""
    table, values = shapes.collect([made])
    piece = np.zeros(1, PIECE)
    return piece[0] if load_piece(table[0], values, NO_NODES, NO_TRIANGLES, path, tolerance, piece[0]) else None


def extents(piece):
    """How far the piece reaches along each of DIRECTIONS."""
    return np.array([np.dot(support(piece, tuple(d)), d) for d in DIRECTIONS]) + piece["margin"]


def frontier(made, depth):
    """The pieces that hold a shape `depth` halvings down, those that are not divisible left whole."""
    found, paths = [], [(1, 0)]
    while paths:
        path, level = paths.pop()
        piece = load(made, path)
        if piece is None:
            continue
        if level == depth or not piece["divisible"]:
            found.append(piece.copy())
        else:
            paths += [(2 * path, level + 1), (2 * path + 1, level + 1)]
    return found


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_a_convex_solid_is_one_piece_that_reaches_exactly_as_far(name):
    made = WHOLE[name]
    piece = load(made, 1)
    assert (piece["divisible"], piece["excess"]) == (0, 0.0)
    reach = extents(piece)
    cloud = truth.points_on(made, np.random.default_rng(1), 20_000)
    assert (cloud @ DIRECTIONS.T <= reach + 1e-14).all()
    assert ((cloud @ DIRECTIONS.T).max(axis=0) >= reach - 0.003).all()
    for d in DIRECTIONS:  # the support point itself belongs to the shape grown by the margin
        tip = np.array([support(piece, tuple(d))]) + piece["margin"] * d
        assert truth.distance(made[0], tip)[0] < 1e-15 + 1e-16


@pytest.mark.parametrize(("name", "depth"), [(n, k) for n in sorted(SPLIT) for k in (0, 1, 2, 4, 6)])
def test_the_pieces_of_every_level_hold_the_whole_shape_and_stick_out_by_their_excess_at_most(name, depth):
    made = SPLIT[name]
    cloud = truth.points_on(made, np.random.default_rng(2), 1500, NET)
    pieces = frontier(made, depth)
    held = np.zeros(len(cloud), dtype=bool)
    for piece in pieces:
        held |= (cloud @ DIRECTIONS.T <= extents(piece) + 1e-14).all(axis=1)
    assert held.all()
    if name == "torus":
        for piece in pieces:
            tips = np.array([support(piece, tuple(d)) for d in DIRECTIONS[:40]])
            off = truth.distance(made[0], tips + piece["margin"] * DIRECTIONS[:40])
            assert off.max() <= piece["excess"] * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("name", sorted(SPLIT))
def test_pieces_shrink_to_the_shape(name):
    made = SPLIT[name]
    cloud = truth.points_on(made, np.random.default_rng(4), 40_000 if name == "gyroid" else 20_000, NET)
    rng = np.random.default_rng(3)
    for _ in range(6):
        path, piece = 1, load(made, 1)
        while piece["divisible"]:
            halves = [(p, load(made, p)) for p in rng.permutation([2 * path, 2 * path + 1])]
            halves = [(p, h) for p, h in halves if h is not None]
            if not halves:
                break
            path, piece = halves[0]
            tips = np.array([support(piece, tuple(d)) for d in DIRECTIONS[:12]])
            nearest = min(np.linalg.norm(cloud - tip, axis=1).min() for tip in tips[:2])
            assert nearest <= piece["excess"] + piece["margin"] + 8e-3  # how dense the points are
        else:
            assert piece["excess"] <= 1e-6


def test_the_solid_of_a_gyroid_is_near_every_clipped_cell():
    made = SPLIT["gyroid"]
    record = made[0]
    back = truth.turned(record["orientation"][0])
    rng = np.random.default_rng(5)
    checked = 0
    for _ in range(3000):
        path = int(rng.integers(1 << 18, 1 << 24))
        piece = load(made, path)
        if piece is None or piece["core"] != CORE_POINTS or piece["excess"] > 2e-3:
            continue
        for point in piece["points"][: piece["count"]]:
            p = (point - record["position"][0]) @ back
            assert (np.abs(p) <= record["size"][0, :3] + 1e-14).all()
            # Walk down along the gradient, by differences, without leaving the box: the level is met on the way.
            start, k = p.copy(), 0
            while truth.gyroid_value(record, p[None])[0] > 1e-12 and k < 40:
                step = 1e-7 * np.eye(3)
                slope = (truth.gyroid_value(record, p + step) - truth.gyroid_value(record, p - step)) / 2e-7
                at_face = (np.abs(p) >= record["size"][0, :3] - piece["excess"]) & (slope != 0)
                slope = np.where(at_face, 0, slope)
                p = p - truth.gyroid_value(record, p[None])[0] * slope / (slope @ slope)
                k += 1
            assert np.linalg.norm(p - start) <= piece["excess"] + 1e-9
            checked += 1
    assert checked > 200


def test_a_half_space_is_a_plane_with_its_normal():
    piece = load(shapes.plane((1, 2, -2), 0.3), 1)
    assert piece["core"] == CORE_PLANE
    assert np.allclose(piece["axes"][2], np.array([1, 2, -2]) / 3, rtol=0, atol=1e-15)
    assert abs(piece["centre"] @ (1, 2, -2) / 3 - 0.3) < 1e-15


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(0, 10_000))
def test_the_pieces_of_a_mesh_are_its_boxes_and_triangles(count, seed):
    corners = np.random.default_rng(seed).normal(size=(3 * count, 3))
    nodes, triangles = build_tree(corners, np.arange(3 * count).reshape(count, 3))
    table, values = shapes.collect([shapes.mesh(0)])
    met = []
    paths = [root_path(table[0])]
    while paths:
        path = paths.pop()
        piece = np.zeros(1, PIECE)[0]
        assert load_piece(table[0], values, nodes, triangles, path, 1.0, piece)
        assert piece["divisible"] == (nodes[path]["count"] == 0)
        if piece["divisible"]:
            paths += [half_path(table[0], nodes, path, 0), half_path(table[0], nodes, path, 1)]
        else:
            met.append(int(piece["triangle"]))
            assert (piece["points"][:3] == triangles["vertices"][met[-1]]).all()
            reach = np.linalg.norm(piece["points"][:3] - piece["ball_centre"], axis=1)
            assert reach.max() <= piece["ball_radius"] * (1 + 1e-15)
    assert sorted(met) == list(range(count))
