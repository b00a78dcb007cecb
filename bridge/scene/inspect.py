"""What `hapticd inspect` says about a mesh, a robot or a configuration, and what the daemon will do about it."""

import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import cKDTree

from bridge.scene import paths
from bridge.scene.cache import PreparedMesh, prepare
from bridge.scene.crossings import Crossings, crossings
from bridge.scene.errors import SceneError
from bridge.scene.mesh import FORMATS, read_bytes
from bridge.scene.robots import Link, Robot, read_robot
from bridge.scene.rounded import capsule_mass
from bridge.scene.sources import Source
from bridge.scene.topology import Topology, analyse
from bridge.scene.walls import thinnest_wall
from haptics.cards import DeviceCard, load_card
from haptics.hands import HANDS_OFF, HELD, LIGHT, Grip
from haptics.settings import DEFAULT_SPEED_MAX
from haptics.stability import Bounds, bounds
from rtcore.geometry.mass import MassProperties, mass_properties, signed_volume
from rtcore.model import Model
from rtcore.tables import FREE, KINEMATIC, MAX_TREE_DEPTH

if TYPE_CHECKING:
    from bridge.assemble import PlacedMesh

ROBOT_FORMATS = (".urdf", ".sdf", ".xml", ".mjcf")
SHOWN_LOOPS = 20
SHOWN_ITEMS = 10
DEFAULT_DENSITY = 1000.0
"""kg/m3, of a tool mesh, which has no density of its own to say."""
SHOWN_FACES = 5
"""Faces that a finding names."""
NEEDLE = 1e-3
"""A face is a needle when its height over its longest edge is below this share of it."""
CRACK = 1e-6
"""Different vertices nearer than this share of the mesh's diagonal were surely meant to be one."""


@dataclass(frozen=True)
class Finding:
    """One point that was looked at."""

    topic: str
    """Short snake_case word."""
    level: str
    """`ok`, `note` or `warn`"""
    text: str
    """What was found."""
    daemon: str
    """What the daemon will do about it."""
    count: int = 0
    """How many faces, edges or vertices it is about"""
    faces: list[int] = field(default_factory=list)
    """The first SHOWN_FACES of them, by their number in the file"""


@dataclass(frozen=True)
class MeshReport:
    """One body's triangles. Lengths in m, volumes in m3, masses in kg, inertia in kg·m2."""

    name: str
    hash: str
    triangles: int
    vertices: int
    lower: list[float]
    upper: list[float]
    size: list[float]
    closed: bool
    orientation: str
    """`outward`, `inward`, `inconsistent`, or `open` where neither can be said"""
    components: int
    cavities: int
    """Closed parts whose faces look the other way from the whole"""
    open_loops: int
    loops: list[dict[str, Any]]
    """Longest first: edges, closed, length, centre, first (coordinates of its first vertex)"""
    boundary_edges: int
    non_manifold_edges: int
    non_manifold_at: list[list[float]]
    degenerate_faces: list[int]
    duplicate_faces: list[int]
    unused_vertices: int
    duplicate_vertices: int
    """Vertices of the file that lie where an earlier one does"""
    near_vertices: int
    """Vertices that have another one, not equal, within CRACK"""
    needle_faces: list[int]
    self_crossings: int
    """Pairs of faces that go through each other and share no vertex"""
    self_crossings_complete: bool
    """False: the time for looking ran out, there may be more"""
    never_culled: int
    """Faces that are never left out as receding: the side they look to need not be the outside"""
    density: float
    volume: float | None
    mass: float | None
    centre: list[float] | None
    inertia: list[list[float]] | None
    """About the centre of mass, axes of the mesh"""
    thinnest_wall: float | None
    thinnest_wall_at: list[float] | None
    travel_per_tick: float
    """Farthest the tool can be asked to move in one tick: the card's top speed times scale and period"""
    tree_depth: int
    tree_nodes: int
    findings: list[Finding]
    notes: list[str]
    rounding: float = 0.0
    """Radius of a ball or capsule, which have no triangles; 0 for a mesh"""

    def lines(self) -> list[str]:
        """For people, one fact a line."""
        size = " x ".join(f"{s:.4g}" for s in self.size)
        made_of = f"{self.triangles} triangles, {self.vertices} vertices" if self.rounding == 0.0 else "exactly round"
        lines = [
            f"{self.name}: {made_of}, {size} m",
            f"  box {_point(self.lower)} .. {_point(self.upper)} m",
        ]
        if self.mass is not None and self.centre is not None and self.inertia is not None:
            lines.append(
                f"  volume {self.volume:.6g} m3, mass {self.mass:.6g} kg at {self.density:g} kg/m3, centre of mass "
                f"{_point(self.centre)} m"
            )
            rows = "; ".join(" ".join(f"{x:.4g}" for x in row) for row in self.inertia)
            lines.append(f"  inertia about it [{rows}] kg·m2")
        lines.append(f"  tree: {self.tree_nodes} nodes, {self.tree_depth} deep (at most {MAX_TREE_DEPTH})")
        for finding in self.findings:
            lines.append(f"  [{finding.level}] {finding.text} -> {finding.daemon}")
        lines += [f"  note: {note}" for note in self.notes]
        return lines


