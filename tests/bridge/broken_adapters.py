"""Adapters that do what none may: the conformance test has to find out. Each is loaded as FILE:CLASS by a process."""

from collections import deque

from bridge.adapters import loop
from bridge.adapters.device import Reading
from bridge.adapters.simulated import Simulated
from haptics.last_line import NO_WRENCH, Applied, ForcesOff, Memory, Wrench


class KeepsTheLast(Simulated):
    """No force is no command to it: the motors go on with the last one."""

    def write(self, wrench: Wrench) -> None:
        if wrench != NO_WRENCH:
            super().write(wrench)


class EachAxisByItself(Simulated):
    """Saturates x, y and z each at the largest force, so that a large one points elsewhere."""

    def __init__(self, journal: str = "") -> None:
        super().__init__(journal=journal)
        loop.step = _each_axis  # type: ignore[assignment]


class LetsGoAtOnce(Simulated):
    """A last line that knows no ramp: forces are whole, or gone."""

    def __init__(self, journal: str = "") -> None:
        super().__init__(journal=journal)
        loop.step = _at_once  # type: ignore[assignment]


class WrongSignOfX(Simulated):
    """Its x grows the other way, so that a spring would push it on."""

    def __init__(self, journal: str = "") -> None:
        super().__init__(journal=journal)

    def read(self) -> Reading:
        reading = super().read()
        x, y, z = reading.position
        return reading._replace(position=(-x, y, z))


class SwapsXAndY(WrongSignOfX):
    """Its x and y are each other."""

    def read(self) -> Reading:
        reading = Simulated.read(self)
        x, y, z = reading.position
        return reading._replace(position=(y, x, z))


class ScalarFirst(WrongSignOfX):
    """Its quaternions are w, x, y, z."""

    def read(self) -> Reading:
        reading = Simulated.read(self)
        x, y, z, w = reading.orientation
        return reading._replace(orientation=(w, x, y, z))


class TurnsTheOtherWay(WrongSignOfX):
    """Its quaternions are from the device frame to the handle."""

    def read(self) -> Reading:
        reading = Simulated.read(self)
        x, y, z, w = reading.orientation
        return reading._replace(orientation=(-x, -y, -z, w))


class HundredMillisecondsLate(WrongSignOfX):
    """Its poses are a hundred readings old, and said to be of now."""

    own_clock = False

    def __init__(self, journal: str = "") -> None:
        super().__init__(journal=journal)
        self._kept: deque[Reading] = deque(maxlen=100)

    def read(self) -> Reading:
        self._kept.append(Simulated.read(self)._replace(t_ns=None))
        return self._kept[0]


class Frozen(WrongSignOfX):
    """Its pose is the first one for ever."""

    def __init__(self, journal: str = "") -> None:
        super().__init__(journal=journal)
        self._first: Reading | None = None

    def read(self) -> Reading:
        reading = Simulated.read(self)
        self._first = self._first or reading
        return reading._replace(position=self._first.position, orientation=self._first.orientation)


class PositionForVelocity(WrongSignOfX):
    """Its twist is its position."""

    def read(self) -> Reading:
        reading = Simulated.read(self)
        return reading._replace(twist=(*reading.position, 0.0, 0.0, 0.0))


def _off(wanted) -> ForcesOff:
    return wanted.off or (ForcesOff.STALE if wanted.age_ns > wanted.valid_ns else ForcesOff.NONE)


def _each_axis(limits, memory: Memory, t_ns: int, wanted):
    off = _off(wanted)
    most = limits.force_peak
    force = [0.0 if off else min(max(value, -most), most) for value in wanted.wrench[:3]]
    return Memory(t_ns), Applied((*force, 0.0, 0.0, 0.0), off, 0)  # type: ignore[arg-type]


def _at_once(limits, memory: Memory, t_ns: int, wanted):
    off = _off(wanted)
    return Memory(t_ns), Applied(NO_WRENCH if off else wanted.wrench, off, 0)
