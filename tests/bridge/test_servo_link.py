"""The servo's loop with a link: what comes from the other end enters a tick, and what the tick says goes out."""

import time

import numpy as np
import pytest
from servo_rig import SESSION, Bench
from waiting import wait_until

from bridge.exit_codes import ExitCode
from bridge.schema import Reject
from bridge.wire import PEER_HELLO, decode_peer, encode_peer
from haptics.link_codes import LinkReason, LinkState
from haptics.tables import PEER, PEER_INPUT


class OtherEnd:
    """The other end of a bench's link, by hand."""

    def __init__(self, bench, session=SESSION + 7):
        self.socket = bench.connect(bench.peer_endpoint)
        self.session = session
        self.seq = 0

    def send(self, **fields):
        self.seq += 1
        peers = np.zeros(1, PEER)
        peers["orientation"][0, 3] = peers["offset_orientation"][0, 3] = 1.0
        for name, value in {"seq": self.seq, **fields}.items():
            peers[name] = value
        self.socket.send(encode_peer(peers, self.session, time.monotonic_ns()))

    def receive(self, timeout_ms=20_000):
        assert self.socket.poll(timeout_ms), "nothing comes"
        peers = np.zeros(1, PEER)
        assert decode_peer(self.socket.recv(), peers) == Reject.NONE
        return peers[0]


@pytest.fixture(params=["free", "triggered"])
def linked(short_base, request):
    bench = Bench(short_base, request.param, link=True)
    yield bench
    bench.close()


def run_some(bench, ticks, meanwhile=lambda: None):
    """Let so many ticks pass, by samples where those make them."""
    end = bench.ring.count + ticks
    while bench.ring.count < end:
        meanwhile()
        if bench.servo.triggered:
            bench.send()
            assert bench.render() is not None
        else:
            time.sleep(0.001)


def test_a_link_costs_nothing_where_there_is_none(short_base):
    free = Bench(short_base)
    assert free.servo.peer is None
    free.start()
    wait_until(lambda: free.ring.count > 20)
    free.stop()
    records = free.records()
    assert records["input"]["peer"].tobytes() == np.zeros(len(records), PEER_INPUT).tobytes()
    assert not records["timing"]["peer_rejected"].any()
    free.close()


def test_what_comes_enters_the_tick_that_follows_and_what_it_says_goes_out(linked):
    linked.start()
    other = OtherEnd(linked)
    other.send(wave_energy=41.0)
    run_some(linked, 1)
    wait_until(lambda: linked.servo.peer.received, meanwhile=lambda: run_some(linked, 1))
    answer = other.receive()
    assert answer["wave_energy"] == 42.0, "of the same tick"
    assert answer["session"] == linked.servo.peer.own_session
    before = int(answer["seq"])
    run_some(linked, 5)
    assert [int(other.receive()["seq"]) for _ in range(5)] == list(range(before + 1, before + 6))
    linked.stop()
    records = linked.records()
    entered = records["input"]["peer"]
    assert entered["fresh"].sum() == 1
    first = int(np.argmax(entered["fresh"]))
    assert not entered["message"]["session"][:first].any() and entered["message"]["session"][first] == other.session
    assert (entered["message"]["seq"][first:] == 1).all() and (entered["received"][first:] == 1).all()
    assert (np.diff(entered["age_ns"][first:]) > 0).all()
    message = records["output"]["link"]["message"]
    for name in ("session", "t_sent", "t_echo", "t_held"):
        assert not message[name].any(), "stamped on the bytes alone"


def test_only_what_is_to_be_sent_is(linked):
    linked.link_every = 4
    linked.start()
    other = OtherEnd(linked)
    other.socket.send(PEER_HELLO)
    wait_until(lambda: linked.servo.peer._identity, meanwhile=lambda: run_some(linked, 1))
    begun = linked.ring.count
    run_some(linked, 40)
    linked.stop()
    sent = int(linked.records()["output"]["link"]["send"][begun + 1 :].sum())
    numbers = []
    while other.socket.poll(200):
        numbers.append(int(other.receive()["seq"]))
    assert sent - 1 <= len(numbers) <= sent + 1
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_refused_messages_of_the_other_end_do_not_count_as_the_devices(linked):
    linked.start()
    other = OtherEnd(linked)
    other.socket.send(b"\xc1\x02\x03")
    other.send()
    wait_until(lambda: linked.servo.peer.received, meanwhile=lambda: run_some(linked, 1))
    linked.stop()
    last = linked.records()[-1]
    assert (last["timing"]["peer_rejected"], last["timing"]["rejected_total"]) == (1, 0)
    assert last["timing"]["peer_reject_code"] == Reject.MALFORMED
    assert not linked.records()["input"]["rejected"].any()


def test_a_tick_that_raises_lets_the_link_go(short_base, capfd):
    bench = Bench(short_base, link=True)
    bench.fail_at = 200
    bench.start()
    other = OtherEnd(bench)
    other.send()
    bench.thread.join(20)
    assert bench.code == ExitCode.TICK_RAISED
    last = None
    while other.socket.poll(200):
        last, before = other.receive().copy(), last
    assert (before["active"], last["active"], last["seq"]) == (1, 0, before["seq"] + 1)
    tail = bench.records()[-1]["output"]["link"]
    assert (tail["state"], tail["reason"], tail["send"]) == (LinkState.LOST, LinkReason.NOT_FINITE, 0)
    assert not tail["wrench"].any()
    bench.close()
