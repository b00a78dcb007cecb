"""The broad phase lists exactly the pairs whose boxes meet, and what it could not list is safe."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtcore.collision.broad_phase import BroadPhase, find_pairs, make_broad_phase, pair_table
from rtcore.motion import SCREW, from_twist, point, pose
from rtcore.spatial import rotate
from rtcore.tables import BOX_NODE, MOTION

MANY = 2_000_000


def bodies(rng: np.random.Generator, n: int, size: float = 0.05) -> np.ndarray:
    """Root records of n bodies of random oriented boxes, each with the ball of its corners."""
    roots = np.zeros(n, BOX_NODE)
    roots["centre"] = rng.normal(0, 0.02, (n, 3))
    roots["axes"] = [np.linalg.qr(rng.normal(size=(3, 3)))[0].T for _ in range(n)]
    roots["half"] = rng.uniform(0.1, 1.0, (n, 3)) * size
    roots["radius"] = np.linalg.norm(roots["half"], axis=1)
    return roots


class Crowd:
    """Bodies that drift and turn on for many ticks."""

    def __init__(self, rng: np.random.Generator, n: int, extent: tuple[float, float, float], speed: float) -> None:
        self.position = rng.uniform(-0.5, 0.5, (n, 3)) * extent
        self.orientation = rng.normal(size=(n, 4))
        self.orientation /= np.linalg.norm(self.orientation, axis=1)[:, None]
        self.shift = rng.normal(0, speed, (n, 3))
        self.turn = rng.normal(0, 10 * speed, (n, 3))
        self.motions = np.zeros(n, MOTION)

    def tick(self) -> np.ndarray:
        """The motions of the next tick."""
        for i, motion in enumerate(self.motions):
            place = tuple(self.position[i])
            from_twist(
                motion, SCREW, place, tuple(self.orientation[i]), tuple(self.shift[i]), tuple(self.turn[i]), place
            )
            self.position[i], self.orientation[i] = pose(motion, 1.0)
        return self.motions


def brute_force(broad: BroadPhase, excluded: set[tuple[int, int]] = frozenset()) -> list[tuple[int, int]]:
    """All pairs whose boxes meet, looked at one by one, without the rules of the code under test."""
    low, high = broad.bounds[:, :3], broad.bounds[:, 3:]
    meet = ((low[:, None] <= high[None]) & (low[None] <= high[:, None])).all(axis=2)
    rows = broad.bodies
    allowed = (rows["group"][:, None] & rows["mask"][None]) != 0
    allowed &= allowed.T
    allowed &= (rows["fixed"][:, None] == 0) | (rows["fixed"][None] == 0)
    found = np.argwhere(np.triu(meet & allowed, 1))
    return [(int(a), int(b)) for a, b in found if (int(a), int(b)) not in excluded]


@pytest.mark.parametrize(
    ("n", "extent", "ticks"),
    [(1, (1, 1, 1), 3), (2, (0.02, 0.02, 0.02), 20), (60, (0.5, 0.5, 0.5), 60), (1000, (3, 3, 3), 12)],
)
def test_it_lists_what_brute_force_finds_over_many_ticks(n, extent, ticks):
    rng = np.random.default_rng(n)
    crowd = Crowd(rng, n, extent, 0.004)
    fixed = rng.random(n) < 0.2
    crowd.shift[fixed] = crowd.turn[fixed] = 0.0
    groups = rng.integers(1, 8, n)
    masks = rng.integers(0, 8, n)
    excluded = {(int(min(p)), int(max(p))) for p in rng.integers(0, n, (4 * n, 2)) if p[0] != p[1]}
    broad = make_broad_phase(bodies(rng, n), fixed, groups, masks, excluded, capacity=200 * n)
    total = 0
    for _ in range(ticks):
        find_pairs(broad, crowd.tick(), 0.01, MANY)
        assert broad.report[0]["blocked_count"] == 0 and not broad.bodies["blocked"].any()
        pairs = [tuple(p) for p in pair_table(broad).tolist()]
        assert pairs == brute_force(broad, excluded)  # in rising order, too
        total += len(pairs)
    assert total > 0 or n < 3


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 0.1, 2.0]))
def test_a_box_holds_every_point_of_its_body_over_the_whole_tick_and_half_of_the_reach(seed, speed):
    rng = np.random.default_rng(seed)
    roots = bodies(rng, 3)
    crowd = Crowd(rng, 3, (1, 1, 1), speed)
    broad = make_broad_phase(roots, [False] * 3)
    motions = crowd.tick()
    find_pairs(broad, motions, 0.02, MANY)
    for i in range(3):
        corners = roots["centre"][i] + (rng.choice([-1.0, 1.0], (8, 3)) * roots["half"][i]) @ roots["axes"][i]
        start, turn = pose(motions[i], 0.0)
        for corner in corners:
            scene = tuple(np.add(start, rotate(turn, tuple(corner))))
            for u in np.linspace(0, 1, 9):
                there = np.array(point(motions[i], u, scene))
                assert (broad.bounds[i, :3] <= there - 0.01 + 1e-14).all()
                assert (broad.bounds[i, 3:] >= there + 0.01 - 1e-14).all()


def test_boxes_are_no_larger_than_the_body_its_path_and_the_reach_ask_for():
    roots = np.zeros(1, BOX_NODE)
    roots["axes"], roots["half"], roots["radius"] = np.eye(3), (0.1, 0.2, 0.3), 0.4
    motions = np.zeros(1, MOTION)
    identity = (0.0, 0.0, 0.0, 1.0)
    from_twist(motions[0], SCREW, (1.0, 2.0, 3.0), identity, (0.02, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 2.0, 3.0))
    broad = make_broad_phase(roots, [False])
    find_pairs(broad, motions, 0.002, 10)
    half = np.array([0.1, 0.2, 0.3]) + 0.01 + 0.001
    middle = np.array([1.01, 2.0, 3.0])
    assert np.allclose(broad.bounds[0], np.concatenate((middle - half, middle + half)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("limit", ["units", "capacity"])
def test_pairs_that_were_not_listed_are_pairs_of_blocked_bodies(limit):
    rng = np.random.default_rng(7)
    n = 120
    crowd = Crowd(rng, n, (0.6, 0.4, 0.4), 0.003)
    motions = crowd.tick()
    whole = make_broad_phase(roots := bodies(rng, n), [False] * n, capacity=n * n)
    find_pairs(whole, motions, 0.01, MANY)
    expected = brute_force(whole)
    blocked_before = n + 1
    for share in (0, 1, 5, 50, 300, len(expected) - 1):
        if limit == "units":
            broad = make_broad_phase(roots, [False] * n, capacity=n * n)
            broad.order[:] = whole.order
            find_pairs(broad, motions, 0.01, share)
            assert broad.report[0]["units_used"] <= share
        else:
            broad = make_broad_phase(roots, [False] * n, capacity=max(share, 1))
            find_pairs(broad, motions, 0.01, MANY)
        listed = {tuple(p) for p in pair_table(broad).tolist()}
        blocked = broad.bodies["blocked"]
        assert listed <= set(expected)
        assert broad.report[0]["blocked_count"] == blocked.sum() > 0
        assert blocked.sum() <= blocked_before
        blocked_before = blocked.sum()
        for a, b in set(expected) - listed:
            assert blocked[a] and blocked[b]


def test_sorting_that_runs_out_of_units_goes_on_in_the_next_tick_until_all_is_listed():
    rng = np.random.default_rng(3)
    n = 80
    motions = Crowd(rng, n, (1, 1, 1), 0.0).tick()
    broad = make_broad_phase(bodies(rng, n), [False] * n)
    blocked = []
    for _ in range(40):
        find_pairs(broad, motions, 0.0, 800)
        assert sorted(broad.order[0]) == list(range(n))
        blocked.append(int(broad.report[0]["blocked_count"]))
        if blocked[-1] == 0:
            break
    assert blocked[0] == n and blocked[-1] == 0
    assert [tuple(p) for p in pair_table(broad).tolist()] == brute_force(broad)


def test_the_pairs_do_not_depend_on_the_ticks_before():
    rng = np.random.default_rng(11)
    roots = bodies(rng, 200)
    crowd = Crowd(rng, 200, (1, 1, 1), 0.01)
    old = make_broad_phase(roots, [False] * 200, capacity=20000)
    for _ in range(20):
        motions = crowd.tick()
        find_pairs(old, motions, 0.01, MANY)
    new = make_broad_phase(roots, [False] * 200, capacity=20000)
    find_pairs(new, motions, 0.01, MANY)
    assert (pair_table(old) == pair_table(new)).all() and len(pair_table(old)) > 20


def test_the_axis_follows_the_spread_and_spares_tests():
    rng = np.random.default_rng(2)
    roots = bodies(rng, 300, 0.02)
    for axis in range(3):
        extent = [0.1, 0.1, 0.1]
        extent[axis] = 20.0
        broad = make_broad_phase(roots, [False] * 300, capacity=20000)
        find_pairs(broad, Crowd(rng, 300, tuple(extent), 1e-3).tick(), 0.0, MANY)
        assert broad.report[0]["axis"] == axis
        assert broad.report[0]["box_tests"] < 1500  # of 44,850


def test_small_motions_move_few_entries():
    rng = np.random.default_rng(5)
    crowd = Crowd(rng, 500, (3, 3, 3), 1e-4)
    broad = make_broad_phase(bodies(rng, 500), [False] * 500, capacity=20000)
    find_pairs(broad, crowd.tick(), 0.0, MANY)
    first = int(broad.report[0]["shifts"])
    find_pairs(broad, crowd.tick(), 0.0, MANY)
    assert broad.report[0]["shifts"] < 200 < 20_000 < first


def test_a_body_without_end_or_without_a_meaningful_pose_meets_everybody():
    rng = np.random.default_rng(9)
    roots = bodies(rng, 6)
    roots["radius"][2] = np.inf
    crowd = Crowd(rng, 6, (100, 100, 100), 0.0)
    motions = crowd.tick()
    motions["position"][4] = np.nan
    broad = make_broad_phase(roots, [i == 2 for i in range(6)])
    find_pairs(broad, motions, 0.0, MANY)
    assert [tuple(p) for p in pair_table(broad)] == [
        (0, 2),
        (0, 4),
        (1, 2),
        (1, 4),
        (2, 3),
        (2, 4),
        (2, 5),
        (3, 4),
        (4, 5),
    ]


def test_bad_tables_get_one_clear_sentence():
    roots = bodies(np.random.default_rng(0), 3)
    for arguments, sentence in (
        ((roots[:0], []), "1 .. 4096 bodies"),
        ((roots, [False]), "3 bodies, but 1 values for 'fixed'"),
        ((roots, [False] * 3, [1, 2, 1 << 32]), "'group' must fit into 32 bits"),
        ((roots, [False] * 3, None, None, [(1, 1)]), "two different rows"),
        ((roots, [False] * 3, None, None, [(0, 3)]), "two different rows of 0 .. 2"),
    ):
        with pytest.raises(ValueError, match=sentence):
            make_broad_phase(*arguments)
    roots["half"][1, 1] = -1.0
    with pytest.raises(ValueError, match="not negative"):
        make_broad_phase(roots, [False] * 3)
