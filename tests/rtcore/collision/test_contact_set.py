"""The contact set of a tool mesh: no ghosts, nothing lost that carries load, and contacts that keep their names."""

from itertools import pairwise

import numpy as np
import pytest
import trimesh
from mesh_pairs import least_distance
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from rtcore.collision.contact_set import ENTRY, SAME_GAP, update_contacts
from rtcore.collision.features import FACE
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, DEGRADED_CONTACTS, MAX_CONTACTS, STEP_REPORT

EPS = (1e-4, 2e-4, 5e-4)
GAP = 3e-4
IDENTITY = ["body_id", "face_id", "feature", "tool_face_id", "tool_feature"]
LEVEL = (0.0, 0.0, 0.0, 1.0)


def box(x, y, z, times=0):
    shape = trimesh.creation.box((x, y, z))
    for _ in range(times):
        shape = shape.subdivide()
    return np.array(shape.vertices), np.array(shape.faces)


def prism(corners, radius, height, turned=0.0):
    shape = trimesh.creation.cylinder(radius, height, sections=corners)
    shape.apply_transform(trimesh.transformations.rotation_matrix(turned, (0, 0, 1)))
    return np.array(shape.vertices), np.array(shape.faces)


def sheet(cells, size):
    """Open square of triangles in the plane z = 0."""
    line = np.linspace(-size / 2, size / 2, cells + 1)
    x, y = np.meshgrid(line, line)
    i = np.arange((cells + 1) ** 2).reshape(cells + 1, cells + 1)
    a, b, c, d = i[:-1, :-1].ravel(), i[:-1, 1:].ravel(), i[1:, 1:].ravel(), i[1:, :-1].ravel()
    return np.c_[x.ravel(), y.ravel(), 0.0 * x.ravel()], np.r_[np.c_[a, b, c], np.c_[a, c, d]]


class Tool:
    """A tool mesh among bodies, moved step by step."""

    def __init__(self, tool, bodies, start=(0.0, 0.0, 1.0), eps=EPS, places=None):
        builder = ModelBuilder()
        for mesh, place in zip(bodies, places or [(0.0, 0.0, 0.0)] * len(bodies), strict=True):
            builder.add_body(builder.add_mesh(*build_tree(*mesh)), place)
        self.model = builder.build(0.0, (0.0, 0.0, 0.0), *eps, builder.add_mesh(*build_tree(*tool)))
        self.state = make_state(self.model, start)
        self.record = np.zeros(1, STEP_REPORT)

    def move(self, position, orientation=LEVEL):
        """Contacts where the tool is, while it moves on to a pose."""
        asked, budget = make_input(), np.zeros(1, BUDGET)
        asked["goal_position"], asked["goal_orientation"] = position, orientation
        budget[0] = (10**6, 8, 0, 0)
        step(self.model, self.state, asked[0], budget[0], self.record[0])
        return self.contacts

    def hold(self, position, orientation=LEVEL):
        """Contacts where the tool is put, its memory kept."""
        memory = self.state.contact_memory.copy()
        self.state = make_state(self.model, position, orientation)
        self.state.contact_memory[:] = memory
        return self.move(position, orientation)

    def list(self, points, gaps, normals=(0.0, 0.0, 1.0), tool_rows=None):
        """Contacts when these are the proximities: inside of triangle 0 of body 0, a corner of each tool triangle."""
        first = int(self.model.meshes["triangle_first"][-1])
        found = self.state.query_work["proximities"][0]
        rows = found["rows"]
        found["count"], found["incomplete"] = len(points), 0
        rows["point_first"][: len(points)] = points
        rows["normal"][: len(points)] = normals
        rows["distance"][: len(points)] = gaps
        rows["first_feature"][: len(points)] = FACE
        rows["first_triangle"][: len(points)] = rows["first_id"][: len(points)] = 0
        rows["second_feature"][: len(points)] = 0
        rows["second_id"][: len(points)] = np.arange(len(points)) if tool_rows is None else tool_rows
        rows["second_triangle"][: len(points)] = first + (np.arange(len(points)) if tool_rows is None else tool_rows)
        rows["body_id"][: len(points)] = 0
        return self.update()

    def update(self):
        self.record["degraded"] = 0
        update_contacts(self.model, self.state, self.record[0])
        return self.contacts

    @property
    def contacts(self):
        return self.record["contacts"][0, : self.record["contact_count"][0]].copy()

    @property
    def degraded(self):
        return int(self.record["degraded"][0])


