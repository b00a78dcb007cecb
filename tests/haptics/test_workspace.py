"""Workspace: the map is what it says, and neither clutch, re-anchoring nor scale moves the tool or steps the force."""

import numpy as np
import pytest
from haptics_rig import (
    BLOCK,
    CORNERS,
    EPS_ALERT,
    EPS_BREAK,
    EPS_SAFETY,
    FACES,
    REACH,
    REST,
    TIP_RADIUS,
    Rig,
    block_model,
    plane_model,
    square,
)
from scipy.spatial.transform import Rotation

from haptics.states import CommandKind, EngagementState, Reason
from rtcore.dynamics.inertia import body_inertia
from rtcore.geometry.tree import build_tree
from rtcore.model import ALERT_RESOLUTION, ModelBuilder

OFFSET = (0.01, -0.02, -0.04)


def test_map_from_device_to_scene():
    """x = p + R (s x_device) + anchor, q = q_workspace q_device; the image shown is the tip's."""
    workspace = Rotation.from_rotvec((0.2, 0.4, -0.3))
    device = Rotation.from_rotvec((-0.5, 0.1, 0.2))
    rig = Rig(
        plane_model(tip_offset=OFFSET, height=-5.0),
        scale=3.0,
        workspace_position=(0.1, 0.2, 0.3),
        workspace_orientation=workspace.as_quat(),
    )
    rig.command(CommandKind.LEASE)
    rig.send((0.01, -0.03, 0.02), orientation=device.as_quat())
    coupling = np.array((0.1, 0.2, 0.3)) + workspace.apply(3.0 * np.array((0.01, -0.03, 0.02)))
    tip = coupling + (workspace * device).apply(OFFSET)
    assert np.allclose(rig.output["device_position"], tip, atol=1e-14)
    shown = Rotation.from_quat(rig.output["device_orientation"])
    assert (shown.inv() * workspace * device).magnitude() < 1e-14
    # And back: the tool is at the image, so the render says where the device is.
    assert np.allclose(rig.output["render_position"], (0.01, -0.03, 0.02), atol=1e-14)


def test_the_tool_stays_until_a_first_pose_and_after_the_last_owner():
    rig = Rig(start=(0.0, 0.0, 0.1))
    rig.silence(5)
    rig.command(CommandKind.LEASE)
    rig.silence(5)
    assert np.array_equal(rig.proxy, (0.0, 0.0, 0.1))
    rig.run(3, (0.02, 0.0, 0.1))
    assert np.allclose(rig.proxy, (0.02, 0.0, 0.1), atol=1e-15)
    rig.command(CommandKind.RELEASE)
    left = rig.proxy.copy()
    rig.sample["position"] = (0.1, 0.0, 0.1)
    rig.silence(5)
    assert np.array_equal(rig.proxy, left)


