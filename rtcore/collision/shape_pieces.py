"""Convex pieces that hold a shape or a part of one, down a tree that is made up while it is walked.

A piece is the convex core of its record, grown by its margin; it holds everything of the shape that its path leads to,
and sticks out of that by its excess at most. Sphere, capsule, box, cylinder, cone, plane and triangle are one piece
each without excess. The others are halved: 1 is the path of the whole and 2 p, 2 p + 1 those of the halves of p (in a
mesh, a path is the index of a node). A part that is known to hold nothing has no piece.

* Torus: the triangle of an arc's ends and the crossing of its tangents, grown by the tube; excess R (1 / cos a - 1).
* Height field: boxes from the least and largest heights, then the two triangles of a cell.
* Patch: its stored boxes, then hulls of control points. With an affine map that is off the control points by r at most,
  points of surface and hull of equal parameters differ by 2 r at most (both are averages), which is the excess.
* Gyroid g: cells of its box; with M a bound on the second derivatives (2 + sqrt 2) k^2, |g(x) - g(c) - g'(c).(x - c)|
  <= M |x - c|^2 / 2, so a cell is empty, or what is in it lies in a slab across g'(c), by which it is clipped.

Source: Redon 2002, chapter 3 (rigid parametric and implicit surfaces); own work for the bounds.
"""

import math
from typing import Any

import numpy as np

from rtcore.geometry.shapes import (
    PATCH_BOX,
    PATCH_NET,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_GYROID,
    SHAPE_HEIGHT_FIELD,
    SHAPE_MESH,
    SHAPE_PATCH,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    SHAPE_TORUS,
    block,
)
from rtcore.kernels import inner, kernel
from rtcore.spatial import Vector, add, length, put_vector, quaternion, rotate, scaled, subtract, vector

CORE_POINTS = 0
"""Hull of the first `count` points."""
CORE_BOX = 1
CORE_CYLINDER = 2
"""Radius half[0] about axes[2], half length half[2]."""
CORE_CONE = 3
"""Base of radius half[0] at -half[2] along axes[2], apex at +half[2]."""
CORE_PLANE = 4
"""The half space below the plane through the centre, axes[2] its outward normal."""

MAX_POINTS = 16
DEEPEST = 1 << 60
"""Paths from here on are not halved any more."""

PIECE = np.dtype(
    [
        ("points", "f8", (MAX_POINTS, 3)),  # body frame, m, as everything here
        ("centre", "f8", 3),
        ("axes", "f8", (3, 3)),  # one unit axis per row
        ("half", "f8", 3),
        ("margin", "f8"),  # the piece is all within this of its core
        ("excess", "f8"),  # and all within this of a point of the shape; 0 for a triangle or a whole solid
        ("ball_centre", "f8", 3),  # a ball that holds the core
        ("ball_radius", "f8"),
        ("core", "i4"),
        ("count", "i4"),
        ("divisible", "i4"),  # 1: to be halved for a better answer
        ("triangle", "i4"),  # mesh: index into the triangle table; -1 elsewhere
    ],
    align=True,
)
"""A convex set that holds a part of a shape."""

_PAD = 32.0 * 2.0**-52


@kernel
def load_piece(
    shape: Any,
    values: np.ndarray,
    nodes: np.ndarray,
    triangles: np.ndarray,
    path: int,
    tolerance: float,
    piece: np.void,
) -> bool:
    """Fill a PIECE with the part of a shape that a path leads to; False when nothing is there.

    shape: SHAPE; values: the table of values; nodes, triangles: tables of BOX_NODE and TRIANGLE, for a mesh; tolerance:
    pieces of less excess are not divisible, m.
    """
    kind = shape.kind
    piece.margin = 0.0
    piece.excess = 0.0
    piece.triangle = -1
    piece.divisible = 0
    if kind == SHAPE_MESH:
        _load_node(nodes, triangles, path, piece)
        return True
    there = True
    if kind == SHAPE_TORUS:
        _load_arc(shape, path, piece)
    elif kind == SHAPE_HEIGHT_FIELD:
        there = _load_block(shape, values, path, piece)
    elif kind == SHAPE_PATCH:
        _load_patch(shape, values, path, piece)
    elif kind == SHAPE_GYROID:
        there = _load_cell(shape, path, piece)
    else:
        _load_solid(shape, piece)
    if not there:
        return False
    _to_body(shape, piece)
    piece.divisible = 1 if piece.excess > tolerance and path < DEEPEST else 0
    return True


