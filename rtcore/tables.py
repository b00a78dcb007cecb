"""The entity tables of the mechanics: one aligned numpy record type each.

Everything the kernels touch is one of these records. SI units; quaternions are ``[x, y, z, w]``; a pose maps body (or
tool) coordinates to the scene frame.
"""

import numpy as np

MAX_CONTACTS = 12
"""Contacts kept per tick (the nearest ones; dropping one is safe because the sweep still sees every triangle)."""

MAX_PATH = 9
"""Way points of the tool tip within one tick, the start included: at most ``MAX_PATH - 1`` straight passes."""

MAX_TREE_DEPTH = 64
"""Deepest bounding tree that the fixed-size traversal stacks allow; checked when a model is built."""

MAX_CANDIDATES = 64
"""Nearest triangles looked at per gathering, before those that are no contact of their own are dropped."""

DEADBAND = 1e-6
"""Share of eps_safety by which a gap may differ from it and still count as at rest."""

RESTICK_TICKS = 20
"""Ticks without slip after which a contact that has slipped counts as stuck again. A hand that goes on evenly comes in
encoder steps and late samples; each pause of a tick would otherwise cost static friction anew, felt as a ripple."""

# Kinds of body.
STATIC = 0
"""Never moves."""
HELD = 1
"""Kept at its pose; may be posed anew through the control channel while nobody is engaged."""

# Bits of REPORT.degraded: work that the budget cut short. Each one only ever weakens a force or shortens a motion.
DEGRADED_SWEEP = 1
"""A continuous test ran out of units; the motion was cut at the time proven free."""
DEGRADED_PASSES = 2
"""The last pass still wanted to move: passes ran out."""
DEGRADED_CONTACTS = 4
"""More contacts than the table holds, or the gathering ran out of units."""
DEGRADED_SOLVER = 8
"""The contact solve ended above its residual tolerance."""

NODE = np.dtype(
    [
        ("lower", "f8", 3),  # box corner, mesh frame, m
        ("upper", "f8", 3),
        ("first", "i4"),  # leaf: first triangle (index into the triangle table)
        ("count", "i4"),  # leaf: number of triangles; 0 for an inner node
        ("right", "i4"),  # inner: right child (index into the node table); the left child is the next node
        ("depth", "i4"),
    ],
    align=True,
)
"""Bounding-tree node, stored depth first."""

TRIANGLE = np.dtype(
    [
        ("vertices", "f8", (3, 3)),  # mesh frame, m, one vertex per row
        ("normal", "f8", 3),  # unit, by the right-hand rule over the rows
        ("face_id", "i4"),  # row in the imported mesh
        ("degenerate", "i4"),  # 1: no area; it is as solid as its edges, and its normal is only some unit vector
    ],
    align=True,
)

MESH = np.dtype(
    [
        ("node_first", "i4"),
        ("node_count", "i4"),
        ("triangle_first", "i4"),
        ("triangle_count", "i4"),
    ],
    align=True,
)

BODY = np.dtype(
    [
        ("position", "f8", 3),  # pose at load, mesh frame -> scene, m
        ("orientation", "f8", 4),
        ("friction_static", "f8"),
        ("friction_kinetic", "f8"),
        ("mesh_id", "i4"),
        ("kind", "i4"),
    ],
    align=True,
)

POSE = np.dtype([("position", "f8", 3), ("orientation", "f8", 4)], align=True)
"""Present pose of a body, mesh frame -> scene."""

WORLD = np.dtype(
    [
        ("tip_radius", "f8"),  # sphere tip of the tool, m; may be 0
        ("tip_offset", "f8", 3),  # tip centre in tool coordinates, m
        ("eps_alert", "f8"),  # no surface ever comes nearer to the tip sphere than this, m
        ("eps_safety", "f8"),  # gap kept at rest, m
        ("eps_break", "f8"),  # a contact is forgotten beyond it, m
    ],
    align=True,
)
"""Scene-wide constants: one row. ``0 < eps_alert < eps_safety < eps_break``."""

