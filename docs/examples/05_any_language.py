"""Nothing but ZeroMQ and msgpack: what a client in any language does. First: hapticd run configs/plane.toml"""

import json
import os
import time
from pathlib import Path

import msgpack
import zmq

base = os.environ.get("HAPTICD_RUNTIME_DIR")
if base is None:
    session_directory = os.environ.get("XDG_RUNTIME_DIR")
    base = f"{session_directory}/hapticd" if session_directory else f"/tmp/hapticd-{os.getuid()}"
endpoints = json.loads(Path(base, "default", "endpoints.json").read_text())

context = zmq.Context()
control = context.socket(zmq.DEALER)
control.connect(endpoints["control"])


def request(number: int, op: str, **fields: object) -> dict:
    """Send one control request and wait for its reply."""
    control.send(msgpack.packb({"v": 1, "id": number, "op": op, **fields}))
    if not control.poll(2000):
        raise SystemExit(f"the daemon did not answer {op}")
    reply = msgpack.unpackb(control.recv())
    if not reply["ok"]:
        raise SystemExit(f"{op}: {reply['error']['text']}")
    return reply


hello = request(1, "hello", client="any language", versions=[1], roles=["owner"], t_client=time.monotonic_ns())
session = hello["session"]
device = context.socket(zmq.DEALER)
device.connect(hello["endpoints"]["device"])
request(2, "lease", session=session)

for seq in range(1, 3002):
    if seq == 2:  # the first sample has brought the tool to the device
        request(3, "arm", session=session)
    sample = {
        "v": 1,
        "kind": 1,
        "session": session,
        "seq": seq,
        "t_sample": time.monotonic_ns(),
        "position": [0.0, 0.0, -1e-5 * (seq - 1)],
        "orientation": [0.0, 0.0, 0.0, 1.0],
    }
    device.send(msgpack.packb(sample))
    newest = None
    while device.poll(0 if newest else 100):  # wait for one render, then take the newest that is there
        newest = msgpack.unpackb(device.recv())
    if newest and seq % 300 == 1:
        print(f"tick {newest['tick']}: {newest['wrench'][2]:5.2f} N, state {newest['state']}")
    time.sleep(hello["tick_ns"] * 1e-9)

request(4, "release", session=session)
context.destroy(linger=0)
