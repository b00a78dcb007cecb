"""The distance of two posed meshes is that of all pairs of features, and 0 exactly where their surfaces meet."""

import math

import mesh_pairs
import numpy as np
import pytest
from mesh_pairs import Pair
from scipy.spatial.transform import Rotation

from rtcore import motion
from rtcore.collision.mesh_distance import mesh_distance
from rtcore.collision.overlap import place_pair
from rtcore.collision.pair_state import make_query_work
from rtcore.tables import HIT, PLACEMENT, RELATIVE
from tools.exact.intersect import judge, posed

WORK = make_query_work()
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


def ask(pair: Pair, position, orientation=UPRIGHT, limit=math.inf):
    """(distance, HIT) with the first body in the scene's frame."""
    relative = np.zeros(1, RELATIVE)[0]
    motion.still(relative["first"], (0.0, 0.0, 0.0), UPRIGHT)
    motion.still(relative["second"], tuple(map(float, position)), tuple(map(float, orientation)))
    root = pair.nodes[pair.second_root]
    placement = np.zeros(1, PLACEMENT)[0]
    place_pair(relative, tuple(root["centre"]), float(root["radius"]), 0.0, 0.0, placement)
    hit = np.zeros(1, HIT)[0]
    # fmt: off
    distance = mesh_distance(
        pair.nodes, pair.triangles, pair.first_root, pair.second_root, placement, limit, WORK[0], hit,
    )
    # fmt: on
    return distance, hit


def cases(count, seed):
    """Pairs of odd meshes (open, needles, unconnected) from far apart to deep inside each other."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        pair = Pair(mesh_pairs.random_mesh(generator), mesh_pairs.random_mesh(generator))
        way = generator.normal(size=3)
        way *= generator.uniform(0.0, 1.6) / np.linalg.norm(way)
        yield pair, way, np.array(mesh_pairs.unit(generator))


def test_it_is_the_distance_of_all_pairs_of_features():
    apart = meeting = 0
    for pair, position, orientation in cases(150, seed=1):
        distance, hit = ask(pair, position, orientation)
        truth = judge(pair.first["vertices"], posed(pair.second["vertices"], position, orientation))
        if truth.meeting:
            assert distance < 1e-12
            meeting += 1
            continue
        apart += 1
        assert truth.lower - 1e-12 <= distance <= truth.upper + 1e-12
        assert hit["found"] == 1 and hit["gap"] == distance
    assert apart > 40 and meeting > 40


def test_the_witness_points_are_on_the_triangles_named_and_as_far_apart():
    for pair, position, orientation in cases(80, seed=2):
        distance, hit = ask(pair, position, orientation)
        turn = Rotation.from_quat(orientation)
        first = pair.triangles[hit["first_triangle"]]["vertices"]
        second = turn.apply(pair.triangles[hit["second_triangle"]]["vertices"]) + position
        assert hit["first_triangle"] < len(pair.first) <= hit["second_triangle"]
        for corners, point in ((first, hit["point"]), (second, hit["point"] + distance * hit["normal"])):
            weights = np.linalg.lstsq(np.vstack([corners.T, np.ones(3)]), np.append(point, 1.0), rcond=None)[0]
            assert weights.min() > -1e-6
            np.testing.assert_allclose(corners.T @ weights, point, atol=1e-9)
        if distance > 0.0:
            assert np.linalg.norm(hit["normal"]) == pytest.approx(1.0, abs=1e-12)


def test_two_boxes_by_hand():
    """Unit boxes face to face, edge to edge, corner to corner, touching, and crossing."""
    pair = Pair(mesh_pairs.box(), mesh_pairs.box())
    assert ask(pair, (1.25, 0.1, 0.2))[0] == pytest.approx(0.25, rel=1e-15)
    assert ask(pair, (1.3, 1.4, 0.0))[0] == pytest.approx(0.5, rel=1e-14)
    distance, hit = ask(pair, (2.0, 3.0, 3.0))
    assert distance == pytest.approx(3.0, rel=1e-15)
    np.testing.assert_allclose(hit["point"], (0.5, 0.5, 0.5))
    np.testing.assert_allclose(hit["normal"], np.array([1.0, 2.0, 2.0]) / 3.0)
    assert hit["first_feature"] < 3 and hit["second_feature"] < 3
    assert ask(pair, (1.0, 0.3, 0.2))[0] == 0.0
    distance, hit = ask(pair, (0.8, 0.3, 0.2))
    assert distance == 0.0 and {hit["first_feature"], hit["second_feature"]} & {6}
    assert (hit["normal"] == 0.0).all() and np.abs(hit["point"]).max() <= 0.5 + 1e-12


def test_a_surface_wholly_inside_another_has_the_distance_of_the_surfaces():
    pair = Pair(mesh_pairs.box(), mesh_pairs.box((0.2, 0.2, 0.2)))
    assert ask(pair, (0.0, 0.0, 0.0))[0] == pytest.approx(0.4, rel=1e-15)
    assert ask(pair, (0.35, 0.0, 0.0))[0] == pytest.approx(0.05, rel=1e-12)


def test_a_limit_ends_the_search_without_an_answer_beyond_it():
    pair = Pair(mesh_pairs.box(), mesh_pairs.box())
    distance, hit = ask(pair, (1.25, 0.0, 0.0), limit=0.2)
    assert distance == 0.2 and hit["found"] == 0 and hit["first_triangle"] == -1
    distance, hit = ask(pair, (1.25, 0.0, 0.0), limit=0.3)
    assert distance == pytest.approx(0.25) and hit["found"] == 1


def test_another_library_measures_the_same():
    """FCL's distance of the same two meshes, which is exact to 1e-6 of the size."""
    fcl = pytest.importorskip("fcl", reason="python-fcl is not installed")
    generator = np.random.default_rng(3)
    compared = 0
    for _ in range(25):
        first, second = mesh_pairs.bumpy(generator, 2), mesh_pairs.bumpy(generator, 2)
        position, orientation = generator.uniform(-1.3, 1.3, 3), np.array(mesh_pairs.unit(generator))
        distance, _ = ask(Pair(first, second), position, orientation)
        models = []
        for vertices, faces in (first, second):
            model = fcl.BVHModel()
            model.beginModel(len(vertices), len(faces))
            model.addSubModel(vertices, faces)
            model.endModel()
            models.append(model)
        objects = [
            fcl.CollisionObject(models[0], fcl.Transform()),
            fcl.CollisionObject(models[1], fcl.Transform(np.roll(orientation, 1), position)),
        ]
        theirs = fcl.distance(*objects, fcl.DistanceRequest(), fcl.DistanceResult())
        if theirs <= 0.0:
            assert distance == 0.0
            continue
        compared += 1
        assert distance == pytest.approx(theirs, abs=1e-6)
    assert compared >= 8
