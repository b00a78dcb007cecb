"""The doctor: each finding follows from what the machine says, and what is wrong comes with advice."""

from pathlib import Path

import pytest

from bridge import doctor, keys
from bridge.realtime import Statement
from bridge.runtime import RuntimeDirectory


def test_every_row_has_a_finding_and_trouble_has_advice(monkeypatch, tmp_path):
    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(tmp_path))
    checks = doctor.examine(0.1)
    assert len({check.name for check in checks}) == len(checks) == 14
    for check in checks:
        assert check.status in (doctor.OK, doctor.WARN, doctor.BAD)
        assert check.finding
        assert check.advice or check.status == doctor.OK


def test_keys_that_others_can_read_are_bad(monkeypatch, tmp_path):
    monkeypatch.setenv("HAPTICD_KEYS_DIR", str(tmp_path / "k"))
    assert doctor.check_keys().status == doctor.OK
    keys.make_pair(tmp_path / "k", "server")
    assert doctor.check_keys().figures == {"pairs": 1, "clients": 0}
    (tmp_path / "k" / "server.key_secret").chmod(0o644)
    found = doctor.check_keys()
    assert found.status == doctor.BAD and "can be read by others" in found.finding and "chmod 600" in found.advice


def test_lateness_row_carries_its_figures():
    figures = doctor.check_lateness(0.1).figures
    assert 0 <= figures["p50_us"] <= figures["p99_us"] <= figures["max_us"]
    assert 0 < figures["periods_kept"] <= 1


@pytest.mark.parametrize(("late_us", "status"), [(1, "ok"), (400, "warn"), (3000, "bad")])
def test_lateness_is_judged(monkeypatch, late_us, status):
    monkeypatch.setattr(doctor.realtime, "measure_lateness", lambda seconds: [late_us * 1000] * 100)
    assert doctor.check_lateness(0.1).status == status


@pytest.mark.parametrize(
    ("runtime", "status", "word"), [("950000", "ok", "95%"), ("-1", "warn", "off"), ("500000", "bad", "50%")]
)
def test_throttling_is_read(monkeypatch, runtime, status, word):
    answers = {"/proc/sys/kernel/sched_rt_runtime_us": runtime, "/proc/sys/kernel/sched_rt_period_us": "1000000"}
    monkeypatch.setattr(doctor, "_read", answers.get)
    check = doctor.check_throttling()
    assert check.status == status
    assert word in check.finding


def test_missing_permission_says_what_to_add(monkeypatch):
    monkeypatch.setattr(doctor.realtime, "request_fifo", lambda: Statement("scheduler", False, "no"))
    monkeypatch.setattr(doctor.realtime, "may_lock_memory", lambda: False)
    monkeypatch.setattr(doctor.realtime, "LINUX", True)
    assert "rtprio" in doctor.check_real_time().advice
    assert "memlock" in doctor.check_memory_lock().advice


def test_the_callers_scheduler_is_left_alone():
    import os

    before = os.sched_getscheduler(0), os.sched_getaffinity(0)
    doctor.check_real_time()
    doctor.check_lateness(0.05)
    assert (os.sched_getscheduler(0), os.sched_getaffinity(0)) == before


def test_kernel_cache_states(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    assert doctor.check_kernel_cache().status == doctor.WARN
    place = tmp_path / "cache" / "rtcore"
    place.mkdir(parents=True)
    (place / "step.nbc").write_bytes(b"x")
    filled = doctor.check_kernel_cache()
    assert (filled.status, filled.figures["files"]) == (doctor.OK, 1)
    monkeypatch.setattr(doctor, "_can_write", lambda directory: False)
    assert "HAPTICD_CACHE_DIR" in doctor.check_kernel_cache().advice


def test_little_shared_memory_is_bad(monkeypatch):
    monkeypatch.setattr(
        doctor.shutil, "disk_usage", lambda where: type("Usage", (), {"free": doctor.RING_BYTES // 2})()
    )
    check = doctor.check_shared_memory()
    assert check.status == doctor.BAD
    assert "shm-size" in check.advice


def test_leftover_and_running_daemons_are_told_apart(monkeypatch, tmp_path):
    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(doctor, "find_orphans", list)
    assert doctor.check_leftovers().status == doctor.OK
    for name in ("dead", "alive"):
        runtime = RuntimeDirectory(name).create()
        Path(runtime.endpoints_path).write_text("{}")
    with RuntimeDirectory("alive").lock():
        check = doctor.check_leftovers()
    assert check.status == doctor.WARN
    assert check.figures["left"] == ["dead"]
    assert "alive" in check.figures["running"][0]


def test_shared_files_of_killed_daemons_are_shown(monkeypatch, tmp_path):
    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(doctor, "find_orphans", lambda: [Path("/dev/shm/hapticd-0-x-ring")])
    check = doctor.check_leftovers()
    assert check.status == doctor.WARN
    assert "/dev/shm" in check.finding
