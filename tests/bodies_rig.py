"""Bodies that move among bodies that do not, driven step by step, with ledgers and a judge that knows no engine."""

from collections.abc import Sequence

import numpy as np
from closed_meshes import box
from mesh_tool_rig import EPS, corners, too_near

from rtcore.dynamics.inertia import mesh_inertia
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, FREE, KINEMATIC, STATIC, STEP_REPORT
from tools.exact.intersect import posed

AMPLE = (20000, 8, 50, 20000)
"""Units, passes, sweeps and visits."""
GRAVITY = 9.81
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
PARKED = (0.0, 0.0, 5.0)
"""Where the tool is in scenes that have no use for one."""


class Bodies:
    """Meshes of their own mass; the tool is a small cube far above, or a mesh that is given, held by a spring."""

    def __init__(self, eps=EPS, gravity=GRAVITY, budget=AMPLE, tool=None, start=PARKED, turning=1e-3, tool_inertia=None):
        self.eps = eps
        self.gravity = gravity
        self._builder = ModelBuilder()
        self._tool = box((0.01,) * 3) if tool is None else tool
        self._tool_id = self._builder.add_mesh(*build_tree(*self._tool))
        self._tool_inertia = tool_inertia
        self._turning = turning
        self._start = start
        self.meshes: list = []
        self.masses: list[float] = []
        self.input = make_input(0.0)
        self.budget = np.zeros(1, BUDGET)
        self.budget[0] = budget
        self.reports = np.zeros(1, STEP_REPORT)

    def add(
        self,
        mesh,
        place: Sequence[float],
        turn: Sequence[float] = UPRIGHT,
        *,
        mass: float = 0.0,
        friction: float = 0.5,
        kinetic: float | None = None,
        restitution: float = 0.0,
        velocity: Sequence[float] = (0.0,) * 6,
        kind: int | None = None,
    ) -> int:
        """A body; with a mass (kg) a free one. Returns its number."""
        vertices, faces = (np.asarray(part) for part in mesh)
        chosen = (FREE if mass > 0.0 else STATIC) if kind is None else kind
        inertia = None
        if chosen == FREE:
            unit = mesh_inertia(vertices, faces, 1.0)
            inertia = mesh_inertia(vertices, faces, mass / float(unit["mass"]), restitution=restitution)
        self.meshes.append(mesh)
        self.masses.append(mass)
        slips = friction if kinetic is None else kinetic
        # fmt: off
        return self._builder.add_body(
            self._builder.add_mesh(*build_tree(vertices, faces)), place, turn, friction, slips, chosen, inertia=inertia,
            restitution=0.0 if chosen == FREE else restitution, velocity=velocity,
        )
        # fmt: on

    def floor(self, friction: float = 0.5, restitution: float = 0.0) -> int:
        """A wide block, its top at z = 0."""
        return self.add(box((1.0, 1.0, 0.05)), (0.0, 0.0, -0.05), friction=friction, restitution=restitution)

    def build(self) -> "Bodies":
        # fmt: off
        self.model = self._builder.build(
            0.0, (0.0, 0.0, 0.0), *self.eps, tool_mesh_id=self._tool_id, turning=self._turning,
            gravity=(0.0, 0.0, -self.gravity), tool_inertia=self._tool_inertia,
        )
        # fmt: on
        self.state = make_state(self.model, self._start)
        self.input["goal_position"][0] = self._start
        return self

    def go(self, steps: int = 1) -> "Bodies":
        for _ in range(steps):
            step(self.model, self.state, self.input[0], self.budget[0], self.reports[0])
        return self

    def hold(self, stiffness: float, rotational: float = 1.0, damping: float = 0.0) -> None:
        """Let a hand hold the tool (N/m, N m/rad, N s/m)."""
        self.input["stiffness"] = stiffness
        self.input["rotational_stiffness"] = rotational
        self.input["damping"] = damping
        self.input["rotational_damping"] = damping * rotational / stiffness

    def aim(self, place: Sequence[float], turn: Sequence[float] = UPRIGHT) -> None:
        self.input["goal_position"][0] = place
        self.input["goal_orientation"][0] = turn

    @property
    def report(self) -> np.void:
        return self.reports[0]

    def place(self, body_id: int) -> np.ndarray:
        return self.state.poses["position"][body_id].copy()

    def speed(self, body_id: int) -> np.ndarray:
        return self.state.velocities["linear"][body_id].copy()

    @property
    def moving(self) -> list[int]:
        return [i for i, kind in enumerate(self.model.bodies["kind"].tolist()) if kind in (FREE, KINEMATIC)]

    @property
    def bits(self) -> bytes:
        """All that there is of the bodies, to the bit."""
        return self.state.poses.tobytes() + self.state.velocities.tobytes() + self.reports.tobytes()

    def here(self, body_id: int) -> np.ndarray:
        """Triangles (n, 3, 3) of a body in the scene, by formulas of its own; the tool's number is one too many."""
        if body_id == len(self.meshes):
            pose = self.state.proxy[0]
            return posed(corners(self._tool), pose["position"], pose["orientation"])
        pose = self.state.poses[body_id]
        return posed(corners(self.meshes[body_id]), pose["position"], pose["orientation"])

    def faults(self) -> list[tuple[int, int]]:
        """Bodies that meet or are nearer than promised, one of each pair moving."""
        least = self.eps[0] * (1.0 - 1e-6)
        placed = [self.here(i) for i in range(len(self.meshes) + 1)]
        boxes = [(t.min(axis=(0, 1)) - least, t.max(axis=(0, 1)) + least) for t in placed]
        found = []
        for i in [*self.moving, len(self.meshes)]:
            for j in range(len(self.meshes) + 1):
                apart = (boxes[i][0] > boxes[j][1]).any() or (boxes[j][0] > boxes[i][1]).any()
                if j != i and not apart and too_near(placed[i], placed[j], least):
                    found.append((i, j))
        return found

    def energy(self) -> float:
        """Kinetic and potential energy of the free bodies, J, from poses and velocities alone."""
        total = 0.0
        for i in self.moving:
            if self.model.bodies["kind"][i] != FREE:
                continue
            velocity = self.state.velocities[i]
            centre = np.array(self.model.inertias["centre"][i])
            assert not centre.any(), "this ledger is for bodies about their centre of mass"
            total += 0.5 * self.masses[i] * float(velocity["linear"] @ velocity["linear"])
            total += 0.5 * float(velocity["angular"] @ velocity["momentum"])
            total += self.masses[i] * self.gravity * float(self.state.poses["position"][i][2])
        return total
