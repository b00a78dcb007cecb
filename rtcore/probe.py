"""The point probe: a sphere tip that follows the hand by straight passes, sliding along what is in its way."""

import math

import numpy as np

from rtcore.collision.gather import copy_contact, gather, pushes, recall
from rtcore.collision.sweep import sweep
from rtcore.kernels import inner, kernel
from rtcore.solvers.point_contact import solve
from rtcore.spatial import put_quaternion, quaternion
from rtcore.tables import DEGRADED_PASSES, MAX_PATH, RESTICK_TICKS

STANDSTILL = 1e-4
"""Share of eps_alert below which a wanted motion is none: the tip then stays where it is, to the bit."""


@kernel
def follow(model: tuple, state: tuple, budget: np.void, report: np.void) -> None:
    """Move the tip towards its goal by straight passes, and report what pushes it where it stops.

    model: Model; state: State, with the goal in its scratch memory; budget: BUDGET and report: STEP_REPORT records.
    After each pass and on the straight ways between, every surface keeps at least eps_alert (1 - 1e-6) from the tip
    sphere if it did so before the step; one that was nearer comes no nearer. A sphere turns freely.
    Source: god-object with swept motion (Zilles and Salisbury 1995; Ortega, Redon and Coquillart 2007).
    """
    _begin(state)
    passes = min(max(budget.passes, 0), MAX_PATH - 1)
    sweeps = max(budget.sweeps, 1)
    units = max(budget.units, 0)
    while True:
        units = _look(model, state, units, report)
        slips = _solve(model, state, sweeps, report)
        if _stands(model, state):
            break
        if report.passes_used == passes:
            report.degraded |= DEGRADED_PASSES
            break
        units, moved = _advance(model, state, slips, units, report)
        if not moved:
            break
    _finish(state, report)
    report.units_used = max(budget.units, 0) - units


@inner
def _begin(state: tuple) -> None:
    scratch = state.scratch[0]
    for i in range(64):
        scratch.slid[i] = 0
    scratch.kept_count = 0


@inner
def _look(model: tuple, state: tuple, units: int, report: np.void) -> int:
    """Gather the contacts where the tip is; a third of the units at most, so that some are left to move and look."""
    position = state.proxy[0].position
    share = units // 3
    left = gather(model, state, position[0], position[1], position[2], share, report)
    recall(model, state, report)
    return units - share + left


@inner
def _solve(model: tuple, state: tuple, sweeps: int, report: np.void) -> bool:
    scratch = state.scratch[0]
    slips, left = solve(model, scratch, state.proxy[0], scratch.goal, sweeps, report)
    report.sweeps_used += sweeps - left
    return slips


@inner
def _stands(model: tuple, state: tuple) -> bool:
    """Is the wanted motion none?"""
    position = state.proxy[0].position
    wanted = state.scratch[0].wanted
    square = 0.0
    for k in range(3):
        square += (wanted[k] - position[k]) * (wanted[k] - position[k])
    # Written so that NaN stands still.
    return not math.sqrt(square) > STANDSTILL * model.world[0].eps_alert


@inner
def _advance(model: tuple, state: tuple, slips: bool, units: int, report: np.void) -> tuple[int, bool]:
    """Sweep the tip to where it wants to go, or as far as is free. Returns (units left, whether it moved)."""
    position = state.proxy[0].position
    scratch = state.scratch[0]
    wanted = scratch.wanted
    start = report.path[report.path_count - 1]
    dx = wanted[0] - position[0]
    dy = wanted[1] - position[1]
    dz = wanted[2] - position[2]
    nearest = report.contacts[0].gap if report.contact_count > 0 else math.inf
    share = (units + 1) // 2
    time, left = sweep(model, state, nearest, position[0], position[1], position[2], dx, dy, dz, share, report)
    units -= share - left
    report.passes_used += 1
    report.fraction = time
    if time * math.sqrt(dx * dx + dy * dy + dz * dz) <= STANDSTILL * model.world[0].eps_alert:
        return units, False
    if time >= 1.0:
        for k in range(3):
            position[k] = wanted[k]
    else:
        position[0] += time * dx
        position[1] += time * dy
        position[2] += time * dz
    for k in range(3):
        report.path[report.path_count, k] = position[k]
    report.path_count += 1
    scratch.kept_count = 0
    for i in range(report.contact_count):
        contact = report.contacts[i]
        if not pushes(contact):
            continue
        if slips:
            scratch.slid[contact.body_id % 64] = 1
        kept = scratch.kept[scratch.kept_count]
        copy_contact(contact, kept)
        scratch.kept_count += 1
        for k in range(3):
            kept.gap -= contact.normal[k] * start[k]
    return units, True


@inner
def _finish(state: tuple, report: np.void) -> None:
    """Keep what the next tick needs to know."""
    proxy = state.proxy[0]
    scratch = state.scratch[0]
    for k in range(64):
        if scratch.slid[k] != 0:
            proxy.sliding[k] = RESTICK_TICKS
        elif proxy.sliding[k] != 0:
            proxy.sliding[k] -= 1
    put_quaternion(proxy.orientation, quaternion(scratch.goal_orientation))
    for i in range(report.contact_count):
        contact = report.contacts[i]
        contact.tool_face_id = 0
        contact.tool_feature = 0
        contact.age = 0
        contact.sliding = 1 if scratch.slid[contact.body_id % 64] != 0 and pushes(contact) else 0
