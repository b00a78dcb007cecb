"""What contacts make of the velocities of a step: one solve per island, and impacts.

1. Each island is solved at the level of velocities (Coulomb's law, see rtcore.solvers), warm-started by what its
   contacts pushed in the last step.
2. Where bodies come together fast enough to bounce it is solved again for the rebound, and the rebound cut so that no
   energy comes of it (rtcore.dynamics.restitution). Springs of a hand make no energy ledger; its tool does not bounce.

Source: Redon 2002, 3.5 and 3.6 (Gauss' principle, keep-away distances); Faure 1997, 6.1.3 and 6.1.4.
"""

import math
from typing import Any

from rtcore.dynamics.contact_rows import (
    ITERATION,
    collect_contacts,
    is_tool_alone,
    most_sweeps,
    newton_iterations,
    normal_of,
    rows_of_island,
    write_equations,
    yields,
)
from rtcore.dynamics.flight import fall, fly_on, load_impacts
from rtcore.dynamics.held_tool import load_tool, store_tool
from rtcore.dynamics.restitution import limit_gain, limit_rebound, want_rebound
from rtcore.dynamics.rigid_body import load_mover, set_velocity, store_mover
from rtcore.dynamics.sleep import QUIET, find_sleepers
from rtcore.kernels import inlined, inner
from rtcore.solvers import newton
from rtcore.solvers.gauss_seidel import solve_nncg
from rtcore.solvers.problem import (
    ContactProblem,
    apply_impulses,
    assemble,
    free_velocity,
    lever_square,
    relative_velocity,
)
from rtcore.spatial import Vector, add, length, put_vector, scaled, tangents, vector
from rtcore.tables import DEGRADED_CONTACTS, DEGRADED_SOLVER, FREE, RESTICK_TICKS

TOLERANCE = 1e-8
"""Natural-map residual at which the solve ends..."""
FINE = 1e-11
"""... and where several bodies hang together: it is relative to the largest impulses, which are those of the heavy."""
UNSURE = 100.0
"""Times what the solve left undone by which a contact must move to count as sliding."""
QUICK = 30
"""Sweeps after which an island of one body is left to Newton's method."""
SQUEEZE = 4.0
"""Most that a contact of the tool pushes in a warm start, by what the largest free motion at any would be in a pull."""
REST = 1e-5
"""Share of eps_alert by which a body that contacts hold may move in a step and is at rest, to the bit."""
NOTHING = (0.0, 0.0, 0.0)
SLIP = 1e-6
"""Share of eps_alert by which a contact must move along its surface in one step to count as sliding."""


@inner
def constrain(model: tuple, state: tuple, wanted: Any, budget: Any, report: Any) -> None:
    """Solve what contacts make of the free motion; movers then hold the velocities, velocities of bodies are kept.

    model: Model; state: State, its movers loaded with the velocities that there would be without contacts, contacts up
    to date; wanted: STEP_INPUT; budget: BUDGET; report: STEP_REPORT. What each contact pushes goes into the report and
    into the memories of contacts.
    """
    for body_id in range(len(state.pairs.carried)):
        state.pairs.carried[body_id] = 0
    find_sleepers(model, state, report)
    collect_contacts(model, state, wanted, report)
    write_equations(model, state, report)
    load_impacts(model, state, report)
    problem = state.problem
    assemble(problem)
    if problem.size[0].incomplete != 0:
        report.degraded |= DEGRADED_CONTACTS
    free_velocity(problem)
    count = int(problem.size[0].contacts)
    sweeps = most_sweeps(budget, count)
    iterations = newton_iterations(budget, count)
    held = max(budget.sweeps, 1)
    for island in range(report.islands):
        first, last = rows_of_island(state.pairs.bounds, count, island)
        if first < last:
            _solve(model, state, wanted, first, last, sweeps, iterations, held, report)
    _store(model, state)


