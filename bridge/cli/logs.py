"""Commands on logs of runs: play, execute again, verify, compare, draw."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridge.cli.errors import fail
from bridge.cli.options import Json, Size, files, pixels
from bridge.cli.printing import print_json
from bridge.exit_codes import ExitCode

if TYPE_CHECKING:
    from bridge.log.play import Player

LogPath = Annotated[Path, typer.Argument(metavar="LOG", help="Log of a run (MCAP).", autocompletion=files(".mcap"))]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write; by default beside the log.")]


def play(
    log: LogPath,
    speed: Annotated[float, typer.Option("--speed", min=0.001, help="1 is real time.")] = 1.0,
    start: Annotated[float, typer.Option("--from", min=0.0, help="Start so many seconds in.")] = 0.0,
    end: Annotated[float | None, typer.Option("--to", min=0.0, help="Stop so many seconds in.")] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", "-c", help="Print this field of each tick, tab-separated; may be given often."),
    ] = None,
    publish: Annotated[
        str | None, typer.Option("--publish", help="Publish as a state socket, e.g. ipc:///tmp/state.")
    ] = None,
) -> int:
    """Play a log at the speed at which it happened.

    Prints a line per second that sums up what happens, or chosen fields of every tick, or serves it to observers.

    Examples:

        hapticd play out/demo.mcap --speed 2

        hapticd play out/demo.mcap --column output.wrench --column output.state > forces.tsv

        hapticd play out/demo.mcap --publish tcp://127.0.0.1:5570
    """
    from bridge.log.play import Player, print_columns
    from bridge.log.play import publish as serve

    player = Player(log, speed=speed, start_s=start, end_s=end)
    if columns:
        print_columns(player, columns, sys.stdout.write)
    elif publish:
        serve(player, publish)
    else:
        _tell(player)
    return ExitCode.OK


def _tell(player: "Player") -> None:
    """Play a log as lines that sum up what happens."""
    from bridge.moment import moment

    dt = float(player.log.settings[0]["dt"])
    shown = -1

    def show(records: Any) -> None:
        nonlocal shown
        if int(player.position_s * 4) != shown:
            shown = int(player.position_s * 4)
            print(moment(records[-1], dt).text, flush=True)

    player.play(show)


def reexec(log: LogPath, as_json: Json = False) -> int:
    """Execute a log again and compare every tick to the bit. Exit code 10 when one differs.

    Needs nothing but the log: scene, settings, inputs and budgets are inside.

    Examples:

        hapticd reexec out/demo.mcap
    """
    from bridge.log.reexec import reexecute
    from bridge.progress import Progress

    with Progress(quiet=as_json) as progress:
        result = reexecute(log, lambda part: progress.fraction("executing again", part))
    if as_json:
        print_json({**result.to_dict(), "same": result.same})
    else:
        print(result)
    return ExitCode.OK if result.same else ExitCode.DIFFERENT


def verify(
    log: LogPath,
    every: Annotated[
        int | None,
        typer.Option("--every", min=1, help="Judge distances and motions at ticks so far apart; by default by length."),
    ] = None,
    first: Annotated[int | None, typer.Option("--from", min=0, help="First tick to judge.")] = None,
    last: Annotated[int | None, typer.Option("--to", min=0, help="Last tick to judge.")] = None,
    again: Annotated[bool, typer.Option("--reexec", help="Execute the log again as well (see `reexec`).")] = False,
    as_json: Json = False,
) -> int:
    """Judge a log by physics, with code that shares nothing with the engine. Exit code 1 when something does not hold.

    From the logged poses, velocities and inputs and the log's own meshes it tells: whether bodies keep their distance,
    in ticks and between them; whether what touches nothing flies freely and the rest is explained by impulses within
    friction cones at contacts; whether energy comes from nothing; whether tool, springs and contacts balance; whether
    the force sent follows from all that within its limits. A line for each: in how many ticks it was judged, the worst
    value, its bar, where. What the log does not tell (what a kinematic body pushes, a solve that was cut short) is not
    judged, and counted. Forces and reports are judged in every tick.

    Examples:

        hapticd verify out/demo.mcap

        hapticd verify out/peg.mcap --from 3000 --to 4000 --every 1 --reexec

        hapticd verify out/peg.mcap --json | jq '.certificates[] | select(.verdict == "FAIL")'
    """
    from bridge.log.reader import read_log
    from bridge.log.reexec import reexecute
    from bridge.progress import Progress
    from bridge.verify.judgement import verify as judge

    if first is not None and last is not None and first > last:
        fail(f"--from {first} is after --to {last}", ExitCode.USAGE)
    with Progress(quiet=as_json) as progress:
        read = read_log(log)
        result = judge(read, every=every, first=first, last=last, progress=progress)
        executed = reexecute(read, lambda part: progress.fraction("executing again", part)) if again else None
    if as_json:
        told = result.to_dict()
        if executed is not None:
            told["reexec"] = {**executed.to_dict(), "same": executed.same}
            told["passed"] &= executed.same
        print_json(told)
    else:
        print(result)
        if executed is not None:
            print(f"\n{executed}")
    return ExitCode.OK if result.passed and (executed is None or executed.same) else ExitCode.FAILURE


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", autocompletion=files(".mcap"))],
    second: Annotated[Path, typer.Argument(metavar="B", autocompletion=files(".mcap"))],
    as_json: Json = False,
) -> int:
    """Compare two logs: the first tick and field that differ, and what it means for the force. Exit code 10 if any.

    Examples:

        hapticd diff before.mcap after.mcap
    """
    from bridge.log.diff import compare

    result = compare(first, second)
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)
    return ExitCode.OK if result.same else ExitCode.DIFFERENT


def plot(
    log: LogPath,
    output: Output = None,
    title: Annotated[str | None, typer.Option("--title", help="Heading of the picture.")] = None,
) -> int:
    """Draw force, penetration and tick time of a log as a PNG.

    Examples:

        hapticd plot out/demo.mcap -o out/demo-plot.png
    """
    from bridge.log.plot import plot_log

    path = output or log.with_suffix(".plot.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    print(plot_log(log, path, title=title))
    return ExitCode.OK


def snapshot(
    log: LogPath,
    at: Annotated[
        float | None, typer.Option("--at", "-t", min=0.0, help="Seconds from the first tick; the end when absent.")
    ] = None,
    output: Output = None,
    way: Annotated[float | None, typer.Option("--way", min=0.0, help="Draw the tip's last so many s only.")] = None,
    yaw: Annotated[float | None, typer.Option("--yaw", help="Look from this angle around the vertical, deg.")] = None,
    pitch: Annotated[float | None, typer.Option("--pitch", help="Look from so far above the horizon, deg.")] = None,
    size: Size = "1280x720",
) -> int:
    """Draw the scene at one moment of a log as a PNG: the way of the tip, contacts and force. Needs no display.

    Examples:

        hapticd snapshot out/demo.mcap --at 4.2

        hapticd snapshot out/demo.mcap --at 4.2 --yaw 120 --pitch 30 --size 1920x1080 -o view.png
    """
    from bridge.picture import draw_log

    width, height = pixels(size)
    yaw, pitch = (None if degrees is None else math.radians(degrees) for degrees in (yaw, pitch))
    print(draw_log(log, output, at=at, way=way, width=width, height=height, yaw=yaw, pitch=pitch))
    return ExitCode.OK
