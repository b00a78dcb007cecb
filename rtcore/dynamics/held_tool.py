"""The tool that a hand holds by springs, as the contact solvers see it: one more body that contacts move.

A spring k pulls the tip centre to the goal, another one k_r turns the tool, and both are taken at the end of the step,
with the contacts (implicit Euler). With the impulse p of the contacts and the way d to the goal

    (m + k dt^2 + b dt) v = m v0 + dt (k d + b v_goal) + p.

A tool without mass (the first-order world) is the case m = b = 0: v = d / dt + p / (k dt^2). It goes to its goal at
once, or to where springs and contacts balance: the motion nearest to the wanted one in the norm of the springs, Gauss'
principle with stiffness for inertia. Held so, it pushes other bodies with k times what is left of the way. Friction
holds what happens within one step: where the whole pull lies in the friction cones nothing moves, however long.

With stiffness 0, or next to it, no hand holds the tool: it stays, and nothing moves it. The mass of a tool is taken to
be at its tip centre, its gyroscopic torque to be that of the start, and its weight to be borne by the hand.
Source: Redon 2002, 3.5 and 3.6 (worlds of first and second order).
"""

import math
from typing import Any

from rtcore.dynamics.rigid_body import angular_momentum
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Vector,
    add,
    conjugate,
    multiply,
    put_vector,
    quaternion,
    rotate,
    scaled,
    vector,
)

LEAST_PULL = 1e-10
"""N/m: what pulls less is no hand. The inverse of far less has no number."""


@kernel
def is_held(wanted: Any) -> bool:
    """Whether a hand holds the tool: by springs and dampers that are numbers, and a pull; wanted: STEP_INPUT."""
    total = wanted.stiffness + wanted.rotational_stiffness + wanted.damping + wanted.rotational_damping
    for k in range(3):
        total += abs(wanted.goal_velocity[k]) + abs(wanted.goal_angular_velocity[k])
    # Written so that NaN fails.
    return wanted.stiffness >= LEAST_PULL and total < math.inf


@inner
def load_tool(
    mover: Any, velocity: Any, world: Any, inertia: Any, orientation: Any, wanted: Any, shift: Vector, turn: Vector
) -> None:
    """Fill a MOVER record with the tool, its velocity the one that springs and dampers alone would give it.

    velocity: BODY_VELOCITY of the tool; world: WORLD; inertia: BODY_INERTIA, mass 0 for a tool without;
    orientation: (4,) of the tool; wanted: STEP_INPUT; shift (m) and turn (rotation vector, rad): the way to the goal.
    """
    dt = world.dt
    pull = wanted.stiffness
    if not is_held(wanted):
        _fix(mover)
        return
    twist = max(wanted.rotational_stiffness, world.turning * pull)
    if inertia.mass <= 0.0:
        mover.inverse_mass = 1.0 / (pull * dt * dt)
        put_vector(mover.velocity[:3], scaled(shift, 1.0 / dt))
        put_vector(mover.velocity[3:], scaled(turn, 1.0 / dt))
        for i in range(3):
            for j in range(3):
                mover.inverse_inertia[i, j] = 1.0 / (twist * dt * dt) if i == j else 0.0
        return
    held = inertia.mass + pull * dt * dt + wanted.damping * dt
    mover.inverse_mass = 1.0 / held
    goes = add(scaled(shift, pull), scaled(vector(wanted.goal_velocity), wanted.damping))
    before = scaled(vector(velocity.linear), inertia.mass)
    put_vector(mover.velocity[:3], scaled(add(before, scaled(goes, dt)), 1.0 / held))
    added = twist * dt * dt + wanted.rotational_damping * dt
    frame = multiply(quaternion(orientation), quaternion(inertia.axes))
    axes = (rotate(frame, (1.0, 0.0, 0.0)), rotate(frame, (0.0, 1.0, 0.0)), rotate(frame, (0.0, 0.0, 1.0)))
    moments = inertia.moments
    for i in range(3):
        for j in range(3):
            total = axes[0][i] * axes[0][j] / (moments[0] + added)
            total += axes[1][i] * axes[1][j] / (moments[1] + added)
            total += axes[2][i] * axes[2][j] / (moments[2] + added)
            mover.inverse_inertia[i, j] = total
    turns = add(scaled(turn, twist), scaled(vector(wanted.goal_angular_velocity), wanted.rotational_damping))
    momentum = rotate(conjugate(frame), add(vector(velocity.momentum), scaled(turns, dt)))
    spin = (
        momentum[0] / (moments[0] + added),
        momentum[1] / (moments[1] + added),
        momentum[2] / (moments[2] + added),
    )
    put_vector(mover.velocity[3:], rotate(frame, spin))


@inner
def _fix(mover: Any) -> None:
    mover.inverse_mass = 0.0
    for i in range(6):
        mover.velocity[i] = 0.0
    for i in range(3):
        for j in range(3):
            mover.inverse_inertia[i, j] = 0.0


@inner
def store_tool(velocity: Any, proxy: Any, inertia: Any, mover: Any) -> None:
    """Keep the velocity of a tool with mass; velocity: BODY_VELOCITY; proxy: PROXY, as when it was loaded."""
    if inertia.mass > 0.0:
        angular = vector(mover.velocity[3:])
        put_vector(velocity.linear, vector(mover.velocity[:3]))
        put_vector(velocity.angular, angular)
        put_vector(velocity.momentum, angular_momentum(quaternion(proxy.orientation), inertia, angular))
