"""Configuration: TOML validated by pydantic. Unknown keys are errors; paths are relative to the file."""

import difflib
import ipaddress
import itertools
import json
import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from bridge.config_problems import problems_of
from haptics.toml_text import MAX_BYTES, parse_toml
from rtcore.dynamics.inertia import body_inertia

MAX_FILE_BYTES = MAX_BYTES
"""A larger configuration file is surely not one."""

QUATERNION_TOLERANCE = 1e-3
"""Farthest a given quaternion's norm may be from 1; nearer ones are normalised."""

SIZES: dict[str, tuple[int, str]] = {
    "box": (3, "x, y and z edge lengths"),
    "plate": (3, "x, y and z edge lengths"),
    "sphere": (1, "the radius"),
    "cylinder": (2, "radius and length"),
    "plane": (2, "x and y edge lengths"),
    "ball": (1, "the radius"),
    "capsule": (2, "radius and length"),
}
"""How many numbers `size` takes for each primitive, and which."""

ROUNDED = ("ball", "capsule")
"""Primitives that are exact: a point or a segment with a radius, and no triangles."""

LEAST_MASS, LARGEST_MASS = 1e-30, 1e30
"""kg; squares of these, and of their inverses, are far from the ends of double precision."""

LEAST_GYRATION, LARGEST_GYRATION = 1e-15, 1e15
"""m, in the same sense."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")

_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,255}")
"""A name or an IP address, of another machine."""


class ConfigError(ValueError):
    """A configuration that cannot be used.

    The text names the file, each key, the value given and what would be right; ``problems`` holds one entry per line.
    """

    def __init__(self, source: str, problems: list[str]) -> None:
        self.source = source
        self.problems = problems
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems))


def _wrong(key: str, value: object, right: str) -> PydanticCustomError:
    """A cross-check's finding about one key of the section at hand."""
    return PydanticCustomError("cross_check", "{right}", {"key": key, "value": value, "right": right})


def _unit(quaternion: "Quaternion") -> "Quaternion":
    norm = math.sqrt(sum(c * c for c in quaternion))
    if abs(norm - 1.0) > QUATERNION_TOLERANCE:
        raise PydanticCustomError(
            "not_unit",
            "must be a unit quaternion [x, y, z, w] (norm within 1e-3 of 1; its norm is {norm})",
            {"norm": f"{norm:.6g}"},
        )
    x, y, z, w = (c / norm for c in quaternion)
    return (x, y, z, w)


def _numbers_of_inertia(value: object, check: ValidatorFunctionWrapHandler) -> "Inertia | None":
    try:
        return check(_tuples(value))
    except ValidationError:
        raise PydanticCustomError(
            "not_inertia", "must be three principal moments or three rows of three numbers, in kg·m2"
        ) from None


def _tuples(value: object) -> object:
    """Arrays as strict validation wants them of a function."""
    return tuple(_tuples(entry) for entry in value) if isinstance(value, list) else value


def _check_mass(mass: float) -> None:
    if 0.0 < mass < LEAST_MASS:
        raise _wrong("mass", mass, f"must be at least {LEAST_MASS:g} kg")


Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
Inertia = Vector3 | tuple[Vector3, Vector3, Vector3]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
NOWHERE: Vector3 = (0.0, 0.0, 0.0)


