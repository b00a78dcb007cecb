"""The recorder process: ``python -m bridge.log.recorder RUNTIME_DIR FILE``. Reads the ring, writes an MCAP file.

It can lag, die or fill the disk without the servo noticing. Every 40 ms it writes what has come as one finished chunk,
so that a crash of the recorder loses no more than that and what arrived since.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import orjson
from mcap.writer import CompressionType, IndexType, Writer

from bridge.log.channels import (
    BODIES_METADATA,
    BODIES_TOPIC,
    BODY_POSES_TOPIC,
    CHANNELS,
    DEVICE_POSE_TOPIC,
    EVENT_SCHEMA,
    EVENTS_TOPIC,
    LOG_VERSION,
    POSE_SCHEMA,
    POSES_SCHEMA,
    PROFILE,
    PROXY_POSE_TOPIC,
    encode_body_poses,
    encode_poses,
    message_times_ns,
)
from bridge.log.codec import BODIES_SCHEMA, encode_bodies
from bridge.publisher import event_messages
from bridge.schema import PROTOCOL_VERSION
from haptics.tables import RECORD_VERSION

PERIOD_S = 0.04
"""Between two chunks: what a crash may lose, besides the time of one write."""

BATCH = 256
BODY_STATES = 32
"""Body states written per tick on the average, where more bodies move: then not every tick has theirs."""

RETRY_S = 0.5
RESERVE_BYTES = 1 << 20
"""Free space, on top of the attachments, at which a new file is begun after the disk was full."""

QUIET_S = 0.5
STOP_LIMIT_S = 3.0

ATTACHED_FILES = ("config.json", "card.json", "assembly.json", "settings.npy", "budget.npy", "model.npz")
"""Copied from the runtime directory into the log, so that it can be executed again from itself alone."""

_MEDIA_TYPES = {".json": "application/json", ".npy": "application/x-npy", ".npz": "application/zip"}

Notify = Callable[[str, str, dict[str, Any]], None]
"""code, one sentence, further facts"""


class Ring(Protocol):
    """What the recorder needs of the ring (:class:`bridge.ring.RingReader`)."""

    def read(self, limit: int) -> tuple[np.ndarray, int]: ...

    def snapshot(self) -> tuple[int, Any] | None: ...


class _File:
    """Output that reaches the disk only in whole flushes: when one fails, the file is cut back to the last good one."""

    def __init__(self, path: Path):
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._written = 0
        self._buffer = bytearray()

    def write(self, data: bytes) -> int:
        self._buffer += data
        return len(data)

    def tell(self) -> int:
        return self._written + len(self._buffer)

    def flush(self) -> None:
        view = memoryview(self._buffer)
        done = 0
        try:
            while done < len(view):
                done += os.write(self._descriptor, view[done:])
        except OSError:
            with contextlib.suppress(OSError):  # a torn end is readable too, only less tidy
                os.ftruncate(self._descriptor, self._written)
            raise
        finally:
            view.release()
        self._written += done
        self._buffer.clear()

    def close(self) -> None:
        os.close(self._descriptor)


class LogFile:
    """One MCAP file being written. Every method may raise OSError; what was flushed before stays readable."""

    def __init__(
        self, path: Path, attachments: dict[str, bytes], metadata: dict[str, str], body_ids: Sequence[int] = ()
    ):
        """Create ``path`` (FileExistsError when it is there) and write attachments and metadata.

        ``body_ids``: of the bodies that move, whose states stand behind each record.
        """
        self.path = path
        self.unflushed = 0
        """Records handed over since the last flush that succeeded."""
        self.newest_ns: int | None = None
        """Wall-clock time of the newest record handed over, ns since 1970."""
        self._file = _File(path)
        self._body_ids = tuple(body_ids)
        self._every = ticks_per_state(len(self._body_ids))
        self._wall_offset_ns = wall_offset_ns()
        # Chunks end by flush alone: a tick's messages never part.
        self._writer = Writer(
            self._file,  # type: ignore[arg-type]
            chunk_size=1 << 40,
            compression=CompressionType.ZSTD,
            index_types=IndexType.ALL,
        )
        try:
            self._writer.start(profile=PROFILE, library=f"hapticd {_version('hapticd')}")
            metadata = {
                "log_version": str(LOG_VERSION),
                "record_version": str(RECORD_VERSION),
                "wall_offset_ns": str(self._wall_offset_ns),
                "created_ns": str(time.time_ns()),
                **metadata,
            }
            self._writer.add_metadata(PROFILE, metadata)
            if body_ids:
                self._writer.add_metadata(BODIES_METADATA, self._bodies_metadata())
            for name, data in attachments.items():
                self.attach(name, data)
            self._channels = [self._register(c.topic, c.schema_name, c.schema()) for c in CHANNELS]
            self._events = self._register(EVENTS_TOPIC, "hapticd.Event", EVENT_SCHEMA)
            pose_schema = self._writer.register_schema("foxglove.PoseInFrame", "jsonschema", orjson.dumps(POSE_SCHEMA))
            self._poses = [
                self._writer.register_channel(topic, "json", pose_schema)
                for topic in (DEVICE_POSE_TOPIC, PROXY_POSE_TOPIC)
            ]
            if body_ids:
                every = {"every": str(self._every)}
                self._bodies = self._register(BODIES_TOPIC, "hapticd.Bodies", BODIES_SCHEMA, every)
                self._body_poses = self._register(BODY_POSES_TOPIC, "foxglove.PosesInFrame", POSES_SCHEMA)
            self.flush()
        except OSError:
            self.abandon()
            path.unlink(missing_ok=True)  # without its attachments it is of no use
            raise

    def _bodies_metadata(self) -> dict[str, str]:
        return {"ids": ",".join(map(str, self._body_ids)), "every": str(self._every)}

    def _register(self, topic: str, name: str, schema: dict[str, Any], metadata: dict[str, str] | None = None) -> int:
        schema_id = self._writer.register_schema(name, "jsonschema", orjson.dumps(schema))
        return self._writer.register_channel(topic, "json", schema_id, metadata or {})

    def attach(self, name: str, data: bytes) -> None:
        """Add an attachment; it reaches the disk with the next flush."""
        now = time.time_ns()
        self._writer.add_attachment(
            now, now, name, _MEDIA_TYPES.get(Path(name).suffix, "application/octet-stream"), data
        )

    def write(self, records: np.ndarray) -> None:
        """Append records and the events in them; they reach the disk with the next flush.

        ``records``: (n,) of the record type with as many bodies as there are ids.
        """
        self.unflushed += len(records)
        columns = [channel.encode(records) for channel in CHANNELS]
        poses = [encode_poses(records, which, self._wall_offset_ns) for which in ("device", "proxy")]
        ticks = records["tick"].tolist()
        times = message_times_ns(records, self._wall_offset_ns).tolist()
        events = {event["tick"]: event for event in event_messages(records)}
        if times:
            self.newest_ns = times[-1]
        bodies = self._encode_bodies(records, times) if self._body_ids else {}
        add = self._writer.add_message
        for row, (tick, now) in enumerate(zip(ticks, times, strict=True)):
            number = tick & 0xFFFFFFFF
            for channel, column in zip(self._channels, columns, strict=True):
                add(channel, now, column[row], now, number)
            for channel, drawn in zip(self._poses, poses, strict=True):
                pose = drawn[row]
                if pose is not None:
                    add(channel, now, pose, now, number)
            for body_channel, message in bodies.get(row, ()):
                add(body_channel, now, message, now, number)
            event = events.get(tick)
            if event is not None:
                add(self._events, now, orjson.dumps(event), now, event["seq"] & 0xFFFFFFFF)

    def _encode_bodies(self, records: np.ndarray, times: list[int]) -> dict[int, list[tuple[int, bytes]]]:
        """Messages about bodies by row: (channel, message); all bodies with the first record, and a pose of each."""
        sampled = records["tick"] % np.uint64(self._every) == 0
        sampled[:1] = True
        rows = np.flatnonzero(sampled)
        states = np.ascontiguousarray(records["bodies"][rows])
        messages = encode_bodies(records["tick"][rows], states, self._body_ids)
        found = {row: [(self._bodies, message)] for row, message in zip(rows.tolist(), messages, strict=True)}
        poses = encode_body_poses(states[0], times[0]) if times else None
        if poses is not None:
            found[0].append((self._body_poses, poses))
        return found

    def write_event(self, event: dict[str, Any]) -> None:
        """Append one event that is not a state change, at the time of the newest record."""
        now = time.time_ns() if self.newest_ns is None else self.newest_ns
        self._writer.add_message(self._events, now, orjson.dumps(event), now, event["seq"] & 0xFFFFFFFF)

    def flush(self) -> None:
        """Finish the chunk and write everything to the file."""
        self._writer.flush()
        self.unflushed = 0

    def finish(self) -> None:
        """Write the closing part with the index and close the file."""
        try:
            self._writer.finish()
            self._file.flush()
            self.unflushed = 0
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the file as it is; a reader reads it up to its last finished chunk."""
        self._file.close()


