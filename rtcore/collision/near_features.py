"""Pairs of features within reach of one another, found in turns where there are too many for one tick.

The front of a pair of bodies says which of its entries may be within reach; what is below them is looked into depth
first, at the present pose, as far as the units go. The next tick goes on from there. Where two sheets lie along one
another there are thousands of pairs of triangles within reach, and a round takes some ticks; in between, the triangles
of contacts that are known already are looked at in every tick.
"""

import math
from typing import Any

from rtcore.collision.features import FACE, along, point_triangle, segment_segment
from rtcore.collision.first_contact import opens_first
from rtcore.collision.leaf import ROUNDING, along_normal, corners_of, extent, largest, on_triangle, placed, turned
from rtcore.collision.overlap import box_gap_to
from rtcore.kernels import inner, kernel
from rtcore.spatial import Vector, put_vector, scaled, subtract, vector


@inner
def _feature_id(triangle: Any, row: int, feature: int) -> int:
    if feature < 3:
        return triangle.vertex_ids[feature]
    if feature < FACE:
        return triangle.edge_ids[feature - 3]
    return row


@inner
def _list(
    proximities: Any,
    triangles: Any,
    first: int,
    second: int,
    first_feature: int,
    second_feature: int,
    p: Vector,
    q: Vector,
    distance: float,
) -> None:
    if proximities.count == len(proximities.rows):
        proximities.incomplete = 1
        return
    row = proximities.rows[proximities.count]
    proximities.count += 1
    put_vector(row.point_first, p)
    put_vector(row.point_second, q)
    put_vector(row.normal, scaled(subtract(q, p), 1.0 / distance if distance > 0.0 else 0.0))
    row.distance = distance
    row.first_triangle = first
    row.second_triangle = second
    row.first_feature = first_feature
    row.second_feature = second_feature
    row.first_id = _feature_id(triangles[first], first, first_feature)
    row.second_id = _feature_id(triangles[second], second, second_feature)


@inner
def list_pair(
    triangles: Any, first: int, second: int, placement: Any, reach: float, counters: Any, proximities: Any
) -> int:
    """Add the features of two triangles that are within reach of one another to a table; return the units of work.

    triangles: TRIANGLE table; first, second: rows of it, of the first and the second body; placement: PLACEMENT, at one
    time; reach: m; counters: COUNTERS; proximities: PROXIMITIES record. Only features that the triangles stand for are
    looked at: edges against edges where both nearest points are inside of them, and vertices against faces.
    """
    one = triangles[first]
    two = triangles[second]
    counters.leaf_pairs += 1
    if one.owned & 7 == 0 and two.owned & 7 == 0 and (one.owned >> 3 == 0 or two.owned >> 3 == 0):
        return 0
    a = corners_of(one)
    own = corners_of(two)
    b = (placed(placement, own[0]), placed(placement, own[1]), placed(placement, own[2]))
    least = reach + ROUNDING * (extent(a) + 3.0 * extent(own) + largest(vector(placement.translation)))
    second_normal = turned(placement, vector(two.normal))
    b_vertex, b_edge = along_normal(vector(one.normal), a, b)
    a_vertex, a_edge = along_normal(second_normal, b, a)
    units = 0
    for i in range(3):
        if (one.owned >> i) & 1 != 0:
            units += 1
            counters.vertex_face += 1
            if a_vertex[i] <= least:
                s, t, square, feature = point_triangle(a[i], b[0], b[1], b[2])
                distance = math.sqrt(square)
                if distance < reach:
                    _list(proximities, triangles, first, second, i, feature, a[i], on_triangle(b, s, t), distance)
        if (two.owned >> i) & 1 != 0:
            units += 1
            counters.face_vertex += 1
            if b_vertex[i] <= least:
                s, t, square, feature = point_triangle(b[i], a[0], a[1], a[2])
                distance = math.sqrt(square)
                if distance < reach:
                    _list(proximities, triangles, first, second, feature, i, on_triangle(a, s, t), b[i], distance)
        if (one.owned >> (3 + i)) & 1 == 0 or a_edge[i] > least:
            continue
        for j in range(3):
            if (two.owned >> (3 + j)) & 1 == 0 or b_edge[j] > least:
                continue
            units += 1
            counters.edge_edge += 1
            start = a[i]
            way = subtract(a[(i + 1) % 3], start)
            other_start = b[j]
            other_end = b[(j + 1) % 3]
            s, t, square = segment_segment(start, a[(i + 1) % 3], other_start, other_end)
            distance = math.sqrt(square)
            if distance < reach and 0.0 < s < 1.0 and 0.0 < t < 1.0:
                q = along(other_start, subtract(other_end, other_start), t)
                _list(proximities, triangles, first, second, 3 + i, 3 + j, along(start, way, s), q, distance)
    return units


