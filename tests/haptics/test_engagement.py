"""Engagement: every transition and every refusal, decided in the tick and numbered without a gap."""

import numpy as np
import pytest
from haptics_rig import OWNER, REST, Rig, plane_model
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics.states import CommandKind as Command
from haptics.states import EngagementState as State
from haptics.states import Reason

OTHER = 99
ASIDE = np.array([1.0, 0.0, 0.0])
LEAP = 0.1 * ASIDE


def idle(**options) -> Rig:
    rig = Rig(**options)
    assert rig.command(Command.LEASE) == Reason.NONE
    rig.run(3)
    return rig


def armed(**options) -> Rig:
    rig = idle(**options)
    assert rig.command(Command.ARM, 1, fresh=False) == Reason.NONE
    assert rig.status == State.ARMED
    return rig


def engaging(**options) -> Rig:
    rig = armed(**options)
    rig.run(10)
    assert rig.status == State.ENGAGING
    return rig


def active(**options) -> Rig:
    rig = armed(ramp_up_ms=20.0, **options)
    rig.run(30)
    assert rig.status == State.ACTIVE
    return rig


def hold(**options) -> Rig:
    rig = active(**options)
    rig.silence(7)
    assert rig.status == State.HOLD
    return rig


def releasing(**options) -> Rig:
    rig = active(**options)
    assert rig.command(Command.DISARM) == Reason.NONE
    assert rig.status == State.RELEASING
    return rig


def fault(**options) -> Rig:
    rig = idle(**options)
    assert rig.command(Command.STOP) == Reason.NONE
    assert rig.status == State.FAULT
    return rig


def clutched(**options) -> Rig:
    rig = active(**options)
    assert rig.command(Command.CLUTCH, 1) == Reason.NONE
    rig.run(110)
    assert (rig.status, rig.row["clutched"]) == (State.IDLE, 2)
    return rig


SETUPS = {
    "idle": idle,
    "armed": armed,
    "engaging": engaging,
    "active": active,
    "hold": hold,
    "releasing": releasing,
    "fault": fault,
    "clutched": clutched,
}

N, W = Reason.NONE, Reason.WRONG_STATE
TABLE = [
    # command and values, then for each state: refusal (or NONE), state after that one tick (without a sample)
    ((Command.LEASE,), {s: (N, None) for s in SETUPS}),
    ((Command.RENEW,), {s: (N, None) for s in SETUPS}),
    (
        (Command.RELEASE,),
        {
            "idle": (N, State.IDLE),
            "armed": (N, State.IDLE),
            "engaging": (N, State.RELEASING),
            "active": (N, State.RELEASING),
            "hold": (N, State.RELEASING),
            "releasing": (N, State.RELEASING),
            "fault": (N, State.FAULT),
            "clutched": (N, State.IDLE),
        },
    ),
    (
        (Command.ARM, 1),
        {
            "idle": (N, State.ARMED),
            "armed": (N, State.ARMED),
            "engaging": (W, None),
            "active": (W, None),
            "hold": (W, None),
            "releasing": (W, None),
            "fault": (W, None),
            "clutched": (W, None),
        },
    ),
    (
        (Command.DISARM,),
        {
            "idle": (N, State.IDLE),
            "armed": (N, State.IDLE),
            "engaging": (N, State.RELEASING),
            "active": (N, State.RELEASING),
            "hold": (N, State.RELEASING),
            "releasing": (N, State.RELEASING),
            "fault": (W, None),
            "clutched": (N, State.IDLE),
        },
    ),
    (
        (Command.CLUTCH, 1),
        {
            "idle": (N, State.IDLE),
            "armed": (N, State.IDLE),
            "engaging": (N, State.RELEASING),
            "active": (N, State.RELEASING),
            "hold": (N, State.RELEASING),
            "releasing": (W, None),
            "fault": (W, None),
            "clutched": (N, State.IDLE),
        },
    ),
    (
        (Command.CLUTCH, 0),
        {s: (W, None) for s in SETUPS if s != "clutched"} | {"clutched": (N, State.ENGAGING)},
    ),
    ((Command.SET_GAINS, 300.0, 2.0), {s: (N, None) for s in SETUPS}),
    (
        (Command.SET_SCALE, 2.0),
        {s: (W, None) for s in SETUPS if s not in ("idle", "clutched")}
        | {"idle": (N, State.IDLE), "clutched": (N, State.IDLE)},
    ),
    (
        (Command.STOP,),
        {
            "idle": (N, State.FAULT),
            "armed": (N, State.FAULT),
            "engaging": (N, State.RELEASING),
            "active": (N, State.RELEASING),
            "hold": (N, State.RELEASING),
            "releasing": (N, State.RELEASING),
            "fault": (N, State.FAULT),
            "clutched": (N, State.FAULT),
        },
    ),
    ((Command.RESET,), {s: (W, None) for s in SETUPS if s != "fault"} | {"fault": (N, State.IDLE)}),
    (
        (Command.SHUTDOWN,),
        {
            "idle": (N, State.IDLE),
            "armed": (N, State.IDLE),
            "engaging": (N, State.RELEASING),
            "active": (N, State.RELEASING),
            "hold": (N, State.RELEASING),
            "releasing": (N, State.RELEASING),
            "fault": (N, State.FAULT),
            "clutched": (N, State.IDLE),
        },
    ),
]


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("command, expected", TABLE, ids=[row[0][0].name + str(row[0][1:]) for row in TABLE])
def test_every_command_in_every_state(setup, command, expected):
    rig = SETUPS[setup]()
    before, events = rig.status, int(rig.row["event_seq"])
    refusal, after = expected[setup]
    assert rig.command(*command, fresh=False) == refusal
    assert rig.status == (before if after is None else after)
    changed = rig.status != before
    assert rig.row["event_seq"] == events + changed == rig.output["event_seq"]
    assert (rig.output["event_from"], rig.output["event_to"]) == (before, rig.status)


