"""Bodies that move in the tick: rest, fall, impact, piles, pushes; judged by mechanics and by exact distances."""

import math

import numpy as np
import pytest
from bodies_rig import GRAVITY, Bodies
from closed_meshes import box
from mesh_tool_rig import EPS
from scipy.spatial.transform import Rotation

from rtcore.tables import DEGRADED_CONTACTS, DEGRADED_SWEEP, KINEMATIC

DT = 1e-3
HALF = 0.02
SAFETY = EPS[1]


def cube(half: float = HALF):
    return box((half,) * 3)


def resting(mass: float = 1.0, **more) -> tuple[Bodies, int]:
    """A cube on the floor, at the distance that is kept."""
    rig = Bodies()
    rig.floor()
    body = rig.add(cube(), (0.0, 0.0, HALF + SAFETY), mass=mass, **more)
    return rig.build(), body


def test_what_rests_stays_and_is_carried_by_its_weight():
    rig, body = resting(mass=2.0)
    start = rig.place(body)
    rig.go(1000)
    assert np.abs(rig.place(body) - start).max() < 1e-10
    pushes = sum(rig.state.pairs.rows[0]["contacts"]["push"][i] for i in range(rig.state.pairs.rows[0]["count"]))
    assert pushes == pytest.approx([0.0, 0.0, 2.0 * GRAVITY * DT], abs=1e-9)
    assert rig.report["body_contacts"] == rig.report["asleep"] == 4
    assert rig.report["degraded"] == 0


def test_a_fall_is_a_parabola_and_ends_at_the_distance_kept():
    rig = Bodies()
    rig.floor()
    body = rig.add(cube(), (0.0, 0.0, HALF + 0.01), mass=0.5)
    rig.build()
    for k in range(1, 40):
        rig.go()
        assert rig.place(body)[2] == pytest.approx(HALF + 0.01 - GRAVITY * (DT * k) ** 2 / 2, abs=1e-14)
    rig.go(300)
    assert rig.place(body)[2] == pytest.approx(HALF + SAFETY, abs=1e-9)
    assert not rig.faults()


def test_a_spinning_body_in_flight_keeps_its_momenta_to_the_bit():
    rig = Bodies(gravity=0.0)
    body = rig.add(box((0.01, 0.02, 0.04)), (0.0, 0.0, 0.0), mass=0.3, velocity=(0.1, -0.2, 0.05, 3.0, 20.0, -7.0))
    rig.build()
    momentum = rig.state.velocities["momentum"][body].copy()
    energy = rig.energy()
    rig.go(2000)
    assert np.array_equal(rig.state.velocities["momentum"][body], momentum)
    assert rig.place(body) == pytest.approx([0.2, -0.4, 0.1], abs=1e-12)
    assert rig.energy() == pytest.approx(energy, rel=1e-9)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.9])
def test_a_cube_bounces_by_newtons_law(restitution):
    """Of a fall of h it comes back to e^2 h, up to what it does within a step about the top. It lands between the two
    distances: what falls by more than eps_break in a step is first stopped at eps_alert.
    """
    rig = Bodies()
    rig.floor(restitution=restitution)
    body = rig.add(cube(), (0.0, 0.0, HALF + 0.05), mass=0.5)
    rig.build()
    rig.go(101)  # it lands after sqrt(2 h / g) = 101 ms
    while rig.speed(body)[2] < 0.0:
        rig.go()
    after = rig.speed(body)[2]
    fall = 0.05 - SAFETY
    assert after == pytest.approx(restitution * math.sqrt(2.0 * GRAVITY * fall), abs=GRAVITY * DT)
    top = 0.0
    for _ in range(200):
        rig.go()
        top = max(top, rig.place(body)[2] - HALF)
        if rig.speed(body)[2] <= 0.0:
            break
    lower = (1.0 - restitution**2) * (SAFETY - EPS[0])
    assert top == pytest.approx(restitution**2 * fall + SAFETY, abs=GRAVITY * DT**2 / 8 + lower)


