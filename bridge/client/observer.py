"""The observer: watches the state and events of a daemon."""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import zmq

from bridge.client.connecting import connect, find_endpoints, find_keys
from bridge.client.errors import HapticdError, NoDaemonError, NoReplyError
from bridge.client.greeting import check_endpoints, reach
from bridge.client.requests import CONTROL_TIMEOUT_MS, Control
from bridge.keys import ClientKeys, KeyPair
from bridge.schema import PROTOCOL_VERSION, REPLY_MAX_BYTES
from bridge.wire import WireError, unpack_control


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
                    connect(socket, endpoints[name], own_keys, 2 * REPLY_MAX_BYTES)
        except BaseException:
            self.close()
            raise
        self._poller = zmq.Poller()
        for socket in self._sockets.values():
            self._poller.register(socket, zmq.POLLIN)

    def _ask(self, address: str, label: str, keys: ClientKeys | None) -> dict[str, str]:
        control = Control(self._context, address, label, CONTROL_TIMEOUT_MS, keys)
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
        check_endpoints(greeting.get("endpoints", {}))
        return reach(greeting.get("endpoints", {}), address)

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
