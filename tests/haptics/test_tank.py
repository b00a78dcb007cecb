"""Energy tanks: what a link may spend."""

from __future__ import annotations

import numpy as np
import pytest

from haptics.tables import LINK, LINK_SETTINGS, PORT
from haptics.tank import FADES_BELOW, HAND_OVER, MOST, filling, hear_tank, level_share, pass_energy
from rtcore.kernels import kernel


@kernel
def hear(link, energy):
    hear_tank(link, energy)


def tables(level, tank=0.2):
    settings, link, port = (np.zeros(1, t) for t in (LINK_SETTINGS, LINK, PORT))
    settings[0]["dt"], settings[0]["tank"], settings[0]["tank_damping"] = 1e-3, tank, 4.0
    link[0]["credit"] = level
    return settings[0], link[0], port[0]


@pytest.mark.parametrize(
    ("level", "share", "drag"), [(-1.0, 0.0, 4.0), (0.0, 0.0, 4.0), (0.025, 0.5, 3.5), (0.2, 1.0, 0.0), (0.5, 1.0, 0.0)]
)
def test_an_empty_tank_drags_and_renders_nothing(level, share, drag):
    settings, link, _ = tables(level)
    assert FADES_BELOW == 0.25
    assert level_share(settings, link) == pytest.approx(share)
    assert filling(settings, link) == pytest.approx(drag)


def test_work_is_booked_once_and_too_much_is_let_go():
    settings, link, port = tables(0.1)
    port["applied"], port["moved"] = (2.0, 0.0, 0.0, 0.0, 0.1, 0.0), (1e-3, 5.0, 0.0, 0.0, 0.02, 0.0)
    pass_energy(settings, link, port)
    after = 0.1 - 2e-3 - 2e-3
    assert link["energy_sent"] == pytest.approx(after * 1e-3 / HAND_OVER, rel=1e-12)
    assert link["credit"] + link["energy_sent"] == pytest.approx(after, rel=1e-12)
    port["applied"][0] = -1e6
    pass_energy(settings, link, port)
    assert link["credit"] <= MOST * 0.2


def test_totals_that_are_lost_or_late_are_taken_in_once():
    _, link, _ = tables(0.0)
    for total in (0.1, 0.4, 0.2, 0.4, 0.5):
        hear(link, total)
    assert link["credit"] == pytest.approx(0.5, rel=1e-12)


def test_a_tank_in_debt_hands_nothing_over():
    settings, link, port = tables(-0.1)
    pass_energy(settings, link, port)
    assert link["energy_sent"] == 0.0
