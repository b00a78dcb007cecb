"""The codec: both encodings carry the same bits, and nothing that a client can send gets past it or hurts it."""

import math
import random
import struct

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import schema, wire
from bridge.schema import RENDER_FIELDS, SAMPLE_FIELDS, Reject
from bridge.wire import WireError, decode_render, decode_sample, encode_render, encode_sample
from haptics.states import EngagementState, Reason
from haptics.tables import MAX_PLANES, RECORD, SAMPLE


@pytest.fixture(scope="module", autouse=True)
def compiled():
    wire.warm_up()


coordinates = st.floats(-schema.MAX_COORDINATE, schema.MAX_COORDINATE)
rates = st.floats(-schema.MAX_RATE, schema.MAX_RATE)
ids = st.integers(1, 2**63 - 1)


def quaternions() -> st.SearchStrategy[tuple[float, ...]]:
    def unit(q: tuple[float, ...]) -> tuple[float, ...]:
        norm = math.sqrt(sum(x * x for x in q))
        return tuple(x / norm for x in q)

    return st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: sum(x * x for x in q) > 1e-3).map(unit)


samples = st.fixed_dictionaries(
    {
        "session": ids,
        "seq": ids,
        "t_sample": st.integers(0, schema.MAX_TIME - 1),
        "position": st.tuples(coordinates, coordinates, coordinates),
        "orientation": quaternions(),
    },
    optional={
        "twist": st.tuples(*[rates] * 6),
        "buttons": st.integers(0, 2**32 - 1),
        "deadman": st.booleans(),
        "valid": st.booleans(),
    },
)


def a_sample(**changes):
    fields = {
        "session": 5,
        "seq": 7,
        "t_sample": 1_000_000,
        "position": (0.1, 0.2, 0.3),
        "orientation": (0.0, 0.6, 0.0, 0.8),
        "twist": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
        "buttons": 1,
        "deadman": True,
        "valid": True,
    }
    return fields | changes


def a_map(**changes) -> bytes:
    """A good msgpack sample with some entries changed; ``...`` removes one."""
    fields = {"v": 1, "kind": 1} | a_sample(deadman=1, valid=1) | changes
    return msgpack.packb({key: value for key, value in fields.items() if value is not ...})


def untouched_record() -> np.ndarray:
    record = np.zeros(1, SAMPLE)
    record.view(np.uint8)[:] = 0xA5
    return record


def refused(message: bytes) -> int:
    """The code of a refused message, after checking that the record stayed as it was."""
    record = untouched_record()
    before = record.tobytes()
    code = decode_sample(message, record)
    assert code != Reject.NONE
    assert record.tobytes() == before
    return code


# -- good samples ------------------------------------------------------------------------------------------------------


@given(samples)
def test_struct_and_msgpack_decode_to_the_same_bits(fields):
    decoded = []
    for as_struct in (True, False):
        record = untouched_record()
        assert decode_sample(encode_sample(**fields, as_struct=as_struct), record) == Reject.NONE
        decoded.append(record.tobytes())
    assert decoded[0] == decoded[1]


@given(samples, st.booleans())
def test_a_sample_arrives_as_it_was_sent(fields, as_struct):
    record = untouched_record()
    assert decode_sample(encode_sample(**fields, as_struct=as_struct), record) == Reject.NONE
    row = record[0]
    for name in ("session", "seq", "t_sample"):
        assert row[name] == fields[name]
    assert tuple(row["position"]) == fields["position"]
    assert row["has_twist"] == ("twist" in fields)
    assert tuple(row["twist"]) == fields.get("twist", (0.0,) * 6)
    assert row["buttons"] == fields.get("buttons", 0)
    assert row["deadman"] == fields.get("deadman", False)
    assert row["valid"] == fields.get("valid", True)
    # one division by a norm that is itself 1 to a few roundings
    np.testing.assert_allclose(row["orientation"], fields["orientation"], rtol=0, atol=1e-15)


