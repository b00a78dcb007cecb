"""Truths of rotation: the tennis racket's turning over, and tops that stand on their tip."""

import math

import numpy as np

from tools.scenes.bodies import EPS, Solid, World, block, floor, turned
from tools.scenes.mesh import Mesh, lathe
from tools.truths.truth import Truth, books, relative

G = 9.81
GAP = EPS[1]
PERIOD = 27.5308406
"""Time between two reversals of a body of moments 1, 2, 3 that turns about the middle axis at 1 rad/s, set off by 1e-3
about the two others, s; by two ways of quadrature (see tests/rtcore/dynamics/test_rigid_body.py)."""
FIRST = 14.9059389
"""Time of the first, s."""


def dzhanibekov(reversals: int = 3) -> Truth:
    """A body without weight that turns about its middle axis turns over, and again."""
    body = Solid(block(0.1, 0.2, 0.3), mass=1.0, moments=(1.0, 2.0, 3.0), velocity=(0.0, 0.0, 0.0, 1e-3, 1.0, 1e-3))
    world = World([body], (0.0, 0.0, 0.0))
    times: list[float] = []
    before = 1.0

    def look(tick: int) -> bool:
        nonlocal before
        now = float(world.axis(0, (0.0, 1.0, 0.0)) @ world.state.velocities["angular"][0])
        if now * before < 0.0:
            times.append(world.time - world.dt * now / (now - before))
        before = now
        return len(times) == reversals

    begun = world.energy, world.angular_momentum
    world.run(round((FIRST + reversals * PERIOD) / world.dt), look)
    truth = FIRST + (reversals - 1) * PERIOD
    value = times[-1] if len(times) == reversals else math.inf
    momentum = float(np.linalg.norm(world.angular_momentum - begun[1]) / np.linalg.norm(begun[1]))
    more = {
        "momentum_error": float(f"{momentum:.2g}"),
        "energy_error": float(f"{relative(world.energy, begun[0]):.2g}"),
    }
    return Truth(value, truth, abs(value - truth), 1e-3, f"s to reversal {reversals}", more)


# Tops.

MASS, LENGTH, ACROSS, ALONG = 0.5, 0.06, 1e-3, 1.5e-3
"""kg; m from the tip to the centre of mass; moments about axes through it, across and along the spin, kg m2."""


def _top() -> Mesh:
    """A spinning top: a cone that stands on its tip, its origin the centre of mass, LENGTH above the tip."""
    profile = np.array([[0.02, 0.04], [0.03, 0.06], [0.03, 0.08]])
    mesh = lathe(profile, 24)
    vertices = mesh.vertices.copy()
    vertices[-2] = 0.0
    return Mesh(vertices - [0.0, 0.0, LENGTH], mesh.faces)


def _spun(lean: float, spin: float, precession: float) -> World:
    """A top on its tip that leans towards x: spin along its axis (inertial) and precession, rad/s."""
    axis = np.array([math.sin(lean), 0.0, math.cos(lean)])
    turning = spin * axis + precession * (np.array([0.0, 0.0, 1.0]) - math.cos(lean) * axis)
    shift = np.cross(turning, LENGTH * axis)
    top = Solid(
        _top(),
        LENGTH * axis + [0.0, 0.0, GAP],
        turned((0.0, 1.0, 0.0), lean),
        mass=MASS,
        moments=(ACROSS, ACROSS, ALONG),
        friction=1.0,
        velocity=(*shift, *turning),
    )
    return World([floor(1.0, 2.0), top])


def heavy_top(seconds: float = 5.0, lean: float = 0.5, precession: float = 3.0) -> Truth:
    """A top on its tip, held there by friction, precesses steadily: I3 w W - I1 W^2 cos(lean) = m g l, about the tip.

    I1, I3: moments about the tip, across and along the axis; w: spin along the axis, W: precession. The error is that
    of the scheme and goes with the step.
    """
    about_tip = ACROSS + MASS * LENGTH**2
    spin = (MASS * G * LENGTH + about_tip * precession**2 * math.cos(lean)) / (ALONG * precession)
    world = _spun(lean, spin, precession)
    angles, leans = [], []

    def look(tick: int) -> None:
        axis = world.axis(1)
        angles.append(math.atan2(axis[1], axis[0]))
        leans.append(math.acos(max(-1.0, min(1.0, axis[2]))))

    ledger = world.keep_books(round(seconds / world.dt), look)
    turned_by = float(np.unwrap(angles)[-1])
    value = turned_by / world.time
    tip = world.positions[1] - LENGTH * world.axis(1)
    more = {
        "lean_rad": [lean, float(min(leans)), float(max(leans))],
        "tip_moved_m": float(f"{np.linalg.norm(tip[:2]):.2g}"),
        "spin_kept": float(world.axis(1) @ world.turning[1]) / spin,
        **books(ledger),
    }
    return Truth(value, precession, relative(value, precession), 2e-3, "precession, rad/s, relative", more)


def sleeping_top(share: float, seconds: float = 3.0) -> Truth:
    """An upright top stays up if it spins at 2 sqrt(m g l I1) / I3 or faster, `share` of which this one does."""
    about_tip = ACROSS + MASS * LENGTH**2
    least = 2.0 * math.sqrt(MASS * G * LENGTH * about_tip) / ALONG
    start = 1e-3
    world = _spun(start, share * least, 0.0)
    leans = []

    def look(tick: int) -> bool:
        leans.append(math.acos(max(-1.0, min(1.0, world.axis(1)[2]))))
        return leans[-1] > 0.5

    ledger = world.keep_books(round(seconds / world.dt), look)
    largest = max(leans)
    more = {"spin_rad_s": share * least, "least_rad_s": least, **books(ledger)}
    if share > 1.0:
        # Linear theory: the axis swings about the vertical within start / sqrt(1 - 1 / share^2) of it.
        bound = start / math.sqrt(1.0 - 1.0 / share**2)
        return Truth(largest, bound, max(largest / bound - 1.0, 0.0), 0.1, "largest lean, rad, at most: upright", more)
    return Truth(largest, 0.2, max(0.2 - largest, 0.0), 0.0, "largest lean, rad, at least: it falls", more)