def names(contacts, fields=tuple(IDENTITY)):
    return {tuple(int(contact[field]) for field in fields) for contact in contacts}


def rounded(points):
    return {tuple(float(x) + 0.0 for x in np.round(point, 6)) for point in points}


@pytest.fixture(scope="module")
def level():
    """A level tool of 2048 triangles above a level body."""
    return Tool(sheet(32, 1.0), [sheet(1, 2.0)])


@pytest.fixture
def lister(level):
    """The same without memory, for proximities made up."""
    level.state.contact_memory[:] = 0
    return level


def area(points):
    return ConvexHull(points[:, :2]).volume


def check(contacts):
    """What is true of every table."""
    assert (np.diff(contacts["gap"]) >= 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(contacts["normal"], axis=1), 1.0, atol=1e-12)
    assert len(names(contacts)) == len(contacts) <= MAX_CONTACTS


# Ghosts and merging. ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fine", [0, 2])
def test_a_box_stands_on_its_four_corners(fine):
    """Whatever the triangles of both: inner edges and corners of flat faces are no contacts."""
    tool = Tool(box(0.04, 0.04, 0.04, fine), [box(0.1, 0.1, 0.1, 2 * fine)])
    found = tool.hold((0.0013, 0.0021, 0.07 + GAP))
    check(found)
    assert rounded(found["point"]) == {(x, y, 0.05) for x in (-0.0187, 0.0213) for y in (-0.0179, 0.0221)}
    np.testing.assert_allclose(found["gap"], GAP, atol=1e-15)
    np.testing.assert_allclose(found["normal"], [(0, 0, 1)] * 4, atol=1e-12)
    assert tool.degraded == 0


def test_an_overhanging_box_also_stands_on_crossing_edges():
    found = Tool(box(0.04, 0.04, 0.04), [box(0.1, 0.1, 0.1)]).hold((0.041, 0.003, 0.07 + GAP))
    assert rounded(found["point"]) == {(x, y, 0.05) for x in (0.021, 0.05) for y in (-0.017, 0.023)}
    np.testing.assert_allclose(found["normal"], [(0, 0, 1)] * 4, atol=1e-12)


def test_crossed_beams_touch_at_four_crossings_of_edges():
    found = Tool(box(0.02, 0.2, 0.1), [box(0.1, 0.1, 0.1)]).hold((0.0, 0.0, 0.1 + GAP))
    assert rounded(found["point"]) == {(x, y, 0.05) for x in (-0.01, 0.01) for y in (-0.05, 0.05)}
    assert ((found["feature"] >= 3) & (found["feature"] < FACE)).all()


@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-4, -2e-3])
def test_equal_boxes_meet_corner_to_corner_once_each(tilt):
    """A pair that is listed for every face around a corner is one contact, told by the lowest of them."""
    tool = Tool(box(0.1, 0.1, 0.1), [box(0.1, 0.1, 0.1)])
    half = 0.05 * abs(np.sin(tilt))
    found = tool.hold((0.0, 0.0, 0.1 + half + 2e-4), Rotation.from_rotvec((0.0, tilt, 0.0)).as_quat())
    near = np.abs(found["point"][:, :2])
    check(found)
    assert len(rounded(found["point"])) == len(found) == 4
    np.testing.assert_allclose(near, 0.05, atol=0.051 * abs(tilt) + 1e-12)  # it turns about its middle
    np.testing.assert_allclose(found["normal"][:, 2], 1.0, atol=5e-3)
    if tilt == 0.0:
        assert (found["feature"] < 3).all() and (found["tool_feature"] < 3).all()
        triangles = build_tree(*box(0.1, 0.1, 0.1))[1]
        for contact in found:
            around, own = fan(triangles, contact["point"]), fan(triangles, contact["point"] * (1.0, 1.0, -1.0))
            listed = [(i, own[0]) for i in sorted(around)] + [(around[0], k) for k in sorted(own)]
            told = [int(triangles["face_id"][i]) for i in min(listed)]
            assert [contact["face_id"], contact["tool_face_id"]] == told


