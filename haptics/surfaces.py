"""How a surface feels: soft or hard, damped, sticky, patterned, and with a knock where it is touched.

All of it acts on what each contact adds to the coupling's force. A contact pushes the tool off its goal by ``d``
(device m) and so makes the force K d, with a depth d_n along its normal n and a part d_t along the surface:

    soft        the surface's own spring k in series: K d becomes K d k / (k + K), friction with it
    damping     a damper along the normal, within the spring's force: a surface never sticks
    drag        a damper along the surface, within the force along the normal
    friction    K d_t (1 - a (1 - h)): the friction felt follows the pattern, all of it where that is highest
    relief      a pattern h of the height H on the surface, by the potential V = K H h(x) s(d_n):
                along the normal K H h s', along the surface -K H s grad h

so that ridges push up and aside like a surface that has them, and a round trip over them without friction does no work
(Minsky 1990 gave the sideways force; the potential makes both parts of it one). s begins without slope, where the tool
touches down, and ends at a bound:

    s = l u^2 / (1 + u^2),  u = d_n / e,   l = SHARE / (H k_c),  e = max(0.65 l, sqrt(2 l H / SHARE))

with k_c the pattern's largest curvature, so that neither part adds more than SHARE of K to what a device must stand
(:func:`put_surface` lowers K for that). Where the tool slides so fast that a wavelength takes less than four ticks the
relief fades, and it is gone at two: what is faster than that would be felt as something else.

Each contact has the share of both dampers that its depth has of the depths of all contacts: a tool that lies on many is
damped as one that touches once.

The mechanics know nothing of this: the tool rests on the plain surface.
"""

import math

import numpy as np

from haptics.pattern import CURVATURE, GRATING, SMOOTH, relief
from haptics.tables import MAX_SURFACES, SURFACE, Record
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Vector,
    add,
    conjugate,
    dot,
    length,
    quaternion,
    rotate,
    scaled,
    subtract,
    vector,
)

SHARE = 0.5
"""Of the coupling's stiffness, that a relief may add to it."""

_CURVATURE = tuple(CURVATURE.get(kind, 0.0) for kind in range(1 + max(CURVATURE)))

LARGEST = 1e6
"""N/m, N·s/m, N per m/s, Hz: no surface means more than this."""


def make_surface(
    *,
    stiffness: float = 0.0,
    damping: float = 0.0,
    drag: float = 0.0,
    pattern: int = SMOOTH,
    height: float = 0.0,
    wavelength: float = 1e-3,
    direction: tuple[float, float, float] = (1.0, 0.0, 0.0),
    seed: int = 0,
    friction_variation: float = 0.0,
    burst: float = 0.0,
    burst_frequency: float = 150.0,
    burst_decay_s: float = 0.01,
) -> np.ndarray:
    """Make a (1,) SURFACE; units as there. Raises ValueError, naming the argument and what would be right."""
    for name, value, low in (
        ("stiffness", stiffness, 0.0),
        ("damping", damping, 0.0),
        ("drag", drag, 0.0),
        ("height", height, 0.0),
        ("burst", burst, 0.0),
    ):
        if not low <= value <= LARGEST:
            raise ValueError(f"{name} = {value!r} must be from {low:g} to {LARGEST:g}")
    for name, value in (
        ("wavelength", wavelength),
        ("burst_frequency", burst_frequency),
        ("burst_decay_s", burst_decay_s),
    ):
        if not 0.0 < value <= LARGEST:
            raise ValueError(f"{name} = {value!r} must be above 0 and at most {LARGEST:g}")
    if not 0.0 <= friction_variation <= 1.0:
        raise ValueError(f"friction_variation = {friction_variation!r} must be from 0 to 1")
    if pattern not in (SMOOTH, *CURVATURE):
        raise ValueError(f"pattern = {pattern!r} must be one of {SMOOTH}, {', '.join(str(each) for each in CURVATURE)}")
    if pattern == SMOOTH and (height > 0.0 or friction_variation > 0.0):
        raise ValueError("height and friction_variation need a pattern")
    norm = math.hypot(*direction)
    if pattern == GRATING and not abs(norm - 1.0) <= 1e-3:
        raise ValueError(f"direction = {direction!r} must have norm 1")
    row = np.zeros(1, SURFACE)
    row["stiffness"], row["damping"], row["drag"] = stiffness, damping, drag
    row["pattern"], row["height"], row["wavelength"], row["seed"] = pattern, height, wavelength, seed
    row["direction"] = np.array(direction) / norm if norm > 0.0 else 0.0
    row["friction_variation"] = friction_variation
    row["burst"], row["burst_frequency"], row["burst_decay_s"] = burst, burst_frequency, burst_decay_s
    return row


