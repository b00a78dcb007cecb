"""Recorded hands of a real device never get through a surface, decided from the log and the mesh files alone.

Everything runs as it would for a user: a daemon in processes of its own, a client over the wire, the recorder's file.
The check knows nothing of the mechanics: triangles come from the mesh file by trimesh, decisions from exact rationals.
"""

import itertools
from pathlib import Path

import numpy as np
import pybullet_data
import pytest
import trimesh
from daemons import DaemonProcess
from unpaced import unpaced_hand

from bridge.client import Client
from bridge.log.reader import read_log
from bridge.log.reexec import reexecute
from tools.passage import distance_to_triangles, passages, tip_path

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "virtuose"
TIP_RADIUS = 0.003
EXTENT = 0.15

SCENES: dict[str, dict] = {
    # The hand's deepest sample is `depth` below the highest point of the body: far inside, and out on the other side.
    "bunny": {"body": 'mesh = "pybullet_data:bunny.obj"\nscale = 0.1', "start": (0.0, 0.0, 0.14), "depth": 0.05},
    "duck": {
        "body": (
            'mesh = "pybullet_data:duck.obj"\nscale = 0.1\n'
            "pose = { orientation = [0.7071067811865476, 0.0, 0.0, 0.7071067811865476] }"
        ),
        "start": (-0.015, -0.004, 0.19),
        "depth": 0.05,
    },
    "plate": {"body": 'primitive = "plate"\nsize = [0.2, 0.2, 0.0005]', "start": (0.0, 0.0, 0.03), "depth": 0.008},
}

CONFIG = """
[[scene.body]]
name = "thing"
friction_static = 0.4
friction_kinetic = 0.3
{body}

[tool]
tip_radius = {radius}
start = [{start[0]}, {start[1]}, {start[2]}]

[coupling]
stiffness = 500.0
ramp_up_ms = 50.0

[rates]
clocking = "triggered"
"""


def triangles_of(scene: str) -> np.ndarray:
    """The surface in the scene, (m, 3, 3), m, read and posed without the project's own code."""
    if scene == "plate":
        mesh = trimesh.creation.box((0.2, 0.2, 0.0005))
        return np.asarray(mesh.triangles, dtype=float)
    mesh = trimesh.load(Path(pybullet_data.getDataPath()) / f"{scene}.obj", force="mesh", process=False)
    corners = np.asarray(mesh.triangles, dtype=float) * 0.1
    if scene == "duck":  # a quarter turn about x: y up becomes z up
        corners = np.stack([corners[..., 0], -corners[..., 2], corners[..., 1]], axis=-1)
    return corners


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    "scene", [pytest.param("bunny", marks=pytest.mark.long), "duck", pytest.param("plate", marks=pytest.mark.long)]
)
def test_recorded_hands_never_pass(scene, tmp_path, short_base):
    bags = [RECORDINGS / f"{name}.bag" for name in ("forward", "left")]
    for bag in bags:
        if not bag.exists():
            pytest.skip(f"no recorded hand at {bag}: the folder shared/data is not beside the project")
    chosen = SCENES[scene]
    config = CONFIG.format(body=chosen["body"], start=chosen["start"], radius=TIP_RADIUS)
    log_path = tmp_path / "run.mcap"
    begins = []
    with DaemonProcess(scene=config, base=short_base, log=str(log_path)) as daemon:
        daemon.wait_ready()
        for bag in bags:
            with Client(daemon.name) as client:
                begins.append(client.status()["newest"]["tick"] if begins else 0)
            placed = {"recording": bag, "body": "thing", "extent": EXTENT, "depth": chosen["depth"]}
            seen = unpaced_hand(daemon, "recorded", **placed)
            assert seen.force_peak > 1.0, "the hand never pressed: the check would mean nothing"
        assert daemon.stop() == 0

    log = read_log(log_path)
    path, _ = tip_path(log.records)
    triangles = triangles_of(scene)
    assert len(path) > 4000
    assert passages(path, triangles) == []
    # The sphere stays outside as well: no way point is nearer than the radius, up to the rounding of the two poses.
    near = path[:: max(len(path) // 1000, 1)]
    assert distance_to_triangles(near, triangles).min() > TIP_RADIUS - 1e-12

    # The hands themselves did go through: what stopped the tip was the scene, not the recordings.
    for first, last in itertools.pairwise([*begins, len(log.records)]):
        rows = log.records[first:last]
        assert passages(rows["output"]["device_position"][rows["input"]["has_sample"] != 0], triangles)

    again = reexecute(log)
    assert (again.ticks_differing, again.bytes_differing) == (0, 0)
    assert again.ticks == len(log.records)
