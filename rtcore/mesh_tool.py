"""A whole mesh as tool: it follows the hand along screws, as far as they are proven free.

A tool that yields to its contacts slides along them and turns as they push it (the first-order world). One that does
not is carried: where the way to the goal is blocked it waits, and goes on as soon as the hand asks for a motion that
is free.
"""

import numpy as np
from numba import njit

from rtcore.collision.broad_phase import find_pairs
from rtcore.collision.contact_set import update_contacts
from rtcore.collision.front import DRIFT, ROUNDING, coherent_contact
from rtcore.collision.near_features import list_again, list_near
from rtcore.collision.overlap import place_pair
from rtcore.collision.pair_state import move_front
from rtcore.dynamics.quasi_static import opening, yield_to_contacts
from rtcore.motion import SCREW, between, from_twist, path_bound, pose, still
from rtcore.spatial import length, normalise, put_quaternion, put_vector, quaternion, scaled, vector
from rtcore.tables import DEGRADED_PASSES, DEGRADED_SWEEP, MAX_PATH, QUERY_OWNED, RESTICK_TICKS

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
RELISTED = 32
"""Contacts known from before that are looked at again where the search goes in turns."""


@njit(cache=True, nogil=True, error_model="numpy")
def follow(model: tuple, state: tuple, budget: np.void, report: np.void) -> None:
    """Move the tool from its pose towards the goal, up to the first time that is not proven free.

    model: Model with a tool mesh; state: State, with the goal in its scratch memory; budget: BUDGET, report:
    STEP_REPORT records. All along the executed motion every body keeps at least eps_alert from the tool if it did so
    before; one that was nearer comes nearer by no more than the position tolerance, however long it goes on. The
    contacts reported are those of the pose that the step began with. A tool that yields to them (WORLD.turning) makes
    one motion per step while it has any.
    Source: Redon 2002, 3.1.2 and 3.3: the pose at the proven time is that of the very motion that was tested.
    """
    units = max(budget.units, 0)
    passes = min(max(budget.passes, 1), MAX_PATH - 1)
    _stand(model, state)
    limit = _ask(model, state)
    units = _look(model, state, units, report)
    yields = model.world[0].turning > 0.0 and report.contact_count > 0
    if yields:
        _yield(model, state, budget.sweeps, report)
        limit = 1.0
        units = _find(model, state, units)
    while True:
        time, units = _sweep(model, state, limit, units, report)
        _place(model, state, time, report)
        blocked = time < limit
        stride = state.proxy[0].stride
        state.proxy[0].stride = max(0.5 * stride, LEAST_STRIDE) if blocked else min(2.0 * stride, 1.0)
        report.fraction = time / limit
        if blocked or yields or limit == 1.0:
            break
        if report.passes_used == passes:
            report.degraded |= DEGRADED_PASSES
            break
        limit = _ask(model, state)
        units = _find(model, state, units)
    if model.world[0].turning > 0.0:
        _remember_slip(state, report)
    report.units_used = max(budget.units, 0) - units


@njit(cache=True, nogil=True, error_model="numpy")
def _stand(model: tuple, state: tuple) -> None:
    """Bodies do not move in this step."""
    for body_id in range(len(model.bodies)):
        body = state.poses[body_id]
        still(state.motions[body_id], vector(body.position), quaternion(body.orientation))


@njit(cache=True, nogil=True, error_model="numpy")
def _ask(model: tuple, state: tuple) -> float:
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
    between(state.motions[len(model.bodies)], SCREW, position, turn, goal, goal_turn, position)
    between(scratch.relative.second, SCREW, position, turn, goal, goal_turn, position)
    query = scratch.query
    query.separation = model.world[0].eps_alert
    query.position_tolerance = POSITION_TOLERANCE * query.separation
    query.time_tolerance = TIME_TOLERANCE
    query.flags = QUERY_OWNED
    return _share(model, state)


@njit(cache=True, nogil=True, error_model="numpy")
def _share(model: tuple, state: tuple) -> float:
    """The share of the tool's motion that is one stride long, 1 at most."""
    tool = state.motions[len(model.bodies)]
    root = model.nodes[model.meshes[model.world[0].tool_mesh_id].node_first]
    path = path_bound(tool, vector(root.centre), root.radius, 0.0, 1.0)
    stride = STRIDE * state.proxy[0].stride * model.world[0].eps_break
    return 1.0 if path <= stride else stride / path


