"""Mesh files come in complete and in order, or are refused in one sentence."""

import io

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.scene.errors import MeshError
from bridge.scene.mesh import FORMATS, join, make_mesh, parse_mesh, read_mesh
from bridge.scene.paths import pybullet_data_directory, resolve
from bridge.scene.primitives import make_primitive

BOX = make_primitive("box", (0.1, 0.2, 0.3))
DATA = pybullet_data_directory()


def exported(kind: str, mesh=BOX) -> bytes:
    made = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).export(file_type=kind)
    return made.encode() if isinstance(made, str) else made


def corners(mesh) -> np.ndarray:
    return mesh.vertices[mesh.faces]


@pytest.mark.parametrize("kind", ["obj", "stl", "stl_ascii", "dae", "ply", "glb"])
def test_every_format_gives_the_same_triangles(kind):
    suffix = "." + kind.removesuffix("_ascii")
    mesh = parse_mesh(exported(kind), suffix, "box")
    # STL, GLB and binary PLY keep single precision.
    np.testing.assert_allclose(corners(mesh), corners(BOX), rtol=1e-7)
    assert len(mesh.vertices) == 8


@pytest.mark.parametrize(
    "name",
    [
        "bunny.obj",
        "duck.obj",
        "torus/torus_textured.obj",
        "kuka_iiwa/meshes/link_3.obj",
        "laikago/chassis.obj",
        "a1/meshes/trunk.obj",
    ],
)
def test_own_obj_reader_agrees_with_trimesh(name):
    """Second reader: the same set of triangles, whatever the order."""
    mesh = read_mesh(DATA / name)
    scene = trimesh.load_scene(DATA / name, process=False)
    peer = np.concatenate([g.vertices[g.faces] for g in scene.geometry.values()])
    assert len(mesh.faces) == len(peer)

    def ordered(triangles):
        rows = triangles.reshape(-1, 9)
        return rows[np.lexsort(rows.T)]

    # Fans may start at another corner; compare sorted corners.
    def canonical(triangles):
        keys = triangles[:, :, 0] + 1e3 * triangles[:, :, 1] + 1e6 * triangles[:, :, 2]
        return ordered(np.take_along_axis(triangles, np.argsort(keys, axis=1)[:, :, None], axis=1))

    np.testing.assert_array_equal(canonical(corners(mesh)), canonical(peer))


@pytest.mark.parametrize("name", ["kuka_iiwa/meshes/link_1.stl", "l_finger.stl"])
def test_binary_stl_against_its_own_bytes(name):
    """Third reader, three lines long."""
    data = (DATA / name).read_bytes()
    rows = np.frombuffer(data[84:], np.dtype([("n", "<f4", 3), ("v", "<f4", (3, 3)), ("a", "<u2")]))
    np.testing.assert_array_equal(corners(read_mesh(DATA / name)), rows["v"].astype(np.float64))


def test_obj_keeps_the_order_of_faces_and_reads_every_kind_of_index():
    text = """# quads, negative and textured indices, a continued line, other statements
o thing
v 0 0 0
v 1 0 0 1.0
vn 0 0 1
v 1 1 0 0.5 0.5 0.5
v 0 1 0
usemtl b
f 1/1/1 2/2 3//1 4
usemtl a
f -1 -2 -3
f 1 2 \\
 3
"""
    mesh = parse_mesh(text.encode(), ".obj", "t")
    a, b, c, d = [0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]
    np.testing.assert_array_equal(corners(mesh), [[a, b, c], [a, c, d], [d, c, b], [a, b, c]])


def test_relative_indices_count_from_where_they_stand():
    text = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\nv 5 0 0\nv 6 0 0\nv 5 1 0\nf -3 -2 -1\n"
    np.testing.assert_array_equal(corners(parse_mesh(text.encode(), ".obj", "t"))[1][:, 0], [5, 6, 5])


def test_dae_unit_is_applied_and_axes_are_kept():
    """duck.dae is in cm and y-up; duck.obj is the same duck in m, x and z the other way round."""
    dae, obj = read_mesh(DATA / "duck.dae"), read_mesh(DATA / "duck.obj")
    assert len(dae.faces) == len(obj.faces) == 4212
    assert any("0.01 m" in note for note in dae.notes) and any("Y_UP" in note for note in dae.notes)
    np.testing.assert_allclose(np.ptp(dae.vertices, axis=0), np.ptp(obj.vertices, axis=0), rtol=1e-5)


