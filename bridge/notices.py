"""Notices: what processes other than the servo have to say (recorder restarted, disk full, records lost...).

They travel over a local PUSH socket to the publisher, which numbers them per source and sends them out on the events
socket beside the state changes. Sending never waits; while the publisher is away a bounded number of notices is kept.
One that is lost all the same (dropped here, or on its way to a publisher that died) leaves a gap in the numbers: the
sender counts what it sends, and the publisher numbers by that count.
"""

import collections
import contextlib
import time
import uuid
from typing import Any

import msgpack
import zmq

from bridge.runtime import RuntimeDirectory
from bridge.wire import WireError, unpack_map

KEPT = 1000
"""Notices kept while no publisher takes them; later ones are dropped."""


def read_notice(message: bytes) -> tuple[str, str, str, str, int, dict[str, Any]]:
    """Source, code, text, sender, count and further facts of a notice. Raises WireError when it is none."""
    fields = unpack_map(message, reply=True)
    words = [fields.pop(key, None) for key in ("source", "code", "text", "sender")]
    count = fields.pop("count", None)
    if any(type(word) is not str for word in words) or type(count) is not int or type(fields.get("t", 0)) is not int:
        raise WireError("malformed", "a notice has a source, a code, a text, a sender and a count")
    source, code, text, sender = map(str, words)
    return source, code, text, sender, count, fields


class Notifier:
    """Sends notices of one process; use it in one thread."""

    def __init__(self, runtime: RuntimeDirectory) -> None:
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.PUSH)
        self._socket.set(zmq.LINGER, 200)
        self._socket.set(zmq.SNDHWM, KEPT)
        self._socket.set(zmq.RECONNECT_IVL, 50)
        self._socket.connect(runtime.notices_endpoint())
        self._sender = uuid.uuid4().hex
        self._counts: collections.Counter[str] = collections.Counter()

    def send(self, source: str, code: str, text: str, **data: Any) -> bool:
        """Send one notice; False when it had to be dropped.

        source: process, e.g. ``recorder``. code: short snake_case word. text: one sentence for people. data: further
        facts that msgpack can carry; `source`, `code`, `text`, `t`, `sender` and `count` are taken.
        """
        self._counts[source] += 1
        notice = {**data, "source": source, "code": code, "text": text, "t": time.monotonic_ns()}
        notice |= {"sender": self._sender, "count": self._counts[source]}
        try:
            self._socket.send(msgpack.packb(notice, default=str), zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def close(self) -> None:
        """Give what is queued 200 ms to leave, then drop it."""
        with contextlib.suppress(zmq.ZMQError):
            self._socket.close()
            self._context.term()
