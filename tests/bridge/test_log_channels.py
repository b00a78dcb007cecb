"""The channels hold every field of RECORD once, in the form that their JSON Schemas tell; poses are the records'."""

from __future__ import annotations

import re

import numpy as np
import orjson
from jsonschema import Draft202012Validator
from log_samples import plausible_records, random_records

from bridge.log.channels import CHANNELS, EVENT_SCHEMA, POSE_SCHEMA, encode_poses
from bridge.log.descriptions import DESCRIPTIONS
from bridge.log.fields import leaves
from bridge.publisher import event_messages
from haptics.tables import RECORD


def test_every_field_of_record_stands_in_exactly_one_channel_with_a_description():
    fields = {re.sub(r"\[\d+\]", "", leaf.path) for leaf in leaves(RECORD)} - {"tick"}
    held = [path for channel in CHANNELS for path in channel.record_paths()]
    assert sorted(held) == sorted(fields)
    assert fields <= set(DESCRIPTIONS)


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
