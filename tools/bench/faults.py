"""Things that go wrong while a hand presses as hard as its card allows, and how long until nothing pushes any more."""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import zmq

from bridge.exit_codes import ExitCode
from bridge.log.reader import read_log
from haptics.cards import load_card
from haptics.states import EngagementState, Reason
from tools.bench.common import Figure, Progress, Result, percentiles
from tools.bench.daemon import Daemon

CARD = "touch"
STALE_MS = 20.0
HORIZON_MS = 20.0
DISK_FILLS_S = 6.0
"""Longer than 1 MB of log lasts."""
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
start = [0.0, 0.0, 0.025]
[coupling]
stiffness = 400.0
ramp_up_ms = 50.0
[safety]
stale_after_ms = {STALE_MS}
[device]
card = "{CARD}"
"""


class Absent(Exception):
    """This machine cannot make that fault happen; the sentence says why."""


@contextlib.contextmanager
def small_disk(directory: Path, megabytes: int) -> Iterator[Path]:
    """A file system that is full after so many MB; raises Absent where mounting is not permitted."""
    place = directory / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        raise Absent("a small disk cannot be mounted here (run as root)")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


class Press:
    """A daemon with a pressing client, and everything the ring has said since the client pressed."""

    def __init__(self, directory: Path, mode: str = "hold", log: str | None = None) -> None:
        config = directory / "press.toml"
        config.write_text(CONFIG)
        self.daemon = Daemon(config, *(("--log", log) if log else ()))
        self.daemon.wait_first_tick()
        command = [sys.executable, "-m", "tools.bench.presser", self.daemon.name, mode]
        self.client = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.client.stdout is not None
        if not self.client.stdout.readline():
            self.__exit__()
            raise RuntimeError("the pressing client died, its reason is above")

    def watch(self, seconds: float) -> np.ndarray:
        return self.daemon.records(seconds)

    def __enter__(self) -> "Press":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.client.send_signal(signal.SIGCONT)
        self.client.kill()
        self.client.wait()
        self.daemon.stop()
        self.daemon.output.close()


def _force(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows["output"]["wrench"][:, :3], axis=1)


def _until_quiet(rows: np.ndarray, since_ns: int) -> float:
    """ms from a moment to the first tick after which the wrench stays zero; infinite when it does not."""
    pushing = np.flatnonzero(np.any(rows["output"]["wrench"] != 0, axis=1))
    if len(pushing) == 0:
        raise RuntimeError("the client was not pressing: the figure would mean nothing")
    if pushing[-1] + 1 >= len(rows):
        return float("inf")
    return (int(rows["timing"]["sent_ns"][pushing[-1] + 1]) - since_ns) * 1e-6


def _last_reason(rows: np.ndarray) -> str:
    changed = rows["output"]["event_from"] != rows["output"]["event_to"]
    # The cause is the reason for which RELEASING began, not the end of the ramp.
    began = changed & (rows["output"]["event_to"] == EngagementState.RELEASING)
    return Reason(int(rows["output"]["reason"][began][-1])).name if began.any() else "NONE"


def _row(rows: np.ndarray, safe_ms: float | None, reason: str, **more: object) -> dict:
    """A row's figures; safe_ms None where no time to safety was measured, as the hand goes on pressing."""
    limit = load_card(CARD).force_max
    return {
        "time_to_safe_ms": safe_ms,
        "over_limit_N": round(max(float(_force(rows).max()) - limit, 0.0), 6),
        "peak_N": round(float(_force(rows).max()), 3),
        "reason": reason,
        **more,
    }


def _after_last_sample(rows: np.ndarray) -> float:
    fresh = np.flatnonzero(rows["input"]["fresh"])
    received = int(rows["timing"]["t_received"][fresh[-1]])
    return _until_quiet(rows, received + int(STALE_MS * 1e6))


def client_killed(directory: Path) -> dict:
    with Press(directory) as press:
        press.client.kill()
        rows = press.watch(0.5)
        row = _row(rows, _after_last_sample(rows), _last_reason(rows))
    return {**row, "ok": row["reason"] == "SAMPLE_STALE"}


def client_stalled(directory: Path) -> dict:
    with Press(directory) as press:
        press.client.send_signal(signal.SIGSTOP)
        rows = press.watch(0.5)
        row = _row(rows, _after_last_sample(rows), _last_reason(rows))
    return {**row, "ok": row["reason"] == "SAMPLE_STALE"}


def client_sends_nan(directory: Path) -> dict:
    with Press(directory, "nan") as press:
        rows = press.watch(0.5)
        row = _row(rows, _after_last_sample(rows), _last_reason(rows))
    return {**row, "ok": row["reason"] == "SAMPLE_REJECTED"}


def client_jumps(directory: Path) -> dict:
    with Press(directory, "jump") as press:
        rows = press.watch(0.5)
        jumped = np.flatnonzero(rows["output"]["event_to"] == EngagementState.RELEASING)
        row = _row(rows, _until_quiet(rows, int(rows["timing"]["t_received"][jumped[0]])), _last_reason(rows))
        row["state_after"] = EngagementState(int(rows["output"]["state"][-1])).name
    return {**row, "ok": row["reason"] == "DEVICE_JUMP" and row["state_after"] == "FAULT"}


def client_clock_steps_back(directory: Path) -> dict:
    """By 10 s: from then on its samples look old, and old samples may not push."""
    with Press(directory, "clock") as press:
        rows = press.watch(0.5)
        old = np.flatnonzero((rows["output"]["event_to"] == EngagementState.RELEASING) & (rows["output"]["gain"] > 0))
        row = _row(rows, _until_quiet(rows, int(rows["timing"]["t_received"][old[0]])), _last_reason(rows))
    return {**row, "ok": row["reason"] == "SAMPLE_STALE"}


