"""Gamepads: reports, lost events, the dead zone."""

import os

import pytest

from bridge.adapters import gamepad
from bridge.adapters.device import DeviceError


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
