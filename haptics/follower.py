"""The robot's end of a link (:mod:`haptics.link`): set-points for its own position controller, its wrench back.

Nobody holds a robot, so what ends the link there is a set-point x_d, v_d. The robot's controller pulls the robot (x, v)
after it, as a spring and a damper do, by

    F = K (x_d - x) + B (v_d - v)        on the robot        (and the like for turning, with rotation vectors)

so the link hands F v_d to spring, robot and surroundings, which are passive together. That is the port that the passive
methods book, with the F that is held while the set-point goes v_d dt. Whether K and B are what the robot's controller
does is for whoever gives them to know; where they are not, the leader is safe all the same, and the robot is what its
controller makes of it.

    none, tank    v_d = v_o + (x_o - x_d) / SETTLE        x_o, v_o: the leader's, as they count here

With a tank, v_d is shortened while it would take energy, F v_d > 0: by the share that the level allows, and to what the
level pays for. So a tank never owes anything. What the robot's friction and surroundings take comes from the leader's
hand, whose end fills the tanks.

    waves         b v_d + sqrt(2 b) u_in = f_c = -F

because the end is an impedance as everywhere (:mod:`haptics.waves`) and what pushes the set-point into the line is the
reaction of the robot's spring. With F at the end of the tick (backward Euler: x_d goes on by v_d dt) that is linear:

    v_d = -(sqrt(2 b) u_in + K (x_d - x) - B v) / (b + B + K dt)

and then dx = v_d dt and F go into the ledger as the way and the force of a hand do. Limits shorten v_d: v_s is in a
convex set around 0, so with A = b + B + K dt

    -v_s (F_s + sqrt(2 b) u_in + b v_s) = A v_s (v_d - v_s) >= 0

is what the ledger gains by it; a set-point that is held back makes no energy, and F_s v_s <= u_in^2 / 2: the ledger is
never overdrawn.

Limits: speed, a box, and the ramp of the link, by which the allowed speed comes and goes. A set-point begins where the
robot is and never goes farther in a tick than speed_max dt; while the link is not up, and has ramped down, nothing
follows, and the robot is to hold itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntFlag
from typing import Any

import numpy as np

from haptics.link import hear, other_freshness, report, tell
from haptics.link_codes import NONE, TANK, UP, WAVES
from haptics.link_settings import LARGEST, make_link
from haptics.tables import LINK, LINK_OUTPUT, PEER_INPUT, PORT, SETTINGS, Record
from haptics.tank import level_share, pass_energy
from haptics.waves import pass_waves
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Quaternion,
    Vector,
    add,
    conjugate,
    dot,
    from_rotation_vector,
    length,
    multiply,
    normalise,
    put_quaternion,
    put_vector,
    quaternion,
    rotation_vector,
    scaled,
    subtract,
    vector,
)

SETTLE = 0.005
"""s, in which a set-point comes to the leader's place: steps of encoders and gaps between messages are no jerks."""

SPEED_MAX = 0.25
"""m/s: the reduced speed of ISO 10218-1."""

TURN_MAX = 1.0
"""rad/s"""

FOLLOWER_LIMITS = np.dtype(
    [
        ("speed_max", "f8"),  # of the set-point, m/s
        ("turn_max", "f8"),  # rad/s
        ("lower", "f8", 3),  # corners of the box that set-points stay in, robot's frame, m
        ("upper", "f8", 3),
    ],
    align=True,
)
"""What a set-point may do."""

ROBOT_STATE = np.dtype(
    [
        ("position", "f8", 3),  # robot's frame, m
        ("orientation", "f8", 4),
        ("twist", "f8", 6),  # m/s, rad/s
        ("wrench", "f8", 6),  # what its surroundings do to it, N, N·m
        ("engaged", "i4"),  # 1: it may be moved
        ("valid", "i4"),  # 0: nothing of it may be used
    ],
    align=True,
)
"""What a robot says of itself."""

SETPOINT = np.dtype(
    [
        ("position", "f8", 3),  # robot's frame, m
        ("orientation", "f8", 4),
        ("twist", "f8", 6),  # m/s, rad/s
        ("moved", "f8", 6),  # in this tick, m and rotation vector
        ("wrench", "f8", 6),  # F: of the controller's spring on the robot, N, N·m
        ("following", "i4"),  # 1: it is to be commanded; 0: the robot is to hold itself
        ("limited", "i4"),  # Limited
    ],
    align=True,
)
"""What the robot's position controller is to do."""


class Limited(IntFlag):
    """What has held a set-point back."""

    SPEED = 1
    BOX = 2
    TANK = 4


_SPEED, _BOX, _TANK = (int(flag) for flag in Limited)


