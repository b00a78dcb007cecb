"""What the solvers share that know the normal rows of contacts alone: where they start, and how their answer is given.

Friction is left out: tangential impulses are 0. For contacts without friction the answer is exact.
"""

import numpy as np

from rtcore.kernels import inner, kernel
from rtcore.solvers.problem import ContactProblem, natural_map, relative_velocity, scale


@kernel
def start(problem: ContactProblem, first: int, last: int, kept: np.ndarray, report: np.void) -> None:
    """Make the warm start pushes without friction, keep it in `kept` (contacts,), and say how good it is."""
    for i in range(first, last):
        impulse = problem.equations[i].impulse
        impulse[0] = max(0.0, impulse[0])
        impulse[1] = 0.0
        impulse[2] = 0.0
        kept[i - first] = impulse[0]
    relative_velocity(problem, first, last)
    report.start_residual = natural_map(problem, first, last, scale(problem, first, last), 0.0, 0.0)


@kernel
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
    report.residual = natural_map(problem, first, last, rho, 0.0, 0.0)
    if not report.residual < report.start_residual:
        for i in range(first, last):
            problem.equations[i].impulse[0] = kept[i - first]
        relative_velocity(problem, first, last)
        report.residual = report.start_residual
    report.sweeps_used = sweeps
    report.converged = 1 if report.residual <= settings.tolerance else 0


@inner
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