@given(quaternions(), st.floats(1 - 0.99e-3, 1 + 0.99e-3))
def test_a_nearly_unit_quaternion_is_normalised(quaternion, length):
    record = np.zeros(1, SAMPLE)
    message = encode_sample(**a_sample(orientation=tuple(x * length for x in quaternion)))
    assert decode_sample(message, record) == Reject.NONE
    assert abs(np.linalg.norm(record[0]["orientation"]) - 1) < 1e-15
    np.testing.assert_allclose(record[0]["orientation"], quaternion, atol=1e-15)


def test_a_record_and_an_array_row_decode_alike():
    rows, records = np.zeros(1, SAMPLE), np.zeros(1, RECORD)
    message = encode_sample(**a_sample())
    assert decode_sample(message, rows) == Reject.NONE
    assert decode_sample(message, records[0]["input"]["sample"]) == Reject.NONE
    assert records[0]["input"]["sample"] == rows[0]
    records = np.zeros(1, RECORD)
    assert decode_sample(message, records["input"]["sample"]) == Reject.NONE
    assert records[0]["input"]["sample"] == rows[0]


def test_any_msgpack_width_and_key_order_of_a_number_is_understood():
    """Encoders differ: integers for floats, 32-bit floats, wide integers, wide headers, keys in any order."""
    message = b"\xdf" + struct.pack(">I", 7)
    message += (
        b"\xd9\x08position" + b"\xdd" + struct.pack(">I", 3) + b"\x01" + b"\xff" + b"\xca" + struct.pack(">f", 0.5)
    )
    message += (
        b"\xdb"
        + struct.pack(">I", 11)
        + b"orientation"
        + b"\xdc\x00\x04"
        + b"\x00\xd0\x00\xd3"
        + bytes(8)
        + b"\xcc\x01"
    )
    message += b"\xda\x00\x03seq" + b"\xd1" + struct.pack(">h", 300)
    message += b"\xa4kind\xd2" + struct.pack(">i", 1) + b"\xa1v\xcd\x00\x01"
    message += b"\xa8t_sample\xce" + struct.pack(">I", 77) + b"\xa7session\xcf" + struct.pack(">Q", 9)
    record = np.zeros(1, SAMPLE)
    assert decode_sample(message, record) == Reject.NONE
    row = record[0]
    assert (row["session"], row["seq"], row["t_sample"]) == (9, 300, 77)
    assert tuple(row["position"]) == (1.0, -1.0, 0.5)
    assert tuple(row["orientation"]) == (0.0, 0.0, 0.0, 1.0)
    assert (row["valid"], row["has_twist"]) == (1, 0)


# -- bad samples -------------------------------------------------------------------------------------------------------

NAN, INF = math.nan, math.inf

