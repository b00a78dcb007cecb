"""SETTINGS from a device card and the configured numbers: every limit is decided here, before the first tick."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from haptics.cards import LEAST_STIFFNESS, DeviceCard
from haptics.codes import CONSTRAINT, DAMPED, SPRING
from haptics.sphere import DEFAULT_RADIUS
from haptics.tables import SETTINGS, VELOCITY_SAMPLES

DEFAULT_SPEED_MAX = 3.0
"""m/s, for a card that does not say how fast its device moves: above what a hand does with a desktop device."""

SLEW_MARGIN = 1.5
"""The slew limit passes 1.5 times the steepest honest contact, K_max * v_max per second, and clips what is steeper."""

SLEW_SPEED = 0.5
"""m/s: fast contact of a hand; impacts above it are slew-limited on a device that can move faster."""

VELOCITIES = ("window", "adaptive")
"""How velocities are estimated, see :mod:`haptics.velocity`."""

LAWS = {"spring": SPRING, "damped": DAMPED, "constraint": CONSTRAINT}
"""Of the coupling, see :mod:`haptics.coupling`, by what the configuration calls them."""

PASSIVITY_SHARE = 0.9
"""Of the largest damping of a device, what the passivity controller may add (SAI's choice)."""

UNKNOWN_STEP = 1e-5
"""m: encoder step of a device whose card does not tell it; that of desktop devices, and 0.01 m/s at 1 kHz."""

ANGLE_STEP = 1e-4
"""rad: encoder step of turning; cards do not tell it."""
WORKSPACE_MARGIN = 0.01
"""m: a device that is calibrated or placed a little wrongly is not taken for one that lies."""

MAX_DRIFT = 0.3
"""Of the device's speed: more of a difference between hand and tool would be seen."""

MIN_SCALE = 1e-3
MAX_SCALE = 1e3


def make_settings(
    card: DeviceCard,
    *,
    tick_hz: float = 1000.0,
    stiffness: float = 400.0,
    damping: float = 1.0,
    rotational_stiffness: float = 0.5,
    virtual_sphere: float = 0.0,
    sphere_radius: float = DEFAULT_RADIUS,
    tool_reach: float = 0.0,
    scale: float = 1.0,
    workspace_position: Sequence[float] = (0.0, 0.0, 0.0),
    workspace_orientation: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
    ramp_up_ms: float = 500.0,
    ramp_down_ms: float = 100.0,
    ramp_fault_ms: float = 15.0,
    hold_after_ms: float = 5.0,
    stale_after_ms: float = 20.0,
    lease_ms: float = 2000.0,
    valid_for_ms: float = 10.0,
    velocity_window_ms: float = 12.0,
    velocity: str = "window",
    engage_distance: float = 0.005,
    jump_margin: float = 0.005,
    require_deadman: bool = False,
    law: str = "spring",
    world_stiffness: float | None = None,
    world_damping: float | None = None,
    passivity: bool = True,
    workspace_centre: Sequence[float] = (0.0, 0.0, 0.0),
    workspace_limits: Sequence[float] | None = None,
    drift: float = 0.0,
    rate_adaptation: bool = True,
) -> np.ndarray:
    """Make the (1,) SETTINGS table of one device in one scene.

    Gains are SI at the device and are capped by the card. A card that publishes no stiffness or damping limit caps them
    at what is asked for here, so that no client can go beyond what the author of the configuration chose.
    ``virtual_sphere`` is the gain, 0 (off) to 1, of the force that stands for a torque that a force-only device cannot
    render, and ``sphere_radius`` its lever in the scene, m (:mod:`haptics.sphere`).
    ``law``: "spring" (the damper within the spring), "damped" (always, on the device's velocity) or "constraint" (what
    contacts and fixtures hold of the stretch), see :mod:`haptics.coupling`. ``world_stiffness`` (N/m) and
    ``world_damping`` (N·s/m), at the device, are those of the spring that pulls the tool; without them they are what
    the hand feels, by SET_GAINS as well.
    ``passivity`` switches the controller of :mod:`haptics.passivity`, which may add a share of the damping that the
    card allows; for torques that on the lever by which the card's largest force makes its largest torque.
    ``rate_adaptation`` lets the stiffness fall with the rate of the samples (:mod:`haptics.rate`).
    ``velocity``: over all of ``velocity_window_ms`` ("window"), or over as much of it as is straight ("adaptive").
    ``tool_reach`` (m) is the distance of a tool mesh's farthest point from the tip centre, 0 for a sphere tip.

    ``workspace_limits`` (3,) m are the edges of a box about ``workspace_centre`` (device frame) that the handle cannot
    leave, by default those of the card; samples beyond it by more than WORKSPACE_MARGIN are not used. ``drift`` is the
    largest share of the device's own speed by which the map moves to bring the hand back to the centre.

    The slew limit per tick is ``max(1.5 K_max v dt, force_max / shortest ramp)``: the first term lets honest contact
    through at hand speed v, the second guarantees that every ramp ends in time, since a ramp lowers the largest allowed
    force by ``force_max / ramp`` per tick.

    Raises ValueError, naming the argument and what would be right.
    """
    _finite("tick_hz", tick_hz, low=10.0, high=10000.0, unit="Hz")
    dt = 1.0 / tick_hz
    _stiffness("stiffness", stiffness)
    _not_negative("damping", damping, "N·s/m")
    _not_negative("rotational_stiffness", rotational_stiffness, "N·m/rad")
    _finite("virtual_sphere", virtual_sphere, low=0.0, high=1.0, unit="")
    _positive("sphere_radius", sphere_radius, "m")
    if virtual_sphere > 0.0 and (card.renders_torque or card.input_only or card.sensed < 5):
        raise ValueError(
            f"virtual_sphere = {virtual_sphere:g} needs a device that senses its orientation and renders force without "
            f"torque; the card of {card.name!r} says sensed = {card.sensed}, actuated = {card.actuated}"
        )
    if law not in LAWS:
        raise ValueError(f"law = {law!r} must be one of {', '.join(LAWS)}")
    if velocity not in VELOCITIES:
        raise ValueError(f"velocity = {velocity!r} must be one of {', '.join(VELOCITIES)}")
    if world_stiffness is not None:
        _stiffness("world_stiffness", world_stiffness)
    if world_damping is not None:
        _not_negative("world_damping", world_damping, "N·s/m")
    _not_negative("tool_reach", tool_reach, "m")
    _finite("scale", scale, low=MIN_SCALE, high=MAX_SCALE, unit="scene metres per device metre")
    for name, value in (
        ("ramp_up_ms", ramp_up_ms),
        ("ramp_down_ms", ramp_down_ms),
        ("ramp_fault_ms", ramp_fault_ms),
        ("hold_after_ms", hold_after_ms),
        ("stale_after_ms", stale_after_ms),
        ("lease_ms", lease_ms),
        ("valid_for_ms", valid_for_ms),
        ("velocity_window_ms", velocity_window_ms),
    ):
        _finite(name, value, low=0.0, high=3.6e6, unit="ms", open_low=True)
    _positive("engage_distance", engage_distance, "m")
    _positive("jump_margin", jump_margin, "m")
    if hold_after_ms >= stale_after_ms:
        raise ValueError(f"hold_after_ms = {hold_after_ms:g} must be less than stale_after_ms = {stale_after_ms:g}")
    if lease_ms < stale_after_ms:
        raise ValueError(f"lease_ms = {lease_ms:g} must not be less than stale_after_ms = {stale_after_ms:g}")
    longest_ms = (VELOCITY_SAMPLES - 1) * dt * 1e3
    if velocity_window_ms > longest_ms:
        raise ValueError(
            f"velocity_window_ms = {velocity_window_ms:g} must be at most {longest_ms:g} at {tick_hz:g} Hz "
            f"(the estimator keeps {VELOCITY_SAMPLES} samples)"
        )
    position = _vector("workspace_position", workspace_position, 3)
    orientation = _vector("workspace_orientation", workspace_orientation, 4)
    norm = float(np.linalg.norm(orientation))
    if abs(norm - 1.0) > 1e-3:
        raise ValueError(f"workspace_orientation has norm {norm:g}; a unit quaternion [x, y, z, w] is needed")

    centre = _vector("workspace_centre", workspace_centre, 3)
    limits = np.zeros(3)
    if workspace_limits is not None:
        limits = _vector("workspace_limits", workspace_limits, 3)
        if np.any(limits <= 0.0):
            raise ValueError(f"workspace_limits = {list(limits)} must be three edges above 0 m")
    elif card.workspace_size is not None:
        limits = np.array(card.workspace_size)
    _finite("drift", drift, low=0.0, high=MAX_DRIFT, unit="of the device's speed")
    reach = card.workspace_radius
    if reach is None and np.any(limits > 0.0):
        reach = 0.5 * float(limits.min())
    if drift > 0.0 and reach is None:
        raise ValueError(
            f"drift = {drift:g} needs to know the workspace: the card of {card.name!r} says neither workspace_radius "
            "nor workspace_size, and no workspace_limits are given"
        )

    settings = np.zeros(1, SETTINGS)
    row = settings[0]
    row["dt"] = dt
    row["stiffness_max"] = card.stiffness_max if card.stiffness_max is not None else stiffness
    row["damping_max"] = card.damping_max if card.damping_max is not None else damping
    row["stiffness"] = min(stiffness, row["stiffness_max"])
    row["damping"] = min(damping, row["damping_max"])
    largest_turning = card.rotational_stiffness_max
    row["rotational_stiffness"] = (
        rotational_stiffness if largest_turning is None else min(rotational_stiffness, largest_turning)
    )
    row["tool_reach"] = tool_reach
    row["force_max"] = card.force_max or 0.0
    row["torque_max"] = card.torque_max or 0.0
    row["speed_max"] = card.speed_max if card.speed_max is not None else DEFAULT_SPEED_MAX
    row["jump_margin"] = jump_margin
    row["scale"] = scale
    row["workspace_position"] = position
    row["workspace_orientation"] = orientation / norm
    row["engage_distance"] = engage_distance
    row["velocity_window_s"] = velocity_window_ms * 1e-3
    row["hold_after_ns"] = round(hold_after_ms * 1e6)
    row["stale_after_ns"] = round(stale_after_ms * 1e6)
    row["valid_for_ns"] = round(valid_for_ms * 1e6)
    row["lease_ticks"] = _ticks(lease_ms, tick_hz)
    row["ramp_up_ticks"] = _ticks(ramp_up_ms, tick_hz)
    row["ramp_down_ticks"] = _ticks(ramp_down_ms, tick_hz)
    row["ramp_fault_ticks"] = _ticks(ramp_fault_ms, tick_hz)
    row["require_deadman"] = int(require_deadman)
    row["torque_free"] = int(not card.renders_torque)
    row["sensed"] = card.sensed
    row["actuated"] = card.actuated
    row["axis"] = card.axis
    row["sphere"] = virtual_sphere / sphere_radius
    row["workspace_centre"] = centre
    row["workspace_half"] = np.where(limits > 0.0, 0.5 * limits + WORKSPACE_MARGIN, 0.0)
    row["workspace_reach"] = reach or 0.0
    row["drift"] = drift
    shortest = min(int(row["ramp_down_ticks"]), int(row["ramp_fault_ticks"]))
    contact_speed = min(float(row["speed_max"]), SLEW_SPEED)
    row["force_slew"] = max(SLEW_MARGIN * row["stiffness_max"] * contact_speed * dt, row["force_max"] / shortest)
    # A torque is a force on a lever: it may change in the same proportion of its own limit.
    if card.force_max is not None:
        row["torque_slew"] = row["torque_max"] * row["force_slew"] / row["force_max"]
    row["law"] = LAWS[law]
    row["world_stiffness"] = 0.0 if world_stiffness is None else world_stiffness
    row["world_damping"] = -1.0 if world_damping is None else world_damping
    row["passivity"] = int(passivity)
    row["rate_adaptation"] = int(rate_adaptation)
    row["passivity_damping"][0] = PASSIVITY_SHARE * row["damping_max"]
    if card.force_max is not None:
        row["passivity_damping"][1] = row["passivity_damping"][0] * (row["torque_max"] / row["force_max"]) ** 2
    step = card.resolution if card.resolution else UNKNOWN_STEP
    row["velocity_step"] = step if velocity == "adaptive" else 0.0
    row["passivity_speed"] = (step / dt, ANGLE_STEP / dt)
    return settings


def _ticks(milliseconds: float, tick_hz: float) -> int:
    """Whole ticks that last no longer than asked for, at least one."""
    return max(1, math.floor(milliseconds * 1e-3 * tick_hz + 1e-9))


def _finite(name: str, value: float, *, low: float, high: float, unit: str, open_low: bool = False) -> None:
    if not math.isfinite(value) or value > high or value < low or (open_low and value <= low):
        raise ValueError(f"{name} = {value!r} must be {'above' if open_low else 'from'} {low:g} to {high:g} {unit}")


def _stiffness(name: str, value: float) -> None:
    if not math.isfinite(value) or value < LEAST_STIFFNESS:
        raise ValueError(f"{name} = {value!r} must be a finite number, {LEAST_STIFFNESS:g} N/m or more")


def _positive(name: str, value: float, unit: str) -> None:
    if not math.isfinite(value) or value <= 0.0:
        raise ValueError(f"{name} = {value!r} must be a finite number above 0 {unit}")


def _not_negative(name: str, value: float, unit: str) -> None:
    if not math.isfinite(value) or value < 0.0:
        raise ValueError(f"{name} = {value!r} must be a finite number, 0 {unit} or more")


def _vector(name: str, value: Sequence[float], count: int) -> np.ndarray:
    vector = np.asarray(value, dtype=np.float64)
    if vector.shape != (count,) or not np.all(np.isfinite(vector)):
        raise ValueError(f"{name} = {value!r} must be {count} finite numbers")
    return vector
