"""Raising the stiffness of a running device step by step, until it begins to oscillate. No clock, no socket.

Somebody presses the device against a wall and keeps pressing. Each stage asks for some more stiffness; it has passed
when the device was pressed and quiet for long enough. At the first sign of the contrary the stiffness goes back to that
of the beginning at once, and the sweep is over:

* the device went to and fro along the force, each time by more than `SWING`, `REVERSALS` times within `WINDOW_S`, and
  the last time not less far than `DYING` of the first: no hand shakes so fast and so far, and a wall that buzzes does.
  It bounces when it first meets the wall; that counts once it has been pressed for `SEAT_S` without a break, which must
  be within `SEAT_WITHIN_S`;
* or the port has given more energy than it got, beyond the floor of :func:`haptics.stability.energy_floor` and what a
  stretched spring gets by being made stiffer, 1/2 dK d^2.

Where samples come slowly the daemon softens the spring that is felt (:mod:`haptics.rate`), and moves the device by
that: a stage begins anew after it, and whatever is found in its shadow says nothing about the stiffness asked for.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from haptics.stability import energy_floor

SWING = 1e-4
"""m. Trembling hands move less when they press."""
SWING_STEPS = 4
"""... but more than so many steps of the encoder."""
REVERSALS = 5
WINDOW_S = 0.25
"""Five reversals within it are 10 Hz and more; what a hand does on purpose is slower."""
DYING = 0.9

SEAT_S = 0.2
SEAT_WITHIN_S = 3.0

SLOW_SHADOW_S = 0.5
"""Before a finding: samples that came slowly within it may have made what was found."""
SLOW_WITHIN_S = 10.0
"""Samples that still come slowly after so long will go on to."""


@dataclass(frozen=True)
class SweepPlan:
    """From where to where, and how fast."""

    first: float
    """N/m, where it begins and goes back to."""
    last: float
    """N/m"""
    ratio: float = 1.12
    """From stage to stage."""
    stage_s: float = 0.5
    """For which a stage has to be pressed and quiet."""

    def __post_init__(self) -> None:
        if not 0.0 < self.first <= self.last < math.inf:
            raise ValueError(f"a sweep goes up from above 0, not from {self.first:g} to {self.last:g} N/m")
        if not 1.0 < self.ratio <= 1.5 or not 0.1 <= self.stage_s <= 60.0:
            raise ValueError(
                f"stages of {self.stage_s:g} s, each {self.ratio:g} times as stiff, will not do; "
                "from 0.1 to 60 s and above 1 to 1.5 are possible"
            )


class StiffnessSweep:
    """What to ask for next, from what the device did."""

    def __init__(self, plan: SweepPlan, period: float, resolution: float = 0.0) -> None:
        """Begin at the plan's first stiffness; ``period`` of the tick (s), ``resolution`` of the encoder (m)."""
        self._plan = plan
        self._period = period
        self._resolution = resolution
        self._swing = max(SWING, SWING_STEPS * resolution)
        self.stiffness = plan.first
        """N/m, to be in force."""
        self.quiet = 0.0
        """N/m, the highest at which a stage has passed; 0 before the first has."""
        self.ended = ""
        """Why it is over: ``reached`` the last stiffness, ``oscillation``, ``energy``, or ``slow samples``, which is no
        finding; empty until then."""
        self.energy = 0.0
        """J that the port has given, as this side counts it."""
        self._given = 0.0
        self._pressed_s = 0.0
        self._position: np.ndarray | None = None
        self._wrench = np.zeros(3)
        self._normal: np.ndarray | None = None
        self._met: float | None = None
        self._unbroken_s = 0.0
        self._seated = False
        self._heading = 0
        self._extreme = 0.0
        self._before = 0.0
        self._turns: deque[tuple[float, float]] = deque(maxlen=REVERSALS)
        self._slow_s = 0.0
        self._slowed_at = -math.inf

    def watch(
        self,
        time: float,
        position: Sequence[float] | np.ndarray,
        force: Sequence[float] | np.ndarray,
        slowed: bool = False,
    ) -> bool:
        """Take note of the device's position (3,) m at a time (s) and of the force (3,) N that answers it.

        ``slowed``: whether the force is that of a spring softened for slow samples. Returns whether the stiffness has
        changed.
        """
        if self.ended:
            return False
        here, pushed = np.array(position, dtype=float), np.array(force, dtype=float)
        if self._position is not None:
            self.energy += float(self._wrench @ (here - self._position))
        self._position, self._wrench = here, pushed
        size = float(np.linalg.norm(pushed))
        if not self._seated:
            self._sit_down(time, size)
            if self._seated:
                self._normal = pushed / size
                self._extreme = float(here @ self._normal)
        if self._normal is not None:
            self._follow(time, float(here @ self._normal))
        if slowed:
            self._slowed(time)
            if self._slow_s > SLOW_WITHIN_S:
                return self._back_off("slow samples")
        floor = energy_floor(self.stiffness, self._period, resolution=self._resolution)
        if self._shakes(time):
            return self._back_off(self._found(time, "oscillation"))
        if not self._seated and self._met is not None and time - self._met > SEAT_WITHIN_S:
            return self._back_off(self._found(time, "oscillation"))
        if self.energy > floor + self._given:
            return self._back_off(self._found(time, "energy"))
        self._pressed_s += self._period if size > 0.0 and self._seated else 0.0
        if self._pressed_s < self._plan.stage_s:
            return False
        self.quiet = self.stiffness
        self._pressed_s = self._slow_s = 0.0
        if self.stiffness >= self._plan.last:
            self.ended = "reached"
            return False
        higher = min(self.stiffness * self._plan.ratio, self._plan.last)
        self._given += 0.5 * (higher - self.stiffness) * (size / self.stiffness) ** 2
        self.stiffness = higher
        return True

    def _slowed(self, time: float) -> None:
        """The stage begins anew, and so do the books of what has been given beyond the floor."""
        self._slow_s += self._period
        self._slowed_at = time
        self._pressed_s = 0.0
        self._given = max(self._given, self.energy)

    def _found(self, time: float, what: str) -> str:
        """What a finding is worth: nothing in the shadow of slow samples."""
        return "slow samples" if time - self._slowed_at < SLOW_SHADOW_S else what

    def _sit_down(self, time: float, force: float) -> None:
        """Note for how long the device has been pressed without a break."""
        if force > 0.0 and self._met is None:
            self._met = time
        self._unbroken_s = self._unbroken_s + self._period if force > 0.0 else 0.0
        self._seated = self._unbroken_s >= SEAT_S

    def _follow(self, time: float, along: float) -> None:
        """Note where the way along the force turns, by more than the swing that counts."""
        if self._heading == 0:
            if abs(along - self._extreme) > self._swing:
                self._heading = 1 if along > self._extreme else -1
                self._before, self._extreme = self._extreme, along
            return
        if (along - self._extreme) * self._heading > 0.0:
            self._extreme = along
        elif abs(along - self._extreme) > self._swing:
            self._heading = -self._heading
            self._turns.append((time, abs(self._extreme - self._before)))
            self._before, self._extreme = self._extreme, along

    def _shakes(self, time: float) -> bool:
        """Whether the last swings were quick ones, and not dying out."""
        if len(self._turns) < REVERSALS:
            return False
        (since, swing), (_, newest) = self._turns[0], self._turns[-1]
        return time - since <= WINDOW_S and newest >= DYING * swing

    def _back_off(self, why: str) -> bool:
        self.ended = why
        self.stiffness = self._plan.first
        return True
