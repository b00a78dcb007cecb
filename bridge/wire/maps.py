"""Maps of the control, state and events sockets: msgpack, whose caps are checked on the bytes before decoding."""

import math
from collections.abc import Mapping
from typing import Any

import msgpack
import numpy as np

from bridge.schema import (
    MAX_ITEMS,
    MAX_MESSAGE_BYTES,
    MAX_NESTING,
    MAX_TEXT,
    PROTOCOL_VERSION,
    REPLY_MAX_BYTES,
    REPLY_MAX_ITEMS,
    REPLY_MAX_NESTING,
    REPLY_MAX_TEXT,
)
from bridge.wire.layout import WireError

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


def unpack_map(message: bytes, *, reply: bool = False) -> dict[str, Any]:
    """Unpacks a msgpack map of any content after checking its caps on the bytes, as :func:`unpack_control`."""
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
    return fields


def unpack_control(message: bytes, *, reply: bool = False) -> dict[str, Any]:
    """Unpacks a map of the control, state or events socket after checking its caps on the bytes.

    ``reply`` selects the wider caps of what a daemon sends (lists of bodies, tick records). Raises WireError with a
    code of ``too_large too_deep malformed not_finite version``; its ``request_id`` is set when the map could be read.
    """
    fields = unpack_map(message, reply=reply)
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
