"""The contact set: where the scene is locally nearest to the tip."""

import math

import numpy as np

from rtcore.collision.features import FACE
from rtcore.collision.nearest import box_distance_squared, nearest_on_triangle, push, push_children
from rtcore.kernels import inner, kernel
from rtcore.spatial import quaternion, rotate, to_body, to_scene, vector
from rtcore.tables import DEADBAND, DEGRADED_CONTACTS, MAX_CANDIDATES, MAX_CONTACTS

TOUCH_SHARE = 0.1
"""A nearest point within this share of eps_alert of another triangle counts as lying on it: small cracks in a mesh are
no edges that could be felt."""
SAME_NORMAL = 1.0 - 1e-8
"""Cosine above which two contacts are one half space (normals within 0.14 mrad)."""


@inner
def _before(a: np.void, b: np.void) -> bool:
    """Order of candidates: by distance, then body, then face."""
    if a.distance != b.distance:
        return a.distance < b.distance
    if a.body_id != b.body_id:
        return a.body_id < b.body_id
    return a.face_id < b.face_id


@inner
def _fill(candidate: np.void, x: float, y: float, z: float, distance: float, triangle: int, feature: int) -> None:
    candidate.point[0] = x
    candidate.point[1] = y
    candidate.point[2] = z
    candidate.distance = distance
    candidate.triangle = triangle
    candidate.feature = feature


@inner
def _collect(
    model: tuple, poses: np.ndarray, x: float, y: float, z: float, radius: float, units: int, scratch: np.void
) -> tuple[int, int, float, bool]:
    """Write the nearest triangles within `radius` of the scene point to scratch.candidates, nearest first in `order`.

    Returns (how many, units left, distance up to which no triangle is missing, whether units ran out).
    """
    reach = radius * radius
    complete = radius
    short = False
    count = 0
    for body_id in range(len(model.bodies)):
        pose = poses[body_id]
        px, py, pz = to_body(pose, (x, y, z))
        root = model.meshes[model.bodies[body_id].mesh_id].node_first
        top = push(scratch, 0, root, box_distance_squared(model.nodes[root], px, py, pz), reach)
        while top > 0:
            top -= 1
            if scratch.stack_key[top] > reach:
                continue
            node_id = scratch.stack_node[top]
            node = model.nodes[node_id]
            cost = 1 + node.count
            if units < cost:
                short = True  # the rest of the stack is skipped unless there is a cheaper node
                continue
            units -= cost
            if node.count == 0:
                top = push_children(model.nodes, node_id, px, py, pz, reach, scratch, top)
            for i in range(node.first, node.first + node.count):
                qx, qy, qz, square, feature = nearest_on_triangle(model.triangles[i], px, py, pz)
                if square > reach:
                    continue
                slot = count
                if count == MAX_CANDIDATES:
                    slot = 0
                    for j in range(1, MAX_CANDIDATES):
                        if _before(scratch.candidates[slot], scratch.candidates[j]):
                            slot = j
                    worst = scratch.candidates[slot]
                    reach = worst.distance * worst.distance
                    complete = min(complete, worst.distance)
                    distance = math.sqrt(square)
                    if distance > worst.distance or (
                        distance == worst.distance
                        and (body_id, model.triangles[i].face_id) > (worst.body_id, worst.face_id)
                    ):
                        continue
                else:
                    count += 1
                candidate = scratch.candidates[slot]
                _fill(candidate, qx, qy, qz, math.sqrt(square), i, feature)
                candidate.body_id = body_id
                candidate.face_id = model.triangles[i].face_id
    for i in range(count):
        j = i
        while j > 0 and _before(scratch.candidates[i], scratch.candidates[scratch.order[j - 1]]):
            scratch.order[j] = scratch.order[j - 1]
            j -= 1
        scratch.order[j] = i
    return count, units, complete, short


@inner
def _lies_on(model: tuple, poses: np.ndarray, point: np.void, other: np.void, tolerance: float) -> bool:
    """Does the nearest point of one candidate lie on the triangle of another?"""
    x = point.point[0]
    y = point.point[1]
    z = point.point[2]
    if point.body_id != other.body_id:
        x, y, z = to_body(poses[other.body_id], to_scene(poses[point.body_id], (x, y, z)))
    triangle = model.triangles[other.triangle]
    corner = triangle.vertices
    if (
        x < min(corner[0, 0], corner[1, 0], corner[2, 0]) - tolerance
        or x > max(corner[0, 0], corner[1, 0], corner[2, 0]) + tolerance
        or y < min(corner[0, 1], corner[1, 1], corner[2, 1]) - tolerance
        or y > max(corner[0, 1], corner[1, 1], corner[2, 1]) + tolerance
        or z < min(corner[0, 2], corner[1, 2], corner[2, 2]) - tolerance
        or z > max(corner[0, 2], corner[1, 2], corner[2, 2]) + tolerance
    ):
        return False
    _, _, _, square, _ = nearest_on_triangle(triangle, x, y, z)
    return square <= tolerance * tolerance


