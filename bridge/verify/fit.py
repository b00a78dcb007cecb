"""Can pushes within friction cones explain a change of momentum? The best ones, and a proof where none can.

Wanted are r_i in the cones K_i that minimise |B r - b|. Each cone is the set of sums of its edges n + mu t, so this is
a non-negative least-squares problem with a column for every edge. Columns are made as they are needed: for the residual
b - B r the best edge of each cone is known in closed form, and where none of them would lessen the residual it is the
least one there is (Lawson and Hanson 1974; column generation). Up to rounding that is exact, for the round cone.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from bridge.verify.motions import cross

ROUNDS = 40
GOOD = 1e-10
"""Share of the right side by which an edge must help to be taken."""
FIRST = 4
"""Edges of each cone to begin with."""


@dataclass
class Cone:
    """Where a contact may push: along edges n + mu t of the unit tangents t, or along some edges only."""

    columns: np.ndarray
    """(m, 3) what unit impulses along normal and tangents do to the right side"""
    friction: float
    edges: np.ndarray | None = None
    """(k, 3) those allowed, as (1, first, second); None: all of the cone"""


def explain(cones: list[Cone], right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(residual (m,) = right - what is explained, impulses (k, 3) along normal and tangents of each cone)."""
    size = float(np.linalg.norm(right))
    impulses = np.zeros((len(cones), 3))
    if size == 0.0 or not cones:
        return right.copy(), impulses
    blocks = np.stack([cone.columns for cone in cones])  # (k, m, 3)
    frictions = np.array([cone.friction for cone in cones])
    round_cones = np.array([cone.edges is None for cone in cones])
    owners: list[int] = []
    edges: list[np.ndarray] = []
    for k, cone in enumerate(cones):
        if cone.edges is not None:
            fixed = cone.edges
        elif cone.friction == 0.0:
            fixed = np.array([[1.0, 0.0, 0.0]])
        else:
            angles = np.arange(FIRST) * 2.0 * np.pi / FIRST
            fixed = np.column_stack([np.ones(FIRST), cone.friction * np.cos(angles), cone.friction * np.sin(angles)])
        owners += [k] * len(fixed)
        edges += list(fixed)
    residual = right
    for _ in range(ROUNDS):
        table = np.einsum("kmc,kc->mk", blocks[owners], np.array(edges))
        scale = np.linalg.norm(table, axis=0)
        scale[scale == 0.0] = 1.0
        shares = nnls(table / scale, right, maxiter=50 * table.shape[1])[0] / scale
        residual = right - table @ shares
        rest = float(np.linalg.norm(residual))
        impulses[:] = 0.0
        np.add.at(impulses, owners, shares[:, None] * np.array(edges))
        if rest <= 1e-13 * size:
            break
        pulls = np.einsum("kmc,m->kc", blocks, residual)
        sides = np.linalg.norm(pulls[:, 1:], axis=1)
        worth = pulls[:, 0] + frictions * sides
        norms = np.linalg.norm(blocks, axis=(1, 2))
        new = round_cones & (frictions > 0.0) & (sides > 0.0) & (worth > GOOD * rest * norms)
        if not new.any():
            break
        for k in np.flatnonzero(new).tolist():
            owners.append(k)
            edges.append(np.array([1.0, *(frictions[k] * pulls[k, 1:] / sides[k])]))
        # edges without a share have been tried and are not needed
        if len(owners) > 30 * len(cones):
            used = shares > 0.0
            kept = np.concatenate([used, np.ones(len(owners) - len(used), dtype=bool)])
            owners = [o for o, keep in zip(owners, kept, strict=True) if keep]
            edges = [e for e, keep in zip(edges, kept, strict=True) if keep]
    return residual, impulses


def tangents(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors that make a right-handed frame with a unit normal (3,)."""
    helper = np.zeros(3)
    helper[int(np.argmin(np.abs(normal)))] = 1.0
    one = cross(normal, helper)
    one /= np.linalg.norm(one)
    return one, cross(normal, one)
