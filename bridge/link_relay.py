"""A relay between the peer sockets of two daemons, which delays and loses messages as a network would.

To each end it is a client. It passes messages on as they are, and says hello to an end from which nothing comes, so
that the end knows where to send. Which messages are lost depends on seed, direction and place in the order of arrival
alone, not on time. What is delayed waits in a heap; the relay sleeps until shortly before the next one is due.
"""

import heapq
import math
import random
import select
import struct
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from bridge import realtime
from bridge.access import monitor
from bridge.client import HapticdError, find_endpoints, find_keys
from bridge.ending import asked_to_end
from bridge.keys import ClientKeys, fingerprint
from bridge.peer_socket import LARGEST_MESSAGE, connect_peer
from bridge.runtime import PEER_SOCKET
from bridge.schema import KIND_PEER
from bridge.wire import PEER_HELLO, PEER_STRUCT
from bridge.wire.layout import MARK

GREET_NS = 100_000_000
"""Between two hellos to an end from which nothing has come for as long."""

SPIN_NS = 200_000
"""So long before a message is due the relay stops sleeping."""

LONGEST_SLEEP_NS = 50_000_000
QUEUED = 1000
MAX_WAITING = 200_000
"""Messages under way in each direction; with more, the newest are dropped."""

BATCH = 64
"""Messages read from one end before those that are due go out."""

KEPT_WAYS = 4096
"""Messages that are remembered until their echo comes, and ways of which the summary tells the distribution."""

_TIMES = struct.Struct("<qqq")
_TIMES_AT = PEER_STRUCT.fields["t_sent"][1]  # type: ignore[index]
_POLLIN = int(zmq.POLLIN)
_NOBLOCK = int(zmq.NOBLOCK)
_FAILURES = zmq.Event.HANDSHAKE_FAILED_NO_DETAIL | zmq.Event.HANDSHAKE_FAILED_PROTOCOL | zmq.Event.HANDSHAKE_FAILED_AUTH


