"""How thin a mesh's walls are, estimated by rays from its faces inwards."""

from typing import NamedTuple

import numpy as np
from numba import njit

from rtcore.tables import MAX_TREE_DEPTH

MAX_RAYS = 60_000
PARALLEL = 1e-12
"""Sine of the angle below which a ray runs along a side of a box."""
FACING = 0.5
"""A face behind counts as the other side of the wall when the normals are less than 60 degrees from opposite."""


class Wall(NamedTuple):
    """The thinnest wall that was found."""

    thickness: float
    """m"""
    point: np.ndarray
    """(3,) where the ray began, mesh frame, m."""
    face_id: int


def thinnest_wall(faces: np.ndarray, nodes: np.ndarray, triangles: np.ndarray, inward: bool = False) -> Wall | None:
    """The shortest way through the solid from a face to one behind it that looks the other way.

    Rays start at each face's middle and near its corners, against its normal. Faces that share a corner with it are
    passed over: a sharp edge is not a wall. An estimate from above: between the rays it may be thinner.

    Args:
        faces: (m, 3) vertex indices by face_id.
        nodes, triangles: the tree of these faces.
        inward: the faces look inwards (the rays then run along the normals).

    Returns:
        None when no ray meets another side.
    """
    per_face = 4
    stride = max(1, -(-len(triangles) * per_face // MAX_RAYS))
    corners = np.ascontiguousarray(faces[triangles["face_id"]])
    extent = 2.0 * float(np.linalg.norm(nodes["half"][0]))
    best, row, ray = _search(nodes, triangles, corners, stride, 1.0 if inward else -1.0, 1e-12 * extent)
    if row < 0:
        return None
    return Wall(float(best), _origin(triangles[row]["vertices"], ray), int(triangles[row]["face_id"]))


def _origin(vertices: np.ndarray, ray: int) -> np.ndarray:
    weights = np.full(3, 1.0 / 3.0) if ray == 3 else np.where(np.arange(3) == ray, 0.9, 0.05)
    return weights @ vertices


@njit(cache=True, nogil=True, error_model="numpy")
def _search(
    nodes: np.ndarray, triangles: np.ndarray, corners: np.ndarray, stride: int, sign: float, smallest: float
) -> tuple[float, int, int]:
    """Thickness, row of the triangle and number of the ray of the thinnest wall; row -1 for none."""
    stack = np.empty(2 * MAX_TREE_DEPTH, np.int64)
    origin = np.empty(3)
    travel = np.empty(3)
    best = np.inf
    best_row = -1
    best_ray = -1
    for row in range(0, len(triangles), stride):
        own = triangles[row]
        if own.degenerate != 0:
            continue
        direction = own.normal
        for k in range(3):
            travel[k] = sign * direction[k]
        for ray in range(4):
            for k in range(3):
                total = 0.0
                for c in range(3):
                    weight = 1.0 / 3.0 if ray == 3 else (0.9 if c == ray else 0.05)
                    total += weight * own.vertices[c, k]
                origin[k] = total
            stack[0] = 0
            top = 1
            while top > 0:
                top -= 1
                node_id = stack[top]
                node = nodes[node_id]
                enter = 0.0
                leave = best
                for k in range(3):
                    start = 0.0
                    rate = 0.0
                    for j in range(3):
                        start += node.axes[k, j] * (origin[j] - node.centre[j])
                        rate += node.axes[k, j] * travel[j]
                    if abs(rate) < PARALLEL:
                        if abs(start) > node.half[k] + smallest:
                            leave = -np.inf
                        continue
                    near = (-node.half[k] - start) / rate
                    far = (node.half[k] - start) / rate
                    enter = max(enter, min(near, far))
                    leave = min(leave, max(near, far))
                # Rounding may put a flat box just beside its own faces.
                if enter > leave + smallest:
                    continue
                if node.count == 0:
                    stack[top] = node.right
                    stack[top + 1] = node_id + 1
                    top += 2
                    continue
                for other_row in range(node.first, node.first + node.count):
                    other = triangles[other_row]
                    if other.degenerate != 0:
                        continue
                    cosine = 0.0
                    for k in range(3):
                        cosine += direction[k] * other.normal[k]
                    if cosine > -FACING or _share_corner(corners, row, other_row):
                        continue
                    distance = _hit(origin, direction, sign, other.vertices)
                    if smallest < distance < best:
                        best = distance
                        best_row = row
                        best_ray = ray
    return best, best_row, best_ray


@njit(cache=True, nogil=True, error_model="numpy")
def _share_corner(corners: np.ndarray, a: int, b: int) -> bool:
    for i in range(3):
        for j in range(3):
            if corners[a, i] == corners[b, j]:
                return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def _hit(origin: np.ndarray, direction: np.ndarray, sign: float, vertices: np.ndarray) -> float:
    """Distance along a ray to a triangle, -1 when it passes by (Moeller and Trumbore 1997)."""
    dx, dy, dz = sign * direction[0], sign * direction[1], sign * direction[2]
    ax, ay, az = vertices[1, 0] - vertices[0, 0], vertices[1, 1] - vertices[0, 1], vertices[1, 2] - vertices[0, 2]
    bx, by, bz = vertices[2, 0] - vertices[0, 0], vertices[2, 1] - vertices[0, 1], vertices[2, 2] - vertices[0, 2]
    px, py, pz = dy * bz - dz * by, dz * bx - dx * bz, dx * by - dy * bx
    determinant = ax * px + ay * py + az * pz
    if determinant == 0.0:
        return -1.0
    tx, ty, tz = origin[0] - vertices[0, 0], origin[1] - vertices[0, 1], origin[2] - vertices[0, 2]
    u = (tx * px + ty * py + tz * pz) / determinant
    qx, qy, qz = ty * az - tz * ay, tz * ax - tx * az, tx * ay - ty * ax
    v = (dx * qx + dy * qy + dz * qz) / determinant
    if u < -1e-12 or v < -1e-12 or u + v > 1.0 + 1e-12:
        return -1.0
    return (bx * qx + by * qy + bz * qz) / determinant
