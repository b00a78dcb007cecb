"""Mass properties of a closed triangle mesh, exact for the polyhedron that its faces bound."""

from typing import NamedTuple

import numpy as np


class MassProperties(NamedTuple):
    """Of a homogeneous solid, in the mesh's frame."""

    volume: float
    """m3"""
    mass: float
    """kg"""
    centre: np.ndarray
    """(3,) centre of mass, m."""
    inertia: np.ndarray
    """(3, 3) inertia tensor about the centre of mass, axes of the mesh frame, kg·m2."""


def signed_volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """Volume that the faces bound, m3: negative when they look inwards, meaningless when the mesh is open.

    Args:
        vertices: (n, 3), m.
        faces: (m, 3) vertex indices, counter-clockwise seen from outside.
    """
    a, b, c = _corners(vertices, faces)[0]
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0)


def unpaired_edges(faces: np.ndarray) -> int:
    """Number of directed edges that are not run through as often the other way: 0 exactly for a closed, consistently
    oriented mesh (its faces then bound a volume whatever point it is measured from).

    Args:
        faces: (m, 3) vertex indices into welded vertices.
    """
    edges = np.concatenate((faces[:, (0, 1)], faces[:, (1, 2)], faces[:, (2, 0)])).astype(np.int64)
    edges = edges[edges[:, 0] != edges[:, 1]]
    if edges.size == 0:
        return 0
    forward = edges[:, 0] < edges[:, 1]
    low, high = edges.min(axis=1), edges.max(axis=1)
    _, inverse = np.unique(low * (int(edges.max()) + 1) + high, return_inverse=True)
    balance = np.zeros(int(inverse.max()) + 1, dtype=np.int64)
    np.add.at(balance, inverse, np.where(forward, 1, -1))
    return int(np.abs(balance).sum())


def mass_properties(vertices: np.ndarray, faces: np.ndarray, density: float = 1000.0) -> MassProperties:
    """Volume, mass, centre of mass and inertia tensor of the solid bounded by a closed mesh.

    Each face and a common apex span a signed tetrahedron whose moments are polynomials of its corners; their sum is
    exact for the polyhedron, convex or not (Tonon 2004, the canonical covariance of a tetrahedron; Eberly 2002). The
    apex is the middle of the bounding box, so that a mesh far from its origin loses no digits.

    Args:
        vertices: (n, 3), m, exactly equal ones welded.
        faces: (m, 3) vertex indices; all outwards or all inwards.
        density: kg/m3, greater than 0.

    Raises:
        ValueError: for an open or inconsistently oriented mesh, one without volume, or a density that is not positive.
    """
    if not density > 0 or not np.isfinite(density):
        raise ValueError(f"density must be a positive number of kg/m3, given {density!r}")
    unpaired = unpaired_edges(faces)
    if unpaired:
        raise ValueError(f"the mesh bounds no volume: {unpaired} of its edges have no partner running the other way")
    (a, b, c), apex = _corners(vertices, faces)
    six_volumes = np.einsum("ij,ij->i", a, np.cross(b, c))
    volume = float(six_volumes.sum() / 6.0)
    extent = float(np.ptp(vertices[faces.ravel()], axis=0).max()) if faces.size else 0.0
    # Rounding leaves about 1e-16 extent^3 per face of a flat, closed mesh.
    if abs(volume) <= 1e-15 * max(len(faces), 1) * extent**3:
        raise ValueError("the mesh bounds no volume: it is flat or empty")
    sums = a + b + c
    first = (six_volumes[:, None] * sums).sum(axis=0) / 24.0
    second = np.zeros((3, 3))
    for corner in (a, b, c, sums):
        second += np.einsum("i,ij,ik->jk", six_volumes, corner, corner)
    second /= 120.0
    if volume < 0.0:
        volume, first, second = -volume, -first, -second
    centre = first / volume
    covariance = density * (second - volume * np.outer(centre, centre))
    inertia = np.trace(covariance) * np.eye(3) - covariance
    return MassProperties(volume, density * volume, centre + apex, (inertia + inertia.T) / 2.0)


def _corners(vertices: np.ndarray, faces: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    used = np.asarray(vertices, dtype=np.float64)[np.asarray(faces).ravel()]
    if used.size == 0:
        return (np.zeros((0, 3)),) * 3, np.zeros(3)
    apex = (used.min(axis=0) + used.max(axis=0)) / 2.0
    corners = (used - apex).reshape(-1, 3, 3)
    return (corners[:, 0], corners[:, 1], corners[:, 2]), apex
