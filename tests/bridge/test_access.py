"""Guarded sockets: a judge in one context, a socket in another that asks it, and clients with all kinds of keys."""

import contextlib
import itertools
import socket as sockets
import threading

import pytest
import zmq
from handshakes import HANDSHAKE_FAILED
from waiting import wait_until

from bridge import keys
from bridge.access import Judge, Question, ask_judge, bind, read_question
from bridge.client import HapticdError, NoDaemonError, find_keys
from bridge.control import listen
from bridge.keys import LOCAL, ClientKeys
from bridge.runtime import AddressRefused, RuntimeDirectory, reachable

DEADLINE_S = 60.0


class Guarded:
    """One echoing socket on loopback, guarded, whose questions go to a judge elsewhere."""

    def __init__(self, folder, with_judge=True):
        self.folder = folder
        self.server = keys.make_pair(folder, "server")
        self.local = keys.new_pair()
        self.allowed = folder / "allowed"
        keys.write_allowed(self.allowed, {})
        self.contexts = [zmq.Context() for _ in range(3)]
        address = f"ipc://{folder}/judge"
        self.judge = Judge(self.contexts[0], address, self.allowed, self.local.public) if with_judge else None
        if with_judge:
            ask_judge(self.contexts[1], address)
        self.socket = self.contexts[1].socket(zmq.ROUTER)
        self.socket.set(zmq.LINGER, 0)
        bind(self.socket, "tcp://127.0.0.1:*", self.server, "device")
        self.endpoint = self.socket.last_endpoint.decode()
        self.sockets: list[zmq.Socket] = []

    def client(self, own=None, server=None):
        """A connected DEALER that has sent one message, and its monitor."""
        socket = self.contexts[2].socket(zmq.DEALER)
        socket.set(zmq.LINGER, 0)
        monitor = socket.get_monitor_socket(HANDSHAKE_FAILED)
        if own is not None:
            ClientKeys(self.server.public if server is None else server, own).use(socket)
        socket.connect(self.endpoint)
        socket.send(b"hello")
        self.sockets += [monitor, socket]
        return socket, monitor

    def until(self, done):
        """Serve judge and socket until a condition holds."""

        def serve():
            if self.judge is not None:
                self.judge.step()
            if self.socket.poll(2):
                self.socket.send_multipart(self.socket.recv_multipart())

        wait_until(done, meanwhile=serve, seconds=DEADLINE_S)

    def gets_in(self, own, **how):
        """Wait until a client has its echo."""
        socket, _ = self.client(own, **how)
        self.until(lambda: socket.poll(0))
        assert socket.recv() == b"hello"
        return socket

    def is_refused(self, own, **how):
        """Wait until a client's handshake has failed; nothing may have come to it."""
        socket, monitor = self.client(own, **how)
        self.until(lambda: monitor.poll(0))
        assert not socket.poll(0)
        socket.disable_monitor()
        socket.close()

    def close(self):
        for socket in [*self.sockets, self.socket]:
            if not socket.closed:
                socket.close(0)
        if self.judge is not None:
            self.judge.close()
        for context in self.contexts:
            context.term()


@pytest.fixture
def guarded(short_base):
    made = Guarded(short_base / "k")
    yield made
    made.close()


def test_listed_keys_and_the_users_own_get_in_and_nobody_else(guarded):
    alice, stranger = keys.new_pair(), keys.new_pair()
    keys.allow(guarded.allowed, "alice", alice.public)
    inside = guarded.gets_in(alice)
    guarded.gets_in(guarded.local)
    assert guarded.judge.refused == 0
    guarded.is_refused(stranger)
    refused = guarded.judge.refused
    assert refused >= 1
    assert keys.fingerprint(stranger.public) in guarded.judge.last_refusal
    guarded.is_refused(alice, server=keys.new_pair().public)
    guarded.is_refused(None)
    inside.send(b"still here")
    guarded.until(lambda: inside.poll(0))
    assert inside.recv() == b"still here"