def test_hundred_clutches_at_random_poses():
    """Clutch while pressing, move and turn the device anywhere, let go: no step in tool pose; force only ramps down,
    and none is there when it engages again."""
    random = np.random.default_rng(11)
    rig = Rig(
        plane_model(friction=0.4, tip_offset=OFFSET),
        stiffness=800.0,
        damping=2.0,
        ramp_up_ms=20.0,
        ramp_down_ms=20.0,
        workspace_orientation=Rotation.from_rotvec((0.1, 0.2, 0.3)).as_quat(),
    )
    rig.activate()
    slew = float(rig.chosen["force_slew"])
    pressed = 0
    for _ in range(100):
        # Press somewhere: straight down in the scene.
        down = Rotation.from_quat(rig.chosen["workspace_orientation"]).inv().apply((0.0, 0.0, -1.0))
        aside = random.uniform(-1.0, 1.0, 3) * 1e-4
        begin = np.array(rig.sample["position"])
        depth = rig.proxy[2] - REST + 0.005
        steps = int(np.ceil(depth / 0.001))
        for k in range(steps):
            rig.send(begin + down * depth * (k + 1) / steps + aside)
        pressed += np.linalg.norm(rig.wrench[:3]) > 1.0
        tool, turned = rig.proxy.copy(), rig.output["proxy_orientation"].copy()
        assert rig.command(CommandKind.CLUTCH, 1) == Reason.NONE
        last = np.linalg.norm(rig.wrench[:3])
        target = np.array(rig.sample["position"]) + random.uniform(-0.05, 0.05, 3)
        orientation = Rotation.from_rotvec(random.uniform(-2.0, 2.0, 3)).as_quat()
        begin, first = np.array(rig.sample["position"]), np.array(rig.sample["orientation"])
        if first @ orientation < 0.0:
            orientation = -orientation
        for k in range(40):
            share = (k + 1) / 40
            mixed = (1 - share) * first + share * orientation
            rig.send(begin + share * (target - begin), orientation=mixed / np.linalg.norm(mixed))
            now = np.linalg.norm(rig.wrench[:3])
            assert now <= last + 1e-12 and last - now <= slew * (1 + 1e-12)
            assert np.abs(rig.proxy - tool).max() <= 1e-9
            assert np.abs(rig.output["proxy_orientation"] - turned).max() <= 1e-9
            last = now
        assert rig.status == EngagementState.IDLE and last == 0.0
        assert rig.command(CommandKind.CLUTCH, 0) == Reason.NONE
        assert rig.status == EngagementState.ENGAGING
        assert np.abs(rig.proxy - tool).max() <= 1e-9
        assert np.abs(rig.output["proxy_orientation"] - turned).max() <= 1e-9
        assert np.linalg.norm(rig.wrench) <= 1e-9
        rig.run(25)
        assert np.abs(rig.proxy - tool).max() <= 1e-9
        assert np.linalg.norm(rig.wrench) <= 1e-6
        assert rig.status == EngagementState.ACTIVE
    assert pressed == 100


