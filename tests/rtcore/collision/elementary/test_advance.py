"""Directional conservative advancement: never late, within its tolerances, and quick where bodies slide or recede."""

import numpy as np
import pytest
from rigid_truth import EDGE_EDGE, FACE_VERTEX, VERTEX_FACE, check, one_case, random_cases

from rtcore.collision.elementary import advance

TESTS = {EDGE_EDGE: advance.edge_edge, VERTEX_FACE: advance.vertex_face, FACE_VERTEX: advance.face_vertex}
KINDS = [(0, 1), (1, 0), (1, 1), (0, 1), (1, 0), (1, 1), (0, 2), (2, 1), (2, 2), (0, 0)]
TURNS = [0.3, 0.3, 0.3, np.pi, np.pi, np.pi, 2.9, 2.9, 1.0, 0.0]


@pytest.mark.parametrize("shape", TESTS)
@pytest.mark.parametrize("separation", [0.0, 0.05])
def test_any_motion_of_both_bodies(shape, separation):
    cases = random_cases(np.random.default_rng(shape), 150, shape, KINDS, TURNS)
    _, found, iterations = check(cases, TESTS[shape], separation)
    assert found.mean() > 0.7
    assert iterations.max() < 100 and iterations.mean() < 15  # displacements of several times the size


@pytest.mark.parametrize("shape", TESTS)
def test_features_that_mostly_miss_each_other(shape):
    cases = random_cases(np.random.default_rng(10 + shape), 150, shape, KINDS, TURNS, aimed=False)
    _, found, _ = check(cases, TESTS[shape], 0.05)
    assert found.mean() < 0.3


@pytest.mark.parametrize(("size", "offset"), [(1e-7, 0.0), (1e5, 0.0), (0.01, 100.0)])
def test_sizes_and_a_far_origin(size, offset):
    for shape, test in TESTS.items():
        cases = random_cases(np.random.default_rng(20), 60, shape, KINDS[:6], TURNS[:6], size=size, offset=offset)
        _, found, _ = check(cases, test, 0.01 * size, position_tolerance=1e-7 * size)
        assert found.mean() > 0.7


@pytest.mark.parametrize("shape", TESTS)
def test_features_in_one_plane(shape):
    cases = random_cases(np.random.default_rng(30), 120, shape, KINDS[:6], TURNS[:6], flat=True)
    _, found, _ = check(cases, TESTS[shape], 0.02)
    assert found.mean() > 0.7


def test_motions_of_one_tick_need_few_advances():
    # 1 mm and 3 mrad per tick between features of 10 mm that begin within 1 mm of the separation.
    rng = np.random.default_rng(40)
    for shape, test in TESTS.items():
        cases = random_cases(rng, 300, shape, [(1, 1)], 0.003, size=0.01)
        for name in ("first", "second"):
            shift = cases.relative[name]["shift"]
            shift *= (1e-3 / np.linalg.norm(shift, axis=1))[:, None]
        separation = np.maximum(cases.at(0.0) - rng.uniform(0, 1e-3, len(cases)), 1e-5)
        _, _, iterations = cases.run(test, separation, 1.0, 1e-6, 1e-7, 50)
        assert iterations.max() <= 6 and iterations.mean() <= 2.5


def test_what_turns_at_infinite_speed_at_first_is_followed_all_the_same():
    rng = np.random.default_rng(50)
    for shape, test in TESTS.items():
        cases = random_cases(rng, 60, shape, [(0, 3), (3, 1), (3, 3)], 1.5)
        time, found, _ = cases.run(test, 0.05, 1.0, 1e-9, 1e-7, 500)
        below = cases.at(0.0) <= 0.05
        for share in np.linspace(0, 1, 500):
            assert np.all((cases.distances(share * time) >= 0.05 - 1e-12) | below)
        gap = cases.distances(time)[found & ~below] - 0.05
        assert np.all(gap <= 1e-6) and found.mean() > 0.5


