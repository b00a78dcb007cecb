"""The folder for what can be made again: kernels and prepared meshes."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """``$HAPTICD_CACHE_DIR``, or ``hapticd`` in ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    given = os.environ.get("HAPTICD_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hapticd"
