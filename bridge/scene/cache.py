"""Preprocessed meshes (triangles, bounding tree) on disk, found by the content hash of what they are made from."""

import contextlib
import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bridge.cache_directory import cache_directory
from bridge.model_file import ModelFileError, load_arrays, save_arrays
from bridge.scene.mesh import TriangleMesh
from bridge.scene.sources import IMPORT_VERSION, Source, build, content_hash
from rtcore.tables import BOX_NODE, TRIANGLE

BUILDERS = ("rtcore.geometry.tree", "rtcore.geometry.topology", "rtcore.geometry.cones")
"""Modules whose code decides about nodes and triangles."""
TYPES: dict[str, np.dtype] = {
    "version": np.dtype("i4"),
    "vertices": np.dtype("f8"),
    "faces": np.dtype("i8"),
    "nodes": BOX_NODE,
    "triangles": TRIANGLE,
    "notes": np.dtype("u1"),
    "welded": np.dtype("i8"),
}


@dataclass(frozen=True)
class PreparedMesh:
    """A mesh ready for the mechanics."""

    hash: str
    """Hexadecimal SHA-256 of what it was made from."""
    vertices: np.ndarray
    """(n, 3), m, body frame."""
    faces: np.ndarray
    """(m, 3)"""
    nodes: np.ndarray
    """(k,) BOX_NODE"""
    triangles: np.ndarray
    """(m,) TRIANGLE"""
    notes: list[str] = field(default_factory=list)
    """What the import had to decide, and what happened to the cache, one sentence each."""
    cached: bool = False
    """It came from the disk."""
    welded: int = 0
    """Vertices of the sources that lay where an earlier one did."""


def prepare(sources: list[Source], directory: Path | None = None) -> PreparedMesh:
    """The triangles and tree of one body, from the cache or made and put there.

    A damaged cache file is made anew and a folder that cannot be written is worked without; both are noted.

    Args:
        sources: the shapes of the body.
        directory: cache folder; :func:`bridge.cache_directory.cache_directory` by default.

    Raises:
        MeshError: for a mesh that cannot be used.
    """
    folder = cache_directory() if directory is None else directory
    key = content_hash(sources)
    path = folder / f"{_file_name(key)}.npz"
    notes: list[str] = []
    try:
        arrays = load_arrays(path, TYPES, version=IMPORT_VERSION) if path.is_file() else None
        if arrays is not None:
            told = arrays["notes"].tobytes().decode("utf-8").splitlines()
            return PreparedMesh(
                key,
                arrays["vertices"],
                arrays["faces"],
                arrays["nodes"],
                arrays["triangles"],
                told,
                cached=True,
                welded=int(arrays["welded"][0]),
            )
    except (ModelFileError, OSError, UnicodeDecodeError) as error:
        notes.append(f"the cached mesh was not usable and was made anew ({error})")
    # Here, because it brings the compiler with it, which a cached mesh does not need.
    from rtcore.geometry.tree import build_tree

    mesh: TriangleMesh = build(sources)
    nodes, triangles = build_tree(mesh.vertices, mesh.faces)
    arrays = {
        "version": np.array([IMPORT_VERSION], dtype="<i4"),
        "vertices": mesh.vertices,
        "faces": mesh.faces,
        "nodes": nodes,
        "triangles": triangles,
        "notes": np.frombuffer("\n".join(mesh.notes).encode(), dtype=np.uint8),
        "welded": np.array([mesh.welded], dtype="<i8"),
    }
    try:
        write_whole(path, lambda file: save_arrays(file, arrays))
    except OSError as error:
        notes.append(f"the prepared mesh was not cached: {error.strerror or error} ({folder})")
    return PreparedMesh(key, mesh.vertices, mesh.faces, nodes, triangles, [*mesh.notes, *notes], welded=mesh.welded)


def _file_name(key: str) -> str:
    """Name of the cache file: another way of building trees gives another file."""
    code = b""
    for module in BUILDERS:
        spec = importlib.util.find_spec(module)
        code += Path(spec.origin).read_bytes() if spec is not None and spec.origin is not None else b""
    return f"mesh-{hashlib.sha256(key.encode() + code).hexdigest()}"


def write_whole(path: Path, write: Callable) -> None:
    """Write a file so that others see all of it or nothing: into a temporary neighbour, then renamed.

    Raises:
        OSError: the folder cannot be made or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
