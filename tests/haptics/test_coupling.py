"""Coupling: the spring is one, in SI at the device; the damper neither pulls nor drags; torque does the same work."""

import numpy as np
import pytest
from haptics_rig import REST, Rig, plane_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from haptics.coupling import TAPER, damper, turning_torque
from haptics.states import CommandKind
from rtcore.spatial import rotate


@pytest.mark.parametrize("stiffness", [50.0, 400.0, 2000.0])
@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_spring_law(stiffness, scale):
    """At rest the force is K times the stretch over the scale, along it: to rounding."""
    rig = Rig(stiffness=stiffness, damping=3.0, scale=scale, start=(0.0, 0.0, 0.1))
    rig.activate((0.0, 0.0, 0.1 / scale))
    for depth in (0.0, 0.0005, 0.002):
        # Long enough for the damper's window to hold nothing but rest.
        rig.glide((0.01, -0.02, (REST - depth) / scale))
        rig.run(80)
        stretch = rig.proxy - rig.output["device_position"]
        assert stretch[2] == pytest.approx(depth, abs=2e-8)
        expected = stiffness / scale * stretch
        assert np.allclose(rig.output["coupling_wrench"][:3], expected, rtol=0, atol=1e-12 * max(1, stiffness))
        assert np.allclose(rig.wrench[:3], expected, rtol=0, atol=1e-12 * max(1, stiffness))


def test_force_at_the_device_equals_force_in_the_scene_turned_back():
    """A workspace turned by 90 degrees about x: the plane's normal is the device's y axis."""
    half = np.sqrt(0.5)
    rig = Rig(stiffness=500.0, damping=0.0, workspace_orientation=(half, 0.0, 0.0, half))
    rig.activate((0.0, 0.1, 0.0))
    rig.glide((0.0, REST - 0.003, 0.0))
    rig.run(80)
    assert np.allclose(rig.wrench[:3], (0.0, 1.5, 0.0), atol=1e-4)


def test_an_adapter_can_close_the_spring_itself():
    """K (x_proxy - x_device) from the render alone is the plain wrench, also scaled, turned and re-anchored."""
    half = np.sqrt(0.5)
    rig = Rig(
        stiffness=500.0,
        damping=0.0,
        scale=2.0,
        workspace_orientation=(half, 0.0, 0.0, half),
        workspace_position=(0.1, 0.2, 0.3),
    )
    rig.command(CommandKind.LEASE)
    rig.run(200, (0.0, -0.4, 0.0))
    rig.command(CommandKind.ARM, 1)
    rig.run(600)
    begin = np.array(rig.sample["position"])
    for k in range(60):
        rig.send(begin + k * np.array([0.0005, -0.0001, 0.0]))
    rig.run(20)
    out = rig.output
    closed = out["stiffness"][:3] * (out["render_position"] - rig.sample["position"]) + out["feed_forward"][:3]
    assert np.linalg.norm(out["wrench"][:3]) > 1.0
    assert np.allclose(closed, out["wrench"][:3], atol=1e-11)
    assert np.allclose(out["render_orientation"], rig.sample["orientation"], atol=1e-12)


@given(stiffness=st.floats(1, 1e4), damping=st.floats(0, 100), stretch=st.floats(0, 0.1), rate=st.floats(-5, 5))
def test_the_damper_never_pulls_and_stays_within_the_spring(stiffness, damping, stretch, rate):
    force = damper(stiffness, damping, stretch, rate)
    assert stiffness * stretch + force >= 0.0
    assert abs(force) <= stiffness * stretch
    assert force * rate >= 0.0 or force == 0.0


def test_free_motion_feels_nothing():
    """Whatever the motion, twist given or not: while the tool follows, no force and no rendered damping."""
    rig = Rig(damping=10.0, stiffness=2000.0)
    rig.activate((0.0, 0.0, 0.1))
    random = np.random.default_rng(2)
    position = np.array([0.0, 0.0, 0.1])
    velocity = np.zeros(3)
    for k in range(500):
        velocity = 0.95 * velocity + random.normal(0.0, 0.1, 3)
        velocity[2] += 2.0 * (0.1 - position[2])
        position = position + 1e-3 * velocity
        rig.send(position, twist=(*random.normal(0.0, 1.0, 3), 0.0, 0.0, 0.0) if k % 2 else None)
        assert rig.output["report"]["contact_count"] == 0
        assert np.all(np.abs(rig.wrench) < 1e-10)


def test_a_wall_is_not_sticky():
    """Pulled away at 1 m/s with the largest damping, the wall never pulls back: the normal force stays >= 0."""
    rig = Rig(damping=10.0, stiffness=400.0)
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.press(0.01)
    for k in range(40):
        rig.send((0.0, 0.0, REST - 0.01 + 0.001 * k))
        assert rig.wrench[2] >= 0.0
    assert np.all(np.abs(rig.wrench) < 1e-10)