def fan(triangles, corner):
    """Rows of the triangles at a corner, the one that owns it first."""
    rows, slots = np.nonzero(np.linalg.norm(triangles["vertices"] - corner, axis=2) < 1e-12)
    owns = (triangles["owned"][rows] >> slots) & 1
    return [int(rows[i]) for i in np.argsort(-owns, kind="stable")]


@pytest.mark.parametrize("corners", [3, 6, 12])
def test_a_prism_stands_on_all_its_corners(corners):
    radius = 0.02
    found = Tool(prism(corners, radius, 0.04), [box(0.1, 0.1, 0.1, 3)]).hold((0.0013, 0.0021, 0.07 + GAP))
    check(found)
    assert len(found) == corners
    np.testing.assert_allclose(np.linalg.norm(found["point"][:, :2] - (0.0013, 0.0021), axis=1), radius, atol=1e-12)


def test_prisms_face_to_face_touch_in_twice_as_many_crossings():
    tool = Tool(prism(6, 0.02, 0.04, np.pi / 6), [prism(6, 0.02, 0.04)])
    found = tool.hold((0.0, 0.0, 0.04 + GAP))
    assert len(found) == 12 and (found["feature"] >= 3).all() and (found["feature"] < FACE).all()
    turns = np.sort(np.arctan2(found["point"][:, 1], found["point"][:, 0]))
    np.testing.assert_allclose(np.diff(turns), np.pi / 6, atol=1e-9)


def test_nothing_is_felt_through_a_plate():
    """A plate thinner than the reach, as body and as tool: neither its far face nor its far edges are contacts."""
    plate = box(0.1, 0.1, 1e-4, 2)
    for tool, body in ((box(0.04, 0.04, 0.04), plate), (plate, box(0.04, 0.04, 0.04)), (plate, plate)):
        height = 0.5 * (np.ptp(tool[0][:, 2]) + np.ptp(body[0][:, 2])) + 2e-4
        found = Tool(tool, [body]).hold((0.0007, 0.0011, height))
        assert len(found) == 4
        np.testing.assert_allclose(found["gap"], 2e-4, atol=1e-12)
        np.testing.assert_allclose(found["point"][:, 2], body[0][:, 2].max(), atol=1e-12)
        np.testing.assert_allclose(found["normal"], [(0, 0, 1)] * 4, atol=1e-12)


