"""A query that goes on from the front of the last one: the same truth tick after tick, for less work."""

import mesh_pairs
import numpy as np
import pytest
from mesh_pairs import ALL_FLAGS, Pair

from rtcore import motion
from rtcore.collision.first_contact import first_contact
from rtcore.collision.front import coherent_contact
from rtcore.collision.overlap import box_gap, box_gap_to, place_pair
from rtcore.collision.pair_state import make_front, make_query_work, move_front, reset_front
from rtcore.tables import PLACEMENT, QUERY_CULL, RELATIVE

WORK = make_query_work()
STEP = 0.02
"""Way of the second body in one tick, m, and its turn, rad."""


class Walk:
    """The second body moves about the first one tick by tick, as far as queries let it."""

    def __init__(self, pair, start=(0.0, 0.0, 1.3), capacity=4096, work=WORK):
        self.pair, self.work = pair, work
        self.front, self.entries = make_front(pair.first_root, pair.second_root, capacity)
        self.relative = np.zeros(1, RELATIVE)[0]
        motion.still(self.relative["first"], (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        self.pose = start, (0.0, 0.0, 0.0, 1.0)
        self.answer, self.counted = mesh_pairs.hit(), mesh_pairs.counters()

    def tick(self, q, shift, turning=(0.0, 0.0, 0.0), share=1.0):
        """One query, and the motion it allows (or a share of that)."""
        motion.from_twist(self.relative["second"], motion.SCREW, *self.pose, shift, turning, self.pose[0])
        coherent_contact(
            self.pair.nodes,
            self.pair.triangles,
            self.relative,
            q,
            self.front[0],
            self.entries,
            self.work[0],
            self.counted,
            self.answer,
        )
        time = share * self.answer["time"]
        if share < 1.0:
            move_front(self.front[0], time)
        place, turn = motion.pose(self.relative["second"], time)
        self.pose = place, tuple(np.array(turn) / np.linalg.norm(turn))
        return self.answer

    def rows(self):
        front = self.front[0]
        return self.entries[front["current"], : front["count"]]

    def distance(self):
        return mesh_pairs.least_distance(self.pair.first, self.pair.second, *self.pose)


def wander(generator, walk, q, ticks, share=1.0):
    """Random motions that keep coming back to the first body; yields after each tick."""
    for _ in range(ticks):
        home = -np.array(walk.pose[0])
        shift = generator.normal(size=3) + 1.5 * home / np.linalg.norm(home)
        shift = STEP * generator.random() * shift / np.linalg.norm(shift)
        turning = generator.uniform(-STEP, STEP, 3)
        walk.tick(q, tuple(shift), tuple(turning), share)
        yield


def leaves(nodes, root):
    """Leaves below a node, in depth-first order, and their number below every node."""
    below = {}

    def visit(n):
        node = nodes[n]
        below[n] = [n] if node["count"] else visit(n + 1) + visit(int(node["right"]))
        return below[n]

    visit(root)
    return below


def solids(seed):
    generator = np.random.default_rng(seed)
    return generator, Pair(mesh_pairs.bumpy(generator), mesh_pairs.bumpy(generator))


def check_cover(walk):
    """Every pair of leaves is below exactly one entry, and entries are in depth-first order."""
    pair = walk.pair
    first = leaves(pair.nodes, pair.first_root)
    second = leaves(pair.nodes, pair.second_root)
    cover = np.zeros((len(pair.nodes), len(pair.nodes)), np.int8)
    for row in walk.rows():
        cover[np.ix_(first[row["first"]], second[row["second"]])] += 1
    assert (cover[np.ix_(first[pair.first_root], second[pair.second_root])] == 1).all()
    assert cover.sum() == len(first[pair.first_root]) * len(second[pair.second_root])


@pytest.mark.parametrize(("capacity", "units"), [(4096, 10**6), (300, 10**6), (4096, 200), (300, 200)])
def test_every_pair_of_leaves_is_below_exactly_one_entry(capacity, units):
    generator, pair = solids(capacity + units)
    walk = Walk(pair, capacity=capacity)
    most = 0
    for k, _ in enumerate(wander(generator, walk, mesh_pairs.query(units=units), 100)):
        if k % 5 == 0:
            check_cover(walk)
        most = max(most, len(walk.rows()))
    assert most > 50


@pytest.mark.parametrize("alike", [False, True])
def test_entries_are_joined_again_when_the_bodies_part(alike):
    _, pair = solids(1)
    if alike:  # nodes of equal size on both sides, at all levels
        mesh = mesh_pairs.bumpy(np.random.default_rng(1))
        pair = Pair(mesh, mesh)
    walk = Walk(pair)
    q = mesh_pairs.query()
    for _ in range(40):
        walk.tick(q, (0.0, 0.0, -STEP))
    near = len(walk.rows())
    for k in range(300):
        walk.tick(q, (0.0, 0.0, STEP))
        if k % 20 == 0:
            check_cover(walk)
    assert near > 100
    assert len(walk.rows()) < 0.2 * near
    check_cover(walk)


def test_no_entry_is_trusted_for_longer_than_its_distance_allows():
    generator, pair = solids(7)
    walk = Walk(pair)
    first = leaves(pair.nodes, pair.first_root)
    second = leaves(pair.nodes, pair.second_root)
    for k, _ in enumerate(wander(generator, walk, mesh_pairs.query(flags=0), 80, share=0.7)):
        if k % 8:
            continue
        front = walk.front[0]
        for row in walk.rows()[generator.integers(len(walk.rows()), size=40)]:
            a = pair.triangles[pair.nodes["first"][first[row["first"]]]]
            b = pair.triangles[pair.nodes["first"][second[row["second"]]]]
            distance = mesh_pairs.least_distance(a, b, *walk.pose)
            assert row["expiry"] - front["travelled"] - front["ahead"] <= distance + 1e-12


@pytest.mark.parametrize("flags", [ALL_FLAGS, ALL_FLAGS | QUERY_CULL])
def test_the_first_time_is_that_of_a_query_from_the_roots(flags):
    touched = 0
    for seed in range(3):
        generator, pair = solids(20 + seed)
        walk = Walk(pair)
        q = mesh_pairs.query(flags=flags)
        for _ in wander(generator, walk, q, 80):
            expected = mesh_pairs.hit()
            first_contact(
                pair.nodes,
                pair.triangles,
                pair.first_root,
                pair.second_root,
                walk.relative,
                q,
                WORK[0],
                mesh_pairs.counters(),
                expected,
            )
            assert not walk.answer["truncated"]
            way = motion.relative_bounds(walk.relative, walk.pose[0], 1.0, 0.0, 1.0)[0]
            # Where a contact is grazed, one may call it and the other pass; both keep the separation.
            if walk.answer["found"] and expected["found"]:
                assert abs(walk.answer["time"] - expected["time"]) * way < 5e-3
            mesh_pairs.check_first_time(pair, walk.relative, q, walk.answer, samples=3)
            touched += walk.answer["found"]
    assert touched > 20


def test_both_bodies_may_move():
    generator, pair = solids(3)
    walk = Walk(pair)
    q = mesh_pairs.query()
    place, turn = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)
    for _ in range(80):
        shift, turning = (tuple(generator.uniform(-STEP, STEP, 3)) for _ in range(2))
        motion.from_twist(walk.relative["first"], motion.SCREW, place, turn, shift, turning, place)
        home = np.array(place) - np.array(walk.pose[0])
        walk.tick(q, tuple(STEP * home / np.linalg.norm(home)), turning[::-1])
        mesh_pairs.check_first_time(pair, walk.relative, q, walk.answer, samples=5)
        place, turn = motion.pose(walk.relative["first"], walk.answer["time"])
        turn = tuple(np.array(turn) / np.linalg.norm(turn))


@pytest.mark.parametrize("units", [3, 20, 100])
def test_a_tiny_budget_never_lets_the_bodies_too_near_and_always_gets_there(units):
    _, pair = solids(5)
    truth = Walk(pair)
    usual, tiny = mesh_pairs.query(), mesh_pairs.query(units=units)
    for _ in range(60):
        truth.tick(usual, (0.0, 0.0, -STEP), (0.0, 0.0, STEP))
    walk = Walk(pair)
    truncated = pause = longest = 0
    for _ in range(20000):
        walk.tick(tiny, (0.0, 0.0, -STEP), (0.0, 0.0, STEP))
        assert walk.answer["units_used"] <= units + 14
        if walk.answer["found"]:
            break
        truncated += walk.answer["truncated"]
        pause = pause + 1 if walk.answer["time"] == 0.0 else 0
        longest = max(longest, pause)
    assert walk.answer["found"]
    assert truncated > 0
    # A pause lasts until the front is as fine as it must be: one opening takes two units.
    assert longest <= 2 * len(truth.rows()) / units + 2
    assert 0.0 <= walk.distance() - tiny["separation"] < 1e-4
    assert walk.pose[0][2] == pytest.approx(truth.pose[0][2], abs=1e-3)


@pytest.mark.parametrize(("capacity", "active"), [(1, 4096), (10, 4096), (4096, 3)])
def test_full_tables_are_safe(capacity, active):
    work = make_query_work(active=active)
    q = mesh_pairs.query()
    generator, pair = solids(9)
    walk = Walk(pair, capacity=capacity, work=work)
    for _ in wander(generator, walk, q, 100):
        assert len(walk.rows()) <= capacity
        mesh_pairs.check_first_time(pair, walk.relative, q, walk.answer, samples=2)
    # A front without room costs work and no freedom; only too many pairs of triangles shorten the motion.
    assert walk.distance() < 0.1


def test_the_same_ticks_give_the_same_bits():
    runs = []
    for _ in range(2):
        generator, pair = solids(11)
        walk = Walk(pair)
        trace = []
        for k, _ in enumerate(wander(generator, walk, mesh_pairs.query(units=150), 120)):
            trace.append(walk.answer.tobytes() + walk.front.tobytes() + walk.rows().tobytes())
            if k == 60:  # as after a restart: state carried over, working memory not
                walk.front, walk.entries, walk.work = walk.front.copy(), walk.entries.copy(), make_query_work()
        runs.append(trace)
    assert runs[0] == runs[1]


def test_no_memory_is_taken():
    generator, pair = solids(13)
    walk = Walk(pair)
    q = mesh_pairs.query(flags=ALL_FLAGS | QUERY_CULL)
    for _ in wander(generator, walk, q, 80):
        pass
    tables = pair.nodes, pair.triangles, walk.relative, q, walk.front[0], walk.entries, WORK[0]
    assert mesh_pairs.allocations(coherent_contact, *tables, mesh_pairs.counters(), walk.answer) == 0


def test_bodies_pressed_together_for_long_do_not_creep_into_each_other():
    _, pair = solids(2)
    walk = Walk(pair)
    q = mesh_pairs.query()
    for _ in range(50):
        walk.tick(q, (0.0, 0.0, -STEP))
    pressed = walk.pose
    for _ in range(300):
        walk.tick(q, (0.0, 0.0, -STEP))
        assert walk.answer["time"] == 0.0
    assert walk.pose == pressed
    assert walk.distance() >= q["separation"] - 1e-13


def test_what_does_not_move_is_not_tested_again():
    _, pair = solids(2)
    walk = Walk(pair)
    q = mesh_pairs.query()
    for _ in range(8):
        walk.tick(q, (0.0, 0.0, -STEP))
    gap = walk.distance()
    walk.tick(q, (0.0, 0.0, 1e-6))
    before = walk.counted["box_tests"] + walk.counted["leaf_pairs"]
    for _ in range(10):
        walk.tick(q, (0.0, 0.0, 0.0))
    assert gap > 0.011
    assert walk.counted["box_tests"] + walk.counted["leaf_pairs"] <= before + 10 * 16


def test_a_reset_front_begins_at_the_roots():
    _, pair = solids(4)
    walk = Walk(pair)
    q = mesh_pairs.query()
    for _ in range(30):
        walk.tick(q, (0.0, 0.0, -STEP))
    walk.pose = (1.4, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)
    reset_front(walk.front[0], walk.entries)
    assert len(walk.rows()) == 1
    for _ in range(60):
        walk.tick(q, (-STEP, 0.0, 0.0))
        mesh_pairs.check_first_time(pair, walk.relative, q, walk.answer, samples=4)
    assert walk.answer["found"]


def test_a_gap_that_is_known_well_enough_is_a_lower_bound_all_the_same():
    generator, pair = solids(8)
    placement = np.zeros(1, PLACEMENT)[0]
    below = {**leaves(pair.nodes, pair.first_root), **leaves(pair.nodes, pair.second_root)}
    for _ in range(20):
        relative = mesh_pairs.random_relative(generator, apart=1.2)
        place_pair(relative, (0.0, 0.0, 0.0), 1.0, 0.0, 0.0, placement)
        for _ in range(20):
            first = generator.integers(pair.second_root)
            second = generator.integers(pair.second_root, len(pair.nodes))
            a, b = pair.nodes[first], pair.nodes[second]
            enough = 0.5 * generator.random()
            rough = box_gap_to(a, b, placement, enough)
            if rough <= enough:
                assert rough == box_gap(a, b, placement)
            triangles = [pair.triangles[pair.nodes["first"][below[n]]] for n in (first, second)]
            assert rough <= mesh_pairs.least_distance(*triangles, *motion.relative_pose(relative, 0.0))


def test_a_goal_far_inside_costs_what_is_near_only():
    """Two sheets face to face, asked to go far through each other: they meet, though the front has no room for all."""
    pair = Pair(mesh_pairs.sheet(1.0, 6), mesh_pairs.sheet(1.0, 6))
    walk = Walk(pair, start=(0.03, 0.02, 0.5), capacity=2500)
    q = mesh_pairs.query(separation=0.01, units=4000)
    for _ in range(300):
        walk.tick(q, (0.0, 0.0, -1.0))
    assert walk.answer["found"]
    assert walk.distance() == pytest.approx(0.01, abs=2e-5)
    assert walk.answer["units_used"] < 4000
    # And what is then asked to leave does so, at once as far as that is near.
    walk.tick(q, (0.0, 0.0, 0.015))
    assert (walk.answer["time"], walk.answer["found"]) == (1.0, 0)


@pytest.mark.parametrize("share", [0.0, 1e-9, 0.3, 1.0])
def test_a_motion_that_was_carried_out_in_part_leaves_the_pads(share):
    _, pair = solids(2)
    walk = Walk(pair)
    walk.tick(mesh_pairs.query(), (0.0, 0.0, -STEP))
    front = walk.front[0].copy()
    time = share * walk.answer["time"]
    move_front(walk.front[0], time)
    ahead = walk.front[0]["ahead"]
    if share == 0.0:
        assert ahead == 0.0  # nothing got a new pose
    else:
        assert front["drift"] > 1e-15
        assert ahead >= front["speed"] * time + front["drift"]
        assert ahead <= front["ahead"]
        assert ahead == pytest.approx(front["speed"] * time, rel=1e-12, abs=2 * front["drift"])


@pytest.mark.parametrize("body", ["first", "second"])
def test_motions_that_start_with_infinite_speed_are_refused(body):
    _, pair = solids(2)
    walk = Walk(pair)
    walk.tick(mesh_pairs.query(), (0.0, 0.0, -STEP))
    front = walk.front[0]
    travelled = front["travelled"] + front["ahead"]
    relative = walk.relative.copy()
    motion.from_twist(relative[body], motion.ALGEBRAIC, *walk.pose, (0.0, 0.0, 0.0), (0.0, 0.0, 0.1), walk.pose[0])
    tables = pair.nodes, pair.triangles, relative, mesh_pairs.query(), front, walk.entries, WORK[0]
    coherent_contact(*tables, mesh_pairs.counters(), walk.answer)
    assert (walk.answer["time"], walk.answer["found"], walk.answer["truncated"]) == (0.0, 0, 1)
    assert (front["travelled"], front["ahead"]) == (travelled, 0.0)


@pytest.mark.parametrize("limit", [np.nan, np.inf])
def test_what_is_asked_up_to_no_time_is_refused(limit):
    """It ends, where it might go on for ever, and says that nothing is known to be free."""
    _, pair = solids(2)
    walk = Walk(pair)
    walk.tick(mesh_pairs.query(), (0.0, 0.0, -STEP))
    answer = walk.tick(mesh_pairs.query(limit=limit), (0.0, 0.0, -STEP))
    assert (answer["time"], answer["found"], answer["truncated"]) == (0.0, 0, 1)


def test_a_motion_without_numbers_comes_to_an_end():
    _, pair = solids(2)
    walk = Walk(pair)
    walk.tick(mesh_pairs.query(), (0.0, 0.0, -STEP))
    walk.tick(mesh_pairs.query(units=400), (np.nan, 0.0, np.nan))
    assert walk.answer["units_used"] <= 400 + 14


def test_a_front_needs_room():
    with pytest.raises(ValueError, match="at least one entry"):
        make_front(0, 1, 0)
