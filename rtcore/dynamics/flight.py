"""Flight within a step, exact to second order: falls, and bounces at the instant at which bodies touch.

A body that no contact pushes falls along the parabola: by the mean of its velocities before and after the step, not by
the last one, whose kick it has only at the end. In free flight so no energy is made or lost, and none is either by what
drags. One that bounces flies up to the instant, bounces, and flies on; the screw of its step leads to where it then is.
All that bounces of an island does so at the first such instant of it, and what is in flight near it is looked at
then: a body that is hit by one that bounced has had no more of its kick than that one.

Source: uniformly accelerated motion; the first root of h + u t + a t^2 / 2 in its stable form.
"""

import math
from typing import Any

from rtcore.dynamics.contact_rows import gap_of, normal_of, rows_of_island
from rtcore.dynamics.groups import group_of, join, separate
from rtcore.dynamics.restitution import begin_impacts, normal_velocity, pair_restitution
from rtcore.dynamics.rigid_body import load_mover
from rtcore.kernels import inlined, inner, kernel
from rtcore.spatial import Vector, add, dot, put_vector, scaled, subtract, vector
from rtcore.tables import FREE

NEVER = 2.0
"""Of what does not happen within a step: a share of it above 1."""


@inner
def gravity_kick(model: tuple, body_id: int) -> Vector:
    """What gravity adds to the velocity of a body in a step, less what drag takes of that, m/s; 0 of all but free."""
    world = model.world[0]
    if body_id >= len(model.bodies) or model.bodies[body_id].kind != FREE:
        return 0.0, 0.0, 0.0
    inertia = model.inertias[body_id]
    share = inertia.mass / (inertia.mass + inertia.linear_drag * world.dt)
    return scaled(vector(world.gravity), world.dt * share)


@kernel
def touch(height: float, speed: float, acceleration: float) -> tuple[float, float]:
    """When height + speed t + acceleration t^2 / 2 first comes down to 0, and how fast it then falls: (t, >= 0).

    height >= 0; t is infinite where that never happens, or nothing moves.
    """
    square = speed * speed - 2.0 * acceleration * height
    if square <= 0.0:
        return math.inf, 0.0
    fast = math.sqrt(square)
    if speed <= 0.0:
        return 2.0 * height / (fast - speed), fast
    return ((speed + fast) / -acceleration, fast) if acceleration < 0.0 else (math.inf, 0.0)


@inlined
def load_impacts(model: tuple, state: tuple, report: Any) -> None:
    """Say which contacts bounce within this step, and give their movers the velocities of the instant.

    model: Model; state: State, its movers loaded with the velocities at the end of a step without contacts, equations
    written; report: STEP_REPORT. A contact that bounces may not close after that instant.
    """
    pairs = state.pairs
    for body_id in range(len(pairs.struck)):
        pairs.struck[body_id] = NEVER
    count = int(state.problem.size[0].contacts)
    separate(pairs.groups)
    for island in range(report.islands):
        first, last = rows_of_island(pairs.bounds, count, island)
        instant = _first_instant(model, state, first, last, report)
        if instant <= 1.0:
            _join_resting(model, state, first, last)
            for i in range(first, last):
                if _bounces(pairs, i):
                    state.problem.equations[i].free[0] = 0.0
                _go_to(model, state, pairs.places[1, i].first, instant, _bounces(pairs, i))
                _go_to(model, state, pairs.places[1, i].second, instant, _bounces(pairs, i))
        begin_impacts(state.problem, pairs.impacts, first, last)


@inner
def _first_instant(model: tuple, state: tuple, first: int, last: int, report: Any) -> float:
    """The share of the step at which something of an island first meets fast, if any of that bounces; else NEVER."""
    pairs = state.pairs
    world = model.world[0]
    instant = NEVER
    bounces = False
    for i in range(first, last):
        place = pairs.places[1, i]
        impact = pairs.impacts[i]
        impact.restitution = 0.0
        impact.rest_speed = 0.0
        impact.instant = NEVER
        if place.second == len(model.bodies) or place.moments != 0:
            continue
        one = model.inertias[place.first]
        two = model.inertias[place.second]
        impact.restitution = pair_restitution(one.restitution, two.restitution)
        impact.rest_speed = max(one.rest_speed, two.rest_speed)
        way = subtract(gravity_kick(model, place.second), gravity_kick(model, place.first))
        kick = dot(way, normal_of(state.problem.equations[i]))
        room = max(gap_of(state, place, report) - world.eps_safety, 0.0)
        time, speed = touch(room, normal_velocity(state.problem, i) - kick, kick / world.dt)
        if time <= world.dt and speed >= impact.rest_speed:
            impact.instant = time / world.dt
            instant = min(instant, impact.instant)
            bounces |= impact.restitution > 0.0
    return instant if bounces else NEVER