class Section(BaseModel):
    """What all sections share: no unknown keys, no infinities, read-only after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class Pose(Section):
    """Where something stands: its coordinates -> the scene frame."""

    position: Vector3 = (0.0, 0.0, 0.0)
    """m"""
    orientation: Annotated[Quaternion, AfterValidator(_unit)] = (0.0, 0.0, 0.0, 1.0)
    """[x, y, z, w]; normalised, norm within 1e-3 of 1"""


class Shape(Section):
    """What something is made of: triangles of a file, or a primitive."""

    mesh: str | None = None
    """Mesh file (OBJ, STL, DAE, PLY, GLB). `pybullet_data:duck.obj` names a file shipped with pybullet."""
    primitive: Literal["box", "sphere", "cylinder", "plate", "plane", "ball", "capsule"] | None = None
    """Centred at its origin; a plate is a thin box, a plane an open sheet facing +z, cylinder and capsule stand along
    z. sphere and cylinder are made of triangles; ball and capsule are exactly round, and bodies beside a tool with
    `mesh` or `primitive` only"""
    size: tuple[float, ...] | None = None
    """box and plate: x y z edge lengths; sphere and ball: radius; cylinder: radius, length; capsule: radius, length
    between the centres of its ends; plane: x y edge lengths. m"""
    subdivisions: Annotated[int, Field(ge=0, le=8)] = 0
    """Primitive or mesh: each triangle is split into four this many times (sphere: on top of the icosphere's 3)."""
    scale: Positive | tuple[Positive, Positive, Positive] = 1.0
    """Of all lengths, one number or one for each axis; 0.001 makes metres of a mesh in millimetres"""

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if self.primitive is not None:
            count, meaning = SIZES[self.primitive]
            if self.size is None:
                raise _wrong("size", None, f"is needed for a {self.primitive}: {count} number(s), {meaning}, in m")
            if len(self.size) != count:
                raise _wrong(
                    "size", list(self.size), f"of a {self.primitive} must be {count} number(s): {meaning}, in m"
                )
            if min(self.size) <= 0:
                raise _wrong("size", list(self.size), "must be greater than 0, in m")
            if self.primitive in ROUNDED:
                self._check_rounded(self.primitive)
        elif self.size is not None:
            raise _wrong("size", list(self.size), "belongs to a `primitive`; use `scale` for a mesh or urdf")
        return self

    def _check_rounded(self, primitive: str) -> None:
        if self.subdivisions:
            raise _wrong(
                "subdivisions",
                self.subdivisions,
                f"belongs to what has triangles: a {primitive} is exactly round",
            )
        if self.scale not in (1.0, (1.0, 1.0, 1.0)):
            scale = list(self.scale) if isinstance(self.scale, tuple) else self.scale
            raise _wrong("scale", scale, f"does not belong to a {primitive}, which is as large as its `size` says")

    @property
    def rounding(self) -> float:
        """Radius (m) round the point or segment that a ball or capsule is; 0 for all that is made of triangles."""
        return self.size[0] if self.primitive in ROUNDED and self.size is not None else 0.0


class Surface(Section):
    """How a body feels, besides its friction and restitution."""

    stiffness: NonNegative = 0.0
    """Of its own, in series with the coupling, N/m at the device; 0: as hard as the coupling"""
    damping: NonNegative = 0.0
    """Along the normal, N·s/m at the device; at most the card's `damping_max`"""
    drag: NonNegative = 0.0
    """Along the surface, like a film of oil, N·s/m at the device; at most the card's `damping_max`"""
    pattern: Literal["smooth", "grating", "bumps", "noise"] = "smooth"
    """grating: ridges across `direction`; bumps: an egg carton; noise: rough"""
    height: NonNegative = 0.0
    """Of the pattern's relief, m in the scene"""
    wavelength: Positive = 0.001
    """From ridge to ridge, or the size of a cell of noise, m in the scene"""
    direction: Vector3 = (1.0, 0.0, 0.0)
    """Of a grating, mesh coordinates, norm 1"""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Of noise"""
    friction_variation: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share by which the friction felt follows the pattern"""
    burst: NonNegative = 0.0
    """Vibration of a touch-down, N per m/s of its speed"""
    burst_frequency: Positive = 150.0
    """Hz; at most a quarter of the tick rate"""
    burst_decay_ms: Positive = 10.0
    """Time in which it falls to 1/e"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key in ("height", "friction_variation"):
            if getattr(self, key) > 0.0 and self.pattern == "smooth":
                raise _wrong(key, getattr(self, key), "needs a `pattern`: grating, bumps or noise")
        norm = math.hypot(*self.direction)
        if abs(norm - 1.0) > QUATERNION_TOLERANCE:
            raise _wrong("direction", list(self.direction), f"must have norm 1; it has {norm:.6g}")
        return self


class Region(Section):
    """A part of space that pulls the device or slows it down."""

    kind: Literal["magnet", "viscous"]
    """magnet: pulls towards its core; viscous: resists motion"""
    position: Vector3
    """Middle of its core, scene, m"""
    arm: Vector3 = NOWHERE
    """From there to an end of the core, which is a segment; zero: a point. Scene, m"""
    reach: Positive
    """How far from its core it is felt, m"""
    strength: Positive
    """magnet: largest pull, N; viscous: N·s/m at the device"""


FIXTURE_KEYS = {
    "plane": ("direction",),
    "line": ("direction",),
    "tube": ("direction", "radius"),
    "cone": ("direction", "angle_deg"),
    "half-space": ("direction",),
    "ball": ("radius",),
    "box": ("size",),
}
"""What a fixture of each kind, or of each shape of what is forbidden, needs besides its position."""


class Fixture(Section):
    """A virtual fixture: where the tool is led to, or is kept from."""

    kind: Literal["plane", "line", "tube", "cone", "forbidden"]
    """plane, line: on it; tube, cone: inside; forbidden: outside of a `shape`"""
    shape: Literal["half-space", "ball", "box"] | None = None
    """Of what is forbidden; a half-space is what lies behind a plane"""
    position: Vector3
    """Point of the plane, line or axis, apex of the cone, middle of ball or box; scene, m"""
    direction: Vector3 | None = None
    """Normal of plane and half-space, out of what is forbidden; axis of line, tube and cone, there from its apex to its
    inside; of any length, scene axes"""
    radius: Positive | None = None
    """Of tube and ball, m in the scene"""
    angle_deg: Annotated[float, Field(gt=0, lt=90)] | None = None
    """Of a cone, from its axis to its side"""
    size: tuple[Positive, Positive, Positive] | None = None
    """Of a box, its edges, m in the scene"""
    orientation: Annotated[Quaternion, AfterValidator(_unit)] | None = None
    """Of a box, its axes -> scene, [x, y, z, w]"""
    stiffness: Positive | None = None
    """N/m at the device, of a soft fixture: a spring that is felt; a hard one, which the tool never leaves, has none"""
    strength: Positive | None = None
    """N, of a soft fixture: the force that its spring grows to; half of the device's when left out"""

    @property
    def form(self) -> str:
        """Its kind, or the shape of what is forbidden."""
        return self.shape or self.kind

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == "forbidden" and self.shape is None:
            raise _wrong("shape", None, "is needed for what is forbidden: half-space, ball or box")
        if self.kind != "forbidden" and self.shape is not None:
            raise _wrong("shape", self.shape, 'belongs to a fixture with kind = "forbidden"')
        needed = FIXTURE_KEYS[self.form]
        for key in ("direction", "radius", "angle_deg", "size"):
            value = getattr(self, key)
            if key in needed and value is None:
                raise _wrong(key, None, f"is needed for a {self.form}")
            if key not in needed and value is not None:
                value = list(value) if isinstance(value, tuple) else value
                raise _wrong(key, value, f"does not belong to a {self.form}")
        if self.direction is not None and not any(self.direction):
            raise _wrong("direction", list(self.direction), "must not be zero")
        if self.orientation is not None and self.form != "box":
            raise _wrong("orientation", list(self.orientation), f"does not belong to a {self.form}")
        if self.strength is not None and self.stiffness is None:
            raise _wrong("strength", self.strength, "belongs to a soft fixture, one with a `stiffness`")
        return self


class Body(Shape):
    """One body: exactly one of `mesh`, `urdf` or `primitive`."""

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.\-]+$")]
    """Letters, digits, `_`, `-` and `.`; no other body may have it"""
    urdf: str | None = None
    """URDF, SDF or MJCF file; each link becomes a body `name/link`."""
    pose: Pose = Pose()
    """Body -> scene"""
    motion: Literal["static", "held", "free", "kinematic"] = "static"
    """held: may be posed anew while nobody is engaged; free: forces move it; kinematic: keeps its velocity, pushes and
    is not pushed, waits where it is blocked"""
    friction_static: NonNegative = 0.4
    """Coulomb coefficient at rest"""
    friction_kinetic: NonNegative = 0.3
    """Coulomb coefficient while sliding; not above friction_static"""
    torsional_friction: NonNegative = 0.0
    """Largest moment against spinning about the normal, per normal force, m; of two bodies the geometric mean counts,
    against the tool that of the body. Felt by a mesh tool that yields, and by bodies that move"""
    rolling_friction: NonNegative = 0.0
    """Largest moment against rolling, per normal force, m; of two bodies as above"""
    restitution: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Speed after an impact by the speed before; of two bodies the larger one counts"""
    density: Positive = 1000.0
    """kg/m3, of the homogeneous solid that the mesh encloses or the primitive is; used where `mass` is not given"""
    mass: Annotated[float, Field(gt=0, le=LARGEST_MASS)] | None = None
    """kg, of a free body; its inertia is that of the homogeneous solid, unless `inertia` is given"""
    inertia: Annotated[Inertia | None, WrapValidator(_numbers_of_inertia)] = None
    """kg·m2 about `centre_of_mass`, axes of the mesh: three moments, or three rows; needed where the mesh is no closed
    solid"""
    centre_of_mass: Vector3 | None = None
    """m, mesh coordinates (after `scale`); belongs to `inertia`"""
    linear_drag: NonNegative = 0.0
    """Of a free body: force against its velocity, N·s/m"""
    angular_drag: NonNegative = 0.0
    """Of a free body: torque against its angular velocity, N·m·s/rad"""
    velocity: Vector3 = NOWHERE
    """m/s, scene axes. free: of the centre of mass, at start; kinematic: of the body's origin, always"""
    angular_velocity: Vector3 = NOWHERE
    """rad/s, scene axes. free: at start; kinematic: always, about the body's origin"""
    surface: Surface = Surface()
    """How it feels"""
    joints: dict[str, float] = {}
    """URDF: joint positions by name, rad or m; 0 where absent"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [key for key in ("mesh", "urdf", "primitive") if getattr(self, key) is not None]
        if len(given) != 1:
            said = " and ".join(f"`{key}`" for key in given) if given else "none of them"
            raise _wrong("", said, "needs exactly one of `mesh`, `urdf` or `primitive`")
        if self.friction_kinetic > self.friction_static:
            raise _wrong(
                "friction_kinetic",
                self.friction_kinetic,
                f"must not be above friction_static ({self.friction_static:g})",
            )
        if self.urdf is not None:
            if self.subdivisions:
                raise _wrong("subdivisions", self.subdivisions, "belongs to a `primitive` or `mesh`, not to a urdf")
            if isinstance(self.scale, tuple):
                raise _wrong("scale", list(self.scale), "of a urdf must be one number, such as 0.5")
        elif self.joints:
            raise _wrong("joints", self.joints, "belongs to a `urdf`")
        self._check_motion()
        return self

    @property
    def moves(self) -> bool:
        """Does it change its pose by itself?"""
        return self.motion in ("free", "kinematic")

    def _check_motion(self) -> None:
        if self.urdf is not None and self.moves:
            raise _wrong("motion", self.motion, "of a urdf must be static or held: links with joints do not move yet")
        for key in ("velocity", "angular_velocity"):
            if not self.moves and any(getattr(self, key)):
                raise _wrong(key, list(getattr(self, key)), 'belongs to a body with motion = "free" or "kinematic"')
        for key in ("mass", "inertia", "centre_of_mass", "linear_drag", "angular_drag"):
            if self.motion != "free" and getattr(self, key):
                raise _wrong(key, getattr(self, key), 'belongs to a body with motion = "free"')
        _check_mass(self.mass or 0.0)
        if self.inertia is None:
            if self.centre_of_mass is not None:
                raise _wrong(
                    "centre_of_mass",
                    list(self.centre_of_mass),
                    "belongs to a body with `inertia`; without, it is that of the solid that the mesh encloses",
                )
            return
        tensor = self.inertia_tensor
        if tensor is None or self.mass is None or self.centre_of_mass is None:
            raise _wrong("inertia", self.inertia, "needs `mass` and `centre_of_mass` beside it")
        try:
            made = body_inertia(self.mass, tensor, self.centre_of_mass)
        except ValueError as error:
            raise _wrong("inertia", self.inertia, f"cannot be used: {error}") from None
        least, largest = np.sqrt(np.array((made["moments"].min(), made["moments"].max())) / self.mass)
        if least < LEAST_GYRATION or largest > LARGEST_GYRATION:
            raise _wrong(
                "inertia",
                self.inertia,
                f"must have radii of gyration, sqrt(moment / mass), of {LEAST_GYRATION:g} to {LARGEST_GYRATION:g} m",
            )

    @property
    def inertia_tensor(self) -> np.ndarray | None:
        """(3, 3) what `inertia` says, kg m2; None where it is not given."""
        if self.inertia is None:
            return None
        given = np.array(self.inertia)
        return np.diag(given) if given.ndim == 1 else given


DISTANCES = ("eps_alert", "eps_safety", "eps_break")


class Scene(Section):
    """What can be touched."""

    name: str = "scene"
    """What status lines and logs call it"""
    bodies: Annotated[list[Body], Field(min_length=1, alias="body")]
    """One `[[scene.body]]` table each"""
    regions: Annotated[list[Region], Field(alias="region")] = []
    """One `[[scene.region]]` table for each part of space that pulls or slows down"""
    fixtures: Annotated[list[Fixture], Field(alias="fixture")] = []
    """One `[[scene.fixture]]` table for each virtual fixture; hard ones hold together in the order given"""
    gravity: Vector3 = (0.0, 0.0, -9.81)
    """m/s2, scene axes; only free bodies feel it"""
    eps_alert: Positive | None = None
    """No surface ever comes nearer to the tool, or to a body that moves, than this, m"""
    eps_safety: Positive | None = None
    """Gap kept at rest, m"""
    eps_break: Positive | None = None
    """A contact is forgotten beyond this, m; by default the three are 8.8e-5, 2e-4 and 4.6e-4 times the scene's box
    diagonal (Redon 2002)"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        seen: dict[str, int] = {}
        for index, body in enumerate(self.bodies):
            if body.name in seen:
                raise _wrong(
                    f"body[{index}].name", body.name, f"must be unique; body[{seen[body.name]}] has the same name"
                )
            seen[body.name] = index
        given = [(key, value) for key in DISTANCES if (value := getattr(self, key)) is not None]
        for (low_key, low), (high_key, high) in itertools.pairwise(given):
            if low >= high:
                raise _wrong(high_key, high, f"must be greater than {low_key} ({low:g})")
        return self


