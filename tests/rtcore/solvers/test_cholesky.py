import numpy as np
import pytest

from rtcore.solvers.cholesky import BLOCK, factor, factor_envelope, solve, solve_envelope


def definite(n: int, seed: int) -> np.ndarray:
    root = np.random.default_rng(seed).standard_normal((n, n))
    return root @ root.T + 0.1 * np.eye(n)


def chained(starts: np.ndarray, seed: int) -> np.ndarray:
    """A positive definite matrix whose block rows begin at the blocks given."""
    blocks = len(starts)
    rng = np.random.default_rng(seed)
    matrix = np.eye(BLOCK * blocks)
    for row, start in enumerate(starts):
        for column in range(start, row):
            part = np.zeros((2 * BLOCK, BLOCK * blocks))
            for block in (row, column):
                part[:, BLOCK * block : BLOCK * (block + 1)] = rng.standard_normal((2 * BLOCK, BLOCK))
            matrix += part.T @ part
    return matrix


@pytest.mark.parametrize("n", [*range(1, 10), 30, 61])
def test_factor_and_solution_are_those_of_lapack_and_the_upper_triangle_is_left_alone(n):
    matrix = definite(n, n)
    a = np.full((n + 2, n + 3), np.nan)
    lower = np.tril_indices(n)
    a[lower] = matrix[lower]
    assert factor(a, n)
    np.testing.assert_allclose(a[lower], np.linalg.cholesky(matrix)[lower], rtol=0, atol=1e-12 * np.abs(matrix).max())
    assert np.isnan(a[np.triu_indices(n, 1)]).all() and np.isnan(a[n:]).all() and np.isnan(a[:, n:]).all()
    right = np.random.default_rng(n).standard_normal(n)
    x = np.append(right, 7.0)
    solve(a, n, x)
    np.testing.assert_allclose(matrix @ x[:n], right, rtol=0, atol=1e-11 * np.abs(matrix).max())
    assert x[n] == 7.0


def test_dependent_rows_are_taken_out_and_consistent_systems_still_solved():
    """Of 9 rows of rank 5 the last four depend on the first; the answer is one of many."""
    root = np.random.default_rng(3).standard_normal((9, 5))
    matrix = root @ root.T
    a = matrix.copy()
    assert not factor(a, 9)
    assert (np.diag(a)[:5] > 0.0).all() and (np.diag(a)[5:] == 0.0).all()
    right = matrix @ np.arange(9.0)
    x = right.copy()
    solve(a, 9, x)
    np.testing.assert_allclose(matrix @ x, right, rtol=0, atol=1e-10)
    assert (x[5:] == 0.0).all()


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_a_pivot_that_is_no_positive_number_takes_its_row_out(bad):
    a = np.diag([4.0, bad, 9.0])
    assert not factor(a, 3)
    x = np.array([8.0, 5.0, 18.0])
    solve(a, 3, x)
    assert x.tolist() == [2.0, 0.0, 2.0]


@pytest.mark.parametrize("starts", [[0], [0, 0, 1, 2, 3], [0, 1, 0, 3, 2, 2], [0, 1, 2]])
def test_an_envelope_holds_the_whole_factor(starts):
    """Elements outside are not a number before and after, and the factor is that of the full matrix."""
    starts = np.array(starts, np.int32)
    n = BLOCK * len(starts)
    matrix = chained(starts, 5)
    inside = np.tril(np.repeat(np.repeat(starts[:, None] <= np.arange(len(starts)), BLOCK, 0), BLOCK, 1))
    a = np.where(inside, matrix, np.nan)
    assert factor_envelope(a, starts, len(starts))
    full = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(a[inside], full[inside], rtol=0, atol=1e-12 * np.abs(matrix).max())
    assert (full[~inside] == 0.0).all() and np.isnan(a[~inside]).all()
    x = np.random.default_rng(1).standard_normal(n)
    right = x.copy()
    solve_envelope(a, starts, len(starts), x)
    np.testing.assert_allclose(matrix @ x, right, rtol=0, atol=1e-11 * np.abs(matrix).max())
