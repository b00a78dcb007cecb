"""The exact judge of poses against answers known by hand and against python-fcl."""

import numpy as np
import pytest
import trimesh

from tools.exact.intersect import judge, near_pairs, posed, triangles_meet
from tools.exact.triangles import bounds

T = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
TINY = 2.0**-60


@pytest.mark.parametrize(
    ("other", "meet"),
    [
        ([[0.2, 0.2, -1], [0.2, 0.2, 1], [5, 5, 1]], True),  # pierces
        ([[0.2, 0.2, 0], [0.2, 0.2, 1], [5, 5, 1]], True),  # touches the face with a corner
        ([[0.2, 0.2, TINY], [0.2, 0.2, 1], [5, 5, 1]], False),
        ([[0.2, 0.2, 0], [0.3, 0.2, 0], [0.2, 0.3, 0]], True),  # inside, in one plane
        ([[-9, -9, 0], [9, -9, 0], [0, 9, 0]], True),  # around, in one plane
        ([[2, 0, 0], [3, 0, 0], [2, 1, 0]], False),
        ([[1, 0, 0], [3, 0, 0], [2, 1, 0]], True),  # a corner in common
        ([[1 + 2.0**-52, 0, 0], [3, 0, 0], [2, 1, 0]], False),
        ([[0.5, 0.5, -1], [0.5, 0.5, 1], [0.5, 0.5, 0]], True),  # a degenerate one through the long side
        ([[0.2, 0.2, 0], [0.2, 0.2, 0], [0.2, 0.2, 0]], True),  # a point on the face
        ([[0.2, 0.2, TINY]] * 3, False),
        ([[0, 0, 1], [1, 0, 1], [0, 1, 1]], False),
        ([[0.5, -1, -1], [0.5, -1, 1], [0.5, 1, 0]], True),
    ],
)
def test_exact_decisions(other, meet):
    other = np.array(other, dtype=float)
    for first, second in ((T, other), (other, T), (T[::-1], other[[1, 2, 0]])):
        assert triangles_meet(first, second) is meet


def test_bounds_hold_and_are_close():
    """Lower and upper bound of random pairs enclose the distance found by dense samples, and agree to 1e-9."""
    generator = np.random.default_rng(2)
    first, second = generator.normal(size=(2, 300, 3, 3))
    second[:100] += 2.0
    second[100:150, :2] = second[100:150, :1] + 1e-7 * generator.normal(size=(50, 2, 3))
    lower, upper, direction = bounds(first, second)
    np.testing.assert_allclose(np.linalg.norm(direction[lower > 0], axis=1), 1.0, atol=1e-12)
    share = np.array([(i / 15, j / 15, 1 - (i + j) / 15) for i in range(16) for j in range(16 - i)])
    for k in range(300):
        p, q = share @ first[k], share @ second[k]
        sampled = np.sqrt(((p[:, None] - q[None]) ** 2).sum(axis=2).min())
        assert upper[k] <= sampled + 1e-12
        if triangles_meet(first[k], second[k]):
            assert lower[k] <= 0.0
            assert upper[k] <= 1e-12
        else:
            assert 0.0 < lower[k] <= upper[k] <= lower[k] + 1e-9
    assert np.sum(lower <= 0) > 5


def test_box_filter_leaves_nothing_out():
    generator = np.random.default_rng(4)
    first = generator.uniform(-1, 1, (700, 1, 3)) + 0.1 * generator.normal(size=(700, 3, 3))
    second = generator.uniform(-1, 1, (500, 1, 3)) + 0.1 * generator.normal(size=(500, 3, 3))
    lows, highs = (x.min(axis=1) for x in (first, second)), (x.max(axis=1) for x in (first, second))
    (low_a, low_b), (high_a, high_b) = lows, highs
    gap = np.maximum(np.maximum(low_a[:, None] - high_b[None], low_b[None] - high_a[:, None]), 0.0)
    expected = np.linalg.norm(gap, axis=2) <= 0.05
    found = np.zeros_like(expected)
    for i, j in near_pairs(first, second, 0.05):
        assert not found[i, j].any()
        found[i, j] = True
    np.testing.assert_array_equal(found, expected)


def test_spheres_at_a_known_gap():
    """Two faceted balls, corner to corner on the x axis: the gap is exact."""
    ball = trimesh.creation.icosphere(subdivisions=3)
    triangles = np.asarray(ball.triangles)
    right = triangles.reshape(-1, 3)[np.argmax(triangles.reshape(-1, 3)[:, 0])]
    left = triangles.reshape(-1, 3)[np.argmin(triangles.reshape(-1, 3)[:, 0])]
    for gap in (0.25, 1e-6):
        result = judge(triangles, triangles + (right - left) + [gap, 0, 0])
        assert result.meeting == []
        assert result.lower <= gap + 1e-12
        assert result.upper >= result.lower
        assert result.upper - result.lower < 1e-9
        assert result.upper <= gap + 1e-12
    assert judge(triangles, triangles + [1.0, 0.1, 0.2]).meeting


def test_agrees_with_another_library():
    """Random poses of two meshes: python-fcl finds a collision exactly where triangles meet, and the same distance."""
    fcl = pytest.importorskip("fcl", reason="python-fcl is not installed")
    generator = np.random.default_rng(8)
    meshes = [trimesh.creation.torus(1.0, 0.3, major_sections=16, minor_sections=8), trimesh.creation.box((1, 2, 0.2))]
    models = []
    for mesh in meshes:
        model = fcl.BVHModel()
        model.beginModel(len(mesh.vertices), len(mesh.faces))
        model.addSubModel(mesh.vertices, mesh.faces)
        model.endModel()
        models.append(model)
    hits = 0
    for _ in range(40):
        position = generator.normal(size=3)
        quaternion = generator.normal(size=4)
        quaternion /= np.linalg.norm(quaternion)
        result = judge(np.asarray(meshes[0].triangles), posed(np.asarray(meshes[1].triangles), position, quaternion))
        objects = [
            fcl.CollisionObject(models[0], fcl.Transform()),
            fcl.CollisionObject(models[1], fcl.Transform(quaternion[[3, 0, 1, 2]], position)),
        ]
        meets = fcl.collide(*objects, fcl.CollisionRequest(), fcl.CollisionResult()) > 0
        assert meets == bool(result.meeting)
        hits += meets
        if not meets:
            theirs = fcl.distance(*objects, fcl.DistanceRequest(), fcl.DistanceResult())
            assert result.lower - 1e-9 <= theirs <= result.upper + 1e-9
    assert 5 < hits < 35