@dataclass(frozen=True)
class Line:
    """What the way between two ends does to messages, in each direction. Raises ValueError for what cannot be."""

    delay_ms: float = 0.0
    """One way."""
    jitter_ms: float = 0.0
    """On top of it, by chance, evenly from 0 to this: messages may overtake each other."""
    loss: float = 0.0
    """Share that is lost, 0 to 1."""
    burst: float | None = None
    """Mean number of messages lost in a row (Gilbert 1960); None: each is lost by itself."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in (("delay", self.delay_ms), ("jitter", self.jitter_ms)):
            if not 0.0 <= value <= 60_000.0:
                raise ValueError(f"--{name} {value:g} must be from 0 to 60000 ms")
        if not 0.0 <= self.loss <= 1.0:
            raise ValueError(f"--loss {100.0 * self.loss:g} must be from 0 to 100 percent")
        if self.burst is None:
            return
        if not 1.0 <= self.burst <= 1e6:
            raise ValueError(f"--burst {self.burst:g} must be at least 1 message")
        if self.loss < 1.0 and self.loss / (1.0 - self.loss) > self.burst:
            least = self.loss / (1.0 - self.loss)
            raise ValueError(
                f"--burst {self.burst:g} is too short for a loss of {100.0 * self.loss:g} percent: so many lost ones "
                f"come in rows of {least:.3g} at least"
            )


class Losses:
    """Which messages of one direction are lost: a chain of two states, and in one of them all are."""

    def __init__(self, line: Line, direction: str) -> None:
        self._random = random.Random(f"{line.seed} {direction} losses")
        self._loss = line.loss
        self._ends = 1.0 - line.loss
        self._begins = line.loss
        if line.burst is not None and 0.0 < line.loss < 1.0:
            self._ends = 1.0 / line.burst
            self._begins = line.loss * self._ends / (1.0 - line.loss)
        # The chain begins as it goes on, so that the share is right from the first message on.
        self._losing = self._random.random() < line.loss

    def next(self) -> bool:
        """Whether the next message is lost."""
        lost = self._losing
        chance = self._random.random()
        self._losing = chance >= self._ends if lost else chance < self._begins
        return lost


class Direction:
    """Messages from one end to the other."""

    def __init__(self, line: Line, name: str) -> None:
        self.losses = Losses(line, name)
        self._jitter = random.Random(f"{line.seed} {name} jitter")
        self._delay_ns = line.delay_ms * 1e6
        self._jitter_ns = line.jitter_ms * 1e6
        self.received = 0
        self.lost = 0
        self.passed = 0
        self.dropped = 0
        """Could not be handed over: the end is not there, or does not read."""
        self.late_ns = deque[int](maxlen=KEPT_WAYS)
        """By how much messages went out later than they should."""
        self.waiting = 0

    def due(self, arrived: int) -> int | None:
        """When a message that has just arrived is to go out, ns; None when it is lost."""
        self.received += 1
        lost = self.losses.next()
        more = self._jitter_ns * self._jitter.random() if self._jitter_ns else 0.0
        if lost:
            self.lost += 1
            return None
        return arrived + round(self._delay_ns + more)

    def facts(self) -> dict[str, Any]:
        """Counts, and how late messages went out, ms."""
        late = sorted(self.late_ns)
        return {
            **{name: getattr(self, name) for name in ("received", "passed", "lost", "dropped")},
            "late_ms": {"p50": _quantile(late, 0.5), "p99": _quantile(late, 0.99)} if late else None,
        }


class Ways:
    """How long it takes there and back, by the echoes that the ends put into their messages."""

    def __init__(self) -> None:
        self._seen: tuple[OrderedDict[int, int], OrderedDict[int, int]] = (OrderedDict(), OrderedDict())
        self._half: list[int | None] = [None, None]
        self.ways_ns = deque[int](maxlen=KEPT_WAYS)

    @property
    def newest_ns(self) -> int | None:
        """There and back between the two ends, None while it is not known."""
        first, second = self._half
        return None if first is None or second is None else first + second

    def see(self, side: int, message: bytes, arrived: int) -> None:
        """A message of the end `side` (0 or 1) has come: it echoes one of the other end's, which passed here."""
        if len(message) != PEER_STRUCT.itemsize or message[:1] != MARK or message[2] != KIND_PEER:
            return
        t_sent, t_echo, t_held = _TIMES.unpack_from(message, _TIMES_AT)
        own = self._seen[side]
        own[t_sent] = arrived
        if len(own) > KEPT_WAYS:
            own.popitem(last=False)
        passed = self._seen[1 - side].get(t_echo)
        if t_echo and passed is not None and 0 <= t_held <= arrived - passed:
            self._half[side] = arrived - passed - t_held
            if self.newest_ns is not None:
                self.ways_ns.append(self.newest_ns)

    def facts(self) -> dict[str, float] | None:
        """Distribution of the newest ones, ms."""
        ways = sorted(self.ways_ns)
        if not ways:
            return None
        return {"p50": _quantile(ways, 0.5), "p99": _quantile(ways, 0.99), "largest": ways[-1] * 1e-6}


def _quantile(ordered: list[int], share: float) -> float:
    """Of sorted ns, in ms."""
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1e-6


