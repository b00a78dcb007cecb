"""A body of the scene: what it is made of, how it moves, and how it feels."""

import math
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator, model_validator
from pydantic_core import PydanticCustomError

from bridge.config.section import NOWHERE, QUATERNION_TOLERANCE, NonNegative, Pose, Positive, Section, Vector3, wrong
from bridge.config.shape import LARGEST_GYRATION, LARGEST_MASS, LEAST_GYRATION, Shape, check_mass
from rtcore.dynamics.inertia import body_inertia

Inertia = Vector3 | tuple[Vector3, Vector3, Vector3]


def _numbers_of_inertia(value: object, check: ValidatorFunctionWrapHandler) -> Inertia | None:
    try:
        return check(_tuples(value))
    except ValidationError:
        raise PydanticCustomError(
            "not_inertia", "must be three principal moments or three rows of three numbers, in kg·m2"
        ) from None


def _tuples(value: object) -> object:
    """Arrays as strict validation wants them of a function."""
    return tuple(_tuples(entry) for entry in value) if isinstance(value, list) else value


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
                raise wrong(key, getattr(self, key), "needs a `pattern`: grating, bumps or noise")
        norm = math.hypot(*self.direction)
        if abs(norm - 1.0) > QUATERNION_TOLERANCE:
            raise wrong("direction", list(self.direction), f"must have norm 1; it has {norm:.6g}")
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
    joints: dict[str, float] = {}  # noqa: RUF012  pydantic copies it
    """URDF: joint positions by name, rad or m; 0 where absent"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [key for key in ("mesh", "urdf", "primitive") if getattr(self, key) is not None]
        if len(given) != 1:
            said = " and ".join(f"`{key}`" for key in given) if given else "none of them"
            raise wrong("", said, "needs exactly one of `mesh`, `urdf` or `primitive`")
        if self.friction_kinetic > self.friction_static:
            raise wrong(
                "friction_kinetic",
                self.friction_kinetic,
                f"must not be above friction_static ({self.friction_static:g})",
            )
        if self.urdf is not None:
            if self.subdivisions:
                raise wrong("subdivisions", self.subdivisions, "belongs to a `primitive` or `mesh`, not to a urdf")
            if isinstance(self.scale, tuple):
                raise wrong("scale", list(self.scale), "of a urdf must be one number, such as 0.5")
        elif self.joints:
            raise wrong("joints", self.joints, "belongs to a `urdf`")
        self._check_motion()
        return self

    @property
    def moves(self) -> bool:
        """Does it change its pose by itself?"""
        return self.motion in ("free", "kinematic")

    def _check_motion(self) -> None:
        if self.urdf is not None and self.moves:
            raise wrong("motion", self.motion, "of a urdf must be static or held: links with joints do not move yet")
        for key in ("velocity", "angular_velocity"):
            if not self.moves and any(getattr(self, key)):
                raise wrong(key, list(getattr(self, key)), 'belongs to a body with motion = "free" or "kinematic"')
        for key in ("mass", "inertia", "centre_of_mass", "linear_drag", "angular_drag"):
            if self.motion != "free" and getattr(self, key):
                raise wrong(key, getattr(self, key), 'belongs to a body with motion = "free"')
        check_mass(self.mass or 0.0)
        if self.inertia is None:
            if self.centre_of_mass is not None:
                raise wrong(
                    "centre_of_mass",
                    list(self.centre_of_mass),
                    "belongs to a body with `inertia`; without, it is that of the solid that the mesh encloses",
                )
            return
        tensor = self.inertia_tensor
        if tensor is None or self.mass is None or self.centre_of_mass is None:
            raise wrong("inertia", self.inertia, "needs `mass` and `centre_of_mass` beside it")
        try:
            made = body_inertia(self.mass, tensor, self.centre_of_mass)
        except ValueError as error:
            raise wrong("inertia", self.inertia, f"cannot be used: {error}") from None
        least, largest = np.sqrt(np.array((made["moments"].min(), made["moments"].max())) / self.mass)
        if least < LEAST_GYRATION or largest > LARGEST_GYRATION:
            raise wrong(
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
