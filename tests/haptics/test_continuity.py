"""Continuity: no transition, command or silence steps the wrench by more than the slew limit, however hard one presses.

Sphere tip and mesh tool, both with torque, at the largest stiffness of the card and against a wall that saturates the
force. Every transition that :data:`haptics.states.TRANSITIONS` names is seen, and no other.
"""

import copy
from functools import lru_cache

import numpy as np
import pytest
from haptics_rig import (
    BLOCK,
    EPS_ALERT,
    EPS_BREAK,
    EPS_SAFETY,
    OWNER,
    REACH,
    REST,
    TIP_RADIUS,
    Rig,
    block_model,
    plane_model,
    square,
)
from scipy.spatial.transform import Rotation

from haptics.fixtures import PLANE, make_fixture, set_fixtures
from haptics.states import TRANSITIONS, CommandKind, EngagementState, Reason
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder

OTHER = 1 << 62 | 12345
"""A session that no float64 holds."""
C, S = CommandKind, EngagementState
DEPTH = 0.012
"""m: more than twice what saturates the force of the card at its largest stiffness."""
TURN = 1.2
"""rad: what saturates the torque of the mesh."""
UP, DOWN, FAULT = 30, 20, 12
"""Ticks of the ramps."""


class Watched(Rig):
    """A rig that fills in what the servo does, and holds the bounds after every tick."""

    def __init__(self, tool: str, **options) -> None:
        fields = {
            "stiffness": 2000.0,
            "damping": 5.0,
            "ramp_up_ms": UP,
            "ramp_down_ms": DOWN,
            "ramp_fault_ms": FAULT,
            "lease_ms": 120.0,
        }
        if tool == "mesh":
            self.floor = BLOCK + 2.5e-4
            model = block_model()
            fields |= {"tool_reach": REACH, "rotational_stiffness": 1.0, "start": (0.0, 0.0, self.floor + 0.003)}
        else:
            self.floor = REST + 0.05
            model = plane_model(friction=0.3, tip_offset=(0.04, 0.0, -0.05))
            fields |= {"start": (0.04, 0.0, REST + 0.003)}
        super().__init__(model, "simulated", **(fields | options))
        self.top = np.array([0.0, 0.0, self.floor + 0.003])
        self.sample["position"] = self.top
        self.owner = 0
        self.turn = 0.0
        """rad, of the device about x"""
        self.last = np.zeros(6)
        self.before = S.IDLE
        self.seen: set[tuple[EngagementState, EngagementState]] = set()
        self.pressed = np.zeros(2)
        self.steps = np.zeros(2)

    def tick(self) -> None:
        if self.input["fresh"] and (self.owner == 0 or int(self.sample["session"]) != self.owner):
            self.input["fresh"] = 0
        super().tick()
        out, chosen = self.output, self.chosen
        if int(out["owner"]) != self.owner:
            self.owner = int(out["owner"])
            self.input["has_sample"] = 0
        wrench = self.wrench
        assert np.isfinite(wrench).all()
        steps = np.array([np.linalg.norm(d) for d in np.split(wrench - self.last, 2)])
        sizes = np.array([np.linalg.norm(d) for d in np.split(wrench, 2)])
        assert steps[0] <= chosen["force_slew"] * (1 + 1e-12) and steps[1] <= chosen["torque_slew"] * (1 + 1e-12)
        assert sizes[0] <= chosen["force_max"] * (1 + 1e-12) and sizes[1] <= chosen["torque_max"] * (1 + 1e-12)
        if self.status in (S.IDLE, S.ARMED, S.FAULT):
            for name in ("wrench", "stiffness", "damping", "feed_forward"):
                assert not out[name].any()
        assert S(int(out["event_from"])) == self.before
        if out["event_from"] != out["event_to"]:
            self.seen.add((self.before, self.status))
            assert self.reason != Reason.NONE
        self.before, self.last = self.status, wrench
        self.pressed = np.maximum(self.pressed, sizes)
        self.steps = np.maximum(self.steps, steps)

    def send(self, position=None, orientation=None, **options):
        options.setdefault("session", self.owner or OWNER)
        super().send(position, orientation, **options)

    def twin(self) -> "Watched":
        """Another one in the same state; settings, model and card are shared."""
        other = copy.copy(self)
        other.state, other.touch, other.record = copy.deepcopy((self.state, self.touch, self.record))
        other.seen = set(self.seen)
        other.last, other.pressed, other.steps = self.last.copy(), self.pressed.copy(), self.steps.copy()
        return other

    def bear_down(self, ticks: int = 60, share: float = 1.0) -> None:
        """Press and turn into the wall, as far as that goes, from wherever the device is."""
        begin, first = np.array(self.sample["position"]), self.turn
        last = TURN if self.chosen["tool_reach"] > 0.0 else first
        for k in range(ticks):
            part = share * (k + 1) / ticks
            self.turn = first + part * (last - first)
            goal = np.array([0.0, 0.0, self.floor - DEPTH])
            self.send(begin + part * (goal - begin), Rotation.from_rotvec((self.turn, 0.0, 0.0)).as_quat())