BAD_MAPS = {
    "empty": (b"", Reject.MALFORMED),
    "reserved byte alone": (b"\xc1", Reject.MALFORMED),
    "not a map": (msgpack.packb([1, 2, 3]), Reject.MALFORMED),
    "a pair list in place of a map": (msgpack.packb([["v", 1], ["kind", 1]]), Reject.MALFORMED),
    "a number": (b"\x05", Reject.MALFORMED),
    "a text": (msgpack.packb("sample"), Reject.MALFORMED),
    "empty map": (b"\x80", Reject.MISSING_FIELD),
    "trailing byte": (a_map() + b"\x00", Reject.MALFORMED),
    "two messages in one": (a_map() + a_map(), Reject.MALFORMED),
    "truncated": (a_map()[:-1], Reject.MALFORMED),
    "oversized": (a_map(position="x" * 5000), Reject.TOO_LONG),
    "oversized map count": (b"\xdf\xff\xff\xff\xff" + bytes(100), Reject.MALFORMED),
    "more entries than allowed": (b"\xde\x00\x41" + b"\xa1v\x01" * 65, Reject.MALFORMED),
    "deeply nested value": (b"\x8b\xa1v\x01\xa4kind\x01\xa8position" + b"\x93" * 3000, Reject.WRONG_TYPE),
    "deeply nested maps": (b"\x81\xa1v" * 1000, Reject.WRONG_TYPE),
    "nested array in an array": (a_map(position=[[0.1], [0.2], [0.3]]), Reject.WRONG_TYPE),
    "nested map in an array": (a_map(position=[{}, 0, 0]), Reject.WRONG_TYPE),
    "map for an array": (a_map(position={"x": 1.0, "y": 2.0, "z": 3.0}), Reject.WRONG_TYPE),
    "version absent": (a_map(v=...), Reject.MISSING_FIELD),
    "version 2": (a_map(v=2), Reject.VERSION),
    "version 0": (a_map(v=0), Reject.VERSION),
    "version negative": (a_map(v=-1), Reject.VERSION),
    "version a text": (a_map(v="1"), Reject.WRONG_TYPE),
    "version true": (a_map(v=True), Reject.WRONG_TYPE),
    "version 1.0": (a_map(v=1.0), Reject.WRONG_TYPE),
    "kind of a render": (a_map(kind=2), Reject.KIND),
    "kind a text": (a_map(kind="sample"), Reject.WRONG_TYPE),
    "session absent": (a_map(session=...), Reject.MISSING_FIELD),
    "seq absent": (a_map(seq=...), Reject.MISSING_FIELD),
    "t_sample absent": (a_map(t_sample=...), Reject.MISSING_FIELD),
    "position absent": (a_map(position=...), Reject.MISSING_FIELD),
    "orientation absent": (a_map(orientation=...), Reject.MISSING_FIELD),
    "unknown key": (a_map(twits=[0.0] * 6), Reject.UNKNOWN_FIELD),
    "unknown long key": (a_map(**{"a key longer than all others": 1}), Reject.UNKNOWN_FIELD),
    "key with a NUL at its end": (msgpack.packb({"v\0": 1}), Reject.UNKNOWN_FIELD),
    "key a number": (msgpack.packb({1: 1}), Reject.MALFORMED),
    "key bytes": (msgpack.packb({b"v": 1}), Reject.MALFORMED),
    "duplicate key": (b"\x82\xa1v\x01\xa1v\x01", Reject.MALFORMED),
    "duplicate of all keys": (b"\x8c\xa1v\x01" + a_map()[1:], Reject.MALFORMED),
    "bool in a position": (a_map(position=[True, 0.0, 0.0]), Reject.WRONG_TYPE),
    "bool for seq": (a_map(seq=True), Reject.WRONG_TYPE),
    "bool for deadman": (a_map(deadman=True), Reject.WRONG_TYPE),
    "bool for valid": (a_map(valid=False), Reject.WRONG_TYPE),
    "nil position": (a_map(position=None), Reject.WRONG_TYPE),
    "nil twist": (a_map(twist=None), Reject.WRONG_TYPE),
    "text number": (a_map(position=["0", 0.0, 0.0]), Reject.WRONG_TYPE),
    "float seq": (a_map(seq=7.0), Reject.WRONG_TYPE),
    "float buttons": (a_map(buttons=1.0), Reject.WRONG_TYPE),
    "array seq": (a_map(seq=[7]), Reject.WRONG_TYPE),
    "scalar position": (a_map(position=0.1), Reject.WRONG_TYPE),
    "two coordinates": (a_map(position=[0.0, 0.0]), Reject.WRONG_TYPE),
    "four coordinates": (a_map(position=[0.0] * 4), Reject.WRONG_TYPE),
    "three of a quaternion": (a_map(orientation=[0.0, 0.0, 1.0]), Reject.WRONG_TYPE),
    "three of a twist": (a_map(twist=[0.0] * 3), Reject.WRONG_TYPE),
    "binary position": (a_map(position=bytes(24)), Reject.WRONG_TYPE),
    "extension": (a_map(position=msgpack.ExtType(1, bytes(24))), Reject.WRONG_TYPE),
    "negative seq": (a_map(seq=-1), Reject.OUT_OF_RANGE),
    "seq 0": (a_map(seq=0), Reject.OUT_OF_RANGE),
    "session 0": (a_map(session=0), Reject.OUT_OF_RANGE),
    "session of 64 bits": (a_map(session=2**63), Reject.OUT_OF_RANGE),
    "negative time": (a_map(t_sample=-5), Reject.OUT_OF_RANGE),
    "time beyond all clocks": (a_map(t_sample=2**64 - 1), Reject.OUT_OF_RANGE),
    "buttons beyond 32 bits": (a_map(buttons=2**32), Reject.OUT_OF_RANGE),
    "deadman 2": (a_map(deadman=2), Reject.OUT_OF_RANGE),
    "valid 2": (a_map(valid=2), Reject.OUT_OF_RANGE),
    "valid 256": (a_map(valid=256), Reject.OUT_OF_RANGE),
}  # fmt: skip

