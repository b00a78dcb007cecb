"""The figures `tower` and `contact_truths` have the keys and the peers that are promised."""

import argparse

import numpy as np
import pytest

from tools.bench import contact_truths, tower, tower_peers


def arguments(figure, *words):
    parser = argparse.ArgumentParser()
    figure.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.long
def test_tower_has_its_keys():
    result = tower.FIGURE.run(arguments(tower.FIGURE, "--seconds", "0.1", "--tall", "0", "--no-peers"), lambda _: None)
    ratios = {f"R{ratio}" for ratio in tower.RATIOS}
    for key in ("sink_mm", "step_us", "residual", "creep_m_s"):
        assert set(result.figures[key]) == ratios
    assert all(times["p50"] > 0.0 for times in result.figures["step_us"].values())
    assert all(0.0 <= value < 1e-6 for value in result.figures["residual"].values())


@pytest.mark.parametrize("name", sorted(tower_peers.PEERS))
def test_peers_stand_under_a_light_top(name):
    """A box alone: what differs between engines is small, and none of them falls or flies."""
    module, course = tower_peers.PEERS[name]
    if module is None:
        pytest.skip(f"{name} is not installed")
    told = course(tower_peers.Tower(0.1, (1.0,), 0.5, 9.81), 200, 1e-3).summary(1e-3)
    assert "fell" not in told
    assert -0.1 < told["sink_mm"] < 10.0


def test_a_fallen_tower_is_told_from_one_that_stands():
    top = np.zeros((11, 3))
    assert "fell" not in tower_peers.Course(np.ones(10), top).summary(1e-3)
    top[-1, 2] = -2.0 * tower_peers.FALLEN
    assert tower_peers.Course(np.ones(10), top).summary(1e-3)["fell"]


def test_truths_are_told_scene_by_scene():
    figure = contact_truths.FIGURE
    result = figure.run(arguments(figure, "--scenes", "cradle,incline_slide"), lambda _: None)
    assert set(result.figures["scenes"]) == {"cradle", "incline_slide"}
    for row in result.figures["scenes"].values():
        assert {"value", "truth", "error", "bar", "ok"} <= set(row)
        assert row["ok"] == (row["error"] <= row["bar"])
    assert result.figures["failed"] == [] and result.ok
    with pytest.raises(SystemExit, match="there is no scene 'nobody'"):
        figure.run(arguments(figure, "--scenes", "nobody"), lambda _: None)
