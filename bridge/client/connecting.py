"""The way to a daemon: its addresses, the keys it asks for, and a socket connected to it."""

import os
import time
from collections.abc import Mapping

import zmq

from bridge.client.errors import HapticdError, NoDaemonError
from bridge.keys import ClientKeys, KeyPair, KeysError, read_pair, read_public
from bridge.runtime import RuntimeDirectory, RuntimeDirectoryError

START_TIMEOUT_S = 20.0
"""How long a client waits for a daemon that runs already but is still starting."""


_NO_ADDRESS = "{!r:.100} is no address of a daemon's socket: {}"


def is_address(text: str) -> bool:
    """Whether this is written as an address is: ``tcp://HOST:PORT`` or ``ipc://PATH``."""
    if text.startswith("ipc://"):
        return len(text) > len("ipc://")
    host, _, port = text.removeprefix("tcp://").rpartition(":")
    return text.startswith("tcp://") and bool(host) and port.isdecimal() and 0 < int(port[:6]) < 65536


def find_endpoints(name_or_endpoints: str | Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Addresses of a daemon: (how to call it in messages, {"device", "control", "state", "events"}).

    Takes the name of a daemon of this user, the address of a control socket (``tcp://...``: the others come with the
    hello reply), or the addresses themselves. A daemon that is just starting is waited for. Raises NoDaemonError when
    none of that name runs, ValueError for what is no address.
    """
    if isinstance(name_or_endpoints, Mapping):
        return "at the given addresses", dict(name_or_endpoints)
    if "://" in name_or_endpoints:
        if not is_address(name_or_endpoints):
            raise ValueError(_NO_ADDRESS.format(name_or_endpoints, "tcp://HOST:PORT or ipc://PATH"))
        return f"at {name_or_endpoints}", {"control": name_or_endpoints}
    try:
        runtime = RuntimeDirectory(name_or_endpoints)
        deadline = time.monotonic() + START_TIMEOUT_S
        while runtime.is_running() and not runtime.endpoints_path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return f"`{name_or_endpoints}`", runtime.read_endpoints()
    except RuntimeDirectoryError as error:
        others = [other.name for other in RuntimeDirectory.all() if other.is_running()]
        also = f" (running: {', '.join(others)})" if others else ""
        raise NoDaemonError(f"{error}{also}") from None


def find_keys(
    name_or_endpoints: str | Mapping[str, str],
    server_key: str | bytes | os.PathLike[str] | None = None,
    keys: KeyPair | str | os.PathLike[str] | None = None,
) -> ClientKeys | None:
    """The keys for a daemon, None where it needs none.

    server_key: the daemon's public key, or a file that holds it; keys: the client's own pair, or its secret file. When
    neither is given, a daemon that is found by its name has left a pair for programs of its own user; for addresses
    the environment may name both, ``HAPTICD_SERVER_KEY`` and ``HAPTICD_CLIENT_KEYS``. Raises HapticdError ``keys``
    when they cannot be read or one of the two is missing.
    """
    named = isinstance(name_or_endpoints, str) and "://" not in name_or_endpoints
    try:
        if server_key is None and keys is None:
            if named:
                runtime = RuntimeDirectory(str(name_or_endpoints))
                server_key = runtime.server_key()
                keys = runtime.local_keys_path if server_key is not None else None
            else:
                server_key = os.environ.get("HAPTICD_SERVER_KEY") or None
                keys = os.environ.get("HAPTICD_CLIENT_KEYS") or None
        if server_key is None and keys is None:
            return None
        if server_key is None or keys is None:
            missing = "the daemon's public key" if server_key is None else "the client's own key file"
            raise HapticdError("keys", f"{missing} is missing: a client gives both, or neither")
        own = keys if isinstance(keys, KeyPair) else read_pair(keys)
        return ClientKeys(read_public(server_key, "the daemon's public key"), own)
    except KeysError as error:
        raise HapticdError("keys", str(error)) from None


def connect(socket: zmq.Socket, address: str, keys: ClientKeys | None, largest: int) -> None:
    """Connect, encrypted where there are keys; a daemon that sends more than ``largest`` bytes is disconnected.

    Raises ValueError for what is no address.
    """
    socket.setsockopt(zmq.MAXMSGSIZE, largest)
    if address.startswith("tcp://["):
        socket.setsockopt(zmq.IPV6, 1)
    if keys is not None and address.startswith("tcp://"):
        keys.use(socket)
        # One who is refused knocks less and less often.
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 2000)
    try:
        socket.connect(address)
    except zmq.ZMQError as error:
        socket.close(linger=0)
        raise ValueError(_NO_ADDRESS.format(address, error)) from None
