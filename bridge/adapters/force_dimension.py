"""Force Dimension's omega, delta, sigma and lambda, and the Falcon, through `forcedimension_core` (LGPL, an extra).

That package needs its maker's SDK (libdrd), which is not free to pass on. This adapter is a process of its own and
calls the package's functions only. It has been tested with a stand-in of the same surface
(`emulators/force_dimension.py`), and with no device so far.

At the opening the maker's own guards are set: largest force and torque (`setMaxForce`, `setMaxTorque`), and the
watchdog of the firmware, which takes forces away when no command came for `WATCHDOG_MS`. Units are those of the SDK: m,
N, N·m; its frame is the card's. The gripper is neither read nor driven.
"""

import contextlib
import importlib
import math
import time
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.adapters.device import IDENTITY, Device, DeviceError, Reading
from bridge.adapters.registry import card_of
from haptics.last_line import NO_WRENCH, Wrench

LIBRARY = "forcedimension_core"
WATCHDOG_MS = 20.0
WATCHDOG_UNIT_MS = 0.125
"""What `setWatchdog` counts in."""
LOOK_S = 0.05
"""Between two looks at the status."""
MOST_FAILURES = 20
"""Readings, or writings, that fail without a good one in between before the device is taken for gone."""
ENABLE_AGAIN_S = 1.0

CARDS = {"DELTA3": "delta3", "OMEGA6": "omega6", "OMEGA7": "omega7", "SIGMA7": "sigma7", "LAMBDA7": "lambda7"}
CARDS |= {"FALCON": "falcon"}
"""Beginning of the name of a device type -> card; others have none, and other limits."""
FIGURES = "sensed, actuated, force_max, stiffness_max, damping_max, workspace_radius and frame"
"""What a card of one's own should state, from its maker's data sheet."""

CAUSES = {1: "the button", 2: "its velocity limit", 3: "its watchdog", 4: "software", 5: "the USB", 6: "its deadman"}
"""FORCEOFFCAUSE: what took forces away."""
BY_ITSELF = (3, 4)
"""Causes after which this adapter asks for forces again; after others somebody at the device has to."""


