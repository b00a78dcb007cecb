"""Cards and settings: what is known is used as a limit, what is not known is absent, what is wrong is said clearly."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from haptics.cards import CARD_DIRECTORY, CardError, DeviceCard, card_from_dict, card_names, load_card, to_person
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
    "omega7": (12, 5000, 30, 0.075),
    "inverse3": (10, 1000, 6, 0.15),
}

COMMUNITY_WITH_TORQUE = {
    # F N, tau N·m, K N/m, K_r N·m/rad, B N·s/m, radius m, from the same tables
    "premium15": (8.5, 0.188, 800, 0.3, 5, 0.12),
    "premium30": (22, 0.188, 1000, 0.3, 5, 0.25),
    "sigma7": (12, 0.2, 4000, 1.0, 30, 0.075),
    "lambda7": (12, 0.2, 8000, 1.0, 30, 0.1125),
}

DEGREES = {
    **{"simulated": (6, 6), "premium15": (6, 6), "premium30": (6, 6), "sigma7": (6, 6), "lambda7": (6, 6)},
    **{"virtuose6d": (6, 6), "touch": (6, 3), "omni": (6, 3), "omega6": (6, 3), "omega7": (6, 3), "spidar63": (6, 3)},
    **{"falcon": (3, 3), "delta3": (3, 3), "inverse3": (3, 3), "spidar3": (3, 3), "spidar55": (5, 5)},
    **{"spacemouse": (6, 0), "gamepad": (6, 0), "mouse": (3, 0)},
}


def test_the_cards_that_come_with_the_project():
    assert set(card_names()) == set(DEGREES)
    for name in card_names():
        card = load_card(name)
        assert card.name == name and card.source and card.conditions
        assert (card.sensed, card.actuated) == DEGREES[name]
        assert card.input_only == (card.force_max is None) == (card.actuated == 0)
        assert card.renders_torque == (card.actuated >= 5)
        settings = make_settings(card)
        make_touch(settings)
        row = settings[0]
        assert (row["sensed"], row["actuated"], row["force_max"]) == (*DEGREES[name], card.force_max or 0.0)
        assert row["force_slew"] > 0.0 and (row["torque_slew"] > 0.0) == card.renders_torque
        assert row["sphere"] == 0.0
        assert card_from_dict(card.to_dict()) == card


@pytest.mark.parametrize("name", COMMUNITY)
def test_community_figures(name):
    card = load_card(name)
    assert (card.force_max, card.stiffness_max, card.damping_max, card.workspace_radius) == COMMUNITY[name]
    assert card.torque_max is None and not card.renders_torque


@pytest.mark.parametrize("name", COMMUNITY_WITH_TORQUE)
def test_community_figures_with_torque(name):
    card = load_card(name)
    limits = (card.force_max, card.torque_max, card.stiffness_max, card.rotational_stiffness_max, card.damping_max)
    assert (*limits, card.workspace_radius) == COMMUNITY_WITH_TORQUE[name]
    row = make_settings(card, stiffness=1e5, rotational_stiffness=10.0)[0]
    assert (row["stiffness"], row["rotational_stiffness"]) == (card.stiffness_max, card.rotational_stiffness_max)


def test_the_force_of_four_strings():
    """What spidar cards state, calculated anew: a force of that norm in every direction, by tensions within limits.

    Tensions t make the force D t, with the four directions to the corners in D; as they add up to zero, the forces at
    hand are those of (t_max - t_min) / 2 times a cube's image, whose faces are square to two directions at a time.
    """
    card = load_card("spidar3")
    corners = np.array([(1, 1, -1), (-1, 1, 1), (1, -1, 1), (-1, -1, -1)]) * np.array(card.workspace_size)
    directions = corners / np.linalg.norm(corners, axis=1)[:, None]
    assert np.allclose(directions.sum(axis=0), 0.0)
    normals = [np.cross(a, b) for a, b in itertools.combinations(directions, 2)]
    least = min(0.5 * (15.0 - 0.3) * np.abs(directions @ (n / np.linalg.norm(n))).sum() for n in normals)
    assert card.force_max <= least < card.force_max + 0.5
    both = load_card("spidar55")
    assert (both.force_max, both.torque_max) == (card.force_max, pytest.approx(0.5 * card.force_max * 0.1))


@pytest.mark.parametrize("name", [name for name in DEGREES if load_card(name).frame is not None])
def test_frames_are_turned_to_the_person(name):
    card = load_card(name)
    turn = Rotation.from_quat(to_person(card))
    directions = {"right": (1, 0, 0), "away": (0, 1, 0), "up": (0, 0, 1)}
    opposite = {"left": "right", "towards": "away", "down": "up"}
    for axis, where in zip(np.eye(3), card.frame, strict=True):
        sign = -1.0 if where in opposite else 1.0
        assert np.allclose(turn.apply(axis), sign * np.array(directions[opposite.get(where, where)]), atol=1e-12)


def test_a_frame_that_nobody_knows():
    assert to_person(load_card("inverse3")) is None


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
        ({"stiffness_max": 1e-9}, "stiffness_max = 1e-09 must be at least 1e-06 N/m"),
        ({"sensed": 4}, "sensed = 4 .* 3, 5 or 6 is needed"),
        ({"sensed": 0, "actuated": 0}, "sensed = 0 .* 3, 5 or 6"),
        ({"actuated": 4}, "actuated = 4 .* 0, 3, 5 or 6"),
        ({"actuated": 5}, "actuated = 5 must not be above sensed = 3"),
        ({"actuated": 6}, "actuated = 6 must not be above sensed = 3"),
        ({"torque_max": 0.1}, "torque_max = 0.1 needs actuated = 5 or 6"),
        ({"rotational_stiffness_max": 0.1}, "rotational_stiffness_max = 0.1 needs actuated = 5 or 6"),
        ({"actuated": 0}, "force_max = 5 needs actuated = 3 or more: with 0 the device is input only"),
        ({"actuated": 0, "force_max": None, "stiffness_max": 9}, "stiffness_max = 9 needs actuated = 3 or more"),
        ({"actuated": 0, "force_max": None, "damping_max": 1}, "damping_max = 1 needs actuated = 3 or more"),
        ({"actuated": 0, "force_max": None, "force_continuous": 1}, "force_continuous = 1 needs actuated = 3 or more"),
        ({"force_continuous": 0}, "force_continuous = 0 .* above 0"),
        ({"force_continuous": 5.1}, "force_continuous = 5.1 N must not be above force_max = 5 N, the largest force"),
        (
            {"force_continuous": 0.24},
            "force_continuous = 0.24 N is less than a twentieth of force_max = 5 N: .*overheat",
        ),
        ({"torque_continuous": 0.1}, "torque_continuous = 0.1 needs actuated = 5 or 6"),
        (
            {"sensed": 6, "actuated": 6, "torque_continuous": 0.1},
            "torque_continuous = 0.1 N·m needs torque_max, the largest torque rendered",
        ),
        (
            {"sensed": 6, "actuated": 6, "torque_max": 0.2, "torque_continuous": 0.3},
            "torque_continuous = 0.3 N·m must not be above torque_max = 0.2 N·m",
        ),
        ({"workspace_radius": 75}, "workspace_radius = 75 m is more than 5 m, which no such device has: is it in mm"),
        (
            {"workspace_size": [300, 300, 200]},
            "workspace_size = .300.0, 300.0, 200.0. m is more than 10 m.*: is it in mm",
        ),
        ({"speed_max": 3000}, "speed_max = 3000 m/s is more than 100 m/s, .*: is it in mm/s"),
        ({"mass": 150}, "mass = 150 kg is more than 50 kg, .*: is it in g"),
        ({"force_max": 3300}, "force_max = 3300 N is more than 1000 N, .*: is it in mN"),
        ({"sensed": 6, "actuated": 6, "torque_max": 188}, "torque_max = 188 N·m is more than 100 N·m, .* in mN·m"),
        ({"resolution": 0.03}, "resolution = 0.03 m is more than 0.01 m, .*: is it in mm"),
        ({"stiffness_max": 1000, "resolution": 0.01}, "makes 10 N of one encoder step .* more than force_max = 5 N"),
        ({"stiffness_max": 5.0, "workspace_radius": 0.1}, "reaches force_max = 5 N only after 1 m, .* in N/mm"),
        ({"stiffness_max": 1, "workspace_size": [0.3, 0.4, 1.2]}, "only after 5 m, .* workspace .1.3 m"),
        ({"workspace_radius": 0.2, "workspace_size": [1, 1, 0.3]}, "workspace_radius = 0.2 m does not fit into"),
        ({"workspace_size": [1, 1]}, "workspace_size = .* three finite numbers above 0"),
        ({"workspace_size": [1, 1, 0]}, "workspace_size"),
        ({"frame": ["right", "up", "away"]}, "frame = .* right-handed"),
        ({"frame": ["right", "right", "up"]}, "frame"),
        ({"frame": ["right", "away", 3]}, "frame"),
        ({"axis": [0, 0, 2]}, "axis = .* a direction of three numbers and norm 1"),
        ({"axis": [0, 0, math.nan]}, "axis"),
        ({"source": " "}, "source = ' ' .* text"),
        ({"conditions": 3}, "conditions = 3"),
        ({"damping_max": -0.1}, "damping_max = -0.1 .* 0 or more"),
    ],
)
def test_a_wrong_card_says_where_what_and_what_would_be_right(tmp_path, change, text):
    values = {key: value for key, value in (GOOD | change).items() if value is not None}
    with pytest.raises(CardError, match="here: .*" + text) as caught:
        card_from_dict(values, "here")
    assert "\n" not in str(caught.value)


def test_what_lasts_is_the_cards_unless_it_is_given():
    """Nothing stated: for ever, as before. Given on the command line, an unknown torque lasts in proportion."""
    six = GOOD | {"sensed": 6, "actuated": 6, "torque_max": 0.4}
    plain = card_from_dict(six)
    assert plain.lasting(5.0, 0.4) == (5.0, 0.4) and plain.lasting(5.0, 0.4, 1.0) == (1.0, pytest.approx(0.08))
    assert plain.lasting(2.5, 0.2, 9.0) == (2.5, 0.2) and plain.lasting(0.0, 0.0, 1.0) == (0.0, 0.0)
    stated = card_from_dict(six | {"force_continuous": 1.0})
    assert stated.lasting(5.0, 0.4) == (1.0, 0.4) and stated.lasting(0.5, 0.2) == (0.5, 0.2)
    assert stated.lasting(5.0, 0.4, 2.0) == (2.0, pytest.approx(0.16))
    both = card_from_dict(six | {"force_continuous": 1.0, "torque_continuous": 0.1})
    assert both.lasting(5.0, 0.4) == (1.0, 0.1) == both.lasting(5.0, 0.4, 1.0)
    assert card_from_dict(both.to_dict()) == both


def test_stiffness_that_turns_more_than_half_round():
    turning = {"sensed": 6, "actuated": 6, "torque_max": 1.0, "rotational_stiffness_max": 0.1}
    with pytest.raises(CardError, match="reaches torque_max = 1 N·m only after 10 rad, more than half a turn"):
        card_from_dict(GOOD | turning)


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
    with pytest.raises(CardError, match=r"did you mean 'omega[67]'\?.*known cards: .*falcon"):
        load_card("omega8")
    with pytest.raises(CardError, match="no such device card"):
        load_card("nowhere/touch.toml", tmp_path)


def test_a_card_is_named_as_its_file(tmp_path):
    path = tmp_path / "copy.toml"
    path.write_text((CARD_DIRECTORY / "touch.toml").read_text())
    with pytest.raises(CardError, match=r"copy.toml: name = 'touch' is not that of its file, 'copy': .*"):
        load_card(path)


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
        ({"stiffness": 0.0}, "stiffness = 0.0 must be a finite number, 1e-06 N/m or more"),
        ({"stiffness": 1e-310}, "stiffness = 1e-310 must be"),
        ({"world_stiffness": 1e-9}, "world_stiffness = 1e-09 must be"),
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
