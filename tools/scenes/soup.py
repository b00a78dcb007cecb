"""A dragon with a spiny back on a plinth, a cloud of loose triangles before its mouth, and a bumpy stone that moves.

The cloud has no inside: triangles of all sizes and shapes, needles among them, that do not hang together.
"""

import math

import numpy as np

from tools.scenes.mesh import Mesh, bend, box, capped_up, frames, join, meet, rotation, sphere, tube
from tools.scenes.outline import disc, polygon, without
from tools.scenes.path import matrix, ramp, through
from tools.scenes.scene import Part, Phase, Scene
from tools.scenes.sheet import finest, near, region, thicken

TRIANGLES = 30_000
LEAST = 3_000

_PLINTH_TOP = 0.0


def _spine(count: int) -> np.ndarray:
    """From the tip of the tail to the snout."""
    knots = np.array(
        [
            (-0.20, 0.10, 0.012),
            (-0.215, 0.02, 0.014),
            (-0.17, -0.055, 0.020),
            (-0.09, -0.06, 0.040),
            (-0.03, -0.01, 0.062),
            (0.03, 0.01, 0.070),
            (0.085, 0.0, 0.085),
            (0.115, -0.005, 0.125),
            (0.125, 0.0, 0.165),
            (0.155, 0.0, 0.185),
            (0.20, 0.0, 0.172),
        ]
    )
    t = np.linspace(0.0, len(knots) - 1.0, count)
    k = np.minimum(t.astype(int), len(knots) - 2)
    u = (t - k)[:, None]
    padded = np.concatenate([[2 * knots[0] - knots[1]], knots, [2 * knots[-1] - knots[-2]]])
    p0, p1, p2, p3 = padded[k], padded[k + 1], padded[k + 2], padded[k + 3]
    return 0.5 * (2 * p1 + (p2 - p0) * u + (2 * p0 - 5 * p1 + 4 * p2 - p3) * u**2 + (3 * p1 - p0 - 3 * p2 + p3) * u**3)


def _trunk(length: float, phase: np.ndarray) -> Mesh:
    count, sides = max(24, round(0.75 / length)), max(8, round(0.16 / length))
    spine = _spine(count)
    tangent, _, _ = frames(spine)
    up = np.array([0.0, 0.0, 1.0]) - tangent * tangent[:, 2:]
    # where the neck is upright the back points to the tail
    up = up - 0.6 * np.clip(tangent[:, 2:], 0.0, 1.0) * (np.array([1.0, 0.0, 0.0]) - tangent * tangent[:, :1])
    up /= np.linalg.norm(up, axis=1)[:, None]
    t = np.linspace(0.0, 1.0, count)
    girth = np.interp(
        t,
        [0.0, 0.10, 0.25, 0.38, 0.48, 0.58, 0.68, 0.78, 0.86, 0.90, 0.94, 0.98, 1.0],
        [0.003, 0.007, 0.014, 0.026, 0.034, 0.031, 0.021, 0.016, 0.019, 0.024, 0.018, 0.013, 0.006],
    )
    angle = 2.0 * math.pi * np.arange(sides) / sides
    scales = 0.035 * np.sin(70.0 * math.pi * t[:, None] + phase[0]) * np.sin(8.0 * angle + phase[1])
    lumps = 0.05 * np.sin(11.0 * t[:, None] + phase[2]) * np.cos(3.0 * angle + phase[3])
    spikes = np.maximum(np.cos(angle), 0.0) ** 24 * (0.5 + 0.5 * np.cos(46.0 * math.pi * t[:, None])) ** 3
    spikes = spikes * np.interp(t, [0.0, 0.1, 0.8, 0.95, 1.0], [0.3, 0.9, 0.8, 0.2, 0.0])[:, None]
    r = girth[:, None] * (1.0 + scales + lumps + spikes)
    ring = up[:, None] * np.cos(angle)[None, :, None] + np.cross(tangent, up)[:, None] * np.sin(angle)[None, :, None]
    return capped_up(spine[:, None] + r[:, :, None] * ring)


