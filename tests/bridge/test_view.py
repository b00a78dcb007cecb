"""What is drawn: the off-screen renderer, the picture, the PyBullet scene, and the mouse as a hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from drawn import ball_mesh, box_mesh, model_of
from log_run import log_of, run_moving
from moving_scene import MOVING

from bridge import picture, raster
from bridge.moment import (
    Moment,
    body_triangles,
    moment,
    moved_poses,
    poses_changed,
    rotate,
    rotation_matrix,
    scene_forces,
)
from bridge.mouse_hand import Pointer, follow, pull_back
from bridge.view import CHUNK_TRIANGLES, NoDisplay, Window, check_display
from haptics.states import CommandKind, CommandResult, EngagementState, Reason
from haptics.tables import RECORD

HALF = math.sqrt(0.5)
UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])


def touching(force: float = 3.0) -> Moment:
    """The tip on top of a ball of radius 0.05, pressed down."""
    return Moment(
        tick=1500,
        seconds=1.5,
        proxy=np.array([0.0, 0.0, 0.0541]),
        device=np.array([0.0, 0.0, 0.045]),
        proxy_turn=UPRIGHT,
        device_turn=UPRIGHT,
        force=np.array([0.0, 0.0, force]),
        contacts=((np.array([0.0, 0.0, 0.05]), np.array([0.0, 0.0, 1.0]), 1e-4, False),),
        touched=(0,),
        state=EngagementState.ACTIVE,
        reason=Reason.RAMP_DONE,
        gap=1e-4,
        degraded=0,
    )


# ---- renderer --------------------------------------------------------------------------------------------------------


def test_depth_of_a_slanted_triangle_is_that_of_its_plane():
    """Every covered pixel's depth equals the intersection of its ray with the plane (perspective-correct)."""
    camera = raster.Camera(np.array([0.0, -5.0, 0.0]), np.zeros(3), field_of_view=0.8)
    triangle = np.array([[[-2.0, 1.5, -1.5], [2.0, -0.5, -1.0], [0.0, 0.5, 1.8]]])
    width, height = 200, 150
    buffer = raster.look(triangle, camera, width, height)
    rows, columns = np.nonzero(buffer.ids == 0)
    assert len(rows) > 2000
    matrix = camera.matrix(width, height)
    rays = np.linalg.solve(matrix[:, :3], np.stack([columns + 0.5, rows + 0.5, np.ones(len(rows))])).T
    normal = np.cross(triangle[0, 1] - triangle[0, 0], triangle[0, 2] - triangle[0, 0])
    expected = (triangle[0, 0] - camera.eye) @ normal / (rays @ normal)
    np.testing.assert_allclose(buffer.depth[rows, columns], expected, rtol=1e-9)


def test_the_nearest_surface_wins_whatever_the_order():
    camera = raster.Camera(np.array([0.0, -5.0, 0.0]), np.zeros(3))
    near = np.array([[[-1.0, -1.0, -1.0], [1.0, -1.0, -1.0], [0.0, -1.0, 1.0]]])
    far = near + np.array([0.0, 2.0, 0.0])
    for order, front in (((near, far), 0), ((far, near), 1)):
        buffer = raster.look(np.concatenate(order), camera, 100, 100)
        assert buffer.ids[55, 50] == front
        assert buffer.depth[55, 50] == pytest.approx(4.0)


def test_what_is_behind_the_camera_is_not_seen_and_what_passes_it_is_cut():
    camera = raster.Camera(np.array([0.0, -5.0, 0.0]), np.zeros(3))
    behind = np.array([[[-1.0, -7.0, -1.0], [1.0, -7.0, -1.0], [0.0, -7.0, 1.0]]])
    assert (raster.look(behind, camera, 80, 80).ids == -1).all()
    ground = np.array([[[-9.0, -20.0, -1.0], [9.0, -20.0, -1.0], [0.0, 30.0, -1.0]]])  # reaches behind the camera
    buffer = raster.look(ground, camera, 80, 80)
    assert buffer.ids[79, 40] == 0  # straight below, in front
    assert (buffer.ids[:40] == -1).all()  # nothing above the horizon
    assert buffer.depth[np.isfinite(buffer.depth)].min() > 0.0