@kernel
def root_path(shape: Any) -> int:
    """The path of a whole shape."""
    return shape.root if shape.kind == SHAPE_MESH else 1


@kernel
def half_path(shape: Any, nodes: np.ndarray, path: int, side: int) -> int:
    """The path of one half (side 0 or 1) of a divisible piece."""
    if shape.kind != SHAPE_MESH:
        return 2 * path + side
    if side == 0:
        return path + 1
    return int(nodes[path].right)


@kernel
def support(piece: np.void, d: Vector) -> Vector:
    """The point of the core that is farthest along d (body frame, any length), to rounding; not for a half space."""
    if piece.core == CORE_POINTS:
        best = 0
        farthest = -math.inf
        for k in range(piece.count):
            reach = piece.points[k, 0] * d[0] + piece.points[k, 1] * d[1] + piece.points[k, 2] * d[2]
            if reach > farthest:
                farthest = reach
                best = k
        return piece.points[best, 0], piece.points[best, 1], piece.points[best, 2]
    axes = piece.axes
    x = axes[0, 0] * d[0] + axes[0, 1] * d[1] + axes[0, 2] * d[2]
    y = axes[1, 0] * d[0] + axes[1, 1] * d[1] + axes[1, 2] * d[2]
    z = axes[2, 0] * d[0] + axes[2, 1] * d[1] + axes[2, 2] * d[2]
    c = piece.half[2] if z >= 0.0 else -piece.half[2]
    if piece.core == CORE_BOX:
        a = piece.half[0] if x >= 0.0 else -piece.half[0]
        b = piece.half[1] if y >= 0.0 else -piece.half[1]
    else:
        across = math.sqrt(x * x + y * y)
        a = 0.0
        b = 0.0
        if piece.core == CORE_CONE:
            c = piece.half[2] if 2.0 * z * piece.half[2] >= piece.half[0] * across else -piece.half[2]
        if across > 0.0 and (piece.core == CORE_CYLINDER or c < 0.0):
            a = piece.half[0] * x / across
            b = piece.half[0] * y / across
    return (
        piece.centre[0] + a * axes[0, 0] + b * axes[1, 0] + c * axes[2, 0],
        piece.centre[1] + a * axes[0, 1] + b * axes[1, 1] + c * axes[2, 1],
        piece.centre[2] + a * axes[0, 2] + b * axes[1, 2] + c * axes[2, 2],
    )


# Making pieces, in the shape's own frame. ---------------------------------------------------------------------------


@inner
def _upright(piece: np.void, core: int, a: float, b: float, c: float) -> None:
    """A core with a frame: about the origin, along the axes, with half lengths a, b, c."""
    piece.core = core
    for k in range(3):
        piece.centre[k] = 0.0
        for j in range(3):
            piece.axes[k, j] = 1.0 if j == k else 0.0
    piece.half[0] = a
    piece.half[1] = b
    piece.half[2] = c


@inner
def _put_point(piece: np.void, k: int, x: float, y: float, z: float) -> None:
    piece.points[k, 0] = x
    piece.points[k, 1] = y
    piece.points[k, 2] = z


@inner
def _load_solid(shape: Any, piece: np.void) -> None:
    """Sphere, capsule, box, cylinder, cone, half space."""
    kind = shape.kind
    size = shape.size
    if kind in (SHAPE_SPHERE, SHAPE_CAPSULE):
        piece.core = CORE_POINTS
        piece.margin = size[0]
        piece.count = 1
        _put_point(piece, 0, 0.0, 0.0, 0.0)
        if kind == SHAPE_CAPSULE:
            piece.count = 2
            _put_point(piece, 0, 0.0, 0.0, -size[1])
            _put_point(piece, 1, 0.0, 0.0, size[1])
    elif kind == SHAPE_BOX:
        _upright(piece, CORE_BOX, size[0], size[1], size[2])
    elif kind == SHAPE_CYLINDER:
        _upright(piece, CORE_CYLINDER, size[0], size[0], size[1])
    elif kind == SHAPE_CONE:
        _upright(piece, CORE_CONE, size[0], size[0], size[1])
    elif kind == SHAPE_PLANE:
        _upright(piece, CORE_PLANE, 0.0, 0.0, 0.0)


