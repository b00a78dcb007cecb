"""A real daemon on loopback with keys: the right ones get in through all sockets, others get nothing.

The client speaks ZeroMQ by hand; what a wrong one could disturb is watched through the right one.
"""

import contextlib
import socket as sockets
import time
from collections.abc import Callable

import pytest
import zmq
from daemons import FREE, DaemonProcess, RawClient
from handshakes import HANDSHAKE_FAILED
from waiting import wait_until

from bridge import keys
from bridge.client import Client, HapticdError, NoDaemonError, Observer
from bridge.keys import ClientKeys, KeyPair
from haptics.states import EngagementState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DEADLINE_S = 60.0
TEXT = {"device": b"\xc1", "control": b"\x81\xa1v\x01", "state": b"", "events": b""}
SOCKETS = tuple(TEXT)


def free_port() -> int:
    """The first of four neighbouring ports that nobody listens on."""
    for port in range(20000, 30000, 7):
        try:
            for i in range(4):
                with sockets.socket() as probe:
                    probe.bind(("127.0.0.1", port + i))
        except OSError:
            continue
        return port
    raise AssertionError("no free ports")


class Place:
    """The daemon and the files of its keys."""

    def __init__(self, daemon: DaemonProcess, server: KeyPair, alice: KeyPair) -> None:
        self.daemon = daemon
        self.allowed = daemon.base / "allowed"
        self.server = server
        self.alice = alice
        self.endpoints: dict[str, str] = daemon.facts["endpoints"]

    def client(self, **fields) -> Client:
        """The project's client, let in as alice."""
        how = {"timeout_ms": 20_000, "render_timeout_ms": 20_000, **fields}
        return Client(self.endpoints["control"], server_key=self.server.public, keys=self.alice, **how)

    def status(self) -> dict:
        with self.client() as client:
            return client.status()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A free-running daemon that lets alice in, and an hour's worth of her keys."""
    folder = tmp_path_factory.mktemp("keys")
    server, alice = keys.make_pair(folder, "server"), keys.new_pair()
    extra = f"""
[sockets]
transport = "tcp"
port = {free_port()}
[access]
keys = "{folder / "server.key_secret"}"
allow = "allowed"
"""
    daemon = DaemonProcess(extra)
    keys.write_allowed(daemon.base / "allowed", {"alice": alice.public})
    with daemon:
        yield Place(daemon.wait_ready(), server, alice)
        assert daemon.stop() == 0


class Visitor:
    """One socket of each kind towards a daemon, with any keys or none, and what came back."""

    def __init__(self, place: Place, own: ClientKeys | None) -> None:
        self.context = zmq.Context()
        self.sockets: dict[str, zmq.Socket] = {}
        self.monitors: dict[str, zmq.Socket] = {}
        for name in SOCKETS:
            socket = self.context.socket(zmq.SUB if name in ("state", "events") else zmq.DEALER)
            socket.set(zmq.LINGER, 0)
            self.monitors[name] = socket.get_monitor_socket(HANDSHAKE_FAILED)
            if own is not None:
                own.use(socket)
            if socket.type == zmq.SUB:
                socket.set(zmq.SUBSCRIBE, b"")
            socket.connect(place.endpoints[name])
            if socket.type == zmq.DEALER:
                socket.send(TEXT[name])
            self.sockets[name] = socket

    def __enter__(self) -> "Visitor":
        return self

    def __exit__(self, *_: object) -> None:
        for socket in [*self.monitors.values(), *self.sockets.values()]:
            socket.close(0)
        self.context.term()


def take(client: Client) -> None:
    """Take the lease, once the test before has given it back."""

    def taken() -> bool:
        with contextlib.suppress(HapticdError):
            client.lease()
            return True
        return False

    wait_until(taken, seconds=DEADLINE_S)


