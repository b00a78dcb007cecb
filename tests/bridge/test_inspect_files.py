"""`inspect` takes each kind of file that it knows, robots too, tells programs and people of it, and refuses others."""

import json

import pytest

from bridge.config import ConfigError
from bridge.scene.errors import MeshError, SceneError
from bridge.scene.inspect import inspect_path


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_CACHE_DIR", str(tmp_path / "cache"))


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


def test_files_that_cannot_be_inspected(tmp_path):
    with pytest.raises(MeshError, match="does not exist"):
        inspect_path(tmp_path / "none.stl")
    with pytest.raises(SceneError, match="does not exist"):
        inspect_path(tmp_path / "none.urdf")
    with pytest.raises(ConfigError, match="does not exist"):
        inspect_path(tmp_path / "none.toml")
    with pytest.raises(SceneError, match="does not exist"):
        inspect_path(tmp_path / "a.txt")
    (tmp_path / "a.txt").touch()
    with pytest.raises(SceneError, match=r"unknown kind of file '\.txt'"):
        inspect_path(tmp_path / "a.txt")
