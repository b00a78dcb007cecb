"""Contacts of pairs of bodies, carried along while they hardly move against one another."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rtcore.dynamics.inertia import body_inertia
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, FREE, STEP_REPORT
from tools.scenes.bodies import block

EPS = (2e-5, 5e-5, 1e-4)


@pytest.mark.parametrize("other", ["ball", "box"])
def test_a_ball_that_spins_in_place_keeps_the_normals_of_its_contacts(other):
    """At rest beside another body, a quarter of a millimetre of turning per tick: the line of centres is the normal."""
    builder = ModelBuilder()
    point = builder.add_mesh(*build_tree(np.zeros((1, 3)), np.zeros((1, 3), np.int64)))
    cube = block(0.1, 0.1, 0.1)
    box = builder.add_mesh(*build_tree(cube.vertices, cube.faces))
    inertia = body_inertia(0.1, 1e-5 * np.eye(3))
    gap = 7e-5
    builder.add_body(point, kind=FREE, inertia=inertia, velocity=(0, 0, 0, 0, 5, 0), rounding=0.05)
    if other == "ball":
        normal = np.array((2.0, 3.0, 6.0)) / 7.0
        builder.add_body(point, (0.07 + gap) * normal, rounding=0.02)
    else:
        normal = np.array((1.0, 0.0, 0.0))
        builder.add_body(box, (0.1 + gap, 0.01, 0.02))
    model = builder.build(0.0, (0.0, 0.0, 0.0), *EPS, tool_mesh_id=box, turning=1e-3)
    far = (0.0, 0.0, 9.0)
    state = make_state(model, far)
    asked, budget, report = make_input(0.0), np.zeros(1, BUDGET), np.zeros(1, STEP_REPORT)
    asked["goal_position"][0] = far
    budget[0] = (20000, 8, 50, 20000)
    for _ in range(60):
        turned = Rotation.from_quat(state.poses["orientation"][0])
        step(model, state, asked[0], budget[0], report[0])
        pair = state.pairs.rows[state.pairs.order[0]]
        assert pair["count"] == 1
        contact = pair["contacts"][0]
        np.testing.assert_allclose(turned.apply(contact["normal"]), normal, atol=1e-12)
        assert contact["gap"] == pytest.approx(gap, rel=1e-9)
    assert turned.magnitude() == pytest.approx(59 * 0.005, rel=1e-9) and contact["age"] > 50