class Tool(Shape):
    """What the hand moves: a sphere tip (the default), or a whole mesh or primitive."""

    tip_radius: NonNegative = 0.005
    """Of the sphere tip, m; 0 for a point. A tool with `mesh` or `primitive` has none"""
    tip_offset: Vector3 = (0.0, 0.0, 0.0)
    """Tip centre in tool coordinates; the coupling point is the origin"""
    pose: Pose = Pose()
    """Mesh or primitive -> tool"""
    motion: Literal["sliding", "carried"] = "sliding"
    """Of a mesh or primitive. sliding: it yields to what it touches; carried: it waits where it is blocked"""
    mass: Annotated[float, Field(ge=0, le=LARGEST_MASS)] = 0.0
    """Of a mesh or primitive that slides, kg, at the tip centre; its inertia is that of the homogeneous solid about it.
    0: it has none, and goes at once where springs and contacts balance"""
    start: Vector3 = (0.0, 0.0, 0.0)
    """Tip centre at start, scene; must be free"""
    start_orientation: Annotated[Quaternion, AfterValidator(_unit)] = (0.0, 0.0, 0.0, 1.0)
    """Tool -> scene at start, [x, y, z, w]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mesh is not None and self.primitive is not None:
            raise _wrong("", "`mesh` and `primitive`", "takes one of `mesh` and `primitive`, or neither: a sphere tip")
        if self.primitive in ROUNDED:
            raise _wrong(
                "primitive",
                self.primitive,
                'belongs to a body of the scene; a tool may be a "sphere" or "cylinder"',
            )
        if not self.whole and self.motion == "carried":
            raise _wrong("motion", self.motion, "belongs to a `mesh` or `primitive`: a sphere tip always slides")
        if self.whole and "tip_radius" in self.model_fields_set:
            raise _wrong("tip_radius", self.tip_radius, "belongs to a sphere tip, not to a `mesh` or `primitive`")
        if self.mass > 0.0 and not self.whole:
            raise _wrong("mass", self.mass, "belongs to a `mesh` or `primitive`: a sphere tip has no inertia")
        if self.mass > 0.0 and self.motion == "carried":
            raise _wrong("mass", self.mass, 'belongs to a tool with motion = "sliding": a carried one has no inertia')
        _check_mass(self.mass)
        return self

    @property
    def whole(self) -> bool:
        """A mesh or a primitive rather than a sphere tip."""
        return self.mesh is not None or self.primitive is not None


FRACTIONS = ("stiffness", "damping", "rotational_stiffness")
"""Gains that may be given as a share of the card's `..._max`, by a key `..._fraction`."""

