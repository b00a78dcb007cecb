"""The codec of the log: records and states of bodies to JSON messages and back to the same bits, with JSON Schemas.

What a message looks like follows from the record types: a field is a key, a nested type an object, a table a list.
NaN and infinities, which JSON cannot hold, stand beside them by their bits.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from bridge.log.descriptions import DESCRIPTIONS
from haptics.tables import BODY_SAMPLE, RECORD

NON_FINITE = "non_finite"
"""Key of the list that holds the bits of NaN and infinities, which JSON cannot."""

_IN_ROWS = {"output.report.path": "position", "output.planes": "plane"}
"""What a row of a table of numbers is called."""

_AS_TEXT = {
    "input.sample.session",
    "input.command.session",
    "input.peer.message.session",
    "output.link.message.session",
    "output.owner",
    "output.report.bodies_digest",
}
"""Any 64 bits: a reader whose numbers are doubles would confuse two of them."""

Label = Callable[[int], tuple[int, str]]
"""Row of the array in hand -> (record it belongs to, path in that record's message)."""


class ChannelError(ValueError):
    """A message does not have the form that its channel prescribes."""


class _Batch:
    """What an encoding pass finds besides the values: NaN and infinities, by record."""

    def __init__(self) -> None:
        self.non_finite: dict[int, list[dict[str, str]]] = {}

    def note(self, record: int, field: str, value: float) -> None:
        bits = int(np.float64(value).view(np.uint64))
        self.non_finite.setdefault(record, []).append({"field": field, "bits": f"0x{bits:016x}"})


class Node:
    """One key of a message: how it is written, read and described."""

    def __init__(self, key: str, field: str, path: str):
        self.key = key
        self.field = field
        self.path = path

    def encode(self, parent: np.ndarray, label: Label, batch: _Batch) -> list[Any]:
        raise NotImplementedError

    def decode(self, values: list[Any], parent: np.ndarray) -> None:
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        raise NotImplementedError

    def describe(self, schema: dict[str, Any]) -> dict[str, Any]:
        unit, text = DESCRIPTIONS.get(self.path, ("", ""))
        if unit:
            schema["description"] = f"[{unit}] {text}"
        elif text:
            schema["description"] = text
        return schema


class _Number(Node):
    """A number or a flat list of numbers."""

    def __init__(self, key: str, field: str, path: str, base: np.dtype, shape: tuple[int, ...]):
        super().__init__(key, field, path)
        self.base = base
        self.shape = shape
        self.real = base.kind == "f"
        self.text = path in _AS_TEXT

    def encode(self, parent: np.ndarray, label: Label, batch: _Batch) -> list[Any]:
        values = parent[self.field] if self.field else parent
        if self.text:
            return [str(value) for value in values.tolist()]
        if self.real:
            finite = np.isfinite(values)
            if not finite.all():
                for where in np.argwhere(~finite):
                    record, prefix = label(int(where[0]))
                    index = "".join(f"[{i}]" for i in where[1:])
                    batch.note(record, f"{prefix}{self.key}{index}", values[tuple(where)])
                values = np.where(finite, values, 0.0)
        return values.tolist()

    def decode(self, values: list[Any], parent: np.ndarray) -> None:
        if self.text:
            if not all(type(value) is str and value.isascii() and value.isdigit() for value in values):
                raise ChannelError(f"{self.key} is not a whole number written as text")
            values = [int(value) for value in values]
        try:
            if self.real:
                array = np.array(values)
                good = array.dtype.kind in "fiu"
            else:
                good = set(map(type, values)) <= {int}
                array = np.array(values, dtype=self.base) if good else np.empty(0)
        except (ValueError, OverflowError, TypeError):
            good = False
        if not good or array.shape != (len(values), *self.shape):
            raise ChannelError(f"{self.key} is not {self._expectation()}")
        if self.field:
            parent[self.field] = array
        else:
            parent[...] = array

    def _expectation(self) -> str:
        one = "a finite number" if self.real else f"a whole number that fits {self.base.name}"
        return f"a list of {self.shape[0]} numbers" if self.shape else one

    def schema(self) -> dict[str, Any]:
        if self.text:
            item: dict[str, Any] = {"type": "string", "pattern": "^[0-9]{1,20}$"}
        elif self.real:
            item = {"type": "number"}
        else:
            limits = np.iinfo(self.base)
            item = {"type": "integer", "minimum": int(limits.min), "maximum": int(limits.max)}
        if self.shape:
            item = {"type": "array", "items": item, "minItems": self.shape[0], "maxItems": self.shape[0]}
        return self.describe(item)


class Group(Node):
    """A nested object."""

    def __init__(self, key: str, field: str, path: str, children: Sequence[Node]):
        super().__init__(key, field, path)
        self.children = tuple(children)
        self.names = tuple(child.key for child in self.children)

    def encode(self, parent: np.ndarray, label: Label, batch: _Batch) -> list[Any]:
        inner = parent[self.field] if self.field else parent

        def nested(row: int) -> tuple[int, str]:
            record, prefix = label(row)
            return record, f"{prefix}{self.key}."

        columns = [child.encode(inner, nested, batch) for child in self.children]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def decode(self, values: list[Any], parent: np.ndarray) -> None:
        inner = parent[self.field] if self.field else parent
        for child in self.children:
            child.decode(_pick(values, child.key), inner)

    def schema(self) -> dict[str, Any]:
        return self.describe(object_schema({child.key: child.schema() for child in self.children}))


class _Rows(Node):
    """A list of objects, of a table with a fixed number of rows of which the first ones are used."""

    def __init__(self, key: str, field: str, path: str, count: str, capacity: int, row: _Row):
        super().__init__(key, field, path)
        self.count = count
        self.capacity = capacity
        self.row = row

    def encode(self, parent: np.ndarray, label: Label, batch: _Batch) -> list[Any]:
        table = np.ascontiguousarray(parent[self.field])
        records = len(table)
        counts = np.clip(parent[self.count].astype(np.int64), 0, self.capacity)
        # Rows after the count are zero by contract. Should that ever be broken, the log keeps them, to show what was.
        raw = table.reshape(records, -1).view(np.uint8).reshape(records, self.capacity, -1)
        filled: np.ndarray = (raw != 0).any(axis=2)
        last = self.capacity - np.argmax(filled[:, ::-1], axis=1)
        counts = np.maximum(counts, np.where(filled.any(axis=1), last, 0))
        used = np.arange(self.capacity) < counts[:, None]
        owners, rows = np.nonzero(used)

        def nested(row: int) -> tuple[int, str]:
            record, prefix = label(int(owners[row]))
            return record, f"{prefix}{self.key}[{rows[row]}]."

        objects = self.row.encode_rows(table[used], nested, batch)
        ends = np.cumsum(counts).tolist()
        return [objects[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def decode(self, values: list[Any], parent: np.ndarray) -> None:
        if not all(type(value) is list and len(value) <= self.capacity for value in values):
            raise ChannelError(f"{self.key} is not a list of at most {self.capacity} objects")
        counts = np.array([len(value) for value in values], dtype=np.int64)
        used = np.arange(self.capacity) < counts[:, None]
        flat = [row for value in values for row in value]
        table = parent[self.field]
        rows = np.zeros(len(flat), dtype=table.dtype) if table.dtype.names else np.zeros((len(flat), table.shape[-1]))
        if flat:
            self.row.decode_rows(flat, rows)
        table[used] = rows

    def schema(self) -> dict[str, Any]:
        return self.describe({"type": "array", "items": self.row.schema(), "maxItems": self.capacity})


class _Row(Group):
    """One row of a table."""

    def encode_rows(self, rows: np.ndarray, label: Label, batch: _Batch) -> list[Any]:
        columns = [child.encode(rows, label, batch) for child in self.children]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def decode_rows(self, values: list[Any], rows: np.ndarray) -> None:
        for child in self.children:
            child.decode(_pick(values, child.key), rows)


def _pick(values: list[Any], key: str) -> list[Any]:
    try:
        return [value[key] for value in values]
    except (KeyError, TypeError, IndexError):
        raise ChannelError(f"{key} is missing") from None


def object_schema(properties: dict[str, Any], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return the JSON Schema of an object whose keys are all required, besides the optional ones."""
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key not in optional],
    }


def nodes_of(dtype: np.dtype, path: str, skip: Sequence[str] = ()) -> list[Node]:
    """Return one key per field of a record type that stands at ``path`` in RECORD, padding and ``skip`` left out."""
    assert dtype.fields is not None and dtype.names is not None
    return [
        _node(name, dtype.fields[name][0], f"{path}.{name}" if path else name)
        for name in dtype.names
        if name != "padding" and name not in skip
    ]


def _node(name: str, dtype: np.dtype, path: str) -> Node:
    if dtype.names is not None:
        return Group(name, name, path, nodes_of(dtype, path))
    base, shape = dtype.subdtype or (dtype, ())
    if base.names is not None:
        return _Rows(
            name, name, path, f"{name.removesuffix('s')}_count", shape[0], _Row("", "", "", nodes_of(base, path))
        )
    if len(shape) == 2:
        # A list of lists would be shorter, but viewers that build columns from a schema cannot take one.
        row = _Row("", "", "", [_Number(_IN_ROWS[path], "", "", base, shape[1:])])
        return _Rows(name, name, path, f"{name.removesuffix('s')}_count", shape[0], row)
    return _Number(name, name, path, base, shape)


@dataclass(frozen=True)
class Channel:
    """One channel of the log that holds a part of RECORD."""

    topic: str
    schema_name: str
    description: str
    parts: tuple[tuple[str, tuple[Node, ...]], ...]
    """(path of the parent in RECORD, its keys in the message)"""

    def encode(self, records: np.ndarray) -> list[bytes]:
        """Return one JSON message per record; ``records`` (n,) RECORD."""
        batch = _Batch()
        names: list[str] = ["tick"]
        columns: list[list[Any]] = [records["tick"].tolist()]
        for path, nodes in self.parts:
            parent = _parent(records, path)
            for node in nodes:
                names.append(node.key)
                columns.append(node.encode(parent, lambda row: (row, ""), batch))
        messages = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        for record, found in batch.non_finite.items():
            messages[record][NON_FINITE] = found
        return [orjson.dumps(message) for message in messages]

    def decode(self, messages: Sequence[dict[str, Any]], records: np.ndarray) -> None:
        """Fill this channel's part of ``records`` (n,) RECORD, zeroed, from as many parsed messages.

        Raises ChannelError naming the key that is missing or of the wrong form.
        """
        for message in messages:
            for item in message.get(NON_FINITE, ()):
                _restore(message, item)
        records["tick"] = ticks_of(messages)
        for path, nodes in self.parts:
            parent = _parent(records, path)
            for node in nodes:
                node.decode(_pick(list(messages), node.key), parent)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema (draft 2020-12) of this channel's messages."""
        tick = _Number("tick", "tick", "tick", RECORD["tick"], ())
        properties: dict[str, Any] = {"tick": tick.schema()}
        for _, nodes in self.parts:
            properties |= {node.key: node.schema() for node in nodes}
        properties[NON_FINITE] = _non_finite_schema()
        return titled(self.schema_name, self.description, object_schema(properties, optional=(NON_FINITE,)))

    def record_paths(self) -> list[str]:
        """Return the paths in RECORD of the numbers that this channel holds (rows without their numbers)."""

        def walk(node: Node) -> list[str]:
            if isinstance(node, Group):
                return [path for child in node.children for path in walk(child)]
            if isinstance(node, _Rows):
                below = [path for child in node.row.children for path in walk(child)]
                return [path or node.path for path in below]
            return [node.path]

        return [path for _, nodes in self.parts for node in nodes for path in walk(node)]


def _parent(records: np.ndarray, path: str) -> np.ndarray:
    for name in path.split(".") if path else ():
        records = records[name]
    return records


def _restore(message: dict[str, Any], item: Any) -> None:
    """Put one non-finite number back in its place in a parsed message."""
    try:
        tokens: list[str | int] = [
            int(token) if token.isdigit() else token for token in re.findall(r"[^.\[\]]+", item["field"])
        ]
        target: Any = message
        for token in tokens[:-1]:
            target = target[token]
        target[tokens[-1]] = struct.unpack("<d", int(item["bits"], 16).to_bytes(8, "little"))[0]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        raise ChannelError(f"an entry of {NON_FINITE} names no field of the message: {item!r}") from None


def ticks_of(messages: Sequence[Any]) -> list[int]:
    """Return the tick numbers of parsed messages; raises ChannelError when one has none."""
    ticks = [message.get("tick") if isinstance(message, dict) else None for message in messages]
    if not all(type(tick) is int and 0 <= tick < 2**64 for tick in ticks):
        raise ChannelError("tick is missing or not a whole number")
    return ticks  # type: ignore[return-value]


def titled(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a whole JSON Schema (draft 2020-12) of this name."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "description": description,
        **schema,
    }


def _non_finite_schema() -> dict[str, Any]:
    bits = object_schema({"field": {"type": "string"}, "bits": {"type": "string", "pattern": "^0x[0-9a-f]{16}$"}})
    return {
        "type": "array",
        "items": bits,
        "description": "absent when every number is finite; otherwise the fields that are NaN or infinite (they "
        "stand as 0 in their place), each with its 64 bits",
    }


LOGGED_BODY = np.dtype([("body_id", "i4"), *((name, BODY_SAMPLE[name]) for name in BODY_SAMPLE.names or ())])
"""A body's state with its id."""

_BODY = _Row("", "", "", nodes_of(LOGGED_BODY, "bodies"))
_BODY_WORDS = BODY_SAMPLE.itemsize // 8


def encode_bodies(ticks: np.ndarray, states: np.ndarray, body_ids: Sequence[int]) -> list[bytes]:
    """Return one JSON message of ``/bodies`` per tick: the first with all bodies, the others with what changed.

    ticks: (m,); states: (m, n) BODY_SAMPLE, contiguous; body_ids: (n,). A body has changed when any bit of its state
    is another than in the row before.
    """
    words = states.reshape(-1).view(np.uint64).reshape(len(ticks), len(body_ids), _BODY_WORDS)
    changed = np.ones(words.shape[:2], bool)
    changed[1:] = (words[1:] != words[:-1]).any(axis=2)
    owners, which = np.nonzero(changed)
    rows = np.zeros(len(owners), LOGGED_BODY)
    rows["body_id"] = np.asarray(body_ids)[which]
    chosen = states[changed]
    for name in BODY_SAMPLE.names or ():
        rows[name] = chosen[name]
    counts = changed.sum(axis=1)
    starts = np.cumsum(counts) - counts
    batch = _Batch()

    def label(row: int) -> tuple[int, str]:
        return int(owners[row]), f"bodies[{row - int(starts[owners[row]])}]."

    objects = _BODY.encode_rows(rows, label, batch)
    messages: list[dict[str, Any]] = []
    for tick, start, count in zip(ticks.tolist(), starts.tolist(), counts.tolist(), strict=True):
        messages.append({"tick": tick, "bodies": objects[start : start + count]})
    for row, found in batch.non_finite.items():
        messages[row][NON_FINITE] = found
    return [orjson.dumps(message) for message in messages]


def decode_bodies(messages: Sequence[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return (counts (m,) of bodies in each of m parsed messages of ``/bodies``, all of them as LOGGED_BODY).

    Raises ChannelError naming the key that is missing or of the wrong form.
    """
    for message in messages:
        for item in message.get(NON_FINITE, ()):
            _restore(message, item)
    lists = _pick(list(messages), "bodies")
    if not all(type(bodies) is list for bodies in lists):
        raise ChannelError("bodies is not a list")
    flat = [body for bodies in lists for body in bodies]
    rows = np.zeros(len(flat), LOGGED_BODY)
    if flat:
        _BODY.decode_rows(flat, rows)
    return np.array([len(bodies) for bodies in lists], np.int64), rows


def _bodies_schema() -> dict[str, Any]:
    unit_and_text = Node("bodies", "", "bodies").describe({"type": "array", "items": _BODY.schema()})
    properties = {"tick": _Number("tick", "tick", "tick", RECORD["tick"], ()).schema(), "bodies": unit_and_text}
    properties[NON_FINITE] = _non_finite_schema()
    return titled(
        "hapticd.Bodies",
        "Bodies that move: states that are not the ones logged last; all of them in the first message of a chunk",
        object_schema(properties, optional=(NON_FINITE,)),
    )


BODIES_SCHEMA = _bodies_schema()
