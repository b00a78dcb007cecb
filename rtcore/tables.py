"""The entity tables of the mechanics: one aligned numpy record type each.

Everything the kernels touch is one of these records. SI units; quaternions are ``[x, y, z, w]``; a pose maps body (or
tool) coordinates to the scene frame.
"""

import numpy as np

MAX_CONTACTS = 16
"""Contacts kept per tick; dropping one is safe because the sweep still sees every triangle. Of a sphere tip the nearest
ones are kept, of a tool mesh those that carry load, see rtcore.collision.contact_set."""

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
FREE = 2
"""Moves by what acts on it."""
KINEMATIC = 3
"""Keeps the velocity that it has at load: it pushes and is not pushed. Where it is blocked it waits."""

# Bits of REPORT.degraded: work that the budget cut short. Each one only ever weakens a force or shortens a motion.
DEGRADED_SWEEP = 1
"""A continuous test ran out of units; the motion was cut at the time proven free."""
DEGRADED_PASSES = 2
"""The last pass still wanted to move: passes ran out."""
DEGRADED_CONTACTS = 4
"""Some contacts may be missing: the gathering ran out of units or of room, or a sphere tip has more contacts than the
table holds. Contacts of a tool mesh that were left out because others carry their load are not missed."""
DEGRADED_SOLVER = 8
"""The contact solve ended above its residual tolerance."""
DEGRADED_NUMBERS = 16
"""No budget's doing: the motion of the tool came out as no number, and the tool stayed where it was."""

TRIANGLE = np.dtype(
    [
        ("vertices", "f8", (3, 3)),  # mesh frame, m, one vertex per row
        ("normal", "f8", 3),  # unit, by the right-hand rule over the rows
        ("face_id", "i4"),  # row in the imported mesh
        ("degenerate", "i4"),  # 1: no area; it is as solid as its edges, and its normal is only some unit vector
        ("vertex_ids", "i4", 3),  # numbers within the mesh; vertices at one place are one vertex
        ("edge_ids", "i4", 3),  # numbers within the mesh; edge k goes from row k to row (k + 1) % 3
        ("owned", "i4"),  # bits 0..2: vertices, 3..5: edges that it stands for (see rtcore.geometry.topology)
        ("open", "i4"),  # 1: no area, at a non-manifold edge or of a part that is no outward solid; never culled
        ("across", "i4", 3),  # rows from here to the other triangle at edge k; 0: none, several, or one without area
        ("flat", "i4"),  # bits 0..2: the surface goes straight on across edge k
    ],
    align=True,
)

BOX_NODE = np.dtype(
    [
        ("centre", "f8", 3),  # of the oriented box, mesh frame, m
        ("axes", "f8", (3, 3)),  # one unit axis per row, right-handed, mesh frame
        ("half", "f8", 3),  # half lengths along the axes, m
        ("radius", "f8"),  # of the sphere about the centre that holds all triangles below, m
        ("size", "f8"),  # of two nodes the one of larger size is opened first; never above the parent's; leaf: 0
        ("cone_axis", "f8", 3),  # all outward normals below lie within cone_angle of this unit vector, mesh frame
        ("cone_angle", "f8"),  # rad; pi where nothing may be culled
        ("first", "i4"),  # leaf: its triangle (index into the triangle table)
        ("count", "i4"),  # leaf: number of triangles; 0 for an inner node
        ("right", "i4"),  # inner: right child (index into the node table); the left child is the next node
        ("parent", "i4"),  # -1 for a root
        ("depth", "i4"),
        ("padding", "i4"),
    ],
    align=True,
)
"""Node of a tree of oriented boxes, stored depth first, one triangle in each leaf."""

