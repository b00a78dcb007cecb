"""Spinning and rolling resisted at contacts: balls with answers in closed form, many contacts judged by the law."""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from contact_cases import in_cone
from scipy.optimize import minimize_scalar

from rtcore.solvers import newton
from rtcore.solvers.gauss_seidel import make_work, solve, solve_anderson, solve_nncg
from rtcore.solvers.problem import (
    ContactProblem,
    apply_impulses,
    assemble,
    delassus,
    free_velocity,
    make_problem,
)
from rtcore.solvers.rolling import write_moments
from rtcore.tables import SOLVER_REPORT, SOLVER_SETTINGS

G = 9.81
TICK = 1e-3
R = 0.05
MASS = 0.7
INERTIA = 0.4 * MASS * R * R
UP = np.eye(3)[[2, 0, 1]]
any_way = pytest.mark.parametrize("way", [solve, solve_nncg, solve_anderson], ids=["plain", "nncg", "anderson"])
every_way = pytest.mark.parametrize(
    "way", [solve, solve_nncg, solve_anderson, newton.solve], ids=["plain", "nncg", "anderson", "newton"]
)


class Touch(NamedTuple):
    """A contact of movers `first` (pushed along the normal) and `second`, -1 for the scene, and its laws."""

    first: int
    second: int
    arms: tuple[np.ndarray, np.ndarray]
    """From the movers' centres to the contact, m."""
    axes: np.ndarray = UP
    """(3, 3) normal and both tangents."""
    mu: float = 0.5
    torsional: float = 0.0
    rolling: float = 0.0
    moments: bool = True


def made(movers: list[tuple[float, np.ndarray, np.ndarray]], touches: list[Touch]) -> ContactProblem:
    """The problem of movers, each of mass, inertia (3, 3) and velocity (6,), that touch."""
    rows = sum(2 if touch.moments else 1 for touch in touches)
    problem = make_problem(len(movers), rows, rows * rows)
    problem.size["movers"], problem.size["contacts"] = len(movers), rows
    for mover, (mass, inertia, velocity) in zip(problem.movers, movers, strict=True):
        mover["inverse_mass"], mover["inverse_inertia"] = 1.0 / mass, np.linalg.inv(inertia)
        mover["velocity"] = velocity
    i = 0
    for touch in touches:
        equation = problem.equations[i]
        equation["first"], equation["second"], equation["friction"] = touch.first, touch.second, touch.mu
        for side, arm, sign in (("first", touch.arms[0], 1.0), ("second", touch.arms[1], -1.0)):
            equation[f"jacobian_{side}"] = [[*sign * axis, *sign * np.cross(arm, axis)] for axis in touch.axes]
        if touch.moments:
            write_moments(problem.equations, i, touch.torsional, touch.rolling)
        i += 2 if touch.moments else 1
    assemble(problem)
    free_velocity(problem)
    return problem


def work_of(way, problem: ContactProblem):
    return newton.make_work(problem) if way is newton.solve else make_work(problem)


def run(way, problem: ContactProblem, sweeps: int, tolerance: float = 0.0):
    """Solve all contacts and move the movers: report."""
    settings, report = np.zeros(1, SOLVER_SETTINGS), np.zeros(1, SOLVER_REPORT)
    settings["sweeps"], settings["tolerance"] = sweeps, tolerance
    count = int(problem.size["contacts"][0])
    way(problem, 0, count, settings[0], work_of(way, problem), report[0])
    apply_impulses(problem, 0, count)
    return report[0]


def ball(velocity, mu=0.5, torsional=0.0, rolling=0.0, inertia=INERTIA, moments=True) -> ContactProblem:
    """A ball on a plane, with the velocity (6,) that it would have."""
    touch = Touch(0, -1, (np.array([0, 0, -R]), np.zeros(3)), UP, mu, torsional, rolling, moments)
    return made([(MASS, inertia * np.eye(3), np.asarray(velocity, float))], [touch])


def fall(velocity, angle=0.0):
    """The velocity (6,) after a tick of gravity, on a slope that goes down along x."""
    pull = G * TICK * np.array([math.sin(angle), 0.0, -math.cos(angle), 0, 0, 0])
    return np.asarray(velocity, float) + pull


