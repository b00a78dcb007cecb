"""Waiting and asking the system: deadlines are not missed early, and what is not permitted is said, not raised."""

import gc
import os
import resource
import subprocess
import sys
import time

import pytest

from bridge import realtime
from bridge.realtime import Waiter


@pytest.mark.parametrize("spin_ns", [0, 100_000])
def test_never_returns_before_the_moment(spin_ns):
    waiter = Waiter(spin_ns)
    for offset in (1, 50_000, 300_000, 2_000_000):
        moment = time.monotonic_ns() + offset
        now = waiter.wait_until(moment)
        assert now >= moment
        assert time.monotonic_ns() >= now


def test_rest_is_slept_even_when_the_moment_has_passed():
    """A loop that is late must still sleep; processor time during the rest stays far below its length."""
    waiter = Waiter()
    began, busy = time.monotonic_ns(), time.thread_time_ns()
    waiter.wait_until(began - 1, began + 20_000_000)
    assert time.monotonic_ns() - began >= 20_000_000
    assert time.thread_time_ns() - busy < 5_000_000


def test_a_passed_moment_returns_at_once():
    waiter = Waiter()
    began = time.monotonic_ns()
    waiter.sleep_until(began - 1_000_000_000)
    assert waiter.wait_until(began - 1) >= began


def test_without_clock_nanosleep_it_still_waits(monkeypatch):
    monkeypatch.setattr(realtime, "_libc", lambda: None)
    waiter = Waiter()
    moment = time.monotonic_ns() + 3_000_000
    assert waiter.wait_until(moment) >= moment
    for statement in (realtime.lock_memory(), realtime.set_timer_slack(), realtime.die_with_parent()):
        assert not statement.granted
        assert statement.text


def test_refusals_become_statements(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    fifo, core = realtime.request_fifo(), realtime.request_core(0)
    assert (fifo.granted, core.granted) == (False, False)
    assert "rtprio" in fifo.text
    assert "Operation not permitted" in core.text


def test_memory_is_not_locked_under_a_limit(monkeypatch):
    """A lock that a later allocation would run into is worse than none."""
    monkeypatch.setattr(realtime, "may_lock_memory", lambda: False)
    statement = realtime.lock_memory()
    assert not statement.granted
    assert "memlock unlimited" in statement.text
    assert isinstance(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0], int)


def test_core_choice(monkeypatch):
    monkeypatch.delenv("HAPTICD_CORE", raising=False)
    monkeypatch.setattr(realtime, "isolated_cores", list)
    monkeypatch.setattr(realtime, "allowed_cores", lambda: [0, 2, 3])
    assert realtime.preferred_core() == 3
    monkeypatch.setattr(realtime, "isolated_cores", lambda: [5, 6])
    assert realtime.preferred_core() == 6
    monkeypatch.setenv("HAPTICD_CORE", "1")
    assert realtime.preferred_core() == 1


def test_collector_stays_off():
    try:
        realtime.quiet_collector()
        assert not gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.enable()
        gc.unfreeze()


@pytest.mark.skipif(not realtime.LINUX, reason="PR_SET_PDEATHSIG is Linux")
def test_child_gets_the_signal_when_its_parent_is_killed(tmp_path):
    mark = tmp_path / "mark"
    child = (
        "import signal, sys, time; from bridge import realtime; realtime.die_with_parent();"
        f"signal.signal(signal.SIGTERM, lambda *_: (open({str(mark)!r}, 'w').write('gone'), sys.exit()));"
        "print('up', flush=True); time.sleep(20)"
    )
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}]).wait()"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        process.kill()
        deadline = time.monotonic() + 10
        while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert mark.read_text() == "gone"


def test_lateness_has_one_value_per_deadline_kept():
    late = realtime.measure_lateness(0.05)
    assert 1 <= len(late) <= 51
    assert min(late) >= 0
