"""Sheets and plates with cut-outs and creases, meshed finely where they curve and coarsely where they are flat.

A plane region is covered by a balanced quadtree (neighbours differ by one level at most), its triangles are cut along
the creases and the outline, both given as signed distances, and the result is lifted to a surface and made thick.
Vertices near a cut are moved onto it first, so that no slivers appear (as in isosurface stuffing, Labelle and Shewchuk
2007, in the plane).
"""

from collections.abc import Callable

import numpy as np

from tools.scenes.mesh import Mesh
from tools.scenes.outline import Outline

Size = Callable[[np.ndarray], np.ndarray]
"""(n, 2) points -> (n,) wanted edge lengths, m"""

_SNAP = 0.3
"""Share of a triangle's height by which its corners may be moved onto a cut: two opposite moves never turn it over."""

_DEEPEST = 7


def near(outlines: list[Outline], fine: float, coarse: float, slope: float = 0.45) -> Size:
    """Edges of length ``fine`` at the outlines, growing with the distance from them up to ``coarse``."""

    def size(p: np.ndarray) -> np.ndarray:
        away = np.min([np.abs(outline(p)) for outline in outlines], axis=0)
        return np.minimum(fine + slope * np.maximum(away - 0.5 * fine, 0.0), coarse)

    return size


def finest(*sizes: Size) -> Size:
    """The least of several wanted lengths."""
    return lambda p: np.min([size(p) for size in sizes], axis=0)