@inner
def load_movers(model: tuple, state: tuple, wanted: Any, shift: Vector, turn: Vector) -> None:
    """Write all bodies that move, and the tool, to the movers of the contact problem.

    shift (m), turn (rotation vector, rad): the whole way of the tool to its goal.
    """
    tool = len(model.bodies)
    world = model.world[0]
    movers = state.pairs.movers
    for body_id in range(tool):
        if movers[body_id] < 0:
            continue
        mover = state.problem.movers[movers[body_id]]
        if model.bodies[body_id].kind == FREE:
            load_mover(mover, state.velocities[body_id], state.poses[body_id], model.inertias[body_id], world.dt)
        else:
            _push_along(mover, state.velocities[body_id])
    mover = state.problem.movers[movers[tool]]
    orientation = state.proxy[0].orientation
    load_tool(mover, state.velocities[tool], world, model.inertias[tool], orientation, wanted, shift, turn)


@inner
def _push_along(mover: Any, velocity: Any) -> None:
    """A mover that nothing stops."""
    put_vector(mover.velocity[:3], vector(velocity.linear))
    put_vector(mover.velocity[3:], vector(velocity.angular))
    mover.inverse_mass = 0.0
    for i in range(3):
        for j in range(3):
            mover.inverse_inertia[i, j] = 0.0


@inlined
def _solve(
    model: tuple, state: tuple, wanted: Any, first: int, last: int, sweeps: int, iterations: int, held: int, report: Any
) -> None:
    """Solve the island of the contacts first .. last - 1, and apply its impulses to the movers."""
    pairs = state.pairs
    problem = state.problem
    result = state.solver_reports[0]
    _tame(problem, pairs, wanted, model.world[0].dt, first, last)
    _drop_vain_start(problem, first, last)
    _iterate(model, state, wanted, first, last, sweeps, iterations, held, report)
    left = result.residual
    undone = result.converged == 0
    if _bounces(pairs, first, last):
        want_rebound(problem, pairs.impacts, first, last)
        _iterate(model, state, wanted, first, last, sweeps, iterations, held, report)
        limit_rebound(problem, pairs.impacts, first, last)
        left = max(left, result.residual)
        undone |= result.converged == 0
    elif _limit(model, state, first, last) < 1.0:
        undone = True
    if undone:
        report.degraded |= DEGRADED_SOLVER
    apply_impulses(problem, first, last)
    _keep_residual(state, first, last, left, undone)
    residual = left * _largest_free(problem, first, last) * model.world[0].dt
    if _note(model, state, wanted, first, last, residual, report):
        report.residual = residual
    report.body_residual = max(report.body_residual, left)


@inner
def _keep_residual(state: tuple, first: int, last: int, residual: float, undone: bool) -> None:
    """Write down how well the bodies of an island are held; what is not solved does not fall asleep."""
    for i in range(first, last):
        place = state.pairs.places[1, i]
        for side in range(2):
            velocity = state.velocities[place.first if side == 0 else place.second]
            velocity.residual = residual
            if undone:
                velocity.quiet = 0


@inlined
def _iterate(
    model: tuple, state: tuple, wanted: Any, first: int, last: int, sweeps: int, iterations: int, held: int, report: Any
) -> None:
    """Solve an island from the impulses that it holds: the tool alone, or a body alone, by sweeps; others by Newton.

    With too few iterations for Newton's method all are solved by sweeps, which come nearer from step to step. They
    carry a load through a stack by a body each, where Newton's method needs an iteration for what rests. The tool among
    what does not move may be wedged by friction: NNCG's sweeps then end, and do not squeeze without bound.
    """
    problem = state.problem
    settings = state.solver_settings[0]
    result = state.solver_reports[0]
    alone = is_tool_alone(model, state, first, last)
    if alone or iterations == 0 or not _joins_bodies(model, state.pairs, wanted, first, last):
        settings.tolerance = TOLERANCE if alone else FINE
        settings.sweeps = min(sweeps, held) if alone else (min(sweeps, QUICK) if iterations > 0 else sweeps)
        solve_nncg(problem, first, last, settings, state.solver_work, result)
        report.sweeps_used += result.sweeps_used
        if alone or iterations == 0 or result.converged != 0:
            return
        _drop_vain_start(problem, first, last)
    settings.tolerance = FINE
    settings.sweeps = iterations
    newton.solve(problem, first, last, settings, state.newton_work, result)
    report.sweeps_used += ITERATION * result.sweeps_used


