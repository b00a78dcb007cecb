"""A way over the outside of any scene, found from its triangles: what the demonstration's hand tries to follow."""

import math
from typing import NamedTuple

import numpy as np

from haptics.hands import PathPoint, minimum_jerk

IDENTITY = (0.0, 0.0, 0.0, 1.0)

LEAN_DEG = (-40.0, 63.0)
"""How far the way leans to either end. For the duck: from the root of the bill to the tail, past the crease of the neck
and not under the bill, where a hand that sees nothing would be caught."""


class SurfaceWay(NamedTuple):
    """Points on surfaces, in the order of a motion over them."""

    points: np.ndarray
    """(n, 3) m"""
    normals: np.ndarray
    """(n, 3) unit, outwards; turning smoothly along the way"""


def first_hits(triangles: np.ndarray, origins: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where m rays first meet (n, 3, 3) triangles: distance in lengths of the direction (inf: never), and triangle.

    Moeller and Trumbore 1997, over all triangles; surfaces count from both sides.
    """
    first, second = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    distances = np.full(len(origins), np.inf)
    hit = np.full(len(origins), -1)
    for ray, (origin, direction) in enumerate(zip(origins, directions, strict=True)):
        p = np.cross(direction, second)
        determinant = np.einsum("nc,nc->n", first, p)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = origin - triangles[:, 0]
            u = np.einsum("nc,nc->n", s, p) / determinant
            q = np.cross(s, first)
            v = q @ direction / determinant
            t = np.einsum("nc,nc->n", second, q) / determinant
            t[~((u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0))] = np.inf
        nearest = int(np.argmin(t))
        if np.isfinite(t[nearest]):
            distances[ray], hit[ray] = t[nearest], nearest
    return distances, hit


def surface_way(triangles: np.ndarray, samples: int = 900, turns: float = 5.0) -> SurfaceWay:
    """A closed, weaving way over the upper outside of (n, 3, 3) triangles, along the longest horizontal side.

    Seen from a point inside, a third of the way up, the way goes from one end to the other on one side and back on the
    other.
    Raises ValueError when rays towards the scene meet nothing.
    """
    corners = triangles.reshape(-1, 3)
    low, high = corners.min(axis=0), corners.max(axis=0)
    size = high - low
    middle = low + np.array([0.5, 0.5, 0.32]) * size
    along = np.eye(3)[int(np.argmax(size[:2]))]
    across = np.array([-along[1], along[0], 0.0])
    width = float(size @ np.abs(across))
    phase = np.linspace(0.0, 2.0 * math.pi, samples, endpoint=False)
    first, last = (math.radians(degrees) for degrees in LEAN_DEG)
    lean = 0.5 * (first + last) + 0.5 * (last - first) * np.cos(phase)
    side = width * (0.13 * np.sin(phase) + 0.06 * np.sin(turns * phase))
    directions = np.sin(lean)[:, None] * along + np.cos(lean)[:, None] * np.array([0.0, 0.0, 1.0])
    reach = 2.0 * float(np.linalg.norm(size))
    origins = middle + side[:, None] * across + reach * directions
    distances, hit = first_hits(triangles, origins, -directions)
    found = np.isfinite(distances)
    if np.count_nonzero(found) < samples // 2:
        raise ValueError("no way over the scene was found: too many rays towards its middle meet nothing")
    points = origins[found] - distances[found, None] * directions[found]
    face = np.cross(
        triangles[hit[found], 1] - triangles[hit[found], 0], triangles[hit[found], 2] - triangles[hit[found], 0]
    )
    normals = face / np.linalg.norm(face, axis=1)[:, None]
    inwards = np.einsum("nc,nc->n", normals, directions[found]) < 0.0
    normals[inwards] *= -1.0
    return SurfaceWay(_blur(points, 6.0), _unit(_blur(normals, 14.0)))


def _blur(rows: np.ndarray, width: float) -> np.ndarray:
    """Closed sequence of (n, 3) rows, averaged with a bell of so many samples."""
    reach = math.ceil(3.0 * width)
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    bell /= bell.sum()
    wrapped = np.concatenate([rows[-reach:], rows, rows[:reach]])
    return np.column_stack([np.convolve(wrapped[:, c], bell, mode="valid") for c in range(rows.shape[1])])


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)[:, None]


class SurfacePath:
    """What the hand intends: from a free start down onto the way, then along it, somewhat below the surface."""

    def __init__(
        self, way: SurfaceWay, start: np.ndarray, *, depth: float, speed: float, approach_s: float = 1.2
    ) -> None:
        """``start`` (3,) m: where it begins; ``depth`` m below the surface, more and less by turns; ``speed`` m/s."""
        self._start = np.asarray(start, dtype=float)
        self._approach = approach_s
        self._speed = speed
        nearest = int(np.argmin(np.linalg.norm(way.points - self._start, axis=1)))
        order = np.roll(np.arange(len(way.points)), -nearest)
        swell = 1.0 + 0.45 * np.sin(np.linspace(0.0, 6.0 * math.pi, len(order), endpoint=False))
        inside = way.points[order] - depth * swell[:, None] * way.normals[order]
        self._points = np.vstack([inside, inside[:1]])
        self._length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(self._points, axis=0), axis=1))])

    @property
    def lap_s(self) -> float:
        """How long one turn of the closed way takes."""
        return float(self._length[-1]) / self._speed

    def at(self, time: float) -> PathPoint:
        """Intended position, velocity and orientation at a time (s)."""
        progress, rate = minimum_jerk(time / self._approach)
        # the drag begins at rest, over the last part of the approach
        late = max(time - 0.7 * self._approach, 0.0)
        gather = 0.8
        gone = late - 0.5 * gather if late > gather else 0.5 * late * late / gather
        pace = min(late / gather, 1.0) * self._speed
        along = (self._speed * gone) % float(self._length[-1])
        on_way = np.array([np.interp(along, self._length, self._points[:, c]) for c in range(3)])
        step = 1e-4
        ahead = np.array(
            [np.interp((along + step) % float(self._length[-1]), self._length, self._points[:, c]) for c in range(3)]
        )
        direction = (ahead - on_way) / step
        position = self._start + progress * (on_way - self._start)
        velocity = rate / self._approach * (on_way - self._start) + progress * pace * direction
        return PathPoint(position, velocity, np.array(IDENTITY))
