"""A tool that yields to its contacts: where the springs of the hand and the contacts hold it, and how it gets there.

What the step says is judged by what holds it up: Coulomb's law, the balance of forces and torques, minima of the
springs' energy by scipy, and of the poses by exact arithmetic on triangles.
"""

import hashlib

import numpy as np
import pytest
import trimesh
from closed_meshes import box, star
from mesh_tool_rig import EPS, FULL, HOME, MeshTool, at
from scipy.optimize import brentq, nnls
from scipy.spatial.transform import Rotation

from haptics.snapshot import pack_snapshot, unpack_snapshot
from haptics.tables import TOUCH
from rtcore.dynamics.position_pass import OPENING, YIELDING
from rtcore.mesh_tool import STANDSTILL
from rtcore.tables import DEADBAND, RESTICK_TICKS

TURNING = 1e-3
"""k_r / k_t of most scenes, m^2: a millimetre of pull at the end of an arm of 3 cm turns by 1/33 rad."""
HALF = 0.02
"""Half an edge of the block, m."""
SLIPPERY = (0.0, 0.0)
ROUGH = (0.4, 0.3)
FINE = (2e-6, 5e-6, 2e-5)
"""Alert, safety and break distance of a peg in its hole, m."""
SMALL = (200, 8, 1)


def plate():
    """A fine plate, its top at z = 0, which a block can rest on also where triangles of it end."""
    shape = trimesh.creation.box((0.4, 0.4, 0.04))
    for _ in range(3):
        shape = shape.subdivide()
    return np.array(shape.vertices) - (0.0, 0.0, 0.02), np.array(shape.faces)


def cylinder(radius: float, height: float, sections: int):
    """About z, from z = 0 up."""
    shape = trimesh.creation.cylinder(radius, height, sections=sections)
    return np.array(shape.vertices) + (0.0, 0.0, 0.5 * height), np.array(shape.faces)


def block_on_plate(friction=ROUGH, budget=FULL, turning=TURNING, start=HALF + 3e-4) -> MeshTool:
    return MeshTool(
        box((HALF,) * 3), [plate()], at((0.0, 0.0, start)), turning=turning, friction=friction, budget=budget
    )


def block_over_step(friction=ROUGH, budget=FULL) -> MeshTool:
    """A block above the edge of a step, 1 cm high, on a plate."""
    step_up = box((0.05, 0.05, 0.005))
    return MeshTool(
        box((HALF,) * 3),
        [plate(), step_up],
        at((0.0, 0.0, 0.05), (0.0, 0.3, 0.0)),
        poses=[HOME, at((-0.05, 0.0, 0.005))],
        turning=TURNING,
        friction=friction,
        budget=budget,
    )


def bar_in_groove(friction=ROUGH, budget=FULL) -> MeshTool:
    """A round bar along y over a groove of two sheets that meet in the y axis at right angles."""
    sheet = box((0.06, 0.06, 0.01))
    vertices, faces = cylinder(0.01, 0.04, 24)
    bar = (vertices - (0.0, 0.0, 0.02))[:, [0, 2, 1]] * (1.0, 1.0, -1.0), faces
    sheets = [
        at((side * 0.01 * np.sqrt(0.5), 0.0, -0.01 * np.sqrt(0.5)), (0.0, side * 0.25 * np.pi, 0.0)) for side in (-1, 1)
    ]
    for sheet_pose, side in zip(sheets, (-1, 1), strict=True):
        outwards = Rotation.from_quat(sheet_pose[3:]).apply((0.0, 0.0, 1.0))
        sheet_pose[:3] = -0.01 * outwards
        assert outwards[0] * side > 0.0
    return MeshTool(
        bar, [sheet, sheet], at((0.0, 0.0, 0.02)), poses=sheets, turning=TURNING, friction=friction, budget=budget
    )


def peg_over_socket(friction, budget=FULL) -> MeshTool:
    """A peg of 5 mm radius over a square socket, 0.1 mm larger all around, whose floor is z = 0 and its rim z = 0.02.

    The tip is in the middle of the peg's lower end.
    """
    long, short = box((0.01245, 0.03, 0.01)), box((0.005, 0.01245, 0.01))
    return MeshTool(
        cylinder(0.005, 0.03, 48),
        [box((0.03, 0.03, 0.005)), long, long, short, short],
        at((0.0, 0.0, 0.03)),
        eps=FINE,
        poses=[at((0.0, 0.0, -0.005))]
        + [at((side * 0.01755, 0.0, 0.0101)) for side in (1, -1)]
        + [at((0.0, side * 0.01755, 0.0101)) for side in (1, -1)],
        turning=0.5 * TURNING,
        friction=friction,
        budget=budget,
    )


