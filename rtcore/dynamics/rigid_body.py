"""Rigid bodies that move freely over one tick: momenta, the screw that a body follows, energies.

The state of a body is its POSE with the velocity of its centre of mass and its angular momentum, in scene axes. A tick
takes it in three parts:

1. kick, :func:`free_motion`: gravity, the applied wrench and viscous drag change the momenta at the pose of the start;
2. contacts change the momenta there, between :func:`load_mover` and :func:`store_mover`;
3. drift, :func:`tick_motion` and :func:`follow`: the body goes along one screw to the end of its force-free motion.

By these alone the centre of mass moves by symplectic Euler, v += a dt, x += v dt. Under a constant acceleration it runs
ahead of the parabola by a t dt / 2, which takes m a^2 t dt / 2 from its energy; rtcore.dynamics.flight mends that.

The rotation of the drift is the force-free one of the rigid body (Euler's equations, the gyroscopic term in full). The
angular momentum stays what it is in the scene; the orientation is found by a rule of sixth order in strides short
enough for its error to be rounding. So momentum is exact by construction and energy to rounding. The screw of the tick
carries the one orientation to the other at a constant rate, and its mean angular velocity is what continuous collision
tests see and what is executed. Its ends are exact; in between the centre of mass follows an arc about the screw's axis.

Stopped early, at u < 1, a body keeps its momenta. It is then a little off the force-free path. To the leading order
that takes dt^2 u (1 - u) / 2 times (L x w) . I^-1 (L x w) from its energy and never adds any: the screw runs ahead of
the path along the angular acceleration, and that is downhill. The kick was that of the whole tick, though: a body that
falls at v and whose tick is cut has m g v (1 - u) dt more than its height paid for, unless the share 1 - u of the kick
is taken back.

Gyroscopic change within the tick is part of the mean and not of the velocity at the start. Contacts that shall hold for
what is executed are therefore solved with the mean, dt > 0 in :func:`load_mover`; impacts, whose energy is to be
accounted for, with the velocities of the instant, dt = 0.

Source: Euler's equations in momentum form, Hairer, Lubich and Wanner 2006, VII.5; Runge-Kutta rule of Butcher 1964; the
bound of the rate and the screw of the tick are own work.
"""

import math
from typing import Any

import numpy as np

from rtcore import motion as screws
from rtcore.kernels import inner, kernel
from rtcore.motion import SCREW, from_twist
from rtcore.spatial import (
    Quaternion,
    Vector,
    add,
    conjugate,
    cross,
    dot,
    from_rotation_vector,
    multiply,
    normalise,
    put_quaternion,
    put_vector,
    quaternion,
    rotate,
    rotation_vector,
    scaled,
    subtract,
    to_scene,
    vector,
)

BODY_VELOCITY = np.dtype(
    [
        ("linear", "f8", 3),  # of the centre of mass, scene, m/s
        ("angular", "f8", 3),  # scene, rad/s; follows from the momentum and the orientation
        ("momentum", "f8", 3),  # angular, about the centre of mass, scene, N m s
        ("loaded", "f8", 3),  # angular velocity that the contact solver was last given, scene, rad/s
        ("residual", "f8"),  # natural-map residual of the contacts that it was last held by
        ("stalls", "i4"),  # steps that hardly brought it forward, see rtcore.dynamics.stalls
        ("quiet", "i4"),  # steps at rest, see rtcore.dynamics.sleep
        ("held", "i4"),  # contacts with other bodies in the last step
        ("padding", "i4"),
    ],
    align=True,
)
"""How a body moves at an instant; written by the functions of this module. The angular momentum is the state, since it
is what stays: recovered from the angular velocity in every tick it would drift with the rounding of the orientation."""

Turning = tuple[float, float, float, float, float, float, float]
"""Orientation of the principal axes seen from where they were at the start, and the angular velocity along them. With
the velocity as an unknown of its own the equations stay mild for the thinnest rod; that of the momentum would not."""

STRIDE = 1.0 / 64.0
"""Largest angle (rad) of one stride of the rotation: its error is then below the rounding of the orientation."""
MAX_STRIDES = 256
"""Strides per tick. Bodies that turn by more than their sum, 4 rad, turn about their angular momentum, at the rate that
they have about it at the start: that keeps their energy, and no screw of a tick shows more than half a turn."""


# Inertia. ---------------------------------------------------------------------------------------------------------


@kernel
def centre_of_mass(pose: Any, inertia: Any) -> Vector:
    """Where the centre of mass is, scene, m; pose: POSE, inertia: BODY_INERTIA."""
    return to_scene(pose, vector(inertia.centre))


@inner
def _frame(orientation: Quaternion, inertia: Any) -> Quaternion:
    """Principal axes in the scene."""
    return multiply(orientation, quaternion(inertia.axes))


