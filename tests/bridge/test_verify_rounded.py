"""Logs with balls and capsules pass, and tampered ones fail the certificates that they should."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from log_run import Run, log_of, run_rounded
from moving_scene import EDGE, EPS

from bridge.verify.judgement import Verification, verify
from rtcore.tables import FREE

TICKS = 420
BALL, PILL, BOUNCING, PUSHER = range(4)
"""Columns of the bodies of tests/moving_scene.py that move."""
RADII = (0.5 * EDGE, 0.5 * EDGE, 0.01, 0.5 * EDGE)


@pytest.fixture(scope="module")
def run() -> Run:
    return run_rounded(TICKS)


def failed(result: Verification) -> dict[str, list[int]]:
    """Certificates that fail, and the ticks at which they do first."""
    return {
        each.name: [found["tick"] for found in each.violations] for each in result.certificates if each.passed is False
    }


@pytest.fixture
def tampered(tmp_path: Path, run: Run) -> Callable[..., dict[str, list[int]]]:
    """Change one record of the run, and judge the ticks up to it."""

    def judge(tick: int, change: Callable[[np.ndarray], None]) -> dict[str, list[int]]:
        records = run.records.copy()
        change(records[tick - 1 : tick])
        (tmp_path / "t.mcap").unlink(missing_ok=True)  # a log is never written over
        log = log_of(tmp_path / "t.mcap", Run(run.model, run.settings, records, run.snapshots))
        return failed(verify(log, first=tick - 3, last=tick, every=1))

    return judge


def moved(body: int, name: str, by: tuple[float, float, float]) -> Callable[[np.ndarray], None]:
    def change(record: np.ndarray) -> None:
        record["bodies"][name][:, body] += by

    return change


@pytest.mark.long
def test_balls_that_roll_bounce_and_are_pushed_pass(tmp_path: Path, run: Run):
    report, bodies = run.records["output"]["report"], run.records["bodies"]
    assert run.model.bodies["kind"].tolist().count(FREE) == 3
    first, last = bodies[0]["position"], bodies[-1]["position"]
    assert last[BALL, 0] - first[BALL, 0] > 0.01 and first[PUSHER, 0] - last[PUSHER, 0] > 0.02, "pushed, and carried"
    assert (np.diff(bodies["position"][:, BOUNCING, 2]) > 0.0).sum() > 20, "it bounced"
    assert report["contact_count"].max() > 0 and report["body_contacts"].max() >= 4
    result = verify(log_of(tmp_path / "run.mcap", run), every=1)
    assert not failed(result), str(result)
    judged = {each.name: each.ticks for each in result.certificates if each.passed}
    for name in ("gap", "between ticks", "gap told", "cone", "energy told", "free flight"):
        assert judged[name] > 0.9 * TICKS, name
    for name in ("contact velocity", "complementarity", "energy", "total energy"):
        assert judged[name] > 0.2 * TICKS, name
    for name in ("tool contacts", "tool cone", "tool balance", "tool residual"):
        assert judged[name] > 10, name
    gap = result.certificates[0].worst
    assert gap is not None and EPS[0] * 0.998 < gap["value"] < EPS[1]


def test_where_surfaces_are_by_a_formula(run: Run):
    """Every ball stays above the table, whose top is z = 0, by eps_alert at least; what rolls does so at eps_safety."""
    height = run.records["bodies"]["position"][:, [BALL, BOUNCING, PUSHER], 2] - np.take(
        RADII, [BALL, BOUNCING, PUSHER]
    )
    assert height.min() > 0.998 * EPS[0]
    assert height[-1, 0] == pytest.approx(EPS[1], rel=0.05)


@pytest.mark.parametrize("body", [BALL, PILL])
def test_a_surface_in_another_one_is_found_though_its_core_is_not(tampered, body: int):
    found = tampered(60, moved(body, "position", (0.0, 0.0, -1e-4)))
    assert {"gap", "between ticks"} <= set(found) and found["gap"] == [60]
    near = tampered(60, moved(body, "position", (0.0, 0.0, -3.5e-5)))
    assert near["gap"] == [60] and "between ticks" not in near


def test_a_ball_that_jumps_through_the_table_is_found(tampered):
    found = tampered(30, moved(BOUNCING, "position", (0.0, 0.0, -0.2)))
    assert found["between ticks"] == [30]


def test_a_ball_in_the_tool_is_found(tampered, run: Run):
    """Its middle where that of the tool is, far from every face but by less than its radius."""

    def into(record: np.ndarray) -> None:
        record["bodies"]["position"][:, BALL] = record["output"]["proxy_position"]

    assert 60 in tampered(60, into)["gap"]


def test_flight_and_spin_that_are_not_free_are_found(tampered):
    assert not tampered(20, moved(BOUNCING, "position", (0.0, 0.0, 0.0)))
    assert "free flight" in tampered(20, moved(BOUNCING, "position", (1e-9, 0.0, 0.0)))
    assert "free flight" in tampered(20, moved(BOUNCING, "angular", (0.0, 1e-6, 0.0)))
    assert "cone" in tampered(60, moved(BALL, "linear", (0.0, 0.0, -0.1)))


def test_a_contact_of_the_tool_off_the_round_surface_is_found(tampered, run: Run):
    report = run.records["output"]["report"]
    contacts = report["contacts"][:, 0]
    rows = np.flatnonzero((report["contact_count"] > 0) & (contacts["body_id"] == 1))
    row = int(rows[len(rows) // 2])
    point, normal = contacts["point"][row], contacts["normal"][row]
    centre = run.records["bodies"]["position"][row - 1, BALL]
    assert np.linalg.norm(point - centre) == pytest.approx(RADII[BALL], rel=1e-12)

    def off(record: np.ndarray) -> None:
        record["output"]["report"]["contacts"]["point"][:, 0] += 1e-9 * normal

    tick = int(run.records["tick"][row])
    assert tampered(tick, off)["tool contacts"] == [tick]
