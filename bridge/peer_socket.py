"""The servo's side of a link: messages of the other end before a tick, the own one after it, never waiting for either.

The socket is a ROUTER that answers whoever sent the newest message that counts, or a DEALER connected to the other
end's. What came goes into INPUT.peer of the record and so into the tick; who sent a message and when it left is stamped
on the bytes alone, so that a tick stays a function of its record.
"""

import secrets
import time

import numpy as np
import zmq

from bridge.access import bind
from bridge.keys import ClientKeys, KeyPair
from bridge.ring import offset_of
from bridge.schema import Reject
from bridge.wire import PEER_HELLO, decode_peer, encode_peer
from haptics.tables import LINK_SETTINGS, PEER, RECORD

MAX_MESSAGES = 8
"""Messages read per tick; the rest waits for the next one."""

QUEUED = 16
"""Messages that wait to be sent, and to be read: an end that stands still shall not get what is long past."""

MAX_FRAMES = 32
"""Surplus frames of wrongly framed messages thrown away per tick."""

LARGEST_MESSAGE = 4096
"""Bytes; an end that sends more is disconnected."""

RECONNECT_MS = 100
RECONNECT_MAX_MS = 2000

_LARGEST_COUNT = (1 << 63) - 1

# Plain numbers: arithmetic on pyzmq's flag classes takes microseconds.
_POLLIN = int(zmq.POLLIN)
_NOBLOCK = int(zmq.NOBLOCK)
_SNDMORE_NOBLOCK = int(zmq.SNDMORE) | int(zmq.NOBLOCK)

_SESSION, _SEQ, _T_SENT, _T_ECHO, _T_HELD = (
    PEER.fields[name][1] // 8  # type: ignore[index]
    for name in ("session", "seq", "t_sent", "t_echo", "t_held")
)


