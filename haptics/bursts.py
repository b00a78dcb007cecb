"""Bursts: short vibrations that a command or a touch-down sets off, A exp(-t / tau) sin(2 pi f t) along a direction.

A stylus that hits something hard vibrates above what a spring can show at the rate of a tick; a burst in the direction
of the normal, as strong as the hit was fast, brings that back (Okamura, Dennerlein and Howe 1998; Kuchenbecker, Fiene
and Niemeyer 2006). One sounds at a time, a stronger one in place of a weaker one. Being a force like others it is
ramped, slew-limited and saturated with them, and at most SHARE of the device's force. It ends where their ramp does:
what comes after that, another owner or forces that come back, does not feel it.
"""

import math

from haptics.tables import Record
from rtcore.kernels import inner, kernel
from rtcore.spatial import Vector, length, put_vector, scaled, vector

SHARE = 0.3
"""Of the largest force of a device, that a burst may have."""

HIGHEST = 0.25
"""Highest frequency, in units of the tick rate."""

LONGEST_S = 5.0

ENDS_AT = 0.01
"""Share of its amplitude at which a burst that decays ends."""


@inner
def begin(settings: Record, touch: Record, amplitude: Vector, frequency: float, decay_s: float, lasts_s: float) -> None:
    """Set off a burst: amplitude (device frame, N), frequency (Hz), decay (s; inf: none), duration (s).

    Amplitude and frequency are capped; a burst weaker than what is left of the one that sounds is not begun.
    """
    size = length(amplitude)
    if size <= 0.0:
        return
    largest = SHARE * settings.force_max
    if size > largest:
        amplitude = scaled(amplitude, largest / size)
        size = largest
    if touch.burst_ticks > 0 and size < touch.burst_size * length(vector(touch.burst)):
        return
    put_vector(touch.burst, amplitude)
    touch.burst_turn = 2.0 * math.pi * min(frequency * settings.dt, HIGHEST)
    touch.burst_decay = math.exp(-settings.dt / decay_s)
    touch.burst_size = 1.0
    touch.burst_tick = 0
    touch.burst_ticks = max(1, int(min(lasts_s, LONGEST_S) / settings.dt))


@inner
def end(touch: Record) -> None:
    """No burst sounds any more."""
    touch.burst_ticks = 0


@kernel
def burst_force(touch: Record) -> Vector:
    """Force (device frame, N) of the burst that sounds, one tick further."""
    if touch.burst_ticks == 0:
        return 0.0, 0.0, 0.0
    touch.burst_tick += 1
    touch.burst_size *= touch.burst_decay
    force = scaled(vector(touch.burst), touch.burst_size * math.sin(touch.burst_turn * touch.burst_tick))
    if touch.burst_tick >= touch.burst_ticks or touch.burst_size < ENDS_AT:
        touch.burst_ticks = 0
    return force
