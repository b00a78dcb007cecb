"""Reading a log: whole or in pieces, complete or cut off anywhere.

The framing of an MCAP file (one byte of kind, eight bytes of length, content) is walked here, because a log that a
crash has cut off must be read up to its last whole record; what stands inside one is parsed by the mcap library.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Attachment, Channel, Chunk, Header, McapRecord, Message, Metadata

from bridge.log.channels import (
    BODIES_METADATA,
    BODIES_TOPIC,
    CHANNELS,
    EVENTS_TOPIC,
    LOG_VERSION,
    PROFILE,
    message_times_ns,
)
from bridge.log.chunks import records_in
from bridge.log.codec import ChannelError, decode_bodies, ticks_of
from bridge.model_file import read_npy
from haptics.tables import BODY_SAMPLE, RECORD, RECORD_VERSION, SETTINGS, record_type
from rtcore.model import Model
from rtcore.tables import BUDGET

MAGIC = b"\x89MCAP0\r\n"
_FRAME = struct.Struct("<BQ")
_MAX_RECORD = 1 << 31
"""No record of a log comes near this; a larger length is damage."""

_MAX_BODIES = 1 << 20
"""More bodies than any scene can have."""

_DATA_KINDS = frozenset({Opcode.CHUNK, Opcode.MESSAGE_INDEX, Opcode.ATTACHMENT, Opcode.METADATA, Opcode.DATA_END})
"""What may stand between the header and the end of the data; a summary follows, which repeats what is there."""
_NOTED_KINDS = frozenset({Opcode.HEADER, Opcode.METADATA, Opcode.ATTACHMENT})
_CHUNK_HEAD = struct.Struct("<QQQII")  # start, end, unpacked size, checksum, length of the compression's name
_INDEX_HEAD = struct.Struct("<HI")  # channel, bytes of entries
_INDEX_ENTRY = 16

_TOPICS = {channel.topic: index for index, channel in enumerate(CHANNELS)}
_SNAPSHOT_NAME = re.compile(r"snapshot-(\d{1,20})\.bin")


class LogError(Exception):
    """A log cannot be used for what was asked; the text is one clear sentence."""


class Snapshot(NamedTuple):
    """Bytes of State and TOUCH as they were after one tick (see :mod:`haptics.snapshot`)."""

    tick: int
    data: bytes


class _Span(NamedTuple):
    offset: int
    length: int


class LogReader:
    """A log opened for reading: what stands beside the records at once, the records in pieces.

    Raises LogError when ``path`` is no hapticd log or one of another version.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.complete = False
        """The recorder closed the file properly and nothing in it is damaged, as far as it has been read."""
        self.problem = ""
        """Where and why reading ends before the proper end; empty for a complete log."""
        self.last_tick: int | None = None
        """Last tick that :meth:`batches` has given out."""
        self.versions: dict[str, str] = {}
        """The metadata record of the log: versions of log, record and programs, clock offset, origin."""
        self.metadata: dict[str, dict[str, str]] = {}
        self.body_ids: tuple[int, ...] = ()
        """Of the bodies that move, whose states stand behind the records, rising."""
        self.bodies_every = 1
        """Ticks per state that was written: those whose number it divides have theirs, others the one before."""
        self._attachments: dict[str, _Span] = {}
        self._chunks: list[_Span] = []
        self._chunk_times: list[tuple[int, int]] = []
        self.size = 0
        try:
            with open(self.path, "rb") as file:
                self.size = os.fstat(file.fileno()).st_size
                self._scan(file)
        except IsADirectoryError:
            raise LogError(f"{self.path} is a directory; give the .mcap file in it") from None
        except FileNotFoundError:
            raise LogError(f"{self.path}: there is no such file") from None
        except OSError as error:
            raise LogError(f"{self.path} cannot be read: {error.strerror or error}") from None

    def _scan(self, file: io.BufferedReader) -> None:
        start = file.read(len(MAGIC))
        if start != MAGIC:
            if not start:
                raise LogError(f"{self.path} is empty; a log begins with the MCAP magic bytes")
            if MAGIC.startswith(start):
                raise LogError(f"{self.path} ends at byte {self.size}, before its header: nothing in it can be read")
            raise LogError(f"{self.path} is not an MCAP file: it does not begin with the MCAP magic bytes")
        header_seen = False
        data_ended = False
        position = len(MAGIC)
        while True:
            frame = file.read(_FRAME.size)
            if len(frame) < _FRAME.size:
                self._stop(f"ends at byte {self.size} without its closing part, as after a crash or on a full disk")
                break
            kind, length = _FRAME.unpack(frame)
            content = position + _FRAME.size
            if not header_seen and kind != Opcode.HEADER:
                raise LogError(f"{self.path} is damaged: an MCAP header is missing at byte {position}")
            if length > _MAX_RECORD:
                self._stop(f"is damaged at byte {position}: a record claims {length} bytes")
                break
            if content + length > self.size:
                self._stop(f"ends at byte {self.size} in the middle of a record that began at byte {position}")
                break
            if header_seen and not data_ended and (kind not in _DATA_KINDS or not _fills(file, kind, length)):
                # The framing has no checksum: one wrong byte there would skip a chunk without a trace.
                self._stop(f"is damaged at byte {position}: the frame of a record does not hold together")
                break
            file.seek(content)
            data_ended |= kind == Opcode.DATA_END
            if kind == Opcode.CHUNK and not data_ended:
                self._chunks.append(_Span(content, length))
                self._chunk_times.append(struct.unpack("<QQ", file.read(16)))
            if kind in ((Opcode.FOOTER,) if data_ended else _NOTED_KINDS):
                if not self._note(file, kind, _Span(content, length), position):
                    break
                header_seen = True
                if self.complete:
                    break
            position = content + length
            file.seek(position)
        if not header_seen:
            raise LogError(f"{self.path} {self.problem or 'holds no header'}: nothing in it can be read")
        if not self.versions:
            if self.complete:
                raise LogError(f"{self.path} is an MCAP file but not a hapticd log: it has no metadata {PROFILE!r}")
            raise LogError(f"{self.path} {self.problem}: nothing in it can be read")

    def _note(self, file: io.BufferedReader, kind: int, span: _Span, position: int) -> bool:
        """Take in one record outside the chunks; False when it is damaged and reading must stop."""
        data = file.read(span.length)
        try:
            if kind == Opcode.HEADER:
                profile = Header.read(_stream(data)).profile
                if profile != PROFILE:
                    raise LogError(
                        f"{self.path} is an MCAP file but no hapticd log: its profile is {profile!r}, not {PROFILE!r}"
                    )
            elif kind == Opcode.METADATA:
                metadata = Metadata.read(_stream(data))
                self.metadata[metadata.name] = metadata.metadata
                if metadata.name == PROFILE:
                    self._check_versions(metadata.metadata)
                elif metadata.name == BODIES_METADATA:
                    self._note_bodies(metadata.metadata)
            elif kind == Opcode.ATTACHMENT:
                (crc,) = struct.unpack("<I", data[-4:])
                if crc != zlib.crc32(data[:-4]):
                    self._stop(f"is damaged at byte {position}: an attachment does not match its checksum")
                    return False
                attachment = Attachment.read(_stream(data))
                self._attachments[attachment.name] = _Span(
                    span.offset + span.length - 4 - len(attachment.data), len(attachment.data)
                )
            elif file.read(len(MAGIC)) == MAGIC:
                self.complete = True
            else:
                self._stop(f"ends at byte {self.size} without its closing part, as after a crash or on a full disk")
                return False
        except (McapError, struct.error, UnicodeDecodeError, ValueError):
            self._stop(f"is damaged at byte {position}: a record cannot be parsed")
            return False
        return True

    def _check_versions(self, versions: dict[str, str]) -> None:
        self.versions = versions
        for key, mine in (("log_version", LOG_VERSION), ("record_version", RECORD_VERSION)):
            found = versions.get(key)
            if found != str(mine):
                raise LogError(f"{self.path} has {key.replace('_', ' ')} {found}; this program reads version {mine}")

    def _note_bodies(self, metadata: dict[str, str]) -> None:
        try:
            ids = tuple(int(number) for number in metadata["ids"].split(","))
            every = int(metadata["every"])
            if list(ids) != sorted(set(ids)) or ids[0] < 0 or ids[-1] >= _MAX_BODIES or every < 1:
                raise ValueError
        except (KeyError, ValueError):
            raise LogError(f"{self.path} does not tell which bodies move: its metadata {metadata} cannot be") from None
        self.body_ids, self.bodies_every = ids, every

    @property
    def record_type(self) -> np.dtype:
        """Of what :meth:`batches` yields: RECORD, and behind it ``bodies`` where bodies move."""
        return record_type(len(self.body_ids))

    def _stop(self, problem: str) -> None:
        self.complete = False
        self.problem = problem

    @property
    def truncated(self) -> bool:
        """True when the log ends, or becomes unreadable, before its proper end."""
        return not self.complete

    @property
    def explanation(self) -> str:
        """One sentence on where reading ended and the last tick read; empty for a complete log."""
        if self.complete:
            return ""
        upto = "no tick could be read" if self.last_tick is None else f"read up to tick {self.last_tick}"
        return f"{self.path} {self.problem}: {upto}"

    # What stands beside the records

    def attachment_names(self) -> list[str]:
        """Return the names of the attachments in the log."""
        return list(self._attachments)

    def attachment(self, name: str) -> bytes:
        """Return one attachment's bytes; raises LogError when the log does not have it."""
        span = self._attachments.get(name)
        if span is None:
            why = f", which {self.problem}" if self.problem else ""
            raise LogError(f"the attachment {name} is missing from {self.path}{why}")
        with open(self.path, "rb") as file:
            file.seek(span.offset)
            return file.read(span.length)

    def _json(self, name: str) -> dict[str, Any]:
        try:
            value = json.loads(self.attachment(name))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise LogError(f"the attachment {name} of {self.path} is not a JSON object")
        return value

    def _table(self, name: str, dtype: np.dtype) -> np.ndarray:
        data = self.attachment(name)
        try:
            table = read_npy(data)
        except ValueError:
            raise LogError(f"the attachment {name} of {self.path} is not a numpy table") from None
        if table.dtype == np.uint8 and table.nbytes == dtype.itemsize:  # written as bytes, so that padding survives
            table = table.reshape(-1).view(dtype)
        if table.dtype != dtype or table.shape != (1,):
            raise LogError(f"the attachment {name} of {self.path} has another layout than this program's")
        return table

    @cached_property
    def config(self) -> dict[str, Any]:
        """Full configuration of the run, as plain values."""
        return self._json("config.json")

    @cached_property
    def card(self) -> dict[str, Any]:
        """Device card of the run, as plain values."""
        return self._json("card.json")

    @cached_property
    def assembly(self) -> dict[str, Any]:
        """Body names, mesh hashes, start and versions of the run."""
        return self._json("assembly.json")

    @cached_property
    def machine(self) -> dict[str, Any]:
        """Machine that recorded: processor, system, versions."""
        return self._json("machine.json")

    @cached_property
    def settings(self) -> np.ndarray:
        """(1,) SETTINGS of the run."""
        return self._table("settings.npy", SETTINGS)

    @cached_property
    def budget(self) -> np.ndarray:
        """(1,) BUDGET that the configuration asked for; the ones in force stand in the records."""
        return self._table("budget.npy", BUDGET)

    @cached_property
    def model(self) -> Model:
        """Model of the run."""
        from bridge.model_file import ModelFileError, load_model

        data = self.attachment("model.npz")
        try:
            return load_model(io.BytesIO(data))
        except ModelFileError as error:
            raise LogError(f"the attachment model.npz of {self.path} is not a model: {error}") from None

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """Snapshots in the order of their ticks."""
        found = []
        for name in self._attachments:
            match = _SNAPSHOT_NAME.fullmatch(name)
            if match:
                found.append(Snapshot(int(match.group(1)), self.attachment(name)))
        return sorted(found)

    @property
    def wall_offset_ns(self) -> int:
        """What to add to a monotonic time of the records to get wall-clock ns since 1970."""
        try:
            return int(self.versions.get("wall_offset_ns", "0"))
        except ValueError:
            return 0

    @property
    def span_ns(self) -> tuple[int, int]:
        """Wall-clock time of the first and the last message in whole chunks, ns since 1970; (0, 0) without any."""
        if not self._chunk_times:
            return 0, 0
        return min(start for start, _ in self._chunk_times), max(end for _, end in self._chunk_times)

    # The records

    def batches(self, events: list[dict[str, Any]] | None = None, from_ns: int | None = None) -> Iterator[np.ndarray]:
        """Yield the records in order, in arrays (n,) of :attr:`record_type` of some tens each; memory stays bounded.

        Events met on the way are appended to ``events``. ``from_ns`` (wall clock) skips the chunks that end before it.
        Stops at the first damage and says so in :attr:`explanation`. Raises LogError when a message has not the form
        that its channel prescribes.
        """
        return self._batches(events, from_ns, self.body_ids)

    def _batches(
        self, events: list[dict[str, Any]] | None, from_ns: int | None, body_ids: tuple[int, ...]
    ) -> Iterator[np.ndarray]:
        """As :meth:`batches`, with the states of these bodies: all that move, or none."""
        waiting: dict[int, list[dict[str, Any] | None]] = {}
        bodies = _Bodies(body_ids) if body_ids else None
        self.last_tick = None
        topics: dict[int, str] = {}
        with open(self.path, "rb") as file:
            for number, (span, times) in enumerate(zip(self._chunks, self._chunk_times, strict=True)):
                early = from_ns is not None and times[1] < from_ns
                # Channels are declared in the first chunk, so that one is always opened.
                if early and number > 0:
                    continue
                file.seek(span.offset)
                data = file.read(span.length)
                try:
                    content = records_in(Chunk.read(_stream(data)), validate=True)
                except Exception:  # decompressors raise types of their own; any of them means damage
                    self._stop(f"is damaged at byte {span.offset}: a chunk cannot be unpacked")
                    return
                if early:
                    content = [record for record in content if isinstance(record, Channel)]
                self._take(content, topics, waiting, events, bodies)
                records = self._complete(waiting)
                if len(records):
                    if bodies is not None:
                        records = self._with_bodies(records, bodies)
                    self.last_tick = int(records["tick"][-1])
                    yield records

    def _take(
        self,
        content: list[McapRecord],
        topics: dict[int, str],
        waiting: dict[int, list[dict[str, Any] | None]],
        events: list[dict[str, Any]] | None,
        bodies: _Bodies | None,
    ) -> None:
        for record in content:
            if isinstance(record, Channel):
                topics[record.id] = record.topic
                continue
            if not isinstance(record, Message):
                continue
            topic = topics.get(record.channel_id, "")
            slot = _TOPICS.get(topic)
            of_bodies = topic == BODIES_TOPIC and bodies is not None
            if slot is None and not of_bodies and (topic != EVENTS_TOPIC or events is None):
                continue
            try:
                message = orjson.loads(record.data)
                if slot is not None:
                    (tick,) = ticks_of([message])
                    waiting.setdefault(tick, [None] * len(CHANNELS))[slot] = message
                elif of_bodies and bodies is not None:
                    bodies.take(message)
                elif events is not None:
                    events.append(message)
            except ValueError as error:  # orjson's and ChannelError are both of this type
                raise LogError(f"{self.path}: a message on {topic} is not what it should be: {error}") from None

    def _complete(self, waiting: dict[int, list[dict[str, Any] | None]]) -> np.ndarray:
        """Take the ticks of which every channel's message has come."""
        ticks = [tick for tick, parts in waiting.items() if None not in parts]
        records = np.zeros(len(ticks), dtype=RECORD)
        rows = [waiting.pop(tick) for tick in ticks]
        if not ticks:
            return records
        for slot, channel in enumerate(CHANNELS):
            messages: list[dict[str, Any]] = [row[slot] for row in rows]  # type: ignore[misc]
            try:
                channel.decode(messages, records)
            except ChannelError as error:
                span = f"ticks {ticks[0]} to {ticks[-1]}"
                raise LogError(f"{self.path}: a message on {channel.topic} in {span} is not valid: {error}") from None
        return records

    def _with_bodies(self, records: np.ndarray, bodies: _Bodies) -> np.ndarray:
        """Put the states of bodies behind records."""
        whole = np.zeros(len(records), self.record_type)
        for name in RECORD.names or ():
            whole[name] = records[name]
        try:
            bodies.fill(records["tick"].tolist(), whole["bodies"])
        except ChannelError as error:
            span = f"ticks {records['tick'][0]} to {records['tick'][-1]}"
            raise LogError(f"{self.path}: a message on {BODIES_TOPIC} in {span} is not valid: {error}") from None
        return whole


