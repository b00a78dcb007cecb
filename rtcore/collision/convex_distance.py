"""A proven lower bound of the distance of two convex pieces, with the direction that proves it.

Whatever unit direction n is tried, the least n.b over the second piece minus the largest n.a over the first is a lower
bound of their distance. The walk over simplices of Gilbert, Johnson and Keerthi (1988) is only used to find a good n:
a mistake in it could make the bound loose, never wrong.
"""

import math
from typing import Any

import numpy as np

from rtcore.collision.features import point_segment, point_triangle
from rtcore.collision.shape_pieces import CORE_PLANE, PIECE, support
from rtcore.kernels import inner, kernel
from rtcore.spatial import Quaternion, Vector, add, cross, dot, length, put_vector, rotate, scaled, subtract, vector

DISTANCE_WORK = np.dtype(
    [
        ("first", PIECE),  # body frame of the first
        ("second", PIECE),  # body frame of the second
        ("turn", "f8", (3, 3)),  # second's coordinates to the first's
        ("place", "f8", 3),  # second's origin in the first's frame, m
        ("simplex", "f8", (4, 3)),  # points of (second core - first core), first's frame, m
        ("on_first", "f8", (4, 3)),  # the points of the first core that they come from
        ("weights", "f8", 4),  # of the point nearest to the origin
        ("direction", "f8", 3),  # unit, from the first to the second, first's frame: what proves the bound
        ("scale", "f8"),  # sum of the lengths that the pose was computed from, m
        ("witness", "f8", 3),  # point of the first core near the second, first's frame, m
    ],
    align=True,
)
"""Two pieces and the search for their distance. The direction is the first guess of the next search."""

PAD = 64.0 * 2.0**-52
"""Bounds are lowered by this share of the sum of all lengths that enter, for rounding."""
STEPS = 48
"""Most steps of one search; polyhedra end by themselves after a few."""


@kernel
def put_pose(work: Any, place: Vector, turn: Quaternion) -> None:
    """Write the pose (m, unit quaternion) of the second in the first's frame into a DISTANCE_WORK."""
    put_vector(work.place, place)
    for k in range(3):
        column = rotate(turn, (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0))
        for j in range(3):
            work.turn[j, k] = column[j]


@kernel
def to_first(work: Any, p: Vector) -> Vector:
    """A point of the second's frame (m) in the first's."""
    m = work.turn
    return (
        m[0, 0] * p[0] + m[0, 1] * p[1] + m[0, 2] * p[2] + work.place[0],
        m[1, 0] * p[0] + m[1, 1] * p[1] + m[1, 2] * p[2] + work.place[1],
        m[2, 0] * p[0] + m[2, 1] * p[1] + m[2, 2] * p[2] + work.place[2],
    )


@inner
def support_second(work: Any, d: Vector) -> Vector:
    """The point of the second core that is farthest along d, both in the first's frame."""
    m = work.turn
    local = (
        m[0, 0] * d[0] + m[1, 0] * d[1] + m[2, 0] * d[2],
        m[0, 1] * d[0] + m[1, 1] * d[1] + m[2, 1] * d[2],
        m[0, 2] * d[0] + m[1, 2] * d[1] + m[2, 2] * d[2],
    )
    return to_first(work, support(work.second, local))


@kernel
def lengths(work: Any) -> float:
    """The sum of the lengths (m) that rounding errors are a share of."""
    a = work.first
    b = work.second
    total = work.scale + length(vector(work.place)) + length(vector(b.ball_centre)) + b.ball_radius
    return total + length(vector(a.ball_centre)) + a.ball_radius + length(vector(a.centre)) * (a.core == CORE_PLANE)


