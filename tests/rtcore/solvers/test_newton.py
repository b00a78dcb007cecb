from pathlib import Path

import numpy as np
import pytest
from contact_cases import Case, box_on_ground, groove, in_cone, mass_point, projected, residual, solved
from scipy.optimize import minimize

from rtcore.solvers import newton
from rtcore.solvers.newton import make_work, solve
from rtcore.solvers.problem import assemble, delassus, free_velocity, make_problem
from rtcore.tables import SOLVER_REPORT, SOLVER_SETTINGS
from tools.friction_problems import read_problem

DATA = Path(__file__).parents[3] / "../shared/data/friction_contact"
FALL = 9.81e-3
"""Velocity that gravity gives in 1 ms, m/s."""


def stack(boxes, top=1.0, seed=None, mu=0.5, compliance=0.0, numbers=None, movers=None):
    """Cubes of 0.1 m and 1 kg on each other, `top` kg the last, at rest, or with random velocities.

    numbers: rows of the cubes among so many movers.
    """
    numbers = list(range(boxes)) if numbers is None else numbers
    problem = make_problem(movers or boxes, 4 * boxes, 48 * boxes)
    problem.size["movers"], problem.size["contacts"] = movers or boxes, 4 * boxes
    rng = np.random.default_rng(seed)
    for box, m in enumerate(numbers):
        mover = problem.movers[m]
        mover["inverse_mass"] = 1.0 / (top if box == boxes - 1 else 1.0)
        mover["inverse_inertia"] = 600.0 * mover["inverse_mass"] * np.eye(3)
        mover["velocity"][2] = -FALL
        if seed is not None:
            mover["velocity"] += rng.standard_normal(6) * np.repeat([0.1, 1.0], 3)
    corners = [(x, y) for x in (-0.05, 0.05) for y in (-0.05, 0.05)]
    for i, equation in enumerate(problem.equations):
        box, (x, y) = i // 4, corners[i % 4]
        equation["friction"], equation["compliance"] = mu, compliance
        equation["first"], equation["second"] = numbers[box], numbers[box - 1] if box else -1
        for k, axis in enumerate(np.eye(3)[[2, 0, 1]]):
            equation["jacobian_first"][k] = [*axis, *np.cross([x, y, -0.05], axis)]
            if box:
                equation["jacobian_second"][k] = [*-axis, *-np.cross([x, y, 0.05], axis)]
    assemble(problem)
    free_velocity(problem)
    return problem


def case_of(problem) -> Case:
    return Case(delassus(problem), problem.equations["free"].ravel().copy(), problem.equations["friction"].copy())


def added_energy(case: Case, impulse) -> float:
    """What impulses (n, 3) add to the kinetic energy of the velocities relative to those wanted, J."""
    r = impulse.ravel()
    return 0.5 * r @ case.matrix @ r + r @ case.free


def run(problem, iterations, tolerance=0.0, work=None):
    """Solve the whole problem from the impulses that it holds; returns the report."""
    settings, report = np.zeros(1, SOLVER_SETTINGS), np.zeros(1, SOLVER_REPORT)
    settings["sweeps"], settings["tolerance"] = iterations, tolerance
    contacts = int(problem.size["contacts"][0])
    solve(problem, 0, contacts, settings[0], work or make_work(problem), report[0])
    return report[0]