@inner
def pull(settings: Record, port: Record, setpoint: Record) -> Vector:
    """Force (N) of the controller's spring on the robot while the set-point stands."""
    way = subtract(vector(setpoint.position), vector(port.position))
    return subtract(scaled(way, settings.stiffness), scaled(vector(port.twist[:3]), settings.damping))


@inner
def twisting(settings: Record, port: Record, setpoint: Record) -> Vector:
    """Torque (N·m) of the controller's spring on the robot while the set-point stands."""
    turn = multiply(quaternion(setpoint.orientation), conjugate(quaternion(port.orientation)))
    way = scaled(rotation_vector(turn), settings.rotational_stiffness)
    return subtract(way, scaled(vector(port.twist[3:]), settings.rotational_damping))


@inner
def shortened(v: Vector, most: float) -> Vector:
    """The vector, no longer than that."""
    size = length(v)
    return scaled(v, most / size) if size > most else v


@inner
def in_box(limits: Record, place: Vector, v: Vector, dt: float) -> Vector:
    """The velocity, shortened along each axis so that it leads no farther out of the box."""
    out_x, out_y, out_z = v
    for k in range(3):
        low, high = min(limits.lower[k], place[k]), max(limits.upper[k], place[k])
        least, most = (low - place[k]) / dt, (high - place[k]) / dt
        if k == 0:
            out_x = min(max(v[0], least), most)
        elif k == 1:
            out_y = min(max(v[1], least), most)
        else:
            out_z = min(max(v[2], least), most)
    return out_x, out_y, out_z


@inner
def limit_speed(limits: Record, settings: Record, link: Record, setpoint: Record, v: Vector, w: Vector) -> None:
    """``setpoint.twist`` of the wanted velocity, within speed, box and ramp."""
    # The box first: what leads out of it takes no share of the speed.
    inside = in_box(limits, vector(setpoint.position), v, settings.dt)
    if inside[0] != v[0] or inside[1] != v[1] or inside[2] != v[2]:
        setpoint.limited |= _BOX
    fast = shortened(inside, link.gain * limits.speed_max)
    if length(fast) < length(inside):
        setpoint.limited |= _SPEED
    turning = shortened(w, link.gain * limits.turn_max)
    if settings.rotational_stiffness == 0.0:
        turning = (0.0, 0.0, 0.0)
    elif length(turning) < length(w):
        setpoint.limited |= _SPEED
    put_vector(setpoint.twist[:3], fast)
    put_vector(setpoint.twist[3:], turning)


@inner
def wave_velocity(settings: Record, link: Record, port: Record, setpoint: Record) -> tuple[Vector, Vector]:
    """The velocity that solves the line's equation and the spring's together."""
    dt = settings.dt
    b = settings.impedance[0]
    against = add(scaled(vector(link.wave_in[:3]), math.sqrt(2.0 * b)), pull(settings, port, setpoint))
    v = scaled(against, -1.0 / (b + settings.damping + settings.stiffness * dt))
    b = settings.impedance[1]
    against = add(scaled(vector(link.wave_in[3:]), math.sqrt(2.0 * b)), twisting(settings, port, setpoint))
    w = scaled(against, -1.0 / (b + settings.rotational_damping + settings.rotational_stiffness * dt))
    return v, w


@inner
def leaders_velocity(settings: Record, link: Record, setpoint: Record) -> tuple[Vector, Vector]:
    """The velocity that brings the set-point to where the leader is; what foresees fades while nothing comes."""
    ahead = other_freshness(settings, link) if link.state == UP else 0.0
    way = subtract(vector(link.other_position), vector(setpoint.position))
    turn = multiply(quaternion(link.other_orientation), conjugate(quaternion(setpoint.orientation)))
    v = add(scaled(way, 1.0 / SETTLE), scaled(vector(link.other_twist[:3]), ahead))
    w = add(scaled(rotation_vector(turn), 1.0 / SETTLE), scaled(vector(link.other_twist[3:]), ahead))
    return v, w


@inner
def pay(settings: Record, link: Record, port: Record, setpoint: Record) -> None:
    """Shorten ``setpoint.twist`` to what the tank pays for."""
    dt = settings.dt
    v, w = vector(setpoint.twist[:3]), vector(setpoint.twist[3:])
    first = dt * (dot(pull(settings, port, setpoint), v) + dot(twisting(settings, port, setpoint), w))
    stiff = settings.damping + settings.stiffness * dt
    turning = settings.rotational_damping + settings.rotational_stiffness * dt
    second = dt * (stiff * dot(v, v) + turning * dot(w, w))
    share = level_share(settings, link) if first > 0.0 else 1.0
    level = max(link.credit, 0.0)
    if share * first + share * share * second > level:
        # The root of first s + second s^2 = level, in the form that does not cancel.
        root = math.sqrt(first * first + 4.0 * second * level)
        share = min(share, 2.0 * level / (first + root) if first > 0.0 else (root - first) / (2.0 * second))
    if share < 1.0:
        setpoint.limited |= _TANK
        for k in range(6):
            setpoint.twist[k] *= share


