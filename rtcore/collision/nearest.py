"""Nearest points: of one triangle, of one box, and over a whole scene."""

import math

import numpy as np

from rtcore.collision.features import FACE
from rtcore.kernels import inner, kernel
from rtcore.spatial import to_body, vector


@kernel
def nearest_on_triangle(triangle: np.void, x: float, y: float, z: float) -> tuple[float, float, float, float, int]:
    """Return the point of the triangle nearest to (x, y, z), the squared distance and the feature it lies on.

    triangle: TRIANGLE record; coordinates in its frame, m; feature: 0..2 vertices, 3..5 edges, FACE. Exact up to
    rounding for needles and for triangles without area too: only edges that the point lies outside of are looked at,
    and all of them when there is no inside. The stored normal makes it faster than
    :func:`rtcore.collision.features.point_triangle`, which does without one.
    """
    corner = triangle.vertices
    normal = triangle.normal
    nx = normal[0]
    ny = normal[1]
    nz = normal[2]
    height = nx * (x - corner[0, 0]) + ny * (y - corner[0, 1]) + nz * (z - corner[0, 2])
    best = math.inf
    bx = x
    by = y
    bz = z
    feature = FACE
    for k in range(3):
        j = 0 if k == 2 else k + 1
        ax = corner[k, 0]
        ay = corner[k, 1]
        az = corner[k, 2]
        ex = corner[j, 0] - ax
        ey = corner[j, 1] - ay
        ez = corner[j, 2] - az
        px = x - ax
        py = y - ay
        pz = z - az
        inward = (ny * ez - nz * ey) * px + (nz * ex - nx * ez) * py + (nx * ey - ny * ex) * pz
        if inward < 0.0 or triangle.degenerate != 0:
            square = ex * ex + ey * ey + ez * ez
            along = ex * px + ey * py + ez * pz
            if along <= 0.0 or not square > 0.0:
                qx = ax
                qy = ay
                qz = az
                code = k
            elif along >= square:
                qx = corner[j, 0]
                qy = corner[j, 1]
                qz = corner[j, 2]
                code = j
            else:
                share = along / square
                qx = ax + share * ex
                qy = ay + share * ey
                qz = az + share * ez
                code = 3 + k
            distance = (x - qx) * (x - qx) + (y - qy) * (y - qy) + (z - qz) * (z - qz)
            if distance < best:
                best = distance
                bx = qx
                by = qy
                bz = qz
                feature = code
    if feature == FACE:
        best = height * height
        bx = x - height * nx
        by = y - height * ny
        bz = z - height * nz
    return bx, by, bz, best, feature


@inner
def box_distance_squared(node: np.void, x: float, y: float, z: float) -> float:
    """Return the squared distance from (x, y, z) to the box of a BOX_NODE record; 0 inside."""
    axes = node.axes
    half = node.half
    x -= node.centre[0]
    y -= node.centre[1]
    z -= node.centre[2]
    dx = max(abs(axes[0, 0] * x + axes[0, 1] * y + axes[0, 2] * z) - half[0], 0.0)
    dy = max(abs(axes[1, 0] * x + axes[1, 1] * y + axes[1, 2] * z) - half[1], 0.0)
    dz = max(abs(axes[2, 0] * x + axes[2, 1] * y + axes[2, 2] * z) - half[2], 0.0)
    return dx * dx + dy * dy + dz * dz


@kernel
def push(scratch: np.void, top: int, node_id: int, key: float, reach: float) -> int:
    """Put a node on the stack of `top` entries unless its key is above `reach`, and return the new `top`."""
    if key <= reach:
        scratch.stack_node[top] = node_id
        scratch.stack_key[top] = key
        top += 1
    return top


@inner
def push_both(
    scratch: np.void, top: int, left: int, left_key: float, right: int, right_key: float, reach: float
) -> int:
    """Put two nodes on the stack unless their keys are above `reach`, the one with the smaller key on top."""
    if right_key < left_key:
        return push(scratch, push(scratch, top, left, left_key, reach), right, right_key, reach)
    return push(scratch, push(scratch, top, right, right_key, reach), left, left_key, reach)


@inner
def push_children(
    nodes: np.ndarray, node_id: int, x: float, y: float, z: float, reach: float, scratch: np.void, top: int
) -> int:
    """Put the children of a node that lie within the squared distance `reach` on the stack, the nearer one on top."""
    left = node_id + 1
    right = nodes[node_id].right
    left_key = box_distance_squared(nodes[left], x, y, z)
    right_key = box_distance_squared(nodes[right], x, y, z)
    return push_both(scratch, top, left, left_key, right, right_key, reach)


@kernel
def clearance(model: tuple, state: tuple, position: np.ndarray) -> float:
    """Return the distance (m) from the scene point `position` (3,) to the nearest surface; inf without bodies.

    No budget: meant for checks outside the tick (start position, posing of a body).
    """
    scratch = state.scratch[0]
    best = math.inf
    for body_id in range(len(model.bodies)):
        pose = state.poses[body_id]
        x, y, z = to_body(pose, vector(position))
        root = model.meshes[model.bodies[body_id].mesh_id].node_first
        top = push(scratch, 0, root, box_distance_squared(model.nodes[root], x, y, z), best)
        while top > 0:
            top -= 1
            if scratch.stack_key[top] >= best:
                continue
            node_id = scratch.stack_node[top]
            node = model.nodes[node_id]
            if node.count == 0:
                top = push_children(model.nodes, node_id, x, y, z, best, scratch, top)
            for i in range(node.first, node.first + node.count):
                _, _, _, square, _ = nearest_on_triangle(model.triangles[i], x, y, z)
                best = min(best, square)
    return math.sqrt(best)
