"""Whole daemons: real processes, real sockets, real kills. What is true of each is read from the ring or the exit code.

The machine may be busy, and processes may stand still for a while: what would depend on it being idle is measured in
ticks and in the servo's own times, and what must come about is waited for.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgpack
import numpy as np
import pytest
import zmq
from daemons import FREE, PRESSED, ROOT, DaemonProcess, RawClient, line, press, records_until
from waiting import wait_until

from bridge.exit_codes import ExitCode
from bridge.ring import ENDED, RingReader, process_exists
from haptics.states import CommandKind, EngagementState, Reason

pytestmark = pytest.mark.slow

STALE_MS = 1000
RAMP_FAULT_MS = 15

PATIENT = f"""
[safety]
hold_after_ms = 500.0
stale_after_ms = {STALE_MS}.0
"""
"""A client on a busy machine is late by more than the default horizon of 20 ms now and then; what follows when the
horizon is over does not depend on its length."""

PRESSER = """
import json, sys, time
sys.path[:0] = [{root!r}, {tests!r}]
from daemons import RawClient, press, stay_pressed
client = RawClient(json.loads(sys.argv[1]))
press(client)
while True:
    stay_pressed(client, 5)
"""


@contextlib.contextmanager
def pressing_client(daemon):
    """A client in a process of its own that presses until it is killed."""
    text = PRESSER.format(root=str(ROOT), tests=str(ROOT / "tests"))
    command = [sys.executable, "-c", text, json.dumps(daemon.facts["endpoints"])]
    with subprocess.Popen(command) as process, RingReader(daemon.runtime.ring_path) as reader:
        try:
            wait_until_pressing(reader)
            yield process
        finally:
            process.kill()


def wait_until_pressing(reader):
    """Until the client presses with 1.8 N, and is no longer on its way: what stops halfway would press with less."""

    def pressing():
        output = reader.newest()["output"]
        there = np.abs(output["device_position"] - PRESSED).max() < 1e-9
        return there and output["state"] == EngagementState.ACTIVE and at_full_rate(output) > 1.6

    wait_until(pressing, "the client does not press")


def force(records):
    return np.linalg.norm(records["output"]["wrench"][:, :3], axis=1)


def at_full_rate(output):
    """Force (N) that a hand at rest would get from samples that come evenly; on a busy machine they do not."""
    return np.linalg.norm(output["wrench"][..., :3], axis=-1) / output["rate_share"]


def gone(pid, seconds=30.0):
    deadline = time.monotonic() + seconds
    while process_exists(pid):
        with contextlib.suppress(OSError):
            # Children of a killed supervisor may be ours to bury where tests run as process 1.
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def pids_of(daemon):
    with RawClient(daemon.facts["endpoints"]) as client:
        processes = client.request("status")["processes"]
    return {name: row["pid"] for name, row in processes.items() if isinstance(row, dict)}


@pytest.fixture(scope="module")
def running():
    """One free-running daemon for the tests that leave it as it was."""
    with DaemonProcess(PATIENT) as daemon:
        yield daemon.wait_ready()


@pytest.fixture
def idle(running):
    """The shared daemon with nobody engaged."""
    yield running
    with RawClient(running.facts["endpoints"]) as client:
        client.request("stop")

        def at_rest():
            status = client.request("status")
            return status["owner"] is None and status["state"] in (0, 6)

        wait_until(at_rest)
        if client.request("status")["state_name"] == "FAULT":
            client.hello()
            client.own("lease")
            client.own("reset")
            client.own("release")


def test_raw_client_feels_the_plate(idle):
    with RingReader(idle.runtime.ring_path) as reader, RawClient(idle.facts["endpoints"]) as client:
        reader.seek_newest()
        renders = press(client)
        records = records_until(reader, lambda records: records["tick"][-1] >= renders[-1]["tick"])
        client.own("release")
        stiffness = client.request("describe")["limits"]["stiffness"]
    assert renders[-1]["state"] == EngagementState.ACTIVE
    assert renders[-1]["seq"] > renders[0]["seq"]
    # Static plane: the proxy rests at the tip radius and the safety gap; the spring does the rest.
    depth = records["output"]["proxy_position"][-1, 2] - PRESSED[2]
    # On a busy machine samples come late, and the stiffness is lowered by what the record tells.
    felt = stiffness * float(records["output"]["rate_share"][-1])
    assert renders[-1]["wrench"][2] == pytest.approx(felt * depth, rel=0.02)
    assert depth == pytest.approx(0.006, abs=2e-4)
    assert (records["output"]["proxy_position"][:, 2] >= 0.005).all()


def test_killed_client_ramps_to_zero_within_the_stated_time(idle):
    with RingReader(idle.runtime.ring_path) as reader, pressing_client(idle) as process:
        reader.seek_newest()
        pressed = records_until(reader, lambda records: records["input"]["fresh"].any())
        wait_until_pressing(reader)
        process.kill()
        rest = records_until(reader, lambda records: (records["output"]["state"] == EngagementState.IDLE).any())
    records = np.concatenate([pressed, rest])
    output, entered, timing = records["output"], records["input"], records["timing"]
    last_fresh = int(np.flatnonzero(entered["fresh"])[-1])
    assert at_full_rate(records["output"])[last_fresh] > 1.0, "it was pressing"
    after = slice(last_fresh + 1, None)
    zero = int(np.flatnonzero(force(records[after]) == 0.0)[0])
    assert (force(records[after])[zero:] == 0.0).all()
    assert {EngagementState.HOLD, EngagementState.RELEASING} <= set(output["state"][after][:zero].tolist())
    # By the servo's clock: the first tick that begins when the sample is too old lets go, however late it begins.
    silent_ms = (timing["started_ns"][after] - timing["t_received"][last_fresh]) * 1e-6
    too_old = int(np.argmax(silent_ms > STALE_MS))
    assert silent_ms[too_old] > STALE_MS and zero <= too_old + RAMP_FAULT_MS + 1
    assert output["state"][after][too_old] != EngagementState.HOLD
    assert np.abs(np.diff(force(records[after])[: zero + 1])).max() < 0.5, "a ramp, not a step"
    assert output["reason"][-1] == Reason.SAMPLE_STALE
    assert output["state"][-1] == EngagementState.IDLE


def test_flood_of_malformed_messages_changes_nothing(idle):
    with RingReader(idle.runtime.ring_path) as reader, RawClient(idle.facts["endpoints"]) as client:
        press(client)
        flood = client.context.socket(zmq.DEALER)
        flood.set(zmq.LINGER, 0)
        flood.connect(idle.facts["endpoints"]["device"])
        reader.seek_newest()
        before = client.request("status")["counters"]["rejected"]
        rubbish = [b"", b"\xc1", b"\x00" * 5000, os.urandom(200), msgpack.packb({"v": 1, "kind": 1})]
        due = time.monotonic()
        for round_number in range(300):
            for message in rubbish:
                with contextlib.suppress(zmq.Again):
                    flood.send(rubbish[round_number % 5] if message is rubbish[0] else message, zmq.NOBLOCK)
            due += 0.001
            time.sleep(max(0.0, due - time.monotonic()))
            client.sample(PRESSED)

        def refused():
            return client.request("status")["counters"]["rejected"] - before

        wait_until(lambda: refused() >= 1000, "the flood is not counted", meanwhile=lambda: client.feed([PRESSED] * 10))
        counted = refused()
        records = records_until(reader, lambda records: records["input"]["rejected"].sum() >= counted)
        flood.close()
        client.own("release")
    fed = records[: int(np.flatnonzero(records["input"]["fresh"])[-1])]
    assert set(fed["output"]["state"].tolist()) <= {EngagementState.ACTIVE, EngagementState.HOLD}
    assert np.ptp(at_full_rate(fed["output"])) < 0.2, "the force does not feel the flood"


def test_two_owners_are_told_apart(idle):
    with RawClient(idle.facts["endpoints"]) as first, RawClient(idle.facts["endpoints"]) as second:
        first.hello()
        second.hello()
        first.own("lease")
        refused = second.request("lease", session=second.session)
        assert refused["error"]["code"] == "lease_taken"
        assert second.request("arm", session=second.session)["error"]["code"] == "not_owner"
        first.own("release")
        second.own("lease")
        second.own("release")


def test_a_lease_is_handed_over_between_two_clients(idle):
    """The one presses, the other's device is elsewhere: first renders of its own, forces again, one notice."""
    with (
        RingReader(idle.runtime.ring_path) as reader,
        RawClient(idle.facts["endpoints"]) as first,
        RawClient(idle.facts["endpoints"]) as second,
    ):
        events = first.context.socket(zmq.SUB)
        events.set(zmq.SUBSCRIBE, b"")
        events.connect(idle.facts["endpoints"]["events"])
        assert events.poll(20_000), "a heartbeat each second"
        second.session = second.request("hello", client="heir", versions=[1], roles=["owner"])["session"]
        press(first)
        reader.seek_newest()
        assert first.own("hand_over", to="heir")["state_name"] == "RELEASING"

        def both():
            first.sample(PRESSED)
            second.sample((0.3, 0.2, 0.1), deadman=1)
            time.sleep(1e-3)

        found = []

        def engaged_again():
            found.append(reader.read(4096)[0])
            last = reader.newest()["output"]
            return int(last["owner"]) == second.session and last["state"] == EngagementState.ACTIVE

        wait_until(engaged_again, meanwhile=both)
        records = np.concatenate(found)
        output = records["output"]
        handed = int(np.flatnonzero(output["owner"] == second.session)[0])
        assert (output["owner"][:handed] == first.session).all() and (output["owner"][handed:] == second.session).all()
        assert (output["event_to"][handed], output["reason"][handed]) == (EngagementState.ARMED, Reason.HANDED_OVER)
        tool = output["proxy_position"][handed]
        assert np.abs(output["proxy_position"][handed:] - tool).max() <= 1e-9
        assert at_full_rate(output)[0] > 1.0 and force(records)[handed:].max() <= 1e-6
        kind = records["input"]["command"]["kind"][output["command_id"] != 0]
        assert kind.tolist() == [CommandKind.HAND_OVER]
        assert second.device.poll(1000), "a render for the new owner"

        def told():
            while events.poll(0):
                event = msgpack.unpackb(events.recv())
                if event["code"] == "handed_over":
                    return event
            return None

        event = wait_until(told, "no notice", meanwhile=both)
        assert (event["giver"], event["taker"], event["source"]) == ("raw", "heir", "supervisor")
        events.close()
        second.own("release")


