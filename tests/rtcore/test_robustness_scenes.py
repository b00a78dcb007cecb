"""The scenes in which collision detection is known to fail: each holds where the usual method provably does not.

Where it fits, the usual method stands beside it (penalty, poses tested one by one, way out by the shortest way) and
must fail, or the scene would show nothing. Source: Redon 2002, 1.2.3, 2.5, 5.1 and 6.1 (scenes B05, B06 and B17-B25 of
the thesis' digest). B04 (a body dropped on a ground) belongs to contact dynamics: nothing here falls.
"""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pybullet_data
import pytest
import trimesh
from mesh_tool_rig import EPS, MeshTool, at, too_near
from probe_scenes import Probe, box, grid
from scipy.linalg import sqrtm
from scipy.optimize import nnls
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from rtcore import motion
from rtcore.collision.first_contact import first_contact
from rtcore.collision.pair_state import make_query_work
from rtcore.tables import (
    COUNTERS,
    DEGRADED_SWEEP,
    HIT,
    QUERY,
    QUERY_CULL,
    QUERY_ORDER,
    QUERY_OWNED,
    QUERY_PASS_TIME,
    RELATIVE,
)
from tools.exact.intersect import judge

ALERT, SAFETY, BREAK = EPS


class Question:
    """When does a tool that goes from pose to pose in one step first come within the alert distance of a body?"""

    def __init__(self, rig: MeshTool, body_id: int = 0):
        self.rig = rig
        self.relative = np.zeros(1, RELATIVE)
        self.query = np.zeros(1, QUERY)
        self.query["separation"] = rig.alert
        self.query["position_tolerance"] = 1e-3 * rig.alert
        self.query["time_tolerance"] = 1e-9
        self.query["limit"] = 1.0
        self.query["units"] = 1_000_000
        self.query["flags"] = QUERY_PASS_TIME | QUERY_ORDER | QUERY_OWNED | QUERY_CULL
        self.work, self.counters, self.answer = make_query_work(), np.zeros(1, COUNTERS), np.zeros(1, HIT)
        meshes = rig.model.meshes["node_first"]
        self.roots = int(meshes[rig.model.bodies["mesh_id"][body_id]]), int(meshes[rig.model.world["tool_mesh_id"][0]])
        body = rig.model.bodies[body_id]
        motion.still(self.relative[0]["first"], tuple(body["position"]), tuple(body["orientation"]))

    def ask(self, start, end) -> np.void:
        """HIT of the screw about the tip centre from a pose (7,) to a pose."""
        second, turn = self.relative[0]["second"], tuple(start[3:])
        motion.between(second, motion.SCREW, tuple(start[:3]), turn, tuple(end[:3]), tuple(end[3:]), tuple(start[:3]))
        tables = self.rig.model.nodes, self.rig.model.triangles, *self.roots
        # fmt: off
        first_contact(
            *tables, self.relative[0], self.query[0], self.work[0], self.counters[0], self.answer[0],
        )
        # fmt: on
        assert not self.answer[0]["truncated"]
        return self.answer[0]

    def pose(self, u: float) -> np.ndarray:
        """The tool's pose (7,) during the motion last asked about."""
        return np.concatenate(motion.pose(self.relative[0]["second"], u))


def scaled(name: str, size: float) -> tuple[np.ndarray, np.ndarray]:
    """A mesh shipped with pybullet, about its middle, `size` m in its longest direction."""
    mesh = trimesh.load(Path(pybullet_data.getDataPath()) / name, force="mesh", process=False)
    vertices = np.asarray(mesh.vertices) - np.mean(mesh.bounds, axis=0)
    return vertices * (size / mesh.extents.max()), np.asarray(mesh.faces)


def shaped(mesh: trimesh.Trimesh) -> tuple[np.ndarray, np.ndarray]:
    return np.array(mesh.vertices), np.array(mesh.faces)


