"""Logs of real runs pass, and each tampered one fails the certificate that it should."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from log_run import SESSION, Run, _pushes, _run, log_of, run_moving, run_ticks
from moving_scene import EPS, MOVING, START, push_goal, scene

from bridge.cli import app
from bridge.log.reader import LogError
from bridge.verify.judgement import Verification, verify
from haptics.fixtures import BALL, BOX, CONE, LINE, PLANE, TUBE, make_fixture
from haptics.states import EngagementState
from haptics.tables import MAX_PLANES
from rtcore.tables import DEGRADED_CONTACTS, DEGRADED_SOLVER

TICKS = 420
LOWER, UPPER, SLED, FALLING = range(4)
"""Columns of the bodies of tests/moving_scene.py."""
ALL = {
    *("gap", "between ticks", "gap told", "free flight", "cone", "contact velocity", "complementarity", "energy"),
    *("total energy",),
    *(
        "energy told",
        "tool contacts",
        "tool cone",
        "tool residual",
        "tool balance",
        "goal",
        "coupling",
        "effects",
        "passivity",
        "wrench sent",
        "limits",
    ),
    *("silence", "planes", "residual told", "numbers"),
}


@pytest.fixture(scope="module")
def run() -> Run:
    return run_moving(TICKS)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    return log_of(tmp_path_factory.mktemp("verify") / "run.mcap", run)


def verdicts(result: Verification) -> dict[str, str]:
    return {each.name: each.verdict for each in result.certificates}


def failed(result: Verification) -> dict[str, list[int]]:
    """Certificates that fail, and the ticks at which they do first."""
    return {
        each.name: [found["tick"] for found in each.violations] for each in result.certificates if each.passed is False
    }


def test_a_log_that_was_cut_off_is_judged_up_to_there(tmp_path: Path, path: Path):
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    result = verify(cut, every=40)
    assert not failed(result) and 20 < result.ticks < TICKS and "cut.mcap" in result.explanation
    assert result.explanation in str(result)


@pytest.fixture
def tampered(tmp_path: Path, run: Run) -> Callable[..., dict[str, list[int]]]:
    """Change one record of the run, and judge the ticks around it."""

    def judge(tick: int, change: Callable[[np.ndarray], None], before: int = 3, after: int = 3) -> dict[str, list[int]]:
        records = run.records.copy()
        change(records[tick - 1 : tick])
        (tmp_path / "t.mcap").unlink(missing_ok=True)  # a log is never written over
        log = log_of(tmp_path / "t.mcap", Run(run.model, run.settings, records, run.snapshots))
        return failed(verify(log, first=tick - before, last=tick + after, every=1))

    return judge


def state(body: int, name: str, by: tuple[float, float, float]) -> Callable[[np.ndarray], None]:
    def change(record: np.ndarray) -> None:
        record["bodies"][name][:, body] += by

    return change


def report(name: str, value: float) -> Callable[[np.ndarray], None]:
    def change(record: np.ndarray) -> None:
        record["output"]["report"][name] = value

    return change


def whole(run: Run, condition: np.ndarray) -> int:
    """A tick in the middle of those that satisfy a condition and had the work they wanted."""
    told = run.records["output"]["report"]
    good = condition & ((told["degraded"] & (DEGRADED_SOLVER | DEGRADED_CONTACTS)) == 0) & (told["stopped"] == 0)
    rows = np.flatnonzero(good & (np.arange(TICKS) > 20) & (np.arange(TICKS) < TICKS - 20))
    return int(run.records["tick"][rows[len(rows) // 2]])


def test_boxes_that_fall_and_are_pushed_pass(path: Path):
    result = verify(path, every=3)
    assert verify(path, first=1, last=5).every == 1
    assert result.ticks == TICKS and not failed(result)
    assert verdicts(result) == dict.fromkeys(ALL, "pass")
    judged = {each.name: each.ticks for each in result.certificates}
    for name in ("energy told", "wrench sent", "numbers"):
        assert judged[name] >= TICKS - 1, name
    for name in ("gap", "between ticks", "gap told"):
        assert judged[name] > 130, name
    for name in ("free flight", "cone", "contact velocity", "complementarity", "energy"):
        assert judged[name] > 40, name
    for name in ("tool contacts", "tool cone", "tool balance", "tool residual"):
        assert judged[name] > 10, name
    gap = result.certificates[0].worst
    assert gap is not None and EPS[0] * 0.998 < gap["value"] < EPS[1]
    left_out = {each.name: each.left_out for each in result.certificates}
    assert left_out["contact velocity"]["work was cut short"] > 0, "what was cut short is told"


WALLED = [
    make_fixture(PLANE, (0.01, 0.0, 0.0), direction=(1.0, 0.2, 0.0)),
    make_fixture(LINE, (0.0, -0.02, 0.003), direction=(1.0, 0.3, 0.0)),
    make_fixture(BALL, (0.021, -0.005, 0.01), radius=0.008),
    make_fixture(CONE, (0.02, -0.004, 0.018), angle=1.2),
    make_fixture(BOX, (0.021, -0.005, 0.01), half=(0.006, 0.008, 0.006)),
    make_fixture(TUBE, (0.0, 0.0, 0.006), direction=(1.0, 0.0, 0.0), radius=0.004),
]


@pytest.mark.parametrize("fixture", WALLED)
def test_a_run_with_a_hard_fixture_passes_and_one_whose_goal_is_moved_does_not(tmp_path: Path, fixture: np.ndarray):
    run = run_ticks(500, [fixture])
    output = run.records["output"]
    apart = np.linalg.norm(output["goal_position"] - output["device_position"], axis=1)
    led = (apart > 1e-4) & (output["state"] == EngagementState.ACTIVE)
    assert np.sum(led) > 50
    result = verify(log_of(tmp_path / "a.mcap", run), every=3)
    assert not failed(result), str(result)
    assert verdicts(result)["goal"] == verdicts(result)["coupling"] == "pass"
    touches = fixture["kind"][0] in (PLANE, LINE, TUBE, BALL)  # what is kept above the surface has no contacts
    assert verdicts(result)["tool balance"] == ("pass" if touches else "not judged")
    row = int(np.flatnonzero(led)[-1])
    output["goal_position"][row] = output["device_position"][row]
    bad = failed(verify(log_of(tmp_path / "b.mcap", run), first=row - 2, every=1))
    assert row + 1 in bad["goal"]


@pytest.mark.parametrize("law", ["damped", "constraint"])
def test_runs_by_the_other_laws_of_the_coupling_pass_and_are_told_apart(tmp_path: Path, law: str):
    run = run_ticks(700, law=law)
    result = verify(log_of(tmp_path / "a.mcap", run), every=7)
    assert not failed(result), str(result)
    run.settings["law"] = 0
    assert "coupling" in failed(verify(log_of(tmp_path / "b.mcap", run), every=700))


@pytest.mark.parametrize("law", ["constraint"])
def test_a_mesh_tool_that_feels_constraints_passes(tmp_path: Path, law: str):
    run = _run(scene(), START, _pushes(TICKS), TICKS, law=law)
    result = verify(log_of(tmp_path / "a.mcap", run), every=40)
    assert not failed(result), str(result)


def test_a_goal_that_is_not_the_image_fails_where_there_is_no_fixture(tampered, run: Run):
    tick = whole(run, run.records["output"]["state"] == EngagementState.ACTIVE)

    def change(record: np.ndarray) -> None:
        record["output"]["goal_position"][:, 0] += 1e-9

    assert tampered(tick, change)["goal"] == [tick]


def test_a_sphere_tip_passes_and_its_tampered_logs_do_not(tmp_path: Path):
    run = run_ticks(700)
    log = log_of(tmp_path / "a.mcap", run)
    result = verify(log, every=3)
    assert not failed(result) and verdicts(result)["gap"] == verdicts(result)["tool balance"] == "pass"
    told = run.records["output"]["report"]
    pressed = np.flatnonzero((told["contact_count"] > 0) & (told["degraded"] == 0) & (told["path_count"] == 1))
    pressed = pressed[run.records["output"]["state"][pressed] == EngagementState.ACTIVE]
    row = int(pressed[len(pressed) // 2])
    tick = int(run.records["tick"][row])
    normal = told["contacts"]["normal"][row, 0].copy()

    def into(record: np.ndarray) -> None:
        record["output"]["report"]["path"][:, 0] -= 1e-3 * normal
        record["output"]["proxy_position"] -= 1e-3 * normal

    def askew(record: np.ndarray) -> None:
        push = record["output"]["report"]["contacts"]["displacement"][:, 0]
        push += np.cross(normal, (1.0, 0.0, 0.0)) * np.linalg.norm(push)

    def beside(record: np.ndarray) -> None:
        record["output"]["effects"][:, 0] = 1e-6

    for change, names in (
        (into, {"gap", "between ticks", "coupling"}),
        (askew, {"tool cone", "tool balance"}),
        (beside, {"coupling", "effects"}),
    ):
        records = run.records.copy()
        change(records[row : row + 1])
        bad = log_of(tmp_path / "b.mcap", Run(run.model, run.settings, records, run.snapshots))
        found = failed(verify(bad, first=tick - 2, last=tick + 2, every=1))
        assert names <= set(found) and found[min(names)] == [tick]
        bad.unlink()


def test_a_body_in_another_one_is_found(tampered, run: Run):
    """The upper box one millimetre down, into the one below it."""
    found = tampered(60, state(UPPER, "position", (0.0, 0.0, -1e-3)))
    assert {"gap", "between ticks", "energy told"} <= set(found)
    assert 60 in found["gap"]


def test_a_body_that_jumps_through_another_one_is_found(tampered):
    """Above the table in one tick and below it in the next: apart in both."""

    def below(record: np.ndarray) -> None:
        record["bodies"]["position"][:, FALLING] = (0.1, -0.1, -0.2)

    found = tampered(40, below, after=0)
    assert set(found["between ticks"]) == {40} and "free flight" in found


def test_flight_that_is_not_free_is_found(tampered):
    for name in ("linear", "angular"):
        found = tampered(50, state(FALLING, name, (1e-9, 0.0, 0.0)), after=0)
        assert set(found["free flight"]) == {50}, name
    assert tampered(50, state(FALLING, "position", (0.0, 1e-12, 0.0)), after=0)["free flight"] == [50]
    assert set(tampered(50, state(SLED, "linear", (0.0, 1e-12, 0.0)), after=0)["free flight"]) == {50}

    def turned(record: np.ndarray) -> None:
        record["bodies"]["orientation"][:, FALLING, 0] += 1e-9

    assert "free flight" in tampered(50, turned, after=0)


def test_velocities_that_contacts_cannot_give_are_found(tampered):
    """A box that lies on another one: drawn down, driven aside beyond friction, thrown up."""
    down = tampered(60, state(UPPER, "linear", (0.0, 0.0, -0.1)), after=0)
    assert {"cone", "contact velocity"} <= set(down)
    aside = tampered(60, state(UPPER, "linear", (0.05, 0.0, 0.0)), after=0)
    assert {"cone", "energy"} <= set(aside)
    slower = tampered(60, state(UPPER, "linear", (1e-5, 0.0, 0.0)), after=0)
    assert "complementarity" in slower
    lifted = tampered(60, state(UPPER, "position", (0.0, 0.0, 2e-3)), after=0)
    assert "total energy" in lifted and "energy" not in lifted
    up = tampered(60, state(UPPER, "linear", (0.0, 0.0, 0.1)), after=0)
    assert {"complementarity", "energy"} <= set(up) and "cone" not in up


def test_forces_beyond_friction_are_found_where_a_solve_was_cut_short(tampered, run: Run):
    """Too little force may be there, but none out of the cones: a box pulled down, and one that gains on its own."""
    told = run.records["output"]["report"]
    cut = (told["degraded"] == DEGRADED_SOLVER) & (told["stopped"] == 0) & (told["body_contacts"] > 4)
    rows = np.flatnonzero(cut & (np.arange(TICKS) > 20))
    assert len(rows) > 20
    tick = int(run.records["tick"][rows[len(rows) // 2]])
    assert "cone" not in tampered(tick, lambda record: None, after=0)
    assert tampered(tick, state(UPPER, "linear", (0.0, 0.0, -0.2)), after=0)["cone"] == [tick]


def test_energy_that_is_not_told_as_it_is(tampered, run: Run):
    told = float(run.records["output"]["report"]["energy"][99])
    assert set(tampered(100, report("energy", told * (1.0 + 1e-9)))) == {"energy told"}


def test_wrenches_that_do_not_follow_are_found(tampered, run: Run):
    output = run.records["output"]
    pulled = np.linalg.norm(output["wrench"][:, :3], axis=1) > 0.1
    tick = whole(run, pulled & (output["state"] == EngagementState.ACTIVE))

    def scaled(name: str, columns: slice, factor: float) -> Callable[[np.ndarray], None]:
        def change(record: np.ndarray) -> None:
            record["output"][name][:, columns] *= factor

        return change

    force, torque = slice(0, 3), slice(3, 6)
    assert set(tampered(tick, scaled("wrench", force, 1.0 + 1e-6))) == {"wrench sent"}
    assert set(tampered(tick, scaled("wrench", torque, 1.001))) == {"wrench sent"}
    assert tampered(tick, scaled("coupling_wrench", force, 1.001))["coupling"] == [tick]
    assert tampered(tick, scaled("coupling_wrench", torque, 1.001))["coupling"] == [tick]
    assert {"wrench sent", "limits"} <= set(tampered(tick, scaled("wrench", force, 100.0)))

    damped = np.linalg.norm(output["passivity_wrench"][:, :3], axis=1) > 1e-4
    tick = whole(run, pulled & damped & (output["state"] == EngagementState.ACTIVE))
    assert "passivity" in tampered(tick, scaled("passivity_wrench", force, -1.0)), "it gives"
    assert "passivity" in tampered(tick, scaled("passivity_wrench", force, 1e4)), "more than the card allows"
    assert set(tampered(tick, scaled("passivity_wrench", force, 1.01))) == {"wrench sent"}

    def stale(record: np.ndarray) -> None:
        record["input"]["age_ns"] = 10_000_000_000

    assert tampered(tick, stale)["silence"] == [tick]


def test_planes_that_are_no_contacts_are_found(tampered, run: Run):
    output = run.records["output"]
    tick = whole(run, (output["plane_count"] > 0) & (output["plane_count"] < MAX_PLANES))

    def nearer(record: np.ndarray) -> None:
        record["output"]["planes"][0, 0, 3] += 1e-9

    def tilted(record: np.ndarray) -> None:
        record["output"]["planes"][0, 0, :3] += 1e-8

    def fewer(record: np.ndarray) -> None:
        record["output"]["plane_count"] -= 1

    def slacker(record: np.ndarray) -> None:
        record["output"]["slack"] += 1e-6

    def silent(record: np.ndarray) -> None:
        record["output"]["plane_count"] = record["output"]["pinned"] = 0
        record["output"]["planes"] = record["output"]["slack"] = 0.0

    for change in (nearer, tilted, fewer, slacker, silent):
        found = tampered(tick, change)
        assert set(found) == {"planes"} and set(found["planes"]) == {tick}, change.__name__


def test_what_is_wrong_about_the_tool_is_found(tampered, run: Run):
    told = run.records["output"]["report"]
    pushes = np.linalg.norm(told["contacts"]["displacement"][:, 0], axis=1)
    tick = whole(run, (told["contact_count"] > 0) & (pushes > 1e-4))

    def contact(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], None]:
        def at(record: np.ndarray) -> None:
            record["output"]["report"]["contacts"][name][:, 0] = change(
                record["output"]["report"]["contacts"][name][:, 0]
            )

        return at

    moved = tampered(tick, contact("point", lambda x: x + (0.0, 0.0, 1e-3)), after=0)
    assert "tool contacts" not in moved or moved["tool contacts"] == [tick]
    assert tampered(tick, contact("point", lambda x: x + (1e-9, 0.0, 0.0)), after=0)["tool contacts"] == [tick]
    # Short of the tool; a point beyond may lie on the face beside the corner that touches.
    assert tampered(tick, contact("gap", lambda x: x * 0.999), after=0)["tool contacts"] == [tick]
    pushed = tampered(tick, contact("displacement", lambda x: 3.0 * x), after=0)
    assert {"tool balance", "tool residual"} <= set(pushed)
    askew = tampered(tick, contact("displacement", lambda x: np.roll(x, 1, axis=1)), after=0)
    assert "tool cone" in askew
    # What it pushes it pushes the box with: the box would have to answer.
    assert "cone" in pushed or "complementarity" in pushed
    assert "gap told" in tampered(tick, report("smallest_gap", 1e-6), after=0)
    assert "gap told" in tampered(tick, report("body_gap", 1e-6), after=0)


def test_a_gap_below_all_that_waits_to_be_listed_is_found(tmp_path: Path):
    """Short of work a gap may be below the distance, but only as far as a contact known from before tells."""

    def entering() -> Iterator[np.ndarray]:
        for record in _pushes(230):
            record["budget"]["units"] = 20000 if record["tick"] % 3 else 100
            yield record

    run = _run(scene(), START, entering(), 230)
    told = run.records["output"]["report"]
    short = ((told["degraded"] & DEGRADED_CONTACTS) != 0) & (told["body_contacts"] > 0)
    rows = np.flatnonzero(short)[-10:]
    assert len(rows) == 10
    result = verify(log_of(tmp_path / "a.mcap", run), first=int(rows[0]) - 1, every=1)
    assert verdicts(result)["gap told"] == "pass", str(result)
    run.records["output"]["report"]["body_gap"][rows[-1]] -= 2e-7
    bad = failed(verify(log_of(tmp_path / "b.mcap", run), first=int(rows[0]) - 1, every=1))
    assert bad["gap told"] == [rows[-1] + 1]


def test_reports_out_of_range_are_found(tampered, run: Run):
    tick = whole(run, np.ones(TICKS, dtype=bool))
    assert set(tampered(tick, report("body_residual", 1e-3))) == {"residual told"}
    assert {"residual told", "numbers"} <= set(tampered(tick, report("body_residual", np.inf)))
    found = set(tampered(tick, report("fraction", 1.5)))
    assert (
        "numbers" in found <= {"numbers", "tool balance"}
    )  # the balance tells where the position pass opened something

    def nothing(record: np.ndarray) -> None:
        record["output"]["wrench"][:, 0] = np.nan

    assert {"numbers", "wrench sent", "limits"} <= set(tampered(tick, nothing))


def test_ticks_that_are_missing_are_not_judged_across(tmp_path: Path, run: Run):
    log = log_of(tmp_path / "a.mcap", run, [run.records[:50], 150, run.records[200:260]], [0, 200, 200])
    result = verify(log, every=2)
    assert not failed(result) and result.ticks == 110
    sent = next(each for each in result.certificates if each.name == "wrench sent")
    assert sent.left_out == {"the tick before is not in the log": 2}
    late = verify(log_of(tmp_path / "late.mcap", run, [run.records[300:360]], [200]), every=3)
    assert not failed(late) and verdicts(late)["tool balance"] == verdicts(late)["coupling"] == "pass"


def test_many_bodies_are_judged_where_their_states_are_known(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    from bridge.log import recorder

    monkeypatch.setattr(recorder, "BODY_STATES", 1)
    log = log_of(tmp_path / "a.mcap", Run(run.model, run.settings, run.records[:80], run.snapshots))
    result = verify(log)
    found = verdicts(result)
    assert found["gap"] == found["energy told"] == found["wrench sent"] == "pass"
    assert found["cone"] == found["free flight"] == "not judged"
    assert result.certificates[0].ticks == 20


def test_a_log_without_the_ticks_asked_for_is_refused(path: Path):
    with pytest.raises(LogError, match=r"run\.mcap has no tick to verify: its ticks are 1 to 420"):
        verify(path, first=1000)


def test_long_logs_are_sampled_and_say_so(path: Path, monkeypatch: pytest.MonkeyPatch):
    from bridge.verify import judgement

    monkeypatch.setattr(judgement, "WORK", 1_000_000)
    result = verify(path)
    assert result.every > 20 and not failed(result)
    judged = {each.name: each.ticks for each in result.certificates}
    assert judged["gap"] < 120 and judged["wrench sent"] == TICKS - 1
    assert f"every {result.every} ticks" in str(result)


def test_the_command(tmp_path: Path, path: Path, run: Run, capsys: pytest.CaptureFixture[str]):
    def command(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            app(["verify", *arguments], prog_name="hapticd")
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    code, out, _ = command(str(path), "--from", "40", "--to", "60", "--reexec")
    assert code == 0 and "ticks 40 to 60" in out and "0 differ" in out and "FAIL" not in out
    assert all(len(line) <= 120 for line in out.splitlines()[1:])
    records = run.records.copy()
    records["output"]["report"]["energy"][49] += 1e-3
    bad = log_of(tmp_path / "b.mcap", Run(run.model, run.settings, records, run.snapshots))
    code, out, _ = command(str(bad), "--from", "40", "--to", "60", "--json")
    told = json.loads(out)
    assert code == 1 and told["passed"] is False and (told["first_tick"], told["last_tick"]) == (40, 60)
    (wrong,) = [each for each in told["certificates"] if each["verdict"] == "FAIL"]
    assert wrong["name"] == "energy told" and wrong["violations"][0]["tick"] == 50
    code, out, _ = command(str(bad), "--from", "40", "--to", "60")
    assert code == 1 and "tick 50" in out and "FAIL" in out
    code, _, err = command(str(path), "--from", "60", "--to", "40")
    assert code == 2 and err == "hapticd: --from 60 is after --to 40\n"
    assert command(str(path), "--every", "0")[0] == 2
    code, _, err = command(str(tmp_path / "none.mcap"))
    assert code == 4 and err.count("\n") == 1


def test_the_run_is_worth_judging(run: Run):
    told = run.records["output"]["report"]
    assert run.body_ids == list(MOVING) and run.records["input"]["sample"]["session"].max() == SESSION
    assert push_goal(0)[0][0] == START[0]
    assert told["stopped"].any() and told["contact_count"].max() > 1 and told["body_contacts"].max() > 8