MOTION = np.dtype(
    [
        ("position", "f8", 3),  # pose at u = 0, body frame -> scene, m
        ("orientation", "f8", 4),
        ("pivot", "f8", 3),  # the point of the body, where it is at u = 0, scene, m
        ("shift", "f8", 3),  # displacement of the pivot over u = 0..1, scene, m
        ("axis", "f8", 3),  # unit axis of the rotation, scene
        ("angle", "f8"),  # over u = 0..1, rad, 0..pi
        ("kind", "i4"),  # see rtcore.motion
        ("padding", "i4"),
    ],
    align=True,
)
"""Motion of one body over a step, u = 0..1."""

RELATIVE = np.dtype([("first", MOTION), ("second", MOTION)], align=True)
"""Motions of a pair of bodies over one step; the second is looked at in the body frame of the first."""

PLACEMENT = np.dtype(
    [
        ("rotation", "f8", (3, 3)),  # of the second in the first's frame at the middle of u0..u1, by rows
        ("translation", "f8", 3),  # m
        ("velocity", "f8", 3),  # there, of the second's origin as the first sees it, first's frame, m per unit of u
        ("spin", "f8", 3),  # there, of the second as the first sees it, first's frame, rad per unit of u
        ("spin_speed", "f8"),  # its length
        ("half", "f8"),  # half of u1 - u0
        ("bow", "f8"),  # by which a point of the second may leave its tangent during half of the interval, m
        ("u0", "f8"),
        ("u1", "f8"),
    ],
    align=True,
)
"""Where the second body of a pair is at the middle of an interval of u, and how it moves there; made once for many box
tests, see rtcore.collision.overlap.place_pair."""

COUNTERS = np.dtype(
    [
        (name, "i8")
        for name in (
            "box_tests",  # pairs of nodes tested, by whatever test
            "box_discrete",  # tests of boxes at one pose made for them
            "box_continuous",  # interval tests made for them
            "sphere_tests",
            "receding_tests",  # back-face tests of nodes
            "receding",  # nodes culled by them
            "leaf_pairs",  # pairs of triangles reached
            "edge_edge",
            "vertex_face",
            "face_vertex",
            "rejected",  # elementary tests that a cheap filter answered
            "iterations",  # of the elementary tests
            "reused",  # front entries that needed no test
        )
    ],
    align=True,
)
"""Work done by collision queries; a unit of work is a box test or an elementary test."""

QUERY = np.dtype(
    [
        ("separation", "f8"),  # distance that must be kept, m; contact is the first time that it is reached
        ("position_tolerance", "f8"),  # a contact may be reported this much early along the path, m
        ("time_tolerance", "f8"),  # and this much early in u
        ("limit", "f8"),  # only contacts at u <= limit are looked for, 0..1
        ("subdivision", "f8"),  # constant k of the interval box test
        ("units", "i4"),  # work allowed
        ("overlap", "i4"),  # box test, OVERLAP_* of rtcore.collision.overlap
        ("elementary", "i4"),  # elementary test, ELEMENTARY_* of rtcore.collision.elementary
        ("flags", "i4"),  # QUERY_* bits
    ],
    align=True,
)
"""What one collision query asks for."""

QUERY_PASS_TIME = 1
"""Pass the first contact time found so far down to all later tests."""
QUERY_ORDER = 2
"""Take pairs of nodes in the order of their earliest possible contact, not depth first."""
QUERY_CULL = 4
"""Leave out nodes all of whose triangles recede."""
QUERY_OWNED = 8
"""Test each pair of edges, and each vertex with each face, in one pair of triangles only."""
QUERY_FRONT = 16
"""Start where the last query of this pair ended instead of at the roots."""

