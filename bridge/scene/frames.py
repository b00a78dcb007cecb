"""Small pose arithmetic for import: quaternions are [x, y, z, w], a pose is (position, orientation)."""

import numpy as np
from scipy.spatial.transform import Rotation

Pose = tuple[np.ndarray, np.ndarray]


def place(pose: Pose, points: np.ndarray) -> np.ndarray:
    """Points (3,) or (n, 3) of a frame, in the frame that its pose is given in."""
    return Rotation.from_quat(pose[1]).apply(points) + pose[0]


def compose(outer: Pose, inner: Pose) -> Pose:
    """The pose that maps by ``inner`` first, then by ``outer``."""
    turned = Rotation.from_quat(outer[1]) * Rotation.from_quat(inner[1])
    return place(outer, inner[0]), turned.as_quat()


def shortest_turn(start: np.ndarray, end: np.ndarray) -> Rotation:
    """The shortest turn from one direction (3,) to another; between opposite ones, one of those that there are."""
    a, b = start / np.linalg.norm(start), end / np.linalg.norm(end)
    w = 1.0 + a @ b
    if w < 1e-12:
        side = (0.0, 1.0, 0.0) if abs(a[1]) < 0.9 else (1.0, 0.0, 0.0)
        return Rotation.from_quat(np.append(np.cross(side, a), 0.0))
    return Rotation.from_quat(np.append(np.cross(a, b), w))
