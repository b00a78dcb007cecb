"""Balls and capsules, rounded off from points and segments: closed forms of rolling, bouncing, sliding and resting."""

import itertools
import math

import numpy as np
import pytest

from rtcore.collision.features import segment_segment
from rtcore.model import ModelBuilder
from rtcore.tables import KINEMATIC
from tools.scenes.bodies import EPS, POINT, Solid, World, block, floor, segment, turned

G = 9.81
RADIUS = 0.1
ALERT, SAFETY, _ = EPS
STILL_AIR = (0.0, 0.0, 0.0)


def ball(position, mass=1.0, **more):
    return Solid(POINT, position, mass=mass, rounding=RADIUS, **more)


def capsule(start, end, radius=0.05, mass=1.0, **more):
    """With the moments of a thin rod thickened: enough for what is tested here."""
    length = float(np.linalg.norm(np.subtract(end, start)))
    side = mass * (length**2 / 12.0 + radius**2 / 4.0)
    axis = np.argmax(np.abs(np.subtract(end, start)))
    moments = [0.5 * mass * radius**2 if k == axis else side for k in range(3)]
    return Solid(segment(start, end), mass=mass, rounding=radius, moments=moments, **more)


def apart(positions, speeds, dt):
    """Least distance (m) of two points that go straight for dt from positions (2, 3) at speeds (2, 3)."""
    way = positions[1] - positions[0]
    rate = speeds[1] - speeds[0]
    square = rate @ rate
    time = min(max(-(way @ rate) / square, 0.0), dt) if square > 0.0 else 0.0
    return float(np.linalg.norm(way + time * rate))


def test_a_ball_comes_to_rest_at_the_distance_kept():
    world = World([floor(0.5), ball((0.0, 0.0, RADIUS + 1e-3))])
    world.run(100)
    height = world.positions[1, 2]
    assert height - RADIUS == pytest.approx(SAFETY, rel=0.02)
    world.run(200)
    assert world.positions[1, 2] == height
    assert world.report["body_contacts"] == 1
    assert world.report["body_gap"] == pytest.approx(SAFETY, rel=0.02)


@pytest.mark.parametrize("direction", [0.0, 0.7])
def test_a_ball_rolls_down_at_five_sevenths_of_what_it_would_slide(direction):
    """Steep enough for 5/7 g sin to need friction of 2/7 tan = 0.16; the way of the centre is straight."""
    slope = 0.5
    down = math.sin(slope) * np.array([math.cos(direction), math.sin(direction), 0.0])
    gravity = G * (down - [0.0, 0.0, math.cos(slope)])
    world = World([floor(0.3), ball((0.0, 0.0, RADIUS + SAFETY))], gravity)
    ledger = world.keep_books(1000)
    rate = 5.0 / 7.0 * G * math.sin(slope)
    speed = np.linalg.norm(world.velocities[1, :2])
    assert speed == pytest.approx(rate, rel=1e-6)
    assert np.linalg.norm(world.turning[1]) * RADIUS == pytest.approx(speed, rel=1e-9)
    assert abs(world.velocities[1, 2]) < 1e-9
    assert world.positions[1, 2] - RADIUS == pytest.approx(SAFETY, rel=0.02)
    assert ledger.gain < 1e-9


def test_a_slipping_ball_rolls_after_two_sevenths_of_its_speed():
    friction, speed = 0.3, 1.0
    world = World([floor(friction), ball((0.0, 0.0, RADIUS + SAFETY), friction=friction, velocity=(speed, *[0.0] * 5))])
    times = []

    def rolls(tick):
        slip = world.velocities[1, 0] - RADIUS * world.turning[1, 1]
        if slip < 1e-9 * speed:
            times.append(tick * world.dt)
        return bool(times)

    world.run(500, rolls)
    assert times[0] == pytest.approx(2.0 * speed / (7.0 * friction * G), abs=1.5 * world.dt)
    world.run(500)
    assert world.velocities[1, 0] == pytest.approx(5.0 / 7.0 * speed, rel=1e-3), "to what friction takes in a step"
    kept = world.velocities[1, 0]
    world.run(1000)
    assert world.velocities[1, 0] == pytest.approx(kept, rel=1e-9)


def test_a_ball_bounces_without_loss_and_without_spin():
    world = World([floor(0.0, restitution=1.0), ball((0.0, 0.0, 1.0), friction=0.0, restitution=1.0)])
    begun = world.energy
    ledger = world.keep_books(5000)
    assert np.abs(np.array(ledger.energy) - begun).max() < 1e-9 * begun
    assert not world.turning[1].any()
    assert world.positions[1, 0] == world.positions[1, 1] == 0.0


