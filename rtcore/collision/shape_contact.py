"""First contact of two moving shapes, one or both of which may be a mesh: best first, to be stopped at any time.

Pairs of pieces wait in a heap, each with the time up to which it is proven free. The earliest one is taken out, moved
on by conservative advancement, and put back with its later time: as it is where its gap is larger than what the pieces
stick out of their shapes, else with the piece that sticks out more replaced by its halves. Two pieces that are not to
be halved are followed to their contact. So the earliest time in the heap is proven free at every moment, and the search
is over when no pair has an earlier one than the first contact.

A sphere is a point with a margin, so that a sphere against a mesh is the exact test of a point that keeps its radius.
"""

from typing import Any

import numpy as np

from rtcore.collision.convex_distance import DISTANCE_WORK
from rtcore.collision.nearest import nearest_on_triangle
from rtcore.collision.shape_advance import ADVANCED, CLEAR, CONTACT, advance_once, advance_pair
from rtcore.collision.shape_pieces import half_path, load_piece, root_path
from rtcore.geometry.shapes import SHAPE_MESH, SHAPE_PLANE
from rtcore.kernels import inner, kernel
from rtcore.motion import relative_pose, relative_screw, still
from rtcore.spatial import (
    Vector,
    add,
    conjugate,
    length,
    put_quaternion,
    put_vector,
    quaternion,
    rotate,
    scaled,
    subtract,
    vector,
)
from rtcore.tables import MOTION, RELATIVE, SHAPE

MAX_PAIRS = 4096
"""Pairs of pieces that one query can keep; of more, late ones are dropped, and the motion ends before their time."""

SHAPE_WORK = np.dtype(
    [
        ("key", "f8", MAX_PAIRS),  # heap: time up to which the pair is proven free
        ("first", "i8", MAX_PAIRS),  # heap: paths
        ("second", "i8", MAX_PAIRS),
        ("count", "i8"),
        ("cursor", "i8"),  # where to look next for a pair to drop
        ("floor", "f8"),  # earliest time of a pair that did not fit
        ("pair", DISTANCE_WORK),
        ("relative", RELATIVE),  # the motions in the order in which the pair is looked at
        ("screw", MOTION),
        ("mesh", SHAPE),
    ],
    align=True,
)
"""Working memory of queries about shapes. Nothing in it survives a query."""

_LOOKS = 16
_SHARE = 0.25
"""Share of the position tolerance that each of the two pieces may stick out by when it is not halved any more; the
other half is for the advancement."""


@kernel
def shape_first_contact(
    shapes: np.ndarray,
    values: np.ndarray,
    nodes: np.ndarray,
    triangles: np.ndarray,
    first: int,
    second: int,
    relative: np.void,
    query: np.void,
    work: np.void,
    counters: np.void,
    hit: np.void,
) -> None:
    """Fill a HIT with the first contact of two shapes on u in 0..query.limit.

    shapes: (n,) SHAPE; values: their table of values; nodes (BOX_NODE), triangles (TRIANGLE): tables for shapes that
    are meshes, else of any length; first, second: rows of `shapes`, each on the body of its name in `relative`
    (RELATIVE); query: QUERY, of which separation, the tolerances, limit and units count; work: SHAPE_WORK; counters:
    COUNTERS, of which box_tests, leaf_pairs and iterations (steps of distances) count.

    [0, hit.time) is proven free of distances up to `separation`; a pair of pieces that starts nearer may leave or
    slide, but come nearer by SLACK x position_tolerance only, and one that touches stops at once. A contact is early by
    the distance position_tolerance at most, or by time_tolerance. hit.time is query.limit when nothing was found. A
    unit is a pair of pieces looked at. For what is no mesh the triangle of the hit is -1 and the feature 6. Everything
    but a half space can meet a half space; two half spaces stop at time 0. ALGEBRAIC motions start infinitely fast and
    are stopped at time 0.

    Source: module text; conservative advancement over hierarchies after Tang, Kim and Manocha 2009 (C2A).
    """
    if shapes[second].kind != SHAPE_PLANE:
        _look(work, relative.first, relative.second)
        _search(shapes[first], shapes[second], values, nodes, triangles, query, work, counters, hit)
        return
    _look(work, relative.second, relative.first)
    _search(shapes[second], shapes[first], values, nodes, triangles, query, work, counters, hit)
    _turn_hit(work, hit)


