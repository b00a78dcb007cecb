"""Can pushes within friction cones explain a change of momentum? The best ones, and a proof where none can.

Wanted are r_i in the cones K_i that minimise |B r - b|. Each cone is the set of sums of its edges n + mu t + m, with
the moments m that the normal force allows, so this is a non-negative least-squares problem with a column for every
edge. Columns are made as they are needed: for the residual b - B r the best edge of each cone is known in closed form,
and where none of them would lessen the residual it is the least one there is (Lawson and Hanson 1974; column
generation). Up to rounding that is exact, for the round cone.

Where the normal force is known the shares of the edges add up to it, which is one more row of the problem, with a
weight. What is left is then less than it should be by no more than one part in that weight.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from bridge.verify.motions import cross

ROUNDS = 60
GOOD = 1e-10
"""Share of the right side by which an edge must help to be taken."""
FIRST = 4
"""Edges of each disc to begin with."""
PARTS = (slice(1, 3), slice(3, 4), slice(4, 6))
"""Columns of friction, of moments about the normal, and of those about the tangents."""
WEIGHT = 100.0
"""Of what shares add up to, by the size of the columns."""


@dataclass
class Limit:
    """What there may be per unit of the normal force: all within a radius, or some points (k, columns of the part)."""

    radius: float
    points: np.ndarray | None = None

    @property
    def round(self) -> bool:
        """Is it a disc or an interval that is more than its middle?"""
        return self.points is None and self.radius > 0.0

    def corners(self, size: int) -> np.ndarray:
        """Points of the rim of a disc, or both ends of an interval."""
        if size == 1:
            return self.radius * np.array([[1.0], [-1.0]])
        angles = np.arange(FIRST) * 2.0 * np.pi / FIRST
        return self.radius * np.column_stack([np.cos(angles), np.sin(angles)])


@dataclass
class Cone:
    """What a contact may push: a normal force, and within its limits friction and moments."""

    columns: np.ndarray
    """(m, 1, 3 or 6) what units do to the right side: along normal and tangents, moments about normal and tangents"""
    limits: list[Limit] = field(default_factory=list)
    """Of friction, spinning and rolling, as many as there are columns for"""
    total: float | None = None
    """The normal force where it is known"""

    def first(self, width: int) -> list[np.ndarray]:
        """Edges (width,) to begin with; all there are where nothing is round."""
        middles = [np.eye(1, width)[0]]
        for part, limit in zip(PARTS, self.limits, strict=False):
            if limit.points is not None:
                middles = [_with(edge, part, point) for edge in middles for point in limit.points]
        edges = [
            _with(edge, part, corner)
            for part, limit in zip(PARTS, self.limits, strict=False)
            if limit.round
            for edge in middles
            for corner in limit.corners(part.stop - part.start)
        ]
        return edges or middles


def _with(edge: np.ndarray, part: slice, values: np.ndarray) -> np.ndarray:
    edge = edge.copy()
    edge[part] = values
    return edge


def explain(cones: list[Cone], right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(residual (m,) = right - what is explained, what each cone pushes (k, columns of the widest cone))."""
    size = float(np.linalg.norm(right))
    width = max((cone.columns.shape[1] for cone in cones), default=3)
    impulses = np.zeros((len(cones), width))
    if size == 0.0 or not cones:
        return right.copy(), impulses
    blocks, wanted = _blocks(cones, right, width)
    bends = np.array([any(limit.round for limit in cone.limits) for cone in cones])
    owners: list[int] = []
    edges: list[np.ndarray] = []
    for k, cone in enumerate(cones):
        fixed = cone.first(width)
        owners += [k] * len(fixed)
        edges += fixed
    residual = wanted
    norms = np.linalg.norm(blocks, axis=(1, 2))
    for _ in range(ROUNDS):
        table = np.einsum("kmc,kc->mk", blocks[owners], np.array(edges))
        scale = np.linalg.norm(table, axis=0)
        scale[scale == 0.0] = 1.0
        shares = nnls(table / scale, wanted, maxiter=50 * table.shape[1])[0] / scale
        residual = wanted - table @ shares
        rest = float(np.linalg.norm(residual))
        impulses[:] = 0.0
        np.add.at(impulses, owners, shares[:, None] * np.array(edges))
        if rest <= 1e-13 * size:
            break
        best, worth = _best_edges(cones, np.einsum("kmc,m->kc", blocks, residual))
        new = bends & (worth > GOOD * rest * norms)
        if not new.any():
            break
        for k in np.flatnonzero(new).tolist():
            owners.append(k)
            edges.append(best[k])
        # edges without a share have been tried and are not needed
        if len(owners) > 30 * len(cones):
            used = shares > 0.0
            kept = np.concatenate([used, np.ones(len(owners) - len(used), dtype=bool)])
            owners = [o for o, keep in zip(owners, kept, strict=True) if keep]
            edges = [e for e, keep in zip(edges, kept, strict=True) if keep]
    return residual[: len(right)], impulses


def _blocks(cones: list[Cone], right: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """(k, rows, width) columns of all cones and (rows,) the right side, with a row for each force that is known."""
    known = [k for k, cone in enumerate(cones) if cone.total is not None]
    blocks = np.zeros((len(cones), len(right) + len(known), width))
    wanted = np.concatenate([right, np.zeros(len(known))])
    for k, cone in enumerate(cones):
        blocks[k, : len(right), : cone.columns.shape[1]] = cone.columns
    for row, k in enumerate(known, len(right)):
        cone = cones[k]
        edges = np.array(cone.first(width))
        weight = WEIGHT * float(np.linalg.norm(blocks[k, : len(right)] @ edges.T, axis=0).max())
        blocks[k, row, 0] = weight
        wanted[row] = weight * float(cone.total or 0.0)
    return blocks, wanted


def _best_edges(cones: list[Cone], pulls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edge (k, width) of each cone that lessens the residual most and by how much (k,); pulls: B' r (k, width)."""
    best = np.zeros_like(pulls)
    best[:, 0] = 1.0
    for p, part in enumerate(PARTS):
        if part.stop > pulls.shape[1]:
            break
        limits = [cone.limits[p] if p < len(cone.limits) else Limit(0.0) for cone in cones]
        along = pulls[:, part]
        sizes = np.linalg.norm(along, axis=1)
        radii = np.array([limit.radius for limit in limits])
        best[:, part] = (radii / np.where(sizes > 0.0, sizes, 1.0))[:, None] * along
        for k, limit in enumerate(limits):
            if limit.points is not None:
                best[k, part] = limit.points[int(np.argmax(limit.points @ along[k]))]
    return best, np.sum(best * pulls, axis=1)


def tangents(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors that make a right-handed frame with a unit normal (3,)."""
    helper = np.zeros(3)
    helper[int(np.argmin(np.abs(normal)))] = 1.0
    one = cross(normal, helper)
    one /= np.linalg.norm(one)
    return one, cross(normal, one)
