"""Newton's method on Coulomb's law: closed forms, quadratic ends, and that it never makes an answer worse."""

import numpy as np
import pytest
from contact_cases import Case, box_on_ground, groove, in_cone, mass_point, residual, solved, tower

from rtcore.solvers import newton
from rtcore.solvers.problem import load_matrix
from rtcore.solvers.semismooth import eliminate, fits, improve, make_work, solve
from rtcore.tables import SOLVER_REPORT, SOLVER_SETTINGS


def held_tool(contacts: int, seed: int, mu: float = 0.3) -> Case:
    """A tool that weighs little (400 N/m at 1 kHz) and is pulled hard against surfaces that face about one way."""
    random = np.random.default_rng(seed)
    inverse = np.repeat([1.0, 0.05**-2], 3) / 4e-4
    rows = []
    for _ in range(contacts):
        normal = np.array([0.0, 0.0, 1.0]) + 0.3 * random.standard_normal(3)
        normal /= np.linalg.norm(normal)
        one = np.cross(normal, [1.0, 0.0, 0.0])
        one /= np.linalg.norm(one)
        arm = 0.05 * random.uniform(-1.0, 1.0, 3)
        rows += [np.concatenate([axis, np.cross(arm, axis)]) for axis in (normal, one, np.cross(normal, one))]
    jacobian = np.array(rows)
    return Case(jacobian * inverse @ jacobian.T, jacobian @ [20.0, 30.0, -60.0, 0, 0, 0], np.full(contacts, mu))


def answer(case: Case) -> np.ndarray:
    """Impulses (n, 3) by the proximal steps of Newton's method, checked in numpy."""
    found, _, _ = solved(newton.solve, newton.make_work, case, 2000, 1e-13)
    assert residual(case, found) < 1e-11
    return found