@inner
def _load_arc(shape: Any, path: int, piece: np.void) -> None:
    """The whole ring in a flat disc, half of it in a rectangle, smaller arcs in triangles."""
    ring = shape.size[0]
    piece.margin = shape.size[1] + _PAD * ring
    if path == 1:
        _upright(piece, CORE_CYLINDER, ring, ring, 0.0)
        piece.excess = ring
        return
    level = 0
    while path >> (level + 1):
        level += 1
    span = 2.0 * math.pi / (1 << level)
    start = span * (path - (1 << level))
    x0 = ring * math.cos(start)
    y0 = ring * math.sin(start)
    x1 = ring * math.cos(start + span)
    y1 = ring * math.sin(start + span)
    stretch = ring / math.cos(0.5 * span) if level > 1 else 0.0
    x = stretch * math.cos(start + 0.5 * span)
    y = stretch * math.sin(start + 0.5 * span)
    piece.core = CORE_POINTS
    _put_point(piece, 0, x0, y0, 0.0)
    _put_point(piece, 1, x1, y1, 0.0)
    if level == 1:
        piece.count = 4
        _put_point(piece, 2, x0 - y0, y0 + x0, 0.0)
        _put_point(piece, 3, x1 - y0, y1 + x0, 0.0)
        piece.excess = ring
    else:
        piece.count = 3
        _put_point(piece, 2, x, y, 0.0)
        sine = math.sin(0.25 * span)
        piece.excess = 2.0 * sine * sine * stretch


@inner
def _load_block(shape: Any, values: np.ndarray, path: int, piece: np.void) -> bool:
    """A block of cells in its box, or one triangle of a cell."""
    rows = shape.rows - 1
    columns = shape.columns - 1
    i0, i1, j0, j1, left = block(rows, columns, path)
    if left > 3:
        return False
    x = shape.size[0]
    y = shape.size[1]
    first = shape.value_first
    if left > 1:
        piece.core = CORE_POINTS
        piece.count = 3
        for k in range(3):
            i = i1 if k == 1 or (k == 2 and left == 2) else i0
            j = j1 if k == 1 or (k == 2 and left == 3) else j0
            height = values[first + i * shape.columns + j]
            _put_point(piece, k, (i - 0.5 * rows) * x, (j - 0.5 * columns) * y, height)
        return True
    low = values[first + shape.rows * shape.columns + 2 * path]
    high = values[first + shape.rows * shape.columns + 2 * path + 1]
    _upright(piece, CORE_BOX, 0.5 * (i1 - i0) * x, 0.5 * (j1 - j0) * y, 0.5 * (high - low))
    piece.centre[0] = 0.5 * (i0 + i1 - rows) * x
    piece.centre[1] = 0.5 * (j0 + j1 - columns) * y
    piece.centre[2] = 0.5 * (low + high)
    piece.margin = _PAD * (rows * x + columns * y + abs(low) + abs(high))
    piece.excess = length(vector(piece.half))
    return True


@inner
def _load_patch(shape: Any, values: np.ndarray, path: int, piece: np.void) -> None:
    """A stored box above the level of the leaves, from there on the hull of the control points."""
    level = 0
    while path >> (level + 1):
        level += 1
    kept = shape.level
    first = shape.value_first
    if level < kept:
        piece.core = CORE_BOX
        at = first + PATCH_BOX * path
        for k in range(3):
            piece.centre[k] = values[at + k]
            piece.half[k] = values[at + 12 + k]
            for j in range(3):
                piece.axes[k, j] = values[at + 3 + 3 * k + j]
        piece.excess = length(vector(piece.half))
        return
    leaf = path >> (level - kept)
    at = first + PATCH_BOX * (2 << kept) + PATCH_NET * (leaf - (1 << kept))
    piece.core = CORE_POINTS
    piece.count = 16
    largest = 0.0
    for k in range(16):
        for j in range(3):
            piece.points[k, j] = values[at + 3 * k + j]
            largest = max(largest, abs(piece.points[k, j]))
    for depth in range(kept, level):
        upper = (path >> (level - 1 - depth)) & 1
        for line in range(4):
            if depth % 2 == 0:
                _halve(piece.points, line, 4, upper)
            else:
                _halve(piece.points, 4 * line, 1, upper)
    piece.margin = _PAD * largest
    piece.excess = 2.0 * (_off_affine(piece.points) + piece.margin)


@inner
def _halve(points: np.ndarray, start: int, step: int, upper: int) -> None:
    """Replace four control points of a cubic by those of its lower or upper half, by de Casteljau's rule."""
    for j in range(3):
        p0 = points[start, j]
        p1 = points[start + step, j]
        p2 = points[start + 2 * step, j]
        p3 = points[start + 3 * step, j]
        a = 0.5 * (p0 + p1)
        b = 0.5 * (p1 + p2)
        c = 0.5 * (p2 + p3)
        d = 0.5 * (a + b)
        e = 0.5 * (b + c)
        f = 0.5 * (d + e)
        points[start, j] = f if upper else p0
        points[start + step, j] = e if upper else a
        points[start + 2 * step, j] = c if upper else d
        points[start + 3 * step, j] = p3 if upper else f


