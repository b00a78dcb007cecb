"""Problems of normal rows alone, drawn at random, and what is certain of their answer."""

from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np

from rtcore.solvers.problem import ContactProblem, assemble, make_problem
from rtcore.tables import MOVER, SOLVER_REPORT, SOLVER_SETTINGS


class Rows(NamedTuple):
    """J (m, 6n) with at most two bodies per row, b (m,), and the two bodies of each row (m, 2), -1 for none."""

    jacobian: np.ndarray
    bound: np.ndarray
    bodies: np.ndarray


KINDS = ("tight", "slack", "whole numbers", "duplicates")


def draw(rng: np.random.Generator, kind: str, bodies: int, rows: int) -> Rows:
    """Random rows with a common solution, as in section 5.4 of the thesis: two bodies each, or one and the scene.

    tight: all rows pass through one motion; slack: some do not; whole numbers: small ones, so that many vertices are
    degenerate; duplicates: every other row is one before it, times a number.
    """
    jacobian = np.zeros((rows, 6 * bodies))
    pairs = rng.integers(bodies, size=(rows, 2))
    whole = kind == "whole numbers"
    for row, pair in zip(jacobian, pairs, strict=True):
        for body in set(pair):
            row[6 * body : 6 * body + 6] = rng.integers(-2, 3, 6) if whole else rng.standard_normal(6)
    pairs[pairs[:, 0] == pairs[:, 1], 1] = -1
    if kind == "duplicates":
        for i in range(1, rows, 2):
            k = rng.integers(i)
            jacobian[i], pairs[i] = rng.uniform(0.5, 2.0) * jacobian[k], pairs[k]
    through = rng.integers(-3, 4, 6 * bodies) if whole else rng.standard_normal(6 * bodies)
    bound = jacobian @ through
    if kind == "slack":
        bound -= rng.integers(2, size=rows) * rng.exponential(1.0, rows)
    if whole:
        bound -= rng.integers(3, size=rows)
    return Rows(jacobian, bound, pairs)


def as_problem(rows: Rows, compliance: float = 0.0) -> ContactProblem:
    """Contacts without friction between bodies of unit inertia, whose normal rows are these."""
    count, bodies = len(rows.bound), rows.jacobian.shape[1] // 6
    problem = make_problem(bodies, count, count * count)
    problem.size["movers"], problem.size["contacts"] = bodies, count
    problem.movers["inverse_mass"] = 1.0
    problem.movers["inverse_inertia"] = np.eye(3)
    equations = problem.equations
    equations["free"][:, 0] = -rows.bound
    equations["compliance"][:, 0] = compliance
    equations["first"], equations["second"] = rows.bodies.T
    for side, name in enumerate(("jacobian_first", "jacobian_second")):
        for i, body in enumerate(rows.bodies[:, side]):
            if body >= 0:
                equations[name][i, 0] = rows.jacobian[i, 6 * body : 6 * body + 6]
    assemble(problem)
    return problem


def unit_movers(count: int) -> np.ndarray:
    """Movers of 1 kg and 1 kg m2 that are at rest."""
    movers = np.zeros(count, MOVER)
    movers["inverse_mass"] = 1.0
    movers["inverse_inertia"] = np.eye(3)
    return movers


def run(solve, make_work, problem: ContactProblem, sweeps: int, tolerance: float = 0.0):
    """Run a solver over all contacts: (normal impulses, normal velocities, report)."""
    settings, report = np.zeros(1, SOLVER_SETTINGS), np.zeros(1, SOLVER_REPORT)
    settings["sweeps"], settings["tolerance"] = sweeps, tolerance
    count = int(problem.size["contacts"][0])
    solve(problem, 0, count, settings[0], make_work(problem), report[0])
    equations = problem.equations[:count]
    return equations["impulse"][:, 0].copy(), equations["velocity"][:, 0].copy(), report[0]


def wrongness(rows: Rows, impulse: np.ndarray, compliance: float = 0.0) -> float:
    """Largest of min(lambda, excess velocity), which is 0 for the answer alone, by the size of b and J."""
    excess = rows.jacobian @ (rows.jacobian.T @ impulse) + compliance * impulse - rows.bound
    assert (impulse >= 0.0).all()
    return float(np.abs(np.minimum(impulse, excess)).max() / max(1.0, np.abs(rows.bound).max()))


def exact_change(rows: Rows) -> np.ndarray:
    """The change of motion J^T lambda of whole-number rows in exact arithmetic, by trying all sets of rows."""
    jacobian = [[Fraction(int(x)) for x in row] for row in rows.jacobian]
    bound = [Fraction(int(x)) for x in rows.bound]
    count = len(bound)
    gram = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in jacobian] for a in jacobian]
    for size in range(count + 1):
        for held in combinations(range(count), size):
            found = _solved([[gram[i][j] for j in held] for i in held], [bound[i] for i in held])
            if found is None or any(x < 0 for x in found):
                continue
            if all(sum(gram[i][j] * x for j, x in zip(held, found, strict=True)) >= bound[i] for i in range(count)):
                return np.array(
                    [
                        float(sum((jacobian[j][k] * x for j, x in zip(held, found, strict=True)), Fraction(0)))
                        for k in range(len(jacobian[0]))
                    ]
                )
    raise ValueError("no motion satisfies all rows")


def _solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """Gauss-Jordan; None for a singular matrix."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][k] != 0:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]
