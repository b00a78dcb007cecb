"""Patterns of a surface: a height between 0 and 1 as a function of the place on a body, with its gradient.

They are functions of space, in the coordinates of the body's mesh, so that any mesh has them without coordinates of its
own: what is felt is their value where the surface is touched.

    GRATING   (1 + cos k.x) / 2                              ridges across a direction
    BUMPS     1/2 + (cos kx + cos ky + cos kz) / 6           an egg carton on any plane across an axis
    NOISE     values at the corners of cells, joined by quintics (Perlin 2002)   rough, the same for the same seed

All are twice continuously differentiable and bounded: slope at most SLOPE / wavelength, curvature along any direction
at most CURVATURE / wavelength^2.
"""

import math

import numpy as np

from rtcore.kernels import inner, kernel
from rtcore.spatial import Vector

SMOOTH = 0
"""No pattern."""
GRATING = 1
BUMPS = 2
NOISE = 3
PATTERNS = {"grating": GRATING, "bumps": BUMPS, "noise": NOISE}
"""By what the configuration calls them."""

SLOPE = {GRATING: math.pi, BUMPS: math.pi / math.sqrt(3.0), NOISE: 3.25}
CURVATURE = {GRATING: 2.0 * math.pi**2, BUMPS: 2.0 * math.pi**2 / 3.0, NOISE: 20.0}
"""Of a grating along its direction; of bumps along an axis; of noise what no values at the corners can exceed, by the
slope (15/8) and curvature (10 / sqrt 3) of the fade: 5.8 along an axis, and 2 (15/8)^2 for each mixed derivative."""

_MASK = np.uint64(0xFFFFFFFF)


@inner
def _corner(i: int, j: int, k: int, seed: int) -> float:
    """The value at a corner of a cell, 0 to 1: bits of its three numbers and the seed, mixed (Wang's way, 32 bits)."""
    h = np.uint64(i) * np.uint64(0x9E3779B1) + np.uint64(j) * np.uint64(0x85EBCA77)
    h = (h + np.uint64(k) * np.uint64(0xC2B2AE3D) + np.uint64(seed) * np.uint64(0x27D4EB2F)) & _MASK
    h = ((h ^ (h >> np.uint64(15))) * np.uint64(0x85EBCA6B)) & _MASK
    h = ((h ^ (h >> np.uint64(13))) * np.uint64(0xC2B2AE35)) & _MASK
    return float(h ^ (h >> np.uint64(16))) / 4294967295.0


@inner
def _fade(t: float) -> tuple[float, float]:
    """Quintic from 0 to 1 without slope or curvature at its ends, and its derivative."""
    return t * t * t * (t * (6.0 * t - 15.0) + 10.0), 30.0 * t * t * (t - 1.0) * (t - 1.0)


@inner
def _noise(x: float, y: float, z: float, seed: int) -> tuple[float, Vector]:
    """Height and gradient, lengths in cells."""
    i, j, k = math.floor(x), math.floor(y), math.floor(z)
    u, du = _fade(x - i)
    v, dv = _fade(y - j)
    w, dw = _fade(z - k)
    height = gx = gy = gz = 0.0
    for a in range(2):
        for b in range(2):
            for c in range(2):
                value = _corner(int(i) + a, int(j) + b, int(k) + c, seed)
                p = u if a == 1 else 1.0 - u
                q = v if b == 1 else 1.0 - v
                r = w if c == 1 else 1.0 - w
                height += value * p * q * r
                gx += value * (du if a == 1 else -du) * q * r
                gy += value * p * (dv if b == 1 else -dv) * r
                gz += value * p * q * (dw if c == 1 else -dw)
    return height, (gx, gy, gz)


@kernel
def relief(pattern: int, wavelength: float, direction: Vector, seed: int, place: Vector) -> tuple[float, Vector]:
    """Height (0 to 1) and gradient (1/m) of a pattern at a place (m); direction: unit, of a GRATING only."""
    x, y, z = place
    if pattern == NOISE:
        height, (gx, gy, gz) = _noise(x / wavelength, y / wavelength, z / wavelength, seed)
        return height, (gx / wavelength, gy / wavelength, gz / wavelength)
    k = 2.0 * math.pi / wavelength
    if pattern == GRATING:
        phase = k * (direction[0] * x + direction[1] * y + direction[2] * z)
        slope = -0.5 * k * math.sin(phase)
        return 0.5 + 0.5 * math.cos(phase), (slope * direction[0], slope * direction[1], slope * direction[2])
    if pattern == BUMPS:
        height = 0.5 + (math.cos(k * x) + math.cos(k * y) + math.cos(k * z)) / 6.0
        return height, (-k / 6.0 * math.sin(k * x), -k / 6.0 * math.sin(k * y), -k / 6.0 * math.sin(k * z))
    return 0.0, (0.0, 0.0, 0.0)
