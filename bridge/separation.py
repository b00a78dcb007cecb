"""How far apart triangle meshes are, told without the collision engine: slow, simple, in numpy.

All pairs of triangles whose boxes are near are measured one by one; no tree, no memory, nothing of `rtcore`. Used to
check runs of the daemon, and by `tools.scenes` to set up scenes. Balls and capsules are given as what they are rounded
about, a point or segment as a triangle without area, and their radius.
"""

import numpy as np

_CHUNK = 20_000
"""Pairs of triangles that are measured at once."""

_SMALL = 20_000
"""Products of two lists below this are compared pair by pair."""


def near_pairs(first: np.ndarray, second: np.ndarray, reach: float) -> np.ndarray:
    """(k, 2) numbers of the triangles (n, 3, 3) and (m, 3, 3) whose axis-parallel boxes are within ``reach`` (m)."""
    lower = [first.min(axis=1) - reach, second.min(axis=1)]
    upper = [first.max(axis=1) + reach, second.max(axis=1)]
    # only what is in the common box counts
    low, high = (
        np.maximum(lower[0].min(axis=0), lower[1].min(axis=0)),
        np.minimum(upper[0].max(axis=0), upper[1].max(axis=0)),
    )
    ids = [np.flatnonzero(np.all((lo <= high) & (up >= low), axis=1)) for lo, up in zip(lower, upper, strict=True)]
    found: list[np.ndarray] = []
    pending = [(ids[0], ids[1])]
    # both lists are halved in turn in the longest direction until the products are small
    while pending:
        a, b = pending.pop()
        if len(a) == 0 or len(b) == 0:
            continue
        if len(a) * len(b) <= _SMALL:
            meet = np.all(
                (lower[0][a][:, None] <= upper[1][b][None]) & (upper[0][a][:, None] >= lower[1][b][None]), axis=2
            )
            i, j = np.nonzero(meet)
            found.append(np.stack([a[i], b[j]], axis=1))
            continue
        side = 0 if len(a) >= len(b) else 1
        ids_here, other = (a, b) if side == 0 else (b, a)
        middle = 0.5 * (lower[side][ids_here] + upper[side][ids_here])
        k = int(np.argmax(np.ptp(middle, axis=0)))
        order = np.argsort(middle[:, k], kind="stable")
        for half in (ids_here[order[: len(order) // 2]], ids_here[order[len(order) // 2 :]]):
            low, high = lower[side][half].min(axis=0), upper[side][half].max(axis=0)
            rest = other[np.all((lower[1 - side][other] <= high) & (upper[1 - side][other] >= low), axis=1)]
            pending.append((half, rest) if side == 0 else (rest, half))
    return np.concatenate(found) if found else np.zeros((0, 2), dtype=int)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of rows (k, 3); numpy's own takes several times as long for short tables."""
    x, y, z = a.T
    u, v, w = b.T
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=1)


def _point_triangle(p: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Square distances of points (k, 3) whose foot lies inside triangles (k, 3, 3), inf for the others; the feet)."""
    u, v, w = t[:, 1] - t[:, 0], t[:, 2] - t[:, 0], p - t[:, 0]
    n = _cross(u, v)
    square = np.einsum("kc,kc->k", n, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        b = np.einsum("kc,kc->k", _cross(w, v), n) / square
        c = np.einsum("kc,kc->k", _cross(u, w), n) / square
        along = np.einsum("kc,kc->k", w, n) / square
        foot = p - along[:, None] * n
        height = along**2 * square
    return np.where((square > 0) & (b >= 0) & (c >= 0) & (b + c <= 1), height, np.inf), foot


def _segments(
    p0: np.ndarray, p1: np.ndarray, q0: np.ndarray, q1: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(Square distances of segments (k, 3); points of both that are nearest): Ericson 2005, section 5.1.9."""
    d, e, r = p1 - p0, q1 - q0, p0 - q0
    dd, ee, de = (np.einsum("kc,kc->k", x, y) for x, y in ((d, d), (e, e), (d, e)))
    dr, er = np.einsum("kc,kc->k", d, r), np.einsum("kc,kc->k", e, r)
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = dd * ee - de * de
        s = np.where(bottom > 1e-14 * dd * ee, np.clip((de * er - dr * ee) / bottom, 0.0, 1.0), 0.0)
        s = np.where(ee > 0.0, s, -dr / dd)  # the second one is a point
        t = np.where(ee > 0.0, (de * s + er) / ee, 0.0)
        s = np.where(t < 0.0, -dr / dd, np.where(t > 1.0, (de - dr) / dd, s))
        s = np.where(dd > 0.0, np.clip(s, 0.0, 1.0), 0.0)
    t = np.clip(t, 0.0, 1.0)
    gap = r + s[:, None] * d - t[:, None] * e
    return np.einsum("kc,kc->k", gap, gap), p0 + s[:, None] * d, q0 + t[:, None] * e


def _pierced(p: np.ndarray, q: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Whether segments (k, 3) go through triangles (k, 3, 3)."""
    way, a, b, c = q - p, t[:, 0] - p, t[:, 1] - p, t[:, 2] - p
    normal = _cross(b - a, c - a)
    above = np.einsum("kc,kc->k", a, normal)
    sides = above * (above - np.einsum("kc,kc->k", way, normal))
    # six times the volumes of p, q and each edge
    x, y, z = (np.einsum("kc,kc->k", way, _cross(u, v)) for u, v in ((a, b), (b, c), (c, a)))
    return (sides < 0) & (((x > 0) & (y > 0) & (z > 0)) | ((x < 0) & (y < 0) & (z < 0)))


_ONE, _OTHER = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
"""Edges of two triangles, each with each."""


def _edges(s: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ends (9 k, 3) of both edges of each pair of edges."""
    ends = s[:, _ONE], s[:, (_ONE + 1) % 3], t[:, _OTHER], t[:, (_OTHER + 1) % 3]
    return tuple(end.reshape(-1, 3) for end in ends)  # type: ignore[return-value]


def _corners(s: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each corner (6 k, 3), the next one of its triangle, and the other triangle (6 k, 3, 3)."""
    corner = np.concatenate([s, t], axis=1)
    after = np.concatenate([s[:, [1, 2, 0]], t[:, [1, 2, 0]]], axis=1)
    other = np.concatenate([np.repeat(t[:, None], 3, axis=1), np.repeat(s[:, None], 3, axis=1)], axis=1)
    return corner.reshape(-1, 3), after.reshape(-1, 3), other.reshape(-1, 3, 3)


def pair_distances(s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Distances (k,) of pairs of triangles (k, 3, 3); 0 where they cross."""
    corner, after, other = _corners(s, t)
    above = _point_triangle(corner, other)[0].reshape(-1, 6).min(axis=1)
    between = _segments(*_edges(s, t))[0].reshape(-1, 9).min(axis=1)
    best = np.minimum(above, between)
    best[_pierced(corner, after, other).reshape(-1, 6).any(axis=1)] = 0.0
    return np.sqrt(best)


def near_features(s: np.ndarray, t: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Where corners, edges and faces of pairs of triangles (k, 3, 3) are within ``reach`` (m) of one another.

    Returns points (m, 3) of the first and points (m, 3) of the second: of every pair its corners above a face, and what
    is nearest of any two edges.
    """
    corner, _, other = _corners(s, t)
    height, foot = _point_triangle(corner, other)
    length, p, q = _segments(*_edges(s, t))
    up = height <= reach * reach
    mine = np.tile(np.arange(6) < 3, len(s))[up, None]
    near = length <= reach * reach
    first = np.concatenate([np.where(mine, corner[up], foot[up]), p[near]])
    return first, np.concatenate([np.where(mine, foot[up], corner[up]), q[near]])


def triangles_distance(first: np.ndarray, second: np.ndarray, reach: float, rounding: float = 0.0) -> float:
    """Least distance of two sets of triangles (n, 3, 3), m; inf where it is above ``reach``, 0 where they cross.

    ``rounding``: sum of the radii (m) that both are rounded by, which the distance is less by; where rounded surfaces
    cross it is below 0.
    """
    reach += rounding
    pairs = near_pairs(first, second, reach)
    least = np.inf
    for start in range(0, len(pairs), _CHUNK):
        rows = pairs[start : start + _CHUNK]
        least = min(least, float(pair_distances(first[rows[:, 0]], second[rows[:, 1]]).min()))
    return least - rounding if least <= reach else np.inf


def ends_beside(s: np.ndarray, t: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Where ends of segments are within ``reach`` (m) of edges: corners of those triangles s (k, 3, 3) that have no
    area, and the nearest points of the edges of the triangles t (k, 3, 3); both (m, 3).
    """
    thin = ~_cross(s[:, 1] - s[:, 0], s[:, 2] - s[:, 0]).any(axis=1)
    end = s[thin][:, _ONE].reshape(-1, 3)
    start, stop = t[thin][:, _OTHER].reshape(-1, 3), t[thin][:, (_OTHER + 1) % 3].reshape(-1, 3)
    length, end, beside = _segments(end, end, start, stop)
    near = length <= reach * reach
    return end[near], beside[near]


def winding(point: np.ndarray, triangles: np.ndarray) -> float:
    """How often triangles (n, 3, 3) go round a point (3,): 1 inside a closed mesh, 0 outside.

    The sum of the solid angles (van Oosterom and Strackee 1983), over a whole turn.
    """
    a, b, c = (triangles[:, k] - point for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
    volume = np.einsum("nk,nk->n", a, _cross(b, c))
    ab, bc, ca = (np.einsum("nk,nk->n", v, w) for v, w in ((a, b), (b, c), (c, a)))
    return float(np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb).sum() / (2.0 * np.pi))


def is_closed(triangles: np.ndarray) -> bool:
    """Whether every edge of triangles (n, 3, 3) is passed as often one way as the other."""
    points, corners = np.unique(triangles.reshape(-1, 3), axis=0, return_inverse=True)
    corners = corners.reshape(-1, 3)
    ends = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]).astype(np.int64)
    there = np.sort(ends[:, 0] * len(points) + ends[:, 1])
    back = np.sort(ends[:, 1] * len(points) + ends[:, 0])
    return bool(np.array_equal(there, back))
