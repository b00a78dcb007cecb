"""A handle in a hand, in real time: what stands in for a device that is not there.

It has the mass, friction and encoder of a device card, and feels the wrench that was applied last, a step late.
"""

import time

import numpy as np

from bridge.adapters.journal import READ, WRITTEN, Journal
from haptics.cards import DeviceCard
from haptics.hands import HELD, IDENTITY, DeviceDynamics, Grip, HandPose, Path, PathPoint, SimulatedHand
from haptics.last_line import NO_WRENCH, Wrench
from rtcore.spatial import conjugate, from_rotation_vector, multiply, rotation_vector, vector

STEP_NS = 1_000_000
LONGEST_STEPS = 50
"""A process that was held up goes on from where its hand was."""


class _Lifted:
    """The hand wants the handle where and how the journal says, and goes there as fast as the journal says."""

    def __init__(self, start: np.ndarray, journal: Journal | None) -> None:
        self._start, self._journal = start, journal
        self._at, self._when = start.copy(), 0.0
        self._velocity = np.zeros(3)
        self._turned = np.zeros(3)
        self._orientation = IDENTITY
        self.spin = np.zeros(3)
        """(3,) rad/s: as fast as the hand turns the handle now."""

    def at(self, time: float) -> PathPoint:
        """Go on to a time (s) that is not before the last one."""
        if self._journal is not None and time > self._when:
            words, dt = self._journal.words, time - self._when
            step = _step(self._start + words["lift"] - self._at, float(words["speed"]) * dt)
            self._velocity = step / dt
            self._at = self._at + step
            turn = _step(words["turn"] - self._turned, float(words["turn_speed"]) * dt)
            self.spin = np.zeros(3)
            if turn.any():
                before, self._turned = self._orientation, self._turned + turn
                self._orientation = from_rotation_vector(vector(self._turned))
                self.spin = np.array(rotation_vector(multiply(self._orientation, conjugate(before)))) / dt
        self._when = max(time, self._when)
        return PathPoint(self._at, self._velocity, np.array(self._orientation))


def _step(way: np.ndarray, longest: float) -> np.ndarray:
    """Of a way, as much as may be gone at once."""
    length = float(np.linalg.norm(way))
    return way * min(1.0, longest / length) if length > 0.0 else np.zeros(3)


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
        self._lifted = _Lifted(np.array(start), journal)
        way = path if path is not None else self._lifted
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

    @property
    def turning(self) -> np.ndarray:
        """(3,) rad/s, of the handle itself, device frame."""
        if not self._hand.device.measures_orientation:
            return np.zeros(3)
        return self._lifted.spin + self._hand.turning

    def read(self) -> tuple[HandPose, int]:
        """What the encoders read now, and when that is (monotonic, ns)."""
        now = time.monotonic_ns()
        steps = (now - self._moved_at) // STEP_NS
        for _ in range(min(steps, LONGEST_STEPS)):
            self._pose = self._hand.step(1e-9 * STEP_NS, self.applied)
        self._moved_at += steps * STEP_NS
        if self.journal is not None:
            twist = np.concatenate((self.velocity, self.turning))
            self.journal.note(READ, now, self._pose.position, self.applied, self._pose.orientation, twist)
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
