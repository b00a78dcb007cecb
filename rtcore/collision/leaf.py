"""One pair of triangles: the distances of its features at one time, and when they first come too near.

Two triangles that do not cross come into contact first edge against edge, or vertex against face. With QUERY_OWNED each
edge and each vertex of a mesh is looked at only in the one triangle that owns it, so that every pair of features is
tested once although it belongs to many pairs of triangles (representative triangles, Curtis, Tamstorf, Manocha 2008).
"""

import math
from typing import Any

from rtcore.collision.elementary.advance import (
    EDGE_EDGE,
    FACE_VERTEX,
    VERTEX_FACE,
    Bounds,
    ball,
    carried,
    first_approach,
    motion_bounds,
    planes_keep,
    pose_at_start,
)
from rtcore.collision.features import FACE, along, point_triangle, segment_segment
from rtcore.kernels import inner, kernel
from rtcore.motion import ALGEBRAIC, relative_pose, relative_velocity
from rtcore.spatial import Vector, add, cross, dot, put_vector, rotate, scaled, subtract, vector
from rtcore.tables import QUERY_OWNED

ROUNDING = 64.0 * 2.0**-52
"""Times the sum of the lengths that enter: above the rounding of the distance of two features in a common frame."""
ITERATIONS = 128
"""Most iterations of one elementary test; at the cap it answers with the time proven so far."""
PLAINLY = 2.0
"""Times what may touch: features that a face's plane shows to be farther apart are not looked at.
Of nearer ones the front gains by the distance itself, which it then need not ask for again so soon."""
EVERYTHING = 63
"""All bits of TRIANGLE.owned."""

Corners = tuple[Vector, Vector, Vector]


@kernel
def placed(placement: Any, v: Vector) -> Vector:
    """A point of the second body (m, its own frame) in the frame of the first, at the middle of a PLACEMENT."""
    m = placement.rotation
    p = placement.translation
    return (
        m[0, 0] * v[0] + m[0, 1] * v[1] + m[0, 2] * v[2] + p[0],
        m[1, 0] * v[0] + m[1, 1] * v[1] + m[1, 2] * v[2] + p[1],
        m[2, 0] * v[0] + m[2, 1] * v[1] + m[2, 2] * v[2] + p[2],
    )


@kernel
def turned(placement: Any, v: Vector) -> Vector:
    """A direction of the second body in the frame of the first, at the middle of a PLACEMENT."""
    m = placement.rotation
    return (
        m[0, 0] * v[0] + m[0, 1] * v[1] + m[0, 2] * v[2],
        m[1, 0] * v[0] + m[1, 1] * v[1] + m[1, 2] * v[2],
        m[2, 0] * v[0] + m[2, 1] * v[1] + m[2, 2] * v[2],
    )


@kernel
def largest(v: Vector) -> float:
    """The largest of the absolute components."""
    return max(abs(v[0]), abs(v[1]), abs(v[2]))


@kernel
def extent(corners: Corners) -> float:
    """The largest absolute coordinate of the corners."""
    return max(largest(corners[0]), largest(corners[1]), largest(corners[2]))


@inner
def corners_of(triangle: Any) -> Corners:
    """The three corners of a TRIANGLE record, m, mesh frame."""
    v = triangle.vertices
    return (
        (v[0, 0], v[0, 1], v[0, 2]),
        (v[1, 0], v[1, 1], v[1, 2]),
        (v[2, 0], v[2, 1], v[2, 2]),
    )


@inner
def _edges_through(face: Corners, other: Corners) -> int:
    # Which edge of `other` goes through the inside of `face`: 0..2, or -1.
    normal = cross(subtract(face[1], face[0]), subtract(face[2], face[0]))
    h0 = dot(normal, subtract(other[0], face[0]))
    h1 = dot(normal, subtract(other[1], face[0]))
    h2 = dot(normal, subtract(other[2], face[0]))
    if (h0 > 0.0 and h1 > 0.0 and h2 > 0.0) or (h0 < 0.0 and h1 < 0.0 and h2 < 0.0):
        return -1
    heights = (h0, h1, h2)
    for k in range(3):
        start = other[k]
        end = other[(k + 1) % 3]
        if heights[k] * heights[(k + 1) % 3] < 0.0:
            edge = subtract(end, start)
            x = subtract(face[0], start)
            y = subtract(face[1], start)
            z = subtract(face[2], start)
            v0 = dot(edge, cross(x, y))
            v1 = dot(edge, cross(y, z))
            v2 = dot(edge, cross(z, x))
            if (v0 > 0.0 and v1 > 0.0 and v2 > 0.0) or (v0 < 0.0 and v1 < 0.0 and v2 < 0.0):
                return k
    return -1


