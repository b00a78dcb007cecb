"""A handle in a hand, in real time: what stands in for a device that is not there.

It has the mass, friction and encoder of a device card, and feels the wrench that was applied last, a step late.
"""

import time

import numpy as np

from bridge.adapters.journal import READ, WRITTEN, Journal
from haptics.cards import DeviceCard
from haptics.hands import HELD, DeviceDynamics, Grip, HandPose, Path, PathPoint, SimulatedHand
from haptics.last_line import NO_WRENCH, Wrench

STEP_NS = 1_000_000
LONGEST_STEPS = 50
"""A process that was held up goes on from where its hand was."""
IDENTITY = np.array((0.0, 0.0, 0.0, 1.0))


class _Lifted:
    """The hand wants the handle where the journal says, and goes there at the journal's speed."""

    def __init__(self, start: np.ndarray, journal: Journal | None) -> None:
        self._start, self._journal = start, journal
        self._at, self._when = start.copy(), 0.0
        self._velocity = np.zeros(3)

    def at(self, time: float) -> PathPoint:
        """Go on to a time (s) that is not before the last one."""
        if self._journal is not None and time > self._when:
            words = self._journal.words
            way = self._start + words["lift"] - self._at
            length, dt = float(np.linalg.norm(way)), time - self._when
            share = min(1.0, float(words["speed"]) * dt / length) if length > 0.0 else 0.0
            self._velocity = share * way / dt
            self._at = self._at + share * way
        self._when = max(time, self._when)
        return PathPoint(self._at, self._velocity, IDENTITY)


class Plant:
    """The handle of one device, which moves as real time goes by."""

    def __init__(
        self,
        card: DeviceCard,
        journal: Journal | None = None,
        *,
        path: Path | None = None,
        grip: Grip = HELD,
        start: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        """Without a ``path`` the hand rests at ``start`` (device frame, m), or goes where the journal says."""
        self.journal = journal
        self.applied: Wrench = NO_WRENCH
        way = path if path is not None else _Lifted(np.array(start), journal)
        self._hand = SimulatedHand(way, grip, DeviceDynamics.from_card(card), delay_ticks=1)
        self._pose = self._hand.step(1e-9 * STEP_NS, NO_WRENCH)  # the first step compiles or loads what moves it
        self._moved_at = time.monotonic_ns()

    @property
    def unplugged(self) -> bool:
        """Whether somebody has pulled the plug."""
        return self.journal is not None and bool(self.journal.words["unplugged"])

    @property
    def velocity(self) -> np.ndarray:
        """(3,) m/s, of the handle itself."""
        return self._hand.velocity

    def read(self) -> tuple[HandPose, int]:
        """What the encoders read now, and when that is (monotonic, ns)."""
        now = time.monotonic_ns()
        steps = (now - self._moved_at) // STEP_NS
        for _ in range(min(steps, LONGEST_STEPS)):
            self._pose = self._hand.step(1e-9 * STEP_NS, self.applied)
        self._moved_at += steps * STEP_NS
        if self.journal is not None:
            self.journal.note(READ, now, self._pose.position, self.applied)
        return self._pose, now

    def write(self, wrench: Wrench) -> None:
        """What the motors do from now on."""
        self.applied = wrench
        if self.journal is not None:
            self.journal.note(WRITTEN, time.monotonic_ns(), self._pose.position, wrench)

    def device_time(self, now: int) -> int:
        """The device's own clock: another zero, 50 ppm fast, and whatever the journal adds."""
        step = 0 if self.journal is None else int(self.journal.words["clock_step"])
        return now // 1_000_000 * 50 + now - 1_000_000_000_000 + step
