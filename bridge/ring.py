"""The shared ring: one fixed record per tick, written by the servo, read by any number of other processes.

One memory-mapped file::

    0        HEADER           who writes, how far, start gate, heartbeats, counters
    1024     lifeline         held by who watches over the servo
    2048     READER[16]       who reads, how far, records lost
    4096     snapshot areas   two, each with its own sequence word
    ...      sequence words   one u8 per slot
    ...      slots            one record each: RECORD, and behind it the states of the bodies that move

Record number n (counted from 0) lives in slot ``n % slots``. Its sequence word is ``2 n + 1`` while it is being written
and ``2 n + 2`` when it is complete, so a reader that copies a slot and finds ``2 n + 2`` before and after has an untorn
copy (a sequence lock). The writer never waits: a reader that falls behind by more than `slots` loses the oldest records
and is told how many.

Only the header page is writable for readers (they note there how far they are); the records are mapped read-only.
"""

import contextlib
import fcntl
import mmap
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from bridge.lifeline import Lifeline
from haptics.tables import BODY_SAMPLE, RECORD, RECORD_VERSION, record_type

MAGIC = 0x474E495248504148
"""``HAPHRING`` as little-endian bytes."""

DEFAULT_SLOTS = 4096
LEAST_SLOTS = 512
SLOTS_BYTES = 1 << 27
"""What all slots may take; scenes with so many bodies that they would take more get fewer slots."""
SNAPSHOT_CAPACITY = 256 * 1024
HEADER_BYTES = 4096
LIFELINE_AT = 1024
READERS_AT = 2048
MAX_READERS = 16

HEADER = np.dtype(
    [
        ("magic", "u8"),
        ("version", "u4"),  # RECORD_VERSION
        ("itemsize", "u4"),  # of a record
        ("slots", "u8"),
        ("snapshot_capacity", "u8"),  # bytes of one snapshot area, its three leading words excluded
        ("head", "u8"),  # records written so far
        ("writer_pid", "u8"),  # 0 until the servo has attached
        ("ready", "u8"),  # READY_* below
        ("go", "u8"),  # 1: all readers are attached, the servo may tick
        ("stop_request", "u8"),  # 1: ramp down and exit
        ("heartbeat_ns", "u8"),  # servo, CLOCK_MONOTONIC
        ("supervisor_pid", "u8"),
        ("supervisor_heartbeat_ns", "u8"),  # 0: nobody watches over the servo
        ("compiles", "u8"),  # kernels compiled since the first tick; 0 is the promise
        ("missed", "u8"),  # periods skipped, in total
        ("rejected", "u8"),  # messages refused, in total
        ("dropped", "u8"),  # renders that the client did not take, in total
        ("tick_ns_max", "u8"),  # longest start -> reply sent
        ("lateness_ns_max", "u8"),
        ("failed_tick", "u8"),  # tick whose kernel raised; 0 for none
        ("snapshots", "u8"),  # snapshots written so far
    ],
    align=True,
)

READER = np.dtype([("pid", "u8"), ("position", "u8"), ("lost", "u8"), ("heartbeat_ns", "u8")], align=True)

STARTING = 0
WARM = 1
"""Kernels are loaded; the servo waits for `go`."""
TICKING = 2
ENDED = 3

