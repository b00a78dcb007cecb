"""Rest positions and pushes of the tip against closed forms: plane, groove, corner, sphere; stick, slip and Coulomb."""

import numpy as np
import probe_truth as truth
import pytest
from probe_scenes import EPS, Probe, box, grid, sheets

from rtcore.solvers.point_contact import solve
from rtcore.tables import DEGRADED_SOLVER, RESTICK_TICKS

RADIUS = 0.005
REST = RADIUS + EPS[1]  # height of the tip centre at rest over a plane
EXACT = 1e-9  # m
STANDSTILL = 1e-4 * EPS[0]  # m: a smaller motion is not made


def plane(friction=(0.0, 0.0), **options):
    return Probe([grid(20, 0.2)], (0.0011, 0.0007, 0.02), friction=friction, **options)


def press(probe, *goal, steps=4):
    for _ in range(steps):
        probe.go(*goal)
    return probe.position


def test_plane_without_friction_holds_the_tip_above_the_goal():
    probe = plane()
    rng = np.random.default_rng(0)
    for x, y, z in rng.uniform(-0.05, 0.05, (100, 3)) * (1, 1, 0.2) - (0, 0, 0.011):
        position = press(probe, x, y, z, steps=1)
        np.testing.assert_allclose(position, (x, y, REST), atol=EXACT)
        np.testing.assert_allclose(probe.push, (0, 0, REST - z), atol=EXACT)
        assert probe.report["residual"] <= EXACT and probe.report["degraded"] == 0


def test_a_coming_tip_sticks_where_it_touched():
    # Straight to where the sweep stops it, then off the plane to eps_safety; the rest of the way friction holds.
    probe = plane((0.5, 0.3))
    start, goal = probe.position, np.array([0.003, -0.002, -0.01])
    s = (start[2] - RADIUS - EPS[0]) / (start[2] - goal[2])
    position = press(probe, *goal)
    np.testing.assert_allclose(position[:2], (start + s * (goal - start))[:2], atol=EXACT)
    assert abs(position[2] - REST) <= EXACT


@pytest.mark.parametrize("angle", [0.0, 0.7, 2.0, 4.1])
def test_stick_ends_at_static_friction_and_slip_at_kinetic(angle):
    static, kinetic, depth = 0.5, 0.3, 0.012
    direction = np.array([np.cos(angle), np.sin(angle)])
    probe = plane((static, kinetic))
    x0 = press(probe, *probe.position[:2], REST - depth)
    assert abs(x0[2] - REST) <= EXACT
    for share in (0.2, 0.9, 1 - 1e-6):  # inside the static cone: not a bit moves
        goal = x0[:2] + share * static * depth * direction
        np.testing.assert_array_equal(press(probe, *goal, REST - depth), x0)
        assert probe.contacts["sliding"][0] == 0
        np.testing.assert_allclose(probe.push[:2], x0[:2] - goal, atol=EXACT)
    goal = x0[:2] + (1 + 1e-6) * static * depth * direction
    x1 = probe.go(*goal, REST - depth)
    assert probe.contacts["sliding"][0] == 1 and probe.state.proxy["sliding"][0, 0] == RESTICK_TICKS
    np.testing.assert_allclose(goal - x1[:2], kinetic * depth * direction, atol=EXACT)
    np.testing.assert_allclose(probe.push, [*(-kinetic * depth * direction), depth], atol=EXACT)
    goal = goal + 1e-4 * direction  # kept going: kinetic friction, though far inside the static cone
    x2 = probe.go(*goal, REST - depth)
    np.testing.assert_allclose(goal - x2[:2], kinetic * depth * direction, atol=EXACT)
    for _ in range(RESTICK_TICKS):  # rests long enough: static friction again
        assert probe.state.proxy["sliding"][0, 0] > 0
        np.testing.assert_array_equal(probe.go(*goal, REST - depth), x2)
    assert probe.state.proxy["sliding"][0, 0] == 0
    np.testing.assert_array_equal(probe.go(*(goal + 1e-4 * direction), REST - depth), x2)


