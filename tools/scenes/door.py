"""A car door and the body side around it, in car coordinates: x to the rear, y outwards, z up, in m.

The door is an outer skin, a pressed inner panel that reaches 80 mm inwards with cut-outs and beads, and what is between
and on them. The body side has two rebates, a step from the skin down to a flange, of which the first takes the door.
"""

import math

import numpy as np

from tools.scenes.mesh import Mesh, bend, box, hexagon_bolt, join, rotation, sphere, tube
from tools.scenes.outline import Outline, disc, grown, polygon, polygon_ring, rectangle, slot, toward, union, without
from tools.scenes.sheet import finest, near, region, rings, smooth_step, thicken

THICKNESS = 1.0e-3
"""Of every sheet, m."""

CENTRE = np.array([0.50, -0.04, 0.45])
"""Origin of the door's body frame in car coordinates."""

GAP = 8.0e-3
"""Between the door's edge and the body, all round, m."""

PAN = -0.080
"""Middle of the inner panel's flat part, y."""

FLANGE = -0.090
"""Middle of the flange at the bottom of the rebate, y."""

DOOR_CORNERS = ((0.02, 0.0), (0.97, 0.0), (1.05, 0.62), (0.97, 1.08), (0.52, 1.05), (0.0, 0.66))
REAR_CORNERS = ((1.17, 0.0), (1.70, 0.0), (1.97, 0.40), (1.97, 0.66), (1.80, 1.05), (1.15, 1.08))
WINDOW_CORNERS = ((0.13, 0.68), (0.975, 0.68), (0.915, 1.02), (0.535, 0.995))
CORNER = 0.05

door_outline = polygon(DOOR_CORNERS, CORNER)
rear_outline = polygon(REAR_CORNERS, CORNER)
window_outline = polygon(WINDOW_CORNERS, 0.03)

OPENING_CENTRE = np.array([0.60, 0.33])
OPENING_HALF = np.array([0.125, 0.095])
opening_outline = rectangle(OPENING_CENTRE, OPENING_HALF, 0.025)
"""Through which the motor of the window lifter is put in."""

_STRIKER = ((0.986, 0.43), (0.991, 0.47))


def crown(p: np.ndarray) -> np.ndarray:
    """y of the smooth skin at (n, 2) points (x, z)."""
    return -((p[:, 1] - 0.45) ** 2) / 8.0 - (p[:, 0] - 0.5) ** 2 / 16.0


