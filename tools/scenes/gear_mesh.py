"""Two spur gears with involute flanks and backlash; the pinion rolls around the wheel. And plain gears on axles."""

import itertools
import math

import numpy as np

from tools.scenes.mesh import Mesh, divide, join, lathe, meet, ring
from tools.scenes.path import ramp, through
from tools.scenes.scene import Part, Phase, Scene

TRIANGLES = 20_000
LEAST = 10_000

MODULE = 3.0e-3
TEETH = (19, 31)
BACKLASH = 0.6e-3
"""Free way of a tooth along the pitch circle, m."""

CENTRES = 0.5 * MODULE * (TEETH[0] + TEETH[1])
_PRESSURE = math.radians(20.0)
_WIDTH = 0.020

BORE_SIDES = 16
PLAIN_WIDTH, HUB, COLLAR = 10e-3, 5e-3, 2e-3
PIN, PIN_REACH, PIN_APART = 2e-3, 13e-3, 5e-3
"""Radius of the pins on a gear, and where they stand, m."""
PLAY = 0.2e-3
"""Between an axle and its bore, m of radius."""


def _outline(teeth: int, pieces: int) -> np.ndarray:
    """(n, 2) polar points (angle, radius) counter-clockwise; the middle of a tooth is at angle 0."""
    pitch = 0.5 * MODULE * teeth
    base = pitch * math.cos(_PRESSURE)
    root, tip = pitch - 1.25 * MODULE, pitch + MODULE

    def involute(radius: np.ndarray) -> np.ndarray:
        t = np.sqrt(np.maximum(radius**2 / base**2 - 1.0, 0.0))
        return t - np.arctan(t)

    half = (0.25 * math.pi * MODULE - 0.25 * BACKLASH) / pitch + float(involute(np.array([pitch]))[0])
    low = max(root + 0.1 * MODULE, base)
    flank = low + (tip - low) * np.linspace(0.0, 1.0, pieces + 1) ** 0.8
    across = half - involute(flank)
    foot = (half + 0.02, root)
    rising = np.column_stack([-across, flank])
    tooth = [
        np.array([[-foot[0], foot[1]]]),
        rising,
        np.column_stack([across, flank])[::-1],
        np.array([[foot[0], foot[1]]]),
    ]
    one = np.concatenate(tooth)
    step = 2.0 * math.pi / teeth
    return np.concatenate([one + np.array([k * step, 0.0]) for k in range(teeth)])


def _gear(length: float, teeth: int) -> Mesh:
    """A gear about z: bore, hub, web and toothed rim."""
    pieces = max(2, round(0.004 / length))
    outline = _outline(teeth, pieces)
    angle, radius = outline.T
    pitch = 0.5 * MODULE * teeth
    rim, hub, bore = pitch - 2.4 * MODULE, 0.30 * pitch + 4e-3, 0.15 * pitch + 3e-3
    half, web = 0.5 * _WIDTH, 0.2 * _WIDTH
    # (share of the tooth outline, radius besides, z): around the section, counter-clockwise in (radius, z)
    steps = [(0.0, bore, -1.2 * half), (0.0, hub, -1.2 * half), (0.0, hub + 0.5e-3, -web), (0.0, rim - 0.5e-3, -web)]
    steps += [(0.0, rim, -half), (1.0, 0.0, -half)]
    steps += [(f, r, -z) for f, r, z in reversed(steps)]
    section = divide(
        np.array([(r + f * pitch, z, f) for f, r, z in steps]) * (1.0, 1.0, 1e-9), 2.5 * length, closed=True
    )
    share = np.clip((section[:, 2] * 1e9), 0.0, 1.0)
    plain = section[:, 0] - share * pitch
    r = np.where(share[None] > 0.0, plain[None] + share[None] * radius[:, None], plain[None])
    points = np.stack(
        [r * np.cos(angle)[:, None], r * np.sin(angle)[:, None], np.broadcast_to(section[:, 1], r.shape)], axis=-1
    )
    return ring(points).rounded()


