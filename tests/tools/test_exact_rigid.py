"""The certified bracket of the first contact of two moving meshes against closed forms and dense samples."""

import math

import mpmath
import numpy as np
import pytest
import trimesh

from tools.exact.intersect import judge
from tools.exact.rigid import STILL, Screw, first_contact

X, Y, Z = np.eye(3)
ZERO = np.zeros(3)
BOX = np.asarray(trimesh.creation.box((1, 1, 1)).triangles)
BALL = np.asarray(trimesh.creation.icosahedron().triangles)


def reference_place(screw: Screw, point: np.ndarray, u: float) -> np.ndarray:
    """A point on a screw with 60 digits: the exponential of the constant twist that carries the pivot by the shift."""
    with mpmath.workdps(60):
        pivot, shift, point, axis = (
            mpmath.matrix(list(map(float, v))) for v in (screw.pivot, screw.shift, point, screw.axis)
        )
        axis *= screw.angle / mpmath.norm(axis)
        twist = mpmath.matrix(4)
        twist[:3, :3] = mpmath.matrix([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])

        def carried(velocity, arm, time):
            for k in range(3):
                twist[k, 3] = velocity[k]
            return (mpmath.expm(twist * time) * mpmath.matrix([arm[0], arm[1], arm[2], 1]))[:3]

        # Where the pivot ends is linear in its velocity.
        ends = mpmath.matrix([list(carried([int(i == k) for i in range(3)], [0, 0, 0], 1)) for k in range(3)]).T
        moved = carried(mpmath.lu_solve(ends, shift), point - pivot, u)
        return np.array([float(moved[k] + pivot[k]) for k in range(3)])


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 0.7, 3.0, math.pi])
def test_points_follow_the_screw_and_stay_below_its_bounds(angle):
    generator = np.random.default_rng(5)
    screw = Screw(generator.normal(size=3), generator.normal(size=3), generator.normal(size=3), angle)
    triangles = generator.normal(size=(4, 3, 3))
    for u in (0.0, 0.3, 1.0):
        times = np.full(4, u)
        places = screw.places(triangles, times)
        np.testing.assert_allclose(places[2, 1], reference_place(screw, triangles[2, 1], u), atol=1e-14)
        step = 1e-5
        velocity = screw.velocities(triangles, times)
        numeric = (screw.places(triangles, times + step) - screw.places(triangles, times - step)) / (2 * step)
        np.testing.assert_allclose(velocity, numeric, atol=1e-9)
        speed, acceleration = screw.rates(triangles)
        assert np.all(np.linalg.norm(velocity, axis=2).max(axis=1) <= speed)
        turned = screw.velocities(triangles, times + step) - velocity
        assert np.all(np.linalg.norm(turned, axis=2).max(axis=1) <= acceleration * step + 1e-14)


def test_straight_fall_and_swing_have_the_times_of_their_closed_forms():
    """A box falls 2 m over a gap of 1 m; a rod swings about z through the angle asin(...) onto a box."""
    fall = first_contact(BOX, STILL, BOX + 2 * Z, Screw(ZERO, -2 * Z, Z, 0.0), 0.01)
    assert fall.low <= 0.495 <= fall.high
    assert fall.high - fall.low < 1e-10
    # A needle along x from 1 to 2 swings by 90 degrees about z at the origin; its side meets the corner (1.5, 1.5)
    # of a box, then y = x, that is after 45 degrees, less the separation over the distance of the corner.
    needle = np.array([[[1.0, 0, 0], [3, 0, 0], [3, 0, 0.0]]])
    corner = np.array([[[1.5, 1.5, -1], [1.5, 1.5, 1], [1.0, 3.0, 0]]])
    swing = first_contact(needle, Screw(ZERO, ZERO, Z, math.pi / 2), corner, STILL, 0.01)
    expected = (math.pi / 4 - math.asin(0.01 / math.hypot(1.5, 1.5))) / (math.pi / 2)
    assert swing.low <= expected <= swing.high
    assert swing.high - swing.low < 1e-10


def test_bodies_that_move_together_or_pass_are_proven_free():
    together = Screw(X, 0.4 * Y, Z, 0.5)
    assert first_contact(BOX, together, BOX + 1.02 * X, together, 0.01).low == 1.0
    passing = Screw(ZERO, 5.0 * Y, Z, 0.0)
    for shift, free in ((1.0101, True), (1.0099, False)):
        bracket = first_contact(BOX, STILL, BOX + [shift, -2.5, 0], passing, 0.01)
        assert (bracket.low == 1.0) is free
        assert (bracket.high == math.inf) is free


def test_a_separation_below_rounding_is_refused():
    with pytest.raises(ValueError, match="separation must be above"):
        first_contact(BOX, STILL, BOX + 2 * Z, STILL, 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_samples_before_the_bracket_are_free_and_its_end_is_not(seed):
    generator = np.random.default_rng(seed)
    second = 0.6 * BALL + [2.2, 0, 0]
    screws = [
        Screw(generator.normal(size=3), 0.3 * generator.normal(size=3), generator.normal(size=3), 1.0),
        Screw(second[0, 0], [-2.0, 0.2, 0.1] + 0.2 * generator.normal(size=3), generator.normal(size=3), 2.5),
    ]
    bracket = first_contact(BALL, screws[0], second, screws[1], 1e-3)
    end = min(bracket.high, 1.0)
    for u in np.linspace(0.0, bracket.low, 12):
        times = np.full(20, u)
        assert judge(screws[0].places(BALL, times), screws[1].places(second, times)).upper >= 1e-3 - 1e-13
    if bracket.high < math.inf:
        assert bracket.high - bracket.low < 1e-9
        times = np.full(20, end)
        assert judge(screws[0].places(BALL, times), screws[1].places(second, times)).lower <= 1e-3
