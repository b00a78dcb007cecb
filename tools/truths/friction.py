"""Truths of dry friction: the incline, slipping to rolling, boxes that carry rolling balls, an arch, leaning cards."""

import math
from typing import Any

import numpy as np
from scipy.optimize import linprog

from tools.scenes.bodies import EPS, POINT, Solid, World, block, floor, turned, wheel
from tools.scenes.mesh import Mesh
from tools.truths.truth import Truth, books, relative

G = 9.81
GAP = EPS[1]
"""Gap at rest, m."""
DT = 1e-3
"""Step of the worlds, s: what a time is known to."""

# Incline.


def _incline(friction: float, slope: float) -> tuple[World, np.ndarray]:
    """A cube of 1 kg at rest on a slab that rises along x by a slope (rad): (world, unit vector downhill)."""
    turn = turned((0.0, 1.0, 0.0), -slope)
    normal = np.array([-math.sin(slope), 0.0, math.cos(slope)])
    slab = Solid(block(8.0, 1.0, 0.2), -0.1 * normal, turn, friction=friction)
    cube = Solid(block(0.1, 0.1, 0.1), (0.05 + GAP) * normal, turn, mass=1.0, friction=friction)
    return World([slab, cube]), np.array([-math.cos(slope), 0.0, -math.sin(slope)])


def incline_creep(seconds: float, friction: float = 0.5, share: float = 0.99) -> Truth:
    """A cube on a slope of `share` of what friction holds does not move, however long."""
    world, _ = _incline(friction, math.atan(share * friction))
    world.run(100)
    place = world.positions[1]
    fastest = 0.0

    def look(tick: int) -> None:
        nonlocal fastest
        fastest = max(fastest, float(np.abs(world.state.velocities["linear"][1]).max()))

    ledger = world.keep_books(round(seconds / world.dt), look)
    way = float(np.linalg.norm(world.positions[1] - place))
    more = {"way_m": way, "fastest_m_s": float(f"{fastest:.2g}"), "simulated_s": seconds, **books(ledger)}
    return Truth(way / seconds, 0.0, way / seconds, 1e-9, "speed of creep, m/s", more)


def incline_slide(seconds: float = 0.5, friction: float = 0.5, share: float = 1.2) -> Truth:
    """On a steeper one it slides as Coulomb says."""
    slope = math.atan(share * friction)
    world, downhill = _incline(friction, slope)
    world.run(50)
    before = world.velocities[1] @ downhill
    ticks = round(seconds / world.dt)
    ledger = world.keep_books(ticks)
    value = float(world.velocities[1] @ downhill - before) / (ticks * world.dt)
    truth = G * (math.sin(slope) - friction * math.cos(slope))
    return Truth(value, truth, relative(value, truth), 1e-6, "acceleration downhill, m/s2, relative", books(ledger))


# Slipping, then rolling.


def _bowl(
    shape: dict[str, Any], radius: float, share: float, friction: float, speed: float
) -> tuple[float, float, float]:
    """Let something round of moment share m r^2 slip: (s to rolling, speed then, loss by rolling 20 ms on).

    shape: mesh and rounding of the Solid, which reaches `radius` below its origin.
    """
    mass = 1.0
    moment = share * mass * radius**2
    round_one = Solid(
        **shape,
        position=(0.0, 0.0, radius + GAP),
        mass=mass,
        moments=(moment, moment, moment),
        friction=friction,
        velocity=(speed, 0.0, 0.0, 0.0, 0.0, 0.0),
    )
    world = World([floor(friction), round_one])
    slips = (1.0 + 1.0 / share) * friction * G * world.dt
    ticks = round(2.0 * speed / (slips / world.dt) / world.dt)
    world.run(ticks, lambda _: world.velocities[1, 0] - world.turning[1, 1] * radius <= slips)
    time, then = world.time, float(world.velocities[1, 0])
    world.run(20)
    return time, then, then - float(world.velocities[1, 0])


def slip_to_roll_cylinder(sides: int = 4096, radius: float = 0.1) -> Truth:
    """A cylinder of flat sides that slips starts to roll at 2/3 of its speed, after v / (3 mu g)."""
    friction, speed = 0.3, 1.0
    mesh = wheel(radius, 0.05, sides)
    low = -float(mesh.vertices[:, 2].min())
    time, then, after = _bowl({"mesh": mesh}, low, 0.5, friction, speed)
    truth = speed / (3.0 * friction * G)
    more = {"speed": then, "speed_truth": 2.0 / 3.0 * speed, "speed_error": relative(then, 2.0 / 3.0 * speed)}
    return Truth(time, truth, abs(time - truth), DT, "s from slipping to rolling", {**more, "lost": after})


def slip_to_roll_sphere(radius: float = 0.1) -> Truth:
    """A ball that slips starts to roll at 5/7 of its speed, after 2 v / (7 mu g)."""
    friction, speed = 0.3, 1.0
    time, then, after = _bowl({"mesh": POINT, "rounding": radius}, radius, 0.4, friction, speed)
    truth = 2.0 * speed / (7.0 * friction * G)
    more = {"speed": then, "speed_truth": 5.0 / 7.0 * speed, "speed_error": relative(then, 5.0 / 7.0 * speed)}
    return Truth(time, truth, abs(time - truth), DT, "s from slipping to rolling", {**more, "lost": after})