@inner
def _off_affine(points: np.ndarray) -> float:
    """How far control points are, at most, from the affine map of their parameters through the corners' means."""
    worst = 0.0
    for i in range(4):
        for j in range(4):
            square = 0.0
            for k in range(3):
                middle = 0.25 * (points[0, k] + points[3, k] + points[12, k] + points[15, k])
                along_u = 0.5 * (points[12, k] + points[15, k] - points[0, k] - points[3, k])
                along_v = 0.5 * (points[3, k] + points[15, k] - points[0, k] - points[12, k])
                off = points[4 * i + j, k] - middle - (i / 3.0 - 0.5) * along_u - (j / 3.0 - 0.5) * along_v
                square += off * off
            worst = max(worst, square)
    return math.sqrt(worst)


@inner
def _gyroid(k: float, c: Vector) -> tuple[float, Vector]:
    """(value, gradient) of the gyroid's function of wave number k."""
    sx, cx = math.sin(k * c[0]), math.cos(k * c[0])
    sy, cy = math.sin(k * c[1]), math.cos(k * c[1])
    sz, cz = math.sin(k * c[2]), math.cos(k * c[2])
    return sx * cy + sy * cz + sz * cx, (k * (cx * cy - sz * sx), k * (cy * cz - sx * sy), k * (cz * cx - sy * sz))


@inner
def _load_cell(shape: Any, path: int, piece: np.void) -> bool:
    """A cell of the gyroid's box, always cut across the longest side, clipped to where its part of the solid can be."""
    size = shape.size
    level = size[4]
    cx, cy, cz = 0.0, 0.0, 0.0
    hx, hy, hz = size[0], size[1], size[2]
    bit = 0
    while path >> (bit + 1):
        bit += 1
    for depth in range(bit):
        side = 1.0 if (path >> (bit - 1 - depth)) & 1 else -1.0
        if hx >= hy and hx >= hz:
            hx *= 0.5
            cx += side * hx
        elif hy >= hz:
            hy *= 0.5
            cy += side * hy
        else:
            hz *= 0.5
            cz += side * hz
    radius = math.sqrt(hx * hx + hy * hy + hz * hz)
    value, gradient = _gyroid(size[3], (cx, cy, cz))
    slope = length(gradient)
    pad = _PAD * (1.0 + size[3] * (size[0] + size[1] + size[2]))
    bend = (2.0 + math.sqrt(2.0)) * size[3] * size[3] * (1.0 + _PAD)
    change = 0.5 * bend * radius * radius + pad
    steepest = math.sqrt(3.0) * size[3] * radius * (1.0 + _PAD) + pad
    if abs(value) - level > min(steepest, slope * radius + change):
        return False
    _upright(piece, CORE_BOX, hx, hy, hz)
    put_vector(piece.centre, (cx, cy, cz))
    piece.margin = _PAD * (size[0] + size[1] + size[2])
    piece.excess = 2.0 * radius
    if not slope * radius > 2.0 * change:
        return True
    low = (-level - value - change) / slope
    high = (level - value + change) / slope
    if not _clip(piece, scaled(gradient, 1.0 / slope), low, high):
        return False
    piece.excess = min(piece.excess, _stick_out(size, piece, gradient, bend, radius, 4.0 * pad))
    return True


@inner
def _clip(piece: np.void, n: Vector, low: float, high: float) -> bool:
    """Replace a box along the axes by the hull of its part with n.(x - centre) in low..high; False if nothing is left.

    It has 8 faces at most, and so 12 corners at most. The limits are given with a pad above the rounding in here.
    """
    count = 0
    for corner in range(8):
        ax = piece.half[0] if corner & 1 else -piece.half[0]
        ay = piece.half[1] if corner & 2 else -piece.half[1]
        az = piece.half[2] if corner & 4 else -piece.half[2]
        height = n[0] * ax + n[1] * ay + n[2] * az
        if low <= height <= high:
            count = _keep(piece, count, (ax, ay, az))
        for k in range(3):
            if corner & (1 << k):
                continue
            step = 2.0 * piece.half[k]  # the edge from this corner along axis k
            rise = step * n[k]
            for cut in (low, high):
                if (height - cut) * (height + rise - cut) < 0.0:
                    share = step * (cut - height) / rise
                    bx = ax + share if k == 0 else ax
                    by = ay + share if k == 1 else ay
                    bz = az + share if k == 2 else az
                    count = _keep(piece, count, (bx, by, bz))
    piece.count = min(count, MAX_POINTS)
    if 0 < count <= MAX_POINTS:  # else, were rounding to make more of them, the box stays as it is
        piece.core = CORE_POINTS
    return count > 0


