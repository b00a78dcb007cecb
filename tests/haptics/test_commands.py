"""Commands: every one in every state, who may ask for it, and every refusal, which changes nothing."""

import numpy as np
import pytest
from engagement_setups import OTHER, SETUPS, active, clutched, idle
from haptics_rig import OWNER, REST, Rig, plane_model
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics.states import CommandKind as Command
from haptics.states import EngagementState as State
from haptics.states import Reason

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
        (Command.HAND_OVER, 0, OTHER),
        {
            "idle": (N, State.IDLE),
            "armed": (N, State.IDLE),
            "engaging": (N, State.RELEASING),
            "active": (N, State.RELEASING),
            "hold": (N, State.RELEASING),
            "releasing": (W, None),
            "fault": (N, State.FAULT),
            "clutched": (N, State.IDLE),
        },
    ),
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
    (Command.HAND_OVER, 0, OTHER),
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


def test_nothing_new_begins_after_shutdown():
    rig = idle()
    rig.command(Command.SHUTDOWN, session=0)
    assert rig.command(Command.ARM, 1) == Reason.WRONG_STATE
    assert rig.command(Command.CLUTCH, 1) == Reason.WRONG_STATE
    rig.command(Command.RELEASE)
    assert rig.command(Command.LEASE, session=OTHER, fresh=False) == Reason.WRONG_STATE


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


@pytest.mark.parametrize("kind", [-1, 14, 2**31 - 1, -(2**31)])
def test_an_unknown_command_is_refused(kind):
    assert idle().command(kind) == Reason.BAD_VALUE


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-310, 1e-9])
def test_a_stiffness_next_to_none_is_refused(value):
    rig = idle()
    assert rig.command(Command.SET_GAINS, value, 1.0) == Reason.BAD_VALUE
    assert rig.command(Command.SET_GAINS, 1e-6, 1.0) == Reason.NONE
    assert rig.row["stiffness"] == 1e-6


def test_gains_are_capped_by_the_card():
    rig = active()
    assert rig.command(Command.SET_GAINS, 1e5, 500.0) == Reason.NONE
    rig.run(20)
    assert (rig.row["stiffness"], rig.row["damping"]) == (2000.0, 10.0)


@given(
    kind=st.integers(-2, 15),
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


def test_a_clutch_before_the_first_sample_leaves_the_map_alone():
    """There is no device pose to anchor: what the last owner's device did is nothing to the next one."""
    rig = idle()
    rig.run(5, (0.0, 0.0, -0.05))
    rig.command(Command.RELEASE)
    rig.input["has_sample"] = 0
    assert rig.command(Command.LEASE, session=OTHER) == Reason.NONE
    assert rig.command(Command.CLUTCH, 1, session=OTHER) == Reason.NONE
    assert rig.command(Command.CLUTCH, 0, session=OTHER) == Reason.NONE
    assert np.all(rig.row["anchor_position"] == 0.0)


def test_a_clutch_let_go_while_the_supervisor_is_lost_brings_no_force_back():
    rig = clutched()
    rig.input["supervisor_lost"] = 1
    assert rig.command(Command.CLUTCH, 0) == Reason.WRONG_STATE
    assert rig.status == State.IDLE and rig.output["stopped"] == 1


@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0, 10.0])
def test_near_the_tool_means_near_in_the_scene_and_at_the_device(scale):
    """engage_distance is 5 mm: behind a wall by a little less it may be armed, by a little more it is too far."""
    for distance, refusal in ((0.0049, Reason.NONE), (0.0051, Reason.TOO_FAR)):
        rig = Rig(scale=scale, start=(0.0, 0.0, REST))
        rig.command(Command.LEASE)
        rig.run(3, (0.0, 0.0, (REST - distance * min(1.0, scale)) / scale))
        assert rig.command(Command.ARM, 0) == refusal
