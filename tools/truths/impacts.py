"""Truths of impacts: a bouncing ball and its end in time, many balls without loss, rows of balls, heaps of balls."""

import math
from typing import Any

import numpy as np

from tools.scenes.bodies import EPS, Solid, World, block, floor, icosphere
from tools.scenes.mesh import Mesh
from tools.truths.truth import Truth, books, relative

G = 9.81
GAP = EPS[1]
"""Gap at rest, m."""
RADIUS = 0.1
REST_SPEED = 0.02
"""Slower approaches do not bounce, m/s: twice what gravity adds in a tick."""


def zeno(height: float = 1.0, restitution: float = 0.5) -> Truth:
    """A ball that is dropped bounces ever faster and lies still after a finite time.

    It comes down on a corner of its mesh, so that a coarse one does. A bounce is found to the tick, and the last ones,
    slower than REST_SPEED, are left out: the bar is what these would take, and half a tick for each of the others.
    """
    ball = Solid(
        icosphere(RADIUS, 2),
        (0.0, 0.0, RADIUS + GAP + height),
        mass=1.0,
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
    bar = left_out + 0.5 * world.dt * (len(speeds) + 1)
    energies = np.array(speeds[:4]) ** 2 / (2.0 * G * height)
    wanted = restitution ** (2.0 * np.arange(1, len(energies) + 1))
    more: dict[str, Any] = {
        "bounces": len(speeds),
        "energy_after_bounce_error": float(f"{np.abs(energies / wanted - 1.0).max():.2g}"),
        "gap_at_rest_m": float(world.positions[1, 2] - RADIUS),
        **books(ledger),
    }
    return Truth(last, truth, abs(last - truth), float(f"{bar:.3g}"), "s until it lies still", more)


def bouncing(seconds: float = 20.0, side: int = 7) -> Truth:
    """Balls of 10 kg that bounce without loss from 5 m keep their energy (SimBenchmark, bouncing).

    The error is the root of SimBenchmark's, the mean square over all steps. Its source: velocities are those of the
    end of a step (symplectic Euler), by which the energy swings by m g^2 t dt / 2 within each flight.
    """
    height = 5.0
    mesh = icosphere(RADIUS, 1)
    solids = [floor(0.0, 60.0, restitution=1.0)]
    for i in range(side):
        for k in range(side):
            place = (0.5 * i, 0.5 * k, RADIUS + GAP + height)
            solids.append(Solid(mesh, place, mass=10.0, friction=0.0, restitution=1.0))
    world = World(solids, eps=EPS)
    begun = world.energy
    ledger = world.keep_books(round(seconds / world.dt))
    error = float(np.sqrt(np.mean((np.array(ledger.energy) - begun) ** 2)))
    fall = math.sqrt(2.0 * height / G)
    swing = side * side * 10.0 * G * G * fall * world.dt / 2.0
    more = {
        "simbenchmark_error": float(f"{error**2:.3g}"),
        "swing_of_the_scheme_J": float(f"{swing:.3g}"),
        "energy_J": float(f"{begun:.6g}"),
        "last_J": float(f"{ledger.energy[-1] - begun:.3g}"),
        **books(ledger),
    }
    return Truth(float(ledger.energy[-1]), begun, error, float(f"{swing:.3g}"), "energy, J; error: RMS", more)


# Rows of balls.


def _bead(radius: float) -> Mesh:
    """A ball whose ends along x are cut to small squares, so that two of them meet face to face."""
    ball = icosphere(radius, 2)
    cut = 0.9 * radius
    x, y, z = ball.vertices.T
    vertices = np.stack([np.clip(x, -cut, cut), y, z], axis=1)
    return Mesh(vertices, ball.faces)


def _row(gap: float, balls: int, restitution: float, between: float) -> World:
    """A row of cubes of 1 kg between two walls, without weight, the first one at 1 m/s."""
    edge = 0.1
    shape = block(edge, edge, edge)
    solids = []
    for i in range(balls):
        speed = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0) if i == 0 else (0.0,) * 6
        away = between if i > 0 else 0.0
        place = (i * (edge + gap) + away, 0.0, 0.0)
        solids.append(Solid(shape, place, mass=1.0, friction=0.0, restitution=restitution, velocity=speed))
    wall = block(0.2, 1.0, 1.0)
    span = balls * (edge + gap) + between
    for x in (-0.5 - 0.1 - 0.5 * edge, span - 0.5 * edge + 0.5 + 0.1):
        solids.append(Solid(wall, (x, 0.0, 0.0), friction=0.0, restitution=restitution))
    return World(solids, (0.0, 0.0, 0.0))


