"""When do two triangle meshes that move on screws first come within a distance of each other? A certified bracket.

Brute force over all pairs of triangles. Each pair has a time up to which it is proven free. A bound on the distance at
that time (see `tools.exact.triangles`) and bounds on speed and acceleration, which are constant along a screw, prove it
free for a while longer; so on until the distance is reached. Contact is proven by two points that are near enough.

A screw turns by W u about a fixed line and advances along it by u times its share of the displacement. With D the part
of the pivot's displacement across the axis n, the pivot follows
``D [sin(W u) c + 1 - cos(W u)] / 2 + n x D [(1 - cos(W u)) c - sin(W u)] / 2``, c = cot(W / 2), beside the advance:
the centre of the turn is at D / 2 + c n x D / 2 from the pivot.
"""

import math
from dataclasses import dataclass

import numpy as np

from tools.exact.triangles import bounds

PAD = 64 * 2.0**-52
"""Times the largest coordinate met: above the rounding of a point's place on a screw (some 20 ulp)."""
SHORTER = 1.0 - 1e-12
"""Factor on a proven step, for its own rounding."""

NARROW = 1e-11
"""Width of a bracket that is not made narrower."""


@dataclass(frozen=True)
class Screw:
    """Constant-rate screw over u = 0..1: points turn by `angle` (rad) about `axis` while the pivot moves by `shift`.

    pivot: where a point of the body is at u = 0 (m, scene); shift (m), axis: (3,), scene.
    """

    pivot: np.ndarray
    shift: np.ndarray
    axis: np.ndarray
    angle: float

    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(unit axis, displacement along it, displacement across it)."""
        axis = np.asarray(self.axis, dtype=float)
        norm = np.linalg.norm(axis)
        axis = axis / norm if norm > 0 else np.array([0.0, 0.0, 1.0])
        along = (np.asarray(self.shift, dtype=float) @ axis) * axis
        return axis, along, np.asarray(self.shift, dtype=float) - along

    def _half_cotangent(self) -> float:
        """(angle / 2) cot(angle / 2)."""
        half = 0.5 * self.angle
        return 1.0 if half == 0.0 else half / math.tan(half)

    def places(self, points: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Where the points (n, k, 3) of u = 0 are at the times u (n,), m, scene; by Rodrigues' formula."""
        axis, along, across = self._parts()
        turn = (self.angle * np.asarray(u))[:, None, None]
        sine, rest = np.sin(turn), 2.0 * np.sin(0.5 * turn) ** 2  # rest: 1 - cosine
        u = np.asarray(u)[:, None, None]
        side = np.cross(axis, across)
        if self.angle == 0.0:
            path = u * across
        else:
            cotangent = 1.0 / math.tan(0.5 * self.angle)
            path = 0.5 * (sine * cotangent + rest) * across + 0.5 * (rest * cotangent - sine) * side
        arm = points - self.pivot
        cross = np.cross(axis, arm)
        return points + sine * cross + rest * np.cross(axis, cross) + path + u * along

    def velocities(self, points: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Velocities per unit of u (n, k, 3) at the times u (n,) of the points (n, k, 3) of u = 0."""
        axis, along, across = self._parts()
        arm = points - self.pivot
        side = np.cross(axis, across)
        start = self.angle * (np.cross(axis, arm) - 0.5 * side) + self._half_cotangent() * across
        turn = (self.angle * np.asarray(u))[:, None, None]
        cross = np.cross(axis, start)
        return start + np.sin(turn) * cross + 2.0 * np.sin(0.5 * turn) ** 2 * np.cross(axis, cross) + along

    def rates(self, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds (n,), (n,) on speed and acceleration of all points of triangles (n, 3, 3): those of the corners."""
        _, along, _ = self._parts()
        across = self.velocities(triangles, np.zeros(len(triangles))) - along
        largest = np.linalg.norm(across, axis=2).max(axis=1) * (1.0 + 1e-12)
        return np.hypot(largest, np.linalg.norm(along)) * (1.0 + 1e-12), abs(self.angle) * largest

    def size(self, triangles: np.ndarray) -> float:
        """A number above all coordinates met on the way."""
        return float(np.abs(triangles).max() + 4.0 * np.abs(self.pivot).max() + 4.0 * np.abs(self.shift).max())


STILL = Screw(np.zeros(3), np.zeros(3), np.array([0.0, 0.0, 1.0]), 0.0)
"""No motion."""


@dataclass(frozen=True)
class Bracket:
    """The distance is above the separation for 0 <= u < low, and down to it at some u <= high.

    low = 1 and high = inf: never. low < 1 and high = inf: they come so near at `low` that it cannot be decided.
    """

    low: float
    high: float


def _look_ahead(place, u: float, separation: float, limit: float) -> float:
    """The first of a growing row of times after u at which contact is proven; inf if it is at none."""
    times = u + np.concatenate([[0.0], 1e-15 * 4.0 ** np.arange(0, 20)])
    times = times[times <= limit]
    if len(times) == 0:
        return math.inf
    _, upper, _ = bounds(*place(times))
    reached = np.flatnonzero(upper <= separation)
    return float(times[reached[0]]) if len(reached) else math.inf


def first_contact(
    first: np.ndarray,
    first_screw: Screw,
    second: np.ndarray,
    second_screw: Screw,
    separation: float,
    tolerance: float = 1e-11,
    rounds: int = 2000,
) -> Bracket:
    """Return a certified bracket of the first time in 0..1 at which two surfaces are at most `separation` (m) apart.

    first, second: triangles (n, 3, 3) and (m, 3, 3), m, scene, where they are at u = 0; tolerance: a pair whose
    distance is above the separation by less than this share of the largest coordinate is looked at for contact just
    ahead. Raises ValueError for a separation that rounding cannot tell from zero.
    """
    a = np.repeat(first, len(second), axis=0)
    b = np.tile(second, (len(first), 1, 1))
    size = max(first_screw.size(first), second_screw.size(second))
    pad = 2.0 * PAD * size
    if not separation > 2.0 * pad:
        raise ValueError(f"the separation must be above {2.0 * pad} m, the rounding of these coordinates")
    near = max(tolerance * size, 8.0 * pad)
    speed_a, bend_a = first_screw.rates(a)
    speed_b, bend_b = second_screw.rates(b)
    speed, bend = speed_a + speed_b, bend_a + bend_b
    free = np.zeros(len(a))
    stuck = np.zeros(len(a), dtype=bool)
    high = math.inf
    for _ in range(rounds):
        ids = np.flatnonzero((free < min(high, 1.0)) & ~stuck)
        if len(ids) == 0:
            break
        u = free[ids]
        at_a, at_b = first_screw.places(a[ids], u), second_screw.places(b[ids], u)
        lower, upper, direction = bounds(at_a, at_b)
        reached = upper + pad <= separation
        if reached.any():
            high = min(high, float(u[reached].min()))
        # To second order along the direction, and to first order in any.
        heights_a, heights_b = ((at @ direction[:, :, None])[..., 0] for at in (at_a, at_b))
        rates_a, rates_b = (
            (screw.velocities(points[ids], u) @ direction[:, :, None])[..., 0]
            for screw, points in ((first_screw, a), (second_screw, b))
        )
        excess = (heights_b[:, None] - heights_a[:, :, None]).reshape(len(ids), 9) - separation - 2.0 * pad
        rate = (rates_b[:, None] - rates_a[:, :, None]).reshape(len(ids), 9) - 1e-13 * speed[ids][:, None]
        curve = bend[ids][:, None] + 1e-300
        root = np.sqrt(np.maximum(rate**2 + 2.0 * curve * excess, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(rate > 0.0, (rate + root) / curve, 2.0 * excess / (root - rate))
            linear = (lower - separation - pad) / speed[ids]
        step = np.where(np.all(excess > 0.0, axis=1), np.nanmin(step, axis=1), 0.0)
        step = np.maximum(step, np.where(lower - separation - pad > 0.0, linear, 0.0)) * SHORTER
        free[ids] = np.minimum(u + np.where(reached, 0.0, step), 1.0)
        # Near contact: is it proven just ahead?
        close = (lower - separation <= near) & (free[ids] < 1.0)
        for i in ids[close & ~reached]:
            if high - free[i] <= NARROW:
                stuck[i] = True
                continue
            ahead = _look_ahead(
                lambda times, i=i: (
                    first_screw.places(np.repeat(a[i : i + 1], len(times), axis=0), times),
                    second_screw.places(np.repeat(b[i : i + 1], len(times), axis=0), times),
                ),
                free[i],
                separation - pad,
                1.0,
            )
            if ahead < math.inf:
                high = min(high, ahead)
                stuck[i] = True
        halted = reached | (step <= 1e-15)
        stuck[ids[halted]] = True
    low = float(min(free.min(), high))
    return Bracket(low, high)
