"""What tests of whole processes share: a small scene, a daemon in processes of its own, and a raw client.

The client speaks ZeroMQ and msgpack and knows nothing of the project's own client library.
"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import zmq
from waiting import PATIENCE_S, wait_until

from bridge.log.recorder import Recorder, collect_attachments
from bridge.model_file import load_moving_bodies
from bridge.ring import RingReader
from bridge.runtime import RuntimeDirectory

ROOT = Path(__file__).resolve().parent.parent

CONFIG = """
[[scene.body]]
name = "plate"
primitive = "plate"
size = [0.2, 0.2, 0.01]
pose = { position = [0.0, 0.0, -0.005] }

[[scene.body]]
name = "block"
primitive = "box"
size = [0.02, 0.02, 0.02]
pose = { position = [0.06, 0.0, 0.05] }
motion = "held"

[tool]
tip_radius = 0.005
start = [0.0, 0.0, 0.02]

[coupling]
stiffness = 300.0
damping = 1.0
ramp_up_ms = 20.0
"""

FREE = (0.0, 0.0, 0.02)
"""Device position at the start of the tool."""

PRESSED = (0.0, 0.0, -0.001)
"""6 mm below where the tip rests: 1.8 N."""

RUN = """
import json, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from bridge.config import load_config
from bridge.assemble import assemble
from bridge.supervisor import run_daemon
options = json.loads(sys.argv[2])
config = load_config(Path(sys.argv[1]))
code = run_daemon(
    assemble(config, Path(sys.argv[1]).parent),
    on_ready=lambda facts: print(json.dumps(facts), flush=True),
    on_end=lambda summary: print(json.dumps({{"summary": summary}}), flush=True),
    **options,
)
sys.exit(code)
"""


def write_config(directory: Path, extra: str = "", scene: str = CONFIG) -> Path:
    """A configuration file of the test scene, or of another one, with further TOML appended."""
    path = directory / "scene.toml"
    path.write_text(scene + extra)
    return path


class DaemonProcess:
    """A daemon on the test scene or another one, started in a process of its own under a private runtime base."""

    def __init__(
        self,
        extra: str = "",
        *,
        scene: str = CONFIG,
        name: str = "default",
        base: Path | None = None,
        **options: Any,
    ) -> None:
        # Short, because the paths of local sockets must be.
        self._own = base is None
        self.base = Path(tempfile.mkdtemp(prefix="hd-", dir="/tmp")) if base is None else base
        self.name = name
        self.environment = {**os.environ, "HAPTICD_RUNTIME_DIR": str(self.base)}
        config = write_config(self.base, extra, scene)
        self.errors = open(self.base / f"{name}.stderr", "w+b")  # noqa: SIM115
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                RUN.format(root=str(ROOT)),
                str(config),
                json.dumps({"name": name, **options}),
            ],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=self.environment,
        )
        self.runtime = RuntimeDirectory(name, self.base)
        self.facts: dict[str, Any] = {}

    def wait_ready(self) -> "DaemonProcess":
        """Wait until the servo ticks; AssertionError with stderr when the daemon ends instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the daemon ended with {self.process.wait()}: {self.stderr()}"
        self.facts = json.loads(line)
        assert "endpoints" in self.facts, f"the daemon could not start: {self.wait()}, {self.stderr()}"
        return self

    def stderr(self) -> str:
        self.errors.flush()
        return Path(self.errors.name).read_text()

    def servo_pid(self) -> int:
        with RingReader(self.runtime.ring_path, register=False) as reader:
            return reader.header.writer_pid

    def wait(self, seconds: float = 60.0) -> int:
        """Exit code of the supervisor."""
        return self.process.wait(seconds)

    def summary(self) -> dict[str, Any]:
        """Totals that the servo reported at its end; call after `wait`."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readlines()[-1])["summary"]

    def stop(self) -> int:
        """End in order; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.wait()

    def __enter__(self) -> "DaemonProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.send_signal(signal.SIGTERM)
                self.process.wait(10.0)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.errors.close()
        if self._own:
            shutil.rmtree(self.base, ignore_errors=True)


