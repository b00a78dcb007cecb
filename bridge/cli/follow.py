"""``hapticd follow``: be a robot at the other end of a daemon's link."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from bridge.cli.adapters import pairs
from bridge.cli.errors import fail
from bridge.cli.options import Json, running
from bridge.cli.printing import print_json
from bridge.exit_codes import ExitCode


class Method(StrEnum):
    """What keeps a link passive."""

    waves = "waves"
    tank = "tank"
    none = "none"


class Axis(StrEnum):
    """Along which the leader is reflected."""

    x = "x"
    y = "y"
    z = "z"


def follow(
    daemon: Annotated[
        str,
        typer.Argument(
            metavar="DAEMON",
            envvar="HAPTICD_NAME",
            help="Name of the daemon that leads, or its peer socket, tcp://HOST:PORT or ipc://PATH.",
            autocompletion=running,
        ),
    ] = "default",
    robot: Annotated[
        str, typer.Option("--robot", "-r", help="`simulated`, package.module:Class, or file.py:Class.")
    ] = "simulated",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="KEY=VALUE", help="An option of the robot; `--list` shows them."),
    ] = None,
    method: Annotated[
        Method | None, typer.Option("--method", help="Refuse a daemon whose link has another one.")
    ] = None,
    speed_max: Annotated[float, typer.Option("--speed-max", help="Of set-points, m/s.")] = 0.25,
    turn_max: Annotated[float, typer.Option("--turn-max", help="Of set-points, rad/s.")] = 1.0,
    box: Annotated[
        str | None,
        typer.Option("--box", help="Opposite corners of where set-points stay, robot's frame, m: X,Y,Z,X,Y,Z."),
    ] = None,
    scale: Annotated[float, typer.Option("--scale", help="Metres of the robot per metre of the hand.")] = 1.0,
    mirror: Annotated[Axis | None, typer.Option("--mirror", help="Reflect the hand along this axis.")] = None,
    align_speed: Annotated[
        float,
        typer.Option("--align-speed", help="m/s at which the robot goes to where the hand is; 0: it stays apart."),
    ] = 0.0,
    distance_max: Annotated[
        float, typer.Option("--distance-max", help="A robot farther behind is let go, m of the robot.")
    ] = 0.1,
    tank: Annotated[float, typer.Option("--tank", help="J wanted in the tank, or of the waves.")] = 0.1,
    stale_after: Annotated[
        float, typer.Option("--stale-after-ms", help="Silence of the daemon after which the robot comes to rest.")
    ] = 100.0,
    robot_timeout: Annotated[
        float,
        typer.Option("--robot-timeout-ms", help="Silence of the robot after which the daemon hears nothing more."),
    ] = 20.0,
    duration: Annotated[
        float | None,
        typer.Option("--duration", "-d", min=0.0, help="End so many s after the daemon's first message."),
    ] = None,
    list_options: Annotated[bool, typer.Option("--list", "-l", help="Only show the robot's options.")] = False,
    as_json: Json = False,
) -> int:
    """Be a robot that follows the hand at a daemon, and lets it feel what the robot touches.

    The daemon needs a `[link]` without `connect`; with `law = "position-force"`, `role = "leader"` its hand feels the
    robot's force sensor. Method and impedance are the daemon's. Your robot is a class with `read()`, `command()` and
    `stop()`: see the docstring of `bridge/follower.py`.

    Set-points begin where the robot is and keep within speed and box. When the daemon falls silent the robot is told to
    hold. When the robot does, or says nonsense, the daemon's force ramps down. Ctrl-C or SIGTERM brings the robot to
    rest first. A daemon on another machine needs keys: HAPTICD_SERVER_KEY and HAPTICD_CLIENT_KEYS name them.

    Exit codes: 0 ended as asked, 2 command line, 4 a wrong option, 8 no such daemon, 9 its link does not fit, 11 the
    robot is missing, failed, or said what cannot be.

    Examples:

        hapticd follow

        hapticd follow left --set wall=-0.01 --set wall_stiffness=800

        hapticd follow left --robot my_module:MyRobot --box=-0.2,-0.2,0,0.2,0.2,0.4 --speed-max 0.1

        hapticd follow tcp://127.0.0.1:5554 --duration 10 --json
    """
    from bridge.follower import FollowOptions, run_follower
    from bridge.follower_robots import find_robot, make_robot

    if list_options:
        import inspect

        for key, value in inspect.signature(find_robot(robot)).parameters.items():
            default = "" if value.default is inspect.Parameter.empty else value.default
            print(f"--set {key}={default}")
        return ExitCode.OK
    corners = _corners(box)
    options = FollowOptions(
        method=method.value if method is not None else None,
        speed_max=speed_max,
        turn_max=turn_max,
        lower=corners and corners[0],
        upper=corners and corners[1],
        scale=scale,
        mirror=mirror.value if mirror is not None else "",
        align_speed=align_speed,
        distance_max=distance_max,
        tank=tank,
        stale_after_ms=stale_after,
        robot_timeout_ms=robot_timeout,
    )
    one_line = sys.stdout.isatty()

    def say(line: str) -> None:
        print(f"\x1b[K{line}" if one_line else line, flush=True)

    def live(line: str) -> None:
        print(f"\x1b[K{line[:200]}", end="\r", flush=True) if one_line else print(line, flush=True)

    code, report = run_follower(
        make_robot(robot, pairs(settings)),
        options,
        daemon=daemon,
        duration_s=duration,
        say=(lambda line: None) if as_json else say,
        live=None if as_json else live,
    )
    if as_json:
        print_json(report.to_dict())
    elif code == ExitCode.OK:
        say(
            f"{report.ended}: {report.up_seconds:.1f} s of {report.seconds:.1f} s up ({report.method or 'no link'}), "
            f"peak force {report.force_peak:.2f} N, {report.sent} messages sent, {report.received} received, "
            f"{report.lost} lost, {report.late} periods late"
        )
    if code != ExitCode.OK:
        fail(report.ended, code)
    return code


def _corners(text: str | None) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if text is None:
        return None
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) != 6:
        fail(f"--box {text!r} is not six numbers with commas between them, such as 0,0,0,0.1,0.1,0.1", ExitCode.USAGE)
    return values[:3], values[3:]
