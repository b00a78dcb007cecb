"""What is taken back of a fall that is stopped early: the energy of the height that it did not fall."""

import numpy as np
import pytest

from rtcore.dynamics.moving import unpaid

KICK = np.array([0.003, 0.0, -0.0098])


@pytest.mark.parametrize(
    "start", [(0.0, 0.0, 0.0), (0.1, 0.2, -3.0), (0.1, 0.0, 2.0), (0.0, 0.0, 0.006), (-2.0, 1.0, 0.0)]
)
@pytest.mark.parametrize("u", [0.0, 1e-3, 0.4, 0.999, 1.0])
def test_a_fall_that_is_stopped_has_the_speed_of_its_height(start, u):
    """The way leads straight to the end of the parabola; at u the energy is that of what gravity did till there.

    What passes its summit within the step goes back on its way, and so may be anywhere between.
    """
    before = np.array(start)
    after, mean = before + KICK, before + 0.5 * KICK
    share = unpaid(KICK @ KICK, KICK @ after, (1.0 - u) * (KICK @ mean))
    left = after - share * KICK
    assert left @ left == pytest.approx(before @ before + 2.0 * u * (KICK @ mean), abs=1e-13)
    assert -1e-12 <= share <= 1.0 + 1e-12
    if abs(KICK @ before) > KICK @ KICK:
        assert share == pytest.approx(1.0 - u, abs=0.05)


def test_what_bounced_keeps_the_energy_of_its_height_too():
    """Down with 3 m/s and up again with 1 m/s within the step, more down than up: higher up there is less to take."""
    after = np.array([0.5, 0.0, 1.0])
    fallen = 0.3 * (KICK @ np.array([0.5, 0.0, -0.7]))
    left = after - unpaid(KICK @ KICK, KICK @ after, fallen) * KICK
    assert left @ left == pytest.approx(after @ after - 2.0 * fallen, rel=1e-12)
    assert left[2] == pytest.approx(1.0, abs=0.01)


def test_what_has_too_little_speed_loses_all_of_it_along_the_kick():
    after = np.array([0.0, 0.0, 1e-4])
    left = after - unpaid(KICK @ KICK, KICK @ after, 1e-3) * KICK
    assert left @ KICK == pytest.approx(0.0, abs=1e-15)


def test_without_gravity_nothing_is_taken():
    assert unpaid(0.0, 0.0, 0.0) == 0.0
