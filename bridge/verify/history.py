"""A log as the certificates read it: where every body is after every tick, what is known about each."""

import math
from typing import Any

import numpy as np

from bridge.log.reader import Log, LogError
from bridge.moment import tool_triangles
from bridge.verify.motions import Pose, Way, pose_of, way
from haptics.states import CommandKind, CommandResult, EngagementState
from haptics.tables import BODY_SAMPLE
from rtcore.model import moving_bodies
from rtcore.tables import FREE, KINEMATIC


class Shape:
    """A surface: triangles (n, 3, 3), a radius (m) that they are rounded by, and a ball around it."""

    def __init__(self, triangles: np.ndarray, rounding: float = 0.0):
        self.triangles = triangles
        self.rounding = rounding
        points = triangles.reshape(-1, 3)
        self.centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
        self.core_radius = float(np.linalg.norm(points - self.centre, axis=1).max())
        """Of a ball around the triangles alone, m"""
        self.radius = self.core_radius + rounding
        self._closed: bool | None = None

    @property
    def closed(self) -> bool:
        """Do its triangles enclose something? Those of what is rounded do not: what is in that is near to them."""
        if self._closed is None:
            from bridge.separation import is_closed

            self._closed = self.rounding == 0.0 and is_closed(self.triangles)
        return self._closed


