"""Vectors and quaternions ``[x, y, z, w]`` as tuples of numbers: every function returns its result, nothing allocated.

A quaternion q maps coordinates of the turned frame to the frame it is turned in: ``v_scene = rotate(q, v_body)``.
"""

import math
from typing import Any

import numpy as np

from rtcore.kernels import kernel

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


@kernel
def vector(array: np.ndarray) -> Vector:
    """The three components of a (3,) array."""
    return array[0], array[1], array[2]


@kernel
def quaternion(array: np.ndarray) -> Quaternion:
    """The four components of a (4,) array."""
    return array[0], array[1], array[2], array[3]


@kernel
def put_vector(array: np.ndarray, v: Vector) -> None:
    """Write three components into a (3,) array."""
    array[0] = v[0]
    array[1] = v[1]
    array[2] = v[2]


@kernel
def put_quaternion(array: np.ndarray, q: Quaternion) -> None:
    """Write four components into a (4,) array."""
    array[0] = q[0]
    array[1] = q[1]
    array[2] = q[2]
    array[3] = q[3]


@kernel
def add(a: Vector, b: Vector) -> Vector:
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@kernel
def subtract(a: Vector, b: Vector) -> Vector:
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@kernel
def scaled(v: Vector, factor: float) -> Vector:
    """v times a factor."""
    return factor * v[0], factor * v[1], factor * v[2]


@kernel
def dot(a: Vector, b: Vector) -> float:
    """The scalar product of a and b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a: Vector, b: Vector) -> Vector:
    """The cross product a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@kernel
def tangents(normal: Vector) -> tuple[Vector, Vector]:
    """Two unit vectors square to a unit normal; the normal, the first and the second are a right-handed frame."""
    slim = min(abs(normal[0]), abs(normal[1]), abs(normal[2]))
    axis = (1.0, 0.0, 0.0) if abs(normal[0]) == slim else (0.0, 1.0, 0.0) if abs(normal[1]) == slim else (0.0, 0.0, 1.0)
    first = cross(normal, axis)
    first = scaled(first, 1.0 / length(first))
    return first, cross(normal, first)


@kernel
def length(v: Vector) -> float:
    """The Euclidean norm."""
    return math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


@kernel
def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """The product a b: first b, then a."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@kernel
def conjugate(q: Quaternion) -> Quaternion:
    """The inverse of a unit quaternion."""
    return -q[0], -q[1], -q[2], q[3]


@kernel
def normalise(q: Quaternion) -> Quaternion:
    """The unit quaternion along q; the identity for zero."""
    norm = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    if norm == 0.0:
        return 0.0, 0.0, 0.0, 1.0
    return q[0] / norm, q[1] / norm, q[2] / norm, q[3] / norm


@kernel
def rotate(q: Quaternion, v: Vector) -> Vector:
    """The vector v turned by the unit quaternion q."""
    tx = 2.0 * (q[1] * v[2] - q[2] * v[1])
    ty = 2.0 * (q[2] * v[0] - q[0] * v[2])
    tz = 2.0 * (q[0] * v[1] - q[1] * v[0])
    return (
        v[0] + q[3] * tx + q[1] * tz - q[2] * ty,
        v[1] + q[3] * ty + q[2] * tx - q[0] * tz,
        v[2] + q[3] * tz + q[0] * ty - q[1] * tx,
    )


@kernel
def rotation_vector(q: Quaternion) -> Vector:
    """Axis times angle (rad, 0..pi) of a unit quaternion."""
    s = 1.0 if q[3] >= 0.0 else -1.0
    sine = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2])
    if sine < 1e-12:  # the angle to rounding, and no division by nearly zero
        return 2.0 * s * q[0], 2.0 * s * q[1], 2.0 * s * q[2]
    factor = s * 2.0 * math.atan2(sine, s * q[3]) / sine
    return factor * q[0], factor * q[1], factor * q[2]


@kernel
def from_rotation_vector(v: Vector) -> Quaternion:
    """The unit quaternion of an axis times an angle (rad)."""
    angle = length(v)
    factor = 0.5 if angle < 1e-9 else math.sin(0.5 * angle) / angle
    return factor * v[0], factor * v[1], factor * v[2], math.cos(0.5 * angle)


@kernel
def to_body(pose: Any, point: Vector) -> Vector:
    """A scene point in the coordinates of the body at `pose` (a POSE record)."""
    return rotate(conjugate(quaternion(pose.orientation)), subtract(point, vector(pose.position)))


@kernel
def to_scene(pose: Any, point: Vector) -> Vector:
    """A point in the coordinates of the body at `pose` (a POSE record), in scene coordinates."""
    return add(rotate(quaternion(pose.orientation), point), vector(pose.position))