def test_the_two_sides_of_an_open_sheet_are_both_there():
    for side in (1.0, -1.0):
        found = Tool(box(0.04, 0.04, 0.04), [sheet(8, 0.1)]).hold((0.0013, 0.0021, side * (0.02 + GAP)))
        assert len(found) == 4
        np.testing.assert_allclose(found["normal"], [(0, 0, side)] * 4, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_the_nearest_pair_is_always_a_contact(seed):
    """Lumpy bodies at any pose: the first row has the least distance of all features, and its normal goes there."""
    rng = np.random.default_rng(seed)

    def lump(rough):
        sphere = trimesh.creation.icosphere(subdivisions=1, radius=0.01)
        return sphere.vertices * (1.0 + rough * rng.uniform(-1.0, 1.0, (len(sphere.vertices), 1))), sphere.faces

    body, own = lump(0.2), lump(0.05 * (seed % 4))
    tool = Tool(own, [body])
    turn = Rotation.random(random_state=seed)
    way = rng.normal(size=3)
    way /= np.linalg.norm(way)
    first, second = build_tree(*body)[1], build_tree(*own)[1]
    high = 0.1
    for _ in range(60):  # from outside, never farther than is free
        high -= max(least_distance(first, second, tuple(high * way), tuple(turn.as_quat())) - 2e-4, 0.0)
    found = tool.hold(high * way, turn.as_quat())
    check(found)
    least = least_distance(first, second, tuple(high * way), tuple(turn.as_quat()))
    assert abs(found["gap"][0] - least) <= 2.0 * SAME_GAP * EPS[1] + 1e-12
    middle = found["point"] + 0.5 * found["gap"][:, None] * found["normal"]  # in the free space between the two
    assert np.abs(winding(middle, *body)).max() < 1e-6
    assert np.abs(winding(turn.inv().apply(middle - high * way), *own)).max() < 1e-6


def winding(points, vertices, faces):
    """How often a closed surface goes around each point: 0 outside (van Oosterom and Strackee 1983)."""
    a, b, c = np.moveaxis(vertices[faces][None] - points[:, None, None], 2, 0)
    la, lb, lc = (np.linalg.norm(x, axis=2) for x in (a, b, c))
    dot = lambda x, y: np.einsum("ijk,ijk->ij", x, y)  # noqa: E731
    solid = np.arctan2(dot(a, np.cross(b, c)), la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb)
    return solid.sum(axis=1) / (2.0 * np.pi)


def test_separate_regions_all_have_their_nearest_pair():
    """Two lumps far apart on one tool, one a little farther away: each keeps its deepest point."""
    ball = trimesh.creation.icosphere(subdivisions=3, radius=0.005)
    parts = [ball.copy().apply_translation((x, 0.001, z)) for x, z in ((-0.02, 0.0), (0.0, 8e-5), (0.02, 5e-5))]
    both = trimesh.util.concatenate(parts)
    lowest = sorted(part.vertices[part.vertices[:, 2].argmin()].tolist() for part in parts)
    found = Tool((both.vertices, both.faces), [box(0.1, 0.1, 0.1, 3)]).hold((0.0, 0.0, 0.055 + 2e-4))
    for x, y, z in (lowest[0], lowest[2]):
        off = np.abs(found["point"][:, :2] - (x, y)).max(axis=1)
        assert off.min() < 1e-9
        assert abs(found["gap"][off.argmin()] - (z + 0.005 + 2e-4)) < 1e-12


def test_touching_surfaces_have_the_normal_of_the_face(lister):
    tool = lister
    found = tool.list(np.zeros((1, 3)), [0.0], (0.0, 0.0, 0.0))
    np.testing.assert_allclose(found["normal"], [(0, 0, 1)], atol=1e-12)


# Reduction. -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [17, 100, 2000])
@pytest.mark.parametrize("shape", ["square", "disc", "slender", "ring"])
def test_the_area_of_support_is_kept(lister, shape, count):
    """Of any set of parallel contacts of one depth at least 92 % of the hull's area is kept; of a square 98 %."""
    tool = lister
    for seed in range(12):
        rng = np.random.default_rng(seed)
        points = np.zeros((count, 3))
        points[:, :2] = rng.uniform(-0.05, 0.05, (count, 2))
        if shape == "slender":
            points[:, 1] *= 0.02
        elif shape != "square":
            turn = rng.uniform(0.0, 2.0 * np.pi, count)
            far = 0.05 * (np.sqrt(rng.uniform(0.0, 1.0, count)) if shape == "disc" else np.ones(count))
            points[:, 0], points[:, 1] = far * np.cos(turn), far * np.sin(turn)
        tool.state.contact_memory["count"] = 0
        found = tool.list(points, np.full(count, GAP))
        assert tool.degraded == 0
        check(found)
        assert area(found["point"]) >= (0.98 if shape == "square" and count > 100 else 0.92) * area(points)


def carried(points, normals, wrench, centre):
    """Largest multiple of a wrench that pushes of at most 1 N in all, along the normals, can carry; rank tolerant."""
    columns = np.concatenate([normals, np.cross(points - centre, normals)], axis=1).T
    least = linprog(
        np.r_[np.zeros(len(points)), -1.0],
        A_eq=np.c_[columns, -wrench],
        b_eq=np.zeros(6),
        A_ub=np.r_[np.ones(len(points)), 0.0][None],
        b_ub=[1.0],
    )
    return -least.fun if least.status == 0 else 0.0


def test_torques_that_all_contacts_carry_the_kept_ones_carry_almost(lister):
    """About any horizontal axis, with a push of 1 N: at least 90 % of the torque of the whole set."""
    tool = lister
    rng = np.random.default_rng(3)
    points = np.zeros((300, 3))
    points[:, :2] = rng.normal(0.0, 0.02, (300, 2))
    found = tool.list(points, np.full(300, GAP))
    up = np.array((0.0, 0.0, 1.0))
    for turn in np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False):
        wrench = np.r_[0.0, 0.0, 0.0, np.cos(turn), np.sin(turn), 0.0]

        def most(places, wrench=wrench):
            return (np.cross(places, up) @ wrench[3:]).max()

        assert most(found["point"]) >= 0.9 * most(points)
        # The same as a cone of wrenches: the force and torque of the outermost contact, almost to its whole lever.
        outermost = points[(np.cross(points, up) @ wrench[3:]).argmax()]
        pull = np.r_[up, np.cross(0.9 * outermost, up)]
        assert carried(found["point"], found["normal"], pull, np.zeros(3)) > 0.99


