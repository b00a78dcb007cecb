"""Impacts: closed forms of one and of several, the end of bouncing, and no energy from nothing."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rtcore.dynamics import rigid_body as body
from rtcore.dynamics.inertia import body_inertia
from rtcore.dynamics.restitution import (
    IMPACT,
    begin_impacts,
    kinetic_energy_change,
    limit_rebound,
    pair_restitution,
    want_rebound,
)
from rtcore.solvers.problem import (
    apply_impulses,
    assemble,
    delassus,
    free_velocity,
    make_problem,
    project_cone,
    relative_velocity,
)
from rtcore.tables import MOTION, POSE

UP = np.array([0.0, 0.0, 1.0])
GRAVITY = (0.0, 0.0, -9.81)
TICK = 1e-3


def problem_of(masses, tensors, velocities, contacts):
    """A contact problem; contacts: (mover pushed along n, the one pushed against n or -1, arms, normal, friction)."""
    count = len(contacts)
    problem = make_problem(len(masses), count, count * count)
    problem.size["movers"] = len(masses)
    problem.size["contacts"] = count
    for mover, mass, tensor, velocity in zip(problem.movers, masses, tensors, velocities, strict=True):
        mover["velocity"] = velocity
        mover["inverse_mass"] = 1.0 / mass
        mover["inverse_inertia"] = np.linalg.inv(tensor)
    for equation, (first, second, arms, normal, friction) in zip(problem.equations, contacts, strict=True):
        side = np.eye(3)[np.argmin(np.abs(normal))]
        tangent = np.cross(normal, side) / np.linalg.norm(np.cross(normal, side))
        axes = np.array([normal, tangent, np.cross(normal, tangent)])
        equation["first"], equation["second"] = first, second
        equation["jacobian_first"] = np.hstack((axes, np.cross(arms[0], axes)))
        if second >= 0:
            equation["jacobian_second"] = -np.hstack((axes, np.cross(arms[1], axes)))
        equation["friction"] = friction
    assemble(problem)
    assert problem.size["incomplete"][0] == 0
    return problem


def impacts_of(problem, restitution, rest_speed=0.0):
    impacts = np.zeros(len(problem.equations), IMPACT)
    impacts["restitution"] = restitution
    impacts["rest_speed"] = rest_speed
    return impacts


def solve(problem, sweeps=20_000, tolerance=1e-13):
    """Coulomb's law of all contacts by projections on the cone, contact after contact, until nothing changes."""
    count = len(problem.equations)
    matrix = delassus(problem)
    free = problem.equations["free"].ravel()
    friction = problem.equations["friction"]
    impulse = problem.equations["impulse"].ravel().copy()
    steps = [1.0 / np.linalg.eigvalsh(matrix[3 * i : 3 * i + 3, 3 * i : 3 * i + 3])[-1] for i in range(count)]
    for _ in range(sweeps):
        change = 0.0
        for i in range(count):
            rows = slice(3 * i, 3 * i + 3)
            u = matrix[rows] @ impulse + free[rows]
            u[0] += friction[i] * math.hypot(u[1], u[2])
            new = np.array(project_cone(*(impulse[rows] - steps[i] * u).tolist(), friction[i]))
            change = max(change, np.abs(new - impulse[rows]).max())
            impulse[rows] = new
        if change <= tolerance * max(np.abs(impulse).max(), 1e-300):
            break
    problem.equations["impulse"] = impulse.reshape(-1, 3)
    relative_velocity(problem, 0, count)


def kinetic_energy(problem):
    total = 0.0
    for mover in problem.movers:
        v, w = mover["velocity"][:3], mover["velocity"][3:]
        total += 0.5 * v @ v / mover["inverse_mass"] + 0.5 * w @ np.linalg.solve(mover["inverse_inertia"], w)
    return total


def collide(problem, impacts):
    """All stages of an impact; returns (share, factor), the impulses are not yet applied."""
    count = len(problem.equations)
    bounces = begin_impacts(problem, impacts, 0, count)
    problem.equations["free"] = 0.0
    free_velocity(problem)
    solve(problem)
    if bounces == 0:
        return 1.0, 1.0
    want_rebound(problem, impacts, 0, count)
    solve(problem)
    return limit_rebound(problem, impacts, 0, count)


