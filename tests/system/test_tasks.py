"""A task scene with the whole daemon, by `hapticd demo --scene`; each scene without processes: test_task_scenes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from daemons import ROOT

from bridge.log.reader import read_log
from bridge.tasks import SCENES
from bridge.verify.judgement import verify
from haptics.states import Reason


def environment(runtime: Path) -> dict[str, str]:
    """A runtime directory of the test's own, no display, and the project importable from anywhere."""
    kept = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "HAPTICD_DEBUG", "HAPTICD_NAME")}
    return {**kept, "HAPTICD_RUNTIME_DIR": str(runtime), "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.long
@pytest.mark.parametrize("task", ["stack"])
def test_a_task_with_the_whole_daemon(tmp_path, task):
    log = tmp_path / "out" / f"{task}.mcap"
    # A hand in real time that the machine held up may leave boxes behind, where its log says that samples came late;
    # whatever happens, nothing penetrates and the log repeats. Where it once keeps up, the task is done.
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "bridge", "demo", "--scene", task, "--no-window", "--out", "out", "--json"],
            capture_output=True,
            text=True,
            env=environment(tmp_path / "r"),
            cwd=tmp_path,
            timeout=170,
        )
        assert done.stdout, done.stderr
        figures = json.loads(done.stdout.strip().splitlines()[-1])
        held_up = (read_log(log).records["output"]["reason"] == Reason.SAMPLE_STALE).any()
        if done.returncode == 0 or not held_up:
            break
    assert figures["penetrations"] == 0 and figures["ticks_differing"] == 0
    assert figures["independent_gap_min_mm"] > 0.0
    if done.returncode == 0:
        assert figures["ok"] and figures["completed"] and figures["failures"] == []
    else:
        assert held_up, done.stderr + done.stdout
        assert all(failure.startswith("not reached") for failure in figures["failures"]), figures["failures"]
    judged = verify(log, every=200)
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
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(SCENES)
    shown = told("--help").stdout
    assert all(task in shown for task in SCENES)
    wrong = told("--scene", "pegg")
    assert wrong.returncode == 2 and "peg, door" in wrong.stderr and "Traceback" not in wrong.stderr
    make = (Path(ROOT) / "Makefile").read_text()
    assert all(task in make for task in SCENES)
