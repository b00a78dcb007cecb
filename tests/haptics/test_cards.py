"""Cards and settings: what is known is used as a limit, what is not known is absent, what is wrong is said clearly."""

import dataclasses
import math

import pytest

from haptics.cards import CARD_DIRECTORY, CardError, DeviceCard, card_from_dict, card_names, load_card
from haptics.settings import DEFAULT_SPEED_MAX, make_settings
from haptics.touch import make_touch

GOOD = {
    "name": "x",
    "model": "X",
    "sensed": 3,
    "actuated": 3,
    "force_max": 5,
    "source": "measured",
    "conditions": "1 kHz, held",
}

COMMUNITY = {
    # F N, K N/m, B N·s/m, radius m: the figures that CHAI3D's tables state, retyped here from the research notes
    "touch": (3.3, 400, 4, 0.075),
    "omni": (3.3, 700, 5, 0.10),
    "falcon": (8, 3000, 20, 0.04),
    "omega6": (12, 5000, 30, 0.075),
    "delta3": (20, 5000, 30, 0.15),
    "inverse3": (10, 1000, 6, 0.15),
}


def test_the_cards_that_come_with_the_project():
    assert set(card_names()) >= set(COMMUNITY) | {"simulated", "virtuose6d"}
    for name in card_names():
        card = load_card(name)
        assert card.name == name and card.source and card.conditions
        make_touch(make_settings(card))


@pytest.mark.parametrize("name", COMMUNITY)
def test_community_figures(name):
    card = load_card(name)
    assert (card.force_max, card.stiffness_max, card.damping_max, card.workspace_radius) == COMMUNITY[name]
    assert card.torque_max is None and not card.renders_torque


def test_what_is_not_known_is_absent():
    card = load_card("virtuose6d")
    assert card.stiffness_max is None and card.damping_max is None and card.workspace_radius is None
    assert "stiffness_max" not in card.to_dict()
    row = make_settings(card, stiffness=900.0, damping=3.0)[0]
    # No published limit: nobody can go beyond what the configuration asks for.
    assert (row["stiffness_max"], row["damping_max"]) == (900.0, 3.0)
    assert row["speed_max"] == DEFAULT_SPEED_MAX


@pytest.mark.parametrize(
    "change, text",
    [
        ({"force_mx": 3}, "unknown key 'force_mx' .did you mean 'force_max'"),
        ({"force_max": None}, "'force_max' is missing; a finite number above 0"),
        ({"force_max": 0}, "force_max = 0 .* above 0"),
        ({"force_max": -1.0}, "force_max"),
        ({"force_max": math.nan}, "force_max = nan"),
        ({"force_max": math.inf}, "force_max = inf"),
        ({"force_max": "3 N"}, "force_max = '3 N'"),
        ({"force_max": True}, "force_max = True"),
        ({"stiffness_max": 0}, "stiffness_max = 0"),
        ({"sensed": 4}, "sensed = 4 .* 3 or 6"),
        ({"actuated": 6}, "actuated = 6 must not be above sensed = 3"),
        ({"torque_max": 0.1}, "torque_max = 0.1 needs actuated = 6"),
        ({"source": " "}, "source = ' ' .* text"),
        ({"conditions": 3}, "conditions = 3"),
        ({"damping_max": -0.1}, "damping_max = -0.1 .* 0 or more"),
    ],
)
def test_a_wrong_card_says_where_what_and_what_would_be_right(tmp_path, change, text):
    values = {key: value for key, value in (GOOD | change).items() if value is not None}
    with pytest.raises(CardError, match="here: .*" + text):
        card_from_dict(values, "here")


@pytest.mark.parametrize("content, text", [(b"force_max = ", "not valid TOML"), (b"\xff\xfe\x00", "not UTF-8")])
def test_a_file_that_is_no_card(tmp_path, content, text):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(CardError, match=f"bad.toml: .*{text}"):
        load_card(path)


def test_cards_are_found_by_path_beside_the_configuration_and_in_the_project(tmp_path):
    text = (CARD_DIRECTORY / "touch.toml").read_text()
    beside = tmp_path / "configs" / "devices"
    beside.mkdir(parents=True)
    (beside / "touch.toml").write_text(text.replace("3.3", "2.2"))
    assert load_card("touch").force_max == 3.3
    assert load_card("touch", tmp_path).force_max == 2.2
    assert load_card("omni", tmp_path).force_max == 3.3
    assert load_card("configs/devices/touch.toml", tmp_path).force_max == 2.2
    assert load_card(beside / "touch.toml").force_max == 2.2
    with pytest.raises(CardError, match=r"did you mean 'omega6'\?.*known cards: .*falcon"):
        load_card("omega7")
    with pytest.raises(CardError, match="no such device card"):
        load_card("nowhere/touch.toml", tmp_path)


def test_gains_are_capped_by_the_card():
    row = make_settings(load_card("touch"), stiffness=5000.0, damping=50.0)[0]
    assert (row["stiffness"], row["damping"]) == (400.0, 4.0) == (row["stiffness_max"], row["damping_max"])


def test_times_become_whole_ticks():
    row = make_settings(load_card("simulated"), tick_hz=500.0, ramp_fault_ms=15.0, lease_ms=2000.0)[0]
    assert (row["dt"], row["ramp_fault_ticks"], row["lease_ticks"]) == (0.002, 7, 1000)
    assert (row["hold_after_ns"], row["stale_after_ns"], row["valid_for_ns"]) == (5_000_000, 20_000_000, 10_000_000)
    assert (
        make_settings(load_card("simulated"), tick_hz=50.0, ramp_fault_ms=15.0, velocity_window_ms=50.0)[0][
            "ramp_fault_ticks"
        ]
        == 1
    )


@pytest.mark.parametrize(
    "wrong, text",
    [
        ({"stiffness": 0.0}, "stiffness = 0.0 must be a finite number above 0 N/m"),
        ({"stiffness": -5.0}, "stiffness"),
        ({"stiffness": math.nan}, "stiffness = nan"),
        ({"damping": -1.0}, "damping = -1.0 must be a finite number, 0"),
        ({"damping": math.inf}, "damping = inf"),
        ({"scale": 0.0}, "scale = 0.0 must be from 0.001 to 1000"),
        ({"scale": 1e6}, "scale"),
        ({"tick_hz": 0.0}, "tick_hz"),
        ({"ramp_up_ms": 0.0}, "ramp_up_ms = 0.0 must be above 0"),
        ({"ramp_fault_ms": -1.0}, "ramp_fault_ms"),
        ({"hold_after_ms": 25.0}, "hold_after_ms = 25 must be less than stale_after_ms = 20"),
        ({"lease_ms": 5.0}, "lease_ms = 5 must not be less than stale_after_ms = 20"),
        ({"velocity_window_ms": 64.0}, "velocity_window_ms = 64 must be at most 63 at 1000 Hz"),
        ({"workspace_orientation": (0, 0, 0, 2)}, "workspace_orientation has norm 2"),
        ({"workspace_orientation": (0, 0, 1)}, "workspace_orientation"),
        ({"workspace_position": (0, 0, math.nan)}, "workspace_position"),
        ({"engage_distance": 0.0}, "engage_distance"),
        ({"jump_margin": math.nan}, "jump_margin"),
    ],
)
def test_wrong_settings_are_refused(wrong, text):
    with pytest.raises(ValueError, match=text):
        make_settings(load_card("simulated"), **wrong)


def test_a_card_is_frozen():
    card = card_from_dict(GOOD)
    assert isinstance(card, DeviceCard)
    with pytest.raises(dataclasses.FrozenInstanceError):
        card.force_max = 100.0
