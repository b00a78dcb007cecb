"""The virtual sphere: a torque as the tangential force whose moment it is, within all limits, off unless asked for."""

from dataclasses import replace

import numpy as np
import pytest
from haptics_rig import BLOCK, REACH, REST, Rig, block_model, plane_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from haptics.cards import load_card
from haptics.hands import HELD, LIGHT, DeviceDynamics, SimulatedHand, WayPoints
from haptics.settings import make_settings
from haptics.sphere import leave_room, sphere_force
from haptics.states import CommandKind
from haptics.touch import make_touch

LOW = (0.0, 0.0, BLOCK + 0.002)
RADIUS = 0.04
DOWN = np.array((0.0, 0.0, -1.0))

vectors = st.tuples(*[st.floats(-1.0, 1.0)] * 3)
turns = st.tuples(*[st.floats(-3.0, 3.0)] * 3).map(lambda v: Rotation.from_rotvec(v))


def cube(card: str = "omega6", **options) -> Rig:
    more = {"tool_reach": REACH, "rotational_stiffness": 0.5, "start": LOW, "ramp_up_ms": 20.0, "stiffness": 1000.0}
    return Rig(block_model(), card, **(more | options))


def turn_in(rig: Rig, ticks: int = 60, depth: float = 1e-5, angle: float = 0.008) -> None:
    """Turn the cube on its edge into the plane, and press it."""
    for k in range(ticks):
        rig.send((0.0, 0.0, LOW[2] - depth * k), orientation=Rotation.from_rotvec((angle * k, 0.0, 0.0)).as_quat())


@settings(deadline=None)
@given(turns, vectors, vectors, st.floats(0.01, 1.0), st.floats(0.5, 2.0))
def test_the_force_is_tangential_has_the_torque_as_moment_and_does_its_work(turn, torque, spin, gain, scale):
    """R a x f = tau - a (a . tau) and f . (omega x R a) = tau . omega but for the roll, R / scale at the device."""
    row = make_settings(load_card("omega6"), virtual_sphere=gain, sphere_radius=RADIUS)[0]
    table = np.zeros(1, row.dtype)
    table[0] = row
    force = np.array(sphere_force(table[0], scale, tuple(turn.as_quat()), torque))
    ahead = turn.apply(DOWN)
    arm = RADIUS / scale * ahead
    felt = np.array(torque) - ahead * (ahead @ torque)
    assert abs(force @ ahead) < 1e-9
    assert np.allclose(np.cross(arm, force), gain * felt, atol=1e-12)
    across = np.array(spin) - ahead * (ahead @ spin)
    assert force @ np.cross(across, arm) == pytest.approx(gain * (np.array(torque) @ across), abs=1e-12)


@pytest.mark.parametrize("gain", [0.3, 1.0])
def test_beside_a_device_with_torque(gain):
    """A device with torque on the same way: force and torque there tell the force here."""
    felt, shown = cube("sigma7"), cube(virtual_sphere=gain, sphere_radius=RADIUS)
    for rig in (felt, shown):
        rig.activate(LOW)
        turn_in(rig)
        rig.run(20)
    there, here = felt.output["coupling_wrench"], shown.output["coupling_wrench"]
    assert np.array_equal(felt.output["proxy_orientation"], shown.output["proxy_orientation"])
    ahead = Rotation.from_quat(shown.row["device_orientation"]).apply(DOWN)
    expected = gain * np.cross(there[3:], ahead) / RADIUS
    assert np.linalg.norm(there[3:]) > 0.02 and np.linalg.norm(expected) > 0.3
    assert np.allclose(here[:3], there[:3] + expected, atol=1e-12)
    assert not here[3:].any() and not shown.wrench[3:].any()
    assert np.allclose(shown.wrench, here, atol=1e-12)


