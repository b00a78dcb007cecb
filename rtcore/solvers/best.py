"""What the solvers of contacts with friction share: how they start, and that they give the best answer met.

Rows of `best`, (contacts, 3) impulses in N s, count from the first contact of the island.
"""

import math

import numpy as np

from rtcore.kernels import inner, kernel
from rtcore.solvers.problem import ContactProblem, project_cone, project_moments, relative_velocity, residual, scale

GAIN = 1e-6
"""Energy that an answer may seem to add, as a share of what its impulses exchange: rounding."""


@kernel
def start(problem: ContactProblem, first: int, last: int, report: np.void) -> float:
    """Put the warm start of contacts first .. last - 1 into their cones, report its residual; the rho of residuals."""
    for i in range(first, last):
        equation = problem.equations[i]
        r = equation.impulse
        if equation.parent < 0:
            r[0], r[1], r[2] = project_cone(r[0], r[1], r[2], equation.friction)
        else:
            limit = problem.equations[equation.parent].impulse[0]
            r[0], r[1], r[2] = project_moments(r[0], r[1], r[2], limit * equation.friction, limit * equation.rolling)
    relative_velocity(problem, first, last)
    rho = scale(problem, first, last)
    report.start_residual = residual(problem, first, last, rho)
    return rho


@kernel
def keep(problem: ContactProblem, first: int, last: int, best: np.ndarray) -> None:
    """Write the impulses down as the best ones."""
    for i in range(first, last):
        for k in range(3):
            best[i - first, k] = problem.equations[i].impulse[k]


@inner
def give(problem: ContactProblem, first: int, last: int, best: np.ndarray) -> None:
    """Take the best impulses up again, and their velocities."""
    for i in range(first, last):
        for k in range(3):
            problem.equations[i].impulse[k] = best[i - first, k]
    relative_velocity(problem, first, last)


@kernel
def finish(
    problem: ContactProblem,
    first: int,
    last: int,
    settings: np.void,
    rho: float,
    best: np.ndarray,
    sweeps: int,
    report: np.void,
) -> None:
    """Give the best answer, and report how good it is by Coulomb's law."""
    give(problem, first, last, best)
    report.residual = residual(problem, first, last, rho)
    report.sweeps_used = sweeps
    report.converged = 1 if report.residual <= settings.tolerance else 0


@inner
def judge(problem: ContactProblem, first: int, last: int, rho: float) -> float:
    """The residual of what the contacts hold; infinity for what cannot be an answer.

    A residual is relative, so that impulses which overflow would have none, and absurdly large ones less than a start
    at 0. By Coulomb's law r.u <= 0, so that r.(u + q), twice the energy that the impulses add, is below 0.
    """
    gain = 0.0
    exchange = 0.0
    size = 0.0
    for i in range(first, last):
        r = problem.equations[i].impulse
        u = problem.equations[i].velocity
        for k in range(3):
            size += r[k] * r[k] + rho * rho * u[k] * u[k]
            work = r[k] * (u[k] + problem.equations[i].free[k])
            gain += work
            exchange += abs(work)
    if size < math.inf and gain <= GAIN * exchange:
        return residual(problem, first, last, rho)
    return math.inf
