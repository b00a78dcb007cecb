"""Who gets in: the daemon's sockets on tcp are guarded by CURVE keys when the configuration has an ``[access]``.

ZeroMQ asks, inside the process of a socket, whether a key that has just been proven may come in (its ZAP protocol).
Here one judge answers for all processes of a daemon: it lives in the supervisor and is served between other work. Servo
and publisher only pass questions on to it, in a thread that runs ZeroMQ's own proxy and never Python, so that nobody
who knocks costs the servo's interpreter anything. While there is no judge, nobody gets in.
"""

import os
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from bridge.keys import (
    ALLOWED,
    LOCAL,
    SECRET_SUFFIX,
    SERVER,
    ClientKeys,
    KeyPair,
    KeysError,
    check_key,
    fingerprint,
    keys_directory,
    read_allowed,
    read_pair,
    read_public,
)
from bridge.runtime import RuntimeDirectory, RuntimeDirectoryError, check_address

ZAP_ADDRESS = "inproc://zeromq.zap.01"
ZAP_VERSION = b"1.0"
HANDSHAKE_MS = 5000
"""A peer that has not proven its key by then is disconnected."""

MAX_FRAMES = 16
MAX_QUESTIONS = 64
"""Answered in one go before other work gets its turn."""

LARGEST_QUESTION = 4096
_CURVE_REQUEST_FRAMES = 7

_FAILURES = zmq.Event.HANDSHAKE_FAILED_PROTOCOL | zmq.Event.HANDSHAKE_FAILED_NO_DETAIL


class AccessError(RuntimeDirectoryError):
    """The keys of a configuration cannot be used; the text is one sentence for the user."""


@dataclass(frozen=True)
class Access:
    """What an ``[access]`` section comes to: the daemon's pair, and the list of its clients."""

    keys_path: Path
    allow_path: Path
    keys: KeyPair


def load_access(section: Any, base: str | os.PathLike[str]) -> Access | None:
    """Read the keys of an ``[access]`` section, whose relative paths are meant from ``base``; None without a section.

    Raises AccessError when a file is absent, damaged, or open to others.
    """
    if section is None:
        return None
    folder = keys_directory()
    keys = _path(section.keys, base) or folder / f"{SERVER}{SECRET_SUFFIX}"
    allow = _path(section.allow, base) or folder / ALLOWED
    try:
        access = Access(keys, allow, read_pair(keys))
        read_allowed(allow)
    except KeysError as error:
        raise AccessError(f"[access]: {error}") from None
    return access


def _path(text: str | None, base: str | os.PathLike[str]) -> Path | None:
    return None if text is None else Path(os.path.abspath(Path(base) / Path(text).expanduser()))


def load_link_keys(section: Any, access: Any, base: str | os.PathLike[str]) -> ClientKeys | None:
    """The keys with which a ``[link]`` (Config or mapping) connects to its other end; None where it needs none.

    access: the ``[access]`` section, whose pair this end shows unless the link names one. Relative paths are meant from
    ``base``. Raises AccessError when a key is missing or cannot be used.
    """
    link = _section(section)
    server_key, own = link.get("server_key"), link.get("keys")
    if not link.get("connect") or server_key is None:
        return None
    secret = _path(own, base)
    if secret is None and access is not None:
        secret = _path(_section(access).get("keys"), base) or keys_directory() / f"{SERVER}{SECRET_SUFFIX}"
    if secret is None:
        raise AccessError("[link]: `keys` is missing: the key file of this end, whose public key the other end allows")
    try:
        try:
            server = check_key(server_key)
        except KeysError:
            server = read_public(_path(server_key, base) or "")
        return ClientKeys(server, read_pair(secret))
    except KeysError as error:
        raise AccessError(f"[link]: {error}") from None


def _section(section: Any) -> dict[str, Any]:
    """A section of a configuration as a mapping, from the Config object, a mapping, or None."""
    if section is None:
        return {}
    return dict(section) if isinstance(section, Mapping) else section.model_dump()


def stored_keys(runtime: RuntimeDirectory, config: Mapping[str, Any]) -> KeyPair | None:
    """The pair that a child process guards its sockets with; None when the configuration has no ``[access]``.

    Raises AccessError when it should be there and is not.
    """
    if config.get("access") is None:
        return None
    try:
        return read_pair(Path(runtime.keys_link.read_text()))
    except (KeysError, OSError) as error:
        raise AccessError(f"the daemon's keys cannot be read: {error}") from None


