"""The command line: ``hapticd COMMAND``; the table below says where each command is.

A command is a plain function whose arguments are those of the command line and whose result is the exit code. It
imports what it needs when it runs, so that help is quick. What commands share is in :mod:`bridge.cli.options`
(arguments), :mod:`bridge.cli.errors` (exit codes) and :mod:`bridge.cli.printing`.
"""

from collections.abc import Callable

import typer

from bridge.cli import adapters, certify, collision, follow, hands, keys, links, logs, machine, running
from bridge.cli.errors import Command, guarded

RUN = "Run and feel"

COMMANDS: dict[str, dict[str, Callable[..., int]]] = {
    RUN: {
        "run": running.run,
        "adapter": adapters.adapter,
        "adapter-test": adapters.adapter_test,
        "follow": follow.follow,
        "view": running.view,
        "status": running.status,
        "stop": running.stop,
        "reset": running.reset,
        "link": links.link,
        "demo": running.demo,
    },
    "Logs": {
        "play": logs.play,
        "reexec": logs.reexec,
        "verify": logs.verify,
        "diff": logs.diff,
        "plot": logs.plot,
        "snapshot": logs.snapshot,
    },
    "Scene and machine": {
        "inspect": machine.inspect,
        "ccd": collision.ccd,
        "certify": certify.certify,
        "schema": machine.schema,
        "doctor": machine.doctor,
        "compile": machine.compile_kernels,
    },
}
"""By panel of the help text and by name."""

HANDS: dict[str, Callable[..., int]] = {
    "sim": hands.sim,
    "recorded": hands.recorded,
    "scripted": hands.scripted,
    "mouse": hands.mouse,
}
"""``hapticd hand NAME``."""

KEYS: dict[str, Callable[..., int]] = {
    "server": keys.server,
    "client": keys.client,
    "allow": keys.allow,
    "revoke": keys.revoke,
    "list": keys.list_keys,
    "show": keys.show,
}
"""``hapticd keys NAME``."""


def _application() -> typer.Typer:
    application = typer.Typer(
        name="hapticd",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="A 1 kHz daemon through which people and robots feel simulated objects.",
        epilog="Start with `hapticd demo`. Shell completion: `hapticd --install-completion`. "
        "Exit codes: 0 done, 2 command line, 3 configuration, 4 input file, 5 already running, 8 not running, "
        "9 refused by the daemon, 10 a comparison differs, 11 a device is missing; all of them stand "
        "in `bridge/exit_codes.py`.",
    )
    for panel, commands in COMMANDS.items():
        for name, function in commands.items():
            application.command(name, cls=Command, rich_help_panel=panel)(guarded(function))
    hand = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Be the hand at a running daemon: simulated, recorded, scripted, or the mouse.",
    )
    for name, function in HANDS.items():
        hand.command(name, cls=Command)(guarded(function))
    application.add_typer(hand, name="hand", rich_help_panel=RUN)
    own = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Make and list the keys with which other machines may feel a daemon here.",
    )
    for name, function in KEYS.items():
        own.command(name, cls=Command)(guarded(function))
    application.add_typer(own, name="keys", rich_help_panel="Scene and machine")
    return application


app = _application()


def main() -> None:
    """Entry point of ``hapticd``."""
    app(prog_name="hapticd")
