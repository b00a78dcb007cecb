"""Samples: only good ones of the owner move anything; jumps and silence end forces, and nothing else keeps a lease."""

import numpy as np
import pytest
from engagement_setups import ASIDE, LEAP, OTHER, SETUPS, active, idle, releasing
from haptics_rig import MS, OWNER, plane_model

from haptics.states import CommandKind as Command
from haptics.states import EngagementState as State
from haptics.states import Reason


def test_samples_of_another_session_change_nothing():
    rig = idle()
    pose, left = rig.row["device_position"].copy(), rig.row["lease_left"]
    rig.send((0.1, 0.1, 0.2), session=OTHER)
    assert np.array_equal(rig.row["device_position"], pose) and rig.row["lease_left"] == left - 1


@pytest.mark.parametrize("bad", ["nan", "inf", "far", "not unit", "twist"])
def test_a_bad_sample_that_slipped_through_is_not_used(bad):
    rig = active()
    pose = rig.row["device_position"].copy()
    if bad == "not unit":
        rig.send(orientation=(0.0, 0.0, 0.0, 1.1))
    elif bad == "twist":
        rig.send(twist=(np.nan, 0.0, 0.0, 0.0, 0.0, 0.0))
    else:
        rig.send({"nan": (np.nan, 0.0, 0.1), "inf": (0.0, np.inf, 0.1), "far": (0.0, 0.0, 1e300)}[bad])
    assert np.array_equal(rig.row["device_position"], pose) and np.all(np.isfinite(rig.wrench))
    for _ in range(6):
        rig.silence()
    assert (rig.status, rig.reason) == (State.HOLD, Reason.SAMPLE_INVALID)


@pytest.mark.parametrize("setup", ["engaging", "active"])
@pytest.mark.parametrize("cause", [Reason.SAMPLE_STALE, Reason.SAMPLE_REJECTED, Reason.SAMPLE_INVALID])
def test_silence_releases_with_its_cause(setup, cause):
    rig = SETUPS[setup]()
    ticks = 0
    while rig.status != State.RELEASING and ticks < 40:
        ticks += 1
        if cause == Reason.SAMPLE_INVALID:
            rig.send(valid=0)
        else:
            rig.input["rejected"] = cause == Reason.SAMPLE_REJECTED
            rig.silence()
    # The first tick without a good sample is 1 ms late, so the one that is later than 20 ms is the 21st.
    assert (ticks, rig.reason) == (21, cause)
    rig.silence(int(rig.chosen["ramp_fault_ticks"]) - 1)
    assert (rig.status, rig.reason) == (State.IDLE, cause)


@pytest.mark.parametrize("setup", ["engaging", "active", "hold"])
def test_a_jump_freezes_the_pose_and_faults(setup):
    rig = SETUPS[setup]()
    pose = rig.row["device_position"].copy()
    rig.send(pose + LEAP)
    assert (rig.status, rig.reason) == (State.RELEASING, Reason.DEVICE_JUMP)
    rig.run(14, pose + LEAP)
    assert (rig.status, rig.reason) == (State.FAULT, Reason.DEVICE_JUMP)
    assert np.array_equal(rig.row["device_position"], pose)
    rig.send()
    assert not np.array_equal(rig.row["device_position"], pose)


def test_a_jump_during_a_ramp_freezes_and_faults():
    rig = releasing()
    pose = rig.row["device_position"].copy()
    rig.run(16, pose + LEAP)
    assert (rig.status, rig.reason) == (State.FAULT, Reason.DEVICE_JUMP)


def test_a_turn_that_throws_the_tip_is_a_jump():
    rig = active(model=plane_model(tip_offset=(0.1, 0.0, 0.0)))
    rig.send(orientation=(0.0, 0.0, 1.0, 0.0))
    assert rig.reason == Reason.DEVICE_JUMP


def test_the_fastest_honest_motion_is_no_jump():
    rig = active()
    speed = float(rig.chosen["speed_max"])
    begin = np.array(rig.sample["position"])
    for k in range(50):
        rig.send(begin + 0.001 * speed * (k + 1) * ASIDE)
    assert rig.status == State.ACTIVE


def test_a_stranger_time_stamp_does_not_excuse_a_jump():
    rig = active()
    pose = rig.row["device_position"].copy()
    rig.send(pose + 5 * LEAP, tick=False)
    rig.sample["t_sample"] = 2**62
    rig.tick()
    assert rig.reason == Reason.DEVICE_JUMP


@pytest.mark.parametrize("setup", ["idle", "armed", "engaging", "active", "fault", "clutched"])
def test_lease_expires_without_samples_or_renewal(setup):
    rig = SETUPS[setup](lease_ms=60.0, stale_after_ms=50.0)
    rig.send()
    rig.silence(59)
    assert rig.row["owner"] == OWNER
    rig.silence(30)
    assert rig.row["owner"] == 0
    assert rig.status == (State.FAULT if setup == "fault" else State.IDLE)


def test_renewal_keeps_a_silent_lease():
    rig = idle(lease_ms=60.0)
    for _ in range(5):
        rig.silence(50)
        assert rig.command(Command.RENEW, fresh=False) == Reason.NONE
    assert rig.row["owner"] == OWNER


@pytest.mark.parametrize("silent_ticks", [3, 12, 19])
def test_an_unusable_sample_does_not_renew_the_watchdog(silent_ticks):
    """Silence, then a sample that means nothing, then silence: off by stale + ramp after the last good sample."""
    rig = active()
    rig.silence(silent_ticks)
    rig.send(valid=0)
    assert rig.row["age_ns"] == (silent_ticks + 1) * MS
    rig.silence(20 - silent_ticks)
    assert (rig.status, rig.reason) == (State.RELEASING, Reason.SAMPLE_INVALID)
    rig.silence(14)
    assert rig.status == State.IDLE and rig.row["gain"] == 0.0


def test_a_sample_that_is_not_the_owners_does_not_feed_the_watchdog():
    """The servo passes none on; if it ever did, the tick would count it as silence."""
    rig = active()
    for _ in range(15):
        rig.send(session=OTHER)
    assert rig.status == State.IDLE and rig.row["gain"] == 0.0


def test_a_huge_age_cannot_wrap_round():
    rig = active()
    rig.send(valid=0, tick=False)
    rig.sent_ms = rig.now_ms - (1 << 62) / MS
    rig.tick()
    assert rig.status == State.RELEASING
    rig.silence(40)
    assert rig.status == State.IDLE and rig.row["age_ns"] > rig.chosen["stale_after_ns"]
