"""Control requests: sent over the control socket, each matched to its reply."""

import itertools
import time
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from bridge.access import monitor
from bridge.client.connecting import connect
from bridge.client.errors import HapticdError, NoReplyError
from bridge.keys import ClientKeys, fingerprint
from bridge.schema import PROTOCOL_VERSION, REPLY_MAX_BYTES
from bridge.wire import WireError, pack_control, unpack_control

CONTROL_TIMEOUT_MS = 2000
"""How long a control request waits for its reply."""


class Question:
    """A control request under way: :meth:`reply` never waits, so a 1 kHz loop can ask without missing a sample."""

    def __init__(self, control: "Control", request_id: int, op: str, timeout_ms: int) -> None:
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


class Control:
    """Requests over the control socket, matched to their replies by id."""

    def __init__(
        self, context: zmq.Context, address: str, label: str, timeout_ms: int, keys: ClientKeys | None = None
    ) -> None:
        self._socket = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._monitor: zmq.Socket | None = monitor(self._socket, _HANDSHAKES)
        self._keys = keys
        connect(self._socket, address, keys, 2 * REPLY_MAX_BYTES)
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
