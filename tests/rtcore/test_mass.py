"""Mass properties hold the closed forms of solids and the laws of change of place, turn and size."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from bridge.scene.primitives import make_primitive
from rtcore.geometry.mass import mass_properties, signed_volume, unpaired_edges

TETRAHEDRON = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
TETRAHEDRON_FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])

number = st.floats(-10.0, 10.0)
vector = st.tuples(number, number, number).map(np.array)
quaternion = st.tuples(number, number, number, number).map(np.array).filter(lambda q: np.linalg.norm(q) > 0.1)


def torus(major: float, minor: float, rings: int, segments: int) -> tuple[np.ndarray, np.ndarray]:
    """A torus round z as a closed mesh of 2 * rings * segments triangles."""
    u, v = np.meshgrid(np.arange(rings), np.arange(segments), indexing="ij")
    a, b = 2 * np.pi * u / rings, 2 * np.pi * v / segments
    radius = major + minor * np.cos(b)
    points = np.stack((radius * np.cos(a), radius * np.sin(a), minor * np.sin(b)), axis=-1).reshape(-1, 3)

    def at(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return (i % rings) * segments + j % segments

    quads = np.stack((at(u, v), at(u + 1, v), at(u + 1, v + 1), at(u, v + 1)), axis=-1).reshape(-1, 4)
    return points, np.concatenate((quads[:, (0, 1, 2)], quads[:, (0, 2, 3)]))


def test_box_is_exact():
    x, y, z, density = 0.2, 0.3, 0.5, 700.0
    mesh = make_primitive("box", (x, y, z))
    found = mass_properties(mesh.vertices, mesh.faces, density)
    mass = density * x * y * z
    expected = mass / 12.0 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])
    assert found.volume == pytest.approx(x * y * z, rel=1e-14)
    assert found.mass == pytest.approx(mass, rel=1e-14)
    np.testing.assert_allclose(found.centre, 0.0, atol=1e-16)
    np.testing.assert_allclose(found.inertia, expected, rtol=1e-13, atol=1e-16)


def test_tetrahedron_is_exact():
    """Corner tetrahedron of the unit cube: V = 1/6, centre (1/4, 1/4, 1/4), I = m (3/40 diagonal, 1/80 beside)."""
    found = mass_properties(TETRAHEDRON, TETRAHEDRON_FACES, 1.0)
    assert found.volume == pytest.approx(1.0 / 6.0, rel=1e-15)
    np.testing.assert_allclose(found.centre, 0.25, rtol=1e-15)
    # Second moments about the centre, per unit mass: variance 3/80, covariance -1/80.
    expected = found.mass * (np.full((3, 3), 1 / 80) + np.eye(3) * (6 / 80 - 1 / 80))
    np.testing.assert_allclose(found.inertia, expected, rtol=1e-13)


def test_ellipsoid_converges_with_the_square_of_the_edge():
    """4/3 pi abc and m/5 (b2 + c2): halving the edges divides the error by 4."""
    axes = np.array([1.0, 2.0, 0.5])
    volume = 4.0 / 3.0 * math.pi * axes.prod()
    errors = []
    for level in (0, 1, 2):
        mesh = make_primitive("sphere", (1.0,), level).scaled(tuple(axes))
        found = mass_properties(mesh.vertices, mesh.faces, 1.0)
        expected = np.diag((axes**2).sum() - axes**2) / 5.0
        errors.append((abs(found.volume / volume - 1.0), np.abs(found.inertia / found.mass - expected).max()))
    for coarse, fine in itertools.pairwise(errors):
        assert 3.8 < coarse[0] / fine[0] < 4.2
        assert 3.8 < coarse[1] / fine[1] < 4.2


def test_cylinder_approaches_its_closed_form():
    """The prism over a regular n-gon: area n/2 r2 sin(2 pi/n), polar moment m r2 (2 + cos(2 pi/n)) / 6."""
    radius, length, n = 0.1, 0.4, 64
    mesh = make_primitive("cylinder", (radius, length))
    found = mass_properties(mesh.vertices, mesh.faces, 1.0)
    area = n / 2.0 * radius**2 * math.sin(2.0 * math.pi / n)
    polar = found.mass * radius**2 * (2.0 + math.cos(2.0 * math.pi / n)) / 6.0
    across = polar / 2.0 + found.mass * length**2 / 12.0
    assert found.volume == pytest.approx(area * length, rel=1e-13)
    np.testing.assert_allclose(found.inertia, np.diag([across, across, polar]), rtol=1e-12, atol=1e-18)


def test_torus_approaches_its_closed_form():
    """V = 2 pi2 R r2; about the axis m (R2 + 3/4 r2), across m (R2 / 2 + 5/8 r2)."""
    major, minor = 0.3, 0.1
    points, faces = torus(major, minor, 256, 128)
    found = mass_properties(points, faces, 1.0)
    assert found.volume == pytest.approx(2 * math.pi**2 * major * minor**2, rel=1e-3)
    np.testing.assert_allclose(found.centre, 0.0, atol=1e-15)
    axial, across = major**2 + 0.75 * minor**2, major**2 / 2 + 0.625 * minor**2
    np.testing.assert_allclose(found.inertia / found.mass, np.diag([across, across, axial]), rtol=1e-3, atol=1e-15)


@settings(max_examples=60, deadline=None)
@given(vector, quaternion, st.floats(0.01, 100.0), st.floats(1.0, 20000.0))
def test_laws_of_place_turn_size_and_density(shift, turn, scale, density):
    """Moved, turned and scaled by s: V s3, c -> s R c + t, I -> rho s5 R I RT."""
    points, faces = torus(0.3, 0.1, 8, 6)
    points = points * (1.0, 0.7, 1.3)
    unit = mass_properties(points, faces, 1.0)
    matrix = Rotation.from_quat(turn).as_matrix()
    found = mass_properties(scale * points @ matrix.T + shift, faces, density)
    # Rounding of the coordinates themselves: 2e-15 relative to the distance from the origin.
    size = scale * 0.8
    relative = 1e-12 + 1e-14 * (np.linalg.norm(shift) + size) / size
    assert found.volume == pytest.approx(scale**3 * unit.volume, rel=relative)
    np.testing.assert_allclose(
        found.centre, scale * matrix @ unit.centre + shift, atol=relative * (size + np.linalg.norm(shift))
    )
    expected = density * scale**5 * matrix @ unit.inertia @ matrix.T
    np.testing.assert_allclose(found.inertia, expected, atol=10 * relative * np.abs(expected).max())


def test_inward_faces_give_the_same_solid_and_the_opposite_sign():
    flipped = TETRAHEDRON_FACES[:, ::-1]
    assert signed_volume(TETRAHEDRON, flipped) == -signed_volume(TETRAHEDRON, TETRAHEDRON_FACES)
    a, b = mass_properties(TETRAHEDRON, TETRAHEDRON_FACES), mass_properties(TETRAHEDRON, flipped)
    assert a.volume == pytest.approx(b.volume, rel=1e-15)
    np.testing.assert_allclose(a.inertia, b.inertia, rtol=1e-12)


def test_trimesh_agrees_on_a_concave_mesh():
    """A second implementation (Eberly's surface integrals) on the duck that comes with pybullet."""
    trimesh = pytest.importorskip("trimesh")
    from bridge.scene.mesh import read_mesh
    from bridge.scene.paths import resolve

    mesh = read_mesh(resolve("pybullet_data:duck.obj"))
    found = mass_properties(mesh.vertices, mesh.faces, 1000.0)
    peer = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    peer.density = 1000.0
    assert found.volume == pytest.approx(peer.volume, rel=1e-10)
    np.testing.assert_allclose(found.centre, peer.center_mass, rtol=1e-10)
    np.testing.assert_allclose(found.inertia, peer.moment_inertia, rtol=1e-9, atol=1e-9 * found.inertia.max())


def test_inertia_is_that_of_a_body():
    """Positive definite, and each principal moment at most the sum of the other two."""
    points, faces = torus(0.3, 0.1, 9, 7)
    a, b, c = np.linalg.eigvalsh(mass_properties(points, faces).inertia)
    assert 0.0 < a <= b <= c <= a + b


@pytest.mark.parametrize(
    ("faces", "unpaired"), [(TETRAHEDRON_FACES, 0), (TETRAHEDRON_FACES[:-1], 3), (np.zeros((0, 3), int), 0)]
)
def test_unpaired_edges_counts_the_rim(faces, unpaired):
    assert unpaired_edges(faces) == unpaired


def test_what_bounds_no_volume_is_refused():
    with pytest.raises(ValueError, match="3 of its edges have no partner"):
        mass_properties(TETRAHEDRON, TETRAHEDRON_FACES[:-1])
    one_flipped = TETRAHEDRON_FACES.copy()
    one_flipped[0] = one_flipped[0, ::-1]
    with pytest.raises(ValueError, match="no partner"):
        mass_properties(TETRAHEDRON, one_flipped)
    with pytest.raises(ValueError, match="flat"):
        mass_properties(TETRAHEDRON * (1.0, 1.0, 0.0), TETRAHEDRON_FACES)
    for density in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="density"):
            mass_properties(TETRAHEDRON, TETRAHEDRON_FACES, density)
