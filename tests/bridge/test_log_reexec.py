"""A log executed again gives the same bits, and a log in which one bit is wrong is found out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from log_run import Run, log_of, run_ticks
from log_samples import ListRing, attachments, write_log

from bridge.log.fields import column
from bridge.log.reader import LogError, read_log
from bridge.log.recorder import Recorder
from bridge.log.reexec import reexecute
from haptics.tables import RECORD

TICKS = 1500


@pytest.fixture(scope="module")
def run() -> Run:
    return run_ticks(TICKS)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    return log_of(tmp_path_factory.mktemp("reexec") / "run.mcap", run)


def test_the_run_is_worth_executing_again(run: Run):
    output = run.records["output"]
    assert set(output["state"].tolist()) >= {0, 1, 2, 3, 4, 5}
    assert np.count_nonzero(output["report"]["contact_count"]) > 500
    assert (np.abs(output["wrench"][:, :3]).max(axis=0) > 0.5).all()
    assert output["report"]["degraded"].any()


def test_no_tick_differs(path: Path, run: Run):
    parts: list[float] = []
    result = reexecute(path, parts.append)
    assert (result.ticks, result.ticks_differing, result.bytes_differing) == (TICKS, 0, 0)
    assert result.same and result.first is None and result.ticks_skipped == 0
    assert parts[-1] == pytest.approx(1.0, abs=1e-3) and parts == sorted(parts)
    assert reexecute(read_log(path)).same


def test_no_tick_differs_in_another_process(path: Path):
    code = (
        "import json, sys; from bridge.log.reexec import reexecute; print(json.dumps(reexecute(sys.argv[1]).to_dict()))"
    )
    answer = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout)["ticks_differing"] == 0


@pytest.mark.parametrize(
    ("field", "bit", "at"),
    [
        ("input.sample.position[2]", 20, 450),
        ("input.sample.t_sample", 12, 450),
        ("input.command.kind", 0, 14),  # ARM
        ("input.age_ns", 23, 450),
        ("budget.units", 7, 447),  # a tight one: 150 becomes 22
        ("input.fresh", 0, 450),
    ],
)
def test_one_wrong_bit_of_the_input_is_found(tmp_path: Path, run: Run, field: str, bit: int, at: int):
    """From its tick on; what came before is the same."""
    records = run.records.copy()
    value = column(records, field)
    raw = value[at : at + 1].copy().view(f"u{value.dtype.itemsize}")
    raw ^= np.array(1 << bit, raw.dtype)
    value[at : at + 1] = raw.view(value.dtype)
    run_with = Run(run.model, run.settings, records, run.snapshots)
    result = reexecute(log_of(tmp_path / "a.mcap", run_with))
    assert not result.same
    assert result.first is not None
    assert at + 1 <= result.first.tick <= at + 12  # a velocity estimate may take its window to show it


@pytest.mark.parametrize(
    "field",
    [
        "output.wrench[2]",
        "output.report.contacts[0].gap",
        "output.report.path[0][1]",
        "output.owner",
        "output.limited",
        "output.report.contacts[11].sliding",
        "output.energy",
    ],
)
def test_one_wrong_bit_of_the_output_is_found_and_named(tmp_path: Path, run: Run, field: str):
    records = run.records.copy()
    value = column(records, field)
    raw = value[700:701].copy().view(f"u{value.dtype.itemsize}")
    raw ^= np.array(1, raw.dtype)
    value[700:701] = raw.view(value.dtype)
    result = reexecute(log_of(tmp_path / "a.mcap", Run(run.model, run.settings, records, run.snapshots)))
    assert (result.ticks, result.ticks_differing, result.bytes_differing) == (TICKS, 1, 1)
    assert result.first is not None
    assert (result.first.tick, result.first.field) == (701, field)
    assert result.first.logged != result.first.executed
    assert f"tick 701, {field}" in str(result)


def test_a_wrong_setting_or_model_is_found(tmp_path: Path, run: Run):
    settings = run.settings.copy()
    settings["damping"] *= 1.0 + 1e-15
    settings["damping"] = np.nextafter(settings["damping"], 1e9)
    other = Run(run.model, settings, run.records, run.snapshots)
    assert not reexecute(log_of(tmp_path / "a.mcap", other)).same
    triangles = run.model.triangles.copy()
    triangles["vertices"][:, :, 2] += 1e-9
    other = Run(run.model._replace(triangles=triangles), run.settings, run.records, run.snapshots)
    assert not reexecute(log_of(tmp_path / "b.mcap", other)).same


def test_a_log_that_starts_late_is_executed_from_its_snapshot(tmp_path: Path, run: Run):
    path = log_of(tmp_path / "a.mcap", run, [run.records[500:700], run.records[700:]], [400, 800])
    result = reexecute(path)
    assert (result.ticks, result.ticks_skipped, result.ticks_differing) == (TICKS - 800, 300, 0)


def test_execution_goes_on_after_a_gap(tmp_path: Path, run: Run):
    items = [run.records[:300], 200, run.records[500:700], run.records[700:]]
    result = reexecute(log_of(tmp_path / "a.mcap", run, items, [0, 200, 400, 600]))
    assert (result.ticks, result.ticks_skipped, result.ticks_differing) == (300 + TICKS - 600, 100, 0)
    assert "100 ticks without a snapshot" in str(result)


def test_a_truncated_log_is_executed_up_to_there(tmp_path: Path, path: Path):
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(path.read_bytes()[: int(path.stat().st_size * 0.85)])  # the model comes first
    result = reexecute(cut)
    assert 100 < result.ticks < TICKS
    assert result.same
    assert f"read up to tick {result.ticks}" in result.explanation


def test_what_cannot_be_executed_is_told_in_one_sentence(tmp_path: Path, run: Run):
    with pytest.raises(LogError, match="no snapshot"):
        reexecute(log_of(tmp_path / "late.mcap", run, [run.records[500:]], [200]))
    with pytest.raises(LogError, match=r"model\.npz"):
        reexecute(write_log(tmp_path / "no_model.mcap", run.records[:5]))
    bad = Run(run.model, run.settings, run.records[:5], {0: run.snapshots[0][:-1] + b"x"})
    with pytest.raises(LogError, match="snapshot of tick 0"):
        reexecute(log_of(tmp_path / "snapshot.mcap", bad))
    with pytest.raises(LogError, match="no ticks"):
        reexecute(log_of(tmp_path / "empty.mcap", run, [np.zeros(0, RECORD)]))
    recorder = Recorder(tmp_path / "bare.mcap", {k: v for k, v in attachments().items() if k != "settings.npy"})
    recorder.attach(ListRing([run.records[:5]], (0, run.snapshots[0])))
    recorder.finish()
    with pytest.raises(LogError, match=r"model\.npz|settings\.npy is missing"):
        reexecute(tmp_path / "bare.mcap")