@dataclass(frozen=True)
class LinkReport:
    """One link of a robot, as its file says."""

    name: str
    parent: str | None
    joint: str | None
    joint_type: str | None
    joint_position: float
    mass: float
    inertia: list[float]
    """Principal moments about the centre of mass, kg·m2"""
    shapes: int
    triangles: int
    position: list[float]
    orientation: list[float]


@dataclass(frozen=True)
class InertiaReport:
    """What the daemon moves a free body, or a tool with mass, by."""

    name: str
    mass: float
    """kg"""
    centre: list[float]
    """Centre of mass, axes and origin of the mesh, m; of a tool its tip centre"""
    moments: list[float]
    """Principal moments about it, kg·m2"""
    axes: list[float]
    """Orientation of the principal axes, principal -> mesh, xyzw"""

    def line(self) -> str:
        """For people."""
        return (
            f"{self.name} moves with {self.mass:.6g} kg, centre of mass {_point(self.centre)} m, principal moments "
            f"{_point(self.moments)} kg·m2"
        )


@dataclass(frozen=True)
class StabilityReport:
    """How stiff the configured device may be in one hand, N/m; no bound but the last knows dry friction or encoders."""

    hand: str
    stable: float
    """Limit of the sampled loop with the configured damping and window, without delay (haptics.stability)"""
    stable_late: float
    """The same with one tick of delay"""
    bound_late: float
    """The delay-aware bound (Gil et al. 2009) for one tick of delay"""

    def line(self) -> str:
        """For people."""
        return (
            f"stable {self.hand}: below {self.stable:.4g} N/m, one tick late {self.stable_late:.4g} N/m "
            f"(bound {self.bound_late:.4g})"
        )


@dataclass(frozen=True)
class InspectReport:
    """Everything about one file."""

    kind: str
    """`mesh`, `robot` or `configuration`"""
    path: str
    meshes: list[MeshReport]
    links: list[LinkReport] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    """Of the whole: triangles, mass, and for a configuration distances, start, clearance"""
    notes: list[str] = field(default_factory=list)
    inertias: list[InertiaReport] = field(default_factory=list)
    """Of a configuration: of its free bodies, and of a tool with mass"""
    stability: list[StabilityReport] = field(default_factory=list)
    """Of a configuration whose device renders force"""

    @property
    def warnings(self) -> list[str]:
        """Texts of all findings of level `warn`, each with its mesh."""
        return [f"{mesh.name}: {f.text}" for mesh in self.meshes for f in mesh.findings if f.level == "warn"]

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {**asdict(self), "warnings": self.warnings}

    def lines(self) -> list[str]:
        """For people, one fact a line."""
        lines = [f"{self.path}: {self.kind}"]
        lines += [f"  {key.replace('_', ' ')}: {_value(value)}" for key, value in self.facts.items()]
        for link in self.links:
            joint = f", {link.joint_type} joint {link.joint!r} at {link.joint_position:g}" if link.joint else ""
            lines.append(
                f"  link {link.name}: {link.mass:g} kg, {link.shapes} shapes, {link.triangles} triangles{joint}"
            )
        lines += [f"  {inertia.line()}" for inertia in self.inertias]
        lines += [f"  {row.line()}" for row in self.stability]
        lines += [f"  note: {note}" for note in self.notes]
        for mesh in self.meshes:
            lines += mesh.lines()
        return lines


