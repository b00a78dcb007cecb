"""Conservative advancement of two convex pieces: for how long from now on do they surely keep their distance?

From the time t on, along the direction n that proves their distance at t, a point b of the second piece is at
n.b + s n.v(b) or farther after s, less half of s squared times a bound on its acceleration. Its velocity v is affine in
b, so the least of that over the piece is a support value again, in the direction n + s (n x w), w the relative angular
velocity. As a function of s the bound is concave: where it is large enough at both ends of an interval it is so in
between, which makes every step proven. A piece that slides along another one is let go on for that reason, however near
they are, while the usual step, gap / speed, would stall. Where the relative motion is a screw, one that turns about n
is not held up either.

Source: conservative advancement, Mirtich 1996; directed bounds after Zhang, Lee and Kim 2006; the support form is own.
"""

import math
from typing import Any

from rtcore.collision.convex_distance import (
    PAD,
    core_distance,
    lengths,
    put_pose,
    support_second,
    to_first,
)
from rtcore.collision.shape_pieces import CORE_PLANE, support
from rtcore.kernels import inner, kernel
from rtcore.motion import SCREW, STILL, relative_bounds, relative_pose, relative_twist
from rtcore.spatial import Vector, add, cross, dot, length, scaled, subtract, vector

CLEAR = 0
"""Free up to the limit."""
ADVANCED = 1
"""Free up to the time returned; more can be found out."""
CONTACT = 2
"""Stopped at the time returned."""

MAX_STEPS = 48
"""Most steps of one pair at a time."""
SLACK = 2.0**-10
"""Share of the position tolerance by which a pair that starts too near may come nearer in one step of time: without it
rounding and the curvature of its path could stop a motion along a surface."""
SEARCHES = 3


@kernel
def place_pair(work: Any, relative: Any, u: float) -> None:
    """Put the second piece where it is at u in the first's frame."""
    place, turn = relative_pose(relative, u)
    put_pose(work, place, turn)


@inner
def _spare(
    work: Any, n: Vector, level: float, centre: Vector, rate: float, turning: Vector, half_bend: float, s: float
) -> float:
    """Lower bound of the gap along n after s, above `level` (where the first piece and the distance to keep end)."""
    d = add(n, scaled(turning, s))
    b = support_second(work, scaled(d, -1.0))
    return dot(d, subtract(b, centre)) + dot(n, centre) + s * rate - level - half_bend * s * s


@inner
def _step(work: Any, relative: Any, u: float, limit: float, spare: float, wanted: float) -> tuple[float, float]:
    """Return (time from u on that is proven free, bound on the speed).

    spare: by how much the gap of the cores exceeds `wanted` at u, m, above 0.
    """
    second = work.second
    rest = limit - u
    n = vector(work.direction)
    speed, bend = relative_bounds(relative, vector(second.ball_centre), second.ball_radius, u, limit)
    if speed * rest <= spare:
        return rest, speed
    plain = spare / speed
    centre = to_first(work, vector(second.ball_centre))
    velocity, spin = relative_twist(relative, u, centre)
    turning = cross(n, spin)
    if relative.first.kind == STILL and relative.second.kind == SCREW:
        # w is constant, and so the acceleration w x v; along n it is -(n x w).v.
        bend = min(bend, (length(turning) + PAD * length(spin)) * speed)
    rate = dot(n, velocity)
    pad = PAD * (lengths(work) + rest * (length(velocity) + length(spin) * second.ball_radius))
    level = dot(n, vector(work.first.centre)) if work.first.core == CORE_PLANE else dot(n, support(work.first, n))
    level += wanted + pad
    half_bend = 0.5 * bend
    far = _spare(work, n, level, centre, rate, turning, half_bend, rest)
    if far >= 0.0:
        return rest, speed
    near = 0.0
    above = _spare(work, n, level, centre, rate, turning, half_bend, 0.0)
    if not above > 0.0 or not far > -math.inf:
        return plain, speed
    for _ in range(SEARCHES):
        # A concave function lies above its chords, and so is free up to where the chord comes down to zero.
        s = near + (rest - near) * above / (above - far) * (1.0 - PAD)
        value = _spare(work, n, level, centre, rate, turning, half_bend, s)
        if value < 0.0:  # rounding
            break
        near, above = s, value
        s = 0.5 * (near + rest)
        value = _spare(work, n, level, centre, rate, turning, half_bend, s)
        if value >= 0.0:
            near, above = s, value
        else:
            rest, far = s, value
    return max(plain, near), speed


@kernel
def advance_once(work: Any, relative: Any, separation: float, u: float, limit: float) -> tuple[float, int, float, int]:
    """Return (time, CLEAR or ADVANCED, gap at u, steps) for two pieces that may be halved yet: one step from u on.

    work: DISTANCE_WORK with both pieces; relative: RELATIVE; separation: distance to keep, m; [u, time) is proven free.
    """
    place_pair(work, relative, u)
    margins = work.first.margin + work.second.margin
    wanted = separation + margins
    bound, steps = core_distance(work, wanted, False)
    if not bound > wanted:
        return u, ADVANCED, bound - margins, steps
    step, _ = _step(work, relative, u, limit, bound - wanted, wanted)
    if u + step >= limit:
        return limit, CLEAR, bound - margins, steps
    return u + step, ADVANCED, bound - margins, steps


@kernel
def advance_pair(
    work: Any,
    relative: Any,
    separation: float,
    u: float,
    limit: float,
    position_tolerance: float,
    time_tolerance: float,
) -> tuple[float, int, float, int]:
    """Return (time, CLEAR, CONTACT or ADVANCED, gap at that time, steps) for two pieces that are not to be halved.

    Arguments as in :func:`advance_once`. A pair that is nearer than `separation` at u = 0 may come nearer by SLACK x
    position_tolerance and rounding, and one that touches stops at once. A contact is early by position_tolerance along
    the path or by time_tolerance. After MAX_STEPS the pair is to be looked at again from the time returned (ADVANCED),
    but one that got nowhere or started too near ends there (CONTACT); the gap is then that of the last step.
    """
    margins = work.first.margin + work.second.margin
    start = u
    asked = separation
    gap = 0.0
    steps = 0
    for k in range(MAX_STEPS):
        place_pair(work, relative, u)
        wanted = separation + margins
        bound, taken = core_distance(work, wanted, True)
        steps += taken
        gap = bound - margins
        if k == 0 and u == 0.0 and gap <= separation:
            if not gap > 0.0:
                return u, CONTACT, gap, steps
            slack = SLACK * position_tolerance + 4.0 * PAD * (lengths(work) + margins)
            separation = max(gap - slack, 0.5 * gap)
            wanted = separation + margins
        spare = bound - wanted
        if not spare > 0.0:
            return u, CONTACT, gap, steps
        step, speed = _step(work, relative, u, limit, spare, wanted)
        if u + step >= limit:
            return limit, CLEAR, gap, steps
        if gap - separation <= position_tolerance and (step <= time_tolerance or step * speed <= position_tolerance):
            return u, CONTACT, gap, steps
        u += step
    state = ADVANCED if u - start > time_tolerance and separation == asked else CONTACT
    return u, state, gap, steps