def lattice(lower, upper, size: Size, coarse: float) -> tuple[np.ndarray, np.ndarray]:
    """Cover a rectangle with the triangles of a balanced quadtree: (n, 2) points, (m, 3) counter-clockwise."""
    lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    counts = np.maximum(1, np.ceil((upper - lower) / coarse - 1e-9)).astype(int)
    cell = (upper - lower) / counts
    exists = np.ones(tuple(counts), dtype=bool)
    split: list[np.ndarray] = []
    for level in range(_DEEPEST + 1):
        wanted = np.zeros_like(exists)
        if level < _DEEPEST:
            i, j = np.nonzero(exists)
            middle = lower + (np.stack([i, j], axis=1) + 0.5) * cell / 2**level
            wanted[i, j] = size(middle) < 0.65 * cell.max() / 2**level
        split.append(wanted)
        if not wanted.any():
            break
        exists = wanted.repeat(2, axis=0).repeat(2, axis=1)
    # a cell may only be split where all four cells beside it exist
    for level in range(len(split) - 1, 0, -1):
        s = split[level]
        beside = s.copy()
        beside[1:] |= s[:-1]
        beside[:-1] |= s[1:]
        beside[:, 1:] |= s[:, :-1]
        beside[:, :-1] |= s[:, 1:]
        a, b = split[level - 1].shape
        split[level - 1] |= beside.reshape(a, 2, b, 2).any(axis=(1, 3))
    last = len(split) - 1
    columns = counts[1] * 2**last + 1
    triangles = []
    exists = np.ones(tuple(counts), dtype=bool)
    for level, s in enumerate(split):
        leaf = exists & ~s
        step = 2 ** (last - level)
        i, j = np.nonzero(leaf)
        around = np.pad(s, 1)
        finer = [around[i + 1, j], around[i + 2, j + 1], around[i + 1, j + 2], around[i, j + 1]]
        x, y = i * step, j * step
        corner = [x * columns + y, (x + step) * columns + y, (x + step) * columns + y + step, x * columns + y + step]
        plain = ~(finer[0] | finer[1] | finer[2] | finer[3])
        odd = (i + j) % 2 == 1
        for chosen, quads in ((plain & odd, ((0, 1, 2), (0, 2, 3))), (plain & ~odd, ((0, 1, 3), (1, 2, 3)))):
            triangles += [np.stack([corner[k][chosen] for k in quad], axis=1) for quad in quads]
        half = step // 2
        centre = (x + half) * columns + y + half
        middles = [corner[0] + half * columns, corner[1] + half, corner[3] + half * columns, corner[0] + half]
        for k in range(4):
            a, b, m = corner[k], corner[(k + 1) % 4], middles[k]
            whole, halved = ~plain & ~finer[k], ~plain & finer[k]
            triangles.append(np.stack([centre, a, b], axis=1)[whole])
            triangles.append(np.stack([centre, a, m], axis=1)[halved])
            triangles.append(np.stack([centre, m, b], axis=1)[halved])
        exists = s.repeat(2, axis=0).repeat(2, axis=1)
    codes, faces = np.unique(np.concatenate(triangles), return_inverse=True)
    points = lower + np.stack([codes // columns, codes % columns], axis=1) * (cell / 2**last)
    return points, faces.reshape(-1, 3)


def _heights(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Per vertex the least height of the triangles around it; 0 where there are none."""
    a, b, c = points[faces[:, 0]], points[faces[:, 1]], points[faces[:, 2]]
    area = np.abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0])
    longest = np.max([np.linalg.norm(q - p, axis=1) for p, q in ((a, b), (b, c), (c, a))], axis=0)
    height = np.full(len(points), np.inf)
    np.minimum.at(height, faces.reshape(-1), np.repeat(area / longest, 3))
    return np.where(np.isfinite(height), height, 0.0)


def _onto(points: np.ndarray, outline: Outline) -> np.ndarray:
    """Points moved onto the outline along its gradient (Newton, three steps)."""
    step = 1e-6
    for _ in range(3):
        value = outline(points)
        slope = np.stack(
            [
                (outline(points + d) - outline(points - d)) / (2 * step)
                for d in (np.array([step, 0]), np.array([0, step]))
            ],
            axis=1,
        )
        square = np.maximum(np.einsum("nk,nk->n", slope, slope), 0.25)
        points = points - (value / square)[:, None] * slope
    return points


def cut(
    points: np.ndarray, faces: np.ndarray, fixed: np.ndarray, outline: Outline, drop: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split triangles along the outline's zero line; with ``drop``, keep only what is inside.

    ``fixed`` (n,) marks vertices that lie on an earlier cut and must stay. Returns points, faces and fixed anew.
    """
    points = points.copy()
    value = outline(points)
    # a distance changes by no more than the way, so the zero line only meets triangles that are near it
    corner = points[faces]
    longest = np.max([np.linalg.norm(corner[:, k] - corner[:, k - 1], axis=1) for k in range(3)], axis=0)
    active = np.abs(value)[faces].min(axis=1) <= longest
    rest, faces = faces[~active], faces[active]
    height = _heights(points, faces)
    close = np.flatnonzero((np.abs(value) < _SNAP * height) & ~fixed)
    if len(close):
        moved = _onto(points[close], outline)
        shift = np.linalg.norm(moved - points[close], axis=1)
        good = shift <= _SNAP * height[close]
        points[close[good]] = moved[good]
        value[close[good]] = 0.0
    value[fixed & (np.abs(value) < 0.05 * height)] = 0.0
    sign = np.sign(value).astype(np.int8)
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    crossing = sign[edges[:, 0]] * sign[edges[:, 1]] < 0
    ends, number = np.unique(edges[crossing], axis=0, return_inverse=True)
    a, b = points[ends[:, 0]], points[ends[:, 1]]
    low, high, flow, fhigh = np.zeros(len(ends)), np.ones(len(ends)), value[ends[:, 0]], value[ends[:, 1]]
    t = np.full(len(ends), 0.5)
    for _ in range(8):
        t = low + (high - low) * flow / (flow - fhigh)
        t = np.clip(t, low + 0.01 * (high - low), high - 0.01 * (high - low))
        f = outline(a + t[:, None] * (b - a))
        same = np.sign(f) == np.sign(flow)
        low, flow = np.where(same, t, low), np.where(same, f, flow)
        high, fhigh = np.where(same, high, t), np.where(same, fhigh, f)
    added = a + t[:, None] * (b - a)
    middle = np.full(len(edges), -1)
    middle[crossing] = len(points) + number.reshape(-1)
    middle = middle.reshape(3, -1).T
    points = np.concatenate([points, added])
    fixed = np.concatenate([fixed | (value == 0.0), np.ones(len(added), dtype=bool)])

    crossings = (middle >= 0).sum(axis=1)
    signs = sign[faces]
    kept, side = [faces[crossings == 0]], [np.sign(value[rest].sum(axis=1))]
    whole = signs[crossings == 0].sum(axis=1)
    flat = np.all(signs[crossings == 0] == 0, axis=1)
    if flat.any():
        whole[flat] = np.sign(outline(points[kept[0][flat]].mean(axis=1)))
    side.append(whole)
    for k in range(3):  # the cut goes from corner k to the opposite edge
        rows = np.flatnonzero((crossings == 1) & (middle[:, (k + 1) % 3] >= 0))
        p, q, r, m = faces[rows, k], faces[rows, (k + 1) % 3], faces[rows, (k + 2) % 3], middle[rows, (k + 1) % 3]
        kept += [np.stack([p, q, m], axis=1), np.stack([p, m, r], axis=1)]
        side += [signs[rows, (k + 1) % 3], signs[rows, (k + 2) % 3]]
    for k in range(3):  # corner k is alone on its side
        rows = np.flatnonzero((crossings == 2) & (middle[:, (k + 1) % 3] < 0))
        p, q, r = faces[rows, k], faces[rows, (k + 1) % 3], faces[rows, (k + 2) % 3]
        mq, mr = middle[rows, k], middle[rows, (k + 2) % 3]
        kept.append(np.stack([p, mq, mr], axis=1))
        side.append(signs[rows, k])
        shorter = np.linalg.norm(points[mq] - points[r], axis=1) < np.linalg.norm(points[mr] - points[q], axis=1)
        first = np.where(shorter[:, None], np.stack([mq, q, r], axis=1), np.stack([mq, q, mr], axis=1))
        second = np.where(shorter[:, None], np.stack([mq, r, mr], axis=1), np.stack([q, r, mr], axis=1))
        kept += [first, second]
        side += [signs[rows, (k + 1) % 3]] * 2
    faces = np.concatenate([rest, *kept])
    if drop:
        faces = faces[np.concatenate(side) < 0]
        used, numbers = np.unique(faces, return_inverse=True)
        points, fixed, faces = points[used], fixed[used], numbers.reshape(-1, 3)
    return points, faces, fixed


def _border(faces: np.ndarray) -> np.ndarray:
    """(k, 2) edges that belong to one triangle, in its direction."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ordered = np.sort(edges, axis=1)
    _, place, count = np.unique(
        ordered[:, 0].astype(np.int64) * (faces.max() + 1) + ordered[:, 1], return_index=True, return_counts=True
    )
    return edges[np.sort(place[count == 1])]


def _unpinch(points: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take vertices apart at which two pieces of the region meet in a point only."""
    border = _border(faces)
    starts = np.bincount(border[:, 0], minlength=len(points))
    points, faces = points.copy(), faces.copy()
    for vertex in np.flatnonzero(starts > 1):
        rows = [int(row) for row in np.flatnonzero((faces == vertex).any(axis=1))]
        fans: list[list[int]] = []
        while rows:
            fan = [rows.pop(0)]
            around = set(faces[fan[0]].tolist())
            for _ in range(len(rows)):  # each pass joins at least one triangle that shares an edge, or ends the fan
                joined = [row for row in rows if len(around & set(faces[row].tolist())) > 1]
                fan += joined
                around.update(faces[joined].ravel().tolist())
                rows = [row for row in rows if row not in joined]
            fans.append(fan)
        place = points[vertex].copy()
        for k, fan in enumerate(fans):
            apart = (place + 0.2 * (points[faces[fan]].mean(axis=(0, 1)) - place))[None]
            if k == 0:
                points[vertex] = apart[0]
                continue
            block = faces[fan]
            block[block == vertex] = len(points)
            faces[fan] = block
            points = np.concatenate([points, apart])
    return points, faces


def region(
    lower, upper, outline: Outline, size: Size, coarse: float, creases: tuple[Outline, ...] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of the inside of an outline, with edges along all creases: (n, 2) points, (m, 3) faces.

    ``lower``, ``upper``: corners of a rectangle that holds it; ``coarse``: the longest edge wanted, m.
    """
    points, faces = lattice(lower, upper, size, coarse)
    # cells that are clearly outside need not be cut
    inside = outline(points)[faces].min(axis=1) < 2.0 * coarse
    used, numbers = np.unique(faces[inside], return_inverse=True)
    points, faces = points[used], numbers.reshape(-1, 3)
    fixed = np.zeros(len(points), dtype=bool)
    for crease in creases:
        points, faces, fixed = cut(points, faces, fixed, crease, False)
    points, faces, _ = cut(points, faces, fixed, outline, True)
    return _unpinch(points, faces)


def rings(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Triangles between closed polylines (n, 2) of equally many points, counter-clockwise, from outside to inside."""
    count, sides = len(rows), len(rows[0])
    ids = np.arange(count * sides).reshape(count, sides)
    around = np.roll(ids, -1, axis=1)
    p, q, r, s = ids[:-1], around[:-1], around[1:], ids[1:]
    halves = [np.stack(half, axis=-1).reshape(-1, 3) for half in ((p, q, r), (p, r, s))]
    return np.concatenate(rows), np.concatenate(halves)


def thicken(middle: np.ndarray, faces: np.ndarray, thickness: float) -> Mesh:
    """A closed mesh around a surface with borders: both sides at half the thickness, and walls along the borders.

    At a crease the sides are moved so that every face keeps its distance (a mitre), up to twice the thickness.
    """
    corner = middle[faces]
    area = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    length = np.linalg.norm(area, axis=1)
    unit = area / np.maximum(length, 1e-300)[:, None]
    weight = length / length.mean()
    n = len(middle)
    square = np.zeros((n, 3, 3))
    right = np.zeros((n, 3))
    for k in range(3):
        np.add.at(square, faces[:, k], weight[:, None, None] * unit[:, :, None] * unit[:, None, :])
        np.add.at(right, faces[:, k], weight[:, None] * unit)
    total = np.einsum("nkk->n", square)
    mean = right / np.maximum(np.linalg.norm(right, axis=1), 1e-300)[:, None]
    damping = (1e-4 * total)[:, None]
    mitre = np.linalg.solve(square + damping[:, :, None] * np.eye(3), (right + damping * mean)[:, :, None])[:, :, 0]
    mitre *= np.minimum(1.0, 2.0 / np.linalg.norm(mitre, axis=1))[:, None]
    border = _border(faces)
    a, b = border[:, 0], border[:, 1]
    walls = [np.stack([b, a, a + n], axis=1), np.stack([b, a + n, b + n], axis=1)]
    offset = 0.5 * thickness * mitre
    return Mesh(
        np.concatenate([middle + offset, middle - offset]),
        np.concatenate([faces, faces[:, ::-1] + n, *walls]).astype(np.int32),
    )


def plate(points: np.ndarray, faces: np.ndarray, thickness: float) -> Mesh:
    """A flat plate in the xy plane, symmetric about z = 0."""
    return thicken(np.column_stack([points, np.zeros(len(points))]), faces, thickness)


def smooth_step(t: np.ndarray) -> np.ndarray:
    """0 below 0, 1 above 1, straight between: the wall of a pressed sheet between two creases."""
    return np.clip(t, 0.0, 1.0)