def inspect_path(
    path: str | Path,
    *,
    scale: float = 1.0,
    density: float = 1000.0,
    card: str = "simulated",
    tick_hz: float = 1000.0,
    workspace_scale: float = 1.0,
    resolve: bool = False,
) -> InspectReport:
    """Inspect a mesh, a robot file or a configuration, by its ending; ``pybullet_data:`` names are understood.

    For a configuration, scale, density, card, rate and workspace scale come from it.

    Args:
        scale: of the file's coordinates.
        density: kg/m3.
        card: device whose top speed the walls are compared with.
        workspace_scale: scene metres per device metre.
        resolve: of a configuration, move a start that is not free, as the daemon would when asked to.

    Raises:
        SceneError, bridge.config.ConfigError, haptics.cards.CardError: the file cannot be used.
    """
    file = paths.resolve(str(path))
    suffix = file.suffix.lower()
    if suffix == ".toml":
        return _inspect_configuration(file, resolve)
    travel = _travel(load_card(card), workspace_scale, tick_hz)
    if suffix in ROBOT_FORMATS:
        robot = read_robot(file, scale=scale)
        prepared = {link.name: prepare(link.sources) for link in robot.links if link.sources}
        reports = [report_mesh(name, mesh, density, travel) for name, mesh in prepared.items()]
        links = [_link(link, prepared.get(link.name)) for link in robot.links]
        return InspectReport("robot", str(path), reports, links, _robot_facts(robot, reports), robot.notes)
    if suffix in FORMATS:
        mesh = prepare([Source(str(file), suffix, read_bytes(file), scale=(scale, scale, scale))])
        return InspectReport("mesh", str(path), [report_mesh(file.name, mesh, density, travel)])
    raise SceneError(
        f"{path}: unknown kind of file {suffix!r}; meshes are {', '.join(FORMATS)}, robots {', '.join(ROBOT_FORMATS)}, "
        "configurations .toml"
    )