def test_pairs_of_one_triangle_pair_may_share_their_bounds():
    # Bounds for a ball that holds more than the feature prove less, never something else.
    rng = np.random.default_rng(60)
    cases = random_cases(rng, 100, EDGE_EDGE, [(0, 1), (1, 1)], 0.5)
    alone, _, _ = cases.run(advance.edge_edge, 0.02)

    def shared(relative, a0, a1, b0, b1, *options):
        bounds = advance.motion_bounds(relative, a0, 5.0, b0, 5.0, 1.0)
        position, orientation = advance.pose_at_start(relative)
        c0, c1 = advance.carried(position, orientation, b0), advance.carried(position, orientation, b1)
        return advance.first_approach(relative, EDGE_EDGE, (a0, a1, a1), (b0, b1, b1), (c0, c1, c1), bounds, *options)

    together, _, _ = check(cases, shared, 0.02)
    assert np.allclose(alone, together, atol=1e-6)


def test_the_direction_between_features_is_square_to_their_edges_however_near_they_are():
    # At a gap of 1e-9 the difference of the nearest points has lost seven digits; the planes must not tilt by that.
    rng = np.random.default_rng(70)
    for _ in range(200):
        a, d, e = rng.normal(size=(3, 3))
        n = np.cross(d, e) / np.linalg.norm(np.cross(d, e))
        s, t = rng.uniform(0.1, 0.9, 2)
        b = a + s * d + 1e-9 * n - t * e
        points = [tuple(p.tolist()) for p in (a, a + d, b, b + e)]
        direction, _, distance = advance.edges_apart(*points)
        assert abs(np.dot(direction, d)) < 1e-14 and abs(np.dot(direction, e)) < 1e-14
        assert distance == pytest.approx(1e-9, rel=1e-5)
        corners = [tuple(p.tolist()) for p in (a, a + d, a + e)]
        point = tuple((a + 0.3 * d + 0.2 * e - 1e-9 * n).tolist())
        direction, _, _ = advance.point_face_apart(point, *corners)
        assert np.dot(direction, n) == pytest.approx(1.0, abs=1e-14)


def test_levels_hold_what_is_above_them_and_what_rounding_took_below():
    # At a level, and up to an eighth of the tolerance below it, the same level answers; else it is below the distance.
    rng = np.random.default_rng(80)
    separation, tolerance, pad = 1e-3, 1e-7, 1e-14
    for distance in separation - 10.0 ** rng.uniform(-12, -4, 3000):
        level = advance.kept_distance(distance, separation, tolerance, pad)
        assert distance - 0.875 * tolerance * (1 + 1e-6) <= level <= distance + 0.125 * tolerance * (1 + 1e-6)
        for sunk in (0.0, -1e-13, -0.124 * tolerance):
            assert advance.kept_distance(level + sunk, separation, tolerance, pad) == pytest.approx(level, abs=1e-17)
    assert advance.kept_distance(separation + 1e-12, separation, tolerance, pad) == separation
    assert advance.kept_distance(separation, separation, tolerance, pad) == separation - 4 * pad
    assert advance.kept_distance(5e-14, 1e-7, tolerance, pad) == 4 * pad  # never as low as to touch


def test_a_body_that_rolls_away_from_where_it_began_too_near_is_free():
    # A plane that turns about a line above it: nothing moves at first order where they are nearest, and that it leaves
    # shows at second order only. Turned about a line below, it comes nearer by radius / cos(angle) - radius, which ends
    # within the tolerance.
    face = [[-1, -1, 0], [1, -1, 0], [0, 2, 0]]
    for height, free in ((0.5, True), (-0.5, False)):
        case = one_case(VERTEX_FACE, [[0, 0, 0.001]], face, (0, 0, 0), (0.01, 0, 0), pivot=(0, 0, height))
        time, found, iterations = case.run(advance.vertex_face, 0.002, time_tolerance=1e-8, position_tolerance=1e-7)
        assert found[0] != free and iterations[0] < 40
        assert time[0] == 1.0 if free else case.distances(time)[0] > 0.001 - 1e-7
