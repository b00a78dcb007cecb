"""What the faults figure concludes from records."""

import collections

import numpy as np
import pytest

from haptics.states import EngagementState
from haptics.tables import RECORD
from tools.bench.fault_site import HORIZON_MS, Site, Void, caused_by_strikes, held_up_ms
from tools.bench.faults import _at_jump, _at_step_of_clock, _held, draws_of, summary
from tools.bench.kept import Kept

MS = 1_000_000


@pytest.fixture
def rows() -> np.ndarray:
    """400 ticks of a hand that is pushed, each with a sample."""
    rows = np.zeros(400, RECORD)
    at = np.arange(400)
    for when in ("planned_ns", "started_ns", "sent_ns", "t_received"):
        rows["timing"][when] = at * MS
    rows["input"]["fresh"] = 1
    rows["input"]["sample"]["seq"] = at
    rows["input"]["sample"]["t_sample"] = at * MS
    rows["output"]["wrench"][:, 2] = 1.0
    rows["output"]["state"] = EngagementState.ACTIVE
    return rows


def test_a_hand_that_is_let_go_fails_unless_its_own_client_was_silent(rows):
    assert _held(rows, 0)
    rows["output"]["wrench"][350:] = 0.0
    assert not _held(rows, 0)
    rows["input"]["sample"]["t_sample"][340:] += 25 * MS
    with pytest.raises(Void, match="sent nothing for 26 ms"):
        _held(rows, 0)
    with pytest.raises(Void, match="sent nothing for 26 ms"):
        _held(rows, 339 * MS)
    assert not _held(rows, 340 * MS), "a silence before the fault is no excuse"


def test_samples_that_were_lost_are_no_silence_of_the_client(rows):
    rows["output"]["wrench"][350:] = 0.0
    rows["input"]["sample"]["t_sample"][340:] += 25 * MS
    rows["input"]["sample"]["seq"][340:] += 25
    assert not _held(rows, 0)
    rows["input"]["sample"]["seq"][340:] -= 20
    with pytest.raises(Void, match="sent nothing for 21 ms"):
        _held(rows, 0)


def test_a_fault_counts_from_the_sample_that_is_wrong(rows):
    for begins in (_at_jump, _at_step_of_clock):
        with pytest.raises(Void, match="before it could send anything wrong"):
            begins(rows, 300 * MS)
    rows["input"]["sample"]["position"][320:, 2] = 0.2
    rows["input"]["sample"]["t_sample"][330:] -= 10_000 * MS
    assert (_at_jump(rows, 300 * MS), _at_step_of_clock(rows, 300 * MS)) == (320 * MS, 330 * MS)
    rows["output"]["state"][320:] = EngagementState.FAULT
    assert _at_jump(rows, 300 * MS) == 320 * MS
    rows["output"]["state"][319] = EngagementState.ARMED
    with pytest.raises(Void, match="struck in ARMED"):
        _at_jump(rows, 300 * MS)


def test_a_row_draws_the_same_moments_each_time():
    first, second = ([next(draws).random() for _ in range(5)] for draws in (draws_of("row"), draws_of("row")))
    assert first == second and len(set(first)) == 5
    assert next(draws_of("other")).random() != first[0]


def test_ticks_that_are_over_late_are_added_up_in_their_window_alone(rows):
    sent = rows["timing"]["sent_ns"]
    sent += 900_000
    assert held_up_ms(rows, 100 * MS) == 0.0
    sent[[98, 110, 139, 150]] += [2 * MS, MS, 3 * MS, 9 * MS]
    assert held_up_ms(rows, 100 * MS) == pytest.approx(2.9 + 1.9 + 3.9)
    assert held_up_ms(rows, 160 * MS) == 0.0


def test_a_strike_is_not_judged_by_ticks_that_were_held_up_whatever_came_of_it(rows):
    site = Site.__new__(Site)
    site.rows, site.windows, site.mode = [rows], collections.Counter(), "work"
    site.must_tick(100 * MS)
    rows["timing"]["sent_ns"][120] += 4 * MS
    site.rows = [rows]
    with pytest.raises(Void, match=r"by 4\.0 ms"):
        site.must_tick(100 * MS)
    assert site.windows == {"after": 2, "after_late": 1}
    site.mode = "hold"
    site.must_tick(100 * MS)
    assert site.windows == {"after": 2 + 7, "after_late": 1}, "of 299 ms"
    rows["timing"]["sent_ns"][300] += 10 * MS
    site.rows = [rows]
    with pytest.raises(Void, match=r"by 10\.0 ms"):
        site.must_tick(100 * MS)
    assert site.windows == {"after": 2 + 7 + 7, "after_late": 2}


def test_strikes_that_hold_up_the_servo_themselves_are_no_excuse():
    often = {"before": 600, "before_late": 60, "after": 200, "after_late": 60}
    assert caused_by_strikes(often)
    assert not caused_by_strikes({**often, "after_late": 26}), "as before, but for chance"
    assert not caused_by_strikes({**often, "before_late": 0, "after_late": 0})
    outcome = {"time_to_safe_ms": HORIZON_MS, "over_limit_N": 0.0, "reason": "", "ok": True}
    assert not summary([outcome], 0, collections.Counter(often), 1)["ok"]
    assert summary([outcome], 0, collections.Counter({**often, "after_late": 20}), 1)["ok"]
    late = {**outcome, "time_to_safe_ms": HORIZON_MS + 0.01}
    assert not summary([outcome, late], 0, collections.Counter(), 2)["ok"]


def test_what_is_kept_goes_on_where_it_was_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.bench.kept._measured", lambda: "this version")
    path = tmp_path / "kept.jsonl"
    outcome = {"time_to_safe_ms": float("inf"), "ok": False}
    Kept(path).add({"row": "a", "outcome": outcome})
    with path.open("a") as file:
        file.write('{"row": "b", "outc')  # ended while it wrote
    again = Kept(path)
    assert [(entry["row"], entry["outcome"]) for entry in again.entries] == [("a", outcome)]
    again.add({"row": "b"})
    assert [entry["row"] for entry in Kept(path).entries] == ["a", "b"]
    monkeypatch.setattr("tools.bench.kept._measured", lambda: "another")
    before = path.read_text()
    with pytest.raises(SystemExit, match="another version or machine"):
        Kept(path)
    assert path.read_text() == before


def test_what_has_made_repetitions_is_told():
    kept = Kept(None)
    kept.entries = [{"made": "at a"}, {"made": "at b"}, {"made": "at b"}]
    assert kept.makers() == "repetitions made at a: 1, at b: 2"
