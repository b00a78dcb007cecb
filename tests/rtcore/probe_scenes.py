"""Small scenes for the tests of the mechanics, and a probe to drive through them."""

from collections.abc import Sequence

import numpy as np
import probe_truth as truth

from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, STEP_REPORT

EPS = (2e-5, 5e-5, 1e-4)
"""Alert, safety and break distance of the test scenes, which are about 0.2 m large."""


def grid(n: int, size: float, height=lambda x, y: 0.0 * x) -> tuple[np.ndarray, np.ndarray]:
    """Height field over a square of `size` with n x n cells of two triangles, normals up."""
    line = np.linspace(-size / 2, size / 2, n + 1)
    x, y = np.meshgrid(line, line)
    vertices = np.c_[x.ravel(), y.ravel(), height(x, y).ravel()]
    i = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    a, b, c, d = i[:-1, :-1].ravel(), i[:-1, 1:].ravel(), i[1:, 1:].ravel(), i[1:, :-1].ravel()
    return vertices, np.r_[np.c_[a, b, c], np.c_[a, c, d]]


def box(x: float, y: float, z: float) -> tuple[np.ndarray, np.ndarray]:
    """Closed box about the origin with these edge lengths."""
    corner = np.array([[i, j, k] for i in (-0.5, 0.5) for j in (-0.5, 0.5) for k in (-0.5, 0.5)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [(q[0], q[i], q[i + 1]) for q in quads for i in (1, 2)]
    return corner * (x, y, z), np.array(faces)


def sheets(*corners: Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Open mesh of quadrilaterals given by four corners each."""
    vertices = np.array([point for quad in corners for point in quad], dtype=float)
    faces = [(4 * i, 4 * i + k, 4 * i + k + 1) for i in range(len(corners)) for k in (1, 2)]
    return vertices, np.array(faces)


class Probe:
    """A tip among meshes, driven step by step."""

    def __init__(self, meshes, start, radius=0.005, eps=EPS, friction=(0.0, 0.0), budget=(20000, 8, 50), poses=None):
        builder = ModelBuilder()
        frictions = friction if isinstance(friction, list) else [friction] * len(meshes)
        poses = poses or [((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))] * len(meshes)
        corners = [np.zeros((0, 3, 3))]
        for (vertices, faces), (static, kinetic), (position, orientation) in zip(meshes, frictions, poses, strict=True):
            builder.add_body(builder.add_mesh(*build_tree(vertices, faces)), position, orientation, static, kinetic)
            quaternion = np.array(orientation) / np.linalg.norm(orientation)
            corners.append(vertices[faces] @ truth.rotation(quaternion).T + position)
        self.corners = np.concatenate(corners)
        self.radius = radius
        self.alert, self.safety, self.forget = eps
        self.model = builder.build(radius, (0.0, 0.0, 0.0), *eps)
        self.state = make_state(self.model, start)
        self.input = make_input()
        self.input["goal_orientation"][0, 3] = 1.0
        self.budget = np.zeros(1, BUDGET)
        self.budget[0] = (*budget, 0)
        self.reports = np.zeros(1, STEP_REPORT)

    @property
    def position(self) -> np.ndarray:
        return self.state.proxy["position"][0].copy()

    @property
    def report(self) -> np.void:
        return self.reports[0]

    @property
    def contacts(self) -> np.ndarray:
        return self.report["contacts"][: self.report["contact_count"]]

    @property
    def path(self) -> np.ndarray:
        return self.report["path"][: self.report["path_count"]]

    @property
    def push(self) -> np.ndarray:
        """Sum of what the contacts push."""
        return self.contacts["displacement"].sum(axis=0)

    def go(self, *goal: float) -> np.ndarray:
        """One step towards a goal; returns where the tip is then."""
        self.input["goal_position"][0] = goal
        step(self.model, self.state, self.input[0], self.budget[0], self.reports[0])
        return self.position

    def clearance(self) -> float:
        """Smallest distance of the last step's whole path from any triangle, by the independent formulas."""
        return truth.path_distance(self.path, self.corners)

    @property
    def least(self) -> float:
        """The distance that no step may ever undercut."""
        return self.radius + self.alert * (1.0 - 1e-6)
