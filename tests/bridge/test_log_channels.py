"""The channels hold RECORD: complete, exact, and in the form that their JSON Schemas tell."""

from __future__ import annotations

import re

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from log_samples import SPECIAL_BITS, plausible_records, random_records

from bridge.log.channels import (
    CHANNELS,
    DESCRIPTIONS,
    EVENT_SCHEMA,
    NON_FINITE,
    POSE_SCHEMA,
    ChannelError,
    encode_poses,
)
from bridge.log.fields import byte_mask, column, column_names, differing_bytes, first_difference, leaves
from bridge.publisher import event_messages
from haptics.tables import RECORD


def there_and_back(records: np.ndarray) -> np.ndarray:
    result = np.zeros(len(records), RECORD)
    for channel in CHANNELS:
        channel.decode([orjson.loads(message) for message in channel.encode(records)], result)
    return result


def test_every_field_of_record_stands_in_exactly_one_channel_with_a_description():
    fields = {re.sub(r"\[\d+\]", "", leaf.path) for leaf in leaves(RECORD)} - {"tick"}
    held = [path for channel in CHANNELS for path in channel.record_paths()]
    assert sorted(held) == sorted(fields)
    assert fields <= set(DESCRIPTIONS)


@given(seed=st.integers(0, 2**32), special=st.booleans())
@settings(max_examples=25, deadline=None)
def test_any_record_comes_back_to_the_bit(seed: int, special: bool):
    records = random_records(5, seed, special=special)
    back = there_and_back(records)
    assert not differing_bytes(records, back).any()
    assert records.tobytes() == back.tobytes()  # padding is zero on both sides


@pytest.mark.parametrize("bits", SPECIAL_BITS)
def test_special_numbers_keep_their_bits_in_every_kind_of_place(bits: int):
    value = np.uint64(bits).view(np.float64)
    records = plausible_records(3)
    report = records["output"]["report"]
    report["contact_count"] = 3
    report["path_count"] = 2
    for place in (
        records["output"]["energy"],
        records["output"]["wrench"][:, 4],
        records["input"]["sample"]["position"][:, 1],
        report["contacts"]["normal"][:, 2, 1],
        report["path"][:, 1, 0],
    ):
        place[1] = value
    assert records.tobytes() == there_and_back(records).tobytes()


def test_identities_above_2_to_53_are_text_and_exact():
    records = plausible_records(1)
    records["input"]["sample"]["session"] = 2**63 + 1
    records["output"]["owner"] = 2**64 - 1
    channel_input, channel_tick = (orjson.loads(CHANNELS[i].encode(records)[0]) for i in (0, 1))
    assert channel_input["sample"]["session"] == str(2**63 + 1)
    assert channel_tick["owner"] == str(2**64 - 1)


def test_only_counted_rows_are_written():
    records = random_records(20, 3)
    for message, row in zip(CHANNELS[2].encode(records), records, strict=True):
        parsed = orjson.loads(message)
        assert len(parsed["contacts"]) == row["output"]["report"]["contact_count"]
        assert len(parsed["path"]) == row["output"]["report"]["path_count"]


def test_rows_that_break_the_contract_are_kept_all_the_same():
    records = random_records(4, 5)
    report = records["output"]["report"]
    report["contact_count"] = [2, 0, -7, 99]
    report["contacts"][2]["face_id"][9] = 17
    assert records.tobytes() == there_and_back(records).tobytes()


def test_messages_obey_their_schemas():
    records = np.concatenate([plausible_records(30), random_records(10, 1, special=True, first_tick=31)])
    for channel in CHANNELS:
        schema = channel.schema()
        Draft202012Validator.check_schema(schema)
        validator = Draft202012Validator(schema)
        for message in channel.encode(records):
            validator.validate(orjson.loads(message))
    poses = Draft202012Validator(POSE_SCHEMA)
    for message in encode_poses(plausible_records(5), "proxy", 10**18):
        assert message is not None
        poses.validate(orjson.loads(message))
    events = Draft202012Validator(EVENT_SCHEMA)
    found = list(event_messages(plausible_records(300)))
    assert [(event["from"], event["to"]) for event in found] == [(0, 1), (1, 2), (2, 3)]
    for event in found:
        events.validate(event)


def test_schemas_refuse_what_is_wrong():
    (message,) = CHANNELS[1].encode(plausible_records(1))
    validator = Draft202012Validator(CHANNELS[1].schema())
    for key, value in (("energy", "1.0"), ("state", 1.5), ("owner", 5), ("device_position", [1.0, 2.0])):
        assert not validator.is_valid({**orjson.loads(message), key: value})
    assert not validator.is_valid({key: value for key, value in orjson.loads(message).items() if key != "gain"})


