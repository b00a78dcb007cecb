"""What comes over sockets and shared memory: samples, renders, peer messages, requests, replies, notices, commands."""

import math
import random
import struct
import tempfile
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from bridge.access import read_question
from bridge.client import HapticdError, check_greeting
from bridge.control import Refusal, check_form
from bridge.mailbox import CommandReader, CommandWriter, create_mailbox
from bridge.notices import read_notice
from bridge.ring import RingError
from bridge.schema import (
    CONTROL_OPERATIONS,
    MAX_ACTIVE,
    MAX_CARRIED,
    MAX_COORDINATE,
    MAX_IMPEDANCE,
    MAX_LAW,
    MAX_METHOD,
    MAX_MIRROR,
    MAX_NESTING,
    MAX_OFFSET,
    MAX_RATE,
    MAX_SCALE,
    MAX_TIME,
    MAX_WRENCH,
    PEER_FIELDS,
    RENDER_FIELDS,
    REPLY_MAX_NESTING,
    SAMPLE_FIELDS,
    Field,
    Reject,
)
from bridge.wire import (
    PEER_HELLO,
    PEER_STRUCT,
    WireError,
    decode_peer,
    decode_render,
    decode_sample,
    encode_peer,
    encode_sample,
    unpack_control,
)
from bridge.wire.layout import RENDER_PACKER, RENDER_STRUCT, SAMPLE_STRUCT
from haptics.states import CommandKind
from haptics.tables import COMMAND, MAX_PLANES, PEER, SAMPLE
from tools.fuzz.mutations import (
    WRONG,
    Made,
    Pairs,
    hostile,
    lengthen,
    noise,
    one_of,
    pack,
    scatter,
    shorten,
    spoil_map,
)
from tools.fuzz.target import Refused, Target

BAD_NUMBERS = (math.nan, math.inf, -math.inf, 1e300, -1e300)

# -- samples -----------------------------------------------------------------------------------------------------------

GOOD_SAMPLE: dict[str, Any] = {
    "v": 1,
    "kind": 1,
    "session": 12345678901234567,
    "seq": 7,
    "t_sample": 1_000_000_000,
    "position": [0.1, -0.2, 0.25],
    "orientation": [0.0, 0.0, 0.6, 0.8],
    "twist": [0.1, 0.0, 0.0, 0.0, 0.0, 1.0],
    "buttons": 3,
    "deadman": 1,
    "valid": 1,
}
SAMPLE_BYTES = encode_sample(**{k: v for k, v in GOOD_SAMPLE.items() if k not in ("v", "kind")})
SAMPLE_MAPS = (
    pack(GOOD_SAMPLE),
    pack({k: v for k, v in GOOD_SAMPLE.items() if k not in ("twist", "buttons", "deadman", "valid")}),
)
_LIMITS = {"session": (1, (1 << 63) - 1), "seq": (1, (1 << 64) - 1), "t_sample": (0, (1 << 62) - 1)}
_LIMITS |= {"buttons": (0, (1 << 32) - 1), "deadman": (0, 1), "valid": (0, 1)}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _sample_takes(key: str, value: Any) -> bool:
    """Does the document allow this value for this key of a sample?"""
    if key in ("v", "kind"):
        return type(value) is int and value == 1
    if key in _LIMITS:
        low, high = _LIMITS[key]
        return type(value) is int and low <= value <= high
    count, most = {"position": (3, MAX_COORDINATE), "orientation": (4, MAX_COORDINATE), "twist": (6, MAX_RATE)}[key]
    good = type(value) is list and len(value) == count and all(_is_number(x) and abs(x) <= most for x in value)
    return good and (key != "orientation" or abs(math.hypot(*value) - 1.0) <= 1e-3)


