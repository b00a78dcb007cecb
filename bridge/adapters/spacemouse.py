"""3Dconnexion SpaceMouse (and SpaceNavigator) through Linux's hidraw: input only, steers by speed.

Its reports, as spacenavd and other drivers read them: id 1 along x, y, z and id 2 about x, y, z, three little-endian
int16 each; newer models put all six into id 1; id 3 is a mask of buttons. The frame of the numbers is that of the card:
x to the right, y towards the person, z down.
"""

import contextlib
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from bridge.adapters.device import DeviceError
from bridge.adapters.steered import Steered

FULL = 350.0
"""Counts at the stop, as most models and drivers have them; beyond counts as the stop."""
VENDORS = {0x256F, 0x046D}
"""3Dconnexion, and Logitech, who sold the first ones."""
PRODUCTS = range(0xC603, 0xC660)
"""Of theirs, those of 3D mice."""
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
    """Path of the first SpaceMouse. Raises DeviceError when there is none."""
    for entry in sorted(sys_class.glob("hidraw*")):
        try:
            lines = (entry / "device" / "uevent").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith("HID_ID="):
                _, vendor, product = line.removeprefix("HID_ID=").split(":")
                if int(vendor, 16) in VENDORS and int(product, 16) in PRODUCTS:
                    return f"/dev/{entry.name}"
    raise DeviceError("no SpaceMouse is plugged in (none of /dev/hidraw* is one); --set path=... names another device")
