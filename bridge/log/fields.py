"""Paths into the record types: every leaf field by name, columns by name, and where two records differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from haptics.tables import RECORD


class Leaf(NamedTuple):
    """One field that holds numbers and not further fields."""

    path: str
    """From the record type's root, with row numbers: ``output.report.contacts[3].normal``."""
    offset: int
    """Bytes from the start of the record."""
    base: np.dtype
    """Type of one item."""
    shape: tuple[int, ...]


class Difference(NamedTuple):
    """The first place where two values of one record type are not the same to the bit."""

    field: str
    """With the item's index: ``output.wrench[2]``."""
    first: Any
    second: Any


def iterate_leaves(dtype: np.dtype, path: str = "", offset: int = 0) -> Iterator[Leaf]:
    """Yield every leaf of a record type in memory order; ``padding`` fields are left out at every level."""
    if dtype.subdtype is not None and dtype.subdtype[0].names is not None:
        row, shape = dtype.subdtype
        for index in range(int(np.prod(shape))):
            yield from iterate_leaves(row, f"{path}[{index}]", offset + index * row.itemsize)
    elif dtype.names is not None:
        assert dtype.fields is not None
        for name in dtype.names:
            if name != "padding":
                child, child_offset = dtype.fields[name][:2]
                yield from iterate_leaves(child, f"{path}.{name}" if path else name, offset + child_offset)
    else:
        base, shape = dtype.subdtype or (dtype, ())
        yield Leaf(path, offset, base, shape)


@lru_cache(maxsize=16)
def leaves(dtype: np.dtype) -> tuple[Leaf, ...]:
    """Return every leaf of a record type (see :func:`iterate_leaves`)."""
    return tuple(iterate_leaves(dtype))


@lru_cache(maxsize=16)
def byte_mask(dtype: np.dtype) -> np.ndarray:
    """Return (itemsize,) bool: True for the bytes that carry a value, False for padding, named or of alignment."""
    mask = np.zeros(dtype.itemsize, dtype=bool)
    for leaf in leaves(dtype):
        size = leaf.base.itemsize * int(np.prod(leaf.shape, dtype=int))
        mask[leaf.offset : leaf.offset + size] = True
    mask.flags.writeable = False
    return mask


def differing_bytes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return (n, itemsize) bool: which bytes of two equally long arrays of one record type differ, padding excluded.

    Bytes, not values, are compared: a NaN equals the same NaN, and -0.0 differs from 0.0.
    """
    if first.dtype != second.dtype or first.shape != second.shape:
        raise ValueError("only arrays of one record type and one length can be compared")
    size = first.dtype.itemsize
    a = np.ascontiguousarray(first).view(np.uint8).reshape(-1, size)
    b = np.ascontiguousarray(second).view(np.uint8).reshape(-1, size)
    return (a != b) & byte_mask(first.dtype)


def first_difference(first: np.ndarray, second: np.ndarray, prefix: str = "") -> Difference | None:
    """Return the first differing field (memory order) of two single records of one type, or None.

    ``first`` and ``second`` are arrays with one element; ``prefix`` is put before the field's path.
    """
    a, b = first.reshape(1), second.reshape(1)
    where = np.flatnonzero(differing_bytes(a, b)[0])
    if where.size == 0:
        return None
    byte = int(where[0])
    for leaf in leaves(first.dtype):
        items = int(np.prod(leaf.shape, dtype=int))
        if leaf.offset <= byte < leaf.offset + items * leaf.base.itemsize:
            item = (byte - leaf.offset) // leaf.base.itemsize
            start = leaf.offset + item * leaf.base.itemsize
            index = "".join(f"[{i}]" for i in np.unravel_index(item, leaf.shape)) if leaf.shape else ""
            values = [x.tobytes()[start : start + leaf.base.itemsize] for x in (a, b)]
            numbers = [np.frombuffer(value, leaf.base)[0].item() for value in values]
            return Difference((prefix + "." if prefix else "") + leaf.path + index, *numbers)
    raise AssertionError("a differing byte outside every field")


def describe_value(value: Any) -> str:
    """Return a number so that two that differ by one bit read differently (floats with their bits)."""
    if isinstance(value, float):
        return f"{value!r} (0x{np.float64(value).view(np.uint64):016x})"
    return str(value)


def column(records: np.ndarray, path: str) -> np.ndarray:
    """Return one field of many records by its path, such as ``output.wrench[2]`` or ``timing.started_ns``.

    ``records`` (n,) of any record type. Row numbers select along the axes after the first. Raises KeyError with one
    clear sentence when there is no such field or row.
    """
    tokens = re.findall(r"[^.\[\]]+", path)
    if not tokens:
        raise KeyError("an empty field name; write one like output.wrench[0]")
    value, done = records, ""
    for token in tokens:
        if token.lstrip("-").isdigit():
            if value.ndim < 2 or not 0 <= int(token) < value.shape[1]:
                raise KeyError(f"field {done or path} has no item [{token}]")
            value = value[:, int(token)]
            done += f"[{token}]"
            continue
        names = value.dtype.names or ()
        if token not in names:
            known = ", ".join(name for name in names if name != "padding") or "no further fields"
            raise KeyError(f"no field {token!r} in {done or 'the record'}; there is: {known}")
        value = value[token]
        done += f".{token}" if done else token
    return value


def column_names(dtype: np.dtype = RECORD) -> list[str]:
    """Return the path of every leaf outside the contact rows, as :func:`column` takes them."""
    return [leaf.path for leaf in leaves(dtype) if "contacts[" not in leaf.path]