def test_schemas_stay_within_what_column_making_viewers_take():
    """One type per value, and no list of lists."""

    def check(schema: dict) -> None:
        assert isinstance(schema["type"], str)
        for child in schema.get("properties", {}).values():
            check(child)
        if schema["type"] == "array":
            assert schema["items"]["type"] != "array"
            check(schema["items"])

    for schema in (*(channel.schema() for channel in CHANNELS), POSE_SCHEMA, EVENT_SCHEMA):
        check(schema)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("energy", None),
        ("energy", "NaN"),
        ("energy", [1.0]),
        ("state", 1.5),
        ("state", True),
        ("state", 2**31),
        ("owner", 5),
        ("owner", "-5"),
        ("owner", str(2**64)),
        ("device_position", [0.0, 0.0]),
        ("device_position", [0.0, None, 0.0]),
        ("device_position", [0.0, [1.0], 0.0]),
        ("timing", 3),
        ("tick", -1),
        ("tick", "1"),
        (NON_FINITE, [{"field": "nowhere.at[3]", "bits": "0x7ff8000000000000"}]),
        (NON_FINITE, [{"field": "energy", "bits": "0x7ff80000000000000000"}]),
    ],
)
def test_decoding_refuses_a_message_of_another_form(key: str, value: object):
    messages = [orjson.loads(message) for message in CHANNELS[1].encode(plausible_records(2))]
    messages[1][key] = value
    with pytest.raises(ChannelError):
        CHANNELS[1].decode(messages, np.zeros(2, RECORD))


def test_decoding_names_the_missing_key():
    messages = [orjson.loads(message) for message in CHANNELS[1].encode(plausible_records(2))]
    del messages[0]["report"]["residual"]
    with pytest.raises(ChannelError, match="residual"):
        CHANNELS[1].decode(messages, np.zeros(2, RECORD))


def test_poses_are_the_records():
    records = random_records(3, 8)
    records["input"]["has_sample"] = 1
    records["timing"]["started_ns"] = [1, 2_000_000_000, 2_999_999_999]
    for which in ("device", "proxy"):
        for message, row in zip(encode_poses(records, which, 10_000_000_000), records, strict=True):
            assert message is not None
            pose = orjson.loads(message)
            assert [pose["pose"]["position"][axis] for axis in "xyz"] == row["output"][f"{which}_position"].tolist()
            assert [pose["pose"]["orientation"][axis] for axis in "xyzw"] == row["output"][
                f"{which}_orientation"
            ].tolist()
            time = pose["timestamp"]["sec"] * 10**9 + pose["timestamp"]["nsec"]
            assert time == row["timing"]["started_ns"] + 10_000_000_000


def test_no_pose_is_drawn_where_there_is_none():
    records = plausible_records(5)
    records["output"]["proxy_position"][4, 1] = np.nan
    assert [message is None for message in encode_poses(records, "device", 0)] == [True, True, True, False, False]
    assert [message is None for message in encode_poses(records, "proxy", 0)] == [False] * 4 + [True]


def test_padding_is_not_compared_and_everything_else_is():
    mask = byte_mask(RECORD)
    record = random_records(1, 2)
    for byte in range(RECORD.itemsize):
        other = np.frombuffer(record.tobytes(), np.uint8).copy()
        other[byte] ^= 1
        other = other.view(RECORD)
        found = first_difference(record, other)
        assert (found is not None) == bool(mask[byte])
    assert mask.sum() < RECORD.itemsize


def test_a_difference_is_named_with_its_item():
    first, second = plausible_records(1), plausible_records(1)
    second["output"]["report"]["contacts"]["normal"][0, 3, 1] = -0.0
    found = first_difference(first, second)
    assert found is not None
    assert found.field == "output.report.contacts[3].normal[1]"
    assert (found.first, str(found.second)) == (0.0, "-0.0")


def test_columns_are_found_by_name():
    records = random_records(4, 9)
    assert (column(records, "output.wrench[2]") == records["output"]["wrench"][:, 2]).all()
    gaps = column(records, "output.report.contacts[1].gap")
    assert gaps.tobytes() == records["output"]["report"]["contacts"][:, 1]["gap"].tobytes()
    for name in column_names():
        assert len(column(records, name)) == 4
    for wrong in ("", "output.force", "output.wrench[6]", "tick[0]"):
        with pytest.raises(KeyError):
            column(records, wrong)
