"""Hands without a person: models that move a device as a function of time and of the force they feel. No clock.

All hands do the same thing: ``step(dt, wrench) -> HandPose``. The wrench is what the daemon rendered last (device
frame, [N, N·m]), the pose is what the device's encoders would read ``dt`` later (device frame).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from haptics.cards import DEFAULT_AXIS, DeviceCard
from haptics.degrees import without_roll
from rtcore.kernels import kernel
from rtcore.spatial import from_rotation_vector, multiply, normalise, rotation_vector, vector

IDENTITY = (0.0, 0.0, 0.0, 1.0)


class HandPose(NamedTuple):
    """What a device reports."""

    position: np.ndarray
    """(3,) m."""
    orientation: np.ndarray
    """(4,) xyzw, unit."""


class Hand(Protocol):
    """Anything that can stand in for a person at a device."""

    def step(self, dt: float, wrench: Sequence[float] | np.ndarray) -> HandPose:
        """Go on by ``dt`` seconds while feeling ``wrench`` (6,); return the pose read at the end."""
        ...


# ------------------------------------------------------------------------------------------------------ paths


class PathPoint(NamedTuple):
    """Where a hand wants to be."""

    position: np.ndarray
    """(3,) m."""
    velocity: np.ndarray
    """(3,) m/s."""
    orientation: np.ndarray
    """(4,) xyzw."""


class Path(Protocol):
    """A motion that somebody intends, as a function of time (s)."""

    def at(self, time: float) -> PathPoint:
        """Return the intended position, velocity and orientation."""
        ...


def minimum_jerk(phase: float) -> tuple[float, float]:
    """Return progress 0..1 and its rate per unit of phase for a rest-to-rest reach (Flash and Hogan 1985)."""
    u = min(max(phase, 0.0), 1.0)
    return u**3 * (10.0 - 15.0 * u + 6.0 * u * u), 30.0 * u * u * (1.0 - u) ** 2


class WayPoints:
    """Rest-to-rest minimum-jerk reaches from point to point; before the first and after the last it rests there."""

    def __init__(
        self,
        times: Sequence[float],
        positions: Sequence[Sequence[float]] | np.ndarray,
        orientations: Sequence[Sequence[float]] | np.ndarray | None = None,
    ) -> None:
        """Take increasing times (s), positions (n, 3) m and orientations (n, 4) xyzw. Raises ValueError."""
        self._rows = _Rows(times, positions, orientations)

    def at(self, time: float) -> PathPoint:
        """Return the point at a time (s)."""
        first, phase, duration = self._rows.find(time)
        progress, rate = minimum_jerk(phase)
        position, orientation = self._rows.between(first, progress)
        velocity = np.zeros(3)
        if duration > 0.0:
            velocity = self._rows.step(first) * (rate / duration)
        return PathPoint(position, velocity, orientation)


class CircleDrag:
    """Approach along the normal, press to a depth, then drag round a circle in the plane of the surface."""

    def __init__(
        self,
        centre: Sequence[float],
        normal: Sequence[float] = (0.0, 0.0, 1.0),
        radius: float = 0.02,
        period: float = 4.0,
        depth: float = 0.005,
        height: float = 0.02,
        approach: float = 1.0,
    ) -> None:
        """Take the circle's centre on the surface (m), its outward normal, and the intended motion.

        The path starts ``height`` above the surface, reaches ``depth`` below it after ``approach`` seconds, and then
        takes ``period`` seconds per turn, speeding up over the first quarter turn. Raises ValueError.
        """
        for name, value in (("radius", radius), ("period", period), ("approach", approach)):
            _above_zero(name, value)
        self._centre = _finite_array("centre", centre, (3,))
        self._normal = _unit(normal)
        self._side, self._other = _plane_axes(self._normal)
        self._radius, self._period, self._approach = radius, period, approach
        self._depth, self._height = depth, height

    def at(self, time: float) -> PathPoint:
        """Return the point at a time (s)."""
        progress, rate = minimum_jerk(time / self._approach)
        height = self._height - progress * (self._height + self._depth)
        sinking = -rate / self._approach * (self._height + self._depth)
        turning = 2.0 * math.pi / self._period
        start = 0.25 * self._period
        late = max(time - self._approach, 0.0)
        if late < start:
            # Speed rises smoothly from zero: its share is u^2 (3 - 2 u), whose integral is u^3 - u^4 / 2.
            u = late / start
            angle, speed = turning * start * (u**3 - 0.5 * u**4), turning * u * u * (3.0 - 2.0 * u)
        else:
            angle, speed = turning * (late - 0.5 * start), turning
        outward = math.cos(angle) * self._side + math.sin(angle) * self._other
        along = -math.sin(angle) * self._side + math.cos(angle) * self._other
        position = self._centre + self._radius * outward + height * self._normal
        return PathPoint(position, self._radius * speed * along + sinking * self._normal, np.array(IDENTITY))


class Tapping:
    """Up and down along the normal like a finger that taps: a raised cosine between height and depth."""

    def __init__(
        self,
        point: Sequence[float],
        normal: Sequence[float] = (0.0, 0.0, 1.0),
        height: float = 0.01,
        depth: float = 0.005,
        rate: float = 2.0,
    ) -> None:
        """Take the point on the surface (m), its outward normal, the two turning points (m) and taps per second."""
        _above_zero("rate", rate)
        self._point = _finite_array("point", point, (3,))
        self._normal = _unit(normal)
        self._height, self._depth, self._rate = height, depth, rate

    def at(self, time: float) -> PathPoint:
        """Return the point at a time (s); it starts at the top."""
        middle = 0.5 * (self._height - self._depth)
        swing = 0.5 * (self._height + self._depth)
        angle = 2.0 * math.pi * self._rate * max(time, 0.0)
        position = self._point + (middle + swing * math.cos(angle)) * self._normal
        velocity = -swing * 2.0 * math.pi * self._rate * math.sin(angle) * self._normal
        return PathPoint(position, velocity, np.array(IDENTITY))


class RandomMotion:
    """Smooth wandering within a sphere: a sum of sines with seeded frequencies, directions and phases."""

    TONES = 12

    def __init__(
        self, seed: int, centre: Sequence[float] = (0.0, 0.0, 0.0), radius: float = 0.03, bandwidth: float = 2.0
    ) -> None:
        """Take a seed, the sphere (m) and the highest frequency (Hz). Raises ValueError."""
        _above_zero("radius", radius)
        _above_zero("bandwidth", bandwidth)
        random = np.random.default_rng(seed)
        self._centre = _finite_array("centre", centre, (3,))
        self._omega = 2.0 * math.pi * bandwidth * random.uniform(0.1, 1.0, self.TONES)
        self._phase = random.uniform(0.0, 2.0 * math.pi, self.TONES)
        directions = random.standard_normal((self.TONES, 3))
        shares = random.uniform(0.3, 1.0, (self.TONES, 1))
        # The lengths of all tones add up to the radius, so no alignment of phases can leave the sphere.
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        self._amplitude = radius * directions * shares / shares.sum()

    def at(self, time: float) -> PathPoint:
        """Return the point at a time (s)."""
        angle = self._omega * time + self._phase
        position = self._centre + np.sin(angle) @ self._amplitude
        return PathPoint(position, (self._omega * np.cos(angle)) @ self._amplitude, np.array(IDENTITY))


# ------------------------------------------------------------------------------------------------------ hands


@dataclass(frozen=True)
class Grip:
    """How an arm holds the device: a mass moving with it, and a spring-damper towards the intended point."""

    mass: float
    """kg"""
    stiffness: float
    """N/m"""
    damping: float
    """N·s/m"""
    inertia: float
    """kg·m2, about any axis"""
    rotational_stiffness: float
    """N·m/rad"""
    rotational_damping: float
    """N·m·s/rad"""


HELD = Grip(mass=0.4, stiffness=400.0, damping=8.0, inertia=4e-4, rotational_stiffness=2.0, rotational_damping=0.02)
"""A firm grip; its damping is within the 1 to 10 N·s/m that an arm adds to a device."""
LIGHT = Grip(mass=0.1, stiffness=100.0, damping=2.0, inertia=1e-4, rotational_stiffness=0.5, rotational_damping=0.005)
"""Two fingers."""
HANDS_OFF = Grip(mass=0.0, stiffness=0.0, damping=0.0, inertia=0.0, rotational_stiffness=0.0, rotational_damping=0.0)
"""Nobody: the device moves by its own inertia and the rendered force only."""


@dataclass(frozen=True)
class DeviceDynamics:
    """The mechanism between hand and encoders."""

    mass: float = 0.15
    """kg, apparent at the handle"""
    viscous_friction: float = 0.1
    """N·s/m"""
    coulomb_friction: float = 0.1
    """N"""
    resolution: float = 1e-5
    """m, encoder step; 0 for none"""
    inertia: float = 1e-4
    """kg·m2"""
    rotational_friction: float = 1e-3
    """N·m·s/rad"""
    rotational_coulomb: float = 1e-3
    """N·m"""
    rotational_resolution: float = 1e-4
    """rad; 0 for none"""
    measures_orientation: bool = True
    measures_roll: bool = True
    """About ``axis``; only where an orientation is measured."""
    axis: tuple[float, float, float] = DEFAULT_AXIS
    """The handle's own, unit, handle coordinates."""

    @classmethod
    def from_card(cls, card: DeviceCard) -> DeviceDynamics:
        """Take what the card knows of the mechanism; the rest stays as for the reference device."""
        known = {
            name: value
            for name, value in (
                ("mass", card.mass),
                ("viscous_friction", card.viscous_friction),
                ("coulomb_friction", card.coulomb_friction),
                ("resolution", card.resolution),
            )
            if value is not None
        }
        return cls(**known, measures_orientation=card.sensed >= 5, measures_roll=card.sensed == 6, axis=card.axis)


