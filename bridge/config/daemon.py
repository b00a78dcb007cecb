"""How the daemon runs: when it holds forces back, for which device, with how much work, how often, and its log."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bridge.config.section import Positive, Section, wrong


class Safety(Section):
    """When forces are held, released or refused."""

    hold_after_ms: Positive = 5.0
    """A sample older than this is late: the impedance is held"""
    stale_after_ms: Positive = 20.0
    """A sample older than this means a lost client: forces are ramped to zero"""
    lease_ms: Positive = 2000.0
    """A lease that is neither used nor renewed ends after this"""
    engage_distance: Positive = 0.005
    """Farthest device image from the tool at which forces may start, m, in the scene and at the device"""
    jump_margin: Positive = 0.005
    """What a device may move between samples beyond its top speed, device m"""
    require_deadman: bool = False
    """Forces only while the client says that a hand is on the device"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.stale_after_ms <= self.hold_after_ms:
            raise wrong(
                "stale_after_ms", self.stale_after_ms, f"must be greater than hold_after_ms ({self.hold_after_ms:g})"
            )
        if self.lease_ms <= self.stale_after_ms:
            raise wrong("lease_ms", self.lease_ms, f"must be greater than stale_after_ms ({self.stale_after_ms:g})")
        return self


class Device(Section):
    """Which device the forces are meant for: its card holds the limits."""

    card: str = "simulated"
    """Name of a card in configs/devices or a path to one"""


class Budget(Section):
    """Work per tick, in units of work (never in time)."""

    units: Annotated[int, Field(ge=100, le=2_000_000_000)] = 20000
    """Node visits and triangle tests"""
    passes: Annotated[int, Field(ge=1, le=8)] = 8
    """Straight passes of the tip"""
    sweeps: Annotated[int, Field(ge=1, le=2_000_000_000)] = 50
    """Contact-solver sweeps for the tool alone, per pass"""
    visits: Annotated[int, Field(ge=0, le=2_000_000_000)] = 5000
    """Contacts that the solver may visit in a tick, in all sweeps; 0: only `sweeps` counts"""
    governor: bool = True
    """Give a tick less work, in the same units, while ticks would be late"""


class Rates(Section):
    """How often things happen."""

    tick_hz: Annotated[float, Field(ge=50, le=4000)] = 1000.0
    """Ticks per second"""
    clocking: Literal["free", "triggered"] = "free"
    """free: the servo's clock; triggered: each sample runs one tick"""
    publish_hz: Annotated[float, Field(gt=0, le=1000)] = 60.0
    """State messages per second for observers"""


class Log(Section):
    """Recording."""

    directory: str = "out"
    """Folder for logs; relative to the working directory"""
    record: bool = False
    """Write an MCAP log of every run"""
