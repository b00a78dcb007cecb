"""A door that is hung into a car's body side: two thin sheets that nest along the whole rebate."""

import math

import numpy as np

from tools.scenes import door
from tools.scenes.mesh import meet
from tools.scenes.path import ramp, through
from tools.scenes.scene import Part, Phase, Scene

TRIANGLES = 29_000
LEAST = 1_000
MOVING_SHARE = 16.0 / 29.0

_SLIDE_GAP = 0.35e-3


def build(triangles: int, seed: int) -> Scene:
    """The scene: 16 of 29 triangles are the door's."""
    detail = door.detail_of(triangles)
    lengths = door.first_guess(triangles)
    moving = meet(round(triangles * MOVING_SHARE), lambda length: door.door(length, detail, seed), lengths[0])
    side = meet(triangles - len(moving.faces), lambda length: door.body(length, detail), lengths[1])
    generator = np.random.default_rng([seed, 2])
    x, y, z = door.CENTRE
    # the inner panel's flat part meets the flange of the rebate first: two parallel planes
    depth = door.PAN - door.FLANGE - door.THICKNESS
    sway = generator.uniform(0.7, 1.0, 3)
    home = ((x, y, z), (0.0, 0.0, 0.0))
    out = ((x, y + 0.12, z), (0.0, 0.0, 0.0))
    free = through(
        [
            home,
            out,
            ((x - 0.10, y + 0.32, z + 0.05), (0.05 * sway[0], 0.04, 0.20 * sway[1])),
            ((x - 0.10, y + 0.30, z + 0.10), (-0.08, -0.06 * sway[2], -0.12 * sway[0])),
            ((x, y + 0.25, z), (0.0, 0.0, 0.0)),
        ]
    )
    lean = 2e-3 * sway[0]
    approach = through(
        [
            ((x, y + 0.30, z), (0.0, 0.0, 0.12)),
            ((x, y + 0.05, z), (0.0, 0.0, lean)),
            ((x, y - depth - 4e-3, z), (0.0, 0.0, lean)),
        ]
    )
    phase = generator.uniform(0.0, 2.0 * math.pi)

    def sliding(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        across = 3.0e-3 * window * np.sin(2.0 * math.pi * 2.4 * t + phase)
        up = 3.0e-3 * window * np.sin(2.0 * math.pi * 1.8 * t)
        away = np.full(len(t), y - depth + _SLIDE_GAP)
        turn = 1.5e-3 * window * np.sin(2.0 * math.pi * 0.9 * t)
        return np.column_stack([x + across, away, z + up]), np.column_stack([0 * t, turn, 0 * t])

    def wedging(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # into the lower front corner, in between the sill and the front pillar, stirring
        push = window * (door.GAP + 3.0e-3)
        stir = window * 1.5e-3 * np.sin(2.0 * math.pi * 2.3 * t)
        place = np.column_stack([x - push + stir, y - 0.5 * depth + 0 * t, z - push - stir])
        return place, np.column_stack([0 * t, 4e-3 * window * np.sin(2.0 * math.pi * 1.1 * t), 0 * t])

    base = (0.0, 0.0, 0.0, 1.0)
    phases = [
        Phase("free", free, True),
        Phase("approach", approach, False),
        Phase("slide", ramp(3.0, sliding, base), True, (0.2e-3, 0.5e-3)),
        Phase("wedge", ramp(3.0, wedging, base), False),
    ]
    parts = [
        Part("door", moving.vertices, moving.faces, free[0, :3], free[0, 3:], moving=True),
        Part("body_side", side.vertices, side.faces, np.zeros(3), np.array(base)),
    ]
    return Scene("door_in_body", seed, 0.5e-3, parts, phases)
