"""The recorder as a process of its own: at 1 kHz, killed, ended, and on a disk that is full."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import psutil
import pytest
import zmq
from daemons import PRESSED, ROOT, DaemonProcess, RawClient, line, press
from unpaced import is_recorder
from waiting import wait_until

sys.path.insert(0, str(ROOT / "tests" / "bridge"))

from log_run import Run, run_ticks

from bridge.log.reader import read_log
from bridge.log.recorder import BATCH
from bridge.log.reexec import reexecute
from bridge.ring import ENDED, RingReader, RingWriter
from bridge.runtime import RuntimeDirectory

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run() -> Run:
    return run_ticks(12000)


class Servo:
    """Stands for the servo: gives the ticks of a run to the ring at 1 kHz, and snapshots as the servo does."""

    def __init__(self, base: Path, run: Run):
        self.run = run
        self.runtime = RuntimeDirectory("log", base).create()
        for name, data in run.attachments().items():
            (self.runtime.path / name).write_bytes(data)
        self.ring = RingWriter(self.runtime.ring_path, memory_name=self.runtime.shared_name("ring"))
        self.ring.claim()
        self.ring.put_snapshot(0, run.snapshots[0])
        self.done = 0
        self.notices: list[dict[str, Any]] = []
        self._context = zmq.Context(io_threads=1)
        self._pull = self._context.socket(zmq.PULL)
        self._pull.bind(self.runtime.notices_endpoint())

    def tick(self, count: int, rate_hz: float = 1000.0) -> None:
        """Write the next `count` ticks of the run."""
        due = time.monotonic_ns()
        for _ in range(count):
            record = self.run.records[self.done : self.done + 1].copy()
            # Present times, so that the log's clock is the machine's.
            record["timing"]["planned_ns"] = record["timing"]["started_ns"] = due
            self.ring.write(record)
            self.done += 1
            if self.done in self.run.snapshots:
                self.ring.put_snapshot(self.done, self.run.snapshots[self.done])
            due += round(1e9 / rate_hz)
            time.sleep(max(0, due - time.monotonic_ns()) * 1e-9)

    def tick_until_fed(self, extra: int, process: subprocess.Popen) -> None:
        """Go on until the recorder has had the processor whenever it wanted for 200 ms and `extra` ticks more; then it
        stands still, and nothing has kept it from its work up to that moment.

        What a killed process had no chance to do says nothing about it.
        """
        while True:
            good = 0
            while good < 200 + extra:
                assert self.done < len(self.run.records) - 1000, "this machine is too busy for the test"
                self.tick(1)
                good = good + 1 if self._is_fed() else 0
            process.send_signal(signal.SIGSTOP)
            if self._is_fed():
                return
            process.send_signal(signal.SIGCONT)

    def _is_fed(self) -> bool:
        (row,) = self.ring.readers()
        return row["silent_ns"] < 60_000_000 and self.done - row["position"] < 60

    def take_notices(self) -> list[str]:
        """Codes of all notices so far."""
        while self._pull.poll(0):
            self.notices.append(msgpack.unpackb(self._pull.recv()))
        return [notice["code"] for notice in self.notices]

    def wait_for_notice(self, code: str) -> None:
        """Go on ticking until a notice of this code has come."""
        while code not in self.take_notices():
            assert self.done < len(self.run.records) - 1000, f"no notice {code}: {self.notices}"
            self.tick(10)

    def close(self) -> None:
        self._pull.close(0)
        self._context.term()
        path = os.path.realpath(self.runtime.ring_path)
        self.ring.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


@pytest.fixture
def base() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hl-", dir="/tmp"))  # short, because paths of sockets must be
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def servo(base: Path, run: Run) -> Iterator[Servo]:
    servo = Servo(base, run)
    yield servo
    servo.close()


@contextlib.contextmanager
def recording(servo: Servo, path: Path, *arguments: str, **options: Any) -> Iterator[subprocess.Popen]:
    """A recorder process, attached to the ring."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "bridge.log.recorder", str(servo.runtime.path), str(path), *arguments],
        env=environment,
        stderr=subprocess.PIPE,
        **options,
    )
    try:

        def attached() -> bool:
            assert process.poll() is None, process.communicate()[1]
            return process.pid in {row["pid"] for row in servo.ring.readers()}

        wait_until(attached, "the recorder did not attach")
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_every_tick_is_in_the_log_at_a_small_price_and_executes_again(servo: Servo, tmp_path: Path, run: Run):
    with recording(servo, tmp_path / "a.mcap") as process:
        usage = psutil.Process(process.pid)
        before, began = sum(usage.cpu_times()[:2]), time.monotonic()
        servo.tick(2000)
        share = (sum(usage.cpu_times()[:2]) - before) / (time.monotonic() - began)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert share < 0.25  # about 0.1 on a quiet machine
    log = read_log(tmp_path / "a.mcap")
    assert not log.truncated
    assert log.records["tick"].tolist() == list(range(1, 2001))
    assert log.records["output"].tobytes() == run.records["output"][:2000].tobytes()
    assert log.machine["versions"]["numba"]
    result = reexecute(log)
    assert (result.ticks, result.ticks_differing) == (2000, 0)


