"""Bodies that turn over and tops on their tip against formulas: see tools.truths.spinning."""

import pytest

from tools.truths import spinning


def test_a_racket_turns_over():
    """Once, through the step; for three times and longer see test_rigid_body."""
    truth = spinning.dzhanibekov(1)
    assert truth.ok, truth
    assert truth.more["momentum_error"] < 1e-12
    assert truth.more["energy_error"] < 1e-9


@pytest.mark.parametrize("precession", [1.5, 3.0])
def test_a_heavy_top_precesses(precession):
    truth = spinning.heavy_top(1.5, precession=precession)
    assert truth.ok, truth
    least, most = truth.more["lean_rad"][1:]
    assert most - least < 0.02
    spun = 0.5 * spinning.ALONG * (spinning.MASS * spinning.G * spinning.LENGTH / (spinning.ALONG * precession)) ** 2
    assert truth.more["energy_gain_J"] < 1e-6 * spun
    assert truth.more["energy_drift_J"] < 2e-3 * spun


def test_a_fast_top_sleeps():
    truth = spinning.sleeping_top(1.1, 2.0)
    assert truth.ok, truth


def test_a_slow_top_wakes_up():
    truth = spinning.sleeping_top(0.9, 3.0)
    assert truth.ok, truth