@kernel
def core_distance(work: Any, wanted: float, tight: bool) -> tuple[float, int]:
    """Return (lower bound of the distance of the two cores, steps); a bound <= 0 says nothing.

    work: DISTANCE_WORK with pieces and pose; its direction, if not zero, is tried first, and the best one is left in
    it, with the point of the first core. The first core may be a half space, the second not. wanted: the distance that
    matters, m. The bound is within 1 % of (itself - wanted) of the true distance, or within rounding where that is not
    above `wanted`. Not tight: within a quarter, and the search ends as soon as the true distance is known to be at most
    `wanted`. Lowered by PAD x the lengths that enter.
    """
    pad = PAD * lengths(work)
    if work.first.core == CORE_PLANE:
        n = vector(work.first.axes[2])
        put_vector(work.direction, n)
        b = support_second(work, scaled(n, -1.0))
        height = dot(n, subtract(b, vector(work.first.centre)))
        put_vector(work.witness, subtract(b, scaled(n, height)))
        return height - pad, 1
    share = 0.01 if tight else 0.25
    n = vector(work.direction)
    if not dot(n, n) > 0.5:
        n = subtract(to_first(work, vector(work.second.ball_centre)), vector(work.first.ball_centre))
        norm = length(n)
        n = scaled(n, 1.0 / norm) if norm > 0.0 else (0.0, 0.0, 1.0)
    best = -math.inf
    upper = math.inf
    count = 0
    steps = 0
    while steps < STEPS:
        steps += 1
        a = support(work.first, n)
        b = support_second(work, scaled(n, -1.0))
        w = subtract(b, a)
        low = dot(n, w)
        if low > best:
            best = low
            put_vector(work.direction, n)
        if upper - best <= max(pad, share * (best - wanted)):
            break
        put_vector(work.simplex[count], w)
        put_vector(work.on_first[count], a)
        count, v = _nearest(work, count + 1)
        norm = length(v)
        if norm >= upper and steps > 1:  # no progress: rounding has the last word
            break
        upper = norm
        _put_witness(work, count)
        if count == 4 or norm <= pad or (upper <= wanted and not tight):
            break
        n = scaled(v, 1.0 / norm)
    return best - pad, steps


@inner
def _put_witness(work: Any, count: int) -> None:
    p = (0.0, 0.0, 0.0)
    for k in range(count):
        p = add(p, scaled(vector(work.on_first[k]), work.weights[k]))
    put_vector(work.witness, p)


@inner
def _nearest(work: Any, count: int) -> tuple[int, Vector]:
    """Return (corners left, point of the simplex nearest to the origin) and keep only the corners that it needs.

    A tetrahedron that holds the origin is left whole, with the point (0, 0, 0).
    """
    s = work.simplex
    weights = work.weights
    if count == 1:
        weights[0] = 1.0
    elif count == 2:
        share, _ = point_segment(scaled(vector(s[0]), -1.0), subtract(vector(s[1]), vector(s[0])))
        weights[0] = 1.0 - share
        weights[1] = share
    elif count == 3:
        v, w, _, _ = point_triangle((0.0, 0.0, 0.0), vector(s[0]), vector(s[1]), vector(s[2]))
        weights[0] = 1.0 - v - w
        weights[1] = v
        weights[2] = w
    else:
        best = math.inf
        for k in range(4):  # the face opposite to corner k
            i = 1 if k == 0 else 0
            j = 2 if k <= 1 else 1
            m = 3 if k <= 2 else 2
            a = vector(s[i])
            normal = cross(subtract(vector(s[j]), a), subtract(vector(s[m]), a))
            if -dot(normal, a) * dot(normal, subtract(vector(s[k]), a)) > 0.0:
                continue  # the origin is on the inner side
            share_j, share_m, square, _ = point_triangle((0.0, 0.0, 0.0), a, vector(s[j]), vector(s[m]))
            if square < best:
                best = square
                weights[k] = 0.0
                weights[i] = 1.0 - share_j - share_m
                weights[j] = share_j
                weights[m] = share_m
        if best == math.inf:
            for k in range(4):
                weights[k] = 0.25
            return 4, (0.0, 0.0, 0.0)
    kept = 0
    p = (0.0, 0.0, 0.0)
    for k in range(count):
        if weights[k] > 0.0:
            corner = vector(s[k])
            p = add(p, scaled(corner, weights[k]))
            put_vector(s[kept], corner)
            put_vector(work.on_first[kept], vector(work.on_first[k]))
            weights[kept] = weights[k]
            kept += 1
    return kept, p