HIT = np.dtype(
    [
        ("time", "f8"),  # proven free on 0 <= u < time
        ("point", "f8", 3),  # on the first body at that time, first body's frame, m
        ("normal", "f8", 3),  # unit, from the first body to the second, first body's frame
        ("gap", "f8"),  # distance at that time, m
        ("found", "i4"),  # 1: a contact (distance down to `separation`) stops the motion at `time`
        ("truncated", "i4"),  # 1: the units ran out first; the motion stops at what was proven
        ("first_triangle", "i4"),  # indices into the triangle table; -1 when none
        ("second_triangle", "i4"),
        ("first_feature", "i4"),  # 0..2 vertex, 3..5 edge, 6 face interior
        ("second_feature", "i4"),
        ("units_used", "i4"),
        ("padding", "i4"),
    ],
    align=True,
)
"""Result of one collision query."""

MAX_QUERY_PAIRS = 16384
"""Pairs of nodes that one query can keep for later."""
MAX_ACTIVE_PAIRS = 4096
"""Pairs of triangles that may touch within one query with a front."""
MAX_PROXIMITIES = 2048
"""Pairs of features in one table of proximities."""

PROXIMITY = np.dtype(
    [
        ("point_first", "f8", 3),  # nearest points of the surfaces at u = 0, first body's frame, m
        ("point_second", "f8", 3),
        ("normal", "f8", 3),  # unit, from the first to the second, first body's frame; zero where they touch
        ("distance", "f8"),  # m
        ("first_triangle", "i4"),  # indices into the triangle table
        ("second_triangle", "i4"),
        ("first_feature", "i4"),  # 0..2 vertex, 3..5 edge, 6 face interior
        ("second_feature", "i4"),
        ("first_id", "i4"),  # number of that vertex or edge within its mesh; of the triangle for a face interior
        ("second_id", "i4"),
        ("body_id", "i4"),  # of the first body, filled in by whoever asks about several
        ("padding", "i4"),
    ],
    align=True,
)
"""Two features of a pair of bodies that are near to one another: an edge and an edge with both points inside, or a
vertex and what is nearest to it on a face."""

PROXIMITIES = np.dtype(
    [
        ("rows", PROXIMITY, (MAX_PROXIMITIES,)),
        ("count", "i4"),
        ("incomplete", "i4"),  # 1: the table was full or the units ran out; some pairs within reach may be missing
    ],
    align=True,
)
"""Pairs of features within reach of one another."""

NODE_PAIR = np.dtype(
    [
        ("key", "f8"),  # the pair is proven free before this u
        ("start", "f8"),  # interval of u that it is tested over
        ("end", "f8"),
        ("first", "i4"),  # indices into the node table
        ("second", "i4"),
    ],
    align=True,
)
"""A pair of nodes that a query has yet to look into."""

ACTIVE_PAIR = np.dtype(
    [
        ("key", "f8"),  # proven free before this u
        ("slack", "f8"),  # proven lower bound of the distance at u = 0, m
        ("speed", "f8"),  # bound on the speed of the second's triangle in the first's frame, m per unit of u
        ("first", "i4"),  # leaves, indices into the node table
        ("second", "i4"),
        ("entry", "i4"),  # its entry of the front; -1 when the front had no room for it
        ("padding", "i4"),
    ],
    align=True,
)
"""A pair of triangles that may touch in this tick."""

STACKED_PAIR = np.dtype(
    [
        ("expiry", "f8"),  # see FRONT_ENTRY
        ("first", "i4"),  # indices into the node table
        ("second", "i4"),
        ("kept", "i4"),  # 1: belongs into the front; 0: below an entry that the front had no room to open
        ("fresh", "i4"),  # 1: never tested itself, its slack is that of the pair above
    ],
    align=True,
)
"""A pair of nodes on the way down from an entry of the front."""

APPROACH = np.dtype([("velocity", "f8", 3), ("spin", "f8", 3), ("slack", "f8")], align=True)
"""How one body of a pair moves as seen from the other, in its own frame; see rtcore.collision.receding.approach."""

