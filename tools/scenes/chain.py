"""A chain of interlocked links, of which the middle one moves between its neighbours."""

import math

import numpy as np

from tools.scenes.mesh import Mesh, loop, meet
from tools.scenes.path import ramp, through
from tools.scenes.scene import Part, Phase, Scene

TRIANGLES = 10_000
LEAST = 2_000

LINKS = 7
_WIRE = 3.0e-3
_BEND = 8.0e-3
_STRAIGHT = 10.0e-3
SPACING = 28.0e-3
_TAUT = 2.0 * (_STRAIGHT + _BEND - _WIRE)
"""Distance of the middles of two links that touch."""


def _link(length: float) -> Mesh:
    """A link in the xy plane, long in x; the innermost points of both ends are vertices."""
    sides = 2 * max(3, round(math.pi * _WIRE / length))
    bends = 2 * max(4, round(0.5 * math.pi * _BEND / length))
    pieces = max(1, round(2.0 * _STRAIGHT / (2.0 * length)))
    angle = math.pi * np.arange(bends + 1) / bends - 0.5 * math.pi
    out = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    along = np.linspace(_STRAIGHT, -_STRAIGHT, pieces + 1)[1:-1]
    upper = np.stack([along, 0 * along + _BEND, 0 * along], axis=1)
    up = np.tile([0.0, 1.0, 0.0], (len(along), 1))
    half, inward = np.concatenate([(_STRAIGHT, 0, 0) + _BEND * out, upper]), -np.concatenate([out, up])
    turn = np.array([-1.0, -1.0, 1.0])
    return loop(np.concatenate([half, half * turn]), _WIRE, sides, np.concatenate([inward, inward * turn])).rounded()


def build(triangles: int, seed: int) -> Scene:
    """The scene: every second link is turned by a quarter about the chain."""
    mesh = meet(round(triangles / LINKS), _link, 0.14 / math.sqrt(triangles))
    middle = LINKS // 2
    quarter = np.array([math.sin(math.pi / 4), 0.0, 0.0, math.cos(math.pi / 4)])
    flat = np.array([0.0, 0.0, 0.0, 1.0])
    parts = []
    for k in range(LINKS):
        place = np.array([SPACING * (k - middle), 0.0, 0.0])
        turn = flat if (k - middle) % 2 == 0 else quarter
        parts.append(Part(f"link_{k}", mesh.vertices, mesh.faces, place, turn, moving=k == middle))
    generator = np.random.default_rng([seed, 2])
    a, b, c = generator.uniform(0.6, 1.0, 3)
    slack = _TAUT - SPACING
    free = through(
        [
            ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
            ((0.8e-3 * a, 0.6e-3, 0.5e-3 * b), (0.15 * c, 0.02, 0.02)),
            ((-1.0e-3 * b, -0.5e-3 * c, 0.5e-3), (-0.2, -0.02, 0.03 * a)),
            ((0.5e-3, 0.3e-3, -0.6e-3 * a), (0.2 * b, 0.02, -0.03)),
            ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ],
        least=0.5,
    )
    approach = through([((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), ((slack + 2e-3, 0.0, 0.0), (0.1 * a, 0.0, 0.0))], least=1.0)

    def sliding(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        turn = 0.25 * window * np.sin(2.0 * math.pi * 0.4 * t)
        return np.column_stack([slack - 0.35e-3 + 0 * t, 0 * t, 0 * t]), np.column_stack([turn, 0 * t, 0 * t])

    def wedging(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place = np.column_stack([(slack + 1e-3) * window, 1e-3 * window * np.sin(7.0 * t), 2e-3 * window])
        return place, np.column_stack([0.5 * window, 0.2 * window * b, 0.3 * window * c])

    phases = [
        Phase("free", free, True),
        Phase("approach", approach, False),
        Phase("slide", ramp(4.0, sliding, flat), True, (0.2e-3, 0.5e-3)),
        Phase("wedge", ramp(2.5, wedging, flat), False),
    ]
    return Scene("chain", seed, 0.5e-3, parts, phases)
