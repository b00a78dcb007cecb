"""State and TOUCH as bytes, so that a log which starts late can still be executed again.

Layout: HEADER, PROXY, one POSE per body, TOUCH; with a tool mesh then the order that the broad phase keeps, the
contacts of the last tick, one FRONT per body, and of each front the entries in use. The header names the layout of
these records; bytes of another version of the project are refused, never reinterpreted.
"""

import zlib

import numpy as np

from haptics.tables import TOUCH
from rtcore.model import Model
from rtcore.state import State, front_capacity, make_state
from rtcore.tables import CONTACT_MEMORY, FRONT, FRONT_ENTRY, MAX_CONTACTS, MAX_REMEMBERED, POSE, PROXY

SNAPSHOT_VERSION = 2

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "u4"),
        ("layout", "u4"),  # checksum of the record types
        ("bodies", "u4"),
        ("size", "u4"),  # bytes in all
        ("checksum", "u4"),  # of everything after the header
    ]
)

_MAGIC = b"HAPTSNAP"


def _layout(dtype: np.dtype) -> str:
    """Names, types and offsets of a record type, nested ones included."""
    if dtype.subdtype is not None:
        return f"{dtype.shape}{_layout(dtype.base)}"
    if dtype.fields is None:
        return dtype.str
    inside = ",".join(f"{name}@{dtype.fields[name][1]}:{_layout(dtype.fields[name][0])}" for name in dtype.names or ())
    return f"{{{inside}}}{dtype.itemsize}"


_LAYOUT = zlib.crc32(
    "|".join(_layout(dtype) for dtype in (PROXY, POSE, TOUCH, CONTACT_MEMORY, FRONT, FRONT_ENTRY)).encode()
)


def snapshot_size(model: Model) -> int:
    """Most bytes that a snapshot of this model's state takes."""
    n = len(model.bodies)
    size = HEADER.itemsize + PROXY.itemsize + n * POSE.itemsize + TOUCH.itemsize
    capacity = front_capacity(model)
    if capacity > 0:
        size += 3 * (n + 1) * 4 + CONTACT_MEMORY.itemsize + n * (FRONT.itemsize + capacity * FRONT_ENTRY.itemsize)
    return size


def _parts(state: State, touch: np.ndarray) -> list[np.ndarray]:
    """What comes before the entries of the fronts, in order."""
    parts = [state.proxy, state.poses, touch]
    return [*parts, state.broad.order, state.contact_memory, state.fronts] if len(state.fronts) > 0 else parts


def _entries(state: State) -> list[np.ndarray]:
    """The entries in use of each front."""
    return [
        entries[current, :count]
        for entries, current, count in zip(
            state.front_entries, state.fronts["current"], state.fronts["count"], strict=True
        )
    ]


def pack_snapshot(state: State, touch: np.ndarray, buffer: np.ndarray | None = None) -> np.ndarray:
    """Write state and (1,) TOUCH into a uint8 buffer and return the part of it that was written.

    Without a buffer (:func:`snapshot_size` bytes are always enough) a new one is made. Raises ValueError when it is too
    small.
    """
    parts = _parts(state, touch) + _entries(state)
    size = HEADER.itemsize + sum(part.nbytes for part in parts)
    if buffer is None:
        buffer = np.empty(size, np.uint8)
    if buffer.dtype != np.uint8 or buffer.ndim != 1 or len(buffer) < size:
        raise ValueError(f"a snapshot needs a flat uint8 buffer of {size} bytes, not {buffer.dtype} {buffer.shape}")
    written = buffer[:size]
    at = HEADER.itemsize
    for part in parts:
        written[at : at + part.nbytes] = part.reshape(-1).view(np.uint8)
        at += part.nbytes
    written[: HEADER.itemsize].view(HEADER)[0] = (
        _MAGIC,
        SNAPSHOT_VERSION,
        _LAYOUT,
        len(state.poses),
        size,
        zlib.crc32(written[HEADER.itemsize :].data),
    )
    return written


def unpack_snapshot(data: bytes | bytearray | memoryview | np.ndarray, model: Model) -> tuple[State, np.ndarray]:
    """Make the state and the (1,) TOUCH that a snapshot of this model holds. Raises ValueError saying what is wrong."""
    raw = np.frombuffer(data, np.uint8)
    if len(raw) < HEADER.itemsize:
        raise ValueError(f"a snapshot has a header of {HEADER.itemsize} bytes; there are only {len(raw)}")
    header = raw[: HEADER.itemsize].view(HEADER)[0]
    if bytes(header["magic"]) != _MAGIC:
        raise ValueError("these bytes are not a snapshot: the mark at their start is missing")
    if header["version"] != SNAPSHOT_VERSION:
        raise ValueError(f"snapshot version {header['version']}; this program reads version {SNAPSHOT_VERSION}")
    if header["layout"] != _LAYOUT:
        raise ValueError("the snapshot was written with other record types than this program's")
    if header["bodies"] != len(model.bodies):
        raise ValueError(f"the snapshot holds {header['bodies']} bodies; the model has {len(model.bodies)}")
    size = int(header["size"])
    if len(raw) < size:
        raise ValueError(f"this snapshot has {size} bytes; there are only {len(raw)}")
    if zlib.crc32(raw[HEADER.itemsize : size].data) != header["checksum"]:
        raise ValueError("the snapshot is damaged: its checksum does not match")
    state = make_state(model, (0.0, 0.0, 0.0))
    touch = np.zeros(1, TOUCH)
    at = HEADER.itemsize
    parts = _parts(state, touch)
    if size < at + sum(part.nbytes for part in parts):
        raise ValueError(f"the snapshot is of another kind of tool: it has only {size} bytes")
    at = _fill(parts, raw, at)
    too_many = state.fronts["count"] > state.front_entries.shape[2]
    too_deep = state.fronts["walk_top"] > state.fronts["walk_first"].shape[1]
    if (too_many | too_deep).any():
        raise ValueError("the snapshot holds more of a front than this model has room for")
    if (state.contact_memory["count"] > MAX_CONTACTS).any() or (state.contact_memory["known"] > MAX_REMEMBERED).any():
        raise ValueError("the snapshot holds more contacts than there is room for")
    entries = _entries(state)
    if size != at + sum(part.nbytes for part in entries):
        raise ValueError(f"the snapshot is of another kind of tool: it has {size} bytes")
    _fill(entries, raw, at)
    return state, touch


def _fill(parts: list[np.ndarray], raw: np.ndarray, at: int) -> int:
    """Copy bytes into the parts, one after the other from `at` on; returns the place after the last one."""
    for part in parts:
        part.reshape(-1).view(np.uint8)[:] = raw[at : at + part.nbytes]
        at += part.nbytes
    return at
