"""Imposed forces and motions: exact without friction, and Coulomb's law with it where the original goes wrong."""

import numpy as np
import pytest
from contact_cases import Case, box_on_ground, groove, in_cone, mass_point, residual, solved, tower
from normal_cases import KINDS, as_problem, draw, exact_change, run, wrongness

from rtcore.solvers import dantzig
from rtcore.solvers.imposed import iterate, make_work, solve, solve_friction
from rtcore.solvers.problem import make_problem

ENOUGH = 3000


@pytest.mark.parametrize("kind", KINDS)
def test_without_friction_impulses_push_rows_hold_and_both_are_orthogonal(kind):
    rng = np.random.default_rng(21)
    for _ in range(40):
        bodies = int(rng.integers(1, 6))
        rows = draw(rng, kind, bodies, int(rng.integers(1, 12 * bodies)))
        impulse, _, report = run(solve, make_work, as_problem(rows), ENOUGH, 1e-12)
        assert wrongness(rows, impulse) < 1e-8
        assert report["residual"] < 1e-9


def test_whole_numbers_agree_with_exact_arithmetic():
    rng = np.random.default_rng(22)
    for _ in range(25):
        rows = draw(rng, "whole numbers", 1, int(rng.integers(2, 9)))
        impulse, _, _ = run(solve, make_work, as_problem(rows), ENOUGH, 1e-13)
        np.testing.assert_allclose(rows.jacobian.T @ impulse, exact_change(rows), rtol=0, atol=1e-9)


