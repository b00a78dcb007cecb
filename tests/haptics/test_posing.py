"""Posing: a held body never lands on the tool, and a closed one never swallows it."""

import numpy as np
import pytest
from haptics_rig import CORNERS, EPS_ALERT, EPS_BREAK, EPS_SAFETY, FACES, TIP_RADIUS, Rig, square
from mesh_tool_rig import too_near
from scipy.spatial.transform import Rotation

from haptics.codes import BAD_VALUE, OK
from haptics.posing import pose_body, winding_number
from haptics.states import CommandKind, Reason
from rtcore.dynamics.inertia import body_inertia, mesh_inertia
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, FREE, HELD, KINEMATIC, STEP_REPORT


def model_of(vertices: np.ndarray, faces: np.ndarray, position=(0.0, 0.0, 0.0)) -> Model:
    builder = ModelBuilder()
    builder.add_body(builder.add_mesh(*build_tree(vertices, faces)), position, kind=HELD)
    return builder.build(TIP_RADIUS, (0.0, 0.0, 0.0), EPS_ALERT, EPS_SAFETY, EPS_BREAK)


@pytest.mark.parametrize("flip", [1, -1])
def test_winding_number_of_a_box(flip):
    """1 inside and 0 outside, whatever the pose; the sign follows the orientation of the faces."""
    model = model_of(0.1 * CORNERS, FACES[:, ::flip])
    turn = Rotation.from_rotvec((0.3, 0.5, -0.2))
    state = make_state(model, (0.0, 0.0, 0.0))
    state.poses["position"][0] = (1.0, 2.0, 3.0)
    state.poses["orientation"][0] = turn.as_quat()
    random = np.random.default_rng(1)
    for point in random.uniform(-0.2, 0.2, (200, 3)):
        inside = np.abs(point).max() < 0.1
        got = winding_number(model, state, 0, turn.apply(point) + (1.0, 2.0, 3.0))
        assert got == pytest.approx(flip * inside, abs=1e-12)


def test_winding_number_before_a_plate_is_its_solid_angle():
    """A square of half width a seen from height h on its axis fills 4 asin(a^2 / (a^2 + h^2)) of 4 pi."""
    model = model_of(*square(0.1))
    state = make_state(model, (0.0, 0.0, 1.0))
    for height in (0.01, 0.1, 0.5):
        share = 4 * np.arcsin(0.01 / (0.01 + height**2)) / (4 * np.pi)
        assert winding_number(model, state, 0, np.array([0.0, 0.0, height])) == pytest.approx(-share, abs=1e-12)
        assert share < 0.5


def ask(rig: Rig, *position: float) -> Reason:
    return rig.command(CommandKind.POSE_BODY, 0.0, *position, 0.0, 0.0, 0.0, 1.0)


def test_a_box_may_not_be_put_around_the_tool():
    rig = Rig(model_of(0.1 * CORNERS, FACES, (0.5, 0.0, 0.0)), start=(0.0, 0.0, 0.0))
    assert ask(rig, 0.0, 0.0, 0.0) == Reason.BAD_VALUE
    assert np.array_equal(rig.state.poses["position"][0], (0.5, 0.0, 0.0))
    assert ask(rig, -0.5, 0.0, 0.0) == Reason.NONE


def test_a_room_may_move_as_long_as_the_tool_stays_inside():
    rig = Rig(model_of(0.5 * CORNERS, FACES), start=(0.0, 0.0, 0.0))
    assert ask(rig, 0.4, 0.0, 0.0) == Reason.NONE
    assert ask(rig, 0.499, 0.0, 0.0) == Reason.BAD_VALUE
    assert ask(rig, 2.0, 0.0, 0.0) == Reason.BAD_VALUE
    assert np.array_equal(rig.state.poses["position"][0], (0.4, 0.0, 0.0))


def test_a_plate_may_change_sides():
    rig = Rig(model_of(*square(0.1), (0.0, 0.0, -0.05)), start=(0.0, 0.0, 0.0))
    assert ask(rig, 0.0, 0.0, 0.05) == Reason.NONE


def tool_model(tool: tuple[np.ndarray, np.ndarray], body: tuple[np.ndarray, np.ndarray], position=(0.5, 0.0, 0.0)):
    """A held body and a whole mesh as tool."""
    builder = ModelBuilder()
    builder.add_body(builder.add_mesh(*build_tree(*body)), position, kind=HELD)
    mesh_id = builder.add_mesh(*build_tree(*tool))
    return builder.build(0.0, (0.0, 0.0, 0.0), EPS_ALERT, EPS_SAFETY, EPS_BREAK, tool_mesh_id=mesh_id)


