"""The outside: wire, servo process, ring, client library, log and replay, import, viewers, command line."""

from typing import TYPE_CHECKING, Any

from bridge import kernel_cache

kernel_cache.choose()  # before anything imports numba

if TYPE_CHECKING:
    from bridge.client import Client, HapticdError, Observer

__all__ = ["Client", "HapticdError", "Observer"]


def __getattr__(name: str) -> Any:
    """The client library on first use only: the servo imports this package too and needs none of it."""
    if name in __all__:
        from bridge import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
