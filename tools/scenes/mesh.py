"""Closed triangle meshes of parametric shapes, oriented outwards, and how many triangles they get."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_LATTICE = 2.0**32
"""Coordinates are rounded to 1 / this, m: small differences between mathematical libraries do not change a scene."""


@dataclass(frozen=True)
class Mesh:
    """Triangles over shared vertices."""

    vertices: np.ndarray
    """(n, 3) m"""
    faces: np.ndarray
    """(m, 3) i4"""

    def moved(self, shift=(0.0, 0.0, 0.0), matrix: np.ndarray | None = None) -> "Mesh":
        """The mesh turned by a (3, 3) matrix and then shifted (m)."""
        vertices = self.vertices if matrix is None else self.vertices @ np.asarray(matrix).T
        return Mesh(vertices + np.asarray(shift, dtype=float), self.faces)

    def rounded(self) -> "Mesh":
        """Coordinates on the common lattice."""
        return Mesh(
            np.round(self.vertices * _LATTICE) / _LATTICE + 0.0, np.ascontiguousarray(self.faces, dtype=np.int32)
        )


def join(meshes: list[Mesh]) -> Mesh:
    """One mesh of several; each stays a closed surface of its own."""
    starts = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes])
    faces = [mesh.faces + start for mesh, start in zip(meshes, starts[:-1], strict=True)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces).astype(np.int32))


def rotation(axis: str, angle: float) -> np.ndarray:
    """(3, 3) turn about a coordinate axis by an angle (rad)."""
    k = "xyz".index(axis)
    c, s = math.cos(angle), math.sin(angle)
    matrix = np.eye(3)
    i, j = (k + 1) % 3, (k + 2) % 3
    matrix[i, i], matrix[i, j], matrix[j, i], matrix[j, j] = c, -s, s, c
    return matrix


def meet(target: int, build: Callable[[float], Mesh], start: float) -> Mesh:
    """The mesh of ``build(edge length)`` whose number of triangles is nearest to ``target``.

    ``build`` gets a length (m) that scales its tessellation; ``start`` is a first guess. Secant steps between
    logarithms, kept within a bracket; ends within 4 %, where nothing lies between, or after 12 meshes.
    """
    at, best, slope = math.log(start), None, -1.3
    last: tuple[float, float] | None = None
    fine, coarse = -math.inf, math.inf  # logarithms of lengths known to give too many and too few triangles
    for _ in range(12):
        mesh = build(math.exp(at))
        excess = math.log(len(mesh.faces) / target)
        if best is None or abs(excess) < abs(math.log(len(best.faces) / target)):
            best = mesh
        if abs(excess) < 0.04:
            break
        if excess > 0.0:
            fine = max(fine, at)
        else:
            coarse = min(coarse, at)
        if abs(coarse - fine) < 0.004:
            break
        if last is not None and at != last[0]:
            slope = min(max((excess - last[1]) / (at - last[0]), -3.0), -0.6)
        last = (at, excess)
        at -= excess / slope
        if math.isfinite(fine) and math.isfinite(coarse):
            margin = 0.15 * (coarse - fine)
            at = min(max(at, fine + margin), coarse - margin) if margin > 0.0 else 0.5 * (fine + coarse)
    assert best is not None
    return best


def _grid_faces(ids: np.ndarray, close_first: bool, close_second: bool) -> np.ndarray:
    """Two triangles per cell of an (a, b) array of vertex numbers; normal along d/da x d/db."""
    if close_first:
        ids = np.concatenate([ids, ids[:1]])
    if close_second:
        ids = np.concatenate([ids, ids[:, :1]], axis=1)
    p, q, r, s = ids[:-1, :-1], ids[1:, :-1], ids[1:, 1:], ids[:-1, 1:]
    halves = [np.stack(half, axis=-1).reshape(-1, 3) for half in ((p, q, r), (p, r, s))]
    return np.concatenate(halves).astype(np.int32)


def ring(points: np.ndarray) -> Mesh:
    """A surface closed in both directions over (a, b, 3) points; outward along d/da x d/db."""
    a, b = points.shape[:2]
    return Mesh(points.reshape(-1, 3), _grid_faces(np.arange(a * b).reshape(a, b), True, True))


def capped(points: np.ndarray) -> Mesh:
    """A surface over (a, b, 3) points, closed in b, with fans about the centres of its first and last rows."""
    a, b = points.shape[:2]
    ids = np.arange(a * b).reshape(a, b)
    first, last = a * b, a * b + 1
    around = np.roll(ids, -1, axis=1)
    fans = [
        np.stack([np.full(b, first), ids[0], around[0]], axis=1),
        np.stack([np.full(b, last), around[-1], ids[-1]], axis=1),
    ]
    vertices = np.concatenate([points.reshape(-1, 3), [points[0].mean(axis=0), points[-1].mean(axis=0)]])
    return Mesh(vertices, np.concatenate([_grid_faces(ids, False, True), *fans]).astype(np.int32))


def circle(sides: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of ``sides`` directions, counter-clockwise from +x."""
    angle = 2.0 * math.pi * np.arange(sides) / sides
    return np.cos(angle), np.sin(angle)


