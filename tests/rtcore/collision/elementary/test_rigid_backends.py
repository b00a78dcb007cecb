"""What all rigid back-ends of the elementary tests must answer alike: special positions, and each other's results."""

import numpy as np
import pytest
from rigid_truth import EDGE_EDGE, FACE_VERTEX, VERTEX_FACE, one_case, one_pair, random_cases

from rtcore.collision.elementary import advance, cubic, interval

BACKENDS = (advance, cubic, interval)
GAP = 0.001
EDGE = [[-0.5, 0, 0], [0.5, 0, 0]]
FACE = [[-1, -1, 0], [1, -1, 0], [0, 2, 0]]
# What lies above the features of the first, at a height of its own.
OVER = {
    EDGE_EDGE: (EDGE, [[0.1, -0.5, 0], [0.1, 0.5, 0]]),
    "parallel edges": (EDGE, [[-0.3, 0, 0], [0.4, 0, 0]]),
    "end over end": (EDGE, [[0.5, 0, 0], [1.5, 0.3, 0.2]]),
    VERTEX_FACE: ([[0.1, 0, 0]], FACE),
    FACE_VERTEX: (FACE, [[0.1, 0, 0]]),
    "vertex over an edge": (FACE, [[0, -1, 0]]),
    "vertex over a vertex": ([[0, 2, 0]], FACE),
}
SHAPES = {"parallel edges": EDGE_EDGE, "end over end": EDGE_EDGE}
SHAPES |= {"vertex over an edge": FACE_VERTEX, "vertex over a vertex": VERTEX_FACE}


def over(name, height, shift, **turn):
    a, b = OVER[name]
    return one_case(SHAPES.get(name, name), a, np.array(b) + [0, 0, height], shift, **turn)


def run(module, case, separation, **options):
    time, found, iterations = case.run(one_pair(module, case.shape), separation, **options)
    return time[0], bool(found[0]), int(iterations[0])


@pytest.fixture(params=BACKENDS, ids=lambda module: module.__name__.rsplit(".", 1)[1])
def module(request):
    return request.param


@pytest.mark.parametrize("name", OVER)
def test_straight_approach_is_met_at_the_time_on_paper(module, name):
    for separation in (0.0, GAP):
        case = over(name, 0.101, (0, 0, -0.2))
        time, found, _ = run(module, case, separation, position_tolerance=1e-9)
        truth = (0.101 - separation) / 0.2
        assert found and truth - 2e-8 <= time <= truth
        assert not run(module, case, separation, limit=truth - 1e-6)[1]
        assert run(module, case, separation, limit=truth + 1e-6)[1]


@pytest.mark.parametrize("name", OVER)
def test_sliding_just_above_the_separation_is_free(module, name):
    case = over(name, GAP * (1 + 1e-9), (0.05, 0.02, 0))
    time, found, iterations = run(module, case, GAP)
    assert (time, found) == (1.0, False)
    assert iterations <= 3


@pytest.mark.parametrize("name", OVER)
def test_what_begins_below_the_separation_may_leave_and_slide(module, name):
    for shift in ((0, 0, 0.05), (0.01, 0.02, 0.0), (0, 0, 0)):
        time, found, _ = run(module, over(name, GAP / 2, shift), GAP)
        assert (time, found) == (1.0, False)


@pytest.mark.parametrize("name", OVER)
def test_what_begins_below_the_separation_may_not_approach(module, name):
    case = over(name, GAP / 2, (0, 0, -0.0001))
    time, found, _ = run(module, case, GAP)
    assert found and 0 <= time <= 1e-8


@pytest.mark.parametrize("name", OVER)
def test_touching_features_stop_at_once(module, name):
    for shift in ((0, 0, 0.05), (0, 0, 0), (0.01, 0, 0)):
        for separation in (0.0, GAP):
            assert run(module, over(name, 0.0, shift), separation)[:2] == (0.0, True)


