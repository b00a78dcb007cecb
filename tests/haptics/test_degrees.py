"""Degrees of freedom: what is not sensed stays, what is not driven is not rendered, an input device feels nothing."""

from dataclasses import replace

import numpy as np
import pytest
from haptics_rig import BLOCK, REACH, REST, Rig, block_model, plane_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from haptics.cards import card_from_dict, load_card
from haptics.degrees import across, pointed, without_roll
from haptics.limits import SATURATED
from haptics.states import CommandKind, EngagementState, Reason
from rtcore.state import make_state

LOW = (0.0, 0.0, BLOCK + 0.002)
DOWN = (0.0, 0.0, -1.0)
SPEEDLESS = {"stiffness_max": 2000.0, "damping_max": 10.0}

turns = st.tuples(*[st.floats(-3.0, 3.0)] * 3).map(lambda v: Rotation.from_rotvec(v).as_quat())
units = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1)


def unit(v) -> tuple[float, float, float]:
    x, y, z = np.asarray(v, dtype=float) / np.linalg.norm(v)
    return float(x), float(y), float(z)


def card(sensed: int, actuated: int, **more):
    """A device like the simulated one with other degrees of freedom."""
    limits = {} if actuated == 0 else {"force_max": 10.0} | SPEEDLESS
    if actuated >= 5:
        limits["torque_max"] = 0.5
    texts = {"name": "d", "model": "D", "source": "made up", "conditions": "none"}
    return card_from_dict(texts | {"sensed": sensed, "actuated": actuated} | limits | more)


def cube(sensed: int, actuated: int, start_orientation=(0.0, 0.0, 0.0, 1.0), start=LOW, **options) -> Rig:
    """A cube over a plane on such a device."""
    more = {"tool_reach": REACH, "rotational_stiffness": 0.5, "start": start, "ramp_up_ms": 20.0} | options
    rig = Rig(block_model(), card(sensed, actuated), **more)
    rig.state = make_state(rig.model, start, start_orientation)
    return rig


def rolled(turn: Rotation, roll: float) -> np.ndarray:
    """An orientation after a turn of the handle about its own axis."""
    return (turn * Rotation.from_rotvec((0.0, 0.0, -roll))).as_quat()


def handle(rig: Rig) -> Rotation:
    return Rotation.from_quat(rig.row["device_orientation"])


@settings(deadline=None)
@given(turns, units, units)
def test_the_shortest_turn_points_there_without_spin(orientation, axis, direction):
    axis, direction = unit(axis), unit(direction)
    before = Rotation.from_quat(orientation)
    after = Rotation.from_quat(pointed(tuple(orientation), axis, direction))
    # Near the opposite direction the turn is badly determined, never the pointing: half of the digits are left.
    assert np.allclose(after.apply(axis), direction, atol=1e-6)
    turn = (after * before.inv()).as_rotvec()
    if before.apply(axis) @ direction > -0.999:
        assert np.allclose(after.apply(axis), direction, atol=1e-12)
        assert abs(turn @ before.apply(axis)) < 1e-9
        assert np.linalg.norm(turn) == pytest.approx(
            np.arccos(np.clip(before.apply(axis) @ direction, -1, 1)), abs=1e-6
        )


@settings(deadline=None)
@given(turns, units)
def test_half_a_turn_is_about_an_axis_across(orientation, axis):
    axis = unit(axis)
    ahead = Rotation.from_quat(orientation).apply(axis)
    after = Rotation.from_quat(pointed(tuple(orientation), axis, unit(-ahead)))
    assert np.allclose(after.apply(axis), -ahead, atol=1e-9)


@settings(deadline=None)
@given(turns, units, st.floats(-3.0, 3.0))
def test_who_sees_only_the_pointing_sees_no_roll(orientation, axis, roll):
    axis = unit(axis)
    other = (Rotation.from_quat(orientation) * Rotation.from_rotvec(roll * np.array(axis))).as_quat()
    if Rotation.from_quat(orientation).apply(axis) @ axis > -0.99:
        one, two = without_roll(tuple(orientation), axis), without_roll(tuple(other), axis)
        assert abs(np.dot(one, two)) == pytest.approx(1.0, abs=1e-9)


@settings(deadline=None)
@given(units, units)
def test_across_is_square_to_the_axis(axis, v):
    axis = unit(axis)
    left = across(axis, v)
    assert abs(np.dot(left, axis)) < 1e-12
    assert np.allclose(np.cross(axis, left), np.cross(axis, v), atol=1e-12)


# ------------------------------------------------------------------------------------------------------ 6/6