class Step:
    """One proximal step about no impulses, without slip: the convex relaxation with compliance, in numpy too."""

    def __init__(self, problem, soft_n=0.02, soft_t=0.05):
        self.problem, self.contacts = problem, len(problem.equations)
        self.work = make_work(problem)
        self.dof = newton._prepare(problem, 0, self.contacts, self.work)
        self.friction = problem.equations["friction"]
        self.free = problem.equations["free"].copy()
        self.soft = np.array([soft_n, soft_t, soft_t])
        self.work.soft[:] = [soft_n, soft_t]
        self.work.offset[:] = self.free
        jacobian = np.zeros((self.contacts, 3, self.dof))
        for i, equation in enumerate(problem.equations):
            for side, name in (("first", "jacobian_first"), ("second", "jacobian_second")):
                if equation[side] >= 0:
                    mover = problem.movers[equation[side]]
                    root = np.zeros((6, 6))
                    root[:3, :3] = np.sqrt(mover["inverse_mass"]) * np.eye(3)
                    root[3:, 3:] = np.linalg.cholesky(mover["inverse_inertia"])
                    place = 6 * self.work.local[equation[side]]
                    jacobian[i, :, place : place + 6] = equation[name] @ root
        self.jacobian = jacobian

    def impulses(self, z):
        """Projections in the norm of D, by the Euclidean one onto the cones in coordinates scaled by sqrt(D)."""
        root = np.sqrt(self.soft)
        aim = -(self.jacobian @ z + self.free) / root
        return projected(aim, self.friction * root[1] / root[0]) / root

    def objective(self, z):
        r = self.impulses(z)
        return 0.5 * z @ z + 0.5 * np.sum(self.soft * r * r)

    def gradient(self, z):
        return z - np.einsum("ikm,ik->m", self.jacobian, self.impulses(z))

    def descend(self, limit, enough=1e-10):
        return newton._descend(self.problem, 0, self.contacts, self.work, self.dof, 0.0, enough, limit)


def states(problem):
    """Contacts that are open, slip, and stick."""
    r, mu = problem.equations["impulse"], problem.equations["friction"]
    opened = r[:, 0] == 0.0
    slipping = ~opened & (np.hypot(r[:, 1], r[:, 2]) > mu * r[:, 0] * (1.0 - 1e-9))
    return opened.sum(), slipping.sum(), (~opened & ~slipping).sum()


def test_gradient_and_hessian_are_derivatives_of_the_objective():
    step = Step(stack(3, top=5.0, seed=1))
    z = 0.3 * np.random.default_rng(2).standard_normal(step.dof)
    step.work.state[:] = z
    newton._slope(step.problem, 0, step.contacts, step.work, step.dof)
    newton._hessian(step.problem, 0, step.contacts, step.work, step.dof)
    small = 1e-6 * np.eye(step.dof)
    gradient = [(step.objective(z + h) - step.objective(z - h)) / 2e-6 for h in small]
    hessian = [(step.gradient(z + h) - step.gradient(z - h)) / 2e-6 for h in small]
    np.testing.assert_allclose(-step.work.direction, gradient, rtol=0, atol=1e-7 * np.abs(gradient).max())
    made = np.tril(step.work.hessian)
    made = made + np.tril(made, -1).T
    np.testing.assert_allclose(made, hessian, rtol=0, atol=1e-6 * np.abs(hessian).max())
    r = step.impulses(z)
    kinds = np.hypot(r[:, 1], r[:, 2]) / np.maximum(r[:, 0], 1e-300) / 0.5
    assert (r[:, 0] == 0).any() and (abs(kinds - 1) < 1e-9).any() and ((r[:, 0] > 0) & (kinds < 0.999)).any()


@pytest.mark.parametrize("seed", range(3))
def test_a_step_finds_the_minimum_that_scipy_finds(seed):
    step = Step(stack(2, top=3.0, seed=seed))
    _, complete = step.descend(50)
    assert complete
    found = minimize(
        step.objective, np.zeros(step.dof), jac=step.gradient, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}
    )
    np.testing.assert_allclose(step.work.state, found.x, rtol=0, atol=1e-7)
    assert step.objective(step.work.state) <= found.fun + 1e-14


@pytest.mark.parametrize("soft", [1e-1, 1e-4, 1e-7])
def test_no_iteration_raises_the_objective(soft):
    """How stiff the contacts are only changes how many iterations there are until the gradient is gone."""
    for seed in range(4):
        step = Step(stack(5, top=100.0, seed=seed), soft, soft)
        last = step.objective(step.work.state)
        for _ in range(500):
            _, complete = step.descend(1, 1e-7)
            value = step.objective(step.work.state)
            assert value <= last * (1.0 + 1e-12)
            last = value
            if complete:
                break
        assert complete
        gradient = step.gradient(step.work.state)
        assert np.linalg.norm(gradient) < 2e-7 * np.linalg.norm(step.work.state)


