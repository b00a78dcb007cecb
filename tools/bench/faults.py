"""Things that go wrong while a hand presses as hard as its card allows, and how long until nothing pushes any more.

Each repetition strikes at a random moment (of a seed that row and repetition make) of a client's work: pressing, late,
in the ramp of a clutch, engaging again. Kills are those of real processes. A daemon that survives a fault serves the
next repetition too; where it dies, two are started at a time, and nothing else is measured meanwhile than how a daemon
ends whose servo was killed.

A repetition is made again when the machine kept its client from pressing, or held up the ticks that it is judged by;
the table counts both. That excuses no force beyond the card's, no force that stays for longer than ticks were held up,
and no fault that itself holds up the servo: a row has failed whose strikes are followed by that more often than it
happens before them.
"""

import argparse
import collections
import contextlib
import functools
import itertools
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import zmq

from bridge.exit_codes import ExitCode
from bridge.log.reader import read_log
from haptics.cards import load_card
from haptics.states import EngagementState, Reason
from tools.bench.common import Figure, Progress, Result, percentiles
from tools.bench.fault_site import CARD, HORIZON_MS, PERIOD_NS, STALE_MS, Site, Void, caused_by_strikes
from tools.bench.kept import Kept

WATCH_S = 0.12
"""After a strike: several times the horizons, and longer than the lease."""
DISK_MB = 16
VOID_AT_MOST = 10
PATIENCE_S = 120.0
"""For all attempts at one repetition: what keeps a machine busy may go on for a minute."""
PAUSE_S = 5.0
"""Between two attempts, at most."""


class Absent(Exception):
    """This machine cannot make that fault happen; the sentence says why."""


@contextlib.contextmanager
def small_disk(directory: Path, megabytes: int) -> Iterator[Path]:
    """A file system of so many MB; raises Absent where mounting is not permitted."""
    place = directory / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        raise Absent("a small disk cannot be mounted here (run as root)")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def _force(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows["output"]["wrench"][:, :3], axis=1)


def _held(rows: np.ndarray, since_ns: int) -> bool:
    """Whether the hand is pushed all along the last 0.1 s, some time after a moment (ns).

    Raises Void where it was let go because the client itself had sent nothing for so long, by its own clock; samples of
    which only the numbers are known are taken to have been in time.
    """
    if np.all(_force(rows)[-100:] > 0):
        return True
    rows = rows[rows["input"]["fresh"] != 0]
    newer = rows["timing"]["started_ns"][1:] > since_ns
    samples = rows["input"]["sample"]
    unseen = np.diff(samples["seq"].astype(np.int64)) - 1
    silent = (np.diff(samples["t_sample"].astype(np.int64)) - unseen * PERIOD_NS)[newer]
    if silent.max(initial=0) > STALE_MS * 1e6:
        raise Void(f"the client itself sent nothing for {silent.max() * 1e-6:.0f} ms")
    return False


def _last_reason(rows: np.ndarray) -> str:
    """Of the last transition of the client at hand: RAMP_DONE while it is held."""
    return Reason(int(rows["output"]["reason"][-1])).name


def _until_quiet(rows: np.ndarray, since_ns: int) -> float:
    """ms from a moment to the first tick after which the wrench stays zero, 0 if it was before; infinite if it never
    does."""
    pushing = np.flatnonzero(np.any(rows["output"]["wrench"] != 0, axis=1))
    if len(pushing) == 0:
        raise RuntimeError("the client was not pressing: the figure would mean nothing")
    if pushing[-1] + 1 >= len(rows):
        return float("inf")
    return max((int(rows["timing"]["sent_ns"][pushing[-1] + 1]) - since_ns) * 1e-6, 0.0)


def _state_at(rows: np.ndarray, moment_ns: int) -> str:
    """State of engagement that the last tick before a moment (ns) has left."""
    before = np.flatnonzero(rows["timing"]["started_ns"] <= moment_ns)
    return EngagementState(int(rows["output"]["state"][before[-1]])).name


def _must_press(state: str) -> None:
    """Raise Void when forces were off in a state: nothing can be said then about taking them away."""
    if state in ("IDLE", "ARMED", "FAULT"):
        raise Void(f"struck in {state}")


def _rejected(rows: np.ndarray) -> bool:
    """Whether messages were refused between the last good sample and the tick that found it stale."""
    last = int(np.flatnonzero(rows["input"]["fresh"])[-1])
    ages = rows["input"]["age_ns"][last:] * 1e-6
    return bool(np.any(rows["input"]["rejected"][last:][ages <= STALE_MS + 1.0]))