def test_corner_normals_are_smooth_on_a_sphere_and_sharp_on_a_box():
    ball = ball_mesh(1.0, 4)
    radial = ball / np.linalg.norm(ball, axis=2, keepdims=True)
    cosine = np.sum(raster.smooth_normals(ball) * radial, axis=2)
    assert cosine.min() > math.cos(math.radians(1.0))  # faces of this sphere are 4 degrees wide
    box = box_mesh()
    face = np.cross(box[:, 1] - box[:, 0], box[:, 2] - box[:, 0])
    face /= np.linalg.norm(face, axis=1)[:, None]
    np.testing.assert_allclose(raster.smooth_normals(box), np.repeat(face[:, None], 3, axis=1), atol=1e-12)


def test_the_lights_give_an_open_horizontal_surface_unit_irradiance_and_a_roof_takes_it_away():
    roof = np.array(
        [
            [[-1.0, -1.0, 0.05], [1.0, -1.0, 0.05], [1.0, 1.0, 0.05]],
            [[-1.0, -1.0, 0.05], [1.0, 1.0, 0.05], [-1.0, 1.0, 0.05]],
        ]
    )
    lights = raster.cast(roof, np.zeros(3), 1.5, 0.3)
    points = np.array([[0.0, 0.0, 0.2], [0.0, 0.0, 0.0]])
    up = np.tile([0.0, 0.0, 1.0], (2, 1))
    light, _ = raster.illuminate(points, up, np.array([0.0, 0.0, 5.0]), np.zeros(2), lights)
    assert light[0].mean() == pytest.approx(1.04, abs=0.02)  # 0.52 of sky and 0.52 of sun
    assert light[1].max() < 0.05


def test_a_tube_keeps_its_radius_everywhere():
    t = np.linspace(0.0, 3.0, 60)
    points = np.column_stack([np.cos(t), np.sin(t), 0.2 * t])
    tube = raster.tube(points, np.full(60, 0.01), np.ones((60, 3)))
    distance = np.linalg.norm(tube.triangles.reshape(-1, 1, 3) - points, axis=2).min(axis=1)
    np.testing.assert_allclose(distance, 0.01, rtol=1e-9)


# ---- picture ---------------------------------------------------------------------------------------------------------


def trail() -> picture.Trail:
    angle = np.linspace(0.0, 6.0, 400)
    lean = 0.5
    points = 0.054 * np.column_stack(
        [math.sin(lean) * np.cos(angle), math.sin(lean) * np.sin(angle), np.full(400, math.cos(lean))]
    )
    return picture.Trail.of(points, 2.0 + np.sin(angle), 0.001)


def test_the_picture_shows_body_tip_device_and_way():
    """Each is there in its colour, and leaving it out changes the picture."""
    model = model_of(ball_mesh())
    size = {"width": 320, "height": 180, "yaw": 0.6, "pitch": 0.5}
    full = picture.draw(model, touching(), trail(), **size)
    assert full.shape == (180, 320, 3) and full.dtype == np.uint8
    assert len(np.unique(full.reshape(-1, 3), axis=0)) > 1000
    red = full[..., 0].astype(int)
    tip = (red > 150) & (red - full[..., 1] > 70) & (red - full[..., 2] > 70)
    assert tip[20:160].sum() > 8
    bare = picture.draw(model, **size)
    assert np.mean(np.any(bare != full, axis=2)) > 0.02