OWNER_ONLY = [
    (Command.RENEW,),
    (Command.RELEASE,),
    (Command.ARM, 1),
    (Command.DISARM,),
    (Command.CLUTCH, 1),
    (Command.SET_GAINS, 100.0, 1.0),
    (Command.SET_SCALE, 2.0),
]


@pytest.mark.parametrize("session", [OTHER, 0])
@pytest.mark.parametrize("command", OWNER_ONLY, ids=[row[0].name for row in OWNER_ONLY])
@pytest.mark.parametrize("leased", [False, True])
def test_only_the_owner_may(command, session, leased):
    rig = idle() if leased else Rig()
    before = rig.touch.copy()
    assert rig.command(*command, session=session, fresh=False) == Reason.NOT_OWNER
    for name in ("state", "owner", "stiffness", "damping", "scale", "clutched", "event_seq"):
        assert np.array_equal(rig.touch[name], before[name])


@pytest.mark.parametrize("command", [Command.STOP, Command.SHUTDOWN])
@pytest.mark.parametrize("session", [OTHER, 0])
def test_anyone_may_stop(command, session):
    rig = active()
    assert rig.command(command, session=session) == Reason.NONE
    assert rig.status == State.RELEASING
    rig.run(110)
    assert rig.status == (State.FAULT if command == Command.STOP else State.IDLE)
    assert rig.reason == (Reason.STOP if command == Command.STOP else Reason.SHUTDOWN)
    assert rig.output["stopped"] == (command == Command.SHUTDOWN)


def test_lease_is_exclusive_and_starts_afresh():
    rig = idle()
    assert rig.command(Command.LEASE, session=OTHER) == Reason.LEASE_TAKEN
    assert rig.command(Command.LEASE, session=0) == Reason.BAD_VALUE
    rig.command(Command.SET_GAINS, 100.0, 0.0)
    rig.command(Command.SET_SCALE, 3.0)
    assert rig.command(Command.RELEASE) == Reason.NONE and rig.row["owner"] == 0
    assert rig.command(Command.LEASE, session=OTHER, fresh=False) == Reason.NONE
    assert rig.row["owner"] == OTHER == rig.output["owner"]
    assert (rig.row["stiffness"], rig.row["scale"]) == (400.0, 1.0)
    assert rig.row["has_pose"] == 0


def test_release_keeps_the_owner_until_the_forces_are_off():
    rig = active()
    rig.command(Command.RELEASE)
    for _ in range(99):
        assert rig.row["owner"] == OWNER and rig.status == State.RELEASING
        assert rig.command(Command.LEASE, session=OTHER) == Reason.LEASE_TAKEN
    assert (rig.row["owner"], rig.status, rig.reason) == (0, State.IDLE, Reason.LEASE_RELEASED)


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


