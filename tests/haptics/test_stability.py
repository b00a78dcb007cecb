"""Coupled stability: a simulated device with a hand on it, pressed onto a wall, comes to rest at what its card allows,
and visibly does not far beyond that; so the model can fail."""

import dataclasses

import numpy as np
import pytest
from haptics_rig import REST, Rig

from haptics.cards import card_names, load_card
from haptics.hands import HANDS_OFF, HELD, LIGHT, DeviceDynamics, Grip, SimulatedHand, WayPoints
from haptics.states import CommandKind, EngagementState

PUSH = 0.003
"""m below the surface that the hand wants to be."""


def pressed(card_name: str, stiffness: float, damping: float, grip: Grip, delay_ticks: int, ticks: int = 1500):
    """Height of the handle (m) and force (N) per tick of a hand that presses onto a plane and stays."""
    card = load_card(card_name)
    device = DeviceDynamics.from_card(card)
    unlocked = dataclasses.replace(card, stiffness_max=max(stiffness, card.stiffness_max or 0.0))
    rig = Rig(card=unlocked, stiffness=stiffness, damping=damping, ramp_up_ms=1.0)
    hand = SimulatedHand(
        WayPoints([0.0, 0.3], [(0.0, 0.0, REST + 0.002), (0.0, 0.0, REST - PUSH)]),
        grip,
        device,
        delay_ticks=delay_ticks,
    )
    rig.command(CommandKind.LEASE)
    rig.send(hand.position)
    rig.command(CommandKind.ARM, 1)
    heights, forces = [], []
    for _ in range(ticks):
        pose = hand.step(1e-3, rig.wrench)
        rig.send(pose.position, pose.orientation)
        heights.append(hand.position[2])
        forces.append(rig.wrench[2])
    assert rig.status == EngagementState.ACTIVE
    return np.array(heights), np.array(forces)


def swing(heights: np.ndarray, begin: int, end: int) -> float:
    return float(np.ptp(heights[begin:end]))


@pytest.mark.parametrize("delay_ticks", [0, 1])
@pytest.mark.parametrize("grip", [HELD, LIGHT], ids=["held", "light"])
@pytest.mark.parametrize("damping", [0.0, 2.0, 10.0])
def test_the_reference_device_settles_at_its_limit(grip, delay_ticks, damping):
    card = load_card("simulated")
    heights, forces = pressed("simulated", card.stiffness_max, damping, grip, delay_ticks)
    # At rest to within what dry friction and quantisation can hide.
    assert swing(heights, 1200, 1500) <= card.resolution
    held_back = grip.stiffness * (heights[-1] - (REST - PUSH))
    assert forces[-1] == pytest.approx(held_back, abs=card.coulomb_friction + 1e-6)


@pytest.mark.parametrize("name", [name for name in card_names() if load_card(name).stiffness_max is not None])
def test_every_card_settles_held_at_its_limits(name):
    """Held, without extra delay. Most cards know nothing of their mechanism: it is then the reference device's."""
    card = load_card(name)
    heights, _ = pressed(name, card.stiffness_max, min(card.damping_max, 2.0), HELD, 0)
    first, last = swing(heights, 350, 600), swing(heights, 1200, 1500)
    assert last <= max(first, 1e-5) and last <= 1e-5


@pytest.mark.parametrize("grip", [HELD, LIGHT], ids=["held", "light"])
def test_far_too_stiff_it_visibly_oscillates(grip):
    heights, forces = pressed("simulated", 30000.0, 0.0, grip, 1)
    assert swing(heights, 1200, 1500) > 1e-3
    assert np.ptp(forces[1200:]) > 5.0


@pytest.mark.parametrize("delay_ticks", [0, 1])
def test_nobody_holding_it_bounces_off_without_gaining_speed(delay_ticks):
    """Thrown at the wall at 0.1 m/s with the usual damping, it comes back no faster."""
    card = load_card("simulated")
    rig = Rig(stiffness=card.stiffness_max, damping=4.0, ramp_up_ms=1.0)
    hand = SimulatedHand(
        WayPoints([0.0], [(0.0, 0.0, REST + 0.003)]), HANDS_OFF, DeviceDynamics.from_card(card), delay_ticks=delay_ticks
    )
    hand.velocity[2] = -0.1
    rig.command(CommandKind.LEASE)
    rig.send(hand.position)
    rig.command(CommandKind.ARM, 1)
    fastest = deepest = 0.0
    for _ in range(300):
        pose = hand.step(1e-3, rig.wrench)
        rig.send(pose.position, pose.orientation)
        fastest = max(fastest, hand.velocity[2])
        deepest = min(deepest, hand.position[2] - REST)
    assert deepest < -2e-4
    assert 0.0 < fastest <= 0.1
