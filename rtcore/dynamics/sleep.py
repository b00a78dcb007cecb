"""Bodies that sleep: what rests to the bit, on contacts that are only carried along, is not solved again.

The problem of an island in which nothing moves is the same in every step, and so is its answer. Such an island gets no
kick and no solve, its contacts go on pushing what they pushed. It sleeps when each of its bodies has been at rest for
so many steps that no contact counts as slipping any more, and wakes as a whole in the step in which anything about it
changes: the velocity of a body, a contact, a kinematic body that starts to move, the tool that comes to touch it.

Source: sleeping islands are common practice in engines for games; here sleep begins at rest to the bit, not below a
threshold, and so changes nothing.
"""

from typing import Any

from rtcore.dynamics.groups import group_of, join, separate
from rtcore.dynamics.rigid_body import set_velocity
from rtcore.kernels import inlined, inner, kernel
from rtcore.spatial import put_vector
from rtcore.tables import FREE, KINEMATIC, RESTICK_TICKS

QUIET = RESTICK_TICKS + 1
"""Steps at rest after which a body may sleep."""
NOTHING = (0.0, 0.0, 0.0)


@kernel
def stands(velocity: Any) -> bool:
    """Is the velocity of a body (BODY_VELOCITY) zero to the bit?"""
    moving = False
    for k in range(3):
        moving |= velocity.linear[k] != 0.0 or velocity.angular[k] != 0.0
    return not moving


@inlined
def find_sleepers(model: tuple, state: tuple, report: Any) -> None:
    """Write to state.pairs.asleep which free bodies sleep in this step, and take them out of it.

    model: Model; state: State with contacts up to date and the kick given; report: STEP_REPORT, which counts their
    contacts and keeps the least of their gaps and the worst of their residuals.
    """
    pairs = state.pairs
    n = len(model.bodies)
    separate(pairs.groups)
    for body_id in range(n):
        velocity = state.velocities[body_id]
        kind = model.bodies[body_id].kind
        pairs.asleep[body_id] = 1
        pairs.held[body_id] = 0
        if (kind == FREE and velocity.quiet < QUIET) or (kind == KINEMATIC and not stands(velocity)):
            pairs.asleep[body_id] = 0
    for i in range(report.contact_count):
        pairs.asleep[report.contacts[i].body_id] = 0
    for k in range(pairs.table[0].count):
        pair = pairs.rows[pairs.order[k]]
        if pair.count > 0:
            _hold(model, pairs, pair)
    for body_id in range(n):
        if pairs.held[body_id] != state.velocities[body_id].held:
            pairs.asleep[body_id] = 0
        if pairs.asleep[body_id] == 0:
            pairs.asleep[group_of(pairs.groups, body_id)] = 0
    for body_id in range(n):
        velocity = state.velocities[body_id]
        velocity.held = pairs.held[body_id]
        asleep = model.bodies[body_id].kind == FREE and pairs.asleep[group_of(pairs.groups, body_id)] != 0
        pairs.asleep[body_id] = 1 if asleep else 0
        if asleep:
            report.body_residual = max(report.body_residual, velocity.residual)
            set_velocity(velocity, state.poses[body_id], model.inertias[body_id], NOTHING, NOTHING)
            mover = state.problem.movers[pairs.movers[body_id]]
            put_vector(mover.velocity[:3], NOTHING)
            put_vector(mover.velocity[3:], NOTHING)
    for k in range(pairs.table[0].count):
        pair = pairs.rows[pairs.order[k]]
        if pairs.asleep[pair.first] != 0 or pairs.asleep[pair.second] != 0:
            report.body_contacts += pair.count
            report.asleep += pair.count
            for i in range(pair.count):
                gap = pair.contacts[i].gap
                report.body_gap = gap if report.body_gap < 0.0 else min(report.body_gap, gap)


@inner
def _hold(model: tuple, pairs: tuple, pair: Any) -> None:
    """Count the contacts of a PAIR for its bodies, join them if both are free, and wake them if it is not as it was."""
    pairs.held[pair.first] += pair.count
    pairs.held[pair.second] += pair.count
    one = model.bodies[pair.first].kind
    two = model.bodies[pair.second].kind
    if one == FREE and two == FREE:
        join(pairs.groups, pair.first, pair.second)
    pushed = one == KINEMATIC and pairs.asleep[pair.first] == 0
    pushed |= two == KINEMATIC and pairs.asleep[pair.second] == 0
    if pair.fresh != 0 or pushed:
        if one == FREE:
            pairs.asleep[pair.first] = 0
        if two == FREE:
            pairs.asleep[pair.second] = 0
