"""Names, options and cards of adapters, shipped and of one's own."""

import tempfile
from pathlib import Path

import pytest

from bridge.adapters import trial
from bridge.adapters.benches import bench_for
from bridge.adapters.conformance import run_conformance
from bridge.adapters.device import Device, DeviceError
from bridge.adapters.emulators import force_dimension as emulated
from bridge.adapters.journal import Journal
from bridge.adapters.registry import ADAPTERS, card_file, card_of, find, make, options_of
from bridge.adapters.witness import Witness
from haptics.cards import CARD_DIRECTORY, CardError


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_adapter_is_a_device_with_a_card_and_text_options(name):
    assert issubclass(find(name), Device)
    assert all(isinstance(value, str) for value in options_of(name).values())
    assert name == "force-dimension" or make(name, {}).card is not None


@pytest.mark.parametrize(
    ("name", "options", "held"),
    [("simulated", {}, True), ("simulated", {"grip": "off"}, False), ("template", {}, None)],
)
def test_only_a_device_with_a_deadman_tells_of_it(name, options, held):
    """The simulated hand has one: it knows whether it holds. What does not know says nothing."""
    device = make(name, options)
    device.open()
    assert device.read().held is held


def test_an_adapter_of_ones_own_is_found_by_its_file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text((Path(find("template").__module__.replace(".", "/")).with_suffix(".py")).read_text())
    assert find(str(file)).__name__ == find(f"{file}:Template").__name__ == "Template"


CARD_TEXT = (CARD_DIRECTORY / "touch.toml").read_text()

OWN = """
from bridge.adapters.device import Device, Reading


class Own(Device):
    card = {card!r}

    def open(self):
        self.card = self.card or "arm3"

    def read(self):
        return Reading((0.0, 0.0, 0.0))
"""


@pytest.mark.parametrize("place", ["adapter", "adapter/devices", "adapter/configs/devices", "work/devices"])
@pytest.mark.parametrize("card", ["arm3", None])
def test_a_card_of_ones_own_is_found_beside_the_adapter_and_in_the_working_directory(
    tmp_path, monkeypatch, place, card
):
    """By its name; one that the device tells only when it is open too. The test's bench finds it as the loop does."""
    for folder in ("adapter", "work", place):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / place / "arm3.toml").write_text(CARD_TEXT.replace('"touch"', '"arm3"'))
    file = tmp_path / "adapter" / "own_arm.py"
    file.write_text(OWN.format(card=card))
    monkeypatch.chdir(tmp_path / "work")
    device = make(str(file), {})
    assert (card_of(device) is None) == (card is None)
    device.open()
    found = card_of(device)
    assert found is not None and found.name == "arm3"
    assert bench_for(str(file), {}).card == tmp_path / place / "arm3.toml"
    witness = Witness(device, Journal.make(tmp_path / "journal"))
    witness.open()
    assert card_of(witness) == found


@pytest.mark.parametrize("place", ["adapter", "work"])
def test_a_card_by_a_path_is_from_the_adapter_or_the_working_directory(tmp_path, monkeypatch, place):
    for folder in ("adapter", "work", f"{place}/devices"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / place / "devices" / "arm3.toml").write_text(CARD_TEXT)
    file = tmp_path / "adapter" / "own_path.py"
    file.write_text(OWN.format(card="devices/arm3.toml"))
    monkeypatch.chdir(tmp_path / "work")
    assert card_file(make(str(file), {})) == tmp_path / place / "devices" / "arm3.toml"


def test_a_card_that_is_nowhere_is_a_sentence_that_says_where(tmp_path, monkeypatch):
    file = tmp_path / "own_nowhere.py"
    file.write_text(OWN.format(card="arm3"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CardError, match=f"no device card 'arm3'.*looked for in {tmp_path}"):
        run_conformance(str(file))


def test_a_test_that_cannot_begin_leaves_no_directory(tmp_path, monkeypatch):
    """The card goes while the test looks; the journal has no room; the daemon does not start."""
    made = []
    make_one = tempfile.mkdtemp

    def noted(**options):
        made.append(Path(make_one(**options)))
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", noted)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="no room"):
        patch.setattr(Journal, "make", classmethod(lambda *_: (_ for _ in ()).throw(OSError("no room"))))
        run_conformance("template")
    with monkeypatch.context() as patch:
        patch.setattr(trial, "SCENE", "no scene {{ {card} {valid}")
        report = run_conformance("template")
    assert [(check.name, check.passed) for check in report.checks] == [("daemon", False)] and not report.passed
    assert len(made) == 2 and not any(path.exists() for path in made)


def test_a_force_dimension_device_is_opened_to_learn_its_card(tmp_path, monkeypatch):
    """At the device itself; at its stand-in what stands in is known."""
    monkeypatch.delenv(emulated.ENVIRONMENT, raising=False)
    monkeypatch.setattr(emulated, "_device", None)
    library = {"library": "bridge.adapters.emulators.force_dimension"}
    assert bench_for("force-dimension", library, hardware=True).card.stem == "sigma7"
    assert emulated._device is not None and not emulated._device.open, "closed again"
    assert bench_for("force-dimension", {}).card.stem == "sigma7"
    with pytest.raises(DeviceError, match="no_such_library cannot be loaded"):
        bench_for("force-dimension", {"library": "no_such_library"}, hardware=True)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("class D(Device):\n    def open(self): pass\n", "class D has no read; every device needs it"),
        (
            "class D(Device):\n    def __init__(self, port): pass\n    def open(self): pass\n    read = open\n",
            "needs the option 'port': --set port=",
        ),
        (
            "class D(Device):\n    def __init__(self): len(3)\n    def open(self): pass\n    read = open\n",
            r"class D cannot be made: object of type 'int' has no len\(\)",
        ),
        ("x = undefined\n", "cannot be loaded: NameError: name 'undefined'"),
        ("import no_such_module\n", "cannot be loaded: No module named 'no_such_module'"),
    ],
    ids=["no read", "no default", "type error", "name", "import"],
)
def test_a_class_that_cannot_be_made_is_a_sentence(tmp_path, body, text):
    file = tmp_path / "own_wrong.py"
    file.write_text(f"from bridge.adapters.device import Device\n{body}")
    with pytest.raises(DeviceError, match=text):
        make(str(file), {})


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("sim", {}, "no adapter 'sim'; there are simulated, inverse"),
        ("nowhere.py", {}, "^nowhere.py does not exist$"),
        ("bridge.adapters.plant", {}, "has 0 classes derived from Device"),
        ("bridge.adapters.plant:Plant", {}, "has no class 'Plant' derived from"),
        ("simulated", {"colour": "red"}, "has no option 'colour'; it has card, path"),
        ("simulated", {"path": "square"}, "path = 'square' is none of rest"),
        ("simulated", {"grip": "glue"}, "grip = 'glue' is none of"),
        ("simulated", {"depth": "deep"}, "could not convert"),
        ("simulated", {"card": "hammer"}, "no device card 'hammer'"),
        ("spacemouse", {"speed": "-1"}, "speed = -1.0 must be a finite number above 0"),
        ("force-dimension", {"index": "one"}, "index = 'one' is not a whole number"),
    ],
)
def test_a_name_or_option_that_is_none_is_a_sentence(name, options, text):
    with pytest.raises(DeviceError, match=text):
        make(name, options)