def _dent(p: np.ndarray, outline: Outline, width: float) -> np.ndarray:
    """0 outside an outline, 1 from ``width`` inside it on, smooth between."""
    t = np.clip(-outline(p) / width, 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def _rounds(corners, radius: float) -> list[Outline]:
    """Circles at the corners of an outline, where its mesh has to be finer than along its straight edges."""
    return [disc(c, radius) for c in corners]


def _door_rings(by: list[float], length: float) -> list[np.ndarray]:
    """Polylines along the door's outline moved outwards by several distances, point for point."""
    arc = int(np.clip(round(0.12 / length), 2, 8))
    return [polygon_ring(DOOR_CORNERS, CORNER, b, arc, 2.0 * length) for b in by]


def _blend(outer: np.ndarray, inner: np.ndarray, length: float) -> list[np.ndarray]:
    """Polylines from an outer to an inner one, the outer left out."""
    rows = max(1, round(0.12 / length))
    return [outer + (inner - outer) * (k / rows) for k in range(1, rows + 1)]


_WINDOW_MIDDLE = (0.62, 0.80)


def _skin_of_rings(length: float) -> Mesh:
    (edge,) = _door_rings([0.0], length)
    points, faces = rings([edge, *_blend(edge, toward(edge, _WINDOW_MIDDLE, window_outline), length)])
    return thicken(np.column_stack([points[:, 0], crown(points), points[:, 1]]), faces, THICKNESS)


def _pan_of_rings(length: float) -> Mesh:
    edge, hem, wall = _door_rings([-0.001, -0.014, -0.030], length)
    points, faces = rings([edge, hem, wall, *_blend(wall, toward(wall, _WINDOW_MIDDLE, window_outline), length)])
    flat = np.arange(len(points)) >= 2 * len(edge)
    y = np.where(flat, PAN, crown(points) - THICKNESS - 0.3e-3)
    return thicken(np.column_stack([points[:, 0], y, points[:, 1]]), faces, THICKNESS)


def _side_of_rings(length: float) -> Mesh:
    top, foot, hole = _door_rings([GAP, GAP - 0.006, -0.048], length)
    middle = np.array([0.5, 0.5])
    rim = toward(middle + 4.0 * (top - middle), middle, rectangle((0.53, 0.54), (0.72, 0.68), 0.15))
    points, faces = rings([*_blend(top, rim, length)[::-1], top, foot, hole])
    flat = np.arange(len(points)) >= len(points) - 2 * len(top)
    y = np.where(flat, FLANGE, crown(points))
    return thicken(np.column_stack([points[:, 0], y, points[:, 1]]), faces, THICKNESS)


def _skin(length: float, detail: int) -> Mesh:
    pocket, groove = disc((0.855, 0.53), 0.055), slot((0.16, 0.17), (0.84, 0.15), 0.035)
    lock = disc((0.955, 0.53), 0.009)
    coarse = 3.0 * length
    outline = without(door_outline, window_outline, *([lock] if detail > 1 else []))
    rounds = _rounds(DOOR_CORNERS, CORNER) + _rounds(WINDOW_CORNERS, 0.03)
    sizes = [near([door_outline, window_outline], length, coarse), near(rounds, min(length, 0.03), coarse, 0.8)]
    if detail > 0:
        sizes += [near([pocket], min(length, 0.025), coarse, 0.8), near([groove], min(length, 0.03), coarse, 0.8)]
    if detail > 1:
        sizes.append(near([lock], 0.007, coarse, 0.9))
    points, faces = region((-0.01, -0.01), (1.06, 1.09), outline, finest(*sizes), coarse)
    y = crown(points)
    if detail > 0:
        y = y - 0.014 * _dent(points, pocket, 0.045) - 0.006 * _dent(points, groove, 0.03)
    return thicken(np.column_stack([points[:, 0], y, points[:, 1]]), faces, THICKNESS)


def _pan(length: float, detail: int, generator: np.random.Generator) -> Mesh:
    edge, wall = grown(door_outline, -0.014), grown(door_outline, -0.030)
    openings = [window_outline, opening_outline, slot(*_STRIKER, 0.009)]
    rounds = [(c, CORNER) for c in DOOR_CORNERS] + [(c, 0.03) for c in WINDOW_CORNERS] + [(c, 0.009) for c in _STRIKER]
    corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    rounds += [(OPENING_CENTRE + np.array(c) * (OPENING_HALF - 0.025), 0.025) for c in corners]
    beads: list[Outline] = []
    small: list[Outline] = []
    shake = 0.01 * generator.uniform(-1.0, 1.0, (6, 2))
    if detail > 0:
        for k, (a, b, radius) in enumerate(
            (
                ((0.27, 0.22), (0.275, 0.22), 0.075),
                ((0.83, 0.23), (0.835, 0.23), 0.035),
                ((0.12, 0.40), (0.12, 0.50), 0.025),
                ((0.84, 0.46), (0.84, 0.55), 0.028),
            )
        ):
            openings.append(slot(a + shake[k], b + shake[k], radius))
            rounds += [(a + shake[k], radius), (b + shake[k], radius)]
    if detail > 1:
        for a, b in (
            (np.array([0.24, 0.575]) + shake[4], np.array([0.68, 0.58]) + shake[4]),
            (np.array([0.42, 0.135]), np.array([0.74, 0.135])),
            (np.array([0.24, 0.38]), np.array([0.38, 0.42])),
        ):
            beads.append(slot(a, b, 0.026))
            rounds += [(a, 0.026), (b, 0.026)]
        around = OPENING_CENTRE + (OPENING_HALF + 0.022) * np.array(
            [(-1, -0.8), (-1, 0.8), (1, -0.8), (1, 0.8), (0.0, 1.0), (0.0, -1.0)]
        )
        rounds += [(c, 0.0045) for c in around] + [((x, 0.065), 0.006) for x in np.linspace(0.12, 0.88, 5)]
        small = [disc(c, radius) for c, radius in rounds[-11:]]
    outline = without(grown(door_outline, -0.001), *openings, *small)
    coarse = 3.0 * length
    sizes = [near([edge, wall, *openings, *beads], length, coarse)]
    for radius in sorted({radius for _, radius in rounds}):
        same = [disc(c, radius) for c, r in rounds if r == radius]
        sizes.append(near(same, min(length, max(0.55 * radius, 0.007)), coarse, 0.9))
    creases = [edge, wall, *([union(*beads), grown(union(*beads), -0.010)] if beads else [])]
    points, faces = region((-0.01, -0.01), (1.06, 1.09), outline, finest(*sizes), coarse, tuple(creases))
    hem = crown(points) - THICKNESS - 0.3e-3
    depth = smooth_step((-door_outline(points) - 0.014) / 0.016)
    y = (1.0 - depth) * hem + depth * PAN
    if beads:
        y = y + 0.009 * smooth_step(-union(*beads)(points) / 0.010)
    return thicken(np.column_stack([points[:, 0], y, points[:, 1]]), faces, THICKNESS)


def _fittings(length: float, detail: int) -> list[Mesh]:
    """What is on and in the door besides its two sheets."""
    sides = int(np.clip(round(0.35 / length), 6, 40))
    beam = tube(np.linspace((0.08, -0.050, 0.31), (0.93, -0.050, 0.10), max(2, round(0.4 / length))), 0.014, sides)
    parts = [beam]
    if detail > 0:
        handle = bend(
            [(0.79, -0.010, 0.53), (0.79, 0.032, 0.53), (0.925, 0.030, 0.53), (0.925, -0.012, 0.53)], 0.02, 0.01
        )
        parts.append(tube(handle, 0.009, sides))
        housing = sphere(1.0, round(1.6 * sides))
        squared = np.sign(housing.vertices) * np.abs(housing.vertices) ** 0.8
        parts.append(
            Mesh(squared * (0.055, 0.095, 0.07), housing.faces).moved((0.11, 0.135, 0.735), rotation("z", 0.2))
        )
        foot = bend([(0.085, -0.02, 0.665), (0.10, 0.03, 0.675), (0.105, 0.09, 0.70)], 0.03, 0.02)
        parts.append(tube(foot, 0.016, sides))
        parts.append(box((0.045, 0.040, 0.09), 2.0 * length, (0.935, -0.055, 0.45)))
        parts += [box((0.022, 0.012, 0.50), 2.0 * length, (x, -0.050, 0.37)) for x in (0.17, 0.885)]
    return parts


def detail_of(triangles: int) -> int:
    """How many features a scene with a door gets at so many triangles in all.

    0: plain sheets between few polylines; 1: with cut-outs and fittings; 2: with beads and small holes.
    """
    return int(triangles >= 19_000) + int(triangles >= 27_000)


def first_guess(triangles: int) -> tuple[float, float]:
    """Lengths (m) that give door and body side about 16 and 13 of so many triangles' 29 parts."""
    if detail_of(triangles) == 0:
        return 0.16 * (1_000 / triangles) ** 0.75, 0.12 * (1_000 / triangles) ** 0.65
    return 0.0364 * (29_000 / triangles) ** 1.1, 0.0234 * (29_000 / triangles) ** 0.84


def door(length: float, detail: int, seed: int) -> Mesh:
    """The door in its body frame, tessellated with edges from about ``length`` (m) on."""
    if detail == 0:
        return join([_skin_of_rings(length), _pan_of_rings(length)]).moved(-CENTRE).rounded()
    generator = np.random.default_rng([seed, 1])
    mesh = join([_skin(length, detail), _pan(length, detail, generator), *_fittings(length, detail)])
    return mesh.moved(-CENTRE).rounded()


def door_sheets(length: float, detail: int, seed: int) -> Mesh:
    """Only the skin and the inner panel, in car coordinates."""
    return join([_skin(length, detail), _pan(length, detail, np.random.default_rng([seed, 1]))])


def _rear_flange(p: np.ndarray) -> np.ndarray:
    return -0.095 - 0.13 * (p[:, 0] - 1.15)


def _side(length: float, detail: int) -> Mesh:
    coarse = 4.0 * length
    shell = union(
        rectangle((0.72, 0.285), (1.63, 0.415), 0.12),
        polygon(((-0.14, 0.55), (2.30, 0.55), (1.95, 1.18), (0.50, 1.18)), 0.08),
    )
    arches = [disc((-0.55, -0.10), 0.33), disc((2.10, -0.10), 0.33)]
    holes = [grown(door_outline, -0.048), grown(rear_outline, -0.048)]
    creases = [grown(o, by) for o in (door_outline, rear_outline) for by in (GAP, GAP - 0.006)]
    sizes = [
        near([grown(door_outline, -0.01)], length, coarse),
        near([grown(rear_outline, -0.01)], 1.6 * length, coarse),
    ]
    sizes.append(near(_rounds(DOOR_CORNERS, CORNER), min(length, 0.03), coarse, 0.8))
    sizes.append(near(_rounds(REAR_CORNERS, CORNER), min(1.6 * length, 0.05), coarse, 0.8))
    sizes.append(near(arches, min(2.0 * length, 0.12), coarse, 0.8))
    flap = disc((2.12, 0.47), 0.075)
    if detail > 1:
        creases += [flap, grown(flap, -0.006)]
        sizes.append(near([flap], min(length, 0.03), coarse, 0.8))
    outline = without(shell, *holes, *arches)
    points, faces = region((-0.93, -0.15), (2.37, 1.20), outline, finest(*sizes), coarse, tuple(creases))
    y = crown(points)
    for o, flange in ((door_outline, np.full(len(points), FLANGE)), (rear_outline, _rear_flange(points))):
        depth = smooth_step((GAP - o(points)) / 0.006)
        y = (1.0 - depth) * y + depth * flange
    if detail > 1:
        y = y - 0.004 * smooth_step(-flap(points) / 0.006)
    return thicken(np.column_stack([points[:, 0], y, points[:, 1]]), faces, THICKNESS)


def _structure(length: float, detail: int) -> list[Mesh]:
    """Sill, pillars, cross members and the striker; all inboard of the flanges but for the striker."""
    sides = int(np.clip(round(0.35 / length), 6, 40))
    (x0, z0), (x1, z1) = _STRIKER
    low, high = z0 + 0.004, z1 - 0.004
    striker = bend([(x0, -0.092, low), (x0, -0.064, low), (x1, -0.064, high), (x1, -0.092, high)], 0.006, 0.006)
    parts = [tube(striker, 0.003, 6 if length > 0.02 else 10)]
    if detail > 0:
        parts.append(box((1.75, 0.11, 0.10), 3.0 * length, (0.80, -0.235, -0.06)))
        parts.append(box((0.085, 0.06, 1.05), 3.0 * length, (1.10, -0.165, 0.52)))
        dash = bend([(-0.05, -0.16, 0.60), (-0.05, -0.30, 0.60), (-0.02, -0.50, 0.64), (-0.02, -0.80, 0.64)], 0.1, 0.03)
        parts.append(tube(dash, 0.032, sides))
        parts += [box((0.12, 0.55, 0.06), 3.0 * length, (x, -0.565, -0.06)) for x in (0.25, 0.75, 1.45)]
        roof = bend([(1.10, -0.19, 1.12), (1.10, -0.40, 1.17), (1.10, -0.80, 1.19)], 0.1, 0.03)
        parts.append(tube(roof, 0.025, sides))
    if detail > 1:
        for x, z in ((1.075, 0.20), (1.125, 0.20), (1.075, 0.75), (1.125, 0.75)):
            bolt = hexagon_bolt(0.017, 0.008, 0.005, 0.004)
            parts.append(bolt.moved((x, -0.1345, z), rotation("x", -math.pi / 2)))
    return parts


def body(length: float, detail: int) -> Mesh:
    """The body side in car coordinates."""
    if detail == 0:
        return _side_of_rings(length).rounded()
    return join([_side(length, detail), *_structure(length, detail)]).rounded()
