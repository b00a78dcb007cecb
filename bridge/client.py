"""Client library: feel a running daemon, or watch it.

    from bridge import Client

    with Client() as client:
        client.lease()
        client.arm(reanchor=True)
        render = client.exchange((0.0, 0.0, 0.1))
        print(render.force)

A :class:`Client` and an :class:`Observer` belong to the thread that made them.
"""

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack

import zmq
from zmq.utils.monitor import recv_monitor_message

from bridge.access import monitor
from bridge.keys import ClientKeys, KeyPair, KeysError, fingerprint, read_pair, read_public
from bridge.runtime import RuntimeDirectory, RuntimeDirectoryError, reachable
from bridge.schema import MAX_MESSAGE_BYTES, PROTOCOL_VERSION, REPLY_MAX_BYTES
from bridge.wire import (
    OptionalFields,
    Render,
    Vector,
    WireError,
    decode_render,
    encode_sample,
    pack_control,
    unpack_control,
)

CONTROL_TIMEOUT_MS = 2000
"""How long a control request waits for its reply."""

RENDER_TIMEOUT_MS = 500
"""How long :meth:`Client.exchange` waits for a render, and how old the newest one may become in free-running mode."""

START_TIMEOUT_S = 20.0
"""How long a client waits for a daemon that runs already but is still starting."""

_SENT_KEPT = 64

IDENTITY = (0.0, 0.0, 0.0, 1.0)


class HapticdError(RuntimeError):
    """What the daemon refused or could not do: ``code`` for programs (``docs/protocol.md``), ``text`` for people."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{text} [{code}]")
        self.code = code
        self.text = text


class NoDaemonError(HapticdError):
    """No daemon of that name runs here, or none answers at that address. Code ``no_daemon``."""

    def __init__(self, text: str) -> None:
        super().__init__("no_daemon", text)


class NoReplyError(HapticdError):
    """The daemon did not answer in time. Code ``no_reply``."""

    def __init__(self, text: str) -> None:
        super().__init__("no_reply", text)


def find_endpoints(name_or_endpoints: str | Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Addresses of a daemon: (how to call it in messages, {"device", "control", "state", "events"}).

    Takes the name of a daemon of this user, the address of a control socket (``tcp://...``: the others come with the
    hello reply), or the addresses themselves. A daemon that is just starting is waited for. Raises NoDaemonError when
    none of that name runs.
    """
    if isinstance(name_or_endpoints, Mapping):
        return "at the given addresses", dict(name_or_endpoints)
    if "://" in name_or_endpoints:
        return f"at {name_or_endpoints}", {"control": name_or_endpoints}
    try:
        runtime = RuntimeDirectory(name_or_endpoints)
        deadline = time.monotonic() + START_TIMEOUT_S
        while runtime.is_running() and not runtime.endpoints_path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return f"`{name_or_endpoints}`", runtime.read_endpoints()
    except RuntimeDirectoryError as error:
        others = [other.name for other in RuntimeDirectory.all() if other.is_running()]
        also = f" (running: {', '.join(others)})" if others else ""
        raise NoDaemonError(f"{error}{also}") from None


def find_keys(
    name_or_endpoints: str | Mapping[str, str],
    server_key: str | bytes | os.PathLike[str] | None = None,
    keys: KeyPair | str | os.PathLike[str] | None = None,
) -> ClientKeys | None:
    """The keys for a daemon, None where it needs none.

    server_key: the daemon's public key, or a file that holds it; keys: the client's own pair, or its secret file. When
    neither is given, a daemon that is found by its name has left a pair for programs of its own user; for addresses
    the environment may name both, ``HAPTICD_SERVER_KEY`` and ``HAPTICD_CLIENT_KEYS``. Raises HapticdError ``keys``
    when they cannot be read or one of the two is missing.
    """
    named = isinstance(name_or_endpoints, str) and "://" not in name_or_endpoints
    try:
        if server_key is None and keys is None:
            if named:
                runtime = RuntimeDirectory(str(name_or_endpoints))
                server_key = runtime.server_key()
                keys = runtime.local_keys_path if server_key is not None else None
            else:
                server_key = os.environ.get("HAPTICD_SERVER_KEY") or None
                keys = os.environ.get("HAPTICD_CLIENT_KEYS") or None
        if server_key is None and keys is None:
            return None
        if server_key is None or keys is None:
            missing = "the daemon's public key" if server_key is None else "the client's own key file"
            raise HapticdError("keys", f"{missing} is missing: a client gives both, or neither")
        own = keys if isinstance(keys, KeyPair) else read_pair(keys)
        return ClientKeys(read_public(server_key, "the daemon's public key"), own)
    except KeysError as error:
        raise HapticdError("keys", str(error)) from None


