"""Where each adapter is tested: an emulator of its device where there is one, else the device itself."""

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bridge.adapters import gamepad, spacemouse
from bridge.adapters.device import Device, DeviceError
from bridge.adapters.emulators.force_dimension import ENVIRONMENT
from bridge.adapters.journal import Journal
from bridge.adapters.registry import card_file, find, make, options_of
from haptics.cards import card_path

START_S = 60.0
REPORT_S = 0.008
"""Between two reports of an input device."""


class Bench:
    """A device to test an adapter at; this one is the adapter's own business: real, or made by its own process."""

    stands_for = ""
    """Card of what stands in for the device, where the adapter learns its card from the device only."""
    steers_along: tuple[float, float, float] | None = None
    """Unit, device frame: where `steer` moves the pose; None where only a person can steer."""
    apart = False
    """Whether the journal is written in a process of its own, so that what reaches it may come in bunches."""

    def __init__(self, what: str, settings: Mapping[str, str]) -> None:
        """Raises DeviceError and CardError; a device may be opened for a moment, see `_card`."""
        kind = find(what)
        self.settings = dict(settings)
        """Options of the adapter."""
        self.environment: dict[str, str] = {}
        self.journals = "journal" in options_of(what)
        """Whether the device writes the journal itself; else a witness stands before it."""
        self.own_clock = kind.own_clock
        self.card = self._card(make(what, settings))
        """File of the device's card."""
        self.text = "at a simulated device" if self.journals else "at the device itself"
        self._journal: Journal | None = None

    def _card(self, device: Device) -> Path:
        """Where the card is; a device that tells its card only when it is open is opened for that, and closed."""
        found = card_file(device)
        if found is None and not self.stands_for:
            try:
                device.open()
                found = card_file(device)
            finally:
                device.close()
        return card_path(self.stands_for or "simulated") if found is None else found

    def start(self, directory: Path, journal: Journal) -> None:
        """Make the device ready; files may be put in the directory."""
        self._journal = journal
        if self.journals:
            self.settings["journal"] = str(journal.path)

    def stop(self) -> None:
        """Take it away."""

    def unplug(self) -> None:
        """Pull the plug."""
        assert self._journal is not None
        self._journal.words["unplugged"] = 1

    def plug_in(self) -> None:
        """Put it in again."""
        assert self._journal is not None
        self._journal.words["unplugged"] = 0

    def steer(self, on: bool) -> None:
        """Deflect an input device fully, or let go; nothing where `steers_along` is None."""


class _InverseBench(Bench):
    """The service's stand-in, a process of its own."""

    apart = True

    def __init__(self, what: str, settings: Mapping[str, str]) -> None:
        super().__init__(what, settings)
        self.journals = True
        self.text = "at an emulator of the Haply Inverse service, not at a device"
        self._service: subprocess.Popen | None = None

    def start(self, directory: Path, journal: Journal) -> None:
        self._journal = journal
        port = directory / "port"
        command = [sys.executable, "-m", "bridge.adapters.emulators.inverse", str(journal.path), str(port)]
        self._service = subprocess.Popen(command, start_new_session=True)
        deadline = time.monotonic() + START_S
        while not (port.exists() and port.read_text()):
            if self._service.poll() is not None or time.monotonic() > deadline:
                raise DeviceError("the emulator of the Haply Inverse service does not start")
            time.sleep(0.01)
        self.settings["url"] = f"ws://127.0.0.1:{port.read_text()}"

    def stop(self) -> None:
        if self._service is not None:
            self._service.send_signal(signal.SIGTERM)
            self._service.wait()


class _ForceDimensionBench(Bench):
    """The package's stand-in, in the adapter's process."""

    stands_for = "sigma7"

    def __init__(self, what: str, settings: Mapping[str, str]) -> None:
        super().__init__(what, settings)
        self.journals = True
        self.text = "at a stand-in of forcedimension_core, not at a device"

    def start(self, directory: Path, journal: Journal) -> None:
        self._journal = journal
        self.settings["library"] = "bridge.adapters.emulators.force_dimension"
        self.environment = {ENVIRONMENT: str(journal.path)}


class _Reported(Bench):
    """An input device that is a stream of bytes: a pipe in its place, and a thread that writes reports."""

    def __init__(self, what: str, settings: Mapping[str, str]) -> None:
        super().__init__(what, settings)
        self.text = "at made reports, not at a device"
        self._deflected = False
        self._ended = threading.Event()
        self._pipe: int | None = None
        self._path = Path()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def report(self, deflected: bool) -> bytes:
        """What the device sends."""
        raise NotImplementedError

    def start(self, directory: Path, journal: Journal) -> None:
        self._journal = journal
        self._path = directory / "device"
        os.mkfifo(self._path)
        self.settings["path"] = str(self._path)
        self.plug_in()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(5.0)
        self.unplug()

    def unplug(self) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            os.close(pipe)

    def plug_in(self) -> None:
        self._pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)

    def steer(self, on: bool) -> None:
        self._deflected = on

    def _write(self) -> None:
        while not self._ended.wait(REPORT_S):
            pipe = self._pipe
            if pipe is not None:
                try:
                    os.write(pipe, self.report(self._deflected))
                except OSError:  # full while nobody reads, or just closed
                    continue


class _SpaceMouseBench(_Reported):
    steers_along = (0.0, 0.0, -1.0)

    def report(self, deflected: bool) -> bytes:
        return struct.pack("<B3h", 1, 0, 0, -round(spacemouse.FULL) if deflected else 0)


class _GamepadBench(_Reported):
    steers_along = (0.0, 1.0, 0.0)

    def report(self, deflected: bool) -> bytes:
        now = time.time_ns()
        seconds, rest = divmod(now, 1_000_000_000)
        away = gamepad.RANGE[0] if deflected else 0
        pack = gamepad.EVENT.pack
        return pack(seconds, rest // 1000, gamepad.EV_ABS, gamepad.ABS_Y, away) + pack(
            seconds, rest // 1000, gamepad.EV_SYN, 0, 0
        )


_BENCHES: Mapping[str, Callable[[str, Mapping[str, str]], Bench]] = {
    "inverse": _InverseBench,
    "force-dimension": _ForceDimensionBench,
    "spacemouse": _SpaceMouseBench,
    "gamepad": _GamepadBench,
}


def bench_for(what: str, settings: Mapping[str, str], *, hardware: bool = False) -> Bench:
    """The bench of an adapter. Raises DeviceError when there is no such adapter."""
    if hardware:
        return Bench(what, settings)
    return _BENCHES.get(what, Bench)(what, settings)
