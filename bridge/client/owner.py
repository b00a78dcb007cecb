"""The client that can own the device: lease, control operations, samples and renders."""

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any, Self, Unpack

import zmq

from bridge.client.connecting import connect, find_endpoints, find_keys
from bridge.client.errors import HapticdError, NoDaemonError, NoReplyError
from bridge.client.greeting import check_greeting, reach
from bridge.client.requests import CONTROL_TIMEOUT_MS, Control, Question
from bridge.keys import KeyPair
from bridge.schema import MAX_MESSAGE_BYTES, PROTOCOL_VERSION
from bridge.wire import OptionalFields, Render, Vector, WireError, decode_render, encode_sample

RENDER_TIMEOUT_MS = 500
"""How long :meth:`Client.exchange` waits for a render, and how old the newest one may become in free-running mode."""

_SENT_KEPT = 64

IDENTITY = (0.0, 0.0, 0.0, 1.0)


class Client:
    """One session with a daemon: becomes the device's owner with :meth:`lease`, then exchanges samples for renders.

    ``name_or_endpoints``: see :func:`find_endpoints`. ``encoding``, ``"struct"`` or ``"msgpack"``, is that of the
    samples and so of the renders. ``server_key`` and ``keys``: see :func:`find_keys`. Leaving the ``with`` block gives
    the lease back, which ramps forces down.
    """

    def __init__(
        self,
        name_or_endpoints: str | Mapping[str, str] = "default",
        client_name: str | None = None,
        *,
        encoding: str = "struct",
        timeout_ms: int = CONTROL_TIMEOUT_MS,
        render_timeout_ms: int = RENDER_TIMEOUT_MS,
        server_key: str | bytes | os.PathLike[str] | None = None,
        keys: KeyPair | str | os.PathLike[str] | None = None,
    ) -> None:
        if encoding not in ("struct", "msgpack"):
            raise ValueError(f'encoding is "struct" or "msgpack", not {encoding!r}')
        label, endpoints = find_endpoints(name_or_endpoints)
        if "control" not in endpoints:
            raise ValueError(f"the address of the control socket is missing in {endpoints}")
        own_keys = find_keys(name_or_endpoints, server_key, keys)
        self._as_struct = encoding == "struct"
        self._render_timeout_ms = render_timeout_ms
        self._context = zmq.Context()
        self._device: zmq.Socket | None = None
        self._owner = False
        self._seq = 0
        self._newest: Render | None = None
        self._newest_at = 0
        self._sent_at = [0] * _SENT_KEPT
        self._control = Control(self._context, endpoints["control"], label, timeout_ms, own_keys)
        try:
            self._hello(client_name or f"python-{os.getpid()}", label, name_or_endpoints)
            endpoints = {**reach(self.greeting.get("endpoints", {}), endpoints["control"]), **endpoints}
            if "device" not in endpoints:
                raise HapticdError("malformed", "the hello reply names no device socket")
            self.endpoints: dict[str, str] = endpoints
            self._device = self._context.socket(zmq.DEALER)
            self._device.setsockopt(zmq.LINGER, 0)
            self._device.setsockopt(zmq.SNDHWM, 8)
            self._device.setsockopt(zmq.RCVHWM, 64)
            self._device.setsockopt(zmq.RCVTIMEO, render_timeout_ms)
            # a client that is faster than the daemon is held back here, by a short queue, instead of filling a long one
            self._device.setsockopt(zmq.SNDTIMEO, render_timeout_ms)
            connect(self._device, endpoints["device"], own_keys, 2 * MAX_MESSAGE_BYTES)
        except BaseException:
            self.close()
            raise

    def _hello(self, client_name: str, label: str, name_or_endpoints: Any) -> None:
        started = time.monotonic_ns()
        try:
            greeting = self._control.request(
                "hello", client=client_name, versions=[PROTOCOL_VERSION], roles=["owner"], t_client=started
            )
        except NoReplyError as error:
            if isinstance(name_or_endpoints, str) and "://" not in name_or_endpoints:
                raise NoDaemonError(f"{error.text}; it may have died: see `hapticd status`") from None
            raise NoDaemonError(f"no daemon answers {label}: {error.text}") from None
        ended = time.monotonic_ns()
        check_greeting(greeting)
        self.greeting: dict[str, Any] = greeting
        """The hello reply: limits, card, scene summary and times of the daemon."""
        self.session: int = greeting["session"]
        self.triggered: bool = greeting["clocking"] == "triggered"
        """Each sample runs one tick and waits for its render; else the servo ticks on its own clock."""
        self.tick_s: float = greeting["tick_ns"] * 1e-9
        self._offset_low: int = greeting["t_sent"] - ended
        self._offset_high: int = greeting["t_received"] - started

    @property
    def clock_offset_ns(self) -> int:
        """Daemon's monotonic clock minus this client's.

        No message arrives before it was sent: each one bounds the offset from one side. This is the middle of what the
        hello exchange and all renders since have left.
        """
        return (self._offset_low + self._offset_high) // 2

    @property
    def clock_uncertainty_ns(self) -> int:
        """The offset is within this of the truth."""
        return (self._offset_high - self._offset_low + 1) // 2

    def sent_at(self, seq: int) -> int | None:
        """When a sample was sent, this client's clock, ns; None when that is more than 64 samples ago."""
        return self._sent_at[seq % _SENT_KEPT] if 0 < seq <= self._seq < seq + _SENT_KEPT else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives the lease back when it is held (waiting at most 0.5 s for the answer) and closes the sockets."""
        if self._context.closed:
            return
        if self._owner:
            self._owner = False
            # whoever leaves because the daemon is gone must not be kept from leaving by it
            with contextlib.suppress(HapticdError):
                self._control.request("release", session=self.session, timeout_ms=500)
        self._control.close()
        if self._device is not None:
            self._device.close(linger=0)
        self._context.term()

    # -- control ---------------------------------------------------------------------------------------------------

    def request(self, op: str, **fields: Any) -> dict[str, Any]:
        """Any control operation with its fields; returns the reply. Raises HapticdError when it is refused or late."""
        return self._control.request(op, session=self.session, **fields)

    def ask(self, op: str, **fields: Any) -> Question:
        """Any control operation without waiting for it: collect the reply from the Question between samples."""
        return self._control.ask(op, session=self.session, **fields)

    def lease(self) -> dict[str, Any]:
        """Takes the device: this session becomes its owner. Raises HapticdError ``lease_taken`` when another one is."""
        reply = self.request("lease")
        self.leased()
        return reply

    def leased(self) -> None:
        """Be the owner from now on: for who asked for the lease by :meth:`ask`, once the reply has come."""
        self._owner = True
        self._newest = None

    @property
    def seq(self) -> int:
        """Number of the last sample sent."""
        return self._seq

    def renew(self) -> dict[str, Any]:
        """Keeps the lease without sending samples (accepted samples renew it too)."""
        return self.request("renew")

    def release(self) -> dict[str, Any]:
        """Gives the device back; forces ramp down first."""
        reply = self.request("release")
        self._owner = False
        return reply

    def hand_over(self, to: str) -> dict[str, Any]:
        """Gives the device to the client of that name, without a step: forces ramp down, then come back for it.

        Go on sending samples until renders stay away: the ramp is this client's. Of several sessions of that name the
        one that the daemon has heard from last gets the device. Raises HapticdError: ``bad_value`` when there is none.
        """
        return self.request("hand_over", to=to)

    def expect_hand_over(self) -> None:
        """Lets this client send samples before it has the device, so that a hand-over finds its device there.

        They change nothing until the owner hands over; then the device is anchored to where the tool is, forces come
        up, and the first render says so (:meth:`send` and :meth:`receive` until then: :meth:`exchange` would wait for
        it). Whoever sends no samples then has the device without forces.
        """
        self._owner = True
        self._newest = None

    def arm(self, *, reanchor: bool = False) -> dict[str, Any]:
        """Asks for forces: they ramp up with the next good sample.

        ``reanchor`` moves the map between device and scene so that a device far from the tool starts where the tool is;
        without it such a device is refused.
        """
        return self.request("arm", reanchor=bool(reanchor))

    def disarm(self) -> dict[str, Any]:
        """Ramps forces down to zero; the lease stays."""
        return self.request("disarm")

    def clutch(self, pressed: bool) -> dict[str, Any]:
        """Pressed: forces ramp down and the tool stays; released: the device takes it up from where it then is."""
        return self.request("clutch", pressed=bool(pressed))

    def set_gains(self, stiffness: float, damping: float) -> dict[str, Any]:
        """Coupling at the device: N/m and N·s/m, capped by the device card; they come by a ramp while forces are on."""
        return self.request("set", stiffness=float(stiffness), damping=float(damping))

    def set_scale(self, scale: float) -> dict[str, Any]:
        """Scene metres per device metre; only while idle or clutched."""
        return self.request("set", scale=float(scale))

    def vibrate(
        self,
        amplitude: float,
        frequency: float,
        duration: float,
        *,
        decay: float = 0.0,
        direction: Vector = (0.0, 0.0, 1.0),
    ) -> dict[str, Any]:
        """A burst of vibration (N, Hz, s, along a direction of the device frame) beside all other forces.

        ``decay``: s in which it falls to 1/e, 0 for none. Capped at 0.3 of the device's force and a quarter of the tick
        rate; only while forces are on.
        """
        return self.request(
            "vibrate",
            amplitude=float(amplitude),
            frequency=float(frequency),
            duration=float(duration),
            decay=float(decay),
            direction=[float(x) for x in direction],
        )

    def pose_body(self, body: str, position: Vector, orientation: Vector = IDENTITY) -> dict[str, Any]:
        """Puts a held body to a new pose, mesh to scene frame: (3,) m, (4,) xyzw; only while nobody feels the scene."""
        return self.request(
            "pose_body", body=body, position=[float(x) for x in position], orientation=[float(x) for x in orientation]
        )

    def stop(self) -> dict[str, Any]:
        """Anyone may stop: forces ramp down, then FAULT until :meth:`reset`."""
        return self.request("stop")

    def reset(self) -> dict[str, Any]:
        """Leaves FAULT."""
        return self.request("reset")

    def status(self) -> dict[str, Any]:
        """What the daemon does now: tick, state, owner, counters."""
        return self.request("status")

    def describe(self) -> dict[str, Any]:
        """Scene, card, limits and settings of the daemon."""
        return self.request("describe")

    def shutdown(self) -> dict[str, Any]:
        """Ends the daemon once forces are off."""
        return self.request("shutdown")

    # -- samples and renders -----------------------------------------------------------------------------------------

    def send(
        self,
        position: Vector,
        orientation: Vector = IDENTITY,
        *,
        t_sample: int | None = None,
        **optional: Unpack[OptionalFields],
    ) -> int:
        """Sends one sample and returns its seq.

        position (3,) m and orientation (4,) xyzw of the device, device frame; ``t_sample`` is when they were measured
        (this machine's monotonic ns, now when absent). ``twist``, ``buttons``, ``deadman`` and ``valid`` may be given
        too: :class:`bridge.wire.OptionalFields`. Raises HapticdError ``not_owner`` before :meth:`lease` and
        ``no_reply`` when the daemon no longer takes samples.
        """
        if not self._owner:
            raise HapticdError("not_owner", "take the lease first: client.lease()")
        assert self._device is not None
        seq = self._seq + 1
        now = time.monotonic_ns()
        message = encode_sample(
            self.session,
            seq,
            now if t_sample is None else t_sample,
            position,
            orientation,
            as_struct=self._as_struct,
            **optional,
        )
        try:
            self._device.send(message)
        except zmq.Again:
            text = f"the daemon has taken no samples for {self._render_timeout_ms} ms"
            raise NoReplyError(text) from None
        self._sent_at[seq % _SENT_KEPT] = now
        self._seq = seq
        return seq

    def receive(self, timeout_ms: int = 0) -> Render | None:
        """The newest render that has arrived, older ones dropped; None when none came within ``timeout_ms``."""
        assert self._device is not None
        message = None
        try:
            while True:
                message = self._device.recv(zmq.NOBLOCK)
        except zmq.Again:
            pass
        if message is None:
            if timeout_ms <= 0 or not self._device.poll(timeout_ms):
                return None
            return self.receive()
        return self._keep(message)

    def _keep(self, message: bytes) -> Render:
        try:
            render = decode_render(message)
        except WireError as error:
            raise HapticdError(error.code, f"a render cannot be read: {error.text}") from None
        self._newest = render
        self._newest_at = now = time.monotonic_ns()
        sent = self.sent_at(render.seq)
        if sent is not None:
            self._offset_low = max(self._offset_low, render.t_sent - now)
            self._offset_high = min(self._offset_high, render.t_received - sent)
        return render

    def exchange(
        self,
        position: Vector,
        orientation: Vector = IDENTITY,
        *,
        t_sample: int | None = None,
        **optional: Unpack[OptionalFields],
    ) -> Render:
        """Sends one sample (see :meth:`send`) and returns a render.

        Triggered daemon: the render of this very sample. Free-running daemon: the newest render there is, which answers
        an earlier sample; the first call waits for one. Raises HapticdError ``no_reply`` when no render came for
        ``render_timeout_ms``: the lease is lost or the daemon is.
        """
        seq = self.send(position, orientation, t_sample=t_sample, **optional)
        assert self._device is not None
        if self.triggered:
            deadline = time.monotonic_ns() + self._render_timeout_ms * 1_000_000
            while time.monotonic_ns() < deadline:
                try:
                    message = self._device.recv()
                except zmq.Again:
                    break
                render = self._keep(message)
                if render.seq == seq:
                    return render
            raise self._silence(seq)
        fresh = self.receive()
        if fresh is not None:
            return fresh
        if self._newest is None:
            fresh = self.receive(self._render_timeout_ms)
            if fresh is None:
                raise self._silence(seq)
            return fresh
        if time.monotonic_ns() - self._newest_at > self._render_timeout_ms * 1_000_000:
            raise self._silence(seq)
        return self._newest

    def _silence(self, seq: int) -> NoReplyError:
        return NoReplyError(
            f"no render came within {self._render_timeout_ms} ms of sample {seq}: the lease is lost, the samples are "
            "refused, or the daemon is gone; `hapticd status` tells which"
        )
