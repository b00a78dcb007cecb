"""What an adapter has to say of its device. Everything else is the loop's (`bridge/adapters/loop.py`)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from bridge.wire import Render
from haptics.last_line import Wrench

IDENTITY = (0.0, 0.0, 0.0, 1.0)


class DeviceError(RuntimeError):
    """The device is missing, was unplugged or cannot be used: one sentence."""


class Reading(NamedTuple):
    """What a device says of itself."""

    position: Sequence[float]
    """(3,) m, of the handle's coupling point, device frame, right-handed."""
    orientation: Sequence[float] = IDENTITY
    """(4,) xyzw, handle to device frame."""
    twist: Sequence[float] | None = None
    """(6,) m/s, rad/s; None where the device does not measure it."""
    buttons: int = 0
    """Bit 0 is the main button."""
    held: bool | None = None
    """Whether a hand is on the device, by its deadman: a switch or a sensor. None for one that has none: a daemon that
    requires a deadman then gives no forces."""
    t_ns: int | None = None
    """When that was measured: on the device's own clock where `Device.own_clock`, else of this machine's monotonic
    clock; None for now."""
    valid: bool = True
    """Whether the pose may be used."""


class Device(ABC):
    """One device. Options of the command line (``--set key=value``) are texts, and arguments of the constructor."""

    card: str | None = None
    """Its device card, known once it is open; None for one that takes what the daemon is configured for."""
    own_clock = False
    """Whether `Reading.t_ns` is of a clock in the device, to be judged and mapped."""
    why_off = ""
    """Not empty while the device itself gives no forces: why, for people. The last line then starts anew."""
    rate_hz: float | None = None
    """How often the loop reads and writes; None for the daemon's tick rate."""

    @abstractmethod
    def open(self) -> None:
        """Make it ready, with forces off. Raises DeviceError."""

    @abstractmethod
    def read(self) -> Reading:
        """Return its newest state at once, or within a period of its rate. Raises DeviceError when it is gone."""

    def write(self, wrench: Wrench) -> None:
        """Apply a wrench, [N, N·m], device frame, about the coupling point: it has passed the last line.

        Raises DeviceError when the device is gone. An input device has nothing to do here.
        """
        return None

    def follow(self, render: Render) -> None:
        """Hear of each new render, before `write`: for input devices that keep near the tool."""
        return None

    def brake(self) -> None:
        """Hold or damp the handle by the device's own means, after a velocity trip; by default nothing."""
        return None

    def close(self) -> None:
        """Leave it with forces off; may be called twice."""
        return None