def test_six_degrees_take_the_orientation_to_the_bit():
    rig = cube(6, 6, start=(0.0, 0.0, 0.1))
    rig.activate((0.0, 0.0, 0.1))
    sent = rolled(Rotation.from_rotvec((0.1, 0.05, 0.0)), 0.15)
    rig.send(orientation=sent)
    assert np.array_equal(rig.row["device_orientation"], sent)


# ------------------------------------------------------------------------------------------------------ 5/5


def test_five_degrees_do_not_see_the_roll():
    """The same pointing with any roll gives the same device orientation, and the tool does not roll."""
    rig = cube(5, 5, start=(0.0, 0.0, 0.1))
    rig.activate((0.0, 0.0, 0.1))
    random = np.random.default_rng(3)
    for k in range(200):
        tilt = Rotation.from_rotvec((0.002 * k, 0.0, 0.0))
        rig.send(orientation=rolled(tilt, random.uniform(-3.0, 3.0)))
        assert np.allclose(handle(rig).as_rotvec(), tilt.as_rotvec(), atol=1e-9)
        assert rig.status == EngagementState.ACTIVE, "a roll is no jump"
    assert np.allclose(Rotation.from_quat(rig.output["proxy_orientation"]).as_rotvec(), (0.398, 0.0, 0.0), atol=1e-9)


def test_five_degrees_go_round_a_cone_without_spin():
    """About no axis but across the handle's does the device turn: parallel transport. Round a cone of half angle a the
    handle comes back rolled by the solid angle 2 pi (1 - cos a) (Gauss and Bonnet)."""
    rig = cube(5, 5, start=(0.0, 0.0, 0.1))
    rig.command(CommandKind.LEASE)
    half, steps = 0.4, 2000
    path = [Rotation.from_rotvec((half * k / 200, 0.0, 0.0)) for k in range(201)]
    path += [Rotation.from_rotvec((0.0, 0.0, 2 * np.pi * k / steps)) * path[200] for k in range(1, steps + 1)]
    before = None
    for turn in path:
        rig.send((0.0, 0.0, 0.1), orientation=turn.as_quat())
        now = handle(rig)
        assert np.allclose(now.apply(DOWN), turn.apply(DOWN), atol=1e-12)
        if before is not None:
            assert abs((now * before.inv()).as_rotvec() @ before.apply(DOWN)) < 1e-12
        before = now
    twist = (path[200].inv() * before).as_rotvec()
    assert np.allclose(twist[:2], 0.0, atol=1e-9)
    assert abs(twist[2]) == pytest.approx(2 * np.pi * (1 - np.cos(half)), rel=1e-5)


def test_five_degrees_render_the_torque_across_the_axis_only():
    """Beside a device of six on the same way: the same tool, force and torque but for its part about the handle."""
    five, six = cube(5, 5), cube(6, 6)
    for rig in (five, six):
        rig.activate(LOW)
    axis_felt = 0.0
    for k in range(80):
        # Held back by the plane after the first turn, so that the second one is about no axis across the handle.
        tilt = Rotation.from_rotvec((0.01 * min(k, 40), 0.0, 0.0))
        turn = (Rotation.from_rotvec((0.0, 0.01 * max(k - 40, 0), 0.0)) * tilt).as_quat()
        five.send((0.0, 0.0, LOW[2] - 1e-5 * k), orientation=turn)
        six.send((0.0, 0.0, LOW[2] - 1e-5 * k), orientation=five.row["device_orientation"])
        ahead = handle(five).apply(DOWN)
        full, felt = six.output["coupling_wrench"], five.output["coupling_wrench"]
        assert np.array_equal(felt[:3], full[:3])
        assert np.allclose(felt[3:], full[3:] - ahead * (ahead @ full[3:]), atol=1e-12)
        assert abs(five.wrench[3:] @ ahead) < 1e-3 * np.linalg.norm(five.wrench[3:]) + 1e-12
        axis_felt = max(axis_felt, abs(full[3:] @ ahead))
    assert np.linalg.norm(felt[3:]) > 0.05 and axis_felt > 0.01


def test_five_degrees_do_not_sense_a_twist_about_the_axis():
    rig = cube(5, 5, start=(0.0, 0.0, 0.1))
    rig.command(CommandKind.LEASE)
    turn = Rotation.from_rotvec((0.3, 0.0, 0.0))
    rig.run(3, (0.0, 0.0, 0.1), orientation=turn.as_quat(), twist=(0.0, 0.0, 0.0, 1.0, 2.0, 3.0))
    ahead, sensed = turn.apply(DOWN), rig.row["angular_velocity"]
    assert np.allclose(sensed, np.array([1.0, 2.0, 3.0]) - ahead * (ahead @ [1.0, 2.0, 3.0]), atol=1e-12)


