"""Model: everything that does not change while ticking."""

from typing import NamedTuple

import numpy as np


class Model(NamedTuple):
    """Immutable tables (see :mod:`rtcore.tables` for the record types)."""

    world: np.ndarray
    """(1,) WORLD."""
    bodies: np.ndarray
    """(n_bodies,) BODY."""
    meshes: np.ndarray
    """(n_meshes,) MESH."""
    nodes: np.ndarray
    """(n_nodes,) NODE, all trees one after the other."""
    triangles: np.ndarray
    """(n_triangles,) TRIANGLE, in leaf order."""
