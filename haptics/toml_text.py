"""TOML within bounds: what people write into configurations, cards and scripts, and nothing that trips a reader."""

import tomllib
from typing import Any

MAX_BYTES = 1_000_000
"""A larger file is surely none of these."""

MAX_NESTING = 16
_INTEGERS = range(-(1 << 63), 1 << 63)


def parse_toml(raw: bytes) -> dict[str, Any]:
    """The tables of a TOML file. Raises ValueError, the text of which goes on after the file's name.

    UTF-8; at most `MAX_BYTES`, nested `MAX_NESTING` deep, with integers of 64 bits, as TOML prescribes.
    """
    if len(raw) > MAX_BYTES:
        raise ValueError(f"is {len(raw)} bytes long; at most {MAX_BYTES} are read")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"is not UTF-8 text (line {line}); TOML is needed") from None
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ValueError("is not valid TOML: arrays or tables are nested too deeply") from None
    except ValueError as error:  # also of an integer with thousands of digits
        raise ValueError(f"is not valid TOML: {error}") from None
    check_plain(values)
    return values


def check_plain(values: Any) -> None:
    """Raise ValueError for values that are nested too deeply, or integers of more than 64 bits."""
    waiting = [(values, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, dict | list):
            if depth > MAX_NESTING:
                raise ValueError("is not valid TOML: arrays or tables are nested too deeply")
            waiting += [(item, depth + 1) for item in (value.values() if isinstance(value, dict) else value)]
        elif isinstance(value, int) and value not in _INTEGERS:
            raise ValueError("is not valid TOML: an integer takes more than 64 bits")
