"""Trees of balls find the contact that testing every pair of features finds, with and without what they remember."""

import numpy as np
import pytest
from numba import njit
from scipy.optimize import minimize_scalar
from sphere_meshes import approach, block, new_query, pebble, sliver

from rtcore import motion
from rtcore.collision.elementary.advance import edge_edge, face_vertex, vertex_face
from rtcore.collision.sphere_query import (
    BALL_SCREW,
    REMEMBER_BALLS,
    REMEMBER_FEATURES,
    PairMemory,
    balls_overlap,
    fill_ball_screw,
    first_contact,
)
from rtcore.geometry.sphere_tree import build_sphere_tree
from rtcore.spatial import rotate
from rtcore.tables import COUNTERS, RELATIVE

ALL = REMEMBER_BALLS | REMEMBER_FEATURES
CLOSE = 1e-7
"""Times agree to the position tolerance (1e-9 m) over the slowest approach of these scenes (a few cm per step)."""


@njit(cache=True, nogil=True)
def row(points, i):
    return points[i, 0], points[i, 1], points[i, 2]


@njit(cache=True, nogil=True)
def every_pair(first, second, relative, separation, limit):
    """The earliest of the elementary tests of all pairs of features."""
    a, b = first.vertices, second.vertices
    best = limit
    hit = False
    for e in first.edges:
        for f in second.edges:
            time, found, _ = edge_edge(
                relative, row(a, e[0]), row(a, e[1]), row(b, f[0]), row(b, f[1]), separation, best, 1e-10, 1e-9, 64
            )
            hit |= found
            best = min(best, time) if found else best
    for i in range(len(a)):
        for f in second.faces:
            time, found, _ = vertex_face(
                relative, row(a, i), row(b, f[0]), row(b, f[1]), row(b, f[2]), separation, best, 1e-10, 1e-9, 64
            )
            hit |= found
            best = min(best, time) if found else best
    for f in first.faces:
        for i in range(len(b)):
            time, found, _ = face_vertex(
                relative, row(a, f[0]), row(a, f[1]), row(a, f[2]), row(b, i), separation, best, 1e-10, 1e-9, 64
            )
            hit |= found
            best = min(best, time) if found else best
    return best, hit


@pytest.fixture(scope="module")
def trees():
    return {
        "pebble": build_sphere_tree(*pebble(), 0.05),
        "block": build_sphere_tree(*block(), 0.08),
        "sliver": build_sphere_tree(*sliver(), 0.1),
    }


def new_counters():
    return np.zeros(1, COUNTERS)[0]


@pytest.mark.parametrize("turn", [0.0, 1e-4, 0.4, 2.0])
@pytest.mark.parametrize("pair", [("pebble", "block"), ("block", "block"), ("sliver", "pebble")])
def test_first_contact_is_that_of_all_pairs_of_features(trees, pair, turn):
    """Translations, small and large turns, with and without a distance to be kept, whatever is remembered."""
    rng = np.random.default_rng(31)
    first, second = (trees[name] for name in pair)
    memory = PairMemory()
    met = 0
    for k in range(12):
        relative = approach(rng, turn, 1.5)
        query = new_query(0.02 * (k % 2), rng.choice([0.5, 1.0]))
        time, found = every_pair(first, second, relative, query["separation"], query["limit"])
        met += found
        for remember in (0, REMEMBER_BALLS, REMEMBER_FEATURES, ALL):
            contact = first_contact(first, second, relative, query, new_counters(), memory, remember)
            assert contact.found == found
            assert contact.time == pytest.approx(time, abs=CLOSE)
            if not found:
                assert contact.time == query["limit"]
    assert met >= 3


