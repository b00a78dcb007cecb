"""How far apart are two meshes at given poses: branch and bound over their trees of boxes.

Made for questions outside the tick (a start, a pose put by hand): it has no budget, but its memory is a stack of fixed
size, because pairs of nodes are looked at depth first, of two new pairs the nearer one before the other.

Source: Larsen, Gottschalk, Lin and Manocha 2000 (distance queries on trees of volumes), here with the separating axes
of two oriented boxes as the bound.
"""

import math
from typing import Any

from rtcore.collision.features import FACE, along, point_triangle, segment_segment
from rtcore.collision.first_contact import clear_hit, opens_first
from rtcore.collision.leaf import Corners, corners_of, crossing, placed
from rtcore.collision.overlap import box_gap
from rtcore.kernels import inner, kernel
from rtcore.spatial import Vector, cross, dot, put_vector, scaled, subtract


@kernel
def mesh_distance(
    nodes: Any, triangles: Any, first_root: int, second_root: int, placement: Any, limit: float, work: Any, hit: Any
) -> float:
    """The distance (m) of two surfaces, or `limit` where they are not nearer than that; 0 where they cross or touch.

    nodes: BOX_NODE table and triangles: TRIANGLE table of both meshes; first_root, second_root: rows of nodes;
    placement: PLACEMENT of an interval of no length, for the pose of the second in the first's frame; limit: m, above
    0, may be infinite; work: QUERY_WORK, its stack is used. hit: HIT, written: where something nearer than the limit
    was found, `found` is 1, the features are those of the nearest pair, point and normal are as in queries; where two
    triangles cross, their features are an edge and a face interior (6), the gap is 0 and the normal zero.

    Surfaces only: one that is wholly inside the other has the distance of the two surfaces. The distance is that of two
    points of the surfaces, to a few ulp of the coordinates; what is passed over is not nearer by more than that.
    """
    clear_hit(hit, 0.0)
    best = limit
    stack = work.stack
    top = _push(stack, 0, first_root, second_root, box_gap(nodes[first_root], nodes[second_root], placement))
    while top > 0:
        top -= 1
        item = stack[top]
        first, second = item.first, item.second
        if item.expiry >= best:
            continue
        a = nodes[first]
        b = nodes[second]
        if a.count > 0 and b.count > 0:
            if crossing(triangles, a.first, b.first, placement, hit):
                _describe_crossing(triangles, placement, hit)
                return 0.0
            best = _least(triangles, a.first, b.first, placement, best, hit)
            if best == 0.0:
                return 0.0
            continue
        left_first = right_first = first
        left_second = right_second = second
        if opens_first(a, b):
            left_first, right_first = first + 1, a.right
        else:
            left_second, right_second = second + 1, b.right
        left = box_gap(nodes[left_first], nodes[left_second], placement)
        right = box_gap(nodes[right_first], nodes[right_second], placement)
        # A pair of leaves is at most as deep as both trees together, and each level leaves one pair waiting: the stack
        # suffices.
        if left <= right:
            top = _push(stack, top, right_first, right_second, right)
            top = _push(stack, top, left_first, left_second, left)
        else:
            top = _push(stack, top, left_first, left_second, left)
            top = _push(stack, top, right_first, right_second, right)
    return best


@inner
def _push(stack: Any, top: int, first: int, second: int, gap: float) -> int:
    item = stack[top]
    item.first = first
    item.second = second
    item.expiry = gap
    return top + 1


@inner
def _least(triangles: Any, first: int, second: int, placement: Any, best: float, hit: Any) -> float:
    # The least distance of two triangles' features if it is below `best`, which else is the answer.
    a = corners_of(triangles[first])
    own = corners_of(triangles[second])
    b = (placed(placement, own[0]), placed(placement, own[1]), placed(placement, own[2]))
    square = best * best
    for k in range(3):
        a0 = a[k]
        along_a = subtract(a[(k + 1) % 3], a0)
        for m in range(3):
            b0 = b[m]
            b1 = b[(m + 1) % 3]
            s, t, found = segment_segment(a0, a[(k + 1) % 3], b0, b1)
            if found < square:
                square = found
                p = along(a0, along_a, s)
                q = along(b0, subtract(b1, b0), t)
                _note(hit, first, second, _on_edge(k, s), _on_edge(m, t), p, q, found)
    for k in range(3):
        v, w, found, feature = point_triangle(a[k], b[0], b[1], b[2])
        if found < square:
            square = found
            _note(hit, first, second, k, feature, a[k], _inside(b, v, w), found)
        v, w, found, feature = point_triangle(b[k], a[0], a[1], a[2])
        if found < square:
            square = found
            _note(hit, first, second, feature, k, _inside(a, v, w), b[k], found)
    return min(best, math.sqrt(square))


@inner
def _on_edge(edge: int, share: float) -> int:
    # The feature at a share of an edge: one of its ends, or the edge.
    if share == 0.0:
        return edge
    return (edge + 1) % 3 if share == 1.0 else 3 + edge


@inner
def _inside(corners: Corners, v: float, w: float) -> Vector:
    a = corners[0]
    return along(along(a, subtract(corners[1], a), v), subtract(corners[2], a), w)


@inner
def _note(
    hit: Any, first: int, second: int, first_feature: int, second_feature: int, p: Vector, q: Vector, square: float
) -> None:
    hit.found = 1
    hit.first_triangle = first
    hit.second_triangle = second
    hit.first_feature = first_feature
    hit.second_feature = second_feature
    hit.gap = math.sqrt(square)
    put_vector(hit.point, p)
    put_vector(hit.normal, scaled(subtract(q, p), 1.0 / hit.gap if hit.gap > 0.0 else 0.0))


@inner
def _describe_crossing(triangles: Any, placement: Any, hit: Any) -> None:
    # Where the edge of one triangle goes through the other, first's frame.
    a = corners_of(triangles[hit.first_triangle])
    own = corners_of(triangles[hit.second_triangle])
    b = (placed(placement, own[0]), placed(placement, own[1]), placed(placement, own[2]))
    face = b
    other = a
    edge = hit.first_feature - 3
    if hit.first_feature == FACE:
        face = a
        other = b
        edge = hit.second_feature - 3
    start = other[edge]
    way = subtract(other[(edge + 1) % 3], start)
    normal = cross(subtract(face[1], face[0]), subtract(face[2], face[0]))
    # The ends are on different sides of the plane, so the divisor is not zero.
    put_vector(hit.point, along(start, way, dot(normal, subtract(face[0], start)) / dot(normal, way)))
    put_vector(hit.normal, (0.0, 0.0, 0.0))
    hit.gap = 0.0
    hit.found = 1
