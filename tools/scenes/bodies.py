"""Worlds of moving bodies, built and stepped as the daemon does it, with ledgers of momentum and energy of their own.

    world = World([floor(0.5), Solid(box((0.1, 0.1, 0.1), 1.0), (0.0, 0.0, 0.05005), mass=1.0)])
    world.run(1000)

Bodies are meshes; the tool, where a scene has no use for one, is a small box parked far away that no hand holds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bridge.config import Budget
from rtcore.dynamics.inertia import REST_SPEED, body_inertia, mesh_inertia
from rtcore.geometry.mass import mass_properties
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, FREE, STATIC, STEP_REPORT
from tools.scenes.mesh import Mesh, box, lathe

EPS = (2e-5, 5e-5, 1e-4)
"""Alert, safety and break distance of scenes that are some decimetres large, m."""
_USUAL = Budget()
FULL = (_USUAL.units, _USUAL.passes, _USUAL.sweeps, _USUAL.visits)
"""Units, passes, sweeps and visits that a daemon has unless told otherwise."""
PLENTY = (2_000_000, 8, 1000, 0)
"""As much as a scene may need whose truth and not whose time is asked for."""
GRAVITY = (0.0, 0.0, -9.81)
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
PARKED = (0.0, 0.0, 50.0)
"""Where a tool waits that a scene has no use for, m."""


@dataclass(frozen=True)
class Solid:
    """A body to be put into a world: a mesh, where it is, and what it is made of."""

    mesh: Mesh
    position: Sequence[float] = (0.0, 0.0, 0.0)
    orientation: Sequence[float] = UPRIGHT
    mass: float = 0.0
    """kg, spread evenly in the mesh; 0: it never moves."""
    moments: Sequence[float] | None = None
    """(3,) about the mesh's origin as centre of mass, its axes, kg m2, instead of those of the mesh."""
    friction: float = 0.5
    torsional: float = 0.0
    """Largest moment about the normal by the normal force, m..."""
    rolling: float = 0.0
    """... and about the tangents."""
    restitution: float = 0.0
    rest_speed: float = REST_SPEED
    velocity: Sequence[float] = (0.0,) * 6
    """(6,) of the centre of mass and angular, m/s and rad/s, scene."""
    kind: int | None = None
    """FREE with a mass and STATIC without, unless told otherwise."""
    rounding: float = 0.0
    """Radius (m) by which the mesh is rounded off: of a POINT it makes a ball, of a segment a capsule. Such a body has
    the moments of a homogeneous ball, unless told otherwise."""

    def inertia(self) -> np.void | None:
        """BODY_INERTIA of a body with a mass."""
        if self.mass <= 0.0:
            return None
        bounce = {"restitution": self.restitution, "rest_speed": self.rest_speed}
        moments = (0.4 * self.mass * self.rounding**2,) * 3 if self.moments is None else self.moments
        if self.moments is not None or self.rounding > 0.0:
            return body_inertia(self.mass, np.diag(moments), **bounce)
        volume = mass_properties(self.mesh.vertices, self.mesh.faces).volume
        return mesh_inertia(self.mesh.vertices, self.mesh.faces, self.mass / volume, **bounce)


@dataclass
class Ledger:
    """What a run kept and what it lost; energies in J, momenta in N s and N m s, about the scene's origin."""

    energy: list[float]
    momentum: list[np.ndarray]
    angular: list[np.ndarray]
    residual: list[float]
    degraded: int = 0
    stopped: int = 0

    @property
    def gain(self) -> float:
        """Largest rise of the energy above what it had been at any earlier time, J."""
        energy = np.asarray(self.energy)
        return float((energy - np.minimum.accumulate(energy)).max())

    def drift(self) -> tuple[float, float, float]:
        """Largest changes since the start: (energy, J, momentum, N s, angular momentum, N m s)."""
        return tuple(
            float(np.abs(np.asarray(row) - np.asarray(row[0])).max())
            for row in (self.energy, self.momentum, self.angular)
        )