def _peak(rows: np.ndarray) -> float:
    """Largest force, N. Raises Void, or RuntimeError where nothing tells why the client did not press as hard as it
    may."""
    limit = load_card(CARD).force_max
    peak = float(_force(rows).max())
    if peak < 0.99 * limit:
        if np.any(rows["output"]["rate_share"] < 1.0):
            raise Void("samples came so unevenly that the stiffness was lowered, and the client did not press as hard")
        raise RuntimeError(f"the client pressed with {peak:.3f} N only: the figure would mean nothing")
    return peak


def _over_limit(rows: np.ndarray) -> float:
    """By how much the largest force is over what the card allows, N."""
    return round(max(float(_force(rows).max()) - load_card(CARD).force_max, 0.0), 6)


def _outcome(
    rows: np.ndarray, at_ns: int, safe_ms: float | None, held_up_ms: float = 0.0, **more: Any
) -> dict[str, Any]:
    """A repetition's figures; safe_ms None where no time to safety was measured, as the hand goes on pressing.

    Raises Void where ticks were held up (:meth:`Site.held_up_after`), unless it took longer than that explains.
    """
    peak = _peak(rows)
    if held_up_ms > 0.0 and (safe_ms or 0.0) <= HORIZON_MS + held_up_ms:
        raise Void(f"the machine held up the servo by {held_up_ms:.1f} ms altogether")
    return {
        "time_to_safe_ms": safe_ms,
        "over_limit_N": _over_limit(rows),
        "peak_N": round(peak, 3),
        "struck_in": _state_at(rows, at_ns),
        "struck_N": round(float(_force(rows)[rows["timing"]["started_ns"] <= at_ns][-1]), 3),
        **more,
    }


def _after_last_sample(rows: np.ndarray, _: int) -> int:
    """When the newest sample of all went stale, ns."""
    fresh = np.flatnonzero(rows["input"]["fresh"])
    return int(rows["timing"]["t_received"][fresh[-1]] + STALE_MS * 1e6)


def _at_jump(rows: np.ndarray, at_ns: int) -> int:
    """When the first sample arrived that is far from the one before, ns; Void where forces were off by then, and the
    device might be anywhere."""
    told = _first_told(rows, at_ns, lambda samples: np.abs(np.diff(samples["position"][:, 2])) > 0.1)
    _must_press(EngagementState(int(rows["output"]["state"][told - 1])).name)
    return int(rows["timing"]["t_received"][told])


def _at_step_of_clock(rows: np.ndarray, at_ns: int) -> int:
    """When the first sample arrived that says it is of long ago, ns."""
    told = _first_told(rows, at_ns, lambda samples: np.diff(samples["t_sample"]) < -5e9)
    return int(rows["timing"]["t_received"][told])


def _first_told(rows: np.ndarray, at_ns: int, wrong: Callable[[np.ndarray], np.ndarray]) -> int:
    """Index of the first record whose sample is wrong beside the one before; Void when there is none."""
    fresh = np.flatnonzero((rows["input"]["fresh"] != 0) & (rows["timing"]["t_received"] > at_ns - 50_000_000))
    found = np.flatnonzero(wrong(rows["input"]["sample"][fresh]))
    if len(found) == 0:
        raise Void("the client fell silent before it could send anything wrong")
    return int(fresh[found[0] + 1])


def _client_row(
    number: signal.Signals, begins: Callable[[np.ndarray, int], int], reason: str, ends_in: str
) -> Callable[["Bench", str], None]:
    """A row in which something happens to the client, or it to the daemon: one daemon for all repetitions.

    ``begins(rows, at_ns)``: the moment from which the time to safety counts. A clutch that is ramping down already
    stays the reason of what it began, unless the device goes to FAULT.
    """

    def row(bench: "Bench", name: str) -> None:
        with bench.site() as site:
            site.ready()
            for draw in bench.repetitions(name):
                bench.judge(name, one, site, draw)

    def one(site: Site, draw: random.Random) -> dict[str, Any]:
        site.aim("work", draw)
        at = site.strike(number)
        site.watch(WATCH_S)
        held_up = site.held_up_after(at)
        rows = site.since()
        last = rows["output"][-1]
        why, state = Reason(int(last["reason"])).name, EngagementState(int(last["state"])).name
        _must_press(_state_at(rows, at))
        if reason == "SAMPLE_REJECTED" and why == "SAMPLE_STALE" and not _rejected(rows):
            raise Void("the client fell silent before it could send anything wrong")
        begun = begins(rows, at)
        outcome = _outcome(rows, at, _until_quiet(rows, begun), held_up, reason=why, state_after=state)
        # A clutch that was asked for just before the strike may be taken just after it.
        ramping = "RELEASING" in (outcome["struck_in"], _state_at(rows, begun)) and ends_in == "IDLE"
        return {**outcome, "ok": state == ends_in and why in ((reason, "CLUTCH") if ramping else (reason,))}

    return row


