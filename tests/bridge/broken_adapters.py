"""Adapters that do what none may: the conformance test has to find out. Each is loaded as FILE:CLASS by a process."""

from bridge.adapters import loop
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
