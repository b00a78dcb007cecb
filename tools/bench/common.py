"""What every figure shares: percentiles, the machine, progress, the result object."""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

Progress = Callable[[str], None]


@dataclass
class Result:
    """One figure's outcome: what was measured, the peers beside it, and whether every target was met."""

    figures: dict[str, Any]
    ok: bool
    peers: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """A named figure: its arguments and how to run it."""

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Progress], Result]
    among_others: tuple[str, ...] = ()
    """Its options when several figures run in one go."""


def percentiles(values: np.ndarray, digits: int = 3) -> dict[str, float]:
    """p50, p99, p999 and max of a sample."""
    values = np.asarray(values, dtype=float)
    if len(values) == 0:
        return {}
    p50, p99, p999 = np.percentile(values, [50, 99, 99.9])
    return {
        "p50": round(float(p50), digits),
        "p99": round(float(p99), digits),
        "p999": round(float(p999), digits),
        "max": round(float(values.max()), digits),
    }


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def made_from() -> str:
    """ " at COMMIT", with a note when files differ from it but for the results; nothing outside of a checkout."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        root = Path(__file__).resolve().parents[2]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changes = git("status", "--porcelain", "--untracked-files=no", "--", ":(exclude)docs/results.md")
        return f" at {git('describe', '--always')}" + (" with changes" if changes else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine() -> dict[str, Any]:
    """The machine that the figures were measured on."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            model = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: _installed(name) for name in ("numpy", "numba", "pyzmq", "msgpack", "pybullet")},
    }


def to_stderr(text: str) -> None:
    """Progress goes to stderr so that the last line of stdout stays the JSON object."""
    print(text, file=sys.stderr, flush=True)
