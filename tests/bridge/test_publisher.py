"""The publisher: state is decimated, events never, and numbers tell what was missed."""

import os
import time
from collections.abc import Iterator

import msgpack
import numpy as np
import pytest
import zmq
from waiting import wait_until

from bridge.notices import Notifier
from bridge.publisher import STATE_FIELDS, Numbering, Publisher, event_messages, state_message
from bridge.ring import TICKING, RingWriter
from bridge.runtime import RuntimeDirectory
from bridge.schema import REPLY_MAX_BYTES
from haptics.link_codes import LinkReason, LinkState
from haptics.states import EngagementState, Reason
from haptics.tables import RECORD, record_type
from rtcore.tables import DEGRADED_CONTACTS, DEGRADED_SWEEP


def record(tick, before=0, after=0, reason=0, event_seq=0):
    row = np.zeros(1, RECORD)
    row["tick"] = tick
    row["output"]["event_from"], row["output"]["event_to"] = before, after
    row["output"]["state"], row["output"]["reason"], row["output"]["event_seq"] = after, reason, event_seq
    return row


FIRST_MARK = 10**9
"""Ticks beyond this one are of records that only mark where something ends."""


class Bench:
    """A publisher that the test drives step by step, and a subscriber to each of its sockets."""

    def __init__(self, base, publish_hz=50.0):
        self.runtime = RuntimeDirectory("p", base).create()
        self.ring = RingWriter(self.runtime.ring_path, 256)
        self.ring.claim()
        self.ring.header.ready = TICKING
        self.publish_hz = publish_hz
        self._mark = FIRST_MARK
        self.context = zmq.Context()
        self.publisher = None
        self.start()
        endpoints = self.runtime.endpoints()
        self.sockets = {}
        for name in ("events", "state"):
            self.sockets[name] = socket = self.context.socket(zmq.SUB)
            socket.set(zmq.SUBSCRIBE, b"")
            socket.set(zmq.RECONNECT_IVL, 10)
            socket.connect(endpoints[name])
        # Until both subscriptions have arrived.
        self.events()
        self.states()

    def start(self):
        self.publisher = Publisher(self.runtime, self.runtime.endpoints(), self.publish_hz)

    def run(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.publisher.step()

    def run_until_numbered(self, **last):
        """Publish until so many events of each of these sources have been numbered."""
        numbers = self.publisher._numbering.last
        wait_until(lambda: all(numbers.get(name) == n for name, n in last.items()), meanwhile=self.publisher.step)

    def _received(self, name, mark, is_mark) -> Iterator[dict]:
        """What has arrived up to a mark, which is sent again while none comes: a mark is behind all the rest."""
        socket = self.sockets[name]

        def next_message():
            if not socket.poll(100):
                mark()
            return msgpack.unpackb(socket.recv()) if socket.poll(0) else None

        mark()
        while not is_mark(message := wait_until(next_message, f"nothing comes from {name}", meanwhile=lambda: None)):
            yield message
        yield message

    def events(self):
        """All events so far; the last one is a heartbeat."""
        beats = []

        def beat():
            self.publisher._heartbeat_due = 0.0
            self.publisher.step()
            beats.append(self.publisher._numbering.last["publisher"])

        found = list(
            self._received("events", beat, lambda event: event["source"] == "publisher" and event["seq"] == beats[-1])
        )
        assert found[-1]["code"] == "heartbeat"
        return found

    def states(self):
        """All states so far, without those of the records that are written here to find the end."""

        def mark():
            self._mark += 1
            self.ring.write(record(self._mark))
            self.publisher._state_due = 0.0
            self.publisher.step()

        found = self._received("state", mark, lambda state: state["tick"] == self._mark)
        return [state for state in found if state["tick"] <= FIRST_MARK]

    def close(self):
        self.publisher.close()
        self.context.destroy(linger=0)


@pytest.fixture
def bench(short_base):
    bench = Bench(short_base)
    yield bench
    bench.close()


def test_state_message_has_the_documented_keys_and_no_session():
    row = record(5)[0]
    row["input"]["has_sample"] = 1
    row["output"]["owner"] = 987654321
    row["output"]["report"]["contact_count"] = 2
    row["output"]["report"]["degraded"] = DEGRADED_SWEEP | DEGRADED_CONTACTS
    row["output"]["link"]["state"] = LinkState.UP
    row["input"]["peer"]["message"]["session"] = 987654321
    message = state_message(row)
    assert set(message) == {"v"} | {name for name, _, _ in STATE_FIELDS}
    assert message["owned"] is True
    assert "987654321" not in str(message)
    assert len(message["contacts"]) == 2
    assert message["degraded"] == ["sweep", "contacts"]
    assert len(msgpack.packb(message)) < 4096


def test_state_message_tells_where_bodies_are_that_move():
    row = np.zeros(1, record_type(2))
    row["bodies"]["position"] = [[(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)]]
    row["bodies"]["orientation"][:, :, 3] = 1.0
    message = state_message(row[0], (3, 7))
    assert set(message) | {"age_ns", "link"} == {"v"} | {name for name, _, _ in STATE_FIELDS}
    assert message["bodies"] == [
        {"body_id": 3, "position": [1.0, 2.0, 3.0], "orientation": [0.0, 0.0, 0.0, 1.0]},
        {"body_id": 7, "position": [4.0, 5.0, 6.0], "orientation": [0.0, 0.0, 0.0, 1.0]},
    ]
    assert len(msgpack.packb(state_message(np.zeros(1, record_type(200))[0], range(200)))) < REPLY_MAX_BYTES


def test_unknown_is_absent():
    assert "age_ns" not in state_message(record(1)[0])


def test_a_link_is_told_with_its_state_and_losses():
    row = record(1)[0]
    assert "link" not in state_message(row)
    link, entered, timing = row["output"]["link"], row["input"]["peer"], row["timing"]
    link["state"], link["reason"] = LinkState.LOST, LinkReason.SILENT
    link["gain"], link["energy"], link["credit"], link["distance"] = 0.5, -0.1, 0.2, 0.003
    entered["way_ns"], entered["received"], entered["lost"] = 40_000_000, 900, 7
    timing["peer_rejected"], timing["peer_dropped"] = 3, 4
    assert state_message(row)["link"] == {
        **{"state": 3, "state_name": "LOST", "reason": 3, "reason_name": "SILENT"},
        **{"gain": 0.5, "energy": -0.1, "credit": 0.2, "distance": 0.003},
        **{"way_ns": 40_000_000, "received": 900, "lost": 7, "rejected": 3, "dropped": 4},
    }


def test_every_state_change_becomes_an_event_with_names():
    rows = np.concatenate([record(1), record(2, 0, 1, Reason.COMMAND, 1), record(3, 1, 1, 0, 1), record(4, 1, 6, 2, 2)])
    first, second = event_messages(rows)
    assert (first["from_name"], first["to_name"], first["reason_name"]) == ("IDLE", "ARMED", "COMMAND")
    assert (first["from"], first["to"], first["reason"]) == (0, 1, 1)
    assert first["text"] == "IDLE -> ARMED: COMMAND"
    assert (second["seq"], second["tick"], second["to_name"]) == (2, 4, "FAULT")


def test_events_are_all_sent_while_states_are_thinned(bench):
    states = len(EngagementState)
    began = time.monotonic()
    for tick in range(1, 201):
        bench.ring.write(record(tick, tick % states, (tick + 1) % states, Reason.COMMAND, tick))
        if tick % 5 == 0:
            bench.run(0.005)
    took = time.monotonic() - began
    events = [event for event in bench.events() if event["source"] == "servo"]
    assert [event["seq"] for event in events] == list(range(1, 201))
    thinned = bench.states()
    assert 3 <= len(thinned) <= took * bench.publish_hz + 2, "one per period, and one that was overdue"
    assert [state["tick"] for state in thinned] == sorted({state["tick"] for state in thinned})
    assert thinned[-1]["tick"] <= 200


def test_notices_are_numbered_per_source(bench):
    notifier = Notifier(bench.runtime)
    for number in range(3):
        assert notifier.send("recorder", "disk_full", f"sentence {number}", file="x.mcap")
    notifier.send("supervisor", "recorder_died", "it died")
    bench.run_until_numbered(recorder=3, supervisor=1)
    events = [event for event in bench.events() if event["source"] != "publisher"]
    notifier.close()
    assert [(event["source"], event["seq"]) for event in events] == [
        ("recorder", 1),
        ("recorder", 2),
        ("recorder", 3),
        ("supervisor", 1),
    ]
    assert events[0]["file"] == "x.mcap"
    assert events[0]["text"] == "sentence 0"


def test_heartbeat_carries_the_last_numbers(bench):
    bench.ring.write(record(1, 0, 1, Reason.COMMAND, 1))
    bench.run_until_numbered(servo=1)
    beat = bench.events()[-1]
    assert beat["last"] == {"servo": 1}
    assert beat["ticking"] is True


def test_restarted_publisher_repeats_nothing_and_goes_on_counting(bench):
    """Whatever was lost on the way (a socket of the dead publisher, a subscriber not back yet) shows in the numbers."""
    notifier = Notifier(bench.runtime)
    bench.ring.write(record(1, 0, 1, Reason.COMMAND, 1))
    notifier.send("recorder", "one", "one", place=1)
    bench.run_until_numbered(servo=1, recorder=1)
    bench.events()
    bench.publisher.close()
    bench.ring.write(record(2, 1, 0, Reason.COMMAND, 2))
    bench.start()
    seen = []
    place = 1

    def send_another():
        nonlocal place, seen
        place += 1
        notifier.send("recorder", "again", "again", place=place)
        bench.run(0.05)
        seen += bench.events()

    wait_until(lambda: len([e for e in seen if e["source"] == "recorder"]) >= 3, meanwhile=send_another)
    notifier.close()
    heard = [event for event in seen if event["source"] == "recorder"]
    assert [event["seq"] for event in heard] == [event["place"] for event in heard]
    assert min(event["place"] for event in heard) > 1, "the first one was sent by the publisher before"
    assert [event["seq"] for event in seen if event["source"] == "servo"] in ([2], [])
    assert Numbering(bench.runtime).last["servo"] == 2


def test_numbers_skip_what_did_not_arrive(short_base):
    """One sender: 1, then 4 (two lost), over a restart; a new sender whose first was lost; one without counts."""
    runtime = RuntimeDirectory("n", short_base).create()
    numbering = Numbering(runtime)
    assert numbering.next("recorder", "a", 1) == 1
    numbering.save()
    numbering = Numbering(runtime)
    assert numbering.next("recorder", "a", 4) == 4
    assert numbering.next("recorder", "b", 2) == 6
    assert numbering.next("recorder", "b", 3) == 7
    assert [numbering.next("publisher"), numbering.next("publisher")] == [1, 2]
    runtime.numbering_path.write_text('{"recorder": 3}')
    assert Numbering(runtime).last == {}


def test_overrun_is_told(bench):
    for tick in range(1, 1001):
        bench.ring.write(record(tick))
    bench.publisher.step()
    (lost,) = [event for event in bench.events() if event["code"] == "records_lost"]
    assert lost["source"] == "publisher"
    assert lost["lost"] == 1000 - 256


def test_notices_never_wait_for_a_publisher(short_base):
    notifier = Notifier(RuntimeDirectory("q", short_base).create())
    began = time.monotonic()
    sent = [notifier.send("recorder", "word", "sentence") for _ in range(3000)]
    assert time.monotonic() - began < 2.0, "a millisecond for each that is dropped would be as long"
    assert sent[0]
    assert not sent[-1], "beyond the bound they are dropped, and the sender is told"
    notifier.close()
    assert os.path.isdir(short_base)
