"""One step of the mechanics: the tool follows the hand among surfaces that it never passes."""

import math

import numpy as np

from rtcore import mesh_tool, probe
from rtcore.kernels import inlined, inner, kernel
from rtcore.model import ALERT_RESOLUTION
from rtcore.tables import MAX_CONTACTS, MAX_PATH


@kernel
def step(model: tuple, state: tuple, step_input: np.void, budget: np.void, report: np.void) -> None:
    """Move the tool towards its goal as far as that is free, and report what is near it or pushes it.

    model: Model; state: State; step_input: STEP_INPUT, budget: BUDGET and report: STEP_REPORT records. A goal that is
    not finite asks for no motion; one with coordinates beyond eps_alert / ALERT_RESOLUTION, where rounding would eat
    into the distance kept, is taken back to that border. All along the way every surface keeps at least
    eps_alert (1 - 1e-6) from the tool if it did so before the step; one that was nearer comes no nearer (than by the
    position tolerance of a mesh tool, once).
    """
    take_step(model, state, step_input, budget, report)


@inlined
def take_step(model: tuple, state: tuple, step_input: np.void, budget: np.void, report: np.void) -> None:
    """As `step`, within the kernel that calls it: compiled twice at the same time instead of one after the other."""
    _begin(model, state, step_input, report)
    if model.world[0].tool_mesh_id < 0:
        probe.follow(model, state, budget, report)
    else:
        mesh_tool.follow(model, state, step_input, budget, report)
    _finish(report)


@inner
def _begin(model: tuple, state: tuple, step_input: np.void, report: np.void) -> None:
    """Write the goal down where it is sound, and an empty report."""
    proxy = state.proxy[0]
    scratch = state.scratch[0]
    square = 0.0
    for k in range(3):
        way = step_input.goal_position[k] - proxy.position[k]
        square += way * way
    border = model.world[0].eps_alert / ALERT_RESOLUTION
    for k in range(3):
        goal = step_input.goal_position[k] if math.isfinite(square) else proxy.position[k]
        scratch.goal[k] = min(max(goal, -border), border)
    finite = True
    for k in range(4):
        finite &= math.isfinite(step_input.goal_orientation[k])
    for k in range(4):
        scratch.goal_orientation[k] = step_input.goal_orientation[k] if finite else proxy.orientation[k]
    for i in range(MAX_PATH):
        for k in range(3):
            report.path[i, k] = proxy.position[k] if i == 0 else 0.0
    report.path_count = 1
    report.contact_count = 0
    report.passes_used = 0
    report.sweeps_used = 0
    report.degraded = 0
    report.fraction = 1.0
    report.residual = 0.0
    report.body_fraction = 1.0
    report.body_gap = -1.0
    report.body_residual = 0.0
    report.energy = 0.0
    report.bodies_digest = 0
    report.body_contacts = 0
    report.islands = 0
    report.stopped = 0
    report.asleep = 0


@inner
def _finish(report: np.void) -> None:
    """Leave no bit of the report to chance."""
    report.smallest_gap = report.contacts[0].gap if report.contact_count > 0 else -1.0
    for i in range(MAX_CONTACTS):
        contact = report.contacts[i]
        contact.padding = 0
        if i < report.contact_count:
            continue
        for k in range(3):
            contact.point[k] = 0.0
            contact.normal[k] = 0.0
            contact.displacement[k] = 0.0
        contact.gap = 0.0
        contact.body_id = 0
        contact.face_id = 0
        contact.feature = 0
        contact.sliding = 0
        contact.tool_face_id = 0
        contact.tool_feature = 0
        contact.age = 0
