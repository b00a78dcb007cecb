"""Gauss-Seidel by projection instead of an exact local solve: what game engines do, and two forms with the law right.

`solve` visits row by row as engines do: the normal is brought to rest, held at no pull, then either tangent by its own
stiffness, and the two are cut to the disc of mu times the normal impulse just found. Where a contact slips and its
tangents differ in stiffness, this settles on friction that does not oppose the slip, whatever the number of sweeps.

`solve_split` steps both tangents by the same stiffness, so that what it settles on is a solution.

`solve_de_saxce` takes the three rows of a contact in one step along -(u + mu |u_t| n) and projects onto the friction
cone; what it settles on is a solution too.

None is used in the tick: they are what its solver is compared with.
Source: Moreau and Jean's non-smooth Gauss-Seidel (Jourdan 1998), its projection variants as in Siconos (Acary et al.
2018, nsgs with one projection on the cone); Catto 2005 for the rows of the engines.
"""

import math
from typing import NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.solvers import best
from rtcore.solvers.problem import ContactProblem, project_cone, relative_velocity, residual

REFRESH = 64
"""Sweeps after which the velocities, which every change of an impulse updates, are made anew."""
ROWS, SPLIT, CONE = range(3)


@by_reference
class ProjectedWork(NamedTuple):
    """Work memory of a solve."""

    best: np.ndarray
    """(contacts, 3) best impulses met."""
    step: np.ndarray
    """(contacts,) impulse per velocity of a projected step, kg."""


def make_work(problem: ContactProblem) -> ProjectedWork:
    """Make the work memory for a problem's tables."""
    contacts = len(problem.equations)
    return ProjectedWork(np.zeros((contacts, 3)), np.zeros(contacts))


@inner
def _step(problem: ContactProblem, i: int) -> float:
    """Return 1 / a bound of the largest eigenvalue of a contact's own block (rows' sums, Frobenius); 0 for no block."""
    own = problem.blocks[problem.equations[i].diagonal].values
    square = 0.0
    largest = 0.0
    for k in range(3):
        row = 0.0
        for m in range(3):
            row += abs(own[k, m])
            square += own[k, m] * own[k, m]
        largest = max(largest, row)
    bound = min(largest, math.sqrt(square))
    return 1.0 / bound if bound > 0.0 else 0.0


@inner
def _change(problem: ContactProblem, i: int, n: float, t1: float, t2: float) -> None:
    """Set a contact's impulse and update the velocities; its row of the symmetric operator serves as the column."""
    equation = problem.equations[i]
    dn = n - equation.impulse[0]
    d1 = t1 - equation.impulse[1]
    d2 = t2 - equation.impulse[2]
    if dn == 0.0 and d1 == 0.0 and d2 == 0.0:
        return
    equation.impulse[0] = n
    equation.impulse[1] = t1
    equation.impulse[2] = t2
    for b in range(equation.block_first, equation.block_first + equation.block_count):
        w = problem.blocks[b].values
        other = problem.equations[problem.blocks[b].column]
        for k in range(3):
            other.velocity[k] += w[0, k] * dn + w[1, k] * d1 + w[2, k] * d2


@inner
def _cut(t1: float, t2: float, limit: float) -> tuple[float, float]:
    """Shorten a tangential impulse to `limit`."""
    length = math.sqrt(t1 * t1 + t2 * t2)
    if length <= limit:
        return t1, t2
    return limit / length * t1, limit / length * t2


@inner
def _rows(problem: ContactProblem, i: int) -> tuple[float, float, float]:
    """Return a contact's impulse with each row in turn brought to rest, the tangents cut to the disc at the end."""
    equation = problem.equations[i]
    w = problem.blocks[equation.diagonal].values
    u = equation.velocity
    n = equation.impulse[0]
    t1 = equation.impulse[1]
    t2 = equation.impulse[2]
    if w[0, 0] > 0.0:
        n = max(0.0, n - u[0] / w[0, 0])
    dn = n - equation.impulse[0]
    if w[1, 1] > 0.0:
        t1 -= (u[1] + w[1, 0] * dn) / w[1, 1]
    if w[2, 2] > 0.0:
        t2 -= (u[2] + w[2, 0] * dn + w[2, 1] * (t1 - equation.impulse[1])) / w[2, 2]
    t1, t2 = _cut(t1, t2, equation.friction * n)
    return n, t1, t2


