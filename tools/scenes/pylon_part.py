"""A duct that has to be pivoted out of an engine pylon through an access hole in its side.

The pylon is a box of frames, side skins with access holes, longerons, ribs, brackets and pipes, 2.4 m long. The duct
has one arm along the bay and one that reaches through a frame into the next: it comes out backwards and turning.
"""

import math
from itertools import pairwise

import numpy as np

from tools.scenes.mesh import Mesh, bend, box, hexagon_bolt, join, meet, rotation, tube
from tools.scenes.outline import Outline, disc, rectangle, union, without
from tools.scenes.path import ramp, through
from tools.scenes.scene import Part, Phase, Scene
from tools.scenes.sheet import finest, near, plate, region

TRIANGLES = 80_000
LEAST = 50_000

_HALF_WIDTH, _HALF_HEIGHT = 0.24, 0.30
_STATIONS = (0.0, 0.4, 0.8, 1.2, 1.6, 2.0, 2.4)
_FRAME = 4.0e-3
_SKIN = 2.0e-3
_FACE = -0.060
"""x of the flat face of the duct's bracket in its body frame."""

_TO_FRAME = rotation("z", 0.5 * math.pi) @ rotation("x", 0.5 * math.pi)
"""Plates made in xy: their x becomes the scene's y, their y its z, their thickness its x."""


def _frame(length: float, generator: np.random.Generator, station: float, small_holes: bool) -> Mesh:
    """A frame with a middle cut-out and small holes: round where the duct reaches through, low where it is fixed."""
    outer = rectangle((0.0, 0.0), (_HALF_WIDTH - 0.004, _HALF_HEIGHT - 0.004), 0.03)
    middle = rectangle((0.0, 0.02), (0.09, 0.13), 0.04)
    if station == 1.2:
        middle = rectangle((0.0, 0.0), (0.10, 0.10), 0.05)
    elif station == 0.8:
        middle = rectangle((0.0, -0.155), (0.10, 0.035), 0.03)
    pipes = [disc((-0.16, 0.19), 0.034), disc((0.16, -0.19), 0.028), disc((0.14, 0.20), 0.022)]
    small: list[Outline] = []
    for side in (-1.0, 1.0):
        for z in np.linspace(-0.12, 0.12, 4):
            small.append(disc((0.19 * side, z + 0.004 * generator.uniform(-1, 1)), 0.009))
    for x in np.linspace(-0.09, 0.06, 4):
        small.append(disc((x, -0.235), 0.012))
    sizes = [
        near([outer, middle], min(length, 0.03), 3.0 * length, 0.8),
        near(pipes, min(length, 0.018), 3.0 * length, 0.8),
    ]
    if small_holes:
        sizes.append(near([union(*small)], min(length, 0.008), 3.0 * length, 0.9))
    outline = without(outer, middle, *pipes, *(small if small_holes else []))
    points, faces = region((-0.25, -0.31), (0.25, 0.31), outline, finest(*sizes), 3.0 * length)
    return plate(points, faces, _FRAME).moved((0.0, 0.0, 0.0), _TO_FRAME)


def _skin(length: float, access: bool, riveted: bool) -> Mesh:
    """A side skin in xz with a hole into every bay; ``access``: with the large one that the duct comes out through."""
    outer = rectangle((1.2, 0.0), (1.25, _HALF_HEIGHT), 0.02)
    holes: list[Outline] = []
    for a, b in pairwise(_STATIONS):
        if access and a == 0.8:
            holes.append(rectangle((1.0, 0.0), (0.175, 0.23), 0.05))
        else:
            holes.append(rectangle((0.5 * (a + b), 0.0), (0.07, 0.10), 0.045))
    rivets = [
        disc((x + dx, z), 0.005) for x in _STATIONS for dx in (-0.012, 0.012) for z in (-0.27, -0.255, 0.255, 0.27)
    ]
    outline = without(outer, *holes, *([union(*rivets)] if riveted else []))
    sizes = [near([outer, *holes], min(length, 0.03), 4.0 * length, 0.8)]
    if riveted:
        sizes.append(near([union(*rivets)], min(length, 0.006), 4.0 * length, 0.9))
    points, faces = region((-0.07, -0.31), (2.47, 0.31), outline, finest(*sizes), 4.0 * length)
    return plate(points, faces, _SKIN).moved((0.0, 0.0, 0.0), rotation("x", 0.5 * math.pi))