def report_mesh(name: str, mesh: PreparedMesh, density: float, travel: float) -> MeshReport:
    """Look at one prepared mesh.

    Args:
        density: kg/m3.
        travel: farthest motion of the tool in one tick, m.
    """
    topology = analyse(mesh.vertices, mesh.faces)
    points = mesh.vertices[np.unique(mesh.faces)]
    lower, upper = points.min(axis=0), points.max(axis=0)
    whole = np.setdiff1d(np.arange(len(mesh.faces)), topology.degenerate_faces)
    properties: MassProperties | None = None
    inward = False
    try:
        properties = mass_properties(mesh.vertices, mesh.faces[whole], density)
        inward = signed_volume(mesh.vertices, mesh.faces[whole]) < 0.0
    except ValueError:
        # Open, or no two ways round agree: the orientation below says which.
        pass
    cavities = topology.inward_components
    if inward:
        cavities = topology.components - cavities
    if properties is not None:
        orientation = "inward" if inward else "outward"
    else:
        orientation = "inconsistent" if not topology.consistent else "open"
    wall = thinnest_wall(mesh.faces, mesh.nodes, mesh.triangles, inward)
    crossed = crossings(mesh.nodes, mesh.triangles)
    needles = np.setdiff1d(_needles(mesh.vertices, mesh.faces), topology.degenerate_faces)
    at_edges = mesh.vertices[topology.non_manifold_edges].mean(axis=1) if len(topology.non_manifold_edges) else []
    report = MeshReport(
        name=name,
        hash=mesh.hash,
        triangles=len(mesh.faces),
        vertices=len(mesh.vertices),
        lower=lower.tolist(),
        upper=upper.tolist(),
        size=(upper - lower).tolist(),
        closed=topology.closed,
        orientation=orientation,
        components=topology.components,
        cavities=cavities,
        open_loops=len(topology.loops),
        loops=[
            {
                "edges": loop.edges,
                "closed": loop.closed,
                "length": loop.length,
                "centre": loop.centre.tolist(),
                "first": loop.points[0].tolist(),
            }
            for loop in topology.loops[:SHOWN_LOOPS]
        ],
        boundary_edges=len(topology.boundary_edges),
        non_manifold_edges=len(topology.non_manifold_edges),
        non_manifold_at=[p.tolist() for p in at_edges[:SHOWN_ITEMS]],
        degenerate_faces=topology.degenerate_faces.tolist(),
        duplicate_faces=topology.duplicate_faces.tolist(),
        unused_vertices=topology.unused_vertices,
        duplicate_vertices=mesh.welded,
        near_vertices=_near(points, CRACK * float(np.linalg.norm(upper - lower))),
        needle_faces=needles.tolist(),
        self_crossings=crossed.pairs,
        self_crossings_complete=crossed.complete,
        never_culled=int((mesh.triangles["open"] != 0).sum()),
        density=density,
        volume=None if properties is None else properties.volume,
        mass=None if properties is None else properties.mass,
        centre=None if properties is None else properties.centre.tolist(),
        inertia=None if properties is None else properties.inertia.tolist(),
        thinnest_wall=None if wall is None else wall.thickness,
        thinnest_wall_at=None if wall is None else wall.point.tolist(),
        travel_per_tick=travel,
        tree_depth=int(mesh.nodes["depth"].max()),
        tree_nodes=len(mesh.nodes),
        findings=[],
        notes=mesh.notes,
    )
    report.findings.extend(_findings(report, topology, mesh.faces, crossed))
    return report


def report_rounded(name: str, core: PreparedMesh, rounding: float, density: float, travel: float) -> MeshReport:
    """About a ball or capsule: all of it exact.

    Args:
        core: the point or segment along z that it is rounded about.
        rounding: its radius, m.
        density: kg/m3.
        travel: farthest motion of the tool in one tick, m.

    Raises:
        ValueError: as :func:`bridge.scene.rounded.capsule_mass`.
    """
    length = float(np.ptp(core.vertices[:, 2]))
    solid = capsule_mass(rounding, length, density)
    upper = np.array((rounding, rounding, rounding + length / 2.0))
    what = "a point" if length == 0.0 else f"a segment of {length:.4g} m"
    report = MeshReport(
        name=name,
        hash=core.hash,
        triangles=0,
        vertices=0,
        lower=(-upper).tolist(),
        upper=upper.tolist(),
        size=(2.0 * upper).tolist(),
        closed=True,
        orientation="outward",
        components=1,
        cavities=0,
        open_loops=0,
        loops=[],
        boundary_edges=0,
        non_manifold_edges=0,
        non_manifold_at=[],
        degenerate_faces=[],
        duplicate_faces=[],
        unused_vertices=0,
        duplicate_vertices=0,
        near_vertices=0,
        needle_faces=[],
        self_crossings=0,
        self_crossings_complete=True,
        never_culled=0,
        density=density,
        volume=solid.volume,
        mass=solid.mass,
        centre=solid.centre.tolist(),
        inertia=solid.inertia.tolist(),
        thinnest_wall=2.0 * rounding,
        thinnest_wall_at=[0.0, 0.0, 0.0],
        travel_per_tick=travel,
        tree_depth=int(core.nodes["depth"].max()),
        tree_nodes=len(core.nodes),
        findings=[
            Finding(
                "rounded",
                "ok",
                f"exactly round: {what}, with a radius of {rounding:.4g} m round it",
                "measures distances to that, less the radius; triangles are only made to show it",
            )
        ],
        notes=core.notes,
        rounding=rounding,
    )
    return replace(report, findings=[*report.findings, _wall(report), *_units(report)])


