"""Distances of meshes without the engine: against python-fcl, formulas, and shapes whose answer is known."""

import fcl
import numpy as np
import pytest
from drawn import ball_mesh, box_mesh
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
