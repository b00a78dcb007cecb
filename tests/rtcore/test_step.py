"""The promises of a step: never through a surface, never more than the budget, always the same bits."""

import tracemalloc
from itertools import pairwise

import numpy as np
import probe_truth as truth
import pytest
from numba.core.runtime import _nrt_python, rtsys
from probe_scenes import EPS, Probe, box, grid, sheets

from rtcore.model import ALERT_RESOLUTION
from rtcore.step import step
from rtcore.tables import DEGRADED_PASSES, MAX_CONTACTS, MAX_PATH, STEP_REPORT
from rtcore.warm_up import warm_up

TINY = (100, 1, 1)
FULL = (20000, 8, 50)


def soup(seed, radius, budget, friction=(0.4, 0.3)):
    """60 random triangles in two bodies, some without area, some coincident, and a tip that starts free."""
    rng = np.random.default_rng(seed)
    n = 60
    corners = rng.uniform(-0.1, 0.1, (n, 1, 3)) + rng.normal(0, 0.03, (n, 3, 3))
    corners[0, 2] = corners[0, 0]
    corners[1, 2] = 0.5 * (corners[1, 0] + corners[1, 1])
    corners[2] = corners[2, 0]
    corners[3] = corners[4]
    vertices, faces = corners.reshape(-1, 3), np.arange(3 * n).reshape(-1, 3)
    half = n // 2
    poses = [((0, 0, 0), (0, 0, 0, 1)), (rng.normal(0, 0.02, 3), rng.normal(size=4))]
    probe = Probe(
        [(vertices, faces[:half]), (vertices, faces[half:])],
        (0, 0, 0),
        radius=radius,
        friction=friction,
        budget=budget,
        poses=poses,
    )
    while True:
        start = rng.uniform(-0.15, 0.15, 3)
        if truth.point_triangles(start, probe.corners).min() > probe.radius + probe.safety:
            break
    probe.state.proxy["position"][0] = start
    return probe, rng


def wander(rng, goal, position):
    """Next goal: a small move, a far jump, or a place close to the tip."""
    kind = rng.integers(0, 6)
    if kind < 3:
        return goal + rng.normal(0, 0.001, 3)
    if kind == 3:
        return rng.uniform(-0.15, 0.15, 3)
    return position + rng.normal(0, 0.005 if kind == 4 else 1e-4, 3)


