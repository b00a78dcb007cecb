"""SpaceMice: reports, and which of the devices that are plugged in is one."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters import spacemouse
from bridge.adapters.device import DeviceError


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
