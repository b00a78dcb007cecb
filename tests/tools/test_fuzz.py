"""Fuzzing: each decoder survives some thousand spoilt messages, and the figure notices a decoder that does not."""

import json
import random

import msgpack
import pytest

from tools.fuzz.mutations import pack, spoil_map
from tools.fuzz.target import Refused, Target, try_messages
from tools.fuzz.targets import TARGETS, shares


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_spoilt_messages_are_refused_as_documented(target):
    outcome = try_messages(target, max(40, int(4 * target.share)), seed=20260101)
    assert (outcome.raised, outcome.accepted_malformed) == (0, 0), outcome.examples
    assert outcome.refused + outcome.accepted == outcome.messages
    assert outcome.refused > 0 or target.name == "log_bytes", "the mutations no longer reach the rules"


def test_the_same_seed_spoils_the_same():
    for target in TARGETS[:4]:
        one, other = random.Random(5), random.Random(5)
        assert [target.make(one) for _ in range(50)] == [target.make(other) for _ in range(50)]


def test_shares_add_up():
    counts = shares(1_000_000)
    assert sum(counts.values()) == 1_000_000 and set(counts) == {target.name for target in TARGETS}
    assert list(shares(100, ["config"])) == ["config"]
    with pytest.raises(ValueError, match="no target nothing"):
        shares(100, ["nothing"])


def test_a_decoder_that_fails_is_noticed():
    def broken(message: bytes) -> object:
        if not message or message[0] % 3 == 0:
            raise Refused
        if message[0] % 3 == 1:
            raise KeyError("not documented")
        return None

    def target(unsound) -> Target:
        return Target("broken", 1, lambda rng: (rng.randbytes(1), False), broken, (Refused,), unsound)

    outcome = try_messages(target(lambda value: "nothing came"), 300, 1)
    assert min(outcome.refused, outcome.raised, outcome.accepted_malformed) > 50
    assert outcome.accepted == outcome.accepted_malformed
    assert any("KeyError" in text for text in outcome.examples) and len(outcome.examples) == 10
    lax = Target("lax", 1, lambda rng: (b"x", True), lambda message: message, (Refused,), lambda value: "")
    assert try_messages(lax, 10, 1).accepted_malformed == 10


def test_what_must_be_refused_is_spoilt_indeed():
    """The project's own packer makes what msgpack makes, so that only the spoilt part of a message is wrong."""
    fields = {"v": 1, "a": [1.5, True, None], "b": {"c": "text", "d": [[1]] * 20}, **{f"k{i}": i for i in range(20)}}
    assert msgpack.unpackb(pack(fields)) == json.loads(json.dumps(fields))
    rng = random.Random(3)
    assert all(spoil_map(rng, fields, 4)[0] != pack(fields) for _ in range(500))