_WORD = {name: offset // 8 for name, (kind, offset, *_) in (HEADER.fields or {}).items() if kind == np.dtype("u8")}
_READER_WORDS = READER.itemsize // 8


class RingError(RuntimeError):
    """The shared file cannot be created or is not what it should be; the text is one sentence for the user."""


class NoSpace(RingError):
    """No room for the shared file, neither in /dev/shm nor at its path."""


class MemoryFence:
    """Full memory barrier between Python statements.

    Releasing and taking a lock orders the stores and loads around them on every processor; on x86 the hardware does so
    anyway for stores, and this costs some tens of ns.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def __call__(self) -> None:
        self._lock.release()
        self._lock.acquire()


def shared_memory_directory() -> Path | None:
    """/dev/shm when it can be used, else None."""
    path = Path("/dev/shm")
    return path if path.is_dir() and os.access(path, os.W_OK | os.X_OK) else None


def create_shared_file(path: str | os.PathLike[str], size: int, memory_name: str | None = None) -> None:
    """Create a zeroed file of `size` bytes whose room is already set aside; an older one at `path` is replaced.

    memory_name: when given and /dev/shm has room, the file lives there under this name and `path` is a link to it.
    Raises NoSpace when no place has room: now, instead of by SIGBUS at some later tick.
    """
    path = Path(path)
    remove_shared_file(path)
    tried = []
    memory = shared_memory_directory()
    if memory_name is not None and memory is not None:
        target = memory / memory_name
        with contextlib.suppress(FileNotFoundError):
            target.unlink()
        try:
            _allocate(target, size)
            path.symlink_to(target)
            return
        except OSError as error:
            tried.append(f"{memory}: {error.strerror}")
            with contextlib.suppress(FileNotFoundError):
                target.unlink()
    try:
        _allocate(path, size)
    except OSError as error:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        tried.append(f"{path.parent}: {error.strerror}")
        raise NoSpace(f"no room for {size / 1e6:.1f} MB of shared memory ({'; '.join(tried)})") from error


def remove_shared_file(path: str | os.PathLike[str]) -> None:
    """Remove a file made by `create_shared_file`, and what it links to; harmless when absent."""
    path = Path(path)
    if path.is_symlink():
        with contextlib.suppress(OSError):
            os.unlink(os.readlink(path))
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def _allocate(path: Path, size: int) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            block = bytes(1 << 16)
            left = size
            while left > 0:
                left -= os.write(descriptor, block[: min(left, len(block))])
    finally:
        os.close(descriptor)


def slots_for(bodies: int) -> int:
    """Slots of a ring for so many bodies that move: DEFAULT_SLOTS, or half of that as often as memory asks for it."""
    slots = DEFAULT_SLOTS
    while slots > LEAST_SLOTS and slots * record_type(bodies).itemsize > SLOTS_BYTES:
        slots //= 2
    return slots


class _Layout:
    def __init__(self, slots: int, itemsize: int, snapshot_capacity: int) -> None:
        page = mmap.ALLOCATIONGRANULARITY
        self.snapshot_stride = 24 + snapshot_capacity
        self.snapshots_at = max(page, HEADER_BYTES)
        self.sequences_at = _round_up(self.snapshots_at + 2 * self.snapshot_stride, 64)
        self.slots_at = _round_up(self.sequences_at + 8 * slots, 64)
        self.size = _round_up(self.slots_at + slots * itemsize, page)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


class _Header:
    """Attribute access to the words of the header page."""

    words: memoryview

    def __init__(self, words: memoryview) -> None:
        object.__setattr__(self, "words", words)

    def __getattr__(self, name: str) -> int:
        try:
            return self.words[_WORD[name]]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: int) -> None:
        self.words[_WORD[name]] = value


def offset_of(dtype: np.dtype, path: str) -> int:
    """Byte offset of the field `path` (``outer.inner``) in a structured dtype."""
    total = 0
    for name in path.split("."):
        dtype, offset = dtype.fields[name][:2]  # type: ignore[index]
        total += offset
    return total


def _type_of(itemsize: int) -> np.dtype | None:
    """The type of records of so many bytes, None when there is none."""
    bodies, rest = divmod(itemsize - RECORD.itemsize, BODY_SAMPLE.itemsize)
    return record_type(bodies) if bodies >= 0 and rest == 0 else None


def _check(memory: mmap.mmap, path: Path) -> tuple[np.void, np.dtype]:
    header = np.frombuffer(bytes(memory[: HEADER.itemsize]), HEADER)[0]
    if header["magic"] != MAGIC:
        raise RingError(f"{path} is not a ring of hapticd")
    itemsize = int(header["itemsize"])
    kind = _type_of(itemsize)
    if header["version"] != RECORD_VERSION or kind is None:
        raise RingError(
            f"{path} holds records of version {header['version']} ({itemsize} bytes); this program reads "
            f"version {RECORD_VERSION} ({RECORD.itemsize} bytes, and {BODY_SAMPLE.itemsize} per body that moves)"
        )
    return header, kind


class RingWriter:
    """The one writer. Creating it makes the file; `attach` takes over a file that the supervisor has made."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        slots: int = DEFAULT_SLOTS,
        *,
        bodies: int = 0,
        snapshot_capacity: int = SNAPSHOT_CAPACITY,
        memory_name: str | None = None,
    ) -> None:
        """slots: records kept, at least 2; bodies: how many move. memory_name: see `create_shared_file`.

        Raises NoSpace.
        """
        if slots < 2:
            raise ValueError(f"a ring needs at least 2 slots, got {slots}")
        snapshot_capacity = _round_up(snapshot_capacity, 8)
        itemsize = record_type(bodies).itemsize
        create_shared_file(path, _Layout(slots, itemsize, snapshot_capacity).size, memory_name)
        header = np.zeros(1, HEADER)
        header["version"] = RECORD_VERSION
        header["itemsize"] = itemsize
        header["slots"] = slots
        header["snapshot_capacity"] = snapshot_capacity
        header["magic"] = MAGIC
        with open(path, "r+b") as file:
            file.write(header.tobytes())
        self._open(Path(path))

    @classmethod
    def attach(cls, path: str | os.PathLike[str]) -> "RingWriter":
        """Open an existing ring for writing; RingError when it is not one of this version."""
        writer = cls.__new__(cls)
        writer._open(Path(path))
        return writer

    def _open(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "r+b") as file:
                self._mmap = mmap.mmap(file.fileno(), 0)
        except (OSError, ValueError) as error:
            raise RingError(f"cannot open the ring {path}: {error}") from error
        header, self.record_type = _check(self._mmap, path)
        self.slots = int(header["slots"])
        self.snapshot_capacity = int(header["snapshot_capacity"])
        layout = _Layout(self.slots, self.record_type.itemsize, self.snapshot_capacity)
        self._bytes = memoryview(self._mmap)
        self.lifeline = Lifeline(self._mmap, LIFELINE_AT)
        self.header: Any = _Header(self._bytes[:HEADER_BYTES].cast("Q"))
        self._words: memoryview = self.header.words
        self._sequences = self._bytes[layout.sequences_at : layout.sequences_at + 8 * self.slots].cast("Q")
        self._slots_at = layout.slots_at
        self._snapshots_at = layout.snapshots_at
        self._snapshot_stride = layout.snapshot_stride
        self._fence = MemoryFence()
        self._count = self.header.head
        self._slot = self._count % self.slots
        self._source: np.ndarray | None = None
        self._source_bytes = memoryview(b"")

    def claim(self) -> None:
        """Note this process as the writer, and touch every page now so that no tick pays for a page fault."""
        self.header.writer_pid = os.getpid()
        for at in range(self._snapshots_at, len(self._bytes), mmap.PAGESIZE):
            self._bytes[at] = self._bytes[at]

    @property
    def count(self) -> int:
        """Records written so far."""
        return self._count

    def write(self, record: np.ndarray) -> None:
        """Append `record`, a contiguous (1,) array of `record_type`. Never waits; some microseconds at most."""
        size = self.record_type.itemsize
        if record is not self._source:
            if record.dtype != self.record_type or record.nbytes != size or not record.flags.c_contiguous:
                raise ValueError(f"a contiguous array of exactly one record of this ring ({size} bytes) is needed")
            self._source_bytes = record.reshape(1).view(np.uint8).data
            self._source = record
        count = self._count
        slot = self._slot
        start = self._slots_at + slot * size
        self._sequences[slot] = 2 * count + 1
        self._fence()
        self._bytes[start : start + size] = self._source_bytes
        self._fence()
        count += 1
        self._sequences[slot] = 2 * count
        self._fence()
        self._words[_HEAD] = count
        self._count = count
        slot += 1
        self._slot = 0 if slot == self.slots else slot

    def last(self) -> np.void | None:
        """Copy of the record written last, None before the first."""
        if self._count == 0:
            return None
        size = self.record_type.itemsize
        start = self._slots_at + (self._count - 1) % self.slots * size
        return np.frombuffer(bytes(self._bytes[start : start + size]), self.record_type)[0]

    def put_snapshot(self, tick: int, data: Any) -> None:
        """Keep `data` (bytes-like, at most `snapshot_capacity`) as the state after `tick`; readers get it whole."""
        source = memoryview(data).cast("B")
        if source.nbytes > self.snapshot_capacity:
            raise ValueError(f"snapshot of {source.nbytes} bytes; the ring has room for {self.snapshot_capacity}")
        number = self.header.snapshots
        at = self._snapshots_at + (number % 2) * self._snapshot_stride
        words = self._bytes[at : at + 24].cast("Q")
        words[0] = 2 * number + 1
        self._fence()
        words[1] = tick
        words[2] = source.nbytes
        self._bytes[at + 24 : at + 24 + source.nbytes] = source
        self._fence()
        words[0] = 2 * number + 2
        self._fence()
        self.header.snapshots = number + 1

    def readers(self) -> list[dict[str, int]]:
        """Registered readers: pid, position, lost, silent_ns (since they last read)."""
        return _reader_rows(self._words)

    def close(self) -> None:
        """Unmap; the file stays. A lifeline that is held here is let go."""
        self.lifeline.close()
        for view in (self._words, self._sequences, self._source_bytes, self._bytes):
            view.release()
        self._source = None
        self._mmap.close()


