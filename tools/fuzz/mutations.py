"""Ways to spoil a message: of its bytes, and of the msgpack that it is made of.

Each way says whether what it made must be refused. Flipped bits may still be a good message; a truncated one may not.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgpack

Made = tuple[bytes, bool]
"""A message, and whether it must be refused."""


class Raw(bytes):
    """Bytes that go into a msgpack message as they are."""


class Pairs(list):
    """Keys and values of a map, where a key may stand twice."""


def head(count: int, small: int, wide: int) -> bytes:
    """Head of a map (0x80, 0xde) or array (0x90, 0xdc) of so many entries."""
    return bytes([small | count]) if count < 16 else bytes([wide]) + count.to_bytes(2, "big")


def pack(value: Any) -> bytes:
    """msgpack of a value that may hold `Raw` and `Pairs`."""
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, dict):
        value = Pairs(value.items())
    if isinstance(value, Pairs):
        return head(len(value), 0x80, 0xDE) + b"".join(pack(key) + pack(item) for key, item in value)
    if isinstance(value, list | tuple):
        return head(len(value), 0x90, 0xDC) + b"".join(map(pack, value))
    return msgpack.packb(value)


def hostile(rng: random.Random, deepest: int) -> Any:
    """A value that nothing may accept anywhere; deepest: levels of nesting that are allowed."""
    return rng.choice(
        (
            Raw(b"\xdd\xff\xff\xff\xff"),  # arrays, maps, texts that claim to be huge
            Raw(b"\xdd\x7f\xff\xff\xff" + b"\xc0" * rng.randrange(99)),
            Raw(b"\xdf\xff\xff\xff\xff"),
            Raw(b"\xdb\xff\xff\xff\xff" + b"a" * rng.randrange(99)),
            Raw(b"\xdc\xff\xff" * rng.randrange(1, 900)),
            Raw(b"\xde\xff\xff\xa1a" * rng.randrange(1, 600)),
            Raw(b"\xc6\x7f\xff\xff\xff"),  # binary and extension types, the byte that msgpack never uses
            Raw(b"\xc4\x01a"),
            Raw(b"\xc7\xff\x01"),
            Raw(b"\xd6\xff\0\0\0\0"),  # a time stamp
            Raw(b"\xc1"),
            Raw(b"\xa2\xff\xfe"),  # no UTF-8
            Raw(b"\xa3\xed\xa0\x80"),
            Raw(b"\x91" * (deepest + rng.randrange(1, 3000)) + b"\0"),
            Raw(b"\x81\xa1a" * (deepest + rng.randrange(1, 1000)) + b"\0"),
            Pairs([("a", 1), ("a", 1)]),
            Pairs([(1, 1)]),
            float("nan"),
            float("inf"),
            float("-inf"),
            [1.0, float("nan")],
            Raw(b"\xca\x7f\xc0\0\0"),  # NaN in single precision
        )
    )


WRONG = (None, True, False, "", "a", "1", -1, 0, 1.5, [], {}, [[]], ["a"], [True], [None] * 3, 1 << 63, (1 << 64) - 1)
"""Values of wrong types, or far out of range."""


def spoil_map(rng: random.Random, fields: dict[str, Any], deepest: int) -> Made:
    """A msgpack map that must be refused by every reader: hostile values, lies about its length, keys that repeat."""
    key = rng.choice(list(fields))
    way = rng.randrange(7)
    if way == 0:
        pairs = Pairs(fields.items())
        pairs.insert(rng.randrange(len(pairs) + 1), (key, fields[key]))
        return pack(pairs), True
    if way == 1:
        whole = pack(fields)
        claimed = rng.choice([n for n in (0, 1, len(fields) - 1, len(fields) + 1, 65535) if n != len(fields)])
        rest = whole[1:] if whole[0] < 0x90 else whole[3:]
        return b"\xde" + claimed.to_bytes(2, "big") + rest, True
    if way == 2:
        return pack(fields) + rng.randbytes(rng.randrange(1, 40)), True
    if way == 3:
        whole = pack(fields)
        return whole[: rng.randrange(len(whole))], True
    if way == 4:
        return pack(Pairs([*fields.items(), (hostile(rng, deepest), 1)])), True
    return pack({**fields, key: hostile(rng, deepest)}), True


def scatter(rng: random.Random, seeds: Sequence[bytes]) -> Made:
    """Bytes changed anywhere: bits flipped, parts cut out, put in, repeated, or taken from another message."""
    message = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if not message:
            break
        at = rng.randrange(len(message))
        way = rng.randrange(7)
        if way < 2:
            message[at] ^= 1 << rng.randrange(8)
        elif way == 2:
            message[at] = rng.choice((0, 1, 0x7F, 0x80, 0xC1, 0xFF, rng.randrange(256)))
        elif way == 3:
            del message[at : at + rng.choice((1, 1, 4, 64))]
        elif way == 4:
            message[at:at] = rng.randbytes(rng.choice((1, 1, 4, 64)))
        elif way == 5:
            message[at:at] = message[max(0, at - rng.randrange(64)) : at]
        else:
            message = message[:at] + rng.choice(seeds)[at:]
    return bytes(message), False


def noise(rng: random.Random) -> Made:
    """Bytes without any meaning."""
    return rng.randbytes(rng.choice((0, 1, 8, 60, 200, 5000, rng.randrange(300)))), False


def lengthen(rng: random.Random, message: bytes) -> Made:
    """A whole message with something after its end."""
    return message + rng.randbytes(rng.choice((1, 4, 60, 5000))), True


def shorten(rng: random.Random, message: bytes) -> Made:
    """A message that ends too early."""
    return message[: rng.randrange(len(message))], True


def one_of(*ways: Callable[[random.Random], Made]) -> Callable[[random.Random], Made]:
    """A maker that takes one of several ways each time."""
    return lambda rng: ways[rng.randrange(len(ways))](rng)


def spoil_text(rng: random.Random, text: bytes, values: Sequence[bytes]) -> bytes:
    """A text with some of its lines changed: numbers and words replaced by others, lines repeated, left out, joined."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        way = rng.randrange(6)
        words = lines[at].split(b" ")
        if way < 3 and len(words) > 1:
            words[rng.randrange(len(words))] = rng.choice(values)
            lines[at] = b" ".join(words) + (b"" if way else b"\n")
        elif way == 3:
            lines.insert(at, rng.choice(lines))
        elif way == 4 and len(lines) > 1:
            del lines[at]
        else:
            lines[at] = scatter(rng, (lines[at] or b" ",))[0]
    return b"".join(lines)
