"""The contacts of a step as equations, island by island: those of the tool, and those of bodies with each other.

The relative velocity of a contact is that of the second body against the first along its normal, which points from the
first to the second. A contact may close by what its gap is above eps_safety within the step, and no faster.
"""

import math
from typing import Any

import numpy as np

from rtcore.dynamics.groups import group_of, join, separate
from rtcore.dynamics.held_tool import is_held
from rtcore.dynamics.rigid_body import centre_of_mass
from rtcore.kernels import inlined, inner, kernel
from rtcore.solvers.rolling import write_moments
from rtcore.spatial import (
    Vector,
    add,
    cross,
    dot,
    put_vector,
    quaternion,
    rotate,
    scaled,
    subtract,
    tangents,
    to_scene,
    vector,
)
from rtcore.tables import DEADBAND, DEGRADED_CONTACTS, FREE

ITERATION = 10
"""Sweeps that one iteration of Newton's method counts for."""
LEAST_ITERATIONS = 4
"""Iterations below which sweeps do more."""


@inner
def most_sweeps(budget: Any, contacts: int) -> int:
    """How often all contacts of a step may be visited by what a BUDGET has, once at least."""
    if budget.visits == 0:
        return max(budget.sweeps, 1)
    return max(budget.visits // max(contacts, 1), 1)


@inner
def newton_iterations(budget: Any, contacts: int) -> int:
    """How many iterations of Newton's method these are; 0 where they are too few for it to come to anything."""
    iterations = most_sweeps(budget, contacts) // ITERATION
    return iterations if iterations >= LEAST_ITERATIONS else 0


@kernel
def yields(model: tuple, wanted: Any, body_id: int) -> bool:
    """Do contacts move this body? The tool, whose number is that of bodies in all, if a hand holds it."""
    if body_id == len(model.bodies):
        return is_held(wanted)
    return model.bodies[body_id].kind == FREE


@inlined
def collect_contacts(model: tuple, state: tuple, wanted: Any, report: Any) -> None:
    """Write the places of all contacts that can move anything, and of their moments, by islands with their bounds.

    model: Model; state: State with contacts up to date; wanted: STEP_INPUT; report: STEP_REPORT with those of the tool.
    Islands come in the order of their smallest body, contacts within them as they were found: the tool's, then those
    of pairs. What there is no room for is left out and DEGRADED_CONTACTS set.
    """
    pairs = state.pairs
    tool = len(model.bodies)
    groups = pairs.groups
    separate(groups)
    found = pairs.places[0]
    count = 0
    for i in range(report.contact_count):
        count = _add(model, groups, wanted, found, count, -1, i, report.contacts[i].body_id, tool, report)
    for k in range(pairs.table[0].count):
        row = pairs.order[k]
        pair = pairs.rows[row]
        if pairs.asleep[pair.first] != 0 or pairs.asleep[pair.second] != 0:
            continue
        for i in range(pair.count):
            count = _add(model, groups, wanted, found, count, row, i, pair.first, pair.second, report)
    pairs.table[0].contacts = count
    report.islands = _sort_by_island(model, pairs, wanted, count)


@inner
def _add(
    model: tuple,
    groups: np.ndarray,
    wanted: Any,
    found: np.ndarray,
    count: int,
    pair: int,
    row: int,
    first: int,
    second: int,
    report: Any,
) -> int:
    """Note a contact down, with its moments if it has some, and join its bodies, if it moves any: rows so far."""
    one = yields(model, wanted, first)
    two = yields(model, wanted, second)
    if not one and not two:
        return count
    torsional, rolling = _resistance_of(model, first, second)
    rows = 2 if torsional + rolling > 0.0 else 1
    if count + rows > len(found):
        report.degraded |= DEGRADED_CONTACTS
        return count
    for k in range(rows):
        place = found[count + k]
        place.pair = pair
        place.row = row
        place.first = first
        place.second = second
        place.moments = k
    if one and two:
        join(groups, first, second)
    return count + rows


@inner
def _island_of(model: tuple, groups: np.ndarray, wanted: Any, place: Any) -> int:
    """The smallest body of the island that a CONTACT_PLACE belongs to."""
    return group_of(groups, place.first if yields(model, wanted, place.first) else place.second)


@inner
def _sort_by_island(model: tuple, pairs: tuple, wanted: Any, count: int) -> int:
    """Write the places found in the order of their islands, by counting; return how many islands there are."""
    starts = pairs.starts
    for i in range(len(starts)):
        starts[i] = 0
    for i in range(count):
        starts[_island_of(model, pairs.groups, wanted, pairs.places[0, i]) + 1] += 1
    islands = 0
    for i in range(1, len(starts)):
        if starts[i] > 0:
            pairs.bounds[islands] = starts[i - 1]
            islands += 1
        starts[i] += starts[i - 1]
    pairs.bounds[islands] = count
    for i in range(count):
        island = _island_of(model, pairs.groups, wanted, pairs.places[0, i])
        pairs.places[1, starts[island]] = pairs.places[0, i]
        starts[island] += 1
    return islands


@inner
def _centre(model: tuple, state: tuple, body_id: int) -> Vector:
    """What the velocity of a mover is that of: the centre of mass, of the tool the tip centre."""
    if body_id == len(model.bodies):
        return vector(state.proxy[0].position)
    return centre_of_mass(state.poses[body_id], model.inertias[body_id])


@inner
def _fill(jacobian: np.ndarray, sign: float, normal: Vector, one: Vector, two: Vector, arm: Vector) -> None:
    """Write the Jacobian (3, 6) of a body by whose motion a contact at the end of the arm opens (sign 1) or closes."""
    for k in range(3):
        axis = normal if k == 0 else (one if k == 1 else two)
        torque = cross(arm, axis)
        for m in range(3):
            jacobian[k, m] = sign * axis[m]
            jacobian[k, 3 + m] = sign * torque[m]


@inner
def friction_of(model: tuple, first: int, second: int, slips: bool) -> float:
    """Coefficient of two bodies: the geometric mean, as in Box2D and Jolt; against the tool that of the body."""
    one = model.bodies[first]
    mine = one.friction_kinetic if slips else one.friction_static
    if second == len(model.bodies):
        return mine
    two = model.bodies[second]
    return _mean(mine, two.friction_kinetic if slips else two.friction_static)


@inner
def _resistance_of(model: tuple, first: int, second: int) -> tuple[float, float]:
    """Coefficients of two bodies against spinning and rolling, m, as those of friction."""
    one = model.bodies[first]
    if second == len(model.bodies):
        return one.torsional, one.rolling
    two = model.bodies[second]
    return _mean(one.torsional, two.torsional), _mean(one.rolling, two.rolling)


@inner
def _mean(mine: float, other: float) -> float:
    return mine if mine == other else math.sqrt(mine * other)


@inlined
def write_equations(model: tuple, state: tuple, report: Any) -> None:
    """Write one equation per place, with what the contact pushed in the last step as warm start.

    model: Model; state: State, with the places of collect_contacts; report: STEP_REPORT. The free velocity of an
    equation is what a contact may close by; that of the movers is still to be added (see problem.free_velocity).
    """
    pairs = state.pairs
    problem = state.problem
    count = pairs.table[0].contacts
    problem.size[0].movers = len(problem.movers)
    problem.size[0].contacts = count
    movers = pairs.movers
    world = model.world[0]
    moments = False
    for i in range(count):
        place = pairs.places[1, i]
        if place.moments != 0:
            moments = True
            continue
        if place.pair < 0:
            contact = report.contacts[place.row]
            key = state.contact_memory[0].rows[place.row]
            normal = vector(contact.normal)
            point = vector(contact.point)
            gap = contact.gap
            push = vector(key.push)
            slips = key.slipped != 0
        else:
            touch = pairs.rows[place.pair].contacts[place.row]
            pose = state.poses[place.first]
            normal = rotate(quaternion(pose.orientation), vector(touch.normal))
            point = add(to_scene(pose, vector(touch.point_first)), scaled(normal, model.bodies[place.first].rounding))
            gap = touch.gap
            push = vector(touch.push)
            slips = touch.slipped != 0
        equation = problem.equations[i]
        one, two = tangents(normal)
        equation.parent = -1
        equation.first = movers[place.first]
        equation.second = movers[place.second]
        if equation.first >= 0:
            arm = subtract(point, _centre(model, state, place.first))
            _fill(equation.jacobian_first, -1.0, normal, one, two, arm)
        if equation.second >= 0:
            arm = subtract(add(point, scaled(normal, gap)), _centre(model, state, place.second))
            _fill(equation.jacobian_second, 1.0, normal, one, two, arm)
        # What rests is closed whatever rounding says: an open contact is one more for the solver to find.
        room = gap - world.eps_safety
        room = room if room > DEADBAND * world.eps_safety else 0.0
        put_vector(equation.free, (room / world.dt, 0.0, 0.0))
        put_vector(equation.compliance, (0.0, 0.0, 0.0))
        put_vector(equation.impulse, (dot(push, normal), dot(push, one), dot(push, two)))
        equation.friction = friction_of(model, place.first, place.second, slips)
    if moments:
        _write_moments(model, state)


@inner
def _write_moments(model: tuple, state: tuple) -> None:
    """Write the rows of moments behind the contacts that are written, as those of the last step."""
    problem = state.problem
    for i in range(state.pairs.table[0].contacts):
        place = state.pairs.places[1, i]
        if place.moments == 0:
            continue
        torsional, rolling = _resistance_of(model, place.first, place.second)
        write_moments(problem.equations, i - 1, torsional, rolling)
        if place.pair < 0:
            moment = vector(state.contact_memory[0].rows[place.row].moment)
        else:
            moment = vector(state.pairs.rows[place.pair].contacts[place.row].moment)
        normal = normal_of(problem.equations[i - 1])
        one, two = tangents(normal)
        put_vector(problem.equations[i].impulse, (dot(moment, normal), dot(moment, one), dot(moment, two)))


@inner
def rows_of_island(bounds: np.ndarray, count: int, island: int) -> tuple[int, int]:
    """(first row, last + 1) of an island, as the int64 that solvers are compiled for; count: of equations."""
    whole: Any = np.int64(count)
    return min(np.int64(bounds[island]), whole), min(np.int64(bounds[island + 1]), whole)


@inner
def normal_of(equation: Any) -> Vector:
    """The normal of a CONTACT_EQUATION from the first body to the second, unit, scene."""
    if equation.second < 0:
        return scaled(vector(equation.jacobian_first[0, :3]), -1.0)
    return vector(equation.jacobian_second[0, :3])


@inner
def gap_of(state: tuple, place: Any, report: Any) -> float:
    """The gap of a contact at the start of the step, m; place: CONTACT_PLACE."""
    if place.pair < 0:
        return report.contacts[place.row].gap
    return state.pairs.rows[place.pair].contacts[place.row].gap


@inner
def is_tool_alone(model: tuple, state: tuple, first: int, last: int) -> bool:
    """Is it only the tool that the contacts first .. last - 1 move, among what stands?"""
    for i in range(first, last):
        place = state.pairs.places[1, i]
        if place.pair >= 0 or state.pairs.movers[place.first] >= 0:
            return False
    return True