def prism(sides: int, radius: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    """A regular prism about z; its caps are strips, since the triangles of fans would all be near each other."""
    angle = 2.0 * math.pi * np.arange(sides) / sides
    ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), 0.0 * angle])
    vertices = np.concatenate([ring - (0.0, 0.0, 0.5 * height), ring + (0.0, 0.0, 0.5 * height)])
    i = np.arange(sides)
    j = np.roll(i, -1)
    walls = np.concatenate([np.stack((i, j, j + sides), axis=1), np.stack((i, j + sides, i + sides), axis=1)])
    zigzag = [(k + 1) // 2 if k % 2 else (sides - k // 2) % sides for k in range(sides)]
    top = np.array([zigzag[k : k + 3] if k % 2 == 0 else zigzag[k : k + 3][::-1] for k in range(sides - 2)])
    return vertices, np.concatenate([walls, top + sides, top[:, ::-1]])


def needle() -> tuple[np.ndarray, np.ndarray]:
    """A cone 40 mm long whose point, at the origin, looks down."""
    cone = trimesh.creation.cone(0.003, 0.04, sections=8)
    return np.array(cone.vertices) * (1, -1, -1) + (0.0, 0.0, 0.04), np.array(cone.faces)


# --- B05, B06: one body against another, in one step ------------------------------------------------------------------


def test_b05_a_body_moved_until_it_stops_is_at_the_alert_distance_where_the_hand_is_inside():
    """Moved against a duck from all sides the bunny stops within 1 % of the alert distance; its ghost overlaps."""
    rig = MeshTool(scaled("bunny.obj", 0.1), [scaled("duck.obj", 0.1)], at((0.0, 0.0, 0.3)))
    question = Question(rig)
    generator = np.random.default_rng(5)
    for _ in range(12):
        way = generator.normal(size=3)
        start = at(0.2 * way / np.linalg.norm(way), generator.uniform(-1.5, 1.5, 3))
        goal = at(generator.uniform(-0.01, 0.01, 3), generator.uniform(-1.5, 1.5, 3))
        hit = question.ask(start, goal)
        stopped = judge(rig.here(question.pose(hit["time"])), rig.others)
        assert hit["found"] and not stopped.meeting
        assert rig.least <= stopped.lower and stopped.upper <= 1.01 * ALERT
        assert judge(rig.here(goal), rig.others).meeting


def test_b06_nothing_is_jumped_over_in_one_step():
    """A turning bunny that a single step takes right through a thin sheet is stopped before it, every time."""
    rig = MeshTool(scaled("bunny.obj", 0.1), [box(0.5, 0.5, 0.001)], at((0.0, 0.0, 0.3)))
    question = Question(rig)
    generator = np.random.default_rng(6)
    missed_by_poses = 0
    for _ in range(60):
        start = at((*generator.uniform(-0.1, 0.1, 2), 0.15), generator.uniform(-1.5, 1.5, 3))
        end = at((*generator.uniform(-0.1, 0.1, 2), -generator.uniform(0.0, 0.4)), generator.uniform(-1.5, 1.5, 3))
        hit = question.ask(start, end)
        assert hit["found"]
        stopped = rig.here(question.pose(hit["time"]))
        assert stopped[..., 2].min() >= 0.0005 + rig.least and too_near(stopped, rig.others, rig.least) == []
        missed_by_poses += not too_near(rig.here(end), rig.others, 0.0)
    assert missed_by_poses > 20, "no step was long enough to jump"


# --- B17: the way out of a thin block ---------------------------------------------------------------------------------


def way_out(goal: np.ndarray, half: float) -> float:
    """The direction along z in which the nearest face of a plate of thickness 2 half lies: the discrete answer."""
    return 1.0 if half - goal[2] < goal[2] + half else -1.0


@pytest.mark.parametrize("speed", [1e-4, 1e-3, 1e-2, 1.0], ids=lambda v: f"{v:g}m")
@pytest.mark.parametrize("kind", ["probe", "mesh"])
def test_b17_a_point_driven_into_a_thin_block_leaves_on_its_entry_side(kind, speed):
    """However far and fast the hand goes through, what holds the point pushes it back to the side it came from."""
    half = 0.001
    plate = box(0.2, 0.2, 2 * half)
    start = np.array([0.003, 0.002, 0.01])
    if kind == "probe":
        probe = Probe([plate], start, radius=0.001)
    else:
        rig = MeshTool(needle(), [plate], at(start))
    generator = np.random.default_rng(17)
    wrong = pressed = 0
    goal = start.copy()
    for k in range(240):
        down = k < 160
        goal[2] = max(goal[2] - speed, -3.0) if down else goal[2] + (0.02 - goal[2]) / max(220 - k, 1)
        goal[:2] += generator.uniform(-1.0, 1.0, 2) * 1e-4
        if speed == 1e-4:  # slowly, then staying in the lower half of the block, nearer to the wrong face
            goal[2] = max(goal[2], -0.8 * half)
        if kind == "probe":
            position = probe.go(*goal)
            assert probe.clearance() >= probe.least
            assert position[2] >= half + probe.least
            sides = [probe.push[2]] if probe.push.any() else []
        else:
            rig.go(at(goal))
            tip = rig.pose[2]
            assert rig.here()[..., 2].min() >= half + rig.least
            assert tip >= half + rig.least
            sides = list(rig.contacts["normal"][:, 2])
        if down:
            pressed += len(sides) > 0
            assert all(side > 0.0 for side in sides)
            wrong += len(sides) > 0 and goal[2] < half and way_out(goal, half) < 0.0
    assert pressed > 40 and wrong > 20, "the shortest way out was never the wrong one"
    where = probe.position if kind == "probe" else rig.pose[:3]
    np.testing.assert_allclose(where, goal, atol=1e-12)


# --- B18: a peg in a hole with little clearance -----------------------------------------------------------------------

CLEARANCE = 5e-5
MASS, TICK = 0.05, 1e-3
HAND_STIFFNESS, HAND_DAMPING = 1000.0, 2.0


def hand_across(tick: int) -> float:
    """Where the hand wants the peg, m: shaken over 5 mm for two seconds, then at rest in the middle."""
    return 5e-3 * math.sin(2.0 * math.pi * 7.0 * tick * TICK) if tick < 2000 else 0.0


def pulled(x: float, v: float, tick: int, push: float = 0.0) -> float:
    """Speed of the peg after a tick (m/s) by the hand's spring and damper and another force (N)."""
    return v + TICK / MASS * (HAND_STIFFNESS * (hand_across(tick) - x) - HAND_DAMPING * v + push)


def test_b18_a_peg_between_two_walls_stays_quiet_where_penalty_forces_throw_it_about():
    """Peg, walls and hand are the same; forces from the depth at each tick grow without end, here nothing grows."""
    stiffness = HAND_STIFFNESS * 5e-3 / (0.2 * CLEARANCE)  # lets the hand's pull in by a fifth of the clearance
    x = v = 0.0
    farthest = []
    for k in range(400):
        depth = max(x - CLEARANCE, 0.0) + min(x + CLEARANCE, 0.0)
        v = pulled(x, v, k, -stiffness * depth)
        x += TICK * v
        farthest.append(abs(x))
    assert max(farthest[200:]) > 100.0 * CLEARANCE

    width = 0.01
    peg = box(width, 0.01, 0.03)
    walls = [
        (np.array(vertices) + (side * (0.5 * width + CLEARANCE + ALERT + 0.005), 0.0, 0.0), faces)
        for side in (-1.0, 1.0)
        for vertices, faces in [box(0.01, 0.04, 0.04)]
    ]
    rig = MeshTool(peg, walls, at((0.0, 0.0, 0.0)))
    x = v = 0.0
    places, speeds = [], []
    for k in range(2400):
        v = pulled(x, v, k)
        wanted = x + TICK * v
        tilt = 5e-4 * math.sin(2.0 * math.pi * 3.0 * k * TICK)
        deep = 2e-3 * math.sin(2.0 * math.pi * 1.0 * k * TICK)
        rig.go(at((wanted, 0.0, deep), (0.0, tilt, 0.0)))
        v = (rig.pose[0] - x) / TICK
        x = rig.pose[0]
        assert rig.faults() == []
        assert rig.report["degraded"] & DEGRADED_SWEEP == 0
        places.append(x)
        speeds.append(abs(v))
    places, speeds = np.array(places), np.array(speeds)
    assert np.abs(places).max() <= CLEARANCE
    assert np.ptp(places[:500]) > CLEARANCE, "the peg never went from wall to wall"
    assert speeds[1000:2000].max() <= 1.01 * speeds[:1000].max()
    assert speeds[2300:].max() < 1e-3 * speeds.max() and np.ptp(places[2300:]) < 0.01 * CLEARANCE


# --- B19: rings -------------------------------------------------------------------------------------------------------

RING, WIRE = 0.04, 0.005


def linking(pose: np.ndarray) -> int:
    """How often the centre line of a ring at a pose (7,) goes through the disc of the one at home, by sign."""
    angle = 2.0 * math.pi * np.arange(2001) / 2000
    line = Rotation.from_quat(pose[3:]).apply(RING * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle]))
    line += pose[:3]
    above = line[:, 2] > 0.0
    rows = np.flatnonzero(above[1:] != above[:-1])
    share = line[rows, 2] / (line[rows, 2] - line[rows + 1, 2])
    place = line[rows] + share[:, None] * (line[rows + 1] - line[rows])
    inside = np.hypot(place[:, 0], place[:, 1]) < RING
    return int(np.where(above[rows + 1], 1, -1)[inside].sum())


