"""Contact problems with answers known in closed form, and Coulomb's law asked in numpy, apart from the solvers."""

from typing import NamedTuple

import numpy as np

from rtcore.solvers.problem import load_matrix
from rtcore.tables import SOLVER_REPORT, SOLVER_SETTINGS


class Case(NamedTuple):
    """W (3n, 3n), q (3n,), mu (n,)."""

    matrix: np.ndarray
    free: np.ndarray
    friction: np.ndarray


def solved(solve, make_work, case: Case, sweeps: int, tolerance: float = 0.0, start=None, among=None):
    """Run a solver: (impulses (n, 3), velocities (n, 3), report); among: first and last contact instead of all."""
    problem = load_matrix(*case)
    if start is not None:
        problem.equations["impulse"] = np.reshape(start, (-1, 3))
    settings, report = np.zeros(1, SOLVER_SETTINGS), np.zeros(1, SOLVER_REPORT)
    settings["sweeps"], settings["tolerance"] = sweeps, tolerance
    first, last = among or (0, len(case.friction))
    solve(problem, first, last, settings[0], make_work(problem), report[0])
    return problem.equations["impulse"].copy(), problem.equations["velocity"].copy(), report[0]


def residual(case: Case, impulse: np.ndarray) -> float:
    """Natural-map residual of (n, 3) impulses with rho = 1 / mean of W's diagonal, in numpy."""
    u = (case.matrix @ impulse.ravel() + case.free).reshape(-1, 3)
    rho = 1.0 / np.mean(np.diag(case.matrix))
    aim = impulse - rho * u
    aim[:, 0] -= rho * case.friction * np.linalg.norm(u[:, 1:], axis=1)
    size = max(np.linalg.norm(impulse), rho * np.linalg.norm(u), rho * np.linalg.norm(case.free))
    return float(np.linalg.norm(impulse - projected(aim, case.friction)) / size)


def projected(points: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """Nearest points of the cones |t| <= mu n to points (n, 3), from the cone's ray in the plane of each point."""
    made = np.empty_like(points)
    for i, (point, mu) in enumerate(zip(points, friction, strict=True)):
        length = np.linalg.norm(point[1:])
        if length <= mu * point[0]:
            made[i] = point
            continue
        ray = np.array([1.0, mu]) / np.hypot(1.0, mu)
        along = max(0.0, ray @ [point[0], length])
        made[i] = along * np.array([ray[0], *(ray[1] * point[1:] / length)])
    return made


def in_cone(impulse: np.ndarray, friction: np.ndarray) -> bool:
    """Are all (n, 3) impulses pushes inside the friction cones, but for rounding?"""
    limit = friction * impulse[:, 0]
    return bool(
        (impulse[:, 0] >= 0.0).all()
        and (np.hypot(impulse[:, 1], impulse[:, 2]) <= limit * (1.0 + 4 * np.finfo(float).eps)).all()
    )


def mass_point(mass: float, free: list[float], mu: float) -> Case:
    """A point mass on one plane."""
    return Case(np.eye(3) / mass, np.array(free, dtype=float), np.array([mu]))


def groove(mass: float, velocity: list[float], mu: float) -> Case:
    """A point mass in a groove along x between two planes at 45 degrees, with the velocity (3,) that it would have."""
    half = np.sqrt(0.5)
    rows = np.array([[0, half, half], [1, 0, 0], [0, half, -half], [0, -half, half], [1, 0, 0], [0, half, half]])
    return Case(rows @ rows.T / mass, rows @ np.asarray(velocity, dtype=float), np.array([mu, mu]))


def box_on_ground(velocity: list[float], mu: float, mass: float = 1.0) -> Case:
    """A cube of 0.1 m on its four lower corners, with the velocity and angular velocity (6,) that it would have."""
    rows = []
    for x in (-0.05, 0.05):
        for y in (-0.05, 0.05):
            arm = np.array([x, y, -0.05])
            rows += [np.concatenate([axis, np.cross(arm, axis)]) for axis in np.eye(3)[[2, 0, 1]]]
    jacobian = np.array(rows)
    inverse = np.array([1.0] * 3 + [6.0 / 0.1**2] * 3) / mass
    return Case(jacobian * inverse @ jacobian.T, jacobian @ np.asarray(velocity, dtype=float), np.full(4, mu))


def tower(boxes: int, mu: float = 0.5) -> Case:
    """Cubes of 0.1 m and 1 kg on each other, pushed aside at the top by 1 ms of gravity's own strength."""
    free = np.zeros(6 * boxes)
    free[2::6] = -9.81e-3
    free[-6] = 4e-3
    jacobian = np.zeros((12 * boxes, 6 * boxes))
    row = 0
    for box in range(boxes):
        for x in (-0.05, 0.05):
            for y in (-0.05, 0.05):
                for axis in np.eye(3)[[2, 0, 1]]:
                    jacobian[row, 6 * box : 6 * box + 6] = [*axis, *np.cross([x, y, -0.05], axis)]
                    if box:
                        jacobian[row, 6 * box - 6 : 6 * box] = [*-axis, *-np.cross([x, y, 0.05], axis)]
                    row += 1
    inverse = np.tile([1.0] * 3 + [600.0] * 3, boxes)
    return Case(jacobian * inverse @ jacobian.T, jacobian @ free, np.full(4 * boxes, mu))