def test_geometries_of_one_file_are_joined_at_their_places():
    scene = trimesh.Scene()
    piece = trimesh.Trimesh(BOX.vertices, BOX.faces, process=False)
    turned = np.eye(4)
    turned[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    turned[:3, 3] = (1.0, 2.0, 3.0)
    scene.add_geometry(piece, node_name="a", geom_name="g")
    scene.add_geometry(piece.copy(), node_name="b", geom_name="h", transform=turned)
    mesh = parse_mesh(scene.export(file_type="glb"), ".glb", "two")
    assert len(mesh.faces) == 24 and len(mesh.vertices) == 16
    assert any("2 geometries" in note for note in mesh.notes)
    np.testing.assert_allclose(mesh.vertices.min(axis=0), [-0.05, -0.1, -0.15], rtol=1e-6)
    np.testing.assert_allclose(mesh.vertices.max(axis=0), [1.1, 2.05, 3.15], rtol=1e-6)


def test_only_exactly_equal_vertices_are_welded():
    step = np.nextafter(1.0, 2.0)
    points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, -0.0], [step, 0, 0], [0, 1, 0]]
    mesh = make_mesh(np.array(points), np.array([[0, 1, 2], [3, 4, 5]]))
    assert len(mesh.vertices) == 4
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [0, 3, 2]])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(*[st.tuples(*[st.sampled_from([-1.0, 0.0, -0.0, 0.5, 1e-300, 3.0])] * 3)] * 3), min_size=1))
def test_nothing_is_dropped_or_moved(triangles):
    """Whatever the faces (flat, double, single points), each comes out with its corners, in order."""
    points = np.array(triangles).reshape(-1, 3)
    mesh = make_mesh(points, np.arange(len(points)).reshape(-1, 3))
    np.testing.assert_array_equal(corners(mesh), points.reshape(-1, 3, 3))
    again = join([mesh, mesh])
    np.testing.assert_array_equal(corners(again), np.concatenate((corners(mesh),) * 2))


def test_degenerate_and_double_faces_reach_the_tree():
    from rtcore.geometry.tree import build_tree

    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [2, 0, 0]], dtype=float)
    faces = np.array([[0, 1, 2], [0, 1, 2], [0, 1, 3], [0, 0, 0], [2, 1, 0]])
    mesh = make_mesh(points, faces)
    _, triangles = build_tree(mesh.vertices, mesh.faces)
    order = np.argsort(triangles["face_id"])
    np.testing.assert_array_equal(triangles["vertices"][order], points[faces])


def test_scale_mirrors_and_subdivision_keeps_the_surface():
    from rtcore.geometry.mass import mass_properties, signed_volume

    mirrored = BOX.scaled((-1.0, 2.0, 1.0))
    assert signed_volume(mirrored.vertices, mirrored.faces) == pytest.approx(2 * 0.1 * 0.2 * 0.3)
    fine = BOX.subdivided(3)
    assert len(fine.faces) == 12 * 4**3
    assert mass_properties(fine.vertices, fine.faces).volume == pytest.approx(0.1 * 0.2 * 0.3)
    # Closed after splitting: V - E + F = 2.
    assert len(fine.vertices) - 3 * len(fine.faces) // 2 + len(fine.faces) == 2


GARBAGE = bytes(np.random.default_rng(5).integers(0, 256, 5000, dtype=np.uint8))


@pytest.mark.parametrize("suffix", FORMATS)
def test_binary_garbage(suffix):
    with pytest.raises(MeshError, match=r"^m\.x: ") as caught:
        parse_mesh(GARBAGE, suffix, "m.x")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["obj", "stl", "stl_ascii", "dae", "ply", "glb"])
