"""The adapter to copy: a device of one file. Change the places marked 1 to 5, and try `hapticd adapter-test FILE.py`.

`bridge/adapters/device.py` says what each method has to do. The loop that calls them has the timing, the daemon, the
local spring, and the last line: what `write` gets is finite, within the card's limits, and never a step.
"""

from bridge.adapters.device import Device, DeviceError, Reading
from bridge.adapters.journal import Journal
from bridge.adapters.plant import Plant
from haptics.cards import load_card
from haptics.last_line import NO_WRENCH, Wrench


class Template(Device):
    """What `--list` and error messages call it."""

    # 1. The device card: the name of one in configs/devices, or of yours: `devices/NAME.toml` beside this file.
    card = "simulated"

    def __init__(self, journal: str = "") -> None:
        """Options of `--set key=value`, as texts. Yours may need a port or a serial number; ``journal`` is for the
        test, of a device that is simulated."""
        self._journal = journal
        self._hardware: Plant | None = None

    def open(self) -> None:
        """Make the device ready, with forces off."""
        # 2. Open yours here. Set whatever guards it has of its own: largest force, a watchdog of 20 ms.
        self._hardware = Plant(load_card("simulated"), Journal(self._journal) if self._journal else None)

    def read(self) -> Reading:
        """Return its newest state, at once."""
        hardware = self._plugged_in()
        # 3. Position in m, orientation as [x, y, z, w], both right-handed in the frame that the card names. Leave out
        #    what yours does not measure: `held` if it has no deadman (a switch or a sensor of the hand), `t_ns` if it
        #    does not stamp its readings. If it does by a clock of its own, set `own_clock = True`.
        pose, now = hardware.read()
        return Reading(pose.position.tolist(), pose.orientation.tolist(), buttons=0, t_ns=now)

    def write(self, wrench: Wrench) -> None:
        """Apply a wrench: N and N·m at the handle, in the same frame."""
        # 4. An input device leaves this method out.
        self._plugged_in().write(wrench)

    def close(self) -> None:
        """Leave the device with forces off."""
        if self._hardware is not None and not self._hardware.unplugged:
            self._hardware.write(NO_WRENCH)
        self._hardware = None

    def _plugged_in(self) -> Plant:
        # 5. Say so when it is gone: the loop tells the daemon, and ends with your sentence.
        if self._hardware is None or self._hardware.unplugged:
            raise DeviceError("the device was unplugged")
        return self._hardware
