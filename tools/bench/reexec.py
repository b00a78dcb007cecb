"""Record, then execute the log again: here, and in a process that starts anew."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bridge.log.reader import read_log
from bridge.log.reexec import reexecute
from tools.bench.common import Figure, Progress, Result
from tools.bench.daemon import Daemon


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, default=Path("configs/demo.toml"))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--recording", type=Path, help="a recorded hand instead of the simulated one")


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    hand = ("recorded", str(arguments.recording)) if arguments.recording else ("sim",)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.mcap"
        progress(f"recording {arguments.seconds:.0f} s")
        with Daemon(arguments.config, "--log", str(path)) as daemon:
            daemon.wait_first_tick()
            daemon.hand(*hand)
            daemon.wait_engaged()
            time.sleep(arguments.seconds)
        progress("executing again in this process")
        log = read_log(path)
        here = reexecute(log)
        progress("executing again in a new process")
        command = [sys.executable, "-m", "bridge.cli", "reexec", str(path), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        there = json.loads(done.stdout)
        megabytes = path.stat().st_size / 1e6
    figures = {
        "ticks": here.ticks,
        "ticks_differing": here.ticks_differing,
        "bytes_differing": here.bytes_differing,
        "restarted": {key: there[key] for key in ("ticks", "ticks_differing", "bytes_differing")},
        "log_megabytes_per_minute": round(megabytes / arguments.seconds * 60, 1),
        "touching_fraction": round(float((log.records["output"]["report"]["contact_count"] > 0).mean()), 3),
    }
    differing = here.ticks_differing + there["ticks_differing"]
    # Nothing may be missing either: as many ticks as seconds make, less the start.
    ok = differing == 0 and here.ticks == there["ticks"] and here.ticks >= 900 * arguments.seconds
    return Result(figures, ok)


FIGURE = Figure(
    "reexec",
    "A recorded run executed again, in this process and after a restart: every bit compared.",
    add_arguments,
    run,
)
