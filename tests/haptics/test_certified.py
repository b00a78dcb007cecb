"""Certified rows on cards: read as written, and what cannot be a row is refused in one sentence that names it."""

import re

import pytest

from haptics.cards import CardError, card_from_dict
from haptics.certified import CertifiedRow, certified_stiffness, limit_at, read_rows

CARD = {
    **{"name": "x", "model": "X", "sensed": 3, "actuated": 3, "force_max": 5},
    **{"source": "measured", "conditions": "1 kHz, held"},
}
ROW = {
    **{"by": "simulated", "hand": "none", "scene": "clamp", "passivity": True, "rate": 1000, "delay_ticks": 1},
    **{"damping": [0, 2.5], "stiffness_limit": [300, 841.0]},
}


def test_rows_are_read_and_written_back():
    card = card_from_dict(CARD | {"certified": [ROW, ROW | {"hand": "held"}]})
    assert card.certified[0] == CertifiedRow("simulated", "none", "clamp", True, 1000.0, 1, (0.0, 2.5), (300.0, 841.0))
    assert card_from_dict(card.to_dict()) == card
    assert "certified" not in card_from_dict(CARD).to_dict()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"hand": "strong"}, "hand = 'strong' will not do; 'held', 'light' or 'none' is needed"),
        ({"scene": 3}, "scene = 3 will not do; 'wall' or 'clamp' is needed"),
        ({"by": "guess"}, "by = 'guess' will not do; 'simulated' or 'measured' is needed"),
        ({"passivity": 1}, "passivity = 1 will not do; true or false is needed"),
        ({"rate": 0}, "rate = 0 will not do; a finite number above 0 is needed"),
        ({"rate": float("inf")}, "rate = inf will not do"),
        ({"delay_ticks": 1.0}, "delay_ticks = 1.0 will not do; a whole number from 0 to 100 is needed"),
        ({"delay_ticks": True}, "delay_ticks = True will not do"),
        ({"damping": [1, 1]}, "damping = [1, 1] will not do; a list of rising numbers, 0 or more is needed"),
        ({"damping": [-1, 1]}, "damping = [-1, 1] will not do"),
        ({"damping": []}, "damping = [] will not do"),
        ({"stiffness_limit": [1, float("nan")]}, "stiffness_limit = [1, nan] will not do"),
        ({"stiffness_limit": [True, 1]}, "stiffness_limit = [True, 1] will not do"),
        ({"stiffness_limit": [1]}, "damping has 2 numbers and stiffness_limit 1; each damping needs one"),
        ({"dampning": [0]}, "unknown key 'dampning' (did you mean 'damping'?)"),
    ],
)
def test_a_wrong_row_is_named(change, sentence):
    with pytest.raises(CardError, match=re.escape(f"here: certified row 2: {sentence}")):
        card_from_dict(CARD | {"certified": [ROW, ROW | {"hand": "held"} | change]}, "here")


@pytest.mark.parametrize("key", sorted(ROW))
def test_every_key_is_needed(key):
    values = {name: value for name, value in ROW.items() if name != key}
    with pytest.raises(ValueError, match=f"certified row 1: key '{key}' is missing"):
        read_rows("here", [values])


@pytest.mark.parametrize("values", [3, "row", {"hand": "held"}, [3]])
def test_what_is_no_table_is_refused(values):
    with pytest.raises(ValueError, match=r"here: certified = .* will not do; tables \[\[certified\]\] are needed"):
        read_rows("here", values)


def test_a_row_stands_once():
    with pytest.raises(
        ValueError, match=r"row 3 repeats an earlier one \(simulated, none, clamp, passivity on, 1000 Hz, delay 1\)"
    ):
        read_rows("here", [ROW, ROW | {"rate": 500}, ROW])


def test_an_input_device_has_none():
    values = {key: value for key, value in CARD.items() if key != "force_max"} | {"actuated": 0, "certified": [ROW]}
    with pytest.raises(CardError, match="certified rows need actuated = 3 or more: with 0 the device is input only"):
        card_from_dict(values)


def test_a_limit_between_two_dampings_is_the_lower_one():
    row = CertifiedRow("simulated", "none", "wall", True, 1000.0, 1, (0.0, 1.0, 10.0), (891.0, 1330.0, 1000.0))
    assert [limit_at(row, at) for at in (0.0, 0.5, 1.0, 5.0, 10.0)] == [891, 891, 1330, 1000, 1000]


def test_a_row_says_nothing_outside_of_its_dampings():
    """As one that was measured at a single damping."""
    row = CertifiedRow("measured", "none", "wall", True, 1000.0, 1, (5.0,), (3000.0,))
    assert [limit_at(row, at) for at in (0.0, 4.9, 5.0, 5.1)] == [None, None, 3000.0, None]
    asked = {"hand": "none", "delay_ticks": 1, "passivity": True}
    assert certified_stiffness([row], 1.0, **asked) is None
    other = CertifiedRow("simulated", "none", "clamp", True, 1000.0, 1, (0.0, 10.0), (891.0, 4000.0))
    assert certified_stiffness([row, other], 1.0, **asked) == 891.0 == certified_stiffness([other], 5.0, **asked)
    assert certified_stiffness([row, other], 5.0, **asked) == 891.0


def test_the_lowest_limit_is_that_of_the_rows_for_the_same():
    rows = read_rows("here", [ROW, ROW | {"scene": "wall", "stiffness_limit": [200, 900]}, ROW | {"hand": "held"}])
    asked = {"hand": "none", "delay_ticks": 1, "passivity": True}
    assert certified_stiffness(rows, 0.0, **asked) == 200.0
    assert certified_stiffness(rows, 2.5, **asked) == 841.0
    for other in ({"hand": "light"}, {"delay_ticks": 0}, {"passivity": False}, {"rate": 500.0}):
        assert certified_stiffness(rows, 0.0, **asked | other) is None
