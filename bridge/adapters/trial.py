"""The processes of a conformance test: a real daemon, the adapter, the relay between them, and what the device felt.

A daemon and the adapter are processes of their own, between them a relay (`relay.py`) that can push, break and hold
back renders; at the device a journal of what it felt (`journal.py`) is written by its emulator, or by a witness before
a real one. What is checked with them stands in `conformance.py`.

Times of ramps are counted as the last line counts them, at most `LONGEST_CYCLE_S` a cycle, so that a machine that held
the adapter up does not fail it; the time by the clock is told too.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from bridge.adapters.benches import Bench
from bridge.adapters.journal import WRITTEN, Journal
from bridge.adapters.relay import Relay
from bridge.client import Client
from haptics.cards import DeviceCard, load_card
from haptics.last_line import LONGEST_CYCLE_S, Limits
from haptics.states import EngagementState

PATIENCE_S = 30.0
"""For what must come about, however busy the machine; a daemon may have kernels to load."""
REACH_S = 5.0
"""For a force that should be felt at once."""
START_S = 120.0
PUSH = 0.3
"""Share of the largest force with which it is pushed."""
FADE_S = Limits.fade_s
VALID_MS = 100.0
"""How long a render may be used here: a busy machine delivers them late."""

SCENE = """
[[scene.body]]
name = "plane"
primitive = "plane"
size = [0.2, 0.2]
pose = {{ position = [0.0, 0.0, -0.2] }}

[tool]
tip_radius = 0.005
start = [0.0, 0.0, 0.0]

[device]
card = "{card}"

[coupling]
ramp_up_ms = 20.0
valid_for_ms = {valid}

