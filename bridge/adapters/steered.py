"""Input devices that steer by speed: what the deflection of a sprung cap or stick makes of a pose."""

import time
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from bridge.adapters.device import Device, DeviceError, Reading
from bridge.wire import Render
from haptics.pointing import Rate
from haptics.states import EngagementState

LONGEST_S = 0.02
"""A loop that was held up moves the pose no farther than in so long."""
FARTHEST = 0.01
"""m from the tool, while something holds it: as much as can be felt of pushing on."""
FARTHEST_TURN = 0.2
"""rad"""


class Steered(Device):
    """Its pose begins at the origin, and moves at `speed` (m/s) and `turn_speed` (rad/s) at full deflection."""

    def __init__(self, speed: str, turn_speed: str) -> None:
        try:
            self._steering = Rate((0.0, 0.0, 0.0), speed=float(speed), turn_speed=float(turn_speed))
        except ValueError as error:
            raise DeviceError(str(error)) from None
        # Load what steering calls (numba's kernels) now, and not in the cycle that needs it first.
        trial = Rate((0.0, 0.0, 0.0))
        trial.step(1e-3, np.ones(6))
        trial.hold_near(np.zeros(3), np.array((0.0, 0.0, 1.0, 0.0)), FARTHEST, FARTHEST_TURN)
        self._before: int | None = None
        self.buttons = 0
        """Bit mask, bit 0 the main one."""

    @abstractmethod
    def deflection(self) -> Sequence[float]:
        """(6,) now, device frame, 1 at the stop: [along x y z, about x y z]. Raises DeviceError when it is gone."""

    def read(self) -> Reading:
        """Where the deflection has brought the pose."""
        deflection = self.deflection()
        now = time.monotonic_ns()
        dt = 0.0 if self._before is None else min((now - self._before) * 1e-9, LONGEST_S)
        self._before = now
        pose = self._steering.step(dt, deflection)
        return Reading(pose.position.tolist(), pose.orientation.tolist(), buttons=self.buttons)

    def follow(self, render: Render) -> None:
        """Keep near the tool, so that what has been pushed against a wall need not be undone."""
        if render.state == EngagementState.ACTIVE:
            self._steering.hold_near(
                np.array(render.proxy_position), np.array(render.proxy_orientation), FARTHEST, FARTHEST_TURN
            )
