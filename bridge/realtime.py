"""What a process asks of the operating system to tick on time, and waiting until an absolute moment.

Nothing here is needed to run: each request that is not permitted becomes one plain statement and the program goes on.
"""

import ctypes
import errno
import gc
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

LINUX = sys.platform.startswith("linux")
PRIORITY = 70
"""SCHED_FIFO priority of the servo: above threaded interrupts (50), below the watchdogs of the kernel (99)."""

SPIN_NS = 100_000
"""The last stretch before a deadline is spent looking at the clock, because a sleep wakes late by tens of us."""

_PR_SET_PDEATHSIG = 1
_PR_SET_TIMERSLACK = 29
_MCL_CURRENT = 1
_MCL_FUTURE = 2
_CLOCK_MONOTONIC = 1
_TIMER_ABSTIME = 1
_CAP_IPC_LOCK = 14


@dataclass(frozen=True)
class Statement:
    """What came of one request."""

    name: str
    granted: bool
    text: str
    """One sentence; when not granted, also what would have to change."""


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def _libc() -> ctypes.CDLL | None:
    if not LINUX:
        return None
    try:
        return ctypes.CDLL(None, use_errno=True)
    except OSError:
        return None


def allowed_cores() -> list[int]:
    """Cores this process may run on; empty where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def isolated_cores() -> list[int]:
    """Cores that the kernel keeps free of ordinary work (`isolcpus`)."""
    try:
        text = Path("/sys/devices/system/cpu/isolated").read_text().strip()
    except OSError:
        return []
    cores: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cores.extend(range(int(first), int(last or first) + 1))
    return cores


def preferred_core() -> int | None:
    """Core for the servo: ``$HAPTICD_CORE``, else an isolated one, else the last one allowed."""
    chosen = os.environ.get("HAPTICD_CORE", "")
    if chosen.isdigit():
        return int(chosen)
    cores = isolated_cores() or allowed_cores()
    return cores[-1] if cores else None


def request_fifo(priority: int = PRIORITY) -> Statement:
    """Ask for SCHED_FIFO for the calling thread (threads that it starts later inherit it)."""
    if not hasattr(os, "sched_setscheduler"):
        return Statement(
            "scheduler", False, f"no SCHED_FIFO on {sys.platform}; expect late ticks when the machine is busy"
        )
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        return Statement(
            "scheduler",
            False,
            f"SCHED_FIFO not permitted ({error.strerror}); add `USER - rtprio {priority}` to a file in "
            "/etc/security/limits.d, or give CAP_SYS_NICE",
        )
    return Statement("scheduler", True, f"SCHED_FIFO, priority {priority}")


def request_core(core: int | None) -> Statement:
    """Keep the calling thread on one core."""
    if core is None or not hasattr(os, "sched_setaffinity"):
        return Statement("core", False, "this system does not let a thread choose its core")
    try:
        os.sched_setaffinity(0, {core})
    except OSError as error:
        return Statement("core", False, f"core {core} not permitted ({error.strerror})")
    return Statement("core", True, f"pinned to core {core}")


def may_lock_memory() -> bool:
    """True when memory can be locked without a limit that a later allocation would run into."""
    import resource

    if not hasattr(resource, "RLIMIT_MEMLOCK"):
        return False
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY:
        return True
    try:
        status = Path("/proc/self/status").read_text()
        effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    except (OSError, StopIteration):
        return False
    return bool(int(effective.split()[1], 16) >> _CAP_IPC_LOCK & 1)


def lock_memory() -> Statement:
    """Lock all present and future memory of the process, so that no tick waits for a page."""
    libc = _libc()
    if libc is None:
        return Statement("memory", False, f"memory is not locked on {sys.platform}")
    # Under a limit the lock might succeed now and make a later allocation fail: worse than no lock.
    if not may_lock_memory():
        return Statement(
            "memory",
            False,
            "memory is not locked (RLIMIT_MEMLOCK); add `USER - memlock unlimited` to a file in /etc/security/limits.d",
        )
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE) != 0:
        return Statement("memory", False, f"memory is not locked ({os.strerror(ctypes.get_errno())})")
    return Statement("memory", True, "memory is locked")


def quiet_collector() -> Statement:
    """Collect once, then take everything alive out of the collector's sight and switch it off."""
    gc.collect()
    gc.freeze()
    gc.disable()
    return Statement("collector", True, "garbage collector frozen and off")


def set_timer_slack(nanoseconds: int = 1) -> Statement:
    """Ask that sleeps of the calling thread end as exactly as the timer can."""
    libc = _libc()
    if libc is None or libc.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(nanoseconds), 0, 0, 0) != 0:
        return Statement("timer slack", False, "timer slack cannot be set on this system")
    return Statement("timer slack", True, f"timer slack {nanoseconds} ns")


def die_with_parent(signal_number: int = signal.SIGTERM) -> Statement:
    """Have the kernel send a signal to this process when the thread that started it ends."""
    libc = _libc()
    if libc is None or libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), 0, 0, 0) != 0:
        return Statement("parent", False, "the end of the parent is noticed by polling only")
    return Statement("parent", True, f"{signal.Signals(signal_number).name} when the parent ends")


class Waiter:
    """Waits until moments of CLOCK_MONOTONIC: sleeps up to `spin_ns` before, then looks at the clock."""

    def __init__(self, spin_ns: int = SPIN_NS) -> None:
        self.spin_ns = spin_ns
        libc = _libc()
        self._sleep = libc.clock_nanosleep if libc is not None and hasattr(libc, "clock_nanosleep") else None
        self._until = _Timespec()
        self._reference = ctypes.byref(self._until)

    def sleep_until(self, moment_ns: int) -> None:
        """Sleep until `moment_ns` (CLOCK_MONOTONIC); returns at once when it has passed, early when a signal came."""
        if self._sleep is None:
            left = moment_ns - time.monotonic_ns()
            if left > 0:
                time.sleep(left * 1e-9)
            return
        # An absolute sleep, so that being interrupted between reading the clock and sleeping costs nothing.
        self._until.seconds, self._until.nanoseconds = divmod(moment_ns, 1_000_000_000)
        code = self._sleep(_CLOCK_MONOTONIC, _TIMER_ABSTIME, self._reference, None)
        if code not in (0, errno.EINTR):
            self._sleep = None

    def wait_until(self, moment_ns: int, rest_until_ns: int = 0) -> int:
        """Return at `moment_ns` or as soon after as possible, with the time it is then (ns).

        rest_until_ns: sleep at least until then, even when the moment has passed.
        """
        clock = time.monotonic_ns
        wake = max(moment_ns - self.spin_ns, rest_until_ns)
        now = clock()
        while now < wake:
            self.sleep_until(wake)
            now = clock()
        while now < moment_ns:
            now = clock()
        return now


def measure_lateness(seconds: float, period_ns: int = 1_000_000, spin_ns: int = SPIN_NS) -> list[int]:
    """Wake-up lateness in ns of a bare loop with this period on the calling thread, one value per deadline kept."""
    waiter = Waiter(spin_ns)
    late: list[int] = []
    start = time.monotonic_ns()
    due = start
    while due - start < seconds * 1e9:
        due += period_ns
        late.append(waiter.wait_until(due) - due)
        behind = time.monotonic_ns() - due
        if behind > period_ns:
            due += behind // period_ns * period_ns
    return late