LINKED = at((RING, 0.0, 0.0), (0.5 * math.pi, 0.0, 0.0))
APART = at((0.15, 0.0, 0.0), (0.4, 0.0, 0.0))


@pytest.fixture(scope="module")
def rings():
    ring = shaped(trimesh.creation.torus(RING, WIRE, major_sections=32, minor_sections=8))
    return MeshTool(ring, [ring], LINKED)


@pytest.mark.parametrize("start", [LINKED, APART], ids=["linked", "apart"])
def test_b19_two_rings_are_never_linked_or_unlinked_in_one_step(rings, start):
    """The linking number of the centre lines is the same all along the way, for steps of any size and turn."""
    question = Question(rings)
    generator = np.random.default_rng(19)
    number = linking(start)
    assert abs(number) == (start is LINKED)
    jumped = 0
    pose = start
    for k in range(200):
        size = 10.0 ** generator.uniform(-3.0, 0.0)
        middle = (start, LINKED, pose)[k % 3]
        place = np.array(middle[:3]) + generator.uniform(-1.0, 1.0, 3) * 0.3 * size
        goal = at(place, generator.uniform(-1.0, 1.0, 3) * 3.0 * size)
        goal[3:] = (Rotation.from_quat(goal[3:]) * Rotation.from_quat(middle[3:])).as_quat()
        hit = question.ask(pose, goal)
        for u in np.linspace(0.0, hit["time"], 5):
            assert linking(question.pose(u)) == number
        jumped += linking(goal) != number and not too_near(rings.here(goal), rings.others, 0.0)
        pose = question.pose(hit["time"])
        pose[3:] /= np.linalg.norm(pose[3:])
        if k % 10 == 0:
            assert rings.faults(pose) == []
    assert jumped > 5, "poses tested one by one would have done as well"