def _sample_of_wrong_values(rng: random.Random) -> Made:
    key = rng.choice(list(GOOD_SAMPLE))
    good = GOOD_SAMPLE[key]
    way = rng.randrange(4)
    if way == 0 and isinstance(good, list):
        value: Any = [*good]
        value[rng.randrange(len(good))] = rng.choice((*BAD_NUMBERS, *WRONG[:6], 1e4))
    elif way == 1 and isinstance(good, list):
        value = good[:-1] if rng.random() < 0.5 else [*good, 0.0]
    elif way == 2:
        return pack({**GOOD_SAMPLE, rng.choice(("sesion", "x", "Position", "deadman ")): good}), True
    elif way == 3 and key not in ("twist", "buttons", "deadman", "valid"):
        return pack({k: v for k, v in GOOD_SAMPLE.items() if k != key}), True
    else:
        value = rng.choice(WRONG)
    return pack({**GOOD_SAMPLE, key: value}), not _sample_takes(key, value)


def _wrong_struct(rng: random.Random, good: bytes, dtype: np.dtype, fields: tuple[Field, ...], known_bits: int) -> Made:
    """A struct with one number in it that its reader must refuse."""
    message = bytearray(good)
    way = rng.randrange(6)
    if way < 3:
        field = rng.choice([field for field in fields if field.kind == "f8"])
        at = dtype.fields[field.name][1] + 8 * rng.randrange(field.count)  # type: ignore[index]
        struct.pack_into("<d", message, at, rng.choice(BAD_NUMBERS[:3]))
    elif way == 3:
        at = rng.randrange(1, 4)
        message[at] = rng.choice([value for value in range(256) if value != good[at]])
    elif way == 4:
        bit = rng.choice([bit for bit in range(32) if not known_bits >> bit & 1])
        message[4 + bit // 8] |= 1 << bit % 8
    else:
        return lengthen(rng, good) if rng.random() < 0.5 else shorten(rng, good)
    return bytes(message), True


_SAMPLES = np.zeros(1, SAMPLE)
_UNTOUCHED = np.zeros(1, SAMPLE)
_UNTOUCHED.view(np.uint8)[:] = 0x5A
_UNTOUCHED_BYTES = _UNTOUCHED.tobytes()


def _read_sample(message: bytes) -> np.ndarray:
    _SAMPLES[:] = _UNTOUCHED
    code = decode_sample(message, _SAMPLES)
    if code != Reject.NONE:
        if _SAMPLES.tobytes() != _UNTOUCHED_BYTES:
            raise AssertionError("a refused sample was written")
        raise Refused
    return _SAMPLES


def _unsound_sample(samples: np.ndarray) -> str:
    row = samples[0]
    if not (np.isfinite(row["position"]).all() and np.isfinite(row["twist"]).all()):
        return "not finite"
    if np.abs(row["position"]).max() > MAX_COORDINATE or np.abs(row["twist"]).max() > MAX_RATE:
        return "out of range"
    if not abs(np.linalg.norm(row["orientation"]) - 1.0) < 1e-12:
        return "no unit quaternion"
    whole = 0 < row["session"] < 1 << 63 and row["seq"] > 0 and 0 <= row["t_sample"] < 1 << 62
    return "" if whole and row["deadman"] <= 1 and row["valid"] <= 1 else "out of range"


# -- renders -----------------------------------------------------------------------------------------------------------


def _good_render() -> dict[str, Any]:
    values: dict[str, Any] = {"v": 1, "kind": 2}
    for number, field in enumerate(RENDER_FIELDS):
        one: Any = 0.25 + number if field.kind == "f8" else number + 1
        values[field.name] = one if field.count == 1 else [one] * field.count
    return {**values, "plane_count": 2, "pinned": 0}


GOOD_RENDER = _good_render()
RENDER_MAP = pack(GOOD_RENDER)


def _render_struct() -> bytes:
    numbers: list[Any] = []
    for field in RENDER_FIELDS:
        value = GOOD_RENDER[field.name]
        numbers += value if field.count > 1 else [value]
    return RENDER_PACKER.pack(0xC1, 1, 2, 0, 0, *numbers)


RENDER_BYTES = _render_struct()
_RANGES = {"u1": (0, 255), "u8": (0, (1 << 64) - 1), "i8": (-(1 << 63), (1 << 63) - 1)}
_RENDER_RANGES = {"plane_count": (0, MAX_PLANES), "pinned": (0, 1)}


def _render_takes(field: Field, value: Any) -> bool:
    items = value if field.count > 1 else [value]
    if type(items) is not list or len(items) != field.count:
        return False
    if field.kind == "f8":
        return all(_is_number(x) and math.isfinite(x) for x in items)
    low, high = _RENDER_RANGES.get(field.name, _RANGES[field.kind])
    return all(type(x) is int and low <= x <= high for x in items)


def _render_of_wrong_values(rng: random.Random) -> Made:
    field = rng.choice(RENDER_FIELDS)
    value = rng.choice((*WRONG, *BAD_NUMBERS[:3], 1 << 40, -(1 << 63)))
    if field.count > 1 and rng.random() < 0.5:
        items = [*GOOD_RENDER[field.name]]
        items[rng.randrange(field.count)] = value
        value = items
    return pack({**GOOD_RENDER, field.name: value}), not _render_takes(field, value)


def _unsound_render(render: Any) -> str:
    for field in RENDER_FIELDS:
        value = getattr(render, field.name)
        if not _render_takes(field, list(value) if field.count > 1 else int(value) if field.kind != "f8" else value):
            return f"{field.name} is {value!r:.60}"
    return ""


# -- peer messages -----------------------------------------------------------------------------------------------------


def _good_peer() -> bytes:
    peers = np.zeros(1, PEER)
    peers["seq"] = 7
    peers["position"], peers["orientation"] = (0.1, -0.2, 0.3), (0.0, 0.0, 0.6, 0.8)
    peers["twist"], peers["wrench"], peers["wave"] = 0.25, -1.5, 1e-3
    peers["wave_energy"] = peers["energy"] = 0.125
    peers["impedance"], peers["method"], peers["active"] = (10.0, 0.01), 1, 1
    peers["scale"], peers["share"], peers["law"], peers["mirror"] = 2.0, 0.25, 3, 1
    peers["begun"], peers["align_speed"] = 2, 0.05
    peers["offset_position"], peers["offset_orientation"] = (-0.5, 0.25, 0.1), (0.0, 0.8, 0.0, 0.6)
    return encode_peer(peers, 12345678901234567, 1_000_000_000, 999_000_000, 400_000)


PEER_BYTES = _good_peer()
_PEER_FLOATS = {
    "position": MAX_COORDINATE,
    "orientation": 1.001,
    "twist": MAX_RATE,
    "wrench": MAX_WRENCH,
    "wave": MAX_CARRIED,
    "wave_energy": MAX_CARRIED,
    "energy": MAX_CARRIED,
    "impedance": MAX_IMPEDANCE,
    "scale": MAX_SCALE,
    "share": 1.0,
    "offset_position": MAX_OFFSET,
    "offset_orientation": 1.001,
    "align_speed": MAX_RATE,
}
_NOT_NEGATIVE = ("wave_energy", "energy", "impedance", "scale", "share", "align_speed")
_PEER_WHOLE = {
    "session": ("<Q", (0, 1 << 63, (1 << 64) - 1)),
    "seq": ("<Q", (0,)),
    **dict.fromkeys(("t_sent", "t_echo", "t_held"), ("<q", (-1, MAX_TIME, (1 << 63) - 1, -(1 << 63)))),
    "method": ("<B", tuple(range(MAX_METHOD + 1, 256))),
    "active": ("<B", tuple(range(MAX_ACTIVE + 1, 256))),
    "law": ("<B", tuple(range(MAX_LAW + 1, 256))),
    "mirror": ("<B", tuple(range(MAX_MIRROR + 1, 256))),
}
_PEERS = np.zeros(1, PEER)
_UNTOUCHED_PEER = np.zeros(1, PEER)
_UNTOUCHED_PEER.view(np.uint8)[:] = 0x5A
_UNTOUCHED_PEER_BYTES = _UNTOUCHED_PEER.tobytes()


def _peer_of_wrong_values(rng: random.Random) -> Made:
    message = bytearray(PEER_BYTES)
    if rng.random() < 0.4:
        name = rng.choice(list(_PEER_WHOLE))
        form, values = _PEER_WHOLE[name]
        struct.pack_into(form, message, PEER_STRUCT.fields[name][1], rng.choice(values))  # type: ignore[index]
        return bytes(message), True
    field = rng.choice([field for field in PEER_FIELDS if field.kind == "f8"])
    wrong = [math.nextafter(_PEER_FLOATS[field.name], math.inf), 1e300, -1e300]
    if field.name in _NOT_NEGATIVE:
        wrong += [-5e-324, -1.0]
    at = PEER_STRUCT.fields[field.name][1] + 8 * rng.randrange(field.count)  # type: ignore[index]
    struct.pack_into("<d", message, at, rng.choice(wrong))
    return bytes(message), True


def _read_peer(message: bytes) -> np.ndarray:
    _PEERS[:] = _UNTOUCHED_PEER
    if decode_peer(message, _PEERS) != Reject.NONE:
        if _PEERS.tobytes() != _UNTOUCHED_PEER_BYTES:
            raise AssertionError("a refused peer message was written")
        raise Refused
    return _PEERS


def _unsound_peer(peers: np.ndarray) -> str:
    row = peers[0]
    for name, most in _PEER_FLOATS.items():
        if not (np.abs(row[name]) <= most).all() or (name in _NOT_NEGATIVE and (row[name] < 0.0).any()):
            return f"{name} is out of range"
    if any(not abs(np.linalg.norm(row[name]) - 1.0) < 1e-12 for name in ("orientation", "offset_orientation")):
        return "no unit quaternion"
    times = all(0 <= row[name] < MAX_TIME for name in ("t_sent", "t_echo", "t_held"))
    whole = 0 < row["session"] < 1 << 63 and row["seq"] > 0 and times
    codes = row["method"] <= MAX_METHOD and row["active"] <= MAX_ACTIVE
    codes = codes and row["law"] <= MAX_LAW and row["mirror"] <= MAX_MIRROR
    return "" if whole and codes else "out of range"


# -- control, state and events -----------------------------------------------------------------------------------------

REQUESTS: tuple[dict[str, Any], ...] = (
    {"op": "hello", "client": "me", "versions": [1], "roles": ["owner"], "t_client": 5},
    {"op": "describe"},
    {"op": "status", "session": 5},
    {"op": "lease", "session": 1 << 60},
    {"op": "arm", "session": 5, "reanchor": True},
    {"op": "clutch", "session": 5, "pressed": False},
    {"op": "set", "session": 5, "stiffness": 300.0, "damping": 1.0},
    {"op": "vibrate", "session": 5, "amplitude": 0.5, "frequency": 150.0, "duration": 0.1, "decay": 0.02},
    {"op": "pose_body", "session": 5, "body": "a", "position": [0.0, 0.0, 1.0], "orientation": [0.0, 0.0, 0.0, 1.0]},
    {"op": "stop"},
)
GOOD_REQUESTS = tuple({"v": 1, "id": 77, **request} for request in REQUESTS)
REQUEST_BYTES = tuple(map(pack, GOOD_REQUESTS))


def _read_request(message: bytes) -> dict[str, Any]:
    request = unpack_control(message)
    check_form(request)
    return request


def _request_of_wrong_form(rng: random.Random) -> Made:
    request = {**rng.choice(GOOD_REQUESTS)}
    key = rng.choice(list(request))
    way = rng.randrange(3)
    if way == 0:
        request[rng.choice(("sesion", "x", "Op"))] = 1
    elif way == 1 and key in ("v", "op"):
        del request[key]
    else:
        request["op"] = rng.choice(("fly", "", 1, None, ["lease"], "LEASE", "hello "))
    return pack(request), True


def _unsound_map(value: Any, deepest: int) -> str:
    """Why a decoded map is not fit to be used: numbers that are not finite, other keys than texts, too deep."""
    waiting = [(value, 1)]
    while waiting:
        found, depth = waiting.pop()
        if type(found) is float and not math.isfinite(found):
            return "not finite"
        if type(found) in (dict, list):
            if depth > deepest:
                return "too deep"
            if type(found) is dict and any(type(key) is not str for key in found):
                return "a key is no text"
            waiting += [(item, depth + 1) for item in (found.values() if type(found) is dict else found)]
        elif found is not None and type(found) not in (bool, int, float, str):
            return f"a {type(found).__name__}"
    return ""


def _unsound_request(request: Any) -> str:
    if request.get("op") not in CONTROL_OPERATIONS:
        return "no operation"
    return _unsound_map(request, MAX_NESTING)


GREETING: dict[str, Any] = {
    "v": 1,
    "id": 1,
    "ok": True,
    "session": 5,
    "version": 1,
    "tick_ns": 1_000_000,
    "clocking": "free",
    "endpoints": {name: f"tcp://127.0.0.1:555{i}" for i, name in enumerate(("device", "control", "state", "events"))},
    "limits": {"force_max": 3.3},
    "t_received": 1 << 50,
    "t_sent": (1 << 50) + 1000,
}
STATE: dict[str, Any] = {
    "v": 1,
    "tick": 5,
    "state_name": "ACTIVE",
    "wrench": [0.0] * 6,
    "contacts": [{"point": [0.0, 0.0, 1.0], "gap": 1e-4, "body_id": 0, "sliding": True}] * 3,
    "degraded": ["sweep"],
}
EVENT: dict[str, Any] = {"v": 1, "source": "servo", "seq": 3, "code": "state_changed", "text": "ACTIVE -> HOLD"}
REPLIES = (GREETING, STATE, EVENT, {"v": 1, "id": 3, "ok": False, "error": {"code": "busy", "text": "later"}})
REPLY_BYTES = tuple(map(pack, REPLIES))


def _greeting_of_wrong_values(rng: random.Random) -> Made:
    key = rng.choice(("session", "tick_ns", "clocking", "endpoints", "t_received", "t_sent"))
    value = rng.choice((None, True, "", [], ["a"], {"device": 1}, {"device": {}}, 1.5, -(1 << 63)))
    fits = type(value) is int and key in ("t_received", "t_sent")
    return pack({**GREETING, key: value}), not fits


def _read_greeting(message: bytes) -> dict[str, Any]:
    greeting = unpack_control(message, reply=True)
    check_greeting(greeting)
    return greeting


def _unsound_greeting(greeting: Any) -> str:
    if not (greeting["tick_ns"] > 0 and 0 < greeting["session"] < 1 << 63):
        return "out of range"
    ends = greeting.get("endpoints", {})
    return "" if all(type(text) is str for item in ends.items() for text in item) else "addresses that are no texts"


# -- notices, questions, commands --------------------------------------------------------------------------------------

NOTICE: dict[str, Any] = {
    "source": "recorder",
    "code": "disk_full",
    "text": "no room",
    "t": 5,
    "sender": "a1",
    "count": 3,
    "lost": 7,
}
QUESTION = [b"1.0", b"7", b"device", b"127.0.0.1", b"", b"CURVE", bytes(range(32))]


def _question(rng: random.Random) -> Made:
    frames = [scatter(rng, QUESTION)[0] if rng.random() < 0.3 else frame for frame in QUESTION]
    if rng.random() < 0.5:
        frames = frames[: rng.randrange(len(frames))] + [rng.randbytes(rng.randrange(50))] * rng.choice((0, 1, 30))
    good = len(frames) == 7 and frames[0] == b"1.0" and frames[5] == b"CURVE" and len(frames[6]) == 32
    return msgpack.packb(frames), not good


def _read_question(message: bytes) -> Any:
    question = read_question(msgpack.unpackb(message))
    if question is None or not question.key:
        raise Refused
    return question


_DIRECTORY = tempfile.TemporaryDirectory(prefix="hapticd-fuzz-")


def scratch(name: str) -> Path:
    """A file of this process for what is read from files."""
    return Path(_DIRECTORY.name) / name


def _mailbox_bytes() -> bytes:
    path = scratch("mailbox")
    create_mailbox(path)
    writer = CommandWriter(path)
    writer.post(CommandKind.LEASE, 5)
    writer.post(CommandKind.STOP)
    writer.close()
    return path.read_bytes()


def _spoiled_mailbox(rng: random.Random) -> Made:
    good = _MAILBOX or _MAILBOX.append(_mailbox_bytes()) or _MAILBOX
    message = bytearray(good[0])
    way = rng.randrange(4)
    if way == 0:
        return shorten(rng, good[0])
    if way == 1:
        message[rng.randrange(12)] ^= 1 << rng.randrange(8)
        return bytes(message), True
    at = 8 * rng.choice((2, 8, 12, 16, 20)) if way == 2 else 256 + rng.randrange(len(message) - 264)
    message[at : at + 8] = rng.choice((b"\xff" * 8, bytes(8), rng.randbytes(8)))
    return bytes(message), False


_MAILBOX: list[bytes] = []


def _read_mailbox(message: bytes) -> np.ndarray:
    path = scratch("spoiled-mailbox")
    path.write_bytes(message)
    reader = CommandReader(path)
    into = np.zeros(1, COMMAND)
    try:
        for _ in range(200):  # a servo takes one per tick and must come back from each
            if not reader.take(into):
                break
    finally:
        reader.close()
    return into


TARGETS = (
    Target(
        "sample_struct",
        180,
        one_of(
            lambda rng: _wrong_struct(rng, SAMPLE_BYTES, SAMPLE_STRUCT, SAMPLE_FIELDS, 0b1111),
            lambda rng: scatter(rng, (SAMPLE_BYTES,)),
            noise,
        ),
        _read_sample,
        (Refused,),
        _unsound_sample,
    ),
    Target(
        "sample_map",
        240,
        one_of(
            _sample_of_wrong_values,
            lambda rng: spoil_map(rng, GOOD_SAMPLE, MAX_NESTING),
            lambda rng: scatter(rng, SAMPLE_MAPS),
            noise,
        ),
        _read_sample,
        (Refused,),
        _unsound_sample,
    ),
    Target(
        "request",
        180,
        one_of(
            _request_of_wrong_form,
            lambda rng: spoil_map(rng, rng.choice(GOOD_REQUESTS), MAX_NESTING),
            lambda rng: scatter(rng, REQUEST_BYTES),
            noise,
        ),
        _read_request,
        (WireError, Refusal),
        _unsound_request,
    ),
    Target(
        "reply_state_event",
        100,
        one_of(
            lambda rng: spoil_map(rng, rng.choice(REPLIES), REPLY_MAX_NESTING),
            lambda rng: scatter(rng, REPLY_BYTES),
            noise,
        ),
        lambda message: unpack_control(message, reply=True),
        (WireError,),
        lambda fields: _unsound_map(fields, REPLY_MAX_NESTING),
    ),
    Target(
        "greeting",
        40,
        one_of(_greeting_of_wrong_values, lambda rng: scatter(rng, REPLY_BYTES[:1])),
        _read_greeting,
        (WireError, HapticdError),
        _unsound_greeting,
    ),
    Target(
        "render_struct",
        60,
        one_of(
            lambda rng: _wrong_struct(rng, RENDER_BYTES, RENDER_STRUCT, RENDER_FIELDS, 0),
            lambda rng: scatter(rng, (RENDER_BYTES,)),
            noise,
        ),
        decode_render,
        (WireError,),
        _unsound_render,
    ),
    Target(
        "peer",
        120,
        one_of(
            _peer_of_wrong_values,
            lambda rng: _wrong_struct(rng, PEER_BYTES, PEER_STRUCT, PEER_FIELDS, 0),
            lambda rng: scatter(rng, (PEER_BYTES, PEER_HELLO)),
            noise,
        ),
        _read_peer,
        (Refused,),
        _unsound_peer,
    ),
    Target(
        "render_map",
        90,
        one_of(
            _render_of_wrong_values,
            lambda rng: spoil_map(rng, GOOD_RENDER, MAX_NESTING),
            lambda rng: scatter(rng, (RENDER_MAP,)),
            noise,
        ),
        decode_render,
        (WireError,),
        _unsound_render,
    ),
    Target(
        "notice",
        20,
        one_of(lambda rng: spoil_map(rng, NOTICE, REPLY_MAX_NESTING), lambda rng: scatter(rng, (pack(NOTICE),)), noise),
        read_notice,
        (WireError,),
        lambda notice: _unsound_map(notice[-1], REPLY_MAX_NESTING),
    ),
    Target("key_question", 20, _question, _read_question, (Refused,), lambda question: ""),
    Target("mailbox", 10, _spoiled_mailbox, _read_mailbox, (RingError,), lambda command: ""),
)
__all__ = ["TARGETS", "Pairs", "hostile", "scratch"]