def test_five_degrees_keep_the_roll_of_the_tool_from_where_it_was_taken():
    start = Rotation.from_rotvec((0.0, 0.0, 0.7))
    rig = cube(5, 5, start.as_quat(), start=(0.0, 0.0, 0.1))
    rig.command(CommandKind.LEASE)
    rig.run(10, (0.0, 0.0, 0.1), orientation=rolled(Rotation.identity(), 2.0))
    assert np.allclose(Rotation.from_quat(rig.output["proxy_orientation"]).as_rotvec(), (0.0, 0.0, 0.7), atol=1e-9)


def test_five_degrees_that_point_backwards_are_no_accident():
    """Half a turn between two samples is a jump, and nothing becomes not finite."""
    rig = cube(5, 5, start=(0.0, 0.0, 0.1))
    rig.activate((0.0, 0.0, 0.1))
    rig.send(orientation=(1.0, 0.0, 0.0, 0.0))
    assert rig.reason == Reason.DEVICE_JUMP
    assert np.isfinite(rig.row["device_orientation"]).all()


# ------------------------------------------------------------------------------------------------------ 3/3


def test_three_degrees_drive_a_tool_that_keeps_its_orientation():
    start = Rotation.from_rotvec((0.3, -0.2, 0.5))
    rig = cube(3, 3, start.as_quat(), start=(0.0, 0.0, 0.05))
    rig.activate((0.0, 0.0, 0.05))
    random = np.random.default_rng(1)
    for k in range(120):
        # Whatever an adapter says of an orientation that its device does not measure.
        rig.send((0.0, 0.0, 0.05 - 4e-4 * k), orientation=Rotation.random(random_state=random).as_quat())
        assert np.allclose(
            Rotation.from_quat(rig.output["proxy_orientation"]).as_rotvec(), start.as_rotvec(), atol=1e-9
        )
        assert not rig.wrench[3:].any()
    assert rig.status == EngagementState.ACTIVE
    assert rig.wrench[2] > 1.0, "it was pressed onto the plane"


def test_three_degrees_and_a_workspace_that_is_turned():
    """The map of positions is turned; the tool stays as it is, also when the clutch anchors it anew."""
    frame = Rotation.from_rotvec((0.0, 0.0, 1.0))
    start = Rotation.from_rotvec((0.0, 0.4, 0.0))
    rig = cube(3, 3, start.as_quat(), start=(0.0, 0.0, 0.05), workspace_orientation=frame.as_quat())
    rig.activate((0.0, 0.0, 0.05))
    rig.command(CommandKind.CLUTCH, 1)
    rig.run(150)
    rig.glide((0.02, 0.0, 0.05))
    rig.command(CommandKind.CLUTCH, 0)
    rig.glide((0.04, 0.0, 0.05))
    assert np.allclose(Rotation.from_quat(rig.output["proxy_orientation"]).as_rotvec(), start.as_rotvec(), atol=1e-9)
    assert np.allclose(rig.proxy, frame.apply((0.02, 0.0, 0.0)) + (0.0, 0.0, 0.05), atol=1e-9)


# ------------------------------------------------------------------------------------------------------ 6/3


def test_six_in_three_out_turns_the_tool_and_feels_force_only():
    rig = cube(6, 3)
    rig.activate(LOW)
    for k in range(60):
        rig.send((0.0, 0.0, LOW[2] - 5e-5 * k), orientation=Rotation.from_rotvec((0.01 * k, 0.0, 0.0)).as_quat())
    assert np.linalg.norm(Rotation.from_quat(rig.output["proxy_orientation"]).as_rotvec()) > 0.02
    assert np.linalg.norm(rig.wrench[:3]) > 0.5 and not rig.wrench[3:].any()
    assert not rig.output["coupling_wrench"][3:].any() and not rig.output["feed_forward"].any()


# ------------------------------------------------------------------------------------------------ input only