def bind(socket: zmq.Socket, endpoint: str, keys: KeyPair | None = None, domain: str = "") -> None:
    """Listen on an address: with keys on tcp, without them on ipc and loopback only.

    domain: what the judge calls this socket. Raises AddressRefused, and zmq.ZMQError when the address is taken.
    """
    check_address(endpoint, guarded=keys is not None)
    if endpoint.startswith("tcp://["):
        socket.set(zmq.IPV6, 1)
    if keys is not None and endpoint.startswith("tcp://"):
        socket.set(zmq.CURVE_SERVER, 1)
        socket.set(zmq.CURVE_SECRETKEY, keys.secret)
        socket.set(zmq.ZAP_DOMAIN, domain.encode())
        # Without this, ZeroMQ would let every key in while nobody answers its questions.
        socket.set(zmq.ZAP_ENFORCE_DOMAIN, 1)
        socket.set(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    socket.bind(endpoint)


def ask_judge(context: zmq.Context, address: str) -> None:
    """Pass ZeroMQ's questions in this context on to the judge at ``address``, in a thread that ends with it."""
    near = context.socket(zmq.ROUTER)
    near.bind(ZAP_ADDRESS)
    far = context.socket(zmq.DEALER)
    for socket in (near, far):
        socket.set(zmq.LINGER, 0)
        socket.set(zmq.MAXMSGSIZE, LARGEST_QUESTION)
    far.connect(address)

    def forward() -> None:
        try:
            zmq.proxy(near, far)
        except zmq.ZMQError:  # the context ends
            pass
        finally:
            near.close()
            far.close()

    threading.Thread(target=forward, name="zap", daemon=True).start()


def monitor(socket: zmq.Socket, events: int) -> zmq.Socket:
    """Where ZeroMQ tells of these events of a socket.

    Its queue has no bound: at a full one, ZeroMQ's own thread would wait, and with it all sockets of the context.
    """
    address = f"inproc://monitor-{uuid.uuid4().hex}"
    socket.monitor(address, events)
    told = socket.context.socket(zmq.PAIR)
    told.set(zmq.LINGER, 0)
    told.set(zmq.RCVHWM, 0)
    told.connect(address)
    return told


@dataclass(frozen=True)
class Question:
    """May this key come in?"""

    request_id: bytes
    domain: str
    address: str
    key: bytes
    """40 characters; empty for another mechanism than CURVE."""


def read_question(frames: list[bytes]) -> Question | None:
    """A question of ZeroMQ's ZAP protocol, without its envelope; None when it is none."""
    if len(frames) < _CURVE_REQUEST_FRAMES - 1 or len(frames) > MAX_FRAMES or frames[0] != ZAP_VERSION:
        return None
    is_curve = frames[5] == b"CURVE" and len(frames) == _CURVE_REQUEST_FRAMES and len(frames[6]) == 32
    domain, address = (frame.decode("ascii", "replace")[:64] for frame in frames[2:4])
    return Question(frames[1][:64], domain, address, z85.encode(frames[6]) if is_curve else b"")


class Judge:
    """Answers for all processes of one daemon whose key may come in. `step` never waits.

    The list of clients is read again whenever its file has changed. While it cannot be read, only the daemon's own user
    gets in.
    """

    def __init__(self, context: zmq.Context, address: str, allow_path: Path, local: bytes) -> None:
        """local: public key of the pair for the programs of the daemon's own user."""
        self._path = allow_path
        self._local = local
        self._names: dict[bytes, str] = {}
        self._stamp: object = None
        self.trouble = ""
        """Why the list cannot be read; empty while it can."""
        self.refused = 0
        self.last_refusal = ""
        """One sentence about the last one that was refused."""
        self.socket = context.socket(zmq.ROUTER)
        self.socket.set(zmq.LINGER, 0)
        self.socket.set(zmq.MAXMSGSIZE, LARGEST_QUESTION)
        self.socket.bind(ZAP_ADDRESS)
        self.socket.bind(address)
        self._monitors: list[zmq.Socket] = []

    def watch(self, socket: zmq.Socket) -> None:
        """Count those too who never get as far as a question: no key, or another daemon's."""
        self._monitors.append(monitor(socket, _FAILURES))

    def step(self) -> None:
        """Answer what has been asked, and count who did not even ask."""
        for _ in range(MAX_QUESTIONS):
            if not self.socket.poll(0):
                break
            frames = self.socket.recv_multipart(zmq.NOBLOCK)
            end = frames.index(b"") + 1 if b"" in frames else len(frames)
            question = read_question(frames[end:])
            if question is not None:
                self.socket.send_multipart([*frames[:end], *self.answer(question)], zmq.NOBLOCK)
        for watched in self._monitors:
            for _ in range(MAX_QUESTIONS):
                if not watched.poll(0):
                    break
                recv_monitor_message(watched, zmq.NOBLOCK)
                self._refuse("a peer at the control socket showed no key, or looked for another daemon's")

    def answer(self, question: Question) -> list[bytes]:
        """The frames that answer a question."""
        name = self.name_of(question.key)
        if name is None:
            whose = f"the key {fingerprint(question.key)}" if question.key else "a peer without a key"
            self._refuse(f"{whose}, from {question.address}, is not on the list of {self._path}")
            return [ZAP_VERSION, question.request_id, b"400", b"not allowed", b"", b""]
        return [ZAP_VERSION, question.request_id, b"200", b"OK", name.encode(), b""]

    def name_of(self, key: bytes) -> str | None:
        """Under which name a key comes in; None when it does not."""
        if not key:
            return None
        if key == self._local:
            return LOCAL
        self._read_again()
        return self._names.get(key)

    def _read_again(self) -> None:
        try:
            found = os.stat(self._path)
            stamp: object = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
        except OSError as error:
            stamp = error.errno
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._names = {key: name for name, key in read_allowed(self._path).items()}
            self.trouble = ""
        except KeysError as error:
            self._names = {}
            self.trouble = str(error)

    def _refuse(self, sentence: str) -> None:
        self.refused += 1
        self.last_refusal = self.trouble or sentence

    def close(self) -> None:
        """Answer nobody any more."""
        for watched in self._monitors:
            watched.close(0)
        self.socket.close()
