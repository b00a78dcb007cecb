"""What the supervisor tells about a link: that it came up or was let go, and what does not fit at its other end."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bridge.ring import RingReader
from bridge.schema import Reject
from haptics.link_codes import LinkReason, LinkState
from haptics.link_settings import misfit

NOBODY_AFTER_S = 5.0
"""So long an end that connects to another one waits for it before that is told."""

REFUSALS_EVERY_S = 5.0
"""Between two notices about refused messages: one who keeps on sending them shall not fill the log."""

_REFUSED = {
    Reject.VERSION: "the other end speaks another version of the protocol; run the same hapticd at both ends",
    Reject.KIND: "what comes at the peer socket are no peer messages: a device or a client is connected to it",
    Reject.SECOND_PEER: "a second end asks for the link; it gets in when the present one has been silent for "
    "`stale_after_ms`",
    Reject.OWN_MESSAGE: "this end gets its own messages: it is linked to itself",
    Reject.NOT_FINITE: "the other end sends numbers that are not finite",
    Reject.NOT_UNIT: "the other end sends orientations that are no unit quaternions",
    Reject.OUT_OF_RANGE: "the other end sends numbers beyond their range",
}
"""Sentences about messages that are refused; all other codes are of messages that cannot be read."""

_QUIET = (Reject.NONE, Reject.SEQUENCE)
"""Not told: messages overtake each other on a network."""


class LinkWatch:
    """Looks at the newest record now and then. `step` never waits."""

    def __init__(
        self, reader: RingReader, settings: np.ndarray, tell: Callable[..., None], connect: str = "", keys: bool = False
    ) -> None:
        """settings: (1,) LINK_SETTINGS of this end; tell: takes a notice (code, text, facts).

        connect: address of the other end, where this one connects to it, and whether by keys.
        """
        self._reader = reader
        self._settings = settings[0]
        self._tell = tell
        self._state = int(LinkState.WAITING)
        self._reason = int(LinkReason.NONE)
        self._rejected = 0
        self._tell_again = 0.0
        self._connect = connect
        self._keys = keys
        self._began: float | None = None

    def step(self) -> None:
        """Tell what has changed since the last look."""
        newest = self._reader.newest()
        if newest is None:
            return
        link, entered, timing = newest["output"]["link"], newest["input"]["peer"], newest["timing"]
        state, reason = int(link["state"]), int(link["reason"])
        if (state, reason) != (self._state, self._reason):
            self._changed(state, reason, entered)
            self._state, self._reason = state, reason
        if self._connect:
            self._look_for_anybody(int(entered["received"]))
        rejected = int(timing["peer_rejected"])
        if rejected != self._rejected:
            self._refused(rejected, int(timing["peer_reject_code"]))

    def _look_for_anybody(self, received: int) -> None:
        """Tell once of an end that cannot be reached."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
        if received == 0 and now - self._began < NOBODY_AFTER_S:
            return
        if received == 0:
            keys = "refuse this end's key, or have another `server_key`" if self._keys else "ask for keys"
            text = f"nothing has come from the other end at {self._connect}: it may not run, have no [link], or {keys}"
            self._tell("link_waits", text, connect=self._connect)
        self._connect = ""

    def _changed(self, state: int, reason: int, entered: np.void) -> None:
        facts = {"state": state, "state_name": _name(LinkState, state)}
        facts |= {"reason": reason, "reason_name": _name(LinkReason, reason)}
        was_up = self._state == LinkState.UP
        if state == LinkState.UP:
            if not was_up:
                self._tell("link_up", "the link is up: both ends feel each other", **facts)
        elif was_up:
            self._tell("link_lost", f"the link was let go: {self._why(reason, entered)}", **facts)
        elif reason == LinkReason.MISMATCH and self._reason != LinkReason.MISMATCH:
            self._tell("link_mismatch", f"the link cannot come up: {self._why(reason, entered)}", **facts)

    def _why(self, reason: int, entered: np.void) -> str:
        own = self._settings
        if reason == LinkReason.SILENT:
            return f"nothing has come from the other end for {own['stale_after_ns'] * 1e-6:g} ms"
        if reason == LinkReason.APART:
            return (
                f"the two ends were farther apart than distance_max, {own['distance_max']:g} m here; it comes up again "
                "when one of them has let go of its forces"
            )
        if reason == LinkReason.MISMATCH:
            # The newest message may be another one than that which did not fit.
            return f"the [link] of the two ends do not fit: {misfit(own, entered['message']) or 'just now they do'}"
        words = {
            LinkReason.NOT_ENGAGED: "there are no forces at this end",
            LinkReason.OTHER_NOT_ENGAGED: "there are no forces at the other end, or it is not up yet",
            LinkReason.NOT_FINITE: "a number of the other end, or of its own force, was not finite",
        }
        return next((text for known, text in words.items() if known == reason), _name(LinkReason, reason))

    def _refused(self, total: int, code: int) -> None:
        if code in _QUIET:
            self._rejected = total
        elif time.monotonic() >= self._tell_again:
            self._tell_again = time.monotonic() + REFUSALS_EVERY_S
            count = total - self._rejected
            self._rejected = total
            text = _REFUSED.get(code, "what comes at the peer socket cannot be read")
            self._tell(
                "peer_refused", f"{count} refused at the peer socket: {text}", refused=count, total=total, reject=code
            )


def _name(kind: Any, number: int) -> str:
    try:
        return kind(number).name
    except ValueError:
        return f"unknown({number})"
