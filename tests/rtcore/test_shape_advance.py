"""Steps of conservative advancement are proven, and directed ones do not stall where plain ones do."""

import math

import numpy as np
import pytest
import shape_truth as truth

from rtcore.collision.convex_distance import DISTANCE_WORK
from rtcore.collision.shape_advance import (
    ADVANCED,
    CLEAR,
    CONTACT,
    MAX_STEPS,
    SLACK,
    advance_once,
    advance_pair,
)
from rtcore.collision.shape_pieces import load_piece
from rtcore.geometry import shapes
from rtcore.tables import BOX_NODE, TRIANGLE

BLOCK = shapes.box((0.1, 0.1, 0.05))
BALL = shapes.sphere(0.05)


def pair(first, second):
    """A DISTANCE_WORK with two whole shapes."""
    work = np.zeros(1, DISTANCE_WORK)[0]
    for made, piece in ((first, work["first"]), (second, work["second"])):
        table, values = shapes.collect([made])
        load_piece(table[0], values, np.zeros(1, BOX_NODE), np.zeros(1, TRIANGLE), 1, 1e-9, piece)
    return work


def moving(start, shift, angle=0.0, axis=(0, 0, 1)):
    half = 0.5 * angle
    end = (*(math.sin(half) * np.array(axis, dtype=float)), math.cos(half))
    return truth.relative_motion(None, (start, truth.REST, np.add(start, shift), end))


@pytest.mark.parametrize("seed", range(40))
def test_one_step_is_free_of_the_separation(seed):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    relative = moving((0.1, 0.0, 0.3), rng.normal(0, 0.3, 3), rng.uniform(0, 2), axis / np.linalg.norm(axis))
    work = pair(BLOCK, shapes.cylinder(0.05, 0.1))
    cloud = truth.points_on(shapes.cylinder(0.05, 0.1), rng, 3000)
    time, state, gap, _ = advance_once(work, relative[0], 0.01, 0.0, 1.0)
    assert state in (ADVANCED, CLEAR) and 0.0 < time <= 1.0 and (state == CLEAR) == (time == 1.0)
    assert gap <= truth.distance(BLOCK[0], truth.carried(relative, 0.0, cloud)).min()
    for u in np.linspace(0, time, 20):
        assert truth.distance(BLOCK[0], truth.carried(relative, u, cloud)).min() >= 0.01


def test_a_step_that_leads_away_or_along_goes_to_the_limit_at_once():
    for shift in ((0.5, 0.2, 0.0), (0.0, 0.0, 0.1), (0.3, 0.0, 1e-6)):
        relative = moving((0.0, 0.0, 0.1 + 1e-3 + 1e-12), shift)
        time, state, _, _ = advance_once(pair(BLOCK, BALL), relative[0], 1e-3, 0.0, 0.7)
        assert (time, state) == (0.7, CLEAR)


def test_a_straight_approach_needs_few_distances():
    relative = moving((0.02, 0.01, 1.1), (0.0, 0.0, -2.0))
    time, state, gap, steps = advance_pair(pair(BLOCK, BALL), relative[0], 1e-3, 0.0, 1.0, 1e-8, 1e-9)
    assert state == CONTACT and 0.4995 - 1e-8 <= time <= 0.4995
    assert 0 <= gap - 1e-3 <= 1e-8 and steps <= 12


def test_turning_about_the_normal_is_free_however_near():
    relative = moving((0.0, 0.0, 0.1 + 1e-3 + 1e-13), (0.0, 0.0, 0.0), 3.0)
    ground = shapes.plane((0, 0, 1), 0.05)
    time, state, _, _ = advance_pair(pair(ground, BLOCK), relative[0], 1e-3, 0.0, 1.0, 1e-8, 1e-9)
    assert (time, state) == (1.0, CLEAR)


def test_a_pair_that_starts_too_near_comes_nearer_by_the_slack_only():
    tolerance = 1e-6
    relative = moving((0.0, 0.0, 0.1 + 4e-4), (0.0, 0.0, -0.1))
    time, state, gap, _ = advance_pair(pair(BLOCK, BALL), relative[0], 1e-3, 0.0, 1.0, tolerance, 1e-12)
    assert state == CONTACT and 0.1 * time <= 1.01 * SLACK * tolerance and abs(gap - 4e-4) < 1e-9
    assert advance_pair(pair(BLOCK, BALL), relative[0], 1e-3, 0.5, 1.0, tolerance, 1e-12)[:2] == (0.5, CONTACT)
    relative = moving((0.0, 0.0, 0.1), (0.0, 0.0, 0.1))
    assert advance_pair(pair(BLOCK, BALL), relative[0], 1e-3, 0.0, 1.0, tolerance, 1e-12)[:2] == (0.0, CONTACT)


def test_after_the_most_steps_it_goes_on_from_what_was_proven():
    table, ball = shapes.box((1.5, 1.5, 0.05)), shapes.sphere(0.05)
    height = 0.1 + 1e-3 + 1e-6

    def turn(angle):
        return 0.0, 0.0, math.sin(0.5 * angle), math.cos(0.5 * angle)

    end = (math.cos(2.1), math.sin(2.1), height)  # both go round, the ball a little faster: it slides on the table
    first = ((0.0, 0.0, 0.0), turn(0.0), (0.0, 0.0, 0.0), turn(2.0))
    relative = truth.relative_motion(first, ((1.0, 0.0, height), turn(0.0), end, turn(2.1)))
    time, state, calls, before = 0.0, ADVANCED, 0, -1.0
    while state == ADVANCED:
        assert time > before
        before = time
        time, state, gap, steps = advance_pair(pair(table, ball), relative[0], 1e-3, time, 1.0, 1e-8, 1e-9)
        assert steps <= 48 * MAX_STEPS and abs(gap - 1e-3 - 1e-6) < 1e-12
        calls += 1
    assert (time, state) == (1.0, CLEAR) and calls > 1
