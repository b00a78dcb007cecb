"""A hand that is guided by what it feels: steps end at a touch and begin where the tool is."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from haptics.guided import GuidedPath, Misjudgement, Step

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
DOWN = np.array([0.0, 0.0, -0.01])
DT = 1e-3


def play(path: GuidedPath, seconds: float, world=None) -> np.ndarray:
    """Intended positions (n, 3) per ms; ``world(position)`` gives (tool, force); without it all is free."""
    time, rows = 0.0, [path.at(0.0).position]
    while time < seconds:
        tool, force = (rows[-1], np.zeros(3)) if world is None else world(rows[-1])
        path.feel(time, tool, force)
        time += DT
        rows.append(path.at(time).position)
    return np.array(rows)


def floor_at(height: float, stiffness: float):
    """A floor that stops the tool; the hand feels a spring."""

    def world(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tool = np.array([position[0], position[1], max(position[2], height)])
        return tool, stiffness * (tool - position)

    return world


def test_steps_go_where_they_say_and_take_the_time_they_say():
    path = GuidedPath([Step(0.5, to=np.array([0.0, 0.0, 0.02])), Step(0.3)], (0.0, 0.0, 0.05), UPRIGHT)
    assert path.longest_s == pytest.approx(0.8)
    rows = play(path, 0.8)
    np.testing.assert_allclose(rows[0], (0.0, 0.0, 0.05))
    np.testing.assert_allclose(rows[-1], (0.0, 0.0, 0.02), atol=1e-12)
    assert np.linalg.norm(np.diff(rows, axis=0), axis=1).max() < 1.9 * 0.03 / 0.5 * DT
    assert path.longest_s == pytest.approx(0.8, abs=2 * DT)


def test_a_step_ends_at_the_force_it_waits_for_and_the_next_one_begins_at_the_tool():
    steps = [Step(1.0, by=np.array([0.0, 0.0, -0.03]), until_force=1.0), Step(0.5, by=np.array([0.0, 0.0, 0.004]))]
    path = GuidedPath(steps, (0.0, 0.0, 0.02), UPRIGHT, Misjudgement(shift=0.003, seed=3))
    rows = play(path, 2.0, floor_at(0.005, 500.0))
    # It presses in until 1 N (2 mm of the spring), however wrong it is about the height, then 4 mm up from the floor.
    assert rows[:, 2].min() == pytest.approx(0.003, abs=1e-4)
    assert rows[-1][2] == pytest.approx(0.009, abs=1e-9)
    assert path.step_number == 2 and path.longest_s < 1.2
    assert np.linalg.norm(np.diff(rows, axis=0), axis=1).max() < 2e-4, "no jump where a step is cut short"


def test_a_force_along_the_motion_or_across_it_does_not_end_a_step():
    steps = [Step(1.0, by=DOWN, until_force=1.0)]
    for force in ((0.0, 0.0, -5.0), (5.0, 0.0, 0.0)):
        path = GuidedPath(steps, (0.0, 0.0, 0.02), UPRIGHT)
        rows = play(path, 1.0, lambda position, f=force: (position, np.array(f)))
        np.testing.assert_allclose(rows[-1], (0.0, 0.0, 0.01), atol=1e-12)


def test_a_search_spirals_across_its_direction_until_the_tool_gives_way():
    steps = [Step(4.0, by=np.array([0.0, 0.0, -0.002]), search=0.001, until_moved=0.0005)]
    path = GuidedPath(steps, (0.0, 0.0, 0.0), UPRIGHT)
    hole = floor_at(0.0, 500.0)

    def world(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = np.hypot(position[0] - 0.0006, position[1]) < 0.0002
        return (position, np.zeros(3)) if found else hole(position)

    rows = play(path, 4.0, world)
    assert path.step_number == 1 and path.longest_s < 3.9
    radius = np.hypot(rows[:, 0], rows[:, 1])
    assert 0.0004 < radius.max() <= 0.001
    nothing = GuidedPath(steps, (0.0, 0.0, 0.0), UPRIGHT)
    rows = play(nothing, 4.0, hole)
    assert nothing.longest_s == pytest.approx(4.0, abs=2 * DT)
    assert np.hypot(rows[-1][0], rows[-1][1]) < 1e-5, "it comes back to the middle"


def test_turns_are_counted_beyond_half_a_turn():
    path = GuidedPath([Step(1.0, turn=np.array([0.0, 0.0, 3.0 * np.pi]))], (0.0, 0.0, 0.0), UPRIGHT)
    angles, time = [], 0.0
    while time < 1.0:
        path.feel(time, np.zeros(3), np.zeros(3))
        time += DT
        angles.append(Rotation.from_quat(path.at(time).orientation).as_rotvec()[2])
    assert np.unwrap(angles)[-1] == pytest.approx(3.0 * np.pi, abs=1e-9)


def test_it_begins_where_the_tool_is_and_then_is_as_wrong_as_was_said():
    wrong = Misjudgement(shift=0.002, turn=0.03, seed=5)
    start = Rotation.from_rotvec((0.3, 0.0, 0.1)).as_quat()
    goal = np.array([0.1, 0.0, 0.0])
    path = GuidedPath([Step(0.5, to=goal, orientation=np.array(UPRIGHT))], (0.0, 0.0, 0.02), start, wrong)
    first = path.at(0.0)
    np.testing.assert_allclose(first.position, (0.0, 0.0, 0.02), atol=1e-15)
    np.testing.assert_allclose(np.abs(first.orientation @ start), 1.0)
    rows = play(path, 0.6)
    assert np.linalg.norm(rows[-1] - goal) == pytest.approx(0.002)
    assert Rotation.from_quat(path.at(0.6).orientation).magnitude() == pytest.approx(0.03)


def test_it_wavers_within_its_radius_and_slowly():
    path = GuidedPath([Step(5.0)], (0.0, 0.0, 0.0), UPRIGHT, Misjudgement(sway=0.0005, seed=2))
    rows = play(path, 5.0)
    away = np.linalg.norm(rows, axis=1)
    assert away[0] == 0.0 and 5e-5 < away.max() <= 0.0005
    assert np.linalg.norm(np.diff(rows, axis=0), axis=1).max() < 1e-5
