"""The independent passage check must see what is there and nothing else."""

import numpy as np
import pytest

from tools.passage import distance_to_triangles, passages, segment_meets_triangle

TRIANGLE = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize(
    ("p", "q", "meets"),
    [
        ((0.2, 0.2, 1.0), (0.2, 0.2, -1.0), True),
        ((0.2, 0.2, 1.0), (0.2, 0.2, 1e-300), False),
        ((0.2, 0.2, 1.0), (0.2, 0.2, 0.0), True),
        ((0.6, 0.6, 1.0), (0.6, 0.6, -1.0), False),
        ((0.5, 0.5, 1.0), (0.5, 0.5, -1.0), True),  # exactly on the long edge
        ((0.5, 0.5000000000000001, 1.0), (0.5, 0.5000000000000001, -1.0), False),  # one rounding beyond it
        ((0.0, 0.0, 1.0), (0.0, 0.0, -1.0), True),  # exactly on a vertex
        ((1.0, 1.0, 1.0), (2.0, 2.0, -1.0), False),
    ],
)
def test_exact_decisions(p, q, meets):
    assert segment_meets_triangle(np.array(p), np.array(q), TRIANGLE) is meets


def test_polyline_through_a_wall_is_found_and_beside_it_is_not():
    wall = np.array([TRIANGLE, TRIANGLE + [0.0, 0.0, 0.5]])
    through = np.array([[0.2, 0.2, 1.0], [0.2, 0.2, 0.2], [0.2, 0.2, -1.0], [3.0, 0.0, -1.0]])
    assert passages(through, wall) == [(0, 1), (1, 0)]
    beside = through + [1.0, 0.0, 0.0]
    assert passages(beside, wall) == []


def test_no_leak_between_triangles_that_share_an_edge():
    """Two triangles share a diagonal whose coordinates do not round nicely: every ray through it must hit one."""
    generator = np.random.default_rng(5)
    corners = np.array([[0, 0, 0.1], [1, 0, 0.1], [1, 1, 0.1], [0, 1, 0.1]])
    corners[:, :2] += generator.uniform(-0.2, 0.2, size=(4, 2))
    square = np.array([corners[[0, 1, 2]], corners[[0, 2, 3]]])
    for s in generator.random(300):
        point = corners[0] + s * (corners[2] - corners[0])  # rounded: a hair beside the diagonal
        ray = np.array([point + [0, 0, 1], point - [0, 0, 1]])
        assert passages(ray, square), point


def test_distance_against_closed_forms():
    points = np.array([[0.2, 0.2, 0.7], [-1.0, 0.0, 0.0], [0.5, -2.0, 0.0], [1.0, 1.0, 0.0]])
    expected = [0.7, 1.0, 2.0, np.sqrt(0.5)]
    np.testing.assert_allclose(distance_to_triangles(points, TRIANGLE[None]), expected, rtol=1e-14)