def test_the_list_counts_from_the_next_handshake_on(guarded):
    alice = keys.new_pair()
    guarded.is_refused(alice)
    keys.allow(guarded.allowed, "alice", alice.public)
    inside = guarded.gets_in(alice)
    keys.revoke(guarded.allowed, "alice")
    guarded.is_refused(alice)
    inside.send(b"open before")
    guarded.until(lambda: inside.poll(0))


def test_a_list_that_cannot_be_trusted_lets_only_the_own_user_in(guarded):
    alice = keys.new_pair()
    keys.allow(guarded.allowed, "alice", alice.public)
    for spoil, said in (
        (lambda: guarded.allowed.chmod(0o666), "written by others"),
        (lambda: (guarded.allowed.chmod(0o600), guarded.allowed.write_text("nonsense\n")), "line 1"),
        (guarded.allowed.unlink, "does not exist"),
    ):
        spoil()
        guarded.is_refused(alice)
        assert said in guarded.judge.last_refusal
        guarded.gets_in(guarded.local)
    keys.allow(guarded.allowed, "alice", alice.public)
    guarded.gets_in(alice)


def test_without_a_judge_nobody_gets_in(short_base):
    guarded = Guarded(short_base / "k", with_judge=False)
    try:
        guarded.is_refused(guarded.local)
    finally:
        guarded.close()


def test_the_thread_that_passes_questions_on_ends_with_its_context(guarded):
    thread = next(thread for thread in threading.enumerate() if thread.name == "zap")
    guarded.gets_in(guarded.local)
    guarded.socket.close(0)
    guarded.contexts[1].term()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


def test_peers_without_a_question_are_counted_at_a_watched_socket(short_base):
    folder = short_base / "k"
    server = keys.make_pair(folder, "server")
    keys.write_allowed(folder / "allowed", {})
    context, other = zmq.Context(), zmq.Context()
    judge = Judge(context, f"ipc://{folder}/judge", folder / "allowed", keys.new_pair().public)
    socket = listen(context, "tcp://127.0.0.1:*", server)
    judge.watch(socket)
    plain = other.socket(zmq.DEALER)
    plain.set(zmq.LINGER, 0)
    plain.connect(socket.last_endpoint.decode())
    wait_until(lambda: judge.refused, meanwhile=lambda: (judge.step(), socket.poll(2)), seconds=DEADLINE_S)
    assert "showed no key" in judge.last_refusal
    plain.close()
    socket.disable_monitor()
    judge.close()
    socket.close()
    context.term()
    other.term()


def test_many_failures_that_nobody_looks_at_do_not_stop_the_socket(short_base):
    """ZeroMQ's queue of such news holds 1000 by default, and its thread waits when it is full."""
    folder = short_base / "k"
    server, local = keys.make_pair(folder, "server"), keys.new_pair()
    keys.write_allowed(folder / "allowed", {})
    context, other = zmq.Context(), zmq.Context()
    judge = Judge(context, f"ipc://{folder}/judge", folder / "allowed", local.public)
    socket = listen(context, "tcp://127.0.0.1:*", server)
    judge.watch(socket)
    endpoint = socket.last_endpoint.decode()
    port = int(endpoint.rpartition(":")[2])
    for _ in range(2500):
        with sockets.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(49))
            raw.settimeout(DEADLINE_S)
            with contextlib.suppress(ConnectionResetError):
                while raw.recv(4096):  # until it is closed on the other side
                    pass
    client = other.socket(zmq.DEALER)
    client.set(zmq.LINGER, 0)
    ClientKeys(server.public, local).use(client)
    client.connect(endpoint)
    client.send(b"hello")
    wait_until(lambda: socket.poll(2) and judge.refused >= 2500, meanwhile=judge.step, seconds=DEADLINE_S)
    assert socket.recv_multipart()[1] == b"hello"
    assert judge.refused >= 2500
    client.close()
    socket.disable_monitor()
    judge.close()
    socket.close()
    context.term()
    other.term()