Share = Annotated[float, Field(gt=0, le=1)]


class Coupling(Section):
    """The spring and damper between the hand and the tool."""

    stiffness: Positive = 400.0
    """N/m at the device; capped by the card"""
    damping: NonNegative = 1.0
    """N·s/m at the device"""
    rotational_stiffness: NonNegative = 0.5
    """N·m/rad at the device, felt with a tool that has `mesh` or `primitive`; capped by the card"""
    law: Literal["spring", "damped", "constraint"] = "spring"
    """`spring`: the damper acts along the spring and within it; `damped`: always, on the device's velocity;
    `constraint`: as `spring`, on what contacts and hard fixtures hold of the stretch, so that no lag is felt"""
    world_stiffness: Positive | None = None
    """N/m at the device, of the spring that pulls the tool; that of the hand when left out"""
    world_damping: NonNegative | None = None
    """N·s/m at the device, of that spring's damper (a tool with `mass`); that of the hand when left out"""
    stiffness_fraction: Share | None = None
    """In place of `stiffness`: share of the card's `stiffness_max`"""
    damping_fraction: Share | None = None
    """In place of `damping`: share of the card's `damping_max`"""
    rotational_stiffness_fraction: Share | None = None
    """In place of `rotational_stiffness`: share of the card's `rotational_stiffness_max`"""
    virtual_sphere: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the torque that a device without torque shows as a force on a virtual sphere; 0: off"""
    sphere_radius: Positive = 0.05
    """Lever of that force about the coupling point, m in the scene"""
    ramp_up_ms: Positive = 500.0
    """Time from no force to full gains when engaging"""
    ramp_down_ms: Positive = 100.0
    """Time to no force when it was asked for"""
    ramp_fault_ms: Annotated[float, Field(gt=0, le=20)] = 15.0
    """Time to no force when it is forced (lost client, jump, stop)"""
    passivity: bool = True
    """Whether energy that sampling produces is taken back by damping, at most 0.9 of the card's `damping_max`"""
    rate_adaptation: bool = True
    """Whether the stiffness that is felt falls with the rate of the samples where that is below the tick's"""
    velocity_window_ms: Positive = 12.0
    """Window of the velocity estimate when samples carry no twist"""
    velocity: Literal["window", "adaptive"] = "window"
    """Estimate over the whole window, or over as much of it as is straight within an encoder step: a shorter delay"""
    valid_for_ms: Positive = 10.0
    """How long a client may use a rendered impedance"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key in FRACTIONS:
            share = getattr(self, f"{key}_fraction")
            if share is not None and key in self.model_fields_set:
                raise _wrong(f"{key}_fraction", share, f"and `{key}` say the same; give one of them")
        return self


class Workspace(Section):
    """Device frame into scene: x = position + R (scale * x_device)."""

    scale: Positive = 1.0
    """Scene metres per device metre"""
    pose: Pose = Pose()
    """Device frame -> scene"""
    centre: Vector3 = (0.0, 0.0, 0.0)
    """Middle of the device's own workspace, device frame, m"""
    limits: Vector3 | None = None
    """Edges of the box about it that the handle cannot leave, m; the card's when absent. Samples beyond are not used"""
    drift: Annotated[float, Field(ge=0, le=0.3)] = 0.0
    """Largest share of the device's speed by which the map moves so that the hand comes back to the middle; 0: off"""


