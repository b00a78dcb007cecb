"""Cholesky's factor of small symmetric matrices, dense or with an envelope, and solving with it; nothing allocated.

Only the lower triangle of a matrix is read and written. Rows are taken several columns at a time: sums that do not wait
for one another, in a fixed order. A row that depends on those before it, to rounding, is taken out: its diagonal
element of the factor is 0 and so is what it solves to.

The envelope of a symmetric matrix is what lies between the first element of each row that is not zero and the diagonal;
the factor has no other elements. Here it is given per block of BLOCK rows.
Source: row-wise (bordering) form and envelope, George and Liu 1981, chapter 4.
"""

import math

import numpy as np

from rtcore.kernels import inner, kernel

PIVOT = 1e-14
"""Share of its diagonal element below which a pivot is rounding and its row counts as dependent on those before."""
BLOCK = 6
"""Rows that share one start of the envelope: the velocities of a rigid body."""


@inner
def _ratio(value: float, diagonal: float) -> float:
    return value / diagonal if diagonal != 0.0 else 0.0


@inner
def _pivot(row: np.ndarray, start: int, i: int) -> bool:
    """Turn the diagonal element of row i into that of the factor; False where the row is dependent."""
    even = 0.0
    odd = 0.0
    for k in range(start, i - 1, 2):
        even += row[k] * row[k]
        odd += row[k + 1] * row[k + 1]
    if (i - start) % 2 == 1:
        even += row[i - 1] * row[i - 1]
    left = row[i] - (even + odd)
    if left > PIVOT * row[i]:
        row[i] = math.sqrt(left)
        return True
    row[i] = 0.0
    return False


@kernel
def factor(a: np.ndarray, n: int) -> bool:
    """Replace the lower triangle of the leading (n, n) part of a by L, where a = L L^T.

    Returns whether no row was taken out, which means positive definite to rounding.
    """
    regular = True
    for i in range(n):
        row = a[i]
        for j in range(0, i - 3, 4):
            c0 = a[j]
            c1 = a[j + 1]
            c2 = a[j + 2]
            c3 = a[j + 3]
            s0 = row[j]
            s1 = row[j + 1]
            s2 = row[j + 2]
            s3 = row[j + 3]
            for k in range(j):
                value = row[k]
                s0 -= value * c0[k]
                s1 -= value * c1[k]
                s2 -= value * c2[k]
                s3 -= value * c3[k]
            s0 = _ratio(s0, c0[j])
            s1 = _ratio(s1 - s0 * c1[j], c1[j + 1])
            s2 = _ratio(s2 - s0 * c2[j] - s1 * c2[j + 1], c2[j + 2])
            s3 = _ratio(s3 - s0 * c3[j] - s1 * c3[j + 1] - s2 * c3[j + 2], c3[j + 3])
            row[j] = s0
            row[j + 1] = s1
            row[j + 2] = s2
            row[j + 3] = s3
        for j in range(i - i % 4, i):
            column = a[j]
            value = row[j]
            for k in range(j):
                value -= row[k] * column[k]
            row[j] = _ratio(value, column[j])
        regular &= _pivot(row, 0, i)
    return regular


@kernel
def solve(a: np.ndarray, n: int, x: np.ndarray) -> None:
    """Replace the first n elements of x, the right side, by the solution; a: what `factor` made of the matrix."""
    for i in range(n):
        row = a[i]
        even = 0.0
        odd = 0.0
        for k in range(0, i - 1, 2):
            even += row[k] * x[k]
            odd += row[k + 1] * x[k + 1]
        if i % 2 == 1:
            even += row[i - 1] * x[i - 1]
        x[i] = _ratio(x[i] - (even + odd), row[i])
    for i in range(n - 1, -1, -1):
        row = a[i]
        value = _ratio(x[i], row[i])
        x[i] = value
        for k in range(i):
            x[k] -= row[k] * value


@kernel
def factor_envelope(a: np.ndarray, starts: np.ndarray, blocks: int) -> bool:
    """As `factor`, for the leading blocks * BLOCK rows of a; elements outside the envelope are not touched.

    starts: (blocks,) first block of each block row that has elements, its own index at most.
    """
    regular = True
    for i in range(blocks * BLOCK):
        row = a[i]
        own = i // BLOCK
        start = starts[own] * BLOCK
        for block in range(starts[own], own):
            j = block * BLOCK
            c0 = a[j]
            c1 = a[j + 1]
            c2 = a[j + 2]
            c3 = a[j + 3]
            c4 = a[j + 4]
            c5 = a[j + 5]
            s0 = row[j]
            s1 = row[j + 1]
            s2 = row[j + 2]
            s3 = row[j + 3]
            s4 = row[j + 4]
            s5 = row[j + 5]
            for k in range(max(start, starts[block] * BLOCK), j):
                value = row[k]
                s0 -= value * c0[k]
                s1 -= value * c1[k]
                s2 -= value * c2[k]
                s3 -= value * c3[k]
                s4 -= value * c4[k]
                s5 -= value * c5[k]
            s0 = _ratio(s0, c0[j])
            s1 = _ratio(s1 - s0 * c1[j], c1[j + 1])
            s2 = _ratio(s2 - s0 * c2[j] - s1 * c2[j + 1], c2[j + 2])
            s3 = _ratio(s3 - s0 * c3[j] - s1 * c3[j + 1] - s2 * c3[j + 2], c3[j + 3])
            s4 = _ratio(s4 - s0 * c4[j] - s1 * c4[j + 1] - s2 * c4[j + 2] - s3 * c4[j + 3], c4[j + 4])
            s5 -= s0 * c5[j] + s1 * c5[j + 1] + s2 * c5[j + 2] + s3 * c5[j + 3] + s4 * c5[j + 4]
            row[j] = s0
            row[j + 1] = s1
            row[j + 2] = s2
            row[j + 3] = s3
            row[j + 4] = s4
            row[j + 5] = _ratio(s5, c5[j + 5])
        for j in range(own * BLOCK, i):
            column = a[j]
            value = row[j]
            for k in range(start, j):
                value -= row[k] * column[k]
            row[j] = _ratio(value, column[j])
        regular &= _pivot(row, start, i)
    return regular


@kernel
def solve_envelope(a: np.ndarray, starts: np.ndarray, blocks: int, x: np.ndarray) -> None:
    """As `solve`, with what `factor_envelope` made."""
    for i in range(blocks * BLOCK):
        row = a[i]
        value = 0.0
        for k in range(starts[i // BLOCK] * BLOCK, i):
            value += row[k] * x[k]
        x[i] = _ratio(x[i] - value, row[i])
    for i in range(blocks * BLOCK - 1, -1, -1):
        row = a[i]
        value = _ratio(x[i], row[i])
        x[i] = value
        for k in range(starts[i // BLOCK] * BLOCK, i):
            x[k] -= row[k] * value
