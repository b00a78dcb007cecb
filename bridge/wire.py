"""Codec of the wire: the two 1 kHz messages in both encodings, and the maps of the control, state and events sockets.

Layout and keys come from the schema table (:mod:`bridge.schema`); ``docs/protocol.md`` prints the same table. Messages
from outside are judged here and nowhere else: a sample that breaks a rule gets a :class:`bridge.schema.Reject` code and
changes nothing, a control message that breaks one raises :class:`WireError`.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
from numba import njit

from bridge.schema import (
    KIND_RENDER,
    KIND_SAMPLE,
    MAX_COORDINATE,
    MAX_ITEMS,
    MAX_MESSAGE_BYTES,
    MAX_NESTING,
    MAX_RATE,
    MAX_TEXT,
    MAX_TIME,
    PROTOCOL_VERSION,
    QUATERNION_TOLERANCE,
    RENDER_FIELDS,
    REPLY_MAX_BYTES,
    REPLY_MAX_ITEMS,
    REPLY_MAX_NESTING,
    REPLY_MAX_TEXT,
    SAMPLE_FIELDS,
    STRUCT_MARK,
    Field,
    Reject,
)
from haptics.states import EngagementState, Reason
from haptics.tables import RECORD, SAMPLE

Vector = Sequence[float] | np.ndarray
"""A few numbers."""

HEADER_FIELDS: tuple[tuple[str, str], ...] = (
    ("mark", "u1"),
    ("version", "u1"),
    ("kind", "u1"),
    ("flags", "u1"),
    ("present", "u4"),
)
"""First eight bytes of a fixed struct: name and little-endian numpy code."""


class WireError(ValueError):
    """A message that breaks the protocol: ``code`` for programs, one sentence ``text``, ``request_id`` if readable."""

    def __init__(self, code: str, text: str, request_id: int | None = None) -> None:
        super().__init__(f"{text} [{code}]")
        self.code = code
        self.text = text
        self.request_id = request_id


# ---------------------------------------------------------------------------------------------------------------------
# Layout, from the schema table
# ---------------------------------------------------------------------------------------------------------------------


def struct_dtype(fields: Sequence[Field]) -> np.dtype:
    """Packed little-endian record type of a fixed-struct message: the header, then the fields in table order."""
    columns: list[tuple] = [(name, "<" + kind) for name, kind in HEADER_FIELDS]
    for field in fields:
        columns.append(
            (field.name, "<" + field.kind) if field.count == 1 else (field.name, "<" + field.kind, field.count)
        )
    return np.dtype(columns)


def _python_format(fields: Sequence[Field]) -> str:
    codes = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i8": "q", "f8": "d"}
    return "<BBBBI" + "".join(f"{field.count}{codes[field.kind]}" for field in fields)


SAMPLE_STRUCT = struct_dtype(SAMPLE_FIELDS)
RENDER_STRUCT = struct_dtype(RENDER_FIELDS)
_SAMPLE_PACKER = struct.Struct(_python_format(SAMPLE_FIELDS))
_RENDER_PACKER = struct.Struct(_python_format(RENDER_FIELDS))
_OPTIONAL = tuple(field.name for field in SAMPLE_FIELDS if field.optional)
PRESENT_BITS = {name: 1 << bit for bit, name in enumerate(_OPTIONAL)}
"""Bit of each optional sample field in the ``present`` word."""

# Columns of the table that drives the decoding kernel, one row per key of the map.
_KEY_LENGTH, _KEY_LOW, _KEY_HIGH, _CLASS, _COUNT, _WORD, _OFFSET, _SIZE, _BIT = range(9)
_UNSIGNED, _SIGNED, _FLOAT, _VERSION, _KIND = range(5)
_ROW_BITS = 9


def _key_words(name: str) -> tuple[int, int]:
    raw = name.encode()
    if len(raw) > 16:
        raise ValueError(f"key {name!r} is longer than 16 bytes")
    raw = raw.ljust(16, b"\0")
    return int.from_bytes(raw[:8], "little"), int.from_bytes(raw[8:], "little")


def _sample_table() -> np.ndarray:
    rows = []
    for name, role in (("v", _VERSION), ("kind", _KIND)):
        low, high = _key_words(name)
        rows.append([len(name), low, high, role, 1, 0, 0, 1, 0])
    word = 0
    for field in SAMPLE_FIELDS:
        low, high = _key_words(field.name)
        role = {"u": _UNSIGNED, "i": _SIGNED, "f": _FLOAT}[field.kind[0]]
        offset = int(SAMPLE_STRUCT.fields[field.name][1])  # type: ignore[index]
        bit = PRESENT_BITS.get(field.name, 0)
        rows.append([len(field.name), low, high, role, field.count, word, offset, int(field.kind[1]), bit])
        word += field.count
    return np.array(rows, dtype=np.uint64)


_TABLE = _sample_table()
_WORDS = np.zeros(int(_TABLE[-1, _WORD] + _TABLE[-1, _COUNT]), dtype=np.uint64)
_FLOATS = _WORDS.view(np.float64)

# ---------------------------------------------------------------------------------------------------------------------
# Sample: servo side
# ---------------------------------------------------------------------------------------------------------------------
#
# One pass over the bytes, against what the table allows at each place. There is no general decoder in it, so nesting,
# counts and sizes cannot grow beyond the table, and the longest message costs a few microseconds. The tables are
# arguments and not globals because a compiled kernel would keep the values of its day in the on-disk cache. The GIL is
# kept on purpose: the words are shared scratch.


# numba takes plain integers from a module, not from a class
_GOOD = Reject.NONE
_TOO_LONG = Reject.TOO_LONG
_MALFORMED = Reject.MALFORMED
_BAD_VERSION = Reject.VERSION
_BAD_KIND = Reject.KIND
_MISSING_FIELD = Reject.MISSING_FIELD
_WRONG_TYPE = Reject.WRONG_TYPE
_NOT_FINITE = Reject.NOT_FINITE
_NOT_UNIT = Reject.NOT_UNIT
_OUT_OF_RANGE = Reject.OUT_OF_RANGE
_UNKNOWN_FIELD = Reject.UNKNOWN_FIELD


@njit(cache=True, error_model="numpy")
def _big_endian(message, at, size):
    value = np.uint64(0)
    for i in range(size):
        value = (value << np.uint64(8)) | np.uint64(message[at + i])
    return value


@njit(cache=True, error_model="numpy")
def _little_endian(message, at, size):
    value = np.uint64(0)
    for i in range(size):
        value |= np.uint64(message[at + i]) << np.uint64(8 * i)
    return value


@njit(cache=True, error_model="numpy")
def _number(message, at):
    """Reads one msgpack number: (next position, class, bits); class -1 is no number, -2 that the message ends in it."""
    end = len(message)
    if at >= end:
        return at, -2, np.uint64(0)
    head = message[at]
    at += 1
    if head <= 0x7F:
        return at, _UNSIGNED, np.uint64(head)
    if head >= 0xE0:
        return at, _SIGNED, np.uint64(np.int64(head) - 256)
    size = 0
    if 0xCC <= head <= 0xCF:
        size = 1 << (head - 0xCC)
    elif 0xD0 <= head <= 0xD3:
        size = 1 << (head - 0xD0)
    elif head == 0xCA:
        size = 4
    elif head == 0xCB:
        size = 8
    else:
        return at, -1, np.uint64(0)
    if at + size > end:
        return at, -2, np.uint64(0)
    bits = _big_endian(message, at, size)
    at += size
    if head == 0xCA:
        return at, _FLOAT, np.float64(np.uint32(bits).view(np.float32)).view(np.uint64)
    if head == 0xCB:
        return at, _FLOAT, bits
    if head <= 0xCF:
        return at, _UNSIGNED, bits
    if size < 8 and bits >> np.uint64(8 * size - 1):
        bits |= ~np.uint64(0) << np.uint64(8 * size)
    return at, (_SIGNED if bits >> np.uint64(63) else _UNSIGNED), bits


@njit(cache=True, error_model="numpy")
def _read_struct(message, table, length, words):
    """Fixed struct into words: (reject code, present bits)."""
    if len(message) < 8:
        return _MALFORMED, np.uint64(0)
    if message[1] != PROTOCOL_VERSION:
        return _BAD_VERSION, np.uint64(0)
    if message[2] != KIND_SAMPLE:
        return _BAD_KIND, np.uint64(0)
    present = _little_endian(message, 4, 4)
    known = np.uint64(0)
    for row in range(2, table.shape[0]):
        known |= table[row, _BIT]
    if len(message) != length or message[3] != 0 or (present & ~known) != 0:
        return _MALFORMED, np.uint64(0)
    for row in range(2, table.shape[0]):
        bit = table[row, _BIT]
        if bit != 0 and (present & bit) == 0:
            continue
        size = np.int64(table[row, _SIZE])
        for item in range(np.int64(table[row, _COUNT])):
            at = np.int64(table[row, _OFFSET]) + item * size
            words[np.int64(table[row, _WORD]) + item] = _little_endian(message, at, size)
    return _GOOD, present


@njit(cache=True, error_model="numpy")
def _read_map(message, table, words):
    """msgpack map into words: (reject code, present bits)."""
    nothing = np.uint64(0)
    end = len(message)
    head = message[0]
    at = 1
    if 0x80 <= head <= 0x8F:
        entries = np.int64(head) - 0x80
    elif head == 0xDE and end >= 3:
        entries = np.int64(_big_endian(message, 1, 2))
        at = 3
    elif head == 0xDF and end >= 5:
        entries = np.int64(_big_endian(message, 1, 4))
        at = 5
    else:
        return _MALFORMED, nothing
    if entries > MAX_ITEMS:
        return _MALFORMED, nothing
    seen = np.uint64(0)
    present = np.uint64(0)
    for _ in range(entries):
        # key: a short string that the table knows
        if at >= end:
            return _MALFORMED, nothing
        head = message[at]
        at += 1
        if 0xA0 <= head <= 0xBF:
            length = np.int64(head) - 0xA0
        elif head == 0xD9 and at < end:
            length = np.int64(message[at])
            at += 1
        elif head == 0xDA and at + 2 <= end:
            length = np.int64(_big_endian(message, at, 2))
            at += 2
        elif head == 0xDB and at + 4 <= end:
            length = np.int64(_big_endian(message, at, 4))
            at += 4
        else:
            return _MALFORMED, nothing
        if at + length > end:
            return _MALFORMED, nothing
        if length > 16:
            return _UNKNOWN_FIELD, nothing
        low = _little_endian(message, at, min(length, 8))
        high = _little_endian(message, at + 8, length - 8) if length > 8 else np.uint64(0)
        at += int(length)
        row = -1
        for candidate in range(table.shape[0]):
            if (
                table[candidate, _KEY_LOW] == low
                and table[candidate, _KEY_HIGH] == high
                and np.int64(table[candidate, _KEY_LENGTH]) == length
            ):
                row = candidate
                break
        if row < 0:
            return _UNKNOWN_FIELD, nothing
        mark = np.uint64(1) << np.uint64(row)
        if seen & mark:
            return _MALFORMED, nothing
        seen |= mark
        present |= table[row, _BIT]
        # value: a number, or an array of exactly so many
        count = np.int64(table[row, _COUNT])
        if count > 1:
            if at >= end:
                return _MALFORMED, nothing
            head = message[at]
            at += 1
            if 0x90 <= head <= 0x9F:
                items = np.int64(head) - 0x90
            elif head == 0xDC and at + 2 <= end:
                items = np.int64(_big_endian(message, at, 2))
                at += 2
            elif head == 0xDD and at + 4 <= end:
                items = np.int64(_big_endian(message, at, 4))
                at += 4
            else:
                return _WRONG_TYPE, nothing
            if items != count:
                return _WRONG_TYPE, nothing
        role = np.int64(table[row, _CLASS])
        for item in range(count):
            at, found, bits = _number(message, at)
            if found == -2:
                return _MALFORMED, nothing
            if found == -1:
                return _WRONG_TYPE, nothing
            if role == _FLOAT:
                if found == _UNSIGNED:
                    bits = np.float64(bits).view(np.uint64)
                elif found == _SIGNED:
                    bits = np.float64(np.int64(bits)).view(np.uint64)
                words[np.int64(table[row, _WORD]) + item] = bits
                continue
            if found == _FLOAT:
                return _WRONG_TYPE, nothing
            if role == _VERSION:
                if found != _UNSIGNED or bits != PROTOCOL_VERSION:
                    return _BAD_VERSION, nothing
                continue
            if role == _KIND:
                if found != _UNSIGNED or bits != KIND_SAMPLE:
                    return _BAD_KIND, nothing
                continue
            size = np.int64(table[row, _SIZE])
            if found == _SIGNED:  # negative, and no integer of a sample may be
                return _OUT_OF_RANGE, nothing
            if size < 8 and bits >> np.uint64(8 * size):
                return _OUT_OF_RANGE, nothing
            words[np.int64(table[row, _WORD]) + item] = bits
    if at != end:
        return _MALFORMED, nothing
    for row in range(table.shape[0]):
        if table[row, _BIT] == 0 and (seen >> np.uint64(row)) & np.uint64(1) == 0:
            return _MISSING_FIELD, nothing
    return _GOOD, present


@njit(cache=True, error_model="numpy")
def _decode(message, table, length, words, floats, sample):
    """Judges one message and, when it is good, writes it into the SAMPLE record."""
    if len(message) > MAX_MESSAGE_BYTES:
        return _TOO_LONG
    if len(message) == 0:
        return _MALFORMED
    if message[0] == STRUCT_MARK:
        code, present = _read_struct(message, table, length, words)
    else:
        code, present = _read_map(message, table, words)
    if code != _GOOD:
        return code
    twist_bit, buttons_bit, deadman_bit, valid_bit = table[7, _BIT], table[8, _BIT], table[9, _BIT], table[10, _BIT]
    has_twist = (present & twist_bit) != 0
    for i in range(3, 16 if has_twist else 10):
        if not math.isfinite(floats[i]):
            return _NOT_FINITE
        if abs(floats[i]) > (MAX_COORDINATE if i < 10 else MAX_RATE):
            return _OUT_OF_RANGE
    norm = math.sqrt(floats[6] * floats[6] + floats[7] * floats[7] + floats[8] * floats[8] + floats[9] * floats[9])
    if not abs(norm - 1.0) <= QUATERNION_TOLERANCE:
        return _NOT_UNIT
    if words[0] == 0 or words[0] >> np.uint64(63) or words[1] == 0 or words[2] >= np.uint64(MAX_TIME):
        return _OUT_OF_RANGE
    deadman = np.uint64(0)
    if present & deadman_bit:
        deadman = words[17]
    valid = np.uint64(1)
    if present & valid_bit:
        valid = words[18]
    if deadman > 1 or valid > 1:
        return _OUT_OF_RANGE
    sample.session = words[0]
    sample.seq = words[1]
    sample.t_sample = np.int64(words[2])
    for i in range(3):
        sample.position[i] = floats[3 + i]
    for i in range(4):
        sample.orientation[i] = floats[6 + i] / norm
    for i in range(6):
        sample.twist[i] = floats[10 + i] if has_twist else 0.0
    sample.buttons = np.uint32(words[16]) if present & buttons_bit else np.uint32(0)
    sample.has_twist = 1 if has_twist else 0
    sample.deadman = np.uint8(deadman)
    sample.valid = np.uint8(valid)
    sample.padding = 0
    return _GOOD


@njit(cache=True, error_model="numpy")
def _decode_row(message, table, length, words, floats, samples):
    return _decode(message, table, length, words, floats, samples[0])


_SAMPLE_BYTES = SAMPLE_STRUCT.itemsize


def decode_sample(message: bytes, sample: Any) -> int:
    """Decodes a sample message (either encoding) into ``sample``; returns a :class:`Reject` code, 0 when it is good.

    ``sample`` is an array of SAMPLE of which row 0 is written (twice as fast), or one SAMPLE record. The quaternion is
    normalised, an absent twist is zero with ``has_twist`` 0. A refused message leaves ``sample`` as it was. Nothing
    that a client can send makes it raise.
    """
    if type(message) is not bytes:
        message = bytes(message)
    if type(sample) is np.ndarray:
        return _decode_row(message, _TABLE, _SAMPLE_BYTES, _WORDS, _FLOATS, sample)
    return _decode(message, _TABLE, _SAMPLE_BYTES, _WORDS, _FLOATS, sample)


def sample_is_struct(message: bytes) -> bool:
    """Whether a message on the device socket is in the fixed-struct encoding: renders answer in the same one."""
    return message[:1] == _MARK


_MARK = bytes([STRUCT_MARK])

# ---------------------------------------------------------------------------------------------------------------------
# Render: servo side
# ---------------------------------------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy")
def _fill_render(record, t_sent, render):
    output = record.output
    render.seq = output.seq
    render.tick = record.tick
    render.t_received = record.timing.t_received
    render.t_sent = t_sent
    for i in range(3):
        render.proxy_position[i] = output.render_position[i]
    for i in range(4):
        render.proxy_orientation[i] = output.render_orientation[i]
    for i in range(6):
        render.wrench[i] = output.wrench[i]
        render.proxy_twist[i] = output.render_twist[i]
        render.stiffness[i] = output.stiffness[i]
        render.damping[i] = output.damping[i]
        render.feed_forward[i] = output.feed_forward[i]
    render.valid_for = output.valid_for_ns
    render.gap = output.report.smallest_gap
    render.state = np.uint8(output.state)
    render.reason = np.uint8(output.reason)
    render.degraded = np.uint8(output.report.degraded)
    render.limited = np.uint8(output.limited)


@njit(cache=True, error_model="numpy")
def _fill_render_rows(records, t_sent, renders):
    _fill_render(records[0], t_sent, renders[0])


@njit(cache=True, error_model="numpy")
def _fill_render_one(record, t_sent, renders):
    _fill_render(record, t_sent, renders[0])


@njit(cache=True, error_model="numpy")
def _swap_numbers(source, slots, target):
    """Copies little-endian numbers to their big-endian places in a msgpack message: slots (n, 3) of from, to, size."""
    for slot in range(slots.shape[0]):
        first, to, size = slots[slot, 0], slots[slot, 1], slots[slot, 2]
        for i in range(size):
            target[to + i] = source[first + size - 1 - i]


def _render_template() -> tuple[np.ndarray, np.ndarray]:
    """The msgpack render with every number at full width, so that its places never move; and those places.

    Full-width numbers (0xcf, 0xd3, 0xcb, 0xcc) are valid msgpack for any value, so a render is a copy of 8-byte words.
    """
    heads = {"u1": 0xCC, "u4": 0xCE, "u8": 0xCF, "i8": 0xD3, "f8": 0xCB}
    packer = msgpack.Packer()
    message = bytearray(packer.pack_map_header(2 + len(RENDER_FIELDS)))
    message += msgpack.packb("v") + msgpack.packb(PROTOCOL_VERSION) + msgpack.packb("kind") + msgpack.packb(KIND_RENDER)
    slots = []
    for field in RENDER_FIELDS:
        message += msgpack.packb(field.name)
        if field.count > 1:
            message += packer.pack_array_header(field.count)
        size = int(field.kind[1])
        for item in range(field.count):
            message.append(heads[field.kind])
            offset = int(RENDER_STRUCT.fields[field.name][1])  # type: ignore[index]
            slots.append((offset + item * size, len(message), size))
            message += bytes(size)
    return np.frombuffer(bytes(message), np.uint8).copy(), np.array(slots, dtype=np.int64)


_RENDER = np.zeros(1, RENDER_STRUCT)
_RENDER[["mark", "version", "kind"]] = (STRUCT_MARK, PROTOCOL_VERSION, KIND_RENDER)
_RENDER_BYTES = _RENDER.view(np.uint8)
_RENDER_MAP, _RENDER_SLOTS = _render_template()


def encode_render(record: Any, t_sent: int, as_struct: bool = True) -> bytes:
    """The render message of a tick, departing at ``t_sent`` (ns, servo clock).

    ``record`` is an array of RECORD of which row 0 is read (ten times faster), or one RECORD. ``as_struct`` chooses the
    encoding: that of the owner's last sample. For the one thread that ticks.
    """
    if type(record) is np.ndarray:
        _fill_render_rows(record, t_sent, _RENDER)
    else:
        _fill_render_one(record, t_sent, _RENDER)
    if as_struct:
        return _RENDER.tobytes()
    _swap_numbers(_RENDER_BYTES, _RENDER_SLOTS, _RENDER_MAP)
    return _RENDER_MAP.tobytes()


def warm_up() -> None:
    """Compiles (or loads from the cache) the kernels behind :func:`decode_sample` and :func:`encode_render`."""
    samples, records = np.zeros(1, SAMPLE), np.zeros(1, RECORD)
    message = encode_sample(1, 1, 1, (0.0, 0.0, 0.0))
    for target in (samples, samples[0], records["input"]["sample"], records[0]["input"]["sample"]):
        decode_sample(message, target)
    for source in (records, records[0]):
        encode_render(source, 0, True)
        encode_render(source, 0, False)


# ---------------------------------------------------------------------------------------------------------------------
# Client side
# ---------------------------------------------------------------------------------------------------------------------


def encode_sample(
    session: int,
    seq: int,
    t_sample: int,
    position: Vector,
    orientation: Vector = (0.0, 0.0, 0.0, 1.0),
    *,
    twist: Vector | None = None,
    buttons: int | None = None,
    deadman: bool | None = None,
    valid: bool | None = None,
    as_struct: bool = True,
) -> bytes:
    """A sample message: position (3,) m, orientation (4,) xyzw, twist (6,) m/s and rad/s, device frame; times in ns.

    ``None`` leaves an optional field out. Raises ValueError for an array of the wrong length or a number that does not
    fit.
    """
    if len(position) != 3 or len(orientation) != 4 or (twist is not None and len(twist) != 6):
        raise ValueError("a sample has 3 position, 4 orientation (x, y, z, w) and, when given, 6 twist numbers")
    if as_struct:
        present = (
            (twist is not None) * PRESENT_BITS["twist"]
            | (buttons is not None) * PRESENT_BITS["buttons"]
            | (deadman is not None) * PRESENT_BITS["deadman"]
            | (valid is not None) * PRESENT_BITS["valid"]
        )
        try:
            return _SAMPLE_PACKER.pack(
                STRUCT_MARK, PROTOCOL_VERSION, KIND_SAMPLE, 0, present,
                session, seq, t_sample, *position, *orientation, *(twist if twist is not None else (0.0,) * 6),
                buttons or 0, bool(deadman), bool(valid),
            )  # fmt: skip
        except struct.error as error:
            raise ValueError(f"a number of the sample does not fit its field: {error}") from None
    fields: dict[str, Any] = {
        "v": PROTOCOL_VERSION,
        "kind": KIND_SAMPLE,
        "session": int(session),
        "seq": int(seq),
        "t_sample": int(t_sample),
        "position": [float(x) for x in position],
        "orientation": [float(x) for x in orientation],
    }
    if twist is not None:
        fields["twist"] = [float(x) for x in twist]
    if buttons is not None:
        fields["buttons"] = int(buttons)
    if deadman is not None:
        fields["deadman"] = int(bool(deadman))
    if valid is not None:
        fields["valid"] = int(bool(valid))
    try:
        return msgpack.packb(fields)
    except OverflowError as error:
        raise ValueError(f"a number of the sample does not fit its field: {error}") from None


@dataclass(frozen=True, slots=True)
class Render:
    """One render as a client sees it: ``bridge.schema.RENDER_FIELDS``, arrays as tuples; device frame, SI units."""

    seq: int
    tick: int
    t_received: int
    t_sent: int
    wrench: tuple[float, ...]
    proxy_position: tuple[float, ...]
    proxy_orientation: tuple[float, ...]
    proxy_twist: tuple[float, ...]
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    feed_forward: tuple[float, ...]
    valid_for: int
    gap: float
    state: int
    """An EngagementState where the code is known."""
    reason: int
    """A Reason where the code is known."""
    degraded: int
    limited: int

    @property
    def state_name(self) -> str:
        """The engagement state as a word (its number when this client does not know it)."""
        return getattr(self.state, "name", str(self.state))

    @property
    def force(self) -> tuple[float, ...]:
        """Force to apply at the coupling point, N, device frame."""
        return self.wrench[:3]

    @property
    def torque(self) -> tuple[float, ...]:
        """Torque to apply, N·m, device frame."""
        return self.wrench[3:]


_STATES: dict[int, int] = {int(state): state for state in EngagementState}
_REASONS: dict[int, int] = {int(reason): reason for reason in Reason}


def decode_render(message: bytes) -> Render:
    """Decodes a render message (either encoding). Raises WireError when it is not one."""
    if message[:1] == _MARK:
        if len(message) >= 3 and message[1] != PROTOCOL_VERSION:
            raise WireError("version", f"the render is of version {message[1]}, this client speaks {PROTOCOL_VERSION}")
        if len(message) != _RENDER_PACKER.size or message[2] != KIND_RENDER:
            raise WireError("malformed", f"{len(message)} bytes came, a render struct has {_RENDER_PACKER.size}")
        n = _RENDER_PACKER.unpack(message)
        return Render(
            n[5], n[6], n[7], n[8], n[9:15], n[15:18], n[18:22], n[22:28], n[28:34], n[34:40], n[40:46],
            n[46], n[47], _STATES.get(n[48], n[48]), _REASONS.get(n[49], n[49]), n[50], n[51],
        )  # fmt: skip
    if len(message) > MAX_MESSAGE_BYTES:
        raise WireError("too_large", f"a render of {len(message)} bytes is longer than the {MAX_MESSAGE_BYTES} allowed")
    try:
        fields = msgpack.unpackb(message)  # its cost is bounded by the length of the message
    except (ValueError, TypeError) as error:
        raise WireError("malformed", f"not a msgpack map: {error}") from None
    if type(fields) is not dict or fields.get("v") != PROTOCOL_VERSION or fields.get("kind") != KIND_RENDER:
        raise WireError("malformed", f"not a map with `v` {PROTOCOL_VERSION} and `kind` {KIND_RENDER}: {fields!r:.80}")
    values: dict[str, Any] = {}
    for field in RENDER_FIELDS:
        value = fields.get(field.name)
        number = (int, float) if field.kind == "f8" else (int,)
        items = value if field.count > 1 else [value]
        if type(items) is not list or len(items) != field.count or any(type(item) not in number for item in items):
            raise WireError("malformed", f"`{field.name}` of a render is {field.count} number(s), not {value!r:.60}")
        if field.kind == "f8":
            items = [float(item) for item in items]
        values[field.name] = tuple(items) if field.count > 1 else items[0]
    values["state"] = _STATES.get(values["state"], values["state"])
    values["reason"] = _REASONS.get(values["reason"], values["reason"])
    return Render(**values)


# ---------------------------------------------------------------------------------------------------------------------
# Maps of the control, state and events sockets
# ---------------------------------------------------------------------------------------------------------------------

_FIXED_SIZES = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8}
_FIXED_SIZES |= {first + i: 1 << i for first in (0xCC, 0xD0) for i in range(4)}
_TEXT_HEADS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAY_HEADS = {0xDC: 2, 0xDD: 4}
_MAP_HEADS = {0xDE: 2, 0xDF: 4}


def _scan(message: bytes, max_items: int, max_nesting: int, max_text: int) -> None:
    """Walks the bytes of a msgpack message without building anything, so that the caps hold before decoding."""
    end = len(message)
    at = 0
    open_items = [1]
    while open_items:
        if open_items[-1] == 0:
            open_items.pop()
            continue
        open_items[-1] -= 1
        if at >= end:
            raise WireError("malformed", "the message ends in the middle of a value")
        head = message[at]
        at += 1
        if head <= 0x7F or head >= 0xE0:
            continue
        if head in _FIXED_SIZES:
            at += _FIXED_SIZES[head]
        elif 0xA0 <= head <= 0xBF or head in _TEXT_HEADS:
            size = _TEXT_HEADS.get(head, 0)
            length = int.from_bytes(message[at : at + size], "big") if size else head - 0xA0
            if length > max_text:
                raise WireError("too_large", f"a text of {length} bytes is longer than the {max_text} allowed")
            at += size + length
        elif head <= 0x9F or head in _ARRAY_HEADS or head in _MAP_HEADS:
            size = _ARRAY_HEADS.get(head) or _MAP_HEADS.get(head) or 0
            items = int.from_bytes(message[at : at + size], "big") if size else head & 0x0F
            at += size
            if items > max_items:
                raise WireError("too_large", f"a map or array has {items} entries, {max_items} are allowed")
            if len(open_items) > max_nesting:
                raise WireError("too_deep", f"maps and arrays may be nested {max_nesting} deep at most")
            open_items.append(items * 2 if head <= 0x8F or head in _MAP_HEADS else items)
        else:
            raise WireError(
                "malformed", f"byte 0x{head:02x} opens a binary, extension or reserved value; none is allowed"
            )
    if at > end:
        raise WireError("malformed", "the message ends in the middle of a value")
    if at != end:
        raise WireError("malformed", f"{end - at} bytes follow the end of the map")


def _unique_pairs(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    fields = {}
    for key, value in pairs:
        if type(key) is not str:
            raise WireError("malformed", f"map keys are texts, not {key!r:.40}")
        if key in fields:
            raise WireError("malformed", f"key `{key}` stands twice in a map")
        if type(value) is float and not math.isfinite(value):
            raise WireError("not_finite", f"`{key}` is not a finite number")
        if type(value) is list:
            _check_finite(key, value)
        fields[key] = value
    return fields


def _check_finite(key: str, values: list) -> None:
    for value in values:
        if type(value) is float and not math.isfinite(value):
            raise WireError("not_finite", f"`{key}` holds a number that is not finite")
        if type(value) is list:
            _check_finite(key, value)


def _plain(value: Any) -> Any:
    """numpy scalars and arrays as plain numbers and lists."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def pack_control(fields: Mapping[str, Any]) -> bytes:
    """Packs a map for the control, state or events socket: puts ``v`` in front, makes numpy values plain.

    Raises WireError when a value cannot be sent or the map is larger than a receiver accepts.
    """
    whole = fields if "v" in fields else {"v": PROTOCOL_VERSION, **fields}
    try:
        message = msgpack.packb(whole, default=_plain, use_bin_type=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise WireError("malformed", f"the map cannot be packed: {error}") from None
    if len(message) > REPLY_MAX_BYTES:
        raise WireError("too_large", f"the map takes {len(message)} bytes, {REPLY_MAX_BYTES} are allowed")
    return message


def unpack_control(message: bytes, *, reply: bool = False) -> dict[str, Any]:
    """Unpacks a map of the control, state or events socket after checking its caps on the bytes.

    ``reply`` selects the wider caps of what a daemon sends (lists of bodies, tick records). Raises WireError with a
    code of ``too_large too_deep malformed not_finite version``; its ``request_id`` is set when the map could be read.
    """
    max_bytes, max_items, max_nesting, max_text = _REPLY_CAPS if reply else _REQUEST_CAPS
    if len(message) > max_bytes:
        raise WireError("too_large", f"a message of {len(message)} bytes is longer than the {max_bytes} allowed")
    _scan(message, max_items, max_nesting, max_text)
    try:
        fields = msgpack.unpackb(message, object_pairs_hook=_unique_pairs)
    except WireError:
        raise
    except (ValueError, TypeError) as error:  # UnicodeDecodeError is a ValueError
        raise WireError("malformed", f"not a msgpack map: {error}") from None
    if type(fields) is not dict:
        raise WireError("malformed", f"the message is a {type(fields).__name__}, a map was expected")
    request_id = fields.get("id")
    if type(request_id) is not int:
        request_id = None
    version = fields.get("v")
    if type(version) is not int or version != PROTOCOL_VERSION:
        text = f"`v` is {version!r:.40}, this side speaks protocol version {PROTOCOL_VERSION}"
        raise WireError("version", text, request_id)
    return fields


_REQUEST_CAPS = (MAX_MESSAGE_BYTES, MAX_ITEMS, MAX_NESTING, MAX_TEXT)
_REPLY_CAPS = (REPLY_MAX_BYTES, REPLY_MAX_ITEMS, REPLY_MAX_NESTING, REPLY_MAX_TEXT)
