"""Posing a held body while nobody is engaged: never onto the tool or a body that moves, and never round one of them."""

import math

import numpy as np

from haptics.codes import BAD_VALUE, OK
from rtcore.collision.mesh_distance import mesh_distance
from rtcore.collision.nearest import clearance
from rtcore.collision.overlap import place_pair
from rtcore.collision.pair_slots import drop_contacts, rounding_of
from rtcore.collision.pair_state import reset_front
from rtcore.kernels import inner, kernel
from rtcore.model import Model
from rtcore.motion import still
from rtcore.spatial import (
    Quaternion,
    Vector,
    add,
    conjugate,
    cross,
    length,
    put_quaternion,
    put_vector,
    quaternion,
    rotate,
    subtract,
    to_body,
    vector,
)
from rtcore.state import State
from rtcore.tables import HELD

LARGEST_COORDINATE = 1e3
"""m: a pose farther away than this is no pose of a device or a body."""

UNIT_TOLERANCE = 1e-3
"""How far from 1 the norm of a quaternion may be."""

ENCLOSED = 0.9
"""Winding number from which a point counts as inside: 1 in a closed body, at most 1/2 before a flat plate."""


@kernel
def winding_number(model: Model, state: State, body_id: int, point: np.ndarray) -> float:
    """How many times the body's surface winds round a scene point: the sum of signed solid angles over 4 pi.

    Looks at every triangle once (about 1 ms for 30,000), which an idle tick can bear. Source: Van Oosterom and
    Strackee 1983 for the solid angle; Jacobson et al. 2013 for its use on open meshes.
    """
    return _winding(model, model.bodies[body_id].mesh_id, to_body(state.poses[body_id], vector(point)))


@inner
def _winding(model: Model, mesh_id: int, at: Vector) -> float:
    """How many times a mesh winds round a point of its frame."""
    mesh = model.meshes[mesh_id]
    total = 0.0
    for i in range(mesh.triangle_first, mesh.triangle_first + mesh.triangle_count):
        corners = model.triangles[i].vertices
        a = subtract((corners[0, 0], corners[0, 1], corners[0, 2]), at)
        b = subtract((corners[1, 0], corners[1, 1], corners[1, 2]), at)
        c = subtract((corners[2, 0], corners[2, 1], corners[2, 2]), at)
        size_a, size_b, size_c = length(a), length(b), length(c)
        normal = cross(b, c)
        volume = a[0] * normal[0] + a[1] * normal[1] + a[2] * normal[2]
        ab = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
        bc = b[0] * c[0] + b[1] * c[1] + b[2] * c[2]
        ca = c[0] * a[0] + c[1] * a[1] + c[2] * a[2]
        total += math.atan2(volume, size_a * size_b * size_c + ab * size_c + bc * size_a + ca * size_b)
    return total / (2.0 * math.pi)


@inner
def _tip_room(model: Model, state: State) -> float:
    """How far a tip's centre is from all bodies, m, counted up to tip_radius + eps_safety."""
    world = model.world[0]
    return min(clearance(model, state, state.proxy[0].position), world.tip_radius + world.eps_safety)


@inner
def _stands(model: Model, state: State, other: int) -> tuple[int, Vector, Quaternion]:
    """(mesh, position, orientation) of a body, or of a mesh as tool, whose number is that of bodies in all."""
    if other == len(model.bodies):
        proxy = state.proxy[0]
        return model.world[0].tool_mesh_id, vector(proxy.position), quaternion(proxy.orientation)
    pose = state.poses[other]
    return model.bodies[other].mesh_id, vector(pose.position), quaternion(pose.orientation)


@inner
def _room(model: Model, state: State, body_id: int, at: Vector, turn: Quaternion, other: int) -> float:
    """How far a body at a pose is from another one or the tool, m, counted up to eps_safety."""
    mesh_id = model.bodies[body_id].mesh_id
    rounding = rounding_of(model, body_id, other)
    other_mesh, place, facing = _stands(model, state, other)
    relative = state.scratch[0].relative
    still(relative.first, at, turn)
    still(relative.second, place, facing)
    first_root = model.meshes[mesh_id].node_first
    second_root = model.meshes[other_mesh].node_first
    root = model.nodes[second_root]
    work = state.query_work[0]
    place_pair(relative, vector(root.centre), root.radius, 0.0, 0.0, work.start)
    # fmt: off
    distance = mesh_distance(
        model.nodes, model.triangles, first_root, second_root, work.start, model.world[0].eps_safety + rounding, work,
        state.scratch[0].hit,
    )
    # fmt: on
    return distance - rounding


