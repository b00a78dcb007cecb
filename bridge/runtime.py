"""The runtime directory: everything that the processes of one daemon share, found from the daemon's name alone.

The base is ``$HAPTICD_RUNTIME_DIR``, else ``$XDG_RUNTIME_DIR/hapticd``, else ``/tmp/hapticd-<uid>``; each daemon has
one sub-directory there, named after it (``default`` unless said otherwise).
"""

import dataclasses
import fcntl
import hashlib
import ipaddress
import json
import os
import platform
import re
import stat
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from bridge.schema import PROTOCOL_VERSION
from haptics.tables import RECORD_VERSION, SETTINGS
from rtcore.model import Model
from rtcore.tables import BUDGET

SOCKETS = ("device", "control", "state", "events")
"""The public sockets, in the order of their TCP ports."""

PEER_SOCKET = "peer"
"""The one that a daemon with a link has besides, at the port after them."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,47}")
_LONGEST_IPC_PATH = 107 if sys.platform.startswith("linux") else 103
"""Bytes that the operating system allows in the path of a local socket."""


class RuntimeDirectoryError(RuntimeError):
    """The runtime directory cannot be used; the text is one sentence for the user."""


class AlreadyRunning(RuntimeDirectoryError):
    """A daemon of this name holds the lock."""

    def __init__(self, name: str, pid: int | None) -> None:
        who = f"pid {pid}" if pid else "pid not known yet"
        super().__init__(
            f"a daemon named {name!r} is already running ({who}); stop it with `hapticd stop`, or choose another --name"
        )
        self.name = name
        self.pid = pid


class AddressRefused(RuntimeDirectoryError):
    """An address other than loopback or ipc was asked for."""


def base_directory() -> Path:
    """Directory that holds one sub-directory per daemon (not created here)."""
    chosen = os.environ.get("HAPTICD_RUNTIME_DIR")
    if chosen:
        return Path(chosen)
    session = os.environ.get("XDG_RUNTIME_DIR")
    if session and os.path.isdir(session):
        return Path(session) / "hapticd"
    return Path(f"/tmp/hapticd-{os.getuid()}")


def check_address(endpoint: str, guarded: bool = False) -> str:
    """Return `endpoint` unchanged when it is ipc or loopback TCP; raise AddressRefused otherwise.

    guarded: keys decide who gets in, so any TCP address will do. Every socket of the daemon passes here before it is
    bound: forces are never offered to a network by accident.
    """
    if endpoint.startswith("ipc://"):
        return endpoint
    if endpoint.startswith("tcp://"):
        host = endpoint[len("tcp://") :].rpartition(":")[0].strip("[]")
        try:
            if host == "localhost" or ipaddress.ip_address(host).is_loopback or guarded:
                return endpoint
        except ValueError:
            pass
        raise AddressRefused(
            f"refused to bind {endpoint}: the host must be an IP address of this machine or localhost"
            if guarded
            else f"refused to bind {endpoint}: only loopback addresses (127.0.0.1, ::1, localhost) and ipc are allowed "
            "without keys; `hapticd keys` makes them and [access] names them"
        )
    raise AddressRefused(f"refused to bind {endpoint}: only ipc:// and loopback tcp:// addresses are allowed")


def reachable(endpoint: str, host: str = "127.0.0.1") -> str:
    """Where to connect for an address that was bound: a host that stands for all of a machine gives way to `host`."""
    bound, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    if not endpoint.startswith("tcp://") or bound not in ("0.0.0.0", "[::]"):
        return endpoint
    return f"tcp://{host}:{port}"


class Lock:
    """Holds the daemon's lock until `release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Give the lock back; harmless when called again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class RuntimeDirectory:
    """Paths, lock and addresses of one daemon."""

    def __init__(self, name: str = "default", base: str | os.PathLike[str] | None = None) -> None:
        """`name`: letters, digits, ``.``, ``_``, ``-``. Raises RuntimeDirectoryError for any other name."""
        if not _NAME.fullmatch(name):
            raise RuntimeDirectoryError(
                f"daemon name {name!r} is not usable: up to 48 letters, digits, '.', '_' or '-', starting with a "
                "letter or a digit"
            )
        self.name = name
        self.path = Path(os.path.abspath(Path(base) if base is not None else base_directory())) / name

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> "RuntimeDirectory":
        """The runtime directory whose full path is known (what child processes are given)."""
        absolute = Path(os.path.abspath(path))
        return cls(absolute.name, absolute.parent)

    @classmethod
    def all(cls) -> list["RuntimeDirectory"]:
        """Every runtime directory under the base, running or left over, by name."""
        base = base_directory()
        if not base.is_dir():
            return []
        return [
            cls(entry.name, base) for entry in sorted(base.iterdir()) if entry.is_dir() and _NAME.fullmatch(entry.name)
        ]

    config_path = property(lambda self: self.path / "config.json")
    card_path = property(lambda self: self.path / "card.json")
    model_path = property(lambda self: self.path / "model.npz")
    settings_path = property(lambda self: self.path / "settings.npy")
    budget_path = property(lambda self: self.path / "budget.npy")
    assembly_path = property(lambda self: self.path / "assembly.json")
    endpoints_path = property(lambda self: self.path / "endpoints.json")
    ring_path = property(lambda self: self.path / "ring")
    mailbox_path = property(lambda self: self.path / "mailbox")
    lock_path = property(lambda self: self.path / "lock")
    numbering_path = property(lambda self: self.path / "numbering.json")
    keys_link = property(lambda self: self.path / "keys.path")
    local_keys_path = property(lambda self: self.path / "local.key_secret")

    def create(self) -> "RuntimeDirectory":
        """Make the directory, private to the user; RuntimeDirectoryError when somebody else could write in it."""
        for directory in (self.path.parent, self.path):
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                found = os.lstat(directory)
            except OSError as error:
                raise RuntimeDirectoryError(
                    f"cannot create the runtime directory {directory}: {error.strerror}"
                ) from error
            if not stat.S_ISDIR(found.st_mode):
                raise RuntimeDirectoryError(
                    f"{directory} is not a directory; set HAPTICD_RUNTIME_DIR to one of your own"
                )
            # Where the sticky bit is, as at /tmp, others can write but cannot move what is ours.
            sticky = directory != self.path and found.st_mode & stat.S_ISVTX
            if found.st_uid != os.getuid() or (found.st_mode & 0o022 and not sticky):
                raise RuntimeDirectoryError(
                    f"{directory} can be written by other users; set HAPTICD_RUNTIME_DIR to a directory of your own"
                )
        return self

    def lock(self) -> Lock:
        """Take the daemon's lock; raises AlreadyRunning with the holder's pid."""
        descriptor = os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for attempt in range(5):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                # `is_running` holds the lock for a moment while it looks.
                if attempt == 4:
                    holder = _pid_in(descriptor)
                    os.close(descriptor)
                    raise AlreadyRunning(self.name, holder) from None
                time.sleep(0.02)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return Lock(descriptor)

    def holder(self) -> int | None:
        """Process id of the running daemon, None when none runs (0 when it has not written it yet)."""
        try:
            descriptor = os.open(self.lock_path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _pid_in(descriptor) or 0
        finally:
            os.close(descriptor)
        return None

    def is_running(self) -> bool:
        """True while a daemon holds the lock."""
        return self.holder() is not None

    def ipc(self, socket: str) -> str:
        """Address of a local socket in this directory; RuntimeDirectoryError when its path is too long."""
        path = self.path / f"{socket}.sock"
        if len(os.fsencode(path)) > _LONGEST_IPC_PATH:
            raise RuntimeDirectoryError(
                f"the socket path {path} is longer than the {_LONGEST_IPC_PATH} bytes that the system allows; "
                "set HAPTICD_RUNTIME_DIR to a shorter directory"
            )
        return f"ipc://{path}"

    def endpoints(self, sockets: Any = None, guarded: bool = False, link: Any = None) -> dict[str, str]:
        """Addresses ``{"device", "control", "state", "events"}``, and ``"peer"`` where a link waits for its other end.

        `sockets`, `link`: the sections of these names, as the Config object or as a mapping; no `sockets` means ipc, no
        `link` that there is none. guarded: by keys. Raises AddressRefused for a host that is not loopback, unless it is
        guarded.
        """
        section = _mapping(sockets)
        names = SOCKETS if link is None or _mapping(link).get("connect") else (*SOCKETS, PEER_SOCKET)
        if section.get("transport", "ipc") == "ipc":
            found = {socket: check_address(self.ipc(socket)) for socket in names}
        else:
            host = section["host"]
            if ":" in host:
                host = f"[{host}]"
            found = {
                socket: check_address(f"tcp://{host}:{section['port'] + i}", guarded) for i, socket in enumerate(names)
            }
        if PEER_SOCKET in found and section.get("peer"):
            found[PEER_SOCKET] = check_address(section["peer"], guarded)
        return found

    def judge_endpoint(self) -> str:
        """Where processes of the daemon ask whether a key may come in (the supervisor answers)."""
        return self.ipc("judge")

    def notices_endpoint(self) -> str:
        """Where processes of the daemon send their notices (the publisher listens)."""
        return self.ipc("notices")

    def write_endpoints(self, endpoints: Mapping[str, str], server_key: str | None = None) -> None:
        """Tell clients where the sockets are and who serves them; server_key: its public key, when keys guard them."""
        found: dict[str, Any] = {socket: reachable(endpoint) for socket, endpoint in endpoints.items()}
        found |= {"pid": os.getpid(), "name": self.name}
        write_json(self.endpoints_path, found if server_key is None else {**found, "server_key": server_key})

    def read_endpoints(self) -> dict[str, str]:
        """Addresses of the running daemon; RuntimeDirectoryError when none of this user's runs under this name."""
        if not self.is_running():
            raise RuntimeDirectoryError(
                f"no daemon named {self.name!r} is running; start one with `hapticd run CONFIG`"
            )
        try:
            for path in (self.path, self.endpoints_path):
                if os.lstat(path).st_uid != os.getuid():
                    raise RuntimeDirectoryError(f"{path} belongs to another user, so it is not believed")
            found = json.loads(self.endpoints_path.read_bytes())
            return {socket: found[socket] for socket in (*SOCKETS, *({PEER_SOCKET} & found.keys()))}
        except (OSError, ValueError, KeyError) as error:
            raise RuntimeDirectoryError(f"the daemon named {self.name!r} is still starting; try again") from error

    def server_key(self) -> str | None:
        """Public key of the running daemon; None when its sockets need none."""
        try:
            found = json.loads(self.endpoints_path.read_bytes()).get("server_key")
        except (OSError, ValueError, AttributeError):
            return None
        return found if isinstance(found, str) else None

    def shared_name(self, kind: str) -> str:
        """File name in /dev/shm of this daemon's `kind` (``ring``, ``mailbox``): unique per user and directory."""
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return f"hapticd-{os.getuid()}-{digest}-{kind}"


def _mapping(section: Any) -> dict[str, Any]:
    if section is None:
        return {}
    return dict(section) if isinstance(section, Mapping) else section.model_dump()


def _pid_in(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file in one step, so that a reader sees the old or the new one and never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(value, indent=1, default=str))
    os.replace(temporary, path)


def versions() -> dict[str, Any]:
    """Versions of everything that a log's figures depend on."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "protocol": PROTOCOL_VERSION,
        "record": RECORD_VERSION,
    }
    for package in ("hapticd", "numpy", "numba", "llvmlite", "pyzmq", "msgpack"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


@dataclass(frozen=True)
class StoredAssembly:
    """What a child process reads back from the runtime directory."""

    config: dict[str, Any]
    """The full resolved configuration, as JSON values."""
    card: dict[str, Any]
    model: Model
    settings: np.ndarray
    """(1,) SETTINGS."""
    budget: np.ndarray
    """(1,) BUDGET."""
    body_names: list[str]
    mesh_hashes: dict[str, str]
    start: list[float]
    """Tip centre at start, scene, m."""
    start_orientation: list[float]
    """Tool -> scene at start, xyzw."""
    base_directory: str
    versions: dict[str, Any]


def write_assembly(runtime: RuntimeDirectory, assembly: Any) -> None:
    """Write an Assembly (see `bridge.assemble`) into the runtime directory, for the servo and the recorder."""
    from bridge.model_file import save_model

    write_json(runtime.config_path, assembly.config.model_dump(mode="json", by_alias=True))
    write_json(runtime.card_path, dataclasses.asdict(assembly.card))
    save_model(runtime.model_path, assembly.model)
    np.save(runtime.settings_path, assembly.settings.view(np.uint8), allow_pickle=False)
    np.save(runtime.budget_path, assembly.budget.view(np.uint8), allow_pickle=False)
    write_json(
        runtime.assembly_path,
        {
            "body_names": list(assembly.body_names),
            "mesh_hashes": dict(assembly.mesh_hashes),
            "start": [float(value) for value in np.asarray(assembly.start).reshape(-1)],
            "start_orientation": [float(value) for value in assembly.start_orientation],
            "base_directory": str(getattr(assembly, "base_directory", "")),
            "versions": versions(),
        },
    )


def read_assembly(runtime: RuntimeDirectory) -> StoredAssembly:
    """Read what `write_assembly` wrote; OSError or ValueError when it is absent or of another version."""
    from bridge.model_file import load_model

    extra = json.loads(runtime.assembly_path.read_bytes())
    return StoredAssembly(
        config=json.loads(runtime.config_path.read_bytes()),
        card=json.loads(runtime.card_path.read_bytes()),
        model=load_model(runtime.model_path),
        settings=_read_row(runtime.settings_path, SETTINGS),
        budget=_read_row(runtime.budget_path, BUDGET),
        body_names=extra["body_names"],
        mesh_hashes=extra["mesh_hashes"],
        start=extra["start"],
        start_orientation=extra["start_orientation"],
        base_directory=extra["base_directory"],
        versions=extra["versions"],
    )


def _read_row(path: Path, dtype: np.dtype) -> np.ndarray:
    raw = np.load(path, allow_pickle=False)
    if raw.nbytes != dtype.itemsize:
        raise ValueError(
            f"{path}: {raw.nbytes} bytes instead of {dtype.itemsize}; written by another version of hapticd"
        )
    return raw.view(dtype).copy()
