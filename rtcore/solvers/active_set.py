"""Rows held as equations, and the factor of their symmetric matrix, kept up as rows come and go.

Coming costs a row of the factor; going makes the rows anew that came later.
"""

import math
from typing import NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel

DEPENDENT = 1e-13
"""Share of its diagonal element below which a pivot is rounding: the row depends on those held."""


@by_reference
class ActiveSet(NamedTuple):
    """Rows held, in the order in which they came."""

    used: np.ndarray
    """(1,) how many."""
    members: np.ndarray
    """(rows,) which."""
    matrix: np.ndarray
    """(rows, rows) symmetric matrix of the members, lower triangle."""
    factor: np.ndarray
    """(rows, rows) L with matrix = L L^T, lower triangle."""


def make_active_set(rows: int) -> ActiveSet:
    """Make an empty set that has room for so many rows."""
    return ActiveSet(np.zeros(1, np.int32), np.zeros(rows, np.int32), np.zeros((rows, rows)), np.zeros((rows, rows)))


@inner
def _border(matrix: np.ndarray, factor: np.ndarray, n: int) -> bool:
    """Make row n of the factor; False where it depends on those before to rounding."""
    left = matrix[n, n]
    for j in range(n):
        value = matrix[n, j]
        for k in range(j):
            value -= factor[n, k] * factor[j, k]
        value /= factor[j, j]
        factor[n, j] = value
        left -= value * value
    least = DEPENDENT * matrix[n, n]
    factor[n, n] = math.sqrt(max(left, least))
    return left > least


@kernel
def append(held: ActiveSet, row: int) -> bool:
    """Hold a row whose products with the members and itself the caller has put into matrix[used].

    False, and nothing changed, where it depends on the members to rounding.
    """
    n = held.used[0]
    if not _border(held.matrix, held.factor, n):
        return False
    held.members[n] = row
    held.used[0] = n + 1
    return True


@kernel
def remove(held: ActiveSet, place: int) -> None:
    """Let go the member at a place; the pivots of those after it can only grow, but for rounding."""
    n = held.used[0]
    matrix = held.matrix
    for p in range(place + 1, n):
        held.members[p - 1] = held.members[p]
        for k in range(place):
            matrix[p - 1, k] = matrix[p, k]
        for k in range(place + 1, p + 1):
            matrix[p - 1, k - 1] = matrix[p, k]
        _border(matrix, held.factor, p - 1)
    held.used[0] = n - 1