def test_samples_of_another_session_change_nothing():
    rig = idle()
    pose, left = rig.row["device_position"].copy(), rig.row["lease_left"]
    rig.send((0.1, 0.1, 0.2), session=OTHER)
    assert np.array_equal(rig.row["device_position"], pose) and rig.row["lease_left"] == left - 1


# -------------------------------------------------------------------------------------------------- engaging


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


# --------------------------------------------------------------------------------------------------- silence


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


def test_losing_the_client_hastens_a_slow_ramp():
    rig = releasing(ramp_down_ms=1000.0)
    rig.silence(20)
    assert rig.output["gain"] > 0.9
    rig.silence(15)
    assert (rig.status, rig.output["gain"]) == (State.IDLE, 0.0)


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
    assert rig.status == State.RELEASING and rig.row["clutched"] == 2
    rig.run(20)
    assert (rig.status, rig.reason, rig.row["clutched"]) == (State.FAULT, Reason.DEVICE_JUMP, 0)


def test_nothing_new_begins_after_shutdown():
    rig = idle()
    rig.command(Command.SHUTDOWN, session=0)
    assert rig.command(Command.ARM, 1) == Reason.WRONG_STATE
    assert rig.command(Command.CLUTCH, 1) == Reason.WRONG_STATE
    rig.command(Command.RELEASE)
    assert rig.command(Command.LEASE, session=OTHER, fresh=False) == Reason.WRONG_STATE


# ---------------------------------------------------------------------------------------------------- values

HOSTILE = [np.nan, np.inf, -np.inf, -1.0, 1e300, -1e300]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("command", [Command.ARM, Command.CLUTCH, Command.SET_GAINS, Command.SET_SCALE])
def test_hostile_values_are_refused_and_change_nothing(command, value):
    rig = idle()
    before = rig.touch.copy()
    assert rig.command(command, value, 1.0, fresh=False) == Reason.BAD_VALUE
    for name in ("state", "stiffness", "damping", "scale", "clutched", "reanchor", "anchor_position"):
        assert np.array_equal(rig.touch[name], before[name])


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_damping_is_refused(value):
    rig = idle()
    assert rig.command(Command.SET_GAINS, 100.0, value) == Reason.BAD_VALUE
    assert (rig.row["stiffness"], rig.row["damping"]) == (400.0, 1.0)


@pytest.mark.parametrize("kind", [-1, 13, 2**31 - 1, -(2**31)])
def test_an_unknown_command_is_refused(kind):
    assert idle().command(kind) == Reason.BAD_VALUE


def test_gains_are_capped_by_the_card():
    rig = active()
    assert rig.command(Command.SET_GAINS, 1e5, 500.0) == Reason.NONE
    assert (rig.row["stiffness"], rig.row["damping"]) == (2000.0, 10.0)


@given(
    kind=st.integers(-2, 14),
    session=st.sampled_from([OWNER, OTHER, 0]),
    values=st.lists(st.floats(width=64), min_size=8, max_size=8),
    setup=st.sampled_from(sorted(SETUPS)),
)
@settings(max_examples=150, deadline=None)
def test_no_command_breaks_the_state(kind, session, values, setup):
    """Whatever is asked for, afterwards gains, scale, anchor and wrench are finite and within their limits."""
    rig = SETUPS[setup](model=plane_model(held_at=(0.3, 0.3, 0.1)))
    rig.command(kind, *values, session=session)
    rig.run(3)
    row, chosen = rig.row, rig.chosen
    assert 0.0 < row["stiffness"] <= chosen["stiffness_max"] and 0.0 <= row["damping"] <= chosen["damping_max"]
    assert 1e-3 <= row["scale"] <= 1e3 and 0.0 <= row["gain"] <= 1.0
    assert np.all(np.isfinite(row["anchor_position"])) and np.all(np.isfinite(rig.state.poses["position"]))
    assert np.allclose(np.linalg.norm(rig.state.poses["orientation"], axis=1), 1.0)
    assert np.linalg.norm(rig.wrench[:3]) <= chosen["force_max"] * (1 + 1e-12)
    assert rig.status in set(State)


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


