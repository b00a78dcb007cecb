"""Newton's method on Coulomb's law itself, in contact space: quadratic from near the answer, lost far from it.

With z = r - u / d, d the contact's own W by the diagonal, an answer is a root of

    open (z_n <= 0)          r = 0
    holds (|z_t| <= mu z_n)  u = 0
    slides                   u_n = 0,   r_t = mu r_n z_t / |z_t|,

and a round is a step of Newton's on the rows of the case that each contact is in. Nothing is lagged: where contacts
slide, methods that take the slip from the step before gain a constant factor per step, a round here squares the error.
Which case a contact is in is only known near the answer; a round from elsewhere may end anywhere, so that rounds stop
as soon as they lead away, and the best answer met is kept. So they are what other methods end with, and what is tried
first where little has changed. Contacts that hold one body together more often than needed make the equations
singular; a compliance of SOFT of the diagonal, felt only while impulses still change, lets them have a solution.
A round factorises a dense matrix: for few contacts. There must be no rows of moments.
Source: Alart and Curnier 1991; the right side of what slides Jean and Moreau 1987.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.solvers import best
from rtcore.solvers.problem import ContactProblem, has_moments, relative_velocity
from rtcore.spatial import put_vector

MOST = 16
"""Contacts that are not open with which a round is made in a tick."""
ROUNDS = 8
"""Most rounds in a row."""
FAR = 1000.0
"""Times the best residual from which on rounds have lost their way: when contacts change their case it may rise."""
SOFT = 1e-6
"""Compliance of contacts that hold while impulses still change, as a share of their diagonal."""
CHEAP = 64
"""Square of the number of contacts whose factorisation takes as long as a unit of work of its callers."""


@by_reference
class SemismoothWork(NamedTuple):
    """Work memory of a round, rows three per contact that is not open, normal first."""

    system: np.ndarray
    """(rows, rows) derivatives, then their factors."""
    right: np.ndarray
    """(rows,) right side, then the change of the impulses."""
    places: np.ndarray
    """(contacts,) places among those that are not open, from the first contact of the island on; -1: open."""
    best: np.ndarray
    """(contacts, 3) impulses of the best answer of `solve`."""


def make_work(problem: ContactProblem, most: int | None = None) -> SemismoothWork:
    """Make the work memory for islands of the problem with up to `most` contacts that are not open, all by default."""
    contacts = len(problem.equations)
    rows = 3 * (contacts if most is None else min(most, contacts))
    return SemismoothWork(
        system=np.zeros((rows, rows)),
        right=np.zeros(rows),
        places=np.zeros(contacts, np.int32),
        best=np.zeros((contacts, 3)),
    )


@inner
def _place(problem: ContactProblem, first: int, last: int, work: SemismoothWork) -> int:
    """Give the contacts that are not open their places: how many."""
    count = 0
    for i in range(first, last):
        equation = problem.equations[i]
        own = problem.blocks[equation.diagonal].values
        work.places[i - first] = -1
        if equation.impulse[0] - equation.velocity[0] / own[0, 0] > 0.0:
            work.places[i - first] = count
            count += 1
    return count


@kernel
def fits(problem: ContactProblem, first: int, last: int, work: SemismoothWork) -> bool:
    """Is there room for those of the contacts first .. last - 1 that are not open, by what they hold?"""
    return 3 * _place(problem, first, last, work) <= len(work.system)


@inner
def _write(problem: ContactProblem, first: int, i: int, work: SemismoothWork) -> None:
    """Write the rows of contact i, which is not open, each divided by its diagonal of W."""
    equation = problem.equations[i]
    r = equation.impulse
    u = equation.velocity
    mu = equation.friction
    own = problem.blocks[equation.diagonal].values
    bear = 1.0 / own[0, 0]
    side = 2.0 / (own[1, 1] + own[2, 2])
    z1 = r[1] - side * u[1]
    z2 = r[2] - side * u[2]
    z = math.sqrt(z1 * z1 + z2 * z2)
    holds = z <= mu * (r[0] - bear * u[0])
    x = z1 / z if z > 0.0 else 0.0
    y = z2 / z if z > 0.0 else 0.0
    # What slides turns its friction with its slip: the share `turn` of the part across it.
    turn = min(mu * max(r[0], 0.0) / z, 1.0) if z > 0.0 else 0.0
    t11 = 1.0 if holds else turn * y * y
    t12 = 0.0 if holds else -turn * x * y
    t22 = 1.0 if holds else turn * x * x
    row = 3 * work.places[i - first]
    h = work.system
    for k in range(equation.block_first, equation.block_first + equation.block_count):
        block = problem.blocks[k]
        place = work.places[block.column - first]
        if place < 0:
            continue
        w = block.values
        for m in range(3):
            h[row, 3 * place + m] = bear * w[0, m]
            h[row + 1, 3 * place + m] = side * (t11 * w[1, m] + t12 * w[2, m])
            h[row + 2, 3 * place + m] = side * (t12 * w[1, m] + t22 * w[2, m])
    h[row, row] += SOFT
    work.right[row] = -bear * u[0]
    if holds:
        h[row + 1, row + 1] += SOFT
        h[row + 2, row + 2] += SOFT
        work.right[row + 1] = -side * u[1]
        work.right[row + 2] = -side * u[2]
        return
    h[row + 1, row] -= mu * x
    h[row + 2, row] -= mu * y
    h[row + 1, row + 1] += 1.0 - t11
    h[row + 1, row + 2] -= t12
    h[row + 2, row + 1] -= t12
    h[row + 2, row + 2] += 1.0 - t22
    work.right[row + 1] = mu * r[0] * x - r[1]
    work.right[row + 2] = mu * r[0] * y - r[2]


@kernel
def eliminate(a: np.ndarray, n: int, x: np.ndarray) -> bool:
    """Solve a x = x by Gauss' elimination with row pivots, a (n, n) is lost; False, and x lost, where a is singular."""
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if not abs(a[pivot, k]) > 0.0:
            return False
        if pivot != k:
            for j in range(k, n):
                a[pivot, j], a[k, j] = a[k, j], a[pivot, j]
            x[pivot], x[k] = x[k], x[pivot]
        for i in range(k + 1, n):
            share = a[i, k] / a[k, k]
            if share != 0.0:
                for j in range(k + 1, n):
                    a[i, j] -= share * a[k, j]
                x[i] -= share * x[k]
    for k in range(n - 1, -1, -1):
        value = x[k]
        for j in range(k + 1, n):
            value -= a[k, j] * x[j]
        x[k] = value / a[k, k]
    return True


