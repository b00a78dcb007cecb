"""Box and ball tests of the published method, kept to repeat its comparisons; chosen by QUERY.overlap.

`boxes_meet_by` answers in the form of `rtcore.collision.overlap.boxes_meet`, and is that test for OVERLAP_INFLATED. All
but OVERLAP_START and OVERLAP_END hold over the whole interval: they never miss a contact in it.

Interval test: in the frame of the first box the axes and the centre of the second are linear in a few functions of time
(cosine and sine of the angle turned, the share of the advance, and two that carry a point across the axis), each of
which has an exact range. Where both bodies move, the ranges of both are multiplied. Departures from the source: the
velocities of the subdivision test are normalised, its depth is bounded (the boxes are taken to overlap there), the last
row of (3.12) is zero, and the halves are looked at from the left, so that what is free before the first that may
overlap is known.

Source: Redon 2002, 3.2 (balls), 3.3 and 3.4 (boxes), 3.6 (tests of end poses, six axes).
"""

import math
from typing import Any

from rtcore.collision.overlap import (
    OVERLAP_END,
    OVERLAP_INFLATED,
    OVERLAP_INTERVAL,
    OVERLAP_KINDS,
    OVERLAP_SIX_CONTINUOUS,
    OVERLAP_SIX_DISCRETE,
    OVERLAP_SPHERE,
    OVERLAP_TEST_END,
    OVERLAP_TEST_START,
    OVERLAP_UNDIVIDED,
    boxes_meet,
    centre_offset,
)
from rtcore.kernels import inner, kernel
from rtcore.motion import STILL, TAN_HALF, laws, pose, relative_pose, twist
from rtcore.spatial import Vector, add, conjugate, cross, length, quaternion, rotate, scaled, subtract, vector

DEPTH = 6
"""Halvings of the interval after which boxes that may overlap are taken to overlap."""

_PAD = 2.0**-48
_PARALLEL = 1e-6  # square of the sine of the angle of two edges below which their cross product is not tried

Span = tuple[Vector, Vector]
"""An interval for each of three components: (lower ends, upper ends)."""


@kernel
def boxes_meet_by(
    first: Any, second: Any, relative: Any, placement: Any, separation: float, query: Any, counters: Any
) -> tuple[bool, float, float]:
    """The box test that QUERY.overlap names: (may meet, earliest time, gap) as of `overlap.boxes_meet`.

    first, second: BOX_NODE records; relative: RELATIVE record; placement: PLACEMENT record of `overlap.place_pair` for
    the interval; separation: m; query: QUERY record; counters: COUNTERS record, of which the kinds of test are counted
    here (box_tests by the caller). The gap is 0 for tests that give none: then a front must not keep the answer.
    """
    kind = query.overlap & OVERLAP_KINDS
    u0 = placement.u0
    u1 = placement.u1
    if kind == OVERLAP_INFLATED:
        return boxes_meet(first, second, placement, separation)
    if kind == OVERLAP_SPHERE:
        counters.sphere_tests += 1
        return balls_meet(first, second, relative, placement, separation)
    six = (query.overlap & OVERLAP_SIX_DISCRETE) != 0
    if kind == OVERLAP_INTERVAL:
        if (query.overlap & OVERLAP_TEST_END) != 0:
            counters.box_discrete += 1
            if boxes_meet_at(first, second, relative, u1, separation, six):
                return True, u0, 0.0
        if (query.overlap & OVERLAP_TEST_START) != 0:
            counters.box_discrete += 1
            if boxes_meet_at(first, second, relative, u0, separation, six):
                return True, u0, 0.0
        counters.box_continuous += 1
        partial = (query.overlap & OVERLAP_SIX_CONTINUOUS) != 0
        depth = 0 if (query.overlap & OVERLAP_UNDIVIDED) != 0 else DEPTH
        meets, earliest = boxes_meet_over(
            first, second, relative, u0, u1, separation, partial, query.subdivision, depth
        )
        return meets, earliest, 0.0
    counters.box_discrete += 1
    instant = u1 if kind == OVERLAP_END else u0
    meets = boxes_meet_at(first, second, relative, instant, separation, six)
    return meets, u0 if meets else u1, 0.0