def recorder_killed(directory: Path) -> dict:
    log = directory / "run.mcap"
    with Press(directory, log=str(log)) as press:
        press.watch(1.0)
        pid = press.daemon.pid_of("bridge.log.recorder")
        killed_at = time.monotonic_ns()
        os.kill(pid, signal.SIGKILL)
        rows = press.watch(2.0)
        restarted = press.daemon.pid_of("bridge.log.recorder") != pid
    found = read_log(log).records
    last_kept_ns = int(found["timing"]["started_ns"][-1])
    around = (rows["timing"]["planned_ns"] > killed_at - 5_000_000) & (
        rows["timing"]["planned_ns"] < killed_at + 50_000_000
    )
    missed = int(rows["timing"]["missed"][around].sum())
    lost_ms = (killed_at - last_kept_ns) * 1e-6
    row = _row(
        rows, None, "NONE", missed_around_the_kill=missed, lost_of_the_log_ms=round(lost_ms, 1), restarted=restarted
    )
    return {**row, "ok": missed == 0 and lost_ms <= 100.0 and restarted}


def disk_full(directory: Path) -> dict:
    """The disk of the log fills up; ticking must not care and somebody must be told."""
    with small_disk(directory, 1) as disk, Press(directory, log=str(disk / "run.mcap")) as press:
        socket = zmq.Context.instance().socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(press.daemon.endpoints()["events"])
        rows = press.watch(DISK_FILLS_S)
        told = False
        while not told and socket.poll(1500):
            told = b"disk_full" in socket.recv()
        socket.close(0)
    missed = int(rows["timing"]["missed"].sum())
    held = bool(np.all(_force(rows)[-100:] > 0))
    row = _row(rows, None, "disk_full" if told else "NONE", missed=missed, still_rendering=held)
    return {**row, "ok": held and told}


def slow_subscriber(directory: Path) -> dict:
    """An observer that never reads."""
    with Press(directory) as press:
        socket = zmq.Context.instance().socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.setsockopt(zmq.RCVHWM, 1)
        socket.connect(press.daemon.endpoints()["state"])
        rows = press.watch(2.0)
        socket.close(0)
    held = bool(np.all(_force(rows)[-100:] > 0))
    row = _row(rows, None, "NONE", missed=int(rows["timing"]["missed"].sum()), still_rendering=held)
    return {**row, "ok": held}


def servo_killed(directory: Path) -> dict:
    """The supervisor stops the rest and says so; how fast a device is safe is its adapter's, which gets `valid_for`."""
    with Press(directory) as press:
        rows = press.watch(0.3)
        began = time.monotonic()
        os.kill(press.daemon.pid_of("bridge.servo"), signal.SIGKILL)
        code = press.daemon.process.wait(20.0)
        ended_s = time.monotonic() - began
    valid_ms = float(rows["output"]["valid_for_ns"][-1]) * 1e-6
    more = {"exit_code": code, "daemon_ended_s": round(ended_s, 2), "impedance_valid_for_ms": valid_ms}
    row = _row(rows, None, ExitCode(code).name, **more)
    return {**row, "ok": code == ExitCode.SERVO_DIED}


def supervisor_killed(directory: Path) -> dict:
    """The servo has the stale horizon to notice that nobody watches over it, as it has for a client."""
    with Press(directory) as press:
        press.watch(0.2)
        press.daemon.process.kill()
        killed_at = time.monotonic_ns()
        rows = press.watch(1.0)
        row = _row(rows, _until_quiet(rows, killed_at + int(STALE_MS * 1e6)), _last_reason(rows))
    return {**row, "ok": row["reason"] == "SUPERVISOR_LOST"}


ROWS: dict[str, Callable[[Path], dict]] = {
    function.__name__: function
    for function in (
        client_killed,
        client_stalled,
        client_sends_nan,
        client_jumps,
        client_clock_steps_back,
        recorder_killed,
        disk_full,
        slow_subscriber,
        servo_killed,
        supervisor_killed,
    )
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", default=",".join(ROWS), help="comma-separated, from: " + ", ".join(ROWS))


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    rows: dict[str, dict] = {}
    notes: list[str] = []
    for name in arguments.rows.split(","):
        outcomes = []
        try:
            for repeat in range(arguments.repeats):
                progress(f"{name}, {repeat + 1} of {arguments.repeats}")
                with tempfile.TemporaryDirectory() as directory:
                    outcomes.append(ROWS[name](Path(directory)))
        except Absent as reason:
            notes.append(f"{name} was not tried: {reason}")
            continue
        times = [outcome.pop("time_to_safe_ms") for outcome in outcomes]
        safe = np.array([time_ms for time_ms in times if time_ms is not None])
        worst = next((outcome for outcome in outcomes if not outcome["ok"]), outcomes[-1])
        over = max(outcome["over_limit_N"] for outcome in outcomes)
        ok = all(outcome["ok"] for outcome in outcomes) and over == 0.0 and bool(np.all(safe <= HORIZON_MS))
        rows[name] = {"time_to_safe_ms": percentiles(safe, 2), **worst, "over_limit_N": over, "ok": ok}
    failed = sum(not row["ok"] for row in rows.values())
    return Result({"rows_failed": failed, "rows": rows, "repeats": arguments.repeats}, failed == 0, notes=notes)


FIGURE = Figure(
    "faults",
    "Kills, stalls, NaN, jumps, a full disk and slow observers while pressing as hard as the card allows.",
    add_arguments,
    run,
)
