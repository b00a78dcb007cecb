"""The exact projection: other solvers and exact arithmetic agree with it."""

import numpy as np
import pytest
from normal_cases import KINDS, Rows, as_problem, draw, exact_change, run, unit_movers, wrongness
from scipy.optimize import linprog, nnls

from rtcore.solvers import dantzig, imposed, motion_space
from rtcore.solvers.motion_space import (
    ROW,
    add_motion,
    make_motion_work,
    make_work,
    project_rows,
    solve,
)
from rtcore.solvers.problem import apply_impulses, load_matrix, make_problem, residual, scale

ENOUGH = 2000


def as_table(rows: Rows, compliance: float = 0.0) -> np.ndarray:
    table = np.zeros(len(rows.bound), ROW)
    table["bound"], table["compliance"] = rows.bound, compliance
    table["first"], table["second"] = rows.bodies.T
    for side, name in enumerate(("jacobian_first", "jacobian_second")):
        for i, body in enumerate(rows.bodies[:, side]):
            if body >= 0:
                table[name][i] = rows.jacobian[i, 6 * body : 6 * body + 6]
    return table


def project(rows: Rows, passes: int = ENOUGH, compliance: float = 0.0, whole: bool = False, start=None):
    """(impulses, change of motion, how it ended) for bodies of unit inertia."""
    bodies, count = rows.jacobian.shape[1] // 6, len(rows.bound)
    table = as_table(rows, compliance)
    if start is not None:
        table["impulse"] = start
    work = make_motion_work(bodies, count, whole)
    ended = project_rows(unit_movers(bodies), bodies, table, count, work, passes, 0.0)
    return table["impulse"], work.motion.copy(), ended


@pytest.mark.parametrize("kind", KINDS)
def test_impulses_push_rows_hold_and_both_are_orthogonal(kind):
    rng = np.random.default_rng(1)
    for _ in range(60):
        bodies = int(rng.integers(1, 6))
        rows = draw(rng, kind, bodies, int(rng.integers(1, 12 * bodies)))
        impulse, change, ended = project(rows)
        assert wrongness(rows, impulse) < 1e-10
        assert ended.aside == 0 and ended.residual < 1e-12
        np.testing.assert_allclose(change, rows.jacobian.T @ impulse, rtol=0, atol=1e-11 * np.abs(impulse).sum())


def test_rows_taken_whole_give_the_same_motion():
    rng = np.random.default_rng(2)
    for kind in KINDS:
        for _ in range(10):
            rows = draw(rng, kind, 4, 40)
            np.testing.assert_allclose(project(rows, whole=True)[1], project(rows)[1], rtol=0, atol=1e-10)


