"""Robots and worlds from URDF, SDF and MJCF files: what PyBullet makes of them, with the triangles of its shapes."""

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.scene.errors import SceneError
from bridge.scene.frames import Pose, compose, place, shortest_turn
from bridge.scene.mesh import read_bytes
from bridge.scene.pybullet_reader import MARK
from bridge.scene.sources import Source, build

TIMEOUT_S = 120.0
PLANE_EDGE = 10.0
"""Edge of the square that stands for an endless plane, m (before scaling)."""

UPWARD = np.array([0.0, 0.0, 1.0])
"""Normal of a plane and axis of a cylinder or capsule, in the shape's own frame."""

# PyBullet's numbers for kinds of shape (GEOM_SPHERE...), fixed by its file formats.
SPHERE, BOX, CYLINDER, MESH, PLANE, CAPSULE = 2, 3, 4, 5, 6, 7
JOINT_TYPES = {0: "revolute", 1: "prismatic", 2: "spherical", 3: "planar", 4: "fixed"}


@dataclass(frozen=True)
class Link:
    """One link: where it is, what it weighs, what it is made of."""

    name: str
    """Unique within the file; `model/link` when the file holds several models."""
    parent: str | None
    joint: str | None
    joint_type: str | None
    joint_position: float
    """rad or m"""
    mass: float
    """kg, as the file says (0 for none)"""
    inertia: np.ndarray
    """(3,) principal moments about the centre of mass, kg·m2."""
    inertial: Pose
    """Principal inertial frame -> link."""
    pose: Pose
    """Link -> robot's base frame, m."""
    sources: list[Source]
    """Collision shapes in the link's frame; none for a link that cannot be touched."""


@dataclass(frozen=True)
class Robot:
    """All links of a file, in PyBullet's order."""

    path: Path
    links: list[Link]
    notes: list[str] = field(default_factory=list)


def read_robot(path: str | Path, joints: dict[str, float] | None = None, scale: float = 1.0) -> Robot:
    """Read a URDF (.urdf), SDF (.sdf) or MJCF (.xml, .mjcf) file.

    Args:
        joints: positions by joint name, rad or m; 0 where absent.
        scale: of all lengths. Masses and inertias stay as the file says (and are reported only).

    Raises:
        SceneError: one sentence naming the file and, where it is known, the link and mesh at fault.
        MeshError: for a mesh file that cannot be read at all.
    """
    path = Path(path)
    kind = {".urdf": "urdf", ".sdf": "sdf", ".xml": "mjcf", ".mjcf": "mjcf"}.get(path.suffix.lower())
    if kind is None:
        raise SceneError(f"{path}: unknown robot format {path.suffix!r}; known are .urdf, .sdf, .xml, .mjcf")
    root = _parse_xml(path)
    _check_meshes(path, kind, root)
    if kind == "mjcf":
        described = _describe_mjcf(path, root, joints or {})
    else:
        described = _describe(kind, path, path, joints or {})
    _check_joints(path, described, joints or {})
    bodies = described["bodies"]
    if not any(link["shapes"] for body in bodies for link in body["links"]):
        raise SceneError(f"{path}: holds no collision shape, so nothing in it could be touched")
    links: list[Link] = []
    notes: list[str] = []
    cylinders = _cylinders(kind, root)
    # PyBullet makes up one kilogram for a URDF link that states no mass.
    massless = (
        {e.get("name") for e in root.iterfind("link") if e.find("inertial/mass") is None} if kind == "urdf" else set()
    )
    taken: set[str] = set()
    for body in bodies:
        prefix = f"{body['name']}/" if len(bodies) > 1 else ""
        if kind == "urdf":
            _check_shape_counts(path, root, body)
        names = []
        for entry in body["links"]:
            name = base = prefix + (entry["name"] or "link")
            copy = 2
            while name in taken:
                name, copy = f"{base}_{copy}", copy + 1
            taken.add(name)
            names.append(name)
        for name, entry in zip(names, body["links"], strict=True):
            sources = []
            for index, shape in enumerate(entry["shapes"]):
                known = cylinders.get(entry["name"], {}).get(index)
                sources.append(_source(path, name, entry, shape, known, scale, notes))
            parent = entry["parent"]
            links.append(
                Link(
                    name=name,
                    parent=None if parent is None else names[parent + 1],
                    joint=entry["joint"],
                    joint_type=JOINT_TYPES.get(entry["joint_type"]),
                    joint_position=entry["joint_position"],
                    mass=0.0 if entry["name"] in massless else entry["mass"],
                    inertia=np.zeros(3) if entry["name"] in massless else np.array(entry["inertia"]),
                    inertial=_scaled(entry["inertial"], scale),
                    pose=_scaled(entry["pose"], scale),
                    sources=sources,
                )
            )
            low, high = entry["limits"] or (0.0, -1.0)
            if low < high and not low <= entry["joint_position"] <= high:
                notes.append(
                    f"joint {entry['joint']!r} stands at {entry['joint_position']:g}, outside its limits "
                    f"{low:g} .. {high:g}"
                )
    if massless:
        notes.append(f"{len(massless)} links state no mass: {', '.join(sorted(map(str, massless)))}")
    bare = [link.name for link in links if not link.sources]
    if bare:
        notes.append(f"{len(bare)} links have no collision shape and cannot be touched: {', '.join(bare)}")
    return Robot(path, links, notes)