@any_way
@pytest.mark.parametrize("shape", [0.4, 0.5], ids=["ball", "disc"])
def test_a_pivot_loses_spin_by_the_torsional_moment_and_stops(way, shape):
    """A spin w about the normal falls by torsional m g dt / I, and below that it stops."""
    inertia, torsional = shape * MASS * R * R, 2e-3
    loss = torsional * MASS * G * TICK / inertia
    for spin, left in ((3.0, 3.0 - loss), (-3.0, loss - 3.0), (0.5 * loss, 0.0), (loss, 0.0)):
        problem = ball(fall([0, 0, 0, 0, 0, spin]), torsional=torsional, inertia=inertia)
        report = run(way, problem, 1)
        np.testing.assert_allclose(problem.movers["velocity"][0], [0, 0, 0, 0, 0, left], rtol=0, atol=1e-13)
        assert report["residual"] < 1e-14


@any_way
@pytest.mark.parametrize("direction", [0.0, 1.1, 3.9])
def test_a_rolling_ball_is_braked_by_the_rolling_moment(way, direction):
    """m a = f, I a / R = rolling m g - f R: a = rolling g / (R (1 + 2/5)), any way it rolls."""
    rolling, speed = 1.5e-3, 0.8
    c, s = math.cos(direction), math.sin(direction)
    state = np.array([speed * c, speed * s, 0, -speed / R * s, speed / R * c, 0])
    problem = ball(fall(state), rolling=rolling)
    report = run(way, problem, 1)
    left = 1.0 - rolling * G * TICK / (R * 1.4) / speed
    np.testing.assert_allclose(problem.movers["velocity"][0], left * state, rtol=0, atol=1e-13)
    assert report["residual"] < 1e-13


@any_way
@pytest.mark.parametrize("angle", [1e-4, 0.01, 0.0299])
def test_a_ball_on_a_slope_below_the_rolling_limit_does_not_creep(way, angle):
    """It rests while tan(angle) <= rolling / R, for as long as one waits, with a single sweep in each tick."""
    rolling = R * math.tan(0.03)
    velocity, impulse = np.zeros(6), np.zeros((2, 3))
    for _ in range(1000):
        problem = ball(fall(velocity, angle), rolling=rolling)
        problem.equations["impulse"] = impulse
        report = run(way, problem, 1)
        velocity, impulse = problem.movers["velocity"][0].copy(), problem.equations["impulse"].copy()
        assert np.abs(velocity).max() < 1e-15
        assert report["residual"] < 1e-14
    pull = MASS * G * TICK * math.sin(angle)
    np.testing.assert_allclose(impulse[0], [MASS * G * TICK * math.cos(angle), -pull, 0], rtol=1e-12)
    np.testing.assert_allclose(impulse[1], [0, 0, -pull * R], rtol=1e-12)


@any_way
def test_above_the_rolling_limit_it_goes_with_what_is_left_of_gravity(way):
    """m a = m g sin - f, I a / R = f R - rolling m g cos: a = (g sin - rolling g cos / R) / (1 + 2/5)."""
    rolling = R * math.tan(0.03)
    for angle in (0.0301, 0.05, 0.3):
        problem = ball(fall(np.zeros(6), angle), rolling=rolling)
        run(way, problem, 1)
        speed = TICK * G * (math.sin(angle) - math.tan(0.03) * math.cos(angle)) / 1.4
        np.testing.assert_allclose(
            problem.movers["velocity"][0], [speed, 0, 0, 0, speed / R, 0], rtol=1e-12, atol=1e-15
        )


@any_way
def test_a_sliding_ball_has_both_frictions_in_full(way):
    """v' = -mu g and I w' = R mu m g - rolling m g while the point of contact slides and the ball already turns."""
    mu, rolling = 0.2, 3e-3
    problem = ball(fall([2.0, 0, 0, 0, 1.0, 0]), mu=mu, rolling=rolling)
    run(way, problem, 1)
    speed, spin = 2.0 - mu * G * TICK, 1.0 + (R * mu - rolling) * MASS * G * TICK / INERTIA
    np.testing.assert_allclose(problem.movers["velocity"][0], [speed, 0, 0, 0, spin, 0], rtol=1e-13, atol=1e-14)


