"""What the thesis' rows of friction make of Coulomb's law: exact for one particle that slides, a pyramid at rest."""

import numpy as np
import pytest
from normal_cases import unit_movers

from rtcore.solvers.friction_rows import put_sliding, put_sticking
from rtcore.solvers.motion_space import ROW, make_motion_work, project_rows
from rtcore.tables import CONTACT_EQUATION

ENOUGH = 2000


def particle(free: list[float], mu: float) -> np.void:
    """A contact of a mass point of 1 kg with a plane: axes normal, two tangents."""
    equation = np.zeros(1, CONTACT_EQUATION)
    equation["jacobian_first"][0, :, :3] = np.eye(3)
    equation["second"] = -1
    equation["friction"] = mu
    equation["free"] = free
    return equation[0]


def moved(table: np.ndarray, count: int, free: list[float]) -> np.ndarray:
    """Motion of the mass point along normal and tangents."""
    work = make_motion_work(1, count)
    ended = project_rows(unit_movers(1), 1, table, count, work, ENOUGH, 0.0)
    assert ended.aside == 0
    return np.asarray(free) + work.motion[:3]


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.4, 1.3])
@pytest.mark.parametrize("angle", [0.0, 1.0, 4.0])
def test_rows_of_sliding_are_coulombs_law_for_one_particle(mu, angle):
    """Pressed, it loses mu g_n along the slip; pulled off, nothing."""
    t = np.array([np.cos(angle), np.sin(angle)])
    table = np.zeros(2, ROW)
    for normal in (-1.0, 1.0):
        free = [normal, *(5.0 * t)]
        count = put_sliding(table, 0, particle(free, mu), *t)
        assert count == 2
        expected = [0.0, *((5.0 - mu) * t)] if normal < 0.0 else free
        np.testing.assert_allclose(moved(table, count, free), expected, rtol=0, atol=1e-14)


def test_the_pyramid_slips_at_its_own_rate_and_takes_off():
    """mu = 0.4, g_t = 5, g_n = 9.8: a_t = (g_t - mu g_n) / (1 + mu^2) = 0.931, not 1.08, and a_n = mu a_t."""
    free = [-9.8, 5.0, 0.0]
    table = np.zeros(6, ROW)
    motion = moved(table, put_sticking(table, 0, particle(free, 0.4), 6), free)
    assert motion[1] == pytest.approx((5.0 - 0.4 * 9.8) / 1.16, rel=1e-12)
    assert motion[1] == pytest.approx(0.931, abs=5e-4)
    assert motion[0] == pytest.approx(0.4 * motion[1], rel=1e-12)
    count = put_sliding(table, 0, particle(free, 0.4), 1.0, 0.0)
    assert moved(table, count, free)[1] == pytest.approx(1.08, abs=1e-12)


@pytest.mark.parametrize("sides", [3, 4, 6, 12])
def test_the_pyramid_sticks_from_mu_down_to_mu_cos_of_its_half_angle(sides):
    mu = 0.5
    table = np.zeros(sides, ROW)
    limits = []
    for angle in np.linspace(0.0, 2.0 * np.pi, 6 * sides, endpoint=False):
        low, high = 0.0, 1.0
        for _ in range(30):
            pull = 0.5 * (low + high)
            free = [-1.0, pull * np.cos(angle), pull * np.sin(angle)]
            count = put_sticking(table, 0, particle(free, mu), sides)
            low, high = (pull, high) if np.abs(moved(table, count, free)).max() < 1e-11 else (low, pull)
        limits.append(low)
    assert max(limits) == pytest.approx(mu, rel=1e-8)
    assert min(limits) == pytest.approx(mu * np.cos(np.pi / sides), rel=1e-8)