@kernel
def list_again(
    triangles: Any, first: int, second: int, placement: Any, reach: float, counters: Any, proximities: Any
) -> int:
    """List the near features of two triangles, and of their neighbours that a corner is nearest to by now.

    Arguments and result as of list_pair. A corner that has slid over the edge of a face is thus followed to the next.
    """
    begin = proximities.count
    units = list_pair(triangles, first, second, placement, reach, counters, proximities)
    end = proximities.count
    for i in range(begin, end):
        row = proximities.rows[i]
        if 3 <= row.first_feature < FACE and row.second_feature < 3:
            step = triangles[first].across[row.first_feature - 3]
            if step != 0:
                units += list_pair(triangles, first + step, second, placement, reach, counters, proximities)
        elif 3 <= row.second_feature < FACE and row.first_feature < 3:
            step = triangles[second].across[row.second_feature - 3]
            if step != 0:
                units += list_pair(triangles, first, second + step, placement, reach, counters, proximities)
    return units


@inner
def round_off(proximities: Any, begin: int, body_id: int, first: float, second: float) -> None:
    """Make the rows of PROXIMITIES from `begin` on those of a body, and of surfaces that are rounded off.

    first, second: roundings (m) of the two bodies, which every distance in these rows is above the sum of.
    """
    for i in range(begin, proximities.count):
        row = proximities.rows[i]
        row.body_id = body_id
        if first + second > 0.0:
            normal = vector(row.normal)
            put_vector(row.point_first, along(vector(row.point_first), normal, first))
            put_vector(row.point_second, along(vector(row.point_second), normal, -second))
            row.distance -= first + second


@inner
def _descend(
    nodes: Any,
    triangles: Any,
    front: Any,
    placement: Any,
    reach: float,
    counters: Any,
    proximities: Any,
    left: int,
) -> int:
    # Look into the pairs on the stack until it is empty or the units are used up: units left.
    while front.walk_top > 0 and left > 0:
        front.walk_top -= 1
        first = front.walk_first[front.walk_top]
        second = front.walk_second[front.walk_top]
        a = nodes[first]
        b = nodes[second]
        left -= 1
        counters.box_tests += 1
        if box_gap_to(a, b, placement, reach) > reach:
            continue
        if a.count > 0 and b.count > 0:
            left -= list_pair(triangles, a.first, b.first, placement, reach, counters, proximities)
        elif opens_first(a, b):
            _push(front, a.right, second)
            _push(front, first + 1, second)
        else:
            _push(front, first, b.right)
            _push(front, first, second + 1)
    return left


@inner
def _push(front: Any, first: int, second: int) -> None:
    front.walk_first[front.walk_top] = first
    front.walk_second[front.walk_top] = second
    front.walk_top += 1


@kernel
def list_near(
    nodes: Any,
    triangles: Any,
    front: Any,
    entries: Any,
    placement: Any,
    reach: float,
    counters: Any,
    proximities: Any,
    units: int,
) -> tuple[int, bool]:
    """Go on listing the features of a pair of bodies that are within reach: (units left, is the list complete?).

    nodes: BOX_NODE table; triangles: TRIANGLE table; front: FRONT record and entries: its (2, capacity) FRONT_ENTRY
    table, as moved to this pose; placement: PLACEMENT at it; reach: m; counters: COUNTERS; proximities:
    PROXIMITIES record, appended to; units: of work allowed, of which the last pair of triangles may take 15 more. The
    list is complete when all that is within reach was found by this call.
    """
    rows = entries[front.current]
    border = (front.travelled + front.ahead + reach) * (1.0 + ROUNDING)
    left = _descend(nodes, triangles, front, placement, reach, counters, proximities, units)
    if front.walk >= front.count:
        front.walk = 0
    for _ in range(front.count):
        if left <= 0 or front.walk_top > 0:
            return left, False
        entry = rows[front.walk]
        front.walk = front.walk + 1 if front.walk + 1 < front.count else 0
        if entry.expiry <= border:
            _push(front, entry.first, entry.second)
            left = _descend(nodes, triangles, front, placement, reach, counters, proximities, left)
    if front.walk_top > 0:
        return left, False
    front.walk = 0
    return left, True
