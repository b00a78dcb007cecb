"""Pairs of bodies whose contacts wait for their turn to be listed: their gaps are those of where bodies are."""

from __future__ import annotations

import numpy as np
import pytest
from moving_scene import EPS, START, push, push_goal, scene
from scipy.spatial.transform import Rotation

from rtcore.state import State, make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, DEGRADED_CONTACTS, STEP_REPORT

BEFORE = 170
"""Ticks in which the heap comes together and the tool begins to push it."""


def worst_gap(state: State, poses: np.ndarray) -> tuple[int, float]:
    """(contacts between bodies, m by which the gap of one is off that of its points along its normal at poses)."""
    count, worst = 0, 0.0
    for k in range(state.pairs.table[0]["count"]):
        pair = state.pairs.rows[state.pairs.order[k]]
        one, two = poses[pair["first"]], poses[pair["second"]]
        turns = [Rotation.from_quat(each["orientation"]) for each in (one, two)]
        for contact in pair["contacts"][: pair["count"]]:
            p = one["position"] + turns[0].apply(contact["point_first"])
            q = two["position"] + turns[1].apply(contact["point_second"])
            gap = float((q - p) @ turns[0].apply(contact["normal"]))
            worst = max(worst, abs(gap - contact["gap"]))
            count += 1
    return count, worst


@pytest.mark.parametrize("units", [20, 60, 100, 200, 400, 20000])
def test_gaps_are_those_where_bodies_are_however_few_units_there_are(units: int):
    """Boxes move by up to 0.2 mm in these ticks; a gap of the tick before would be as much off."""
    model = scene()
    state = make_state(model, START)
    push(model, state, 0, BEFORE)
    asked, budget, report = make_input(400.0, 0.4), np.zeros(1, BUDGET), np.zeros(1, STEP_REPORT)
    seen = waited = 0
    for k in range(BEFORE, BEFORE + 40):
        budget[0] = (units if k % 2 else 20000, 8, 50, 20000)
        asked["goal_position"], asked["goal_orientation"] = push_goal(k)
        poses = state.poses.copy()
        step(model, state, asked[0], budget[0], report[0])
        count, off = worst_gap(state, poses)
        seen += count
        waited += bool(report["degraded"][0] & DEGRADED_CONTACTS)
        assert off < 1e-9 * EPS[1] + 1e-15, k
    assert seen > 100
    assert waited > 0 if units <= 200 else units < 20000 or waited == 0
