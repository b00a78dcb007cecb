"""Truths of torsional and rolling friction: what spins and what rolls comes to rest, what a hand twists holds."""

import math

import numpy as np

from rtcore.mesh_tool import STANDSTILL
from tools.scenes.bodies import EPS, Solid, World, block, floor, icosphere, turned, wheel
from tools.truths.truth import Truth, books, relative

G = 9.81
GAP = EPS[1]

# Spinning.


def _spun_down(world: World, body: int, start: float, loss: float, seconds: float) -> Truth:
    """Let a body spin about z until it rests; loss: of its spin in one step, rad/s, by the formula."""
    worst, stopped, creep = 0.0, math.inf, 0.0
    place = None

    def look(tick: int) -> None:
        nonlocal worst, stopped, creep, place
        spin = world.turning[body, 2]
        worst = max(worst, abs(spin - max(start - tick * loss, 0.0)))
        if place is not None:
            creep = max(creep, float(np.abs(world.state.velocities["momentum"][body]).max()))
        elif spin == 0.0:
            stopped = world.time
            place = world.state.poses[body].tobytes()

    ledger = world.keep_books(round(seconds / world.dt), look)
    more = {
        "worst_rad_s": worst,
        "stays": place == world.state.poses[body].tobytes() and creep == 0.0,
        "sweeps_at_rest": int(world.report["sweeps_used"]),
        **books(ledger),
    }
    truth = math.ceil(start / loss) * world.dt
    return Truth(stopped, truth, abs(stopped - truth), 1.5 * world.dt, "s to rest", more)


def spin_on_a_patch(torsional: float = 2e-3, start: float = 3.0, seconds: float = 0.4) -> Truth:
    """A box that spins on one of its sides without Coulomb friction: I dw/dt = -torsional m g, whatever each corner
    carries."""
    mass, moment = 1.0, 2e-3
    box = Solid(
        block(0.1, 0.1, 0.04),
        (0.0, 0.0, 0.02 + GAP),
        mass=mass,
        moments=(1e-3, 1e-3, moment),
        friction=0.0,
        torsional=torsional,
        velocity=(0.0, 0.0, 0.0, 0.0, 0.0, start),
    )
    world = World([floor(0.0, torsional=torsional), box])
    return _spun_down(world, 1, start, torsional * mass * G / moment * world.dt, seconds)


def spin_on_a_point(torsional: float = 2e-3, start: float = 5.0, seconds: float = 0.4) -> Truth:
    """A ball that spins on one point, and that rolling friction keeps from tipping: I dw/dt = -torsional m g."""
    mass, radius = 1.0, 0.05
    moment = 0.4 * mass * radius**2
    ball = Solid(
        icosphere(radius, 2),
        (0.0, 0.0, radius + GAP),
        mass=mass,
        moments=(moment,) * 3,
        torsional=torsional,
        rolling=1e-3,
        velocity=(0.0, 0.0, 0.0, 0.0, 0.0, start),
    )
    world = World([floor(0.5, torsional=torsional, rolling=1e-3), ball])
    return _spun_down(world, 1, start, torsional * mass * G / moment * world.dt, seconds)


# Rolling.


def _wheel(rolling: float, slope: float, speed: float, sides: int, radius: float) -> tuple[World, np.ndarray]:
    """A wheel with the moment of a ball that rolls down a slope (rad): (world, unit vector downhill)."""
    mass = 1.0
    moment = 0.4 * mass * radius**2
    turn = turned((0.0, 1.0, 0.0), slope)
    normal = np.array([math.sin(slope), 0.0, math.cos(slope)])
    downhill = np.array([math.cos(slope), 0.0, -math.sin(slope)])
    mesh = wheel(radius, 0.1, sides)
    low = -float(mesh.vertices[:, 2].min())
    slab = Solid(block(8.0, 1.0, 0.2), -0.1 * normal, turn, friction=0.8, rolling=rolling)
    round_one = Solid(
        mesh,
        (low + GAP) * normal,
        turn,
        mass=mass,
        moments=(moment,) * 3,
        friction=0.8,
        rolling=rolling,
        velocity=(*(speed * downhill), 0.0, speed / radius, 0.0),
    )
    return World([slab, round_one]), downhill