class History:
    """Rows of a log, (n,) RECORD, and what belongs to them. The tool's number is that of bodies in all."""

    def __init__(self, log: Log, first: int | None = None, last: int | None = None):
        """``first``, ``last``: ticks, both included. Raises LogError when none are left."""
        ticks = log.records["tick"].astype(np.int64)
        rows = np.flatnonzero((ticks >= (first or 0)) & (ticks <= (np.iinfo(np.int64).max if last is None else last)))
        if len(rows) == 0:
            there = f"its ticks are {ticks[0]} to {ticks[-1]}" if len(ticks) else log.explanation or "it holds none"
            raise LogError(f"{log.path} has no tick to verify: {there}")
        span = slice(int(rows[0]), int(rows[-1]) + 1)
        self.log = log
        self.model = log.model
        self.settings: Any = log.settings[0]
        self.world: Any = self.model.world[0]
        self.records = log.records[span]
        self.output = self.records["output"]
        self.report = self.output["report"]
        self.ticks = ticks[span]
        self.dt = float(self.world["dt"])
        self.gravity = np.array(self.world["gravity"], dtype=float)
        self.tool = len(self.model.bodies)
        self.follows = np.concatenate([[False], np.diff(self.ticks) == 1])
        """(n,) is the row before that of the tick before?"""
        kinds = self.model.bodies["kind"]
        self.free = np.flatnonzero(kinds == FREE).tolist()
        self.kinematic = np.flatnonzero(kinds == KINEMATIC).tolist()
        self.moving = moving_bodies(self.model.bodies)
        if self.moving and tuple(self.moving) != tuple(log.body_ids):
            raise LogError(f"{log.path} does not hold the states of the bodies that move")
        self.every = log.bodies_every if self.moving else 1
        self.states = log.bodies[span] if self.moving else np.zeros((len(self.ticks), 0), BODY_SAMPLE)
        self.known = self._known()
        self.names = self._names()
        shapes = _Shapes(self.model)
        self.shapes = [shapes.of(int(body["mesh_id"]), float(body["rounding"])) for body in self.model.bodies]
        tool = tool_triangles(self.model)
        self.has_mesh = tool is not None
        self.tip_radius = 0.0 if self.has_mesh else float(self.world["tip_radius"])
        self.shapes.append(shapes.of(int(self.world["tool_mesh_id"])) if self.has_mesh else Shape(np.zeros((1, 3, 3))))
        self._posed = self._posings(span.start)
        self.stiffness, self.damping, self.scale = (each[span] for each in gains_in_force(log.records, self.settings))
        own = float(self.settings["world_stiffness"])
        pull = np.where(self._posed_once(span), (own if own > 0.0 else self.stiffness) / self.scale, 0.0)
        self.stands = self._stands()
        """(n,) is the tool asked to stay where it is while forces are off or on their way out, as by the clutch?"""
        self.pull = np.where(self.stands, 0.0, pull)
        """(n,) stiffness of the spring that pulls the tool, in the scene, N/m; 0: nobody has"""
        self._poses: dict[tuple[int, int], Pose] = {}

    def __len__(self) -> int:
        return len(self.ticks)

    def _stands(self) -> np.ndarray:
        engaged = (EngagementState.ENGAGING, EngagementState.ACTIVE, EngagementState.HOLD)
        stands = self.follows & ~np.isin(self.output["state"], engaged)
        for what in ("position", "orientation"):
            same = self.output[f"goal_{what}"][1:] == self.output[f"proxy_{what}"][:-1]
            stands[1:] &= same.all(axis=1)
        return stands

    def _known(self) -> np.ndarray:
        """(n,) does the log hold the states of bodies after this tick?"""
        if self.every == 1:
            return np.ones(len(self.ticks), dtype=bool)
        return self.ticks % self.every == 0

    def _names(self) -> list[str]:
        names = self.log.assembly.get("body_names") or []
        if len(names) != self.tool:
            names = [f"body {body}" for body in range(self.tool)]
        return [*names, "tool"]

    def _posings(self, first: int) -> dict[int, tuple[np.ndarray, list[Pose]]]:
        """Held bodies that were posed anew: from which rows on (the first -1) they stand where."""
        records = self.log.records
        command = records["input"]["command"]
        done = (command["kind"] == CommandKind.POSE_BODY) & (records["output"]["command_result"] == CommandResult.DONE)
        found: dict[int, list[tuple[int, Pose]]] = {}
        for row in np.flatnonzero(done).tolist():
            values = command["values"][row]
            body = int(values[0])
            loaded = self.model.bodies[body]
            start = [(-1 - len(records), pose_of(loaded["position"], loaded["orientation"]))]
            found.setdefault(body, start).append((row - first, pose_of(values[1:4], values[4:8])))
        return {body: (np.array([row for row, _ in each]), [pose for _, pose in each]) for body, each in found.items()}

    def _posed_once(self, span: slice) -> np.ndarray:
        """(n,) has there been a device pose since the lease began? Without one the tool is held by nobody."""
        records = self.log.records
        owner = records["output"]["owner"]
        taken = records["input"]
        came = (taken["fresh"] != 0) & (taken["sample"]["valid"] != 0) & (taken["sample"]["session"] == owner)
        # A log that begins later says that there was one by the sample that it goes on with.
        came[:1] |= (taken["has_sample"][:1] != 0) & (taken["sample"]["session"][:1] == owner[:1])
        rows = np.arange(len(records))
        last_pose = np.maximum.accumulate(np.where(came, rows, -1))
        begun = np.maximum.accumulate(np.where(np.concatenate([[True], owner[1:] != owner[:-1]]), rows, -1))
        return ((owner != 0) & (last_pose >= begun))[span]

    def pose(self, body: int, row: int) -> Pose:
        """After the tick of this row."""
        key = (body, row)
        found = self._poses.get(key)
        if found is None:
            if len(self._poses) > 4 * (len(self.moving) + self.tool + 2):
                self._poses.clear()
            found = self._poses[key] = self._read_pose(body, row)
        return found

    def _read_pose(self, body: int, row: int) -> Pose:
        if body == self.tool:
            output = self.output[row]
            if not self.has_mesh:
                return Pose(np.array(output["proxy_position"]), np.eye(3))
            return pose_of(output["proxy_position"], output["proxy_orientation"])
        if body in self.moving:
            state = self.states[row, self.moving.index(body)]
            return pose_of(state["position"], state["orientation"])
        if body in self._posed:
            rows, poses = self._posed[body]
            return poses[int(np.searchsorted(rows, row, side="right")) - 1]
        loaded = self.model.bodies[body]
        return pose_of(loaded["position"], loaded["orientation"])

    def moves(self, body: int) -> bool:
        """Does it ever, by itself or by the hand?"""
        return body == self.tool or body in self.moving

    def is_ball(self, body: int) -> bool:
        """Is it a point with a radius, which turns about that point?"""
        return body != self.tool and bool(self.model.bodies["ball"][body])

    def way(self, body: int, row: int) -> Way:
        """How it went in the tick of this row: bodies at rest stand where they are in it.

        A ball goes straight, and how it turns, which no distance depends on, is left out.
        """
        shape = self.shapes[body]
        end = self.pose(body, row)
        start = self.pose(body, row - 1) if self.moves(body) else end
        if self.is_ball(body):
            end = Pose(end.position, start.rotation)
        return way(start, end, shape.centre, shape.core_radius)

    def state(self, body: int, row: int) -> Any:
        """BODY_SAMPLE of a body that moves."""
        return self.states[row, self.moving.index(body)]


