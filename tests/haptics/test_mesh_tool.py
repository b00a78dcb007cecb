"""A tool mesh: its orientation is engaged and felt like its position, without a jump and within the same limits."""

from dataclasses import replace

import numpy as np
import pytest
from haptics_rig import BLOCK, EPS_ALERT, REACH, Rig, block_model, plane_model
from scipy.spatial.transform import Rotation

from haptics.cards import load_card
from haptics.settings import make_settings
from haptics.states import CommandKind, EngagementState, Reason
from rtcore.dynamics.inertia import body_inertia
from rtcore.tables import DEGRADED_NUMBERS

LOW = (0.0, 0.0, BLOCK + 0.002)
"""Too low over the plane for the cube to turn onto an edge."""
GAIN = 0.5
"""Of the rotational spring, N·m/rad."""
TOP = 0.5
"""N·m: torque_max of the simulated device, less than GAIN times 160 degrees."""


def about_x(angle: float) -> np.ndarray:
    return Rotation.from_rotvec((angle, 0.0, 0.0)).as_quat()


def block(**options) -> Rig:
    fields = {"tool_reach": REACH, "rotational_stiffness": GAIN, "start": LOW, "ramp_up_ms": 20.0}
    return Rig(block_model(), **(fields | options))


def turned(rig: Rig) -> Rotation:
    """From the image of the device to the tool, scene."""
    image = Rotation.from_quat(rig.output["device_orientation"])
    return Rotation.from_quat(rig.output["proxy_orientation"]) * image.inv()


def test_a_tool_that_cannot_turn_as_the_device_is_too_far_until_it_is_re_anchored():
    """Where it is, but turned by 45 degrees: refused; with leave to re-anchor forces start at zero and stay there."""
    rig = block()
    assert rig.command(CommandKind.LEASE) == Reason.NONE
    rig.run(20, LOW, orientation=about_x(np.pi / 4))
    assert np.allclose(rig.output["proxy_position"], rig.output["device_position"], atol=2e-3)
    assert turned(rig).magnitude() * REACH > 0.005
    assert rig.command(CommandKind.ARM, 0) == Reason.TOO_FAR
    assert rig.command(CommandKind.ARM, 1) == Reason.NONE
    proxy = rig.output["proxy_orientation"].copy()
    for _ in range(60):
        rig.send()
        assert np.abs(rig.wrench).max() < 1e-12
        assert turned(rig).magnitude() < 1e-9
    assert rig.status == EngagementState.ACTIVE
    assert np.allclose(rig.output["proxy_orientation"], proxy, atol=1e-12)


def test_a_sphere_tip_engages_however_it_is_turned():
    rig = Rig(plane_model(), start=(0.0, 0.0, 0.1))
    rig.command(CommandKind.LEASE)
    rig.run(3, (0.0, 0.0, 0.1), orientation=about_x(2.0))
    assert rig.command(CommandKind.ARM, 0) == Reason.NONE
    rig.run(2)
    assert rig.status == EngagementState.ENGAGING


@pytest.mark.parametrize("workspace", [(0.0, 0.0, 0.0), (0.0, 0.0, 1.2)])
def test_the_torque_turns_the_hand_back_towards_the_blocked_tool(workspace):
    """K_r times the angle about the axis from the image to the tool, in device axes: against the turn of the device."""
    frame = Rotation.from_rotvec(workspace)
    rig = block(workspace_orientation=frame.as_quat())
    rig.activate(LOW)
    for k in range(60):
        rig.send(LOW, orientation=about_x(0.01 * k))
    rig.run(20)
    left = turned(rig).as_rotvec()
    angle = np.linalg.norm(left)
    assert angle > 0.1
    expected = frame.inv().apply(GAIN * left)
    assert np.allclose(rig.wrench[3:], expected, atol=1e-12)
    assert rig.wrench[3] < 0.0 and np.abs(rig.wrench[4:]).max() < 1e-3
    # No spring is rendered for it: whoever closes the impedance gets all of it as feed-forward.
    assert np.array_equal(rig.output["feed_forward"][3:], rig.wrench[3:])
    assert not rig.output["stiffness"][3:].any()


def test_turning_all_the_way_round_takes_no_step():
    """Past half a turn the tool swings round the other way; the torque follows its angle down to zero at half a turn,
    within slew and maximum."""
    rig = block()
    rig.activate(LOW)
    rig.send(LOW)
    last, angles = rig.wrench[3:], []
    for k in range(350):
        rig.send(LOW, orientation=about_x(0.02 * k))
        torque = rig.wrench[3:]
        assert np.linalg.norm(torque) <= rig.chosen["torque_max"] + 1e-12
        assert np.linalg.norm(torque - last) <= rig.chosen["torque_slew"] + 1e-12
        left = turned(rig).as_rotvec()
        angles.append(np.linalg.norm(left))
        size = min(GAIN * angles[-1], TOP, TOP * (np.pi - angles[-1]) / np.radians(20.0))
        expected = size * left / max(angles[-1], 1e-300)
        assert np.allclose(rig.output["coupling_wrench"][3:], expected, atol=1e-12)
        last = torque
    assert max(angles) > 2.5
    assert rig.status == EngagementState.ACTIVE


def test_free_turning_feels_nothing():
    rig = block(start=(0.0, 0.0, 0.2))
    rig.activate((0.0, 0.0, 0.2))
    random = np.random.default_rng(4)
    turn, rate = Rotation.identity(), np.zeros(3)
    for _ in range(200):
        rate = 0.9 * rate + random.normal(0.0, 0.005, 3)
        turn = Rotation.from_rotvec(rate) * turn
        rig.send((0.0, 0.0, 0.2), orientation=turn.as_quat())
        assert np.abs(rig.wrench).max() < 1e-9
        assert turned(rig).magnitude() < 1e-9


