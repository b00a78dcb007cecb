"""The sweep never answers a time at which a surface is nearer than allowed, and answers late enough to be of use."""

import numpy as np
import probe_truth as truth
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from probe_scenes import Probe, box, grid

from rtcore.collision.sweep import RESOLUTION, impact_time, sweep
from rtcore.geometry.tree import build_tree
from rtcore.tables import DEGRADED_SWEEP

coordinate = st.floats(-1, 1, allow_subnormal=False)
point = st.tuples(coordinate, coordinate, coordinate).map(np.array)
GONE = 1e-12  # m: the independent distance of a needle's face is good to this


@settings(max_examples=400, deadline=None)
@given(st.tuples(point, point, point).map(np.array), point, point, st.sampled_from([1e-4, 0.01, 0.3]))
def test_impact_is_never_late_and_early_by_the_resolution_at_most(corners, start, motion, radius):
    triangle = build_tree(corners, np.array([[0, 1, 2]]))[1][0]
    resolution = 1e-9
    before = truth.point_triangles(start, corners[None])[0]
    time = impact_time(triangle, radius, resolution, *start, *motion, 1.0)
    assert 0.0 <= time <= 1.0
    least = truth.segment_triangles(start, start + time * motion, corners[None])[0]
    assert least >= min(radius, before) - GONE
    if time < 1.0:  # it is stopped only where it would come nearer, at the distance asked for
        there = truth.point_triangles(start + time * motion, corners[None])[0]
        onward = truth.point_triangles(start + (time + 1e-6) * motion, corners[None])[0]
        assert there <= radius + 2 * resolution
        assert before <= radius or onward < there + GONE


def test_a_triangle_already_too_near_lets_go_but_does_not_let_in():
    triangle = build_tree(np.array([[-1.0, -1, 0], [1, -1, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))[1][0]
    near = (0.1, 0.0, 0.005)
    for motion in ((0, 0, 1.0), (1.0, 0, 0), (0.3, 0.2, 1e-9), (0, 0, 0)):
        assert impact_time(triangle, 0.01, 1e-12, *near, *motion, 1.0) == 1.0
    for motion in ((0, 0, -1.0), (1.0, 0, -1e-9)):
        assert impact_time(triangle, 0.01, 1e-12, *near, *motion, 1.0) == 0.0


def test_grazing_and_head_on_impacts_have_their_analytic_times():
    triangle = build_tree(np.array([[0.0, -1, 0], [0, 1, 0], [5, 0, 0]]), np.array([[0, 1, 2]]))[1][0]
    exact = {  # approach of the edge x = 0, z = 0 by a sphere of 0.1
        ((-1.0, 0.0, 0.0), (2.0, 0.0, 0.0)): 0.45,
        ((-1.0, 0.0, 0.06), (2.0, 0.0, 0.0)): (1 - 0.08) / 2,
        ((1.0, 0.0, 1.0), (0.0, 0.0, -2.0)): 0.45,
    }
    for (start, motion), time in exact.items():
        found = impact_time(triangle, 0.1, 1e-13, *start, *motion, 1.0)
        assert time - 1e-12 <= found <= time + 1e-15
    assert impact_time(triangle, 0.1, 1e-13, -1, 0, 0.1 + 1e-9, 2, 0, 0, 1.0) == 1.0  # passes over it
    tangent = impact_time(triangle, 0.1, 1e-13, -1, 0, 0.1, 2, 0, 0, 1.0)  # touches, or nearly: both are free
    assert tangent >= 0.5 - 1e-6


@pytest.fixture(scope="module")
def clutter():
    rng = np.random.default_rng(8)
    corners = rng.uniform(-0.1, 0.1, (200, 1, 3)) + rng.normal(0, 0.02, (200, 3, 3))
    soup = (corners.reshape(-1, 3), np.arange(600).reshape(-1, 3))
    poses = [((0, 0, 0), (0, 0, 0, 1)), ((0.05, 0, 0), rng.normal(size=4)), ((0, 0.1, 0.1), rng.normal(size=4))]
    return Probe([soup, box(0.02, 0.03, 0.04), grid(10, 0.1)], (0, 0, 0), radius=0.003, poses=poses)


def ask(probe, start, motion, units):
    probe.report["degraded"] = 0
    return sweep(probe.model, probe.state, np.inf, *start, *motion, units, probe.report)


def test_sweep_is_the_first_impact_over_all_triangles(clutter):
    rng = np.random.default_rng(9)
    hits = 0
    limit = clutter.radius + clutter.alert
    for _ in range(400):
        start, motion = rng.uniform(-0.2, 0.2, 3), rng.normal(0, 0.1, 3)
        if truth.point_triangles(start, clutter.corners).min() < limit:
            continue
        time, left = ask(clutter, start, motion, 10**6)
        assert clutter.report["degraded"] == 0 and 0 <= left <= 10**6
        stop = start + time * motion
        assert truth.segment_triangles(start, stop, clutter.corners).min() >= limit - 1e-15
        if time < 1.0:
            hits += 1
            reached = truth.point_triangles(stop, clutter.corners).min()
            assert reached <= limit + 2 * RESOLUTION * clutter.alert + 1e-15
    assert hits > 50


@pytest.mark.parametrize("units", [0, 1, 5, 20, 40])
def test_a_sweep_that_runs_out_of_units_is_shorter_but_free(clutter, units):
    rng = np.random.default_rng(10)
    short = 0
    for _ in range(200):
        start, motion = rng.uniform(-0.2, 0.2, 3), rng.normal(0, 0.1, 3)
        if truth.point_triangles(start, clutter.corners).min() < clutter.radius + clutter.alert:
            continue
        full, _ = ask(clutter, start, motion, 10**6)
        time, left = ask(clutter, start, motion, units)
        assert 0.0 <= time <= full
        assert 0 <= left <= units
        if time < full:
            short += 1
            assert clutter.report["degraded"] == DEGRADED_SWEEP
    assert short > 0


def test_more_units_reach_the_full_answer(clutter):
    start, motion = np.array([0.3, 0.3, 0.3]), np.array([-0.6, -0.6, -0.6])
    times = [ask(clutter, start, motion, units)[0] for units in range(0, 400, 4)]
    assert times[-1] == ask(clutter, start, motion, 10**6)[0]
    assert times[0] < times[len(times) // 2] <= times[-1]