@kernel
def crossing(triangles: Any, first: int, second: int, start: Any, hit: Any) -> bool:
    """True if an edge of one triangle goes through the other one at the pose of `start`; then `hit` tells which.

    triangles: TRIANGLE table; first, second: rows of it; start: PLACEMENT. No feature distance is zero then, though the
    bodies are in one another. Touching and coplanar triangles do not count: their features have distance zero.
    """
    face = corners_of(triangles[first])
    own = corners_of(triangles[second])
    other = (placed(start, own[0]), placed(start, own[1]), placed(start, own[2]))
    edge = _edges_through(face, other)
    if edge >= 0:
        _note(hit, start.u0, first, second, FACE, 3 + edge)
        return True
    edge = _edges_through(other, face)
    if edge >= 0:
        _note(hit, start.u0, first, second, 3 + edge, FACE)
        return True
    return False


@inner
def _note(hit: Any, time: float, first: int, second: int, first_feature: int, second_feature: int) -> None:
    hit.time = time
    hit.found = 1
    hit.truncated = 0
    hit.first_triangle = first
    hit.second_triangle = second
    hit.first_feature = first_feature
    hit.second_feature = second_feature


@inner
def _stop(hit: Any, time: float) -> None:
    hit.time = time
    hit.found = 0
    hit.truncated = 1
    hit.first_triangle = -1
    hit.second_triangle = -1
    hit.first_feature = -1
    hit.second_feature = -1


@inner
def on_triangle(corners: Corners, v: float, w: float) -> Vector:
    """The point corner 0 + v (corner 1 - corner 0) + w (corner 2 - corner 0)."""
    a = corners[0]
    return along(along(a, subtract(corners[1], a), v), subtract(corners[2], a), w)


@inner
def _beyond(x: float, y: float, z: float, low: float, high: float) -> tuple[Vector, Vector]:
    # How far three points are beyond an interval on an axis: (each, each two in turn); not positive if they are not.
    up = (x - high, y - high, z - high)
    down = (low - x, low - y, low - z)
    one = (max(up[0], down[0]), max(up[1], down[1]), max(up[2], down[2]))
    two = (
        max(min(up[0], up[1]), min(down[0], down[1])),
        max(min(up[1], up[2]), min(down[1], down[2])),
        max(min(up[2], up[0]), min(down[2], down[0])),
    )
    return one, two


@inner
def along_normal(normal: Vector, face: Corners, other: Corners) -> tuple[Vector, Vector]:
    """Distances along a face's normal (m): no vertex, and no edge, of the other triangle is nearer to it than its own.

    normal: unit; face, other: corners, m. The face itself may spread along its normal, which is but some unit vector
    where it has no area.
    """
    x = dot(normal, face[0])
    y = dot(normal, face[1])
    z = dot(normal, face[2])
    low = min(x, y, z)
    high = max(x, y, z)
    return _beyond(dot(normal, other[0]), dot(normal, other[1]), dot(normal, other[2]), low, high)


@inner
def _bounds(relative: Any, a: Corners, own: Corners, limit: float) -> Bounds:
    # What the elementary tests of one pair of triangles have in common.
    first, first_radius = ball(a)
    second, second_radius = ball(own)
    return motion_bounds(relative, first, first_radius, second, second_radius, limit)


@inner
def _test(
    relative: Any, shape: int, a: Corners, b: Corners, c: Corners, bounds: Bounds, limit: float, query: Any
) -> tuple[float, bool, int]:
    return first_approach(
        relative,
        shape,
        a,
        b,
        c,
        bounds,
        query.separation,
        limit,
        query.time_tolerance,
        query.position_tolerance,
        ITERATIONS,
    )