@pytest.mark.parametrize("pause", [1, 2, RESTICK_TICKS - 1])
def test_a_drag_in_steps_feels_like_an_even_drag(pause):
    """Encoder steps and late samples leave ticks without motion: between them kinetic friction stays what it is."""
    kinetic, depth = 0.3, 0.012
    probe = plane((0.5, kinetic))
    x, y, _ = press(probe, *probe.position[:2], REST - depth)
    x += 0.5 * depth * (1 + 1e-6)
    probe.go(x, y, REST - depth)
    for step in range(40):
        x += 5e-5
        for _ in range(1 + pause):
            position = probe.go(x, y, REST - depth)
            np.testing.assert_allclose(x - position[0], kinetic * depth, atol=EXACT, err_msg=f"step {step}")


def test_friction_of_each_body_is_its_own():
    floors = [((-0.05, 0, 0), (0, 0, 0, 1)), ((0.05, 0, 0), (0, 0, 0, 1))]
    probe = Probe([grid(8, 0.1)] * 2, (-0.05, 0, 0.02), friction=[(0.4, 0.2), (0.1, 0.1)], poses=floors)
    for centre, kinetic in ((-0.05, 0.2), (0.05, 0.1)):
        probe.go(centre, 0, 0.02)
        press(probe, centre, 0.0, REST - 0.01)
        y = probe.go(centre, 0.02, REST - 0.01)[1]
        assert abs(0.02 - y - kinetic * 0.01) <= EXACT


def groove(half_angle, friction=(0.0, 0.0)):
    """V along y; walls at +-half_angle from the vertical, meeting at z = 0."""
    s, c = np.sin(half_angle), np.cos(half_angle)
    walls = [
        sheets([(0, -0.1, 0), (0, 0.1, 0), (k * 0.1 * s, 0.1, 0.1 * c), (k * 0.1 * s, -0.1, 0.1 * c)]) for k in (-1, 1)
    ]
    return Probe(walls, (0.0, 0.0, 0.08), friction=friction)


@pytest.mark.parametrize("degrees", [80, 45, 30, 10, 5])
def test_groove_without_friction_guides_the_tip_along_its_bottom(degrees):
    half = np.radians(degrees)
    probe = groove(half)
    height, depth = REST / np.sin(half), 0.006
    for x, y in ((0.001, 0.01), (-0.002, -0.03), (0.0, 0.02)):
        x *= np.cos(half)  # so that both walls push
        position = press(probe, x, y, height - depth, steps=6)
        np.testing.assert_allclose(position, (0, y, height), atol=2 * STANDSTILL / np.sin(half))
        np.testing.assert_allclose(probe.push, (-x, 0, depth), atol=2 * STANDSTILL / np.sin(half))
        along = probe.contacts["displacement"] @ [0, 1, 0]
        np.testing.assert_allclose(along, 0, atol=EXACT)


@pytest.mark.parametrize("degrees", [60, 45, 30])
def test_groove_with_friction_brakes_by_both_walls(degrees):
    # Each wall carries depth / (2 sin half); while the tip slips along the bottom both brake straight against it.
    half, kinetic, depth = np.radians(degrees), 0.2, 0.006
    probe = groove(half, (0.2, kinetic))
    height = REST / np.sin(half)
    press(probe, 0, 0, height - depth, steps=8)
    x0 = probe.position
    np.testing.assert_allclose(x0[[0, 2]], (0, height), atol=2e-7)
    brake = kinetic * (x0[2] - (height - depth)) / np.sin(half)
    y = probe.go(x0[0], x0[1] + 3 * brake, height - depth)[1]
    assert abs(y - (x0[1] + 2 * brake)) <= 1e-7
    np.testing.assert_allclose(probe.contacts["displacement"] @ [0, 1, 0], -brake / 2, rtol=1e-4)
    held = probe.position  # and once inside the cones, not a bit moves
    for share in (0.9, 0.5, -0.9):
        np.testing.assert_array_equal(press(probe, x0[0], held[1] + share * brake, height - depth), held)
        assert probe.report["degraded"] == 0
        np.testing.assert_allclose(probe.push, held - probe.input["goal_position"][0], atol=1e-7)