BAD_NUMBERS = {
    "NaN position": ({"position": (NAN, 0.0, 0.0)}, Reject.NOT_FINITE),
    "infinite position": ({"position": (0.0, 0.0, -INF)}, Reject.NOT_FINITE),
    "NaN quaternion": ({"orientation": (0.0, 0.0, 0.0, NAN)}, Reject.NOT_FINITE),
    "NaN twist": ({"twist": (0.0, 0.0, 0.0, 0.0, 0.0, NAN)}, Reject.NOT_FINITE),
    "zero quaternion": ({"orientation": (0.0, 0.0, 0.0, 0.0)}, Reject.NOT_UNIT),
    "long quaternion": ({"orientation": (0.0, 0.0, 0.0, 1.0011)}, Reject.NOT_UNIT),
    "short quaternion": ({"orientation": (0.0, 0.0, 0.0, 0.9989)}, Reject.NOT_UNIT),
    "huge quaternion": ({"orientation": (900.0, 0.0, 0.0, 0.0)}, Reject.NOT_UNIT),
    "far position": ({"position": (1e300, 0.0, 0.0)}, Reject.OUT_OF_RANGE),
    "fast twist": ({"twist": (0.0, 0.0, -1e5, 0.0, 0.0, 0.0)}, Reject.OUT_OF_RANGE),
    "seq 0": ({"seq": 0}, Reject.OUT_OF_RANGE),
    "session 0": ({"session": 0}, Reject.OUT_OF_RANGE),
    "time beyond all clocks": ({"t_sample": 2**62}, Reject.OUT_OF_RANGE),
}


@pytest.mark.parametrize("name", BAD_MAPS)
def test_a_bad_map_is_refused_with_its_code(name):
    message, code = BAD_MAPS[name]
    assert refused(message) == code


@pytest.mark.parametrize("as_struct", [True, False])
@pytest.mark.parametrize("name", BAD_NUMBERS)
def test_bad_numbers_are_refused_alike_in_both_encodings(name, as_struct):
    changes, code = BAD_NUMBERS[name]
    assert refused(encode_sample(**a_sample(**changes), as_struct=as_struct)) == code


def changed_byte(message: bytes, at: int, value: int) -> bytes:
    return message[:at] + bytes([value]) + message[at + 1 :]


def test_bad_structs_are_refused():
    good = encode_sample(**a_sample())
    assert len(good) == 142
    assert refused(good[:-1]) == Reject.MALFORMED
    assert refused(good[:7]) == Reject.MALFORMED
    assert refused(good + b"\0") == Reject.MALFORMED
    assert refused(changed_byte(good, 1, 2)) == Reject.VERSION
    assert refused(changed_byte(good, 2, 2)) == Reject.KIND
    assert refused(changed_byte(good, 3, 1)) == Reject.MALFORMED  # flags
    assert refused(changed_byte(good, 4, 0x1F)) == Reject.MALFORMED  # a present bit without a field
    assert refused(changed_byte(good, 7, 0x80)) == Reject.MALFORMED
    assert refused(changed_byte(good, 140, 2)) == Reject.OUT_OF_RANGE  # deadman
    assert refused(changed_byte(good, 141, 2)) == Reject.OUT_OF_RANGE  # valid
    assert refused(changed_byte(good, 31, 0xFF)) == Reject.OUT_OF_RANGE  # negative time
    assert refused(b"\xc1\x01\x01" + bytes(5000)) == Reject.TOO_LONG


