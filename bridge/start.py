"""Is the place where the tool starts free, by how much is it not, and which way out is short.

The depth of a penetration is given as the shortest translation found that parts tool and body: each one was tried and
leaves them apart, and a shorter one may exist along a direction that was not tried.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.scene.frames import place
from bridge.scene.topology import winding_number
from rtcore.collision.mesh_distance import mesh_distance
from rtcore.collision.nearest import clearance
from rtcore.collision.overlap import place_pair
from rtcore.collision.pair_state import make_query_work
from rtcore.geometry.topology import components
from rtcore.model import Model
from rtcore.motion import still
from rtcore.state import make_state
from rtcore.tables import HIT, PLACEMENT, RELATIVE

if TYPE_CHECKING:
    from bridge.assemble import PlacedMesh
    from bridge.scene.cache import PreparedMesh

BOUND_SHARE = 0.5
"""Farthest that a start is moved, as a share of the diagonal of the scene's box."""
WHOLE = 0.5
"""Winding number from which a point is inside a closed body."""
MOST_PARTS = 64
"""Unconnected parts of a mesh, each of which is looked for inside the other one."""
MOST_PAIRS = 2000
"""Pairs of bodies that are looked at for overlap among themselves."""
SMALLEST = 1e-200
"""m: with this as limit only surfaces that cross are found, not those that touch."""
GROWTH = 1.5
"""Ratio of the lengths of translations that are tried along one direction."""
TOLERANCE = 1e-3
"""To which a length is narrowed down, as a share of it."""
TURNS = (0.5, 0.25, 0.12, 0.06, 0.03)
"""Angles (rad) by which the best direction is varied."""
MOST_STEPS = 20
"""Variations at each of these angles."""
ROUNDS = 6
"""Bodies that the tool is moved out of one after the other, to find a direction that serves all."""

Free = Callable[[np.ndarray], bool]
"""May the tool be moved by this much, (3,) m?"""


@dataclass(frozen=True)
class Trouble:
    """A body that the start is not free of."""

    body_id: int
    gap: float
    """Distance of the surfaces, m; 0 or less where they meet."""
    kind: str
    """`near`, `crosses`, `inside` (the tool is wholly in the body) or `around` (the body is wholly in the tool)"""
    normals: np.ndarray
    """(k, 3) scene, normals of the triangles that are nearest or cross"""