def whole_tool() -> Moment:
    """A cube of 20 mm that stands 20 mm over a large one, asked to sink in and to turn onto an edge."""
    return replace(
        touching(),
        proxy=np.array([0.0, 0.0, 0.08]),
        device=np.array([0.0, 0.0, 0.05]),
        device_turn=np.array([math.sin(math.pi / 8), 0.0, 0.0, math.cos(math.pi / 8)]),
    )


def test_a_whole_tool_is_drawn_and_what_is_asked_for_shines_through_the_body():
    """Both cubes are in the picture, in their colours; the ghost shows how the device is turned."""
    now = whole_tool()
    model = model_of(box_mesh(0.1), tool=box_mesh(0.02))
    size = {"width": 320, "height": 180, "yaw": 0.6, "pitch": 0.3}
    full = picture.draw(model, now, **size).astype(int)
    orange = (full[..., 0] - full[..., 2] > 60) & (full[..., 0] > 150)
    rows = np.flatnonzero(orange[20:160].any(axis=1))
    assert orange[20:160].sum() > 100
    blue = full[..., 2] - full[..., 0] > 25
    assert blue[20:160].sum() > 50
    assert np.flatnonzero(blue[20:160].any(axis=1)).mean() > rows.mean(), "the ghost is asked to be lower"
    straight = picture.draw(model, replace(now, device_turn=UPRIGHT), **size).astype(int)
    assert np.abs(straight - full).max() > 20


def test_the_window_moves_and_turns_tool_and_ghost():
    now = whole_tool()
    with Window(model_of(box_mesh(0.1), tool=box_mesh(0.02)), gui=False) as window:
        window.show(now, 5.0, now.proxy[None])
        for pieces, place, turn in (
            (window._tool, now.proxy, now.proxy_turn),
            (window._ghost, now.device, now.device_turn),
        ):
            (piece,) = pieces
            position, orientation = window._bullet.getBasePositionAndOrientation(piece, physicsClientId=window._client)
            np.testing.assert_allclose(position, place, atol=1e-12)
            np.testing.assert_allclose(orientation, turn, atol=1e-12)


def test_the_chosen_view_sees_the_way():
    """A way on one side of a ball must not end up behind it."""
    ball = ball_mesh()
    angle = np.linspace(-0.6, 0.6, 50)
    way = 0.0505 * np.column_stack([-np.cos(angle), np.sin(angle), np.zeros(50)])
    camera = picture.choose_camera(ball, np.zeros(3), 0.06, way, np.zeros(3), 16 / 9)
    assert (camera.eye - camera.target)[0] < 0.0


def test_a_fitted_camera_holds_all_points_inside_the_margins():
    points = np.random.default_rng(1).uniform(-0.1, 0.1, (200, 3)) + np.array([1.0, 2.0, 3.0])
    camera = picture.fit(picture.aim(np.array([1.0, 2.0, 3.0]), 0.3, 0.4, 0.5), points, 640, 360)
    image = camera.project(points, 640, 360)
    assert image[:, 0].min() >= 0.04 * 640 and image[:, 0].max() <= 0.96 * 640
    assert image[:, 1].min() >= 0.12 * 360 and image[:, 1].max() <= 0.92 * 360
    spans = np.ptp(image[:, 0]) / (0.9 * 640), np.ptp(image[:, 1]) / (0.78 * 360)
    assert max(spans) == pytest.approx(1.0, abs=0.02)


def test_a_thinned_trail_keeps_ends_spacing_and_the_strongest_force():
    points = np.column_stack([np.linspace(0.0, 1.0, 1000), np.zeros(1000), np.zeros(1000)])
    forces = np.zeros(1000)
    forces[503] = 7.0
    thin = picture.Trail.of(points, forces, 0.01)
    assert len(thin.points) <= 102
    np.testing.assert_array_equal(thin.points[[0, -1]], points[[0, -1]])
    assert thin.forces.max() == 7.0