@pytest.mark.parametrize("radius", [0.005, 0.0])
@pytest.mark.parametrize("degrees", [0.5, 1.5, 3.0, 8.0])
def test_the_crease_of_a_shallow_valley_is_found_in_one_step(degrees, radius):
    # Each slope is the nearest surface only on its own side; the tip must not go to and fro between the two.
    slope = np.tan(np.radians(degrees))
    probe = Probe([grid(2, 0.2, lambda x, y: slope * np.abs(x))], (0.003, 0.01, 0.02), radius=radius)
    height = (radius + EPS[1]) / np.cos(np.radians(degrees))
    for y in (0.011, 0.013, -0.02):
        position = probe.go(0.0, y, -0.008)
        np.testing.assert_allclose(position, (0, y, height), atol=2 * STANDSTILL / slope)
        assert probe.report["degraded"] == 0 and probe.report["passes_used"] <= 5
        np.testing.assert_allclose(probe.push, (0, 0, height + 0.008), atol=2 * STANDSTILL / slope)
        np.testing.assert_array_equal(probe.go(0.0, y, -0.008), position)


def test_corner_of_three_planes_is_reached_exactly_and_left_freely():
    walls = [
        sheets([(0, 0, 0), (0.1, 0, 0), (0.1, 0.1, 0), (0, 0.1, 0)]),
        sheets([(0, 0, 0), (0, 0, 0.1), (0.1, 0, 0.1), (0.1, 0, 0)]),
        sheets([(0, 0, 0), (0, 0.1, 0), (0, 0.1, 0.1), (0, 0, 0.1)]),
    ]
    probe = Probe(walls, (0.03, 0.04, 0.05))
    for goal in ((-0.01, -0.02, -0.005), (-0.003, -0.02, -0.03)):
        position = press(probe, *goal, steps=1)
        np.testing.assert_allclose(position, (REST, REST, REST), atol=EXACT)
        np.testing.assert_allclose(probe.push, position - goal, atol=EXACT)
        np.testing.assert_allclose(
            np.sort(probe.contacts["displacement"].max(axis=1)), np.sort(position - goal), atol=EXACT
        )
        np.testing.assert_array_equal(press(probe, *goal), position)
    np.testing.assert_allclose(probe.go(-0.01, 0.02, -0.01), (REST, 0.02, REST), atol=EXACT)
    np.testing.assert_array_equal(probe.go(0.03, 0.02, 0.01), (0.03, 0.02, 0.01))


def test_the_pushes_on_an_edge_of_two_planes_are_unique_and_found():
    probe = Probe(
        [grid(8, 0.2), sheets([(0, -0.1, -0.1), (0, -0.1, 0.1), (0, 0.1, 0.1), (0, 0.1, -0.1)])], (0.02, 0, 0.02)
    )
    press(probe, -0.004, 0.01, -0.007, steps=1)
    by_body = {int(c["body_id"]): c["displacement"] for c in probe.contacts}
    np.testing.assert_allclose(by_body[0], (0, 0, REST + 0.007), atol=EXACT)
    np.testing.assert_allclose(by_body[1], (REST + 0.004, 0, 0), atol=EXACT)


@pytest.mark.parametrize("goal_depth", [0.002, 0.01])
def test_sphere_pushes_radially_within_its_tessellation(goal_depth):
    # Facets of an icosphere of radius b, tip of radius r: normals are off by less than half the angle of an edge.
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=4, radius=0.05)
    vertices, faces = np.array(ball.vertices), np.array(ball.faces)
    probe = Probe([(vertices, faces)], (0, 0, 0.08))
    edge = np.linalg.norm(vertices[faces[:, 0]] - vertices[faces[:, 1]], axis=1).max()
    bound = edge / 0.05 / np.sqrt(3)  # facet centre to vertex, seen from the centre
    sink = 0.05 * (1 - np.cos(bound))
    for angle in np.linspace(0, 3, 150):
        radial = np.array([np.sin(angle), 0.3 * np.sin(2 * angle), np.cos(angle)])
        radial /= np.linalg.norm(radial)
        goal = (0.05 + REST - goal_depth) * radial
        position = press(probe, *goal, steps=2)
        push = probe.push
        assert np.degrees(np.arccos(push @ radial / np.linalg.norm(push))) <= np.degrees(bound) + 1e-6
        assert 0.05 + REST - sink - EXACT <= np.linalg.norm(position) <= 0.05 + REST + EXACT
        assert abs(np.linalg.norm(push) - goal_depth) <= sink + goal_depth * bound**2
        assert probe.clearance() >= probe.least


