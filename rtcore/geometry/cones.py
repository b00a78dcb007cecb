"""Cones of outward normals over a bounding tree, for the test whether all that is below a node recedes.

A feature (vertex, edge, face) may be left out of a search for contacts only if all triangles at it recede, see
:mod:`rtcore.collision.receding`. A node stands for the features that its triangles own, so its cone holds the normals
of its own triangles and of every triangle at a vertex or an edge that one of them owns. With this rule culling a node
never takes away a feature of which only one side recedes, whichever triangle owns it.

A cone is an axis and an angle (fields of BOX_NODE), built top-down (from all the normals below a node: tight) or
bottom-up (from the cones of the children: faster, wider). :mod:`rtcore.geometry.recoil` has the thesis' other kind.

Source: Redon 2002, sections 4.2-4.4; axis and angle: Shirman and Abi-Ezzi 1993.
"""

import math

import numpy as np
from numba import njit

from rtcore.kernels import builder

ROUNDING = 1e-14
"""Pad of angles (rad) against rounding of the computations here."""
TILT = 8.0 * 2.0**-52
"""Rounding of a normal as a share of (longest edge squared / twice the area): 4 roundings of the edges' product."""


def fill_cones(nodes: np.ndarray, triangles: np.ndarray, bottom_up: bool = False) -> None:
    """Fill cone_axis and cone_angle of every node of one tree.

    nodes: (k,) BOX_NODE, depth first; triangles: (m,) TRIANGLE in leaf order with ids, owned and open filled. Every
    normal that counts for a node (see the module) lies within its angle of its axis, rounding of the normals included.
    The angle is pi where it would reach pi / 2 or one of the triangles is open or has no area. Top-down cones are the
    smallest there are; bottom-up ones are the smallest that hold those of the children.
    Source: Shirman and Abi-Ezzi 1993.
    """
    axes, angles = np.empty((len(nodes), 3)), np.empty(len(nodes))
    _cones(axes, angles, *shape(nodes), *touching_triangles(triangles), bottom_up)
    nodes["cone_axis"], nodes["cone_angle"] = axes, angles


def shape(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(first triangle below each node, the one after the last, right child or 0 for a leaf), each (k,)."""
    right = np.where(nodes["count"] > 0, 0, nodes["right"]).astype(np.int64)
    low, high = _ranges(nodes["first"].astype(np.int64), nodes["count"].astype(np.int64), right)
    return low, high, right


def touching_triangles(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
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


@builder
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
            size, tilt = gather(normals, items, tilts, starts[low[i]], starts[high[i]], points)
            if tilt == math.inf or not smallest_cap(points[:size], axis):
                continue
            angle = _reach(points[:size], axis) + tilt + ROUNDING
        if angle < 0.5 * math.pi:
            copy(axis, axes[i])
            angles[i] = angle


@njit(cache=True, nogil=True, error_model="numpy")
def copy(source: np.ndarray, target: np.ndarray) -> None:
    for j in range(source.shape[0]):
        target[j] = source[j]


@njit(cache=True, nogil=True, error_model="numpy")
def gather(
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


@builder
def _chord(points: np.ndarray, i: int, axis: np.ndarray) -> float:
    """Square distance of point i from the end of the axis: exact for small angles, where the cosine is not."""
    x = points[i, 0] - axis[0]
    y = points[i, 1] - axis[1]
    z = points[i, 2] - axis[2]
    return x * x + y * y + z * z


@builder
def _reach(points: np.ndarray, axis: np.ndarray) -> float:
    """Largest angle between the axis and a point."""
    largest = 0.0
    for i in range(points.shape[0]):
        largest = max(largest, _chord(points, i, axis))
    return 2.0 * math.asin(min(0.5 * math.sqrt(largest), 1.0))


@njit(cache=True, nogil=True, error_model="numpy")
def smallest_cap(points: np.ndarray, axis: np.ndarray) -> bool:
    """Axis of the smallest cap that holds all points of the unit sphere; False if it is no less than a half sphere.

    A cap is held by at most three points. While some point lies outside, the farthest one joins those that hold the
    cap, and the smallest cap of these four takes its place; it grows each time, so this ends at the smallest of all
    (linear programming type of problem: Sharir and Welzl 1992). Where rounding ends it early the axis is merely good.
    """
    basis = np.empty((4, 3))
    kept = np.empty((3, 3))
    trial = np.empty(3)
    copy(points[0], axis)
    copy(points[0], basis[0])
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
        copy(points[far], basis[held])
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
                    copy(trial, axis)
        if one < 0:
            # Four points without a cap lie all around the sphere, but for some that rounding cannot tell apart.
            return distance < 2.0
        size = best
        copy(basis[held], kept[0])
        copy(basis[one], kept[1])
        copy(basis[other], kept[2])
        held = 2 if one == other else 3
        for k in range(held):
            copy(kept[k], basis[k])
    return True


@builder
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


@builder
def _joined(a: np.ndarray, angle_a: float, b: np.ndarray, angle_b: float, axis: np.ndarray) -> float:
    """Smallest cap that holds two caps: its axis into `axis`, its angle as the result (padded)."""
    chord = math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)
    between = 2.0 * math.asin(min(0.5 * chord, 1.0))
    if between + angle_b <= angle_a:
        copy(a, axis)
        return angle_a
    if between + angle_a <= angle_b:
        copy(b, axis)
        return angle_b
    angle = 0.5 * (angle_a + between + angle_b)
    if angle >= 0.5 * math.pi or between < 1e-12:
        copy(a, axis)
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
