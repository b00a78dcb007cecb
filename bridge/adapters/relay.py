"""Between an adapter and a daemon's device socket: passes everything on, and does to renders what a test asks for."""

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
import zmq

from bridge.wire.layout import MARK, PRESENT_BITS, RENDER_STRUCT, SAMPLE_STRUCT
from haptics.last_line import Wrench
from haptics.states import EngagementState

FORCES = (EngagementState.ENGAGING, EngagementState.ACTIVE, EngagementState.HOLD, EngagementState.RELEASING)


class Seen:
    """One sample that passed."""

    __slots__ = ("arrived", "fields")

    def __init__(self, arrived: int, fields: Any) -> None:
        self.arrived, self.fields = arrived, fields

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    @property
    def valid(self) -> bool:
        """Whether its pose may be used."""
        if isinstance(self.fields, dict):
            return bool(self.fields.get("valid", 1))
        return bool(self.fields["valid"]) or not int(self.fields["present"]) & PRESENT_BITS["valid"]

    @property
    def twist(self) -> Sequence[float] | None:
        """(6,) m/s, rad/s; None where it is not told."""
        if isinstance(self.fields, dict):
            return self.fields.get("twist")
        return self.fields["twist"] if int(self.fields["present"]) & PRESENT_BITS["twist"] else None


class Relay:
    """Runs in a thread of its own from `start` to `stop`."""

    def __init__(self, address: str, daemon: str) -> None:
        self.address, self._daemon = address, daemon
        self.push: Wrench | None = None
        """Takes the place of the wrench while the daemon gives forces; the spring is taken out."""
        self.broken = False
        """Renders are NaN."""
        self.held = False
        """Renders are kept back."""
        self.samples: deque[Seen] = deque(maxlen=20_000)
        self.last_passed = 0
        """When the last good render was passed on, monotonic ns."""
        self.valid_for = 0
        """Of that render, ns."""
        self.state = -1
        """Of the newest render."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "Relay":
        """Begin."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End."""
        self._stop.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        context = zmq.Context()
        front = context.socket(zmq.ROUTER)
        front.setsockopt(zmq.LINGER, 0)
        front.bind(self.address)
        poller = zmq.Poller()
        poller.register(front, zmq.POLLIN)
        backs: dict[bytes, zmq.Socket] = {}
        whose: dict[zmq.Socket, bytes] = {}
        while not self._stop.is_set():
            for socket, _ in poller.poll(20):
                if socket is front:
                    identity, message = front.recv_multipart()
                    if identity not in backs:
                        back = context.socket(zmq.DEALER)
                        back.setsockopt(zmq.LINGER, 0)
                        back.setsockopt(zmq.SNDHWM, 8)
                        back.connect(self._daemon)
                        poller.register(back, zmq.POLLIN)
                        backs[identity], whose[back] = back, identity
                    self._note(message)
                    with contextlib.suppress(zmq.Again):
                        backs[identity].send(message, zmq.NOBLOCK)
                else:
                    changed = self._change(socket.recv())
                    if changed is not None:
                        front.send_multipart([whose[socket], changed])
        for socket in (front, *whose):
            socket.close(linger=0)
        context.term()

    def _note(self, message: bytes) -> None:
        now = time.monotonic_ns()
        if message[:1] == MARK:
            if len(message) == SAMPLE_STRUCT.itemsize:
                self.samples.append(Seen(now, np.frombuffer(message, SAMPLE_STRUCT)[0]))
        else:
            with contextlib.suppress(ValueError, msgpack.UnpackException):
                self.samples.append(Seen(now, msgpack.unpackb(message)))

    def _change(self, message: bytes) -> bytes | None:
        """The render to pass on."""
        packed = message[:1] != MARK
        fields: Any = msgpack.unpackb(message) if packed else np.frombuffer(message, RENDER_STRUCT).copy()
        state = int(fields["state"] if packed else fields["state"][0])
        self.state = state
        if self.held:
            return None
        values: dict[str, Any] = {}
        if self.push is not None and state in FORCES:
            values = {"wrench": self.push, "feed_forward": self.push, "stiffness": (0.0,) * 6, "damping": (0.0,) * 6}
        if self.broken:
            values = {"wrench": (math.nan,) * 6, "feed_forward": (math.nan,) * 6}
        else:
            self.last_passed = time.monotonic_ns()
            self.valid_for = int(fields["valid_for"] if packed else fields["valid_for"][0])
        if not values:
            return message
        for name, value in values.items():
            if packed:
                fields[name] = list(value)
            else:
                fields[name][0] = value
        return msgpack.packb(fields) if packed else fields.tobytes()