class _Bodies:
    """States of bodies, from the messages that tell what changed."""

    def __init__(self, body_ids: tuple[int, ...]):
        self._rows = np.full(body_ids[-1] + 1, -1)
        self._rows[list(body_ids)] = np.arange(len(body_ids))
        self._now = np.zeros(len(body_ids), BODY_SAMPLE)
        self._now.view(np.float64)[:] = np.nan  # what has not been told is not known
        self._waiting: list[dict[str, Any]] = []

    def take(self, message: dict[str, Any]) -> None:
        """Keep a parsed message until its tick comes; raises ChannelError when it has none."""
        ticks_of([message])
        self._waiting.append(message)

    def fill(self, ticks: list[int], states: np.ndarray) -> None:
        """Write the states (m, n) BODY_SAMPLE after m ticks, each as its message or the last one before tells."""
        counts, changes = decode_bodies(self._waiting)
        inside = (changes["body_id"] >= 0) & (changes["body_id"] < len(self._rows))
        rows = np.where(inside, self._rows[np.where(inside, changes["body_id"], 0)], -1)
        if (rows < 0).any():
            raise ChannelError("a body_id is not of a body that moves")
        spans: dict[int, tuple[int, int]] = {}
        end = 0
        for message, count in zip(self._waiting, counts.tolist(), strict=True):
            spans[message["tick"]] = (end, end + count)
            end += count
        self._waiting = []
        now = self._now
        for row, tick in enumerate(ticks):
            start, end = spans.get(tick, (0, 0))
            if end > start:
                for name in BODY_SAMPLE.names or ():
                    now[name][rows[start:end]] = changes[name][start:end]
            states[row] = now