@pytest.mark.parametrize("offset", [0.0, 0.07, 0.15])
def test_two_balls_without_loss(offset):
    """The speed along the line of centres goes over to the other ball; it is seen as it was at the last tick."""
    speed = 1.0
    first = ball((0.0, 0.0, 0.0), friction=0.0, restitution=1.0, velocity=(speed, *[0.0] * 5))
    second = ball((0.5, offset, 0.0), friction=0.0, restitution=1.0)
    world = World([floor(0.0), first, second][1:], STILL_AIR)
    least = []
    before = [world.positions]

    def look(_):
        after = world.positions
        least.append(apart(before[-1], (after - before[-1]) / world.dt, world.dt))
        before.append(after)

    ledger = world.keep_books(800, look)
    sine = offset / (2.0 * RADIUS + SAFETY)
    along = np.array([math.sqrt(1.0 - sine**2), sine, 0.0])
    taken = speed * along[0] * along
    late = 2.0 * speed * world.dt / RADIUS
    assert np.allclose(world.velocities[1], taken, atol=late * sine + 1e-9)
    assert np.allclose(world.velocities[0] + world.velocities[1], [speed, 0.0, 0.0], atol=1e-12)
    assert ledger.drift()[0] < 1e-12
    assert min(least) >= 2.0 * RADIUS + ALERT * (1.0 - 1e-3)
    assert np.abs(world.turning).max() < 1e-12


@pytest.mark.parametrize("friction, leaves", [(0.0, 2.0 / 3.0), (20.0, 10.0 / 17.0)])
def test_a_ball_leaves_a_ball(friction, leaves):
    """Where cos = 2/3 if it slides, and 10/17 if it rolls (of the line of centres against the vertical).

    From there on it flies, so that the speed across says where it left: v^2 = g R cos, of which cos goes across.
    """
    support = Solid(POINT, (0.0, 0.0, 0.0), rounding=0.5, friction=friction)
    reach = 0.5 + RADIUS + SAFETY
    start = 0.05
    place = (reach * math.sin(start), 0.0, reach * math.cos(start))
    world = World([support, ball(place, friction=friction)], dt=2.5e-4)
    world.run(20000, lambda _: world.positions[1, 2] < 0.0)
    assert world.positions[1, 2] < 0.0
    # It starts aside and at rest, so that it leaves where cos is that share of cos(start).
    cosine = leaves * math.cos(start)
    assert world.velocities[1, 0] == pytest.approx(math.sqrt(G * reach * cosine) * cosine, rel=5e-3)


def test_a_fast_ball_is_stopped_where_closed_forms_say():
    """100 m/s in air towards a ball that stands, beside its middle: centres never come nearer than both radii."""
    for offset in (0.0, 0.1, 0.1999, 0.2001, 0.2002):
        still = Solid(POINT, (3.05, 0.0, 0.0), rounding=RADIUS)
        flier = ball((0.0, offset, 0.0), friction=0.0, velocity=(100.0, *[0.0] * 5))
        world = World([still, flier], STILL_AIR)
        before = world.positions
        for _ in range(60):
            world.step()
            after = world.positions
            assert apart(before, (after - before) / world.dt, world.dt) >= 2.0 * RADIUS + ALERT * (1.0 - 1e-3)
            before = after
        passes = offset > 2.0 * RADIUS + SAFETY
        assert (world.velocities[1, 0] == 100.0) == passes


def test_capsules_lie_and_cross():
    """One on the floor with two contacts, one across on top of it with one, held upright by nothing but symmetry."""
    low = capsule((-0.2, 0.0, 0.0), (0.2, 0.0, 0.0), position=(0.0, 0.0, 0.051), friction=0.5)
    top = capsule((0.0, -0.2, 0.0), (0.0, 0.2, 0.0), position=(0.0, 0.0, 0.152), friction=0.5)
    world = World([floor(0.5), low, top])
    world.run(400)
    assert world.report["body_contacts"] + world.report["asleep"] >= 3
    assert world.positions[1, 2] == pytest.approx(0.05 + SAFETY, abs=0.05 * SAFETY)
    assert world.positions[2, 2] == pytest.approx(0.15 + 2.0 * SAFETY, abs=0.1 * SAFETY)
    assert not world.velocities[1:].any()
    assert np.abs(world.state.poses["orientation"][1:, :3]).max() < 1e-6


def test_a_capsule_rolls_like_a_cylinder_on_its_side():
    """a = g sin / (1 + I / m r^2) with the moment about its axis: 2/3 for m r^2 / 2."""
    slope = 0.3
    gravity = (G * math.sin(slope), 0.0, -G * math.cos(slope))
    world = World([floor(0.5), capsule((0.0, -0.2, 0.0), (0.0, 0.2, 0.0), position=(0.0, 0.0, 0.05 + SAFETY))], gravity)
    world.run(500)
    assert world.velocities[1, 0] == pytest.approx(2.0 / 3.0 * G * math.sin(slope) * 0.5, rel=1e-3)
    assert world.positions[1, 2] - 0.05 == pytest.approx(SAFETY, rel=0.1)


def test_a_moving_ball_turns_by_what_it_is_told():
    """A kinematic ball that spins beside its way: its pose at the end is the turn by its angular velocity."""
    velocity = (0.1, 0.0, 0.0, 0.0, 0.0, 2.0)
    world = World([Solid(POINT, rounding=RADIUS, velocity=velocity, kind=KINEMATIC)], STILL_AIR)
    world.run(500)
    assert world.positions[0] == pytest.approx([0.05, 0.0, 0.0], abs=1e-12)
    assert world.state.poses["orientation"][0] == pytest.approx(turned((0.0, 0.0, 1.0), 1.0), abs=1e-12)


