"""Minimum-separation tests of features on rigid in-between motions by directional conservative advancement.

At a time u the nearest points of the two features give a unit direction n from the first to the second. The planes
across n through the outermost vertices of either feature keep them apart: the distance is at least the smallest n.x
over the second's vertices less the largest over the first's. Seen from the first body a vertex of the second goes on
as n.x(u + h) >= n.x(u) + h n.v(u) - h^2 A / 2, with A a bound on its acceleration. The first h at which any of these
comes down to the separation is the root of a quadratic, and [u, u + h) is proven free. What slides or recedes is
therefore free in one step, however near it is.

Where that does not reach the end, another bound of this kind is tried, and the longer advance is taken: for edges that
cross with the common normal of their lines, else with n fixed to the second body, which therefore does not tilt in its
plane. With these what approaches is met quadratically, whatever turns.

Time runs over 0..1 (one step); lengths are in m. Points of the first feature are in the first body's frame, points of
the second feature in the SECOND body's frame. `separation` is the distance to be kept. An advance aims half of the
tolerance above it (half as high as the features are, where that is less), so that rounding never takes them below it,
and that what is pressed together stays where it is. Features that begin within three pads of the separation, or below
it, are held by a level of their own (see :func:`kept_distance`): they may slide and leave; they may not approach, and
whatever second-order part of a motion brings them nearer ends at a level that does not depend on the number of queries.
Where they touch to rounding (three pads), the answer is time 0.

All three tests return (time, found, iterations): no u in [0, time) has a distance of `separation` or less. found True:
at `time` the distance is within `position_tolerance` (or 64 pads) of the separation while the features approach, or the
next proven advance was `time_tolerance` or shorter (which needs a distance within speed x time_tolerance). found False:
nothing was found up to `time`, which is `limit`, or less where `cap` advances did not do to get there. Iterations
counts advances; 0 where a filter answered.

The pad is 64 units in the last place of the sum of all coordinates that the poses are computed from.

Source: Mirtich 1996 (conservative advancement); Tang, Kim and Manocha 2009 (directional motion bounds, C2A); minimum
separation after Redon 2002, section 6; the quadratic bound and the treatment of features below it are own work.
"""

import math
from typing import Any

from rtcore.collision.features import FACE, along, point_triangle, segment_segment
from rtcore.kernels import inner, kernel
from rtcore.motion import path_bound, relative_bounds, relative_pose, relative_twist
from rtcore.spatial import (
    Quaternion,
    Vector,
    add,
    conjugate,
    cross,
    dot,
    length,
    multiply,
    quaternion,
    rotate,
    scaled,
    subtract,
    vector,
)

Corners = tuple[Vector, Vector, Vector]
Bounds = tuple[float, float, float]
Twist = tuple[Vector, Vector]

EDGE_EDGE = 0
VERTEX_FACE = 1
FACE_VERTEX = 2
FIRST_POINTS = (2, 1, 3)
SECOND_POINTS = (2, 3, 1)
"""Numbers of points of the features, by shape."""

PAD = 64.0 * 2.0**-52
"""Rounding pad per length of the coordinates."""

NARROWEST = 64.0
"""Pads: a position tolerance below this is taken as this much."""

BELOW = 4.0
"""Pads below the separation at which features are held that begin within rounding of it."""

HYSTERESIS = 0.125
"""Share of the tolerance that features may be below a level, by rounding of poses, and are still held by it."""

SLOW = 2.0**-10
"""Share of the tolerance: what would come nearer by less than this up to the limit slides, and does not approach."""

STEADY = 32.0 * 2.0**-52
"""Share of the speed by which a rate of approach may differ from 0 by rounding."""

PARALLEL = 1e-10
"""Square of the sine of the angle of two edges below which their cross product is no good direction."""


@inner
def taxicab(v: Vector) -> float:
    """The sum of the magnitudes of the components."""
    return abs(v[0]) + abs(v[1]) + abs(v[2])


@inner
def rounding_pad(relative: Any, first: Vector, second: Vector, radius: float) -> float:
    """Bound (m) on the rounding of a coordinate or distance in the first's frame, for points within `radius` of two.

    first: a point in the first's frame; second: one in the second's; the distance of all points used from one of these
    is at most `radius`.
    """
    one = relative.first
    two = relative.second
    extent = taxicab(first) + taxicab(second) + radius
    for k in range(3):
        extent += abs(one.position[k]) + abs(one.pivot[k]) + abs(one.shift[k])
        extent += abs(two.position[k]) + abs(two.pivot[k]) + abs(two.shift[k])
    return PAD * extent


