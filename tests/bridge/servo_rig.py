"""A servo's loop in a thread, with a stand-in for the tick: a plain function on the same tables."""

import threading
import time

import msgpack
import numpy as np
import zmq
from waiting import wait_until

from bridge.mailbox import CommandReader, CommandWriter, create_mailbox
from bridge.peer_socket import open_peer
from bridge.ring import RingReader, RingWriter
from bridge.runtime import StoredAssembly
from bridge.servo import open_socket
from bridge.servo_loop import Servo
from haptics.cards import load_card
from haptics.link_settings import make_link
from haptics.settings import make_settings
from haptics.states import CommandKind, EngagementState
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.tables import BUDGET, STATIC

SESSION = 4711

LONG_LEASE_MS = 600_000.0
"""So long that a triggered servo never ticks by itself, however long the test stands still between two samples."""


def small_assembly(clocking: str, governor: bool = False, lease_ms: float = LONG_LEASE_MS) -> StoredAssembly:
    vertices = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    builder = ModelBuilder()
    mesh = builder.add_mesh(*build_tree(vertices, np.array([[0, 1, 2]])))
    builder.add_body(mesh, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), 0.4, 0.3, STATIC)
    budget = np.zeros(1, BUDGET)
    budget["units"], budget["passes"], budget["sweeps"] = 20000, 8, 50
    settings = make_settings(load_card("simulated"), tick_hz=1000.0, stiffness=100.0, damping=1.0, lease_ms=lease_ms)
    return StoredAssembly(
        config={
            "rates": {"clocking": clocking},
            "sockets": {"transport": "ipc"},
            "budget": {"governor": governor},
        },
        card={},
        model=builder.build(0.005, (0.0, 0.0, 0.0), 1e-5, 2e-5, 5e-5),
        settings=settings,
        budget=budget,
        body_names=["triangle"],
        mesh_hashes={},
        start=[0.0, 0.0, 0.5],
        start_orientation=[0.0, 0.0, 0.0, 1.0],
        base_directory="",
        versions={},
    )


class Bench:
    """A servo in a thread, a client, and the ring's records; with a link, its socket too."""

    def __init__(self, base, clocking="free", governor=False, lease_ms=LONG_LEASE_MS, link=False):
        self.ring = RingWriter(base / "ring", 4096)
        create_mailbox(base / "mailbox")
        self.post = CommandWriter(base / "mailbox").post
        endpoint = f"ipc://{base}/device"
        self.stored = small_assembly(clocking, governor, lease_ms)
        self.socket = open_socket(endpoint)
        self.peer_endpoint = f"ipc://{base}/peer"
        self.peer_socket = None
        if link:
            self.stored.settings["link"] = make_link(self.stored.settings)
            self.peer_socket = open_peer(self.socket.context, self.peer_endpoint)
        self.link_every = 1
        self.servo = Servo(self.stored, self.ring, CommandReader(base / "mailbox"), self.socket, self.peer_socket)
        self.servo._tick_kernel = self.tick
        self.fail_at = 0
        self.spend_s = {}
        self.demand = 0
        self.unit_s = 0.0
        self.reader = RingReader(base / "ring")
        self.context = zmq.Context()
        self.client = self.connect(endpoint)
        self.endpoint = endpoint
        self.seq = 0
        self.code = None
        self.thread = threading.Thread(target=self._run)

    def connect(self, endpoint):
        socket = self.context.socket(zmq.DEALER)
        socket.set(zmq.LINGER, 0)
        socket.connect(endpoint)
        return socket

    def tick(self, model, state, settings, touch, record):
        """Lease, shutdown, and a wrench: as much of a real tick as the loop depends on."""
        row, memory = record[0], touch[0]
        number = int(row["tick"])
        time.sleep(self.spend_s.get(number, 0.0))
        used = min(self.demand, int(row["budget"]["units"]))
        row["output"]["report"]["units_used"] = used
        time.sleep(used * self.unit_s)
        if number == self.fail_at:
            raise RuntimeError("stand-in for a kernel that raises")
        output, command = row["output"], row["input"]["command"]
        output["command_id"] = command["id"]
        output["command_result"] = 1 if command["id"] else 0
        if command["kind"] == CommandKind.LEASE:
            memory["owner"] = command["session"]
        elif command["kind"] == CommandKind.RELEASE:
            memory["owner"] = 0
        elif command["kind"] == CommandKind.SHUTDOWN:
            output["stopped"] = 1
        output["owner"] = memory["owner"]
        output["seq"] = row["input"]["sample"]["seq"] if row["input"]["has_sample"] else 0
        output["state"] = EngagementState.ACTIVE if memory["owner"] else EngagementState.IDLE
        output["event_from"] = output["event_to"] = output["state"]
        output["wrench"] = (3.0, 2.0, 1.0, 0.0, 0.0, 0.0) if memory["owner"] else 0.0
        output["stiffness"] = 100.0
        link = output["link"]
        link["send"] = self.peer_socket is not None and number % self.link_every == 0
        if link["send"]:
            memory["link"]["sent"] += 1
        link["message"]["seq"] = memory["link"]["sent"]
        link["message"]["orientation"][3] = link["message"]["offset_orientation"][3] = 1.0
        link["message"]["wave_energy"] = row["input"]["peer"]["message"]["wave_energy"] + 1.0
        link["message"]["active"] = 1

    def _run(self):
        self.code = self.servo.run()

    def start(self, lease=True):
        if lease:
            self.post(CommandKind.LEASE, SESSION)
        self.thread.start()
        if lease:
            wait_until(lambda: self.servo.sessions.owner == SESSION)
        return self

    def message(self, **changes):
        self.seq += 1
        return {
            "v": 1,
            "kind": 1,
            "session": SESSION,
            "seq": self.seq,
            "t_sample": time.monotonic_ns(),
            "position": [0.0, 0.0, 0.5],
            "orientation": [0.0, 0.0, 0.0, 1.0],
            **changes,
        }

    def send(self, socket=None, **changes):
        (socket or self.client).send(msgpack.packb(self.message(**changes)))
        return self.seq

    def render(self, timeout_ms=20_000):
        return msgpack.unpackb(self.client.recv()) if self.client.poll(timeout_ms) else None

    def records(self):
        return self.reader.read(4096)[0]

    def stop(self):
        if self.thread.is_alive():
            self.servo.stop_asked = True
            self.thread.join(10)
        assert not self.thread.is_alive()
        return self.code

    def close(self):
        if self.thread.is_alive():
            self.stop()
        self.context.destroy(linger=0)
        self.socket.close(0)
        if self.peer_socket is not None:
            self.peer_socket.close(0)