# ---------------------------------------------------------------------------------------------------- bodies


def pose_values(body_id: float, position, orientation=(0.0, 0.0, 0.0, 1.0)) -> tuple[float, ...]:
    return (body_id, *position, *orientation)


def test_a_held_body_is_posed_in_idle():
    rig = Rig(plane_model(held_at=(0.3, 0.3, 0.1)))
    turned = (0.0, 0.0, np.sin(0.2), np.cos(0.2))
    assert rig.command(Command.POSE_BODY, *pose_values(1, (0.2, 0.1, 0.05), turned), session=OTHER) == Reason.NONE
    assert np.array_equal(rig.state.poses["position"][1], (0.2, 0.1, 0.05))
    assert np.allclose(rig.state.poses["orientation"][1], turned, atol=1e-15)


def test_only_the_owner_poses_once_there_is_one_and_only_in_idle():
    rig = idle(model=plane_model(held_at=(0.3, 0.3, 0.1)))
    values = pose_values(1, (0.2, 0.1, 0.05))
    assert rig.command(Command.POSE_BODY, *values, session=OTHER) == Reason.NOT_OWNER
    assert rig.command(Command.POSE_BODY, *values) == Reason.NONE
    rig.command(Command.ARM, 1)
    for _ in range(3):
        assert rig.command(Command.POSE_BODY, *values) == Reason.WRONG_STATE


@pytest.mark.parametrize(
    "values",
    [
        pose_values(0, (0.2, 0.1, 0.05)),  # static
        pose_values(2, (0.2, 0.1, 0.05)),  # no such body
        pose_values(-1, (0.2, 0.1, 0.05)),
        pose_values(0.5, (0.2, 0.1, 0.05)),
        pose_values(np.nan, (0.2, 0.1, 0.05)),
        pose_values(1e300, (0.2, 0.1, 0.05)),
        pose_values(1, (np.nan, 0.1, 0.05)),
        pose_values(1, (0.2, np.inf, 0.05)),
        pose_values(1, (0.2, 0.1, 1e30)),
        pose_values(1, (0.2, 0.1, 0.05), (0.0, 0.0, 0.0, 0.0)),
        pose_values(1, (0.2, 0.1, 0.05), (0.0, 0.0, 0.0, 1.01)),
        pose_values(1, (0.2, 0.1, 0.05), (np.nan, 0.0, 0.0, 1.0)),
        pose_values(1, (0.0, 0.0, 0.1)),  # through the tool, which is at (0, 0, 0.1)
        pose_values(1, (0.0, 0.0, 0.1 - REST + 1e-6)),  # nearer than radius + eps_safety
    ],
)
def test_a_bad_body_pose_is_refused_and_nothing_moves(values):
    rig = Rig(plane_model(held_at=(0.3, 0.3, 0.1)))
    poses = rig.state.poses.copy()
    assert rig.command(Command.POSE_BODY, *values) == Reason.BAD_VALUE
    assert np.array_equal(rig.state.poses, poses)


def test_a_body_may_come_exactly_as_near_as_the_safety_distance():
    rig = Rig(plane_model(held_at=(0.3, 0.3, 0.1)))
    assert rig.command(Command.POSE_BODY, *pose_values(1, (0.0, 0.0, 0.1 - REST - 1e-9))) == Reason.NONE


def test_a_body_may_move_while_the_tool_rests_against_another():
    rig = idle(model=plane_model(held_at=(0.3, 0.3, 0.1)))
    rig.run(120, (0.0, 0.0, -0.01))
    assert rig.proxy[2] == pytest.approx(REST, abs=1e-6)
    assert rig.command(Command.POSE_BODY, *pose_values(1, (0.3, 0.2, 0.1))) == Reason.NONE


def test_reset_is_the_owners_while_there_is_one_and_anybodys_after():
    rig = active()
    rig.command(Command.STOP)
    rig.run(20)
    assert rig.status == State.FAULT
    assert rig.command(Command.RESET, session=OTHER) == Reason.NOT_OWNER
    assert rig.command(Command.RELEASE) == Reason.NONE
    assert rig.status == State.FAULT
    assert rig.command(Command.RESET, session=OTHER) == Reason.NONE
    assert (rig.status, rig.reason) == (State.IDLE, Reason.RESET)
