"""Small closed meshes with outward normals, convex and not, for tests of culling."""

import numpy as np
import trimesh
from scipy.spatial import ConvexHull


def hull(points):
    """Convex hull of points (n, 3): (vertices, faces), faces outwards."""
    shape = ConvexHull(points)
    faces = shape.simplices.copy()
    corners = points[faces]
    inwards = (
        np.einsum(
            "ij,ij->i",
            np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]),
            corners[:, 0] - points.mean(axis=0),
        )
        < 0
    )
    faces[inwards] = faces[inwards][:, ::-1]
    used, faces = np.unique(faces, return_inverse=True)
    return points[used], faces.reshape(-1, 3)


def star(rng, roughness=0.5, subdivisions=1):
    """A sphere of 20 x 4^subdivisions faces whose vertices went in or out by up to a share of the radius."""
    sphere = trimesh.creation.icosphere(subdivisions=subdivisions)
    reach = 1.0 + roughness * rng.uniform(-1.0, 1.0, len(sphere.vertices))
    return sphere.vertices * reach[:, None], np.array(sphere.faces)


def torus(around=6, across=5, radius=1.0, thickness=0.4):
    """A torus of 2 around x across faces about z."""
    u, v = np.meshgrid(np.arange(around) * 2 * np.pi / around, np.arange(across) * 2 * np.pi / across, indexing="ij")
    ring = radius + thickness * np.cos(v)
    vertices = np.stack([ring * np.cos(u), ring * np.sin(u), thickness * np.sin(v)], axis=-1).reshape(-1, 3)
    a = np.arange(around * across).reshape(around, across)
    b, d = np.roll(a, -1, axis=0), np.roll(a, -1, axis=1)
    c = np.roll(b, -1, axis=1)
    faces = np.concatenate([np.stack(f, axis=-1).reshape(-1, 3) for f in ((a, b, c), (a, c, d))])
    return vertices, faces


def channel(depth=0.5):
    """A U-shaped prism: 2 wide, 1.2 high with a slot 1 wide and 0.8 deep from above, `depth` long."""
    outline = np.array(
        [(-1.0, 0.0), (1.0, 0.0), (1.0, 1.2), (0.5, 1.2), (0.5, 0.4), (-0.5, 0.4), (-0.5, 1.2), (-1.0, 1.2)]
    )
    caps = np.array([(0, 1, 4), (0, 4, 5), (1, 2, 3), (1, 3, 4), (0, 5, 6), (0, 6, 7)])
    count = len(outline)
    vertices = np.array([(x, side * depth, z) for side in (-1.0, 1.0) for x, z in outline])
    i = np.arange(count)
    j = np.roll(i, -1)
    sides = np.concatenate([np.stack((i, j + count, j), axis=1), np.stack((i, i + count, j + count), axis=1)])
    return vertices, np.concatenate([caps, caps[:, ::-1] + count, sides])


def box(half):
    """A box about the origin: 12 faces."""
    shape = trimesh.creation.box(extents=2.0 * np.asarray(half))
    return np.array(shape.vertices), np.array(shape.faces)