def test_anyone_may_stop_and_only_a_reset_leads_out(idle):
    with RingReader(idle.runtime.ring_path) as reader, RawClient(idle.facts["endpoints"]) as client:
        press(client)
        reader.seek_newest()
        with RawClient(idle.facts["endpoints"]) as stranger:
            assert stranger.request("stop")["ok"]
        client.feed([PRESSED] * 60)
        records = records_until(reader, lambda records: (records["output"]["state"] == EngagementState.FAULT).any())
        stopping = int(np.flatnonzero(records["output"]["state"] == EngagementState.RELEASING)[0])
        fault = int(np.flatnonzero(records["output"]["state"] == EngagementState.FAULT)[0])
        assert fault - stopping <= RAMP_FAULT_MS + 1
        assert (force(records)[fault:] == 0.0).all()
        assert client.request("arm", session=client.session)["error"]["code"] == "wrong_state"
        assert client.own("reset")["state_name"] == "IDLE"
        client.own("release")


def test_every_transition_is_an_event(idle):
    with RingReader(idle.runtime.ring_path) as reader, RawClient(idle.facts["endpoints"]) as client:
        events = client.context.socket(zmq.SUB)
        events.set(zmq.SUBSCRIBE, b"")
        events.connect(idle.facts["endpoints"]["events"])
        assert events.poll(20_000), "a heartbeat each second"
        began = client.request("status")["tick"]
        press(client)
        client.own("disarm")
        wait_until(lambda: client.request("status")["state"] == 0, meanwhile=lambda: client.feed([PRESSED] * 10))
        client.own("release")
        last = int(reader.newest()["output"]["event_seq"])
        found = []

        def hear():
            if events.poll(100):
                found.append(msgpack.unpackb(events.recv()))
            return found and found[-1]["source"] == "servo" and found[-1]["seq"] >= last

        wait_until(hear, "an event is missing", meanwhile=lambda: None)
        events.close()
    changes = [event for event in found if event["source"] == "servo" and event["tick"] > began]
    assert [(event["from_name"], event["to_name"]) for event in changes if "HOLD" not in event["text"]] == [
        ("IDLE", "ARMED"),
        ("ARMED", "ENGAGING"),
        ("ENGAGING", "ACTIVE"),
        ("ACTIVE", "RELEASING"),
        ("RELEASING", "IDLE"),
    ]
    numbers = [event["seq"] for event in changes]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_second_daemon_says_who_runs_and_leaves_the_first_alone(idle):
    before = pids_of(idle)
    with DaemonProcess(base=idle.base) as second:
        assert second.wait() == ExitCode.ALREADY_RUNNING
        assert f"already running (pid {idle.process.pid})" in second.stderr()
    assert pids_of(idle) == before
    with RingReader(idle.runtime.ring_path) as reader:
        first = reader.newest()["tick"]
        wait_until(lambda: reader.newest()["tick"] > first, "the first one no longer ticks")


