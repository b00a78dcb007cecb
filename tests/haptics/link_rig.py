"""One end of a link without a scene: its port is wherever the test says, and what it hears comes through a channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from haptics.cards import load_card
from haptics.link import hear, render
from haptics.link_codes import LinkReason, LinkState
from haptics.link_settings import make_link
from haptics.settings import make_settings
from haptics.tables import LINK, LINK_OUTPUT, PEER, PEER_INPUT, PORT
from tools.two_ends import Channel

LONG_AGO = 10**15
"""ns: the age of what has never come."""


class BareEnd:
    """One end: put its place and motion into ``port``, then :meth:`go`."""

    def __init__(self, session: int, tick_hz: float = 1000.0, **link: Any) -> None:
        settings = make_settings(load_card("simulated"), tick_hz=tick_hz)
        self.settings = make_link(settings, **link)[0]
        self.link, self.port = np.zeros(1, LINK)[0], np.zeros(1, PORT)[0]
        self.peer, self.output = np.zeros(1, PEER_INPUT)[0], np.zeros(1, LINK_OUTPUT)[0]
        for row in (self.link["other_orientation"], self.link["offset_orientation"], self.port["orientation"]):
            row[3] = 1.0
        self.port["engaged"], self.port["fresh"] = 1, 1.0
        self.session = session
        self.message = np.zeros(1, PEER)
        self.heard_ns: int | None = None

    def go(self, now_ns: int, heard: np.ndarray | None) -> np.ndarray | None:
        """One tick at a time of the clock; returns what is said, (1,) PEER, or None."""
        peer = self.peer
        peer["fresh"] = heard is not None
        if heard is not None:
            peer["message"] = heard[0]
            peer["decides"] = self.session > heard["session"][0]
            self.heard_ns = now_ns
        peer["age_ns"] = LONG_AGO if self.heard_ns is None else now_ns - self.heard_ns
        hear(self.settings, self.link, peer, self.port)
        render(self.settings, self.link, self.port, self.output)
        if not self.output["send"]:
            return None
        self.message[0] = self.output["message"]
        self.message["session"], self.message["t_sent"] = self.session, now_ns
        return self.message

    @property
    def state(self) -> LinkState:
        return LinkState(int(self.output["state"]))

    @property
    def reason(self) -> LinkReason:
        return LinkReason(int(self.output["reason"]))


class BarePair:
    """Two of them and the ways between, in ticks of a millisecond."""

    def __init__(self, first: BareEnd, second: BareEnd, delay: int = 0) -> None:
        self.ends = (first, second)
        self.ways = (Channel(delay), Channel(delay))
        self.now = 0

    def run(self, ticks: int) -> None:
        """Go on for so many ticks."""
        for _ in range(ticks):
            self.now += 1
            for i, end in enumerate(self.ends):
                said = end.go(self.now * 1_000_000, self.ways[1 - i].take(self.now - 1))
                if said is not None:
                    self.ways[i].put(self.now, said)

    @property
    def states(self) -> list[LinkState]:
        return [end.state for end in self.ends]

    @property
    def reasons(self) -> list[LinkReason]:
        return [end.reason for end in self.ends]


def bare_pair(delay: int = 0, first: dict | None = None, second: dict | None = None, **link: Any) -> BarePair:
    """Two ends of the same settings, but for what ``first`` and ``second`` add."""
    link = {"method": "none", "stiffness": 100.0, "damping": 0.0} | link
    return BarePair(BareEnd(11, **(link | (first or {}))), BareEnd(12, **(link | (second or {}))), delay)
