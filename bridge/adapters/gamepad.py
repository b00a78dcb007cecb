"""Gamepads and joysticks through Linux's evdev: input only, steers by speed.

Events are the kernel's `struct input_event` (linux/input.h): time of two longs, type, code and value. The left stick
moves in the plane (x to the right, y away), the right one up and down and about the vertical; triggers are not used.

A stick that is let go does not come to rest in the middle. So each axis has a dead zone, from whose edge speed rises
from zero: an option, and no less than what the kernel says of the device (`flat`).
"""

import contextlib
import fcntl
import glob
import math
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

from bridge.adapters.device import DeviceError
from bridge.adapters.steered import Steered

EVENT = struct.Struct("llHHi")
EV_SYN, EV_KEY, EV_ABS = 0, 1, 3
SYN_DROPPED = 3
ABS_X, ABS_Y, ABS_RX, ABS_RY = 0, 1, 3, 4
BTN_JOYSTICK, BTN_GAMEPAD, BTN_LAST = 0x120, 0x130, 0x13F
"""Buttons of sticks begin at the first, of pads at the second."""
ABSINFO = struct.Struct("6i")
RANGE = (-32768, 32767)
"""Of an axis whose device does not tell."""
DEAD_ZONE = 0.24
"""Share of full deflection: what XInput leaves out of an Xbox pad's left stick (7849 of 32767)."""
KEYS = BTN_LAST // 8 + 1
"""Bytes of a bit for each key, up to the last one that is read."""
STEERS = {ABS_X: (0, 1.0), ABS_Y: (1, -1.0), ABS_RY: (2, -1.0), ABS_RX: (5, -1.0)}
"""Axis code -> which number of the deflection, and its sign: sticks count down and right as positive."""


KEYS_NOW, KEYS_THERE, AXIS_NOW = 0x18, 0x20 + EV_KEY, 0x40
"""Numbers of EVIOCGKEY, EVIOCGBIT of the keys, and EVIOCGABS of the first axis."""


class Axis(NamedTuple):
    """What the kernel says of an axis, in counts."""

    value: int
    least: int
    largest: int
    flat: int
    """How far from the middle it may rest."""


def _read_request(number: int, size: int) -> int:
    """The kernel's _IOR('E', number, size)."""
    return 2 << 30 | size << 16 | ord("E") << 8 | number


