"""Free bodies over one tick and many: closed forms of rigid body motion, momenta to the bit, energy to rounding."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from rtcore import motion as screws
from rtcore.dynamics import rigid_body as body
from rtcore.dynamics.inertia import body_inertia
from rtcore.spatial import from_rotation_vector, multiply
from rtcore.tables import MOTION, MOVER, POSE

ZERO = (0.0, 0.0, 0.0)
TICK = 1e-3
GRAVITY = (0.0, 0.0, -9.81)


def place(position=ZERO, orientation=(0.0, 0.0, 0.0, 1.0)):
    pose = np.zeros(1, POSE)[0]
    pose["position"] = position
    pose["orientation"] = orientation
    return pose


def start(pose, inertia, linear=ZERO, angular=ZERO):
    velocity = np.zeros(1, body.BODY_VELOCITY)[0]
    body.set_velocity(velocity, pose, inertia, tuple(map(float, linear)), tuple(map(float, angular)))
    return velocity


def drift(pose, velocity, inertia, dt, motion):
    body.tick_motion(motion, velocity, pose, inertia, dt)
    body.follow(pose, velocity, inertia, motion, 1.0)


def record():
    return np.zeros(1, MOTION)[0]


def quaternion(turn):
    return tuple(Rotation.from_rotvec(turn).as_quat().tolist())


def random_inertia(rng, spread=3.0):
    """A body with any principal axes, moments over `spread` decades and the centre of mass anywhere near."""
    parts = 10.0 ** rng.uniform(-spread, 0.0, 3)
    matrix = Rotation.random(rng=rng).as_matrix()
    return body_inertia(1.5, matrix @ np.diag(parts.sum() - parts) @ matrix.T, rng.uniform(-0.2, 0.2, 3).tolist())


def world_inertia(orientation, inertia):
    frame = (Rotation.from_quat(orientation) * Rotation.from_quat(inertia["axes"])).as_matrix()
    return frame @ np.diag(inertia["moments"]) @ frame.T


# Rotation. --------------------------------------------------------------------------------------------------------


def test_dzhanibekov():
    """I = (1, 2, 3), w = (1e-3, 1, 1e-3): the body turns over at 14.9059389 s and every 27.5308406 s after.

    These are quarters and halves of the period of Jacobi's elliptic functions. The momentum stays to the bit.
    """
    inertia = body_inertia(1.0, np.diag([1.0, 2.0, 3.0]))
    pose, motion = place(), record()
    velocity = start(pose, inertia, angular=(1e-3, 1.0, 1e-3))
    momentum = velocity["momentum"].copy()
    energy = body.kinetic_energy(velocity, inertia)[1]
    np.testing.assert_allclose(momentum, [1e-3, 2.0, 3e-3], rtol=1e-15)
    flips, last, worst = [], 1.0, 0.0
    for tick in range(1, 100_001):
        body.free_motion(velocity, pose, inertia, ZERO, ZERO, ZERO, TICK)
        drift(pose, velocity, inertia, TICK, motion)
        middle = Rotation.from_quat(pose["orientation"]).inv().apply(velocity["angular"])[1] if tick % 10 == 0 else None
        if middle is not None:
            if middle * last < 0.0:
                flips.append(10 * TICK * (tick / 10 - 1.0 + last / (last - middle)))
            last = middle
            worst = max(worst, abs(body.kinetic_energy(velocity, inertia)[1] / energy - 1.0))
    np.testing.assert_array_equal(velocity["momentum"], momentum)
    assert worst < 1e-12
    assert len(flips) == 4
    # The zero is found by a line through samples that are 10 ms apart.
    np.testing.assert_allclose(flips, 14.9059389 + 27.5308406 * np.arange(4), rtol=0.0, atol=2e-6)


def test_symmetric_top_is_exact():
    """A body with two equal moments turns by exp(L t / I1) exp(w3 (1 - I3 / I1) t e3): up to a radian in a tick."""
    rng = np.random.default_rng(1)
    for angle in (1e-6, 1e-3, 0.02, 0.2, 1.0):
        inertia = body_inertia(1.0, np.diag([0.3, 0.3, 0.1]))
        orientation = quaternion(rng.normal(size=3))
        angular = rng.normal(size=3)
        angular *= angle / (np.linalg.norm(angular) * TICK)
        start_turn = Rotation.from_quat(orientation)
        axis = start_turn.apply([0.0, 0.0, 1.0])
        momentum = world_inertia(orientation, inertia) @ angular
        own = (angular @ axis) * (1.0 - 0.1 / 0.3)
        end = Rotation.from_rotvec(momentum / 0.3 * TICK) * start_turn * Rotation.from_rotvec([0.0, 0.0, own * TICK])
        turn, after = body.spin(orientation, inertia, tuple(momentum.tolist()), TICK)
        # The rounding of a rotation in each of up to 64 strides; in the velocity it counts by the ratio of the moments.
        assert (end * (Rotation.from_rotvec(turn) * start_turn).inv()).magnitude() < 1e-14
        truth = np.linalg.solve(world_inertia(end.as_quat(), inertia), momentum)
        np.testing.assert_allclose(after, truth, rtol=0.0, atol=1e-14 * np.linalg.norm(momentum) / 0.1)


def test_any_body_against_another_integrator():
    """Euler's equations and the orientation as an ODE in body axes (scipy, DOP853), moments over three decades."""
    rng = np.random.default_rng(2)
    for angle in (0.01, 0.1, 0.5, 2.0):
        for _ in range(4):
            inertia = random_inertia(rng)
            orientation = quaternion(rng.normal(size=3))
            frame = Rotation.from_quat(orientation) * Rotation.from_quat(inertia["axes"])
            moments = inertia["moments"]
            own = rng.normal(size=3)
            own *= angle / np.linalg.norm(own)

            def rate(_, y, moments=moments):
                w, q = y[:3], y[3:]
                turning = 0.5 * np.array(multiply(tuple(q.tolist()), (w[0], w[1], w[2], 0.0)))
                return np.concatenate((np.cross(moments * w, w) / moments, turning))

            found = solve_ivp(
                rate, (0.0, 1.0), np.concatenate((own, [0.0, 0.0, 0.0, 1.0])), "DOP853", rtol=2.5e-14, atol=1e-15
            ).y[:, -1]
            end = frame * Rotation.from_quat(found[3:])
            momentum = tuple(frame.apply(moments * own).tolist())
            turn, after = body.spin(orientation, inertia, momentum, 1.0)
            np.testing.assert_allclose(
                (Rotation.from_rotvec(turn) * frame).as_matrix(), end.as_matrix(), rtol=0.0, atol=2e-13
            )
            slack = 2e-14 * np.linalg.norm(momentum) / moments.min()  # what an orientation off by 2e-14 makes of it
            np.testing.assert_allclose(after, end.apply(found[:3]), rtol=0.0, atol=slack + 2e-13)


