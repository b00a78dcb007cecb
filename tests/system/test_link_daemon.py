"""Two daemons on a link: by a relay, by a connection of their own, and with keys; what each tells, and its log."""

import json
import os
import signal
import socket as sockets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import zmq
from daemons import FREE, ROOT, DaemonProcess, RawClient
from waiting import wait_until

from bridge import keys
from bridge.client import Client, HapticdError
from bridge.log.reader import read_log
from bridge.log.reexec import reexecute
from bridge.wire import PEER_HELLO, encode_peer
from haptics.link_codes import LinkReason, LinkState
from haptics.tables import PEER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PATIENT = """
[safety]
hold_after_ms = 400.0
stale_after_ms = 1000.0
lease_ms = 20000.0
"""
"""The hands here share a thread: a machine that stands still for a moment must not let them go."""

LINK = '\n[link]\nmethod = "tank"\nramp_up_ms = 50.0\nramp_down_ms = 20.0\n'


@pytest.fixture
def base():
    with tempfile.TemporaryDirectory(prefix="hd-", dir="/tmp") as folder:
        yield Path(folder)


class Hands:
    """A hand at each of some daemons, all in one thread."""

    def __init__(self, *daemons):
        self.clients = [RawClient(daemon.facts["endpoints"]) for daemon in daemons]
        self.states = [0] * len(daemons)
        for client in self.clients:
            client.hello()
            client.own("lease")

    def stay(self, positions=None):
        """One sample of each hand; who has no forces asks for them."""
        for k, client in enumerate(self.clients):
            client.sample(FREE if positions is None else positions[k])
            while (render := client.render(0)) is not None:
                self.states[k] = render["state"]
            if self.states[k] == 0:
                client.request("arm", session=client.session, reanchor=True)
                self.states[k] = -1
        time.sleep(0.001)

    def close(self):
        for client in self.clients:
            client.close()


def link_of(daemon):
    """What the daemon says of its link, None before the first record."""
    with Client({k: v for k, v in daemon.facts["endpoints"].items() if k in ("control", "device")}) as client:
        newest = client.status()["newest"]
    return newest and newest.get("link")


def all_up(daemons, hands):
    wait_until(lambda: all("the link is up" in d.stderr() for d in daemons), "no link", meanwhile=hands.stay)


