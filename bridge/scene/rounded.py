"""Balls and capsules: solids that are a point or a segment along z, the core, with a radius round it.

The mechanics holds the core and the radius. What a ball or capsule weighs is exact; triangles of its surface are made
here for pictures only.
"""

import math
from functools import lru_cache

import numpy as np

from bridge.scene.primitives import make_primitive
from rtcore.geometry.mass import MassProperties


def capsule_mass(radius: float, length: float, density: float) -> MassProperties:
    """Of a homogeneous capsule, or with length 0 ball, about its middle, which is the origin.

    The moments are those of a cylinder and of two halves of a ball, each moved by the parallel axes theorem: the centre
    of mass of a half is 3/8 of the radius above its flat side.

    Args:
        radius: m, above 0.
        length: m, of the segment between the centres of the ends.
        density: kg/m3.

    Raises:
        ValueError: where moments would be 0 or infinite.
    """
    square = radius * radius
    tube, ends = math.pi * square * length, 4.0 / 3.0 * math.pi * square * radius
    along = tube * square / 2.0 + ends * square * 2.0 / 5.0
    across = tube * (length * length / 12.0 + square / 4.0)
    across += ends * (square * 2.0 / 5.0 + length * length / 4.0 + length * radius * 3.0 / 8.0)
    volume = tube + ends
    if not 0.0 < min(along, across) <= max(along, across) < math.inf:
        raise ValueError(f"its radius {radius:g} m and length {length:g} m are beyond what numbers can hold")
    return MassProperties(volume, density * volume, np.zeros(3), density * np.diag((across, across, along)))


def surface(core: np.ndarray, rounding: float) -> np.ndarray:
    """(n, 3, 3) triangles, m, whose corners lie on the surface round a core; for pictures.

    Args:
        core: (k, 3, 3) triangles of a point or of a segment along z, about the origin.
        rounding: radius, m; 0: the core is the surface.
    """
    return core if rounding == 0.0 else _surface(float(np.ptp(core[:, :, 2])), rounding)


@lru_cache(maxsize=64)
def _surface(length: float, rounding: float) -> np.ndarray:
    mesh = make_primitive("capsule", (rounding, length)) if length > 0.0 else make_primitive("sphere", (rounding,))
    triangles = mesh.vertices[mesh.faces]
    triangles.setflags(write=False)
    return triangles