def test_whole_numbers_agree_with_exact_arithmetic():
    rng = np.random.default_rng(3)
    for _ in range(25):
        rows = draw(rng, "whole numbers", 1, int(rng.integers(2, 9)))
        np.testing.assert_allclose(project(rows)[1], exact_change(rows), rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_all_exact_solvers_find_the_same_motion(kind):
    """The motion is unique, whatever impulses make it: contact space, imposed sets and least squares tell it too."""
    rng = np.random.default_rng(4)
    for _ in range(15):
        rows = draw(rng, kind, 3, int(rng.integers(5, 40)))
        change = project(rows)[1]
        for other in (motion_space, dantzig, imposed):
            impulse, _, report = run(other.solve, other.make_work, as_problem(rows), ENOUGH, 1e-13)
            assert report["residual"] < 1e-9
            np.testing.assert_allclose(rows.jacobian.T @ impulse, change, rtol=0, atol=1e-7)
        if kind == "tight":  # the cone's nearest point to any motion that holds all rows as equations
            through = np.linalg.lstsq(rows.jacobian, rows.bound, rcond=None)[0]
            np.testing.assert_allclose(rows.jacobian.T @ nnls(rows.jacobian.T, through)[0], change, atol=1e-8)


def test_no_motion_of_all_that_are_allowed_is_nearer():
    """With inertia and arms: x - x_u is M-orthogonal to nothing allowed that shortens it."""
    rng = np.random.default_rng(5)
    problem = make_problem(2, 8, 64)
    problem.size["movers"], problem.size["contacts"] = 2, 8
    inertia = []
    for mover in problem.movers:
        root = rng.standard_normal((3, 3)) + 2 * np.eye(3)
        mover["inverse_mass"], mover["inverse_inertia"] = rng.uniform(0.5, 3.0), root @ root.T
        inertia.append(np.eye(6) / mover["inverse_mass"])
        inertia[-1][3:, 3:] = np.linalg.inv(root @ root.T)
    mass = np.block([[inertia[0], np.zeros((6, 6))], [np.zeros((6, 6)), inertia[1]]])
    jacobian = rng.standard_normal((8, 12))
    table = np.zeros(8, ROW)
    table["jacobian_first"], table["jacobian_second"] = jacobian[:, :6], jacobian[:, 6:]
    table["first"], table["second"] = 0, 1
    table["bound"] = bound = jacobian @ rng.standard_normal(12) - rng.exponential(0.2, 8)
    work = make_motion_work(2, 8)
    project_rows(problem.movers, 2, table, 8, work, ENOUGH, 0.0)
    add_motion(problem.movers, 2, work)
    change = problem.movers["velocity"].ravel()
    assert (jacobian @ change >= bound - 1e-12).all()
    np.testing.assert_allclose(mass @ change, jacobian.T @ table["impulse"], rtol=0, atol=1e-11)
    # The least of (M change) . y over allowed y is at the change itself, by linear programming.
    least = linprog(mass @ change, A_ub=-jacobian, b_ub=-bound, bounds=(None, None))
    assert least.fun == pytest.approx(change @ mass @ change, rel=1e-9)


def test_rows_that_no_motion_satisfies_are_told_and_compliance_answers_them():
    """Said to be impossible exactly where least distance programming by NNLS says so."""
    rng = np.random.default_rng(6)
    told = []
    for _ in range(60):
        rows = draw(rng, "slack", 1, 14)
        rows = rows._replace(bound=rows.bound + rng.normal(0.0, 0.5, 14))
        system = np.vstack([rows.jacobian.T, rows.bound])
        impossible = nnls(system, np.eye(7)[6])[1] < 1e-9
        impulse, _, ended = project(rows)
        told.append((ended.aside > 0) == impossible)
        assert (impulse >= 0.0).all() and np.isfinite(impulse).all()
        soft, _, ended = project(rows, compliance=1e-4)
        assert ended.aside == 0
        assert wrongness(rows, soft, 1e-4) < 1e-9
        told.append(impossible)
    assert all(told[::2]) and 5 < sum(told[1::2]) < 55


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_passes_leaves_pushes_and_the_residual_never_rises(kind):
    rows = draw(np.random.default_rng(7), kind, 3, 30)
    last = np.inf
    for passes in range(40):
        impulse, change, ended = project(rows, passes)
        assert (impulse >= 0.0).all() and ended.passes <= passes
        np.testing.assert_allclose(change, rows.jacobian.T @ impulse, rtol=0, atol=1e-11)
        assert ended.residual <= last * (1.0 + 1e-12)
        last = ended.residual
    assert last < 1e-12


def test_a_warm_start_at_the_answer_needs_no_pass_and_one_nearby_few():
    rng = np.random.default_rng(8)
    cold = warm = 0
    for _ in range(20):
        rows = draw(rng, "slack", 2, 30)
        impulse, change, ended = project(rows)
        _, again, repeated = project(rows, start=impulse)
        assert repeated.passes == 0
        np.testing.assert_allclose(again, change, rtol=0, atol=1e-11)
        near = rows._replace(bound=rows.bound - 0.02 * rng.exponential(1.0, 30))
        cold += project(near)[2].passes
        _, change, ended = project(near, start=impulse)
        warm += ended.passes
        np.testing.assert_allclose(change, project(near)[1], rtol=0, atol=1e-10)
    assert warm < 0.5 * cold


def test_a_solve_moves_the_bodies_as_its_motion_and_reports_the_residual_of_contacts_without_friction():
    rows = draw(np.random.default_rng(9), "slack", 3, 25)
    problem = as_problem(rows)
    _, velocity, report = run(solve, make_work, problem, ENOUGH, 1e-12)
    assert report["converged"] == 1 and report["start_residual"] > 0.1
    assert report["residual"] == residual(problem, 0, 25, scale(problem, 0, 25))
    apply_impulses(problem, 0, 25)
    np.testing.assert_allclose(problem.movers["velocity"].ravel(), project(rows)[1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        velocity, rows.jacobian @ problem.movers["velocity"].ravel() - rows.bound, rtol=0, atol=1e-12
    )


def test_what_is_not_known_to_move_keeps_its_warm_start():
    problem = load_matrix(np.eye(3), np.array([-1.0, 0.0, 0.0]), np.zeros(1))
    problem.equations["impulse"] = [[0.25, 0.0, 0.0]]
    impulse, _, report = run(solve, make_work, problem, 10)
    assert impulse[0] == 0.25 and report["converged"] == 0
    assert report["residual"] == report["start_residual"] == 0.75


def test_the_same_bits_every_time():
    rows = draw(np.random.default_rng(10), "duplicates", 4, 60)
    one, two = project(rows), project(rows)
    np.testing.assert_array_equal(one[0], two[0])
    assert one[2] == two[2]