class Recorder:
    """Moves records from a ring to a file, and to a further file when the first one cannot be written any more."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        attachments: dict[str, bytes],
        notify: Notify = lambda code, text, data: None,
        metadata: dict[str, str] | None = None,
        body_ids: Sequence[int] = (),
    ):
        """Create the first file, FILE or the first free FILE-2, FILE-3... Raises OSError when that is not possible.

        ``body_ids``: of the bodies that move, whose states stand behind each record of the ring.
        """
        self.path = Path(path)
        self.logged = 0
        """Records on their way into a file."""
        self.unlogged = 0
        """Records that were read but could not be written."""
        self.lost = 0
        """Records that the ring overwrote before they were read."""
        self.parts: list[Path] = []
        self._ring: Ring | None = None
        self._attachments = attachments
        self._notify = notify
        self._metadata = metadata or {}
        self._body_ids = tuple(body_ids)
        self._event_seq = 0
        self._pending: list[dict[str, Any]] = []
        self._last_tick = 0
        self._snapshot_wanted = True
        self._first_tick: int | None = None
        self._retry_at = 0.0
        self._outage = 0
        self._number = 1
        self._earliest: tuple[int, Any] | None = None
        self._file: LogFile | None = self._open(self._next_path())

    def attach(self, ring: Ring) -> None:
        """Read from ``ring`` from now on. The file is open: whoever waits for this reader can let the servo go."""
        self._ring = ring
        # The ring keeps only the newest one: this one is gone if the first ticks are read late.
        self._earliest = ring.snapshot()
        self._tell("log_started", f"recording to {self.parts[0]}", {"file": str(self.parts[0])})

    def _next_path(self) -> Path:
        """The first of FILE, FILE-2, FILE-3 ... that is not there yet: a log is never overwritten."""
        while True:
            suffix = "" if self._number == 1 else f"-{self._number}"
            path = self.path.with_name(f"{self.path.stem}{suffix}{self.path.suffix}")
            if not os.path.lexists(path):
                return path
            self._number += 1

    def _open(self, path: Path) -> LogFile:
        file = LogFile(path, self._attachments, {**self._metadata, "part": str(self._number)}, self._body_ids)
        self.parts.append(path)
        # Whatever is logged from here on can only be executed again from a snapshot that is not older than it.
        self._snapshot_wanted, self._first_tick = True, None
        return file

    def step(self) -> int:
        """Write everything that the ring holds, a chunk per batch; returns the number of records read."""
        assert self._ring is not None
        if self._file is None and time.monotonic() >= self._retry_at:
            self._resume()
        total = 0
        while True:
            records, lost = self._ring.read(BATCH)
            if lost:
                self._report_lost(lost, records)
            if not len(records):
                break
            total += len(records)
            self._last_tick = int(records["tick"][-1])
            if self._first_tick is None:
                self._first_tick = int(records["tick"][0])
            if self._file is None:
                self._outage += len(records)
                self.unlogged += len(records)
            else:
                self._file.write(records)
                self.logged += len(records)
            self._flush()
            # What arrived while this was written is the next step's: else a slow machine would stay here.
            if len(records) < BATCH:
                break
        self._flush()
        return total

    def _flush(self) -> None:
        if self._file is None:
            return
        try:
            self._take_snapshot()
            told = len(self._pending) if self._file.newest_ns is not None else 0
            for event in self._pending[:told]:
                self._file.write_event(event)
            self._file.flush()
            del self._pending[:told]
        except OSError as error:
            self._fail(error)

    def _take_snapshot(self) -> None:
        """Attach the ring's snapshot as soon as it is one from which the records of this file can be executed again."""
        if not self._snapshot_wanted or self._first_tick is None or self._file is None or self._ring is None:
            return
        for found in (self._earliest, self._ring.snapshot()):
            if found is not None and found[0] + 1 >= self._first_tick:
                self._file.attach(f"snapshot-{found[0]}.bin", bytes(found[1]))
                self._snapshot_wanted, self._earliest = False, None
                return

    def _report_lost(self, lost: int, records: np.ndarray) -> None:
        self.lost += lost
        upto = int(records["tick"][0]) if len(records) else self._last_tick + lost + 1
        self._snapshot_wanted, self._first_tick = True, None
        self._tell(
            "records_lost",
            f"the recorder was too slow: {lost} records before tick {upto} are missing from the log",
            {"lost": lost, "tick_after": upto, "lost_total": self.lost},
        )

    def _fail(self, error: OSError) -> None:
        """Give up the present file: what was flushed stays, and a new file is begun when it can be."""
        assert self._file is not None
        missing = self._file.unflushed
        self.logged -= missing
        self.unlogged += missing
        self._outage = missing
        with contextlib.suppress(OSError):
            self._file.abandon()
        path, self._file = self._file.path, None
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        # A file that reached its largest size says nothing about the disk: go on in the next one at once.
        self._retry_at = time.monotonic() + (0.0 if error.errno == errno.EFBIG else RETRY_S)
        code = "disk_full" if full else "log_failed"
        why = "the disk is full" if full else f"writing failed ({error.strerror or error})"
        self._tell(
            code,
            f"{why}: {path} ends before tick {self._last_tick - missing + 1}; ticking goes on, "
            "and a further file begins when there is room again",
            {"file": str(path), "errno": error.errno or 0},
        )

    def _resume(self) -> None:
        self._retry_at = time.monotonic() + RETRY_S
        path = self._next_path()
        try:
            room = os.statvfs(path.parent)
            if room.f_bavail * room.f_frsize < sum(map(len, self._attachments.values())) + RESERVE_BYTES:
                return
            self._file = self._open(path)
        except OSError:
            return
        self._tell(
            "log_resumed",
            f"the log goes on in {path} after {self._outage} ticks that were not logged",
            {"file": str(path), "unlogged": self._outage, "unlogged_total": self.unlogged},
        )
        self._outage = 0

    def _tell(self, code: str, text: str, data: dict[str, Any]) -> None:
        self._event_seq += 1
        event = {
            **data,
            "v": PROTOCOL_VERSION,
            "source": "recorder",
            "seq": self._event_seq,
            "tick": self._last_tick,
            "t": time.monotonic_ns(),
            "code": code,
            "text": text,
        }
        self._pending.append(event)
        self._notify(code, text, data)

    def finish(self) -> bool:
        """Drain the ring and close the file; returns whether every record that the ring gave is in a finished file."""
        self.step()
        if self._file is not None:
            try:
                for event in self._pending:
                    self._file.write_event(event)
                self._file.finish()
            except OSError as error:
                self._notify("log_failed", f"{self._file.path} could not be finished: {error.strerror or error}", {})
                return False
        return self._file is not None and self.unlogged == 0 and self.lost == 0