@inner
def go_on(settings: Record, port: Record, setpoint: Record) -> None:
    """The set-point goes on for a tick, and F is what the spring then does."""
    dt = settings.dt
    v, w = vector(setpoint.twist[:3]), vector(setpoint.twist[3:])
    force = add(pull(settings, port, setpoint), scaled(v, settings.damping + settings.stiffness * dt))
    turning = settings.rotational_damping + settings.rotational_stiffness * dt
    torque = add(twisting(settings, port, setpoint), scaled(w, turning))
    put_vector(setpoint.wrench[:3], force)
    put_vector(setpoint.wrench[3:], torque)
    put_vector(setpoint.moved[:3], scaled(v, dt))
    put_vector(setpoint.moved[3:], scaled(w, dt))
    put_vector(setpoint.position, add(vector(setpoint.position), scaled(v, dt)))
    turned: Quaternion = multiply(from_rotation_vector(scaled(w, dt)), quaternion(setpoint.orientation))
    put_quaternion(setpoint.orientation, normalise(turned))


@inner
def rest(port: Record, setpoint: Record) -> None:
    """Nothing is commanded: the set-point is where the robot is."""
    put_vector(setpoint.position, vector(port.position))
    put_quaternion(setpoint.orientation, quaternion(port.orientation))
    for k in range(6):
        setpoint.twist[k] = setpoint.moved[k] = setpoint.wrench[k] = 0.0


@inner
def usable(robot: Record) -> bool:
    """Whether the robot's state may be used: said to be valid, and numbers only."""
    total = 0.0
    for k in range(6):
        total += abs(robot.twist[k]) + abs(robot.wrench[k])
    for k in range(3):
        total += abs(robot.position[k])
    size = 0.0
    for k in range(4):
        size += robot.orientation[k] * robot.orientation[k]
    return robot.valid != 0 and math.isfinite(total) and abs(size - 1.0) < 0.01


@kernel
def follow(
    limits: Record,
    settings: Record,
    link: Record,
    port: Record,
    peer: Record,
    robot: Record,
    setpoint: Record,
    output: Record,
) -> None:
    """One tick of a robot's end: what was heard and measured gives a set-point, and what the leader is told.

    ``limits`` FOLLOWER_LIMITS, ``settings`` LINK_SETTINGS whose stiffness and damping are those of the robot's
    controller, ``link`` LINK, ``port`` PORT, ``peer`` PEER_INPUT, ``robot`` ROBOT_STATE; ``setpoint`` SETPOINT and
    ``output`` LINK_OUTPUT are the results.
    """
    good = usable(robot)
    port.fresh = 1.0
    port.engaged = 1 if good and robot.engaged != 0 else 0
    if good:
        put_vector(port.position, vector(robot.position))
        put_quaternion(port.orientation, normalise(quaternion(robot.orientation)))
    hear(settings, link, peer, port)
    on = good and (link.state == UP or (link.gain > 0.0 and setpoint.following != 0))
    for k in range(6):
        # What was done since the tick before: the line knows the set-point's own velocity, not an estimate.
        port.applied[k] = setpoint.wrench[k]
        port.moved[k] = setpoint.moved[k]
        port.twist[k] = setpoint.twist[k]
        link.port_energy += port.applied[k] * port.moved[k]
    if on and settings.method == WAVES:
        pass_waves(settings, link, port, link.signals)
    elif settings.method == TANK and (on or setpoint.following != 0):
        pass_energy(settings, link, port)
    for k in range(6):
        port.twist[k] = robot.twist[k] if good else 0.0
        port.wrench[k] = robot.wrench[k] if good else 0.0
    setpoint.limited = 0
    if not on or setpoint.following == 0:
        rest(port, setpoint)
    setpoint.following = 1 if on else 0
    if on:
        if settings.method == WAVES:
            v, w = wave_velocity(settings, link, port, setpoint)
        else:
            v, w = leaders_velocity(settings, link, setpoint)
        limit_speed(limits, settings, link, setpoint, v, w)
        if settings.method == TANK:
            pay(settings, link, port, setpoint)
        go_on(settings, port, setpoint)
    for k in range(6):
        if not on or settings.method != WAVES:
            link.signals[k] = port.twist[k]
            link.signals[6 + k] = port.wrench[k]
        else:
            link.signals[6 + k] = 0.0
        output.wrench[k] = setpoint.wrench[k]
    tell(settings, link, port, output)
    report(link, port, output, on)


