"""State and TOUCH as bytes, so that a log which starts late can still be executed again.

Layout: HEADER, PROXY, one POSE per body, one BODY_VELOCITY per body and the tool's, TOUCH; with a tool mesh then the
order that the broad phase keeps, the contacts of the last tick, one FRONT per body, and of each front the entries in
use; where bodies move then PAIR_TABLE, the rows of the pairs in use in their order, these PAIRs, and the entries in use
of the front of each. The header names the layout of these records; bytes of another version of the project are refused,
never reinterpreted, and numbers that this model has no place for are refused before anything is done with them.
"""

import zlib

import numpy as np

from haptics.tables import TOUCH
from rtcore.dynamics.rigid_body import BODY_VELOCITY
from rtcore.model import Model
from rtcore.state import State, front_capacity, make_state, pair_capacity
from rtcore.tables import (
    CONTACT_MEMORY,
    FRONT,
    FRONT_ENTRY,
    MAX_CONTACTS,
    MAX_PAIR_CONTACTS,
    MAX_REMEMBERED,
    PAIR,
    PAIR_TABLE,
    POSE,
    PROXY,
)

SNAPSHOT_VERSION = 4

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
_RECORDS = (PROXY, POSE, BODY_VELOCITY, TOUCH, CONTACT_MEMORY, FRONT, FRONT_ENTRY, PAIR, PAIR_TABLE)
_FEATURES = 7
"""A contact is of a vertex (0..2), of an edge (3..5) or of a face (6)."""


def _layout(dtype: np.dtype) -> str:
    """Names, types and offsets of a record type, nested ones included."""
    if dtype.subdtype is not None:
        return f"{dtype.shape}{_layout(dtype.base)}"
    if dtype.fields is None:
        return dtype.str
    inside = ",".join(f"{name}@{dtype.fields[name][1]}:{_layout(dtype.fields[name][0])}" for name in dtype.names or ())
    return f"{{{inside}}}{dtype.itemsize}"


_LAYOUT = zlib.crc32("|".join(_layout(dtype) for dtype in _RECORDS).encode())


def snapshot_size(model: Model) -> int:
    """Most bytes that a snapshot of this model's state takes."""
    n = len(model.bodies)
    size = HEADER.itemsize + PROXY.itemsize + n * POSE.itemsize + (n + 1) * BODY_VELOCITY.itemsize + TOUCH.itemsize
    capacity = front_capacity(model)
    if capacity > 0:
        size += 3 * (n + 1) * 4 + CONTACT_MEMORY.itemsize + n * (FRONT.itemsize + capacity * FRONT_ENTRY.itemsize)
    pairs, entries = pair_capacity(model)
    if pairs > 0:
        size += PAIR_TABLE.itemsize + pairs * (4 + PAIR.itemsize + entries * FRONT_ENTRY.itemsize)
    return size


def _parts(state: State, touch: np.ndarray) -> list[np.ndarray]:
    """What comes before the entries of the fronts, in order."""
    parts = [state.proxy, state.poses, state.velocities, touch]
    return [*parts, state.broad.order, state.contact_memory, state.fronts] if len(state.fronts) > 0 else parts


def _in_use(fronts: np.ndarray, entries: np.ndarray, rows: np.ndarray | range) -> list[np.ndarray]:
    """The entries in use of some fronts: (n,) FRONT, (n, 2, capacity) FRONT_ENTRY."""
    current, count = fronts["current"].tolist(), fronts["count"].tolist()
    return [entries[row, current[row], : count[row]] for row in rows]


def _pair_parts(state: State) -> list[np.ndarray]:
    """What there is of pairs of bodies: the table, and of the pairs in use their rows, themselves and their fronts."""
    pairs = state.pairs
    if len(pairs.rows) == 0:
        return []
    order = pairs.order[: pairs.table[0]["count"]]
    return [pairs.table, order, pairs.rows[order], *_in_use(pairs.rows["front"], pairs.entries, order)]