@pytest.mark.parametrize("top", [1.0, 1000.0])
def test_a_tower_with_a_heavy_top_does_not_sink(top):
    rig = Bodies()
    rig.floor()
    bodies = []
    for k in range(10):
        z = HALF + SAFETY + k * (2.0 * HALF + SAFETY)
        bodies.append(rig.add(cube(), (0.0, 0.0, z), mass=top if k == 9 else 1.0))
    rig.build()
    starts = [rig.place(body) for body in bodies]
    rig.go(1000)
    moved = [np.abs(rig.place(body) - start).max() for body, start in zip(bodies, starts, strict=True)]
    assert max(moved) < 2e-8, "a thousandth of the 0.02 mm that is asked for"
    assert rig.report["body_residual"] < 1e-9


def pile(seed: int, count: int, restitution: float = 0.0) -> Bodies:
    generator = np.random.default_rng(seed)
    rig = Bodies(eps=(2e-5, 5e-5, 1.5e-4))
    rig.floor(restitution=restitution)
    for k in range(count):
        half = tuple(generator.uniform(0.012, 0.028, 3))
        place = (*generator.uniform(-0.03, 0.03, 2), 0.06 + 0.1 * k)
        turn = Rotation.random(random_state=int(generator.integers(1 << 30))).as_quat()
        rig.add(box(half), place, turn, mass=8e3 * half[0] * half[1] * half[2], restitution=restitution)
    return rig.build()


PILES = [(0, 8, 0.0), (2, 8, 0.6), (5, 8, 0.0), (3, 20, 0.0), (7, 20, 0.0), (11, 20, 0.3)]


@pytest.mark.parametrize(("seed", "count", "restitution"), PILES)
def test_a_pile_never_gains_energy_nor_meets_nor_stops_in_the_air(seed, count, restitution):
    """What the position pass lifts is all that there may be: in a step less than m g (eps_safety - eps_alert), and
    next to nothing of what the pile begins with in all.
    """
    rig = pile(seed, count, restitution)
    lift = sum(rig.masses) * GRAVITY * (rig.eps[1] - rig.eps[0])
    first = energy = rig.energy()
    gained = 0.0
    still = 0
    for k in range(1600):
        rig.go()
        now = rig.energy()
        assert now == pytest.approx(rig.report["energy"], abs=1e-12)
        assert now <= energy + lift, k
        gained += max(now - energy, 0.0)
        energy = now
        assert rig.report["degraded"] & (DEGRADED_SWEEP | DEGRADED_CONTACTS) == 0
        still = still + 1 if rig.report["body_fraction"] < 1e-3 else 0
        assert still < 5, f"stopped for ever in step {k}"
        if k % 100 == 0:
            assert not rig.faults()
    assert not rig.faults()
    assert gained < 1e-4 * first
    assert max(np.linalg.norm(rig.speed(i)) for i in rig.moving) < 1.0


def test_the_same_pile_gives_the_same_bits():
    one, two = pile(3, 5).go(500), pile(3, 5).go(500)
    assert one.bits == two.bits
    assert one.report["bodies_digest"] != 0


def test_a_tool_pushes_a_cube_with_the_force_of_its_friction():
    rig = Bodies(tool=cube(), start=(-0.1, 0.0, 3.0 * HALF))
    rig.floor(friction=0.25)
    body = rig.add(cube(2.0 * HALF), (0.0, 0.0, 2.0 * HALF + SAFETY), mass=1.0, friction=0.25)
    rig.build()
    rig.hold(2000.0)
    forces = []
    for k in range(3000):
        rig.aim((-0.1 + 1e-4 * k, 0.0, 3.0 * HALF))
        rig.go()
        forces.append(2000.0 * (rig.input["goal_position"][0] - rig.state.proxy["position"][0])[0])
    assert rig.place(body)[0] == pytest.approx(-0.1 + 0.3 + 3.0 * HALF, abs=2e-3)
    assert not rig.faults()
    # What drives it and what brakes it are equal in the mean, up to the speed that it has at either end.
    assert np.mean(forces[1000:]) == pytest.approx(0.25 * GRAVITY, rel=0.05)


