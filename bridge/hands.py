"""Hands as clients: a motion feels a running daemon over the wire at its tick rate.

What moves is made in :mod:`bridge.motions`; here a hand takes the lease, asks for forces, moves, reports and leaves.
"""

import contextlib
import gc
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bridge.client import Client, HapticdError, NoReplyError, Question
from bridge.ending import asked_to_end
from bridge.motions import NO_WRENCH, Motion, SceneView, make_motion
from bridge.wire import Render
from haptics.hands import HandPose
from haptics.states import EngagementState, Reason

MOST_PERIODS = 4
"""A hand whose client was held up goes on from where it was: it moves for at most so many periods at once."""

HOLD_AGAIN_NS = 200_000_000
"""Between two attempts to get forces back that were dropped because samples came late."""

ENGAGE_TIMEOUT_S = 5.0
LEAVE_TIMEOUT_S = 1.0

Watch = Callable[[Client, HandPose, Render], bool]
"""Gets the client, the pose that was sent last and the newest render in each period; False ends the motion."""

_AT_REST = (EngagementState.IDLE, EngagementState.FAULT)
_NOT_YET = ("too_far", "wrong_state")
"""Refusals of `arm` after which a later attempt may succeed."""


@dataclass
class HandReport:
    """What a hand saw while it ran."""

    ended: str = "finished"
    """Why: ``finished``, ``duration``, ``interrupted``, ``watch`` (whoever looked on ended it), or a sentence when the
    daemon took the forces away."""
    ok: bool = True
    """Whether it was the hand that ended."""
    seconds: float = 0.0
    """Of its motion, from full gains on."""
    samples: int = 0
    renders: int = 0
    """Different ticks whose render was used."""
    late: int = 0
    """Periods skipped because this client was late."""
    holds: int = 1
    """How often it took hold: more than once when the daemon dropped the forces because samples came too late."""
    answer_us: dict[str, float] = field(default_factory=dict)
    """p50, p99, max. Triggered: sample sent to render received; free-running: sample sent to its render departing."""
    force_peak: float = 0.0
    """N"""
    contact_fraction: float = 0.0
    """Part of the renders with a force."""
    states: dict[str, int] = field(default_factory=dict)
    """Renders seen in each state."""
    transitions: list[str] = field(default_factory=list)
    """``STATE: REASON`` in the order in which they were seen."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def _lost_to_lateness(render: Render) -> bool:
    """Whether forces are off for no other reason than that samples came too late."""
    return render.state == EngagementState.IDLE and render.reason == Reason.SAMPLE_STALE


@contextlib.contextmanager
def _quiet_collector() -> Iterator[None]:
    """What exists already is not searched for garbage meanwhile: a full collection can outlast the stale horizon."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Run:
    """The loop of one hand: engage, move, leave."""

    def __init__(
        self, client: Client, motion: Motion, paced: bool, on_line: Callable[[str], None] | None, watch: Watch | None
    ) -> None:
        self._client = client
        self._watch = watch
        self._motion = motion
        self._paced = paced
        self._on_line = on_line
        self._period_ns = max(1, round(client.tick_s * 1e9))
        self._due = time.monotonic_ns()
        self._line_due = self._due + 500_000_000
        self._pose = motion.first
        self._answers: list[int] = []
        self._last_tick = -1
        self._last_seq = 0
        self._touching = 0
        self._states: Counter[str] = Counter()
        self._last_transition = ""
        self._question: Question | None = None
        self._ask_due = 0
        self.report = HandReport()

    def _period(self) -> float:
        """Waits for the next period; returns the seconds for which the motion goes on."""
        self._due += self._period_ns
        passed = 1
        if self._paced:
            wait_ns = self._due - time.monotonic_ns()
            if wait_ns > 0:
                time.sleep(wait_ns * 1e-9)
            else:
                skipped = -wait_ns // self._period_ns
                self._due += skipped * self._period_ns
                self.report.late += skipped
                passed = min(1 + skipped, MOST_PERIODS)
        return passed * self._period_ns * 1e-9

    def _exchange(self) -> Render:
        client = self._client
        before = time.monotonic_ns()
        render = client.exchange(
            self._pose.position, self._pose.orientation, deadman=getattr(self._motion, "held", True), t_sample=before
        )
        self.report.samples += 1
        if client.triggered:
            self._answers.append(time.monotonic_ns() - before)
        if render.tick != self._last_tick:
            self._last_tick = render.tick
            self._note(render)
        return render

    def _note(self, render: Render) -> None:
        self.report.renders += 1
        if not self._client.triggered and render.seq > self._last_seq:
            self._last_seq = render.seq
            sent = self._client.sent_at(render.seq)
            if sent is not None:
                self._answers.append(render.t_sent - self._client.clock_offset_ns - sent)
        force = math.hypot(*render.wrench[:3])
        self.report.force_peak = max(self.report.force_peak, force)
        self._touching += force > 0.0
        state, reason = EngagementState(render.state).name, Reason(render.reason).name
        self._states[state] += 1
        transition = f"{state}: {reason}"
        if transition != self._last_transition:
            self._last_transition = transition
            self.report.transitions.append(transition)
        now = time.monotonic_ns()
        if self._on_line is not None and now >= self._line_due:
            self._line_due = now + 500_000_000
            gap = "no surface near" if render.gap < 0 else f"gap {render.gap * 1e3:.2f} mm"
            answer = f"answer {self._answers[-1] / 1e3:.0f} us" if self._answers else ""
            self._on_line(
                f"{self.report.seconds:7.1f} s  {state:9s}  force {force:6.2f} N (peak {self.report.force_peak:.2f})  "
                f"{gap}  {answer}"
            )

    def engage(self, reanchor: bool, stop: threading.Event) -> bool:
        """Lease, arm, wait for full gains; False when told to stop meanwhile. Raises HapticdError when refused.

        Where only lateness took the forces before they were fully on, they are asked for again.
        """
        self._client.lease()
        for _ in range(3):  # so that the tool has followed to where the hand begins before forces are asked for
            self._exchange()
            self._period()
        question: Question | None = self._client.ask("arm", reanchor=reanchor)
        armed_tick = 0
        deadline = time.monotonic() + ENGAGE_TIMEOUT_S
        while not stop.is_set():
            render = self._exchange()
            if question is not None:
                reply = question.reply()
                if reply is not None:
                    armed_tick, question = reply["tick"], None
            elif render.tick >= armed_tick and render.state == EngagementState.ACTIVE:
                return True
            elif render.tick >= armed_tick and render.state in _AT_REST:
                if not _lost_to_lateness(render):
                    raise HapticdError("wrong_state", f"forces were not given: {self._last_transition}")
                question = self._client.ask("arm", reanchor=reanchor)
                self.report.holds += 1
            if time.monotonic() > deadline:
                text = f"forces are not on after {ENGAGE_TIMEOUT_S:g} s: {self._last_transition}"
                raise HapticdError("timeout", text)
            self._period()
        return False

    def move(self, duration_s: float | None, stop: threading.Event) -> None:
        """Plays the motion until it ends, the time is over, somebody stops it, or the daemon takes the forces away."""
        wrench: Sequence[float] = NO_WRENCH
        while True:
            dt = self._period()
            self.report.seconds += dt
            self._pose = self._motion.step(dt, wrench)
            render = self._exchange()
            wrench = render.wrench
            if (render.state in _AT_REST or self._question is not None) and not self._hold_again(render):
                self.report.ok = False
                self.report.ended = f"the daemon took the forces away: {self._last_transition}"
                return
            if self._watch is not None and not self._watch(self._client, self._pose, render):
                self.report.ended = "watch"
                return
            if stop.is_set():
                self.report.ended = "interrupted"
                return
            whole = self._motion.duration_s  # a hand that feels its way may be done earlier than it thought
            ends = [s for s in (duration_s, whole) if s is not None]
            if ends and self.report.seconds >= min(ends):
                finished = whole is not None and whole <= min(ends)
                self.report.ended = "finished" if finished else "duration"
                return

    def _hold_again(self, render: Render) -> bool:
        """Asks for forces once more where only lateness took them, at any time a moment later; False where it did not.

        The motion goes on meanwhile, and forces come back where it is near the tool, never by a jump.
        """
        if self._question is not None:
            try:
                if self._question.reply() is not None:
                    self._question = None
                    self.report.holds += 1
            except HapticdError as error:
                self._question = None
                return error.code in _NOT_YET
            return True
        if not _lost_to_lateness(render):
            return False
        now = time.monotonic_ns()
        if now >= self._ask_due:
            self._ask_due = now + HOLD_AGAIN_NS
            self._question = self._client.ask("arm", reanchor=False)
        return True

    def leave(self) -> None:
        """Ramps forces down with the device standing still."""
        question: Question | None = self._client.ask("disarm")
        deadline = time.monotonic() + LEAVE_TIMEOUT_S
        while time.monotonic() < deadline:
            self._period()
            render = self._exchange()
            if question is not None and question.reply() is not None:
                question = None
            if question is None and render.state in _AT_REST:
                return

    def finish(self) -> HandReport:
        """The report, with its statistics."""
        report = self.report
        if self._answers:
            answers = np.array(self._answers) * 1e-3
            report.answer_us = {
                "p50": float(np.percentile(answers, 50)),
                "p99": float(np.percentile(answers, 99)),
                "max": float(answers.max()),
            }
        report.contact_fraction = self._touching / max(1, report.renders)
        report.states = dict(self._states)
        return report


