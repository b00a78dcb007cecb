"""State and working memory: everything that changes while ticking, allocated once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.collision.broad_phase import BroadPhase, find_pairs, make_broad_phase
from rtcore.collision.pair_state import FRONT_CAPACITY, make_query_work, reset_front
from rtcore.dynamics.restitution import IMPACT
from rtcore.dynamics.rigid_body import BODY_VELOCITY, set_velocity
from rtcore.model import Model, moving_bodies, unit_quaternion
from rtcore.motion import still
from rtcore.solvers.gauss_seidel import SweepWork
from rtcore.solvers.gauss_seidel import make_work as make_sweep_work
from rtcore.solvers.newton import NewtonWork
from rtcore.solvers.newton import make_work as make_newton_work
from rtcore.solvers.problem import ContactProblem, make_problem
from rtcore.tables import (
    BOX_NODE,
    CONTACT_MEMORY,
    CONTACT_PLACE,
    CONTACT_WORK,
    FREE,
    FRONT,
    FRONT_ENTRY,
    KINEMATIC,
    MAX_CONTACTS,
    MOTION,
    PAIR,
    PAIR_TABLE,
    POSE,
    PROXY,
    QUERY_WORK,
    SCRATCH,
    SOLVER_REPORT,
    SOLVER_SETTINGS,
    STEP_INPUT,
)

FRONT_ENTRIES = 1 << 17
"""Entries of all fronts together, shared out evenly..."""
LEAST_FRONT = 256
"""... but each body gets at least as many."""

PAIRS_PER_BODY = 8
"""Pairs with other bodies that there is room for, per body that moves..."""
LEAST_PAIRS = 32
"""... and as many at least."""
PAIR_ENTRIES = 1 << 18
"""Entries of the fronts of all these pairs together, shared out evenly..."""
LEAST_PAIR_FRONT = 256
"""... but each pair gets at least as many."""
CONTACTS_PER_BODY = 16
"""Contacts that there is room for, per body that moves, besides those of the tool; where a body of the scene resists
spinning or rolling, for the moments of as many too."""
BLOCKS_PER_CONTACT = 32
"""Blocks of the Delassus operator that there is room for, per contact of bodies..."""
LEAST_BLOCKS = 1 << 18
"""... but in any case as many, if so many contacts can be: where all rest on one body each is coupled with all."""

FIRST_SORT = 1 << 30
"""Units for the broad phase's first sort, which is long and belongs before the first tick."""


@by_reference
class Pairs(NamedTuple):
    """Pairs of bodies near to one another, the tool's apart, of which at least one moves; and the contacts of all."""

    rows: np.ndarray
    """(capacity,) PAIR; a pair keeps its row as long as it is near."""
    entries: np.ndarray
    """(capacity, 2, entries) FRONT_ENTRY, of the fronts of the rows."""
    order: np.ndarray
    """(capacity,) i4: rows in use, by first, then second body."""
    before: np.ndarray
    """(capacity,) i4: that order before it is brought up to date; nothing in it survives a step."""
    table: np.ndarray
    """(1,) PAIR_TABLE."""
    memory: np.ndarray
    """(1,) CONTACT_MEMORY of the pair at hand; nothing in it survives a step."""
    movers: np.ndarray
    """(n_bodies + 1,) i4: row of each body among the movers of the contact problem, -1 for what never moves; the
    tool's last."""
    groups: np.ndarray
    """(n_bodies + 1,) i4: bodies joined by contacts, or by being near; nothing in it survives a step."""
    bounds: np.ndarray
    """(n_bodies + 2,) i4: where the contacts of each island begin, and end; nothing in it survives a step."""
    carried: np.ndarray
    """(n_bodies + 1,) i4: 1 for a body that a contact pushes in this step, unless it flies with all that pushes it;
    nothing in it survives a step."""
    asleep: np.ndarray
    """(n_bodies + 1,) i4: 1 for a free body that sleeps in this step; nothing in it survives a step."""
    held: np.ndarray
    """(n_bodies + 1,) i4: contacts of each body with others; nothing in it survives a step."""
    struck: np.ndarray
    """(n_bodies + 1,) f8: share of this step after which a body bounces, above 1: it does not; nothing survives."""
    approach: np.ndarray
    """(n_bodies + 1, 6) f8: its velocity then, linear of the centre of mass and angular, scene; nothing survives."""
    bent: np.ndarray
    """(n_bodies + 1,) i4: 1 where the screw of a body begins with its velocity; nothing in it survives a step."""
    starts: np.ndarray
    """(n_bodies + 2,) i4: sorting by counting."""
    times: np.ndarray
    """(n_bodies + 1,) f8: share of its motion that each body executes; nothing in it survives a step."""
    energies: np.ndarray
    """(3, n_bodies + 1) f8: kinetic energy of each body before contacts, J; of groups before and after; nothing in it
    survives a step."""
    strides: np.ndarray
    """(n_bodies + 1,) f8: length of that motion, 1 for the whole step's; nothing in it survives a step."""
    places: np.ndarray
    """(2, contacts) CONTACT_PLACE of the contacts of this step, as found and by islands; nothing survives a step."""
    impacts: np.ndarray
    """(contacts,) IMPACT; nothing in it survives a step."""