# SimBenchmark's rolling.


def rolling(seconds: float, direction: float = 0.0) -> Truth:
    """A box that is pulled from below 25 balls which roll on it (SimBenchmark, rolling); direction: rad from x."""
    heavy, light, balls, pull, radius = 10.0, 1.0, 25, 150.0, 0.1
    below, above = 0.4, 0.8
    turn = turned((0.0, 0.0, 1.0), direction)
    along = np.array([math.cos(direction), math.sin(direction), 0.0])
    across = np.array([-along[1], along[0], 0.0])
    # Friction of two bodies is the geometric mean of theirs.
    box_friction = above
    ground = floor(below**2 / box_friction, 60.0)
    carrier = Solid(block(12.0, 4.0, 0.2), (0.0, 0.0, 0.1 + GAP), turn, mass=heavy, friction=box_friction)
    solids = [ground, carrier]
    for i in range(5):
        for k in range(5):
            place = (0.4 * (i - 2)) * along + (0.4 * (k - 2)) * across + [0.0, 0.0, 0.2 + radius + 2.0 * GAP]
            solids.append(Solid(POINT, place, mass=light, friction=above, rounding=radius))
    world = World(solids, budget=(1_000_000, 8, 100, 0))
    world.run(20)
    ticks = round(seconds / world.dt)
    begun = world.velocities @ along
    errors = []
    f1 = below * (heavy + balls * light) * G
    f2 = (pull - f1) / heavy / (3.5 / light + balls / heavy)
    box_rate, ball_rate = (pull - f1 - balls * f2) / heavy, f2 / light
    for i in range(ticks):
        world.push(1, pull * along)
        world.step()
        gone = (i + 1) * world.dt
        speeds = world.velocities @ along - begun
        errors.append((speeds[1] - box_rate * gone) ** 2 + ((speeds[2:] - ball_rate * gone) ** 2).mean())
    speeds = world.velocities @ along - begun
    truth = box_rate * ticks * world.dt
    more = {
        "ball": float(speeds[2:].mean()),
        "ball_truth": ball_rate * ticks * world.dt,
        "simbenchmark_error": float(f"{np.mean(errors):.2g}"),
        "aside_m_s": float(f"{np.abs(world.velocities[1:] @ across).max():.2g}"),
    }
    error = math.sqrt(float(np.mean(errors)))
    return Truth(float(speeds[1]), truth, error, 1e-3, "speed of the box, m/s; error: RMS of box and balls", more)


# A masonry arch.

MILANKOVITCH = 0.107426
"""Least thickness by radius of a complete semicircular arch of infinitely many stones (Cocchetti and Rizzi 2020)."""