def test_deep_contacts_amid_shallow_ones_are_kept(lister):
    """Three near bumps inside of a ring of contacts that are farther away: they would carry the load."""
    tool = lister
    rng = np.random.default_rng(1)
    turn = rng.uniform(0.0, 2.0 * np.pi, 60)
    ring = np.c_[0.05 * np.cos(turn), 0.05 * np.sin(turn), np.zeros(60)]
    bumps = np.array([(0.01, 0.0, 0.0), (-0.01, 0.008, 0.0), (-0.006, -0.01, 0.0)])
    order = rng.permutation(63)
    points = np.r_[ring, bumps][order]
    found = tool.list(points, np.r_[np.full(60, 4e-4), np.full(3, 2e-4)][order])
    assert rounded(bumps) <= rounded(found["point"])
    assert area(found["point"]) >= 0.85 * area(points)


def test_a_tilted_plate_keeps_its_outline_only(lister):
    """Contacts whose depth is that of the plane through the outer ones carry nothing of their own."""
    tool = lister
    x, y = (line.ravel() for line in np.meshgrid(np.linspace(-0.05, 0.05, 21), np.linspace(-0.03, 0.03, 21)))
    found = tool.list(np.c_[x, y, 0.0 * x], 3e-4 + 2e-3 * x)
    corners = {(x, y, 0.0) for x in (-0.05, 0.05) for y in (-0.03, 0.03)}
    assert corners <= rounded(found["point"])
    assert len(found) <= 6
    assert found["gap"][0] == (3e-4 + 2e-3 * x).min()


def test_groups_share_the_table_by_what_they_need(lister):
    """One wide patch and one point on a wall: the wall keeps its point, the patch gets the rest."""
    tool = lister
    turn = np.linspace(0.0, 2.0 * np.pi, 100, endpoint=False)
    ring = np.c_[0.05 * np.cos(turn), 0.05 * np.sin(turn), 0.0 * turn]
    wall = (np.sin(0.45), 0.0, np.cos(0.45))
    found = tool.list(np.r_[ring, [(0.2, 0.0, 0.0)]], np.r_[np.full(100, GAP), 4e-4], np.r_[[(0, 0, 1)] * 100, [wall]])
    assert len(found) == MAX_CONTACTS
    assert (found["normal"][:, 0] > 0.4).sum() == 1


