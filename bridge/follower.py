"""``hapticd follow``: a robot at the other end of a daemon's link, at 1 kHz.

The loop reads what the daemon says and what the robot measures, lets :mod:`haptics.follower` make a set-point of them,
commands it, and tells the daemon. What the link means is adopted from the daemon's first message: method, law, and
impedance of the waves. Your robot is a class with the methods of :class:`bridge.follower_robots.Robot`:

    from bridge.follower_robots import RobotReading

    class MyRobot:
        stiffness, damping = 4000.0, 250.0            # of its position controller

        def __init__(self, host="192.168.1.2"):       # --set host=...
            self.arm = vendor.connect(host)

        def read(self):
            s = self.arm.newest_state()               # never wait; None when there is nothing new
            return RobotReading(s.position, s.quaternion, s.twist, s.wrench)

        def command(self, position, orientation, twist):
            self.arm.servo_to(position, orientation)

        def stop(self):
            self.arm.hold()

When something is wrong:

    the daemon is silent           set-points come to rest by the ramp, then `stop()`; it goes on when the daemon does
    the robot has nothing new      after the robot's timeout `stop()`, and no more messages: the daemon's link is lost
                                   (SILENT) and its force ramps down; it goes on when the robot does
    the robot says nonsense        `stop()`, the daemon is told that nobody is felt, and the process ends
    `read` or `command` raises     the same
    this process is held up        what came meanwhile is thrown away and the link begins anew
    SIGINT, SIGTERM                set-points come to rest by the ramp, `stop()`, end; a second one ends at once
"""

import contextlib
import gc
import ipaddress
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import zmq

from bridge.client import HapticdError, find_endpoints, find_keys, is_address
from bridge.ending import asked_to_end
from bridge.exit_codes import ExitCode
from bridge.follower_robots import Robot, RobotError, RobotReading
from bridge.peer_socket import Peer, open_peer
from bridge.realtime import Waiter, set_timer_slack
from bridge.schema import MAX_COORDINATE, MAX_RATE, MAX_WRENCH
from bridge.wire import PEER_HELLO
from haptics.follower import Follower, Limited, make_follower_link, make_limits, warm_up
from haptics.link_codes import COUNTERPART, METHODS, POSITION_FORCE_FOLLOWER, LinkReason, LinkState
from haptics.link_settings import misfit
from haptics.tables import RECORD

PERIOD_NS = 1_000_000

HELLO_NS = 100_000_000
"""Between two greetings while nothing has come yet."""

LINE_NS = 500_000_000
"""Between two lines of status."""

THROWN_AWAY = 256
"""Messages read off at most after this process was held up."""

STALE_AFTER_MS = 100.0
ROBOT_TIMEOUT_MS = 20.0

METHOD_NAMES = {code: name for name, code in METHODS.items()}


@dataclass
class FollowReport:
    """What a follower saw while it ran."""

    ended: str = ""
    """Why, one sentence."""
    method: str = ""
    seconds: float = 0.0
    """From the first message of the daemon on."""
    up_seconds: float = 0.0
    ticks: int = 0
    late: int = 0
    """Periods skipped because this process was late."""
    sent: int = 0
    received: int = 0
    lost: int = 0
    rejected: int = 0
    way_ms: float = 0.0
    """There and back, of the newest message that told."""
    force_peak: float = 0.0
    """N, measured by the robot."""
    speed_peak: float = 0.0
    """m/s, of set-points."""
    limited: dict[str, int] = field(default_factory=dict)
    """Ticks in which set-points were held back, by what."""
    energy: float = 0.0
    """J handed to the robot's spring by the link, of the last session."""
    transitions: list[str] = field(default_factory=list)
    """``STATE: REASON`` in the order in which they were seen."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class FollowOptions:
    """How a follower follows; lengths in m of the robot, times in ms."""

    method: str | None = None
    """None: the daemon's."""
    speed_max: float = 0.25
    turn_max: float = 1.0
    lower: tuple[float, ...] | None = None
    upper: tuple[float, ...] | None = None
    scale: float = 1.0
    mirror: str = ""
    align_speed: float = 0.0
    distance_max: float = 0.1
    tank: float = 0.1
    stale_after_ms: float = STALE_AFTER_MS
    ramp_up_ms: float = 500.0
    ramp_down_ms: float = 100.0
    robot_timeout_ms: float = ROBOT_TIMEOUT_MS