def _scaled(pose: list, scale: float) -> Pose:
    return np.array(pose[0]) * scale, np.array(pose[1])


def _parse_xml(path: Path) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(path.read_bytes())
    except FileNotFoundError:
        raise SceneError(f"{path}: does not exist") from None
    except OSError as error:
        raise SceneError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ElementTree.ParseError as error:
        raise SceneError(f"{path}: is not valid XML: {error}") from None


def _describe(kind: str, shown: Path, path: Path, joints: dict[str, float]) -> dict:
    """What the PyBullet child process says about a file."""
    project = str(Path(__file__).resolve().parents[2])
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, (project, os.environ.get("PYTHONPATH")))))
    command = [sys.executable, "-m", "bridge.scene.pybullet_reader", kind, str(path.resolve())]
    try:
        done = subprocess.run(
            command, input=json.dumps(joints).encode(), capture_output=True, timeout=TIMEOUT_S, env=environment
        )
    except subprocess.TimeoutExpired:
        raise SceneError(f"{shown}: PyBullet did not finish reading it within {TIMEOUT_S:g} s") from None
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode < 0:
        raise SceneError(f"{shown}: PyBullet crashed while reading it (signal {-done.returncode})")
    said = f"{output.partition(MARK)[0]}\n{done.stderr.decode('utf-8', 'replace')}"
    result = json.loads(output.partition(MARK)[2] or '{"error": "no answer"}')
    if "error" in result:
        raise SceneError(f"{shown}: PyBullet cannot read it: {_findings(said) or result['error']}")
    return result


def _findings(said: str) -> str:
    """PyBullet's own words, without its source locations."""
    said = re.sub(r"pybullet build time:.*", "", said)
    lines = re.split(r"b3(?:Warning|Error|Printf)?(?:\[[^\]]*\])?:|\n", said)
    useful = [line.strip() for line in lines if line.strip() and "No inertial data" not in line]
    return "; ".join(dict.fromkeys(useful))[:400]


def _check_joints(path: Path, described: dict, joints: dict[str, float]) -> None:
    for name in described["unknown_joints"]:
        near = difflib.get_close_matches(name, described["known_joints"], 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(described['known_joints']) or 'none'}"
        raise SceneError(f"{path}: has no movable joint {name!r} (position {joints[name]:g} given); {hint}")


def _check_meshes(path: Path, kind: str, root: ElementTree.Element) -> None:
    """Every mesh that the file names must exist where PyBullet looks for it."""
    named: list[tuple[str, str]] = []
    if kind == "urdf":
        for link in root.iter("link"):
            for part in ("collision", "visual"):
                for mesh in link.iterfind(f"{part}/geometry/mesh"):
                    named.append((f"link {link.get('name')!r}, {part}", mesh.get("filename", "")))
    elif kind == "sdf":
        for link in root.iter("link"):
            for part in ("collision", "visual"):
                for uri in link.iterfind(f"{part}/geometry/mesh/uri"):
                    named.append((f"link {link.get('name')!r}, {part}", (uri.text or "").strip()))
    else:
        for mesh in root.iterfind("asset/mesh"):
            named.append((f"asset {mesh.get('name')!r}", mesh.get("file", "")))
    compiler = root.find("compiler") if kind == "mjcf" else None
    meshdir = "" if compiler is None else compiler.get("meshdir", "")
    for where, name in named:
        # PyBullet puts each folder, a slash and the name together, also when the name begins with a slash.
        file = re.sub(r"^(package|model|file)://", "", name).lstrip("/")
        here = path.resolve().parent / meshdir
        if not file or not any((folder / file).is_file() for folder in (here, *here.parents)):
            raise SceneError(
                f"{path}: {where}: mesh {name!r} does not exist; looked for {file!r} in {here} and the folders above it"
            )


def _check_shape_counts(path: Path, root: ElementTree.Element, body: dict) -> None:
    """Nothing may get lost on the way through PyBullet."""
    for entry in body["links"]:
        declared = sum(
            len(link.findall("collision/geometry"))
            for link in root.iterfind("link")
            if link.get("name") == entry["name"]
        )
        if len(entry["shapes"]) != declared:
            raise SceneError(
                f"{path}: link {entry['name']!r} has {declared} collision shapes, PyBullet reads {len(entry['shapes'])}"
            )


