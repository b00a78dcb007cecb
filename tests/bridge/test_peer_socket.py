"""A link's socket in the servo: which messages count, what the tick learns of them, and what goes out."""

import itertools
import struct
import time

import numpy as np
import pytest
import zmq
from waiting import wait_until

from bridge import keys
from bridge.keys import ClientKeys
from bridge.peer_socket import MAX_FRAMES, MAX_MESSAGES, QUEUED, Peer, open_peer
from bridge.schema import Reject
from bridge.wire import PEER_HELLO, decode_peer, encode_peer, encode_sample
from haptics.tables import LINK_SETTINGS, PEER, RECORD

MS = 1_000_000
STALE_MS = 200
OTHER = 4711


def told(seq: int, **fields) -> np.ndarray:
    """A (1,) PEER as an end's tick would leave it."""
    peers = np.zeros(1, PEER)
    peers["seq"] = seq
    peers["orientation"][0, 3] = peers["offset_orientation"][0, 3] = 1.0
    for name, value in fields.items():
        peers[name] = value
    return peers


class End:
    """One end: the servo's side of a link, with a record of its own."""

    def __init__(self, context, endpoint, connect="", stale_ms=STALE_MS):
        settings = np.zeros(1, LINK_SETTINGS)
        settings["stale_after_ns"] = stale_ms * MS
        self.record = np.zeros(1, RECORD)
        self.record["output"]["link"]["message"] = told(0)
        self.socket = open_peer(context, endpoint, connect=connect)
        self.peer = Peer(self.socket, self.record, settings)

    @property
    def entered(self):
        return self.record[0]["input"]["peer"]

    @property
    def timing(self):
        return self.record[0]["timing"]

    def take(self):
        self.peer.take(time.monotonic_ns())
        return self.entered

    def send(self, **fields):
        message = self.record["output"]["link"]["message"]
        message["seq"] += 1
        for name, value in fields.items():
            message[name] = value
        self.peer.send()

    def close(self):
        self.socket.close(0)


class Raw:
    """The other end by hand."""

    def __init__(self, context, endpoint):
        self.socket = context.socket(zmq.DEALER)
        self.socket.set(zmq.LINGER, 0)
        self.socket.connect(endpoint)

    def send(self, seq, session=OTHER, t_sent=None, t_echo=0, t_held=0, **fields):
        t_sent = time.monotonic_ns() if t_sent is None else t_sent
        self.socket.send(encode_peer(told(seq, **fields), session, t_sent, t_echo, t_held))

    def receive(self, timeout_ms=20_000):
        assert self.socket.poll(timeout_ms), "nothing comes"
        peers = np.zeros(1, PEER)
        assert decode_peer(self.socket.recv(), peers) == Reject.NONE
        return peers[0]

    def close(self):
        self.socket.close(0)


@pytest.fixture
def place(short_base):
    """A context and a way to make ends and raw clients that are closed again."""

    class Place:
        endpoint = f"ipc://{short_base}/peer"
        context = zmq.Context()
        made: list = []  # noqa: RUF012

        def end(self, **how):
            self.made.append(End(self.context, self.endpoint, **how))
            return self.made[-1]

        def raw(self):
            self.made.append(Raw(self.context, self.endpoint))
            return self.made[-1]

    place = Place()
    yield place
    for one in place.made:
        one.close()
    place.context.term()


def arrive(end, what):
    """Take until this holds of what entered the tick."""
    return wait_until(lambda: what(end.take()), "it does not arrive")


def settle(end, count):
    """Take until so many messages have been judged, good or bad."""
    wait_until(lambda: end.take() is not None and end.peer.received + end.peer.rejected >= count)
    assert end.peer.received + end.peer.rejected == count


def test_a_message_enters_the_tick_as_it_was_sent(place):
    end, other = place.end(), place.raw()
    other.send(5, position=(0.1, 0.2, 0.3), wrench=2.0, energy=0.5, method=2, active=1)
    arrive(end, lambda entered: entered["fresh"])
    message = end.entered["message"]
    assert (message["session"], message["seq"], message["energy"], message["method"]) == (OTHER, 5, 0.5, 2)
    assert message["position"].tolist() == [0.1, 0.2, 0.3] and message["wrench"].tolist() == [2.0] * 6
    assert (end.entered["received"], end.entered["lost"], end.entered["way_ns"]) == (1, 0, 0)
    assert 0 <= end.entered["age_ns"] < 20_000 * MS


