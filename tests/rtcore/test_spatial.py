"""Quaternion helpers agree with scipy's rotations, which share the xyzw order."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rtcore import spatial

TOLERANCE = 1e-14  # a handful of roundings of numbers about 1


@pytest.fixture
def pairs():
    rng = np.random.default_rng(5)
    return [(q / np.linalg.norm(q), p / np.linalg.norm(p), rng.normal(size=3)) for q, p in rng.normal(size=(200, 2, 4))]


def test_rotating_and_multiplying_are_those_of_rotations(pairs):
    out, turned = np.zeros(4), np.zeros(3)
    for q, p, v in pairs:
        spatial.rotate(q, v, turned)
        np.testing.assert_allclose(turned, Rotation.from_quat(q).apply(v), atol=TOLERANCE)
        spatial.rotate_inverse(q, turned, turned)
        np.testing.assert_allclose(turned, v, atol=TOLERANCE)
        spatial.multiply(q, p, out)
        np.testing.assert_allclose(
            Rotation.from_quat(out).as_matrix(), (Rotation.from_quat(q) * Rotation.from_quat(p)).as_matrix(), atol=1e-14
        )
        spatial.conjugate(q, out)
        spatial.multiply(out, q, out)
        np.testing.assert_allclose(out, [0, 0, 0, 1], atol=TOLERANCE)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-7, 1e-6, 1.1e-6, 1e-3, 1.0, 3.0, np.pi])
def test_rotation_vectors_go_there_and_back(angle):
    axis = np.array([0.6, 0.0, -0.8])
    q, v = np.zeros(4), np.zeros(3)
    spatial.from_rotation_vector(angle * axis, q)
    np.testing.assert_allclose(q, Rotation.from_rotvec(angle * axis).as_quat(), rtol=1e-12, atol=1e-16)
    spatial.to_rotation_vector(q, v)
    np.testing.assert_allclose(v, angle * axis, rtol=1e-12, atol=1e-16)
    spatial.to_rotation_vector(-q, v)  # the same rotation
    assert abs(abs(v @ axis) - angle) <= 1e-12 * max(angle, 1e-4)


def test_normalise_gives_the_identity_for_nothing():
    q = np.zeros(4)
    spatial.normalise(q, q)
    np.testing.assert_array_equal(q, [0, 0, 0, 1])
    spatial.normalise(np.array([0.0, 3.0, 0.0, 4.0]), q)
    np.testing.assert_allclose(q, [0, 0.6, 0, 0.8], atol=TOLERANCE)


def test_body_and_scene_coordinates_are_inverse():
    q = np.array([0.5, 0.5, -0.5, 0.5])
    place = np.array([1.0, -2.0, 3.0])
    there = spatial.to_body(place, q, 0.3, 0.2, 0.1)
    np.testing.assert_allclose(spatial.to_scene(place, q, *there), (0.3, 0.2, 0.1), atol=1e-15 * 8)
    np.testing.assert_allclose(Rotation.from_quat(q).apply(there) + place, (0.3, 0.2, 0.1), atol=1e-15 * 8)