def open_peer(
    context: zmq.Context,
    endpoint: str,
    keys: KeyPair | None = None,
    *,
    connect: str = "",
    connect_keys: ClientKeys | None = None,
) -> zmq.Socket:
    """The socket of a link: listening on ``endpoint``, or connected to the other end's at ``connect``.

    keys: guard it; connect_keys: of this end, for one that is guarded. Raises zmq.ZMQError, RuntimeDirectoryError.
    """
    socket = context.socket(zmq.DEALER if connect else zmq.ROUTER)
    socket.set(zmq.LINGER, 50)
    socket.set(zmq.RCVHWM, QUEUED)
    socket.set(zmq.SNDHWM, QUEUED)
    socket.set(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
    try:
        if connect:
            connect_peer(socket, connect, connect_keys)
        else:
            socket.set(zmq.ROUTER_MANDATORY, 1)
            bind(socket, endpoint, keys, "peer")
    except BaseException:
        socket.close(0)
        raise
    return socket


def connect_peer(socket: zmq.Socket, address: str, keys: ClientKeys | None) -> None:
    """Connect a DEALER to a peer socket. While there is nobody, nothing is kept for later. Raises zmq.ZMQError."""
    # Messages wait for an open connection only: else an end that comes up would get what is long past.
    socket.set(zmq.IMMEDIATE, 1)
    socket.set(zmq.RECONNECT_IVL, RECONNECT_MS)
    socket.set(zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS)
    if address.startswith("tcp://["):
        socket.set(zmq.IPV6, 1)
    if keys is not None and address.startswith("tcp://"):
        keys.use(socket)
    socket.connect(address)


class Peer:
    """One end of a link, for the thread that ticks. `take` and `send` never wait."""

    def __init__(self, socket: zmq.Socket, record: np.ndarray, settings: np.ndarray) -> None:
        """record: (1,) RECORD of the servo, contiguous, which `take` writes; settings: (1,) LINK_SETTINGS."""
        assert record.dtype == RECORD and settings.dtype == LINK_SETTINGS
        self.own_session = 1 + secrets.randbelow((1 << 63) - 1)
        """Random per start: the other end knows by it that the numbers begin again."""
        self.session = 0
        """Of the other end's newest message; 0 while there is none."""
        self.seq = 0
        self.received = 0
        self.lost = 0
        self.rejected = 0
        self.dropped = 0
        self.t_received = 0
        self._t_sent = 0  # of that message, the other end's clock
        self._way_ns = 0
        self._first_sent = 0
        self._identity = b""
        self._socket = socket
        self._router = socket.type == zmq.ROUTER
        self._surplus = False
        self._stale_ns = int(settings["stale_after_ns"][0])
        raw = record.view(np.uint8)
        self._bytes = raw.data
        self._i8 = self._bytes.cast("q")
        self._u8 = self._bytes.cast("Q")
        self._u4 = self._bytes.cast("I")
        at = offset_of(RECORD, "input.peer.message")
        self._place = slice(at, at + PEER.itemsize)
        at = offset_of(RECORD, "output.link.message")
        self._message = raw[at : at + PEER.itemsize].view(PEER)
        self._arrived = np.zeros(1, PEER)
        self._arrived_bytes = self._arrived.view(np.uint8).data
        self._words = self._arrived_bytes.cast("Q")

    def rehearse(self) -> None:
        """Go once through what a tick does, with nothing to read and nothing to say."""
        decode_peer(PEER_HELLO, self._arrived)
        encode_peer(self._message, 1, 0)
        self._socket.get(zmq.EVENTS)

    # -- input -------------------------------------------------------------------------------------------------------

    def take(self, started: int) -> None:
        """Read what has come, at most `MAX_MESSAGES`, and write INPUT.peer for the tick that began at `started`, ns."""
        socket = self._socket
        fresh = False
        rejected = self.rejected
        if self._surplus:
            self._drop_surplus()
        for _ in range(MAX_MESSAGES):
            if self._surplus or not int(socket.get(zmq.EVENTS)) & _POLLIN:
                break
            identity = socket.recv(_NOBLOCK) if self._router else b""
            message = socket.recv(_NOBLOCK)
            now = time.monotonic_ns()
            if socket.get(zmq.RCVMORE):
                self._surplus = True
                self._drop_surplus()
                code = Reject.MALFORMED
            elif message == PEER_HELLO:
                code = self._greet(identity, now)
            else:
                code = decode_peer(message, self._arrived)
                if code == Reject.NONE:
                    words = self._words
                    code = self.judge(words[_SESSION], words[_SEQ], now)
                    if code == Reject.NONE:
                        self._accept(identity, now)
                        fresh = True
            if code != Reject.NONE:
                self.rejected += 1
                self._u4[_REJECT_CODE] = code
        self._bytes[_FRESH] = fresh
        if self.session:
            self._i8[_AGE] = max(started - self.t_received, 0)
            self._i8[_WAY] = self._way_ns
            self._u8[_RECEIVED] = self.received
            self._u8[_LOST] = self.lost
        if self.rejected != rejected:
            self._u4[_REJECTED] = self.rejected & 0xFFFFFFFF

    def judge(self, session: int, seq: int, now: int) -> int:
        """Reject code for a message of this session and number that arrives at `now`, ns."""
        if session == self.session:
            return Reject.SEQUENCE if seq <= self.seq else Reject.NONE
        if session == self.own_session:
            return Reject.OWN_MESSAGE
        return Reject.NONE if self._is_free(now) else Reject.SECOND_PEER

    def _is_free(self, now: int) -> bool:
        """Whether nobody is at the other end, or only one who has been silent for the stale time."""
        return self.session == 0 or now - self.t_received >= self._stale_ns

    def _greet(self, identity: bytes, now: int) -> int:
        """Somebody asks for messages and has none himself."""
        if identity != self._identity and not self._is_free(now):
            return Reject.SECOND_PEER
        self._identity = identity
        return Reject.NONE

    def _accept(self, identity: bytes, now: int) -> None:
        """The newest message is the one that was decoded last."""
        self._bytes[self._place] = self._arrived_bytes
        words = self._words
        seq, t_echo = words[_SEQ], words[_T_ECHO]
        if words[_SESSION] == self.session:
            self.lost = min(self.lost + seq - self.seq - 1, _LARGEST_COUNT)
        self.session = words[_SESSION]
        self.seq = seq
        self.received += 1
        self.t_received = now
        self._t_sent = words[_T_SENT]
        self._identity = identity
        self._bytes[_DECIDES] = self.own_session > self.session
        # An echo from before this start is of another clock's time, or of another end's message.
        way = now - t_echo - words[_T_HELD] if self._first_sent and t_echo >= self._first_sent else 0
        self._way_ns = max(way, 0)

    def _drop_surplus(self) -> None:
        """Throw away frames that follow the payload; what is left after `MAX_FRAMES` waits for the next tick."""
        for _ in range(MAX_FRAMES):
            if not self._socket.get(zmq.RCVMORE):
                self._surplus = False
                return
            self._socket.recv(_NOBLOCK)
        self._surplus = bool(self._socket.get(zmq.RCVMORE))

    # -- output ------------------------------------------------------------------------------------------------------

    def send(self) -> None:
        """Send OUTPUT.link.message to the other end; while there is none nothing happens."""
        if self._router and not self._identity:
            return
        now = time.monotonic_ns()
        self._first_sent = self._first_sent or now
        held = now - self.t_received if self._t_sent else 0
        message = encode_peer(self._message, self.own_session, now, self._t_sent, held)
        try:
            if self._router:
                self._socket.send(self._identity, _SNDMORE_NOBLOCK)
            self._socket.send(message, _NOBLOCK)
        except zmq.ZMQError:
            # Its queue is full or it is gone; its own stale time will tell it.
            self.dropped += 1
            self._u4[_DROPPED] = self.dropped & 0xFFFFFFFF

    def close(self) -> None:
        """Send what is queued (50 ms at most) and close."""
        self._socket.close()


_AGE = offset_of(RECORD, "input.peer.age_ns") // 8
_WAY = offset_of(RECORD, "input.peer.way_ns") // 8
_RECEIVED = offset_of(RECORD, "input.peer.received") // 8
_LOST = offset_of(RECORD, "input.peer.lost") // 8
_FRESH = offset_of(RECORD, "input.peer.fresh")
_DECIDES = offset_of(RECORD, "input.peer.decides")
_REJECTED = offset_of(RECORD, "timing.peer_rejected") // 4
_REJECT_CODE = offset_of(RECORD, "timing.peer_reject_code") // 4
_DROPPED = offset_of(RECORD, "timing.peer_dropped") // 4