@kernel
def shape_mesh_first_contact(
    shapes: np.ndarray,
    values: np.ndarray,
    shape: int,
    nodes: np.ndarray,
    triangles: np.ndarray,
    root: int,
    relative: np.void,
    query: np.void,
    work: np.void,
    counters: np.void,
    hit: np.void,
) -> None:
    """Fill a HIT with the first contact of a shape (row of `shapes`, first body) with a mesh (its root, second body).

    Else as :func:`shape_first_contact`.
    """
    work.mesh.kind = SHAPE_MESH
    work.mesh.root = root
    _look(work, relative.first, relative.second)
    _search(shapes[shape], work.mesh, values, nodes, triangles, query, work, counters, hit)


@inner
def _search(
    a: Any,
    b: Any,
    values: np.ndarray,
    nodes: np.ndarray,
    triangles: np.ndarray,
    query: Any,
    work: Any,
    counters: Any,
    hit: Any,
) -> None:
    relative = work.relative
    best = query.limit
    tolerance = query.position_tolerance
    work.count = 0
    work.cursor = 0
    work.floor = best
    _clear_hit(hit, best)
    if a.kind == SHAPE_PLANE and b.kind == SHAPE_PLANE:
        hit.time = 0.0
        hit.found = 1
        hit.normal[2] = 1.0
        return
    put_vector(work.pair.direction, (0.0, 0.0, 0.0))
    units = 0
    _push(work, 0.0, root_path(a), root_path(b))
    while work.count > 0 and work.key[0] < best:
        if units >= query.units:
            work.floor = min(work.floor, work.key[0])
            break
        units += 1
        u, path_a, path_b = _pop(work)
        there = load_piece(a, values, nodes, triangles, path_a, _SHARE * tolerance, work.pair.first)
        if not there or not load_piece(b, values, nodes, triangles, path_b, _SHARE * tolerance, work.pair.second):
            continue
        piece_a = work.pair.first
        piece_b = work.pair.second
        divisible_a = piece_a.divisible != 0
        divisible_b = piece_b.divisible != 0
        excess_a = piece_a.excess
        excess_b = piece_b.excess
        if not (divisible_a or divisible_b):
            counters.leaf_pairs += 1
            time, state, gap, steps = advance_pair(
                work.pair, relative, query.separation, u, best, 0.5 * tolerance, query.time_tolerance
            )
            counters.iterations += steps
            if state == CONTACT:
                best = time
                _put_hit(work.pair, triangles, time, gap, hit)
            elif state == ADVANCED:
                _push(work, time, path_a, path_b)
            continue
        counters.box_tests += 1
        time, state, gap, steps = advance_once(work.pair, relative, query.separation, u, best)
        counters.iterations += steps
        if state == CLEAR or time >= best:
            continue
        if gap - query.separation > excess_a + excess_b and time > u:
            _push(work, time, path_a, path_b)
        elif divisible_a and (excess_a >= excess_b or not divisible_b):
            _push(work, time, half_path(a, nodes, path_a, 0), path_b)
            _push(work, time, half_path(a, nodes, path_a, 1), path_b)
        else:
            _push(work, time, path_a, half_path(b, nodes, path_b, 0))
            _push(work, time, path_a, half_path(b, nodes, path_b, 1))
    hit.units_used = units
    if work.floor < best:
        _clear_hit(hit, work.floor)
        hit.truncated = 1
        hit.units_used = units


# The heap: smallest key on top; equal keys in an order that the same pushes and pops always repeat. ----------------


