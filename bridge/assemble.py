"""From a configuration to everything the servo needs: model, settings, budget, names."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from bridge.config import FRACTIONS, ROUNDED, Body, Config, ConfigError, Coupling, Fixture, Shape, Surface
from bridge.movers import check_apart, check_velocities, free_inertia, rest_speed, tool_inertia
from bridge.scene.cache import PreparedMesh, prepare
from bridge.scene.errors import SceneError
from bridge.scene.frames import Pose, compose, place
from bridge.scene.mesh import read_bytes
from bridge.scene.paths import resolve
from bridge.scene.robots import Robot, read_robot
from bridge.scene.sources import Source
from bridge.start import BOUND_SHARE, Start, Trouble, overlapping
from haptics.cards import DeviceCard, load_card
from haptics.certified import lowest_limit, rows_for
from haptics.fixtures import FIXTURES, FORBIDDEN, make_fixture, set_fixtures
from haptics.link_settings import make_link
from haptics.pattern import PATTERNS, SMOOTH
from haptics.regions import REGIONS, make_region, set_regions
from haptics.settings import make_settings
from haptics.sphere import leave_room
from haptics.surfaces import make_surface, put_surface
from rtcore.model import Model, ModelBuilder
from rtcore.tables import BUDGET, FREE, HELD, KINEMATIC, STATIC

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many are done, and how many there are."""

EPS_SHARES = {"eps_alert": 0.0044 / 50.0, "eps_safety": 0.010 / 50.0, "eps_break": 0.023 / 50.0}
"""Default distances as shares of the scene's box diagonal (Redon 2002: 0.0044, 0.010, 0.023 for a 50-unit scene)."""

LEAST_ARM = 0.01
"""Of a tool that no spring turns, as a share of its size: what turns it then has the effect of a pull on that arm."""

KINDS = {"static": STATIC, "held": HELD, "free": FREE, "kinematic": KINEMATIC}
"""Of bodies, by what the configuration calls their motion."""

GAINS = (*FRACTIONS, *(f"{key}_fraction" for key in FRACTIONS), "virtual_sphere", "sphere_radius")
"""Keys of the coupling that are about what a hand feels."""

ADDRESSES = {"connect", "server_key", "keys"}
"""Keys of a link that say where its other end is; all others say how this end behaves."""

TOOL = "[tool]"
"""Name of the tool among meshes; no body can have it."""

SHOWN_PAIRS = 5
"""Overlapping bodies that a note names."""

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
    """Of a ball or capsule its core: the point or segment that it is rounded about"""

    @property
    def rounding(self) -> float:
        """The surface is so far round the mesh, m; 0: it is the mesh."""
        return self.config.rounding

    def box(self) -> np.ndarray:
        """(2, 3) lower and upper corner of its surface in the scene, m."""
        points = place(self.pose, self.mesh.vertices[np.unique(self.mesh.faces)])
        return np.array([points.min(axis=0) - self.rounding, points.max(axis=0) + self.rounding])


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
    """Content hash of each body's triangles, by body name, and of a tool mesh's, by TOOL."""
    body_names: list[str]
    """By body_id."""
    start: tuple[float, float, float]
    """Tip centre at start, scene, m."""
    start_orientation: tuple[float, float, float, float]
    """Tool -> scene at start, xyzw."""
    base_directory: Path
    """What relative paths in the configuration are relative to."""
    triangle_count: int
    """Of all bodies; a mesh that several show counts each time. Balls and capsules have none."""
    eps: dict[str, float]
    """eps_alert, eps_safety, eps_break in force, m."""
    clearance: float
    """From the tool (tip sphere or mesh) at start to the nearest surface, m."""
    notes: list[str] = field(default_factory=list)
    """What import and assembly had to decide, one sentence each."""


