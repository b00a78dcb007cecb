"""``hapticd link``: a way between two daemons that behaves like a network."""

from typing import Annotated

import typer

from bridge.cli.errors import fail
from bridge.cli.options import Json, running
from bridge.cli.printing import print_json
from bridge.exit_codes import ExitCode

END = "A running daemon with a table [link]: its name, or the address of its peer socket (tcp://..., ipc://...)."


def link(
    a: Annotated[str, typer.Argument(metavar="A", help=END, autocompletion=running)],
    b: Annotated[str, typer.Argument(metavar="B", help="The other end, likewise.", autocompletion=running)],
    delay: Annotated[float, typer.Option("--delay", help="One way, ms.")] = 0.0,
    jitter: Annotated[
        float, typer.Option("--jitter", help="On top of it, by chance, up to so many ms: messages overtake each other.")
    ] = 0.0,
    loss: Annotated[float, typer.Option("--loss", help="So many percent of the messages are lost.")] = 0.0,
    burst: Annotated[
        float | None,
        typer.Option("--burst", help="Mean number of messages that are lost in a row; by default each by itself."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Which messages are lost: the same seed, the same ones.")] = 0,
    duration: Annotated[float | None, typer.Option("--duration", "-d", min=0.0, help="Stop after so many s.")] = None,
    rate_report: Annotated[
        float, typer.Option("--rate-report", min=0.0, help="Print a line every so many s; 0: none.")
    ] = 1.0,
    server_key_a: Annotated[
        str | None, typer.Option("--server-key-a", help="A is an address: its public key, or a file that holds it.")
    ] = None,
    server_key_b: Annotated[str | None, typer.Option("--server-key-b", help="The same of B.")] = None,
    keys: Annotated[
        str | None, typer.Option("--keys", help="For addresses: the key file of this relay, which both ends allow.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Link two daemons through a relay that delays and loses messages as a network does. Stop it with Ctrl-C.

    Both daemons run with a table `[link]` and without `connect` in it. Everything is the same in both directions. A
    line each second tells messages and losses each way, and how long it takes there and back.

    Examples:

        hapticd link left right

        hapticd link left right --delay 50 --jitter 10 --loss 5 --burst 4 --seed 1

        hapticd link left tcp://127.0.0.1:5554 --delay 20 --duration 60 --json
    """
    from bridge.link_relay import Line, run_relay

    try:
        line = Line(delay_ms=delay, jitter_ms=jitter, loss=loss / 100.0, burst=burst, seed=seed)
    except ValueError as error:
        fail(str(error), ExitCode.USAGE)
    for end, server_key in ((a, server_key_a), (b, server_key_b)):
        if server_key is not None and not end.startswith("tcp://"):
            fail(f"{end} is no tcp:// address, so it takes no server key", ExitCode.USAGE)
    if keys is not None and not any(end.startswith("tcp://") for end in (a, b)):
        fail("--keys is for an end that is a tcp:// address; neither is", ExitCode.USAGE)
    summary = run_relay(
        a,
        b,
        line,
        duration_s=duration,
        report_s=rate_report,
        on_line=None if as_json else lambda text: print(text, flush=True),
        server_keys=(server_key_a, server_key_b),
        keys=keys,
    )
    if as_json:
        print_json(summary)
        return ExitCode.OK
    for name, key in (("A -> B", "a_to_b"), ("B -> A", "b_to_a")):
        counts = summary[key]
        print(
            f"{name}: {counts['received']} messages, {counts['lost']} lost, {counts['passed']} passed on, "
            f"{counts['dropped']} not taken"
        )
    way = summary["way_ms"]
    if way is not None:
        print(f"there and back: p50 {way['p50']:.2f} ms, p99 {way['p99']:.2f} ms")
    return ExitCode.OK