def settle(rig: MeshTool, goal: np.ndarray, most: int = 2000) -> np.ndarray:
    """Hold a goal until the tool has been at rest, to the bit, for longer than kinetic friction lasts: its pose."""
    still = 0
    for _ in range(most):
        before = rig.pose
        still = still + 1 if np.array_equal(rig.go(goal), before) else 0
        if still > RESTICK_TICKS + 5:
            return before
    raise AssertionError(f"no rest within {most} steps")


def turned(goal: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """The rotation vector (rad, scene) from the pose to the goal."""
    return (Rotation.from_quat(goal[3:]) * Rotation.from_quat(pose[3:]).inv()).as_rotvec()


def pushed(rig: MeshTool, pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum of what the contacts push (m) and of its moments about the tip centre (m^2); pose: of the step's start."""
    contacts = rig.contacts
    own = contacts["point"] + contacts["gap"][:, None] * contacts["normal"]
    return contacts["displacement"].sum(axis=0), np.cross(own - pose[:3], contacts["displacement"]).sum(axis=0)


def split(rig: MeshTool) -> tuple[np.ndarray, np.ndarray]:
    """Normal (n,) and tangential (n, 3) parts of what the contacts push, m."""
    contacts = rig.contacts
    normal = np.einsum("ij,ij->i", contacts["displacement"], contacts["normal"])
    return normal, contacts["displacement"] - normal[:, None] * contacts["normal"]


def unopened(rig: MeshTool) -> float:
    """By how much a contact may stay nearer than the safety distance, m: a step that would open it more is made."""
    return STANDSTILL * rig.alert * (1.0 + YIELDING) / OPENING + DEADBAND * rig.safety


def check_cones(rig: MeshTool, static: float) -> None:
    """Contacts push outwards, and along the surface by no more than static friction allows."""
    normal, along = split(rig)
    size = max(np.abs(normal).max(initial=0.0), 1e-12)
    assert (normal >= -1e-12 * size).all()
    assert (np.linalg.norm(along, axis=1) <= static * normal + 1e-12 * size).all()


def check_rest(rig: MeshTool, goal: np.ndarray, static: float) -> None:
    """At rest: springs and contacts balance, by forces in their cones, of contacts at the safety distance."""
    pose = rig.pose
    pull, twist = goal[:3] - pose[:3], turned(goal, pose)
    force, torque = pushed(rig, pose)
    turning = rig.model.world["turning"][0]
    scale = np.sqrt(pull @ pull + turning * twist @ twist)
    assert scale > 1e-3, "a pull that tests nothing"
    np.testing.assert_allclose(force, -pull, rtol=0.0, atol=1e-6 * scale)
    np.testing.assert_allclose(torque, -turning * twist, rtol=0.0, atol=1e-6 * scale * np.sqrt(turning))
    check_cones(rig, static)
    normal, _ = split(rig)
    gaps = rig.contacts["gap"][normal > 1e-4 * scale]
    assert len(gaps) > 0
    assert gaps.min() >= rig.safety - unopened(rig) and gaps.max() <= rig.safety + unopened(rig)
    assert rig.faults() == []


# Friction


def test_a_block_that_is_pulled_less_than_friction_holds_does_not_creep():
    rig = block_on_plate()
    settle(rig, at((0.0, 0.0, HALF - 5e-3)))
    goal = at((0.9 * ROUGH[0] * 5e-3, 0.0, HALF - 5e-3))
    rest = settle(rig, goal)
    assert np.linalg.norm(rest[:2]) < 1e-7
    for _ in range(500):
        assert np.array_equal(rig.go(goal), rest)
    check_rest(rig, goal, ROUGH[0])


def test_a_hand_that_shakes_does_not_loosen_it():
    """By more than kinetic friction would hold, but never by as much as static friction does."""
    rig = block_on_plate()
    down = at((0.0, 0.0, HALF - 5e-3))
    settle(rig, down)
    pull = 0.9 * ROUGH[0] * 5e-3
    rest = settle(rig, down + at((pull, 0.0, 0.0)) - HOME)
    random = np.random.default_rng(3)
    for _ in range(500):
        shake = random.normal(0.0, 0.01 * pull, 3)
        assert np.array_equal(rig.go(down + at((pull, 0.0, 0.0) + shake) - HOME), rest)


def test_it_breaks_loose_at_static_friction():
    for share, moves in ((0.97, False), (0.99, False), (1.01, True)):
        rig = block_on_plate()
        down = at((0.0, 0.0, HALF - 5e-3))
        rest = settle(rig, down)
        depth = rest[2] - down[2]
        goal = at((share * ROUGH[0] * depth, 0.0, down[2]))
        rig.go(goal)
        assert bool(rig.contacts["sliding"].any()) == moves
        end = settle(rig, goal)
        # Loose, it slides to where kinetic friction holds it.
        expected = goal[0] - ROUGH[1] * depth if moves else 0.0
        assert abs(end[0] - expected) < (1e-6 * depth if not moves else 0.0) + 2e-6


def test_a_block_slides_against_kinetic_friction():
    """Dragged at a steady speed, in a direction that is none of the axes."""
    rig = block_on_plate()
    settle(rig, at((0.0, 0.0, HALF - 5e-3)))
    way = np.array([np.cos(0.7), np.sin(0.7), 0.0])
    for k in range(300):
        rig.go(at(1e-4 * k * way + (0.0, 0.0, HALF - 5e-3)))
        if k >= 100:
            normal, along = split(rig)
            np.testing.assert_allclose(along.sum(axis=0), -ROUGH[1] * normal.sum() * way, atol=1e-6 * normal.sum())
            assert rig.contacts["sliding"].all()
        check_cones(rig, ROUGH[0])
        assert rig.report["degraded"] == 0
    assert rig.faults() == []


def test_without_friction_a_block_is_right_above_its_goal():
    rig = block_on_plate(SLIPPERY)
    settle(rig, at((0.0, 0.0, HALF - 5e-3)))
    goal = at((0.013, -0.008, HALF - 4e-3), (0.0, 0.0, 0.3))
    end = settle(rig, goal)
    np.testing.assert_allclose(end[:2], goal[:2], rtol=0.0, atol=STANDSTILL * rig.alert)
    assert rig.safety - unopened(rig) <= end[2] - HALF <= rig.safety + unopened(rig)
    np.testing.assert_allclose(turned(goal, end), 0.0, rtol=0.0, atol=1e-6)
    check_rest(rig, goal, 0.0)


# The safety distance


def test_what_is_too_near_is_opened_step_by_step_and_pushes_nothing():
    """A goal where the tool is asks for no force, however near the tool may be there."""
    rig = block_on_plate(start=HALF + 1.1 * EPS[0])
    goal = rig.pose
    missing = rig.safety - (goal[2] - HALF)
    for k in range(60):
        after = rig.go(goal)
        left = rig.safety - (after[2] - HALF)
        assert missing * (1.0 - OPENING) - 1e-15 <= left <= max(0.9 * missing, unopened(rig))
        if k == 0:
            assert (rig.contacts["displacement"] == 0.0).all()
        assert split(rig)[0].sum() <= (1.0 + 1e-6) * (after[2] - goal[2])
        missing = left
    np.testing.assert_allclose(turned(goal, after), 0.0, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(after[:2], 0.0, rtol=0.0, atol=STANDSTILL * rig.alert)


# Balance


GOALS = {
    "plate": [
        at((0.0, 0.0, HALF - 5e-3)),
        at((0.001, 0.0, HALF - 5e-3), (0.0, 0.0, 0.02)),
        at((0.004, 0.002, HALF - 4e-3), (0.3, 0.1, 0.2)),
    ],
    "step": [at((0.0, 0.0, 0.02), (0.0, 0.3, 0.0)), at((0.01, 0.002, 0.022), (0.1, 0.5, 0.0))],
    "groove": [at((0.0, 0.0, 0.01)), at((0.004, 0.001, 0.008), (0.1, 0.3, 0.2))],
    "rim": [at((0.0015, 0.0, 0.017), (0.05, 0.0, 0.0)), at((0.002, 0.001, 0.018), (0.0, 0.1, 0.1))],
}
SCENES = {"plate": block_on_plate, "step": block_over_step, "groove": bar_in_groove, "rim": peg_over_socket}


@pytest.mark.parametrize("friction", [SLIPPERY, ROUGH], ids=["slippery", "rough"])
@pytest.mark.parametrize("name", SCENES)
def test_forces_and_torques_balance_at_rest(name, friction):
    rig = SCENES[name](friction)
    for goal in GOALS[name]:
        for share in np.linspace(0.0, 1.0, 20):
            rig.go(np.concatenate([rig.pose[:3] + share * (goal[:3] - rig.pose[:3]), goal[3:]]))
            check_cones(rig, friction[0])
        settle(rig, goal)
        check_rest(rig, goal, friction[0])


# Turning


@pytest.mark.parametrize("turning", [1e-4, 1e-3, 1e-1])
def test_a_tilted_block_turns_as_far_as_its_spring_allows(turning):
    """On one edge the springs' energy has its minimum where the twist balances the push at its lever."""
    asked, depth = 0.2, 5e-3
    goal = at((0.0, 0.0, HALF * (np.cos(asked) + np.sin(asked)) - depth), (0.0, asked, 0.0))
    rig = block_on_plate(SLIPPERY, turning=turning, start=0.04)
    end = settle(rig, goal, 4000)

    def height(angle):
        return rig.safety + HALF * (np.cos(angle) + np.sin(angle))

    def twist(angle):  # of the spring, less that of the plate's push
        return turning * (asked - angle) - (height(angle) - goal[2]) * HALF * (np.cos(angle) - np.sin(angle))

    angle = brentq(twist, 0.0, asked) if twist(0.0) > 0.0 else 0.0
    assert (angle == 0.0) == (turning == 1e-4), "both ways to rest are tested"
    np.testing.assert_allclose(Rotation.from_quat(end[3:]).as_rotvec(), (0.0, angle, 0.0), rtol=0.0, atol=2e-6)
    np.testing.assert_allclose(end[:3], (0.0, 0.0, height(angle)), rtol=0.0, atol=2 * unopened(rig))
    check_rest(rig, goal, 0.0)


# Jobs of a hand


def test_a_tilted_peg_finds_its_way_to_the_floor():
    rig = peg_over_socket((0.05, 0.05))
    for k in range(3000):
        rig.go(at((0.0005, 0.0, 0.03 - 1.2e-5 * k), (0.05, 0.0, 0.0)))
        check_cones(rig, 0.05)
        if k % 20 == 0:
            assert rig.faults() == [], k
    end = rig.pose
    assert abs(end[2] - rig.safety) <= unopened(rig)
    assert np.abs(end[:2]).max() <= 1e-4


def test_a_peg_beside_its_hole_jams_by_friction():
    rig = peg_over_socket((0.5, 0.4))
    for k in range(2000):
        goal = at((0.001, 0.0, 0.03 - 1.2e-5 * k), (0.03, 0.0, 0.0))
        rig.go(goal)
        check_cones(rig, 0.5)
        if k % 20 == 0:
            assert rig.faults() == [], k
    end = settle(rig, goal)
    assert end[2] > 0.018, "it hangs on the rim"
    for _ in range(300):
        assert np.array_equal(rig.go(goal), end)
    check_rest(rig, goal, 0.5)


@pytest.mark.parametrize("friction", [SLIPPERY, ROUGH], ids=["slippery", "rough"])
def test_a_slot_too_narrow_for_the_safety_distance_is_no_vice(friction):
    """Both walls are nearer than eps_safety: the tool goes along between them, and they do not push ever more."""
    wall = box((0.1, 0.01, 0.03))
    room = 1.4 * EPS[1]
    block = (0.02, 0.01, 0.01)
    rig = MeshTool(
        box(block),
        [wall, wall],
        at((-0.05, 0.0, 0.0)),
        poses=[at((0.0, side * (0.02 + room), 0.0)) for side in (1, -1)],
        turning=TURNING,
        friction=friction,
    )
    aside = np.array((0.0, 1e-3, 0.0))
    largest = []
    for k in range(1200):
        goal = at(np.array((-0.05 + 1e-4 * min(k, 1000), 0.0, 0.0)) + aside * np.sin(0.01 * k), (0.0, 0.0, 0.01))
        pose = rig.pose
        rig.go(goal)
        check_cones(rig, friction[0])
        check_energy(rig, goal, pose)
        largest.append(split(rig)[0].max(initial=0.0))
        if k % 20 == 0:
            assert rig.faults() == [], k
        assert abs(rig.pose[1]) < 2 * room
    # What holds it back is friction of the hand's own pull: 1 mm of way and 0.01 rad at a lever of 2 cm.
    assert abs(rig.pose[0] - 0.05) <= friction[0] * 3e-3 + STANDSTILL * rig.alert
    assert max(largest[600:]) <= 1.05 * max(largest[:600])


def test_walls_that_are_too_near_do_not_move_a_tool_at_rest():
    wall = box((0.1, 0.01, 0.03))
    room = 1.4 * EPS[1]
    rig = MeshTool(
        box((0.02, 0.01, 0.01)),
        [wall, wall],
        at((0.0, 0.2 * EPS[1], 0.0)),
        poses=[at((0.0, side * (0.02 + room), 0.0)) for side in (1, -1)],
        turning=TURNING,
    )
    end = settle(rig, at((0.0, 0.0, 0.0)))
    np.testing.assert_allclose(end[:3], 0.0, rtol=0.0, atol=unopened(rig))
    assert rig.faults() == []


@pytest.mark.parametrize("friction", [(0.1, 0.1), (0.3, 0.3), ROUGH, (0.5, 0.4)], ids=str)
def test_a_peg_that_is_twisted_in_its_hole_is_not_squeezed_ever_more(friction):
    """Where friction wedges it, contacts may press on one another by any amount, but the hand pays for no more.

    Without friction the levers of the peg make a push less than 6 times the pull; wedges may need some of that.
    """
    rig = peg_over_socket(friction)
    for k in range(600):
        way = 0.003 * np.sin((0.013 * k, 0.021 * k, 0.03 * k)) + (0.0015, 0.0, 0.017)
        goal = at(way, 0.2 * np.array((np.sin(0.011 * k), np.sin(0.017 * k), np.cos(0.005 * k))))
        before = rig.pose
        rig.go(goal)
        check_cones(rig, friction[0])
        twist = turned(goal, before)
        pull = np.linalg.norm(np.concatenate([goal[:3] - before[:3], np.sqrt(0.5 * TURNING) * twist]))
        assert split(rig)[0].max(initial=0.0) <= 100.0 * pull, k
        if not rig.report["degraded"]:
            check_energy(rig, goal, before)
        if k % 20 == 0:
            assert rig.faults() == [], k


# What holds everywhere


def check_energy(rig: MeshTool, goal: np.ndarray, pose: np.ndarray) -> None:
    """Contacts push by no more than the springs pull, in the norm of the springs; pose: of the step's start.

    With r the pushes, u the velocities after and q those before them: r . u <= 0 by Coulomb, W r = u - q, and q is the
    wanted motion plus gaps that are left, which are positive; so r . W r <= - r . q <= sqrt(r . W r) |wanted|.
    """
    turning = rig.model.world["turning"][0]
    force, torque = pushed(rig, pose)
    pull, twist = goal[:3] - pose[:3], turned(goal, pose)
    assert np.sqrt(force @ force + torque @ torque / turning) <= (1.0 + 1e-6) * np.sqrt(
        pull @ pull + turning * twist @ twist
    )


def check_nearest(rig: MeshTool, goal: np.ndarray, pose: np.ndarray) -> None:
    """Without friction: the pushes turn the wanted motion into the nearest one that closes no gap beyond eps_safety.

    Nearest in the norm of the springs, by Lawson and Hanson's least distance programming (one problem of scipy's nnls).
    """
    turning = np.sqrt(rig.model.world["turning"][0])
    contacts = rig.contacts
    arms = contacts["point"] + contacts["gap"][:, None] * contacts["normal"] - pose[:3]
    rows = np.hstack([contacts["normal"], np.cross(arms, contacts["normal"]) / turning])
    wanted = np.concatenate([goal[:3] - pose[:3], turning * turned(goal, pose)])
    size = np.linalg.norm(wanted)
    least = (-np.maximum(contacts["gap"] - rig.safety, 0.0) - rows @ wanted) / size
    inputs = np.vstack([rows.T, least])
    weights, _ = nnls(inputs, np.eye(7)[6])
    rest = inputs @ weights - np.eye(7)[6]
    nearest = -size * rest[:6] / rest[6]
    force, torque = pushed(rig, pose)
    np.testing.assert_allclose(np.concatenate([force, torque / turning]), nearest, rtol=0.0, atol=1e-5 * size)


@pytest.mark.parametrize("friction", [SLIPPERY, ROUGH], ids=["slippery", "rough"])
@pytest.mark.parametrize("budget", [FULL, (2000, 8, 3)], ids=["full", "small"])
def test_a_hand_wanders_into_a_bumpy_body(friction, budget):
    random = np.random.default_rng(5)
    tool, body = star(random, 0.3, 2), star(random, 0.3, 3)
    rig = MeshTool(
        (tool[0] * 0.03, tool[1]),
        [(body[0] * 0.05, body[1])],
        at((0.0, 0.0, 0.12)),
        turning=TURNING,
        friction=friction,
        budget=budget,
    )
    centre, turn = np.array((0.0, 0.0, 0.12)), Rotation.identity()
    speed, spin = np.zeros(3), np.zeros(3)
    touched = judged = 0
    for k in range(400):
        speed = 0.95 * speed + random.normal(0.0, 2e-4, 3) + 2e-3 * (np.array((0.0, 0.0, 0.05)) - centre)
        spin = 0.95 * spin + random.normal(0.0, 3e-3, 3)
        centre, turn = centre + speed, Rotation.from_rotvec(spin) * turn
        goal = np.concatenate([centre, turn.as_quat()])
        before = rig.pose
        after = rig.go(goal)
        check_cones(rig, friction[0])
        if not rig.report["degraded"]:
            check_energy(rig, goal, before)
            if friction == SLIPPERY and rig.report["contact_count"] > 0:
                check_nearest(rig, goal, before)
        near = rig.report["contact_count"] > 0
        touched += bool((split(rig)[0] > 0.0).any())
        if near and not np.array_equal(before, after):
            judged += 1
            assert rig.faults() == [], k
    assert touched > 150 and judged > 100


@pytest.mark.parametrize("budget", [SMALL, (1000, 8, 1), (200, 8, 50)], ids=str)
@pytest.mark.parametrize("name", ["plate", "groove", "step"])
def test_small_budgets_lead_to_the_same_place_without_faults(name, budget):
    """Without friction there is one place of rest, and a few units or one sweep per step get there as well."""
    goal = GOALS[name][0]
    full = SCENES[name](SLIPPERY)
    expected = settle(full, goal)
    rig = SCENES[name](SLIPPERY, budget)
    for k in range(1500):
        rig.go(goal)
        check_cones(rig, 0.0)
        if k % 50 == 0:
            assert rig.faults() == [], k
    assert rig.faults() == []
    near = 2 * unopened(rig)
    np.testing.assert_allclose(rig.pose[:3], expected[:3], rtol=0.0, atol=near)
    np.testing.assert_allclose(turned(expected, rig.pose), 0.0, rtol=0.0, atol=near / 0.01)  # of contacts 1 cm aside


def lively(k: int) -> np.ndarray:
    """A goal that drags a block to and fro, presses, lifts and turns it."""
    way = (0.02 * np.sin(0.02 * k), 0.01 * np.sin(0.033 * k), HALF - 3e-3 + 4e-3 * np.sin(0.05 * k))
    return at(way, (0.1 * np.sin(0.07 * k), 0.1 * np.cos(0.04 * k), 0.2 * np.sin(0.01 * k)))


def digest(rig: MeshTool, first: int, last: int) -> str:
    bits = hashlib.sha256()
    for k in range(first, last):
        rig.go(lively(k))
        bits.update(rig.bits)
    return bits.hexdigest()


@pytest.mark.parametrize("budget", [FULL, SMALL], ids=["full", "small"])
def test_same_goals_give_the_same_bits(budget):
    """In a second run, and from a snapshot on; it holds what a step needs to know of the one before."""
    first, second = block_on_plate(budget=budget), block_on_plate(budget=budget)
    assert digest(first, 0, 200) == digest(second, 0, 200)
    touch = np.zeros(1, TOUCH)
    packed = pack_snapshot(first.state, touch)
    expected = digest(first, 200, 400)
    second.state, _ = unpack_snapshot(packed.tobytes(), second.model)
    assert second.state.proxy.tobytes() != first.state.proxy.tobytes()
    assert digest(second, 200, 400) == expected
    assert second.state.contact_memory.tobytes() == first.state.contact_memory.tobytes()
    second.state, _ = unpack_snapshot(packed.tobytes(), second.model)
    if budget == FULL:
        second.state.contact_memory["rows"]["push"] = 0.0
        assert digest(second, 200, 400) != expected
