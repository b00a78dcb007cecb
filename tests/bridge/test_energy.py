"""The account of energy, against the formulas of a thrown top and of a stretched spring."""

import numpy as np
import pytest
from drawn import ball_mesh, box_mesh, model_of
from scipy.spatial.transform import Rotation

from bridge.energy import energy_gain, energy_of_bodies
from haptics.tables import BODY_SAMPLE, RECORD, SETTINGS
from rtcore.tables import FREE

COUNT = 200
DT = 1e-3
MASS = 2.0
TENSOR = np.array([[0.3, 0.02, -0.01], [0.02, 0.2, 0.03], [-0.01, 0.03, 0.15]])
CENTRE = np.array([0.1, -0.2, 0.05])
GRAVITY = np.array([1.0, -2.0, -9.0])
STIFFNESS, TWIST, SCALE = 800.0, 0.5, 2.0


def scene():
    """A free body with a skew tensor of inertia and its centre of mass off the origin, and one at rest."""
    model = model_of(box_mesh(1.0), box_mesh(1.0), tool=ball_mesh(0.1, 2))
    model.bodies["kind"][1] = FREE
    moments, axes = np.linalg.eigh(TENSOR)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    model.inertias["mass"][1] = MASS
    model.inertias["moments"][1] = moments
    model.inertias["axes"][1] = Rotation.from_matrix(axes).as_quat()
    model.inertias["centre"][1] = CENTRE
    model.world["gravity"][0] = GRAVITY
    return model


def run() -> tuple[np.ndarray, np.ndarray, np.void]:
    """Records of a tool that stands at its goal, states of a body at rest, and settings."""
    records = np.zeros(COUNT, RECORD)
    records["tick"] = np.arange(COUNT) + 5
    for name in ("proxy_orientation", "goal_orientation"):
        records["output"][name][:, 3] = 1.0
    states = np.zeros((COUNT, 1), BODY_SAMPLE)
    states["orientation"][..., 3] = 1.0
    settings = np.zeros(1, SETTINGS)
    settings["stiffness"], settings["rotational_stiffness"], settings["scale"] = STIFFNESS, TWIST, SCALE
    return records, states, settings[0]


def gain(records: np.ndarray, states: np.ndarray, settings: np.void, model=None) -> float:
    return energy_gain(scene() if model is None else model, settings, records, states, [1])


def test_energy_of_a_body_is_that_of_its_tensor_and_its_centre_of_mass():
    _, states, _ = run()
    random = np.random.default_rng(1)
    turns = Rotation.from_quat(random.standard_normal((COUNT, 4)))
    states["orientation"][:, 0] = turns.as_quat()
    for name in ("position", "linear", "angular"):
        states[name][:, 0] = random.standard_normal((COUNT, 3))
    told, size = energy_of_bodies(scene(), states, [1])
    assert (size >= np.abs(told)).all()
    for state, one, turn in zip(states[:, 0], told, turns.as_matrix(), strict=True):
        spin, speed = state["angular"], state["linear"]
        wanted = 0.5 * MASS * speed @ speed + 0.5 * spin @ turn @ TENSOR @ turn.T @ spin
        assert one == pytest.approx(wanted - MASS * GRAVITY @ (state["position"] + turn @ CENTRE), rel=1e-12)
    assert energy_of_bodies(scene(), states, [0])[0].max() == 0.0, "what does not move freely has none"


def test_a_body_that_is_thrown_gains_nothing_and_a_blow_is_found():
    records, states, settings = run()
    t = DT * np.arange(COUNT)[:, None]
    states["linear"][:, 0] = (1.0, 0.0, 3.0) + GRAVITY * t
    states["position"][:, 0] = np.array((1.0, 0.0, 3.0)) * t + 0.5 * GRAVITY * t**2
    assert gain(records, states, settings) < 1e-12
    struck = states.copy()
    struck["linear"][100:, 0, 1] += 0.5
    more = 0.5 * MASS * ((struck["linear"][100, 0] ** 2).sum() - (states["linear"][100, 0] ** 2).sum())
    assert gain(records, struck, settings) == pytest.approx(more)
    # What was lost before does not count against it.
    struck["position"][:50, 0, 2] += 1.0
    assert gain(records, struck, settings) == pytest.approx(more)
    # Where ticks are missing nothing is known.
    assert gain(np.delete(records, 100), np.delete(struck, 100, axis=0), settings) < 1e-12


def test_what_the_hand_puts_into_the_spring_is_no_gain():
    records, states, settings = run()
    output = records["output"]
    output["goal_position"][50:, 0] = 0.01  # the goal goes, the tool stays
    output["goal_orientation"][80:] = Rotation.from_rotvec((0.0, 0.3, 0.0)).as_quat()
    assert gain(records, states, settings) == 0.0
    output["proxy_position"][120:, 0] = 0.004  # it follows a part of the way: the spring gives
    assert gain(records, states, settings) == 0.0
    # Given to the body, all of it, it is no gain; twice of it is.
    given = 0.5 * (STIFFNESS / SCALE) * (0.01**2 - 0.006**2)
    states["linear"][120:, 0, 2] = np.sqrt(2.0 * given / MASS)
    assert gain(records, states, settings) == pytest.approx(0.0, abs=1e-15)
    states["linear"][120:, 0, 2] *= np.sqrt(2.0)
    assert gain(records, states, settings) == pytest.approx(given)


def test_a_tool_that_goes_from_its_goal_by_itself_is_a_gain():
    records, states, settings = run()
    records["output"]["proxy_position"][100:, 1] = 0.01
    assert gain(records, states, settings) == pytest.approx(0.5 * (STIFFNESS / SCALE) * 0.01**2)
    records, states, settings = run()
    records["output"]["proxy_orientation"][100:] = Rotation.from_rotvec((0.0, 0.0, 0.2)).as_quat()
    assert gain(records, states, settings) == pytest.approx(0.5 * TWIST * SCALE * 0.2**2)
    # The balance turns the tool with a stiffness of its own where that of the hand is less.
    model = scene()
    model.world["turning"] = 0.01
    assert gain(records, states, settings, model) == pytest.approx(0.5 * (0.01 * STIFFNESS / SCALE) * 0.2**2)
