"""What a long figure keeps of a run that was ended."""

import subprocess

import pytest

from tools.bench import kept
from tools.bench.kept import Kept


def test_what_is_kept_goes_on_where_it_was_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "_version", lambda: "this version")
    path = tmp_path / "kept.jsonl"
    entry = {"row": "a", "outcome": {"time_to_safe_ms": float("inf"), "ok": False}}
    Kept(path).add(entry)
    with path.open("a") as file:
        file.write('{"row": "b", "outc')  # ended while it wrote
    again = Kept(path)
    assert again.entries == [entry]
    again.add({"row": "b"})
    assert [each["row"] for each in Kept(path).entries] == ["a", "b"]


@pytest.mark.parametrize("what", ["_version", "machine"])
def test_what_is_of_another_version_or_machine_is_refused_and_stays(tmp_path, monkeypatch, what):
    monkeypatch.setattr(kept, "_version", lambda: "this version")
    path = tmp_path / "kept.jsonl"
    Kept(path).add({"row": "a"})
    before = path.read_text()
    monkeypatch.setattr(kept, what, lambda: "another")
    with pytest.raises(SystemExit, match="another version or machine"):
        Kept(path)
    assert path.read_text() == before


def test_a_version_is_what_is_committed_of_what_measures_and_is_measured(tmp_path, monkeypatch):
    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True)

    monkeypatch.setattr(kept, "__file__", str(tmp_path / "tools" / "bench" / "kept.py"))
    for name in ("tools/bench/kept.py", "rtcore/step.py", "docs/status.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "a")
    first = kept._version()
    (tmp_path / "docs" / "status.md").write_text("b")
    git("commit", "-qam", "b")
    assert kept._version() == first
    (tmp_path / "rtcore" / "step.py").write_text("b")
    with pytest.raises(SystemExit, match="as they were committed"):
        kept._version()
    git("commit", "-qam", "b")
    assert kept._version() != first
