"""Block Gauss-Seidel with the exact Coulomb law of one contact at a time, plain and accelerated.

A sweep solves one contact after the other (see rtcore.solvers.local; with the moments of the row behind it, if it has
some, see rtcore.solvers.rolling) and adds what its impulse changed to the relative velocities of the contacts that it
is coupled with, so that impulses and velocities belong to each other at all times and the natural-map residual after
each sweep costs no product with W. Three ways to go on from a sweep:

* `solve`: from where it ended;
* `solve_nncg`: a step of nonlinear conjugate gradients, the change of the sweep taken for a gradient; velocities are
  affine in the impulses, so the step costs no product with W either;
* `solve_anderson`: the affine combination of the last sweeps' ends whose changes cancel best. Where the sweep from it
  ends much worse than the one before, that one is taken up again and the memory is cleared. The velocities of the
  combination are computed anew: its shares are large where contacts are strongly coupled, and rounding carried along
  with them made the residual a fiction within some hundred sweeps.

Combinations may leave the cone; ends of sweeps do not, and only those are answers. The best answer met is kept.
Source: block Gauss-Seidel, Jourdan, Alart and Jean 1998; NNCG, Silcowitz, Niebe and Erleben 2010; acceleration,
Anderson 1965, with the safeguard by the residual of the plain iteration.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.solvers import best
from rtcore.solvers.local import FACTORS, UNIT, prepare, solve_contact
from rtcore.solvers.problem import (
    ContactProblem,
    has_moments,
    lever_square,
    natural_map,
    relative_velocity,
    residual,
    spread,
)
from rtcore.solvers.rolling import prepare_pair, solve_with_moments

MEMORY = 10
"""Differences of sweeps that `solve_anderson` combines. With 5, towers need four to twelve times the sweeps to 1e-8."""
GROWTH = 2.0
"""Factor by which the residual may grow from one sweep to the next before `solve_anderson` takes the step back."""
RIDGE = 1e-13
"""Share added to the diagonal of the normal equations of `solve_anderson`, so that they can be solved in doubles."""
REFRESH = 32
"""Sweeps after which the velocities are computed anew, since they gather rounding."""


@by_reference
class SweepWork(NamedTuple):
    """Work memory of the solvers of this file; rows count from the first contact of the island."""

    factors: np.ndarray
    """(contacts, FACTORS) of each contact's own block."""
    best: np.ndarray
    """(contacts, 6) impulse and velocity of the best answer."""
    start: np.ndarray
    """(contacts, 3) impulses from which the last sweep started."""
    end: np.ndarray
    """(contacts, 6) impulse and velocity to which the last accepted sweep came."""
    change: np.ndarray
    """(contacts, 6) what that sweep changed (first three), or the direction of conjugate gradients."""
    ends: np.ndarray
    """(MEMORY, contacts, 3) differences of the ends of successive sweeps."""
    changes: np.ndarray
    """(MEMORY, contacts, 3) differences of their changes."""
    normal: np.ndarray
    """(2, MEMORY, MEMORY) normal equations of the combination, and their Cholesky factor."""
    share: np.ndarray
    """(MEMORY,) of each difference in the combination."""


def make_work(problem: ContactProblem) -> SweepWork:
    """Make the work memory for any island of the problem."""
    contacts = len(problem.equations)
    return SweepWork(
        factors=np.zeros((contacts, FACTORS)),
        best=np.zeros((contacts, 6)),
        start=np.zeros((contacts, 3)),
        end=np.zeros((contacts, 6)),
        change=np.zeros((contacts, 6)),
        ends=np.zeros((MEMORY, contacts, 3)),
        changes=np.zeros((MEMORY, contacts, 3)),
        normal=np.zeros((2, MEMORY, MEMORY)),
        share=np.zeros(MEMORY),
    )


@inner
def _adjoins(equations: np.ndarray, blocks: np.ndarray, i: int) -> bool:
    """Is there a block of contact i and its moments in the row behind? They share a mover, if they have any."""
    equation = equations[i]
    place = equation.diagonal + 1
    return place < equation.block_first + equation.block_count and blocks[place].column == i + 1