@inner
def _unit(v: Vector) -> Vector:
    size = length(v)
    return scaled(v, 1.0 / size) if size > 0.0 else v


@inner
def _across(v: Vector, edge: Vector) -> Vector:
    """The part of v across the edge. Of a small difference v the rounding along a long edge would tilt its plane."""
    square = dot(edge, edge)
    return along(v, edge, -dot(v, edge) / square) if square > 0.0 else v


@kernel
def edges_apart(a0: Vector, a1: Vector, b0: Vector, b1: Vector) -> tuple[Vector, Vector, float]:
    """Return (unit direction from a to b, nearest point on b, distance) of two edges; direction 0 where they meet."""
    a = subtract(a1, a0)
    b = subtract(b1, b0)
    s, t, square = segment_segment(a0, a1, b0, b1)
    there = along(b0, b, t)
    gap = subtract(there, along(a0, a, s))
    inside_a = 0.0 < s < 1.0
    inside_b = 0.0 < t < 1.0
    if inside_a and inside_b:
        normal = cross(a, b)
        if dot(normal, normal) > PARALLEL * dot(a, a) * dot(b, b):
            return _unit(scaled(normal, math.copysign(1.0, dot(normal, gap)))), there, math.sqrt(square)
    direction = _unit(gap)
    if inside_a:
        direction = _unit(_across(direction, a))
    if inside_b:
        direction = _unit(_across(direction, b))
    return direction, there, math.sqrt(square)


@kernel
def point_face_apart(p: Vector, a: Vector, b: Vector, c: Vector) -> tuple[Vector, Vector, float]:
    """Return (unit direction from p to the triangle, its point nearest to p, distance); the direction is 0 at p."""
    v, w, square, feature = point_triangle(p, a, b, c)
    ab = subtract(b, a)
    ac = subtract(c, a)
    there = along(along(a, ab, v), ac, w)
    gap = subtract(there, p)
    direction = _unit(gap)
    if feature == FACE:
        normal = _unit(cross(ab, ac))
        side = dot(normal, gap)
        # A needle's plane is less well known than the line to its nearest point.
        if abs(side) >= (1.0 - 1e-6) * math.sqrt(square):
            direction = scaled(normal, math.copysign(1.0, side))
    elif feature == 3:
        direction = _unit(_across(direction, ab))
    elif feature == 4:
        direction = _unit(_across(direction, subtract(c, b)))
    elif feature == 5:
        direction = _unit(_across(direction, ac))
    return direction, there, math.sqrt(square)


@kernel
def apart(shape: int, a: Corners, c: Corners) -> tuple[Vector, Vector, float]:
    """Return (unit direction from first to second, nearest point on the second, distance), all in one frame.

    shape: EDGE_EDGE (two points of a and c are used), VERTEX_FACE (one of a, three of c) or FACE_VERTEX.
    """
    if shape == EDGE_EDGE:
        return edges_apart(a[0], a[1], c[0], c[1])
    if shape == VERTEX_FACE:
        return point_face_apart(a[0], c[0], c[1], c[2])
    direction, _, distance = point_face_apart(c[0], a[0], a[1], a[2])
    return scaled(direction, -1.0), c[0], distance


@kernel
def ball(corners: Corners) -> tuple[Vector, float]:
    """Centre and radius of a ball that holds three points; tight where the last repeats the second."""
    p, q, r = corners
    middle = scaled(add(p, q), 0.5)
    if r[0] != q[0] or r[1] != q[1] or r[2] != q[2]:
        middle = scaled(add(add(p, q), r), 1.0 / 3.0)
    return middle, max(length(subtract(p, middle)), length(subtract(q, middle)), length(subtract(r, middle)))


@inner
def _root(gap: float, rate: float, acceleration: float) -> float:
    """How long gap + rate h - acceleration h^2 / 2 >= 0 holds from h = 0 on: 0 if not at all, infinite if for ever."""
    if not gap >= 0.0:
        return 0.0
    radical = math.sqrt(rate * rate + 2.0 * acceleration * gap)
    if rate < 0.0:
        return 2.0 * gap / (radical - rate)
    return (rate + radical) / acceleration if acceleration > 0.0 else math.inf