def test_pressing_in_is_damped_and_pulling_out_too():
    """Between damped and undamped coupling at the same depth: more force going in, less coming out."""
    forces = {}
    for damping in (0.0, 5.0):
        # Without the passivity controller, which would damp the spring that has no damper.
        rig = Rig(damping=damping, stiffness=400.0, passivity=False)
        rig.activate((0.0, 0.0, REST + 0.001))
        rig.press(0.004, ticks=40)
        down = [REST - 0.004 - 5e-5 * k for k in range(40)]
        for z in down:
            rig.send((0.0, 0.0, z))
        going_in = rig.wrench[2]
        rig.run(30)
        for z in down[::-1]:
            rig.send((0.0, 0.0, z))
            if z == down[20]:
                coming_out = rig.wrench[2]
        forces[damping] = going_in, coming_out
    assert forces[5.0][0] - forces[0.0][0] == pytest.approx(5.0 * 0.05, rel=1e-3)
    assert forces[0.0][1] - forces[5.0][1] == pytest.approx(5.0 * 0.05, rel=1e-3)


def test_sliding_is_not_damped():
    """Steady sliding without friction at 0.2 m/s: nothing holds back, with the largest damping."""
    rig = Rig(damping=10.0, stiffness=400.0)
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.press(0.005)
    for k in range(100):
        rig.send((2e-4 * k, 0.0, REST - 0.005))
    assert rig.wrench[2] == pytest.approx(2.0, abs=1e-3)
    assert np.abs(rig.wrench[:2]).max() < 1e-6


def test_friction_is_felt_up_to_its_cone():
    """Dragged sideways with mu = 0.5: the tangential force grows with the spring, then stays at mu_k times normal."""
    rig = Rig(plane_model(friction=0.5), damping=0.0, stiffness=400.0)
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.press(0.005)
    rig.run(30, (0.0002, 0.0, REST - 0.005))
    assert rig.wrench[0] == pytest.approx(-400.0 * 0.0002, rel=1e-3)
    for k in range(200):
        rig.send((0.0002 + 1e-4 * k, 0.0, REST - 0.005))
    assert rig.wrench[2] == pytest.approx(2.0, rel=1e-3)
    assert rig.wrench[0] == pytest.approx(-0.375 * 2.0, rel=1e-2)


def test_hold_keeps_the_spring_and_lets_the_rest_fade():
    rig = Rig(plane_model(tip_offset=(0.02, 0.0, 0.0)), damping=10.0, stiffness=400.0)
    rig.activate((-0.02, 0.0, REST + 0.001))
    rig.press(0.005)
    torque = rig.wrench[4]
    assert torque == pytest.approx(-0.02 * 2.0, rel=1e-3)
    for k in range(20):
        rig.send((-0.02, 0.0, REST - 0.005 - 2e-5 * k))
    spring = 400.0 * (rig.proxy[2] - rig.output["device_position"][2])
    assert rig.wrench[2] > spring * 1.02
    rig.silence(19)
    assert rig.output["stiffness"][0] == 400.0
    assert rig.wrench[2] == pytest.approx(spring, rel=0.01)
    assert abs(rig.wrench[4]) < 0.1 * abs(torque)
    assert 0.0 < rig.output["damping"][0] < 1.0


@given(
    axis=st.tuples(*[st.floats(-1, 1)] * 3),
    offset=st.tuples(st.floats(-0.05, 0.05), st.floats(-0.05, 0.05), st.floats(-0.05, 0.05)),
    scale=st.sampled_from([0.5, 1.0, 3.0]),
)
@settings(max_examples=30, deadline=None)
def test_torque_is_the_tip_force_on_its_lever(axis, offset, scale):
    """tau = (lever / scale) x F, both in device axes; the lever is the tip's, turned with the device."""
    turn = Rotation.from_rotvec(axis)
    workspace = Rotation.from_rotvec((0.3, -0.2, 0.5))
    orientation = turn.as_quat()
    lever = (workspace * turn).apply(offset)
    rig = Rig(
        plane_model(tip_offset=offset),
        stiffness=300.0,
        damping=0.0,
        scale=scale,
        workspace_orientation=workspace.as_quat(),
        start=(0.0, 0.0, 0.2),
    )

    def device(tip):
        return workspace.inv().apply(np.array(tip) - lever) / scale

    rig.command(CommandKind.LEASE)
    rig.run(3, device((0.0, 0.0, 0.2)), orientation=orientation)
    rig.command(CommandKind.ARM, 1)
    rig.run(520)
    for k in range(100):
        rig.send(device((0.0, 0.0, 0.2 - (0.2 - REST + 0.004 * scale) * (k + 1) / 100)))
    rig.run(30)
    force, torque = rig.wrench[:3], rig.wrench[3:]
    assert np.allclose(force, workspace.inv().apply((0.0, 0.0, 1.2)), atol=1e-3)
    assert np.allclose(torque, np.cross(workspace.inv().apply(lever) / scale, force), atol=1e-10)
    assert np.allclose(rig.output["feed_forward"][3:], torque, atol=1e-12)


def test_a_device_without_torque_gets_none():
    rig = Rig(plane_model(tip_offset=(0.03, 0.0, 0.0)), card="touch")
    rig.activate((-0.03, 0.0, REST + 0.001))
    rig.press(0.005)
    assert rig.wrench[2] > 1.0
    assert np.all(rig.wrench[3:] == 0.0) and np.all(rig.output["feed_forward"] == 0.0)