def _voussoir(thickness: float, half: float, depth: float, gap: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners (4, 2) of a stone of the arch of radius 1 about its own axis x (outwards), and so its mesh."""
    c, s = math.cos(half), math.sin(half)
    corners = []
    for radius in (1.0 - 0.5 * thickness, 1.0 + 0.5 * thickness):
        for side in (-1.0, 1.0):
            # Moved along the normal of its joint by half a gap.
            corners.append((radius * c - 0.5 * gap * s, side * (radius * s - 0.5 * gap * c)))
    return np.array(corners), np.array([-0.5 * depth, 0.5 * depth])


def _wedge(thickness: float, half: float, depth: float, gap: float) -> Mesh:
    """A stone whose middle is at (1, 0, 0), joints across the plane of x and z, m."""
    corners, sides = _voussoir(thickness, half, depth, gap)
    vertices = np.array([(x, y, z) for y in sides for x, z in corners])
    # Corner k: 0 inner lower, 1 inner upper, 2 outer lower, 3 outer upper; 4.. the same at the other side.
    quads = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3)]
    faces = [tri for a, b, c, d in quads for tri in ((a, b, c), (a, c, d))]
    return Mesh(vertices, np.array(faces, dtype=np.int32))


def least_thickness(stones: int, friction: float) -> float:
    """Least thickness by radius at which an arch of so many stones can stand, by limit analysis.

    Statics alone: forces in every joint, within its friction, whose line of action stays in the stones. The largest
    share of the thickness that they need is found by a linear programme, the thickness by bisection.
    """

    def stands(thickness: float) -> bool:
        half = 0.5 * math.pi / stones
        corners, _ = _voussoir(thickness, half, 1.0, 0.0)
        a, b, c, d = corners[[0, 2, 3, 1]]
        area, middle = 0.0, np.zeros(2)
        for p, q in ((a, b), (b, c), (c, d), (d, a)):
            cross = p[0] * q[1] - p[1] * q[0]
            area += 0.5 * cross
            middle += (p + q) * cross / 6.0
        middle /= area
        # Unknown at joint i: normal forces at the inner and outer edge and a shear force, on the stone after it.
        joints = stones + 1
        equal = np.zeros((3 * stones, 3 * joints))
        right = np.zeros(3 * stones)
        for i in range(stones):
            at = half * (2 * i + 1)
            centre = middle[0] * np.array([math.cos(at), math.sin(at)])
            right[3 * i + 1] = abs(area)
            for k, sign in ((i, 1.0), (i + 1, -1.0)):
                angle = 2.0 * half * k
                out = np.array([math.cos(angle), math.sin(angle)])
                on = np.array([-math.sin(angle), math.cos(angle)])
                for m, (force, place) in enumerate(
                    (
                        (on, (1.0 - 0.5 * thickness) * out),
                        (on, (1.0 + 0.5 * thickness) * out),
                        (out, out),
                    )
                ):
                    arm = place - centre
                    column = 3 * k + m
                    equal[3 * i, column] += sign * force[0]
                    equal[3 * i + 1, column] += sign * force[1]
                    equal[3 * i + 2, column] += sign * (arm[0] * force[1] - arm[1] * force[0])
        cone = np.zeros((2 * joints, 3 * joints))
        for k in range(joints):
            for m, sign in enumerate((1.0, -1.0)):
                cone[2 * k + m, 3 * k : 3 * k + 3] = (-friction, -friction, sign)
        bounds = [(0.0, None), (0.0, None), (None, None)] * joints
        found = linprog(np.zeros(3 * joints), cone, np.zeros(2 * joints), equal, right, bounds, method="highs")
        return found.status == 0

    low, high = 0.02, 0.3
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stands(middle) else (middle, high)
    return high


def arch_world(thickness: float, stones: int, friction: float) -> World:
    """A complete semicircular arch of radius 1 m and so many stones of 2,000 kg/m3, every joint at the gap at rest."""
    half = 0.5 * math.pi / stones
    mesh = _wedge(thickness, half, 0.2, GAP)
    volume = thickness * 2.0 * half * 0.2
    solids = [floor(friction, 4.0)]
    for i in range(stones):
        turn = turned((0.0, 1.0, 0.0), -half * (2 * i + 1))
        solids.append(Solid(mesh, (0.0, 0.0, 0.5 * GAP), turn, mass=2000.0 * volume, friction=friction))
    return World(solids)


def arch(share: float, seconds: float = 1.0, stones: int = 27, friction: float = 0.7) -> Truth:
    """An arch of `share` of the least thickness stands or falls: how far its crown comes down, m."""
    least = least_thickness(stones, friction)
    world = arch_world(share * least, stones, friction)
    crown = 1 + stones // 2
    before = world.centres
    ledger = world.keep_books(round(seconds / world.dt))
    moved = float(np.linalg.norm(world.centres - before, axis=1).max())
    more = {
        "thickness_by_radius": round(share * least, 6),
        "least": round(least, 6),
        "least_of_infinitely_many": MILANKOVITCH,
        "crown_sinks_m": float(before[crown - 1, 2] - world.centres[crown - 1, 2]),
        **books(ledger),
    }
    if share > 1.0:
        return Truth(moved, 0.0, moved, 1e-4, "largest way of a stone, m: it stands", more)
    return Truth(moved, 0.05, max(0.05 - moved, 0.0), 0.0, "largest way of a stone, m, at least: it falls", more)


# Leaning cards.


def card_house(share: float, seconds: float = 2.0) -> Truth:
    """Two cards that lean on each other stand by friction of the floor: `share` of what they need.

    Each stands on the lower edge of its inner side, at P, and leans with the upper one, at Q, on the other card, which
    by symmetry pushes back horizontally, with H. About P: H h cos a = m g (h sin a - d cos a) / 2, and friction carries
    H: mu = tan(a) / 2 - d / (2 h), with the angle a from the vertical, height h and thickness d.
    """
    height, thick, wide, lean = 0.2, 0.004, 0.1, math.radians(25.0)
    needed = 0.5 * math.tan(lean) - 0.5 * thick / height
    friction = share * needed
    mesh = block(thick, wide, height)
    solids = [floor(friction, 2.0)]
    for side in (-1.0, 1.0):
        up = np.array([-side * math.sin(lean), 0.0, math.cos(lean)])
        inner = np.array([-side * math.cos(lean), 0.0, -math.sin(lean)])
        # The upper inner edge is half a gap off the middle, the lower one a gap above the floor.
        foot = np.array([side * 0.5 * GAP, 0.0, GAP]) + [side * height * math.sin(lean), 0.0, 0.0]
        place = foot - 0.5 * thick * inner + 0.5 * height * up
        solids.append(Solid(mesh, place, turned((0.0, 1.0, 0.0), -side * lean), mass=0.1, friction=friction))
    world = World(solids)
    before = world.positions
    ledger = world.keep_books(round(seconds / world.dt), lambda _: world.positions[1, 2] < 0.5 * before[1, 2])
    sunk = float((before - world.positions)[1:, 2].max())
    more = {"friction": round(friction, 5), "needed": round(needed, 5), **books(ledger)}
    if share > 1.0:
        return Truth(sunk, 0.0, abs(sunk), 1e-5, "sink of a card, m: it stands", more)
    return Truth(sunk, 0.01, max(0.01 - sunk, 0.0), 0.0, "sink of a card, m, at least: it falls", more)