@pytest.mark.parametrize("radius", [0.005, 0.0])
def test_no_bump_and_no_catch_on_the_inner_edges_of_a_flat_region(radius):
    # The same drag over one quad and over 1800 triangles: equal rest positions and pushes, all the way.
    rough = Probe([grid(30, 0.2)], (0, 0, 0.02), radius=radius, friction=(0.3, 0.2))
    whole = Probe([grid(1, 0.2)], (0, 0, 0.02), radius=radius, friction=(0.3, 0.2))
    for k in range(400):
        a = 0.021 * k
        goal = ((0.02 + 0.0001 * k) * np.cos(a), (0.02 + 0.0001 * k) * np.sin(a), radius - 0.004)
        np.testing.assert_allclose(rough.go(*goal), whole.go(*goal), atol=EXACT)
        np.testing.assert_allclose(rough.push, whole.push, atol=EXACT)
        assert rough.report["contact_count"] == 1 and rough.report["degraded"] == 0


def test_a_coarse_and_a_fine_floor_in_a_turned_body_feel_alike():
    quaternion = np.array([0.3, -0.2, 0.5, 0.8])
    quaternion /= np.linalg.norm(quaternion)
    turn, place = truth.rotation(quaternion), np.array([0.3, -0.2, 0.1])
    level = plane((0.4, 0.3))
    start = turn @ level.position + place
    tilted = Probe([grid(20, 0.2)], start, friction=(0.4, 0.3), poses=[(place, quaternion)])
    rng = np.random.default_rng(4)
    goal = np.array([0.0, 0.0, -0.003])
    for _ in range(100):
        goal = goal + rng.normal(0, 0.001, 3)
        goal[2] = min(goal[2], 0.004)
        level.go(*goal)
        tilted.go(*(turn @ goal + place))
        np.testing.assert_allclose(tilted.position, turn @ level.position + place, atol=EXACT)
        np.testing.assert_allclose(tilted.push, turn @ level.push, atol=EXACT)


def test_sliding_over_a_convex_edge_goes_around_it():
    probe = Probe([box(0.04, 0.04, 0.04)], (0, 0, 0.03))
    goals = [(x, 0, 0.018) for x in np.linspace(0, 0.022, 60)]
    goals += [(0.018, 0, z) for z in np.linspace(0.018, 0.0, 60)]
    for goal in goals:
        probe.go(*goal)
        assert probe.clearance() >= probe.least
        push = probe.push
        assert push[0] >= -1e-9 and push[2] >= -1e-9  # only ever outward of the box
    np.testing.assert_allclose(probe.position, (0.02 + REST, 0, 0), atol=EXACT)


def test_the_force_does_not_jump_while_sliding_over_a_smooth_bump():
    bump = grid(100, 0.2, lambda x, y: 0.01 * np.exp(-(x**2 + y**2) / 0.0008))
    probe = Probe([bump], (-0.06, 0.0003, 0.02), friction=(0.0, 0.0))
    pushes = []
    for x in np.linspace(-0.06, 0.06, 1200):
        surface = 0.01 * np.exp(-(x**2) / 0.0008)
        probe.go(x, 0.0003, surface + REST - 0.003)
        pushes.append(probe.push)
    jumps = np.linalg.norm(np.diff(pushes, axis=0), axis=1)
    # 0.1 mm per step; facets of 2 mm on curvature up to 25 / m bend by 0.05 rad, and so does a push of 3 mm.
    assert jumps.max() <= 0.003 * 0.06 + 0.0001


