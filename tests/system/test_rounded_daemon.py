"""Balls and capsules in a whole daemon: a hand pushes them, and the log is certified and gives the same bits again."""

import numpy as np
import pytest
from daemons import DaemonProcess
from moving_scene import CONFIG
from unpaced import unpaced_hand

from bridge.log.reader import read_log
from bridge.log.reexec import reexecute
from bridge.verify.judgement import verify

BODIES = """
[[scene.body]]
name = "ball"
primitive = "ball"
size = [0.015]
motion = "free"
pose.position = [0.0, 0.0, 0.01505]

[[scene.body]]
name = "pill"
primitive = "capsule"
size = [0.01, 0.04]
motion = "free"
mass = 0.05
pose.position = [0.05, 0.0, 0.01005]
pose.orientation = [0.7071067811865476, 0.0, 0.0, 0.7071067811865476]

[[scene.body]]
name = "falling"
primitive = "ball"
size = [0.01]
motion = "free"
restitution = 0.7
pose.position = [0.0, 0.1, 0.1]
angular_velocity = [0.0, 60.0, 0.0]
"""

SCRIPT = """
[[step]]
to = [0.02, 0.0, 0.0165]
seconds = 0.7

[[step]]
to = [-0.03, 0.01, 0.0165]
seconds = 0.4
"""

pytestmark = pytest.mark.slow


def test_a_hand_pushes_a_ball(tmp_path, short_base):
    path = tmp_path / "run.mcap"
    (short_base / "script.toml").write_text(SCRIPT)
    extra = f'{BODIES}\n[rates]\nclocking = "triggered"\n'
    with DaemonProcess(extra, scene=CONFIG, base=short_base, log=str(path)).wait_ready() as daemon:
        assert unpaced_hand(daemon, "scripted", script=short_base / "script.toml").ended == "finished"
        assert daemon.stop() == 0
        assert daemon.summary()["compiles"] == 0
    log = read_log(path)
    assert log.body_ids == (1, 2, 3) and log.model.bodies["rounding"].tolist() == [0.0, 0.015, 0.01, 0.01]
    first, last = log.bodies[0], log.bodies[-1]
    assert (last["position"][:2, 0] - first["position"][:2, 0] > 0.01).all(), "the tool pushed the ball, that the pill"
    judged = verify(path, every=12)
    assert judged.passed, str(judged)
    assert {"gap", "between ticks", "cone", "energy", "free flight", "tool contacts"} <= {
        each.name for each in judged.certificates if each.passed
    }
    result = reexecute(path)
    assert (result.ticks_differing, result.bytes_differing) == (0, 0) and result.ticks > 900
    assert np.isfinite(log.bodies[:]["position"]).all()