def exact_product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Hamilton product of quaternions xyzw, in the arithmetic of its arguments."""
    v = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return np.array([*v, p[3] * q[3] - p[:3] @ q[:3]])


def exact_inverse(q: np.ndarray) -> np.ndarray:
    return np.array([-q[0], -q[1], -q[2], q[3]]) / (q @ q)


def exact_turn(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return exact_product(exact_product(q, np.array([*v, 0.0], dtype=v.dtype)), exact_inverse(q))[:3]


def long(values) -> np.ndarray:
    return np.array(values, dtype=np.longdouble)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no arithmetic wider than float64 here")
@pytest.mark.parametrize("away", [0.1, 10.0])
def test_hundred_clutches_put_the_image_where_exact_arithmetic_does(away):
    """Clutches at random poses, now and then with another scale, against the same map in arithmetic of 64 bits.

    What is left of a hundred of them is rounding: of the sizes that were added (a device that goes ``away`` m).
    """
    random = np.random.default_rng(3)
    workspace = Rotation.from_rotvec((0.3, -1.2, 0.4)).as_quat()
    place = np.array((0.1, -0.2, 0.3))
    rig = Rig(plane_model(height=-500.0), scale=0.7, workspace_position=place, workspace_orientation=workspace)
    rig.command(CommandKind.LEASE)
    rig.send((0.01, 0.02, 0.03))
    frame, scale = long(rig.chosen["workspace_orientation"]), long(0.7)
    anchor, turned = long((0.0, 0.0, 0.0)), long((0.0, 0.0, 0.0, 1.0))

    def unanchored():
        position, orientation = long(rig.sample["position"]), long(rig.row["device_orientation"])
        return long(place) + exact_turn(frame, scale * position), exact_product(frame, orientation)

    def image():
        position, orientation = unanchored()
        orientation = exact_product(turned, orientation)
        return position + anchor, orientation / np.sqrt(orientation @ orientation)

    largest = np.zeros(2)
    for k in range(100):
        begin = np.array(rig.sample["position"])
        rig.send(begin + random.uniform(-1.0, 1.0, 3) * away, orientation=Rotation.random(rng=random).as_quat())
        held_position, held_orientation = image()
        assert rig.command(CommandKind.CLUTCH, 1) == Reason.NONE
        for _ in range(3):
            rig.send(random.uniform(-1.0, 1.0, 3) * away, orientation=Rotation.random(rng=random).as_quat())
        if k % 4 == 0:
            new = float(random.uniform(0.5, 2.0))
            assert rig.command(CommandKind.SET_SCALE, new) == Reason.NONE
            scale = long(new)
        assert rig.command(CommandKind.CLUTCH, 0) == Reason.NONE
        position, orientation = unanchored()
        anchor, turned = held_position - position, exact_product(held_orientation, exact_inverse(orientation))
        # Away and back: the image is where it was, and where it has to be.
        here = np.array(rig.sample["position"]), np.array(rig.sample["orientation"])
        rig.send(random.uniform(-1.0, 1.0, 3) * away, orientation=Rotation.random(rng=random).as_quat())
        rig.send(*here)
        position, orientation = image()
        drift = np.linalg.norm((rig.row["image_position"] - position).astype(float))
        angle = 2.0 * np.linalg.norm(exact_product(long(rig.row["image_orientation"]), exact_inverse(orientation))[:3])
        largest = np.maximum(largest, [drift, float(angle)])
    assert rig.row["image_position"] == pytest.approx(rig.proxy, abs=1e-12)
    assert largest[0] <= 1e-9 and largest[1] <= 1e-9
    # By far: a hundred times the rounding of one sum and of one product.
    assert largest[0] <= 100 * 4 * np.finfo(float).eps * (100 * away) and largest[1] <= 100 * 16 * np.finfo(float).eps


def test_while_the_clutch_ramps_an_adapter_sees_the_tool_move_along():
    """The device moves away during the ramp: the stretch that the impedance implies stays, so nothing pulls it back."""
    rig = Rig(stiffness=800.0, damping=0.0)
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.press(0.003)
    stretch = rig.output["render_position"] - rig.sample["position"]
    rig.command(CommandKind.CLUTCH, 1)
    begin = np.array(rig.sample["position"])
    for k in range(60):
        rig.send(begin + k * np.array([0.001, 0.0, 0.0005]))
        assert np.allclose(rig.output["render_position"] - rig.sample["position"], stretch, atol=1e-9)
    assert np.allclose(rig.output["render_twist"][:3], (1.0, 0.0, 0.5), atol=1e-6)


@pytest.mark.parametrize("let_go_after", [5, 50])
def test_a_short_tap_on_the_clutch_engages_again_after_its_ramp(let_go_after):
    rig = Rig(ramp_down_ms=100.0, ramp_up_ms=30.0)
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.press(0.004)
    tool = rig.proxy.copy()
    rig.command(CommandKind.CLUTCH, 1)
    rig.run(let_go_after)
    assert rig.command(CommandKind.CLUTCH, 0) == Reason.NONE
    assert rig.status == EngagementState.RELEASING
    assert rig.command(CommandKind.CLUTCH, 0) == Reason.WRONG_STATE
    rig.run(100 - let_go_after - 2)
    assert (rig.status, rig.reason) == (EngagementState.ENGAGING, Reason.CLUTCH)
    assert np.abs(rig.proxy - tool).max() <= 1e-9


def test_clutch_without_forces_moves_the_device_only():
    rig = Rig()
    rig.command(CommandKind.LEASE)
    rig.run(5)
    tool = rig.proxy.copy()
    assert rig.command(CommandKind.CLUTCH, 1) == Reason.NONE
    rig.run(20, (0.05, 0.05, 0.05))
    assert np.abs(rig.proxy - tool).max() <= 1e-12
    assert rig.command(CommandKind.CLUTCH, 0) == Reason.NONE
    assert rig.status == EngagementState.IDLE
    rig.send((0.06, 0.05, 0.05))
    assert np.allclose(rig.proxy - tool, (0.01, 0.0, 0.0), atol=1e-12)


def test_disarming_while_clutched_does_not_move_the_tool():
    rig = Rig(ramp_down_ms=20.0)
    rig.activate()
    rig.command(CommandKind.CLUTCH, 1)
    rig.glide((0.03, 0.0, 0.1))
    assert rig.status == EngagementState.IDLE
    tool = rig.proxy.copy()
    assert rig.command(CommandKind.DISARM) == Reason.NONE
    assert np.abs(rig.proxy - tool).max() <= 1e-12


@pytest.mark.parametrize("setup", ["clutched", "ramping", "idle"])
@pytest.mark.parametrize("scale", [0.25, 3.0])
def test_scale_changes_keep_the_tool_and_the_force(setup, scale):
    rig = Rig(plane_model(tip_offset=OFFSET), stiffness=400.0, damping=0.0, ramp_down_ms=100.0)
    rig.activate()
    rig.press(0.004 - OFFSET[2])
    if setup == "idle":
        rig.command(CommandKind.DISARM)
        rig.run(110)
    else:
        rig.command(CommandKind.CLUTCH, 1)
        rig.run(110 if setup == "clutched" else 20)
    tool, forces = rig.proxy.copy(), [rig.wrench[2]]
    implied = rig.output["render_position"] - rig.sample["position"]
    rig.send()
    forces.append(rig.wrench[2])
    assert rig.command(CommandKind.SET_SCALE, scale) == Reason.NONE
    forces.append(rig.wrench[2])
    assert rig.output["render_position"] - rig.sample["position"] == pytest.approx(implied, abs=1e-9)
    assert np.abs(rig.proxy - tool).max() <= 1e-9
    # The ramp goes on in equal steps, as if nothing had happened.
    assert forces[0] - forces[1] == pytest.approx(forces[1] - forces[2], abs=1e-9)
    if setup == "ramping":
        assert forces[0] > 1.0


@pytest.mark.parametrize("scale", [0.25, 1.0, 3.0])
def test_scale_is_honest(scale):
    """One device metre is ``scale`` scene metres, and the same device depth gives the same force at every scale."""
    rig = Rig(stiffness=500.0, damping=0.0)
    rig.command(CommandKind.LEASE)
    rig.run(5, (0.0, 0.0, 0.1))
    assert rig.command(CommandKind.SET_SCALE, scale) == Reason.NONE
    before = rig.output["device_position"].copy()
    rig.send((0.01, 0.0, 0.1))
    assert np.allclose(rig.output["device_position"] - before, (0.01 * scale, 0.0, 0.0), atol=1e-14)
    rig.command(CommandKind.ARM, 1)
    rig.run(520)
    touching = 0.1 - (0.1 - REST) / scale
    for k in range(100):
        rig.send((0.01, 0.0, 0.1 + (touching - 0.002 - 0.1) * (k + 1) / 100))
    rig.run(20)
    assert rig.wrench[2] == pytest.approx(1.0, abs=1e-4)


def goal(rig: Rig) -> dict[str, np.ndarray]:
    return {name: np.array(rig.row["goal"][name]) for name in rig.row["goal"].dtype.names}


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_the_scene_feels_the_springs_of_the_hand(scale):
    """The same force at a stretch that the scale makes longer: k / s and b / s; the same torque by forces that have the
    arms of the scene: k_r s. The damper that turns has the ratio of the springs."""
    rig = Rig(block_model(turning=1e-4), stiffness=500.0, damping=2.0, rotational_stiffness=0.25, scale=scale)
    rig.command(CommandKind.LEASE)
    rig.send()
    found = goal(rig)
    assert found["stiffness"] == 500.0 / scale
    assert found["rotational_stiffness"] == 0.25 * scale
    assert found["damping"] == 2.0 / scale
    assert found["rotational_damping"] == pytest.approx(2.0 * 0.25 * scale / 500.0, rel=1e-15)


def test_gains_and_scale_that_change_change_the_springs_too():
    rig = Rig(block_model(turning=1e-4), stiffness=500.0, damping=2.0, rotational_stiffness=0.25)
    rig.command(CommandKind.LEASE)
    rig.send()
    assert rig.command(CommandKind.SET_GAINS, 300.0, 1.0) == Reason.NONE
    rig.send()
    found = goal(rig)
    assert (found["stiffness"], found["damping"], found["rotational_stiffness"]) == (300.0, 1.0, 0.25)
    assert rig.command(CommandKind.SET_SCALE, 2.0) == Reason.NONE
    rig.send()
    found = goal(rig)
    assert (found["stiffness"], found["damping"], found["rotational_stiffness"]) == (150.0, 0.5, 0.5)


def test_the_goal_moves_as_the_hand_does_in_scene_axes():
    """Scale and workspace turn velocities; a clutched hand moves nothing."""
    workspace = Rotation.from_rotvec((0.2, 0.4, -0.3))
    rig = Rig(
        block_model(turning=1e-4),
        scale=3.0,
        workspace_orientation=workspace.as_quat(),
        start=tuple(3.0 * workspace.apply((0.0, 0.0, 0.1))),
    )
    rig.sample["position"] = (0.0, 0.0, 0.1)
    rig.command(CommandKind.LEASE)
    twist = (0.01, -0.02, 0.03, 0.1, 0.2, -0.3)
    for k in range(50):
        position = (1e-5 * k, -2e-5 * k, 0.1 + 3e-5 * k)
        rig.send(position, orientation=Rotation.from_rotvec(np.array(twist[3:]) * 1e-3 * k).as_quat(), twist=twist)
    found = goal(rig)
    np.testing.assert_allclose(found["goal_velocity"], 3.0 * workspace.apply(twist[:3]), rtol=1e-9)
    np.testing.assert_allclose(found["goal_angular_velocity"], workspace.apply(twist[3:]), rtol=1e-9)
    assert rig.command(CommandKind.CLUTCH, 1) == Reason.NONE
    rig.send(twist=twist)
    found = goal(rig)
    assert not found["goal_velocity"].any() and not found["goal_angular_velocity"].any()
    assert found["stiffness"] == 0.0, "nobody pulls"


def test_without_a_pose_no_spring_holds_the_tool():
    rig = Rig(block_model(turning=1e-4))
    rig.silence(3)
    assert goal(rig)["stiffness"] == 0.0
    rig.command(CommandKind.LEASE)
    rig.send()
    assert goal(rig)["stiffness"] > 0.0
    rig.command(CommandKind.RELEASE)
    rig.silence(3)
    assert goal(rig)["stiffness"] == 0.0


def test_nobody_can_swing_the_tool_out_of_the_world():
    """Clutch and swing at the largest scale, over and over: the tool stays where its distances can be kept."""
    rig = Rig(scale=1e3)
    rig.command(CommandKind.LEASE)
    rig.send((0.0, 0.0, 1e-4))
    border = EPS_ALERT / ALERT_RESOLUTION
    for _ in range(20):
        rig.send((0.0, 0.0, 900.0))
        rig.command(CommandKind.CLUTCH, 1)
        rig.send((0.0, 0.0, -900.0))
        rig.command(CommandKind.CLUTCH, 0)
        assert np.abs(rig.proxy).max() <= border
    assert rig.proxy[2] == border
    rig.send((0.0, 0.0, -1e3))
    rig.silence(5)
    assert rig.proxy[2] >= TIP_RADIUS + EPS_ALERT


def test_a_hand_that_turns_about_the_tip_of_a_tool_with_mass_leaves_it_there():
    """The goal of the spring is the tip's centre, and so is its velocity: a handle goes round it, the tip stands.

    The velocity is a tick old: what is left is B / K times the way by which that of the handle turns in one.
    """
    offset = np.array((0.0, 0.0, -0.1))
    builder = ModelBuilder()
    builder.add_body(builder.add_mesh(*build_tree(*square(1.0))))
    tool = builder.add_mesh(*build_tree(BLOCK * CORNERS, FACES))
    inertia = body_inertia(0.05, np.diag([5e-6] * 3), (0.0, 0.0, 0.0))
    model = builder.build(
        0.0, offset, EPS_ALERT, EPS_SAFETY, EPS_BREAK, tool_mesh_id=tool, turning=REACH**2, tool_inertia=inertia
    )
    tip = np.array((0.0, 0.0, 0.1))
    rig = Rig(model, tool_reach=REACH, ramp_up_ms=20.0, start=tip, stiffness=400.0, damping=5.0)
    rig.activate(tip - offset)
    for k in range(40):
        turn = Rotation.from_rotvec((0.0, 2e-3 * (k + 1), 0.0))
        speed = -np.cross((0.0, 2.0, 0.0), turn.apply(offset))
        rig.send(tip - turn.apply(offset), turn.as_quat(), twist=(*speed, 0.0, 2.0, 0.0))
    assert np.linalg.norm(rig.proxy - tip) <= 1e-5