[safety]
hold_after_ms = 200.0
stale_after_ms = 800.0
"""


class Missed(AssertionError):
    """What a check waited for did not come about."""


class Trial:
    """The processes of one test."""

    def __init__(self, what: str, bench: Bench, *, stop: threading.Event | None = None) -> None:
        """``stop``: once set, whatever waits raises KeyboardInterrupt. Raises CardError."""
        self._what, self._bench = what, bench
        self._stop = stop if stop is not None else threading.Event()
        self.card: DeviceCard = load_card(bench.card)
        self._card_file = f"{self.card.name}.toml"
        self.limits: dict[str, Any] = {}
        self.tick_s = 1e-3
        self._daemon: subprocess.Popen | None = None
        self._adapter: subprocess.Popen | None = None
        self._second: subprocess.Popen | None = None
        self._relay: Relay | None = None
        self._started = 0
        self._base = Path(tempfile.mkdtemp(prefix="hda-", dir="/tmp"))  # short: paths of local sockets must be
        self._environment = {**os.environ, "HAPTICD_RUNTIME_DIR": str(self._base / "run")}
        try:
            self._log = (self._base / "log").open("w+b")
            self.journal = Journal.make(self._base / "journal")
            shutil.copyfile(bench.card, self._base / self._card_file)
        except BaseException:
            shutil.rmtree(self._base, ignore_errors=True)
            raise

    def __enter__(self) -> Self:
        try:
            self._bench.start(self._base, self.journal)
            self._start_daemon()
            control = self._endpoints()["control"]
            self._relay = Relay(f"ipc://{self._base}/relay", self._endpoints()["device"]).start()
            (self._base / "endpoints.json").write_text(json.dumps({"control": control, "device": self._relay.address}))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._second, self._adapter, self._daemon):
            self._end(process)
        if self._relay is not None:
            self._relay.stop()
        self._bench.stop()
        self._log.close()
        shutil.rmtree(self._base, ignore_errors=True)

    @staticmethod
    def _end(process: subprocess.Popen | None) -> None:
        """End a process, in order or else by force, with what it has started."""
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    # -- processes ---------------------------------------------------------------------------------------------------

    def _start_daemon(self) -> None:
        config = self._base / "scene.toml"
        config.write_text(SCENE.format(card=self._card_file, valid=VALID_MS))
        path = self._base / "run" / "default" / "endpoints.json"
        path.unlink(missing_ok=True)  # of one that was killed
        self._daemon = self._start("run", str(config))
        self._wait(path.exists, "the daemon does not start", START_S, self._daemon)
        with Client(self._endpoints(), "conformance", timeout_ms=20_000) as client:
            self.limits = client.greeting["limits"]
            self.tick_s = client.tick_s

    def _endpoints(self) -> dict[str, str]:
        return json.loads((self._base / "run" / "default" / "endpoints.json").read_text())

    def _start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "bridge.cli", *arguments],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**self._environment, **self._bench.environment},
            start_new_session=True,
        )

    def _start_adapter(self) -> subprocess.Popen:
        settings = [f"--set={key}={value}" for key, value in self._bench.settings.items()]
        witness = [] if self._bench.journals else ["--journal", str(self.journal.path)]
        endpoints = str(self._base / "endpoints.json")
        return self._start("adapter", self._what, "--endpoints", endpoints, *settings, *witness)

    def _engaged(self, running: bool = False) -> None:
        """The adapter runs, and has forces."""
        if not running:
            self._adapter = self._start_adapter()
            self._started = self.journal.count
        adapter = self._adapter
        assert adapter is not None
        begun = time.monotonic_ns()
        self._wait(
            lambda: self.relay.state == EngagementState.ACTIVE and self.relay.last_passed > begun,
            "forces do not come on",
            START_S,
            adapter,
        )

    @property
    def relay(self) -> Relay:
        """Between the two."""
        assert self._relay is not None
        return self._relay

    def _said(self) -> str:
        return (self._base / "log").read_text(errors="replace")

    def _wait(
        self,
        condition: Callable[[], Any],
        what: str,
        seconds: float = PATIENCE_S,
        process: subprocess.Popen | None = None,
    ) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            self._go_on()
            if process is not None and process.poll() is not None:
                raise Missed(f"{what}: it ended with code {process.returncode}; {self._last_said()}")
            if time.monotonic() > deadline:
                raise Missed(f"{what} within {seconds:g} s; {self._last_said()}")
            time.sleep(0.002)

    def _go_on(self) -> None:
        """Raise KeyboardInterrupt once the test is asked to end."""
        if self._stop.is_set():
            raise KeyboardInterrupt

    def _pause(self, seconds: float) -> None:
        self._stop.wait(seconds)
        self._go_on()

    def _code(self, process: subprocess.Popen, what: str, seconds: float = PATIENCE_S) -> int:
        """Exit code of a process that is about to end."""
        self._wait(lambda: process.poll() is not None, what, seconds)
        return int(process.returncode)

    def _last_said(self) -> str:
        lines = self._said().strip().splitlines()
        return f"last said: {lines[-1]}" if lines else "nothing was said"

    # -- what was felt -------------------------------------------------------------------------------------------------

    def _written(self, first: int) -> np.ndarray:
        return self.journal.rows(first, WRITTEN)

    def _wrench(self) -> np.ndarray:
        """(6,) [N, N·m], at the device now."""
        for rows in (8, 1000):  # a device whose own watchdog took forces away is read for a while, and not written to
            written = self._written(max(self.journal.count - rows, 0))
            if len(written):
                return written[-1]["wrench"]
        return np.zeros(6)

    def _force(self) -> np.ndarray:
        """(3,) N, at the device now."""
        return self._wrench()[:3]

    def _push(self, wrench: Sequence[float] | np.ndarray) -> None:
        self.relay.push = tuple(float(value) for value in wrench)  # type: ignore[assignment]

    def _reaches(self, force: np.ndarray, within: float) -> None:
        """Wait until a force (3,) N is felt."""
        self._wait(lambda: float(np.linalg.norm(self._force() - force)) < within, "it is not felt", REACH_S)

    def _pushed(self) -> None:
        """Something is felt for good: the push, whole."""
        largest = self.limits["force_max"]
        self._push((PUSH * largest, 0.0, 0.0, 0.0, 0.0, 0.0))
        self._wait(
            lambda: abs(float(np.linalg.norm(self._force())) - PUSH * largest) < 0.02 * largest,
            f"a push of {PUSH * largest:.2f} N is not felt",
        )

    def _ramp(self, first: int, since_ns: int, allowed_s: float) -> tuple[bool, str]:
        """Whether a push went down to zero, without a step, within the counted time after a moment."""
        with contextlib.suppress(Missed):
            self._wait(lambda: self._over() or self._rests_since(since_ns), "it does not end", 3.0)
        self._pause(0.05)
        rows = self._written(first)
        course, times = np.linalg.norm(rows["wrench"][:, :3], axis=1), rows["t"]
        rows = rows[rows["t"] >= since_ns]
        sizes = np.linalg.norm(rows["wrench"][:, :3], axis=1)
        if not len(rows) or sizes[-1] != 0.0:
            left = float(sizes[-1]) if len(rows) else float(np.linalg.norm(self._force()))
            return False, f"{left:.2f} N are left for good"
        zero = int(np.flatnonzero(sizes)[-1]) + 1 if sizes.any() else 0
        counted = float(np.minimum(np.diff(rows["t"][: zero + 1]) * 1e-9, LONGEST_CYCLE_S).sum())
        whole = (int(rows["t"][zero]) - since_ns) * 1e-9
        # Who lets go early, by its own idea of a render's age, must not do it by a step either.
        drops = -np.diff(course, prepend=course[0])
        # What the longest cycle takes of the ramp, or several that one row stands for where the device was held up, or
        # two where messages wait for their answers; a tenth for how exactly the push was felt before.
        spans = np.maximum(np.diff(times, prepend=times[0]) * 1e-9, LONGEST_CYCLE_S)
        bounds = PUSH * self.limits["force_max"] * spans / FADE_S * (2.2 if self._bench.apart else 1.1)
        worst = int(np.argmax(drops / bounds))
        largest, step = float(drops[worst]), float(bounds[worst])
        text = f"zero after {counted * 1e3:.1f} ms counted ({whole * 1e3:.1f} ms by the clock), at most "
        text += f"{allowed_s * 1e3:.0f} ms; largest step {largest:.2f} N, at most {step:.2f} N"
        return counted <= allowed_s and largest <= step, text

    def _rests_since(self, since_ns: int) -> bool:
        """Whether the device was given zero after a moment, and last."""
        rows = self._written(max(self.journal.count - 8, 0))
        return len(rows) > 0 and int(rows["t"][-1]) >= since_ns and not rows["wrench"][-1][:3].any()

    def _over(self) -> bool:
        return self._adapter is not None and self._adapter.poll() is not None

    def end_adapter(self) -> None:
        """Kill the adapter, and wait until the daemon has its device back."""
        if self._adapter is not None and not self._over():
            os.killpg(self._adapter.pid, signal.SIGKILL)
            self._adapter.wait()
        self._wait(lambda: self._status()["owner"] is None, "the lease does not end")

    def _status(self) -> dict[str, Any]:
        with Client(self._endpoints(), "conformance", timeout_ms=20_000) as client:
            return client.status()
