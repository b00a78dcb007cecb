"""Hands: the models obey their own mechanics, so that what they show about a coupling means something."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from haptics.cards import load_card
from haptics.hands import (
    HANDS_OFF,
    HELD,
    CircleDrag,
    DeviceDynamics,
    Grip,
    PathPoint,
    RandomMotion,
    ScriptedHand,
    SimulatedHand,
    Tapping,
    WayPoints,
    minimum_jerk,
)

NO_FORCE = np.zeros(6)
IDEAL = DeviceDynamics(
    mass=0.2,
    viscous_friction=0.0,
    coulomb_friction=0.0,
    resolution=0.0,
    rotational_friction=0.0,
    rotational_coulomb=0.0,
    rotational_resolution=0.0,
)


class Still:
    """A hand that wants to be at the origin."""

    def at(self, time: float) -> PathPoint:
        return PathPoint(np.zeros(3), np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))


@pytest.mark.parametrize("damping", [0.0, 4.0, 60.0])
@pytest.mark.parametrize("dt", [1e-3, 2.5e-4])
def test_free_oscillation_is_the_analytic_one(damping, dt):
    """m x'' + b x' + k x = 0 from x0 at rest, under- and over-damped."""
    mass, stiffness, start = 0.5, 300.0, 0.02
    grip = Grip(mass - IDEAL.mass, stiffness, damping, 0.0, 0.0, 0.0)
    hand = SimulatedHand(Still(), grip, IDEAL)
    hand.position[:] = (start, -2 * start, 0.0)
    decay = damping / (2 * mass)
    root = np.sqrt(complex(decay**2 - stiffness / mass))
    for _ in range(round(0.4 / dt)):
        hand.step(dt, NO_FORCE)
        a, b = -decay + root, -decay - root
        exact = start * ((b * np.exp(a * hand.time) - a * np.exp(b * hand.time)) / (b - a)).real
        # The midpoint rule is second order: phase error (omega h)^2 / 12 per radian, 1e-6 here, and 10 radians.
        assert hand.position[0] == pytest.approx(exact, abs=2e-5 * start)
        assert hand.position[1] == pytest.approx(-2 * exact, abs=4e-5 * start)


def test_undamped_oscillation_keeps_its_energy():
    """The integrator adds no damping of its own: a loop that is unstable is seen to be."""
    grip = Grip(0.3, 2000.0, 0.0, 0.0, 0.0, 0.0)
    hand = SimulatedHand(Still(), grip, IDEAL)
    hand.position[0] = 0.01
    for _ in range(5000):
        hand.step(1e-3, NO_FORCE)
    energy = 0.5 * 0.5 * hand.velocity @ hand.velocity + 0.5 * 2000.0 * hand.position @ hand.position
    assert energy == pytest.approx(0.5 * 2000.0 * 1e-4, rel=1e-9)


def test_constant_force_accelerates_by_newton():
    hand = SimulatedHand(Still(), HANDS_OFF, IDEAL)
    for _ in range(100):
        hand.step(1e-3, (0.0, 0.4, 0.0, 0.0, 0.0, 0.0))
    assert hand.velocity[1] == pytest.approx(0.4 / 0.2 * 0.1, rel=1e-12)
    assert hand.position[1] == pytest.approx(0.5 * 0.4 / 0.2 * 0.01, rel=1e-12)


@pytest.mark.parametrize("direction", [(1.0, 0.0, 0.0), (0.6, 0.0, -0.8)])
def test_dry_friction_holds_below_and_lets_go_above(direction):
    device = DeviceDynamics(mass=0.2, viscous_friction=0.0, coulomb_friction=0.5, resolution=0.0)
    force = np.zeros(6)
    force[:3] = np.array(direction) * 0.499
    hand = SimulatedHand(Still(), HANDS_OFF, device)
    for _ in range(2000):
        hand.step(1e-3, force)
    assert np.all(hand.position == 0.0) and np.all(hand.velocity == 0.0)
    force[:3] = np.array(direction) * 0.7
    for _ in range(100):
        hand.step(1e-3, force)
    assert np.allclose(hand.velocity, np.array(direction) * 0.2 / 0.2 * 0.1, rtol=1e-9)


