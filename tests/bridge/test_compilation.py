"""Two compilers side by side: started only where there is something to compile, and their progress adds up."""

import json
import subprocess
import sys

import pytest

from bridge import compilation
from bridge.kernel_cache import ROOT, VARIABLE, module_hash


@pytest.fixture
def cold(tmp_path, monkeypatch):
    """A cache without kernels, and two cores."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(compilation.realtime, "allowed_cores", lambda: [0, 1])
    return tmp_path


def fill(cache) -> None:
    """As if the last kernel had been kept by a process with these sources."""
    kept = cache / f"haptics.tick-{module_hash(ROOT / 'haptics' / 'tick.py')}"
    kept.mkdir()
    (kept / "tick.tick-9.py311.nbi").write_bytes(b"")


def speak(monkeypatch, *scripts: str) -> list[int]:
    """Stand-ins for the two compilers; returns the sides that were started."""
    started: list[int] = []

    def start(side: int) -> subprocess.Popen:
        started.append(side)
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-c", scripts[side]], stdin=pipe, stdout=pipe, text=True)

    monkeypatch.setattr(compilation, "_start", start)
    return started


def saying(*rows: tuple[str, int, int], then: str = "") -> str:
    return "\n".join(f"print({json.dumps(json.dumps(row))}, flush=True)" for row in rows) + "\n" + then


def test_the_last_kernel_of_these_sources_tells_whether_all_are_there(cold, monkeypatch):
    assert compilation.is_cold()
    (cold / "haptics.tick-0123456789abcdef").mkdir()
    (cold / "haptics.tick-0123456789abcdef" / "tick.tick-9.py311.nbi").write_bytes(b"")
    assert compilation.is_cold(), "those were made from other sources"
    fill(cold)
    assert not compilation.is_cold()
    monkeypatch.delenv(VARIABLE)
    assert not compilation.is_cold(), "without a cache to share there is nothing to fill"


def test_progress_counts_both_and_never_goes_back(cold, monkeypatch):
    started = speak(
        monkeypatch,
        saying(("a", 0, 3), ("b", 1, 3), ("c", 2, 3), ("ready", 3, 3)),
        saying(("x", 0, 2), ("y", 1, 2), ("ready", 2, 2)),
    )
    said: list[tuple[str, int, int]] = []
    compilation.compile_side_by_side(lambda *row: said.append(row))
    assert started == [0, 1]
    done = [row[1] for row in said]
    assert done == sorted(done) and said[-1] == ("ready", 5, 5)
    assert {row[2] for row in said} == {5}


def test_a_compiler_that_dies_does_not_stop_the_other(cold, monkeypatch):
    speak(
        monkeypatch,
        saying(("a", 0, 2), then="raise SystemExit(3)"),
        saying(("x", 0, 1), ("ready", 1, 1), then="print('no line of ours')"),
    )
    said: list[tuple[str, int, int]] = []
    compilation.compile_side_by_side(lambda *row: said.append(row))
    assert said[-1][1:] == (1, 3)


@pytest.mark.parametrize("reason", ["warm", "one core"])
def test_nothing_is_started_in_vain(reason, cold, monkeypatch):
    started = speak(monkeypatch, "", "")
    if reason == "warm":
        fill(cold)
    else:
        monkeypatch.setattr(compilation.realtime, "allowed_cores", lambda: [0])
    compilation.compile_side_by_side(lambda *row: None)
    assert started == []


def test_an_interrupt_ends_both(cold, monkeypatch):
    endless = saying(("a", 0, 2), then="import time; time.sleep(60)")
    children: list[subprocess.Popen] = []

    def start(side: int) -> subprocess.Popen:
        children.append(subprocess.Popen([sys.executable, "-c", endless], stdout=subprocess.PIPE, text=True))
        return children[-1]

    def interrupted(*row) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compilation, "_start", start)
    with pytest.raises(KeyboardInterrupt):
        compilation.compile_side_by_side(interrupted)
    assert len(children) == 2 and all(child.poll() is not None for child in children)


WAITS = "import sys; print('waiting', flush=True); sys.stdin.readline(); "


def test_what_calls_both_sides_is_compiled_when_both_are_there(cold, monkeypatch):
    there = cold / "there"
    slow = f"import pathlib, time; time.sleep(0.5); pathlib.Path({str(there)!r}).touch()\n" + WAITS
    quick = (
        f"import pathlib\n{WAITS}print(__import__('json').dumps((str(pathlib.Path({str(there)!r}).exists()), 1, 1)))"
    )
    scripts = (saying(("a", 0, 1), then=slow), saying(("x", 0, 1), then=quick))
    speak(monkeypatch, *scripts)
    said: list[tuple[str, int, int]] = []
    compilation.compile_side_by_side(lambda *row: said.append(row))
    assert said[-1] == ("a", 1, 2), "the row that says True is that of a side that is done"


@pytest.mark.parametrize("dead", [0, 1])
def test_a_compiler_does_not_wait_for_one_that_died(dead, cold, monkeypatch):
    scripts = [saying(("a", 0, 1), then=WAITS + "print('[\"b\", 1, 1]')")] * 2
    scripts[dead] = saying(("x", 0, 1), then="raise SystemExit(3)")
    speak(monkeypatch, *scripts)
    said: list[tuple[str, int, int]] = []
    compilation.compile_side_by_side(lambda *row: said.append(row))
    assert said[-1][1:] == (1, 2)


def test_every_kernel_has_a_side():
    """Nothing is left to the process that waits; each side has one part that needs the other's."""
    from haptics.warm_up import parts
    from rtcore.warm_up import FIRST, SECOND
    from rtcore.warm_up import parts as mechanics

    everything = (*mechanics(), *parts())
    assert [(part.what, part.side) for part in everything if part.last] == [("step", FIRST), ("haptics: tick", SECOND)]
    assert {part.side for part in everything} == {FIRST, SECOND}
    assert len({part.what for part in everything}) == len(everything)


def test_a_side_waits_before_what_needs_the_other(monkeypatch):
    from haptics import warm_up
    from rtcore.warm_up import FIRST, SECOND, Part

    done: list[str] = []
    rows = [("a", FIRST, False), ("b", FIRST, True), ("c", SECOND, False), ("d", SECOND, True), ("e", FIRST, False)]
    made = tuple(Part(what, side, lambda what=what: done.append(what), last) for what, side, last in rows)
    monkeypatch.setattr(warm_up.mechanics, "parts", lambda: made)
    monkeypatch.setattr(warm_up, "parts", tuple)
    warm_up.warm_up_side(FIRST, wait=lambda: done.append("waited"))
    assert done == ["a", "e", "waited", "b"]