def test_a_body_keeps_the_safety_distance_to_a_mesh_as_tool():
    """Boxes of half edge 0.05 and 0.1, face to face: the centres are 0.15 + gap apart."""
    rig = Rig(tool_model((0.05 * CORNERS, FACES), (0.1 * CORNERS, FACES)), start=(0.0, 0.0, 0.0))
    assert ask(rig, 0.15 + 0.99 * EPS_SAFETY, 0.02, 0.0) == Reason.BAD_VALUE
    assert np.array_equal(rig.state.poses["position"][0], (0.5, 0.0, 0.0))
    assert ask(rig, 0.15 + 1.01 * EPS_SAFETY, 0.02, 0.0) == Reason.NONE
    # The corner of the tool counts, wherever its centre is.
    assert ask(rig, 0.0, 0.149, 0.0) == Reason.BAD_VALUE
    assert ask(rig, 0.12, 0.12, 0.149) == Reason.BAD_VALUE
    assert ask(rig, 0.12, 0.12, 0.151) == Reason.NONE


def test_a_body_may_not_be_put_around_a_mesh_as_tool_nor_into_it():
    small, large = 0.05 * CORNERS, 0.3 * CORNERS
    rig = Rig(tool_model((small, FACES), (large, FACES)), start=(0.0, 0.0, 0.0))
    assert ask(rig, 0.0, 0.0, 0.0) == Reason.BAD_VALUE
    assert ask(rig, -0.5, 0.0, 0.0) == Reason.NONE
    rig = Rig(tool_model((large, FACES), (small, FACES)), start=(0.0, 0.0, 0.0))
    assert ask(rig, 0.0, 0.0, 0.0) == Reason.BAD_VALUE
    assert ask(rig, -0.5, 0.0, 0.0) == Reason.NONE


def test_a_room_round_a_mesh_as_tool_may_move():
    rig = Rig(tool_model((0.05 * CORNERS, FACES), (0.5 * CORNERS, FACES), (0.0, 0.0, 0.0)), start=(0.0, 0.0, 0.0))
    assert ask(rig, 0.4, 0.0, 0.0) == Reason.NONE
    assert ask(rig, 0.4499, 0.0, 0.0) == Reason.BAD_VALUE
    assert ask(rig, 2.0, 0.0, 0.0) == Reason.BAD_VALUE


