"""Samples: poses of the device, client to servo, in both encodings.

A client packs them with :func:`encode_sample`; the servo judges them with :func:`decode_sample` and nowhere else: one
that breaks a rule gets a :class:`bridge.schema.Reject` code and changes nothing.
"""

import math
import struct
from typing import Any, TypedDict

import msgpack
import numpy as np
from numba import njit

from bridge.schema import (
    KIND_SAMPLE,
    MAX_COORDINATE,
    MAX_ITEMS,
    MAX_MESSAGE_BYTES,
    MAX_RATE,
    MAX_TIME,
    PROTOCOL_VERSION,
    QUATERNION_TOLERANCE,
    SAMPLE_FIELDS,
    STRUCT_MARK,
    Reject,
)
from bridge.wire.layout import MARK, PRESENT_BITS, SAMPLE_PACKER, SAMPLE_STRUCT, Vector
from haptics.tables import RECORD, SAMPLE

# ---------------------------------------------------------------------------------------------------------------------
# Client side
# ---------------------------------------------------------------------------------------------------------------------


class OptionalFields(TypedDict, total=False):
    """What a sample may say beside the pose; what is absent or None is left out of the message."""

    twist: Vector | None
    """(6,) of the device, device frame, m/s and rad/s; the servo estimates it when absent."""
    buttons: int | None
    """Bit mask, bit 0 is the main button."""
    deadman: bool | None
    """True while the hand is known to be on the device."""
    valid: bool | None
    """False: this pose must not be used."""


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
            return SAMPLE_PACKER.pack(
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


# ---------------------------------------------------------------------------------------------------------------------
# Servo side
# ---------------------------------------------------------------------------------------------------------------------
#
# One pass over the bytes, against what the table allows at each place. There is no general decoder in it, so nesting,
# counts and sizes cannot grow beyond the table, and the longest message costs a few microseconds. The tables are
# arguments and not globals because a compiled kernel would keep the values of its day in the on-disk cache. The GIL is
# kept on purpose: the words are shared scratch.

# Columns of the table that drives the decoding kernel, one row per key of the map.
_KEY_LENGTH, _KEY_LOW, _KEY_HIGH, _CLASS, _COUNT, _WORD, _OFFSET, _SIZE, _BIT = range(9)
_UNSIGNED, _SIGNED, _FLOAT, _VERSION, _KIND = range(5)


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
    return message[:1] == MARK


def warm_up() -> None:
    """Compiles (or loads from the cache) the kernels behind :func:`decode_sample`."""
    samples, records = np.zeros(1, SAMPLE), np.zeros(1, RECORD)
    message = encode_sample(1, 1, 1, (0.0, 0.0, 0.0))
    for target in (samples, samples[0], records["input"]["sample"], records[0]["input"]["sample"]):
        decode_sample(message, target)