@inner
def _push(work: Any, key: float, first: int, second: int) -> None:
    k = work.count
    if k < MAX_PAIRS:
        work.count += 1
    else:
        # One pair has to go, and the motion will end before its time: a late one, of a few that have none below them.
        k = MAX_PAIRS // 2 + work.cursor
        for _ in range(_LOOKS):
            work.cursor = (work.cursor + 1) % (MAX_PAIRS // 2)
            other = MAX_PAIRS // 2 + work.cursor
            if work.key[other] > work.key[k]:
                k = other
        work.floor = min(work.floor, max(key, work.key[k]))
        if work.key[k] <= key:
            return
    while k > 0:
        parent = (k - 1) // 2
        if work.key[parent] < key:  # of equal ones the newest comes first, which is the deepest
            break
        _move(work, parent, k)
        k = parent
    work.key[k] = key
    work.first[k] = first
    work.second[k] = second


@inner
def _pop(work: Any) -> tuple[float, int, int]:
    key, first, second = work.key[0], work.first[0], work.second[0]
    work.count -= 1
    last = work.count
    k = 0
    while True:
        child = 2 * k + 1
        if child >= last:
            break
        if child + 1 < last and work.key[child + 1] < work.key[child]:
            child += 1
        if work.key[last] <= work.key[child]:
            break
        _move(work, child, k)
        k = child
    if last > 0:
        _move(work, last, k)
    return key, first, second


@inner
def _move(work: Any, source: int, target: int) -> None:
    work.key[target] = work.key[source]
    work.first[target] = work.first[source]
    work.second[target] = work.second[source]


# Results. ------------------------------------------------------------------------------------------------------------


@inner
def _clear_hit(hit: Any, time: float) -> None:
    hit.time = time
    hit.gap = 0.0
    hit.found = 0
    hit.truncated = 0
    hit.first_triangle = -1
    hit.second_triangle = -1
    hit.first_feature = -1
    hit.second_feature = -1
    hit.units_used = 0
    for k in range(3):
        hit.point[k] = 0.0
        hit.normal[k] = 0.0


@inner
def _put_hit(pair: Any, triangles: np.ndarray, time: float, gap: float, hit: Any) -> None:
    """Write a contact at the pose, direction and witness that the last distance left in `pair`."""
    n = vector(pair.direction)
    on_first = add(vector(pair.witness), scaled(n, pair.first.margin))
    hit.time = time
    hit.found = 1
    hit.gap = gap
    put_vector(hit.point, on_first)
    put_vector(hit.normal, n)
    hit.first_triangle = pair.first.triangle
    hit.second_triangle = pair.second.triangle
    hit.first_feature = 6
    hit.second_feature = 6
    if pair.first.triangle >= 0:
        hit.first_feature = _feature(triangles, pair.first.triangle, on_first)
    if pair.second.triangle >= 0:
        there = subtract(add(on_first, scaled(n, gap)), vector(pair.place))
        m = pair.turn
        local = (
            m[0, 0] * there[0] + m[1, 0] * there[1] + m[2, 0] * there[2],
            m[0, 1] * there[0] + m[1, 1] * there[1] + m[2, 1] * there[2],
            m[0, 2] * there[0] + m[1, 2] * there[1] + m[2, 2] * there[2],
        )
        hit.second_feature = _feature(triangles, pair.second.triangle, local)


@inner
def _feature(triangles: np.ndarray, triangle: int, p: Vector) -> int:
    return nearest_on_triangle(triangles[triangle], p[0], p[1], p[2])[4]


@inner
def _look(work: Any, first: Any, second: Any) -> None:
    """Keep the motions of a pair, as a body at rest and one screw where that is what they amount to."""
    _copy_motion(first, work.relative.first)
    _copy_motion(second, work.relative.second)
    work.pair.scale = _extent(first) + _extent(second)
    if relative_screw(work.relative, work.screw):
        still(work.relative.first, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        _copy_motion(work.screw, work.relative.second)


@inner
def _extent(motion: Any) -> float:
    """The sum of the lengths that poses of a motion are computed from, m."""
    return length(vector(motion.position)) + length(vector(motion.pivot)) + length(vector(motion.shift))


@inner
def _copy_motion(source: Any, target: Any) -> None:
    put_vector(target.position, vector(source.position))
    put_quaternion(target.orientation, quaternion(source.orientation))
    put_vector(target.pivot, vector(source.pivot))
    put_vector(target.shift, vector(source.shift))
    put_vector(target.axis, vector(source.axis))
    target.angle = source.angle
    target.kind = source.kind


@inner
def _turn_hit(work: Any, hit: Any) -> None:
    """Make a hit of the pair the other way round one of the pair as asked for."""
    hit.first_triangle, hit.second_triangle = hit.second_triangle, hit.first_triangle
    hit.first_feature, hit.second_feature = hit.second_feature, hit.first_feature
    if hit.found == 0:
        return
    place, turn = relative_pose(work.relative, hit.time)
    back = conjugate(turn)
    n = vector(hit.normal)
    on_other = add(vector(hit.point), scaled(n, hit.gap))
    put_vector(hit.point, rotate(back, subtract(on_other, place)))
    put_vector(hit.normal, rotate(back, scaled(n, -1.0)))
