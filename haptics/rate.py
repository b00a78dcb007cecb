"""Stiffness that falls with the rate of the samples: a spring that is read half as often bears half of the stiffness.

Holding the force produces 1/2 K (v tau)^2 in an interval tau between two samples, friction takes b v^2 tau in it. Over
a window the two balance at K = 2 b / T with

    T = sum tau^2 / sum tau

the period that counts: that of even samples, and more where they come unevenly. So the bounds of
:mod:`haptics.stability` go as 1 / T, those with a delay of a sample as well, and K is multiplied by T_nominal / T where
T is longer than the tick. The single longest interval of the window does not count: one late sample is no rate. Up to a
tenth above nominal is jitter, and from there to half as much again the factor goes over into the ratio, without a jump.

The intervals are those of the good samples that were used, by the client's time stamps, and the one that is not over
yet, by the age of the newest, where it is longer than they. The factor falls by at most one in FALL seconds and rises
by one in RISE: never a step of the force, and little work on a spring that is held stretched while it stiffens. What
the hand feels becomes softer, force and torque alike; the spring by which the scene feels the hand stays, since the
mechanics do not see the samples' rate.
"""

import math

from haptics.tables import VELOCITY_SAMPLES, Record
from rtcore.kernels import kernel

INTERVALS = 32
"""Most that are looked at."""
FEWEST = 8
"""Fewer tell nothing."""
JITTER = 1.1
"""Of the nominal period: not a lower rate yet."""
SLOW = 1.5
"""Of the nominal period: from here on K goes as 1 / T."""
FALL = 0.1
"""s"""
RISE = 1.0
"""s"""


@kernel
def wanted_share(period: float, nominal: float) -> float:
    """Factor of the stiffness at a period (s)."""
    ratio = period / nominal
    if ratio <= JITTER:
        return 1.0
    if ratio >= SLOW:
        return 1.0 / ratio
    return 1.0 - (1.0 - 1.0 / SLOW) * (ratio - JITTER) / (SLOW - JITTER)


@kernel
def sample_period(settings: Record, touch: Record) -> float:
    """Period (s) of the newest samples, by the intervals between them; 0 when there are too few."""
    count = touch.velocity_count
    if count == 0:
        return 0.0
    head = touch.velocity_head
    used = 0
    longest = total = square = 0.0
    for k in range(min(count - 1, INTERVALS)):
        newer = touch.velocity_times[(head - k) % VELOCITY_SAMPLES]
        tau = 1e-9 * (newer - touch.velocity_times[(head - k - 1) % VELOCITY_SAMPLES])
        used += 1
        longest = max(longest, tau)
        total += tau
        square += tau * tau
    if touch.age_ns <= settings.stale_after_ns and 1e-9 * touch.age_ns > longest:
        # The one under way is the longest: all others count.
        longest = 0.0
    if used <= FEWEST or not total - longest > 0.0:
        return 0.0
    return (square - longest * longest) / (total - longest)


@kernel
def observe(settings: Record, touch: Record, output: Record) -> None:
    """The stage: period of the samples, and the share of the stiffness that is in force (``touch.rate_share``)."""
    period = sample_period(settings, touch)
    output.sample_period_s = period
    if settings.rate_adaptation != 0 and period > 0.0 and math.isfinite(period):
        wanted = wanted_share(period, settings.dt)
        share = touch.rate_share
        touch.rate_share = max(min(wanted, share + settings.dt / RISE), share - settings.dt / FALL)
    output.rate_share = touch.rate_share
