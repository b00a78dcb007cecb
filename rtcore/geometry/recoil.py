"""Recoil vectors over a bounding tree: up to nine per node, whose positive cone holds the node's outward normals.

They fit sets of normals that are long and narrow better than an axis and an angle do; which normals count for a node
is said in :mod:`rtcore.geometry.cones`. For comparisons: the daemon culls by axis and angle.

Source: Redon 2002, sections 4.5 and 4.6 with lemmas 2 and 4. In place of the thesis' projections and simulated
annealing the hull is found in the gnomonic plane (great circles become lines, so the smallest positive cone becomes a
convex hull), and sides are dropped outwards until few enough are left.
"""

import math

import numpy as np
from numba import njit

from rtcore.geometry.cones import ROUNDING, copy, gather, shape, smallest_cap, touching_triangles
from rtcore.kernels import builder

RECOIL_MAX = 9
"""Most recoil vectors of a node."""

RECOIL = np.dtype(
    [
        ("vectors", "f8", (RECOIL_MAX, 3)),  # unit, mesh frame; rows after count are zero
        ("margin", "f8"),  # by which velocities have to point backwards, as a share of their length
        ("count", "i4"),  # 0: never culled
        ("padding", "i4"),
    ],
    align=True,
)
"""Recoil vectors of one tree node: every normal is within `margin` of their positive cone."""

STEEPEST = 1e-3
"""Least cosine between a normal and the axis of its cone: past it the gnomonic plane is too far away."""
STRAIGHT = 1e-9
"""A hull corner that sticks out less than this over its neighbours is dropped, and its height added to the margin."""


def recoil_vectors(nodes: np.ndarray, triangles: np.ndarray, most: int, bottom_up: bool = False) -> np.ndarray:
    """Recoil vectors of every node of one tree: (k,) RECOIL.

    nodes: (k,) BOX_NODE with cones filled top-down; triangles: (m,) TRIANGLE in leaf order; most: vectors per node,
    3..9. A node has none where its cone angle is pi, bottom-up also where a child has none.
    Raises ValueError for `most` out of range. Source: Redon 2002, sections 4.5 and 4.6.
    """
    if not 3 <= most <= RECOIL_MAX:
        raise ValueError(f"a node has 3 to {RECOIL_MAX} recoil vectors, not {most}")
    vectors, margins = np.zeros((len(nodes), RECOIL_MAX, 3)), np.zeros(len(nodes))
    counts = np.zeros(len(nodes), np.int64)
    axes, angles = np.ascontiguousarray(nodes["cone_axis"]), np.ascontiguousarray(nodes["cone_angle"])
    below, touching = shape(nodes), touching_triangles(triangles)
    _recoil(vectors, margins, counts, axes, angles, *below, *touching, most, bottom_up)
    table = np.zeros(len(nodes), RECOIL)
    table["vectors"], table["margin"], table["count"] = vectors, margins, counts
    return table


def recoil_memory(
    counts: np.ndarray,
    vector_bytes: int = 24,
    state_bytes: int = 12,
    points_bytes: int = 0,
    pointer_bytes: int = 8,
) -> int:
    """Bytes that recoil vectors take when each node points to a record of as many as it has, or to none.

    counts: (k,) vectors by node; the sizes of one vector, of the size and stamps of one record, of stored
    characteristic points and of a pointer. Source: Redon 2002, (4.14).
    """
    counts = np.asarray(counts)
    filled = int((counts > 0).sum())
    return vector_bytes * int(counts.sum()) + (state_bytes + points_bytes) * filled + pointer_bytes * len(counts)


@njit(cache=True, nogil=True, error_model="numpy")
def _recoil(
    vectors: np.ndarray,
    margins: np.ndarray,
    counts: np.ndarray,
    axes: np.ndarray,
    angles: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    right: np.ndarray,
    normals: np.ndarray,
    starts: np.ndarray,
    items: np.ndarray,
    tilts: np.ndarray,
    most: int,
    bottom_up: bool,
) -> None:
    points = np.empty((max(len(items), 2 * RECOIL_MAX), 3))
    plane = np.empty((points.shape[0], 2))
    order = np.empty(points.shape[0], np.int64)
    polygons = np.empty((2, 2 * points.shape[0] + 1, 2))
    axis = np.empty(3)
    for i in range(len(low) - 1, -1, -1):
        left = i + 1
        if angles[i] >= 0.5 * math.pi:
            continue
        if right[i] == 0 or not bottom_up:
            size, margin = gather(normals, items, tilts, starts[low[i]], starts[high[i]], points)
            copy(axes[i], axis)
        elif counts[left] == 0 or counts[right[i]] == 0:
            continue
        else:
            size = counts[left] + counts[right[i]]
            for k in range(size):
                first = k < counts[left]
                child, row = (left, k) if first else (right[i], k - counts[left])
                copy(vectors[child, row], points[k])
            margin = max(margins[left], margins[right[i]])
            if not smallest_cap(points[:size], axis):
                continue
        used, missed = _positive_cone(points[:size], axis, most, plane, order, polygons[0], polygons[1], vectors[i])
        # A velocity that points backwards by the margin along every recoil vector does so along all that is within the
        # margin of their positive cone: such a vector is a sum of them with weights that add up to no less than 1.
        margin += missed + ROUNDING
        if used > 0 and margin < 1.0:
            counts[i] = used
            margins[i] = margin
        else:
            for k in range(used):
                for j in range(3):
                    vectors[i, k, j] = 0.0


