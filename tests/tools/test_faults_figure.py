"""What the faults figure concludes from records."""

import collections

import numpy as np
import pytest

from haptics.states import EngagementState
from haptics.tables import RECORD
from tools.bench.fault_site import HORIZON_MS, Void
from tools.bench.faults import Bench, _at_jump, _at_step_of_clock, _held, _outcome, draws_of, summary
from tools.bench.kept import Kept

MS = 1_000_000


@pytest.fixture
def rows() -> np.ndarray:
    """400 ticks of a hand that is pushed, each with a sample."""
    rows = np.zeros(400, RECORD)
    at = np.arange(400)
    rows["timing"]["started_ns"] = rows["timing"]["t_received"] = at * MS
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


def test_force_beyond_the_card_or_for_longer_than_ticks_were_held_up_is_not_excused(rows):
    rows["output"]["wrench"][:, 2] = 3.3
    for safe_ms in (HORIZON_MS, HORIZON_MS + 5.0, None):
        with pytest.raises(Void, match=r"held up the servo by 5\.0 ms"):
            _outcome(rows, 300 * MS, safe_ms, 5.0)
    late = _outcome(rows, 300 * MS, HORIZON_MS + 5.1, 5.0, ok=True)
    assert not summary([late], 0, collections.Counter(), 1)["ok"]

    class Struck:
        rows, windows = (0,), collections.Counter()
        since = staticmethod(lambda: rows)

    def one(site, draw):
        raise Void("held up")

    bench = Bench(1, lambda text: None, Kept(None))
    bench.judge("supervisor_killed", one, Struck(), None)
    assert (bench.void["supervisor_killed"], bench.outcomes["supervisor_killed"]) == (1, [])
    rows["output"]["wrench"][200, 2] = 3.4
    bench.judge("supervisor_killed", one, Struck(), None)
    assert bench.void["supervisor_killed"] == 1
    assert bench.outcomes["supervisor_killed"][0]["over_limit_N"] == pytest.approx(0.1)


def test_a_row_has_failed_whose_strikes_hold_up_the_servo_themselves():
    often = {"before": 600, "before_late": 60, "after": 200, "after_late": 60}
    outcome = {"time_to_safe_ms": HORIZON_MS, "over_limit_N": 0.0, "reason": "", "ok": True}
    assert not summary([outcome], 0, collections.Counter(often), 1)["ok"]
    assert summary([outcome], 0, collections.Counter({**often, "after_late": 20}), 1)["ok"]
