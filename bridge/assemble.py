"""From a configuration to everything the servo needs: model, settings, budget, names."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.config import Body, Config, ConfigError
from bridge.scene.cache import PreparedMesh, prepare
from bridge.scene.errors import SceneError
from bridge.scene.frames import Pose, compose, place
from bridge.scene.mesh import read_bytes
from bridge.scene.paths import resolve
from bridge.scene.robots import Robot, read_robot
from bridge.scene.sources import Source
from bridge.scene.topology import winding_number
from haptics.cards import DeviceCard, load_card
from haptics.settings import make_settings
from rtcore.collision.nearest import clearance
from rtcore.model import Model, ModelBuilder
from rtcore.state import make_state
from rtcore.tables import BUDGET, HELD, STATIC

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many are done, and how many there are."""

EPS_SHARES = {"eps_alert": 0.0044 / 50.0, "eps_safety": 0.010 / 50.0, "eps_break": 0.023 / 50.0}
"""Default distances as shares of the scene's box diagonal (Redon 2002: 0.0044, 0.010, 0.023 for a 50-unit scene)."""

LARGE_SCENE = 50.0
SMALL_SCENE = 0.002
"""m; a scene beyond these is surely in other units than its author thought."""


@dataclass(frozen=True)
class PlacedMesh:
    """One body: where it stands and what it is made of."""

    name: str
    config: Body
    pose: Pose
    """Mesh frame -> scene."""
    mesh: PreparedMesh

    def box(self) -> np.ndarray:
        """(2, 3) lower and upper corner of its triangles in the scene, m."""
        points = place(self.pose, self.mesh.vertices[np.unique(self.mesh.faces)])
        return np.array([points.min(axis=0), points.max(axis=0)])


@dataclass(frozen=True)
class Assembly:
    """All that is fixed before the first tick."""

    config: Config
    card: DeviceCard
    model: Model
    settings: np.ndarray
    """(1,) SETTINGS"""
    budget: np.ndarray
    """(1,) BUDGET"""
    mesh_hashes: dict[str, str]
    """Content hash of each body's triangles, by body name."""
    body_names: list[str]
    """By body_id."""
    start: tuple[float, float, float]
    """Tip centre at start, scene, m."""
    base_directory: Path
    """What relative paths in the configuration are relative to."""
    triangle_count: int
    """Of all bodies; a mesh that several show counts each time."""
    eps: dict[str, float]
    """eps_alert, eps_safety, eps_break in force, m."""
    clearance: float
    """From the tip sphere at start to the nearest surface, m."""
    notes: list[str] = field(default_factory=list)
    """What import and assembly had to decide, one sentence each."""


def assemble(
    config: Config, base_directory: str | Path, progress: Progress | None = None, *, source: str = "configuration"
) -> Assembly:
    """Import the scene, build the model and the tables beside it, and check that the tool can start.

    Args:
        base_directory: folder of the configuration file.
        progress: told about every body.
        source: what errors call the configuration; its path, where there is one.

    Raises:
        ConfigError: values that do not go together once the scene or the device card is known.
        SceneError: a mesh or robot that cannot be used, or a start that is not free; the text names the body.
        haptics.cards.CardError: the device card.
    """
    base_directory = Path(base_directory)
    card = load_card(config.device.card, base_directory)
    settings = _settings(config, card, source)
    placed, notes = place_bodies(config, base_directory, progress)
    boxes = np.array([body.box() for body in placed])
    diagonal = float(np.linalg.norm(boxes[:, 1].max(axis=0) - boxes[:, 0].min(axis=0)))
    if not SMALL_SCENE <= diagonal <= LARGE_SCENE:
        notes.append(
            f"the scene measures {diagonal:.4g} m corner to corner: is it in metres? `scale = 0.001` makes m of mm"
        )
    eps = _distances(config, diagonal, source)

    builder = ModelBuilder()
    mesh_ids: dict[str, int] = {}
    for body in placed:
        if body.mesh.hash not in mesh_ids:
            mesh_ids[body.mesh.hash] = builder.add_mesh(body.mesh.nodes, body.mesh.triangles)
        builder.add_body(
            mesh_ids[body.mesh.hash],
            position=body.pose[0].tolist(),
            orientation=body.pose[1].tolist(),
            friction_static=body.config.friction_static,
            friction_kinetic=body.config.friction_kinetic,
            kind=HELD if body.config.motion == "held" else STATIC,
        )
    try:
        model = builder.build(config.tool.tip_radius, config.tool.tip_offset, **eps)
    except ValueError as error:
        raise ConfigError(source, [f"scene: {error}"]) from None
    gap = _check_start(config, model, placed, eps, notes)
    budget = np.zeros(1, dtype=BUDGET)
    for key in ("units", "passes", "sweeps"):
        budget[key] = getattr(config.budget, key)
    for key, unit in (("stiffness", "N/m"), ("damping", "N·s/m")):
        wanted, given = getattr(config.coupling, key), float(settings[key][0])
        if given < wanted:
            notes.append(f"coupling {key} {wanted:g} {unit} was capped at {given:g} by the card of {card.name!r}")
    return Assembly(
        config=config,
        card=card,
        model=model,
        settings=settings,
        budget=budget,
        mesh_hashes={body.name: body.mesh.hash for body in placed},
        body_names=[body.name for body in placed],
        start=config.tool.start,
        base_directory=base_directory,
        triangle_count=sum(len(body.mesh.faces) for body in placed),
        eps=eps,
        clearance=gap,
        notes=notes,
    )


