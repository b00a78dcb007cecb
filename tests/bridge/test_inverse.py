"""Haply's service: states, forces, grips, cards."""

import contextlib
import json
import math
import threading
import time

import pytest

from bridge.adapters.device import DeviceError
from bridge.adapters.inverse import Inverse
from bridge.adapters.journal import WRITTEN, Journal
from haptics.last_line import NO_WRENCH

MS = 1_000_000


@pytest.fixture
def service(tmp_path):
    """The emulator in a thread: its address, its journal."""
    from websockets.sync.server import serve

    from bridge.adapters.emulators.inverse import HOME, Service
    from bridge.adapters.plant import Plant
    from haptics.cards import load_card

    journal = Journal.make(tmp_path / "journal")
    plant = Plant(load_card("inverse3"), journal, start=HOME)
    with serve(Service(plant).talk, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}", journal
        server.shutdown()
        thread.join()


@contextlib.contextmanager
def opened(url):
    device = Inverse(url)
    device.open()
    with contextlib.closing(device):
        yield device


def test_inverse_reads_a_state_and_writes_a_force_in_each_cycle(service):
    url, journal = service
    with opened(url) as device:
        for _ in range(20):
            device.write((0.0, 1.5, 0.0, 0.0, 0.0, 0.0))
            reading = device.read()
        assert reading.valid and reading.position == pytest.approx((0.0, -0.12, 0.15), abs=2e-2)
        written = journal.rows(0, WRITTEN)["wrench"]
        assert (written[0] == 0.0).all() and written[-1].tolist() == [0.0, 1.5, 0.0, 0.0, 0.0, 0.0]
        journal.words["unplugged"] = 1
        with pytest.raises(DeviceError, match="049D is no longer in the service's list"):
            for _ in range(10):
                device.write(NO_WRENCH)
                device.read()
    device.close()


def test_inverse_says_what_is_missing(service):
    url, journal = service
    with pytest.raises(DeviceError, match="no Inverse3 'FFFF'; it has 049D"):
        Inverse(url, device="FFFF").open()
    journal.words["unplugged"] = 1
    with pytest.raises(DeviceError, match="has no Inverse3: is it plugged in"):
        Inverse(url).open()
    with pytest.raises(DeviceError, match=r"does not answer at ws://127.0.0.1:1"):
        Inverse("ws://127.0.0.1:1").open()


@pytest.mark.parametrize(
    ("state", "valid"),
    [
        ({"cursor_position": {"x": 0.1, "y": "far", "z": 0.0}}, False),
        ({"cursor_position": {"x": 0.1, "y": 0.2, "z": 1e999}}, False),
        ({"cursor_position": [0.1, 0.2, 0.3]}, True),
        ({}, True),
        ("nothing", True),
    ],
)
def test_inverse_survives_a_state_that_is_none(state, valid):
    """What is left out stays; what is no number is NaN, which the loop does not send."""
    device = Inverse()
    device._id = "A"
    device._take(json.loads(json.dumps({"inverse3": [7, {"device_id": "A", "state": state}]})))
    assert all(map(math.isfinite, device._position)) is valid


def test_inverse_passes_on_a_verse_grip():
    device = Inverse()
    device._id = "A"
    grip = {"state": {"orientation": {"x": 0.0, "y": 0.0, "z": 2.0, "w": 0.0}, "buttons": {"a": True, "c": True}}}
    device._take({"inverse3": [{"device_id": "A"}], "wireless_verse_grip": [grip]})
    assert device._orientation == (0.0, 0.0, 1.0, 0.0) and device._buttons == 0b101


@pytest.mark.parametrize(
    ("grips", "buttons"),
    [
        ({"verse_grip": [{"button": True, "hall": 0, "orientation": {}}]}, 1),
        ({"verse_grip": [{"button": False, "hall": 3}]}, 0),
        ({"verse_grip": [{"button": 1}]}, 0),
        ({"verse_grip": [{"button": True}], "wireless_verse_grip": [{"buttons": {"a": False, "b": True}}]}, 0b11),
        ({"verse_grip": [{"hall": 0}]}, 0b100),  # what is left out stays
    ],
)
def test_inverse_reads_the_button_of_a_grip_with_a_wire(grips, buttons):
    """As the Simulation Channel tells it: one truth value `button`, beside those of a wireless one."""
    device = Inverse()
    device._id = "A"
    device._buttons = 0b100
    message = {kind: [{"state": state} for state in states] for kind, states in grips.items()}
    device._take({"inverse3": [{"device_id": "A"}], **message})
    assert device._buttons == buttons


def inventory(**types: str | None) -> list[dict]:
    return [{"device_id": key, "config": {} if kind is None else {"type": kind}} for key, kind in types.items()]


def test_inverse_takes_the_card_that_a_devices_type_says():
    """The Minverse is in the same list, and is another device."""
    device = Inverse()
    device._choose(inventory(A="minverse", B="inverse3", C="inverse3"))
    assert (device._id, device.card) == ("B", "inverse3")
    for found, kind in (
        (inventory(A="minverse"), "minverse"),
        (inventory(A=None), "not told"),
        ([{"device_id": "A"}], ""),
    ):
        for wanted in ("", "A"):
            with pytest.raises(
                DeviceError, match=f"no card is known for the device A of type {kind}.*force_max.*--set card"
            ):
                Inverse(device=wanted)._choose(found)
    own = Inverse(card="devices/minverse.toml")
    own._choose(inventory(A="minverse", B="inverse3"))
    assert (own._id, own.card) == ("A", "devices/minverse.toml")


def test_inverse_says_of_a_state_no_younger_time_than_that_of_the_message_it_answers(service):
    """A state that has waited here for long does not look new."""
    url, _ = service
    with opened(url) as device:
        for _ in range(5):
            asked = time.monotonic_ns()
            device.write(NO_WRENCH)
            time.sleep(0.1)
            reading = device.read()
            assert reading.t_ns is not None and asked <= reading.t_ns < asked + 50 * MS
