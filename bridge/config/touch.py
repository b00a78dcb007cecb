"""Between the hand and the scene: the tool, the coupling that pulls it, and the map of the device's workspace."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from bridge.config.section import NonNegative, Pose, Positive, Quaternion, Section, Vector3, unit, wrong
from bridge.config.shape import LARGEST_MASS, ROUNDED, Shape, check_mass
from haptics.cards import LEAST_STIFFNESS


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
    start_orientation: Annotated[Quaternion, AfterValidator(unit)] = (0.0, 0.0, 0.0, 1.0)
    """Tool -> scene at start, [x, y, z, w]"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mesh is not None and self.primitive is not None:
            raise wrong("", "`mesh` and `primitive`", "takes one of `mesh` and `primitive`, or neither: a sphere tip")
        if self.primitive in ROUNDED:
            raise wrong(
                "primitive",
                self.primitive,
                'belongs to a body of the scene; a tool may be a "sphere" or "cylinder"',
            )
        if not self.whole and self.motion == "carried":
            raise wrong("motion", self.motion, "belongs to a `mesh` or `primitive`: a sphere tip always slides")
        if self.whole and "tip_radius" in self.model_fields_set:
            raise wrong("tip_radius", self.tip_radius, "belongs to a sphere tip, not to a `mesh` or `primitive`")
        if self.mass > 0.0 and not self.whole:
            raise wrong("mass", self.mass, "belongs to a `mesh` or `primitive`: a sphere tip has no inertia")
        if self.mass > 0.0 and self.motion == "carried":
            raise wrong("mass", self.mass, 'belongs to a tool with motion = "sliding": a carried one has no inertia')
        check_mass(self.mass)
        return self

    @property
    def whole(self) -> bool:
        """A mesh or a primitive rather than a sphere tip."""
        return self.mesh is not None or self.primitive is not None


FRACTIONS = ("stiffness", "damping", "rotational_stiffness")
"""Gains that may be given as a share of the card's `..._max`, by a key `..._fraction`."""

Share = Annotated[float, Field(gt=0, le=1)]
Stiffness = Annotated[float, Field(ge=LEAST_STIFFNESS)]


class Coupling(Section):
    """The spring and damper between the hand and the tool."""

    stiffness: Stiffness = 400.0
    """N/m at the device; capped by the card"""
    damping: NonNegative = 1.0
    """N·s/m at the device"""
    rotational_stiffness: NonNegative = 0.5
    """N·m/rad at the device, felt with a tool that has `mesh` or `primitive`; capped by the card"""
    law: Literal["spring", "damped", "constraint"] = "spring"
    """`spring`: the damper acts along the spring and within it; `damped`: always, on the device's velocity;
    `constraint`: as `spring`, on what contacts and hard fixtures hold of the stretch, so that no lag is felt"""
    world_stiffness: Stiffness | None = None
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
                raise wrong(f"{key}_fraction", share, f"and `{key}` say the same; give one of them")
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
