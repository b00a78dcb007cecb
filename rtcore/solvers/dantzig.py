"""Contacts without friction solved exactly in contact space, one after another: Dantzig's pivots as Baraff uses them.

The impulse of the contact that would penetrate most is raised until it does not; meanwhile those already pushing stay
at rest by changing theirs, and every event on the way (a push comes to 0, a contact comes to rest, the new one is at
rest) changes what is held. Complementarity of the contacts dealt with is kept throughout. The reference that others
are compared with; the warm start only serves as what to fall back on.
Source: Baraff 1994, section 4; Dantzig's algorithm in Cottle, Pang and Stone 1992, 4.2.
"""

from typing import NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.solvers import normal_rows
from rtcore.solvers.active_set import ActiveSet, append, make_active_set, remove
from rtcore.solvers.cholesky import solve as solve_factored
from rtcore.solvers.problem import ContactProblem

ROUNDING = 1e-12
"""Share of what all impulses do to the velocity of a contact that counts as no penetration."""
NO_CHANGE = 1e-12
"""Share of what all impulses do to the velocity of a contact below which together they do nothing to it."""
WAITING, APART, HELD, ASIDE = range(4)


@by_reference
class DantzigWork(NamedTuple):
    """Work memory of a solve."""

    matrix: np.ndarray
    """(rows, rows) A, symmetric, 1/kg."""
    free: np.ndarray
    """(rows,) velocities without impulses, m/s."""
    impulse: np.ndarray
    """(rows,) N s."""
    velocity: np.ndarray
    """(rows,) A impulse + free."""
    change: np.ndarray
    """(rows,) of the velocities, per unit of the impulse that is raised."""
    direction: np.ndarray
    """(rows,) of the impulses held, in the order of the set."""
    state: np.ndarray
    """(rows,) WAITING, APART, HELD or ASIDE: no impulses keep it from penetrating."""
    kept: np.ndarray
    """(rows,) the warm start."""
    held: ActiveSet


def make_dantzig_work(rows: int) -> DantzigWork:
    """Make the work memory for so many contacts."""
    return DantzigWork(
        matrix=np.zeros((rows, rows)),
        free=np.zeros(rows),
        impulse=np.zeros(rows),
        velocity=np.zeros(rows),
        change=np.zeros(rows),
        direction=np.zeros(rows),
        state=np.zeros(rows, np.int32),
        kept=np.zeros(rows),
        held=make_active_set(rows),
    )


def make_work(problem: ContactProblem) -> DantzigWork:
    """Make the work memory for a problem's tables."""
    return make_dantzig_work(len(problem.equations))


@inner
def _append(work: DantzigWork, i: int) -> bool:
    held = work.held
    n = held.used[0]
    for p in range(n):
        held.matrix[n, p] = work.matrix[i, held.members[p]]
    held.matrix[n, n] = work.matrix[i, i]
    return append(held, i)


@inner
def _release(work: DantzigWork, place: int) -> None:
    i = work.held.members[place]
    work.impulse[i] = 0.0
    work.state[i] = APART
    remove(work.held, place)


@inner
def _direct(work: DantzigWork, count: int, d: int) -> None:
    """Find how impulses held and all velocities change with the impulse of contact d.

    Whether its own velocity changes at all is known by the factor: it does not where d depends on those held.
    """
    held = work.held
    n = held.used[0]
    for p in range(n):
        work.direction[p] = -work.matrix[d, held.members[p]]
    solve_factored(held.factor, n, work.direction)
    for i in range(count):
        work.change[i] = work.matrix[d, i]
    for p in range(n):
        row = work.matrix[held.members[p]]
        for i in range(count):
            work.change[i] += row[i] * work.direction[p]
    if _append(work, d):
        held.used[0] = n
        work.change[d] = held.factor[n, n] ** 2
    else:
        work.change[d] = 0.0


@inner
def _approaches(work: DantzigWork, i: int, d: int) -> bool:
    """Does the velocity of a contact fall by more than rounding while the impulse of d is raised?"""
    if work.change[i] >= 0.0:
        return False
    most = abs(work.matrix[d, i])
    for p in range(work.held.used[0]):
        most += abs(work.matrix[i, work.held.members[p]] * work.direction[p])
    return work.change[i] < -NO_CHANGE * most