# Boxes at one pose. -----------------------------------------------------------------------------------------------


@kernel
def boxes_meet_at(first: Any, second: Any, relative: Any, u: float, separation: float, six: bool) -> bool:
    """False if an axis keeps the boxes of two BOX_NODE records further apart than `separation` (m) at the time u.

    relative: RELATIVE record; six: the face axes only. Axes are the three of each box and their cross products.
    """
    position, turn = relative_pose(relative, u)
    e = first.axes
    a = vector(first.half)
    b = vector(second.half)
    arm = rotate(turn, vector(second.centre))
    t = _along(e, subtract(add(arm, position), vector(first.centre)))
    # Columns: the axes of the second box in the frame of the first.
    f0 = _along(e, rotate(turn, vector(second.axes[0])))
    f1 = _along(e, rotate(turn, vector(second.axes[1])))
    f2 = _along(e, rotate(turn, vector(second.axes[2])))
    sizes = _size(position) + _size(arm) + _size(vector(first.centre)) + _size(a) + _size(b)
    reach = separation + _PAD * sizes
    if abs(t[0]) > a[0] + b[0] * abs(f0[0]) + b[1] * abs(f1[0]) + b[2] * abs(f2[0]) + reach:
        return False
    if abs(t[1]) > a[1] + b[0] * abs(f0[1]) + b[1] * abs(f1[1]) + b[2] * abs(f2[1]) + reach:
        return False
    if abs(t[2]) > a[2] + b[0] * abs(f0[2]) + b[1] * abs(f1[2]) + b[2] * abs(f2[2]) + reach:
        return False
    if _face_separates(t, f0, a, b[0] + reach) or _face_separates(t, f1, a, b[1] + reach):
        return False
    if _face_separates(t, f2, a, b[2] + reach):
        return False
    if six:
        return True
    pad = _PAD * sizes
    return not (
        _edges_separate(t, f0, f1, f2, a, b[1], b[2], separation, pad)
        or _edges_separate(t, f1, f2, f0, a, b[2], b[0], separation, pad)
        or _edges_separate(t, f2, f0, f1, a, b[0], b[1], separation, pad)
    )


@inner
def _along(e: Any, v: Vector) -> Vector:
    # The components of v along the rows of a (3, 3) array.
    return (
        e[0, 0] * v[0] + e[0, 1] * v[1] + e[0, 2] * v[2],
        e[1, 0] * v[0] + e[1, 1] * v[1] + e[1, 2] * v[2],
        e[2, 0] * v[0] + e[2, 1] * v[1] + e[2, 2] * v[2],
    )


@inner
def _size(v: Vector) -> float:
    return abs(v[0]) + abs(v[1]) + abs(v[2])


@inner
def _face_separates(t: Vector, f: Vector, a: Vector, reach: float) -> bool:
    along = abs(t[0] * f[0] + t[1] * f[1] + t[2] * f[2])
    return along > reach + a[0] * abs(f[0]) + a[1] * abs(f[1]) + a[2] * abs(f[2])


@inner
def _edges_separate(
    t: Vector, f: Vector, g: Vector, h: Vector, a: Vector, bg: float, bh: float, separation: float, pad: float
) -> bool:
    # The three axes e_i x f, for one axis f of the second box; g, h: its next two, bg, bh: half lengths along those.
    along = cross(f, t)
    for i in range(3):
        if i == 0:
            x, p, q, ap, aq, gi, hi = along[0], abs(f[1]), abs(f[2]), a[1], a[2], abs(g[0]), abs(h[0])
        elif i == 1:
            x, p, q, ap, aq, gi, hi = along[1], abs(f[2]), abs(f[0]), a[2], a[0], abs(g[1]), abs(h[1])
        else:
            x, p, q, ap, aq, gi, hi = along[2], abs(f[0]), abs(f[1]), a[0], a[1], abs(g[2]), abs(h[2])
        gap = abs(x) - ap * q - aq * p - bg * hi - bh * gi - pad
        square = p * p + q * q
        if gap > 0.0 and square > _PARALLEL and gap * gap > separation * separation * square:
            return True
    return False


