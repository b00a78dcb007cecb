"""Closed-form back-end: first contact of two features on the motions that make its equation a cubic.

The first body stands still and the second is on a TAN_HALF motion, does not turn, or stands still too. With
v = tan(a / 2) / tan(W / 2) in place of time, all coordinates are polynomials of degree two or three over
D = 1 + tan^2(W / 2) v^2, and D times the triple product that vanishes where two lines meet, or a point and a plane,
is a cubic in v. It is fixed by four values, taken at the ends and thirds of the range, and turned into Bernstein form:
coefficients of one sign exclude a root, which answers most pairs. What is left is halved, the left half first, down to
the time tolerance or to that in which no point goes farther than the position tolerance. There, and earlier where the
coefficients tell of more than one root or of nothing (a cubic that is zero throughout, as of edges that slide in one
plane; parallel edges), the interval is dropped if the distance of the features at its middle is more than any point can
go in half of it. That is the test for a contact inside the features, made so that it proves: what is dropped is free.

Separation. A cubic knows only of the distance 0. With separation > 0 the sign test is still made in closed form, with a
band of `separation` on either side (for faces the exact distance to the plane, for edges a bound). What it leaves is
passed on to :mod:`rtcore.collision.elementary.advance`. So are all motions other than those named above.

Results, frames and pads are as there; iterations counts intervals of the bisection, or advances where passed on. A time
that was found has a distance within position_tolerance (or speed x time_tolerance) of 0 near it. This is a mode for
comparisons; the loop runs on advance.

Source: Redon 2002, section 2.4, (2.15)-(2.29); the sampled, pivot-based Bernstein form is own work.
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
)
from rtcore.collision.elementary.advance import first_approach as advanced
from rtcore.collision.elementary.interval import MAX_LEVEL, following
from rtcore.kernels import inner, kernel
from rtcore.motion import STILL, TAN_HALF, relative_pose
from rtcore.spatial import cross, dot, length, subtract

Cubic = tuple[float, float, float, float]

ULPS = 8.0 * 2.0**-52
"""Relative pad of the change between v and time."""


@kernel
def solvable(relative: Any) -> bool:
    """Does this RELATIVE record make the contact equations cubic?"""
    second = relative.second
    return relative.first.kind == STILL and (second.kind == TAN_HALF or second.kind == STILL or second.angle == 0.0)


@kernel
def triple_product(shape: int, a: Corners, c: Corners) -> float:
    """Gap . (edge x edge): zero where the lines of two edges meet, or the point lies in the plane."""
    gap = subtract(c[0], a[0])
    if shape == EDGE_EDGE:
        return dot(gap, cross(subtract(a[1], a[0]), subtract(c[1], c[0])))
    if shape == VERTEX_FACE:
        return dot(gap, cross(subtract(c[1], c[0]), subtract(c[2], c[0])))
    return dot(gap, cross(subtract(a[1], a[0]), subtract(a[2], a[0])))


@kernel
def bernstein(y0: float, y1: float, y2: float, y3: float) -> Cubic:
    """Bernstein coefficients over [0, 1] of the cubic with these values at 0, 1/3, 2/3 and 1."""
    return (
        y0,
        (-5.0 * y0 + 18.0 * y1 - 9.0 * y2 + 2.0 * y3) / 6.0,
        (2.0 * y0 - 9.0 * y1 + 18.0 * y2 - 5.0 * y3) / 6.0,
        y3,
    )


@inner
def left_part(p: Cubic, x: float) -> Cubic:
    """Bernstein coefficients over [0, x] of a cubic given over [0, 1]."""
    y = 1.0 - x
    a = y * p[0] + x * p[1]
    b = y * p[1] + x * p[2]
    c = y * p[2] + x * p[3]
    d = y * a + x * b
    return p[0], a, d, y * d + x * (y * b + x * c)


@kernel
def part(p: Cubic, x0: float, x1: float) -> Cubic:
    """Bernstein coefficients over [x0, x1] of a cubic given over [0, 1] (de Casteljau)."""
    q = left_part(p, x1)
    r = left_part((q[3], q[2], q[1], q[0]), 1.0 - x0 / x1)
    return r[3], r[2], r[1], r[0]


@inner
def one_sign(p: Cubic, pad: float) -> bool:
    """Are all coefficients above the pad or all below it negated? Then the cubic has no root, rounding or not."""
    return min(p[0], p[1], p[2], p[3]) > pad or max(p[0], p[1], p[2], p[3]) < -pad


@inner
def crosses_once(p: Cubic, pad: float) -> bool:
    """Do the ends have opposite signs, and the coefficients change sign once only? Then there is one simple root."""
    if not (min(p[0], p[3]) < -pad and max(p[0], p[3]) > pad):
        return False
    sign = 1.0 if p[0] > 0.0 else -1.0
    return not (sign * p[1] < 0.0 and sign * p[2] > 0.0)


@inner
def _time(angle: float, tangent: float, v: float) -> float:
    """The time at which tan(a / 2) / tan(W / 2) is v."""
    return 2.0 * math.atan(tangent * v) / angle if tangent > 0.0 else v


@inner
def _carry(relative: Any, b: Corners, u: float) -> Corners:
    """Three points of the second in the first's frame at u."""
    position, orientation = relative_pose(relative, u)
    return (
        carried(position, orientation, b[0]),
        carried(position, orientation, b[1]),
        carried(position, orientation, b[2]),
    )


