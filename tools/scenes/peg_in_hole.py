"""A peg of 10 mm in a blind hole that is 0.1 mm wider, in a square block."""

import math
from itertools import pairwise

import numpy as np

from tools.scenes.mesh import Mesh, capped_up, circle, divide, lathe, meet
from tools.scenes.path import ramp, through
from tools.scenes.scene import Part, Phase, Scene

TRIANGLES = 4_000
LEAST = 1_000

RADIUS = 5.0e-3
SIDE_CLEARANCE = 0.05e-3
DEPTH = 30e-3
_HALF_LENGTH = 25e-3
_HALF_BLOCK = 30e-3
_HEIGHT = 40e-3


def _sides(length: float) -> int:
    return 8 * max(4, round(2.0 * math.pi * RADIUS / length / 8))


def _peg(length: float) -> Mesh:
    sides = _sides(length)
    corners = [(0.25 * RADIUS, -_HALF_LENGTH), (RADIUS - 0.5e-3, -_HALF_LENGTH), (RADIUS, -_HALF_LENGTH + 0.5e-3)]
    corners += [(RADIUS, _HALF_LENGTH - 0.5e-3), (RADIUS - 0.5e-3, _HALF_LENGTH), (0.25 * RADIUS, _HALF_LENGTH)]
    return lathe(divide(np.array(corners), 4.0 * length), sides).rounded()


def _block(length: float) -> Mesh:
    """Top of the block at z = 0; its hole is a polygon around the circle that the peg's must stay inside of."""
    sides = _sides(length)
    c, s = circle(sides)
    square = _HALF_BLOCK / np.maximum(np.abs(c), np.abs(s))
    hole = np.full(sides, (RADIUS + SIDE_CLEARANCE) / math.cos(math.pi / sides))
    steps = [  # (share of the square's outline, radius besides, height), from below the block around into the hole
        (0.0, 0.3 * hole, -_HEIGHT),
        (0.995, 0.0 * hole, -_HEIGHT),
        (1.0, 0.0 * hole, -_HEIGHT + 0.5e-3),
        (1.0, 0.0 * hole, -0.5e-3),
        (0.985, 0.0 * hole, 0.0),
        (0.0, hole + 0.6e-3, 0.0),
        (0.0, hole, -0.6e-3),
        (0.0, hole, -DEPTH),
        (0.0, 0.3 * hole, -DEPTH),
    ]
    rows = np.array(
        [np.stack([f * square * c + r * c, f * square * s + r * s, np.full(sides, z)], -1) for f, r, z in steps]
    )
    fine = [rows[:1]]
    for a, b in pairwise(rows):
        pieces = max(1, math.ceil(float(np.linalg.norm(b - a, axis=1).min()) / (4.0 * length)))
        fine.append(a + (b - a) * (np.arange(1, pieces + 1) / pieces)[:, None, None])
    return capped_up(np.concatenate(fine)).rounded()


def build(triangles: int, seed: int) -> Scene:
    """The scene; the peg starts above the block."""
    moving = meet(round(0.4 * triangles), _peg, 0.06 / math.sqrt(triangles))
    block = meet(triangles - len(moving.faces), _block, 0.06 / math.sqrt(triangles))
    generator = np.random.default_rng([seed, 2])
    a, b, c = generator.uniform(-1.0, 1.0, 3)
    top = _HALF_LENGTH
    free = through(
        [
            ((0.0, 0.0, top + 0.010), (0.0, 0.0, 0.0)),
            ((0.030 * a, 0.030, top + 0.040), (0.5 * b, 0.3, 0.0)),
            ((-0.040, 0.030 * c, top + 0.060), (-0.4, 0.5 * a, 0.3)),
            ((0.0, 0.0, top + 0.010), (0.0, 0.0, 0.0)),
        ]
    )
    approach = through(
        [
            ((0.0, 0.0, top + 0.010), (0.0, 0.0, 0.0)),
            ((0.015e-3 * a, 0.015e-3 * b, top - 0.002), (0.0, 0.0, 0.1)),
            ((0.015e-3 * a, 0.015e-3 * b, top - DEPTH - 0.002), (0.0, 0.0, 0.1)),
        ]
    )

    def sliding(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        angle = 2.0 * math.pi * 1.3 * t
        shift = 0.012e-3 * window
        up = top - 0.020 + 0.009 * window * np.sin(2.0 * math.pi * 0.8 * t)
        place = np.column_stack([shift * np.cos(angle), shift * np.sin(angle), up])
        return place, np.column_stack([0 * t, 0 * t, 0.5 * window * np.sin(2.0 * math.pi * 0.3 * t)])

    def wedging(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tilt = 0.05 * window
        place = np.column_stack([1.5e-3 * window, 0.3e-3 * window * np.sin(9.0 * t), top - 0.020 - 3e-3 * window])
        return place, np.column_stack([0.2 * tilt, tilt, 0.2 * tilt])

    base = (0.0, 0.0, 0.0, 1.0)
    phases = [
        Phase("free", free, True),
        Phase("approach", approach, False),
        Phase("slide", ramp(3.0, sliding, base), True, (0.03e-3, 0.10e-3)),
        Phase("wedge", ramp(2.5, wedging, base), False),
    ]
    parts = [
        Part("peg", moving.vertices, moving.faces, free[0, :3], free[0, 3:], moving=True),
        Part("block", block.vertices, block.faces, np.zeros(3), np.array(base)),
    ]
    return Scene("peg_in_hole", seed, 0.5e-3, parts, phases)
