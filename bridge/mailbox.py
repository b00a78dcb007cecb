"""The command mailbox: commands from the supervisor to the servo, one producer, one consumer, fixed size, no lock.

Two lanes share one numbering: STOP and SHUTDOWN take the urgent lane and overtake everything that waits in the other,
so that nobody can delay them by sending commands.
"""

import contextlib
import fcntl
import mmap
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bridge.ring import MemoryFence, RingError, create_shared_file, shared_memory_directory
from haptics.states import CommandKind
from haptics.tables import COMMAND, COMMAND_VALUES, RECORD_VERSION

MAGIC = 0x584F424C49414D48
"""``HMAILBOX`` as little-endian bytes."""

SLOTS = 64
"""Commands that may wait in one lane."""

URGENT = frozenset({CommandKind.STOP, CommandKind.SHUTDOWN})

JUST_MADE_S = 10.0
"""A file younger than this may belong to a daemon that is about to lock it."""

HEADER_BYTES = 256
MAILBOX_BYTES = HEADER_BYTES + 2 * SLOTS * COMMAND.itemsize
_MAGIC, _VERSION, _NEXT_ID = 0, 1, 2
# Head (written by the producer) and tail (by the consumer) of each lane, one cache line apart.
_HEADS = (8, 16)
_TAILS = (12, 20)


class MailboxFull(RuntimeError):
    """The servo has not taken the commands before this one."""


class _Mailbox:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            with open(path, "r+b") as file:
                self._mmap = mmap.mmap(file.fileno(), 0)
        except (OSError, ValueError) as error:
            raise RingError(f"cannot open the mailbox {path}: {error}") from error
        self._bytes = memoryview(self._mmap)
        self._words = self._bytes[: min(HEADER_BYTES, len(self._bytes) // 8 * 8)].cast("Q")
        if len(self._bytes) != MAILBOX_BYTES or self._words[_MAGIC] != MAGIC or self._words[_VERSION] != RECORD_VERSION:
            raise RingError(f"{path} is not a mailbox of this version of hapticd")
        for head, tail in zip(_HEADS, _TAILS, strict=True):
            if not 0 <= self._words[head] - self._words[tail] <= SLOTS or self._words[head] >> 62:
                raise RingError(f"{path} is damaged: a lane of it claims more commands than it has room for")
        self._fence = MemoryFence()

    def _slot(self, lane: int, number: int) -> slice:
        start = HEADER_BYTES + (lane * SLOTS + number % SLOTS) * COMMAND.itemsize
        return slice(start, start + COMMAND.itemsize)

    def waiting(self) -> int:
        """Commands posted and not taken."""
        return sum(self._words[head] - self._words[tail] for head, tail in zip(_HEADS, _TAILS, strict=True))

    def close(self) -> None:
        """Unmap; the file stays."""
        self._words.release()
        self._bytes.release()
        self._mmap.close()


def create_mailbox(path: str | os.PathLike[str], memory_name: str | None = None) -> None:
    """Create an empty mailbox file; raises bridge.ring.NoSpace (see `bridge.ring.create_shared_file`)."""
    create_shared_file(path, MAILBOX_BYTES, memory_name)
    with open(path, "r+b") as file:
        file.write(np.array([MAGIC, RECORD_VERSION, 1], "u8").tobytes())


def find_orphans() -> list[Path]:
    """Shared files in /dev/shm that daemons of this user left when they were killed."""
    memory = shared_memory_directory()
    if memory is None:
        return []
    found = []
    for mailbox in sorted(memory.glob(f"hapticd-{os.getuid()}-*-mailbox")):
        with contextlib.suppress(OSError):
            # A lock and not a process id: it also tells about daemons in other containers that share /dev/shm.
            with open(mailbox, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - mailbox.stat().st_mtime > JUST_MADE_S:
                ring = mailbox.with_name(mailbox.name.removesuffix("mailbox") + "ring")
                found += [path for path in (mailbox, ring) if path.exists()]
    return found


class CommandWriter(_Mailbox):
    """The producer's end. While it is open it holds a lock on the file, which tells that the daemon lives."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def close(self) -> None:
        """Unmap and give the lock back; the file stays."""
        super().close()
        os.close(self._descriptor)

    def post(self, kind: CommandKind, session: int = 0, values: Sequence[float] = ()) -> int:
        """Put a command in its lane and return its id; raises MailboxFull, and ValueError for too many values."""
        if len(values) > COMMAND_VALUES:
            raise ValueError(f"a command carries at most {COMMAND_VALUES} values, got {len(values)}")
        lane = 0 if kind in URGENT else 1
        head = self._words[_HEADS[lane]]
        if head - self._words[_TAILS[lane]] >= SLOTS:
            raise MailboxFull(f"{SLOTS} commands wait and the servo has not taken them")
        number = self._words[_NEXT_ID]
        command = np.zeros(1, COMMAND)
        command["id"] = number
        command["session"] = session
        command["kind"] = kind
        command["values"][0, : len(values)] = values
        self._bytes[self._slot(lane, head)] = command.view(np.uint8).data
        self._words[_NEXT_ID] = number + 1
        self._fence()
        self._words[_HEADS[lane]] = head + 1
        return number


class CommandReader(_Mailbox):
    """The consumer's end."""

    def take(self, into: np.ndarray | memoryview) -> bool:
        """Copy the next command, urgent ones first, over `into` ((1,) COMMAND or its bytes); False when none waits."""
        words = self._words
        for lane in (0, 1):
            tail = words[_TAILS[lane]]
            if words[_HEADS[lane]] != tail:
                self._fence()
                source = self._bytes[self._slot(lane, tail)]
                if isinstance(into, np.ndarray):
                    into[...] = np.frombuffer(source, COMMAND)
                else:
                    into[:] = source
                self._fence()
                words[_TAILS[lane]] = tail + 1
                return True
        return False
