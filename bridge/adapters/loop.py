"""The loop that every adapter runs in: read, send, take the newest render, close its spring, last line, write.

No cycle waits for a daemon: requests are asked and collected between cycles, sending gives up at once, and what a
daemon no longer says makes its last render old, so that the last line ramps it down. Looking for a daemon, greeting it
and giving its lease back are done in a thread beside the loop, while forces are off.
"""

import gc
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bridge.adapters.aside import Aside
from bridge.adapters.clock import DeviceClock
from bridge.adapters.device import IDENTITY, Device, DeviceError, Reading
from bridge.adapters.registry import card_of
from bridge.adapters.session import Session
from bridge.adapters.spring import local_wrench
from bridge.client import Client, HapticdError, NoDaemonError
from bridge.ending import asked_to_end
from bridge.exit_codes import ExitCode
from bridge.realtime import Waiter, set_timer_slack
from haptics.cards import DeviceCard, card_from_dict
from haptics.last_line import (
    HEATED,
    NO_WRENCH,
    SATURATED,
    Applied,
    ForcesOff,
    Limits,
    Memory,
    Wanted,
    Wrench,
    reset,
    step,
)
from haptics.states import EngagementState

MODES = ("impedance", "wrench")
WRENCH_SHARE = 0.5
"""Of the card's largest force and torque, for the plain wrench: a tick old and held for a period, it is stable up to
about half of what a spring closed at the device is."""

SPEED_MAX = 3.0
"""m/s, velocity trip of a device whose card states none: that of the daemon's check for jumps."""
SPEED_WINDOW_NS = 8_000_000
"""Over which a speed is measured: a longer one sees a runaway later, a shorter one trips on the encoder's steps."""
CALM_S = 1.0
"""A device that tripped gets forces again after so long a time below a tenth of its limit."""

GREETING_MS = 300
BACKOFF_S = (0.1, 2.0)
"""Between two looks for a daemon: at first, at most."""
LEAVE_S = 0.5
"""An adapter that ends waits for the daemon's own ramp so long, at most; then so long again for what goes on aside."""

_FORCES = (EngagementState.ENGAGING, EngagementState.ACTIVE, EngagementState.HOLD, EngagementState.RELEASING)


