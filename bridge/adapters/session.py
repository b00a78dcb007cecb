"""One lease at one daemon, seen from a loop that never waits: ask, collect later, send, take the newest render."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bridge.adapters.clock import RenderClock
from bridge.adapters.device import Reading
from bridge.client import Client, HapticdError, NoReplyError, Question
from bridge.wire import Render
from haptics.states import EngagementState, Reason

REPLY_MS = 2000
SILENCE_S = 0.5
"""Without renders the session is taken for lost."""
ARM_AGAIN_S = 0.2

_LATE = (Reason.SAMPLE_STALE, Reason.SAMPLE_REJECTED, Reason.SAMPLE_INVALID)
_AGAIN = ("too_far", "wrong_state", "busy")
"""Refusals of a request after which it is asked again, as one is that was not answered in time."""


def shares_clock(client: Client) -> bool:
    """Whether a daemon has this machine's monotonic clock: its socket is a local one, and by its own clock it answered
    `hello` between the sending and the coming of the reply."""
    near = client.endpoints["device"].startswith("ipc://")
    return near and abs(client.clock_offset_ns) <= client.clock_uncertainty_ns


class Session:
    """One lease at one daemon, without ever waiting for it."""

    def __init__(self, client: Client, reanchor: bool, say: Callable[[str], None], clock: Callable[[], int]) -> None:
        self.client = client
        self.render: Render | None = None
        self.t_render = 0
        """When the newest render left, this machine's clock, ns."""
        self.unusable = False
        """Whether what came last cannot be used (NaN, malformed)."""
        self._reanchor = reanchor
        self._say = say
        self._clock = clock
        self._daemons = RenderClock(same=shares_clock(client))
        self._question: Question | None = None
        self._doing = ""
        self._armed = False
        self.leased = False
        """Whether samples may be sent."""
        self.unsure = False
        """Whether the daemon may give the lease although nobody waits for it any more."""
        self._ask_at = 0
        self._period_ns = round(client.tick_s * 1e9)
        self._send_at = 0
        self._told = ""
        self._heard = clock()
        self._ask("lease", self._heard)

    @property
    def state(self) -> int:
        """The engagement state that the newest render says, IDLE before the first."""
        return self.render.state if self.render is not None else EngagementState.IDLE

    @property
    def silent(self) -> bool:
        """Whether renders stay away, so that the session is taken for lost."""
        return self.leased and self._clock() - self._heard > int(SILENCE_S * 1e9)

    def cycle(self, reading: Reading, t_sample: int, twist: Any, on: bool, again: bool) -> bool:
        """Send, receive, ask; returns whether a new render came. Raises HapticdError when the daemon refuses for good.

        ``on``: forces are wanted. ``again``: leave a fault, as somebody at the device asks for.
        """
        now = self._clock()
        self._collect(now)
        if not self.leased:
            if self._question is None:
                self._ask("lease", now)
            return False
        if now >= self._send_at:
            self._send_at = max(self._send_at + self._period_ns, now - self._period_ns)
            # A daemon that takes nothing for a moment loses a sample; one that is gone falls silent, which is judged.
            with suppress(NoReplyError):
                self.client.send(
                    reading.position,
                    reading.orientation,
                    t_sample=t_sample,
                    twist=twist,
                    buttons=reading.buttons & 0xFFFFFFFF,
                    deadman=reading.held,
                    valid=reading.valid,
                )
        fresh = self._receive()
        if self._question is None:
            if on and self.state == EngagementState.IDLE and self.render is not None:
                # Who only was late takes hold where the tool was left; whoever comes anew may be anywhere.
                late = self._armed and self.render.reason in _LATE
                self._ask("arm", now, reanchor=self._reanchor and not late)
            elif again and self.state == EngagementState.FAULT:
                self._ask("reset", now)
            elif not on and self.state not in (EngagementState.IDLE, EngagementState.FAULT, EngagementState.RELEASING):
                self._ask("disarm", now)
        return fresh

    def _ask(self, op: str, now: int, **fields: Any) -> None:
        """Ask, unless the same was asked a moment ago."""
        if op == self._doing and now < self._ask_at:
            return
        self._question, self._doing = self.client.ask(op, timeout_ms=REPLY_MS, **fields), op
        self._ask_at = now + int(ARM_AGAIN_S * 1e9)

    def _collect(self, now: int) -> None:
        if self._question is None:
            return
        try:
            reply = self._question.reply()
        except HapticdError as error:
            self._question = None
            self._not_done(error)
            return
        if reply is None:
            return
        self._question = None
        self._armed |= self._doing == "arm"
        if self._doing == "lease":
            self._heard, self.leased = now, True
            # What a lease does to the client, whose own call would have waited for the reply.
            self.client.leased()

    def _not_done(self, error: HapticdError) -> None:
        """Refused or not answered: raises what cannot be asked again, or not here."""
        late = error.code in ("timeout", "no_reply")
        if self._doing == "lease":
            # Who asks again renews, where the daemon has given it meanwhile.
            self.unsure |= late
            if error.code not in ("timeout", "busy"):
                raise error
        elif not late and error.code not in _AGAIN:
            raise error
        if self._doing in ("lease", "arm") and error.code != "no_reply" and error.text != self._told:
            self._told = error.text
            self._say(f"no forces: {error.text}")

    def _receive(self) -> bool:
        try:
            render = self.client.receive()
            # Not before: a render that left while this process was held up would seem to come before it was sent.
            now = self._clock()
        except HapticdError:
            self.unusable = True
            return False
        if render is None or (self.render is not None and render.tick <= self.render.tick):
            return False
        self.unusable = False
        if self.render is None or (render.state, render.reason) != (self.render.state, self.render.reason):
            reason = render.reason.name if isinstance(render.reason, Reason) else str(render.reason)
            self._say(f"{render.state_name}: {reason}")
        self.render = render
        sample_sent = self.client.sent_at(render.seq)
        self.t_render = self._daemons.left(render.t_sent, now, render.t_received, sample_sent)
        self._heard = now
        return True

    def leave(self) -> None:
        """Give the lease back and close; waits half a second for the answer at most."""
        if self.unsure:
            self.client.leased()
        self.client.close()