@pytest.mark.parametrize("extra", [0, 13, 27])  # at different moments of the recorder's period of 40 ms
def test_kill_9_loses_at_most_100_ms(servo: Servo, tmp_path: Path, run: Run, extra: int):
    with recording(servo, tmp_path / "a.mcap") as process:
        servo.tick_until_fed(extra, process)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        lost_from = servo.done
        servo.tick(50)
        log = read_log(tmp_path / "a.mcap")
        assert log.truncated
        assert lost_from - 100 <= log.records["tick"][-1] <= lost_from
        assert log.records["output"].tobytes() == run.records["output"][: len(log.records)].tobytes()
        assert reexecute(log).same


def test_a_restarted_recorder_goes_on_from_what_the_ring_still_holds(servo: Servo, tmp_path: Path):
    with recording(servo, tmp_path / "a.mcap") as process:
        servo.tick(500)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    servo.tick(300)
    with recording(servo, tmp_path / "a-restart.mcap") as process:
        servo.tick(500)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    first, second = read_log(tmp_path / "a.mcap"), read_log(tmp_path / "a-restart.mcap")
    seen = set(first.records["tick"].tolist()) | set(second.records["tick"].tolist())
    assert seen == set(range(1, 1301))  # the ring is deeper than the outage was long: nothing is missing
    result = reexecute(second)
    assert result.ticks >= 500 and result.same


def test_ctrl_c_waits_for_the_servo_to_end(servo: Servo, tmp_path: Path):
    """The interrupt reaches the whole group at once, and the ramp of the servo after it must still be recorded."""
    with recording(servo, tmp_path / "a.mcap") as process:
        servo.tick(200)
        process.send_signal(signal.SIGINT)
        servo.tick(300)
        servo.ring.header.ready = ENDED
        assert process.wait(30) == 0
    log = read_log(tmp_path / "a.mcap")
    assert not log.truncated
    assert log.records["tick"][-1] == 500


ROOM = 600_000
"""Bytes for what a run records, beside what is attached to the log at its start: some hundred ticks."""
SMALL_DISK = 8 << 20


def attached_bytes(servo: Servo) -> int:
    return sum(len(data) for data in servo.run.attachments().values())


