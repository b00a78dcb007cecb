"""The figure of meshed scenes: what it counts is so, and a pose in penetration does not slip past its judge."""

import argparse
from dataclasses import replace

import numpy as np
import pytest

from tools.bench import ccd_peers
from tools.bench.ccd_scene import FIGURE, Checker, growth
from tools.bench.mesh_ride import distances, load, ride
from tools.scenes import Phase, scene
from tools.scenes.clearance import clearance


@pytest.fixture(scope="module")
def loaded():
    return load(scene("door_in_body", 1_000))


@pytest.fixture(scope="module")
def approach(loaded):
    """The last half second of the approach, in which the door is stopped by the flange."""
    (phase,) = [phase for phase in loaded.scene.phases if phase.name == "approach"]
    return ride(loaded, replace(phase, poses=phase.poses[-500:]))


def test_distances_are_the_daemons_and_leave_room_for_the_start(loaded):
    tight = scene("peg_in_hole")
    for made, eps in ((loaded.scene, loaded.eps), (tight, distances(tight))):
        assert 0.0 < eps["eps_alert"] < eps["eps_safety"] <= made.clearance * (1.0 + 1e-12)
        assert eps["eps_break"] / eps["eps_alert"] == pytest.approx(23.0 / 4.4)


def test_a_ride_has_a_row_for_each_tick_and_stops_before_contact(loaded, approach):
    assert len(approach.wall_us) == len(approach.goals) == len(approach.after) == 499
    np.testing.assert_array_equal(approach.before[1:], approach.after[:-1])
    assert np.all(approach.wall_us > 0.0) and approach.counters["box_tests"] > 0
    moved = np.linalg.norm(approach.after[-1, :3] - approach.goals[-1, :3])
    assert moved > 1e-3  # it was stopped short of a goal inside the flange
    parts = loaded.scene.parts
    assert clearance(parts, loaded.scene.moving, approach.after[-1]) >= loaded.eps["eps_alert"] * (1.0 - 1e-6)
    assert clearance(parts, loaded.scene.moving, approach.goals[-1]) == 0.0


@pytest.mark.parametrize("library", [True, False])
def test_the_judge_finds_a_pose_in_penetration_and_one_that_is_too_near(loaded, approach, library, monkeypatch):
    if library:
        pytest.importorskip("fcl")
    else:
        monkeypatch.setattr(ccd_peers, "fcl", None)
    last = slice(-1, None)
    fields = ("wall_us", "cpu_us", "units", "before", "after", "goals", "gaps", "truncated", "incomplete")
    end = replace(approach, **{name: getattr(approach, name)[last] for name in fields})
    checker = Checker(loaded, 1)
    checker.check(end)
    assert (checker.penetrations, checker.counted["below_alert"]) == (0, 0)
    assert checker.counted["ticks_judged"] == 1
    assert checker.least == pytest.approx(loaded.eps["eps_alert"], rel=1e-2)
    checker.check(replace(end, after=end.goals))
    assert (checker.penetrations, checker.counted["below_alert"]) == (1, 1)
    near = end.after.copy()
    near[0, :3] += (
        0.05
        * (loaded.eps["eps_alert"] / np.linalg.norm(end.goals[0, :3] - near[0, :3]))
        * (end.goals[0, :3] - near[0, :3])
    )
    checker.check(replace(end, after=near))
    assert (checker.penetrations, checker.counted["below_alert"]) == (1, 2)


def test_the_exponent_of_the_growth_is_that_of_a_power():
    rows = {size: {"slide": {"p50": 3.0 * size**0.7}} for size in (1_000, 10_000, 100_000)}
    assert growth(rows, "p50") == {"slide": pytest.approx(0.7, abs=1e-3)}


def test_the_figure_has_the_promised_keys(monkeypatch):
    made = scene("door_in_body", 1_000)
    short = [Phase(phase.name, phase.poses[:40], phase.free, phase.gap) for phase in made.phases[:2]]
    monkeypatch.setattr("tools.bench.ccd_scene.scene", lambda *arguments: replace(made, phases=short))
    parser = argparse.ArgumentParser()
    FIGURE.add_arguments(parser)
    result = FIGURE.run(parser.parse_args(["--triangles", "1000", "--no-peers"]), lambda text: None)
    assert result.figures["penetrations"] == 0
    assert set(result.figures["ablations"]) >= {"cones", "pass_time", "coherence"}
    for phase in result.figures["phases"].values():
        assert phase["ticks"] == 39 and phase["truncated"] == 0
        assert set(phase["ccd_us"]) >= {"p50", "p99"} and phase["tests_per_tick"] >= 0
