"""What a long figure has measured so far, in a file: ended and begun again, it goes on from there."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tools.bench.common import machine, made_from

MEASURED = ("rtcore", "haptics", "bridge", "configs", "pyproject.toml")


def _measured() -> str:
    """Which version of what is measured is here; a bench may be mended meanwhile, and then makes its own rows again."""
    root = Path(__file__).resolve().parents[2]
    trees = subprocess.run(["git", "ls-tree", "HEAD", *MEASURED], cwd=root, capture_output=True, text=True, check=False)
    changes = subprocess.run(["git", "diff", "HEAD", "--", *MEASURED], cwd=root, capture_output=True, check=False)
    if trees.returncode != 0 or changes.stdout:
        raise SystemExit(f"--keep needs a checkout in which {', '.join(MEASURED)} are as they were committed")
    return " ".join(line.split()[2][:12] for line in trees.stdout.splitlines())


class Kept:
    """Entries of one version on one machine, a line of JSON each; without a path, of this run alone."""

    def __init__(self, path: Path | None) -> None:
        """Read what is there; raises SystemExit when it is of another version or machine."""
        self._path = path
        self._made = made_from().strip()
        self.entries: list[dict[str, Any]] = []
        if path is None:
            return
        here = json.dumps({"measured": _measured(), "machine": machine()})
        if not path.exists():
            path.write_text(here + "\n")
        # What stands behind the last end of a line was being written when the run was ended.
        there, *lines = path.read_text().split("\n")[:-1]
        if there != here:
            raise SystemExit(f"{path} is of another version or machine; name another file, or remove it: {there}")
        self.entries = [json.loads(line) for line in lines]
        path.write_text("\n".join([there, *lines, ""]))

    def add(self, entry: dict[str, Any]) -> None:
        """Write it, and which version of the bench made it, before anything else is measured."""
        entry = {**entry, "made": self._made}
        self.entries.append(entry)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(entry) + "\n")

    def makers(self) -> str:
        """How many entries each version has made, in a sentence."""
        makes = [entry["made"] for entry in self.entries]
        return "repetitions made " + ", ".join(f"{make}: {makes.count(make)}" for make in dict.fromkeys(makes))
