"""The last line before the motors: what every wrench passes in the adapter, also when the daemon is dead. No clock.

One call of :func:`step` per cycle takes the wanted wrench and what is known of its age, and gives the one to apply. In
this order:

    finite      a wrench that is not finite is wanted as zero, and counted
    velocity    a device faster than its limit gets zero at once (the one step there is) and stays off until `reset`
    gain        0..1: up within `soft_start_s` while forces are asked for and fresh; else down within `fade_s`, and the
                wrench of the last good cycle with it, in a straight line to zero
    heat        a motor's first-order thermal model lowers the allowed norm towards the continuous one
    norm        force and torque are shortened to the allowed norm (times gain), each with its direction kept
    slew        no faster than the slew rate

So a ramp down is the same whatever is wanted meanwhile, and after `fade_s` of cycles the wrench is zero. A cycle that
comes late counts for `LONGEST_CYCLE_S` at most: what was held up goes on from where it
was, and the time for which it was held up comes on top.

Heat is the mean square of the norm, h' = (|F|^2 - h) / tau, which is that of a winding's temperature over its
surroundings with time constant tau, as copper loss goes with the square of the current. The allowed norm falls from the
peak to the continuous one while h climbs through the last `HEAT_MARGIN` of the square of the continuous one, and
reaches it there: so h never passes it, and the force that is left may last for ever.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

Triple = tuple[float, float, float]
Wrench = tuple[float, float, float, float, float, float]

ZERO: Triple = (0.0, 0.0, 0.0)
NO_WRENCH: Wrench = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

LONGEST_CYCLE_S = 0.005
"""A later cycle counts as one so long."""
HEAT_MARGIN = 0.2
"""Share of the square of the continuous norm over which the allowed one falls from the peak."""
ROUNDING = 1e-12
"""Of a gain, or of a norm as a share of the peak."""

SATURATED = 1
SLEW_LIMITED = 2
NOT_FINITE = 4
HEATED = 8
RAMPED = 16
"""Bits of `Applied.limited`: what stood between the wanted wrench and the one to apply."""


class ForcesOff(IntEnum):
    """Why forces are off or on their way there."""

    NONE = 0
    """They are on, or on their way up."""
    NOT_ASKED = 1
    """The daemon renders none: nobody is engaged."""
    STALE = 2
    """The newest render is older than it may be used: daemon or link is lost."""
    NOT_FINITE = 3
    """The wanted wrench is NaN or infinite."""
    VELOCITY = 4
    """The device was faster than its limit; off until reset."""
    DEVICE = 5
    """What the device reads cannot be used."""
    LEAVING = 6
    """The adapter ends."""


@dataclass(frozen=True)
class Limits:
    """What one device may be given, SI units. Raises ValueError for what cannot hold together."""

    force_peak: float
    """N, by norm."""
    torque_peak: float
    """N·m, by norm; 0 for a device without torque."""
    force_continuous: float
    """N, by norm: for ever."""
    torque_continuous: float
    """N·m."""
    force_slew: float
    """N/s."""
    torque_slew: float
    """N·m/s."""
    speed_trip: float
    """m/s."""
    soft_start_s: float = 0.1
    fade_s: float = 0.015
    thermal_s: float = 10.0
    """Time constant of the motors."""

    def __post_init__(self) -> None:
        for name in (
            *("force_peak", "torque_peak", "force_continuous", "torque_continuous", "force_slew", "torque_slew"),
            *("speed_trip", "soft_start_s", "fade_s", "thermal_s"),
        ):
            value = getattr(self, name)
            least = "0 or more" if name.startswith(("force_", "torque_")) else "above 0"
            if not math.isfinite(value) or value < 0.0 or (value == 0.0 and least == "above 0"):
                raise ValueError(f"{name} = {value!r} must be a finite number, {least}")
        for kind in ("force", "torque"):
            peak, continuous = getattr(self, f"{kind}_peak"), getattr(self, f"{kind}_continuous")
            if continuous > peak:
                raise ValueError(f"{kind}_continuous = {continuous:g} must not be above {kind}_peak = {peak:g}")
            if peak > 0.0 and continuous == 0.0:
                raise ValueError(f"{kind}_continuous must be above 0 where {kind}_peak = {peak:g} is")
            if peak > continuous and not _cools(peak, continuous, self.thermal_s):
                raise ValueError(
                    f"thermal_s = {self.thermal_s:g} is too short for {kind}_peak = {peak:g} over {kind}_continuous = "
                    f"{continuous:g}: one late cycle could overheat the motors"
                )


class Memory(NamedTuple):
    """What goes from one cycle to the next."""

    t_ns: int | None = None
    """Of the last cycle."""
    force: Triple = ZERO
    torque: Triple = ZERO
    """Applied then."""
    gain: float = 0.0
    force_heat: float = 0.0
    torque_heat: float = 0.0
    """Mean square, N^2 and (N·m)^2."""
    tripped: bool = False
    not_finite: int = 0
    """Wrenches that were not finite so far."""


class Wanted(NamedTuple):
    """What is asked of one cycle."""

    wrench: Wrench
    """[N, N·m]"""
    age_ns: int
    """Of the render behind it."""
    valid_ns: int
    """It may be used so long."""
    speed: float
    """Of the device, m/s; NaN when it is not known: then the reading is of no use."""
    off: ForcesOff = ForcesOff.NONE
    """A reason of the caller's for no forces."""


class Applied(NamedTuple):
    """What one cycle gives."""

    wrench: Wrench
    off: ForcesOff
    limited: int
    """Bits as above."""


