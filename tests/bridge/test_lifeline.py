"""A death is told before the kernel has taken the dead process apart; letting go in good order is not a death."""

import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bridge.lifeline import SIZE, Lifeline
from bridge.realtime import LINUX

pytestmark = pytest.mark.skipif(not LINUX, reason="robust mutexes are Linux")

AT = 128

HOLDER = f"""
import mmap, sys, time
import numpy as np
from bridge.lifeline import Lifeline
with open(sys.argv[1], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 4096)
assert Lifeline(memory, {AT}).hold()
filled = np.ones(int(sys.argv[2]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "page"
    path.write_bytes(bytes(4096))
    return path


@pytest.fixture
def memory(path: Path):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 4096) as memory:
        yield memory


@pytest.fixture
def line(memory):
    line = Lifeline(memory, AT)
    yield line
    line.close()


def holder(path: Path, doubles: int = 1) -> subprocess.Popen:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", HOLDER, str(path), str(doubles)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(root)})
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    return process


def wait_until_cut(line: Lifeline, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not line.cut():
        assert time.monotonic() < end, "the death was never told"


def test_a_line_that_nobody_holds_is_not_cut(line):
    assert not line.cut()


def test_a_killed_holder_is_seen_again_and_again_and_by_everybody(path, memory, line):
    with holder(path) as process:
        assert not line.cut() and not line.cut()
        process.kill()
        wait_until_cut(line)
    assert line.cut()
    other = Lifeline(memory, AT)
    assert other.cut()
    other.close()
    assert line.cut()


def test_a_stopped_holder_is_not_dead(path, line):
    with holder(path) as process:
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        assert not line.cut()
        process.kill()
        wait_until_cut(line)


def test_the_death_of_a_large_process_is_told_before_its_memory_is_freed(path, line):
    with holder(path, 100_000_000) as process:
        process.kill()
        wait_until_cut(line)
        assert process.poll() is None, "the process was gone before its lifeline told it"


def test_a_holder_that_ends_without_letting_go_is_cut(memory, line):
    lines = []

    def hold_and_end():
        lines.append(Lifeline(memory, AT))
        assert lines[0].hold()

    thread = threading.Thread(target=hold_and_end)
    thread.start()
    thread.join()
    wait_until_cut(line)


def test_one_holder_at_a_time(memory, line):
    assert line.hold()
    second = Lifeline(memory, AT)
    assert not second.hold() and not line.hold()
    second.close()
    assert not line.cut()


def test_letting_go_is_not_a_death_and_leaves_the_memory_free(path, line):
    with open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 4096)
    held = Lifeline(memory, AT)
    assert held.hold()
    held.close()
    memory.close()
    assert not line.cut()
    assert line.hold()


def test_the_neighbours_are_left_alone(memory, line):
    memory[:] = bytes([7]) * AT + bytes(SIZE) + bytes([7]) * (4096 - AT - SIZE)
    assert line.hold()
    line.close()
    assert memory[:AT] == bytes([7]) * AT
    assert memory[AT + SIZE :] == bytes([7]) * (4096 - AT - SIZE)


def test_a_system_without_robust_mutexes_says_so(memory, monkeypatch):
    monkeypatch.setattr("bridge.lifeline._threads", lambda: None)
    line = Lifeline(memory, AT)
    assert not line.hold()
    assert not line.cut()
    line.close()
