"""Certifying a device at a running daemon: its stiffness is raised while somebody presses it against a wall."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.client import Client, Question
from bridge.hands import HandReport, run_hand
from bridge.motions import Motion
from bridge.wire import Render
from haptics.certified import CertifiedRow
from haptics.certify_sweep import StiffnessSweep, SweepPlan
from haptics.hands import HandPose
from haptics.limits import SLOWED
from haptics.states import EngagementState

_ON = (EngagementState.ENGAGING, EngagementState.ACTIVE, EngagementState.HOLD)

ENDS = ("reached", "oscillation", "energy")
"""How a sweep ends that has found something."""

START = 0.1
"""Of the card's largest stiffness: where a sweep begins."""


@dataclass(frozen=True)
class Measured:
    """What a sweep has found."""

    row: CertifiedRow
    """With one damping; the limit is the highest stiffness that was quiet, 0 when none was."""
    ended: str
    """``reached``, ``oscillation``, ``energy``, ``slow samples`` (for which the daemon softened the spring, so nothing
    was found), ``let go`` (of the deadman), or a sentence when it was cut short."""
    energy: float
    """J that the port had given at the end."""
    report: HandReport


def plan_for(facts: Mapping[str, Any], first: float | None = None, last: float | None = None) -> SweepPlan:
    """From a tenth of what the daemon allows, up to that: ``facts`` is its answer to `describe`.

    Raises ValueError for a daemon that may not be certified: one without force, or that needs no deadman.
    """
    if not facts["card"].get("actuated"):
        raise ValueError(f"the device {facts['card'].get('name')!r} is input only: there is nothing to certify")
    if not facts["config"]["safety"]["require_deadman"]:
        raise ValueError(
            "the daemon asks for no deadman: set require_deadman = true in [safety], so that letting go of it ends "
            "the forces, and start it again"
        )
    cap = float(facts["limits"]["stiffness_max"])
    highest = cap if last is None else last
    if highest > cap:
        raise ValueError(f"the daemon allows {cap:g} N/m at most, by its card; it cannot go up to {highest:g} N/m")
    return SweepPlan(first=START * highest if first is None else first, last=highest)


class _Watcher:
    """Asks for the gains of a sweep while a hand runs."""

    def __init__(
        self, sweep: StiffnessSweep, damping: float, period: float, on_stage: Callable[[float], None] | None
    ) -> None:
        self._sweep, self._damping, self._period, self._on_stage = sweep, damping, period, on_stage
        self.let_go = False
        self._question: Question | None = None
        self._asked = 0

    def __call__(self, client: Client, pose: HandPose, render: Render) -> bool:
        if self._asked == 0:
            self._ask(client)
        if self._question is not None and self._question.reply() is not None:
            self._question = None
        if render.state not in _ON:
            self.let_go = True
            return False
        slowed = bool(render.limited & SLOWED)
        if self._sweep.watch(render.tick * self._period, pose.position, render.wrench[:3], slowed):
            self._ask(client)
        return not self._sweep.ended

    def _ask(self, client: Client) -> None:
        """Ask for the sweep's stiffness; the answer to an earlier request is not waited for: the newest counts."""
        self._asked += 1
        self._question = client.ask("set", stiffness=self._sweep.stiffness, damping=self._damping)
        if self._on_stage is not None:
            self._on_stage(self._sweep.stiffness)


def measure(
    motion: Callable[[Client], Motion],
    *,
    hand: str,
    daemon: str | Mapping[str, str] = "default",
    damping: float | None = None,
    first: float | None = None,
    last: float | None = None,
    resolution: float = 0.0,
    reanchor: bool = False,
    paced: bool = True,
    on_stage: Callable[[float], None] | None = None,
) -> Measured:
    """Raise the stiffness (N/m) at a daemon from ``first`` to ``last`` while ``motion`` presses a device to a wall.

    ``motion`` makes the device's motion for a connected client: each step applies a wrench and returns the pose that
    the device reads then; its ``held`` says whether the deadman is pressed, where it has one. ``hand``: who holds it,
    for the row: held, light or none. ``damping``: N·s/m, by default that in force. ``resolution``: encoder step, m.
    ``paced``: as for :func:`bridge.hands.run_hand`. ``on_stage`` hears of each stiffness. However it ends, forces ramp
    down with the stiffness of the beginning. Raises HapticdError, and ValueError as :func:`plan_for`.
    """
    with Client(daemon, "certify") as client:
        facts = client.describe()
        moved = motion(client)
    plan = plan_for(facts, first, last)
    period = facts["tick_ns"] * 1e-9
    chosen = float(facts["limits"]["damping"]) if damping is None else damping
    sweep = StiffnessSweep(plan, period, resolution)
    watcher = _Watcher(sweep, chosen, period, on_stage)
    report = run_hand(moved, daemon=daemon, client_name="certify", reanchor=reanchor, paced=paced, watch=watcher)
    row = CertifiedRow(
        by="measured",
        hand=hand,
        scene="wall",
        passivity=bool(facts["config"]["coupling"]["passivity"]),
        rate=round(1e9 / facts["tick_ns"], 3),
        delay_ticks=int(facts["clocking"] == "free"),
        damping=(chosen,),
        stiffness_limit=(sweep.quiet,),
    )
    return Measured(row, sweep.ended or ("let go" if watcher.let_go else report.ended), sweep.energy, report)
