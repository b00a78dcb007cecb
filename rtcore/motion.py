"""In-between motions: how a body gets from its pose at the start of a step (u = 0) to the one at its end (u = 1).

Every motion is a screw about one fixed line: the body turns by ``a(u)`` about it while it advances by ``b(u)`` of the
displacement along it. The kinds differ in the two laws only (W: the whole angle):

=========== ============================== ==============================
kind        a(u)                           b(u)
=========== ============================== ==============================
STILL       0                              0
SCREW       W u                            u
TAN_HALF    W u                            tan(W u / 2) / tan(W / 2)
ALGEBRAIC   2 asin(sin(W / 2) sqrt(u))     u
=========== ============================== ==============================

ALGEBRAIC is the law cos a = 1 - (1 - cos W) u, whose sine is a square root; it leaves u = 0 at infinite speed.

The line itself goes to infinity as the angle goes to 0, so nothing here uses it. A motion is kept by a point of the
body (the pivot, at p when u = 0), its displacement d and the unit axis n. With D the part of d across n and
S = sin(a / 2) / sin(W / 2) the pivot is at ``p + b (d.n) n + S [cos((W - a) / 2) D - sin((W - a) / 2) n x D]``, and a
point that is at x when u = 0 moves across n with the velocity a'(u) / W times w, turned by a(u), where
``w(x) = (W / 2) cot(W / 2) D - (W / 2) n x D + W n x (x - p)``. Both are regular down to W = 0.

Bounds are padded by 32 units in the last place of the numbers that they are computed from.

Source: Redon 2002, sections 2.2 and 3.1 and appendix A, (2.4)-(2.8), (2.24), (3.3)-(3.6), (3.11); the pivot form is own
work. Chasles' theorem: any two poses are joined by such a screw.
"""

import math
from typing import Any

import numpy as np

from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Quaternion,
    Vector,
    add,
    conjugate,
    cross,
    from_rotation_vector,
    length,
    multiply,
    normalise,
    put_quaternion,
    put_vector,
    quaternion,
    rotate,
    rotation_vector,
    scaled,
    subtract,
    vector,
)

STILL = 0
"""The body stays where it is."""
SCREW = 1
"""Constant rates of rotation and translation."""
TAN_HALF = 2
"""Constant rate of rotation; the translation law that makes the contact equations of features cubic."""
ALGEBRAIC = 3
"""No trigonometric function of time: the cosine of the angle is linear in u."""

TAN_HALF_LIMIT = 3.0
"""Largest angle (rad) for TAN_HALF: towards pi its translation is left to the very end of the step."""
ALGEBRAIC_LIMIT = 0.5 * math.pi
"""Largest angle (rad) for ALGEBRAIC: up to here its angular velocity only ever falls."""

HALF_TURN = math.pi * (1.0 + 16.0 * 2.0**-52)
"""pi to rounding: a rotation vector up to this long keeps its axis, a longer one is turned round."""
SMALLEST = 1e-150
"""Angles and lengths below it have squares out of the range of numbers; no pose can tell them from 0."""

PAD = 32.0 * 2.0**-52
"""Relative pad of bounds against rounding."""


# Laws of time. ----------------------------------------------------------------------------------------------------


@kernel
def laws(kind: int, angle: float, u: float) -> tuple[float, float, float]:
    """(a, S, b): the angle turned, sin(a / 2) / sin(angle / 2), and the share of the advance along the axis."""
    if kind == STILL:
        return 0.0, 0.0, 0.0
    if kind == ALGEBRAIC:
        root = math.sqrt(max(u, 0.0))
        return 2.0 * math.asin(min(math.sin(0.5 * angle) * root, 1.0)), root, u
    if angle < 1e-9:  # the quotients below are u to rounding
        return angle * u, u, u
    half = 0.5 * angle
    share = u
    if kind == TAN_HALF:
        share = math.tan(half * u) / math.tan(half)
    return angle * u, math.sin(half * u) / math.sin(half), share