# Boxes over an interval. ------------------------------------------------------------------------------------------


@inner
def boxes_meet_over(
    first: Any,
    second: Any,
    relative: Any,
    u0: float,
    u1: float,
    separation: float,
    six: bool,
    subdivision: float,
    depth: int,
) -> tuple[bool, float]:
    """May two boxes come within `separation` (m) at some time in [u0, u1], by interval arithmetic: (may, earliest).

    first, second: BOX_NODE records; relative: RELATIVE record; six: face axes only; subdivision: constant k of the
    test (3.13); depth: halvings allowed. [u0, earliest) is proven free. Works through the halves from the left, without
    recursion: `level` halvings deep, the part number `index` of 2**level. Ranges are padded by 16 units in the last
    place of the sums of what they are computed from.
    """
    level = 0
    index = 0
    for _ in range(2 << depth):
        width = (u1 - u0) / (1 << level)
        left = u0 + index * width
        right = u1 if index + 1 == 1 << level else left + width
        if _disjoint(first, second, relative, left, right, separation, six):
            index += 1
            while level > 0 and index & 1 == 0:
                index >>= 1
                level -= 1
            if level == 0:  # up at the root again: no part is left
                return False, u1
        elif level < depth and _worth_halving(first, second, relative, left, right, subdivision):
            level += 1
            index <<= 1
        else:
            return True, left
    return True, u0


@inner
def _worth_halving(first: Any, second: Any, relative: Any, u0: float, u1: float, subdivision: float) -> bool:
    # (3.13): the extent of one box along the relative velocity of the centres and their path against the extent of the
    # other one. The second takes the place of A.
    _, turn1 = pose(relative.first, u0)
    _, turn2 = pose(relative.second, u0)
    velocity1, spin1 = twist(relative.first, u0)
    velocity2, spin2 = twist(relative.second, u0)
    v = subtract(
        add(velocity2, cross(spin2, rotate(turn2, vector(second.centre)))),
        add(velocity1, cross(spin1, rotate(turn1, vector(first.centre)))),
    )
    speed = length(v)
    if not (0.0 < speed < math.inf):
        return speed > 0.0
    v = scaled(v, 1.0 / speed)
    along1 = _along(first.axes, rotate(conjugate(turn1), v))
    along2 = _along(second.axes, rotate(conjugate(turn2), v))
    extent1 = first.half[0] * abs(along1[0]) + first.half[1] * abs(along1[1]) + first.half[2] * abs(along1[2])
    extent2 = second.half[0] * abs(along2[0]) + second.half[1] * abs(along2[1]) + second.half[2] * abs(along2[2])
    return extent2 + (u1 - u0) * speed > subdivision * extent1


