"""Where a tool without mass goes: a share of the way that springs and contacts balance, and what contacts open it by.

The position pass moves the tool and bodies beside that way, without friction: by pushes along the normals of contacts
that would else end too near, or come too near within the tick. Those pushes are not in a log. Asked is whether there
are any that explain where the tool is. They are of contacts that open to eps_safety at most, at the rate by which they
begin or by their end, up to the second order of their turns: nothing else needs one. How far they move the tool has no
other bound: where a body turns fast beside it that may be more than eps_safety in a tick.

A pose that a screw ends at tells how it began, to rounding. So nothing is left to the size of the second order.
"""

from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from bridge.separation import pair_distances
from bridge.verify.history import History
from bridge.verify.motions import Pose, Way, left, way
from bridge.verify.near import SAME

HALVINGS = 12
"""How often the step of a tool may be halved."""
SOLVED = 1e-3
"""Share of eps_break to which the position pass is solved: its natural-map residual."""


class Opening:
    """The motion of the tool in the tick of a row."""

    def __init__(self, history: History, row: int, contacts: np.ndarray, reach: float, ratio: float):
        """``contacts``: those of the tool; ``reach``: m by which turns are counted; ``ratio``: k / k_r, 1/m^2."""
        self._history = history
        self._row = row
        self._contacts = contacts
        self._reach = reach
        start, end = history.pose(history.tool, row - 1), history.pose(history.tool, row)
        self._tool = way(start, end, np.zeros(3), reach)
        self.stands = bool(np.array_equal(start.position, end.position) and not self._tool.turn.any())
        self._fraction = float(history.report["fraction"][row])
        normal = contacts["normal"]
        self._near = contacts["gap"][:, None] * normal
        arms = contacts["point"] + self._near - start.position
        self._columns = np.concatenate([normal, reach * ratio * np.cross(arms, normal)], axis=1)

    def off(self, shift: np.ndarray, turn: np.ndarray, share: float | None) -> float:
        """How far the tool is from where it may be, m. ``shift`` (m), ``turn`` (rad): the way that balances; ``share``:
        how much of it was gone, None: any part."""
        if self._fraction == 0.0:
            return float(np.linalg.norm(self._tool.drift) + self._reach * np.linalg.norm(self._tool.turn))
        wanted = np.concatenate([shift, self._reach * turn])
        best = np.inf
        for halving in range(HALVINGS):
            time = self._fraction * 2.0**halving
            if time > 1.0:
                break
            columns = self._columns[self._may_push(time)]
            # screws lead straight to their end, or begin with the velocity of the solve
            for bow in (left(self._tool.turn / time), np.eye(3)):
                done = np.concatenate([bow @ self._tool.drift, self._reach * self._tool.turn])
                best = min(best, _rest(done, wanted, columns, share))
        return best

    def _may_push(self, time: float) -> np.ndarray:
        """(k,) contacts that open no farther than they must; ``time``: share of its motion that the tool executed."""
        history = self._history
        world: Any = history.world
        bodies: dict[int, Way] = {}
        found = np.zeros(len(self._contacts), dtype=bool)
        for k, contact in enumerate(self._contacts):
            body = int(contact["body_id"])
            if body not in bodies:
                bodies[body] = history.way(body, self._row)
            normal, gap = np.array(contact["normal"]), float(contact["gap"])
            p = np.array(contact["point"]) - history.shapes[body].rounding * normal
            q = np.array(contact["point"]) + self._near[k]
            room = max(float(world["eps_safety"]) - gap, 0.0) + SOLVED * float(world["eps_break"])
            room += _bend(self._tool, 1.0 / time) + _bend(bodies[body], 1.0 / time)
            begins = normal @ (_rate(self._tool, q) - _rate(bodies[body], p)) / time
            found[k] = begins <= room or self._ends(body, bodies[body], p, q, normal, 1.0 / time) - gap <= room
        return found

    def _ends(self, body: int, one: Way, p: np.ndarray, q: np.ndarray, normal: np.ndarray, u: float) -> float:
        """The gap of points p of a body and q of the tool after their motion: a normal stays, or turns with its face.

        Between edges it turns with both: there the distance of the triangles counts.
        """
        history = self._history
        first, second = _moved(one, p, u), _moved(self._tool, q, u)
        apart = second[0] - first[0]
        gaps = [float(n @ apart) for n in (normal, first[1] @ normal, second[1] @ normal)]
        s = one.pose(u).place(_holding(history.shapes[body].triangles, one.start, p))
        t = self._tool.pose(u).place(_holding(history.shapes[history.tool].triangles, self._tool.start, q))
        if len(s) and len(t):
            gaps.append(float(pair_distances(np.repeat(s, len(t), axis=0), np.tile(t, (len(s), 1, 1))).min()))
        return min(gaps) - history.shapes[body].rounding


def _holding(triangles: np.ndarray, pose: Pose, point: np.ndarray) -> np.ndarray:
    """(k, 3, 3) those at a pose that a point of the scene is on."""
    local = (point - pose.position) @ pose.rotation
    on = SAME * float(np.abs(triangles).max(initial=0.0) + np.linalg.norm(local))
    near = triangles[np.all((local >= triangles.min(axis=1) - on) & (local <= triangles.max(axis=1) + on), axis=1)]
    if len(near) == 0:
        return near
    return near[pair_distances(np.broadcast_to(local, near.shape).copy(), near) <= on]


def _rest(done: np.ndarray, wanted: np.ndarray, columns: np.ndarray, share: float | None) -> float:
    """(6,) motions: what pushes along columns (k, 6) and a share of the wanted one leave of what was done."""
    if share is None:
        shares, rest = nnls(np.concatenate([columns, wanted[None]]).T, done)
        if shares[-1] <= 1.0:
            return float(rest)
        share = 1.0
    done = done - share * wanted
    return float(nnls(columns.T, done)[1]) if len(columns) else float(np.linalg.norm(done))


def _rate(body: Way, point: np.ndarray) -> np.ndarray:
    """Velocity of a point at the start, m per way."""
    return body.drift + np.cross(body.turn, point - body.pivot)


def _bend(body: Way, u: float) -> float:
    """By how much the second order of a motion may change with what contacts open it by, m: twice what it can be."""
    return u * u * float(np.linalg.norm(body.turn)) * body.length


def _moved(body: Way, point: np.ndarray, u: float) -> tuple[np.ndarray, np.ndarray]:
    """Where a point is that begins there, scene, and what turned it."""
    turned = Rotation.from_rotvec(u * body.turn).as_matrix()
    return body.pivot + u * (left(u * body.turn) @ body.drift) + turned @ (point - body.pivot), turned