def test_a_tool_that_nobody_holds_is_as_good_as_fixed():
    rig = Bodies(tool=cube(), start=(0.0, 0.0, HALF))
    body = rig.add(cube(), (0.0, 0.0, 3.0 * HALF + SAFETY), mass=5.0)
    rig.build()
    rig.go(500)
    assert np.array_equal(rig.state.proxy["position"][0], (0.0, 0.0, HALF))
    assert rig.place(body)[2] == pytest.approx(3.0 * HALF + SAFETY, abs=1e-9)


def test_what_is_carried_by_a_held_tool_weighs_on_its_spring():
    rig = Bodies(tool=box((0.1, 0.1, 0.01)), start=(0.0, 0.0, 0.0))
    rig.add(cube(), (0.0, 0.0, 0.01 + HALF + SAFETY), mass=0.4)
    rig.build()
    rig.hold(1000.0, 5.0)
    rig.go(14000)  # without a damper it swings: implicit Euler alone takes its energy
    assert rig.state.proxy["position"][0, 2] == pytest.approx(-0.4 * GRAVITY / 1000.0, rel=1e-4)


def test_a_tool_with_mass_swings_at_the_frequency_of_its_spring():
    from rtcore.dynamics.inertia import body_inertia

    inertia = body_inertia(0.5, np.diag([1e-4, 1e-4, 1e-4]))
    rig = Bodies(tool=cube(), start=(0.0, 0.0, 1.0), tool_inertia=inertia).build()
    stiffness, damping = 200.0, 4.0
    rig.hold(stiffness, 1.0, damping)
    rig.aim((0.01, 0.0, 1.0))
    # Implicit Euler: (m + k dt^2 + b dt) v' = m v + dt k (goal - x).
    x, v = 0.0, 0.0
    for _ in range(400):
        v = (0.5 * v + DT * stiffness * (0.01 - x)) / (0.5 + stiffness * DT**2 + damping * DT)
        x += DT * v
        rig.go()
        assert rig.state.proxy["position"][0, 0] == pytest.approx(x, abs=1e-12)


def test_a_kinematic_body_pushes_and_waits_where_it_is_blocked():
    rig = Bodies()
    rig.floor()
    wall = rig.add(box((0.01, 0.1, 0.1)), (0.15, 0.0, 0.1 + SAFETY))
    pusher = rig.add(cube(), (-0.1, 0.0, HALF + 1e-3), velocity=(0.2, 0.0, 0.0, 0.0, 0.0, 0.0), kind=KINEMATIC)
    body = rig.add(cube(), (0.0, 0.0, HALF + SAFETY), mass=1.0)
    rig.build()
    rig.go(500)
    assert rig.place(pusher)[0] == pytest.approx(-0.1 + 0.2 * 0.5, abs=2.01e-4)  # it may wait for a step at first touch
    assert rig.place(body)[0] == pytest.approx(rig.place(pusher)[0] + 2.0 * HALF + SAFETY, abs=2e-5)
    rig.go(1500)
    assert rig.place(body)[0] <= rig.place(wall)[0] - 0.01 - HALF - EPS[0] * (1.0 - 1e-6)
    assert not rig.faults()
    assert rig.report["stopped"] > 0 and rig.report["body_fraction"] < 1.0


def test_a_body_that_is_stopped_early_keeps_no_kick_that_its_way_did_not_pay_for():
    """A slab falls onto a floor at 20 m/s with e = 1 and low budgets: energy only ever falls."""
    rig = Bodies()
    rig.floor(restitution=1.0)
    rig.add(box((0.05, 0.03, 0.01)), (0.0, 0.0, 0.3), Rotation.from_rotvec((0.3, 0.5, 0.1)).as_quat(), mass=0.5,
            velocity=(1.0, 0.0, -20.0, 5.0, 0.0, 3.0), restitution=1.0)  # fmt: skip
    rig.build()
    energy = rig.energy()
    for _ in range(400):
        rig.go()
        assert rig.energy() <= energy + 1e-9
        energy = rig.energy()
    assert not rig.faults()
