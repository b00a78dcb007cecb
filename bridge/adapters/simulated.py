"""The reference: a simulated hand at a simulated mechanism, in real time, with a clock of its own."""

from pathlib import Path

from bridge.adapters.device import Device, DeviceError, Reading
from bridge.adapters.journal import Journal
from bridge.adapters.plant import Plant
from bridge.motions import GRIPS
from haptics.cards import CardError, card_path, load_card
from haptics.hands import CircleDrag, RandomMotion, Tapping
from haptics.hands import Path as Motion
from haptics.last_line import Wrench

PATHS = ("rest", "circle", "tap", "random")


class Simulated(Device):
    """Mass, friction, encoder step and a period of delay as the card has them."""

    own_clock = True

    def __init__(
        self, card: str = "simulated", path: str = "rest", grip: str = "held", depth: str = "0.02", journal: str = ""
    ) -> None:
        """``card``: whose mechanism; ``path``: what the hand does (rest, circle, tap, random) from where it begins,
        down along z by ``depth`` (m); ``grip``: held, light or off, which its deadman tells; ``journal``: a file of the
        conformance test. Raises DeviceError."""
        if path not in PATHS:
            raise DeviceError(f"path = {path!r} is none of {', '.join(PATHS)}")
        if grip not in GRIPS:
            raise DeviceError(f"grip = {grip!r} is none of {', '.join(GRIPS)}")
        try:
            self._down = float(depth)
            file = card_path(card, Path())
            self._known = load_card(file)
        except (CardError, ValueError) as error:
            raise DeviceError(str(error)) from None
        self.card = str(file.resolve())
        self._path, self._grip, self._journal = path, grip, journal
        self._plant: Plant | None = None

    def open(self) -> None:
        """Begin to move."""
        journal = Journal(self._journal) if self._journal else None
        self._plant = Plant(self._known, journal, path=_path(self._path, self._down), grip=GRIPS[self._grip])

    def read(self) -> Reading:
        """What the encoders say, and when by the device's clock."""
        plant = self._there()
        pose, now = plant.read()
        position, orientation = pose.position.tolist(), pose.orientation.tolist()
        return Reading(position, orientation, held=self._grip != "off", t_ns=plant.device_time(now))

    def write(self, wrench: Wrench) -> None:
        """Motors on."""
        self._there().write(wrench)

    def _there(self) -> Plant:
        if self._plant is None or self._plant.unplugged:
            raise DeviceError("the simulated device was unplugged")
        return self._plant


def _path(kind: str, depth: float) -> Motion | None:
    if kind == "rest":
        return None
    if kind == "circle":
        return CircleDrag((-0.02, 0.0, 0.0), radius=0.02, depth=depth, height=0.0)
    if kind == "tap":
        return Tapping((0.0, 0.0, 0.0), height=0.0, depth=depth, rate=1.0)
    return RandomMotion(0, radius=max(depth, 1e-3))
