"""Compiled kernels of other sources are never met: the promise of re-execution rests on it."""

import ast
import os
import shutil
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
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", numba.config.CACHE_LOCATOR_CLASSES)
    monkeypatch.setenv(kernel_cache.LOCATOR_VARIABLE, os.environ[kernel_cache.LOCATOR_VARIABLE])
    return tmp_path


@pytest.fixture
def project(tmp_path):
    """A copy of what numba needs to be told, and a kernel that calls another in another file."""
    root = tmp_path / "project"
    for name, text in {
        "rtcore/inner.py": "from numba import njit\n\n@njit(cache=True)\ndef inner():\n    return 1\n",
        "rtcore/other.py": "from numba import njit\n\n@njit(cache=True)\ndef other():\n    return 5\n",
        "haptics/outer.py": (
            "from numba import njit\nfrom rtcore.inner import inner\n\n"
            "@njit(cache=True)\ndef outer():\n    return inner()\n"
        ),
        "bridge/__init__.py": "from bridge import kernel_cache\n\nkernel_cache.choose()\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("kernel_cache.py", "kernel_locator.py", "cache_directory.py"):
        shutil.copy(kernel_cache.ROOT / "bridge" / name, root / "bridge" / name)
    return root


def run(root: Path, cache: Path, ours: bool = True) -> tuple[int, list[int]]:
    """(What `outer` returns, how often `outer` and `other` were taken from the cache) in a new process."""
    code = (
        "from haptics.outer import outer\nfrom rtcore.other import other\n"
        "print(outer(), *(sum(f.stats.cache_hits.values()) for f in (outer, other) if f() or True))"
    )
    environment = {**os.environ, "PYTHONPATH": str(root), "HAPTICD_CACHE_DIR": str(cache)}
    environment.pop(kernel_cache.LOCATOR_VARIABLE, None)
    if ours:
        environment.pop(kernel_cache.VARIABLE, None)
        code = "import bridge\n" + code
    else:
        environment[kernel_cache.VARIABLE] = str(cache)
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    value, *hits = (int(word) for word in done.stdout.split())
    return value, hits


def test_a_changed_callee_is_met_and_what_does_not_depend_on_it_stays_compiled(project, tmp_path):
    assert run(project, tmp_path / "ours") == (1, [0, 0])
    assert run(project, tmp_path / "ours") == (1, [1, 1])
    inner = project / "rtcore" / "inner.py"
    inner.write_text(inner.read_text().replace("return 1", "return 2"))
    assert run(project, tmp_path / "ours") == (2, [0, 1])


def test_numbas_own_cache_misses_a_changed_callee(project, tmp_path):
    """The defect that all this is for: this test fails when numba mends it."""
    assert run(project, tmp_path / "numbas", ours=False)[0] == 1
    inner = project / "rtcore" / "inner.py"
    inner.write_text(inner.read_text().replace("return 1", "return 2"))
    assert run(project, tmp_path / "numbas", ours=False)[0] == 1


def test_the_hash_follows_every_import_wherever_it_stands(tmp_path):
    texts = {
        "rtcore/a.py": "import rtcore.b\n\ndef f():\n    from rtcore.c import (\n        x,\n    )\n",
        "rtcore/b.py": "from rtcore import d\n",
        "rtcore/c.py": "x = 1\n",
        "rtcore/d.py": "from rtcore import a\n",
        "rtcore/e.py": "",
        "rtcore/__init__.py": "",
    }

    def hashed(changed: str = "") -> str:
        kernel_cache._source.cache_clear()
        kernel_cache._imported.cache_clear()
        kernel_cache.module_hash.cache_clear()
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + ("# changed" if name == changed else ""))
        return kernel_cache.module_hash(tmp_path / "rtcore" / "a.py", tmp_path)

    first = hashed()
    assert hashed() == first
    assert [name for name in texts if hashed(name) == first] == ["rtcore/e.py"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b, c as d  # (all of it\n", {"a.b", "c"}),
        ("import a; from b import c\n", {"a", "b", "b.c"}),
        ("def f():\n    from a import (\n        b as c,  # one\n        d,\n    )\n", {"a", "a.b", "a.d"}),
        ("from a import (  # (1) that is where\n    b,\n)\n", {"a", "a.b"}),
        ("from a import(b)\nx = 1\n", {"a", "a.b"}),
        ("from a \\\n    import b, \\\n    c\nimport \\\n    d\n", {"a", "a.b", "a.c", "d"}),
        ('"""A text.\n\nimport what you need, or\nfrom here (all):\n"""\nimport a\n', {"a"}),
        ("from . import a\nfrom .b import c\n", set()),
    ],
)
def test_the_lines_that_import_are_found(source, names):
    assert set(kernel_cache.imported_names(source.encode())) == names


def test_no_import_of_the_project_escapes():
    """By the syntax tree of each whole file: an import that shares its line with something before it would."""
    paths = [path for part in kernel_cache._PACKAGES for path in (kernel_cache.ROOT / part).rglob("*.py")]
    assert len(paths) > 300
    for path in paths:
        source = path.read_bytes()
        assert set(kernel_cache._names(ast.parse(source))) <= set(kernel_cache.imported_names(source)), path


def test_choose_respects_the_user_and_replaces_what_a_parent_process_chose(own, monkeypatch):
    kernel_cache.choose()
    mine = Path(os.environ[kernel_cache.VARIABLE])
    assert mine == own / "kernels" / kernel_cache.compiler_hash() and mine.is_dir()
    monkeypatch.setenv(kernel_cache.VARIABLE, str(own / "kernels" / "other"))
    kernel_cache.choose()
    assert Path(os.environ[kernel_cache.VARIABLE]) == mine
    monkeypatch.setenv(kernel_cache.VARIABLE, str(own / "elsewhere"))
    kernel_cache.choose()
    assert os.environ[kernel_cache.VARIABLE] == str(own / "elsewhere")


def test_a_place_that_cannot_be_made_leaves_numbas_own(own, monkeypatch):
    (own / "kernels").write_text("a file in the way")
    kernel_cache.choose()
    assert kernel_cache.VARIABLE not in os.environ


def test_old_versions_of_each_module_are_removed_longest_unused_first(own):
    kernel_cache.choose()
    mine = Path(os.environ[kernel_cache.VARIABLE])
    now = time.time()
    made = []
    for place, names in ((mine, ("rtcore.a", "rtcore.b-c")), (own / "kernels", ("compiler",))):
        for name in names:
            for i in range(kernel_cache.KEPT + 2):
                made.append(place / f"{name}-{i}")
                made[-1].mkdir()
                os.utime(made[-1], (now - i - 1, now - i - 1))
    assert kernel_cache.remove_old() == 6
    assert [path.name for path in made if not path.is_dir()] == [
        f"{name}-{i}" for name in ("rtcore.a", "rtcore.b-c", "compiler") for i in (4, 5)
    ]
    assert mine.is_dir()
