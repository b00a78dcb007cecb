"""One end of a link from configured numbers: defaults, what the card caps, and one sentence for each wrong number."""

import math

import numpy as np
import pytest

from haptics.cards import card_names, load_card
from haptics.link_codes import (
    FOUR_CHANNEL,
    LAWS,
    METHODS,
    POSITION_FORCE_FOLLOWER,
    POSITION_FORCE_LEADER,
    POSITION_POSITION,
    TANK,
    WAVES,
)
from haptics.link_settings import make_link
from haptics.settings import make_settings


def device(card="simulated", **changes):
    return make_settings(load_card(card), **changes)


def test_an_end_takes_the_gains_of_its_coupling():
    settings = device(stiffness=300.0, damping=0.75)
    end = make_link(settings)[0]
    assert (end["on"], end["law"], end["method"]) == (1, POSITION_POSITION, WAVES)
    assert (end["stiffness"], end["damping"], end["dt"]) == (300.0, 0.75, 1e-3)
    assert (end["stale_after_ns"], end["ramp_up_ticks"], end["ramp_down_ticks"]) == (500_000_000, 500, 100)
    assert list(end["mirror"]) == [1.0, 1.0, 1.0]
    assert end["force_gain"] == 0.0


def test_gains_are_capped_by_the_card():
    settings = device()
    end = make_link(settings, stiffness=9e5, damping=9e5, tank_damping=9e5)[0]
    assert end["stiffness"] == settings["stiffness_max"][0]
    assert end["damping"] == end["tank_damping"] == settings["damping_max"][0]
    assert end["impedance"][0] <= settings["damping_max"][0]


@pytest.mark.parametrize("card", card_names())
def test_every_card_has_an_end_or_a_reason(card):
    settings = device(card)
    end = make_link(settings, method="tank")[0]
    for name in end.dtype.names:
        assert np.all(np.isfinite(end[name])), name
    if settings["torque_free"][0]:
        assert end["rotational_stiffness"] == end["rotational_damping"] == 0.0


@pytest.mark.parametrize(
    ("law", "role", "code", "gain"),
    [
        ("position-position", "", POSITION_POSITION, 0.0),
        ("position-force", "leader", POSITION_FORCE_LEADER, 1.0),
        ("position-force", "follower", POSITION_FORCE_FOLLOWER, 0.0),
        ("four-channel", "", FOUR_CHANNEL, 1.0),
    ],
)
def test_laws_and_what_is_felt_by_them(law, role, code, gain):
    end = make_link(device(), law=law, role=role)[0]
    assert (end["law"], end["force_gain"]) == (code, gain)


def test_a_mirror_reflects_one_axis():
    assert list(make_link(device(), mirror="x")[0]["mirror"]) == [-1.0, 1.0, 1.0]
    assert list(make_link(device(), mirror="z")[0]["mirror"]) == [1.0, 1.0, -1.0]


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.25, 2.0])
def test_ends_of_inverse_scales_fit_by_default(scale):
    """A wave carries power, which is the same at both ends: speeds by the scale, impedances by its square."""
    here, there = (make_link(device(), scale=s)[0] for s in (scale, 1.0 / scale))
    assert here["impedance"][0] * scale**2 == pytest.approx(there["impedance"][0], rel=1e-12)
    assert here["impedance"][1] == there["impedance"][1]


def test_ticks_are_those_of_the_daemon():
    end = make_link(device(tick_hz=500.0), ramp_up_ms=100.0, ramp_down_ms=1.0)[0]
    assert (end["dt"], end["ramp_up_ticks"], end["ramp_down_ticks"]) == (2e-3, 50, 1)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"law": "force-force"}, "law = 'force-force' must be one of 'position-position', 'position-force', 'four"),
        ({"law": "position-force"}, "role = '' must be 'leader' or 'follower'"),
        ({"role": "leader"}, "role = 'leader' belongs to law = 'position-force'"),
        ({"method": "hope"}, "method = 'hope' must be one of"),
        ({"stiffness": 0.0}, "stiffness = 0.0 must be above 0"),
        ({"stiffness": math.nan}, "stiffness = nan must be above 0"),
        ({"damping": -1.0}, "damping = -1.0 must be from 0"),
        ({"rotational_stiffness": math.inf}, "rotational_stiffness = inf"),
        ({"rotational_damping": -1.0}, "rotational_damping = -1.0"),
        ({"law": "four-channel", "force_gain": 1.5}, "force_gain = 1.5 must be from 0 to 1"),
        ({"force_gain": 0.5}, "with 'position-position' no wrench of the other end is felt"),
        (
            {"law": "position-force", "role": "follower", "force_gain": 0.5},
            "with a follower of 'position-force' no wrench",
        ),
        ({"impedance": 0.0}, "impedance = 0.0 must be above 0"),
        ({"impedance": 1e5}, "impedance = 100000 must be at most"),
        ({"rotational_impedance": -1.0}, "rotational_impedance = -1.0 must be above 0"),
        ({"scale": 0.0}, "scale = 0.0 must be from 0.001"),
        ({"mirror": "w"}, "mirror = 'w' must be one of"),
        ({"align_speed": 5.0}, "align_speed = 5.0 must be from 0 to 1 m/s"),
        ({"distance_max": 0.0}, "distance_max = 0.0 must be above 0"),
        ({"tank": 0.0}, "tank = 0.0 must be above 0"),
        ({"tank_damping": -1.0}, "tank_damping = -1.0"),
        ({"dead_band": 0.6}, "dead_band = 0.6 must be from 0 to 0.5"),
        ({"share": 1.1}, "share = 1.1 must be from 0 to 1"),
        ({"stale_after_ms": 1.0}, "stale_after_ms = 1.0 must be from 2"),
        ({"stale_after_ms": 59.0, "dead_band": 0.1}, "stale_after_ms = 59 must be at least 60 ms with a dead_band"),
        ({"ramp_up_ms": 0.0}, "ramp_up_ms = 0.0 must be above 0"),
        ({"ramp_down_ms": math.inf}, "ramp_down_ms = inf"),
    ],
)
def test_a_wrong_number_is_one_sentence(changes, sentence):
    with pytest.raises(ValueError) as caught:
        make_link(device(), **changes)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_have_different_codes():
    assert len(set(LAWS.values())) == len(LAWS)
    assert METHODS == {"none": 0, "waves": WAVES, "tank": TANK}
