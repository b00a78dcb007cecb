"""Inspecting a robot: its links as its file says."""

from typing import Any

from bridge.scene.cache import PreparedMesh
from bridge.scene.inspect.report import LinkReport, MeshReport
from bridge.scene.robots import Link, Robot

ROBOT_FORMATS = (".urdf", ".sdf", ".xml", ".mjcf")


def report_link(link: Link, mesh: PreparedMesh | None) -> LinkReport:
    """mesh: of all its shapes, if it has any."""
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


def robot_facts(robot: Robot, reports: list[MeshReport]) -> dict[str, Any]:
    """Of all its links together; reports: of those that have shapes."""
    return {
        "links": len(robot.links),
        "movable_joints": sum(link.joint_type in ("revolute", "prismatic") for link in robot.links),
        "bodies": len(reports),
        "triangles": sum(report.triangles for report in reports),
        "mass_kg": sum(link.mass for link in robot.links),
    }
