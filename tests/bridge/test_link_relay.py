"""The relay between two peer sockets: what it loses, how long it takes, and that it outlives its ends."""

import contextlib
import json
import math
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zmq
from command_line import ROOT, environment
from waiting import wait_until

from bridge import keys
from bridge.client import HapticdError
from bridge.link_relay import GREET_NS, Direction, Line, LinkRelay, Losses, RelayEnd, Report, Ways, find_peer
from bridge.peer_socket import Peer, open_peer
from bridge.schema import Reject
from bridge.wire import PEER_HELLO, decode_peer, encode_peer
from haptics.tables import LINK_SETTINGS, PEER, RECORD

MS = 1_000_000
SESSIONS = (4711, 4712)


def message(seq: int, session: int = SESSIONS[0], t_sent: int = 1, t_echo: int = 0, t_held: int = 0) -> bytes:
    peers = np.zeros(1, PEER)
    peers["seq"] = seq
    peers["orientation"] = peers["offset_orientation"] = (0.0, 0.0, 0.0, 1.0)
    return encode_peer(peers, session, t_sent, t_echo, t_held)


def lost_by(line: Line, count: int, direction: str = "a to b") -> np.ndarray:
    losses = Losses(line, direction)
    return np.array([losses.next() for _ in range(count)])


# -- losses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [0.01, 0.1, 0.5, 0.9])
def test_the_share_that_is_lost_is_the_one_asked_for(loss):
    """Each for itself: within four standard deviations of a binomial distribution."""
    count = 40_000
    lost = lost_by(Line(loss=loss, seed=3), count)
    assert abs(lost.sum() - count * loss) < 4.0 * math.sqrt(count * loss * (1.0 - loss))
    # And one after another they are independent: pairs of losses are as frequent as that makes them.
    pairs = (lost[1:] & lost[:-1]).sum()
    assert abs(pairs - count * loss**2) < 5.0 * math.sqrt(count * loss**2 * (1.0 + 2.0 * loss))


@pytest.mark.parametrize(("loss", "burst"), [(0.05, 4.0), (0.2, 10.0), (0.5, 2.0), (0.6, 1.5)])
def test_losses_in_bursts_have_the_share_and_the_mean_length_asked_for(loss, burst):
    count = 200_000
    lost = lost_by(Line(loss=loss, burst=burst, seed=5), count)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], lost, [False]]).astype(int)))
    lengths = (edges[1::2] - edges[::2]).astype(float)
    # Lengths are geometric: mean b, variance b (b - 1).
    assert abs(lengths.mean() - burst) < 4.0 * math.sqrt(burst * (burst - 1.0) / len(lengths))
    # A chain with the correlation r from one to the next spreads (1 + r) / (1 - r) times as wide as independent ones.
    r = 1.0 - 1.0 / burst - loss / burst / (1.0 - loss)
    spread = math.sqrt(count * loss * (1.0 - loss) * (1.0 + r) / (1.0 - r))
    assert abs(lost.sum() - count * loss) < 4.0 * spread


def test_nothing_and_everything_can_be_lost():
    assert not lost_by(Line(), 1000).any() and not lost_by(Line(burst=3.0), 1000).any()
    assert lost_by(Line(loss=1.0), 1000).all() and lost_by(Line(loss=1.0, burst=3.0), 1000).all()


def test_a_seed_loses_the_same_ones_whatever_the_delay():
    one = lost_by(Line(loss=0.3, seed=7), 500)
    assert (one == lost_by(Line(loss=0.3, seed=7, delay_ms=50.0, jitter_ms=9.0), 500)).all()
    assert (one != lost_by(Line(loss=0.3, seed=8), 500)).any()
    assert (one != lost_by(Line(loss=0.3, seed=7), 500, "b to a")).any()
    plain, shaken = (Direction(Line(loss=0.3, seed=7, jitter_ms=j), "a to b") for j in (0.0, 5.0))
    assert [plain.due(0) is None for _ in range(500)] == [shaken.due(0) is None for _ in range(500)] == one.tolist()