class Start:
    """The tool beside the bodies of a scene, at one orientation and any place."""

    def __init__(
        self,
        model: Model,
        placed: "Sequence[PlacedMesh]",
        tool: "PreparedMesh | None",
        orientation: Sequence[float],
        needed: float,
        rounding: float = 0.0,
    ) -> None:
        """Tool: its mesh, or None for the sphere tip of the model; needed: gap that makes a place free, m.

        rounding: the tool's surface is so far round its mesh, m.
        """
        self._model = model
        self._placed = placed
        self._tool = tool
        self._orientation = tuple(float(x) for x in orientation)
        self._turn = Rotation.from_quat(self._orientation)
        self._radius = float(model.world["tip_radius"][0])
        self._rounding = rounding
        self.needed = needed
        self._boxes = np.array([body.box() for body in placed])
        self._work = make_query_work()
        if tool is None:
            self._state = make_state(model, (0.0, 0.0, 0.0))
            self._own = np.full((1, 3), 0.0)
            self._parts = np.zeros((1, 3))
            margin = self._radius
        else:
            self._own = self._turn.apply(tool.vertices[np.unique(tool.faces)])
            self._parts = self._turn.apply(_one_of_each_part(tool))
            margin = rounding
        self._box = np.array([self._own.min(axis=0) - margin, self._own.max(axis=0) + margin])

    @property
    def diagonal(self) -> float:
        """Of the tool's box, m."""
        return float(np.linalg.norm(self._box[1] - self._box[0]))

    @property
    def scene_diagonal(self) -> float:
        """Of the box round all bodies, m."""
        return float(np.linalg.norm(self._boxes[:, 1].max(axis=0) - self._boxes[:, 0].min(axis=0)))

    def gap(self, body_id: int, position: np.ndarray, limit: float) -> tuple[float, np.ndarray]:
        """Distance of the surfaces (m, or `limit` where it is not below that), and normals (k, 3) where it is least.

        That of surfaces of which one is rounded is below 0 where they cross.
        """
        if self._apart(body_id, position) >= limit:
            return limit, np.zeros((0, 3))
        if self._tool is None:
            one = self._model._replace(bodies=self._model.bodies[body_id : body_id + 1])
            state = self._state._replace(poses=self._state.poses[body_id : body_id + 1])
            return min(float(clearance(one, state, position)) - self._radius, limit), np.zeros((0, 3))
        body = self._placed[body_id]
        model = self._model
        first = int(model.meshes["node_first"][model.bodies["mesh_id"][body_id]])
        second = int(model.meshes["node_first"][model.world["tool_mesh_id"][0]])
        placement = _placement(body.pose, (position, self._orientation), model.nodes[second])
        hit = np.zeros(1, HIT)[0]
        rounding = body.rounding + self._rounding
        distance = float(
            mesh_distance(model.nodes, model.triangles, first, second, placement, limit + rounding, self._work[0], hit)
        )
        if hit["found"] == 0:
            return limit, np.zeros((0, 3))
        if rounding > 0.0:
            return distance - rounding, Rotation.from_quat(body.pose[1]).apply(hit["normal"])[None]
        own = Rotation.from_quat(body.pose[1]).apply(model.triangles[hit["first_triangle"]]["normal"])
        other = self._turn.apply(model.triangles[hit["second_triangle"]]["normal"])
        return distance, np.array([own, other])

    def winding(self, body_id: int, position: np.ndarray) -> float:
        """How often the body winds round the tool where that is most: 1 inside a closed body, -1 in a room."""
        body = self._placed[body_id]
        if body.rounding > 0.0 or self._apart(body_id, position) > 0.0:
            return 0.0  # what is in a rounded body is nearer to its core than its radius
        local = Rotation.from_quat(body.pose[1]).apply(self._parts + position - body.pose[0], inverse=True)
        low, high = body.mesh.vertices.min(axis=0), body.mesh.vertices.max(axis=0)
        near = local[np.all((local >= low) & (local <= high), axis=1)]
        inside = [winding_number(point, body.mesh.vertices, body.mesh.faces) for point in near]
        return max(inside, key=abs, default=0.0)

    def trouble(self, body_id: int, position: np.ndarray, needed: float | None = None) -> Trouble | None:
        """What keeps this place from being free of a body; None when it is free.

        needed: gap that is asked for, m; the one of the start unless it is given. 0 asks that they do not meet.
        """
        wanted = self.needed if needed is None else needed
        gap, normals = self.gap(body_id, position, max(wanted, 1e-9 * self.scene_diagonal))
        if gap <= 0.0:
            return Trouble(body_id, gap, "crosses", normals)
        if self.winding(body_id, position) > WHOLE:
            return Trouble(body_id, gap, "inside", normals)
        if self._tool is not None and self._holds(body_id, position):
            return Trouble(body_id, gap, "around", normals)
        return Trouble(body_id, gap, "near", normals) if gap < wanted else None

    def troubles(self, position: np.ndarray) -> list[Trouble]:
        """Of all bodies."""
        found = (self.trouble(i, position) for i in range(len(self._placed)))
        return [trouble for trouble in found if trouble is not None]

    def depth(self, trouble: Trouble, position: np.ndarray) -> float | None:
        """The shortest translation found that leaves tool and body apart, m; None for one that is only near."""
        way = None if trouble.kind == "near" else self.parting(trouble, position, 0.0)
        return None if way is None else float(np.linalg.norm(way))

    def parting(self, trouble: Trouble, position: np.ndarray, gap: float) -> np.ndarray | None:
        """The shortest translation found that leaves tool and body apart by a gap (m), (3,) m; None for none."""
        body_id = trouble.body_id
        reach = float(np.linalg.norm(self._boxes[body_id, 1] - self._boxes[body_id, 0])) + self.diagonal
        return _shortest(
            lambda shift: self.trouble(body_id, position + shift, gap) is None,
            self._directions([trouble], position),
            1.01 * reach + gap,
            1e-3 * min(self.needed, reach),
        )

    def way_out(self, position: np.ndarray, bound: float) -> np.ndarray | None:
        """The shortest translation found that makes the place free of all bodies, (3,) m; None for none within bound.

        Tried are the directions of `_directions`, that of leaving the bodies one after the other, and small turns of
        the best one; along each, lengths in a geometric row, the first free one then narrowed down.
        """
        step = 0.1 * self.needed
        troubles = self.troubles(position)
        if not troubles:
            return np.zeros(3)
        directions = self._directions(troubles, position)
        chained = np.zeros(3)
        for _ in range(ROUNDS):
            left = self.troubles(position + chained)
            if not left:
                break
            at = position + chained
            ids = [trouble.body_id for trouble in left]
            way = _shortest(self._free_of(ids, at), self._directions(left, at), bound, step)
            if way is None:
                break
            chained += way
        if np.any(chained):
            directions.append(chained / np.linalg.norm(chained))
        return _shortest(self._free_of(range(len(self._placed)), position), directions, bound, step)

    def _free_of(self, body_ids: Sequence[int], position: np.ndarray) -> Free:
        """Is the place free of these bodies when it is moved by a shift?"""

        def free(shift: np.ndarray) -> bool:
            return all(self.trouble(i, position + shift) is None for i in body_ids)

        return free

    def _apart(self, body_id: int, position: np.ndarray) -> float:
        """A lower bound on the distance of tool and body, from their boxes, m; 0 where those overlap."""
        low, high = self._box + position
        gaps = np.maximum(self._boxes[body_id, 0] - high, low - self._boxes[body_id, 1])
        return float(np.linalg.norm(np.maximum(gaps, 0.0))) * (1.0 - 1e-12)

    def _holds(self, body_id: int, position: np.ndarray) -> bool:
        """Is a part of the body wholly inside the tool's mesh, if they do not cross?"""
        assert self._tool is not None
        if self._rounding > 0.0:
            return False  # what is in it is nearer to its core than its radius
        body = self._placed[body_id]
        points = self._turn.apply(place(body.pose, _one_of_each_part(body.mesh)) - position, inverse=True)
        low, high = self._tool.vertices.min(axis=0), self._tool.vertices.max(axis=0)
        near = points[np.all((points >= low) & (points <= high), axis=1)]
        return any(winding_number(point, self._tool.vertices, self._tool.faces) > WHOLE for point in near)

    def _directions(self, troubles: Iterable[Trouble], position: np.ndarray) -> list[np.ndarray]:
        """Unit vectors to try: 26 round about, the axes of tool and bodies, normals, and away from the bodies."""
        found = [np.array((i, j, k), float) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]
        found += [sign * axis for axis in self._turn.as_matrix().T for sign in (1.0, -1.0)]
        for trouble in troubles:
            body = self._placed[trouble.body_id]
            found += [s * axis for axis in Rotation.from_quat(body.pose[1]).as_matrix().T for s in (1.0, -1.0)]
            found += [s * normal for normal in trouble.normals for s in (1.0, -1.0)]
            found.append(position + self._box.mean(axis=0) - self._boxes[trouble.body_id].mean(axis=0))
        units: list[np.ndarray] = []
        for vector in found:
            length = np.linalg.norm(vector)
            if length > 1e-12 and all(vector @ unit < (1.0 - 1e-9) * length for unit in units):
                units.append(vector / length)
        return units


