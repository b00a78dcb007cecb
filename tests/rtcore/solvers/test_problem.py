"""Kernels of the contact problem against dense algebra, the definition of a projection and hand-made answers."""

import numpy as np
import pytest
from contact_cases import Case, in_cone
from contact_cases import residual as residual_in_numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from rtcore.solvers.problem import (
    apply_impulses,
    assemble,
    delassus,
    free_velocity,
    load_matrix,
    make_problem,
    project_cone,
    relative_velocity,
    residual,
    scale,
)

MOVERS = 5
CONTACTS = 14
NUMBER = st.floats(-1e3, 1e3).filter(lambda x: x == 0.0 or abs(x) > 1e-100)  # whose squares are numbers too


def random_problem(blocks=CONTACTS**2, seed=3):
    """Movers and contacts at random, some contacts with one mover only, one with none."""
    rng = np.random.default_rng(seed)
    problem = make_problem(MOVERS + 2, CONTACTS + 3, blocks)
    problem.size["movers"] = MOVERS
    problem.size["contacts"] = CONTACTS
    half = rng.normal(size=(MOVERS, 3, 3))
    movers = problem.movers[:MOVERS]
    movers["inverse_mass"] = rng.uniform(0.1, 3.0, MOVERS)
    movers["inverse_inertia"] = half @ half.transpose(0, 2, 1)
    movers["velocity"] = rng.normal(size=(MOVERS, 6))
    equations = problem.equations[:CONTACTS]
    for name in ("jacobian_first", "jacobian_second", "free", "impulse", "compliance"):
        equations[name] = rng.normal(size=equations[name].shape)
    equations["compliance"] = abs(equations["compliance"])
    for i in range(CONTACTS):
        equations["first"][i], equations["second"][i] = rng.choice(MOVERS + 1, 2, replace=False) - 1
    equations["first"][4] = equations["second"][4] = -1
    return problem


def dense(problem):
    """(J (3n, 6m), M^-1 (6m, 6m)) of a problem."""
    jacobian = np.zeros((3 * CONTACTS, 6 * MOVERS))
    inverse = np.zeros((6 * MOVERS, 6 * MOVERS))
    for m, mover in enumerate(problem.movers[:MOVERS]):
        inverse[6 * m : 6 * m + 3, 6 * m : 6 * m + 3] = mover["inverse_mass"] * np.eye(3)
        inverse[6 * m + 3 : 6 * m + 6, 6 * m + 3 : 6 * m + 6] = mover["inverse_inertia"]
    for i, equation in enumerate(problem.equations[:CONTACTS]):
        for side in ("first", "second"):
            if equation[side] >= 0:
                start = 6 * equation[side]
                jacobian[3 * i : 3 * i + 3, start : start + 6] = equation[f"jacobian_{side}"]
    return jacobian, inverse


def dense_delassus(problem):
    jacobian, inverse = dense(problem)
    return jacobian @ inverse @ jacobian.T + np.diag(problem.equations["compliance"][:CONTACTS].ravel())