def test_delay_and_jitter_are_within_their_bounds():
    direction = Direction(Line(delay_ms=20.0, jitter_ms=5.0, seed=1), "a to b")
    waits = np.array([direction.due(1000) for _ in range(20_000)]) - 1000
    assert waits.min() >= 20 * MS and waits.max() <= 25 * MS
    assert abs(waits.mean() - 22.5 * MS) < 4.0 * 5.0 * MS / math.sqrt(12.0 * len(waits))
    assert Direction(Line(delay_ms=1.5), "a to b").due(7) == 1_500_007


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"delay_ms": -1.0}, "--delay -1"),
        ({"jitter_ms": math.nan}, "--jitter nan"),
        ({"loss": 1.5}, "--loss 150"),
        ({"burst": 0.0}, "--burst 0"),
        ({"loss": 0.9, "burst": 5.0}, "rows of 9 at least"),
    ],
)
def test_a_line_that_cannot_be_is_refused(how, said):
    with pytest.raises(ValueError, match=said):
        Line(**how)


# -- ways --------------------------------------------------------------------------------------------------------------


def test_the_way_there_and_back_adds_up_from_both_halves():
    """A's clock is at 1 s and B's at 5 s when the relay's is at 0. To A it takes 3 ms, to B 4 ms, and 10 between."""
    ways = Ways()
    ways.see(0, message(1, t_sent=1000 * MS), 3 * MS)
    assert ways.newest_ns is None
    # B gets it at 3 + 10 + 4, holds it for 6, and its answer is here after another 4.
    ways.see(1, message(1, t_sent=5023 * MS, t_echo=1000 * MS, t_held=6 * MS), 27 * MS)
    assert ways.newest_ns is None
    # A gets that at 27 + 10 + 3, holds it for 2, and its answer is here after another 3.
    ways.see(0, message(2, t_sent=1042 * MS, t_echo=5023 * MS, t_held=2 * MS), 45 * MS)
    assert ways.newest_ns == (10 + 4 + 4) * MS + (10 + 3 + 3) * MS
    assert ways.facts() == {"p50": 34.0, "p99": 34.0, "largest": 34.0}


def test_echoes_that_cannot_be_are_not_believed():
    ways = Ways()
    ways.see(0, message(1, t_sent=1000), 100)
    for echo, held in ((999, 0), (1000, 101), (0, 0)):
        ways.see(1, message(1, t_echo=echo, t_held=held), 200)
    for junk in (b"", PEER_HELLO, bytes(300), b"\xc1\x01\x03" + bytes(400)):
        ways.see(1, junk, 200)
    assert ways._half == [None, None] and ways.facts() is None


# -- with real sockets -------------------------------------------------------------------------------------------------


class Waiting:
    """A daemon's peer socket by hand: a ROUTER, and to whom it answers."""

    def __init__(self, context, endpoint):
        self.socket = open_peer(context, endpoint)
        self.identity = b""
        self.hellos = 0

    def hear(self, timeout_ms=0):
        """The next peer message, None when none comes; hellos tell where to send."""
        while self.socket.poll(timeout_ms):
            self.identity, raw = self.socket.recv_multipart()
            if raw != PEER_HELLO:
                peers = np.zeros(1, PEER)
                assert decode_peer(raw, peers) == Reject.NONE
                return peers[0]
            self.hellos += 1
        return None

    def met(self):
        wait_until(lambda: self.hear() is not None or self.identity)

    def send(self, seq, **fields):
        """One message, as soon as the queue has room for it: a relay that stands still fills it."""

        def sent():
            with contextlib.suppress(zmq.Again):
                self.socket.send_multipart([self.identity, message(seq, **fields)], zmq.NOBLOCK)
                return True

        wait_until(sent, "the relay takes nothing")


