"""Mass properties: closed forms of solids, tensors put together again from their principal axes, what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from bridge.scene.primitives import make_primitive
from rtcore.dynamics.inertia import BODY_INERTIA, REST_SPEED, body_inertia, mesh_inertia, principal_axes

moment_parts = st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3).map(np.array)
turns = st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3).map(np.array)

BOX = np.diag([0.034, 0.029, 0.013])


def tensor_of(moments, axes):
    matrix = Rotation.from_quat(axes).as_matrix()
    return matrix @ np.diag(moments) @ matrix.T


@given(moment_parts, turns)
def test_tensor_is_that_of_its_principal_axes(parts, turn):
    """Any three second moments make a physical body; its tensor is R diag(moments) R^T again."""
    matrix = Rotation.from_rotvec(turn).as_matrix()
    given_moments = parts.sum() - parts
    tensor = matrix @ np.diag(given_moments) @ matrix.T
    moments, axes = principal_axes(tensor)
    scale = given_moments.max()
    np.testing.assert_allclose(tensor_of(moments, axes), tensor, rtol=0.0, atol=1e-14 * scale)
    np.testing.assert_allclose(np.sort(moments), np.sort(given_moments), rtol=0.0, atol=1e-14 * scale)
    assert np.linalg.norm(axes) == pytest.approx(1.0, abs=1e-15)


def test_diagonal_tensor_keeps_its_axes():
    moments, axes = principal_axes(np.diag([3.0, 1.0, 2.5]))
    np.testing.assert_array_equal(moments, [3.0, 1.0, 2.5])
    np.testing.assert_array_equal(axes, [0.0, 0.0, 0.0, 1.0])


def test_box_mesh_by_density():
    """m/12 (b^2 + c^2), about the middle of a box that is not at the origin of its mesh."""
    x, y, z, density = 0.2, 0.3, 0.5, 700.0
    mesh = make_primitive("box", (x, y, z))
    offset = np.array([0.4, -1.0, 2.0])
    record = mesh_inertia(mesh.vertices + offset, mesh.faces, density, restitution=0.25, linear_drag=2.0)
    mass = density * x * y * z
    assert record["mass"] == pytest.approx(mass, rel=1e-13)
    np.testing.assert_allclose(record["centre"], offset, rtol=1e-14)
    tensor = mass / 12.0 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])
    np.testing.assert_allclose(tensor_of(record["moments"], record["axes"]), tensor, rtol=0.0, atol=1e-13 * mass)
    assert (record["restitution"], record["linear_drag"], record["rest_speed"]) == (0.25, 2.0, REST_SPEED)


def test_record_holds_what_was_given():
    record = body_inertia(2.0, BOX, (0.1, 0.2, 0.3), linear_drag=1.0, angular_drag=0.5, restitution=1.0, rest_speed=0.3)
    assert record.dtype == BODY_INERTIA
    assert record["mass"] == 2.0
    np.testing.assert_array_equal(record["moments"], np.diagonal(BOX))
    np.testing.assert_array_equal(record["centre"], [0.1, 0.2, 0.3])
    given_numbers = [record[name] for name in ("linear_drag", "angular_drag", "restitution", "rest_speed")]
    assert given_numbers == [1.0, 0.5, 1.0, 0.3]


def test_flat_plate_as_files_write_it_is_accepted():
    """A square plate has the moments (a, a, 2a); six digits of each put the largest above the sum."""
    moments, _ = principal_axes(np.diag([0.0833333, 0.0833333, 0.166667]))
    assert moments[2] > moments[0] + moments[1]


def test_mass_ratio_of_a_million():
    for mass in (1e-3, 1e3):
        tensor = mass / 6.0 * 0.1**2 * np.eye(3)
        record = body_inertia(mass, tensor)
        np.testing.assert_allclose(record["moments"] / record["mass"], 0.01 / 6.0, rtol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((0.0, BOX), {}, "mass must be a positive number of kg, given 0.0"),
        ((-1.0, BOX), {}, "mass must be a positive number of kg, given -1.0"),
        ((math.nan, BOX), {}, "mass must be a positive number of kg, given nan"),
        ((math.inf, BOX), {}, "mass must be a positive number of kg, given inf"),
        (
            (1.0, np.diag([1.0, 1.0, 2.5])),
            {},
            "moment of inertia 2.5 kg m2, more than the sum of the two others, 1 and 1",
        ),
        ((1.0, np.diag([1.0, -1.0, 1.0])), {}, "must be positive, given one of -1 kg m2"),
        ((1.0, np.diag([1.0, 1.0, 0.0])), {}, "must be positive, given one of 0 kg m2"),
        ((1.0, np.zeros((3, 3))), {}, "must be positive, given one of 0 kg m2"),
        ((1.0, np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])), {}, "given one of -0.272792 kg m2"),
        ((1.0, np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])), {}, "entries that differ by 0.2 kg m2"),
        ((1.0, np.eye(2)), {}, "three rows of three finite numbers"),
        ((1.0, np.diag([1.0, 1.0, math.nan])), {}, "three rows of three finite numbers"),
        ((1.0, BOX, (0.0, math.inf, 0.0)), {}, "centre of mass must be three finite numbers of m"),
        ((1.0, BOX, (0.0, 0.0)), {}, "centre of mass must be three finite numbers of m"),
        ((1.0, BOX), {"restitution": 1.01}, "restitution must be between 0 and 1, given 1.01"),
        ((1.0, BOX), {"restitution": -0.1}, "restitution must be between 0 and 1, given -0.1"),
        ((1.0, BOX), {"restitution": math.nan}, "restitution must be between 0 and 1, given nan"),
        ((1.0, BOX), {"linear_drag": -2.0}, "linear drag must be zero or a positive number of N s/m, given -2.0"),
        (
            (1.0, BOX),
            {"angular_drag": math.inf},
            "angular drag must be zero or a positive number of N m s/rad, given inf",
        ),
        ((1.0, BOX), {"rest_speed": -0.5}, "rest speed must be zero or a positive number of m/s, given -0.5"),
    ],
)
def test_what_no_body_has_is_refused(arguments, options, sentence):
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as error:
        body_inertia(*arguments, **options)
    assert sentence in str(error.value)


def test_open_mesh_has_no_mass():
    mesh = make_primitive("box", (1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="bounds no volume"):
        mesh_inertia(mesh.vertices, mesh.faces[1:], 1000.0)
