"""Where compiled kernels are kept: for each module, one directory per version of the sources it was made from.

numba notices when the file of a kernel changes, but not when a kernel that it calls does: after an upgrade in place, a
tick could run half old and half new, and nothing would say so. So a module's kernels lie in a directory named by a hash
of that module and of all modules of the project that it imports, directly or not: changed sources never meet old
kernels, and a change costs the compilation of what depends on it and no more.
"""

import ast
import hashlib
import os
import re
import shutil
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bridge.cache_directory import cache_directory

VARIABLE = "NUMBA_CACHE_DIR"
LOCATOR_VARIABLE = "NUMBA_CACHE_LOCATOR_CLASSES"
LOCATORS = "bridge.kernel_locator.KernelLocator,InTreeCacheLocator,UserWideCacheLocator,IPythonCacheLocator"
"""Ours, and numba's own for where it has no directory to write to."""
KEPT = 4
"""Versions of a module's kernels that stay when old ones are removed: switching back and forth compiles nothing."""

ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("rtcore", "haptics", "bridge", "tools", "tests")
_GAP = rb"(?:[ \t]|\\\n)+"
_IMPORT = re.compile(
    rb"^[ \t]*(?:import%b[^\n(]+|from%b[\w.]+%bimport(?:%b)?(?:\([^)]*\)|[^\n(]+))" % (_GAP, _GAP, _GAP, _GAP), re.M
)
"""A line that begins as an import does, up to the end of the statement."""


def compiler_hash() -> str:
    """Hash of what compiles the kernels, and of where the project is."""
    digest = hashlib.sha256()
    for name in ("numba", "llvmlite", "numpy"):
        try:
            digest.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:
            digest.update(f"{name} absent\n".encode())
    digest.update(f"{sys.version_info[:2]} {ROOT}\n".encode())
    return digest.hexdigest()[:16]


@cache
def module_hash(path: Path, root: Path = ROOT) -> str:
    """Hash of a module's source and of those of the project that it imports, directly or not."""
    reached: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            waiting += _imported(file, root)
    digest = hashlib.sha256()
    for file in sorted(reached):
        digest.update(file.as_posix().encode() + b"\0" + _source(file))
    return digest.hexdigest()[:16]


@cache
def _source(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _imported(path: Path, root: Path) -> tuple[Path, ...]:
    """Files of the project that a module's import statements name, wherever in it they stand."""
    files = []
    for name in imported_names(_source(path)):
        if name.split(".")[0] in _PACKAGES:
            place = root.joinpath(*name.split("."))
            files += [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
    return tuple(files)


def imported_names(source: bytes) -> list[str]:
    """What the import statements of a source name, as far as each begins a line of its own.

    Only these lines are parsed: to parse the whole of every source takes half a second of each process's start. A line
    of a text that reads like an import counts as one; where it only begins like one, the whole source is parsed.
    """
    try:
        tree = ast.parse(b"\n".join(line.strip() for line in _IMPORT.findall(source)))
    except SyntaxError:
        tree = ast.parse(source)
    return _names(tree)


def _names(tree: ast.Module) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def choose() -> None:
    """Point numba at the project's kernels, unless the user has chosen a directory; call before numba is imported.

    Where the directory cannot be written, numba's own choice (beside the sources) stays.
    """
    kernels = cache_directory() / "kernels"
    chosen = os.environ.get(VARIABLE)
    if chosen and Path(chosen).parent != kernels:
        os.environ[LOCATOR_VARIABLE] = LOCATORS
        return
    mine = kernels / compiler_hash()
    try:
        mine.mkdir(parents=True, exist_ok=True)
    except OSError:
        os.environ.pop(VARIABLE, None)
        os.environ.pop(LOCATOR_VARIABLE, None)
        return
    if not os.access(mine, os.W_OK):
        return
    os.environ[VARIABLE] = str(mine)
    os.environ[LOCATOR_VARIABLE] = LOCATORS
    if "numba" in sys.modules:
        config = sys.modules["numba"].config
        config.CACHE_DIR = str(mine)
        config.CACHE_LOCATOR_CLASSES = LOCATORS


def remove_old() -> int:
    """Remove what was made by other compilers, and the versions of each module unused for longest; returns how many."""
    kernels = cache_directory() / "kernels"
    if not kernels.is_dir():
        return 0
    mine = os.environ.get(VARIABLE)
    old: list[Path] = []
    versions: dict[str, list[Path]] = {}
    for entry in kernels.iterdir():
        if not entry.is_dir():
            continue
        if str(entry) != mine:
            versions.setdefault("", []).append(entry)
            continue
        for module in entry.iterdir():
            versions.setdefault(module.name.rpartition("-")[0], []).append(module)
    for entries in versions.values():
        entries.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
        old += entries[KEPT:]
    for entry in old:
        shutil.rmtree(entry, ignore_errors=True)
    return len(old)
