"""Inspecting a mesh or a round body: its figures, what was found at its faces, and what the daemon will do about it."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from bridge.scene.cache import PreparedMesh
from bridge.scene.crossings import Crossings, crossings
from bridge.scene.inspect.report import Finding, MeshReport, point
from bridge.scene.rounded import capsule_mass
from bridge.scene.topology import Topology, analyse
from bridge.scene.walls import thinnest_wall
from haptics.cards import DeviceCard
from haptics.settings import DEFAULT_SPEED_MAX
from rtcore.geometry.mass import MassProperties, mass_properties, signed_volume

SHOWN_LOOPS = 20
SHOWN_ITEMS = 10
SHOWN_FACES = 5
"""Faces that a finding names."""
NEEDLE = 1e-3
"""A face is a needle when its height over its longest edge is below this share of it."""
CRACK = 1e-6
"""Different vertices nearer than this share of the mesh's diagonal were surely meant to be one."""


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
                f"{point(report.non_manifold_at[0])} m; {_some(at)}",
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
        f"{largest.length:.4g} m round {point(largest.centre.tolist())} m; {_some(at)}",
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
        f"thinnest wall about {report.thinnest_wall * 1e3:.4g} mm at {point(report.thinnest_wall_at)} m; the tool can "
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


def travel_per_tick(card: DeviceCard, workspace_scale: float, tick_hz: float) -> float:
    """Farthest that the tool can be asked to move in one tick, m."""
    speed = card.speed_max if card.speed_max is not None else DEFAULT_SPEED_MAX
    return speed * workspace_scale / tick_hz