def test_b19_linked_rings_stay_linked_however_the_hand_tears(rings):
    """The same in the loop, tick after tick, with goals up to a metre away."""
    rings.start(LINKED)
    generator = np.random.default_rng(20)
    went = 0.0
    for k in range(400):
        before = rings.pose
        size = 10.0 ** generator.uniform(-4.0, 0.0)
        rings.go(at(before[:3] + size * generator.uniform(-1, 1, 3), generator.uniform(-3, 3, 3)))
        went += np.linalg.norm(rings.pose[:3] - before[:3])
        assert linking(rings.pose) == linking(LINKED)
        if k % 4 == 0:
            assert rings.faults() == []
    assert went > 0.1


# --- B20: around a corner ---------------------------------------------------------------------------------------------

HALF = 0.03
CUBE = 0.02


def midway(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The pose (7,) halfway along the screw between two poses: a square root in SE(3)."""
    frames = []
    for pose in (start, end):
        frame = np.eye(4)
        frame[:3, :3], frame[:3, 3] = Rotation.from_quat(pose[3:]).as_matrix(), pose[:3]
        frames.append(frame)
    half = np.real(sqrtm(frames[1] @ np.linalg.inv(frames[0]))) @ frames[0]
    return np.concatenate([half[:3, 3], Rotation.from_matrix(half[:3, :3]).as_quat()])


def distance_to_cube(points: np.ndarray, half: float) -> float:
    """How near the nearest of points (n, 3) is to a cube about the origin, m; 0 inside."""
    return float(np.linalg.norm(np.maximum(np.abs(points) - half, 0.0), axis=-1).min())


@pytest.mark.parametrize("radius", [0.0, 0.002])
def test_b20_a_point_slides_from_face_to_face_and_never_into_the_corner(radius):
    """Dragged below the top face, past the edge and back in the tip comes down the side; its path stays outside."""
    probe = Probe([box(2 * HALF, 2 * HALF, 2 * HALF)], (0.0, 0.01, HALF + 0.01), radius=radius)
    way = [(0.0, 0.01, HALF - 0.004), (HALF + 0.003, 0.01, HALF - 0.004), (HALF - 0.004, 0.01, -0.01)]
    goal = probe.position
    for target in way:
        while np.linalg.norm(np.array(target) - goal) > 1e-9:
            step = np.array(target) - goal
            goal = goal + step * min(1.0, 5e-4 / np.linalg.norm(step))
            probe.go(*goal)
            assert probe.clearance() >= probe.least
            for start, end in pairwise(probe.path):
                assert distance_to_cube(np.linspace(start, end, 9), HALF) >= probe.least
    assert probe.position[0] >= HALF + probe.least and probe.position[2] < 0.0


@pytest.mark.parametrize("turn", [0.0, 0.25 * math.pi], ids=["square", "turning"])
@pytest.mark.parametrize("cut", [0.0, 5e-4, 12e-3], ids=["along", "shaving", "through"])
def test_b20_a_cube_goes_round_the_edge_of_another_and_no_corner_enters(cut, turn):
    """Over the top, past the edge and down the side; where the hand drives it into the corner, the cube waits there."""
    rig = MeshTool(box(CUBE, CUBE, CUBE), [box(2 * HALF, 2 * HALF, 2 * HALF)], at((0.0, 0.004, 0.06)))
    beside = HALF + 0.5 * CUBE * (math.sqrt(2.0) if turn else 1.0) + 1e-4
    out = (beside, 0.004, beside)
    way = [(0.0, 0.004, beside), out, (beside - cut, 0.004, beside - cut), out, (beside, 0.004, -0.01)]
    goal = np.array([0.0, 0.004, 0.06])
    waited = 0
    ends = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    for target in way:
        target = np.array(target)
        while np.linalg.norm(target - goal) > 1e-9:
            step = target - goal
            goal = goal + step * min(1.0, 3e-4 / np.linalg.norm(step))
            share = np.clip((goal[0] - goal[2] + beside) / beside, 0.0, 1.0)
            before = rig.pose
            rig.go(at(goal, (0.0, turn * share, 0.0)))
            waited += rig.report["fraction"] < 1.0
            for pose in (midway(before, rig.pose), rig.pose):
                turned = Rotation.from_quat(pose[3:])
                assert distance_to_cube(turned.apply(0.5 * CUBE * ends) + pose[:3], HALF) >= rig.least
                assert distance_to_cube(turned.inv().apply(HALF * ends - pose[:3]), 0.5 * CUBE) >= rig.least
            assert rig.faults() == []
    assert (waited > 0) == (cut > (7e-3 if turn else 1e-4))
    np.testing.assert_allclose(rig.pose[:3], way[-1], atol=1e-9)


# --- B21: tables ------------------------------------------------------------------------------------------------------


def table(legs: int) -> tuple[np.ndarray, np.ndarray]:
    """A top of 0.3 by 0.2 m on legs in two rows whose feet fill the same outline; with two legs, on two planks."""
    parts = [trimesh.creation.box((0.3, 0.2, 0.02))]
    if legs == 2:
        feet = [((x, 0.0), (0.02, 0.2)) for x in (-0.14, 0.14)]
    else:
        feet = [((x, y), (0.02, 0.02)) for x in np.linspace(-0.14, 0.14, legs // 2) for y in (-0.09, 0.09)]
    for (x, y), size in feet:
        leg = trimesh.creation.box((*size, 0.1))
        parts.append(leg.apply_translation((x, y, -0.07)))
    return shaped(trimesh.util.concatenate(parts))


def hull_area(points: np.ndarray) -> float:
    return float(ConvexHull(points).volume)


@pytest.mark.parametrize("legs", [2, 4, 6, 8])
def test_b21_a_table_is_carried_the_same_on_any_number_of_legs(legs):
    """It stops at the same height, its contacts span the outline of the feet, and they can hold up its weight."""
    rig = MeshTool(table(legs), [box(0.6, 0.6, 0.05)], at((0.01, 0.02, 0.16)))
    for k in range(300):
        rig.go(at((0.01, 0.02, 0.16 - 2e-4 * k)))
    assert rig.faults() == []
    # The floor's top is at 0.025, the feet 0.12 below the tool's origin.
    assert 0.0 <= rig.pose[2] - (0.025 + 0.12 + ALERT) <= 1e-3 * ALERT + 1e-12
    contacts = rig.contacts
    np.testing.assert_allclose(contacts["normal"], np.broadcast_to((0.0, 0.0, 1.0), (len(contacts), 3)), atol=1e-9)
    assert np.abs(contacts["gap"] - (rig.pose[2] - 0.145)).max() < 1e-12
    outline = np.array([[x, y] for x in (-0.15, 0.15) for y in (-0.1, 0.1)]) + (0.01, 0.02)
    place = contacts["point"][:, :2]
    assert hull_area(place) == pytest.approx(hull_area(outline), rel=1e-6)
    assert hull_area(np.concatenate([place, outline])) == pytest.approx(hull_area(outline), rel=1e-6)
    # Whatever is loaded onto the table within its outline, forces that only push can carry it: equal wrenches.
    for load in (np.array([0.01, 0.02]), *(0.98 * (outline - (0.01, 0.02)) + (0.01, 0.02))):
        matrix = np.vstack([np.ones(len(place)), place.T - load[:, None]])
        forces, rest = nnls(matrix, np.array([9.81, 0.0, 0.0]))
        assert rest < 1e-9 and forces.sum() == pytest.approx(9.81, rel=1e-9)
    outside = np.array([0.01 + 0.16, 0.02])
    assert nnls(np.vstack([np.ones(len(place)), place.T - outside[:, None]]), np.array([9.81, 0.0, 0.0]))[1] > 1e-3


# --- B22: many contacts -----------------------------------------------------------------------------------------------


def sharp(rig: MeshTool, triangle: int, feature: int) -> bool:
    """Is a feature of a triangle a corner or an edge of the solid, and not a line drawn on one of its faces?"""
    normals = rig.model.triangles["normal"]
    row = rig.model.triangles[triangle]
    mesh = next(m for m in rig.model.meshes if 0 <= triangle - m["triangle_first"] < m["triangle_count"])
    part = slice(mesh["triangle_first"], mesh["triangle_first"] + mesh["triangle_count"])
    if feature == 6:
        return False
    ids = rig.model.triangles["vertex_ids" if feature < 3 else "edge_ids"][part]
    number = row["vertex_ids"][feature] if feature < 3 else row["edge_ids"][feature - 3]
    around = normals[part][(ids == number).any(axis=1)]
    return bool((around @ around[0]).min() < 1.0 - 1e-9)


AMPLE = (500_000, 8, 50)


def pressed_down(tool, body, height: float, turn: float) -> MeshTool:
    """A tool on a body, turned about z; heights from the middle of one to the middle of the other.

    The budget is enough to list all that is near in each tick, so that it can be counted.
    """
    rig = MeshTool(tool, [body], at((0.0, 0.0, height + 1e-3), (0.0, 0.0, turn)), budget=AMPLE)
    for k in range(30):
        rig.go(at((0.0, 0.0, height + 1e-3 - 5e-5 * k), (0.0, 0.0, turn)))
    assert rig.faults() == []
    return rig


def solid_contacts(rig: MeshTool) -> np.ndarray:
    """Places (n, 2) of all pairs of features of the solids that are within reach, the lines on their faces left out."""
    places = []
    for row in rig.proximities:
        kinds = row["first_feature"], row["second_feature"]
        one, two = sharp(rig, row["first_triangle"], kinds[0]), sharp(rig, row["second_triangle"], kinds[1])
        edges = 3 <= kinds[0] < 6 and 3 <= kinds[1] < 6 and one and two
        if edges or (kinds[0] < 3 and one) or (kinds[1] < 3 and two):
            places.append(row["point_first"][:2])
    return np.array(places)


def test_b22_two_nearly_aligned_cubes_touch_in_eight_points():
    """Turned a little on top of each other their faces overlap in an octagon: its eight corners and nothing else."""
    side, turn = 0.1, math.radians(7.0)
    rig = pressed_down(box(side, side, side), box(side, side, side), side, turn)
    places = solid_contacts(rig)
    assert len(places) == 8
    # Where the edge y = side / 2 of one crosses two of the lines that the turned square lies between, and so on around.
    c, s = math.cos(turn), math.sin(turn)
    half = 0.5 * side
    quarter = np.array([[0.0, 1.0], [-1.0, 0.0]])
    one = half * np.array([[-(1.0 - c) / s, 1.0], [(1.0 - s) / c, 1.0]])
    expected = np.concatenate([one @ np.linalg.matrix_power(quarter, k) for k in range(4)])
    np.testing.assert_allclose(in_order(places), in_order(expected), atol=1e-9)
    assert hull_area(rig.contacts["point"][:, :2]) == pytest.approx(hull_area(places), rel=1e-3)


def in_order(points: np.ndarray) -> np.ndarray:
    return points[np.argsort(np.arctan2(points[:, 1], points[:, 0]))]


def test_b22_prisms_of_n_sides_touch_in_twice_n_points_at_a_cost_no_more_than_in_step_with_n():
    """2 n crossings for n = 4 .. 48; the units of a tick grow as m log m with the number m of contacts, within 2."""
    cost = {}
    for sides in (4, 6, 12, 24, 48):
        tool = prism(sides, 0.2, 0.03)
        turn = 0.4 * math.pi / sides
        rig = pressed_down(tool, tool, 0.03, turn)
        places = solid_contacts(rig)
        assert len(places) == 2 * sides
        middle = 0.2 * math.cos(math.pi / sides)
        expected = [middle / math.cos(0.5 * turn), middle / math.cos(math.pi / sides - 0.5 * turn)]
        np.testing.assert_allclose(np.sort(np.linalg.norm(places, axis=1)), np.repeat(expected, sides), rtol=1e-6)
        rig.go(rig.pose - (0, 0, 1e-5, 0, 0, 0, 0))
        assert rig.report["fraction"] < 1.0
        cost[2 * sides] = int(rig.report["units_used"])
    least = min(cost)
    growth = [units / cost[least] * least * math.log2(least) / (m * math.log2(m)) for m, units in cost.items()]
    assert max(growth) <= 2.0, cost


# --- B23: a particle on a slope ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.0, 0.003])
@pytest.mark.parametrize("share", [0.5, 0.99, 1.01, 1.6])
def test_b23_a_particle_on_a_slope_holds_up_to_the_static_threshold_and_slides_by_the_kinetic_law(share, radius):
    """Pulled straight down on a slope of angle a it stays as long as tan a < mu static; else it slides downhill until
    what the ground pushes makes the kinetic friction angle with the normal (Coulomb).

    The tip has no mass, so this is the friction of a particle at rest and in slow motion; a bounce (restitution) needs
    speed and belongs to contact dynamics.
    """
    static, kinetic = 0.4, 0.25
    angle = math.atan(share * static)
    turn = (0.0, math.sin(0.5 * angle), 0.0, math.cos(0.5 * angle))
    normal = np.array([math.sin(angle), 0.0, math.cos(angle)])
    downhill = np.array([math.cos(angle), 0.0, -math.sin(angle)])
    probe = Probe(
        [grid(8, 0.4)], 0.002 * normal + radius * normal, radius=radius, friction=(static, kinetic),
        poses=[((0.0, 0.0, 0.0), turn)],
    )  # fmt: skip
    resting = (probe.radius + probe.safety) * normal
    probe.go(*resting)
    probe.go(*resting)
    rest = probe.position
    pull = 0.01
    for k in range(40):  # the pull grows from nothing, straight down
        probe.go(*(rest + min(k / 20.0, 1.0) * np.array([0.0, 0.0, -pull])))
        assert probe.clearance() >= probe.least
    slid = (probe.position - rest) @ downhill
    if share < 1.0:
        np.testing.assert_array_equal(probe.position, rest)
    else:
        assert slid > 0.0
        # the goal stands still, so the slide ends where the pull left along the slope is what friction can hold
        assert slid == pytest.approx(pull * (math.sin(angle) - kinetic * math.cos(angle)), rel=1e-3, abs=2e-6)
        push = probe.push
        assert -(push @ downhill) / (push @ normal) == pytest.approx(kinetic, rel=1e-3)
    assert abs((probe.position - rest) @ normal) < 1e-6 * 0.01 + probe.safety * 1e-3


# --- B24: along a plane ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("above", [1e-2, 1e-3], ids=["a hundredth", "a thousandth"])
def test_b24_a_block_that_slides_just_above_the_separation_never_stalls(above):
    """Each tick is executed to the full and ends at its goal, however long it goes on, with turns about the normal."""
    height = 0.025 + 0.02 + ALERT * (1.0 + above)
    rig = MeshTool(box(0.06, 0.1, 0.04), [box(0.6, 0.6, 0.05)], at((0.0, 0.0, height)))
    for k in range(1500):
        t = 1e-3 * k
        goal = at((0.15 * math.sin(2.0 * t), 0.1 * math.sin(3.0 * t), height), (0.0, 0.0, 0.8 * math.sin(1.5 * t)))
        rig.go(goal)
        assert rig.report["fraction"] == 1.0 and rig.report["degraded"] & DEGRADED_SWEEP == 0
        np.testing.assert_allclose(rig.pose, goal, atol=1e-15)
    assert rig.faults() == []


def test_b24_a_block_that_was_pressed_onto_a_plane_can_slide_and_leave():
    """What stopped it is a distance that must not shrink: a motion that leaves it as it is goes through, and so does
    one that lifts; one that presses on does not move it at all."""
    rig = MeshTool(box(0.06, 0.1, 0.04), [box(0.6, 0.6, 0.05)], at((0.0, 0.0, 0.06)))
    for k in range(100):
        rig.go(at((0.0, 0.0, 0.06 - 2e-4 * k)))
    height = rig.pose[2]
    assert height - 0.045 == pytest.approx(ALERT, rel=1.1e-3)
    stalled = 0
    for k in range(500):
        goal = at((3e-4 * (k + 1), 0.0, height))
        rig.go(goal)
        stalled += rig.report["fraction"] < 1.0
    assert stalled == 0
    np.testing.assert_allclose(rig.pose, goal, atol=1e-12)
    rig.go(at((0.15, 0.0, height - 1e-3)))
    assert rig.pose[2] >= 0.045 + rig.least
    rig.go(at((0.15, 0.0, height + 1e-3)))
    assert rig.report["fraction"] == 1.0


# --- B25: fast objects ------------------------------------------------------------------------------------------------


def test_b25_a_fast_body_meets_the_same_contact_whole_and_in_halves():
    """The first contact of a long step and of its two halves are the same moment, up to what tolerance brings."""
    star = trimesh.creation.icosphere(subdivisions=2, radius=0.03)
    generator = np.random.default_rng(25)
    bumpy = np.asarray(star.vertices) * generator.uniform(0.7, 1.1, (len(star.vertices), 1)), np.asarray(star.faces)
    rig = MeshTool(bumpy, [scaled("duck.obj", 0.1)], at((0.0, 0.0, 0.3)))
    question = Question(rig)
    met = compared = 0
    for _ in range(80):
        way = generator.normal(size=3)
        way *= 0.4 / np.linalg.norm(way)
        turn = generator.uniform(-1.0, 1.0, 3)
        start = at(way, turn)
        end = at(-way + generator.uniform(-0.03, 0.03, 3), turn + generator.uniform(-0.2, 0.2, 3))
        whole = question.ask(start, end).copy()
        middle = question.pose(0.5)
        middle[3:] /= np.linalg.norm(middle[3:])
        at_contact = question.pose(whole["time"])
        speed = -np.array(
            motion.relative_velocity(question.relative[0], whole["time"], tuple(whole["point"]))
        ) @ whole["normal"] if whole["found"] else 0.0  # fmt: skip
        assert rig.faults(at_contact) == []
        first = question.ask(start, middle).copy()
        time = 0.5 * first["time"]
        found = first["found"]
        if not found:
            second = question.ask(middle, end).copy()
            time, found = 0.5 + 0.5 * second["time"], second["found"]
        assert found == whole["found"]
        met += found
        if found and speed > 0.1:  # m per step; where bodies graze, the moment itself is not sharp
            compared += 1
            tolerance = 2.0 * (question.query["position_tolerance"][0] / speed + question.query["time_tolerance"][0])
            assert abs(time - whole["time"]) <= tolerance
    assert met > 40 and compared > 30


def test_b25_a_fast_tool_ends_where_one_with_half_the_step_ends():
    """A hand that crosses the scene in one tick, in two or in sixteen: the tool is stopped at the same place."""
    ends = []
    for ticks in (1, 2, 16):
        rig = MeshTool(scaled("bunny.obj", 0.05), [box(0.2, 0.2, 0.002)], at((0.0, 0.0, 0.04)), budget=(200000, 8, 50))
        for k in range(1, ticks + 1):
            rig.go(at((0.0, 0.0, 0.04 - 0.005 * k / ticks)))
        for _ in range(60):
            rig.go(at((0.0, 0.0, -0.05)))
        assert rig.faults() == []
        ends.append(rig.pose)
    np.testing.assert_allclose(ends[1:], np.broadcast_to(ends[0], (2, 7)), atol=1.1e-3 * ALERT)
    assert ends[0][2] > 0.01
    assert judge(MeshTool.here(rig), rig.others).upper <= 1.01 * ALERT