def test_a_message_stays_and_ages_until_a_newer_one_comes(place):
    end, other = place.end(), place.raw()
    other.send(1, energy=0.25)
    arrive(end, lambda entered: entered["fresh"])
    before = end.peer.t_received
    end.peer.take(before + 7 * MS)
    assert (end.entered["fresh"], end.entered["age_ns"], end.entered["message"]["energy"]) == (0, 7 * MS, 0.25)
    end.peer.take(before - 1)
    assert end.entered["age_ns"] == 0


def test_the_newest_of_a_tick_counts_and_gaps_are_losses(place):
    end, other = place.end(), place.raw()
    for seq in (3, 4, 9):
        other.send(seq)
    settle(end, 3)
    assert end.entered["message"]["seq"] == 9
    assert (end.entered["received"], end.entered["lost"]) == (3, 4), "what came before the first one was never missed"


def test_older_and_repeated_messages_are_dropped_and_counted(place):
    end, other = place.end(), place.raw()
    for seq in (5, 5, 4, 6):
        other.send(seq)
    settle(end, 4)
    assert (end.entered["message"]["seq"], end.entered["received"], end.entered["lost"]) == (6, 2, 0)
    assert (end.timing["peer_rejected"], end.timing["peer_reject_code"]) == (2, Reject.SEQUENCE)


def test_what_is_refused_after_a_good_one_does_not_spoil_it(place):
    end, other = place.end(), place.raw()
    other.send(5, energy=0.5)
    other.send(4, energy=0.125)
    settle(end, 2)
    assert (end.entered["message"]["seq"], end.entered["message"]["energy"]) == (5, 0.5)


def test_a_gap_of_any_size_is_survived(place):
    end, other = place.end(), place.raw()
    for session in (OTHER, OTHER + 1, OTHER + 2):
        other.send(1, session=session)
        other.send((1 << 64) - 1, session=session)
        arrive(end, lambda entered, session=session: entered["message"]["session"] == session)
        arrive(end, lambda entered: entered["message"]["seq"] == (1 << 64) - 1)
        time.sleep(1.2e-3 * STALE_MS)
    assert end.entered["lost"] == (1 << 63) - 1


def test_at_most_so_many_messages_are_read_per_tick(place):
    end, other = place.end(), place.raw()
    count = MAX_MESSAGES + 3
    for seq in range(1, count + 1):
        other.send(seq)
    wait_until(lambda: end.socket.poll(0))
    time.sleep(0.1)
    assert end.take()["received"] <= MAX_MESSAGES
    settle(end, count)


def test_a_second_end_does_not_fight_the_first(place):
    end, first, second = place.end(stale_ms=3_600_000), place.raw(), place.raw()
    first.send(1)
    arrive(end, lambda entered: entered["fresh"])
    second.send(1, session=OTHER + 1)
    second.socket.send(PEER_HELLO)
    settle(end, 3)
    assert (end.timing["peer_rejected"], end.timing["peer_reject_code"]) == (2, Reject.SECOND_PEER)
    assert end.entered["message"]["session"] == OTHER
    end.send()
    assert first.receive()["seq"] == 1
    assert not second.socket.poll(50)


def test_a_new_end_is_taken_after_the_stale_time_and_not_before(place):
    end = place.end()
    peer = end.peer
    other = place.raw()
    other.send(9)
    arrive(end, lambda entered: entered["fresh"])
    last = peer.t_received
    assert peer.judge(OTHER, 10, last) == Reject.NONE
    assert peer.judge(OTHER + 1, 1, last + STALE_MS * MS - 1) == Reject.SECOND_PEER
    assert peer.judge(OTHER + 1, 1, last + STALE_MS * MS) == Reject.NONE
    time.sleep(1.2e-3 * STALE_MS)
    other.send(1, session=OTHER + 1)
    arrive(end, lambda entered: entered["message"]["session"] == OTHER + 1)
    assert (end.entered["received"], end.entered["lost"], end.entered["message"]["seq"]) == (2, 0, 1)