def cradle(seconds: float = 60.0, balls: int = 5) -> Truth:
    """Newton's cradle, its bodies a little apart: one comes in, one goes out, between two walls, for ever.

    Cubes that slide face to face take the place of the hanging balls: without joints a row of balls is one of impacts
    alone.
    """
    world = _row(0.005, balls, 1.0, 0.0)
    begun = world.energy
    seen: list[float] = []

    def look(tick: int) -> None:
        seen.append(float(np.abs(np.sort(np.abs(world.state.velocities["linear"][:balls, 0]))[:-1]).max()))

    ledger = world.keep_books(round(seconds / world.dt), look)
    ways = np.array(ledger.momentum)[:, 0]
    size = float(np.abs(np.abs(ways) - 1.0).max())
    error = max(max(abs(e - begun) for e in ledger.energy) / begun, size)
    more = {
        "others_at_rest_m_s": float(f"{np.median(seen):.2g}"),
        "aside_m": float(f"{np.abs(world.positions[:balls, 1:]).max():.2g}"),
        "reversals": int((np.diff(np.sign(ways)) != 0).sum()),
        "simulated_s": seconds,
        **books(ledger),
    }
    return Truth(ledger.energy[-1], begun, error, 1e-10, "energy, J; error: relative, of energy and momentum", more)


def cradle_in_touch(balls: int = 5) -> Truth:
    """The same in touch: one impact of all. Newton's law alone does not say who leaves; energy may not grow."""
    world = _row(GAP, balls, 1.0, 0.05)
    begun = world.energy
    ledger = world.keep_books(200)
    before = np.array(ledger.energy)
    more = {"velocities": np.round(world.velocities[:balls, 0], 6).tolist(), **books(ledger)}
    momentum = float(world.momentum[0])
    error = max(abs(momentum - 1.0), float((before - begun).max()) / begun, 0.0)
    return Truth(momentum, 1.0, error, 1e-10, "momentum, N s; error: also the relative gain of energy", more)


# Heaps of balls.


def heap(seconds: float = 10.0, side: int = 6, restitution: float = 0.0) -> Truth:
    """A cube of balls of 10 kg that falls down (SimBenchmark, 666): penetration, or energy if nothing is lost."""
    random = np.random.default_rng(42)
    mesh = icosphere(RADIUS, 2)
    lift = 1.101 if restitution > 0.0 else 0.11
    solids = [floor(0.0, 40.0, restitution=restitution)]
    for i in range(side):
        for k in range(side):
            for m in range(side):
                place = 0.21 * np.array([i, k, m]) + random.uniform(-1e-3, 1e-3, 3) + [0.0, 0.0, lift]
                solids.append(Solid(mesh, place, mass=10.0, friction=0.0, restitution=restitution))
    world = World(solids)
    begun = world.energy
    deep: list[float] = []
    centre = slice(1, None)

    def look(tick: int) -> None:
        if tick % 10 == 0:
            deep.append(_deepest(world.positions[centre]))

    ledger = world.keep_books(round(seconds / world.dt), look)
    more = {"simulated_s": seconds, "balls": side**3, **books(ledger)}
    if restitution == 0.0:
        worst = max(0.0, -min(deep))
        more["farthest_in_m"] = worst
        # Balls of triangles lie inside of theirs: at less than the distance of two balls they need not meet.
        low = float(world.positions[centre, 2].min()) - _inradius(mesh)
        return Truth(worst, 0.0, max(0.0, -low), 0.0, "deepest a mesh is in the floor, m", more)
    error = float(np.sqrt(np.mean((np.array(ledger.energy) - begun) ** 2)))
    more["simbenchmark_error"] = float(f"{error**2:.3g}")
    bar = side**3 * 10.0 * G * G * math.sqrt(2.0 * (lift + 0.21 * side) / G) * world.dt / 2.0
    return Truth(ledger.energy[-1], begun, error, float(f"{bar:.3g}"), "energy, J; error: RMS", more)


def _inradius(mesh: Mesh) -> float:
    """Distance of the nearest face of a mesh from its origin, m."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    normal = np.cross(b - a, c - a)
    return float((np.einsum("ij,ij->i", normal, a) / np.linalg.norm(normal, axis=1)).min())


def _deepest(places: np.ndarray) -> float:
    """Least distance of two centres less twice the radius, m."""
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    return float(apart[np.triu_indices(len(places), 1)].min() - 2.0 * RADIUS)


__all__ = ["bouncing", "cradle", "cradle_in_touch", "heap", "relative", "zeno"]
