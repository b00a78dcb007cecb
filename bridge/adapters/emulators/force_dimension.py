"""A stand-in for `forcedimension_core`: functions of the same names, arguments, units and return codes, one device.

The device is a sigma.7 in a hand. `HAPTICD_EMULATED_JOURNAL` names its journal, if any. Its guards are those that the
functions promise: forces within `setMaxForce`, none after the watchdog's time without a command, none when off.
"""

import os
import time
from collections.abc import MutableSequence, Sequence
from enum import IntEnum
from types import SimpleNamespace

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.adapters.journal import Journal
from bridge.adapters.plant import Plant
from haptics.cards import load_card
from haptics.last_line import NO_WRENCH, Wrench

ENVIRONMENT = "HAPTICD_EMULATED_JOURNAL"
WATCHDOG_CAUSE, SOFTWARE_CAUSE = 3, 4


class DeviceType(IntEnum):
    """As the package numbers them."""

    SIGMA7_RIGHT = 104


class Status:
    """What `getStatus` fills; of seventeen numbers those that are read."""

    force = 0
    brake = 0
    forceoffcause = 0


class _Device:
    def __init__(self) -> None:
        path = os.environ.get(ENVIRONMENT)
        self.plant = Plant(load_card("sigma7"), Journal(path) if path else None)
        self.open = False
        self.enabled = False
        self.cause = SOFTWARE_CAUSE
        self.braked = True
        self.max_force = -1.0
        self.max_torque = -1.0
        self.watchdog_s = 0.0
        self.commanded_at = 0
        self.expert = False

    def good(self) -> bool:
        """Whether it answers; its watchdog is looked at meanwhile."""
        late = time.monotonic_ns() - self.commanded_at > self.watchdog_s * 1e9
        if self.enabled and self.watchdog_s > 0.0 and late:
            self.off(WATCHDOG_CAUSE)
        return self.open and not self.plant.unplugged

    def off(self, cause: int) -> None:
        """No forces from now on."""
        self.enabled, self.cause = False, cause
        if self.plant.applied != NO_WRENCH:
            self.plant.write(NO_WRENCH)

    def apply(self, force: Sequence[float], torque: Sequence[float]) -> int:
        """A command, within the largest force and torque."""
        if not self.good():
            return -1
        self.commanded_at = time.monotonic_ns()
        if not self.enabled:
            return -1
        shortened = []
        for values, largest in ((force, self.max_force), (torque, self.max_torque)):
            size = float(np.linalg.norm(values))
            share = largest / size if 0.0 <= largest < size else 1.0
            shortened += [share * float(value) for value in values]
        a, b, c, d, e, f = shortened
        wrench: Wrench = (a, b, c, d, e, f)
        self.plant.write(wrench)
        return 0


_device: _Device | None = None


def _it() -> _Device:
    global _device
    if _device is None:
        _device = _Device()
    return _device


def _code(good: bool) -> int:
    return 0 if good else -1


def open() -> int:
    """The only device."""
    _it().open = True
    return 0 if not _it().plant.unplugged else -1


def openID(index: int) -> int:
    """By its place among those plugged in."""
    return open() if index == 0 else -1


def close(ID: int = -1) -> int:
    """No more of it."""
    _it().off(SOFTWARE_CAUSE)
    _it().open = False
    return 0


def stop(ID: int = -1) -> int:
    """Forces off, brakes on."""
    _it().off(SOFTWARE_CAUSE)
    _it().braked = True
    return _code(_it().good())


def errorGetLastStr() -> str:
    """What went wrong last."""
    return "no device found" if _it().plant.unplugged or not _it().open else "no error"


def getSystemType(ID: int = -1) -> DeviceType:
    """What it is."""
    return DeviceType.SIGMA7_RIGHT


def hasWrist(ID: int = -1) -> bool:
    """Whether it senses how it is turned."""
    return True


def hasActiveWrist(ID: int = -1) -> bool:
    """Whether it drives turning."""
    return True


def setMaxForce(limit: float, ID: int = -1) -> int:
    """N; below 0 for none."""
    _it().max_force = limit
    return _code(_it().good())


def setMaxTorque(limit: float, ID: int = -1) -> int:
    """N·m; below 0 for none."""
    _it().max_torque = limit
    return _code(_it().good())


def setGravityCompensation(enable: bool, ID: int = -1) -> int:
    """Carry its own weight."""
    return _code(_it().good())


def enableForce(enable: bool, ID: int = -1) -> int:
    """Forces on or off."""
    device = _it()
    device.commanded_at = time.monotonic_ns()
    device.enabled, device.braked = enable, device.braked and not enable
    return _code(device.good())


def getStatus(out: Status, ID: int = -1) -> int:
    """How it is."""
    device = _it()
    good = device.good()
    out.force, out.brake = int(device.enabled), int(device.braked)
    out.forceoffcause = 0 if device.enabled else device.cause
    return _code(good)


def getButtonMask(ID: int = -1) -> int:
    """Which are pressed."""
    return 0


def getPosition(out: MutableSequence[float], ID: int = -1) -> int:
    """m"""
    device = _it()
    if not device.good():
        return -1
    out[:3] = device.plant.read()[0].position.tolist()
    return 0


def getPositionAndOrientationFrame(
    p_out: MutableSequence[float], matrix_out: Sequence[MutableSequence[float]], ID: int = -1
) -> int:
    """m, and the rotation matrix by rows."""
    device = _it()
    if not device.good():
        return -1
    pose, _ = device.plant.read()
    p_out[:3] = pose.position.tolist()
    for row, values in zip(matrix_out, Rotation.from_quat(pose.orientation).as_matrix().tolist(), strict=True):
        row[:3] = values
    return 0


def getLinearVelocity(out: MutableSequence[float], ID: int = -1) -> int:
    """m/s"""
    out[:3] = _it().plant.velocity.tolist()
    return _code(_it().good())


def getAngularVelocityRad(out: MutableSequence[float], ID: int = -1) -> int:
    """rad/s"""
    out[:3] = _it().plant.turning.tolist()
    return _code(_it().good())


def setForceAndTorqueAndGripperForce(f: Sequence[float], t: Sequence[float], fg: float, ID: int = -1) -> int:
    """N, N·m, N"""
    return _it().apply(f, t)


def enableExpertMode() -> int:
    """Let `setWatchdog` through."""
    _it().expert = True
    return 0


def disableExpertMode() -> int:
    """No longer."""
    _it().expert = False
    return 0


def setWatchdog(duration: int, ID: int = -1) -> int:
    """In units of 125 us, of which a byte holds 255; 0 for none."""
    device = _it()
    if not device.expert or not 0 <= duration <= 255:
        return -1
    device.watchdog_s = duration * 125e-6
    return 0


_EXPERT = {"enableExpertMode": enableExpertMode, "disableExpertMode": disableExpertMode, "setWatchdog": setWatchdog}
_NAMES = (
    *("open", "openID", "close", "stop", "errorGetLastStr", "getSystemType", "hasWrist", "hasActiveWrist"),
    *("setMaxForce", "setMaxTorque", "setGravityCompensation", "enableForce", "getStatus", "getButtonMask"),
    *("getPosition", "getPositionAndOrientationFrame", "getLinearVelocity", "getAngularVelocityRad"),
    "setForceAndTorqueAndGripperForce",
)

dhd = SimpleNamespace(**{name: globals()[name] for name in _NAMES}, expert=SimpleNamespace(**_EXPERT))
containers = SimpleNamespace(Status=Status)
