"""The publisher process: ``python -m bridge.publisher RUNTIME_DIR``. Reads the ring, serves observers.

`state` socket: tick records, decimated. `events` socket: every change of the engagement state, every notice of the
other processes, and a heartbeat each second, numbered per source, so that a subscriber can tell silence from loss.
"""

import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgpack
import numpy as np
import zmq

from bridge import realtime
from bridge.access import ask_judge, bind, stored_keys
from bridge.exit_codes import ExitCode
from bridge.keys import KeyPair
from bridge.model_file import load_moving_bodies
from bridge.notices import read_notice
from bridge.ring import TICKING, RingError, RingReader
from bridge.runtime import RuntimeDirectory, RuntimeDirectoryError, write_json
from bridge.schema import PROTOCOL_VERSION, REPLY_MAX_BYTES
from bridge.wire import WireError
from haptics.link_codes import LinkReason, LinkState
from haptics.states import EngagementState, Reason
from rtcore.tables import DEGRADED_CONTACTS, DEGRADED_NUMBERS, DEGRADED_PASSES, DEGRADED_SOLVER, DEGRADED_SWEEP

HEARTBEAT_S = 1.0
POLL_MS = 5
BATCH = 512
EVENTS_KEPT = 10_000
"""Events kept for a subscriber that does not read; a later gap in the numbers shows what it lost."""

DRAIN_S = 1.0

LARGEST_SUBSCRIPTION = 4096
"""Bytes; all that a subscriber ever sends are subscriptions, and one that sends more is disconnected."""

STATE_FIELDS: tuple[tuple[str, str, str], ...] = (
    ("tick", "", "number of the tick"),
    ("t", "ns", "when it started, CLOCK_MONOTONIC of the daemon's machine"),
    ("state", "", "engagement state, number"),
    ("state_name", "", "the same as a word"),
    ("reason", "", "reason of the last transition, number"),
    ("reason_name", "", "the same as a word"),
    ("event_seq", "", "number of the last event of source `servo`"),
    ("owned", "", "whether somebody holds the lease"),
    ("age_ns", "ns", "age of the owner's newest sample; absent before its first one"),
    ("gain", "", "ramp, 0..1"),
    ("device_position", "m", "where the device wants the tip centre, scene"),
    ("device_orientation", "", "the same, quaternion"),
    ("goal_position", "m", "where the mechanics were asked to bring it: the same, unless a hard fixture leads it"),
    ("device_velocity", "m/s", "of the coupling point's image, scene"),
    ("proxy_position", "m", "tip centre, scene"),
    ("proxy_orientation", "", "the tool's"),
    ("wrench", "N, N·m", "what a plain client applies, device frame"),
    ("stiffness", "N/m, N·m/rad", "diagonal, device frame, ramp included"),
    ("damping", "N·s/m, N·m·s/rad", "diagonal, device frame, ramp included"),
    ("energy", "J", "handed to the hand so far; positive: the daemon has produced energy"),
    ("energy_linear", "J", "the part of it by force"),
    ("energy_angular", "J", "the part of it by torque"),
    ("passivity_damping", "N·s/m, N·m·s/rad", "what the passivity controller adds in damping, linear and angular"),
    ("rate_share", "", "of the stiffness that is felt, for the rate of the samples; 1 at the tick's"),
    ("limited", "", "bits as in a render"),
    ("degraded", "", "words for the work that the budget cut short"),
    ("gap", "m", "smallest distance from the tip to a surface; -1 when none is near"),
    ("contacts", "", "list of maps: point, normal, displacement (scene, m), gap (m), body_id, face_id, sliding"),
    (
        "link",
        "",
        "map, absent without a link: state, state_name, reason, reason_name, gain, energy (J handed to the hand), "
        "credit (J), distance (m), way_ns (there and back; 0: not known), received, lost, rejected, dropped",
    ),
    ("bodies", "", "list of maps, one per body that moves: body_id, position (m) and orientation, mesh -> scene"),
    ("units_used", "", "work units of the tick"),
    ("tick_ns", "ns", "from start to reply sent"),
    ("late_ns", "ns", "start minus planned start"),
    ("missed", "", "periods skipped just before this tick"),
    ("rejected", "", "messages refused on the device socket so far"),
    ("dropped", "", "renders that the owner did not take so far"),
    ("governed", "", "ticks so far with less than the configured budget, to keep the period"),
)
"""Keys of a message on the state socket: name, unit, meaning."""

