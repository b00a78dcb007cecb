"""Near features: all of them, each once, where the units suffice; in turns, and none for long without, where not."""

import math

import mesh_pairs
import numpy as np
import pytest
from mesh_pairs import Pair
from scipy.spatial import ConvexHull

from rtcore import motion
from rtcore.collision.front import coherent_contact
from rtcore.collision.near_features import list_again, list_near
from rtcore.collision.overlap import place_pair
from rtcore.collision.pair_state import make_front, make_query_work
from rtcore.geometry.tree import build_tree
from rtcore.mesh_tool import LISTING
from rtcore.model import ModelBuilder
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, DEGRADED_CONTACTS, RELATIVE, STEP_REPORT

REACH = 0.15
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


class Search:
    """A pair of bodies with a front, and the search for what is near at the poses that the second is put to."""

    def __init__(self, pair, capacity=4096):
        self.pair = pair
        self.front, self.entries = make_front(pair.first_root, pair.second_root, capacity)
        self.relative = np.zeros(1, RELATIVE)[0]
        motion.still(self.relative["first"], (0.0, 0.0, 0.0), UPRIGHT)
        self.work = make_query_work()
        self.counters, self.hit = mesh_pairs.counters(), mesh_pairs.hit()
        self.pose = None

    def go(self, position, orientation=UPRIGHT):
        """The second body goes to a pose on a straight way, as far as the front allows; the front is brought there."""
        position = tuple(map(float, position))
        before = position if self.pose is None else self.pose[0]
        turn = orientation if self.pose is None else self.pose[1]
        for _ in range(2):  # the way, then a query at rest at its end
            motion.between(self.relative["second"], motion.SCREW, before, turn, position, orientation, before)
            q = mesh_pairs.query(separation=1e-3)
            tables = self.pair.nodes, self.pair.triangles, self.relative, q, self.front[0], self.entries
            coherent_contact(*tables, self.work[0], self.counters, self.hit)
            assert self.hit["time"] == 1.0
            before, turn = position, orientation
        self.pose = position, orientation

    def rows(self, units, reach=REACH):
        """What the search lists now, and whether it says that this is all."""
        table = self.work[0]["proximities"]
        table["count"] = table["incomplete"] = 0
        root = self.pair.nodes[self.pair.second_root]
        place_pair(self.relative, tuple(root["centre"]), root["radius"], 0.0, 0.0, self.work[0]["start"])
        tables = self.pair.nodes, self.pair.triangles, self.front[0], self.entries, self.work[0]["start"]
        left, complete = list_near(*tables, reach, self.counters, table, units)
        assert left > -16
        return table["rows"][: table["count"]].copy(), complete

    def expected(self, reach=REACH):
        return near_features(self.pair, self.pose, reach)


def near_features(pair, pose, reach):
    """{(kind, features by their numbers): distance} of all pairs of features nearer than `reach`, each once."""
    place, turn = pose
    found = {}
    for j, b in enumerate(pair.second):
        corners = [tuple(np.add(mesh_pairs.rotate(turn, tuple(v)), place)) for v in b["vertices"]]
        for i, a in enumerate(pair.first):
            own = [tuple(v) for v in a["vertices"]]
            for k in range(3):
                for m in range(3):
                    if a["flat"] >> k & 1 or b["flat"] >> m & 1:  # inside a plane: nobody's
                        continue
                    s, t, square = mesh_pairs.segment_segment(
                        own[k], own[(k + 1) % 3], corners[m], corners[(m + 1) % 3]
                    )
                    if 0.0 < s < 1.0 and 0.0 < t < 1.0 and math.sqrt(square) < reach:
                        found["edges", a["edge_ids"][k], b["edge_ids"][m]] = math.sqrt(square)
                distance = math.sqrt(mesh_pairs.point_triangle(own[k], *corners)[2])
                if distance < reach:
                    found["vertex", a["vertex_ids"][k], len(pair.first) + j] = distance
                distance = math.sqrt(mesh_pairs.point_triangle(corners[k], *own)[2])
                if distance < reach:
                    found["face", i, b["vertex_ids"][k]] = distance
    return found


def check_rows(pair, rows):
    """Points, normals and names of listed features belong together."""
    for row in rows:
        a, b = row["first_feature"], row["second_feature"]
        if 3 <= a < 6 and 3 <= b < 6:
            assert row["first_id"] == pair.triangles["edge_ids"][row["first_triangle"], a - 3]
            assert row["second_id"] == pair.triangles["edge_ids"][row["second_triangle"], b - 3]
        if a < 3:
            assert row["first_id"] == pair.triangles["vertex_ids"][row["first_triangle"], a]
        assert np.linalg.norm(row["point_first"] - row["point_second"]) == pytest.approx(row["distance"], abs=1e-12)
        np.testing.assert_allclose(
            row["point_first"] + row["distance"] * row["normal"], row["point_second"], atol=1e-12
        )


def names(rows):
    fields = ["first_triangle", "second_triangle", "first_feature", "second_feature"]
    return {tuple(int(row[field]) for field in fields) for row in rows}


def test_all_pairs_of_features_within_reach_are_listed_once():
    generator = np.random.default_rng(6)
    pair = Pair(mesh_pairs.bumpy(generator), mesh_pairs.bumpy(generator))
    search = Search(pair)
    most = 0
    for k in range(12):
        direction = generator.normal(size=3)
        search = Search(pair) if k % 3 == 0 else search
        angle = 0.3 * generator.normal()
        start = np.array([0.0, 0.0, 1.35]) + 0.02 * direction
        search.go(start, (math.sin(angle / 2), 0.0, 0.0, math.cos(angle / 2)))
        rows, complete = search.rows(10**6, reach=0.4)
        assert complete
        expected = search.expected(0.4)
        np.testing.assert_allclose(np.sort(rows["distance"]), np.sort(list(expected.values())), atol=1e-12)
        check_rows(pair, rows)
        most = max(most, len(rows))
    assert most > 20