class RelayEnd:
    """The relay's connection to one of the two ends."""

    def __init__(self, context: zmq.Context, label: str, address: str, keys: ClientKeys | None) -> None:
        self.label = label
        self.address = address
        self.heard = 0
        """When something came last, ns; 0: never."""
        self._keys = keys
        self._greeted = 0
        self.socket = context.socket(zmq.DEALER)
        self.socket.set(zmq.LINGER, 0)
        self.socket.set(zmq.RCVHWM, QUEUED)
        self.socket.set(zmq.SNDHWM, QUEUED)
        self.socket.set(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
        self._monitor: zmq.Socket | None = monitor(self.socket, _FAILURES)
        try:
            connect_peer(self.socket, address, keys)
        except zmq.ZMQError as error:
            self.close()
            raise ValueError(f"{address!r:.100} is no address of a peer socket: {error}") from None
        self.descriptor = int(self.socket.get(zmq.FD))

    @property
    def ready(self) -> bool:
        """Whether a message waits to be read."""
        return bool(int(self.socket.get(zmq.EVENTS)) & _POLLIN)

    def receive(self) -> bytes | None:
        """The next message; None when none waits, or what came is of several frames."""
        if not self.ready:
            return None
        message = self.socket.recv(_NOBLOCK)
        if not self.socket.get(zmq.RCVMORE):
            return message
        while self.socket.get(zmq.RCVMORE):
            self.socket.recv(_NOBLOCK)
        return None

    def send(self, message: bytes) -> bool:
        """Hand a message over; False when that end is not there or does not read."""
        try:
            self.socket.send(message, _NOBLOCK)
        except zmq.ZMQError:
            return False
        return True

    def greet(self, now: int) -> None:
        """Say hello to an end from which nothing comes."""
        if now - max(self.heard, self._greeted) >= GREET_NS:
            self._greeted = now
            self.send(PEER_HELLO)

    def check_keys(self) -> None:
        """Raise HapticdError ``keys`` when that end does not let this relay in."""
        if self.heard:
            self._stop_watching()
        if self._monitor is None or not self._monitor.poll(0):
            return
        event = recv_monitor_message(self._monitor, zmq.NOBLOCK)["event"]
        where = f"{self.label} ({self.address})"
        if self._keys is None:
            text = f"{where} asks for keys: give --server-key and --keys, see `hapticd keys --help`"
        elif event == zmq.Event.HANDSHAKE_FAILED_AUTH:
            text = f"{where} refuses the key {fingerprint(self._keys.own.public)}, which is not on its list"
        else:
            text = f"the handshake with {where} fails: {fingerprint(self._keys.server)} may not be its key"
        raise HapticdError("keys", text)

    def close(self) -> None:
        """Close it; what is queued is dropped."""
        self._stop_watching()
        self.socket.close(linger=0)

    def _stop_watching(self) -> None:
        """Who has sent something lets this relay in: handshakes need not be looked at any more."""
        if self._monitor is not None:
            self.socket.disable_monitor()
            self._monitor.close(linger=0)
            self._monitor = None


def find_peer(
    name_or_address: str, server_key: str | None = None, keys: str | None = None
) -> tuple[str, str, ClientKeys | None]:
    """How to call an end, the address of its peer socket, and the keys for it.

    Takes the name of a daemon of this user, or the address of a peer socket (``tcp://...``, ``ipc://...``), for which
    the two keys are as in :func:`bridge.client.find_keys`. Raises HapticdError, NoDaemonError.
    """
    if "://" in name_or_address:
        guarded = name_or_address.startswith("tcp://")
        own = find_keys(name_or_address, server_key, keys) if guarded else None
        return "the end", name_or_address, own
    label, endpoints = find_endpoints(name_or_address)
    if PEER_SOCKET not in endpoints:
        raise HapticdError(
            "no_peer",
            f"the daemon {label} has no peer socket: its configuration needs a table [link] without `connect`",
        )
    return label, endpoints[PEER_SOCKET], find_keys(name_or_address)


class LinkRelay:
    """Between two ends, in the thread that calls `run`."""

    def __init__(self, ends: tuple[RelayEnd, RelayEnd], line: Line) -> None:
        self.ends = ends
        self.line = line
        self.directions = (Direction(line, "a to b"), Direction(line, "b to a"))
        self.ways = Ways()
        self.stop = threading.Event()
        """Set it to end `run`."""
        self._heap: list[tuple[int, int, int, bytes]] = []
        self._count = 0

    def run(
        self, duration_s: float | None = None, report: Callable[[], None] | None = None, every_s: float = 1.0
    ) -> None:
        """Pass messages on until `stop`, or for so long; `report` is called every so many s.

        Raises HapticdError ``keys`` when an end does not let this relay in.
        """
        clock = time.monotonic_ns
        began = clock()
        ends_at = math.inf if duration_s is None else began + duration_s * 1e9
        report_at = began + every_s * 1e9 if report is not None else math.inf
        checked = 0
        descriptors = [end.descriptor for end in self.ends]
        while not self.stop.is_set():
            self._read()
            now = clock()
            self._release(now)
            if now >= ends_at:
                return
            if now - checked >= GREET_NS // 2:
                checked = now
                for end in self.ends:
                    end.greet(now)
                    end.check_keys()
            if report is not None and now >= report_at:
                report_at += every_s * 1e9
                report()
            wake = min(now + LONGEST_SLEEP_NS, ends_at, report_at)
            if self._heap:
                wake = min(wake, self._heap[0][0] - SPIN_NS)
            left = wake - clock()
            # Whether something waits must be asked last: the descriptor tells of changes alone.
            if left > 0 and not (self.ends[0].ready or self.ends[1].ready):
                select.select(descriptors, [], [], left * 1e-9)

    def _read(self) -> None:
        for side, end in enumerate(self.ends):
            direction = self.directions[side]
            for _ in range(BATCH):
                message = end.receive()
                if message is None:
                    break
                arrived = time.monotonic_ns()
                end.heard = arrived
                self.ways.see(side, message, arrived)
                due = direction.due(arrived)
                if due is None:
                    continue
                if direction.waiting >= MAX_WAITING:
                    direction.dropped += 1
                    continue
                direction.waiting += 1
                self._count += 1
                heapq.heappush(self._heap, (due, self._count, side, message))

    def _release(self, now: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now:
            due, _, side, message = heapq.heappop(heap)
            direction = self.directions[side]
            direction.waiting -= 1
            if self.ends[1 - side].send(message):
                direction.passed += 1
                direction.late_ns.append(time.monotonic_ns() - due)
            else:
                direction.dropped += 1

    def summary(self, seconds: float) -> dict[str, Any]:
        """All that there is to tell at the end."""
        return {
            "a": self.ends[0].address,
            "b": self.ends[1].address,
            "seconds": seconds,
            **{name: getattr(self.line, name) for name in ("delay_ms", "jitter_ms", "loss", "burst", "seed")},
            "a_to_b": self.directions[0].facts(),
            "b_to_a": self.directions[1].facts(),
            "way_ms": self.ways.facts(),
        }


class Report:
    """The line that tells how a relay is doing."""

    def __init__(self, relay: LinkRelay, every_s: float) -> None:
        self._relay = relay
        self._every_s = every_s
        self._before = [(0, 0), (0, 0)]

    def line(self) -> str:
        """Messages per second each way, those lost since the last line, and the way there and back."""
        parts = []
        for k, (name, direction) in enumerate(zip(("A -> B", "B -> A"), self._relay.directions, strict=True)):
            received, lost = direction.received - self._before[k][0], direction.lost - self._before[k][1]
            self._before[k] = (direction.received, direction.lost)
            parts.append(f"{name} {received / self._every_s:6.0f}/s, lost {lost:4d}")
            if direction.dropped:
                parts[-1] += f", not taken {direction.dropped}"
        way = self._relay.ways.newest_ns
        parts.append("way there and back unknown" if way is None else f"there and back {way * 1e-6:.2f} ms")
        return "   ".join(parts)


def run_relay(
    a: str,
    b: str,
    line: Line,
    *,
    duration_s: float | None = None,
    report_s: float = 1.0,
    on_line: Callable[[str], None] | None = None,
    server_keys: tuple[str | None, str | None] = (None, None),
    keys: str | None = None,
) -> dict[str, Any]:
    """Relay between two ends until SIGINT, SIGTERM or the duration; returns the summary.

    a, b: as :func:`find_peer` takes them; server_keys, keys: for addresses. on_line: takes a line of text every
    ``report_s``; 0: none. Raises HapticdError, and ValueError for two ends that are one.
    """
    found = [find_peer(end, server_key, keys) for end, server_key in zip((a, b), server_keys, strict=True)]
    if found[0][1] == found[1][1]:
        raise ValueError(f"both ends are {found[0][1]}; a link has two")
    context = zmq.Context()
    ends: list[RelayEnd] = []
    try:
        for name, (label, address, own) in zip("AB", found, strict=True):
            ends.append(RelayEnd(context, f"{name}, the daemon {label}," if label != "the end" else name, address, own))
        relay = LinkRelay((ends[0], ends[1]), line)
        report = Report(relay, report_s)
        realtime.set_timer_slack()
        began = time.monotonic()
        with asked_to_end(relay.stop):
            relay.run(
                duration_s,
                None if on_line is None or report_s <= 0.0 else lambda: on_line(report.line()),
                report_s,
            )
        return relay.summary(time.monotonic() - began)
    finally:
        for end in ends:
            end.close()
        context.term()