def test_energy_is_kept_where_a_tick_holds_many_turns():
    """No screw shows that; the body turns about its momentum, and back."""
    rng = np.random.default_rng(4)
    for angle in (10.0, 1e3, 1e6):
        for _ in range(20):
            inertia = random_inertia(rng)
            orientation = quaternion(rng.normal(size=3))
            angular = rng.normal(size=3)
            angular *= angle / np.linalg.norm(angular)
            momentum = world_inertia(orientation, inertia) @ angular
            turn, after = body.spin(orientation, inertia, tuple(momentum.tolist()), 1.0)
            assert momentum @ after == pytest.approx(momentum @ angular, rel=1e-12)
            assert np.linalg.norm(np.cross(turn, momentum)) < 1e-9 * np.linalg.norm(momentum)
            assert np.linalg.norm(turn) <= np.pi


def test_energy_is_kept_by_any_body_at_any_rate():
    """A tick of up to half a turn changes the energy by rounding only; back in time it ends where it began."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        inertia = random_inertia(rng)
        orientation = quaternion(rng.normal(size=3))
        angular = rng.normal(size=3)
        angular *= rng.uniform(0.0, 3.0) / np.linalg.norm(angular)
        momentum = world_inertia(orientation, inertia) @ angular
        p = tuple(momentum.tolist())
        turn, after = body.spin(orientation, inertia, p, 1.0)
        assert momentum @ after == pytest.approx(momentum @ angular, rel=1e-12)
        end = multiply(from_rotation_vector(turn), orientation)
        back, before = body.spin(end, inertia, p, -1.0)
        lost = Rotation.from_rotvec(back) * Rotation.from_rotvec(turn)
        slack = 1e-14 * np.linalg.norm(momentum) / inertia["moments"].min()  # an orientation off by 1e-14
        assert lost.magnitude() < slack + 1e-13
        np.testing.assert_allclose(before, angular, rtol=0.0, atol=4.0 * slack + 1e-13)


def test_too_fast_for_a_screw():
    """A ball turns at one rate however fast: the screw ends at its orientation the short way, its momentum stays."""
    inertia = body_inertia(1.0, 0.01 * np.eye(3))
    for rate in (3.5e3, 1e4, 1e9):
        pose, motion = place(), record()
        velocity = start(pose, inertia, angular=(0.0, rate, 0.0))
        drift(pose, velocity, inertia, TICK, motion)
        assert motion["angle"] <= math.pi
        truth = Rotation.from_rotvec([0.0, rate * TICK, 0.0])
        assert (truth * Rotation.from_quat(pose["orientation"]).inv()).magnitude() < 1e-15 * rate
        np.testing.assert_allclose(velocity["angular"], [0.0, rate, 0.0], rtol=1e-14)
    plate = body_inertia(1.0, np.diag([1.0, 2.0, 3.0]))
    pose = place()
    velocity = start(pose, plate, angular=(1e200, 1e5, -1e9))
    momentum = velocity["momentum"].copy()
    drift(pose, velocity, plate, TICK, record())
    assert np.all(np.isfinite(pose["orientation"]))
    np.testing.assert_array_equal(velocity["momentum"], momentum)


def top(spin_rate, tilt, precession):
    """A top whose fixed point is its origin, m g l = 0.981 N m, moments about that point."""
    inertia = body_inertia(1.0, np.diag([0.012, 0.012, 0.004]))
    pose = place(orientation=quaternion([tilt, 0.0, 0.0]))
    axis = Rotation.from_quat(pose["orientation"]).apply([0.0, 0.0, 1.0])
    angular = precession * np.array([0.0, 0.0, 1.0]) + (spin_rate - precession * math.cos(tilt)) * axis
    return inertia, pose, start(pose, inertia, angular=angular)


WEIGHT = 0.981


def push(pose, velocity, inertia, dt):
    x, y, _ = Rotation.from_quat(pose["orientation"]).apply([0.0, 0.0, 1.0])
    body.free_motion(velocity, pose, inertia, ZERO, ZERO, (-WEIGHT * y, WEIGHT * x, 0.0), dt)


def tilt_of(pose):
    return math.acos(min(Rotation.from_quat(pose["orientation"]).apply([0.0, 0.0, 1.0])[2], 1.0))


def top_integrals(pose, velocity, inertia):
    axis = Rotation.from_quat(pose["orientation"]).apply([0.0, 0.0, 1.0])
    energy = body.kinetic_energy(velocity, inertia)[1] + WEIGHT * axis[2]
    return np.array([energy, velocity["momentum"][2], velocity["momentum"] @ axis])


def test_heavy_top_precesses_steadily():
    """Steady precession W solves I1 W^2 cos(tilt) - I3 w3 W + m g l = 0; its slow root is nearly m g l / (I3 w3)."""
    rate, tilt = 100.0, 0.5
    slow = brentq(lambda w: 0.012 * w * w * math.cos(tilt) - 0.004 * rate * w + WEIGHT, 0.0, 5.0, xtol=1e-14)
    assert slow == pytest.approx(WEIGHT / (0.004 * rate), rel=0.08)
    inertia, pose, velocity = top(rate, tilt, slow)
    motion = record()
    first = top_integrals(pose, velocity, inertia)
    turned, last = 0.0, math.atan2(-math.sin(tilt), 0.0)
    for _ in range(5000):
        push(pose, velocity, inertia, TICK)
        drift(pose, velocity, inertia, TICK, motion)
        x, y, _ = Rotation.from_quat(pose["orientation"]).apply([0.0, 0.0, 1.0])
        heading = math.atan2(y, x)
        turned += (heading - last + math.pi) % (2.0 * math.pi) - math.pi
        last = heading
        # A kick acts at the start of its tick, half a tick early: the top nods by m g l sin(tilt) dt / (I3 w3).
        assert abs(tilt_of(pose) - tilt) < 1.2 * WEIGHT * math.sin(tilt) * TICK / (0.004 * rate)
    assert turned / 5.0 == pytest.approx(slow, rel=1e-4)
    energy, upright, own = np.abs(top_integrals(pose, velocity, inertia) / first - 1.0)
    assert energy < 1e-5
    assert upright < 1e-14
    assert own < 1e-12


def test_heavy_top_keeps_its_integrals():
    """E, L_z and L_3 to 1e-9: kicks and drifts put together to fourth order show that the drift is exact.

    Let go without precession it nods between two tilts, roots of u^2 - p u + p u0 - 1 = 0 with u = cos(tilt) and
    p = L_3^2 / (2 I1 m g l).
    """
    inertia, pose, velocity = top(60.0, 0.6, 0.0)
    motion = record()
    first = top_integrals(pose, velocity, inertia)
    outer = 1.0 / (2.0 - 2.0 ** (1.0 / 3.0))
    worst = np.zeros(3)
    low, high = 9.0, 0.0
    for _ in range(2000):
        for share in (outer, 1.0 - 2.0 * outer, outer):
            push(pose, velocity, inertia, 0.5 * share * TICK)
            drift(pose, velocity, inertia, share * TICK, motion)
            push(pose, velocity, inertia, 0.5 * share * TICK)
        worst = np.maximum(worst, np.abs(top_integrals(pose, velocity, inertia) / first - 1.0))
        low, high = min(low, tilt_of(pose)), max(high, tilt_of(pose))
    assert np.all(worst < 1e-9)
    ratio = (0.004 * 60.0) ** 2 / (2.0 * 0.012 * WEIGHT)
    lowest = math.acos(0.5 * ratio - math.sqrt(0.25 * ratio**2 - ratio * math.cos(0.6) + 1.0))
    assert low == pytest.approx(0.6, abs=1e-6)
    assert high == pytest.approx(lowest, abs=2e-5)  # between two ticks


@pytest.mark.parametrize("share", [1.05, 0.95])
def test_sleeping_top(share):
    """Upright a top is stable from w3 = 2 sqrt(m g l I1) / I3 on: a tilt grows by 1 / sqrt(1 - 1 / share^2) only."""
    inertia, pose, velocity = top(share * 2.0 * math.sqrt(WEIGHT * 0.012) / 0.004, 1e-3, 0.0)
    motion = record()
    most = 0.0
    for _ in range(4000):
        push(pose, velocity, inertia, TICK)
        drift(pose, velocity, inertia, TICK, motion)
        most = max(most, tilt_of(pose))
    if share > 1.0:
        assert most == pytest.approx(1e-3 / math.sqrt(1.0 - 1.0 / share**2), rel=1e-3)
    else:
        assert most > 0.5


# Kick and linear motion. ------------------------------------------------------------------------------------------


def test_projectile_runs_ahead_by_half_a_tick():
    """x = v t + g t^2 / 2 + g t dt / 2 to rounding; momentum m (v + g t); the rotation does not notice."""
    rng = np.random.default_rng(4)
    inertia = random_inertia(rng)
    pose, motion = place((0.3, -0.2, 1.0), quaternion([0.4, 0.1, -0.7])), record()
    linear = np.array([1.0, -2.0, 3.0])
    velocity = start(pose, inertia, linear, (2.0, -1.0, 0.5))
    centre = np.array(body.centre_of_mass(pose, inertia))
    turning = velocity["momentum"].copy()
    fall = np.array(GRAVITY)
    for tick in range(1, 501):
        body.free_motion(velocity, pose, inertia, GRAVITY, ZERO, ZERO, TICK)
        drift(pose, velocity, inertia, TICK, motion)
        t = tick * TICK
        truth = centre + linear * t + 0.5 * fall * t * t + 0.5 * fall * t * TICK
        np.testing.assert_allclose(body.centre_of_mass(pose, inertia), truth, rtol=0.0, atol=1e-13)
    moved, about_origin = body.momenta(velocity, pose, inertia)
    np.testing.assert_allclose(moved, inertia["mass"] * (linear + fall * t), rtol=1e-13)
    np.testing.assert_array_equal(velocity["momentum"], turning)
    np.testing.assert_allclose(about_origin, turning + np.cross(truth, moved), rtol=1e-12)


def test_energy_of_a_fall_is_off_by_the_bias_only():
    """Kinetic and potential energy: their sum falls by m g^2 t dt / 2 and does nothing else."""
    inertia = body_inertia(2.0, np.eye(3), (0.0, 0.0, 0.1))
    pose, motion = place((0.0, 0.0, 5.0)), record()
    velocity = start(pose, inertia, (0.5, 0.0, 0.0), (0.0, 0.0, 3.0))
    energy = sum(body.kinetic_energy(velocity, inertia)) + body.potential_energy(pose, inertia, GRAVITY)
    assert energy == pytest.approx(0.5 * 2.0 * 0.25 + 0.5 * 9.0 + 2.0 * 9.81 * 5.1, rel=1e-15)
    for _ in range(400):
        body.free_motion(velocity, pose, inertia, GRAVITY, ZERO, ZERO, TICK)
        drift(pose, velocity, inertia, TICK, motion)
    now = sum(body.kinetic_energy(velocity, inertia)) + body.potential_energy(pose, inertia, GRAVITY)
    assert now - energy == pytest.approx(-0.5 * 2.0 * 9.81**2 * 0.4 * TICK, rel=1e-9)


def test_wrench_changes_the_momenta_by_its_impulse():
    rng = np.random.default_rng(5)
    for _ in range(20):
        inertia = random_inertia(rng)
        pose = place(orientation=quaternion(rng.normal(size=3)))
        velocity = start(pose, inertia, rng.normal(size=3), rng.normal(size=3))
        before = velocity.copy()
        force, torque = rng.normal(size=3), rng.normal(size=3)
        body.free_motion(velocity, pose, inertia, ZERO, tuple(force.tolist()), tuple(torque.tolist()), TICK)
        np.testing.assert_allclose(
            inertia["mass"] * (velocity["linear"] - before["linear"]), force * TICK, rtol=0.0, atol=1e-15
        )
        np.testing.assert_array_equal(velocity["momentum"], before["momentum"] + torque * TICK)
        truth = np.linalg.solve(world_inertia(pose["orientation"], inertia), velocity["momentum"])
        np.testing.assert_allclose(velocity["angular"], truth, rtol=0.0, atol=1e-12 * np.abs(truth).max())


def test_drag_slows_as_the_exponential():
    """v exp(-c t / m) and w exp(-d t / I), met to first order in the tick."""
    inertia = body_inertia(2.0, 0.5 * np.eye(3), linear_drag=3.0, angular_drag=1.5)
    errors = []
    for ticks in (500, 1000):
        pose, motion = place(), record()
        velocity = start(pose, inertia, (4.0, 0.0, 0.0), (0.0, 2.0, 0.0))
        for _ in range(ticks):
            body.free_motion(velocity, pose, inertia, ZERO, ZERO, ZERO, 1.0 / ticks)
            drift(pose, velocity, inertia, 1.0 / ticks, motion)
        errors.append((velocity["linear"][0] - 4.0 * math.exp(-1.5), velocity["angular"][1] - 2.0 * math.exp(-3.0)))
    coarse, fine = np.array(errors)
    np.testing.assert_allclose(coarse / fine, 2.0, rtol=5e-3)
    np.testing.assert_allclose(
        fine, 0.5e-3 * np.array([1.5**2 * 4.0 * math.exp(-1.5), 18.0 * math.exp(-3.0)]), rtol=0.01
    )


def test_no_drag_is_too_strong():
    """However strong, it never turns a velocity round, and a fall ends at m g / c exactly."""
    for drag in (1e3, 1e9, 1e300):
        inertia = body_inertia(1.0, np.diag([1.0, 2.0, 2.5]), linear_drag=drag, angular_drag=drag)
        pose, motion = place(orientation=quaternion([0.3, 0.2, 0.1])), record()
        velocity = start(pose, inertia, (1.0, 2.0, 3.0), (3.0, 2.0, 1.0))
        energy = sum(body.kinetic_energy(velocity, inertia))
        for _ in range(60):
            body.free_motion(velocity, pose, inertia, ZERO, ZERO, ZERO, TICK)
            drift(pose, velocity, inertia, TICK, motion)
            now = sum(body.kinetic_energy(velocity, inertia))
            assert now < energy or now == 0.0
            energy = now
        assert energy < 1e-12
    inertia = body_inertia(1.0, np.eye(3), linear_drag=50.0)
    pose = place()
    velocity = start(pose, inertia)
    for _ in range(2000):
        body.free_motion(velocity, pose, inertia, GRAVITY, ZERO, ZERO, TICK)
    assert velocity["linear"][2] == pytest.approx(-9.81 / 50.0, rel=1e-14)


# Contacts and the screw of the tick. ------------------------------------------------------------------------------


def test_mover_is_the_body():
    rng = np.random.default_rng(6)
    for dt in (0.0, TICK):
        inertia = random_inertia(rng)
        pose = place(rng.normal(size=3), quaternion(rng.normal(size=3)))
        velocity = start(pose, inertia, rng.normal(size=3), 5.0 * rng.normal(size=3))
        mover = np.zeros(1, MOVER)[0]
        body.load_mover(mover, velocity, pose, inertia, dt)
        assert mover["inverse_mass"] == 1.0 / inertia["mass"]
        truth = np.linalg.inv(world_inertia(pose["orientation"], inertia))
        np.testing.assert_allclose(mover["inverse_inertia"], truth, rtol=0.0, atol=1e-12 * np.abs(truth).max())
        np.testing.assert_array_equal(mover["velocity"][:3], velocity["linear"])
        motion = record()
        body.tick_motion(motion, velocity, pose, inertia, TICK)
        mean = motion["angle"] * motion["axis"] / TICK
        np.testing.assert_allclose(mover["velocity"][3:], mean if dt else velocity["angular"], rtol=1e-13)


def test_impulses_reach_the_momenta():
    """Two bodies, a million times apart in mass, push one another at a point: no momentum is lost, for both uses."""
    rng = np.random.default_rng(7)
    for dt in (0.0, TICK):
        bodies = []
        point, impulse = rng.normal(size=3), rng.normal(size=3)
        for mass, sign in ((1e-3, 1.0), (1e3, -1.0)):
            inertia = body_inertia(mass, mass * np.diag([0.01, 0.02, 0.025]))
            pose = place(point + 0.1 * rng.normal(size=3), quaternion(rng.normal(size=3)))
            velocity = start(pose, inertia, rng.normal(size=3), rng.normal(size=3))
            mover = np.zeros(1, MOVER)[0]
            body.load_mover(mover, velocity, pose, inertia, dt)
            before = np.concatenate(body.momenta(velocity, pose, inertia))
            mover["velocity"][:3] += mover["inverse_mass"] * sign * impulse
            arm = point - np.array(body.centre_of_mass(pose, inertia))
            mover["velocity"][3:] += mover["inverse_inertia"] @ np.cross(arm, sign * impulse)
            body.store_mover(velocity, mover, pose, inertia)
            bodies.append(np.concatenate(body.momenta(velocity, pose, inertia)) - before)
        truth = np.concatenate((impulse, np.cross(point, impulse)))
        # The rounding of the momenta of the heavy body, about 1e3 kg m/s.
        np.testing.assert_allclose(bodies[0], truth, rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(bodies[1], -truth, rtol=0.0, atol=2e-12)


def test_nothing_pushed_stays_to_the_bit():
    rng = np.random.default_rng(8)
    for dt in (0.0, TICK):
        inertia = random_inertia(rng)
        pose = place(orientation=quaternion(rng.normal(size=3)))
        velocity = start(pose, inertia, rng.normal(size=3), 20.0 * rng.normal(size=3))
        body.free_motion(velocity, pose, inertia, ZERO, ZERO, ZERO, TICK)
        before = velocity.copy()
        mover = np.zeros(1, MOVER)[0]
        body.load_mover(mover, velocity, pose, inertia, dt)
        body.store_mover(velocity, mover, pose, inertia)
        body.free_motion(velocity, pose, inertia, ZERO, ZERO, ZERO, TICK)
        for name in ("linear", "angular", "momentum"):
            assert velocity[name].tobytes() == before[name].tobytes()


def test_screw_of_the_tick():
    """It begins at the pose, turns about the centre of mass and ends at the force-free orientation and velocity."""
    rng = np.random.default_rng(9)
    for angle in (1e-3, 0.1, 2.0):
        inertia = random_inertia(rng)
        pose, motion = place(rng.normal(size=3), quaternion(rng.normal(size=3))), record()
        turning = rng.normal(size=3)
        velocity = start(pose, inertia, rng.normal(size=3), turning * angle / (np.linalg.norm(turning) * TICK))
        centre = np.array(body.centre_of_mass(pose, inertia))
        first = Rotation.from_quat(pose["orientation"])
        turn, after = body.spin(
            tuple(pose["orientation"].tolist()), inertia, tuple(velocity["momentum"].tolist()), TICK
        )
        drift(pose, velocity, inertia, TICK, motion)
        end = Rotation.from_rotvec(turn) * first
        np.testing.assert_allclose(Rotation.from_quat(pose["orientation"]).as_matrix(), end.as_matrix(), atol=1e-14)
        np.testing.assert_allclose(
            body.centre_of_mass(pose, inertia), centre + velocity["linear"] * TICK, rtol=0.0, atol=1e-14
        )
        slack = 1e-14 * np.linalg.norm(velocity["momentum"]) / inertia["moments"].min()
        np.testing.assert_allclose(velocity["angular"], after, rtol=0.0, atol=slack)


def test_tick_cut_short():
    """At u < 1 a body is on its screw, its momenta are to the bit what they were, and it has no more energy."""
    rng = np.random.default_rng(10)
    lost = 0.0
    for _ in range(300):
        inertia = random_inertia(rng, 1.5)
        pose, motion = place(rng.normal(size=3), quaternion(rng.normal(size=3))), record()
        turning = rng.normal(size=3)
        turning *= 10.0 ** rng.uniform(0.0, 2.0) / np.linalg.norm(turning)
        velocity = start(pose, inertia, rng.normal(size=3), turning)
        linear, momentum = velocity["linear"].copy(), velocity["momentum"].copy()
        energy = body.kinetic_energy(velocity, inertia)[1]
        torque = np.cross(momentum, velocity["angular"])
        downhill = torque @ np.linalg.solve(world_inertia(pose["orientation"], inertia), torque)
        body.tick_motion(motion, velocity, pose, inertia, TICK)
        u = rng.uniform()
        position, orientation = screws.pose(motion, u)
        body.follow(pose, velocity, inertia, motion, u)
        np.testing.assert_array_equal(pose["position"], position)
        np.testing.assert_allclose(pose["orientation"], orientation, rtol=0.0, atol=1e-15)
        np.testing.assert_array_equal(velocity["linear"], linear)
        np.testing.assert_array_equal(velocity["momentum"], momentum)
        truth = np.linalg.solve(world_inertia(pose["orientation"], inertia), momentum)
        np.testing.assert_allclose(velocity["angular"], truth, rtol=1e-11)
        change = body.kinetic_energy(velocity, inertia)[1] - energy
        expected = -0.5 * TICK**2 * u * (1.0 - u) * downhill
        # Next order: another turn of the tick by up to 0.1 rad, and rounding.
        assert abs(change - expected) <= 2.0 * np.linalg.norm(turning) * TICK * abs(expected) + 1e-13 * energy
        assert change <= 1e-13 * energy
        lost = max(lost, -change / energy)
    assert lost > 1e-4