@inner
def _enclosed(model: Model, state: State, mesh_id: int, at: Vector, turn: Quaternion, other: int) -> int:
    """Bit 0: a mesh at a pose encloses a body or the tool; bit 1: that encloses it. Where they do not cross, one point
    tells of each: a vertex."""
    other_mesh, place, facing = _stands(model, state, other)
    root = model.nodes[model.meshes[mesh_id].node_first]
    other_root = model.nodes[model.meshes[other_mesh].node_first]
    between = add(subtract(rotate(turn, vector(root.centre)), rotate(facing, vector(other_root.centre))), at)
    if length(subtract(between, place)) > root.radius + other_root.radius:
        return 0
    bits = 0
    corner = subtract(add(rotate(turn, _corner(model, mesh_id)), at), place)
    if abs(_winding(model, other_mesh, rotate(conjugate(facing), corner))) > ENCLOSED:
        bits = 2
    corner = subtract(add(rotate(facing, _corner(model, other_mesh)), place), at)
    if abs(_winding(model, mesh_id, rotate(conjugate(turn), corner))) > ENCLOSED:
        bits += 1
    return bits


@inner
def _corner(model: Model, mesh_id: int) -> Vector:
    """A vertex of a mesh, m, its own frame."""
    return vector(model.triangles[model.meshes[mesh_id].triangle_first].vertices[0])


@inner
def _may_leave(model: Model, state: State, body_id: int, at: Vector, turn: Quaternion) -> bool:
    """May a body that is posed anew have left this pose, seen by a mesh as tool and by all bodies that move?"""
    tool = len(model.bodies)
    mesh_id = model.bodies[body_id].mesh_id
    pose = state.poses[body_id]
    new_at = vector(pose.position)
    new_turn = quaternion(pose.orientation)
    for other in range(tool + 1):
        if other < tool and state.pairs.movers[other] < 0:
            continue
        if _room(model, state, body_id, new_at, new_turn, other) < _room(model, state, body_id, at, turn, other):
            return False
        now = _enclosed(model, state, mesh_id, new_at, new_turn, other)
        if now != _enclosed(model, state, mesh_id, at, turn, other):
            return False
    return True


@inner
def _forget_distances(state: State, body_id: int) -> None:
    """Forget what is known of the distances of a body to a mesh as tool and to bodies that move."""
    reset_front(state.fronts[body_id], state.front_entries[body_id])
    pairs = state.pairs
    for k in range(pairs.table[0].count):
        row = pairs.order[k]
        pair = pairs.rows[row]
        if pair.first == body_id or pair.second == body_id:
            reset_front(pair.front, pairs.entries[row])
            drop_contacts(pair, 0)
            pair.listed = 0.0
            pair.complete = 0


@kernel
def pose_body(model: Model, state: State, values: np.ndarray) -> int:
    """Move a held body to values = (body id, position, orientation xyzw); returns OK or BAD_VALUE, then unmoved.

    Refused when the surface would come within eps_safety of the tool's, the tip sphere or the mesh, or of that of a
    body that moves (one that already rests a rounding closer may keep that distance), or when one of the two would
    change from outside the other to inside or back. What was known of the distances of the body is forgotten.
    """
    wanted = values[0]
    # Comparisons are written so that NaN fails them.
    if not (wanted >= 0.0 and wanted < len(model.bodies) and wanted == math.floor(wanted)):
        return BAD_VALUE
    body_id = int(wanted)
    if model.bodies[body_id].kind != HELD:
        return BAD_VALUE
    for k in range(3):
        if not abs(values[1 + k]) <= LARGEST_COORDINATE:
            return BAD_VALUE
    square = 0.0
    for k in range(4):
        square += values[4 + k] * values[4 + k]
    norm = math.sqrt(square)
    if not abs(norm - 1.0) <= UNIT_TOLERANCE:
        return BAD_VALUE

    pose = state.poses[body_id]
    old_position = vector(pose.position)
    old_orientation = quaternion(pose.orientation)
    with_mesh = model.world[0].tool_mesh_id >= 0
    tip = state.proxy[0].position
    room = 0.0 if with_mesh else _tip_room(model, state)
    inside = False if with_mesh else abs(winding_number(model, state, body_id, tip)) > ENCLOSED
    for k in range(3):
        pose.position[k] = values[1 + k]
    for k in range(4):
        pose.orientation[k] = values[4 + k] / norm
    if with_mesh:
        good = _may_leave(model, state, body_id, old_position, old_orientation)
    else:
        now = abs(winding_number(model, state, body_id, tip)) > ENCLOSED
        good = _tip_room(model, state) >= room and now == inside
    if not good:
        put_vector(pose.position, old_position)
        put_quaternion(pose.orientation, old_orientation)
        return BAD_VALUE
    if with_mesh:
        _forget_distances(state, body_id)
    return OK
