"""A free body in one tick: what two logged states say of it."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.verify.history import History
from bridge.verify.motions import angle_between, turned_freely

ROUNDING = 1e-12
"""m per m: what rounding may do to poses, by the size of what is computed with."""
TINY = 1e-12
"""m/s: what is slower is at rest."""


class Body:
    """A FREE body at the start of a tick, after its kick, and what the log says of its end."""

    def __init__(self, history: History, body: int, row: int):
        inertia: Any = history.model.inertias[body]
        dt, gravity = history.dt, history.gravity
        self._dt = dt
        self.id = body
        self.mass = float(inertia["mass"])
        self.moments = np.array(inertia["moments"], dtype=float)
        axes = Rotation.from_quat(inertia["axes"]).as_matrix()
        self.offset = np.array(inertia["centre"], dtype=float)
        self.start, self.end = history.pose(body, row - 1), history.pose(body, row)
        self.frame, self.frame_end = self.start.rotation @ axes, self.end.rotation @ axes
        self.axes = axes
        self.centre, self.centre_end = self.start.place(self.offset), self.end.place(self.offset)
        before, after = history.state(body, row - 1), history.state(body, row)
        self.v0, self.w0 = np.array(before["linear"]), np.array(before["angular"])
        self.v1, self.w1 = np.array(after["linear"]), np.array(after["angular"])
        self.spin0, self.spin1 = self.momentum(self.frame, self.w0), self.momentum(self.frame_end, self.w1)
        linear_drag, angular_drag = float(inertia["linear_drag"]), float(inertia["angular_drag"])
        share = dt / (self.mass + linear_drag * dt)
        self.kick = share * self.mass * gravity
        self.kicked = self.v0 + self.kick - share * linear_drag * self.v0
        along = self.frame.T @ self.spin0
        self.spin_kicked = self.frame @ (along * self.moments / (self.moments + angular_drag * dt))
        self.is_ball = history.is_ball(body)
        self.flies = False
        """Does it touch nothing but bodies that fly as it does?"""
        self.radius = history.shapes[body].radius + float(np.linalg.norm(history.shapes[body].centre - self.offset))
        self.restitution, self.rest_speed = float(inertia["restitution"]), float(inertia["rest_speed"])

    def momentum(self, frame: np.ndarray, angular: np.ndarray) -> np.ndarray:
        """Angular, about the centre of mass, scene."""
        return frame @ (self.moments * (frame.T @ angular))

    def angular(self, momentum: np.ndarray) -> np.ndarray:
        """Velocity of a momentum where the tick begins."""
        return self.frame @ ((self.frame.T @ momentum) / self.moments)

    def speed_of(self, momentum: np.ndarray) -> float:
        """Size of the angular velocity of a momentum, rad/s."""
        return float(np.linalg.norm(self.angular(momentum)))

    @property
    def kinetic(self) -> tuple[float, float]:
        """J, before and after the tick."""
        before = 0.5 * self.mass * self.v0 @ self.v0 + 0.5 * self.w0 @ self.spin0
        after = 0.5 * self.mass * self.v1 @ self.v1 + 0.5 * self.w1 @ self.spin1
        return float(before), float(after)

    def weighted(self, linear: np.ndarray, angular: np.ndarray) -> np.ndarray:
        """(6,) an impulse and a moment of it in the norm of kinetic energy, sqrt(J)."""
        return np.concatenate([linear / np.sqrt(self.mass), (self.frame.T @ angular) / np.sqrt(self.moments)])

    def speed(self, weighted: np.ndarray) -> float:
        """Bound on the speed of any of its points that such an impulse makes, m/s."""
        turning = np.linalg.norm(weighted[3:] / np.sqrt(self.moments))
        return float(np.linalg.norm(weighted[:3]) / np.sqrt(self.mass) + self.radius * turning)

    @cached_property
    def solved(self) -> np.ndarray:
        """Angular momentum that contacts left, N m s.

        The position pass turns a body beside its free motion, which may add to the energy of its rotation at the same
        momentum; the engine takes that back from the momentum of what something pushes that does not fly with it, and
        so it is put back here.
        """
        given = float(np.linalg.norm(self.spin1 - self.spin_kicked))
        if self.flies or given <= ROUNDING * float(np.linalg.norm(self.spin1)):
            return self.spin1
        before = float(self.spin1 @ self.angular(self.spin1))
        after = float(self.spin1 @ self.w1)
        return self.spin1 * np.sqrt(after / before) if after > before > 0.0 else self.spin1

    @property
    def went_whole_way(self) -> bool:
        """Is it where its velocity leads, so that nothing has stopped it and nothing opened its contacts?"""
        way, turn = self._dt * self.v1, self._dt * self.turning
        went = self.centre_end - self.centre
        # what nothing pushes falls along a parabola
        off = min(float(np.linalg.norm(went - way)), float(np.linalg.norm(went - way + 0.5 * self._dt * self.kick)))
        off += self.radius * angle_between(Rotation.from_rotvec(turn).as_matrix() @ self.frame, self.frame_end)
        size = float(np.abs(self.centre).max()) + self.radius
        return off <= ROUNDING * size < float(np.linalg.norm(way))

    @cached_property
    def turning(self) -> np.ndarray:
        """Angular velocity that contacts are solved for, rad/s: the mean one without them, and what they change."""
        return self.turning_freely + self.angular(self.solved - self.spin_kicked)

    @cached_property
    def turning_freely(self) -> np.ndarray:
        """Mean angular velocity without contacts, rad/s."""
        if np.ptp(self.moments) > ROUNDING * self.moments.max():
            turned = turned_freely(self.frame, self.moments, self.spin_kicked, self._dt)
            if turned is not None:
                return Rotation.from_matrix(turned @ self.frame.T).as_rotvec() / self._dt
        return self.angular(self.spin_kicked)
