"""LINK_SETTINGS from the configured numbers and the settings of the device: one end of a link."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.link_codes import COUNTERPART, FOUR_CHANNEL, LAWS, METHODS, MISFIT, POSITION_FORCE_LEADER, ROLES, WAVES
from haptics.tables import LINK_SETTINGS

MIRRORS = {
    "": (1.0, 1.0, 1.0),
    "x": (-1.0, 1.0, 1.0),
    "y": (1.0, -1.0, 1.0),
    "z": (1.0, 1.0, -1.0),
}
"""Diagonal of the reflection by the axis that it turns round, scene axes."""

IMPEDANCE = 10.0
"""N·s/m, of waves: a hand in free motion feels about as much of it as of a spoon in oil; capped by the card.

At the end whose scale s is above 1 it becomes IMPEDANCE / s^2, as the other end's, whose scale is 1 / s, stays: so the
two fit by themselves.
"""

ROTATIONAL_IMPEDANCE = 0.01
"""N·m·s/rad: the same on a lever of 3 cm."""

TANK_SHARE = 0.25
"""Of the device's largest damping, that may fill a tank unless said otherwise."""

KEEP_ALIVE_MS = 20.0
"""An end that stays within the dead-band says something so often all the same; what is heard of velocities fades so."""

MAX_ALIGN_SPEED = 1.0
MAX_DEAD_BAND = 0.5
MAX_TANK = 10.0
MIN_SCALE = 1e-3
MAX_SCALE = 1e3
LARGEST = 1e6
"""N/m, N·s/m, m: no link means more than this."""


def make_link(
    settings: np.ndarray,
    *,
    law: str = "position-position",
    role: str = "",
    method: str = "waves",
    stiffness: float | None = None,
    damping: float | None = None,
    rotational_stiffness: float | None = None,
    rotational_damping: float = 0.0,
    rotational_stiffness_max: float | None = None,
    force_gain: float | None = None,
    impedance: float | None = None,
    rotational_impedance: float | None = None,
    scale: float = 1.0,
    mirror: str = "",
    align_speed: float = 0.0,
    distance_max: float = 0.1,
    tank: float = 0.1,
    tank_damping: float | None = None,
    dead_band: float = 0.0,
    share: float = 0.0,
    stale_after_ms: float = 500.0,
    ramp_up_ms: float = 500.0,
    ramp_down_ms: float = 100.0,
) -> np.ndarray:
    """Make the (1,) LINK_SETTINGS of one end, within what its device renders, from its (1,) SETTINGS.

    law: a key of :data:`haptics.link_codes.LAWS`; "position-force" needs a ``role``, "leader" or "follower".
    method: a key of METHODS. stiffness (N/m), damping (N·s/m) and rotational_stiffness (N·m/rad) are by default those
    of the coupling and are capped by the card as those are; without torque at the device nothing turns.
    rotational_stiffness_max (N·m/rad): of the card. force_gain (0 to 1): share of the other end's wrench that is felt,
    by default 1 where the law has it felt. impedance (N·s/m) and rotational_impedance (N·m·s/rad): of the waves; the
    other end's impedance is this one times scale squared, its rotational one the same. scale: metres here per metre
    there. mirror: axis along which the other end is reflected, or "". align_speed (m/s): at which two ends that came up
    apart come together; 0, or with waves: they stay apart. distance_max (m, device): ends farther apart are let go.
    tank (J), tank_damping (N·s/m): wanted energy, and the most that fills it. dead_band (0 to 0.5): share by which a
    signal changes before it is sent. share (0 to 1): of the other hand in where the tool is to go.

    Raises ValueError, naming the argument and what would be right.
    """
    device = settings[0]
    row = np.zeros(1, LINK_SETTINGS)
    end = row[0]
    end["dt"] = device["dt"]
    end["on"] = 1
    end["law"] = _law(law, role)
    end["method"] = METHODS[_one_of("method", method, tuple(METHODS))]
    _gains(end, device, stiffness, damping)
    _turning(end, device, rotational_stiffness, rotational_damping, rotational_stiffness_max)
    end["force_gain"] = _force_gain(int(end["law"]), law, role, force_gain)
    _between("scale", scale, MIN_SCALE, MAX_SCALE, "metres here per metre there")
    end["scale"] = scale
    _impedances(end, device, impedance, rotational_impedance)
    end["mirror"] = MIRRORS[_one_of("mirror", mirror, tuple(MIRRORS))]
    _between("align_speed", align_speed, 0.0, MAX_ALIGN_SPEED, "m/s")
    end["align_speed"] = align_speed
    _positive("distance_max", distance_max, LARGEST, "m")
    end["distance_max"] = distance_max
    _positive("tank", tank, MAX_TANK, "J")
    end["tank"] = tank
    filling = TANK_SHARE * float(device["damping_max"]) if tank_damping is None else tank_damping
    _between("tank_damping", filling, 0.0, LARGEST, "N·s/m")
    end["tank_damping"] = min(filling, device["damping_max"])
    _between("dead_band", dead_band, 0.0, MAX_DEAD_BAND, "of the signal")
    end["dead_band"] = dead_band
    _between("share", share, 0.0, 1.0, "of the other hand")
    end["share"] = share
    _times(end, stale_after_ms, ramp_up_ms, ramp_down_ms)
    return row