class _Speed:
    """Velocity (m/s) of a device that does not tell: way over time across a short window."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, Sequence[float]]] = deque(maxlen=256)

    def at(self, t_ns: int, position: Sequence[float]) -> tuple[float, float, float]:
        """Velocity (3,) after a reading; zero before the second one."""
        seen = self._seen
        if seen and t_ns <= seen[-1][0]:
            return self._now(seen)
        seen.append((t_ns, position))
        while len(seen) > 2 and seen[1][0] <= t_ns - SPEED_WINDOW_NS:
            seen.popleft()
        return self._now(seen)

    def clear(self) -> None:
        """Forget what was seen before a gap."""
        self._seen.clear()

    @staticmethod
    def _now(seen: deque[tuple[int, Sequence[float]]]) -> tuple[float, float, float]:
        if len(seen) < 2:
            return (0.0, 0.0, 0.0)
        (t0, a), (t1, b) = seen[0], seen[-1]
        per_s = 1e9 / (t1 - t0)
        return ((b[0] - a[0]) * per_s, (b[1] - a[1]) * per_s, (b[2] - a[2]) * per_s)


def limits_for(
    card: DeviceCard, daemons: Mapping[str, Any], mode: str, continuous: float | None, tick_s: float = 1e-3
) -> Limits:
    """What the last line of a device allows: its card's, and the daemon's where that is less.

    ``daemons``: `limits` of its hello reply, whose slew rates are per tick. ``continuous``: N, what the motors stand
    for ever, in place of the card's own figure. Raises ValueError.
    """
    share = 1.0 if mode == "impedance" else WRENCH_SHARE
    force = share * min(card.force_max or 0.0, float(daemons["force_max"]))
    torque = share * min(card.torque_max or 0.0, float(daemons.get("torque_max") or 0.0))
    lasting, lasting_torque = card.lasting(force, torque, continuous)
    return Limits(
        force_peak=force,
        torque_peak=torque,
        force_continuous=lasting,
        torque_continuous=lasting_torque,
        force_slew=float(daemons["force_slew"]) / tick_s,
        torque_slew=float(daemons.get("torque_slew") or 0.0) / tick_s,
        speed_trip=card.speed_max or SPEED_MAX,
    )


def what_is_wrong(reading: Reading) -> str:
    """Why a reading cannot be sent, for people; nothing where it can."""
    position, orientation, twist = reading.position, reading.orientation, reading.twist
    moving = twist if twist is not None else (0.0,) * 6
    sizes = (("position", position, 3), ("orientation", orientation, 4), ("twist", moving, 6))
    for name, numbers, size in sizes:
        if len(numbers) != size:
            return f"its {name} has {len(numbers)} numbers, not {size}"
        if not all(map(math.isfinite, numbers)):
            return f"its {name} is no number: {[*map(float, numbers)]}"
    norm = math.hypot(*orientation)
    if not abs(norm - 1.0) < 1e-3:
        return f"its orientation has the norm {norm:.6g}, not 1"
    return ""


def needs_deadman(client: Client) -> bool:
    """Whether a daemon gives forces only to who says that a hand is on the device; no where it does not tell."""
    with suppress(HapticdError, KeyError, TypeError):
        return bool(client.describe()["config"]["safety"]["require_deadman"])
    return False


class Adapter:
    """One device in its loop. The cycle is :meth:`cycle`; :func:`run_adapter` gives it its times."""

    def __init__(
        self,
        device: Device,
        *,
        daemon: str | Mapping[str, str] = "default",
        name: str = "adapter",
        mode: str = "impedance",
        reanchor: bool = True,
        continuous: float | None = None,
        say: Callable[[str], None] = print,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """See :func:`run_adapter`; ``clock`` tells the monotonic time, ns. Raises ValueError."""
        if mode not in MODES:
            raise ValueError(f"mode is {' or '.join(MODES)}, not {mode!r}")
        if continuous is not None and not (math.isfinite(continuous) and continuous > 0.0):
            raise ValueError(f"continuous = {continuous!r} must be a finite force above 0, N")
        self.device = device
        self.session: Session | None = None
        self.applied = Applied(NO_WRENCH, ForcesOff.NOT_ASKED, 0)
        self.memory = Memory()
        self.ended: tuple[ExitCode, str] | None = None
        """Why the loop is over: a code and a sentence."""
        self.leaving = False
        self._daemon, self._name, self._mode = daemon, name, mode
        self._reanchor, self._continuous, self._tell = reanchor, continuous, say
        self._card = card_of(device)
        self._limits: Limits | None = None
        self._clock = clock
        self._device_clock = DeviceClock()
        self._speed = _Speed()
        self._last_good: Reading | None = None
        self._unusable = ""
        """What is wrong with the newest reading, if anything."""
        self._buttons = 0
        self._warm = False
        self._calm_at = 0
        self._look_at = 0
        self._backoff = BACKOFF_S[0]
        self._leave_by = 0
        self._was_off = ForcesOff.NOT_ASKED
        self._lost: DeviceError | None = None
        self._greeting: Aside[Client] | None = None
        self._parting: Aside[None] | None = None
        """What goes on beside the loop."""
        self._deaf = False
        """Whether the device takes no wrench any more."""
        self._written = NO_WRENCH
        self._refusal: HapticdError | None = None
        self._may_hold_lease = False
        self._told = ""
        self._has_deadman = self._needs_deadman = self._told_deadman = False

    @property
    def period_s(self) -> float:
        """Of the loop, s."""
        if self.device.rate_hz is not None:
            return 1.0 / self.device.rate_hz
        return self.session.client.tick_s if self.session is not None else 1e-3

    def _say(self, text: str) -> None:
        """Whoever no longer listens (a terminal or a pipe that is gone) is no reason to drop the device."""
        with suppress(OSError):
            self._tell(text)

    def leave(self) -> None:
        """Ask for a clean end: forces ramp down, the lease goes back."""
        if not self.leaving:
            self.leaving = True
            self._leave_by = self._clock() + int(LEAVE_S * 1e9)

    def cycle(self) -> None:
        """One cycle, now.

        Each step looks at the clock itself: a device, or a busy machine, may hold it up between any two of them.
        """
        reading = self._read()
        t_sample, velocity, speed = self._judge(reading)
        pressed = reading.buttons & ~self._buttons & 1
        self._buttons = reading.buttons
        self._has_deadman |= reading.held is not None
        if self.session is None and not self.leaving and self._lost is None:
            self._connect()
        fresh = False
        session = self.session
        if session is not None and self._refusal is None:
            on = not self.leaving and not self.memory.tripped and self._lost is None
            twist = reading.twist if reading.valid else None
            try:
                fresh = session.cycle(reading, t_sample, twist, on, bool(pressed))
            except HapticdError as error:
                self._refusal = error
            if session.leased or session.unsure:
                self._may_hold_lease = True
        if fresh and session is not None and session.render is not None:
            self.device.follow(session.render)
        self._apply(reading, velocity, speed)
        self._end()

    def _read(self) -> Reading:
        """The device's reading; the last good pose, marked not valid, where that cannot be used."""
        if self._lost is None:
            try:
                reading = self.device.read()
                self._unusable = what_is_wrong(reading)
                if not self._unusable:
                    if reading.valid:
                        self._last_good = reading
                    return reading
            except DeviceError as error:
                self._lose(error)
        last = self._last_good or Reading((0.0, 0.0, 0.0), IDENTITY)
        # Its buttons are as they were: nobody has let go of them, nor pressed them again afterwards.
        return last._replace(valid=False, twist=None, buttons=self._buttons)

    def _judge(self, reading: Reading) -> tuple[int, Sequence[float], float]:
        """When it was measured, velocity (3,) and speed; the speed is NaN for a reading of no use."""
        now = self._clock()
        t_sample = now if reading.t_ns is None else reading.t_ns
        if not reading.valid:
            self._speed.clear()
            return now, (0.0, 0.0, 0.0), math.nan
        if self.device.own_clock and reading.t_ns is not None:
            believed = self._device_clock.lie is None
            t_sample = self._device_clock.t_sample(reading.t_ns, now, reading.position)
            if believed and self._device_clock.lie is not None:
                self._say(f"{self._device_clock.lie}: the time of reading takes the place of its stamps from now on")
                self._speed.clear()
        velocity: Sequence[float] = self._speed.at(t_sample, reading.position)
        speed = math.hypot(*velocity)
        if reading.twist is not None:
            velocity = reading.twist[:3]
            speed = max(speed, math.hypot(*velocity))
        return t_sample, velocity, speed

    def _connect(self) -> None:
        """Look for a daemon and greet it, while forces are off and at most as often as the back-off says."""
        if self._greeting is None:
            parted = self._parting is None or self._parting.done
            if parted and self._at_rest and self._clock() >= self._look_at:
                self._greeting = Aside(self._greet)
        elif self._greeting.done:
            greeting, self._greeting = self._greeting, None
            self._take_up(greeting)

    def _greet(self) -> Client:
        """Aside: it waits for the daemon, also for one that is just starting."""
        client = Client(self._daemon, self._name, timeout_ms=GREETING_MS, render_timeout_ms=0)
        if not self._has_deadman:
            self._needs_deadman = needs_deadman(client)
        return client

    def _take_up(self, greeting: Aside[Client]) -> None:
        """A session with the daemon that was greeted, or what its refusal means."""
        client = None
        try:
            client = greeting.result()
            told = {key: value for key, value in client.greeting["card"].items() if value is not None}
            card = card_from_dict(told, "the daemon's device card")
            if self._card is not None and card.name != self._card.name:
                raise HapticdError(
                    "card",
                    f"the daemon is configured for the card `{card.name}`, this device is `{self._card.name}`: its "
                    f'configuration needs [device] card = "{self._card.name}"',
                )
            known = self._card or card
            self._limits = limits_for(known, client.greeting["limits"], self._mode, self._continuous, client.tick_s)
            if self._needs_deadman and not self._told_deadman:
                self._told_deadman = True
                self._say(
                    "the daemon requires a deadman ([safety] require_deadman = true), and this device has none: there "
                    "will be no forces"
                )
            self._device_clock.behind_ns = round(0.5e6 * float(client.greeting["stale_after_ms"]))
            self.session = Session(client, self._reanchor, self._say, self._clock)
            self._backoff = BACKOFF_S[0]
        except NoDaemonError as error:
            if self._backoff == BACKOFF_S[0]:
                self._say(f"waiting for a daemon: {error.text}")
            if client is not None:
                client.close()
            self._look_at = self._clock() + int(self._backoff * 1e9)
            self._backoff = min(2.0 * self._backoff, BACKOFF_S[1])
        except (HapticdError, ValueError, KeyError, TypeError) as error:
            if client is not None:
                client.close()
            text = getattr(error, "text", str(error))
            if isinstance(error, (KeyError, TypeError)):
                text = f"the daemon's hello reply has no usable card, limits or horizon ({error})"
            self.ended = (ExitCode.REFUSED, text)

    def _refused(self, error: HapticdError) -> None:
        """The daemon refuses: for good, unless a session of this adapter that was cut off may have the lease."""
        self._refusal = None
        self._drop()
        if error.code == "lease_taken":
            text = f"{error.text}: one device, one adapter; `hapticd status` tells whose it is"
            if not self._may_hold_lease:
                self.ended = (ExitCode.REFUSED, text)
            elif text != self._told:
                self._told = text
                self._say(f"{text}; waiting, as it may be a session of this adapter that was cut off")
        elif error.code not in ("bad_session", "not_owner", "stopping", "no_reply", "timeout", "busy"):
            self.ended = (ExitCode.REFUSED, error.text)
        self._look_at = self._clock() + int(BACKOFF_S[0] * 1e9)

    def _drop(self) -> None:
        """The session is over; what it has of the daemon is given back aside."""
        session, self.session = self.session, None
        if session is not None:
            self._parting = Aside(session.leave)

    def hang_up(self) -> None:
        """The end: nothing is written any more, so the daemon may be waited for."""
        self._drop()
        if self._greeting is not None and self._greeting.wait(LEAVE_S):
            with suppress(HapticdError, ValueError):
                self._greeting.result().close()
        if self._parting is not None:
            self._parting.wait(2.0 * LEAVE_S)

    def _apply(self, reading: Reading, velocity: Sequence[float], speed: float) -> None:
        """Wanted wrench, last line, device."""
        wanted: Wrench = NO_WRENCH
        age, valid_ns = 0, 0
        off = ForcesOff.NOT_ASKED
        now = self._clock()
        session = self.session
        if session is not None and session.render is not None:
            render = session.render
            age, valid_ns = now - session.t_render, render.valid_for
            if render.state in _FORCES:
                off = ForcesOff.NONE
                if self._mode == "impedance":
                    wanted = local_wrench(render, reading.position, velocity)
                else:
                    wanted = (*render.wrench,)  # type: ignore[assignment]
            if session.unusable:
                wanted = (math.nan,) * 6
        if self.leaving:
            off = ForcesOff.LEAVING
        if self._lost is not None or self.device.why_off:
            off = ForcesOff.DEVICE
        already = self.memory.tripped
        if self._limits is None:
            self.applied = Applied(NO_WRENCH, off, 0)
        else:
            asked = Wanted(wanted, age, valid_ns, speed, off)
            self.memory, self.applied = step(self._limits, self.memory, now, asked)
        self._write(self.applied.wrench)
        if self.memory.tripped:
            self._tripped(now, speed, already)
        self._warmed()
        if self.applied.off != self._was_off:
            self._was_off = self.applied.off
            if self.applied.off not in (ForcesOff.NONE, ForcesOff.NOT_ASKED):
                self._say(f"forces off: {self.applied.off.name}{self._why_off()}")

    def _warmed(self) -> None:
        """Say once that the motors' heat takes force away."""
        limited = self.applied.limited
        if not limited & HEATED:
            self._warm = False
        elif limited & SATURATED and not self._warm and self._limits is not None:
            self._warm = True
            lasting = self._limits.force_continuous
            self._say(f"the motors are warm: forces fall to {lasting:g} N, which they stand for ever")

    def _why_off(self) -> str:
        """What more there is to say of a device that cannot be used, in brackets."""
        if self.applied.off != ForcesOff.DEVICE:
            return ""
        lost = str(self._lost) if self._lost is not None else ""
        why = lost or self.device.why_off or self._unusable or "it says that its pose may not be used"
        return f" ({why})"

    def _write(self, wrench: Wrench) -> None:
        """To the motors, as long as they take it: who cannot be read any more still holds the last force."""
        if self._deaf:
            return
        try:
            self.device.write(wrench)
            self._written = wrench
        except DeviceError as error:
            self._deaf = True
            self._lose(error)

    def _lose(self, error: DeviceError) -> None:
        """The device is gone: ramp down, tell the daemon, and end."""
        self._lost = self._lost or error
        self.leave()

    @property
    def _at_rest(self) -> bool:
        """Whether no force is on, nor on its way, as far as the device takes what it is given."""
        return self.memory.gain == 0.0 and (self._deaf or self._written == NO_WRENCH)

    def _tripped(self, now: int, speed: float, already: bool) -> None:
        """Zero has been written: brake once, and wait until the device has been calm."""
        assert self._limits is not None
        if not already:
            text = f"the device moved at {speed:.2f} m/s, faster than its {self._limits.speed_trip:g} m/s"
            try:
                self.device.brake()
            except DeviceError as error:
                text += f"; its brake does not hold: {error}"
            self._say(text)
        if not speed < 0.1 * self._limits.speed_trip or not already:
            self._calm_at = now + int(CALM_S * 1e9)
        elif now >= self._calm_at:
            self.memory = reset(self.memory)

    def _end(self) -> None:
        """What follows of silence, and of a wish to leave."""
        now = self._clock()
        session = self.session
        # A session is left, and another sought, once the device has been given zero.
        if not self._at_rest:
            return
        if self._refusal is not None:
            self._refused(self._refusal)
        elif session is not None and session.silent:
            self._say("the daemon fell silent")
            self._drop()
        session = self.session
        if not self.leaving or self.ended is not None:
            return
        resting = session is None or session.state in (EngagementState.IDLE, EngagementState.FAULT)
        if resting or now >= self._leave_by:
            if self._lost is not None:
                self.ended = (ExitCode.DEVICE, str(self._lost))
            else:
                self.ended = (ExitCode.OK, "left")


