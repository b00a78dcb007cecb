"""A second, independent reader of docs/protocol.md: raw pyzmq and msgpack, nothing imported from the project.

The daemon is started by its command line only. If this test and the project's own client both work, the document says
enough.
"""

import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgpack
import pytest
import zmq

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
STIFFNESS = 500.0
TIP_RADIUS = 0.004
START = 0.02

CONFIG = f"""
[scene]
name = "floor"

[[scene.body]]
name = "floor"
primitive = "plane"
size = [0.2, 0.2]

[tool]
tip_radius = {TIP_RADIUS}
start = [0.0, 0.0, {START}]

[coupling]
stiffness = {STIFFNESS}
damping = 0.0
ramp_up_ms = 100.0
rate_adaptation = false

[rates]
clocking = "triggered"
"""

# struct of a sample and of a render, by the byte tables of the document
SAMPLE = struct.Struct("<BBBBI QQq 3d4d6d I BB")
RENDER = struct.Struct("<BBBBI QQqq 6d 3d4d6d 6d6d6d q d BBBB 3d16d BB")
ACTIVE, IDLE = 3, 0


@pytest.fixture(scope="module")
def daemon():
    """A triggered daemon in a directory of its own; gives its four addresses."""
    directory = Path(tempfile.mkdtemp(prefix="hd-"))
    try:
        config = directory / "floor.toml"
        config.write_text(CONFIG)
        environment = os.environ | {"HAPTICD_RUNTIME_DIR": str(directory / "run")}
        with (directory / "output").open("w+") as output:
            command = [sys.executable, "-m", "bridge.cli", "run", str(config), "--name", "raw"]
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
            try:
                endpoints = wait_for(directory / "run" / "raw" / "endpoints.json", process, directory / "output")
                yield endpoints
            finally:
                process.terminate()
                try:
                    code = process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise
        assert code == 0, (directory / "output").read_text()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def wait_for(file: Path, process: subprocess.Popen, output: Path) -> dict[str, str]:
    """The addresses, once the daemon answers at them."""
    deadline = time.monotonic() + 240.0
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the daemon ended: {output.read_text()}"
        if file.exists():
            endpoints = json.loads(file.read_text())
            with Raw(endpoints["control"]) as raw:
                if raw.ask({"op": "status"}, timeout_ms=500) is not None:
                    return endpoints
        time.sleep(0.05)
    raise AssertionError(f"no daemon after 240 s: {output.read_text()}")


class Raw:
    """One DEALER socket for control and, later, one for the device."""

    def __init__(self, control: str) -> None:
        self.context = zmq.Context()
        self.control = self.context.socket(zmq.DEALER)
        self.control.connect(control)
        self.device: zmq.Socket | None = None
        self.number = 0

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.destroy(linger=0)

    def ask(self, fields: dict, timeout_ms: int = 3000) -> dict | None:
        self.number += 1
        self.control.send(msgpack.packb({"v": 1, "id": self.number, **fields}))
        while self.control.poll(timeout_ms):
            reply = msgpack.unpackb(self.control.recv())
            assert reply["v"] == 1
            if reply["id"] == self.number:
                return reply
        return None

    def must(self, op: str, **fields: object) -> dict:
        reply = self.ask({"op": op, **fields})
        assert reply is not None and reply["ok"] is True, (op, reply)
        return reply

    def hello(self) -> dict:
        reply = self.must("hello", client="raw", versions=[1], roles=["owner"], t_client=time.monotonic_ns())
        self.session = reply["session"]
        self.device = self.context.socket(zmq.DEALER)
        self.device.connect(reply["endpoints"]["device"])
        return reply

    def receive(self) -> bytes:
        assert self.device is not None
        assert self.device.poll(3000), "no render came"
        return self.device.recv()

    def exchange_map(self, seq: int, z: float) -> dict:
        sample = {"v": 1, "kind": 1, "session": self.session, "seq": seq, "t_sample": time.monotonic_ns()}
        self.device.send(msgpack.packb(sample | {"position": [0.0, 0.0, z], "orientation": [0.0, 0.0, 0.0, 1.0]}))
        render = msgpack.unpackb(self.receive())
        assert (render["v"], render["kind"], render["seq"]) == (1, 2, seq)
        return render

    def exchange_struct(self, seq: int, z: float) -> dict:
        header = (0xC1, 1, 1, 0, 0)
        pose = (0.0, 0.0, z, 0.0, 0.0, 0.0, 1.0)
        self.device.send(SAMPLE.pack(*header, self.session, seq, time.monotonic_ns(), *pose, *[0.0] * 6, 0, 0, 0))
        message = self.receive()
        assert len(message) == RENDER.size == 510 and SAMPLE.size == 142
        n = RENDER.unpack(message)
        assert n[:5] == (0xC1, 1, 2, 0, 0) and n[5] == seq
        return {"tick": n[6], "wrench": n[9:15], "proxy_position": n[15:18], "stiffness": n[28:34], "state": n[48]}


def z_of(seq: int, ticks: int) -> float:
    """Down to 2 mm below the height at which the tip touches the floor, then held."""
    lowest = TIP_RADIUS - 0.002
    part = min(1.0, seq / (0.6 * ticks))
    return START + (lowest - START) * part


