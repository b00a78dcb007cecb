"""What adapters are made of, each alone: clocks, reports of input devices, makers' interfaces, names and options."""

import ast
import importlib.util
import json
import math
import os
import struct
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters import conformance, gamepad, spacemouse
from bridge.adapters.benches import bench_for
from bridge.adapters.clock import BEHIND_NS, DRIFT, JUMP_NS, LAG_NS, DeviceClock, ForeignClock, RenderClock
from bridge.adapters.conformance import run_conformance
from bridge.adapters.device import Device, DeviceError
from bridge.adapters.emulators import force_dimension as emulated
from bridge.adapters.force_dimension import ForceDimension
from bridge.adapters.inverse import Inverse
from bridge.adapters.journal import READ, ROWS, WRITTEN, Journal
from bridge.adapters.registry import ADAPTERS, card_file, card_of, find, make, options_of
from bridge.adapters.witness import Witness
from haptics.cards import CARD_DIRECTORY, CardError
from haptics.last_line import NO_WRENCH

MS = 1_000_000
HERE = (0.0, 0.0, 0.0)


# -- clocks ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 5 * MS), min_size=2, max_size=200), st.integers(-(10**15), 10**15))
def test_a_foreign_time_is_never_in_the_future_nor_older_than_its_way(delays, offset):
    """Mapped times lie between the sending itself and the arrival, but for what the drift allows."""
    clock = ForeignClock()
    shortest = min(delays)
    for k, delay in enumerate(delays):
        sent = k * 10 * MS
        arrived = sent + delay
        mapped = clock.local(sent + offset, arrived)
        assert mapped <= arrived
        assert mapped >= sent + shortest - 1


@pytest.mark.parametrize("ppm", [-100, 100])
def test_a_clock_that_drifts_is_followed_for_an_hour(ppm):
    """100 ppm either way: nothing is taken for a lie, and no reading of now looks older than 1 ms."""
    clock = DeviceClock()
    for k in range(36_000):
        here = k * 100 * MS
        there = here + here * ppm // 1_000_000 + 77 * MS
        assert 0 <= here - clock.t_sample(there, here, HERE) <= MS
    assert clock.lie is None
    assert abs(ppm) * 1e-6 < DRIFT