@pytest.mark.parametrize("budget", [FULL, TINY, (400, 3, 2)], ids=["full", "tiny", "small"])
@pytest.mark.parametrize("radius", [0.005, 0.001, 0.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_surface_is_ever_nearer_than_the_alert_distance(seed, radius, budget):
    probe, rng = soup(seed, radius, budget)
    goal, touched = probe.position, 0
    for _ in range(500):
        before = probe.position
        goal = wander(rng, goal, before)
        probe.go(*goal)
        np.testing.assert_array_equal(probe.path[0], before)
        np.testing.assert_array_equal(probe.path[-1], probe.position)
        assert probe.clearance() >= probe.least
        assert 0 <= probe.report["units_used"] <= budget[0]
        assert probe.report["passes_used"] <= budget[1] and probe.report["path_count"] <= budget[1] + 1
        touched += probe.report["contact_count"] > 0
    if radius > 0:
        assert touched > 10


@pytest.mark.parametrize("radius", [0.005, 0.0])
@pytest.mark.parametrize("speed", [0.1, 0.5, 2.0, 50.0])
@pytest.mark.parametrize("budget", [FULL, TINY], ids=["full", "tiny"])
def test_a_thin_plate_is_never_passed(radius, speed, budget):
    vertices, faces = box(0.1, 0.1, 0.0005)
    probe = Probe([(vertices, faces)], (0, 0, 0.05), radius=radius, friction=(0.4, 0.3), budget=budget)
    rng = np.random.default_rng(int(10 * speed))
    direction = np.array([0.2, 0.1, -1.0])
    goal = np.array([0.0, 0.0, 0.03])
    for k in range(300):
        goal = goal + speed * 1e-3 * direction if k < 100 else goal + rng.normal(0, speed * 1e-3, 3) * (1, 1, 0.1)
        if np.abs(goal[:2]).max() > 0.04 or goal[2] > 0.03:  # stay over the plate: going around it would be allowed
            goal[:2] = np.clip(goal[:2], -0.04, 0.04)
            goal[2] = min(goal[2], 0.03)
        probe.go(*goal)
        assert probe.position[2] >= 0.00025 + probe.least
        assert probe.clearance() >= probe.least


@pytest.mark.parametrize("budget", [FULL, TINY], ids=["full", "tiny"])
def test_an_open_sheet_is_not_crossed_in_exact_arithmetic(budget):
    # r = 0: the path is a line that may cross no triangle; decided with fractions, not with a tolerance.
    vertices, faces = grid(6, 0.1, lambda x, y: 0.01 * np.sin(40 * x) * np.cos(40 * y))
    probe = Probe([(vertices, faces)], (0, 0, 0.02), radius=0.0, friction=(0.2, 0.1), budget=budget)
    rng = np.random.default_rng(12)
    for _ in range(250):
        probe.go(*(rng.uniform(-0.04, 0.04, 3) * (1, 1, 0.5)))
        for p, q in pairwise(probe.path):
            above = (probe.corners.min(axis=1) <= np.maximum(p, q)).all(axis=1)
            near = above & (probe.corners.max(axis=1) >= np.minimum(p, q)).all(axis=1)
            assert not any(truth.crosses_exactly(p, q, corners) for corners in probe.corners[near])


def test_exact_crossing_knows_a_crossing():
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    assert truth.crosses_exactly(np.array([0.2, 0.2, 1]), np.array([0.2, 0.2, -1]), corners)
    assert not truth.crosses_exactly(np.array([0.8, 0.8, 1]), np.array([0.8, 0.8, -1]), corners)
    assert truth.segment_triangles(np.array([0.2, 0.2, 1]), np.array([0.2, 0.2, -1]), corners[None])[0] == 0


@pytest.mark.parametrize("width", [1.0000001, 1.001, 1.01, 1.5, 2.4, 2.6])
def test_a_tip_squeezed_into_a_slot_can_still_go_along_it_and_out(width):
    # Between eps_alert and eps_safety on both sides there is no rest position, but there is a way.
    gap = 0.005 + width * EPS[0]
    walls = [sheets([(-0.05, y, -0.05), (0.05, y, -0.05), (0.05, y, 0.05), (-0.05, y, 0.05)]) for y in (-gap, gap)]
    probe = Probe(walls, (-0.02, 0, 0), friction=(0.0, 0.0))
    for goal in ((0.01, 0.002, 0.0), (0.02, -0.003, 0.01), (0.0, 0.0, -0.01)):
        for _ in range(3):
            probe.go(*goal)
            assert probe.clearance() >= probe.least
        np.testing.assert_allclose(probe.position[[0, 2]], np.array(goal)[[0, 2]], atol=1e-8)
    probe.go(-0.1, 0, 0)
    np.testing.assert_allclose(probe.position, [-0.1, 0, 0], atol=1e-9)


def test_a_tip_that_starts_too_near_comes_no_nearer_and_gets_away():
    for start, toward, away in (
        ((0.0, 0.0, 0.00499), (0, 0, -0.01), (0.001, 0, 0.02)),
        ((0.0, 0.0, 1e-9), (0.001, 0, -0.01), (0, 0.001, 0.02)),
    ):
        probe = Probe([grid(10, 0.1)], start)
        probe.go(*toward)
        assert probe.clearance() >= start[2] - 1e-15
        probe.go(*away)
        np.testing.assert_array_equal(probe.position, away)


def test_free_motion_reaches_the_goal_to_the_bit():
    probe = Probe([grid(10, 0.1)], (0, 0, 0.1))
    rng = np.random.default_rng(0)
    for goal in rng.uniform(0.01, 0.1, (50, 3)):
        np.testing.assert_array_equal(probe.go(*goal), goal)
        assert probe.report["degraded"] == 0 and probe.report["fraction"] == 1.0
        assert probe.report["smallest_gap"] == -1.0 and probe.report["contact_count"] == 0


def test_a_goal_that_is_no_point_asks_for_no_motion():
    probe = Probe([grid(10, 0.1)], (0.001, 0.002, 0.02))
    for bad in ((np.nan, 0, 0), (0, np.inf, 0), (0, 0, -np.inf), (1e200, 0, 0)):
        probe.input["goal_orientation"][0, 3] = np.nan
        np.testing.assert_array_equal(probe.go(*bad), [0.001, 0.002, 0.02])
        np.testing.assert_array_equal(probe.state.proxy["orientation"][0], [0, 0, 0, 1])
    probe.input["goal_orientation"][0] = (0, 0.6, 0, 0.8)
    probe.go(0, 0, 0.01)
    np.testing.assert_array_equal(probe.state.proxy["orientation"][0], (0, 0.6, 0, 0.8))


def test_the_report_is_complete_and_its_unused_rows_are_zero():
    probe, rng = soup(5, 0.005, FULL)
    goal = probe.position
    for _ in range(200):
        goal = wander(rng, goal, probe.position)
        probe.reports.view(np.uint8)[:] = 0xA5  # whatever was there before must not show
        probe.go(*goal)
        clean = np.zeros(1, STEP_REPORT)[0]
        report = probe.report
        n, m = report["contact_count"], report["path_count"]
        assert 0 <= n <= MAX_CONTACTS and 1 <= m <= MAX_PATH
        assert report["contacts"][n:].tobytes() == clean["contacts"][n:].tobytes()
        assert report["path"][m:].tobytes() == clean["path"][m:].tobytes()
        assert m == report["passes_used"] + 1 or report["fraction"] < 1.0
        assert 0.0 <= report["fraction"] <= 1.0
        assert report["smallest_gap"] == (report["contacts"]["gap"][:n].min() if n else -1.0)
        if n:
            gaps = truth.point_triangles(probe.position, probe.corners) - probe.radius
            assert abs(report["smallest_gap"] - gaps.min()) <= 1e-15
            np.testing.assert_allclose(np.linalg.norm(probe.contacts["normal"], axis=1), 1.0, atol=1e-12)
            reach = np.linalg.norm(probe.position - probe.contacts["point"], axis=1) - probe.radius
            np.testing.assert_allclose(reach, probe.contacts["gap"], atol=1e-12)
        if not report["degraded"]:  # what the contacts push is what keeps the tip from its goal
            np.testing.assert_allclose(probe.push, probe.position - goal, atol=probe.alert * 1e-3 + 1e-6 * 0.3)


def test_running_out_of_passes_is_reported_and_only_then():
    probe = Probe([box(0.04, 0.04, 0.04)], (0, 0, 0.03), budget=(20000, 1, 50))
    probe.go(0, 0, 0.0)
    assert probe.report["degraded"] == DEGRADED_PASSES  # stopped by the sweep at eps_alert, wants back to eps_safety
    probe.go(0, 0, 0.0)
    assert probe.report["degraded"] == 0
    probe.budget["passes"] = 0
    before = probe.position
    probe.go(0.01, 0, 0)
    assert probe.report["degraded"] == DEGRADED_PASSES and probe.report["path_count"] == 1
    np.testing.assert_array_equal(probe.position, before)
    assert probe.report["contact_count"] == 1


def test_two_runs_are_equal_to_the_bit():
    def run():
        probe, rng = soup(7, 0.002, (3000, 5, 10))
        goal, blob = probe.position, b""
        for _ in range(300):
            goal = wander(rng, goal, probe.position)
            probe.go(*goal)
            blob += probe.reports.tobytes() + probe.state.proxy.tobytes()
        return blob

    assert run() == run()


def test_what_is_in_the_scratch_does_not_matter():
    probe, rng = soup(9, 0.002, FULL)
    goal = probe.position
    for _ in range(100):
        goal = wander(rng, goal, probe.position)
        proxy = probe.state.proxy.copy()
        probe.go(*goal)
        first = probe.reports.tobytes()
        probe.state.proxy[:] = proxy
        probe.state.scratch.view(np.uint8)[:] = 0xA5
        probe.go(*goal)
        assert probe.reports.tobytes() == first


def drive(model, state, step_input, budget, report, goals):
    """Steps to one goal after the other."""
    for goal in goals:
        step_input["goal_position"][:] = goal
        step(model, state, step_input, budget, report)


def test_a_warm_step_allocates_and_compiles_nothing():
    warm_up()
    signatures = len(step.signatures)
    probe, rng = soup(3, 0.005, FULL)
    goals = probe.position + rng.normal(0, 0.02, (400, 3))
    arguments = (probe.model, probe.state, probe.input[0], probe.budget[0], probe.reports[0])
    drive(*arguments, goals)
    _nrt_python.memsys_enable_stats()
    counts = []
    for some in (goals[:1], goals):
        before = rtsys.get_allocation_stats()
        drive(*arguments, some)
        counts.append([b - a for a, b in zip(before, rtsys.get_allocation_stats(), strict=True)])
    _nrt_python.memsys_disable_stats()
    assert not np.any(counts)
    tracemalloc.start()
    held = 0
    for _ in range(2):  # the first round fills the free lists of the interpreter
        grown = tracemalloc.get_traced_memory()[0] - held
        held += grown
        for _ in range(2000):
            step(*arguments)
    grown = tracemalloc.get_traced_memory()[0] - held
    tracemalloc.stop()
    assert grown < 2000  # less than a byte per step
    assert len(step.signatures) == signatures == 1


@pytest.mark.parametrize("far", [1e3, 1e9, 1e15, 1e150])
def test_a_goal_out_of_this_world_is_taken_back_to_its_border(far):
    """Coordinates beyond eps_alert / ALERT_RESOLUTION are not gone to, so the floor is kept from wherever one comes."""
    probe = Probe([grid(1, 100.0)], (0.0, 0.0, 0.1))
    border = EPS[0] / ALERT_RESOLUTION
    assert np.array_equal(probe.go(0.3 * far, -far, far), np.clip((0.3 * far, -far, far), -border, border))
    probe.go(0.0, 0.0, far)
    # Back at a slant: it meets the floor 150 m on.
    probe.go(30.0, -20.0, -far)
    for _ in range(5):
        probe.go(30.0, -20.0, -far)
        assert probe.clearance() >= probe.least
    assert probe.position[2] == pytest.approx(probe.radius + probe.safety, abs=1e-6)
