"""3Dconnexion SpaceMouse (and SpaceNavigator) through Linux's hidraw: input only, steers by speed.

Its reports, as spacenavd and other drivers read them: id 1 along x, y, z and id 2 about x, y, z, three little-endian
int16 each; newer models put all six into id 1; id 3 is a mask of buttons. The frame of the numbers is that of the card:
x to the right, y towards the person, z down.
"""

import contextlib
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from bridge.adapters.device import DeviceError
from bridge.adapters.steered import Steered

FULL = 350.0
"""Counts at the stop, as most models and drivers have them; beyond counts as the stop."""
LOGITECH, CONNEXION = 0x046D, 0x256F
"""Vendors: Logitech, who sold the first ones, and 3Dconnexion."""
MODELS = {
    **dict.fromkeys(
        ((LOGITECH, product) for product in (0xC603, 0xC605, 0xC606, 0xC621, 0xC623, 0xC625, 0xC626, 0xC627, 0xC628)),
        "an older one: SpaceMouse Plus to SpaceNavigator for Notebooks",
    ),
    (LOGITECH, 0xC629): "SpacePilot Pro",
    (LOGITECH, 0xC62B): "SpaceMouse Pro",
    (CONNEXION, 0xC62E): "SpaceMouse Wireless, by cable",
    (CONNEXION, 0xC62F): "SpaceMouse Wireless, its receiver",
    (CONNEXION, 0xC631): "SpaceMouse Pro Wireless, by cable",
    (CONNEXION, 0xC632): "SpaceMouse Pro Wireless, its receiver",
    (CONNEXION, 0xC633): "SpaceMouse Enterprise",
    (CONNEXION, 0xC635): "SpaceMouse Compact",
    (CONNEXION, 0xC636): "SpaceMouse Module",
    (CONNEXION, 0xC638): "SpaceMouse Pro Wireless with Bluetooth, by cable",
    (CONNEXION, 0xC63A): "SpaceMouse Wireless by Bluetooth",
    (CONNEXION, 0xC652): "Universal Receiver, which may have other mice as well",
}
"""Vendor and product of those with six axes, as spacenavd knows them (src/dev.c). Under the same vendors, and among the
same numbers, there are others: CadMouse, keyboards."""
DESKTOP_PAGE, MULTI_AXIS = 0x01, 0x08
"""Usage page and usage of a multi-axis controller (HID Usage Tables)."""
USAGE_PAGE, USAGE, LONG_ITEM = 0x04, 0x08, 0xFE
"""First byte of items in a report descriptor, without their size."""
SYS = Path("/sys/class/hidraw")
LONGEST_REPORT = 64


class Reports:
    """What a stream of reports says now."""

    def __init__(self) -> None:
        self.counts = [0, 0, 0, 0, 0, 0]
        """Along x, y, z and about them."""
        self.buttons = 0
        self.strange = 0
        """Reports that were of no known form; newer models send some about their battery."""

    def take(self, report: bytes) -> None:
        """Take one report, its id first."""
        kind, size = report[0] if report else 0, len(report)
        if kind == 1 and size >= 13:
            self.counts = list(struct.unpack_from("<6h", report, 1))
        elif kind == 1 and size >= 7:
            self.counts[:3] = struct.unpack_from("<3h", report, 1)
        elif kind == 2 and size >= 7:
            self.counts[3:] = struct.unpack_from("<3h", report, 1)
        elif kind == 3 and size >= 2:
            self.buttons = int.from_bytes(report[1:5], "little")
        else:
            self.strange += 1

    def deflection(self) -> list[float]:
        """(6,), 1 at the stop."""
        return [min(max(count / FULL, -1.0), 1.0) for count in self.counts]


class SpaceMouse(Steered):
    """The first one found, or the one at a path."""

    card = "spacemouse"

    def __init__(self, path: str = "", speed: str = "0.1", turn_speed: str = "1.0") -> None:
        """``path``: such as /dev/hidraw3; ``speed``, ``turn_speed``: at the stop, m/s and rad/s. Raises DeviceError."""
        super().__init__(speed, turn_speed)
        self._path = path
        self._file: int | None = None
        self._reports = Reports()

    def open(self) -> None:
        """Find it, and begin to listen."""
        path = self._path or find()
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            why = "; a udev rule has to let you read it" if isinstance(error, PermissionError) else ""
            raise DeviceError(f"{path}: {error.strerror}{why}") from None

    def deflection(self) -> Sequence[float]:
        """What the reports that have come say."""
        if self._file is None:
            raise DeviceError("the SpaceMouse is not open")
        try:
            while True:
                report = os.read(self._file, LONGEST_REPORT)
                if not report:
                    raise DeviceError("the SpaceMouse was unplugged")
                self._reports.take(report)
        except BlockingIOError:
            pass
        except OSError as error:
            raise DeviceError(f"the SpaceMouse was unplugged: {error.strerror}") from None
        self.buttons = self._reports.buttons & 0xFFFFFFFF
        return self._reports.deflection()

    def close(self) -> None:
        """No more reports."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                os.close(file)


def find(sys_class: Path = SYS) -> str:
    """Path of the first SpaceMouse. Raises DeviceError when there is none.

    Of several interfaces of one device, such as a receiver's, the one that says that it is a multi-axis controller.
    """
    doubtful = None
    for entry in sorted(sys_class.glob("hidraw*"), key=_place):
        if _ids(entry) in MODELS:
            says = _is_multi_axis(entry)
            if says:
                return f"/dev/{entry.name}"
            if says is None and doubtful is None:
                doubtful = f"/dev/{entry.name}"
    if doubtful is not None:
        return doubtful
    raise DeviceError("no SpaceMouse is plugged in (none of /dev/hidraw* is one); --set path=... names another device")


def _place(entry: Path) -> tuple[int, str]:
    """hidraw2 comes before hidraw10."""
    digits = entry.name.removeprefix("hidraw")
    return (int(digits) if digits.isdecimal() else sys.maxsize, entry.name)


def _ids(entry: Path) -> tuple[int, int] | None:
    """Vendor and product; None where they are not told."""
    try:
        lines = (entry / "device" / "uevent").read_text().splitlines()
        for line in lines:
            if line.startswith("HID_ID="):
                _, vendor, product = line.removeprefix("HID_ID=").split(":")
                return int(vendor, 16), int(product, 16)
    except (OSError, ValueError):
        return None
    return None


def _is_multi_axis(entry: Path) -> bool | None:
    """Whether an interface's report descriptor has a multi-axis controller; None where it cannot be read."""
    try:
        descriptor = (entry / "device" / "report_descriptor").read_bytes()
    except OSError:
        return None
    return (DESKTOP_PAGE, MULTI_AXIS) in usages(descriptor) if descriptor else None


def usages(descriptor: bytes) -> set[tuple[int, int]]:
    """Usage page and usage of everything in a report descriptor (Device Class Definition for HID 1.11, 6.2.2)."""
    found, page, at = set(), 0, 0
    while at < len(descriptor):
        head = descriptor[at]
        if head == LONG_ITEM:
            at += 3 + (descriptor[at + 1] if at + 1 < len(descriptor) else 0)
            continue
        size = (0, 1, 2, 4)[head & 3]
        value = int.from_bytes(descriptor[at + 1 : at + 1 + size], "little")
        if head & 0xFC == USAGE_PAGE:
            page = value
        elif head & 0xFC == USAGE:
            found.add((value >> 16, value & 0xFFFF) if size == 4 else (page, value))
        at += 1 + size
    return found