QUERY_WORK = np.dtype(
    [
        ("first_approach", APPROACH),
        ("second_approach", APPROACH),
        ("whole", PLACEMENT),  # over the whole motion
        ("middle", PLACEMENT),  # over the interval looked at
        ("start", PLACEMENT),  # at its start
        ("proximities", PROXIMITIES),  # result of the search for near features
        ("pairs", NODE_PAIR, (MAX_QUERY_PAIRS,)),
        ("active", ACTIVE_PAIR, (MAX_ACTIVE_PAIRS,)),
        ("order", "i4", MAX_ACTIVE_PAIRS),
        ("stack", STACKED_PAIR, (2 * MAX_TREE_DEPTH + 2,)),
        ("pair_limit", "i4"),  # of `pairs` that may be used
        ("active_limit", "i4"),  # of `active` that may be used
    ],
    align=True,
)
"""Working memory of collision queries. Nothing in it but the proximities survives a query."""

FRONT_ENTRY = np.dtype([("expiry", "f8"), ("first", "i4"), ("second", "i4")], align=True)
"""A pair of nodes (indices into the node table) that need not be looked at while FRONT.travelled + what lies ahead is
below `expiry`, m."""

FRONT = np.dtype(
    [
        ("travelled", "f8"),  # bound on the path of every point of the second body in the first's frame so far, m
        ("ahead", "f8"),  # the same for the motion that the last query allowed; added by the next one
        ("drift", "f8"),  # part of it for the rounding of the poses at its end, m
        ("speed", "f8"),  # bound on the speed of every point of the second in the last query, m per unit of u
        ("pace", "f8"),  # path per query that the front is kept ready for, m
        ("first_root", "i4"),  # indices into the node table
        ("second_root", "i4"),
        ("count", "i4"),  # entries in use
        ("current", "i4"),  # which of the two rows of entries they are in
        ("cursor", "i4"),  # entry from which the next query tries to join entries
        ("walk", "i4"),  # entry at which the search for near features goes on, after what is on its stack
        ("walk_first", "i4", 2 * MAX_TREE_DEPTH + 2),  # stack of node pairs that it has yet to look into
        ("walk_second", "i4", 2 * MAX_TREE_DEPTH + 2),
        ("walk_top", "i4"),
        ("padding", "i4"),
    ],
    align=True,
)
"""Head of the front of one pair of bodies: the pairs of nodes, in depth-first order, at which the last query ended.
Every pair of leaves is below exactly one of them. The entries are a (2, capacity) table of FRONT_ENTRY."""


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
        ("velocity", "f8", 6),  # at load, of the centre of mass, m/s, and angular, rad/s; scene axes
        ("friction_static", "f8"),
        ("friction_kinetic", "f8"),
        ("torsional", "f8"),  # largest moment about the normal per force along it, m
        ("rolling", "f8"),  # largest moment about the tangents per force along the normal, m
        ("rounding", "f8"),  # its surface is this far from its mesh, outwards, m; 0: the mesh is the surface
        ("mesh_id", "i4"),
        ("kind", "i4"),
        ("ball", "i4"),  # 1: its mesh is one point, which it turns about, so that turning does not change what it meets
        ("surface_id", "i4"),  # how it feels, for the layer above: the mechanics do not look at it
    ],
    align=True,
)

POSE = np.dtype([("position", "f8", 3), ("orientation", "f8", 4)], align=True)
"""Present pose of a body, mesh frame -> scene."""

WORLD = np.dtype(
    [
        ("tip_radius", "f8"),  # sphere tip of the tool, m; may be 0
        ("tip_offset", "f8", 3),  # tip centre in tool coordinates, m
        ("eps_alert", "f8"),  # no surface ever comes nearer to the tool than this, m
        ("eps_safety", "f8"),  # gap kept at rest, m
        ("eps_break", "f8"),  # a contact is forgotten beyond it, m
        ("turning", "f8"),  # least stiffness that turns the tool mesh by that which pulls it, m^2; 0: it never yields
        ("dt", "f8"),  # what a step is long, s
        ("gravity", "f8", 3),  # of free bodies, scene, m/s^2
        ("tool_mesh_id", "i4"),  # the tool's mesh, its frame at the tip centre; -1: a sphere tip
        ("padding", "i4"),
    ],
    align=True,
)
"""Scene-wide constants: one row. ``0 < eps_alert < eps_safety < eps_break``."""

