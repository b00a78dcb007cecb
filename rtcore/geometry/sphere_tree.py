"""Trees of balls over a triangle mesh, all leaves of one radius, kept to repeat published comparisons.

The faces are covered by discs of the leaf radius on square lattices in their planes; coplanar faces share one lattice.
Every vertex, edge and face that a leaf's ball reaches belongs to the leaf. Wherever two meshes touch, the balls of two
leaves to which the touching features belong therefore overlap. Leaves with the same features share one list of them,
whose number is their label; an inner node has the label of its children if they agree, else one of its own.

Source: Redon 2002, 2.4 and 2.5 (labels) after Quinlan 1994 and Ruspini 1997; the covering is own work.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from rtcore.collision.features import point_segment, point_triangle
from rtcore.kernels import builder
from rtcore.spatial import Vector, length, scaled, subtract

SPHERE_NODE = np.dtype(
    [
        ("centre", "f8", 3),  # of the ball, mesh frame, m
        ("radius", "f8"),  # m
        ("right", "i4"),  # right child (index into the node table); the left child is the next node; 0 for a leaf
        ("label", "i4"),  # leaf: row in the table of lists; nodes of one label hold the same features
    ],
    align=True,
)
"""Node of a tree of balls, stored depth first."""

FEATURE_LIST = np.dtype(
    [
        ("vertices", "i4"),  # where its vertices begin in the table of items, followed by its edges and its faces
        ("edges", "i4"),
        ("faces", "i4"),
        ("end", "i4"),
    ],
    align=True,
)
"""The features of the leaves of one label."""

_MERGE = 1e-6  # part of the leaf radius within which two centres are one
_DENSER = 1.0 - 1e-4  # the lattice is this much denser than need be, for merged centres and rounding


class SphereTree(NamedTuple):
    """A mesh and its tree of balls."""

    nodes: np.ndarray
    """(k,) SPHERE_NODE."""
    lists: np.ndarray
    """(l,) FEATURE_LIST."""
    items: np.ndarray
    """Numbers of vertices, edges and faces, list by list."""
    vertices: np.ndarray
    """(n, 3) m, mesh frame, without doubles."""
    edges: np.ndarray
    """(e, 2) rows of vertices."""
    faces: np.ndarray
    """(m, 3) rows of vertices, as given."""
    leaf_radius: float
    """m."""


def build_sphere_tree(vertices: np.ndarray, faces: np.ndarray, leaf_radius: float) -> SphereTree:
    """Build the tree of balls of a mesh.

    vertices: (n, 3) m; faces: (m, 3) rows of `vertices`; leaf_radius: m, of every leaf's ball. Triangles without area
    are covered like the others. Raises ValueError for a radius that is not positive and for a mesh without faces.
    """
    if not leaf_radius > 0.0:
        raise ValueError(f"the leaf radius must be positive, not {leaf_radius}")
    if len(faces) == 0:
        raise ValueError("a mesh needs at least one triangle")
    points, welded = np.unique(np.asarray(vertices, dtype=np.float64) + 0.0, axis=0, return_inverse=True)
    rows = welded.ravel()[np.asarray(faces, dtype=np.int64)]
    sides = np.sort(np.concatenate([rows[:, [0, 1]], rows[:, [1, 2]], rows[:, [2, 0]]]), axis=1)
    edges = np.unique(sides, axis=0)

    centres = np.concatenate([_covering(points[row], leaf_radius) for row in rows])
    _, first = np.unique(np.round(centres / (_MERGE * leaf_radius)).astype(np.int64), axis=0, return_index=True)
    centres = np.ascontiguousarray(centres[first])

    sets: dict[tuple[bytes, bytes, bytes], int] = {}
    lists: list[tuple[int, int, int, int]] = []
    items: list[np.ndarray] = []
    used = 0
    labels = np.empty(len(centres), dtype=np.int64)
    reached = [np.zeros(count, dtype=np.bool_) for count in (len(points), len(edges), len(rows))]
    for i, centre in enumerate(centres):
        _reach(tuple(centre), leaf_radius, points, edges, rows, *reached)
        found = [np.flatnonzero(flags) for flags in reached]
        key = (found[0].tobytes(), found[1].tobytes(), found[2].tobytes())
        if key not in sets:
            sets[key] = len(lists)
            ends = used + np.cumsum([len(part) for part in found])
            lists.append((used, int(ends[0]), int(ends[1]), int(ends[2])))
            items.extend(found)
            used = int(ends[2])
        labels[i] = sets[key]

    nodes = np.zeros(2 * len(centres) - 1, SPHERE_NODE)
    _fill(centres, labels, leaf_radius, nodes, *_split(centres, nodes), len(lists))
    return SphereTree(
        nodes,
        np.array(lists, dtype=FEATURE_LIST),
        np.concatenate(items).astype(np.int32),
        points,
        edges,
        rows,
        float(leaf_radius),
    )


def list_entries(tree: SphereTree) -> tuple[int, int]:
    """How many features all lists hold, and how many they would if each leaf had its own list."""
    leaves = tree.nodes[tree.nodes["right"] == 0]["label"]
    own = tree.lists["end"] - tree.lists["vertices"]
    return int(own.sum()), int(own[leaves].sum())


def _covering(corners: np.ndarray, radius: float) -> np.ndarray:
    """Centres (k, 3) in the plane of a triangle (3, 3) such that balls of the radius about them cover it."""
    normal = _plane(corners)
    # The lattice depends on the plane alone, so that neighbours in one plane share it.
    axis = np.zeros(3)
    axis[int(np.argmax(np.abs(normal) <= np.abs(normal).min() + 1e-6))] = 1.0
    one = axis - (axis @ normal) * normal
    one /= np.linalg.norm(one)
    two = np.cross(normal, one)
    step = math.sqrt(2.0) * radius * _DENSER
    flat = corners @ np.stack([one, two], axis=1)
    low = np.floor((flat.min(axis=0) - radius) / step).astype(np.int64)
    high = np.ceil((flat.max(axis=0) + radius) / step).astype(np.int64)
    grid = np.stack(np.meshgrid(np.arange(low[0], high[0] + 1), np.arange(low[1], high[1] + 1)), axis=-1).reshape(-1, 2)
    centres = (normal @ corners[0]) * normal + step * (grid @ np.stack([one, two]))
    return centres[_near(centres, np.ascontiguousarray(corners), radius)]


def _plane(corners: np.ndarray) -> np.ndarray:
    """Unit normal of a triangle (3, 3), the same for both sides; of some plane through it if it has no area."""
    first, second = corners[1] - corners[0], corners[2] - corners[0]
    normal = np.cross(first, second)
    longest = max(first, second, second - first, key=lambda edge: float(edge @ edge))
    if normal @ normal <= 1e-24 * float(longest @ longest) ** 2:
        side = np.zeros(3)
        side[int(np.argmin(np.abs(longest)))] = 1.0
        normal = np.cross(longest, side) if longest.any() else side
    normal = normal / np.linalg.norm(normal)
    return normal if normal[int(np.argmax(np.abs(normal) > 0.5))] > 0.0 else -normal


@builder
def _row(array: np.ndarray, i: int) -> Vector:
    return array[i, 0], array[i, 1], array[i, 2]


@njit(cache=True, nogil=True, error_model="numpy")
def _near(centres: np.ndarray, corners: np.ndarray, radius: float) -> np.ndarray:
    """Which of the centres (k, 3) are within the radius of a triangle (3, 3)."""
    near = np.empty(len(centres), dtype=np.bool_)
    for i in range(len(centres)):
        _, _, square, _ = point_triangle(_row(centres, i), _row(corners, 0), _row(corners, 1), _row(corners, 2))
        near[i] = square <= radius * radius * (1.0 + 1e-9)
    return near


@njit(cache=True, nogil=True, error_model="numpy")
def _reach(
    centre: Vector,
    radius: float,
    points: np.ndarray,
    edges: np.ndarray,
    faces: np.ndarray,
    near_points: np.ndarray,
    near_edges: np.ndarray,
    near_faces: np.ndarray,
) -> None:
    """Flag the features that the ball about `centre` reaches, a little more for merged centres."""
    limit = (radius * (1.0 + 4.0 * _MERGE)) ** 2
    for i in range(len(points)):
        near_points[i] = length(subtract(_row(points, i), centre)) ** 2 <= limit
    for i in range(len(edges)):
        start = _row(points, edges[i, 0])
        _, square = point_segment(subtract(centre, start), subtract(_row(points, edges[i, 1]), start))
        near_edges[i] = square <= limit
    for i in range(len(faces)):
        _, _, square, _ = point_triangle(
            centre, _row(points, faces[i, 0]), _row(points, faces[i, 1]), _row(points, faces[i, 2])
        )
        near_faces[i] = square <= limit


def _split(centres: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fill the structure of the nodes, depth first: medians along the longest side of the box of the centres.

    Returns (order of the leaves, begin, end): node k holds the leaves order[begin[k]:end[k]].
    """
    order = np.arange(len(centres))
    begin = np.zeros(len(nodes), dtype=np.int64)
    end = np.zeros(len(nodes), dtype=np.int64)
    waiting = [(0, len(centres), -1)]
    for node in range(len(nodes)):
        low, high, parent = waiting.pop()
        if parent >= 0:
            nodes[parent]["right"] = node
        begin[node], end[node] = low, high
        if high - low > 1:
            part = order[low:high]
            axis = int(np.argmax(np.ptp(centres[part], axis=0)))
            part[:] = part[np.argsort(centres[part, axis], kind="stable")]
            middle = (low + high) // 2
            waiting.append((middle, high, node))
            waiting.append((low, middle, -1))
    return order, begin, end


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(
    centres: np.ndarray,
    labels: np.ndarray,
    radius: float,
    nodes: np.ndarray,
    order: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    label_count: int,
) -> None:
    """Make the balls (the smaller of the one about all leaves and the one about both children's) and the labels.

    Children come after their parents, so that going from the end finds them finished.
    """
    following = label_count
    for node in range(len(nodes) - 1, -1, -1):
        row = nodes[node]
        if end[node] - begin[node] == 1:
            leaf = order[begin[node]]
            for k in range(3):
                row.centre[k] = centres[leaf, k]
            row.radius = radius
            row.label = labels[leaf]
            continue
        left = nodes[node + 1]
        right = nodes[row.right]
        centre, reach = _ball_of_points(centres, order[begin[node] : end[node]])
        reach += radius
        both, size_both = _ball_of_balls(left.centre, left.radius, right.centre, right.radius)
        if size_both < reach:
            centre, reach = both, size_both
        for k in range(3):
            row.centre[k] = centre[k]
        row.radius = reach
        if left.label == right.label:
            row.label = left.label
        else:
            row.label = following
            following += 1