class Bench:
    """Two peer sockets and a relay between them, in a thread."""

    def __init__(self, base, line):
        self.context = zmq.Context()
        self.addresses = [f"ipc://{base}/{name}" for name in "ab"]
        self.ends = [Waiting(self.context, address) for address in self.addresses]
        self.relay_ends = tuple(
            RelayEnd(self.context, name, address, None) for name, address in zip("AB", self.addresses, strict=True)
        )
        self.relay = LinkRelay(self.relay_ends, line)
        self.lines = []
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        report = Report(self.relay, 0.1)
        self.relay.run(None, lambda: self.lines.append(report.line()), 0.1)

    def meet(self):
        for end in self.ends:
            end.met()
        return self

    def close(self):
        self.relay.stop.set()
        self.thread.join(10)
        assert not self.thread.is_alive(), "the relay does not end"
        for end in self.ends:
            end.socket.close(0)
        for end in self.relay_ends:
            end.close()
        self.context.term()


@pytest.fixture
def bench_of(short_base):
    made = []

    def make(**line):
        made.append(Bench(short_base, Line(**line)))
        return made[-1].meet()

    yield make
    for bench in made:
        bench.close()


def hear_all(end, quiet_ms=500):
    """Numbers of all messages that come, until nothing has come for a while."""
    numbers = []
    while (heard := end.hear(quiet_ms)) is not None:
        numbers.append(int(heard["seq"]))
    return numbers


def send_paced(end, count, **fields):
    """Numbers 1 to count, slowly enough for no queue to fill."""
    for seq in range(1, count + 1):
        end.send(seq, **fields)
        if seq % 8 == 0:
            time.sleep(0.001)


def test_messages_go_both_ways_unchanged_and_in_order(bench_of):
    bench = bench_of()
    a, b = bench.ends
    send_paced(a, 200, session=SESSIONS[0])
    assert hear_so_many(b, 200) == list(range(1, 201))
    b.send(5, session=SESSIONS[1], t_sent=77, t_echo=66, t_held=55)
    heard = a.hear(20_000)
    assert [int(heard[name]) for name in ("session", "seq", "t_sent", "t_echo", "t_held")] == [
        SESSIONS[1],
        5,
        77,
        66,
        55,
    ]


def hear_so_many(end, count):
    """Numbers of so many messages."""
    numbers = []
    wait_until(lambda: len(numbers) == count, meanwhile=lambda: numbers.extend(hear_all(end, 5)))
    return numbers


def test_exactly_the_losses_of_the_seed_are_lost(bench_of):
    line = {"loss": 0.3, "burst": 3.0, "seed": 11}
    bench = bench_of(**line)
    expected = [seq for seq, lost in enumerate(lost_by(Line(**line), 400), 1) if not lost]
    back = [seq for seq, lost in enumerate(lost_by(Line(**line), 400, "b to a"), 1) if not lost]
    heard: list[list[int]] = [[], []]
    for start in range(1, 401, 10):
        for seq in range(start, start + 10):
            bench.ends[0].send(seq)
            bench.ends[1].send(seq)
        time.sleep(0.002)
        for k, end in enumerate(bench.ends):
            heard[k] += hear_all(end, 1)
    wait_until(
        lambda: heard == [back, expected],
        f"{heard}",
        meanwhile=lambda: [heard[k].extend(hear_all(end, 5)) for k, end in enumerate(bench.ends)],
    )
    for k, arrived in enumerate((expected, back)):
        facts = bench.relay.directions[k].facts()
        assert (facts["received"], facts["lost"], facts["passed"]) == (400, 400 - len(arrived), len(arrived))
        assert facts["dropped"] == 0


def test_a_delay_is_kept_and_hardly_more(bench_of):
    bench = bench_of(delay_ms=30.0)
    took = []
    for seq in range(1, 101):
        sent = time.monotonic_ns()
        bench.ends[0].send(seq)
        bench.ends[1].hear(20_000)
        took.append(time.monotonic_ns() - sent)
        time.sleep(0.001)
    assert min(took) >= 30 * MS
    assert np.median(took) < 33 * MS
    late = bench.relay.directions[0].late_ns
    assert min(late) >= 0, "nothing goes out early"
    assert np.median(late) < 0.5 * MS


