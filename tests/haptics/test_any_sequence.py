"""Any sequence of samples, commands, silence and garbage: what the hand can feel keeps its bounds in every tick.

A machine drives the tick as the servo may (samples of the owner only, in order, with their true age or more) and holds
after each one, whatever came before: norms, slew, silence, numbering, finite numbers, and a tool that passes nothing.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from haptics_rig import CORNERS, EPS_ALERT, EPS_BREAK, EPS_SAFETY, FACES, MS, OWNER, TIP_RADIUS, Rig
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from scipy.spatial.transform import Rotation

from haptics import fixtures as led_by
from haptics.codes import GOOD, JUMPED
from haptics.fixtures import make_fixture, set_fixtures
from haptics.pattern import NOISE
from haptics.regions import MAGNET, make_region, set_regions
from haptics.states import CommandKind, CommandResult, EngagementState
from haptics.surfaces import make_surface, put_surface
from haptics.tables import OUTPUT, TOUCH
from haptics.tick import tick
from haptics.touch import make_touch
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder
from rtcore.tables import HELD, PROXY

OTHER = 99
ROOM = 1.0
"""Half the edge of the room around it all, m: its floor is the plane, and nothing can go round it."""
BOX = np.array([0.04, 0.03, 0.02])
"""Half the edges of the held box, m."""
LEAST = TIP_RADIUS + EPS_ALERT * (1.0 - 1e-6)
"""What the mechanics promise between tip centre and surfaces."""


@lru_cache
def room_with_a_box(tip_offset: tuple[float, float, float], friction: float) -> Model:
    """A closed room whose floor is z = 0, and in it a box that may be posed."""
    builder = ModelBuilder()
    room = builder.add_mesh(*build_tree(ROOM * CORNERS, FACES[:, ::-1]))
    builder.add_body(room, (0.0, 0.0, ROOM), friction_static=friction, friction_kinetic=0.7 * friction, surface_id=1)
    box = builder.add_mesh(*build_tree(BOX * CORNERS, FACES))
    builder.add_body(box, (0.1, 0.0, 0.1), friction_static=friction, friction_kinetic=friction, kind=HELD)
    return builder.build(TIP_RADIUS, tip_offset, EPS_ALERT, EPS_SAFETY, EPS_BREAK)


def doubles(dtype: np.dtype, base: int = 0) -> list[int]:
    """Where the f8 numbers of a record are, in units of 8 bytes."""
    found: list[int] = []
    for name in dtype.names or ():
        kind, at = dtype.fields[name][:2]
        inner, count = (kind.base, int(np.prod(kind.shape))) if kind.subdtype else (kind, 1)
        for k in range(count):
            place = base + at + k * inner.itemsize
            if inner.names:
                found += doubles(inner, place)
            elif inner == np.float64:
                found.append(place // 8)
    return found


FINITE = {name: np.array(doubles(dtype)) for name, dtype in (("output", OUTPUT), ("touch", TOUCH), ("proxy", PROXY))}

unit = st.floats(-1.0, 1.0)
few = st.integers(1, 12)
gaps = st.sampled_from([0, 1, 5, 6, 14, 19, 20, 21])
"""Ticks of silence: about the ends of hold, ramp and stale horizon."""
directions = st.tuples(unit, unit, unit)
anything = st.floats(width=64)
quaternions = st.tuples(unit, unit, unit, st.floats(0.1, 1.0)).map(lambda q: np.array(q) / np.linalg.norm(q))
sessions = st.sampled_from([OWNER, OWNER, OWNER, OTHER, 0])


def forces_are_on(machine: AnySequence) -> bool:
    return EngagementState.ENGAGING <= machine.state <= EngagementState.RELEASING


class AnySequence(RuleBasedStateMachine):
    """One touch layer under everything that may reach it."""

    @initialize(
        card=st.sampled_from(["simulated", "touch", "virtuose6d"]),
        scale=st.sampled_from([1.0, 1.0, 0.1, 10.0, 1e-3, 1e3]),
        turned=st.sampled_from([(0.0, 0.0, 0.0), (0.7, -1.1, 2.0)]),
        tip_offset=st.sampled_from([(0.0, 0.0, 0.0), (0.05, 0.0, -0.1)]),
        friction=st.sampled_from([0.0, 0.6]),
        up=st.sampled_from([1.0, 4.0, 20.0]),
        down=st.sampled_from([1.0, 6.0, 40.0]),
        fault=st.sampled_from([1.0, 15.0]),
        stiffness=st.sampled_from([100.0, 3000.0]),
        deadman=st.booleans(),
        effects=st.booleans(),
        led=st.booleans(),
        law=st.sampled_from(["spring", "damped", "constraint"]),
    )
    def begin(self, card, scale, turned, tip_offset, friction, up, down, fault, stiffness, deadman, effects, led, law):
        self.turn = Rotation.from_rotvec(turned)
        self.rig = Rig(
            room_with_a_box(tip_offset, friction),
            card,
            start=(0.0, 0.0, 0.05),
            scale=scale,
            stiffness=stiffness,
            damping=5.0,
            workspace_position=(0.01, 0.02, 0.03),
            workspace_orientation=self.turn.as_quat(),
            ramp_up_ms=up,
            ramp_down_ms=down,
            ramp_fault_ms=fault,
            lease_ms=80.0,
            require_deadman=deadman,
            law=law,
        )
        # The floor is a body with a surface_id; without surfaces in the settings that means nothing.
        self.rig.model.bodies[0]["surface_id"] = int(effects)
        if effects:
            rough = make_surface(pattern=NOISE, height=1e-3, damping=2.0, drag=2.0, burst=50.0, friction_variation=1.0)
            put_surface(self.rig.settings, rough)
            strength = 0.05 * self.rig.chosen["stiffness_max"] * 0.1 / scale
            set_regions(self.rig.settings, [make_region(MAGNET, (0.02, 0.0, 0.02), 0.1, strength)])
            self.rig.touch = make_touch(self.rig.settings)
        if led:
            half = 0.3 * np.array([1.0, 1.0, 1.0])
            fixtures = [
                make_fixture(led_by.TUBE, (0.0, 0.0, 0.0), radius=0.2),
                make_fixture(led_by.BALL, (0.03, 0.0, 0.06), radius=0.02),
                make_fixture(led_by.BOX, (-0.4, 0.0, 0.1), half=half, orientation=(0.0, 0.0, 0.6, 0.8)),
                make_fixture(led_by.PLANE, (0.0, 0.0, 0.05), stiffness=0.5 * self.rig.chosen["stiffness_max"]),
            ]
            set_fixtures(self.rig.settings, fixtures)
            self.rig.touch = make_touch(self.rig.settings)
        self.rig.sample["position"] = 0.0
        self.owner = 0
        self.pose = np.zeros(3)
        self.state, self.events = EngagementState.IDLE, 0
        self.last = np.zeros(6)
        self.good_ms = -1e9
        self.queued_ns = 0
        self.off_from: dict[str, int] = {}
        self.ticks = 0

    # -- one tick, as the servo may run it ---------------------------------------------------------------------------

    def go(self) -> None:
        """Run a tick with what was laid into the input, and look at everything."""
        rig = self.rig
        taken = rig.input
        if taken["fresh"] and int(taken["sample"]["session"]) != self.owner:
            taken["fresh"] = 0
        now = rig.now_ms
        taken["age_ns"] = min(round((now - rig.sent_ms) * MS) + self.queued_ns, 1 << 62)
        tip = rig.proxy.copy()
        stops = taken["command"]["id"] != 0 and taken["command"]["kind"] == CommandKind.STOP
        rig.record[0]["tick"] += 1
        tick(rig.model, rig.state, rig.settings, rig.touch, rig.record)
        self.ticks += 1
        rig.now_ms += 1e3 * rig.chosen["dt"]
        if rig.row["sample_kind"] == GOOD:
            self.good_ms = max(self.good_ms, now - 1e-6 * self.queued_ns)
        if rig.row["owner"] != self.owner:
            # As the servo does: a new lease begins without a sample.
            self.owner = int(rig.row["owner"])
            taken["has_sample"] = 0
        self.check_forces(now)
        self.check_events()
        self.check_deadlines(bool(stops))
        self.check_place(tip)
        taken["fresh"] = taken["rejected"] = taken["command"]["id"] = 0

    def check_forces(self, now: float) -> None:
        rig, chosen = self.rig, self.rig.chosen
        output = rig.record["output"].view(np.float64)
        assert np.isfinite(output[FINITE["output"]]).all()
        assert np.isfinite(rig.touch.view(np.float64)[FINITE["touch"]]).all()
        assert np.isfinite(rig.state.proxy.view(np.float64)[FINITE["proxy"]]).all()
        wrench = rig.wrench
        force, torque = np.linalg.norm(wrench[:3]), np.linalg.norm(wrench[3:])
        assert force <= chosen["force_max"] * (1 + 1e-12)
        assert torque <= chosen["torque_max"] * (1 + 1e-12)
        assert np.linalg.norm(wrench[:3] - self.last[:3]) <= chosen["force_slew"] * (1 + 1e-9)
        assert np.linalg.norm(wrench[3:] - self.last[3:]) <= chosen["torque_slew"] * (1 + 1e-9)
        assert 0.0 <= rig.output["gain"] <= 1.0
        if not EngagementState.ENGAGING <= rig.status <= EngagementState.RELEASING:
            for name in ("wrench", "stiffness", "damping", "feed_forward"):
                assert np.all(rig.output[name] == 0.0)
        if rig.status == EngagementState.RELEASING:
            assert force <= np.linalg.norm(self.last[:3]) * (1 + 1e-12)
            assert torque <= np.linalg.norm(self.last[3:]) * (1 + 1e-12)
        silent = now - self.good_ms
        if silent >= 1e-6 * chosen["stale_after_ns"] + 1e3 * chosen["dt"] * chosen["ramp_fault_ticks"]:
            assert np.all(wrench == 0.0), silent
        self.last = wrench

    def check_events(self) -> None:
        output = self.rig.output
        assert output["event_from"] == self.state
        self.events += output["event_from"] != output["event_to"]
        self.state = EngagementState(int(output["event_to"]))
        assert output["event_seq"] == self.events and self.rig.status == self.state == output["state"]

    def check_deadlines(self, stops: bool) -> None:
        """STOP and a jump take the force away within the fault ramp, and end in FAULT."""
        rig = self.rig
        if stops:
            assert rig.output["command_result"] == CommandResult.DONE
        if stops or rig.row["sample_kind"] == JUMPED:
            self.off_from.setdefault("stop" if stops else "jump", self.ticks - 1 + int(rig.chosen["ramp_fault_ticks"]))
        for cause, deadline in list(self.off_from.items()):
            if self.ticks >= deadline:
                assert np.all(rig.wrench == 0.0), cause
            if self.ticks > deadline or self.state == EngagementState.FAULT:
                assert self.state == EngagementState.FAULT, cause
                del self.off_from[cause]

    def check_place(self, tip: np.ndarray) -> None:
        """The tip keeps its distance from the walls and the box, and no way point's line crosses the box."""
        rig = self.rig
        report = rig.output["report"]
        path = np.concatenate([tip[None], report["path"][: report["path_count"]], rig.proxy[None]])
        assert np.all(np.abs(path - (0.0, 0.0, ROOM)) <= ROOM - LEAST)
        pose = rig.state.poses[1]
        inside = Rotation.from_quat(pose["orientation"]).inv().apply(path - pose["position"])
        outside = np.maximum(np.abs(inside) - BOX, 0.0)
        assert np.all(np.linalg.norm(outside, axis=1) >= LEAST)
        for p, q in pairwise(inside):
            assert not crosses(p, q, BOX)

    # -- what may come -----------------------------------------------------------------------------------------------

    def lay(self, position=None, queued_ns: int = 0, **options) -> None:
        """A sample of the owner for the next tick, so old already when it comes."""
        if position is not None:
            self.pose = np.array(position, dtype=np.float64)
        self.queued_ns = queued_ns
        self.rig.send(self.pose, session=self.owner or OWNER, tick=False, **options)

    def in_device(self, scene) -> np.ndarray:
        """The device position that the map in force brings to this scene place (of the coupling point)."""
        row, chosen = self.rig.row, self.rig.chosen
        placed = np.array(scene) - row["anchor_position"] - chosen["workspace_position"]
        return self.turn.inv().apply(placed) / row["scale"]

    def glide(self, goal: np.ndarray, ticks: int) -> None:
        """Go straight to a device position, no faster than a device can."""
        begin = self.pose
        way = np.array(goal) - begin
        most = 0.9e-3 * self.rig.chosen["speed_max"] * ticks
        way *= min(1.0, most / max(np.linalg.norm(way), 1e-12))
        for k in range(ticks):
            self.lay(begin + (k + 1) / ticks * way)
            self.go()

    @rule(n=st.integers(1, 40), beside=directions)
    def engage(self, n, beside):
        """Forces on, and a little way."""
        self.engage_now()
        self.glide(self.pose + 0.002 * np.array(beside), n)

    def engage_now(self) -> None:
        """The honest way to forces, from wherever."""
        for kind in (CommandKind.RESET, CommandKind.LEASE, CommandKind.ARM):
            self.rig.put(kind, 1.0)
            self.lay()
            self.go()

    @precondition(forces_are_on)
    @rule(direction=directions, n=few)
    def move(self, direction, n):
        self.glide(self.pose + 0.02 * np.array(direction), n)

    @rule(x=unit, y=unit, depth=st.floats(-0.01, 0.05), n=st.integers(5, 30))
    def press(self, x, y, depth, n):
        """Into the floor or onto the box, with forces on."""
        if not forces_are_on(self):
            self.engage_now()
        tool = self.rig.proxy
        self.glide(self.in_device((tool[0] + 0.02 * x, tool[1] + 0.02 * y, -depth)), n)

    @rule(direction=directions, size=st.sampled_from([0.004, 0.01, 0.06, 1.0, 900.0]))
    def leap(self, direction, size):
        self.lay(np.clip(self.pose + size * np.array(direction), -1e3, 1e3))
        self.go()

    @precondition(forces_are_on)
    @rule(orientation=quaternions, n=few)
    def turn_suddenly(self, orientation, n):
        for k in range(n):
            self.lay(orientation=orientation if k % 2 else (0.0, 0.0, 0.0, 1.0))
            self.go()

    @precondition(forces_are_on)
    @rule(twist=st.tuples(*[st.floats(-1e3, 1e3)] * 6), n=few)
    def claim_a_twist(self, twist, n):
        for _ in range(n):
            self.lay(twist=twist)
            self.go()

    @precondition(forces_are_on)
    @rule(times=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**8), 10**8), min_size=1, max_size=6))
    def lie_about_time(self, times):
        for k, time in enumerate(times):
            self.lay(self.pose + 0.003 * (-1) ** k)
            self.rig.sample["t_sample"] = time
            self.go()

    @precondition(forces_are_on)
    @rule(queued=st.lists(st.sampled_from([0, 6 * MS, 19 * MS, 21 * MS, 1 << 62]), min_size=1, max_size=12))
    def come_late(self, queued):
        for queued_ns in queued:
            self.lay(queued_ns=queued_ns)
            self.go()

    @rule(n=st.integers(1, 45), rejected=st.integers(0, 3))
    def be_silent(self, n, rejected):
        for _ in range(n):
            self.rig.input["rejected"] = rejected
            self.go()

    @precondition(forces_are_on)
    @rule(step=st.integers(1, 3), n=few)
    def flicker_deadman(self, step, n):
        for k in range(2 * n):
            self.lay(deadman=(k // step) % 2)
            self.go()

    @rule(gap=gaps, n=few, valid=st.integers(0, 1), value=anything, where=st.integers(0, 6))
    def send_garbage(self, gap, n, valid, value, where):
        """Samples that the wire would refuse, or that the client itself marks, after some silence."""
        good = self.pose
        for _ in range(n):
            for _ in range(gap):
                self.go()
            bad, orientation = good.copy(), np.array([0.0, 0.0, 0.0, 1.0])
            if where < 3:
                bad[where] = value
            else:
                orientation[where - 3] = value
            self.lay(bad, orientation=orientation, valid=valid)
            self.go()
        self.pose = good
        self.lay(orientation=(0.0, 0.0, 0.0, 1.0))
        self.go()

    @rule(
        kind=st.sampled_from(CommandKind),
        session=sessions,
        flag=st.integers(0, 1),
        n=few,
        fresh=st.booleans(),
    )
    def flood(self, kind, session, flag, n, fresh):
        """The same command in every tick."""
        for _ in range(n):
            self.rig.put(kind, float(flag), session=self.owner if session == OWNER and self.owner else session)
            if fresh:
                self.lay()
            self.go()

    @precondition(forces_are_on)
    @rule(
        kinds=st.lists(st.sampled_from(CommandKind), min_size=1, max_size=12),
        gap=gaps,
        fresh=st.booleans(),
    )
    def command_all_sorts(self, kinds, gap, fresh):
        """Different commands, now and then."""
        for k, kind in enumerate(kinds):
            for _ in range(gap):
                self.go()
            self.rig.put(kind, float(k % 2), 1.0, session=self.owner or OWNER)
            if fresh:
                self.lay()
            self.go()

    @precondition(forces_are_on)
    @rule(kind=st.sampled_from(CommandKind), gap=gaps, jump=st.booleans())
    def command_at_a_bad_moment(self, kind, gap, jump):
        """Together with a jump, or when the sample is just going stale."""
        for _ in range(gap):
            self.go()
        self.rig.put(kind, 1.0, 1.0, session=self.owner)
        if jump:
            self.lay(self.pose + 0.5)
        self.go()
        for _ in range(30):
            self.go()

    @rule(kind=st.integers(-3, 15), session=sessions, values=st.lists(anything, min_size=8, max_size=8))
    def command_garbage(self, kind, session, values):
        self.rig.put(kind, *values, session=session)
        self.go()

    @precondition(forces_are_on)
    @rule(stiffnesses=st.lists(st.sampled_from([1e-3, 10.0, 1e4]), min_size=1, max_size=8), damping=st.floats(0, 100))
    def change_gains(self, stiffnesses, damping):
        for stiffness in stiffnesses:
            self.rig.put(CommandKind.SET_GAINS, stiffness, damping, session=self.owner)
            self.lay()
            self.go()

    @rule(
        scales=st.lists(st.sampled_from([1e-3, 0.3, 1.0, 7.0, 1e3]), min_size=1, max_size=5),
        wait=st.integers(0, 45),
        away=directions,
        size=st.sampled_from([0.0, 0.01, 0.5, 900.0]),
    )
    def clutch_and_scale(self, scales, wait, away, size):
        """Clutch, wait for part of the ramp, change the scale, go away, let go."""
        self.rig.put(CommandKind.CLUTCH, 1.0, session=self.owner)
        self.lay()
        self.go()
        for _ in range(wait):
            self.lay()
            self.go()
        for scale in scales:
            self.rig.put(CommandKind.SET_SCALE, scale, session=self.owner)
            self.lay(np.clip(self.pose + size * np.array(away), -1e3, 1e3))
            self.go()
        self.rig.put(CommandKind.CLUTCH, 0.0, session=self.owner)
        self.lay()
        self.go()

    @rule(place=directions, orientation=quaternions, near=st.booleans())
    def pose_the_box(self, place, orientation, near):
        """Onto the tool or anywhere in the room."""
        around = self.rig.proxy + 0.07 * np.array(place) if near else (0.0, 0.0, ROOM) + 0.9 * ROOM * np.array(place)
        self.rig.put(CommandKind.POSE_BODY, 1.0, *around, *orientation, session=self.owner)
        self.lay()
        self.go()

    @precondition(forces_are_on)
    @rule(
        amplitude=st.floats(1e-3, 1e6), frequency=st.floats(1.0, 1e5), decay=st.sampled_from([0.0, 1e-9, 0.02]), n=few
    )
    def vibrate(self, amplitude, frequency, decay, n):
        self.rig.put(CommandKind.VIBRATE, amplitude, frequency, 0.05, decay, 0.0, 0.6, 0.8, session=self.owner)
        for _ in range(n):
            self.lay()
            self.go()

    @precondition(forces_are_on)
    @rule()
    def hand_over(self):
        """Give the device back, try to take it as another during the ramp, and again after it."""
        self.rig.put(CommandKind.RELEASE, session=self.owner)
        self.lay()
        self.go()
        for _ in range(int(self.rig.chosen["ramp_down_ticks"]) + 2):
            self.rig.put(CommandKind.LEASE, session=OTHER)
            self.lay(self.pose + 0.002)
            self.go()

    @precondition(forces_are_on)
    @rule(wait=st.integers(0, 45), away=directions, size=st.sampled_from([0.0, 0.003, 900.0]), silent=st.booleans())
    def hand_over_to_another(self, wait, away, size, silent):
        """Give the lease to another session, whose device is anywhere, or sends nothing."""
        heir = OWNER if self.owner == OTHER else OTHER
        self.rig.put(CommandKind.HAND_OVER, 0.0, float(heir), session=self.owner)
        self.lay()
        self.go()
        for _ in range(wait):
            if self.owner != heir or not silent:
                self.lay()
            self.go()
            if self.owner == heir and size:
                self.pose, size = np.clip(self.pose + size * np.array(away), -1e3, 1e3), 0.0

    @precondition(lambda self: self.ticks > 400)
    @rule(n=few)
    def lose_the_supervisor(self, n):
        """It stays lost; the machine starts afresh only as far as the touch layer allows."""
        for _ in range(n):
            self.rig.input["supervisor_lost"] = 1
            self.go()
        self.rig.input["supervisor_lost"] = 0
        self.rig.row["stopping"] = 0


def crosses(p: np.ndarray, q: np.ndarray, half: np.ndarray) -> bool:
    """Whether the segment p-q meets the box of these half edges about the origin (slabs)."""
    enter, leave = 0.0, 1.0
    for k in range(3):
        rate = q[k] - p[k]
        if rate == 0.0:
            if abs(p[k]) > half[k]:
                return False
            continue
        ends = sorted(((-half[k] - p[k]) / rate, (half[k] - p[k]) / rate))
        enter, leave = max(enter, ends[0]), min(leave, ends[1])
    return enter <= leave


AnySequence.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestAnySequence = AnySequence.TestCase