class FollowLoop:
    """One robot at one peer socket. The cycle is :meth:`cycle`; :func:`run_follower` gives it its times."""

    def __init__(
        self, robot: Robot, socket: zmq.Socket, options: FollowOptions, say: Callable[[str], None] = print
    ) -> None:
        """socket: of :func:`bridge.peer_socket.open_peer`, connected. Raises ValueError."""
        self.robot, self.options, self.report = robot, options, FollowReport()
        self.follower: Follower | None = None
        """None until the daemon has said what the link is."""
        self.ended: tuple[ExitCode, str] | None = None
        """Why the loop is over: a code and a sentence."""
        self.leaving = False
        if not 1.0 <= options.robot_timeout_ms <= 1e4:
            raise ValueError(f"robot_timeout_ms = {options.robot_timeout_ms:g} must be from 1 to 10000")
        self._limits = make_limits(options.speed_max, options.turn_max, options.lower, options.upper)
        self._socket, self._say = socket, say
        self._record = np.zeros(1, RECORD)
        # Judged before anything is known of the daemon, and for what Peer needs to know.
        settings = self._settings("none" if options.method is None else options.method, (1.0, 1.0))
        self.peer = Peer(socket, self._record, settings)
        self._stale_ns = int(settings["stale_after_ns"][0])
        self._began = 0
        self._last = 0
        self._hello_at = 0
        self._built_for = 0
        self._read_at = 0
        self._silent = False
        self._following = True
        self._told = (-1, -1)

    def rehearse(self) -> None:
        """Compile, or load, what a cycle needs. Raises RobotError when the robot does not take a stop."""
        self.peer.rehearse()
        warm_up()
        self._stop_robot()

    def leave(self) -> None:
        """Ask for a clean end: set-points come to rest, the robot holds itself, the daemon is told."""
        self.leaving = True

    def cycle(self, now: int) -> None:
        """One cycle at a time of the monotonic clock, ns; `ended` says when it was the last one."""
        held_up = bool(self._last) and now - self._last > self._stale_ns
        self._last = now
        if held_up:
            self._throw_away()
        try:
            reading = self._read(now)
            self.peer.take(now)
            if self.peer.session != self._built_for and not (self.follower is not None and self._following):
                self._adopt(now)
            if self.ended is None:
                if self.follower is None:
                    self._greet(now)
                else:
                    self._follow(now, reading, held_up)
        except RobotError as error:
            self._fail(error)

    def close(self) -> None:
        """Leave the robot holding itself, whatever it says to that."""
        with contextlib.suppress(Exception):
            self.robot.stop()
        self.peer.close()

    def line(self, now: int) -> str:
        """One line on how it is."""
        seconds = (now - self._began) * 1e-9 if self._began else 0.0
        if self.follower is None:
            return f"{seconds:7.1f} s  waiting for the daemon's first message"
        setpoint, output = self.follower.setpoint, self.follower.output
        place = " ".join(f"{round(1e3 * value, 1) + 0.0:.1f}" for value in setpoint["position"])
        force = math.hypot(*self.follower.robot["wrench"][:3])
        state, reason = _names(output)
        flags = Limited(int(setpoint["limited"]))
        held = f"  held back: {flags.name}" if flags else ""
        why = "" if reason == LinkReason.NONE.name else f" ({reason})"
        return (
            f"{seconds:7.1f} s  {state}{why}  set-point {place} mm  force {force:.2f} N "
            f"(peak {self.report.force_peak:.2f})  way {self.report.way_ms:.1f} ms  lost {self.peer.lost}{held}"
        )

    # -- the daemon --------------------------------------------------------------------------------------------------

    def _settings(self, method: str, impedance: tuple[float, float]) -> np.ndarray:
        options, robot = self.options, self.robot
        return make_follower_link(
            float(getattr(robot, "stiffness", Robot.stiffness)),
            float(getattr(robot, "damping", Robot.damping)),
            float(getattr(robot, "rotational_stiffness", Robot.rotational_stiffness)),
            float(getattr(robot, "rotational_damping", Robot.rotational_damping)),
            dt=PERIOD_NS * 1e-9,
            method=method,
            impedance=impedance[0],
            rotational_impedance=impedance[1],
            scale=options.scale,
            mirror=options.mirror,
            align_speed=options.align_speed,
            distance_max=options.distance_max,
            tank=options.tank,
            stale_after_ms=options.stale_after_ms,
            ramp_up_ms=options.ramp_up_ms,
            ramp_down_ms=options.ramp_down_ms,
        )

    def _greet(self, now: int) -> None:
        """Nothing has come yet: tell the daemon where to send."""
        if self.leaving:
            self.ended = (ExitCode.OK, "left before the daemon said anything")
        elif now >= self._hello_at:
            self._hello_at = now + HELLO_NS
            with contextlib.suppress(zmq.ZMQError):
                self._socket.send(PEER_HELLO, int(zmq.NOBLOCK))

    def _adopt(self, now: int) -> None:
        """A daemon's first message says what its link is."""
        said = self._record[0]["input"]["peer"]["message"]
        method = METHOD_NAMES[int(said["method"])]
        if self.options.method not in (None, method):
            self.ended = (
                ExitCode.REFUSED,
                f"the daemon's link has method {method!r}, not {self.options.method!r}; without --method it is adopted",
            )
            return
        there = said["impedance"]
        # The same line in this end's metres: power is the same at both ends.
        here = (float(there[0]) / self.options.scale**2, float(there[1])) if method == "waves" else (1.0, 1.0)
        try:
            settings = self._settings(method, here)
        except ValueError as error:
            self.ended = (ExitCode.REFUSED, f"the daemon's link does not fit: {error}")
            return
        settings["law"] = COUNTERPART[int(said["law"])]
        wrong = misfit(settings[0], said)
        if not wrong and said["law"] == POSITION_FORCE_FOLLOWER:
            wrong = "a robot follows, and so does the hand of a daemon with role 'follower'"
        if wrong:
            self.ended = (ExitCode.REFUSED, f"the daemon's link does not fit (here is the robot): {wrong}")
            return
        before = self.follower
        self.follower = Follower(
            settings, self._limits, peer=self._record["input"]["peer"], output=self._record["output"]["link"]
        )
        if before is not None:
            # Numbers go on, because this end's session does.
            for name in ("sent", "begun"):
                self.follower.link[name] = before.link[name]
        self._built_for = self.peer.session
        self._began = self._began or now
        self.report.method = method
        self._say(f"the daemon's link has method {method!r}")

    def _throw_away(self) -> None:
        """What came while this process was held up is long past."""
        self._say("this process was held up: the link begins anew")
        for _ in range(THROWN_AWAY):
            try:
                self._socket.recv_multipart(int(zmq.NOBLOCK))
            except zmq.ZMQError:
                return

    # -- the robot ---------------------------------------------------------------------------------------------------

    def _read(self, now: int) -> RobotReading | None:
        """A new reading that may be used, or None. Raises RobotError."""
        reading = self._ask(self.robot.read)
        if reading is None:
            if not self._silent and now - self._read_at > self.options.robot_timeout_ms * 1e6 and self._read_at:
                self._silent = True
                self._say(f"the robot has not answered for {self.options.robot_timeout_ms:g} ms")
                self._stop_robot()
            self._read_at = self._read_at or now
            return None
        check_reading(reading)
        # How long it took to read counts as well: the loop was away so long.
        self._read_at = time.monotonic_ns()
        if self._silent:
            self._silent = False
            self._say("the robot answers again")
        return reading

    def _ask(self, what: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return what(*arguments)
        except RobotError:
            raise
        except Exception as error:
            if os.environ.get("HAPTICD_DEBUG"):
                raise
            name = getattr(what, "__name__", "a method")
            raise RobotError(f"the robot failed in `{name}`: {type(error).__name__}: {error}") from error

    def _stop_robot(self) -> None:
        self._following = False
        self._ask(self.robot.stop)

    def _fail(self, error: RobotError) -> None:
        """The robot cannot be led any more: it is told to hold, and the daemon that nobody is felt."""
        self.ended = (ExitCode.DEVICE, str(error))
        with contextlib.suppress(Exception):
            self.robot.stop()
        if self.follower is not None:
            self.follower.robot["valid"] = 0
            self.follower.go()
            self.peer.send()

    def _follow(self, now: int, reading: RobotReading | None, held_up: bool) -> None:
        follower = self.follower
        assert follower is not None
        row = follower.robot
        if reading is not None:
            row["position"], row["orientation"] = reading.position, reading.orientation
            row["twist"], row["wrench"] = reading.twist, reading.wrench
            row["valid"] = 1
        elif self._silent:
            row["valid"] = 0
        row["engaged"] = not (self.leaving or held_up) and (reading.engaged if reading is not None else row["engaged"])
        setpoint = follower.go()
        if setpoint["following"]:
            self._following = True
            self._ask(
                self.robot.command,
                setpoint["position"].tolist(),
                setpoint["orientation"].tolist(),
                setpoint["twist"].tolist(),
            )
        elif self._following:
            self._stop_robot()
        if follower.output["send"] and not self._silent:
            self.peer.send()
            self.report.sent += 1
        self._note(now, follower)
        if self.leaving and not self._following and follower.output["gain"] == 0.0:
            self.ended = (ExitCode.OK, "left")

    def _note(self, now: int, follower: Follower) -> None:
        report, output, peer = self.report, follower.output, self.peer
        report.ticks += 1
        report.seconds = (now - self._began) * 1e-9
        report.received, report.lost, report.rejected = peer.received, peer.lost, peer.rejected
        report.way_ms = float(follower.peer["way_ns"]) * 1e-6 or report.way_ms
        if self.follower is not None and follower.robot["valid"]:
            report.force_peak = max(report.force_peak, math.hypot(*follower.robot["wrench"][:3]))
        report.speed_peak = max(report.speed_peak, math.hypot(*follower.setpoint["twist"][:3]))
        report.energy = float(output["energy"])
        limited = int(follower.setpoint["limited"])
        for flag in Limited if limited else ():
            if limited & flag and flag.name:
                report.limited[flag.name] = report.limited.get(flag.name, 0) + 1
        state = int(output["state"])
        report.up_seconds += PERIOD_NS * 1e-9 if state == LinkState.UP else 0.0
        told = (state, int(output["reason"]))
        if told != self._told:
            self._told = told
            text = ": ".join(_names(output))
            report.transitions.append(text)
            self._say(text)


def _names(output: Any) -> tuple[str, str]:
    return LinkState(int(output["state"])).name, LinkReason(int(output["reason"])).name


_PARTS = (
    ("position", 3, MAX_COORDINATE),
    ("orientation", 4, 1.0 + 1e-3),
    ("twist", 6, MAX_RATE),
    ("wrench", 6, MAX_WRENCH),
)


def check_reading(reading: RobotReading) -> None:
    """Raise RobotError unless a reading is made of finite numbers that can be."""
    for name, count, largest in _PARTS:
        values = getattr(reading, name, None)
        try:
            good = values is not None and len(values) == count and all(abs(value) <= largest for value in values)
        except TypeError:
            good = False
        if not good:
            raise RobotError(
                f"the robot says {name} = {values!r:.120}: {count} finite numbers up to {largest:g} are due"
            )
    if abs(math.hypot(*reading.orientation) - 1.0) > 1e-3:
        raise RobotError(f"the robot says orientation = {reading.orientation!r:.120}: a unit quaternion is due")


def find_peer(daemon: str) -> str:
    """Address of a daemon's peer socket, by its runtime name, or the address itself.

    Raises NoDaemonError, HapticdError ``no_link`` for a daemon without a peer socket and ``keys`` for an address on
    another machine without keys, ValueError for what is no address.
    """
    if "://" not in daemon:
        _, endpoints = find_endpoints(daemon)
        if "peer" not in endpoints:
            text = f"the daemon {daemon!r} has no peer socket: its configuration needs a [link] without `connect`"
            raise HapticdError("no_link", text)
        return endpoints["peer"]
    if not is_address(daemon):
        raise ValueError(f"{daemon!r} is no address of a peer socket: tcp://HOST:PORT or ipc://PATH")
    host = daemon.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    if daemon.startswith("tcp://") and find_keys(daemon) is None and not _is_here(host):
        text = (
            f"{daemon} is on another machine: HAPTICD_SERVER_KEY and HAPTICD_CLIENT_KEYS are needed, "
            "as without keys anybody between the two could move the robot"
        )
        raise HapticdError("keys", text)
    return daemon


def _is_here(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def run_follower(
    robot: Robot,
    options: FollowOptions | None = None,
    *,
    daemon: str = "default",
    duration_s: float | None = None,
    say: Callable[[str], None] = print,
    live: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> tuple[ExitCode, FollowReport]:
    """Follow a daemon's hand until told to end; returns the exit code and what was seen, with the reason in ``ended``.

    ``daemon``: see :func:`find_peer`; a daemon that ends is waited for. ``duration_s``: from its first message on.
    ``say`` gets a sentence at each change, ``live`` a line of status twice per second. ``stop`` ends it from elsewhere.
    Raises HapticdError, ValueError, RobotError when it cannot begin.
    """
    asked = stop if stop is not None else threading.Event()
    address = find_peer(daemon)
    context: zmq.Context = zmq.Context()
    try:
        try:
            socket = open_peer(context, "", connect=address, connect_keys=find_keys(daemon))
        except zmq.ZMQError as error:
            raise ValueError(f"cannot connect to {address}: {error}") from None
        try:
            loop = FollowLoop(robot, socket, options or FollowOptions(), say)
        except BaseException:
            socket.close(0)
            raise
        with asked_to_end(asked):
            try:
                code, text = _run(loop, asked, duration_s, live)
            finally:
                loop.close()
        loop.report.ended = text
        return code, loop.report
    finally:
        context.term()


def _run(
    loop: FollowLoop, asked: threading.Event, duration_s: float | None, live: Callable[[str], None] | None
) -> tuple[ExitCode, str]:
    """The loop at its times."""
    loop.rehearse()
    set_timer_slack()
    waiter = Waiter()
    gc.collect()
    gc.freeze()
    try:
        due = time.monotonic_ns()
        line_at = due + LINE_NS
        while loop.ended is None:
            due += PERIOD_NS
            now = waiter.wait_until(due)
            if now - due > PERIOD_NS:
                loop.report.late += (now - due) // PERIOD_NS
                due = now
            if asked.is_set() or (duration_s is not None and loop.report.seconds >= duration_s):
                loop.leave()
            loop.cycle(now)
            if live is not None and now >= line_at:
                line_at = now + LINE_NS
                live(loop.line(now))
        return loop.ended
    finally:
        gc.unfreeze()
