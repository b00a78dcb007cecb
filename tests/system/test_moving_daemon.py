"""Bodies that move in a whole daemon: they are seen from outside, and its logs give the same bits from wherever."""

import os
import signal

import msgpack
import numpy as np
import pytest
import zmq
from daemons import DaemonProcess, late_recorder
from moving_scene import CONFIG, MOVING
from unpaced import is_recorder, unpaced_hand
from waiting import wait_until

from bridge.log.reader import read_log
from bridge.log.reexec import reexecute
from bridge.ring import RingReader
from bridge.verify.judgement import verify

BOX = """
[[scene.body]]
name = "{0}"
primitive = "box"
size = [0.03, 0.03, 0.03]
density = 600.0
motion = "{1}"
pose = {{ position = {2} }}
"""

pytestmark = pytest.mark.slow

BODIES = "".join(
    (
        BOX.format("lower", "free", [0.0, 0.0, 0.01505]),
        BOX.format("held", "held", [0.15, 0.15, 0.2]).replace("density = 600.0", ""),
        BOX.format("upper", "free", [0.004, 0.002, 0.04515]) + "restitution = 0.3",
        BOX.format("sled", "kinematic", [0.12, 0.0, 0.01515]).replace(
            "density = 600.0", "velocity = [-0.05, 0.0, 0.0]"
        ),
        BOX.format("falling", "free", [0.01, -0.005, 0.12]) + "angular_velocity = [3.0, 1.0, 2.0]",
    )
)

SCRIPT = """
[[step]]
to = [0.02, 0.0, 0.0165]
seconds = 0.7

[[step]]
to = [-0.03, 0.01, 0.0165]
seconds = 0.4

[[step]]
to = [0.03, 0.0, 0.03]
seconds = 0.6
"""


def start(base, clocking: str, **options) -> DaemonProcess:
    (base / "script.toml").write_text(SCRIPT)
    extra = f'{BODIES}\n[rates]\nclocking = "{clocking}"\n'
    return DaemonProcess(extra, scene=CONFIG, base=base, **options).wait_ready()


@pytest.mark.long
def test_a_hand_among_boxes_repeats_from_the_start_and_later(tmp_path, short_base):
    whole, late = tmp_path / "whole.mcap", tmp_path / "late.mcap"
    with start(short_base, clocking="triggered", log=str(whole)) as daemon:
        script = short_base / "script.toml"
        assert unpaced_hand(daemon, "scripted", script=script).ended == "finished"
        with late_recorder(daemon, late):
            again = unpaced_hand(daemon, "scripted", script=script)
        assert again.ended == "finished"
        assert daemon.stop() == 0
        assert daemon.summary()["compiles"] == 0
    log = read_log(whole)
    report = log.records["output"]["report"]
    assert log.body_ids == MOVING and report["body_contacts"].max() > 8
    assert np.linalg.norm(log.records["output"]["wrench"][:, :3], axis=1).max() > 0.3
    first, last = log.bodies[0], log.bodies[-1]
    assert np.linalg.norm(last["position"] - first["position"], axis=1).min() > 0.01, "each of them went somewhere"
    judged = verify(whole, every=40)
    assert judged.passed, str(judged)
    assert {"gap", "between ticks", "cone", "energy", "wrench sent"} <= {
        each.name for each in judged.certificates if each.passed
    }
    for path, begins in ((whole, 1), (late, 1000)):
        result = reexecute(path)
        assert (result.ticks_differing, result.bytes_differing) == (0, 0)
        assert result.ticks > 300 and result.body_states == result.ticks * len(MOVING)
        assert read_log(path).records["tick"][0] >= begins


def test_bodies_fall_while_nobody_is_there_and_a_new_recorder_goes_on(tmp_path, short_base):
    """Free clocking, no client: gravity does not wait for one. Poses on the state socket are those of the log."""
    path = tmp_path / "a.mcap"
    context = zmq.Context()
    with start(short_base, clocking="free", log=str(path)) as daemon:
        socket = context.socket(zmq.SUB)
        socket.set(zmq.SUBSCRIBE, b"")
        socket.set(zmq.RCVHWM, 0)
        socket.connect(daemon.facts["endpoints"]["state"])
        with RingReader(daemon.runtime.ring_path, register=False) as ring:

            def recorder(past: int, but: int = 0) -> int:
                """The recorder, not `but`, once it has read on beyond so many ticks; else 0."""
                rows = (row for row in ring.readers() if row["pid"] != but and row["position"] > past)
                return next((row["pid"] for row in rows if is_recorder(row["pid"])), 0)

            first = wait_until(lambda: recorder(past=800), "the recorder does not read")
            os.kill(first, signal.SIGKILL)
            second = wait_until(lambda: recorder(past=0, but=first), "the recorder was not started again")
            later = ring.header.head + 400
            assert wait_until(lambda: recorder(past=later, but=first)) == second
        seen = []
        while len(seen) < 30:
            assert socket.poll(20_000), "no states are published"
            seen.append(msgpack.unpackb(socket.recv()))
        assert daemon.stop() == 0
    context.destroy(linger=0)
    logs = [path, tmp_path / "a.restart1.mcap"]
    for log in logs:
        result = reexecute(log)
        assert (result.ticks_differing, result.bytes_differing) == (0, 0) and result.ticks > 300
    where = {}
    for log in map(read_log, logs):
        where |= {tick: (log.bodies, row) for row, tick in enumerate(log.records["tick"].tolist())}
    compared = 0
    for message in seen:
        if message["tick"] in where:
            assert [body["body_id"] for body in message["bodies"]] == list(MOVING)
            bodies, row = where[message["tick"]]
            assert [body["position"] for body in message["bodies"]] == bodies[row]["position"].tolist()
            compared += 1
    assert compared > 10