@kernel
def leaf_pair(
    triangles: Any,
    first: int,
    second: int,
    relative: Any,
    start: Any,
    speed: float,
    query: Any,
    limit: float,
    counters: Any,
    hit: Any,
) -> tuple[float, float, int]:
    """Test the features of two triangles over [0, limit]: (new limit, least distance at the start, units of work).

    triangles: TRIANGLE table; first, second: rows of it, of the first and the second body; relative: RELATIVE record;
    start: PLACEMENT at one time before which the pair is known to be free; speed: bound on the speed of the second's
    triangle in the first's frame, m per unit of u; query: QUERY record. A contact at u <= limit that is earlier than
    the one in `hit` replaces it, and the limit comes down to it; so does the time that is proven where an elementary
    test ends at its cap, as HIT.truncated. The least distance (m) is over the features tested here, less the rounding;
    infinite if other pairs of triangles stand for all of them.
    """
    one = triangles[first]
    two = triangles[second]
    first_owned = one.owned if query.flags & QUERY_OWNED else EVERYTHING
    second_owned = two.owned if query.flags & QUERY_OWNED else EVERYTHING
    counters.leaf_pairs += 1
    if first_owned & 7 == 0 and second_owned & 7 == 0 and (first_owned >> 3 == 0 or second_owned >> 3 == 0):
        return limit, math.inf, 0
    a = corners_of(one)
    own = corners_of(two)
    b = (placed(start, own[0]), placed(start, own[1]), placed(start, own[2]))
    rounding = ROUNDING * (extent(a) + 3.0 * extent(own) + largest(vector(start.translation)))
    margin = query.separation - speed * start.u0 + rounding
    if relative.first.kind == ALGEBRAIC or relative.second.kind == ALGEBRAIC:
        speed = 0.0  # of these motions no speed is a bound from the start on
        margin = math.inf
    second_normal = turned(start, vector(two.normal))
    b_vertex, b_edge = along_normal(vector(one.normal), a, b)
    a_vertex, a_edge = along_normal(second_normal, b, a)
    c = b
    bounds = (0.0, 0.0, 0.0)
    ready = False
    kept = False
    nearest = math.inf
    units = 0
    edges = 0
    rejected = 0
    for test in range(15):
        if test < 9:
            shape = EDGE_EDGE
            i = test // 3
            j = test - 3 * i
            if (first_owned >> (3 + i)) & 1 == 0 or (second_owned >> (3 + j)) & 1 == 0:
                continue
            edges += 1
            distance = max(a_edge[i], b_edge[j])
        elif test < 12:
            shape = VERTEX_FACE
            i = test - 9
            j = 0
            if (first_owned >> i) & 1 == 0:
                continue
            counters.vertex_face += 1
            distance = a_vertex[i]
        else:
            shape = FACE_VERTEX
            i = 0
            j = test - 12
            if (second_owned >> j) & 1 == 0:
                continue
            counters.face_vertex += 1
            distance = b_vertex[j]
        units += 1
        enough = margin + speed * limit
        if distance > PLAINLY * enough + rounding:
            nearest = min(nearest, distance)
            rejected += 1
            continue
        a0 = a[i]
        b0 = b[j]
        a1 = a[(i + 1) % 3]
        b1 = b[(j + 1) % 3]
        if shape == EDGE_EDGE:
            _, _, square = segment_segment(a0, a1, b0, b1)
        elif shape == VERTEX_FACE:
            _, _, square, _ = point_triangle(a0, b[0], b[1], b[2])
        else:
            _, _, square, _ = point_triangle(b0, a[0], a[1], a[2])
        distance = math.sqrt(square)
        nearest = min(nearest, distance)
        if distance > enough or kept:
            rejected += 1
            continue
        if not ready:
            ready = True
            bounds = _bounds(relative, a, own, limit)
            if start.u0 > 0.0:
                position, turn = pose_at_start(relative)
                c = (carried(position, turn, own[0]), carried(position, turn, own[1]), carried(position, turn, own[2]))
        # Unused places repeat the last point used.
        x = (a0, a1, a1)
        y = (own[j], own[(j + 1) % 3], own[(j + 1) % 3])
        z = (c[j], c[(j + 1) % 3], c[(j + 1) % 3])
        if shape == VERTEX_FACE:
            x = (a0, a0, a0)
            y = own
            z = c
        elif shape == FACE_VERTEX:
            x = a
            y = (own[j], own[j], own[j])
            z = (c[j], c[j], c[j])
        time, found, iterations = _test(relative, shape, x, y, z, bounds, limit, query)
        counters.iterations += iterations
        if time < limit or found:
            kept = planes_keep(relative, a, c, vector(one.normal), second_normal, bounds, query.separation, limit)
        if kept:
            continue
        if found:
            if time < hit.time or (hit.found == 0 and time <= hit.time):
                _note(hit, time, first, second, i, j)
                if shape == EDGE_EDGE:
                    hit.first_feature = 3 + i
                    hit.second_feature = 3 + j
                elif shape == VERTEX_FACE:
                    hit.second_feature = FACE
                else:
                    hit.first_feature = FACE
                limit = min(limit, time)
        elif time < min(limit, hit.time):
            _stop(hit, time)
            limit = time
    counters.edge_edge += edges
    counters.rejected += rejected
    return limit, nearest - rounding, units