CONTACT = np.dtype(
    [
        ("point", "f8", 3),  # nearest point of the body's surface, scene, m
        ("normal", "f8", 3),  # unit, from the body's surface to the tip centre or the tool's surface, scene
        ("displacement", "f8", 3),  # by which it pushes the tip off its goal, scene, m (force = stiffness x this)
        ("gap", "f8"),  # distance from the tool's surface to the body's, m
        ("body_id", "i4"),
        ("face_id", "i4"),
        ("feature", "i4"),  # 0..2 vertex, 3..5 edge (feature-3 -> feature-2), 6 face interior
        ("sliding", "i4"),  # 1 when the contact slips in this tick
        ("tool_face_id", "i4"),  # of a tool mesh, else 0: row in the imported mesh
        ("tool_feature", "i4"),  # of that face; with body, face and feature this is the contact's identity
        ("age", "i4"),  # of a tool mesh, else 0: ticks for which this identity has been in the table before
        ("padding", "i4"),
    ],
    align=True,
)

CONTACT_KEY = np.dtype(
    [
        ("normal", "f8", 3),  # unit, scene
        ("push", "f8", 3),  # impulse on the second body, scene, N s
        ("moment", "f8", 3),  # friction moment on it, scene, N m s
        ("body_id", "i4"),
        ("first_triangle", "i4"),  # of the body and of the tool, as in PROXIMITY
        ("second_triangle", "i4"),
        ("first_feature", "i4"),
        ("second_feature", "i4"),
        ("age", "i4"),  # as in CONTACT
        ("slipped", "i4"),  # ticks until it, having slipped, counts as stuck
        ("padding", "i4"),
    ],
    align=True,
)
"""What is remembered of a contact until the next tick."""

MAX_REMEMBERED = 64
"""Contacts remembered until the next tick."""

CONTACT_MEMORY = np.dtype(
    [
        ("rows", CONTACT_KEY, (MAX_REMEMBERED,)),  # those in the table, then others that span their groups
        ("count", "i4"),  # in the table
        ("known", "i4"),  # in all; the rows after are zero
        ("turn", "i4"),  # body with which the search for near features goes on
        ("padding", "i4"),
    ],
    align=True,
)
"""The contacts of a tool mesh in the last tick, and what the search for them in turns goes on with."""

MAX_PAIR_CONTACTS = 8
"""Contacts kept of a pair of bodies."""

BODY_CONTACT = np.dtype(
    [
        ("point_first", "f8", 3),  # of the first body's mesh, its frame, m
        ("point_second", "f8", 3),  # of the second's, its frame, m
        ("normal", "f8", 3),  # unit, from the first to the second, frame of the first
        ("push", "f8", 3),  # impulse on the second body in the last step, scene, N s
        ("moment", "f8", 3),  # friction moment on it in the last step, scene, N m s
        ("gap", "f8"),  # at the start of this step, of the surfaces, m
        ("first_triangle", "i4"),  # this and the next ones as in PROXIMITY
        ("second_triangle", "i4"),
        ("first_feature", "i4"),
        ("second_feature", "i4"),
        ("age", "i4"),  # as in CONTACT
        ("slipped", "i4"),  # ticks until it, having slipped, counts as stuck
    ],
    align=True,
)
"""A contact of two bodies of which at least one moves."""

PAIR = np.dtype(
    [
        ("front", FRONT),
        ("contacts", BODY_CONTACT, (MAX_PAIR_CONTACTS,)),
        ("listed", "f8"),  # FRONT.travelled when its contacts were listed, m
        ("first", "i4"),  # bodies; -1: the row is not in use
        ("second", "i4"),
        ("count", "i4"),  # of contacts
        ("complete", "i4"),  # 1: they are all that there were when they were listed
        ("fresh", "i4"),  # 1: they are not those of the last step, carried along
        ("padding", "i4"),
    ],
    align=True,
)
"""Two bodies that were near to one another in the last step, at least one of which moves."""

