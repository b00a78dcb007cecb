"""A whole mesh as tool: it follows the hand along screws, as far as they are proven free.

A tool that yields to its contacts slides along them and turns as they push it (the first-order world). One that does
not is carried: where the way to the goal is blocked it waits, and goes on as soon as the hand asks for a motion that
is free.
"""

import math

import numpy as np

from rtcore.collision.broad_phase import find_pairs
from rtcore.collision.contact_set import update_contacts
from rtcore.collision.front import DRIFT, ROUNDING, coherent_contact
from rtcore.collision.near_features import list_again, list_near, round_off
from rtcore.collision.overlap import place_pair
from rtcore.collision.pair_contacts import update_pair_contacts
from rtcore.collision.pair_slots import match_pairs, rounding_of
from rtcore.collision.pair_state import move_front, move_on, reset_front
from rtcore.dynamics.constrained import constrain, load_movers
from rtcore.dynamics.groups import group_of, join_near
from rtcore.dynamics.held_tool import is_held
from rtcore.dynamics.moving import NOTHING, account, kick, move_by_velocity, place_bodies
from rtcore.dynamics.position_pass import bend_ways, open_contacts
from rtcore.dynamics.stalls import shorten_ways
from rtcore.kernels import inlined, inner
from rtcore.motion import SCREW, STILL, between, copy_motion, from_twist, from_velocity, path_bound, pose, still
from rtcore.spatial import length, normalise, put_quaternion, put_vector, quaternion, scaled, vector
from rtcore.tables import (
    DEGRADED_CONTACTS,
    DEGRADED_NUMBERS,
    DEGRADED_PASSES,
    DEGRADED_SWEEP,
    MAX_PATH,
    QUERY_OWNED,
)

POSITION_TOLERANCE = 1e-3
"""Share of eps_alert by which a contact may be reported early."""
STRIDE = 8.0
"""Times eps_break that any point of the tool may go in one pass."""
LEAST_STRIDE = 2.0**-12
"""Smallest share of it after passes that were blocked; a free pass doubles the share again."""
TIME_TOLERANCE = 1e-6
"""Share of the step by which it may be reported early: a way of a millimetre is then known to a nanometre."""
STANDSTILL = 1e-4
"""Share of eps_alert below which what contacts leave of a motion is none: the tool stays where it is, to the bit."""
LISTING = 1 / 80
"""Share of the units that the search for near features may use. Two sheets along one another have thousands of pairs of
triangles within reach, so that a round then takes some ticks."""
LEAST_LISTING = 32
"""Units for it in any case, as long as half of all are left for what may touch."""
PAIR_LISTING = 0.25
"""Share of the units left then that the listing of contacts between bodies may use."""
RELISTED = 32
"""Contacts known from before that are looked at again where the search goes in turns."""


