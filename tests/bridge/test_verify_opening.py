"""A tool that contacts open against a body that turns fast: explained to rounding, and by nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from log_run import Run, _pushes, _run, log_of
from moving_scene import EDGE, EPS, START, TURNING, box

from bridge.verify.judgement import verify
from rtcore.dynamics.inertia import mesh_inertia
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.tables import FREE

TICKS = 90


@pytest.fixture(scope="module")
def run() -> Run:
    """A box that spins at 27 rad/s comes down in the way of the tool."""
    builder = ModelBuilder()
    cube = box(EDGE, EDGE, EDGE)
    table_id, cube_id = (builder.add_mesh(*build_tree(*mesh)) for mesh in (box(0.4, 0.4, 0.04), cube))
    builder.add_body(table_id, (0.0, 0.0, -0.02), friction_static=0.5, friction_kinetic=0.4)
    builder.add_body(
        cube_id,
        (-0.015, 0.004, 0.03),
        (0.2, 0.1, 0.3, 0.9),
        kind=FREE,
        inertia=mesh_inertia(*cube, 600.0, restitution=0.3),
        velocity=(0, 0, 0, 4, 27, 12),
        friction_static=0.3,
        friction_kinetic=0.2,
    )
    model = builder.build(0.0, (0.0, 0.0, 0.0), *EPS, tool_mesh_id=cube_id, turning=TURNING, gravity=(0.0, 0.0, -9.81))
    return _run(model, START, _pushes(TICKS), TICKS)


def beside(run: Run) -> np.ndarray:
    """(ticks,) how far the tool is at least from the line to where springs and contacts balance, m."""
    output = run.records["output"]
    pushes = output["report"]["contacts"]["displacement"].sum(axis=1)
    before = np.concatenate([np.full((1, 3), START), output["proxy_position"][:-1]])
    way, went = output["goal_position"] - before + pushes, output["proxy_position"] - before
    along = np.sum(way * went, axis=1) / np.maximum(np.sum(way * way, axis=1), 1e-300)
    off = np.linalg.norm(went - along[:, None] * way, axis=1)
    return np.where(output["report"]["contact_count"] > 0, off, 0.0)


def judged(path: Path, run: Run, records: np.ndarray, first: int, last: int) -> dict[str, float]:
    log = log_of(path, Run(run.model, run.settings, records, run.snapshots))
    result = verify(log, first=first, last=last, every=1)
    return {each.name: each.worst["value"] for each in result.certificates if each.passed is False and each.worst}


def test_what_opens_against_fast_turns_is_explained_to_rounding(tmp_path: Path, run: Run):
    assert beside(run).max() > EPS[1], "farther beside the way than contacts are held apart"
    result = verify(log_of(tmp_path / "run.mcap", run), every=1)
    assert result.passed, str(result)
    balance = next(each for each in result.certificates if each.name == "tool balance")
    assert balance.ticks > 20 and balance.worst is not None and balance.worst["value"] < 1e-15


@pytest.mark.parametrize("size", [1e-9, 1e-5])
def test_a_tool_beside_its_contacts_normal_is_found(tmp_path: Path, run: Run, size: float):
    """Along the normal some push might have done it, across it none: there is no friction in the pass."""
    tick = int(np.argmax(beside(run))) + 1
    contact = run.records["output"]["report"]["contacts"][tick - 1, 0]
    records = run.records.copy()
    across = np.cross(contact["normal"], (1.0, 0.0, 0.0))
    records["output"]["proxy_position"][tick - 1] += size * across / np.linalg.norm(across)
    found = judged(tmp_path / "t.mcap", run, records, tick - 1, tick)
    assert found["tool balance"] == pytest.approx(size, rel=0.5)


def test_contacts_that_open_wide_explain_nothing(tmp_path: Path, run: Run):
    """The tool 0.3 mm away from all that is near it."""
    tick = int(np.argmax(beside(run))) + 1
    normal = run.records["output"]["report"]["contacts"]["normal"][tick - 1, 0]
    records = run.records.copy()
    records["output"]["proxy_position"][tick - 1] += 3e-4 * normal
    found = judged(tmp_path / "t.mcap", run, records, tick - 1, tick)
    assert found["tool balance"] > 1e-4