class _Signals:
    """SIGTERM: drain and finish now. SIGINT (Ctrl-C reaches the whole group): finish when the servo has gone quiet."""

    def __init__(self) -> None:
        self.terminate = False
        self.interrupted_at: float | None = None
        signal.signal(signal.SIGTERM, self._on_terminate)
        signal.signal(signal.SIGINT, self._on_interrupt)

    def _on_terminate(self, *_: object) -> None:
        self.terminate = True

    def _on_interrupt(self, *_: object) -> None:
        self.interrupted_at = self.interrupted_at or time.monotonic()


def run(recorder: Recorder, writer_alive: Callable[[], bool]) -> bool:
    """Record until a signal says to stop, or until supervisor and servo are both gone.

    ``writer_alive`` tells whether the servo still runs. Returns whether the log is whole (:meth:`Recorder.finish`).
    """
    signals = _Signals()
    parent = os.getppid()
    quiet_since = time.monotonic()
    due = time.monotonic()
    while not signals.terminate:
        now = time.monotonic()
        if recorder.step():
            quiet_since = now
        quiet = now - quiet_since > QUIET_S
        interrupted = signals.interrupted_at
        if interrupted is not None and (quiet or now - interrupted > STOP_LIMIT_S):
            break
        if quiet and os.getppid() != parent and not writer_alive():
            break
        # After a long write the lost periods are not made up for; the next one starts anew.
        due = max(due + PERIOD_S, time.monotonic())
        time.sleep(max(due - time.monotonic(), 0.0))
    return recorder.finish()