@inner
def _split(problem: ContactProblem, i: int) -> tuple[float, float, float]:
    """Return a contact's impulse with its normal brought to rest, then both tangents stepped by their stiffest way."""
    equation = problem.equations[i]
    w = problem.blocks[equation.diagonal].values
    u = equation.velocity
    n = equation.impulse[0]
    t1 = equation.impulse[1]
    t2 = equation.impulse[2]
    if w[0, 0] > 0.0:
        n = max(0.0, n - u[0] / w[0, 0])
    dn = n - equation.impulse[0]
    half = 0.5 * (w[1, 1] - w[2, 2])
    stiffest = 0.5 * (w[1, 1] + w[2, 2]) + math.sqrt(half * half + w[1, 2] * w[1, 2])
    if stiffest > 0.0:
        t1 -= (u[1] + w[1, 0] * dn) / stiffest
        t2 -= (u[2] + w[2, 0] * dn) / stiffest
    t1, t2 = _cut(t1, t2, equation.friction * n)
    return n, t1, t2


@inner
def _projection(problem: ContactProblem, i: int, step: float) -> tuple[float, float, float]:
    """Return a contact's impulse after one projected step with de Saxce's term."""
    equation = problem.equations[i]
    u = equation.velocity
    r = equation.impulse
    lift = equation.friction * math.sqrt(u[1] * u[1] + u[2] * u[2])
    return project_cone(r[0] - step * (u[0] + lift), r[1] - step * u[1], r[2] - step * u[2], equation.friction)


@inner
def _run(
    problem: ContactProblem,
    first: int,
    last: int,
    settings: np.void,
    work: ProjectedWork,
    report: np.void,
    way: int,
) -> None:
    for i in range(first, last):
        work.step[i] = _step(problem, i)
    rho = best.start(problem, first, last, report)
    least = report.start_residual
    best.keep(problem, first, last, work.best)
    sweeps = 0
    while sweeps < settings.sweeps and least > settings.tolerance:
        sweeps += 1
        for i in range(first, last):
            if way == ROWS:
                n, t1, t2 = _rows(problem, i)
            elif way == SPLIT:
                n, t1, t2 = _split(problem, i)
            else:
                n, t1, t2 = _projection(problem, i, work.step[i])
            _change(problem, i, n, t1, t2)
        if sweeps % REFRESH == 0:
            relative_velocity(problem, first, last)
        now = residual(problem, first, last, rho)
        if now < least:
            least = now
            best.keep(problem, first, last, work.best)
    best.finish(problem, first, last, settings, rho, work.best, sweeps, report)


@kernel
def solve(
    problem: ContactProblem, first: int, last: int, settings: np.void, work: ProjectedWork, report: np.void
) -> None:
    """Solve contacts first..last-1 row by row as engines do: normal held at 0, tangents cut to the disc of mu r_n.

    The equations' impulse and velocity are those of the best iterate by the natural-map residual; a start outside the
    cones is projected onto them first.
    """
    _run(problem, first, last, settings, work, report, ROWS)


@kernel
def solve_split(
    problem: ContactProblem, first: int, last: int, settings: np.void, work: ProjectedWork, report: np.void
) -> None:
    """Solve contacts first..last-1, of each the normal, then both tangents with one stiffness.

    The equations' impulse and velocity are those of the best iterate by the natural-map residual; a start outside the
    cones is projected onto them first.
    """
    _run(problem, first, last, settings, work, report, SPLIT)


@kernel
def solve_de_saxce(
    problem: ContactProblem, first: int, last: int, settings: np.void, work: ProjectedWork, report: np.void
) -> None:
    """Solve contacts first..last-1 with one projection onto the cone per visit, de Saxce's term included.

    The equations' impulse and velocity are those of the best iterate by the natural-map residual; a start outside the
    cones is projected onto them first.
    """
    _run(problem, first, last, settings, work, report, CONE)
