"""The page of results: a new run replaces its own tables, and those of other figures stay as they are."""

import re
import subprocess
from pathlib import Path

from tools.bench.common import Figure, Result, made_from
from tools.bench.report import render_report, sections

DOCS = Path(__file__).resolve().parents[2] / "docs"


def figure(name):
    return Figure(name, f"What {name} shows.", lambda parser: None, lambda arguments, progress: Result({}, True))


def page(names, value, before=""):
    results = {name: Result({"us": {"p50": value}}, value < 5, {"other": {"us": 7}}, ["a note"]) for name in names}
    return render_report([figure(name) for name in names], results, {"cpu": "any"}, f"run {value}", before)


def test_a_run_replaces_its_own_tables_only():
    first = page(["one", "two", "three"], 1)
    second = page(["two"], 9, first)
    before, after = sections(first), sections(second)
    assert list(after) == ["one", "two", "three"]
    assert (after["one"], after["three"]) == (before["one"], before["three"])
    assert "Made by run 9. Machine: cpu any." in after["two"] and "A target was missed." in after["two"]
    assert "| `us` | p50 9 |" in after["two"] and "| `peer.other` | us 7 |" in after["two"]
    assert "* a note" in after["two"]
    assert page(["one", "two", "three"], 1, second) == first


def test_a_new_figure_comes_last():
    assert list(sections(page(["four"], 1, page(["one"], 1)))) == ["one", "four"]


def test_the_version_is_that_of_the_checkout():
    told = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    if told.returncode != 0:
        assert made_from() == ""
        return
    commit = made_from().removeprefix(" at ").removesuffix(" with changes")
    assert len(commit) >= 4 and told.stdout.startswith(commit)


def test_how_soon_a_lost_supervisor_is_noticed_is_told_as_it_was_measured():
    row = re.search(
        r"`rows.supervisor_killed.noticed_ms` \| p50 (\S+) .* max (\S+) \|", (DOCS / "results.md").read_text()
    )
    assert row is not None
    usual, longest = (f"{float(value):.1f}" for value in row.groups())
    told = f"{usual} ms after the kill, {longest} ms at most", f"{usual} ms, {longest} ms at most"
    for name, sentence in zip(("safety.md", "status.md"), told, strict=True):
        assert sentence in (DOCS / name).read_text(), name


def test_the_page_of_results_says_how_to_make_itself():
    named = re.findall(r"--report (\S+?)`", (DOCS / "results.md").read_text())
    assert len(named) > 5 and set(named) == {"docs/results.md"}
