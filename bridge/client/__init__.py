"""Client library: feel a running daemon, or watch it.

    from bridge import Client

    with Client() as client:
        client.lease()
        client.arm(reanchor=True)
        render = client.exchange((0.0, 0.0, 0.1))
        print(render.force)

A :class:`Client` and an :class:`Observer` belong to the thread that made them.
"""

from bridge.client.connecting import START_TIMEOUT_S, find_endpoints, find_keys, is_address
from bridge.client.errors import HapticdError, NoDaemonError, NoReplyError
from bridge.client.greeting import check_greeting
from bridge.client.observer import Observation, Observer
from bridge.client.owner import IDENTITY, RENDER_TIMEOUT_MS, Client
from bridge.client.requests import CONTROL_TIMEOUT_MS, Question

__all__ = [
    "CONTROL_TIMEOUT_MS",
    "IDENTITY",
    "RENDER_TIMEOUT_MS",
    "START_TIMEOUT_S",
    "Client",
    "HapticdError",
    "NoDaemonError",
    "NoReplyError",
    "Observation",
    "Observer",
    "Question",
    "check_greeting",
    "find_endpoints",
    "find_keys",
    "is_address",
]