def normal_velocities(problem):
    """Of the movers as they are, by the Jacobians."""
    found = []
    for equation in problem.equations:
        speed = equation["jacobian_first"][0] @ problem.movers[equation["first"]]["velocity"]
        if equation["second"] >= 0:
            speed += equation["jacobian_second"][0] @ problem.movers[equation["second"]]["velocity"]
        found.append(speed)
    return np.array(found)


def ball_on_ground(speed, restitution, rest_speed):
    problem = problem_of([2.0], [np.eye(3)], [[0.3, 0.0, speed, 0, 0, 0]], [(0, -1, (np.zeros(3),), UP, 0.0)])
    return problem, impacts_of(problem, restitution, rest_speed)


@pytest.mark.parametrize(
    ("speed", "restitution", "rest_speed", "after"),
    [
        (-2.0, 0.5, 0.02, 1.0),
        (-2.0, 1.0, 0.02, 2.0),
        (-2.0, 0.0, 0.02, 0.0),
        (-0.02, 0.5, 0.02, 0.01),
        (-0.0199, 0.5, 0.02, 0.0),  # comes to rest
        (0.0, 0.5, 0.0, 0.0),
        (3.0, 0.5, 0.02, 3.0),  # opens and goes on
    ],
)
def test_one_contact(speed, restitution, rest_speed, after):
    problem, impacts = ball_on_ground(speed, restitution, rest_speed)
    assert collide(problem, impacts) == (1.0, 1.0)
    apply_impulses(problem, 0, 1)
    np.testing.assert_allclose(problem.movers["velocity"][0], [0.3, 0, after, 0, 0, 0], rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("restitution", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("ratio", [1.0, 1e6])
def test_two_balls(restitution, ratio):
    """v' = v_common -+ e m_other / (m1 + m2) times the speed of approach; momentum and (1 - e^2) of the energy."""
    v1, v2, m2 = 1.0, -2.0, ratio
    arms = (np.array([0.1, 0.0, 0.0]), np.array([-0.1, 0.0, 0.0]))
    # The normal points from the second to the first.
    problem = problem_of(
        [1.0, m2],
        [0.01 * np.eye(3), 0.01 * m2 * np.eye(3)],
        [[v1, 0, 0, 0, 0, 0], [v2, 0, 0, 0, 0, 0]],
        [(0, 1, arms, np.array([-1.0, 0.0, 0.0]), 0.5)],
    )
    before = kinetic_energy(problem)
    share, factor = collide(problem, impacts_of(problem, restitution))
    assert share == pytest.approx(1.0, abs=1e-9)
    assert factor == 1.0
    change = kinetic_energy_change(problem, 0, 1)
    apply_impulses(problem, 0, 1)
    common = (v1 + m2 * v2) / (1.0 + m2)
    found = problem.movers["velocity"][:, 0]
    np.testing.assert_allclose(
        found, [common - restitution * m2 / (1 + m2) * 3.0, common + restitution / (1 + m2) * 3.0], rtol=1e-11
    )
    lost = 0.5 * m2 / (1.0 + m2) * 9.0 * (1.0 - restitution**2)
    assert change == pytest.approx(-lost, rel=1e-9, abs=1e-9)
    assert kinetic_energy(problem) <= before * (1.0 + 1e-15)


def test_row_of_balls_at_once():
    """All contacts at one instant with Newton's rule: a ball at speed 1 against two at rest leaves -1/3, 2/3, 2/3.

    Rigid bodies do not fix the outcome of a cradle; pairs one after the other would leave 0, 0, 1. Both keep momentum
    and energy.
    """
    arms = (np.array([-0.1, 0.0, 0.0]), np.array([0.1, 0.0, 0.0]))
    along = np.array([1.0, 0.0, 0.0])
    problem = problem_of(
        [1.0] * 3,
        [0.01 * np.eye(3)] * 3,
        [[1.0, 0, 0, 0, 0, 0], np.zeros(6), np.zeros(6)],
        [(1, 0, arms, along, 0.0), (2, 1, arms, along, 0.0)],
    )
    share, _ = collide(problem, impacts_of(problem, 1.0))
    assert share == pytest.approx(1.0, abs=1e-9)
    apply_impulses(problem, 0, 2)
    np.testing.assert_allclose(problem.movers["velocity"][:, 0], [-1 / 3, 2 / 3, 2 / 3], rtol=1e-9)


def test_opening_contact_does_not_close():
    """One end of a rod comes down, the other goes up. As a bound -e times its velocity would let it come down, too."""
    left, right = np.array([-0.5, 0.0, 0.0]), np.array([0.5, 0.0, 0.0])
    tensor = np.diag([0.01, 0.08, 0.08])  # a push at one end throws the other one down: 1 / m < (l / 2)^2 / I
    problem = problem_of(
        [1.0],
        [tensor],
        [[0.0, 0.0, -0.45, 0.0, -1.1, 0.0]],
        [(0, -1, (left,), UP, 0.0), (0, -1, (right,), UP, 0.0)],
    )
    np.testing.assert_allclose(normal_velocities(problem), [-1.0, 0.1], rtol=1e-12)
    impacts = impacts_of(problem, 0.8)
    assert begin_impacts(problem, impacts, 0, 2) == 1
    np.testing.assert_allclose(impacts["wanted"], [0.8, 0.0], rtol=1e-12)
    alone = problem_of([1.0], [tensor], problem.movers["velocity"], [(0, -1, (left,), UP, 0.0)])
    collide(alone, impacts_of(alone, 0.8))
    apply_impulses(alone, 0, 1)
    pushed = alone.movers["velocity"][0]
    assert pushed[2] - pushed[4] * 0.5 < 0.1  # the push does act against the other end
    share, factor = collide(problem, impacts)
    apply_impulses(problem, 0, 2)
    assert (share, factor) == (1.0, 1.0)
    assert np.all(normal_velocities(problem) >= [0.8 - 1e-12, -1e-12])


def test_two_contacts_come_down_together():
    """A rod falls flat: both ends rebound with e, and it does not begin to turn."""
    ends = [np.array([-0.5, 0.0, 0.0]), np.array([0.5, 0.0, 0.0])]
    problem = problem_of(
        [1.0],
        [np.diag([0.01, 0.08, 0.08])],
        [[0.0, 0.0, -2.0, 0.0, 0.0, 0.0]],
        [(0, -1, (end,), UP, 0.3) for end in ends],
    )
    assert collide(problem, impacts_of(problem, 0.25)) == (1.0, 1.0)
    apply_impulses(problem, 0, 2)
    np.testing.assert_allclose(problem.movers["velocity"][0], [0, 0, 0.5, 0, 0, 0], rtol=0.0, atol=1e-12)


def test_racket_may_do_work():
    """What is moved from outside (no inverse mass) hits a ball at rest: it leaves at (1 + e) v, which is no gain."""
    arms = (np.zeros(3), np.zeros(3))
    problem = problem_of(
        [0.5, math.inf],
        [0.01 * np.eye(3), np.eye(3)],
        [np.zeros(6), [0, 0, 3.0, 0, 0, 0]],
        [(0, 1, arms, UP, 0.4)],
    )
    problem.movers[1]["inverse_inertia"] = 0.0
    assemble(problem)
    share, factor = collide(problem, impacts_of(problem, 0.6))
    apply_impulses(problem, 0, 1)
    assert (share, factor) == (1.0, 1.0)
    np.testing.assert_allclose(problem.movers["velocity"][:, 2], [1.6 * 3.0, 3.0], rtol=1e-12)


# Energy. ----------------------------------------------------------------------------------------------------------


def random_problem(rng, count):
    """A body with sharp inertia that meets the ground at several points of its hull, or two that also meet."""
    movers = int(rng.integers(1, 3))
    tensors = []
    for _ in range(movers):
        parts = 10.0 ** rng.uniform(-2.5, -0.5, 3)
        matrix = Rotation.random(rng=rng).as_matrix()
        tensors.append(matrix @ np.diag(parts.sum() - parts) @ matrix.T)
    velocities = rng.normal(size=(movers, 6)) * [1, 1, 1, 3, 3, 3]
    velocities[:, 2] -= 1.0
    contacts = []
    for i in range(count):
        first = int(rng.integers(movers))
        second = 1 - first if movers == 2 and i == 0 else -1
        normal = UP if second < 0 else Rotation.random(rng=rng).apply(UP)
        arms = tuple(rng.uniform(-0.5, 0.5, 3) for _ in range(2))
        contacts.append((first, second, arms, normal, rng.uniform(0.3, 1.0)))
    return problem_of(10.0 ** rng.uniform(-1.0, 1.0, movers), tensors, velocities, contacts)


def test_energy_change_is_what_the_movers_show():
    """Any impulses, any wanted velocities, compliance: the sum over contacts is the difference of kinetic energies."""
    rng = np.random.default_rng(11)
    for _ in range(20):
        problem = random_problem(rng, 3)
        problem.equations["compliance"] = rng.uniform(0.0, 2.0, (3, 3))
        assemble(problem)
        problem.equations["free"] = rng.normal(size=(3, 3))
        free_velocity(problem)
        problem.equations["impulse"] = rng.normal(size=(3, 3))
        relative_velocity(problem, 0, 3)
        before = kinetic_energy(problem)
        change = kinetic_energy_change(problem, 0, 3)
        apply_impulses(problem, 0, 3)
        now = kinetic_energy(problem)
        assert now - before == pytest.approx(change, abs=1e-12 * (now + before))


def leaning_rod(slip, friction=0.5):
    """A rod of 1 m and 1 kg that leans by 55 degrees and meets the ground at 1 m/s, its tip slipping along x."""
    lean, moment = math.radians(55.0), 1.0 / 12.0
    arm = 0.5 * np.array([math.cos(lean), 0.0, -math.sin(lean)])
    problem = problem_of(
        [1.0], [np.diag([moment] * 3)], [[slip, 0.0, -1.0, 0.0, 0.0, 0.0]], [(0, -1, (arm,), UP, friction)]
    )
    operator = np.eye(2) + np.array([[arm[0] ** 2, -arm[0] * arm[2]], [-arm[0] * arm[2], arm[2] ** 2]]) / moment
    return problem, operator


def test_rod_with_friction_gains_no_energy():
    """Kane's paradox: a rod meets rough ground, sticks, and by Newton's rule alone leaves with more energy than it had.

    By hand: it sticks, so that the impulse is r = A^-1 (-(1 + e) u_n, -u_t), inside the cone.
    """
    slip, restitution = -0.7, 0.9
    problem, operator = leaning_rod(slip)
    by_hand = np.linalg.solve(operator, [1.0 + restitution, -slip])
    assert abs(by_hand[1]) < 0.5 * by_hand[0]
    gain = by_hand @ [-1.0, slip] + 0.5 * by_hand @ operator @ by_hand
    assert gain > 0.05  # of 0.745 J

    impacts = impacts_of(problem, restitution)
    assert begin_impacts(problem, impacts, 0, 1) == 1
    free_velocity(problem)
    solve(problem)
    soft = problem.equations["impulse"][0].copy()
    assert kinetic_energy_change(problem, 0, 1) < -0.1
    want_rebound(problem, impacts, 0, 1)
    solve(problem)
    hard = problem.equations["impulse"][0].copy()
    assert hard[0] == pytest.approx(by_hand[0], rel=1e-9)
    assert kinetic_energy_change(problem, 0, 1) == pytest.approx(gain, rel=1e-9)

    share, factor = limit_rebound(problem, impacts, 0, 1)
    assert 0.5 < share < 1.0
    assert factor == 1.0
    impulse = problem.equations["impulse"][0]
    np.testing.assert_allclose(impulse, soft + share * (hard - soft), rtol=1e-15)
    before = kinetic_energy(problem)
    assert kinetic_energy_change(problem, 0, 1) == pytest.approx(0.0, abs=1e-12)  # no more is taken than must be
    apply_impulses(problem, 0, 1)
    assert kinetic_energy(problem) <= before
    assert normal_velocities(problem)[0] == pytest.approx(share * restitution, rel=1e-9)


def test_what_gains_nothing_is_left_alone():
    problem, _ = leaning_rod(0.7)
    impacts = impacts_of(problem, 0.9)
    begin_impacts(problem, impacts, 0, 1)
    free_velocity(problem)
    solve(problem)
    want_rebound(problem, impacts, 0, 1)
    solve(problem)
    assert kinetic_energy_change(problem, 0, 1) < 0.0
    before = problem.equations.copy()
    assert limit_rebound(problem, impacts, 0, 1) == (1.0, 1.0)
    assert problem.equations.tobytes() == before.tobytes()


def test_no_impact_gains_energy():
    """Random bodies at one to four contacts with friction, where Newton's rule alone often does.

    Impulses stay in their cones and nothing closes afterwards.
    """
    rng = np.random.default_rng(12)
    gained = cut = 0
    for _ in range(120):
        count = int(rng.integers(1, 5))
        problem = random_problem(rng, count)
        impacts = impacts_of(problem, rng.uniform(0.8, 1.0, count))
        bounces = begin_impacts(problem, impacts, 0, count)
        free_velocity(problem)
        solve(problem, 3000, 1e-12)
        assert kinetic_energy_change(problem, 0, count) <= 0.0
        if bounces == 0:
            continue
        want_rebound(problem, impacts, 0, count)
        solve(problem, 3000, 1e-12)
        gained += kinetic_energy_change(problem, 0, count) > 1e-6
        share, factor = limit_rebound(problem, impacts, 0, count)
        assert factor == 1.0
        cut += share < 1.0 - 1e-6
        impulses = problem.equations["impulse"]
        push = np.linalg.norm(impulses[:, 1:], axis=1)
        assert np.all(push <= problem.equations["friction"] * impulses[:, 0] * (1.0 + 1e-14) + 1e-15)
        before = kinetic_energy(problem)
        apply_impulses(problem, 0, count)
        assert kinetic_energy(problem) <= before * (1.0 + 4e-16)
        assert np.all(normal_velocities(problem) >= -1e-6)  # what the iteration above leaves of slow problems
    assert gained >= 5
    assert cut >= gained


def test_answer_of_a_solver_stopped_early():
    """Impulses many times too strong add energy even without restitution: they are scaled down until they do not."""
    rng = np.random.default_rng(13)
    strong = 0
    for _ in range(20):
        problem = random_problem(rng, 3)
        impacts = impacts_of(problem, 0.5)
        begin_impacts(problem, impacts, 0, 3)
        free_velocity(problem)
        solve(problem, 200, 1e-9)
        problem.equations["impulse"] *= 7.0
        relative_velocity(problem, 0, 3)
        if kinetic_energy_change(problem, 0, 3) <= 0.0:
            continue
        strong += 1
        want_rebound(problem, impacts, 0, 3)
        share, factor = limit_rebound(problem, impacts, 0, 3)
        before = kinetic_energy(problem)
        apply_impulses(problem, 0, 3)
        assert share == 0.0
        assert 0.0 < factor < 1.0
        assert kinetic_energy(problem) == pytest.approx(before, rel=1e-12)
        assert kinetic_energy(problem) <= before * (1.0 + 4e-16)
    assert strong >= 10


def bounce(tick, restitution, seconds):
    """Let a ball of 2 kg fall from 1 m; yields (height, velocity upwards, in contact, rebounds) after each tick.

    A tick ends at the contact that cuts it short, the kick of the part that is not executed is taken back, and the rest
    of the tick is lost.
    """
    rest_speed = 2.0 * 9.81 * tick
    inertia = body_inertia(2.0, np.eye(3), restitution=restitution, rest_speed=rest_speed)
    pose, velocity, motion = np.zeros(1, POSE)[0], np.zeros(1, body.BODY_VELOCITY)[0], np.zeros(1, MOTION)[0]
    pose["position"] = (0.0, 0.0, 1.0)
    pose["orientation"] = (0.0, 0.0, 0.0, 1.0)
    zero = (0.0, 0.0, 0.0)
    body.set_velocity(velocity, pose, inertia, zero, zero)
    problem, impacts = ball_on_ground(0.0, restitution, rest_speed)
    equation = problem.equations[0]
    for _ in range(round(seconds / tick)):
        before = velocity["linear"].copy()
        body.free_motion(velocity, pose, inertia, GRAVITY, zero, zero, tick)
        body.tick_motion(motion, velocity, pose, inertia, tick)
        height, fall = pose["position"][2], -motion["shift"][2]
        u = min(max(height / fall, 0.0), 1.0) if fall > 0.0 else 1.0
        body.follow(pose, velocity, inertia, motion, u)
        count = 0
        if u < 1.0:
            velocity["linear"] = before + u * (velocity["linear"] - before)
            body.load_mover(problem.movers[0], velocity, pose, inertia, 0.0)
            count = begin_impacts(problem, impacts, 0, 1)
            equation["free"] = 0.0
            free_velocity(problem)
            equation["impulse"][0] = 2.0 * max(-equation["free"][0], 0.0)
            relative_velocity(problem, 0, 1)
            if count:
                want_rebound(problem, impacts, 0, 1)
                equation["impulse"][0] = -2.0 * equation["free"][0]
                relative_velocity(problem, 0, 1)
                share, factor = limit_rebound(problem, impacts, 0, 1)
                assert share == pytest.approx(1.0, abs=1e-12)
                assert factor == 1.0
            apply_impulses(problem, 0, 1)
            body.store_mover(velocity, problem.movers[0], pose, inertia)
        yield pose["position"][2], velocity["linear"][2], u < 1.0, count


@pytest.mark.parametrize("tick", [1e-3, 1e-4])
def test_bouncing_ends_in_time(tick):
    """A ball dropped from 1 m with e = 1/2 lies still from sqrt(2 h / g) (1 + e) / (1 - e) = 1.3545709 s on.

    Each bounce is late by up to a tick. Symplectic Euler, which runs ahead by g t dt / 2, shortens each flight by a
    tick and ends it slower by g dt, which shortens all later ones by 2 dt / (1 - e) in sum.
    """
    restitution = 0.5
    rested, bounces, peaks, last = None, 0, [], 0.0
    for step, (height, speed, touching, count) in enumerate(bounce(tick, restitution, 2.0)):
        bounces += count
        if rested is not None:
            assert touching  # after that it stays closed
            assert (count, speed) == (0, 0.0)
            assert abs(height) < 1e-15
        elif touching and count == 0:
            rested = step * tick
        if last > 0.0 >= speed:
            peaks.append(height)
        last = speed
    assert bounces >= 6
    assert -(2.0 / (1.0 - restitution) + 1.0) * bounces * tick < rested - 1.3545709 < bounces * tick
    missing = math.sqrt(2.0 * 9.81) * tick * 0.5 * (restitution + restitution**2)  # of the scheme, down and up
    assert peaks[0] == pytest.approx(restitution**2 - missing, abs=0.2 * missing)


def test_elastic_ball_gains_no_energy():
    """At e = 1 no tick adds energy: in flight symplectic Euler takes g^2 dt^2 / 2 of it per kg, an impact no more than
    what it cuts short."""
    last = 9.81
    impacts = 0
    for height, speed, touching, count in bounce(TICK, 1.0, 10.0):
        energy = 0.5 * speed**2 + 9.81 * height
        loss = 0.5 * (9.81 * TICK) ** 2
        if not touching:
            assert last - energy == pytest.approx(loss, abs=1e-14)
        assert -1e-14 < last - energy < loss + 1e-14
        last = energy
        impacts += count
    assert impacts >= 10


def test_pair_takes_the_livelier_body():
    for first, second in itertools.product((0.0, 0.4, 1.0), repeat=2):
        assert pair_restitution(first, second) == max(first, second)
