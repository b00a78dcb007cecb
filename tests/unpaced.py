"""A hand at a triggered daemon in a process of its own that waits for no clock, only for the recorder."""

import os
import time
from pathlib import Path
from typing import Any

from daemons import DaemonProcess

from bridge.client import Client
from bridge.hands import HandReport, run_hand
from bridge.motions import Motion, SceneView, make_motion
from bridge.ring import RingReader


class _Unpaced:
    """A motion that waits now and then until what records its ticks is not far behind."""

    MOST_BEHIND = 1000
    """Records, of the 4096 that the ring keeps."""

    def __init__(self, motion: Motion, ring: RingReader) -> None:
        self._motion = motion
        self._ring = ring
        self._steps = 0
        self.first = motion.first

    @property
    def duration_s(self) -> float | None:
        return self._motion.duration_s

    def step(self, dt: float, wrench: Any) -> Any:
        self._steps += 1
        if self._steps % 100 == 0:
            deadline = time.monotonic() + 30.0
            while any(self._ring.header.head - row["position"] > self.MOST_BEHIND for row in self._recorders()):
                assert time.monotonic() < deadline, "the recorder does not read"
                time.sleep(0.005)
        return self._motion.step(dt, wrench)

    def _recorders(self) -> list[dict[str, int]]:
        return [row for row in self._ring.readers() if row["pid"] == os.getpid() or is_recorder(row["pid"])]


def is_recorder(pid: int) -> bool:
    """Whether the process is there and a recorder."""
    try:
        return b"bridge.log.recorder" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


def unpaced_hand(daemon: DaemonProcess, kind: str, **options: Any) -> HandReport:
    """`run_hand` at a triggered daemon, a tick per sample, as fast as the samples are answered and recorded."""
    with Client(daemon.name) as client:
        motion = make_motion(kind, SceneView.of(client, daemon.name), **options)
    with RingReader(daemon.runtime.ring_path, register=False) as ring:
        return run_hand(_Unpaced(motion, ring), daemon=daemon.name, paced=False)