LAW_NAMES = {
    **{code: f"law {name!r}" for name, code in LAWS.items()},
    **{code: f"law 'position-force' as {role}" for role, code in ROLES.items()},
}
"""Laws, with their roles, by their numbers."""

_AXES = ("", "x", "y", "z")
_METHOD_NAMES = {code: name for name, code in METHODS.items()}


def misfit(settings: Any, message: Any) -> str:
    """Tell what of the other end does not belong to this one, in words; "" where they fit.

    settings: LINK_SETTINGS of this end; message: PEER of the other one.
    """
    found = []
    method, other_method = int(settings["method"]), int(message["method"])
    if method != other_method:
        found.append(
            f"method {_METHOD_NAMES[method]!r} here and {_METHOD_NAMES.get(other_method, other_method)!r} there"
        )
    elif method == WAVES:
        scale = float(settings["scale"])
        wanted = float(settings["impedance"][0]) * scale**2, float(settings["impedance"][1])
        there = float(message["impedance"][0]), float(message["impedance"][1])
        if any(abs(a - b) > 1e-6 * a for a, b in zip(wanted, there, strict=True)):
            found.append(
                f"waves of {wanted[0]:g} N·s/m, scale counted, and {wanted[1]:g} N·m·s/rad here, "
                f"of {there[0]:g} and {there[1]:g} there"
            )
    law, other_law = int(settings["law"]), int(message["law"])
    if other_law != COUNTERPART[law]:
        found.append(f"{LAW_NAMES.get(law, law)} here and {LAW_NAMES.get(other_law, other_law)} there")
    mirror = next((k + 1 for k in range(3) if settings["mirror"][k] < 0.0), 0)
    if mirror != message["mirror"]:
        found.append(f"mirror {_AXES[mirror]!r} here and {_AXES[int(message['mirror'])]!r} there")
    scale, other_scale = float(settings["scale"]), float(message["scale"])
    if not abs(scale * other_scale - 1.0) <= MISFIT:
        found.append(f"scale {scale:g} here and {other_scale:g} there, whose product is not 1")
    share, other_share = float(settings["share"]), float(message["share"])
    if share + other_share != 0.0 and not abs(share + other_share - 1.0) <= MISFIT:
        found.append(f"share {share:g} here and {other_share:g} there, which do not add up to 1")
    return "; ".join(found)


def _law(law: str, role: str) -> int:
    _one_of("law", law, tuple(LAWS))
    if law != "position-force":
        if role:
            raise ValueError(f"role = {role!r} belongs to law = 'position-force'; the two ends of {law!r} are alike")
        return LAWS[law]
    if role not in ROLES:
        raise ValueError(f"role = {role!r} must be 'leader' or 'follower' at an end of law = 'position-force'")
    return ROLES[role]


def _gains(end: np.void, device: np.void, stiffness: float | None, damping: float | None) -> None:
    stiff = float(device["stiffness"]) if stiffness is None else stiffness
    damp = float(device["damping"]) if damping is None else damping
    _positive("stiffness", stiff, LARGEST, "N/m")
    _between("damping", damp, 0.0, LARGEST, "N·s/m")
    end["stiffness"] = min(stiff, device["stiffness_max"])
    end["damping"] = min(damp, device["damping_max"])


