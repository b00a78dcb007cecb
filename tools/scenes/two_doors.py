"""Two equal doors, inner side against inner side: one slides and turns on the flat of the other."""

import math

import numpy as np

from tools.scenes import door
from tools.scenes.mesh import meet
from tools.scenes.path import ramp, through
from tools.scenes.scene import Part, Phase, Scene

TRIANGLES = 32_000
LEAST = 1_000

_SLIDE_GAP = 0.35e-3


def build(triangles: int, seed: int) -> Scene:
    """The scene; the moving door stands turned around, inboard of the other."""
    half = triangles // 2
    detail = door.detail_of(29 * half // 16)
    mesh = meet(half, lambda length: door.door(length, detail, seed), door.first_guess(29 * half // 16)[0])
    generator = np.random.default_rng([seed, 2])
    a, b, c = generator.uniform(0.6, 1.0, 3)
    x, y, z = door.CENTRE
    turned = (0.0, 0.0, 1.0, 0.0)
    # both inner panels are flat at PAN, and nothing of a door reaches further inwards
    touching = 2.0 * (door.PAN - 0.5 * door.THICKNESS) - y

    def at(dx: float, dy: float, dz: float) -> tuple[float, float, float]:
        return (x + dx, touching - dy, z + dz)

    still = (0.0, 0.0, 0.0)
    approach = through(
        [
            (at(0.05, 0.30, 0.0), (0.05, 0.1, 0.05)),
            (at(0.0, 0.02, 0.0), (2e-3, 0, 0)),
            (at(0.0, -4e-3, 0.0), (2e-3, 0, 0)),
        ],
        turned,
    )

    def sliding(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        across = 0.09 * a * window * np.sin(2.0 * math.pi * 0.45 * t)
        up = 0.06 * b * window * np.sin(2.0 * math.pi * 0.6 * t)
        turn = 0.25 * c * window * np.sin(2.0 * math.pi * 0.35 * t)
        place = np.column_stack([x + across, touching - _SLIDE_GAP + 0 * t, z + up])
        return place, np.column_stack([0 * t, turn, 0 * t])

    # a lower corner of the one goes through the window of the other and is pushed between its sill and its frame
    wedge = through(
        [
            (at(0.10, 0.42, 0.80), (0.30, 0.0, 0.45)),
            (at(0.10, 0.30, 0.76), (0.30, 0.0, 0.45)),
            (at(0.20, 0.12, 0.62), (0.30, 0.05 * a, 0.40)),
        ],
        turned,
    )
    free = through(
        [
            (at(0.0, 0.03, 0.0), still),
            (at(0.10 * a, 0.22, 0.05), (0.12, 0.20 * b, 0.10 * c)),
            (at(-0.12, 0.25, 0.08 * c), (-0.10 * a, -0.15, 0.12)),
            (at(0.0, 0.05, 0.0), still),
        ],
        turned,
    )
    phases = [
        Phase("free", free, True),
        Phase("approach", approach, False),
        Phase("slide", ramp(4.0, sliding, turned), True, (0.2e-3, 0.5e-3)),
        Phase("wedge", wedge, False),
    ]
    parts = [
        Part("moving_door", mesh.vertices, mesh.faces, free[0, :3], free[0, 3:], moving=True),
        Part("still_door", mesh.vertices, mesh.faces, np.array([x, y, z]), np.array([0.0, 0.0, 0.0, 1.0])),
    ]
    return Scene("two_doors", seed, 0.5e-3, parts, phases)
