"""Accelerated projected gradient: answers known in closed form, and what the convex relaxation makes of slip."""

import numpy as np
import pytest
from contact_cases import Case, box_on_ground, groove, in_cone, mass_point, projected, residual, solved, tower

from rtcore.solvers.gradient import make_work, solve, solve_relaxed

either = pytest.mark.parametrize("way", [solve, solve_relaxed], ids=["law", "relaxed"])


def run(way, case: Case, sweeps: int, **more):
    return solved(way, make_work, case, sweeps, **more)


@pytest.mark.parametrize(
    ("free", "impulse"),
    [
        ([-0.1, 0, 0], [0.2, 0, 0]),  # rests
        ([-0.1, 0.03, 0.04], [0.2, -0.06, -0.08]),  # sticks at the border of the cone
        ([-1, 3, 4], [2, -0.6, -0.8]),  # slips, friction against the slip
        ([0.1, 3, 4], [0, 0, 0]),  # flies off
    ],
)
def test_a_point_mass_on_a_plane(free, impulse):
    found, velocity, report = run(solve, mass_point(2.0, free, 0.5), 300)
    np.testing.assert_allclose(found[0], impulse, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(velocity[0], np.asarray(impulse) / 2.0 + free, rtol=0, atol=1e-12)
    assert report["residual"] < 1e-12


def test_the_relaxation_lifts_a_point_mass_that_slips():
    """Its answer is the projection of -m q onto the cone: r_n = (m v_n + mu m v_t) / (1 + mu^2), u_n = mu |u_t|."""
    case = mass_point(2.0, [-1.0, 3.0, 4.0], 0.5)
    found, velocity, report = run(solve_relaxed, case, 300)
    normal = (2.0 + 0.5 * 10.0) / 1.25
    np.testing.assert_allclose(found[0], [normal, -0.3 * normal, -0.4 * normal], rtol=1e-12)
    assert velocity[0, 0] == pytest.approx(0.5 * np.linalg.norm(velocity[0, 1:]), rel=1e-12)
    assert velocity[0, 0] == pytest.approx(1.8, rel=1e-12)  # Coulomb's law says 0
    assert report["residual"] == pytest.approx(residual(case, found), rel=1e-12)
    assert report["residual"] > 0.1 and report["converged"] == 0


@either
def test_where_nothing_slips_both_are_coulombs_law(way):
    """Gravity and a push that friction can hold: the cube stays, and the corners carry its weight."""
    found, velocity, report = run(way, box_on_ground([2e-3, 0, -9.81e-3, 0, 0, 0], 0.5), 3000)
    np.testing.assert_allclose(velocity, 0.0, atol=1e-11)
    np.testing.assert_allclose(found.sum(axis=0), [9.81e-3, -2e-3, 0.0], rtol=0, atol=1e-11)
    assert report["residual"] < 1e-9


def test_a_sliding_cube_keeps_to_the_ground_by_the_law_and_takes_off_by_the_relaxation():
    case = box_on_ground([1.0, 0, -9.81e-3, 0, 0, 0], 0.5)
    found, velocity, _ = run(solve, case, 3000)
    np.testing.assert_allclose(found.sum(axis=0), [9.81e-3, -0.5 * 9.81e-3, 0.0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(velocity, [[0.0, 1.0 - 0.5 * 9.81e-3, 0.0]] * 4, rtol=0, atol=1e-10)
    _, velocity, _ = run(solve_relaxed, case, 3000)
    np.testing.assert_allclose(velocity[:, 0], 0.5 * np.hypot(velocity[:, 1], velocity[:, 2]), rtol=1e-8)
    assert (velocity[:, 0] > 0.3).all()


def test_a_groove_carries_the_weight_on_both_sides_and_brakes():
    """Each side pushes m g dt / sqrt(2); both brake the slip along the groove by mu times that."""
    found, velocity, _ = run(solve, groove(3.0, [1.0, 0.0, -9.81e-3], 0.3), 3000)
    push = 3.0 * 9.81e-3 / np.sqrt(2.0)
    np.testing.assert_allclose(found, [[push, -0.3 * push, 0.0]] * 2, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(velocity[:, 0], 0.0, atol=1e-11)


def test_a_tower_settles_on_coulombs_law():
    case = tower(3)
    found, _, report = run(solve, case, 20_000, tolerance=1e-10)
    assert report["converged"] == 1 and 0 < report["sweeps_used"] < 20_000
    assert in_cone(found, case.friction)
    assert residual(case, found) < 1.1e-10


def test_the_relaxation_is_at_the_least_of_its_energy():
    """Convex: velocities in the dual cone and at right angles to impulses in the cone say that nothing is lower."""
    case = tower(3)
    case = case._replace(free=case.free + 0.05 * case.matrix @ np.random.default_rng(3).standard_normal(36))
    found, velocity, report = run(solve_relaxed, case, 20_000)
    assert in_cone(found, case.friction)
    slip = np.hypot(velocity[:, 1], velocity[:, 2])
    scale = np.abs(case.free).max()
    assert (velocity[:, 0] >= case.friction * slip - 1e-8 * scale).all()
    assert np.abs((found * velocity).sum(axis=1)).max() < 1e-8 * scale * np.abs(found).max()
    energy = [
        0.5 * r.ravel() @ case.matrix @ r.ravel() + case.free @ r.ravel()
        for r in (found, run(solve, case, 20_000)[0], projected(found + 0.01 * np.abs(found).max(), case.friction))
    ]
    assert energy[0] < min(energy[1:])
    assert report["residual"] > 1e-3  # something slips, so that it is not Coulomb's answer


def test_any_number_of_sweeps_leaves_a_valid_answer_and_more_no_worse_one():
    case = tower(3)
    last = np.inf
    for sweeps in [*range(12), 40, 200]:
        found, velocity, report = run(solve, case, sweeps)
        assert in_cone(found, case.friction)
        np.testing.assert_allclose(velocity.ravel(), case.matrix @ found.ravel() + case.free, rtol=0, atol=1e-15)
        assert report["sweeps_used"] == sweeps
        assert report["residual"] == pytest.approx(residual(case, found), rel=1e-9)
        assert report["residual"] <= last
        last = report["residual"]
    assert last < 1e-2


@either
def test_any_number_of_sweeps_of_either_stays_in_the_cone(way):
    case = box_on_ground([1.0, 0.3, -0.1, 2.0, 0, 1.0], 0.7)
    for sweeps in range(20):
        assert in_cone(run(way, case, sweeps)[0], case.friction)


@either
def test_a_start_outside_the_cone_is_projected(way):
    found, _, report = run(way, mass_point(1.0, [-1.0, 0.0, 0.0], 0.5), 0, start=[-3.0, 1.0, 1.0])
    np.testing.assert_array_equal(found, [[0.0, 0.0, 0.0]])
    assert report["start_residual"] == report["residual"] == 1.0 and report["converged"] == 0


@either
def test_islands_are_solved_by_themselves_and_to_the_same_bits(way):
    one, two = box_on_ground([1.0, 0.2, -9.81e-3, 0, 0, 0.3], 0.4), groove(1.0, [0.1, 0, -1], 0.3)
    both = Case(
        np.block([[one.matrix, np.zeros((12, 6))], [np.zeros((6, 12)), two.matrix]]),
        np.concatenate([one.free, two.free]),
        np.concatenate([one.friction, two.friction]),
    )
    found, _, report = run(way, both, 30, among=(4, 6))
    alone, _, alone_report = run(way, two, 30)
    np.testing.assert_array_equal(found[4:], alone)
    np.testing.assert_array_equal(found[:4], 0.0)
    assert report == alone_report


@either
def test_nothing_to_do_is_done_at_once(way):
    for case in (mass_point(1.0, [0.0, 0.0, 0.0], 0.5), Case(np.zeros((0, 0)), np.zeros(0), np.zeros(0))):
        _, _, report = run(way, case, 100)
        assert report["sweeps_used"] == 0 and report["residual"] == 0.0 and report["converged"] == 1


@either
def test_a_contact_between_things_that_do_not_move_stays_finite(way):
    case = Case(np.zeros((3, 3)), np.array([-1.0, 1.0, 0.0]), np.array([0.5]))
    found, velocity, report = run(way, case, 10)
    np.testing.assert_array_equal(found, [[0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(velocity, [[-1.0, 1.0, 0.0]])
    assert report["converged"] == 0