@inner
def _sizes(shape: int, a: Corners, b: Corners) -> tuple[float, float, float]:
    """Return (|edge|, |edge|, bound on |edge x edge|) of the triple product; the last is exact for faces."""
    if shape == EDGE_EDGE:
        first = length(subtract(a[1], a[0]))
        second = length(subtract(b[1], b[0]))
        return first, second, first * second
    face = a if shape == FACE_VERTEX else b
    e = subtract(face[1], face[0])
    f = subtract(face[2], face[0])
    return length(e), length(f), length(cross(e, f))


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
    if not solvable(relative):
        return advanced(relative, shape, a, b, c, bounds, separation, limit, time_tolerance, position_tolerance, cap)

    speed, _, pad = bounds
    angle = relative.second.angle if relative.second.kind == TAN_HALF else 0.0
    tangent = math.tan(0.5 * angle)
    last = limit
    if angle > 0.0:
        last = math.tan(0.5 * angle * limit) / tangent
    last *= 1.0 + ULPS
    bulge = (tangent * last) * (tangent * last)
    y0 = triple_product(shape, a, c)
    y1 = (1.0 + bulge / 9.0) * triple_product(shape, a, _carry(relative, b, _time(angle, tangent, last / 3.0)))
    y2 = (1.0 + bulge / 2.25) * triple_product(shape, a, _carry(relative, b, _time(angle, tangent, last / 1.5)))
    y3 = (1.0 + bulge) * triple_product(shape, a, _carry(relative, b, _time(angle, tangent, last)))
    cubic = bernstein(y0, y1, y2, y3)
    # Rounding of the three vectors of a triple product; the Bernstein form takes sums of up to 34 / 6 of the values.
    e, f, area = _sizes(shape, a, b)
    reach = length(subtract(c[0], a[0])) + speed * limit
    doubt = 7.0 * (1.0 + bulge) * 2.0 * pad * (e * f + reach * (e + f))
    if separation > 0.0:
        band = separation * area
        low = (cubic[0] - band, cubic[1] - band, cubic[2] - band * (1.0 + bulge / 3.0), cubic[3] - band * (1.0 + bulge))
        high = (
            cubic[0] + band,
            cubic[1] + band,
            cubic[2] + band * (1.0 + bulge / 3.0),
            cubic[3] + band * (1.0 + bulge),
        )
        if min(low[0], low[1], low[2], low[3]) > doubt or max(high[0], high[1], high[2], high[3]) < -doubt:
            return limit, False, 0
        return advanced(relative, shape, a, b, c, bounds, separation, limit, time_tolerance, position_tolerance, cap)
    if one_sign(cubic, doubt):
        return limit, False, 0
    if apart(shape, a, c)[2] <= 3.0 * pad:
        return 0.0, True, 0
    return _descend(
        relative, shape, a, b, bounds, cubic, doubt, angle, last, limit, time_tolerance, position_tolerance, cap
    )


@inner
def _descend(
    relative: Any,
    shape: int,
    a: Corners,
    b: Corners,
    bounds: Bounds,
    cubic: Cubic,
    doubt: float,
    angle: float,
    last: float,
    limit: float,
    time_tolerance: float,
    position_tolerance: float,
    cap: int,
) -> tuple[float, bool, int]:
    """First root of the cubic over [0, last] at which the features meet."""
    speed, _, pad = bounds
    tangent = math.tan(0.5 * angle)
    smallest = time_tolerance
    if speed > 0.0:
        smallest = min(smallest, position_tolerance / speed)
    index = 0
    level = 0
    for iterations in range(1, cap + 1):
        width = 1.0 / 2.0**level
        x0 = index * width
        here = part(cubic, x0, x0 + width)
        free = one_sign(here, doubt)
        if not free:
            u0 = _time(angle, tangent, last * x0) * (1.0 - ULPS)
            u1 = _time(angle, tangent, last * (x0 + width)) * (1.0 + ULPS)
            small = u1 - u0 <= smallest or level == MAX_LEVEL
            if small or not crosses_once(here, doubt):
                middle = 0.5 * (u0 + u1)
                distance = apart(shape, a, _carry(relative, b, middle))[2]
                free = distance > 0.5 * speed * (u1 - u0) + pad
            if not free and small:
                return u0, True, iterations
        if free:
            index, level = following(index, level)
            if index == 1 and level == 0:
                return limit, False, iterations
        else:
            index *= 2
            level += 1
    return _time(angle, tangent, last * (index / 2.0**level)) * (1.0 - ULPS), False, cap