def divide(corners: np.ndarray, length: float, closed: bool = False) -> np.ndarray:
    """Points along a polyline (k, n) at most ``length`` apart, its corners among them."""
    corners = np.asarray(corners, dtype=float)
    ends = np.concatenate([corners[1:], corners[:1]]) if closed else corners[1:]
    points = []
    for a, b in zip(corners[: len(ends)], ends, strict=True):
        pieces = max(1, math.ceil(float(np.linalg.norm(b - a)) / length - 1e-9))
        points.append(a + (b - a) * (np.arange(pieces) / pieces)[:, None])
    if not closed:
        points.append(corners[-1:])
    return np.concatenate(points)


def lathe(profile: np.ndarray, sides: int, closed: bool = False) -> Mesh:
    """A solid of revolution about z of a profile (k, 2) of radius and height.

    ``closed``: the profile is a closed curve, counter-clockwise in (radius, height); otherwise it goes upwards outside,
    and both its ends are closed by flat fans.
    """
    c, s = circle(sides)
    r, z = np.asarray(profile, dtype=float).T
    points = np.stack([np.outer(r, c), np.outer(r, s), np.repeat(z[:, None], sides, axis=1)], axis=-1)
    return ring(np.swapaxes(points, 0, 1)) if closed else capped_up(points)


def capped_up(points: np.ndarray) -> Mesh:
    """As :func:`capped`, for rows that go counter-clockwise about the direction in which the rows follow each other."""
    mesh = capped(points)
    return Mesh(mesh.vertices, mesh.faces[:, ::-1])