class BodyStates:
    """States of the bodies that move, a row for each record of a log; read from the file when asked for."""

    def __init__(self, log: Log):
        self._log = log

    def __len__(self) -> int:
        return len(self._log.records)

    @property
    def ids(self) -> tuple[int, ...]:
        """Body ids by column."""
        return self._log.body_ids

    @property
    def every(self) -> int:
        """Ticks per state that was written: those whose number it divides have theirs, others the one before."""
        return self._log.bodies_every

    def __getitem__(self, rows: int | slice) -> np.ndarray:
        """(n,) BODY_SAMPLE of one record, (m, n) of several; 104 bytes per body and record."""
        chosen = range(len(self))[rows]
        if isinstance(chosen, int):
            return self._span(chosen, chosen + 1)[0]
        if len(chosen) == 0:
            return np.zeros((0, len(self.ids)), BODY_SAMPLE)
        first = min(chosen)
        return self._span(first, max(chosen) + 1)[np.array(chosen) - first]

    def _span(self, first: int, after: int) -> np.ndarray:
        log = self._log
        wanted = log.records[first:after]
        states = np.zeros((after - first, len(log.body_ids)), BODY_SAMPLE)
        if not log.body_ids:
            return states
        done = 0
        for batch in LogReader.batches(log, from_ns=int(message_times_ns(wanted[:1], log.wall_offset_ns)[0])):
            found = batch["bodies"][np.isin(batch["tick"], wanted["tick"])]
            states[done : done + len(found)] = found
            done += len(found)
            if done == len(wanted):
                break
        return states


