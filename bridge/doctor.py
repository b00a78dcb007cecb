"""Is this machine fit to tick at 1 kHz? Each check says what was found and what to do about it."""

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridge import kernel_cache, keys, realtime
from bridge.cache_directory import cache_directory
from bridge.mailbox import find_orphans
from bridge.ring import DEFAULT_SLOTS, shared_memory_directory
from bridge.runtime import RuntimeDirectory, base_directory, versions
from haptics.tables import RECORD

OK = "ok"
WARN = "warn"
BAD = "bad"

GOOD_LATENESS_US = 100.0
"""p99 of a bare loop's wake-ups below this is a machine on which ticks are on time."""

POOR_LATENESS_US = 1000.0
RING_BYTES = DEFAULT_SLOTS * RECORD.itemsize


@dataclass(frozen=True)
class Check:
    """One row: what was looked at, how it stands, what was found, what to do."""

    name: str
    status: str
    """``ok``, ``warn`` (works, worse than it could) or ``bad`` (will be felt, or will not run)."""
    finding: str
    advice: str
    """Empty when there is nothing to do."""
    figures: dict[str, Any] | None = None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _in_thread(work: Callable[[], Any]) -> Any:
    """Run work in a thread of its own: scheduler, core and slack that it asks for end with it."""
    results: list[Any] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def check_real_time() -> Check:
    """May a thread have SCHED_FIFO?"""
    found = _in_thread(realtime.request_fifo)
    if found.granted:
        return Check("real-time priority", OK, found.text, "")
    return Check(
        "real-time priority",
        WARN,
        "SCHED_FIFO is not permitted: other programs can make ticks late",
        f"add `USER - rtprio {realtime.PRIORITY}` (USER: your login) in /etc/security/limits.d/hapticd.conf and log in "
        "again"
        if realtime.LINUX
        else "use Linux where late ticks matter",
    )


def check_throttling() -> Check:
    """Does the kernel stop real-time threads that never sleep?"""
    runtime = _read("/proc/sys/kernel/sched_rt_runtime_us")
    period = _read("/proc/sys/kernel/sched_rt_period_us")
    if runtime is None or period is None:
        return Check("real-time throttling", OK, "not known on this system", "")
    if int(runtime) < 0:
        return Check(
            "real-time throttling",
            WARN,
            "off: a real-time program that never sleeps can lock up its core",
            "`sysctl kernel.sched_rt_runtime_us=950000` gives the default back; hapticd does not need it off",
        )
    share = int(runtime) / int(period)
    if share < 0.9:
        return Check(
            "real-time throttling",
            BAD,
            f"real-time threads get {share:.0%} of each {int(period) / 1000:g} ms; ticks will pause",
            f"`sysctl kernel.sched_rt_runtime_us={int(int(period) * 0.95)}`",
        )
    return Check(
        "real-time throttling", OK, f"{share:.0%} of each {int(period) / 1000:g} ms; the servo sleeps each tick", ""
    )


def check_memory_lock() -> Check:
    """May the servo keep its memory from being paged out?"""
    if not realtime.LINUX:
        return Check("memory lock", WARN, f"memory is not locked on {sys.platform}", "")
    if realtime.may_lock_memory():
        return Check("memory lock", OK, "permitted", "")
    return Check(
        "memory lock",
        WARN,
        "limited (RLIMIT_MEMLOCK): a tick may wait for a page when memory is short",
        "add `USER - memlock unlimited` (USER: your login) in /etc/security/limits.d/hapticd.conf and log in again",
    )


def check_governor() -> Check:
    """Does the processor slow down when it looks idle?"""
    governors = {
        text
        for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
        if (text := _read(str(path)))
    }
    if not governors:
        return Check("frequency governor", OK, "none is visible (virtual machine, or fixed frequency)", "")
    if governors <= {"performance"}:
        return Check("frequency governor", OK, "performance", "")
    return Check(
        "frequency governor",
        WARN,
        f"{', '.join(sorted(governors))}: the clock may drop between ticks and make them longer",
        "`cpupower frequency-set -g performance`",
    )


def check_clock_source() -> Check:
    """Is reading the clock cheap?"""
    source = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    began = time.perf_counter_ns()
    for _ in range(10_000):
        time.monotonic_ns()
    cost = (time.perf_counter_ns() - began) / 10_000
    name = source or "unknown clock source"
    figures = {"read_ns": cost}
    if source in ("hpet", "acpi_pm") or cost > 1000:
        advice = "boot with `clocksource=tsc` if the processor's counter is reliable"
        return Check("clock source", WARN, f"{name}, {cost:.0f} ns per reading: slow", advice, figures)
    return Check("clock source", OK, f"{name}, {cost:.0f} ns per reading", "", figures)