def _structure(length: float, seed: int, small_holes: bool) -> Mesh:
    generator = np.random.default_rng([seed, 3])
    parts = []
    for x in _STATIONS:
        parts.append(_frame(length, generator, x, small_holes).moved((x, 0.0, 0.0)))
    parts.append(_skin(length, True, small_holes).moved((0.0, -_HALF_WIDTH, 0.0)))
    parts.append(_skin(length, False, small_holes).moved((0.0, _HALF_WIDTH, 0.0)))
    for y in (-1.0, 1.0):
        for z in (-1.0, 1.0):
            parts.append(
                box((2.5, 0.035, 0.012), 2.0 * length, (1.2, y * (_HALF_WIDTH - 0.022), z * (_HALF_HEIGHT + 0.0075)))
            )
    # ribs on the skins
    for a, b in pairwise(_STATIONS):
        for z in (-0.255, 0.255):
            for y in (-1.0, 1.0):
                size = (b - a - 0.03, 0.016, 0.003)
                parts.append(box(size, 2.0 * length, (0.5 * (a + b), y * (_HALF_WIDTH - 0.0100), z)))
    return join(parts).rounded()


def _pipes(length: float) -> Mesh:
    """Pipes through all frames, with couplings and clamps."""
    sides = int(np.clip(round(0.25 / length), 8, 48))
    routes = (
        (
            [(-0.12, -0.16, 0.19), (0.5, -0.16, 0.19), (1.4, -0.155, 0.188), (2.2, -0.16, 0.19), (2.52, -0.16, 0.24)],
            0.022,
        ),
        ([(-0.12, 0.16, -0.19), (0.9, 0.16, -0.19), (1.7, 0.16, -0.188), (2.52, 0.16, -0.19)], 0.016),
        ([(-0.12, 0.14, 0.20), (1.2, 0.14, 0.20), (2.5, 0.142, 0.20), (2.52, 0.20, 0.16)], 0.011),
    )
    parts = []
    for corners, radius in routes:
        parts.append(tube(bend(np.array(corners), 0.10, 0.5 * length), radius, sides))
        for x in (0.2, 0.95, 1.8):
            y, z = (
                np.interp(x, [c[0] for c in corners], [c[1] for c in corners]),
                np.interp(x, [c[0] for c in corners], [c[2] for c in corners]),
            )
            line = np.linspace((x - 0.02, y, z), (x + 0.02, y, z), 5)
            parts.append(tube(line, np.array([1.2, 1.35, 1.35, 1.35, 1.2]) * radius, 6 * max(1, sides // 6)))
    return join(parts).rounded()


def _brackets(length: float) -> Mesh:
    """Angle brackets with bolts on the frames."""
    parts = []
    sides = 6 * int(np.clip(round(0.06 / length), 1, 5))
    hole = disc((0.0, 0.0), 0.006)
    outline = without(rectangle((0.0, 0.0), (0.022, 0.018), 0.006), hole)
    size = finest(near([outline], min(length, 0.01), 0.03), near([hole], min(length, 0.005), 0.03))
    points, faces = region((-0.03, -0.03), (0.03, 0.03), outline, size, 0.03)
    web = plate(points, faces, 0.003).moved((0.0, 0.0, 0.0), _TO_FRAME)
    for x in _STATIONS[:-1]:
        for y, z in ((-0.20, 0.10), (0.20, 0.02), (0.165, -0.10), (-0.195, -0.15)):
            place = np.array([x + 0.5 * _FRAME + 0.0020, y, z])
            parts.append(web.moved(place))
            parts.append(box((0.030, 0.040, 0.0030), 2.0 * length, place + (0.0170, 0.0, -0.0200)))
            bolt = hexagon_bolt(0.013, 0.006, 0.0050, 0.0030, sides)
            parts.append(bolt.moved(place + (0.0020, 0.0, 0.0), rotation("y", 0.5 * math.pi)))
    return join(parts).rounded()


def _duct(length: float) -> Mesh:
    """Corner at the origin: one arm up and down in z, one along +x, a bracket with a flat face at -x."""
    sides = int(np.clip(round(0.35 / length), 10, 60))
    step = 0.5 * length
    arm = bend(np.array([(0.0, 0.0, -0.15), (0.0, 0.0, -0.04), (0.12, 0.0, 0.0), (0.31, 0.0, 0.0)]), 0.07, step)
    parts = [tube(arm, 0.030, sides)]
    stub = bend(np.array([(0.005, 0.0, 0.0), (0.0, 0.0, 0.06), (0.0, 0.0, 0.14)]), 0.05, step)
    parts.append(tube(stub, 0.022, sides))
    bolts = 6
    ring = [
        disc((0.0385 * math.cos(2 * math.pi * k / bolts), 0.0385 * math.sin(2 * math.pi * k / bolts)), 0.0035)
        for k in range(bolts)
    ]
    outline = without(disc((0.0, 0.0), 0.046), *ring)
    size = finest(near([outline], min(length, 0.012), 0.03), near([union(*ring)], min(length, 0.003), 0.03))
    points, faces = region((-0.05, -0.05), (0.05, 0.05), outline, size, 0.03)
    flange = plate(points, faces, 0.006)
    parts.append(flange.moved((0.0, 0.0, -0.1465)))
    parts.append(flange.moved((0.3070, 0.0, 0.0), rotation("y", 0.5 * math.pi)))
    small = without(disc((0.0, 0.0), 0.034), disc((0.0, 0.027), 0.003), disc((0.0, -0.027), 0.003))
    points, faces = region((-0.04, -0.04), (0.04, 0.04), small, near([small], min(length, 0.006), 0.02), 0.02)
    parts.append(plate(points, faces, 0.005).moved((0.0, 0.0, 0.1380)))
    # the bracket: a plate with slots and two webs that carry it
    slots = [rectangle((0.0, z), (0.018, 0.006), 0.0055) for z in (-0.035, 0.035)]
    outline = without(rectangle((0.0, 0.0), (0.035, 0.055), 0.01), *slots)
    size = near([outline, *slots], min(length, 0.008), 0.03)
    points, faces = region((-0.04, -0.06), (0.04, 0.06), outline, size, 0.03)
    parts.append(plate(points, faces, 0.004).moved((_FACE + 0.002, 0.0, -0.02), _TO_FRAME))
    for y in (-0.014, 0.014):
        parts.append(box((0.042, 0.003, 0.07), length, (_FACE + 0.025, y, -0.03)))
    return join(parts).rounded()


def build(triangles: int, seed: int) -> Scene:
    """The scene; the duct starts where it is mounted."""
    scale = 1.0 / math.sqrt(triangles)
    moving = meet(round(0.15 * triangles), _duct, 2.0 * scale)
    pipes = meet(round(0.10 * triangles), _pipes, 5.7 * scale)
    brackets = meet(round(0.15 * triangles), _brackets, 3.0 * scale)
    left = triangles - len(moving.faces) - len(pipes.faces) - len(brackets.faces)
    structure = meet(left, lambda length: _structure(length, seed, triangles >= 75_000), 9.0 * scale)
    generator = np.random.default_rng([seed, 2])
    a, b, c = generator.uniform(0.6, 1.0, 3)
    x = 0.92
    still = (0.0, 0.0, 0.0)
    out = through(
        [
            ((x, 0.0, 0.0), still),
            ((0.870, 0.0, 0.0), still),
            ((0.890, -0.02, 0.0), (0.0, 0.0, -0.35)),
            ((0.905, -0.10, 0.0), (0.0, 0.0, -0.80)),
            ((0.940, -0.20, 0.0), (0.0, 0.0, -1.10)),
            ((0.98, -0.45, 0.0), (0.0, 0.0, -1.30)),
        ]
    )
    approach = through(
        [
            ((0.905, -0.10, 0.0), (0.0, 0.0, -0.80)),
            ((0.890, -0.02, 0.0), (0.0, 0.0, -0.35)),
            ((0.890, 0.0, 0.0), still),
            ((0.858, 0.02, 0.01), still),
        ]
    )
    resting = 0.8 + 0.5 * _FRAME - _FACE + 0.35e-3

    def sliding(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = 0.025 * a * window * np.sin(2.0 * math.pi * 0.8 * t)
        z = 0.020 * b * window * np.sin(2.0 * math.pi * 1.1 * t)
        turn = 0.08 * c * window * np.sin(2.0 * math.pi * 0.5 * t)
        return np.column_stack([resting + 0 * t, y, z]), np.column_stack([turn, 0 * t, 0 * t])

    def wedging(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place = np.column_stack([x - 0.02 * window, 0.02 * window * np.sin(2.0 * t), 0.05 * window])
        return place, np.column_stack([0.1 * window * np.sin(3.0 * t), 0.40 * window, 0.2 * window * a])

    base = (0.0, 0.0, 0.0, 1.0)
    phases = [
        Phase("pivot_out", out, True),
        Phase("approach", approach, False),
        Phase("slide", ramp(3.0, sliding, base), True, (0.2e-3, 0.5e-3)),
        Phase("wedge", ramp(3.0, wedging, base), False),
    ]
    home = np.array(base)
    parts = [Part("duct", moving.vertices, moving.faces, out[0, :3], out[0, 3:], moving=True)]
    for name, mesh in (("structure", structure), ("pipes", pipes), ("brackets", brackets)):
        parts.append(Part(name, mesh.vertices, mesh.faces, np.zeros(3), home))
    return Scene("pylon_part", seed, 0.5e-3, parts, phases)