@pytest.mark.parametrize("encoding", ["msgpack", "struct"])
def test_hello_lease_arm_a_thousand_ticks_release(daemon, encoding):
    """Each sample runs one tick and gets its own render; at rest the force is that of the spring K alone."""
    with Raw(daemon["control"]) as raw:
        hello = raw.hello()
        assert hello["clocking"] == "triggered" and hello["tick_ns"] == 1_000_000
        assert hello["endpoints"] == {name: daemon[name] for name in ("device", "control", "state", "events")}
        raw.must("lease", session=raw.session)
        exchange = raw.exchange_map if encoding == "msgpack" else raw.exchange_struct
        exchange(1, START)
        armed = raw.must("arm", session=raw.session, reanchor=False)
        ticks = 1000
        renders = [exchange(seq, z_of(seq, ticks)) for seq in range(2, ticks + 2)]
        numbers = [render["tick"] for render in renders]
        assert numbers == list(range(armed["tick"] + 1, armed["tick"] + 1 + ticks))
        last = renders[-1]
        assert last["state"] == ACTIVE
        # the tip rests eps_safety above the floor, a few 0.01 mm; the device image is 2 mm deeper than touching
        rest_gap = last["proxy_position"][2] - TIP_RADIUS
        assert 0.0 < rest_gap < 1e-4
        assert math.isclose(last["wrench"][2], STIFFNESS * (0.002 + rest_gap), rel_tol=1e-6)
        assert abs(last["wrench"][0]) < 1e-9 and abs(last["wrench"][1]) < 1e-9
        assert min(render["proxy_position"][2] for render in renders) > TIP_RADIUS, "the tip went through the floor"
        raw.must("release", session=raw.session)
        # forces ramp down while samples go on; then nobody owns the device
        state, seq = last["state"], ticks + 1
        while state != IDLE and seq < ticks + 300:
            seq += 1
            render = exchange(seq, z_of(seq, ticks))
            state = render["state"]
        assert state == IDLE and list(render["wrench"]) == [0.0] * 6
        status = raw.must("status")
        assert status["owner"] is None


def test_bad_samples_change_nothing_and_are_counted(daemon):
    with Raw(daemon["control"]) as raw:
        raw.hello()
        raw.must("lease", session=raw.session)
        first = raw.exchange_map(1, START)
        before = raw.must("status")["counters"]["rejected"]
        good = {"v": 1, "kind": 1, "session": raw.session, "seq": 2, "t_sample": 1, "position": [0.0, 0.0, START]}
        good["orientation"] = [0.0, 0.0, 0.0, 1.0]
        bad = [
            b"",
            b"\xc1",
            random.Random(1).randbytes(300),
            msgpack.packb(good | {"v": 2}),
            msgpack.packb(good | {"position": [0.0, 0.0, math.nan]}),
            msgpack.packb(good | {"orientation": [0.0, 0.0, 0.0, 2.0]}),
            msgpack.packb(good | {"seq": 1}),
            msgpack.packb(good | {"seq": True}),
            msgpack.packb(good | {"session": raw.session ^ 1}),
            msgpack.packb(good | {"position": "a" * 5000}),
            msgpack.packb(good | {"position": [[[[[[[[[[0.0]]]]]]]]], 0.0, 0.0]}),
        ]
        for message in bad:
            raw.device.send(message)
        second = raw.exchange_map(2, START)
        assert second["tick"] == first["tick"] + 1, "a refused sample ran a tick"
        assert raw.must("status")["counters"]["rejected"] == before + len(bad)
        raw.must("release", session=raw.session)


def test_requests_that_break_the_rules_get_a_code_and_a_sentence(daemon):
    with Raw(daemon["control"]) as raw:
        raw.hello()
        for fields, code in (
            ({"op": "fly"}, "unknown_op"),
            ({"op": "lease"}, "bad_request"),
            ({"op": "lease", "session": 12345}, "bad_session"),
            ({"op": "arm", "session": raw.session}, "not_owner"),
            ({"op": "hello", "client": "x", "versions": [2], "roles": ["owner"]}, "version"),
            ({"op": "status", "v": 2}, "version"),
        ):
            reply = raw.ask(fields)
            assert reply is not None and reply["ok"] is False, fields
            assert reply["error"]["code"] == code and len(reply["error"]["text"]) > 10, reply
        for value, code in (
            (math.inf, "not_finite"),
            ([[[[[1]]]]], "too_deep"),
            ("a" * 300, "too_large"),
            (b"a", "malformed"),
        ):
            raw.number = -1  # what could not be read is answered with the id 0
            reply = raw.ask({"op": "status", "x": value})
            assert reply is not None and reply["error"]["code"] == code and reply["id"] == 0, reply


def test_two_owners_are_refused_and_the_first_is_left_alone(daemon):
    with Raw(daemon["control"]) as one, Raw(daemon["control"]) as other:
        one.hello()
        other.hello()
        one.must("lease", session=one.session)
        refusal = other.ask({"op": "lease", "session": other.session})
        assert refusal is not None and refusal["error"]["code"] == "lease_taken"
        one.exchange_map(1, START)
        one.must("release", session=one.session)
        other.must("lease", session=other.session)
        other.must("release", session=other.session)
