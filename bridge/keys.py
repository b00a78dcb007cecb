"""Key files: who a daemon is, who its clients are, and which of them it lets in.

A pair is two files of ZeroMQ's certificate format: ``NAME.key`` holds the public key and may go anywhere,
``NAME.key_secret`` holds both and is its owner's alone. The daemon's pair is named ``server``. The clients that a
daemon lets in stand in one file, ``allowed``, a name and a public key to the line.
"""

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from zmq.utils import z85

SERVER = "server"
"""Name of the daemon's own pair."""

LOCAL = "local"
"""Name of the pair that a daemon makes at each start for the programs of its own user."""

SECRET_SUFFIX = ".key_secret"
PUBLIC_SUFFIX = ".key"
ALLOWED = "allowed"

LARGEST_FILE = 1 << 20
"""Bytes; a larger key file or list is surely not one."""

MAX_ALLOWED = 4096
"""Clients in one list."""

KEY_CHARACTERS = 40
"""Of a key written as text: 32 bytes in ZeroMQ's base 85."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,47}")
_KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_BANNER = "# {what} of {name}, made by hapticd.\n{warning}\nmetadata\ncurve\n"
_TAKEN = "{} exists already; keys are not written over, so remove it or choose another name"


class KeysError(RuntimeError):
    """Keys that cannot be made, read or trusted; the text is one sentence for the user."""


@dataclass(frozen=True)
class KeyPair:
    """A CURVE key pair, both keys as 40 characters of base 85."""

    public: bytes
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class ClientKeys:
    """What a client needs to get in: the daemon's public key and a pair of its own."""

    server: bytes
    own: KeyPair

    def use(self, socket: zmq.Socket) -> None:
        """Encrypt whatever this socket connects to from now on, and accept no other daemon there."""
        socket.set(zmq.CURVE_SERVERKEY, self.server)
        socket.set(zmq.CURVE_PUBLICKEY, self.own.public)
        socket.set(zmq.CURVE_SECRETKEY, self.own.secret)