class Log(LogReader):
    """A log read whole (about 3 kB of memory per tick; states of bodies stay in the file)."""

    def __init__(self, path: str | os.PathLike[str]):
        super().__init__(path)
        self.events: list[dict[str, Any]] = []
        batches = list(self._batches(self.events, None, ()))
        self.records: np.ndarray = np.concatenate(batches) if batches else np.zeros(0, dtype=RECORD)
        """(n,) RECORD"""
        self.bodies = BodyStates(self)

    def batches(self, events: list[dict[str, Any]] | None = None, from_ns: int | None = None) -> Iterator[np.ndarray]:
        """Yield the records as one array, so that a Log can stand wherever a LogReader is taken.

        Where bodies move they come in pieces, from the file.
        """
        if self.body_ids:
            yield from super().batches(events, from_ns)
            return
        records = self.records
        if from_ns is not None:
            records = records[records["timing"]["started_ns"] + self.wall_offset_ns >= from_ns]
        if events is not None:
            events.extend(self.events)
        if len(records):
            yield records

    def gaps(self) -> list[tuple[int, int]]:
        """Return (last tick before, first tick after) of every place where ticks are missing."""
        ticks = self.records["tick"].astype(np.int64)
        where = np.flatnonzero(np.diff(ticks) != 1)
        return [(int(ticks[i]), int(ticks[i + 1])) for i in where]

    @property
    def times_s(self) -> np.ndarray:
        """(n,) start of each tick in seconds after the first one's."""
        started = self.records["timing"]["started_ns"]
        return (started - started[0]) * 1e-9 if len(started) else np.zeros(0)


