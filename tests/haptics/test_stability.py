"""Coupled stability: a simulated device with a hand on it, pressed onto a wall, comes to rest at what its card allows,
and visibly does not far beyond that; so the model can fail. Bounds and closed loops agree with simulation and algebra.
"""

import dataclasses

import numpy as np
import pytest
from haptics_rig import REST, Rig

from haptics.cards import card_names, load_card
from haptics.hands import HANDS_OFF, HELD, LIGHT, DeviceDynamics, Grip, SimulatedHand, WayPoints, advance
from haptics.stability import (
    STIFFEST,
    Loop,
    bounds,
    controlled_stiffness,
    delayed_stiffness,
    energy_floor,
    largest_stiffness,
    passive_stiffness,
    spectral_radius,
)
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


# --------------------------------------------------------------------------------------- what theory says of it


def simulated(loop: Loop, stiffness: float, damping: float, ticks: int) -> np.ndarray:
    """Deflection per tick of the same loop by the hand model's own integrator, from 1 mm and a spring both ways."""
    x, v = np.array([1e-3, 0.0, 0.0]), np.zeros(3)
    seen, late, rows = [1e-3] * loop.samples, [0.0] * loop.delay_ticks, []
    times = -loop.period * np.arange(loop.samples)
    for _ in range(ticks):
        seen = [float(x[0]), *seen[:-1]]
        late.append(-stiffness * seen[0] - damping * float(np.polyfit(times, seen, 1)[0]))
        advance(
            x,
            v,
            np.zeros(3),
            np.zeros(3),
            np.array([late.pop(0), 0.0, 0.0]),
            loop.mass,
            loop.grip_stiffness,
            loop.grip_damping,
            loop.friction,
            0.0,
            loop.period / 20,
            20,
        )
        rows.append(x[0])
    return np.array(rows)


LOOPS = {
    f"{name}, {ticks} ticks late": Loop.of(DeviceDynamics.from_card(load_card("simulated")), grip, delay_ticks=ticks)
    for name, grip in (("held", HELD), ("light", LIGHT), ("hands off", HANDS_OFF))
    for ticks in (0, 1, 3)
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_the_closed_loops_matrix_tells_whether_a_simulation_grows(name, damping):
    """5 % below the limit the deflection has fallen after 1.5 s, 5 % above it has grown: independent integrator and
    fit, and a margin at which both show in that time (the radius differs from 1 by more than 1e-4)."""
    loop = LOOPS[name]
    limit = largest_stiffness(loop, damping)
    assert 0.0 < limit < STIFFEST
    for share in (0.95, 1.05):
        rows = np.abs(simulated(loop, share * limit, damping, 1500))
        assert (rows[1300:].max() > rows[300:500].max()) == (share > 1.0)
        assert (spectral_radius(loop, share * limit, damping) > 1.0) == (share > 1.0)


def test_a_free_mass_on_a_held_spring_is_never_stable_and_as_fast_as_its_determinant_says():
    """m x'' = held -K x, no friction: eigenvalues have the product 1 + K T^2 / (2 m)."""
    loop = Loop(mass=0.2, friction=0.0, samples=2)
    for stiffness in (10.0, 1000.0):
        growth = spectral_radius(loop, stiffness, 0.0)
        assert growth == pytest.approx((1.0 + stiffness * 1e-6 / (2 * 0.2)) ** 0.5, rel=1e-9)
    assert largest_stiffness(loop, 0.0) == 0.0


def test_with_a_backward_difference_the_limit_is_the_closed_form_of_a_double_integrator():
    """A mass without friction, K and B by a backward difference: z^3 - 2 z^2 + z + (z + 1)((k + b) z - b) with k =
    K T^2 / 2m, b = B T / 2m; at the border of stability by the discrete Routh-Hurwitz (Jury) conditions."""
    mass, damping, period = 0.2, 20.0, 1e-3
    loop = Loop(mass=mass, friction=0.0, period=period, samples=2)
    b = damping * period / (2 * mass)

    def stable(stiffness: float) -> bool:
        k = stiffness * period**2 / (2 * mass)
        a2, a1, a0 = k + b - 2.0, 1.0 + k, -b
        return 1 + a2 + a1 + a0 > 0 and 1 - a2 + a1 - a0 > 0 and abs(a0) < 1 and abs(a0 * a0 - 1) > abs(a0 * a2 - a1)

    limit = largest_stiffness(loop, damping)
    assert stable(0.9999 * limit) and not stable(1.0001 * limit)


@pytest.mark.parametrize("delay_ticks", [0, 1, 2])
def test_the_delay_aware_bound_is_the_exact_limit_where_its_condition_holds(delay_ticks):
    """Without a damper and with K (T/2 + t_d)^2 and b T a hundredth of m or less: to 1 %."""
    for friction in (0.1, 1.0):
        loop = Loop(mass=1.0, friction=friction, delay_ticks=delay_ticks)
        bound = delayed_stiffness(friction, 0.0, 1e-3, delay_ticks * 1e-3)
        assert bound * ((0.5 + delay_ticks) * 1e-3) ** 2 < 0.01
        assert largest_stiffness(loop, 0.0) == pytest.approx(bound, rel=0.01)


def test_what_is_passive_is_stable_in_every_hand_and_the_order_of_bounds():
    """b > K T / 2 + |B|: within it the exact loop is stable whatever the hand adds."""
    assert passive_stiffness(1.0, 0.0, 1e-3) == 2000.0
    assert passive_stiffness(1.0, 0.4, 1e-3) == pytest.approx(1200.0)
    assert passive_stiffness(1.0, -0.4, 1e-3) == pytest.approx(1200.0)
    assert passive_stiffness(0.1, 2.0, 1e-3) == 0.0
    assert controlled_stiffness(0.1, 9.0, 1e-3) == pytest.approx(18200.0)
    random = np.random.default_rng(5)
    for _ in range(40):
        friction, mass = random.uniform(0.05, 5.0), random.uniform(0.05, 2.0)
        damping = random.uniform(0.0, 0.9) * friction
        hand = Grip(random.uniform(0, 1), random.uniform(0, 2000), random.uniform(0, 20), 0.0, 0.0, 0.0)
        loop = Loop.of(DeviceDynamics(mass=mass, viscous_friction=friction), hand)
        assert spectral_radius(loop, 0.99 * passive_stiffness(friction, damping, 1e-3), damping) < 1.0


def test_bounds_of_a_card_and_the_floor_of_its_energy():
    found = bounds(load_card("simulated"), HELD, 2.0, delay_ticks=1, controller=9.0)
    assert found.passive == 0.0
    assert found.delayed == pytest.approx((0.1 + 8.0 + 2.0) / 1.5e-3)
    assert found.exact == pytest.approx(largest_stiffness(LOOPS["held, 1 ticks late"], 2.0))
    assert 0.5 * found.delayed < found.exact < found.delayed
    assert found.controlled == pytest.approx(18200.0)
    assert energy_floor(2000.0, 1e-3, speed=0.5) == pytest.approx(2 * 0.5 * 2000.0 * 0.0005**2)
    assert energy_floor(2000.0, 1e-3, speed=0.0, resolution=1e-5) == pytest.approx(2e-7)