class World:
    """Bodies, gravity and a tool, driven step by step.

    solids: in the order of their body_ids. tool: the mesh that a hand holds, its start pose and how (see `hold`).
    """

    def __init__(
        self,
        solids: Sequence[Solid],
        gravity: Sequence[float] = GRAVITY,
        *,
        eps: tuple[float, float, float] = EPS,
        dt: float = 1e-3,
        budget: tuple[int, int, int, int] = PLENTY,
        tool: Mesh | None = None,
        tool_at: Sequence[float] = PARKED,
        tool_mass: float = 0.0,
        turning: float = 1e-3,
    ) -> None:
        builder = ModelBuilder()
        tool = box((0.01, 0.01, 0.01), 1.0) if tool is None else tool
        tool_mesh = builder.add_mesh(*build_tree(tool.vertices, tool.faces))
        shared: dict[int, int] = {}
        for solid in solids:
            if id(solid.mesh) not in shared:
                shared[id(solid.mesh)] = builder.add_mesh(*build_tree(solid.mesh.vertices, solid.mesh.faces))
            inertia = solid.inertia()
            kind = (STATIC if inertia is None else FREE) if solid.kind is None else solid.kind
            builder.add_body(
                shared[id(solid.mesh)],
                solid.position,
                solid.orientation,
                solid.friction,
                solid.friction,
                kind,
                inertia=inertia,
                restitution=solid.restitution,
                rest_speed=solid.rest_speed,
                torsional_friction=solid.torsional,
                rolling_friction=solid.rolling,
                velocity=solid.velocity,
                rounding=solid.rounding,
            )
        own = None
        if tool_mass > 0.0:
            volume = mass_properties(tool.vertices, tool.faces).volume
            own = mesh_inertia(tool.vertices, tool.faces, tool_mass / volume)
        self.dt = dt
        self.gravity = np.asarray(gravity, dtype=float)
        self.model = builder.build(
            0.0,
            (0.0, 0.0, 0.0),
            *eps,
            tool_mesh_id=tool_mesh,
            turning=turning,
            dt=dt,
            gravity=gravity,
            tool_inertia=own,
        )
        self.state = make_state(self.model, tool_at)
        self.entry = make_input(0.0)
        self.entry["goal_position"][0] = tool_at
        self.budget = np.zeros(1, BUDGET)
        self.budget[0] = budget
        self.reports = np.zeros(1, STEP_REPORT)
        self.free = np.flatnonzero(self.model.bodies["kind"] == FREE)
        self.ticks = 0
        inertias = self.model.inertias[self.free]
        self._mass, self._moments = inertias["mass"], inertias["moments"]
        self._centre, self._axes = inertias["centre"], inertias["axes"]

    # Driving.

    def step(self) -> np.void:
        """One step; returns its report."""
        step(self.model, self.state, self.entry[0], self.budget[0], self.reports[0])
        self.ticks += 1
        return self.reports[0]

    def run(self, ticks: int, each: Callable[[int], object] | None = None) -> None:
        """So many steps; each: called after every one with its number, from 1; a true answer ends the run."""
        arguments = (self.model, self.state, self.entry[0], self.budget[0], self.reports[0])
        for _ in range(ticks):
            step(*arguments)
            self.ticks += 1
            if each is not None and each(self.ticks):
                break

    def keep_books(self, ticks: int, each: Callable[[int], object] | None = None) -> Ledger:
        """Run, and note down after every step what bodies have."""
        ledger = Ledger([self.energy], [self.momentum], [self.angular_momentum], [])

        def note(tick: int) -> object:
            ledger.energy.append(self.energy)
            ledger.momentum.append(self.momentum)
            ledger.angular.append(self.angular_momentum)
            ledger.residual.append(float(self.report["body_residual"]))
            ledger.degraded |= int(self.report["degraded"])
            ledger.stopped += int(self.report["stopped"])
            return each(tick) if each is not None else None

        self.run(ticks, note)
        return ledger

    def hold(
        self,
        stiffness: float,
        rotational: float,
        goal: Sequence[float],
        damping: float = 0.0,
        turn: Sequence[float] = UPRIGHT,
    ) -> None:
        """Let a hand hold the tool with so many N/m and N m/rad at a goal (3,), m, and turn, upright if not said."""
        self.entry["stiffness"] = stiffness
        self.entry["rotational_stiffness"] = rotational
        self.entry["damping"] = damping
        self.entry["goal_position"][0] = goal
        self.entry["goal_orientation"][0] = turn

    def push(self, body: int, force: Sequence[float]) -> None:
        """Let a force (3,), N, act on the centre of mass of a body during the next step, as gravity does."""
        mass = float(self.model.inertias[body]["mass"])
        self.state.velocities["linear"][body] += np.asarray(force) * (self.dt / mass)

    # Looking.

    @property
    def time(self) -> float:
        """s"""
        return self.ticks * self.dt

    @property
    def report(self) -> np.void:
        return self.reports[0]

    @property
    def positions(self) -> np.ndarray:
        """(n, 3) of all bodies' origins, m."""
        return self.state.poses["position"].copy()

    @property
    def velocities(self) -> np.ndarray:
        """(n, 3) of the centres of mass, m/s."""
        return self.state.velocities["linear"][:-1].copy()

    @property
    def turning(self) -> np.ndarray:
        """(n, 3) angular velocities, rad/s, scene."""
        return self.state.velocities["angular"][:-1].copy()

    def axis(self, body: int, own: Sequence[float] = (0.0, 0.0, 1.0)) -> np.ndarray:
        """A direction of the body's frame as the scene sees it."""
        return _rotated(self.state.poses["orientation"][body][None], np.asarray(own, dtype=float)[None])[0]

    @property
    def centres(self) -> np.ndarray:
        """(k, 3) centres of mass of the free bodies, m."""
        poses = self.state.poses[self.free]
        return poses["position"] + _rotated(poses["orientation"], self._centre)

    @property
    def energy(self) -> float:
        """Kinetic and potential of the free bodies, J, from poses and momenta by formulas of its own."""
        velocities = self.state.velocities[self.free]
        back = self.state.poses["orientation"][self.free] * [-1.0, -1.0, -1.0, 1.0]
        momentum = _rotated(self._axes * [-1.0, -1.0, -1.0, 1.0], _rotated(back, velocities["momentum"]))
        kinetic = 0.5 * self._mass @ (velocities["linear"] ** 2).sum(axis=1)
        kinetic += 0.5 * (momentum**2 / self._moments).sum()
        return float(kinetic - self._mass @ (self.centres @ self.gravity))

    @property
    def momentum(self) -> np.ndarray:
        """(3,) of the free bodies, N s."""
        return self._mass @ self.state.velocities["linear"][self.free]

    @property
    def angular_momentum(self) -> np.ndarray:
        """(3,) of the free bodies about the scene's origin, N m s."""
        velocities = self.state.velocities[self.free]
        orbital = np.cross(self.centres, velocities["linear"] * self._mass[:, None])
        return (orbital + velocities["momentum"]).sum(axis=0)


