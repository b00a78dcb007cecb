"""Impacts of moving bodies against formulas: see tools.truths.impacts."""

import pytest

from tools.scenes.bodies import POINT, Solid, World, alike, floor
from tools.truths import impacts


def test_a_row_of_bodies_passes_its_speed_on():
    truth = impacts.cradle()
    assert truth.ok, truth
    assert truth.more["momentum_drift_Ns"] < 1e-12
    assert truth.more["energy_drift_J"] < 1e-11  # of half a joule: what the solver is asked for


def test_a_row_in_touch_parts_as_newton_says():
    truth = impacts.cradle_in_touch()
    assert truth.ok, truth
    assert truth.more["energy_gain_J"] < 1e-12


def test_bodies_in_a_box_have_no_more_energy_than_at_the_start():
    truth = impacts.cradle_in_a_box(5.0)
    assert truth.ok, truth


def test_a_ball_bounces_as_long_as_it_should_and_then_lies_still():
    truth = impacts.zeno()
    assert truth.ok, truth
    assert truth.more["gap_at_rest_m"] == pytest.approx(impacts.GAP, rel=1e-5)


def test_balls_that_bounce_without_loss_keep_their_energy():
    truth = impacts.bouncing(5.0, 2)
    assert truth.ok and truth.error < 1e-7, truth


def test_balls_that_meet_are_told():
    ball = Solid(POINT, mass=1.0, rounding=impacts.RADIUS)
    for apart, height, meet in ((0.201, 0.01, 0), (0.15, 0.01, 1), (0.201, -0.001, 2), (0.15, -0.001, 3)):
        balls = alike(ball, [(0.0, 0.0, impacts.RADIUS + height), (apart, 0.0, impacts.RADIUS + height)])
        assert impacts.pairs_that_meet(World([floor(0.0), *balls])) == meet


def test_no_ball_of_a_heap_is_in_another_or_in_the_floor():
    truth = impacts.heap(0.5, 3)
    assert truth.ok, truth
    assert truth.more["energy_gain_J"] < 1e-3 * 27 * 10 * impacts.G * 0.1


def test_a_heap_without_loss_bursts_apart_with_all_of_its_energy():
    """Balls that hit several others within a step: of 3.7 kJ nothing comes, and next to nothing goes."""
    truth = impacts.heap(1.5, 3, restitution=1.0)
    assert truth.ok and truth.error < 0.1, truth
    assert truth.more["energy_gain_J"] < 1e-6