def up_to(state: str, tool: str, **options) -> Watched:
    """A rig in this state, pressing wherever forces are on."""
    return brought(state, tool, **options).twin()


@lru_cache
def brought(state: str, tool: str, **options) -> Watched:
    """The rig that others in this state are copies of."""
    rig = Watched(tool, **options)
    assert rig.command(C.LEASE) == Reason.NONE
    rig.run(3)
    if state == "idle":
        rig.bear_down()
        return rig
    if state == "fault":
        assert rig.command(C.STOP) == Reason.NONE
        return rig
    assert rig.command(C.ARM, 1, fresh=False) == Reason.NONE
    if state == "armed":
        return rig
    rig.bear_down(UP // 2)
    if state == "engaging":
        return rig
    rig.bear_down(2 * UP)
    rig.run(20)
    assert rig.status == S.ACTIVE
    if state == "hold":
        rig.silence(8)
    elif state == "releasing":
        rig.command(C.DISARM)
        rig.run(DOWN // 3)
    elif state == "clutching":
        rig.command(C.CLUTCH, 1)
        rig.run(DOWN // 3)
    elif state == "clutched":
        rig.command(C.CLUTCH, 1)
        rig.run(DOWN + 2)
    elif state == "tapped":
        rig.command(C.CLUTCH, 1)
        rig.run(DOWN // 4)
        rig.command(C.CLUTCH, 0)
    elif state == "handing over":
        rig.command(C.HAND_OVER, OTHER >> 32, OTHER & 0xFFFFFFFF)
        rig.run(DOWN // 3)
    return rig


STATES = (
    *("idle", "armed", "engaging", "active", "hold", "releasing", "fault"),
    *("clutching", "clutched", "tapped", "handing over"),
)
COMMANDS: list[tuple] = [
    *[(kind,) for kind in (C.LEASE, C.RENEW, C.RELEASE, C.DISARM, C.STOP, C.RESET, C.SHUTDOWN)],
    *[(C.ARM, 0), (C.ARM, 1), (C.CLUTCH, 0), (C.CLUTCH, 1), (C.SET_SCALE, 0.5), (C.SET_SCALE, 4.0)],
    *[(C.SET_GAINS, 10.0, 0.0), (C.SET_GAINS, 1e5, 1e3), (C.HAND_OVER, OTHER >> 32, OTHER & 0xFFFFFFFF)],
    (C.VIBRATE, 1e3, 180.0, 0.3, 0.0, 0.6, 0.0, 0.8),
]
assert {command[0] for command in COMMANDS} == set(C) - {C.NONE, C.POSE_BODY}

seen: dict[str, set] = {"sphere": set(), "mesh": set()}
"""Transitions met so far, by tool; looked at by the last test of this file."""


@pytest.mark.parametrize("tool", ["sphere", "mesh"])
@pytest.mark.parametrize("state", STATES)
def test_every_command_in_every_state_while_pressing(tool, state):
    for command in COMMANDS:
        for session in (OWNER, OTHER):
            if session == OTHER and command[0] not in (C.STOP, C.SHUTDOWN):
                continue
            rig = up_to(state, tool)
            rig.command(*command, session=session)
            rig.run(UP)
            rig.bear_down(20)
            if command[0] == C.RELEASE:
                rig.command(C.LEASE, session=OTHER)
                rig.run(5)
            seen[tool] |= rig.seen


@pytest.mark.parametrize("tool", ["sphere", "mesh"])
@pytest.mark.parametrize("state", STATES)
def test_everything_unasked_in_every_state_while_pressing(tool, state):
    """Silence that ends at once, before and after the stale horizon; garbage; a jump; a deadman let go; a lost
    supervisor; a wrench that is not finite; a lease that runs out."""
    for ticks in (7, 18, 25, 60):
        rig = up_to(state, tool)
        rig.silence(ticks)
        rig.run(UP)
        seen[tool] |= rig.seen
    rig = up_to(state, tool)
    rig.run(30, valid=0)
    rig.run(30)
    seen[tool] |= rig.seen
    rig = up_to(state, tool)
    rig.send(np.array(rig.sample["position"]) + 0.2)
    rig.run(40)
    seen[tool] |= rig.seen
    rig = up_to(state, tool, require_deadman=True)
    rig.run(DOWN + 10, deadman=0)
    rig.run(UP)
    seen[tool] |= rig.seen
    rig = up_to(state, tool)
    rig.input["supervisor_lost"] = 1
    rig.run(40)
    assert rig.status in (S.IDLE, S.FAULT) and rig.output["stopped"] == 1
    rig = up_to(state, tool)
    gains = rig.row["stiffness"]
    rig.row["stiffness"] = np.nan
    rig.send()
    rig.row["stiffness"] = gains
    rig.run(40)
    seen[tool] |= rig.seen
    rig = up_to(state, tool)
    rig.silence(130)
    rig.command(C.LEASE, session=OTHER)
    rig.run(10)
    assert rig.output["owner"] == OTHER
    seen[tool] |= rig.seen


@pytest.mark.parametrize("tool", ["sphere", "mesh"])
def test_a_clutch_at_any_time_of_any_ramp(tool):
    """Pressed in every third tick of the way up, let go in every third of the way down, and the scale changed between;
    forces come back from zero, and the tool has not moved."""
    for pressed in range(2, UP + 3, 3):
        rig = up_to("armed", tool)
        rig.bear_down(pressed, share=pressed / 60)
        for held in (0, pressed % DOWN, DOWN + 4):
            rig.command(C.CLUTCH, 1)
            rig.run(held)
            rig.command(C.SET_SCALE, float(rig.row["scale"]) * (2.0 if held else 0.5))
            rig.command(C.CLUTCH, 0)
            while rig.status == S.RELEASING:
                rig.send()
            assert rig.status == S.ENGAGING and np.linalg.norm(rig.wrench) <= 1e-6
            rig.run(5)
        seen[tool] |= rig.seen


@pytest.mark.parametrize("tool", ["sphere", "mesh"])
def test_random_sequences_keep_the_bounds(tool):
    """Thousands of ticks of anything at all, drawn with a seed."""
    random = np.random.default_rng(2026)
    for require_deadman in (False, True):
        rig = Watched(tool, require_deadman=require_deadman)
        pose, turn = rig.top.copy(), 0.0
        goal = rig.floor - DEPTH
        silent = deadman_off = 0
        for _ in range(4000):
            if random.random() < 0.01:
                goal = rig.floor + random.choice([0.003, -0.5 * DEPTH, -DEPTH, -2.0 * DEPTH])
            owner = rig.owner or OWNER
            draw = random.random()
            if rig.owner == 0 and draw < 0.3:
                rig.put(C.LEASE, session=random.choice([OWNER, OTHER]))
            elif rig.status == S.FAULT and draw < 0.1:
                rig.put(C.RESET, session=owner)
            elif rig.status == S.IDLE and rig.row["clutched"] != 0 and draw < 0.1:
                rig.put(C.CLUTCH, 0, session=owner)
            elif rig.status == S.IDLE and draw < 0.2:
                rig.put(C.ARM, 1, session=owner)
            elif draw < 0.03:
                command = COMMANDS[random.integers(len(COMMANDS))]
                rig.put(*command, session=random.choice([owner, owner, owner, OTHER]))
                if command[0] == C.HAND_OVER and owner == OTHER:
                    rig.input["command"]["values"][:2] = (0, OWNER)
            silent = silent - 1 if silent > 0 else int(random.random() < 0.01) * int(random.integers(1, 30))
            let_go = int(random.random() < 0.005) * int(random.integers(50))
            deadman_off = deadman_off - 1 if deadman_off > 0 else let_go
            rig.input["supervisor_lost"] = random.random() < 0.0005
            if silent == 0:
                pose[2] += np.clip(goal - pose[2], -1e-3, 1e-3)
                pose[:2] += random.normal(0.0, 1e-4, 2)
                turn = float(np.clip(turn + random.normal(0.0, 0.02), -TURN, TURN))
                leap = 0.1 * (random.random() < 0.001)
                quaternion = Rotation.from_rotvec((turn, 0.1 * turn, 0.0)).as_quat()
                valid = int(random.random() > 0.003)
                where = pose + (leap, 0.0, 0.0)
                rig.send(where, quaternion, deadman=int(deadman_off == 0), valid=valid, tick=False)
            gains = rig.row["stiffness"]
            broken = random.random() < 0.0005
            if broken:
                rig.row["stiffness"] = np.nan
            rig.tick()
            if broken:
                rig.row["stiffness"] = gains
            if rig.output["stopped"]:
                # As if the daemon had been started again.
                rig.row["stopping"] = 0
        # The press was real, and as many states as there are were met under it.
        assert rig.pressed[0] == pytest.approx(rig.chosen["force_max"], rel=1e-9)
        assert rig.pressed[1] >= 0.5 * rig.chosen["torque_max"]
        assert {state for pair in rig.seen for state in pair} == set(S)
        seen[tool] |= rig.seen


@pytest.mark.parametrize("tool", ["sphere", "mesh"])
def test_gains_that_change_while_pressing_are_no_kick(tool):
    """From a tenth to all of the stiffness: each tick adds at most the whole range over the ticks of the ramp up."""
    rig = up_to("armed", tool)
    rig.command(C.SET_GAINS, 200.0, 0.0)
    rig.bear_down(2 * UP, share=0.3)
    rig.run(60)
    assert rig.status == S.ACTIVE and rig.row["stiffness"] == 200.0
    stretch = np.linalg.norm(rig.output["coupling_wrench"][:3]) / 200.0
    for gains in ((2000.0, 0.0), (20.0, 0.0)):
        rig.steps[:] = 0.0
        rig.command(C.SET_GAINS, *gains)
        ticks = 1
        while rig.row["stiffness"] != gains[0]:
            rig.send()
            ticks += 1
        assert ticks <= UP
        most = 2000.0 / UP * stretch
        assert 0.5 * most < rig.steps[0] <= most * (1 + 1e-6)
        assert most < 0.5 * rig.chosen["force_slew"]
        rig.run(5)
        assert np.linalg.norm(rig.wrench[:3]) == pytest.approx(gains[0] * stretch, rel=1e-6)


@pytest.mark.parametrize("tool", ["sphere", "mesh"])
@pytest.mark.parametrize("away", [0.0, 0.002, 0.2])
def test_a_lease_is_handed_over_without_a_step(tool, away):
    """Pressed as hard as can be, then another device takes the tool from where it is, wherever that device may be."""
    rig = up_to("active", tool)
    force = np.linalg.norm(rig.wrench[:3])
    assert force == pytest.approx(rig.chosen["force_max"])
    assert rig.command(C.HAND_OVER, OTHER >> 32, OTHER & 0xFFFFFFFF) == Reason.NONE
    assert (rig.status, rig.reason, rig.output["owner"]) == (S.RELEASING, Reason.HANDED_OVER, OWNER)
    assert rig.command(C.LEASE, session=3) == Reason.LEASE_TAKEN
    while rig.status == S.RELEASING:
        rig.send()
    assert (rig.status, rig.reason, rig.output["owner"]) == (S.ARMED, Reason.HANDED_OVER, OTHER)
    tool_then = rig.proxy.copy(), rig.output["proxy_orientation"].copy()
    other = rig.top + (away, -away, away)
    turned = Rotation.from_rotvec((0.0, 10.0 * away, 1.0)).as_quat()
    rig.steps[:] = 0.0
    for _ in range(3):
        rig.send(other, turned)
    assert rig.status == S.ENGAGING
    rig.run(UP)
    assert rig.status == S.ACTIVE
    assert np.abs(rig.proxy - tool_then[0]).max() <= 1e-9
    assert np.abs(rig.output["proxy_orientation"] - tool_then[1]).max() <= 1e-9
    assert rig.pressed[0] > 0.0 and rig.steps.max() <= 1e-6
    # From here it is felt as ever.
    for k in range(40):
        rig.send(other - (0.0, 0.0, 1e-4 * k), turned)
    assert np.linalg.norm(rig.wrench[:3]) > 1.0
    seen[tool] |= rig.seen


def test_a_new_owner_without_its_hand_on_the_device_feels_nothing_and_moves_the_tool_by_what_it_moves():
    rig = up_to("active", "sphere", require_deadman=True)
    rig.command(C.HAND_OVER, OTHER >> 32, OTHER & 0xFFFFFFFF)
    while rig.status == S.RELEASING:
        rig.send()
    tool = rig.proxy.copy()
    rig.run(10, rig.top + 0.1, deadman=0)
    assert rig.status == S.ARMED and np.abs(rig.proxy - tool).max() <= 1e-9
    rig.run(10, rig.top + (0.1, 0.1, 0.11), deadman=0)
    assert np.allclose(rig.proxy - tool, (0.0, 0.0, 0.01), atol=1e-4)
    rig.run(2)
    assert rig.status == S.ENGAGING


def test_a_new_owner_that_sends_nothing_is_disarmed_but_has_the_lease():
    rig = up_to("handing over", "sphere")
    while rig.status == S.RELEASING:
        rig.send()
    tool = rig.proxy.copy()
    rig.silence(25)
    assert (rig.status, rig.reason, rig.output["owner"]) == (S.IDLE, Reason.SAMPLE_STALE, OTHER)
    assert np.array_equal(rig.proxy, tool)


@pytest.mark.parametrize(
    "command, session, state, owner",
    [
        ((C.STOP,), 3, S.FAULT, OTHER),
        ((C.DISARM,), OWNER, S.IDLE, OTHER),
        ((C.RELEASE,), OWNER, S.ARMED, OTHER),
        ((C.SHUTDOWN,), 3, S.IDLE, OWNER),
    ],
)
def test_what_is_asked_for_during_a_hand_over(command, session, state, owner):
    """Stop and disarm lead where they always do; a daemon that ends gives nobody the device any more."""
    rig = up_to("handing over", "sphere")
    assert rig.command(*command, session=session) == Reason.NONE
    while rig.status == S.RELEASING:
        rig.send()
    assert (rig.status, rig.output["owner"]) == (state, owner)


@pytest.mark.parametrize(
    "values",
    [
        (0.0, 0.0),
        (0.0, OWNER),
        (0.0, 0.5),
        (-1.0, 3.0),
        (2.0**32, 0.0),
        (np.nan, 3.0),
        (3.0, np.inf),
    ],
)
def test_a_hand_over_to_nobody_or_oneself_is_refused(values):
    rig = up_to("active", "sphere")
    assert rig.command(C.HAND_OVER, *values) == Reason.BAD_VALUE
    assert (rig.status, rig.output["owner"], rig.row["heir"]) == (S.ACTIVE, OWNER, 0)


def poses(rig: Rig) -> tuple[np.ndarray, np.ndarray]:
    return rig.proxy.copy(), rig.output["proxy_orientation"].copy()


def clutch_and_scale(rig: Rig, factor: float) -> None:
    """Press the clutch, change the scale at once or after the ramp: the tool stays, and the force only ever falls."""
    for wait in (0, DOWN + 2):
        twin = copy.copy(rig)
        twin.state, twin.touch, twin.record = copy.deepcopy((rig.state, rig.touch, rig.record))
        tool, last = poses(twin), np.linalg.norm(twin.wrench[:3])
        assert last > 0.5
        twin.command(C.CLUTCH, 1)
        twin.run(wait)
        assert twin.command(C.SET_SCALE, factor) == Reason.NONE
        for _ in range(DOWN + 10):
            twin.send(np.array(twin.sample["position"]) + (1e-5, 0.0, 0.0))
            size = np.linalg.norm(twin.wrench[:3])
            assert size <= last
            last = size
        assert (twin.status, last) == (S.IDLE, 0.0)
        for now, then in zip(poses(twin), tool, strict=True):
            assert np.abs(now - then).max() <= 1e-9


@pytest.mark.parametrize("law", ["spring", "constraint"])
@pytest.mark.parametrize("factor", [0.1, 4.0, 100.0])
def test_a_clutched_tool_that_yields_stays_at_any_scale(factor, law):
    """A cube that is pressed and turned on its edge, where springs and contacts balance."""
    high = np.array((0.0, 0.0, BLOCK + 2.5e-4 + 0.001))
    rig = Rig(
        block_model(turning=REACH**2), tool_reach=REACH, start=high, law=law,
        stiffness=1000.0, rotational_stiffness=0.2, ramp_up_ms=10.0, ramp_down_ms=DOWN,
    )  # fmt: skip
    rig.activate(high)
    for k in range(20):
        turn = Rotation.from_rotvec((0.0, 0.15 * (k + 1) / 20, 0.0)).as_quat()
        rig.send(high - (0.0, 0.0, 0.004 * (k + 1) / 20), turn)
    rig.run(15)
    clutch_and_scale(rig, factor)


@pytest.mark.parametrize("law", ["spring", "constraint"])
def test_a_clutched_tool_between_a_fixture_and_a_surface_stays_at_any_scale(law):
    """A tip that a hard fixture leads into a slope: the goal depends on the scale, where the tool is does not."""
    builder = ModelBuilder()
    plate = builder.add_mesh(*build_tree(*square(1.0)))
    slope = tuple(Rotation.from_euler("y", 30.0, degrees=True).as_quat())
    builder.add_body(plate, (0.0, 0.0, 0.0), slope, friction_static=0.0, friction_kinetic=0.0)
    model = builder.build(TIP_RADIUS, (0.0, 0.0, 0.0), EPS_ALERT, EPS_SAFETY, EPS_BREAK)
    rig = Rig(model, start=(0.0, 0.0, 0.012), law=law, stiffness=500.0, ramp_up_ms=10.0, ramp_down_ms=DOWN)
    set_fixtures(rig.settings, [make_fixture(PLANE, (0.0, 0.0, 0.002), direction=(0.0, 0.0, 1.0))])
    rig.activate((0.0, 0.0, 0.012))
    rig.glide((0.0, 0.0, -0.004))
    rig.run(10)
    clutch_and_scale(rig, 4.0)


@lru_cache
def everything() -> None:
    """What fills `seen`, for whoever runs the test below alone."""
    for tool in ("sphere", "mesh"):
        if not seen[tool]:
            test_random_sequences_keep_the_bounds(tool)
            for state in STATES:
                test_every_command_in_every_state_while_pressing(tool, state)
                test_everything_unasked_in_every_state_while_pressing(tool, state)


@pytest.mark.parametrize("tool", ["sphere", "mesh"])
def test_every_documented_transition_was_seen_and_no_other(tool):
    everything()
    assert seen[tool] == set(TRANSITIONS)
