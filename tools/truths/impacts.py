"""Truths of impacts: a bouncing ball and its end in time, many balls without loss, rows of balls, heaps of balls."""

import math
from typing import Any

import numpy as np

from tools.scenes.bodies import EPS, POINT, Solid, World, block, floor
from tools.truths.truth import Truth, books

G = 9.81
GAP = EPS[1]
"""Gap at rest, m."""
RADIUS = 0.1
REST_SPEED = 0.02
"""Slower approaches do not bounce, m/s: twice what gravity adds in a tick."""
LOOKS = 5
"""Times that a heap is looked at for balls that meet."""


def zeno(height: float = 1.0, restitution: float = 0.5) -> Truth:
    """A ball that is dropped bounces ever faster and lies still after a finite time.

    A bounce is found to the tick, and the last ones, slower than REST_SPEED, are left out: the bar is what these would
    take, and half a tick for each of those before.
    """
    ball = Solid(
        POINT,
        (0.0, 0.0, RADIUS + GAP + height),
        mass=1.0,
        rounding=RADIUS,
        friction=0.0,
        restitution=restitution,
        rest_speed=REST_SPEED,
    )
    world = World([floor(0.0), ball])
    speeds, last = [], 0.0
    before = 0.0

    def look(tick: int) -> None:
        nonlocal before, last
        now = float(world.state.velocities["linear"][1, 2])
        if before < 0.0 < now - 1e-6:
            speeds.append(now)
        if abs(now) > 1e-6:
            last = world.time
        before = now

    ledger = world.keep_books(2500, look)
    truth = math.sqrt(2.0 * height / G) * (1.0 + restitution) / (1.0 - restitution)
    left_out = 2.0 * REST_SPEED / G * restitution / (1.0 - restitution)
    count = math.ceil(math.log(REST_SPEED / math.sqrt(2.0 * G * height)) / math.log(restitution))
    bar = left_out + 0.5 * world.dt * (count + 1)
    energies = np.array(speeds[:4]) ** 2 / (2.0 * G * height)
    wanted = restitution ** (2.0 * np.arange(1, len(energies) + 1))
    more: dict[str, Any] = {
        "bounces": len(speeds),
        "bounces_truth": count,
        "energy_after_bounce_error": float(f"{np.abs(energies / wanted - 1.0).max():.2g}"),
        "gap_at_rest_m": float(world.positions[1, 2] - RADIUS),
        **books(ledger),
    }
    return Truth(last, truth, abs(last - truth), float(f"{bar:.3g}"), "s until it lies still", more)


def bouncing(seconds: float = 20.0, side: int = 7) -> Truth:
    """Balls of 10 kg that bounce without loss from 5 m keep their energy (SimBenchmark, bouncing).

    The error is the root of SimBenchmark's, the mean square over all steps; of which 0.02 J^2 are good for 1 ms.
    """
    height = 5.0
    solids = [floor(0.0, 60.0, restitution=1.0)]
    for i in range(side):
        for k in range(side):
            place = (0.5 * i, 0.5 * k, RADIUS + GAP + height)
            solids.append(Solid(POINT, place, mass=10.0, friction=0.0, restitution=1.0, rounding=RADIUS))
    world = World(solids, eps=EPS)
    begun = world.energy
    ledger = world.keep_books(round(seconds / world.dt))
    error = float(np.sqrt(np.mean((np.array(ledger.energy) - begun) ** 2)))
    more = {
        "simbenchmark_error": float(f"{error**2:.3g}"),
        "energy_J": float(f"{begun:.6g}"),
        "last_J": float(f"{ledger.energy[-1] - begun:.3g}"),
        **books(ledger),
    }
    return Truth(float(ledger.energy[-1]), begun, error, float(f"{math.sqrt(0.02):.3g}"), "energy, J; error: RMS", more)


# Rows of balls.


def _row(gap: float, between: float, bodies: int, walls: float = 0.0) -> World:
    """A row of cubes of 1 kg without weight and friction, the first one at 1 m/s, `between` m off the second.

    They lose nothing at impacts. gap: between the others, m; walls: distance of one beyond each end, m, 0 for none.
    """
    edge = 0.1
    shape = block(edge, edge, edge)
    solids = []
    for i in range(bodies):
        speed = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0) if i == 0 else (0.0,) * 6
        place = (i * (edge + gap) + (between - gap if i > 0 else 0.0), 0.0, 0.0)
        solids.append(Solid(shape, place, mass=1.0, friction=0.0, restitution=1.0, velocity=speed))
    if walls > 0.0:
        last = (bodies - 1) * (edge + gap) + between - gap
        for axis in range(3):
            size = [2.0 * last] * 3
            size[axis] = 0.2
            low, high = (-walls, last + walls) if axis == 0 else (-walls, walls)
            for x in (low - 0.5 * edge - 0.1, high + 0.5 * edge + 0.1):
                place = [0.5 * last, 0.0, 0.0]
                place[axis] = x
                solids.append(Solid(block(*size), place, friction=0.0, restitution=1.0))
    return World(solids, (0.0, 0.0, 0.0))