def assemble(
    config: Config,
    base_directory: str | Path,
    progress: Progress | None = None,
    *,
    source: str = "configuration",
    resolve: bool = False,
) -> Assembly:
    """Import the scene, build the model and the tables beside it, and check that the tool can start.

    Args:
        base_directory: folder of the configuration file.
        progress: told about every body.
        source: what errors call the configuration; its path, where there is one.
        resolve: move a start that is not free by the shortest translation found that makes it so, and note that.

    Raises:
        ConfigError: values that do not go together once the scene or the device card is known.
        SceneError: a mesh or robot that cannot be used, or a start that is not free; the text names the body.
        haptics.cards.CardError: the device card.
    """
    base_directory = Path(base_directory)
    card = load_card(config.device.card, base_directory)
    settings = _settings(config, card, source)
    surface_ids = _effects(config, settings, source)
    placed, notes = place_bodies(config, base_directory, progress)
    boxes = np.array([body.box() for body in placed])
    diagonal = float(np.linalg.norm(boxes[:, 1].max(axis=0) - boxes[:, 0].min(axis=0)))
    if not SMALL_SCENE <= diagonal <= LARGE_SCENE:
        notes.append(
            f"the scene measures {diagonal:.4g} m corner to corner: is it in metres? `scale = 0.001` makes m of mm"
        )
    eps = _distances(config, diagonal, source)
    dt = float(settings["dt"][0])
    check_velocities(config.scene, eps["eps_alert"], dt, source)

    builder = ModelBuilder()
    mesh_ids: dict[str, int] = {}
    slowest = rest_speed(config.scene.gravity, dt)
    for body in placed:
        if body.mesh.hash not in mesh_ids:
            mesh_ids[body.mesh.hash] = builder.add_mesh(body.mesh.nodes, body.mesh.triangles)
        builder.add_body(
            mesh_ids[body.mesh.hash],
            position=body.pose[0].tolist(),
            orientation=body.pose[1].tolist(),
            friction_static=body.config.friction_static,
            friction_kinetic=body.config.friction_kinetic,
            kind=KINDS[body.config.motion],
            inertia=free_inertia(body, slowest) if body.config.motion == "free" else None,
            restitution=body.config.restitution,
            rest_speed=slowest,
            torsional_friction=body.config.torsional_friction,
            rolling_friction=body.config.rolling_friction,
            velocity=(*body.config.velocity, *body.config.angular_velocity),
            rounding=body.rounding,
            surface_id=surface_ids.get(body.config.surface, 0),
        )
    tool = tool_mesh(config, base_directory, notes)
    if tool is None:
        tool_mesh_id = -1
    elif tool.hash in mesh_ids:
        tool_mesh_id = mesh_ids[tool.hash]
    else:
        tool_mesh_id = builder.add_mesh(tool.nodes, tool.triangles)
    if tool is not None:
        settings["tool_reach"] = np.linalg.norm(tool.vertices[np.unique(tool.faces)], axis=1).max()
    try:
        leave_room(settings, float(np.linalg.norm(config.tool.tip_offset) + settings["tool_reach"][0]))
    except ValueError as error:
        raise ConfigError(source, [f"coupling.{error}"]) from None
    _link(config, card, settings, source)
    heavy = None if tool is None or config.tool.mass == 0.0 else tool_inertia(tool, config.tool.mass)
    radius = config.tool.tip_radius if tool is None else 0.0
    try:
        turning = 0.0
        if tool is not None and config.tool.motion == "sliding":
            turning = (LEAST_ARM * float(settings["tool_reach"][0])) ** 2
        model = builder.build(
            radius,
            config.tool.tip_offset,
            eps["eps_alert"],
            eps["eps_safety"],
            eps["eps_break"],
            tool_mesh_id=tool_mesh_id,
            turning=turning,
            dt=dt,
            gravity=config.scene.gravity,
            tool_inertia=heavy,
        )
    except ValueError as error:
        raise ConfigError(source, [f"scene: {error}"]) from None
    check_apart(model, placed, eps)
    start = Start(model, placed, tool, config.tool.start_orientation, eps["eps_safety"])
    if resolve:
        config = _resolved(config, start, notes)
    gap = _check_start(config, start, placed, notes)
    notes += _overlaps(model, placed)
    budget = np.zeros(1, dtype=BUDGET)
    for key in ("units", "passes", "sweeps", "visits"):
        budget[key] = getattr(config.budget, key)
    for key, unit in (("stiffness", "N/m"), ("damping", "N·s/m"), ("rotational_stiffness", "N·m/rad")):
        wanted, given = _gain(config.coupling, card, key, source), float(settings[key][0])
        if given < wanted:
            what = key.replace("_", " ")
            rooms = {"the virtual sphere": settings["sphere"], "reliefs of surfaces": settings["surfaces"]["height"]}
            taken = [name for name, room in rooms.items() if room.any()]
            why = f"to leave room for {' and '.join(taken)} under" if taken else "by"
            notes.append(f"coupling {what} {wanted:g} {unit} was capped at {given:g} {why} the card of {card.name!r}")
    notes += _beyond_certified(config, card, settings)
    return Assembly(
        config=config,
        card=card,
        model=model,
        settings=settings,
        budget=budget,
        mesh_hashes={body.name: body.mesh.hash for body in placed} | ({} if tool is None else {TOOL: tool.hash}),
        body_names=[body.name for body in placed],
        start=config.tool.start,
        start_orientation=config.tool.start_orientation,
        base_directory=base_directory,
        triangle_count=sum(len(body.mesh.faces) for body in placed if body.rounding == 0.0),
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
    return [(body.name, pose, [_source(body, base_directory)])], []


def _source(shape: Shape, base_directory: Path) -> Source:
    """The triangles that a shape with `mesh` or `primitive` stands for, in its own frame; of a rounded one its core."""
    scale = shape.scale if isinstance(shape.scale, tuple) else (shape.scale,) * 3
    if shape.mesh is not None:
        path = resolve(shape.mesh, base_directory)
        return Source(str(path), path.suffix.lower(), read_bytes(path), subdivisions=shape.subdivisions, scale=scale)
    if shape.primitive in ROUNDED:
        length = (shape.size or ())[1:]
        return Source(shape.primitive, "segment" if length else "point", size=length)
    return Source(
        shape.primitive or "",
        shape.primitive or "",
        size=shape.size or (),
        subdivisions=shape.subdivisions,
        scale=scale,
    )


def tool_mesh(config: Config, base_directory: Path, notes: list[str]) -> PreparedMesh | None:
    """The tool's mesh, its frame at the tip centre; None for a sphere tip.

    Raises:
        SceneError: naming the tool.
    """
    tool = config.tool
    if not tool.whole:
        return None
    x, y, z = (at - tip for at, tip in zip(tool.pose.position, tool.tip_offset, strict=True))
    try:
        source = replace(_source(tool, base_directory), position=(x, y, z), orientation=tool.pose.orientation)
        mesh = prepare([source])
    except SceneError as error:
        raise type(error)(f"tool: {error}") from None
    notes += [f"tool: {note}" for note in mesh.notes]
    return mesh


def _settings(config: Config, card: DeviceCard, source: str) -> np.ndarray:
    coupling, safety, workspace = config.coupling, config.safety, config.workspace
    asked = [key for key in GAINS if key in coupling.model_fields_set]
    if card.input_only and asked:
        raise ConfigError(
            source,
            [f"coupling.{asked[0]}: must be left out, as the device card {card.name!r} is input only: nothing is felt"],
        )
    gains = {key: _gain(coupling, card, key, source) for key in FRACTIONS}
    try:
        return make_settings(
            card,
            tick_hz=config.rates.tick_hz,
            **gains,
            virtual_sphere=coupling.virtual_sphere,
            sphere_radius=coupling.sphere_radius,
            law=coupling.law,
            world_stiffness=coupling.world_stiffness,
            world_damping=coupling.world_damping,
            passivity=coupling.passivity,
            rate_adaptation=coupling.rate_adaptation,
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
            velocity=coupling.velocity,
            engage_distance=safety.engage_distance,
            jump_margin=safety.jump_margin,
            require_deadman=safety.require_deadman,
            workspace_centre=workspace.centre,
            workspace_limits=workspace.limits,
            drift=workspace.drift,
        )
    except ValueError as error:
        raise ConfigError(source, [str(error)]) from None


def _effects(config: Config, settings: np.ndarray, source: str) -> dict[Surface, int]:
    """Put surfaces, regions and fixtures into (1,) SETTINGS; returns the surface_id of each surface that is felt."""
    ids: dict[Surface, int] = {}
    for k, body in enumerate(config.scene.bodies):
        surface = body.surface
        if surface == Surface() or surface in ids:
            continue
        try:
            felt = make_surface(
                stiffness=surface.stiffness,
                damping=surface.damping,
                drag=surface.drag,
                pattern=PATTERNS.get(surface.pattern, SMOOTH),
                height=surface.height,
                wavelength=surface.wavelength,
                direction=surface.direction,
                seed=surface.seed,
                friction_variation=surface.friction_variation,
                burst=surface.burst,
                burst_frequency=surface.burst_frequency,
                burst_decay_s=1e-3 * surface.burst_decay_ms,
            )
            ids[surface] = put_surface(settings, felt)
        except ValueError as error:
            raise ConfigError(source, [f"scene.body[{k}] ({body.name!r}).surface.{error}"]) from None
    regions = [
        make_region(REGIONS[each.kind], each.position, each.reach, each.strength, each.arm)
        for each in config.scene.regions
    ]
    try:
        set_regions(settings, regions)
    except ValueError as error:
        raise ConfigError(source, [f"scene.region{error}"]) from None
    try:
        set_fixtures(settings, [_fixture(each) for each in config.scene.fixtures])
    except ValueError as error:
        raise ConfigError(source, [f"scene.fixture{error}"]) from None
    return ids


def _link(config: Config, card: DeviceCard, settings: np.ndarray, source: str) -> None:
    """Put this end of a link into (1,) SETTINGS; without ``[link]`` it stays off."""
    if config.link is None:
        return
    given = config.link.model_dump(exclude=ADDRESSES, exclude_none=True)
    try:
        settings["link"] = make_link(settings, rotational_stiffness_max=card.rotational_stiffness_max, **given)
    except ValueError as error:
        raise ConfigError(source, [f"link.{error}"]) from None


def _fixture(given: Fixture) -> np.ndarray:
    """(1,) FIXTURE of a table of the configuration, which has all that its kind needs."""
    return make_fixture(
        (FIXTURES | FORBIDDEN)[given.form],
        given.position,
        direction=given.direction or (0.0, 0.0, 1.0),
        radius=given.radius or 0.0,
        angle=math.radians(given.angle_deg or 0.0),
        half=[0.5 * edge for edge in given.size or (0.0, 0.0, 0.0)],
        orientation=given.orientation or (0.0, 0.0, 0.0, 1.0),
        stiffness=given.stiffness or 0.0,
        strength=given.strength or 0.0,
    )


def _beyond_certified(config: Config, card: DeviceCard, settings: np.ndarray) -> list[str]:
    """A note where the gains are beyond what the card's rows say is stable with nobody's hand on the device."""
    stiffness, late = float(settings["stiffness"][0]), int(config.rates.clocking == "free")
    damping = float(settings["damping"][0])
    rows = rows_for(
        card.certified,
        hand="none",
        delay_ticks=late,
        passivity=config.coupling.passivity,
        rate=config.rates.tick_hz,
    )
    limit = lowest_limit(rows, damping)
    if limit is None and rows:
        tried = f"{min(row.damping[0] for row in rows):g} to {max(row.damping[-1] for row in rows):g} N·s/m"
        return [
            f"coupling damping {damping:g} N·s/m is outside of the {tried} for which the card of {card.name!r} is "
            f"certified with no hand on the device, at {config.rates.clocking} clocking: keep it in hand"
        ]
    if limit is None or stiffness <= limit:
        return []
    return [
        f"coupling stiffness {stiffness:g} N/m is above the {limit:g} N/m up to which the card of {card.name!r} is "
        f"certified with no hand on the device, at {config.rates.clocking} clocking: keep it in hand, or go down"
    ]


def _gain(coupling: Coupling, card: DeviceCard, key: str, source: str) -> float:
    """A gain in SI, where it is given as a share of what the card allows as well."""
    share = getattr(coupling, f"{key}_fraction")
    if share is None:
        return float(getattr(coupling, key))
    largest = getattr(card, f"{key}_max")
    if largest is None:
        raise ConfigError(
            source,
            [
                f"coupling.{key}_fraction: the device card {card.name!r} has no {key}_max to take {share:g} of; "
                f"give {key} in SI units"
            ],
        )
    return float(share * largest)


def _distances(config: Config, diagonal: float, source: str) -> dict[str, float]:
    given = {key: getattr(config.scene, key) for key in EPS_SHARES}
    eps = {key: share * diagonal if given[key] is None else given[key] for key, share in EPS_SHARES.items()}
    for low, high in itertools.pairwise(EPS_SHARES):
        if eps[low] >= eps[high]:
            said = [f"{key} = {eps[key]:.4g}" + (" (default)" if given[key] is None else "") for key in (low, high)]
            raise ConfigError(source, [f"scene.{high}: must be greater than {low}, but {', '.join(said)}"])
    return eps


def _check_start(config: Config, start: Start, placed: list[PlacedMesh], notes: list[str]) -> float:
    """Gap between the tool at its start and the nearest surface, m; SceneError when it is too small."""
    position = np.array(config.tool.start)
    if config.tool.whole:
        troubles = start.troubles(position)
        if troubles:
            raise SceneError(_refusal(config, start, placed, troubles))
    gaps = [start.gap(i, position, np.inf)[0] for i in range(len(placed))]
    nearest = int(np.argmin(gaps))
    radius = config.tool.tip_radius
    if gaps[nearest] < start.needed:
        needed = radius + start.needed
        distance = gaps[nearest] + radius
        raise SceneError(
            f"tool.start {list(config.tool.start)} is not free: the tip centre is {distance:.4g} m from the "
            f"surface of {placed[nearest].name!r}, and needs {needed:.4g} m (tip_radius {radius:g} + eps_safety "
            f"{start.needed:.4g}); move it away by at least {needed - distance:.4g} m, or let --resolve do it"
        )
    for body_id, body in enumerate(placed):
        if abs(start.winding(body_id, position)) > 0.5:
            notes.append(f"{body.name}: the tool starts inside it and will stay inside")
    return gaps[nearest]


def _refusal(config: Config, start: Start, placed: list[PlacedMesh], troubles: list[Trouble]) -> str:
    """One sentence about all bodies that a tool mesh at its start is too near to, or in."""
    position = np.array(config.tool.start)
    said = []
    for trouble in troubles:
        name = repr(placed[trouble.body_id].name)
        if trouble.kind == "near":
            said.append(f"it is {trouble.gap:.4g} m from {name}, nearer than eps_safety {start.needed:.4g} m")
            continue
        depth = start.depth(trouble, position)
        deep = "depth unknown" if depth is None else f"{depth:.4g} m deep"
        what = {"crosses": f"it penetrates {name}", "inside": f"it is wholly inside {name}"}
        said.append(f"{what.get(trouble.kind, f'{name} is wholly inside it')} ({deep})")
    return (
        f"tool.start {list(config.tool.start)} is not free for the tool's mesh: {'; '.join(said)} (depth: the shortest "
        "translation found that parts the two); move it, or let --resolve do it"
    )


def _resolved(config: Config, start: Start, notes: list[str]) -> Config:
    """The configuration with a start that is free; SceneError when no short translation makes it so."""
    position = np.array(config.tool.start)
    bound = BOUND_SHARE * start.scene_diagonal
    way = start.way_out(position, bound)
    if way is None:
        raise SceneError(
            f"tool.start {list(config.tool.start)} is not free, and no translation up to {bound:.4g} m (half the "
            "diagonal of the scene) was found that makes it so; move it, or turn the tool by start_orientation"
        )
    if not np.any(way):
        notes.append("tool.start is free as it is; nothing was moved")
        return config
    moved = tuple((position + way).tolist())
    length = float(np.linalg.norm(way))
    notes.append(
        f"tool.start was moved by {length:.4g} m, from {list(config.tool.start)} to {list(moved)}, to be free of all "
        "bodies"
    )
    return config.model_copy(update={"tool": config.tool.model_copy(update={"start": moved})})


def _overlaps(model: Model, placed: list[PlacedMesh]) -> list[str]:
    """A note about bodies that are in one another."""
    pairs, cut = overlapping(model, placed)
    if not pairs:
        return []
    shown = ", ".join(f"{a!r} and {b!r}" for a, b in pairs[:SHOWN_PAIRS])
    more = f" and {len(pairs) - SHOWN_PAIRS} more" if len(pairs) > SHOWN_PAIRS else ""
    looked = "; not all pairs were looked at" if cut else ""
    return [
        f"{len(pairs)} pair(s) of bodies overlap each other, which is allowed, as they do not move: "
        f"{shown}{more}{looked}"
    ]