@kernel
def advance(
    x: np.ndarray,
    v: np.ndarray,
    target: np.ndarray,
    target_velocity: np.ndarray,
    drive: np.ndarray,
    mass: float,
    stiffness: float,
    damping: float,
    friction: float,
    coulomb: float,
    h: float,
    substeps: int,
) -> None:
    """Integrate ``m a = drive + k (target - x) + b (target_velocity - v) - c v - Coulomb`` in place, in steps of h.

    Implicit midpoint rule: stable for any k and b, second order, and without numerical damping, so that an unstable
    loop shows as one. Dry friction is solved within the step: below its threshold the device stands exactly still.
    """
    a = mass + 0.5 * h * (damping + friction) + 0.25 * h * h * stiffness
    for s in range(substeps):
        late = (s + 0.5) * h
        r0 = r1 = r2 = 0.0
        for k in range(3):
            goal = target[k] + late * target_velocity[k]
            r = mass * v[k] + 0.5 * h * (drive[k] + stiffness * (goal - x[k]) + damping * target_velocity[k])
            if k == 0:
                r0 = r
            elif k == 1:
                r1 = r
            else:
                r2 = r
        size = math.sqrt(r0 * r0 + r1 * r1 + r2 * r2)
        held = 0.5 * h * coulomb
        if size <= held:
            v[0] = 0.0
            v[1] = 0.0
            v[2] = 0.0
            continue
        share = (1.0 - held / size) / a
        for k in range(3):
            middle = share * (r0 if k == 0 else (r1 if k == 1 else r2))
            x[k] += h * middle
            v[k] = 2.0 * middle - v[k]