def _limbs(length: float) -> list[Mesh]:
    parts = []
    sides = max(6, round(0.06 / length))
    step = max(length, 1.5e-3)
    for x, z, out in ((-0.045, 0.055, 0.050), (0.055, 0.070, 0.045)):
        for s in (-1.0, 1.0):
            y = -0.02 if x < 0 else 0.01
            line = [
                (x, y + 0.018 * s, z),
                (x - 0.015, y + out * s, z - 0.005),
                (x + 0.010, y + out * s, 0.022),
                (x + 0.035, y + out * s, 0.012),
            ]
            points = bend(np.array(line), 0.03, step)
            thick = np.interp(np.linspace(0.0, 1.0, len(points)), [0.0, 0.4, 0.8, 1.0], [0.017, 0.012, 0.008, 0.009])
            parts.append(tube(points, thick, sides))
    for s in (-1.0, 1.0):
        horn = bend(
            np.array([(0.150, 0.010 * s, 0.200), (0.135, 0.016 * s, 0.225), (0.105, 0.022 * s, 0.238)]), 0.02, step
        )
        parts.append(tube(horn, np.linspace(0.005, 0.0008, len(horn)), sides))
        parts.append(sphere(0.0045, sides).moved((0.166, 0.0155 * s, 0.196)))
        # wings: scalloped skins, thickened, raised and swept
        outline = without(
            polygon(((0.0, 0.0), (0.05, -0.01), (0.15, 0.01), (0.17, 0.06), (0.10, 0.11), (0.02, 0.05)), 0.006),
            disc((0.115, -0.022), 0.032), disc((0.185, 0.02), 0.028), disc((0.048, -0.035), 0.030),
        )  # fmt: skip
        size = finest(near([outline], 1.5 * length, 4.0 * length))
        points, faces = region((-0.01, -0.02), (0.18, 0.12), outline, size, 4.0 * length)
        arch = 0.02 * np.sin(18.0 * points[:, 0]) + 0.004 * np.cos(90.0 * points[:, 1])
        wing = thicken(np.column_stack([points, arch]), faces, 0.0012)
        flip = np.diag([1.0, s, 1.0])
        # local x to the side, local y to the back and up
        turn = rotation("z", 0.5 * math.pi) @ rotation("y", -0.55)
        wing = wing.moved((0.01, 0.015, 0.095), turn)
        faces = wing.faces if s > 0 else wing.faces[:, ::-1]
        parts.append(Mesh(wing.vertices @ flip, faces))
    return parts


def _dragon(length: float, phase: np.ndarray) -> Mesh:
    return join([_trunk(length, phase), *_limbs(length)]).rounded()


def _stone(length: float, phase: np.ndarray) -> Mesh:
    ball = sphere(1.0, max(8, round(0.12 / length)))
    x, y, z = (6.0 * ball.vertices).T
    lumps = 0.10 * np.sin(0.8 * x + phase[0]) * np.cos(0.7 * y + phase[1]) + 0.06 * np.sin(1.4 * z + phase[2])
    pits = 0.02 * np.sin(2.3 * x + phase[3]) * np.sin(2.7 * y) * np.sin(2.5 * z)
    return Mesh(ball.vertices * (0.022, 0.018, 0.016) * (1.0 + lumps + pits)[:, None], ball.faces).rounded()


