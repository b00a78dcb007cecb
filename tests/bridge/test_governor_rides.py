"""The governor and the engine, on a scene that takes several periods per tick, with an invented clock."""

import numpy as np
import pytest
from daemons import write_config
from governed import PERIOD_NS, SCENE, learn, make_governor, path

from bridge.config import load_config
from tools.bench.session import Session


def ride(directory, took):
    """(ns that each tick took, where the tool ends, m), with `took(step, units used)`, ns, in the place of a clock."""
    session = Session(load_config(write_config(directory, scene=SCENE)))
    session.engage(np.zeros(3))
    budget = session.assembly.budget
    one = make_governor(budget[0], session.model)
    spent = []
    for step, position in enumerate(path(400)):
        report = session.tick(position)["output"]["report"]
        spent.append(took(step, int(report["units_used"])))
        learn(one, spent[-1], report)
        budget[0] = (one.units, budget["passes"][0], one.sweeps, one.visits)
    return np.array(spent), session.state.proxy["position"][0]


@pytest.mark.parametrize("unit_ns", [100, 300, 3000])
def test_ticks_are_in_time_and_the_tool_gets_on_whatever_a_unit_costs(tmp_path, unit_ns):
    """Up to a price at which the floor itself takes six periods."""
    spent, end = ride(tmp_path, lambda step, units: 60_000 + unit_ns * units)
    assert spent.max() > PERIOD_NS
    assert np.percentile(spent, 98) <= max(PERIOD_NS, 60_000 + unit_ns * 2008)
    assert end[0] > 1e-3


@pytest.mark.parametrize("begin", [30, 50, 70])
def test_the_tool_gets_on_at_the_floor(tmp_path, begin):
    """All ticks from `begin` on take ten periods whatever they do."""
    _, end = ride(tmp_path, lambda step, units: 60_000 if step < begin else 10 * PERIOD_NS)
    assert end[0] > 1e-3
