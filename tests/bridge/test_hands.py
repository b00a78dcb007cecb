"""Hands as clients: a run engages, moves, reports and leaves cleanly, whatever the daemon does meanwhile."""

import math
import os
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from stand_in import StandIn

from bridge.client import HapticdError
from bridge.hands import MOST_PERIODS, run_hand
from bridge.motions import PathMotion
from haptics.hands import HandPose
from haptics.states import EngagementState, Reason

IDENTITY = np.array((0.0, 0.0, 0.0, 1.0))


def pressing(seconds: float = 0.3) -> PathMotion:
    """1 cm deep into the stand-in's wall at z = 0 and out again."""
    return PathMotion(
        lambda t: HandPose(np.array((0.0, 0.0, -0.01 * math.sin(math.pi * t / seconds))), IDENTITY), 0.0, seconds
    )


def once_active(act) -> Callable[[StandIn], None]:
    """Does it once, in the stand-in's thread, when forces have been on for 100 samples."""
    seen: list[int] = []

    def on_sample(stand_in: StandIn) -> None:
        if stand_in.state is EngagementState.ACTIVE:
            seen.append(len(stand_in.samples))
            if len(seen) == 100:
                act()

    return on_sample


@pytest.mark.parametrize("clocking", ["triggered", "free"])
@pytest.mark.parametrize("encoding", ["struct", "msgpack"])
def test_a_run_engages_moves_and_leaves(tmp_path, clocking, encoding):
    lines: list[str] = []
    with StandIn(tmp_path, clocking=clocking) as stand_in:
        report = run_hand(pressing(0.6), daemon=stand_in.endpoints, encoding=encoding, on_line=lines.append)
        assert [r["op"] for r in stand_in.requests] == ["hello", "lease", "arm", "disarm", "release"]
        assert all(sample["deadman"] == 1 for sample in stand_in.samples)
    assert report.ok and report.ended == "finished"
    assert 0.6 <= report.seconds < 0.6 + MOST_PERIODS * 1e-3, "the motion never skips more than so many periods"
    # 1 cm into a wall of 400 N/m
    assert abs(report.force_peak - 4.0) < 0.1
    assert report.states["ACTIVE"] > 100 and report.transitions[0] == "IDLE: NONE"
    assert 0 < report.answer_us["p50"] <= report.answer_us["p99"] <= report.answer_us["max"]
    assert report.samples >= report.renders > 100
    assert any("ACTIVE" in line and " N " in line for line in lines)
    assert report.to_dict()["ended"] == "finished"


def test_a_hand_that_was_held_up_goes_on_nearly_where_it_was(tmp_path):
    times: list[float] = []

    def pose(t: float) -> HandPose:
        times.append(t)
        return HandPose(np.zeros(3), IDENTITY)

    with StandIn(tmp_path) as stand_in:
        stand_in.on_sample = once_active(lambda: time.sleep(0.1))
        report = run_hand(PathMotion(pose, 0.0, 0.3), daemon=stand_in.endpoints)
    assert report.ok and report.late >= 90
    steps = np.diff(np.sort(times))
    assert 0.0039 < steps.max() <= MOST_PERIODS * 1e-3 + 1e-9


def test_an_unpaced_run_is_faster_than_the_clock(tmp_path):
    with StandIn(tmp_path) as stand_in:
        began = time.monotonic()
        report = run_hand(pressing(20.0), daemon=stand_in.endpoints, paced=False, duration_s=3.0)
        assert report.ended == "duration" and abs(report.seconds - 3.0) < 0.002
        assert report.samples > 3000
        assert time.monotonic() - began < 30.0


def test_a_refused_lease_leaves_nothing_behind(tmp_path):
    with StandIn(tmp_path) as stand_in:
        stand_in.answers["lease"] = lambda request: ("lease_taken", "another session holds the lease")
        with pytest.raises(HapticdError, match="another session"):
            run_hand(pressing(), daemon=stand_in.endpoints)
        assert [r["op"] for r in stand_in.requests] == ["hello", "lease"]


def test_a_refused_arm_gives_the_lease_back(tmp_path):
    with StandIn(tmp_path) as stand_in:
        stand_in.answers["arm"] = lambda request: ("too_far", "the device is too far from the tool")
        with pytest.raises(HapticdError, match="too far"):
            run_hand(pressing(), daemon=stand_in.endpoints)
        assert stand_in.requests[-1]["op"] == "release"


def test_forces_that_do_not_come_are_told(tmp_path):
    with StandIn(tmp_path) as stand_in:
        stand_in.answers["arm"] = lambda request: {}  # accepted, and back in IDLE at once
        with pytest.raises(HapticdError, match="forces were not given: IDLE"):
            run_hand(pressing(), daemon=stand_in.endpoints)


