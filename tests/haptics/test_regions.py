"""Regions: a magnet is a potential with the stated pull and slope; a viscous one resists with b v."""

import numpy as np
import pytest
from haptics_rig import Rig
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics.regions import MAGNET, MAGNET_SHARE, STEEPEST, VISCOUS, make_region, region_force, set_regions
from haptics.states import CommandKind, Reason
from haptics.tables import REGION
from haptics.touch import make_touch

places = st.tuples(*[st.floats(-0.05, 0.05)] * 3)
AT_REST = (0.0, 0.0, 0.0)


def row(*arguments, **more):
    return make_region(*arguments, **more)[0]


def felt(region, place, hand=AT_REST) -> np.ndarray:
    table = np.zeros(1, REGION)
    table[0] = region
    return np.array(region_force(table[0], tuple(float(x) for x in place), hand))


def potential(u: float) -> float:
    """Of a magnet of strength and reach 1: integral of 27/4 t (1 - t)^2 from u to 1."""
    return 27 / 4 * (1 / 12 - (u**2 / 2 - 2 * u**3 / 3 + u**4 / 4)) if u < 1 else 0.0


@settings(deadline=None)
@given(places, places)
def test_a_magnet_is_the_gradient_of_its_potential(place, arm):
    """Central differences of the potential by the distance from the segment; error of h^2 against 1 N per reach."""
    region = row(MAGNET, (0.01, 0.0, 0.0), 0.03, 1.0, arm)

    def energy(at: np.ndarray) -> float:
        offset = at - np.array((0.01, 0.0, 0.0))
        size = float(np.dot(arm, arm))
        along = np.clip(np.dot(offset, arm) / size, -1.0, 1.0) if size > 0.0 else 0.0
        return -0.03 * potential(float(np.linalg.norm(offset - along * np.array(arm))) / 0.03)

    h = 1e-6
    at = np.array(place)
    slope = [(energy(at + h * axis) - energy(at - h * axis)) / (2 * h) for axis in np.eye(3)]
    assert felt(region, place) == pytest.approx(-np.array(slope), abs=2e-3)


def test_its_largest_pull_is_its_strength_at_a_third_of_its_reach():
    region = row(MAGNET, AT_REST, 0.03, 2.0)
    pulls = [-felt(region, (x, 0.0, 0.0))[0] for x in np.linspace(0.0, 0.04, 401)]
    assert max(pulls) == pytest.approx(2.0, rel=1e-3)
    assert np.argmax(pulls) == 100
    assert pulls[0] == 0.0 and pulls[300] == pytest.approx(0.0, abs=1e-12) and pulls[350] == 0.0


def test_its_core_is_as_stiff_as_stated():
    region = row(MAGNET, AT_REST, 0.03, 2.0)
    assert -felt(region, (1e-7, 0.0, 0.0))[0] / 1e-7 == pytest.approx(STEEPEST * 2.0 / 0.03, rel=1e-4)


def test_a_viscous_region_resists_and_fades_at_its_edge():
    region = row(VISCOUS, AT_REST, 0.04, 3.0)
    hand = (0.1, -0.2, 0.05)
    assert felt(region, (0.0, 0.029, 0.0), hand) == pytest.approx(-3.0 * np.array(hand))
    shares = [felt(region, (x, 0.0, 0.0), hand)[0] / -0.3 for x in np.linspace(0.03, 0.04, 101)]
    assert shares[0] == pytest.approx(1.0) and shares[50] == pytest.approx(0.5) and shares[100] == 0.0
    assert np.all(np.diff(shares) <= 0.0)


def test_a_hand_is_held_by_a_magnet_in_the_air():
    """Through the whole tick: the wrench at the device, along device axes, with the scene scaled by two."""
    rig = Rig(None, "omega6", stiffness=500.0, damping=0.0, ramp_up_ms=5.0, scale=2.0, start=(0.0, 0.0, 0.1))
    set_regions(rig.settings, [make_region(MAGNET, (0.0, 0.0, 0.11), 0.03, 1.5)])
    rig.activate((0.0, 0.0, 0.05))
    rig.run(20)
    assert rig.wrench[:3] == pytest.approx((0.0, 0.0, 1.5), rel=1e-9)
    assert rig.output["feed_forward"][:3] == pytest.approx((0.0, 0.0, 1.5), rel=1e-9)
    rig.glide((0.0, 0.0, 0.071))
    rig.run(20)
    assert not rig.wrench.any()