@inner
def _keep(piece: np.void, count: int, offset: Vector) -> int:
    if count < MAX_POINTS:
        put_vector(piece.points[count], add(vector(piece.centre), offset))
    return count + 1


@inner
def _stick_out(size: np.ndarray, piece: np.void, gradient: Vector, bend: float, radius: float, pad: float) -> float:
    """How far from the solid a point of a clipped cell may be; inf where the gradient does not tell.

    The function is off the level there by bend radius^2 and the pad at most. Going down (or up) along the gradient, at
    least half as steep as at the centre, the level is reached within `off`; at a face of the gyroid's box, along it.
    """
    free_x, free_y, free_z = 1.0, 1.0, 1.0
    for _ in range(4):
        slope = length((free_x * gradient[0], free_y * gradient[1], free_z * gradient[2]))
        if slope <= 0.0:
            return math.inf
        off = (2.0 * bend * radius * radius + pad) / slope
        if not 4.0 * bend * (radius + off) < slope:
            return math.inf
        next_x = 1.0 if abs(piece.centre[0]) + piece.half[0] + off < size[0] else 0.0
        next_y = 1.0 if abs(piece.centre[1]) + piece.half[1] + off < size[1] else 0.0
        next_z = 1.0 if abs(piece.centre[2]) + piece.half[2] + off < size[2] else 0.0
        next_x, next_y, next_z = min(next_x, free_x), min(next_y, free_y), min(next_z, free_z)
        if next_x == free_x and next_y == free_y and next_z == free_z:
            return off
        free_x, free_y, free_z = next_x, next_y, next_z
    return math.inf


@inner
def _to_body(shape: Any, piece: np.void) -> None:
    """Carry a piece from the shape's own frame to the body frame, and put a ball about its core."""
    turn = quaternion(shape.orientation)
    place = vector(shape.position)
    if piece.core == CORE_POINTS:
        centre = (0.0, 0.0, 0.0)
        for k in range(piece.count):
            p = add(place, rotate(turn, vector(piece.points[k])))
            put_vector(piece.points[k], p)
            centre = add(centre, p)
        _ball(piece, scaled(centre, 1.0 / piece.count))
        return
    put_vector(piece.centre, add(place, rotate(turn, vector(piece.centre))))
    for k in range(3):
        put_vector(piece.axes[k], rotate(turn, vector(piece.axes[k])))
    put_vector(piece.ball_centre, vector(piece.centre))
    if piece.core == CORE_BOX:
        piece.ball_radius = length(vector(piece.half))
    else:
        piece.ball_radius = math.sqrt(piece.half[0] * piece.half[0] + piece.half[2] * piece.half[2])


@inner
def _ball(piece: np.void, centre: Vector) -> None:
    radius = 0.0
    for k in range(piece.count):
        radius = max(radius, length(subtract(vector(piece.points[k]), centre)))
    put_vector(piece.ball_centre, centre)
    piece.ball_radius = radius


@inner
def _load_node(nodes: np.ndarray, triangles: np.ndarray, path: int, piece: np.void) -> None:
    """The box of an inner node, or the triangle of a leaf."""
    node = nodes[path]
    if node.count == 0:
        piece.core = CORE_BOX
        for k in range(3):
            piece.centre[k] = node.centre[k]
            piece.half[k] = node.half[k]
            for j in range(3):
                piece.axes[k, j] = node.axes[k, j]
        piece.excess = node.size
        piece.divisible = 1
        put_vector(piece.ball_centre, vector(node.centre))
        piece.ball_radius = node.radius
        return
    piece.core = CORE_POINTS
    piece.count = 3
    piece.triangle = node.first
    corner = triangles[node.first].vertices
    centre = (0.0, 0.0, 0.0)
    for k in range(3):
        p = (corner[k, 0], corner[k, 1], corner[k, 2])
        put_vector(piece.points[k], p)
        centre = add(centre, p)
    _ball(piece, scaled(centre, 1.0 / 3.0))