@inner
def prepare_sweeps(problem: ContactProblem, first: int, last: int, factors: np.ndarray) -> None:
    """Write the factors of `sweep`, (contacts, FACTORS)."""
    equations = problem.equations
    blocks = problem.blocks
    for i in range(first, last):
        equation = equations[i]
        own = blocks[equation.diagonal].values
        factors[i - first, UNIT] = 1.0
        if equation.parent < 0:
            prepare(own, factors[i - first])
            continue
        contact = equations[equation.parent]
        square = lever_square(blocks[contact.diagonal].values, own)
        factors[i - first, UNIT] = 1.0 / math.sqrt(square) if square > 0.0 else 0.0
        if _adjoins(equations, blocks, equation.parent):
            prepare_pair(blocks[contact.diagonal].values, blocks[contact.diagonal + 1].values, own, factors[i - first])


@kernel
def sweep(problem: ContactProblem, first: int, last: int, factors: np.ndarray) -> None:
    """Solve the contacts first .. last - 1 once, one after the other; velocities must and will belong to impulses.

    There must be no rows of moments among them.
    factors: (contacts, FACTORS), those of contact `first` in row 0, see `prepare_sweeps`.
    """
    equations = problem.equations
    blocks = problem.blocks
    for i in range(first, last):
        equation = equations[i]
        w = blocks[equation.diagonal].values
        r = equation.impulse
        u = equation.velocity
        n = r[0]
        t1 = r[1]
        t2 = r[2]
        r[0], r[1], r[2] = solve_contact(
            factors[i - first],
            u[0] - w[0, 0] * n - w[0, 1] * t1 - w[0, 2] * t2,
            u[1] - w[1, 0] * n - w[1, 1] * t1 - w[1, 2] * t2,
            u[2] - w[2, 0] * n - w[2, 1] * t1 - w[2, 2] * t2,
            equation.friction,
        )
        n = r[0] - n
        t1 = r[1] - t1
        t2 = r[2] - t2
        if n == 0.0 and t1 == 0.0 and t2 == 0.0:
            continue
        spread(equations, blocks, equation, n, t1, t2)


@inner
def sweep_with_moments(problem: ContactProblem, first: int, last: int, factors: np.ndarray) -> None:
    """As `sweep`, each contact together with the moments in the row behind it, if it has some."""
    equations = problem.equations
    blocks = problem.blocks
    for i in range(first, last):
        if equations[i].parent >= 0:
            continue
        if i + 1 < last and equations[i + 1].parent == i and _adjoins(equations, blocks, i):
            solve_with_moments(equations, blocks, i, factors[i - first], factors[i - first + 1])
        else:
            sweep(problem, i, i + 1, factors[i - first : i - first + 1])


@inner
def _save(problem: ContactProblem, first: int, last: int, state: np.ndarray) -> None:
    """Write impulses and velocities to state (contacts, 6)."""
    for i in range(first, last):
        equation = problem.equations[i]
        for k in range(3):
            state[i - first, k] = equation.impulse[k]
            state[i - first, 3 + k] = equation.velocity[k]


@inner
def _restore(problem: ContactProblem, first: int, last: int, state: np.ndarray) -> None:
    for i in range(first, last):
        equation = problem.equations[i]
        for k in range(3):
            equation.impulse[k] = state[i - first, k]
            equation.velocity[k] = state[i - first, 3 + k]


@inner
def _begin(problem: ContactProblem, first: int, last: int, work: SweepWork, report: Any) -> float:
    """Put the warm start into the cone, make it the best answer, and return the rho of the residual."""
    prepare_sweeps(problem, first, last, work.factors)
    rho = best.start(problem, first, last, report)
    report.residual = report.start_residual
    report.sweeps_used = 0
    report.converged = 0
    _save(problem, first, last, work.best)
    return rho


