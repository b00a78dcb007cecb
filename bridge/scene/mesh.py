"""Triangle meshes: what they are here, and how they are read from files."""

import io
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.scene.errors import MeshError

MAX_FILE_BYTES = 1 << 30
FORMATS = (".obj", ".stl", ".dae", ".ply", ".glb")


@dataclass(frozen=True)
class TriangleMesh:
    """Triangles in the order of the file, exactly equal vertices welded."""

    vertices: np.ndarray
    """(n, 3) float64, m."""
    faces: np.ndarray
    """(m, 3) int64 indices of vertices."""
    notes: list[str] = field(default_factory=list)
    """What the reader had to decide, one sentence each."""
    welded: int = 0
    """Vertices of the source that lay where an earlier one did and became one with it."""

    def scaled(self, scale: float | tuple[float, float, float]) -> "TriangleMesh":
        """The mesh with its coordinates multiplied, per axis or by one number; mirrored faces are turned round."""
        factors = np.broadcast_to(np.asarray(scale, dtype=np.float64), (3,))
        if np.all(factors == 1.0):
            return self
        faces = self.faces if np.prod(factors) > 0 else self.faces[:, ::-1]
        # A scale may make different vertices equal (underflow); welding keeps "equal means one".
        return TriangleMesh(*_weld(self.vertices * factors, faces), self.notes, self.welded)

    def moved(self, position: np.ndarray, rotation: Rotation) -> "TriangleMesh":
        """The mesh turned, then moved by position (3,), m."""
        if rotation.magnitude() == 0.0 and not np.any(position):
            return self
        return TriangleMesh(*_weld(rotation.apply(self.vertices) + position, self.faces), self.notes, self.welded)

    def subdivided(self, times: int) -> "TriangleMesh":
        """The same surface with every triangle split into four by its edges' midpoints, ``times`` times."""
        mesh = self
        for _ in range(times):
            mesh = TriangleMesh(*_split(mesh.vertices, mesh.faces), self.notes, self.welded)
        return mesh


def make_mesh(
    vertices: np.ndarray, faces: np.ndarray, notes: list[str] | None = None, what: str = "mesh"
) -> TriangleMesh:
    """Check raw triangles and weld exactly equal vertices; nothing else is changed, nothing dropped.

    Args:
        vertices: (n, 3), m.
        faces: (m, 3) vertex indices.
        what: how an error names the mesh.

    Raises:
        MeshError: no triangles, a coordinate that is not finite, an index out of range.
    """
    vertices = np.ascontiguousarray(vertices, dtype=np.float64).reshape(-1, 3)
    faces = np.ascontiguousarray(faces, dtype=np.int64).reshape(-1, 3)
    if len(faces) == 0:
        raise MeshError(f"{what}: holds no triangles")
    bad = np.flatnonzero(~np.isfinite(vertices).all(axis=1))
    if bad.size:
        raise MeshError(
            f"{what}: vertex {bad[0]} is not finite ({', '.join(f'{x:g}' for x in vertices[bad[0]])})"
            + (f", and {bad.size - 1} more" if bad.size > 1 else "")
        )
    wrong = np.flatnonzero(((faces < 0) | (faces >= len(vertices))).any(axis=1))
    if wrong.size:
        raise MeshError(
            f"{what}: face {wrong[0]} refers to vertices {faces[wrong[0]].tolist()}, but there are {len(vertices)} "
            f"(0..{len(vertices) - 1})"
        )
    points, rows = _weld(vertices, faces)
    return TriangleMesh(points, rows, notes=list(notes or []), welded=len(vertices) - len(points))


def join(meshes: list[TriangleMesh]) -> TriangleMesh:
    """All triangles of several meshes as one, in order."""
    if len(meshes) == 1:
        return meshes[0]
    offsets = np.cumsum([0] + [len(m.vertices) for m in meshes[:-1]])
    return TriangleMesh(
        *_weld(
            np.concatenate([m.vertices for m in meshes]),
            np.concatenate([m.faces + offset for m, offset in zip(meshes, offsets, strict=True)]),
        ),
        notes=[note for m in meshes for note in m.notes],
        welded=sum(m.welded for m in meshes),
    )