@any_way
def test_rolling_friction_may_keep_a_sliding_ball_from_turning(way):
    """With rolling >= mu R a ball without spin slides like a block; the moment is what friction asks of it."""
    problem = ball(fall([2.0, 0, 0, 0, 0, 0]), mu=0.02, rolling=1e-3 * (1.0 + 1e-9))
    run(way, problem, 1)
    np.testing.assert_allclose(
        problem.movers["velocity"][0], [2.0 - 0.02 * G * TICK, 0, 0, 0, 0, 0], rtol=1e-13, atol=1e-14
    )


@any_way
def test_a_ball_slides_then_rolls_then_stops_where_energy_says(way):
    """From v0 without spin on a rough plane without rolling friction: 5/7 v0. With it, the way is that of a to 0.

    While it slides: v = v0 - mu g t, w = (R mu - rolling) m g t / I; then it rolls with a of the test above.
    """
    mu, rolling, start = 0.3, 1e-3, 1.0
    velocity, way_made, ticks = np.array([start, 0, 0, 0, 0, 0.0]), 0.0, 0
    while np.abs(velocity).max() > 0.0 and ticks < 20_000:
        problem = ball(fall(velocity), mu=mu, rolling=rolling)
        run(way, problem, 1)
        velocity = problem.movers["velocity"][0] * (np.abs(problem.movers["velocity"][0]) > 1e-13)
        way_made += velocity[0] * TICK
        ticks += 1
    time = start / (mu * G + (R * mu - rolling) * MASS * G * R / INERTIA)
    speed = start - mu * G * time
    brake = rolling * G / (R * 1.4)
    assert ticks * TICK == pytest.approx(time + speed / brake, abs=2 * TICK)
    assert way_made == pytest.approx(0.5 * (start + speed) * time + 0.5 * speed**2 / brake, abs=1e-3 * start)


@every_way
def test_a_contact_that_opens_has_no_moments(way):
    problem = ball([0.3, 0.2, 0.1, 1.0, -2.0, 5.0], torsional=1.0, rolling=1.0)
    problem.equations["impulse"] = 1.0
    run(way, problem, 1)
    np.testing.assert_array_equal(problem.equations["impulse"], 0.0)


@any_way
def test_with_both_coefficients_0_it_is_coulombs_law(way):
    rng = np.random.default_rng(4)
    for _ in range(20):
        velocity = fall(rng.normal(size=6) * [1, 1, 0, 9, 9, 9])
        plain, row = ball(velocity, moments=False), ball(velocity)
        run(way, plain, 1)
        run(way, row, 1)
        np.testing.assert_allclose(row.equations["impulse"][0], plain.equations["impulse"][0], rtol=1e-14, atol=1e-18)
        np.testing.assert_array_equal(row.equations["impulse"][1], 0.0)


def pile(seed: int, balls: int, torsional=2e-3, rolling=1e-3) -> tuple[list, list[Touch]]:
    """Bodies of full inertia that lie on the ground and lean on one another, thrown together by a tick."""
    rng = np.random.default_rng(seed)
    movers = []
    for _ in range(balls):
        half = rng.normal(size=(3, 3)) * 0.3 + np.eye(3)
        movers.append((rng.uniform(0.3, 2.0), INERTIA * half @ half.T, rng.normal(size=6) * [0.1, 0.1, 0.1, 1, 1, 1]))
    touches = []
    for k in range(balls):
        touches.append(Touch(k, -1, (np.array([0, 0, -R]), np.zeros(3)), UP, 0.4, torsional, rolling))
    for a, b in pairwise(range(balls)):
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0].T
        touches.append(Touch(b, a, (-R * axes[0], R * axes[0]), axes, 0.3, torsional, rolling, moments=bool(b % 2)))
    return movers, touches