def is_kept_out(place: Place, own: ClientKeys | None, meanwhile: Callable[[], object] | None = None) -> None:
    """Wait until all four handshakes have failed; nothing may have come through any socket."""
    with Visitor(place, own) as visitor:
        failed = visitor.monitors.values()
        wait_until(lambda: all(monitor.poll(5) for monitor in failed), meanwhile=meanwhile, seconds=DEADLINE_S)
        assert [name for name, socket in visitor.sockets.items() if socket.poll(0)] == []


def test_the_right_key_gets_in_through_all_sockets(place):
    with (
        place.client() as client,
        Observer(place.endpoints, server_key=place.server.public, keys=place.alice) as observer,
    ):
        take(client)
        render = client.exchange(FREE)
        client.arm(reanchor=True)
        end = time.monotonic() + DEADLINE_S
        while render.state != EngagementState.ACTIVE and time.monotonic() < end:
            render = client.exchange(FREE)
            time.sleep(0.001)
        assert render.state == EngagementState.ACTIVE
        kinds = set()
        while kinds != {"state", "event"} and time.monotonic() < end:
            seen = observer.receive(1000)
            kinds |= {seen.kind} if seen is not None else set()
            client.exchange(FREE)
        assert kinds == {"state", "event"}


def test_programs_of_the_own_user_find_the_daemon_by_its_name(place, monkeypatch):
    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(place.daemon.base))
    with Client() as client:
        assert client.status()["counters"]["refused_handshakes"] >= 0
    assert place.daemon.runtime.local_keys_path.stat().st_mode & 0o777 == 0o600


def test_wrong_keys_and_none_get_nothing_and_disturb_nobody(place):
    stranger = keys.new_pair()
    with place.client() as client:
        before = client.status()["counters"]
        take(client)
        for own in (
            None,
            ClientKeys(place.server.public, stranger),
            ClientKeys(keys.new_pair().public, place.alice),
        ):
            is_kept_out(place, own, lambda: client.exchange(FREE))
        after = client.status()["counters"]
    assert after["refused_handshakes"] >= before["refused_handshakes"] + 4
    assert (after["rejected"], after["malformed_requests"]) == (before["rejected"], before["malformed_requests"])


def test_a_plain_client_gets_no_answer(place):
    with RawClient(place.endpoints) as raw:
        raw.control.send(b"\x83\xa1v\x01\xa2id\x01\xa2op\xa6status")
        raw.device.send(b"\xc1")
        monitor = raw.control.get_monitor_socket(HANDSHAKE_FAILED)
        wait_until(lambda: monitor.poll(0), seconds=DEADLINE_S)
        assert not raw.control.poll(0) and not raw.device.poll(0)
        monitor.close(0)
    assert place.status()["state"] is not None


def test_a_revoked_key_is_kept_out_and_let_in_again_while_the_daemon_runs(place):
    bob = keys.new_pair()
    own = ClientKeys(place.server.public, bob)
    keys.allow(place.allowed, "bob", bob.public)
    with Client(place.endpoints["control"], server_key=place.server.public, keys=bob) as client:
        client.status()
    keys.revoke(place.allowed, "bob")
    is_kept_out(place, own)
    with pytest.raises(NoDaemonError, match=keys.fingerprint(bob.public)):
        Client(place.endpoints["control"], server_key=place.server.public, keys=bob, timeout_ms=4000)
    keys.allow(place.allowed, "bob", bob.public)
    with Client(place.endpoints["control"], server_key=place.server.public, keys=bob) as client:
        client.status()


def test_refusals_are_told_as_an_event(place):
    with Observer(place.endpoints, state=False, server_key=place.server.public, keys=place.alice) as observer:
        stranger = ClientKeys(place.server.public, keys.new_pair())
        end = time.monotonic() + DEADLINE_S
        with Visitor(place, stranger):  # it knocks again and again
            while time.monotonic() < end:
                seen = observer.receive(1000)
                if seen is not None and seen.fields["code"] == "handshakes_refused":
                    break
            else:
                raise AssertionError("no event told of it")
    assert seen.fields["refused"] > 0 and seen.fields["source"] == "supervisor"
    assert "not on the list" in seen.fields["text"]