@inner
def _is_known(report: np.void, count: int, nx: float, ny: float, nz: float) -> bool:
    """Is there a contact with this normal among the first `count`?"""
    for j in range(count):
        known = report.contacts[j].normal
        if known[0] * nx + known[1] * ny + known[2] * nz > SAME_NORMAL:
            return True
    return False


@inner
def copy_contact(source: np.void, target: np.void) -> None:
    """Copy one CONTACT record, its push and slip excepted, which the solver writes."""
    for k in range(3):
        target.point[k] = source.point[k]
        target.normal[k] = source.normal[k]
    target.gap = source.gap
    target.body_id = source.body_id
    target.face_id = source.face_id
    target.feature = source.feature


@inner
def pushes(contact: np.void) -> bool:
    """Whether a CONTACT of the tool holds it off its goal."""
    push = contact.displacement
    return push[0] != 0.0 or push[1] != 0.0 or push[2] != 0.0


@inner
def recall(model: tuple, state: tuple, report: np.void) -> None:
    """Add what pushed in the last pass to the contacts, where the pass ended too near to something else.

    Across a concave edge each wall is a local minimum only on its own side, so that the tip could go to and fro between
    the two for ever. A wall is recalled when all that is near now lies in front of it; behind it, the surface has
    turned away (a convex edge), and the tip is free to follow.
    """
    scratch = state.scratch[0]
    position = state.proxy[0].position
    world = model.world[0]
    seen = report.contact_count
    if seen == 0 or report.contacts[0].gap >= world.eps_safety * (1.0 - DEADBAND):
        return
    for i in range(scratch.kept_count):
        kept = scratch.kept[i]
        n = kept.normal
        if report.contact_count == MAX_CONTACTS or _is_known(report, report.contact_count, n[0], n[1], n[2]):
            continue
        in_front = True
        for j in range(seen):
            point = report.contacts[j].point
            height = 0.0
            for k in range(3):
                height += n[k] * (point[k] - kept.point[k])
            in_front &= height >= 0.0
        gap = kept.gap + n[0] * position[0] + n[1] * position[1] + n[2] * position[2]
        if in_front and gap >= report.contacts[0].gap:
            contact = report.contacts[report.contact_count]
            copy_contact(kept, contact)
            contact.gap = gap
            report.contact_count += 1


@kernel
def gather(model: tuple, state: tuple, x: float, y: float, z: float, units: int, report: np.void) -> int:
    """Fill report.contacts with the contacts of the tip centred at (x, y, z), scene, and return the units left.

    A contact is a local minimum of the distance from the tip centre to the surface of the scene, nearer than eps_break
    to the tip sphere. The nearest point of a triangle that lies on the border of a neighbour which comes nearer still
    is none: the surface goes on there, and a half space put up at that point would be a ghost (the bump felt on inner
    edges of a flat region). Every neighbour is at most as far as the point it shares, so the search has seen it.
    Contacts that are the same half space are merged; the nearest is kept, ties go by body, then face.
    """
    world = model.world[0]
    scratch = state.scratch[0]
    tolerance = TOUCH_SHARE * world.eps_alert
    found, units, complete, short = _collect(
        model, state.poses, x, y, z, world.tip_radius + world.eps_break, units, scratch
    )
    if short or complete < world.tip_radius + world.eps_safety:
        report.degraded |= DEGRADED_CONTACTS
    count = 0
    for i in range(found):
        candidate = scratch.candidates[scratch.order[i]]
        ghost = False
        if candidate.feature != FACE:
            for j in range(i):
                if _lies_on(model, state.poses, candidate, scratch.candidates[scratch.order[j]], tolerance):
                    ghost = True
                    break
        if ghost:
            continue
        pose = state.poses[candidate.body_id]
        qx, qy, qz = to_scene(pose, vector(candidate.point))
        if candidate.distance > 0.0:
            nx = (x - qx) / candidate.distance
            ny = (y - qy) / candidate.distance
            nz = (z - qz) / candidate.distance
        else:
            normal = vector(model.triangles[candidate.triangle].normal)
            nx, ny, nz = rotate(quaternion(pose.orientation), normal)
        if _is_known(report, count, nx, ny, nz):
            continue
        if count == MAX_CONTACTS:
            report.degraded |= DEGRADED_CONTACTS
            break
        contact = report.contacts[count]
        contact.point[0] = qx
        contact.point[1] = qy
        contact.point[2] = qz
        contact.normal[0] = nx
        contact.normal[1] = ny
        contact.normal[2] = nz
        contact.gap = candidate.distance - world.tip_radius
        contact.body_id = candidate.body_id
        contact.face_id = candidate.face_id
        contact.feature = candidate.feature
        count += 1
    report.contact_count = count
    return units
