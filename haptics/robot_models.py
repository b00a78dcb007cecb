"""A simulated robot that is pulled after set-points, with a wall to touch: for tests and for trying a link out."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

IDENTITY = (0.0, 0.0, 0.0, 1.0)
INERTIA = 0.01
"""kg m², about every axis."""

STEP_S = 2.5e-4
"""Largest step of the integration."""


class RobotPose(NamedTuple):
    """What a simulated robot measures."""

    position: np.ndarray
    """(3,) m."""
    orientation: np.ndarray
    """(4,) xyzw."""
    twist: np.ndarray
    """(6,) m/s, rad/s."""
    wrench: np.ndarray
    """(6,) N, N·m: what the wall does to it, as its force sensor says."""


class RobotModel:
    """A free mass with friction, pulled by a position controller; pushed by a wall, a plane that faces up.

        m a = K (x_d - x) + B (v_d - v) - d v - c v / |v| + f_wall        K = m (2 pi f)^2    B = 2 m 2 pi f

    critically damped at the bandwidth f. Set-points reach the controller late. The wall pushes with k_e per metre that
    the robot is below it, and with d_e per m/s, never pulls. Integrated by semi-implicit Euler steps of at most STEP_S.
    """

    def __init__(
        self,
        position: Any = (0.0, 0.0, 0.0),
        *,
        mass: float = 2.0,
        viscous: float = 2.0,
        coulomb: float = 0.5,
        bandwidth: float = 10.0,
        delay: float = 0.003,
        wall: float | None = None,
        wall_stiffness: float = 2000.0,
        wall_damping: float = 5.0,
        force_max: float = math.inf,
        noise: float = 0.0,
        quantum: float = 0.0,
        seed: int = 0,
    ) -> None:
        """position (3,) m at the start, at rest. mass kg, viscous N·s/m, coulomb N, bandwidth Hz, delay s.

        wall: its height, m, None without; wall_stiffness N/m, wall_damping N·s/m; force_max: of the motors, N; noise:
        N, standard deviation of the force sensor, quantum: its step, N. Raises ValueError.
        """
        for name, value in (("mass", mass), ("bandwidth", bandwidth)):
            if not 0.0 < value < math.inf:
                raise ValueError(f"{name} = {value!r} must be a finite number above 0")
        others = {"viscous": viscous, "coulomb": coulomb, "delay": delay, "noise": noise, "quantum": quantum}
        for name, value in {**others, "wall_stiffness": wall_stiffness, "wall_damping": wall_damping}.items():
            if not 0.0 <= value < math.inf:
                raise ValueError(f"{name} = {value!r} must be a finite number from 0 on")
        self.mass, self.viscous, self.coulomb, self.delay = mass, viscous, coulomb, delay
        omega = 2.0 * math.pi * bandwidth
        self.stiffness, self.damping = mass * omega**2, 2.0 * mass * omega
        self.rotational_stiffness, self.rotational_damping = INERTIA * omega**2, 2.0 * INERTIA * omega
        self.wall, self.wall_stiffness, self.wall_damping = wall, wall_stiffness, wall_damping
        self.force_max, self.noise, self.quantum = force_max, noise, quantum
        self.position = np.array(position, float)
        self.orientation = Rotation.identity()
        self.velocity = np.zeros(3)
        self.turning = np.zeros(3)
        self.time = 0.0
        self.worked = 0.0
        """J that the controller has done on the robot's motion."""
        self._wanted = (self.position.copy(), self.orientation, np.zeros(6))
        self._commands: deque[tuple[float, tuple[np.ndarray, Rotation, np.ndarray]]] = deque()
        self._random = np.random.default_rng(seed)

    def command(self, position: Any, orientation: Any = IDENTITY, twist: Any = (0.0,) * 6) -> None:
        """Take a set-point: position (3,) m, orientation (4,) xyzw, twist (6,)."""
        wanted = (np.array(position, float), Rotation.from_quat(orientation), np.array(twist, float))
        self._commands.append((self.time + self.delay, wanted))

    def hold(self) -> None:
        """Stay where it is, at once: what was commanded before does not count."""
        self._commands.clear()
        self._wanted = (self.position.copy(), self.orientation, np.zeros(6))

    def step(self, dt: float) -> None:
        """Go on for so many s."""
        count = max(1, math.ceil(dt / STEP_S - 1e-9))
        for _ in range(count):
            self._step(dt / count)

    def push(self) -> float:
        """Force of the wall now, N, up."""
        depth = 0.0 if self.wall is None else self.wall - float(self.position[2])
        if depth <= 0.0:
            return 0.0
        return max(self.wall_stiffness * depth - self.wall_damping * float(self.velocity[2]), 0.0)

    def read(self) -> RobotPose:
        """What it measures now."""
        wrench = np.zeros(6)
        wrench[2] = self.push()
        if self.noise > 0.0:
            wrench[:3] += self._random.normal(0.0, self.noise, 3)
        if self.quantum > 0.0:
            wrench[:3] = np.round(wrench[:3] / self.quantum) * self.quantum
        twist = np.concatenate([self.velocity, self.turning])
        return RobotPose(self.position.copy(), self.orientation.as_quat(), twist, wrench)

    def _step(self, h: float) -> None:
        while self._commands and self._commands[0][0] <= self.time + 1e-12:
            self._wanted = self._commands.popleft()[1]
        place, orientation, twist = self._wanted
        force = self.stiffness * (place - self.position) + self.damping * (twist[:3] - self.velocity)
        size = math.sqrt(force @ force)
        if size > self.force_max:
            force *= self.force_max / size
        total = force - self.viscous * self.velocity
        total[2] += self.push()
        before = self.velocity
        self.velocity = self.velocity + total * (h / self.mass)
        speed = math.sqrt(self.velocity @ self.velocity)
        if speed > 0.0:
            self.velocity *= max(speed - self.coulomb * h / self.mass, 0.0) / speed
        self.position = self.position + self.velocity * h
        self.worked += float(force @ (before + self.velocity)) * 0.5 * h
        if self.turning.any() or twist[3:].any() or orientation is not self.orientation:
            way = (orientation * self.orientation.inv()).as_rotvec()
            torque = self.rotational_stiffness * way + self.rotational_damping * (twist[3:] - self.turning)
            self.turning = self.turning + torque * (h / INERTIA)
            self.orientation = Rotation.from_rotvec(self.turning * h) * self.orientation
        self.time += h
