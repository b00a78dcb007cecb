"""Renders: what the device shall do and be told after a tick, servo to client, in both encodings."""

import math
import reprlib
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
from numba import njit

from bridge.schema import (
    KIND_RENDER,
    MAX_ITEMS,
    MAX_MESSAGE_BYTES,
    MAX_TEXT,
    PROTOCOL_VERSION,
    RENDER_FIELDS,
    STRUCT_MARK,
)
from bridge.wire.layout import MARK, RENDER_PACKER, RENDER_STRUCT, WireError
from haptics.states import EngagementState, Reason
from haptics.tables import MAX_PLANES, RECORD

# ---------------------------------------------------------------------------------------------------------------------
# Servo side
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
        render.slack[i] = output.slack[i]
    for k in range(MAX_PLANES):
        for i in range(4):
            render.planes[4 * k + i] = output.planes[k, i]
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
    render.plane_count = np.uint8(output.plane_count)
    render.pinned = np.uint8(output.pinned)


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
    """Compiles (or loads from the cache) the kernels behind :func:`encode_render`."""
    records = np.zeros(1, RECORD)
    for source in (records, records[0]):
        encode_render(source, 0, True)
        encode_render(source, 0, False)


# ---------------------------------------------------------------------------------------------------------------------
# Client side
# ---------------------------------------------------------------------------------------------------------------------


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
    slack: tuple[float, ...]
    planes: tuple[float, ...]
    plane_count: int
    pinned: int

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


_RANGES = {"u1": (0, 255), "u8": (0, (1 << 64) - 1), "i8": (-(1 << 63), (1 << 63) - 1)}
_CAPS = {"max_array_len": MAX_ITEMS, "max_map_len": MAX_ITEMS, "max_str_len": MAX_TEXT}
_CAPS |= {"max_bin_len": 0, "max_ext_len": 0}
"""What a map may claim to hold before anything is made for it; its depth is bounded by the decoder's own stack."""


def _each_once(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise WireError("malformed", "a key stands twice in a map")
    return fields


def _with_planes(render: Render) -> Render:
    if render.plane_count > MAX_PLANES or render.pinned > 1:
        what = f"`plane_count` {render.plane_count} and `pinned` {render.pinned}"
        raise WireError("malformed", f"{what} of a render are {MAX_PLANES} and 1 at most")
    return render


def decode_render(message: bytes) -> Render:
    """Decodes a render message (either encoding). Raises WireError when it is not one."""
    if message[:1] == MARK:
        if len(message) >= 3 and message[1] != PROTOCOL_VERSION:
            raise WireError("version", f"the render is of version {message[1]}, this client speaks {PROTOCOL_VERSION}")
        if len(message) != RENDER_PACKER.size or message[2] != KIND_RENDER:
            raise WireError("malformed", f"{len(message)} bytes came, a render struct has {RENDER_PACKER.size}")
        n = RENDER_PACKER.unpack(message)
        if n[3] != 0 or n[4] != 0:
            raise WireError("malformed", f"flags {n[3]} and present bits {n[4]:#x} of a render are 0 in this version")
        if not all(map(math.isfinite, (*n[9:46], n[47], *n[52:71]))):
            raise WireError("not_finite", "a number of the render is NaN or infinite")
        return _with_planes(Render(
            n[5], n[6], n[7], n[8], n[9:15], n[15:18], n[18:22], n[22:28], n[28:34], n[34:40], n[40:46],
            n[46], n[47], _STATES.get(n[48], n[48]), _REASONS.get(n[49], n[49]), n[50], n[51], n[52:55], n[55:71],
            n[71], n[72],
        ))  # fmt: skip
    if len(message) > MAX_MESSAGE_BYTES:
        raise WireError("too_large", f"a render of {len(message)} bytes is longer than the {MAX_MESSAGE_BYTES} allowed")
    try:
        fields = msgpack.unpackb(message, object_pairs_hook=_each_once, **_CAPS)
    except WireError:
        raise
    except (ValueError, TypeError) as error:
        raise WireError("malformed", f"not a msgpack map: {error}") from None
    if type(fields) is not dict or fields.get("v") != PROTOCOL_VERSION or fields.get("kind") != KIND_RENDER:
        raise WireError("malformed", f"not a map with `v` {PROTOCOL_VERSION} and `kind` {KIND_RENDER}")
    values: dict[str, Any] = {}
    for field in RENDER_FIELDS:
        value: Any = fields.get(field.name)
        number = (int, float) if field.kind == "f8" else (int,)
        items = value if field.count > 1 else [value]
        if type(items) is not list or len(items) != field.count or any(type(item) not in number for item in items):
            raise WireError(
                "malformed", f"`{field.name}` of a render is {field.count} number(s), not {reprlib.repr(value)}"
            )
        if field.kind == "f8":
            items = [float(item) for item in items]
            if not all(math.isfinite(item) for item in items):
                raise WireError("not_finite", f"`{field.name}` of the render is not finite")
        elif not all(_RANGES[field.kind][0] <= item <= _RANGES[field.kind][1] for item in items):
            raise WireError("malformed", f"`{field.name}` of a render is out of range: {reprlib.repr(value)}")
        values[field.name] = tuple(items) if field.count > 1 else items[0]
    values["state"] = _STATES.get(values["state"], values["state"])
    values["reason"] = _REASONS.get(values["reason"], values["reason"])
    return _with_planes(Render(**values))
