"""The governor: what it makes of ticks that take too long, or not, judged in a simulated loop whose costs are known."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.governor import GROWTH, LEAST_SWEEPS, LEAST_UNITS_PER_S, SHARE, Governor
from bridge.servo_loop import next_due

PERIOD = 1_000_000
ALLOWED = SHARE * PERIOD
FULL = (20000, 50, 0)


def governor(budget=FULL, **changes):
    return Governor(*budget, **{"period_ns": PERIOD, "bodies": 3, "contacts": 2000, **changes})


class Plant:
    """A tick that has so much to do, and whose work costs so much: time = fixed + unit * units + visit * visits, ns."""

    def __init__(self, fixed=60_000.0, unit=150.0, visit=80.0, units=500, sweeps=20, contacts=8, islands=1):
        self.fixed, self.unit, self.visit = fixed, unit, visit
        self.units, self.sweeps, self.contacts, self.islands = units, sweeps, contacts, islands

    def run(self, one):
        """(ns, units, sweeps, contacts, islands) of a tick with the budget of `one`, as kernels keep it."""
        units = min(self.units, one.units)
        sweeps = one.sweeps
        if one.visits > 0:
            sweeps = max(min(sweeps, one.visits // max(self.contacts, 1)), 1)
        sweeps = min(sweeps, self.sweeps)
        spent = self.fixed + self.unit * units + self.visit * sweeps * self.contacts
        return spent, units, sweeps * self.islands, self.contacts, self.islands


def go(one, plant, ticks, noise=(0.0,)):
    """Times (ticks,), ns, and units (ticks,) allowed in each, of so many ticks; noise: ns on top, in turns."""
    times, units = [], []
    for _, more in zip(range(ticks), itertools.cycle(noise), strict=False):
        spent, *used = plant.run(one)
        times.append(spent + more)
        units.append(one.units)
        one.learn(round(spent + more), *used)
    return np.array(times), np.array(units)


def budget_of(one):
    return one.units, one.sweeps, one.visits


@pytest.mark.parametrize("budget", [FULL, (150, 2, 0), (2_000_000_000, 2_000_000_000, 0), (3000, 50, 700)])
def test_ticks_with_room_keep_the_configured_budget(budget):
    one = governor(budget)
    for _ in range(100):
        assert not one.learn(round(0.6 * ALLOWED), 400, 20, 8, 1)
        assert budget_of(one) == budget and not one.limiting


def test_the_tick_after_one_that_is_late_by_its_work_is_not():
    one = governor()
    go(one, Plant(), 10)
    assert budget_of(one) == FULL
    times, _ = go(one, Plant(units=10**6), 50)
    assert times[0] > 3 * PERIOD
    assert (times[1:] <= 1.002 * ALLOWED).all() and (times[1:] > 0.99 * ALLOWED).all()


@pytest.mark.parametrize("factor", [0.3, 3.0])
@pytest.mark.parametrize("what", ["fixed", "unit", "visit", "all"])
def test_prices_need_not_be_known(factor, what):
    """Wrong by three, one or all: the first late tick is answered at once, and the share is met soon."""
    prices = {"fixed": 60_000.0, "unit": 150.0, "visit": 80.0}
    for key in prices if what == "all" else [what]:
        prices[key] *= factor
    one = governor((200_000, 50, 0))
    go(one, Plant(**prices), 10)
    busy = Plant(**prices, units=10**6)
    times, units = go(one, busy, 300)
    most = max(ALLOWED, busy.fixed + busy.unit * units.min() + busy.visit * busy.sweeps * busy.contacts)
    assert times[0] > PERIOD and times[1] < 0.5 * times[0]
    assert (times[4:] <= 1.2 * most).all() and (times[30:] <= 1.002 * most).all()
    assert (times[200:] > 0.95 * most).all()


def test_steady_demand_gives_steady_budgets():
    one = governor()
    _, units = go(one, Plant(units=10**6, contacts=16, sweeps=50), 5000)
    settled = units[1000:]
    assert settled.max() / settled.min() - 1.0 <= 2.0 * GROWTH * PERIOD * 1e-9 + 2.0 / settled.min()


def test_budgets_return_slowly_and_entirely():
    one = governor()
    go(one, Plant(units=10**6, contacts=200, sweeps=50), 50)
    low = budget_of(one)
    assert low[0] < 0.3 * FULL[0] and low[2] > 0 and low[1] < FULL[1] and one.limiting
    _, units = go(one, Plant(), 10_000)
    growth = units[1:] / units[:-1]
    assert (growth >= 1.0).all() and growth.max() <= 1.0 + GROWTH * PERIOD * 1e-9 + 1.0 / low[0]
    back = int(np.argmax(units == FULL[0]))
    assert back == pytest.approx(np.log(FULL[0] / low[0]) / (GROWTH * 1e-3), rel=0.01)
    assert budget_of(one) == FULL and not one.limiting


def test_one_preempted_tick_changes_nothing_nor_two():
    for plant in (Plant(), Plant(units=3000, contacts=16, sweeps=30)):
        one = governor()
        go(one, plant, 10)
        go(one, plant, 100, (9e6, 4e6, 0.0))
        assert budget_of(one) == FULL


def test_three_slow_ticks_in_a_row_are_believed():
    plant = Plant(units=3000)
    one = governor()
    go(one, plant, 10)
    go(one, plant, 2, (2e6,))
    assert budget_of(one) == FULL
    go(one, plant, 1, (2e6,))
    assert one.limiting and one.units < 3000


def test_the_dear_stage_is_cut_and_the_cheap_one_left_alone():
    cheap_search = governor()
    go(cheap_search, Plant(units=500, contacts=600, sweeps=50), 20)
    assert cheap_search.units == FULL[0] and cheap_search.sweeps < 50 and cheap_search.visits > 0
    cheap_solver = governor()
    go(cheap_solver, Plant(units=10**6, contacts=16, sweeps=50), 20)
    assert cheap_solver.units < 5000 and cheap_solver.sweeps == 50 and cheap_solver.visits == 0
    both = governor()
    plant = Plant(units=10**6, contacts=600, sweeps=50)
    go(both, plant, 20)
    _, units, sweeps, contacts, _ = plant.run(both)
    assert 150 * units == pytest.approx(80 * sweeps * contacts, rel=0.15), "each gets half of what there is"


def test_visits_are_counted_per_island():
    """Ten islands of six contacts that take twelve sweeps each are 720 visits, not 7200."""
    one, same = governor((20000, 50, 0)), governor((20000, 50, 0))
    for _ in range(3):
        one.learn(1_500_000, 100, 120, 60, 10)
        same.learn(1_500_000, 100, 12, 60, 1)
    assert one.limiting and budget_of(one) == budget_of(same)


@pytest.mark.parametrize(("bodies", "contacts", "sweeps", "visits"), [(0, 16, 50, 800), (300, 400, 4, 1600)])
def test_floors_leave_work_that_makes_progress(bodies, contacts, sweeps, visits):
    one = governor(bodies=bodies)
    for _ in range(100):
        one.learn(50_000_000, 20000, 50, contacts, 1)
    assert budget_of(one) == (2000 + 8 * bodies, sweeps, visits)
    assert min(one.sweeps, one.visits // contacts) == sweeps, "what kernels make of it"


def test_a_configured_budget_below_the_floors_stays():
    one = governor((150, 2, 60))
    for _ in range(100):
        one.learn(50_000_000, 150, 2, 40, 1)
    assert budget_of(one)[:2] == (150, 2) and one.visits == 60


@pytest.mark.parametrize("tick_hz", [50, 500, 4000])
def test_the_period_is_what_counts(tick_hz):
    period = round(1e9 / tick_hz)
    one = governor((10**9, 50, 0), period_ns=period)
    times, _ = go(one, Plant(fixed=20_000, unit=50, units=10**8), 300)
    assert times[-1] == pytest.approx(SHARE * period, rel=0.03)


ticks = st.tuples(
    st.integers(0, 10**10),
    st.integers(0, 2**31 - 1),
    st.integers(0, 10**6),
    st.integers(0, 2000),
    st.integers(0, 2000),
)


@given(
    units=st.integers(100, 2_000_000_000),
    sweeps=st.integers(1, 2_000_000_000),
    visits=st.integers(0, 2_000_000_000),
    bodies=st.integers(0, 1000),
    period=st.integers(250_000, 20_000_000),
    history=st.lists(ticks, max_size=60),
)
def test_whatever_is_measured_budgets_stay_between_floor_and_ceiling(units, sweeps, visits, bodies, period, history):
    one, again = (
        Governor(units, sweeps, visits, period_ns=period, bodies=bodies, contacts=2000),
        Governor(units, sweeps, visits, period_ns=period, bodies=bodies, contacts=2000),
    )
    for tick in history:
        before = budget_of(one)
        changed = one.learn(*tick)
        assert changed or budget_of(one) == before
        assert min(units, LEAST_UNITS_PER_S * period // 10**9) <= one.units <= units
        assert min(sweeps, LEAST_SWEEPS) <= one.sweeps <= sweeps
        assert 0 <= one.visits < 2**31
        if visits > 0:
            assert min(visits, LEAST_SWEEPS * tick[3]) <= one.visits <= visits and one.visits > 0
        assert one.limiting or budget_of(one) == (units, sweeps, visits)
        again.learn(*tick)
        assert budget_of(again) == budget_of(one), "the same history, the same budgets"


class Loop:
    """The free-running loop in simulated time: deadlines by `next_due`, ticks by a plant, a machine that interferes."""

    def __init__(self, one, seed):
        self.one = one
        self.rng = np.random.default_rng(seed)
        self.due, self.earliest = PERIOD, 0
        self.now = 0

    def run(self, plant, ticks):
        """Lateness (ticks,), ns, and periods missed in all."""
        late, missed_in_all = [], 0
        for _ in range(ticks):
            started = max(self.due, self.earliest, self.now) + round(self.rng.exponential(20_000))
            late.append(started - self.due)
            spent, *used = plant.run(self.one)
            spent *= self.rng.lognormal(0.0, 0.08)
            if self.rng.random() < 0.003:
                spent += self.rng.uniform(5e5, 4e6)  # somebody else has the core
            spent = round(spent)
            if self.one.learns:
                self.one.learn(spent, *used)
            self.now = started + spent
            self.due, missed, self.earliest = next_due(self.due, started, self.now, PERIOD)
            missed_in_all += missed
        return np.array(late), missed_in_all


class Fixed:
    """No governor."""

    learns = False
    units, sweeps, visits = FULL


class Governed(Governor):
    learns = True


@pytest.mark.parametrize(
    "load",
    [Plant(units=10**6), Plant(units=2000, contacts=400, sweeps=50), Plant(units=10**6, contacts=200, sweeps=50)],
    ids=["search", "solver", "both"],
)
@pytest.mark.parametrize("seed", range(3))
def test_in_a_closed_loop_overload_no_longer_makes_ticks_late(load, seed):
    """Two seconds of overload between quiet ones, with spread, late wake-ups and preemption."""
    figures = {}
    for one in (Fixed(), Governed(*FULL, period_ns=PERIOD, bodies=3, contacts=2000)):
        loop = Loop(one, seed)
        loop.run(Plant(), 1000)
        calm = budget_of(one)
        late, missed = loop.run(load, 2000)
        figures[one.learns] = np.percentile(late, 99), missed
        loop.run(Plant(), 4000)
        assert calm == budget_of(one) == FULL, "preemption alone does not throttle, and budgets return"
    assert figures[False][1] >= 1000 and figures[True][1] <= 40
    assert figures[True][0] < 0.3 * figures[False][0] or figures[True][0] < 0.2 * PERIOD