def test_jitter_lets_messages_overtake_each_other(bench_of):
    bench = bench_of(delay_ms=5.0, jitter_ms=20.0, seed=2)
    a, b = bench.ends
    for seq in range(1, 101):
        a.send(seq)
        time.sleep(0.0005)
    numbers = hear_so_many(b, 100)
    assert sorted(numbers) == list(range(1, 101)) and numbers != sorted(numbers)


def test_an_end_that_hears_nothing_is_greeted_until_it_speaks(bench_of):
    bench = bench_of()
    a = bench.ends[0]
    wait_until(lambda: a.hear() is None and a.hellos >= 3)
    speaking = time.monotonic() + 6e-9 * GREET_NS
    heard = 0
    before = a.hellos
    while time.monotonic() < speaking:
        a.send(1)
        a.hear()
        heard += 1
        time.sleep(0.005)
    assert a.hellos - before <= 2 and heard > 20
    wait_until(lambda: a.hear() is None and a.hellos >= before + 4)


def test_it_outlives_an_end_and_serves_its_successor(bench_of):
    bench = bench_of(delay_ms=5.0)
    a, b = bench.ends
    a.send(1)
    assert b.hear(20_000)["seq"] == 1
    b.socket.close(0)
    direction = bench.relay.directions[0]
    numbers = iter(range(2, 10**9))

    def talk():
        a.send(next(numbers))
        a.hear()
        time.sleep(0.001)

    wait_until(lambda: direction.dropped > 100, "it hands messages to nobody", meanwhile=talk)
    successor = bench.ends[1] = Waiting(bench.context, bench.addresses[1])
    heard = wait_until(successor.hear, meanwhile=talk)
    assert heard["seq"] > 100, "nothing old waited for it"
    successor.met()
    successor.send(9, session=SESSIONS[1])
    assert wait_until(a.hear)["seq"] == 9


def test_the_line_tells_rates_losses_and_the_way(bench_of):
    bench = bench_of(loss=1.0)
    wait_until(lambda: any("lost" in line and "unknown" in line for line in bench.lines))
    send_paced(bench.ends[0], 20)
    told = [r"A -> B +(\d+)/s, lost +(\d+) ", r"B -> A +0/s, lost +0 "]
    wait_until(lambda: sum(int(re.search(told[0], line)[2]) for line in list(bench.lines)) == 20)
    rates = [int(re.search(told[0], line)[1]) for line in bench.lines]
    assert sum(rates) == 200, "20 messages, told as rates over tenths of a second"
    assert all(re.search(told[1], line) for line in bench.lines)


def test_ends_and_relay_agree_on_the_way(short_base):
    """Two servo sides that talk every ms: each finds the same way there and back, of the two delays and some more."""
    context = zmq.Context()
    addresses = [f"ipc://{short_base}/{name}" for name in "ab"]
    settings = np.zeros(1, LINK_SETTINGS)
    settings["stale_after_ns"] = 10_000 * MS
    sockets = [open_peer(context, address) for address in addresses]
    records = [np.zeros(1, RECORD) for _ in addresses]
    for record in records:
        for name in ("orientation", "offset_orientation"):
            record["output"]["link"]["message"][name][:, 3] = 1.0
    peers = [Peer(socket, record, settings) for socket, record in zip(sockets, records, strict=True)]
    relay_ends = tuple(RelayEnd(context, name, address, None) for name, address in zip("AB", addresses, strict=True))
    relay = LinkRelay(relay_ends, Line(delay_ms=20.0))
    thread = threading.Thread(target=relay.run)
    thread.start()

    def tick():
        for peer, record in zip(peers, records, strict=True):
            peer.take(time.monotonic_ns())
            record["output"]["link"]["message"]["seq"] += 1
            peer.send()
        time.sleep(0.001)

    try:
        wait_until(lambda: len(relay.ways.ways_ns) > 300, meanwhile=tick)
        ways = [relay.ways.newest_ns, *(int(record["input"]["peer"]["way_ns"][0]) for record in records)]
        assert all(40 * MS <= way < 60 * MS for way in ways), ways
        assert [peer.lost for peer in peers] == [0, 0] and [peer.rejected for peer in peers] == [0, 0]
        assert peers[0].session == peers[1].own_session and peers[1].session == peers[0].own_session
    finally:
        relay.stop.set()
        thread.join(10)
        for socket in sockets:
            socket.close(0)
        for end in relay_ends:
            end.close()
        context.term()


