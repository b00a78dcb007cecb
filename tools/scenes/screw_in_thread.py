"""An M12 bolt and a nut with real helical threads and a clearance of about 0.1 mm.

A thread is a grid whose rows follow the helix: the last column joins the first one pitch higher, so crests and flanks
are edges of the mesh. It runs out into a plain cylinder at both ends.
"""

import math
from itertools import pairwise

import numpy as np

from tools.scenes.mesh import Mesh, meet
from tools.scenes.path import ramp, through
from tools.scenes.scene import Part, Phase, Scene

TRIANGLES = 20_000
LEAST = 6_000

PITCH = 1.75e-3
CLEARANCE = 0.08e-3
"""Least distance of bolt and nut while the bolt is screwed, m."""

_BOLT = ((0.0, 5.0e-3), (0.25, 5.0e-3), (0.5625, 5.9e-3), (0.6875, 5.9e-3))
_NUT = ((0.0286, 5.15e-3), (0.2214, 5.15e-3), (0.5339, 6.05e-3), (0.7161, 6.05e-3))
"""(share of the pitch, radius): a flat, a flank, a flat, and the flank back to the first."""

_BOLT_TURNS, _NUT_TURNS = 14, 9


def _section(knots, pieces: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the pitch and radii of one turn's rows: ``pieces`` on each flank, fewer on the flats."""
    closed = [*knots, (knots[0][0] + 1.0, knots[0][1])]
    share, radius = [], []
    for (t0, r0), (t1, r1) in pairwise(closed):
        count = pieces if r0 != r1 else max(1, pieces // 2)
        for k in range(count):
            share.append(t0 + (t1 - t0) * k / count)
            radius.append(r0 + (r1 - r0) * k / count)
    return np.array(share), np.array(radius)


def _thread(knots, plain: float, turns: int, sides: int, pieces: int, ends: tuple[float, float]):
    """Vertices, faces (outward from the axis), and the numbers of the rings of radius ``plain`` at heights ``ends``.

    The helix takes ``turns`` pitches from z = 0 on, the first and the last ones without a thread.
    """
    share, radius = _section(knots, pieces)
    rows = len(share)
    total = rows * turns
    number = np.full((total + rows + 1, sides), -1)
    number[: total + 1] = np.arange((total + 1) * sides).reshape(total + 1, sides)
    number[total + 1 :, 0] = (total + 1) * sides + np.arange(rows)
    k = np.concatenate([np.repeat(np.arange(total + 1), sides), total + 1 + np.arange(rows)])
    j = np.concatenate([np.tile(np.arange(sides), total + 1), np.zeros(rows, dtype=int)])
    turn = k // rows + share[k % rows] - share[0] + j / sides
    raised = np.clip(np.minimum(k / rows + j / sides - 1.0, turns - k / rows - j / sides) / 0.5, 0.0, 1.0)
    r = plain + (radius[k % rows] - plain) * raised
    angle = 2.0 * math.pi * j / sides
    grid = np.stack([r * np.cos(angle), r * np.sin(angle), PITCH * (turn + share[0])], axis=1)
    around = 2.0 * math.pi * np.arange(sides) / sides
    rings = [np.stack([plain * np.cos(around), plain * np.sin(around), np.full(sides, z)], axis=1) for z in ends]
    low = len(grid) + np.arange(sides)
    high = low + sides
    beyond = np.concatenate([number[: total + 1], number[rows : total + rows + 1, :1]], axis=1)
    p, q, s, t = beyond[:-1, :-1], beyond[:-1, 1:], beyond[1:, 1:], beyond[1:, :-1]
    faces = [np.stack(x, axis=-1).reshape(-1, 3) for x in ((p, q, s), (p, s, t))]
    first, last = number[0], number[total]
    faces += [np.stack(x, axis=-1) for x in ((low[:-1], low[1:], first[1:]), (low[:-1], first[1:], first[:-1]))]
    faces += [np.stack(x, axis=-1) for x in ((last[1:-1], last[2:], high[2:]), (last[1:-1], high[2:], high[1:-1]))]
    # where the helix has come round: the step of one pitch is a fan
    a = first[-1]
    step = [(a, low[-1], low[0]), (a, low[0], number[0, 0])]
    step += [(a, number[i, 0], number[i + 1, 0]) for i in range(rows)]
    b = last[1]
    step += [(b, high[1], high[0]), (b, high[0], number[total + rows, 0])]
    step += [(b, number[i + 1, 0], number[i, 0]) for i in range(total, total + rows)]
    # the last sector of the upper ring lies above the row's end, which is the top of the step
    end, tip = last[-1], number[total + rows, 0]
    step += [(end, tip, high[0]), (end, high[0], high[-1])]
    faces.append(np.array(step))
    return np.concatenate([grid, *rings]), np.concatenate(faces), low, high


def _strips(vertices, faces, ring, rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add rings of points after ``ring``; the surface is outward for rows that follow each other upwards."""
    for row in rows:
        upper = len(vertices) + np.arange(len(row))
        a, b, c, d = ring, np.roll(ring, -1), np.roll(upper, -1), upper
        vertices = np.concatenate([vertices, row])
        faces = np.concatenate([faces, np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
        ring = upper
    return vertices, faces, ring


def _hexagon(sides: int, across: float) -> np.ndarray:
    angle = 2.0 * math.pi * np.arange(sides) / sides
    return 0.5 * across / np.cos((angle + math.pi / 6) % (math.pi / 3) - math.pi / 6)


def _circle_of(radius, z: float, sides: int) -> np.ndarray:
    angle = 2.0 * math.pi * np.arange(sides) / sides
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(sides, z)], axis=1)


def _counts(length: float) -> tuple[int, int]:
    return 12 * max(2, round(2.0 * math.pi * 6e-3 / length / 12)), max(1, round(0.6e-3 / length))


def _bolt(length: float) -> Mesh:
    """The tip of the thread's helix at z = 0."""
    sides, pieces = _counts(length)
    top = PITCH * (_BOLT_TURNS + 1) + 0.5e-3
    vertices, faces, low, high = _thread(_BOLT, 5.0e-3, _BOLT_TURNS, sides, pieces, (-0.6e-3, top))
    head = _hexagon(sides, 19e-3)
    rows = [(5.9e-3, top + 0.7e-3), (5.9e-3, top + 6e-3), (head, top + 6e-3), (head, top + 12.5e-3)]
    rows += [(8.2e-3, top + 13.5e-3), (3e-3, top + 13.5e-3)]
    vertices, faces, ring = _strips(vertices, faces, high, [_circle_of(r, z, sides) for r, z in rows])
    faces = [faces, np.stack([np.full(sides, len(vertices)), ring, np.roll(ring, -1)], 1)]
    vertices = np.concatenate([vertices, [[0.0, 0.0, top + 13.5e-3]]])
    tip = len(vertices) + np.arange(sides)
    vertices = np.concatenate([vertices, _circle_of(4.2e-3, -1.4e-3, sides), [[0.0, 0.0, -1.4e-3]]])
    a, b, c, d = low, np.roll(low, -1), np.roll(tip, -1), tip
    faces += [np.stack([a, c, b], 1), np.stack([a, d, c], 1)]
    faces.append(np.stack([np.full(sides, len(vertices) - 1), np.roll(tip, -1), tip], 1))
    return Mesh(vertices, np.concatenate(faces)).rounded()


def _nut(length: float) -> Mesh:
    """The helix starts at z = 0; the thread's polygon lies around its circle, so that chords take no clearance."""
    sides, pieces = _counts(length)
    grow = 1.0 / math.cos(math.pi / sides)
    ends = (-0.8e-3, PITCH * (_NUT_TURNS + 1) + 0.8e-3)
    vertices, faces, low, high = _thread(
        [(t, r * grow) for t, r in _NUT], 6.05e-3 * grow, _NUT_TURNS, sides, pieces, ends
    )
    outer = _hexagon(sides, 19e-3)
    flange = 13e-3
    rows = [(6.9e-3, ends[1] + 0.5e-3), (8.6e-3, ends[1] + 0.5e-3), (outer, ends[1] - 0.3e-3), (outer, 2.2e-3)]
    rows += [(flange, 1.2e-3), (flange, ends[0] - 0.5e-3), (6.9e-3, ends[0] - 0.5e-3)]
    vertices, faces, ring = _strips(vertices, faces, high, [_circle_of(r, z, sides) for r, z in rows])
    a, b, c, d = ring, np.roll(ring, -1), np.roll(low, -1), low
    faces = np.concatenate([faces, np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    return Mesh(vertices, faces[:, ::-1]).rounded()


def build(triangles: int, seed: int) -> Scene:
    """The scene; the bolt starts above the nut."""
    start = 0.09 / math.sqrt(triangles)
    moving = meet(round(0.6 * triangles), _bolt, start)
    nut = meet(triangles - len(moving.faces), _nut, start)
    generator = np.random.default_rng([seed, 2])
    a, b, c = generator.uniform(-1.0, 1.0, 3)
    top = PITCH * (_NUT_TURNS + 1) + 2.7e-3  # the bolt's tip is just above the nut
    free = through(
        [
            ((0.0, 0.0, top + 5e-3), (0.0, 0.0, 0.0)),
            ((0.02 * a, 0.03, top + 0.03), (0.6 * b, 0.4, 0.0)),
            ((-0.04, 0.02 * c, top + 0.05), (-0.4, 0.7 * a, 0.3)),
            ((0.0, 0.0, top + 5e-3), (0.0, 0.0, 0.0)),
        ]
    )
    approach = through(
        [
            ((0.0, 0.0, top + 5e-3), (0.0, 0.0, 0.0)),
            ((0.05e-3 * a, 0.05e-3 * b, top + 1e-3), (0.01 * a, 0.01 * b, 0.5)),
            ((0.0, 0.0, top - 9e-3), (0.0, 0.0, 0.5)),
        ]
    )
    engaged = 2.0 * PITCH

    def screwing(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        angle = 0.9 * window * np.sin(2.0 * math.pi * 0.16 * t)
        height = engaged + PITCH * angle / (2.0 * math.pi)
        return np.column_stack([0 * t, 0 * t, height]), np.column_stack([0 * t, 0 * t, angle])

    def jamming(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        push = 2e-3 * window
        tilt = 0.03 * window
        place = np.column_stack([0.5e-3 * window, 0 * t, engaged - push])
        return place, np.column_stack([tilt * a, tilt, 0.1 * window * np.sin(5.0 * t)])

    base = (0.0, 0.0, 0.0, 1.0)
    phases = [
        Phase("free", free, True),
        Phase("approach", approach, False),
        Phase("slide", ramp(4.0, screwing, base), True, (CLEARANCE, 0.2e-3)),
        Phase("wedge", ramp(2.5, jamming, base), False),
    ]
    parts = [
        Part("bolt", moving.vertices, moving.faces, free[0, :3], free[0, 3:], moving=True),
        Part("nut", nut.vertices, nut.faces, np.zeros(3), np.array(base)),
    ]
    return Scene("screw_in_thread", seed, 0.5e-3, parts, phases)
