"""Balls and capsules: what they weigh, and the triangles that show them."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from bridge.scene.primitives import make_primitive
from bridge.scene.rounded import capsule_mass, surface
from bridge.separation import is_closed
from rtcore.geometry.mass import mass_properties, signed_volume


def by_slices(radius: float, length: float, density: float) -> tuple[float, float, float]:
    """Mass and moments across and along z, integrated over discs: pi s^4 / 4 about a diameter, twice that about z."""
    half = 0.5 * length

    def square(z: float) -> float:
        over = max(abs(z) - half, 0.0)
        return radius**2 - over**2

    def whole(f) -> float:
        ends = (-half - radius, -half, half, half + radius)
        return density * sum(quad(f, a, b, epsabs=0.0, epsrel=1e-13)[0] for a, b in itertools.pairwise(ends))

    mass = whole(lambda z: math.pi * square(z))
    along = whole(lambda z: 0.5 * math.pi * square(z) ** 2)
    across = whole(lambda z: 0.25 * math.pi * square(z) ** 2 + math.pi * square(z) * z**2)
    return mass, across, along


@pytest.mark.parametrize(("radius", "length"), [(0.03, 0.1), (0.2, 0.01), (1e-3, 5.0), (0.07, 0.0)])
def test_mass_properties_are_those_of_the_solid(radius, length):
    found = capsule_mass(radius, length, 700.0)
    mass, across, along = by_slices(radius, length, 700.0)
    assert found.mass == pytest.approx(mass, rel=1e-12) and found.volume == pytest.approx(mass / 700.0, rel=1e-12)
    np.testing.assert_allclose(found.inertia, np.diag((across, across, along)), rtol=1e-12)
    np.testing.assert_array_equal(found.centre, 0.0)


def test_a_ball_has_two_fifths():
    found = capsule_mass(0.05, 0.0, 1000.0)
    assert found.mass == pytest.approx(1000.0 * 4.0 / 3.0 * math.pi * 0.05**3, rel=1e-15)
    np.testing.assert_allclose(found.inertia, 0.4 * found.mass * 0.05**2 * np.eye(3), rtol=1e-15)


@pytest.mark.parametrize("radius", [1e-200, 1e200])
def test_what_numbers_cannot_hold_is_refused(radius):
    with pytest.raises(ValueError, match="beyond what numbers can hold"):
        capsule_mass(radius, 0.1, 1000.0)


@pytest.mark.parametrize(("radius", "length"), [(0.03, 0.1), (0.07, 0.0)])
def test_triangles_lie_on_the_surface_and_enclose_nearly_all_of_it(radius, length):
    core = make_primitive("segment", (length,)) if length else make_primitive("point", ())
    shown = surface(core.vertices[core.faces], radius)
    corners = shown.reshape(-1, 3)
    axis = np.zeros_like(corners)
    axis[:, 2] = np.clip(corners[:, 2], -0.5 * length, 0.5 * length)
    np.testing.assert_allclose(np.linalg.norm(corners - axis, axis=1), radius, rtol=1e-13)
    assert is_closed(shown) and np.ptp(corners, axis=0) == pytest.approx((2 * radius, 2 * radius, 2 * radius + length))
    faces = np.arange(len(corners)).reshape(-1, 3)
    volume = capsule_mass(radius, length, 1.0).volume
    assert 0.99 * volume < signed_volume(corners, faces) < volume


def test_a_core_has_no_area_and_a_mesh_is_its_own_surface():
    core = make_primitive("segment", (0.2,))
    np.testing.assert_array_equal(core.vertices, [(0.0, 0.0, -0.1), (0.0, 0.0, 0.1)])
    np.testing.assert_array_equal(make_primitive("point", ()).vertices, [(0.0, 0.0, 0.0)])
    with pytest.raises(ValueError, match="flat or empty"):
        mass_properties(core.vertices, core.faces)
    box = make_primitive("box", (1.0, 1.0, 1.0))
    triangles = box.vertices[box.faces]
    assert surface(triangles, 0.0) is triangles
