"""Maps of the control, state and events sockets: what is sent comes back, and every cap holds before decoding."""

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import schema, wire
from bridge.wire import WireError
from haptics.states import EngagementState

texts = st.text(max_size=20)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False), texts
)
maps = st.dictionaries(
    texts, st.one_of(scalars, st.lists(scalars, max_size=8), st.dictionaries(texts, scalars, max_size=4)), max_size=8
)


@given(maps)
def test_control_maps_come_back_as_they_were(fields):
    fields.pop("v", None)
    assert wire.unpack_control(wire.pack_control(fields)) == {"v": 1, **fields}


def test_numpy_values_are_sent_as_plain_ones():
    sent = {
        "a": np.float64(0.5),
        "b": np.arange(3.0),
        "c": np.uint64(2**63),
        "d": EngagementState.HOLD,
        "e": np.bool_(True),
    }
    assert wire.unpack_control(wire.pack_control(sent)) == {
        "v": 1,
        "a": 0.5,
        "b": [0.0, 1.0, 2.0],
        "c": 2**63,
        "d": 4,
        "e": True,
    }


def nested(depth: int) -> bytes:
    return b"\x82\xa1v\x01\xa1a" + b"\x91" * depth + b"\x00"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"", "malformed"),
        (b"\xc1", "malformed"),
        (msgpack.packb([1]), "malformed"),
        (b"\x05", "malformed"),
        (msgpack.packb({"id": 1}), "version"),
        (msgpack.packb({"v": 2}), "version"),
        (msgpack.packb({"v": True}), "version"),
        (msgpack.packb({"v": 1.0}), "version"),
        (msgpack.packb({"v": "1"}), "version"),
        (msgpack.packb({"v": 1, "x": float("nan")}), "not_finite"),
        (msgpack.packb({"v": 1, "x": [[float("inf")]]}), "not_finite"),
        (msgpack.packb({"v": 1, "x": {"y": [float("-inf")]}}), "not_finite"),
        (msgpack.packb({"v": 1, 2: 3}), "malformed"),
        (msgpack.packb({"v": 1}) + b"\0", "malformed"),
        (msgpack.packb({"v": 1, "x": 300})[:-1], "malformed"),
        (b"\x82\xa1v\x01\xa1v\x01", "malformed"),
        (b"\x82\xa1v\x01\xa1a\x82\xa1b\x01\xa1b\x01", "malformed"),
        (b"\x82\xa1v\x01\xa2\xff\xfe\x01", "malformed"),
        (msgpack.packb({"v": 1, "x": b"bytes"}), "malformed"),
        (msgpack.packb({"v": 1, "x": msgpack.ExtType(1, b"a")}), "malformed"),
        (nested(4), "too_deep"),
        (nested(3000), "too_deep"),
        (msgpack.packb({"v": 1, "x": list(range(65))}), "too_large"),
        (msgpack.packb({"v": 1, "x": "a" * 257}), "too_large"),
        (b"\x82\xa1v\x01\xa1x\xdd\xff\xff\xff\xff", "too_large"),
        (b"\x82\xa1v\x01\xa1x\xdb\xff\xff\xff\xff", "too_large"),
        (bytes(5000), "too_large"),
    ],
)
def test_bad_control_messages_are_refused_with_code_and_sentence(message, code):
    with pytest.raises(WireError) as caught:
        wire.unpack_control(message)
    assert caught.value.code == code
    assert code in schema.CONTROL_ERRORS
    assert len(caught.value.text) > 20


def test_a_refused_version_still_tells_which_request_it_was():
    with pytest.raises(WireError) as caught:
        wire.unpack_control(msgpack.packb({"v": 2, "id": 77, "op": "hello"}))
    assert caught.value.request_id == 77


def test_nesting_up_to_the_cap_is_allowed():
    assert wire.unpack_control(nested(3))["a"] == [[[0]]]


def test_replies_may_be_larger_than_requests():
    message = wire.pack_control({"bodies": [f"body_{i}" for i in range(500)]})
    assert len(wire.unpack_control(message, reply=True)["bodies"]) == 500
    with pytest.raises(WireError, match="too_large"):
        wire.unpack_control(message)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_map_or_a_wire_error(message):
    try:
        assert isinstance(wire.unpack_control(message), dict)
    except WireError as error:
        assert error.code in schema.CONTROL_ERRORS


def test_what_cannot_be_sent_is_said():
    with pytest.raises(WireError, match="cannot be packed"):
        wire.pack_control({"x": object()})
    with pytest.raises(WireError, match="cannot be packed"):
        wire.pack_control({"x": 2**64})
    with pytest.raises(WireError, match="too_large"):
        wire.pack_control({"x": "a" * (1 << 21)})