def broken_law(problem: ContactProblem) -> float:
    """How far all rows are from the law, asked part by part in numpy; relative to the largest force and velocity."""
    count = int(problem.size["contacts"][0])
    r, u = problem.equations["impulse"][:count], problem.equations["velocity"][:count]
    matrix = delassus(problem)
    velocity = (matrix @ r.ravel()).reshape(-1, 3) + problem.equations["free"][:count]
    np.testing.assert_allclose(velocity, u, rtol=0, atol=1e-12 * np.abs(u).max())
    contacts = problem.equations["parent"][:count] < 0
    force, speed = max(np.abs(r[contacts]).max(), 1e-300), np.abs(problem.equations["free"][:count][contacts]).max()
    worst = 0.0
    for i in range(count):
        equation = problem.equations[i]
        if equation["parent"] < 0:
            assert in_cone(r[i][None], np.array([equation["friction"]]))
            worst = max(worst, -u[i, 0] / speed, abs(u[i, 0] * r[i, 0]) / (speed * force))
            parts = [(r[i, 1:], u[i, 1:], equation["friction"] * r[i, 0], force, speed)]
        else:
            limit = r[equation["parent"], 0]
            parts = [
                (r[i, :1], u[i, :1], equation["friction"] * limit, R * force, speed / R),
                (r[i, 1:], u[i, 1:], equation["rolling"] * limit, R * force, speed / R),
            ]
        for push, slip, limit, unit, rate in parts:
            assert np.linalg.norm(push) <= limit * (1.0 + 4 * np.finfo(float).eps)
            # The most dissipation: |slip| limit = -slip push.
            worst = max(worst, abs(np.linalg.norm(slip) * limit + slip @ push) / (rate * unit))
            if np.linalg.norm(push) < 0.999 * limit:
                worst = max(worst, np.linalg.norm(slip) / rate)
    return worst


@every_way
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("torsional", "rolling"), [(2e-3, 1e-3), (0.0, 1e-2), (1e-2, 0.0), (5e-2, 5e-2)])
def test_many_contacts_obey_the_law(way, seed, torsional, rolling):
    problem = made(*pile(seed, 6, torsional, rolling))
    report = run(way, problem, 3000, 1e-13)
    assert report["converged"] == 1
    assert broken_law(problem) < 1e-10


def residual_in_numpy(problem: ContactProblem) -> float:
    """The natural map of all rows, moments at the length that makes their part of W's diagonal that of contacts."""
    count = int(problem.size["contacts"][0])
    equations, diagonal = problem.equations[:count], np.diag(delassus(problem)).reshape(-1, 3)
    contacts = np.flatnonzero(equations["parent"] < 0)
    rho = 1.0 / diagonal[contacts].mean()
    error = np.zeros((count, 3))
    sizes = np.zeros((3, count, 3))
    for i, equation in enumerate(equations):
        length = 1.0
        r, u = equation["impulse"], equation["velocity"]
        if i in contacts:
            aim = r - rho * (u + [equation["friction"] * np.hypot(u[1], u[2]), 0, 0])
            near = np.zeros(3)
            slip = np.hypot(aim[1], aim[2])
            if slip <= equation["friction"] * aim[0]:
                near = aim
            elif aim[0] + equation["friction"] * slip > 0.0:
                ray = np.array([slip, *(equation["friction"] * aim[1:])]) / slip
                near = ray * (ray @ aim) / (ray @ ray)
        else:
            length = math.sqrt(diagonal[i - 1].sum() / diagonal[i].sum())
            aim = r - rho * length**2 * u
            limit = equations["impulse"][i - 1, 0] * np.array([equation["friction"], equation["rolling"]])
            near = np.array([np.clip(aim[0], -limit[0], limit[0]), *aim[1:]])
            near[1:] *= min(1.0, limit[1] / max(np.hypot(*aim[1:]), 1e-300))
        error[i] = (r - near) / length
        sizes[:, i] = r / length, rho * length * u, rho * length * equation["free"]
    return float(np.linalg.norm(error) / max(np.linalg.norm(sizes[k]) for k in range(3)))


