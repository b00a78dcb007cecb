"""Logs of bodies that resist spinning and rolling pass; with other moments they fail the certificates meant for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from log_run import Run, log_of, run_moving, run_pushed, run_rounded
from moving_scene import EDGE, EPS, TURNING, box

from bridge.verify.judgement import Verification, verify
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.tables import DEGRADED_CONTACTS, DEGRADED_SOLVER

TICKS = 420
TORSIONAL, ROLLING = 1e-3, 2e-4
"""Coefficients, m."""
BALL, _, SPINNER, _ = range(4)
"""Columns of tests/moving_scene.py: the ball that rolls when the tool has pushed it, the one that spins, bounced."""
RADIUS = 0.015
"""Of the former, m."""


@pytest.fixture(scope="module")
def run() -> Run:
    return run_rounded(TICKS, TORSIONAL, ROLLING)


def failed(result: Verification) -> dict[str, list[int]]:
    """Certificates that fail, and the ticks at which they do first."""
    return {
        each.name: [found["tick"] for found in each.violations] for each in result.certificates if each.passed is False
    }


Judge = Callable[..., dict[str, list[int]]]


@pytest.fixture
def tampered(tmp_path: Path, run: Run) -> Judge:
    """Judge a tick by other coefficients than it had, or with a record that is changed."""

    def judge(tick: int, change: Callable[[np.ndarray], None] | None = None, **factors: float) -> dict[str, list[int]]:
        records, model = run.records.copy(), run.model._replace(bodies=run.model.bodies.copy())
        for name, factor in factors.items():
            model.bodies[name] *= factor
        if change is not None:
            change(records[tick - 1 : tick])
        (tmp_path / "t.mcap").unlink(missing_ok=True)  # a log is never written over
        log = log_of(tmp_path / "t.mcap", Run(model, run.settings, records, run.snapshots))
        return failed(verify(log, first=tick - 1, last=tick, every=1))

    return judge


def found(run: Run, condition: np.ndarray) -> int:
    """A tick in the middle of those that satisfy a condition and had the work they wanted."""
    told = run.records["output"]["report"]
    good = condition & ((told["degraded"] & (DEGRADED_SOLVER | DEGRADED_CONTACTS)) == 0) & (told["stopped"] == 0)
    ticks = run.records["tick"][good & (np.arange(TICKS) > 200)]
    return int(ticks[len(ticks) // 2])


def rolling(run: Run) -> int:
    """A tick in which the ball rolls without slip or spin, and nothing is near to it but the table."""
    bodies = run.records["bodies"][:, BALL]
    v, w = bodies["linear"], bodies["angular"]
    slip = np.hypot(v[:, 0] - RADIUS * w[:, 1], v[:, 1] + RADIUS * w[:, 0])
    still = (slip < 1e-10) & (np.abs(w[:, 2]) < 1e-10)
    return found(run, (np.hypot(v[:, 0], v[:, 1]) > 0.2) & still & np.roll(still, 1))


def spinning(run: Run) -> int:
    """A tick in which the smaller ball spins about the normal."""
    return found(run, np.abs(run.records["bodies"]["angular"][:, SPINNER, 2]) > 0.5)


def pushed(run: Run) -> int:
    """A tick in which the tool pushes the ball."""
    contacts = run.records["output"]["report"]["contacts"]
    pushes = np.linalg.norm(contacts["displacement"], axis=2) * (contacts["body_id"] == 1)
    return found(run, pushes.max(axis=1) > 1e-4)


def test_balls_that_resist_rolling_and_spinning_pass(tmp_path: Path, run: Run):
    result = verify(log_of(tmp_path / "run.mcap", run), every=1)
    assert not failed(result), str(result)
    judged = {each.name: each.ticks for each in result.certificates}
    for name in ("cone", "contact velocity", "complementarity", "energy", "total energy"):
        assert judged[name] > 0.9 * TICKS, name
    for name in ("tool residual", "tool balance"):
        assert judged[name] > 100, name


@pytest.mark.long
@pytest.mark.parametrize(("torsional", "rolling"), [(TORSIONAL, ROLLING), (5e-3, 3e-3)])
def test_boxes_that_resist_turning_pass(tmp_path: Path, torsional: float, rolling: float):
    """On four points of a face and with several contacts of the tool, of which the axes nearly agree."""
    result = verify(log_of(tmp_path / "run.mcap", run_moving(TICKS, torsional, rolling)), every=3)
    assert not failed(result), str(result)
    judged = {each.name: each.ticks for each in result.certificates}
    assert judged["cone"] > 100 and judged["complementarity"] > 50 and judged["tool residual"] > 20


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_a_tool_that_turns_against_what_stands_is_judged_by_its_moments(tmp_path: Path, factor: float):
    """A ball stands in its way; by other coefficients the pushes do not belong to the springs."""
    builder = ModelBuilder()
    cube = builder.add_mesh(*build_tree(*box(EDGE, EDGE, EDGE)))
    point = builder.add_mesh(*build_tree(np.zeros((1, 3)), np.zeros((1, 3), np.int64)))
    resists = {"torsional_friction": TORSIONAL, "rolling_friction": ROLLING}
    builder.add_body(point, (0.0, 0.003, 0.02), rounding=RADIUS, friction_static=0.5, friction_kinetic=0.4, **resists)
    model = builder.build(0.0, (0.0, 0.0, 0.0), *EPS, tool_mesh_id=cube, turning=TURNING)
    run = run_pushed(model, 300)
    model.bodies["torsional"] *= factor
    model.bodies["rolling"] *= factor
    result = verify(log_of(tmp_path / "run.mcap", run), every=3)
    judged = {each.name: each for each in result.certificates}
    assert judged["tool residual"].ticks > 20
    wrong = set(failed(result))
    assert "tool residual" in wrong if factor != 1.0 else not wrong, str(result)


def test_a_ball_slows_down_by_the_formula(run: Run):
    """By c g / (1.4 R) per second, with c of rolling: what is certified is what is promised."""
    tick = rolling(run)
    speeds = np.linalg.norm(run.records["bodies"][tick - 2 : tick, BALL]["linear"], axis=1)
    assert speeds[0] - speeds[1] == pytest.approx(1e-3 * ROLLING * 9.81 / (1.4 * RADIUS), rel=1e-6)


@pytest.mark.parametrize(("name", "when"), [("rolling", rolling), ("torsional", spinning)])
def test_moments_beyond_their_bounds_and_short_of_them_are_found(
    tampered: Judge, run: Run, name: str, when: Callable[[Run], int]
):
    """By a hundredth. What is too little is within the cones, and yet not what there is while something turns."""
    tick = when(run)
    assert not tampered(tick)
    beyond, short = tampered(tick, **{name: 0.99}), tampered(tick, **{name: 1.01})
    assert beyond["cone"][0] == tick and set(beyond) == {"cone", "complementarity"}
    assert short["complementarity"][0] == tick and set(short) == {"complementarity"}


@pytest.mark.parametrize("name", ["rolling", "torsional"])
def test_moments_of_the_tool_that_are_not_told_are_found(tampered: Judge, run: Run, name: str):
    tick = pushed(run)
    assert not tampered(tick)
    for factor in (0.0, 0.8, 1.25):
        assert tampered(tick, **{name: factor})["tool residual"] == [tick], factor


def test_moments_that_act_the_wrong_way_are_found(tampered: Judge, run: Run):
    """A ball that gains by rolling what it should lose, one that gains spin, one that keeps it, one turned aside."""
    tick = rolling(run)
    before = run.records["bodies"][tick - 2, BALL].copy()

    def gains(record: np.ndarray) -> None:
        for name in ("linear", "angular"):
            record["bodies"][name][:, BALL] = 2.0 * before[name] - record["bodies"][name][:, BALL]

    def aside(record: np.ndarray) -> None:
        """What it loses is lost at right angles to its way: the moments are within their bounds."""
        for name in ("linear", "angular"):
            lost = record["bodies"][name][:, BALL] - before[name]
            record["bodies"][name][:, BALL] = before[name] + np.cross((0.0, 0.0, 1.0), lost)

    wrong = tampered(tick, gains)
    assert {"complementarity", "energy"} <= set(wrong) and "cone" not in wrong
    wrong = tampered(tick, aside)
    assert "complementarity" in wrong and "cone" not in wrong

    tick = spinning(run)
    spin = float(run.records["bodies"]["angular"][tick - 2, SPINNER, 2])

    def spun(record: np.ndarray) -> None:
        record["bodies"]["angular"][:, SPINNER, 2] = 2.0 * spin - record["bodies"]["angular"][:, SPINNER, 2]

    def keeps(record: np.ndarray) -> None:
        record["bodies"]["angular"][:, SPINNER, 2] = spin

    for change in (spun, keeps):
        wrong = tampered(tick, change)
        assert "complementarity" in wrong and "cone" not in wrong
