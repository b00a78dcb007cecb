"""The default box test never misses a contact, its times and gaps are bounds, and it is about as sharp as published."""

import numpy as np
import pytest
from box_pairs import (
    STEPS,
    bench_pair,
    distance,
    new_placement,
    random_box,
    random_relative,
    record,
    second_ball,
    touching_box,
)
from numba import njit

from rtcore import motion
from rtcore.collision.overlap import box_gap, boxes_meet, place_pair
from rtcore.tables import BOX_NODE, PLACEMENT, RELATIVE

SAMPLES = 200


@njit(cache=True, nogil=True)
def overlap_at_some_time(first, second, relative, placement, samples):
    for k in range(samples + 1):
        u = k / samples
        place_pair(relative, (0.0, 0.0, 0.0), 1.0, u, u, placement)
        if box_gap(first, second, placement) <= 0.0:
            return True
    return False


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", [motion.SCREW, motion.TAN_HALF, motion.ALGEBRAIC])
def test_boxes_that_touch_at_a_known_time_are_found_and_not_later(step, both, kind):
    """The pair is made to be exactly as far apart as asked at one time, along each kind of axis."""
    rng = np.random.default_rng(11)
    turn, path = STEPS[step]
    placement = new_placement()
    for _ in range(250):
        relative = random_relative(rng, kind, turn, path, both)
        first = random_box(rng, rng.normal(size=3))
        u0, u, u1 = np.sort(rng.uniform(size=3))
        separation = rng.choice([0.0, 1e-4, 0.1])
        second = touching_box(rng, first, relative, u, separation)
        place_pair(relative, *second_ball(second), u0, u1, placement)
        may, earliest, _ = boxes_meet(first, second, placement, separation + 1e-13)
        assert may
        assert u0 <= earliest <= u


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("both", [False, True])
def test_gap_of_separated_boxes_is_never_above_the_distance_in_the_interval(step, both):
    """Against bounded least squares at several times; and time proven free is free."""
    rng = np.random.default_rng(12)
    turn, path = STEPS[step]
    placement = new_placement()
    answers = [0, 0]
    for _ in range(60):
        relative = random_relative(rng, motion.SCREW, turn, path, both)
        first = random_box(rng, rng.normal(size=3))
        second = touching_box(rng, first, relative, rng.uniform(), rng.uniform(0, 2 * path))
        place_pair(relative, *second_ball(second), 0.0, 1.0, placement)
        separation = 0.2 * path
        may, earliest, gap = boxes_meet(first, second, placement, separation)
        answers[may] += 1
        for u in np.linspace(0.0, 1.0, 9):
            true = distance(first, second, relative, u)
            assert gap <= true + 1e-9
            if u < earliest:
                assert true > separation - 1e-9
        if not may:
            assert gap > separation
            assert earliest == 1.0
    assert min(answers) > 5


def test_gap_of_two_boxes_is_the_distance_where_an_axis_is_its_direction():
    """Exact where a face or two edges are nearest; a lower bound elsewhere; not positive for boxes that overlap."""
    rng = np.random.default_rng(13)
    placement = new_placement()
    exact = 0
    for _ in range(300):
        relative = random_relative(rng, motion.SCREW, 0.1, 0.1)
        first = random_box(rng, rng.normal(size=3))
        apart = rng.uniform(-0.3, 1.0)
        second = touching_box(rng, first, relative, 0.5, apart)
        place_pair(relative, *second_ball(second), 0.3, 0.7, placement)
        gap = box_gap(first, second, placement)
        true = distance(first, second, relative, 0.5)
        assert gap <= true + 1e-9
        if apart > 0:
            # The rounding pad, 32 ulp of some 20 m, along an axis that may be as short as a thousandth.
            assert gap == pytest.approx(apart, abs=2e-10)
            exact += 1
        assert (gap > 1e-9) == (true > 1e-9)
    assert exact > 100


def test_no_interval_at_all_is_the_discrete_test():
    """With u0 = u1 nothing is padded but rounding."""
    rng = np.random.default_rng(14)
    placement = new_placement()
    for _ in range(200):
        relative = random_relative(rng, motion.SCREW, 1.0, 1.0)
        first = random_box(rng, rng.normal(size=3))
        apart = rng.choice([-1e-9, 1e-9])
        second = touching_box(rng, first, relative, 0.5, apart + 0.01)
        place_pair(relative, *second_ball(second), 0.5, 0.5, placement)
        assert boxes_meet(first, second, placement, 0.01)[0] == (apart < 0)


def test_parallel_boxes_are_separated_by_their_faces():
    """All cross products of axes vanish; nothing is divided by them."""
    rng = np.random.default_rng(15)
    relative = record(RELATIVE)
    motion.still(relative["first"], (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    motion.still(relative["second"], (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    placement = new_placement()
    first = random_box(rng, np.zeros(3))
    second = first.copy()
    place_pair(relative, (0.0, 0.0, 0.0), 10.0, 0.0, 1.0, placement)
    for shift in (0.999, 1.001):
        second["centre"] = 2 * shift * first["half"][1] * first["axes"][1]
        gap = box_gap(first, second, placement)
        assert gap == pytest.approx(2 * (shift - 1) * first["half"][1], abs=1e-12)
        assert boxes_meet(first, second, placement, 0.0)[0] == (shift < 1)


@pytest.mark.parametrize(("step", "published"), [("fine", 0.0018), ("medium", 0.019), ("coarse", 0.19)])
def test_false_alarms_are_no_more_frequent_than_published(step, published):
    """Random boxes near each other, against sampling; Redon's test padded by one length had the published rates."""
    rng = np.random.default_rng(3)
    count = 4000
    first = np.zeros(count, BOX_NODE)
    second = np.zeros(count, BOX_NODE)
    relative = np.zeros(count, RELATIVE)
    for i in range(count):
        first[i], second[i], relative[i] = bench_pair(rng, *STEPS[step])
    false, missed = _rates(first, second, relative, np.zeros(1, PLACEMENT)[0])
    assert missed == 0
    assert false / count <= published
    print(f"{step}: {100 * false / count:.2f} % false")


@njit(cache=True, nogil=True)
def _rates(first, second, relative, placement):
    false = 0
    missed = 0
    for i in range(first.shape[0]):
        place_pair(relative[i], (0.0, 0.0, 0.0), second[i].radius, 0.0, 1.0, placement)
        may, _, _ = boxes_meet(first[i], second[i], placement, 0.0)
        true = overlap_at_some_time(first[i], second[i], relative[i], placement, SAMPLES)
        false += may and not true
        missed += true and not may
    return false, missed