@pytest.mark.parametrize("units", [1, 40, 700])
def test_a_round_in_turns_lists_the_same(units):
    """At rest, some turns after one another miss nothing; no turn takes more than its units and one pair's."""
    pair = Pair(mesh_pairs.sheet(1.0, 5), mesh_pairs.sheet(1.0, 5))
    search = Search(pair)
    search.go((0.03, 0.02, 0.05))
    whole, complete = search.rows(10**6)
    assert complete and len(whole) > 200
    seen, turns = set(), 0
    while seen != names(whole):
        rows, complete = search.rows(units)
        assert not complete
        seen |= names(rows)
        turns += 1
        assert turns < 40_000 / units
    assert turns > 1


def test_a_round_goes_on_while_the_front_changes():
    """Also while the body moves and the front is joined and opened: what stays within reach is listed in each round."""
    pair = Pair(mesh_pairs.sheet(1.0, 5), mesh_pairs.sheet(1.0, 5))
    search = Search(pair)
    search.go((0.03, 0.02, 0.02))
    stays = None
    seen = set()
    generator = np.random.default_rng(3)
    for k in range(120):
        search.go((0.03 + 1e-4 * math.sin(k), 0.02 + 1e-4 * generator.random(), 0.02 + 0.01 * (k % 2)))
        if k % 10 == 0:
            near = names(Search.rows(copied(search), 10**6, reach=0.1)[0])
            stays = near if stays is None else stays & near
        seen |= names(search.rows(600, reach=0.1)[0])
    assert len(stays) > 100
    assert stays <= seen


def copied(search):
    other = Search(search.pair)
    other.go(*search.pose)
    return other


def test_a_corner_that_slid_over_an_edge_is_listed_with_the_next_face():
    pair = Pair(mesh_pairs.sheet(1.0, 5), mesh_pairs.box())
    search = Search(pair)
    search.go((0.07, 0.09, 0.52))
    rows, _ = search.rows(10**6, reach=0.1)
    known = next(row for row in rows if row["first_feature"] == 6)
    for _ in range(8):
        place = np.array(search.pose[0]) + (0.05, 0.0, 0.0)
        search.go(place)
        table = search.work[0]["proximities"]
        table["count"] = 0
        root = pair.nodes[pair.second_root]
        place_pair(search.relative, tuple(root["centre"]), root["radius"], 0.0, 0.0, search.work[0]["start"])
        list_again(
            pair.triangles,
            known["first_triangle"],
            known["second_triangle"],
            search.work[0]["start"],
            0.1,
            search.counters,
            table,
        )
        inside = [row for row in table["rows"][: table["count"]] if row["first_feature"] == 6]
        assert known["second_id"] in [row["second_id"] for row in inside]
        known = next(row.copy() for row in inside if row["second_id"] == known["second_id"])


def hull_area(points):
    return ConvexHull(points[:, :2]).volume


def test_sheets_along_one_another_have_their_contacts_in_every_tick():
    """Two wavy plates of thousands of pairs within reach slide: the contacts span what a whole search spans."""
    line = np.linspace(-0.5, 0.5, 13)
    x, y = np.meshgrid(line, line)
    i = np.arange(13 * 13).reshape(13, 13)
    a, b, c, d = i[:-1, :-1].ravel(), i[:-1, 1:].ravel(), i[1:, 1:].ravel(), i[1:, :-1].ravel()
    faces = np.r_[np.c_[a, b, c], np.c_[a, c, d]]
    plate = np.c_[x.ravel(), y.ravel(), 1e-5 * np.cos(9.0 * x.ravel()) * np.cos(7.0 * y.ravel())]
    eps = (2e-4, 5e-4, 1.15e-3)
    builder = ModelBuilder()
    mesh_id = builder.add_mesh(*build_tree(plate, faces))
    builder.add_body(mesh_id)
    model = builder.build(0.0, (0.0, 0.0, 0.0), *eps, mesh_id)
    asked, record = make_input(), np.zeros(1, STEP_REPORT)
    asked["goal_orientation"] = UPRIGHT

    def contacts(state, goal, units):
        budget = np.zeros(1, BUDGET)
        budget[0] = (units, 8, 0, 0)
        asked["goal_position"] = goal
        step(model, state, asked[0], budget[0], record[0])
        assert record["fraction"][0] == 1.0
        return record["contacts"][0, : record["contact_count"][0]].copy()

    start = np.array([0.0031, 0.0017, 4e-4])
    state = make_state(model, start)
    for k in range(200):
        here = start + (2e-5 * k, 0.0, 0.0)
        found = contacts(state, here + (2e-5, 0.0, 0.0), 20_000)
        assert record["degraded"][0] == DEGRADED_CONTACTS
        assert record["units_used"][0] < 2 * LISTING * 20_000
        if k >= 100 and k % 25 == 0:
            whole = contacts(make_state(model, here), here, 10**7)
            assert record["degraded"][0] == 0
            assert found["gap"][0] <= whole["gap"][0] + 0.02 * eps[1]
            assert hull_area(found["point"]) >= 0.95 * hull_area(whole["point"])
