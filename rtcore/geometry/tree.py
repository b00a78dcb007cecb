"""Bounding trees of triangle meshes: axis-aligned boxes, binned surface-area splits, stored depth first."""

import math

import numpy as np
from numba import njit

from rtcore.tables import MAX_TREE_DEPTH, NODE, TRIANGLE

LEAF_TRIANGLES = 4
BINS = 16
DEGENERATE_SHARE = 1e-14
"""A triangle whose area is below this share of its longest edge squared is treated as the segment it is."""


def build_tree(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Build the bounding tree of a mesh: (nodes (k,) NODE, triangles (m,) TRIANGLE in leaf order), depth first.

    vertices: (n, 3) m, mesh frame; faces: (m, 3) rows of `vertices`. Indices in the result count from 0. Leaves hold at
    most 4 triangles and no node is deeper than MAX_TREE_DEPTH - 2, whatever the mesh. Triangles without area are kept.
    Raises ValueError for a mesh without faces, for wrong shapes, for face indices out of range and for coordinates
    that are not finite.
    Source: binned surface-area heuristic (Wald 2007), with splits into equal halves where it would go too deep.
    """
    points = np.ascontiguousarray(vertices, dtype=np.float64)
    rows = np.ascontiguousarray(faces, dtype=np.int64)
    if points.ndim != 2 or points.shape[1:] != (3,):
        raise ValueError(f"vertices must have the shape (n, 3), not {points.shape}")
    if rows.ndim != 2 or rows.shape[1:] != (3,):
        raise ValueError(f"faces must have the shape (m, 3), not {rows.shape}")
    if len(rows) == 0:
        raise ValueError("a mesh needs at least one triangle")
    if rows.min() < 0 or rows.max() >= len(points):
        raise ValueError(f"face indices must lie in 0 .. {len(points) - 1}, found {rows.min()} .. {rows.max()}")
    corners = points[rows]
    if not np.isfinite(corners).all():
        raise ValueError("vertex coordinates must be finite")

    lower, upper = corners.min(axis=1), corners.max(axis=1)
    order = np.arange(len(rows), dtype=np.int64)
    nodes = np.zeros(2 * len(rows), NODE)
    used = _split(
        lower,
        upper,
        0.5 * (lower + upper),
        order,
        nodes,
        np.zeros((2 * MAX_TREE_DEPTH, 4), dtype=np.int64),
        np.zeros((BINS + 2, 6)),
        np.zeros(BINS, dtype=np.int64),
        np.zeros(BINS),
    )
    nodes = nodes[:used].copy()

    triangles = np.zeros(len(rows), TRIANGLE)
    triangles["vertices"] = corners[order]
    triangles["face_id"] = order
    triangles["normal"], triangles["degenerate"] = _normals(triangles["vertices"])
    return nodes, triangles


def _normals(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return unit normals (m, 3) by the right-hand rule and which triangles have no area (m,).

    The normal of a needle is badly known along the needle, where it matters most, so it is made perpendicular to the
    longest edge again.
    """
    edges = np.roll(corners, -1, axis=1) - corners
    length = np.linalg.norm(edges, axis=2)
    longest = np.argmax(length, axis=1)
    rows = np.arange(len(corners))
    span = length[rows, longest]
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = edges / span[:, None, None]  # scaled first, so that tiny and huge triangles neither under- nor overflow
        along = unit[rows, longest]
        normal = np.cross(along, unit[rows, (longest + 1) % 3])
        area = np.linalg.norm(normal, axis=1)
        flat = ~(area > DEGENERATE_SHARE)
        normal = normal / area[:, None]
        normal -= np.sum(normal * along, axis=1)[:, None] * along
        normal /= np.linalg.norm(normal, axis=1)[:, None]
    along = np.where(np.isfinite(along), along, np.array([1.0, 0.0, 0.0]))
    axis = np.eye(3)[np.argmin(np.abs(along), axis=1)]
    fallback = np.cross(along, axis)
    fallback /= np.linalg.norm(fallback, axis=1)[:, None]
    normal[flat] = fallback[flat]
    return normal, flat.astype(np.int32)


@njit(cache=True, nogil=True, error_model="numpy")
def _half_area(boxes: np.ndarray, b: int) -> float:
    x = boxes[b, 3] - boxes[b, 0]
    y = boxes[b, 4] - boxes[b, 1]
    z = boxes[b, 5] - boxes[b, 2]
    return x * y + y * z + z * x


@njit(cache=True, nogil=True, error_model="numpy")
def _clear(boxes: np.ndarray, b: int) -> None:
    for k in range(3):
        boxes[b, k] = math.inf
        boxes[b, 3 + k] = -math.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _grow(boxes: np.ndarray, b: int, lower: np.ndarray, upper: np.ndarray, i: int) -> None:
    for k in range(3):
        boxes[b, k] = min(boxes[b, k], lower[i, k])
        boxes[b, 3 + k] = max(boxes[b, 3 + k], upper[i, k])


@njit(cache=True, nogil=True, error_model="numpy")
def _join(boxes: np.ndarray, b: int, other: int) -> None:
    for k in range(3):
        boxes[b, k] = min(boxes[b, k], boxes[other, k])
        boxes[b, 3 + k] = max(boxes[b, 3 + k], boxes[other, 3 + k])


@njit(cache=True, nogil=True, error_model="numpy")
def _levels_needed(count: int) -> int:
    levels = 0
    while count > LEAF_TRIANGLES:
        count = (count + 1) // 2
        levels += 1
    return levels


@njit(cache=True, nogil=True, error_model="numpy")
def _bin(centre: float, start: float, scale: float) -> int:
    return min(BINS - 1, int((centre - start) * scale))


@njit(cache=True, nogil=True, error_model="numpy")
def _split(
    lower: np.ndarray,
    upper: np.ndarray,
    centre: np.ndarray,
    order: np.ndarray,
    nodes: np.ndarray,
    stack: np.ndarray,
    boxes: np.ndarray,
    counts: np.ndarray,
    right_area: np.ndarray,
) -> int:
    """Fill `nodes` depth first, put `order` into leaf order, and return the number of nodes.

    Rows of stack: first, end, depth, parent whose right child this is (or -1). boxes: one row per bin, then two more.
    """
    box = BINS  # row of the box at hand
    spread = BINS + 1  # row of the box of the centres
    stack[0, 0] = 0
    stack[0, 1] = len(order)
    stack[0, 2] = 0
    stack[0, 3] = -1
    top = 1
    used = 0
    while top > 0:
        top -= 1
        first = stack[top, 0]
        end = stack[top, 1]
        depth = stack[top, 2]
        parent = stack[top, 3]
        node = nodes[used]
        if parent >= 0:
            nodes[parent].right = used
        _clear(boxes, box)
        _clear(boxes, spread)
        for i in range(first, end):
            _grow(boxes, box, lower, upper, order[i])
            _grow(boxes, spread, centre, centre, order[i])
        for k in range(3):
            node.lower[k] = boxes[box, k]
            node.upper[k] = boxes[box, 3 + k]
        node.depth = depth
        count = end - first
        if count <= LEAF_TRIANGLES:
            node.first = first
            node.count = count
            used += 1
            continue
        axis = 0
        width = boxes[spread, 3] - boxes[spread, 0]
        for k in range(1, 3):
            if boxes[spread, 3 + k] - boxes[spread, k] > width:
                axis = k
                width = boxes[spread, 3 + k] - boxes[spread, k]
        middle = first + count // 2  # of what cannot be told apart, or is too deep already
        scale = BINS / width  # infinite where the centres are equal, or nearly
        if scale < math.inf and depth + 2 + _levels_needed(count) < MAX_TREE_DEPTH - 2:
            start = boxes[spread, axis]
            for b in range(BINS):
                _clear(boxes, b)
                counts[b] = 0
            for i in range(first, end):
                b = _bin(centre[order[i], axis], start, scale)
                counts[b] += 1
                _grow(boxes, b, lower, upper, order[i])
            _clear(boxes, box)
            for b in range(BINS - 1, 0, -1):
                _join(boxes, box, b)
                right_area[b] = _half_area(boxes, box)
            _clear(boxes, box)
            best = 0
            cost = math.inf
            left = 0
            for b in range(BINS - 1):
                left += counts[b]
                _join(boxes, box, b)
                if 0 < left < count:
                    price = left * _half_area(boxes, box) + (count - left) * right_area[b + 1]
                    if price < cost:
                        cost = price
                        best = b
            middle = first
            for i in range(first, end):
                item = order[i]
                if _bin(centre[item, axis], start, scale) <= best:
                    order[i] = order[middle]
                    order[middle] = item
                    middle += 1
        stack[top, 0] = middle
        stack[top, 1] = end
        stack[top, 2] = depth + 1
        stack[top, 3] = used
        stack[top + 1, 0] = first
        stack[top + 1, 1] = middle
        stack[top + 1, 2] = depth + 1
        stack[top + 1, 3] = -1
        top += 2
        used += 1
    return used