def _between(inner: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """(a + b, 3, 3) triangles between two closed rows of points (a, 3) and (b, 3) around z, joined in order of angles.

    Angles that differ in the last digits of sine and cosine, which processors do not share, count as the same. Their
    normals point up where the first row is the inner one, and outwards where it is the upper one.
    """
    rows = []
    for points, other in ((inner, False), (outer, True)):
        angles = np.round(np.arctan2(points[:, 1], points[:, 0]), 9) % (2.0 * math.pi)
        order = np.argsort(angles, kind="stable")
        rows += [(angles[i], other, points[i]) for i in order]
    rows.sort(key=lambda row: row[:2])
    last = {other: next(row[2] for row in reversed(rows) if row[1] == other) for other in (False, True)}
    triangles = []
    for _, other, point in rows:
        triangles.append([last[False], last[True], point])
        last[other] = point
    return np.array(triangles)


def spur_gear(teeth: int, bore: float) -> Mesh:
    """A plain gear about z of few triangles, 10 mm wide, with a hub that stands out by 2 mm below and above.

    Each flank is three strips; the bore (m, radius of its corners) and the hub have ``BORE_SIDES`` sides.
    """
    angle, radius = _outline(teeth, 3).T
    few = 2.0 * math.pi * np.arange(BORE_SIDES) / BORE_SIDES
    hub, rim, half = bore + HUB, 0.5 * MODULE * (teeth - 3.5), 0.5 * PLAIN_WIDTH

    def row(around: np.ndarray, reach: np.ndarray | float, height: float) -> np.ndarray:
        across = np.broadcast_to(reach, around.shape)
        return np.stack([across * np.cos(around), across * np.sin(around), np.full(len(around), height)], axis=1)

    triangles = [
        _between(row(few, bore, -half - COLLAR), row(few, bore, half + COLLAR)),
        _between(row(angle, radius, half), row(angle, radius, -half)),
    ]
    for side in (-1.0, 1.0):
        rows = [
            *(
                row(few, bore, side * (half + COLLAR)),
                row(few, hub, side * (half + COLLAR)),
                row(few, hub, side * half),
            ),
            *(row(angle, rim, side * half), row(angle, radius, side * half)),
        ]
        for inner, outer in itertools.pairwise(rows):
            triangles.append(_between(inner, outer)[:, :: round(side)])
    vertices, faces = np.unique(np.round(np.concatenate(triangles).reshape(-1, 3), 12), axis=0, return_inverse=True)
    return Mesh(vertices, faces.reshape(-1, 3)).rounded()


def with_pins(gear: Mesh) -> Mesh:
    """A gear with four pins on its upper face, in two pairs between which a bar of 5.5 mm turns it."""
    pins = []
    for x in (-PIN_REACH, PIN_REACH):
        for y in (-PIN_APART, PIN_APART):
            profile = np.array([(PIN, 0.5 * PLAIN_WIDTH - 0.5e-3), (PIN, 0.5 * PLAIN_WIDTH + 7.5e-3)])
            pins.append(lathe(profile, 8).moved((x, y, 0.0)))
    return join([gear, *pins]).rounded()


def axle(bore: float, length: float) -> Mesh:
    """A rod about z with as many sides as a bore, 0.2 mm thinner than it all around."""
    thick = bore * math.cos(math.pi / BORE_SIDES) - PLAY
    return lathe(np.array([(thick, -0.5 * length), (thick, 0.5 * length)]), BORE_SIDES).rounded()


def build(triangles: int, seed: int) -> Scene:
    """The scene; the pinion starts beside the wheel, out of mesh."""
    share = TEETH[0] / sum(TEETH)
    start = 0.3 / math.sqrt(triangles)
    moving = meet(round(share * triangles), lambda length: _gear(length, TEETH[0]), start)
    wheel = meet(triangles - len(moving.faces), lambda length: _gear(length, TEETH[1]), start)
    generator = np.random.default_rng([seed, 2])
    a, b, c = generator.uniform(0.5, 1.0, 3)
    # the wheel's tooth points to +x; the pinion shows a space there
    matched = math.pi * (1.0 + 1.0 / TEETH[0])
    base = (0.0, 0.0, math.sin(0.5 * matched), math.cos(0.5 * matched))
    apart = CENTRES + 2.6 * MODULE
    free = through(
        [
            ((apart, 0.0, 0.0), (0.0, 0.0, 0.0)),
            ((apart + 0.05 * a, 0.03 * b, 0.04), (0.3 * c, 0.2, 0.2)),
            ((apart + 0.02, -0.04 * c, 0.06 * a), (-0.2, 0.3 * b, -0.2)),
            ((apart, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ],
        base,
    )
    approach = through(
        [((apart + 0.2, 0.02, 0.0), (0.0, 0.0, 0.0)), ((CENTRES - 3e-3, 0.0, 0.0), (0.0, 0.0, 0.0))], base
    )

    def rolling(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        around = 0.26 * window * np.sin(2.0 * math.pi * 0.2 * t)
        turn = around * (1.0 + TEETH[1] / TEETH[0])
        place = CENTRES * np.column_stack([np.cos(around), np.sin(around), 0 * t])
        place[:, 2] = 2e-3 * window * np.sin(3.0 * t)
        return place, np.column_stack([0 * t, 0 * t, turn])

    def wedging(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        turn = 0.08 * window * np.sin(2.0 * math.pi * 0.8 * t)
        place = np.column_stack([CENTRES - 2e-3 * window, 1e-3 * window, 0 * t])
        return place, np.column_stack([0.01 * window, 0 * t, turn])

    phases = [
        Phase("free", free, True),
        Phase("approach", approach, False),
        Phase("slide", ramp(4.0, rolling, base), True, (0.2e-3, 0.5e-3)),
        Phase("wedge", ramp(2.5, wedging, base), False),
    ]
    parts = [
        Part("pinion", moving.vertices, moving.faces, free[0, :3], free[0, 3:], moving=True),
        Part("wheel", wheel.vertices, wheel.faces, np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])),
    ]
    return Scene("gear_mesh", seed, 0.5e-3, parts, phases)