def ages_of_renders(seconds, there, back, ppm=0):
    """Age (ms) by which renders are told to have come, one every 10 ms: ways there and back in ms at a time in s."""
    clock = RenderClock(same=False)
    found = []
    for k in range(0, 100 * seconds):
        sent, way = k * 10 * MS, round(there(k / 100) * MS)
        here = sent + way + MS + round(back(k / 100) * MS)
        daemons = [t + t * ppm // 1_000_000 + 10**15 for t in (sent + way, sent + way + MS)]
        found.append((here - clock.left(daemons[1], here, daemons[0], sent)) / MS)
    return np.array(found)


@pytest.mark.parametrize(("there", "back", "age"), [(200, 200, 200), (0, 200, 100), (3, 1, 2), (0, 0, 0)])
def test_a_render_is_as_old_as_half_of_the_way_there_and_back(there, back, age):
    """Exactly so where both ways are alike, from the first one on."""
    assert ages_of_renders(10, lambda t: there, lambda t: back) == pytest.approx(age, abs=0.01)


@pytest.mark.parametrize(("there", "least"), [(201.0, 200.0), (1.0, 100.0)])
def test_a_way_that_has_grown_is_never_forgotten(there, least):
    """From 1 to 201 ms, both ways or only back: ten minutes later it still is age."""
    ages = ages_of_renders(600, lambda t: 1.0 if t < 1.0 else there, lambda t: 1.0 if t < 1.0 else 201.0)
    assert ages[:100] == pytest.approx(1.0, abs=0.01) and ages[101:].min() >= least


@pytest.mark.parametrize("ppm", [-100, 100])
def test_drift_of_a_daemons_clock_is_no_age(ppm):
    ages = ages_of_renders(1200, lambda t: 1.0, lambda t: 1.0, ppm)
    assert ages == pytest.approx(1.0, abs=0.1)


def test_a_render_of_this_machine_left_when_it_says():
    clock = RenderClock(same=True)
    assert clock.left(1000, 1200, 900, None) == 1000 and clock.left(1300, 1250, 900, 800) == 1250


def told(clock: DeviceClock, stamps, period=MS, moving=False) -> list[int]:
    """Ages of readings, one per period, with those stamps."""
    start = 10**12
    found = []
    for k, stamp in enumerate(stamps):
        here = start + k * period
        found.append(here - clock.t_sample(stamp, here, (1e-4 * k if moving else 0.0, 0.0, 0.0)))
    return found


def test_a_clock_that_runs_backwards_lies():
    clock = DeviceClock()
    ages = told(clock, [*range(0, 50 * MS, MS), 20 * MS, *range(51 * MS, 90 * MS, MS)])
    assert clock.lie == "the device's clock ran backwards by 29.000 ms"
    assert set(ages) == {0}


def test_a_clock_that_jumps_ahead_lies():
    clock = DeviceClock()
    told(clock, [*range(0, 50 * MS, MS), 51 * MS + JUMP_NS + MS])
    assert clock.lie is not None and "ahead" in clock.lie


def test_a_clock_that_stands_still_lies_only_where_the_device_moves():
    still, moves = DeviceClock(), DeviceClock()
    ages = told(still, [5 * MS] * 100)
    assert still.lie is None and ages[-1] == pytest.approx(99 * MS, rel=1e-3), "an old reading looks old"
    told(moves, [5 * MS] * 100, moving=True)
    assert moves.lie is not None and "stood still" in moves.lie


def test_a_clock_that_fell_behind_is_old_for_a_second_and_then_a_lie():
    clock = DeviceClock()
    behind = 10 * BEHIND_NS
    stamps = [k * MS if k < 200 else 200 * MS + max(0, (k - 200) * MS - behind) for k in range(2000)]
    ages = told(clock, stamps)
    assert ages[400] > behind // 2 and ages[-1] == 0
    assert clock.lie is not None and "lags" in clock.lie and LAG_NS == 1_000_000_000


@pytest.mark.parametrize("ppm", [600, 1000, 10_000, 100_000])
def test_a_clock_that_is_too_slow_is_a_lie_before_its_samples_are_too_old_for_long(ppm):
    """They are older than a daemon takes (20 ms) for less than a second, and then a sentence says so."""
    clock = DeviceClock()
    stale = 0
    for k in range(400_000):
        here = k * MS
        stale += here - clock.t_sample(here - here * ppm // 1_000_000, here, HERE) > 2 * BEHIND_NS
        if clock.lie is not None:
            break
    assert clock.lie is not None and "lags" in clock.lie and stale * MS < LAG_NS


@pytest.mark.parametrize("step", [-30 * MS, 30 * MS])
def test_a_clock_that_steps_is_a_lie_or_no_matter(step):
    """Readings every 40 ms, so that a step back is no time backwards: soon none of them looks older than it is."""
    clock = DeviceClock()
    ages = told(clock, [40 * k * MS + (step if k > 50 else 0) for k in range(200)], period=40 * MS)
    assert (clock.lie is not None) is (step < 0) and ages[-1] == 0


# -- reports -----------------------------------------------------------------------------------------------------------


def test_a_space_mouse_of_two_reports():
    """As a SpaceNavigator sends them: id 1 along, id 2 about, id 3 buttons."""
    reports = spacemouse.Reports()
    reports.take(bytes.fromhex("01 5e01 a2fe 0000"))
    reports.take(bytes.fromhex("02 0000 af00 51ff"))
    reports.take(bytes.fromhex("03 0200"))
    assert reports.counts == [350, -350, 0, 0, 175, -175] and reports.buttons == 2
    assert reports.deflection() == pytest.approx([1.0, -1.0, 0.0, 0.0, 0.5, -0.5])


def test_a_space_mouse_of_one_report():
    """As newer models send it: all six in id 1; other ids and cut reports change nothing and are counted."""
    reports = spacemouse.Reports()
    reports.take(struct.pack("<B6h", 1, 10, 20, 30, -10, -20, 700))
    assert reports.counts == [10, 20, 30, -10, -20, 700] and reports.deflection()[5] == 1.0
    for strange in (b"", b"\x01\x00", b"\x02", bytes.fromhex("17 6400"), b"\x03"):
        reports.take(strange)
    assert reports.counts == [10, 20, 30, -10, -20, 700] and reports.strange == 5


@given(st.binary(max_size=64))
def test_no_report_trips_the_space_mouse(data):
    reports = spacemouse.Reports()
    reports.take(data)
    assert all(-1.0 <= value <= 1.0 for value in reports.deflection())


MULTI_AXIS = bytes.fromhex("05 01 09 08 a1 01 a1 00 85 01 16a2fe 265e01 09 30 09 31 09 32 75 10 95 03 81 06 c0 c0")
"""The beginning of a SpaceNavigator's report descriptor."""
MOUSE = bytes.fromhex("05 01 09 02 a1 01 09 01 a1 00 05 09 19 01 29 08 15 00 25 01 81 02 c0 c0")


def plug_in(folder: Path, name: str, ids: str, descriptor: bytes | None = None) -> None:
    """A device as the kernel shows it under /sys/class/hidraw."""
    device = folder / name / "device"
    device.mkdir(parents=True)
    (device / "uevent").write_text(f"DRIVER=hid-generic\nHID_ID=0003:{ids}\n")
    if descriptor is not None:
        (device / "report_descriptor").write_bytes(descriptor)


def test_a_space_mouse_is_found_by_its_ids(tmp_path):
    plug_in(tmp_path, "hidraw0", "0000046D:0000C52B")
    plug_in(tmp_path, "hidraw1", "0000256F:0000C635")
    (tmp_path / "hidraw2" / "device").mkdir(parents=True)
    assert spacemouse.find(tmp_path) == "/dev/hidraw1"
    with pytest.raises(DeviceError, match="no SpaceMouse is plugged in"):
        spacemouse.find(tmp_path / "hidraw0")


@pytest.mark.parametrize("product", ["C650", "C651", "C654", "C655", "C656", "C657", "C658", "C62C", "C641", "C664"])
def test_a_mouse_or_keyboard_of_the_same_maker_is_no_space_mouse(tmp_path, product):
    plug_in(tmp_path, "hidraw0", f"0000256F:0000{product}", MOUSE)
    with pytest.raises(DeviceError, match="no SpaceMouse is plugged in"):
        spacemouse.find(tmp_path)
    plug_in(tmp_path, "hidraw1", "0000256F:0000C635", MULTI_AXIS)
    assert spacemouse.find(tmp_path) == "/dev/hidraw1"


def test_the_second_space_mouse_comes_before_the_tenth(tmp_path):
    for name in ("hidraw10", "hidraw2"):
        plug_in(tmp_path, name, "0000046D:0000C626", MULTI_AXIS)
    assert spacemouse.find(tmp_path) == "/dev/hidraw2"


def test_of_a_receivers_interfaces_the_one_with_six_axes_is_taken(tmp_path):
    """Where descriptors cannot be read, the first one: but only if none says what it is."""
    plug_in(tmp_path, "hidraw1", "0000256F:0000C652", MOUSE)
    with pytest.raises(DeviceError, match="no SpaceMouse"):
        spacemouse.find(tmp_path)
    plug_in(tmp_path, "hidraw2", "0000256F:0000C652")
    assert spacemouse.find(tmp_path) == "/dev/hidraw2"
    plug_in(tmp_path, "hidraw3", "0000256F:0000C652", MULTI_AXIS)
    assert spacemouse.find(tmp_path) == "/dev/hidraw3"


def test_usages_of_a_report_descriptor():
    assert spacemouse.usages(MULTI_AXIS) == {(1, 8), (1, 0x30), (1, 0x31), (1, 0x32)}
    assert spacemouse.usages(bytes.fromhex("fe 02 00 05 01 06 00ff 0b 08000100")) == {(1, 8)}, (
        "a long item, a long usage"
    )


@given(st.binary(max_size=64))
def test_no_report_descriptor_trips_the_space_mouse(data):
    spacemouse.usages(data)


def event(kind: int, code: int, value: int) -> bytes:
    return gamepad.EVENT.pack(1, 2, kind, code, value)


REPORT = event(gamepad.EV_SYN, 0, 0)


def test_a_gamepad_steers_after_a_whole_report():
    """Kernel events: left stick up is away, right stick left turns left; buttons are a mask from the first one."""
    events = gamepad.Events()
    events.take(event(gamepad.EV_ABS, gamepad.ABS_Y, -32768) + event(gamepad.EV_ABS, gamepad.ABS_RX, -32768))
    events.take(event(gamepad.EV_KEY, gamepad.BTN_GAMEPAD + 1, 1))
    assert events.deflection() == [0.0] * 6 and events.buttons == 0
    events.take(REPORT)
    assert events.deflection() == pytest.approx([0.0, 1.0, 0.0, 0.0, 0.0, 1.0]) and events.buttons == 2
    events.take(event(gamepad.EV_KEY, gamepad.BTN_GAMEPAD + 1, 0) + REPORT)
    assert events.buttons == 0


def test_a_gamepad_knows_the_range_of_its_axes_and_lost_events():
    events = gamepad.Events({gamepad.ABS_X: (0, 255)})
    events.take(event(gamepad.EV_ABS, gamepad.ABS_X, 255) + REPORT)
    assert events.deflection()[0] == 1.0
    events.take(event(gamepad.EV_SYN, gamepad.SYN_DROPPED, 0) + event(gamepad.EV_ABS, gamepad.ABS_X, 0) + REPORT)
    assert events.lost and events.deflection()[0] == 1.0
    assert gamepad._read_request(0x40, 24) == 0x80184540, "EVIOCGABS(0) of linux/input.h"


def test_a_gamepad_reads_keys_anew_after_lost_events(tmp_path, monkeypatch):
    """A button whose release was lost is not held for ever; nor is what comes after the loss taken before its end."""
    pressed = bytearray(gamepad.KEYS)
    asked = []

    def ioctl(file, request, data):
        number = request & 0xFF
        asked.append(number)
        if number == 0x18:
            data[:] = pressed
        elif number >= 0x40:
            data[:] = gamepad.ABSINFO.pack(100, -1000, 1000, 0, 0, 0)

    monkeypatch.setattr(gamepad.fcntl, "ioctl", ioctl)
    path = tmp_path / "device"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    device = gamepad.Gamepad(str(path), dead_zone="0")
    device.open()
    try:
        os.write(pipe, event(gamepad.EV_KEY, gamepad.BTN_GAMEPAD, 1) + REPORT)
        device.deflection()
        assert device.buttons == 1
        os.write(pipe, event(gamepad.EV_SYN, gamepad.SYN_DROPPED, 0) + event(gamepad.EV_KEY, gamepad.BTN_GAMEPAD, 1))
        asked.clear()
        device.deflection()
        assert device.buttons == 1 and asked == []
        code = gamepad.BTN_GAMEPAD + 3
        pressed[code // 8] |= 1 << code % 8
        os.write(pipe, REPORT)
        assert device.deflection()[0] == pytest.approx(0.1) and device.buttons == 0b1000
        assert gamepad._read_request(0x18, 96) == 0x80604518, "EVIOCGKEY(96) of linux/input.h"
    finally:
        device.close()
        os.close(pipe)


def test_a_stick_that_rests_off_its_middle_stands_still():
    """A fifth off: within the dead zone. Beyond it deflection rises from 0 to 1, and the kernel's own zone is kept."""
    device = gamepad.Gamepad()
    value = round(0.2 * 32767)
    for code in (gamepad.ABS_X, gamepad.ABS_Y, gamepad.ABS_RX, gamepad.ABS_RY):
        device._events.take(event(gamepad.EV_ABS, code, value))
    device._events.take(REPORT)
    assert device._events.deflection() == [0.0] * 6
    events = gamepad.Events({0: (0, 1000)}, {0: 150}, 0.1)
    shares = [events.share(0, at) for at in (0, 250, 350, 500, 650, 651, 825, 1000, 2000)]
    assert shares == pytest.approx([-1.0, -2 / 7, 0.0, 0.0, 0.0, 0.002 / 0.7, 0.5, 1.0, 1.0])
    assert gamepad.Events({0: (0, 10)}, {0: 99}).share(0, 10) == 0.0
    for wrong in ("1", "-0.1", "nan", "wide"):
        with pytest.raises(DeviceError, match=r"dead_zone|could not convert"):
            gamepad.Gamepad(dead_zone=wrong)


# -- Haply's service ---------------------------------------------------------------------------------------------------


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


def test_inverse_reads_a_state_and_writes_a_force_in_each_cycle(service):
    url, journal = service
    device = Inverse(url)
    device.open()
    try:
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
    finally:
        device.close()
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
    device = Inverse(url)
    device.open()
    try:
        for _ in range(5):
            asked = time.monotonic_ns()
            device.write(NO_WRENCH)
            time.sleep(0.1)
            reading = device.read()
            assert reading.t_ns is not None and asked <= reading.t_ns < asked + 50 * MS
    finally:
        device.close()


# -- Force Dimension's library -----------------------------------------------------------------------------------------


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


# -- names, options, the journal ---------------------------------------------------------------------------------------


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
        patch.setattr(conformance, "SCENE", "no scene {{ {card} {valid}")
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


def test_a_journal_keeps_the_newest_rows(tmp_path):
    journal = Journal.make(tmp_path / "journal")
    other = Journal(journal.path)
    for k in range(5):
        journal.note(READ if k % 2 else WRITTEN, k, np.array((k, 0.0, 0.0)), NO_WRENCH)
    assert other.rows()["t"].tolist() == [0, 1, 2, 3, 4] and other.rows(2, READ)["t"].tolist() == [3]
    journal._header["count"][0] = ROWS + 5
    assert len(other.rows()) == ROWS - 1
