"""``hapticd adapter`` and ``hapticd adapter-test``: be a device's adapter, or see whether one does what it must."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.errors import fail
from bridge.cli.options import Json, Name
from bridge.cli.printing import print_json
from bridge.exit_codes import ExitCode


class Mode(StrEnum):
    """What an adapter makes of a render."""

    impedance = "impedance"
    wrench = "wrench"


def _names(incomplete: str) -> list[str]:
    from bridge.adapters.registry import ADAPTERS

    return [name for name in ADAPTERS if name.startswith(incomplete)]


Settings = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="An option of the adapter; `--list` shows them."),
]
What = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A name of `--list`, package.module:Class, or file.py:Class.", autocompletion=_names
    ),
]


def adapter(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A name of `--list`, package.module:Class, or file.py:Class.", autocompletion=_names
        ),
    ] = None,
    name: Name = "default",
    settings: Settings = None,
    mode: Annotated[
        Mode,
        typer.Option("--mode", "-m", help="Close the spring at the device's rate, or apply the plain wrench (halved)."),
    ] = Mode.impedance,
    near: Annotated[
        bool, typer.Option("--near", help="Take hold only where the device is near the tool, without moving the map.")
    ] = False,
    continuous: Annotated[
        float | None,
        typer.Option("--continuous", min=0.0, help="N that the motors stand for ever, if less than the card's force."),
    ] = None,
    endpoints: Annotated[
        Path | None,
        typer.Option("--endpoints", help="File with the addresses of a daemon, such as its endpoints.json."),
    ] = None,
    journal: Annotated[
        Path | None, typer.Option("--journal", hidden=True, help="Note what is read and written: for the test.")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", "-l", help="Which adapters there are, with options.")] = False,
) -> int:
    """Be the adapter of a device: send its poses to a daemon, and apply what comes back.

    Waits for the daemon, and for another one when that ends. Ctrl-C, SIGTERM or the end of its terminal ramps forces
    down and gives the device back. Exit codes: 9 refused by the daemon, 11 the device is missing or was unplugged.

    Examples:

        hapticd adapter --list

        hapticd adapter simulated --set path=circle

        hapticd adapter inverse --continuous 4

        hapticd adapter mydevice.py:MyDevice --near
    """
    from bridge.adapters.registry import ADAPTERS, make, options_of

    if list_all:
        for known, entry in ADAPTERS.items():
            extra = f"; needs pip install 'hapticd[{entry.needs}]'" if entry.needs else ""
            print(f"{known:16} {entry.text}{extra}")
            for key, value in options_of(known).items():
                print(f"{'':16}   --set {key}={value}")
        return ExitCode.OK
    if what is None:
        fail("which adapter? `hapticd adapter --list` shows them", ExitCode.USAGE)
    from bridge.adapters.loop import run_adapter

    device = make(what, pairs(settings))
    if journal is not None:
        from bridge.adapters.journal import Journal
        from bridge.adapters.witness import Witness

        device = Witness(device, Journal(journal))
    code, text = run_adapter(
        device,
        daemon=name if endpoints is None else _addresses(endpoints),
        name=f"adapter {what}"[:60],
        mode=mode.value,
        reanchor=not near,
        continuous=continuous,
        say=lambda line: print(line, flush=True),
    )
    if code != ExitCode.OK:
        fail(text, code)
    return code


def adapter_test(
    what: What,
    settings: Settings = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.2, max=60.0, help="How long to look at samples and at forces in rest.")
    ] = 1.0,
    hardware: Annotated[
        bool, typer.Option("--hardware", help="At the device itself, although it comes with an emulator.")
    ] = False,
    short: Annotated[bool, typer.Option("--short", help="Leave out what needs a second adapter or daemon.")] = False,
    as_json: Json = False,
) -> int:
    """See from outside whether an adapter does what every adapter must, one line per check.

    Starts a daemon and the adapter at its device. Where the device comes with an emulator, that is what is tested at,
    unless `--hardware` is given, and the output says so. At a real device **keep hands off**: it is pushed to and fro
    with a third of its largest force for seconds, and with the largest for a moment. An input device has to be
    deflected when a sentence asks for it. Exit code 0: it passed; 1: it did not.

    Examples:

        hapticd adapter-test simulated

        hapticd adapter-test mydevice.py:MyDevice --seconds 5
    """
    from bridge.adapters.conformance import run_conformance

    tell = None if as_json else lambda line: print(line, flush=True)
    report = run_conformance(what, pairs(settings), hardware=hardware, seconds=seconds, short=short, on_line=tell)
    if as_json:
        print_json(report.to_dict())
    return ExitCode.OK if report.passed else ExitCode.FAILURE


def pairs(settings: list[str] | None) -> dict[str, str]:
    """KEY=VALUE texts as a map."""
    found = {}
    for text in settings or []:
        key, equals, value = text.partition("=")
        if not (key and equals):
            fail(f"--set {text!r} is not KEY=VALUE", ExitCode.USAGE)
        found[key] = value
    return found


def _addresses(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text())
    except ValueError:
        found = None
    if not isinstance(found, dict) or "control" not in found:
        fail(f"{path} is no map of addresses with `control`, such as a daemon's endpoints.json", ExitCode.INPUT)
    return {key: value for key, value in found.items() if key in ("control", "device", "state", "events")}
