"""Bursts: the decaying sine that was asked for, within the device's share, the stronger one first."""

import math

import numpy as np
import pytest
from haptics_rig import OWNER, REST, Rig, plane_model

from haptics.bursts import SHARE
from haptics.states import CommandKind, EngagementState, Reason
from haptics.surfaces import make_surface, put_surface
from haptics.touch import make_touch

UP = (0.0, 0.0, 1.0)


def engaged(card: str = "omega6", **options) -> Rig:
    rig = Rig(plane_model(), card, stiffness=500.0, damping=0.0, ramp_up_ms=5.0, start=(0.0, 0.0, 0.1), **options)
    rig.activate((0.0, 0.0, 0.1))
    return rig


def listen(rig: Rig, ticks: int) -> np.ndarray:
    heard = []
    for _ in range(ticks):
        rig.send()
        heard.append(rig.wrench[:3])
    return np.array(heard)


def test_a_burst_is_the_sine_that_was_asked_for():
    rig = engaged()
    assert rig.command(CommandKind.VIBRATE, 1.5, 100.0, 0.2, 0.05, 0.6, 0.0, 0.8) == Reason.NONE
    heard = np.array([rig.wrench[:3], *listen(rig, 250)])
    t = 1e-3 * np.arange(1, 201)
    expected = 1.5 * np.exp(-t / 0.05) * np.sin(2 * math.pi * 100.0 * t)
    assert heard[:200] @ np.array((0.6, 0.0, 0.8)) == pytest.approx(expected, abs=1e-9)
    assert np.abs(heard[:200] @ np.array((0.8, 0.0, -0.6))).max() < 1e-12
    assert not heard[200:].any()


def test_it_is_capped_and_stays_within_the_slew():
    rig = engaged("touch")
    assert rig.command(CommandKind.VIBRATE, 1e5, 1e5, 0.1, 0.0, *UP) == Reason.NONE
    heard = np.array([rig.wrench[:3], *listen(rig, 120)])
    assert np.abs(heard).max() <= SHARE * rig.chosen["force_max"]
    assert np.abs(np.diff(heard[:, 2])).max() <= rig.chosen["force_slew"] * (1 + 1e-12)
    # Faster than a quarter of the rate is a quarter: four ticks to a period.
    assert np.sign(heard[:8, 2]).tolist()[::2] == [1.0, -1.0, 1.0, -1.0]
    assert not heard[100:].any()


def test_the_stronger_one_sounds():
    rig = engaged()
    rig.command(CommandKind.VIBRATE, 2.0, 50.0, 0.5, 0.0, *UP)
    assert rig.command(CommandKind.VIBRATE, 1.0, 200.0, 0.5, 0.0, *UP) == Reason.NONE
    assert np.abs(listen(rig, 30)).max() == pytest.approx(2.0, rel=1e-6)
    rig.command(CommandKind.VIBRATE, 3.0, 50.0, 0.02, 0.0, *UP)
    assert np.abs(listen(rig, 25)).max() == pytest.approx(3.0, rel=1e-6)
    assert not listen(rig, 5).any()


@pytest.mark.parametrize(
    "values",
    [
        (0.0, 100.0, 0.1, 0.0, *UP),
        (1.0, -1.0, 0.1, 0.0, *UP),
        (1.0, 100.0, 6.0, 0.0, *UP),
        (1.0, 100.0, 0.1, -0.1, *UP),
        (1.0, 100.0, 0.1, 0.0, 1.0, 1.0, 0.0),
        (float("nan"), 100.0, 0.1, 0.0, *UP),
    ],
)
def test_what_is_no_burst_is_refused_and_changes_nothing(values):
    rig = engaged()
    assert rig.command(CommandKind.VIBRATE, *values) == Reason.BAD_VALUE
    assert not listen(rig, 5).any()


