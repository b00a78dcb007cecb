"""Contacts in classes, force imposed or motion imposed, that change class until all agree: Faure's global solver.

Each pass solves for the impulses that bring the rows with imposed motion to rest, given the imposed impulses of all
others, then looks at every contact at once: one apart that penetrates is to rest, one at rest that pulls comes apart,
and, with friction, one whose friction leaves the cone slides and one whose slip turns round sticks; one that closes
rests or slides as it would alone.

What is put right of the original: a sliding contact sticks again where its friction would push it along; friction is
made anew in every pass, against the slip, from the normal impulse just found; passes that bring no better count of
wrong contacts are followed by ones that change the last wrong contact alone (without friction that ends; with friction
the scheme may still approach and not arrive, or find no answer where Coulomb's law has one); rows that depend on one
another are told apart by a trace of compliance, of which the answer is freed by steps of the proximal point method.
The best iterate by the natural-map residual is kept.
Source: Faure 1997, 6.2.2-6.2.4; for the frictionless form block principal pivoting with Murty's rule, Júdice and Pires
1994; Rockafellar 1976 for the proximal point.
"""

import math
from typing import NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.solvers import normal_rows
from rtcore.solvers.cholesky import factor
from rtcore.solvers.cholesky import solve as solve_factored
from rtcore.solvers.problem import ContactProblem, project_cone, relative_velocity, residual, scale

TRACE = 1e-7
"""Compliance that tells dependent rows apart, as a share of the mean of the operator's diagonal."""
PATIENCE = 20
"""Passes without fewer wrong contacts than ever before, after which contacts change class one by one."""
WRONG = 1e-12
"""Share of the largest velocity or impulse met below which a wrong sign is rounding."""
APART, RESTS, SLIDES = range(3)


@by_reference
class ImposedWork(NamedTuple):
    """Work memory of a solve."""

    matrix: np.ndarray
    """(rows, rows) the operator, 1/kg."""
    factor: np.ndarray
    """(rows, rows) of the rows with imposed motion, and its factor."""
    rows: np.ndarray
    """(rows,) those rows."""
    right: np.ndarray
    """(rows,) right side, then impulses."""
    free: np.ndarray
    """(rows,) velocities without impulses, m/s."""
    impulse: np.ndarray
    """(rows,) N s."""
    velocity: np.ndarray
    """(rows,) m/s."""
    centre: np.ndarray
    """(rows,) impulses about which the trace of compliance acts."""
    state: np.ndarray
    """(rows,) APART, RESTS or SLIDES: of each contact, or of each row where `iterate` is given rows of its own."""
    best: np.ndarray
    """(rows,) the best impulses met."""
    kept: np.ndarray
    """(contacts,) normal impulses of the warm start."""


def make_work(problem: ContactProblem) -> ImposedWork:
    """Make the work memory for a problem's tables."""
    contacts = len(problem.equations)
    rows = 3 * contacts
    return ImposedWork(
        matrix=np.zeros((rows, rows)),
        factor=np.zeros((rows, rows)),
        rows=np.zeros(rows, np.int32),
        right=np.zeros(rows),
        free=np.zeros(rows),
        impulse=np.zeros(rows),
        velocity=np.zeros(rows),
        centre=np.zeros(rows),
        state=np.zeros(rows, np.int32),
        best=np.zeros(rows),
        kept=np.zeros(contacts),
    )


@inner
def _resolve(work: ImposedWork, count: int, imposed: int, trace: float) -> None:
    """Find the impulses that bring the first `imposed` of work.rows to rest, the impulses of the others as they are."""
    for p in range(imposed):
        i = work.rows[p]
        work.impulse[i] = 0.0
    for p in range(imposed):
        i = work.rows[p]
        value = trace * work.centre[i] - work.free[i]
        for k in range(count):
            value -= work.matrix[i, k] * work.impulse[k]
        work.right[p] = value
        for q in range(p):
            work.factor[p, q] = work.matrix[i, work.rows[q]]
        work.factor[p, p] = work.matrix[i, i] + trace
    factor(work.factor, imposed)
    solve_factored(work.factor, imposed, work.right)
    for p in range(imposed):
        work.impulse[work.rows[p]] = work.right[p]


@inner
def _velocities(work: ImposedWork, count: int) -> None:
    for i in range(count):
        value = work.free[i]
        for k in range(count):
            value += work.matrix[i, k] * work.impulse[k]
        work.velocity[i] = value


@inner
def _trace(work: ImposedWork, count: int) -> float:
    total = 0.0
    for i in range(count):
        total += work.matrix[i, i]
    return TRACE * total / count if count > 0 else 0.0