@builder
def _ball_of_points(centres: np.ndarray, rows: np.ndarray) -> tuple[Vector, float]:
    """A ball around points (Ritter 1990): from the middle of two distant ones, grown to take in the rest."""
    first = _furthest(centres, rows, _row(centres, rows[0]))
    second = _furthest(centres, rows, _row(centres, first))
    p = _row(centres, first)
    q = _row(centres, second)
    centre = (0.5 * (p[0] + q[0]), 0.5 * (p[1] + q[1]), 0.5 * (p[2] + q[2]))
    radius = 0.5 * length(subtract(p, q))
    for row in rows:
        out = subtract(_row(centres, row), centre)
        distance = length(out)
        if distance > radius:
            grown = 0.5 * (distance + radius)
            step = (distance - grown) / distance
            centre = (centre[0] + step * out[0], centre[1] + step * out[1], centre[2] + step * out[2])
            radius = grown
    radius = length(subtract(_row(centres, _furthest(centres, rows, centre)), centre))
    return centre, radius * (1.0 + 1e-14)


@builder
def _furthest(centres: np.ndarray, rows: np.ndarray, point: Vector) -> int:
    best = rows[0]
    distance = -1.0
    for row in rows:
        here = length(subtract(_row(centres, row), point))
        if here > distance:
            best, distance = row, here
    return best


@builder
def _ball_of_balls(a: np.ndarray, ra: float, b: np.ndarray, rb: float) -> tuple[Vector, float]:
    """The smallest ball around two."""
    p = (a[0], a[1], a[2])
    q = (b[0], b[1], b[2])
    way = subtract(q, p)
    distance = length(way)
    if distance + rb <= ra:
        return p, ra
    if distance + ra <= rb:
        return q, rb
    radius = 0.5 * (distance + ra + rb)
    step = scaled(way, (radius - ra) / distance)
    return (p[0] + step[0], p[1] + step[1], p[2] + step[2]), radius * (1.0 + 1e-14)
