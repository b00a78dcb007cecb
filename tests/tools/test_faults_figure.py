"""What the faults figure concludes from records."""

import collections

import numpy as np
import pytest

from haptics.tables import RECORD
from tools.bench.faults import (
    HORIZON_MS,
    Site,
    Void,
    _at_jump,
    _at_step_of_clock,
    _held,
    caused_by_strikes,
    draws_of,
    held_up_ms,
    summary,
)

MS = 1_000_000


@pytest.fixture
def rows() -> np.ndarray:
    """400 ticks of a hand that is pushed, each with a sample."""
    rows = np.zeros(400, RECORD)
    at = np.arange(400)
    for when in ("planned_ns", "started_ns", "t_received"):
        rows["timing"][when] = at * MS
    rows["input"]["fresh"] = 1
    rows["input"]["sample"]["seq"] = at
    rows["input"]["sample"]["t_sample"] = at * MS
    rows["output"]["wrench"][:, 2] = 1.0
    return rows


def test_a_hand_that_is_let_go_fails_unless_its_own_client_was_silent(rows):
    assert _held(rows, 0)
    rows["output"]["wrench"][350:] = 0.0
    assert not _held(rows, 0)
    rows["input"]["sample"]["t_sample"][340:] += 25 * MS
    with pytest.raises(Void, match="sent nothing for 26 ms"):
        _held(rows, 0)
    assert not _held(rows, 345 * MS), "a silence before the fault is no excuse"


def test_samples_that_were_lost_are_no_silence_of_the_client(rows):
    rows["output"]["wrench"][350:] = 0.0
    rows["input"]["sample"]["t_sample"][340:] += 25 * MS
    rows["input"]["sample"]["seq"][340:] += 25
    assert not _held(rows, 0)


def test_a_fault_counts_from_the_sample_that_is_wrong(rows):
    for begins in (_at_jump, _at_step_of_clock):
        with pytest.raises(Void, match="before it could send anything wrong"):
            begins(rows, 300 * MS)
    rows["input"]["sample"]["position"][320:, 2] = 0.2
    rows["input"]["sample"]["t_sample"][330:] -= 10_000 * MS
    assert (_at_jump(rows, 300 * MS), _at_step_of_clock(rows, 300 * MS)) == (320 * MS, 330 * MS)


def test_a_row_draws_the_same_moments_each_time():
    first, second = ([next(draws).random() for _ in range(5)] for draws in (draws_of("row"), draws_of("row")))
    assert first == second and len(set(first)) == 5
    assert next(draws_of("other")).random() != first[0]


def test_ticks_that_are_woken_late_are_added_up_in_their_window_alone(rows):
    started = rows["timing"]["started_ns"]
    started += 400_000
    assert held_up_ms(rows, 100 * MS) == 0.0, "less than half a period may be the tick before"
    started[[99, 110, 139, 150]] += [2 * MS, MS, 3 * MS, 9 * MS]
    assert held_up_ms(rows, 100 * MS) == pytest.approx(2.4 + 1.4 + 3.4)
    assert held_up_ms(rows, 160 * MS) == 0.0


def test_a_strike_is_not_judged_by_ticks_that_were_held_up_whatever_came_of_it(rows):
    site = Site.__new__(Site)
    site.rows, site.windows = [rows], collections.Counter()
    site.must_tick(100 * MS)
    rows["timing"]["started_ns"][120] += 4 * MS
    site.rows = [rows]
    with pytest.raises(Void, match=r"late, by 4\.0 ms"):
        site.must_tick(100 * MS)
    assert site.windows == {"after": 2, "after_late": 1}


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
