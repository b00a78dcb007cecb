"""The bound of the distance of two convex pieces is never above the distance, and next to it where that was asked."""

import numpy as np
import pytest
import shape_truth as truth
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from rtcore.collision.convex_distance import DISTANCE_WORK, core_distance, put_pose, to_first
from rtcore.collision.shape_pieces import load_piece
from rtcore.geometry import shapes
from rtcore.tables import BOX_NODE, TRIANGLE

SOLIDS = {
    "sphere": shapes.sphere(0.3),
    "capsule": shapes.capsule(0.2, 0.5),
    "box": shapes.box((0.2, 0.5, 0.3)),
    "cylinder": shapes.cylinder(0.4, 0.3),
    "cone": shapes.cone(0.4, 0.9),
}
CLOUDS = {name: truth.points_on(made, np.random.default_rng(3), 3000) for name, made in SOLIDS.items()}
ANY = st.sampled_from(sorted(SOLIDS))
SEED = st.integers(0, 2**32 - 1)


def bound(first, second, place, turn, wanted=0.0, tight=True):
    """(lower bound between the shapes, unit direction, point on the first, steps)."""
    work = np.zeros(1, DISTANCE_WORK)[0]
    for made, piece in ((first, work["first"]), (second, work["second"])):
        table, values = shapes.collect([made])
        load_piece(table[0], values, np.zeros(1, BOX_NODE), np.zeros(1, TRIANGLE), 1, 1e-9, piece)
    put_pose(work, tuple(place), tuple(turn))
    margins = work["first"]["margin"] + work["second"]["margin"]
    low, steps = core_distance(work, wanted + margins, tight)
    n = work["direction"].copy()
    return low - margins, n, work["witness"] + work["first"]["margin"] * n, steps


def random_pose(seed, far):
    rng = np.random.default_rng(seed)
    place = rng.normal(size=3)
    turn = rng.normal(size=4)
    return place * far * rng.random() / np.linalg.norm(place), turn / np.linalg.norm(turn)


@settings(max_examples=300, deadline=None)
@given(ANY, SEED, st.sampled_from([0.6, 1.5, 20.0]))
def test_the_distance_of_a_point_is_the_closed_form(name, seed, far):
    place, turn = random_pose(seed, far)
    radius = 1e-3
    exact = truth.distance(SOLIDS[name][0], place[None])[0] - radius
    low, n, point, _ = bound(SOLIDS[name], shapes.sphere(radius), place, turn)
    if exact <= 0.0:
        assert low <= 1e-15
    else:
        assert 0.99 * exact - 1e-14 <= low <= exact + 1e-15
        assert abs(n @ n - 1) < 1e-14
        assert truth.distance(SOLIDS[name][0], point[None])[0] < 0.02 * exact + 1e-12


@settings(max_examples=150, deadline=None)
@given(ANY, SEED)
def test_the_distance_of_a_capsule_is_the_least_along_its_segment(name, seed):
    place, turn = random_pose(seed, 2.0)
    axis = truth.turned(turn)[:, 2]

    def along(t):
        return truth.distance(SOLIDS[name][0], (place + t * axis)[None])[0]

    found = minimize_scalar(along, bounds=(-0.5, 0.5), method="bounded", options={"xatol": 1e-10}).fun
    exact = min(found, along(-0.5), along(0.5)) - 0.2
    low = bound(SOLIDS[name], SOLIDS["capsule"], place, turn)[0]
    if exact > 1e-9:
        assert 0.99 * exact - 1e-9 <= low <= exact + 1e-14
    else:
        assert low <= exact + 1e-9


@settings(max_examples=200, deadline=None)
@given(ANY, ANY, SEED, st.booleans(), st.sampled_from([0.0, 0.1]))
def test_the_direction_proves_the_bound_on_dense_points(a, b, seed, tight, wanted):
    place, turn = random_pose(seed, 2.5)
    low, n, _, _ = bound(SOLIDS[a], SOLIDS[b], place, turn, wanted, tight)
    there = place + CLOUDS[b] @ truth.turned(turn).T
    assert (there @ n).min() - (CLOUDS[a] @ n).max() >= low - 1e-14
    nearest = truth.distance(SOLIDS[a][0], there).min()
    assert low <= nearest + 1e-14
    if tight and nearest > 0.2:  # dense points know the distance to a few hundredths
        assert low > nearest - 0.06


@pytest.mark.parametrize("share", [1.0, 1e-6, 1e-12])
def test_the_bound_is_tight_down_to_rounding_where_the_distance_is_what_was_wanted(share):
    first, second = SOLIDS["box"], SOLIDS["cylinder"]
    place = np.array([0.05, 0.02, 0.6 + 0.01 + 0.01 * share])  # 0.01 (1 + share) above the top face
    low, n, point, steps = bound(first, second, place, truth.REST, wanted=0.01)
    assert 0.01 * (1 + 0.98 * share) - 1e-13 <= low <= 0.01 * (1 + share) + 1e-16
    assert np.allclose(n, (0, 0, 1), rtol=0, atol=1e-6)
    assert abs(point[2] - 0.3) < 1e-12
    assert steps <= 48


def test_deep_overlap_and_equal_places_say_nothing_and_end():
    for a in SOLIDS:
        for b in SOLIDS:
            low, _, _, steps = bound(SOLIDS[a], SOLIDS[b], (0.0, 0.0, 0.0), truth.REST)
            assert low <= 1e-15 and steps <= 48


def test_a_plane_has_the_least_height_whatever_the_first_guess():
    ground = shapes.plane((0, 0, 1), 0.1)
    low, n, point, steps = bound(ground, SOLIDS["box"], (0.0, 0.0, 2.0), (0.0, 0.0, 0.0, 1.0))
    assert abs(low - 1.6) < 1e-13 and low <= 1.6 and steps == 1
    assert tuple(n) == (0.0, 0.0, 1.0) and abs(point[2] - 0.1) < 1e-15


def test_poses_are_applied_as_rotations():
    work = np.zeros(1, DISTANCE_WORK)[0]
    turn = (0.5, 0.5, 0.5, 0.5)  # x to y to z to x
    put_pose(work, (1.0, 2.0, 3.0), turn)
    assert to_first(work, (1.0, 0.0, 0.0)) == (1.0, 3.0, 3.0)
