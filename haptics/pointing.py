"""Input devices as devices with a pose: what the moves of a mouse or the deflection of a sprung cap add up to.

A device without motors still sends poses, like any other, and lease, deadman, watchdog and jump check judge them like
any other's; only that what comes back is no force. Two metaphors make the pose, both in the device's frame and without
a clock:

    Increments   each move of the device is a move of the goal (the incremental metaphor, Redon 2002, 6.3): mouse
    Rate         the deflection of a device that springs back is the goal's velocity: SpaceMouse

While a surface holds the tool, moves go on adding up where no hand is pushed back, and all of the offset would have to
be undone before the tool comes along again. ``hold_near`` bounds it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from haptics.hands import IDENTITY, HandPose
from rtcore.spatial import conjugate, from_rotation_vector, multiply, normalise, quaternion, rotation_vector, vector

SPEED = 0.5
"""m/s: as fast as a hand in contact, far below what counts as a jump."""
TURN_SPEED = 2.0
"""rad/s, in the same sense."""


class _Steered:
    """A pose that moves by bounded steps."""

    def __init__(
        self,
        position: Sequence[float] | np.ndarray,
        orientation: Sequence[float] | np.ndarray = IDENTITY,
        *,
        speed: float = SPEED,
        turn_speed: float = TURN_SPEED,
    ) -> None:
        """Start at a pose (device frame, m, xyzw), never faster than ``speed`` (m/s) and ``turn_speed`` (rad/s)."""
        for name, value in (("speed", speed), ("turn_speed", turn_speed)):
            if not (math.isfinite(value) and value > 0.0):
                raise ValueError(f"{name} = {value!r} must be a finite number above 0")
        self.position = np.array(position, dtype=np.float64)
        """(3,) m, device frame."""
        self.orientation = np.array(orientation, dtype=np.float64)
        """(4,) xyzw."""
        self._speed, self._turn_speed = speed, turn_speed

    @property
    def pose(self) -> HandPose:
        """What a sample says."""
        return HandPose(self.position.copy(), self.orientation.copy())

    def hold_near(
        self,
        position: Sequence[float] | np.ndarray,
        orientation: Sequence[float] | np.ndarray,
        farthest: float,
        farthest_turn: float = math.inf,
    ) -> None:
        """Come back to within ``farthest`` (m) and ``farthest_turn`` (rad) of a pose: that of the tool in a render."""
        near = np.asarray(position, dtype=np.float64)
        self.position = near + bounded(self.position - near, farthest)
        base = quaternion(np.asarray(orientation, dtype=np.float64))
        away = np.array(rotation_vector(multiply(quaternion(self.orientation), conjugate(base))))
        if float(np.linalg.norm(away)) > farthest_turn:
            self.orientation = _turned(np.array(base), bounded(away, farthest_turn))


class Increments(_Steered):
    """The incremental metaphor."""

    def __init__(
        self,
        position: Sequence[float] | np.ndarray,
        orientation: Sequence[float] | np.ndarray = IDENTITY,
        *,
        gain: float = 1.0,
        speed: float = SPEED,
        turn_speed: float = TURN_SPEED,
    ) -> None:
        """``gain``: metres of the goal per metre (or count) of the device. A faster move is made up for later."""
        super().__init__(position, orientation, speed=speed, turn_speed=turn_speed)
        self._gain = gain
        self._left, self._left_turn = np.zeros(3), np.zeros(3)

    def step(self, dt: float, moved: Sequence[float], turned: Sequence[float] = (0.0, 0.0, 0.0)) -> HandPose:
        """Go on by ``dt`` seconds in which the device moved by (3,) and turned by a rotation vector (3,) rad."""
        self._left += self._gain * np.asarray(moved, dtype=np.float64)
        self._left_turn += np.asarray(turned, dtype=np.float64)
        step, turn = bounded(self._left, self._speed * dt), bounded(self._left_turn, self._turn_speed * dt)
        self._left -= step
        self._left_turn -= turn
        self.position = self.position + step
        self.orientation = _turned(self.orientation, turn)
        return self.pose


class Rate(_Steered):
    """Steering by speed: nothing while the device is at rest, up to ``speed`` and ``turn_speed`` at full deflection."""

    def __init__(
        self,
        position: Sequence[float] | np.ndarray,
        orientation: Sequence[float] | np.ndarray = IDENTITY,
        *,
        speed: float = 0.1,
        turn_speed: float = 1.0,
        dead_zone: float = 0.05,
    ) -> None:
        """``dead_zone``: share of full deflection that counts as rest; beyond it the speed rises from zero."""
        super().__init__(position, orientation, speed=speed, turn_speed=turn_speed)
        if not 0.0 <= dead_zone < 1.0:
            raise ValueError(f"dead_zone = {dead_zone!r} must be from 0 to below 1")
        self._dead_zone = dead_zone

    def step(self, dt: float, deflection: Sequence[float] | np.ndarray) -> HandPose:
        """Go on by ``dt`` seconds at a deflection (6,), [along x y z, about x y z], 1 at the stop (device frame)."""
        given = np.asarray(deflection, dtype=np.float64)
        self.position = self.position + dt * self._speed * self._share(given[:3])
        self.orientation = _turned(self.orientation, dt * self._turn_speed * self._share(given[3:]))
        return self.pose

    def _share(self, deflection: np.ndarray) -> np.ndarray:
        size = float(np.linalg.norm(deflection))
        if size <= self._dead_zone:
            return np.zeros(3)
        return deflection / size * (min(size, 1.0) - self._dead_zone) / (1.0 - self._dead_zone)


def bounded(v: np.ndarray, longest: float) -> np.ndarray:
    """The vector v, or the one along it of length ``longest`` if that is shorter."""
    size = float(np.linalg.norm(v))
    return v.copy() if size <= longest else v * (longest / size)


def _turned(orientation: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """An orientation after a further turn about the device's axes."""
    if not np.any(turn):
        return orientation
    return np.array(normalise(multiply(from_rotation_vector(vector(turn)), quaternion(orientation))))
