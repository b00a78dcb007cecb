"""Record, then execute the log again: here, and in a process that starts anew; also with many readers at the ring."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bridge.log.reader import Log, read_log
from bridge.log.reexec import reexecute
from bridge.ring import RingReader
from tools.bench.common import Figure, Progress, Result
from tools.bench.daemon import Daemon

READERS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, default=Path("configs/demo.toml"))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--recording", type=Path, help="a recorded hand instead of the simulated one")


def read_all(ring: str) -> None:
    """Read a ring as fast as it goes, until the process is killed: load for whoever writes it."""
    with RingReader(ring, register=False) as reader:
        while True:
            reader.read(64)
            time.sleep(1e-4)


def _record(config: Path, hand: tuple[str, ...], path: Path, seconds: float, readers: int) -> Log:
    with Daemon(config, "--log", str(path)) as daemon:
        daemon.wait_first_tick()
        command = [sys.executable, "-m", "tools.bench.reexec", str(daemon.runtime.ring_path)]
        load = [subprocess.Popen(command) for _ in range(readers)]
        try:
            daemon.hand(*hand)
            daemon.wait_engaged()
            time.sleep(seconds)
        finally:
            for process in load:
                process.kill()
                process.wait()
    return read_log(path)


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    hand = ("recorded", str(arguments.recording)) if arguments.recording else ("sim",)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.mcap"
        progress(f"recording {arguments.seconds:.0f} s")
        log = _record(arguments.config, hand, path, arguments.seconds, readers=0)
        progress("executing again in this process")
        here = reexecute(log)
        progress("executing again in a new process")
        command = [sys.executable, "-m", "bridge.cli", "reexec", str(path), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        there = json.loads(done.stdout)
        megabytes = path.stat().st_size / 1e6
        progress(f"recording {arguments.seconds / 4:.0f} s with {READERS} more readers at the ring")
        crowded = reexecute(_record(arguments.config, hand, Path(directory) / "b.mcap", arguments.seconds / 4, READERS))
    figures = {
        "ticks": here.ticks,
        "ticks_differing": here.ticks_differing,
        "bytes_differing": here.bytes_differing,
        "restarted": {key: there[key] for key in ("ticks", "ticks_differing", "bytes_differing")},
        "with_readers": {
            "readers": READERS,
            "ticks": crowded.ticks,
            "ticks_differing": crowded.ticks_differing,
            "bytes_differing": crowded.bytes_differing,
        },
        "log_megabytes_per_minute": round(megabytes / arguments.seconds * 60, 1),
        "touching_fraction": round(float((log.records["output"]["report"]["contact_count"] > 0).mean()), 3),
    }
    differing = here.ticks_differing + there["ticks_differing"] + crowded.ticks_differing
    # Nothing may be missing either: as many ticks as seconds make, less the start.
    ok = differing == 0 and here.ticks == there["ticks"] and here.ticks >= 900 * arguments.seconds and crowded.ticks > 0
    return Result(figures, ok)


FIGURE = Figure(
    "reexec",
    "A recorded run executed again, here and after a restart: every bit compared.",
    add_arguments,
    run,
)

if __name__ == "__main__":
    read_all(sys.argv[1])
