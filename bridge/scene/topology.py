"""What kind of surface a mesh is: closed or where open, which way round, and which of its faces are odd."""

from dataclasses import dataclass, field

import numpy as np

from rtcore.geometry.topology import components

FLAT = 1e-14
"""A face is degenerate when twice its area is not above this times its longest edge squared: a line or a point."""


@dataclass(frozen=True)
class Loop:
    """One hole's rim: boundary edges that hang together."""

    edges: int
    closed: bool
    """It returns to its beginning."""
    length: float
    """m"""
    points: np.ndarray
    """(k, 3) its vertices in order, m."""

    @property
    def centre(self) -> np.ndarray:
        """(3,) mean of its vertices, m."""
        return self.points.mean(axis=0)


@dataclass(frozen=True)
class Topology:
    """Counts of a welded mesh; ``*_faces`` are indices of faces, ``*_edges`` pairs of vertex indices."""

    closed: bool
    """Every edge has exactly two faces (degenerate faces left aside)."""
    consistent: bool
    """No edge with two faces is run through twice the same way."""
    components: int
    """Parts that hang together by edges."""
    inward_components: int
    """Closed parts whose faces look inwards: cavities, or parts turned inside out."""
    loops: list[Loop] = field(repr=False)
    boundary_edges: np.ndarray = field(repr=False)
    non_manifold_edges: np.ndarray = field(repr=False)
    inconsistent_edges: np.ndarray = field(repr=False)
    degenerate_faces: np.ndarray = field(repr=False)
    duplicate_faces: np.ndarray = field(repr=False)
    """Faces with the same three corners as an earlier one, whichever way round."""
    inward_faces: np.ndarray = field(repr=False)
    """Of the closed parts whose faces look inwards."""
    unused_vertices: int


def analyse(vertices: np.ndarray, faces: np.ndarray) -> Topology:
    """Look at every edge and face of a mesh.

    Args:
        vertices: (n, 3), m, exactly equal ones welded.
        faces: (m, 3) vertex indices.
    """
    degenerate = _is_flat(vertices, faces)
    solid = faces[~degenerate]
    count = len(vertices)
    directed = np.concatenate((solid[:, (0, 1)], solid[:, (1, 2)], solid[:, (2, 0)]))
    owner = np.tile(np.arange(len(solid)), 3)
    low, high = directed.min(axis=1), directed.max(axis=1)
    keys, inverse, uses = np.unique(low * count + high, return_inverse=True, return_counts=True)
    pairs = np.stack(np.divmod(keys, count), axis=1)
    balance = np.bincount(inverse, weights=np.where(directed[:, 0] < directed[:, 1], 1.0, -1.0), minlength=len(keys))
    boundary = uses == 1
    inconsistent = (uses == 2) & (balance != 0)
    labels, parts = _components(len(solid), inverse, owner)
    volumes = _signed_volumes(vertices, solid, labels, parts)
    open_part = np.zeros(parts, dtype=bool)
    open_part[labels[owner[(boundary | inconsistent)[inverse]]]] = True
    inward = (volumes < 0) & ~open_part
    corners = np.sort(faces, axis=1)
    _, first = np.unique(corners, axis=0, return_index=True)
    duplicate = np.ones(len(faces), dtype=bool)
    duplicate[first] = False
    return Topology(
        closed=bool(len(solid)) and bool((uses == 2).all()),
        consistent=not inconsistent.any(),
        components=parts,
        inward_components=int(inward.sum()),
        loops=_loops(vertices, directed[boundary[inverse]]),
        boundary_edges=pairs[boundary],
        non_manifold_edges=pairs[uses > 2],
        inconsistent_edges=pairs[inconsistent],
        degenerate_faces=np.flatnonzero(degenerate),
        duplicate_faces=np.flatnonzero(duplicate),
        inward_faces=np.flatnonzero(~degenerate)[inward[labels]],
        unused_vertices=count - len(np.unique(faces)),
    )


def winding_number(point: np.ndarray, vertices: np.ndarray, faces: np.ndarray) -> float:
    """How often a mesh winds round a point: 1 inside a closed mesh, 0 outside; in between for an open one.

    The sum of the signed solid angles of the faces over 4 pi (van Oosterom and Strackee 1983).
    """
    a, b, c = (vertices[faces[:, k]] - point for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
    numerator = np.einsum("ij,ij->i", a, np.cross(b, c))
    denominator = (
        la * lb * lc
        + np.einsum("ij,ij->i", a, b) * lc
        + np.einsum("ij,ij->i", b, c) * la
        + np.einsum("ij,ij->i", c, a) * lb
    )
    return float(np.arctan2(numerator, denominator).sum() / (2.0 * np.pi))


def _is_flat(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    corners = vertices[faces]
    edges = np.roll(corners, -1, axis=1) - corners
    longest = np.sqrt((edges**2).sum(axis=2).max(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = edges / longest[:, None, None]
    doubled_area = np.linalg.norm(np.cross(unit[:, 0], unit[:, 1]), axis=1)
    return ~(doubled_area > FLAT)


def _components(count: int, edge_of: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, int]:
    """Part of each of `count` faces, and how many parts: faces with an edge in common are in one."""
    order = np.argsort(edge_of, kind="stable")
    same = edge_of[order][1:] == edge_of[order][:-1]
    labels = components(count, owner[order][:-1][same], owner[order][1:][same])
    return labels, int(labels.max(initial=-1)) + 1


def _signed_volumes(vertices: np.ndarray, faces: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    if count == 0:
        return np.zeros(0)
    shifted = vertices - vertices.mean(axis=0)
    a, b, c = (shifted[faces[:, k]] for k in range(3))
    return np.bincount(labels, weights=np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0, minlength=count)


def _loops(vertices: np.ndarray, edges: np.ndarray) -> list[Loop]:
    """Chain boundary edges, each walked from its first vertex to its second."""
    onward: dict[int, list[int]] = {}
    arriving: dict[int, int] = {}
    for start, end in edges.tolist():
        onward.setdefault(start, []).append(end)
        arriving[end] = arriving.get(end, 0) + 1
    # Begin where more edges leave than arrive, so that an open chain is walked from its end.
    starts = sorted(onward, key=lambda v: (arriving.get(v, 0) - len(onward[v]), v))
    loops = []
    for start in starts:
        while onward.get(start):
            chain = [start]
            while onward.get(chain[-1]):
                chain.append(onward[chain[-1]].pop())
                if chain[-1] == start:
                    break
            points = vertices[chain]
            length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
            closed = chain[-1] == start
            loops.append(Loop(len(chain) - 1, closed, length, points[:-1] if closed else points))
    return sorted(loops, key=lambda loop: -loop.length)
