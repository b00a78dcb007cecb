"""What a long figure has measured so far, in a file: ended and begun again, it goes on from there."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tools.bench.common import machine

VERSION_OF = ("rtcore", "haptics", "bridge", "configs", "tools/bench", "pyproject.toml")
"""What is measured and what measures; documents and results may change meanwhile."""


def _version() -> str:
    root = Path(__file__).resolve().parents[2]
    trees = subprocess.run(
        ["git", "ls-tree", "HEAD", *VERSION_OF], cwd=root, capture_output=True, text=True, check=False
    )
    changes = subprocess.run(["git", "diff", "HEAD", "--", *VERSION_OF], cwd=root, capture_output=True, check=False)
    if trees.returncode != 0 or changes.stdout:
        raise SystemExit(f"--keep needs a checkout in which {', '.join(VERSION_OF)} are as they were committed")
    return " ".join(line.split()[2] for line in trees.stdout.splitlines())


class Kept:
    """Entries of one version on one machine, a line of JSON each; without a path, of this run alone."""

    def __init__(self, path: Path | None) -> None:
        """Read what is there; raises SystemExit when it is of another version or machine."""
        self._path = path
        self.entries: list[dict[str, Any]] = []
        if path is None:
            return
        here = json.dumps({"version": _version(), "machine": machine()})
        if not path.exists():
            path.write_text(here + "\n")
        # What stands behind the last end of a line was being written when the run was ended.
        there, *lines = path.read_text().split("\n")[:-1]
        if there != here:
            raise SystemExit(f"{path} is of another version or machine; name another file, or remove it: {there}")
        self.entries = [json.loads(line) for line in lines]
        path.write_text("\n".join([there, *lines, ""]))

    def add(self, entry: dict[str, Any]) -> None:
        """Write it before anything else is measured."""
        self.entries.append(entry)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(entry) + "\n")