def place_bodies(
    config: Config, base_directory: str | Path, progress: Progress | None = None
) -> tuple[list[PlacedMesh], list[str]]:
    """Import every body of a scene; a robot gives one for each link that has a shape, called ``name/link``.

    Returns:
        The bodies in the order of the configuration, and notes, each beginning with the body's name.

    Raises:
        SceneError: naming the body.
    """
    placed: list[PlacedMesh] = []
    notes: list[str] = []
    bodies = config.scene.bodies
    for index, body in enumerate(bodies):
        if progress is not None:
            progress(f"import {body.name}", index, len(bodies))
        try:
            parts, told = _parts(body, Path(base_directory))
            notes += [f"{body.name}: {note}" for note in told]
            for name, pose, sources in parts:
                mesh = prepare(sources)
                notes += [f"{name}: {note}" for note in mesh.notes]
                placed.append(PlacedMesh(name, body, pose, mesh))
        except SceneError as error:
            raise type(error)(f"body {body.name!r}: {error}") from None
    if progress is not None:
        progress("import", len(bodies), len(bodies))
    return placed, notes


def robot_of(body: Body, base_directory: Path) -> Robot:
    """The robot that a body with `urdf` stands for.

    Raises:
        SceneError: as :func:`bridge.scene.robots.read_robot`.
    """
    if body.urdf is None or isinstance(body.scale, tuple):
        raise ValueError(f"body {body.name!r} is no robot")
    return read_robot(resolve(body.urdf, base_directory), body.joints, body.scale)


def _parts(body: Body, base_directory: Path) -> tuple[list[tuple[str, Pose, list[Source]]], list[str]]:
    """Name, pose and sources of each body that one entry of the configuration stands for, and the importer's notes."""
    pose = (np.array(body.pose.position), np.array(body.pose.orientation))
    if body.urdf is not None:
        robot = robot_of(body, base_directory)
        touched = [link for link in robot.links if link.sources]
        return [(f"{body.name}/{link.name}", compose(pose, link.pose), link.sources) for link in touched], robot.notes
    scale = body.scale if isinstance(body.scale, tuple) else (body.scale,) * 3
    if body.mesh is not None:
        path = resolve(body.mesh, base_directory)
        source = Source(str(path), path.suffix.lower(), read_bytes(path), subdivisions=body.subdivisions, scale=scale)
    else:
        source = Source(
            body.primitive or "",
            body.primitive or "",
            size=body.size or (),
            subdivisions=body.subdivisions,
            scale=scale,
        )
    return [(body.name, pose, [source])], []


def _settings(config: Config, card: DeviceCard, source: str) -> np.ndarray:
    coupling, safety, workspace = config.coupling, config.safety, config.workspace
    try:
        return make_settings(
            card,
            tick_hz=config.rates.tick_hz,
            stiffness=coupling.stiffness,
            damping=coupling.damping,
            scale=workspace.scale,
            workspace_position=workspace.pose.position,
            workspace_orientation=workspace.pose.orientation,
            ramp_up_ms=coupling.ramp_up_ms,
            ramp_down_ms=coupling.ramp_down_ms,
            ramp_fault_ms=coupling.ramp_fault_ms,
            hold_after_ms=safety.hold_after_ms,
            stale_after_ms=safety.stale_after_ms,
            lease_ms=safety.lease_ms,
            valid_for_ms=coupling.valid_for_ms,
            velocity_window_ms=coupling.velocity_window_ms,
            engage_distance=safety.engage_distance,
            jump_margin=safety.jump_margin,
            require_deadman=safety.require_deadman,
        )
    except ValueError as error:
        raise ConfigError(source, [str(error)]) from None


def _distances(config: Config, diagonal: float, source: str) -> dict[str, float]:
    given = {key: getattr(config.scene, key) for key in EPS_SHARES}
    eps = {key: share * diagonal if given[key] is None else given[key] for key, share in EPS_SHARES.items()}
    for low, high in itertools.pairwise(EPS_SHARES):
        if eps[low] >= eps[high]:
            said = [f"{key} = {eps[key]:.4g}" + (" (default)" if given[key] is None else "") for key in (low, high)]
            raise ConfigError(source, [f"scene.{high}: must be greater than {low}, but {', '.join(said)}"])
    return eps


def _check_start(
    config: Config, model: Model, placed: list[PlacedMesh], eps: dict[str, float], notes: list[str]
) -> float:
    """Gap between the tip at its start and the nearest surface, m; SceneError when it is too small."""
    start = np.array(config.tool.start)
    state = make_state(model, config.tool.start)
    radius = config.tool.tip_radius
    distance = float(clearance(model, state, start))
    needed = radius + eps["eps_safety"]
    if distance < needed:
        single = [
            float(
                clearance(
                    model._replace(bodies=model.bodies[i : i + 1]), state._replace(poses=state.poses[i : i + 1]), start
                )
            )
            for i in range(len(placed))
        ]
        nearest = int(np.argmin(single))
        raise SceneError(
            f"tool.start {list(config.tool.start)} is not free: the tip centre is {single[nearest]:.4g} m from the "
            f"surface of {placed[nearest].name!r}, and needs {needed:.4g} m (tip_radius {radius:g} + eps_safety "
            f"{eps['eps_safety']:.4g}); move it away by at least {needed - single[nearest]:.4g} m"
        )
    for body in placed:
        local = Rotation.from_quat(body.pose[1]).apply(start - body.pose[0], inverse=True)
        if abs(winding_number(local, body.mesh.vertices, body.mesh.faces)) > 0.5:
            notes.append(f"{body.name}: the tool starts inside it and will stay inside")
    return distance - radius