def overlapping(model: Model, placed: "Sequence[PlacedMesh]") -> tuple[list[tuple[str, str]], bool]:
    """Names of bodies whose surfaces cross, pair by pair, and whether MOST_PAIRS ended the search."""
    boxes = np.array([body.box() for body in placed])
    work = make_query_work()
    hit = np.zeros(1, HIT)[0]
    found: list[tuple[str, str]] = []
    looked = 0
    for i in range(len(placed)):
        low, high = boxes[i]
        near = np.flatnonzero(np.all((boxes[:, 0] <= high) & (boxes[:, 1] >= low), axis=1))
        for j in near[near > i].tolist():
            if looked == MOST_PAIRS:
                return found, True
            looked += 1
            rounding = placed[i].rounding + placed[j].rounding
            roots = [int(model.meshes["node_first"][model.bodies["mesh_id"][k]]) for k in (i, j)]
            placement = _placement(placed[i].pose, placed[j].pose, model.nodes[roots[1]])
            # fmt: off
            mesh_distance(
                model.nodes, model.triangles, roots[0], roots[1], placement, SMALLEST + rounding, work[0], hit,
            )
            # fmt: on
            if hit["found"] == 1:
                found.append((placed[i].name, placed[j].name))
    return found, False


def _placement(
    first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, Sequence[float]], root: np.void
) -> np.void:
    """PLACEMENT of the second pose in the frame of the first; root: BOX_NODE of the second's mesh."""
    relative = np.zeros(1, RELATIVE)[0]
    placement = np.zeros(1, PLACEMENT)[0]
    for motion, (position, orientation) in ((relative["first"], first), (relative["second"], second)):
        still(motion, _numbers(position), _numbers(orientation))
    place_pair(relative, _numbers(root["centre"]), float(root["radius"]), 0.0, 0.0, placement)
    return placement


