"""Posing a held body while nobody is engaged: never onto the tool, and never so that the tool changes sides."""

import math

import numpy as np
from numba import njit

from haptics.codes import BAD_VALUE, OK
from rtcore.collision.nearest import clearance
from rtcore.model import Model
from rtcore.spatial import cross, length, put_quaternion, put_vector, quaternion, subtract, to_body, vector
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
    pose = state.poses[body_id]
    mesh = model.meshes[model.bodies[body_id].mesh_id]
    at = to_body(pose, vector(point))
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


@njit(cache=True, nogil=True, error_model="numpy")
def pose_body(model: Model, state: State, values: np.ndarray) -> int:
    """Move a held body to values = (body id, position, orientation xyzw); returns OK or BAD_VALUE, then unmoved.

    Refused when the surface would come within ``tip_radius + eps_safety`` of the tip centre (a tool that already rests
    a rounding closer to something may keep that distance), or when the tool would change from outside to inside.
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

    world = model.world[0]
    tip = state.proxy[0].position
    pose = state.poses[body_id]
    old_position = vector(pose.position)
    old_orientation = quaternion(pose.orientation)
    distance = clearance(model, state, tip)
    inside = abs(winding_number(model, state, body_id, tip)) > ENCLOSED
    for k in range(3):
        pose.position[k] = values[1 + k]
    for k in range(4):
        pose.orientation[k] = values[4 + k] / norm
    too_near = clearance(model, state, tip) < min(world.tip_radius + world.eps_safety, distance)
    if too_near or (abs(winding_number(model, state, body_id, tip)) > ENCLOSED) != inside:
        put_vector(pose.position, old_position)
        put_quaternion(pose.orientation, old_orientation)
        return BAD_VALUE
    return OK
