"""Triangle meshes of simple solids, centred at their origin, faces outwards."""

import math
from collections.abc import Callable

import numpy as np

from bridge.scene.errors import MeshError
from bridge.scene.mesh import TriangleMesh, make_mesh

SPHERE_LEVEL = 3
"""Subdivisions of the icosahedron that a sphere starts from: 1280 triangles, at most 0.46 % inside the true sphere."""

SEGMENTS = 64
"""Straight pieces around a cylinder or capsule: at most 0.13 % inside the true one."""


def make_primitive(kind: str, size: tuple[float, ...], subdivisions: int = 0) -> TriangleMesh:
    """A primitive by its name in the configuration.

    Args:
        kind: box, plate, sphere, cylinder, plane or capsule; point or segment for a core that is to be rounded.
        size: m; box and plate: x, y, z edges; sphere: radius; cylinder and capsule: radius, length along z (of the
            capsule's straight part); plane: x, y edges; point: none; segment: length along z.
        subdivisions: each triangle is split into four this many times; a sphere becomes rounder by it, the others
            keep their shape.

    Raises:
        MeshError: unknown kind, wrong number of sizes, or one that is not positive.
    """
    makers: dict[str, tuple[Callable[..., TriangleMesh], int]] = {
        "box": (_box, 3),
        "plate": (_box, 3),
        "sphere": (_sphere, 1),
        "plane": (_plane, 2),
        "cylinder": (_cylinder, 2),
        "capsule": (_capsule, 2),
        "point": (_core, 0),
        "segment": (_core, 1),
    }
    if kind not in makers:
        raise MeshError(f"unknown primitive {kind!r}; known are {', '.join(makers)}")
    make, count = makers[kind]
    if len(size) != count or not all(math.isfinite(s) and s > 0 for s in size):
        raise MeshError(f"a {kind} needs {count} positive size(s) in m, given {list(size)}")
    if kind == "sphere":
        return _sphere(size[0], SPHERE_LEVEL + subdivisions)
    return make(*size).subdivided(subdivisions)


def _core(length: float = 0.0) -> TriangleMesh:
    """A point, or a segment along z, as a triangle without area."""
    half = length / 2.0
    return make_mesh(np.array([(0.0, 0.0, -half), (0.0, 0.0, half)]), np.array([(0, 1, 1)]))


def _box(x: float, y: float, z: float) -> TriangleMesh:
    corners = np.array([(i, j, k) for i in (-0.5, 0.5) for j in (-0.5, 0.5) for k in (-0.5, 0.5)]) * (x, y, z)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return make_mesh(corners, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]))


def _plane(x: float, y: float) -> TriangleMesh:
    corners = np.array([(-x / 2, -y / 2, 0.0), (x / 2, -y / 2, 0.0), (x / 2, y / 2, 0.0), (-x / 2, y / 2, 0.0)])
    return make_mesh(corners, np.array([(0, 1, 2), (0, 2, 3)]))


def _sphere(radius: float, level: int = SPHERE_LEVEL) -> TriangleMesh:
    golden = (1.0 + math.sqrt(5.0)) / 2.0
    corners = []
    for a in (-1.0, 1.0):
        for b in (-golden, golden):
            corners += [(0.0, a, b), (a, b, 0.0), (b, 0.0, a)]
    points = np.array(corners)
    # The faces of an icosahedron are the triples of corners that are pairwise two apart.
    near = np.abs(np.linalg.norm(points[:, None] - points[None], axis=2) - 2.0) < 1e-9
    faces = []
    for a in range(12):
        for b in range(a + 1, 12):
            for c in range(b + 1, 12):
                if near[a, b] and near[b, c] and near[c, a]:
                    outward = np.dot(points[a], np.cross(points[b], points[c])) > 0
                    faces.append((a, b, c) if outward else (a, c, b))
    mesh = make_mesh(points / np.linalg.norm(points[0]), np.array(faces))
    for _ in range(level):
        finer = mesh.subdivided(1)
        mesh = make_mesh(finer.vertices / np.linalg.norm(finer.vertices, axis=1, keepdims=True), finer.faces)
    return mesh.scaled(radius)


def _revolved(profile: list[tuple[float, float]]) -> TriangleMesh:
    """A closed solid around z from (radius, z) points, bottom to top; first and last lie on the axis."""
    angles = [2.0 * math.pi * i / SEGMENTS for i in range(SEGMENTS)]
    # Quarter turns exactly, so that the box of the solid is exact as well.
    circle = np.array([(math.cos(a), math.sin(a)) for a in angles])
    circle[np.abs(circle) < 1e-15] = 0.0
    points = [(0.0, 0.0, profile[0][1])]
    for radius, z in profile[1:-1]:
        points += [(radius * c, radius * s, z) for c, s in circle]
    points.append((0.0, 0.0, profile[-1][1]))
    top = len(points) - 1
    faces = []
    for i in range(SEGMENTS):
        j = (i + 1) % SEGMENTS
        faces.append((0, 1 + j, 1 + i))
        for ring in range(len(profile) - 3):
            low, high = 1 + ring * SEGMENTS, 1 + (ring + 1) * SEGMENTS
            faces += [(low + i, low + j, high + j), (low + i, high + j, high + i)]
        last = 1 + (len(profile) - 3) * SEGMENTS
        faces.append((last + i, last + j, top))
    return make_mesh(np.array(points), np.array(faces))


def _cylinder(radius: float, length: float) -> TriangleMesh:
    half = length / 2.0
    return _revolved([(0.0, -half), (radius, -half), (radius, half), (0.0, half)])


def _capsule(radius: float, length: float) -> TriangleMesh:
    half = length / 2.0
    rings = SEGMENTS // 4
    arc = [(radius * math.cos(a), radius * math.sin(a)) for a in np.linspace(0.0, math.pi / 2.0, rings + 1)[:-1]]
    lower = [(r, -half - z) for r, z in reversed(arc)]
    upper = [(r, half + z) for r, z in arc]
    return _revolved([(0.0, -half - radius), *lower, *upper, (0.0, half + radius)])
