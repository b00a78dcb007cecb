"""What a generated scene is: parts with closed meshes and poses, and motions that its moving part is to follow."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Part:
    """One rigid body of a scene."""

    name: str
    vertices: np.ndarray
    """(n, 3) f8, body frame, m"""
    faces: np.ndarray
    """(m, 3) i4, outward by the right-hand rule"""
    position: np.ndarray
    """(3,) m, scene"""
    orientation: np.ndarray
    """(4,) xyzw, body -> scene"""
    moving: bool = False
    closed: bool = True
    """False for a soup of triangles, which has no inside"""


@dataclass(frozen=True)
class Phase:
    """One scripted motion of the moving part.

    The poses are targets: in some phases the last of them lie inside an obstacle. The first pose of every phase is
    free, and a phase need not start where the one before it ended.
    """

    name: str
    poses: np.ndarray
    """(k, 7) position (m) and quaternion xyzw, scene, one per millisecond"""
    free: bool
    """True: no pose of this phase meets another part"""
    gap: tuple[float, float] | None = None
    """Least and greatest distance to the nearest part during the phase, m, where the scene holds one"""


@dataclass(frozen=True)
class Scene:
    """Parts and motions; exactly one part moves."""

    name: str
    seed: int
    clearance: float
    """Every part is at least this far from every other at the start, m"""
    parts: list[Part] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)

    @property
    def moving(self) -> Part:
        """The part that moves."""
        return next(part for part in self.parts if part.moving)

    @property
    def triangles(self) -> int:
        """Number of triangles of all parts."""
        return sum(len(part.faces) for part in self.parts)