@by_reference
class State(NamedTuple):
    """What survives from tick to tick, and the memory that a step works in."""

    proxy: np.ndarray
    """(1,) PROXY."""
    poses: np.ndarray
    """(n_bodies,) POSE; of those that do not move only POSE_BODY changes one, and only while nobody is engaged."""
    velocities: np.ndarray
    """(n_bodies + 1,) BODY_VELOCITY, that of a tool with mass last."""
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
    newton_work: NewtonWork
    """For it."""
    solver_settings: np.ndarray
    """(1,) SOLVER_SETTINGS of the solve at hand."""
    solver_reports: np.ndarray
    """(1,) SOLVER_REPORT of the last one."""
    pairs: Pairs


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
    kinds = model.bodies["kind"].tolist()
    tool_mesh_id = int(model.world["tool_mesh_id"][0])
    with_mesh = tool_mesh_id >= 0
    yields = float(model.world["turning"][0]) > 0.0
    moving = moving_bodies(model.bodies)
    rows = 2 if model.bodies["torsional"].any() or model.bodies["rolling"].any() else 1
    contacts = rows * (MAX_CONTACTS + CONTACTS_PER_BODY * len(moving)) if yields else 0
    blocks = rows**2 * (MAX_CONTACTS**2 + BLOCKS_PER_CONTACT * CONTACTS_PER_BODY * len(moving))
    blocks = max(blocks, min(contacts**2, LEAST_BLOCKS))
    problem = make_problem(len(moving) + 1, contacts, blocks if yields else 0)
    state = State(
        proxy=np.zeros(1, PROXY),
        poses=np.zeros(n, POSE),
        velocities=np.zeros(n + 1, BODY_VELOCITY),
        scratch=np.zeros(1, SCRATCH),
        motions=np.zeros(n + 1, MOTION),
        broad=make_broad_phase(_roots(model), fixed=[*(k not in (FREE, KINEMATIC) for k in kinds), False]),
        fronts=np.zeros(n if with_mesh else 0, FRONT),
        front_entries=np.zeros((n if with_mesh else 0, 2, front_capacity(model)), FRONT_ENTRY),
        query_work=make_query_work() if with_mesh else np.zeros(0, QUERY_WORK),
        contact_memory=np.zeros(1 if with_mesh else 0, CONTACT_MEMORY),
        contact_work=np.zeros(1 if with_mesh else 0, CONTACT_WORK),
        problem=problem,
        solver_work=make_sweep_work(problem),
        newton_work=make_newton_work(problem),
        solver_settings=np.zeros(1, SOLVER_SETTINGS),
        solver_reports=np.zeros(1, SOLVER_REPORT),
        pairs=_make_pairs(model, contacts),
    )
    state.proxy["stride"] = 1.0
    state.proxy["position"][0] = position
    state.proxy["orientation"][0] = unit_quaternion(start_orientation, "start orientation")
    state.poses["position"] = model.bodies["position"]
    state.poses["orientation"] = model.bodies["orientation"]
    for body_id in moving:
        u, v, w, p, q, r = (float(x) for x in model.bodies[body_id]["velocity"])
        row = state.velocities[body_id]
        set_velocity(row, state.poses[body_id], model.inertias[body_id], (u, v, w), (p, q, r))
    if with_mesh:
        state.fronts["first_root"] = model.meshes["node_first"][model.bodies["mesh_id"]]
        state.fronts["second_root"] = model.meshes["node_first"][tool_mesh_id]
        for body_id in range(n):
            reset_front(state.fronts[body_id], state.front_entries[body_id])
        for motion, pose in zip(state.motions, [*state.poses, state.proxy[0]], strict=True):
            still(motion, tuple(pose["position"]), tuple(pose["orientation"]))
        find_pairs(state.broad, state.motions, 0.0, FIRST_SORT)
    return state