def test_an_end_that_is_linked_to_itself_is_told_so(place):
    end, mirror = place.end(), place.raw()
    mirror.socket.send(PEER_HELLO)
    wait_until(lambda: end.take() is not None and end.peer._identity)
    end.send()
    wait_until(lambda: mirror.socket.poll(0))
    mirror.socket.send(mirror.socket.recv())
    settle(end, 1)
    assert end.timing["peer_reject_code"] == Reject.OWN_MESSAGE and end.entered["message"]["session"] == 0


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda good: [good, b""], Reject.MALFORMED),
        (lambda good: [good] + [b"x"] * (3 * MAX_FRAMES), Reject.MALFORMED),
        (lambda good: [b""], Reject.MALFORMED),
        (lambda good: [good[:-1]], Reject.MALFORMED),
        (lambda good: [good[:1] + b"\2" + good[2:]], Reject.VERSION),
        (lambda good: [encode_sample(5, 1, 1, (0.0, 0.0, 0.0))], Reject.KIND),
        (lambda good: [PEER_HELLO + b"\0"], Reject.KIND),
        (lambda good: [struct.pack("<8s", good[:8]) + struct.pack("<Q", 0) + good[16:]], Reject.OUT_OF_RANGE),
    ],
)
def test_what_breaks_the_protocol_is_counted_and_changes_nothing(place, spoil, code):
    end, other = place.end(), place.raw()
    other.socket.send_multipart(spoil(encode_peer(told(1), OTHER, 1)))
    other.send(1, session=OTHER + 1)
    settle(end, 2)
    assert (end.timing["peer_rejected"], end.timing["peer_reject_code"]) == (1, code)
    assert end.entered["message"]["session"] == OTHER + 1


def test_one_that_sends_too_much_is_disconnected_and_others_are_not(place):
    end, loud, other = place.end(), place.raw(), place.raw()
    loud.socket.send(bytes(1 << 16))
    other.send(1)
    settle(end, 1)
    assert end.peer.rejected == 0


def test_session_and_times_are_stamped_on_the_bytes_alone(place):
    end, other = place.end(), place.raw()
    before = time.monotonic_ns()
    other.send(3, t_sent=123_456)
    arrive(end, lambda entered: entered["fresh"])
    held_from = end.peer.t_received
    time.sleep(0.02)
    end.send(energy=0.75, active=1)
    message = other.receive()
    after = time.monotonic_ns()
    assert message["session"] == end.peer.own_session and 0 < message["session"] < 1 << 63
    assert before < message["t_sent"] < after
    assert message["t_echo"] == 123_456
    assert message["t_held"] == message["t_sent"] - held_from >= 20 * MS
    assert (message["seq"], message["energy"], message["active"]) == (1, 0.75, 1)
    kept = end.record[0]["output"]["link"]["message"]
    assert [kept[name] for name in ("session", "t_sent", "t_echo", "t_held")] == [0, 0, 0, 0]


def test_sessions_are_random_per_start(place):
    end = place.end()
    others = [Peer(end.socket, end.record, np.zeros(1, LINK_SETTINGS)).own_session for _ in range(50)]
    assert len({end.peer.own_session, *others}) == 51


def test_the_way_there_and_back_is_what_the_echo_tells(place):
    """The other end got a message after some time and held it for some more; the rest of the time it was under way."""
    end, other = place.end(), place.raw()
    other.send(1)
    arrive(end, lambda entered: entered["fresh"])
    assert end.entered["way_ns"] == 0
    end.send()
    sent = int(other.receive()["t_sent"])
    time.sleep(0.05)
    other.send(2, t_echo=sent, t_held=30 * MS)
    arrive(end, lambda entered: entered["message"]["seq"] == 2)
    assert end.entered["way_ns"] == end.peer.t_received - sent - 30 * MS
    assert end.entered["way_ns"] >= 20 * MS
    for seq, (echo, held) in enumerate(((0, 0), (sent, 1 << 61), (sent - 1, 0)), 3):
        other.send(seq, t_echo=echo, t_held=held)
        arrive(end, lambda entered, seq=seq: entered["message"]["seq"] == seq)
        assert end.entered["way_ns"] == 0, "no echo, one that cannot be, and one of another start"


