"""A link to another end, and which addresses that end may have."""

import ipaddress
import re
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bridge.config.section import NonNegative, Positive, Section, wrong
from bridge.config.sockets import LOOPBACK, host_and_port, is_address

_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,255}")
"""A name or an IP address, of another machine."""


class Link(Section):
    """This end of a link: another daemon, or a robot, whose hand is felt here and which feels this one."""

    law: Literal["position-position", "position-force", "four-channel"] = "position-position"
    """position-position: each hand is pulled towards the other; position-force: a leader feels what the follower's
    surroundings do; four-channel: both"""
    role: Literal["", "leader", "follower"] = ""
    """Of position-force: which end this is"""
    method: Literal["waves", "tank", "none"] = "waves"
    """What keeps it passive under delay, the same at both ends: wave variables, an energy tank, or nothing"""
    stiffness: Positive | None = None
    """Of the spring between the hands, N/m at the device; that of the coupling when left out, capped by the card"""
    damping: NonNegative | None = None
    """N·s/m at the device; that of the coupling when left out, capped by the card"""
    rotational_stiffness: NonNegative | None = None
    """N·m/rad at the device; that of the coupling when left out, capped by the card"""
    rotational_damping: NonNegative = 0.0
    """N·m·s/rad at the device"""
    force_gain: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the other end's wrench that is felt; 1 when left out with four-channel and at a leader, else 0"""
    impedance: Positive | None = None
    """Of waves, N·s/m; the other end's is this times `scale` squared. When left out, 10 at an end whose `scale` is at
    most 1, or the card's `damping_max` where that is less"""
    rotational_impedance: Positive | None = None
    """Of waves, N·m·s/rad, the same at both ends; 0.01 when left out, or what the device renders where that is less"""
    scale: Annotated[float, Field(ge=1e-3, le=1e3)] = 1.0
    """Metres here per metre at the other end"""
    mirror: Literal["", "x", "y", "z"] = ""
    """Axis of the scene along which the other end is reflected"""
    align_speed: Annotated[float, Field(ge=0, le=1)] = 0.0
    """At which two ends that came up apart come together, m/s at the device; 0: they stay apart as they are.
    Waves leave them so at any speed"""
    distance_max: Positive = 0.1
    """Ends farther apart than this are let go, m at the device"""
    tank: Annotated[float, Field(gt=0, le=10)] = 0.1
    """Energy wanted in the tank, J"""
    tank_damping: NonNegative | None = None
    """Most damping that fills it, N·s/m; a quarter of the device's largest when left out"""
    dead_band: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Share by which a signal changes before it is sent again; 0: every tick sends"""
    share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Of the other hand in where the tool is to go (a shared tool); 0: the tool is this hand's alone. For short links:
    no method makes it passive, and at 50 ms each way a tool that touches shakes both hands"""
    stale_after_ms: Annotated[float, Field(gt=0, le=60000)] = 500.0
    """Silence of the other end after which the link is lost"""
    ramp_up_ms: Positive = 500.0
    """Time from nothing to the whole link when it comes up"""
    ramp_down_ms: Positive = 100.0
    """Time to nothing when it is let go"""
    connect: str = ""
    """Peer socket of the other end, tcp://HOST:PORT or ipc://PATH; left out: this end has one, and waits there"""
    server_key: str | None = None
    """With `connect`: public key of the other end, or a file that holds it"""
    keys: str | None = None
    """With `connect`: key file of this end; that of `[access]` when left out"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.law == "position-force" and not self.role:
            raise wrong("role", None, 'is needed with law = "position-force": "leader" or "follower"')
        if self.law != "position-force" and self.role:
            raise wrong("role", self.role, f'belongs to law = "position-force"; the ends of "{self.law}" are alike')
        for key in ("server_key", "keys"):
            if getattr(self, key) is not None and not self.connect.startswith("tcp://"):
                raise wrong(key, getattr(self, key), 'belongs to `connect = "tcp://HOST:PORT"`')
        if self.keys is not None and self.server_key is None:
            raise wrong("keys", self.keys, "needs `server_key` beside it: the public key of the other end")
        if self.connect:
            _check_connect(self.connect, self.server_key is not None)
        return self


def _check_connect(address: str, guarded: bool) -> None:
    """Raise what is wrong with the address of another end's peer socket."""
    if address.startswith("ipc://") and len(address) > len("ipc://"):
        return
    host, port = host_and_port(address)
    if not _HOST.fullmatch(host) or not 0 < port < 65536:
        raise wrong("connect", address, "must be the other end's peer socket, tcp://HOST:PORT or ipc://PATH")
    if guarded or host in LOOPBACK or (is_address(host) and ipaddress.ip_address(host).is_loopback):
        return
    raise wrong(
        "connect",
        address,
        f"needs `server_key` for an end that is not on this machine ({', '.join(LOOPBACK)}): without keys anybody "
        "between the two could move the hand",
    )
