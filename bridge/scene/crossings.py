"""Where a mesh goes through itself: pairs of its faces that cross, found through its own tree."""

import time
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from rtcore.collision.features import FACE
from rtcore.collision.first_contact import opens_first
from rtcore.collision.leaf import Corners, corners_of, crossing
from rtcore.collision.overlap import box_gap_to
from rtcore.spatial import cross, dot, subtract
from rtcore.tables import HIT, MAX_TREE_DEPTH, PLACEMENT

SECONDS = 2.0
"""Time after which the search stops."""
UNITS = 20_000
"""Pairs of nodes between two looks at the clock."""
KEPT = 64
"""Pairs that are named."""
SHALLOW = 1e-9
"""Share of the mesh's radius by which an edge has to come out on either side: less is a touch."""


class Crossings(NamedTuple):
    """Faces that cross others."""

    pairs: int
    """How many pairs of faces cross that share no vertex."""
    faces: np.ndarray
    """(k,) their face_ids, ascending."""
    named: np.ndarray
    """(j, 2) face_ids of the first KEPT pairs found."""
    complete: bool
    """False when time ran out: there may be more."""


def crossings(nodes: np.ndarray, triangles: np.ndarray, seconds: float = SECONDS) -> Crossings:
    """Find the pairs of triangles of one mesh that go through each other and share no vertex.

    An edge of one has to go through the inside of the other; triangles that touch, or that lie in one plane, do not
    count.

    Args:
        nodes, triangles: BOX_NODE and TRIANGLE table of the mesh.
        seconds: time after which the search stops.
    """
    placement = np.zeros(1, PLACEMENT)[0]
    placement["rotation"] = np.eye(3)
    hit = np.zeros(1, HIT)[0]
    stack = np.zeros((8 * MAX_TREE_DEPTH, 2), dtype=np.int64)
    crossed = np.zeros(len(triangles), dtype=np.int64)
    named = np.zeros((KEPT, 2), dtype=np.int64)
    top, count = 1, 0
    least = SHALLOW * float(nodes["radius"][0])
    deadline = time.monotonic() + seconds
    while top > 0 and time.monotonic() < deadline:
        top, count = _search(nodes, triangles, placement, least, stack, top, UNITS, crossed, named, count, hit)
    face_ids = triangles["face_id"]
    return Crossings(
        count, np.sort(face_ids[crossed != 0]), np.sort(face_ids[named[: min(count, KEPT)]], axis=1), top == 0
    )


@njit(cache=True, nogil=True, error_model="numpy")
def _search(
    nodes: np.ndarray,
    triangles: np.ndarray,
    placement: Any,
    least: float,
    stack: np.ndarray,
    top: int,
    units: int,
    crossed: np.ndarray,
    named: np.ndarray,
    count: int,
    hit: Any,
) -> tuple[int, int]:
    """Go on with the pairs of nodes on the stack for some units: (pairs left on it, crossing pairs so far)."""
    while top > 0 and units > 0:
        units -= 1
        top -= 1
        first = stack[top, 0]
        second = stack[top, 1]
        a = nodes[first]
        b = nodes[second]
        if first == second:
            if a.count == 0:
                top = _push(stack, top, first + 1, first + 1)
                top = _push(stack, top, a.right, a.right)
                top = _push(stack, top, first + 1, a.right)
            continue
        if box_gap_to(a, b, placement, 0.0) > 0.0:
            continue
        if a.count > 0 and b.count > 0:
            if _share_vertex(triangles[a.first], triangles[b.first]):
                continue
            if crossing(triangles, a.first, b.first, placement, hit) and _depth(triangles, hit) > least:
                crossed[a.first] = 1
                crossed[b.first] = 1
                if count < len(named):
                    named[count, 0] = a.first
                    named[count, 1] = b.first
                count += 1
        elif opens_first(a, b):
            top = _push(stack, top, first + 1, second)
            top = _push(stack, top, a.right, second)
        else:
            top = _push(stack, top, first, second + 1)
            top = _push(stack, top, first, b.right)
    return top, count


@njit(cache=True, nogil=True, error_model="numpy")
def _push(stack: np.ndarray, top: int, first: int, second: int) -> int:
    stack[top, 0] = first
    stack[top, 1] = second
    return top + 1


@njit(cache=True, nogil=True, error_model="numpy")
def _share_vertex(one: Any, other: Any) -> bool:
    for i in range(3):
        for j in range(3):
            if one.vertex_ids[i] == other.vertex_ids[j]:
                return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def _depth(triangles: np.ndarray, hit: Any) -> float:
    """How far the nearer end of the edge that goes through a face is from the plane of it, m."""
    face: Corners = corners_of(triangles[hit.first_triangle])
    other = corners_of(triangles[hit.second_triangle])
    edge = hit.second_feature - 3
    if hit.first_feature != FACE:
        face, other = other, face
        edge = hit.first_feature - 3
    normal = cross(subtract(face[1], face[0]), subtract(face[2], face[0]))
    size = np.sqrt(dot(normal, normal))
    if size == 0.0:
        return 0.0
    start = abs(dot(normal, subtract(other[edge], face[0])))
    end = abs(dot(normal, subtract(other[(edge + 1) % 3], face[0])))
    return min(start, end) / size