DEGRADED_WORDS = (
    (DEGRADED_SWEEP, "sweep"),
    (DEGRADED_PASSES, "passes"),
    (DEGRADED_CONTACTS, "contacts"),
    (DEGRADED_SOLVER, "solver"),
    (DEGRADED_NUMBERS, "numbers"),
)


def name_of(kind: Any, number: int) -> str:
    """Name of an enum member, ``unknown(n)`` when there is none."""
    try:
        return kind(number).name
    except ValueError:
        return f"unknown({number})"


def state_message(record: np.void, body_ids: Sequence[int] = ()) -> dict[str, Any]:
    """Map of the state socket for one record, with the keys of `STATE_FIELDS`. Session ids stay private.

    body_ids: of the bodies that move, whose states stand behind the record.
    """
    output, entered, timing = record["output"], record["input"], record["timing"]
    report = output["report"]
    message: dict[str, Any] = {
        "v": PROTOCOL_VERSION,
        "tick": int(record["tick"]),
        "t": int(timing["started_ns"]),
        "state": int(output["state"]),
        "state_name": name_of(EngagementState, output["state"]),
        "reason": int(output["reason"]),
        "reason_name": name_of(Reason, output["reason"]),
        "event_seq": int(output["event_seq"]),
        "owned": bool(output["owner"]),
    }
    if entered["has_sample"]:
        message["age_ns"] = int(entered["age_ns"])
    message["gain"] = float(output["gain"])
    for name in (
        "device_position",
        "device_orientation",
        "goal_position",
        "device_velocity",
        "proxy_position",
        "proxy_orientation",
        "wrench",
        "stiffness",
        "damping",
    ):
        message[name] = output[name].tolist()
    message["passivity_damping"] = output["passivity_damping"].tolist()
    for name in ("energy", "energy_linear", "energy_angular", "rate_share"):
        message[name] = float(output[name])
    message["limited"] = int(output["limited"])
    message["degraded"] = [word for bit, word in DEGRADED_WORDS if report["degraded"] & bit]
    message["gap"] = float(report["smallest_gap"])
    message["contacts"] = [
        {
            "point": contact["point"].tolist(),
            "normal": contact["normal"].tolist(),
            "displacement": contact["displacement"].tolist(),
            "gap": float(contact["gap"]),
            "body_id": int(contact["body_id"]),
            "face_id": int(contact["face_id"]),
            "sliding": bool(contact["sliding"]),
        }
        for contact in report["contacts"][: report["contact_count"]]
    ]
    message["bodies"] = [
        {"body_id": body_id, "position": body["position"].tolist(), "orientation": body["orientation"].tolist()}
        for body_id, body in zip(body_ids, record["bodies"] if body_ids else (), strict=True)
    ]
    if output["link"]["state"] != LinkState.OFF:
        message["link"] = _link_facts(output["link"], entered["peer"], timing)
    message["units_used"] = int(report["units_used"])
    message["tick_ns"] = int(timing["sent_ns"] - timing["started_ns"])
    message["late_ns"] = int(timing["started_ns"] - timing["planned_ns"])
    message["missed"] = int(timing["missed"])
    message["rejected"] = int(timing["rejected_total"])
    message["dropped"] = int(timing["dropped_renders"])
    message["governed"] = int(timing["governed_total"])
    return message


def _link_facts(link: np.void, entered: np.void, timing: np.void) -> dict[str, Any]:
    """What an observer learns of a link. Sessions stay private."""
    return {
        "state": int(link["state"]),
        "state_name": name_of(LinkState, link["state"]),
        "reason": int(link["reason"]),
        "reason_name": name_of(LinkReason, link["reason"]),
        **{name: float(link[name]) for name in ("gain", "energy", "credit", "distance")},
        **{name: int(entered[name]) for name in ("way_ns", "received", "lost")},
        "rejected": int(timing["peer_rejected"]),
        "dropped": int(timing["peer_dropped"]),
    }


