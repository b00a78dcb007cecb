"""Baraff's pivots with friction: the answers of the sweeps where few contacts touch, and what is left otherwise."""

import numpy as np
import pytest
from contact_cases import Case, box_on_ground, groove, in_cone, mass_point, projected, residual, solved, tower

from rtcore.solvers import dantzig, gauss_seidel
from rtcore.solvers.baraff import make_work, solve

ENOUGH = 100_000


def touched(seed: int, contacts: int, mu: float) -> Case:
    """One body with contacts at random places, in random directions, and a random velocity."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(contacts):
        arm = 0.05 * rng.normal(size=3)
        rows += [np.concatenate([axis, np.cross(arm, axis)]) for axis in np.linalg.qr(rng.normal(size=(3, 3)))[0].T]
    jacobian = np.array(rows)
    inverse = np.array([1.0] * 3 + [600.0] * 3)
    return Case(jacobian * inverse @ jacobian.T, jacobian @ rng.normal(size=6), np.full(contacts, mu))


@pytest.mark.parametrize(
    ("free", "impulse"),
    [
        ([-0.1, 0, 0], [0.2, 0, 0]),
        ([-0.1, 0.03, 0.04], [0.2, -0.06, -0.08]),
        ([-0.1, 0.045, 0.06], [0.2, -0.06, -0.08]),
        ([-1, 3, 4], [2, -0.6, -0.8]),
        ([0.1, 3, 4], [0, 0, 0]),
    ],
    ids=["rests", "sticks", "slips within the square", "slips", "opens"],
)
def test_one_contact(free, impulse):
    found, _, report = solved(solve, make_work, mass_point(2.0, free, 0.5), ENOUGH, 1e-13)
    np.testing.assert_allclose(found[0], impulse, rtol=1e-11, atol=1e-13)
    assert report["converged"] == 1


def test_a_box_and_a_point_in_a_groove_lose_what_friction_takes():
    case = box_on_ground([1.0, 0.0, -9.81e-3, 0.0, 0.0, 0.0], 0.5)
    impulse, velocity, report = solved(solve, make_work, case, ENOUGH, 1e-12)
    np.testing.assert_allclose(velocity[:, 1], 0.995095, rtol=1e-12)
    np.testing.assert_allclose(impulse[:, 0].sum(), 9.81e-3, rtol=1e-12)
    assert report["converged"] == 1
    _, velocity, _ = solved(solve, make_work, groove(3.0, [2.0, 0.0, -0.1], 0.4), ENOUGH, 1e-12)
    np.testing.assert_allclose(velocity[:, 1], 2.0 - 0.4 * np.sqrt(2.0) * 0.1, rtol=1e-12)


def test_a_box_that_friction_holds_stays():
    case = box_on_ground([1e-3, 2e-3, -9.81e-3, 0.0, 0.0, 0.0], 0.5)
    impulse, velocity, report = solved(solve, make_work, case, ENOUGH, 1e-12)
    np.testing.assert_allclose(velocity, 0.0, atol=1e-14)
    assert report["converged"] == 1
    assert in_cone(impulse, case.friction)


@pytest.mark.parametrize("mu", [0.1, 0.3, 1.0])
def test_one_contact_has_the_impulse_that_the_local_law_has(mu):
    """Normal and tangents are coupled here; a single contact has one answer unless friction wedges it."""
    for seed in range(50):
        case = touched(seed, 1, mu)
        impulse, _, report = solved(solve, make_work, case, ENOUGH, 1e-12)
        truth, _, _ = solved(gauss_seidel.solve, gauss_seidel.make_work, case, 3, 1e-14)
        assert report["converged"] == 1
        np.testing.assert_allclose(impulse, truth, rtol=0, atol=1e-9 * max(np.abs(truth).max(), 1e-3))


@pytest.mark.parametrize(
    ("contacts", "mu", "least", "others"),
    [(2, 0.1, 50, 0), (2, 0.3, 46, 0), (3, 0.1, 47, 0), (3, 0.3, 38, 1), (5, 0.1, 40, 0)],
)
def test_few_contacts_move_as_the_sweeps_say(contacts, mu, least, others):
    """Impulses may squeeze the body between contacts that hold, by any amount; velocities are the same.

    Not always: in one case of friction 0.3 Coulomb's law allows both to slide on and to wedge. `least`: cases of 50
    that must be solved to 1e-12, `others`: cases that may have another lawful answer.
    """
    solved_ones = 0
    differ = 0
    for seed in range(50):
        case = touched(seed, contacts, mu)
        impulse, velocity, report = solved(solve, make_work, case, ENOUGH, 1e-12)
        _, truth, other = solved(gauss_seidel.solve_anderson, gauss_seidel.make_work, case, 5000, 1e-12)
        assert other["converged"] == 1
        assert in_cone(impulse, case.friction)
        if report["converged"] == 1:
            assert residual(case, impulse) < 1e-11
            solved_ones += 1
            differ += bool(np.abs(velocity - truth).max() > 1e-8)
    assert solved_ones >= least
    assert differ <= others


def test_without_friction_it_is_dantzigs_answer():
    for seed in range(30):
        case = touched(seed, 4, 0.0)
        impulse, velocity, report = solved(solve, make_work, case, ENOUGH, 1e-12)
        _, truth, _ = solved(dantzig.solve, dantzig.make_work, case, ENOUGH, 1e-12)
        assert report["converged"] == 1
        np.testing.assert_array_equal(impulse[:, 1:], 0.0)
        np.testing.assert_allclose(velocity, truth, rtol=0, atol=1e-11)


@pytest.mark.parametrize("start", [0.0, 0.01])
def test_any_number_of_pivots_gives_pushes_in_the_cone_no_worse_than_the_start(start):
    """Among them a tower, which pivots do not solve: what is best of all passes is kept."""
    for case in (tower(3), touched(1, 5, 0.6)):
        first = start * np.random.default_rng(3).normal(size=(len(case.friction), 3))
        before = residual(case, projected(first, case.friction))
        for pivots in (0, 1, 2, 5, 12, 40, 150, 600):
            impulse, velocity, report = solved(solve, make_work, case, pivots, start=first)
            now = residual(case, impulse)
            assert in_cone(impulse, case.friction)
            assert now <= before * (1.0 + 1e-9)
            assert report["residual"] == pytest.approx(now, rel=1e-6)
            assert report["sweeps_used"] <= pivots
            np.testing.assert_allclose(velocity.ravel(), case.matrix @ impulse.ravel() + case.free, rtol=0, atol=1e-13)


def test_contacts_that_nothing_can_open_are_told():
    """One body between two walls that close on it, and a contact of two things that do not move."""
    opposed = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    case = Case(np.kron(opposed, np.eye(3)), np.repeat([[-1.0, 0, 0]], 3, 0).ravel(), np.full(3, 0.5))
    impulse, _, report = solved(solve, make_work, case, ENOUGH)
    assert np.isfinite(impulse).all() and in_cone(impulse, case.friction) and report["converged"] == 0


def test_an_island_is_solved_by_itself():
    one, two = touched(4, 2, 0.2), touched(5, 3, 0.2)
    both = Case(
        np.block([[one.matrix, np.zeros((6, 9))], [np.zeros((9, 6)), two.matrix]]),
        np.concatenate([one.free, two.free]),
        np.full(5, 0.2),
    )
    impulse, _, _ = solved(solve, make_work, both, ENOUGH, 1e-12, among=(2, 5))
    np.testing.assert_array_equal(impulse[2:], solved(solve, make_work, two, ENOUGH, 1e-12)[0])
    np.testing.assert_array_equal(impulse[:2], 0.0)