def read_mesh(path: str | Path) -> TriangleMesh:
    """Read a mesh file: OBJ, STL, DAE, PLY or GLB by its ending.

    Coordinates are taken as metres, except in DAE, whose stated unit is applied. Axes stay as they are in the file,
    whatever it calls "up" (PyBullet does the same). Several geometries in one file are joined, each at its place.

    Raises:
        MeshError: one sentence naming the file and what is wrong with it.
    """
    return parse_mesh(read_bytes(path), Path(path).suffix, str(path))


def read_bytes(path: str | Path) -> bytes:
    """The content of a mesh file.

    Raises:
        MeshError: missing, a folder, unreadable, empty or too large.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise MeshError(f"{path}: unknown mesh format {path.suffix!r}; known are {', '.join(FORMATS)}")
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise MeshError(f"{path}: is {size} bytes long; at most {MAX_FILE_BYTES} are read")
        data = path.read_bytes()
    except FileNotFoundError:
        raise MeshError(f"{path}: does not exist") from None
    except IsADirectoryError:
        raise MeshError(f"{path}: is a folder, not a mesh file") from None
    except OSError as error:
        raise MeshError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not data:
        raise MeshError(f"{path}: is empty")
    return data


def parse_mesh(data: bytes, suffix: str, what: str) -> TriangleMesh:
    """A mesh from the content of a file; ``suffix`` tells its format (``.obj``), ``what`` names it in errors.

    Raises:
        MeshError: as :func:`read_mesh`.
    """
    parsers: dict[str, Callable[[bytes, str], TriangleMesh]] = {
        ".obj": _parse_obj,
        ".stl": _parse_stl,
        ".dae": _parse_dae,
        ".ply": _parse_ply,
        ".glb": _parse_glb,
    }
    parser = parsers.get(suffix.lower())
    if parser is None:
        raise MeshError(f"{what}: unknown mesh format {suffix!r}; known are {', '.join(FORMATS)}")
    return parser(data, what)


def _weld(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One vertex for each different triple of coordinates, in the order in which they first appear."""
    vertices = np.add(vertices, 0.0, order="C")  # rows in one piece; -0.0 and 0.0 are the same place
    rows = vertices.view(np.dtype((np.void, 24))).ravel()
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return np.ascontiguousarray(vertices[first[order]]), np.ascontiguousarray(rank[inverse.ravel()][faces])