def _numbers(values: np.ndarray | Sequence[float]) -> Any:
    """A tuple of plain numbers, as kernels take them."""
    return tuple(float(value) for value in values)


def _one_of_each_part(mesh: "PreparedMesh") -> np.ndarray:
    """(k, 3) a vertex of each connected part, m, mesh frame; of the first MOST_PARTS parts."""
    faces = mesh.faces
    # fmt: off
    labels = components(
        len(mesh.vertices), np.concatenate([faces[:, 0], faces[:, 1]]), np.concatenate([faces[:, 1], faces[:, 2]]),
    )
    # fmt: on
    used = np.unique(faces)
    _, first = np.unique(labels[used], return_index=True)
    return mesh.vertices[used[np.sort(first)[:MOST_PARTS]]]


def _shortest(free: Free, directions: Sequence[np.ndarray], bound: float, step: float) -> np.ndarray | None:
    """The shortest translation found within bound (m) that is free; step: the shortest one that is tried, m."""
    best: np.ndarray | None = None
    length = bound
    for direction in directions:
        found = _along(free, direction, length, step)
        if found is not None:
            best, length = direction, found
    if best is None:
        return None
    for turn in TURNS:
        for _ in range(MOST_STEPS):
            shorter = (1.0 - 5.0 * TOLERANCE) * length
            side = next((side for side in _around(best, turn) if free(side * shorter)), None)
            if side is None:
                break
            best, length = side, _narrowed(free, side, 0.0, shorter)
    return best * length


def _along(free: Free, direction: np.ndarray, bound: float, step: float) -> float | None:
    """The first length along a direction that was found free, below bound; None for none."""
    tried = 0.0
    length = step
    while tried < bound * (1.0 - TOLERANCE):
        length = min(length, bound * (1.0 - TOLERANCE))
        if free(direction * length):
            return _narrowed(free, direction, tried, length)
        tried = length
        length *= GROWTH
    return None


def _narrowed(free: Free, direction: np.ndarray, blocked: float, open_: float) -> float:
    """A free length that is TOLERANCE of itself above one that is not, between the two given ones."""
    while open_ - blocked > TOLERANCE * open_:
        middle = 0.5 * (blocked + open_)
        if free(direction * middle):
            open_ = middle
        else:
            blocked = middle
    return open_


def _around(direction: np.ndarray, angle: float) -> list[np.ndarray]:
    """Eight unit vectors at an angle (rad) to a unit vector."""
    side = np.cross(direction, np.eye(3)[int(np.argmin(np.abs(direction)))])
    side /= np.linalg.norm(side)
    other = np.cross(direction, side)
    turns = (2.0 * math.pi * k / 8.0 for k in range(8))
    return [math.cos(angle) * direction + math.sin(angle) * (math.cos(a) * side + math.sin(a) * other) for a in turns]