@inner
def _joins_bodies(model: tuple, pairs: tuple, wanted: Any, first: int, last: int) -> bool:
    """Does any of the contacts first .. last - 1 move both of its bodies?"""
    for i in range(first, last):
        place = pairs.places[1, i]
        if yields(model, wanted, place.first) and yields(model, wanted, place.second):
            return True
    return False


@inner
def _bounces(pairs: tuple, first: int, last: int) -> bool:
    wanted = 0.0
    for i in range(first, last):
        wanted = max(wanted, pairs.impacts[i].wanted)
    return wanted > 0.0


@inner
def _tame(problem: ContactProblem, pairs: tuple, wanted: Any, dt: float, first: int, last: int) -> None:
    """Shrink a warm start of the tool's contacts that is out of proportion to the pull.

    Contacts that wedge the tool by friction may squeeze it by any amount without moving it; from step to step that
    would grow, and drown what the residual is measured by.
    """
    largest = 0.0
    for i in range(first, last):
        place = pairs.places[1, i]
        if place.pair < 0 and place.moments == 0:
            largest = max(largest, length(vector(problem.equations[i].impulse)))
    most = SQUEEZE * _largest_free(problem, first, last) * wanted.stiffness * dt * dt
    if largest > most:
        for i in range(first, last):
            if pairs.places[1, i].pair < 0:
                equation = problem.equations[i]
                put_vector(equation.impulse, scaled(vector(equation.impulse), most / largest))


@inner
def _drop_vain_start(problem: ContactProblem, first: int, last: int) -> None:
    """Begin from nothing where the warm start would add energy: it is what stopped something in the last step."""
    relative_velocity(problem, first, last)
    gain = 0.0
    for i in range(first, last):
        equation = problem.equations[i]
        for k in range(3):
            gain += equation.impulse[k] * (equation.velocity[k] + equation.free[k])
    # Written so that what is no number is dropped as well.
    if not gain <= 0.0:
        for i in range(first, last):
            put_vector(problem.equations[i].impulse, (0.0, 0.0, 0.0))


@inner
def _limit(model: tuple, state: tuple, first: int, last: int) -> float:
    """Keep the impulses of an island from adding energy to the velocities of the instant: the factor, 1 at best.

    They were solved for the mean velocities of the step, of which the energy is not that of the bodies.
    """
    _take_angular(model, state, first, last, 0)
    factor = limit_gain(state.problem, first, last)
    _take_angular(model, state, first, last, 1)
    return factor


@inner
def _take_angular(model: tuple, state: tuple, first: int, last: int, mean: int) -> None:
    """Give the movers of an island the angular velocities of the instant, or the mean ones they were loaded with."""
    for i in range(first, last):
        place = state.pairs.places[1, i]
        for side in range(2):
            body_id = place.first if side == 0 else place.second
            if body_id < len(model.bodies) and model.bodies[body_id].kind == FREE:
                velocity = state.velocities[body_id]
                mover = state.problem.movers[state.pairs.movers[body_id]]
                put_vector(mover.velocity[3:], vector(velocity.loaded) if mean != 0 else vector(velocity.angular))


@inner
def _largest_free(problem: ContactProblem, first: int, last: int) -> float:
    largest = 0.0
    for i in range(first, last):
        speed = length(vector(problem.equations[i].free))
        if problem.equations[i].parent >= 0:
            speed *= _lever(problem, i)
        largest = max(largest, speed)
    return largest


@inner
def _lever(problem: ContactProblem, i: int) -> float:
    """The length by which the moments of row i compare with forces, m."""
    equation = problem.equations[i]
    contact = problem.blocks[problem.equations[equation.parent].diagonal].values
    return math.sqrt(lever_square(contact, problem.blocks[equation.diagonal].values))


