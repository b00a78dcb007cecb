"""Compiled kernels of other sources are never met: the promise of re-execution rests on it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bridge import kernel_cache


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv(kernel_cache.VARIABLE, raising=False)
    # `choose` also tells a numba that is loaded already; what it had is put back.
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", numba.config.CACHE_DIR)
    return tmp_path


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A small project with one kernel that calls another in another file."""
    root = tmp_path / "project"
    for name, text in {
        "rtcore/inner.py": "from numba import njit\n\n@njit(cache=True)\ndef inner():\n    return 1\n",
        "haptics/outer.py": (
            "from numba import njit\nfrom rtcore.inner import inner\n\n"
            "@njit(cache=True)\ndef outer():\n    return inner()\n"
        ),
        "bridge/schema.py": "A = 1\n",
        "bridge/plain.py": "B = 1\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(kernel_cache, "_ROOT", root)
    monkeypatch.setattr(kernel_cache, "_CONSTANTS", root / "bridge" / "schema.py")
    return root


def run_outer(root: Path, cache: Path) -> int:
    code = "from haptics.outer import outer; print(outer())"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_changed_callee_is_met_in_the_new_place_and_missed_in_the_old_one(sources, tmp_path):
    """The second assertion shows the defect of numba's cache that this module is for: it fails when numba mends it."""
    before = tmp_path / kernel_cache.source_hash()
    assert run_outer(sources, before) == 1
    inner = sources / "rtcore" / "inner.py"
    inner.write_text(inner.read_text().replace("return 1", "return 2"))
    assert run_outer(sources, before) == 1
    assert run_outer(sources, tmp_path / kernel_cache.source_hash()) == 2


def test_the_hash_follows_kernel_sources_and_nothing_else(sources):
    first = kernel_cache.source_hash()
    assert kernel_cache.source_hash() == first
    (sources / "bridge" / "plain.py").write_text("B = 2\n")
    assert kernel_cache.source_hash() == first
    (sources / "bridge" / "schema.py").write_text("A = 2\n")
    second = kernel_cache.source_hash()
    assert second != first
    (sources / "rtcore" / "more.py").write_text("")
    assert kernel_cache.source_hash() != second


def test_choose_respects_the_user_and_follows_the_sources(own, sources, monkeypatch):
    kernel_cache.choose()
    mine = Path(os.environ[kernel_cache.VARIABLE])
    assert mine == own / "kernels" / kernel_cache.source_hash() and mine.is_dir()
    # What a parent process of ours has set is no choice of the user.
    (sources / "bridge" / "schema.py").write_text("A = 3\n")
    kernel_cache.choose()
    assert Path(os.environ[kernel_cache.VARIABLE]) == own / "kernels" / kernel_cache.source_hash() != mine
    monkeypatch.setenv(kernel_cache.VARIABLE, str(own / "elsewhere"))
    kernel_cache.choose()
    assert os.environ[kernel_cache.VARIABLE] == str(own / "elsewhere")


def test_a_place_that_cannot_be_made_leaves_numbas_own(own, monkeypatch):
    (own / "kernels").write_text("a file in the way")
    kernel_cache.choose()
    assert kernel_cache.VARIABLE not in os.environ


def test_old_versions_are_removed_longest_unused_first(own):
    kernel_cache.choose()
    now = time.time()
    for i in range(kernel_cache.KEPT + 2):
        old = own / "kernels" / f"old{i}"
        old.mkdir()
        os.utime(old, (now - i - 1, now - i - 1))
    assert kernel_cache.remove_old() == 2
    left = {entry.name for entry in (own / "kernels").iterdir()}
    assert left == {f"old{i}" for i in range(kernel_cache.KEPT)} | {Path(os.environ[kernel_cache.VARIABLE]).name}
