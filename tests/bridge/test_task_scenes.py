"""Each task scene is done by its hand, without processes."""

import numpy as np
import pytest
from task_rig import do_task, repeat

from bridge.scripts import read_script
from bridge.task_check import Bodies, force_steps, gained, play, reached, separation
from bridge.tasks import TASKS, config_of, script_of
from haptics.states import EngagementState

MOMENTS = {"door": 8, "bolt": 12}
"""At which distances are measured again here; fewer where a moment takes long."""

LONG = ("door", "gears", "bolt")
"""Those that `make longtest` does; the others stand for them in `make test`."""

FELT = {"gears": 0.1}
"""N, the least of the largest force; less where the hand feels a torque."""


@pytest.mark.slow
@pytest.mark.parametrize("task", [pytest.param(task, marks=[pytest.mark.long] * (task in LONG)) for task in TASKS])
def test_a_hand_does_its_task_without_touching_and_the_same_again(task):
    assembly, records, states = do_task(config_of(task), script_of(task))
    output = records["output"]
    assert output["state"][-1] == EngagementState.ACTIVE
    bodies = Bodies(assembly.model, states)
    assert repeat(assembly, records) == 0
    script = read_script(script_of(task))
    for goal in reached(script.goals, records, bodies, assembly.body_names):
        assert goal.seconds is not None, goal
    for ratio in script.ratios:
        assert play(ratio, records, bodies, assembly.body_names) <= ratio.within
    energy = gained(assembly.model, assembly.settings[0], records, bodies)
    assert (energy is None) == (states is None)
    assert energy is None or energy[0] <= energy[1]
    found = separation(assembly.model, records, bodies, MOMENTS.get(task, 24))
    alert = assembly.eps["eps_alert"]
    assert (found.crossing, found.inside) == (0, 0)
    assert found.smallest is not None and alert * (1.0 - 1e-3) < found.smallest < 10.0 * alert
    steps = force_steps(records)
    bound = float(assembly.settings[0]["force_slew"])
    # Not even the spring asks for more than may be sent: nothing jumps.
    assert steps["force_step_N"] <= bound and steps["wanted_force_step_N"] <= bound
    assert FELT.get(task, 0.8) < np.linalg.norm(output["wrench"][:, :3], axis=1).max() < 5.0, "it felt its way"
