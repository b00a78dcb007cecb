"""Which pairs of near features are contacts: local minima of the distance, on the outside of both surfaces.

A pair whose normal lies outside the normal cone of one of its features is the ghost of a nearer one beside it.
Source: Lin and Canny 1991 (Voronoi regions of features).
"""

from typing import Any

from rtcore.collision.features import FACE
from rtcore.kernels import inner
from rtcore.spatial import Quaternion, Vector, add, cross, dot, length, rotate, scaled, vector

EXACT = 1e-6
"""Slope (rad) of a surface that counts as level: above the rounding of normals, below any ghost that can be felt."""
BEND = 1.0 / 16.0
"""A pair of edges may lie outside of an edge's cone by this share of the cone's width: bodies at rest are tilted."""
CORNER_SLOPE = 0.1
"""Steepest slope of the edges at a corner that an edge of the other mesh is nearest to, for the same reason."""
FACE_SLOPE = 0.5
"""The same for a corner above a face, where the normal is right whatever the slope."""
MAX_FAN = 64
"""Triangles looked at around a corner."""


@inner
def _edge(triangle: Any, start: int, end: int) -> Vector:
    # From one corner of a triangle to another.
    v = triangle.vertices
    return v[end, 0] - v[start, 0], v[end, 1] - v[start, 1], v[end, 2] - v[start, 2]


@inner
def _inwards(triangle: Any, k: int) -> Vector:
    # Unit, in the plane of the triangle, square to edge k and away from it.
    d = cross(vector(triangle.normal), _edge(triangle, k, (k + 1) % 3))
    return scaled(d, 1.0 / length(d))


@inner
def _off_edge(triangles: Any, row: int, k: int, way: Vector, crossing: bool) -> bool:
    """Does the surface at edge k of a triangle go on beyond it towards `way` (unit, to the other point, its own frame)?

    crossing: the other feature is an edge as well; its own triangle is then looked at too, and a tolerance is
    allowed for. Otherwise the point is known to be the nearest of its own triangle.
    """
    triangle = triangles[row]
    step = triangle.across[k]
    if step == 0:  # open, or unknown what is there
        return crossing and triangle.degenerate == 0 and dot(_inwards(triangle, k), way) > EXACT + BEND
    other = triangles[row + step]
    m = 0
    while m < 2 and other.edge_ids[m] != triangle.edge_ids[k]:
        m += 1
    beyond = _inwards(other, m)
    slope = dot(beyond, way)
    if crossing:
        here = _inwards(triangle, k)
        if max(slope, dot(here, way)) > EXACT + BEND * length(add(here, beyond)):
            return True
    elif slope > EXACT:
        return True
    if triangle.open != 0 or other.open != 0:
        return False
    return dot(add(vector(triangle.normal), vector(other.normal)), way) < -EXACT  # seen through the body


@inner
def _off_corner(triangles: Any, row: int, k: int, way: Vector, slope: float) -> bool:
    """Does an edge at corner k of a triangle climb more than `slope` towards `way` (unit, its own frame)?

    Goes around the corner both ways, as far as the surface does. True too if all around it faces away.
    """
    corner = triangles[row].vertex_ids[k]
    outside = False
    for side in range(2):
        at = row
        here = k
        far = (k + 1) % 3 if side == 0 else (k + 2) % 3
        gate = k if side == 0 else (k + 2) % 3
        for _ in range(MAX_FAN):
            triangle = triangles[at]
            e = _edge(triangle, here, far)
            if dot(e, way) > slope * length(e):
                return True
            outside |= triangle.open != 0 or dot(vector(triangle.normal), way) > -EXACT
            step = triangle.across[gate]
            if step == 0:
                outside = True
                break
            edge = triangle.edge_ids[gate]
            at += step
            if at == row:
                return not outside
            triangle = triangles[at]
            here = 0
            while here < 2 and triangle.vertex_ids[here] != corner:
                here += 1
            gate = (here + 2) % 3 if triangle.edge_ids[here] == edge else here
            far = (here + 1) % 3 if gate == here else (here + 2) % 3
    return False


@inner
def _above_face(triangles: Any, face: int, row: int, k: int, away: Vector, way: Vector) -> bool:
    # A corner and the inside of a face: not if it is behind the face, nor high up on an edge that comes down to it.
    triangle = triangles[face]
    if triangle.open == 0 and dot(vector(triangle.normal), away) < 0.0:
        return False
    triangle = triangles[row]
    for far in ((k + 1) % 3, (k + 2) % 3):
        e = _edge(triangle, k, far)
        if dot(e, way) > FACE_SLOPE * length(e):
            return False
    return True


@inner
def is_contact(triangles: Any, row: Any, turn: Quaternion) -> bool:
    """Is a PROXIMITY a contact of its own, not the ghost of one beside it? turn: first's frame to the second's."""
    if row.distance <= 0.0:
        return True
    one = row.first_triangle
    two = row.second_triangle
    i = row.first_feature
    k = row.second_feature
    away = vector(row.normal)  # from the first, in its frame
    if 3 <= i < FACE:
        crossing = k >= 3
        if crossing and ((triangles[one].flat >> (i - 3)) & 1 != 0 or (triangles[two].flat >> (k - 3)) & 1 != 0):
            return False
        if _off_edge(triangles, one, i - 3, away, crossing):
            return False
    back = scaled(rotate(turn, away), -1.0)  # from the second, in its frame
    if i == FACE:
        return _above_face(triangles, one, two, k, away, back)
    if k == FACE:
        return _above_face(triangles, two, one, i, back, away)
    if i >= 3:
        if k >= 3:
            return not _off_edge(triangles, two, k - 3, back, True)
        return not _off_corner(triangles, two, k, back, CORNER_SLOPE)
    if k >= 3:
        if _off_edge(triangles, two, k - 3, back, False):
            return False
        return not _off_corner(triangles, one, i, away, CORNER_SLOPE)
    return not (_off_corner(triangles, one, i, away, EXACT) or _off_corner(triangles, two, k, back, EXACT))