_HEAD = _WORD["head"]


class RingReader:
    """One of many readers. Starts at the oldest record still there; `seek_newest` and `seek` move it."""

    def __init__(self, path: str | os.PathLike[str], *, register: bool = True) -> None:
        """register: note pid and progress in the ring's header, where the supervisor and `hapticd status` see them.

        Raises RingError when the file is not a ring of this version.
        """
        self.path = Path(path)
        writable = register and os.access(path, os.W_OK)
        try:
            with open(path, "r+b" if writable else "rb") as file:
                self._mmap = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                page = max(mmap.ALLOCATIONGRANULARITY, HEADER_BYTES)
                access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
                self._page = mmap.mmap(file.fileno(), page, access=access)
                header, self.record_type = _check(self._mmap, self.path)
                self._words = memoryview(self._page)[:HEADER_BYTES].cast("Q")
                self._row = _claim_row(file.fileno(), self._words) if writable else None
        except (OSError, ValueError) as error:
            raise RingError(f"cannot open the ring {path}: {error}") from error
        self.header: Any = _Header(self._words)
        self.slots = int(header["slots"])
        itemsize = self.record_type.itemsize
        layout = _Layout(self.slots, itemsize, int(header["snapshot_capacity"]))
        self._layout = layout
        self._sequences = np.frombuffer(self._mmap, "u8", self.slots, layout.sequences_at)
        self._records = np.frombuffer(self._mmap, self.record_type, self.slots, layout.slots_at)
        self._raw = self._records.view(np.uint8).reshape(self.slots, itemsize)
        self._fence = MemoryFence()
        self.lost = 0
        self.position = 0
        self.seek_oldest()

    def seek_oldest(self) -> None:
        """Go to the oldest record that will not be overwritten at once (an eighth of the ring is left as a margin)."""
        self._move(max(0, self.header.head - self.slots + self.slots // 8))

    def seek_newest(self) -> None:
        """Skip everything written so far."""
        self._move(self.header.head)

    def seek(self, tick: int) -> None:
        """Go to the record of `tick`, or to the oldest one still there (ticks follow one another in the ring)."""
        newest = self.newest()
        if newest is None:
            self._move(0)
            return
        head = self.header.head
        wanted = head - 1 - (int(newest["tick"]) - tick)
        self._move(min(max(wanted, head - self.slots, 0), head))

    def _move(self, position: int) -> None:
        self.position = position
        self._note()

    def _note(self) -> None:
        if self._row is not None:
            words = self._words
            words[self._row + 1] = self.position
            words[self._row + 2] = self.lost
            words[self._row + 3] = time.monotonic_ns()

    def read(self, maximum: int = 256) -> tuple[np.ndarray, int]:
        """Next records, oldest first, as a copied (n,) array of `record_type` (n <= maximum, 0 when there is none), and
        how many records were overwritten before this reader came to them (they precede the returned ones)."""
        head = self.header.head
        if head < self.position:
            self.position = 0
        lost = max(0, head - self.slots - self.position)
        first = self.position + lost
        count = min(head - first, maximum)
        copy, good = self._copy(first, count)
        if not good.all():
            # The writer came round while we copied. It takes the oldest slots first, so what is spoilt leads.
            spoilt = int(np.flatnonzero(~good)[-1]) + 1
            lost += spoilt
            copy = copy[spoilt:]
        self.position = first + count
        self.lost += lost
        self._note()
        return copy, lost

    def _copy(self, first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Records number first .. first + count and whether each one is whole."""
        slot = first % self.slots
        until = min(count, self.slots - slot)
        wanted = 2 * np.arange(first, first + count, dtype=np.uint64) + np.uint64(2)
        copy = np.empty((count, self.record_type.itemsize), np.uint8)
        before = self._sequence_words(slot, until, count)
        self._fence()
        copy[:until] = self._raw[slot : slot + until]
        copy[until:] = self._raw[: count - until]
        self._fence()
        after = self._sequence_words(slot, until, count)
        return copy.reshape(-1).view(self.record_type), (before == wanted) & (after == wanted)

    def _sequence_words(self, slot: int, until: int, count: int) -> np.ndarray:
        return np.concatenate((self._sequences[slot : slot + until], self._sequences[: count - until]))

    def newest(self) -> np.void | None:
        """Copy of the newest record, None while there is none; the position of this reader does not move."""
        for _ in range(1000):
            head = self.header.head
            if head == 0:
                return None
            copy, good = self._copy(head - 1, 1)
            if good[0]:
                return copy[0]
        raise RingError(f"the newest record of {self.path} cannot be read: the writer laps this reader without end")

    def snapshot(self) -> tuple[int, np.ndarray] | None:
        """Newest state snapshot as (tick, (n,) uint8), None while there is none (see `RingWriter.put_snapshot`)."""
        for _ in range(1000):
            number = self.header.snapshots
            if number == 0:
                return None
            at = self._layout.snapshots_at + ((number - 1) % 2) * self._layout.snapshot_stride
            words = np.frombuffer(self._mmap, "u8", 3, at)
            sequence, tick, size = (int(word) for word in words)
            if sequence != 2 * number:
                continue
            self._fence()
            data = np.frombuffer(self._mmap, "u1", size, at + 24).copy()
            self._fence()
            if int(words[0]) == sequence:
                return tick, data
        raise RingError(f"no whole snapshot could be read from {self.path}")

    def writer_alive(self) -> bool:
        """True while the process that writes this ring exists and has not ended in order."""
        pid = self.header.writer_pid
        return pid != 0 and self.header.ready != ENDED and process_exists(pid)

    def readers(self) -> list[dict[str, int]]:
        """Registered readers: pid, position, lost, silent_ns (since they last read)."""
        return _reader_rows(self._words)

    def close(self) -> None:
        """Give up the row in the header and unmap; arrays that were handed out stay valid (they are copies)."""
        if self._row is not None and self._words[self._row] == os.getpid():
            self._words[self._row] = 0
        self._row = None
        self._words.release()
        self._page.close()
        del self._sequences, self._records, self._raw
        self._mmap.close()

    def __enter__(self) -> "RingReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _claim_row(descriptor: int, words: memoryview) -> int | None:
    """Word index of a free reader row, now ours; None when all are taken (the reader works without one)."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        for number in range(MAX_READERS):
            row = READERS_AT // 8 + number * _READER_WORDS
            pid = words[row]
            if pid == 0 or not process_exists(pid):
                words[row + 1] = words[row + 2] = words[row + 3] = 0
                words[row] = os.getpid()
                return row
        return None
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _reader_rows(words: memoryview) -> list[dict[str, int]]:
    now = time.monotonic_ns()
    rows = []
    for number in range(MAX_READERS):
        row = READERS_AT // 8 + number * _READER_WORDS
        pid, position, lost, heartbeat = words[row : row + 4]
        if pid and process_exists(pid):
            rows.append({"pid": pid, "position": position, "lost": lost, "silent_ns": max(0, now - heartbeat)})
    return rows


def process_exists(pid: int) -> bool:
    """True when a process of this id exists (also when it belongs to somebody else)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
