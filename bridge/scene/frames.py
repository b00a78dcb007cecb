"""Small pose arithmetic for import: quaternions are [x, y, z, w], a pose is (position, orientation)."""

import numpy as np

Pose = tuple[np.ndarray, np.ndarray]


def rotation(orientation: np.ndarray) -> np.ndarray:
    """(3, 3) rotation matrix of a quaternion, which is normalised first; the identity gives exactly the identity."""
    x, y, z, w = np.asarray(orientation, dtype=np.float64) / np.linalg.norm(orientation)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quaternion of first b, then a, normalised."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    product = np.array(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ]
    )
    return product / np.linalg.norm(product)


def compose(outer: Pose, inner: Pose) -> Pose:
    """The pose that maps by ``inner`` first, then by ``outer``."""
    position = rotation(outer[1]) @ inner[0] + outer[0]
    return position, multiply(outer[1], inner[1])


def from_z(direction: np.ndarray) -> np.ndarray:
    """Quaternion of the shortest turn that takes the z axis to a direction."""
    x, y, z = np.asarray(direction, dtype=np.float64) / np.linalg.norm(direction)
    if z < -1.0 + 1e-12:
        return np.array([1.0, 0.0, 0.0, 0.0])
    quaternion = np.array([-y, x, 0.0, 1.0 + z])
    return quaternion / np.linalg.norm(quaternion)
