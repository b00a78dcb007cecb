"""Where compiled kernels are kept: one directory per version of the sources that they were made from.

numba notices when the file of a kernel changes, but not when a kernel that it calls does: after an upgrade in place, a
tick could run half old and half new, and nothing would say so. So the cache directory carries a hash of every source
that holds kernels, and of numba's version: changed sources never meet old kernels.
"""

import hashlib
import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bridge.cache_directory import cache_directory

VARIABLE = "NUMBA_CACHE_DIR"
KEPT = 4
"""Directories of other versions that stay when old ones are removed: switching back and forth compiles nothing."""

_ROOT = Path(__file__).resolve().parent.parent
_KERNEL_PACKAGES = ("rtcore", "haptics")
_CONSTANTS = _ROOT / "bridge" / "schema.py"
"""Kernels of `bridge` have its constants compiled in."""


def source_hash() -> str:
    """Hash of every source that kernels are made from, and of what compiles them."""
    digest = hashlib.sha256()
    for name in ("numba", "llvmlite", "numpy"):
        try:
            digest.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:
            digest.update(f"{name} absent\n".encode())
    digest.update(f"{sys.version_info[:2]} {_ROOT}\n".encode())
    sources = {path: path.read_bytes() for package in _KERNEL_PACKAGES for path in (_ROOT / package).rglob("*.py")}
    for path in (_ROOT / "bridge").rglob("*.py"):
        text = path.read_bytes()
        if b"njit" in text or path == _CONSTANTS:
            sources[path] = text
    for path in sorted(sources):
        digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0" + sources[path])
    return digest.hexdigest()[:16]


def choose() -> None:
    """Point numba at this version's directory, unless the user has chosen one; call before numba is imported.

    Where the directory cannot be written, numba's own choice (beside the sources) stays.
    """
    kernels = cache_directory() / "kernels"
    chosen = os.environ.get(VARIABLE)
    if chosen and Path(chosen).parent != kernels:
        return
    mine = kernels / source_hash()
    try:
        mine.mkdir(parents=True, exist_ok=True)
        os.utime(mine)
    except OSError:
        os.environ.pop(VARIABLE, None)
        return
    if not os.access(mine, os.W_OK):
        return
    os.environ[VARIABLE] = str(mine)
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = str(mine)


def remove_old() -> int:
    """Remove the directories of versions that were not used for longest; returns how many."""
    kernels = cache_directory() / "kernels"
    if not kernels.is_dir():
        return 0
    mine = os.environ.get(VARIABLE)
    others = [entry for entry in kernels.iterdir() if entry.is_dir() and str(entry) != mine]
    others.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
    for entry in others[KEPT:]:
        shutil.rmtree(entry, ignore_errors=True)
    return len(others[KEPT:])
