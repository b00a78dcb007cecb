"""``hapticd certify``: finds, writes, compares, and says what it cannot do."""

import json

import pytest
from command_line import called, one_sentence

from bridge.card_rows import HEADER, with_rows
from haptics.cards import CARD_DIRECTORY, load_card


def test_the_command_writes_and_checks(tmp_path):
    """One card on the reference mechanism; a changed row is found and named."""
    path = tmp_path / "mine.toml"
    text = with_rows((CARD_DIRECTORY / "touch.toml").read_text(), []).replace('"touch"', '"mine"')
    path.write_text(text)
    done = called(tmp_path, "certify", path, "--delay", "1", "--write", "--json")
    told = json.loads(done.stdout)["mine"]
    assert done.returncode == 0 and told["stiffness_max"] == 400.0 and len(told["rows"]) == 12
    assert path.read_text().startswith(text.rstrip("\n")) and HEADER in path.read_text()
    card = load_card(str(path))
    assert [row.to_dict() for row in card.certified] == told["rows"]
    shipped = tuple(row for row in load_card("touch").certified if row.delay_ticks == 1)
    assert card.certified == shipped, "the shipped rows are those that are found"
    path.write_text(path.read_text().replace("stiffness_limit = [", "stiffness_limit = [1", 1))
    done = called(tmp_path, "certify", path, "--delay", "1", "--check", "--picture", tmp_path / "plane.png")
    assert done.returncode == 10
    assert (
        "mine: the row (simulated, held, wall, passivity on, 1000 Hz, delay 1) differs: stiffness_limit is [1"
        in done.stdout
    )
    assert done.stdout.count("differs") == 1 and (tmp_path / "plane.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ([], 2, "name one device card, or give --all"),
        (["touch", "--all"], 2, "name one device card, or give --all"),
        (["--all", "--picture", "x.png"], 2, "--picture shows one card"),
        (["touch", "--show", "--check"], 2, "--show finds no rows"),
        (["touch", "--daemon", "x"], 2, "the device may begin to shake before the stiffness goes back: say --yes"),
        (["touch", "--daemon", "x", "--check", "--yes"], 2, "--daemon takes a card, and none of --all, --write"),
        (["touch", "--daemon", "x", "--yes"], 8, "x"),
        (["tuoch"], 3, "no device card 'tuoch' (did you mean 'touch'?)"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path, words, code, sentence):
    done = called(tmp_path, "certify", *words)
    assert done.returncode == code
    assert sentence in one_sentence(done)


def test_an_input_device_has_nothing_to_certify(tmp_path):
    done = called(tmp_path, "certify", "spacemouse")
    assert done.returncode == 0
    assert done.stdout == "spacemouse: input only, so there is nothing to certify: it renders no force\n"