@kernel
def describe(triangles: Any, relative: Any, hit: Any) -> None:
    """Fill point, normal, gap and the exact features of a contact whose time, triangles and features are in `hit`.

    Where the features touch, the normal is square to them and points so that the second comes nearer along it.
    """
    position, turn = relative_pose(relative, hit.time)
    a = corners_of(triangles[hit.first_triangle])
    own = corners_of(triangles[hit.second_triangle])
    b = (
        add(rotate(turn, own[0]), position),
        add(rotate(turn, own[1]), position),
        add(rotate(turn, own[2]), position),
    )
    if hit.first_feature >= FACE and hit.second_feature < 3:
        q = b[hit.second_feature]
        v, w, _, feature = point_triangle(q, a[0], a[1], a[2])
        p = on_triangle(a, v, w)
        hit.first_feature = feature
        normal = cross(subtract(a[1], a[0]), subtract(a[2], a[0]))
    elif hit.second_feature >= FACE and hit.first_feature < 3:
        p = a[hit.first_feature]
        v, w, _, feature = point_triangle(p, b[0], b[1], b[2])
        q = on_triangle(b, v, w)
        hit.second_feature = feature
        normal = cross(subtract(b[1], b[0]), subtract(b[2], b[0]))
    elif hit.first_feature >= FACE or hit.second_feature >= FACE:
        # An edge goes through a face.
        if hit.first_feature >= FACE:
            edge = hit.second_feature - 3
            p = _through(a, b[edge], b[(edge + 1) % 3])
            normal = cross(subtract(a[1], a[0]), subtract(a[2], a[0]))
        else:
            edge = hit.first_feature - 3
            p = _through(b, a[edge], a[(edge + 1) % 3])
            normal = cross(subtract(b[1], b[0]), subtract(b[2], b[0]))
        q = p
    else:
        k = hit.first_feature - 3
        m = hit.second_feature - 3
        first_edge = subtract(a[(k + 1) % 3], a[k])
        second_edge = subtract(b[(m + 1) % 3], b[m])
        s, t, _ = segment_segment(a[k], a[(k + 1) % 3], b[m], b[(m + 1) % 3])
        p = along(a[k], first_edge, s)
        q = along(b[m], second_edge, t)
        normal = cross(first_edge, second_edge)
    way = subtract(q, p)
    gap = math.sqrt(dot(way, way))
    put_vector(hit.point, p)
    hit.gap = gap
    if gap > 0.0:
        put_vector(hit.normal, scaled(way, 1.0 / gap))
        return
    size = math.sqrt(dot(normal, normal))
    if dot(normal, relative_velocity(relative, hit.time, q)) > 0.0:
        size = -size
    put_vector(hit.normal, scaled(normal, 1.0 / size) if size != 0.0 else (0.0, 0.0, 1.0))


@inner
def _through(face: Corners, start: Vector, end: Vector) -> Vector:
    # Where the line of an edge meets the plane of a face that it crosses.
    normal = cross(subtract(face[1], face[0]), subtract(face[2], face[0]))
    height = dot(normal, subtract(start, face[0]))
    fall = height - dot(normal, subtract(end, face[0]))
    return along(start, subtract(end, start), height / fall)
