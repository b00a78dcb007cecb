"""The control socket: what is asked wrongly is answered with one clear sentence and changes nothing."""

import itertools
import time

import msgpack
import numpy as np
import pytest
import zmq
from waiting import wait_until

from bridge.control import (
    MAX_PENDING,
    MAX_SESSIONS,
    REASON_CODES,
    REASON_TEXTS,
    Control,
    Facts,
    Refusal,
    check_form,
    listen,
)
from bridge.mailbox import CommandReader, CommandWriter, create_mailbox
from bridge.ring import RingReader, RingWriter
from bridge.runtime import AddressRefused
from bridge.schema import CONTROL_ERRORS, CONTROL_OPERATIONS
from haptics.posing import LARGEST_COORDINATE
from haptics.states import CommandKind, CommandResult, EngagementState, Reason
from haptics.tables import COMMAND, RECORD


class Bench:
    """A control server, a client socket, and a servo's place that the test itself fills: patiently waited for."""

    def __init__(self, path, timeout_ns=60_000_000_000):
        self.context = zmq.Context()
        self.endpoint = f"ipc://{path}/c"
        self.ring = RingWriter(path / "ring", 64)
        create_mailbox(path / "mailbox")
        self.commands = CommandReader(path / "mailbox")
        self.tick = 0
        facts = Facts(
            name="test",
            endpoints={"control": self.endpoint},
            clocking="free",
            tick_ns=1_000_000,
            lease_ms=2000.0,
            hold_after_ms=5.0,
            stale_after_ms=20.0,
            limits={"force_max": 3.3},
            card={"name": "simulated"},
            scene={
                "name": "scene",
                "bodies": [{"name": "plate", "motion": "static"}, {"name": "block", "motion": "held"}],
            },
            config={},
            versions={},
            body_names=("plate", "block"),
        )
        self.socket = listen(self.context, self.endpoint)
        mailbox = CommandWriter(path / "mailbox")
        self.told: list[tuple[str, str, dict]] = []
        self.control = Control(
            self.socket,
            facts,
            mailbox,
            RingReader(path / "ring"),
            timeout_ns=timeout_ns,
            tell=lambda code, text, **data: self.told.append((code, text, data)),
        )
        self.client = self.connect()
        self.ids = itertools.count(1)

    def connect(self, kind=zmq.DEALER):
        socket = self.context.socket(kind)
        socket.set(zmq.LINGER, 0)
        socket.connect(self.endpoint)
        return socket

    def post(self, request, socket=None):
        (socket or self.client).send(request if isinstance(request, bytes) else msgpack.packb(request))

    def answer(self, socket=None):
        """Next reply, while the server is being served."""
        socket = socket or self.client
        wait_until(lambda: socket.poll(1), "no reply", meanwhile=self.control.step)
        return msgpack.unpackb(socket.recv())

    def ask(self, op, **fields):
        self.post({"v": 1, "id": next(self.ids), "op": op, **fields})
        return self.answer()

    def hello(self):
        return self.ask("hello", client="me", versions=[1], roles=["owner"])["session"]

    def taken(self):
        """Commands that have reached the servo."""
        into = np.zeros(1, COMMAND)
        found = []
        while self.commands.take(into):
            found.append(into[0].copy())
        return found

    def command(self):
        """The next command that reaches the servo, while the server is being served; there must be no other one."""
        (command,) = wait_until(self.taken, "no command", meanwhile=self.control.step)
        return command

    def run_tick(
        self, command=None, result=CommandResult.DONE, reason=Reason.NONE, state=EngagementState.IDLE, owner=0
    ):
        """One record, as the servo would write it."""
        self.tick += 1
        record = np.zeros(1, RECORD)
        record["tick"] = self.tick
        record["output"]["state"], record["output"]["owner"] = state, owner
        if command is not None:
            record["output"]["command_id"] = command["id"]
            record["output"]["command_result"] = result
            record["output"]["command_reason"] = reason
        self.ring.write(record)

    def close(self):
        self.context.destroy(linger=0)


@pytest.fixture
def bench(short_base):
    bench = Bench(short_base)
    yield bench
    bench.close()


def test_hello_gives_a_session_and_the_facts(bench):
    before = time.monotonic_ns()
    reply = bench.ask("hello", client="me", versions=[3, 1], roles=["owner", "observer"], t_client=5)
    assert reply["ok"]
    assert 0 < reply["session"] < 1 << 63
    assert before <= reply["t_received"] <= reply["t_sent"] <= time.monotonic_ns()
    assert (reply["version"], reply["tick_ns"], reply["clocking"]) == (1, 1_000_000, "free")
    assert {"endpoints", "limits", "card", "scene", "lease_ms", "stale_after_ms"} <= set(reply)
    assert bench.hello() != bench.hello()