class Safety(Section):
    """When forces are held, released or refused."""

    hold_after_ms: Positive = 5.0
    """A sample older than this is late: the impedance is held"""
    stale_after_ms: Positive = 20.0
    """A sample older than this means a lost client: forces are ramped to zero"""
    lease_ms: Positive = 2000.0
    """A lease that is neither used nor renewed ends after this"""
    engage_distance: Positive = 0.005
    """Farthest device image from the tool at which forces may start, m, in the scene and at the device"""
    jump_margin: Positive = 0.005
    """What a device may move between samples beyond its top speed, device m"""
    require_deadman: bool = False
    """Forces only while the client says that a hand is on the device"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.stale_after_ms <= self.hold_after_ms:
            raise _wrong(
                "stale_after_ms", self.stale_after_ms, f"must be greater than hold_after_ms ({self.hold_after_ms:g})"
            )
        if self.lease_ms <= self.stale_after_ms:
            raise _wrong("lease_ms", self.lease_ms, f"must be greater than stale_after_ms ({self.stale_after_ms:g})")
        return self


class Device(Section):
    """Which device the forces are meant for: its card holds the limits."""

    card: str = "simulated"
    """Name of a card in configs/devices or a path to one"""


class Budget(Section):
    """Work per tick, in units of work (never in time)."""

    units: Annotated[int, Field(ge=100, le=2_000_000_000)] = 20000
    """Node visits and triangle tests"""
    passes: Annotated[int, Field(ge=1, le=8)] = 8
    """Straight passes of the tip"""
    sweeps: Annotated[int, Field(ge=1, le=2_000_000_000)] = 50
    """Contact-solver sweeps for the tool alone, per pass"""
    visits: Annotated[int, Field(ge=0, le=2_000_000_000)] = 5000
    """Contacts that the solver may visit in a tick, in all sweeps; 0: only `sweeps` counts"""
    governor: bool = True
    """Give a tick less work, in the same units, while ticks would be late"""


class Rates(Section):
    """How often things happen."""

    tick_hz: Annotated[float, Field(ge=50, le=4000)] = 1000.0
    """Ticks per second"""
    clocking: Literal["free", "triggered"] = "free"
    """free: the servo's clock; triggered: each sample runs one tick"""
    publish_hz: Annotated[float, Field(gt=0, le=1000)] = 60.0
    """State messages per second for observers"""