class Events:
    """What a stream of events says now."""

    def __init__(
        self,
        ranges: dict[int, tuple[int, int]] | None = None,
        flats: dict[int, int] | None = None,
        dead_zone: float = DEAD_ZONE,
    ) -> None:
        """By axis code, in counts: ``ranges`` least and largest, ``flats`` how far from the middle it may rest;
        ``dead_zone``: share of full deflection."""
        self._ranges, self._flats, self._dead_zone = ranges or {}, flats or {}, dead_zone
        self._new: dict[int, float] = {}
        self._keys: dict[int, bool] = {}
        self._dropped = False
        self.axes: dict[int, float] = {}
        """By code, -1..1, as of the last complete report."""
        self.buttons = 0
        self.lost = False
        """Events were lost: axes and keys have to be read anew."""

    def take(self, data: bytes) -> None:
        """Take whole events."""
        for _, _, kind, code, value in EVENT.iter_unpack(data):
            if kind == EV_SYN:
                if code == SYN_DROPPED:
                    self._dropped = True
                elif self._dropped:
                    self._dropped = False  # what came since then is of before the loss
                    self.lost = True
                else:
                    self.axes.update(self._new)
                    self.buttons = _mask(self._keys)
                self._new = {}
            elif kind == EV_ABS:
                self._new[code] = self.share(code, value)
            elif kind == EV_KEY and not self._dropped:
                self._keys[code] = value != 0

    def take_keys(self, bits: bytes) -> None:
        """Take the state of all keys, a bit each."""
        self._keys = {code: bool(bits[code // 8] >> code % 8 & 1) for code in range(BTN_JOYSTICK, BTN_LAST + 1)}
        self.buttons = _mask(self._keys)

    def share(self, code: int, value: int) -> float:
        """Value of an axis from -1 to 1, 0 in its dead zone and rising from there."""
        low, high = self._ranges.get(code, RANGE)
        if high <= low:
            return 0.0
        size = min(abs(2.0 * value - low - high) / (high - low), 1.0)
        zone = max(self._dead_zone, 2.0 * self._flats.get(code, 0) / (high - low))
        if size <= zone:
            return 0.0
        return math.copysign((size - zone) / (1.0 - zone), 2.0 * value - low - high)

    def deflection(self) -> list[float]:
        """(6,), 1 at the stop."""
        found = [0.0] * 6
        for code, (number, sign) in STEERS.items():
            found[number] = sign * self.axes.get(code, 0.0)
        return found


def _dead_zone(text: str) -> float:
    try:
        found = float(text)
    except ValueError as error:
        raise DeviceError(str(error)) from None
    if not 0.0 <= found < 1.0:
        raise DeviceError(f"dead_zone = {text} must be from 0 to below 1")
    return found


def _mask(keys: dict[int, bool]) -> int:
    mask = 0
    for code, pressed in keys.items():
        if pressed and BTN_JOYSTICK <= code <= BTN_LAST:
            mask |= 1 << (code - (BTN_GAMEPAD if code >= BTN_GAMEPAD else BTN_JOYSTICK))
    return mask


class Gamepad(Steered):
    """The first one found, or the one at a path."""

    card = "gamepad"

    def __init__(
        self, path: str = "", speed: str = "0.1", turn_speed: str = "1.0", dead_zone: str = str(DEAD_ZONE)
    ) -> None:
        """``path``: such as /dev/input/event5; ``speed``, ``turn_speed``: at the stop, m/s and rad/s; ``dead_zone``:
        share of an axis' full deflection that counts as rest, or more where the kernel says so. Raises DeviceError."""
        super().__init__(speed, turn_speed)
        self._dead_zone = _dead_zone(dead_zone)
        self._path = path
        self._file: int | None = None
        self._events = Events()

    def open(self) -> None:
        """Find it, learn the ranges of its axes, and begin to listen."""
        path = self._path or find()
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            why = "; the group `input` may read it" if isinstance(error, PermissionError) else ""
            raise DeviceError(f"{path}: {error.strerror}{why}") from None
        about = {code: self._about(code) for code in STEERS}
        told = {code: each for code, each in about.items() if each is not None}
        ranges = {code: (each.least, each.largest) for code, each in told.items()}
        self._events = Events(ranges, {code: each.flat for code, each in told.items()}, self._dead_zone)

    def deflection(self) -> Sequence[float]:
        """What the events that have come say."""
        if self._file is None:
            raise DeviceError("the gamepad is not open")
        try:
            while True:
                data = os.read(self._file, 64 * EVENT.size)
                if len(data) < EVENT.size:
                    raise DeviceError("the gamepad was unplugged")
                self._events.take(data[: len(data) // EVENT.size * EVENT.size])
        except BlockingIOError:
            pass
        except OSError as error:
            raise DeviceError(f"the gamepad was unplugged: {error.strerror}") from None
        if self._events.lost:
            self._events.lost = False
            for code in STEERS:
                about = self._about(code)
                if about is not None:
                    self._events.axes[code] = self._events.share(code, about.value)
            keys = self._ask(KEYS_NOW, KEYS)
            if keys is not None:
                self._events.take_keys(keys)
        self.buttons = self._events.buttons
        return self._events.deflection()

    def _about(self, code: int) -> Axis | None:
        """What the kernel says of an axis; None where the device does not tell."""
        data = self._ask(AXIS_NOW + code, ABSINFO.size)
        if data is None:
            return None
        value, least, largest, _, flat, _ = ABSINFO.unpack(data)
        return Axis(value, least, largest, flat)

    def _ask(self, number: int, size: int) -> bytes | None:
        """The kernel's answer; None where the device has none."""
        data = bytearray(size)
        assert self._file is not None
        try:
            fcntl.ioctl(self._file, _read_request(number, size), data)
        except OSError:
            return None
        return bytes(data)

    def close(self) -> None:
        """No more events."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                os.close(file)


def find() -> str:
    """Path of the first gamepad or joystick that may be read. Raises DeviceError when there is none."""
    for path in sorted(glob.glob("/dev/input/event*")):
        bits = bytearray(KEYS)
        try:
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            fcntl.ioctl(file, _read_request(KEYS_THERE, len(bits)), bits)
        except OSError:
            continue
        finally:
            os.close(file)
        if any(bits[code // 8] >> code % 8 & 1 for code in (BTN_JOYSTICK, BTN_GAMEPAD)):
            return path
    raise DeviceError("no gamepad is plugged in, or none may be read (group `input`); --set path=... names a device")
