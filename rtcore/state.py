"""State and working memory: everything that changes while ticking, allocated once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rtcore.collision.broad_phase import BroadPhase, find_pairs, make_broad_phase
from rtcore.collision.pair_state import FRONT_CAPACITY, make_query_work, reset_front
from rtcore.model import Model, unit_quaternion
from rtcore.motion import still
from rtcore.solvers.gauss_seidel import SweepWork
from rtcore.solvers.gauss_seidel import make_work as make_sweep_work
from rtcore.solvers.problem import ContactProblem, make_problem
from rtcore.tables import (
    BOX_NODE,
    CONTACT_MEMORY,
    CONTACT_WORK,
    FRONT,
    FRONT_ENTRY,
    MAX_CONTACTS,
    MOTION,
    POSE,
    PROXY,
    QUERY_WORK,
    SCRATCH,
    SOLVER_REPORT,
    SOLVER_SETTINGS,
)

FRONT_ENTRIES = 1 << 17
"""Entries of all fronts together, shared out evenly..."""
LEAST_FRONT = 256
"""... but each body gets at least as many."""

FIRST_SORT = 1 << 30
"""Units for the broad phase's first sort, which is long and belongs before the first tick."""


class State(NamedTuple):
    """What survives from tick to tick, and the memory that a step works in."""

    proxy: np.ndarray
    """(1,) PROXY."""
    poses: np.ndarray
    """(n_bodies,) POSE; only POSE_BODY changes one, and only while nobody is engaged."""
    scratch: np.ndarray
    """(1,) SCRATCH; nothing in it survives a step, so it belongs to no snapshot."""
    motions: np.ndarray
    """(n_bodies + 1,) MOTION of this step, the tool's last; nothing in it survives a step."""
    broad: BroadPhase
    """Of the bodies and, last, the tool; only its `order` survives a step."""
    fronts: np.ndarray
    """(n_bodies,) FRONT between each body and a tool mesh; none for a sphere tip."""
    front_entries: np.ndarray
    """(n_bodies, 2, capacity) FRONT_ENTRY."""
    query_work: np.ndarray
    """(1,) QUERY_WORK for a tool mesh; nothing in it survives a step."""
    contact_memory: np.ndarray
    """(1,) CONTACT_MEMORY of a tool mesh; none for a sphere tip."""
    contact_work: np.ndarray
    """(1,) CONTACT_WORK for a tool mesh; nothing in it survives a step."""
    problem: ContactProblem
    """Of a tool mesh that yields to its contacts; nothing in it survives a step."""
    solver_work: SweepWork
    """For it."""
    solver_settings: np.ndarray
    """(1,) SOLVER_SETTINGS of the solve at hand."""
    solver_reports: np.ndarray
    """(1,) SOLVER_REPORT of the last one."""


def make_state(
    model: Model,
    start_position: Sequence[float],
    start_orientation: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
) -> State:
    """Make the state before the first tick: bodies at their poses of load, the tool at its start.

    start_position: tip centre, scene, m. start_orientation: xyzw, tool to scene, normalised here.
    Raises ValueError for values that are not finite or for a quaternion without length. Whether the start is free of
    surfaces is for the caller to check (:func:`rtcore.collision.clearance.clearance`).
    """
    position = np.asarray(start_position, dtype=np.float64)
    if position.shape != (3,) or not np.isfinite(position).all():
        raise ValueError(f"start position must be three finite numbers, not {start_position!r}")
    n = len(model.bodies)
    tool_mesh_id = int(model.world["tool_mesh_id"][0])
    with_mesh = tool_mesh_id >= 0
    yields = float(model.world["turning"][0]) > 0.0
    problem = make_problem(1, MAX_CONTACTS, MAX_CONTACTS**2) if yields else make_problem(0, 0, 0)
    state = State(
        proxy=np.zeros(1, PROXY),
        poses=np.zeros(n, POSE),
        scratch=np.zeros(1, SCRATCH),
        motions=np.zeros(n + 1, MOTION),
        broad=make_broad_phase(_roots(model), fixed=[True] * n + [False]),
        fronts=np.zeros(n if with_mesh else 0, FRONT),
        front_entries=np.zeros((n if with_mesh else 0, 2, front_capacity(model)), FRONT_ENTRY),
        query_work=make_query_work() if with_mesh else np.zeros(0, QUERY_WORK),
        contact_memory=np.zeros(1 if with_mesh else 0, CONTACT_MEMORY),
        contact_work=np.zeros(1 if with_mesh else 0, CONTACT_WORK),
        problem=problem,
        solver_work=make_sweep_work(problem),
        solver_settings=np.zeros(1, SOLVER_SETTINGS),
        solver_reports=np.zeros(1, SOLVER_REPORT),
    )
    state.proxy["stride"] = 1.0
    state.proxy["position"][0] = position
    state.proxy["orientation"][0] = unit_quaternion(start_orientation, "start orientation")
    state.poses["position"] = model.bodies["position"]
    state.poses["orientation"] = model.bodies["orientation"]
    if with_mesh:
        state.fronts["first_root"] = model.meshes["node_first"][model.bodies["mesh_id"]]
        state.fronts["second_root"] = model.meshes["node_first"][tool_mesh_id]
        for body_id in range(n):
            reset_front(state.fronts[body_id], state.front_entries[body_id])
        for motion, pose in zip(state.motions, [*state.poses, state.proxy[0]], strict=True):
            still(motion, tuple(pose["position"]), tuple(pose["orientation"]))
        find_pairs(state.broad, state.motions, 0.0, FIRST_SORT)
    return state


def front_capacity(model: Model) -> int:
    """Entries that the front of each body with a tool mesh has room for; 0 for a sphere tip, which has none."""
    if int(model.world["tool_mesh_id"][0]) < 0:
        return 0
    return min(max(FRONT_ENTRIES // max(len(model.bodies), 1), LEAST_FRONT), FRONT_CAPACITY)


def _roots(model: Model) -> np.ndarray:
    """(n_bodies + 1,) BOX_NODE: the root of each body's tree, and last the tool's; a ball for a sphere tip."""
    roots = np.zeros(len(model.bodies) + 1, BOX_NODE)
    roots[:-1] = model.nodes[model.meshes["node_first"][model.bodies["mesh_id"]]]
    tool_mesh_id = int(model.world["tool_mesh_id"][0])
    if tool_mesh_id >= 0:
        roots[-1] = model.nodes[model.meshes["node_first"][tool_mesh_id]]
    else:
        roots["axes"][-1] = np.eye(3)
        roots["half"][-1] = roots["radius"][-1] = model.world["tip_radius"][0]
    return roots