@pytest.mark.parametrize("top", [1.0, 10.0, 100.0, 1e3, 1e4])
def test_a_tower_at_rest_is_one_iteration_whatever_it_carries(top):
    """10 cubes, all sticking: the problem is linear.

    The proximal compliance S of the first step lets each layer sink by S r / 4 under its load r, so that the top is
    held short by some 10 S (9 + top) / 4 at most: 1.8e-4 of the load where it is 10 t.
    """
    problem = stack(10, top)
    report = run(problem, 20, 1e-6)
    assert report["converged"] == 1 and report["sweeps_used"] == 1
    impulse, case = problem.equations["impulse"].copy(), case_of(problem)
    assert residual(case, impulse) < 2e-8 and in_cone(impulse, case.friction)
    assert np.abs(case.matrix @ impulse.ravel() + case.free).max() < 4e-5 * FALL
    short = 10 * newton.TRIAL * np.diag(case.matrix).mean() * (9.0 + top) / 4
    assert impulse[:4, 0].sum() == pytest.approx((9.0 + top) * FALL, rel=1.1 * short)


@pytest.mark.parametrize("top", [1.0, 10.0, 1e4])
def test_steps_take_away_what_their_compliance_leaves(top):
    """With no tolerance the proximal compliance vanishes from the answer: only rounding divided by it is left.

    Where no layer moves by more than 1e-7 of the fall, the top of 10 does not by more than 10 times that.
    """
    problem = stack(10, top)
    run(problem, 20)
    case = case_of(problem)
    assert residual(case, problem.equations["impulse"]) < np.finfo(float).eps / newton.STIFFEST
    assert problem.equations["impulse"][:4, 0].sum() == pytest.approx((9.0 + top) * FALL, rel=10 * 1e-7)
    assert np.abs(case.matrix @ problem.equations["impulse"].ravel() + case.free).max() < 1e-7 * FALL


@pytest.mark.parametrize("top", [1.0, 100.0, 1e4])
def test_contacts_that_stick_slip_and_open_together_obey_coulombs_law(top):
    """From no impulses, 10 cubes with random velocities, judged apart from the solver."""
    seen = np.zeros(3, int)
    for seed in range(200, 212):
        problem = stack(10, top, seed)
        report = run(problem, 100, 1e-3)
        impulse, case = problem.equations["impulse"], case_of(problem)
        assert np.isfinite(impulse).all() and in_cone(impulse, case.friction)
        assert report["converged"] == 1 and residual(case, impulse) <= 1e-3 * (1.0 + 1e-9)
        assert added_energy(case, impulse) < 0.0
        seen += states(problem)
    assert (seen > 12).all()


def test_physical_compliance_stays_in_the_answer():
    """1 kg on four soft points: r = v / (1/m + C/4) in sum, whatever the proximal compliance was."""
    problem = stack(1, compliance=0.8)
    report = run(problem, 50, 1e-12)
    assert report["converged"] == 1
    assert problem.equations["impulse"][:, 0].sum() == pytest.approx(FALL / 1.2, rel=1e-11)


def test_unequal_compliance_of_the_tangents_is_exact():
    """A point that sticks, each direction for itself: r = -v / (1/m + C)."""
    problem = make_problem(1, 1, 1)
    problem.size["movers"], problem.size["contacts"] = 1, 1
    problem.movers["inverse_mass"] = 0.5
    problem.movers["velocity"][0, :3] = [0.1, -0.2, -1.0]
    equation = problem.equations[0]
    equation["jacobian_first"][:, :3] = np.eye(3)[[2, 0, 1]]
    equation["first"], equation["second"], equation["friction"] = 0, -1, 2.0
    equation["compliance"] = [0.3, 0.1, 4.0]
    assemble(problem)
    free_velocity(problem)
    report = run(problem, 200, 1e-12)
    assert report["converged"] == 1
    np.testing.assert_allclose(equation["impulse"], [1 / 0.8, -0.1 / 0.6, 0.2 / 4.5], rtol=1e-10)


