"""The last line keeps its promises whatever is wanted, and however cycles come: norm, slew, ramps, heat, trip."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics.cards import card_from_dict, load_card
from haptics.last_line import (
    HEATED,
    LONGEST_CYCLE_S,
    NO_WRENCH,
    NOT_FINITE,
    SATURATED,
    SLEW_LIMITED,
    ForcesOff,
    Limits,
    Memory,
    Wanted,
    reset,
    step,
)

LIMITS = Limits(
    force_peak=10.0,
    torque_peak=0.5,
    force_continuous=4.0,
    torque_continuous=0.5,
    force_slew=2000.0,
    torque_slew=100.0,
    speed_trip=3.0,
)
MS = 1_000_000
VALID = 10 * MS
SLACK = 1.0 + 1e-9
"""Rounding of some sums and roots in double precision."""

number = st.floats(-1e3, 1e3) | st.floats() | st.sampled_from([1e308, -1e308, 0.0])
wrenches = st.tuples(*[number] * 6)
cycles = st.lists(
    st.tuples(
        st.integers(0, 30 * MS),
        wrenches,
        st.integers(0, 40 * MS),
        st.floats(0.0, 2.9) | st.just(math.nan),
        st.sampled_from([ForcesOff.NONE, ForcesOff.NONE, ForcesOff.NONE, ForcesOff.NOT_ASKED, ForcesOff.LEAVING]),
    ),
    max_size=60,
)


def norm(v) -> float:
    return math.hypot(*v)


def asked(wrench=NO_WRENCH, age_ns=0, speed=0.0, off=ForcesOff.NONE) -> Wanted:
    return Wanted(tuple(wrench), age_ns, VALID, speed, off)


def run(limits, count, wanted, memory=Memory(), dt_ns=MS):  # noqa: B008  a tuple, which nobody can change
    """So many cycles of one kind; memory and what was applied."""
    applied = []
    t = 0 if memory.t_ns is None else memory.t_ns
    for _ in range(count):
        t += dt_ns
        memory, one = step(limits, memory, t, wanted)
        applied.append(one)
    return memory, applied


@given(cycles)
def test_any_sequence_keeps_norm_and_slew(sequence):
    """Norms within the peaks, steps within the slew rate of the counted time, numbers finite, gain in 0..1."""
    memory, t = Memory(), 0
    for dt_ns, wrench, age, speed, off in sequence:
        before, t = memory, t + dt_ns
        memory, applied = step(LIMITS, memory, t, Wanted(wrench, age, VALID, speed, off))
        counted = 0.0 if before.t_ns is None else min(dt_ns * 1e-9, LONGEST_CYCLE_S)
        assert all(math.isfinite(value) for value in applied.wrench)
        assert applied.wrench == (*memory.force, *memory.torque)
        assert norm(memory.force) <= 10.0 * SLACK and norm(memory.torque) <= 0.5 * SLACK
        falls = applied.off != ForcesOff.NONE
        rate, turn_rate = (10.0 / 0.015, 0.5 / 0.015) if falls else (2000.0, 100.0)
        assert math.dist(memory.force, before.force) <= rate * counted * SLACK + 1e-11
        assert math.dist(memory.torque, before.torque) <= turn_rate * counted * SLACK + 1e-11
        assert 0.0 <= memory.gain <= 1.0
        if falls:
            assert norm(memory.force) <= norm(before.force) * SLACK + 1e-300
        assert falls == (off != 0 or age > VALID or math.isnan(speed) or not all(map(math.isfinite, wrench)))


@given(cycles, wrenches)
def test_whatever_came_before_forces_are_zero_after_the_fade(sequence, wrench):
    """A dead daemon: from any memory, `fade_s` of counted cycles with a stale render end at exactly zero."""
    memory, t = Memory(), 0
    for dt_ns, wanted, age, speed, off in sequence:
        t += dt_ns
        memory, _ = step(LIMITS, memory, t, Wanted(wanted, age, VALID, speed, off))
    memory, applied = run(LIMITS, 16, asked(wrench, age_ns=VALID + 1), memory._replace(t_ns=t))
    assert applied[-1].wrench == NO_WRENCH
    assert applied[-1].off in (ForcesOff.STALE, ForcesOff.NOT_FINITE)


@pytest.mark.parametrize("meanwhile", [4.0, -9.0, 0.0, math.nan])
def test_a_ramp_down_is_linear_whatever_is_wanted(meanwhile):
    """From 4 N in steps of 1 ms: each takes the same, and the last ends at zero."""
    memory, _ = run(LIMITS, 200, asked((4.0, 0, 0, 0, 0, 0)))
    assert memory.force == (4.0, 0.0, 0.0)
    _, applied = run(LIMITS, 15, asked((meanwhile, 0, 0, 0, 0, 0), age_ns=VALID + 1), memory)
    for k, one in enumerate(applied, 1):
        assert one.wrench[0] == pytest.approx(4.0 * (1.0 - k / 15.0), abs=1e-12)
        assert one.off in (ForcesOff.STALE, ForcesOff.NOT_FINITE)
    assert applied[-1].wrench == NO_WRENCH


def test_soft_start_is_linear_and_begins_at_zero():
    """A spring that stands already at 4 N comes on over 100 ms."""
    _, applied = run(LIMITS, 101, asked((0, 4.0, 0, 0, 0, 0)))
    for k, one in enumerate(applied):
        assert one.wrench[1] == pytest.approx(4.0 * min(k / 100.0, 1.0), abs=1e-12)


@given(st.tuples(*[st.floats(-1e300, 1e300)] * 3))
def test_saturation_keeps_the_direction(force):
    """With slew out of the way the force is the wanted one, or the one along it of the allowed norm."""
    limits = replace(LIMITS, force_slew=1e9, torque_slew=1e9, force_continuous=10.0)
    _, applied = run(limits, 110, asked((*force, 0, 0, 0)))
    got, size = applied[-1].wrench[:3], max(map(abs, force))
    if size == 0.0 or norm(force) <= 10.0:
        assert got == pytest.approx(force, rel=1e-9, abs=1e-300)
        return
    direction = [value / size for value in force]
    assert norm(got) == pytest.approx(10.0)
    assert got == pytest.approx([10.0 * value / norm(direction) for value in direction], abs=1e-9)
    assert applied[-1].limited & SATURATED


def test_torque_is_saturated_by_itself():
    """A force far over its norm takes nothing of a torque that is within its own."""
    _, applied = run(LIMITS, 300, asked((100.0, 0, 0, 0.3, 0, 0)))
    assert applied[-1].wrench[3] == pytest.approx(0.3)
    assert norm(applied[-1].wrench[:3]) == pytest.approx(10.0)


def test_a_step_of_the_wanted_force_is_followed_at_the_slew_rate():
    memory, _ = run(LIMITS, 200, asked((3.0, 0, 0, 0, 0, 0)))
    _, applied = run(LIMITS, 3, asked((-3.0, 0, 0, 0, 0, 0)), memory)
    assert [one.wrench[0] for one in applied] == pytest.approx([1.0, -1.0, -3.0])
    assert applied[0].limited & SLEW_LIMITED and not applied[2].limited & SLEW_LIMITED


def test_a_wrench_that_is_not_finite_counts_and_ramps_down():
    memory, _ = run(LIMITS, 200, asked((3.0, 0, 0, 0, 0, 0)))
    memory, applied = run(LIMITS, 2, asked((math.nan, 0, 0, 0, 0, 0)), memory)
    assert memory.not_finite == 2 and applied[0].off == ForcesOff.NOT_FINITE and applied[0].limited & NOT_FINITE
    assert [one.wrench[0] for one in applied] == pytest.approx([3.0 * 14 / 15, 3.0 * 13 / 15])
    memory, _ = run(LIMITS, 1, asked((math.inf, 0, 0, 0, 0, 0)), memory)
    assert memory.not_finite == 3


def test_too_fast_a_device_gets_nothing_until_reset():
    """The one step there is; afterwards forces come back by the soft start only."""
    memory, _ = run(LIMITS, 200, asked((3.0, 0, 0, 0, 0, 0)))
    memory, applied = run(LIMITS, 1, asked((3.0, 0, 0, 0, 0, 0), speed=3.01), memory)
    assert applied[0].wrench == NO_WRENCH and applied[0].off == ForcesOff.VELOCITY
    memory, applied = run(LIMITS, 50, asked((3.0, 0, 0, 0, 0, 0)), memory)
    assert all(one.wrench == NO_WRENCH and one.off == ForcesOff.VELOCITY for one in applied)
    _, applied = run(LIMITS, 100, asked((3.0, 0, 0, 0, 0, 0)), reset(memory))
    assert 0.0 < applied[0].wrench[0] < 0.04 and applied[-1].wrench[0] == pytest.approx(3.0)


@given(
    st.floats(1.01, 4.0),
    st.floats(0.5, 5.0),
    st.lists(st.tuples(st.integers(0, 5 * MS), st.floats(0.0, 60.0)), min_size=1, max_size=400),
)
def test_heat_never_passes_the_continuous_square(ratio, continuous, course):
    """Any course of wanted forces in cycles of at most 5 ms; begun hot, where it matters."""
    limits = replace(LIMITS, force_continuous=continuous, force_peak=ratio * continuous, force_slew=1e6)
    memory, t = Memory(t_ns=0, gain=1.0, force_heat=0.9 * continuous**2), 0
    for dt_ns, wanted in course:
        t += dt_ns
        memory, _ = step(limits, memory, t, asked((wanted, 0, 0, 0, 0, 0)))
        assert memory.force_heat <= continuous**2 * SLACK


def test_a_peak_lasts_for_its_time_and_then_the_continuous_force_for_ever():
    """2.5 times the continuous force: the time until h reaches its square is tau ln(1 / (1 - 1 / 2.5^2)) at most."""
    memory, applied = run(LIMITS, 12_000, asked((10.0, 0, 0, 0, 0, 0)), dt_ns=5 * MS)
    forces = [one.wrench[0] for one in applied]
    whole = next(k for k, one in enumerate(applied) if k > 30 and one.limited & HEATED)
    # Until h = 0.8 * 16: h = 100 (1 - exp(-t / tau)).
    assert whole * 0.005 == pytest.approx(10.0 * math.log(1.0 / (1.0 - 0.128)), abs=0.1)
    assert forces[-1] == pytest.approx(4.0, rel=1e-2) and min(forces[whole:]) >= 4.0
    assert memory.force_heat <= 16.0


def test_the_least_lasting_force_that_a_card_may_state_can_be_kept():
    card = load_card("touch").to_dict() | {"force_continuous": 3.3 / 20.0}
    lasting, _ = card_from_dict(card).lasting(3.3, 0.0)
    assert replace(LIMITS, force_peak=3.3, force_continuous=lasting).force_continuous == lasting


@pytest.mark.parametrize(("pressed", "lasts_s"), [(3.0, 0.7), (1.5, 3.5)])
def test_heat_takes_a_cards_peak_away_bit_by_bit(pressed, lasts_s):
    """By what a card says: what is pressed lasts for a while, then falls to what lasts, in no step."""
    card = card_from_dict(load_card("touch").to_dict() | {"force_continuous": 0.88})
    lasting, _ = card.lasting(card.force_max, 0.0)
    limits = replace(LIMITS, force_peak=card.force_max, force_continuous=lasting, force_slew=1e6)
    memory, t, before, told_at = Memory(t_ns=0, gain=1.0, force=(pressed, 0.0, 0.0)), 0, pressed, None
    while t < 60e9:
        t += MS
        memory, applied = step(limits, memory, t, Wanted((pressed, 0.0, 0.0, 0.0, 0.0, 0.0), 0, 1, 0.0))
        now = applied.wrench[0]
        assert 0.0 <= before - now <= 0.015 * pressed
        if now < pressed and told_at is None:
            told_at = t
            assert applied.limited & HEATED and t > lasts_s * 1e9
        before = now
    assert told_at is not None and now == pytest.approx(0.88, rel=1e-6)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("force_peak", math.nan, "force_peak = nan must be a finite number, 0 or more"),
        ("fade_s", 0.0, "fade_s = 0.0 must be a finite number, above 0"),
        ("force_continuous", 11.0, "force_continuous = 11 must not be above force_peak = 10"),
        ("force_continuous", 0.0, "must be above 0"),
        ("thermal_s", 0.01, "too short"),
    ],
)
def test_limits_that_cannot_hold_are_refused(key, value, text):
    with pytest.raises(ValueError, match=text):
        replace(LIMITS, **{key: value})
