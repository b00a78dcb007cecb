"""Interval bisection back-end: first approach of two features whose bodies both move on screws of their own.

The triple product that vanishes where two lines meet, or a point and a plane (Redon 2002, (1.3) and (1.4)), is bounded
over an interval of time by interval arithmetic on the coordinates in the scene. Where the bounds leave out zero, and a
band about it for the separation, the interval is free. What is left is halved, the left half first, down to the time
tolerance or to that in which no point of the pair goes farther than the position tolerance (3.14)-(3.17); the lower
end of the first interval left over is the answer. Time runs over 0..1 (one step), lengths in m.

Two things differ from the printed method. Its test for a contact inside the features is made at every size of interval,
not only at the smallest, or functions that are zero throughout (edges that slide in one plane) would be halved
everywhere down to the tolerance. And it is made for the distance: along the direction n between the nearest points at
the lower end, the gap of every pair of vertices is at least gap(u0) + (u - u0) min n.(v2 - v1), the velocities bounded
by interval arithmetic (mean value form). Being a bound on the distance it has the separation built in, for the rounded
rim of the features as well, and it lets features recede or slide that begin below the separation: of them, the distance
at the start less three pads is kept.

Results, frames and pads are as in :mod:`rtcore.collision.elementary.advance`; iterations counts intervals, and those
that are left over at the cap count as time not proven. Motions: STILL, SCREW and TAN_HALF. For
ALGEBRAIC, infinitely fast at first, the bound on velocities says nothing on intervals from 0: the answer is safe but
may be 0. This is a mode for comparisons; the loop runs on advance.

Source: Redon 2002, sections 3.2-3.4: interval arithmetic, bisection, precision.
"""

import math
from typing import Any

from rtcore.collision.elementary.advance import (
    EDGE_EDGE,
    FACE_VERTEX,
    VERTEX_FACE,
    Bounds,
    Corners,
    apart,
    carried,
    taxicab,
)
from rtcore.collision.features import along
from rtcore.kernels import inner, kernel
from rtcore.motion import STILL, circling_at, laws, pose, rates
from rtcore.spatial import Vector, cross, dot, length, scaled, subtract, vector

Interval = tuple[float, float]
Box = tuple[Vector, Vector]

ULPS = 8.0 * 2.0**-52
"""Relative widening of ranges of sine, cosine and the laws of time."""

MAX_LEVEL = 48
"""Halvings after which an interval is not divided further, whatever the tolerances."""


@kernel
def following(index: int, level: int) -> tuple[int, int]:
    """Return (index, level) of the interval to look at once [index, index + 1] / 2^level is done with.

    It is the largest one, in the division of [0, 1] by halves, that begins where the last one ends: after a left half
    its right half, after a right half the right half above. (1, 0) is the end. No stack is needed.
    """
    index += 1
    while level > 0 and index % 2 == 0:
        index //= 2
        level -= 1
    return index, level


@kernel
def times(factor: float, x: Interval) -> Interval:
    """A number times an interval."""
    if factor < 0.0:
        return factor * x[1], factor * x[0]
    return factor * x[0], factor * x[1]


@kernel
def product(x: Interval, y: Interval) -> Interval:
    """The product of two intervals."""
    a = x[0] * y[0]
    b = x[0] * y[1]
    c = x[1] * y[0]
    d = x[1] * y[1]
    return min(a, b, c, d), max(a, b, c, d)


@inner
def component(box: Box, k: int) -> Interval:
    """One coordinate of a box."""
    return box[0][k], box[1][k]


@inner
def cross_component(a: Box, b: Box, i: int, j: int) -> Interval:
    """a_i b_j - a_j b_i over two boxes."""
    x = product(component(a, i), component(b, j))
    y = product(component(a, j), component(b, i))
    return x[0] - y[1], x[1] - y[0]


@inner
def triple_range(a: Box, b: Box, c: Box) -> Interval:
    """a . (b x c) over three boxes."""
    x = product(component(a, 0), cross_component(b, c, 1, 2))
    y = product(component(a, 1), cross_component(b, c, 2, 0))
    z = product(component(a, 2), cross_component(b, c, 0, 1))
    return x[0] + y[0] + z[0], x[1] + y[1] + z[1]


@kernel
def cosine_range(x0: float, x1: float) -> Interval:
    """Range of cos over [x0, x1] within [0, pi], where it only falls."""
    return max(math.cos(x1) - ULPS, -1.0), min(math.cos(x0) + ULPS, 1.0)


@kernel
def sine_range(x0: float, x1: float) -> Interval:
    """Range of sin over [x0, x1] within [0, pi], where it rises up to pi / 2 and falls from there."""
    s0 = math.sin(x0)
    s1 = math.sin(x1)
    top = max(s0, s1)
    if x0 <= 0.5 * math.pi <= x1:
        top = 1.0
    return min(s0, s1) - ULPS, min(top + ULPS, 1.0)