@kernel
def rates(kind: int, angle: float, u: float) -> tuple[float, float, float, float]:
    """(a' / angle, b', a'' / angle, b''), derivatives by u of the laws; infinite for ALGEBRAIC at u = 0."""
    if kind == STILL:
        return 0.0, 0.0, 0.0, 0.0
    if kind == ALGEBRAIC:
        sine = math.sin(0.5 * angle)
        share = 0.5 if angle < 1e-9 else sine / angle
        product = u * (1.0 - sine * sine * u)
        if product <= 0.0:
            return math.inf, 1.0, -math.inf, 0.0
        root = math.sqrt(product)
        return share / root, 1.0, -0.5 * share * (1.0 - 2.0 * sine * sine * u) / (product * root), 0.0
    if kind == TAN_HALF:
        tangent = math.tan(0.5 * angle * u)
        first = _half_cotangent(angle) * (1.0 + tangent * tangent)
        return 1.0, first, 0.0, first * angle * tangent
    return 1.0, 1.0, 0.0, 0.0


@inner
def _largest_rates(kind: int, angle: float, u0: float, u1: float) -> tuple[float, float, float, float]:
    """Bounds over [u0, u1] on the magnitudes of `rates`: each of them only rises or only falls there."""
    if kind == ALGEBRAIC:
        turn, advance, turn_rate, advance_rate = rates(kind, angle, u0)
    else:
        turn, advance, turn_rate, advance_rate = rates(kind, angle, u1)
    return turn, advance, abs(turn_rate), advance_rate


@inner
def _half_cotangent(angle: float) -> float:
    """(angle / 2) cot(angle / 2), which is 1 at 0."""
    half = 0.5 * angle
    if half < 1e-9:
        return 1.0
    return half * math.cos(half) / math.sin(half)


@inner
def _product(factor: float, size: float) -> float:
    """factor x size, where zero counts for more than an infinite rate."""
    return 0.0 if size == 0.0 or factor == 0.0 else factor * size


# Making a motion. -------------------------------------------------------------------------------------------------


@kernel
def from_twist(
    motion: Any,
    kind: int,
    position0: Vector,
    orientation0: Quaternion,
    shift: Vector,
    turn: Vector,
    pivot: Vector,
) -> None:
    """Fill a MOTION record from the displacement of a pivot and the rotation vector over the step.

    position0 (m) and orientation0: the pose at u = 0, scene; shift: displacement (m, scene) of the point of the body
    that is at `pivot` (m, scene) when u = 0; turn: axis times angle (rad, scene). Past pi the rotation is replaced by
    the one of less than pi that ends at the same orientation. The record gets the kind STILL where nothing moves, and
    SCREW instead of a kind that cannot turn so far (TAN_HALF_LIMIT, ALGEBRAIC_LIMIT) or does not turn at all (where
    all laws are one). Source: Redon 2002, appendix A.
    """
    angle = length(turn)
    if angle > HALF_TURN:
        turn = rotation_vector(normalise(from_rotation_vector(turn)))
        angle = length(turn)
    distance = length(shift)
    if angle > SMALLEST:
        axis = scaled(turn, 1.0 / angle)
        angle = min(angle, math.pi)
    else:
        angle = 0.0
        axis = scaled(shift, 1.0 / distance) if distance > SMALLEST else (0.0, 0.0, 1.0)
    if kind == STILL or (angle == 0.0 and distance == 0.0):
        chosen = STILL
        angle = 0.0
        shift = (0.0, 0.0, 0.0)
    elif (
        angle == 0.0 or (kind == TAN_HALF and angle > TAN_HALF_LIMIT) or (kind == ALGEBRAIC and angle > ALGEBRAIC_LIMIT)
    ):
        chosen = SCREW
    else:
        chosen = kind
    put_vector(motion.position, position0)
    put_quaternion(motion.orientation, normalise(orientation0))
    put_vector(motion.pivot, pivot)
    put_vector(motion.shift, shift)
    put_vector(motion.axis, axis)
    motion.angle = angle
    motion.kind = chosen


@inner
def from_velocity(
    motion: Any, position0: Vector, orientation0: Quaternion, velocity: Vector, turn: Vector, pivot: Vector
) -> None:
    """Fill a MOTION record with the screw that begins with a velocity of the pivot (m per unit of u, scene).

    The pivot goes along an arc and ends beside where a straight way would have led; otherwise as :func:`from_twist`,
    which takes the chord of that arc. turn: rad, of less than half a turn.
    """
    angle = length(turn)
    shift = velocity
    if angle > SMALLEST:
        axis = scaled(turn, 1.0 / angle)
        along, across = _across(axis, velocity)
        sine = 1.0 - angle * angle / 6.0 if angle < 1e-4 else math.sin(angle) / angle
        half = 0.5 * angle
        lift = half if angle < 1e-4 else math.sin(half) * math.sin(half) / half
        shift = add(scaled(axis, along), add(scaled(across, sine), scaled(cross(axis, across), lift)))
    from_twist(motion, SCREW, position0, orientation0, shift, turn, pivot)


