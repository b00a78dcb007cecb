"""Malformed messages for every decoder: what crashes, what raises otherwise than documented, what is let through."""

import argparse
import json
import subprocess
import sys
import threading
from typing import Any

from tools.bench.common import Figure, Progress, Result

SILENT_S = 120
"""A worker that tells nothing for so long hangs, and counts as a crash."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=1_000_000, help="in all")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other messages")
    parser.add_argument("--targets", default="", help="comma-separated; all of them by default")


def _worker(name: str, count: int, seed: int, tell) -> dict[str, Any] | None:
    """The outcome of one target in a process of its own; None when that died or hung."""
    command = [sys.executable, "-m", "tools.fuzz.worker", name, str(count), str(seed)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = None
    watch = threading.Timer(SILENT_S, process.kill)
    watch.start()
    try:
        for line in process.stdout:
            watch.cancel()
            watch = threading.Timer(SILENT_S, process.kill)
            watch.start()
            said = json.loads(line)
            if "done" in said:
                tell(said["done"])
            else:
                found = said
    finally:
        watch.cancel()
        process.stdout.close()
        code = process.wait()
    return found if code == 0 else None


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    from tools.fuzz.targets import shares

    wanted = [name for name in arguments.targets.split(",") if name]
    counts = shares(arguments.messages, wanted)
    totals = {"messages": 0, "crashes": 0, "undocumented_exceptions": 0, "accepted_malformed": 0}
    rows: dict[str, Any] = {}
    notes: list[str] = []
    done = 0
    for name, count in counts.items():
        progress(f"{name}: {count} messages ({done} of {sum(counts.values())} so far)")
        found = _worker(
            name, count, arguments.seed, lambda now, name=name, of=count: progress(f"{name}: {now} of {of}")
        )
        done += count
        if found is None:
            totals["crashes"] += 1
            notes.append(f"{name}: the process died or hung")
            continue
        totals["messages"] += found["messages"]
        totals["undocumented_exceptions"] += found["raised"]
        totals["accepted_malformed"] += found["accepted_malformed"]
        notes += [f"{name}: {text}" for text in found.pop("examples")]
        rows[name] = found
    trouble = totals["crashes"] + totals["undocumented_exceptions"] + totals["accepted_malformed"]
    largest = max((row["largest_decode_us"] for row in rows.values()), default=0.0)
    figures = {**totals, "largest_decode_us": largest, "seed": arguments.seed, "targets": rows}
    return Result(figures, trouble == 0 and totals["messages"] == sum(counts.values()), notes=notes)


FIGURE = Figure(
    "fuzz",
    "Seeded malformed messages for every decoder: none may crash it, raise unlike documented, or be let through.",
    add_arguments,
    run,
    ("--messages", "50000"),
)