def test_a_picture_is_written_as_png(tmp_path):
    from matplotlib.image import imread

    pixels = np.arange(64 * 64 * 3, dtype=np.uint8).reshape(64, 64, 3)
    path = picture.save(pixels, tmp_path / "new" / "p.png")
    np.testing.assert_array_equal(np.round(imread(path)[..., :3] * 255).astype(np.uint8), pixels)


# ---- moments ---------------------------------------------------------------------------------------------------------


def test_the_force_is_turned_from_the_device_frame_into_the_scene():
    """Device frame turned by 90 degrees about z: a force along the device's x is along the scene's y."""
    record = np.zeros(2, RECORD)
    given = np.array([0.3, -0.2, 0.1, 0.9])
    given /= np.linalg.norm(given)
    record["input"]["sample"]["orientation"][0] = given
    quarter = rotation_matrix(np.array([0.0, 0.0, HALF, HALF]))
    x, y, z, w = given
    # product of the quarter turn and the given orientation, written out
    record["output"]["device_orientation"][0] = HALF * np.array([x - y, y + x, z + w, w - z])
    record["output"]["device_orientation"][1, 3] = 1.0
    record["output"]["wrench"][:, :3] = [1.0, 0.0, 0.5]
    forces = scene_forces(record)
    np.testing.assert_allclose(forces[0], quarter @ [1.0, 0.0, 0.5], atol=1e-12)
    np.testing.assert_allclose(forces[0], [0.0, 1.0, 0.5], atol=1e-12)
    np.testing.assert_allclose(forces[1], [1.0, 0.0, 0.5])  # no sample yet


@pytest.mark.parametrize("quaternion", [(0.0, 0.0, 0.0, 1.0), (HALF, 0.0, 0.0, HALF), (0.5, -0.5, 0.5, 0.5)])
def test_matrix_and_quaternion_turn_alike(quaternion):
    vectors = np.random.default_rng(2).normal(size=(5, 3))
    turned = vectors @ rotation_matrix(np.array(quaternion)).T
    np.testing.assert_allclose(rotate(np.array(quaternion), vectors), turned, atol=1e-12)


def test_a_moment_reads_contacts_gap_and_state():
    record = np.zeros(1, RECORD)
    record["tick"] = 2000
    output = record["output"]
    output["state"], output["reason"] = EngagementState.HOLD, Reason.SAMPLE_LATE
    output["report"]["contact_count"] = 1
    output["report"]["smallest_gap"] = 2e-4
    output["report"]["contacts"]["normal"][0, 0] = (0.0, 0.0, 1.0)
    now = moment(record[0], 1e-3)
    assert now.seconds == pytest.approx(2.0)
    assert len(now.contacts) == 1 and now.gap == pytest.approx(2e-4)
    assert "HOLD (sample late)" in now.text and "gap 0.20 mm" in now.text


