"""Where a tool that the hand holds by springs comes to rest among its contacts (the first-order world).

The tool has no mass. A spring pulls its tip centre to the goal and another one turns it, k_t and k_r; the tool goes
where both and what the contacts push balance. That is the motion nearest to the wanted one in the norm of the springs,
Gauss' principle with stiffness for inertia, so that the solvers of rtcore.solvers apply: a mover of inertia 1 and k_r /
k_t, whose "impulses" are displacements in metres (times k_t they are forces). Friction holds what happens within one
step: where the whole pull lies in the friction cones nothing moves, however long that goes on.

Contacts that are nearer than eps_safety are not opened by the springs' solve, which would turn a distance into a force,
but by a second one without springs or friction, a bounded share of the way per step (the position pass).
Source: Redon 2002, 3.5 and 3.6 (motion space, worlds of first order, keep-away distances); Faure 1997, 6.1.3.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from rtcore.solvers.gauss_seidel import solve_nncg
from rtcore.solvers.problem import ContactProblem, apply_impulses, assemble, free_velocity
from rtcore.spatial import Vector, add, cross, dot, length, put_vector, scaled, subtract, tangents, vector
from rtcore.tables import DEADBAND, DEGRADED_SOLVER

TOLERANCE = 1e-8
"""Natural-map residual at which the solve ends."""
OPENING = 0.2
"""Share of what is missing to eps_safety by which a step opens a contact."""
OPENING_SWEEPS = 8
"""Sweeps of the position pass."""
YIELDING = 0.05
"""Compliance of contacts in the position pass by the mobility of the tool at each: opposite ones may want too much."""
UNSURE = 100.0
"""Times what the solve left undone, m, by which a contact must move to count as sliding."""
SQUEEZE = 4.0
"""Most that a contact pushes in a warm start, by the largest free motion at any."""
SLIP = 1e-6
"""Share of eps_alert by which a contact must move along its surface in one step to count as sliding."""


@njit(cache=True, nogil=True, error_model="numpy")
def _row(jacobian: np.ndarray, k: int, axis: Vector, arm: Vector) -> None:
    torque = cross(arm, axis)
    for m in range(3):
        jacobian[k, m] = axis[m]
        jacobian[k, 3 + m] = torque[m]


@njit(cache=True, nogil=True, error_model="numpy")
def _write(model: tuple, state: tuple, problem: ContactProblem, report: np.void) -> None:
    """Write one equation per contact of the report, with what it pushed in the last step as warm start."""
    proxy = state.proxy[0]
    memory = state.contact_memory[0]
    safety = model.world[0].eps_safety
    origin = vector(proxy.position)
    problem.size[0].movers = 1
    problem.size[0].contacts = report.contact_count
    for i in range(report.contact_count):
        contact = report.contacts[i]
        equation = problem.equations[i]
        normal = vector(contact.normal)
        one, two = tangents(normal)
        arm = subtract(add(vector(contact.point), scaled(normal, contact.gap)), origin)  # to the tool's own point
        _row(equation.jacobian_first, 0, normal, arm)
        _row(equation.jacobian_first, 1, one, arm)
        _row(equation.jacobian_first, 2, two, arm)
        put_vector(equation.free, (max(contact.gap - safety, 0.0), 0.0, 0.0))
        put_vector(equation.compliance, (0.0, 0.0, 0.0))
        body = model.bodies[contact.body_id]
        slips = proxy.sliding[contact.body_id % 64] != 0
        equation.friction = body.friction_kinetic if slips else body.friction_static
        equation.first = 0
        equation.second = -1
        push = vector(memory.rows[i].push)
        put_vector(equation.impulse, (dot(push, normal), dot(push, one), dot(push, two)))


@njit(cache=True, nogil=True, error_model="numpy")
def _set_mover(model: tuple, mover: Any, shift: Vector, turn: Vector) -> None:
    mover.inverse_mass = 1.0
    for k in range(3):
        mover.velocity[k] = shift[k]
        mover.velocity[3 + k] = turn[k]
        for m in range(3):
            mover.inverse_inertia[k, m] = 1.0 / model.world[0].turning if k == m else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def yield_to_contacts(
    model: tuple, state: tuple, shift: Vector, turn: Vector, sweeps: int, report: np.void
) -> tuple[Vector, Vector]:
    """The motion (shift m of the tip centre, rotation vector rad, scene) of the tool that the hand pulls to its goal.

    model: Model; state: State with the tool where the contacts of the STEP_REPORT record were found; shift, turn: the
    whole way to the goal; sweeps: of the solver at most. What each contact pushes goes into the report (displacement,
    sliding) and into the memory of contacts.
    """
    problem = state.problem
    settings = state.solver_settings[0]
    result = state.solver_reports[0]
    _write(model, state, problem, report)
    _set_mover(model, problem.movers[0], shift, turn)
    assemble(problem)
    free_velocity(problem)
    _tame(problem)
    settings.tolerance = TOLERANCE
    settings.sweeps = max(sweeps, 1)
    solve_nncg(problem, 0, report.contact_count, settings, state.solver_work, result)
    report.sweeps_used += result.sweeps_used
    report.residual = result.residual * _largest_free(problem)
    if result.converged == 0:
        report.degraded |= DEGRADED_SOLVER
    apply_impulses(problem, 0, report.contact_count)
    velocity = problem.movers[0].velocity
    shift = (velocity[0], velocity[1], velocity[2])
    turn = (velocity[3], velocity[4], velocity[5])
    _note(model, state, problem, report)
    return shift, turn


@njit(cache=True, nogil=True, error_model="numpy")
def _tame(problem: ContactProblem) -> None:
    """Shrink a warm start that is out of proportion to the pull.

    Contacts that wedge the tool by friction may squeeze it by any amount without moving it; from step to step that
    would grow, and drown what the residual is measured by.
    """
    largest = 0.0
    for i in range(problem.size[0].contacts):
        largest = max(largest, length(vector(problem.equations[i].impulse)))
    most = SQUEEZE * _largest_free(problem)
    if largest > most:
        for i in range(problem.size[0].contacts):
            equation = problem.equations[i]
            put_vector(equation.impulse, scaled(vector(equation.impulse), most / largest))


@njit(cache=True, nogil=True, error_model="numpy")
def _largest_free(problem: ContactProblem) -> float:
    largest = 0.0
    for i in range(problem.size[0].contacts):
        largest = max(largest, length(vector(problem.equations[i].free)))
    return largest


@njit(cache=True, nogil=True, error_model="numpy")
def _note(model: tuple, state: tuple, problem: ContactProblem, report: np.void) -> None:
    """Write what each contact pushes, m of the spring, and whether it slides."""
    memory = state.contact_memory[0]
    slip = max(SLIP * model.world[0].eps_alert, UNSURE * report.residual)
    for i in range(report.contact_count):
        equation = problem.equations[i]
        contact = report.contacts[i]
        r = equation.impulse
        u = equation.velocity
        normal = vector(contact.normal)
        one, two = tangents(normal)
        push = add(scaled(normal, r[0]), add(scaled(one, r[1]), scaled(two, r[2])))
        put_vector(contact.displacement, push)
        put_vector(memory.rows[i].push, push)
        contact.sliding = 1 if r[0] > 0.0 and math.hypot(u[1], u[2]) > slip else 0


@njit(cache=True, nogil=True, error_model="numpy")
def opening(model: tuple, state: tuple, shift: Vector, turn: Vector, report: np.void) -> tuple[Vector, Vector]:
    """The motion with what opens contacts nearer than eps_safety added to it (the position pass).

    Arguments as of yield_to_contacts, whose problem must still be there; shift, turn: the motion of this step so far.
    The addition is the least one, in the norm of the springs, that opens them by their share and closes no other one.
    """
    safety = model.world[0].eps_safety
    problem = state.problem
    count = report.contact_count
    missing = 0.0
    for i in range(count):
        contact = report.contacts[i]
        equation = problem.equations[i]
        lacks = safety - contact.gap
        if lacks <= DEADBAND * safety:
            lacks = min(lacks, 0.0)
        missing = max(missing, lacks)
        put_vector(equation.free, (-OPENING * lacks if lacks > 0.0 else -lacks, 0.0, 0.0))
        put_vector(equation.impulse, (0.0, 0.0, 0.0))
        equation.friction = 0.0
        own = problem.blocks[equation.diagonal].values
        for k in range(3):
            equation.compliance[k] = YIELDING * own[k, k]
    if missing <= 0.0:
        return shift, turn
    _set_mover(model, problem.movers[0], shift, turn)
    assemble(problem)
    free_velocity(problem)
    settings = state.solver_settings[0]
    settings.tolerance = TOLERANCE
    settings.sweeps = OPENING_SWEEPS
    solve_nncg(problem, 0, count, settings, state.solver_work, state.solver_reports[0])
    apply_impulses(problem, 0, count)
    velocity = problem.movers[0].velocity
    return (velocity[0], velocity[1], velocity[2]), (velocity[3], velocity[4], velocity[5])