def test_clean_end_leaves_nothing_behind():
    with DaemonProcess(PATIENT) as daemon:
        daemon.wait_ready()
        pids = pids_of(daemon)
        with RawClient(daemon.facts["endpoints"]) as client, RingReader(daemon.runtime.ring_path) as reader:
            press(client)
            reader.seek_newest()
            daemon.process.send_signal(signal.SIGTERM)
            client.feed([PRESSED] * 200)
            assert daemon.wait() == ExitCode.OK
            records, _ = reader.read(4096)
        assert records["output"]["stopped"][-1] == 1
        assert at_full_rate(records["output"])[0] > 1.0
        assert force(records)[-1] == 0.0
        assert np.abs(np.diff(force(records))).max() < 0.5, "ramped down before the end"
        assert all(gone(pid) for pid in pids.values())
        left = {path.name for path in daemon.runtime.path.iterdir()}
        assert not left & {"ring", "mailbox", "endpoints.json"}
        assert not [name for name in left if name.endswith(".sock")]
        assert daemon.summary()["compiles"] == 0
        assert not daemon.runtime.is_running()
        for kind in ("ring", "mailbox"):
            assert not os.path.exists(f"/dev/shm/{daemon.runtime.shared_name(kind)}")


def test_killed_servo_ends_everything_with_its_code():
    with DaemonProcess() as daemon:
        daemon.wait_ready()
        pids = pids_of(daemon)
        os.kill(pids["servo"], signal.SIGKILL)
        assert daemon.wait() == ExitCode.SERVO_DIED
        assert "the servo ended (killed by SIGKILL)" in daemon.stderr()
        assert all(gone(pid) for pid in pids.values())
        assert not os.path.lexists(daemon.runtime.ring_path)


