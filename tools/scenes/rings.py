"""A ring that is linked with two others: it must never come off."""

import math

import numpy as np

from tools.scenes.mesh import Mesh, loop, meet
from tools.scenes.path import ramp, through
from tools.scenes.scene import Part, Phase, Scene

TRIANGLES = 6_000
LEAST = 1_000

_RADIUS = 40.0e-3
_WIRE = 5.0e-3
_APART = 60.0e-3


def _ring(length: float) -> Mesh:
    """A ring about z whose innermost points on the x axis are vertices."""
    sides = 2 * max(3, round(math.pi * _WIRE / length))
    around = 2 * max(8, round(math.pi * _RADIUS / length))
    angle = 2.0 * math.pi * np.arange(around) / around
    out = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    return loop(_RADIUS * out, _WIRE, sides, -out).rounded()


def build(triangles: int, seed: int) -> Scene:
    """The scene: three equal rings, the outer two upright."""
    mesh = meet(round(triangles / 3), _ring, 0.2 / math.sqrt(triangles))
    upright = np.array([math.sin(math.pi / 4), 0.0, 0.0, math.cos(math.pi / 4)])
    flat = np.array([0.0, 0.0, 0.0, 1.0])
    parts = [
        Part("middle_ring", mesh.vertices, mesh.faces, np.zeros(3), flat, moving=True),
        Part("left_ring", mesh.vertices, mesh.faces, np.array([-_APART, 0.0, 0.0]), upright),
        Part("right_ring", mesh.vertices, mesh.faces, np.array([_APART, 0.0, 0.0]), upright),
    ]
    generator = np.random.default_rng([seed, 2])
    a, b, c = generator.uniform(0.6, 1.0, 3)
    reach = _RADIUS - _WIRE - (_APART - _RADIUS + _WIRE)  # way to the left until the right ring is touched
    free = through(
        [
            ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
            ((4e-3 * a, 3e-3, 8e-3 * b), (0.3 * c, 0.05, 0.3)),
            ((-5e-3 * b, -4e-3 * c, 4e-3), (-0.3, -0.06, 0.2 * a)),
            ((2e-3, 5e-3 * c, -9e-3), (0.25 * b, 0.05, -0.3)),
            ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ]
    )
    approach = through(
        [((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), ((-reach - 3e-3, 1e-3 * a, 0.0), (0.1, 0.0, 0.2 * b))], least=1.0
    )

    def sliding(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        turn = 0.4 * window * np.sin(2.0 * math.pi * 0.35 * t)
        return np.column_stack([-reach + 0.35e-3 + 0 * t, 0 * t, 0 * t]), np.column_stack([turn, 0 * t, 0 * t])

    def wedging(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # turned towards the plane of the others, it jams between both
        place = np.column_stack([4e-3 * window * np.sin(4.0 * t), 2e-3 * window, 3e-3 * window])
        return place, np.column_stack([1.1 * window, 0.1 * window * a, 0.2 * window * np.sin(3.0 * t)])

    phases = [
        Phase("free", free, True),
        Phase("approach", approach, False),
        Phase("slide", ramp(4.0, sliding, flat), True, (0.2e-3, 0.5e-3)),
        Phase("wedge", ramp(4.0, wedging, flat), False),
    ]
    return Scene("rings", seed, 0.5e-3, parts, phases)
