"""The motor of a window lifter that is put into a door through an opening in its inner panel and moved to its rail."""

import math
from itertools import pairwise

import numpy as np

from tools.scenes import door
from tools.scenes.mesh import Mesh, box, capped_up, hexagon_bolt, join, lathe, meet, rotation, tube
from tools.scenes.outline import disc, rectangle, union, without
from tools.scenes.path import ramp, through
from tools.scenes.scene import Part, Phase, Scene
from tools.scenes.sheet import finest, near, plate, region

TRIANGLES = 20_000
LEAST = 10_000

_FACE = -0.045
"""x of the motor's flat mounting face in its body frame, m."""

_RAIL_FACE = 0.40
_CAVITY = -0.043
"""y of the motor's middle when it is between the sheets."""


def _motor(length: float) -> Mesh:
    """Gear housing about the origin, the motor's can along +x, the pinion's shaft along -y."""
    sides = max(10, round(0.12 / length))
    lay = rotation("x", 0.5 * math.pi)  # plates are made in xy; the housing lies in xz
    body = union(disc((0.0, 0.0), 0.038), rectangle((-0.010, 0.0), (0.035, 0.025), 0.004))
    holes = [disc((-0.036, 0.017), 0.0028), disc((-0.036, -0.017), 0.0028)]
    fine = min(length, 0.012)
    size = finest(near([body], fine, 3.0 * fine), near([union(*holes)], min(fine, 0.002), 3.0 * fine, 0.8))
    points, faces = region((-0.05, -0.045), (0.045, 0.045), without(body, *holes), size, 3.0 * fine)
    parts = [plate(points, faces, 0.030).moved((0.0, 0.0, 0.0), lay)]
    cover = without(disc((0.0, 0.0), 0.030), disc((0.0, 0.0), 0.008))
    points, faces = region((-0.035, -0.035), (0.035, 0.035), cover, near([cover], fine, 3.0 * fine), 3.0 * fine)
    parts.append(plate(points, faces, 0.004).moved((0.0, 0.0171, 0.0), lay))
    along = rotation("y", 0.5 * math.pi)
    can = [(0.012, 0.030), (0.0185, 0.030), (0.0195, 0.034), (0.0195, 0.080), (0.0185, 0.085), (0.016, 0.092)]
    can += [(0.010, 0.096), (0.008, 0.102), (0.004, 0.105)]
    fine_can = [can[0]]
    for a, b in pairwise(can):
        pieces = max(1, math.ceil(math.hypot(b[0] - a[0], b[1] - a[1]) / (2.0 * length)))
        fine_can += [
            (a[0] + (b[0] - a[0]) * k / pieces, a[1] + (b[1] - a[1]) * k / pieces) for k in range(1, pieces + 1)
        ]
    parts.append(lathe(np.array(fine_can), sides).moved((0.0, 0.0, 0.0), along))
    # pinion: a small toothed wheel on its shaft
    teeth = 9
    angle = 2.0 * math.pi * np.arange(6 * teeth) / (6 * teeth)
    radius = np.tile([0.0065, 0.0085, 0.0095, 0.0095, 0.0085, 0.0065], teeth)
    rows = [
        np.stack([r * np.cos(angle), r * np.sin(angle), np.full(len(angle), z)], axis=1)
        for r, z in ((0.8 * radius, 0.014), (radius, 0.016), (radius, 0.025), (0.5 * radius, 0.027))
    ]
    parts.append(capped_up(np.array(rows)).moved((0.0, 0.0, 0.0), rotation("x", 0.5 * math.pi)))
    # ribs, a plug and screws on the cover
    for k in range(6):
        turn = rotation("y", math.pi / 3 * k + 0.3)
        parts.append(box((0.018, 0.0032, 0.0022), 2.0 * length, (0.018, 0.0, 0.0)).moved((0.0, 0.0200, 0.0), turn))
        screw = hexagon_bolt(0.005, 0.0022, 0.0012, 0.003, sides)
        place = rotation("y", math.pi / 3 * k) @ np.array([0.0335, 0.0, 0.0])
        parts.append(screw.moved(place + np.array([0.0, 0.0151, 0.0]), rotation("x", -0.5 * math.pi)))
    parts.append(box((0.024, 0.020, 0.018), 2.0 * length, (0.020, -0.002, 0.040)))
    cable = np.array(
        [(0.030, 0.0, 0.046), (0.045, 0.0, 0.046), (0.06, 0.002, 0.040), (0.08, 0.004, 0.034), (0.10, 0.004, 0.030)]
    )
    parts.append(tube(cable, 0.003, max(6, sides // 2)))
    return join(parts).rounded()


def _rail(length: float) -> Mesh:
    """A channel from the bottom to the top of the cavity, open to the front, with its screws."""
    middle = (_RAIL_FACE - 0.001, -0.043, 0.37)
    parts = [box((0.002, 0.030, 0.50), 1.5 * length, middle)]
    for y in (-0.0275, -0.0585):
        parts.append(box((0.018, 0.002, 0.4999), 1.5 * length, (_RAIL_FACE - 0.0105, y, 0.37)))
    for z in (0.16, 0.58):
        parts.append(box((0.03, 0.0065, 0.03), 1.5 * length, (_RAIL_FACE - 0.016, -0.0640, z)))
    return join(parts).rounded()


def _bolts(length: float) -> Mesh:
    """Heads of bolts on the inner panel, around the opening."""
    sides = 6 * int(np.clip(round(0.05 / length), 1, 6))
    around = door.OPENING_CENTRE + (door.OPENING_HALF + 0.040) * np.array(
        [(-1, -0.6), (-1, 0.6), (1, -0.6), (1, 0.6), (0, 1)]
    )
    bolt = hexagon_bolt(0.013, 0.007, 0.004, 0.0002, sides)
    return join([bolt.moved((x, -0.0810, z), rotation("x", 0.5 * math.pi)) for x, z in around]).rounded()


def build(triangles: int, seed: int) -> Scene:
    """The scene; the motor starts inboard of the door."""
    moving = meet(round(0.28 * triangles), _motor, 0.5 / math.sqrt(triangles))
    rail = meet(max(150, round(0.05 * triangles)), _rail, 1.4 / math.sqrt(triangles))
    bolts = _bolts(1.0 / math.sqrt(triangles))
    left = triangles - len(moving.faces) - len(rail.faces) - len(bolts.faces)
    detail = int(left >= 9_500) + int(left >= 13_500)
    sheets = meet(
        left, lambda length: door.door_sheets(length, detail, seed).rounded(), 0.0208 * (20_000 / triangles) ** 0.85
    )
    generator = np.random.default_rng([seed, 2])
    a, b, c = generator.uniform(0.6, 1.0, 3)
    x, z = 0.575, 0.33
    still = (0.0, 0.0, 0.0)
    inside = (x, _CAVITY, z)
    far = through(
        [
            ((x, -0.35, z), still),
            ((x + 0.20 * a, -0.45, z + 0.10), (0.5, 0.4 * b, -0.3)),
            ((x - 0.20, -0.40, z - 0.10 * c), (-0.4, -0.5, 0.4 * a)),
            ((x, -0.30, z), still),
        ]
    )

    def pressing(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # against the inside of the outer skin, stirring along it
        y = _CAVITY + 0.021 * window
        place = np.column_stack([x - 0.01 + 0.02 * window * np.sin(4.0 * t), y, z + 0.02 * window * np.sin(5.5 * t)])
        return place, np.column_stack(
            [0.05 * window * np.sin(3.0 * t), 0.1 * window * a, 0.06 * window * np.sin(4.0 * t)]
        )

    near_face = _RAIL_FACE - _FACE + 0.35e-3

    def along_rail(t: np.ndarray, window: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        up = 0.06 * b * window * np.sin(2.0 * math.pi * 0.5 * t)
        across = 2e-3 * c * window * np.sin(2.0 * math.pi * 0.9 * t)
        place = np.column_stack([near_face + 0 * t, _CAVITY + across, z + up])
        return place, np.zeros((len(t), 3))

    outside = (x, -0.22, z)
    fast = through(
        [
            (outside, still),
            (inside, still),
            ((x, -0.20, z + 0.01), (0.0, 0.3 * a, 0.0)),
            ((x - 0.01, _CAVITY, z), (0.0, 0.15 * b, 0.0)),
            ((x - 0.02, -0.25, z), (0.0, 0.0, 0.0)),
        ],
        speed=1.0,
    )
    base = (0.0, 0.0, 0.0, 1.0)
    phases = [
        Phase("far", far, True),
        Phase("inner_contact", ramp(4.0, pressing, base), False),
        Phase("near_rail", ramp(4.0, along_rail, base), True, (0.2e-3, 0.5e-3)),
        Phase("near_opening", fast, True),
    ]
    home = np.array(base)
    parts = [
        Part("motor", moving.vertices, moving.faces, far[0, :3], far[0, 3:], moving=True),
        Part("door", sheets.vertices, sheets.faces, np.zeros(3), home),
        Part("rail", rail.vertices, rail.faces, np.zeros(3), home),
        Part("bolts", bolts.vertices, bolts.faces, np.zeros(3), home),
    ]
    return Scene("motor_in_door", seed, 0.5e-3, parts, phases)