def wall(courses: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Bricks 2 long and 1 high in running bond, in their plane: J (contacts, 3n) of the normals, weights (3n,)."""
    places = [(course, 2 * k + course % 2) for course in range(courses) for k in range(length - course % 2)]
    bricks = {place: i for i, place in enumerate(places)}
    rows = []
    for (course, x), brick in bricks.items():
        # What lies under a brick: the ground, or the halves of two bricks.
        below = [(None, x - 1, x + 1)] if course == 0 else [(x - 1, x - 1, x), (x + 1, x, x + 1)]
        for y, *ends in below:
            if y is not None and (course - 1, y) not in bricks:
                continue
            for at in ends:
                row = np.zeros((len(bricks), 3))
                row[brick] = [0.0, 1.0, at - x]
                if y is not None:
                    row[bricks[course - 1, y]] = [0.0, -1.0, y - at]
                rows.append(row.ravel())
    return np.array(rows), np.tile([0.0, -9.81e-3, 0.0], len(bricks))


@pytest.mark.parametrize(("courses", "bricks", "contacts", "most"), [(10, 95, 344, 20), (14, 189, 704, 25)])
def test_a_wall_of_bricks_takes_few_passes(courses, bricks, contacts, most):
    """The original was fully satisfactory for several hundred contacts without friction; here half are redundant."""
    jacobian, weight = wall(courses, courses)
    assert jacobian.shape == (contacts, 3 * bricks)
    inverse = np.tile([1.0, 1.0, 12.0 / 5.0], bricks)
    matrix = jacobian * inverse @ jacobian.T
    assert np.linalg.matrix_rank(jacobian) < 0.6 * contacts
    work = make_work(make_problem(0, (contacts + 2) // 3, 0))
    work.matrix[:contacts, :contacts] = matrix
    work.free[:contacts] = jacobian @ weight
    assert iterate(work, contacts, 200, 1.0, 1e-10) <= most
    impulse = work.best[:contacts]
    assert (impulse >= 0.0).all()
    np.testing.assert_allclose(matrix @ impulse + jacobian @ weight, 0.0, atol=1e-12)
    ground = 2 * courses
    assert impulse[:ground].sum() == pytest.approx(9.81e-3 * bricks, rel=1e-9)


@pytest.mark.parametrize("way", [solve, solve_friction], ids=["frictionless", "friction"])
def test_any_number_of_passes_is_in_the_cones_and_no_worse_than_less(way):
    case = tower(4)
    if way is solve:
        case = case._replace(friction=np.zeros(16))
    start = np.abs(np.random.default_rng(23).standard_normal((16, 3))) * [1e-2, 0, 0]
    last = np.inf
    for passes in [*range(12), 20, 30]:
        impulse, velocity, report = solved(way, make_work, case, passes, start=start)
        assert in_cone(impulse, case.friction)
        np.testing.assert_allclose(velocity.ravel(), case.matrix @ impulse.ravel() + case.free, rtol=0, atol=1e-12)
        assert report["residual"] == pytest.approx(residual(case, impulse), rel=1e-6, abs=1e-14)
        assert report["residual"] <= min(last, report["start_residual"]) * (1.0 + 1e-9)
        last = report["residual"]
    assert last < 1e-8


@pytest.mark.parametrize(
    ("free", "impulse"),
    [
        ([-0.1, 0, 0], [0.2, 0, 0]),  # rests
        ([-0.1, 0.03, 0.04], [0.2, -0.06, -0.08]),  # sticks at the border of the cone
        ([-1, 3, 4], [2, -0.6, -0.8]),  # slips, friction against the slip
        ([0.1, 3, 4], [0, 0, 0]),  # flies off
    ],
)
def test_a_point_mass_on_a_plane(free, impulse):
    found, velocity, report = solved(solve_friction, make_work, mass_point(2.0, free, 0.5), 50, 1e-13)
    np.testing.assert_allclose(found[0], impulse, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(velocity[0], np.asarray(impulse) / 2.0 + free, rtol=0, atol=1e-12)
    assert report["converged"] == 1


@pytest.mark.parametrize("degrees", [10, 20, 26, 30])
def test_a_cube_on_a_slope_sticks_or_slides_at_the_rate_of_coulomb(degrees):
    """mu = 0.5: the original lets it slide at 0.876 m/s^2 at 30 degrees; the law says g (sin - mu cos) = 0.657."""
    angle, g, dt = np.radians(degrees), 9.81, 1e-3
    down, into = g * dt * np.sin(angle), g * dt * np.cos(angle)
    case = box_on_ground([down, 0.0, -into, 0, 0, 0], 0.5)
    _, velocity, report = solved(solve_friction, make_work, case, 100, 1e-10)
    assert report["converged"] == 1
    rate = max(0.0, g * (np.sin(angle) - 0.5 * np.cos(angle)))
    np.testing.assert_allclose(velocity, [[0.0, rate * dt, 0.0]] * 4, rtol=0, atol=1e-11)
    if degrees == 30:
        assert rate == pytest.approx(0.657, abs=5e-4)


def test_what_slid_sticks_again():
    """Started with full friction along the slip of a case that slides, the case that sticks is found, and back."""
    slides = box_on_ground([1.0, 0, -9.81e-3, 0, 0, 0], 0.5)
    sticks = box_on_ground([2e-3, 0, -9.81e-3, 0, 0, 0], 0.5)
    sliding, *_ = solved(solve_friction, make_work, slides, 100, 1e-12)
    np.testing.assert_allclose(sliding.sum(axis=0), [9.81e-3, -0.5 * 9.81e-3, 0.0], rtol=0, atol=1e-12)
    sticking, velocity, report = solved(solve_friction, make_work, sticks, 100, 1e-12, start=sliding)
    assert report["converged"] == 1
    np.testing.assert_allclose(velocity, 0.0, atol=1e-12)
    again, _, report = solved(solve_friction, make_work, slides, 100, 1e-12, start=sticking)
    assert report["converged"] == 1
    np.testing.assert_allclose(again.sum(axis=0), sliding.sum(axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "case",
    [groove(3.0, [1.0, 0.0, -9.81e-3], 0.3), box_on_ground([1.0, 0.3, -0.1, 2.0, 0, 1.0], 0.7), tower(3), tower(8)],
    ids=["groove", "tumbling", "tower 3", "tower 8"],
)
def test_coulombs_law_holds_for_several_contacts(case):
    found, _, report = solved(solve_friction, make_work, case, 400, 1e-10)
    assert report["converged"] == 1
    assert in_cone(found, case.friction)
    assert residual(case, found) < 1.1e-10


def test_without_friction_both_forms_and_dantzig_agree():
    case = tower(5)._replace(friction=np.zeros(20))
    ways = [(solve, make_work), (solve_friction, make_work), (dantzig.solve, dantzig.make_work)]
    changes = [case.matrix @ solved(way, make, case, ENOUGH, 1e-12)[0].ravel() for way, make in ways]
    np.testing.assert_allclose(changes[0], changes[2], rtol=0, atol=1e-10)
    np.testing.assert_allclose(changes[1], changes[2], rtol=0, atol=1e-10)


@pytest.mark.parametrize("way", [solve, solve_friction], ids=["frictionless", "friction"])
def test_what_does_not_move_stays_finite(way):
    case = Case(np.zeros((3, 3)), np.array([-1.0, 1.0, 0.0]), np.array([0.5]))
    found, velocity, report = solved(way, make_work, case, 10)
    np.testing.assert_array_equal(found, 0.0)
    np.testing.assert_array_equal(velocity, [[-1.0, 1.0, 0.0]])
    assert report["converged"] == 0