@any_way
@pytest.mark.parametrize("start", ["cold", "pushed at random", "nearly solved"])
def test_any_number_of_sweeps_stays_within_the_limits_and_gets_no_worse(way, start):
    bodies = pile(3, 5, 1e-2, 1e-2)
    rng = np.random.default_rng(1)
    solved = made(*bodies)
    run(way, solved, 200)
    first = {
        "cold": np.zeros_like(solved.equations["impulse"]),
        "pushed at random": rng.normal(size=solved.equations["impulse"].shape),
        "nearly solved": solved.equations["impulse"]
        * (1.0 + 1e-6 * rng.normal(size=solved.equations["impulse"].shape)),
    }[start]
    before = math.inf
    for sweeps in (0, 1, 2, 3, 4, 6, 9, 14, 30):
        problem = made(*bodies)
        problem.equations["impulse"] = first
        report = run(way, problem, sweeps)
        now = residual_in_numpy(problem)
        broken_law(problem)
        assert now <= before * (1.0 + 1e-9)
        assert report["residual"] == pytest.approx(now, rel=1e-6, abs=1e-14)
        assert report["sweeps_used"] == sweeps
        before = now


@every_way
def test_an_answer_is_recognised_and_left_as_it_is(way):
    bodies = pile(1, 6)
    problem, again = made(*bodies), made(*bodies)
    run(way, problem, 3000, 1e-12)
    again.equations["impulse"] = problem.equations["impulse"]
    report = run(way, again, 50, 1e-11)
    assert report["sweeps_used"] == 0
    np.testing.assert_allclose(again.equations["impulse"], problem.equations["impulse"], rtol=1e-15)


def test_the_order_of_contacts_does_not_change_the_motion():
    movers, touches = pile(5, 6)
    problem = made(movers, touches)
    run(solve, problem, 3000, 1e-13)
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(touches))
        other = made(movers, [touches[k] for k in order])
        run(solve, other, 3000, 1e-13)
        np.testing.assert_allclose(other.movers["velocity"], problem.movers["velocity"], rtol=0, atol=1e-11)


@every_way
def test_islands_are_solved_apart_to_the_bit(way):
    """The moments' row refers to its contact by its place in the whole table."""
    movers, touches = pile(2, 4)
    alone = made(movers, touches)
    run(way, alone, 25)
    both = made(
        movers + movers,
        touches + [t._replace(first=t.first + 4, second=t.second + 4 if t.second >= 0 else -1) for t in touches],
    )
    count = len(alone.equations)
    settings, report = np.zeros(1, SOLVER_SETTINGS), np.zeros(1, SOLVER_REPORT)
    settings["sweeps"] = 25
    way(both, count, 2 * count, settings[0], work_of(way, both), report[0])
    np.testing.assert_array_equal(both.equations["impulse"][count:], alone.equations["impulse"])
    np.testing.assert_array_equal(both.equations["impulse"][:count], 0.0)


@any_way
@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_units_of_length_do_not_matter(way, size):
    """Lengths times `size`: the same residual after the same sweeps."""
    movers, touches = pile(4, 5, 1e-2, 1e-2)
    problem = made(movers, touches)
    report = run(way, problem, 12)
    scaled = made(
        [(m, inertia * size**2, v * np.repeat([size, 1.0], 3)) for m, inertia, v in movers],
        [
            t._replace(arms=tuple(size * arm for arm in t.arms), torsional=size * t.torsional, rolling=size * t.rolling)
            for t in touches
        ],
    )
    other = run(way, scaled, 12)
    assert other["residual"] == pytest.approx(report["residual"], rel=1e-5)
    np.testing.assert_allclose(scaled.movers["velocity"][:, 3:], problem.movers["velocity"][:, 3:], rtol=1e-6)


@any_way
def test_what_cannot_turn_has_no_moments_and_slides_as_before(way):
    for moments in (False, True):
        problem = ball(fall([1.0, 0, 0, 0, 0, 0]), torsional=1e-2, rolling=1e-2, moments=moments)
        problem.movers["inverse_inertia"] = 0.0
        problem.equations["free"] = 0.0
        assemble(problem)
        free_velocity(problem)
        report = run(way, problem, 1)
        np.testing.assert_allclose(problem.movers["velocity"][0, :3], [1.0 - 0.5 * G * TICK, 0, 0], atol=1e-14)
        assert report["residual"] < 1e-14


