"""Independent truth for the tests: distances by other formulas than the kernels use, in numpy, over all triangles.

Nothing here imports from rtcore.
"""

from fractions import Fraction
from itertools import pairwise

import numpy as np


def point_triangles(point: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Distance from one point (3,) to each triangle of corners (m, 3, 3): barycentric solve, else the edges."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    best = np.minimum(
        np.minimum(_point_segments(point, a, b), _point_segments(point, b, c)), _point_segments(point, c, a)
    )
    u, v, w = b - a, c - a, point - a
    normal = np.cross(u, v)
    square = np.einsum("ij,ij->i", normal, normal)
    with np.errstate(invalid="ignore", divide="ignore"):
        gamma = np.einsum("ij,ij->i", np.cross(u, w), normal) / square
        beta = np.einsum("ij,ij->i", np.cross(w, v), normal) / square
        height = np.abs(np.einsum("ij,ij->i", w, normal)) / np.sqrt(square)
    inside = (square > 0) & (gamma >= 0) & (beta >= 0) & (gamma + beta <= 1)
    return np.where(inside, np.minimum(height, best), best)  # the edges are no farther; a needle's height may seem so


def _point_segments(point: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    d = b - a
    square = np.einsum("ij,ij->i", d, d)
    t = np.einsum("ij,ij->i", point - a, d) / np.where(square > 0, square, 1.0)
    return np.linalg.norm(point - a - np.clip(t, 0, 1)[:, None] * d, axis=1)


def _segment_segments(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Distance from the segment p-q to each segment a-b (m, 3): interior minimum, else the ends."""
    d, e, r = q - p, b - a, p - a
    dd, ee = d @ d, np.einsum("ij,ij->i", e, e)
    de, dr, er = e @ d, r @ d, np.einsum("ij,ij->i", e, r)
    best = np.minimum(_point_segments(p, a, b), _point_segments(q, a, b))
    for end in (a, b):
        s = np.clip((end - p) @ d / (dd if dd > 0 else 1.0), 0, 1)
        best = np.minimum(best, np.linalg.norm(p + s[:, None] * d - end, axis=1))
    determinant = dd * ee - de * de
    with np.errstate(invalid="ignore", divide="ignore"):
        s = (de * er - ee * dr) / determinant
        t = (dd * er - de * dr) / determinant
        inner = np.linalg.norm(r + s[:, None] * d - t[:, None] * e, axis=1)
    proper = (determinant > 1e-14 * dd * ee) & (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)
    return np.where(proper, np.minimum(best, np.where(proper, inner, np.inf)), best)


def segment_triangles(p: np.ndarray, q: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Distance from the segment p-q to each triangle: 0 where it crosses, else ends to faces or segment to edges."""
    best = np.minimum(point_triangles(p, corners), point_triangles(q, corners))
    for k in range(3):
        best = np.minimum(best, _segment_segments(p, q, corners[:, k], corners[:, (k + 1) % 3]))
    a, u, v = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.cross(u, v)
    d = q - p
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.einsum("ij,ij->i", a - p, normal) / (normal @ d)
        w = p + t[:, None] * d - a
        square = np.einsum("ij,ij->i", normal, normal)
        gamma = np.einsum("ij,ij->i", np.cross(u, w), normal) / square
        beta = np.einsum("ij,ij->i", np.cross(w, v), normal) / square
    crosses = (t >= 0) & (t <= 1) & (gamma >= 0) & (beta >= 0) & (gamma + beta <= 1)
    return np.where(crosses, 0.0, best)


def path_distance(path: np.ndarray, corners: np.ndarray) -> float:
    """Smallest distance from a polyline (n, 3) to any triangle."""
    if len(path) == 1:
        return float(point_triangles(path[0], corners).min())
    return min(float(segment_triangles(p, q, corners).min()) for p, q in pairwise(path))


def crosses_exactly(p: np.ndarray, q: np.ndarray, corners: np.ndarray) -> bool:
    """Does the segment p-q meet the triangle (3, 3)? Decided in exact rational arithmetic (touching counts)."""

    def sub(u: list, v: list) -> list:
        return [x - y for x, y in zip(u, v, strict=True)]

    def volume(u: list, v: list, w: list) -> Fraction:
        return (
            u[0] * (v[1] * w[2] - v[2] * w[1]) - u[1] * (v[0] * w[2] - v[2] * w[0]) + u[2] * (v[0] * w[1] - v[1] * w[0])
        )

    p, q, a, b, c = ([Fraction(float(x)) for x in row] for row in (p, q, *corners))
    low, high = volume(sub(b, a), sub(c, a), sub(p, a)), volume(sub(b, a), sub(c, a), sub(q, a))
    if low * high > 0 or low == high == 0:
        return False  # on one side; a path inside the plane of a triangle is caught by the distance tests
    d = sub(q, p)
    sides = [volume(d, sub(x, p), sub(y, p)) for x, y in ((a, b), (b, c), (c, a))]
    return all(s >= 0 for s in sides) or all(s <= 0 for s in sides)


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrix of a unit quaternion xyzw."""
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
