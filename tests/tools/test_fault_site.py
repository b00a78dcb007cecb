"""Which ticks of a fault the machine held up, and whether it is the strikes that do it."""

import collections

import numpy as np
import pytest

from haptics.tables import RECORD
from tools.bench.fault_site import Site, caused_by_strikes, held_up_ms

MS = 1_000_000


@pytest.fixture
def rows() -> np.ndarray:
    """400 ticks in time."""
    rows = np.zeros(400, RECORD)
    rows["timing"]["planned_ns"] = rows["timing"]["sent_ns"] = np.arange(400) * MS
    return rows


def test_ticks_that_are_over_late_are_added_up_in_their_window_alone(rows):
    sent = rows["timing"]["sent_ns"]
    sent += 900_000
    assert held_up_ms(rows, 100 * MS) == 0.0
    sent[[98, 110, 139, 150]] += [2 * MS, MS, 3 * MS, 9 * MS]
    assert held_up_ms(rows, 100 * MS) == pytest.approx(2.9 + 1.9 + 3.9)
    assert held_up_ms(rows, 160 * MS) == 0.0


def test_a_strike_is_followed_by_one_window_or_by_all_that_a_hand_is_held_in(rows):
    site = Site.__new__(Site)
    site.windows = collections.Counter()

    def held_up(mode):
        site.rows, site.mode = [rows], mode
        return site.held_up_after(100 * MS)

    assert held_up("work") == 0.0
    rows["timing"]["sent_ns"][120] += 4 * MS
    assert held_up("work") == 4.0
    assert site.windows == {"after": 2, "after_late": 1}
    assert held_up("hold") == 0.0, "less than half of what lets a hand go"
    assert site.windows == {"after": 2 + 7, "after_late": 1}, "of 299 ms"
    rows["timing"]["sent_ns"][300] += 10 * MS
    assert held_up("hold") == 10.0
    assert site.windows == {"after": 2 + 7 + 7, "after_late": 2}


def test_strikes_that_hold_up_the_servo_themselves_are_no_excuse():
    often = {"before": 600, "before_late": 60, "after": 200, "after_late": 60}
    assert caused_by_strikes(often)
    assert not caused_by_strikes({**often, "after_late": 26}), "as before, but for chance"
    assert not caused_by_strikes({**often, "before_late": 0, "after_late": 0})