def test_bodies_move_only_by_commands_that_were_done():
    model = model_of(ball_mesh(), box_mesh(), positions=[(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
    records = np.zeros(2, RECORD)
    command = records["input"]["command"]
    command["kind"] = CommandKind.POSE_BODY
    command["values"][:, 0] = 1
    command["values"][:, 1:4] = [(0.0, 2.0, 0.0), (5.0, 5.0, 5.0)]
    command["values"][:, 7] = 1.0
    records["output"]["command_result"] = [CommandResult.DONE, CommandResult.REFUSED]
    poses = moved_poses(model, records)
    np.testing.assert_allclose(poses["position"], [(0.0, 0.0, 0.0), (0.0, 2.0, 0.0)])
    np.testing.assert_allclose(body_triangles(model, poses)[1].mean(axis=(0, 1)), [0.0, 2.0, 0.0], atol=1e-12)


def test_a_ball_and_a_capsule_are_seen_as_they_are():
    """Though the model holds a point and a segment only."""
    point, segment = np.zeros((1, 3, 3)), np.array([[(0, 0, -0.1), (0, 0, 0.1), (0, 0, 0.1)]])
    model = model_of(point, segment, positions=[(0.0, 0.3, 0.0), (1.0, 0.0, 0.0)], tool=box_mesh(0.1))
    model.bodies["rounding"] = (0.05, 0.02)
    model.bodies["orientation"][1] = (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5))
    ball, pill = body_triangles(model)
    np.testing.assert_allclose(np.linalg.norm(ball - (0.0, 0.3, 0.0), axis=2), 0.05, rtol=1e-12)
    corners = pill.reshape(-1, 3)
    np.testing.assert_allclose((corners.min(axis=0), corners.max(axis=0)), [(0.88, -0.02, -0.02), (1.12, 0.02, 0.02)])
    with Window(model, gui=False) as window:
        b, client = window._bullet, window._client
        view = b.computeViewMatrix((0.5, 0.0, 20.0), (0.5, 0.0, 0.0), (0.0, 1.0, 0.0), physicsClientId=client)
        lens = b.computeProjectionMatrixFOV(4.0, 1.0, 1.0, 50.0, physicsClientId=client)
        shot = b.getCameraImage(600, 600, view, lens, renderer=b.ER_TINY_RENDERER, physicsClientId=client)
        side = 600.0 / (2.0 * 20.0 * math.tan(math.radians(2.0)))
        seen = np.asarray(shot[4])
        areas = [int((seen == pieces[0]).sum()) / side**2 for pieces in window.pieces]
    assert areas == pytest.approx([np.pi * 0.05**2, np.pi * 0.02**2 + 0.04 * 0.2], rel=0.05)


def test_bodies_that_move_by_themselves_are_where_the_record_has_them(tmp_path, monkeypatch):
    """In the list of poses, in the window, and in the picture of a log at one moment."""
    run = run_moving(400)
    records, model = run.records, run.model
    poses = moved_poses(model, records[:0])
    assert not poses_changed(np.zeros(3, RECORD)) and poses_changed(records)
    np.testing.assert_array_equal(poses["position"], model.bodies["position"])
    poses = moved_poses(model, records, poses)
    np.testing.assert_array_equal(poses["position"][list(MOVING)], records["bodies"]["position"][-1])
    np.testing.assert_array_equal(poses["orientation"][list(MOVING)], records["bodies"]["orientation"][-1])
    np.testing.assert_array_equal(poses["position"][[0, 2]], model.bodies["position"][[0, 2]])
    with Window(model, gui=False) as window:
        window.place_bodies(poses)
        for pieces, pose in zip(window.pieces, poses, strict=True):
            place, _ = window._bullet.getBasePositionAndOrientation(pieces[0], physicsClientId=window._client)
            np.testing.assert_allclose(place, pose["position"], atol=1e-12)
    log = log_of(tmp_path / "a.mcap", run)
    drawn: list[np.ndarray] = []

    def note(*_, poses, **__) -> np.ndarray:
        drawn.append(poses.copy())
        return np.zeros((8, 8, 3), np.uint8)

    monkeypatch.setattr(picture, "draw", note)
    for row in (50, 351):  # a tick each millisecond
        picture.draw_log(log, tmp_path / "a.png", at=1e-3 * row)
        np.testing.assert_array_equal(drawn[-1]["position"][list(MOVING)], records["bodies"]["position"][row])


# ---- window ----------------------------------------------------------------------------------------------------------


def test_a_large_mesh_is_shown_whole():
    """81920 triangles come into PyBullet in pieces that hold all of them, at the body's pose."""
    large = ball_mesh(0.05, 6)
    with Window(model_of(large, box_mesh(0.1), positions=[(0.1, 0.2, 0.3), (0.0, 0.0, 0.0)]), gui=False) as window:
        bullet, client = window._bullet, window._client
        assert len(window.pieces[0]) == math.ceil(len(large) / CHUNK_TRIANGLES)
        for piece in window.pieces[0]:
            assert len(bullet.getVisualShapeData(piece, physicsClientId=client)) == 1
            position, _ = bullet.getBasePositionAndOrientation(piece, physicsClientId=client)
            np.testing.assert_allclose(position, (0.1, 0.2, 0.3))
        image = bullet.getCameraImage(
            64,
            64,
            bullet.computeViewMatrix((0.1, -0.2, 0.3), (0.1, 0.2, 0.3), (0.0, 0.0, 1.0)),
            bullet.computeProjectionMatrixFOV(20.0, 1.0, 0.01, 2.0),
            renderer=bullet.ER_TINY_RENDERER,
            physicsClientId=client,
        )
        seen = set(np.unique(np.reshape(image[4], (64, 64)))) - {-1}
        assert seen and seen <= set(window.pieces[0])
        window.show(touching(), 5.0, touching().proxy[None])


def test_without_a_display_the_user_is_told_so(monkeypatch):
    for display in (None, ":9731", "elsewhere"):
        if display is None:
            monkeypatch.delenv("DISPLAY", raising=False)
        else:
            monkeypatch.setenv("DISPLAY", display)
        monkeypatch.setattr("sys.platform", "linux")
        with pytest.raises(NoDisplay, match="snapshot"):
            check_display()


# ---- mouse -----------------------------------------------------------------------------------------------------------

FORWARD, UP = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])