def roll_out(rolling: float = 1e-2, speed: float = 0.1, seconds: float = 0.3, sides: int = 4096) -> Truth:
    """A wheel that rolls on the level loses rolling g / (R (1 + 2/5)) of its speed per second, and then rests.

    The point that holds it is known to the way of a step, and the moment to that arm.
    """
    radius = 0.1
    world, downhill = _wheel(rolling, 0.0, speed, sides, radius)
    rate = rolling * G / (radius * 1.4)
    truth = speed / rate
    half = round(0.5 * truth / world.dt)
    stopped, way, creep, lost = math.inf, 0.0, False, 0.0
    place = None

    def look(tick: int) -> None:
        nonlocal stopped, way, place, creep, lost
        if tick == half:
            lost = speed - float(world.velocities[1] @ downhill)
        moves = world.state.velocities["momentum"][1].any() or world.velocities[1].any()
        if stopped < math.inf:
            creep |= moves and place is not None
            if place is None and world.time > stopped + 0.1:  # it has settled on its edge, at the gap at rest
                place = world.state.poses[1].tobytes()
        elif not moves:
            stopped, way = world.time, float(world.positions[1] @ downhill)

    ledger = world.keep_books(round(seconds / world.dt), look)
    moving = np.diff(ledger.energy[: round(min(stopped, seconds) / world.dt)])
    more = {
        "error_halfway": relative(lost, half * world.dt * rate),
        "gain_while_it_rolls_J": float(np.maximum(moving, 0.0).sum()),
        "way_m": way,
        "way_truth_m": 0.5 * speed**2 / rate,
        "stays": place == world.state.poses[1].tobytes() and not creep,
        "sweeps_at_rest": int(world.report["sweeps_used"]),
        **books(ledger),
    }
    bar = speed * world.dt / rolling + world.dt / truth
    return Truth(stopped, truth, relative(stopped, truth), bar, "s to rest, relative", more)


def roll_on_slope(share: float, rolling: float = 2e-3, seconds: float = 0.3, sides: int = 4096) -> Truth:
    """A wheel on a slope of `share` of the one up to which it rests, tan = rolling / R; see `roll_out` for its bar."""
    radius = 0.1
    slope = math.atan(share * rolling / radius)
    world, downhill = _wheel(rolling, slope, 0.0, sides, radius)
    world.run(20)
    place = world.state.poses[1].tobytes()
    before = float(world.velocities[1] @ downhill)
    ticks = round(seconds / world.dt)
    ledger = world.keep_books(ticks)
    speed = float(world.velocities[1] @ downhill)
    value = (speed - before) / (ticks * world.dt)
    more = {"stays": place == world.state.poses[1].tobytes(), "sweeps": int(world.report["sweeps_used"])}
    more |= books(ledger)
    if share < 1.0:
        return Truth(value, 0.0, abs(value), 0.0, "acceleration downhill, m/s2: it stays", more)
    arm = radius * math.sin(slope) - rolling * math.cos(slope)
    truth = G * arm / (radius * 1.4)
    return Truth(value, truth, relative(value, truth), speed * world.dt / arm, "acceleration downhill, relative", more)


# A tool that is twisted.


def twisted_tool(share: float, torsional: float = 5e-3, mass: float = 0.0, seconds: float = 0.3) -> Truth:
    """A hand presses a box on a floor without Coulomb friction, and twists it by `share` of what the floor holds.

    The floor holds torsional N with N = k d at a goal d below the surface: the tool stays as it is up to there; beyond,
    the spring keeps torsional N, and the tool turns by the rest. One with mass stands still, for the eye, when it turns
    by less than STANDSTILL says, and its damper has a share of the torque as long.
    """
    stiffness, rotational, deep = 1000.0, 1.0, 1e-3
    world = World(
        [floor(0.0, torsional=torsional)],
        tool=block(0.04, 0.04, 0.02),
        tool_at=(0.0, 0.0, 0.01 + GAP),
        tool_mass=mass,
    )
    damping = 2.0 * math.sqrt(stiffness * mass)
    goal = (0.0, 0.0, 0.01 + GAP - deep)
    world.hold(stiffness, rotational, goal, damping)
    world.entry["rotational_damping"] = damping * rotational / stiffness
    world.run(50)
    limit = torsional * stiffness * deep
    angle = share * limit / rotational
    world.hold(stiffness, rotational, goal, damping, turned((0.0, 0.0, 1.0), angle))
    before = world.state.proxy[0]["orientation"].tobytes()
    world.run(round(seconds / world.dt))
    x, y, z, w = world.state.proxy[0]["orientation"]
    torque = rotational * (angle - 2.0 * math.atan2(z, w))
    truth = min(share, 1.0) * limit
    more = {
        "stays": before == world.state.proxy[0]["orientation"].tobytes(),
        "tilt_rad": float(math.hypot(x, y)),
        "sweeps": int(world.report["sweeps_used"]),
    }
    slowest = STANDSTILL * EPS[0] / (math.sqrt(0.02**2 + 0.02**2 + 0.01**2) * world.dt)
    bar = 1e-6 + float(world.entry["rotational_damping"][0] + rotational * world.dt) * slowest / limit
    bar = bar if mass > 0.0 else 1e-6
    return Truth(torque, truth, relative(torque, truth), bar, "torque on the hand, N m, relative", more)
