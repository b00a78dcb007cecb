"""The observer against a stand-in daemon: states, events, and what it missed."""

import time

import pytest
from stand_in import StandIn
from waiting import wait_until

from bridge.client import Observer
from haptics.states import Reason


@pytest.fixture
def triggered(tmp_path):
    with StandIn(tmp_path) as stand_in:
        yield stand_in


def subscribed(stand_in: StandIn, observer: Observer) -> None:
    """Waits until both subscriptions have reached the publisher and nothing is on its way any more."""
    sent = 0
    newest = {"event": 0, "state": 0}

    def publish() -> None:
        nonlocal sent
        sent += 1
        stand_in.publish("events", {"source": "test", "seq": sent})
        stand_in.publish("state", {"tick": sent})

    def look() -> None:
        observation = observer.receive(20)
        if observation is not None:
            newest[observation.kind] = observation.fields["seq" if observation.kind == "event" else "tick"]
        elif not all(newest.values()):
            publish()

    publish()
    wait_until(lambda: all(newest.values()), "no subscription", meanwhile=look)
    publish()
    wait_until(lambda: set(newest.values()) == {sent}, "what was published did not come", meanwhile=look)


def test_an_observer_sees_states_and_events_and_counts_what_it_missed(triggered):
    with Observer(triggered.endpoints) as observer:
        subscribed(triggered, observer)
        for seq in (7, 8, 11):
            triggered.publish("events", {"source": "servo", "seq": seq, "reason": int(Reason.COMMAND)})
        triggered.publish("events", {"source": "recorder", "seq": 3})
        triggered.publish("events", {"source": "recorder", "seq": 4})
        seen = [observer.receive(20_000) for _ in range(5)]
        assert [(o.fields["source"], o.fields["seq"], o.lost) for o in seen] == [
            ("servo", 7, 0),
            ("servo", 8, 0),
            ("servo", 11, 2),
            ("recorder", 3, 0),
            ("recorder", 4, 0),
        ]
        triggered.publish("state", {"tick": 5})
        observation = next(iter(observer))
        assert (observation.kind, observation.fields["tick"]) == ("state", 5)
        assert observer.receive(10) is None


def test_the_newest_state_is_the_last_of_a_queue(triggered):
    """They travel while nobody looks, so it is repeated: one that gives the last of 20 has passed over 19."""
    with Observer(triggered.endpoints, events=False) as observer:
        wait_until(lambda: observer.newest_state(20), meanwhile=lambda: triggered.publish("state", {"tick": 0}))
        for last in range(20, 1000, 20):
            for tick in range(last - 19, last + 1):
                triggered.publish("state", {"tick": tick})
            time.sleep(0.05)
            newest = wait_until(lambda last=last: (s := observer.newest_state(1000)) and s["tick"] > last - 20 and s)
            if newest["tick"] == last:
                break
            wait_until(lambda last=last: observer.newest_state(0) == {"tick": last}, "the last state is lost")
        else:
            raise AssertionError("older states came first each time")
        assert observer.newest_state(10) is None


def test_an_observer_needs_only_the_control_address(triggered):
    with Observer(triggered.endpoints["control"]) as observer:
        subscribed(triggered, observer)
    assert triggered.requests[0]["roles"] == ["observer"]
