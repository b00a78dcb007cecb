"""Pinocchio's contact solvers (pip: pin) on the same problems, with the Delassus operator as a dense matrix."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

try:
    import pinocchio
except ImportError:
    pinocchio = None

from tools.friction_problems import FrictionProblem

NAMES = ("pinocchio_admm", "pinocchio_pgs")
TOLERANCE = 1e-14
"""What the peers are asked for, so that their own test does not end them before the iterations are used."""
STACK = 256 << 20
"""Bytes; a problem of n contacts takes 72 n^2 of them and some more."""


@dataclass
class Answer:
    """What a peer makes of a problem: r (3n,), normal first; iterations used; us of the call."""

    impulse: np.ndarray
    iterations: int
    us: float


def _on_large_stack(call: Callable[[], float]) -> float:
    """Run a call in a thread with room for a dense operator, which pinocchio puts on the stack."""
    before = threading.stack_size(STACK)
    try:
        with ThreadPoolExecutor(1) as executor:
            return executor.submit(call).result()
    finally:
        threading.stack_size(before)


def _turned(values: np.ndarray, shift: int) -> np.ndarray:
    """Rows of three with the components rolled: +1 puts the last first, -1 the first last."""
    return np.ascontiguousarray(np.roll(values.reshape(-1, 3), shift, axis=1).ravel())


class PinocchioProblem:
    """A problem in the form that pinocchio takes: normal last, a point contact model for each contact."""

    def __init__(self, problem: FrictionProblem) -> None:
        size = len(problem.free)
        order = _turned(np.arange(size), -1)
        self.matrix = np.asfortranarray(problem.matrix[np.ix_(order, order)])
        model = pinocchio.Model()
        joint = model.addJoint(0, pinocchio.JointModelFreeFlyer(), pinocchio.SE3.Identity(), "body")
        self.models = pinocchio.StdVec_ConstraintModel()
        self.datas = pinocchio.StdVec_ConstraintData()
        for mu in problem.friction:
            contact = pinocchio.PointContactConstraintModel(model, joint)
            contact.setFriction(float(mu))
            general = pinocchio.ConstraintModel(contact)
            self.models.append(general)
            self.datas.append(general.createData())
        self.size = size

    def solve(self, name: str, free: np.ndarray, iterations: int, start: np.ndarray | None = None) -> Answer:
        """Run one of NAMES for so many iterations at most, from `start` (3n,) where given; free: (3n,) q."""
        if name == "pinocchio_admm":
            solver = pinocchio.ADMMConstraintSolver(self.size)
            settings, result = pinocchio.ADMMSolverSettings(), pinocchio.ADMMSolverResult()
        else:
            solver = pinocchio.PGSConstraintSolver(self.size)
            settings, result = pinocchio.PGSSolverSettings(), pinocchio.PGSSolverResult()
        settings.max_iterations = iterations
        for kind in ("feasibility", "complementarity"):
            setattr(settings, f"absolute_{kind}_tol", TOLERANCE)
            setattr(settings, f"relative_{kind}_tol", TOLERANCE)
        if start is not None:
            result.setConstraintImpulseGuess(_turned(start, -1))
        wanted = _turned(free, -1)
        delassus = pinocchio.DelassusOperatorDense(self.matrix)  # its own: ADMM leaves its damping in it

        def timed() -> float:
            began = time.perf_counter()
            solver.solve(delassus, wanted, self.models, self.datas, settings, result)
            return (time.perf_counter() - began) * 1e6

        us = _on_large_stack(timed)
        return Answer(_turned(np.asarray(result.retrieveConstraintImpulses()), 1), int(result.iterations), us)
