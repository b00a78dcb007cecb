"""State and TOUCH as bytes, so that a log which starts late can still be executed again.

Layout: HEADER, then PROXY, then one POSE per body, then TOUCH. The header names the layout of these records; bytes of
another version of the project are refused, never reinterpreted.
"""

import zlib

import numpy as np

from haptics.tables import TOUCH
from rtcore.model import Model
from rtcore.state import State, make_state
from rtcore.tables import POSE, PROXY

SNAPSHOT_VERSION = 1

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "u4"),
        ("layout", "u4"),  # checksum of the record types
        ("bodies", "u4"),
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


_LAYOUT = zlib.crc32("|".join(_layout(dtype) for dtype in (PROXY, POSE, TOUCH)).encode())


def snapshot_size(model: Model) -> int:
    """Bytes that a snapshot of this model's state takes."""
    return HEADER.itemsize + PROXY.itemsize + len(model.bodies) * POSE.itemsize + TOUCH.itemsize


def pack_snapshot(state: State, touch: np.ndarray, buffer: np.ndarray | None = None) -> np.ndarray:
    """Write state and (1,) TOUCH into a uint8 buffer and return the part of it that was written.

    Without a buffer (:func:`snapshot_size` bytes or more) a new one is made. Raises ValueError when it is too small.
    """
    parts = (state.proxy, state.poses, touch)
    size = HEADER.itemsize + sum(part.nbytes for part in parts)
    if buffer is None:
        buffer = np.empty(size, np.uint8)
    if buffer.dtype != np.uint8 or buffer.ndim != 1 or len(buffer) < size:
        raise ValueError(f"a snapshot needs a flat uint8 buffer of {size} bytes, not {buffer.dtype} {buffer.shape}")
    written = buffer[:size]
    at = HEADER.itemsize
    for part in parts:
        written[at : at + part.nbytes] = part.view(np.uint8)
        at += part.nbytes
    written[: HEADER.itemsize].view(HEADER)[0] = (
        _MAGIC,
        SNAPSHOT_VERSION,
        _LAYOUT,
        len(state.poses),
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
    size = snapshot_size(model)
    if len(raw) < size:
        raise ValueError(f"a snapshot of this model has {size} bytes; there are only {len(raw)}")
    body = raw[HEADER.itemsize : size]
    if zlib.crc32(body.data) != header["checksum"]:
        raise ValueError("the snapshot is damaged: its checksum does not match")
    state = make_state(model, (0.0, 0.0, 0.0))
    touch = np.zeros(1, TOUCH)
    at = 0
    for part in (state.proxy, state.poses, touch):
        part.view(np.uint8)[:] = body[at : at + part.nbytes]
        at += part.nbytes
    return state, touch
