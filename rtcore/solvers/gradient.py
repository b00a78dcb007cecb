"""Accelerated projected gradient with restart, on Coulomb's law and on its convex relaxation.

`solve_relaxed` minimises r' W r / 2 + q' r over the friction cones: fast and certain, but a contact that slips then
parts with u_n = mu |u_t|, which Coulomb's law does not say. `solve` adds de Saxce's term mu |u_t| n to the gradient,
taken at the point where the gradient is, which leaves no function to minimise and no proof, and has the law right
where it settles.

One pass over all contacts per trial of a step: velocities at the point ahead are combined from those at the last two
iterates. Neither is used in the tick: they are what its solver is compared with.
Source: Nesterov's scheme with step sizes by trial as in Mazhar et al. 2015 (APGD for cone complementarity), restart by
the gradient after O'Donoghue and Candes 2015; fixed point on de Saxce's term, Acary et al. 2011.
"""

import math
from typing import NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.solvers import best
from rtcore.solvers.problem import ContactProblem, natural_map, project_cone, relative_velocity

GROWTH = 2.0
"""Least factor by which a curvature found too small grows."""
SHRINK = 0.95
"""Factor by which the curvature goes back after each step, since it differs along the way."""


@by_reference
class GradientWork(NamedTuple):
    """Work memory of a solve, (contacts, 3) each."""

    best: np.ndarray
    impulse: np.ndarray
    """Last iterate, and its velocities."""
    velocity: np.ndarray
    ahead: np.ndarray
    """Point at which the gradient is taken, and the velocities there."""
    velocity_ahead: np.ndarray


def make_work(problem: ContactProblem) -> GradientWork:
    """Make the work memory for a problem's tables."""
    contacts = len(problem.equations)
    return GradientWork(*(np.zeros((contacts, 3)) for _ in range(5)))


@inner
def _try(
    problem: ContactProblem, first: int, last: int, work: GradientWork, curvature: float, relaxed: bool
) -> tuple[float, float]:
    """Write a projected gradient step from the point ahead into the equations, and its velocities.

    Returns (curvature of r' W r along the step, progress: gradient times the way from the last iterate).
    """
    for i in range(first, last):
        equation = problem.equations[i]
        u = work.velocity_ahead[i]
        y = work.ahead[i]
        lift = 0.0 if relaxed else equation.friction * math.sqrt(u[1] * u[1] + u[2] * u[2])
        n, t1, t2 = project_cone(
            y[0] - (u[0] + lift) / curvature, y[1] - u[1] / curvature, y[2] - u[2] / curvature, equation.friction
        )
        equation.impulse[0] = n
        equation.impulse[1] = t1
        equation.impulse[2] = t2
    relative_velocity(problem, first, last)
    bend = 0.0
    square = 0.0
    progress = 0.0
    for i in range(first, last):
        equation = problem.equations[i]
        u = work.velocity_ahead[i]
        lift = 0.0 if relaxed else equation.friction * math.sqrt(u[1] * u[1] + u[2] * u[2])
        for k in range(3):
            step = equation.impulse[k] - work.ahead[i, k]
            bend += step * (equation.velocity[k] - u[k])
            square += step * step
            slope = u[k] + lift if k == 0 else u[k]
            progress += slope * (equation.impulse[k] - work.impulse[i, k])
    return bend / square if square > 0.0 else 0.0, progress


@inner
def _advance(problem: ContactProblem, first: int, last: int, work: GradientWork, momentum: float) -> None:
    """Make the equations' impulses the last iterate, and put the point ahead beyond it."""
    for i in range(first, last):
        equation = problem.equations[i]
        for k in range(3):
            r = equation.impulse[k]
            u = equation.velocity[k]
            work.ahead[i, k] = r + momentum * (r - work.impulse[i, k])
            work.velocity_ahead[i, k] = u + momentum * (u - work.velocity[i, k])
            work.impulse[i, k] = r
            work.velocity[i, k] = u


@inner
def _run(
    problem: ContactProblem,
    first: int,
    last: int,
    settings: np.void,
    work: GradientWork,
    report: np.void,
    relaxed: bool,
) -> None:
    curvature = 0.0
    for i in range(first, last):
        own = problem.blocks[problem.equations[i].diagonal].values
        curvature = max(curvature, own[0, 0], own[1, 1], own[2, 2])
    rho = best.start(problem, first, last, report)
    lift = 0.0 if relaxed else 1.0
    least = natural_map(problem, first, last, rho, 1.0, lift)
    best.keep(problem, first, last, work.best)
    work.impulse[first:last] = 0.0
    work.velocity[first:last] = 0.0
    _advance(problem, first, last, work, 0.0)
    theta = 1.0
    sweeps = 0
    while sweeps < settings.sweeps and least > settings.tolerance and curvature > 0.0:
        sweeps += 1
        bend, progress = _try(problem, first, last, work, curvature, relaxed)
        now = natural_map(problem, first, last, rho, 1.0, lift)
        if now < least:
            least = now
            best.keep(problem, first, last, work.best)
        if bend > curvature:
            curvature = max(GROWTH * curvature, bend)
            continue
        if progress > 0.0:  # uphill: the momentum is spent
            theta = 1.0
            momentum = 0.0
        else:
            following = 0.5 * theta * (math.sqrt(theta * theta + 4.0) - theta)
            momentum = theta * (1.0 - theta) / (theta * theta + following)
            theta = following
        _advance(problem, first, last, work, momentum)
        curvature *= SHRINK
    best.finish(problem, first, last, settings, rho, work.best, sweeps, report)


@kernel
def solve(
    problem: ContactProblem, first: int, last: int, settings: np.void, work: GradientWork, report: np.void
) -> None:
    """Solve contacts first..last-1 for Coulomb's law; sweeps counts passes, those of refused steps included.

    The equations' impulse and velocity are those of the best iterate by the natural-map residual; a start outside the
    cones is projected onto them first.
    """
    _run(problem, first, last, settings, work, report, False)


@kernel
def solve_relaxed(
    problem: ContactProblem, first: int, last: int, settings: np.void, work: GradientWork, report: np.void
) -> None:
    """Solve the convex relaxation of contacts first..last-1; a start outside the cones is projected onto them first.

    Which iterate is best and when to stop is judged by the relaxation's own residual, without de Saxce's term; the
    report still says how far the answer is from Coulomb's law.
    """
    _run(problem, first, last, settings, work, report, True)
