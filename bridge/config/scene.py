"""The scene: bodies, regions that pull or slow down, virtual fixtures, and the distances kept between surfaces."""

import itertools
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bridge.config.body import Body
from bridge.config.section import NOWHERE, Positive, Quaternion, Section, Vector3, unit, wrong


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
    orientation: Annotated[Quaternion, AfterValidator(unit)] | None = None
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
            raise wrong("shape", None, "is needed for what is forbidden: half-space, ball or box")
        if self.kind != "forbidden" and self.shape is not None:
            raise wrong("shape", self.shape, 'belongs to a fixture with kind = "forbidden"')
        needed = FIXTURE_KEYS[self.form]
        for key in ("direction", "radius", "angle_deg", "size"):
            value = getattr(self, key)
            if key in needed and value is None:
                raise wrong(key, None, f"is needed for a {self.form}")
            if key not in needed and value is not None:
                value = list(value) if isinstance(value, tuple) else value
                raise wrong(key, value, f"does not belong to a {self.form}")
        if self.direction is not None and not any(self.direction):
            raise wrong("direction", list(self.direction), "must not be zero")
        if self.orientation is not None and self.form != "box":
            raise wrong("orientation", list(self.orientation), f"does not belong to a {self.form}")
        if self.strength is not None and self.stiffness is None:
            raise wrong("strength", self.strength, "belongs to a soft fixture, one with a `stiffness`")
        return self


DISTANCES = ("eps_alert", "eps_safety", "eps_break")


class Scene(Section):
    """What can be touched."""

    name: str = "scene"
    """What status lines and logs call it"""
    bodies: Annotated[list[Body], Field(min_length=1, alias="body")]
    """One `[[scene.body]]` table each"""
    regions: Annotated[list[Region], Field(alias="region")] = []  # noqa: RUF012  pydantic copies it
    """One `[[scene.region]]` table for each part of space that pulls or slows down"""
    fixtures: Annotated[list[Fixture], Field(alias="fixture")] = []  # noqa: RUF012  pydantic copies it
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
                raise wrong(
                    f"body[{index}].name", body.name, f"must be unique; body[{seen[body.name]}] has the same name"
                )
            seen[body.name] = index
        given = [(key, value) for key in DISTANCES if (value := getattr(self, key)) is not None]
        for (low_key, low), (high_key, high) in itertools.pairwise(given):
            if low >= high:
                raise wrong(high_key, high, f"must be greater than {low_key} ({low:g})")
        return self