def make_input(stiffness: float = 1.0, rotational_stiffness: float = 0.0) -> np.ndarray:
    """Make a (1,) STEP_INPUT, goal at the origin, of a hand that pulls (N/m) and turns (N m/rad) the tool."""
    made = np.zeros(1, STEP_INPUT)
    made["goal_orientation"][0, 3] = 1.0
    made["stiffness"] = stiffness
    made["rotational_stiffness"] = rotational_stiffness
    return made


def pair_capacity(model: Model) -> tuple[int, int]:
    """(pairs of bodies that there is room for, entries of the front of each)."""
    moving = len(moving_bodies(model.bodies))
    capacity = max(PAIRS_PER_BODY * moving, LEAST_PAIRS) if moving > 0 else 0
    return capacity, min(max(PAIR_ENTRIES // max(capacity, 1), LEAST_PAIR_FRONT), FRONT_CAPACITY)


def _make_pairs(model: Model, contacts: int) -> Pairs:
    n = len(model.bodies)
    moving = moving_bodies(model.bodies)
    capacity, entries = pair_capacity(model)
    movers = np.full(n + 1, -1, np.int32)
    movers[[*moving, n]] = np.arange(len(moving) + 1)
    rows = np.zeros(capacity, PAIR)
    rows["first"] = -1
    rows["second"] = -1
    return Pairs(
        rows=rows,
        entries=np.zeros((capacity, 2, entries), FRONT_ENTRY),
        order=np.zeros(capacity, np.int32),
        before=np.zeros(capacity, np.int32),
        table=np.zeros(1, PAIR_TABLE),
        memory=np.zeros(1, CONTACT_MEMORY),
        movers=movers,
        groups=np.zeros(n + 1, np.int32),
        bounds=np.zeros(n + 2, np.int32),
        carried=np.zeros(n + 1, np.int32),
        asleep=np.zeros(n + 1, np.int32),
        held=np.zeros(n + 1, np.int32),
        struck=np.zeros(n + 1),
        approach=np.zeros((n + 1, 6)),
        bent=np.zeros(n + 1, np.int32),
        starts=np.zeros(n + 2, np.int32),
        times=np.zeros(n + 1),
        energies=np.zeros((3, n + 1)),
        strides=np.ones(n + 1),
        places=np.zeros((2, contacts), CONTACT_PLACE),
        impacts=np.zeros(contacts, IMPACT),
    )


def front_capacity(model: Model) -> int:
    """Entries that the front of each body with a tool mesh has room for; 0 for a sphere tip, which has none."""
    if int(model.world["tool_mesh_id"][0]) < 0:
        return 0
    return min(max(FRONT_ENTRIES // max(len(model.bodies), 1), LEAST_FRONT), FRONT_CAPACITY)


def _roots(model: Model) -> np.ndarray:
    """(n_bodies + 1,) BOX_NODE: the root of each body's tree, and last the tool's; a ball for a sphere tip."""
    roots = np.zeros(len(model.bodies) + 1, BOX_NODE)
    roots[:-1] = model.nodes[model.meshes["node_first"][model.bodies["mesh_id"]]]
    roots["radius"][:-1] += model.bodies["rounding"]
    roots["half"][:-1] += model.bodies["rounding"][:, None]
    tool_mesh_id = int(model.world["tool_mesh_id"][0])
    if tool_mesh_id >= 0:
        roots[-1] = model.nodes[model.meshes["node_first"][tool_mesh_id]]
    else:
        roots["axes"][-1] = np.eye(3)
        roots["half"][-1] = roots["radius"][-1] = model.world["tip_radius"][0]
    return roots
