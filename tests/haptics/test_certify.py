"""Limits of stable stiffness: where the loop is linear they are those of its matrix; runs repeat to the bit."""

import dataclasses

import numpy as np
import pytest

from haptics.cards import load_card
from haptics.certify import (
    DECAY,
    DURATION_S,
    HANDS,
    KICKS,
    STEPS_PER_DECADE,
    WINDOW_S,
    Conditions,
    Setup,
    certify,
    dampings,
    is_settled,
    is_stable,
    let_go,
    mechanism,
    stiffness_limit,
    stiffness_step,
)
from haptics.certify_loop import EXCITATION, POSITION, Body
from haptics.hands import DeviceDynamics
from haptics.settings import make_settings
from haptics.stability import Loop, closed_loop

CARD = load_card("simulated")
SMOOTH = dataclasses.replace(DeviceDynamics.from_card(CARD), coulomb_friction=0.0, resolution=0.0)
"""Without what is not linear: dry friction and the encoder's steps."""
STEP = 10.0 ** (1.0 / STEPS_PER_DECADE)


def unlimited(stiffness: float, damping: float, **options) -> np.ndarray:
    card = dataclasses.replace(mechanism(CARD), stiffness_max=stiffness)
    return make_settings(card, stiffness=stiffness, damping=damping, ramp_up_ms=1.0, **options)


def limit_of_the_matrix(hand: str, delay: int, damping: float) -> float:
    """Largest K (N/m) at which the linear loop's slowest mode decays as fast as a stable run has to, by bisection."""
    ticks = 0.5e3 * (DURATION_S - WINDOW_S)
    slowest = DECAY ** (0.5 / ticks)
    low, high = 10.0, 1e5
    for _ in range(40):
        middle = np.sqrt(low * high)
        matrix = closed_loop(Loop.of(SMOOTH, HANDS[hand], delay_ticks=delay), middle, damping)
        low, high = (middle, high) if np.abs(np.linalg.eigvals(matrix)).max() <= slowest else (low, middle)
    return low


@pytest.mark.parametrize("damping", [0.0, 2.0, 10.0])
@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("hand", ["held", "light"])
def test_a_linear_loop_has_the_limit_of_its_matrix(hand, delay, damping):
    """Pressed against a wall, contact kept: to a step of the grid that is searched (6 %)."""
    setup = Setup(hand, "wall", 1000.0, delay, False)
    found = stiffness_limit(CARD, setup, damping, Body.of(HANDS[hand], SMOOTH))
    assert found == pytest.approx(limit_of_the_matrix(hand, delay, damping), rel=STEP - 1.0 + 1e-3)


@pytest.mark.parametrize("delay", [0, 1])
def test_a_clamped_device_has_it_without_a_hand(delay):
    """In a clamp without a damper (which may not exceed the spring, and is not linear there)."""
    setup = Setup("none", "clamp", 1000.0, delay, False)
    found = stiffness_limit(CARD, setup, 0.0, Body.of(HANDS["none"], SMOOTH))
    assert found == pytest.approx(limit_of_the_matrix("none", delay, 0.0), rel=STEP - 1.0 + 1e-3)


def test_dry_friction_only_adds():
    """It takes energy and gives none, so what is stable without it stays so (Diolaiti et al. 2006)."""
    setup = Setup("none", "clamp", 1000.0, 1, False)
    smooth = Body.of(HANDS["none"], SMOOTH)
    bare = stiffness_limit(CARD, setup, 0.0, smooth)
    assert stiffness_limit(CARD, setup, 0.0, smooth._replace(coulomb=0.1)) > 2.0 * bare


def test_a_run_repeats_to_the_bit():
    setup = Setup("light", "wall", 1000.0, 1, True)
    settings = unlimited(3000.0, 2.0)
    body = Body.of(HANDS["light"], DeviceDynamics.from_card(CARD))
    first, second = (let_go(setup, settings, body, KICKS[0]) for _ in range(2))
    assert first.rows.tobytes() == second.rows.tobytes()
    assert np.ptp(first.rows[:, POSITION]) > 1e-4


def test_rows_repeat_and_are_of_the_card():
    conditions = Conditions(delays=(1,))
    rows = certify(CARD, conditions, only=lambda setup: setup.hand == "none" and setup.passivity)
    assert [(row.hand, row.scene) for row in rows] == [("none", "wall"), ("none", "clamp")]
    for row in rows:
        setup = Setup(row.hand, row.scene, row.rate, row.delay_ticks, row.passivity)
        # Not by way of `certify`, which remembers what it found.
        assert row.stiffness_limit[1] == stiffness_limit(CARD, setup, row.damping[1])
        assert row.damping == dampings(CARD) and row.damping[0] == 0.0 and row.damping[-1] == CARD.damping_max
        assert all(limit in [stiffness_step(k) for k in range(161)] for limit in row.stiffness_limit)


def test_rows_need_a_device_that_is_driven():
    with pytest.raises(ValueError, match="the card 'mouse' is input only: it renders nothing to be certified"):
        certify(load_card("mouse"))


def test_growing_and_staying_oscillations_are_told_from_dying_ones():
    """Above the limit of the matrix a pressed hand buzzes at an amplitude that stays: that is not stable either."""
    body = Body.of(HANDS["held"], SMOOTH)
    setup = Setup("held", "wall", 1000.0, 1, False)
    settled = {}
    for stiffness in (3000.0, 8000.0):
        settings = unlimited(stiffness, 0.0, passivity=False)
        course = let_go(setup, settings, body, KICKS[0])
        settled[stiffness] = is_settled(course, setup, body)
        energy = course.rows[:, EXCITATION]
        left = energy[-400:].max() / energy[:400].max()
        assert left > 0.1 if stiffness == 8000.0 else left < 1e-3
    assert settled == {3000.0: True, 8000.0: False}


def test_the_controller_makes_a_stiff_wall_safe_to_let_go_at():
    """Without delay, at the reference device's own stiffness and far above its limit without guards."""
    for on in (False, True):
        setup = Setup("none", "clamp", 1000.0, 0, on)
        assert is_stable(CARD, setup, 5000.0, 1.0) == on