def read_log(path: str | os.PathLike[str]) -> Log:
    """Read a whole log (:class:`LogReader` reads in pieces).

    A log that is cut off or damaged is read up to there; ``truncated`` and ``explanation`` then say so. Attachments are
    loaded when asked for (``log.model`` and so on), and raise LogError when they are missing. Raises LogError when
    ``path`` is not a log at all.
    """
    return Log(path)


def _fills(file: io.BufferedReader, kind: int, length: int) -> bool:
    """Do the lengths inside a record of the data, whose content `file` stands at, add up to the length of its frame?

    (An attachment has a checksum of its own.)
    """
    if kind == Opcode.METADATA:
        name_length = int.from_bytes(file.read(4), "little")
        rest = length - 8 - name_length
        if rest < 0:
            return False
        file.seek(name_length, os.SEEK_CUR)
        return file.read(4) == rest.to_bytes(4, "little")
    if kind == Opcode.CHUNK:
        head = file.read(_CHUNK_HEAD.size)
        if len(head) < _CHUNK_HEAD.size:
            return False
        name_length = _CHUNK_HEAD.unpack(head)[4]
        rest = length - _CHUNK_HEAD.size - name_length - 8
        if rest < 0:
            return False
        file.seek(name_length, os.SEEK_CUR)
        return file.read(8) == rest.to_bytes(8, "little")
    if kind == Opcode.MESSAGE_INDEX:
        head = file.read(_INDEX_HEAD.size)
        if len(head) < _INDEX_HEAD.size:
            return False
        entries = _INDEX_HEAD.unpack(head)[1]
        return entries == length - _INDEX_HEAD.size and entries % _INDEX_ENTRY == 0
    return kind != Opcode.DATA_END or length == 4


def _stream(data: bytes) -> ReadDataStream:
    return ReadDataStream(io.BytesIO(data))