def test_pure_rotation_finds_the_contact(trees):
    """A block that turns in place until its corner meets the one beside it: arccos of a ratio of lengths."""
    relative = np.zeros(1, RELATIVE)[0]
    motion.still(relative["first"], (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    gap = 1.1
    start = (gap, 0.0, 0.0)
    motion.from_twist(
        relative["second"], motion.TAN_HALF, start, (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.7), start
    )
    # The corner at (0.5, 0.4) from the centre comes down to the face at 0.6 from it.
    corner = np.hypot(0.5, 0.4)
    angle = np.arctan2(0.4, 0.5) - np.arccos(0.6 / corner)
    counters = new_counters()
    contact = first_contact(trees["block"], trees["block"], relative, new_query(), counters, PairMemory())
    assert contact.found
    assert contact.time == pytest.approx(angle / 0.7, abs=1e-7)


def test_what_is_remembered_saves_tests_and_a_full_memory_only_tests_again(trees):
    """A block along a block, large faces in many leaves each."""
    relative = np.zeros(1, RELATIVE)[0]
    motion.still(relative["first"], (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    start = (0.1, 0.1, 0.33)
    motion.from_twist(
        relative["second"], motion.TAN_HALF, start, (0.0, 0.0, 0.0, 1.0), (0.1, 0.0, 0.0), (0.0, 0.0, 0.05), start
    )
    counts = {}
    for remember, bits in ((0, 16), (REMEMBER_BALLS, 16), (REMEMBER_FEATURES, 16), (ALL, 16), (ALL, 2)):
        counters = new_counters()
        memory = PairMemory(bits)
        contact = first_contact(trees["block"], trees["block"], relative, new_query(), counters, memory, remember)
        assert not contact.found
        elementary = counters["edge_edge"] + counters["vertex_face"] + counters["face_vertex"]
        counts[remember, bits] = counters["sphere_tests"], elementary
    assert counts[REMEMBER_BALLS, 16][0] < 0.9 * counts[0, 16][0]
    assert counts[REMEMBER_FEATURES, 16][0] == counts[0, 16][0]
    assert counts[REMEMBER_FEATURES, 16][1] < 0.3 * counts[0, 16][1]
    assert counts[ALL, 16] == (counts[REMEMBER_BALLS, 16][0], counts[REMEMBER_FEATURES, 16][1])
    assert counts[ALL, 16][1] < counts[ALL, 2][1] <= counts[0, 16][1]
    # No pair of features twice: there are only so many.
    assert counts[ALL, 16][1] <= 18 * 18 + 2 * 8 * 12


def test_memory_of_an_earlier_query_does_not_count(trees):
    """The second of two equal queries does the same work as the first."""
    relative = approach(np.random.default_rng(33), 0.3, 1.5)
    memory = PairMemory()
    work = []
    for _ in range(2):
        counters = new_counters()
        first_contact(trees["pebble"], trees["block"], relative, new_query(), counters, memory)
        work.append(counters.tolist())
    assert work[0] == work[1]
    assert sum(work[0]) > 0


@pytest.mark.parametrize(("turn", "slide"), [(0.0, 1.0), (1e-6, 1.0), (0.5, 0.0), (0.5, 1.0), (2.5, 0.3)])
def test_moving_balls_overlap_when_their_least_distance_says_so(turn, slide):
    """Translation, rotation and screw; the least distance by sampling and minimising; radii 10^-7 to either side."""
    rng = np.random.default_rng(34)
    ball = build_sphere_tree(*block(), 2.0)
    for _ in range(30):
        relative = np.zeros(1, RELATIVE)[0]
        motion.still(relative["first"], tuple(rng.normal(size=3)), (0.6, 0.0, 0.0, 0.8))
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        pivot = tuple(rng.normal(size=3))
        start = tuple(rng.normal(size=3))
        motion.from_twist(
            relative["second"],
            motion.TAN_HALF,
            start,
            (0.0, 0.0, 0.0, 1.0),
            tuple(slide * axis if turn == 0.5 else slide * rng.normal(size=3)),
            tuple(turn * axis),
            pivot,
        )
        screw = np.zeros(1, BALL_SCREW)[0]
        fill_ball_screw(relative, ball.nodes[0], ball.nodes[0], screw)
        centre = tuple(rng.normal(size=3))
        fixed = rng.normal(size=3)

        def apart(u, relative=relative, centre=centre, fixed=fixed):
            position, orientation = motion.relative_pose(relative, u)
            return np.linalg.norm(np.array(position) + rotate(orientation, centre) - fixed)

        u1 = rng.uniform(0.2, 1.0)
        grid = np.linspace(0.0, u1, 65)
        k = int(np.argmin([apart(u) for u in grid]))
        near = grid[max(k - 1, 0)], grid[min(k + 1, 64)]
        least = min(minimize_scalar(apart, bounds=near, method="bounded", options={"xatol": 1e-11}).fun, apart(grid[k]))
        end = u1 if turn < 1e-9 else np.tan(0.5 * turn * u1) / np.tan(0.5 * turn)
        position, orientation = motion.relative_pose(relative, 0.0)
        at_start = tuple(np.array(position) + rotate(orientation, centre))
        assert balls_overlap(screw, tuple(fixed), at_start, least * (1 + 1e-7) + 1e-12, end)
        assert not balls_overlap(screw, tuple(fixed), at_start, least * (1 - 1e-7) - 1e-7, end)


def test_motions_without_a_polynomial_are_refused(trees):
    relative = np.zeros(1, RELATIVE)[0]
    motion.still(relative["first"], (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    here = (0.0, 0.0, 2.0)
    motion.from_twist(relative["second"], motion.SCREW, here, (0.0, 0.0, 0.0, 1.0), here, (0.0, 0.1, 0.0), here)
    with pytest.raises(ValueError, match="TAN_HALF"):
        first_contact(trees["block"], trees["block"], relative, new_query(), new_counters(), PairMemory())
    relative["first"] = relative["second"]
    with pytest.raises(ValueError, match="rest"):
        first_contact(trees["block"], trees["block"], relative, new_query(), new_counters(), PairMemory())