def _turning(end: np.void, device: np.void, stiffness: float | None, damping: float, largest: float | None) -> None:
    stiff = float(device["rotational_stiffness"]) if stiffness is None else stiffness
    _between("rotational_stiffness", stiff, 0.0, LARGEST, "N·m/rad")
    _between("rotational_damping", damping, 0.0, LARGEST, "N·m·s/rad")
    if device["torque_free"]:
        return
    end["rotational_stiffness"] = stiff if largest is None else min(stiff, largest)
    end["rotational_damping"] = min(damping, _largest_turning_damping(device))


def _force_gain(code: int, law: str, role: str, given: float | None) -> float:
    feels = code in (POSITION_FORCE_LEADER, FOUR_CHANNEL)
    if given is None:
        return 1.0 if feels else 0.0
    _between("force_gain", given, 0.0, 1.0, "of the other end's wrench")
    if given > 0.0 and not feels:
        said = f"a {role} of {law!r}" if role else repr(law)
        raise ValueError(
            f"force_gain = {given:g} belongs to 'four-channel' and to the leader of 'position-force'; with {said} no "
            "wrench of the other end is felt"
        )
    return given


def _impedances(end: np.void, device: np.void, impedance: float | None, rotational: float | None) -> None:
    largest = float(device["damping_max"])
    if impedance is None:
        impedance = min(IMPEDANCE / max(1.0, float(end["scale"])) ** 2, largest)
        if impedance <= 0.0 and end["method"] == WAVES:
            raise ValueError("method = 'waves' needs a device that renders damping; its card says damping_max = 0")
    else:
        _positive("impedance", impedance, LARGEST, "N·s/m")
        if impedance > largest:
            raise ValueError(
                f"impedance = {impedance:g} must be at most {largest:g} N·s/m, the damping that this device renders; "
                "the other end needs scale squared times as much"
            )
    turning = _largest_turning_damping(device)
    if rotational is None:
        rotational = ROTATIONAL_IMPEDANCE if device["torque_free"] else min(ROTATIONAL_IMPEDANCE, turning)
    else:
        _positive("rotational_impedance", rotational, LARGEST, "N·m·s/rad")
        if not device["torque_free"] and rotational > turning:
            raise ValueError(
                f"rotational_impedance = {rotational:g} must be at most {turning:.3g} N·m·s/rad, the damping that this "
                "device renders on the lever torque_max / force_max; the other end needs the same"
            )
    end["impedance"] = (impedance, rotational)


def _largest_turning_damping(device: np.void) -> float:
    """Damping of force on the lever by which the largest force makes the largest torque, N·m·s/rad."""
    if device["force_max"] <= 0.0:
        return 0.0
    return float(device["damping_max"] * (device["torque_max"] / device["force_max"]) ** 2)


def _times(end: np.void, stale_after_ms: float, ramp_up_ms: float, ramp_down_ms: float) -> None:
    period_ms = 1e3 * float(end["dt"])
    _between("stale_after_ms", stale_after_ms, 2.0 * period_ms, 6e4, "ms")
    if end["dead_band"] > 0.0 and stale_after_ms < 3.0 * KEEP_ALIVE_MS:
        raise ValueError(
            f"stale_after_ms = {stale_after_ms:g} must be at least {3.0 * KEEP_ALIVE_MS:g} ms with a dead_band: "
            f"within it an end says something every {KEEP_ALIVE_MS:g} ms only"
        )
    end["keep_alive_ticks"] = max(1, round(KEEP_ALIVE_MS / period_ms))
    end["stale_after_ns"] = round(stale_after_ms * 1e6)
    for name, value in (("ramp_up", ramp_up_ms), ("ramp_down", ramp_down_ms)):
        _positive(f"{name}_ms", value, 3.6e6, "ms")
        end[f"{name}_ticks"] = max(1, math.floor(value / period_ms + 1e-9))


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"{name} = {value!r} must be one of {', '.join(map(repr, known))}")
    return value


def _between(name: str, value: float, low: float, high: float, unit: str) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} = {value!r} must be from {low:g} to {high:g} {unit}")


def _positive(name: str, value: float, high: float, unit: str) -> None:
    if not 0.0 < value <= high:
        raise ValueError(f"{name} = {value!r} must be above 0 and at most {high:g} {unit}")