def frames(points: np.ndarray, closed: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tangents, normals and binormals (n, 3) along a curve, carried on without twist (as far as it is not closed)."""
    tangent = np.roll(points, -1, axis=0) - np.roll(points, 1, axis=0) if closed else np.gradient(points, axis=0)
    tangent = tangent / np.linalg.norm(tangent, axis=1)[:, None]
    normal = np.zeros_like(points)
    previous = np.eye(3)[int(np.argmin(np.abs(tangent[0])))]
    for i, t in enumerate(tangent):
        previous = previous - t * (previous @ t)
        previous = previous / np.linalg.norm(previous)
        normal[i] = previous
    return tangent, normal, np.cross(tangent, normal)


def tube(points: np.ndarray, radii: np.ndarray | float, sides: int) -> Mesh:
    """A round bar along (n, 3) points with flat ends."""
    points = np.asarray(points, dtype=float)
    _, normal, binormal = frames(points)
    c, s = circle(sides)
    around = normal[:, None] * c[None, :, None] + binormal[:, None] * s[None, :, None]
    thick = np.broadcast_to(np.asarray(radii, dtype=float), (len(points),))
    return capped_up(points[:, None] + thick[:, None, None] * around)


def loop(points: np.ndarray, radius: float, sides: int, inward: np.ndarray) -> Mesh:
    """A round bar along a closed plane curve (n, 3), with a corner of each section towards ``inward`` (n, 3)."""
    tangent, _, _ = frames(points, closed=True)
    inward = inward - tangent * np.sum(inward * tangent, axis=1)[:, None]
    inward = inward / np.linalg.norm(inward, axis=1)[:, None]
    side = np.cross(tangent, inward)
    c, s = circle(sides)
    section = inward[:, None] * c[None, :, None] + side[:, None] * s[None, :, None]
    return ring_right(points[:, None] + radius * section)


def ring_right(points: np.ndarray) -> Mesh:
    """As :func:`ring`, for sections that go counter-clockwise about the direction in which they follow each other."""
    mesh = ring(points)
    return Mesh(mesh.vertices, mesh.faces[:, ::-1])


def bend(corners: np.ndarray, radius: float, length: float) -> np.ndarray:
    """A pipe's centre line (n, 3): straight between corners (k, 3), rounded at each with up to ``radius`` (m)."""
    corners = np.asarray(corners, dtype=float)
    points = [corners[0]]
    for before, corner, after in zip(corners[:-2], corners[1:-1], corners[2:], strict=True):
        arriving, leaving = corner - before, after - corner
        reach = min(radius, 0.45 * np.linalg.norm(arriving), 0.45 * np.linalg.norm(leaving))
        a = corner - reach * arriving / np.linalg.norm(arriving)
        b = corner + reach * leaving / np.linalg.norm(leaving)
        steps = max(3, math.ceil(1.6 * reach / length))
        t = (np.arange(steps + 1) / steps)[:, None]
        points.extend((1 - t) ** 2 * a + 2 * t * (1 - t) * corner + t**2 * b)
    points.append(corners[-1])
    return divide(np.array(points), 4.0 * length)


def box(size, length: float, centre=(0.0, 0.0, 0.0)) -> Mesh:
    """A box of edge lengths ``size`` (3,) whose faces are grids of cells of about ``length`` (m)."""
    size = np.asarray(size, dtype=float)
    counts = [max(1, round(float(s) / length)) for s in size]
    lattice, faces = {}, []

    def number(code: tuple[int, int, int]) -> int:
        return lattice.setdefault(code, len(lattice))

    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        for side in (0, counts[k]):
            for a in range(counts[i]):
                for b in range(counts[j]):
                    quad = []
                    for da, db in ((0, 0), (1, 0), (1, 1), (0, 1)):
                        code = [0, 0, 0]
                        code[k], code[i], code[j] = side, a + da, b + db
                        quad.append(number((code[0], code[1], code[2])))
                    if side == 0:
                        quad.reverse()
                    faces += [[quad[0], quad[1], quad[2]], [quad[0], quad[2], quad[3]]]
    codes = np.array(list(lattice), dtype=float)
    vertices = (codes / np.array(counts) - 0.5) * size + np.asarray(centre, dtype=float)
    return Mesh(vertices, np.array(faces, dtype=np.int32))


def sphere(radius: float, sides: int) -> Mesh:
    """A ball of about ``sides``^2 triangles about the origin."""
    rows = max(3, sides // 2)
    theta = math.pi * (np.arange(rows - 1) + 1) / rows
    c, s = circle(max(3, sides))
    points = np.stack(
        [np.outer(np.sin(theta), c), np.outer(np.sin(theta), s), np.repeat(-np.cos(theta)[:, None], len(c), axis=1)], -1
    )
    mesh = capped_up(radius * points)
    vertices = mesh.vertices.copy()
    vertices[-2:] = [[0.0, 0.0, -radius], [0.0, 0.0, radius]]
    return Mesh(vertices, mesh.faces)


def hexagon_bolt(across: float, height: float, shank: float, depth: float, sides: int = 12) -> Mesh:
    """A bolt along z: head of width ``across`` above z = 0, a round shank of radius ``shank`` down to -``depth``."""
    sides = 6 * max(1, round(sides / 6))
    c, s = circle(sides)
    angle = 2.0 * math.pi * np.arange(sides) / sides
    folded = (angle + math.pi / 6) % (math.pi / 3) - math.pi / 6
    hexagon = 0.5 * across / np.cos(folded)
    radii = [np.full(sides, shank), np.full(sides, shank), hexagon, hexagon, 0.85 * hexagon]
    heights = [-depth, 0.0, 0.0, 0.8 * height, height]
    rows = [np.stack([r * c, r * s, np.full(sides, z)], axis=-1) for r, z in zip(radii, heights, strict=True)]
    return capped_up(np.array(rows))
