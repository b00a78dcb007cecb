"""Rows in card files: what else stands there stays as it is, and what differs is said."""

import dataclasses
import os

import pytest

from bridge.card_rows import differences, markdown, with_rows, write_rows
from haptics.cards import CARD_DIRECTORY, CardError, card_names, load_card
from haptics.certified import CertifiedRow, certified_stiffness

ROWS = tuple(
    CertifiedRow("simulated", "none", scene, on, 1000.0, 1, (0.0, 1.0, 10.0), (891.0, 1330.0, 100000.0))
    for on in (True, False)
    for scene in ("wall", "clamp")
)
TEXT = """# A device of mine.
name = "mine"   # as the file
model = "Mine"
sensed = 3
actuated = 3

force_max = 5.0  # N
source = "measured"
conditions = "1 kHz, held"
# The last word.
"""


def card_file(folder, text=TEXT):
    path = folder / "mine.toml"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), TEXT.rstrip("\n"), TEXT + "\n\n"])
def test_the_writer_keeps_what_stands_in_the_file(tmp_path, text):
    path = card_file(tmp_path, text)
    path.chmod(0o640)
    write_rows(path, ROWS)
    once = path.read_bytes()
    assert once.startswith(text.rstrip("\r\n").encode())
    assert load_card(str(path)).certified == ROWS
    write_rows(path, ROWS)
    assert path.read_bytes() == once
    assert path.stat().st_mode & 0o777 == 0o640 and os.listdir(tmp_path) == ["mine.toml"]
    write_rows(path, ROWS[:1])
    assert load_card(str(path)).certified == ROWS[:1]
    assert with_rows(path.read_bytes().decode(), []).rstrip() == text.rstrip()


def test_rows_found_in_another_way_stay(tmp_path):
    path = card_file(tmp_path)
    measured = dataclasses.replace(ROWS[0], by="measured")
    write_rows(path, [measured])
    write_rows(path, ROWS)
    assert load_card(str(path)).certified == (*ROWS, measured)


def test_a_file_that_cannot_take_rows_stays_as_it_is(tmp_path):
    text = TEXT + 'frame = ["right", "away", "up"]\n'
    odd = text.replace('source = "measured"', 'source = """\n[[certified]]\n"""')
    path = card_file(tmp_path, odd)
    with pytest.raises(CardError, match=r"mine\.toml: rows cannot be written"):
        write_rows(path, ROWS)
    assert path.read_bytes() == odd.encode() and os.listdir(tmp_path) == ["mine.toml"]


def test_differences_name_the_rows(tmp_path):
    path = card_file(tmp_path)
    write_rows(path, ROWS)
    card = load_card(str(path))
    assert differences(card, ROWS) == []
    other = dataclasses.replace(ROWS[1], stiffness_limit=(891.0, 1330.0, 5000.0))
    held = dataclasses.replace(ROWS[0], hand="held")
    told = differences(card, [ROWS[0], other, held])
    assert told == [
        "mine: the row (simulated, none, clamp, passivity on, 1000 Hz, delay 1) differs: stiffness_limit is "
        "[891.0, 1330.0, 100000.0] in the card and [891.0, 1330.0, 5000.0] now",
        "mine: the row (simulated, held, wall, passivity on, 1000 Hz, delay 1) is missing in the card",
        "mine: the row (simulated, none, wall, passivity off, 1000 Hz, delay 1) in the card is not found any more",
        "mine: the row (simulated, none, clamp, passivity off, 1000 Hz, delay 1) in the card is not found any more",
    ]


def test_every_driven_card_ships_rows():
    for name in card_names():
        card = load_card(name)
        keys = {row.key for row in card.certified if row.by == "simulated"}
        assert len(keys) == (0 if card.input_only else 24), name


def test_published_stiffness_is_stable_in_a_hand():
    """It is said to hold for a hand: without delay it does without the controller too, a tick late with it."""
    stated = [card for card in map(load_card, card_names()) if card.stiffness_max is not None]
    assert len(stated) >= 12
    for card in stated:
        for delay, on in ((0, False), (0, True), (1, True)):
            limit = certified_stiffness(card.certified, 1.0, hand="held", delay_ticks=delay, passivity=on)
            assert card.stiffness_max <= limit <= 100.0 * card.stiffness_max, card.name


def test_the_table_of_simulated_limits_leaves_measured_ones_out():
    card = load_card("simulated")
    measured = CertifiedRow("measured", "held", "wall", True, 1000.0, 0, (0.0, 1.0), (5.0, 5.0))
    assert markdown([dataclasses.replace(card, certified=(*card.certified, measured))]) == markdown([card])


def test_the_page_has_the_table_of_the_cards():
    page = (CARD_DIRECTORY.parent.parent / "docs" / "devices.md").read_text(encoding="utf-8")
    driven = [card for card in map(load_card, card_names()) if not card.input_only]
    assert "\n".join(markdown(driven)) in page