@any_way
def test_a_body_on_a_fixed_pivot_turns_although_a_moment_that_holds_would_leave_nothing_to_push(way):
    """A lever on a ball joint falls on a stop at its end: only its rotation gives way, so the moment must slide."""
    stop = Touch(0, -1, (np.array([0.4, 0, 0]), np.zeros(3)), UP, 0.3, 1e-3, 2e-2)
    problem = made([(1.0, 0.01 * np.eye(3), np.array([0, 0, 0, 0, 2.0, 0]))], [stop])
    problem.movers["inverse_mass"] = 0.0
    problem.equations["free"] = 0.0
    assemble(problem)
    free_velocity(problem)
    run(way, problem, 1)
    # The end comes to rest, u_n = -0.4 w = 0, by 0.02 - 0.4 r_n + m = 0 with any |m| <= rolling r_n.
    np.testing.assert_allclose(problem.movers["velocity"][0], 0.0, atol=1e-13)
    r = problem.equations["impulse"]
    np.testing.assert_allclose(0.4 * r[0, 0] - r[1, 2], 0.02, rtol=1e-12)
    assert abs(r[1, 2]) <= 2e-2 * r[0, 0] * (1.0 + 1e-15)


def test_rows_of_moments_are_the_relative_rotation_of_both_bodies():
    movers, touches = pile(0, 3)
    problem = made(movers, touches)
    run(solve, problem, 5)
    i = 0
    for touch in touches:
        i += 1
        if touch.moments:
            spin = problem.movers["velocity"][touch.first, 3:].copy()
            if touch.second >= 0:
                spin -= problem.movers["velocity"][touch.second, 3:]
            np.testing.assert_allclose(problem.equations["velocity"][i], touch.axes @ spin, rtol=0, atol=1e-13)
            i += 1


def heap(seed: int, torsional=2e-3, rolling=1e-3, ratio=100.0) -> ContactProblem:
    """Balls on one another, the upper heavier up to `ratio` times, that roll and spin, each row on its contact."""
    movers, touches = pile(seed, 6, torsional, rolling)
    movers = [
        (m * ratio ** (k / 5), inertia * ratio ** (k / 5), v - G * TICK * np.eye(6)[2])
        for k, (m, inertia, v) in enumerate(movers)
    ]
    return made(movers, touches)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("torsional", "rolling"), [(2e-3, 1e-3), (0.0, 1e-2), (1e-2, 0.0)])
def test_newtons_method_needs_few_iterations_whatever_the_masses(seed, torsional, rolling):
    """Up to a fifth of the radius; with coefficients as large as the radius there are cases that need hundreds."""
    problem = heap(seed, torsional, rolling)
    report = run(newton.solve, problem, 40, 1e-11)
    assert report["converged"] == 1
    assert broken_law(problem) < 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_newtons_method_and_sweeps_come_to_the_same_motion(seed):
    by_newton, by_sweeps = made(*pile(seed, 6)), made(*pile(seed, 6))
    run(newton.solve, by_newton, 200, 1e-13)
    run(solve_anderson, by_sweeps, 2000, 1e-13)
    np.testing.assert_allclose(by_newton.movers["velocity"], by_sweeps.movers["velocity"], rtol=0, atol=1e-9)


def answer(w: np.ndarray, laws: np.ndarray) -> np.ndarray:
    """The impulse (6,) within the law that minimises r' D r / 2 + w' r, D and coefficients (3,) each in `laws`."""

    def at(n: float) -> np.ndarray:
        r = np.array([n, *-w[1:3] / laws[1], *-w[3:] / laws[2]])
        for part, mu in ((slice(1, 3), laws[3]), (slice(3, 4), laws[4]), (slice(4, 6), laws[5])):
            size = np.linalg.norm(r[part])
            if size > mu * n:
                r[part] *= mu * n / size
        return r

    compliance = laws[[0, 1, 1, 2, 2, 2]]
    most = (abs(w[0]) + laws[3] * np.hypot(*w[1:3]) + laws[4] * abs(w[3]) + laws[5] * np.hypot(*w[4:])) / laws[0]
    found = minimize_scalar(
        lambda n: 0.5 * at(n) @ (compliance * at(n)) + w @ at(n), bounds=(0.0, most), options={"xatol": 1e-13 * most}
    )
    return at(found.x) if found.fun < 0.0 else np.zeros(6)


