"""A touch layer on a bench: model, state, tables, and short ways to feed it samples and commands."""

from __future__ import annotations

import numpy as np

from haptics.cards import DeviceCard, load_card
from haptics.settings import make_settings
from haptics.states import CommandKind, CommandResult, EngagementState, Reason
from haptics.tables import RECORD
from haptics.tick import tick
from haptics.touch import make_touch
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder
from rtcore.state import make_state
from rtcore.tables import HELD

OWNER = 7
TIP_RADIUS = 0.005
EPS_ALERT, EPS_SAFETY, EPS_BREAK = 1e-4, 2.5e-4, 6e-4
REST = TIP_RADIUS + EPS_SAFETY
"""Height of the tip centre over a plane that it rests on, m."""
MS = 1_000_000
QUIET = np.array([0.0, 0.0, 0.0, 1.0])
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
FACES = np.array(
    [
        *((0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5)),
        *((0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6)),
        *((0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)),
    ]
)
"""A closed box of half edge 1, faces outwards."""


def square(half: float) -> tuple[np.ndarray, np.ndarray]:
    """A square plate of two triangles in z = 0, normal up."""
    corners = np.array([[-half, -half, 0.0], [half, -half, 0.0], [half, half, 0.0], [-half, half, 0.0]])
    return corners, np.array([[0, 1, 2], [0, 2, 3]])


def plane_model(
    *,
    friction: float = 0.0,
    tip_offset: tuple[float, float, float] = (0.0, 0.0, 0.0),
    height: float = 0.0,
    held_at: tuple[float, float, float] | None = None,
) -> Model:
    """A plane of 2 m at ``height``, and when asked for a held plate of 40 mm."""
    builder = ModelBuilder()
    plane = builder.add_mesh(*build_tree(*square(1.0)))
    builder.add_body(plane, (0.0, 0.0, height), friction_static=friction, friction_kinetic=0.75 * friction)
    if held_at is not None:
        plate = builder.add_mesh(*build_tree(*square(0.02)))
        builder.add_body(plate, held_at, friction_static=0.0, friction_kinetic=0.0, kind=HELD)
    return builder.build(TIP_RADIUS, tip_offset, EPS_ALERT, EPS_SAFETY, EPS_BREAK)


BLOCK = 0.01
"""Half an edge of the cube of :func:`block_model`, m."""


def block_model(
    *, held_at: tuple[float, float, float] | None = None, turning: float = 0.0, inertia: np.void | None = None
) -> Model:
    """A plane of 2 m at z = 0, and a cube as tool, its middle the tip centre; REACH is that of its corners.

    When asked a held plate of 40 mm as well; the cube yields to what it touches if turning (m^2) is above 0, and has
    mass with an ``inertia``.
    """
    builder = ModelBuilder()
    builder.add_body(builder.add_mesh(*build_tree(*square(1.0))))
    if held_at is not None:
        builder.add_body(builder.add_mesh(*build_tree(*square(0.02))), held_at, kind=HELD)
    tool = builder.add_mesh(*build_tree(BLOCK * CORNERS, FACES))
    return builder.build(
        0.0,
        (0.0, 0.0, 0.0),
        EPS_ALERT,
        EPS_SAFETY,
        EPS_BREAK,
        tool_mesh_id=tool,
        turning=turning,
        tool_inertia=inertia,
    )


REACH = BLOCK * 3.0**0.5


