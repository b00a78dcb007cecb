"""Do two meshes at given poses intersect, and how near are they? The off-line judge of "no penetration".

Intersection of two triangles is decided in exact integer arithmetic on the coordinates as they are (finite doubles);
closed triangles, so a touch counts. Distances are bounds that hold whatever the rounding (`tools.exact.triangles`).
Pairs are found by boxes alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from tools.exact.triangles import bounds

Point = tuple[int, int, int]
CHUNK = 256
"""Triangles of the first mesh looked at together."""


def _minus(a: Point, b: Point) -> Point:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def _dot(a: Point, b: Point) -> int:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Point, b: Point) -> Point:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _on_segment(p: Point, a: Point, b: Point) -> bool:
    u, v = _minus(a, p), _minus(b, p)
    return not any(_cross(u, v)) and _dot(u, v) <= 0


def _segments_meet(a: Point, b: Point, c: Point, d: Point) -> bool:
    e, f, w = _minus(b, a), _minus(d, c), _minus(c, a)
    normal = _cross(e, f)
    square = _dot(normal, normal)
    if square == 0:
        return _on_segment(a, c, d) or _on_segment(b, c, d) or _on_segment(c, a, b) or _on_segment(d, a, b)
    s, t = _dot(_cross(w, f), normal), _dot(_cross(w, e), normal)
    return _dot(w, normal) == 0 and 0 <= s <= square and 0 <= t <= square


def _segment_meets(p: Point, q: Point, a: Point, b: Point, c: Point) -> bool:
    """Whether the closed segment p q and the closed triangle a b c share a point."""
    sides = ((a, b), (b, c), (c, a))
    normal = _cross(_minus(b, a), _minus(c, a))
    if not any(normal):
        return any(_segments_meet(p, q, x, y) for x, y in sides)
    above, below = _dot(normal, _minus(p, a)), _dot(normal, _minus(q, a))
    if above == 0 == below:
        inside = all(_dot(normal, _cross(_minus(y, x), _minus(p, x))) >= 0 for x, y in sides)
        return inside or any(_segments_meet(p, q, x, y) for x, y in sides)
    if (above > 0) == (below > 0) and above != 0 != below:
        return False
    along = _minus(q, p)
    volumes = [_dot(along, _cross(_minus(x, p), _minus(y, p))) for x, y in sides]
    return min(volumes) >= 0 or max(volumes) <= 0


def triangles_meet(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two closed triangles (3, 3) share a point, exactly; they may be degenerate."""
    ratios = [[float(x).as_integer_ratio() for x in point] for point in (*first, *second)]
    scale = max(d for row in ratios for _, d in row)
    points: list[Point] = [tuple(n * (scale // d) for n, d in row) for row in ratios]  # type: ignore[misc]
    a, b = points[:3], points[3:]
    # Two triangles that meet, meet along a boundary of one of them.
    return any(
        _segment_meets(ours[i], ours[(i + 1) % 3], *theirs) for ours, theirs in ((a, b), (b, a)) for i in range(3)
    )


def near_pairs(first: np.ndarray, second: np.ndarray, reach: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All pairs (i, j) of triangles (n, 3, 3), (m, 3, 3) whose boxes are at most `reach` apart, in batches."""
    low_a, high_a = first.min(axis=1), first.max(axis=1)
    low_b, high_b = second.min(axis=1), second.max(axis=1)
    reach = reach * (1.0 + 1e-12)
    # Neighbours together: cells of a coarse grid, so that most of the other mesh is far from a whole chunk.
    span = np.maximum(np.ptp(low_a, axis=0).max(), 1e-300)
    cells = np.floor((low_a - low_a.min(axis=0)) / span * 12).astype(int)
    order = np.lexsort(cells.T)
    for start in range(0, len(order), CHUNK):
        ids = order[start : start + CHUNK]
        low, high = low_a[ids].min(axis=0) - reach, high_a[ids].max(axis=0) + reach
        others = np.flatnonzero(np.all(low_b <= high, axis=1) & np.all(high_b >= low, axis=1))
        if len(others) == 0:
            continue
        square = np.zeros((len(ids), len(others)))
        for k in range(3):
            gap = np.maximum(
                low_a[ids, k, None] - high_b[None, others, k], low_b[None, others, k] - high_a[ids, k, None]
            )
            square += np.maximum(gap, 0.0) ** 2
        i, j = np.nonzero(square <= reach * reach * (1.0 + 1e-12))
        if len(i):
            yield ids[i], others[j]


@dataclass(frozen=True)
class Judgement:
    """What is true of two meshes at their poses."""

    meeting: list[tuple[int, int]]
    """Pairs of triangles that share a point, exactly."""
    lower: float
    """The distance of the surfaces is at least this (m); 0 where they meet or rounding cannot tell."""
    upper: float
    """And at most this."""


def _small_batches(first: np.ndarray, second: np.ndarray, reach: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for i, j in near_pairs(first, second, reach):
        for start in range(0, len(i), 20000):
            yield i[start : start + 20000], j[start : start + 20000]


def judge(first: np.ndarray, second: np.ndarray) -> Judgement:
    """Judge two sets of triangles (n, 3, 3) and (m, 3, 3), m, one frame, coordinates taken as exact."""
    corners = cKDTree(second.reshape(-1, 3))
    reach = float(corners.query(first.reshape(-1, 3))[0].min())
    lower, upper = np.inf, reach * (1.0 + 1e-12)
    meeting = []
    for i, j in _small_batches(first, second, upper):
        low, high, _ = bounds(first[i], second[j])
        upper = min(upper, float(high.min()))
        lower = min(lower, float(low.min()))
        for k in np.flatnonzero(low <= 0.0):
            if triangles_meet(first[i[k]], second[j[k]]):
                meeting.append((int(i[k]), int(j[k])))
    # Pairs of boxes beyond the reach are at least that far apart.
    return Judgement(meeting, 0.0 if meeting else max(min(lower, upper), 0.0), 0.0 if meeting else upper)


def posed(triangles: np.ndarray, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
    """Triangles (n, 3, 3) of a mesh frame at a pose: position (3,) m, orientation (4,) xyzw, rounded to doubles."""
    x, y, z, w = np.asarray(orientation, dtype=float) / np.linalg.norm(orientation)
    matrix = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    return triangles @ matrix.T + np.asarray(position, dtype=float)