def event_messages(records: np.ndarray) -> Iterator[dict[str, Any]]:
    """Maps of the events socket for the state changes in (n,) RECORD, in order."""
    output = records["output"]
    for index in np.flatnonzero(output["event_from"] != output["event_to"]):
        row = output[index]
        before = name_of(EngagementState, row["event_from"])
        after = name_of(EngagementState, row["event_to"])
        reason = name_of(Reason, row["reason"])
        yield {
            "v": PROTOCOL_VERSION,
            "source": "servo",
            "seq": int(row["event_seq"]),
            "tick": int(records["tick"][index]),
            "t": int(records["timing"]["started_ns"][index]),
            "code": "state_changed",
            "from": int(row["event_from"]),
            "from_name": before,
            "to": int(row["event_to"]),
            "to_name": after,
            "reason": int(row["reason"]),
            "reason_name": reason,
            "text": f"{before} -> {after}: {reason}",
        }


class Numbering:
    """Last number used per source, kept in a file so that a restarted publisher goes on counting."""

    def __init__(self, runtime: RuntimeDirectory) -> None:
        self._path = runtime.numbering_path
        self.last: dict[str, int] = {}
        self._heard: dict[str, tuple[str, int]] = {}  # per source: who sent the newest notice, and its count
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            kept = json.loads(self._path.read_bytes())
            self.last = {str(source): int(seq) for source, seq in kept["last"].items()}
            self._heard = {str(source): (str(sender), int(count)) for source, (sender, count) in kept["heard"].items()}

    def next(self, source: str, sender: str = "", count: int = 0) -> int:
        """A new number of this source; higher by those that did not arrive, where the sender counts what it sends."""
        step = 1
        if count:
            before, heard = self._heard.get(source, ("", 0))
            step = max(count - (heard if before == sender else 0), 1)
            self._heard[source] = (sender, count)
        self.last[source] = self.last.get(source, 0) + step
        return self.last[source]

    def save(self) -> None:
        """Keep the numbers for a successor; without room for the file it would start again at 1."""
        with contextlib.suppress(OSError):
            write_json(self._path, {"last": self.last, "heard": self._heard})


