"""A tower of boxes with a heavy top, with the budget of a daemon: see tools.bench.tower."""

import pytest

from rtcore.tables import DEGRADED_CONTACTS
from tools.bench import tower


@pytest.mark.parametrize("ratio", tower.RATIOS)
def test_a_tower_stands(ratio):
    told, _, _ = tower.stand(tower.masses_of(tower.BOXES, ratio), 2000)
    assert abs(told["sink_mm"]) < 1e-4
    assert told["creep_m_s"] < tower.CREEP
    assert told["residual"] < 1e-9
    assert told["degraded"] & DEGRADED_CONTACTS == 0
