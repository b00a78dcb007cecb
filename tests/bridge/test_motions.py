"""Motions of hands: they begin at the tool, and lie where they should in the scene."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from bridge.motions import (
    PathMotion,
    SceneView,
    make_motion,
    recorded_motion,
    scripted_motion,
    simulated_motion,
)
from bridge.recordings import Placement, Recording, RecordingError
from haptics.hands import HandPose

IDENTITY = np.array((0.0, 0.0, 0.0, 1.0))
FLOOR = np.array([[[-1, -1, 0], [1, -1, 0], [1, 1, 0]], [[-1, -1, 0], [1, 1, 0], [-1, 1, 0]]], dtype=float)


def a_view(**changes) -> SceneView:
    fields = {
        "position": np.zeros(3),
        "orientation": IDENTITY,
        "scale": 1.0,
        "tip_offset": np.zeros(3),
        "tip_radius": 0.005,
        "tip": np.array((0.0, 0.0, 0.03)),
        "bodies": {"floor": FLOOR},
    }
    return SceneView(**(fields | changes))


def rotated(q, v):
    """v turned by q, from the matrix of the quaternion."""
    x, y, z, w = q
    matrix = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    return matrix @ v


def tip_of(view: SceneView, pose: HandPose) -> np.ndarray:
    """Where the daemon's map puts the tip centre: x = p + R scale x_device, the tip offset turned with the tool."""
    x, y, z, w = pose.orientation
    a, b, c, d = view.orientation
    tool = np.array(
        (
            d * x + a * w + b * z - c * y,
            d * y - a * z + b * w + c * x,
            d * z + a * y - b * x + c * w,
            d * w - a * x - b * y - c * z,
        )
    )
    origin = view.position + rotated(view.orientation, view.scale * np.asarray(pose.position))
    return origin + rotated(tool, view.tip_offset)


def unit_quaternions():
    def unit(q):
        return np.asarray(q) / np.linalg.norm(q)

    return st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: sum(x * x for x in q) > 1e-2).map(unit)


vectors = st.tuples(*[st.floats(-1, 1)] * 3).map(np.array)


@given(vectors, unit_quaternions(), st.floats(0.1, 10), vectors, vectors, unit_quaternions())
def test_the_device_pose_for_a_tip_is_the_inverse_of_the_daemons_map(position, turn, scale, offset, tip, orientation):
    view = a_view(position=position, orientation=turn, scale=scale, tip_offset=offset)
    device = HandPose(*view.to_device(tip, orientation))
    np.testing.assert_allclose(tip_of(view, device), tip, atol=1e-12)


def test_the_surface_under_the_tool_is_found():
    view = a_view()
    np.testing.assert_allclose(view.surface_below((0.2, 0.1, 0.5), (0, 0, 2)), (0.2, 0.1, 0.0), atol=1e-15)
    assert view.surface_below((0.2, 0.1, -0.5), (0, 0, 1)) is None
    assert view.surface_below((5.0, 0.1, 0.5), (0, 0, 1)) is None
    assert a_view(bodies={}).surface_below((0, 0, 1), (0, 0, 1)) is None
    two = a_view(bodies={"floor": FLOOR, "table": FLOOR + np.array((0, 0, 0.2))})
    np.testing.assert_allclose(two.surface_below((0, 0.1, 0.5), (0, 0, 1)), (0, 0.1, 0.2), atol=1e-15)


def tips(view: SceneView, motion, seconds: float, dt: float = 0.001) -> np.ndarray:
    """Tip centres that a motion asks for when nothing is felt."""
    rows = [tip_of(view, motion.first)]
    rows += [tip_of(view, motion.step(dt, (0.0,) * 6)) for _ in range(round(seconds / dt))]
    return np.array(rows)


SHIFTED = {
    "position": np.array((0.1, -0.2, 0.3)),
    "orientation": np.array((0.0, 0.6, 0.0, 0.8)),
    "scale": 2.0,
    "tip_offset": np.array((0.0, 0.0, -0.05)),
}