@inner
def _turned(motion: Any, u0: float, u1: float) -> tuple[Interval, Interval]:
    """Ranges of the cosine and sine of the angle turned by over [u0, u1]."""
    a0 = laws(motion.kind, motion.angle, u0)[0]
    a1 = laws(motion.kind, motion.angle, u1)[0]
    return cosine_range(a0, a1), sine_range(a0, a1)


@inner
def _pivot_range(motion: Any, u0: float, u1: float) -> Box:
    """Box of the pivot's way from its place at u = 0, scene, over [u0, u1]."""
    a0, ratio0, share0 = laws(motion.kind, motion.angle, u0)
    a1, ratio1, share1 = laws(motion.kind, motion.angle, u1)
    rest0 = 0.5 * (motion.angle - a0)
    rest1 = 0.5 * (motion.angle - a1)
    # Across the axis the pivot goes along D by S cos(rest), which only rises, and to the side by S sin(rest), which
    # rises up to half the angle, where it is tan(angle / 4) / 2, and falls from there.
    ahead = (ratio0 * math.cos(rest0) - ULPS, ratio1 * math.cos(rest1) + ULPS)
    side0 = ratio0 * math.sin(rest0)
    side1 = ratio1 * math.sin(rest1)
    top = max(side0, side1)
    if a0 <= 0.5 * motion.angle <= a1:
        top = max(top, 0.5 * math.tan(0.25 * motion.angle))
    aside = (min(side0, side1) - ULPS, top + ULPS)
    lift = (share0 - ULPS, share1 + ULPS)
    axis = vector(motion.axis)
    shift = vector(motion.shift)
    advance = dot(axis, shift)
    across = along(shift, axis, -advance)
    sideways = cross(across, axis)
    x = _combined(advance * axis[0], lift, across[0], ahead, sideways[0], aside)
    y = _combined(advance * axis[1], lift, across[1], ahead, sideways[1], aside)
    z = _combined(advance * axis[2], lift, across[2], ahead, sideways[2], aside)
    return (x[0], y[0], z[0]), (x[1], y[1], z[1])


@inner
def _combined(i: float, x: Interval, j: float, y: Interval, k: float, z: Interval) -> Interval:
    """i x + j y + k z over three intervals."""
    p = times(i, x)
    q = times(j, y)
    r = times(k, z)
    return p[0] + q[0] + r[0], p[1] + q[1] + r[1]


@inner
def _vector_range(motion: Any, v: Vector, cosine: Interval, sine: Interval) -> Box:
    """Box of a vector of the body that is v at u = 0, scene, while the body turns."""
    axis = vector(motion.axis)
    lengthwise = scaled(axis, dot(axis, v))
    across = subtract(v, lengthwise)
    side = cross(axis, v)
    one = (1.0, 1.0)
    x = _combined(lengthwise[0], one, across[0], cosine, side[0], sine)
    y = _combined(lengthwise[1], one, across[1], cosine, side[1], sine)
    z = _combined(lengthwise[2], one, across[2], cosine, side[2], sine)
    return (x[0], y[0], z[0]), (x[1], y[1], z[1])


@kernel
def _point_range(motion: Any, x: Vector, u0: float, u1: float) -> Box:
    """Box of the place over [u0, u1] of the body's point that is at x at u = 0, scene."""
    if motion.kind == STILL:
        return x, x
    cosine, sine = _turned(motion, u0, u1)
    pivot = vector(motion.pivot)
    arm = _vector_range(motion, subtract(x, pivot), cosine, sine)
    base = _pivot_range(motion, u0, u1)
    return (
        (pivot[0] + base[0][0] + arm[0][0], pivot[1] + base[0][1] + arm[0][1], pivot[2] + base[0][2] + arm[0][2]),
        (pivot[0] + base[1][0] + arm[1][0], pivot[1] + base[1][1] + arm[1][1], pivot[2] + base[1][2] + arm[1][2]),
    )


@inner
def _edge_range(motion: Any, v: Vector, u0: float, u1: float) -> Box:
    """Box over [u0, u1] of an edge of the body that is v at u = 0, scene."""
    if motion.kind == STILL:
        return v, v
    cosine, sine = _turned(motion, u0, u1)
    return _vector_range(motion, v, cosine, sine)


@inner
def _function_range(relative: Any, shape: int, a: Corners, b: Corners, u0: float, u1: float) -> tuple[Interval, float]:
    """Return the range of the triple product of two features over [u0, u1], and a bound on |gap vector| there.

    a, b: points at u = 0, scene. The product is gap . (edge x edge).
    """
    first = relative.first
    second = relative.second
    here = _point_range(first, a[0], u0, u1)
    there = _point_range(second, b[0], u0, u1)
    gap = subtract(there[0], here[1]), subtract(there[1], here[0])
    if shape == EDGE_EDGE:
        e = _edge_range(first, subtract(a[1], a[0]), u0, u1)
        f = _edge_range(second, subtract(b[1], b[0]), u0, u1)
    elif shape == VERTEX_FACE:
        e = _edge_range(second, subtract(b[1], b[0]), u0, u1)
        f = _edge_range(second, subtract(b[2], b[0]), u0, u1)
    else:
        e = _edge_range(first, subtract(a[1], a[0]), u0, u1)
        f = _edge_range(first, subtract(a[2], a[0]), u0, u1)
    return triple_range(gap, e, f), max(taxicab(gap[0]), taxicab(gap[1]))


