"""A whole daemon in processes of its own, started and watched by a figure."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bridge.ring import TICKING, RingError, RingReader
from bridge.runtime import RuntimeDirectory, RuntimeDirectoryError
from haptics.states import EngagementState

START_TIMEOUT_S = 180.0


class Daemon:
    """`hapticd run CONFIG` under a name of its own, its ring read from here."""

    def __init__(self, config: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.name = f"bench-{uuid.uuid4().hex[:8]}"
        self.runtime = RuntimeDirectory(self.name)
        self.environment = {**os.environ, **(environment or {})}
        self.output = tempfile.TemporaryFile()  # noqa: SIM115
        self.began_ns = time.monotonic_ns()
        command = [sys.executable, "-m", "bridge.cli", "run", str(config), "--name", self.name, *arguments]
        self.process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.STDOUT, env=self.environment)
        self.ring: RingReader | None = None
        self.hands: list[subprocess.Popen] = []

    def _wait(self, reached: Callable[[RingReader], bool], what: str) -> None:
        until = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"the daemon ended with code {self.process.returncode}:\n{self.text()}")
            with contextlib.suppress(RingError, OSError):
                self.ring = self.ring or RingReader(self.runtime.ring_path)
                if reached(self.ring):
                    return
            time.sleep(0.01)
        raise RuntimeError(f"no {what} within {START_TIMEOUT_S:.0f} s:\n{self.text()}")

    def wait_ready(self) -> None:
        """Wait until clients are served (a triggered daemon does not tick before the first sample)."""
        self._wait(lambda ring: ring.header.ready == TICKING, "readiness")
        self._wait(lambda _: bool(self.endpoints()), "endpoints")

    def wait_first_tick(self) -> float:
        """Seconds from the start of the process to its first tick; raises RuntimeError with its output when it dies."""
        self._wait(lambda ring: ring.newest() is not None, "tick")
        seconds = (time.monotonic_ns() - self.began_ns) * 1e-9
        self.wait_ready()
        return seconds

    def wait_engaged(self) -> None:
        """Wait until a hand feels the scene at full gains."""
        self._wait(lambda ring: ring.newest()["output"]["state"] == EngagementState.ACTIVE, "engaged hand")

    def endpoints(self) -> dict[str, str]:
        """Addresses of the sockets; empty while the daemon is starting."""
        try:
            return self.runtime.read_endpoints()
        except RuntimeDirectoryError:
            return {}

    def text(self) -> str:
        self.output.seek(0)
        return self.output.read().decode(errors="replace")[-4000:]

    def hand(self, *arguments: str) -> subprocess.Popen:
        """Start `hapticd hand ...` as a client of this daemon."""
        command = [sys.executable, "-m", "bridge.cli", "hand", *arguments, "--name", self.name]
        process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.STDOUT, env=self.environment)
        self.hands.append(process)
        return process

    def pid_of(self, role: str) -> int:
        """Process id of a child by its module name, such as `bridge.servo`."""
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit():
                    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    if role in words and any(self.name in word for word in words):
                        return int(entry.name)
        raise RuntimeError(f"no process {role} of {self.name}")

    def records(self, seconds: float) -> np.ndarray:
        """All records that come within so many seconds, in order."""
        assert self.ring is not None
        parts = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            rows, lost = self.ring.read(4096)
            if lost:
                raise RuntimeError(f"the figure itself was too slow and lost {lost} records")
            parts.append(rows)
            time.sleep(0.02)
        return np.concatenate(parts)

    def stop(self) -> int:
        """End hands, then the daemon, as Ctrl-C does; returns the daemon's exit code."""
        for process in (*self.hands, self.process):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(20.0)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        if self.ring is not None:
            self.ring.close()
            self.ring = None
        return self.process.returncode

    def __enter__(self) -> "Daemon":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.output.close()
