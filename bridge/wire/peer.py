"""Peer messages: what one end of a link tells the other, as a fixed struct; there is no other encoding of them.

An end writes them with :func:`encode_peer` and judges those of the other end with :func:`decode_peer` and nowhere else:
one that breaks a rule gets a :class:`bridge.schema.Reject` code and changes nothing.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from bridge.schema import (
    KIND_PEER,
    KIND_PEER_HELLO,
    MAX_ACTIVE,
    MAX_CARRIED,
    MAX_COORDINATE,
    MAX_IMPEDANCE,
    MAX_LAW,
    MAX_METHOD,
    MAX_MIRROR,
    MAX_OFFSET,
    MAX_RATE,
    MAX_SCALE,
    MAX_TIME,
    MAX_WRENCH,
    PROTOCOL_VERSION,
    QUATERNION_TOLERANCE,
    STRUCT_MARK,
    Reject,
)
from bridge.wire.layout import PEER_STRUCT
from haptics.tables import PEER

PEER_HELLO = bytes([STRUCT_MARK, PROTOCOL_VERSION, KIND_PEER_HELLO, 0, 0, 0, 0, 0])
"""The whole message of a relay that has nothing to pass on yet, so that an end learns where to send."""

# Words of the message behind its header, which is one word itself; four bytes follow the last.
_SESSION, _SEQ, _T_SENT, _T_ECHO, _T_HELD, _BEGUN = range(6)
_POSITION, _ORIENTATION, _TWIST, _WRENCH, _WAVE, _WAVE_ENERGY, _ENERGY, _IMPEDANCE = 6, 9, 13, 19, 25, 31, 32, 33
_SCALE, _SHARE, _OFFSET, _OFFSET_TURN, _ALIGN_SPEED = 35, 36, 37, 40, 44
_WORD_COUNT = 45
_METHOD = 8 + 8 * _WORD_COUNT
_ACTIVE = _METHOD + 1
_LAW = _ACTIVE + 1
_MIRROR = _LAW + 1
_LENGTH = _MIRROR + 1

_WORDS = np.zeros(_WORD_COUNT, dtype=np.uint64)
_FLOATS = _WORDS.view(np.float64)
_MESSAGE = np.zeros(1, PEER_STRUCT)
_MESSAGE[["mark", "version", "kind"]] = (STRUCT_MARK, PROTOCOL_VERSION, KIND_PEER)

# numba takes plain integers from a module, not from a class
_GOOD = Reject.NONE
_TOO_LONG = Reject.TOO_LONG
_MALFORMED = Reject.MALFORMED
_BAD_VERSION = Reject.VERSION
_BAD_KIND = Reject.KIND
_NOT_FINITE = Reject.NOT_FINITE
_NOT_UNIT = Reject.NOT_UNIT
_OUT_OF_RANGE = Reject.OUT_OF_RANGE


@njit(cache=True, error_model="numpy")
def _fill(source, session, t_sent, t_echo, t_held, messages):
    told, message = source[0], messages[0]
    message.session = session
    message.seq = told.seq
    message.t_sent = t_sent
    message.t_echo = t_echo
    message.t_held = t_held
    message.begun = told.begun
    for i in range(3):
        message.position[i] = told.position[i]
        message.offset_position[i] = told.offset_position[i]
    for i in range(4):
        message.orientation[i] = told.orientation[i]
        message.offset_orientation[i] = told.offset_orientation[i]
    for i in range(6):
        message.twist[i] = told.twist[i]
        message.wrench[i] = told.wrench[i]
        message.wave[i] = told.wave[i]
    message.wave_energy = told.wave_energy
    message.energy = told.energy
    for i in range(2):
        message.impedance[i] = told.impedance[i]
    message.method = told.method
    message.scale = told.scale
    message.share = told.share
    message.align_speed = told.align_speed
    message.active = told.active
    message.law = told.law
    message.mirror = told.mirror


def encode_peer(peers: np.ndarray, session: int, t_sent: int, t_echo: int = 0, t_held: int = 0) -> bytes:
    """The message of a (1,) PEER; its own session and times are not used but those given here, ns.

    For the one thread that ticks.
    """
    _fill(peers, np.uint64(session), t_sent, t_echo, t_held, _MESSAGE)
    return _MESSAGE.tobytes()


@njit(cache=True, error_model="numpy")
def _within(floats, first, count, largest):
    """Whether so many numbers have magnitudes up to the largest one allowed."""
    found = 0.0
    for i in range(first, first + count):
        found = max(found, abs(floats[i]))
    return found <= largest


@njit(cache=True, error_model="numpy")
def _norm(floats, first):
    """Of a quaternion."""
    square = 0.0
    for i in range(first, first + 4):
        square += floats[i] * floats[i]
    return math.sqrt(square)


@njit(cache=True, error_model="numpy")
def _decode(message, words, floats, peers):
    """Judges one message and, when it is good, writes it into the PEER."""
    if len(message) < 8:
        return _MALFORMED
    if message[0] != STRUCT_MARK:
        return _MALFORMED
    if message[1] != PROTOCOL_VERSION:
        return _BAD_VERSION
    if message[2] != KIND_PEER:
        return _BAD_KIND
    if len(message) > _LENGTH:
        return _TOO_LONG
    if len(message) < _LENGTH:
        return _MALFORMED
    for i in range(3, 8):  # flags and present bits
        if message[i] != 0:
            return _MALFORMED
    for k in range(_WORD_COUNT):
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(message[8 + 8 * k + i]) << np.uint64(8 * i)
        words[k] = word
    for k in range(_POSITION, _WORD_COUNT):
        if not math.isfinite(floats[k]):
            return _NOT_FINITE
    if not (
        _within(floats, _POSITION, 3, MAX_COORDINATE)
        and _within(floats, _TWIST, 6, MAX_RATE)
        and _within(floats, _WRENCH, 6, MAX_WRENCH)
        and _within(floats, _WAVE, 8, MAX_CARRIED)
        and _within(floats, _IMPEDANCE, 2, MAX_IMPEDANCE)
        and _within(floats, _SCALE, 1, MAX_SCALE)
        and _within(floats, _SHARE, 1, 1.0)
        and _within(floats, _OFFSET, 3, MAX_OFFSET)
        and _within(floats, _ALIGN_SPEED, 1, MAX_RATE)
    ):
        return _OUT_OF_RANGE
    if not (
        floats[_WAVE_ENERGY] >= 0.0
        and floats[_ENERGY] >= 0.0
        and floats[_IMPEDANCE] >= 0.0
        and floats[_IMPEDANCE + 1] >= 0.0
        and floats[_SCALE] >= 0.0
        and floats[_SHARE] >= 0.0
        and floats[_ALIGN_SPEED] >= 0.0
    ):
        return _OUT_OF_RANGE
    norm, offset_norm = _norm(floats, _ORIENTATION), _norm(floats, _OFFSET_TURN)
    if not max(abs(norm - 1.0), abs(offset_norm - 1.0)) <= QUATERNION_TOLERANCE:
        return _NOT_UNIT
    if words[_SESSION] == 0 or words[_SESSION] >> np.uint64(63) or words[_SEQ] == 0:
        return _OUT_OF_RANGE
    for k in range(_T_SENT, _T_HELD + 1):
        if words[k] >= np.uint64(MAX_TIME):
            return _OUT_OF_RANGE
    if message[_METHOD] > MAX_METHOD or message[_ACTIVE] > MAX_ACTIVE:
        return _OUT_OF_RANGE
    if message[_LAW] > MAX_LAW or message[_MIRROR] > MAX_MIRROR:
        return _OUT_OF_RANGE
    peer = peers[0]
    peer.session = words[_SESSION]
    peer.seq = words[_SEQ]
    peer.t_sent = np.int64(words[_T_SENT])
    peer.t_echo = np.int64(words[_T_ECHO])
    peer.t_held = np.int64(words[_T_HELD])
    peer.begun = words[_BEGUN]
    for i in range(3):
        peer.position[i] = floats[_POSITION + i]
        peer.offset_position[i] = floats[_OFFSET + i]
    for i in range(4):
        peer.orientation[i] = floats[_ORIENTATION + i] / norm
        peer.offset_orientation[i] = floats[_OFFSET_TURN + i] / offset_norm
    for i in range(6):
        peer.twist[i] = floats[_TWIST + i]
        peer.wrench[i] = floats[_WRENCH + i]
        peer.wave[i] = floats[_WAVE + i]
    peer.wave_energy = floats[_WAVE_ENERGY]
    peer.energy = floats[_ENERGY]
    for i in range(2):
        peer.impedance[i] = floats[_IMPEDANCE + i]
    peer.method = message[_METHOD]
    peer.active = message[_ACTIVE]
    peer.scale = floats[_SCALE]
    peer.share = floats[_SHARE]
    peer.align_speed = floats[_ALIGN_SPEED]
    peer.law = message[_LAW]
    peer.mirror = message[_MIRROR]
    for i in range(4):
        peer.padding[i] = 0
    return _GOOD


def decode_peer(message: bytes, peers: Any) -> int:
    """Decodes a peer message into row 0 of an array of PEER; returns a :class:`Reject` code, 0 when it is good.

    Quaternions are normalised. A refused message leaves ``peers`` as it was. Nothing that the other end can send
    makes it raise.
    """
    if type(message) is not bytes:
        message = bytes(message)
    return _decode(message, _WORDS, _FLOATS, peers)


def warm_up() -> None:
    """Compiles (or loads from the cache) the kernels behind :func:`encode_peer` and :func:`decode_peer`."""
    peers = np.zeros(1, PEER)
    peers["seq"] = 1
    peers["orientation"][0, 3] = peers["offset_orientation"][0, 3] = 1.0
    decode_peer(encode_peer(peers, 1, 0), peers)