_GREETING: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "session": ("an integer from 1 to 2^63 - 1", lambda value: type(value) is int and 0 < value < 1 << 63),
    "tick_ns": ("an integer above 0", lambda value: type(value) is int and value > 0),
    "clocking": ("`free` or `triggered`", lambda value: value in ("free", "triggered")),
    "t_received": ("an integer", lambda value: type(value) is int),
    "t_sent": ("an integer", lambda value: type(value) is int),
}
"""What a client needs of a hello reply."""


def check_greeting(greeting: Mapping[str, Any]) -> None:
    """Raise HapticdError ``malformed`` unless a hello reply holds what a client needs, and addresses that are texts."""
    for name, (wanted, fits) in _GREETING.items():
        if name not in greeting:
            raise HapticdError("malformed", f"the hello reply lacks `{name}`")
        if not fits(greeting[name]):
            raise HapticdError("malformed", f"`{name}` of the hello reply is {wanted}, not {greeting[name]!r:.60}")
    _check_endpoints(greeting.get("endpoints", {}))


def _check_endpoints(endpoints: Any) -> None:
    if not isinstance(endpoints, dict) or any(type(text) is not str for item in endpoints.items() for text in item):
        raise HapticdError("malformed", f"`endpoints` of the hello reply is a map of addresses, not {endpoints!r:.60}")


def _reach(endpoints: Mapping[str, str], through: str) -> dict[str, str]:
    """The addresses of a hello reply, seen from a client that reached the control socket at ``through``."""
    host = through.removeprefix("tcp://").rpartition(":")[0]
    return {name: reachable(str(endpoint), host) for name, endpoint in endpoints.items()}