@pytest.mark.parametrize("client", ["\x1b[31mred", "two\nlines", "bell\x07", "\u202eright to left", ""])
def test_a_name_that_a_terminal_would_obey_is_refused(bench, client):
    error = bench.ask("hello", client=client, versions=[1], roles=["owner"])["error"]
    assert error["code"] == "bad_request" and error["text"].startswith(
        "`client` of `hello` must be a text of printable"
    )
    assert error["text"].isprintable()
    assert bench.ask("hello", client="Jürgen's arm 2", versions=[1], roles=["owner"])["ok"]


def test_hello_with_other_versions_only_is_refused(bench):
    error = bench.ask("hello", client="me", versions=[2], roles=["owner"])["error"]
    assert error["code"] == "version"
    assert "speaks version 1" in error["text"]


def test_command_is_answered_from_the_record_that_took_it(bench):
    session = bench.hello()
    bench.post({"v": 1, "id": 77, "op": "arm", "session": session, "reanchor": True})
    command = bench.command()
    assert (command["kind"], command["session"]) == (CommandKind.ARM, session)
    assert command["values"].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
    assert not bench.client.poll(0), "answered before the tick"
    bench.run_tick()
    bench.run_tick(command, state=EngagementState.ARMED)
    reply = bench.answer()
    assert reply == {"v": 1, "id": 77, "ok": True, "tick": 2, "state": 1, "state_name": "ARMED"}


@pytest.mark.parametrize("reason", sorted(REASON_CODES))
def test_refusals_of_the_tick_have_documented_codes_and_one_sentence(bench, reason):
    session = bench.hello()
    bench.post({"v": 1, "id": 5, "op": "lease", "session": session})
    bench.run_tick(bench.command(), CommandResult.REFUSED, reason, EngagementState.ACTIVE)
    reply = bench.answer()
    assert not reply["ok"]
    assert reply["error"]["code"] == REASON_CODES[reason]
    assert reply["error"]["code"] in CONTROL_ERRORS
    assert reply["error"]["text"].startswith("`lease`: ")
    assert "{" not in reply["error"]["text"]
    assert reply["state_name"] == "ACTIVE"
    assert reason in REASON_TEXTS


def test_what_fault_refuses_names_the_way_out(bench):
    session = bench.hello()
    bench.post({"v": 1, "id": 5, "op": "arm", "session": session})
    bench.run_tick(bench.command(), CommandResult.REFUSED, Reason.WRONG_STATE, EngagementState.FAULT)
    assert "state FAULT" in (text := bench.answer()["error"]["text"]) and "`hapticd reset`" in text


def test_a_pose_that_is_refused_is_told_why(bench):
    session = bench.hello()
    bench.post({"v": 1, "id": 5, "op": "pose_body", "session": session, **valid(session)["pose_body"]})
    bench.run_tick(bench.command(), CommandResult.REFUSED, Reason.BAD_VALUE, EngagementState.IDLE)
    error = bench.answer()["error"]
    assert error["code"] == "bad_value" and "on or round the tool" in error["text"]
    assert LARGEST_COORDINATE == 1e3 and "farther away than 1 km" in error["text"]


def test_timeout_when_the_servo_does_not_take_it(short_base):
    bench = Bench(short_base, timeout_ns=200_000_000)
    session = bench.hello()
    began = time.monotonic()
    reply = bench.ask("renew", session=session)
    took = time.monotonic() - began
    bench.close()
    assert reply["error"]["code"] == "timeout"
    assert 0.2 <= took < 2.0


def test_waiting_requests_block_nobody(bench):
    session = bench.hello()
    bench.post({"v": 1, "id": 1, "op": "renew", "session": session})
    other = bench.connect()
    bench.post({"v": 1, "id": 2, "op": "describe"}, other)
    assert bench.answer(other)["id"] == 2
    assert bench.control.waiting