@kernel
def angular_momentum(orientation: Quaternion, inertia: Any, angular: Vector) -> Vector:
    """About the centre of mass, scene, N m s; inertia: BODY_INERTIA, angular: velocity, scene, rad/s."""
    frame = _frame(orientation, inertia)
    w = rotate(conjugate(frame), angular)
    moments = inertia.moments
    return rotate(frame, (moments[0] * w[0], moments[1] * w[1], moments[2] * w[2]))


@kernel
def angular_velocity(orientation: Quaternion, inertia: Any, momentum: Vector) -> Vector:
    """Scene, rad/s; inertia: BODY_INERTIA, momentum: angular, about the centre of mass, scene, N m s."""
    frame = _frame(orientation, inertia)
    p = rotate(conjugate(frame), momentum)
    moments = inertia.moments
    return rotate(frame, (p[0] / moments[0], p[1] / moments[1], p[2] / moments[2]))


@inner
def inverse_inertia(orientation: Quaternion, inertia: Any, out: np.ndarray) -> None:
    """Write the inverse of the inertia tensor about the centre of mass; out: (3, 3), scene axes, 1/(kg m2)."""
    frame = _frame(orientation, inertia)
    moments = inertia.moments
    first = rotate(frame, (1.0, 0.0, 0.0))
    second = rotate(frame, (0.0, 1.0, 0.0))
    third = rotate(frame, (0.0, 0.0, 1.0))
    for i in range(3):
        for j in range(i + 1):
            value = first[i] * first[j] / moments[0] + second[i] * second[j] / moments[1]
            value += third[i] * third[j] / moments[2]
            out[i, j] = value
            out[j, i] = value


# Kick. ------------------------------------------------------------------------------------------------------------


@kernel
def set_velocity(velocity: Any, pose: Any, inertia: Any, linear: Vector, angular: Vector) -> None:
    """Fill a BODY_VELOCITY record.

    pose: POSE; inertia: BODY_INERTIA; linear: of the centre of mass, m/s, and angular: rad/s, scene.
    """
    put_vector(velocity.linear, linear)
    put_vector(velocity.angular, angular)
    put_vector(velocity.momentum, angular_momentum(quaternion(pose.orientation), inertia, angular))
    put_vector(velocity.loaded, angular)


@kernel
def free_motion(
    velocity: Any, pose: Any, inertia: Any, gravity: Vector, force: Vector, torque: Vector, dt: float
) -> None:
    """Change a velocity by what acts on the body during a tick, contacts apart.

    velocity: BODY_VELOCITY, changed; pose: POSE; inertia: BODY_INERTIA; gravity: m/s2; force: N, and torque about the
    centre of mass: N m, all scene; dt: s. Drag is taken at the end of the tick (implicit Euler): it never turns a
    velocity round, however strong it is, and the final speed of a fall is exact. What nothing acts on keeps its
    momenta to the bit.
    """
    share = dt / (inertia.mass + inertia.linear_drag * dt)
    v = vector(velocity.linear)
    pull = subtract(add(force, scaled(gravity, inertia.mass)), scaled(v, inertia.linear_drag))
    put_vector(velocity.linear, add(v, scaled(pull, share)))

    undamped = add(vector(velocity.momentum), scaled(torque, dt))
    frame = _frame(quaternion(pose.orientation), inertia)
    p = rotate(conjugate(frame), undamped)
    moments = inertia.moments
    drag = inertia.angular_drag * dt
    lost = (drag * p[0] / (moments[0] + drag), drag * p[1] / (moments[1] + drag), drag * p[2] / (moments[2] + drag))
    _set_momentum(velocity, quaternion(pose.orientation), inertia, subtract(undamped, rotate(frame, lost)))


@inner
def _set_momentum(velocity: Any, orientation: Quaternion, inertia: Any, momentum: Vector) -> None:
    put_vector(velocity.momentum, momentum)
    put_vector(velocity.angular, angular_velocity(orientation, inertia, momentum))


# Drift. -----------------------------------------------------------------------------------------------------------


@inner
def _rate(s: Turning, share: Vector) -> Turning:
    """Derivative by time of both; share: (I2 - I3) / I1 and so on, of Euler's equations, each within -1..1."""
    return (
        0.5 * (s[3] * s[4] + s[1] * s[6] - s[2] * s[5]),
        0.5 * (s[3] * s[5] - s[0] * s[6] + s[2] * s[4]),
        0.5 * (s[3] * s[6] + s[0] * s[5] - s[1] * s[4]),
        -0.5 * (s[0] * s[4] + s[1] * s[5] + s[2] * s[6]),
        share[0] * s[5] * s[6],
        share[1] * s[6] * s[4],
        share[2] * s[4] * s[5],
    )


