"""Poses and screws with scipy: how a body gets from one logged pose to the next, and how it turns when left alone.

Nothing of `rtcore.motion` or `rtcore.dynamics` is used.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

STRIDE = 1e-3
"""Largest angle (rad) of one step of the rule that turns a free body: its error is then below rounding."""
MOST_STRIDES = 5000


@dataclass(frozen=True)
class Pose:
    """Mesh frame -> scene."""

    position: np.ndarray
    """(3,) m"""
    rotation: np.ndarray
    """(3, 3)"""

    def place(self, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) of the body in the scene."""
        return points @ self.rotation.T + self.position


def pose_of(position: np.ndarray, orientation: np.ndarray) -> Pose:
    """From (3,) and a quaternion (4,) xyzw, which is normalised."""
    return Pose(np.array(position, dtype=float), Rotation.from_quat(orientation).as_matrix())


def skew(v: np.ndarray) -> np.ndarray:
    """The matrix (3, 3) of v x."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of two vectors (3,); numpy's own takes several times as long."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def left(turn: np.ndarray) -> np.ndarray:
    """The mean of the rotations by 0..1 times a rotation vector (Murray, Li and Sastry 1994, 2.3)."""
    angle = float(np.linalg.norm(turn))
    k = skew(turn)
    if angle < 1e-3:
        a, b = 0.5 - angle**2 / 24.0, 1.0 / 6.0 - angle**2 / 120.0
    else:
        a, b = (1.0 - np.cos(angle)) / angle**2, (angle - np.sin(angle)) / angle**3
    return np.eye(3) + a * k + b * k @ k


@dataclass(frozen=True)
class Way:
    """The screw through two poses, u = 0..1; the velocity of a point y of the scene is drift + turn x (y - pivot)."""

    start: Pose
    end: Pose
    pivot: np.ndarray
    """(3,) where a point of the body near its middle is at u = 0, m"""
    turn: np.ndarray
    """(3,) rotation vector, rad"""
    drift: np.ndarray
    """(3,) m"""
    centre: np.ndarray
    """(3,) that point in the body"""
    radius: float
    """No point of its triangles is farther from it, m; what they are rounded by does not count."""

    def pose(self, u: float) -> Pose:
        """Where the body is."""
        if u == 0.0:
            return self.start
        if u == 1.0:
            return self.end
        rotation = Rotation.from_rotvec(u * self.turn).as_matrix() @ self.start.rotation
        middle = self.pivot + u * (left(u * self.turn) @ self.drift)
        return Pose(middle - rotation @ self.centre, rotation)

    @property
    def length(self) -> float:
        """Bound on the path of any point of its triangles, m."""
        return float(np.linalg.norm(self.drift) + np.linalg.norm(self.turn) * self.radius)


def way(start: Pose, end: Pose, centre: np.ndarray, radius: float) -> Way:
    """The screw through two poses, turning the shorter way; centre and radius: of a ball around the body, its frame."""
    pivot = start.place(centre)
    if np.array_equal(start.position, end.position) and np.array_equal(start.rotation, end.rotation):
        return Way(start, end, pivot, np.zeros(3), np.zeros(3), centre, radius)
    turn = Rotation.from_matrix(end.rotation @ start.rotation.T).as_rotvec()
    drift = np.linalg.solve(left(turn), end.place(centre) - pivot)
    return Way(start, end, pivot, turn, drift, centre, radius)


def relative_speed(one: Way, two: Way) -> float:
    """Bound on the rate (m per unit of u) at which the distance of two bodies on their ways may change.

    The gradient of a distance is the unit vector between the nearest points, and their own turning cancels: it changes
    by the relative velocity of the two screws at a point of either body. What rounds a body has no part in it: it takes
    the same off the distance all the time.
    """
    turn = one.turn - two.turn
    best = one.length + two.length
    for body in (one, two):
        here = one.drift - two.drift + cross(one.turn, body.pivot - one.pivot) - cross(two.turn, body.pivot - two.pivot)
        size = float(np.linalg.norm(turn))
        best = min(best, float(np.linalg.norm(here)) + size * (float(np.linalg.norm(body.drift)) + body.radius))
    return best


def turned_freely(frame: np.ndarray, moments: np.ndarray, momentum: np.ndarray, dt: float) -> np.ndarray | None:
    """Where the principal axes (3, 3) of a body point after a time without torque; None where it turns too far to tell.

    moments: (3,) kg m2; momentum: (3,) about the centre of mass, scene, N m s. Fourth-order Runge-Kutta on the
    rotation matrix, in steps so short that its error is below rounding.
    """

    def rate(rotation: np.ndarray) -> np.ndarray:
        angular = rotation @ ((rotation.T @ momentum) / moments)
        return skew(angular) @ rotation

    fastest = float(np.linalg.norm(momentum) / moments.min()) * dt
    if fastest == 0.0:
        return frame
    steps = int(np.ceil(fastest / STRIDE))
    if steps > MOST_STRIDES:
        return None
    h = dt / steps
    for _ in range(steps):
        a = rate(frame)
        b = rate(frame + 0.5 * h * a)
        c = rate(frame + 0.5 * h * b)
        frame = frame + h / 6.0 * (a + 2.0 * b + 2.0 * c + rate(frame + h * c))
    u, _, v = np.linalg.svd(frame)
    return u @ v


def angle_between(one: np.ndarray, two: np.ndarray) -> float:
    """Angle (rad) between rotations (3, 3), exact for small ones."""
    return float(np.linalg.norm(Rotation.from_matrix(two @ one.T).as_rotvec()))
