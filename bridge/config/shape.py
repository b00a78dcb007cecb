"""What a body or a tool is made of: a mesh or a primitive, and its mass."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bridge.config.section import Positive, Section, wrong

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


def check_mass(mass: float) -> None:
    """Raise what is wrong with a mass (kg), which may be 0 for none."""
    if 0.0 < mass < LEAST_MASS:
        raise wrong("mass", mass, f"must be at least {LEAST_MASS:g} kg")


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
                raise wrong("size", None, f"is needed for a {self.primitive}: {count} number(s), {meaning}, in m")
            if len(self.size) != count:
                raise wrong(
                    "size", list(self.size), f"of a {self.primitive} must be {count} number(s): {meaning}, in m"
                )
            if min(self.size) <= 0:
                raise wrong("size", list(self.size), "must be greater than 0, in m")
            if self.primitive in ROUNDED:
                self._check_rounded(self.primitive)
        elif self.size is not None:
            raise wrong("size", list(self.size), "belongs to a `primitive`; use `scale` for a mesh or urdf")
        return self

    def _check_rounded(self, primitive: str) -> None:
        if self.subdivisions:
            raise wrong(
                "subdivisions",
                self.subdivisions,
                f"belongs to what has triangles: a {primitive} is exactly round",
            )
        if self.scale not in (1.0, (1.0, 1.0, 1.0)):
            scale = list(self.scale) if isinstance(self.scale, tuple) else self.scale
            raise wrong("scale", scale, f"does not belong to a {primitive}, which is as large as its `size` says")

    @property
    def rounding(self) -> float:
        """Radius (m) round the point or segment that a ball or capsule is; 0 for all that is made of triangles."""
        return self.size[0] if self.primitive in ROUNDED and self.size is not None else 0.0