@given(v=st.tuples(*[st.floats(-10, 10)] * 3), axis=st.tuples(*[st.floats(-3, 3)] * 3))
def test_rotation_agrees_with_scipy(v, axis):
    turn = Rotation.from_rotvec(axis)
    assert np.allclose(rotate(tuple(turn.as_quat()), v), turn.apply(v), atol=1e-13 * (1 + np.linalg.norm(v)))


@given(stiffness=st.floats(0.01, 10.0), largest=st.just(0.0) | st.floats(0.01, 10.0))
@settings(max_examples=50, deadline=None)
def test_the_rotational_spring_has_no_jump_and_ends_at_half_a_turn(stiffness, largest):
    """Torque of the angle: K_r times it up to the largest, then level, then to zero within the last 20 degrees, with no
    step anywhere: neighbours of 1e-6 rad differ by at most the steepest slope, of either side."""
    angles = np.linspace(0.0, np.pi, 20001)
    torques = np.array([turning_torque(stiffness, largest, angle) for angle in angles])
    top = stiffness * (np.pi - TAPER) if largest == 0.0 else min(largest, stiffness * (np.pi - TAPER))
    assert torques[0] == 0.0 and torques[-1] == 0.0 and torques.max() == pytest.approx(top, rel=1e-3)
    steepest = max(stiffness, top / TAPER) * (angles[1] - angles[0])
    assert np.abs(np.diff(torques)).max() <= steepest * (1 + 1e-9)
    near = angles < 0.999 * min(top / stiffness, np.pi - TAPER)
    assert np.allclose(torques[near], stiffness * angles[near], rtol=1e-14)


def test_the_damped_law_brakes_the_device_always_and_in_all_directions():
    """force = K d - B v: in free motion the drag of B alone, into a wall and along it as well; none at rest."""
    rig = Rig(damping=4.0, stiffness=400.0, law="damped", passivity=False)
    rig.activate((0.0, 0.0, REST + 0.02))
    assert np.abs(rig.wrench).max() < 1e-9
    step = np.array([1e-4, 5e-5, -1e-4])
    position = np.array(rig.sample["position"])
    for _ in range(60):
        position = position + step
        rig.send(position)
    assert np.allclose(rig.wrench[:3], -4.0 * step * 1e3, rtol=1e-6)
    # Who closes the loop gets the damper too, against a proxy that it need not follow.
    assert rig.output["damping"][0] == 4.0 and np.all(rig.output["render_twist"][:3] == 0.0)
    while position[2] > REST - 0.005:
        position = position + step
        rig.send(position)
    spring = 400.0 * (rig.proxy - rig.output["device_position"])
    assert spring[2] > 1.0 and np.allclose(rig.wrench[:3], spring - 4.0 * step * 1e3, rtol=1e-6, atol=1e-9)
    rig.run(60)
    assert np.allclose(rig.wrench[:3], 400.0 * (rig.proxy - rig.output["device_position"]), atol=1e-9)


def test_the_damped_law_is_the_torques_on_the_lever_as_well():
    rig = Rig(plane_model(tip_offset=(0.02, 0.0, 0.0)), damping=4.0, stiffness=400.0, law="damped", passivity=False)
    rig.activate((0.0, 0.0, 0.1))
    for k in range(60):
        rig.send((0.0, 0.0, 0.1 - 1e-4 * k))
    assert rig.wrench[2] == pytest.approx(0.4, rel=1e-6)
    assert rig.wrench[4] == pytest.approx(-0.02 * 0.4, rel=1e-6)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_spring_that_pulls_the_tool_may_have_gains_of_its_own(scale):
    """By default those of the hand, by SET_GAINS too; its own stay, and the hand feels them not."""
    rig = Rig(stiffness=400.0, damping=2.0, scale=scale)
    rig.activate((0.0, 0.0, 0.1 / scale))
    assert (rig.row["goal"]["stiffness"], rig.row["goal"]["damping"]) == (400.0 / scale, 2.0 / scale)
    rig.command(CommandKind.SET_GAINS, 600.0, 3.0)
    rig.run(100)
    assert (rig.row["goal"]["stiffness"], rig.row["goal"]["damping"]) == (600.0 / scale, 3.0 / scale)
    rig = Rig(stiffness=400.0, damping=2.0, scale=scale, world_stiffness=1500.0, world_damping=0.0)
    rig.activate((0.0, 0.0, (REST + 0.001) / scale))
    rig.command(CommandKind.SET_GAINS, 600.0, 0.0)
    rig.glide((0.0, 0.0, (REST - 0.004) / scale))
    rig.run(100)
    assert (rig.row["goal"]["stiffness"], rig.row["goal"]["damping"]) == (1500.0 / scale, 0.0)
    assert rig.wrench[2] == pytest.approx(600.0 * 0.004 / scale, rel=1e-3)


@pytest.mark.parametrize("wrong", [{"law": "stiff"}, {"world_stiffness": 0.0}, {"world_damping": -1.0}])
def test_wrong_laws_and_gains_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Rig(**wrong)
