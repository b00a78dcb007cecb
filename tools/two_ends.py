"""Two devices joined by a link, in one process and in simulated time: each with the real tick and a simulated hand.

What lies between them is a channel that delays, scatters and loses messages, by a seed.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from haptics.cards import load_card
from haptics.hands import DeviceDynamics, Grip, Path, SimulatedHand
from haptics.link_settings import make_link
from haptics.settings import make_settings
from haptics.states import CommandKind, EngagementState
from haptics.tables import PEER, RECORD
from haptics.tick import tick
from haptics.touch import make_touch
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder
from rtcore.state import make_state

OWNER = 1
TIP_RADIUS = 0.005
EPS_ALERT, EPS_SAFETY, EPS_BREAK = 1e-4, 2.5e-4, 6e-4
REST = TIP_RADIUS + EPS_SAFETY
"""Height of the tip's centre over the floor that it rests on, m."""
BUDGET = (20000, 8, 50, 0)


def floor(height: float = -1.0) -> Model:
    """A plane of 2 m that faces up, far below unless said otherwise."""
    builder = ModelBuilder()
    corners = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
    plate = builder.add_mesh(*build_tree(corners, np.array([[0, 1, 2], [0, 2, 3]])))
    builder.add_body(plate, (0.0, 0.0, height), friction_static=0.0, friction_kinetic=0.0)
    return builder.build(TIP_RADIUS, (0.0, 0.0, 0.0), EPS_ALERT, EPS_SAFETY, EPS_BREAK)


class Channel:
    """One way of a link: messages come after ``delay`` ticks, later by up to ``jitter``, or never (``loss``, 0..1)."""

    def __init__(self, delay: int = 0, jitter: int = 0, loss: float = 0.0, seed: int = 0) -> None:
        self.delay, self.jitter, self.loss = delay, jitter, loss
        self.cut = False
        """True: nothing gets through."""
        self._random = np.random.default_rng(seed)
        self._on_the_way: list[tuple[int, int, np.ndarray]] = []
        self._newest = 0
        self.sent = self.lost = 0

    def put(self, now: int, message: np.ndarray) -> None:
        """Take a (1,) PEER at tick ``now``."""
        self.sent += 1
        late = int(self._random.integers(0, self.jitter + 1)) if self.jitter else 0
        if self._random.random() < self.loss or self.cut:
            self.lost += 1
            return
        heapq.heappush(self._on_the_way, (now + self.delay + late, self.sent, message.copy()))

    def take(self, now: int) -> np.ndarray | None:
        """The newest message that has come by tick ``now``, unless a newer one came before; or None."""
        newest = None
        while self._on_the_way and self._on_the_way[0][0] <= now:
            _, number, message = heapq.heappop(self._on_the_way)
            if number > self._newest:
                self._newest, newest = number, message
        return newest


