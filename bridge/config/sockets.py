"""Where clients connect and who gets in, and what an address is."""

import ipaddress
from typing import Annotated, Literal

from pydantic import Field

from bridge.config.section import Section

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Sockets(Section):
    """Where clients connect."""

    transport: Literal["ipc", "tcp"] = "ipc"
    """ipc: sockets in the runtime directory; tcp: host and ports below"""
    host: str = "127.0.0.1"
    """tcp only; loopback, or with `[access]` any address of this machine, 0.0.0.0 for all of them"""
    port: Annotated[int, Field(ge=1024, le=65531)] = 5550
    """tcp: device, control, state, events take port .. port+3, and with `[link]` peer takes port+4"""
    peer: str | None = None
    """With `[link]`: address of the peer socket when it is another one, tcp://HOST:PORT"""


class Access(Section):
    """Keys that guard the sockets on tcp: only clients on the list get in, and all is encrypted."""

    keys: str | None = None
    """The daemon's key file; by default the one that `hapticd keys server` makes"""
    allow: str | None = None
    """The list of clients; by default the one that `hapticd keys allow` writes"""


def host_and_port(address: str) -> tuple[str, int]:
    """Of tcp://HOST:PORT, the host without brackets; "" and 0 for any other text."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    if not address.startswith("tcp://") or not (port.isascii() and port.isdigit() and len(port) <= 5):
        return "", 0
    return host.strip("[]"), int(port)


def is_address(host: str) -> bool:
    """Is it an IP address, without a zone?"""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host