def make_follower_link(
    stiffness: float,
    damping: float,
    rotational_stiffness: float = 0.0,
    rotational_damping: float = 0.0,
    dt: float = 1e-3,
    **link: Any,
) -> np.ndarray:
    """Make the (1,) LINK_SETTINGS of a robot's end.

    stiffness (N/m), damping (N·s/m), rotational_stiffness (N·m/rad), rotational_damping (N·m·s/rad): of the robot's
    position controller; without rotational_stiffness the robot keeps its orientation. dt: s per tick. link: method,
    impedance, rotational_impedance, scale, mirror, align_speed, distance_max, tank, dead_band, stale_after_ms,
    ramp_up_ms and ramp_down_ms of :func:`haptics.link_settings.make_link`. Raises ValueError.
    """
    device = np.zeros(1, SETTINGS)
    row = device[0]
    row["dt"] = dt
    # What the link knows of a device, for one that bears whatever a robot's controller is made for.
    row["stiffness_max"] = row["damping_max"] = LARGEST
    row["force_max"] = row["torque_max"] = 1.0
    return make_link(
        device,
        law="position-force",
        role="follower",
        stiffness=stiffness,
        damping=damping,
        rotational_stiffness=rotational_stiffness,
        rotational_damping=rotational_damping,
        tank_damping=0.0,
        **link,
    )


def make_limits(
    speed_max: float = SPEED_MAX,
    turn_max: float = TURN_MAX,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
) -> np.ndarray:
    """Make (1,) FOLLOWER_LIMITS: m/s, rad/s, and opposite corners (3,) of a box, m, unbounded when left out.

    Raises ValueError.
    """
    limits = np.zeros(1, FOLLOWER_LIMITS)
    for name, value in (("speed_max", speed_max), ("turn_max", turn_max)):
        if not 0.0 < value <= LARGEST:
            raise ValueError(f"{name} = {value!r} must be above 0 and at most {LARGEST:g}")
        limits[name] = value
    limits["lower"] = -math.inf if lower is None else _corner("lower", lower)
    limits["upper"] = math.inf if upper is None else _corner("upper", upper)
    if not (limits["lower"] < limits["upper"]).all():
        raise ValueError(f"lower = {list(lower or ())} must be below upper = {list(upper or ())} along each axis")
    return limits


def _corner(name: str, values: Sequence[float]) -> np.ndarray:
    corner = np.asarray(values, float)
    if corner.shape != (3,) or not np.isfinite(corner).all():
        raise ValueError(f"{name} = {values!r} must be three finite numbers, m")
    return corner


class Follower:
    """A robot's end of a link, without clock and socket: fill in ``robot`` and ``peer``, call :meth:`go` each tick."""

    def __init__(
        self,
        settings: np.ndarray,
        limits: np.ndarray | None = None,
        *,
        peer: np.ndarray | None = None,
        output: np.ndarray | None = None,
    ) -> None:
        """settings: (1,) LINK_SETTINGS of :func:`make_follower_link`; limits: (1,) FOLLOWER_LIMITS.

        peer, output: (1,) PEER_INPUT and (1,) LINK_OUTPUT that live elsewhere; own ones when left out.
        """
        self.settings: Any = settings[0]
        self.limits: Any = (make_limits() if limits is None else limits)[0]
        self.peer: Any = (np.zeros(1, PEER_INPUT) if peer is None else peer)[0]
        """What has come: message, age_ns, fresh."""
        self.robot: Any = np.zeros(1, ROBOT_STATE)[0]
        """What the robot says."""
        self.output: Any = (np.zeros(1, LINK_OUTPUT) if output is None else output)[0]
        """What is told: message, whether to send it; and how the link is."""
        self.link: Any = np.zeros(1, LINK)[0]
        self.port: Any = np.zeros(1, PORT)[0]
        self.setpoint: Any = np.zeros(1, SETPOINT)[0]
        """What the robot is to do."""
        for row in (self.robot, self.port, self.setpoint):
            row["orientation"][3] = 1.0
        self.link["other_orientation"][3] = self.link["offset_orientation"][3] = 1.0
        self.passive = bool(self.settings["method"] != NONE)
        """Whether anything keeps the link passive under delay."""

    def go(self) -> Any:
        """One tick; returns ``setpoint``."""
        follow(self.limits, self.settings, self.link, self.port, self.peer, self.robot, self.setpoint, self.output)
        return self.setpoint


def warm_up() -> None:
    """Compile the kernel, or load it from the cache."""
    Follower(make_follower_link(1.0, 1.0)).go()