def test_truncated_files(kind):
    """Cut anywhere, a file is refused in one sentence, or (a text cut between two lines) what it holds is read."""
    data = exported(kind)
    suffix = "." + kind.removesuffix("_ascii")
    refused = 0
    cuts = range(1, len(data) - 1, max(1, len(data) // 150))
    for cut in cuts:
        try:
            mesh = parse_mesh(data[:cut], suffix, "m.x")
        except MeshError as error:
            refused += 1
            assert str(error).startswith("m.x: ") and "\n" not in str(error)
        else:
            assert kind == "obj" or corners(mesh).shape == corners(BOX).shape
            # Nothing is made up: what was read is a beginning of the whole (the last number may be cut).
            known = corners(BOX)[: len(mesh.faces) - 1]
            np.testing.assert_allclose(corners(mesh)[:-1], known, rtol=1e-6)
    assert refused >= 0.6 * len(cuts)


@pytest.mark.parametrize(
    ("suffix", "data", "said"),
    [
        (".obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\n", "holds no triangles"),
        (".obj", b"hello\nworld\n", "holds no triangles; 2 of its lines are no OBJ statements"),
        (
            ".obj",
            b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n",
            "face 0 refers to vertices [0, 1, 8], but there are 3 (0..2)",
        ),
        (".obj", b"v 0 0 0\nf 1 2 0\n", "line 2: a face refers to vertex 0, which does not exist"),
        (".obj", b"v 0 0 0\nf -1 -2 -3\n", "line 2: a face refers to vertex -2, which does not exist"),
        (".obj", b"v 0 0\nf 1 1 1\n", "line 1: a vertex needs three numbers, found 'v 0 0'"),
        (".obj", b"v 0 0 x\nf 1 1 1\n", "line 1: a vertex needs three numbers"),
        (".obj", b"v 0 0 0\nf 1 1 q\n", "line 2: 'q' is not a corner of a face"),
        (".obj", b"v 0 0 0\nf 1 1", "line 2: a face needs three corners or more"),
        (".obj", b"v 0 nan 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "vertex 0 is not finite (0, nan, 0)"),
        (".obj", b"v 0 0 0\nv inf 0 0\nv 0 1e999 0\nf 1 2 3\n", "vertex 1 is not finite (inf, 0, 0), and 1 more"),
        (".stl", b"\0" * 84, "holds no triangles"),
        (".stl", b"\0" * 80 + b"\x02\0\0\0" + b"\0" * 50, "promises 2 triangles, which take 184 bytes; it has 134"),
        (".stl", b"solid x\nendsolid x\n", "cut off or not an STL file"),
        (".ply", b"ply\nformat ascii 1.0\nelement vertex 0\nend_header\n", "holds no triangles"),
        (
            ".ply",
            b"ply\nformat ascii 1.0\nelement vertex 9000000000\nproperty float x\nelement face 5\n"
            b"property list uchar int vertex_indices\nend_header\n1 2 3\n",
            "more than its",
        ),
        (".glb", b"glTF\x02\0\0\0\xff\xff\0\0", "promises 65535 bytes, it has 12"),
        (".dae", b"<a/>", "its root is <a>, not <COLLADA>"),
        (".xyz", b"1 2 3", "unknown mesh format '.xyz'; known are .obj, .stl, .dae, .ply, .glb"),
    ],
)
def test_what_is_wrong_is_said(suffix, data, said):
    with pytest.raises(MeshError) as caught:
        parse_mesh(data, suffix, "m.x")
    assert said in str(caught.value)


@pytest.mark.parametrize("kind", ["stl", "ply"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite_vertices_in_binary_files(kind, bad):
    vertices = BOX.vertices.copy()
    vertices[3, 1] = bad
    with np.errstate(invalid="ignore"):  # of the exporter
        raw = trimesh.Trimesh(vertices, BOX.faces, process=False, validate=False).export(file_type=kind)
    with pytest.raises(MeshError, match="is not finite"):
        parse_mesh(raw, f".{kind}", "m.x")


def test_ply_index_out_of_range():
    text = (
        "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
        "element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n"
    )
    with pytest.raises(MeshError, match=r"m\.x: "):
        parse_mesh(text.encode(), ".ply", "m.x")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(MeshError, match=r"none\.obj: does not exist"):
        read_mesh(tmp_path / "none.obj")
    (tmp_path / "folder.obj").mkdir()
    with pytest.raises(MeshError, match="is a folder"):
        read_mesh(tmp_path / "folder.obj")
    (tmp_path / "empty.obj").write_bytes(b"")
    with pytest.raises(MeshError, match="is empty"):
        read_mesh(tmp_path / "empty.obj")
    with pytest.raises(MeshError, match="unknown mesh format"):
        read_mesh(tmp_path / "mesh.step")


def test_paths(tmp_path):
    assert resolve("pybullet_data:duck.obj").is_file()
    assert resolve("a/b.obj", tmp_path) == tmp_path / "a/b.obj"
    assert resolve(str(tmp_path / "x.obj"), "/elsewhere") == tmp_path / "x.obj"


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FORMATS), st.integers(0, 2000), st.binary(min_size=1, max_size=8))
def test_a_damaged_file_is_a_mesh_error_or_a_mesh(suffix, place, damage):
    data = bytearray(exported(suffix[1:]))
    place %= len(data)
    data[place : place + len(damage)] = damage
    try:
        mesh = parse_mesh(bytes(data), suffix, "m.x")
    except MeshError as error:
        assert str(error).startswith("m.x: ")
    else:
        assert np.isfinite(mesh.vertices).all() and mesh.faces.min() >= 0 and mesh.faces.max() < len(mesh.vertices)


def test_nothing_but_the_file_itself_is_opened(tmp_path, monkeypatch):
    """A mesh may name materials and textures; they are never looked for."""
    path = tmp_path / "m.obj"
    path.write_text("mtllib /etc/passwd\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl x\nf 1 2 3\n")
    opened = []
    real = io.open
    monkeypatch.setattr("builtins.open", lambda name, *a, **k: opened.append(str(name)) or real(name, *a, **k))
    read_mesh(path)
    assert not any("passwd" in name for name in opened)
