"""A hand that presses one box on another: see tools.truths.holding."""

import pytest

from tools.truths import holding


@pytest.mark.parametrize("mass", [0.0, 0.2])
@pytest.mark.parametrize("aside", [0.0, 0.02])
def test_a_box_pressed_on_a_box_gains_no_energy(mass, aside):
    truth = holding.box_on_box(1.0, mass, aside=aside)
    assert truth.ok, truth
    assert truth.more["speed_at_end_m_s"] < 1e-6
