"""A device as the conformance test sees it where nothing else can: what is read from it and written to it, noted.

It is before the device, not in it: what a faulty `write` does with a wrench is seen only by an emulator.
"""

import time

import numpy as np

from bridge.adapters.device import Device, DeviceError, Reading
from bridge.adapters.journal import READ, WRITTEN, Journal
from bridge.adapters.registry import card_file
from bridge.wire import Render
from haptics.last_line import NO_WRENCH, Wrench


class Witness(Device):
    """Passes everything on, pulls the plug and shifts the clock when the journal says so."""

    def __init__(self, device: Device, journal: Journal) -> None:
        self._device, self._journal = device, journal
        self.own_clock, self.rate_hz = device.own_clock, device.rate_hz
        self._position = np.zeros(3)
        self._wrench: Wrench = NO_WRENCH

    @property
    def why_off(self) -> str:  # type: ignore[override]
        """What it says of itself."""
        return self._device.why_off

    def open(self) -> None:
        """Open it; its card is known then."""
        self._device.open()
        file = card_file(self._device)
        self.card = None if file is None else str(file.resolve())

    def read(self) -> Reading:
        """What it says, noted."""
        self._plugged()
        reading = self._device.read()
        self._position = np.array(reading.position, dtype=float)
        self._journal.note(READ, time.monotonic_ns(), self._position, self._wrench)
        step = int(self._journal.words["clock_step"])
        if step and self.own_clock and reading.t_ns is not None:
            return reading._replace(t_ns=reading.t_ns + step)
        return reading

    def write(self, wrench: Wrench) -> None:
        """Pass it on, and note it."""
        self._plugged()
        self._device.write(wrench)
        self._wrench = wrench
        self._journal.note(WRITTEN, time.monotonic_ns(), self._position, wrench)

    def follow(self, render: Render) -> None:
        """Pass it on."""
        self._device.follow(render)

    def brake(self) -> None:
        """Pass it on."""
        self._device.brake()

    def close(self) -> None:
        """Pass it on."""
        self._device.close()

    def _plugged(self) -> None:
        if self._journal.words["unplugged"]:
            raise DeviceError("the device was unplugged (by the test)")