@inner
def _keep_pushes(work: ImposedWork, count: int, rho: float, least: float) -> float:
    """Keep the impulses, pulls left out, where they are the best met; returns the least error."""
    for i in range(count):
        work.right[i] = max(0.0, work.impulse[i])
    error = 0.0
    for i in range(count):
        value = work.free[i]
        for k in range(count):
            value += work.matrix[i, k] * work.right[k]
        off = min(work.right[i], rho * value)
        error += off * off
    if error < least:
        for i in range(count):
            work.best[i] = work.right[i]
    return min(error, least)


@inner
def _exchange(work: ImposedWork, count: int, trace: float, single: bool) -> int:
    """Change the class of all wrong contacts, or of the last one alone; returns how many were wrong."""
    speed = 0.0
    push = 0.0
    for i in range(count):
        speed = max(speed, abs(work.free[i]))
        push = max(push, abs(work.impulse[i]))
    wrong = 0
    for i in range(count - 1, -1, -1):
        # With the trace of compliance, of which complementarity is asked until the centre has come to the impulses.
        lacking = work.velocity[i] + trace * (work.impulse[i] - work.centre[i])
        if work.state[i] == APART:
            bad = lacking < -WRONG * speed and work.matrix[i, i] > 0.0
        else:
            bad = work.impulse[i] < -WRONG * push
        if bad:
            wrong += 1
            if not single or wrong == 1:
                work.state[i] = RESTS if work.state[i] == APART else APART
    return wrong


@kernel
def iterate(work: ImposedWork, count: int, passes: int, rho: float, tolerance: float) -> int:
    """Solve impulse >= 0, A impulse + free >= 0, orthogonal, of the work's matrix and free; returns the passes used.

    Starts with at rest what the work's impulses push. The answer is in `best`: never below 0, the best met by the norm
    of min(impulse, rho velocity), at which, times the norm of the impulses or of rho free, it stops.
    """
    trace = _trace(work, count)
    free = 0.0
    for i in range(count):
        work.state[i] = RESTS if work.impulse[i] > 0.0 else APART
        work.centre[i] = work.impulse[i]
        free += (rho * work.free[i]) ** 2
    least = _keep_pushes(work, count, rho, np.inf)
    fewest = count + 1
    waited = 0
    used = 0
    while used < passes:
        imposed = 0
        for i in range(count):
            if work.state[i] == APART:
                work.impulse[i] = 0.0
            else:
                work.rows[imposed] = i
                imposed += 1
        _resolve(work, count, imposed, trace)
        _velocities(work, count)
        used += 1
        before = least
        least = _keep_pushes(work, count, rho, least)
        if least <= tolerance * tolerance * free:
            break
        wrong = _exchange(work, count, trace, waited > PATIENCE)
        if wrong == 0:
            if least >= before:
                break
            for i in range(count):
                work.centre[i] = max(0.0, work.impulse[i])
            fewest = count + 1
            waited = 0
        elif wrong < fewest:
            fewest = wrong
            waited = 0
        else:
            waited += 1
    return used


@kernel
def solve(
    problem: ContactProblem, first: int, last: int, settings: np.void, work: ImposedWork, report: np.void
) -> None:
    """Solve the normal rows of contacts first..last-1, friction left out; a unit of work is one pass, one factor."""
    normal_rows.start(problem, first, last, work.kept, report)
    if report.start_residual <= settings.tolerance:
        normal_rows.finish(problem, first, last, settings, work.kept, work.kept, 0, report)
        return
    count = last - first
    normal_rows.normal_matrix(problem, first, last, work.matrix, work.free)
    for i in range(count):
        work.impulse[i] = work.kept[i]
    used = iterate(work, count, settings.sweeps, scale(problem, first, last), 0.1 * settings.tolerance)
    normal_rows.finish(problem, first, last, settings, work.kept, work.best, used, report)


@inner
def _gather(problem: ContactProblem, first: int, last: int, work: ImposedWork) -> None:
    """Write all rows of contacts first..last-1: the operator, q and the impulses, and the classes these tell."""
    count = last - first
    for i in range(count):
        equation = problem.equations[first + i]
        work.state[i] = RESTS if equation.impulse[0] > 0.0 else APART
        for k in range(3):
            work.free[3 * i + k] = equation.free[k]
            work.impulse[3 * i + k] = equation.impulse[k]
            work.best[3 * i + k] = equation.impulse[k]
            for m in range(3 * count):
                work.matrix[3 * i + k, m] = 0.0
        for b in range(equation.block_first, equation.block_first + equation.block_count):
            block = problem.blocks[b]
            if first <= block.column < last:
                at = 3 * (block.column - first)
                for k in range(3):
                    for m in range(3):
                        work.matrix[3 * i + k, at + m] = block.values[k, m]