def test_gradient_and_hessian_of_newtons_method_are_derivatives_of_the_potential():
    """In the space of velocities, with open contacts, and moments and friction that hold and that slide."""
    movers, touches = pile(3, 5, 1e-2, 2e-2)
    problem = made(movers, [touch._replace(moments=True) for touch in touches])
    problem.equations["free"][0, 0] = 5.0  # comes apart
    rows = len(problem.equations)
    work = newton.make_work(problem)
    dof = newton._prepare(problem, 0, rows, work)
    contact, moment = np.arange(0, rows, 2), np.arange(1, rows, 2)
    work.soft[contact], work.soft[moment] = [0.8, 4.0], 2000.0
    work.offset[:] = problem.equations["free"]
    jacobian = np.zeros((rows, 3, dof))
    for i, equation in enumerate(problem.equations):
        for side in ("first", "second"):
            if equation[side] >= 0:
                mover = problem.movers[equation[side]]
                root = np.zeros((6, 6))
                root[:3, :3] = np.sqrt(mover["inverse_mass"]) * np.eye(3)
                root[3:, 3:] = np.linalg.cholesky(mover["inverse_inertia"])
                at = 6 * work.local[equation[side]]
                jacobian[i, :, at : at + 6] += equation[f"jacobian_{side}"] @ root

    def gradient(z: np.ndarray) -> np.ndarray:
        w = (jacobian @ z + problem.equations["free"]).reshape(-1, 6)
        parts = []
        for k, equation in enumerate(problem.equations[contact]):
            more = problem.equations[2 * k + 1]
            laws = np.array([0.8, 4.0, 2000.0, equation["friction"], more["friction"], more["rolling"]])
            parts.append(answer(w[k], laws))
        pushes.append(np.array(parts))
        return z - np.einsum("ikm,ik->m", jacobian, pushes[-1].reshape(-1, 3))

    pushes: list[np.ndarray] = []
    z = 0.1 * np.random.default_rng(2).standard_normal(dof)
    work.state[:] = z
    newton._slope(problem, 0, rows, work, dof)
    newton._hessian(problem, 0, rows, work, dof)
    np.testing.assert_allclose(-work.direction, gradient(z), rtol=0, atol=1e-6)
    r = pushes[0]
    mu, spin, roll = problem.equations["friction"][contact], 1e-2, 2e-2
    pushing = r[:, 0] > 0.0
    for share in (
        np.hypot(r[:, 1], r[:, 2])[pushing] / (mu * r[:, 0])[pushing],
        abs(r[:, 3])[pushing] / (spin * r[:, 0])[pushing],
        np.hypot(r[:, 4], r[:, 5])[pushing] / (roll * r[:, 0])[pushing],
    ):
        assert (share > 1.0 - 1e-9).any() and (share < 0.99).any()
    assert not pushing.all()
    step = 1e-4
    hessian = [(gradient(z + h) - gradient(z - h)) / (2.0 * step) for h in step * np.eye(dof)]
    made_here = np.tril(work.hessian[:dof, :dof])
    made_here += np.tril(made_here, -1).T
    np.testing.assert_allclose(made_here, hessian, rtol=0, atol=1e-3 * np.abs(hessian).max())


@pytest.mark.parametrize(("torsional", "rolling"), [(1e-3, 0.0), (0.0, 1e-3), (1e-3, 1e-3)])
def test_a_falling_stack_is_stopped_at_once_by_newtons_method(torsional, rolling):
    """Ten cubes with four contacts each, of which only those of the lowest one close. Velocities are known to 1e-11 of
    what the impulses at the bottom would make of one cube, ten times its fall."""
    touches = []
    for k in range(10):
        for x, y in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            corner = np.array([x * R, y * R, 0.0])
            arms = (corner - [0, 0, R], corner + [0, 0, R])
            touches.append(Touch(k, k - 1, arms, UP, 0.5, torsional, rolling))
    cubes = [(MASS, MASS * (2 * R) ** 2 / 6 * np.eye(3), fall(np.zeros(6))) for _ in range(10)]
    problem = made(cubes, touches)
    report = run(newton.solve, problem, 6, 1e-11)
    assert report["converged"] == 1
    np.testing.assert_allclose(problem.movers["velocity"], 0.0, rtol=0, atol=1e-11 * 10 * G * TICK / R)
