"""Torsional and rolling friction of the whole tick against formulas: see tools.truths.moments."""

import pytest

from tools.truths import moments


@pytest.mark.parametrize("scene", [moments.spin_on_a_patch, moments.spin_on_a_point])
def test_what_spins_slows_down_evenly_and_rests(scene):
    truth = scene()
    assert truth.ok, truth
    assert truth.more["worst_rad_s"] < 1e-6
    assert truth.more["stays"]
    assert truth.more["energy_gain_J"] < 1e-12


@pytest.mark.parametrize("speed", [0.05, 0.1])
def test_what_rolls_slows_down_and_rests(speed):
    truth = moments.roll_out(speed=speed)
    assert truth.ok, truth
    assert truth.more["error_halfway"] < 1e-3
    assert truth.more["way_m"] == pytest.approx(truth.more["way_truth_m"], rel=2.0 * truth.bar)
    assert truth.more["stays"] and truth.more["sweeps_at_rest"] == 0
    assert truth.more["gain_while_it_rolls_J"] < 1e-12
    assert truth.more["energy_gain_J"] < 1e-8  # at rest the position pass lifts what has sunk


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_a_wheel_rests_on_a_slope_that_rolling_friction_holds(share):
    truth = moments.roll_on_slope(share)
    assert truth.ok, truth
    assert truth.more["stays"]


@pytest.mark.parametrize("share", [1.5, 3.0])
def test_on_a_steeper_one_it_rolls(share):
    truth = moments.roll_on_slope(share)
    assert truth.ok, truth
    assert truth.more["energy_gain_J"] < 1e-12


@pytest.mark.parametrize("mass", [0.0, 0.2])
@pytest.mark.parametrize("share", [0.5, 0.99, 1.5, 4.0])
def test_a_twisted_tool_feels_no_more_than_the_floor_holds(share, mass):
    truth = moments.twisted_tool(share, mass=mass)
    assert truth.ok, truth
    assert truth.more["tilt_rad"] < 1e-9
    if share < 1.0 and mass == 0.0:
        assert truth.more["stays"]