@pytest.mark.parametrize(
    ("free", "impulse", "rounds"),
    [
        ([-0.1, 0, 0], [0.2, 0, 0], 1),  # rests
        ([-0.1, 0.01, 0.02], [0.2, -0.02, -0.04], 1),  # sticks
        ([-1, 3, 4], [2, -0.6, -0.8], 3),  # slips, friction against the slip
        ([0.1, 3, 4], [0, 0, 0], 0),  # flies off
    ],
)
def test_a_point_mass_on_a_plane(free, impulse, rounds):
    found, velocity, report = solved(solve, make_work, mass_point(2.0, free, 0.5), 20, 1e-10)
    np.testing.assert_allclose(found[0], impulse, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(velocity[0], np.asarray(impulse) / 2.0 + free, rtol=0, atol=1e-9)
    assert report["sweeps_used"] <= 1 + rounds and report["converged"] == 1


def test_a_groove_carries_the_weight_on_both_sides_and_brakes():
    found, velocity, _ = solved(solve, make_work, groove(3.0, [1.0, 0.0, -9.81e-3], 0.3), 20, 1e-13)
    push = 3.0 * 9.81e-3 / np.sqrt(2.0)
    np.testing.assert_allclose(found, [[push, -0.3 * push, 0.0]] * 2, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(velocity[:, 0], 0.0, atol=1e-12)


def test_a_cube_on_four_corners_is_held_though_its_equations_are_singular():
    """Four corners, twelve rows, six velocities: what carries the weight is not unique, that it is carried is."""
    case = box_on_ground([2e-3, 0, -9.81e-3, 0, 0, 0], 0.5)
    assert np.linalg.matrix_rank(case.matrix) == 6
    found, velocity, _ = solved(solve, make_work, case, 20, 1e-13)
    np.testing.assert_allclose(velocity, 0.0, atol=1e-14)
    np.testing.assert_allclose(found.sum(axis=0), [9.81e-3, -2e-3, 0.0], rtol=0, atol=1e-13)
    assert in_cone(found, case.friction)


@pytest.mark.parametrize("seed", range(6))
def test_near_an_answer_a_round_squares_the_error(seed):
    """From an error of 1e-5 three rounds lead to rounding; a linear method would need a rate of 1e-3 for that."""
    case = held_tool(3, seed)
    start = answer(case) * (1.0 + 1e-5 * np.random.default_rng(seed).standard_normal((3, 3)))
    assert residual(case, start) > 1e-7
    found, _, report = solved(solve, make_work, case, 4, 1e-13, start=start)
    assert residual(case, found) < 1e-12 and report["sweeps_used"] <= 4


@pytest.mark.parametrize("case", [held_tool(5, 1), tower(2), box_on_ground([0.3, 1.0, -1.0, 5.0, 0, 3.0], 0.8)])
def test_what_it_ends_with_is_no_worse_than_the_start(case):
    for seed in range(20):
        random = np.random.default_rng(seed)
        start = np.abs(random.standard_normal((len(case.friction), 3))) * [1.0, 0.1, 0.1]
        found, _, report = solved(solve, make_work, case, 30, 1e-12, start=start)
        assert report["residual"] <= report["start_residual"]
        assert residual(case, found) == pytest.approx(report["residual"], rel=1e-6, abs=1e-15)
        assert in_cone(found, case.friction)


def test_units_of_work_are_a_limit_and_grow_with_the_contacts_of_a_round():
    case = tower(5)
    pushed = [[1e-2, 0.0, 0.0]] * 20
    for units in (1, 6, 7, 13, 14, 40):
        _, _, report = solved(solve, make_work, case, units, start=pushed)
        assert report["sweeps_used"] <= units
        assert (report["sweeps_used"] == 0) == (units < 1 + 20 * 20 // 64)


def test_more_contacts_than_there_is_room_for_are_left_as_they_were():
    case = box_on_ground([0.1, 0, -9.81e-3, 0, 0, 0], 0.5)
    problem = load_matrix(*case)
    problem.equations["impulse"] = [[1e-3, -1e-4, 0.0]] * 4
    problem.equations["velocity"] = -1e-3
    before = problem.equations.copy()
    settings, report = np.zeros(1, SOLVER_SETTINGS), np.zeros(1, SOLVER_REPORT)
    settings["sweeps"], report["residual"] = 20, 1.0
    work = make_work(problem, 3)
    assert work.system.shape == (9, 9)
    assert not fits(problem, 0, 4, work) and fits(problem, 0, 3, work)
    work.best[:] = before["impulse"]
    improve(problem, 0, 4, settings[0], 1.0, work, work.best, report[0])
    np.testing.assert_array_equal(problem.equations["impulse"], before["impulse"])
    assert report["sweeps_used"] == 0 and report["residual"] == 1.0


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_elimination_is_that_of_numpy(n):
    random = np.random.default_rng(n)
    matrix, right = random.standard_normal((n, n)), random.standard_normal(n)
    matrix[0, 0] = 0.0 if n > 1 else 1.0  # asks for a pivot
    x = right.copy()
    assert eliminate(matrix.copy(), n, x)
    np.testing.assert_allclose(x, np.linalg.solve(matrix, right), rtol=1e-10, atol=1e-12)


def test_elimination_says_where_there_is_nothing_to_divide_by():
    assert not eliminate(np.zeros((2, 2)), 2, np.ones(2))
    assert not eliminate(np.array([[1.0, 2.0], [2.0, 4.0]]), 2, np.ones(2))
    assert not eliminate(np.array([[np.nan, 0.0], [0.0, 1.0]]), 2, np.ones(2))


@pytest.mark.parametrize("seed", range(8))
def test_newtons_method_ends_with_it(seed):
    """A tool that slides over few contacts: proximal steps alone took dozens of iterations to 1e-11."""
    case = held_tool(2, seed)
    found, _, report = solved(newton.solve, newton.make_work, case, 200, 1e-11)
    assert report["converged"] == 1 and residual(case, found) < 2e-11
    assert report["sweeps_used"] <= 12
