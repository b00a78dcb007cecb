"""The floor to measure against: a loop that only wakes up, and an echo that only answers; each a process."""

import json
import subprocess
import sys

import zmq

from bridge import realtime


def lateness_us(seconds: float) -> list[float]:
    """Wake-up lateness of a bare absolute-deadline loop at 1 kHz on the servo's core, scheduled as the servo is."""
    command = [sys.executable, "-m", "tools.bench.bare", "loop", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def start_echo(address: str) -> subprocess.Popen:
    """A ROUTER that sends back what it gets, bound to address."""
    process = subprocess.Popen([sys.executable, "-m", "tools.bench.bare", "echo", address], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _as_servo() -> None:
    realtime.set_timer_slack()
    realtime.request_core(realtime.preferred_core())
    realtime.request_fifo()
    realtime.lock_memory()
    realtime.quiet_collector()


def _loop(seconds: float) -> None:
    _as_servo()
    late = realtime.measure_lateness(seconds)
    print(json.dumps([value * 1e-3 for value in late]))


def _echo(address: str) -> None:
    _as_servo()
    socket = zmq.Context().socket(zmq.ROUTER)
    socket.bind(address)
    print("bound", flush=True)
    while True:
        identity, message = socket.recv_multipart()
        socket.send_multipart((identity, message))


if __name__ == "__main__":
    _loop(float(sys.argv[2])) if sys.argv[1] == "loop" else _echo(sys.argv[2])