def test_more_groups_than_rows_keep_the_nearest_and_nothing_is_degraded():
    """Tools of 24 balls in 24 pits of their own: the 16 deepest balls are in the table."""
    ball = trimesh.creation.icosphere(subdivisions=1, radius=0.004)
    random = np.random.default_rng(5)
    turns = 2.0 * np.pi * np.arange(24) / 24
    gaps = 2e-4 + 1e-5 * random.permutation(24)
    balls = trimesh.util.concatenate(
        [
            ball.copy().apply_translation((0.1 * np.cos(t), 0.1 * np.sin(t), -ball.vertices[:, 2].min() + gap))
            for t, gap in zip(turns, gaps, strict=True)
        ]
    )
    plates = [box(0.01, 0.01, 0.01)] * 24
    places = [(0.1 * np.cos(t), 0.1 * np.sin(t), -0.005) for t in turns]
    tool = Tool((balls.vertices, balls.faces), plates, (0.0, 0.0, 0.0), places=places)
    found = tool.hold((0.0, 0.0, 0.0))
    assert len(found) == MAX_CONTACTS and tool.degraded == 0
    np.testing.assert_array_equal(found["body_id"], np.argsort(gaps)[:MAX_CONTACTS])


def test_a_peg_in_a_hole_is_held_all_around_and_at_both_ends():
    """0.1 mm of play: the contacts kept leave no way aside of more than 0.125 mm, and hold both ends."""
    hole = trimesh.creation.annulus(0.0101, 0.02, 0.03, sections=48)
    tool = Tool(prism(48, 0.01, 0.04), [(hole.vertices, hole.faces)], eps=(2e-5, 5e-5, 3e-4))
    found = tool.hold((0.0, 0.0, 0.01))
    check(found)
    assert (np.abs(found["normal"][:, 2]) < 1e-9).all()
    for turn in np.linspace(0.0, 2.0 * np.pi, 90):
        closing = -found["normal"] @ (np.cos(turn), np.sin(turn), 0.0)
        assert (found["gap"] / np.where(closing > 0.0, closing, 1e-9)).min() < 1.25e-4
    for end in (found["point"][:, 2] < 0.0, found["point"][:, 2] > 0.0):
        assert end.sum() >= 3


# Memory. ----------------------------------------------------------------------------------------------------------


def test_contacts_grow_old_while_the_tool_slides_over_a_fine_plane():
    """Few of them change in any tick, the tool's corners stay in the table, and ages count the ticks of each name."""
    tool = Tool(box(0.04, 0.04, 0.04, 2), [box(0.1, 0.1, 0.1, 4)], (-0.0193, 0.0023, 0.07 + GAP))
    ages: dict = {}
    changes = []
    kept = []
    for i in range(300):
        found = tool.move((-0.0193 + 1e-4 * i, 0.0023 + 3e-5 * i, 0.07 + GAP))
        check(found)
        now = {name: ages.get(name, -1) + 1 for name in names(found)}
        for contact in found:
            assert contact["age"] == now[next(iter(names([contact])))]
        changes.append(len(ages.keys() ^ now.keys()))
        ages = now
        kept.append(names(found, ("tool_face_id", "tool_feature")))
    assert all(len(one & other) >= 4 for one, other in pairwise(kept))
    assert max(changes[1:]) <= 8 and np.mean(changes[1:]) < 0.5 and max(ages.values()) > 10


@pytest.mark.parametrize("tool", [box(0.04, 0.04, 0.04, 2), prism(40, 0.02, 0.04)], ids=["box", "prism"])
def test_noise_changes_no_contact(tool):
    """A nanometre and a nanoradian of noise: the same names in every tick, also when not all fit."""
    rng = np.random.default_rng(0)
    tool = Tool(tool, [box(0.1, 0.1, 0.1, 3)])
    start = np.array((-0.0193, 0.0023, 0.07 + GAP))
    first = names(tool.hold(start))
    for _ in range(60):
        turn = Rotation.from_rotvec(rng.normal(0.0, 1e-9, 3)).as_quat()
        found = tool.hold(start + rng.normal(0.0, 1e-9, 3), turn)
        assert names(found) == first
    assert (found["age"] == 60).all()


def test_a_corner_over_an_inner_edge_stays_the_same_corner():
    rng = np.random.default_rng(0)
    tool = Tool(box(0.04, 0.04, 0.04), [box(0.1, 0.1, 0.1, 2)])
    for _ in range(30):
        found = tool.hold(np.array((0.005, 0.0023, 0.07 + GAP)) + rng.normal(0.0, 1e-9, 3))
        assert len(found) == 4 and len(names(found, ("tool_face_id", "tool_feature"))) == 4