class SimulatedHand:
    """An arm that follows a path with a device in its grip, and yields to the force that the device renders."""

    def __init__(
        self,
        path: Path,
        grip: Grip = HELD,
        device: DeviceDynamics | None = None,
        *,
        delay_ticks: int = 0,
        substeps: int = 8,
    ) -> None:
        """Start at the path's beginning, at its speed.

        ``delay_ticks``: steps by which a rendered wrench reaches the motors late. Raises ValueError.
        """
        self.path = path
        self.grip = grip
        self.device = device if device is not None else DeviceDynamics()
        if delay_ticks < 0 or substeps < 1:
            raise ValueError(f"delay_ticks = {delay_ticks} must be 0 or more and substeps = {substeps} 1 or more")
        if not self.grip.mass + self.device.mass > 0.0 or not self.grip.inertia + self.device.inertia > 0.0:
            raise ValueError("hand and device together need a mass and an inertia above 0")
        self.time = 0.0
        """s since the start."""
        self._substeps = substeps
        self._late = deque([np.zeros(6) for _ in range(delay_ticks)])
        begin = path.at(0.0)
        self.position = np.array(begin.position, dtype=np.float64)
        """(3,) m: where the handle is, before the encoders."""
        self.velocity = np.array(begin.velocity, dtype=np.float64)
        """(3,) m/s."""
        self.turned = np.zeros(3)
        """(3,) rad: rotation vector by which the handle is turned from the intended orientation."""
        self.turning = np.zeros(3)
        """(3,) rad/s."""

    def step(self, dt: float, wrench: Sequence[float] | np.ndarray) -> HandPose:
        """Go on by ``dt`` seconds while feeling ``wrench`` (6,); return the pose that the encoders read."""
        felt = np.array(wrench, dtype=np.float64)
        if self._late:
            self._late.append(felt)
            felt = self._late.popleft()
        grip, device = self.grip, self.device
        h = dt / self._substeps
        wanted = self.path.at(self.time)
        # Within one step the intended point moves straight to where it will be, so following has no drift.
        next_wanted = self.path.at(self.time + dt)
        moving = (next_wanted.position - wanted.position) / dt
        advance(
            self.position,
            self.velocity,
            np.ascontiguousarray(wanted.position),
            moving,
            felt[:3],
            grip.mass + device.mass,
            grip.stiffness,
            grip.damping,
            device.viscous_friction,
            device.coulomb_friction,
            h,
            self._substeps,
        )
        advance(
            self.turned,
            self.turning,
            np.zeros(3),
            np.zeros(3),
            felt[3:],
            grip.inertia + device.inertia,
            grip.rotational_stiffness,
            grip.rotational_damping,
            device.rotational_friction,
            device.rotational_coulomb,
            h,
            self._substeps,
        )
        self.time += dt
        return self._read(next_wanted.orientation)

    def _read(self, wanted_orientation: np.ndarray) -> HandPose:
        position = quantised(self.position, self.device.resolution)
        if not self.device.measures_orientation:
            return HandPose(position, np.array(IDENTITY))
        x, y, z, w = (float(c) for c in wanted_orientation)
        turned = multiply(from_rotation_vector(vector(self.turned)), (x, y, z, w))
        if not self.device.measures_roll:
            turned = without_roll(normalise(turned), self.device.axis)
        angles = quantised(np.array(rotation_vector(normalise(turned))), self.device.rotational_resolution)
        return HandPose(position, np.array(from_rotation_vector(vector(angles))))


