"""How the run of a task is judged: each thing that can be wrong is found, and nothing else is."""

import itertools

import numpy as np
import pytest
from drawn import ball_mesh, box_mesh, model_of
from scipy.spatial.transform import Rotation
from task_rig import States

from bridge.scripts import Goal, Ratio
from bridge.task_check import Bodies, checked_rows, force_steps, gained, play, reached, separation
from haptics.states import EngagementState
from haptics.tables import BODY_SAMPLE, RECORD, SETTINGS
from rtcore.tables import FREE, KINEMATIC

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
WITHIN = np.full(3, 0.02)


def run_along(positions: np.ndarray, orientations=None) -> np.ndarray:
    """Records of a tool that went through positions (n, 3), with forces on but for the first and the last tick."""
    records = np.zeros(len(positions), RECORD)
    records["tick"] = np.arange(1, len(positions) + 1)
    records["timing"]["started_ns"] = np.arange(len(positions)) * 1_000_000
    output = records["output"]
    output["proxy_position"] = positions
    output["proxy_orientation"] = UPRIGHT if orientations is None else orientations
    output["state"] = EngagementState.ACTIVE
    output["state"][[0, -1]] = EngagementState.IDLE
    output["report"]["smallest_gap"] = output["report"]["body_gap"] = -1.0
    return records


def line(*corners: float, count: int = 100) -> np.ndarray:
    """Positions along x through corners."""
    x = np.concatenate([np.linspace(a, b, count) for a, b in itertools.pairwise(corners)])
    return np.column_stack([x, 0 * x, 0 * x])


def goal(x: float, **more) -> Goal:
    return Goal(f"at {x}", np.array([x, 0.0, 0.0]), WITHIN, **more)


def scene(*bodies: np.ndarray, tool: np.ndarray | None = None):
    model = model_of(*bodies, tool=ball_mesh(0.1, 3) if tool is None else tool)
    model.world["eps_break"] = 0.01
    return model


def told(goals: list[Goal], records: np.ndarray) -> list[bool]:
    bodies = Bodies(scene(box_mesh(1.0)))
    return [one.seconds is not None for one in reached(goals, records, bodies, ["box"])]


def test_goals_are_reached_in_their_order_and_the_last_one_at_the_end():
    there_and_back = run_along(line(0.0, 1.0, 0.0))
    assert told([goal(1.0), goal(0.0)], there_and_back) == [True, True]
    assert told([goal(0.5), goal(1.0), goal(0.5), goal(0.0)], there_and_back) == [True] * 4
    # It was there, but not at the end; or it never was; or before what had to come first.
    assert told([goal(0.0), goal(1.0)], there_and_back) == [True, False]
    assert told([goal(2.0), goal(0.0)], there_and_back) == [False, False]
    assert told([goal(1.0), goal(0.5), goal(1.0), goal(0.0)], there_and_back) == [True, True, False, False]


def test_goals_that_say_so_hold_at_the_end_too():
    there_and_back = run_along(line(0.0, 1.0, 0.0))
    assert told([goal(1.0), goal(0.0, at_end=True), goal(0.0)], there_and_back) == [True] * 3
    assert told([goal(1.0, at_end=True), goal(0.0)], there_and_back) == [False, False]


def about_x(angles: np.ndarray) -> np.ndarray:
    """(n, 4) orientations turned about x."""
    return Rotation.from_rotvec(np.outer(angles, (1.0, 0.0, 0.0))).as_quat()


