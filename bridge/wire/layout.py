"""Layout of the 1 kHz messages as fixed structs, made from the schema table; and the error of a broken message."""

import struct
from collections.abc import Sequence

import numpy as np

from bridge.schema import PEER_FIELDS, RENDER_FIELDS, SAMPLE_FIELDS, STRUCT_MARK, Field

Vector = Sequence[float] | np.ndarray
"""A few numbers."""

HEADER_FIELDS: tuple[tuple[str, str], ...] = (
    ("mark", "u1"),
    ("version", "u1"),
    ("kind", "u1"),
    ("flags", "u1"),
    ("present", "u4"),
)
"""First eight bytes of a fixed struct: name and little-endian numpy code."""


class WireError(ValueError):
    """A message that breaks the protocol: ``code`` for programs, one sentence ``text``, ``request_id`` if readable."""

    def __init__(self, code: str, text: str, request_id: int | None = None) -> None:
        super().__init__(f"{text} [{code}]")
        self.code = code
        self.text = text
        self.request_id = request_id


def struct_dtype(fields: Sequence[Field]) -> np.dtype:
    """Packed little-endian record type of a fixed-struct message: the header, then the fields in table order."""
    columns: list[tuple] = [(name, "<" + kind) for name, kind in HEADER_FIELDS]
    for field in fields:
        columns.append(
            (field.name, "<" + field.kind) if field.count == 1 else (field.name, "<" + field.kind, field.count)
        )
    return np.dtype(columns)


def _python_format(fields: Sequence[Field]) -> str:
    codes = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i8": "q", "f8": "d"}
    return "<BBBBI" + "".join(f"{field.count}{codes[field.kind]}" for field in fields)


SAMPLE_STRUCT = struct_dtype(SAMPLE_FIELDS)
RENDER_STRUCT = struct_dtype(RENDER_FIELDS)
PEER_STRUCT = struct_dtype(PEER_FIELDS)
SAMPLE_PACKER = struct.Struct(_python_format(SAMPLE_FIELDS))
RENDER_PACKER = struct.Struct(_python_format(RENDER_FIELDS))
MARK = bytes([STRUCT_MARK])
"""First byte of a fixed struct."""

_OPTIONAL = tuple(field.name for field in SAMPLE_FIELDS if field.optional)
PRESENT_BITS = {name: 1 << bit for bit, name in enumerate(_OPTIONAL)}
"""Bit of each optional sample field in the ``present`` word."""
