"""The thesis' models of friction as one-sided rows for `rtcore.solvers.motion_space.project_rows`.

For comparison: neither is Coulomb's law for several contacts. Places are rows of a table of ROW.
Source: Redon 2002, 5.5 (sliding along t + mu n) and 5.6 (an upturned pyramid at rest).
"""

import math

import numpy as np

from rtcore.kernels import inner, kernel


@inner
def put_row(rows: np.ndarray, place: int, equation: np.void, n: float, t1: float, t2: float, bound: float) -> None:
    """Write the row of the direction n, t1, t2 in a contact's own axes, with no compliance and no impulse."""
    row = rows[place]
    for k in range(6):
        a = equation.jacobian_first
        b = equation.jacobian_second
        row.jacobian_first[k] = n * a[0, k] + t1 * a[1, k] + t2 * a[2, k]
        row.jacobian_second[k] = n * b[0, k] + t1 * b[1, k] + t2 * b[2, k]
    row.first = equation.first
    row.second = equation.second
    row.bound = bound
    row.compliance = 0.0
    row.impulse = 0.0


@kernel
def put_sliding(rows: np.ndarray, place: int, equation: np.void, t1: float, t2: float) -> int:
    """Write both rows of a contact that slides along the unit tangent (t1, t2); returns the place after them.

    It does not penetrate, and along d = t + mu n its motion does not exceed the free one (5.36, 5.39). For one contact
    this is Coulomb's law; with several, what others push is not seen in the free motion, and friction is too small.
    """
    put_row(rows, place, equation, 1.0, 0.0, 0.0, -equation.free[0])
    put_row(rows, place + 1, equation, -equation.friction, -t1, -t2, 0.0)
    return place + 2


@kernel
def put_sticking(rows: np.ndarray, place: int, equation: np.void, sides: int) -> int:
    """Write the rows of a contact at rest, an upturned pyramid of so many sides (5.40); returns the place after them.

    The impulses are in the pyramid inscribed in the friction cone: it sticks up to mu in the best direction, up to
    mu cos(pi / sides) in the worst. Where it slips, it takes off with mu times the speed.
    """
    mu = equation.friction
    length = 1.0 / math.sqrt(1.0 + mu * mu)
    q = equation.free
    for k in range(sides):
        angle = 2.0 * math.pi * (k + 1) / sides
        n = length
        t1 = -length * mu * math.cos(angle)
        t2 = -length * mu * math.sin(angle)
        put_row(rows, place + k, equation, n, t1, t2, -(n * q[0] + t1 * q[1] + t2 * q[2]))
    return place + sides
