"""``hapticd keys ...``: who a daemon on the network is, and whom it lets in."""

from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.options import Json, files
from bridge.cli.printing import print_json, printable
from bridge.exit_codes import ExitCode

Folder = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        "-d",
        help="Folder of the keys; by default $HAPTICD_KEYS_DIR, else hapticd/keys in $XDG_CONFIG_HOME or ~/.config.",
    ),
]
Key = Annotated[
    str,
    typer.Argument(
        metavar="KEY", help="Public key file (NAME.key), or the key's 40 characters.", autocompletion=files(".key")
    ),
]


def _folder(folder: Path | None) -> Path:
    from bridge.keys import keys_directory

    return keys_directory() if folder is None else folder


def _make(folder: Path | None, name: str) -> tuple[Path, str]:
    from bridge.keys import fingerprint, make_pair

    where = _folder(folder)
    pair = make_pair(where, name)
    print(f"secret key   {where / name}.key_secret   (keep it where it is)")
    print(f"public key   {where / name}.key   {pair.public.decode()}")
    print(f"fingerprint  {fingerprint(pair.public)}")
    return where, pair.public.decode()


def server(folder: Folder = None) -> int:
    """Make the key pair of the daemons on this machine.

    Clients need a copy of its public key, server.key. An `[access]` table in a configuration then guards the sockets.

    Examples:

        hapticd keys server
    """
    from bridge.keys import ALLOWED, write_allowed

    where, _ = _make(folder, "server")
    if not (where / ALLOWED).exists():
        write_allowed(where / ALLOWED, {})
    print("next         `hapticd keys allow NAME.key` for each client, and `[access]` in the configuration")
    return ExitCode.OK


def client(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the daemon shall call this client.")],
    folder: Folder = None,
) -> int:
    """Make a key pair for a client, on the client's machine.

    Only NAME.key, the public key, goes to the daemon's machine.

    Examples:

        hapticd keys client alice
    """
    _make(folder, name)
    print(f"next         on the daemon's machine: `hapticd keys allow {name}.key`")
    return ExitCode.OK


def allow(
    key: Key,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Name on the list; by default that of the file.")
    ] = None,
    folder: Folder = None,
) -> int:
    """Let a client in, from now on; a running daemon need not be started again.

    Examples:

        hapticd keys allow alice.key

        hapticd keys allow 'rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7' --as bob
    """
    from bridge import keys

    public = keys.read_public(key)
    called = name if name is not None else Path(key).name.removesuffix(".key") if key.endswith(".key") else None
    if called is None:
        raise keys.KeysError("a key that is not in a file NAME.key needs a name: --as NAME")
    path = _folder(folder) / keys.ALLOWED
    keys.allow(path, called, public)
    print(f"{called} is let in: {keys.fingerprint(public)}, in {path}")
    return ExitCode.OK


def revoke(name: Annotated[str, typer.Argument(metavar="NAME", help="On the list.")], folder: Folder = None) -> int:
    """Let a client in no more.

    A running daemon refuses its next connection. One that is open stays so until it ends: stop the daemon to cut it.

    Examples:

        hapticd keys revoke alice
    """
    from bridge import keys

    path = _folder(folder) / keys.ALLOWED
    public = keys.revoke(path, name)
    print(f"{name} is let in no more: {keys.fingerprint(public)}; connections that are open last until they end")
    return ExitCode.OK


def show(key: Key) -> int:
    """Print the fingerprint of a key, to be compared by telephone.

    Examples:

        hapticd keys show alice.key
    """
    from bridge.keys import fingerprint, read_public

    print(fingerprint(read_public(key)))
    return ExitCode.OK


def list_keys(folder: Folder = None, as_json: Json = False) -> int:
    """List the keys here and the clients that are let in, with their fingerprints.

    Examples:

        hapticd keys list
    """
    from bridge import keys

    where = _folder(folder)
    if where.exists() and not where.is_dir():
        raise keys.KeysError(f"{where} is not a folder")
    found = sorted(where.glob(f"*{keys.PUBLIC_SUFFIX}")) if where.is_dir() else []
    own, unread = {}, {}
    for path in found:
        try:
            own[path.stem] = keys.fingerprint(keys.read_public(path))
        except keys.KeysError as error:
            unread[path.name] = printable(str(error))
    path = where / keys.ALLOWED
    allowed = keys.read_allowed(path) if path.exists() else {}
    let_in = {name: keys.fingerprint(key) for name, key in sorted(allowed.items())}
    if as_json:
        print_json({"directory": str(where), "keys": own, "unread": unread, "allowed": let_in})
        return ExitCode.OK
    print(f"{where}")
    for title, rows in (("keys", own), ("let in", let_in)):
        print(f"  {title}" + ("" if rows else ": none"))
        for name, digits in rows.items():
            print(f"    {printable(name):<16} {digits}")
    for why in unread.values():
        print(f"  not read: {why}")
    return ExitCode.OK
