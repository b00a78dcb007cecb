"""Bodies that move: their inertias from the configuration, and whether they start apart from what they may meet."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bridge.config import LARGEST_MASS, LEAST_MASS, ConfigError, Scene
from bridge.scene.errors import SceneError
from bridge.scene.rounded import capsule_mass
from bridge.start import Start, Trouble
from rtcore.dynamics.inertia import REST_SPEED, body_inertia
from rtcore.geometry.mass import MassProperties, mass_properties
from rtcore.model import ALERT_RESOLUTION, Model

if TYPE_CHECKING:
    from bridge.assemble import PlacedMesh
    from bridge.scene.cache import PreparedMesh

SHOWN_PAIRS = 3
"""Pairs that start too near which a refusal names, each with the way out."""

Vector = Sequence[float]


def rest_speed(gravity: Vector, dt: float) -> float:
    """Speed of approach from which bodies bounce, m/s: twice what gravity (m/s2) adds in a tick (s), or more."""
    return max(REST_SPEED, 2.0 * math.hypot(*gravity) * dt)


def free_inertia(body: "PlacedMesh", least_bounce: float) -> np.void:
    """BODY_INERTIA of a free body; least_bounce: its rest speed, m/s.

    Raises:
        SceneError: naming the body, for a mesh that is no closed solid and has no inertia given, and one too thin.
    """
    config = body.config
    tensor = config.inertia_tensor
    if tensor is not None and config.mass is not None and config.centre_of_mass is not None:
        mass, centre = config.mass, np.array(config.centre_of_mass)
    else:
        try:
            solid = solid_of(body)
        except ValueError as error:
            raise SceneError(
                f"body {body.name!r} has no inertia to move freely with: {error}; close the mesh, or give `mass`, "
                "`centre_of_mass` and `inertia`"
            ) from None
        mass, centre, tensor = solid.mass, solid.centre, solid.inertia
    try:
        return body_inertia(
            mass,
            tensor,
            centre.tolist(),
            linear_drag=config.linear_drag,
            angular_drag=config.angular_drag,
            restitution=config.restitution,
            rest_speed=least_bounce,
        )
    except ValueError as error:
        raise SceneError(f"body {body.name!r} has no inertia to move freely with: {error}") from None


def tool_inertia(mesh: "PreparedMesh", mass: float) -> np.void:
    """BODY_INERTIA of a tool of a mass (kg): that of its homogeneous solid about the tip centre, the mesh's origin.

    Raises:
        SceneError: for a mesh that is no closed solid.
    """
    try:
        solid = _solid(mesh, mass, 1.0)
        c = solid.centre
        return body_inertia(mass, solid.inertia + mass * (c @ c * np.eye(3) - np.outer(c, c)))
    except ValueError as error:
        raise SceneError(
            f"tool: has no inertia that its mass could have: {error}; close the mesh, or set mass = 0"
        ) from None


def solid_of(body: "PlacedMesh") -> MassProperties:
    """The homogeneous solid that a body is, with its mass where that is given, else its density; frame of the mesh.

    Raises:
        ValueError: for a mesh that is no closed solid, or a mass beyond what can be moved.
    """
    config = body.config
    if body.rounding > 0.0:
        length = float(np.ptp(body.mesh.vertices[:, 2]))
        density = config.density if config.mass is None else 1.0
        return _with_mass(capsule_mass(body.rounding, length, density), config.mass)
    return _solid(body.mesh, config.mass, config.density)


def _solid(mesh: "PreparedMesh", mass: float | None, density: float) -> MassProperties:
    """Of the homogeneous solid that a mesh encloses: of a mass (kg) where there is one, else of a density (kg/m3)."""
    return _with_mass(mass_properties(mesh.vertices, mesh.faces, density), mass)


def _with_mass(solid: MassProperties, mass: float | None) -> MassProperties:
    """The same solid with a mass (kg), or with its own where that is None."""
    if mass is None:
        mass = solid.mass
    if not LEAST_MASS <= mass <= LARGEST_MASS:
        raise ValueError(f"its mass would be {mass:.4g} kg, not within {LEAST_MASS:g} to {LARGEST_MASS:g} kg")
    return MassProperties(solid.volume, mass, solid.centre, solid.inertia * (mass / solid.mass))


def check_velocities(scene: Scene, eps_alert: float, dt: float, source: str) -> None:
    """ConfigError unless every given velocity, and gravity, is one that a tick of dt (s) can show; eps_alert: m.

    A motion within a tick is a screw of half a turn at most, and its length must leave eps_alert digits to be told by.
    """
    farthest = eps_alert / ALERT_RESOLUTION
    problems = []
    fall = math.hypot(*scene.gravity) * dt * dt
    if not fall <= farthest:
        problems.append(
            f"scene.gravity: moves a body by {fall:.4g} m in its first tick of {dt:g} s, and must not by more than "
            f"{farthest:.4g} m (eps_alert {eps_alert:.4g} m, times {1.0 / ALERT_RESOLUTION:g}); given "
            f"{list(scene.gravity)}"
        )
    for index, body in enumerate(scene.bodies):
        key = f"scene.body[{index}] ({body.name!r})"
        way, turn = math.hypot(*body.velocity) * dt, math.hypot(*body.angular_velocity) * dt
        if not way <= farthest:
            problems.append(
                f"{key}.velocity: is {way:.4g} m in a tick of {dt:g} s, and must be at most {farthest:.4g} m "
                f"(eps_alert {eps_alert:.4g} m, times {1.0 / ALERT_RESOLUTION:g}); given {list(body.velocity)}"
            )
        if not turn <= math.pi:
            problems.append(
                f"{key}.angular_velocity: is {turn:.4g} rad in a tick of {dt:g} s, and must be at most half a turn; "
                f"given {list(body.angular_velocity)}"
            )
    if problems:
        raise ConfigError(source, problems)


def check_apart(model: Model, placed: "Sequence[PlacedMesh]", eps: dict[str, float]) -> None:
    """SceneError where bodies, at least one of which moves, start nearer than eps_alert, or inside one another.

    A gap between eps_alert and eps_safety is opened by the tick itself.
    """
    found = [pair for i, body in enumerate(placed) if body.config.moves for pair in _too_near(model, placed, i, eps)]
    if not found:
        return
    said = [_sentence(placed, eps, *pair) for pair in found[:SHOWN_PAIRS]]
    more = f"; and {len(found) - SHOWN_PAIRS} more pair(s)" if len(found) > SHOWN_PAIRS else ""
    raise SceneError(
        f"bodies that move must start at least eps_alert ({eps['eps_alert']:.4g} m) from all others: "
        f"{'; '.join(said)}{more}"
    )


def _too_near(
    model: Model, placed: "Sequence[PlacedMesh]", mover: int, eps: dict[str, float]
) -> list[tuple[int, Trouble, Start]]:
    """What a body that moves starts too near to: (its own number, trouble, itself as a tool among the others)."""
    boxes = np.array([body.box() for body in placed])
    low, high = boxes[mover, 0] - eps["eps_safety"], boxes[mover, 1] + eps["eps_safety"]
    near = np.flatnonzero(np.all((boxes[:, 0] <= high) & (boxes[:, 1] >= low), axis=1)).tolist()
    others = [other for other in near if other > mover or not placed[other].config.moves]
    if not others:
        return []
    world = model.world.copy()
    world["tool_mesh_id"] = model.bodies["mesh_id"][mover]
    body = placed[mover]
    turn = body.pose[1].tolist()
    start = Start(model._replace(world=world), placed, body.mesh, turn, eps["eps_alert"], body.rounding)
    troubles = (start.trouble(other, body.pose[0]) for other in others)
    return [(mover, trouble, start) for trouble in troubles if trouble is not None]


def _sentence(placed: "Sequence[PlacedMesh]", eps: dict[str, float], mover: int, trouble: Trouble, start: Start) -> str:
    one, two = repr(placed[mover].name), repr(placed[trouble.body_id].name)
    what = {
        "near": f"{one} is {trouble.gap:.4g} m from {two}",
        "crosses": f"{one} penetrates {two}",
        "inside": f"{one} is wholly inside {two}",
        "around": f"{two} is wholly inside {one}",
    }[trouble.kind]
    way = start.parting(trouble, placed[mover].pose[0], eps["eps_safety"])
    if way is None:
        return f"{what}, and no way out was found"
    # So many digits that whoever follows it stays between the two distances.
    digits = math.ceil(-math.log10(0.1 * (eps["eps_safety"] - eps["eps_alert"])))
    moved = ", ".join(f"{round(x, digits):.12g}" for x in way.tolist())
    return f"{what}; move {one} by {np.linalg.norm(way):.4g} m, such as [{moved}]"