@builder
def _positive_cone(
    points: np.ndarray,
    axis: np.ndarray,
    most: int,
    plane: np.ndarray,
    order: np.ndarray,
    corners: np.ndarray,
    whole: np.ndarray,
    out: np.ndarray,
) -> tuple[int, float]:
    """At most `most` unit vectors whose positive cone holds the points: (how many, farthest angle outside it).

    points (n, 3): unit, within a half sphere about the axis; plane, order, corners, whole: to work in; out (9, 3):
    written. (0, 0) where they reach too far.
    """
    count = points.shape[0]
    # Two directions across the axis and across each other (Duff et al. 2017).
    sign = 1.0 if axis[2] >= 0.0 else -1.0
    a = -1.0 / (sign + axis[2])
    b = axis[0] * axis[1] * a
    one_x, one_y, one_z = 1.0 + sign * axis[0] * axis[0] * a, sign * b, -sign * axis[0]
    other_x, other_y, other_z = b, sign + axis[1] * axis[1] * a, -axis[1]
    for i in range(count):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        along = x * axis[0] + y * axis[1] + z * axis[2]
        if along < STEEPEST:
            return 0, 0.0
        plane[i, 0] = (x * one_x + y * one_y + z * one_z) / along
        plane[i, 1] = (x * other_x + y * other_y + z * other_z) / along
    _sort(plane, order, count)
    used = _straighten(corners, _hull(plane, order, count, corners))
    if used > most:
        used = _fewer_sides(corners, whole, used, most)
    for k in range(used):
        x, y = corners[k, 0], corners[k, 1]
        norm = math.sqrt(1.0 + x * x + y * y)
        out[k, 0] = (axis[0] + x * one_x + y * other_x) / norm
        out[k, 1] = (axis[1] + x * one_y + y * other_y) / norm
        out[k, 2] = (axis[2] + x * one_z + y * other_z) / norm
    missed = 0.0
    for i in range(count):
        missed = max(missed, _outside(corners, used, plane[i, 0], plane[i, 1]))
    return used, missed + ROUNDING / STEEPEST


@builder
def _before(plane: np.ndarray, i: int, j: int) -> bool:
    return plane[i, 0] < plane[j, 0] or (plane[i, 0] == plane[j, 0] and plane[i, 1] < plane[j, 1])


@builder
def _sort(plane: np.ndarray, order: np.ndarray, count: int) -> None:
    """Numbers of the points from left to right, from below upwards where they tie, into `order` (heap sort)."""
    for i in range(count):
        order[i] = i
    start = count // 2
    end = count
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            order[end], order[0] = order[0], order[end]
        root = start
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and _before(plane, order[child], order[child + 1]):
                child += 1
            if not _before(plane, order[root], order[child]):
                break
            order[root], order[child] = order[child], order[root]
            root = child


