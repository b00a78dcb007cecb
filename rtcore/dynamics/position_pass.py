"""The position pass: motions of a step are changed so that contacts keep eps_safety, velocities stay as they are.

Contacts that are nearer than eps_safety are not opened by the solve of velocities, which would turn a distance into a
force, but here: without friction, by a bounded share of the way per step, by the least change of the motions in the
kinetic norm that closes no other contact.

The pass looks at the very screws that bodies will follow. Their velocity at the start is not that of the solve where
they turn: a screw bends the way of what it turns, and a normal turns with its face or its edges. To second order the
gap of a contact goes as g(u) = g0 + r u + c u^2, from where it is now, the rate at the start and where it ends.
Wanted are an end at g0 plus its share of what is missing, and no dip on the way below g0, or below half way between
eps_alert and eps_safety: what dips there, however shortly, would be stopped at once and for ever.

Source: Redon 2002, 3.6 (keep-away distances); Faure 1997, 6.1.3; the second-order test is own work.
"""

import math
from typing import Any

from rtcore import motion as screws
from rtcore.collision.features import FACE
from rtcore.collision.pair_slots import rounding_of
from rtcore.dynamics.contact_rows import gap_of, is_tool_alone, newton_iterations, rows_of_island
from rtcore.kernels import inlined, inner
from rtcore.solvers import newton
from rtcore.solvers.gauss_seidel import solve_nncg
from rtcore.solvers.problem import apply_impulses
from rtcore.spatial import (
    Quaternion,
    Vector,
    add,
    cross,
    dot,
    from_rotation_vector,
    length,
    put_vector,
    quaternion,
    rotate,
    scaled,
    subtract,
    vector,
)
from rtcore.tables import DEADBAND

TOLERANCE = 1e-8
"""Natural-map residual at which the pass ends."""
OPENING = 0.2
"""Share of what is missing to eps_safety by which a step opens a contact."""
SWEEPS = 8
"""Of the pass for a tool alone."""
ITERATIONS = 12
"""Of Newton's method in the pass, at most."""
GOOD = 1e-3
"""Natural-map residual above which the pass is left out: what opens some contacts might close others."""
YIELDING = 0.05
"""Compliance of what lacks something, by the mobility of the bodies there: opposite contacts may want too much. What
lacks nothing yields nothing."""


@inlined
def open_contacts(model: tuple, state: tuple, budget: Any, report: Any) -> bool:
    """Add to the velocities of the movers what the motions of this step lack, and say whether anything was added.

    model: Model; state: State with the contact problem of this step solved and the motions that follow from it; budget:
    BUDGET: bodies whose contacts it does not suffice for stay as near as they are; report: STEP_REPORT. The movers then
    hold the velocities of the motions, bodies keep their own.
    """
    count = int(state.problem.size[0].contacts)
    iterations = min(newton_iterations(budget, count), ITERATIONS)
    opened = False
    for island in range(report.islands):
        first, last = rows_of_island(state.pairs.bounds, count, island)
        if first < last:
            opened |= _open_island(model, state, first, last, iterations, report)
    return opened


@inlined
def _open_island(model: tuple, state: tuple, first: int, last: int, iterations: int, report: Any) -> bool:
    world = model.world[0]
    problem = state.problem
    alone = is_tool_alone(model, state, first, last)
    missing = False
    for i in range(first, last):
        equation = problem.equations[i]
        if equation.parent >= 0:
            _drop_moments(equation)
            continue
        gap = gap_of(state, state.pairs.places[1, i], report)
        spare = _spare_of_tool(state, world, i, gap) if alone else _spare(model, state, i, report)
        lacks = world.eps_safety - gap if alone else -spare
        missing |= lacks > DEADBAND * world.eps_safety
        put_vector(equation.free, (max(spare, -world.eps_break) / world.dt, 0.0, 0.0))
    if not missing or (iterations == 0 and not alone):
        return False
    for i in range(first, last):
        equation = problem.equations[i]
        if equation.parent >= 0:
            continue
        put_vector(equation.impulse, (0.0, 0.0, 0.0))
        equation.friction = 0.0
        if alone or equation.free[0] < 0.0:
            own = problem.blocks[equation.diagonal].values
            for k in range(3):
                equation.compliance[k] = YIELDING * own[k, k]
                own[k, k] += equation.compliance[k]
    settings = state.solver_settings[0]
    result = state.solver_reports[0]
    settings.tolerance = TOLERANCE
    if alone:
        settings.sweeps = SWEEPS
        solve_nncg(problem, first, last, settings, state.solver_work, result)
    else:
        settings.sweeps = iterations
        newton.solve(problem, first, last, settings, state.newton_work, result)
        if result.residual > GOOD:
            return False
    apply_impulses(problem, first, last)
    for i in range(first, last):
        state.velocities[state.pairs.places[1, i].first].quiet = 0
        state.velocities[state.pairs.places[1, i].second].quiet = 0
    return True


@inner
def _drop_moments(equation: Any) -> None:
    """Let a row of moments do nothing."""
    put_vector(equation.free, (0.0, 0.0, 0.0))
    put_vector(equation.impulse, (0.0, 0.0, 0.0))
    equation.friction = equation.rolling = 0.0


@inner
def _spare_of_tool(state: tuple, world: Any, i: int, gap: float) -> float:
    """As `_spare`, to first order: of the tool alone a step is short, and what it dips it makes good in the next."""
    equation = state.problem.equations[i]
    velocity = state.problem.movers[equation.second].velocity
    speed = 0.0
    for m in range(6):
        speed += equation.jacobian_second[0, m] * velocity[m]
    return speed * world.dt + gap - _goal(world, gap)