@inner
def _advance(
    problem: ContactProblem, first: int, last: int, work: SweepWork, settings: Any, report: Any, rho: float
) -> float:
    """Make one sweep, keep where it ended if that is the best answer, and return its residual; without moments.

    Apart from the function below, because one that may call `residual` holds on to its arrays: 10 % of a small island.
    """
    sweep(problem, first, last, work.factors)
    report.sweeps_used += 1
    error = natural_map(problem, first, last, rho, 1.0, 1.0)
    if report.sweeps_used % REFRESH == 0 or error <= settings.tolerance:
        relative_velocity(problem, first, last)
        error = natural_map(problem, first, last, rho, 1.0, 1.0)
    if error < report.residual:
        report.residual = error
        _save(problem, first, last, work.best)
    return error


@inner
def _advance_with_moments(
    problem: ContactProblem, first: int, last: int, work: SweepWork, settings: Any, report: Any, rho: float
) -> float:
    """As `_advance`, of any island."""
    sweep_with_moments(problem, first, last, work.factors)
    report.sweeps_used += 1
    error = residual(problem, first, last, rho)
    if report.sweeps_used % REFRESH == 0 or error <= settings.tolerance:
        relative_velocity(problem, first, last)
        error = residual(problem, first, last, rho)
    if error < report.residual:
        report.residual = error
        _save(problem, first, last, work.best)
    return error


@inner
def _finish(problem: ContactProblem, first: int, last: int, work: SweepWork, settings: Any, report: Any) -> None:
    _restore(problem, first, last, work.best)
    report.converged = 1 if report.residual <= settings.tolerance else 0


@kernel
def solve(problem: ContactProblem, first: int, last: int, settings: Any, work: SweepWork, report: Any) -> None:
    """Solve the contacts first .. last - 1 from the impulses they hold, by plain sweeps.

    settings: SOLVER_SETTINGS record; report: SOLVER_REPORT record; work: see `make_work`. One unit of work is a sweep.
    """
    rho = _begin(problem, first, last, work, report)
    moments = has_moments(problem, first, last)
    while report.residual > settings.tolerance and report.sweeps_used < settings.sweeps:
        if moments:
            _advance_with_moments(problem, first, last, work, settings, report, rho)
        else:
            _advance(problem, first, last, work, settings, report, rho)
    _finish(problem, first, last, work, settings, report)


@kernel
def solve_nncg(problem: ContactProblem, first: int, last: int, settings: Any, work: SweepWork, report: Any) -> None:
    """As `solve`, by nonlinear conjugate gradients.

    The gradient is the change of a sweep, reversed. Where it grows from one sweep to the next the direction is dropped.
    """
    rho = _begin(problem, first, last, work, report)
    moments = has_moments(problem, first, last)
    equations = problem.equations
    before = 0.0
    while report.residual > settings.tolerance and report.sweeps_used < settings.sweeps:
        _save(problem, first, last, work.end)
        if moments:
            _advance_with_moments(problem, first, last, work, settings, report, rho)
        else:
            _advance(problem, first, last, work, settings, report, rho)
        square = 0.0
        for i in range(first, last):
            for k in range(3):
                square += (work.factors[i - first, UNIT] * (equations[i].impulse[k] - work.end[i - first, k])) ** 2
        beta = square / before if before > 0.0 else 0.0
        if beta > 1.0:
            beta = 0.0
        for i in range(first, last):
            r = equations[i].impulse
            u = equations[i].velocity
            end = work.end[i - first]
            direction = work.change[i - first]
            for k in range(3):
                step = beta * direction[k] if beta > 0.0 else 0.0
                direction[k] = step + r[k] - end[k]
                r[k] += step
                step = beta * direction[3 + k] if beta > 0.0 else 0.0
                direction[3 + k] = step + u[k] - end[3 + k]
                u[k] += step
        before = square
    _finish(problem, first, last, work, settings, report)


@inner
def _remember(problem: ContactProblem, first: int, last: int, work: SweepWork, slot: int) -> None:
    """Write where the last sweep ended and what it changed, and what both differ from the sweep before to the slot."""
    ends = work.ends[slot]
    changes = work.changes[slot]
    for i in range(first, last):
        equation = problem.equations[i]
        row = i - first
        for k in range(3):
            r = equation.impulse[k]
            u = equation.velocity[k]
            change = work.factors[row, UNIT] * (r - work.start[row, k])
            ends[row, k] = r - work.end[row, k]
            changes[row, k] = change - work.change[row, k]
            work.end[row, k] = r
            work.end[row, 3 + k] = u
            work.change[row, k] = change