def ticks_per_state(bodies: int) -> int:
    """Every how many ticks the states of so many bodies are written; 1: in each."""
    return max(1, -(-bodies // BODY_STATES))


def wall_offset_ns() -> int:
    """Return what to add to the monotonic clock to get wall-clock ns; the closest of three readings."""
    best = (1 << 62, 0)
    for _ in range(3):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        best = min(best, (after - before, wall - (before + after) // 2))
    return best[1]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def describe_machine() -> dict[str, Any]:
    """Return processor, system and versions of what computes and writes, for the log."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    packages = ("hapticd", "numpy", "numba", "llvmlite", "pyzmq", "msgpack", "mcap", "orjson")
    return {
        "processor": processor,
        "architecture": platform.machine(),
        "processors": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {package: _version(package) for package in packages},
    }


def collect_attachments(directory: str | os.PathLike[str]) -> dict[str, bytes]:
    """Read what a log carries besides records from a runtime directory: its files, their hashes and the machine.

    Raises FileNotFoundError when one of the files is not there.
    """
    found = {name: (Path(directory) / name).read_bytes() for name in ATTACHED_FILES}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
    found["hashes.json"] = orjson.dumps({"sha256": hashes}, option=orjson.OPT_INDENT_2)
    found["machine.json"] = orjson.dumps(describe_machine(), option=orjson.OPT_INDENT_2)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the recorder process: ``python -m bridge.log.recorder RUNTIME_DIR FILE``; returns its exit code.

    It is attached (see the readers of the ring) as soon as the file is open.
    """
    from bridge.exit_codes import ExitCode
    from bridge.model_file import ModelFileError, load_moving_bodies
    from bridge.notices import Notifier
    from bridge.ring import RingError, RingReader
    from bridge.runtime import RuntimeDirectory

    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 2:
        print("usage: python -m bridge.log.recorder RUNTIME_DIR FILE", file=sys.stderr)
        return ExitCode.USAGE
    runtime, path = RuntimeDirectory.at(arguments[0]), Path(arguments[1])
    notifier = Notifier(runtime)

    def notify(code: str, text: str, data: dict[str, Any]) -> None:
        print(f"recorder: {text}", file=sys.stderr, flush=True)
        notifier.send("recorder", code, text, **data)

    try:
        attachments = collect_attachments(runtime.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        moving = load_moving_bodies(runtime.model_path)
        recorder = Recorder(path, attachments, notify, {"daemon": runtime.name}, moving)
        ring = RingReader(runtime.ring_path)
        recorder.attach(ring)
    except (OSError, RingError, ModelFileError) as error:
        print(f"recorder: cannot write the log {path}: {error}", file=sys.stderr, flush=True)
        return ExitCode.FAILURE
    whole = run(recorder, ring.writer_alive)
    ring.close()
    notifier.close()
    return ExitCode.OK if whole else ExitCode.FAILURE


if __name__ == "__main__":
    sys.exit(main())
