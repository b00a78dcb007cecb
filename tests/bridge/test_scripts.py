"""Scripts for hands: what they may say, and what is told when they say something else."""

import numpy as np
import pytest

from bridge.recordings import RecordingError
from bridge.scripts import read_script
from bridge.tasks import TASKS, config_of, script_of

STEP = "[[step]]\nseconds = 1\n"
HAND = "[hand]\n"


def read(tmp_path, text):
    path = tmp_path / "a.toml"
    path.write_text(text)
    return read_script(path)


def test_all_that_a_script_may_say(tmp_path):
    script = read(
        tmp_path,
        '[hand]\ngrip = "light"\nshift = 0.001\nturn_deg = 90\nsway = 0.0001\nseed = 3\ndelay_ticks = 2\n'
        "[[step]]\nby = [0, 0, 1]\nturn_deg = [0, 0, 720]\nseconds = 2\nuntil_force = 1.5\n"
        "until_moved = 0.1\nsearch = 0.2\n"
        '[[goal]]\nwhat = "there"\nposition = [1, 2, 3]\nwithin = [0.1, 0.1, 0.2]\norientation = [0, 0, 0, 1]\n'
        'within_deg = 2\nbody = "lid"\nat_end = true\n'
        '[[ratio]]\nwhat = "follows"\nbody = "wheel"\naxis = [0, 0, 2]\nratio = -0.5\nwithin_deg = 180\n',
    )
    assert script.hand is not None and script.hand.grip == "light" and script.hand.delay_ticks == 2
    wrong = script.hand.misjudgement
    assert (wrong.shift, wrong.turn, wrong.sway, wrong.seed) == (0.001, pytest.approx(np.pi / 2), 0.0001, 3)
    (step,) = script.steps
    assert (step.seconds, step.until_force, step.until_moved, step.search) == (2.0, 1.5, 0.1, 0.2)
    np.testing.assert_allclose(step.turn, (0, 0, 4 * np.pi))
    (goal,) = script.goals
    assert (goal.what, goal.body, goal.within_deg, goal.at_end) == ("there", "lid", 2.0, True)
    np.testing.assert_allclose(goal.within, (0.1, 0.1, 0.2))
    (ratio,) = script.ratios
    assert (ratio.what, ratio.body, ratio.ratio, ratio.within) == ("follows", "wheel", -0.5, pytest.approx(np.pi))
    np.testing.assert_allclose(ratio.axis, (0, 0, 1))


def test_a_script_without_a_hand_is_followed_exactly(tmp_path):
    assert read(tmp_path, STEP).hand is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (STEP + "until_force = 1\n", "`until_force` needs a hand that feels"),
        (HAND + STEP + "to = [0, 0, 0]\nby = [0, 0, 0]\n", "either `to` or `by`"),
        (HAND + STEP + "orientation = [0, 0, 0, 1]\nturn_deg = [0, 0, 1]\n", "either `orientation` or `turn_deg`"),
        (HAND + STEP + "until_force = -1\n", "`until_force` must be a finite number, 0 or more"),
        (HAND + 'grip = "iron"\n' + STEP, "`grip` is one of held, light"),
        (HAND + "seed = 1.5\n" + STEP, "`seed` must be a whole number"),
        (HAND + "shift = inf\n" + STEP, "`shift` must be a finite number"),
        (HAND + "wrong = 1\n" + STEP, "wrong is not known; keys are grip"),
        (STEP + '[[goal]]\nwhat = "a"\nposition = [0, 0, 0]\n', "goal 1: `within` is missing"),
        (STEP + '[[goal]]\nwhat = "a"\nposition = [0, 0, 0]\nwithin = [0, 1, 1]\n', "`within` must be above 0"),
        (
            STEP + '[[goal]]\nwhat = "a"\nposition = [0, 0, 0]\nwithin = [1, 1, 1]\nwithin_deg = 1\n',
            "`orientation` and `within_deg` belong together",
        ),
        (
            STEP + '[[goal]]\nwhat = "a"\nposition = [0, 0, 0]\nwithin = [1, 1, 1]\nat_end = 1\n',
            "`at_end` must be true or false",
        ),
        ("goal = 5\n" + STEP, "goals are tables"),
        (STEP + '[[ratio]]\nwhat = "a"\n', "ratio 1: `body` is missing"),
        (
            STEP + '[[ratio]]\nwhat = "a"\nbody = "b"\naxis = [0, 0, 0]\nratio = 1\nwithin_deg = 1\n',
            "`axis` must have a length",
        ),
    ],
)
def test_bad_scripts_are_told(tmp_path, text, sentence):
    with pytest.raises(RecordingError, match=sentence) as caught:
        read(tmp_path, text)
    assert "a.toml" in str(caught.value)


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_a_scene_a_hand_that_errs_and_goals(task):
    assert config_of(task).is_file()
    script = read_script(script_of(task))
    assert script.hand is not None and script.hand.misjudgement.shift >= 1e-4
    assert len(script.goals) >= 2
