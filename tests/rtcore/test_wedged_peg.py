"""A peg that was turned into the corner of its socket comes out again when it is pulled.

Two of its edges are then nearer to the walls than eps_safety. The search for near features goes in turns here
(DEGRADED_CONTACTS), and must come round to them: what it never lists cannot be opened, and blocks every motion.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bridge.assemble import assemble
from bridge.config import load_config
from haptics.hands import minimum_jerk
from rtcore.state import make_state
from rtcore.step import step
from rtcore.tables import BUDGET, STEP_INPUT, STEP_REPORT

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "peg.toml"
CORNER = np.array([-1e-4, 1e-4, 0.0])


@pytest.mark.parametrize("degrees", [40.0])
def test_a_peg_turned_into_a_corner_comes_out(degrees):
    model = assemble(load_config(CONFIG), CONFIG.parent).model
    state = make_state(model, (-9.5e-5, 9.5e-5, 5e-6), (0.0, 0.0, 0.0, 1.0))
    budget, inputs, report = np.zeros(1, BUDGET), np.zeros(1, STEP_INPUT), np.zeros(1, STEP_REPORT)
    budget["units"], budget["passes"], budget["sweeps"] = 20000, 8, 50
    inputs["stiffness"], inputs["rotational_stiffness"] = 1000.0, 0.5

    def pull(height: float, angle: float) -> None:
        inputs["goal_position"] = CORNER + (0.0, 0.0, height)
        inputs["goal_orientation"] = Rotation.from_rotvec((0.0, 0.0, angle)).as_quat()
        step(model, state, inputs[0], budget[0], report[0])

    for _ in range(200):  # it is pressed to the floor, 1.5 N
        pull(-1.5e-3, 0.0)
    for k in range(500):  # turned
        pull(-1.5e-3, np.radians(degrees) * minimum_jerk((k + 1) / 500)[0])
    for k in range(1500):  # and pulled, up to 8 N
        pull(8e-3 * min(1.0, k / 500), np.radians(degrees))
    assert state.proxy[0]["position"][2] > 7e-3
