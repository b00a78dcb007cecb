"""The figure of the continuous tests counts what is wrong, and says so when there is nothing to count."""

import argparse

import pytest

from tools.bench.ccd_queries import FIGURE, read_queries

FALL = [(0, 0, 1), (-1, -1, 0), (1, -1, 0), (0, 1, 0)], [(0, 0, -1), (-1, -1, 0), (1, -1, 0), (0, 1, 0)]
MISS = [(3, 0, 1), *FALL[0][1:]], [(3, 0, -1), *FALL[1][1:]]


def rows(query, truth):
    """A query in the text of the public data, its coordinates as fractions with an even denominator."""
    return "".join(f"{2 * x},2,{2 * y},2,{2 * z},2,{truth}\n" for half in query for x, y, z in half)


def run(directory):
    parser = argparse.ArgumentParser()
    FIGURE.add_arguments(parser)
    return FIGURE.run(parser.parse_args(["--data", str(directory), "--no-peers"]), lambda text: None)


def folder(tmp_path, text):
    path = tmp_path / "made" / "vertex-face"
    path.mkdir(parents=True)
    (path / "data_0_0.csv").write_text(text)
    return tmp_path


def test_right_answers_meet_the_target(tmp_path):
    result = run(folder(tmp_path, rows(FALL, 1) + rows(MISS, 0)))
    assert result.ok
    assert {key: result.figures[key] for key in ("queries", "false_negatives", "false_positives")} == {
        "queries": 2,
        "false_negatives": 0,
        "false_positives": 0,
    }
    assert set(result.figures["us"]) >= {"p50", "p99", "max"}
    assert "No edge-edge queries" in result.notes[0]


def test_a_wrong_answer_is_counted_on_its_side(tmp_path):
    """With the truths swapped, each of the two answers is wrong in its own way."""
    result = run(folder(tmp_path, rows(FALL, 0) + rows(MISS, 1)))
    assert not result.ok
    assert result.figures["false_negatives"] == 1
    assert result.figures["false_positives"] == 1


def test_an_absent_folder_is_skipped_with_a_sentence(tmp_path):
    result = run(tmp_path / "nowhere")
    assert result.ok
    assert result.figures["queries"] == 0
    assert all("skipped" in note for note in result.notes)


def test_coordinates_that_are_not_doubles_are_told_and_broken_files_refused(tmp_path):
    third = rows(FALL, 1).replace("0,2,0,2,2,2", "1,3,0,2,2,2")
    assert read_queries(folder(tmp_path / "a", third), "vertex-face").inexact == 1
    with pytest.raises(ValueError, match="8 rows of 7"):
        read_queries(folder(tmp_path / "b", "1,2,3\n"), "vertex-face")