@inner
def _disjoint(first: Any, second: Any, relative: Any, u0: float, u1: float, separation: float, six: bool) -> bool:
    # Does one axis separate the boxes at all times in [u0, u1]?
    # The frame: the axes and the centre of the first box in the middle of the interval, which is where they stay if it
    # is at rest; all numbers are then small, and the first's own ranges near those of the identity.
    position, turn = pose(relative.first, 0.5 * (u0 + u1))
    e0 = rotate(turn, vector(first.axes[0]))
    e1 = rotate(turn, vector(first.axes[1]))
    e2 = rotate(turn, vector(first.axes[2]))
    origin = add(position, rotate(turn, vector(first.centre)))
    spans = motion_spans(relative.second, u0, u1)
    t = _centre_span(relative.second, vector(second.centre), spans, origin, e0, e1, e2)
    f0 = _axis_span(relative.second, vector(second.axes[0]), spans, e0, e1, e2)
    f1 = _axis_span(relative.second, vector(second.axes[1]), spans, e0, e1, e2)
    f2 = _axis_span(relative.second, vector(second.axes[2]), spans, e0, e1, e2)
    if relative.first.kind != STILL:
        spans = motion_spans(relative.first, u0, u1)
        own = _centre_span(relative.first, vector(first.centre), spans, origin, e0, e1, e2)
        d0 = _axis_span(relative.first, vector(first.axes[0]), spans, e0, e1, e2)
        d1 = _axis_span(relative.first, vector(first.axes[1]), spans, e0, e1, e2)
        d2 = _axis_span(relative.first, vector(first.axes[2]), spans, e0, e1, e2)
        t = _carried((subtract(t[0], own[1]), subtract(t[1], own[0])), d0, d1, d2)
        f0 = _carried(f0, d0, d1, d2)
        f1 = _carried(f1, d0, d1, d2)
        f2 = _carried(f2, d0, d1, d2)
    x0 = _largest(f0)
    x1 = _largest(f1)
    x2 = _largest(f2)
    a = vector(first.half)
    b = vector(second.half)
    reach = separation + _PAD * (_size(a) + _size(b) + _size(t[0]) + _size(t[1]))
    if _least(t[0][0], t[1][0]) > a[0] + b[0] * x0[0] + b[1] * x1[0] + b[2] * x2[0] + reach:
        return True
    if _least(t[0][1], t[1][1]) > a[1] + b[0] * x0[1] + b[1] * x1[1] + b[2] * x2[1] + reach:
        return True
    if _least(t[0][2], t[1][2]) > a[2] + b[0] * x0[2] + b[1] * x1[2] + b[2] * x2[2] + reach:
        return True
    if _face_span_separates(t, f0, x0, a, b[0] + reach) or _face_span_separates(t, f1, x1, a, b[1] + reach):
        return True
    if _face_span_separates(t, f2, x2, a, b[2] + reach):
        return True
    if six:
        return False
    return (
        _edge_spans_separate(t, f0, x0, x1, x2, a, b[1], b[2], reach)
        or _edge_spans_separate(t, f1, x1, x2, x0, a, b[2], b[0], reach)
        or _edge_spans_separate(t, f2, x2, x0, x1, a, b[0], b[1], reach)
    )


@inner
def motion_spans(
    motion: Any, u0: float, u1: float
) -> tuple[float, float, float, float, float, float, float, float, float, float]:
    """Ranges over [u0, u1] of the five functions of time that a MOTION is linear in, as ten ends.

    With W the whole angle, a the one turned at u (0..W <= pi), S and the share b as in `rtcore.motion`: cos a, sin a,
    b, S cos((W - a) / 2), S sin((W - a) / 2). Each pair is (lower end, upper end), padded by 2**-48.
    """
    whole = motion.angle
    a0, s0, b0 = laws(motion.kind, whole, u0)
    a1, s1, b1 = laws(motion.kind, whole, u1)
    sine0 = math.sin(a0)
    sine1 = math.sin(a1)
    highest = 1.0 if a0 <= 0.5 * math.pi <= a1 else max(sine0, sine1)
    # The carry along the chord only rises; the one across it rises up to half of the angle and falls after that.
    side0 = s0 * math.sin(0.5 * (whole - a0))
    side1 = s1 * math.sin(0.5 * (whole - a1))
    top = 0.5 * math.tan(0.25 * whole) if a0 <= 0.5 * whole <= a1 else max(side0, side1)
    return (
        math.cos(a1) - _PAD,
        math.cos(a0) + _PAD,
        min(sine0, sine1) - _PAD,
        highest + _PAD,
        b0 - _PAD,
        b1 + _PAD,
        s0 * math.cos(0.5 * (whole - a0)) - _PAD,
        s1 * math.cos(0.5 * (whole - a1)) + _PAD,
        min(side0, side1) - _PAD,
        top + _PAD,
    )


