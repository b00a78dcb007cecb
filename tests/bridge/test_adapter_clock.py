"""Times of other clocks: mapped, drifting, lying."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters.clock import BEHIND_NS, DRIFT, JUMP_NS, LAG_NS, DeviceClock, ForeignClock, RenderClock

MS = 1_000_000
HERE = (0.0, 0.0, 0.0)


@given(st.lists(st.integers(0, 5 * MS), min_size=2, max_size=200), st.integers(-(10**15), 10**15))
def test_a_foreign_time_is_never_in_the_future_nor_older_than_its_way(delays, offset):
    """Mapped times lie between the sending itself and the arrival, but for what the drift allows."""
    clock = ForeignClock()
    shortest = min(delays)
    for k, delay in enumerate(delays):
        sent = k * 10 * MS
        arrived = sent + delay
        mapped = clock.local(sent + offset, arrived)
        assert mapped <= arrived
        assert mapped >= sent + shortest - 1


@pytest.mark.parametrize("ppm", [-100, 100])
def test_a_clock_that_drifts_is_followed_for_an_hour(ppm):
    """100 ppm either way: nothing is taken for a lie, and no reading of now looks older than 1 ms."""
    clock = DeviceClock()
    for k in range(36_000):
        here = k * 100 * MS
        there = here + here * ppm // 1_000_000 + 77 * MS
        assert 0 <= here - clock.t_sample(there, here, HERE) <= MS
    assert clock.lie is None
    assert abs(ppm) * 1e-6 < DRIFT


def ages_of_renders(seconds, there, back, ppm=0):
    """Age (ms) by which renders are told to have come, one every 10 ms: ways there and back in ms at a time in s."""
    clock = RenderClock(same=False)
    found = []
    for k in range(0, 100 * seconds):
        sent, way = k * 10 * MS, round(there(k / 100) * MS)
        here = sent + way + MS + round(back(k / 100) * MS)
        daemons = [t + t * ppm // 1_000_000 + 10**15 for t in (sent + way, sent + way + MS)]
        found.append((here - clock.left(daemons[1], here, daemons[0], sent)) / MS)
    return np.array(found)


@pytest.mark.parametrize(("there", "back", "age"), [(200, 200, 200), (0, 200, 100), (3, 1, 2), (0, 0, 0)])
def test_a_render_is_as_old_as_half_of_the_way_there_and_back(there, back, age):
    """Exactly so where both ways are alike, from the first one on."""
    assert ages_of_renders(10, lambda t: there, lambda t: back) == pytest.approx(age, abs=0.01)


@pytest.mark.parametrize(("there", "least"), [(201.0, 200.0), (1.0, 100.0)])
def test_a_way_that_has_grown_is_never_forgotten(there, least):
    """From 1 to 201 ms, both ways or only back: ten minutes later it still is age."""
    ages = ages_of_renders(600, lambda t: 1.0 if t < 1.0 else there, lambda t: 1.0 if t < 1.0 else 201.0)
    assert ages[:100] == pytest.approx(1.0, abs=0.01) and ages[101:].min() >= least


@pytest.mark.parametrize("ppm", [-100, 100])
def test_drift_of_a_daemons_clock_is_no_age(ppm):
    ages = ages_of_renders(1200, lambda t: 1.0, lambda t: 1.0, ppm)
    assert ages == pytest.approx(1.0, abs=0.1)


def test_a_render_of_this_machine_left_when_it_says():
    clock = RenderClock(same=True)
    assert clock.left(1000, 1200, 900, None) == 1000 and clock.left(1300, 1250, 900, 800) == 1250


def told(clock: DeviceClock, stamps, period=MS, moving=False) -> list[int]:
    """Ages of readings, one per period, with those stamps."""
    start = 10**12
    found = []
    for k, stamp in enumerate(stamps):
        here = start + k * period
        found.append(here - clock.t_sample(stamp, here, (1e-4 * k if moving else 0.0, 0.0, 0.0)))
    return found


def test_a_clock_that_runs_backwards_lies():
    clock = DeviceClock()
    ages = told(clock, [*range(0, 50 * MS, MS), 20 * MS, *range(51 * MS, 90 * MS, MS)])
    assert clock.lie == "the device's clock ran backwards by 29.000 ms"
    assert set(ages) == {0}


def test_a_clock_that_jumps_ahead_lies():
    clock = DeviceClock()
    told(clock, [*range(0, 50 * MS, MS), 51 * MS + JUMP_NS + MS])
    assert clock.lie is not None and "ahead" in clock.lie


def test_a_clock_that_stands_still_lies_only_where_the_device_moves():
    still, moves = DeviceClock(), DeviceClock()
    ages = told(still, [5 * MS] * 100)
    assert still.lie is None and ages[-1] == pytest.approx(99 * MS, rel=1e-3), "an old reading looks old"
    told(moves, [5 * MS] * 100, moving=True)
    assert moves.lie is not None and "stood still" in moves.lie


def test_a_clock_that_fell_behind_is_old_for_a_second_and_then_a_lie():
    clock = DeviceClock()
    behind = 10 * BEHIND_NS
    stamps = [k * MS if k < 200 else 200 * MS + max(0, (k - 200) * MS - behind) for k in range(2000)]
    ages = told(clock, stamps)
    assert ages[400] > behind // 2 and ages[-1] == 0
    assert clock.lie is not None and "lags" in clock.lie and LAG_NS == 1_000_000_000


@pytest.mark.parametrize("ppm", [600, 1000, 10_000, 100_000])
def test_a_clock_that_is_too_slow_is_a_lie_before_its_samples_are_too_old_for_long(ppm):
    """They are older than a daemon takes (20 ms) for less than a second, and then a sentence says so."""
    clock = DeviceClock()
    stale = 0
    for k in range(400_000):
        here = k * MS
        stale += here - clock.t_sample(here - here * ppm // 1_000_000, here, HERE) > 2 * BEHIND_NS
        if clock.lie is not None:
            break
    assert clock.lie is not None and "lags" in clock.lie and stale * MS < LAG_NS


@pytest.mark.parametrize("step", [-30 * MS, 30 * MS])
def test_a_clock_that_steps_is_a_lie_or_no_matter(step):
    """Readings every 40 ms, so that a step back is no time backwards: soon none of them looks older than it is."""
    clock = DeviceClock()
    ages = told(clock, [40 * k * MS + (step if k > 50 else 0) for k in range(200)], period=40 * MS)
    assert (clock.lie is not None) is (step < 0) and ages[-1] == 0