@inner
def _ahead(s: Turning, rate: Turning, time: float) -> Turning:
    return (
        s[0] + time * rate[0],
        s[1] + time * rate[1],
        s[2] + time * rate[2],
        s[3] + time * rate[3],
        s[4] + time * rate[4],
        s[5] + time * rate[5],
        s[6] + time * rate[6],
    )


@inner
def _stride(s: Turning, share: Vector, h: float) -> Turning:
    """One step of Butcher's rule of sixth order, h in s."""
    a = _rate(s, share)
    b = _rate(_ahead(s, a, h / 3.0), share)
    c = _rate(_ahead(s, b, h * 2.0 / 3.0), share)
    at = _ahead(_ahead(s, a, h / 12.0), b, h / 3.0)
    d = _rate(_ahead(at, c, -h / 12.0), share)
    at = _ahead(_ahead(s, a, -h / 16.0), b, h * 9.0 / 8.0)
    e = _rate(_ahead(_ahead(at, c, -h * 3.0 / 16.0), d, -h * 3.0 / 8.0), share)
    at = _ahead(_ahead(s, b, h * 9.0 / 8.0), c, -h * 3.0 / 8.0)
    f = _rate(_ahead(_ahead(at, d, -h * 3.0 / 4.0), e, h * 0.5), share)
    at = _ahead(_ahead(s, a, h * 9.0 / 44.0), b, -h * 9.0 / 11.0)
    at = _ahead(_ahead(at, c, h * 63.0 / 44.0), d, h * 18.0 / 11.0)
    g = _rate(_ahead(at, f, -h * 16.0 / 11.0), share)
    at = _ahead(_ahead(s, a, h * 11.0 / 120.0), c, h * 27.0 / 40.0)
    at = _ahead(_ahead(at, d, h * 27.0 / 40.0), e, -h * 4.0 / 15.0)
    return _ahead(_ahead(at, f, -h * 4.0 / 15.0), g, h * 11.0 / 120.0)


@kernel
def spin(orientation: Quaternion, inertia: Any, momentum: Vector, dt: float) -> tuple[Vector, Vector]:
    """Force-free rotation of a body over a time.

    orientation: of the body frame at the start; inertia: BODY_INERTIA; momentum: angular, about the centre of mass,
    scene, N m s, constant; dt: s, of either sign. Returns (rotation vector from the start orientation to the one at the
    end, rad, 0..pi, angular velocity at the end, rad/s), scene. The angular velocity never exceeds the bound that the
    energy, the momentum and the outer two moments allow, and by it the strides are chosen.
    """
    frame = _frame(orientation, inertia)
    p = rotate(conjugate(frame), momentum)
    moments = inertia.moments
    inverse = (1.0 / moments[0], 1.0 / moments[1], 1.0 / moments[2])
    w = (inverse[0] * p[0], inverse[1] * p[1], inverse[2] * p[2])
    high = max(inverse[0], inverse[1], inverse[2])
    low = min(inverse[0], inverse[1], inverse[2])
    # With the weights p_i^2, w^2 is a mean of squares of `inverse` and twice the energy a mean of `inverse`. Of numbers
    # in low .. high with a given mean, the mean square is largest with all of them at the ends.
    fastest = max(dot(w, w), dot(p, w) * (high + low) - dot(p, p) * high * low)
    strides = math.ceil(abs(dt) * math.sqrt(fastest) / STRIDE)
    if strides == 0.0:
        return (0.0, 0.0, 0.0), rotate(frame, w)
    if strides > MAX_STRIDES:
        turned = normalise(from_rotation_vector(scaled(p, dot(w, p) / dot(p, p) * dt)))
    else:
        share = (
            (moments[1] - moments[2]) * inverse[0],
            (moments[2] - moments[0]) * inverse[1],
            (moments[0] - moments[1]) * inverse[2],
        )
        s = (0.0, 0.0, 0.0, 1.0, w[0], w[1], w[2])
        for _ in range(int(strides)):
            s = _stride(s, share, dt / strides)
        turned = normalise((s[0], s[1], s[2], s[3]))
    p = rotate(conjugate(turned), p)
    w = (inverse[0] * p[0], inverse[1] * p[1], inverse[2] * p[2])
    return rotate(frame, rotation_vector(turned)), rotate(multiply(frame, turned), w)


@inner
def mean_angular_velocity(velocity: Any, pose: Any, inertia: Any, dt: float) -> Vector:
    """Angular velocity (scene, rad/s) of the screw of a tick of dt (s); that of the instant for dt = 0.

    velocity: BODY_VELOCITY at the start of the tick; pose: POSE; inertia: BODY_INERTIA.
    """
    if dt == 0.0:
        return vector(velocity.angular)
    turn, _ = spin(quaternion(pose.orientation), inertia, vector(velocity.momentum), dt)
    return scaled(turn, 1.0 / dt)