def test_a_contact_comes_and_goes_at_different_gaps():
    """It enters below eps_safety + ENTRY (eps_break - eps_safety), also for another corner; it leaves at eps_break."""
    enter = EPS[1] + ENTRY * (EPS[2] - EPS[1])
    tool = Tool(box(0.04, 0.04, 0.04), [box(0.1, 0.1, 0.1)])
    for gap, count in (
        (0.999 * EPS[2], 0),
        (1.001 * enter, 0),
        (0.999 * enter, 4),
        (1.001 * enter, 4),
        (0.999 * EPS[2], 4),
        (1.001 * EPS[2], 0),
        (0.999 * EPS[2], 0),
    ):
        assert len(tool.hold((0.0013, 0.0021, 0.07 + gap))) == count, gap


def test_a_contact_in_the_band_goes_on_from_face_to_face():
    tool = Tool(box(0.04, 0.04, 0.04), [box(0.1, 0.1, 0.1, 4)])
    assert len(tool.hold((-0.0193, 0.0023, 0.07 + GAP))) == 4
    for i in range(100):
        assert len(tool.hold((-0.0193 + 2e-4 * i, 0.0023, 0.07 + 0.98 * EPS[2]))) == 4
    tool.state.contact_memory["count"] = 0
    assert len(tool.hold((0.0, 0.0023, 0.07 + 0.98 * EPS[2]))) == 0


def test_a_known_contact_gives_way_to_one_that_is_clearly_better(lister):
    """Known corners of a ring stay while new ones reach out a little more, and go when those reach out much more."""
    tool = lister
    turn = np.linspace(0.0, 2.0 * np.pi, 30, endpoint=False)
    ring = np.c_[0.02 * np.cos(turn), 0.02 * np.sin(turn), 0.0 * turn]
    known = tool.list(ring, np.full(30, GAP))
    rows = np.arange(60)
    for factor, stays in ((1.002, True), (1.5, False)):
        memory = tool.state.contact_memory.copy()
        found = tool.list(np.r_[ring, factor * ring], np.full(60, GAP), tool_rows=rows)
        outer = np.linalg.norm(found["point"], axis=1) > 0.02 * (1.0 + 1e-9)
        assert outer.sum() == (0 if stays else MAX_CONTACTS)
        assert (names(found) == names(known)) == stays
        tool.state.contact_memory[:] = memory
    nearer = np.full(30, GAP)
    nearer[1] -= 2.0 * SAME_GAP * EPS[1]
    assert tool.list(ring, nearer)["gap"][0] == nearer[1]


# Determinism. -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mesh", [box(0.1, 0.1, 0.1, 3), prism(24, 0.05, 0.1)], ids=["box", "prism"])
def test_the_order_of_the_proximities_does_not_matter(mesh):
    """To the bit, in the report and in the memory, also among equals."""
    rng = np.random.default_rng(2)
    tool = Tool(prism(32, 0.02, 0.04), [mesh])
    tool.hold((0.0, 0.0, 0.07 + GAP))
    before = np.zeros_like(tool.state.contact_memory)
    found = tool.state.query_work["proximities"][0]
    rows = found["rows"][: found["count"]].copy()
    results = set()
    for _ in range(20):
        found["rows"][: len(rows)] = rng.permutation(rows)
        tool.state.contact_memory[:] = before
        results.add(tool.update().tobytes() + tool.state.contact_memory.tobytes())
    assert len(rows) > 50 and len(results) == 1


def test_only_incomplete_proximities_degrade_the_table(lister):
    tool = lister
    rng = np.random.default_rng(2)
    points = np.c_[rng.uniform(-0.1, 0.1, (2000, 2)), np.zeros(2000)]
    tool.list(points, np.full(2000, GAP))
    assert tool.degraded == 0
    tool.state.query_work["proximities"]["incomplete"] = 1
    tool.update()
    assert tool.degraded == DEGRADED_CONTACTS