def test_what_stands_in_an_absent_field_of_a_struct_does_not_matter():
    fields = a_sample()
    for name in ("twist", "buttons", "deadman", "valid"):
        del fields[name]
    message = encode_sample(**fields)
    record, dirty = np.zeros(1, SAMPLE), np.zeros(1, SAMPLE)
    assert decode_sample(message, record) == Reject.NONE
    assert decode_sample(message[:88] + b"\xff" * 54, dirty) == Reject.NONE
    assert dirty.tobytes() == record.tobytes()


def test_every_prefix_of_a_message_is_refused():
    for message in (a_map(), encode_sample(**a_sample())):
        for length in range(len(message)):
            refused(message[:length])


def test_random_and_mutated_messages_never_raise_and_never_change_the_record():
    """20,000 of them, half mutations of good ones; what is accepted has a finite pose and a unit quaternion."""
    rng = random.Random(20250101)
    seeds = [encode_sample(**a_sample()), a_map(), a_map(twist=...), a_map(position=[1, 2, 3])]
    record = untouched_record()
    before = record.tobytes()
    codes = set()
    for number in range(20_000):
        if number % 2:
            message = bytearray(rng.choice(seeds))
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(message))
                what = rng.random()
                if what < 0.6:
                    message[at] = rng.randrange(256)
                elif what < 0.75:
                    del message[at : at + rng.randint(1, 9)]
                elif what < 0.9:
                    message[at:at] = rng.randbytes(rng.randint(1, 9))
                else:
                    message = message[:at] + rng.choice(seeds)[at:]
                if not message:
                    break
            message = bytes(message)
        else:
            message = rng.choice((b"", b"\xc1\x01\x01\0", b"\x8b", b"\xde\0\x0b")) + rng.randbytes(rng.randrange(300))
        code = decode_sample(message, record)
        codes.add(code)
        if code == Reject.NONE:
            row = record[0]
            assert np.isfinite(row["position"]).all() and np.isfinite(row["twist"]).all()
            assert abs(np.linalg.norm(row["orientation"]) - 1) < 1e-12
            record = untouched_record()
        else:
            assert record.tobytes() == before
    wanted = {Reject.MALFORMED, Reject.VERSION, Reject.WRONG_TYPE, Reject.UNKNOWN_FIELD, Reject.NOT_UNIT}
    assert wanted <= codes, "the mutations no longer reach the rules"


def test_buffers_other_than_bytes_are_taken():
    record = np.zeros(1, SAMPLE)
    message = encode_sample(**a_sample())
    assert decode_sample(memoryview(message), record) == Reject.NONE
    assert decode_sample(bytearray(message), record) == Reject.NONE


def test_encode_sample_says_what_does_not_fit():
    for as_struct in (True, False):
        with pytest.raises(ValueError, match="3 position, 4 orientation"):
            encode_sample(**a_sample(position=(0.0, 0.0)), as_struct=as_struct)
        with pytest.raises(ValueError, match="does not fit"):
            encode_sample(**a_sample(seq=2**70), as_struct=as_struct)


# -- renders -----------------------------------------------------------------------------------------------------------


