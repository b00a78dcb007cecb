"""`hapticd ccd` finds the first contact where it is by hand, describes it, and draws it."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import called, environment
from PIL import Image
from scipy.spatial.transform import Rotation

from bridge.ccd import MOTIONS, first_time, lines, load_shape, parse_pose
from bridge.scene.errors import SceneError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_CACHE_DIR", str(tmp_path / "cache"))


def ask(first, second, start, end, **options):
    return first_time(load_shape(first)[1], load_shape(second)[1], parse_pose(start), parse_pose(end), **options)


def test_two_boxes_meet_when_their_faces_do():
    """0.1 m boxes from 0.3 to -0.3 m: faces meet at a third of the way, with a separation 0.03 m earlier."""
    answer = ask("box:0.1,0.1,0.1", "box:0.1,0.1,0.1", "0.3,0.02,0.01", "-0.3,0.02,0.01")
    assert answer.found and not answer.truncated
    assert answer.time == pytest.approx(1 / 3, abs=1e-6) and answer.time <= 1 / 3
    assert answer.gap_at_start == pytest.approx(0.2, rel=1e-12)
    np.testing.assert_allclose(answer.position, (0.1, 0.02, 0.01), atol=1e-6)
    np.testing.assert_allclose(answer.normal, (1.0, 0.0, 0.0), atol=1e-6)
    assert answer.point[0] == pytest.approx(0.05, abs=1e-9)
    assert answer.work["box_tests"] > 0 and answer.units >= answer.work["box_tests"]
    early = ask("box:0.1,0.1,0.1", "box:0.1,0.1,0.1", "0.3,0.02,0.01", "-0.3,0.02,0.01", separation=0.03)
    assert early.time == pytest.approx((0.2 - 0.03) / 0.6, abs=1e-4) and early.gap == pytest.approx(0.03, rel=2e-3)


@pytest.mark.parametrize("cull", [False, True])
def test_a_sphere_falls_onto_a_box_with_its_lowest_vertex(cull):
    """The sphere's mesh has a vertex straight below its centre, which is at 0.1 m then: half way from 0.3 to -0.1."""
    answer = ask("box:0.2,0.2,0.1", "sphere:0.05", "0.013,0.007,0.3", "0.013,0.007,-0.1", cull=cull)
    assert answer.time == pytest.approx(0.5, abs=1e-6) and answer.time <= 0.5
    np.testing.assert_allclose(answer.point, (0.013, 0.007, 0.05), atol=1e-6)
    np.testing.assert_allclose(answer.normal, (0.0, 0.0, 1.0), atol=1e-9)
    assert answer.first_feature.kind == "face" and answer.second_feature.kind == "vertex"
    vertex = load_shape("sphere:0.05")[1]
    corner = vertex.vertices[vertex.faces[answer.second_feature.face][answer.second_feature.corners[0]]]
    np.testing.assert_allclose(corner, (0, 0, -0.05), atol=1e-15)


def test_a_bar_that_turns_meets_an_edge_at_the_angle_of_the_drawing():
    """A bar 2 mm thick turns by 90 degrees about its centre; an edge of the box is 0.01 and 0.09 m from there."""
    answer = ask("box:0.02,0.02,0.02", "box:0.2,0.002,0.02", "0,-0.1,0", "0,-0.1,0,0,0,90")
    angle = math.atan2(0.09, 0.01) - math.asin(0.001 / math.hypot(0.01, 0.09))
    assert answer.found and answer.time == pytest.approx(angle / (0.5 * math.pi), abs=1e-5)
    assert answer.motion == "screw" and answer.angle == pytest.approx(math.pi / 2)
    assert answer.point[:2] == pytest.approx([0.01, -0.01], abs=1e-6)
    turned = Rotation.from_quat(answer.orientation).as_rotvec()
    np.testing.assert_allclose(turned, (0, 0, answer.time * math.pi / 2), atol=1e-12)


