"""The hello reply: whether it holds what a client needs, and the addresses in it."""

from collections.abc import Callable, Mapping
from typing import Any

from bridge.client.errors import HapticdError
from bridge.runtime import reachable

_GREETING: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "session": ("an integer from 1 to 2^63 - 1", lambda value: type(value) is int and 0 < value < 1 << 63),
    "tick_ns": ("an integer above 0", lambda value: type(value) is int and value > 0),
    "clocking": ("`free` or `triggered`", lambda value: value in ("free", "triggered")),
    "t_received": ("an integer", lambda value: type(value) is int),
    "t_sent": ("an integer", lambda value: type(value) is int),
}
"""What a client needs of a hello reply."""


def check_greeting(greeting: Mapping[str, Any]) -> None:
    """Raise HapticdError ``malformed`` unless a hello reply holds what a client needs, and addresses that are texts."""
    for name, (wanted, fits) in _GREETING.items():
        if name not in greeting:
            raise HapticdError("malformed", f"the hello reply lacks `{name}`")
        if not fits(greeting[name]):
            raise HapticdError("malformed", f"`{name}` of the hello reply is {wanted}, not {greeting[name]!r:.60}")
    check_endpoints(greeting.get("endpoints", {}))


def check_endpoints(endpoints: Any) -> None:
    """Raise HapticdError ``malformed`` unless these are a map of addresses that are texts."""
    if not isinstance(endpoints, dict) or any(type(text) is not str for item in endpoints.items() for text in item):
        raise HapticdError("malformed", f"`endpoints` of the hello reply is a map of addresses, not {endpoints!r:.60}")


def reach(endpoints: Mapping[str, str], through: str) -> dict[str, str]:
    """The addresses of a hello reply, seen from a client that reached the control socket at ``through``."""
    host = through.removeprefix("tcp://").rpartition(":")[0]
    return {name: reachable(str(endpoint), host) for name, endpoint in endpoints.items()}
