"""Inspecting any file, by its ending: a mesh, a robot or a configuration."""

from pathlib import Path

from bridge.scene import paths
from bridge.scene.cache import prepare
from bridge.scene.errors import SceneError
from bridge.scene.inspect.configuration import inspect_configuration
from bridge.scene.inspect.mesh import report_mesh, travel_per_tick
from bridge.scene.inspect.report import InspectReport
from bridge.scene.inspect.robot import ROBOT_FORMATS, report_link, robot_facts
from bridge.scene.mesh import FORMATS, read_bytes
from bridge.scene.robots import read_robot
from bridge.scene.sources import Source
from haptics.cards import load_card


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
        return inspect_configuration(file, resolve)
    travel = travel_per_tick(load_card(card), workspace_scale, tick_hz)
    if suffix in ROBOT_FORMATS:
        robot = read_robot(file, scale=scale)
        prepared = {link.name: prepare(link.sources) for link in robot.links if link.sources}
        reports = [report_mesh(name, mesh, density, travel) for name, mesh in prepared.items()]
        links = [report_link(link, prepared.get(link.name)) for link in robot.links]
        return InspectReport("robot", str(path), reports, links, robot_facts(robot, reports), robot.notes)
    if suffix in FORMATS:
        mesh = prepare([Source(str(file), suffix, read_bytes(file), scale=(scale, scale, scale))])
        return InspectReport("mesh", str(path), [report_mesh(file.name, mesh, density, travel)])
    if not str(path):
        raise SceneError("the name of the file to inspect is empty")
    if not file.is_file():
        raise SceneError(f"{path}: {'is not a file' if file.exists() else 'does not exist'}")
    raise SceneError(
        f"{path}: unknown kind of file {suffix!r}; meshes are {', '.join(FORMATS)}, robots {', '.join(ROBOT_FORMATS)}, "
        "configurations .toml"
    )