@kernel
def load_mover(mover: Any, velocity: Any, pose: Any, inertia: Any, dt: float) -> None:
    """Fill a MOVER record with a body as contact solvers see it.

    velocity: BODY_VELOCITY, which notes what was loaded; pose: POSE; inertia: BODY_INERTIA. dt: s, the tick whose mean
    angular velocity the contacts shall work on, or 0 for the velocity of the instant.
    """
    angular = mean_angular_velocity(velocity, pose, inertia, dt)
    put_vector(velocity.loaded, angular)
    put_vector(mover.velocity[:3], vector(velocity.linear))
    put_vector(mover.velocity[3:], angular)
    mover.inverse_mass = 1.0 / inertia.mass
    inverse_inertia(quaternion(pose.orientation), inertia, mover.inverse_inertia)


@kernel
def store_mover(velocity: Any, mover: Any, pose: Any, inertia: Any) -> None:
    """Give a body the impulses that its MOVER received since :func:`load_mover`.

    velocity: BODY_VELOCITY, changed; pose: POSE, the same as then; inertia: BODY_INERTIA. What received no impulse
    keeps its momenta to the bit.
    """
    orientation = quaternion(pose.orientation)
    change = subtract(vector(mover.velocity[3:]), vector(velocity.loaded))
    given = angular_momentum(orientation, inertia, change)
    put_vector(velocity.linear, vector(mover.velocity[:3]))
    _set_momentum(velocity, orientation, inertia, add(vector(velocity.momentum), given))


@kernel
def tick_motion(motion: Any, velocity: Any, pose: Any, inertia: Any, dt: float) -> None:
    """Fill the MOTION record of a tick: one screw about the centre of mass to the end of the force-free motion.

    velocity: BODY_VELOCITY at the start; pose: POSE; inertia: BODY_INERTIA; dt: s.
    """
    orientation = quaternion(pose.orientation)
    turn, _ = spin(orientation, inertia, vector(velocity.momentum), dt)
    shift = scaled(vector(velocity.linear), dt)
    from_twist(motion, SCREW, vector(pose.position), orientation, shift, turn, centre_of_mass(pose, inertia))


@kernel
def follow(pose: Any, velocity: Any, inertia: Any, motion: Any, u: float) -> None:
    """Put a body where its motion has it at u in 0..1, its momenta unchanged.

    pose: POSE, changed; velocity: BODY_VELOCITY, changed; inertia: BODY_INERTIA; motion: MOTION.
    """
    position, orientation = screws.pose(motion, u)
    orientation = normalise(orientation)
    put_vector(pose.position, position)
    put_quaternion(pose.orientation, orientation)
    _set_momentum(velocity, orientation, inertia, vector(velocity.momentum))


@inner
def turn_in_place(pose: Any, velocity: Any, inertia: Any, turn: Vector) -> None:
    """Turn a body about the origin of its frame by a rotation vector (rad, scene), its momenta unchanged.

    pose: POSE, changed; velocity: BODY_VELOCITY, changed; inertia: BODY_INERTIA, of mass 0 for what has no momenta.
    """
    orientation = normalise(multiply(from_rotation_vector(turn), quaternion(pose.orientation)))
    put_quaternion(pose.orientation, orientation)
    if inertia.mass > 0.0:
        _set_momentum(velocity, orientation, inertia, vector(velocity.momentum))


# Ledgers. ---------------------------------------------------------------------------------------------------------


@kernel
def kinetic_energy(velocity: Any, inertia: Any) -> tuple[float, float]:
    """(of the centre of mass, of the rotation), J; velocity: BODY_VELOCITY, inertia: BODY_INERTIA."""
    v = vector(velocity.linear)
    return 0.5 * inertia.mass * dot(v, v), 0.5 * dot(vector(velocity.angular), vector(velocity.momentum))


@kernel
def potential_energy(pose: Any, inertia: Any, gravity: Vector) -> float:
    """In a uniform field (m/s2, scene), 0 with the centre of mass at the origin, J; POSE, BODY_INERTIA."""
    return -inertia.mass * dot(gravity, centre_of_mass(pose, inertia))


@kernel
def momenta(velocity: Any, pose: Any, inertia: Any) -> tuple[Vector, Vector]:
    """(linear, N s, angular about the origin of the scene, N m s); BODY_VELOCITY, POSE, BODY_INERTIA."""
    linear = scaled(vector(velocity.linear), inertia.mass)
    return linear, add(vector(velocity.momentum), cross(centre_of_mass(pose, inertia), linear))
