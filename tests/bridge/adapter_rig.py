"""The loop of an adapter at given times, between a device and a daemon that do what they are told."""

import bisect

import pytest

from bridge.adapters import loop
from bridge.adapters.device import Device, DeviceError, Reading
from bridge.adapters.loop import Adapter
from bridge.client import HapticdError, NoDaemonError, NoReplyError
from bridge.wire import Render
from haptics.cards import load_card
from haptics.last_line import NO_WRENCH
from haptics.states import EngagementState, Reason

MS = 1_000_000
LIMITS = {"force_max": 10.0, "torque_max": 0.5, "force_slew": 2.0, "torque_slew": 0.1}


class Handle(Device):
    """A device that says what it is told to say."""

    card = "simulated"

    def __init__(self):
        self.reading = Reading((0.0, 0.0, 0.0))
        self.written = []
        self.braked = 0
        self.gone = self.deaf = False
        self.meanwhile = lambda: None
        """What else happens while it is read."""

    def open(self):
        pass

    def read(self):
        if self.gone:
            raise DeviceError("the handle was unplugged")
        self.meanwhile()
        return self.reading

    def write(self, wrench):
        if self.deaf:
            raise DeviceError("the handle takes no force")
        self.written.append(wrench)

    def brake(self):
        self.braked += 1


class Daemon:
    """In place of the client's class: a call makes a client, and the daemon does at once what it is asked."""

    def __init__(self):
        self.running = True
        self.silent = False
        self.card = load_card("simulated").to_dict()
        self.state, self.reason = EngagementState.IDLE, Reason.NONE
        self.refuses = {}
        self.answers_at = 0
        self.address, self.ahead = "tcp://far:1", 10**15
        self.way = 0
        self.sent_at = []
        self.requires_deadman = False
        self.stale_after_ms = 20.0
        self.described = 0
        self.asked = []
        self.samples = []
        self.tick = 0
        self.now = 0
        self.fields = {}
        self.clients = 0

    def __call__(self, daemon, name, **options):
        assert options["render_timeout_ms"] == 0, "sending must give up at once"
        if not self.running:
            raise NoDaemonError("no daemon runs")
        self.clients += 1
        return Client(self)


class Client:
    tick_s = 1e-3

    def __init__(self, daemon):
        self.daemon = daemon
        self.greeting = {"card": daemon.card, "limits": LIMITS, "stale_after_ms": daemon.stale_after_ms}
        self.owner = False

    def ask(self, op, timeout_ms, **fields):
        return Question(self.daemon, op, fields)

    @property
    def endpoints(self):
        return {"device": self.daemon.address}

    @property
    def clock_offset_ns(self):
        return self.daemon.ahead

    clock_uncertainty_ns = MS

    def sent_at(self, seq):
        return self.daemon.sent_at[seq - 1] if seq else None

    def describe(self):
        self.daemon.described += 1
        return {"config": {"safety": {"require_deadman": self.daemon.requires_deadman}}}

    def leased(self):
        self.owner = True

    def send(self, position, orientation, **fields):
        assert self.owner
        self.daemon.sent_at.append(self.daemon.now)
        self.daemon.samples.append({"position": position, "orientation": orientation, **fields})
        return len(self.daemon.samples)

    def receive(self):
        daemon = self.daemon
        if daemon.silent or not self.owner:
            return None
        daemon.tick += 1
        left = daemon.now - daemon.way
        seq = bisect.bisect_right(daemon.sent_at, left - daemon.way)
        received = daemon.sent_at[seq - 1] + daemon.way + daemon.ahead if seq else 0
        own = {
            "seq": seq, "tick": daemon.tick, "t_received": received, "t_sent": left + daemon.ahead,
            "wrench": NO_WRENCH, "proxy_position": (0.0,) * 3, "proxy_orientation": (0.0, 0.0, 0.0, 1.0),
            "proxy_twist": NO_WRENCH, "stiffness": NO_WRENCH, "damping": NO_WRENCH, "feed_forward": NO_WRENCH,
            "valid_for": 10 * MS, "gap": -1.0, "state": daemon.state, "reason": daemon.reason, "degraded": 0,
            "limited": 0, "slack": (0.0,) * 3, "planes": (0.0,) * 16, "plane_count": 0, "pinned": 1,
        }  # fmt: skip
        return Render(**{**own, **daemon.fields})

    def close(self):
        if self.owner:
            self.daemon.asked.append(("release", {}))


class Question:
    def __init__(self, daemon, op, fields):
        self.daemon, self.op = daemon, op
        daemon.asked.append((op, fields))

    def reply(self):
        daemon = self.daemon
        if daemon.now < daemon.answers_at:
            return None
        if daemon.refuses.get(self.op) == "no_reply":
            raise NoReplyError(f"`{self.op}` was not answered")
        if self.op in daemon.refuses:
            raise HapticdError(daemon.refuses[self.op], f"`{self.op}` is refused")
        if self.op == "arm":
            daemon.state, daemon.reason = EngagementState.ACTIVE, Reason.RAMP_DONE
        if self.op in ("disarm", "reset"):
            daemon.state, daemon.reason = EngagementState.IDLE, Reason.COMMAND
        return {"ok": True}


class AtOnce:
    """In place of a thread beside the loop."""

    done = True

    def __init__(self, call):
        self.found = self.error = None
        try:
            self.found = call()
        except Exception as error:
            self.error = error

    def result(self):
        if self.error is not None:
            raise self.error
        return self.found


class Rig:
    """Both, and the adapter between them; times go on by what a test says."""

    def __init__(self, monkeypatch, aside=AtOnce, **options):
        self.daemon, self.device, self.said = Daemon(), Handle(), []
        monkeypatch.setattr(loop, "Aside", aside)
        monkeypatch.setattr(loop, "Client", self.daemon)
        self.now = 10**12
        self.adapter = Adapter(self.device, say=self.said.append, clock=lambda: self.now, **options)

    def run(self, cycles, each=None):
        for k in range(cycles):
            self.now += MS
            self.daemon.now = self.now
            if each is not None:
                each(k)
            self.adapter.cycle()

    def hold_up(self, ms):
        """One cycle whose reading takes so long, while the daemon goes on."""

        def meanwhile():
            self.now += ms * MS
            self.daemon.now = self.now - MS // 2

        self.device.meanwhile = meanwhile
        self.run(1)
        self.device.meanwhile = lambda: None

    def ops(self):
        return [op for op, _ in self.daemon.asked]

    def felt(self):
        return self.adapter.applied.wrench

    def push(self, force=3.0):
        """Forces on, all of a push felt."""
        self.daemon.fields = {"feed_forward": (force, 0.0, 0.0, 0.0, 0.0, 0.0)}
        self.run(150)
        assert self.felt()[0] == pytest.approx(force)