def test_an_adapter_that_closes_the_spring_gets_the_sphere_ahead():
    rig = cube(virtual_sphere=1.0, sphere_radius=RADIUS, damping=0.0)
    rig.activate(LOW)
    turn_in(rig)
    rig.run(20)
    out = rig.output
    closed = out["stiffness"][:3] * (out["render_position"] - rig.sample["position"]) + out["feed_forward"][:3]
    assert np.linalg.norm(out["feed_forward"][:3]) > 0.3
    assert np.allclose(closed, rig.wrench[:3], atol=1e-10)


def test_a_lever_shows_as_the_force_over_again():
    """A tip ahead of the coupling point by the radius: a push from the side is felt twice, one along the axis once."""
    model = plane_model(tip_offset=(0.0, 0.0, -RADIUS))
    rig = Rig(model, "omega6", stiffness=500.0, damping=0.0, virtual_sphere=1.0, sphere_radius=RADIUS)
    rig.activate((0.0, 0.0, 0.1 + RADIUS))
    rig.glide((0.0, 0.0, REST + RADIUS - 0.002))
    rig.run(80)
    assert rig.wrench[:3] == pytest.approx((0.0, 0.0, 500.0 * 0.002), abs=1e-4)
    # On its side, pointing along x: the plane pushes across the handle.
    rig = Rig(model, "omega6", stiffness=500.0, damping=0.0, virtual_sphere=1.0, sphere_radius=RADIUS)
    aside = Rotation.from_rotvec((0.0, -np.pi / 2, 0.0)).as_quat()
    rig.sample["orientation"] = aside
    rig.activate((0.0, 0.0, 0.1))
    rig.glide((0.0, 0.0, REST - 0.002))
    rig.run(80)
    assert rig.wrench[:3] == pytest.approx((0.0, 0.0, 2 * 500.0 * 0.002), abs=1e-3)


def test_off_it_changes_nothing():
    plain, off = cube(), cube(virtual_sphere=0.0, sphere_radius=0.001)
    for rig in (plain, off):
        rig.activate(LOW)
        turn_in(rig)
    assert plain.chosen["sphere"] == 0.0
    assert np.array_equal(plain.wrench, off.wrench)


def test_a_small_sphere_keeps_within_norm_and_slew():
    """A lever of a millimetre makes huge forces: they saturate together with the spring's, step by step."""
    rig = cube("touch", stiffness=400.0, virtual_sphere=1.0, sphere_radius=0.001)
    rig.activate(LOW)
    last, seen = rig.wrench, 0
    for k in range(400):
        angle = 0.6 * np.sin(0.05 * k)
        rig.send((0.0, 0.0, LOW[2] - 0.001), orientation=Rotation.from_rotvec((angle, 0.3 * angle, 0.0)).as_quat())
        now = rig.wrench
        assert np.linalg.norm(now[:3]) <= rig.chosen["force_max"] * (1 + 1e-12)
        assert np.linalg.norm(now[:3] - last[:3]) <= rig.chosen["force_slew"] * (1 + 1e-12)
        assert (
            np.linalg.norm(rig.output["feed_forward"][:3]) <= np.linalg.norm(rig.output["coupling_wrench"][:3]) + 50.0
        )
        seen += np.linalg.norm(rig.output["coupling_wrench"][:3]) > 10.0
        last = now
    assert seen > 50


def test_in_silence_it_fades_with_the_torque_and_ends():
    rig = cube(virtual_sphere=1.0, sphere_radius=RADIUS)
    rig.activate(LOW)
    turn_in(rig)
    rig.run(20)
    full = np.linalg.norm(rig.output["feed_forward"][:3])
    rig.silence(12)
    assert 0.0 < np.linalg.norm(rig.output["feed_forward"][:3]) < 0.8 * full
    rig.silence(40)
    assert not rig.wrench.any() and not rig.output["feed_forward"].any()


