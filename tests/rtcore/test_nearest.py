"""Nearest points and clearances agree with independent formulas over all triangles."""

import numpy as np
import probe_truth as truth
from hypothesis import given, settings
from hypothesis import strategies as st
from probe_scenes import Probe, box, grid

from rtcore.collision.features import FACE
from rtcore.collision.nearest import clearance, nearest_on_triangle
from rtcore.geometry.tree import build_tree

coordinate = st.floats(-1, 1, allow_subnormal=False)
point = st.tuples(coordinate, coordinate, coordinate).map(np.array)

ROUNDING = 4e-15
"""m: of either formula, for coordinates up to 1 m."""
NEEDLE = 1e-12
"""m: of the independent formula where it decides what lies inside a needle."""


def one(corners):
    return build_tree(np.asarray(corners, dtype=float), np.array([[0, 1, 2]]))[1][0]


@settings(max_examples=500, deadline=None)
@given(st.tuples(point, point, point).map(np.array), point)
def test_distance_is_the_true_one_and_the_point_lies_on_the_feature(corners, p):
    x, y, z, square, feature = nearest_on_triangle(one(corners), *p)
    q = np.array([x, y, z])
    assert abs(np.sqrt(square) - np.linalg.norm(p - q)) <= 1e-15
    expected = truth.point_triangles(p, corners[None])[0]
    assert np.sqrt(square) <= expected + ROUNDING
    assert np.sqrt(square) >= expected - (ROUNDING if feature != FACE else NEEDLE)
    if feature < 3:
        np.testing.assert_array_equal(q, corners[feature])
    elif feature < FACE:
        a, b = corners[feature - 3], corners[(feature - 2) % 3]
        assert np.linalg.norm(np.cross(q - a, b - a)) <= 1e-15
    else:
        assert truth.point_triangles(q, corners[None])[0] <= NEEDLE


def test_triangles_without_area_are_as_solid_as_their_edges():
    rng = np.random.default_rng(2)
    for _ in range(200):
        a, b, p = rng.normal(size=(3, 3))
        s = rng.uniform(-0.5, 1.5)
        for corners in ([a, b, a], [a, a, b], [b, b, b], [a, b, a + s * (b - a)]):
            triangle = one(corners)
            square = nearest_on_triangle(triangle, *p)[3]
            edges = np.array(corners)
            expected = min(truth._point_segments(p, edges[None, k], edges[None, (k + 1) % 3])[0] for k in range(3))
            assert abs(np.sqrt(square) - expected) <= 1e-14


def test_needles_are_exact_along_their_whole_length():
    # The nearest point of a needle 1e-9 thin differs from that of its long edge by no more than the thickness.
    rng = np.random.default_rng(3)
    for _ in range(500):
        a, along, across, p = rng.normal(size=(4, 3))
        across *= 1e-9
        corners = np.array([a, a + along, a + rng.uniform(0, 1) * along + across])
        distance = np.sqrt(nearest_on_triangle(one(corners), *p)[3])
        edge = truth._point_segments(p, corners[None, 0], corners[None, 1])[0]
        assert abs(distance - edge) <= 1.0001 * np.linalg.norm(across) + 1e-15


def test_clearance_is_the_least_distance_over_all_bodies_and_triangles():
    rng = np.random.default_rng(4)
    poses = [((0.1, 0, 0), rng.normal(size=4)), ((-0.1, 0.05, 0.2), rng.normal(size=4))]
    probe = Probe([box(0.1, 0.2, 0.3), grid(20, 0.3, lambda x, y: x * y)], (1, 1, 1), poses=poses)
    for p in rng.uniform(-0.5, 0.5, (300, 3)):
        expected = truth.point_triangles(p, probe.corners).min()
        assert abs(clearance(probe.model, probe.state, p) - expected) <= 1e-15


def test_clearance_of_an_empty_scene_is_infinite():
    probe = Probe([], (0, 0, 0))
    assert clearance(probe.model, probe.state, np.zeros(3)) == np.inf