@inner
def _raise(work: DantzigWork, count: int, d: int) -> None:
    """Raise the impulse of contact d up to the next event, and do what the event asks."""
    held = work.held
    _direct(work, count, d)
    n = held.used[0]
    step = np.inf
    release = -1
    event = -1
    if work.change[d] > 0.0:
        step = -work.velocity[d] / work.change[d]
        event = d
    for p in range(n):
        if work.direction[p] < 0.0:
            until = -work.impulse[held.members[p]] / work.direction[p]
            if until < step:
                step = until
                release = p
                event = -1
    for i in range(count):
        if work.state[i] == APART and _approaches(work, i, d):
            until = max(0.0, -work.velocity[i] / work.change[i])
            if until < step:
                step = until
                release = -1
                event = i
    if release < 0 and event < 0:
        work.state[d] = ASIDE
        return
    work.impulse[d] += step
    for p in range(n):
        i = held.members[p]
        work.impulse[i] = max(0.0, work.impulse[i] + step * work.direction[p])
    for i in range(count):
        work.velocity[i] += step * work.change[i]
    if release >= 0:
        _release(work, release)
    else:
        work.velocity[event] = 0.0
        # One that depends on those held is at rest with them, without an impulse of its own.
        work.state[event] = HELD if _append(work, event) else APART


@inner
def _velocity(work: DantzigWork, count: int, i: int) -> float:
    """Return the velocity of a contact from the impulses, without what rounding all steps have left."""
    velocity = work.free[i]
    for j in range(count):
        velocity += work.matrix[i, j] * work.impulse[j]
    return velocity


@inner
def _polish(work: DantzigWork, count: int) -> None:
    """Free the impulses held of the rounding of all steps, where none would pull."""
    held = work.held
    n = held.used[0]
    for p in range(n):
        work.direction[p] = -_velocity(work, count, held.members[p])
    solve_factored(held.factor, n, work.direction)
    for p in range(n):
        if work.impulse[held.members[p]] + work.direction[p] < 0.0:
            return
    for p in range(n):
        work.impulse[held.members[p]] += work.direction[p]


@inner
def _next(work: DantzigWork, count: int, limit: float) -> int:
    """Return the contact not dealt with that penetrates most, by the root of its diagonal element; -1: none does."""
    while True:
        d = -1
        worst = 0.0
        for i in range(count):
            if work.state[i] == WAITING and work.velocity[i] < -limit:
                square = work.velocity[i] * work.velocity[i] / work.matrix[i, i]
                if square > worst:
                    worst = square
                    d = i
        if d < 0:
            return -1
        work.velocity[d] = _velocity(work, count, d)
        most = abs(work.free[d])
        for j in range(count):
            most += abs(work.matrix[d, j] * work.impulse[j])
        if work.velocity[d] < -max(ROUNDING * most, limit):
            return d
        work.state[d] = APART


@kernel
def pivot(work: DantzigWork, count: int, steps: int, tolerance: float) -> int:
    """Solve impulse >= 0, A impulse + free >= 0, orthogonal, from the work's matrix and free; returns the steps used.

    A symmetric and positive semi-definite; tolerance: penetration that needs no impulse, as a share of the largest free
    velocity. Impulses are never below 0, however few the steps.
    """
    speed = 0.0
    for i in range(count):
        work.impulse[i] = 0.0
        work.velocity[i] = work.free[i]
        speed = max(speed, abs(work.free[i]))
        work.state[i] = WAITING if work.matrix[i, i] > 0.0 else ASIDE
    work.held.used[0] = 0
    used = 0
    while True:
        d = _next(work, count, tolerance * speed)
        if d < 0:
            break
        while work.state[d] == WAITING:
            if used >= steps:
                return used
            _raise(work, count, d)
            used += 1
    _polish(work, count)
    return used


@kernel
def solve(
    problem: ContactProblem, first: int, last: int, settings: np.void, work: DantzigWork, report: np.void
) -> None:
    """Solve the normal rows of contacts first..last-1, friction left out; a unit of work is one pivot, a pass over all.

    Until the last contact is dealt with, those after it do not push; where that is no better, the warm start stays.
    """
    normal_rows.start(problem, first, last, work.kept, report)
    if report.start_residual <= settings.tolerance:
        normal_rows.finish(problem, first, last, settings, work.kept, work.kept, 0, report)
        return
    normal_rows.normal_matrix(problem, first, last, work.matrix, work.free)
    used = pivot(work, last - first, settings.sweeps, 0.0)
    normal_rows.finish(problem, first, last, settings, work.kept, work.impulse, used, report)