def test_killed_supervisor_makes_the_servo_ramp_down_and_end():
    with DaemonProcess(PATIENT) as daemon:
        daemon.wait_ready()
        pids = pids_of(daemon)
        with RingReader(daemon.runtime.ring_path) as reader, pressing_client(daemon):
            reader.seek_newest()
            daemon.process.kill()
            records = records_until(reader, lambda records: reader.header.ready == ENDED)
            records = np.concatenate([records, reader.read(4096)[0]])
        assert at_full_rate(records["output"])[0] > 1.0
        assert force(records)[-1] == 0.0
        assert np.abs(np.diff(force(records))).max() < 0.5
        assert records["input"]["supervisor_lost"][-1] == 1
        assert Reason.SUPERVISOR_LOST in records["output"]["reason"]
        releasing = (records["output"]["state"] == EngagementState.RELEASING).sum()
        assert releasing <= RAMP_FAULT_MS + 1
        assert all(gone(pid) for pid in pids.values())
        # What it left does not hinder a successor, which ends when its duration is over.
        with DaemonProcess(base=daemon.base, duration=0.5) as successor:
            successor.wait_ready()
            assert successor.wait() == ExitCode.OK


def test_log_that_cannot_be_written_is_said_before_the_first_tick():
    with DaemonProcess(log="/dev/null/run.mcap") as daemon:
        assert daemon.wait() == ExitCode.CHILD_START
        assert "the recorder could not start" in daemon.stderr()
        assert "/dev/null" in daemon.stderr()