class ScriptedHand:
    """Exact poses from a table: each row is met exactly at its time; between rows it goes straight. Feels nothing."""

    def __init__(
        self,
        times: Sequence[float],
        positions: Sequence[Sequence[float]] | np.ndarray,
        orientations: Sequence[Sequence[float]] | np.ndarray | None = None,
    ) -> None:
        """Take increasing times (s), positions (n, 3) m and orientations (n, 4) xyzw. Raises ValueError."""
        self._rows = _Rows(times, positions, orientations)
        self._ns = 0

    @property
    def time(self) -> float:
        """s since the start."""
        return 1e-9 * self._ns

    def step(self, dt: float, wrench: Sequence[float] | np.ndarray = ()) -> HandPose:
        """Go on by ``dt`` seconds (counted in whole ns, so that nothing adds up) and return the pose there."""
        self._ns += round(dt * 1e9)
        return self.at(self.time)

    def at(self, time: float) -> HandPose:
        """Return the pose at a time (s)."""
        first, phase, _ = self._rows.find(time)
        return HandPose(*self._rows.between(first, phase))


def quantised(values: np.ndarray, resolution: float) -> np.ndarray:
    """Return the values on the encoder's grid (multiples of ``resolution``; 0 for no grid)."""
    if resolution <= 0.0:
        return values.copy()
    return np.round(values / resolution) * resolution