def test_a_body_posed_anew_stops_a_mesh_as_tool_where_it_is_now():
    """What was known of the old distance must not count: the tool drives 0.3 m towards a box put in its way."""
    model = tool_model((0.05 * CORNERS, FACES), (0.1 * CORNERS, FACES), (5.0, 0.0, 0.0))
    state = make_state(model, (0.0, 0.0, 0.0))
    wanted, budget, report = make_input(), np.zeros(1, BUDGET), np.zeros(1, STEP_REPORT)
    wanted["goal_orientation"][0, 3] = 1.0
    budget[0] = (20000, 8, 50, 0)
    for _ in range(3):
        step(model, state, wanted[0], budget[0], report[0])
    values = np.array([0.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    assert pose_body(model, state, values) == OK
    for k in range(150):
        wanted["goal_position"][0, 0] = 0.002 * (k + 1)
        step(model, state, wanted[0], budget[0], report[0])
        assert state.proxy["position"][0, 0] <= 0.15 - EPS_ALERT * (1 - 1e-6)
    assert state.proxy["position"][0, 0] > 0.14


FAR = (0.0, 0.0, 50.0)
"""Where the tool is parked."""


def moving_model(held: np.ndarray, mover: np.ndarray, kind: int, at=(0.0, 0.0, 0.0), velocity=(0.0, 0.0, 0.0)) -> Model:
    """Two boxes given by their corners (8, 3): a held one 5 m aside, and one that moves; no gravity."""
    builder = ModelBuilder()
    builder.add_body(builder.add_mesh(*build_tree(held, FACES)), (5.0, 0.0, 0.0), kind=HELD)
    inertia = mesh_inertia(mover, FACES, 1000.0) if kind == FREE else None
    mesh = builder.add_mesh(*build_tree(mover, FACES))
    builder.add_body(mesh, at, kind=kind, inertia=inertia, velocity=(*velocity, 0.0, 0.0, 0.0))
    tool = builder.add_mesh(*build_tree(0.05 * CORNERS, FACES))
    eps = (EPS_ALERT, EPS_SAFETY, EPS_BREAK)
    return builder.build(0.0, (0.0, 0.0, 0.0), *eps, tool_mesh_id=tool, turning=1e-6)


def put(model: Model, state, *position: float) -> int:
    return pose_body(model, state, np.array([0.0, *position, 0.0, 0.0, 0.0, 1.0]))


@pytest.mark.parametrize("kind", [FREE, KINEMATIC])
def test_a_body_keeps_the_safety_distance_to_one_that_moves(kind):
    """As to the tool: boxes of half edge 0.05 and 0.1."""
    model = moving_model(0.1 * CORNERS, 0.05 * CORNERS, kind)
    state = make_state(model, FAR)
    assert put(model, state, 0.15 + 0.99 * EPS_SAFETY, 0.02, 0.0) == BAD_VALUE
    assert np.array_equal(state.poses["position"][0], (5.0, 0.0, 0.0))
    assert put(model, state, 0.12, 0.12, 0.149) == BAD_VALUE
    assert put(model, state, 0.0, 0.0, 0.0) == BAD_VALUE
    assert put(model, state, 0.15 + 1.01 * EPS_SAFETY, 0.02, 0.0) == OK
    assert put(model, state, -0.5, 0.0, 0.0) == OK
    # Where the body has gone since, not where it was loaded, counts.
    state.poses["position"][1] = (0.0, 0.0, 1.0)
    assert put(model, state, 0.0, 0.0, 0.0) == OK
    assert put(model, state, 0.0, 0.0, 1.0) == BAD_VALUE


@pytest.mark.parametrize(("held", "mover"), [(0.3, 0.05), (0.05, 0.3)])
def test_a_body_may_not_be_put_around_one_that_moves_nor_into_it(held, mover):
    model = moving_model(held * CORNERS, mover * CORNERS, FREE)
    state = make_state(model, FAR)
    assert put(model, state, 0.0, 0.0, 0.0) == BAD_VALUE
    assert put(model, state, -0.5, 0.0, 0.0) == OK


def test_a_room_round_a_body_that_moves_may_move():
    model = moving_model(0.5 * CORNERS, 0.05 * CORNERS, FREE, at=(5.0, 0.0, 0.0))
    state = make_state(model, FAR)
    assert put(model, state, 5.4, 0.0, 0.0) == OK
    assert put(model, state, 5.4499, 0.0, 0.0) == BAD_VALUE
    assert put(model, state, 7.0, 0.0, 0.0) == BAD_VALUE


def test_a_body_posed_anew_stops_one_that_moves_where_it_is_now():
    """A box glides along a wall at 1 m/s, within reach of it; the wall is then put 1.2 mm before its nose.

    That is so near that the two stay a pair all the time.
    """
    size = 0.1 * CORNERS
    gap = 0.5 * (EPS_SAFETY + EPS_BREAK)
    model = moving_model(size, 0.05 * CORNERS, FREE, at=(4.9, 0.15 + gap, 0.0), velocity=(1.0, 0.0, 0.0))
    state = make_state(model, FAR)
    wanted, budget, report = make_input(0.0), np.zeros(1, BUDGET), np.zeros(1, STEP_REPORT)
    wanted["goal_position"][0] = FAR
    budget[0] = (20000, 8, 50, 0)
    for _ in range(20):
        step(model, state, wanted[0], budget[0], report[0])
    assert state.pairs.table[0]["count"] == 1
    x, y, _ = state.poses["position"][1]
    assert x == pytest.approx(4.92, abs=1e-9)
    assert put(model, state, x + 0.15 + 0.0012, y, 0.0) == OK
    for _ in range(30):
        step(model, state, wanted[0], budget[0], report[0])
        wall, glider = (
            Rotation.from_quat(state.poses["orientation"][k]).apply(half * CORNERS) + state.poses["position"][k]
            for k, half in ((0, 0.1), (1, 0.05))
        )
        assert not too_near(wall[FACES], glider[FACES], EPS_ALERT * (1 - 1e-6))
    assert report[0]["body_contacts"] > 0
    assert x + 0.0005 < state.poses["position"][1, 0] <= x + 0.0012 - EPS_ALERT * (1 - 1e-6)


@pytest.mark.parametrize("kind", [FREE, KINEMATIC])
def test_a_ball_keeps_the_safety_distance_of_its_surface(kind):
    """A held ball of radius 0.1 beside the tool, a box of half edge 0.05, and beside a ball of 0.2 that moves."""
    builder = ModelBuilder()
    point = builder.add_mesh(*build_tree(np.zeros((1, 3)), np.zeros((1, 3), np.int64)))
    builder.add_body(point, (5.0, 0.0, 0.0), kind=HELD, rounding=0.1)
    inertia = body_inertia(1.0, 0.016 * np.eye(3)) if kind == FREE else None
    builder.add_body(point, (0.0, 3.0, 0.0), kind=kind, inertia=inertia, rounding=0.2)
    tool = builder.add_mesh(*build_tree(0.05 * CORNERS, FACES))
    eps = (EPS_ALERT, EPS_SAFETY, EPS_BREAK)
    model = builder.build(0.0, (0.0, 0.0, 0.0), *eps, tool_mesh_id=tool, turning=1e-6)
    state = make_state(model, (0.0, 0.0, 0.0))
    toward = np.array((2.0, 3.0, 6.0)) / 7.0
    for at, reach, way in ((0.0, 0.15, (1.0, 0.0, 0.0)), (3.0, 0.3, toward)):
        origin = np.array((0.0, at, 0.0))
        assert put(model, state, *(origin + (reach + 0.99 * EPS_SAFETY) * np.array(way))) == BAD_VALUE
        assert put(model, state, *(origin + 0.1 * reach * np.array(way))) == BAD_VALUE
        assert state.poses["position"][0, 0] == 5.0
    for at, reach, way in ((0.0, 0.15, (1.0, 0.0, 0.0)), (3.0, 0.3, toward)):
        assert put(model, state, *(np.array((0.0, at, 0.0)) + (reach + 1.01 * EPS_SAFETY) * np.array(way))) == OK
