"""Closest points agree with exact rational arithmetic, for good and for degenerate input, and with an optimiser."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from rtcore.collision.features import FACE, point_triangle, segment_segment

ROUNDING = 3e-15
"""Error of a distance per largest coordinate: a dozen ulp."""


def exact(points):
    return [[Fraction(float(x)) for x in p] for p in points]


def sub(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def root(square):
    """Square root of a rational: the distance without the rounding of a float square."""
    scale = 10**80
    return math.isqrt(square.numerator * scale * scale // square.denominator) / scale


def exact_point_segment(p, a, b):
    d, r = sub(b, a), sub(p, a)
    t = min(max(dot(r, d) / dot(d, d), Fraction(0)), Fraction(1)) if dot(d, d) else Fraction(0)
    gap = [x - t * y for x, y in zip(r, d, strict=True)]
    return dot(gap, gap)


def exact_segments(a0, a1, b0, b1):
    """Square distance of two segments in rationals: the critical point of the lines if it is inside, else the ends."""
    a0, a1, b0, b1 = exact((a0, a1, b0, b1))
    best = min(
        exact_point_segment(a0, b0, b1),
        exact_point_segment(a1, b0, b1),
        exact_point_segment(b0, a0, a1),
        exact_point_segment(b1, a0, a1),
    )
    d, e, r = sub(a1, a0), sub(b1, b0), sub(b0, a0)
    determinant = dot(d, d) * dot(e, e) - dot(d, e) ** 2
    if determinant:
        s = (dot(r, d) * dot(e, e) - dot(r, e) * dot(d, e)) / determinant
        t = (dot(r, d) * dot(d, e) - dot(r, e) * dot(d, d)) / determinant
        if 0 <= s <= 1 and 0 <= t <= 1:
            gap = [x + t * y - s * z for x, y, z in zip(r, e, d, strict=True)]
            best = min(best, dot(gap, gap))
    return best


def exact_triangle(p, a, b, c):
    p, a, b, c = exact((p, a, b, c))
    best = min(exact_point_segment(p, *edge) for edge in ((a, b), (b, c), (c, a)))
    d, e, r = sub(b, a), sub(c, a), sub(p, a)
    determinant = dot(d, d) * dot(e, e) - dot(d, e) ** 2
    if determinant:
        v = (dot(r, d) * dot(e, e) - dot(r, e) * dot(d, e)) / determinant
        w = (dot(r, e) * dot(d, d) - dot(r, d) * dot(d, e)) / determinant
        if v >= 0 and w >= 0 and v + w <= 1:
            gap = [x - v * y - w * z for x, y, z in zip(r, d, e, strict=True)]
            best = min(best, dot(gap, gap))
    return best


def vectors(*points):
    return tuple(tuple(float(x) for x in p) for p in points)


def check_segments(*points):
    a0, a1, b0, b1 = (np.asarray(p, dtype=float) for p in points)
    s, t, square = segment_segment(*vectors(*points))
    assert 0 <= s <= 1 and 0 <= t <= 1
    scale = max(np.abs(np.array(points, dtype=float)).max(), 1e-300)
    assert abs(math.sqrt(square) - root(exact_segments(*points))) <= ROUNDING * scale
    there = np.linalg.norm(a0 + s * (a1 - a0) - b0 - t * (b1 - b0))
    assert abs(there - math.sqrt(square)) <= ROUNDING * scale


def check_triangle(*points):
    p, a, b, c = (np.asarray(x, dtype=float) for x in points)
    v, w, square, feature = point_triangle(*vectors(*points))
    assert v >= 0 and w >= 0 and v + w <= 1 + 1e-15
    scale = max(np.abs(np.array(points, dtype=float)).max(), 1e-300)
    assert abs(math.sqrt(square) - root(exact_triangle(*points))) <= ROUNDING * scale
    there = np.linalg.norm(a + v * (b - a) + w * (c - a) - p)
    assert abs(there - math.sqrt(square)) <= ROUNDING * scale
    shares = (1 - v - w, v, w)
    if feature < 3:
        assert shares[feature] == 1
    elif feature < FACE:
        assert abs(shares[(feature - 1) % 3]) <= 1e-15


coordinate = st.one_of(st.floats(-1, 1, allow_subnormal=False), st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]))
point = st.tuples(coordinate, coordinate, coordinate)


def representable(points):
    """Squares of squares of the differences neither vanish nor overflow: lengths of 1e-40 are no lengths here."""
    values = np.abs(np.subtract.outer(np.ravel(points), np.ravel(points)))
    return not np.any((values > 0) & (values < 1e-40))


@settings(max_examples=300, deadline=None)
@given(st.tuples(point, point, point, point).filter(representable))
def test_segments_of_any_shape(points):
    check_segments(*points)


@settings(max_examples=300, deadline=None)
@given(st.tuples(point, point, point, point).filter(representable))
def test_points_and_triangles_of_any_shape(points):
    check_triangle(*points)


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("tilt", [0.0, 1e-17, 1e-15, 1e-12, 1e-9, 1e-7, 1e-4])
def test_parallel_edges_and_edges_that_are_nearly_so(size, tilt):
    rng = np.random.default_rng(1)
    for _ in range(60):
        a0, d, across, offset = rng.normal(size=(4, 3)) * size
        start, stretch = rng.uniform(-2, 2, 2)
        b0 = a0 + start * d + offset * rng.choice([0, 1e-6, 1])
        check_segments(a0, a0 + d, b0, b0 + stretch * d + tilt * across)


def test_collinear_edges_that_touch_overlap_or_are_apart():
    for s0, s1, t0, t1 in product((0.0, 0.25, 1.0), (0.5, 1.0, 0.0), (0.5, 1.0, 1.5), (0.25, 1.0, 3.0)):
        direction = np.array([1.0, 2.0, -0.5])
        check_segments(s0 * direction, s1 * direction, t0 * direction, t1 * direction)


def test_edges_and_triangles_of_no_size_are_points():
    rng = np.random.default_rng(2)
    for _ in range(200):
        p, a, b, c = rng.normal(size=(4, 3))
        check_segments(a, a, b, c)
        check_segments(b, c, a, a)
        check_segments(a, a, b, b)
        check_segments(a, a, a, a)
        check_triangle(p, a, a, a)
        check_triangle(p, a, a, b)
        check_triangle(p, a, b, a)
        check_triangle(p, b, a, a)
        check_triangle(a, a, a, a)
        check_triangle(p, a, b, a + rng.uniform(-1, 2) * (b - a))  # without area, to rounding


@pytest.mark.parametrize("thickness", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 1e-16])
@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-3, 1.0, 100.0])
def test_needles_and_caps(thickness, apart):
    rng = np.random.default_rng(3)
    for _ in range(40):
        a, d, across, offset = rng.normal(size=(4, 3))
        # c near an end: needle; c over the middle: cap. The corners are given in every order.
        corners = [a, a + d, a + rng.choice([0.0, 0.01, 0.5, 1.0]) * d + thickness * across]
        p = a + rng.uniform(-0.3, 1.3) * d + rng.uniform(-1, 2) * thickness * across + apart * offset
        order = rng.permutation(3)
        check_triangle(p, *(corners[k] for k in order))


def test_points_on_the_features_are_at_distance_zero_and_name_them():
    rng = np.random.default_rng(4)
    for _ in range(100):
        corners = rng.normal(size=(3, 3))
        for k in range(3):
            assert point_triangle(*vectors(corners[k], *corners))[2:] == (0.0, k)
            middle = 0.5 * (corners[k] + corners[(k + 1) % 3])
            assert math.sqrt(point_triangle(*vectors(middle, *corners))[2]) <= ROUNDING
        inner = rng.dirichlet([2, 2, 2]) @ corners
        square, feature = point_triangle(*vectors(inner, *corners))[2:]
        assert feature == FACE and math.sqrt(square) <= ROUNDING


def test_an_optimiser_finds_nothing_nearer():
    rng = np.random.default_rng(5)
    for _ in range(40):
        points = rng.normal(size=(4, 3))
        a0, a1, b0, b1 = points
        best = minimize(
            lambda x, a0=a0, a1=a1, b0=b0, b1=b1: np.sum((a0 + x[0] * (a1 - a0) - b0 - x[1] * (b1 - b0)) ** 2),
            [0.5, 0.5],
            bounds=[(0, 1), (0, 1)],
            tol=1e-12,
        )
        assert segment_segment(*vectors(*points))[2] == pytest.approx(best.fun, abs=1e-9)
        share = rng.dirichlet([1, 1, 1], 2000)
        sampled = np.linalg.norm(share @ points[1:] - points[0], axis=1).min()
        assert math.sqrt(point_triangle(*vectors(*points))[2]) <= sampled + ROUNDING
