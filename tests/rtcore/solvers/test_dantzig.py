"""Dantzig's pivots: the linear complementarity problem is solved, and every partial answer pushes."""

import numpy as np
import pytest
from contact_cases import Case, box_on_ground, solved, tower
from normal_cases import KINDS, as_problem, draw, exact_change, run, wrongness

from rtcore.solvers.dantzig import make_dantzig_work, make_work, pivot, solve

ENOUGH = 5000


@pytest.mark.parametrize("kind", KINDS)
def test_impulses_push_rows_hold_and_both_are_orthogonal(kind):
    rng = np.random.default_rng(11)
    for _ in range(60):
        bodies = int(rng.integers(1, 6))
        rows = draw(rng, kind, bodies, int(rng.integers(1, 12 * bodies)))
        impulse, _, report = run(solve, make_work, as_problem(rows), ENOUGH)
        assert wrongness(rows, impulse) < 1e-8
        assert report["residual"] < 1e-10


def test_whole_numbers_agree_with_exact_arithmetic():
    rng = np.random.default_rng(12)
    for _ in range(25):
        rows = draw(rng, "whole numbers", 1, int(rng.integers(2, 9)))
        impulse, _, _ = run(solve, make_work, as_problem(rows), ENOUGH)
        np.testing.assert_allclose(rows.jacobian.T @ impulse, exact_change(rows), rtol=0, atol=1e-11)


def test_a_definite_matrix_has_one_answer_that_every_set_of_contacts_confirms():
    """All 2^5 sets of pushing contacts are tried in numpy; one alone fits, and it is the one found."""
    rng = np.random.default_rng(13)
    for _ in range(20):
        root = rng.standard_normal((5, 5))
        work = make_dantzig_work(5)
        work.matrix[:] = matrix = root @ root.T + 0.1 * np.eye(5)
        work.free[:] = free = rng.standard_normal(5)
        pivot(work, 5, ENOUGH, 0.0)
        fits = []
        for code in range(32):
            held = np.array([code >> i & 1 for i in range(5)], dtype=bool)
            impulse = np.zeros(5)
            impulse[held] = np.linalg.solve(matrix[np.ix_(held, held)], -free[held])
            if (impulse >= 0.0).all() and (matrix @ impulse + free)[~held].min(initial=0.0) >= 0.0:
                fits.append(impulse)
        assert len(fits) == 1
        np.testing.assert_allclose(work.impulse, fits[0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_pivots_leaves_pushes_and_no_worse_an_answer_than_the_start(kind):
    rows = draw(np.random.default_rng(14), kind, 3, 30)
    for pivots in range(60):
        problem = as_problem(rows)
        problem.equations["impulse"][:, 0] = start = np.abs(np.random.default_rng(15).standard_normal(30))
        impulse, velocity, report = run(solve, make_work, problem, pivots)
        assert (impulse >= 0.0).all() and report["sweeps_used"] <= pivots
        assert report["residual"] <= report["start_residual"]
        if report["residual"] == report["start_residual"]:
            np.testing.assert_array_equal(impulse, start)
        np.testing.assert_allclose(
            velocity, rows.jacobian @ (rows.jacobian.T @ impulse) - rows.bound, rtol=0, atol=1e-9
        )
    assert report["residual"] < 1e-12


def test_the_weight_of_a_tower_goes_down_through_it():
    case = tower(4)
    case = case._replace(friction=np.zeros(16), free=case.free * np.tile([1.0, 0.0, 0.0], 16))
    impulse, velocity, report = solved(solve, make_work, case, ENOUGH, 1e-12)
    assert report["converged"] == 1
    layers = impulse[:, 0].reshape(4, 4).sum(axis=1)
    np.testing.assert_allclose(layers, 9.81e-3 * np.array([4.0, 3.0, 2.0, 1.0]), rtol=1e-9)
    np.testing.assert_allclose(velocity[:, 0], 0.0, atol=1e-12)
    np.testing.assert_array_equal(impulse[:, 1:], 0.0)


def test_contacts_that_nothing_can_open_are_left_and_the_rest_is_finite():
    """One body between two walls that close on it, and a contact of two things that do not move."""
    opposed = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    case = Case(np.kron(opposed, np.diag([1.0, 0.0, 0.0])), np.repeat([[-1.0, 0, 0]], 3, 0).ravel(), np.zeros(3))
    impulse, _, report = solved(solve, make_work, case, ENOUGH)
    assert np.isfinite(impulse).all() and (impulse >= 0.0).all() and report["converged"] == 0


def test_an_island_is_solved_by_itself():
    one, two = box_on_ground([0, 0, -1.0, 1.0, 2.0, 0], 0.0), box_on_ground([0, 0, -2.0, 3.0, -1.0, 0], 0.0)
    both = Case(
        np.block([[one.matrix, np.zeros((12, 12))], [np.zeros((12, 12)), two.matrix]]),
        np.concatenate([one.free, two.free]),
        np.zeros(8),
    )
    impulse, _, _ = solved(solve, make_work, both, ENOUGH, among=(4, 8))
    np.testing.assert_array_equal(impulse[4:], solved(solve, make_work, two, ENOUGH)[0])
    np.testing.assert_array_equal(impulse[:4], 0.0)
