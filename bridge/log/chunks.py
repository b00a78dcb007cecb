"""Chunks of MCAP files, unpacked within bounds: a few bytes may claim, or unpack to, any number of them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import IO

import lz4.frame
import zstandard
from mcap.records import Channel, Chunk, McapRecord, Message, Schema
from mcap.stream_reader import StreamReader, breakup_chunk

MAX_CHUNK = 1 << 28
"""Bytes of an unpacked chunk; hapticd's recorder writes some 100 kB at a time, other programs a few MB."""


def records_in(chunk: Chunk, validate: bool = False) -> list[McapRecord]:
    """The records inside a chunk; validate: compare its checksum, if it has one.

    Raises errors of all kinds when it is damaged: what its decompressor or parser ran into. No more than one byte
    beyond what it claims is ever unpacked.
    """
    size = chunk.uncompressed_size
    if size > MAX_CHUNK:
        raise ValueError(f"a chunk claims {size} bytes; at most {MAX_CHUNK} are unpacked")
    if chunk.compression == "zstd":
        data = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK).stream_reader(chunk.data).read(size + 1)
    elif chunk.compression == "lz4":
        data = lz4.frame.LZ4FrameDecompressor().decompress(chunk.data, max_length=size + 1)
    else:
        data = chunk.data
    if len(data) != size:
        raise ValueError(f"a chunk that claims {size} bytes does not unpack to them")
    return breakup_chunk(replace(chunk, compression="", data=data), validate_crc=validate)


def messages_of(stream: IO[bytes], size: int) -> Iterator[tuple[Schema | None, Channel, Message]]:
    """Messages of an MCAP file of so many bytes, in the order in which they stand there; its index is not needed.

    Raises errors of all kinds when it is damaged.
    """
    schemas: dict[int, Schema] = {}
    channels: dict[int, Channel] = {}
    for outer in StreamReader(stream, emit_chunks=True, record_size_limit=max(size, 1)).records:
        for record in records_in(outer) if isinstance(outer, Chunk) else [outer]:
            if isinstance(record, Schema):
                schemas[record.id] = record
            elif isinstance(record, Channel):
                channels[record.id] = record
            elif isinstance(record, Message):
                channel = channels[record.channel_id]
                yield schemas[channel.schema_id] if channel.schema_id else None, channel, record
