"""A whole mesh as tool of a whole daemon: it never touches, and its log gives the same bits again, wherever it starts.

Hands come over the wire, one tick per sample; the log is the recorder's. The judge reads the mesh files with trimesh,
poses them with numpy and decides in exact integers: it knows nothing of the mechanics.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pybullet_data
import pytest
import trimesh
from daemons import DaemonProcess, late_recorder
from scipy.spatial.transform import Rotation
from unpaced import unpaced_hand

from bridge.client import Client
from bridge.log.reader import read_log
from bridge.log.reexec import reexecute
from bridge.recordings import read_recording
from tools.exact.intersect import judge, posed

BAG = Path(__file__).resolve().parents[3] / "shared" / "data" / "virtuose" / "left.bag"
QUARTER = (0.7071067811865476, 0.0, 0.0, 0.7071067811865476)
MIDDLE = (0.0, 0.0, -0.026)
"""Where the duck's file origin is from its tip centre."""
ALERT = 3e-5

CONFIG = f"""
[scene]
eps_alert = {ALERT}
eps_safety = 7e-5
eps_break = 1.6e-4

[[scene.body]]
name = "bunny"
mesh = "pybullet_data:bunny.obj"
scale = 0.1

[tool]
mesh = "pybullet_data:duck.obj"
scale = 0.03
pose.position = {list(MIDDLE)}
pose.orientation = {list(QUARTER)}
start = [0.0, 0.0, 0.16]
start_orientation = [0.0, 0.0, 0.3826834323650898, 0.9238795325112867]

[coupling]
ramp_up_ms = 50.0

[rates]
clocking = "triggered"
"""

SCRIPT = """
[[step]]
to = [0.0, 0.0, 0.10]
seconds = 0.8

[[step]]
to = [0.01, 0.0, 0.10]
orientation = [0.2, 0.1, 0.2, 0.9539392014169457]
seconds = 0.6

[[step]]
to = [0.0, 0.0, 0.16]
seconds = 0.5
"""


def file_triangles(name: str, scale: float) -> np.ndarray:
    mesh = trimesh.load(Path(pybullet_data.getDataPath()) / name, force="mesh", process=False)
    return np.asarray(mesh.triangles, dtype=float) * scale


def piece(seconds: float):
    """The recorded hand's first so many seconds."""
    recording = read_recording(BAG)
    rows = slice(0, int(np.searchsorted(recording.times_ns, recording.times_ns[0] + round(seconds * 1e9))))
    return replace(
        recording,
        times_ns=recording.times_ns[rows],
        positions=recording.positions[rows],
        orientations=recording.orientations[rows],
    )


@pytest.mark.slow
@pytest.mark.data
def test_a_mesh_tool_pressed_by_hands_never_touches_and_repeats(tmp_path, short_base):
    if not BAG.exists():
        pytest.skip(f"no recorded hand at {BAG}: the folder shared/data is not beside the project")
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    whole, late = tmp_path / "whole.mcap", tmp_path / "late.mcap"
    with DaemonProcess(scene=CONFIG, base=short_base, log=str(whole)) as daemon:
        daemon.wait_ready()
        with Client(daemon.name) as client:
            tool = client.describe()["scene"]["tool"]
        scripted = unpaced_hand(daemon, "scripted", script=script)
        with Client(daemon.name) as client:
            between_hands = client.status()["newest"]["tick"]
        with late_recorder(daemon, late):
            placed = {"recording": piece(2.5), "body": "bunny", "extent": 0.1, "depth": 0.04}
            recorded = unpaced_hand(daemon, "recorded", **placed)
        assert daemon.stop() == 0
    assert (scripted.ended, recorded.ended) == ("finished", "finished")
    assert scripted.force_peak > 3.0 and recorded.force_peak > 1.0

    own, other = file_triangles("duck.obj", 0.03), file_triangles("bunny.obj", 0.1)
    own = posed(own, np.array(MIDDLE), np.array(QUARTER))
    assert tool["kind"] == "mesh" and tool["triangles"] == len(own)
    assert tool["reach"] == pytest.approx(np.linalg.norm(own.reshape(-1, 3), axis=1).max(), rel=1e-9)

    log = read_log(whole)
    output = log.records["output"]
    positions, turns = output["proxy_position"], output["proxy_orientation"]
    blocked = np.flatnonzero(np.linalg.norm(output["wrench"][:, :3], axis=1) > 0.1)
    assert len(blocked) > 500
    # The hand turned the tool, and was turned back.
    assert Rotation.from_quat(turns[blocked]).magnitude().std() > 0.01
    assert np.linalg.norm(output["wrench"][blocked, 3:], axis=1).max() > 0.02
    assert np.linalg.norm(output["wrench"][:, 3:], axis=1).max() <= log.settings["torque_max"][0] + 1e-12
    smallest = np.inf
    for row in blocked[np.linspace(0, len(blocked) - 1, 24).astype(int)]:
        found = judge(posed(own, positions[row], turns[row]), other)
        assert found.meeting == []
        assert found.lower >= ALERT * (1.0 - 1e-6)
        smallest = min(smallest, found.upper)
    assert smallest < 4.0 * ALERT, "it never came near: the check would mean nothing"
    # The hand itself did go in: what stopped the tool was the scene, not the script.
    pressed = blocked[log.records["tick"][blocked] < between_hands]
    deepest = pressed[np.argmax(np.linalg.norm(output["wrench"][pressed, :3], axis=1))]
    asked = posed(own, output["device_position"][deepest], output["device_orientation"][deepest])
    assert judge(asked, other).meeting

    for path in (whole, late):
        again = reexecute(path)
        assert (again.ticks_differing, again.bytes_differing) == (0, 0)
        assert again.ticks > 1000
    assert read_log(late).records["tick"][0] > 1000