@inner
def _carried_step(
    a: Corners, c: Corners, count: int, direction: Vector, margin: float, there: Vector, twist: Twist, bounds: Bounds
) -> float:
    """The proven advance with the direction fixed to the second body, in which only the first's `count` points move.

    margin: kept distance and pad; there, twist: a point of the second and its velocity, with the angular velocity;
    bounds: speed and acceleration of that point, and the second derivative of the direction. With n the direction and
    y the point, n.(y - a) has the second derivative n.y'' + 2 n'.y' + n''.(y - a).
    """
    velocity, angular = twist
    speed, acceleration, curl = bounds
    spin = length(angular)
    lowest = min(dot(direction, c[0]), dot(direction, c[1]), dot(direction, c[2]))
    step = math.inf
    for i in range(count):
        arm = subtract(a[i], there)
        rate = dot(direction, add(velocity, cross(angular, arm)))
        bend = acceleration + 2.0 * spin * speed + curl * (length(arm) + speed)
        step = min(step, _root(lowest - dot(direction, a[i]) - margin, rate, bend))
    return step


@inner
def _crossing_step(
    a: Corners, c: Corners, direction: Vector, distance: float, kept: float, pad: float, twist: Twist, bounds: Bounds
) -> float:
    """The proven advance of two edges that cross, from the distance of their lines; 0 where they do not.

    With unit edges e and f, m = e x f and g from the one line to the other (here along m), they are g.m / |m| apart.
    As f turns, g.m has the second derivative g''.m + 2 g'.m' + g.m'', and |m| stays below its tangent and parabola
    since sqrt(1 + x) <= 1 + x / 2. The rest as for :func:`_carried_step`; twist at the nearest point of the second.
    """
    velocity, angular = twist
    speed, acceleration, curl = bounds
    e = _unit(subtract(a[1], a[0]))
    f = _unit(subtract(c[1], c[0]))
    m = cross(e, f)
    sine = length(m)
    across = dot(direction, m)
    if not abs(across) > (1.0 - 1e-9) * sine:
        return 0.0
    sign = math.copysign(1.0, across)
    m = scaled(m, sign)
    change = scaled(cross(e, cross(angular, f)), sign)
    rate = dot(velocity, m) + distance * dot(direction, change) - kept * dot(m, change) / sine
    bend = acceleration + 2.0 * length(angular) * speed + curl * (distance + speed)
    bend += kept * (curl + dot(change, change) / sine)
    return _root((distance - kept) * sine - pad, rate, bend)


@inner
def _first_step(relative: Any, first: Vector, second: Vector, radius: float, gap: float, limit: float) -> float:
    """An advance from 0 in which the paths of both features, within `radius` of a point each, are less than the gap.

    For motions that start with infinite speed, for which no quadratic holds.
    """
    step = limit
    for _ in range(64):
        path = path_bound(relative.first, first, radius, 0.0, step)
        if path + path_bound(relative.second, second, radius, 0.0, step) < gap:
            return step
        step *= 0.25
    return 0.0


@kernel
def carried(position: Vector, orientation: Quaternion, b: Vector) -> Vector:
    """The second's point b in the first's frame at a relative pose."""
    return add(rotate(orientation, b), position)


@kernel
def pose_at_start(relative: Any) -> tuple[Vector, Quaternion]:
    """Pose of the second in the first's frame at u = 0, straight from the records."""
    back = conjugate(quaternion(relative.first.orientation))
    gap = subtract(vector(relative.second.position), vector(relative.first.position))
    return rotate(back, gap), multiply(back, quaternion(relative.second.orientation))


@kernel
def motion_bounds(
    relative: Any, first: Vector, first_radius: float, second: Vector, second_radius: float, limit: float
) -> Bounds:
    """Return (speed, acceleration, pad) that hold for all features within two balls over [0, limit].

    first: centre of a ball in the first's frame; second: of one in the second's body frame; radii in m. Speed and
    acceleration are those of the second's points as seen from the first body, the pad covers rounding.
    """
    speed, acceleration = relative_bounds(relative, second, second_radius, 0.0, limit)
    return speed, acceleration, rounding_pad(relative, first, second, first_radius + second_radius)


@kernel
def kept_distance(distance: float, separation: float, tolerance: float, pad: float) -> float:
    """The distance (m) below which features that begin `distance` apart may not come.

    It is the separation where they begin above it. Else it is one of fixed levels a tolerance apart, at most that far
    below `distance`. Since the levels are fixed, query after query leads to the same one, and what rounding adds up to
    does not count as having passed it before it is HYSTERESIS of the tolerance.
    """
    if distance > separation + 3.0 * pad:
        return separation
    level = separation - BELOW * pad
    slack = HYSTERESIS * tolerance
    if distance < level - slack:
        level = separation - (max(math.ceil((separation - slack - distance) / tolerance + 0.5), 1.0) - 0.5) * tolerance
    return max(level, 4.0 * pad) if separation > 0.0 else 0.0


