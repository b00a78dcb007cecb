"""Each task scene is done by its hand; one of them with the whole daemon, by `hapticd demo --scene`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from daemons import ROOT
from task_rig import do_task, repeat

from bridge.scripts import read_script
from bridge.task_check import Bodies, force_steps, gained, play, reached, separation
from bridge.tasks import TASKS, config_of, script_of
from bridge.verify.judgement import verify
from haptics.states import EngagementState

MOMENTS = {"door": 8, "bolt": 12}
"""At which distances are measured again here; fewer where a moment takes long."""

FELT = {"gears": 0.1}
"""N, the least of the largest force; less where the hand feels a torque."""


def environment(runtime: Path) -> dict[str, str]:
    """A runtime directory of the test's own, no display, and the project importable from anywhere."""
    kept = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "HAPTICD_DEBUG", "HAPTICD_NAME")}
    return {**kept, "HAPTICD_RUNTIME_DIR": str(runtime), "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
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


@pytest.mark.slow
@pytest.mark.parametrize("task", ["stack"])
def test_a_task_with_the_whole_daemon(tmp_path, task):
    done = subprocess.run(
        [sys.executable, "-m", "bridge", "demo", "--scene", task, "--no-window", "--out", "out", "--json"],
        capture_output=True,
        text=True,
        env=environment(tmp_path / "r"),
        cwd=tmp_path,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    figures = json.loads(done.stdout.strip().splitlines()[-1])
    assert figures["ok"] and figures["completed"] and figures["failures"] == []
    assert figures["penetrations"] == 0 and figures["ticks_differing"] == 0
    assert figures["independent_gap_min_mm"] > 0.0
    judged = verify(tmp_path / "out" / f"{task}.mcap", every=200)
    assert judged.passed and judged.certificates[0].passed, str(judged)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *(f"{task}-plot.png", f"{task}-scene.png", f"{task}.mcap"),
    ]


def test_the_scenes_are_named_where_one_looks(tmp_path):
    def told(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bridge", "demo", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment(tmp_path))

    listed = told("--list")
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(TASKS)
    shown = told("--help").stdout
    assert all(task in shown for task in TASKS)
    wrong = told("--scene", "pegg")
    assert wrong.returncode == 2 and "peg, door" in wrong.stderr and "Traceback" not in wrong.stderr
    make = (Path(ROOT) / "Makefile").read_text()
    assert all(task in make for task in TASKS)