@pytest.mark.parametrize("shift", [{}, SHIFTED], ids=["plain", "shifted"])
@pytest.mark.parametrize("path", ["circle", "tap", "random"])
def test_a_simulated_hand_starts_at_the_tool_without_a_jump_and_reaches_its_depth(shift, path):
    view = a_view(**shift)
    motion = simulated_motion(view, path=path, depth=0.004, radius=0.01, height=0.01, rate=0.5)
    track = tips(view, motion, 4.0, 0.002)
    # encoders count in 1e-5 m of the device
    np.testing.assert_allclose(track[0], view.tip, atol=1e-12)
    assert np.linalg.norm(np.diff(track, axis=0), axis=1).max() < 1e-3, "faster than 0.5 m/s"
    lowest = track[:, 2].min() - view.tip_radius
    if path != "random":
        # the arm is a spring that nothing holds back here, and lags by its mass and friction
        assert -0.0048 < lowest < -0.0035
    assert np.abs(track[:, :2]).max() < 0.013


def test_a_simulated_hand_yields_to_the_force():
    view = a_view()
    free, pushed = simulated_motion(view), simulated_motion(view)
    for _ in range(3000):
        a, b = free.step(0.001, (0.0,) * 6), pushed.step(0.001, (0.0, 0.0, 1.0, 0.0, 0.0, 0.0))
    # 1 N against the grip of 400 N/m
    assert abs((b.position[2] - a.position[2]) - 1.0 / 400.0) < 5e-4


TILTED = Rotation.from_rotvec((0.3, -0.2, 0.7)).as_quat()
CUBE = 0.01 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)


def whole_view(**changes) -> SceneView:
    """A cube of 20 mm as tool, as it was left by somebody: tilted."""
    fields = {"whole": True, "turn": TILTED, "tool": CUBE, "tip_radius": 0.01 * 3**0.5, "tip": np.array((0, 0, 0.05))}
    return a_view(**(fields | changes))


def tool_turn(view: SceneView, pose: HandPose) -> Rotation:
    """How the daemon's map turns the tool: q = q_workspace q_device."""
    return Rotation.from_quat(view.orientation) * Rotation.from_quat(pose.orientation)


def test_how_far_a_whole_tool_reaches_depends_on_how_it_is_turned():
    assert whole_view(turn=IDENTITY).reach((0, 0, 2)) == pytest.approx(0.01)
    on_edge = Rotation.from_rotvec((np.pi / 4, 0, 0)).as_quat()
    assert whole_view(turn=on_edge).reach((0, 0, 1)) == pytest.approx(0.01 * 2**0.5)
    assert whole_view(tool=None).reach((0, 0, 1)) == pytest.approx(0.01 * 3**0.5)


@pytest.mark.parametrize("shift", [{}, SHIFTED], ids=["plain", "shifted"])
def test_a_simulated_hand_holds_a_whole_tool_as_it_finds_it(shift):
    """From the first pose on it is turned as it was; its lowest point then goes to the depth."""
    view = whole_view(**shift)
    motion = simulated_motion(view, path="tap", depth=0.004, rate=0.5)
    assert (tool_turn(view, motion.first).inv() * Rotation.from_quat(TILTED)).magnitude() < 1e-9
    np.testing.assert_allclose(tip_of(view, motion.first), view.tip, atol=1e-12)
    lowest = np.inf
    for _ in range(1500):
        pose = motion.step(0.002, (0.0,) * 6)
        turn = tool_turn(view, pose)
        assert (turn.inv() * Rotation.from_quat(TILTED)).magnitude() < 1e-3
        lowest = min(lowest, (turn.apply(CUBE) + tip_of(view, pose))[:, 2].min())
    assert -0.0048 < lowest < -0.0035