@inlined
def follow(model: tuple, state: tuple, wanted: np.void, budget: np.void, report: np.void) -> None:
    """Move the tool from its pose towards the goal, and bodies as they are pushed, up to what is proven free.

    model: Model with a tool mesh; state: State, with the goal in its scratch memory; wanted: STEP_INPUT, budget:
    BUDGET, report: STEP_REPORT records. All along the executed motion every two bodies, the tool among them, keep at
    least eps_alert if they did so before; those that were nearer come nearer by no more than the position tolerance,
    however long it goes on. The contacts reported are those of the poses that the step began with. Where the tool
    yields to contacts (WORLD.turning), or bodies move, a step is one motion of each.
    Source: Redon 2002, 3.1.2 and 3.3: the pose at the proven time is that of the very motion that was tested.
    """
    units = max(budget.units, 0)
    passes = min(max(budget.passes, 1), MAX_PATH - 1)
    for body_id in range(len(model.bodies) + 1):
        state.pairs.bent[body_id] = 0
        state.pairs.strides[body_id] = 1.0
    kick(model, state)
    limit = _ask(model, state, wanted)
    tool = state.motions[len(model.bodies)]
    load_movers(model, state, wanted, vector(tool.shift), scaled(vector(tool.axis), tool.angle))
    move_by_velocity(model, state)
    units = look(model, state, units, report)
    together = _moves_together(model, state, report)
    if together:
        _move_together(model, state, wanted, budget, report)
        limit = 1.0
        units = _find(model, state, units, report)
    while True:
        time, units = sweep_pairs(model, state, limit, units, report)
        place(model, state, time, report)
        blocked = time < limit
        stride = state.proxy[0].stride
        state.proxy[0].stride = max(0.5 * stride, LEAST_STRIDE) if blocked else min(2.0 * stride, 1.0)
        report.fraction = time / limit * state.pairs.strides[len(model.bodies)]
        if blocked or together or limit == 1.0:
            break
        if report.passes_used == passes:
            report.degraded |= DEGRADED_PASSES
            break
        limit = _ask(model, state, wanted)
        units = _find(model, state, units, report)
    account(model, state, report)
    report.units_used = max(budget.units, 0) - units


@inner
def _moves_together(model: tuple, state: tuple, report: np.void) -> bool:
    """Is this step one motion of all: has anything a mass, or the tool contacts that it yields to?"""
    if len(state.problem.movers) > 1 or model.inertias[len(model.bodies)].mass > 0.0:
        return True
    return model.world[0].turning > 0.0 and report.contact_count > 0


@inner
def _ask(model: tuple, state: tuple, wanted: np.void) -> float:
    """Write down the motion to the goal, about the tip centre, and what is asked about it: the share for this pass.

    A goal far inside something would make all that lies between a matter of this tick, so that a pass only asks about a
    stride. One screw cut in pieces is the same screw. While the tool is blocked, or units run out, strides get shorter:
    what cannot be reached anyway then needs no search, and the few units there are go to what lies next.
    """
    scratch = state.scratch[0]
    proxy = state.proxy[0]
    position = vector(proxy.position)
    turn = quaternion(proxy.orientation)
    goal_turn = normalise(quaternion(scratch.goal_orientation))
    goal = vector(scratch.goal)
    if not is_held(wanted):
        goal_turn = turn
        goal = position
    between(state.motions[len(model.bodies)], SCREW, position, turn, goal, goal_turn, position)
    query = scratch.query
    query.position_tolerance = POSITION_TOLERANCE * model.world[0].eps_alert
    query.time_tolerance = TIME_TOLERANCE
    query.flags = QUERY_OWNED
    return _share(model, state)


@inner
def _share(model: tuple, state: tuple) -> float:
    """The share of the tool's motion that is one stride long, 1 at most."""
    tool = state.motions[len(model.bodies)]
    root = model.nodes[model.meshes[model.world[0].tool_mesh_id].node_first]
    path = path_bound(tool, vector(root.centre), root.radius, 0.0, 1.0)
    stride = STRIDE * state.proxy[0].stride * model.world[0].eps_break
    return 1.0 if path <= stride else stride / path


