"""Plane outlines as signed distances (negative inside, m): what a sheet or a plate is cut to."""

import math
from collections.abc import Callable

import numpy as np

Outline = Callable[[np.ndarray], np.ndarray]
"""(n, 2) points -> (n,) distances"""


def disc(centre, radius: float) -> Outline:
    """A round hole or plate."""
    centre = np.asarray(centre, dtype=float)
    return lambda p: np.hypot(p[:, 0] - centre[0], p[:, 1] - centre[1]) - radius


def slot(a, b, radius: float) -> Outline:
    """All points within ``radius`` of the segment a-b."""
    a, d = np.asarray(a, dtype=float), np.asarray(b, dtype=float) - np.asarray(a, dtype=float)
    square = float(d @ d)

    def distance(p: np.ndarray) -> np.ndarray:
        t = np.clip(((p - a) @ d) / square, 0.0, 1.0)
        q = p - a - t[:, None] * d
        return np.hypot(q[:, 0], q[:, 1]) - radius

    return distance


def rectangle(centre, half, corner: float) -> Outline:
    """A rectangle of half sizes ``half`` with rounded corners."""
    centre, inner = np.asarray(centre, dtype=float), np.asarray(half, dtype=float) - corner

    def distance(p: np.ndarray) -> np.ndarray:
        q = np.abs(p - centre) - inner
        out = np.maximum(q, 0.0)
        return np.hypot(out[:, 0], out[:, 1]) + np.minimum(q.max(axis=1), 0.0) - corner

    return distance


def polygon(corners, corner: float) -> Outline:
    """A convex polygon (k, 2), counter-clockwise, with corners rounded to radius ``corner``."""
    corners = np.asarray(corners, dtype=float)
    edge = np.roll(corners, -1, axis=0) - corners
    normal = np.stack([edge[:, 1], -edge[:, 0]], axis=1) / np.linalg.norm(edge, axis=1)[:, None]
    offset = np.sum(normal * corners, axis=1) - corner
    # corners of the polygon moved inwards by the radius: each solves two edge equations
    inner = np.array([np.linalg.solve(normal[[k - 1, k]], offset[[k - 1, k]]) for k in range(len(corners))])
    along = np.roll(inner, -1, axis=0) - inner

    square = np.einsum("kc,kc->k", along, along)
    start = np.einsum("kc,kc->k", inner, along)

    def distance(p: np.ndarray) -> np.ndarray:
        t = np.clip((p @ along.T - start) / square, 0.0, 1.0)
        x = p[:, :1] - inner[:, 0] - t * along[:, 0]
        y = p[:, 1:] - inner[:, 1] - t * along[:, 1]
        nearest = np.sqrt((x * x + y * y).min(axis=1))
        inside = (p @ normal.T - offset).max(axis=1) < 0.0
        return np.where(inside, -nearest, nearest) - corner

    return distance


def polygon_ring(corners, corner: float, by: float, arc: int, edge: float) -> np.ndarray:
    """(n, 2) points on a rounded polygon moved outwards by ``by`` > -corner, counter-clockwise.

    Each rounded corner gets ``arc`` chords and each straight edge chords of about ``edge`` (m); the same arguments but
    another ``by`` give corresponding points.
    """
    corners = np.asarray(corners, dtype=float)
    ahead = np.roll(corners, -1, axis=0) - corners
    normal = np.stack([ahead[:, 1], -ahead[:, 0]], axis=1) / np.linalg.norm(ahead, axis=1)[:, None]
    offset = np.sum(normal * corners, axis=1) - corner
    inner = np.array([np.linalg.solve(normal[[k - 1, k]], offset[[k - 1, k]]) for k in range(len(corners))])
    points = []
    for k, centre in enumerate(inner):
        before, after = normal[k - 1], normal[k]
        angle = math.atan2(before[0] * after[1] - before[1] * after[0], float(before @ after))
        start = math.atan2(before[1], before[0])
        turn = start + angle * np.arange(arc + 1) / arc
        points.append(centre + (corner + by) * np.stack([np.cos(turn), np.sin(turn)], axis=1))
        following = inner[(k + 1) % len(inner)] + (corner + by) * after
        straight = following - points[-1][-1]
        pieces = max(1, round(float(np.linalg.norm(inner[(k + 1) % len(inner)] - centre)) / edge))
        points.append(points[-1][-1] + straight * (np.arange(1, pieces) / pieces)[:, None])
    return np.concatenate(points)


def toward(points: np.ndarray, centre, outline: Outline) -> np.ndarray:
    """Points (n, 2) moved straight towards ``centre`` until they are on an outline around it (bisection)."""
    centre = np.asarray(centre, dtype=float)
    low, high = np.zeros(len(points)), np.ones(len(points))
    for _ in range(40):
        middle = 0.5 * (low + high)
        inside = outline(centre + middle[:, None] * (points - centre)) < 0.0
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return centre + low[:, None] * (points - centre)


def grown(outline: Outline, by: float) -> Outline:
    """The outline moved outwards by ``by`` (m)."""
    return lambda p: outline(p) - by


def union(*outlines: Outline) -> Outline:
    """Inside of any of them."""
    return lambda p: np.min([outline(p) for outline in outlines], axis=0)


def without(outline: Outline, *holes: Outline) -> Outline:
    """The first less all the others."""
    if not holes:
        return outline
    return lambda p: np.maximum(outline(p), -np.min([hole(p) for hole in holes], axis=0))