def _split(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each triangle as four, in its place."""
    edges = np.sort(np.concatenate((faces[:, (0, 1)], faces[:, (1, 2)], faces[:, (2, 0)])), axis=1)
    keys, inverse = np.unique(edges[:, 0] * len(vertices) + edges[:, 1], return_inverse=True)
    low, high = np.divmod(keys, len(vertices))
    middles = (vertices[low] + vertices[high]) / 2.0
    ab, bc, ca = inverse.reshape(3, -1) + len(vertices)
    a, b, c = faces.T
    split = np.stack((a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca), axis=1).reshape(-1, 3)
    return _weld(np.concatenate((vertices, middles)), split)


_OBJ_SILENT = frozenset(("", "#", "vt", "vn", "vp", "g", "o", "s", "usemtl", "mtllib", "l", "p"))


def _parse_obj(data: bytes, what: str) -> TriangleMesh:
    """OBJ, strictly and in the order of the file.

    trimesh reads OBJ too, but leniently: it regroups faces by material, takes relative indices from the end of the
    file and lets broken lines pass, all without a word.
    """
    if b"\0" in data:
        raise MeshError(f"{what}: is not an OBJ file: it holds binary data")
    text = data.decode("utf-8", errors="replace")
    if "\\" in text:
        text = text.replace("\\\r\n", " ").replace("\\\n", " ")
    vertices: list[tuple[float, float, float]] = []
    faces: list[tuple[int, int, int]] = []
    unknown: dict[str, int] = {}
    polygons, lines = 0, 0
    rows = text.rstrip().split("\n")
    for number, line in enumerate(rows, 1):
        parts = line.split()
        kind = parts[0] if parts else ""
        if kind == "v":
            try:
                vertices.append((float(parts[1]), float(parts[2]), float(parts[3])))
            except (IndexError, ValueError):
                raise MeshError(
                    f"{what}: line {number}: a vertex needs three numbers, found {line.strip()!r}"
                ) from None
        elif kind == "f":
            corners = []
            for part in parts[1:]:
                try:
                    index = int(part.partition("/")[0])
                except ValueError:
                    raise MeshError(f"{what}: line {number}: {part!r} is not a corner of a face") from None
                corner = index - 1 if index > 0 else len(vertices) + index
                if index == 0 or corner < 0:
                    raise MeshError(f"{what}: line {number}: a face refers to vertex {index}, which does not exist")
                corners.append(corner)
            if len(corners) == 2 and number < len(rows):
                lines += 1  # seen in the wild; as the last line it is a triangle cut short
                continue
            if len(corners) < 3:
                raise MeshError(f"{what}: line {number}: a face needs three corners or more, found {line.strip()!r}")
            polygons += len(corners) > 4
            faces.extend((corners[0], corners[i], corners[i + 1]) for i in range(1, len(corners) - 1))
        elif kind not in _OBJ_SILENT and not kind.startswith("#"):
            unknown[kind] = unknown.get(kind, 0) + 1
    if not faces:
        hint = f"; {sum(unknown.values())} of its lines are no OBJ statements" if unknown else ""
        raise MeshError(f"{what}: holds no triangles{hint}")
    notes = []
    if unknown:
        shown = ", ".join(sorted(unknown)[:4])
        notes.append(f"{sum(unknown.values())} OBJ lines of other kinds were passed over ({shown[:60]})")
    if lines:
        notes.append(f"{lines} faces with two corners were passed over")
    if polygons:
        notes.append(f"{polygons} faces with more than four corners were cut into fans")
    return make_mesh(np.array(vertices).reshape(-1, 3), np.array(faces), notes, what)


def _parse_stl(data: bytes, what: str) -> TriangleMesh:
    head = data[:512].lstrip().lower()
    if head.startswith(b"solid") and b"facet" in data[:4096].lower():
        lower = data.lower()
        opened = lower.count(b"facet normal")
        closed = lower.count(b"endfacet")
        if opened != closed or b"endsolid" not in lower:
            raise MeshError(f"{what}: the text STL is cut off: {opened} facets begin and {closed} end")
    elif len(data) < 84:
        raise MeshError(f"{what}: is cut off or not an STL file: {len(data)} bytes, a binary header alone has 84")
    else:
        promised = int.from_bytes(data[80:84], "little")
        if len(data) != 84 + 50 * promised:
            raise MeshError(
                f"{what}: is cut off or not an STL file: its header promises {promised} triangles, which take "
                f"{84 + 50 * promised} bytes; it has {len(data)}"
            )
        if promised == 0:
            raise MeshError(f"{what}: holds no triangles")
    return _read_by_trimesh(data, "stl", what)


def _parse_ply(data: bytes, what: str) -> TriangleMesh:
    end = data.find(b"end_header")
    if not data.startswith(b"ply") or end < 0:
        raise MeshError(f"{what}: is cut off or not a PLY file: it has no complete header")
    promised = {"vertex": 0, "face": 0}
    for line in data[:end].splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == b"element":
            try:
                promised[words[1].decode("ascii", "replace")] = int(words[2])
            except ValueError:
                raise MeshError(f"{what}: the PLY header promises {words[2]!r} elements") from None
    if promised["face"] <= 0:
        raise MeshError(f"{what}: holds no triangles")
    # Each vertex and face takes at least this much; a header that promises more cannot be kept, nor allocated.
    if promised["vertex"] * 3 + promised["face"] * 4 > len(data) - end:
        raise MeshError(
            f"{what}: is cut off: its header promises {promised['vertex']} vertices and {promised['face']} faces, "
            f"more than its {len(data)} bytes can hold"
        )
    mesh = _read_by_trimesh(data, "ply", what)
    if len(mesh.faces) < promised["face"]:
        raise MeshError(
            f"{what}: is cut off: its header promises {promised['face']} faces, {len(mesh.faces)} are there"
        )
    return mesh


def _parse_glb(data: bytes, what: str) -> TriangleMesh:
    if not data.startswith(b"glTF"):
        raise MeshError(f"{what}: is not a GLB file: it does not begin with 'glTF'")
    promised = int.from_bytes(data[8:12], "little")
    if len(data) < 12 or promised > len(data):
        raise MeshError(f"{what}: is cut off: its header promises {promised} bytes, it has {len(data)}")
    return _read_by_trimesh(data, "glb", what)


def _parse_dae(data: bytes, what: str) -> TriangleMesh:
    import xml.etree.ElementTree as ElementTree

    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise MeshError(f"{what}: is cut off or not a DAE file: {error}") from None
    if not root.tag.endswith("COLLADA"):
        raise MeshError(f"{what}: is not a DAE file: its root is <{root.tag}>, not <COLLADA>")
    unit, up = 1.0, "Y_UP"
    for element in root.iterfind("{*}asset/{*}unit"):
        try:
            unit = float(element.get("meter", "1"))
        except ValueError:
            raise MeshError(f"{what}: its unit is {element.get('meter')!r} metres") from None
    for element in root.iterfind("{*}asset/{*}up_axis"):
        up = (element.text or "").strip()
    if not unit > 0 or not np.isfinite(unit):
        raise MeshError(f"{what}: its unit is {unit:g} metres")
    mesh = _read_by_trimesh(data, "dae", what, ignore_broken=False)
    mesh = mesh.scaled(unit)
    if unit != 1.0:
        mesh.notes.append(f"the file is in units of {unit:g} m and was converted to metres")
    if up != "Z_UP":
        mesh.notes.append(f"the file says {up}; its axes were kept as they are")
    return mesh


def _read_by_trimesh(data: bytes, kind: str, what: str, **options: Any) -> TriangleMesh:
    import trimesh

    logging.getLogger("trimesh").setLevel(logging.CRITICAL)
    try:
        # Without a resolver nothing outside this file (textures, materials) is opened.
        with np.errstate(all="ignore"):  # it computes with numbers that are only checked below
            scene = trimesh.load_scene(io.BytesIO(data), file_type=kind, process=False, **options)
        vertices, faces, skipped, offset = [], [], 0, 0
        for node in scene.graph.nodes_geometry:
            matrix, name = scene.graph[node]
            geometry = scene.geometry[name]
            if not isinstance(geometry, trimesh.Trimesh):
                skipped += 1
                continue
            points = np.asarray(geometry.vertices, dtype=np.float64)
            corners = np.asarray(geometry.faces, dtype=np.int64)
            if not np.array_equal(matrix, np.eye(4)):
                points = points @ matrix[:3, :3].T + matrix[:3, 3]
            if np.linalg.det(matrix[:3, :3]) < 0:
                corners = corners[:, ::-1]
            # Checked here, where an index still belongs to its own geometry.
            if corners.size and (corners.min() < 0 or corners.max() >= len(points)):
                make_mesh(points, corners, what=what)
            vertices.append(points)
            faces.append(corners + offset)
            offset += len(points)
    except MeshError:
        raise
    except Exception as error:
        # The readers behind trimesh raise whatever their first stumble is.
        reason = str(error).strip().splitlines()
        raise MeshError(
            f"{what}: cannot be read as {kind.upper()}: {type(error).__name__}"
            + (f": {reason[0][:160]}" if reason else "")
        ) from None
    if not faces:
        raise MeshError(f"{what}: holds no triangles")
    notes = [f"{skipped} geometries without triangles were passed over"] if skipped else []
    if len(faces) > 1:
        notes.append(f"{len(faces)} geometries were joined")
    return make_mesh(np.concatenate(vertices), np.concatenate(faces), notes, what)