@inner
def look(model: tuple, state: tuple, units: int, report: np.void) -> int:
    """Find the neighbours of the tool, of bodies and of their ways, and the contacts where they are: units left."""
    units = _find(model, state, units, report)
    listing = min(max(int(LISTING * units), LEAST_LISTING), units // 2)
    units -= listing
    units += _list_near(model, state, listing)
    update_contacts(model, state, report)
    if len(state.pairs.rows) > 0:
        listing = int(PAIR_LISTING * units)
        units -= listing
        units += update_pair_contacts(model, state, listing, report)
    return units


@inner
def _find(model: tuple, state: tuple, units: int, report: np.void) -> int:
    """Find which bodies, the tool among them, may come within eps_break of each other on their ways: units left."""
    find_pairs(state.broad, state.motions, model.world[0].eps_break, units)
    if len(state.pairs.rows) > 0 and not match_pairs(model, state.pairs, state.broad):
        report.degraded |= DEGRADED_CONTACTS
    return units - state.broad.report[0].units_used


@inlined
def _move_together(model: tuple, state: tuple, wanted: np.void, budget: np.void, report: np.void) -> None:
    """Put the motions that contacts leave of the wanted ones in their place; of the tool's one stride."""
    constrain(model, state, wanted, budget, report)
    shorten_ways(model, state)
    move_by_velocity(model, state)
    _move_tool(model, state, report)
    share = _share(model, state)
    if share < 1.0:
        mover = state.problem.movers[len(state.problem.movers) - 1]
        put_vector(mover.velocity[:3], scaled(vector(mover.velocity[:3]), share))
        put_vector(mover.velocity[3:], scaled(vector(mover.velocity[3:]), share))
        _move_tool(model, state, report)
    if bend_ways(model, state, report):
        move_by_velocity(model, state)
        _move_tool(model, state, report)
    if open_contacts(model, state, budget, report):
        move_by_velocity(model, state)
        _move_tool(model, state, report)


@inner
def _move_tool(model: tuple, state: tuple, report: np.void) -> None:
    """Write the motion of the tool by the velocity of its mover; next to none is none, and so is one without number."""
    world = model.world[0]
    proxy = state.proxy[0]
    velocity = state.problem.movers[len(state.problem.movers) - 1].velocity
    shift = scaled(vector(velocity[:3]), world.dt)
    turn = scaled(vector(velocity[3:]), world.dt)
    root = model.nodes[model.meshes[world.tool_mesh_id].node_first]
    reach = length(vector(root.centre)) + root.radius
    way = length(shift) + reach * length(turn)
    if not math.isfinite(way):
        _stop(model, state, report)
    # Written so that NaN stands still.
    if not way > STANDSTILL * world.eps_alert or not math.isfinite(way):
        shift = turn = NOTHING
    motion = state.motions[len(model.bodies)]
    position = vector(proxy.position)
    orientation = quaternion(proxy.orientation)
    if state.pairs.bent[len(model.bodies)] != 0:
        from_velocity(motion, position, orientation, shift, turn, position)
    else:
        from_twist(motion, SCREW, position, orientation, shift, turn, position)


@inner
def _stop(model: tuple, state: tuple, report: np.void) -> None:
    """Let the tool stand, and keep nothing of a velocity that is no number."""
    tool = len(model.bodies)
    mover = state.problem.movers[len(state.problem.movers) - 1]
    put_vector(mover.velocity[:3], NOTHING)
    put_vector(mover.velocity[3:], NOTHING)
    put_vector(state.velocities[tool].linear, NOTHING)
    put_vector(state.velocities[tool].angular, NOTHING)
    put_vector(state.velocities[tool].momentum, NOTHING)
    report.degraded |= DEGRADED_NUMBERS


@inner
def sweep_pairs(model: tuple, state: tuple, limit: float, units: int, report: np.void) -> tuple[float, int]:
    """Ask of all pairs that may meet how far their motions are free: (the tool's time <= limit, units left).

    Bodies that may meet each other share one time, the least of all their pairs; it is written to state.pairs.times.
    A body that the broad phase finds out of reach of the tool only counts the path of the tool in its front.
    """
    n = len(model.bodies)
    broad = state.broad
    pairs = state.pairs
    _join_near(model, state, limit)
    group = group_of(pairs.groups, n)
    row = 0
    for body_id in range(n):
        front = state.fronts[body_id]
        while row < broad.report[0].pair_count and (broad.pairs[row, 0] < body_id or broad.pairs[row, 1] != n):
            row += 1
        if row == broad.report[0].pair_count or broad.pairs[row, 0] != body_id:
            _pass_by(model, state, body_id)
            continue
        entries = state.front_entries[body_id]
        units = _ask_pair(model, state, body_id, n, front, entries, group, units, report)
    for k in range(pairs.table[0].count):
        pair = pairs.rows[pairs.order[k]]
        entries = pairs.entries[pairs.order[k]]
        group = group_of(pairs.groups, pair.first if pairs.movers[pair.first] >= 0 else pair.second)
        units = _ask_pair(model, state, pair.first, pair.second, pair.front, entries, group, units, report)
    for body_id in range(n + 1):
        pairs.times[body_id] = pairs.times[group_of(pairs.groups, body_id)]
        if broad.bodies[body_id].blocked != 0 and pairs.movers[body_id] >= 0:
            report.degraded |= DEGRADED_SWEEP
    report.passes_used += 1
    return pairs.times[n], units


@inner
def _join_near(model: tuple, state: tuple, limit: float) -> None:
    """Join the bodies that move and may meet each other, and give each group the time up to which is asked."""
    pairs = state.pairs
    broad = state.broad
    join_near(pairs, broad)
    for body_id in range(len(model.bodies) + 1):
        pairs.times[body_id] = limit
    for body_id in range(len(model.bodies) + 1):
        if broad.bodies[body_id].blocked != 0:
            pairs.times[group_of(pairs.groups, body_id)] = 0.0


@inlined
def _ask_pair(
    model: tuple,
    state: tuple,
    first: int,
    second: int,
    front: np.void,
    entries: np.ndarray,
    group: int,
    units: int,
    report: np.void,
) -> int:
    """Ask of two bodies how far their motions are free, and lower the time of their group to that: units left."""
    scratch = state.scratch[0]
    query = scratch.query
    hit = scratch.hit
    times = state.pairs.times
    if _sleep_together(model, state, first, second):
        move_on(front)
        return units
    copy_motion(scratch.relative.first, state.motions[first])
    copy_motion(scratch.relative.second, state.motions[second])
    query.separation = model.world[0].eps_alert + rounding_of(model, first, second)
    query.limit = times[group]
    query.units = units
    # fmt: off
    coherent_contact(
        model.nodes, model.triangles, scratch.relative, query, front, entries, state.query_work[0], scratch.counters,
        hit,
    )
    # fmt: on
    if hit.truncated != 0:
        report.degraded |= DEGRADED_SWEEP
    times[group] = min(times[group], hit.time)
    return max(units - hit.units_used, 0)


@inner
def _sleep_together(model: tuple, state: tuple, first: int, second: int) -> bool:
    """Does one of two bodies sleep and the other stand? Before they do so fronts are opened while there is time."""
    asleep = state.pairs.asleep
    if second == len(model.bodies) or (asleep[first] == 0 and asleep[second] == 0):
        return False
    return state.motions[first].kind == STILL and state.motions[second].kind == STILL


@inlined
def _list_near(model: tuple, state: tuple, units: int) -> int:
    """List the features of bodies and tool within eps_break of one another, where the tool is now: units left.

    Begins with the body after the one at which the last step ran out of units; each goes on in its front where it was
    left. Where this step runs out too, the list is marked as incomplete, and what is known from before is looked at
    again.
    """
    broad = state.broad
    memory = state.contact_memory[0]
    work = state.query_work[0]
    tool = len(model.bodies)
    work.proximities.count = 0
    work.proximities.incomplete = broad.bodies[tool].blocked
    near = broad.report[0].pair_count
    row = 0
    while row < near and broad.pairs[row, 0] < memory.turn:
        row += 1
    memory.turn = 0
    left = units
    for _ in range(near):
        if row >= near:
            row = 0
        body_id = broad.pairs[row, 0]
        row += 1
        if broad.pairs[row - 1, 1] != tool:
            continue
        listed = work.proximities.count
        front = state.fronts[body_id]
        rounding = model.bodies[body_id].rounding
        _place_at_start(model, state, body_id)
        # fmt: off
        left, complete = list_near(
            model.nodes, model.triangles, front, state.front_entries[body_id], work.start,
            model.world[0].eps_break + rounding, state.scratch[0].counters, work.proximities, left,
        )
        # fmt: on
        round_off(work.proximities, listed, body_id, rounding, 0.0)
        if not complete:
            work.proximities.incomplete = 1
            memory.turn = body_id + 1
            break
    if work.proximities.incomplete != 0:
        _list_known(model, state)
    return max(left, 0)


@inner
def _list_known(model: tuple, state: tuple) -> None:
    """List the features of the triangles that contacts of the last step were found at."""
    memory = state.contact_memory[0]
    work = state.query_work[0]
    for m in range(min(memory.known, RELISTED)):
        key = memory.rows[m]
        first, second = key.first_triangle, key.second_triangle
        if m > 0 and memory.rows[m - 1].first_triangle == first and memory.rows[m - 1].second_triangle == second:
            continue
        listed = work.proximities.count
        rounding = model.bodies[key.body_id].rounding
        _place_at_start(model, state, key.body_id)
        # fmt: off
        list_again(
            model.triangles, first, second, work.start, model.world[0].eps_break + rounding, state.scratch[0].counters,
            work.proximities,
        )
        # fmt: on
        round_off(work.proximities, listed, key.body_id, rounding, 0.0)


@inner
def _place_at_start(model: tuple, state: tuple, body_id: int) -> None:
    """Write down where the tool is in the frame of a body before it moves, for box tests at that pose."""
    relative = state.scratch[0].relative
    body = state.poses[body_id]
    proxy = state.proxy[0]
    still(relative.first, vector(body.position), quaternion(body.orientation))
    still(relative.second, vector(proxy.position), quaternion(proxy.orientation))
    root = model.nodes[state.fronts[body_id].second_root]
    place_pair(relative, vector(root.centre), root.radius, 0.0, 0.0, state.query_work[0].start)


@inner
def _pass_by(model: tuple, state: tuple, body_id: int) -> None:
    """Count the path of a step in the front of a body that is out of reach; forget it where the body moves too."""
    front = state.fronts[body_id]
    if state.pairs.movers[body_id] >= 0:
        if front.count != 1 or front.travelled != 0.0 or front.ahead != 0.0:
            reset_front(front, state.front_entries[body_id])
        return
    motion = state.motions[len(model.bodies)]
    root = model.nodes[front.second_root]
    centre = vector(root.centre)
    front.travelled += front.ahead
    front.speed = path_bound(motion, centre, root.radius, 0.0, 1.0) * (1.0 + ROUNDING)
    size = root.radius + length(centre) + length(vector(motion.position)) + length(vector(motion.shift))
    front.drift = DRIFT * size
    front.ahead = front.speed + front.drift


@inner
def place(model: tuple, state: tuple, time: float, report: np.void) -> None:
    """Put everything where its motion is at its time, and tell the fronts how far it came."""
    proxy = state.proxy[0]
    n = len(model.bodies)
    pairs = state.pairs
    for body_id in range(n):
        move_front(state.fronts[body_id], time)
    for k in range(pairs.table[0].count):
        pair = pairs.rows[pairs.order[k]]
        moving = pair.first if pairs.movers[pair.first] >= 0 else pair.second
        move_front(pair.front, pairs.times[moving])
    place_bodies(model, state, report)
    if time > 0.0:
        position, orientation = pose(state.motions[n], time)
        if not math.isfinite(length(position) + abs(orientation[0]) + abs(orientation[3])):
            report.degraded |= DEGRADED_NUMBERS
            position, orientation = vector(proxy.position), quaternion(proxy.orientation)
        put_vector(proxy.position, position)
        put_quaternion(proxy.orientation, normalise(orientation))
        put_vector(report.path[report.path_count], position)
        report.path_count += 1