def cradle(bodies: int = 5) -> Truth:
    """Newton's cradle, its bodies a little apart: one comes in, one goes out and takes all.

    Cubes that slide face to face take the place of hanging balls: without joints, what is left of a cradle is a row of
    impacts.
    """
    world = _row(0.005, 0.02, bodies)
    ledger = world.keep_books(120)
    speeds = world.velocities[:bodies, 0]
    wanted = np.zeros(bodies)
    wanted[-1] = 1.0
    error = float(np.abs(speeds - wanted).max())
    return Truth(float(speeds[-1]), 1.0, error, 1e-10, "speed of the last, m/s; error: of any", books(ledger))


def cradle_in_touch(bodies: int = 5) -> Truth:
    """The same in touch: one impact of all. Newton's law at all contacts at once does not send the last one off alone.

    It asks of each contact that it parts at the speed with which it came together: the others go on as one.
    """
    world = _row(GAP, 0.05, bodies)
    ledger = world.keep_books(200)
    wanted = np.full(bodies, 2.0 / bodies)
    wanted[0] = 2.0 / bodies - 1.0
    speeds = world.velocities[:bodies, 0]
    error = float(np.abs(speeds - wanted).max())
    more = {"velocities": np.round(speeds, 6).tolist(), **books(ledger)}
    return Truth(float(speeds[-1]), float(wanted[-1]), error, 1e-10, "speed of the last, m/s; error: of any", more)


def cradle_in_a_box(seconds: float = 60.0, bodies: int = 5) -> Truth:
    """A row of cubes in a closed box, for a minute: they tumble soon, and never have more energy than at the start."""
    world = _row(0.005, 0.02, bodies, 0.1)
    begun = world.energy
    ledger = world.keep_books(round(seconds / world.dt))
    gain = max(ledger.energy) / begun - 1.0
    more = {"simulated_s": seconds, **books(ledger)}
    return Truth(max(ledger.energy), begun, max(gain, 0.0), 1e-10, "energy, J, at most, relative", more)


# Heaps of balls.


def heap(seconds: float = 10.0, side: int = 6, restitution: float = 0.0) -> Truth:
    """A cube of balls of 10 kg that falls down (SimBenchmark, 666): penetration, or energy if nothing is lost."""
    random = np.random.default_rng(42)
    lift = 1.101 if restitution > 0.0 else 0.11
    solids = [floor(0.0, 120.0, restitution=restitution)]  # without friction they glide for 10 s
    for i in range(side):
        for k in range(side):
            for m in range(side):
                place = 0.21 * np.array([i, k, m]) + random.uniform(-1e-3, 1e-3, 3) + [0.0, 0.0, lift]
                ball = Solid(POINT, place, mass=10.0, friction=0.0, restitution=restitution, rounding=RADIUS)
                solids.append(ball)
    world = World(solids)
    begun = world.energy
    ticks = round(seconds / world.dt)
    meet = 0

    def look(tick: int) -> None:
        nonlocal meet
        if restitution == 0.0 and tick % max(ticks // LOOKS, 1) == 0:
            meet += pairs_that_meet(world)

    ledger = world.keep_books(ticks, look)
    more = {"simulated_s": seconds, "balls": side**3, **books(ledger)}
    if restitution == 0.0:
        return Truth(meet, 0.0, meet, 0.0, "pairs of balls that meet, at any of the looks", more)
    error = float(np.sqrt(np.mean((np.array(ledger.energy) - begun) ** 2)))
    more["simbenchmark_error"] = float(f"{error**2:.3g}")
    bar = math.sqrt(8.37)  # of RaiSim at 1 ms, the least that SimBenchmark has published
    return Truth(ledger.energy[-1], begun, error, float(f"{bar:.3g}"), "energy, J; error: RMS", more)


def pairs_that_meet(world: World) -> int:
    """Pairs of balls in one another, and balls in the floor, body 0 up to z = 0.

    What SimBenchmark sums up, how deep, is 0 where none are.
    """
    places = world.positions[1:]
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    return int((places[:, 2] <= RADIUS).sum() + np.triu(apart <= 2.0 * RADIUS, 1).sum())
