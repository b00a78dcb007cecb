"""A whole configuration: all its sections, and what they ask of one another."""

from typing import Self

from pydantic import model_validator

from bridge.config.daemon import Budget, Device, Log, Rates, Safety
from bridge.config.link import Link
from bridge.config.scene import Scene
from bridge.config.section import Section, wrong
from bridge.config.shape import ROUNDED
from bridge.config.sockets import LOOPBACK, Access, Sockets, host_and_port, is_address
from bridge.config.touch import Coupling, Tool, Workspace


class Config(Section):
    """One runnable scene with everything around it."""

    scene: Scene
    tool: Tool = Tool()
    coupling: Coupling = Coupling()
    workspace: Workspace = Workspace()
    safety: Safety = Safety()
    device: Device = Device()
    budget: Budget = Budget()
    rates: Rates = Rates()
    log: Log = Log()
    sockets: Sockets = Sockets()
    link: Link | None = None
    """A link to another end; without this table there is none"""
    access: Access | None = None
    """Keys that guard the sockets on tcp; without this table they are for this machine only"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_host()
        self._check_peer()
        self._check_times()
        for index, body in enumerate(self.scene.bodies):
            key = f"scene.body[{index}] ({body.name!r}).motion"
            if body.primitive in ROUNDED and not self.tool.whole:
                raise wrong(
                    f"scene.body[{index}] ({body.name!r}).primitive",
                    body.primitive,
                    "needs a tool with a surface (`[tool] mesh` or `primitive`); beside a sphere tip use "
                    '`primitive = "sphere"`' + (' or "cylinder"' if body.primitive == "capsule" else ""),
                )
            if body.moves and not self.tool.whole:
                raise wrong(
                    key, body.motion, 'needs a tool with a surface: set `[tool] primitive = "sphere"` and `size = [r]`'
                )
            if body.moves and self.tool.motion == "carried":
                raise wrong(key, body.motion, 'needs a tool that yields: set `[tool] motion = "sliding"`')
        return self

    def _check_host(self) -> None:
        host = self.sockets.host
        if self.access is None and host not in LOOPBACK:
            raise wrong(
                "sockets.host",
                host,
                f"must be a loopback address ({', '.join(LOOPBACK)}): without keys the sockets carry no encryption, so "
                "other machines are refused; `hapticd keys` makes keys and a table [access] names them",
            )
        if host not in LOOPBACK and not is_address(host):
            raise wrong("sockets.host", host, "must be an IP address of this machine, 0.0.0.0 for all, or localhost")
        if self.access is not None and self.sockets.transport != "tcp":
            raise wrong(
                "access",
                self.sockets.transport,
                'guards sockets on tcp: set `[sockets] transport = "tcp"`; those on ipc are this user\'s alone already',
            )

    def _check_times(self) -> None:
        """A tick has to come before its sample is late and while the render before may still be used."""
        tick_ms = 1e3 / self.rates.tick_hz
        for key, value, ticks in (
            ("safety.hold_after_ms", self.safety.hold_after_ms, 1.5),
            ("safety.stale_after_ms", self.safety.stale_after_ms, 3.0),
            ("coupling.valid_for_ms", self.coupling.valid_for_ms, 1.5),
        ):
            if value < ticks * tick_ms:
                right = f"must be at least {ticks:g} ticks, {ticks * tick_ms:g} ms at tick_hz = {self.rates.tick_hz:g}"
                raise wrong(key, value, right)

    def _check_peer(self) -> None:
        address = self.sockets.peer
        if address is None:
            return
        if self.link is None or self.link.connect:
            raise wrong("sockets.peer", address, "belongs to a `[link]` without `connect`: only that one has a socket")
        host, port = host_and_port(address)
        if not 1024 <= port < 65536 or not (host in LOOPBACK or is_address(host)):
            raise wrong(
                "sockets.peer", address, "must be tcp://HOST:PORT: an IP address of this machine, a port from 1024 on"
            )
        if self.access is None and host not in LOOPBACK:
            raise wrong(
                "sockets.peer",
                address,
                f"must be on a loopback address ({', '.join(LOOPBACK)}): without keys other machines are refused; "
                "`hapticd keys` makes keys and a table [access] names them",
            )