def test_what_turns_together_keeps_its_ratio_over_whole_turns():
    angles = np.linspace(0.0, 15.0, 100)
    records = run_along(line(0.0, 1.0), about_x(angles))
    states = States(np.zeros((100, 1), BODY_SAMPLE), (0,))
    states["orientation"][:, 0] = about_x(-0.5 * angles + 0.01 * np.sin(angles))
    bodies = Bodies(scene(box_mesh(1.0)), states)

    def found(ratio: float) -> float:
        return play(Ratio("follows", "wheel", np.array((1.0, 0.0, 0.0)), ratio, 0.1), records, bodies, ["wheel"])

    assert found(-0.5) == pytest.approx(0.02, rel=0.01)
    assert found(0.5) == pytest.approx(15.0 * 97 / 99, rel=0.01)
    itself = Ratio("follows", "wheel", np.array((1.0, 0.0, 0.0)), 1.0, 0.1, to="wheel")
    assert play(itself, records, bodies, ["wheel"]) == 0.0
    states["orientation"][:, 0] = UPRIGHT  # it does not follow
    bodies = Bodies(scene(box_mesh(1.0)), states)
    assert found(-0.5) == pytest.approx(7.5 * 97 / 99, rel=0.01)
    with pytest.raises(ValueError, match="no body 'wheel'"):
        play(Ratio("follows", "wheel", np.array((1.0, 0.0, 0.0)), 1.0, 0.1), records, bodies, ["box"])


def test_energy_is_told_where_all_that_moves_is_free():
    model = scene(box_mesh(1.0))
    records = run_along(line(3.0, 3.0))
    assert gained(model, np.ones(1, SETTINGS)[0], records, Bodies(model)) is None
    model.bodies["kind"][0] = FREE
    model.inertias["mass"][0] = 2.0
    model.inertias["axes"][0] = UPRIGHT
    model.world["gravity"][0] = (0.0, 0.0, -10.0)
    model.world["eps_safety"] = 1e-3
    states = States(np.zeros((len(records), 1), BODY_SAMPLE), (0,))
    states["orientation"] = UPRIGHT
    records["output"]["goal_position"] = records["output"]["proxy_position"]
    records["output"]["goal_orientation"] = UPRIGHT
    records["output"]["coupling_wrench"][7, 0] = 3.0
    states["position"][50:, 0, 2] = 1e-3  # lifted by one gap
    told_of = gained(model, np.ones(1, SETTINGS)[0], records, Bodies(model, states))
    assert told_of == (pytest.approx(2.0 * 10.0 * 1e-3), pytest.approx((2.0 * 10.0 + 3.0) * 1e-3))
    model.bodies["kind"][0] = KINEMATIC
    assert gained(model, np.ones(1, SETTINGS)[0], records, Bodies(model, states)) is None


def test_only_what_happened_under_forces_counts():
    records = run_along(line(0.0, 1.0))
    records["output"]["proxy_position"][-1] = 0.0
    assert told([goal(1.0)], records) == [True]
    records["output"]["state"] = EngagementState.IDLE
    assert told([goal(1.0)], records) == [False]


def test_a_goal_may_ask_for_an_orientation():
    turned = (0.0, 0.0, np.sin(np.radians(1.5)), np.cos(np.radians(1.5)))  # by 3 degrees
    records = run_along(line(0.0, 1.0), turned)
    assert told([goal(1.0, orientation=np.array(UPRIGHT), within_deg=2.0)], records) == [False]
    assert told([goal(1.0, orientation=-np.array(UPRIGHT), within_deg=4.0)], records) == [True]


def test_a_goal_about_a_body():
    records = run_along(line(0.0, 1.0))
    bodies = Bodies(scene(box_mesh(1.0)))
    lid = goal(0.0, body="lid")
    assert reached([lid], records, bodies, ["lid"])[0].seconds is not None
    with pytest.raises(ValueError, match="no body 'lid'; there are: box"):
        reached([lid], records, bodies, ["box"])


def test_bodies_that_touch_or_are_in_one_another_are_found():
    box = box_mesh(1.0)
    free = separation(scene(box), run_along(line(0.61, 0.605)), Bodies(scene(box)), 20)
    assert (free.crossing, free.inside) == (0, 0) and free.smallest == pytest.approx(0.005, rel=0.1)
    away = run_along(line(3.0, 4.0))
    assert separation(scene(box), away, Bodies(scene(box)), 20).smallest is None
    crossing = run_along(line(0.605, 0.55))
    found = separation(scene(box), crossing, Bodies(scene(box)), 20)
    assert found.crossing > 10 and found.smallest == 0.0
    within = run_along(line(0.0, 0.1))
    assert separation(scene(box), within, Bodies(scene(box)), 20).inside == 20
    swallowed = scene(0.05 * box)
    assert separation(swallowed, within, Bodies(swallowed), 20).inside > 10