def test_killed_recorder_costs_the_servo_no_tick_and_comes_back(short_base):
    """The kill is repeated beside as many ticks without one: a cause would show each time, a busy machine in both."""
    log = short_base / "run.mcap"
    with DaemonProcess(base=short_base, log=str(log)) as daemon:
        daemon.wait_ready()
        servo = daemon.servo_pid()
        more = []
        with RingReader(daemon.runtime.ring_path) as reader:
            pid = 0

            def missed():
                records = records_until(reader, lambda records: len(records) > 120)[:120]
                assert (np.diff(records["tick"].astype(int)) == 1).all()
                return int(records["timing"]["missed"].sum())

            def another_reads():
                recorder = pids_of(daemon)["recorder"]
                return recorder != pid and recorder in {row["pid"] for row in reader.readers()} and recorder

            while not more or (min(more) > 0 and len(more) < 10):
                pid = wait_until(another_reads, "the recorder was not started again")
                reader.seek_newest()
                before = missed()
                os.kill(pid, signal.SIGKILL)
                more.append(missed() - before)
            wait_until(another_reads, "the recorder was not started again")
        assert min(more) <= 0, "a kill costs ticks"
        assert daemon.servo_pid() == servo
        assert daemon.stop() == ExitCode.OK
        assert log.exists()
        assert (short_base / "run.restart1.mcap").exists()
        assert "the recorder ended (killed by SIGKILL)" in daemon.stderr()


def test_tcp_port_in_use_is_said_before_anything_starts():
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with DaemonProcess(f'[sockets]\ntransport = "tcp"\nport = {port}\n') as daemon:
            assert daemon.wait() == ExitCode.ADDRESS_IN_USE
            assert f"the device socket cannot use 127.0.0.1:{port}" in daemon.stderr()


def test_tcp_serves_a_thousand_triggered_ticks_and_anyone_may_shut_it_down():
    """As ipc does, by which `test_raw_client` goes the same way."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    extra = f'[rates]\nclocking = "triggered"\n[sockets]\ntransport = "tcp"\nport = {port}\n'
    with DaemonProcess(extra) as daemon:
        daemon.wait_ready()
        assert daemon.facts["endpoints"]["device"] == f"tcp://127.0.0.1:{port}"
        with RingReader(daemon.runtime.ring_path) as reader, RawClient(daemon.facts["endpoints"]) as client:
            greeting = client.hello()
            assert greeting["clocking"] == "triggered"
            client.own("lease")
            client.own("arm", reanchor=False)
            path = [*line(FREE, PRESSED, 500), *line(PRESSED, FREE, 500)]
            for position in path:
                number = client.sample(position)
                render = client.render()
                assert render["seq"] == number
            assert render["state"] == EngagementState.ACTIVE
            client.own("release")
            records = records_until(reader, lambda records: records["tick"][-1] == reader.newest()["tick"])
        assert records["input"]["fresh"].sum() == 1000
        assert at_full_rate(records["output"]).max() > 1.0
        with RawClient(daemon.facts["endpoints"]) as stranger:
            assert stranger.request("shutdown")["ok"]
        assert daemon.wait() == ExitCode.OK
        assert daemon.summary()["compiles"] == 0


def test_memory_does_not_grow_while_ticking(running):
    """A tick that keeps something shows in every stretch of ticks; allocators that settle show in the first ones."""

    def resident(pid):
        fields = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
        return int(fields[fields.index("Rss:") + 1])

    pid = running.servo_pid()
    growth = []
    with RawClient(running.facts["endpoints"]) as client:
        client.hello()
        client.own("lease")
        while len(growth) < 6 and 0 not in growth:
            client.feed([FREE] * 200)
            before = resident(pid)
            client.feed([FREE] * 2000)
            growth.append(resident(pid) - before)
        client.own("release")
    assert 0 in growth, f"kB more after each 2000 ticks: {growth}"