@kernel
def between(
    motion: Any,
    kind: int,
    position0: Vector,
    orientation0: Quaternion,
    position1: Vector,
    orientation1: Quaternion,
    pivot: Vector,
) -> None:
    """Fill a MOTION record with the screw that goes through two poses.

    Positions in m and orientations in the scene at u = 0 and u = 1; pivot: any point (m, scene at u = 0) carried along
    with the body, best taken inside it, where coordinates are small. The body turns the short way, by 0..pi. At pi,
    where both ways are equally long, the first component of the axis that is not small is positive. `kind` as in
    :func:`from_twist`. Source: Redon 2002, section 2.2.
    """
    start = normalise(orientation0)
    end = normalise(orientation1)
    change = normalise(multiply(end, conjugate(start)))
    if abs(change[3]) < 4e-16:  # half a turn to rounding: the sign of the quaternion says nothing about the axis
        lead = change[2]
        if abs(change[0]) > 1e-6:
            lead = change[0]
        elif abs(change[1]) > 1e-6:
            lead = change[1]
        sign = 1.0 if lead > 0.0 else -1.0
        change = (sign * change[0], sign * change[1], sign * change[2], 0.0)
    arm = subtract(pivot, position0)
    moved = add(position1, rotate(end, rotate(conjugate(start), arm)))
    from_twist(motion, kind, position0, start, subtract(moved, pivot), rotation_vector(change), pivot)


@kernel
def still(motion: Any, position: Vector, orientation: Quaternion) -> None:
    """Fill a MOTION record with that of a body at rest at a pose (m, scene)."""
    zero = (0.0, 0.0, 0.0)
    from_twist(motion, STILL, position, orientation, zero, zero, position)


@inner
def copy_motion(target: Any, source: Any) -> None:
    """Make a MOTION record the same as another one."""
    put_vector(target.position, vector(source.position))
    put_quaternion(target.orientation, quaternion(source.orientation))
    put_vector(target.pivot, vector(source.pivot))
    put_vector(target.shift, vector(source.shift))
    put_vector(target.axis, vector(source.axis))
    target.angle = source.angle
    target.kind = source.kind


@kernel
def halve(motion: Any, part: int, out: Any) -> None:
    """Fill the MOTION record `out` with one half of a motion, its time running over 0..1 again.

    part: 0 for u in [0, 1/2], 1 for [1/2, 1]. Exact for STILL and SCREW; the two other laws begin anew on each half:
    the same screw between the same end poses. Source: Redon 2002, section 2.1 (steps of fast bodies split in two).
    """
    angle, middle = _pivot_state(motion, 0.5)
    turn = scaled(vector(motion.axis), angle)
    if part == 0:
        position, orientation, pivot = vector(motion.position), quaternion(motion.orientation), vector(motion.pivot)
        shift = subtract(middle, pivot)
    else:
        position, orientation = pose(motion, 0.5)
        pivot = middle
        shift = subtract(add(vector(motion.pivot), vector(motion.shift)), pivot)
        turn = scaled(vector(motion.axis), motion.angle - angle)
    from_twist(out, motion.kind, position, orientation, shift, turn, pivot)


# One body. --------------------------------------------------------------------------------------------------------


@inner
def _across(axis: Vector, v: Vector) -> tuple[float, Vector]:
    """(component of v along the unit axis, part of v across it)."""
    along = axis[0] * v[0] + axis[1] * v[1] + axis[2] * v[2]
    return along, (v[0] - along * axis[0], v[1] - along * axis[1], v[2] - along * axis[2])


@inner
def _pivot_state(motion: Any, u: float) -> tuple[float, Vector]:
    """(angle turned, place of the pivot) at u."""
    axis = vector(motion.axis)
    along, across = _across(axis, vector(motion.shift))
    angle, ratio, share = laws(motion.kind, motion.angle, u)
    rest = 0.5 * (motion.angle - angle)
    side = cross(axis, across)
    cosine = ratio * math.cos(rest)
    sine = ratio * math.sin(rest)
    advance = share * along
    return angle, (
        motion.pivot[0] + advance * axis[0] + cosine * across[0] - sine * side[0],
        motion.pivot[1] + advance * axis[1] + cosine * across[1] - sine * side[1],
        motion.pivot[2] + advance * axis[2] + cosine * across[2] - sine * side[2],
    )