def run_hand(
    hand: str | Motion,
    *,
    daemon: str | Mapping[str, str] = "default",
    client_name: str | None = None,
    duration_s: float | None = None,
    reanchor: bool = False,
    encoding: str = "struct",
    paced: bool = True,
    on_line: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> HandReport:
    """Be the owner of a daemon with a hand until its motion ends; returns what it saw.

    ``hand``: a kind (``sim``, ``recorded``, ``scripted``) with its ``options``, see
    :func:`bridge.motions.make_motion`, or a :class:`bridge.motions.Motion` in the device frame. ``duration_s`` counts
    from full gains. ``reanchor`` starts wherever the tool is, by moving the map. ``paced``: keep the daemon's tick rate
    (a triggered daemon may also be driven as fast as it goes). ``on_line`` gets a one-line summary twice a second.
    ``stop``, SIGINT, SIGTERM and SIGHUP end it cleanly: forces ramp down, the lease goes back. Forces that the daemon
    dropped only because this client was held up (SAMPLE_STALE) are asked for again; any other loss ends the run.
    ``watch`` looks on while it moves, and may end it.
    Raises HapticdError, RecordingError or ValueError before forces are on.
    """
    asked = stop if stop is not None else threading.Event()
    kind = hand if isinstance(hand, str) else "hand"
    with Client(daemon, client_name or f"{kind}-{os.getpid()}", encoding=encoding) as client:
        if isinstance(hand, str):
            motion = make_motion(hand, SceneView.of(client, daemon), **options)
        elif options:
            raise ValueError(f"a finished motion takes no options ({', '.join(options)})")
        else:
            motion = hand
        run = _Run(client, motion, paced, on_line, watch)
        with asked_to_end(asked), _quiet_collector():
            try:
                if run.engage(reanchor, asked):
                    run.move(duration_s, asked)
                else:
                    run.report.ended = "interrupted"
                if run.report.ok:
                    run.leave()
            except NoReplyError as error:
                if run.report.seconds == 0.0:
                    raise
                run.report.ok = False
                run.report.ended = f"the daemon fell silent: {error.text}"
            return run.finish()
