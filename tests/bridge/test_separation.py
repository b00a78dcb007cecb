"""Distances of meshes without the engine: against python-fcl, formulas, and shapes whose answer is known."""

import fcl
import numpy as np
import pytest
from drawn import ball_mesh, box_mesh
from scipy.optimize import minimize, minimize_scalar
from scipy.spatial.transform import Rotation

from bridge.separation import is_closed, triangles_distance, winding


def fcl_distance(first: np.ndarray, second: np.ndarray) -> float:
    objects = []
    for triangles in (first, second):
        model = fcl.BVHModel()
        model.beginModel(len(triangles), 3 * len(triangles))
        model.addSubModel(triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3))
        model.endModel()
        objects.append(fcl.CollisionObject(model, fcl.Transform()))
    result = fcl.DistanceResult()
    return fcl.distance(*objects, fcl.DistanceRequest(), result)


@pytest.mark.parametrize("seed", range(12))
def test_distances_agree_with_fcl(seed):
    random = np.random.default_rng(seed)
    turn = Rotation.random(random_state=seed).as_matrix()
    box = box_mesh(1.0) @ turn.T
    ball = ball_mesh(0.4, 3) + random.uniform(1.0, 1.6, 3)
    found = triangles_distance(ball, box, 5.0)
    assert found == pytest.approx(fcl_distance(ball, box), rel=1e-6, abs=1e-9) and found > 0.0


def test_what_is_out_of_reach_and_what_crosses():
    box = box_mesh(1.0)
    assert triangles_distance(box + (1.5, 0.0, 0.0), box, 0.6) == pytest.approx(0.5)
    assert triangles_distance(box + (1.5, 0.0, 0.0), box, 0.4) == np.inf
    assert triangles_distance(box + (0.9, 0.1, 0.2), box, 0.4) == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_rounded_surfaces_are_as_far_apart_as_their_cores_less_the_radii(seed):
    """A capsule and a ball about a box: the least over the segment of the distance of a point to a box, a formula."""
    random = np.random.default_rng(seed)
    half = np.array((0.3, 0.2, 0.1))
    box = box_mesh(1.0) * (2.0 * half)

    def to_box(point: np.ndarray) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(point) - half, 0.0)))

    start, end = random.normal(0.0, 0.6, (2, 3)) + (0.0, 0.0, 1.0)
    found = triangles_distance(np.array([[start, end, end]]), box, 5.0, 0.05 + 0.02)
    along = minimize_scalar(
        lambda s: to_box(start + s * (end - start)), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12}
    )
    ends = min(to_box(start), to_box(end), float(along.fun))
    assert found == pytest.approx(ends - 0.07, abs=1e-9)
    assert triangles_distance(np.array([[start] * 3]), box, 5.0, 0.3) == pytest.approx(to_box(start) - 0.3, abs=1e-12)
    assert triangles_distance(np.array([[start] * 3]), box, to_box(start) - 0.31, 0.3) == np.inf
    gap = float(np.linalg.norm(start - end))
    assert triangles_distance(np.array([[start] * 3]), np.array([[end] * 3]), 5.0, gap + 0.1) == pytest.approx(-0.1)


@pytest.mark.parametrize("seed", range(8))
def test_points_and_segments_have_the_distances_that_a_minimiser_finds(seed):
    """Which is that of a convex function of two places along them; in either order, and parallel ones too."""
    random = np.random.default_rng(seed)
    a, b, c, d = random.normal(size=(4, 3))
    if seed % 4 == 3:
        d = c + 1.7 * (b - a)
    found = [a, b, b], [c, d, d]
    for one, other in (found, ([a] * 3, [c, d, d]), ([a] * 3, [c] * 3)):

        def apart(x: np.ndarray, one=one, other=other) -> float:
            ends = [
                np.asarray(each[0]) + s * (np.asarray(each[1]) - each[0])
                for each, s in zip((one, other), x, strict=True)
            ]
            return float(np.sum((ends[0] - ends[1]) ** 2))

        tried = [
            minimize(apart, start, bounds=[(0.0, 1.0)] * 2, options={"ftol": 1e-15, "gtol": 1e-12}).fun
            for start in ((0.5, 0.5), (0.0, 1.0))
        ]
        for first, second in ((one, other), (other, one)):
            distance = triangles_distance(np.array([first]), np.array([second]), 50.0)
            assert distance == pytest.approx(np.sqrt(min(tried)), abs=1e-7)


def test_how_often_a_mesh_goes_round_a_point():
    ball = ball_mesh(0.5, 3)
    assert winding(np.array([0.1, 0.0, 0.2]), ball) == pytest.approx(1.0)
    assert winding(np.array([0.4, 0.4, 0.4]), ball) == pytest.approx(0.0, abs=1e-12)
    assert winding(np.array([0.1, 0.0, 0.2]), np.concatenate([ball, 2.0 * ball])) == pytest.approx(2.0)


def test_closed_meshes_are_told_from_open_ones():
    box = box_mesh(1.0)
    assert is_closed(box) and is_closed(ball_mesh(0.5, 2))
    assert not is_closed(box[:-1])
    turned = box.copy()
    turned[0] = turned[0, ::-1]
    assert not is_closed(turned)