def check_cores() -> Check:
    """Is there a core for the servo, and does anything else run on it?"""
    cores = realtime.allowed_cores()
    isolated = realtime.isolated_cores()
    if isolated:
        return Check("cores", OK, f"core {', '.join(map(str, isolated))} isolated; the servo takes the last one", "")
    count = len(cores) or os.cpu_count() or 1
    if count == 1:
        return Check(
            "cores", BAD, "only one core: servo, clients and everything else share it", "use two cores or more"
        )
    return Check(
        "cores",
        OK if count > 2 else WARN,
        f"{count} cores, none isolated; the servo takes core {realtime.preferred_core()}",
        "for the fewest late ticks boot with `isolcpus=N nohz_full=N rcu_nocbs=N` (N: the last core); "
        "HAPTICD_CORE=N chooses another",
    )


def check_timer() -> Check:
    """How fine are the timers?"""
    resolution = time.get_clock_info("monotonic").resolution
    figures = {"resolution_ns": resolution * 1e9}
    if resolution > 1e-6:
        advice = "a kernel with high-resolution timers is needed"
        return Check("timer resolution", BAD, f"{resolution * 1e6:.0f} us", advice, figures)
    return Check("timer resolution", OK, f"{resolution * 1e9:.0f} ns", "", figures)


def check_lateness(seconds: float = 2.0) -> Check:
    """How late does a bare 1 kHz loop wake up, with what the servo would ask for?"""

    def measure() -> tuple[bool, list[int]]:
        granted = realtime.request_fifo().granted
        if granted:
            realtime.request_core(realtime.preferred_core())
        realtime.set_timer_slack()
        return granted, realtime.measure_lateness(seconds)

    granted, late = _in_thread(measure)
    p50, p99, worst = (float(value) for value in np.percentile(np.array(late) * 1e-3, (50, 99, 100)))
    expected = max(1, round(seconds * 1000))
    kept = len(late) / expected
    figures = {"p50_us": p50, "p99_us": p99, "max_us": worst, "periods_kept": min(kept, 1.0)}
    how = "with SCHED_FIFO" if granted else "without real-time priority"
    finding = f"p50 {p50:.1f}, p99 {p99:.1f}, max {worst:.0f} us over {seconds:g} s {how}"
    if p99 > POOR_LATENESS_US:
        advice = "ticks will be missed: close what computes, allow real-time priority, or leave this (virtual) machine"
        return Check("wake-up lateness", BAD, finding, advice, figures)
    if p99 > GOOD_LATENESS_US or worst > 10 * POOR_LATENESS_US:
        advice = "allow real-time priority and isolate a core; on a shared virtual machine the host causes this"
        return Check("wake-up lateness", WARN, finding, advice, figures)
    return Check("wake-up lateness", OK, finding, "", figures)


def check_kernel_cache() -> Check:
    """Are the compiled kernels on disk, so that a start takes seconds?"""
    chosen = os.environ.get(kernel_cache.VARIABLE)
    root = Path(__file__).resolve().parent.parent
    places = [Path(chosen)] if chosen else [root / package for package in ("rtcore", "haptics", "bridge")]
    files = sum(1 for place in places if place.is_dir() for _ in place.rglob("*.nbc"))
    writable = all(_can_write(place) for place in places)
    where = chosen or f"beside the sources in {root}"
    figures = {"files": files, "writable": writable}
    if not writable:
        return Check(
            "kernel cache",
            WARN if files else BAD,
            f"{files} compiled kernels, {where}, which is read-only: kernels that are missing compile at every start",
            f"make {cache_directory()} writable, or set HAPTICD_CACHE_DIR to a directory of your own",
            figures,
        )
    if not files:
        advice = "run `hapticd compile` once, or accept a minute at the first start"
        return Check("kernel cache", WARN, f"empty ({where})", advice, figures)
    return Check("kernel cache", OK, f"{files} compiled kernels, {where}", "", figures)


def _can_write(directory: Path) -> bool:
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    return os.access(directory, os.W_OK)


