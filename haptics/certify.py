"""How stiff a device may be rendered: the largest stable stiffness by hand, scene and damping, found by simulation.

The real tick runs against a simulated hand (:mod:`haptics.certify_loop`). The device is let go with a small velocity:
where the hand's push and the wall's spring balance, in the middle of the clamp, or with no hand on its way to the wall.
What it then has of energy above that at rest, the excitation, tells whether an oscillation grows, stays or dies out. A
run is stable when

* forces stay on;
* the largest excitation in its last window is not above that in its first, and is at most `DECAY` of that in the middle
  one, unless by then the device rests to within `REST_STEPS` of its encoder, or nothing pushes it;
* and where no hand is there to bring it back to the wall, it leaves the wall no faster than it came.

A linear loop is at its limit where its spectral radius is 1. Dry friction and encoder make the limit depend on how the
motion begins (Diolaiti, Niemeyer, Barbagli and Salisbury 2006), so it begins in the same ways for every device.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from haptics.cards import DeviceCard
from haptics.certified import CertifiedRow
from haptics.certify_loop import EXCITATION, FORCE, POSITION, SCENES, Body, Course, run
from haptics.hands import HANDS_OFF, HELD, LIGHT, DeviceDynamics, Grip
from haptics.settings import make_settings

HANDS: dict[str, Grip] = {"held": HELD, "light": LIGHT, "none": HANDS_OFF}
"""By the name that rows have."""

KICKS = (0.1, 0.03, 0.01)
"""m/s: the speeds at which the device is let go. Slow for a hand; small ones show what grows to an amplitude and stays,
large ones what dry friction hides from small ones. Each must die out."""
PUSH = 0.003
"""m behind the wall where a hand wants to be."""
GAP = 0.001
"""m before the wall where a device without a hand begins."""
DURATION_S = 2.4
WINDOW_S = 0.4
DECAY = 0.9
REST_STEPS = 2
SMALLEST_STEP = 1e-6
"""m: stands for the step of an encoder that has none."""
SEED = 1
"""Of where the device begins within a step of its encoder, and of how its velocity leans."""
RUNAWAY = 9.0
"""A run ends early when the excitation is so many times that of the beginning: three times the amplitude."""

STEPS_PER_DECADE = 40
"""Of the stiffnesses that are tried: 6 % from one to the next."""
LOWEST, HIGHEST = 1, 5
"""Decades: 10 to 100 000 N/m."""
DAMPING = 1.0
"""N·s/m: up to here a device is certified whose card states no largest damping; it is what configurations ask for."""
UNLIMITED = 1e6
"""N: force limit of a sweep. A saturated spring is softer, and would pass for a stable one."""

MECHANISM = ("damping_max", "speed_max", "mass", "viscous_friction", "coulomb_friction", "resolution")
"""Keys of a card that a limit depends on: the controller damps by the card's largest damping."""


def stiffness_step(index: int) -> float:
    """The stiffness (N/m) of a step of the grid, to three digits."""
    return float(f"{10.0 ** (LOWEST + index / STEPS_PER_DECADE):.3g}")


STEPS = (HIGHEST - LOWEST) * STEPS_PER_DECADE
DOUBLING = round(STEPS_PER_DECADE * math.log10(2.0))
"""Steps of the grid to about twice the stiffness."""


@dataclass(frozen=True)
class Setup:
    """A loop to be tried: who holds what where, and what is between device and tool."""

    hand: str
    """Of HANDS."""
    scene: str
    """Of SCENES."""
    rate: float
    """Hz"""
    delay_ticks: int
    """By which the wrench reaches the motors late, on top of being held for a tick."""
    passivity: bool
    """Whether the passivity controller is on."""


def mechanism(card: DeviceCard) -> DeviceCard:
    """A card with what a limit depends on and nothing else: equal mechanisms are certified once.

    Forces only, and without a limit of force, which could hide an instability.
    """
    return DeviceCard(
        name="mechanism",
        model="",
        sensed=3,
        actuated=3,
        source="",
        conditions="",
        force_max=UNLIMITED,
        **{key: getattr(card, key) for key in MECHANISM},
    )


def let_go(setup: Setup, settings: np.ndarray, body: Body, kick: float) -> Course:
    """Let the device go once at a speed (m/s): a little off the normal, and off the grid of the encoder."""
    random = np.random.default_rng(SEED)
    stiffness = float(settings["stiffness"][0])
    push = PUSH if setup.scene == "wall" and body.stiffness > 0.0 else 0.0
    height = -push * body.stiffness / (body.stiffness + stiffness)
    if setup.scene == "wall" and body.stiffness == 0.0:
        height = GAP
    aside, along, up = random.uniform(-0.5, 0.5, 3) * max(body.resolution, SMALLEST_STEP)
    tilt, lean = random.uniform(-0.05, 0.05, 2)
    return run(
        setup.scene,
        body,
        settings,
        delay_ticks=setup.delay_ticks,
        position=(aside, along, height + up),
        velocity=(kick * tilt, kick * lean, -kick),
        target=(aside, along, -push),
        at_rest=0.5 * push * push * body.stiffness * stiffness / (body.stiffness + stiffness),
        ticks=round(DURATION_S * setup.rate),
        giving_up=RUNAWAY * 0.5 * body.mass * kick * kick,
    )