def keys_directory() -> Path:
    """Where keys of this user are: ``$HAPTICD_KEYS_DIR``, else ``hapticd/keys`` in the user's configuration folder."""
    chosen = os.environ.get("HAPTICD_KEYS_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "hapticd" / "keys"


def check_name(name: str) -> str:
    """Return a name that a key may have; raise KeysError for any other."""
    if name == LOCAL:
        raise KeysError(f"{name!r} is how a daemon calls programs of its own user; choose another name")
    if not _NAME.fullmatch(name):
        raise KeysError(
            f"{name!r:.60} is no name for a key: up to 48 letters, digits, '.', '_' or '-', starting with a letter or "
            "a digit"
        )
    return name


def check_key(text: str | bytes, where: str = "the key") -> bytes:
    """Return a key as its 40 characters; raise KeysError, which calls it ``where``, when it is none."""
    characters = text.decode("ascii", "replace") if isinstance(text, bytes) else text
    try:
        if not _KEY.fullmatch(characters) or len(z85.decode(characters.encode())) != 32:
            raise ValueError
    except Exception:  # the codec shows a number that is too large as an error of struct
        raise KeysError(f"{where} is not a CURVE key: 40 characters of ZeroMQ's base 85 are needed") from None
    return characters.encode()


def fingerprint(public: bytes) -> str:
    """A short form of a public key that two people can compare: eight groups of four hexadecimal digits."""
    digits = hashlib.sha256(z85.decode(public)).hexdigest()[:32]
    return ":".join(digits[i : i + 4] for i in range(0, 32, 4))


def new_pair() -> KeyPair:
    """A fresh pair from the system's random numbers. Raises KeysError when this libzmq has no CURVE."""
    _need_curve()
    return KeyPair(*zmq.curve_keypair())


def _need_curve() -> None:
    if not zmq.has("curve"):
        raise KeysError("the installed libzmq was built without CURVE; install the wheel of pyzmq")


# -- files -------------------------------------------------------------------------------------------------------------


def make_pair(directory: Path, name: str) -> KeyPair:
    """Make a pair and write its two files, the secret one readable by the user alone; nothing is ever written over."""
    check_name(name)
    pair = new_pair()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise KeysError(f"cannot make the folder {directory}: {error.strerror}") from None
    secret, public = directory / f"{name}{SECRET_SUFFIX}", directory / f"{name}{PUBLIC_SUFFIX}"
    for path in (secret, public):
        if os.path.lexists(path):
            raise KeysError(_TAKEN.format(path))
    write_pair(secret, name, pair)
    warning = "# Anybody may have it.\n"
    text = (
        _BANNER.format(what="Public key", name=name, warning=warning) + f'    public-key = "{pair.public.decode()}"\n'
    )
    try:
        _write(public, text, 0o644)
    except (KeysError, OSError):
        secret.unlink()  # one without the other would be in the way of the next attempt
        raise
    return pair


def write_pair(path: Path, name: str, pair: KeyPair) -> None:
    """Write the secret file of a pair, mode 0600; KeysError when there is one already."""
    warning = "# Keep it: whoever has it is let in under this name.\n"
    text = _BANNER.format(what="SECRET key", name=name, warning=warning)
    text += f'    public-key = "{pair.public.decode()}"\n    secret-key = "{pair.secret.decode()}"\n'
    _write(path, text, 0o600)


def _write(path: Path, text: str, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        raise KeysError(_TAKEN.format(path)) from None
    except OSError as error:
        raise KeysError(f"cannot write {path}: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)


def _read(path: Path, forbidden: int, why: str) -> str:
    """Text of a file of ours, of which others have none of the ``forbidden`` permissions; KeysError otherwise."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise KeysError(f"{path} does not exist; `hapticd keys --help` tells how keys are made") from None
    except OSError as error:
        raise KeysError(f"{path} cannot be read: {error.strerror}") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise KeysError(f"{path} is not a file")
    with os.fdopen(descriptor, "rb") as file:
        if found.st_mode & forbidden:
            raise KeysError(
                f"{path} can be {why} by others; `chmod 600 {path}` and, if they may have used it, replace it"
            )
        if found.st_uid not in (os.getuid(), 0) and forbidden:
            raise KeysError(f"{path} belongs to another user; keys must be your own")
        if found.st_size > LARGEST_FILE:
            raise KeysError(f"{path} is {found.st_size} bytes long; a file of keys is much shorter")
        raw = file.read(LARGEST_FILE + 1)
    return parse_text(raw, str(path))


def parse_text(raw: bytes, source: str) -> str:
    """The text of a file of keys; KeysError when it is too long or none."""
    if len(raw) > LARGEST_FILE:
        raise KeysError(f"{source} is longer than a file of keys can be")
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError:
        raise KeysError(f"{source} is not a file of keys: it holds other characters than letters") from None


def parse_certificate(text: str, source: str) -> dict[str, bytes]:
    """The keys of a certificate, ``public-key`` and perhaps ``secret-key``; KeysError when it is none."""
    keys: dict[str, bytes] = {}
    for line in text.splitlines():
        what, equals, value = (part.strip() for part in line.partition("="))
        if what in ("public-key", "secret-key") and equals and not line.lstrip().startswith("#"):
            if what in keys:
                raise KeysError(f"{source} holds two keys of one kind")
            keys[what] = check_key(value.strip("\"'"), f"the {what.replace('-', ' ')} in {source}")
    if "public-key" not in keys:
        raise KeysError(f"{source} holds no public key")
    return keys


def read_pair(path: str | os.PathLike[str]) -> KeyPair:
    """The pair in a secret file. KeysError when it is absent, damaged, or others may read it."""
    _need_curve()
    keys = parse_certificate(_read(Path(path), 0o077, "read"), str(path))
    if "secret-key" not in keys:
        raise KeysError(f"{path} holds a public key only; the file that ends in {SECRET_SUFFIX} is needed")
    pair = KeyPair(keys["public-key"], keys["secret-key"])
    if zmq.curve_public(pair.secret) != pair.public:
        raise KeysError(f"the two keys in {path} do not belong together")
    return pair


def read_public(key: str | bytes | os.PathLike[str], what: str = "the key") -> bytes:
    """A public key given as its 40 characters or as a file that holds it. Raises KeysError."""
    if isinstance(key, bytes):
        return check_key(key, what)
    if isinstance(key, str) and _KEY.fullmatch(key):
        return check_key(key, what)
    path = Path(key)
    if path.name.endswith(SECRET_SUFFIX):
        return read_pair(path).public
    return parse_certificate(_read(path, 0, ""), str(path))["public-key"]


# -- the list of clients -----------------------------------------------------------------------------------------------


def parse_allowed(text: str, source: str) -> dict[str, bytes]:
    """Public key by name, from the text of a list: a name and a key to the line, ``#`` begins a remark."""
    found: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{source}, line {number}"
        if len(words) != 2:
            raise KeysError(f"{where}: a line is a name and a key")
        if not _NAME.fullmatch(words[0]) or words[0] in found:
            raise KeysError(f"{where}: {words[0]!r:.60} is no name, or stands twice")
        if len(found) >= MAX_ALLOWED:
            raise KeysError(f"{source} holds more than {MAX_ALLOWED} clients")
        found[words[0]] = check_key(words[1], f"{where}: the second word")
    return found


def read_allowed(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Public key by name of the clients in a list. KeysError when it is absent, damaged, or others may write it."""
    return parse_allowed(_read(Path(path), 0o022, "written"), str(path))


def write_allowed(path: Path, allowed: Mapping[str, bytes]) -> None:
    """Replace a list in one step, mode 0600."""
    lines = ["# Clients that the daemon lets in: name, public key. `hapticd keys allow` and `revoke` write it."]
    lines += [f"{name} {key.decode()}" for name, key in sorted(allowed.items())]
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        _write(temporary, "\n".join(lines) + "\n", 0o600)
        os.replace(temporary, path)
    except OSError as error:
        raise KeysError(f"cannot write {path}: {error.strerror}") from None


def allow(path: Path, name: str, key: bytes) -> None:
    """Put a client on a list, which is made when there is none. KeysError when the name has another key there."""
    check_name(name)
    allowed = read_allowed(path) if path.exists() else {}
    if allowed.get(name, key) != key:
        raise KeysError(f"{path} has another key for {name!r}; revoke that one first, or choose another name")
    twin = next((other for other, its in allowed.items() if its == key and other != name), None)
    if twin is not None:
        raise KeysError(f"this key stands in {path} already, as {twin!r}")
    write_allowed(path, {**allowed, name: key})


def revoke(path: Path, name: str) -> bytes:
    """Take a client off a list and return its key. KeysError when it is not on it."""
    allowed = read_allowed(path)
    if name not in allowed:
        raise KeysError(f"{path} has no client {name!r}; there are: {', '.join(sorted(allowed)) or 'none'}")
    key = allowed.pop(name)
    write_allowed(path, allowed)
    return key
