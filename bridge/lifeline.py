"""Who watches over the servo holds a lock in shared memory, and the kernel marks the lock when the holder dies.

A killed process is gone for `getppid`, for its pipes and for the death signal of its children only when its memory has
been taken apart, which takes some 50 ms for a large one. Before that the kernel looks through the *robust mutexes* of a
dying thread, so another process that tries such a mutex learns of the death within a tick, at the price of a call that
never waits. See pthread_mutexattr_setrobust(3) and "robust futexes" in the documentation of Linux.
"""

import ctypes
import errno
import mmap
import sys
from functools import cache
from typing import Any

SIZE = 64
"""Bytes of shared memory: a word that tells whether the lock is in use, then the mutex (40 to 48 bytes)."""

_HELD = 1
_CUT = 2
_MUTEX_AT = 8
_SHARED = 1
_ROBUST = 1


@cache
def _threads() -> Any:
    """The C library's mutexes, None where they are not robust."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        # PyDLL: none of the calls waits, and giving up the interpreter for each would cost more than the call.
        library = ctypes.PyDLL(None)
        return library if library.pthread_mutexattr_setrobust else None
    except (OSError, AttributeError):
        return None


class Lifeline:
    """A lock in zeroed shared memory: one thread holds it, other processes see when that thread has died.

    Where the system has no robust mutexes, `hold` returns False and `cut` is never True.
    """

    def __init__(self, memory: mmap.mmap, at: int) -> None:
        """memory: shared and writable; the lock takes `SIZE` bytes from offset ``at``, a multiple of 8, on."""
        self._word: Any = ctypes.c_uint64.from_buffer(memory, at)
        self._mutex: Any = (ctypes.c_char * (SIZE - _MUTEX_AT)).from_buffer(memory, at + _MUTEX_AT)
        self._threads = _threads()
        self._holds = False

    def hold(self) -> bool:
        """Take the lock for the calling thread, once; False when that cannot be. The same thread calls `close`."""
        if self._threads is None or self._word.value != 0:
            return False
        attributes = (ctypes.c_char * SIZE)()
        self._threads.pthread_mutexattr_init(attributes)
        self._threads.pthread_mutexattr_setpshared(attributes, _SHARED)
        self._threads.pthread_mutexattr_setrobust(attributes, _ROBUST)
        made = self._threads.pthread_mutex_init(self._mutex, attributes)
        self._threads.pthread_mutexattr_destroy(attributes)
        if made != 0 or self._threads.pthread_mutex_trylock(self._mutex) != 0:
            return False
        self._holds = True
        self._word.value = _HELD
        return True

    def cut(self) -> bool:
        """True once the thread that held the lock has died without letting go; takes less than a microsecond."""
        if self._word.value != _HELD or self._threads is None:
            return self._word.value == _CUT
        code = self._threads.pthread_mutex_trylock(self._mutex)
        if code == errno.EOWNERDEAD:
            # The first to be told tells the others: the lock says it once.
            self._word.value = _CUT
            self._threads.pthread_mutex_consistent(self._mutex)
        if code in (0, errno.EOWNERDEAD):
            self._threads.pthread_mutex_unlock(self._mutex)
        return code == errno.EOWNERDEAD

    def close(self) -> None:
        """Let go, if it is held here, and leave the memory alone, which can be unmapped then."""
        if self._holds:
            self._holds = False
            self._word.value = 0
            # Before the memory goes: the thread keeps a list of the addresses of what it holds.
            self._threads.pthread_mutex_unlock(self._mutex)
        self._word = self._mutex = None