@inner
def _bounces(pairs: tuple, i: int) -> bool:
    return pairs.impacts[i].instant <= 1.0 and pairs.impacts[i].restitution > 0.0


@inner
def _join_resting(model: tuple, state: tuple, first: int, last: int) -> None:
    """Join what touches and does not bounce in state.pairs.groups: what does not move, or is held, with the tool."""
    pairs = state.pairs
    tool = len(model.bodies)
    for i in range(first, last):
        place = pairs.places[1, i]
        if place.moments == 0 and state.problem.equations[i].free[0] == 0.0 and not _bounces(pairs, i):
            one = place.first if model.bodies[place.first].kind == FREE else tool
            two = place.second if place.second < tool and model.bodies[place.second].kind == FREE else tool
            join(pairs.groups, one, two)


@inner
def _go_to(model: tuple, state: tuple, body_id: int, instant: float, bounces: bool) -> None:
    """Give the mover of a body that bounces, or rests on nothing, its velocity just before that share of the step."""
    pairs = state.pairs
    mover = pairs.movers[body_id]
    if mover < 0 or model.bodies[body_id].kind != FREE or pairs.struck[body_id] <= 1.0:
        return
    if not bounces and group_of(pairs.groups, body_id) == group_of(pairs.groups, len(model.bodies)):
        return
    pairs.struck[body_id] = instant
    velocity = state.velocities[body_id]
    later = scaled(gravity_kick(model, body_id), 1.0 - instant)
    put_vector(velocity.linear, subtract(vector(velocity.linear), later))
    put_vector(pairs.approach[body_id, :3], vector(velocity.linear))
    put_vector(pairs.approach[body_id, 3:], vector(velocity.angular))
    load_mover(state.problem.movers[mover], velocity, state.poses[body_id], model.inertias[body_id], 0.0)


@inner
def flown(model: tuple, state: tuple, body_id: int) -> Vector:
    """The mean velocity of a step in which a body has flown, by the velocity at its end and, if it bounced, before."""
    struck = state.pairs.struck[body_id]
    share = struck if struck <= 1.0 else 0.0
    kick = gravity_kick(model, body_id)
    after = vector(state.velocities[body_id].linear)
    rose = scaled(subtract(after, scaled(kick, 0.5 * (1.0 - share))), 1.0 - share)
    if share == 0.0:
        return rose
    before = vector(state.pairs.approach[body_id, :3])
    return add(scaled(subtract(before, scaled(kick, 0.5 * share)), share), rose)


@inner
def fly_on(model: tuple, state: tuple, body_id: int) -> None:
    """Give a body that has bounced the rest of its kick, and its mover the mean velocity of the step."""
    share = state.pairs.struck[body_id]
    before = state.pairs.approach[body_id]
    velocity = state.velocities[body_id]
    mover = state.problem.movers[state.pairs.movers[body_id]]
    kick = gravity_kick(model, body_id)
    put_vector(velocity.linear, add(vector(velocity.linear), scaled(kick, 1.0 - share)))
    put_vector(mover.velocity[:3], flown(model, state, body_id))
    turned = add(scaled(vector(before[3:]), share), scaled(vector(mover.velocity[3:]), 1.0 - share))
    put_vector(mover.velocity[3:], turned)


@inner
def fall(model: tuple, state: tuple, body_id: int) -> None:
    """Give the mover of a body that nothing pushes the mean velocity of the step."""
    mover = state.problem.movers[state.pairs.movers[body_id]]
    put_vector(mover.velocity[:3], flown(model, state, body_id))
