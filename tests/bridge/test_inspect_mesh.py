"""`inspect` says what is so about a mesh, which faces it is about, and what the daemon will do about it."""

import numpy as np
import pytest

from bridge.scene.inspect import InspectReport, inspect_path
from bridge.scene.primitives import make_primitive


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_CACHE_DIR", str(tmp_path / "cache"))


def obj(path, vertices, faces):
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in np.asarray(vertices, dtype=float).tolist()]
    lines += ["f " + " ".join(str(i + 1) for i in face) for face in np.asarray(faces).tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path


def findings(report: InspectReport) -> dict:
    return {f.topic: f for f in report.meshes[0].findings}


def test_a_box(tmp_path):
    box = make_primitive("box", (0.1, 0.2, 0.3), 2)
    report = inspect_path(obj(tmp_path / "box.obj", box.vertices, box.faces), density=2000.0)
    (mesh,) = report.meshes
    assert report.kind == "mesh" and not report.warnings
    assert (mesh.triangles, mesh.vertices, mesh.closed, mesh.orientation) == (192, 98, True, "outward")
    np.testing.assert_allclose(mesh.size, (0.1, 0.2, 0.3), rtol=1e-12)
    assert mesh.volume == pytest.approx(0.006) and mesh.mass == pytest.approx(12.0)
    np.testing.assert_allclose(np.diag(mesh.inertia), (0.13, 0.1, 0.05), rtol=1e-12)
    assert mesh.thinnest_wall == pytest.approx(0.1)
    assert 0 < mesh.tree_depth < 64
    assert all(f.level == "ok" for f in mesh.findings)


def test_scale_applies_to_every_figure(tmp_path):
    box = make_primitive("box", (100.0, 200.0, 300.0))
    path = obj(tmp_path / "box.obj", box.vertices, box.faces)
    assert (
        "millimetre" in findings(inspect_path(path))["size"].daemon
        or "mm" in findings(inspect_path(path))["size"].daemon
    )
    assert inspect_path(path).warnings
    mesh = inspect_path(path, scale=0.001).meshes[0]
    np.testing.assert_allclose(mesh.size, (0.1, 0.2, 0.3), rtol=1e-12)
    assert mesh.volume == pytest.approx(0.006, rel=1e-9)


def test_an_open_mesh_says_where(tmp_path):
    box = make_primitive("box", (0.1, 0.2, 0.3))
    top = (box.vertices[box.faces][:, :, 2] > 0.149).all(axis=1)
    report = inspect_path(obj(tmp_path / "open.obj", box.vertices, box.faces[~top]))
    (mesh,) = report.meshes
    assert not mesh.closed and mesh.orientation == "open" and mesh.mass is None
    assert mesh.open_loops == 1 and mesh.loops[0]["edges"] == 4
    assert mesh.loops[0]["length"] == pytest.approx(0.6)
    np.testing.assert_allclose(mesh.loops[0]["centre"], (0, 0, 0.15), atol=1e-12)
    finding = findings(report)["closed"]
    assert "0.6 m round" in finding.text and "never through a face" in finding.daemon


def test_inside_out_and_inconsistent(tmp_path):
    box = make_primitive("box", (0.1, 0.2, 0.3))
    inward = inspect_path(obj(tmp_path / "in.obj", box.vertices, box.faces[:, ::-1])).meshes[0]
    assert inward.orientation == "inward" and inward.volume == pytest.approx(0.006)
    assert inward.cavities == 0 and inward.thinnest_wall == pytest.approx(0.1)
    faces = box.faces.copy()
    faces[0] = faces[0][::-1]
    mixed = inspect_path(obj(tmp_path / "mixed.obj", box.vertices, faces)).meshes[0]
    assert mixed.orientation == "inconsistent" and mixed.volume is None


def test_odd_faces_are_counted_and_kept(tmp_path):
    box = make_primitive("box", (0.1, 0.2, 0.3))
    vertices = np.concatenate((box.vertices, [[5.0, 5.0, 5.0]]))
    faces = np.concatenate((box.faces, [box.faces[0], [0, 0, 1]]))
    report = inspect_path(obj(tmp_path / "odd.obj", vertices, faces))
    (mesh,) = report.meshes
    assert mesh.triangles == 14 and mesh.degenerate_faces == [13] and mesh.duplicate_faces == [12]
    assert mesh.unused_vertices == 1 and mesh.non_manifold_edges == 3
    assert {"degenerate", "duplicate", "unused_vertices", "non_manifold"} <= set(findings(report))
    # The vertex that belongs to no face is no part of the size.
    np.testing.assert_allclose(mesh.size, (0.1, 0.2, 0.3), rtol=1e-12)


def test_a_thin_wall_is_compared_with_the_travel_per_tick(tmp_path):
    plate = make_primitive("plate", (0.2, 0.2, 0.0005), 2)
    path = obj(tmp_path / "plate.obj", plate.vertices, plate.faces)
    report = inspect_path(path)  # the simulated device moves 3 m/s: 3 mm per tick
    assert report.meshes[0].travel_per_tick == pytest.approx(0.003)
    assert report.meshes[0].thinnest_wall == pytest.approx(0.0005)
    assert findings(report)["wall"].level == "note" and "continuously" in findings(report)["wall"].daemon
    slow = inspect_path(path, workspace_scale=0.1)
    assert findings(slow)["wall"].level == "ok"


def test_every_finding_says_what_the_daemon_will_do():
    for name in ("bunny.obj", "duck.obj", "a1/meshes/trunk.obj", "l_finger.stl", "duck.dae"):
        for finding in inspect_path(f"pybullet_data:{name}").meshes[0].findings:
            assert finding.text and finding.daemon and finding.level in ("ok", "note", "warn")


def write_and_look(path, vertices, faces):
    (mesh,) = inspect_path(obj(path, vertices, faces)).meshes
    return mesh, {f.topic: f for f in mesh.findings}


def test_faces_at_borders_and_odd_edges_are_named(tmp_path):
    """Of a box the two faces of the top left out: the four at the rim are those with a corner edge up there."""
    box = make_primitive("box", (0.1, 0.2, 0.3))
    top = (box.vertices[box.faces][:, :, 2] > 0.149).all(axis=1)
    kept = box.faces[~top]
    _, said = write_and_look(tmp_path / "open.obj", box.vertices, kept)
    rim = [i for i, face in enumerate(kept) if (box.vertices[face][:, 2] > 0.149).sum() == 2]
    assert said["closed"].count == 4 and said["closed"].faces == rim[:5]
    assert "never leaves one out as receding" in said["closed"].daemon
    # A fin on one edge of the box: three faces there.
    fin = np.concatenate((box.vertices, [[0.2, 0.2, 0.3]]))
    edge = box.faces[0][:2]
    mesh, said = write_and_look(tmp_path / "fin.obj", fin, np.concatenate((box.faces, [[*edge, 8]])))
    at = [i for i, face in enumerate(box.faces) if set(edge) <= set(face)]
    assert said["non_manifold"].count == 1 and said["non_manifold"].faces == [*at, 12]
    assert "never leaves one out" in said["non_manifold"].daemon and mesh.never_culled > 0


def test_inverted_parts_are_counted_and_never_culled(tmp_path):
    box = make_primitive("box", (0.1, 0.2, 0.3))
    mesh, said = write_and_look(tmp_path / "in.obj", box.vertices, box.faces[:, ::-1])
    assert said["orientation"].count == 12 and said["orientation"].faces == [0, 1, 2, 3, 4]
    assert mesh.never_culled == 12 and "never leaves" in said["orientation"].daemon
    faces = box.faces.copy()
    faces[4] = faces[4][::-1]
    mesh, said = write_and_look(tmp_path / "mixed.obj", box.vertices, faces)
    assert said["orientation"].count == 3 and 4 in said["orientation"].faces and mesh.never_culled == 12
    assert write_and_look(tmp_path / "out.obj", box.vertices, box.faces)[0].never_culled == 0


def test_faces_that_go_through_each_other_are_found(tmp_path):
    """Two boxes, one through the other: the pairs of faces are those that cross by another test."""
    import trimesh

    a = trimesh.creation.icosphere(subdivisions=1, radius=0.05)
    b = trimesh.creation.icosphere(subdivisions=1, radius=0.04)
    b.apply_translation((0.03, 0.011, 0.007))
    vertices = np.concatenate((a.vertices, b.vertices))
    faces = np.concatenate((a.faces, b.faces + len(a.vertices)))
    mesh, said = write_and_look(tmp_path / "two.obj", vertices, faces)
    from tools.exact.intersect import triangles_meet

    first, second = vertices[a.faces], b.vertices[b.faces]
    low, high = (f(axis=1) for f in (second.min, second.max))
    truth = {
        (i, len(first) + j)
        for i, one in enumerate(first)
        for j in np.flatnonzero(np.all((low <= one.max(axis=0)) & (high >= one.min(axis=0)), axis=1)).tolist()
        if triangles_meet(one, second[j])
    }
    assert truth and mesh.self_crossings == len(truth) and mesh.self_crossings_complete
    assert said["self_crossing"].faces == sorted({face for pair in truth for face in pair})[:5]
    assert "solid" in said["self_crossing"].daemon


def test_touching_faces_do_not_cross(tmp_path):
    """Two boxes side by side share a wall; a fin ends on the middle of a face."""
    box = make_primitive("box", (0.1, 0.1, 0.1))
    vertices = np.concatenate(
        (box.vertices, box.vertices + (0.1, 0.03, 0.0), [[0, 0, 0.05], [0.02, 0, 0.05], [0, 0, 1]])
    )
    faces = np.concatenate((box.faces, box.faces + 8, [[16, 17, 18]]))
    mesh, said = write_and_look(tmp_path / "touch.obj", vertices, faces)
    assert mesh.self_crossings == 0 and said["self_crossing"].level == "ok"


def test_a_search_for_crossings_that_is_cut_short_says_so():
    from bridge.scene.crossings import crossings
    from rtcore.geometry.tree import build_tree

    sphere = make_primitive("sphere", (0.1,), 2)
    found = crossings(*build_tree(sphere.vertices, sphere.faces), seconds=0.0)
    assert found.pairs == 0 and not found.complete


def test_duplicate_vertices_are_one_and_cracks_are_borders(tmp_path):
    """Each face of a box with corners of its own: closed when they are equal, open when they are a micrometre apart."""
    box = make_primitive("box", (0.1, 0.2, 0.3))
    corners = box.vertices[box.faces].reshape(-1, 3)
    alone = np.arange(36).reshape(-1, 3)
    mesh, said = write_and_look(tmp_path / "soup.obj", corners, alone)
    assert mesh.duplicate_vertices == 28 and said["duplicate_vertices"].count == 28
    assert mesh.closed and mesh.vertices == 8 and "one vertex" in said["duplicate_vertices"].daemon
    shaken = corners + np.random.default_rng(0).uniform(-5e-8, 5e-8, corners.shape)
    mesh, said = write_and_look(tmp_path / "cracks.obj", shaken, alone)
    assert mesh.near_vertices == 36 and not mesh.closed and mesh.never_culled == 12
    assert "borders" in said["near_vertices"].daemon


def test_needles_are_named_and_kept(tmp_path):
    vertices = [[0, 0, 0], [0.1, 0, 0], [0.05, 5e-5, 0], [0.05, -0.05, 0]]
    mesh, said = write_and_look(tmp_path / "needle.obj", vertices, [[0, 1, 2], [1, 0, 3]])
    assert mesh.needle_faces == [0] and mesh.triangles == 2 and said["needle"].faces == [0]
    assert "keeps them" in said["needle"].daemon
