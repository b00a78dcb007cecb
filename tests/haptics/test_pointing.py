"""Input devices: moves add up, deflections steer, neither faster than asked for nor farther from the tool."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from haptics.pointing import Increments, Rate

DT = 1e-3


def test_increments_add_up():
    """Small moves arrive at once and exactly; turns are about the device's axes, the later one on the left."""
    hand = Increments((0.1, 0.0, 0.0), gain=2.0)
    for _ in range(100):
        hand.step(DT, (1e-4, 0.0, -2e-4))
    assert np.allclose(hand.pose.position, (0.12, 0.0, -0.04), atol=1e-12)
    hand.step(1.0, (0.0, 0.0, 0.0), (0.5, 0.0, 0.0))
    hand.step(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.3))
    expected = Rotation.from_rotvec((0.0, 0.0, 0.3)) * Rotation.from_rotvec((0.5, 0.0, 0.0))
    assert np.allclose(hand.pose.orientation, expected.as_quat(), atol=1e-12)


def test_a_flick_is_made_up_for_at_the_speed_that_is_allowed():
    hand = Increments(np.zeros(3), speed=0.5, turn_speed=2.0)
    pose = hand.step(DT, (0.05, 0.0, 0.0), (0.0, 0.1, 0.0))
    assert pose.position[0] == pytest.approx(0.5 * DT)
    for _ in range(200):
        before = pose
        pose = hand.step(DT, (0.0, 0.0, 0.0))
        assert np.linalg.norm(pose.position - before.position) <= 0.5 * DT * (1 + 1e-9)
    assert np.allclose(pose.position, (0.05, 0.0, 0.0), atol=1e-12)
    assert np.allclose(Rotation.from_quat(pose.orientation).as_rotvec(), (0.0, 0.1, 0.0), atol=1e-12)


@settings(deadline=None)
@given(st.tuples(*[st.floats(-3.0, 3.0)] * 6))
def test_deflection_is_speed(deflection):
    """Rest within the dead zone, then rising from zero to the full speed at the stop, along the deflection."""
    hand = Rate(np.zeros(3), speed=0.2, turn_speed=1.5, dead_zone=0.1)
    pose = hand.step(DT, deflection)
    turned = Rotation.from_quat(pose.orientation).as_rotvec()
    for moved, part, full in ((pose.position, deflection[:3], 0.2), (turned, deflection[3:], 1.5)):
        size = np.linalg.norm(part)
        expected = 0.0 if size <= 0.1 else full * (min(size, 1.0) - 0.1) / 0.9
        assert np.linalg.norm(moved) / DT == pytest.approx(expected, abs=1e-9)
        assert np.dot(moved, part) == pytest.approx(np.linalg.norm(moved) * size, abs=1e-12)


def test_at_rest_it_stays_to_the_bit():
    hand = Rate((0.1, 0.2, 0.3), (0.0, 0.6, 0.0, 0.8))
    for _ in range(1000):
        hand.step(DT, (0.01, -0.02, 0.03, 0.01, 0.0, 0.04))
    assert np.array_equal(hand.pose.position, (0.1, 0.2, 0.3)) and np.array_equal(
        hand.orientation, (0.0, 0.6, 0.0, 0.8)
    )


def test_it_goes_no_farther_from_the_tool_than_asked_for():
    """Against a wall the goal stops ahead of the tool, so it comes back at once."""
    hand = Rate(np.zeros(3), speed=0.1, turn_speed=1.0)
    wall = np.zeros(3)
    for _ in range(2000):
        hand.step(DT, (0.0, 0.0, -1.0, 1.0, 0.0, 0.0))
        hand.hold_near(wall, (0.0, 0.0, 0.0, 1.0), 0.01, 0.2)
    assert np.allclose(hand.position, (0.0, 0.0, -0.01), atol=1e-12)
    assert np.allclose(Rotation.from_quat(hand.orientation).as_rotvec(), (0.2, 0.0, 0.0), atol=1e-9)
    for _ in range(110):
        hand.step(DT, (0.0, 0.0, 1.0, 0.0, 0.0, 0.0))
    assert hand.position[2] > 0.0


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: Increments(np.zeros(3), speed=0.0), "speed = 0.0"),
        (lambda: Rate(np.zeros(3), turn_speed=np.inf), "turn_speed = inf"),
        (lambda: Rate(np.zeros(3), dead_zone=1.0), "dead_zone = 1.0"),
    ],
)
def test_what_is_no_speed_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()