class ForceDimension(Device):
    """The first device found, or that of an index."""

    def __init__(self, index: str = "", card: str = "", library: str = LIBRARY) -> None:
        """``index``: of the device among those plugged in; ``card``: if not the one that its type says; ``library``:
        the module to call, for tests. Raises DeviceError."""
        if index and not index.isdigit():
            raise DeviceError(f"index = {index!r} is not a whole number, 0 or more")
        self._index, self._library = index, library
        self.card = card or None
        self._dhd: Any = None
        self._status: Any = None
        self._id = -1
        self._wrist = False
        self._torque = False
        self._failures = 0
        """Readings in a row that failed."""
        self._refused = 0
        """Writings since the last good one that failed, although the device said that its forces are on."""
        self._look_at = 0
        self._enable_at = 0
        self._applied: Wrench = NO_WRENCH
        self._last: Reading | None = None

    def open(self) -> None:
        """Open it, set its guards, and let it float."""
        try:
            library = importlib.import_module(self._library)
        except ImportError as error:
            raise DeviceError(
                f"{self._library} cannot be loaded ({str(error).splitlines()[0] if str(error) else error}): it needs "
                "pip install 'hapticd[force-dimension]', and Force Dimension's SDK"
            ) from None
        dhd = library.dhd
        number = dhd.openID(int(self._index)) if self._index else dhd.open()
        if number < 0:
            raise DeviceError(f"no Force Dimension device can be opened: {dhd.errorGetLastStr()}")
        self._dhd, self._id = dhd, number
        kind = dhd.getSystemType(number)
        name = getattr(kind, "name", str(kind))
        if self.card is None:
            self.card = next((card for start, card in CARDS.items() if name.startswith(start)), None)
        if self.card is None:
            raise DeviceError(
                f"no card is known for a device of type {name}: write one with its maker's figures ({FIGURES}; see "
                "Keys of a card in docs/devices.md), and name it with --set card=FILE.toml"
            )
        card = card_of(self)
        assert card is not None
        self._wrist = bool(dhd.hasWrist(number))
        self._torque = card.renders_torque and bool(dhd.hasActiveWrist(number))
        self._must(dhd.setMaxForce(float(card.force_max or 0.0), number), "set its largest force")
        if self._torque:
            self._must(dhd.setMaxTorque(float(card.torque_max or 0.0), number), "set its largest torque")
        self._must(dhd.setGravityCompensation(True, number), "carry its own weight")
        dhd.expert.enableExpertMode()
        try:
            # Devices without one say so; then the last line is all there is.
            dhd.expert.setWatchdog(round(WATCHDOG_MS / WATCHDOG_UNIT_MS), number)
        finally:
            dhd.expert.disableExpertMode()
        self._status = library.containers.Status()
        self._must(dhd.enableForce(True, number), "switch its forces on")
        self.write(NO_WRENCH)

    def read(self) -> Reading:
        """Pose and velocity; a reading that fails is not valid, and too many in a row mean that it is gone."""
        dhd, number = self._there(), self._id
        position, matrix = [0.0] * 3, [[0.0] * 3 for _ in range(3)]
        linear, angular = [0.0] * 3, [0.0] * 3
        if self._wrist:
            code = dhd.getPositionAndOrientationFrame(position, matrix, number)
        else:
            code = dhd.getPosition(position, number)
        if code < 0:
            self._failures += 1
            if self._failures > MOST_FAILURES:
                raise DeviceError(f"the Force Dimension device is gone: {dhd.errorGetLastStr()}")
            last = self._last or Reading((0.0, 0.0, 0.0))
            return last._replace(valid=False)
        self._failures = 0
        orientation = IDENTITY if not self._wrist else _quaternion(matrix)
        moving = dhd.getLinearVelocity(linear, number) >= 0
        if self._wrist:
            moving = moving and dhd.getAngularVelocityRad(angular, number) >= 0
        twist = (*linear, *angular) if moving else None
        self._last = Reading(tuple(position), orientation, twist, int(dhd.getButtonMask(number)) & 0xFFFFFFFF)
        self._look()
        return self._last

    def write(self, wrench: Wrench) -> None:
        """The SDK's force call; it feeds the watchdog too."""
        dhd, number = self._there(), self._id
        self._applied = wrench
        torque = wrench[3:] if self._torque else (0.0, 0.0, 0.0)
        code = dhd.setForceAndTorqueAndGripperForce(wrench[:3], torque, 0.0, number)
        if code >= 0:  # above 0: TIMEGUARD or MOTOR_SATURATED, which are no failures
            self._refused = 0
            return
        said = dhd.errorGetLastStr()
        self._look_at = 0
        self._look()
        # A device that has taken forces away itself takes none, and says why. Only a good writing starts the count
        # anew: where all fail, the watchdog takes forces away too, again and again.
        if not self.why_off:
            self._refused += 1
        if self._refused > MOST_FAILURES:
            raise DeviceError(f"the Force Dimension device takes no forces: {said}")

    def brake(self) -> None:
        """Forces off, electric brakes on; they come off when forces are asked for again."""
        self._there().stop(self._id)
        self._enable_at = time.monotonic_ns() + int(ENABLE_AGAIN_S * 1e9)
        self.why_off = "braked"

    def close(self) -> None:
        """Forces off, brakes on, gone."""
        dhd, self._dhd = self._dhd, None
        if dhd is not None:
            with contextlib.suppress(Exception):
                dhd.setForceAndTorqueAndGripperForce((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0, self._id)
            dhd.stop(self._id)
            dhd.close(self._id)

    def _look(self) -> None:
        """Whether the device itself has taken forces away, and why."""
        now = time.monotonic_ns()
        if now < self._look_at:
            return
        self._look_at = now + int(LOOK_S * 1e9)
        if self._dhd.getStatus(self._status, self._id) < 0:
            return
        if self._status.force:
            self.why_off = ""
            return
        cause = int(self._status.forceoffcause)
        if not self.why_off:
            self.why_off = f"forces were taken away by {CAUSES.get(cause, f'cause {cause}')}"
            self._enable_at = now + int(ENABLE_AGAIN_S * 1e9)
        elif cause in BY_ITSELF and now >= self._enable_at and self._applied == NO_WRENCH:
            self._dhd.enableForce(True, self._id)

    def _there(self) -> Any:
        if self._dhd is None:
            raise DeviceError("the Force Dimension device is not open")
        return self._dhd

    def _must(self, code: int, what: str) -> None:
        if code < 0:
            raise DeviceError(f"the Force Dimension device could not {what}: {self._dhd.errorGetLastStr()}")


def _quaternion(matrix: list[list[float]]) -> tuple[float, float, float, float]:
    """(4,) xyzw of a rotation matrix; NaN for one that is none, as after a fault of the USB."""
    rows = np.array(matrix)
    if not np.isfinite(rows).all() or abs(float(np.linalg.det(rows)) - 1.0) > 1e-2:
        return (math.nan,) * 4
    x, y, z, w = Rotation.from_matrix(rows).as_quat()
    return (float(x), float(y), float(z), float(w))