@pytest.mark.parametrize("name", OVER)
def test_without_motion_nothing_is_found(module, name):
    assert run(module, over(name, GAP, (0, 0, 0)), 0.5 * GAP)[:2] == (1.0, False)


def test_edges_that_slide_along_their_common_line_meet_end_to_end(module):
    case = one_case(EDGE_EDGE, [[0, 0, 0], [1, 0, 0]], [[1.5, 0, 0], [2.5, 0, 0]], (-1, 0, 0))
    time, found, _ = run(module, case, 0.0, position_tolerance=1e-8, cap=2000)
    assert found and 0.5 - 1e-7 <= time <= 0.5


def test_edges_that_slide_in_their_common_plane_past_each_other_are_free(module):
    case = one_case(EDGE_EDGE, [[0, 0, 0], [1, 0, 0]], [[-1, 0.01, 0], [2, 1, 0]], (3, -0.005, 0))
    assert run(module, case, 0.0, cap=2000)[1] == case.first_time(0.0, 1e-6, 1.0)[1][0]
    vertical = one_case(EDGE_EDGE, [[0, 0, 0], [1, 0, 0]], [[-1, 0.01, 0], [-1, 1, 0]], (3, 0, 0))
    assert run(module, vertical, 0.0, cap=2000)[:2] == (1.0, False)


def test_at_the_cap_the_time_is_proven_and_no_more_work_is_done(module):
    rng = np.random.default_rng(1)
    cases = random_cases(rng, 40, EDGE_EDGE, [(0, 1), (0, 2)], 1.0)
    full, _, _ = cases.run(one_pair(module, EDGE_EDGE), 0.0, cap=3000)
    for cap in (1, 2, 3, 5, 10):
        time, found, iterations = cases.run(one_pair(module, EDGE_EDGE), 0.0, cap=cap)
        assert np.all(iterations <= cap)
        assert np.all(time <= full + 1e-8)
        # What the cap stopped is no contact: the time is proven, and below the limit.
        stopped = (iterations == cap) & (time < full - 1e-6)
        assert stopped.any() or cap > 3
        assert not found[stopped].any()
        assert np.all(found | (time == 1.0) | (iterations == cap))


def test_degenerate_features_are_points_and_segments(module):
    # An edge and a face of no size, straight over the other feature.
    point = [0.1, 0, 0.101]
    for case in (
        one_case(EDGE_EDGE, EDGE, [point, point], (0, 0, -0.2)),
        one_case(FACE_VERTEX, [EDGE[0], EDGE[1], EDGE[0]], [point], (0, 0, -0.2)),
        one_case(VERTEX_FACE, [[0.1, 0, 0]], [point, point, point], (0, 0, -0.2)),
    ):
        for separation in (0.0, GAP):
            time, found, _ = run(module, case, separation, position_tolerance=1e-8, cap=2000)
            truth = (0.101 - separation) / 0.2
            assert found and truth - 1e-7 <= time <= truth


@pytest.mark.parametrize("shape", [EDGE_EDGE, VERTEX_FACE, FACE_VERTEX])
def test_the_three_agree_where_all_three_apply(shape):
    # Both are after the same first time and are at most the tolerance early; grazing contacts may fall either way.
    cases = random_cases(np.random.default_rng(shape), 120, shape, [(0, 2), (0, 1)], [2.5, 0.0])
    tests = [one_pair(m, shape) for m in BACKENDS]
    results = [cases.run(test, 0.0, 1.0, 1e-9, 1e-8, 5000) for test in tests]
    for time, found, _ in results[1:]:
        same = (np.abs(time - results[0][0]) <= 1e-6) & (found == results[0][1])
        for i in np.flatnonzero(~same):
            early, late = sorted((time[i], results[0][0][i]))
            between = [cases.at(u)[i] for u in (early, late)]
            assert min(between) <= 1e-7, (i, early, late, between)
        assert same.mean() > 0.97