class Question:
    """A control request under way: :meth:`reply` never waits, so a 1 kHz loop can ask without missing a sample."""

    def __init__(self, control: "_Control", request_id: int, op: str, timeout_ms: int) -> None:
        self._control = control
        self._id = request_id
        self._op = op
        self._timeout_ms = timeout_ms
        self._deadline = time.monotonic_ns() + timeout_ms * 1_000_000

    def reply(self) -> dict[str, Any] | None:
        """The reply, None while it has not come. Raises HapticdError when the request was refused or is late."""
        return self.wait(0)

    def wait(self, timeout_ms: int | None = None) -> dict[str, Any] | None:
        """Like :meth:`reply`, but waits up to ``timeout_ms`` (None: until the request is late)."""
        label = self._control.label
        while True:
            left_ms = max(0, -((time.monotonic_ns() - self._deadline) // 1_000_000))
            reply = self._control.collect(self._id, self._op, left_ms if timeout_ms is None else timeout_ms)
            if reply is None:
                if time.monotonic_ns() >= self._deadline:
                    self._control.give_up(self._id)
                    text = f"the daemon {label} did not answer `{self._op}` within {self._timeout_ms} ms"
                    raise NoReplyError(text + self._control.explain_silence())
                if timeout_ms is not None:
                    return None
                continue
            if reply.get("ok") is True:
                return reply
            refusal = reply.get("error")
            if not isinstance(refusal, dict):
                raise HapticdError("malformed", f"the reply to `{self._op}` says neither ok nor error")
            text = str(refusal.get("text", "refused without a reason"))
            raise HapticdError(str(refusal.get("code", "unknown")), text)


class _Control:
    """Requests over the control socket, matched to their replies by id."""

    def __init__(
        self, context: zmq.Context, address: str, label: str, timeout_ms: int, keys: ClientKeys | None = None
    ) -> None:
        self._socket = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._monitor: zmq.Socket | None = monitor(self._socket, _HANDSHAKES)
        self._keys = keys
        _connect(self._socket, address, keys, 2 * REPLY_MAX_BYTES)
        self._ids = itertools.count(1)
        self._replies: dict[int, dict[str, Any]] = {}
        self._open: set[int] = set()
        self._timeout_ms = timeout_ms
        self.label = label

    def ask(self, op: str, *, timeout_ms: int | None = None, **fields: Any) -> Question:
        """Sends a request; its reply is collected through the Question."""
        request_id = next(self._ids)
        try:
            self._socket.send(pack_control({"v": PROTOCOL_VERSION, "id": request_id, "op": op, **fields}), zmq.NOBLOCK)
        except WireError as error:
            raise HapticdError(error.code, f"`{op}` was not sent: {error.text}") from None
        except zmq.Again:
            raise NoReplyError(f"the daemon {self.label} takes no more requests") from None
        self._open.add(request_id)
        return Question(self, request_id, op, self._timeout_ms if timeout_ms is None else timeout_ms)

    def request(self, op: str, *, timeout_ms: int | None = None, **fields: Any) -> dict[str, Any]:
        """Sends a request and waits for its reply."""
        reply = self.ask(op, timeout_ms=timeout_ms, **fields).wait()
        assert reply is not None
        return reply

    def collect(self, request_id: int, op: str, timeout_ms: int) -> dict[str, Any] | None:
        """The reply to one request, None when it has not come in time; others are kept for their askers."""
        if request_id in self._replies:
            self._open.discard(request_id)
            return self._replies.pop(request_id)
        if not self._socket.poll(timeout_ms):
            return None
        self._stop_watching()
        try:
            reply = unpack_control(self._socket.recv(zmq.NOBLOCK), reply=True)
        except WireError as error:
            raise HapticdError(error.code, f"the reply to `{op}` cannot be read: {error.text}") from None
        # id 0: the daemon could not read the request, so this must be the one that waits
        found = reply.get("id") or request_id
        if found == request_id:
            self._open.discard(request_id)
            return reply
        if found in self._open:
            self._replies[found] = reply
        return None

    def give_up(self, request_id: int) -> None:
        """Nobody waits for this reply any more."""
        self._open.discard(request_id)
        self._replies.pop(request_id, None)

    def explain_silence(self) -> str:
        """What the handshakes tell about a daemon that does not answer, as the rest of a sentence; often nothing."""
        failed = 0
        refused = False
        while self._monitor is not None and self._monitor.poll(0):
            event = recv_monitor_message(self._monitor, zmq.NOBLOCK)["event"]
            if event == zmq.Event.HANDSHAKE_SUCCEEDED:
                return ""
            failed += 1
            refused |= event == zmq.Event.HANDSHAKE_FAILED_AUTH
        if not failed:
            return ""
        if self._keys is None:
            return "; the handshake fails: it may ask for keys (`server_key` and `keys`, see docs/access.md)"
        own, server = fingerprint(self._keys.own.public), fingerprint(self._keys.server)
        if refused:
            return f"; it refuses the key {own}, which is not on its list"
        return f"; the handshake fails: the keys may be wrong (the daemon's {server}, own {own}), or it has none"

    def close(self) -> None:
        """Closes the socket."""
        self._stop_watching()
        self._socket.close(linger=0)

    def _stop_watching(self) -> None:
        """A daemon that has answered lets this client in: handshakes need not be looked at any more."""
        if self._monitor is not None:
            self._socket.disable_monitor()
            self._monitor.close(linger=0)
            self._monitor = None


_HANDSHAKES = (
    zmq.Event.HANDSHAKE_SUCCEEDED
    | zmq.Event.HANDSHAKE_FAILED_NO_DETAIL
    | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
    | zmq.Event.HANDSHAKE_FAILED_AUTH
)


def _connect(socket: zmq.Socket, address: str, keys: ClientKeys | None, largest: int) -> None:
    """Connect, encrypted where there are keys; a daemon that sends more than ``largest`` bytes is disconnected."""
    socket.setsockopt(zmq.MAXMSGSIZE, largest)
    if address.startswith("tcp://["):
        socket.setsockopt(zmq.IPV6, 1)
    if keys is not None and address.startswith("tcp://"):
        keys.use(socket)
        # One who is refused knocks less and less often.
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 2000)
    socket.connect(address)


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
        self._control = _Control(self._context, endpoints["control"], label, timeout_ms, own_keys)
        try:
            self._hello(client_name or f"python-{os.getpid()}", label, name_or_endpoints)
            endpoints = {**_reach(self.greeting.get("endpoints", {}), endpoints["control"]), **endpoints}
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
            _connect(self._device, endpoints["device"], own_keys, 2 * MAX_MESSAGE_BYTES)
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


@dataclass(frozen=True)
class Observation:
    """One message of the state or events socket."""

    kind: str
    """``state`` or ``event``."""
    fields: dict[str, Any]
    lost: int = 0
    """Events: how many of the same source were missed just before this one."""


class Observer:
    """Watches a daemon without taking part: decimated tick records and numbered events. Any number may watch."""

    def __init__(
        self,
        name_or_endpoints: str | Mapping[str, str] = "default",
        *,
        state: bool = True,
        events: bool = True,
        server_key: str | bytes | os.PathLike[str] | None = None,
        keys: KeyPair | str | os.PathLike[str] | None = None,
    ) -> None:
        if not (state or events):
            raise ValueError("an observer of neither state nor events sees nothing")
        label, endpoints = find_endpoints(name_or_endpoints)
        own_keys = find_keys(name_or_endpoints, server_key, keys)
        self._context = zmq.Context()
        self._sockets: dict[str, zmq.Socket] = {}
        self._last_seq: dict[str, int] = {}
        try:
            if set(endpoints) == {"control"}:
                endpoints = self._ask(endpoints["control"], label, own_keys)
            for kind, name, wanted in (("event", "events", events), ("state", "state", state)):
                if wanted:
                    if name not in endpoints:
                        raise ValueError(f"the address of the {name} socket is missing in {endpoints}")
                    socket = self._context.socket(zmq.SUB)
                    self._sockets[kind] = socket
                    socket.setsockopt(zmq.LINGER, 0)
                    socket.setsockopt(zmq.SUBSCRIBE, b"")
                    _connect(socket, endpoints[name], own_keys, 2 * REPLY_MAX_BYTES)
        except BaseException:
            self.close()
            raise
        self._poller = zmq.Poller()
        for socket in self._sockets.values():
            self._poller.register(socket, zmq.POLLIN)

    def _ask(self, address: str, label: str, keys: ClientKeys | None) -> dict[str, str]:
        control = _Control(self._context, address, label, CONTROL_TIMEOUT_MS, keys)
        try:
            greeting = control.request(
                "hello",
                client=f"observer-{os.getpid()}",
                versions=[PROTOCOL_VERSION],
                roles=["observer"],
                t_client=time.monotonic_ns(),
            )
        except NoReplyError as error:
            raise NoDaemonError(f"no daemon answers {label}: {error.text}") from None
        finally:
            control.close()
        _check_endpoints(greeting.get("endpoints", {}))
        return _reach(greeting.get("endpoints", {}), address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the sockets."""
        if not self._context.closed:
            for socket in self._sockets.values():
                socket.close(linger=0)
            self._context.term()

    def receive(self, timeout_ms: int | None = None) -> Observation | None:
        """The next event, else the next state; None when nothing came within ``timeout_ms`` (None waits for ever)."""
        ready = dict(self._poller.poll(timeout_ms))
        for kind, socket in self._sockets.items():  # events first: there are few and none may be missed
            if socket in ready:
                return self._observe(kind, socket.recv())
        return None

    def _observe(self, kind: str, message: bytes) -> Observation:
        try:
            fields = unpack_control(message, reply=True)
        except WireError as error:
            raise HapticdError(error.code, f"a message of the {kind} socket cannot be read: {error.text}") from None
        lost = 0
        seq = fields.get("seq")
        if kind == "event" and isinstance(seq, int):
            source = str(fields.get("source", "servo"))
            lost = max(0, seq - self._last_seq.get(source, seq - 1) - 1)
            self._last_seq[source] = seq
        return Observation(kind, fields, lost)

    def newest_state(self, timeout_ms: int | None = None) -> dict[str, Any] | None:
        """The newest tick record that has arrived, older ones dropped; waits for one up to ``timeout_ms``."""
        socket = self._sockets.get("state")
        if socket is None:
            raise ValueError("this observer does not watch the state socket")
        if not socket.poll(timeout_ms):
            return None
        message = socket.recv()
        try:
            while True:
                message = socket.recv(zmq.NOBLOCK)
        except zmq.Again:
            return self._observe("state", message).fields

    def __iter__(self) -> Iterator[Observation]:
        """All observations as they come, for ever."""
        while True:
            observation = self.receive()
            if observation is not None:
                yield observation