def _cloud(count: int, generator: np.random.Generator) -> Mesh:
    """Loose triangles in a cone before the mouth."""
    along = generator.uniform(0.0, 1.0, count) ** 0.7
    angle = generator.uniform(0.0, 2.0 * math.pi, count)
    out = generator.uniform(0.0, 1.0, count) ** 0.5 * (0.004 + 0.05 * along)
    centre = np.column_stack([0.215 + 0.14 * along, out * np.cos(angle), 0.168 - 0.04 * along + out * np.sin(angle)])
    size = 0.003 * np.exp(generator.uniform(-1.0, 1.0, count))
    corners = generator.normal(size=(count, 3, 3))
    needle = generator.random(count) < 0.2
    corners[needle, 2] = corners[needle, 1] + 0.03 * corners[needle, 2]
    corners = corners / np.maximum(np.linalg.norm(corners, axis=2).max(axis=1), 1e-9)[:, None, None]
    vertices = (centre[:, None] + size[:, None, None] * corners).reshape(-1, 3)
    return Mesh(vertices, np.arange(3 * count, dtype=np.int32).reshape(-1, 3)).rounded()


def build(triangles: int, seed: int) -> Scene:
    """The scene; the stone starts above the dragon's back."""
    generator = np.random.default_rng([seed, 1])
    phase, other = generator.uniform(0.0, 2.0 * math.pi, (2, 4))
    cloud = _cloud(round(0.05 * triangles), generator)
    moving = meet(round(0.15 * triangles), lambda length: _stone(length, other), 0.3 / math.sqrt(triangles))
    plinth = box((0.62, 0.34, 0.03), 0.06, (0.06, 0.0, _PLINTH_TOP - 0.015)).rounded()
    left = triangles - len(cloud.faces) - len(moving.faces) - len(plinth.faces)
    dragon = meet(left, lambda length: _dragon(length, phase), 0.5 / math.sqrt(triangles))
    a, b, c = generator.uniform(0.6, 1.0, 3)
    still = (0.0, 0.0, 0.0)
    free = through(
        [
            ((0.0, 0.0, 0.27), still),
            ((-0.12, 0.12 * a, 0.27), (0.5, 0.3 * b, 0.2)),
            ((-0.05, -0.22, 0.26 + 0.02 * c), (-0.4, 0.5, -0.3 * a)),
            ((0.0, 0.0, 0.28), still),
        ]
    )
    approach = through(
        [((-0.05, 0.0, 0.22), still), ((-0.02, 0.0, 0.15), (0.2, 0.1, 0.0)), ((-0.02, 0.0, 0.112), (0.3, 0.2, 0.0))]
    )
    turn = np.array([0.0, 0.0, math.sin(0.3 * b), math.cos(0.3 * b)])
    lowest = float((moving.vertices @ matrix(turn).T)[:, 2].min())

    def sliding(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = 0.26 + 0.04 * window * np.sin(2.0 * math.pi * 0.7 * t)
        y = 0.10 * window * np.sin(2.0 * math.pi * 0.4 * t)
        spin = 0.5 * window * np.sin(2.0 * math.pi * 0.25 * t)
        place = np.column_stack([x, y, _PLINTH_TOP - lowest + 0.35e-3 + 0 * t])
        return place, np.column_stack([0 * t, 0 * t, spin])

    # down between the plinth, the foreleg and the breast
    wedge = through(
        [
            ((0.20, 0.0, 0.05), still),
            ((0.135, 0.005, 0.035), (0.2 * a, 0.3, 0.0)),
            ((0.085, 0.010, 0.008), (0.3 * a, 0.5, 0.2)),
        ]
    )
    base = (0.0, 0.0, 0.0, 1.0)
    home = np.array(base)
    phases = [
        Phase("free", free, True),
        Phase("approach", approach, False),
        Phase("slide", ramp(4.0, sliding, turn), True, (0.2e-3, 0.5e-3)),
        Phase("wedge", wedge, False),
    ]
    parts = [
        Part("stone", moving.vertices, moving.faces, free[0, :3], free[0, 3:], moving=True),
        Part("dragon", dragon.vertices, dragon.faces, np.zeros(3), home),
        Part("cloud", cloud.vertices, cloud.faces, np.zeros(3), home, closed=False),
        Part("plinth", plinth.vertices, plinth.faces, np.zeros(3), home),
    ]
    return Scene("soup", seed, 0.5e-3, parts, phases)
