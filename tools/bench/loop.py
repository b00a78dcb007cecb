"""The daemon's tick, beside a loop that does nothing."""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from bridge.ring import RingWriter
from haptics.tables import RECORD
from tools.bench import bare
from tools.bench.common import Figure, Progress, Result, percentiles
from tools.bench.daemon import Daemon

PERIOD_US = 1000.0
SETTLE_S = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, default=Path("configs/demo.toml"))
    parser.add_argument("--seconds", type=float, default=30.0, help="of ticking, in all rounds together")
    parser.add_argument("--rounds", type=int, default=3, help="daemon and bare loop take turns so many times")
    parser.add_argument("--recording", type=Path, help="a recorded hand instead of the simulated one")
    parser.add_argument("--cold", action="store_true", help="also measure the start with an empty kernel cache")


def _memory(pid: int) -> int:
    return psutil.Process(pid).memory_info().rss


def _cold_start(config: Path, progress: Progress) -> float:
    progress("cold start: every kernel is compiled")
    with tempfile.TemporaryDirectory() as empty, Daemon(config, environment={"NUMBA_CACHE_DIR": empty}) as daemon:
        return daemon.wait_first_tick()


def _ring_write_us(count: int = 20000) -> np.ndarray:
    """What logging costs the servo: one record into the ring, however many readers there are."""
    with tempfile.TemporaryDirectory() as directory:
        ring = RingWriter(Path(directory) / "ring")
        record = np.zeros(1, RECORD)
        spent = np.zeros(count)
        for i in range(count):
            record["tick"] = i + 1
            began = time.perf_counter_ns()
            ring.write(record)
            spent[i] = (time.perf_counter_ns() - began) * 1e-3
        ring.close()
    return spent


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    figures: dict = {}
    if arguments.cold:
        figures["cold_start_s"] = round(_cold_start(arguments.config, progress), 2)
    hand = ("recorded", str(arguments.recording)) if arguments.recording else ("sim",)
    each = arguments.seconds / arguments.rounds
    parts, starts, baseline = [], [], []
    growth, ticks_for_growth, compiles, missed = 0, 0, 0, 0
    for number in range(arguments.rounds):
        progress(f"round {number + 1} of {arguments.rounds}: bare loop, {each:.0f} s")
        baseline.append(np.array(bare.lateness_us(each)))
        progress(f"round {number + 1} of {arguments.rounds}: daemon, {each:.0f} s")
        with Daemon(arguments.config) as daemon:
            starts.append(daemon.wait_first_tick())
            daemon.hand(*hand)
            daemon.wait_engaged()
            time.sleep(SETTLE_S)
            assert daemon.ring is not None
            daemon.ring.seek_newest()
            servo = daemon.pid_of("bridge.servo")
            memory_before = _memory(servo)
            rows = daemon.records(each)
            growth += _memory(servo) - memory_before
            compiles += int(daemon.ring.header.compiles)
        ticks_for_growth += len(rows)
        missed += int(rows["timing"]["missed"].sum())
        parts.append(rows)
    rows = np.concatenate(parts)
    timing, output = rows["timing"], rows["output"]
    tick_us = (timing["sent_ns"] - timing["started_ns"]) * 1e-3
    bare_us = np.concatenate(baseline)
    bare_missed = sum(int(late[late > PERIOD_US].sum() // PERIOD_US) for late in baseline)
    figures |= {
        "tick_us": percentiles(tick_us),
        "kernel_us": percentiles((timing["computed_ns"] - timing["started_ns"]) * 1e-3),
        "lateness_us": percentiles((timing["started_ns"] - timing["planned_ns"]) * 1e-3),
        "ring_write_us": percentiles(_ring_write_us()),
        "missed_fraction": round(missed / (len(rows) + missed), 7),
        "baseline_missed_fraction": round(bare_missed / (len(bare_us) + bare_missed), 7),
        "allocated_bytes_per_tick": round(growth / ticks_for_growth, 3),
        "compiles_while_ticking": compiles,
        "warm_start_s": round(float(np.median(starts)), 2),
        "ticks": len(rows),
        "touching_fraction": round(float(np.mean(output["report"]["contact_count"] > 0)), 3),
        "force_peak_N": round(float(np.linalg.norm(output["wrench"][:, :3], axis=1).max()), 3),
    }
    ok = (
        figures["tick_us"]["p99"] <= 500.0
        and figures["missed_fraction"] <= figures["baseline_missed_fraction"] + 2e-4
        and figures["allocated_bytes_per_tick"] <= 0
        and compiles == 0
        and figures["ring_write_us"]["p50"] <= 5.0
        and figures["warm_start_s"] <= 5.0
        and figures.get("cold_start_s", 0.0) <= 90.0
    )
    return Result(figures, ok, peers={"bare_loop_lateness_us": percentiles(bare_us)})


FIGURE = Figure(
    "loop",
    "The daemon on a scene, fed by a hand, taking turns with a bare loop on the same core.",
    add_arguments,
    run,
    among_others=("--cold",),
)