class _Rows:
    """A table of times and poses, checked."""

    def __init__(
        self,
        times: Sequence[float],
        positions: Sequence[Sequence[float]] | np.ndarray,
        orientations: Sequence[Sequence[float]] | np.ndarray | None,
    ) -> None:
        count = len(times)
        if count < 1:
            raise ValueError("at least one row is needed")
        self.times = _finite_array("times", times, (count,))
        if np.any(np.diff(self.times) <= 0.0):
            row = int(np.argmax(np.diff(self.times) <= 0.0)) + 1
            raise ValueError(f"times must increase; row {row} ({self.times[row]:g} s) does not")
        self.positions = _finite_array("positions", positions, (count, 3))
        self.orientations = np.tile(np.array(IDENTITY), (count, 1))
        if orientations is not None:
            self.orientations = _finite_array("orientations", orientations, (count, 4))
            norms = np.linalg.norm(self.orientations, axis=1)
            if np.any(np.abs(norms - 1.0) > 1e-3):
                row = int(np.argmax(np.abs(norms - 1.0)))
                raise ValueError(f"orientation of row {row} has norm {norms[row]:g}; unit quaternions are needed")
            self.orientations = self.orientations / norms[:, None]
            for row in range(1, count):
                # Of the two signs of a rotation, the one nearer to the row before.
                if self.orientations[row] @ self.orientations[row - 1] < 0.0:
                    self.orientations[row] *= -1.0

    def find(self, time: float) -> tuple[int, float, float]:
        """Return the row before, the part of the way to the next (0..1), and the duration of that way (0 outside)."""
        row = int(np.searchsorted(self.times, time, side="right")) - 1
        if row < 0:
            return 0, 0.0, 0.0
        if row >= len(self.times) - 1:
            return len(self.times) - 1, 0.0, 0.0
        duration = float(self.times[row + 1] - self.times[row])
        return row, float(time - self.times[row]) / duration, duration

    def step(self, row: int) -> np.ndarray:
        """Return the way from a row to the next (m)."""
        return self.positions[row + 1] - self.positions[row]

    def between(self, row: int, share: float) -> tuple[np.ndarray, np.ndarray]:
        """Return position and orientation at a share of the way from a row to the next."""
        if share == 0.0:
            return self.positions[row].copy(), self.orientations[row].copy()
        position = self.positions[row] + share * self.step(row)
        orientation = (1.0 - share) * self.orientations[row] + share * self.orientations[row + 1]
        return position, orientation / np.linalg.norm(orientation)


def _finite_array(name: str, values: Sequence | np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    array = np.array(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must be finite numbers of shape {shape}, not {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite numbers; one is not finite")
    return array


def _above_zero(name: str, value: float) -> None:
    if not math.isfinite(value) or value <= 0.0:
        raise ValueError(f"{name} = {value!r} must be a finite number above 0")


def _unit(values: Sequence[float]) -> np.ndarray:
    array = _finite_array("normal", values, (3,))
    size = float(np.linalg.norm(array))
    if size < 1e-12:
        raise ValueError("a normal needs a length")
    return array / size


def _plane_axes(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors that span the plane of a unit normal, right-handed with it."""
    least = np.zeros(3)
    least[int(np.argmin(np.abs(normal)))] = 1.0
    side = np.cross(least, normal)
    side /= np.linalg.norm(side)
    return side, np.cross(normal, side)