def test_questions_of_any_other_form_get_no_yes(short_base):
    folder = short_base / "k"
    keys.write_allowed(folder / "allowed", {})
    local = keys.new_pair()
    context = zmq.Context()
    judge = Judge(context, f"ipc://{folder}/judge", folder / "allowed", local.public)
    from zmq.utils import z85

    good = [b"1.0", b"7", b"device", b"127.0.0.1", b"", b"CURVE", z85.decode(local.public)]
    question = read_question(good)
    assert question == Question(b"7", "device", "127.0.0.1", local.public)
    assert judge.answer(question) == [b"1.0", b"7", b"200", b"OK", LOCAL.encode(), b""]
    for place, wrong in itertools.product(range(len(good)), (b"", b"x", b"\xff" * 32, None)):
        frames = [frame for at, frame in enumerate(good) if at != place or wrong is not None]
        if wrong is not None:
            frames[place] = wrong
        asked = read_question(frames)
        if place in (0, 5, 6) or wrong is None:
            assert asked is None or judge.answer(asked)[2] == b"400", (place, wrong)
    judge.close()
    context.term()


def test_addresses_need_keys_or_loopback():
    with zmq.Context() as context, context.socket(zmq.ROUTER) as socket:
        with pytest.raises(AddressRefused, match="hapticd keys"):
            bind(socket, "tcp://0.0.0.0:5999")
        with pytest.raises(AddressRefused, match="IP address"):
            bind(socket, "tcp://example.org:5999", keys.new_pair())
        with pytest.raises(AddressRefused):
            bind(socket, "udp://0.0.0.0:5999", keys.new_pair())


def test_an_address_that_stands_for_all_is_reached_by_the_one_that_was_used():
    assert reachable("tcp://0.0.0.0:5550", "10.0.0.2") == "tcp://10.0.0.2:5550"
    assert reachable("tcp://[::]:5550", "[fe80::1]") == "tcp://[fe80::1]:5550"
    assert reachable("tcp://192.168.1.2:5550", "10.0.0.2") == "tcp://192.168.1.2:5550"
    assert reachable("ipc:///tmp/x") == "ipc:///tmp/x"


def test_a_client_finds_its_keys_or_says_what_is_missing(short_base, monkeypatch):
    for name in ("HAPTICD_SERVER_KEY", "HAPTICD_CLIENT_KEYS"):
        monkeypatch.delenv(name, raising=False)
    folder = short_base / "k"
    server, own = keys.make_pair(folder, "server"), keys.make_pair(folder, "own")
    address, secret = "tcp://127.0.0.1:1", folder / "own.key_secret"
    wanted = ClientKeys(server.public, own)
    assert find_keys(address) is None and find_keys("default") is None
    assert find_keys(address, folder / "server.key", secret) == wanted
    assert find_keys(address, server.public.decode(), own) == wanted
    with pytest.raises(HapticdError, match=r"own key file is missing.*\[keys\]"):
        find_keys(address, server.public)
    with pytest.raises(HapticdError, match="public key is missing"):
        find_keys(address, keys=secret)
    monkeypatch.setenv("HAPTICD_SERVER_KEY", str(folder / "server.key"))
    monkeypatch.setenv("HAPTICD_CLIENT_KEYS", str(secret))
    assert find_keys(address) == wanted
    assert find_keys("default") is None, "a daemon found by its name leaves its own keys"
    secret.chmod(0o644)
    with pytest.raises(HapticdError, match="can be read by others"):
        find_keys(address)
    runtime = RuntimeDirectory("one").create()
    keys.write_pair(runtime.local_keys_path, LOCAL, own)
    runtime.write_endpoints({"device": address}, server.public.decode())
    assert find_keys("one") == wanted


def test_a_client_is_told_that_its_keys_may_be_wrong(guarded):
    """The guarded socket stands for a control socket that answers nobody."""
    from bridge.client import Client

    done = threading.Event()

    def serve():
        while not done.is_set():
            guarded.judge.step()
            done.wait(0.002)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        stranger, other = keys.new_pair(), keys.new_pair().public
        for given, said in (
            (
                {"server_key": guarded.server.public, "keys": stranger},
                "it refuses the key " + keys.fingerprint(stranger.public),
            ),
            ({"server_key": other, "keys": guarded.local}, "the keys may be wrong"),
            ({}, "it may ask for keys"),
        ):
            with pytest.raises(NoDaemonError, match=said):
                Client(guarded.endpoint, timeout_ms=2000, **given)
    finally:
        done.set()
        thread.join()
