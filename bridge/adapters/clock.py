"""Times of another clock on this machine's: judged, because a stamp that lies makes an old pose look fresh.

The difference `here - there` of a message is the clocks' offset and the time it took to come. Its smallest value is the
offset and the shortest way; what is more is age. Clocks drift, so the smallest value is forgotten at `DRIFT`: five
times the 100 ppm by which a bad quartz is off.

A clock lies when it runs backwards, when it stands still for `FROZEN_NS` while the device moves, when a stamp is ahead
of the shortest way by `JUMP_NS`, or when for `LAG_NS` all stamps are behind it by half of what makes a sample too old
for the daemon: a clock slower than the drift allows falls behind until nothing is fresh. From then on its stamps are
not used: the time of reading takes their place for good.
"""

from collections.abc import Sequence

DRIFT = 500e-6
"""s/s"""
JUMP_NS = 100_000_000
BEHIND_NS = 10_000_000
"""Half of a daemon's usual stale horizon."""
LAG_NS = 1_000_000_000
"""Readings that are late for longer are not held up: their clock is behind. Until then they are old, as they say."""
FROZEN_NS = 20_000_000


class ForeignClock:
    """Maps stamps of a clock elsewhere to this machine's monotonic clock, never into the future."""

    def __init__(self) -> None:
        self._offset: int | None = None
        self._here = 0

    def offset(self, there: int, here: int) -> int:
        """The offset (ns) after a message of `there` that came `here`: its own, or the smallest before it."""
        new = here - there
        if self._offset is not None:
            new = min(new, self.shortest(here))
        self._offset, self._here = new, here
        return new

    def shortest(self, here: int) -> int:
        """The smallest offset so far (ns), grown by the drift until `here`. Needs a message before."""
        assert self._offset is not None
        return self._offset + int(DRIFT * max(here - self._here, 0))

    def local(self, there: int, here: int) -> int:
        """When that was here, ns: `here` for the message that took the shortest way, earlier for others."""
        return there + self.offset(there, here)


class RenderClock:
    """Tells when a render left the daemon, by this machine's clock.

    On one machine that is what it says (``same``). Elsewhere the smallest `here - there` of renders and that of samples
    are the offset and the shortest way there, and the shortest way less the offset; half of their sum is the shortest
    way if both are alike, and counts as age. Who forgot it would take every render of a slow link for fresh. Ways that
    differ are missed, or counted too much, by half of the difference.
    """

    def __init__(self, *, same: bool) -> None:
        self._same = same
        self._renders, self._samples = ForeignClock(), ForeignClock()
        self._to_daemon: int | None = None

    def left(self, t_sent: int, here: int, t_received: int, sample_sent: int | None) -> int:
        """When a render that came ``here`` left (ns, never in the future); its sample was ``sample_sent`` here.

        ``t_sent``, ``t_received``: of the render and its sample, by the daemon's clock. A sample that nobody remembers
        is None.
        """
        if self._same:
            return min(t_sent, here)
        left = self._renders.local(t_sent, here)
        if sample_sent is not None:
            self._to_daemon = self._samples.offset(sample_sent, t_received)
        if self._to_daemon is None:
            return left
        both_ways = self._renders.shortest(here) + self._to_daemon
        return left - max(both_ways, 0) // 2


class DeviceClock:
    """Judges the stamps of a device that has a clock of its own."""

    def __init__(self) -> None:
        self.behind_ns = BEHIND_NS
        """By so much stamps may be behind for longer than `LAG_NS`."""
        self.lie: str | None = None
        """One sentence on what was wrong; from then on stamps are replaced."""
        self._clock = ForeignClock()
        self._last: int | None = None
        self._position: Sequence[float] | None = None
        self._fresh_at = 0
        """When the stamp last changed, here."""
        self._moved_since = False
        self._lags_since = 0

    def t_sample(self, stamp: int, here: int, position: Sequence[float]) -> int:
        """When a reading that came `here` was measured, on this machine's clock, ns."""
        if self.lie is None:
            self.lie = self._judge(stamp, here, tuple(position))
        if self.lie is not None:
            return here
        return self._clock.local(stamp, here)

    def _judge(self, stamp: int, here: int, position: Sequence[float]) -> str | None:
        last, self._last = self._last, stamp
        moved = self._position is not None and position != self._position
        self._position = position
        if last is None:
            self._fresh_at = self._lags_since = here
            return None
        if stamp < last:
            return f"the device's clock ran backwards by {(last - stamp) * 1e-6:.3f} ms"
        if stamp == last:
            self._moved_since |= moved
            if self._moved_since and here - self._fresh_at > FROZEN_NS:
                return f"the device's clock stood still for {(here - self._fresh_at) * 1e-6:.0f} ms while it moved"
            return None
        self._fresh_at, self._moved_since = here, False
        late = here - stamp - self._clock.shortest(here)
        if late < -JUMP_NS:
            return f"the device's clock went ahead of this machine's by {-late * 1e-6:.0f} ms"
        if late <= self.behind_ns:
            self._lags_since = here
        elif here - self._lags_since > LAG_NS:
            return f"the device's clock lags {late * 1e-6:.0f} ms behind this machine's"
        return None