@inner
def _impose(work: ImposedWork, count: int) -> int:
    """List the rows with imposed motion: all of contacts at rest, normals of those that slide; returns how many."""
    imposed = 0
    for i in range(count):
        if work.state[i] == APART:
            for k in range(3):
                work.impulse[3 * i + k] = 0.0
            continue
        for k in range(3 if work.state[i] == RESTS else 1):
            work.rows[imposed] = 3 * i + k
            imposed += 1
    return imposed


@inner
def _reclassify(problem: ContactProblem, first: int, i: int, work: ImposedWork) -> None:
    """Look at a contact after a pass: its class, and the friction imposed on it where it slides.

    Friction of one that slides goes on from what it was, against the slip, cut to mu times the normal impulse: where
    that is not reached it would push along, and the contact sticks. One that closes is taken as if alone.
    """
    mu = problem.equations[first + i].friction
    at = 3 * i
    n = work.impulse[at]
    x = work.impulse[at + 1]
    y = work.impulse[at + 2]
    if work.state[i] == APART and work.velocity[at] < 0.0 and work.matrix[at, at] > 0.0:
        n = -work.velocity[at] / work.matrix[at, at]
    if n <= 0.0:
        work.state[i] = APART
        return
    if work.state[i] != RESTS:
        stiffest = max(work.matrix[at + 1, at + 1], work.matrix[at + 2, at + 2])
        if stiffest > 0.0:
            x -= work.velocity[at + 1] / stiffest
            y -= work.velocity[at + 2] / stiffest
    length = math.sqrt(x * x + y * y)
    if length <= mu * n:
        work.state[i] = RESTS
        return
    work.state[i] = SLIDES
    work.impulse[at + 1] = mu * n / length * x
    work.impulse[at + 2] = mu * n / length * y


@inner
def _offer(problem: ContactProblem, first: int, last: int, work: ImposedWork, rho: float, least: float) -> float:
    """Cut the impulses to their cones, and keep them where they are the best met; returns the least residual."""
    for i in range(first, last):
        equation = problem.equations[i]
        at = 3 * (i - first)
        n = max(0.0, work.impulse[at])
        length = math.sqrt(work.impulse[at + 1] ** 2 + work.impulse[at + 2] ** 2)
        share = 1.0 if length <= equation.friction * n else equation.friction * n / length
        equation.impulse[0] = n
        equation.impulse[1] = share * work.impulse[at + 1]
        equation.impulse[2] = share * work.impulse[at + 2]
    relative_velocity(problem, first, last)
    now = residual(problem, first, last, rho)
    if not now < least:
        return least
    for i in range(first, last):
        for k in range(3):
            work.best[3 * (i - first) + k] = problem.equations[i].impulse[k]
    return now


@kernel
def solve_friction(
    problem: ContactProblem, first: int, last: int, settings: np.void, work: ImposedWork, report: np.void
) -> None:
    """Solve contacts first..last-1 with friction; a unit of work is one pass, one factor.

    The equations' impulse and velocity are those of the best iterate by the natural-map residual; a start outside the
    cones is projected onto them first.
    """
    count = last - first
    for i in range(first, last):
        r = problem.equations[i].impulse
        r[0], r[1], r[2] = project_cone(r[0], r[1], r[2], problem.equations[i].friction)
    relative_velocity(problem, first, last)
    rho = scale(problem, first, last)
    least = residual(problem, first, last, rho)
    report.start_residual = least
    used = 0
    if least > settings.tolerance:
        _gather(problem, first, last, work)
    trace = _trace(work, 3 * count)
    while used < settings.sweeps and least > settings.tolerance:
        _velocities(work, 3 * count)
        for i in range(count):
            _reclassify(problem, first, i, work)
        for i in range(3 * count):
            work.centre[i] = work.impulse[i]
        _resolve(work, 3 * count, _impose(work, count), trace)
        least = _offer(problem, first, last, work, rho, least)
        used += 1
    if used > 0:
        for i in range(first, last):
            for k in range(3):
                problem.equations[i].impulse[k] = work.best[3 * (i - first) + k]
        relative_velocity(problem, first, last)
    report.residual = residual(problem, first, last, rho)
    report.sweeps_used = used
    report.converged = 1 if report.residual <= settings.tolerance else 0