@inner
def _turning(axis: Vector, angle: float) -> Quaternion:
    sine = math.sin(0.5 * angle)
    return sine * axis[0], sine * axis[1], sine * axis[2], math.cos(0.5 * angle)


@kernel
def pose(motion: Any, u: float) -> tuple[Vector, Quaternion]:
    """Pose (position in m, orientation; body frame to scene) at u in 0..1."""
    if motion.kind == STILL:
        return vector(motion.position), quaternion(motion.orientation)
    angle, pivot = _pivot_state(motion, u)
    turning = _turning(vector(motion.axis), angle)
    arm = subtract(vector(motion.position), vector(motion.pivot))
    return add(pivot, rotate(turning, arm)), multiply(turning, quaternion(motion.orientation))


@kernel
def point(motion: Any, u: float, x: Vector) -> Vector:
    """Where the point of the body that is at x (m, scene) at u = 0 is at u (m, scene)."""
    if motion.kind == STILL:
        return x
    angle, pivot = _pivot_state(motion, u)
    return add(pivot, rotate(_turning(vector(motion.axis), angle), subtract(x, vector(motion.pivot))))


@inner
def circling_at(motion: Any, x: Vector) -> tuple[float, Vector]:
    """(advance along the axis, velocity w across it at u = 0 per unit of a(u) / angle) at scene point x."""
    axis = vector(motion.axis)
    along, across = _across(axis, vector(motion.shift))
    side = cross(axis, across)
    arm = cross(axis, subtract(x, vector(motion.pivot)))
    share = _half_cotangent(motion.angle)
    half = 0.5 * motion.angle
    return along, (
        share * across[0] - half * side[0] + motion.angle * arm[0],
        share * across[1] - half * side[1] + motion.angle * arm[1],
        share * across[2] - half * side[2] + motion.angle * arm[2],
    )


@inner
def velocity_field(motion: Any, u: float, x: Vector) -> tuple[Vector, Vector]:
    """(velocity of the body's point that is at scene point x at time u, angular velocity), scene, per unit of u."""
    axis = vector(motion.axis)
    along, circling = circling_at(motion, x)
    turn, advance, _, _ = rates(motion.kind, motion.angle, u)
    lift = advance * along
    return (
        lift * axis[0] + _product(turn, circling[0]),
        lift * axis[1] + _product(turn, circling[1]),
        lift * axis[2] + _product(turn, circling[2]),
    ), scaled(axis, _product(turn, motion.angle))


@kernel
def twist(motion: Any, u: float) -> tuple[Vector, Vector]:
    """(velocity of the body frame's origin in m, angular velocity in rad) at u, scene, per unit of u."""
    # The screw's field of velocities stands still in the scene but for its rate, so it may be read where the point is.
    return velocity_field(motion, u, pose(motion, u)[0])


@inner
def _ball(motion: Any, centre: Vector, radius: float) -> tuple[float, float, float]:
    """(advance along the axis, bound on |w|, rounding pad of both) for the ball at `centre` (body frame)."""
    start = add(vector(motion.position), rotate(quaternion(motion.orientation), centre))
    along, circling = circling_at(motion, start)
    reach = (
        abs(centre[0])
        + abs(centre[1])
        + abs(centre[2])
        + abs(motion.position[0])
        + abs(motion.position[1])
        + abs(motion.position[2])
        + abs(motion.pivot[0])
        + abs(motion.pivot[1])
        + abs(motion.pivot[2])
    )
    drift = abs(motion.shift[0]) + abs(motion.shift[1]) + abs(motion.shift[2])
    pad = PAD * (drift + motion.angle * (reach + radius))
    return abs(along), length(circling) + motion.angle * radius, pad


