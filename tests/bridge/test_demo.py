"""The demonstration: its way over the mesh, its independent measurements, and the whole of it."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import ROOT, environment
from drawn import ball_mesh, box_mesh, model_of

from bridge.demo import CONFIG, DEPTH, SPEED, distance_by_trimesh, measure, picture_moment
from bridge.demo_path import SurfacePath, SurfaceWay, first_hits, surface_way
from haptics.tables import RECORD


@pytest.fixture(scope="module")
def duck() -> np.ndarray:
    """(n, 3, 3) triangles of the demonstration's scene."""
    import trimesh
    from pybullet_data import getDataPath

    mesh = trimesh.load(Path(getDataPath()) / "duck.obj", force="mesh")
    vertices = 0.09 * np.asarray(mesh.vertices)
    return np.column_stack([vertices[:, 0], -vertices[:, 2], vertices[:, 1]])[np.asarray(mesh.faces)]


def test_rays_meet_a_box_where_its_faces_are():
    origins = np.array([[0.1, 0.2, 5.0], [3.0, 0.1, 0.1], [0.0, 9.0, 9.0]])
    directions = np.array([[0.0, 0.0, -1.0], [-2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    distances, hit = first_hits(box_mesh(1.0), origins, directions)
    np.testing.assert_allclose(distances[:2], [4.5, 1.25])
    assert np.isinf(distances[2]) and hit[2] == -1 and (hit[:2] >= 0).all()


def test_the_way_over_a_ball_lies_on_it_and_its_normals_look_out():
    way = surface_way(ball_mesh(0.05, 5))
    radius = np.linalg.norm(way.points, axis=1)
    assert radius.max() <= 0.05 + 1e-12 and radius.min() > 0.0495  # rounding off of corners cuts inwards a little
    outward = np.sum(way.normals * way.points, axis=1) / radius
    assert outward.min() > 0.99


def test_the_way_over_the_duck_keeps_near_its_surface(duck):
    way = surface_way(duck)
    distance = distance_by_trimesh(model_of(duck), way.points[::30])
    assert np.median(distance) < 0.0005
    assert np.linalg.norm(np.ptp(way.points, axis=0)) > 0.1  # it really goes somewhere


def test_scenes_that_rays_miss_are_refused():
    needle = np.array([[[0.0, 0.0, 0.0], [1e-6, 0.0, 0.0], [0.0, 1e-6, 1.0]]])
    with pytest.raises(ValueError, match="no way"):
        surface_way(needle)


def test_the_hand_starts_at_rest_where_the_tool_is_and_never_jumps(duck):
    """Velocity is the derivative of position, and bounded, so that no sample looks like a fault."""
    start = np.array([-0.02, 0.0, 0.19])
    path = SurfacePath(surface_way(duck), start, depth=DEPTH, speed=SPEED)
    first = path.at(0.0)
    np.testing.assert_allclose(first.position, start)
    assert not first.velocity.any()
    times = np.arange(0.0, 12.0, 1e-3)
    points = np.array([path.at(t).position for t in times])
    speeds = np.linalg.norm(np.diff(points, axis=0), axis=1) / 1e-3
    assert speeds.max() < 0.3
    stated = np.array([path.at(t).velocity for t in times[:-1] + 5e-4])
    error = np.linalg.norm(np.diff(points, axis=0) / 1e-3 - stated, axis=1)
    assert np.percentile(error, 95) < 0.02
    assert path.lap_s > 3.0


def test_a_closed_way_is_followed_round_and_round():
    angle = np.linspace(0.0, 2.0 * math.pi, 400, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(400)])
    path = SurfacePath(SurfaceWay(ring, ring), ring[0], depth=0.0, speed=1.0, approach_s=0.1)
    late = path.at(50.0).position
    np.testing.assert_allclose(path.at(50.0 + path.lap_s).position, late, atol=1e-9)
    assert np.linalg.norm(late) == pytest.approx(1.0, abs=1e-3)


def test_the_independent_distance_is_that_of_a_ball():
    points = np.array([[0.0, 0.0, 0.08], [0.0, 0.06, 0.0], [0.0, 0.0, 0.01]])
    found = distance_by_trimesh(model_of(ball_mesh(0.05, 5)), points)
    np.testing.assert_allclose(found, [0.03, 0.01, 0.04], atol=1e-4)  # facets are up to 0.04 mm inside the sphere


def run_of(count: int) -> np.ndarray:
    """Records of a run whose figures are known."""
    records = np.zeros(count, RECORD)
    records["tick"] = np.arange(1, count + 1)
    timing = records["timing"]
    timing["planned_ns"] = np.arange(count) * 1_000_000
    timing["started_ns"] = timing["planned_ns"] + 10_000
    timing["computed_ns"] = timing["started_ns"] + 50_000
    timing["missed"][7] = 3
    half = slice(count // 2, None)
    records["output"]["report"]["contact_count"][half] = 1
    records["output"]["report"]["smallest_gap"] = -1.0
    records["output"]["report"]["smallest_gap"][half] = 1e-4
    records["output"]["wrench"][half, 2] = 2.0
    records["output"]["wrench"][-5, 2] = 5.0
    records["output"]["device_position"][half, 2] = -0.004
    return records


def test_figures_of_a_run():
    figures = measure(run_of(1000), 1e-3)
    assert figures["ticks"] == 1000 and figures["missed"] == 3
    assert figures["tick_us"]["p50"] == pytest.approx(50.0) and figures["lateness_us"]["max"] == pytest.approx(10.0)
    assert figures["contact_fraction"] == pytest.approx(0.5)
    assert figures["force_max_N"] == pytest.approx(5.0)
    assert figures["force_mean_N"] == pytest.approx((499 * 2.0 + 5.0) / 500)
    assert figures["device_depth_max_mm"] == pytest.approx(4.0) and figures["gap_min_mm"] == pytest.approx(0.1)


def test_the_picture_is_taken_while_something_is_felt():
    assert 0.5 <= picture_moment(run_of(1000)) <= 1.0
    assert picture_moment(np.zeros(10, RECORD)) == 0.0


def test_a_folder_that_cannot_be_written_is_told_before_anything_starts(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    done = subprocess.run(
        [sys.executable, "-m", "bridge", "demo", "--out", str(blocked)],
        capture_output=True,
        text=True,
        env=environment(tmp_path / "r"),
        cwd=ROOT,
    )
    assert done.returncode == 1
    assert "--out" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_whole_demonstration(tmp_path):
    """It touches, never passes, repeats to the bit, and leaves a log and two pictures."""
    from matplotlib.image import imread

    assert CONFIG.is_file()
    done = subprocess.run(
        [sys.executable, "-m", "bridge", "demo", "--seconds", "4", "--out", str(tmp_path / "out"), "--json"],
        capture_output=True,
        text=True,
        env=environment(tmp_path / "r"),
        cwd=tmp_path,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.strip().splitlines()[-1])
    assert figures["ok"] and figures["ticks_differing"] == 0 and figures["ticks"] > 3000
    assert figures["force_max_N"] > 0.5
    assert figures["gap_min_mm"] > 0.0 and figures["independent_gap_min_mm"] > 0.0
    for name in ("scene", "plot"):
        assert imread(figures["files"][name]).std() > 0.02
    assert Path(figures["files"]["log"]).stat().st_size > 100_000
