"""Assemblies with motions to try collision detection on: generated, seeded, and the same on every run.

    from tools.scenes import scene
    s = scene("door_in_body", triangles=29_000, seed=0)

Each family is a module with ``build(triangles, seed)``, its usual number of triangles ``TRIANGLES`` and its least,
``LEAST``. ``python -m tools.scenes`` writes meshes and pictures for a person to look at.
"""

from importlib import import_module

from tools.scenes.scene import Part, Phase, Scene

__all__ = ["MOST", "NAMES", "Part", "Phase", "Scene", "least_triangles", "scene", "usual_triangles"]

MOST = 200_000
"""Largest number of triangles of a scene."""

NAMES = (
    "door_in_body",
    "motor_in_door",
    "pylon_part",
    "peg_in_hole",
    "screw_in_thread",
    "gear_mesh",
    "chain",
    "soup",
    "two_doors",
    "rings",
)


def usual_triangles(name: str) -> int:
    """The number of triangles that a scene has unless told otherwise; raises ValueError for an unknown name."""
    return _family(name).TRIANGLES


def least_triangles(name: str) -> int:
    """The smallest number of triangles that a scene can be built with; raises ValueError for an unknown name."""
    return _family(name).LEAST


def scene(name: str, triangles: int | None = None, seed: int = 0) -> Scene:
    """Build a scene of about ``triangles`` triangles in all, within 10 %; the family's usual number when absent.

    Equal arguments give equal bits. Raises ValueError for an unknown name or a number out of range.
    """
    family = _family(name)
    wanted = family.TRIANGLES if triangles is None else triangles
    if not family.LEAST <= wanted <= MOST:
        raise ValueError(f"{name} can have {family.LEAST:,} to {MOST:,} triangles, not {wanted:,}")
    return family.build(wanted, seed)


def _family(name: str):
    if name not in NAMES:
        raise ValueError(f"no scene is called {name!r}; there are: {', '.join(NAMES)}")
    return import_module(f"tools.scenes.{name}")
