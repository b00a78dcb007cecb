"""The control socket: hello, lease, arm, stop and the rest, as request and reply with an id.

A request is judged for its form here; whether it is allowed is decided in the tick that takes it, from recorded input,
so that it replays. The answer is read from the record of that tick. Nobody waits for anybody: requests whose tick has
not come yet stand in a table and are answered, or time out, while others are served.
"""

import difflib
import math
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import zmq

from bridge.access import bind
from bridge.keys import KeyPair
from bridge.mailbox import CommandWriter, MailboxFull
from bridge.publisher import name_of, state_message
from bridge.ring import RingReader
from bridge.schema import CONTROL_OPERATIONS, MAX_MESSAGE_BYTES, PROTOCOL_VERSION, QUATERNION_TOLERANCE
from bridge.wire import WireError, pack_control, unpack_control
from haptics.bursts import LONGEST_S
from haptics.cards import LEAST_STIFFNESS
from haptics.states import CommandKind, CommandResult, EngagementState, Reason

COMMAND_TIMEOUT_NS = 500_000_000
MAX_PENDING = 16
"""Commands that may wait for their tick; a stop is taken beyond that."""

MAX_SESSIONS = 256
"""Sessions remembered; of those that neither hold the device nor get it next, the one longest silent makes room."""

MAX_FRAMES = 4
MAX_REQUESTS = 32
"""Served in one go before other work gets its turn."""

_LARGEST_MESSAGE = 1 << 16
"""Bytes; a peer that sends more is disconnected by ZeroMQ, one that sends less but too much is told."""

ROLES = ("owner", "observer")

REASON_CODES = {
    Reason.NOT_OWNER: "not_owner",
    Reason.LEASE_TAKEN: "lease_taken",
    Reason.WRONG_STATE: "wrong_state",
    Reason.BAD_VALUE: "bad_value",
    Reason.TOO_FAR: "too_far",
    Reason.OUTSIDE_WORKSPACE: "outside_workspace",
    Reason.SHUTDOWN: "stopping",
}
"""Error code for the reason with which a tick refuses a command."""

REASON_TEXTS = {
    Reason.NOT_OWNER: "this session does not hold the lease; take it with `lease` first",
    Reason.LEASE_TAKEN: "another session holds the lease; wait until it is released or expires",
    Reason.WRONG_STATE: "not possible in state {state}",
    Reason.BAD_VALUE: "a value is out of range",
    Reason.TOO_FAR: "the device is too far from the tool; move it there or arm with `reanchor` true",
    Reason.OUTSIDE_WORKSPACE: "the device is outside of its workspace; bring it back, or see [workspace] limits",
    Reason.SHUTDOWN: "the daemon is shutting down",
}

FAULT_TEXT = "not possible in state FAULT; `hapticd reset`, or the operation `reset`, leaves it"

POSE_TEXT = (
    "the body stays where it is, as there it would be on or round the tool or a body that moves, or farther away than "
    "1 km"
)
"""Why a pose of a body that is `held` is refused."""