@inner
def _correlate(work: SweepWork, contacts: int, columns: int, slot: int) -> None:
    """Bring the normal equations up to date after the slot was written; right side to share."""
    normal = work.normal[0]
    new = work.changes[slot]
    for c in range(columns):
        old = work.changes[c]
        product0 = 0.0  # three sums each, which do not wait for one another
        product1 = 0.0
        product2 = 0.0
        right0 = 0.0
        right1 = 0.0
        right2 = 0.0
        for row in range(contacts):
            x = old[row, 0]
            y = old[row, 1]
            z = old[row, 2]
            product0 += x * new[row, 0]
            product1 += y * new[row, 1]
            product2 += z * new[row, 2]
            right0 += x * work.change[row, 0]
            right1 += y * work.change[row, 1]
            right2 += z * work.change[row, 2]
        product = product0 + product1 + product2
        normal[c, slot] = product
        normal[slot, c] = product
        work.share[c] = right0 + right1 + right2


@inner
def _solve_shares(work: SweepWork, columns: int) -> bool:
    """Solve the normal equations in place by Cholesky's method; False where they are singular."""
    normal = work.normal[0]
    lower = work.normal[1]
    share = work.share
    for c in range(columns):
        for d in range(c + 1):
            value = normal[c, d]
            for k in range(d):
                value -= lower[c, k] * lower[d, k]
            if d < c:
                lower[c, d] = value / lower[d, d]
            else:
                value += RIDGE * normal[c, c]
                if not value > 0.0:
                    return False
                lower[c, c] = math.sqrt(value)
    for c in range(columns):
        for k in range(c):
            share[c] -= lower[c, k] * share[k]
        share[c] /= lower[c, c]
    for c in range(columns - 1, -1, -1):
        for k in range(c + 1, columns):
            share[c] -= lower[k, c] * share[k]
        share[c] /= lower[c, c]
    return True


@inner
def _combine(problem: ContactProblem, first: int, last: int, work: SweepWork, columns: int) -> None:
    """Move the impulses to the combination, and compute their velocities."""
    for i in range(first, last):
        r = problem.equations[i].impulse
        n = r[0]
        t1 = r[1]
        t2 = r[2]
        for c in range(columns):
            share = work.share[c]
            end = work.ends[c, i - first]
            n -= share * end[0]
            t1 -= share * end[1]
            t2 -= share * end[2]
        r[0] = n
        r[1] = t1
        r[2] = t2
    relative_velocity(problem, first, last)


@kernel
def solve_anderson(problem: ContactProblem, first: int, last: int, settings: Any, work: SweepWork, report: Any) -> None:
    """As `solve`, by Anderson's acceleration with the safeguard of this file."""
    rho = _begin(problem, first, last, work, report)
    moments = has_moments(problem, first, last)
    sweeps = 0  # since the memory was cleared
    combined = False
    before = math.inf
    while report.residual > settings.tolerance and report.sweeps_used < settings.sweeps:
        for i in range(first, last):
            for k in range(3):
                work.start[i - first, k] = problem.equations[i].impulse[k]
        if moments:
            error = _advance_with_moments(problem, first, last, work, settings, report, rho)
        else:
            error = _advance(problem, first, last, work, settings, report, rho)
        if combined and not error <= GROWTH * before:
            _restore(problem, first, last, work.end)
            combined = False
            sweeps = 1
            continue
        before = error
        slot = (sweeps + MEMORY - 1) % MEMORY
        _remember(problem, first, last, work, slot)
        columns = min(sweeps, MEMORY)
        sweeps += 1
        combined = False
        if columns > 0:
            _correlate(work, last - first, columns, slot)
            if _solve_shares(work, columns):
                _combine(problem, first, last, work, columns)
                combined = True
            else:
                sweeps = 0
    _finish(problem, first, last, work, settings, report)