def test_stop_is_for_everyone_and_passes_a_crowd(bench):
    session = bench.hello()
    for number in range(MAX_PENDING):
        bench.post({"v": 1, "id": number, "op": "renew", "session": session})
    assert bench_code(bench, {"v": 1, "id": 99, "op": "renew", "session": session}) == "busy"
    stranger = bench.connect()
    bench.post({"v": 1, "id": 1, "op": "stop"}, stranger)
    wait_until(lambda: len(bench.control._pending) > MAX_PENDING, meanwhile=bench.control.step)
    first = bench.taken()[0]
    assert (first["kind"], first["session"]) == (CommandKind.STOP, 0)
    bench.run_tick(first, state=EngagementState.RELEASING)
    assert bench.answer(stranger)["ok"]


def bench_code(bench, request):
    """Code with which a request is refused."""
    bench.post(request)
    while True:
        reply = bench.answer()
        if reply["id"] == request["id"]:
            return reply["error"]["code"]


def valid(session):
    """One right request of each operation that becomes a command."""
    return {
        "lease": {},
        "renew": {},
        "release": {},
        "hand_over": {"to": "me"},
        "arm": {"reanchor": False},
        "disarm": {},
        "clutch": {"pressed": True},
        "set": {"stiffness": 100.0, "damping": 1},
        "vibrate": {"amplitude": 1.0, "frequency": 150, "duration": 0.1, "direction": [0, 0, 2]},
        "pose_body": {"body": "block", "position": [0, 0, 1.5], "orientation": [0, 0, 0, 1]},
        "reset": {},
        "stop": {},
        "shutdown": {},
    }


@pytest.mark.parametrize("op", sorted(valid(0)))
def test_every_command_reaches_the_servo_once(bench, op):
    bench.hello()
    session = bench.hello()
    bench.post({"v": 1, "id": 1, "op": op, "session": session, **valid(session)[op]})
    bench.run_tick(bench.command())
    assert bench.answer()["ok"]
    assert bench.taken() == []
    assert set(valid(0)) | {"hello", "describe", "status"} == set(CONTROL_OPERATIONS)


def test_vibrate_gives_its_numbers_and_a_unit_direction(bench):
    session = bench.hello()
    bench.post({"v": 1, "id": 1, "op": "vibrate", "session": session, **valid(session)["vibrate"]})
    assert bench.command()["values"].tolist() == [1.0, 150.0, 0.1, 0.0, 0.0, 0.0, 1.0, 0.0]


def test_a_hand_over_goes_to_the_named_client_heard_from_last(bench):
    """To a session that may own, never back to the asker's own; told when the tick has done it, with both names."""
    session = bench.hello()

    def hello(client, role):
        return bench.ask("hello", client=client, versions=[1], roles=[role])["session"]

    old, new = hello("you", "owner"), hello("you", "owner")
    hello("you", "observer")
    hello("watcher", "observer")
    for heard in (new, old):
        bench.post({"v": 1, "id": 8, "op": "renew", "session": heard})
        bench.run_tick(bench.command())
        bench.answer()
        bench.post({"v": 1, "id": 9, "op": "hand_over", "session": session, "to": "you"})
        command = bench.command()
        assert command["kind"] == CommandKind.HAND_OVER
        upper, lower = (int(value) for value in command["values"][:2])
        assert (upper << 32 | lower, int(command["session"])) == (heard, session)
        bench.run_tick(command, CommandResult.REFUSED, Reason.NOT_OWNER)
        assert bench.answer()["error"]["code"] == "not_owner"
    assert bench.told == []
    bench.post({"v": 1, "id": 10, "op": "hand_over", "session": session, "to": "you"})
    bench.run_tick(bench.command(), state=EngagementState.RELEASING)
    assert bench.answer()["ok"]
    ((code, text, data),) = bench.told
    assert (code, text) == ("handed_over", "'me' hands the device over to 'you'")
    assert (data["giver"], data["taker"], data["tick"]) == ("me", "you", bench.tick)
    error = bench.ask("hand_over", session=session, to="me")["error"]
    assert error["code"] == "bad_value" and "named 'me'" in error["text"]
    error = bench.ask("hand_over", session=session, to="watcher")["error"]
    assert error["code"] == "bad_value" and "observer" in error["text"]
    assert bench.taken() == []


def flood(bench, role):
    """As many hellos as there are sessions, and a few more."""
    for _ in range(MAX_SESSIONS + 5):
        assert bench.ask("hello", client="flood", versions=[1], roles=[role])["ok"]


def is_known(bench, session):
    """Whether a command of this session reaches the servo."""
    bench.post({"v": 1, "id": 1, "op": "renew", "session": session})
    wait_until(lambda: bench.control.waiting or bench.client.poll(1), meanwhile=bench.control.step)
    for command in bench.taken():
        bench.run_tick(command)
    return bench.answer()["ok"]


