"""The governor in a whole daemon, on a scene that takes several periods per tick at the configured budget."""

import numpy as np
import pytest
from daemons import DaemonProcess, RawClient
from governed import PERIOD_NS, SCENE, budgets, make_governor, path, recorded

from bridge.log.reader import read_log
from bridge.log.reexec import reexecute


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
@pytest.mark.long
def test_overloaded_ticks_get_less_work_and_the_log_still_repeats(tmp_path, short_base):
    whole, governed = tmp_path / "whole.mcap", tmp_path / "governed.mcap"
    log, none = drag(short_base, whole, "governor = false\n")
    all_work = log.records
    log, count = drag(short_base, governed)
    less_work = log.records

    assert none == 0 and (all_work["budget"]["units"] == 1_000_000).all()
    # By the mean: long ticks and short ones come in turns.
    assert np.mean(busy_ns(all_work)) > PERIOD_NS, "the scene does not overload this machine"
    limited = less_work["budget"]["units"] < 1_000_000
    assert limited.sum() > 300 and 300 < count <= limited.sum()
    assert (less_work["timing"]["governed_total"] == np.cumsum(limited)).all()
    assert np.mean(busy_ns(less_work)) < 0.5 * np.mean(busy_ns(all_work))
    assert (recorded(less_work) == budgets(make_governor(log.budget[0], log.model), less_work)).all()
    for name in (whole, governed):
        again = reexecute(name)
        assert again.ticks > 400 and (again.ticks_differing, again.bytes_differing) == (0, 0)
