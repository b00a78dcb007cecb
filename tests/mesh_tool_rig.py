"""A mesh as tool among meshes, driven step by step, and judges of where it is that know nothing of the engine."""

from collections.abc import Sequence

import numpy as np

from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, STEP_REPORT
from tools.exact.intersect import near_pairs, posed, triangles_meet
from tools.exact.triangles import PAD, bounds, gaps_along

EPS = (2e-5, 5e-5, 1e-4)
"""Alert, safety and break distance of scenes that are some decimetres large, m."""

FULL = (20000, 8, 50)
"""Units, passes and sweeps that a daemon has unless told otherwise."""

HOME = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def corners(mesh: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Triangles (m, 3, 3) of (vertices, faces)."""
    return np.asarray(mesh[0], dtype=float)[mesh[1]]


def at(place: Sequence[float], turn: Sequence[float] = (0.0, 0.0, 0.0)) -> np.ndarray:
    """A pose (7,) of a position (m) and a rotation vector (rad)."""
    angle = float(np.linalg.norm(turn))
    axis = np.asarray(turn, dtype=float) / angle if angle > 0.0 else np.zeros(3)
    return np.concatenate([place, np.sin(0.5 * angle) * axis, [np.cos(0.5 * angle)]])


def apart_across_a_face(first: np.ndarray, second: np.ndarray, least: float) -> np.ndarray:
    """Of which pairs of triangles (k, 3, 3) a plane along one of both proves that they are `least` (m) apart?"""
    origin = first[:, :1]
    first, second = first - origin, second - origin
    pad = PAD * np.maximum(np.abs(first).max(axis=(1, 2)), np.abs(second).max(axis=(1, 2)))
    normals = np.stack([np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]) for t in (first, second)], axis=1)
    size = np.linalg.norm(normals, axis=2, keepdims=True)
    normals /= np.where(size > 0.0, size, 1.0)
    return gaps_along(first, second, np.concatenate([normals, -normals], axis=1)).max(axis=1) - pad >= least


def too_near(first: np.ndarray, second: np.ndarray, least: float) -> list[tuple[int, int]]:
    """Pairs of triangles (n, 3, 3), (m, 3, 3) that meet, exactly, or are nearer than `least` (m) up to rounding."""
    found = []
    for i, j in near_pairs(first, second, least):
        left = ~apart_across_a_face(first[i], second[j], least)
        i, j = i[left], j[left]
        if len(i) == 0:
            continue
        lower, _, _ = bounds(first[i], second[j])
        found += [
            (int(i[k]), int(j[k]))
            for k in np.flatnonzero(lower < least)
            if lower[k] > 0.0 or triangles_meet(first[i[k]], second[j[k]])
        ]
    return found


class MeshTool:
    """A tool mesh among bodies at rest, with goals as a hand gives them: one per tick."""

    def __init__(self, tool, bodies, start, eps=EPS, budget=FULL, poses=None, turning=0.0, friction=(0.4, 0.3)):
        builder = ModelBuilder()
        tool_mesh = builder.add_mesh(*build_tree(*tool))
        poses = [HOME] * len(bodies) if poses is None else poses
        for mesh, pose in zip(bodies, poses, strict=True):
            builder.add_body(builder.add_mesh(*build_tree(*mesh)), pose[:3], pose[3:], *friction)
        self.alert, self.safety, self.forget = eps
        self.model = builder.build(0.0, (0.0, 0.0, 0.0), *eps, tool_mesh_id=tool_mesh, turning=turning)
        self.own = corners(tool)
        self.others = np.concatenate(
            [posed(corners(mesh), pose[:3], pose[3:]) for mesh, pose in zip(bodies, poses, strict=True)]
        )
        self.input = make_input(1.0, turning)
        self.budget = np.zeros(1, BUDGET)
        self.budget[0] = (*budget, 0)
        self.reports = np.zeros(1, STEP_REPORT)
        self.start(start)

    def start(self, pose) -> None:
        """Begin anew at a pose (7,)."""
        self.state = make_state(self.model, pose[:3], pose[3:])

    def go(self, goal) -> np.ndarray:
        """One step towards a goal (7,); returns the pose (7,) at its end."""
        self.input["goal_position"][0] = goal[:3]
        self.input["goal_orientation"][0] = goal[3:]
        step(self.model, self.state, self.input[0], self.budget[0], self.reports[0])
        return self.pose

    @property
    def pose(self) -> np.ndarray:
        return np.concatenate([self.state.proxy["position"][0], self.state.proxy["orientation"][0]])

    @property
    def report(self) -> np.void:
        return self.reports[0]

    @property
    def contacts(self) -> np.ndarray:
        """Of the pose that the last step began with."""
        return self.report["contacts"][: self.report["contact_count"]]

    @property
    def proximities(self) -> np.ndarray:
        """All pairs of features within reach then, as the contacts were chosen from."""
        table = self.state.query_work[0]["proximities"]
        assert not table["incomplete"]
        return table["rows"][: table["count"]]

    @property
    def bits(self) -> bytes:
        """All that a step gives, to the bit."""
        return self.state.proxy.tobytes() + self.reports.tobytes()

    def here(self, pose=None) -> np.ndarray:
        """The tool's triangles (n, 3, 3) in the scene, by formulas of its own."""
        pose = self.pose if pose is None else pose
        return posed(self.own, pose[:3], pose[3:])

    @property
    def least(self) -> float:
        """The distance that no step may ever undercut, m."""
        return self.alert * (1.0 - 1e-6)

    def faults(self, pose=None) -> list[tuple[int, int]]:
        """Pairs of triangles (tool, body) that meet or are nearer than promised."""
        return too_near(self.here(pose), self.others, self.least)