def _needles(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Rows of faces whose height is below NEEDLE times their longest edge."""
    corners = vertices[faces]
    edges = np.roll(corners, -1, axis=1) - corners
    square = (edges**2).sum(axis=2).max(axis=1)
    return np.flatnonzero(np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1) < NEEDLE * square)


def _near(points: np.ndarray, reach: float) -> int:
    """How many of the points (n, 3) have another one within reach (m)."""
    if len(points) < 2:
        return 0
    distance, _ = cKDTree(points).query(points, k=2, distance_upper_bound=reach)
    return int(np.isfinite(distance[:, 1]).sum())


def _faces_at(faces: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Rows of faces (m, 3) that have one of the edges (k, 2; lower vertex first)."""
    count = int(faces.max()) + 1
    wanted = edges[:, 0] * count + edges[:, 1]
    ends = np.sort(np.stack((faces, np.roll(faces, -1, axis=1)), axis=2), axis=2)
    return np.flatnonzero(np.isin(ends[:, :, 0] * count + ends[:, :, 1], wanted).any(axis=1))


def _some(faces: Any) -> str:
    """The first few numbers of faces, for people."""
    shown = [int(face) for face in faces[:SHOWN_FACES]]
    word = "face" if len(faces) == 1 else "faces"
    return f"{word} {', '.join(map(str, shown))}{', ...' if len(faces) > SHOWN_FACES else ''}"


def _first(faces: Any) -> list[int]:
    return [int(face) for face in faces[:SHOWN_FACES]]


def _findings(report: MeshReport, topology: Topology, faces: np.ndarray, crossed: Crossings) -> list[Finding]:
    found = [_closedness(report, topology, faces), _orientation(report, topology, faces)]
    if report.components > 1:
        cavities = f", {report.cavities} of them cavities" if report.cavities else ""
        found.append(
            Finding(
                "components",
                "note",
                f"{report.components} parts that share no edge{cavities}",
                "treats them as one body; every surface is solid, also inside",
            )
        )
    if report.non_manifold_edges:
        at = _faces_at(faces, topology.non_manifold_edges)
        found.append(
            Finding(
                "non_manifold",
                "note",
                f"{report.non_manifold_edges} edges have more than two faces, first at "
                f"{_point(report.non_manifold_at[0])} m; {_some(at)}",
                "keeps every face there solid from both sides and never leaves one out as receding",
                report.non_manifold_edges,
                _first(at),
            )
        )
    if report.degenerate_faces:
        found.append(
            Finding(
                "degenerate",
                "note",
                f"{len(report.degenerate_faces)} faces have no area: {_some(report.degenerate_faces)}",
                "keeps them as the lines or points that they are; they stay solid",
                len(report.degenerate_faces),
                _first(report.degenerate_faces),
            )
        )
    if report.needle_faces:
        found.append(
            Finding(
                "needle",
                "note",
                f"{len(report.needle_faces)} faces are needles, more than {1.0 / NEEDLE:g} times as long as high: "
                f"{_some(report.needle_faces)}",
                "keeps them; distances to them are exact to rounding, and they stay solid",
                len(report.needle_faces),
                _first(report.needle_faces),
            )
        )
    if report.duplicate_faces:
        found.append(
            Finding(
                "duplicate",
                "note",
                f"{len(report.duplicate_faces)} faces have the corners of an earlier one: "
                f"{_some(report.duplicate_faces)}",
                "keeps them; they cost time and change nothing",
                len(report.duplicate_faces),
                _first(report.duplicate_faces),
            )
        )
    found += _vertices(report)
    found.append(_self_crossing(crossed))
    found.append(_wall(report))
    if report.unused_vertices:
        found.append(
            Finding(
                "unused_vertices",
                "note",
                f"{report.unused_vertices} vertices belong to no face",
                "leaves them out; if faces are missing, the file may be cut off",
            )
        )
    return found + _units(report)


def _units(report: MeshReport) -> list[Finding]:
    extent = float(np.linalg.norm(report.size))
    if 0.002 <= extent <= 50.0:
        return []
    what, answer = "the file may be in other units", "; set `scale` (0.001 for mm)"
    if report.rounding > 0.0:
        what, answer = "is its `size` in metres?", ""
    text = f"measures {extent:.4g} m corner to corner: {what}"
    return [Finding("size", "warn", text, f"takes coordinates as metres{answer}")]


def _vertices(report: MeshReport) -> list[Finding]:
    found = []
    if report.duplicate_vertices:
        found.append(
            Finding(
                "duplicate_vertices",
                "ok",
                f"{report.duplicate_vertices} vertices of the file lie exactly where an earlier one does",
                "takes them as one vertex to know which faces are neighbours; no coordinate is changed",
                report.duplicate_vertices,
            )
        )
    if report.near_vertices:
        found.append(
            Finding(
                "near_vertices",
                "note",
                f"{report.near_vertices} vertices have another one within {CRACK:g} of the size that is not equal",
                "leaves them as they are: edges there count as borders, so their faces are never left out as receding; "
                "the crack is too narrow for any tool",
                report.near_vertices,
            )
        )
    return found


def _self_crossing(crossed: Crossings) -> Finding:
    cut = "" if crossed.complete else "; looking for more was cut short by time"
    if crossed.pairs == 0:
        return Finding(
            "self_crossing", "ok" if crossed.complete else "note", f"no two faces cross{cut}", "needs nothing"
        )
    named = ", ".join(f"{a} and {b}" for a, b in crossed.named[:SHOWN_FACES].tolist())
    return Finding(
        "self_crossing",
        "note",
        f"{crossed.pairs} pairs of faces go through each other ({len(crossed.faces)} faces), such as {named}{cut}",
        "keeps both surfaces: each is solid wherever it is, also the parts inside the other",
        crossed.pairs,
        _first(crossed.faces),
    )


def _closedness(report: MeshReport, topology: Topology, faces: np.ndarray) -> Finding:
    if report.closed:
        return Finding("closed", "ok", "closed: every edge has two faces", "keeps the tool on its side of it")
    if not topology.loops:
        return Finding(
            "closed",
            "note",
            "no opening, but some edges have more than two faces",
            "keeps the tool on its side of it",
        )
    largest = topology.loops[0]
    at = _faces_at(faces, topology.boundary_edges)
    return Finding(
        "closed",
        "note",
        f"open: {report.boundary_edges} boundary edges in {report.open_loops} loop(s), the longest "
        f"{largest.length:.4g} m round {_point(largest.centre.tolist())} m; {_some(at)}",
        "treats every face as a sheet that is solid from both sides and never leaves one out as receding; the tool can "
        "go through the opening, if it fits, and never through a face",
        report.boundary_edges,
        _first(at),
    )


def _orientation(report: MeshReport, topology: Topology, faces: np.ndarray) -> Finding:
    solid = "keeps faces solid from both sides and never leaves one of these parts out as receding"
    if report.orientation == "outward":
        return Finding("orientation", "ok", "all faces look outwards", "renders forces away from the surface")
    if report.orientation == "inward":
        inside_out = topology.inward_faces
        text = f"all faces look inwards (inside out): {_some(inside_out)}"
        return Finding("orientation", "note", text, solid, len(inside_out), _first(inside_out))
    if report.orientation == "inconsistent":
        at = _faces_at(faces, topology.inconsistent_edges)
        count = len(topology.inconsistent_edges)
        return Finding(
            "orientation",
            "note",
            f"neighbouring faces look different ways at {count} edges: {_some(at)}",
            f"{solid}; no volume or mass can be given",
            count,
            _first(at),
        )
    return Finding("orientation", "ok", "no inside, so no volume or mass", solid)


def _wall(report: MeshReport) -> Finding:
    if report.thinnest_wall is None or report.thinnest_wall_at is None:
        return Finding("wall", "ok", "no wall was found by rays through the solid", "sweeps the tip continuously")
    text = (
        f"thinnest wall about {report.thinnest_wall * 1e3:.4g} mm at {_point(report.thinnest_wall_at)} m; the tool can "
        f"move {report.travel_per_tick * 1e3:.4g} mm per tick"
    )
    if report.thinnest_wall >= report.travel_per_tick:
        return Finding("wall", "ok", text, "sweeps the tip continuously")
    return Finding(
        "wall",
        "note",
        f"{text}, farther than the wall is thick",
        "sweeps the tip continuously, so it cannot pass (a test at the end of each tick alone would miss it)",
    )


def _travel(card: DeviceCard, workspace_scale: float, tick_hz: float) -> float:
    speed = card.speed_max if card.speed_max is not None else DEFAULT_SPEED_MAX
    return speed * workspace_scale / tick_hz


def _link(link: Link, mesh: PreparedMesh | None) -> LinkReport:
    return LinkReport(
        name=link.name,
        parent=link.parent,
        joint=link.joint,
        joint_type=link.joint_type,
        joint_position=link.joint_position,
        mass=link.mass,
        inertia=link.inertia.tolist(),
        shapes=len(link.sources),
        triangles=0 if mesh is None else len(mesh.faces),
        position=link.pose[0].tolist(),
        orientation=link.pose[1].tolist(),
    )


def _robot_facts(robot: Robot, reports: list[MeshReport]) -> dict[str, Any]:
    return {
        "links": len(robot.links),
        "movable_joints": sum(link.joint_type in ("revolute", "prismatic") for link in robot.links),
        "bodies": len(reports),
        "triangles": sum(report.triangles for report in reports),
        "mass_kg": sum(link.mass for link in robot.links),
    }


def _inspect_configuration(path: Path, resolve: bool) -> InspectReport:
    from bridge.assemble import TOOL, assemble, place_bodies, robot_of, tool_mesh
    from bridge.config import load_config

    config = load_config(path)
    assembly = assemble(config, path.parent, source=str(path), resolve=resolve)
    placed, _ = place_bodies(config, path.parent)
    travel = _travel(assembly.card, config.workspace.scale, config.rates.tick_hz)
    reports = []
    for body in placed:
        mass = body.config.mass if body.config.inertia is None else None
        if body.rounding > 0.0:
            reports.append(_report_rounded(body, mass, travel))
            continue
        reports.append(report_mesh(body.name, body.mesh, _density(body.mesh, mass, body.config.density), travel))
    tool = tool_mesh(config, path.parent, [])
    if tool is not None:
        density = _density(tool, config.tool.mass or None, DEFAULT_DENSITY)
        reports.append(report_mesh(TOOL, tool, density, travel))
    rows = zip([body.name for body in placed] + [TOOL], assembly.model.inertias, strict=True)
    inertias = [_inertia(name, row) for name, row in rows if row["mass"] > 0.0]
    links = []
    for robot in config.scene.bodies:
        if robot.urdf is not None:
            meshes = {p.name: p.mesh for p in placed}
            for link in robot_of(robot, path.parent).links:
                report = _link(link, meshes.get(f"{robot.name}/{link.name}"))
                links.append(LinkReport(**{**asdict(report), "name": f"{robot.name}/{link.name}"}))
    boxes = np.array([body.box() for body in placed])
    facts = {
        "scene": config.scene.name,
        "bodies": len(placed),
        "triangles": assembly.triangle_count,
        "box_lower": boxes[:, 0].min(axis=0).tolist(),
        "box_upper": boxes[:, 1].max(axis=0).tolist(),
        **assembly.eps,
        **_tool(config, tool),
        "tool_start": list(assembly.start),
        "clearance_at_start": assembly.clearance,
        **_moving(assembly.model),
        "device": assembly.card.name,
        "stiffness": float(assembly.settings["stiffness"][0]),
        "damping": float(assembly.settings["damping"][0]),
        "travel_per_tick": travel,
    }
    stability: list[StabilityReport] = []
    if not assembly.card.input_only:
        stability, found = _stability(assembly.card, assembly.settings[0])
        facts["passive_in_any_hand_below"] = found.passive
        facts["controller_takes_back_below"] = found.controlled
    return InspectReport("configuration", str(path), reports, links, facts, assembly.notes, inertias, stability)


def _stability(card: DeviceCard, settings: np.void) -> tuple[list[StabilityReport], Bounds]:
    """In a firm, a light and no hand; and what holds for any."""

    def of(grip: Grip, delay_ticks: int) -> Bounds:
        return bounds(
            card,
            grip,
            float(settings["damping"]),
            period=float(settings["dt"]),
            window=float(settings["velocity_window_s"]),
            delay_ticks=delay_ticks,
            controller=float(settings["passivity"] * settings["passivity_damping"][0]),
        )

    rows = []
    for name, grip in (("held", HELD), ("held lightly", LIGHT), ("hands off", HANDS_OFF)):
        late = of(grip, 1)
        rows.append(StabilityReport(name, of(grip, 0).exact, late.exact, late.delayed))
    return rows, of(HANDS_OFF, 0)


def _report_rounded(body: "PlacedMesh", mass: float | None, travel: float) -> MeshReport:
    density = body.config.density
    if mass is not None:
        density = mass / capsule_mass(body.rounding, float(np.ptp(body.mesh.vertices[:, 2])), 1.0).volume
    return report_rounded(body.name, body.mesh, body.rounding, density, travel)


def _density(mesh: PreparedMesh, mass: float | None, density: float) -> float:
    """By which a body has the mass (kg) that is given, or else the density, kg/m3."""
    return density if mass is None else mass / abs(signed_volume(mesh.vertices, mesh.faces))


def _inertia(name: str, row: np.void) -> InertiaReport:
    """row: BODY_INERTIA."""
    return InertiaReport(
        name, float(row["mass"]), row["centre"].tolist(), row["moments"].tolist(), row["axes"].tolist()
    )


def _moving(model: Model) -> dict[str, Any]:
    """How many bodies move, and the mass of the free ones together; nothing for a scene without."""
    kinds = model.bodies["kind"]
    free, kinematic = int((kinds == FREE).sum()), int((kinds == KINEMATIC).sum())
    if free + kinematic == 0:
        return {}
    return {
        "gravity": model.world["gravity"][0].tolist(),
        "free_bodies": free,
        "kinematic_bodies": kinematic,
        "free_mass_kg": math.fsum(model.inertias["mass"][:-1]),
    }


def _tool(config: Any, mesh: PreparedMesh | None) -> dict[str, Any]:
    """What the tool is; reach is that of its farthest point from the tip centre, m."""
    if mesh is None:
        return {"tool": "sphere tip", "tip_radius": config.tool.tip_radius}
    kind = config.tool.mesh or config.tool.primitive
    reach = float(np.linalg.norm(mesh.vertices[np.unique(mesh.faces)], axis=1).max())
    return {"tool": kind, "tool_triangles": len(mesh.faces), "tool_reach": reach}


def _point(values: list[float]) -> str:
    return "(" + ", ".join(f"{v:.4g}" for v in values) + ")"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return _point(value) if isinstance(value, list) else str(value)