class End:
    """A device with its touch layer and the hand that holds it."""

    def __init__(
        self,
        hand: SimulatedHand,
        session: int,
        card: str = "simulated",
        model: Model | None = None,
        coupling: dict[str, Any] | None = None,
        **link: Any,
    ) -> None:
        self.hand = hand
        self.session = session
        self.settings = make_settings(load_card(card), **(coupling or {}))
        self.settings["link"] = make_link(self.settings, **link)[0]
        self.model = model if model is not None else floor()
        self.state = make_state(self.model, hand.position)
        self.touch = make_touch(self.settings)
        self.record = np.zeros(1, RECORD)
        self.record["budget"] = BUDGET
        self.sample["session"] = OWNER
        self.sample["valid"] = self.sample["deadman"] = 1
        self.message = np.zeros(1, PEER)
        self.heard_at = 0
        self.heard_seq = 0
        self.commands = 0
        self.limit = self.settings[0]["force_slew"]
        self.given = 0.0
        """J that what was rendered has done on the hand, by the way of the handle itself: no ledger is asked."""
        self.every = 1
        """Ticks from one sample to the next."""
        self.late = 0
        """Ticks by which samples come later than at multiples of these."""
        self.command(CommandKind.LEASE)
        self.go(0, None)
        self.command(CommandKind.ARM, 1)

    @property
    def output(self) -> Any:
        return self.record[0]["output"]

    @property
    def sample(self) -> Any:
        return self.record[0]["input"]["sample"]

    @property
    def status(self) -> EngagementState:
        return EngagementState(int(self.touch[0]["state"]))

    def command(self, kind: CommandKind, *values: float) -> None:
        """Lay a command into the input of the next tick."""
        self.commands += 1
        command = self.record[0]["input"]["command"]
        command["id"], command["session"], command["kind"] = self.commands, OWNER, kind
        command["values"] = 0.0
        command["values"][: len(values)] = values

    def go(self, now: int, heard: np.ndarray | None) -> np.ndarray | None:
        """One tick at number ``now``: the hand goes on, what was heard is taken in; returns what is said, (1,) PEER."""
        row = self.record[0]
        dt = self.settings[0]["dt"]
        before, turned = self.hand.position.copy(), self.hand.turned.copy()
        pose = self.hand.step(dt, row["output"]["wrench"])
        wrench = row["output"]["wrench"]
        self.given += float(wrench[:3] @ (self.hand.position - before) + wrench[3:] @ (self.hand.turned - turned))
        taken = row["input"]
        since = (now - self.late) % self.every
        taken["fresh"] = since == 0
        taken["has_sample"] = 1
        if taken["fresh"]:
            sample = taken["sample"]
            sample["seq"] += 1
            sample["t_sample"] = round(now * dt * 1e9)
            sample["position"], sample["orientation"] = pose
        taken["age_ns"] = round(since * dt * 1e9)
        peer = taken["peer"]
        peer["fresh"] = heard is not None
        if heard is not None:
            peer["message"] = heard[0]
            peer["decides"] = self.session > heard["session"][0]
            self.heard_at = now
        peer["age_ns"] = round((now - self.heard_at) * dt * 1e9)
        row["tick"] += 1
        tick(self.model, self.state, self.settings, self.touch, self.record)
        taken["command"]["id"] = 0
        if not row["output"]["link"]["send"]:
            return None
        self.message[0] = row["output"]["link"]["message"]
        self.message["session"] = self.session
        self.message["t_sent"] = round(now * dt * 1e9)
        return self.message


@dataclass
class Course:
    """What happened, per tick and end: (ticks, 2, ...)."""

    position: np.ndarray
    """Of the hands' handles, m."""
    force: np.ndarray
    """Of the link, N, (ticks, 2, 3), as it was sent to the motors."""
    wrench: np.ndarray
    """Rendered force, N, (ticks, 2, 3)."""
    energy: np.ndarray
    """J handed to each hand by what was rendered, over the way of its handle: in free space by the link."""
    booked: np.ndarray
    """J handed to each hand by the link, as its own ledger says."""
    state: np.ndarray
    """LinkState."""
    engaged: np.ndarray
    """EngagementState."""
    messages: list[int] = field(default_factory=list)
    """That each end has sent."""


class Pair:
    """Two ends and the two ways between them."""

    def __init__(self, first: End, second: End, ways: tuple[Channel, Channel] | None = None) -> None:
        self.ends = (first, second)
        self.ways = ways if ways is not None else (Channel(), Channel())
        """From first to second, and back."""
        self.now = 0

    def run(self, ticks: int) -> Course:
        """Go on for so many ticks."""
        course = Course(
            np.zeros((ticks, 2, 3)),
            np.zeros((ticks, 2, 3)),
            np.zeros((ticks, 2, 3)),
            np.zeros((ticks, 2)),
            np.zeros((ticks, 2)),
            np.zeros((ticks, 2), int),
            np.zeros((ticks, 2), int),
        )
        for k in range(ticks):
            self.now += 1
            for i, end in enumerate(self.ends):
                said = end.go(self.now, self.ways[1 - i].take(self.now - 1))
                if said is not None:
                    self.ways[i].put(self.now, said)
                course.position[k, i] = end.hand.position
                course.force[k, i] = end.touch[0]["link_sent"][:3]
                course.wrench[k, i] = end.output["wrench"][:3]
                course.energy[k, i] = end.given
                course.booked[k, i] = end.output["link"]["energy"]
                course.state[k, i] = end.output["link"]["state"]
                course.engaged[k, i] = end.output["state"]
        course.messages = [way.sent for way in self.ways]
        return course


def hand_on(path: Path, grip: Grip, card: str = "simulated") -> SimulatedHand:
    """A hand that follows a path with the device of a card."""
    return SimulatedHand(path, grip, DeviceDynamics.from_card(load_card(card)))