def test_a_recorded_hand_turns_a_whole_tool_by_as_much_as_it_turned():
    view = whole_view()
    recording = a_recording()
    turns = Rotation.from_rotvec(np.outer(np.linspace(0.5, 1.5, len(recording)), (0.0, 1.0, 0.0)))
    recording = replace(recording, orientations=turns.as_quat())
    motion = recorded_motion(view, recording, depth=0.003, extent=0.1)
    tilted = Rotation.from_quat(TILTED)
    assert (tool_turn(view, motion.first).inv() * tilted).magnitude() < 1e-9
    for _ in range(round(motion.duration_s * 1000)):
        pose = motion.step(0.001, (0.0,) * 6)
    assert (tool_turn(view, pose) * tilted.inv()).magnitude() == pytest.approx(1.0, abs=0.01)


def test_a_script_begins_with_the_tool_as_it_is_turned(tmp_path):
    view = whole_view()
    script = tmp_path / "script.toml"
    script.write_text(
        "[[step]]\nto = [0.0, 0.0, 0.06]\nseconds = 0.2\n\n"
        "[[step]]\norientation = [0.0, 0.0, 0.0, 1.0]\nseconds = 0.2\n"
    )
    motion = scripted_motion(view, script)
    assert (tool_turn(view, motion.first).inv() * Rotation.from_quat(TILTED)).magnitude() < 1e-9
    for _ in range(200):
        pose = motion.step(0.001, (0.0,) * 6)
    assert (tool_turn(view, pose).inv() * Rotation.from_quat(TILTED)).magnitude() < 1e-6
    for _ in range(200):
        pose = motion.step(0.001, (0.0,) * 6)
    assert tool_turn(view, pose).magnitude() < 1e-6


def a_recording(count: int = 1000) -> Recording:
    t = np.arange(count) * 1e-3
    positions = np.stack((5 + 0.3 * t, 6 + 0.1 * np.sin(6 * t), 7 + 0.05 * np.cos(9 * t)), axis=1)
    return Recording("test", "rows", (t * 1e9).astype(np.int64), positions, np.tile(IDENTITY, (count, 1)))


@pytest.mark.parametrize("shift", [{}, SHIFTED], ids=["plain", "shifted"])
def test_a_recorded_hand_goes_to_its_place_and_presses_to_its_depth(shift):
    view = a_view(**shift)
    motion = recorded_motion(view, a_recording(), depth=0.003, extent=0.1)
    track = tips(view, motion, motion.duration_s)
    np.testing.assert_allclose(track[0], view.tip, atol=1e-12)
    assert np.linalg.norm(np.diff(track, axis=0), axis=1).max() < 0.5e-3
    # sampled at 1 ms between the recording's own instants: the very lowest one may fall between
    assert abs(track[:, 2].min() - (view.tip_radius - 0.003)) < 1e-6
    moved = track[-900:]
    assert abs(np.ptp(moved, axis=0)[:2].max() - 0.1) < 0.015


def test_a_recorded_hand_over_a_body_and_as_it_stands():
    view = a_view(bodies={"floor": FLOOR, "block": FLOOR * 0.02 + (0.3, 0.0, 0.01), "lid": FLOOR})
    view.bodies["block"][0, 0, 2] = 0.0
    motion = recorded_motion(view, a_recording(), body="block", depth=0.002)
    track = tips(view, motion, motion.duration_s)[-900:]
    assert abs(track[:, 2].min() - (0.01 + 0.005 - 0.002)) < 1e-6
    assert (np.abs(track[:, :2] - (0.3, 0.0)) < 0.017).all()
    same = recorded_motion(view, a_recording(), device_frame=True)
    np.testing.assert_allclose(same.first.position, (5, 6, 7.05), atol=1e-12)
    placed = recorded_motion(view, a_recording(), placement=Placement(0.1, offset=(-0.5, -0.6, -0.6)))
    assert placed.duration_s > 0.999
    with pytest.raises(ValueError, match=r"no body named `ball`; there are: block, floor, lid"):
        recorded_motion(view, a_recording(), body="ball")


