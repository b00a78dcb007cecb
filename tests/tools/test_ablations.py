"""The variants that are compared answer alike; what differs is the work."""

import numpy as np
import pytest

from rtcore.tables import QUERY_OWNED, QUERY_PASS_TIME
from tools.ablation import back_faces, box_tests, traversal
from tools.ablation.replay import make_query, pair_of, replay, walk
from tools.bench.mesh_ride import distances
from tools.scenes import scene
from tools.scenes.clearance import clearance

AGREE = 1e-4
"""u"""


@pytest.fixture(scope="module")
def doors():
    return scene("two_doors", 1_000)


@pytest.fixture(scope="module")
def pair(doors):
    return pair_of(doors)


@pytest.fixture(scope="module")
def moves(doors, pair):
    (phase,) = [phase for phase in doors.phases if phase.name == "approach"]
    return walk(pair, phase, distances(doors), 15)


def test_a_walk_goes_on_from_where_it_was_left_and_stops_at_the_separation(doors, pair, moves):
    times = replay(pair, moves, make_query(moves.separation)).times
    blocked = times < moves.limits
    assert blocked.any() and not blocked[: len(blocked) // 2].any()
    ends = moves.relatives["second"]["position"]
    free = ~blocked[:-1] & (moves.limits[:-1] == 1.0)
    reached = ends[:-1] + moves.relatives["second"]["shift"][:-1]
    np.testing.assert_allclose(ends[1:][free], reached[free], atol=1e-12)
    last = moves.relatives["second"][-1]
    gap = clearance(doors.parts, doors.moving, np.concatenate([last["position"], last["orientation"]]))
    assert moves.separation * (1.0 - 1e-6) <= gap <= moves.separation * 1.01


def test_ways_to_go_through_the_pairs_answer_alike(pair, moves):
    rows = traversal.passing_time(pair, moves) | traversal.owner_masks(pair, moves)
    reference = rows["with"]
    for row in rows.values():
        assert row.truncated == 0
        np.testing.assert_allclose(row.times, reference.times, atol=AGREE)
    passing = traversal.passing_time(pair, moves)
    assert passing["with"].counters["box_tests"] < passing["without"].counters["box_tests"]
    owned = traversal.owner_masks(pair, moves)
    assert owned["with"].counters["edge_edge"] < owned["without"].counters["edge_edge"]


def test_a_front_answers_as_the_roots_do(pair, moves):
    rows = traversal.coherence(pair, [moves])
    np.testing.assert_allclose(rows["with"][0].times, rows["without"][0].times, atol=AGREE)
    assert rows["with"][0].counters["reused"] > 0


@pytest.mark.slow
@pytest.mark.long
def test_culling_by_cones_and_by_recoil_vectors_loses_no_contact(pair, moves):
    cones = back_faces.with_recoil(pair)
    rows = back_faces.methods(cones, moves, back_faces.make_kernel())
    for row in rows.values():
        assert row.truncated == 0
        np.testing.assert_allclose(row.times, rows["none"].times, atol=AGREE)
    assert rows["none"].counters["receding_tests"] == 0
    hierarchical, elementary = rows["hierarchical, recoil vectors"], rows["elementary, recoil vectors"]
    assert hierarchical.counters["receding_tests"] > elementary.counters["receding_tests"] > 0
    assert elementary.counters["receding"] > 0
    assert elementary.counters["edge_edge"] < rows["none"].counters["edge_edge"]


@pytest.mark.slow
@pytest.mark.long
def test_box_tests_answer_alike(pair, moves):
    kernel = box_tests.make_kernel()
    rows = box_tests.discrete_first(pair, moves, kernel) | box_tests.partial_axes(pair, moves, kernel)
    flags = QUERY_PASS_TIME | QUERY_OWNED
    reference = replay(pair, moves, make_query(moves.separation, flags))
    for row in rows.values():
        assert row.truncated == 0
        np.testing.assert_allclose(row.times, reference.times, atol=AGREE)
    assert rows["none"].counters["box_discrete"] == 0
    assert rows["both, final first"].counters["box_continuous"] < rows["none"].counters["box_continuous"]
    six = rows["partial discrete, partial continuous"].counters["box_tests"]
    assert six >= rows["complete both"].counters["box_tests"]


def test_recoil_vectors_take_the_memory_that_their_number_tells(pair):
    few, many = back_faces.with_recoil(pair, 3), back_faces.with_recoil(pair, 9)
    assert few.counts.max() == 3
    assert sum(few.sizes()) == len(pair.nodes) == sum(many.sizes())
    assert few.memory < many.memory
    filled = int((few.counts > 0).sum())
    assert few.memory == 24 * int(few.counts.sum()) + 12 * filled + 8 * len(few.counts)
