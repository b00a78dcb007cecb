"""Posing a held body while nobody is engaged: never onto the tool, and never so that the tool changes sides."""

import math

import numpy as np
from numba import njit

from haptics.codes import BAD_VALUE, OK
from rtcore.collision.mesh_distance import mesh_distance
from rtcore.collision.nearest import clearance
from rtcore.collision.overlap import place_pair
from rtcore.collision.pair_state import reset_front
from rtcore.kernels import inner
from rtcore.model import Model
from rtcore.motion import still
from rtcore.spatial import (
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
    to_scene,
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


@njit(cache=True, nogil=True, error_model="numpy")
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
def _room(model: Model, state: State, body_id: int) -> float:
    """How far the tool's surface is from what it must not come nearer to, m; never more than eps_safety has to say.

    For a mesh the distance to this body, counted up to eps_safety; for a sphere tip that of the tip centre to all
    bodies, counted up to tip_radius + eps_safety.
    """
    world = model.world[0]
    if world.tool_mesh_id < 0:
        return min(clearance(model, state, state.proxy[0].position), world.tip_radius + world.eps_safety)
    relative = state.scratch[0].relative
    body = state.poses[body_id]
    proxy = state.proxy[0]
    still(relative.first, vector(body.position), quaternion(body.orientation))
    still(relative.second, vector(proxy.position), quaternion(proxy.orientation))
    first_root = model.meshes[model.bodies[body_id].mesh_id].node_first
    second_root = model.meshes[world.tool_mesh_id].node_first
    root = model.nodes[second_root]
    work = state.query_work[0]
    place_pair(relative, vector(root.centre), root.radius, 0.0, 0.0, work.start)
    # fmt: off
    return mesh_distance(
        model.nodes, model.triangles, first_root, second_root, work.start, world.eps_safety, work,
        state.scratch[0].hit,
    )
    # fmt: on


@inner
def _enclosed(model: Model, state: State, body_id: int) -> int:
    """Bit 0: the body encloses the tool; bit 1: a mesh as tool encloses the body. Where they do not cross, one point
    tells of each: a vertex of the mesh, or the tip centre."""
    tool_mesh_id = model.world[0].tool_mesh_id
    proxy = state.proxy[0]
    pose = state.poses[body_id]
    point = vector(proxy.position)
    bits = 0
    if tool_mesh_id >= 0:
        turn = quaternion(proxy.orientation)
        corner = to_scene(pose, _corner(model, model.bodies[body_id].mesh_id))
        if abs(_winding(model, tool_mesh_id, rotate(conjugate(turn), subtract(corner, point)))) > ENCLOSED:
            bits = 2
        point = add(rotate(turn, _corner(model, tool_mesh_id)), point)
    if abs(_winding(model, model.bodies[body_id].mesh_id, to_body(pose, point))) > ENCLOSED:
        bits += 1
    return bits


@inner
def _corner(model: Model, mesh_id: int) -> Vector:
    """A vertex of a mesh, m, its own frame."""
    return vector(model.triangles[model.meshes[mesh_id].triangle_first].vertices[0])


@njit(cache=True, nogil=True, error_model="numpy")
def pose_body(model: Model, state: State, values: np.ndarray) -> int:
    """Move a held body to values = (body id, position, orientation xyzw); returns OK or BAD_VALUE, then unmoved.

    Refused when the surface would come within eps_safety of the tool's, the tip sphere or the mesh (a tool that already
    rests a rounding closer to something may keep that distance), or when one of the two would change from outside the
    other to inside or back. What was known of the distance of the pair is forgotten.
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
    room = _room(model, state, body_id)
    enclosed = _enclosed(model, state, body_id)
    for k in range(3):
        pose.position[k] = values[1 + k]
    for k in range(4):
        pose.orientation[k] = values[4 + k] / norm
    if _room(model, state, body_id) < room or _enclosed(model, state, body_id) != enclosed:
        put_vector(pose.position, old_position)
        put_quaternion(pose.orientation, old_orientation)
        return BAD_VALUE
    if model.world[0].tool_mesh_id >= 0:
        reset_front(state.fronts[body_id], state.front_entries[body_id])
    return OK