@kernel
def speed_bound(motion: Any, centre: Vector, radius: float, u0: float, u1: float) -> float:
    """A speed (m per unit of u) that no point of a ball of the body exceeds over [u0, u1].

    centre: of the ball, body frame, m; radius: m. Attained by a point of the ball for SCREW. Infinite for ALGEBRAIC
    from u0 = 0.
    """
    if motion.kind == STILL:
        return 0.0
    along, circling, pad = _ball(motion, centre, radius)
    turn, advance, _, _ = _largest_rates(motion.kind, motion.angle, u0, u1)
    across = _product(turn, circling + pad)
    lift = advance * along + pad + _product(turn, pad)  # what circles is square to the axis up to rounding
    return (1.0 + PAD) * math.sqrt(lift * lift + across * across)


@kernel
def path_bound(motion: Any, centre: Vector, radius: float, u0: float, u1: float) -> float:
    """A length (m) that the path of no point of a ball of the body exceeds over [u0, u1]; finite for every kind.

    centre: of the ball, body frame, m; radius: m.
    """
    if motion.kind != ALGEBRAIC:
        return speed_bound(motion, centre, radius, u0, u1) * (u1 - u0)
    along, circling, pad = _ball(motion, centre, radius)
    turned0, _, _ = laws(motion.kind, motion.angle, u0)
    turned1, _, _ = laws(motion.kind, motion.angle, u1)
    share = (turned1 - turned0) / motion.angle + PAD
    # A path's length is at most the sum of those of its two parts.
    return (1.0 + PAD) * ((along + pad) * (u1 - u0) + (circling + pad) * share)


# A pair of bodies. ------------------------------------------------------------------------------------------------


@kernel
def relative_pose(relative: Any, u: float) -> tuple[Vector, Quaternion]:
    """Pose (position in m, orientation) of the second body in the frame of the first at u; RELATIVE record."""
    position1, orientation1 = pose(relative.first, u)
    position2, orientation2 = pose(relative.second, u)
    back = conjugate(orientation1)
    return rotate(back, subtract(position2, position1)), multiply(back, orientation2)


@inner
def relative_twist(relative: Any, u: float, x: Vector) -> tuple[Vector, Vector]:
    """(velocity of the second body's point that is at x at time u, angular velocity of the second body).

    Both as seen in, and in coordinates of, the frame of the first, per unit of u; x: m, that frame.
    """
    position, orientation = pose(relative.first, u)
    site = add(position, rotate(orientation, x))
    velocity1, angular1 = velocity_field(relative.first, u, site)
    velocity2, angular2 = velocity_field(relative.second, u, site)
    back = conjugate(orientation)
    return rotate(back, subtract(velocity2, velocity1)), rotate(back, subtract(angular2, angular1))


@kernel
def relative_velocity(relative: Any, u: float, x: Vector) -> Vector:
    """Velocity (m per unit of u, first's frame) of the second body's point that is at x (m, first's frame) at u."""
    return relative_twist(relative, u, x)[0]


@kernel
def relative_bounds(relative: Any, centre: Vector, radius: float, u0: float, u1: float) -> tuple[float, float]:
    """:func:`pair_bounds` of the two bodies of a RELATIVE record."""
    return pair_bounds(relative.first, relative.second, centre, radius, u0, u1)


