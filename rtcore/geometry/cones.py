"""Cones of outward normals over a bounding tree, for the test whether all that is below a node recedes.

A feature (vertex, edge, face) may be left out of a search for contacts only if all triangles at it recede, see
:mod:`rtcore.collision.receding`. A node stands for the features that its triangles own, so its cone holds the normals
of its own triangles and of every triangle at a vertex or an edge that one of them owns. With this rule culling a node
never takes away a feature of which only one side recedes, whichever triangle owns it.

Two kinds of cone: an axis and an angle (fields of BOX_NODE), and up to nine recoil vectors (RECOIL) whose positive cone
holds the normals, which fits sets of normals that are long and narrow. Each is built top-down (from all the normals
below a node: tight) or bottom-up (from the cones of the children: faster, wider).

Source: Redon 2002, sections 4.2-4.6 with lemmas 2 and 4; axis and angle: Shirman and Abi-Ezzi 1993. In place of the
thesis' projections and simulated annealing the hull is found in the gnomonic plane (great circles become lines, so the
smallest positive cone becomes a convex hull), and sides are dropped outwards until few enough are left.
"""

import math

import numpy as np
from numba import njit

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

ROUNDING = 1e-14
"""Pad of angles (rad) against rounding of the computations here."""
TILT = 8.0 * 2.0**-52
"""Rounding of a normal as a share of (longest edge squared / twice the area): 4 roundings of the edges' product."""
STEEPEST = 1e-3
"""Least cosine between a normal and the axis of its cone: past it the gnomonic plane is too far away."""
STRAIGHT = 1e-9
"""A hull corner that sticks out less than this over its neighbours is dropped, and its height added to the margin."""


def fill_cones(nodes: np.ndarray, triangles: np.ndarray, bottom_up: bool = False) -> None:
    """Fill cone_axis and cone_angle of every node of one tree.

    nodes: (k,) BOX_NODE, depth first; triangles: (m,) TRIANGLE in leaf order with ids, owned and open filled. Every
    normal that counts for a node (see the module) lies within its angle of its axis, rounding of the normals included.
    The angle is pi where it would reach pi / 2 or one of the triangles is open or has no area. Top-down cones are the
    smallest there are; bottom-up ones are the smallest that hold those of the children.
    Source: Shirman and Abi-Ezzi 1993.
    """
    axes, angles = np.empty((len(nodes), 3)), np.empty(len(nodes))
    _cones(axes, angles, *_shape(nodes), *_touching_triangles(triangles), bottom_up)
    nodes["cone_axis"], nodes["cone_angle"] = axes, angles


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
    shape, touching = _shape(nodes), _touching_triangles(triangles)
    _recoil(vectors, margins, counts, axes, angles, *shape, *touching, most, bottom_up)
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


