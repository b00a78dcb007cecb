"""`inspect` says what is so about a mesh, a robot and a configuration, and what the daemon will do about it."""

import json

import numpy as np
import pytest

from bridge.config import ConfigError
from bridge.scene.errors import MeshError, SceneError
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


@pytest.mark.parametrize("name", ["duck.obj", "kuka_iiwa/model.urdf"])
def test_the_report_is_plain_data_and_text(name):
    report = inspect_path(f"pybullet_data:{name}")
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["kind"] == report.kind
    assert all("\n" not in line for line in report.lines())
    assert sum(str(report.meshes[0].triangles) in line for line in report.lines()) > 0


def test_a_robot():
    report = inspect_path("pybullet_data:franka_panda/panda.urdf")
    assert report.kind == "robot"
    assert report.facts["links"] == len(report.links) == 13
    assert report.facts["bodies"] == len(report.meshes) == 11
    assert report.facts["movable_joints"] == 9
    assert report.facts["mass_kg"] == pytest.approx(17.96)
    hand = next(link for link in report.links if link.name == "panda_hand")
    assert hand.joint_type == "fixed" and hand.shapes == 1 and hand.triangles == 200


def test_a_configuration(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(
        '[[scene.body]]\nname = "sheet"\nprimitive = "plate"\nsize = [0.2, 0.2, 0.0005]\ndensity = 7800\n'
        "[tool]\nstart = [0, 0, 0.05]\ntip_radius = 0.01\n[workspace]\nscale = 2\n[coupling]\nstiffness = 1e6\n"
    )
    report = inspect_path(path)
    assert report.kind == "configuration"
    assert report.meshes[0].mass == pytest.approx(7800 * 0.2 * 0.2 * 0.0005)
    assert report.meshes[0].travel_per_tick == pytest.approx(0.006)
    assert report.facts["clearance_at_start"] == pytest.approx(0.05 - 0.00025 - 0.01, rel=1e-9)
    assert any("capped" in note for note in report.notes)
    json.dumps(report.to_dict(), allow_nan=False)


def test_files_that_cannot_be_inspected(tmp_path):
    with pytest.raises(MeshError, match="does not exist"):
        inspect_path(tmp_path / "none.stl")
    with pytest.raises(SceneError, match="does not exist"):
        inspect_path(tmp_path / "none.urdf")
    with pytest.raises(ConfigError, match="does not exist"):
        inspect_path(tmp_path / "none.toml")
    with pytest.raises(SceneError, match=r"unknown kind of file '\.txt'"):
        inspect_path(tmp_path / "a.txt")