def test_the_laws_of_motion_agree_on_the_place_and_not_on_the_time():
    """The same screw at other rates: the pose at the contact is the same, so the turn by then is."""
    turned = []
    for motion in MOTIONS:
        answer = ask("box:0.02,0.02,0.02", "box:0.2,0.002,0.02", "0,-0.1,0", "0,-0.1,0.01,0,0,90", motion=motion)
        assert answer.found and answer.motion == motion
        turned.append(Rotation.from_quat(answer.orientation).magnitude())
    assert np.ptp(turned) < 0.02


def test_what_does_not_meet_is_free_and_what_is_cut_short_says_so():
    free = ask("box:0.1,0.1,0.1", "sphere:0.05", "0,0.2,0.3", "0,0.2,-0.3")
    assert not free.found and free.time == 1.0 and free.point is None and free.first_feature is None
    cut = ask("sphere:0.1", "sphere:0.05", "0.3,0.02,0.01", "-0.3,0.02,0.01", units=12)
    whole = ask("sphere:0.1", "sphere:0.05", "0.3,0.02,0.01", "-0.3,0.02,0.01")
    assert cut.truncated and not cut.found and cut.time < whole.time
    said = "\n".join(lines("A", "B", 0.0, cut))
    assert "TRUNCATED" in said and "proven free before" in said


def test_poses_and_shapes_are_read_as_written():
    position, orientation = parse_pose("1,-2,3e-1")
    assert position.tolist() == [1, -2, 0.3] and orientation.tolist() == [0, 0, 0, 1]
    half = math.sqrt(0.5)
    np.testing.assert_allclose(parse_pose("0,0,0,0,0,90")[1], (0, 0, half, half), atol=1e-15)
    np.testing.assert_allclose(parse_pose("0,0,0,0,0,0.7071,0.7071")[1], (0, 0, half, half), atol=1e-12)
    for wrong in ("", "1,2", "1,2,3,4", "a,b,c", "0,0,nan", "0,0,0,1,1,1,1"):
        with pytest.raises(ValueError, match=r"is not a pose|norm of the quaternion"):
            parse_pose(wrong)
    name, duck = load_shape("pybullet_data:duck.obj", 0.1)
    assert (
        name == "duck.obj"
        and len(duck.faces) == 4212
        and np.ptp(duck.vertices[:, 0]) == pytest.approx(0.165, abs=0.001)
    )
    with pytest.raises(SceneError, match="numbers with commas"):
        load_shape("box:a,b,c")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # fmt: off
    return subprocess.run(
        [sys.executable, "-m", "bridge", "ccd", *arguments],
        capture_output=True, text=True, timeout=120, env=environment(folder), cwd=folder, stdin=subprocess.DEVNULL,
    )
    # fmt: on


def test_the_command_answers_people_programs_and_in_pictures(tmp_path):
    boxes = ("box:0.1,0.1,0.1", "pybullet_data:duck.obj", "--scale-b", "0.05")
    way = ("--from", "0.3,0,0", "--to", "-0.3,0,0,0,0,30")
    done = run(tmp_path, *boxes, *way, "--png", "out/contact.png", "--size", "640x360")
    assert done.returncode == 0 and done.stderr == ""
    for word in ("first contact", "features", "duck.obj", "normal", "box tests", "out/contact.png"):
        assert word in done.stdout
    with Image.open(tmp_path / "out/contact.png") as picture:
        pixels = np.asarray(picture.convert("RGB"))
    assert pixels.shape == (360, 640, 3)
    # The solid pose (orange), the start (blue) and the contact (red) are all to be seen.
    red, green, blue = np.moveaxis(pixels.astype(int), 2, 0)
    assert ((red > 120) & (red > blue + 60) & (red > green + 30)).sum() > 500
    assert (blue > red + 25).sum() > 500
    assert ((red > 150) & (green < 70) & (blue < 80)).sum() > 5
    done = called(tmp_path, "ccd", *boxes, *way, "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and answer["found"] and 0.0 < answer["time"] < 0.5
    assert answer["second"] == "pybullet_data:duck.obj" and answer["second_feature"]["face"] < 4212
    assert {"point", "normal", "gap", "work", "position", "orientation", "gap_at_start"} <= set(answer)
    done = called(tmp_path, "ccd", *boxes, *way, "--units", "5", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["truncated"]