def test_a_hello_tells_where_to_send(place):
    end, relay = place.end(), place.raw()
    end.send()
    assert end.peer.dropped == 0, "nobody is no loss"
    relay.socket.send(PEER_HELLO)
    wait_until(lambda: end.take() is not None and end.peer._identity)
    end.send()
    assert relay.receive()["seq"] == 2
    assert (end.entered["received"], end.peer.rejected) == (0, 0)


def test_answers_go_to_where_the_newest_message_came_from(place):
    end, one, other = place.end(), place.raw(), place.raw()
    for number, socket in enumerate(itertools.islice(itertools.cycle((one, other)), 6), 1):
        socket.send(number)
        arrive(end, lambda entered, number=number: entered["message"]["seq"] == number)
        end.send()
        assert socket.receive()["seq"] == number


def test_one_who_does_not_read_costs_messages_and_no_time(place):
    end, other = place.end(), place.raw()
    other.send(1)
    arrive(end, lambda entered: entered["fresh"])
    wait_until(lambda: end.send() or end.peer.dropped > 3 * QUEUED, meanwhile=lambda: None)
    assert end.timing["peer_dropped"] == end.peer.dropped
    longest = 0
    for _ in range(100):
        began = time.monotonic_ns()
        end.send()
        longest = max(longest, time.monotonic_ns() - began)
    assert longest < 1000 * MS, "it waits"


def test_one_who_has_gone_is_a_drop(place):
    end, other = place.end(), place.raw()
    other.send(1)
    arrive(end, lambda entered: entered["fresh"])
    other.close()
    wait_until(lambda: end.send() or end.peer.dropped)


def test_one_of_two_ends_decides_and_it_is_the_one_with_the_larger_session(place):
    end, raw = place.end(), place.raw()
    assert end.entered["decides"] == 0
    for session, decides in ((end.peer.own_session - 1, 1), (end.peer.own_session + 1, 0)):
        end.peer.session = 0  # as after a silence
        raw.send(1, session=session)
        wait_until(lambda session=session: end.take()["message"]["session"] == session)
        assert end.entered["decides"] == decides


def test_two_ends_talk_without_anybody_between(place):
    waiting, connected = place.end(), place.end(connect=place.endpoint)

    def exchange():
        for end in (waiting, connected):
            end.take()
            end.send()

    wait_until(lambda: waiting.peer.received > 20 and connected.peer.received > 20, meanwhile=exchange)
    assert waiting.entered["message"]["session"] == connected.peer.own_session
    assert connected.entered["message"]["session"] == waiting.peer.own_session
    assert waiting.entered["way_ns"] > 0 and connected.entered["way_ns"] > 0


def test_nothing_old_waits_for_an_end_that_comes_up(place):
    connected = place.end(connect=place.endpoint)
    for _ in range(500):
        connected.send()
    assert connected.peer.dropped == 500
    waiting = place.end()
    wait_until(lambda: waiting.take()["fresh"], meanwhile=connected.send)
    assert waiting.entered["message"]["seq"] > 500


def test_the_peer_socket_is_guarded_as_the_others_are(short_base):
    """Nobody answers ZeroMQ's questions here, so nobody gets in: with keys there is no way round the judge."""
    server, own = keys.new_pair(), keys.new_pair()
    context = zmq.Context()
    guarded = open_peer(context, "tcp://127.0.0.1:*", server)
    endpoint = guarded.get(zmq.LAST_ENDPOINT).decode()
    connected = open_peer(context, "", connect=endpoint, connect_keys=ClientKeys(server.public, own))
    for _ in range(20):
        with pytest.raises(zmq.Again):
            connected.send(PEER_HELLO, zmq.NOBLOCK)
        time.sleep(0.01)
    assert not guarded.poll(0)
    guarded.close(0)
    connected.close(0)
    context.term()


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:5554", "tcp://0.0.0.0:5554", "udp://x"])
def test_without_keys_it_listens_on_this_machine_alone(address):
    context = zmq.Context()
    with pytest.raises(RuntimeError, match="refused to bind"):
        open_peer(context, address)
    context.term()
