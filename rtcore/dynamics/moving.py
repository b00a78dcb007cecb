"""Bodies that move by themselves during a step: what acts on them, the screws they follow, where they end.

A step begins with the kick (gravity and drag for the whole step) and ends with every body at the time that is proven
free for all bodies it might have met. A body that is stopped early has had too much of its kick: the energy that its
way did not pay for is taken back, from the velocity of a body in flight as a share of the kick itself, from one that
contacts push by slowing it down as it goes, which leaves contacts as they are.
"""

import math
from typing import Any

import numpy as np

from rtcore import motion as screws
from rtcore.dynamics.flight import flown, gravity_kick
from rtcore.dynamics.groups import group_of
from rtcore.dynamics.rigid_body import (
    centre_of_mass,
    follow,
    free_motion,
    kinetic_energy,
    potential_energy,
    set_velocity,
    turn_in_place,
)
from rtcore.dynamics.sleep import stands
from rtcore.dynamics.stalls import note_stall
from rtcore.kernels import inlined, inner, kernel
from rtcore.motion import SCREW, STILL, from_twist, from_velocity, still
from rtcore.spatial import (
    dot,
    normalise,
    put_quaternion,
    put_vector,
    quaternion,
    scaled,
    subtract,
    vector,
)
from rtcore.tables import FREE, KINEMATIC

NOTHING = (0.0, 0.0, 0.0)
GAIN = 1e-12
"""Share of the energy of a rotation that a step may add by rounding."""


@inlined
def kick(model: tuple, state: tuple) -> None:
    """Change the velocities of free bodies by gravity and drag. model: Model; state: State."""
    world = model.world[0]
    gravity = vector(world.gravity)
    for body_id in range(len(model.bodies)):
        if model.bodies[body_id].kind == FREE:
            if not stands(state.velocities[body_id]):
                state.velocities[body_id].quiet = 0
            # fmt: off
            free_motion(
                state.velocities[body_id], state.poses[body_id], model.inertias[body_id], gravity, NOTHING, NOTHING,
                world.dt,
            )
            # fmt: on
            linear, angular = kinetic_energy(state.velocities[body_id], model.inertias[body_id])
            state.pairs.energies[0, body_id] = linear + angular


@inner
def move_by_velocity(model: tuple, state: tuple) -> None:
    """Write the motions that bodies would have by the velocities of the movers; the others stand still.

    A ball goes straight, whatever it turns: what it meets depends on its centre alone (see `place_bodies`).
    model: Model; state: State with the velocities of this step in the movers of its contact problem.
    """
    dt = model.world[0].dt
    movers = state.pairs.movers
    for body_id in range(len(model.bodies)):
        pose = state.poses[body_id]
        motion = state.motions[body_id]
        position = vector(pose.position)
        orientation = quaternion(pose.orientation)
        if movers[body_id] < 0:
            still(motion, position, orientation)
            continue
        velocity = state.problem.movers[movers[body_id]].velocity
        if not velocity.any():
            still(motion, position, orientation)
            continue
        shift = scaled(vector(velocity[:3]), dt)
        turn = scaled(vector(velocity[3:]), dt)
        centre = centre_of_mass(pose, model.inertias[body_id])
        if model.bodies[body_id].ball != 0:
            from_twist(motion, SCREW, position, orientation, shift, NOTHING, position)
        elif state.pairs.bent[body_id] != 0:
            from_velocity(motion, position, orientation, shift, turn, centre)
        else:
            from_twist(motion, SCREW, position, orientation, shift, turn, centre)


@inlined
def place_bodies(model: tuple, state: tuple, report: Any) -> None:
    """Put every body that moves where its motion has it at its time, and take back what it has had too much of.

    model: Model; state: State with motions and times of this step; report: STEP_REPORT (body_fraction, stopped).
    """
    movers = state.pairs.movers
    report.body_fraction = 1.0
    report.stopped = 0
    _cut_gains(model, state)
    for body_id in range(len(model.bodies)):
        if movers[body_id] < 0 or state.pairs.asleep[body_id] != 0:
            continue
        u = state.pairs.times[body_id]
        motion = state.motions[body_id]
        pose = state.poses[body_id]
        share = u * state.pairs.strides[body_id]
        note_stall(state.velocities[body_id], share)
        report.body_fraction = min(report.body_fraction, share)
        if share < 1.0:
            report.stopped += 1
        if model.bodies[body_id].kind == KINEMATIC:
            if u > 0.0:
                position, orientation = screws.pose(motion, u)
                put_vector(pose.position, position)
                put_quaternion(pose.orientation, normalise(orientation))
                _spin(model, state, body_id, u)
            continue
        inertia = model.inertias[body_id]
        velocity = state.velocities[body_id]
        if u > 0.0:
            _, turning = kinetic_energy(velocity, inertia)
            follow(pose, velocity, inertia, motion, u)
            _spin(model, state, body_id, u)
            _, turned = kinetic_energy(velocity, inertia)
            if turned > turning * (1.0 + GAIN) and state.pairs.carried[body_id] != 0:
                factor = math.sqrt(turning / turned)
                put_vector(velocity.momentum, scaled(vector(velocity.momentum), factor))
                put_vector(velocity.angular, scaled(vector(velocity.angular), factor))
        if share < 1.0:
            _take_back(model, state, body_id)


@inner
def _spin(model: tuple, state: tuple, body_id: int, u: float) -> None:
    """Turn a ball by what it has turned at u, which its motion leaves out."""
    if model.bodies[body_id].ball != 0:
        velocity = state.problem.movers[state.pairs.movers[body_id]].velocity
        turn = scaled(vector(velocity[3:]), u * model.world[0].dt)
        turn_in_place(state.poses[body_id], state.velocities[body_id], model.inertias[body_id], turn)


