"""Primitives are closed, outward and as large as they say."""

import math

import numpy as np
import pytest

from bridge.scene.errors import MeshError
from bridge.scene.primitives import SEGMENTS, make_primitive
from bridge.scene.topology import analyse
from rtcore.geometry.mass import mass_properties, signed_volume

SOLIDS = [
    ("box", (0.1, 0.2, 0.3), 0.1 * 0.2 * 0.3, (0.1, 0.2, 0.3), 1e-12),
    ("plate", (0.2, 0.2, 0.0005), 0.2 * 0.2 * 0.0005, (0.2, 0.2, 0.0005), 1e-12),
    ("sphere", (0.1,), 4 / 3 * math.pi * 1e-3, (0.2, 0.2, 0.2), 0.01),
    ("cylinder", (0.1, 0.3), math.pi * 0.01 * 0.3, (0.2, 0.2, 0.3), 0.002),
    ("capsule", (0.1, 0.3), math.pi * 0.01 * 0.3 + 4 / 3 * math.pi * 1e-3, (0.2, 0.2, 0.5), 0.004),
]


@pytest.mark.parametrize("subdivisions", [0, 1])
@pytest.mark.parametrize(("kind", "size", "volume", "extent", "tolerance"), SOLIDS)
def test_solids(kind, size, volume, extent, tolerance, subdivisions):
    """Round ones are inscribed, so their volume is below the true one by the sagitta of their facets."""
    mesh = make_primitive(kind, size, subdivisions)
    topology = analyse(mesh.vertices, mesh.faces)
    assert topology.closed and topology.consistent and topology.components == 1
    assert not len(topology.degenerate_faces) and not len(topology.duplicate_faces)
    assert signed_volume(mesh.vertices, mesh.faces) > 0
    found = mass_properties(mesh.vertices, mesh.faces)
    assert volume * (1 - tolerance) <= found.volume <= volume * (1 + 1e-12)
    np.testing.assert_allclose(found.centre, 0.0, atol=1e-12)
    np.testing.assert_allclose(np.ptp(mesh.vertices, axis=0), extent, rtol=1e-12)


def test_subdivision_makes_a_sphere_rounder_and_four_times_as_many():
    coarse, fine = make_primitive("sphere", (1.0,)), make_primitive("sphere", (1.0,), 2)
    assert len(coarse.faces) == 20 * 4**3 and len(fine.faces) == 20 * 4**5
    np.testing.assert_allclose(np.linalg.norm(fine.vertices, axis=1), 1.0, rtol=1e-15)


def test_a_cylinder_stays_within_its_stated_distance_of_the_true_one():
    mesh = make_primitive("cylinder", (1.0, 1.0))
    corners = mesh.vertices[mesh.faces]
    side = np.ptp(corners[:, :, 2], axis=1) > 0
    middles = (corners[side] + np.roll(corners[side], 1, axis=1)) / 2
    assert np.hypot(middles[..., 0], middles[..., 1]).min() == pytest.approx(math.cos(math.pi / SEGMENTS), rel=1e-12)


def test_plane_is_open_and_faces_up():
    mesh = make_primitive("plane", (0.3, 0.2))
    topology = analyse(mesh.vertices, mesh.faces)
    assert len(mesh.faces) == 2 and not topology.closed
    assert len(topology.loops) == 1 and topology.loops[0].length == pytest.approx(1.0)
    a, b, c = mesh.vertices[mesh.faces[0]]
    assert np.cross(b - a, c - a)[2] > 0


@pytest.mark.parametrize(
    ("kind", "size"), [("box", (1.0,)), ("sphere", (0.0,)), ("plane", (1.0, math.nan)), ("cone", (1.0, 1.0))]
)
def test_wrong_sizes(kind, size):
    with pytest.raises(MeshError):
        make_primitive(kind, size)
