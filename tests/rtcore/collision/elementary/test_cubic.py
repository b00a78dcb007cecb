"""The closed-form back-end: the printed examples, and on its own motions never late and within its tolerances."""

import math

import numpy as np
import pytest
from rigid_truth import EDGE_EDGE, FACE_VERTEX, VERTEX_FACE, check, one_case, one_pair, random_cases

from rtcore import motion
from rtcore.collision.elementary import cubic

TESTS = {shape: one_pair(cubic, shape) for shape in (EDGE_EDGE, VERTEX_FACE, FACE_VERTEX)}
SCREW_FRAME = {"shift": (0, 0, 0.2), "turn": (0, 0, 0.6), "kind": motion.TAN_HALF}
EDGES = ([[1, 0.3, -0.2], [1.2, 0.1, 0.6]], [[1, 0, 0], [1.5, 0.2, 0.3]])
FACE = [[0.6, 0.2, 0.05], [1.2, 0.1, 0.25], [0.7, 0.9, 0.2]]


def time_of(v):
    return 2 / 0.6 * math.atan(v * math.tan(0.3))


def polynomial(case):
    """Coefficients of the contact cubic in v, highest first, from the kernel's Bernstein form over [0, 1]."""
    values = []
    for v in (0, 1 / 3, 2 / 3, 1):
        u = np.array([time_of(v)])
        a, c = ([tuple(p) for p in body.places(u)[0].tolist()] for body in (case.first, case.second))
        a, c = (tuple((points * 3)[:2] + points[-1:]) for points in (a, c))
        values.append((1 + math.tan(0.3) ** 2 * v * v) * cubic.triple_product(case.shape, a, c))
    p = cubic.bernstein(*values)
    return [p[3] - 3 * p[2] + 3 * p[1] - p[0], 3 * (p[2] - 2 * p[1] + p[0]), 3 * (p[1] - p[0]), p[0]]


def test_edges_of_the_printed_example_meet():
    case = one_case(EDGE_EDGE, *EDGES, **SCREW_FRAME)
    np.testing.assert_allclose(polynomial(case), [-0.00267929, -0.001187932, 0.275469, -0.074], atol=6e-7)
    time, found, _ = case.run(TESTS[EDGE_EDGE], 0.0, time_tolerance=1e-11, position_tolerance=1e-11)
    assert found[0] and time[0] == pytest.approx(0.276871939, abs=1e-9)
    assert time[0] == pytest.approx(time_of(0.269134738), abs=1e-9)
    a, b = case.second.places(time)[0]
    np.testing.assert_allclose(a + 0.200557251 * (b - a), [1.078498531, 0.221501469, 0.113994123], atol=2e-9)


def test_a_vertex_of_the_printed_example_meets_the_face_and_another_passes_by():
    case = one_case(FACE_VERTEX, FACE, [[1, 0.1, 0.15]], **SCREW_FRAME)
    time, found, _ = case.run(TESTS[FACE_VERTEX], 0.0, time_tolerance=1e-11, position_tolerance=1e-11)
    assert found[0] and time[0] == pytest.approx(0.210416516, abs=1e-9)
    np.testing.assert_allclose(case.second.places(time)[0, 0], [0.979449581, 0.225118899, 0.190867460], atol=2e-9)

    outside = one_case(FACE_VERTEX, FACE, [[1, -0.1, 0.12]], **SCREW_FRAME)
    roots = np.roots(polynomial(outside))
    assert np.min(np.abs(roots - 0.266188315)) < 1e-8  # it does cross the plane
    time, found, _ = outside.run(TESTS[FACE_VERTEX], 0.0)
    assert not found[0] and time[0] == 1.0


def test_bernstein_form_of_parts_is_the_same_cubic():
    rng = np.random.default_rng(1)
    for _ in range(100):
        p = rng.normal(size=4)
        values = tuple(np.polyval(p, [0, 1 / 3, 2 / 3, 1]).tolist())
        x0, x1 = np.sort(rng.uniform(0, 1, 2))
        q = cubic.part(cubic.bernstein(*values), float(x0), float(x1))
        for t in np.linspace(0, 1, 7):
            there = np.dot(q, [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3])
            assert there == pytest.approx(np.polyval(p, x0 + t * (x1 - x0)), abs=1e-13)


@pytest.mark.parametrize("shape", TESTS)
@pytest.mark.parametrize("separation", [0.0, 0.05])
def test_all_motions_that_make_a_cubic(shape, separation):
    kinds = [(0, 2), (0, 2), (0, 1), (0, 0)]
    cases = random_cases(np.random.default_rng(shape), 120, shape, kinds, [0.01, 2.99, 0.0, 0.0])
    assert all(cubic.solvable(r) for r in cases.relative)
    _, found, _ = check(cases, TESTS[shape], separation, cap=1000)
    assert found.mean() > 0.6


@pytest.mark.parametrize("shape", TESTS)
def test_features_in_one_plane_where_the_cubic_is_zero_throughout(shape):
    cases = random_cases(np.random.default_rng(5), 80, shape, [(0, 2), (0, 1)], [1.0, 0.0], flat=True)
    _, found, _ = check(cases, TESTS[shape], 0.0, cap=3000)
    assert found.mean() > 0.6


@pytest.mark.parametrize("size", [1e-6, 1e4])
def test_sizes(size):
    for shape, test in TESTS.items():
        cases = random_cases(np.random.default_rng(6), 60, shape, [(0, 2)], 1.0, size=size)
        _, found, _ = check(cases, test, 0.0, position_tolerance=1e-7 * size, cap=1000)
        assert found.mean() > 0.6


def test_the_sign_of_the_coefficients_answers_most_pairs():
    for shape, test in TESTS.items():
        cases = random_cases(np.random.default_rng(7), 200, shape, [(0, 2)], 0.01, aimed=False)
        cases.relative["second"]["shift"] *= 0.02
        for separation in (0.0, 0.01):
            _, _, iterations = cases.run(test, separation)
            assert (iterations == 0).mean() > 0.8


def test_other_motions_are_passed_on():
    cases = random_cases(np.random.default_rng(8), 60, EDGE_EDGE, [(1, 1), (2, 0), (0, 1)], 1.0)
    assert not any(cubic.solvable(r) for r in cases.relative)
    _, found, _ = check(cases, TESTS[EDGE_EDGE], 0.0)
    assert found.mean() > 0.6