PAIR_TABLE = np.dtype(
    [
        ("count", "i4"),  # of pairs in use
        ("turn", "i4"),  # of these, by order: with which the listing of contacts goes on
        ("contacts", "i4"),  # of this step, the tool's included
        ("padding", "i4"),
    ],
    align=True,
)
"""State of the table of pairs."""

CONTACT_PLACE = np.dtype(
    [
        ("pair", "i4"),  # row of the table of pairs; -1: the tool's
        ("row", "i4"),  # of its contacts; of the tool's in the report
        ("first", "i4"),  # bodies; the tool's number is that of bodies in all
        ("second", "i4"),
        ("moments", "i4"),  # 1: the friction moments of the contact in the row before
    ],
    align=True,
)
"""Where a contact of this step is kept. One that resists spinning or rolling has a second row, see `moments`."""

CONTACT_CANDIDATE = np.dtype(
    [
        ("point", "f8", 3),  # as in CONTACT
        ("normal", "f8", 3),
        ("push", "f8", 3),  # of the last step, N s; zero for a new one
        ("moment", "f8", 3),  # of the last step, N m s
        ("gap", "f8"),
        ("rank", "f8"),  # the gap, a little less for what was in the table before, m
        ("x", "f8"),  # place in the plane of its group, m
        ("y", "f8"),
        ("body_id", "i4"),
        ("first_triangle", "i4"),  # this and the next ones as in PROXIMITY
        ("second_triangle", "i4"),
        ("first_feature", "i4"),
        ("second_feature", "i4"),
        ("first_id", "i4"),
        ("second_id", "i4"),
        ("known", "i4"),  # 0: new; 1: a neighbour of it was in the table; 2: it was itself
        ("age", "i4"),
        ("slipped", "i4"),
        ("picked", "i4"),  # times that it was picked, 2 at most
        ("padding", "i4"),
    ],
    align=True,
)
"""Two features near to one another that may become a contact."""

HULL_EDGE = np.dtype(
    [
        ("worth", "f8"),  # of the candidate that is worth most beyond the edge, m
        ("start", "i4"),  # candidates at its ends; what is beyond it lies on its left
        ("end", "i4"),
        ("first", "i4"),  # part of the order with the candidates beyond it
        ("last", "i4"),
        ("best", "i4"),  # the candidate that is worth most, -1: none
        ("padding", "i4"),
    ],
    align=True,
)
"""Edge of the polygon of contacts that is being built."""

CONTACT_WORK = np.dtype(
    [
        ("candidates", CONTACT_CANDIDATE, (MAX_PROXIMITIES,)),
        ("order", "i4", MAX_PROXIMITIES),  # candidates, group by group
        ("places", "i4", 2 * MAX_PROXIMITIES),  # hash table of candidates by their features, plus 1; 0: free
        ("edges", HULL_EDGE, (MAX_CONTACTS + 2,)),
        ("picks", "i4", (MAX_CONTACTS, MAX_CONTACTS + 1)),  # candidates of each group, what matters most first
        ("pick_count", "i4", MAX_CONTACTS),
        ("chosen", "i4", MAX_CONTACTS),  # candidates, nearest first
        ("shift", "f8", 3),  # of the second body against the first in this step, at the scene's origin, m
        ("turn", "f8", 3),  # the same of its rotation, rad
    ],
    align=True,
)
"""Working memory of the reduction of the contacts of a tool mesh. Nothing in it survives a step."""