def pack_snapshot(state: State, touch: np.ndarray, buffer: np.ndarray | None = None) -> np.ndarray:
    """Write state and (1,) TOUCH into a uint8 buffer and return the part of it that was written.

    Without a buffer (:func:`snapshot_size` bytes are always enough) a new one is made. Raises ValueError when it is too
    small.
    """
    fronts = _in_use(state.fronts, state.front_entries, range(len(state.fronts)))
    parts = [*_parts(state, touch), *fronts, *_pair_parts(state)]
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
    source = _Source(raw[HEADER.itemsize : size])
    source.fill(*_parts(state, touch))
    if len(state.fronts) > 0:
        _check_tool(model, state)
        entries = _in_use(state.fronts, state.front_entries, range(len(state.fronts)))
        source.fill(*entries)
        for front, used in zip(state.fronts, entries, strict=True):
            _check_entries(model, front, used)
    if len(state.pairs.rows) > 0:
        _unpack_pairs(model, state, source)
    if source.left != 0:
        raise ValueError(f"the snapshot is of another kind of tool: it has {source.left} bytes too many")
    return state, touch


class _Source:
    """Bytes that are copied into arrays, one after the other."""

    def __init__(self, raw: np.ndarray) -> None:
        self._raw = raw

    @property
    def left(self) -> int:
        return len(self._raw)

    def fill(self, *parts: np.ndarray) -> None:
        for part in parts:
            if part.nbytes > len(self._raw):
                raise ValueError("the snapshot is of another kind of tool: it ends before its parts do")
            part.reshape(-1).view(np.uint8)[:] = self._raw[: part.nbytes]
            self._raw = self._raw[part.nbytes :]


def _unpack_pairs(model: Model, state: State, source: _Source) -> None:
    """Read what :func:`_pair_parts` wrote, into a state without pairs."""
    pairs = state.pairs
    table = pairs.table[0]
    source.fill(pairs.table)
    if not (0 <= table["count"] <= len(pairs.rows) and 0 <= table["turn"] <= table["count"] and table["contacts"] >= 0):
        raise ValueError("the snapshot holds more pairs of bodies than this model has room for")
    order = pairs.order[: table["count"]]
    source.fill(order)
    if not _within(order, 0, len(pairs.rows)) or len(np.unique(order)) < len(order):
        raise ValueError("the snapshot keeps two pairs of bodies at one place, or one where there is none")
    used = np.zeros(len(order), PAIR)
    source.fill(used)
    _check_pairs(model, state, used)
    pairs.rows[order] = used
    entries = _in_use(pairs.rows["front"], pairs.entries, order)
    source.fill(*entries)
    for front, own in zip(used["front"], entries, strict=True):
        _check_entries(model, front, own)


def _within(values: np.ndarray, first: np.ndarray | int, after: np.ndarray | int) -> bool:
    return bool(((values >= first) & (values < after)).all())


def _check_tool(model: Model, state: State) -> None:
    """ValueError unless order, contacts and fronts of a tool mesh are ones that its model can have."""
    n = len(model.bodies)
    if not (np.sort(state.broad.order, axis=1) == np.arange(n + 1)).all():
        raise ValueError("the snapshot does not sort each body once along each axis")
    memory = state.contact_memory[0]
    if not (0 <= memory["count"] <= MAX_CONTACTS and memory["count"] <= memory["known"] <= MAX_REMEMBERED):
        raise ValueError("the snapshot holds more contacts than there is room for")
    known = memory["rows"][: memory["known"]]
    if not (_within(known["body_id"], 0, n) and 0 <= memory["turn"] <= n):
        raise ValueError("the snapshot names a body that the model does not have")
    tool = np.full(len(known), model.world["tool_mesh_id"][0])
    _check_features(model, model.bodies["mesh_id"][known["body_id"]], tool, known)
    mesh_ids = model.bodies["mesh_id"]
    _check_fronts(model, mesh_ids, np.full(n, model.world["tool_mesh_id"][0]), state.fronts, state.front_entries)