def _rotated(turns: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Vectors (k, 3) turned by quaternions (k, 4), xyzw."""
    axis, scalar = turns[:, :3], turns[:, 3:]
    across = 2.0 * np.cross(axis, vectors)
    return vectors + scalar * across + np.cross(axis, across)


# Shapes.


def turned(axis: Sequence[float], angle: float) -> tuple[float, float, float, float]:
    """Quaternion of a turn about an axis, rad."""
    direction = np.asarray(axis, dtype=float)
    direction = math.sin(0.5 * angle) * direction / np.linalg.norm(direction)
    return (float(direction[0]), float(direction[1]), float(direction[2]), math.cos(0.5 * angle))


def block(*size: float) -> Mesh:
    """A box of edge lengths (3,), m, about the origin, of twelve triangles."""
    return box(size, 1e9)


POINT = Mesh(np.zeros((1, 3)), np.zeros((1, 3), np.int64))
"""What a ball is rounded off from."""


def segment(start: Sequence[float], end: Sequence[float]) -> Mesh:
    """What a capsule is rounded off from, m."""
    return Mesh(np.array([start, end], dtype=float), np.array([[0, 1, 1]]))


def floor(friction: float, size: float = 20.0, **more: float) -> Solid:
    """A square slab (edge in m) whose upper side is z = 0."""
    return Solid(block(size, size, 0.5), (0.0, 0.0, -0.25), friction=friction, **more)


def icosphere(radius: float, level: int) -> Mesh:
    """A ball of 20 x 4^level triangles with all vertices at the radius (m), one of them at each pole of z."""
    angle = math.atan(0.5)
    around = 2.0 * math.pi * np.arange(5) / 5
    rings = []
    for start, side in ((0.0, 1.0), (math.pi / 5, -1.0)):
        wide = np.stack([np.cos(around + start), np.sin(around + start), np.full(5, side * math.tan(angle))], axis=1)
        rings.append(math.cos(angle) * wide)
    vertices = [*np.concatenate([[[0.0, 0.0, 1.0]], *rings, [[0.0, 0.0, -1.0]]])]
    faces = []
    for k in range(5):
        n = (k + 1) % 5
        faces += [(0, 1 + k, 1 + n), (1 + k, 6 + k, 1 + n), (1 + n, 6 + k, 6 + n), (11, 6 + n, 6 + k)]
    for _ in range(level):
        middles: dict[tuple[int, int], int] = {}
        finer = []
        for a, b, c in faces:
            ids = []
            for i, j in ((a, b), (b, c), (c, a)):
                key = (min(i, j), max(i, j))
                if key not in middles:
                    middles[key] = len(vertices)
                    middle = vertices[i] + vertices[j]
                    vertices.append(middle / np.linalg.norm(middle))
                ids.append(middles[key])
            finer += [(a, ids[0], ids[2]), (b, ids[1], ids[0]), (c, ids[2], ids[1]), (ids[0], ids[1], ids[2])]
        faces = finer
    return Mesh(radius * np.array(vertices), np.array(faces, dtype=np.int32))


def wheel(radius: float, width: float, sides: int) -> Mesh:
    """A flat cylinder of so many sides that rolls about its y axis, a side downwards along -z, m."""
    disc = lathe(np.array([[radius, -0.5 * width], [radius, 0.5 * width]]), sides)
    x, y, z = disc.vertices.T
    return Mesh(np.stack([y, z, x], axis=1), disc.faces)


def alike(solid: Solid, positions: Sequence[Sequence[float]]) -> list[Solid]:
    """The same solid at several places."""
    return [replace(solid, position=tuple(float(x) for x in place)) for place in positions]
