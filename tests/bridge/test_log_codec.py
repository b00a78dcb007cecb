"""Records come back from their messages to the bit; a message of another form is refused."""

from __future__ import annotations

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from log_samples import SPECIAL_BITS, plausible_records, random_records

from bridge.log.channels import CHANNELS
from bridge.log.codec import NON_FINITE, ChannelError
from bridge.log.fields import differing_bytes
from haptics.tables import RECORD


def there_and_back(records: np.ndarray) -> np.ndarray:
    result = np.zeros(len(records), RECORD)
    for channel in CHANNELS:
        channel.decode([orjson.loads(message) for message in channel.encode(records)], result)
    return result


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


def test_schemas_refuse_what_is_wrong():
    (message,) = CHANNELS[1].encode(plausible_records(1))
    validator = Draft202012Validator(CHANNELS[1].schema())
    for key, value in (("energy", "1.0"), ("state", 1.5), ("owner", 5), ("device_position", [1.0, 2.0])):
        assert not validator.is_valid({**orjson.loads(message), key: value})
    assert not validator.is_valid({key: value for key, value in orjson.loads(message).items() if key != "gain"})


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
