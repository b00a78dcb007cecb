"""What a hand intends that is guided by what it feels: steps that end at a touch, or when something gives way.

A person at a task does not know places to a hundredth of a millimetre. They move until something is felt, go on from
there, and feel about for a hole. Here such a plan is a list of steps, followed by a hand that misjudges where things
are and how they are turned, and wavers. Everything is in scene coordinates of the tip centre; no clock is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from haptics.hands import PathPoint, RandomMotion, minimum_jerk

SPIRAL_PERIOD = 0.8
"""s per turn of a hand that feels about for a hole."""

SWAY_BANDWIDTH = 2.0
"""Hz, of a hand that wavers."""


@dataclass(frozen=True)
class Step:
    """One reach, rest to rest."""

    seconds: float
    """How long it takes, when nothing ends it earlier."""
    to: np.ndarray | None = None
    """(3,) m: where the tip centre is to go; absent: stay."""
    by: np.ndarray | None = None
    """(3,) m: how far to go from where the tool is when the step begins, in place of ``to``."""
    orientation: np.ndarray | None = None
    """(4,) xyzw, tool to scene, the shorter way; absent: as before."""
    turn: np.ndarray | None = None
    """(3,) rad, rotation vector in scene axes, from how the hand is turned then; may be several turns."""
    until_force: float | None = None
    """N at the device: the step ends when the force against its direction is larger."""
    until_moved: float | None = None
    """m: the step ends when the tool has gone so far in its direction (something gave way)."""
    search: float = 0.0
    """m: meanwhile the hand spirals, across its direction, out to this radius and back."""


@dataclass(frozen=True)
class Misjudgement:
    """How wrong a hand is, in directions that follow from the seed."""

    shift: float = 0.0
    """m, of all places"""
    turn: float = 0.0
    """rad, of all orientations"""
    sway: float = 0.0
    """m: a slow wavering within this radius"""
    seed: int = 0


class GuidedPath:
    """What a hand intends at a time (:class:`haptics.hands.Path`), while it is told what it feels."""

    def __init__(
        self,
        steps: Sequence[Step],
        position: Sequence[float] | np.ndarray,
        orientation: Sequence[float] | np.ndarray,
        misjudgement: Misjudgement | None = None,
    ) -> None:
        """Begin with the tip centre at ``position`` (3,) m, the tool turned by ``orientation`` (4,) xyzw."""
        wrong = Misjudgement() if misjudgement is None else misjudgement
        random = np.random.default_rng(wrong.seed)
        away, axis = (v / np.linalg.norm(v) for v in random.standard_normal((2, 3)))
        self._error = wrong.shift * away
        self._turn_error = Rotation.from_rotvec(wrong.turn * axis)
        self._sway = RandomMotion(wrong.seed, radius=wrong.sway, bandwidth=SWAY_BANDWIDTH) if wrong.sway > 0.0 else None
        self._steps = list(steps)
        self._time = 0.0
        # What follows is in the hand's belief: its true place is the believed one plus the error. It begins where the
        # tool is, as it can see that the two are one.
        self._believed = np.array(position, dtype=float) - self._error
        self._turned = self._turn_error.inv() * Rotation.from_quat(np.array(orientation, dtype=float))
        self._began = -1.0
        self._number = -1
        self._next(self._believed)

    @property
    def step_number(self) -> int:
        """Which step is being made, from 0 on; the number of steps after the last one."""
        return self._number

    @property
    def longest_s(self) -> float:
        """When the last step ends if no other one ends early, s."""
        rest = sum(step.seconds for step in self._steps[self._number + 1 :])
        return (
            self._began + self._steps[self._number].seconds if self._number < len(self._steps) else self._began
        ) + rest

    def feel(self, time: float, tool: np.ndarray, force: np.ndarray) -> None:
        """Told before the time goes on: where the tool is (3,) m, and the force on the hand (3,) N at the device, scene
        axes."""
        self._time = time
        while self._number < len(self._steps):
            step = self._steps[self._number]
            over = time - self._began >= step.seconds
            if step.until_force is not None:
                over = over or float(-self._direction @ force) > step.until_force
            if step.until_moved is not None:
                over = over or float(self._direction @ (tool - self._error - self._seen)) > step.until_moved
            if not over:
                return
            self._believed, self._turned = self._belief(time)
            self._next(tool - self._error)

    def at(self, time: float) -> PathPoint:
        """Return the intended position, velocity and orientation at a time (s) from the one of the last ``feel`` on."""
        believed, turned = self._belief(time)
        position = believed + self._error
        if self._sway is not None:
            position = position + minimum_jerk(time)[0] * self._sway.at(time).position
        return PathPoint(position, np.zeros(3), (self._turn_error * turned).as_quat())

    def _next(self, seen: np.ndarray) -> None:
        """Begin the next step; ``seen`` (3,): where the hand believes the tool to be."""
        self._number += 1
        self._began = self._time
        self._seen = seen
        self._goal, self._rotation = self._believed, np.zeros(3)
        if self._number >= len(self._steps):
            return
        step = self._steps[self._number]
        if step.to is not None:
            self._goal = np.asarray(step.to, dtype=float)
        elif step.by is not None:
            self._goal = seen + np.asarray(step.by, dtype=float)
        if step.turn is not None:
            self._rotation = np.asarray(step.turn, dtype=float)
        elif step.orientation is not None:
            self._rotation = (Rotation.from_quat(step.orientation) * self._turned.inv()).as_rotvec()
        way = self._goal - (seen if step.by is not None else self._believed)
        length = float(np.linalg.norm(way))
        self._direction = way / length if length > 0.0 else np.array([0.0, 0.0, -1.0])
        least = np.eye(3)[int(np.argmin(np.abs(self._direction)))]
        side = np.cross(least, self._direction)
        self._side = side / np.linalg.norm(side)
        self._other = np.cross(self._direction, self._side)

    def _belief(self, time: float) -> tuple[np.ndarray, Rotation]:
        if self._number >= len(self._steps):
            return self._believed, self._turned
        step = self._steps[self._number]
        phase = min(max((time - self._began) / step.seconds, 0.0), 1.0)
        progress, _ = minimum_jerk(phase)
        position = self._believed + progress * (self._goal - self._believed)
        if step.search > 0.0:
            angle = 2.0 * np.pi * (time - self._began) / SPIRAL_PERIOD
            radius = step.search * (1.0 - abs(2.0 * phase - 1.0))
            position = position + radius * (np.cos(angle) * self._side + np.sin(angle) * self._other)
        return position, Rotation.from_rotvec(progress * self._rotation) * self._turned
