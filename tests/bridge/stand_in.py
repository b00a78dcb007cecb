"""A stand-in for a daemon: the four sockets in a thread, answering as a test tells it. Its only mechanics: a wall."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import zmq

from bridge.wire import decode_sample, encode_render, pack_control, sample_is_struct, unpack_control, warm_up
from haptics.states import EngagementState, Reason
from haptics.tables import RECORD, SAMPLE

SESSION = 4711
STIFFNESS = 400.0
CLOCK_AHEAD_NS = 5_000_000_000
"""The stand-in's clock is ahead of the client's by this."""


class StandIn:
    """``answers``: op -> function from a request to fields of the reply, a (code, text) refusal, None for silence."""

    def __init__(self, directory: Any, *, clocking: str = "triggered", tick_ns: int = 1_000_000) -> None:
        warm_up()
        self.endpoints = {name: f"ipc://{directory}/{name}" for name in ("device", "control", "state", "events")}
        self.clocking = clocking
        self.tick_ns = tick_ns
        self.requests: list[dict[str, Any]] = []
        self.samples: list[np.void] = []
        self.encodings: list[bool] = []
        self.answers: dict[str, Callable[[dict], Any]] = {}
        self.state = EngagementState.IDLE
        self.reason = Reason.NONE
        self.tick = 0
        self.silent = False
        """Take samples and give no renders."""
        self.last_rendered: float = float("inf")
        """The last tick that gives a render; later ticks are silent."""
        self.on_sample: Callable[[StandIn], None] = lambda stand_in: None
        self._stop = threading.Event()
        self._context = zmq.Context()
        self._sockets = {
            name: self._context.socket(kind)
            for name, kind in (("device", zmq.ROUTER), ("control", zmq.ROUTER), ("state", zmq.PUB), ("events", zmq.PUB))
        }
        for name, socket in self._sockets.items():
            socket.setsockopt(zmq.LINGER, 0)
            socket.bind(self.endpoints[name])
        self._outbox: list[tuple[str, bytes]] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> "StandIn":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)
        for socket in self._sockets.values():
            socket.close()
        self._context.term()

    def publish(self, name: str, fields: dict[str, Any]) -> None:
        """Send a map on ``state`` or ``events``, from the thread that owns the sockets."""
        self._outbox.append((name, pack_control(fields)))

    def now(self) -> int:
        """The stand-in's clock, ns."""
        return time.monotonic_ns() + CLOCK_AHEAD_NS

    def _serve(self) -> None:
        poller = zmq.Poller()
        for name in ("device", "control"):
            poller.register(self._sockets[name], zmq.POLLIN)
        owner: tuple[bytes, bool] | None = None
        record = np.zeros(1, RECORD)
        due = time.monotonic()
        while not self._stop.is_set():
            ready = dict(poller.poll(1))
            if self._sockets["control"] in ready:
                identity, message = self._sockets["control"].recv_multipart()
                for reply in self._reply(unpack_control(message)):
                    self._sockets["control"].send_multipart([identity, pack_control(reply)])
            while self._sockets["device"].poll(0):
                identity, message = self._sockets["device"].recv_multipart()
                sample = np.zeros(1, SAMPLE)
                assert decode_sample(message, sample) == 0
                self.samples.append(sample[0])
                self.encodings.append(sample_is_struct(message))
                owner = (identity, self.encodings[-1])
                self.on_sample(self)
                if self.clocking == "triggered":
                    self._render(owner, record)
            if self.clocking == "free" and owner and time.monotonic() >= due:
                due = time.monotonic() + self.tick_ns * 1e-9
                self._render(owner, record)
            while self._outbox:
                name, message = self._outbox.pop(0)
                self._sockets[name].send(message)

    def _render(self, owner: tuple[bytes, bool], record: np.ndarray) -> None:
        self.tick += 1
        if self.silent or self.tick > self.last_rendered:
            return
        depth = max(0.0, -float(self.samples[-1]["position"][2]))
        engaged = EngagementState.ENGAGING <= self.state <= EngagementState.RELEASING
        record["tick"] = self.tick
        record["timing"]["t_received"] = self.now()
        output = record[0]["output"]
        output["seq"] = self.samples[-1]["seq"]
        output["wrench"][2] = STIFFNESS * depth if engaged else 0.0
        output["state"], output["reason"] = self.state, self.reason
        output["report"]["smallest_gap"] = 0.001
        self._sockets["device"].send_multipart([owner[0], encode_render(record, self.now(), owner[1])])

    def _reply(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        self.requests.append(request)
        answer: Any = {}
        if request["op"] in self.answers:
            answer = self.answers[request["op"]](request)
        elif request["op"] == "hello":
            answer = self.hello()
        elif request["op"] == "arm":
            self.state, self.reason = EngagementState.ACTIVE, Reason.RAMP_DONE
        elif request["op"] in ("disarm", "release"):
            self.state, self.reason = EngagementState.IDLE, Reason.COMMAND
        if answer is None:
            return []
        if isinstance(answer, tuple):
            error = {"code": answer[0], "text": answer[1]}
            return [{"id": request["id"], "ok": False, "error": error}]
        # Of the first tick that shows it, as the daemon's is: the newest one may have left before.
        return [{"id": request["id"], "ok": True, "tick": self.tick + 1, "state": int(self.state), **answer}]

    def hello(self) -> dict[str, Any]:
        """Fields of a hello reply."""
        return {
            "session": SESSION,
            "version": 1,
            "tick_ns": self.tick_ns,
            "clocking": self.clocking,
            "endpoints": self.endpoints,
            "t_received": self.now(),
            "t_sent": self.now(),
            "lease_ms": 2000.0,
            "stale_after_ms": 20.0,
        }
