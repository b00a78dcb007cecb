"""Quaternions ``[x, y, z, w]`` and vectors for kernels: every function writes its last argument.

A quaternion q maps coordinates of the turned frame to the frame it is turned in: ``v_scene = rotate(q, v_body)``.
Outputs may be the same array as an input.
"""

import math

import numpy as np
from numba import njit

SMALL_ANGLE = 1e-6
"""Below it the series to the third order is exact to rounding, and the closed form divides by nearly zero."""


@njit(cache=True, nogil=True, error_model="numpy")
def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Write the product a b (turn by b first, then by a) to `out`; all (4,) xyzw."""
    x = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1]
    y = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0]
    z = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3]
    w = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]
    out[0] = x
    out[1] = y
    out[2] = z
    out[3] = w


@njit(cache=True, nogil=True, error_model="numpy")
def conjugate(a: np.ndarray, out: np.ndarray) -> None:
    """Write the inverse of the unit quaternion a to `out`; (4,) xyzw."""
    out[0] = -a[0]
    out[1] = -a[1]
    out[2] = -a[2]
    out[3] = a[3]


@njit(cache=True, nogil=True, error_model="numpy")
def normalise(a: np.ndarray, out: np.ndarray) -> None:
    """Write a / |a| to `out`; the identity when a has no length. (4,) xyzw."""
    norm = math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3])
    if norm > 0.0:
        for k in range(4):
            out[k] = a[k] / norm
    else:
        out[0] = 0.0
        out[1] = 0.0
        out[2] = 0.0
        out[3] = 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def turn(qx: float, qy: float, qz: float, qw: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the vector (x, y, z) turned by the unit quaternion, as three numbers."""
    tx = 2.0 * (qy * z - qz * y)
    ty = 2.0 * (qz * x - qx * z)
    tz = 2.0 * (qx * y - qy * x)
    return (
        x + qw * tx + qy * tz - qz * ty,
        y + qw * ty + qz * tx - qx * tz,
        z + qw * tz + qx * ty - qy * tx,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def rotate(q: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Write the vector v (3,) turned by the unit quaternion q (4,) to `out`."""
    x, y, z = turn(q[0], q[1], q[2], q[3], v[0], v[1], v[2])
    out[0] = x
    out[1] = y
    out[2] = z


@njit(cache=True, nogil=True, error_model="numpy")
def rotate_inverse(q: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Write the vector v (3,) turned back by the unit quaternion q (4,) to `out`."""
    x, y, z = turn(-q[0], -q[1], -q[2], q[3], v[0], v[1], v[2])
    out[0] = x
    out[1] = y
    out[2] = z


@njit(cache=True, nogil=True, error_model="numpy")
def from_rotation_vector(v: np.ndarray, out: np.ndarray) -> None:
    """Write the unit quaternion of the rotation vector v (3,), rad, to `out` (4,)."""
    angle = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    scale = 0.5 - angle * angle / 48.0 if angle < SMALL_ANGLE else math.sin(0.5 * angle) / angle
    x = scale * v[0]
    y = scale * v[1]
    z = scale * v[2]
    out[3] = math.cos(0.5 * angle)
    out[0] = x
    out[1] = y
    out[2] = z


@njit(cache=True, nogil=True, error_model="numpy")
def to_rotation_vector(q: np.ndarray, out: np.ndarray) -> None:
    """Write the rotation vector (3,), rad, norm at most pi, of the unit quaternion q (4,) to `out`."""
    sign = -1.0 if q[3] < 0.0 else 1.0
    sine = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2])
    scale = sign * (2.0 * math.atan2(sine, sign * q[3]) / sine if sine > SMALL_ANGLE else 2.0 + sine * sine / 3.0)
    x = scale * q[0]
    y = scale * q[1]
    z = scale * q[2]
    out[0] = x
    out[1] = y
    out[2] = z


@njit(cache=True, nogil=True, error_model="numpy")
def to_body(position: np.ndarray, q: np.ndarray, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the scene point (x, y, z) in the coordinates of the body posed at (position, q)."""
    return turn(-q[0], -q[1], -q[2], q[3], x - position[0], y - position[1], z - position[2])


@njit(cache=True, nogil=True, error_model="numpy")
def to_scene(position: np.ndarray, q: np.ndarray, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the body point (x, y, z) in scene coordinates, for the body posed at (position, q)."""
    u, v, w = turn(q[0], q[1], q[2], q[3], x, y, z)
    return u + position[0], v + position[1], w + position[2]