@inner
def _round(problem: ContactProblem, first: int, last: int, work: SemismoothWork, count: int) -> bool:
    """Change the impulses by a step of Newton's, back into their cones; False where there is none."""
    for i in range(first, last):
        if work.places[i - first] < 0:
            put_vector(problem.equations[i].impulse, (0.0, 0.0, 0.0))
    relative_velocity(problem, first, last)
    for i in range(3 * count):
        for j in range(3 * count):
            work.system[i, j] = 0.0
    for i in range(first, last):
        if work.places[i - first] >= 0:
            _write(problem, first, i, work)
    if not eliminate(work.system, 3 * count, work.right):
        return False
    for i in range(first, last):
        row = 3 * work.places[i - first]
        if row < 0:
            continue
        r = problem.equations[i].impulse
        n = max(r[0] + work.right[row], 0.0)
        t1 = r[1] + work.right[row + 1]
        t2 = r[2] + work.right[row + 2]
        limit = problem.equations[i].friction * n
        t = math.sqrt(t1 * t1 + t2 * t2)
        share = 1.0 if t <= limit else limit / t
        r[0] = n
        r[1] = share * t1
        r[2] = share * t2
    relative_velocity(problem, first, last)
    return True


@kernel
def improve(
    problem: ContactProblem,
    first: int,
    last: int,
    settings: Any,
    rho: float,
    work: SemismoothWork,
    kept: np.ndarray,
    report: Any,
) -> None:
    """Make rounds from the best answer so far, as long as they lead on.

    settings: SOLVER_SETTINGS; rho: see `residual`; kept: (contacts, 3) the impulses of that answer, which the contacts
    hold too; report: SOLVER_REPORT with its residual. All three go on, and so do the units used: a round of n contacts
    that are not open counts as 1 + n^2 / CHEAP.
    """
    astray = False
    for _ in range(ROUNDS):
        if not report.residual > settings.tolerance:
            break
        count = _place(problem, first, last, work)
        units = 1 + count * count // CHEAP
        if 3 * count > len(work.system) or report.sweeps_used + units > settings.sweeps:
            break
        report.sweeps_used += units
        if not _round(problem, first, last, work, count):
            break
        error = best.judge(problem, first, last, rho)
        if error < report.residual:
            report.residual = error
            best.keep(problem, first, last, kept)
            astray = False
        elif astray or not error <= FAR * report.residual:
            break
        else:
            astray = True
    best.give(problem, first, last, kept)


@kernel
def solve(problem: ContactProblem, first: int, last: int, settings: Any, work: SemismoothWork, report: Any) -> None:
    """Solve the contacts first .. last - 1, an island, from the impulses they hold; W must be assembled.

    settings: SOLVER_SETTINGS record; report: SOLVER_REPORT record; work: see `make_work`. With rows of moments the warm
    start is the answer.
    """
    rho = best.start(problem, first, last, report)
    report.residual = report.start_residual
    report.sweeps_used = 0
    if not has_moments(problem, first, last):
        best.keep(problem, first, last, work.best)
        improve(problem, first, last, settings, rho, work, work.best, report)
    report.converged = 1 if report.residual <= settings.tolerance else 0