@inner
def _second_step(
    relative: Any,
    shape: int,
    a: Corners,
    c: Corners,
    direction: Vector,
    there: Vector,
    distance: float,
    margin: float,
    pad: float,
    twist: Twist,
    bounds: Bounds,
) -> float:
    """The advance of planes that do not stand still; those are a poor guide where the second tilts in them.

    margin: to be kept along the direction; bounds: speed and acceleration of the point `there`, and limit left.
    """
    speed, acceleration, left = bounds
    velocity, angular = twist
    spin = length(angular)
    rest = min(speed, length(velocity) + acceleration * left)
    bent = (rest, acceleration, spin * (spin + relative.first.angle))
    step = 0.0
    if shape == EDGE_EDGE:
        step = _crossing_step(a, c, direction, distance, margin - pad, pad, twist, bent)
    if step == 0.0:
        step = _carried_step(a, c, FIRST_POINTS[shape], direction, margin, there, twist, bent)
    return step


@inner
def _facing(normal: Vector, a: Corners, c: Corners) -> Vector:
    """The normal or its opposite, whichever goes from the points a to the points c."""
    way = dot(normal, subtract(add(add(c[0], c[1]), c[2]), add(add(a[0], a[1]), a[2])))
    return normal if way >= 0.0 else scaled(normal, -1.0)


@inner
def planes_keep(
    relative: Any,
    a: Corners,
    c: Corners,
    normal: Vector,
    other: Vector,
    bounds: Bounds,
    separation: float,
    limit: float,
) -> bool:
    """True if the plane of one of two triangles keeps them more than the separation apart over all of [0, limit].

    A feature that comes near another one sideways, over a face that it slides on, is near it and approaches it, and yet
    never comes nearer than the face. a, c: corners of the first's and the second's triangle at u = 0, first's frame;
    normal, other: their normals there; bounds: by :func:`motion_bounds`.
    """
    speed, acceleration, pad = bounds
    if not acceleration < math.inf:
        return False
    margin = separation + 3.0 * pad
    velocity, angular = relative_twist(relative, 0.0, c[0])
    direction = _facing(normal, a, c)
    highest = max(dot(direction, a[0]), dot(direction, a[1]), dot(direction, a[2]))
    free = True
    for k in range(3):
        fall = dot(direction, add(velocity, cross(angular, subtract(c[k], c[0]))))
        if abs(fall) <= STEADY * speed:
            fall = 0.0
        gap = dot(direction, c[k]) - highest - margin
        free &= gap > 0.0 and _root(gap, fall, acceleration) > limit
    if free:
        return True
    direction = _facing(other, a, c)
    highest = max(dot(direction, a[0]), dot(direction, a[1]), dot(direction, a[2]))
    if min(dot(direction, c[0]), dot(direction, c[1]), dot(direction, c[2])) - highest <= margin:
        return False
    spin = length(angular)
    bent = (min(speed, length(velocity) + acceleration * limit), acceleration, spin * (spin + relative.first.angle))
    return _carried_step(a, c, 3, direction, margin, c[0], (velocity, angular), bent) > limit


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
    """The test for features of any `shape` (see :func:`apart`), given what pairs of one triangle pair have in common.

    relative: RELATIVE record; a: points of the first's feature; b: of the second's (its body frame); c: b at u = 0 in
    the first's frame (see :func:`pose_at_start`). Unused places of a, b and c repeat the last point used. bounds: by
    :func:`motion_bounds` for any balls that hold the features. The rest and the result as in the head of this file.
    """
    speed, acceleration, pad = bounds
    explosive = not acceleration < math.inf
    noise = 0.0 if explosive else STEADY * speed
    tolerance = max(position_tolerance, NARROWEST * pad)
    u = 0.0
    kept = separation
    for iterations in range(1, cap + 1):
        direction, there, distance = apart(shape, a, c)
        if u == 0.0:
            if distance > separation + speed * limit + pad:
                return limit, False, 0
            kept = kept_distance(distance, separation, tolerance, pad)
        if distance <= 3.0 * pad:
            return u, True, iterations if u > 0.0 else 0

        highest = max(dot(direction, a[0]), dot(direction, a[1]), dot(direction, a[2]))
        lowest = min(dot(direction, c[0]), dot(direction, c[1]), dot(direction, c[2]))
        near = distance <= kept + tolerance
        floor = highest + kept + pad + 0.5 * min(distance - kept, tolerance)
        if distance <= kept + 3.0 * pad and lowest >= highest + distance - pad:
            floor = min(floor, lowest)  # too near to tell from the level kept: not a bit nearer
        approaching = True
        if explosive and u == 0.0:
            first, first_radius = ball(a)
            second, second_radius = ball(b)
            step = _first_step(relative, first, second, max(first_radius, second_radius), lowest - floor, limit)
        else:
            if explosive:
                second, second_radius = ball(b)
                acceleration = relative_bounds(relative, second, second_radius, u, limit)[1]
            velocity, angular = relative_twist(relative, u, there)
            rate = dot(direction, velocity)
            lever = cross(direction, angular)
            approaching = rate * (limit - u) < -SLOW * tolerance
            if near and approaching:
                return u, True, iterations
            step = math.inf
            for k in range(SECOND_POINTS[shape]):
                fall = rate + dot(lever, subtract(c[k], there))
                if abs(fall) <= noise:
                    fall = 0.0
                step = min(step, _root(dot(direction, c[k]) - floor, fall, acceleration))
            if u + step <= limit and shape != FACE_VERTEX and not explosive:
                # fmt: off
                step = max(step, _second_step(
                    relative, shape, a, c, direction, there, distance, floor - highest, pad, (velocity, angular),
                    (speed, acceleration, limit - u),
                ))
                # fmt: on
        if u + step > limit:
            return limit, False, iterations
        if not step > time_tolerance:
            return u if near else u + step, True, iterations
        u += step
        position, orientation = relative_pose(relative, u)
        c0 = carried(position, orientation, b[0])
        c = (c0, c0, c0)
        if shape != FACE_VERTEX:
            c1 = carried(position, orientation, b[1])
            c = (c0, c1, c1)
            if shape == VERTEX_FACE:
                c = (c0, c1, carried(position, orientation, b[2]))
    return u, False, cap