def _disk_full(bench: "Bench", name: str) -> None:
    """The disk of the log fills up; ticking must not care, somebody must be told, and the log goes on afterwards."""
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(bench.directory())
        disk = stack.enter_context(small_disk(directory, DISK_MB))
        with Site(directory, disk / "run.mcap") as site:
            site.ready()
            socket = zmq.Context.instance().socket(zmq.SUB)
            socket.setsockopt(zmq.SUBSCRIBE, b"")
            socket.connect(site.daemon.endpoints()["events"])
            for draw in bench.repetitions(name):
                bench.judge(name, lambda site, draw: _fill_disk(site, draw, disk, socket), site, draw)
            socket.close(0)


def _fill_disk(site: Site, draw: random.Random, disk: Path, socket: zmq.Socket) -> dict[str, Any]:
    site.aim("hold", draw)
    at = time.monotonic_ns()
    filler = disk / "filler"
    try:
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(65536)):
                pass
        told = _wait_for(site, socket, "disk_full")
        site.watch(0.1)
        rows = site.since()
    finally:
        filler.unlink()
    resumed = told and _wait_for(site, socket, "log_resumed")
    for part in sorted(disk.glob("*.mcap"), key=lambda path: path.stat().st_mtime)[:-1]:
        part.unlink()
    held_up, held = site.held_up_after(at), _held(rows, at)
    more = {"missed": int(rows["timing"]["missed"].sum()), "still_rendering": held, "resumed": resumed}
    return _outcome(rows, at, None, held_up, reason="disk_full" if told else "NONE", **more, ok=held and resumed)