class Log(Section):
    """Recording."""

    directory: str = "out"
    """Folder for logs; relative to the working directory"""
    record: bool = False
    """Write an MCAP log of every run"""


class Sockets(Section):
    """Where clients connect."""

    transport: Literal["ipc", "tcp"] = "ipc"
    """ipc: sockets in the runtime directory; tcp: host and ports below"""
    host: str = "127.0.0.1"
    """tcp only; loopback, or with `[access]` any address of this machine, 0.0.0.0 for all of them"""
    port: Annotated[int, Field(ge=1024, le=65531)] = 5550
    """tcp: device, control, state, events take port .. port+3, and with `[link]` peer takes port+4"""
    peer: str | None = None
    """With `[link]`: address of the peer socket when it is another one, tcp://HOST:PORT"""


class Link(Section):
    """This end of a link: another daemon, or a robot, whose hand is felt here and which feels this one."""

    law: Literal["position-position", "position-force", "four-channel"] = "position-position"
    """position-position: each hand is pulled towards the other; position-force: a leader feels what the follower's
    surroundings do; four-channel: both"""
    role: Literal["", "leader", "follower"] = ""
    """Of position-force: which end this is"""
    method: Literal["waves", "tank", "none"] = "waves"
    """What keeps it passive under delay, the same at both ends: wave variables, an energy tank, or nothing"""
    stiffness: Positive | None = None
    """Of the spring between the hands, N/m at the device; that of the coupling when left out, capped by the card"""
    damping: NonNegative | None = None
    """N·s/m at the device; that of the coupling when left out, capped by the card"""
    rotational_stiffness: NonNegative | None = None
    """N·m/rad at the device; that of the coupling when left out, capped by the card"""
    rotational_damping: NonNegative = 0.0
    """N·m·s/rad at the device"""
    force_gain: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the other end's wrench that is felt; 1 when left out with four-channel and at a leader, else 0"""
    impedance: Positive | None = None
    """Of waves, N·s/m; the other end's is this times `scale` squared. When left out, 10 at an end whose `scale` is at
    most 1, or the card's `damping_max` where that is less"""
    rotational_impedance: Positive | None = None
    """Of waves, N·m·s/rad, the same at both ends; 0.01 when left out, or what the device renders where that is less"""
    scale: Annotated[float, Field(ge=1e-3, le=1e3)] = 1.0
    """Metres here per metre at the other end"""
    mirror: Literal["", "x", "y", "z"] = ""
    """Axis of the scene along which the other end is reflected"""
    align_speed: Annotated[float, Field(ge=0, le=1)] = 0.0
    """At which two ends that came up apart come together, m/s at the device; 0: they stay apart as they are"""
    distance_max: Positive = 0.1
    """Ends farther apart than this are let go, m at the device"""
    tank: Annotated[float, Field(gt=0, le=10)] = 0.1
    """Energy wanted in the tank, J"""
    tank_damping: NonNegative | None = None
    """Most damping that fills it, N·s/m; a quarter of the device's largest when left out"""
    dead_band: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Share by which a signal changes before it is sent again; 0: every tick sends"""
    share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Of the other hand in where the tool is to go (a shared tool); 0: the tool is this hand's alone"""
    stale_after_ms: Annotated[float, Field(gt=0, le=60000)] = 500.0
    """Silence of the other end after which the link is lost"""
    ramp_up_ms: Positive = 500.0
    """Time from nothing to the whole link when it comes up"""
    ramp_down_ms: Positive = 100.0
    """Time to nothing when it is let go"""
    connect: str = ""
    """Peer socket of the other end, tcp://HOST:PORT or ipc://PATH; left out: this end has one, and waits there"""
    server_key: str | None = None
    """With `connect`: public key of the other end, or a file that holds it"""
    keys: str | None = None
    """With `connect`: key file of this end; that of `[access]` when left out"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.law == "position-force" and not self.role:
            raise _wrong("role", None, 'is needed with law = "position-force": "leader" or "follower"')
        if self.law != "position-force" and self.role:
            raise _wrong("role", self.role, f'belongs to law = "position-force"; the ends of "{self.law}" are alike')
        for key in ("server_key", "keys"):
            if getattr(self, key) is not None and not self.connect.startswith("tcp://"):
                raise _wrong(key, getattr(self, key), 'belongs to `connect = "tcp://HOST:PORT"`')
        if self.keys is not None and self.server_key is None:
            raise _wrong("keys", self.keys, "needs `server_key` beside it: the public key of the other end")
        if self.connect:
            _check_connect(self.connect, self.server_key is not None)
        return self


def _check_connect(address: str, guarded: bool) -> None:
    """Raise what is wrong with the address of another end's peer socket."""
    if address.startswith("ipc://") and len(address) > len("ipc://"):
        return
    host, port = _host_and_port(address)
    if not _HOST.fullmatch(host) or not 0 < port < 65536:
        raise _wrong("connect", address, "must be the other end's peer socket, tcp://HOST:PORT or ipc://PATH")
    if guarded or host in LOOPBACK or (_is_address(host) and ipaddress.ip_address(host).is_loopback):
        return
    raise _wrong(
        "connect",
        address,
        f"needs `server_key` for an end that is not on this machine ({', '.join(LOOPBACK)}): without keys anybody "
        "between the two could move the hand",
    )