@njit(cache=True, nogil=True, error_model="numpy")
def _look(model: tuple, state: tuple, units: int, report: np.void) -> int:
    """Find the neighbours of the tool and of its way, and the contacts where it is: units left."""
    units = _find(model, state, units)
    listing = min(max(int(LISTING * units), LEAST_LISTING), units // 2)
    units -= listing
    units += _list_near(model, state, listing)
    update_contacts(model, state, report)
    return units


@njit(cache=True, nogil=True, error_model="numpy")
def _find(model: tuple, state: tuple, units: int) -> int:
    """Find the bodies that the tool may come within eps_break of on its way: units left."""
    find_pairs(state.broad, state.motions, model.world[0].eps_break, units)
    return units - state.broad.report[0].units_used


@njit(cache=True, nogil=True, error_model="numpy")
def _yield(model: tuple, state: tuple, sweeps: int, report: np.void) -> None:
    """Put the motion that the contacts leave of the wanted one in its place, one stride of it."""
    scratch = state.scratch[0]
    tool = state.motions[len(model.bodies)]
    position = vector(state.proxy[0].position)
    orientation = quaternion(state.proxy[0].orientation)
    wanted = scaled(vector(tool.axis), tool.angle)
    shift, turn = yield_to_contacts(model, state, vector(tool.shift), wanted, sweeps, report)
    from_twist(tool, SCREW, position, orientation, shift, turn, position)
    share = _share(model, state)
    shift, turn = opening(model, state, scaled(shift, share), scaled(turn, share), report)
    root = model.nodes[model.meshes[model.world[0].tool_mesh_id].node_first]
    reach = length(vector(root.centre)) + root.radius
    if length(shift) + reach * length(turn) <= STANDSTILL * model.world[0].eps_alert:
        shift = turn = (0.0, 0.0, 0.0)
    from_twist(tool, SCREW, position, orientation, shift, turn, position)
    from_twist(scratch.relative.second, SCREW, position, orientation, shift, turn, position)


@njit(cache=True, nogil=True, error_model="numpy")
def _remember_slip(state: tuple, report: np.void) -> None:
    """Count the ticks for which the contacts of each body still have kinetic friction."""
    proxy = state.proxy[0]
    for k in range(64):
        if proxy.sliding[k] != 0:
            proxy.sliding[k] -= 1
    for i in range(report.contact_count):
        contact = report.contacts[i]
        if contact.sliding != 0:
            proxy.sliding[contact.body_id % 64] = RESTICK_TICKS


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(model: tuple, state: tuple, limit: float, units: int, report: np.void) -> tuple[float, int]:
    """Ask of each neighbour how far the motion is free: (time <= limit proven free of all bodies, units left).

    A body that the broad phase finds out of reach only counts the path of the tool in its front.
    """
    scratch = state.scratch[0]
    query = scratch.query
    hit = scratch.hit
    n = len(model.bodies)
    broad = state.broad
    time = limit
    if broad.bodies[n].blocked != 0:
        report.degraded |= DEGRADED_SWEEP
        time = 0.0
    row = 0
    for body_id in range(n):
        front = state.fronts[body_id]
        if row == broad.report[0].pair_count or broad.pairs[row, 0] != body_id:
            _pass_by(front, model.nodes[front.second_root], state.motions[n])
            continue
        row += 1
        body = state.poses[body_id]
        still(scratch.relative.first, vector(body.position), quaternion(body.orientation))
        query.limit = time
        query.units = units
        # fmt: off
        coherent_contact(
            model.nodes, model.triangles, scratch.relative, query, front, state.front_entries[body_id],
            state.query_work[0], scratch.counters, hit,
        )
        # fmt: on
        units = max(units - hit.units_used, 0)
        if hit.truncated != 0:
            report.degraded |= DEGRADED_SWEEP
        time = min(time, hit.time)
    report.passes_used += 1
    return time, units


@njit(cache=True, nogil=True, error_model="numpy")
def _list_near(model: tuple, state: tuple, units: int) -> int:
    """List the features of bodies and tool within eps_break of one another, where the tool is now: units left.

    Goes on with the body and in its front where the last step ran out of units. Where this step does so too, the list
    is marked as incomplete, and what is known from before is looked at again.
    """
    broad = state.broad
    memory = state.contact_memory[0]
    work = state.query_work[0]
    work.proximities.count = 0
    work.proximities.incomplete = broad.bodies[len(model.bodies)].blocked
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
        listed = work.proximities.count
        front = state.fronts[body_id]
        _place_at_start(model, state, body_id)
        # fmt: off
        left, complete = list_near(
            model.nodes, model.triangles, front, state.front_entries[body_id], work.start, model.world[0].eps_break,
            state.scratch[0].counters, work.proximities, left,
        )
        # fmt: on
        for i in range(listed, work.proximities.count):
            work.proximities.rows[i].body_id = body_id
        if not complete:
            work.proximities.incomplete = 1
            memory.turn = body_id
            break
    if work.proximities.incomplete != 0:
        _list_known(model, state)
    return max(left, 0)


@njit(cache=True, nogil=True, error_model="numpy")
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
        _place_at_start(model, state, key.body_id)
        # fmt: off
        list_again(
            model.triangles, first, second, work.start, model.world[0].eps_break, state.scratch[0].counters,
            work.proximities,
        )
        # fmt: on
        for i in range(listed, work.proximities.count):
            work.proximities.rows[i].body_id = key.body_id


@njit(cache=True, nogil=True, error_model="numpy")
def _place_at_start(model: tuple, state: tuple, body_id: int) -> None:
    """Write down where the tool is in the frame of a body before it moves, for box tests at that pose."""
    relative = state.scratch[0].relative
    body = state.poses[body_id]
    still(relative.first, vector(body.position), quaternion(body.orientation))
    root = model.nodes[state.fronts[body_id].second_root]
    place_pair(relative, vector(root.centre), root.radius, 0.0, 0.0, state.query_work[0].start)


@njit(cache=True, nogil=True, error_model="numpy")
def _pass_by(front: np.void, root: np.void, motion: np.void) -> None:
    """Count the path of a step in the front of a body that is out of reach."""
    centre = vector(root.centre)
    front.travelled += front.ahead
    front.speed = path_bound(motion, centre, root.radius, 0.0, 1.0) * (1.0 + ROUNDING)
    size = root.radius + length(centre) + length(vector(motion.position)) + length(vector(motion.shift))
    front.drift = DRIFT * size
    front.ahead = front.speed + front.drift


@njit(cache=True, nogil=True, error_model="numpy")
def _place(model: tuple, state: tuple, time: float, report: np.void) -> None:
    """Put the tool where its motion is at that time, and tell the fronts how far it came."""
    proxy = state.proxy[0]
    n = len(model.bodies)
    for body_id in range(n):
        move_front(state.fronts[body_id], time)
    if time > 0.0:
        position, orientation = pose(state.motions[n], time)
        put_vector(proxy.position, position)
        put_quaternion(proxy.orientation, normalise(orientation))
        put_vector(report.path[report.path_count], position)
        report.path_count += 1