def _wait_for(site: Site, socket: zmq.Socket, code: str, seconds: float = 8.0) -> bool:
    """Whether an event of that code comes in time; the ring is read meanwhile."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        site.watch(0.02)
        while socket.poll(0):
            if msgpack.unpackb(socket.recv()).get("code") == code:
                return True
    return False


def _slow_subscriber(bench: "Bench", name: str) -> None:
    """An observer that never reads."""
    with bench.site() as site:
        site.ready()
        for draw in bench.repetitions(name):
            bench.judge(name, _never_read, site, draw)


def _never_read(site: Site, draw: random.Random) -> dict[str, Any]:
    site.aim("hold", draw)
    socket = zmq.Context.instance().socket(zmq.SUB)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.setsockopt(zmq.RCVHWM, 1)
    at = time.monotonic_ns()
    socket.connect(site.daemon.endpoints()["state"])
    site.watch(0.4)
    socket.close(0)
    rows = site.since()
    held_up, held = site.held_up_after(at), _held(rows, at)
    more = {"missed": int(rows["timing"]["missed"].sum()), "still_rendering": held}
    return _outcome(rows, at, None, held_up, reason=_last_reason(rows), **more, ok=held)


def _recorder_killed(site: Site, draw: random.Random) -> dict[str, Any]:
    """The recorder of a daemon whose first one it is: the supervisor brings it back."""
    assert site.log is not None
    pid = site.daemon.pid_of("bridge.log.recorder")
    site.aim("hold", draw, earliest=0.2)
    killed_at = time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)
    restarted, until = False, time.monotonic() + 5.0
    site.watch(0.3)
    while not restarted and time.monotonic() < until:
        site.watch(0.02)
        with contextlib.suppress(RuntimeError):
            restarted = site.daemon.pid_of("bridge.log.recorder") != pid
    held_up = site.held_up_after(killed_at)
    rows = site.since()
    last_kept_ns = int(read_log(site.log).records["timing"]["started_ns"][-1])
    planned = rows["timing"]["planned_ns"]
    around = (planned > killed_at - 5_000_000) & (planned < killed_at + 50_000_000)
    missed = rows["timing"]["missed"]
    lost_ms = (killed_at - last_kept_ns) * 1e-6
    more = {
        "missed_around_the_kill": int(missed[around].sum()),
        # What the machine does to ticks when nobody is killed, in as many of them.
        "missed_elsewhere": round(float(missed[~around].mean()) * int(around.sum()), 3),
        "lost_of_the_log_ms": round(lost_ms, 1),
        "restarted": restarted,
    }
    ok = _held(rows, killed_at) and lost_ms <= 100.0 and restarted
    return _outcome(rows, killed_at, None, held_up, reason=_last_reason(rows), **more, ok=ok)


def _supervisor_killed(site: Site, draw: random.Random) -> dict[str, Any]:
    """The servo has the stale horizon to notice that nobody watches over it, as it has for a client."""
    site.aim("work", draw)
    killed_at = time.monotonic_ns()
    site.daemon.process.kill()
    # A busy machine takes its time to let a killed process die; the time to safety counts from the kill all the same.
    site.daemon.process.wait()
    died_ms = (time.monotonic_ns() - killed_at) * 1e-6
    site.watch(0.3)
    held_up = site.held_up_after(killed_at)
    rows = site.since()
    _must_press(_state_at(rows, killed_at))
    reason = Reason(int(rows["output"]["reason"][-1])).name
    safe_ms = _until_quiet(rows, killed_at + int(STALE_MS * 1e6))
    told = rows["timing"]["started_ns"][rows["input"]["supervisor_lost"] != 0]
    noticed_ms = (int(told[0]) - killed_at) * 1e-6 if len(told) else float("inf")
    more = {"died_ms": round(died_ms, 2), "noticed_ms": round(noticed_ms, 2)}
    # A clutch that ramps down already when the kill is noticed stays the reason of what it began.
    states = [_state_at(rows, killed_at), *([_state_at(rows, int(told[0]))] if len(told) else [])]
    right = ("SUPERVISOR_LOST", "CLUTCH") if "RELEASING" in states else ("SUPERVISOR_LOST",)
    return _outcome(rows, killed_at, safe_ms, held_up, reason=reason, **more, ok=reason in right)


def _servo_killed(site: Site, draw: random.Random, meanwhile: Callable[[], None]) -> dict[str, Any]:
    """The supervisor stops the rest and says so; how fast a device is safe is its adapter's, which gets `valid_for`.

    ``meanwhile`` is called while the daemon ends.
    """
    site.aim("work", draw)
    rows = site.since()
    _peak(rows)
    killed_at = time.monotonic_ns()
    os.kill(site.daemon.pid_of("bridge.servo"), signal.SIGKILL)
    meanwhile()
    code = site.daemon.process.wait(20.0)
    ended_s = (time.monotonic_ns() - killed_at) * 1e-9
    valid_ms = float(rows["output"]["valid_for_ns"][-1]) * 1e-6
    more = {"exit_code": code, "daemon_ended_s": round(ended_s, 2), "impedance_valid_for_ms": valid_ms}
    return _outcome(rows, killed_at, None, reason=ExitCode(code).name, **more, ok=code == ExitCode.SERVO_DIED)


MORTAL = ("recorder_killed", "supervisor_killed", "servo_killed")
"""Rows that a daemon does not survive (or that a recorder survives once, before it is brought back ever later)."""


def draws_of(name: str) -> Iterator[random.Random]:
    """For one repetition of a row after the other: always the same."""
    for k in itertools.count():
        yield random.Random(f"{name} {k}")


def mortals(bench: "Bench", names: list[str]) -> None:
    """The rows whose daemons die, two at a time: the recorder's and then the supervisor's of one, the servo's of the
    other, while the next two start."""
    first, last = (tuple(name for name in each if name in names) for each in (MORTAL[:2], MORTAL[2:]))
    draws = {name: itertools.islice(draws_of(name), bench.made(name), None) for name in names}

    def begin(stack: contextlib.ExitStack) -> dict[tuple[str, ...], Site]:
        found = {}
        for group in (first, last):
            if bench.wants(group):
                directory = stack.enter_context(bench.directory())
                found[group] = stack.enter_context(Site(directory, directory / "run.mcap"))
        return found

    with contextlib.ExitStack() as outer:
        coming = outer.enter_context(contextlib.ExitStack())
        sites = begin(coming)
        while any(bench.wants(group) for group in sites):
            present, here = coming, {group: site.ready() for group, site in sites.items()}
            for name in first:
                if bench.wants([name]):
                    one = _recorder_killed if name == "recorder_killed" else _supervisor_killed
                    bench.judge(name, one, here[first], next(draws[name]))
            if first in here:
                here[first].close()
            coming = outer.enter_context(contextlib.ExitStack())
            sites = {}

            def start_next(stack: contextlib.ExitStack = coming, found: dict[tuple[str, ...], Site] = sites) -> None:
                if not found:
                    found.update(begin(stack))

            for name in last:
                if bench.wants([name]):
                    killed = functools.partial(_servo_killed, meanwhile=start_next)
                    bench.judge(name, killed, here[last], next(draws[name]))
            start_next()
            present.close()


ROWS: dict[str, Callable[["Bench", str], None] | None] = {
    "client_killed": _client_row(signal.SIGKILL, _after_last_sample, "SAMPLE_STALE", "IDLE"),
    "client_stalled": _client_row(signal.SIGSTOP, _after_last_sample, "SAMPLE_STALE", "IDLE"),
    "client_sends_nan": _client_row(signal.SIGUSR1, _after_last_sample, "SAMPLE_REJECTED", "IDLE"),
    "client_jumps": _client_row(signal.SIGUSR2, _at_jump, "DEVICE_JUMP", "FAULT"),
    "client_clock_steps_back": _client_row(signal.SIGHUP, _at_step_of_clock, "SAMPLE_STALE", "IDLE"),
    "disk_full": _disk_full,
    "slow_subscriber": _slow_subscriber,
    **dict.fromkeys(MORTAL),
}
"""What makes all repetitions of a row; None for those that are made together."""


class Bench:
    """Outcomes by row, and what every row needs."""

    def __init__(self, repeats: int, progress: Progress, kept: Kept) -> None:
        """``kept``: what is there already of these rows counts."""
        self.repeats, self._progress, self._kept = repeats, progress, kept
        self.outcomes: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
        self.void: collections.Counter[str] = collections.Counter()
        """Repetitions that said nothing, by row."""
        self.windows: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        """:attr:`Site.windows` by row."""
        for entry in kept.entries:
            name = entry["row"]
            self.outcomes[name].append(entry["outcome"])
            self.void[name], self.windows[name] = entry["void"], collections.Counter(entry["windows"])
        self._began = time.monotonic()

    def directory(self) -> contextlib.AbstractContextManager[Path]:
        @contextlib.contextmanager
        def made() -> Iterator[Path]:
            with tempfile.TemporaryDirectory() as directory:
                yield Path(directory)

        return made()

    @contextlib.contextmanager
    def site(self) -> Iterator[Site]:
        with self.directory() as directory, Site(directory) as site:
            yield site

    def repetitions(self, name: str) -> Iterator[random.Random]:
        """What each repetition that a row lacks draws its moments from."""
        return itertools.islice(draws_of(name), len(self.outcomes[name]), self.repeats)

    def wants(self, names: Iterable[str]) -> bool:
        """Whether a row still lacks repetitions, and may have more."""
        return any(
            len(self.outcomes[name]) < self.repeats and self.made(name) < VOID_AT_MOST * self.repeats for name in names
        )

    def made(self, name: str) -> int:
        """Repetitions of a row, with those that said nothing."""
        return len(self.outcomes[name]) + self.void[name]

    def judge(
        self, name: str, one: Callable[[Site, random.Random], dict[str, Any]], site: Site, draw: random.Random
    ) -> None:
        """Make one repetition of a row; one that cannot be made has failed, and the next one follows.

        One that says nothing is made again, of a daemon that dies of it by whoever starts the next.
        """
        try:
            until = time.monotonic() + PATIENCE_S
            for attempt in itertools.count():
                site.windows = self.windows[name]
                try:
                    outcome = one(site, draw)
                    break
                except Void as why:
                    if _over_limit(site.since()) > 0.0:
                        raise RuntimeError(f"more than the card allows, where it said nothing else: {why}") from why
                    self.void[name] += 1
                    self._progress(f"{name}: not counted, {why}")
                    if name in MORTAL:
                        return
                    if time.monotonic() > until:
                        raise RuntimeError(f"{attempt + 1} times in a row: too busy a machine for this figure") from why
                    time.sleep(min(0.1 * 2**attempt, PAUSE_S))
        except (RuntimeError, OSError, IndexError) as error:
            self._progress(f"{name}: {error!r}")
            over = _over_limit(site.since()) if site.rows else 0.0
            outcome = {"time_to_safe_ms": None, "over_limit_N": over, "reason": f"not measured: {error}", "ok": False}
        outcomes = self.outcomes[name]
        outcomes.append(outcome)
        self._kept.add({"row": name, "outcome": outcome, "void": self.void[name], "windows": self.windows[name]})
        count = len(outcomes)
        if count % max(1, self.repeats // 20) == 0 or count == self.repeats or _failed(outcome):
            bad = sum(map(_failed, outcomes))
            self._progress(f"{time.monotonic() - self._began:6.0f} s  {name}, {count} of {self.repeats}, {bad} failed")
        if _failed(outcome):
            self._progress(f"{name}: {outcome}")


def _failed(outcome: dict[str, Any]) -> bool:
    return not outcome["ok"] or (outcome["time_to_safe_ms"] or 0.0) > HORIZON_MS


def summary(outcomes: list[dict[str, Any]], void: int, windows: dict[str, int], repeats: int) -> dict[str, Any]:
    """One row of the figure from its repetitions: percentiles of the times, and the worst repetition for the rest.

    ``void``: repetitions that said nothing; ``windows``: :attr:`Site.windows`. A row has failed in which some that were
    asked for are missing, or whose strikes hold up the servo themselves.
    """
    if not outcomes:
        return {"time_to_safe_ms": {}, "over_limit_N": 0.0, "reason": "nothing measured", "ok": False}
    safe = np.array([each["time_to_safe_ms"] for each in outcomes if each["time_to_safe_ms"] is not None])
    over = max(each["over_limit_N"] for each in outcomes)
    failed = [each for each in outcomes if _failed(each)]
    worst = failed[0] if failed else max(outcomes, key=lambda each: each["time_to_safe_ms"] or 0.0)
    more: dict[str, Any] = {}
    for key in (
        "struck_N",
        "missed",
        "missed_around_the_kill",
        "lost_of_the_log_ms",
        "daemon_ended_s",
        "died_ms",
        "noticed_ms",
    ):
        found = [each[key] for each in outcomes if key in each]
        if found:
            more[key] = percentiles(np.array(found), 2)
    if windows["after"]:
        more["held_up"] = {
            which: f"{windows[f'{which}_late']} of {windows[which]} windows" for which in ("before", "after")
        }
    for key in ("struck_in", "reason"):
        counts = collections.Counter(each[key] for each in outcomes if key in each)
        more["struck_in" if key == "struck_in" else "reasons"] = dict(counts.most_common())
    return {
        "time_to_safe_ms": percentiles(safe, 2),
        **{key: value for key, value in worst.items() if key != "time_to_safe_ms"},
        **more,
        "over_limit_N": over,
        "repetitions": len(outcomes),
        "repetitions_failed": len(failed),
        "repetitions_void": void,
        "ok": not failed and over == 0.0 and len(outcomes) >= repeats and not caused_by_strikes(windows),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", default=",".join(ROWS), help="comma-separated, from: " + ", ".join(ROWS))
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep each repetition, and go on from those kept")


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    names = [name for name in ROWS if name in arguments.rows.split(",")]
    unknown = sorted(set(arguments.rows.split(",")) - set(ROWS))
    if unknown:
        raise SystemExit(f"no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    notes: list[str] = []
    absent: set[str] = set()
    bench = Bench(arguments.repeats, progress, Kept(arguments.keep))
    for name in names:
        row = ROWS[name]
        try:
            if row is not None and bench.wants([name]):
                row(bench, name)
        except Absent as reason:
            notes.append(f"{name} was not tried: {reason}")
            absent.add(name)
    if set(names) & set(MORTAL):
        mortals(bench, names)
    rows = {
        name: summary(bench.outcomes[name], bench.void[name], bench.windows[name], bench.repeats)
        for name in names
        if name not in absent
    }
    failed = sum(not row["ok"] for row in rows.values())
    return Result({"rows_failed": failed, "rows": rows, "repeats": arguments.repeats}, failed == 0, notes=notes)


FIGURE = Figure(
    "faults",
    "Kills, stalls, NaN, jumps, a full disk and slow observers while pressing as hard as the card allows.",
    add_arguments,
    run,
)