@kernel
def prepared(relative: Any, a: Corners, b: Corners, limit: float) -> tuple[Corners, Bounds]:
    """What `first_approach` of one pair of features by itself needs: (b at u = 0 in the first's frame, bounds)."""
    first, first_radius = ball(a)
    second, second_radius = ball(b)
    position, orientation = pose_at_start(relative)
    c = (
        carried(position, orientation, b[0]),
        carried(position, orientation, b[1]),
        carried(position, orientation, b[2]),
    )
    return c, motion_bounds(relative, first, first_radius, second, second_radius, limit)


@inner
def _alone(
    relative: Any,
    shape: int,
    a: Corners,
    b: Corners,
    separation: float,
    limit: float,
    time_tolerance: float,
    position_tolerance: float,
    cap: int,
) -> tuple[float, bool, int]:
    """The test of one pair of features by itself."""
    c, bounds = prepared(relative, a, b, limit)
    return first_approach(relative, shape, a, b, c, bounds, separation, limit, time_tolerance, position_tolerance, cap)


@kernel
def edge_edge(
    relative: Any,
    a0: Vector,
    a1: Vector,
    b0: Vector,
    b1: Vector,
    separation: float,
    limit: float,
    time_tolerance: float,
    position_tolerance: float,
    cap: int,
) -> tuple[float, bool, int]:
    """First approach of the first's edge a0 a1 and the second's edge b0 b1; see the head of this file."""
    return _alone(
        relative, EDGE_EDGE, (a0, a1, a1), (b0, b1, b1), separation, limit, time_tolerance, position_tolerance, cap
    )


@kernel
def vertex_face(
    relative: Any,
    a: Vector,
    b0: Vector,
    b1: Vector,
    b2: Vector,
    separation: float,
    limit: float,
    time_tolerance: float,
    position_tolerance: float,
    cap: int,
) -> tuple[float, bool, int]:
    """First approach of the first's vertex a and the second's face b0 b1 b2; see the head of this file."""
    return _alone(
        relative, VERTEX_FACE, (a, a, a), (b0, b1, b2), separation, limit, time_tolerance, position_tolerance, cap
    )


@kernel
def face_vertex(
    relative: Any,
    a0: Vector,
    a1: Vector,
    a2: Vector,
    b: Vector,
    separation: float,
    limit: float,
    time_tolerance: float,
    position_tolerance: float,
    cap: int,
) -> tuple[float, bool, int]:
    """First approach of the first's face a0 a1 a2 and the second's vertex b; see the head of this file."""
    return _alone(
        relative, FACE_VERTEX, (a0, a1, a2), (b, b, b), separation, limit, time_tolerance, position_tolerance, cap
    )