def test_room_is_left_under_the_stiffness_of_the_card():
    """A lever as long as the radius may double the stiffness that is felt, so half of it is left for the spring."""
    settings = make_settings(load_card("touch"), stiffness=400.0, virtual_sphere=1.0, sphere_radius=RADIUS)
    leave_room(settings, RADIUS)
    assert (settings["stiffness"][0], settings["stiffness_max"][0]) == (200.0, 200.0)
    settings = make_settings(load_card("touch"), stiffness=100.0, virtual_sphere=0.5, sphere_radius=RADIUS)
    leave_room(settings, 2 * RADIUS)
    assert (settings["stiffness"][0], settings["stiffness_max"][0]) == (100.0, 200.0)
    settings = make_settings(load_card("touch"), stiffness=400.0)
    leave_room(settings, RADIUS)
    assert settings["stiffness"][0] == 400.0


def test_a_contact_behind_the_hand_never_pulls_it_in():
    """A sphere as small as the tool leaves nothing of a push from the side behind; a smaller one is refused."""
    model = plane_model(tip_offset=(0.0, 0.0, RADIUS))
    rig = Rig(model, "omega6", stiffness=500.0, damping=0.0, virtual_sphere=1.0, sphere_radius=RADIUS)
    rig.sample["orientation"] = Rotation.from_rotvec((0.0, -np.pi / 2, 0.0)).as_quat()
    rig.activate((0.0, 0.0, 0.1))
    rig.glide((0.0, 0.0, REST - 0.002))
    rig.run(80)
    assert rig.wrench[:3] == pytest.approx((0.0, 0.0, 0.0), abs=1e-3)
    leave_room(rig.settings, RADIUS)
    with pytest.raises(ValueError, match=r"sphere_radius must be at least virtual_sphere times 0.05 m"):
        leave_room(rig.settings, 0.05)


@pytest.mark.parametrize("delay_ticks", [0, 1])
@pytest.mark.parametrize("grip", [HELD, LIGHT], ids=["held", "light"])
def test_with_the_room_that_is_left_a_hand_settles(grip, delay_ticks):
    """The reference device without torque, at its largest stiffness, pressing its tool's side: as without a sphere."""
    card = replace(load_card("simulated"), actuated=3, torque_max=None)
    model = plane_model(tip_offset=(0.0, 0.0, -RADIUS))
    limits = {"stiffness": 2000.0, "damping": 2.0, "virtual_sphere": 1.0, "sphere_radius": RADIUS}
    rig = Rig(model, card, ramp_up_ms=1.0, **limits)
    leave_room(rig.settings, RADIUS)
    rig.touch = make_touch(rig.settings)
    aside = Rotation.from_rotvec((0.0, -np.pi / 2, 0.0)).as_quat()
    ends = [(0.0, 0.0, REST + 0.002), (0.0, 0.0, REST - 0.003)]
    path = WayPoints([0.0, 0.3], ends, [aside, aside])
    hand = SimulatedHand(path, grip, DeviceDynamics.from_card(card), delay_ticks=delay_ticks)
    rig.command(CommandKind.LEASE)
    rig.send(hand.position, orientation=aside)
    rig.command(CommandKind.ARM, 1)
    heights = []
    for _ in range(1500):
        pose = hand.step(1e-3, rig.wrench)
        rig.send(pose.position, pose.orientation)
        heights.append(hand.position[2])
    assert rig.row["stiffness"] == 1000.0
    assert np.ptp(heights[1200:]) <= card.resolution
    assert rig.wrench[2] == pytest.approx(grip.stiffness * (heights[-1] - ends[1][2]), abs=card.coulomb_friction + 1e-6)


@pytest.mark.parametrize("name", ["sigma7", "spidar55", "falcon", "spidar3", "spacemouse", "mouse"])
def test_it_is_for_devices_that_sense_orientation_and_render_no_torque(name):
    with pytest.raises(ValueError, match=f"virtual_sphere = 1 needs a device .* card of '{name}' says sensed = "):
        make_settings(load_card(name), virtual_sphere=1.0)


@pytest.mark.parametrize("wrong", [{"virtual_sphere": 1.5}, {"virtual_sphere": -0.1}, {"sphere_radius": 0.0}])
def test_wrong_gains_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make_settings(load_card("touch"), **wrong)