def _check_pairs(model: Model, state: State, used: np.ndarray) -> None:
    """ValueError unless the PAIRs in use, in their order, are ones that this model can have."""
    first, second = used["first"].astype(np.int64), used["second"].astype(np.int64)
    if not (_within(first, 0, len(model.bodies)) and _within(second, first + 1, len(model.bodies))):
        raise ValueError("the snapshot names a body that the model does not have")
    moves = state.pairs.movers[:-1] >= 0
    if not ((np.diff(first * len(model.bodies) + second) > 0).all() and (moves[first] | moves[second]).all()):
        raise ValueError("the snapshot's pairs of bodies are out of order, or some of them cannot move")
    if not _within(used["count"], 0, MAX_PAIR_CONTACTS + 1):
        raise ValueError("the snapshot holds more contacts than there is room for")
    one, two = (model.bodies["mesh_id"][rows] for rows in (first, second))
    held = np.arange(MAX_PAIR_CONTACTS) < used["count"][:, None]
    pair, _ = np.nonzero(held)
    _check_features(model, one[pair], two[pair], used["contacts"][held])
    _check_fronts(model, one, two, used["front"], state.pairs.entries)


def _check_features(model: Model, first: np.ndarray, second: np.ndarray, contacts: np.ndarray) -> None:
    """ValueError unless (n,) contacts are between features that (n,) meshes `first` and `second` have."""
    for mesh_id, side in ((first, "first"), (second, "second")):
        mesh = model.meshes[mesh_id]
        start = mesh["triangle_first"]
        if not _within(contacts[f"{side}_triangle"], start, start + mesh["triangle_count"]):
            raise ValueError("the snapshot names a triangle that the model does not have")
        if not _within(contacts[f"{side}_feature"], 0, _FEATURES):
            raise ValueError("the snapshot names a feature that no triangle has")


def _check_fronts(model: Model, first: np.ndarray, second: np.ndarray, fronts: np.ndarray, entries: np.ndarray) -> None:
    """ValueError unless (n,) FRONTs are of the (n,) meshes `first` and `second`, and within (.., 2, room) entries."""
    for mesh_id, side in ((first, "first"), (second, "second")):
        if (fronts[f"{side}_root"] != model.meshes["node_first"][mesh_id]).any():
            raise ValueError("the snapshot's fronts are not between the meshes of this model's bodies")
    deepest = fronts["walk_first"].shape[1]
    fits = _within(fronts["count"], 1, entries.shape[2] + 1) and _within(fronts["walk_top"], 0, deepest + 1)
    if not (fits and _within(fronts["current"], 0, 2)):
        raise ValueError("the snapshot holds more of a front than this model has room for")
    if not (_within(fronts["cursor"], 0, entries.shape[2] + 1) and _within(fronts["walk"], 0, entries.shape[2] + 1)):
        raise ValueError("the snapshot goes on outside of a front")
    deep = np.arange(deepest) < fronts["walk_top"][:, None]
    walker, _ = np.nonzero(deep)
    for mesh_id, side in ((first, "first"), (second, "second")):
        mesh = model.meshes[mesh_id[walker]]
        if not _within(fronts[f"walk_{side}"][deep], mesh["node_first"], mesh["node_first"] + mesh["node_count"]):
            raise ValueError("the snapshot names a node that the model does not have")


def _check_entries(model: Model, front: np.void, entries: np.ndarray) -> None:
    """ValueError unless the entries of a front are of nodes of its two meshes."""
    for side in ("first", "second"):
        root = front[f"{side}_root"]
        count = model.meshes["node_count"][model.meshes["node_first"] == root][0]
        if not _within(entries[side], root, root + count):
            raise ValueError("the snapshot names a node that the model does not have")