@inner
def _in_frame(e0: Vector, e1: Vector, e2: Vector, v: Vector) -> Vector:
    return (
        e0[0] * v[0] + e0[1] * v[1] + e0[2] * v[2],
        e1[0] * v[0] + e1[1] * v[1] + e1[2] * v[2],
        e2[0] * v[0] + e2[1] * v[1] + e2[2] * v[2],
    )


@inner
def _grown(span: Span, v: Vector, low: float, high: float) -> Span:
    # span + v [low, high]
    lower, upper = span
    return (
        (
            lower[0] + min(v[0] * low, v[0] * high),
            lower[1] + min(v[1] * low, v[1] * high),
            lower[2] + min(v[2] * low, v[2] * high),
        ),
        (
            upper[0] + max(v[0] * low, v[0] * high),
            upper[1] + max(v[1] * low, v[1] * high),
            upper[2] + max(v[2] * low, v[2] * high),
        ),
    )


@inner
def _turned_parts(motion: Any, v: Vector) -> tuple[Vector, Vector, Vector]:
    # (fixed part, factor of cos a, factor of sin a) of a scene vector turned by the motion
    n = vector(motion.axis)
    along = n[0] * v[0] + n[1] * v[1] + n[2] * v[2]
    fixed = scaled(n, along)
    return fixed, subtract(v, fixed), cross(n, v)


@inner
def _axis_span(motion: Any, v: Vector, spans: tuple, e0: Vector, e1: Vector, e2: Vector) -> Span:
    # Range in the frame of the unit vector v of the body, which no component leaves [-1, 1] for.
    fixed, even, odd = _turned_parts(motion, rotate(quaternion(motion.orientation), v))
    fixed = _in_frame(e0, e1, e2, fixed)
    span = _grown((fixed, fixed), _in_frame(e0, e1, e2, even), spans[0], spans[1])
    lower, upper = _grown(span, _in_frame(e0, e1, e2, odd), spans[2], spans[3])
    return (
        (max(lower[0] - _PAD, -1.0), max(lower[1] - _PAD, -1.0), max(lower[2] - _PAD, -1.0)),
        (min(upper[0] + _PAD, 1.0), min(upper[1] + _PAD, 1.0), min(upper[2] + _PAD, 1.0)),
    )


@inner
def _centre_span(motion: Any, centre: Vector, spans: tuple, origin: Vector, e0: Vector, e1: Vector, e2: Vector) -> Span:
    # Range in the frame of the point `centre` of the body, from the origin. The point itself serves as the pivot of the
    # screw, so that its path has no parts that could cancel each other.
    n = vector(motion.axis)
    pivot = vector(motion.pivot)
    shift = vector(motion.shift)
    start = add(vector(motion.position), rotate(quaternion(motion.orientation), centre))
    _, even, odd = _turned_parts(motion, subtract(start, pivot))
    lift, across, _ = _turned_parts(motion, shift)
    # All of the turn moves the point by this much against the pivot: 1 - cos W = 2 sin^2 (W / 2).
    sine = math.sin(0.5 * motion.angle)
    across = add(across, subtract(scaled(odd, math.sin(motion.angle)), scaled(even, 2.0 * sine * sine)))
    fixed = _in_frame(e0, e1, e2, subtract(start, origin))
    span = _grown((fixed, fixed), _in_frame(e0, e1, e2, lift), spans[4], spans[5])
    span = _grown(span, _in_frame(e0, e1, e2, across), spans[6], spans[7])
    lower, upper = _grown(span, _in_frame(e0, e1, e2, cross(across, n)), spans[8], spans[9])
    pad = _PAD * (_size(vector(motion.position)) + _size(centre) + 2.0 * _size(pivot) + _size(origin) + _size(shift))
    return (
        (lower[0] - pad, lower[1] - pad, lower[2] - pad),
        (upper[0] + pad, upper[1] + pad, upper[2] + pad),
    )