@pytest.mark.parametrize(
    "case",
    [
        mass_point(2.0, [-1.0, 0.3, 0.2], 0.5),
        mass_point(2.0, [-1.0, 3.0, 2.0], 0.5),
        mass_point(2.0, [1.0, 3.0, 2.0], 0.5),
        mass_point(2.0, [-1.0, 3.0, 2.0], 0.0),
        groove(1.5, [1.0, 0.0, -0.5], 0.4),
        box_on_ground([1.0, 0, -FALL, 0, 0, 0], 0.5),
    ],
)
def test_problems_without_movers_settle_on_coulombs_law(case):
    found, velocity, report = solved(solve, make_work, case, 200, 1e-11)
    assert report["converged"] == 1 and in_cone(found, case.friction)
    assert residual(case, found) < 1.1e-11
    np.testing.assert_allclose(velocity.ravel(), case.matrix @ found.ravel() + case.free, rtol=0, atol=1e-14)


def test_a_problem_has_the_same_answer_with_movers_and_as_a_matrix():
    for seed in range(3):
        problem = stack(3, top=4.0, seed=seed)
        run(problem, 300, 1e-9)
        case = case_of(problem)
        _, velocity, report = solved(solve, make_work, case, 300, 1e-9)
        assert report["converged"] == 1
        np.testing.assert_allclose(velocity, problem.equations["velocity"], rtol=0, atol=1e-6)


def test_an_island_is_solved_by_itself_wherever_its_movers_and_contacts_are():
    """Two stacks in one problem, their movers mixed: each has the bits that it has alone."""
    parts = [stack(2, 3.0, 1, numbers=[4, 1], movers=5), stack(3, 2.0, 2, numbers=[3, 0, 2], movers=5)]
    alone = [stack(2, 3.0, 1), stack(3, 2.0, 2)]
    both = make_problem(5, 20, 240)
    both.size["movers"], both.size["contacts"] = 5, 20
    for part, rows, movers in zip(parts, (slice(0, 8), slice(8, 20)), ([4, 1], [3, 0, 2]), strict=True):
        both.movers[movers] = part.movers[movers]
        both.equations[rows] = part.equations
    assemble(both)
    settings, report = np.zeros(1, SOLVER_SETTINGS), np.zeros(1, SOLVER_REPORT)
    settings["sweeps"], settings["tolerance"] = 100, 1e-8
    work = make_work(both)
    solve(both, 8, 20, settings[0], work, report[0])
    assert (both.equations["impulse"][:8] == 0.0).all()
    solve(both, 0, 8, settings[0], work, report[0])
    for problem, rows in zip(alone, (slice(0, 8), slice(8, 20)), strict=True):
        run(problem, 100, 1e-8)
        assert problem.equations["impulse"].tobytes() == both.equations["impulse"][rows].tobytes()


def test_any_number_of_iterations_leaves_a_valid_answer_and_none_worse_than_the_start():
    for seed in range(4):
        start = stack(6, 50.0, seed)
        run(start, 8)
        last = np.inf
        for iterations in range(25):
            problem = stack(6, 50.0, seed)
            problem.equations["impulse"] = 1.3 * start.equations["impulse"]
            case = case_of(problem)
            before = residual(case, problem.equations["impulse"])
            report = run(problem, iterations)
            found = problem.equations["impulse"]
            assert in_cone(found, case.friction) and report["sweeps_used"] == iterations
            now = residual(case, found)
            assert now <= before * (1.0 + 1e-9) and report["residual"] == pytest.approx(now, rel=1e-7)
            np.testing.assert_allclose(
                problem.equations["velocity"].ravel(), case.matrix @ found.ravel() + case.free, rtol=0, atol=1e-12
            )
            assert added_energy(case, found) <= 0.0
            last = min(last, now)
        assert last < 0.5 * before


def test_an_answer_costs_nothing_to_start_from_and_everything_repeats_to_the_bit():
    problem = stack(5, 20.0, 3)
    work = make_work(problem)
    run(problem, 200, 1e-6, work)
    first = problem.equations["impulse"].tobytes()
    report = run(problem, 200, 1e-6, work)
    assert report["sweeps_used"] == 0 and report["converged"] == 1
    problem.equations["impulse"] = 0.0
    run(problem, 200, 1e-6, work)
    assert problem.equations["impulse"].tobytes() == first


def test_numbers_that_overflow_are_no_answer():
    """The residual divides by the largest of q, r and u, and would be 0 where their squares are infinite."""
    _, _, report = solved(solve, make_work, mass_point(1.0, [-1e200, 1e200, 0.0], 0.5), 20, 1e-3)
    assert report["converged"] == 0 and report["residual"] == np.inf


