"""How far two posed parts are apart, by testing all pairs of triangles whose boxes are near (bridge.separation).

Independent of the collision engine: used to set up scenes and to check them.
"""

import numpy as np

from bridge.separation import triangles_distance
from tools.scenes.path import matrix
from tools.scenes.scene import Part


def placed(part: Part, pose: np.ndarray | None = None) -> np.ndarray:
    """(m, 3, 3) triangles of a part in the scene, at its own pose or at a pose (7,)."""
    position, orientation = (part.position, part.orientation) if pose is None else (pose[:3], pose[3:])
    return (part.vertices @ matrix(orientation).T + position)[part.faces]


def clearance(parts: list[Part], moving: Part, pose: np.ndarray | None = None, reach: float = 1e-3) -> float:
    """Least distance of the moving part at a pose (7,) to all others, m; inf where it is above ``reach``."""
    here = placed(moving, pose)
    others = np.concatenate([placed(part) for part in parts if part is not moving])
    return triangles_distance(here, others, reach)
