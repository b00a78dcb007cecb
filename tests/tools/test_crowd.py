"""The figure of a tool among free bodies: its boxes are apart at the start, move, and one in another is found."""

import argparse
from dataclasses import replace

import numpy as np
import pytest

from rtcore.tables import FREE
from tools.bench.crowd import FIGURE, go, load, penetrations
from tools.scenes import scene

COUNT = 3


@pytest.fixture(scope="module")
def made():
    whole = scene("door_in_body", 1_000)
    return replace(whole, phases=[replace(phase, poses=phase.poses[:200]) for phase in whole.phases])


@pytest.fixture(scope="module")
def crowd(made):
    return load(made, COUNT)


@pytest.fixture(scope="module")
def ran(crowd):
    return go(crowd, crowd.scene.phases[-1], None)


def test_a_run_has_a_row_for_each_tick_with_boxes_that_move(crowd, ran):
    assert len(ran.wall_us) == len(ran.cpu_us) == len(ran.reports) == 199
    assert np.all(ran.wall_us > 0.0)
    free = crowd.model.bodies["kind"] == FREE
    assert free.sum() == COUNT
    places = np.array([poses["position"][free] for poses, _ in ran.moments])
    assert (crowd.model.bodies["position"][free, 2] - places[0, :, 2] > 0.01).all(), "they fell"
    assert np.ptp(places[:, ::2, 2], axis=0).min() > 0.01, "every other one was thrown up"
    assert (ran.reports["body_contacts"] > 0).any()


def test_a_box_in_another_body_is_found(crowd, ran):
    bad, least = penetrations(crowd, ran)
    assert bad == 0 and least >= crowd.model.world[0]["eps_alert"] * (1.0 - 1e-6)
    moved = [(poses.copy(), proxy) for poses, proxy in ran.moments]
    first, second = np.flatnonzero(crowd.model.bodies["kind"] == FREE)[:2]
    moved[1][0]["position"][first] = moved[1][0]["position"][second] + (0.01, 0.0, 0.0)
    assert penetrations(crowd, replace(ran, moments=moved)) == (1, 0.0)


def test_the_figure_has_all_that_the_target_is_about(made, monkeypatch):
    monkeypatch.setattr("tools.bench.crowd.among_more", lambda seed: made)
    parser = argparse.ArgumentParser()
    FIGURE.add_arguments(parser)
    told = []
    result = FIGURE.run(parser.parse_args(["--bodies", "0", "2", "--phases", "slide"]), told.append)
    assert set(result.figures) >= {"0_bodies", "2_bodies", "penetrations", "tool_triangles", "scene_triangles"}
    row = result.figures["2_bodies"]["slide"]
    assert row["ticks"] == 199 and row["tick_us"]["p50"] <= row["tick_us"]["p99"] <= row["tick_us"]["p999"]
    assert result.figures["penetrations"] == 0 and told
    late = row["tick_us"]["p99"] > 700.0
    assert result.ok is not late and any("above 700" in note for note in result.notes) is late
