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



def test_what_the_position_pass_opens_is_no_flight():
    """Two boxes fly apart, nearer than they should be, in a step without work for collisions: they stay and wait.

    With the opening taken for flight the upper one seemed to go up too fast for its energy, and was thrown down.
    """
    gap = 0.4 * EPS[1]
    cube = block(0.03, 0.03, 0.03)
    solids = [Solid(cube, (0.0, 0.0, height), mass=0.0162) for height in (1.0, 1.03 + gap)]
    world = World(solids, (0.0, 0.0, -9.81))
    velocities = np.array([(0.0, 0.0, -0.05), (0.03, 0.0, 7.6e-3)])
    world.state.velocities["linear"][:2] = velocities + [0.0, 0.0, 9.81e-3]  # what the first step takes
    world.step()
    before = world.positions
    velocities = world.state.velocities["linear"][:2].copy()
    world.budget["units"] = 0
    world.step()
    assert world.report["stopped"] == 2
    np.testing.assert_array_equal(world.positions, before)
    np.testing.assert_allclose(world.state.velocities["linear"][:2], velocities, rtol=0, atol=1e-12)
