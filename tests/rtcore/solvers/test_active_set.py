"""The factor kept up while rows come and go is the factor of the rows that are there."""

import numpy as np

from rtcore.solvers.active_set import append, make_active_set, remove


def bring(held, matrix: np.ndarray, row: int) -> bool:
    n = held.used[0]
    held.matrix[n, : n + 1] = matrix[row, [*held.members[:n], row]]
    return append(held, row)


def test_any_order_of_coming_and_going_leaves_the_factor_of_the_members():
    rng = np.random.default_rng(1)
    root = rng.standard_normal((9, 9))
    matrix = root @ root.T + np.eye(9)
    held = make_active_set(9)
    there: list[int] = []
    for _ in range(300):
        if there and (len(there) == 9 or rng.random() < 0.4):
            place = int(rng.integers(len(there)))
            remove(held, place)
            there.pop(place)
        else:
            row = int(rng.choice([i for i in range(9) if i not in there]))
            assert bring(held, matrix, row)
            there.append(row)
        n = len(there)
        assert held.used[0] == n and list(held.members[:n]) == there
        np.testing.assert_array_equal(np.tril(held.matrix[:n, :n]), np.tril(matrix[np.ix_(there, there)]))
        expected = np.linalg.cholesky(matrix[np.ix_(there, there)]) if n else np.zeros((0, 0))
        np.testing.assert_allclose(np.tril(held.factor[:n, :n]), expected, rtol=1e-11, atol=1e-12)


def test_a_row_that_depends_on_those_held_is_refused_until_one_of_them_goes():
    rows = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [2.0, 5.0, -1.0], [0.0, 0.0, 0.0]])
    matrix = rows @ rows.T  # the third is twice the first and the second
    held = make_active_set(4)
    assert bring(held, matrix, 0) and bring(held, matrix, 1)
    assert not bring(held, matrix, 2) and not bring(held, matrix, 3)
    assert held.used[0] == 2 and list(held.members[:2]) == [0, 1]
    remove(held, 0)
    assert bring(held, matrix, 2)
    np.testing.assert_allclose(
        np.tril(held.factor[:2, :2]), np.linalg.cholesky(matrix[np.ix_([1, 2], [1, 2])]), rtol=1e-12
    )