@pytest.mark.parametrize("role", ["owner", "observer"])
def test_no_flood_of_hellos_takes_the_session_of_the_owner(bench, role):
    """The owner may have asked for nothing for hours: it sends samples, which go elsewhere."""
    owner, other = bench.hello(), bench.hello()
    bench.run_tick(state=EngagementState.ACTIVE, owner=owner)
    flood(bench, role)
    assert bench.ask("status")["owner"] == "me"
    assert bench.ask("status")["counters"]["sessions"] == MAX_SESSIONS
    bench.post({"v": 1, "id": 1, "op": "disarm", "session": owner})
    command = bench.command()
    assert (command["kind"], command["session"]) == (CommandKind.DISARM, owner)
    bench.run_tick(command)
    assert bench.answer()["ok"]
    assert is_known(bench, other) == (role == "observer"), "observers make room first"


def test_no_flood_of_hellos_takes_the_session_that_gets_the_device_next(bench):
    owner = bench.hello()
    heir = bench.ask("hello", client="you", versions=[1], roles=["owner"])["session"]
    bench.run_tick(state=EngagementState.ACTIVE, owner=owner)
    bench.client.send(msgpack.packb({"v": 1, "id": 9, "op": "hand_over", "session": owner, "to": "you"}))
    command = bench.command()
    flood(bench, "owner")
    bench.run_tick(command, state=EngagementState.RELEASING, owner=owner)
    assert bench.answer()["id"] == 9
    flood(bench, "owner")
    bench.run_tick(state=EngagementState.ARMED, owner=heir)
    flood(bench, "owner")
    assert bench.ask("status")["owner"] == "you"
    assert is_known(bench, heir)
    assert not is_known(bench, owner), "it has nothing to do with the device any more"


def test_pose_body_names_the_body_by_its_place(bench):
    session = bench.hello()
    bench.post({"v": 1, "id": 1, "op": "pose_body", "session": session, "body": "block", "position": [1, 2, 3]})
    assert bench.command()["values"].tolist() == [1, 1, 2, 3, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("op", "fields", "code", "words"),
    [
        ("arn", {}, "unknown_op", "did you mean 'arm'"),
        (None, {}, "unknown_op", "`op` is None"),
        (7, {}, "unknown_op", "is no operation"),
        ("arm", {"reanchr": True}, "bad_request", "did you mean `reanchor`"),
        ("arm", {"reanchor": 1}, "bad_request", "must be true or false"),
        ("clutch", {}, "bad_request", "needs `pressed`"),
        ("set", {"stiffness": 100.0}, "bad_request", "together"),
        ("set", {"stiffness": "100", "damping": 1}, "bad_request", "must be a number"),
        ("set", {"stiffness": -1.0, "damping": 1}, "bad_value", "at least 1e-06 N/m"),
        ("set", {"stiffness": 1e-310, "damping": 1}, "bad_value", "at least 1e-06 N/m"),
        ("set", {"stiffness": True, "damping": 1}, "bad_request", "must be a number"),
        ("set", {"scale": 0}, "bad_value", "above 0"),
        ("set", {"scale": 1, "stiffness": 5, "damping": 1}, "bad_request", "either"),
        ("vibrate", {"amplitude": 1, "frequency": 150}, "bad_request", "needs `duration`"),
        ("vibrate", {"amplitude": 1, "frequency": 0, "duration": 1}, "bad_value", "`frequency` must be above 0"),
        ("vibrate", {"amplitude": 1, "frequency": 150, "duration": 6}, "bad_value", "at most 5 s"),
        ("vibrate", {"amplitude": 1, "frequency": 9, "duration": 1, "decay": -1}, "bad_value", "below 0"),
        ("vibrate", {"amplitude": 1, "frequency": 9, "duration": 1, "direction": [0, 0, 0]}, "bad_value", "zero"),
        ("pose_body", {"body": "blok", "position": [0, 0, 0]}, "bad_value", "did you mean 'block'"),
        ("pose_body", {"body": "block", "position": [0, 0]}, "bad_request", "three numbers"),
        ("pose_body", {"body": "plate", "position": [0, 0, 0]}, "bad_value", "'plate' is static; only one"),
        ("pose_body", {"body": "block", "position": [0, 0, 0], "orientation": [0, 0, 0, 2]}, "bad_value", "norm 2"),
        ("hand_over", {}, "bad_request", "needs `to`"),
        (
            "hand_over",
            {"to": "me\x1b[31m"},
            "bad_request",
            "`to` of `hand_over` must be a text of printable characters",
        ),
        ("arm", {"\x1b[31m\n": True}, "bad_request", "`arm` takes no '\\x1b[31m\\n'"),
        ("status", {"\x1b[31m\n": True}, "bad_request", "`status` takes no '\\x1b[31m\\n'"),
        ("hand_over", {"to": "mee"}, "bad_value", "no other session is of a client named 'mee'"),
        ("lease", {"session": "me"}, "bad_request", "integer from the `hello` reply"),
        ("lease", {"session": 12345}, "bad_session", "not given out"),
        ("set", {"stiffness": float("nan"), "damping": 1.0}, "not_finite", "finite"),
        ("pose_body", {"body": "block", "position": [0, 0, float("inf")]}, "not_finite", "finite"),
    ],
)
def test_wrong_requests_change_nothing(bench, op, fields, code, words):
    session = bench.hello()
    bench.post({"v": 1, "id": 4, "op": op, "session": session, **fields})
    reply = bench.answer()
    assert not reply["ok"]
    assert reply["error"]["code"] == code
    assert code in CONTROL_ERRORS
    assert words in reply["error"]["text"]
    assert "\n" not in reply["error"]["text"]
    assert bench.taken() == []


