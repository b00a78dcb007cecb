"""A process that is asked to end by a signal, or whose terminal is closed."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import fcntl, signal, sys, termios, threading, time
from bridge.ending import asked_to_end
if "terminal" in sys.argv:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGHUP, signal.SIG_IGN if "nohup" in sys.argv else signal.SIG_DFL)
stop = threading.Event()
with asked_to_end(stop, again_ends="again" in sys.argv):
    print("ready", flush=True)
    while not stop.is_set():
        time.sleep(0.001)
    if "again" in sys.argv:
        signal.raise_signal(signal.SIGHUP)
    print("ramps down", flush=True)
with open(sys.argv[1], "w") as file:
    file.write("in order")
"""


def start(tmp_path, *how, stream=subprocess.PIPE):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "end"), *how],
        stdin=stream,
        stdout=stream,
        stderr=stream,
        cwd=ROOT,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(tmp_path, number):
    """Also where another SIGHUP follows: a shell passes on what came from the terminal too."""
    process = start(tmp_path, "again")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, b"ramps down\n", b"")
    assert (tmp_path / "end").read_text() == "in order"


def test_a_hangup_that_is_ignored_stays_so(tmp_path):
    process = start(tmp_path, "nohup")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGHUP)
    assert signal.SIGHUP in ignored_by(process.pid)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and out == b"ramps down\n"


def ignored_by(pid):
    """Signals that a process ignores (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    return {number for number in signal.Signals if mask >> (number - 1) & 1}


def test_a_terminal_that_is_closed_ends_it_in_order(tmp_path):
    """Although what it says from then on cannot be written."""
    ours, its = pty.openpty()
    process = start(tmp_path, "terminal", stream=its)
    os.close(its)
    said = b""
    while b"ready" not in said:
        said += os.read(ours, 100)
    os.close(ours)
    process.wait(60)
    assert process.returncode == 0 and (tmp_path / "end").read_text() == "in order"