def test_a_device_that_turns_faster_than_a_hand_is_taken_for_a_fault():
    """Only where turning is felt: a sphere tip without offset does not care."""
    high = (0.0, 0.0, 0.2)
    for rig, state in (
        (block(start=high), EngagementState.RELEASING),
        (Rig(plane_model(), start=high, ramp_up_ms=20.0), EngagementState.ACTIVE),
    ):
        rig.activate(high)
        rig.send(high, orientation=about_x(0.15))
        assert rig.status == EngagementState.ACTIVE
        rig.send(high, orientation=about_x(0.9))
        assert rig.status == state
    rig = block(start=high)
    rig.activate(high)
    rig.send(high, orientation=about_x(1.0))
    assert rig.reason == Reason.DEVICE_JUMP


def test_only_a_blocked_tool_renders_damping_and_stands_still():
    """The twist that the client gives is the tool's while it follows, and none while it is held back."""
    rig = block(start=(0.0, 0.0, 0.1))
    rig.activate((0.0, 0.0, 0.1))
    spinning = (0.0, 0.0, 0.0, 0.0, 0.0, 3.0)
    rig.send((0.0, 0.0, 0.1), twist=spinning)
    assert rig.output["render_twist"][5] == 3.0 and not rig.output["damping"].any()
    rig.glide((0.0, 0.0, BLOCK - 0.003))
    for _ in range(20):
        rig.send(twist=spinning)
    assert rig.proxy[2] >= BLOCK + EPS_ALERT * (1.0 - 1e-6)
    assert rig.output["render_twist"][5] == 0.0 and rig.output["damping"][2] > 0.0


def test_the_card_caps_the_rotational_spring():
    card = load_card("simulated")
    assert make_settings(card, rotational_stiffness=7.0)["rotational_stiffness"][0] == 7.0
    card = replace(card, rotational_stiffness_max=2.0)
    assert make_settings(card, rotational_stiffness=7.0)["rotational_stiffness"][0] == 2.0
    assert make_settings(card, rotational_stiffness=1.0)["rotational_stiffness"][0] == 1.0
    for name in ("rotational_stiffness", "tool_reach"):
        with pytest.raises(ValueError, match=name):
            make_settings(card, **{name: -1.0})


def kept(rig: Rig, ticks: int = 60) -> None:
    """Press and turn into the ground; every tick comes back, and the tool is somewhere."""
    rig.record["budget"] = (400, 2, 5, 0)
    for k in range(ticks):
        rig.send(np.array(LOW) - (0.0, 0.0, 1e-4 * k), orientation=about_x(0.002 * k))
        assert np.isfinite(rig.proxy).all()
        assert np.linalg.norm(rig.output["proxy_orientation"]) == pytest.approx(1.0, abs=1e-9)


INERTIA = body_inertia(0.05, np.diag([5e-6] * 3), (0.0, 0.0, 0.0))
TOOLS = {"carried": {}, "sliding": {"turning": REACH**2}, "heavy": {"turning": REACH**2, "inertia": INERTIA}}


@pytest.mark.parametrize("stiffness", [5e-324, 1e-310, 1e-200, np.nan])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_pull_without_a_sound_number_is_no_hand(tool, stiffness):
    """The tool stays where it is; with sound gains it follows again, and forces come back."""
    rig = Rig(block_model(**TOOLS[tool]), tool_reach=REACH, rotational_stiffness=GAIN, start=LOW, ramp_up_ms=20.0)
    rig.command(CommandKind.LEASE)
    rig.run(3, LOW)
    place = rig.proxy.copy()
    rig.row["stiffness"] = rig.row["stiffness_goal"] = stiffness
    kept(rig)
    assert np.abs(rig.proxy - place).max() <= 1e-12
    assert rig.command(CommandKind.SET_GAINS, 400.0, 1.0) == Reason.NONE
    rig.record["budget"] = (20000, 8, 50, 0)
    rig.run(60)
    assert np.linalg.norm(rig.proxy - place) > 5e-4
    assert rig.command(CommandKind.ARM, 1) == Reason.NONE
    rig.run(30)
    assert rig.status == EngagementState.ACTIVE and np.isfinite(rig.wrench).all()


@pytest.mark.parametrize("lost", ["momentum", "linear"])
def test_a_motion_without_numbers_costs_a_fault_and_no_more(lost):
    """A velocity of the tool that is NaN: it stands for a tick, which says so, and forces ramp down to FAULT."""
    rig = Rig(block_model(**TOOLS["heavy"]), tool_reach=REACH, rotational_stiffness=GAIN, start=LOW, ramp_up_ms=20.0)
    rig.activate(LOW)
    rig.glide((0.0, 0.0, BLOCK - 0.001))
    rig.run(20)
    place = rig.proxy.copy()
    rig.state.velocities[-1][lost] = np.nan
    rig.send()
    assert rig.output["report"]["degraded"] & DEGRADED_NUMBERS
    assert np.array_equal(rig.proxy, place)
    assert np.isfinite(rig.wrench).all()
    kept(rig, 20)
    assert (rig.status, rig.reason) == (EngagementState.FAULT, Reason.NOT_FINITE)
    assert not rig.output["report"]["degraded"] & DEGRADED_NUMBERS
    assert rig.command(CommandKind.RESET) == Reason.NONE
    rig.record["budget"] = (20000, 8, 50, 0)
    rig.run(30, (0.0, 0.0, 0.1), orientation=about_x(0.0))
    rig.run(200)
    assert rig.proxy == pytest.approx((0.0, 0.0, 0.1), abs=1e-2)