class Access(Section):
    """Keys that guard the sockets on tcp: only clients on the list get in, and all is encrypted."""

    keys: str | None = None
    """The daemon's key file; by default the one that `hapticd keys server` makes"""
    allow: str | None = None
    """The list of clients; by default the one that `hapticd keys allow` writes"""


class Config(Section):
    """One runnable scene with everything around it."""

    scene: Scene
    tool: Tool = Tool()
    coupling: Coupling = Coupling()
    workspace: Workspace = Workspace()
    safety: Safety = Safety()
    device: Device = Device()
    budget: Budget = Budget()
    rates: Rates = Rates()
    log: Log = Log()
    sockets: Sockets = Sockets()
    link: Link | None = None
    """A link to another end; without this table there is none"""
    access: Access | None = None
    """Keys that guard the sockets on tcp; without this table they are for this machine only"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_host()
        self._check_peer()
        for index, body in enumerate(self.scene.bodies):
            key = f"scene.body[{index}] ({body.name!r}).motion"
            if body.primitive in ROUNDED and not self.tool.whole:
                raise _wrong(
                    f"scene.body[{index}] ({body.name!r}).primitive",
                    body.primitive,
                    "needs a tool with a surface (`[tool] mesh` or `primitive`); beside a sphere tip use "
                    '`primitive = "sphere"`' + (' or "cylinder"' if body.primitive == "capsule" else ""),
                )
            if body.moves and not self.tool.whole:
                raise _wrong(
                    key, body.motion, 'needs a tool with a surface: set `[tool] primitive = "sphere"` and `size = [r]`'
                )
            if body.moves and self.tool.motion == "carried":
                raise _wrong(key, body.motion, 'needs a tool that yields: set `[tool] motion = "sliding"`')
        return self

    def _check_host(self) -> None:
        host = self.sockets.host
        if self.access is None and host not in LOOPBACK:
            raise _wrong(
                "sockets.host",
                host,
                f"must be a loopback address ({', '.join(LOOPBACK)}): without keys the sockets carry no encryption, so "
                "other machines are refused; `hapticd keys` makes keys and a table [access] names them",
            )
        if host not in LOOPBACK and not _is_address(host):
            raise _wrong("sockets.host", host, "must be an IP address of this machine, 0.0.0.0 for all, or localhost")
        if self.access is not None and self.sockets.transport != "tcp":
            raise _wrong(
                "access",
                self.sockets.transport,
                'guards sockets on tcp: set `[sockets] transport = "tcp"`; those on ipc are this user\'s alone already',
            )

    def _check_peer(self) -> None:
        address = self.sockets.peer
        if address is None:
            return
        if self.link is None or self.link.connect:
            raise _wrong("sockets.peer", address, "belongs to a `[link]` without `connect`: only that one has a socket")
        host, port = _host_and_port(address)
        if not 1024 <= port < 65536 or not (host in LOOPBACK or _is_address(host)):
            raise _wrong(
                "sockets.peer", address, "must be tcp://HOST:PORT: an IP address of this machine, a port from 1024 on"
            )
        if self.access is None and host not in LOOPBACK:
            raise _wrong(
                "sockets.peer",
                address,
                f"must be on a loopback address ({', '.join(LOOPBACK)}): without keys other machines are refused; "
                "`hapticd keys` makes keys and a table [access] names them",
            )


def _host_and_port(address: str) -> tuple[str, int]:
    """Of tcp://HOST:PORT, the host without brackets; "" and 0 for any other text."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    if not address.startswith("tcp://") or not (port.isascii() and port.isdigit() and len(port) <= 5):
        return "", 0
    return host.strip("[]"), int(port)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a configuration file, with the description of every key, for editors."""
    schema = Config.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "hapticd configuration"}


def load_config(path: str | Path) -> Config:
    """Read and check one TOML file.

    Args:
        path: the file; relative paths inside it stay as written and are meant relative to its folder.

    Raises:
        ConfigError: naming the file, every wrong key, the value given and what would be right.
    """
    path = Path(path)
    source = str(path)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(source, [f"is {path.stat().st_size} bytes long; a configuration has at most a megabyte"])
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(source, [_missing_file(path)]) from None
    except IsADirectoryError:
        raise ConfigError(source, ["is a folder; give a TOML file"]) from None
    except OSError as error:
        raise ConfigError(source, [f"cannot be read: {error.strerror or error}"]) from None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(source, [f"is not a text file: line {line} is not UTF-8"]) from None
    return parse_config(text, source)


def parse_config(text: str, source: str = "configuration") -> Config:
    """Check the text of a TOML configuration; ``source`` is what errors call it.

    Raises:
        ConfigError: as :func:`load_config`.
    """
    try:
        data = parse_toml(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise ConfigError(source, [str(error)]) from None
    return validate_config(data, source)


def validate_config(data: dict[str, Any], source: str = "configuration") -> Config:
    """Check a configuration given as nested dictionaries (what TOML parses to, or ``model_dump(by_alias=True)``).

    Raises:
        ConfigError: as :func:`load_config`.
    """
    try:
        # By way of JSON, because only there does strict validation still take an array for a tuple. Strict: "yes" is
        # not true and "5" is not a number.
        return Config.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        raise ConfigError(source, problems_of(error, data, Config)) from None


def _missing_file(path: Path) -> str:
    near: list[str] = []
    if path.parent.is_dir():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.toml")], 1)
    return "does not exist" + (f"; did you mean {path.parent / near[0]}?" if near else "")