def test_a_spinning_ball_keeps_its_spin_in_flight():
    world = World([ball((0.0, 0.0, 0.0), velocity=(1.0, 0.0, 0.0, 3.0, -4.0, 12.0))], STILL_AIR)
    world.run(1000)
    assert world.positions[0] == pytest.approx([1.0, 0.0, 0.0], abs=1e-9)
    axis = np.array([3.0, -4.0, 12.0]) / 13.0
    wanted = np.array(turned(axis, 13.0))
    assert np.abs(world.state.poses["orientation"][0]) == pytest.approx(np.abs(wanted), abs=1e-9)
    assert world.turning[0] == pytest.approx([3.0, -4.0, 12.0], abs=1e-12)


def test_the_tool_pushes_a_ball_and_feels_it():
    """A box in a hand against a ball on a floor without friction: F = m a, and the distance as closed forms have it."""
    world = World(
        [floor(0.0), ball((0.3, 0.0, RADIUS + SAFETY), mass=2.0, friction=0.0)],
        tool=block(0.1, 0.1, 0.1),
        tool_at=(0.0, 0.0, 0.1),
    )
    least = math.inf
    pushed = False
    for k in range(600):
        world.hold(500.0, 50.0, (min(5e-4 * k, 0.25), 0.0, 0.1))
        world.step()
        gap = world.positions[1, 0] - RADIUS - (world.state.proxy["position"][0, 0] + 0.05)
        least = min(least, gap)
        for contact in world.report["contacts"][: world.report["contact_count"]]:
            if contact["body_id"] == 1:
                pushed = True
                assert contact["point"][0] == pytest.approx(world.positions[1, 0] - RADIUS, abs=1e-3)
                assert contact["normal"] == pytest.approx([-1.0, 0.0, 0.0], abs=1e-3)  # the tool may tilt
    assert pushed
    assert least >= ALERT * (1.0 - 1e-3)
    assert world.positions[1, 0] > 0.31
    assert abs(world.positions[1, 1]) < 1e-9


def test_a_heap_of_balls_and_capsules_never_meets_nor_gains():
    """Twelve of each fall into a box; every distance by closed forms at every tenth tick."""
    random = np.random.default_rng(5)
    walls = [floor(0.4)]
    for axis, side in itertools.product((0, 1), (-1.0, 1.0)):
        size = [1.2, 1.2, 2.0]
        size[axis] = 0.2
        place = [0.0, 0.0, 1.0]
        place[axis] = side * 0.6
        walls.append(Solid(block(*size), place, friction=0.4))
    solids = list(walls)
    half = []
    for k in range(24):
        x, y = random.uniform(-0.3, 0.3, 2)
        place = (x, y, 0.2 + 0.22 * k)
        spin = (0.0, 0.0, 0.0, *random.uniform(-5.0, 5.0, 3))
        if k % 2:
            half.append((np.zeros(3), RADIUS))
            solids.append(ball(place, friction=0.4, velocity=spin))
        else:
            half.append((np.array([0.0, 0.1, 0.0]), 0.05))
            solids.append(capsule((0.0, -0.1, 0.0), (0.0, 0.1, 0.0), position=place, friction=0.4, velocity=spin))
    world = World(solids)
    floor_id = len(walls)

    def look(tick):
        if tick % 10:
            return
        poses = world.state.poses[floor_id:]
        ends = []
        for (arm, radius), pose in zip(half, poses, strict=True):
            q = pose["orientation"]
            turned_arm = arm + 2.0 * np.cross(q[:3], np.cross(q[:3], arm) + q[3] * arm)
            ends.append((pose["position"] - turned_arm, pose["position"] + turned_arm, radius))
        for a, b, radius in ends:
            assert min(a[2], b[2]) - radius >= ALERT * (1.0 - 1e-3)
            assert np.abs([a[:2], b[:2]]).max() <= 0.5 - radius - ALERT * (1.0 - 1e-3)
        for (a0, a1, r), (b0, b1, s) in itertools.combinations(ends, 2):
            _, _, square = segment_segment(tuple(a0), tuple(a1), tuple(b0), tuple(b1))
            assert math.sqrt(square) - r - s >= ALERT * (1.0 - 1e-3)

    ledger = world.keep_books(2500, look)
    assert ledger.gain < 1e-4 * ledger.energy[0]
    assert world.positions[floor_id:, 2].max() < 1.5
    assert np.abs(world.velocities[floor_id:]).max() < 1.0


def test_what_cannot_be_rounded_is_refused():
    from rtcore.geometry.tree import build_tree

    builder = ModelBuilder()
    mesh = builder.add_mesh(*build_tree(POINT.vertices, POINT.faces))
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="rounding"):
            builder.add_body(mesh, rounding=wrong)
    builder.add_body(mesh, rounding=0.1)
    with pytest.raises(ValueError, match="rounding needs a tool that is a mesh"):
        builder.build(0.01, STILL_AIR, *EPS)