class Refusal(Exception):
    """A request that is not carried out: code and one sentence for the reply."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True)
class Facts:
    """What hello and describe tell about the daemon."""

    name: str
    endpoints: Mapping[str, str]
    clocking: str
    tick_ns: int
    lease_ms: float
    hold_after_ms: float
    stale_after_ms: float
    limits: Mapping[str, float]
    card: Mapping[str, Any]
    scene: Mapping[str, Any]
    """Summary: name, bodies (name, motion), tip_radius, tool, start, start_orientation."""
    config: Mapping[str, Any]
    versions: Mapping[str, Any]
    body_names: tuple[str, ...] = ()


@dataclass
class _Session:
    client: str
    roles: tuple[str, ...]


@dataclass
class _Pending:
    envelope: list[bytes]
    request_id: int
    op: str
    deadline: int
    sessions: tuple[int, ...] = ()
    """Whose command it is, and to whom the device shall go."""
    hands_over: tuple[str, str] | None = None
    """Names of the old owner's client and of the new one's."""
    posted: int = field(default_factory=time.monotonic_ns)


# Keys that each operation takes beside v, id, op: name -> (kind, required).
_SESSION = {"session": ("session", True)}
_ANYONE = {"session": ("session", False)}
_KEYS: dict[str, dict[str, tuple[str, bool]]] = {
    "hello": {
        "client": ("name", True),
        "versions": ("versions", True),
        "roles": ("roles", True),
        "t_client": ("integer", False),
    },
    "describe": _ANYONE,
    "status": _ANYONE,
    "lease": _SESSION,
    "renew": _SESSION,
    "release": _SESSION,
    "hand_over": {**_SESSION, "to": ("name", True)},
    "arm": {**_SESSION, "reanchor": ("flag", False)},
    "disarm": _SESSION,
    "clutch": {**_SESSION, "pressed": ("flag", True)},
    "set": {**_SESSION, "stiffness": ("number", False), "damping": ("number", False), "scale": ("number", False)},
    "vibrate": {
        **_SESSION,
        "amplitude": ("number", True),
        "frequency": ("number", True),
        "duration": ("number", True),
        "decay": ("number", False),
        "direction": ("vector3", False),
    },
    "pose_body": {
        **_SESSION,
        "body": ("text", True),
        "position": ("vector3", True),
        "orientation": ("quaternion", False),
    },
    "stop": _ANYONE,
    "reset": _SESSION,
    "shutdown": _ANYONE,
}
assert set(_KEYS) == set(CONTROL_OPERATIONS)

_KINDS = {
    "session": "the integer from the `hello` reply",
    "text": "a text",
    "name": "a text of printable characters",
    "versions": "a list of integers",
    "roles": f"a list of roles ({', '.join(ROLES)})",
    "integer": "an integer",
    "flag": "true or false",
    "number": "a number",
    "vector3": "three numbers",
    "quaternion": "four numbers [x, y, z, w] of norm 1",
}

_COMMANDS = {
    "lease": CommandKind.LEASE,
    "renew": CommandKind.RENEW,
    "release": CommandKind.RELEASE,
    "arm": CommandKind.ARM,
    "disarm": CommandKind.DISARM,
    "clutch": CommandKind.CLUTCH,
    "vibrate": CommandKind.VIBRATE,
    "pose_body": CommandKind.POSE_BODY,
    "stop": CommandKind.STOP,
    "reset": CommandKind.RESET,
    "shutdown": CommandKind.SHUTDOWN,
}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _fits(kind: str, value: Any) -> bool:
    if kind in ("session", "integer"):
        return type(value) is int
    if kind == "text":
        return type(value) is str and value != ""
    if kind == "name":  # people read it in a terminal, which obeys what cannot be printed
        return type(value) is str and value != "" and value.isprintable()
    if kind == "flag":
        return type(value) is bool
    if kind == "number":
        return _is_number(value)
    if type(value) is not list:
        return False
    if kind == "versions":
        return len(value) > 0 and all(type(item) is int for item in value)
    if kind == "roles":
        return len(value) > 0 and all(item in ROLES for item in value)
    return len(value) == {"vector3": 3, "quaternion": 4}[kind] and all(map(_is_number, value))


def check_form(request: Mapping[str, Any]) -> str:
    """Return the operation of a request whose keys and types are right; raise Refusal with one sentence otherwise."""
    op = request.get("op")
    if type(op) is not str or op not in _KEYS:
        near = difflib.get_close_matches(str(op), CONTROL_OPERATIONS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(CONTROL_OPERATIONS)}"
        raise Refusal("unknown_op", f"`op` is {op!r:.40}, which is no operation{hint}")
    keys = _KEYS[op]
    for key in request:
        if key not in keys and key not in ("v", "id", "op"):
            near = difflib.get_close_matches(key, keys, 1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            raise Refusal("bad_request", f"`{op}` takes no {key!r:.40}{hint}")
    for key, (kind, required) in keys.items():
        if key not in request:
            if required:
                raise Refusal("bad_request", f"`{op}` needs `{key}`: {_KINDS[kind]}")
        elif not _fits(kind, request[key]):
            raise Refusal("bad_request", f"`{key}` of `{op}` must be {_KINDS[kind]}, not {request[key]!r:.60}")
    return op


def listen(context: zmq.Context, endpoint: str, keys: KeyPair | None = None) -> zmq.Socket:
    """A bound control socket, guarded by keys if there are any; raises zmq.ZMQError when the address is taken."""
    socket = context.socket(zmq.ROUTER)
    socket.set(zmq.LINGER, 200)
    socket.set(zmq.MAXMSGSIZE, _LARGEST_MESSAGE)
    socket.set(zmq.SNDHWM, 256)
    try:
        bind(socket, endpoint, keys, "control")
    except zmq.ZMQError:
        socket.close()
        raise
    return socket


class Control:
    """Serves one control socket. `step` never waits."""

    def __init__(
        self,
        socket: zmq.Socket,
        facts: Facts,
        mailbox: CommandWriter,
        reader: RingReader,
        processes: Callable[[], Mapping[str, Any]] = dict,
        timeout_ns: int = COMMAND_TIMEOUT_NS,
        tell: Callable[..., None] | None = None,
    ) -> None:
        """processes: what `status` tells about the daemon's processes; tell: takes a notice (code, text, facts)."""
        self._socket = socket
        self._facts = facts
        self._mailbox = mailbox
        self._reader = reader
        self._processes = processes
        self._timeout_ns = timeout_ns
        self._tell = tell
        self._sessions: OrderedDict[int, _Session] = OrderedDict()
        self._pending: dict[int, _Pending] = {}
        self._next_owner = 0
        """Session to which the device was handed last; it gets it when the forces are off."""
        self._surplus = False
        self.malformed = 0
        """Requests that could not be read."""
        self.refused = 0
        self.stopping = False
        """True from the moment a shutdown was done."""
        self.refused_handshakes: int | None = None
        """Peers whose keys were refused; None where there are no keys."""

    @property
    def waiting(self) -> bool:
        """True while a request waits for its tick: `step` should come again within a millisecond or so."""
        return bool(self._pending)

    def step(self) -> None:
        """Serve what has arrived, answer what the ticks have decided, time out what they have not."""
        for _ in range(MAX_REQUESTS):
            frames = self._receive()
            if frames is None:
                break
            self._serve(*frames)
        if self._pending:
            self._collect()

    # -- requests ----------------------------------------------------------------------------------------------------

    def _receive(self) -> tuple[list[bytes], bytes | None] | None:
        """Next request as (envelope to answer to, payload); payload None for a message of the wrong shape."""
        socket = self._socket
        if self._surplus:
            self._drop_surplus()
        if self._surplus or not int(socket.get(zmq.EVENTS)) & zmq.POLLIN:
            return None
        frames = [socket.recv(zmq.NOBLOCK)]
        while socket.get(zmq.RCVMORE) and len(frames) < MAX_FRAMES:
            frames.append(socket.recv(zmq.NOBLOCK))
        if socket.get(zmq.RCVMORE):
            self._surplus = True
            self._drop_surplus()
            return frames[:1], None
        # A REQ socket puts an empty frame between address and payload, and wants it back.
        if len(frames) == 3 and frames[1] == b"":
            return frames[:2], frames[2]
        return frames[:1], frames[1] if len(frames) == 2 else None

    def _drop_surplus(self) -> None:
        for _ in range(1000):
            if not self._socket.get(zmq.RCVMORE):
                self._surplus = False
                return
            self._socket.recv(zmq.NOBLOCK)

    def _serve(self, envelope: list[bytes], payload: bytes | None) -> None:
        received = time.monotonic_ns()
        request_id: int | None = None
        try:
            if payload is None:
                raise WireError("malformed", "a request is one frame")
            if len(payload) > MAX_MESSAGE_BYTES:
                raise WireError("too_large", f"{len(payload)} bytes, {MAX_MESSAGE_BYTES} are allowed")
            request = unpack_control(payload)
            found = request.get("id")
            if type(found) is not int or not -(1 << 63) <= found < 1 << 64:
                raise Refusal("bad_request", "`id` must be an integer that the reply repeats")
            request_id = found
            op = check_form(request)
            self._carry_out(op, request, envelope, request_id, received)
        except WireError as error:
            self.malformed += 1
            request_id = error.request_id
            # Without an id nobody could tell what is being answered; id 0 stands for "the message that was not read".
            self._refuse(envelope, 0 if request_id is None else request_id, error.code, error.text)
        except Refusal as refusal:
            self._refuse(envelope, request_id or 0, refusal.code, refusal.text)

    def _carry_out(
        self, op: str, request: Mapping[str, Any], envelope: list[bytes], request_id: int, received: int
    ) -> None:
        if op == "hello":
            self._answer(envelope, request_id, self._hello(request, received))
        elif op == "describe":
            self._answer(envelope, request_id, self._describe())
        elif op == "status":
            self._answer(envelope, request_id, self._status())
        else:
            self._command(op, request, envelope, request_id)

    def _hello(self, request: Mapping[str, Any], received: int) -> dict[str, Any]:
        if PROTOCOL_VERSION not in request["versions"]:
            raise Refusal("version", f"this daemon speaks version {PROTOCOL_VERSION}, the client {request['versions']}")
        session = 0
        while session == 0 or session in self._sessions:
            session = secrets.randbits(63)
        if len(self._sessions) >= MAX_SESSIONS:
            self._make_room()
        self._sessions[session] = _Session(request["client"], tuple(request["roles"]))
        facts = self._facts
        return {
            "session": session,
            "version": PROTOCOL_VERSION,
            "name": facts.name,
            "tick_ns": facts.tick_ns,
            "clocking": facts.clocking,
            "endpoints": dict(facts.endpoints),
            "limits": dict(facts.limits),
            "card": dict(facts.card),
            "scene": dict(facts.scene),
            "lease_ms": facts.lease_ms,
            "hold_after_ms": facts.hold_after_ms,
            "stale_after_ms": facts.stale_after_ms,
            "t_received": received,
            "t_sent": time.monotonic_ns(),
        }

    def _make_room(self) -> None:
        """Forget a session: an observer if there is one, never the owner's and none whose command is under way.

        An owner that only sends samples asks for nothing here, so it looks silent.
        """
        needed = {number for pending in self._pending.values() for number in pending.sessions}
        newest = self._reader.newest()
        if newest is not None:
            needed.add(int(newest["output"]["owner"]))
            if newest["output"]["state"] == EngagementState.RELEASING:
                needed.add(self._next_owner)
        free = [number for number in self._sessions if number not in needed]
        watching = (number for number in free if "owner" not in self._sessions[number].roles)
        del self._sessions[next(watching, free[0])]

    def _describe(self) -> dict[str, Any]:
        facts = self._facts
        return {
            "name": facts.name,
            "clocking": facts.clocking,
            "tick_ns": facts.tick_ns,
            "endpoints": dict(facts.endpoints),
            "limits": dict(facts.limits),
            "card": dict(facts.card),
            "scene": dict(facts.scene),
            "config": dict(facts.config),
            "versions": dict(facts.versions),
            "pid": os.getpid(),
        }

    def _status(self) -> dict[str, Any]:
        newest = self._reader.newest()
        header = self._reader.header
        owner = 0 if newest is None else int(newest["output"]["owner"])
        holder = self._sessions.get(owner)
        return {
            "name": self._facts.name,
            "pid": os.getpid(),
            "tick": 0 if newest is None else int(newest["tick"]),
            "state": 0 if newest is None else int(newest["output"]["state"]),
            "state_name": name_of(EngagementState, 0 if newest is None else newest["output"]["state"]),
            "reason_name": name_of(Reason, 0 if newest is None else newest["output"]["reason"]),
            "owner": None if owner == 0 else (holder.client if holder else "unknown"),
            "newest": None if newest is None else state_message(newest),
            "counters": {
                name: getattr(header, name)
                for name in ("missed", "rejected", "dropped", "tick_ns_max", "lateness_ns_max", "compiles")
            }
            | {"malformed_requests": self.malformed, "refused_requests": self.refused, "sessions": len(self._sessions)}
            | ({} if self.refused_handshakes is None else {"refused_handshakes": self.refused_handshakes}),
            "readers": self._reader.readers(),
            "processes": dict(self._processes()),
        }

    def _command(self, op: str, request: Mapping[str, Any], envelope: list[bytes], request_id: int) -> None:
        urgent = op in ("stop", "shutdown")
        session = request.get("session", 0)
        if not urgent:
            if session not in self._sessions:
                text = "`session` was not given out by `hello` of this daemon, or has made room for newer ones"
                raise Refusal("bad_session", text)
            if self.stopping:
                raise Refusal("stopping", "the daemon is shutting down")
            if len(self._pending) >= MAX_PENDING:
                raise Refusal("busy", f"{MAX_PENDING} requests wait for the servo; try again")
        if session in self._sessions:
            self._sessions.move_to_end(session)
            if op == "lease" and "owner" not in self._sessions[session].roles:
                raise Refusal("bad_request", "this session asked for the role of an observer only in `hello`")
        else:
            session = 0
        heir = 0
        if op == "hand_over":
            heir = self._heir(session, request["to"])
            kind, values = CommandKind.HAND_OVER, [float(heir >> 32), float(heir & 0xFFFFFFFF)]
        else:
            kind, values = self._values(op, request)
        if not self._pending:
            # Nothing waited: records before this moment cannot hold the answer.
            self._reader.seek_newest()
        try:
            command_id = self._mailbox.post(kind, session, values)
        except MailboxFull:
            raise Refusal("busy", "the servo does not take commands") from None
        parties = (self._sessions[session].client, request["to"]) if op == "hand_over" else None
        deadline = time.monotonic_ns() + self._timeout_ns
        self._pending[command_id] = _Pending(envelope, request_id, op, deadline, (session, heir), parties)

    def _heir(self, session: int, name: str) -> int:
        """The session of that client which may own the device; of several the one heard from last."""
        others = [(number, each) for number, each in self._sessions.items() if number != session]
        able = [number for number, each in others if each.client == name and "owner" in each.roles]
        if able:
            return able[-1]
        if any(each.client == name for _, each in others):
            raise Refusal("bad_value", f"`to`: {name!r:.60} asked for the role of an observer only in `hello`")
        near = difflib.get_close_matches(name, [each.client for _, each in others], 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise Refusal("bad_value", f"`to`: no other session is of a client named {name!r:.60}{hint}")

    def _values(self, op: str, request: Mapping[str, Any]) -> tuple[CommandKind, list[float]]:
        if op == "set":
            return self._set_values(request)
        if op == "arm":
            return CommandKind.ARM, [float(request.get("reanchor", False))]
        if op == "clutch":
            return CommandKind.CLUTCH, [float(request["pressed"])]
        if op == "vibrate":
            return CommandKind.VIBRATE, self._burst_values(request)
        if op == "pose_body":
            return CommandKind.POSE_BODY, self._pose_values(request)
        return _COMMANDS[op], []

    def _set_values(self, request: Mapping[str, Any]) -> tuple[CommandKind, list[float]]:
        given = [key for key in ("stiffness", "damping", "scale") if key in request]
        if given == ["scale"]:
            if request["scale"] <= 0:
                raise Refusal("bad_value", f"`scale` must be above 0, not {request['scale']}")
            return CommandKind.SET_SCALE, [float(request["scale"])]
        if given == ["stiffness", "damping"]:
            if self._facts.card.get("actuated") == 0:
                raise Refusal("bad_value", "the device is input only: it feels nothing and has no gains to set")
            if request["stiffness"] < LEAST_STIFFNESS or request["damping"] < 0:
                least = f"{LEAST_STIFFNESS:g} N/m"
                raise Refusal("bad_value", f"`stiffness` must be at least {least} and `damping` not below 0 N·s/m")
            return CommandKind.SET_GAINS, [float(request["stiffness"]), float(request["damping"])]
        raise Refusal("bad_request", "`set` takes either `stiffness` and `damping` together, or `scale` alone")

    def _burst_values(self, request: Mapping[str, Any]) -> list[float]:
        if self._facts.card.get("actuated") == 0:
            raise Refusal("bad_value", "the device is input only: it feels nothing")
        for key in ("amplitude", "frequency", "duration"):
            if request[key] <= 0.0:
                raise Refusal("bad_value", f"`{key}` must be above 0, not {request[key]}")
        if request["duration"] > LONGEST_S:
            raise Refusal("bad_value", f"`duration` must be at most {LONGEST_S:g} s, not {request['duration']}")
        if request.get("decay", 0.0) < 0.0:
            raise Refusal("bad_value", f"`decay` must not be below 0 s, {request['decay']} is")
        direction = [float(value) for value in request.get("direction", (0.0, 0.0, 1.0))]
        norm = math.hypot(*direction)
        if norm == 0.0:
            raise Refusal("bad_value", "`direction` must not be zero")
        numbers = [float(request[key]) for key in ("amplitude", "frequency", "duration")]
        return [*numbers, float(request.get("decay", 0.0)), *(value / norm for value in direction)]

    def _pose_values(self, request: Mapping[str, Any]) -> list[float]:
        names = self._facts.body_names
        if request["body"] not in names:
            near = difflib.get_close_matches(request["body"], names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise Refusal("bad_value", f"the scene has no body named {request['body']!r}{hint}")
        bodies = self._facts.scene.get("bodies", ())
        motion = next((each["motion"] for each in bodies if each["name"] == request["body"]), "held")
        if motion != "held":
            raise Refusal("bad_value", f"the body {request['body']!r} is {motion}; only one that is held can be posed")
        orientation = [float(value) for value in request.get("orientation", (0.0, 0.0, 0.0, 1.0))]
        norm = math.sqrt(sum(value * value for value in orientation))
        if abs(norm - 1.0) > QUATERNION_TOLERANCE:
            raise Refusal(
                "bad_value", f"`orientation` has norm {norm:.6g}; 1 is needed, within {QUATERNION_TOLERANCE:g}"
            )
        position = [float(value) for value in request["position"]]
        return [float(names.index(request["body"])), *position, *(value / norm for value in orientation)]

    # -- replies -----------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        while True:
            records, _ = self._reader.read(512)
            if not len(records):
                break
            ids = records["output"]["command_id"]
            for row in ids.nonzero()[0].tolist():
                pending = self._pending.pop(int(ids[row]), None)
                if pending is not None:
                    self._decided(pending, records[row])
        now = time.monotonic_ns()
        for command_id in [number for number, pending in self._pending.items() if now >= pending.deadline]:
            pending = self._pending.pop(command_id)
            waited = (now - pending.posted) // 1_000_000
            text = f"the servo did not take `{pending.op}` within {waited} ms; it may still do so"
            self._refuse(pending.envelope, pending.request_id, "timeout", text)

    def _decided(self, pending: _Pending, record: Any) -> None:
        output = record["output"]
        state = name_of(EngagementState, output["state"])
        after = {"tick": int(record["tick"]), "state": int(output["state"]), "state_name": state}
        if output["command_result"] == CommandResult.DONE:
            if pending.op == "shutdown":
                self.stopping = True
            if pending.hands_over is not None:
                self._next_owner = pending.sessions[1]
            if pending.hands_over is not None and self._tell is not None:
                giver, taker = pending.hands_over
                text = f"{giver!r:.60} hands the device over to {taker!r:.60}"
                self._tell("handed_over", text, tick=int(record["tick"]), giver=giver, taker=taker)
            self._answer(pending.envelope, pending.request_id, after)
            return
        reason = int(output["command_reason"])
        code = REASON_CODES.get(reason, "wrong_state")  # type: ignore[call-overload]
        text = REASON_TEXTS.get(reason, f"refused: {name_of(Reason, reason)}")  # type: ignore[call-overload]
        if reason == Reason.WRONG_STATE and output["state"] == EngagementState.FAULT:
            text = FAULT_TEXT
        elif reason == Reason.BAD_VALUE and pending.op == "pose_body":
            text = POSE_TEXT
        self._refuse(pending.envelope, pending.request_id, code, f"`{pending.op}`: {text.format(state=state)}", after)

    def _answer(self, envelope: list[bytes], request_id: int, fields: Mapping[str, Any]) -> None:
        self._send(envelope, {"v": PROTOCOL_VERSION, "id": request_id, "ok": True, **fields})

    def _refuse(
        self, envelope: list[bytes], request_id: int, code: str, text: str, extra: Mapping[str, Any] | None = None
    ) -> None:
        self.refused += 1
        error = {"code": code, "text": text}
        self._send(envelope, {"v": PROTOCOL_VERSION, "id": request_id, "ok": False, "error": error, **(extra or {})})

    def _send(self, envelope: list[bytes], reply: Mapping[str, Any]) -> None:
        # A client that is gone, or does not read, loses its reply: ROUTER drops it instead of waiting.
        self._socket.send_multipart([*envelope, pack_control(reply)], zmq.NOBLOCK)