def step(limits: Limits, memory: Memory, t_ns: int, wanted: Wanted) -> tuple[Memory, Applied]:
    """One cycle at time ``t_ns`` (any clock that does not stand still): what to remember, and what to apply."""
    passed = 0.0 if memory.t_ns is None else max((t_ns - memory.t_ns) * 1e-9, 0.0)
    dt = min(passed, LONGEST_CYCLE_S)
    limited = 0
    count = memory.not_finite
    wrench = wanted.wrench
    off = wanted.off
    if not all(math.isfinite(value) for value in wrench):
        wrench = NO_WRENCH
        count += 1
        limited |= NOT_FINITE
        off = off or ForcesOff.NOT_FINITE
    if math.isnan(wanted.speed):
        off = off or ForcesOff.DEVICE
    if wanted.age_ns > wanted.valid_ns or wanted.age_ns < 0:
        off = off or ForcesOff.STALE
    tripped = memory.tripped or wanted.speed > limits.speed_trip
    force_heat = _heated(memory.force_heat, memory.force, passed, limits.thermal_s)
    torque_heat = _heated(memory.torque_heat, memory.torque, passed, limits.thermal_s)
    if tripped:
        after = Memory(t_ns, ZERO, ZERO, 0.0, force_heat, torque_heat, True, count)
        return after, Applied(NO_WRENCH, ForcesOff.VELOCITY, limited)

    force_most = _allowed(limits.force_peak, limits.force_continuous, force_heat)
    torque_most = _allowed(limits.torque_peak, limits.torque_continuous, torque_heat)
    if force_most < limits.force_peak or torque_most < limits.torque_peak:
        limited |= HEATED
    if off != ForcesOff.NONE:
        gain = memory.gain - dt / limits.fade_s
        gain = gain if gain > ROUNDING else 0.0  # the sum of the cycles may miss the fade by a rounding
        share = gain / memory.gain if memory.gain > 0.0 else 0.0
        force, torque = _scaled(memory.force, share), _scaled(memory.torque, share)
    else:
        gain = min(memory.gain + dt / limits.soft_start_s, 1.0)
        force, torque = wrench[:3], wrench[3:]
        if _norm(force) > force_most or _norm(torque) > torque_most:
            limited |= SATURATED
        force, slow = _next(memory.force, force, gain, force_most, limits.force_peak, limits.force_slew * dt)
        torque, turn_slow = _next(memory.torque, torque, gain, torque_most, limits.torque_peak, limits.torque_slew * dt)
        if slow or turn_slow:
            limited |= SLEW_LIMITED
    if gain < 1.0:
        limited |= RAMPED
    after = Memory(t_ns, force, torque, gain, force_heat, torque_heat, False, count)
    return after, Applied((*force, *torque), off, limited)


def reset(memory: Memory) -> Memory:
    """After a velocity trip: forces may come back, by the soft start."""
    return memory._replace(tripped=False, gain=0.0)


def _next(last: Triple, wanted: Triple, gain: float, most: float, peak: float, reach: float) -> tuple[Triple, bool]:
    """The next vector, towards gain * wanted within gain * most; and whether the slew limit `reach` stopped it.

    First the last one is pulled back to the allowed norm, then the rest of the slew limit goes towards the goal. Both
    ways together are within the limit by the triangle inequality, and a ball holds the straight line between two of its
    points. Where the allowed norm falls faster than the slew limit (heat after a long stall), the norm follows it.
    """
    size = _norm(last)
    largest = gain * most
    if size - reach > largest + ROUNDING * peak:
        largest = size - reach
    goal = _shortened((gain * wanted[0], gain * wanted[1], gain * wanted[2]), largest)
    start = _shortened(last, largest)
    left = max(reach - _distance(last, start), 0.0)
    way = _distance(start, goal)
    if way <= left:
        return goal, False
    share = left / way
    moved = (
        start[0] + share * (goal[0] - start[0]),
        start[1] + share * (goal[1] - start[1]),
        start[2] + share * (goal[2] - start[2]),
    )
    return _shortened(moved, largest), True


def _allowed(peak: float, continuous: float, heat: float) -> float:
    """The norm that motors of this heat may be given."""
    if peak == continuous:
        return peak
    room = (continuous * continuous - heat) / (HEAT_MARGIN * continuous * continuous)
    return continuous + (peak - continuous) * min(max(room, 0.0), 1.0)


def _heated(heat: float, applied: Triple, dt: float, tau: float) -> float:
    """Mean square after the applied vector was held for dt (the model's exact solution)."""
    square = applied[0] * applied[0] + applied[1] * applied[1] + applied[2] * applied[2]
    return square + (heat - square) * math.exp(-dt / tau)


def _cools(peak: float, continuous: float, tau: float) -> bool:
    """Whether the allowed norm falls in time in cycles of any length up to the longest."""
    gained = -math.expm1(-LONGEST_CYCLE_S / tau)
    square = continuous * continuous
    return gained * (peak * peak - square) <= (1.0 - gained) * HEAT_MARGIN * square


def _norm(v: Triple) -> float:
    return math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


def _distance(a: Triple, b: Triple) -> float:
    return _norm((a[0] - b[0], a[1] - b[1], a[2] - b[2]))


def _scaled(v: Triple, share: float) -> Triple:
    return (share * v[0], share * v[1], share * v[2])


def _shortened(v: Triple, largest: float) -> Triple:
    size = _norm(v)
    if size <= largest:
        return v
    if math.isinf(size):
        # Huge but finite numbers, whose squares are not: their direction is that of the numbers scaled down.
        big = max(abs(v[0]), abs(v[1]), abs(v[2]))
        v = (v[0] / big, v[1] / big, v[2] / big)
        size = _norm(v)
    return _scaled(v, largest / size)