def test_dry_friction_stops_a_sliding_device_where_it_should():
    """Stopping distance m v^2 / (2 F), and then rest, exactly."""
    device = DeviceDynamics(mass=0.2, viscous_friction=0.0, coulomb_friction=0.5, resolution=0.0)
    hand = SimulatedHand(Still(), HANDS_OFF, device)
    hand.velocity[:] = (0.0, 0.3, 0.0)
    for _ in range(400):
        hand.step(1e-3, NO_FORCE)
    assert hand.position[1] == pytest.approx(0.2 * 0.09 / (2 * 0.5), rel=1e-4)
    assert np.all(hand.velocity == 0.0)


@given(resolution=st.sampled_from([1e-6, 1e-5, 3e-5, 2e-4]), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_reading_is_on_the_encoder_grid_and_within_half_a_step(resolution, seed):
    hand = SimulatedHand(RandomMotion(seed), HELD, DeviceDynamics(resolution=resolution))
    for _ in range(20):
        pose = hand.step(1e-3, NO_FORCE)
        steps = pose.position / resolution
        assert np.allclose(steps, np.round(steps), atol=1e-6)
        assert np.abs(pose.position - hand.position).max() <= 0.5 * resolution * (1 + 1e-9)


def test_delay_makes_the_wrench_late_by_whole_ticks():
    prompt, late = (SimulatedHand(Still(), HANDS_OFF, IDEAL, delay_ticks=n) for n in (0, 2))
    pushes = [np.array([float(k % 7), 0, 0, 0, 0, 0]) for k in range(50)]
    path = [prompt.step(1e-3, push).position[0] for push in pushes]
    delayed = [late.step(1e-3, push).position[0] for push in pushes]
    assert delayed[:2] == [0.0, 0.0] and np.allclose(delayed[2:], path[:-2], atol=1e-15)


def test_torque_turns_the_handle_about_its_axis():
    grip = Grip(0.0, 0.0, 0.0, 1e-3, 2.0, 0.05)
    hand = SimulatedHand(Still(), grip, IDEAL)
    for _ in range(3000):
        pose = hand.step(1e-3, (0.0, 0.0, 0.0, 0.0, 0.3, 0.0))
    # At rest the grip's rotational spring carries the torque.
    assert np.allclose(Rotation.from_quat(pose.orientation).as_rotvec(), (0.0, 0.3 / 2.0, 0.0), atol=1e-6)


def test_a_three_axis_device_reports_no_orientation():
    device = DeviceDynamics.from_card(load_card("falcon"))
    hand = SimulatedHand(Still(), HELD, device)
    pose = hand.step(1e-3, (0.0, 0.0, 0.0, 0.2, 0.0, 0.0))
    assert np.array_equal(pose.orientation, (0.0, 0.0, 0.0, 1.0))


def test_the_reference_card_describes_the_reference_device():
    assert DeviceDynamics.from_card(load_card("simulated")) == DeviceDynamics()


def test_a_held_hand_follows_its_path():
    path = WayPoints([0.0, 0.5, 1.0], [(0, 0, 0), (0.05, 0, 0), (0.05, 0.03, 0)])
    hand = SimulatedHand(path)
    for k in range(1200):
        pose = hand.step(1e-3, NO_FORCE)
        assert np.linalg.norm(pose.position - path.at(0.001 * (k + 1)).position) < 0.004
    assert np.linalg.norm(pose.position - (0.05, 0.03, 0)) < 0.001


@pytest.mark.parametrize("options", [{"delay_ticks": -1}, {"substeps": 0}])
def test_bad_hand_options_are_refused(options):
    with pytest.raises(ValueError, match="must be"):
        SimulatedHand(Still(), **options)


# ------------------------------------------------------------------------------------------------------ paths

PATHS = {
    "way points": WayPoints([0.2, 0.8, 1.5], [(0, 0, 0), (0.1, 0, 0.02), (0.1, -0.05, 0)]),
    "circle": CircleDrag((0.1, 0.2, 0.3), (0.0, 1.0, 1.0), radius=0.03, period=1.5, approach=0.7),
    "tapping": Tapping((0.1, 0.2, 0.3), (1.0, 0.0, 1.0), rate=3.0),
    "random": RandomMotion(4, radius=0.05, bandwidth=3.0),
}


@pytest.mark.parametrize("name", PATHS)
@given(time=st.floats(0.0, 3.0))
@settings(max_examples=60, deadline=None)
def test_velocity_is_the_derivative_of_position(name, time):
    path, h = PATHS[name], 1e-5
    if time < h:
        time = h
    numeric = (path.at(time + h).position - path.at(time - h).position) / (2 * h)
    # Central difference: h^2 / 6 times the third derivative; at the joints of a path the second one jumps, h / 2.
    assert np.allclose(path.at(time).velocity, numeric, atol=1e-4)
    assert np.linalg.norm(path.at(time).orientation) == pytest.approx(1.0, abs=1e-12)


def test_minimum_jerk_starts_and_ends_at_rest():
    assert minimum_jerk(0.0) == (0.0, 0.0) and minimum_jerk(1.0) == (1.0, 0.0)
    assert minimum_jerk(0.5) == (0.5, 1.875)
    assert minimum_jerk(-3.0) == (0.0, 0.0) and minimum_jerk(7.0) == (1.0, 0.0)


def test_circle_stays_on_its_circle_at_its_depth():
    path = CircleDrag((0, 0, 0), (0, 0, 1), radius=0.02, period=2.0, depth=0.003, height=0.05, approach=1.0)
    assert path.at(0.0).position[2] == pytest.approx(0.05)
    for time in np.linspace(1.0, 6.0, 50):
        position = path.at(time).position
        assert position[2] == pytest.approx(-0.003) and math.hypot(*position[:2]) == pytest.approx(0.02)
    assert np.linalg.norm(path.at(3.0).velocity) == pytest.approx(2 * math.pi * 0.02 / 2.0)
    assert np.allclose(path.at(3.0).position, path.at(5.0).position)


def test_random_motion_is_seeded_and_stays_inside():
    one, same, other = RandomMotion(1, radius=0.03), RandomMotion(1, radius=0.03), RandomMotion(2, radius=0.03)
    for time in np.linspace(0, 20, 200):
        assert np.array_equal(one.at(time).position, same.at(time).position)
        assert not np.array_equal(one.at(time).position, other.at(time).position)
        assert np.linalg.norm(one.at(time).position) <= 0.03


def test_scripted_hand_meets_every_row_exactly():
    times = [0.0, 0.007, 0.02, 0.1]
    positions = np.random.default_rng(1).uniform(-1, 1, (4, 3))
    orientations = Rotation.random(4, random_state=2).as_quat()
    hand = ScriptedHand(times, positions, orientations)
    rows = dict(zip([0, 7, 20, 100], zip(positions, orientations, strict=True), strict=True))
    for k in range(1, 150):
        pose = hand.step(1e-3, NO_FORCE)
        if k in rows:
            assert np.allclose(pose.position, rows[k][0], rtol=0, atol=1e-15)
            assert abs(pose.orientation @ rows[k][1]) == pytest.approx(1.0, abs=1e-14)
    assert np.array_equal(pose.position, positions[-1])
    assert np.allclose(hand.at(0.0135).position, 0.5 * (positions[1] + positions[2]), atol=1e-15)


@pytest.mark.parametrize(
    "rows, text",
    [
        (([], []), "at least one row"),
        (([0.0, 0.0], np.zeros((2, 3))), "row 1"),
        (([0.0, np.nan], np.zeros((2, 3))), "times must be finite numbers; one is not finite"),
        (([0.0, 1.0], np.zeros((2, 2))), "positions must be finite numbers of shape"),
        (([0.0, 1.0], np.full((2, 3), np.inf)), "positions must be finite numbers; one is not finite"),
        (([0.0, 1.0], np.zeros((2, 3)), [(0, 0, 0, 1), (0, 0, 0, 2)]), "row 1 has norm 2"),
    ],
)
def test_bad_rows_are_refused(rows, text):
    with pytest.raises(ValueError, match=text):
        ScriptedHand(*rows)


def test_a_device_that_does_not_sense_the_roll_reports_none():
    """Of a hand that turns its handle about the handle's own axis, all is read but that."""
    quarter = np.array((0.0, 0.0, np.sin(np.pi / 4), np.cos(np.pi / 4)))
    path = WayPoints([0.0, 0.2], np.zeros((2, 3)), np.array([(0.0, 0.0, 0.0, 1.0), quarter]))
    read = {}
    for name in ("virtuose6d", "spidar55", "spidar3"):
        hand = SimulatedHand(path, HELD, DeviceDynamics.from_card(load_card(name)))
        for _ in range(250):
            read[name] = hand.step(1e-3, np.zeros(6)).orientation
    assert np.allclose(read["virtuose6d"], quarter, atol=1e-3)
    assert np.allclose(read["spidar55"], (0.0, 0.0, 0.0, 1.0), atol=1e-3)
    assert np.array_equal(read["spidar3"], (0.0, 0.0, 0.0, 1.0))
