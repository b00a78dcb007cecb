"""Did a tool tip ever pass a surface? Decided in exact rational arithmetic, from way points and mesh files alone.

Nothing here comes from the mechanics: triangles are read with trimesh, posed with numpy, and each straight piece of the
tip's path is tested against every triangle whose box it meets. Signs of volumes are computed in floating point where an
error bound proves them and in exact rationals elsewhere, so a touch counts as a passage and nothing is missed.
"""

from fractions import Fraction

import numpy as np

_EPSILON = 2.0**-52


def _exact_volume(a, b, c, d) -> int:
    """Sign of the signed volume of the tetrahedron (a, b, c, d), exactly."""
    a, b, c, d = ([Fraction(float(x)) for x in p] for p in (a, b, c, d))
    u, v, w = ([p[k] - d[k] for k in range(3)] for p in (a, b, c))
    value = u[0] * (v[1] * w[2] - v[2] * w[1]) - u[1] * (v[0] * w[2] - v[2] * w[0]) + u[2] * (v[0] * w[1] - v[1] * w[0])
    return (value > 0) - (value < 0)


def _volume_sign(a, b, c, d) -> int:
    """Sign of a signed volume: floating point where its error bound decides, exact otherwise."""
    u, v, w = a - d, b - d, c - d
    plus = u[0] * v[1] * w[2] + u[1] * v[2] * w[0] + u[2] * v[0] * w[1]
    minus = u[0] * v[2] * w[1] + u[1] * v[0] * w[2] + u[2] * v[1] * w[0]
    value = plus - minus
    scale = np.abs(u).sum() * np.abs(v).sum() * np.abs(w).sum()  # above the sum of the six products' sizes
    if abs(value) > 32.0 * _EPSILON * scale:
        return 1 if value > 0 else -1
    return _exact_volume(a, b, c, d)


def segment_meets_triangle(p: np.ndarray, q: np.ndarray, triangle: np.ndarray) -> bool:
    """Whether the closed segment p-q and the closed triangle (3, 3) share a point that is not a mere coplanar graze.

    A segment that lies in the triangle's plane counts as meeting it when both are not provably apart in that plane's
    boxes: the tip keeps a gap, so such a case is already a failure.
    """
    a, b, c = triangle
    side_p, side_q = _volume_sign(a, b, c, p), _volume_sign(a, b, c, q)
    if side_p * side_q > 0:
        return False
    if side_p == 0 and side_q == 0:
        return True
    around = [_volume_sign(p, q, a, b), _volume_sign(p, q, b, c), _volume_sign(p, q, c, a)]
    return not (min(around) < 0 < max(around))


def passages(way_points: np.ndarray, triangles: np.ndarray, chunk: int = 4096) -> list[tuple[int, int]]:
    """Pairs (segment, triangle) where the polyline through way_points (n, 3) meets a triangle of (m, 3, 3), in m.

    Segment i runs from way point i to i + 1.
    """
    lower, upper = triangles.min(axis=1), triangles.max(axis=1)
    found = []
    starts, ends = way_points[:-1], way_points[1:]
    moving = np.flatnonzero(np.any(starts != ends, axis=1))
    for first in range(0, len(moving), chunk):
        ids = moving[first : first + chunk]
        low, high = np.minimum(starts[ids], ends[ids]), np.maximum(starts[ids], ends[ids])
        # Only triangles near this whole stretch can matter.
        near = np.flatnonzero(np.all(lower <= high.max(axis=0), axis=1) & np.all(upper >= low.min(axis=0), axis=1))
        for block in range(0, len(near), 512):
            some = near[block : block + 512]
            meets = np.all(low[:, None] <= upper[None, some], axis=2) & np.all(
                high[:, None] >= lower[None, some], axis=2
            )
            for i, j in zip(*np.nonzero(meets), strict=True):
                segment, triangle = int(ids[i]), int(some[j])
                if segment_meets_triangle(starts[segment], ends[segment], triangles[triangle]):
                    found.append((segment, triangle))
    return found


def distance_to_triangles(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Distance of each point (n, 3) to the nearest triangle of (m, 3, 3), in m: by its plane or its edges."""
    best = np.full(len(points), np.inf)
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1)
    unit = normal / np.where(length > 0, length, 1.0)[:, None]
    for i, point in enumerate(points):
        distance = np.full(len(triangles), np.inf)
        inside = length > 0
        for start, end in ((a, b), (b, c), (c, a)):
            edge = end - start
            along = np.einsum("ij,ij->i", point - start, edge) / np.maximum(np.einsum("ij,ij->i", edge, edge), 1e-300)
            nearest = start + np.clip(along, 0.0, 1.0)[:, None] * edge
            distance = np.minimum(distance, np.linalg.norm(point - nearest, axis=1))
            inside &= np.einsum("ij,ij->i", np.cross(edge, point - start), unit) >= 0
        height = np.abs(np.einsum("ij,ij->i", point - a, unit))
        best[i] = np.where(inside, np.minimum(distance, height), distance).min()
    return best


def tip_path(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Polyline of the tip through all ticks of a log, and the tick of each way point.

    records is a RECORD array (n,). Raises ValueError where one tick does not start where the last one ended: a tip that
    teleports has no path to check.
    """
    pieces, ticks, last = [], [], None
    for row in records:
        report = row["output"]["report"]
        path = report["path"][: report["path_count"]]
        if len(path) == 0:
            continue
        if last is not None and not np.array_equal(last, path[0]):
            raise ValueError(f"tick {row['tick']}: the tip starts at {path[0]} but the last tick ended at {last}")
        last = path[-1]
        if not np.array_equal(last, row["output"]["proxy_position"]):
            raise ValueError(f"tick {row['tick']}: the path does not end at the reported tip position")
        fresh = path if not pieces else path[1:]
        pieces.append(fresh)
        ticks.append(np.full(len(fresh), row["tick"]))
    if not pieces:
        return np.zeros((0, 3)), np.zeros(0, dtype=np.uint64)
    return np.concatenate(pieces), np.concatenate(ticks)