def gains_in_force(records: np.ndarray, row: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n,) stiffness and damping at the device and scale after each record, as leases and commands set them; ``row``:
    SETTINGS."""
    count = len(records)
    output, command = records["output"], records["input"]["command"]
    done = output["command_result"] == CommandResult.DONE
    begun = np.concatenate([[False], (output["owner"][1:] != output["owner"][:-1]) & (output["owner"][1:] != 0)])
    gains, scales = (done & (command["kind"] == kind) for kind in (CommandKind.SET_GAINS, CommandKind.SET_SCALE))
    scale = np.full(count, float(row["scale"]))
    goals = {name: np.full(count, float(row[name])) for name in ("stiffness", "damping")}
    for k in np.flatnonzero(begun | gains | scales).tolist():
        values = command["values"][k]
        for place, (name, goal) in enumerate(goals.items()):
            if begun[k] or gains[k]:
                goal[k:] = row[name] if begun[k] else min(values[place], row[f"{name}_max"])
        if begun[k] or scales[k]:
            scale[k:] = row["scale"] if begun[k] else values[0]
    on = (output["state"] >= EngagementState.ENGAGING) & (output["state"] <= EngagementState.RELEASING)
    # The tick that ends a release ramps once more, unless another lease begins in it.
    on = (on | (output["event_from"] == EngagementState.RELEASING)) & ~begun
    steps = {name: float(row[f"{name}_max"]) / int(row["ramp_up_ticks"]) for name in goals}
    stiffness, damping = (ramped(goal, on, steps[name]) for name, goal in goals.items())
    return stiffness, damping, scale


def ramped(goal: np.ndarray, on: np.ndarray, step: float) -> np.ndarray:
    """(n,) a number that goes to its goal (n,) by at most ``step`` per row where ``on`` (n,), else at once."""
    value = goal.copy()
    for k in (np.flatnonzero(np.diff(goal)) + 1).tolist():
        row = k
        while row < len(goal) and on[row] and abs(goal[row] - value[row - 1]) > step:
            value[row] = value[row - 1] + math.copysign(step, goal[row] - value[row - 1])
            row += 1
    return value


class _Shapes:
    """Bodies that show the same share their shape."""

    def __init__(self, model: Any):
        self._model = model
        self._made: dict[tuple[int, float], Shape] = {}

    def of(self, mesh_id: int, rounding: float = 0.0) -> Shape:
        """Of a mesh and the radius (m) that it is rounded by."""
        if (mesh_id, rounding) not in self._made:
            self._made[mesh_id, rounding] = Shape(_mesh(self._model, mesh_id), rounding)
        return self._made[mesh_id, rounding]


def _mesh(model: Any, mesh_id: int) -> np.ndarray:
    mesh = model.meshes[mesh_id]
    first, count = int(mesh["triangle_first"]), int(mesh["triangle_count"])
    return np.array(model.triangles["vertices"][first : first + count])