def _cylinders(kind: str, root: ElementTree.Element) -> dict[str, dict[int, tuple[float, float]]]:
    """SDF cylinders (radius, length) by link and shape number: PyBullet turns these into hulls without a name."""
    found: dict[str, dict[int, tuple[float, float]]] = {}
    if kind == "sdf":
        for link in root.iter("link"):
            for index, geometry in enumerate(link.iterfind("collision/geometry")):
                cylinder = geometry.find("cylinder")
                if cylinder is not None:
                    radius, length = (float(cylinder.findtext(key, "0")) for key in ("radius", "length"))
                    found.setdefault(link.get("name", ""), {})[index] = (radius, length)
    return found


def _source(
    path: Path,
    link: str,
    entry: dict,
    shape: dict,
    cylinder: tuple[float, float] | None,
    scale: float,
    notes: list[str],
) -> Source:
    """One shape of a link, placed in the link's frame."""
    frame = (np.array(shape["frame"][0]), np.array(shape["frame"][1]))
    if not shape["in_link"]:
        frame = compose((np.array(entry["inertial"][0]), np.array(entry["inertial"][1])), frame)
    what = f"{path}: link {link!r}"
    size = shape["size"]
    kind = CYLINDER if cylinder else shape["kind"]
    if cylinder:
        size = [cylinder[1], cylinder[0]]
    factors = (scale, scale, scale)
    if kind == MESH:
        factors = (scale * size[0], scale * size[1], scale * size[2])
        file = Path(shape["file"])
        made: dict[str, Any] = {"kind": file.suffix.lower(), "data": read_bytes(file), "what": str(file)}
    elif kind == BOX:
        made = {"kind": "box", "size": tuple(size)}
    elif kind == SPHERE:
        made = {"kind": "sphere", "size": (size[0],)}
    elif kind == CYLINDER:
        made = {"kind": "cylinder", "size": (size[1], size[0])}
    elif kind == CAPSULE:
        made = {"kind": "capsule", "size": (size[1], size[0])}
    elif kind == PLANE:
        made = {"kind": "plane", "size": (PLANE_EDGE, PLANE_EDGE)}
        if any(size):
            turned = Rotation.from_quat(frame[1]) * shortest_turn(UPWARD, np.array(size))
            frame = (frame[0], turned.as_quat())
        notes.append(f"link {link!r}: an endless plane became a square of {PLANE_EDGE * scale:g} m")
    else:
        raise SceneError(f"{what}: has a shape that cannot be imported (PyBullet's kind {kind})")
    x, y, z = (float(v) * scale for v in frame[0])
    qx, qy, qz, qw = (float(v) for v in frame[1])
    return Source(**{"what": what, **made}, scale=factors, position=(x, y, z), orientation=(qx, qy, qz, qw))


def _describe_mjcf(path: Path, root: ElementTree.Element, joints: dict[str, float]) -> dict:
    """MJCF by way of a rewritten copy.

    PyBullet crashes when asked for the collision shapes of an MJCF capsule, and reports its visual shape without
    frame when the file gives end points. So end points are turned into position and axis first, and the visual
    shapes (the same geoms) are read.
    """
    sizes = {d.get("class", ""): g.get("size") for d in root.iter("default") for g in d.findall("geom")}
    for geom in root.iter("geom"):
        ends = geom.get("fromto")
        if ends is None:
            continue
        size = geom.get("size") or sizes.get(geom.get("class", ""))
        try:
            values = np.array([float(v) for v in ends.split()]).reshape(2, 3)
            radius = float((size or "").split()[0])
        except (ValueError, IndexError):
            raise SceneError(f"{path}: geom {geom.get('name')!r} has fromto {ends!r} and size {size!r}") from None
        axis = values[1] - values[0]
        length = float(np.linalg.norm(axis))
        if length == 0.0:
            raise SceneError(f"{path}: geom {geom.get('name')!r} has both ends at {ends!r}")
        x, y, z, w = shortest_turn(UPWARD, axis).as_quat()
        del geom.attrib["fromto"]
        for other in ("axisangle", "euler", "xyaxes", "zaxis"):
            geom.attrib.pop(other, None)
        geom.set("size", f"{radius!r} {length / 2!r}")
        geom.set("pos", " ".join(repr(float(v)) for v in values.mean(axis=0)))
        geom.set("quat", f"{float(w)!r} {float(x)!r} {float(y)!r} {float(z)!r}")
    for mesh in root.iterfind("asset/mesh"):
        compiler = root.find("compiler")
        meshdir = "" if compiler is None else compiler.get("meshdir", "")
        mesh.set("file", str((path.resolve().parent / meshdir / mesh.get("file", "")).resolve()))
    with tempfile.TemporaryDirectory(prefix="hapticd-mjcf-") as folder:
        copy = Path(folder) / path.name
        ElementTree.ElementTree(root).write(copy)
        return _describe("mjcf", path, copy, joints)


def link_box(link: Link) -> np.ndarray:
    """(2, 3) lower and upper corner of a link's triangles in the robot's base frame, m."""
    mesh = build(link.sources)
    points = place(link.pose, mesh.vertices)
    return np.array([points.min(axis=0), points.max(axis=0)])