def start_relay(base, *how):
    return subprocess.Popen(
        [sys.executable, "-m", "bridge.cli", "link", "left", "right", "--json", *how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=surroundings(base),
    )


def surroundings(base):
    """Environment of a command that finds the daemons."""
    return {**os.environ, "HAPTICD_RUNTIME_DIR": str(base), "PYTHONPATH": str(ROOT)}


def test_two_daemons_through_a_relay_feel_each_other_and_their_logs_repeat(base):
    logs = [base / "left.mcap", base / "right.mcap"]
    with (
        DaemonProcess(PATIENT + LINK, name="left", base=base, log=str(logs[0])) as left,
        DaemonProcess(PATIENT + LINK, name="right", base=base, log=str(logs[1])) as right,
    ):
        left.wait_ready()
        right.wait_ready()
        assert left.facts["endpoints"]["peer"] == left.runtime.ipc("peer")
        relay = start_relay(base, "--delay", "20", "--loss", "5", "--seed", "3")
        hands = Hands(left, right)
        try:
            all_up((left, right), hands)
            found = [link_of(daemon) for daemon in (left, right)]
            assert [link["state_name"] for link in found] == ["UP", "UP"]
            assert all(link["way_ns"] >= 40_000_000 and link["received"] > 0 for link in found), found
            # The left hand goes 4 mm to the side: the right one is pulled after it, and pulls back.
            aside = [(0.004, 0.0, FREE[2]), FREE]
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                hands.stay(aside)
            relay.send_signal(signal.SIGKILL)
            relay.wait()
            wait_until(
                lambda: all("nothing has come from the other end for 500 ms" in d.stderr() for d in (left, right)),
                "its loss is not told",
                meanwhile=hands.stay,
            )
            found = [link_of(daemon) for daemon in (left, right)]
            assert [(link["state_name"], link["reason_name"]) for link in found] == [("LOST", "SILENT")] * 2
        finally:
            hands.close()
            relay.kill()
            relay.communicate()
        assert (left.stop(), right.stop()) == (0, 0)
    for path in logs:
        log = read_log(path)
        link, peer = log.records["output"]["link"], log.records["input"]["peer"]
        up = link["state"] == LinkState.UP
        lost = int(np.argmax(np.diff(up.astype(int)) == -1)) + 1
        assert up.any() and link["reason"][lost] == LinkReason.SILENT
        for name in ("session", "t_sent", "t_echo", "t_held"):
            assert not link["message"][name].any(), "stamped on the bytes alone"
        assert len(np.unique(peer["message"]["session"][up])) == 1
        lost = int(peer["lost"][-1])
        assert 0.02 < lost / (lost + int(peer["received"][-1])) < 0.1, "5 % were lost"
        again = reexecute(path)
        assert again.same and again.ticks == len(log.records), str(again)
    pulls = [read_log(path).records["output"]["link"]["wrench"][:, 0] for path in logs]
    assert pulls[0].min() < -0.1 and pulls[1].max() > 0.1, "each is pulled towards the other"


@pytest.mark.long
def test_one_end_connects_to_the_other_and_a_third_is_kept_out(base):
    with DaemonProcess(PATIENT + LINK, name="left", base=base) as left:
        left.wait_ready()
        connect = f'connect = "{left.runtime.ipc("peer")}"\n'
        with DaemonProcess(PATIENT + LINK + connect, name="right", base=base) as right:
            right.wait_ready()
            assert "peer" not in right.facts["endpoints"]
            hands = Hands(left, right)
            context = zmq.Context()
            third = context.socket(zmq.DEALER)
            try:
                all_up((left, right), hands)
                third.set(zmq.LINGER, 0)
                third.connect(left.runtime.ipc("peer"))
                peers = np.zeros(1, PEER)
                peers["seq"] = 1
                peers["orientation"] = peers["offset_orientation"] = (0.0, 0.0, 0.0, 1.0)
                third.send(encode_peer(peers, 5, 1))
                third.send(PEER_HELLO)
                wait_until(lambda: "a second end asks" in left.stderr(), meanwhile=hands.stay)
                assert not third.poll(0), "it gets nothing"
                assert link_of(left)["state_name"] == "UP"
            finally:
                hands.close()
                third.close(0)
                context.term()
            assert right.stop() == 0
        assert left.stop() == 0


@pytest.mark.long
def test_ends_with_other_methods_are_told_so(base):
    other = LINK.replace("tank", "waves") + "impedance = 3.0\n"
    with DaemonProcess(PATIENT + LINK, name="left", base=base) as left:
        left.wait_ready()
        connect = f'connect = "{left.runtime.ipc("peer")}"\n'
        with DaemonProcess(PATIENT + other + connect, name="right", base=base) as right:
            right.wait_ready()
            hands = Hands(left, right)
            try:
                wait_until(
                    lambda: all("the link cannot come up" in d.stderr() for d in (left, right)), meanwhile=hands.stay
                )
                assert "method waves with 3 N·s/m" in left.stderr() and "method tank with" in right.stderr()
                assert [link_of(d)["reason_name"] for d in (left, right)] == ["MISMATCH"] * 2
            finally:
                hands.close()


def free_port() -> int:
    """The first of five neighbouring ports that nobody listens on."""
    for port in range(30000, 32000, 7):
        try:
            for i in range(5):
                with sockets.socket() as probe:
                    probe.bind(("127.0.0.1", port + i))
        except OSError:
            continue
        return port
    raise AssertionError("no free ports")


def test_with_keys_only_those_on_the_list_get_in(base):
    server, right_pair = keys.make_pair(base, "server"), keys.make_pair(base, "right")
    keys.make_pair(base, "stranger")
    keys.write_allowed(base / "allowed", {"right": right_pair.public})
    port = free_port()
    access = f"""
[sockets]
transport = "tcp"
port = {port}
[access]
keys = "server.key_secret"
allow = "allowed"
"""
    to_left = f'connect = "tcp://127.0.0.1:{port + 4}"\nserver_key = "server.key"\n'
    with DaemonProcess(PATIENT + access + LINK, name="left", base=base) as left:
        left.wait_ready()
        assert left.facts["endpoints"]["peer"] == f"tcp://127.0.0.1:{port + 4}"
        stranger = LINK + to_left + 'keys = "stranger.key_secret"\n'
        with DaemonProcess(PATIENT + stranger, name="stranger", base=base) as other:
            other.wait_ready()
            wait_until(lambda: "nothing has come from the other end at tcp://127.0.0.1" in other.stderr())
            wait_until(lambda: "refused at the sockets" in left.stderr())
            assert other.stop() == 0
        with DaemonProcess(PATIENT + LINK + to_left + 'keys = "right.key_secret"\n', name="right", base=base) as right:
            right.wait_ready()

            def received(endpoints, **its):
                with Client(endpoints["control"], **its) as client:
                    newest = client.status()["newest"]
                return newest["link"]["received"] if newest and "link" in newest else 0

            wait_until(lambda: received(right.facts["endpoints"]) > 10)
            wait_until(lambda: received(left.facts["endpoints"], server_key=server.public, keys=right_pair) > 10)
            assert right.stop() == 0
        done = subprocess.run(
            [sys.executable, "-m", "bridge.cli", "link", f"tcp://127.0.0.1:{port + 4}", f"ipc://{base}/x"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=surroundings(base),
            timeout=60,
        )
        assert done.returncode == 9 and "asks for keys" in done.stderr
        assert left.stop() == 0


@pytest.mark.long
def test_a_relay_says_what_it_did(base):
    with (
        DaemonProcess(LINK, name="left", base=base) as left,
        DaemonProcess(LINK, name="right", base=base) as right,
    ):
        left.wait_ready()
        right.wait_ready()
        relay = start_relay(base, "--duration", "2", "--delay", "5")
        out, err = relay.communicate(timeout=60)
        assert (relay.returncode, err) == (0, "")
        summary = json.loads(out)
        for direction in ("a_to_b", "b_to_a"):
            counts = summary[direction]
            assert counts["received"] > 200 and counts["passed"] >= counts["received"] - 50
            assert counts["lost"] == counts["dropped"] == 0
        assert summary["way_ms"]["p50"] >= 10.0


def test_a_daemon_without_a_link_cannot_be_linked(base, monkeypatch):
    from bridge.link_relay import find_peer

    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(base))
    with DaemonProcess(name="left", base=base) as left:
        left.wait_ready()
        with pytest.raises(HapticdError, match="`left` has no peer socket"):
            find_peer("left")