def a_record(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    records = np.zeros(1, RECORD)
    output = records[0]["output"]
    for name in (
        *("wrench", "render_position", "render_orientation", "render_twist", "stiffness", "damping"),
        *("slack", "planes"),
    ):
        output[name] = rng.normal(size=output[name].shape) * 10.0 ** rng.integers(-300, 300)
    output["feed_forward"] = (-0.0, 5e-324, 1.7976931348623157e308, 0.1, -1.0, 2.0)
    output["report"]["smallest_gap"] = rng.normal()
    output["seq"] = rng.integers(1, 2**63)
    output["valid_for_ns"] = rng.integers(0, 10**9)
    output["state"] = rng.integers(0, 7)
    output["reason"] = rng.integers(0, 23)
    output["limited"] = rng.integers(0, 16)
    output["report"]["degraded"] = rng.integers(0, 16)
    output["plane_count"] = rng.integers(0, MAX_PLANES + 1)
    output["pinned"] = rng.integers(0, 2)
    records["tick"] = rng.integers(1, 2**63)
    records["timing"]["t_received"] = rng.integers(0, 2**62)
    return records


RENDER_SOURCES = {
    "proxy_position": "render_position",
    "proxy_orientation": "render_orientation",
    "proxy_twist": "render_twist",
    "valid_for": "valid_for_ns",
}


@pytest.mark.parametrize("as_struct", [True, False])
def test_a_render_carries_the_bits_of_its_tick(as_struct):
    for seed in range(50):
        records = a_record(seed)
        render = decode_render(encode_render(records, 123456789012, as_struct))
        output = records[0]["output"]
        assert render.tick == records[0]["tick"]
        assert render.t_received == records[0]["timing"]["t_received"]
        assert render.t_sent == 123456789012
        assert render.gap == output["report"]["smallest_gap"]
        assert render.degraded == output["report"]["degraded"]
        for field in RENDER_FIELDS:
            if field.name in ("tick", "t_received", "t_sent", "gap", "degraded"):
                continue
            value = np.asarray(getattr(render, field.name), output[RENDER_SOURCES.get(field.name, field.name)].dtype)
            assert value.tobytes() == output[RENDER_SOURCES.get(field.name, field.name)].tobytes(), field.name
        assert isinstance(render.state, EngagementState) and isinstance(render.reason, Reason)
        assert render.force + render.torque == render.wrench


def test_both_encodings_of_a_render_and_of_a_record_row_agree():
    records = a_record(1)
    struct_message = encode_render(records, 5, True)
    assert len(struct_message) == wire.RENDER_STRUCT.itemsize == 510
    assert encode_render(records[0], 5, True) == struct_message
    assert encode_render(records[0], 5, False) == encode_render(records, 5, False)
    assert decode_render(struct_message) == decode_render(encode_render(records, 5, False))


def test_the_render_map_is_plain_msgpack_with_the_keys_of_the_schema():
    fields = msgpack.unpackb(encode_render(a_record(2), 5, False))
    assert list(fields) == ["v", "kind"] + [field.name for field in RENDER_FIELDS]
    assert (fields["v"], fields["kind"]) == (1, 2)


def test_the_render_class_has_the_fields_of_the_schema():
    assert list(wire.Render.__dataclass_fields__) == [field.name for field in RENDER_FIELDS]


def test_a_bad_render_is_told_not_guessed():
    good = encode_render(a_record(3), 5, True)
    for message, code in (
        (good[:-1], "malformed"),
        (changed_byte(good, 1, 9), "version"),
        (changed_byte(good, 2, 1), "malformed"),
        (b"\x80", "malformed"),
        (b"", "malformed"),
        (msgpack.packb({"v": 1, "kind": 2}), "malformed"),
        (b"\x91" * 4000, "malformed"),
        (bytes(5000), "too_large"),
    ):
        with pytest.raises(WireError) as caught:
            decode_render(message)
        assert caught.value.code == code


def test_offsets_follow_from_the_table_without_gaps():
    for fields, dtype in ((SAMPLE_FIELDS, wire.SAMPLE_STRUCT), (RENDER_FIELDS, wire.RENDER_STRUCT)):
        at = 8
        for field in fields:
            assert dtype.fields[field.name][1] == at
            at += field.count * int(field.kind[1])
        assert dtype.itemsize == at


def test_decoding_leaves_nothing_behind():
    """Memory after many decodes and renders is what it was: no garbage that stays."""
    import gc
    import tracemalloc

    record, records, good, bad = np.zeros(1, SAMPLE), a_record(4), a_map(), a_map(seq=True)
    wire.warm_up()

    def work():
        for _ in range(2000):
            decode_sample(good, record)
            decode_sample(bad, record)
            encode_render(records, 5, True)
            encode_render(records, 5, False)

    work()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        work()
        before = tracemalloc.get_traced_memory()[0]
        work()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    # the tracer's own bookkeeping may move by a few objects, 8000 calls must not
    assert grown < 2000