def test_forces_that_are_taken_away_end_the_run(tmp_path):
    with StandIn(tmp_path) as stand_in:

        def fault(stand_in: StandIn) -> None:
            if stand_in.state is EngagementState.ACTIVE and len(stand_in.samples) > 100:
                stand_in.state, stand_in.reason = EngagementState.FAULT, Reason.DEVICE_JUMP

        stand_in.on_sample = fault
        report = run_hand(pressing(), daemon=stand_in.endpoints)
        assert not report.ok
        assert report.ended == "the daemon took the forces away: FAULT: DEVICE_JUMP"
        assert stand_in.requests[-1]["op"] == "release"


@pytest.mark.parametrize("clocking", ["triggered", "free"])
def test_forces_lost_to_lateness_are_asked_for_again(tmp_path, clocking):
    """A hand that was held up takes hold again, also when the first attempt comes too far from the tool."""
    with StandIn(tmp_path, clocking=clocking) as stand_in:
        dropped = []

        def stall(stand_in: StandIn) -> None:
            if not dropped and stand_in.state is EngagementState.ACTIVE and len(stand_in.samples) > 100:
                dropped.append(len(stand_in.samples))
                stand_in.state, stand_in.reason = EngagementState.IDLE, Reason.SAMPLE_STALE
                stand_in.answers["arm"] = too_far

        def too_far(request: dict) -> tuple[str, str]:
            del stand_in.answers["arm"]
            return "too_far", "the device is too far from the tool"

        stand_in.on_sample = stall
        report = run_hand(pressing(1.0), daemon=stand_in.endpoints)
        assert dropped and report.ok and report.ended == "finished"
        assert report.holds == 2
        assert [r["op"] for r in stand_in.requests].count("arm") == 3
        assert "IDLE: SAMPLE_STALE" in report.transitions and report.states["ACTIVE"] > 200


@pytest.mark.parametrize("clocking", ["triggered", "free"])
def test_forces_lost_to_lateness_before_they_were_on_are_asked_for_again(tmp_path, clocking):
    with StandIn(tmp_path, clocking=clocking) as stand_in:

        def too_late(request: dict) -> dict:
            del stand_in.answers["arm"]
            stand_in.state, stand_in.reason = EngagementState.IDLE, Reason.SAMPLE_STALE
            stand_in.on_sample = held_up
            return {}

        def held_up(stand_in: StandIn) -> None:
            """The hand reads its answer before there is a tick that shows it."""
            stand_in.on_sample = lambda stand_in: None
            time.sleep(0.01)

        stand_in.answers["arm"] = too_late
        report = run_hand(pressing(), daemon=stand_in.endpoints)
        # Once for what was too late; a machine that stands still meanwhile may make it ask again, never silently.
        assert report.ok and report.ended == "finished" and 2 <= report.holds <= 4
        arms = ["arm"] * report.holds
        assert [r["op"] for r in stand_in.requests] == ["hello", "lease", *arms, "disarm", "release"]


def test_a_daemon_that_falls_silent_ends_the_run(tmp_path):
    with StandIn(tmp_path) as stand_in:

        def mute(stand_in: StandIn) -> None:
            stand_in.silent = len(stand_in.samples) > 100

        stand_in.on_sample = mute
        report = run_hand(pressing(), daemon=stand_in.endpoints)
        assert not report.ok and report.ended.startswith("the daemon fell silent: no render came within")


def test_a_stop_from_another_thread_ends_the_run_cleanly(tmp_path):
    stop = threading.Event()
    with StandIn(tmp_path) as stand_in:
        stand_in.on_sample = once_active(stop.set)
        report = run_hand(pressing(100.0), daemon=stand_in.endpoints, stop=stop)
        assert report.ok and report.ended == "interrupted"
        assert [r["op"] for r in stand_in.requests][-2:] == ["disarm", "release"]


def test_an_interrupt_ends_the_run_cleanly_and_gives_the_handlers_back(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    with StandIn(tmp_path, clocking="free") as stand_in:
        stand_in.on_sample = once_active(lambda: os.kill(os.getpid(), signal.SIGINT))
        report = run_hand(pressing(100.0), daemon=stand_in.endpoints)
        assert report.ended == "interrupted"
        assert [r["op"] for r in stand_in.requests][-2:] == ["disarm", "release"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_finished_motion_takes_no_options(tmp_path):
    with StandIn(tmp_path) as stand_in, pytest.raises(ValueError, match="takes no options"):
        run_hand(pressing(), daemon=stand_in.endpoints, radius=1.0)