def test_dragging_moves_in_the_plane_that_faces_the_camera():
    """A drag over the whole height of the window moves by the height that the camera sees at its target."""
    pointer = Pointer(800.0, 600.0)
    assert not pointer.displacement([(1, 10, 10, -1, 0), (1, 50, 50, -1, 0)], FORWARD, UP, 2.0, 0.0).any()
    pressed = [(2, 100.0, 600.0, 0, 3), (1, 100.0, 0.0, -1, 0)]
    moved = pointer.displacement(pressed, FORWARD, UP, 2.0, 0.0)
    np.testing.assert_allclose(moved, [0.0, 0.0, 2.0 * 2.0 * math.tan(math.radians(30.0))], atol=1e-12)
    sideways = pointer.displacement([(1, 200.0, 0.0, -1, 0)], FORWARD, UP, 2.0, 0.0)
    assert sideways[0] > 0.0 and abs(sideways[1]) < 1e-12 and abs(sideways[2]) < 1e-12
    released = [(2, 200.0, 0.0, 0, 4), (1, 0.0, 0.0, -1, 0)]
    assert not pointer.displacement(released, FORWARD, UP, 2.0, 0.0).any()


def test_wheel_and_right_button_move_in_depth():
    pointer = Pointer(800.0, 600.0)
    np.testing.assert_allclose(pointer.displacement([], FORWARD, UP, 1.0, 0.05), 0.05 * FORWARD)
    away = pointer.displacement([(2, 0.0, 300.0, 2, 3), (1, 0.0, 200.0, -1, 0)], FORWARD, UP, 1.0, 0.0)
    assert away[1] > 0.0 and abs(away[0]) < 1e-12 and abs(away[2]) < 1e-12


def test_the_mouse_is_pulled_back_to_where_the_force_is_largest():
    proxy = np.array([0.0, 0.0, 1.0])
    image = proxy + np.array([0.0, 0.0, -0.05])
    np.testing.assert_allclose(image + pull_back(image, proxy, 0.02), proxy - np.array([0.0, 0.0, 0.02]))
    assert not pull_back(image, proxy, 0.06).any()


def test_the_device_follows_the_mouse_no_faster_than_a_device_can():
    position, goal = np.zeros(3), np.array([10.0, 0.0, 0.0])
    step = follow(position, goal, 0.002, 1.5)
    assert np.linalg.norm(step) == pytest.approx(1.5 * 0.002)
    for _ in range(200):
        position = follow(position, np.array([0.001, 0.0, 0.0]), 0.002, 1.5)
    np.testing.assert_allclose(position, [0.001, 0.0, 0.0], atol=1e-8)
