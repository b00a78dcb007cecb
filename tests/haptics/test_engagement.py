"""Engagement: every transition that nobody asks for, decided in the tick and numbered without a gap."""

import numpy as np
import pytest
from engagement_setups import LEAP, SETUPS, active, armed, engaging, idle, releasing
from haptics_rig import OWNER, REST, Rig

from haptics.states import CommandKind as Command
from haptics.states import EngagementState as State
from haptics.states import Reason


def test_the_whole_way_up_and_down_with_its_reasons():
    rig = idle(ramp_up_ms=10.0, ramp_down_ms=10.0)
    events = []

    def watched(act, *args, **options):
        act(*args, **options)
        if rig.output["event_from"] != rig.output["event_to"]:
            events.append((State(int(rig.output["event_to"])), rig.reason, int(rig.output["event_seq"])))

    watched(rig.command, Command.ARM, 1)
    for _ in range(14):
        watched(rig.send)
    for _ in range(7):
        watched(rig.silence)
    for _ in range(2):
        watched(rig.send)
    watched(rig.command, Command.DISARM)
    for _ in range(12):
        watched(rig.send)
    assert [event[:2] for event in events] == [
        (State.ARMED, Reason.COMMAND),
        (State.ENGAGING, Reason.SAMPLE_FRESH),
        (State.ACTIVE, Reason.RAMP_DONE),
        (State.HOLD, Reason.SAMPLE_LATE),
        (State.ACTIVE, Reason.SAMPLE_FRESH),
        (State.RELEASING, Reason.COMMAND),
        (State.IDLE, Reason.COMMAND),
    ]
    assert [event[2] for event in events] == list(range(1, 8))


def test_gain_ramps_linearly_and_exactly():
    rig = armed(ramp_up_ms=300.0, ramp_down_ms=70.0)
    for k in range(300):
        rig.send()
        assert rig.output["gain"] == pytest.approx((k + 1) / 300, abs=1e-12)
    assert rig.output["gain"] == 1.0
    rig.send()
    rig.command(Command.DISARM)
    for k in range(1, 70):
        assert rig.output["gain"] == pytest.approx(1 - k / 70, abs=1e-12)
        rig.send()
    assert rig.output["gain"] == 0.0 and rig.status == State.IDLE


def test_hold_pauses_the_ramp():
    rig = engaging()
    gain = rig.output["gain"]
    rig.silence(10)
    held = rig.output["gain"]
    assert rig.status == State.HOLD and gain < held < 0.1
    rig.silence(5)
    assert rig.output["gain"] == held
    rig.send()
    assert (rig.status, rig.reason) == (State.ENGAGING, Reason.SAMPLE_FRESH)


def behind_the_plane() -> Rig:
    """A device whose image is 50 mm below the plane; the tool could not follow."""
    rig = idle()
    rig.run(80, (0.0, 0.0, -0.05))
    assert rig.proxy[2] == pytest.approx(REST, abs=1e-5)
    return rig


def test_arming_far_from_the_tool_is_refused_without_leave():
    rig = behind_the_plane()
    assert rig.command(Command.ARM, 0) == Reason.TOO_FAR
    assert rig.status == State.IDLE


def test_arming_far_from_the_tool_reanchors_with_leave():
    rig = behind_the_plane()
    tool = rig.proxy.copy()
    assert rig.command(Command.ARM, 1) == Reason.NONE
    rig.send()
    assert rig.status == State.ENGAGING
    assert np.abs(rig.proxy - tool).max() <= 1e-9
    rig.run(20)
    assert np.abs(rig.output["device_position"] - tool).max() <= 1e-9
    assert np.linalg.norm(rig.wrench) <= 1e-6


def test_armed_device_may_come_near_by_itself():
    rig = idle()
    assert rig.command(Command.ARM, 0) == Reason.NONE
    rig.send((0.0, 0.0, -0.05))
    rig.run(60, (0.0, 0.0, -0.05))
    assert rig.status == State.ARMED
    rig.run(2, (0.0, 0.0, REST - 0.004))
    assert rig.status == State.ENGAGING


def test_watchdog_runs_from_arming_not_from_a_first_sample():
    rig = Rig()
    rig.command(Command.LEASE)
    rig.command(Command.ARM, 1)
    rig.silence(20)
    assert rig.status == State.ARMED
    rig.silence(2)
    assert (rig.status, rig.reason) == (State.IDLE, Reason.SAMPLE_STALE)