@kernel
def pair_bounds(first: Any, second: Any, centre: Vector, radius: float, u0: float, u1: float) -> tuple[float, float]:
    """Bounds (m, per unit of u and of u squared) on the velocity and acceleration, as seen from the first body.

    first, second: MOTION. They hold over [u0, u1] for every point of a ball of the second body (centre: its body frame,
    m; radius: m). Attained where the first is STILL and the second a SCREW. Where both move: with y the point, w1 and
    w2 the angular velocities, v the relative velocity, the acceleration in the turning frame is (w2 - w1) x y' - w1 x v
    and what the changes of the rates add (Coriolis and centripetal parts are in it); it is bounded by the sum of
    magnitudes, and v by its value at the middle and the acceleration. Infinite for ALGEBRAIC from u0 = 0.
    """
    along2, circling2, pad2 = _ball(second, centre, radius)
    turn2, advance2, turn_rate2, advance_rate2 = _largest_rates(second.kind, second.angle, u0, u1)
    circling2 += pad2
    lift2 = advance2 * along2 + pad2 + _product(turn2, pad2)
    across2 = _product(turn2, circling2)
    speed2 = math.sqrt(lift2 * lift2 + across2 * across2)
    lift_rate2 = advance_rate2 * (along2 + pad2) + _product(turn_rate2, pad2)
    across_rate2 = _product(turn_rate2, circling2)
    if first.kind == STILL:
        # Along the axis, along the circle and towards its centre: three directions at right angles.
        inward = _product(across2, _product(turn2, second.angle))
        acceleration = math.sqrt(lift_rate2 * lift_rate2 + across_rate2 * across_rate2 + inward * inward)
        return (1.0 + PAD) * speed2, (1.0 + PAD) * acceleration

    middle = 0.5 * (u0 + u1)
    half = 0.5 * (u1 - u0)
    start = add(vector(second.position), rotate(quaternion(second.orientation), centre))
    site = point(second, middle, start)
    # Any point of the ball is at any time this near to where the centre is at half time (plus the radius).
    travel = path_bound(second, centre, radius, u0, u1) if second.kind == ALGEBRAIC else speed2 * half
    along1, circling_at1 = circling_at(first, site)
    turn1, advance1, turn_rate1, advance_rate1 = _largest_rates(first.kind, first.angle, u0, u1)
    scale = (
        abs(site[0])
        + abs(site[1])
        + abs(site[2])
        + abs(first.pivot[0])
        + abs(first.pivot[1])
        + abs(first.pivot[2])
        + length(vector(second.position))
        + length(vector(second.pivot))
        + length(centre)
    )
    pad1 = PAD * (length(vector(first.shift)) + first.angle * (scale + radius))
    circling1 = length(circling_at1) + first.angle * (radius + travel) + pad1
    lift1 = advance1 * abs(along1) + pad1 + _product(turn1, pad1)
    across1 = _product(turn1, circling1)
    speed1 = math.sqrt(lift1 * lift1 + across1 * across1)
    lift_rate1 = advance_rate1 * (abs(along1) + pad1) + _product(turn_rate1, pad1)
    across_rate1 = _product(turn_rate1, circling1)
    spin1 = _product(turn1, first.angle)

    velocity1 = velocity_field(first, middle, site)[0]
    velocity2 = velocity_field(second, middle, site)[0]
    pad = pad1 + pad2
    angular = spin_bound(first, second, u0, u1)
    changes = math.sqrt(lift_rate1 * lift_rate1 + across_rate1 * across_rate1) + math.sqrt(
        lift_rate2 * lift_rate2 + across_rate2 * across_rate2
    )
    apart = _product(angular, speed2) + changes
    speed = speed1 + speed2
    if half * spin1 < 0.5:
        # sup |v| <= |v(middle)| + half (apart + |w1| sup |v|), solved for sup |v|.
        at_middle = length(subtract(velocity2, velocity1)) + _product(angular, radius) + pad
        speed = min(speed, (at_middle + _product(half, apart)) / (1.0 - half * spin1))
    return (1.0 + PAD) * speed, (1.0 + PAD) * (apart + _product(spin1, speed))


@inner
def spin_bound(first: Any, second: Any, u0: float, u1: float) -> float:
    """A bound (rad per unit of u) on the angular velocity of two bodies against each other over [u0, u1]; MOTIONs."""
    middle = 0.5 * (u0 + u1)
    turn1 = _product(rates(first.kind, first.angle, middle)[0], first.angle)
    turn2 = _product(rates(second.kind, second.angle, middle)[0], second.angle)
    change1 = _product(_largest_rates(first.kind, first.angle, u0, u1)[2], first.angle)
    change2 = _product(_largest_rates(second.kind, second.angle, u0, u1)[2], second.angle)
    apart = subtract(scaled(vector(second.axis), turn2), scaled(vector(first.axis), turn1))
    return length(apart) + 0.5 * (u1 - u0) * (change1 + change2) + PAD * (turn1 + turn2)