def put_surface(settings: np.ndarray, surface: np.ndarray) -> int:
    """Add a (1,) SURFACE to (1,) SETTINGS; returns its surface_id, counted from 1.

    The first one with a relief makes what may be felt stiffer by SHARE, so that the stiffness and its cap are lowered
    by as much. Raises ValueError when they are too many, or one damps more than the device may.
    """
    row, wanted = settings[0], surface[0]
    count = int(row["surface_count"])
    if count == MAX_SURFACES:
        raise ValueError(f"there may be {MAX_SURFACES} different surfaces")
    for name in ("damping", "drag"):
        if row["actuated"] > 0 and wanted[name] > row["damping_max"]:
            raise ValueError(
                f"{name} = {wanted[name]:g} N·s/m must be at most {row['damping_max']:g}, the device's damping_max"
            )
    if wanted["height"] > 0.0 and not row["surfaces"]["height"].any():
        row["stiffness_max"] /= 1.0 + SHARE
        row["stiffness"] = min(row["stiffness"], row["stiffness_max"])
    row["surfaces"][count] = wanted
    row["surface_count"] = count + 1
    return count + 1


@kernel
def onset(height: float, curvature: float, depth: float) -> tuple[float, float]:
    """s (m) and s' of the relief's potential at a depth (m) >= 0, for a height (m) and curvature (1/m^2) above 0."""
    bound = SHARE / (height * curvature)
    reach = max(0.65 * bound, math.sqrt(2.0 * bound * height / SHARE))
    u = depth / reach
    below = 1.0 + u * u
    return bound * u * u / below, 2.0 * bound * u / (reach * below * below)


@inner
def held_within(v: Vector, largest: float) -> Vector:
    """v, no longer than ``largest``."""
    size = length(v)
    return scaled(v, largest / size) if size > largest else v


@inner
def softness(surface: Record, stiffness: float) -> float:
    """Share of the coupling's stiffness (N/m) that is left with the surface's own spring in series."""
    if surface.stiffness > 0.0:
        return surface.stiffness / (surface.stiffness + stiffness)
    return 1.0


@kernel
def surface_force(
    surface: Record,
    contact: Record,
    body: Record,
    stiffness: float,
    scale: float,
    dt: float,
    hand: Vector,
    tool: Vector,
    share: float,
    room: float,
) -> tuple[Vector, Vector]:
    """What a surface adds to the force that a contact makes already, without and by its dampers (scene axes, N).

    surface: SURFACE; contact: CONTACT; body: its POSE. stiffness: of the coupling, N/m at the device; scale: scene m
    per device m; hand: velocity of the device (scene axes, device m/s) as far as it counts; tool: of the tool (scene
    axes, scene m/s); share: of its dampers, that this contact has; room: of its spring,
    that is left to its damper on the way out.
    """
    push = scaled(vector(contact.displacement), 1.0 / scale)
    normal = vector(contact.normal)
    depth = dot(push, normal)
    if depth <= 0.0:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    along = subtract(push, scaled(normal, depth))
    soft = softness(surface, stiffness)
    pressed = stiffness * depth
    slid = scaled(along, stiffness)
    if surface.pattern != SMOOTH:
        orientation = quaternion(body.orientation)
        place = rotate(conjugate(orientation), subtract(vector(contact.point), vector(body.position)))
        height, slope = relief(surface.pattern, surface.wavelength, vector(surface.direction), surface.seed, place)
        slid = scaled(slid, 1.0 - surface.friction_variation * (1.0 - height))
        sliding = subtract(tool, scaled(normal, dot(tool, normal)))
        # Wavelengths per tick: from a quarter on it fades, at half of one it is gone (Nyquist).
        fade = min(max(2.0 - 4.0 * length(sliding) * dt / surface.wavelength, 0.0), 1.0)
        tall = surface.height * fade
        if tall > 0.0:
            # At the device lengths are those of the scene by the scale, and gradients those times the scale.
            curvature = _CURVATURE[surface.pattern] * (scale / surface.wavelength) ** 2
            s, rate = onset(surface.height / scale, curvature, depth)
            pressed += stiffness * tall / scale * height * rate
            turned = rotate(orientation, slope)
            turned = subtract(turned, scaled(normal, dot(turned, normal)))
            slid = subtract(slid, scaled(turned, stiffness * tall * s))
    pressed *= soft
    slid = scaled(slid, soft)
    away = dot(hand, normal)
    damped = min(max(-share * surface.damping * away, -pressed * room), pressed)
    dragged = held_within(scaled(subtract(hand, scaled(normal, away)), -share * surface.drag), pressed)
    springing = subtract(add(scaled(normal, pressed), slid), scaled(push, stiffness))
    return springing, add(scaled(normal, damped), dragged)
