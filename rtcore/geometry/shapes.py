"""Shapes given by a few numbers: their records, and the makers that check the numbers.

A maker returns (record, values): a (1,) SHAPE table and the numbers that do not fit into it; `collect` puts several
together into the two tables that kernels take. Every shape has a frame of its own, placed in the body frame; its `size`
holds, in m unless said otherwise:

============ ==================================================================================================
kind         size; place in the shape's own frame
============ ==================================================================================================
SPHERE       radius; centre at the origin
CAPSULE      radius, half length; its segment lies along z about the origin
BOX          half lengths along x, y, z
CYLINDER     radius, half length; along z about the origin
CONE         radius of the base, half height; the base is at z = -half height, the apex on z at +half height
PLANE        none; all points with z <= 0 (a half space: without end, so it belongs on a body that stays put)
TORUS        radius of the ring, radius of the tube; the ring is in z = 0 about the origin
HEIGHT_FIELD spacing along x, along y; heights over a grid in x and y about the origin; two triangles per cell
GYROID       half lengths of the box that cuts it out, wave number (rad/m), level; in the box, all points with
             |sin kx cos ky + sin ky cos kz + sin kz cos kx| <= level
PATCH        none; a bicubic Bezier patch over 4 x 4 control points
MESH         none; the triangles below a root of a tree of boxes, in the body frame
============ ==================================================================================================

PATCH, HEIGHT_FIELD and MESH are sheets with two sides; all others are solid.
"""

import math
from collections.abc import Sequence

import numpy as np
from numba import njit

from rtcore.tables import SHAPE

SHAPE_SPHERE = 0
SHAPE_CAPSULE = 1
SHAPE_BOX = 2
SHAPE_CYLINDER = 3
SHAPE_CONE = 4
SHAPE_PLANE = 5
SHAPE_TORUS = 6
SHAPE_HEIGHT_FIELD = 7
SHAPE_GYROID = 8
SHAPE_PATCH = 9
SHAPE_MESH = 10

MAX_GRID = 1025
"""Most grid points of a height field along one side."""
PATCH_LEVEL = 6
"""Level of the leaves in the tree of boxes over the parameters of a patch: 2^6 of them."""
PATCH_BOX = 15
"""Numbers per box of a patch: centre (3), axes (3 rows of 3), half lengths (3)."""
PATCH_NET = 48
"""Numbers per control net: 4 x 4 points, u before v."""
SLENDER = 1e-6
"""Smallest share of a shape's largest length that any of its lengths may have."""
GYROID_TOP = 1.5
"""Largest value of the gyroid's function: at this level it fills its box."""
MAX_PERIODS = 100.0
"""Most periods of a gyroid along its box."""
_PAD = 16.0 * 2.0**-52


def sphere(radius: float, position: Sequence[float] = (0, 0, 0)) -> tuple[np.ndarray, np.ndarray]:
    """Return a solid ball: radius and position of its centre (body frame) in m. ValueError for a bad size."""
    (r,) = _lengths("a sphere", radius=radius)
    return _shape(SHAPE_SPHERE, (r,), r, position, (0, 0, 0, 1))


def capsule(
    radius: float,
    half_length: float,
    position: Sequence[float] = (0, 0, 0),
    orientation: Sequence[float] = (0, 0, 0, 1),
) -> tuple[np.ndarray, np.ndarray]:
    """Return a solid capsule: all points within `radius` of the segment from z = -half_length to +half_length (m).

    position (m) and orientation: of its frame in the body frame. ValueError for a bad size.
    """
    r, h = _lengths("a capsule", radius=radius, half_length=half_length)
    return _shape(SHAPE_CAPSULE, (r, h), r + h, position, orientation)


def box(
    half_lengths: Sequence[float],
    position: Sequence[float] = (0, 0, 0),
    orientation: Sequence[float] = (0, 0, 0, 1),
) -> tuple[np.ndarray, np.ndarray]:
    """Return a solid box: three half lengths (m) along the axes of its frame in the body frame.

    ValueError for a bad size.
    """
    half = _three(half_lengths, "the half lengths of a box")
    sizes = _lengths("a box", half_length_x=half[0], half_length_y=half[1], half_length_z=half[2])
    return _shape(SHAPE_BOX, sizes, math.hypot(*sizes), position, orientation)