def run_adapter(
    device: Device,
    *,
    daemon: str | Mapping[str, str] = "default",
    name: str = "adapter",
    mode: str = "impedance",
    reanchor: bool = True,
    continuous: float | None = None,
    say: Callable[[str], None] = print,
    stop: threading.Event | None = None,
) -> tuple[ExitCode, str]:
    """Be the adapter of a device until it is told to end; returns the exit code and why, one sentence.

    ``daemon``: see :func:`bridge.client.find_endpoints`; waited for, and looked for again whenever it is lost.
    ``mode``: ``impedance`` closes the spring of a render at the device's rate, ``wrench`` applies its wrench, up to
    half the force. ``reanchor``: take hold where the tool is, by moving the map; else the device has to come near it.
    ``continuous``: N, what the motors stand for ever, in place of the card's own figure; its force then is a peak.
    ``say`` gets a sentence at each change. Raises DeviceError when the device cannot be opened, ValueError.
    """
    asked = stop if stop is not None else threading.Event()
    with asked_to_end(asked, again_ends=False):
        adapter: Adapter | None = None
        try:
            device.open()
            adapter = Adapter(
                device, daemon=daemon, name=name, mode=mode, reanchor=reanchor, continuous=continuous, say=say
            )
            return _run(adapter, asked)
        finally:
            try:
                _let_go(device)
            finally:
                if adapter is not None:
                    adapter.hang_up()


def _run(adapter: Adapter, asked: threading.Event) -> tuple[ExitCode, str]:
    """The loop at its times."""
    set_timer_slack()
    waiter = Waiter()
    gc.collect()
    gc.freeze()
    try:
        due = time.monotonic_ns()
        while adapter.ended is None:
            period = max(round(adapter.period_s * 1e9), 1)
            due += period
            now = waiter.wait_until(due)
            if now - due > period:
                due = now
            if asked.is_set():
                adapter.leave()
            adapter.cycle()
        return adapter.ended
    finally:
        gc.unfreeze()


def _let_go(device: Device) -> None:
    """Zero before anything that may wait or fail: after a fault of the device's own code no ramp can be trusted."""
    try:
        with suppress(Exception):
            device.write(NO_WRENCH)
    finally:
        device.close()