@inner
def _span_product(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    # [a, b] x [c, d]
    p = a * c
    q = a * d
    r = b * c
    s = b * d
    return min(min(p, q), min(r, s)), max(max(p, q), max(r, s))


@inner
def _span_dot(x: Span, y: Span) -> tuple[float, float]:
    l0, h0 = _span_product(x[0][0], x[1][0], y[0][0], y[1][0])
    l1, h1 = _span_product(x[0][1], x[1][1], y[0][1], y[1][1])
    l2, h2 = _span_product(x[0][2], x[1][2], y[0][2], y[1][2])
    return l0 + l1 + l2, h0 + h1 + h2


@inner
def _carried(x: Span, d0: Span, d1: Span, d2: Span) -> Span:
    # Components of x along three moving axes, padded by the rounding of the sums.
    l0, h0 = _span_dot(x, d0)
    l1, h1 = _span_dot(x, d1)
    l2, h2 = _span_dot(x, d2)
    pad = _PAD * (_size(x[0]) + _size(x[1]))
    return (l0 - pad, l1 - pad, l2 - pad), (h0 + pad, h1 + pad, h2 + pad)


@inner
def _least(low: float, high: float) -> float:
    # Least magnitude in [low, high].
    return max(low, -high, 0.0)


@inner
def _largest(x: Span) -> Vector:
    # Largest magnitude of each component.
    return (
        min(max(-x[0][0], x[1][0]), 1.0),
        min(max(-x[0][1], x[1][1]), 1.0),
        min(max(-x[0][2], x[1][2]), 1.0),
    )


@inner
def _face_span_separates(t: Span, f: Span, x: Vector, a: Vector, reach: float) -> bool:
    low, high = _span_dot(t, f)
    return _least(low, high) > reach + a[0] * x[0] + a[1] * x[1] + a[2] * x[2]


@inner
def _edge_spans_separate(
    t: Span, f: Span, x: Vector, y: Vector, z: Vector, a: Vector, by: float, bz: float, reach: float
) -> bool:
    # The three axes e_i x f for one axis f of the second box; x, y, z: largest cosines of it and of its next two. An
    # axis is at most one long, so that `reach` need not be made smaller.
    for i in range(3):
        if i == 0:
            low, high = _span_cross(f[0][1], f[1][1], t[0][2], t[1][2], f[0][2], f[1][2], t[0][1], t[1][1])
            radius = a[1] * x[2] + a[2] * x[1] + by * z[0] + bz * y[0]
        elif i == 1:
            low, high = _span_cross(f[0][2], f[1][2], t[0][0], t[1][0], f[0][0], f[1][0], t[0][2], t[1][2])
            radius = a[2] * x[0] + a[0] * x[2] + by * z[1] + bz * y[1]
        else:
            low, high = _span_cross(f[0][0], f[1][0], t[0][1], t[1][1], f[0][1], f[1][1], t[0][0], t[1][0])
            radius = a[0] * x[1] + a[1] * x[0] + by * z[2] + bz * y[2]
        if _least(low, high) > radius + reach:
            return True
    return False


@inner
def _span_cross(
    fl: float, fh: float, tl: float, th: float, gl: float, gh: float, sl: float, sh: float
) -> tuple[float, float]:
    # [fl, fh] [tl, th] - [gl, gh] [sl, sh]
    low, high = _span_product(fl, fh, tl, th)
    low2, high2 = _span_product(gl, gh, sl, sh)
    return low - high2, high - low2


# Balls. -----------------------------------------------------------------------------------------------------------


@inner
def balls_meet(first: Any, second: Any, relative: Any, placement: Any, separation: float) -> tuple[bool, float, float]:
    """May the balls of two BOX_NODE records come within `separation` (m): (may, earliest, gap) as of `boxes_meet`.

    The quartic of the distance (2.32) where the first body is STILL and the second's motion is TAN_HALF; otherwise the
    centre's straight path from the middle, padded by the bow of the PLACEMENT record.
    """
    reach = first.radius + second.radius + separation
    if relative.first.kind == STILL and relative.second.kind == TAN_HALF:
        still = relative.first
        fixed = add(vector(still.position), rotate(quaternion(still.orientation), vector(first.centre)))
        meets = moving_ball_meets(relative.second, vector(second.centre), fixed, reach, placement.u0, placement.u1)
        return meets, placement.u0 if meets else placement.u1, 0.0
    t, arm, rounding = centre_offset(first, second, placement)
    v = scaled(add(vector(placement.velocity), cross(vector(placement.spin), arm)), placement.half)
    own = placement.bow + rounding + _PAD * (_size(v) + reach)
    # |t + x v| for x in -1 .. 1
    square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    along = t[0] * v[0] + t[1] * v[1] + t[2] * v[2]
    x = 0.0 if square == 0.0 else min(max(-along / square, -1.0), 1.0)
    gap = length(add(t, scaled(v, x))) - own - first.radius - second.radius
    if gap > separation:
        return False, placement.u1, gap
    start = length(subtract(t, v)) - own - reach
    if start <= 0.0:
        return True, placement.u0, gap
    # The distance falls no faster than the centre moves.
    share = min(0.5 * start / math.sqrt(square), 1.0) * (1.0 - _PAD)
    return True, placement.u0 + share * (placement.u1 - placement.u0), gap


@kernel
def ball_quartic(motion: Any, centre: Vector, fixed: Vector, reach: float) -> tuple[float, float, float, float, float]:
    """Coefficients, constant first, of the quartic that tells how near a ball on a TAN_HALF motion is to a fixed one.

    motion: MOTION record; centre: of its ball, body frame, m; fixed: centre of the other, scene, m; reach: sum of the
    radii, m. With x = tan(W u / 2) / tan(W / 2) in 0..1 and T = tan(W / 2) it is (square distance - reach^2)
    (1 + T^2 x^2), so the balls overlap where it is not positive. Source: Redon 2002, (2.31)-(2.33), written with the
    velocity at the start instead of the coordinates about the axis, which keeps it regular down to W = 0: with the
    offset m of the centres, the axis n, the advance s along it and V the velocity across it by x, the coefficients are
    m.m - reach^2, 2 m.(V + s n), T^2 (m.m - reach^2) + V.V + 2 T (n x V).m + s^2, 2 s T^2 m.n and s^2 T^2.
    """
    n = vector(motion.axis)
    tangent = math.tan(0.5 * motion.angle)
    start = add(vector(motion.position), rotate(quaternion(motion.orientation), centre))
    shift = vector(motion.shift)
    lift, across, side = _turned_parts(motion, shift)
    advance = lift[0] * n[0] + lift[1] * n[1] + lift[2] * n[2]
    arm = cross(n, subtract(start, vector(motion.pivot)))
    v = (
        across[0] + tangent * (2.0 * arm[0] - side[0]),
        across[1] + tangent * (2.0 * arm[1] - side[1]),
        across[2] + tangent * (2.0 * arm[2] - side[2]),
    )
    m = subtract(start, fixed)
    c0 = m[0] * m[0] + m[1] * m[1] + m[2] * m[2] - reach * reach
    w = cross(n, v)
    along = m[0] * n[0] + m[1] * n[1] + m[2] * n[2]
    inward = w[0] * m[0] + w[1] * m[1] + w[2] * m[2]
    square = tangent * tangent
    return (
        c0,
        2.0 * (m[0] * v[0] + m[1] * v[1] + m[2] * v[2] + advance * along),
        square * c0 + v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + 2.0 * tangent * inward + advance * advance,
        2.0 * advance * square * along,
        advance * advance * square,
    )


@kernel
def moving_ball_meets(motion: Any, centre: Vector, fixed: Vector, reach: float, u0: float, u1: float) -> bool:
    """Does a ball on a TAN_HALF motion overlap a fixed one at some time in [u0, u1]?

    Arguments as of `ball_quartic`. Only whether, not when: the ends first, then the least value in between, at a root
    of the derivative. Values within 64 units in the last place of the numbers involved count as an overlap.
    """
    whole = motion.angle
    tangent = math.tan(0.5 * whole)
    x0 = u0 if whole < 1e-9 else math.tan(0.5 * whole * u0) / tangent
    x1 = u1 if whole < 1e-9 else math.tan(0.5 * whole * u1) / tangent
    c0, c1, c2, c3, c4 = ball_quartic(motion, centre, fixed, reach)
    lengths = (
        _size(vector(motion.position))
        + _size(centre)
        + _size(fixed)
        + (1.0 + tangent) * (_size(vector(motion.shift)) + _size(vector(motion.pivot)))
        + tangent * (_size(vector(motion.position)) + _size(centre))
        + reach
    )
    return quartic_falls_to(c0, c1, c2, c3, c4, x0, x1, 2.0**-46 * lengths * lengths)


@kernel
def quartic_falls_to(
    c0: float, c1: float, c2: float, c3: float, c4: float, low: float, high: float, level: float
) -> bool:
    """Is a quartic (coefficients, constant first) at or below `level` somewhere in [low, high]?

    Its least value lies at an end or at a root of the derivative, a cubic; between the turning points of that one,
    which are roots of a quadratic, there is at most one root, found by a bracketed Newton iteration that no vanishing
    leading coefficient disturbs.
    """
    if _quartic(c0, c1, c2, c3, c4, low) <= level or _quartic(c0, c1, c2, c3, c4, high) <= level:
        return True
    # Turning points of the derivative d1 + d2 x + d3 x^2 + d4 x^3 (its own derivative is d2 + 2 d3 x + 3 d4 x^2).
    d1 = c1
    d2 = 2.0 * c2
    d3 = 3.0 * c3
    d4 = 4.0 * c4
    first = high
    second = high
    root = d3 * d3 - 3.0 * d4 * d2
    if root > 0.0:
        # The stable form of the quadratic formula.
        q = -(d3 + math.copysign(math.sqrt(root), d3))
        p0 = d2 / q if q != 0.0 else high
        p1 = q / (3.0 * d4) if d4 != 0.0 else high
        first = min(max(min(p0, p1), low), high)
        second = min(max(max(p0, p1), low), high)
    left = low
    for k in range(3):
        right = first if k == 0 else second if k == 1 else high
        if right > left:
            x = _rising_root(d1, d2, d3, d4, left, right)
            if x > left and _quartic(c0, c1, c2, c3, c4, x) <= level:
                return True
            left = right
    return False


@inner
def _quartic(c0: float, c1: float, c2: float, c3: float, c4: float, x: float) -> float:
    return c0 + x * (c1 + x * (c2 + x * (c3 + x * c4)))


@inner
def _rising_root(d1: float, d2: float, d3: float, d4: float, left: float, right: float) -> float:
    # The root in (left, right) of a cubic that rises through zero there; `left` if there is none: only such roots are
    # minima of its integral.
    at_left = d1 + left * (d2 + left * (d3 + left * d4))
    at_right = d1 + right * (d2 + right * (d3 + right * d4))
    if at_left >= 0.0 or at_right <= 0.0:
        return left
    low = left
    high = right
    x = low + (high - low) * at_left / (at_left - at_right)
    for _ in range(60):
        value = d1 + x * (d2 + x * (d3 + x * d4))
        if value > 0.0:
            high = x
        else:
            low = x
        slope = d2 + x * (2.0 * d3 + x * 3.0 * d4)
        following = x - value / slope if slope > 0.0 else low
        if not (low < following < high):
            following = 0.5 * (low + high)
        if abs(following - x) <= 1e-15:
            return following
        x = following
    return x
