"""Running ``hapticd`` as a process of its own, for tests."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def environment(runtime: Path) -> dict[str, str]:
    """A runtime directory of the test's own, no display, and the project importable from anywhere."""
    kept = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "HAPTICD_DEBUG", "HAPTICD_NAME")}
    return {**kept, "HAPTICD_RUNTIME_DIR": str(runtime), "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