def magnet_at_its_limit() -> Rig:
    """In the middle of the stiffest magnet that is taken, damped by nothing, not engaged yet."""
    options = {"stiffness": 100.0, "damping": 0.0, "ramp_up_ms": 5.0, "hold_after_ms": 30.0, "stale_after_ms": 60.0}
    rig = Rig(None, start=(0.0, 0.0, 0.1), **options)
    largest = MAGNET_SHARE * rig.chosen["stiffness_max"] * 0.05 / STEEPEST
    set_regions(rig.settings, [make_region(MAGNET, (0.0, 0.0, 0.1), 0.05, largest * (1 - 1e-9))])
    rig.touch = make_touch(rig.settings)
    return rig


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 100.0])
def test_its_core_is_no_stiffer_at_another_scale(scale):
    """Force by way of the device, 1e-5 m off the core: within what was allowed, the less in a smaller map."""
    rig = magnet_at_its_limit()
    assert rig.command(CommandKind.LEASE) == Reason.NONE
    rig.send((0.0, 0.0, 0.1))
    assert rig.command(CommandKind.SET_SCALE, scale) == Reason.NONE
    assert rig.command(CommandKind.ARM, 1) == Reason.NONE
    rig.run(20)
    assert rig.output["effects"][:3] == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)
    rig.send((1e-5, 0.0, 0.1))
    stiffness = -rig.output["effects"][0] / 1e-5
    allowed = MAGNET_SHARE * rig.chosen["stiffness_max"]
    # So near it is as stiff as on the core but for (1 - u)^2, u = 1e-5 scale / 0.05.
    assert stiffness == pytest.approx(allowed * min(1.0, scale) * (1.0 - 2e-4 * scale) ** 2, rel=1e-6)


def test_it_weakens_with_slow_samples_as_the_spring_does():
    rig = magnet_at_its_limit()
    rig.activate((0.0, 0.0, 0.1))
    for _ in range(40):
        rig.send((0.0, 0.0, 0.1))
        rig.silence(9)
    rig.send((1e-5, 0.0, 0.1))
    share = rig.output["rate_share"]
    assert share == pytest.approx(0.1, rel=1e-6)
    allowed = MAGNET_SHARE * rig.chosen["stiffness_max"]
    assert -rig.output["effects"][0] / 1e-5 == pytest.approx(share * allowed, rel=1e-3)


def test_only_what_the_device_can_render_is_taken():
    rig = Rig(None, "touch", stiffness=300.0)
    largest = MAGNET_SHARE * 400.0 * 0.02 / STEEPEST
    set_regions(rig.settings, [make_region(MAGNET, AT_REST, 0.02, largest)])
    assert rig.chosen["region_count"] == 1
    with pytest.raises(ValueError, match=r"\[0\].strength = 0.6 N must be at most 0.593 N for a reach of 0.02 m"):
        set_regions(rig.settings, [make_region(MAGNET, AT_REST, 0.02, 0.6)])
    with pytest.raises(ValueError, match=r"\[1\].strength = 5 N·s/m must be at most 4"):
        set_regions(rig.settings, [make_region(VISCOUS, AT_REST, 0.02, s) for s in (4.0, 5.0)])
    with pytest.raises(ValueError, match="8 regions, not 9"):
        set_regions(rig.settings, [make_region(VISCOUS, AT_REST, 0.02, 1.0)] * 9)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((7, AT_REST, 0.1, 1.0), "kind = 7"),
        ((MAGNET, (0.0, float("nan"), 0.0), 0.1, 1.0), "position"),
        ((MAGNET, AT_REST, 0.0, 1.0), "reach = 0"),
        ((VISCOUS, AT_REST, 0.1, float("inf")), "strength = inf"),
    ],
)
def test_what_makes_no_region_is_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        make_region(*arguments)
