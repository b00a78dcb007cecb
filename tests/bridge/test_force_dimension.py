"""Force Dimension's library: guards, failures, cards."""

import ast
import importlib.util
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from bridge.adapters.device import DeviceError
from bridge.adapters.emulators import force_dimension as emulated
from bridge.adapters.force_dimension import ForceDimension
from bridge.adapters.journal import WRITTEN, Journal
from haptics.last_line import NO_WRENCH


@pytest.fixture
def sigma(tmp_path, monkeypatch):
    """The adapter at the stand-in, open; and its journal."""
    journal = Journal.make(tmp_path / "journal")
    monkeypatch.setenv(emulated.ENVIRONMENT, str(journal.path))
    monkeypatch.setattr(emulated, "_device", None)
    device = ForceDimension(library="bridge.adapters.emulators.force_dimension")
    device.open()
    yield device, journal
    device.close()


def test_force_dimension_sets_the_makers_guards(sigma):
    """Largest force and torque of the card, and the firmware's watchdog, before any force."""
    device, journal = sigma
    found = emulated._it()
    assert device.card == "sigma7" and (found.max_force, found.max_torque) == (12.0, 0.2)
    assert found.watchdog_s == pytest.approx(0.02) and not found.expert
    found.watchdog_s = 0.0  # a busy machine may hold a test up for longer
    assert (journal.rows(0, WRITTEN)["wrench"] == 0.0).all()
    device.write((3.0, 0.0, 0.0, 0.0, 0.1, 0.0))
    reading = device.read()
    assert journal.rows(0, WRITTEN)["wrench"][-1].tolist() == [3.0, 0.0, 0.0, 0.0, 0.1, 0.0]
    assert reading.valid and reading.twist is not None and math.hypot(*reading.orientation) == pytest.approx(1.0)
    device.write((24.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert journal.rows(0, WRITTEN)["wrench"][-1][0] == pytest.approx(12.0)


def test_force_dimension_tells_why_forces_are_off_and_asks_again(sigma):
    device, _ = sigma
    found = emulated._it()
    found.off(emulated.WATCHDOG_CAUSE)
    device._look_at = 0
    device.read()
    assert device.why_off == "forces were taken away by its watchdog"
    device._look_at = device._enable_at = 0
    device.read()
    assert found.enabled
    device._look_at = 0
    device.read()
    assert device.why_off == ""
    found.off(1)  # the button on the device: only who pressed it gives forces again
    for _ in range(3):
        device._look_at = device._enable_at = 0
        device.read()
    assert device.why_off == "forces were taken away by the button" and not found.enabled


def test_force_dimension_is_gone_after_failures_in_a_row(sigma):
    device, journal = sigma
    good = device.read()
    journal.words["unplugged"] = 1
    assert device.read() == good._replace(valid=False)
    with pytest.raises(DeviceError, match="is gone: no device found"):
        for _ in range(30):
            device.read()


def test_force_dimension_that_takes_no_forces_is_reported_although_it_can_be_read(sigma, monkeypatch):
    """A good writing starts the count anew, a good reading does not."""
    device, _ = sigma
    emulated._it().watchdog_s = 0.0
    push = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def fail(times: int) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(emulated.dhd, "setForceAndTorqueAndGripperForce", lambda f, t, fg, ID=-1: -1)
            for _ in range(times):
                assert device.read().valid
                device.write(push)

    for _ in range(3):
        fail(15)
        device.write(push)
    with pytest.raises(DeviceError, match="takes no forces: no error"):
        fail(30)


def test_force_dimension_that_takes_no_forces_is_reported_although_its_watchdog_acts_first(sigma, monkeypatch):
    """Forces are asked for again each time, and each time a few more writings have failed."""
    device, _ = sigma
    found = emulated._it()
    found.watchdog_s = 0.0
    monkeypatch.setattr(emulated.dhd, "setForceAndTorqueAndGripperForce", lambda f, t, fg, ID=-1: -1)
    with pytest.raises(DeviceError, match="takes no forces"):
        for _ in range(10):
            for _ in range(5):
                device.write(NO_WRENCH)
            found.off(emulated.WATCHDOG_CAUSE)
            for _ in range(50):
                device.write(NO_WRENCH)
            assert device.why_off == "forces were taken away by its watchdog"
            device._look_at = device._enable_at = 0
            device.read()
            device._look_at = 0
            device.read()


def test_force_dimension_whose_forces_are_off_by_itself_is_not_taken_for_gone(sigma):
    """Writings fail while somebody holds its button down; it says so, and goes on when the button is let go."""
    device, _ = sigma
    found = emulated._it()
    found.watchdog_s = 0.0
    found.off(1)
    for _ in range(100):
        device.write((1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        device.read()
    assert device.why_off == "forces were taken away by the button"
    emulated.enableForce(True)
    device._look_at = 0
    device.read()
    device.write(NO_WRENCH)
    assert device.why_off == "" and device._refused == 0


def test_force_dimension_of_a_type_without_a_card_says_what_to_write_down(monkeypatch):
    monkeypatch.setattr(emulated, "_device", None)
    monkeypatch.setattr(emulated.dhd, "getSystemType", lambda ID=-1: SimpleNamespace(name="OMEGA3"))
    device = ForceDimension(library="bridge.adapters.emulators.force_dimension")
    with pytest.raises(DeviceError, match=r"type OMEGA3: write one .* force_max, .* --set card=FILE") as all:
        device.open()
    assert "\n" not in str(all.value)


def test_force_dimension_takes_no_matrix_for_a_turn_that_is_none(sigma, monkeypatch):
    device, _ = sigma

    def frame(p_out, matrix_out, ID=-1):
        p_out[:3] = [0.0, 0.0, 0.0]
        return 0

    monkeypatch.setattr(emulated.dhd, "getPositionAndOrientationFrame", frame)
    assert all(math.isnan(value) for value in device.read().orientation)


def test_force_dimension_without_its_library_is_a_sentence():
    with pytest.raises(DeviceError, match=r"no_such_library cannot be loaded .* Force Dimension's SDK"):
        ForceDimension(library="no_such_library").open()


PACKAGE = importlib.util.find_spec("forcedimension_core")


@pytest.mark.skipif(PACKAGE is None, reason="needs forcedimension_core: pip install 'hapticd[force-dimension]'")
def test_the_stand_in_has_the_surface_of_the_package():
    """Same functions and arguments in the same order as in the package's source, which loads only with the SDK."""
    assert PACKAGE is not None and PACKAGE.submodule_search_locations is not None
    folder = Path(next(iter(PACKAGE.submodule_search_locations)))

    def arguments(path: Path) -> dict[str, list[str]]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        return {n.name: [a.arg for a in n.args.args] for n in tree.body if isinstance(n, ast.FunctionDef)}

    own = arguments(Path(emulated.__file__))
    real = arguments(folder / "dhd" / "__init__.py")
    expert = arguments(folder / "dhd" / "expert" / "__init__.py")
    for name in vars(emulated.dhd):
        if name != "expert":
            assert own[name] == real[name], name
    for name in vars(emulated.dhd.expert):
        assert own[name] == expert[name], name
