"""What an inspection says: plain values for programs, lines for people."""

from dataclasses import asdict, dataclass, field
from typing import Any

from rtcore.tables import MAX_TREE_DEPTH


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
            f"  box {point(self.lower)} .. {point(self.upper)} m",
        ]
        if self.mass is not None and self.centre is not None and self.inertia is not None:
            lines.append(
                f"  volume {self.volume:.6g} m3, mass {self.mass:.6g} kg at {self.density:g} kg/m3, centre of mass "
                f"{point(self.centre)} m"
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
            f"{self.name} moves with {self.mass:.6g} kg, centre of mass {point(self.centre)} m, principal moments "
            f"{point(self.moments)} kg·m2"
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


def point(values: list[float]) -> str:
    """For people."""
    return "(" + ", ".join(f"{v:.4g}" for v in values) + ")"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return point(value) if isinstance(value, list) else str(value)