@pytest.mark.parametrize("sensed", [3, 5, 6])
def test_an_input_device_moves_the_tool_as_any_other_and_feels_nothing(sensed):
    """Beside a device that feels: the same tool to the bit, nothing rendered, nothing said to be limited."""
    mute, felt = cube(sensed, 0), cube(sensed, 3)
    assert mute.chosen["force_max"] == 0.0
    for rig in (mute, felt):
        rig.activate(LOW)
    for k in range(120):
        turn = Rotation.from_rotvec((0.002 * k, 0.0, 0.0)).as_quat()
        for rig in (mute, felt):
            rig.send((1e-5 * k, 0.0, LOW[2] - 5e-5 * k), orientation=turn)
        assert np.array_equal(mute.output["proxy_position"], felt.output["proxy_position"])
        assert np.array_equal(mute.output["proxy_orientation"], felt.output["proxy_orientation"])
        for name in ("wrench", "coupling_wrench", "stiffness", "damping", "feed_forward"):
            assert not mute.output[name].any(), name
        assert mute.output["limited"] & SATURATED == 0
    assert np.linalg.norm(felt.wrench[:3]) > 1.0 and mute.output["energy"] == 0.0
    assert mute.status == EngagementState.ACTIVE


def test_an_input_device_is_engaged_by_the_same_rules():
    """Deadman, lease, silence, jump and stop: as for a device that feels."""
    rig = Rig(plane_model(), card(3, 0), require_deadman=True, ramp_up_ms=20.0)
    rig.command(CommandKind.LEASE)
    assert rig.command(CommandKind.LEASE, session=9) == Reason.LEASE_TAKEN
    rig.send((0.0, 0.0, 0.1))
    rig.command(CommandKind.ARM, 1)
    rig.run(5, deadman=0)
    assert rig.status == EngagementState.ARMED
    rig.run(30)
    assert rig.status == EngagementState.ACTIVE
    rig.send(deadman=0)
    assert (rig.status, rig.reason) == (EngagementState.RELEASING, Reason.DEADMAN_RELEASED)
    rig.run(300)
    assert rig.status == EngagementState.ACTIVE
    rig.silence(7)
    assert rig.status == EngagementState.HOLD
    rig.silence(60)
    assert (rig.status, rig.reason) == (EngagementState.IDLE, Reason.SAMPLE_STALE)
    rig.send()
    rig.command(CommandKind.ARM, 1)
    rig.run(30)
    rig.send((0.5, 0.0, 0.1))
    assert rig.reason == Reason.DEVICE_JUMP
    rig.run(30)
    assert rig.status == EngagementState.FAULT


def test_an_input_device_has_no_gains_to_set():
    rig = Rig(plane_model(), load_card("spacemouse"))
    rig.command(CommandKind.LEASE)
    assert rig.command(CommandKind.SET_GAINS, 100.0, 1.0) == Reason.BAD_VALUE
    assert rig.row["stiffness"] == rig.chosen["stiffness"]


# ------------------------------------------------------------------------------------------------------ all


@pytest.mark.parametrize("sensed, actuated", [(6, 6), (6, 5), (6, 3), (6, 0), (5, 5), (5, 3), (5, 0), (3, 3), (3, 0)])
def test_any_motion_on_any_device_keeps_the_limits(sensed, actuated):
    """Wild motion against a plane, with commands in between: norm and change per tick stay within what is in force."""
    rig = cube(sensed, actuated)
    rig.activate(LOW)
    random = np.random.default_rng(10 * sensed + actuated)
    position, turn, last = np.array(LOW), Rotation.identity(), rig.wrench
    for k in range(400):
        position = position + random.normal(0.0, 4e-4, 3) + 0.02 * (np.array((0.0, 0.0, BLOCK)) - position)
        turn = Rotation.from_rotvec(random.normal(0.0, 0.02, 3)) * turn
        if k % 97 == 50:
            rig.put(CommandKind.CLUTCH, float(k % 2 == 0))
        rig.send(position, orientation=turn.as_quat())
        now = rig.wrench
        for part, limit, slew in ((slice(0, 3), "force_max", "force_slew"), (slice(3, 6), "torque_max", "torque_slew")):
            assert np.linalg.norm(now[part]) <= rig.chosen[limit] * (1 + 1e-12)
            assert np.linalg.norm(now[part] - last[part]) <= rig.chosen[slew] * (1 + 1e-12)
        last = now
    assert (actuated == 0) == (not rig.chosen["force_max"])


def test_a_tip_feels_the_same_by_three_and_by_six_degrees():
    """Without a lever orientation makes no difference to a sphere tip."""
    forces = []
    for sensed in (3, 6):
        rig = Rig(plane_model(), replace(load_card("simulated"), sensed=sensed, actuated=3, torque_max=None))
        rig.activate((0.0, 0.0, REST + 0.001))
        rig.press(0.004)
        forces.append(rig.wrench)
    assert np.array_equal(*forces) and forces[0][2] > 1.0