def test_balls_are_measured_from_their_middles():
    """A cube of edge 1 as tool, and balls of radius 0.25: near, crossed by a face, in the cube, and round the cube."""
    point = np.zeros((1, 3, 3))
    model = scene(point, tool=box_mesh(1.0))
    model.bodies["rounding"] = 0.25
    free = separation(model, run_along(line(0.76, 0.755)), Bodies(model), 20)
    assert (free.crossing, free.inside) == (0, 0) and free.smallest == pytest.approx(0.005, rel=0.1)
    assert separation(model, run_along(line(0.76, 0.74)), Bodies(model), 20).crossing > 5
    assert separation(model, run_along(line(0.0, 0.1)), Bodies(model), 20).inside == 20
    model.bodies["rounding"] = 2.0
    assert separation(model, run_along(line(0.0, 0.1)), Bodies(model), 20).crossing == 20
    two = scene(point, point, tool=box_mesh(1.0))
    two.bodies["rounding"] = (0.1, 0.2)
    two.bodies["position"] = (0.0, 5.0, 0.0)
    two.bodies["kind"][1] = FREE
    records = run_along(line(3.0, 4.0))
    states = States(np.zeros((len(records), 1), BODY_SAMPLE), (1,))
    states["position"], states["orientation"] = (0.0, 5.0, 0.301), UPRIGHT
    found = separation(two, records, Bodies(two, states), 20)
    assert found.crossing == 0 and found.smallest == pytest.approx(0.001, rel=1e-9)
    states["position"][50:, 0] = (0.0, 5.0, 0.299)
    assert 5 < separation(two, records, Bodies(two, states), 20).crossing < 15


def test_moving_bodies_are_measured_where_they_were():
    model = scene(box_mesh(1.0), box_mesh(1.0))
    model.bodies["kind"][1] = 2
    model.bodies["position"][1] = (0.0, 5.0, 0.0)
    records = run_along(line(3.0, 4.0))
    states = States(np.zeros((len(records), 1), BODY_SAMPLE), (1,))
    states["position"], states["orientation"] = (0.0, 5.0, 0.0), UPRIGHT
    bodies = Bodies(model, states)
    assert separation(model, records, bodies, 20).crossing == 0
    states["position"][50:, 0] = (0.0, 0.9, 0.0)  # into the other body, halfway
    found = separation(model, records, bodies, 20)
    assert 5 < found.crossing < 15


def test_moments_are_those_of_the_least_gaps_and_spread_over_the_run():
    records = run_along(line(0.0, 1.0, count=1000))
    report = records["output"]["report"]
    report["contact_count"][300:400] = 1
    report["smallest_gap"][300:400] = np.linspace(1e-3, 1e-5, 100)
    rows = checked_rows(records, 40)
    assert set(range(380, 400)) <= set(rows)
    assert rows[0] == 0 and rows[-1] == 999 and 36 <= len(rows) <= 40
    report["body_gap"][700:720] = 1e-6  # of bodies with each other
    assert set(range(700, 720)) <= set(checked_rows(records, 40))


def test_steps_of_the_force_are_those_between_neighbouring_ticks():
    records = run_along(line(0.0, 1.0))
    output = records["output"]
    output["wrench"][40:, 2] = 0.7
    output["wrench"][60:, 4] = 0.2
    output["coupling_wrench"][70:, 0] = 3.0
    steps = force_steps(records)
    assert steps["force_step_N"] == pytest.approx(0.7) and steps["torque_step_Nm"] == pytest.approx(0.2)
    assert steps["wanted_force_step_N"] == pytest.approx(3.0)
    # With a gap in the log nothing is known about the ticks between.
    assert force_steps(np.delete(records, 40))["force_step_N"] == 0.0
