"""The interval back-end: its arithmetic encloses, and with both bodies moving it is never late, in its tolerances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rigid_truth import EDGE_EDGE, FACE_VERTEX, VERTEX_FACE, check, one_case, one_pair, random_cases

from rtcore import motion
from rtcore.collision.elementary import interval

TESTS = {shape: one_pair(interval, shape) for shape in (EDGE_EDGE, VERTEX_FACE, FACE_VERTEX)}
KINDS = [(0, 1), (1, 0), (1, 1), (0, 1), (1, 0), (1, 1), (0, 2), (2, 1), (0, 0)]
TURNS = [0.3, 0.3, 0.3, np.pi, np.pi, np.pi, 2.9, 2.9, 0.0]

number = st.floats(-10, 10)
angle = st.floats(0, np.pi)
share = st.floats(0, 1)


def ends(x, y):
    return min(x, y), max(x, y)


@settings(deadline=None)
@given(number, number, number, number, share, share)
def test_products_hold_all_products_of_their_members(a, b, c, d, s, t):
    x, y = ends(a, b), ends(c, d)
    low, high = interval.product(x, y)
    p, q = x[0] + s * (x[1] - x[0]), y[0] + t * (y[1] - y[0])
    p, q = np.clip(p, *x), np.clip(q, *y)
    assert low <= p * q <= high
    assert {low, high} <= {i * j for i in x for j in y}
    low, high = interval.times(a, y)
    assert low <= a * q <= high


@settings(deadline=None)
@given(angle, angle, share)
def test_ranges_of_sine_and_cosine_are_exact_to_the_pad(a, b, s):
    x0, x1 = ends(a, b)
    inner = min(x0 + s * (x1 - x0), x1)
    samples = np.append(np.linspace(x0, x1, 50), np.clip(np.pi / 2, x0, x1))
    for function, got in ((np.cos, interval.cosine_range(x0, x1)), (np.sin, interval.sine_range(x0, x1))):
        assert got[0] <= function(inner) <= got[1]
        assert abs(got[0] - function(samples).min()) <= 4e-15
        assert abs(got[1] - function(samples).max()) <= 4e-15


def test_intervals_follow_each_other_from_left_to_right_without_a_gap():
    rng = np.random.default_rng(1)
    for _ in range(50):
        index, level, end = 0, 0, 0.0
        while not (index == 1 and level == 0):
            assert index / 2**level == end
            if level < 12 and rng.uniform() < 0.55:
                index, level = 2 * index, level + 1
            else:
                end = (index + 1) / 2**level
                index, level = interval.following(index, level)
        assert end == 1.0


@pytest.mark.parametrize("shape", TESTS)
def test_boxes_hold_the_moving_points_and_the_function(shape):
    cases = random_cases(np.random.default_rng(2), 60, shape, KINDS, TURNS)
    rng = np.random.default_rng(3)
    for i in range(len(cases)):
        u0, u1 = np.sort(rng.uniform(0, 1, 2)).tolist()
        for body, name in ((cases.first, "first"), (cases.second, "second")):
            x = tuple(body.start[i, 0].tolist())
            low, high = interval._point_range(cases.relative[i][name], x, u0, u1)
            for u in np.linspace(u0, u1, 5):
                there = body.places(np.full(len(cases), u))[i, 0]
                assert np.all(there >= np.array(low) - 1e-12) and np.all(there <= np.array(high) + 1e-12)


@pytest.mark.parametrize("shape", TESTS)
@pytest.mark.parametrize("separation", [0.0, 0.05])
def test_any_motion_of_both_bodies(shape, separation):
    cases = random_cases(np.random.default_rng(shape), 100, shape, KINDS, TURNS)
    _, found, _ = check(cases, TESTS[shape], separation, position_tolerance=1e-6, cap=5000)
    assert found.mean() > 0.7


@pytest.mark.parametrize("shape", TESTS)
def test_features_in_one_plane_where_the_function_is_zero_throughout(shape):
    cases = random_cases(np.random.default_rng(4), 80, shape, KINDS[:6], TURNS[:6], flat=True)
    for separation in (0.0, 0.02):
        _, found, _ = check(cases, TESTS[shape], separation, position_tolerance=1e-6, cap=5000)
        assert found.mean() > 0.7


@pytest.mark.parametrize(("size", "offset"), [(1e-6, 0.0), (1e4, 0.0), (0.01, 100.0)])
def test_sizes_and_a_far_origin(size, offset):
    for shape, test in TESTS.items():
        cases = random_cases(np.random.default_rng(20), 40, shape, KINDS[:6], TURNS[:6], size=size, offset=offset)
        _, found, _ = check(cases, test, 0.01 * size, position_tolerance=1e-6 * size, cap=5000)
        assert found.mean() > 0.7


def test_bodies_carried_along_together_are_free_in_one_interval():
    # Each goes a metre, 1 mm apart, neither nearer to the other: the velocities cancel exactly.
    edge = [[0, 0, 0], [0.1, 0, 0]]
    case = one_case(EDGE_EDGE, edge, [[0.05, -0.1, 0.001], [0.05, 0.1, 0.001]], (1, 0.5, 0.2))
    case.relative["first"] = case.relative["second"]
    time, found, iterations = case.run(TESTS[EDGE_EDGE], 0.0009)
    assert not found[0] and time[0] == 1.0 and iterations[0] == 1


def test_algebraic_motions_are_safe():
    cases = random_cases(np.random.default_rng(5), 40, EDGE_EDGE, [(0, motion.ALGEBRAIC)], 1.5)
    time, _, _ = cases.run(TESTS[EDGE_EDGE], 0.0, position_tolerance=1e-6, cap=300)
    for s in np.linspace(0, 1, 500):
        assert np.all(cases.distances(s * time) > -1e-12)
        assert np.all((cases.distances(s * time) > 0) | (s == 1.0))
