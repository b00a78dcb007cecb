"""From sample to render and back, beside an echo of the same size; over tcp also with keys."""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import zmq

from bridge import keys
from bridge.client import Client
from bridge.wire import encode_sample
from tools.bench.bare import start_echo
from tools.bench.common import Figure, Progress, Result, percentiles
from tools.bench.daemon import Daemon

ECHO_PORT = 5987
TCP_PORT = 5980


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, default=Path("configs/demo.toml"))
    parser.add_argument("--ticks", type=int, default=6000, help="per transport")


def _round_trips(exchange, count: int) -> np.ndarray:
    spent = np.zeros(count)
    for i in range(count):
        began = time.perf_counter_ns()
        exchange(i)
        spent[i] = (time.perf_counter_ns() - began) * 1e-3
    return spent[count // 10 :]


def _echo(address: str, count: int) -> np.ndarray:
    process = start_echo(address)
    try:
        socket = zmq.Context.instance().socket(zmq.DEALER)
        socket.connect(address)
        message = encode_sample(1, 1, 1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), as_struct=True)

        def exchange(_: int) -> None:
            socket.send(message)
            socket.recv()

        spent = _round_trips(exchange, count)
        socket.close(0)
        return spent
    finally:
        process.kill()
        process.wait()


def _daemon(config: Path, transport: str, count: int) -> np.ndarray:
    with tempfile.TemporaryDirectory() as directory:
        variant = Path(directory) / config.name
        kind = "ipc" if transport == "ipc" else "tcp"
        extra = f'\n[sockets]\ntransport = "{kind}"\nport = {TCP_PORT}\n'
        if transport == "keys":
            keys.make_pair(Path(directory), keys.SERVER)
            keys.write_allowed(Path(directory) / keys.ALLOWED, {})
            extra += f'[access]\nkeys = "{keys.SERVER}{keys.SECRET_SUFFIX}"\nallow = "{keys.ALLOWED}"\n'
        variant.write_text(config.read_text() + extra)
        with Daemon(variant, "--clocking", "triggered") as daemon:
            daemon.wait_ready()
            with Client(daemon.name) as client:
                client.lease()
                client.exchange((0.0, 0.0, 0.0))
                client.arm(reanchor=True)
                return _round_trips(lambda i: client.exchange((0.0, 0.0, 1e-3 * np.sin(i * 0.01))), count)


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    figures: dict = {}
    ok = True
    for transport in ("ipc", "tcp", "keys"):
        with tempfile.TemporaryDirectory() as directory:
            address = f"ipc://{directory}/echo" if transport == "ipc" else f"tcp://127.0.0.1:{ECHO_PORT}"
            progress(f"{transport}: echo")
            before = _echo(address, arguments.ticks // 2)
            progress(f"{transport}: daemon")
            rtt = _daemon(arguments.config, transport, arguments.ticks)
            echo = np.concatenate([before, _echo(address, arguments.ticks // 2)])
        measured = {
            "rtt_us": percentiles(rtt),
            "echo_us": percentiles(echo),
            "over_echo_us": {key: round(value - percentiles(echo)[key], 3) for key, value in percentiles(rtt).items()},
        }
        ok = ok and measured["over_echo_us"]["p50"] <= 300.0
        figures |= measured if transport == "ipc" else {transport: measured}
    return Result(figures, ok)


FIGURE = Figure(
    "wire",
    "Triggered clocking over ipc, loopback tcp and tcp with keys: sample to render, beside a bare ZeroMQ echo.",
    add_arguments,
    run,
)