def test_a_sample_that_waited_in_a_queue_does_not_engage():
    rig = armed()
    for _ in range(10):
        rig.send(tick=False)
        rig.sent_ms = rig.now_ms - 8.0
        rig.tick()
        assert rig.status == State.ARMED
    rig.send()
    assert rig.status == State.ENGAGING


def test_deadman_gates_engagement():
    rig = idle(require_deadman=True, ramp_up_ms=10.0, ramp_down_ms=10.0)
    rig.command(Command.ARM, 1)
    rig.run(50, deadman=0)
    assert rig.status == State.ARMED
    rig.run(20)
    assert rig.status == State.ACTIVE
    rig.send(deadman=0)
    assert (rig.status, rig.reason) == (State.RELEASING, Reason.DEADMAN_RELEASED)
    rig.run(10, deadman=0)
    assert (rig.status, rig.reason) == (State.ARMED, Reason.DEADMAN_RELEASED)
    rig.run(15)
    assert rig.status == State.ACTIVE


def test_losing_the_client_hastens_a_slow_ramp():
    rig = releasing(ramp_down_ms=1000.0)
    rig.silence(20)
    assert rig.output["gain"] > 0.9
    rig.silence(15)
    assert (rig.status, rig.output["gain"]) == (State.IDLE, 0.0)


@pytest.mark.parametrize("setup", ["idle", "armed", "engaging", "active", "hold", "releasing", "clutched"])
def test_a_lost_supervisor_ends_everything(setup):
    rig = SETUPS[setup]()
    rig.input["supervisor_lost"] = 1
    rig.run(20)
    assert rig.status == State.IDLE and rig.output["stopped"] == 1 and np.all(rig.wrench == 0.0)
    if setup not in ("idle", "clutched"):
        assert rig.reason == Reason.SUPERVISOR_LOST


def test_stop_during_a_ramp_leads_to_fault_and_hastens_it():
    rig = releasing(ramp_down_ms=1000.0)
    rig.command(Command.STOP)
    rig.run(15)
    assert (rig.status, rig.reason) == (State.FAULT, Reason.STOP)
    rig.run(50)
    assert rig.status == State.FAULT
    assert rig.command(Command.RESET) == Reason.NONE
    assert (rig.status, rig.reason) == (State.IDLE, Reason.RESET)


def test_command_and_jump_in_one_tick_make_one_transition_and_a_fault():
    rig = active()
    rig.put(Command.CLUTCH, 1)
    rig.send(rig.sample["position"] + LEAP)
    # The one transition is the clutch's, but the ramp is the jump's: fast, and to FAULT.
    assert (rig.status, rig.reason, rig.row["clutched"]) == (State.RELEASING, Reason.CLUTCH, 0)
    rig.run(14)
    assert (rig.status, rig.reason, rig.row["clutched"]) == (State.FAULT, Reason.DEVICE_JUMP, 0)


def test_each_tick_makes_at_most_one_numbered_transition():
    """A storm of commands and silences: the event number goes up by exactly the transitions that were reported."""
    random = np.random.default_rng(5)
    rig = Rig(ramp_up_ms=3.0, ramp_down_ms=3.0, lease_ms=40.0)
    seq, status = 0, State.IDLE
    seen = set()
    for _ in range(4000):
        if random.random() < 0.3:
            rig.put(int(random.integers(1, 12)), float(random.integers(0, 2)), 1.0)
        if random.random() < 0.8:
            rig.send(np.array([0.3 * (random.random() < 0.02) * LEAP[0], 0.0, 0.05]), tick=False)
            rig.sample["session"] = rig.row["owner"] or OWNER
        rig.tick()
        out = rig.output
        assert out["event_from"] == status
        seq += out["event_from"] != out["event_to"]
        status = State(int(out["event_to"]))
        assert out["event_seq"] == seq and rig.status == status
        seen.add(status)
        if out["stopped"]:
            rig.touch["stopping"] = 0
    assert seen >= {State.IDLE, State.ARMED, State.ENGAGING, State.ACTIVE, State.RELEASING, State.FAULT}


@pytest.mark.parametrize("command", [(Command.DISARM,), (Command.CLUTCH, 1), (Command.RELEASE,), (Command.SHUTDOWN,)])
def test_a_command_in_the_tick_of_going_stale_wins_no_time(command):
    """Off by stale + fault ramp, though the command asked for a slow ramp in the very tick."""
    rig = active(ramp_down_ms=1000.0)
    rig.silence(20)
    rig.command(*command, fresh=False)
    assert rig.status == State.RELEASING
    rig.silence(14)
    assert (rig.status, rig.row["gain"]) == (State.IDLE, 0.0)