class Publisher:
    """The two PUB sockets, fed from one ring and the notices of the other processes."""

    def __init__(
        self,
        runtime: RuntimeDirectory,
        endpoints: dict[str, str],
        publish_hz: float,
        body_ids: Sequence[int] = (),
        keys: KeyPair | None = None,
    ) -> None:
        """Binds; raises zmq.ZMQError when an address is taken.

        body_ids: of the bodies that move. keys: guard the sockets, the supervisor deciding who gets in.
        """
        self._context = zmq.Context(io_threads=1)
        if keys is not None:
            ask_judge(self._context, runtime.judge_endpoint())
        self._state = self._context.socket(zmq.PUB)
        self._state.set(zmq.SNDHWM, 8)
        self._events = self._context.socket(zmq.PUB)
        self._events.set(zmq.SNDHWM, EVENTS_KEPT)
        self._notices = self._context.socket(zmq.PULL)
        for socket in (self._state, self._events, self._notices):
            socket.set(zmq.LINGER, 200)
        for socket in (self._state, self._events):
            socket.set(zmq.MAXMSGSIZE, LARGEST_SUBSCRIPTION)
        self._notices.set(zmq.MAXMSGSIZE, REPLY_MAX_BYTES)
        bind(self._state, endpoints["state"], keys, "state")
        bind(self._events, endpoints["events"], keys, "events")
        bind(self._notices, runtime.notices_endpoint())
        self._reader = RingReader(runtime.ring_path)
        self._body_ids = body_ids
        self._numbering = Numbering(runtime)
        self._period_s = 1.0 / publish_hz
        self._poll_ms = max(1, min(POLL_MS, int(500 / publish_hz)))
        self._state_due = 0.0
        self._heartbeat_due = 0.0
        self._newest: np.void | None = None

    def step(self) -> int:
        """Wait a few ms for notices, then send what there is; returns the number of records read."""
        if self._notices.poll(self._poll_ms):
            self._forward_notices()
        total = 0
        while True:
            records, lost = self._reader.read(BATCH)
            if lost:
                text = f"the publisher was too slow: {lost} records went by unseen, and state changes may be among them"
                self._send_notice("publisher", "records_lost", text, {"lost": lost})
            if not len(records):
                break
            total += len(records)
            self._newest = records[-1]
            self._send_events(records)
            if len(records) < BATCH:
                break
        now = time.monotonic()
        if total and self._newest is not None and now >= self._state_due:
            self._state_due = max(self._state_due + self._period_s, now)
            self._state.send(msgpack.packb(state_message(self._newest, self._body_ids)), zmq.NOBLOCK)
        if now >= self._heartbeat_due:
            self._heartbeat_due = now + HEARTBEAT_S
            self._heartbeat()
        return total

    def _send_events(self, records: np.ndarray) -> None:
        sent = False
        for event in event_messages(records):
            # A publisher that was restarted reads the ring from its oldest record on: these have been sent already.
            if event["seq"] > self._numbering.last.get("servo", 0):
                self._numbering.last["servo"] = event["seq"]
                self._events.send(msgpack.packb(event), zmq.NOBLOCK)
                sent = True
        if sent:
            self._numbering.save()

    def _tick(self) -> int:
        return 0 if self._newest is None else int(self._newest["tick"])

    def _send_notice(
        self, source: str, code: str, text: str, data: dict[str, Any], sender: str = "", count: int = 0
    ) -> None:
        event = {
            **data,
            "v": PROTOCOL_VERSION,
            "source": source,
            "seq": self._numbering.next(source, sender, count),
            "tick": self._tick(),
            "t": data.get("t", time.monotonic_ns()),
            "code": code,
            "text": text,
        }
        self._numbering.save()
        self._events.send(msgpack.packb(event), zmq.NOBLOCK)

    def _forward_notices(self) -> None:
        while True:
            try:
                source, code, text, sender, count, notice = read_notice(self._notices.recv(zmq.NOBLOCK))
            except zmq.Again:
                return
            except WireError:
                self._send_notice("publisher", "bad_notice", "a notice that could not be read was dropped", {})
                continue
            self._send_notice(source, code, text, notice, sender, count)

    def _heartbeat(self) -> None:
        last = {source: seq for source, seq in self._numbering.last.items() if source != "publisher"}
        ticking = self._reader.header.ready == TICKING and self._reader.writer_alive()
        text = "the servo ticks" if ticking else "the servo does not tick"
        self._send_notice("publisher", "heartbeat", text, {"last": last, "ticking": ticking})

    def servo_ended(self) -> bool:
        """True when the servo has come to its end, or has died."""
        return not self._reader.writer_alive()

    def close(self) -> None:
        """Send what is queued (200 ms at most) and close."""
        for socket in (self._state, self._events, self._notices):
            socket.close()
        self._reader.close()
        self._context.term()


def main(runtime_dir: str) -> int:
    """Publish for the daemon whose files are in `runtime_dir` until SIGTERM; returns the exit code."""
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(time.monotonic()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    realtime.die_with_parent()
    runtime = RuntimeDirectory.at(runtime_dir)
    try:
        config = json.loads(runtime.config_path.read_bytes())
        keys = stored_keys(runtime, config)
        endpoints = runtime.endpoints(config["sockets"], keys is not None, config.get("link"))
        body_ids = load_moving_bodies(runtime.model_path)
        publisher = Publisher(runtime, endpoints, float(config["rates"]["publish_hz"]), body_ids, keys)
    except zmq.ZMQError as error:
        print(f"publisher: cannot listen: {error}", file=sys.stderr)
        return ExitCode.ADDRESS_IN_USE
    except (RingError, RuntimeDirectoryError, OSError, ValueError, KeyError) as error:
        print(f"publisher: {error}", file=sys.stderr)
        return ExitCode.CHILD_START
    print(json.dumps({"event": "ready"}), flush=True)
    while not stopping or (not publisher.servo_ended() and time.monotonic() - stopping[0] < DRAIN_S):
        publisher.step()
    while publisher.step():
        pass
    publisher.close()
    return ExitCode.OK


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python -m bridge.publisher RUNTIME_DIR", file=sys.stderr)
        sys.exit(ExitCode.USAGE)
    sys.exit(main(sys.argv[1]))
