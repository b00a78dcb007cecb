"""Gauss-Seidel by projection: answers known in closed form, Coulomb's law asked apart, and where rows stall."""

from pathlib import Path

import numpy as np
import pytest
from contact_cases import Case, box_on_ground, groove, in_cone, mass_point, residual, solved, tower

from rtcore.solvers.projected import make_work, solve, solve_de_saxce, solve_split
from tools.friction_problems import read_problem

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "friction_contact"
WAYS = {"rows": solve, "split": solve_split, "de_saxce": solve_de_saxce}
every_way = pytest.mark.parametrize("way", list(WAYS))
with_the_law = pytest.mark.parametrize("way", ["split", "de_saxce"])


def run(way: str, case: Case, sweeps: int, **more):
    return solved(WAYS[way], make_work, case, sweeps, **more)


@every_way
@pytest.mark.parametrize(
    ("free", "impulse"),
    [
        ([-0.1, 0, 0], [0.2, 0, 0]),  # rests
        ([-0.1, 0.03, 0.04], [0.2, -0.06, -0.08]),  # sticks at the border of the cone
        ([-1, 3, 4], [2, -0.6, -0.8]),  # slips, friction against the slip
        ([0.1, 3, 4], [0, 0, 0]),  # flies off
        ([0, 3, 4], [0, 0, 0]),  # touches without pressing
    ],
)
def test_a_point_mass_on_a_plane(way, free, impulse):
    """Mass 2 kg, friction 0.5: r_n = -m q_n, and tangents as that allows."""
    case = mass_point(2.0, free, 0.5)
    found, velocity, report = run(way, case, 200)
    np.testing.assert_allclose(found[0], impulse, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(velocity[0], np.asarray(impulse) / 2.0 + free, rtol=0, atol=1e-13)
    assert report["residual"] < 1e-12


@every_way
def test_a_groove_carries_the_weight_on_both_sides_and_brakes(way):
    """Each side pushes m g dt / sqrt(2); both brake the slip along the groove by mu times that."""
    case = groove(3.0, [1.0, 0.0, -9.81e-3], 0.3)
    found, velocity, report = run(way, case, 2000)
    push = 3.0 * 9.81e-3 / np.sqrt(2.0)
    np.testing.assert_allclose(found, [[push, -0.3 * push, 0.0]] * 2, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(velocity[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(velocity[:, 1], 1.0 - 2 * 0.3 * push / 3.0, rtol=1e-12)
    assert report["residual"] < 1e-10


@every_way
def test_a_cube_on_its_corners_rests(way):
    """Four corners share the weight in some way: its sum and that nothing moves are what is certain."""
    found, velocity, _ = run(way, box_on_ground([2e-3, 0, -9.81e-3, 0, 0, 0], 0.5), 5000)
    np.testing.assert_allclose(velocity, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=0), [9.81e-3, -2e-3, 0.0], rtol=0, atol=1e-11)


def test_a_cube_on_its_corners_slides_and_rows_brake_it_too_little():
    """Friction is mu m g dt against the slip; rows settle some 7 % below, with a pull to the side."""
    case = box_on_ground([1.0, 0, -9.81e-3, 0, 0, 0], 0.5)
    for way in ("split", "de_saxce"):
        found, velocity, _ = run(way, case, 5000)
        np.testing.assert_allclose(found.sum(axis=0), [9.81e-3, -0.5 * 9.81e-3, 0.0], rtol=0, atol=1e-11)
        np.testing.assert_allclose(velocity, [[0.0, 1.0 - 0.5 * 9.81e-3, 0.0]] * 4, rtol=0, atol=1e-11)
    for sweeps in (500, 5000):
        found, _, report = run("rows", case, sweeps)
        assert 0.9 < -found[:, 1].sum() / (0.5 * 9.81e-3) < 0.95
        assert found[:, 2].sum() > 1e-5 and report["residual"] > 1e-4


@with_the_law
def test_a_tower_settles_on_coulombs_law(way):
    case = tower(3)
    found, _, report = run(way, case, 20_000, tolerance=1e-11)
    assert report["converged"] == 1 and 0 < report["sweeps_used"] < 20_000
    assert in_cone(found, case.friction)
    assert residual(case, found) < 1.1e-11


def test_rows_stall_where_a_slipping_contact_has_unequal_tangents():
    """They settle where friction opposes D^-1 u instead of the slip u, and no number of sweeps helps."""
    case = Case(np.diag([1.0, 4.0, 1.0]), np.array([-1.0, 9.0, 9.0]), np.array([0.5]))
    stalled = [run("rows", case, sweeps)[0] for sweeps in (100, 10_000)]
    np.testing.assert_allclose(*stalled, rtol=0, atol=1e-12)
    assert residual(case, stalled[1]) > 1e-2
    for way in ("split", "de_saxce"):
        found, velocity, _ = run(way, case, 1000)
        r, u = found[0, 1:], velocity[0, 1:]
        assert abs(r[0] * u[1] - r[1] * u[0]) < 1e-12 and r @ u < 0.0
        assert abs(np.linalg.norm(r) - 0.5) < 1e-12 and residual(case, found) < 1e-12


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the contact problems in ../shared/data/friction_contact")
@pytest.mark.parametrize("name", ["Rover1039", "Rover3865", "Rover4144", "Rover4493"])
def test_rows_stall_on_strongly_coupled_problems(name):
    read = read_problem(DATA / f"{name}.dat")
    case = Case(read.matrix, read.free, read.friction)
    stalled = [run("rows", case, sweeps)[0] for sweeps in (100, 20_000)]
    assert min(residual(case, found) for found in stalled) > 1e-2
    assert residual(case, stalled[1]) > 0.9 * residual(case, stalled[0])
    for way in ("split", "de_saxce"):
        assert residual(case, run(way, case, 2000)[0]) < 1e-8


@every_way
def test_any_number_of_sweeps_leaves_a_valid_answer_and_more_no_worse_one(way):
    case = tower(3)
    last = np.inf
    for sweeps in [*range(12), 40, 200]:
        found, velocity, report = run(way, case, sweeps)
        assert in_cone(found, case.friction)
        np.testing.assert_allclose(velocity.ravel(), case.matrix @ found.ravel() + case.free, rtol=0, atol=1e-15)
        assert report["sweeps_used"] == sweeps
        assert report["residual"] == pytest.approx(residual(case, found), rel=1e-9)
        assert report["residual"] <= last * (1.0 + 1e-9)
        last = report["residual"]
    assert last < 1e-2


@every_way
def test_a_warm_start_is_never_made_worse(way):
    """From the answer of another solver, rows would go away to where they stall."""
    case = Case(np.diag([1.0, 4.0, 1.0]), np.array([-1.0, 9.0, 9.0]), np.array([0.5]))
    start, _, _ = run("split", case, 1000)
    found, _, report = run(way, case, 50, start=start)
    assert report["residual"] <= report["start_residual"] < 1e-12
    assert residual(case, found) < 1e-12


@every_way
def test_a_start_outside_the_cone_is_projected(way):
    case = mass_point(1.0, [-1.0, 0.0, 0.0], 0.5)
    found, _, report = run(way, case, 0, start=[-3.0, 1.0, 1.0])
    np.testing.assert_array_equal(found, [[0.0, 0.0, 0.0]])
    assert report["start_residual"] == report["residual"] == 1.0 and report["converged"] == 0


@every_way
def test_islands_are_solved_by_themselves_and_to_the_same_bits(way):
    one, two = box_on_ground([1.0, 0.2, -9.81e-3, 0, 0, 0.3], 0.4), groove(1.0, [0.1, 0, -1], 0.3)
    both = Case(
        np.block([[one.matrix, np.zeros((12, 6))], [np.zeros((6, 12)), two.matrix]]),
        np.concatenate([one.free, two.free]),
        np.concatenate([one.friction, two.friction]),
    )
    found, _, report = run(way, both, 30, among=(4, 6))
    alone, _, alone_report = run(way, two, 30)
    np.testing.assert_array_equal(found[4:], alone)
    np.testing.assert_array_equal(found[:4], 0.0)
    assert report == alone_report
    again, _, _ = run(way, both, 30, among=(4, 6))
    np.testing.assert_array_equal(found, again)


@every_way
def test_nothing_to_do_is_done_at_once(way):
    for case in (mass_point(1.0, [0.0, 0.0, 0.0], 0.5), Case(np.zeros((0, 0)), np.zeros(0), np.zeros(0))):
        _, _, report = run(way, case, 100)
        assert report["sweeps_used"] == 0 and report["residual"] == 0.0 and report["converged"] == 1


@every_way
def test_a_contact_between_things_that_do_not_move_stays_finite(way):
    case = Case(np.zeros((3, 3)), np.array([-1.0, 1.0, 0.0]), np.array([0.5]))
    found, velocity, report = run(way, case, 10)
    np.testing.assert_array_equal(found, [[0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(velocity, [[-1.0, 1.0, 0.0]])
    assert report["converged"] == 0