def _shape(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(first triangle below each node, the one after the last, right child or 0 for a leaf), each (k,)."""
    right = np.where(nodes["count"] > 0, 0, nodes["right"]).astype(np.int64)
    low, high = _ranges(nodes["first"].astype(np.int64), nodes["count"].astype(np.int64), right)
    return low, high, right


def _touching_triangles(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(normals (m, 3), starts (m + 1,) and items: the triangles that count for each one, tilts (m,) of the normals).

    An infinite tilt marks a triangle that must never be culled.
    """
    vertices = triangles["vertices"]
    edges = np.roll(vertices, -1, axis=1) - vertices
    longest = (edges**2).sum(axis=2).max(axis=1)
    area2 = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        tilts = TILT * longest / area2
    tilts[(triangles["open"] != 0) | (triangles["degenerate"] != 0) | ~np.isfinite(tilts)] = math.inf
    starts, items = _incidence(
        triangles["vertex_ids"].astype(np.int64),
        triangles["edge_ids"].astype(np.int64),
        triangles["owned"].astype(np.int64),
    )
    return np.ascontiguousarray(triangles["normal"]), starts, items, tilts


@njit(cache=True, nogil=True, error_model="numpy")
def _slots(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles by feature: (starts, triangles), from ids (m, 3)."""
    starts = np.zeros(ids.max() + 2, np.int64)
    for t in range(ids.shape[0]):
        for k in range(3):
            starts[ids[t, k] + 1] += 1
    for i in range(1, len(starts)):
        starts[i] += starts[i - 1]
    cursor = starts.copy()
    triangles = np.empty(3 * ids.shape[0], np.int64)
    for t in range(ids.shape[0]):
        for k in range(3):
            triangles[cursor[ids[t, k]]] = t
            cursor[ids[t, k]] += 1
    return starts, triangles


@njit(cache=True, nogil=True, error_model="numpy")
def _incidence(vertex_ids: np.ndarray, edge_ids: np.ndarray, owned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each triangle itself and those at the vertices and edges that it owns: (starts, triangles)."""
    count = len(owned)
    vertex_starts, at_vertex = _slots(vertex_ids)
    edge_starts, at_edge = _slots(edge_ids)
    starts = np.zeros(count + 1, np.int64)
    items = np.empty(0, np.int64)
    for filling in range(2):
        used = 0
        for t in range(count):
            if filling:
                items[used] = t
            used += 1
            for k in range(3):
                if owned[t] >> k & 1:
                    first, last = vertex_starts[vertex_ids[t, k]], vertex_starts[vertex_ids[t, k] + 1]
                    for i in range(first, last):
                        if at_vertex[i] != t:
                            if filling:
                                items[used] = at_vertex[i]
                            used += 1
                # The triangles at an edge are among those at either of its ends.
                ends = (owned[t] >> k | owned[t] >> (k + 1) % 3) & 1
                if owned[t] >> 3 + k & 1 and not ends:
                    first, last = edge_starts[edge_ids[t, k]], edge_starts[edge_ids[t, k] + 1]
                    for i in range(first, last):
                        if at_edge[i] != t:
                            if filling:
                                items[used] = at_edge[i]
                            used += 1
            starts[t + 1] = used
        if not filling:
            items = np.empty(used, np.int64)
    return starts, items


@njit(cache=True, nogil=True, error_model="numpy")
def _ranges(first: np.ndarray, count: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles below each node: from low to high - 1, for they are stored in the order of the leaves."""
    low = np.empty(len(first), np.int64)
    high = np.empty(len(first), np.int64)
    for i in range(len(first) - 1, -1, -1):
        if count[i] > 0:
            low[i] = first[i]
            high[i] = first[i] + count[i]
        else:
            low[i] = min(low[i + 1], low[right[i]])
            high[i] = max(high[i + 1], high[right[i]])
    return low, high


# Axis and angle. --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def _cones(
    axes: np.ndarray,
    angles: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    right: np.ndarray,
    normals: np.ndarray,
    starts: np.ndarray,
    items: np.ndarray,
    tilts: np.ndarray,
    bottom_up: bool,
) -> None:
    points = np.empty((len(items), 3))
    axis = np.empty(3)
    for i in range(len(low) - 1, -1, -1):  # children stand behind their parents
        axes[i, 0] = axes[i, 1] = 0.0
        axes[i, 2] = 1.0
        angles[i] = math.pi
        left = i + 1
        if right[i] > 0 and (angles[left] == math.pi or angles[right[i]] == math.pi):
            continue
        if right[i] > 0 and bottom_up:
            angle = _joined(axes[left], angles[left], axes[right[i]], angles[right[i]], axis)
        else:
            size, tilt = _gather(normals, items, tilts, starts[low[i]], starts[high[i]], points)
            if tilt == math.inf or not _smallest_cap(points[:size], axis):
                continue
            angle = _reach(points[:size], axis) + tilt + ROUNDING
        if angle < 0.5 * math.pi:
            _copy(axis, axes[i])
            angles[i] = angle


@njit(cache=True, nogil=True, error_model="numpy")
def _copy(source: np.ndarray, target: np.ndarray) -> None:
    for j in range(source.shape[0]):
        target[j] = source[j]


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(
    normals: np.ndarray, items: np.ndarray, tilts: np.ndarray, first: int, last: int, points: np.ndarray
) -> tuple[int, float]:
    """Normals of items first .. last - 1 into `points`: (how many, largest tilt)."""
    tilt = 0.0
    for k in range(first, last):
        t = items[k]
        tilt = max(tilt, tilts[t])
        for j in range(3):
            points[k - first, j] = normals[t, j]
    return last - first, tilt


@njit(cache=True, nogil=True, error_model="numpy")
def _chord(points: np.ndarray, i: int, axis: np.ndarray) -> float:
    """Square distance of point i from the end of the axis: exact for small angles, where the cosine is not."""
    x = points[i, 0] - axis[0]
    y = points[i, 1] - axis[1]
    z = points[i, 2] - axis[2]
    return x * x + y * y + z * z


@njit(cache=True, nogil=True, error_model="numpy")
def _reach(points: np.ndarray, axis: np.ndarray) -> float:
    """Largest angle between the axis and a point."""
    largest = 0.0
    for i in range(points.shape[0]):
        largest = max(largest, _chord(points, i, axis))
    return 2.0 * math.asin(min(0.5 * math.sqrt(largest), 1.0))


@njit(cache=True, nogil=True, error_model="numpy")
def _smallest_cap(points: np.ndarray, axis: np.ndarray) -> bool:
    """Axis of the smallest cap that holds all points of the unit sphere; False if it is no less than a half sphere.

    A cap is held by at most three points. While some point lies outside, the farthest one joins those that hold the
    cap, and the smallest cap of these four takes its place; it grows each time, so this ends at the smallest of all
    (linear programming type of problem: Sharir and Welzl 1992). Where rounding ends it early the axis is merely good.
    """
    basis = np.empty((4, 3))
    kept = np.empty((3, 3))
    trial = np.empty(3)
    _copy(points[0], axis)
    _copy(points[0], basis[0])
    held = 1
    size = 0.0
    for _ in range(64):
        far = 0
        distance = -1.0
        for i in range(points.shape[0]):
            chord = _chord(points, i, axis)
            if chord > distance:
                distance = chord
                far = i
        if distance <= size * (1.0 + 1e-9) + 1e-24:
            return True
        _copy(points[far], basis[held])
        best = 2.0  # square chord of a half sphere
        one = other = -1
        for a in range(held):
            for b in range(a, held):  # a == b: held by the new point and one more, else by two more
                if not _cap_through(basis[held], basis[a], basis[b], a == b, trial):
                    continue
                radius = _chord(basis, held, trial)
                inside = True
                for k in range(held):
                    inside = inside and _chord(basis, k, trial) <= radius * (1.0 + 1e-9) + 1e-24
                if inside and radius < best:
                    best = radius
                    one, other = a, b
                    _copy(trial, axis)
        if one < 0:
            # Four points without a cap lie all around the sphere, but for some that rounding cannot tell apart.
            return distance < 2.0
        size = best
        _copy(basis[held], kept[0])
        _copy(basis[one], kept[1])
        _copy(basis[other], kept[2])
        held = 2 if one == other else 3
        for k in range(held):
            _copy(kept[k], basis[k])
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _cap_through(a: np.ndarray, b: np.ndarray, c: np.ndarray, two: bool, axis: np.ndarray) -> bool:
    """Axis of the smallest cap with a and b (two) or all three points on its rim; False where they leave it open."""
    if two:
        x, y, z = a[0] + b[0], a[1] + b[1], a[2] + b[2]
    else:
        ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
        x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        if x * a[0] + y * a[1] + z * a[2] < 0.0:
            x, y, z = -x, -y, -z
        if x * x + y * y + z * z < 1e-20 * (ux * ux + uy * uy + uz * uz) * (vx * vx + vy * vy + vz * vz):
            return False
    norm = math.sqrt(x * x + y * y + z * z)
    if not norm > 1e-150:
        return False
    axis[0], axis[1], axis[2] = x / norm, y / norm, z / norm
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _joined(a: np.ndarray, angle_a: float, b: np.ndarray, angle_b: float, axis: np.ndarray) -> float:
    """Smallest cap that holds two caps: its axis into `axis`, its angle as the result (padded)."""
    chord = math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)
    between = 2.0 * math.asin(min(0.5 * chord, 1.0))
    if between + angle_b <= angle_a:
        _copy(a, axis)
        return angle_a
    if between + angle_a <= angle_b:
        _copy(b, axis)
        return angle_b
    angle = 0.5 * (angle_a + between + angle_b)
    if angle >= 0.5 * math.pi or between < 1e-12:
        _copy(a, axis)
        return max(angle_a, between + angle_b) + ROUNDING
    # On the great circle from a to b, as far from a as the cap exceeds that of a.
    share_a = math.sin(between - (angle - angle_a)) / math.sin(between)
    share_b = math.sin(angle - angle_a) / math.sin(between)
    norm = 0.0
    for j in range(3):
        axis[j] = share_a * a[j] + share_b * b[j]
        norm += axis[j] * axis[j]
    for j in range(3):
        axis[j] /= math.sqrt(norm)
    return angle + ROUNDING


# Recoil vectors. --------------------------------------------------------------------------------------------------


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
            size, margin = _gather(normals, items, tilts, starts[low[i]], starts[high[i]], points)
            _copy(axes[i], axis)
        elif counts[left] == 0 or counts[right[i]] == 0:
            continue
        else:
            size = counts[left] + counts[right[i]]
            for k in range(size):
                first = k < counts[left]
                child, row = (left, k) if first else (right[i], k - counts[left])
                _copy(vectors[child, row], points[k])
            margin = max(margins[left], margins[right[i]])
            if not _smallest_cap(points[:size], axis):
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


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def _before(plane: np.ndarray, i: int, j: int) -> bool:
    return plane[i, 0] < plane[j, 0] or (plane[i, 0] == plane[j, 0] and plane[i, 1] < plane[j, 1])


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> float:
    """Twice the signed area of the triangle a, b, c in the plane: positive for a left turn at b."""
    return (bx - ax) * (cy - by) - (by - ay) * (cx - bx)


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def _take_out(corners: np.ndarray, used: int, k: int) -> int:
    for j in range(k, used - 1):
        corners[j, 0] = corners[j + 1, 0]
        corners[j, 1] = corners[j + 1, 1]
    return used - 1


@njit(cache=True, nogil=True, error_model="numpy")
def _to_segment(ax: float, ay: float, bx: float, by: float, x: float, y: float) -> float:
    """Distance of (x, y) from the segment a b."""
    dx, dy = bx - ax, by - ay
    square = dx * dx + dy * dy
    share = 0.0
    if square > 0.0:
        share = min(max(((x - ax) * dx + (y - ay) * dy) / square, 0.0), 1.0)
    return math.hypot(x - ax - share * dx, y - ay - share * dy)


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
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
