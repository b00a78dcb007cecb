"""Vectors and quaternions ``[x, y, z, w]`` as tuples of numbers.

:mod:`rtcore.spatial` writes into arrays. The touch layer chains many small steps instead, so here every function
returns a value: no scratch arrays, nothing allocated.
"""

import math

import numpy as np
from numba import njit

from rtcore.spatial import turn

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


@njit(cache=True, nogil=True, error_model="numpy")
def vector(array: np.ndarray) -> Vector:
    """The three components of a (3,) array."""
    return array[0], array[1], array[2]


@njit(cache=True, nogil=True, error_model="numpy")
def quaternion(array: np.ndarray) -> Quaternion:
    """The four components of a (4,) array."""
    return array[0], array[1], array[2], array[3]


@njit(cache=True, nogil=True, error_model="numpy")
def put_vector(array: np.ndarray, v: Vector) -> None:
    """Write three components into a (3,) array."""
    array[0] = v[0]
    array[1] = v[1]
    array[2] = v[2]


@njit(cache=True, nogil=True, error_model="numpy")
def put_quaternion(array: np.ndarray, q: Quaternion) -> None:
    """Write four components into a (4,) array."""
    array[0] = q[0]
    array[1] = q[1]
    array[2] = q[2]
    array[3] = q[3]


@njit(cache=True, nogil=True, error_model="numpy")
def conjugate(q: Quaternion) -> Quaternion:
    """The inverse of a unit quaternion."""
    return -q[0], -q[1], -q[2], q[3]


@njit(cache=True, nogil=True, error_model="numpy")
def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """The product a b: first b, then a."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@njit(cache=True, nogil=True, error_model="numpy")
def normalise(q: Quaternion) -> Quaternion:
    """The unit quaternion along q; the identity for zero."""
    norm = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    if norm == 0.0:
        return 0.0, 0.0, 0.0, 1.0
    return q[0] / norm, q[1] / norm, q[2] / norm, q[3] / norm


@njit(cache=True, nogil=True, error_model="numpy")
def rotate(q: Quaternion, v: Vector) -> Vector:
    """The vector v turned by the unit quaternion q."""
    return turn(q[0], q[1], q[2], q[3], v[0], v[1], v[2])


@njit(cache=True, nogil=True, error_model="numpy")
def rotation_vector(q: Quaternion) -> Vector:
    """Axis times angle (rad, 0..pi) of a unit quaternion."""
    s = 1.0 if q[3] >= 0.0 else -1.0
    sine = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2])
    if sine < 1e-12:
        return 2.0 * s * q[0], 2.0 * s * q[1], 2.0 * s * q[2]
    factor = s * 2.0 * math.atan2(sine, s * q[3]) / sine
    return factor * q[0], factor * q[1], factor * q[2]


@njit(cache=True, nogil=True, error_model="numpy")
def cross(a: Vector, b: Vector) -> Vector:
    """The cross product a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@njit(cache=True, nogil=True, error_model="numpy")
def length(v: Vector) -> float:
    """The Euclidean norm."""
    return math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


@njit(cache=True, nogil=True, error_model="numpy")
def add(a: Vector, b: Vector) -> Vector:
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@njit(cache=True, nogil=True, error_model="numpy")
def subtract(a: Vector, b: Vector) -> Vector:
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@njit(cache=True, nogil=True, error_model="numpy")
def scaled(v: Vector, factor: float) -> Vector:
    """v times a factor."""
    return factor * v[0], factor * v[1], factor * v[2]
