"""``hapticd certify``: how stiff a device may be rendered."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridge.cli.errors import fail
from bridge.cli.options import Json, check_output
from bridge.cli.printing import print_json
from bridge.exit_codes import ExitCode

if TYPE_CHECKING:
    from bridge.client import Client
    from bridge.motions import Motion
    from haptics.cards import DeviceCard


RATE = 1000.0
"""Hz of the tick, unless said otherwise."""

DELAYS = [0, 1]
"""Ticks, likewise."""

PRESS = 0.003
"""m behind the surface where the hand of a rehearsal wants to be, scene."""


class GripName(StrEnum):
    """Who can press: with nobody's hand on it nothing does."""

    held = "held"
    light = "light"


def _cards(incomplete: str) -> list[str]:
    from haptics.cards import card_names

    return [name for name in card_names() if name.startswith(incomplete)]


def certify(
    card: Annotated[
        str | None,
        typer.Argument(metavar="CARD", help="Device card: its name, or a TOML file.", autocompletion=_cards),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All cards that come with hapticd.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write the rows into the card's file.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with the rows in the card; exit code 10 when one differs.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Only show the rows that the card has, as Markdown.")] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the plane of damping and stiffness as a PNG.")
    ] = None,
    rate: Annotated[float, typer.Option("--rate", min=10.0, max=10000.0, help="Of the tick, Hz.")] = RATE,
    delay: Annotated[
        list[int],
        typer.Option(
            "--delay", min=0, max=100, help="Ticks by which a wrench reaches the motors late; as many as wanted."
        ),
    ] = DELAYS,
    daemon: Annotated[
        str | None,
        typer.Option("--daemon", help="Rehearse at this running daemon: its stiffness is raised until it shakes."),
    ] = None,
    hand: Annotated[
        GripName | None, typer.Option("--hand", help="--daemon: how the device is held; by default held.")
    ] = None,
    highest: Annotated[float | None, typer.Option("--to", help="--daemon: up to this stiffness, N/m.")] = None,
    damping: Annotated[float | None, typer.Option("--damping", help="--daemon: of the coupling, N·s/m.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="--daemon: yes, it may shake.")] = False,
    as_json: Json = False,
) -> int:
    """Find the largest stable stiffness of a device, by hand, scene and damping, with and without passivity controller.

    The daemon's own tick runs against a simulated hand at the mechanism that the card describes, faster than real time:
    held, held lightly and by nobody, pressed against a wall and held between two. What is found is the same each time.

    With --daemon the hand presses the card's mechanism onto the surface under the tool of a running daemon, in real
    time and over the wire, and the stiffness goes up by 12 % every half second, until the device oscillates, its energy
    is above the floor, or the daemon's limit is reached. The daemon must require a deadman. Where samples come slowly
    the daemon softens the spring, and nothing is found. For a device of your own, `bridge.certify_device.measure` does
    the same with its adapter.

    Examples:

        hapticd certify touch

        hapticd certify devices/mine.toml --write --picture mine.png

        hapticd certify --all --check

        hapticd certify simulated --daemon default --hand light --yes
    """
    from bridge import card_rows as files
    from haptics.cards import card_names, card_path, load_card

    if (card is None) == (not every):
        fail("name one device card, or give --all", ExitCode.USAGE)
    if daemon is not None:
        if card is None or write or check or show or picture is not None:
            fail("--daemon takes a card, and none of --all, --write, --check, --show and --picture", ExitCode.USAGE)
        if not yes:
            fail("the device may begin to shake before the stiffness goes back: say --yes for that", ExitCode.USAGE)
        if rate != RATE or delay != DELAYS:
            fail("--rate and --delay are the running daemon's own; leave them out with --daemon", ExitCode.USAGE)
        return _rehearse(load_card(card), daemon, hand or GripName.held, highest, damping, as_json)
    if hand is not None or highest is not None or damping is not None or yes:
        fail("--hand, --to, --damping and --yes are for --daemon, which names the running daemon", ExitCode.USAGE)
    if every and picture is not None:
        fail("--picture shows one card; name it instead of --all", ExitCode.USAGE)
    if show and (write or check or picture is not None):
        fail("--show finds no rows that --write, --check or --picture could take", ExitCode.USAGE)
    if write and check:
        fail("--check compares with the rows that --write replaces; give one of the two", ExitCode.USAGE)
    names = card_names() if card is None else [card]
    paths = [card_path(name) for name in names]
    cards = [load_card(path.resolve().as_posix()) for path in paths]
    idle = [each for each in cards if each.input_only]
    told = [f"{each.name}: input only, so there is nothing to certify: it renders no force" for each in idle]
    driven = [(path, each) for path, each in zip(paths, cards, strict=True) if not each.input_only]
    if show:
        if as_json:
            print_json({each.name: [row.to_dict() for row in each.certified] for _, each in driven})
        else:
            print("\n".join(files.markdown(each for _, each in driven)))
        return ExitCode.OK
    if not driven:
        if as_json:
            print_json({each.name: {"rows": [], "note": note} for each, note in zip(idle, told, strict=True)})
        else:
            print("\n".join(told))
        return ExitCode.OK

    if picture is not None:
        check_output("--picture", picture)
    rows = _find([each for _, each in driven], rate, tuple(dict.fromkeys(delay)), quiet=as_json)
    wrong: list[str] = []
    result: dict[str, Any] = {}
    for (path, each), found in zip(driven, rows, strict=True):
        if not as_json:
            print("\n".join(files.lines(each, found)))
        differs = files.differences(each, found) if check else []
        wrong += differs
        if write:
            files.write_rows(path, found)
        result[each.name] = {
            "stiffness_max": each.stiffness_max,
            "damping_max": each.damping_max,
            "rows": [row.to_dict() for row in found],
            "differences": differs,
        }
    if picture is not None:
        from bridge.certify_picture import draw

        draw(driven[0][1], rows[0], picture)
    if as_json:
        print_json(result)
    else:
        print("\n".join([*told, *wrong]), end="\n" if told or wrong else "")
    return ExitCode.DIFFERENT if wrong else ExitCode.OK


def _rehearse(
    card: "DeviceCard", daemon: str, hand: GripName, highest: float | None, damping: float | None, as_json: bool
) -> ExitCode:
    """A sweep at a running daemon with the card's mechanism; exit code 9 when the daemon ended it."""
    from bridge.certify_device import ENDS, measure
    from bridge.motions import SceneView, make_motion
    from haptics.hands import DeviceDynamics

    device = DeviceDynamics.from_card(card)

    def pressing(client: "Client") -> "Motion":
        view = SceneView.of(client, daemon)
        return make_motion("sim", view, path="circle", radius=1e-4, depth=PRESS, grip=hand.value, device=device)

    done = measure(
        pressing,
        hand=hand.value,
        daemon=daemon,
        damping=damping,
        last=highest,
        resolution=device.resolution,
        on_stage=None if as_json else lambda stiffness: print(f"  {stiffness:.0f} N/m", flush=True),
    )
    if as_json:
        print_json({"row": done.row.to_dict(), "ended": done.ended, "energy_J": done.energy})
    else:
        print(f"{card.name}, {hand.value}: quiet up to {done.row.stiffness_limit[0]:.0f} N/m; {done.ended}")
    return ExitCode.OK if done.ended in ENDS else ExitCode.REFUSED


def _find(cards: "list[DeviceCard]", rate: float, delays: tuple[int, ...], quiet: bool) -> list[Any]:
    """The rows of each card, by simulation."""
    from bridge.compilation import is_cold
    from bridge.daemon import warm_kernels
    from bridge.progress import Progress
    from haptics.certify import Conditions, certify

    if is_cold():
        warm_kernels(quiet=quiet)
    rows = []
    with Progress(quiet=quiet) as progress:
        for number, card in enumerate(cards):

            def step(what: str, done: int, of: int, number: int = number) -> None:
                progress(what, number * of + done, len(cards) * of)

            rows.append(certify(card, Conditions(rate, delays), progress=step))
    return rows