@inner
def _note(model: tuple, state: tuple, wanted: Any, first: int, last: int, residual: float, report: Any) -> bool:
    """Write what each contact pushes and whether it slides; True when the tool is in the island. residual: m."""
    pairs = state.pairs
    world = model.world[0]
    slip = max(SLIP * world.eps_alert, UNSURE * residual)
    flies = _flies(model, pairs, first, last)
    held = False
    for i in range(first, last):
        place = pairs.places[1, i]
        if place.moments != 0:
            _note_moments(state, i)
            continue
        equation = state.problem.equations[i]
        r = equation.impulse
        u = equation.velocity
        slides = r[0] > 0.0 and math.hypot(u[1], u[2]) * world.dt > slip
        if r[0] > 0.0 and not flies:
            pairs.carried[place.first] = pairs.carried[place.second] = 1
        normal = normal_of(equation)
        one, two = tangents(normal)
        push = add(scaled(normal, r[0]), add(scaled(one, r[1]), scaled(two, r[2])))
        if place.pair < 0:
            held = True
            key = state.contact_memory[0].rows[place.row]
            contact = report.contacts[place.row]
            put_vector(key.push, push)
            key.slipped = RESTICK_TICKS if slides else max(key.slipped - 1, 0)
            pull = wanted.stiffness * world.dt
            put_vector(contact.displacement, scaled(push, 1.0 / pull if pull > 0.0 else 0.0))
            contact.sliding = 1 if slides else 0
        else:
            touch = pairs.rows[place.pair].contacts[place.row]
            put_vector(touch.push, push)
            touch.slipped = RESTICK_TICKS if slides else max(touch.slipped - 1, 0)
            report.body_contacts += 1
            report.body_gap = touch.gap if report.body_gap < 0.0 else min(report.body_gap, touch.gap)
    return held


@inner
def _flies(model: tuple, pairs: tuple, first: int, last: int) -> bool:
    """Do bodies of an island push one another alone, in the air, so that what they are pushed by falls as they do?"""
    for i in range(first, last):
        place = pairs.places[1, i]
        for side in range(2):
            body_id = place.first if side == 0 else place.second
            if body_id == len(model.bodies) or model.bodies[body_id].kind != FREE:
                return False
    return True


@inner
def _note_moments(state: tuple, i: int) -> None:
    """Remember the friction moment that row i holds, scene, N m s."""
    place = state.pairs.places[1, i]
    r = state.problem.equations[i].impulse
    normal = normal_of(state.problem.equations[i - 1])
    one, two = tangents(normal)
    moment = add(scaled(normal, r[0]), add(scaled(one, r[1]), scaled(two, r[2])))
    if place.pair < 0:
        put_vector(state.contact_memory[0].rows[place.row].moment, moment)
    else:
        put_vector(state.pairs.rows[place.pair].contacts[place.row].moment, moment)


@inner
def _rests(model: tuple, mover: Any, body_id: int) -> bool:
    """Does a body that contacts hold move by less in a step than they can be told to hold it?"""
    world = model.world[0]
    body = model.bodies[body_id]
    reach = model.nodes[model.meshes[body.mesh_id].node_first].radius + body.rounding
    speed = length(vector(mover.velocity[:3])) + 2.0 * reach * length(vector(mover.velocity[3:]))
    return speed * world.dt <= REST * world.eps_alert


@inlined
def _store(model: tuple, state: tuple) -> None:
    """Give the bodies what their movers received."""
    tool = len(model.bodies)
    movers = state.pairs.movers
    for body_id in range(tool):
        if movers[body_id] >= 0 and model.bodies[body_id].kind == FREE and state.pairs.asleep[body_id] == 0:
            mover = state.problem.movers[movers[body_id]]
            velocity = state.velocities[body_id]
            store_mover(velocity, mover, state.poses[body_id], model.inertias[body_id])
            if state.pairs.struck[body_id] <= 1.0:
                fly_on(model, state, body_id)
            elif state.pairs.carried[body_id] == 0:
                fall(model, state, body_id)
            elif _rests(model, mover, body_id):
                set_velocity(velocity, state.poses[body_id], model.inertias[body_id], NOTHING, NOTHING)
                put_vector(mover.velocity[:3], NOTHING)
                put_vector(mover.velocity[3:], NOTHING)
                velocity.quiet = min(velocity.quiet + 1, QUIET)
    store_tool(state.velocities[tool], state.proxy[0], model.inertias[tool], state.problem.movers[movers[tool]])