PROXY = np.dtype(
    [
        ("position", "f8", 3),  # tip centre, scene, m
        ("orientation", "f8", 4),  # the tool's; a sphere tip turns freely
        ("sliding", "u1", 64),  # sphere tip, per body (modulo 64): ticks until a contact that slipped sticks
        ("stride", "f8"),  # tool mesh: share of the longest stride that the next pass asks about
    ],
    align=True,
)
"""The tool as the mechanics know it; the state that survives between ticks."""

STEP_INPUT = np.dtype(
    [
        ("goal_position", "f8", 3),  # where the hand wants the tip centre, scene, m
        ("goal_orientation", "f8", 4),
        ("goal_velocity", "f8", 3),  # how fast both move: what a damper compares with, m/s and rad/s, scene
        ("goal_angular_velocity", "f8", 3),
        ("stiffness", "f8"),  # of the spring that pulls the tip centre there, N/m; 0: no hand holds the tool, it stays
        ("rotational_stiffness", "f8"),  # N m/rad
        ("damping", "f8"),  # of a tool with mass, N s/m
        ("rotational_damping", "f8"),  # N m s/rad
    ],
    align=True,
)

BUDGET = np.dtype(
    [
        ("units", "i4"),  # node visits + triangle tests, for the whole tick
        ("passes", "i4"),  # straight passes of the tip (<= MAX_PATH - 1)
        ("sweeps", "i4"),  # contact-solver sweeps per pass, for a tool that touches nothing that moves
        ("visits", "i4"),  # contacts that the solver may visit, all sweeps together; 0: only sweeps count
    ],
    align=True,
)
"""Work allowed in one tick, counted in units of work and never in time."""

STEP_REPORT = np.dtype(
    [
        ("smallest_gap", "f8"),  # over the contact table, tip sphere to surface, m; -1 when the table is empty
        ("fraction", "f8"),  # part of the last wanted pass that was executed, 0..1
        ("residual", "f8"),  # worst violation left by the contact solve, m
        ("body_fraction", "f8"),  # least part of its motion that a moving body executed, 0..1
        ("body_gap", "f8"),  # over the contacts of bodies with each other, m; -1 without any
        ("body_residual", "f8"),  # worst natural-map residual of an island
        ("energy", "f8"),  # of the free bodies, kinetic and potential (0 at the scene's origin), J
        ("bodies_digest", "u8"),  # of all poses and velocities of moving bodies, see rtcore.dynamics.moving
        ("path", "f8", (MAX_PATH, 3)),  # tip centre way points, scene, m; rows after path_count are zero
        ("contacts", CONTACT, (MAX_CONTACTS,)),  # rows after contact_count are zero
        ("path_count", "i4"),
        ("contact_count", "i4"),
        ("units_used", "i4"),
        ("passes_used", "i4"),
        ("sweeps_used", "i4"),
        ("degraded", "i4"),  # DEGRADED_* bits
        ("body_contacts", "i4"),  # of bodies with each other
        ("islands", "i4"),  # of bodies that contacts join, those that sleep left out
        ("stopped", "i4"),  # moving bodies that were stopped early
        ("asleep", "i4"),  # of those contacts: held what rests, and were not solved again
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
        ("goal_orientation", "f8", 4),  # and the tool, unit
        ("wanted", "f8", 3),  # solver: where the tip wants to go in this pass, scene, m
        ("slid", "u1", 64),  # per body (index modulo 64): did its contact slip in this tick
        ("relative", RELATIVE),  # tool mesh: a body and the tool
        ("query", QUERY),
        ("hit", HIT),
        ("counters", COUNTERS),  # tool mesh: work of this step
    ],
    align=True,
)
"""Working memory of one step. Nothing in it survives: every step writes what it reads."""