def test_without_forces_there_is_none_and_an_input_device_has_none():
    rig = engaged()
    rig.command(CommandKind.DISARM)
    rig.run(200)
    assert rig.command(CommandKind.VIBRATE, 1.0, 100.0, 0.1, 0.0, *UP) == Reason.WRONG_STATE
    mouse = Rig(plane_model(), "mouse", start=(0.0, 0.0, 0.1))
    mouse.activate((0.0, 0.0, 0.1))
    assert mouse.command(CommandKind.VIBRATE, 1.0, 100.0, 0.1, 0.0, *UP) == Reason.BAD_VALUE


def test_it_ends_with_the_forces():
    """Let go in the middle: the ramp takes it along, never above what was there before, and zero after it."""
    rig = engaged()
    rig.command(CommandKind.VIBRATE, 2.0, 30.0, 2.0, 0.0, *UP)
    listen(rig, 30)
    rig.command(CommandKind.DISARM)
    heard = np.linalg.norm(listen(rig, 150), axis=1)
    assert np.all(heard[1:] <= heard[:-1] + 1e-12)
    assert not heard[110:].any()


@pytest.mark.parametrize("how", ["stop", "release", "hand over", "clutch"])
def test_nobody_feels_a_burst_of_before_the_forces_went_off(how):
    """Five seconds of it, ended after some ticks; whoever has forces again in the air feels none."""
    rig = engaged()
    assert rig.command(CommandKind.VIBRATE, 3.0, 180.0, 5.0, 0.0, *UP) == Reason.NONE
    rig.run(10)
    owner = OWNER
    if how == "stop":
        rig.command(CommandKind.STOP)
        while rig.status != EngagementState.FAULT:
            rig.send()
        rig.command(CommandKind.RESET)
        rig.command(CommandKind.ARM, 1)
    elif how == "release":
        rig.command(CommandKind.RELEASE)
        while rig.status != EngagementState.IDLE:
            rig.send()
        owner = 99
        rig.command(CommandKind.LEASE, session=owner)
        rig.send(session=owner)
        rig.put(CommandKind.ARM, 1, session=owner)
    elif how == "hand over":
        owner = 99
        rig.command(CommandKind.HAND_OVER, 0, owner)
        while rig.status != EngagementState.ARMED:
            rig.send()
    else:
        rig.command(CommandKind.CLUTCH, 1)
        while rig.status != EngagementState.IDLE:
            rig.send()
        rig.command(CommandKind.CLUTCH, 0)
    heard = []
    for _ in range(40):
        rig.send(session=owner)
        heard.append(rig.wrench[:3])
    assert rig.status == EngagementState.ACTIVE and int(rig.row["owner"]) == owner
    assert not np.any(heard)


@pytest.mark.parametrize("speed", [0.02, 0.1])
def test_a_touch_down_knocks_as_hard_as_it_is_fast(speed):
    """N per m/s of the approach (the estimator's velocity is exact for an even one), once, and again after leaving."""
    model = plane_model()
    model.bodies[0]["surface_id"] = 1
    rig = Rig(model, "omega6", stiffness=500.0, damping=0.0, ramp_up_ms=5.0, start=(0.0, 0.0, 0.03))
    put_surface(rig.settings, make_surface(burst=10.0, burst_frequency=125.0, burst_decay_s=0.02))
    rig.touch = make_touch(rig.settings)
    rig.activate((0.0, 0.0, 0.03))
    knocks = []
    for _ in range(2):
        heard = []
        way = [0.03 - speed * 1e-3 * k for k in range(int((0.03 - REST + 0.002) / speed * 1e3))]
        for height in way:
            rig.send((0.0, 0.0, height))
            heard.append(rig.output["effects"][2])
        knocks.append(np.abs(heard).max())
        start = np.flatnonzero(heard)[0]
        # A tick later its first sine: 2 ticks of a period of 8 is the crest, the decay of 0.02 s aside.
        assert heard[start + 1] == pytest.approx(10.0 * speed * math.exp(-0.1), rel=1e-6)
        rig.run(60)
        rig.glide((0.0, 0.0, 0.03))
        rig.run(30)
    assert knocks[0] == pytest.approx(knocks[1], rel=1e-6)
