"""Inspecting a configuration: the scene as the daemon would start it, what its bodies weigh, how stiff it may be."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.scene.cache import PreparedMesh
from bridge.scene.inspect.mesh import report_mesh, report_rounded, travel_per_tick
from bridge.scene.inspect.report import InertiaReport, InspectReport, LinkReport, MeshReport, StabilityReport
from bridge.scene.inspect.robot import report_link
from bridge.scene.rounded import capsule_mass
from haptics.cards import DeviceCard
from haptics.hands import HANDS_OFF, HELD, LIGHT, Grip
from haptics.stability import Bounds, bounds
from rtcore.geometry.mass import signed_volume
from rtcore.model import Model
from rtcore.tables import FREE, KINEMATIC

if TYPE_CHECKING:
    from bridge.assemble import PlacedMesh

DEFAULT_DENSITY = 1000.0
"""kg/m3, of a tool mesh, which has no density of its own to say."""


def inspect_configuration(path: Path, resolve: bool) -> InspectReport:
    """Every body, the tool and the device; arguments and errors as of :func:`bridge.scene.inspect.inspect_path`."""
    from bridge.assemble import TOOL, assemble, place_bodies, robot_of, tool_mesh
    from bridge.config import load_config

    config = load_config(path)
    assembly = assemble(config, path.parent, source=str(path), resolve=resolve)
    placed, _ = place_bodies(config, path.parent)
    travel = travel_per_tick(assembly.card, config.workspace.scale, config.rates.tick_hz)
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
                report = report_link(link, meshes.get(f"{robot.name}/{link.name}"))
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