def test_a_largest_file_size_of_the_system_leads_to_a_second_file(servo: Servo, tmp_path: Path):
    """A real refusal of the kernel (RLIMIT_FSIZE), in the middle of a write."""
    limit = attached_bytes(servo) + ROOM
    with recording(
        servo,
        tmp_path / "a.mcap",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    ) as process:
        servo.wait_for_notice("log_resumed")
        servo.tick(300)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) != 0  # something is missing, and the exit code says so
    first, second = read_log(tmp_path / "a.mcap"), read_log(tmp_path / "a-2.mcap")
    assert first.truncated
    assert (tmp_path / "a.mcap").stat().st_size <= limit
    missing = int(second.records["tick"][0]) - int(first.records["tick"][-1]) - 1
    (resumed,) = [notice for notice in servo.notices if notice["code"] == "log_resumed"]
    assert 0 < missing == resumed["unlogged"] <= BATCH, "what it was writing when it was refused, and it says so"
    assert second.records["tick"][-1] == servo.done
    assert reexecute(first).same


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of SMALL_DISK bytes."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(path)]
    if os.getuid() != 0 or shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root and mount")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_full_disk_is_told_and_ticking_goes_on_and_so_does_the_log_when_there_is_room(servo: Servo, small_disk: Path):
    filler = small_disk / "filler"
    filler.write_bytes(bytes(SMALL_DISK - attached_bytes(servo) - ROOM))
    with recording(servo, small_disk / "a.mcap") as process:
        servo.wait_for_notice("disk_full")
        assert process.poll() is None
        full_at = servo.done

        def reads_on() -> bool:
            (reader,) = servo.ring.readers()
            return reader["position"] >= full_at + 50 and reader["lost"] == 0

        # It goes on reading: nothing is lost in the ring.
        wait_until(reads_on, "it no longer reads", meanwhile=lambda: servo.tick(20))
        servo.tick(100)
        assert process.poll() is None
        filler.unlink()
        servo.wait_for_notice("log_resumed")
        servo.tick(200)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) != 0
    first, second = read_log(small_disk / "a.mcap"), read_log(small_disk / "a-2.mcap")
    assert first.truncated and not second.truncated
    assert reexecute(first).same
    assert second.records["tick"][-1] == servo.done
    assert [event["code"] for event in second.events if event["source"] == "recorder"] == ["disk_full", "log_resumed"]


def test_it_says_in_one_sentence_why_it_cannot_start(servo: Servo, tmp_path: Path):
    command = [sys.executable, "-m", "bridge.log.recorder"]
    options: dict[str, Any] = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "capture_output": True, "text": True}
    answer = subprocess.run([*command, str(servo.runtime.path)], check=False, **options)
    assert answer.returncode == 2 and answer.stderr.startswith("usage:")
    (tmp_path / "file").write_bytes(b"")
    answer = subprocess.run(
        [*command, str(servo.runtime.path), str(tmp_path / "file" / "a.mcap")], check=False, **options
    )
    assert answer.returncode == 1
    assert answer.stderr.count("\n") == 1 and "cannot write the log" in answer.stderr


def test_a_daemons_log_executes_again_also_when_its_recorder_is_killed(tmp_path: Path):
    """Two files that hold every tick between them; the servo ticks on; both execute again without a difference.

    Triggered, so that no more ticks run than the ring holds however long a new recorder takes to come.
    """
    with DaemonProcess('[rates]\nclocking = "triggered"\n', log=str(tmp_path / "a.mcap")) as daemon:
        daemon.wait_ready()
        with RawClient(daemon.facts["endpoints"]) as client:
            press(client)
            recorders = [
                child
                for child in psutil.Process(daemon.process.pid).children()
                if "bridge.log.recorder" in child.cmdline()
            ]
            assert len(recorders) == 1
            with RingReader(daemon.runtime.ring_path, register=False) as ring:
                # On a busy machine it may have had little time so far. What it had read is written once it reads on.
                read, written = 0, 0
                while written < 300:
                    client.feed([PRESSED] * 50)
                    now = next(row["position"] for row in ring.readers() if row["pid"] == recorders[0].pid)
                    if now > read:
                        read, written = now, read
                recorders[0].kill()
                client.feed([PRESSED] * 100)

                def another_reads() -> bool:
                    return any(is_recorder(row["pid"]) and row["position"] > read for row in ring.readers())

                wait_until(another_reads, "the recorder was not started again")
            client.feed(line(PRESSED, (0.03, 0.0, PRESSED[2]), 500))
        assert daemon.stop() == 0
        ticks = daemon.summary()["ticks"]
    first, second = read_log(tmp_path / "a.mcap"), read_log(tmp_path / "a.restart1.mcap")
    assert first.truncated and not second.truncated
    assert set(first.records["tick"].tolist()) | set(second.records["tick"].tolist()) == set(range(1, ticks + 1))
    for log, least in ((first, 300), (second, 100)):  # the second one from the newest snapshot at its start on
        result = reexecute(log)
        assert result.ticks >= least and result.same