@kernel
def relative_screw(relative: Any, out: Any) -> bool:
    """Fill the MOTION record `out` with one screw of the second body in the frame of the first; True if exact.

    The frame of the first takes the place of the scene in `out`. True where only one of the two moves or neither turns:
    then `out` is the relative motion at every u. False where both move otherwise: then the relative motion is no single
    screw, and `out` is the SCREW through its two end poses, to be chosen for the pair in place of it.
    Source: Redon 2002, sections 2.6 and 4.5.
    """
    first = relative.first
    second = relative.second
    position, orientation = relative_pose(relative, 0.0)
    origin = vector(first.position)
    back = conjugate(quaternion(first.orientation))
    if first.kind == STILL or (first.angle == 0.0 and second.angle == 0.0 and second.kind != STILL):
        pivot = rotate(back, subtract(vector(second.pivot), origin))
        shift = rotate(back, subtract(vector(second.shift), vector(first.shift)))
        turn = rotate(back, scaled(vector(second.axis), second.angle))
        from_twist(out, second.kind, position, orientation, shift, turn, pivot)
        if second.angle > 0.0:  # the kind and the angle as they are, whatever the rotations rounded
            out.kind = second.kind
            out.angle = second.angle
        return True
    if second.kind == STILL:
        # Seen from the first, the scene undergoes the inverse screw: the same line, turned and shifted backwards.
        axis = vector(first.axis)
        unturned = rotate(_turning(axis, -first.angle), vector(first.shift))
        pivot = rotate(back, subtract(vector(first.pivot), origin))
        shift = rotate(back, scaled(unturned, -1.0))
        from_twist(out, first.kind, position, orientation, shift, rotate(back, scaled(axis, -first.angle)), pivot)
        if first.angle > 0.0:
            out.kind = first.kind
            out.angle = first.angle
        return True
    position1, orientation1 = relative_pose(relative, 1.0)
    pivot = rotate(back, subtract(vector(second.pivot), origin))
    between(out, SCREW, position, orientation, position1, orientation1, pivot)
    return False


# Several bodies. --------------------------------------------------------------------------------------------------


@kernel
def place(motions: np.ndarray, u: float, poses: np.ndarray) -> None:
    """Put all bodies where their motions have them at the common time u.

    motions: (n,) MOTION; poses: (n,) POSE, written. Bodies that did not collide have to be placed so as well: only
    then does what was proven free hold for every pair. Source: Redon 2002, section 2.1.
    """
    for i in range(motions.shape[0]):
        position, orientation = pose(motions[i], u)
        put_vector(poses[i].position, position)
        put_quaternion(poses[i].orientation, normalise(orientation))


@kernel
def place_chain(motions: np.ndarray, parents: np.ndarray, u: float, poses: np.ndarray) -> None:
    """Put the links of acyclic chains where they are in the scene at the time u.

    motions: (n,) MOTION, each in the frame of its parent link; parents: (n,) int, row of the parent, smaller than the
    link's own, or -1 for the scene; poses: (n,) POSE, written, link frame to scene. Source: Redon 2002, section 3.1.
    """
    for i in range(motions.shape[0]):
        position, orientation = pose(motions[i], u)
        parent = parents[i]
        if parent >= 0:
            carrier = quaternion(poses[parent].orientation)
            position = add(vector(poses[parent].position), rotate(carrier, position))
            orientation = multiply(carrier, orientation)
        put_vector(poses[i].position, position)
        put_quaternion(poses[i].orientation, normalise(orientation))


@kernel
def chain_path_bound(
    motions: np.ndarray, parents: np.ndarray, link: int, centre: Vector, radius: float, u0: float, u1: float
) -> float:
    """A length (m) that the path in the scene of no point of a ball of a link exceeds over [u0, u1].

    motions, parents: as for :func:`place_chain`; link: row; centre: of the ball, link frame, m; radius: m. It is the
    sum of the path lengths in the frames of the parents, each for the ball that holds the paths below it.
    """
    total = 0.0
    while link >= 0:
        motion = motions[link]
        here = path_bound(motion, centre, radius, u0, u1)
        total += here
        start = add(vector(motion.position), rotate(quaternion(motion.orientation), centre))
        centre = point(motion, u0, start)
        radius += here
        link = parents[link]
    return (1.0 + PAD) * total


# Vertices of deformable meshes. -----------------------------------------------------------------------------------


@kernel
def linear_point(start: Vector, end: Vector, u: float) -> Vector:
    """Where a vertex that goes straight from start to end (m) at constant speed is at u; exact at both ends."""
    rest = 1.0 - u
    return rest * start[0] + u * end[0], rest * start[1] + u * end[1], rest * start[2] + u * end[2]


@kernel
def linear_path_bound(start: Vector, end: Vector, u0: float, u1: float) -> float:
    """A length (m) that the straight path of a vertex, or of a point between such vertices, does not exceed."""
    scale = abs(start[0]) + abs(start[1]) + abs(start[2]) + abs(end[0]) + abs(end[1]) + abs(end[2])
    return (1.0 + PAD) * (length(subtract(end, start)) + PAD * scale) * (u1 - u0)
