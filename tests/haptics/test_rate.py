"""Rate: samples that come half as often leave half of the stiffness, smoothly both ways; one late sample changes
nothing, and a slow client that would shake on the full spring stands still on what is left."""

import dataclasses

import numpy as np
import pytest
from haptics_rig import REST, Rig

from haptics.cards import load_card
from haptics.hands import LIGHT, DeviceDynamics, SimulatedHand, WayPoints
from haptics.limits import SLOWED
from haptics.rate import FALL, RISE, wanted_share
from haptics.states import CommandKind, EngagementState

K = 1000.0


def pressed(**options) -> Rig:
    rig = Rig(stiffness=K, damping=0.0, ramp_up_ms=20.0, **options)
    rig.activate((0.0, 0.0, REST))
    rig.press(0.004)
    return rig


def every(rig: Rig, ticks: int, samples: int) -> list[float]:
    """So many samples, each so many ticks after the one before; the share after each tick."""
    shares = []
    for _ in range(samples):
        rig.send()
        shares.append(float(rig.output["rate_share"]))
        for _ in range(ticks - 1):
            rig.silence()
            shares.append(float(rig.output["rate_share"]))
    return shares


@pytest.mark.parametrize("ticks", [2, 4])
def test_the_stiffness_goes_as_the_rate_and_comes_back(ticks):
    """In an nth of the rate it settles at K / n, and the force with it, falling by at most one in 0.1 s and rising by
    at most one in a second: no step either way, and nothing else moves."""
    rig = pressed()
    assert rig.output["rate_share"] == 1.0 and not rig.output["limited"] & SLOWED
    full = rig.wrench[2]
    shares = every(rig, ticks, 80)
    assert shares[-1] == pytest.approx(1.0 / ticks, rel=1e-9)
    assert rig.output["sample_period_s"] == pytest.approx(ticks * 1e-3, rel=1e-9)
    assert rig.output["stiffness"][2] == pytest.approx(K / ticks) and rig.row["stiffness"] == K
    assert rig.wrench[2] == pytest.approx(full / ticks, rel=1e-3) and rig.output["limited"] & SLOWED
    assert rig.status == EngagementState.ACTIVE
    shares += every(rig, 1, 1200)
    assert shares[-1] == 1.0 and rig.wrench[2] == pytest.approx(full, rel=1e-3)
    steps = np.diff(shares)
    assert steps.min() >= -1e-3 / FALL - 1e-12 and steps.max() <= 1e-3 / RISE + 1e-12


def test_one_late_sample_is_no_rate_and_two_are():
    rig = pressed()
    rig.silence(14)
    assert rig.output["rate_share"] == 1.0
    every(rig, 1, 5)
    assert rig.output["rate_share"] == 1.0
    rig.silence(16)
    assert rig.output["rate_share"] < 1.0


def test_jitter_is_no_rate():
    """Time stamps that wander by a fifth of a tick both ways, as samples of a client that is not in step do."""
    rig = pressed()
    random = np.random.default_rng(3)
    for _ in range(300):
        at = rig.now_ms
        rig.now_ms = at + random.uniform(-0.2, 0.2)
        rig.send()
        rig.now_ms = at + 1.0
        assert rig.output["rate_share"] == 1.0


def test_the_factor_is_continuous_and_the_ratio_for_slow_samples():
    ratios = np.linspace(0.5, 10.0, 20001)
    shares = np.array([wanted_share(ratio * 1e-3, 1e-3) for ratio in ratios])
    assert np.all(np.diff(shares) <= 0.0) and np.abs(np.diff(shares)).max() < 1e-3
    assert np.all(shares[ratios <= 1.1] == 1.0)
    assert np.allclose(shares[ratios >= 1.5], 1.0 / ratios[ratios >= 1.5], rtol=1e-12)


def test_it_can_be_switched_off_and_a_lease_begins_anew():
    rig = pressed(rate_adaptation=False)
    assert set(every(rig, 3, 40)) == {1.0} and rig.output["sample_period_s"] == pytest.approx(3e-3)
    rig = pressed()
    every(rig, 4, 80)
    rig.command(CommandKind.RELEASE)
    rig.run(130)
    rig.command(CommandKind.LEASE, session=9, fresh=False)
    assert rig.output["rate_share"] == 1.0


@pytest.mark.parametrize("adapts", [True, False])
def test_a_client_of_250_hz_stands_still_on_what_its_rate_leaves(adapts):
    """A light hand on the card's K: stable at 1 kHz, not at 250 Hz (bound 1050 N/m), but at a quarter of it. Without
    dry friction, which would hide it, and without the passivity controller."""
    card = load_card("simulated")
    rig = Rig(stiffness=2000.0, damping=0.0, ramp_up_ms=1.0, passivity=False, rate_adaptation=adapts)
    device = dataclasses.replace(DeviceDynamics.from_card(card), coulomb_friction=0.0)
    hand = SimulatedHand(WayPoints([0.0, 0.3], [(0.0, 0.0, REST + 0.002), (0.0, 0.0, REST - 0.01)]), LIGHT, device)
    rig.command(CommandKind.LEASE)
    rig.send(hand.position)
    rig.command(CommandKind.ARM, 1)
    heights = []
    for _ in range(900):
        pose = hand.step(4e-3, rig.wrench)
        rig.send(pose.position, pose.orientation)
        # The wrench of this sample is applied until the next one: what the tick makes in between is not asked for.
        felt = rig.wrench
        rig.silence(3)
        rig.output["wrench"] = felt
        heights.append(hand.position[2])
    assert rig.status == EngagementState.ACTIVE
    assert (np.ptp(heights[800:]) < 2e-5) == adapts
    assert rig.output["rate_share"] == (pytest.approx(0.25) if adapts else 1.0)
