"""Quaternion helpers agree with scipy's rotations, which share the xyzw order."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rtcore import spatial
from rtcore.tables import POSE

TOLERANCE = 1e-14  # a handful of roundings of numbers about 1


@pytest.fixture
def pairs():
    rng = np.random.default_rng(5)
    return [
        (tuple(q / np.linalg.norm(q)), tuple(p / np.linalg.norm(p)), tuple(rng.normal(size=3)))
        for q, p in rng.normal(size=(200, 2, 4))
    ]


def test_rotating_and_multiplying_are_those_of_rotations(pairs):
    for q, p, v in pairs:
        turned = spatial.rotate(q, v)
        np.testing.assert_allclose(turned, Rotation.from_quat(q).apply(v), atol=TOLERANCE)
        np.testing.assert_allclose(spatial.rotate(spatial.conjugate(q), turned), v, atol=TOLERANCE)
        np.testing.assert_allclose(
            Rotation.from_quat(spatial.multiply(q, p)).as_matrix(),
            (Rotation.from_quat(q) * Rotation.from_quat(p)).as_matrix(),
            atol=TOLERANCE,
        )
        np.testing.assert_allclose(spatial.multiply(spatial.conjugate(q), q), [0, 0, 0, 1], atol=TOLERANCE)


@pytest.mark.parametrize("angle", [0.0, 1e-13, 1e-12, 2.1e-12, 1e-9, 1e-7, 1e-6, 1e-3, 1.0, 3.0, np.pi])
def test_rotation_vectors_go_there_and_back(angle):
    axis = np.array([0.6, 0.0, -0.8])
    q = spatial.from_rotation_vector(tuple(angle * axis))
    np.testing.assert_allclose(q, Rotation.from_rotvec(angle * axis).as_quat(), rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(spatial.rotation_vector(q), angle * axis, rtol=1e-12, atol=1e-16)
    same = np.array(spatial.rotation_vector(tuple(-c for c in q)))  # the same rotation
    assert abs(abs(same @ axis) - angle) <= 1e-12 * max(angle, 1e-4)


def test_normalise_gives_the_identity_for_nothing():
    assert spatial.normalise((0.0, 0.0, 0.0, 0.0)) == (0.0, 0.0, 0.0, 1.0)
    np.testing.assert_allclose(spatial.normalise((0.0, 3.0, 0.0, 4.0)), [0, 0.6, 0, 0.8], atol=TOLERANCE)


def test_vectors_add_scale_and_cross_as_those_of_numpy(pairs):
    for _, (a, b, c, d), v in pairs:
        u = (a, b, c)
        np.testing.assert_array_equal(spatial.add(u, v), np.add(u, v))
        np.testing.assert_array_equal(spatial.subtract(u, v), np.subtract(u, v))
        np.testing.assert_array_equal(spatial.scaled(v, d), d * np.array(v))
        np.testing.assert_allclose(spatial.cross(u, v), np.cross(u, v), atol=TOLERANCE)
        assert spatial.length(v) == pytest.approx(math.hypot(*v), rel=TOLERANCE)


def test_tangents_make_a_right_handed_frame_with_the_normal(pairs):
    for normal in [(1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)] + [pair[2] for pair in pairs]:
        normal = tuple(np.array(normal) / np.linalg.norm(normal))
        frame = np.array([normal, *spatial.tangents(normal)])
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=TOLERANCE)
        assert np.linalg.det(frame) == pytest.approx(1.0, abs=TOLERANCE)


def test_what_is_put_into_arrays_is_read_from_them(pairs):
    pose = np.zeros(1, POSE)[0]
    q, _, v = pairs[0]
    spatial.put_vector(pose["position"], v)
    spatial.put_quaternion(pose["orientation"], q)
    assert spatial.vector(pose["position"]) == v
    assert spatial.quaternion(pose["orientation"]) == q


def test_body_and_scene_coordinates_are_inverse():
    pose = np.zeros(1, POSE)[0]
    pose["position"] = (1.0, -2.0, 3.0)
    pose["orientation"] = (0.5, 0.5, -0.5, 0.5)
    there = spatial.to_body(pose, (0.3, 0.2, 0.1))
    np.testing.assert_allclose(spatial.to_scene(pose, there), (0.3, 0.2, 0.1), atol=1e-15 * 8)
    placed = Rotation.from_quat(pose["orientation"]).apply(there) + pose["position"]
    np.testing.assert_allclose(placed, (0.3, 0.2, 0.1), atol=1e-15 * 8)
