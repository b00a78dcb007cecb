"""What fuzzing has found in messages, each kind pinned: refused as documented, before anything large is made for it."""

import math
import struct

import msgpack
import numpy as np
import pytest

from bridge.client import HapticdError, check_greeting
from bridge.mailbox import CommandReader, CommandWriter, create_mailbox
from bridge.notices import read_notice
from bridge.ring import RingError
from bridge.schema import PEER_FIELDS, RENDER_FIELDS, Reject
from bridge.wire import (
    PEER_HELLO,
    PEER_STRUCT,
    WireError,
    decode_peer,
    decode_render,
    decode_sample,
    encode_peer,
    encode_sample,
)
from bridge.wire.layout import RENDER_PACKER, RENDER_STRUCT
from haptics.states import CommandKind
from haptics.tables import PEER, SAMPLE

# -- renders -----------------------------------------------------------------------------------------------------------


def render_fields() -> dict:
    values = {f.name: [0.5] * f.count if f.count > 1 else (0.5 if f.kind == "f8" else 1) for f in RENDER_FIELDS}
    return {"v": 1, "kind": 2, **values}


def render_struct() -> bytearray:
    numbers = []
    for field in RENDER_FIELDS:
        numbers += [0.5 if field.kind == "f8" else 1] * field.count
    return bytearray(RENDER_PACKER.pack(0xC1, 1, 2, 0, 0, *numbers))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", [f for f in RENDER_FIELDS if f.kind == "f8"], ids=lambda f: f.name)
def test_no_render_has_a_number_that_is_not_finite(field, number):
    message = render_struct()
    struct.pack_into("<d", message, RENDER_STRUCT.fields[field.name][1] + 8 * (field.count - 1), number)
    value = [0.5] * (field.count - 1) + [number] if field.count > 1 else number
    for spoilt in (bytes(message), msgpack.packb({**render_fields(), field.name: value})):
        with pytest.raises(WireError) as caught:
            decode_render(spoilt)
        assert caught.value.code == "not_finite"


def test_renders_of_another_form_are_refused():
    assert decode_render(msgpack.packb(render_fields())) == decode_render(bytes(render_struct()))
    for at in (3, 4, 7):
        message = render_struct()
        message[at] = 1
        with pytest.raises(WireError, match="are 0 in this version"):
            decode_render(bytes(message))
    whole = msgpack.packb(render_fields())
    for spoilt in (
        msgpack.packb({**render_fields(), "state": 256}),
        msgpack.packb({**render_fields(), "seq": -1}),
        msgpack.packb({**render_fields(), "t_sent": 1 << 63}),
        msgpack.packb({**render_fields(), "plane_count": 5}),
        msgpack.packb({**render_fields(), "pinned": 2}),
        bytes(render_struct()[:-2]) + b"\x05\x01",
        bytes(render_struct()[:-1]) + b"\x02",
        bytes([0xDE, 0, len(render_fields()) + 1]) + whole[3:] + b"\xa3seq\x01",
        whole.replace(b"\xa3gap", b"\xa3gap" + b"\x91" * 900, 1),
        b"\xdc\xff\xff" * 900,
    ):
        with pytest.raises(WireError):
            decode_render(spoilt)


# -- peer messages -----------------------------------------------------------------------------------------------------


def peer_message() -> bytes:
    peers = np.zeros(1, PEER)
    peers["seq"] = 1
    peers["orientation"] = peers["offset_orientation"] = (0.0, 0.0, 0.0, 1.0)
    return encode_peer(peers, 5, 1)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e300, -1e300])
@pytest.mark.parametrize("field", [f for f in PEER_FIELDS if f.kind == "f8"], ids=lambda f: f.name)
def test_no_number_of_a_peer_message_is_too_large_to_be_squared(field, number):
    into = np.zeros(1, PEER)
    for item in range(field.count):
        message = bytearray(peer_message())
        struct.pack_into("<d", message, PEER_STRUCT.fields[field.name][1] + 8 * item, number)
        code = decode_peer(bytes(message), into)
        refused = (Reject.OUT_OF_RANGE, Reject.NOT_UNIT) if math.isfinite(number) else (Reject.NOT_FINITE,)
        assert code in refused and not into.tobytes().strip(b"\0")


def test_a_sample_is_no_peer_message_and_the_other_way_round():
    sample = encode_sample(5, 1, 1, (0.0, 0.0, 0.0))
    assert decode_peer(sample, np.zeros(1, PEER)) == Reject.KIND
    assert decode_sample(peer_message(), np.zeros(1, SAMPLE)) == Reject.KIND
    assert decode_sample(PEER_HELLO, np.zeros(1, SAMPLE)) == Reject.KIND


# -- greetings, notices, commands --------------------------------------------------------------------------------------

GREETING = {"session": 5, "tick_ns": 1_000_000, "clocking": "free", "endpoints": {}, "t_received": 1, "t_sent": 2}


@pytest.mark.parametrize("key", ["session", "tick_ns", "clocking", "endpoints", "t_received", "t_sent"])
@pytest.mark.parametrize("value", [None, "a", True, [], {"device": 5}, 1.5])
def test_a_hello_reply_of_other_types_is_told(key, value):
    check_greeting(GREETING)
    with pytest.raises(HapticdError, match="of the hello reply is") as caught:
        check_greeting({**GREETING, key: value})
    assert caught.value.code == "malformed"


def test_a_notice_is_one_or_refused():
    good = {"source": "a", "code": "b", "text": "c", "sender": "d", "count": 3, "more": [1]}
    assert read_notice(msgpack.packb(good)) == ("a", "b", "c", "d", 3, {"more": [1]})
    for spoilt in ({**good, "count": "x"}, {**good, "text": None}, {**good, "t": "now"}, {"source": "a"}):
        with pytest.raises(WireError, match="a notice has"):
            read_notice(msgpack.packb(spoilt))
    with pytest.raises(WireError):
        read_notice(b"\xdd\xff\xff\xff\xff")


@pytest.mark.parametrize(("word", "value"), [(8, 65), (8, (1 << 64) - 1), (12, 1), (16, 1 << 63), (20, (1 << 64) - 1)])
def test_a_mailbox_whose_lanes_cannot_be_is_refused(tmp_path, word, value):
    create_mailbox(tmp_path / "m")
    raw = bytearray((tmp_path / "m").read_bytes())
    struct.pack_into("<Q", raw, 8 * word, value)
    (tmp_path / "m").write_bytes(raw)
    with pytest.raises(RingError, match="claims more commands"):
        CommandReader(tmp_path / "m")


def test_a_mailbox_that_is_cut_off_is_refused(tmp_path):
    create_mailbox(tmp_path / "m")
    CommandWriter(tmp_path / "m").post(CommandKind.STOP)
    raw = (tmp_path / "m").read_bytes()
    for length in (0, 1, 100, 256, len(raw) - 1):
        (tmp_path / "m").write_bytes(raw[:length])
        with pytest.raises(RingError):
            CommandReader(tmp_path / "m")
