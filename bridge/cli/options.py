"""Arguments that several commands take, and what the shell completes them with."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.errors import fail
from bridge.exit_codes import ExitCode


def files(*endings: str) -> Callable[[str], list[str]]:
    """A completion: folders, and files with one of these endings."""

    def complete(incomplete: str) -> list[str]:
        start = Path(incomplete)
        folder = start if incomplete.endswith("/") or incomplete == "" else start.parent
        found = []
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            text = str(path)
            if text.startswith(incomplete) and (path.is_dir() or text.endswith(endings)):
                found.append(text + "/" if path.is_dir() else text)
        return found

    return complete


def running(incomplete: str) -> list[str]:
    """A completion: names of daemons that run."""
    from bridge.runtime import RuntimeDirectory

    return [d.name for d in RuntimeDirectory.all() if d.name.startswith(incomplete) and d.is_running()]


Name = Annotated[
    str,
    typer.Option("--name", "-n", envvar="HAPTICD_NAME", help="Which daemon, when several run.", autocompletion=running),
]
Size = Annotated[str, typer.Option("--size", help="Of the picture: width x height, pixels.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def check_output(option: str, path: Path, *, folders_are_made: bool = False) -> None:
    """Before long work: whether its result can be written there."""
    folder = path.parent
    while folders_are_made and not folder.exists():
        folder = folder.parent
    if path.is_dir():
        trouble = "is a folder; name a file"
    elif not folder.is_dir():
        trouble = f"{folder} {'is not a folder' if folder.exists() else 'does not exist'}"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        trouble = "may not be written"
    else:
        return
    fail(f"{option} {path}: {trouble}", ExitCode.INPUT)


def above_zero(option: str, what: str, value: float) -> float:
    """The value of an option, when it is a number above 0."""
    if not (math.isfinite(value) and value > 0.0):
        fail(f"{option}: a {what} must be a number above 0, not {value:g}", ExitCode.USAGE)
    return value


def pixels(text: str) -> tuple[int, int]:
    """Width and height, pixels, from the text of ``--size``."""
    width, _, height = text.partition("x")
    if not (width.isdigit() and height.isdigit() and 64 <= int(width) <= 8192 and 64 <= int(height) <= 8192):
        fail(f"--size {text!r} is not a width and a height from 64 to 8192 pixels, such as 1280x720", ExitCode.USAGE)
    return int(width), int(height)