SHAPE = np.dtype(
    [
        ("position", "f8", 3),  # of the shape's own frame in the body frame, m
        ("orientation", "f8", 4),
        ("size", "f8", 5),  # what each number means depends on the kind, see rtcore.geometry.shapes
        ("reach", "f8"),  # no point is farther from `position` than this, m; inf for a half space, 0 for a mesh
        ("kind", "i4"),  # SHAPE_* of rtcore.geometry.shapes
        ("level", "i4"),  # deepest level of the tree kept in the table of values
        ("value_first", "i4"),  # own part of the table of values (heights, control points, boxes)
        ("value_count", "i4"),
        ("rows", "i4"),  # height field: grid points along x and y
        ("columns", "i4"),
        ("root", "i4"),  # mesh: its root (index into the table of BOX_NODE)
        ("padding", "i4"),
    ],
    align=True,
)
"""A solid or a sheet that is given by numbers instead of triangles."""

MOVER = np.dtype(
    [
        ("velocity", "f8", 6),  # of the centre of mass, m/s, and angular, rad/s; scene axes
        ("inverse_mass", "f8"),  # 1/kg
        ("inverse_inertia", "f8", (3, 3)),  # about the centre of mass, scene axes, 1/(kg m^2)
    ],
    align=True,
)
"""A body that contacts move, as the contact solvers see it: six velocities and their inverse inertia."""

CONTACT_EQUATION = np.dtype(
    [
        ("jacobian_first", "f8", (3, 6)),  # relative velocity of the contact by the velocity of each mover, signs
        ("jacobian_second", "f8", (3, 6)),  # included; rows: normal (apart is positive), two tangents
        ("free", "f8", 3),  # relative velocity at no impulses, less what is wanted of it, m/s
        ("impulse", "f8", 3),  # along the same axes, N s: warm start, then the solution
        ("velocity", "f8", 3),  # relative velocity, less what is wanted of it, that belongs to the impulse, m/s
        ("compliance", "f8", 3),  # relative velocity that each unit of the same impulse makes besides, m/(N s^2) = 1/kg
        ("friction", "f8"),  # coefficient of Coulomb's law, >= 0; of moments: about the normal, m
        ("rolling", "f8"),  # of moments: coefficient about the tangents, m
        ("first", "i4"),  # rows of the movers; -1: nothing that moves
        ("second", "i4"),
        ("block_first", "i4"),  # its row of blocks of the Delassus operator, in the order of their columns
        ("block_count", "i4"),
        ("diagonal", "i4"),  # the one of its own
        ("parent", "i4"),  # -1: a contact; else the contact, in the row before, whose friction moments these are
    ],
    align=True,
)
"""One contact with friction: velocity = W impulse + free, impulse in the friction cone, no impulse where it opens.

Or what resists spinning and rolling at the contact in the row before, see rtcore.solvers.rolling: velocities are
angular, rad/s, impulses moments, N m s, compliance is 1/(kg m^2). The Gauss-Seidel solvers, Newton's method and the
natural-map residual know such rows.
"""

DELASSUS_BLOCK = np.dtype([("values", "f8", (3, 3)), ("column", "i4"), ("padding", "i4")], align=True)
"""What the impulse of one contact (its row in the equations) adds to the relative velocity of another, 1/kg."""

PROBLEM_SIZE = np.dtype(
    [("movers", "i4"), ("contacts", "i4"), ("blocks", "i4"), ("incomplete", "i4")],  # incomplete: 1, no room for blocks
    align=True,
)
"""Rows in use of the tables of a contact problem."""

SOLVER_SETTINGS = np.dtype(
    [
        ("tolerance", "f8"),  # natural-map residual at which to stop, see rtcore.solvers.problem
        ("sweeps", "i4"),  # units of work allowed: passes over all contacts, or Newton iterations
        ("padding", "i4"),
    ],
    align=True,
)

SOLVER_REPORT = np.dtype(
    [
        ("start_residual", "f8"),  # of the warm start
        ("residual", "f8"),  # of the answer
        ("sweeps_used", "i4"),
        ("converged", "i4"),  # 1: the residual came down to the tolerance
    ],
    align=True,
)
