"""Meshes that a rounding makes balls and capsules of: a point, or a segment, as triangles without area."""

import numpy as np

from rtcore.geometry.tree import build_tree


def point_tree() -> tuple[np.ndarray, np.ndarray]:
    """The mesh of a ball's centre, at the origin: (nodes (1,) BOX_NODE, triangles (1,) TRIANGLE)."""
    return build_tree(np.zeros((1, 3)), np.zeros((1, 3), np.int64))


def segment_tree(length: float) -> tuple[np.ndarray, np.ndarray]:
    """The mesh of a capsule's axis, along z about the origin: (nodes (1,) BOX_NODE, triangles (1,) TRIANGLE).

    length: between the centres of its ends, m, > 0.
    """
    return build_tree(np.array([[0.0, 0.0, -0.5 * length], [0.0, 0.0, 0.5 * length]]), np.array([[0, 1, 1]]))