def test_a_loop_goes_there_and_back_without_a_jump():
    motion = PathMotion(lambda t: HandPose(np.array((t, 0.0, 0.0)), IDENTITY), 1.0, 3.0, loop=True)
    assert motion.duration_s is None
    track = np.array([motion.first.position[0]] + [motion.step(0.01, ()).position[0] for _ in range(1500)])
    assert np.abs(np.diff(track)).max() < 0.0101
    np.testing.assert_allclose((track[200], track[300], track[400], track[500], track[600]), (2, 3, 2, 1, 2), atol=1e-9)


def test_scripts_are_followed_at_their_times(tmp_path):
    script = tmp_path / "a.toml"
    script.write_text(
        "[[step]]\nto = [0.0, 0.0, 0.01]\nseconds = 1\n[[step]]\nseconds = 0.5\n"
        "[[step]]\nto = [0.1, 0.0, 0.01]\nseconds = 1.0\norientation = [0.0, 0.0, 1.0, 0.0]\n"
    )
    view = a_view(**SHIFTED)
    motion = scripted_motion(view, script)
    assert motion.duration_s == 2.5
    track = tips(view, motion, 2.5, 0.1)
    np.testing.assert_allclose(track[0], view.tip, atol=1e-12)
    for index, wanted in ((10, (0, 0, 0.01)), (15, (0, 0, 0.01)), (25, (0.1, 0, 0.01))):
        np.testing.assert_allclose(track[index], wanted, atol=1e-9)
    table = tmp_path / "a.csv"
    table.write_text("time_s,x,y,z\n0,0,0,0.02\n1,0.1,0,0.02\n")
    motion = scripted_motion(view, table)
    track = tips(view, motion, motion.duration_s, 0.01)
    np.testing.assert_allclose(track[0], view.tip, atol=1e-12)
    np.testing.assert_allclose(track[-1], (0.1, 0, 0.02), atol=1e-9)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("step = 5", "list of tables"),
        ("", "list of tables"),
        ("a = [", "not a TOML file"),
        ("[[step]]\nseconds = 1\n[more]\n", "list of tables"),
        ("[[step]]\nto = [0, 0, 0]\n", "step 1: `seconds` must be a positive number, not None"),
        ("[[step]]\nseconds = true\n", "`seconds` must be"),
        ("[[step]]\nseconds = 1\nto = [0, 0]\n", "`to` must be 3 finite numbers"),
        ("[[step]]\nseconds = 1\nto = [0, 0, nan]\n", "`to` must be 3 finite numbers"),
        (
            "[[step]]\nseconds = 1\n[[step]]\nseconds = 1\norientation = [0, 0, 0, 2]\n",
            "step 2: `orientation` has norm",
        ),
        ("[[step]]\nseconds = 1\ntwo = 1\n", "two is not known; keys are to, by, seconds, orientation"),
    ],
)
def test_bad_scripts_are_told(tmp_path, text, sentence):
    script = tmp_path / "a.toml"
    script.write_text(text)
    with pytest.raises(RecordingError, match=sentence) as caught:
        scripted_motion(a_view(), script)
    assert "a.toml" in str(caught.value)


def test_wrong_options_are_told(tmp_path):
    with pytest.raises(ValueError, match="a hand is one of sim, recorded, scripted"):
        make_motion("left", a_view())
    for kind, more in (("sim", {}), ("recorded", {"recording": a_recording()})):
        with pytest.raises(ValueError, match=r"depth = 1e\+09 m is more than the 0\.2 m that the device's workspace"):
            make_motion(kind, a_view(span=0.2), depth=1e9, point=(0, 0, 0), **more)
    with pytest.raises(ValueError, match="the path is one of"):
        simulated_motion(a_view(), path="square")
    with pytest.raises(ValueError, match="the grip is one of"):
        simulated_motion(a_view(), grip="iron")
    with pytest.raises(ValueError, match="no surface lies under the tool"):
        simulated_motion(a_view(bodies={}))
    with pytest.raises(RecordingError, match="no such file"):
        scripted_motion(a_view(), tmp_path / "none.toml")
