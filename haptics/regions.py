"""Parts of space in which the device is pulled or slowed down, whether anything is touched there or not.

A region is everything within its reach R of a core, a point or a segment. With u = distance / R, from the core:

    MAGNET     a pull F 27/4 u (1 - u)^2 towards the core: none on it, the most (F) at a third of the reach, and none
               from the reach on, with its slope. It is the gradient of a potential: a round trip does no work.
    VISCOUS    -b v, fading from three quarters of the reach to nothing at its end

The place that counts is where the device wants the tip, so that a magnet is felt through a wall as the spring is.

A map that is made larger while the daemon runs would make a magnet as many times stiffer at the device; the pull is
lowered by as much, so that its core stays within what was checked when it was configured. It falls with the rate of the
samples too, as the coupling's stiffness does. Both are factors of the potential.
"""

import math
from collections.abc import Sequence

import numpy as np

from haptics.tables import MAX_REGIONS, REGION, Record
from rtcore.kernels import kernel
from rtcore.spatial import Vector, add, dot, length, scaled, subtract, vector

MAGNET = 1
VISCOUS = 2
REGIONS = {"magnet": MAGNET, "viscous": VISCOUS}
"""By what the configuration calls them."""

STEEPEST = 27.0 / 4.0
"""Of a magnet, on its core: slope of the pull, in units of its largest by its reach."""

MAGNET_SHARE = 0.5
"""Of the largest stiffness of a coupling, that a magnet's core may have."""

FADES_FROM = 0.75
"""Share of a viscous region's reach from which it fades."""


def make_region(
    kind: int, position: Sequence[float], reach: float, strength: float, arm: Sequence[float] = (0.0, 0.0, 0.0)
) -> np.ndarray:
    """Make a (1,) REGION: position and arm (scene, m), reach (scene m), strength (N, or N·s/m at the device).

    Raises ValueError, naming the argument and what would be right.
    """
    if kind not in REGIONS.values():
        raise ValueError(f"kind = {kind!r} must be MAGNET (1) or VISCOUS (2)")
    row = np.zeros(1, REGION)
    for name, value in (("position", position), ("arm", arm)):
        numbers = np.asarray(value, dtype=np.float64)
        if numbers.shape != (3,) or not np.isfinite(numbers).all():
            raise ValueError(f"{name} = {value!r} must be three finite numbers")
        row[name] = numbers
    for name, number in (("reach", reach), ("strength", strength)):
        if not (number > 0.0 and math.isfinite(number)):
            raise ValueError(f"{name} = {number!r} must be a finite number above 0")
        row[name] = number
    row["kind"] = kind
    return row


def set_regions(settings: np.ndarray, regions: Sequence[np.ndarray]) -> None:
    """Put (1,) REGION tables into (1,) SETTINGS, within what its card allows.

    Raises ValueError, naming the region by its place in the list, when they are too many, when a magnet is stiffer on
    its core than MAGNET_SHARE of the stiffness that the device may render, or when a region damps more than it may.
    """
    row = settings[0]
    if len(regions) > MAX_REGIONS:
        raise ValueError(f"there may be {MAX_REGIONS} regions, not {len(regions)}")
    for k, region in enumerate(regions):
        each = region[0]
        if each["kind"] == MAGNET:
            allowed = MAGNET_SHARE * row["stiffness_max"] * each["reach"] / (STEEPEST * row["scale"])
            if each["strength"] > allowed:
                raise ValueError(
                    f"[{k}].strength = {each['strength']:g} N must be at most {allowed:.3g} N for a reach of "
                    f"{each['reach']:g} m: near its core it would be stiffer than {MAGNET_SHARE:g} of what the device "
                    "renders; give it less strength or more reach"
                )
        elif each["strength"] > row["damping_max"]:
            raise ValueError(
                f"[{k}].strength = {each['strength']:g} N·s/m must be at most {row['damping_max']:g}, the card's "
                "damping_max"
            )
        row["regions"][k] = each
    row["region_count"] = len(regions)


@kernel
def region_force(region: Record, place: Vector, hand: Vector) -> Vector:
    """Force (scene axes, N) of a REGION on a device whose tip's image is at a place (scene, m); hand: its velocity
    (scene axes, device m/s) as far as it counts."""
    offset = subtract(place, vector(region.position))
    arm = vector(region.arm)
    square = dot(arm, arm)
    if square > 0.0:
        along = min(max(dot(offset, arm) / square, -1.0), 1.0)
        offset = subtract(offset, scaled(arm, along))
    u = length(offset) / region.reach
    if u >= 1.0:
        return 0.0, 0.0, 0.0
    if region.kind == MAGNET:
        return scaled(offset, -STEEPEST * region.strength * (1.0 - u) * (1.0 - u) / region.reach)
    share = 1.0
    if u > FADES_FROM:
        t = (1.0 - u) / (1.0 - FADES_FROM)
        share = t * t * (3.0 - 2.0 * t)
    return scaled(hand, -region.strength * share)


@kernel
def regions_force(settings: Record, touch: Record, place: Vector, hand: Vector) -> tuple[Vector, Vector]:
    """Of all regions: what magnets pull, and how far what is viscous resists (scene axes, N)."""
    pull = drag = (0.0, 0.0, 0.0)
    for k in range(settings.region_count):
        region = settings.regions[k]
        force = region_force(region, place, hand)
        if region.kind == MAGNET:
            pull = add(pull, force)
        else:
            drag = add(drag, force)
    return scaled(pull, min(1.0, settings.scale / touch.scale) * touch.rate_share), drag
