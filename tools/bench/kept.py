"""What a long figure has measured so far, in a file: ended and begun again, it goes on from there."""

import json
from pathlib import Path
from typing import Any

from tools.bench.common import machine, made_from


class Kept:
    """Entries of one version on one machine, a line of JSON each; without a path, of this run alone."""

    def __init__(self, path: Path | None) -> None:
        """Read what is there; raises SystemExit when it is of another version or machine."""
        self._path = path
        self.entries: list[dict[str, Any]] = []
        here = json.dumps({"made": made_from().strip(), "machine": machine()})
        if path is None:
            return
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
