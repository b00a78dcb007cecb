"""Which bodies come near one another in a tick, how near at least on their whole ways, and at which points.

All of it from the logged poses and the meshes in the log, with :mod:`bridge.separation`; nothing of the engine.

On the way between two poses the distance is bounded from below: it cannot change faster than
:func:`bridge.verify.motions.relative_speed`, so a distance d at the middle of an interval of u proves d - speed half
over all of it. Intervals are halved until that is above zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bridge.separation import ends_beside, near_features, near_pairs, pair_distances, winding
from bridge.verify.history import History
from bridge.verify.motions import Pose, Way, relative_speed

FINEST = 2.0**-10
"""Shortest interval of u that is looked at."""
SLOPE = 0.5
"""A pair of near points is no contact where a surface beside it comes nearer by a steeper slope than this, rad. The
engine drops what slopes less; what is kept here and not there only makes the certificates milder."""
SQUARE = 1e-6
"""Slope, rad, of the nearest point of an edge to the end of a segment beside it: rounding."""
SAME = 1e-9
"""Share of the size of a triangle within which a point lies on it."""
CHUNK = 20_000


@dataclass
class Points:
    """Pairs of near points of two bodies."""

    first: np.ndarray
    """(k, 3) on the first body, scene, m"""
    second: np.ndarray
    """(k, 3) on the second"""
    normal: np.ndarray
    """(k, 3) unit, from the first to the second"""
    gap: np.ndarray
    """(k,) m"""
    slope: np.ndarray
    """(k,) sine of the steepest way on which a surface beside it comes nearer; 0: a local minimum of the distance"""


@dataclass
class Meeting:
    """Two bodies that come within reach in a tick."""

    first: int
    second: int
    start: float
    """Distance at its start, m; inf: out of reach"""
    least: float
    """Least one measured on the way and at its end"""
    proven: float
    """The distance stays above this all along the way, at least"""
    inside: bool
    """At its end one of them is inside the other"""
    points: Points | None
    """At its start, where asked for"""


class Neighbours:
    """Looks at the pairs of bodies of a log, row by row."""

    def __init__(self, history: History):
        self._history = history
        bodies = range(history.tool + 1)
        self.pairs = [
            (i, j)
            for i in bodies
            for j in bodies
            if i < j
            and (history.moves(i) or history.moves(j))
            and (j == history.tool or history.moves(i) or history.moves(j))
        ]
        self._placed: dict[int, tuple[Pose, np.ndarray]] = {}
        self._last: dict[tuple[int, int], tuple[Way, Way, bool, Meeting]] = {}
        self._radii = np.array([shape.radius for shape in history.shapes])
        self.reach = float(history.world["eps_break"])

    def _triangles(self, body: int, pose: Pose) -> np.ndarray:
        """(n, 3, 3) of a body at a pose; what stands is placed once."""
        kept = self._placed.get(body)
        if kept is not None and kept[0] is pose:
            return kept[1]
        placed = pose.place(self._history.shapes[body].triangles)
        if body != self._history.tool and not self._history.moves(body):
            self._placed[body] = (pose, placed)
        return placed

    def standing(self, row: int) -> list[Meeting]:
        """Distances after a tick, of a row of which the one before is not known."""
        history = self._history
        found = []
        poses = [history.pose(body, row) for body in range(history.tool + 1)]
        ways = [
            Way(p, p, p.place(s.centre), np.zeros(3), np.zeros(3), s.centre, s.core_radius)
            for p, s in self._with(poses)
        ]
        for first, second in self._close(ways):
            found.append(self._meet(first, second, ways[first], ways[second], False))
        return found

    def _with(self, poses: list[Pose]) -> Iterator[tuple]:
        return zip(poses, self._history.shapes, strict=True)

    def moving(self, row: int, points: bool) -> list[Meeting]:
        """What comes near in the tick of a row that follows the one before it; ``points``: list them too."""
        ways = [self._history.way(body, row) for body in range(self._history.tool + 1)]
        if not self._history.has_mesh:
            pairs = [pair for pair in self._close(ways) if pair[1] != self._history.tool]
        else:
            pairs = self._close(ways)
        return [self._meet(first, second, ways[first], ways[second], points) for first, second in pairs]

    def _close(self, ways: list[Way]) -> list[tuple[int, int]]:
        """Pairs whose balls come within reach."""
        if not self.pairs:
            return []
        pairs = np.array(self.pairs)
        centres = np.array([each.pivot for each in ways])
        lengths = np.array([each.length for each in ways])
        apart = np.linalg.norm(centres[pairs[:, 0]] - centres[pairs[:, 1]], axis=1)
        room = (self._radii + lengths)[pairs].sum(axis=1) + self.reach
        return [tuple(pair) for pair in pairs[apart <= room].tolist()]

    def _meet(self, first: int, second: int, one: Way, two: Way, points: bool) -> Meeting:
        """Look at two bodies, or remember how it was where both stand as they did in the last tick looked at."""
        kept = self._last.get((first, second))
        if kept is not None and kept[2] == points and _stands(one, kept[0]) and _stands(two, kept[1]):
            return kept[3]
        found = self._look_at(first, second, one, two, points)
        self._last[first, second] = (one, two, points, found)
        return found

    def _look_at(self, first: int, second: int, one: Way, two: Way, points: bool) -> Meeting:
        speed = relative_speed(one, two)
        s, t = self._triangles(first, one.start), self._triangles(second, two.start)
        rounding = self._rounding(first, second)
        # all that is a contact, and all that may come as near as bodies may at all
        reach = max(self.reach, float(self._history.world["eps_alert"]) + speed)
        pairs = near_pairs(s, t, reach + sum(rounding))
        if len(pairs) == 0:
            return Meeting(first, second, np.inf, np.inf, self.reach, self._inside(first, second, one, two), None)
        here = _distances(s, t, pairs) - sum(rounding)
        near = None
        if points:
            close = pairs[here <= self.reach]
            near = contact_points(s[close[:, 0]], t[close[:, 1]], self.reach, rounding) if len(close) else None
        start = float(here.min())
        keep = here <= reach
        least, proven = start, min(self.reach, start)
        if speed > 0.0:
            least, proven = self._along(first, second, one, two, pairs[keep], here[keep], speed)
        inside = self._inside(first, second, one, two)
        return Meeting(first, second, start if start <= self.reach else np.inf, least, proven, inside, near)

    def _along(
        self, first: int, second: int, one: Way, two: Way, pairs: np.ndarray, start: np.ndarray, speed: float
    ) -> tuple[float, float]:
        """(least distance measured, what is proven) of pairs of triangles on their way; start: distances there."""
        rounding = sum(self._rounding(first, second))
        mine, other = self._history.shapes[first].triangles, self._history.shapes[second].triangles
        if len(pairs) == 0:
            return np.inf, self.reach
        mine, other = mine[pairs[:, 0]], other[pairs[:, 1]]
        whole = np.arange(len(pairs))

        def measure(u: float, among: np.ndarray) -> np.ndarray:
            s, t = one.pose(u).place(mine[among]), two.pose(u).place(other[among])
            rows = range(0, len(s), CHUNK)
            return np.concatenate([pair_distances(s[k : k + CHUNK], t[k : k + CHUNK]) for k in rows]) - rounding

        end = measure(1.0, whole)
        least = min(float(start.min()), float(end.min()))
        proven = self.reach
        pending = [(0.0, 1.0, start, end, whole)]
        while pending:
            a, b, before, after, among = pending.pop()
            # what is proven over an interval from both of its ends
            floor = 0.5 * (before + after - speed * (b - a))
            low = float(floor.min())
            if low > 0.1 * least:
                proven = min(proven, low)
                continue
            if b - a <= FINEST:
                proven = min(proven, low)
                continue
            among_, before_, after_ = (
                among[floor <= self.reach],
                before[floor <= self.reach],
                after[floor <= self.reach],
            )
            if len(among_) == 0:
                continue
            middle = 0.5 * (a + b)
            now = measure(middle, among_)
            least = min(least, float(now.min()))
            if least <= 0.0:
                return least, least
            pending.append((a, middle, before_, now, among_))
            pending.append((middle, b, now, after_, among_))
        return least, proven

    def _rounding(self, first: int, second: int) -> tuple[float, float]:
        """Radii (m) that the triangles of two bodies are rounded by."""
        return self._history.shapes[first].rounding, self._history.shapes[second].rounding

    def _inside(self, first: int, second: int, one: Way, two: Way) -> bool:
        """Is at the end a corner of one inside the other? Where surfaces do not cross one corner tells of all."""
        mine, other = self._history.shapes[first], self._history.shapes[second]
        s, t = mine.triangles[0, 0], other.triangles[0, 0]
        s, t = one.end.place(s), two.end.place(t)
        a, b = one.end.place(mine.centre), two.end.place(other.centre)
        if other.closed and np.linalg.norm(s - b) <= other.radius:
            local = (s - two.end.position) @ two.end.rotation
            if abs(winding(local, other.triangles)) > 0.5:
                return True
        if mine.closed and np.linalg.norm(t - a) <= mine.radius:
            local = (t - one.end.position) @ one.end.rotation
            if abs(winding(local, mine.triangles)) > 0.5:
                return True
        return False


def _stands(one: Way, before: Way) -> bool:
    """Does a body stand, to the bit, where it stood before?"""
    return all(
        np.array_equal(a.position, b.position) and np.array_equal(a.rotation, b.rotation)
        for a, b in ((one.start, before.start), (one.end, before.end), (one.start, one.end))
    )


def _distances(s: np.ndarray, t: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    parts = []
    for k in range(0, len(pairs), CHUNK):
        rows = pairs[k : k + CHUNK]
        parts.append(pair_distances(s[rows[:, 0]], t[rows[:, 1]]))
    return np.concatenate(parts)


def contact_points(
    s: np.ndarray, t: np.ndarray, reach: float, rounding: tuple[float, float] = (0.0, 0.0)
) -> Points | None:
    """Near points of pairs of triangles (k, 3, 3), each once, less those beside which a surface comes nearer.

    Edges and corners of neighbouring triangles tell the same points several times. ``rounding``: radii (m) that both
    are rounded by; the points are then on the rounded surfaces.
    """
    first, second = near_features(s, t, reach + sum(rounding))
    ends, edges = ends_beside(s, t, reach + sum(rounding))
    others, sides = ends_beside(t, s, reach + sum(rounding))
    first, second = np.concatenate([first, ends, sides]), np.concatenate([second, edges, others])
    beside = np.repeat([0, 1, 2], [len(first) - len(ends) - len(others), len(ends), len(others)])
    way = second - first
    gap = np.linalg.norm(way, axis=1)
    some = gap > 0.0
    first, second, way, gap, beside = first[some], second[some], way[some], gap[some], beside[some]
    if len(gap) == 0:
        return None
    size = float(np.ptp(np.concatenate([s, t]).reshape(-1, 3), axis=0).max())
    rounded = np.round(np.concatenate([first, second], axis=1) / (SAME * size)).astype(np.int64)
    _, rows = np.unique(rounded, axis=0, return_index=True)
    first, second, normal, gap = first[rows], second[rows], (way / gap[:, None])[rows], gap[rows]
    on = SAME * size
    mine, other = _slopes(np.unique(s, axis=0), first, normal, on), _slopes(np.unique(t, axis=0), second, -normal, on)
    slope = np.maximum(mine, other)
    # an end of a segment is near what is square to it only
    askew = np.choose(beside[rows], (0.0 * slope, other, mine)) > SQUARE
    good = (slope <= np.sin(SLOPE)) & ~askew
    if not good.any():
        return None
    first, second, normal = first[good], second[good], normal[good]
    return Points(
        first + rounding[0] * normal, second - rounding[1] * normal, normal, gap[good] - sum(rounding), slope[good]
    )


def _slopes(triangles: np.ndarray, points: np.ndarray, normals: np.ndarray, on: float) -> np.ndarray:
    """(k,) how steeply, as a sine, triangles (n, 3, 3) that hold a point (k, 3) go on from there along its normal."""
    answer = np.zeros(len(points))
    step = max(CHUNK // max(len(triangles), 1), 1)
    low, high = triangles.min(axis=1) - on, triangles.max(axis=1) + on
    for k in range(0, len(points), step):
        p, n = points[k : k + step], normals[k : k + step]
        i, j = np.nonzero(np.all((p[:, None] >= low[None]) & (p[:, None] <= high[None]), axis=2))
        if len(i) == 0:
            continue
        spot = np.repeat(p[i][:, None], 3, axis=1)
        held = pair_distances(spot, triangles[j]) <= on
        i, j = i[held], j[held]
        arms = triangles[j] - p[i][:, None]
        lengths = np.linalg.norm(arms, axis=2)
        rise = np.einsum("kvc,kc->kv", arms, n[i]) / np.where(lengths > on, lengths, np.inf)
        np.maximum.at(answer, k + i, rise.max(axis=1))
    return answer
