"""What the supervisor tells about a link: each change once, in one sentence that says what to do."""

import numpy as np
import pytest

from bridge import link_watch
from bridge.link_watch import LinkWatch
from bridge.ring import RingReader, RingWriter
from bridge.schema import Reject
from haptics.cards import load_card
from haptics.link_codes import TANK, LinkReason, LinkState
from haptics.link_settings import make_link
from haptics.settings import make_settings
from haptics.tables import RECORD


class Bench:
    """A ring that the test writes, and what is told about it."""

    def __init__(self, base, connect="", with_keys=False):
        self.ring = RingWriter(base / "ring", 64)
        self.ring.claim()
        self.told = []
        settings = make_link(make_settings(load_card("simulated")), impedance=5.0, rotational_impedance=0.01)
        self.watch = LinkWatch(
            RingReader(base / "ring", register=False),
            settings,
            lambda code, text, **facts: self.told.append((code, text, facts)),
            connect,
            with_keys,
        )
        self.record = np.zeros(1, RECORD)

    def look(self, state=LinkState.WAITING, reason=LinkReason.NONE, refused=0, code=0, **other):
        """One more record, a look at it, and what was told since the last look."""
        self.record["tick"] += 1
        link, timing = self.record["output"]["link"], self.record["timing"]
        link["state"], link["reason"] = state, reason
        timing["peer_rejected"] += refused
        timing["peer_reject_code"] = code
        for name, value in other.items():
            self.record["input"]["peer"]["message"][name] = value
        self.ring.write(self.record)
        self.told.clear()
        self.watch.step()
        return list(self.told)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_nothing_is_told_before_the_first_tick_and_while_it_waits(bench):
    bench.watch.step()
    assert bench.told == []
    assert bench.look(LinkState.WAITING, LinkReason.NOT_ENGAGED) == []
    assert bench.look(LinkState.WAITING, LinkReason.OTHER_NOT_ENGAGED) == []
    assert bench.look(LinkState.OFF) == []


def test_up_and_lost_are_each_told_once(bench):
    ((code, text, facts),) = bench.look(LinkState.UP)
    assert (code, facts["state_name"]) == ("link_up", "UP") and "up" in text
    assert bench.look(LinkState.UP) == []
    ((code, text, facts),) = bench.look(LinkState.LOST, LinkReason.SILENT)
    assert (code, facts["reason_name"]) == ("link_lost", "SILENT")
    assert text == "the link was let go: nothing has come from the other end for 500 ms"
    assert bench.look(LinkState.LOST, LinkReason.SILENT) == []
    assert bench.look(LinkState.WAITING, LinkReason.NONE) == []
    assert bench.look(LinkState.UP)[0][0] == "link_up"


@pytest.mark.parametrize("reason", list(LinkReason))
def test_every_reason_has_words(bench, reason):
    bench.look(LinkState.UP)
    ((code, text, _),) = bench.look(LinkState.LOST, reason)
    assert code == "link_lost" and "\n" not in text
    assert reason.name not in text or reason is LinkReason.NONE


def test_a_mismatch_names_what_each_end_has(bench):
    found = bench.look(LinkState.WAITING, LinkReason.MISMATCH, method=TANK, impedance=(8.0, 0.02), law=1, scale=2.0)
    ((code, text, _),) = found
    assert code == "link_mismatch"
    assert "method 'waves' here and 'tank' there; scale 1 here and 2 there, whose product is not 1" in text
    assert "law" not in text and "mirror" not in text and "share" not in text
    assert bench.look(LinkState.WAITING, LinkReason.MISMATCH) == []


@pytest.mark.parametrize(("with_keys", "said"), [(False, "or ask for keys"), (True, "or refuse this end's key")])
def test_an_end_that_cannot_be_reached_is_told_once(tmp_path, monkeypatch, with_keys, said):
    clock = [100.0]
    monkeypatch.setattr(link_watch.time, "monotonic", lambda: clock[0])
    bench = Bench(tmp_path, "tcp://127.0.0.1:5554", with_keys)
    assert bench.look() == []
    clock[0] += link_watch.NOBODY_AFTER_S - 0.1
    assert bench.look() == []
    clock[0] += 0.2
    ((code, text, _),) = bench.look()
    assert code == "link_waits" and "tcp://127.0.0.1:5554" in text and said in text
    clock[0] += 100.0
    assert bench.look() == []


def test_an_end_that_has_answered_is_not_looked_for(monkeypatch, tmp_path):
    clock = [100.0]
    monkeypatch.setattr(link_watch.time, "monotonic", lambda: clock[0])
    bench = Bench(tmp_path, "ipc:///tmp/x")
    assert bench.look() == []
    bench.record["input"]["peer"]["received"] = 1
    clock[0] += 100.0
    assert bench.look() == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (Reject.VERSION, "another version of the protocol"),
        (Reject.SECOND_PEER, "a second end asks for the link"),
        (Reject.OWN_MESSAGE, "linked to itself"),
        (Reject.KIND, "no peer messages"),
        (Reject.MALFORMED, "cannot be read"),
        (Reject.TOO_LONG, "cannot be read"),
    ],
)
def test_refused_messages_are_told_by_their_code(bench, code, said):
    ((name, text, facts),) = bench.look(refused=3, code=code)
    assert name == "peer_refused" and said in text and text.startswith("3 refused")
    assert (facts["refused"], facts["total"], facts["reject"]) == (3, 3, code)


def test_refusals_are_told_at_times_and_overtaking_never(bench, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(link_watch.time, "monotonic", lambda: clock[0])
    assert bench.look(refused=5, code=Reject.SEQUENCE) == []
    assert len(bench.look(refused=1, code=Reject.VERSION)) == 1
    assert bench.look(refused=100, code=Reject.VERSION) == []
    clock[0] += link_watch.REFUSALS_EVERY_S
    ((_, text, facts),) = bench.look(refused=2, code=Reject.VERSION)
    assert text.startswith("102 refused") and facts["total"] == 108