class Rig:
    """One owner's device on one touch layer; time stands still but for ``run``."""

    def __init__(self, model: Model | None = None, card: str | DeviceCard = "simulated", **options) -> None:
        start = options.pop("start", (0.0, 0.0, 0.1))
        self.card = load_card(card) if isinstance(card, str) else card
        self.settings = make_settings(self.card, **options)
        self.model = model if model is not None else plane_model()
        self.state = make_state(self.model, start)
        self.touch = make_touch(self.settings)
        self.record = np.zeros(1, RECORD)
        self.record["budget"] = (20000, 8, 50, 0)
        self.now_ms = 0.0
        self.sent_ms = 0.0
        self.seq = 0
        self.commands = 0
        self.sample["valid"] = 1
        self.sample["orientation"] = QUIET
        self.sample["position"] = start

    # Short names for what is looked at all the time.

    @property
    def row(self):
        return self.touch[0]

    @property
    def chosen(self):
        return self.settings[0]

    @property
    def output(self):
        return self.record[0]["output"]

    @property
    def sample(self):
        return self.record[0]["input"]["sample"]

    @property
    def input(self):
        return self.record[0]["input"]

    @property
    def proxy(self) -> np.ndarray:
        return self.state.proxy[0]["position"]

    @property
    def status(self) -> EngagementState:
        return EngagementState(int(self.row["state"]))

    @property
    def reason(self) -> Reason:
        return Reason(int(self.row["reason"]))

    @property
    def wrench(self) -> np.ndarray:
        return self.output["wrench"].copy()

    # One tick.

    def tick(self) -> None:
        """Run the tick with the input as it stands, then let it be old news."""
        self.record[0]["tick"] += 1
        self.input["age_ns"] = round((self.now_ms - self.sent_ms) * MS)
        tick(self.model, self.state, self.settings, self.touch, self.record)
        self.now_ms += 1e3 * self.chosen["dt"]
        self.input["fresh"] = 0
        self.input["rejected"] = 0
        self.input["command"]["id"] = 0

    def send(self, position=None, orientation=None, *, twist=None, deadman=1, valid=1, session=OWNER, tick=True):
        """A fresh sample of the owner for this tick."""
        self.seq += 1
        self.sent_ms = self.now_ms
        sample = self.sample
        sample["session"] = session
        sample["seq"] = self.seq
        sample["t_sample"] = round(self.now_ms * MS)
        if position is not None:
            sample["position"] = position
        if orientation is not None:
            sample["orientation"] = orientation
        sample["has_twist"] = twist is not None
        sample["twist"] = twist if twist is not None else 0.0
        sample["deadman"] = deadman
        sample["valid"] = valid
        self.input["fresh"] = 1
        self.input["has_sample"] = 1
        if tick:
            self.tick()

    def silence(self, ticks: int = 1) -> None:
        """Ticks without a sample."""
        for _ in range(ticks):
            self.tick()

    def run(self, ticks: int, position=None, **options) -> None:
        """Ticks with a fresh sample each."""
        for _ in range(ticks):
            self.send(position, **options)

    def put(self, kind: CommandKind, *values: float, session: int = OWNER) -> None:
        """Lay a command into the input of the next tick."""
        self.commands += 1
        command = self.input["command"]
        command["id"] = self.commands
        command["session"] = session
        command["kind"] = kind
        command["values"] = 0.0
        command["values"][: len(values)] = values

    def command(self, kind: CommandKind, *values: float, session: int = OWNER, fresh: bool = True) -> Reason:
        """Run a tick with a command (and a fresh sample); return the reason of its refusal, NONE when done."""
        self.put(kind, *values, session=session)
        if fresh and self.input["has_sample"]:
            self.send()
        else:
            self.tick()
        assert self.output["command_id"] == self.commands
        reason = Reason(int(self.output["command_reason"]))
        wanted = CommandResult.DONE if reason == Reason.NONE else CommandResult.REFUSED
        assert self.output["command_result"] == wanted
        return reason

    def glide(self, position, step: float = 5e-4) -> None:
        """Move the device straight to a position, ``step`` metres per tick, so that no tick is a jump."""
        begin, end = np.array(self.sample["position"]), np.array(position, dtype=np.float64)
        ticks = max(1, int(np.ceil(np.linalg.norm(end - begin) / step)))
        for k in range(ticks):
            self.send(begin + (k + 1) / ticks * (end - begin))

    def activate(self, position=None) -> None:
        """Lease, a first sample, arm, ramp up."""
        assert self.command(CommandKind.LEASE) == Reason.NONE
        self.send(position)
        assert self.command(CommandKind.ARM, 1) == Reason.NONE
        self.send()
        assert self.status == EngagementState.ENGAGING
        while self.status == EngagementState.ENGAGING:
            self.send()
        assert self.status == EngagementState.ACTIVE

    def press(self, depth: float, ticks: int = 60) -> None:
        """Press the device straight down onto the plane z = 0, to this depth below where the tip can rest."""
        begin = np.array(self.sample["position"])
        end = np.array([begin[0], begin[1], REST - depth])
        for k in range(ticks):
            self.send(begin + (k + 1) / ticks * (end - begin))
        self.run(20)