@inner
def _cut_gains(model: tuple, state: tuple) -> None:
    """Take back from groups that are stopped early what contacts gave them for the rest of their way.

    A hand that pushes, or a body that nothing stops, does work on its way alone: where the way is cut, the energy that
    the pushed bodies of a group gained by the solve is cut by as much, and they are slowed down together.
    """
    pairs = state.pairs
    before = pairs.energies[1]
    after = pairs.energies[2]
    n = len(model.bodies)
    stopped = False
    for body_id in range(n):
        before[body_id] = after[body_id] = 0.0
        stopped |= pairs.movers[body_id] >= 0 and pairs.times[body_id] * pairs.strides[body_id] < 1.0
    if not stopped:
        return
    for body_id in range(n):
        if model.bodies[body_id].kind == FREE and pairs.carried[body_id] != 0:
            group = group_of(pairs.groups, body_id)
            linear, angular = kinetic_energy(state.velocities[body_id], model.inertias[body_id])
            before[group] += pairs.energies[0, body_id]
            after[group] += linear + angular
    for body_id in range(n):
        if model.bodies[body_id].kind == FREE and pairs.carried[body_id] != 0:
            group = group_of(pairs.groups, body_id)
            gain = after[group] - before[group]
            share = pairs.times[body_id] * pairs.strides[body_id]
            if share < 1.0 and gain > 0.0:
                factor = math.sqrt(max(1.0 - (1.0 - share) * gain / after[group], 0.0))
                velocity = state.velocities[body_id]
                v = scaled(vector(velocity.linear), factor)
                w = scaled(vector(velocity.angular), factor)
                set_velocity(velocity, state.poses[body_id], model.inertias[body_id], v, w)


@inner
def _take_back(model: tuple, state: tuple, body_id: int) -> None:
    """Take from a body what gravity gave it for the part of its way that it did not go.

    The way of what flies is that of its flight: what the position pass put to it is a lift, which gives and takes no
    velocity.
    """
    pairs = state.pairs
    motion = state.motions[body_id]
    velocity = state.velocities[body_id]
    inertia = model.inertias[body_id]
    v = vector(velocity.linear)
    kick = gravity_kick(model, body_id)
    mean = vector(state.problem.movers[pairs.movers[body_id]].velocity[:3])
    fell = 0.0
    if motion.kind != STILL:
        gone = subtract(centre_of_mass(state.poses[body_id], inertia), vector(motion.pivot))
        fell = dot(kick, gone) / model.world[0].dt
    if pairs.carried[body_id] == 0 or pairs.struck[body_id] <= 1.0:
        flight = flown(model, state, body_id)
        lift = subtract(mean, scaled(flight, pairs.strides[body_id]))
        fallen = dot(kick, flight) - fell + pairs.times[body_id] * dot(kick, lift)
        put_vector(velocity.linear, subtract(v, scaled(kick, unpaid(dot(kick, kick), dot(kick, v), fallen))))
        return
    fallen = dot(kick, mean) / pairs.strides[body_id] - fell
    if fallen <= 0.0:
        return
    linear, angular = kinetic_energy(velocity, inertia)
    energy = linear + angular
    factor = math.sqrt(max(1.0 - inertia.mass * fallen / energy, 0.0)) if energy > 0.0 else 1.0
    pose = state.poses[body_id]
    set_velocity(velocity, pose, inertia, scaled(v, factor), scaled(vector(velocity.angular), factor))


@kernel
def unpaid(square: float, rate: float, fallen: float) -> float:
    """The share of its kick that a body in flight has had too much of when it was stopped early.

    square: of the kick; rate: kick . v with the velocity v at the end of the step; fallen: what gravity would have done
    on the rest of the way, as a share of the mass, m2/s2 each. The way leads straight to where the parabola would end,
    so that it grows with the time, and v less s kicks is to have what is left of the energy: s^2 k^2 - 2 s k.v +
    2 fallen = 0. Of the roots it is the one next to 0, but where the body has yet to reach its summit: there the one
    above it. Where there is none v keeps nothing along the kick.
    """
    reach = rate * rate - 2.0 * square * fallen
    near = rate + math.copysign(math.sqrt(max(reach, 0.0)), rate)
    if reach <= 0.0 or near == 0.0:
        return rate / square if square > 0.0 else 0.0
    share = 2.0 * fallen / near
    other = near / square
    return other if share < 0.0 <= other < 1.0 + 1e-9 else share


@kernel
def account(model: tuple, state: tuple, report: Any) -> None:
    """Write the energy of the free bodies and the digest of all bodies that move to the STEP_REPORT."""
    gravity = vector(model.world[0].gravity)
    energy = 0.0
    digest = np.uint64(14695981039346656037)
    for body_id in range(len(model.bodies)):
        if state.pairs.movers[body_id] < 0:
            continue
        pose = state.poses[body_id]
        velocity = state.velocities[body_id]
        if model.bodies[body_id].kind == FREE:
            inertia = model.inertias[body_id]
            linear, angular = kinetic_energy(velocity, inertia)
            energy += linear + angular + potential_energy(pose, inertia, gravity)
        for k in range(3):
            digest = _mix(digest, pose.position[k])
            digest = _mix(digest, velocity.linear[k])
            digest = _mix(digest, velocity.momentum[k])
        for k in range(4):
            digest = _mix(digest, pose.orientation[k])
    report.energy = energy
    report.bodies_digest = digest


@inner
def _mix(digest: np.uint64, value: float) -> np.uint64:
    """One number more, by its bits, in a digest of FNV's kind (Fowler, Noll and Vo)."""
    return (digest ^ np.float64(value).view(np.uint64)) * np.uint64(1099511628211)
