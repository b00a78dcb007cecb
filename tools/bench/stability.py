"""Every driven card in every simulated hand, against a wall and in a clamp: stable at what the card allows, or not."""

import argparse
from typing import Any

from haptics.cards import DeviceCard, card_names, load_card
from haptics.certify import (
    HANDS,
    KICKS,
    PUSH,
    Conditions,
    Setup,
    is_settled,
    let_go,
    setups,
    stiffness_limit,
)
from haptics.certify_loop import EXCITATION, OBSERVER, Body
from haptics.hands import DeviceDynamics
from haptics.settings import make_settings
from haptics.stability import energy_floor
from tools.bench.common import Figure, Progress, Result

STIFFNESS, DAMPING = 400.0, 1.0
"""What a configuration asks for that does not say: in force where the card states no largest stiffness."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cards", help="names of cards with commas between them; all without")
    parser.add_argument("--no-limits", action="store_true", help="do not search for the limit of each card")


def at_the_limit(card: DeviceCard, setup: Setup) -> dict[str, Any]:
    """One hand in one scene at the card's largest stiffness, with the card's limits of force and slew."""
    stiffness = card.stiffness_max if card.stiffness_max is not None else STIFFNESS
    settings = make_settings(
        card,
        tick_hz=setup.rate,
        stiffness=stiffness,
        damping=DAMPING,
        passivity=setup.passivity,
        ramp_up_ms=1e3 / setup.rate,
    )
    body = Body.of(HANDS[setup.hand], DeviceDynamics.from_card(card))
    courses = [let_go(setup, settings, body, kick) for kick in KICKS]
    # The observer counts from a spring that is loaded already: what that holds has been put in before.
    loaded = 0.0
    if setup.scene == "wall" and body.stiffness > 0.0:
        loaded = 0.5 * stiffness * (PUSH * body.stiffness / (body.stiffness + stiffness)) ** 2
    produced = max(float(course.rows[:, OBSERVER].max()) for course in courses) - loaded
    floor = -energy_floor(stiffness, 1.0 / setup.rate, speed=max(KICKS), resolution=body.resolution)
    begin = 0.5 * body.mass * max(KICKS) ** 2
    return {
        "settles": all(is_settled(course, setup, body) for course in courses),
        "energy_min_J": min(0.0, -produced),
        "energy_floor_J": floor,
        "growth": round(float(courses[0].rows[:, EXCITATION].max()) / begin, 3),
    }


def holds(case: dict[str, Any]) -> bool:
    """Whether a case is stable: its oscillation dies out, and the observer stays above its floor."""
    return case["settles"] and case["energy_min_J"] >= case["energy_floor_J"]


def of_card(card: DeviceCard, delay: int, guards: bool) -> dict[str, Any]:
    """All hands and scenes of one card, and the one that comes nearest to its floor or below it."""
    cases = {
        f"{setup.hand}, {setup.scene}": at_the_limit(card, setup)
        for setup in setups(Conditions(delays=(delay,)), (guards,))
    }
    lowest = max(cases.values(), key=lambda case: case["energy_min_J"] / case["energy_floor_J"])
    return {
        "stable": all(holds(case) for case in cases.values()),
        "energy_min_J": lowest["energy_min_J"],
        "energy_floor_J": lowest["energy_floor_J"],
        "unsettled": [name for name, case in cases.items() if not case["settles"]],
        "below_floor": [name for name, case in cases.items() if case["energy_min_J"] < case["energy_floor_J"]],
        "growth": max(case["growth"] for case in cases.values()),
    }


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    names = arguments.cards.split(",") if arguments.cards else card_names()
    unknown = [name for name in names if name not in card_names()]
    if unknown:
        raise SystemExit(f"there is no card {unknown[0]!r}; there are {', '.join(card_names())}")
    cards: dict[str, Any] = {}
    without: dict[str, Any] = {}
    delayed: dict[str, Any] = {}
    for card in (load_card(name) for name in names):
        if card.input_only:
            continue
        progress(card.name)
        limits = {}
        if not arguments.no_limits:
            for setup in setups(Conditions(delays=(0,)), (True,)):
                limits[f"{setup.hand}, {setup.scene}"] = stiffness_limit(card, setup, DAMPING)
        cards[card.name] = {
            "k_limit": min(limits.values(), default=None),
            "k_card": card.stiffness_max,
            **of_card(card, 0, True),
            "limits": limits,
        }
        without[card.name] = of_card(card, 0, False)
        delayed[card.name] = of_card(card, 1, True)
    lowest = max(cards.values(), key=lambda card: card["energy_min_J"] / card["energy_floor_J"])
    unstable = [name for name, card in cards.items() if not card["stable"]]
    # Visibly: an oscillation that grows or stays, not only energy that an observer counts.
    fails = any(card["unsettled"] for card in without.values())
    figures = {
        "cards": cards,
        "cards_unstable": unstable,
        "energy_min_J": lowest["energy_min_J"],
        "energy_floor_J": lowest["energy_floor_J"],
        "guards_off_fails": fails,
        "guards_off": without,
        "guards_off_growth": max(card["growth"] for card in without.values()),
        "one_tick_late": delayed,
        "one_tick_late_unstable": [name for name, card in delayed.items() if not card["stable"]],
    }
    notes = [
        "1 kHz, wrench applied at once and held for a tick; damping 1 N·s/m. one_tick_late: with one tick more.",
        "Cards that state no mechanism stand on the reference device's: 0.15 kg, 0.1 N·s/m, 0.1 N, 10 um.",
    ]
    return Result(figures, not unstable and fails, notes=notes)


FIGURE = Figure(
    "stability",
    "Every driven card, held, held lightly and let go, on a wall and in a clamp: stable at its own stiffness.",
    _arguments,
    run,
)