@inner
def _goal(world: Any, gap: float) -> float:
    """Where a contact of that gap is to be at the end of the step, m."""
    if gap < (1.0 - DEADBAND) * world.eps_safety:
        return gap + OPENING * (world.eps_safety - gap)
    return min(gap, world.eps_safety)


@inner
def _spare(model: tuple, state: tuple, i: int, report: Any) -> float:
    """How much more contact i opens by the motions of this step than it must, m; below 0: how much it lacks."""
    world = model.world[0]
    gap = gap_of(state, state.pairs.places[1, i], report)
    rate, end = contact_path(model, state, i, report)
    return min(end - _goal(world, gap), _dip(world, gap, rate, end) - max(_goal(world, gap) - gap, 0.0))


@inner
def _dip(world: Any, gap: float, rate: float, end: float) -> float:
    """How much faster a contact opens at the start than it must not to dip too far on its way, m per unit of u.

    A way that just reaches the floor has its lowest point there at u = sqrt((gap - floor) / bend): from 1 on it is the
    end that counts.
    """
    bend = end - gap - rate
    floor = min(gap, 0.5 * (world.eps_alert + world.eps_safety))
    if bend <= max(gap - floor, 0.0):
        return math.inf
    return rate + 2.0 * math.sqrt(bend * (gap - floor))


@inner
def bend_ways(model: tuple, state: tuple, report: Any) -> bool:
    """Mark the bodies of contacts that dip as ones whose screw shall begin with their velocity: are there any?

    The solve keeps those velocities from closing what is near. Such a body ends a little beside its straight way. To be
    called before the pass, which then looks at the screws that are left.
    """
    world = model.world[0]
    bent = False
    for i in range(int(state.problem.size[0].contacts)):
        place = state.pairs.places[1, i]
        if place.moments != 0 or (place.pair < 0 and state.pairs.movers[place.first] < 0):
            continue
        gap = gap_of(state, place, report)
        rate, end = contact_path(model, state, i, report)
        if _dip(world, gap, rate, end) < -DEADBAND * world.eps_safety:
            state.pairs.bent[place.first] = 1
            state.pairs.bent[place.second] = 1
            bent = True
    return bent


@inner
def contact_path(model: tuple, state: tuple, i: int, report: Any) -> tuple[float, float]:
    """(rate at the start, m per unit of u, gap at the end, m) of contact i by the motions of this step."""
    pairs = state.pairs
    place = pairs.places[1, i]
    one = state.motions[place.first]
    two = state.motions[place.second]
    if one.kind == screws.STILL and two.kind == screws.STILL:
        return 0.0, gap_of(state, place, report)
    rounding = rounding_of(model, place.first, place.second)
    if place.pair < 0:
        contact = report.contacts[place.row]
        key = state.contact_memory[0].rows[place.row]
        normal = vector(contact.normal)
        p = subtract(vector(contact.point), scaled(normal, rounding))
        q = add(p, scaled(normal, contact.gap + rounding))
        n = _normal_at_end(model, one, two, normal, key)
    else:
        touch = pairs.rows[place.pair].contacts[place.row]
        normal = rotate(quaternion(one.orientation), vector(touch.normal))
        p = _begins(one, vector(touch.point_first))
        q = _begins(two, vector(touch.point_second))
        n = _normal_at_end(model, one, two, normal, touch)
    slow, _ = screws.velocity_field(one, 0.0, p)
    fast, _ = screws.velocity_field(two, 0.0, q)
    way = subtract(screws.point(two, 1.0, q), screws.point(one, 1.0, p))
    return dot(normal, subtract(fast, slow)), dot(n, way) - rounding


@inner
def _begins(motion: Any, point: Vector) -> Vector:
    """Where a point of a body (its frame, m) is at the start of its motion, scene, m."""
    return add(vector(motion.position), rotate(quaternion(motion.orientation), point))


@inner
def _turned(motion: Any) -> Quaternion:
    """The rotation of a whole MOTION."""
    return from_rotation_vector(scaled(vector(motion.axis), motion.angle))


@inner
def _edge(model: tuple, motion: Any, triangle: int, feature: int) -> Vector:
    """Along an edge where its body begins, scene, m."""
    corners = model.triangles[triangle].vertices
    k = feature - 3
    return rotate(quaternion(motion.orientation), subtract(vector(corners[(k + 1) % 3]), vector(corners[k])))


@inner
def _normal_at_end(model: tuple, one: Any, two: Any, normal: Vector, features: Any) -> Vector:
    """Where the normal of a contact points at the end of both motions: it turns with its face, or with its edges.

    features: CONTACT_KEY or BODY_CONTACT. Between other features it stays: their distance is not below what it sees.
    """
    if features.first_feature >= FACE:
        return rotate(_turned(one), normal)
    if features.second_feature >= FACE:
        return rotate(_turned(two), normal)
    if features.first_feature < 3 or features.second_feature < 3:
        return normal
    e = rotate(_turned(one), _edge(model, one, features.first_triangle, features.first_feature))
    f = rotate(_turned(two), _edge(model, two, features.second_triangle, features.second_feature))
    across = cross(e, f)
    size = length(across)
    if not size > 0.0:
        return normal
    return scaled(across, 1.0 / size if dot(across, normal) >= 0.0 else -1.0 / size)