@builder
def _turn(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> float:
    """Twice the signed area of the triangle a, b, c in the plane: positive for a left turn at b."""
    return (bx - ax) * (cy - by) - (by - ay) * (cx - bx)


@builder
def _hull(plane: np.ndarray, order: np.ndarray, count: int, hull: np.ndarray) -> int:
    """Corners of the convex hull, anticlockwise, into `hull`; how many there are (Andrew's monotone chain 1979)."""
    used = 0
    for way in range(2):
        base = used
        for k in range(count):
            i = order[k] if way == 0 else order[count - 1 - k]
            x, y = plane[i, 0], plane[i, 1]
            while used >= base + 2 and (
                _turn(hull[used - 2, 0], hull[used - 2, 1], hull[used - 1, 0], hull[used - 1, 1], x, y) <= 0.0
            ):
                used -= 1
            hull[used, 0] = x
            hull[used, 1] = y
            used += 1
        used -= 1  # the last point of one chain is the first one of the other
    return max(used, 1)


@builder
def _straighten(hull: np.ndarray, used: int) -> int:
    """Take out corners that hardly stick out over the line between their neighbours; how many are left."""
    k = 0
    while k < used and used > 1:
        before, after = (k + used - 1) % used, (k + 1) % used
        if _to_segment(hull[before, 0], hull[before, 1], hull[after, 0], hull[after, 1], hull[k, 0], hull[k, 1]) < (
            STRAIGHT
        ):
            used = _take_out(hull, used, k)
        else:
            k += 1
    return used


@builder
def _take_out(corners: np.ndarray, used: int, k: int) -> int:
    for j in range(k, used - 1):
        corners[j, 0] = corners[j + 1, 0]
        corners[j, 1] = corners[j + 1, 1]
    return used - 1


@builder
def _to_segment(ax: float, ay: float, bx: float, by: float, x: float, y: float) -> float:
    """Distance of (x, y) from the segment a b."""
    dx, dy = bx - ax, by - ay
    square = dx * dx + dy * dy
    share = 0.0
    if square > 0.0:
        share = min(max(((x - ax) * dx + (y - ay) * dy) / square, 0.0), 1.0)
    return math.hypot(x - ax - share * dx, y - ay - share * dy)


@builder
def _fewer_sides(corners: np.ndarray, whole: np.ndarray, used: int, most: int) -> int:
    """Drop sides of a convex polygon, prolonging their neighbours, until `most` are left; how many there are then.

    Each time the side that adds the least area goes. Four sides, two of them parallel, can leave no three that way:
    then the smallest equiangular polygon with one side along a side of the polygon (kept in `whole`) takes over.
    """
    for k in range(used):
        whole[k, 0] = corners[k, 0]
        whole[k, 1] = corners[k, 1]
    count = used
    while used > most:
        least = math.inf
        chosen = -1
        corner_x = corner_y = 0.0
        for k in range(used):
            before, after, last = (k + used - 1) % used, (k + 1) % used, (k + 2) % used
            bx, by = corners[k, 0], corners[k, 1]
            cx, cy = corners[after, 0], corners[after, 1]
            ux, uy = bx - corners[before, 0], by - corners[before, 1]
            vx, vy = corners[last, 0] - cx, corners[last, 1] - cy
            turn = ux * vy - uy * vx
            if turn <= 1e-9 * math.hypot(ux, uy) * math.hypot(vx, vy):
                continue
            share = ((cx - bx) * vy - (cy - by) * vx) / turn
            x, y = bx + share * ux, by + share * uy
            area = abs((cx - bx) * (y - by) - (cy - by) * (x - bx))
            if area < least:
                least = area
                chosen = k
                corner_x, corner_y = x, y
        if chosen < 0:
            return _support_polygon(whole, count, corners, most)
        corners[chosen, 0] = corner_x
        corners[chosen, 1] = corner_y
        used = _take_out(corners, used, (chosen + 1) % used)
    return used


@builder
def _support_polygon(whole: np.ndarray, count: int, corners: np.ndarray, sides: int) -> int:
    """The smallest equiangular polygon about a convex one with a side along one of its sides; the number of sides."""
    least = math.inf
    chosen = 0
    for k in range(count):
        _equiangular(whole, count, k, corners, sides)
        area = 0.0
        for j in range(1, sides - 1):
            area += _turn(
                corners[0, 0], corners[0, 1], corners[j, 0], corners[j, 1], corners[j + 1, 0], corners[j + 1, 1]
            )
        if area < least:
            least = area
            chosen = k
    _equiangular(whole, count, chosen, corners, sides)
    return sides


@builder
def _equiangular(whole: np.ndarray, count: int, side: int, corners: np.ndarray, sides: int) -> None:
    """The tightest equiangular polygon about a convex one with its first side along a given one, into `corners`."""
    step = 2.0 * math.pi / sides
    after = (side + 1) % count
    start = math.atan2(whole[side, 0] - whole[after, 0], whole[after, 1] - whole[side, 1])
    for j in range(sides):
        x, y = math.cos(start + j * step), math.sin(start + j * step)
        next_x, next_y = math.cos(start + (j + 1) * step), math.sin(start + (j + 1) * step)
        along = -math.inf
        next_along = -math.inf
        for i in range(count):
            along = max(along, x * whole[i, 0] + y * whole[i, 1])
            next_along = max(next_along, next_x * whole[i, 0] + next_y * whole[i, 1])
        # The corner where two support lines meet, by its parts along and across the direction of the first.
        across = (next_along - along * math.cos(step)) / math.sin(step)
        corners[j, 0] = along * x - across * y
        corners[j, 1] = along * y + across * x


@builder
def _outside(corners: np.ndarray, used: int, x: float, y: float) -> float:
    """Distance of a point of the plane from a convex polygon (or segment, or point); 0 inside."""
    inside = used > 2
    nearest = math.inf
    for k in range(used):
        after = (k + 1) % used
        ax, ay, bx, by = corners[k, 0], corners[k, 1], corners[after, 0], corners[after, 1]
        inside = inside and _turn(ax, ay, bx, by, x, y) >= 0.0
        nearest = min(nearest, _to_segment(ax, ay, bx, by, x, y))
    return 0.0 if inside else nearest