class RawClient:
    """Speaks the protocol by hand."""

    def __init__(self, endpoints: dict[str, str]) -> None:
        self.endpoints = endpoints
        self.context = zmq.Context()
        self.control = self.context.socket(zmq.DEALER)
        self.device = self.context.socket(zmq.DEALER)
        for socket in (self.control, self.device):
            socket.set(zmq.LINGER, 0)
        self.control.connect(endpoints["control"])
        self.device.connect(endpoints["device"])
        self.ids = itertools.count(1)
        self.seq = 0
        self.session = 0

    def request(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send a request and return its reply."""
        number = next(self.ids)
        self.control.send(msgpack.packb({"v": 1, "id": number, "op": op, **fields}))
        return self.reply(number)

    def reply(self, number: int) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.control.poll(100):
                answer = msgpack.unpackb(self.control.recv())
                if answer["id"] == number:
                    return answer
        raise AssertionError(f"no reply to request {number}")

    def hello(self) -> dict[str, Any]:
        greeting = self.request("hello", client="raw", versions=[1], roles=["owner"], t_client=time.monotonic_ns())
        assert greeting["ok"], greeting
        self.session = greeting["session"]
        return greeting

    def own(self, op: str, **fields: Any) -> dict[str, Any]:
        """A request of this session; AssertionError when it is refused."""
        answer = self.request(op, session=self.session, **fields)
        assert answer["ok"], answer
        return answer

    def sample(self, position: Any, **fields: Any) -> int:
        """Send one sample; returns its number."""
        self.seq += 1
        message = {
            "v": 1,
            "kind": 1,
            "session": self.session,
            "seq": self.seq,
            "t_sample": time.monotonic_ns(),
            "position": [float(value) for value in position],
            "orientation": [0.0, 0.0, 0.0, 1.0],
            **fields,
        }
        self.device.send(msgpack.packb(message))
        return self.seq

    def render(self, timeout_ms: int = 20_000) -> dict[str, Any] | None:
        """Next render, None when none comes."""
        if not self.device.poll(timeout_ms):
            return None
        return msgpack.unpackb(self.device.recv())

    def feed(self, path: Any, period_s: float = 0.001) -> list[dict[str, Any]]:
        """Send one sample per period along `path` and return the renders that came."""
        renders = []
        due = time.monotonic()
        for position in path:
            due += period_s
            time.sleep(max(0.0, due - time.monotonic()))
            self.sample(position)
            while (render := self.render(0)) is not None:
                renders.append(render)
        return renders

    def close(self) -> None:
        self.control.close()
        self.device.close()
        self.context.term()

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def line(start: Any, end: Any, steps: int) -> np.ndarray:
    """(steps, 3) positions from start to end."""
    return np.linspace(start, end, steps)


def press(client: RawClient) -> list[dict[str, Any]]:
    """Lease, arm and press into the plate in about 0.3 s; ends while pressing, when that has been felt for 50 ticks."""
    client.hello()
    client.own("lease")
    client.feed([FREE] * 20)
    client.own("arm", reanchor=False)
    renders = client.feed([FREE] * 50)
    renders += client.feed(line(FREE, PRESSED, 80))
    return renders + stay_pressed(client)


def stay_pressed(client: RawClient, ticks: int = 50) -> list[dict[str, Any]]:
    """Press until so many ticks have felt it, and take hold again where lateness of this process lost it."""
    first = client.seq + 1
    renders: list[dict[str, Any]] = []
    since: list[int] = []

    def stay() -> None:
        new = client.feed([PRESSED] * 5)
        renders.extend(new)
        if new and new[-1]["state"] == 0:
            client.own("arm", reanchor=False)
            since.clear()
        elif new and new[-1]["state"] == 3 and new[-1]["seq"] >= first:
            since.append(new[-1]["tick"])

    wait_until(lambda: since and since[-1] - since[0] >= ticks, "the client does not press", meanwhile=stay)
    return renders


@contextlib.contextmanager
def late_recorder(daemon: DaemonProcess, path: Path):
    """A second recorder, which begins in the middle of the run."""
    done = threading.Event()
    with RingReader(daemon.runtime.ring_path) as ring:
        ring.seek_newest()
        moving = load_moving_bodies(daemon.runtime.model_path)
        recorder = Recorder(path, collect_attachments(daemon.runtime.path), body_ids=moving)
        recorder.attach(ring)

        def record() -> None:
            while not done.wait(0.02):
                recorder.step()

        thread = threading.Thread(target=record)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            assert recorder.finish()


def records_until(reader: RingReader, condition: Callable[[np.ndarray], Any]) -> np.ndarray:
    """Everything that the ring brings until ``condition`` holds for it."""
    records, lost = reader.read(4096)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        assert lost == 0
        if len(records) and condition(records):
            return records
        assert time.monotonic() < deadline, "the records do not say it"
        time.sleep(0.005)
        more, lost = reader.read(4096)
        records = np.concatenate([records, more])