CONTACT = np.dtype(
    [
        ("point", "f8", 3),  # nearest point of the triangle, scene, m
        ("normal", "f8", 3),  # unit, from the surface to the tip centre, scene
        ("displacement", "f8", 3),  # by which it pushes the tip off its goal, scene, m (force = stiffness x this)
        ("gap", "f8"),  # distance from the tip sphere to the surface, m
        ("body_id", "i4"),
        ("face_id", "i4"),
        ("feature", "i4"),  # 0..2 vertex, 3..5 edge (feature-3 -> feature-2), 6 face interior
        ("sliding", "i4"),  # 1 when the contact slips in this tick
    ],
    align=True,
)

PROXY = np.dtype(
    [
        ("position", "f8", 3),  # tip centre, scene, m
        ("orientation", "f8", 4),  # the tool's; a sphere tip turns freely
        ("sliding", "u1", 64),  # per body (index modulo 64): ticks until its contact, having slipped, counts as stuck
    ],
    align=True,
)
"""The tool as the mechanics know it; the state that survives between ticks."""

STEP_INPUT = np.dtype(
    [
        ("goal_position", "f8", 3),  # where the hand wants the tip centre, scene, m
        ("goal_orientation", "f8", 4),
    ],
    align=True,
)

BUDGET = np.dtype(
    [
        ("units", "i4"),  # node visits + triangle tests, for the whole tick
        ("passes", "i4"),  # straight passes of the tip (<= MAX_PATH - 1)
        ("sweeps", "i4"),  # contact-solver sweeps per pass
        ("padding", "i4"),
    ],
    align=True,
)
"""Work allowed in one tick, counted in units of work and never in time."""

STEP_REPORT = np.dtype(
    [
        ("smallest_gap", "f8"),  # over the contact table, tip sphere to surface, m; -1 when the table is empty
        ("fraction", "f8"),  # part of the last wanted pass that was executed, 0..1
        ("residual", "f8"),  # worst violation left by the contact solve, m
        ("path", "f8", (MAX_PATH, 3)),  # tip centre way points, scene, m; rows after path_count are zero
        ("contacts", CONTACT, (MAX_CONTACTS,)),  # rows after contact_count are zero
        ("path_count", "i4"),
        ("contact_count", "i4"),
        ("units_used", "i4"),
        ("passes_used", "i4"),
        ("sweeps_used", "i4"),
        ("degraded", "i4"),  # DEGRADED_* bits
    ],
    align=True,
)

CANDIDATE = np.dtype(
    [
        ("point", "f8", 3),  # nearest point of the triangle, mesh frame, m
        ("distance", "f8"),  # from the tip centre, m
        ("triangle", "i4"),  # index into the triangle table
        ("body_id", "i4"),
        ("face_id", "i4"),
        ("feature", "i4"),  # as in CONTACT
    ],
    align=True,
)

SCRATCH = np.dtype(
    [
        ("candidates", CANDIDATE, (MAX_CANDIDATES,)),
        ("order", "i4", MAX_CANDIDATES),  # candidates, nearest first
        ("stack_node", "i4", MAX_TREE_DEPTH),  # traversals: nodes still to visit
        ("stack_key", "f8", MAX_TREE_DEPTH),  # their squared distance, or the time at which the sweep enters them
        ("offset", "f8", MAX_CONTACTS),  # solver: least displacement along the contact normal, m
        ("slack", "f8", MAX_CONTACTS),  # solver: how far the way point is inside the half space, m
        ("active", "i4", MAX_CONTACTS),  # solver: contacts that touch, by row in the contact table
        ("hold", "f8", MAX_CONTACTS),  # solver: friction coefficient below which the contact sticks
        ("slide", "f8", MAX_CONTACTS),  # solver: friction coefficient while it slips
        ("kept", CONTACT, (MAX_CONTACTS,)),  # what pushed in the last pass; gap: at the scene's origin
        ("kept_count", "i4"),
        ("padding", "i4"),
        ("goal", "f8", 3),  # where the hand wants the tip centre, finite, scene, m
        ("wanted", "f8", 3),  # solver: where the tip wants to go in this pass, scene, m
        ("slid", "u1", 64),  # per body (index modulo 64): did its contact slip in this tick
    ],
    align=True,
)
"""Working memory of one step. Nothing in it survives: every step writes what it reads."""