def test_missing_session_is_named(bench):
    assert "needs `session`" in bench.ask("arm", reanchor=True)["error"]["text"]


def test_observers_cannot_lease(bench):
    session = bench.ask("hello", client="eye", versions=[1], roles=["observer"])["session"]
    reply = bench.ask("lease", session=session)
    assert reply["error"]["code"] == "bad_request"
    assert "observer" in reply["error"]["text"]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"", "malformed"),
        (b"\xc1", "malformed"),
        (b"hello", "malformed"),
        (msgpack.packb([1, 2]), "malformed"),
        (msgpack.packb({"v": 2, "id": 3, "op": "hello"}), "version"),
        (msgpack.packb({"v": 1, "id": 3, "op": "status", "x": "y" * 5000}), "too_large"),
        (msgpack.packb({"v": 1, "id": 3, "op": [[[[[[1]]]]]]}), "too_deep"),
        (msgpack.packb({"v": 1, "op": "status"}), "bad_request"),
        (msgpack.packb({"v": 1, "id": "x", "op": "status"}), "bad_request"),
    ],
)
def test_malformed_messages_are_answered_and_counted(bench, message, code):
    bench.post(message)
    reply = bench.answer()
    assert reply["error"]["code"] == code
    assert bench.control.refused == 1
    assert bench.ask("status")["ok"], "the server goes on"


def test_id_comes_back_when_it_could_be_read(bench):
    bench.post(msgpack.packb({"v": 9, "id": 42, "op": "hello"}))
    assert bench.answer()["id"] == 42


def test_req_sockets_get_their_empty_frame_back(bench):
    socket = bench.connect(zmq.REQ)
    bench.post({"v": 1, "id": 1, "op": "describe"}, socket)
    assert bench.answer(socket)["ok"]


def test_messages_of_many_frames_are_thrown_away(bench):
    bench.client.send_multipart([b"x"] * 5000)
    bench.post({"v": 1, "id": 9, "op": "describe"})
    replies = [bench.answer(), bench.answer()]
    assert [reply["ok"] for reply in replies] == [False, True]


def test_status_tells_the_owner_by_name_but_no_session(bench):
    session = bench.hello()
    record = np.zeros(1, RECORD)
    record["tick"], record["output"]["owner"] = 1, session
    bench.ring.write(record)
    status = bench.ask("status")
    assert (status["owner"], status["tick"]) == ("me", 1)
    assert str(session) not in str(status)


def test_shutdown_marks_the_server(bench):
    bench.post({"v": 1, "id": 1, "op": "shutdown"})
    command = bench.command()
    assert not bench.control.stopping
    bench.run_tick(command)
    assert bench.answer()["ok"]
    assert bench.control.stopping
    session = bench.hello()
    assert bench.ask("lease", session=session)["error"]["code"] == "stopping"


def test_addresses_on_a_network_are_not_listened_on():
    with pytest.raises(AddressRefused):
        listen(zmq.Context.instance(), "tcp://0.0.0.0:5999")


def test_form_of_right_requests_passes():
    for op, fields in valid(1).items():
        assert check_form({"v": 1, "id": 1, "op": op, "session": 1, **fields}) == op
    with pytest.raises(Refusal):
        check_form({})