# -- keys, names and processes -----------------------------------------------------------------------------------------


def test_an_end_that_asks_for_keys_says_so(short_base):
    server, own = keys.new_pair(), keys.new_pair()
    context = zmq.Context()
    guarded = open_peer(context, "tcp://127.0.0.1:*", server)
    address = guarded.get(zmq.LAST_ENDPOINT).decode()
    for its, said in ((None, "asks for keys"), (keys.ClientKeys(own.public, own), "may not be its key")):
        ends = (RelayEnd(context, "A", address, its), RelayEnd(context, "B", f"ipc://{short_base}/b", None))
        with pytest.raises(HapticdError, match=said) as caught:
            LinkRelay(ends, Line()).run(20.0)
        assert caught.value.code == "keys"
        for end in ends:
            end.close()
    guarded.close(0)
    context.term()


def test_a_daemon_without_a_peer_socket_is_told_apart(short_base):
    from bridge.config import Link
    from bridge.runtime import RuntimeDirectory

    runtime = RuntimeDirectory("left").create()
    with runtime.lock():
        runtime.write_endpoints(runtime.endpoints())
        with pytest.raises(HapticdError, match="`left` has no peer socket: its configuration needs a table \\[link\\]"):
            find_peer("left")
        runtime.write_endpoints(runtime.endpoints(None, link=Link()))
        assert find_peer("left") == ("`left`", runtime.ipc("peer"), None)
    assert find_peer("ipc:///tmp/x") == ("the end", "ipc:///tmp/x", None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_process_of_it_ends_cleanly_and_sums_up(short_base, number):
    context = zmq.Context()
    addresses = [f"ipc://{short_base}/{name}" for name in "ab"]
    ends = [Waiting(context, address) for address in addresses]
    how = ["--loss", "50", "--seed", "4", "--delay", "1", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bridge.cli", "link", *addresses, *how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(short_base),
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # also where these tests run under nohup
    )
    try:
        for end in ends:
            end.met()
        expected = [seq for seq, lost in enumerate(lost_by(Line(loss=0.5, seed=4), 100), 1) if not lost]
        send_paced(ends[0], 100)
        assert hear_so_many(ends[1], len(expected)) == expected
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for end in ends:
            end.socket.close(0)
        context.term()
    assert (process.returncode, err) == (0, "")
    summary = json.loads(out)
    assert (summary["a"], summary["b"], summary["loss"], summary["seed"]) == (*addresses, 0.5, 4)
    assert summary["a_to_b"]["received"] == 100 and summary["a_to_b"]["lost"] == 100 - len(expected)
    assert summary["way_ms"] is None and summary["seconds"] > 0.0


def test_a_duration_ends_it_and_lines_are_printed(short_base):
    done = subprocess.run(
        [sys.executable, "-m", "bridge.cli", "link", f"ipc://{short_base}/a", f"ipc://{short_base}/b"]
        + ["--duration", "0.5", "--rate-report", "0.1"],
        capture_output=True,
        text=True,
        env=environment(short_base),
        cwd=ROOT,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert sum("way there and back unknown" in line for line in lines) >= 2
    assert lines[-2].startswith("A -> B: 0 messages") and lines[-1].startswith("B -> A: 0 messages")