def cylinder(
    radius: float,
    half_length: float,
    position: Sequence[float] = (0, 0, 0),
    orientation: Sequence[float] = (0, 0, 0, 1),
) -> tuple[np.ndarray, np.ndarray]:
    """Return a solid cylinder along z of its frame: radius and half length in m. ValueError for a bad size."""
    r, h = _lengths("a cylinder", radius=radius, half_length=half_length)
    return _shape(SHAPE_CYLINDER, (r, h), math.hypot(r, h), position, orientation)


def cone(
    radius: float, height: float, position: Sequence[float] = (0, 0, 0), orientation: Sequence[float] = (0, 0, 0, 1)
) -> tuple[np.ndarray, np.ndarray]:
    """Return a solid cone about z: radius of its base at z = -height/2, apex at z = +height/2 (m).

    ValueError for a bad size.
    """
    r, h = _lengths("a cone", radius=radius, height=height)
    return _shape(SHAPE_CONE, (r, 0.5 * h), math.hypot(r, 0.5 * h), position, orientation)


def plane(normal: Sequence[float], offset: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the half space of all points x with normal.x <= offset (m, body frame); `normal` need not be a unit.

    ValueError for a normal without direction and for numbers that are not finite.
    """
    n = _three(normal, "the normal of a plane")
    norm = float(np.linalg.norm(n))
    if not norm > 0.0:
        raise ValueError("the normal of a plane must have a direction, not be zero")
    if not np.isfinite(offset):
        raise ValueError(f"the offset of a plane must be a finite number of metres, not {offset!r}")
    n = n / norm
    # The half turn about the line halfway between z and the normal; where that is none, about x.
    middle = n + (0.0, 0.0, 1.0)
    length = float(np.linalg.norm(middle))
    orientation = (1.0, 0.0, 0.0, 0.0) if length < 1e-8 else (*(middle / length), 0.0)
    return _shape(SHAPE_PLANE, (), math.inf, tuple(offset * n), orientation)


def torus(
    ring_radius: float,
    tube_radius: float,
    position: Sequence[float] = (0, 0, 0),
    orientation: Sequence[float] = (0, 0, 0, 1),
) -> tuple[np.ndarray, np.ndarray]:
    """Return a solid torus about z: all points within `tube_radius` of a circle of `ring_radius` in z = 0 (m).

    ValueError for a bad size and for a tube that closes the hole.
    """
    ring, tube = _lengths("a torus", ring_radius=ring_radius, tube_radius=tube_radius)
    if tube >= ring:
        raise ValueError(f"a torus needs a tube_radius below its ring_radius, not {tube_radius!r} and {ring_radius!r}")
    return _shape(SHAPE_TORUS, (ring, tube), ring + tube, position, orientation)


def height_field(
    heights: np.ndarray,
    spacing: Sequence[float],
    position: Sequence[float] = (0, 0, 0),
    orientation: Sequence[float] = (0, 0, 0, 1),
) -> tuple[np.ndarray, np.ndarray]:
    """Return a sheet over a grid: heights (rows, columns) m along z; spacing: two distances (m) along x and y.

    The grid is centred on the origin of the shape's frame. A cell is cut from its corner (i, j) to (i + 1, j + 1).
    ValueError for a grid that is too small or too large, for numbers that are not finite, and for a bad spacing.
    """
    z = np.ascontiguousarray(heights, dtype=np.float64)
    if z.ndim != 2 or min(z.shape) < 2 or max(z.shape) > MAX_GRID:
        raise ValueError(f"a height field needs a grid of 2 .. {MAX_GRID} heights a side, not {z.shape}")
    if not np.isfinite(z).all():
        raise ValueError("the heights of a height field must be finite")
    steps = np.asarray(spacing, dtype=np.float64)
    if steps.shape != (2,):
        raise ValueError(f"the spacing of a height field must be two numbers, not {spacing!r}")
    sizes = _lengths("a height field", spacing_x=steps[0], spacing_y=steps[1])
    rows, columns = z.shape
    level = (rows - 2).bit_length() + (columns - 2).bit_length()
    limits = np.empty((2 << level, 2))
    _pyramid(z, limits)
    reach = math.hypot(0.5 * (rows - 1) * sizes[0], 0.5 * (columns - 1) * sizes[1], float(np.abs(z).max()))
    values = np.concatenate((z.ravel(), limits.ravel()))
    return _shape(SHAPE_HEIGHT_FIELD, sizes, reach, position, orientation, values, level, (rows, columns))


def gyroid(
    half_lengths: Sequence[float],
    period: float,
    level: float,
    position: Sequence[float] = (0, 0, 0),
    orientation: Sequence[float] = (0, 0, 0, 1),
) -> tuple[np.ndarray, np.ndarray]:
    """Return a solid sheet about the gyroid surface, cut out by a box: half lengths and period in m.

    level: between 0 and 1.5; the sheet is nowhere thinner than level x period / 5.5.
    ValueError for a bad size, a level outside, and more than 100 periods along the box.
    """
    half = _three(half_lengths, "the half lengths of a gyroid")
    sizes = _lengths("a gyroid", half_length_x=half[0], half_length_y=half[1], half_length_z=half[2], period=period)
    if not 0.0 < level < GYROID_TOP:
        raise ValueError(f"the level of a gyroid must lie between 0 and {GYROID_TOP}, not {level!r}")
    if 2.0 * max(sizes[:3]) > MAX_PERIODS * sizes[3]:
        raise ValueError(f"a gyroid may have {MAX_PERIODS:g} periods along its box, not more")
    numbers = (*sizes[:3], 2.0 * math.pi / sizes[3], float(level))
    return _shape(SHAPE_GYROID, numbers, math.hypot(*sizes[:3]), position, orientation)


def patch(
    control_points: np.ndarray, position: Sequence[float] = (0, 0, 0), orientation: Sequence[float] = (0, 0, 0, 1)
) -> tuple[np.ndarray, np.ndarray]:
    """Return a bicubic Bezier patch: control_points (4, 4, 3) m, its first index along u.

    Its values hold a tree of oriented boxes over the parameters, halved in u and in v by turns, and the control nets of
    the leaves. ValueError for a wrong shape, numbers that are not finite, and a patch that is a line or a point.
    Source: Redon 2002, chapter 3 (boxes over the parameter domain); Farin 1997 (subdivision, hulls).
    """
    net = np.ascontiguousarray(control_points, dtype=np.float64)
    if net.shape != (4, 4, 3):
        raise ValueError(f"the control points of a patch must have the shape (4, 4, 3), not {net.shape}")
    if not np.isfinite(net).all():
        raise ValueError("the control points of a patch must be finite")
    spread = np.linalg.svd((net - net.mean(axis=(0, 1))).reshape(16, 3), compute_uv=False)
    if not spread[1] > SLENDER * spread[0]:
        raise ValueError("the control points of a patch must span a surface, not a line or a point")
    nets = [net]
    boxes = np.zeros((2 << PATCH_LEVEL, PATCH_BOX))
    for depth in range(PATCH_LEVEL + 1):
        for k, piece in enumerate(nets):
            boxes[(1 << depth) + k] = _patch_box(piece)
        if depth < PATCH_LEVEL:
            nets = [half for piece in nets for half in _halves(piece, depth % 2)]
    values = np.concatenate((boxes.ravel(), np.array(nets).ravel()))
    reach = float(np.linalg.norm(net, axis=2).max())
    return _shape(SHAPE_PATCH, (), reach, position, orientation, values, PATCH_LEVEL)


def mesh(root: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the triangles below a root (index into the table of BOX_NODE), as stored, as a shape among others."""
    record, values = _shape(SHAPE_MESH, (), 0.0, (0, 0, 0), (0, 0, 0, 1))
    record["root"] = root
    return record, values


def collect(made: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Put what the makers returned together: (shapes (n,) SHAPE, values (m,) f8), in the order given."""
    shapes = np.zeros(len(made), SHAPE)
    parts = [np.zeros(1)]  # never empty, so that kernels always meet the same type of table
    first = 1
    for k, (record, values) in enumerate(made):
        shapes[k] = record[0]
        shapes[k]["value_first"] = first
        first += len(values)
        parts.append(values)
    return shapes, np.concatenate(parts)


def _shape(
    kind: int,
    size: Sequence[float],
    reach: float,
    position: Sequence[float],
    orientation: Sequence[float],
    values: np.ndarray | None = None,
    level: int = 0,
    grid: tuple[int, int] = (0, 0),
) -> tuple[np.ndarray, np.ndarray]:
    record = np.zeros(1, SHAPE)
    turn = np.asarray(orientation, dtype=np.float64)
    if turn.shape != (4,) or not np.isfinite(turn).all() or not np.linalg.norm(turn) > 1e-12:
        raise ValueError(f"the orientation of a shape must be a quaternion [x, y, z, w], not {orientation!r}")
    kept = np.zeros(0) if values is None else values
    record["position"] = _three(position, "the position of a shape")
    record["orientation"] = turn / np.linalg.norm(turn)
    record["size"][0, : len(size)] = size
    record["reach"] = reach * (1.0 + _PAD)
    record["kind"] = kind
    record["level"] = level
    record["rows"], record["columns"] = grid
    record["value_count"] = len(kept)
    return record, kept


def _three(values: Sequence[float], what: str) -> np.ndarray:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise ValueError(f"{what} must be three finite numbers, not {values!r}")
    return numbers


def _lengths(what: str, **lengths: float) -> tuple[float, ...]:
    """Return the lengths as floats; ValueError unless each is finite, positive and not vanishing beside the others."""
    numbers = {}
    for name, given in lengths.items():
        number = float(given)
        if not (math.isfinite(number) and number > 0.0):
            raise ValueError(f"{what} needs a {name} that is a finite number of metres above 0, not {given!r}")
        numbers[name] = number
    largest = max(numbers.values())
    for name, number in numbers.items():
        if number < SLENDER * largest:
            raise ValueError(f"{what} needs a {name} of at least {SLENDER:g} of its largest length, not {number!r}")
    return tuple(numbers.values())


def _halves(net: np.ndarray, direction: int) -> tuple[np.ndarray, np.ndarray]:
    """The control nets of the two halves of a patch, cut across u (direction 0) or v (1), by de Casteljau's rule."""
    p = np.moveaxis(net, direction, 0)
    a, b, c = 0.5 * (p[0] + p[1]), 0.5 * (p[1] + p[2]), 0.5 * (p[2] + p[3])
    d, e = 0.5 * (a + b), 0.5 * (b + c)
    f = 0.5 * (d + e)
    lower, upper = np.stack((p[0], a, d, f)), np.stack((f, e, c, p[3]))
    return np.moveaxis(lower, 0, direction), np.moveaxis(upper, 0, direction)


def _patch_box(net: np.ndarray) -> np.ndarray:
    """An oriented box that holds the control net: its axes are the principal ones of the control points."""
    points = net.reshape(16, 3)
    mean = points.mean(axis=0)
    axes = np.linalg.svd(points - mean, full_matrices=True)[2]
    axes[2] = np.cross(axes[0], axes[1])
    along = points @ axes.T
    low, high = along.min(axis=0), along.max(axis=0)
    pad = _PAD * float(np.abs(points).max()) * 4.0
    return np.concatenate((axes.T @ (0.5 * (low + high)), axes.ravel(), 0.5 * (high - low) + pad))


@njit(cache=True, nogil=True, error_model="numpy")
def block(rows: int, columns: int, path: int) -> tuple[int, int, int, int, int]:
    """Return the block of cells (i0, i1, j0, j1) that a path leads to, and what is left of the path.

    rows, columns: cells a side; path: 1 for the whole field; 2 p and 2 p + 1 for the halves of p, cut across the longer
    side (rows where both are as long). Left: 1 when the path ends here; 2 or 3 when it goes on to the first or second
    triangle of a single cell.
    """
    i0, i1, j0, j1 = 0, rows, 0, columns
    bit = 0
    while path >> (bit + 1):
        bit += 1
    while bit > 0:
        if i1 - i0 == 1 and j1 - j0 == 1:
            return i0, i1, j0, j1, (1 << bit) | (path & ((1 << bit) - 1))
        bit -= 1
        upper = (path >> bit) & 1
        if i1 - i0 >= j1 - j0:
            middle = i0 + (i1 - i0) // 2
            if upper:
                i0 = middle
            else:
                i1 = middle
        else:
            middle = j0 + (j1 - j0) // 2
            if upper:
                j0 = middle
            else:
                j1 = middle
    return i0, i1, j0, j1, 1


@njit(cache=True, nogil=True, error_model="numpy")
def _pyramid(z: np.ndarray, limits: np.ndarray) -> None:
    """Fill limits (k, 2) with the least and largest height of each block, by path."""
    rows = z.shape[0] - 1
    columns = z.shape[1] - 1
    for path in range(limits.shape[0] - 1, 0, -1):
        i0, i1, j0, j1, left = block(rows, columns, path)
        limits[path, 0] = math.inf
        limits[path, 1] = -math.inf
        if left != 1:
            continue
        if i1 - i0 == 1 and j1 - j0 == 1:
            for i in range(i0, i1 + 1):
                for j in range(j0, j1 + 1):
                    limits[path, 0] = min(limits[path, 0], z[i, j])
                    limits[path, 1] = max(limits[path, 1], z[i, j])
        else:
            limits[path, 0] = min(limits[2 * path, 0], limits[2 * path + 1, 0])
            limits[path, 1] = max(limits[2 * path, 1], limits[2 * path + 1, 1])
