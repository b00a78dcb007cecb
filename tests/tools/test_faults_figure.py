"""What the faults figure concludes from records."""

import numpy as np
import pytest

from haptics.tables import RECORD
from tools.bench.faults import Void, _at_jump, _at_step_of_clock, _held, draws_of

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
