"""What the solvers share that know the normal rows of contacts alone: where they start, and how their answer is given.

Friction is left out: tangential impulses are 0. For contacts without friction the answer is exact.
"""

import math

import numpy as np
from numba import njit

from rtcore.solvers.problem import ContactProblem, relative_velocity, scale


@njit(cache=True, nogil=True, error_model="numpy")
def normal_residual(problem: ContactProblem, first: int, last: int, rho: float) -> float:
    """`rtcore.solvers.problem.residual` of the contacts as if their friction were 0 (see there)."""
    error = 0.0
    free = 0.0
    impulses = 0.0
    velocities = 0.0
    for i in range(first, last):
        equation = problem.equations[i]
        q = equation.free
        r = equation.impulse
        u = equation.velocity
        off = r[0] - max(0.0, r[0] - rho * u[0])
        error += off * off + r[1] * r[1] + r[2] * r[2]
        free += q[0] * q[0] + q[1] * q[1] + q[2] * q[2]
        impulses += r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
        velocities += u[0] * u[0] + u[1] * u[1] + u[2] * u[2]
    most = max(impulses, rho * rho * max(free, velocities))
    return math.sqrt(error / most) if most > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def start(problem: ContactProblem, first: int, last: int, kept: np.ndarray, report: np.void) -> None:
    """Make the warm start pushes without friction, keep it in `kept` (contacts,), and say how good it is."""
    for i in range(first, last):
        impulse = problem.equations[i].impulse
        impulse[0] = max(0.0, impulse[0])
        impulse[1] = 0.0
        impulse[2] = 0.0
        kept[i - first] = impulse[0]
    relative_velocity(problem, first, last)
    report.start_residual = normal_residual(problem, first, last, scale(problem, first, last))


@njit(cache=True, nogil=True, error_model="numpy")
def finish(
    problem: ContactProblem,
    first: int,
    last: int,
    settings: np.void,
    kept: np.ndarray,
    found: np.ndarray,
    sweeps: int,
    report: np.void,
) -> None:
    """Write the impulses found, (contacts,) N s, or those kept of the warm start where they are better; report."""
    rho = scale(problem, first, last)
    for i in range(first, last):
        problem.equations[i].impulse[0] = found[i - first]
    relative_velocity(problem, first, last)
    report.residual = normal_residual(problem, first, last, rho)
    if not report.residual < report.start_residual:
        for i in range(first, last):
            problem.equations[i].impulse[0] = kept[i - first]
        relative_velocity(problem, first, last)
        report.residual = report.start_residual
    report.sweeps_used = sweeps
    report.converged = 1 if report.residual <= settings.tolerance else 0


@njit(cache=True, nogil=True, error_model="numpy")
def normal_matrix(problem: ContactProblem, first: int, last: int, matrix: np.ndarray, free: np.ndarray) -> None:
    """Write the normal rows and columns of the Delassus operator, 1/kg, and of q, m/s, of contacts first..last-1."""
    for i in range(first, last):
        equation = problem.equations[i]
        free[i - first] = equation.free[0]
        for k in range(last - first):
            matrix[i - first, k] = 0.0
        for b in range(equation.block_first, equation.block_first + equation.block_count):
            block = problem.blocks[b]
            if first <= block.column < last:
                matrix[i - first, block.column - first] = block.values[0, 0]
