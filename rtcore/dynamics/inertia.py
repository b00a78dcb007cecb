"""Mass properties of a body, checked and prepared once, as the kernels of rigid bodies use them.

A tensor is physical when some distribution of mass has it: its principal moments are positive and none is larger than
the sum of the two others (Wensing, Kim and Slotine 2017). Rounded input is allowed for: files give six digits or so.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from rtcore.geometry.mass import mass_properties

ROUNDED = 1e-5
"""Share of the largest entry by which a tensor may miss symmetry and the triangle inequality: the last of six digits. A
flat plate has one moment equal to the sum of the others, and must not be refused for how it is written down."""
THINNEST = 1e-12
"""Smallest share of the largest moment that the smallest one may be; below it rounding decides about its sign."""
REST_SPEED = 0.02
"""Default speed of approach (m/s) from which a body bounces: twice what gravity adds in a tick of 1 ms, so that what
rests is not taken for an impact."""

BODY_INERTIA = np.dtype(
    [
        ("mass", "f8"),  # kg
        ("moments", "f8", 3),  # principal moments about the centre of mass, kg m2
        ("axes", "f8", 4),  # orientation of the principal axes in the body frame, principal -> body
        ("centre", "f8", 3),  # of mass, body frame, m
        ("linear_drag", "f8"),  # N s/m, at the centre of mass
        ("angular_drag", "f8"),  # N m s/rad
        ("restitution", "f8"),  # Newton's coefficient, 0..1
        ("rest_speed", "f8"),  # approaches slower than this do not bounce, m/s
    ],
    align=True,
)
"""What there is to know about a moving body besides its shape and its state."""


def body_inertia(
    mass: float,
    tensor: np.ndarray | Sequence[Sequence[float]],
    centre: Sequence[float] = (0.0, 0.0, 0.0),
    *,
    linear_drag: float = 0.0,
    angular_drag: float = 0.0,
    restitution: float = 0.0,
    rest_speed: float = REST_SPEED,
) -> np.void:
    """Make the BODY_INERTIA record of a body.

    Args:
        mass: kg.
        tensor: (3, 3) inertia tensor about the centre of mass, axes of the body frame, kg m2.
        centre: (3,) centre of mass, body frame, m.
        linear_drag: force against the velocity of the centre of mass, N s/m.
        angular_drag: torque against the angular velocity, N m s/rad.
        restitution: Newton's coefficient, 0..1.
        rest_speed: speed of approach below which nothing bounces, m/s.

    Raises:
        ValueError: for a mass that is not positive, a tensor that no body can have, drag or a speed below zero, a
            restitution outside 0..1, and numbers that are not finite.
    """
    if not mass > 0.0 or not math.isfinite(mass):
        raise ValueError(f"mass must be a positive number of kg, given {mass!r}")
    middle = np.array(centre, dtype=np.float64)
    if middle.shape != (3,) or not np.all(np.isfinite(middle)):
        raise ValueError(f"the centre of mass must be three finite numbers of m, given {middle.tolist()}")
    for name, value, unit in (
        ("linear drag", linear_drag, "N s/m"),
        ("angular drag", angular_drag, "N m s/rad"),
        ("rest speed", rest_speed, "m/s"),
    ):
        if not value >= 0.0 or not math.isfinite(value):
            raise ValueError(f"{name} must be zero or a positive number of {unit}, given {value!r}")
    if not 0.0 <= restitution <= 1.0:
        raise ValueError(f"restitution must be between 0 and 1, given {restitution!r}")
    moments, axes = principal_axes(tensor)
    record = np.zeros(1, BODY_INERTIA)[0]
    record["mass"] = mass
    record["moments"] = moments
    record["axes"] = axes
    record["centre"] = middle
    record["linear_drag"] = linear_drag
    record["angular_drag"] = angular_drag
    record["restitution"] = restitution
    record["rest_speed"] = rest_speed
    return record


def mesh_inertia(
    vertices: np.ndarray,
    faces: np.ndarray,
    density: float,
    *,
    linear_drag: float = 0.0,
    angular_drag: float = 0.0,
    restitution: float = 0.0,
    rest_speed: float = REST_SPEED,
) -> np.void:
    """Make the BODY_INERTIA record of a homogeneous solid whose body frame is the frame of its closed mesh.

    Args:
        vertices: (n, 3), m, exactly equal ones welded.
        faces: (m, 3) vertex indices; all outwards or all inwards.
        density: kg/m3.
        linear_drag, angular_drag, restitution, rest_speed: as for :func:`body_inertia`.

    Raises:
        ValueError: as :func:`rtcore.geometry.mass.mass_properties` and :func:`body_inertia`.
    """
    solid = mass_properties(vertices, faces, density)
    return body_inertia(
        solid.mass,
        solid.inertia,
        solid.centre.tolist(),
        linear_drag=linear_drag,
        angular_drag=angular_drag,
        restitution=restitution,
        rest_speed=rest_speed,
    )


def principal_axes(tensor: np.ndarray | Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments of an inertia tensor and the right-handed frame of its principal axes.

    A diagonal tensor keeps its axes, in their order; the moments of any other one rise.

    Args:
        tensor: (3, 3), kg m2.

    Returns:
        (moments (3,), kg m2; orientation (4,) of the principal axes in the frame of the tensor).

    Raises:
        ValueError: for a tensor that is not finite, not symmetric or that no body can have.
    """
    given = np.array(tensor, dtype=np.float64)
    if given.shape != (3, 3) or not np.all(np.isfinite(given)):
        raise ValueError(f"an inertia tensor must be three rows of three finite numbers, given {given.tolist()}")
    size = float(np.abs(given).max())
    skew = float(np.abs(given - given.T).max())
    if skew > ROUNDED * size:
        raise ValueError(f"an inertia tensor must be symmetric, given one with entries that differ by {skew:.6g} kg m2")
    symmetric = 0.5 * (given + given.T)
    if np.count_nonzero(symmetric - np.diag(np.diagonal(symmetric))) == 0:
        moments, axes = np.diagonal(symmetric).copy(), np.eye(3)
    else:
        moments, axes = np.linalg.eigh(symmetric / size)
        moments = size * moments
        if np.linalg.det(axes) < 0.0:
            axes[:, 2] = -axes[:, 2]
    least, middle, largest = (float(x) for x in np.sort(moments))
    if not least > THINNEST * abs(largest):
        raise ValueError(f"principal moments of inertia must be positive, given one of {least:.6g} kg m2")
    if largest > least + middle + ROUNDED * largest:
        raise ValueError(
            f"no body has the principal moment of inertia {largest:.6g} kg m2, "
            f"more than the sum of the two others, {least:.6g} and {middle:.6g} kg m2"
        )
    return moments, Rotation.from_matrix(axes).as_quat()
