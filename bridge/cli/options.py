"""Arguments that several commands take, and what the shell completes them with."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


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


def _running(incomplete: str) -> list[str]:
    from bridge.runtime import RuntimeDirectory

    return [d.name for d in RuntimeDirectory.all() if d.name.startswith(incomplete) and d.is_running()]


Name = Annotated[
    str,
    typer.Option(
        "--name", "-n", envvar="HAPTICD_NAME", help="Which daemon, when several run.", autocompletion=_running
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
