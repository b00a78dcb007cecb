"""The governor and the engine, on a scene that takes several periods per tick at the configured budget.

Two sheets of 12 k triangles along one another, and a million units: the search for near features alone takes 1.5 ms.
"""

import numpy as np
import pytest
from daemons import DaemonProcess, RawClient, line, write_config
from governed import budgets, learn, recorded

from bridge.config import load_config
from bridge.governor import Governor
from bridge.log.reader import read_log
from bridge.log.reexec import reexecute
from rtcore.tables import MAX_CONTACTS
from tools.bench.session import Session

SCENE = """
[[scene.body]]
name = "sheet"
primitive = "plate"
size = [0.2, 0.2, 0.002]
subdivisions = 5
pose.position = [0.0, 0.0, -0.001]

[tool]
primitive = "plate"
size = [0.15, 0.15, 0.002]
subdivisions = 5
start = [0.0, 0.0, 0.003]

[workspace]
pose.position = [0.0, 0.0, 0.003]

[coupling]
ramp_up_ms = 20.0

[rates]
clocking = "triggered"

[budget]
units = 1_000_000
"""


PERIOD_NS = 1_000_000


def path(hold):
    """(400 + hold, 3): presses the tool on the sheet, drags it along, stays; m, device."""
    press = line((0.0, 0.0, 0.0), (0.0, 0.0, -0.006), 100)
    return np.concatenate([press, line(press[-1], (0.03, 0.0, -0.006), 300), np.full((hold, 3), (0.03, 0.0, -0.006))])


def make_governor(budget, model):
    """As the servo makes one for one body at rest."""
    configured = (int(budget[key]) for key in ("units", "sweeps", "visits"))
    return Governor(*configured, period_ns=PERIOD_NS, bodies=len(model.bodies), contacts=MAX_CONTACTS)


def drag(base, log, extra=""):
    """(log, `governed` by the status) of a tool that is pressed on the sheet and dragged: a tick per sample."""
    with DaemonProcess(extra, scene=SCENE, base=base, name=log.stem, log=str(log)) as daemon:
        daemon.wait_ready()
        with RawClient(daemon.facts["endpoints"]) as client:
            client.hello()
            client.own("lease")
            for step in range(60):
                client.sample((0.0, 0.0, 0.0))
                assert client.render() is not None
                if step == 10:
                    client.own("arm", reanchor=False)
            for position in path(0):
                client.sample(position)
                assert client.render() is not None
            governed = client.request("status")["newest"]["governed"]
        assert daemon.stop() == 0
    return read_log(log), governed


def busy_ns(records):
    """What ticks with contacts took."""
    timing = records["timing"][records["output"]["report"]["contact_count"] > 0]
    assert len(timing) > 300
    return timing["sent_ns"] - timing["started_ns"]


@pytest.mark.slow
def test_overloaded_ticks_get_less_work_and_the_log_still_repeats(tmp_path, short_base):
    whole, governed = tmp_path / "whole.mcap", tmp_path / "governed.mcap"
    log, none = drag(short_base, whole, "governor = false\n")
    all_work = log.records
    log, count = drag(short_base, governed)
    less_work = log.records

    assert none == 0 and (all_work["budget"]["units"] == 1_000_000).all()
    assert np.median(busy_ns(all_work)) > PERIOD_NS, "the scene does not overload this machine"
    limited = less_work["budget"]["units"] < 1_000_000
    assert limited.sum() > 300 and 300 < count <= limited.sum()
    assert (less_work["timing"]["governed_total"] == np.cumsum(limited)).all()
    assert np.median(busy_ns(less_work)) < 0.5 * np.median(busy_ns(all_work))
    assert (recorded(less_work) == budgets(make_governor(log.budget[0], log.model), less_work)).all()
    for name in (whole, governed):
        again = reexecute(name)
        assert again.ticks > 400 and (again.ticks_differing, again.bytes_differing) == (0, 0)


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
