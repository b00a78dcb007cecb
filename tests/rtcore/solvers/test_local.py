"""One contact obeys Coulomb's law, judged in exact and long arithmetic by the law itself, not by another solver."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtcore.solvers.local import FACTORS, prepare, solve_contact

mpmath.mp.dps = 50
TOLERANCE = 1e-9
ANGLE = st.floats(0.0, 2.0 * math.pi)
PART = st.floats(-1.0, 1.0).filter(lambda x: x == 0.0 or abs(x) > 1e-8)


def solved(matrix, velocity, mu):
    factors = np.zeros(FACTORS)
    prepare(np.asarray(matrix, float), factors)
    return np.array(solve_contact(factors, *(float(b) for b in velocity), float(mu)))


def turned(eigenvalues, a, b, c):
    """A symmetric matrix of these eigenvalues; its axes turned by three angles."""
    turn = np.eye(3)
    for i, j, angle in ((0, 1, a), (1, 2, b), (0, 2, c)):
        step = np.eye(3)
        step[[i, j], [i, j]] = math.cos(angle)
        step[i, j], step[j, i] = -math.sin(angle), math.sin(angle)
        turn = turn @ step
    matrix = turn @ np.diag(eigenvalues) @ turn.T
    return 0.5 * (matrix + matrix.T)


def lawful(matrix, velocity, mu, r):
    """Check de Saxce's conditions for r with u = W r + b computed in 50 digits."""
    u = [mpmath.fdot(row, r) + b for row, b in zip(np.asarray(matrix).tolist(), velocity, strict=True)]
    size = np.abs(matrix).max() * np.abs(r).max() + np.abs(velocity).max()
    slip = mpmath.hypot(u[1], u[2])
    assert r[0] >= 0.0
    assert math.hypot(r[1], r[2]) <= mu * r[0] * (1.0 + 8 * np.finfo(float).eps)
    assert u[0] >= -TOLERANCE * size
    # The impulse is orthogonal to u + mu |u_t| n, which is in the dual cone as soon as u_n is no approach.
    assert abs(mpmath.fdot(u, r) + mu * slip * r[0]) <= TOLERANCE * size * max(np.abs(r).max(), 1e-300)
    if r[0] > 0.0:
        assert abs(u[0]) <= TOLERANCE * size


@settings(max_examples=300, deadline=None)  # the first example may compile
@given(
    st.tuples(*[st.floats(-3.0, 3.0)] * 3),
    st.tuples(ANGLE, ANGLE, ANGLE),
    st.tuples(PART, PART, PART),
    st.floats(-3.0, 3.0),
    st.one_of(st.just(0.0), st.floats(-3.0, 3.0).map(lambda e: 10.0**e)),
)
@example((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (-1e-8, 1.0, 0.0), 0.0, 0.5)
@example((3.0, -3.0, -3.0), (0.7, 0.1, 0.3), (-1.0, 0.3, 0.2), 0.0, 0.9)
def test_every_contact_obeys_the_law(exponents, angles, direction, speed, mu):
    matrix = turned([10.0**e for e in exponents], *angles)
    velocity = [10.0**speed * part for part in direction]
    lawful(matrix, velocity, mu, solved(matrix, velocity, mu))


def slip_in_long_arithmetic(matrix, velocity, mu):
    """The slipping answer: alpha by bisection of |r_t| = mu r_n with (W + alpha E_t) r = -b in 50 digits."""

    def at(alpha):
        stiff = mpmath.matrix(np.asarray(matrix).tolist())
        stiff[1, 1] += alpha
        stiff[2, 2] += alpha
        return mpmath.lu_solve(stiff, mpmath.matrix([-b for b in velocity]))

    def outside(alpha):
        r = at(alpha)
        return mpmath.hypot(r[1], r[2]) > mu * r[0]

    low, high = mpmath.mpf(0), mpmath.mpf(1)
    while outside(high):
        high *= 2
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if outside(middle) else (low, middle)
    return np.array([float(x) for x in at(high)]), float(high)


def lever(arm, mass=1.0, inertia=1e-3):
    """W of a contact point at an arm from the centre of mass of a ball-like body: normal and tangents coupled."""
    x, y, z = arm
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    w = np.eye(3) / mass - cross @ cross / inertia
    return w[np.ix_([2, 0, 1], [2, 0, 1])]


@pytest.mark.parametrize(
    ("matrix", "velocity", "mu"),
    [
        (lever((0.05, 0.02, -0.05)), [-0.01, 0.8, -0.1], 0.5),
        (lever((-0.05, 0.02, -0.05)), [-0.01, 0.8, -0.1], 0.5),
        (lever((0.5, 0.0, -0.1)), [-0.01, -0.2, 0.1], 0.7),
        (lever((0.03, 0.03, -0.3), 1e-2, 1e-6), [-1.0, 5.0, 2.0], 0.1),
        (np.diag([1.0, 2.0, 500.0]), [-1e-3, 1.0, -3.0], 0.8),
    ],
)
def test_slip_is_that_of_long_arithmetic(matrix, velocity, mu):
    truth, alpha = slip_in_long_arithmetic(matrix, velocity, mu)
    found = solved(matrix, velocity, mu)
    assert alpha > 0.0
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-12 * np.abs(truth).max())


@pytest.mark.parametrize("load", [1e-3, 1e-9, 1e-15])
def test_fast_slip_under_hardly_any_load_has_a_multiplier_far_above_the_trace(load):
    found = solved(np.eye(3) / 2.0, [-load, 0.6, -0.8], 0.5)  # |u_t| / |r_t| is about 1 / load
    np.testing.assert_allclose(found, [2.0 * load, -0.6 * load, 0.8 * load], rtol=1e-14)


def test_a_sticking_contact_stops_dead():
    matrix = lever((0.02, -0.01, -0.05))
    velocity = np.array([-0.5, 0.1, 0.05])
    found = solved(matrix, velocity, 2.0)
    np.testing.assert_allclose(found, -np.linalg.solve(matrix, velocity), rtol=1e-12)


def test_without_friction_only_the_normal_pushes():
    matrix = lever((0.05, 0.02, -0.05))
    np.testing.assert_array_equal(solved(matrix, [-0.5, 3.0, 1.0], 0.0), [0.5 / matrix[0, 0], 0.0, 0.0])


def test_huge_friction_sticks():
    matrix = lever((0.05, 0.02, -0.05))
    velocity = np.array([-1e-6, 1e-9, 0.0])
    np.testing.assert_allclose(solved(matrix, velocity, 1e12), -np.linalg.solve(matrix, velocity), rtol=1e-10)


@pytest.mark.parametrize("velocity", [[0.0, 1.0, 0.0], [0.3, -1.0, 2.0], [0.0, 0.0, 0.0]])
def test_a_contact_that_does_not_close_gets_nothing(velocity):
    np.testing.assert_array_equal(solved(lever((0.05, 0.02, -0.05)), velocity, 0.6), np.zeros(3))


def test_what_nothing_can_move_gets_nothing():
    np.testing.assert_array_equal(solved(np.zeros((3, 3)), [-1.0, 2.0, 0.0], 0.5), np.zeros(3))


def test_a_block_that_rounding_made_singular_gives_a_push_in_the_cone():
    matrix = np.outer([1.0, 0.3, 0.4], [1.0, 0.3, 0.4])
    found = solved(matrix, [-1.0, 0.5, 0.2], 0.5)
    assert np.isfinite(found).all()
    assert 0.0 < np.hypot(found[1], found[2]) <= 0.5 * found[0] * (1.0 + 1e-15)