def test_the_assembled_operator_is_the_dense_product():
    problem = random_problem()
    truth = dense_delassus(problem)
    assemble(problem)
    assembled = delassus(problem)
    np.testing.assert_allclose(assembled, truth, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(assembled, assembled.T)
    assert problem.size["incomplete"][0] == 0


def test_rows_of_blocks_follow_one_another_in_the_order_of_their_columns_and_leave_out_what_is_not_coupled():
    problem = random_problem()
    assemble(problem)
    blocks, equations = problem.blocks, problem.equations[:CONTACTS]
    start = 0
    for i, equation in enumerate(equations):
        assert equation["block_first"] == start
        start += equation["block_count"]
        columns = blocks["column"][equation["block_first"] : start]
        mine = {equation["first"], equation["second"]} - {-1}
        coupled = [j for j, other in enumerate(equations) if j == i or mine & {other["first"], other["second"]}]
        assert list(columns) == coupled
        assert blocks["column"][equation["diagonal"]] == i
    assert problem.size["blocks"][0] == start


def test_assembling_again_after_a_change_leaves_nothing_of_before():
    problem = random_problem(seed=4)
    assemble(problem)
    other = random_problem(seed=9)
    for name in ("movers", "equations"):
        getattr(problem, name)[:] = getattr(other, name)
    assemble(problem)
    np.testing.assert_allclose(delassus(problem), dense_delassus(other), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("missing", [1, 20, 60])
def test_without_room_for_all_blocks_the_first_contacts_are_kept_and_it_is_told(missing):
    problem = random_problem()
    truth = dense_delassus(problem)
    assemble(problem)
    room = problem.size["blocks"][0] - missing
    small = random_problem(blocks=room)
    assemble(small)
    kept = small.size["contacts"][0]
    filled = np.any(truth.reshape(CONTACTS, 3, CONTACTS, 3) != 0.0, axis=(1, 3))
    assert small.size["incomplete"][0] == 1
    assert filled[:kept, :kept].sum() <= room < filled[: kept + 1, : kept + 1].sum()
    np.testing.assert_allclose(delassus(small), truth[: 3 * kept, : 3 * kept], rtol=1e-12, atol=1e-12)


def test_free_velocity_adds_the_motion_of_the_movers():
    problem = random_problem()
    jacobian, _ = dense(problem)
    wanted = problem.equations["free"][:CONTACTS].ravel() + jacobian @ problem.movers["velocity"][:MOVERS].ravel()
    free_velocity(problem)
    np.testing.assert_allclose(problem.equations["free"][:CONTACTS].ravel(), wanted, rtol=1e-12, atol=1e-12)


def test_impulses_move_the_movers_as_dense_algebra_says_and_only_those_of_the_range():
    problem = random_problem()
    jacobian, inverse = dense(problem)
    impulses = problem.equations["impulse"][:CONTACTS].copy()
    impulses[:3] = impulses[9:] = 0.0
    wanted = problem.movers["velocity"][:MOVERS].ravel() + inverse @ jacobian.T @ impulses.ravel()
    apply_impulses(problem, 3, 9)
    np.testing.assert_allclose(problem.movers["velocity"][:MOVERS].ravel(), wanted, rtol=1e-12, atol=1e-12)


def test_relative_velocities_are_those_that_the_moved_movers_have():
    problem = random_problem()
    problem.equations["compliance"] = 0.0
    assemble(problem)
    free_velocity(problem)
    jacobian, _ = dense(problem)
    besides = problem.equations["free"][:CONTACTS].ravel() - jacobian @ problem.movers["velocity"][:MOVERS].ravel()
    relative_velocity(problem, 0, CONTACTS)
    apply_impulses(problem, 0, CONTACTS)
    wanted = besides + jacobian @ problem.movers["velocity"][:MOVERS].ravel()
    np.testing.assert_allclose(problem.equations["velocity"][:CONTACTS].ravel(), wanted, rtol=1e-11, atol=1e-11)


@settings(deadline=None)  # the first example may compile
@given(NUMBER, NUMBER, NUMBER, st.one_of(st.just(0.0), st.floats(1e-3, 1e3)))
def test_a_projection_and_what_it_leaves_are_orthogonal_and_in_the_cone_and_its_polar(n, t1, t2, mu):
    point = np.array([n, t1, t2])
    near = np.array(project_cone(n, t1, t2, mu))
    left = point - near
    size = np.linalg.norm(point) + 1e-300
    assert in_cone(near[None], np.array([mu]))
    assert left[0] + mu * np.hypot(left[1], left[2]) <= 1e-13 * size * (1.0 + mu)  # polar: {l_n + mu |l_t| <= 0}
    assert abs(near @ left) <= 1e-13 * size * size


def point_on_plane(mass, free, mu):
    return load_matrix(np.eye(3) / mass, np.array(free, float), np.array([mu]))


@pytest.mark.parametrize(
    ("free", "impulse"),
    [
        ([0.2, 1.0, 0.0], [0.0, 0.0, 0.0]),  # opens
        ([-0.2, 0.03, 0.04], [0.4, -0.06, -0.08]),  # sticks
        ([-0.2, 3.0, 4.0], [0.4, -0.12, -0.16]),  # slips
    ],
)
def test_an_answer_of_coulombs_law_has_no_residual_whatever_the_scale(free, impulse):
    problem = point_on_plane(2.0, free, 0.5)
    problem.equations["impulse"] = impulse
    relative_velocity(problem, 0, 1)
    for rho in (0.1, 1.0, 30.0):
        assert residual(problem, 0, 1, rho) < 1e-15


def test_the_residual_of_a_wrong_answer_is_what_the_formula_gives_by_hand():
    problem = point_on_plane(1.0, [-1.0, 0.0, 0.0], 0.5)
    problem.equations["impulse"] = [0.5, 0.0, 0.0]  # u = (-0.5, 0, 0): r - u = (1, 0, 0), in the cone, 0.5 away
    relative_velocity(problem, 0, 1)
    assert residual(problem, 0, 1, 1.0) == 0.5
    problem = point_on_plane(1.0, [-1.0, 2.0, 0.0], 0.5)
    relative_velocity(problem, 0, 1)  # r - (u + mu |u_t| n) = (0, -2, 0), projected on (1, -0.5) / 1.25: (0.8, -0.4)
    assert residual(problem, 0, 1, 1.0) == pytest.approx(np.sqrt(0.8) / np.sqrt(5.0), rel=1e-15)


def test_the_residual_of_many_contacts_is_that_of_numpy():
    rng = np.random.default_rng(8)
    half = rng.normal(size=(30, 24))
    case = Case(half @ half.T, rng.normal(size=30), rng.uniform(0.0, 1.2, 10))
    problem = load_matrix(*case)
    impulse = rng.normal(size=(10, 3))
    problem.equations["impulse"] = impulse
    relative_velocity(problem, 0, 10)
    rho = scale(problem, 0, 10)
    assert rho == pytest.approx(1.0 / np.mean(np.diag(case.matrix)), rel=1e-14)
    assert residual(problem, 0, 10, rho) == pytest.approx(residual_in_numpy(case, impulse), rel=1e-12)


def test_without_contacts_or_motion_there_is_no_residual():
    problem = point_on_plane(1.0, [0.0, 0.0, 0.0], 0.5)
    assert residual(problem, 0, 1, 1.0) == 0.0
    assert residual(problem, 0, 0, 1.0) == 0.0
    assert scale(problem, 0, 0) == 1.0


def test_a_loaded_matrix_comes_back_symmetric_and_blocks_of_zeros_are_not_stored():
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(12, 12))
    matrix[:3, 6:9] = matrix[6:9, :3] = 0.0
    matrix[9:, 9:] = 0.0
    problem = load_matrix(matrix, np.arange(12.0), np.full(4, 0.3))
    np.testing.assert_array_equal(delassus(problem), 0.5 * (matrix + matrix.T))
    assert problem.size["blocks"][0] == 14
    np.testing.assert_array_equal(problem.blocks["column"][problem.equations["diagonal"]], np.arange(4))
    np.testing.assert_array_equal(problem.equations["free"].ravel(), np.arange(12.0))


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="3 rows"):
        load_matrix(np.eye(6), np.zeros(3), np.zeros(1))
    with pytest.raises(ValueError, match="as many q"):
        load_matrix(np.eye(3), np.zeros(6), np.zeros(1))
    with pytest.raises(ValueError, match="fewer than no"):
        make_problem(1, -1, 1)