def test_no_contacts_are_no_work():
    report = run(make_problem(0, 0, 0), 10, 1e-6)
    assert report["converged"] == 1 and report["sweeps_used"] == 0


SMALL = ["Box_Stacks-i0122-82-5.hdf5", "BoxesStack1-i100000-32.hdf5.dat", "Confeti-ex13-4contact-Fc3D-SBM.dat"]
SMALL += ["LMGC_100_PR_PerioBox-i00361-60-03000.hdf5", "OneObject-i1028-138.hdf5.dat", "sliding_cube.npz"]
SMALL += ["2cubes_t0.npz", "NESpheres_10_1.dat", "OneObject-i100000-499.hdf5.dat"]
SMALL += [f"Rover{number}.dat" for number in (1039, 1040, 11035, 3865, 4144, 4396, 4493, 4609)]


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the contact problems in ../shared/data/friction_contact")
@pytest.mark.parametrize("name", SMALL)
def test_public_problems_come_below_1e_3(name):
    if name.endswith("hdf5"):
        pytest.importorskip("h5py", reason="needs h5py to read FCLIB's files")
    read = read_problem(DATA / name)
    case = Case(read.matrix, read.free, read.friction)
    found, _, _ = solved(solve, make_work, case, 100, 1e-4)
    assert in_cone(found, case.friction) and residual(case, found) < 1e-3


def test_contacts_without_friction_along_which_nothing_slides_do_not_pull():
    """One corner of the upper box is to part, the others have room, the lower rests; not a tangential velocity at all.

    The answer of a frictionless problem is one where no impulse pulls, nothing closes, and what pushes does not part.
    """
    problem = stack(2, mu=0.0)
    problem.equations["free"] = 0.0
    problem.equations["free"][4:, 0] = [-0.05, 0.7, 0.7, 0.03]
    report = run(problem, 20, 1e-8)
    case = case_of(problem)
    impulse = problem.equations["impulse"].ravel()
    velocity = (case.matrix @ impulse + case.free).reshape(-1, 3)[:, 0]
    pushes = problem.equations["impulse"][:, 0]
    assert report["converged"] == 1 and not problem.equations["impulse"][:, 1:].any()
    assert pushes.min() >= 0.0 and pushes[4] > 0.0 and velocity.min() > -1e-8
    assert np.abs(pushes * velocity).max() < 1e-8 * pushes.max()


def balls_in_a_row(closes: float, slides: float):
    """Contacts of a ball between two others, frictionless: one hardly closes, along the other much slides.

    Both hold impulses that are far too large.
    """
    matrix = 0.2 * np.eye(6)
    matrix[0, 3] = matrix[3, 0] = -0.0992
    free = np.array([2e-5, -slides, -0.6 * slides, -closes, 0.2 * slides, 0.05 * slides])
    case = Case(matrix, free, np.zeros(2))
    return case, np.array([[6e-5, 0.0, 0.0], [7.8e-5, 0.0, 0.0]])


@pytest.mark.parametrize("slides", [0.0, 0.6])
@pytest.mark.parametrize("closes", [5e-7, 1e-8])
def test_what_slides_without_friction_does_not_hide_what_closes(closes, slides):
    """The answer is r = (0, closes / w): the first contact has room for that, whatever goes along it."""
    case, start = balls_in_a_row(closes, slides)
    impulse, _, report = solved(solve, make_work, case, 100, 1e-11, start)
    assert report["converged"] == 1
    assert impulse[:, 0] == pytest.approx([0.0, closes / 0.2], rel=1e-2, abs=1e-2 * closes)
    assert not impulse[:, 1:].any()


@pytest.mark.parametrize("seed", range(3))
def test_no_work_is_spent_on_rounding(seed):
    """Asked for more than doubles hold, it ends soon, with an answer that is exact but for rounding."""
    problem = stack(3, 20.0, seed)
    report = run(problem, 2000)
    assert report["converged"] == 0 and report["sweeps_used"] < 500
    assert residual(case_of(problem), problem.equations["impulse"]) < 1e-11