@inner
def _rate_range(motion: Any, direction: Vector, x: Vector, u0: float, u1: float) -> Interval:
    """Range over [u0, u1] of the velocity along a direction (scene) of the body's point that is at x at u = 0."""
    if motion.kind == STILL:
        return 0.0, 0.0
    axis = vector(motion.axis)
    advance, circling = circling_at(motion, x)
    cosine, sine = _turned(motion, u0, u1)
    turn0, lift0, _, _ = rates(motion.kind, motion.angle, u0)
    turn1, lift1, _, _ = rates(motion.kind, motion.angle, u1)
    if not (turn0 < math.inf and turn1 < math.inf):
        return -math.inf, math.inf
    lift = times(advance * dot(direction, axis), (min(lift0, lift1), max(lift0, lift1)))
    ahead = times(dot(direction, circling), cosine)
    aside = times(dot(direction, cross(axis, circling)), sine)
    round_ = product((min(turn0, turn1), max(turn0, turn1)), (ahead[0] + aside[0], ahead[1] + aside[1]))
    return lift[0] + round_[0], lift[1] + round_[1]


@inner
def _points(shape: int) -> tuple[int, int]:
    """Numbers of points of the first's and the second's feature."""
    if shape == EDGE_EDGE:
        return 2, 2
    if shape == VERTEX_FACE:
        return 1, 3
    return 3, 1


@inner
def _least_gap(
    relative: Any,
    shape: int,
    a: Corners,
    b: Corners,
    now_a: Corners,
    now_b: Corners,
    direction: Vector,
    u0: float,
    u1: float,
) -> float:
    """A bound below the gap along `direction` over [u0, u1]: mean value form from the lower end.

    a, b: points at u = 0; now_a, now_b: at u0; scene.
    """
    count_a, count_b = _points(shape)
    least = math.inf
    for j in range(count_b):
        rate_b = _rate_range(relative.second, direction, b[j], u0, u1)[0]
        for i in range(count_a):
            rate = rate_b - _rate_range(relative.first, direction, a[i], u0, u1)[1]
            gap = dot(direction, subtract(now_b[j], now_a[i]))
            least = min(least, gap + (u1 - u0) * min(rate, 0.0))
    return least


@inner
def _placed(motion: Any, corners: Corners, u: float) -> Corners:
    """Three points of a body (body frame) in the scene at u."""
    position, orientation = pose(motion, u)
    return (
        carried(position, orientation, corners[0]),
        carried(position, orientation, corners[1]),
        carried(position, orientation, corners[2]),
    )


@kernel
def first_approach(
    relative: Any,
    shape: int,
    a: Corners,
    b: Corners,
    c: Corners,
    bounds: Bounds,
    separation: float,
    limit: float,
    time_tolerance: float,
    position_tolerance: float,
    cap: int,
) -> tuple[float, bool, int]:
    """The test for features of any shape; arguments as of that in :mod:`rtcore.collision.elementary.advance`."""
    speed, _, pad = bounds
    start_a = _placed(relative.first, a, 0.0)
    start_b = _placed(relative.second, b, 0.0)
    distance = apart(shape, a, c)[2]
    if distance <= 3.0 * pad:
        return 0.0, True, 0
    kept = min(separation, distance - 3.0 * pad)

    # |triple product| <= distance of the lines x this; and its rounding, from that of the three vectors in it.
    if shape == EDGE_EDGE:
        e = length(subtract(a[1], a[0]))
        f = length(subtract(b[1], b[0]))
    else:
        face = a if shape == FACE_VERTEX else b
        e = length(subtract(face[1], face[0]))
        f = length(subtract(face[2], face[0]))
    band = max(kept, 0.0) * e * f

    smallest = time_tolerance
    if speed > 0.0:
        smallest = min(smallest, position_tolerance / speed)
    index = 0
    level = 0
    for iterations in range(1, cap + 1):
        width = limit / 2.0**level
        u0 = index * width
        u1 = u0 + width
        values, reach = _function_range(relative, shape, start_a, start_b, u0, u1)
        margin = band + 2.0 * pad * (e * f + reach * (e + f))
        free = values[0] > margin or values[1] < -margin
        if not free:
            now_a = _placed(relative.first, a, u0)
            now_b = _placed(relative.second, b, u0)
            direction = apart(shape, now_a, now_b)[0]
            free = _least_gap(relative, shape, start_a, start_b, now_a, now_b, direction, u0, u1) > kept + pad
        if free:
            index, level = following(index, level)
            if index == 1 and level == 0:
                return limit, False, iterations
        elif width <= smallest or level == MAX_LEVEL:
            return u0, True, iterations
        else:
            index *= 2
            level += 1
    return index * (limit / 2.0**level), False, cap
