"""The governor: from how long past ticks took to how much work the next one may do.

Kernels count work and never read a clock. This is the one place where measured time decides: a tick that took more of
its period than `SHARE` is answered at once by a smaller budget for the next one, and where there is room budgets grow
back slowly, up to the configured ones. The choice is written into the next record, so that re-execution takes it from
there. Pure arithmetic: the same sequence of arguments gives the same budgets.
"""

SHARE = 0.7
"""Of a period: how long a tick may take. The rest is for waking up late, and for the spread of what a unit costs."""

GROWTH = 1.0
"""Rate at which budgets grow back, 1/s: by a factor of e per second. At 1 kHz they overshoot by a thousandth."""

FIXED_NS = 60_000
UNIT_NS = 150
VISIT_NS = 80
"""What a tick without work, a unit and a visit of a contact cost on one machine. Only their ratios count: they tell
which stage took the time; how fast this machine is shows in the ticks."""

LEAST_UNITS_PER_S = 2_000_000
UNITS_PER_BODY = 8
"""Floor of the units: 2000 in a millisecond, three tenths of it. Fronts keep from tick to tick what was found, so that
a tool gets with some hundred to where it gets with twenty thousand, in more ticks. The broad phase, which comes first,
takes some per body in each tick and would leave nothing else."""

LEAST_VISITS_PER_S = 800_000
LEAST_SWEEPS = 4
"""Floor of the visits: 800 in a millisecond, less than a tenth of it, so that the sixteen contacts of a tool keep their
fifty sweeps; and four sweeps over any number of contacts. Solves start from the impulses of the last tick, so that few
sweeps per tick still converge, over some ticks."""

MOST = 2**31 - 1
"""What fits into a budget."""


class Governor:
    """Budgets of the next tick (`units`, `sweeps`, `visits`), and whether they are below the configured ones.

    Time that work does not explain is not believed until the third tick in a row: being preempted makes a tick slower
    by its work than the two before it, having more to do does not. Of what is to be saved each of the two stages,
    search and solver, keeps at least half of the time there is: one that is cheap is not cut for the other.
    """

    # fmt: off
    __slots__ = (
        "_allowed", "_before", "_configured_visits", "_earlier", "_floor_units", "_floor_visits", "_growth",
        "_most_sweeps", "_most_units", "_most_visits", "_units", "_visits", "limiting", "sweeps", "units", "visits",
    )
    # fmt: on

    def __init__(self, units: int, sweeps: int, visits: int, *, period_ns: int, bodies: int, contacts: int) -> None:
        """units, sweeps, visits: the configured budget (BUDGET; visits 0: as many as sweeps allow).

        period_ns: of the ticks; with triggered clocking the expected one. bodies: of the scene. contacts: the most
        there can be.
        """
        self._allowed = SHARE * period_ns
        self._growth = 1.0 + GROWTH * period_ns * 1e-9
        self._most_units = float(units)
        self._most_sweeps = sweeps
        self._most_visits = float(visits if visits > 0 else min(sweeps * contacts, MOST))
        self._configured_visits = visits
        self._floor_units = float(min(units, round(LEAST_UNITS_PER_S * period_ns * 1e-9) + UNITS_PER_BODY * bodies))
        self._floor_visits = LEAST_VISITS_PER_S * period_ns * 1e-9
        self._units = float(units)
        self._visits = self._most_visits
        self._before = self._earlier = 0.0
        self.units = units
        self.sweeps = sweeps
        self.visits = visits
        self.limiting = False

    def learn(self, spent_ns: int, units: int, sweeps: int, contacts: int, islands: int) -> bool:
        """Take in a tick; True when the budget of the next one may not be the one of this.

        spent_ns: from its start, however late that was, to its end; units, sweeps: used, see STEP_REPORT; contacts:
        of the tool and of bodies; islands: that they form.
        """
        visits = sweeps * contacts / islands if islands > 1 else sweeps * contacts
        work = FIXED_NS + UNIT_NS * units + VISIT_NS * visits
        slowness = rate = spent_ns / work
        if slowness > self._before:
            slowness = self._before
        if slowness > self._earlier:
            slowness = self._earlier
        self._earlier = self._before
        self._before = rate
        if slowness * work > self._allowed:
            self._cut(self._allowed / slowness - FIXED_NS, units, visits)
        elif self.limiting:
            self._grow()
        else:
            return False
        self._put(contacts)
        return True

    def _cut(self, room: float, units: int, visits: float) -> None:
        """Let a tick like this one take the time allowed. room: ns of work at the prices above."""
        half = 0.5 * room
        left = max(half, room - VISIT_NS * visits)
        if UNIT_NS * units > left:
            self._units = max(min(self._units, left / UNIT_NS), self._floor_units)
        left = max(half, room - UNIT_NS * units)
        if VISIT_NS * visits > left:
            self._visits = max(min(self._visits, left / VISIT_NS), self._floor_visits)

    def _grow(self) -> None:
        # Comparisons, here and below: `min` and `max` cost a tenth of a microsecond each, and this runs in every tick.
        units = self._units * self._growth
        self._units = units if units < self._most_units else self._most_units
        visits = self._visits * self._growth
        self._visits = visits if visits < self._most_visits else self._most_visits

    def _put(self, contacts: int) -> None:
        """Write the budget down. contacts: of this tick, for the floor of what the solver may do."""
        self.units = int(self._units)
        if self._visits >= self._most_visits:
            self.sweeps = self._most_sweeps
            self.visits = self._configured_visits
            self.limiting = self._units < self._most_units
            return
        self.limiting = True
        visits = int(self._visits)
        if visits < LEAST_SWEEPS * contacts:
            visits = LEAST_SWEEPS * contacts
        sweeps = visits // contacts if contacts > 0 else visits
        self.sweeps = sweeps if sweeps < self._most_sweeps else self._most_sweeps
        self.visits = visits if visits < self._most_visits else int(self._most_visits)
