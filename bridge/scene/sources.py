"""Where the triangles of one body come from, with a content hash that is known before they are read."""

import hashlib
import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.scene.mesh import TriangleMesh, join, parse_mesh
from bridge.scene.primitives import make_primitive

IMPORT_VERSION = 4
"""Part of every content hash: counts up whenever the same file would give other triangles or another tree."""


@dataclass(frozen=True)
class Source:
    """One shape of a body: a mesh file's content or a primitive, scaled, then placed in the body's frame."""

    what: str
    """How errors name it: a path, or the primitive."""
    kind: str
    """Ending of the file (``.obj``), or name of the primitive."""
    data: bytes = b""
    """Content of the file."""
    size: tuple[float, ...] = ()
    """Of the primitive, m."""
    subdivisions: int = 0
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    orientation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all that decides about the triangles."""
        numbers = (*self.size, *self.scale, *self.position, *self.orientation)
        text = f"{IMPORT_VERSION} {self.kind.lower()} {self.subdivisions} {len(self.size)} "
        hashed = hashlib.sha256(text.encode() + struct.pack(f"<{len(numbers)}d", *numbers))
        hashed.update(self.data)
        return hashed.digest()

    def build(self) -> TriangleMesh:
        """The triangles in the body's frame, m.

        Raises:
            MeshError: for a file that cannot be used.
        """
        if self.kind.startswith("."):
            mesh = parse_mesh(self.data, self.kind, self.what).subdivided(self.subdivisions)
        else:
            mesh = make_primitive(self.kind, self.size, self.subdivisions)
        return mesh.scaled(self.scale).moved(np.asarray(self.position), Rotation.from_quat(self.orientation))


def content_hash(sources: list[Source]) -> str:
    """Hexadecimal SHA-256 that names the joined triangles of several sources."""
    return hashlib.sha256(b"".join(source.digest for source in sources)).hexdigest()


def build(sources: list[Source]) -> TriangleMesh:
    """The triangles of several sources as one mesh, in order.

    Raises:
        MeshError: for a file that cannot be used.
    """
    return join([source.build() for source in sources])