def synthetic(seed, count, friction=(0.5, 0.3)):
    """A tip that touches `count` planes of random directions, for the solver alone."""
    rng = np.random.default_rng(seed)
    probe = Probe([grid(1, 0.1)], (0, 0, 1), friction=friction)
    report = probe.report
    report["contact_count"] = count
    for i in range(count):
        normal = rng.normal(size=3) + np.array([0, 0, 1.0])
        report["contacts"]["normal"][i] = normal / np.linalg.norm(normal)
        report["contacts"]["gap"][i] = probe.safety
        report["contacts"]["body_id"][i] = 0
    probe.state.proxy["position"][0] = 0.0
    probe.state.scratch["slid"][:] = 0
    return probe, rng


def run(probe, goal, sweeps):
    slips, left = solve(probe.model, probe.state.scratch[0], probe.state.proxy[0], goal, sweeps, probe.report)
    return slips, left, probe.state.scratch["wanted"][0].copy()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("sliding", [0, 1])
def test_random_contacts_satisfy_coulombs_law(count, sliding):
    static, kinetic = 0.5, 0.3
    settled = 0
    for seed in range(150):
        probe, rng = synthetic(seed, count, (static, kinetic))
        probe.state.proxy["sliding"][0] = sliding
        goal = rng.normal(0, 0.01, 3)
        slips, left, x = run(probe, goal, 200)
        assert 0 <= left < 200
        n, push = probe.contacts["normal"], probe.contacts["displacement"]
        pull = np.linalg.norm(goal - x)
        assert (n @ x >= -1e-9).all()  # in every half space
        pressing = np.einsum("ij,ij->i", n, push)
        tangential = push - pressing[:, None] * n
        assert (pressing >= -1e-15).all()
        limit = (kinetic if sliding else static) * pressing
        assert (np.linalg.norm(tangential, axis=1) <= limit * (1 + 1e-6) + 1e-15).all()
        if slips:  # friction never drives: what slips is braked
            assert (tangential @ x <= 1e-12).all()
        elif (n @ goal >= 0).all():
            np.testing.assert_array_equal(x, goal)
        else:
            np.testing.assert_array_equal(x, 0.0)
        assert (np.abs(pressing * (n @ x)) <= 1e-12).all()  # only what touches pushes
        if probe.report["degraded"] & DEGRADED_SOLVER:
            continue
        settled += 1
        np.testing.assert_allclose(goal + push.sum(axis=0), x, atol=2e-5 * (pull + probe.safety))
    assert settled >= 140


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("sweeps", [1, 2, 3, 10])
def test_too_few_sweeps_only_weaken_the_push(count, sweeps):
    for seed in range(100):
        probe, rng = synthetic(seed, count)
        goal = rng.normal(0, 0.01, 3)
        _, _, full = run(probe, goal, 500)
        whole = np.linalg.norm(goal - full)
        _, left, x = run(probe, goal, sweeps)
        assert left >= 0
        assert (probe.contacts["normal"] @ x >= -1e-9).all()
        assert np.linalg.norm(probe.push) <= np.linalg.norm(goal - x) * (1 + 1e-9)
        assert np.linalg.norm(probe.push) <= max(whole, np.linalg.norm(goal)) * (1 + 1e-6)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_what_sticks_with_several_contacts_sticks_to_the_bit(count):
    held = 0
    for seed in range(100):
        probe, rng = synthetic(seed, count, (0.6, 0.4))
        inside = np.zeros(3)
        for n in probe.contacts["normal"]:  # a pull that the cones can surely hold
            tangent = np.cross(n, rng.normal(size=3))
            inside -= rng.uniform(0.1, 1) * (n + 0.5 * 0.6 * tangent / np.linalg.norm(tangent))
        slips, _, x = run(probe, 0.01 * inside, 200)
        if not slips:
            held += 1
            np.testing.assert_array_equal(x, 0.0)
    assert held >= 95