def is_settled(course: Course, setup: Setup, body: Body) -> bool:
    """Whether a run is stable by the rules above."""
    ticks, window = round(DURATION_S * setup.rate), round(WINDOW_S * setup.rate)
    if not course.engaged or len(course.rows) < ticks:
        return False
    energy, height, force = (course.rows[:, column] for column in (EXCITATION, POSITION, FORCE))
    if setup.scene == "wall" and body.stiffness == 0.0 and not leaves_no_faster(energy, force):
        return False
    middle = (ticks - window) // 2
    first, between, last = (energy[begin : begin + window].max() for begin in (0, middle, ticks - window))
    step = max(body.resolution, SMALLEST_STEP)
    rests = np.ptp(height[-window:]) <= REST_STEPS * step or not force[-window:].any()
    return bool(last <= first and (rests or last <= DECAY * between))


def leaves_no_faster(energy: np.ndarray, force: np.ndarray) -> bool:
    """Whether a device without a hand never flies with more energy after it met the wall than before: (n,) each."""
    touching = np.flatnonzero(force)
    if len(touching) == 0:
        return True
    after = energy[touching[0] :][force[touching[0] :] == 0.0]
    return len(after) == 0 or bool(after.max() <= energy[touching[0] - 1])


def is_stable(card: DeviceCard, setup: Setup, stiffness: float, damping: float, body: Body | None = None) -> bool:
    """Whether every disturbance dies out at these gains (N/m, N·s/m); body: by hand and card unless given."""
    if body is None:
        body = Body.of(HANDS[setup.hand], DeviceDynamics.from_card(card))
    settings = make_settings(
        dataclasses.replace(mechanism(card), stiffness_max=stiffness),
        tick_hz=setup.rate,
        stiffness=stiffness,
        damping=damping,
        passivity=setup.passivity,
        ramp_up_ms=1e3 / setup.rate,
    )
    return all(is_settled(let_go(setup, settings, body, kick), setup, body) for kick in KICKS)


def stiffness_limit(card: DeviceCard, setup: Setup, damping: float, body: Body | None = None) -> float:
    """The stiffness (N/m) up to which all that was tried is stable: 0 where the lowest is not, the highest at most.

    Every doubling from the lowest up is tried, and between the last good one and the first bad one the grid is halved.
    """
    good, bad = -1, STEPS + 1
    for index in range(0, STEPS + 1, DOUBLING):
        if not is_stable(card, setup, stiffness_step(index), damping, body):
            bad = index
            break
        good = index
    while bad - good > 1:
        middle = (good + bad) // 2
        if is_stable(card, setup, stiffness_step(middle), damping, body):
            good = middle
        else:
            bad = middle
    return stiffness_step(good) if good >= 0 else 0.0


@cache
def _limit(device: DeviceCard, setup: Setup, damping: float) -> float:
    return stiffness_limit(device, setup, damping)


@dataclass(frozen=True)
class Conditions:
    """What rows hold for, besides hand, scene and passivity controller."""

    rate: float = 1000.0
    """Hz"""
    delays: tuple[int, ...] = (0, 1)
    """Ticks. None: the answer is applied at once, as with triggered clocking. One: in the next period, as when daemon
    and adapter each keep their own."""


def dampings(card: DeviceCard) -> tuple[float, ...]:
    """The dampings (N·s/m) at which a card is certified: none, and to its largest by factors of about three."""
    largest = card.damping_max if card.damping_max is not None else DAMPING
    return (0.0, *sorted({float(f"{largest / part:.2g}") for part in (30.0, 10.0, 3.0)}), largest)


def setups(conditions: Conditions, passivity: Iterable[bool] = (True, False)) -> list[Setup]:
    """Every hand in every scene, with and without the controller."""
    return [
        Setup(hand, where, conditions.rate, delay, on)
        for on, delay, hand, where in product(passivity, conditions.delays, HANDS, SCENES)
    ]


def certify(
    card: DeviceCard,
    conditions: Conditions = Conditions(),
    *,
    only: Callable[[Setup], bool] = lambda setup: True,
    progress: Callable[[str, int, int], None] = lambda what, done, of: None,
) -> tuple[CertifiedRow, ...]:
    """Find a card's rows by simulation; ``only`` chooses among the setups. Equal calls give equal rows, to the bit.

    ``progress`` gets (what, done, of). Raises ValueError for a device that renders nothing.
    """
    if card.input_only:
        raise ValueError(f"the device of the card {card.name!r} is input only: it renders nothing to be certified")
    chosen = [setup for setup in setups(conditions) if only(setup)]
    rows = []
    for done, setup in enumerate(chosen):
        progress(f"{card.name}: {setup.hand}, {setup.scene}", done, len(chosen))
        limits = tuple(_limit(mechanism(card), setup, damping) for damping in dampings(card))
        rows.append(
            CertifiedRow(
                "simulated",
                setup.hand,
                setup.scene,
                setup.passivity,
                setup.rate,
                setup.delay_ticks,
                dampings(card),
                limits,
            )
        )
    return tuple(rows)
