"""Running ``hapticd``, in this process or in one of its own, for tests."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]


def environment(runtime: Path) -> dict[str, str]:
    """A runtime directory of the test's own, no display, and the project importable from anywhere."""
    kept = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "HAPTICD_DEBUG", "HAPTICD_NAME")}
    return {**kept, "HAPTICD_RUNTIME_DIR": str(runtime), "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


def called(runtime: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What a process of ``hapticd`` with these arguments, in the directory ``runtime``, would print and end with."""
    from bridge.cli import main

    line = ["hapticd", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, environment(runtime), clear=True),
        patch.multiple(sys, argv=line, stdin=io.StringIO()),
        contextlib.chdir(runtime),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = 0
        try:
            main()
        except SystemExit as end:
            assert end.code is None or isinstance(end.code, int), end.code
            code = end.code or 0
    return subprocess.CompletedProcess(line, code, out.getvalue(), err.getvalue())


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The error text; fails when it is a traceback or more than one line."""
    assert "Traceback" not in done.stderr, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]
