"""Where the faults figure strikes: a daemon, a client that presses as hard as the card allows, and what its ring says.

Ticks that the machine held up are told from those that it did not, since a time in ticks is no better than they are.
"""

import collections
import contextlib
import math
import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from haptics.states import EngagementState, Reason
from tools.bench.daemon import Daemon

CARD = "touch"
STALE_MS = 20.0
HORIZON_MS = 20.0
LATEST_STRIKE_S = 0.3
"""After a client has begun to press: as long as its work takes to come round."""
WINDOW_NS = int((STALE_MS + HORIZON_MS) * 1e6)
"""From a strike to the end of what must follow it."""
PERIOD_NS = 1_000_000
HELD_UP_MS = {"work": 3.0, "hold": STALE_MS / 2}
"""Late by so much altogether, a window says nothing of what that explains. With a client that works the time to safety
is measured, and the horizon is a few ticks longer than a ramp. One that holds is let go after a stale horizon, and what
holds up the servo holds up the client as well: the age of a sample has both in it."""
HELD = (EngagementState.ENGAGING, EngagementState.ACTIVE, EngagementState.HOLD)
"""States of a hand that is not let go; one that works is so at each clutch, and is struck then too."""
CONFIG = f"""
[scene]
name = "press"
[[scene.body]]
name = "ground"
primitive = "box"
size = [0.4, 0.4, 0.05]
pose = {{ position = [0.0, 0.0, -0.025] }}
[tool]
tip_radius = 0.005
start = [0.0, 0.0, 0.015]
[coupling]
stiffness = 400.0
ramp_up_ms = 50.0
ramp_down_ms = 40.0
[safety]
stale_after_ms = {STALE_MS}
lease_ms = 100.0
[device]
card = "{CARD}"
"""


class Void(Exception):
    """A repetition that says nothing: a busy machine kept the client from pressing, or from misbehaving, in time."""


class Site:
    """A daemon, clients that press when asked to, and what the ring has said since the last of them was asked for."""

    def __init__(self, directory: Path, log: Path | None = None) -> None:
        """Start both and wait for neither."""
        config = directory / "press.toml"
        config.write_text(CONFIG)
        self.directory, self.log = directory, log
        self.daemon = Daemon(config, *(("--log", str(log)) if log else ()))
        command = [sys.executable, "-m", "tools.bench.presser", self.daemon.name]
        self.pressers = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.client = 0
        self.rows: list[np.ndarray] = []
        self.windows: collections.Counter[str] = collections.Counter()
        """``before`` strikes and ``after`` them; ``before_late``, ``after_late``: those of them that were held up."""
        self.mode = "work"

    def ready(self) -> "Site":
        """Wait until it ticks."""
        self.daemon.wait_first_tick()
        return self

    def press(self, mode: str, seed: int) -> None:
        """A new client presses, and what the ring said before is forgotten."""
        self.release()
        self.mode = mode
        assert self.pressers.stdin is not None and self.pressers.stdout is not None
        assert self.daemon.ring is not None
        self.daemon.ring.seek_newest()
        self.rows = []
        self.pressers.stdin.write(f"{mode} {seed}\n".encode())
        until = time.monotonic() + 20.0
        while not select.select([self.pressers.stdout], [], [], 0.0)[0]:
            if time.monotonic() > until:
                raise RuntimeError("the pressing client did not press, its reason is above")
            self.watch(0.02)
        self.client = int(self.pressers.stdout.readline().split()[1])

    def aim(self, mode: str, draw: random.Random, earliest: float = 0.0) -> None:
        """A new client presses until a random moment; again if a busy machine made it lose its hold before that."""
        for _ in range(10):
            self.press(mode, draw.getrandbits(32))
            begun = len(self.since())
            self.watch(draw.uniform(earliest, earliest + LATEST_STRIKE_S))
            rows = self.since()[begun:]
            planned, output = rows["timing"]["planned_ns"], rows["output"]
            self._worst_ms("before", rows, planned[0], planned[-1])
            changed = output["event_from"] != output["event_to"]
            let_go = np.any(changed & (output["reason"] == Reason.SAMPLE_STALE))
            if not let_go and (mode == "work" or output["state"][-1] in HELD):
                return
        raise Void("the pressing client was late all the time")

    def watch(self, seconds: float) -> None:
        self.rows.append(self.daemon.records(seconds))

    def since(self) -> np.ndarray:
        """All records since the client was asked for."""
        self.rows = [np.concatenate(self.rows)]
        return self.rows[0]

    def _worst_ms(self, which: str, rows: np.ndarray, from_ns: int, to_ns: int) -> float:
        """Count the windows between two moments (ns); by how much the worst was held up (ms), 0 if it is no matter."""
        late_ms = [held_up_ms(rows, begins) for begins in range(from_ns, to_ns - WINDOW_NS + 1, WINDOW_NS)]
        held_up = [each for each in late_ms if each >= HELD_UP_MS[self.mode]]
        self.windows[which] += len(late_ms)
        self.windows[f"{which}_late"] += len(held_up)
        return max(held_up, default=0.0)

    def held_up_after(self, at_ns: int) -> float:
        """How long (ms) the ticks were held up that a strike at a moment (ns) is judged by, 0 if that is no matter:
        those of a window, or with a client that holds all that followed."""
        rows = self.since()
        end_ns = at_ns + WINDOW_NS
        if self.mode == "hold":
            end_ns = max(end_ns, int(rows["timing"]["planned_ns"][-1]))
        return self._worst_ms("after", rows, at_ns, end_ns)

    def strike(self, number: int) -> int:
        """Send a signal to the client; returns when, ns."""
        at = time.monotonic_ns()
        try:
            os.kill(self.client, number)
        except ProcessLookupError:
            raise Void("the client was let go, and gave up") from None
        return at

    def release(self) -> None:
        """The client is gone, at whatever state it was stopped."""
        if self.client:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.client, signal.SIGKILL)
        self.client = 0

    def close(self) -> None:
        self.release()
        self.pressers.kill()
        self.pressers.wait()
        self.daemon.stop()
        self.daemon.output.close()

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def held_up_ms(rows: np.ndarray, from_ns: int) -> float:
    """How late (ms) ticks of the window that begins at a moment (ns) were over, altogether, of those a period late.

    A machine that withholds the processor does it while the servo sleeps, and while it computes. What the daemon itself
    does to its ticks is the figure ``loop``'s; what a strike does, :func:`caused_by_strikes`'s.
    """
    planned, sent = rows["timing"]["planned_ns"], rows["timing"]["sent_ns"]
    late = (sent - planned)[(sent > from_ns) & (planned < from_ns + WINDOW_NS)]
    return float(late[late >= PERIOD_NS].sum()) * 1e-6


def caused_by_strikes(windows: dict[str, int]) -> bool:
    """Whether the servo is held up after strikes more often than before them, by more than chance: three standard
    deviations of the difference between two shares. Then it is the fault that does it, not the machine."""
    before, after = max(windows["before"], 1), max(windows["after"], 1)
    share = (windows["before_late"] + windows["after_late"]) / (before + after)
    more = windows["after_late"] / after - windows["before_late"] / before
    return more > 3.0 * math.sqrt(share * (1.0 - share) * (1.0 / before + 1.0 / after))
