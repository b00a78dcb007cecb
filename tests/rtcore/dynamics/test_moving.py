"""What is taken back of a fall that is stopped early: the energy of the height that it did not fall."""

import numpy as np
import pytest

from rtcore.dynamics.moving import unpaid
from tools.scenes.bodies import EPS, Solid, World, block

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


@pytest.mark.parametrize("units", [20, 100])
@pytest.mark.parametrize("near", [0.45, 0.6, 0.9])
def test_what_the_position_pass_opens_is_no_flight(near, units):
    """Two boxes fly on, nearer than they should be, in a step that has no work left for collisions: they stay.

    With the opening taken for flight the upper one seemed to go up too fast for its energy, and was thrown down.
    """
    gap = near * EPS[1]
    cube = block(0.03, 0.03, 0.03)
    world = World([Solid(cube, (0.0, 0.0, height), mass=0.0162) for height in (1.0, 1.03 + gap)], (0.0, 0.0, -9.81))
    world.state.velocities["linear"][:2] = [(0.0, 0.0, 5e-3), (0.03, 0.0, 0.017)]
    world.step()
    before = world.positions
    velocities = np.array([(0.0, 0.0, 7.4e-3), (0.03, 0.0, 7.6e-3)])
    world.state.velocities["linear"][:2] = velocities
    world.budget["units"] = units
    world.step()
    assert world.report["stopped"] == 2 and world.report["body_contacts"] > 0
    np.testing.assert_array_equal(world.positions, before)
    np.testing.assert_allclose(world.state.velocities["linear"][:2], velocities, rtol=0, atol=1e-12)
