"""Device cards in configurations and the page about them: what does not go together is refused, what is said is so."""

import dataclasses
import re
from pathlib import Path

import pytest

from bridge.assemble import assemble
from bridge.config import ConfigError, Coupling, parse_config
from haptics.cards import CardError, DeviceCard, card_names, load_card

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")

SCENE = """
[[scene.body]]
name = "plate"
primitive = "plate"
size = [0.2, 0.2, 0.01]

[tool]
tip_radius = 0.005
tip_offset = [0.0, 0.0, -0.05]
start = [0.0, 0.0, 0.1]
"""


def assembled(card: str, extra: str = "", base: Path = ROOT):
    return assemble(parse_config(f'{SCENE}\n[device]\ncard = "{card}"\n{extra}', "here.toml"), base, source="here.toml")


@pytest.mark.parametrize("name", card_names())
def test_every_card_goes_through_assembly(name):
    assembly = assembled(name)
    row = assembly.settings[0]
    assert (row["sensed"], row["actuated"]) == (assembly.card.sensed, assembly.card.actuated)
    assert row["stiffness"] <= row["stiffness_max"]


@pytest.mark.parametrize("line", ["stiffness = 400.0", "damping = 0.5", "rotational_stiffness = 1.0"])
@pytest.mark.parametrize("name", ["mouse", "spacemouse"])
def test_an_input_device_refuses_gains(name, line):
    key = line.split()[0]
    with pytest.raises(
        ConfigError, match=f"here.toml: coupling.{key}: must be left out, .* '{name}' is input only"
    ) as all:
        assembled(name, f"[coupling]\n{line}")
    assert len(all.value.problems) == 1
    assembled(name, "[coupling]\nramp_up_ms = 100.0")


def test_stiffness_beyond_what_is_certified_with_no_hand_is_noted():
    """By free clocking the wrench is a tick late: the omega.6 is not certified for its own 5000 N/m then."""
    for clocking, stiffness, noted in (("free", 5000.0, 1), ("free", 400.0, 0), ("triggered", 5000.0, 0)):
        notes = assembled("omega6", f"[coupling]\nstiffness = {stiffness}\n[rates]\nclocking = '{clocking}'").notes
        assert sum("certified with no hand on the device" in note for note in notes) == noted
        if noted:
            assert any("5000 N/m is above the 1500 N/m up to which the card of 'omega6'" in note for note in notes)


def test_damping_beyond_what_is_certified_is_noted():
    """The virtuose6d's rows go to 1 N·s/m, and its card has no largest damping."""
    for damping, noted in ((1.0, 0), (1.5, 1)):
        notes = assembled("virtuose6d", f"[coupling]\nstiffness = 300.0\ndamping = {damping}").notes
        assert sum("outside of the 0 to 1 N·s/m for which the card of 'virtuose6d'" in note for note in notes) == noted


def test_a_virtual_sphere_lowers_the_stiffness_and_says_so():
    assembly = assembled("touch", "[coupling]\nstiffness = 400.0\nvirtual_sphere = 1.0\nsphere_radius = 0.05")
    assert assembly.settings["stiffness"][0] == assembly.settings["stiffness_max"][0] == 200.0
    assert any("capped at 200 to leave room for the virtual sphere" in note for note in assembly.notes)
    assert assembled("touch", "[coupling]\nstiffness = 400.0").settings["stiffness"][0] == 400.0


def test_a_virtual_sphere_smaller_than_the_tool_is_refused():
    with pytest.raises(ConfigError, match=r"coupling.sphere_radius must be at least virtual_sphere times 0.05 m"):
        assembled("touch", "[coupling]\nvirtual_sphere = 1.0\nsphere_radius = 0.04")
    assembled("touch", "[coupling]\nvirtual_sphere = 0.8\nsphere_radius = 0.04")


def test_a_virtual_sphere_for_the_wrong_device_is_refused():
    with pytest.raises(ConfigError, match=r"here.toml: virtual_sphere = 1 needs a device .* card of 'falcon'"):
        assembled("falcon", "[coupling]\nvirtual_sphere = 1.0")


def test_a_card_that_is_not_there_and_one_that_is_wrong(tmp_path):
    with pytest.raises(CardError, match=r"no device card 'sigma' .did you mean 'sigma7'\?"):
        assembled("sigma")
    (tmp_path / "devices").mkdir()
    text = (ROOT / "configs" / "devices" / "mouse.toml").read_text()
    (tmp_path / "devices" / "mine.toml").write_text(text + "force_max = 3.0\n")
    with pytest.raises(CardError, match=r"mine.toml: force_max = 3 needs actuated = 3 or more: with 0 .* input only"):
        assembled("mine", base=tmp_path)


# ------------------------------------------------------------------------------------------------------ the page


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def table() -> str:
    """The page's table of cards."""
    lines = [
        "| card | device | in / out | force N | torque N·m | stiffness N/m | turning N·m/rad | damping N·s/m "
        "| workspace m |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in card_names():
        card = load_card(name)
        space = number(card.workspace_radius)
        if card.workspace_size is not None:
            space = " x ".join(f"{edge:g}" for edge in card.workspace_size)
        figures = (card.force_max, card.torque_max, card.stiffness_max, card.rotational_stiffness_max, card.damping_max)
        row = [f"`{name}`", card.model, f"{card.sensed} / {card.actuated}", *(number(each) for each in figures), space]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def test_the_page_has_the_table_of_the_cards():
    assert table() in PAGE, f"docs/devices.md needs this table:\n{table()}"


def test_the_page_names_every_key_of_a_card_and_of_the_metaphors():
    keys = re.search(r"## Keys of a card(.*?)\n## ", PAGE, re.S).group(1)
    for field in dataclasses.fields(DeviceCard):
        assert f"`{field.name}`" in keys, field.name
    for key in ("virtual_sphere", "sphere_radius"):
        assert key in Coupling.model_fields and f"`{key}`" in PAGE