def check_versions() -> Check:
    """What is installed?"""
    found = versions()
    missing = [name for name in ("numpy", "numba", "pyzmq", "msgpack") if found[name] is None]
    text = ", ".join(f"{name} {found[name]}" for name in ("python", "hapticd", "numpy", "numba", "pyzmq", "msgpack"))
    if missing:
        return Check("versions", BAD, f"{text}; missing: {', '.join(missing)}", "`pip install hapticd`", found)
    return Check("versions", OK, text, "", found)


def check_display() -> Check:
    """Can a window be opened?"""
    from bridge.view import NoDisplay
    from bridge.view import check_display as try_display

    try:
        try_display()
    except NoDisplay as problem:
        finding, _, advice = str(problem).partition("; ")
        return Check("display", WARN, finding, f"`hapticd view` needs one; {advice}")
    return Check("display", OK, os.environ.get("DISPLAY") or "the system's own", "")


def check_keys() -> Check:
    """Can the keys of this user be used, and by nobody else?"""
    folder = keys.keys_directory()
    secrets = sorted(folder.glob(f"*{keys.SECRET_SUFFIX}")) if folder.is_dir() else []
    allowed = folder / keys.ALLOWED
    try:
        for path in secrets:
            keys.read_pair(path)
        clients = len(keys.read_allowed(allowed)) if allowed.exists() else 0
    except keys.KeysError as error:
        finding, _, advice = str(error).partition("; ")
        return Check("keys", BAD, finding, advice or "`hapticd keys list` tells more; make or restore what is damaged")
    figures = {"pairs": len(secrets), "clients": clients}
    if not secrets:
        return Check("keys", OK, f"none in {folder}: daemons are for this machine only", "", figures)
    return Check("keys", OK, f"{len(secrets)} pairs and a list of {clients} clients in {folder}", "", figures)


def check_shared_memory() -> Check:
    """Is there room for the ring?"""
    directory = shared_memory_directory()
    where = directory or base_directory().parent
    try:
        free = shutil.disk_usage(where).free
    except OSError as error:
        return Check(
            "shared memory", BAD, f"{where}: {error.strerror}", "set HAPTICD_RUNTIME_DIR to a usable directory"
        )
    finding = f"{free / 1e6:.0f} MB free in {where}; the ring takes {RING_BYTES / 1e6:.0f} MB"
    figures = {"free_bytes": free, "ring_bytes": RING_BYTES}
    if free < 2 * RING_BYTES:
        advice = "make room, or in a container start it with more (`docker run --shm-size=256m`)"
        return Check("shared memory", BAD if free < RING_BYTES else WARN, finding, advice, figures)
    if directory is None:
        advice = "a ring on a disk is written back by the kernel, which can stall a tick: use a memory file system"
        return Check("shared memory", WARN, f"no /dev/shm; {finding}", advice, figures)
    return Check("shared memory", OK, finding, "", figures)


def check_leftovers() -> Check:
    """Did a daemon die without tidying up?"""
    running, left = [], []
    for runtime in RuntimeDirectory.all():
        pid = runtime.holder()
        if pid is not None:
            running.append(f"{runtime.name} (pid {pid})")
        elif any(os.path.lexists(path) for path in (runtime.endpoints_path, runtime.ring_path, runtime.mailbox_path)):
            left.append(runtime.name)
    text = f"running: {', '.join(running) or 'none'}"
    orphans = find_orphans()
    figures = {"running": running, "left": left, "orphans": [str(path) for path in orphans]}
    if orphans and not left:
        finding = f"{text}; {len(orphans)} shared files in /dev/shm belong to daemons that were killed"
        return Check("daemons", WARN, finding, "the next start removes them", figures)
    if left:
        return Check(
            "daemons",
            WARN,
            f"{text}; left by a daemon that did not end in order: {', '.join(left)}",
            f"starting it again tidies up, or remove {base_directory()}/NAME",
            figures,
        )
    return Check("daemons", OK, text, "", figures)


def examine(seconds: float = 2.0) -> list[Check]:
    """All checks, in the order in which they are best read; the lateness is measured for `seconds`."""
    checks = [
        check_real_time(),
        check_throttling(),
        check_memory_lock(),
        check_governor(),
        check_clock_source(),
        check_cores(),
        check_timer(),
        check_lateness(seconds),
        check_kernel_cache(),
        check_versions(),
        check_display(),
        check_shared_memory(),
        check_keys(),
    ]
    with contextlib.suppress(OSError):
        checks.append(check_leftovers())
    return checks
