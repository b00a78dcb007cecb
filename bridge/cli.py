"""The command line: ``hapticd COMMAND``. Every command imports what it needs when it runs, so that help is quick."""

import functools
import json
import os
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from bridge.exit_codes import ExitCode

app = typer.Typer(
    name="hapticd",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A 1 kHz daemon through which people and robots feel simulated objects.",
    epilog="Start with `hapticd demo`. Shell completion: `hapticd --install-completion`. "
    "Exit codes: 0 done, 2 command line, 3 configuration, 4 input file, 5 already running, 8 not running, "
    "9 refused by the daemon, 10 a comparison differs; all of them stand in `bridge/exit_codes.py`.",
)

_CODES = {
    "ConfigError": ExitCode.CONFIG,
    "CardError": ExitCode.CONFIG,
    "SceneError": ExitCode.INPUT,
    "LogError": ExitCode.INPUT,
    "RecordingError": ExitCode.INPUT,
    "FileNotFoundError": ExitCode.INPUT,
    "IsADirectoryError": ExitCode.INPUT,
    "PermissionError": ExitCode.INPUT,
    "AlreadyRunning": ExitCode.ALREADY_RUNNING,
    "AddressInUse": ExitCode.ADDRESS_IN_USE,
    "NoDaemonError": ExitCode.NOT_RUNNING,
    "HapticdError": ExitCode.REFUSED,
    "NoDisplay": ExitCode.FAILURE,
    "RuntimeDirectoryError": ExitCode.FAILURE,
    "DemoError": ExitCode.FAILURE,
    "ValueError": ExitCode.INPUT,
    "OSError": ExitCode.FAILURE,
}
"""Exit code by the name of the error's class or of its nearest base: importing the classes here would cost time."""


def _code_of(error: BaseException) -> ExitCode | None:
    return next((_CODES[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _CODES), None)


def fail(text: str, code: ExitCode) -> None:
    """Print one sentence on stderr and leave with a code."""
    print(f"hapticd: {text}", file=sys.stderr)
    raise typer.Exit(int(code))


def command(*names: str, to: typer.Typer = app, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a command; what it returns is its exit code, and what it raises becomes one sentence and a code."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> None:
            try:
                code = function(*args, **kwargs)
            except typer.Exit:
                raise
            except KeyboardInterrupt:
                raise typer.Exit(130) from None
            except BrokenPipeError:  # whoever read the output has gone: nothing to say to anybody
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                raise typer.Exit(int(ExitCode.OK)) from None
            except Exception as error:
                if os.environ.get("HAPTICD_DEBUG"):
                    raise
                known = _code_of(error)
                if known is None:
                    what = f"{type(error).__name__}: {error}"
                    fail(f"internal error: {what}; HAPTICD_DEBUG=1 shows where", ExitCode.FAILURE)
                else:
                    text = getattr(error, "text", None) or _sentence(error)
                    fail(text, known)
            raise typer.Exit(int(code or ExitCode.OK))

        to.command(*names, **options)(guarded)
        return function

    return register


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    return str(error) or type(error).__name__


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=_plain, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, (set, tuple)):
        return list(value)
    return str(value)


# ---- completion ------------------------------------------------------------------------------------------------------


def _files(*endings: str) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        start = Path(incomplete)
        folder = start if incomplete.endswith("/") or incomplete == "" else start.parent
        found = []
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            text = str(path)
            if text.startswith(incomplete) and (path.is_dir() or text.endswith(endings)):
                found.append(text + "/" if path.is_dir() else text)
        return found

    return complete


def _running(incomplete: str) -> list[str]:
    from bridge.runtime import RuntimeDirectory

    return [d.name for d in RuntimeDirectory.all() if d.name.startswith(incomplete) and d.is_running()]


ConfigPath = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="Scene to run (TOML).", autocompletion=_files(".toml"))
]
LogPath = Annotated[Path, typer.Argument(metavar="LOG", help="Log of a run (MCAP).", autocompletion=_files(".mcap"))]
Name = Annotated[
    str,
    typer.Option(
        "--name", "-n", envvar="HAPTICD_NAME", help="Which daemon, when several run.", autocompletion=_running
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write; by default beside the log.")]


class Clocking(StrEnum):
    """Who gives the beat."""

    free = "free"
    triggered = "triggered"


class HandPath(StrEnum):
    """What a simulated hand does."""

    circle = "circle"
    tap = "tap"
    random = "random"


class Grip(StrEnum):
    """How a simulated hand holds the device."""

    held = "held"
    light = "light"
    off = "off"


RUN, LOGS, SCENE = "Run and feel", "Logs", "Scene and machine"

# ---- commands --------------------------------------------------------------------------------------------------------


@command(rich_help_panel=RUN)
def run(
    config: ConfigPath,
    duration: Annotated[float | None, typer.Option("--duration", "-d", min=0.0, help="Stop after so many s.")] = None,
    log: Annotated[Path | None, typer.Option("--log", "-l", help="Record every tick to this MCAP file.")] = None,
    name: Name = "default",
    view: Annotated[bool, typer.Option("--view", help="Open the PyBullet window as well.")] = False,
    clocking: Annotated[
        Clocking | None,
        typer.Option("--clocking", help="free: the daemon's clock; triggered: one tick per sample. Overrides CONFIG."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line about start and end.")] = False,
) -> int:
    """Run the daemon on a scene until it is stopped (Ctrl-C, `hapticd stop`) or the duration is over.

    Forces ramp down before it ends. Clients find it by its name.

    Examples:

        hapticd run configs/demo.toml

        hapticd run configs/demo.toml --duration 10 --log out/run.mcap

        hapticd run configs/demo.toml --name left --clocking triggered
    """
    from bridge.daemon import run_config

    return run_config(
        config,
        name=name,
        duration=duration,
        log=log,
        view=view,
        clocking=clocking.value if clocking else None,
        as_json=as_json,
    )


hand_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Be the hand at a running daemon: simulated, recorded, scripted, or the mouse.",
)
app.add_typer(hand_app, name="hand", rich_help_panel=RUN)

Duration = Annotated[
    float | None, typer.Option("--duration", "-d", min=0.0, help="Stop after so many s with forces on.")
]
Reanchor = Annotated[
    bool, typer.Option("--reanchor", help="Start wherever the tool is, by moving the map from device to scene.")
]
Point = Annotated[
    str | None,
    typer.Option("--point", help="Where on the surface, scene m: X,Y,Z. By default the first point below the tool."),
]
Normal = Annotated[str, typer.Option("--normal", help="Outward normal there: X,Y,Z.")]
Depth = Annotated[float, typer.Option("--depth", help="How deep to press, scene m.")]


def _vector(option: str, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) != 3:
        fail(f"{option} {text!r} is not three numbers with commas between them, such as 0,0,0.1", ExitCode.USAGE)
    return values


def _feel(kind: str, name: str, duration: float | None, reanchor: bool, as_json: bool, **options: Any) -> int:
    from bridge.hands import run_hand

    report = run_hand(
        kind,
        daemon=name,
        client_name=f"hand {kind}",
        duration_s=duration,
        reanchor=reanchor,
        on_line=None if as_json else lambda line: print(line, flush=True),
        **options,
    )
    if as_json:
        _print_json(report.to_dict())
    else:
        answer = f", answer p50 {report.answer_us['p50']:.0f} us" if report.answer_us else ""
        print(
            f"{report.ended}: {report.seconds:.1f} s with forces on, in contact {100 * report.contact_fraction:.0f} %, "
            f"peak {report.force_peak:.2f} N{answer}"
        )
    return ExitCode.OK if report.ok else ExitCode.REFUSED


@command(to=hand_app)
def sim(
    path: Annotated[HandPath, typer.Option("--path", "-p", help="What the hand does.")] = HandPath.circle,
    name: Name = "default",
    duration: Duration = None,
    point: Point = None,
    normal: Normal = "0,0,1",
    depth: Depth = 0.005,
    radius: Annotated[float, typer.Option("--radius", help="circle, random: radius, scene m.")] = 0.01,
    period: Annotated[float, typer.Option("--period", help="circle: s per turn.")] = 4.0,
    rate: Annotated[float, typer.Option("--rate", help="tap: taps per s.")] = 2.0,
    seed: Annotated[int, typer.Option("--seed", help="random: which motion.")] = 0,
    grip: Annotated[Grip, typer.Option("--grip", help="How the device is held.")] = Grip.held,
    reanchor: Reanchor = False,
    as_json: Json = False,
) -> int:
    """A simulated arm that holds a simulated device, presses, drags, taps or wanders, and yields to the force.

    Examples:

        hapticd hand sim

        hapticd hand sim --path tap --rate 3 --grip light --duration 10
    """
    return _feel(
        "sim",
        name,
        duration,
        reanchor,
        as_json,
        path=path.value,
        point=_vector("--point", point),
        normal=_vector("--normal", normal),
        depth=depth,
        radius=radius,
        period=period,
        rate=rate,
        seed=seed,
        grip=grip.value,
    )


@command(to=hand_app)
def recorded(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="ROS 1 or 2 bag, MCAP, CSV, or a log of hapticd.",
            autocompletion=_files(".bag", ".mcap", ".csv", ".db3"),
        ),
    ],
    name: Name = "default",
    duration: Duration = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Which channel, when the file has several.")] = None,
    body: Annotated[str | None, typer.Option("--body", help="Lay the motion over this body.")] = None,
    point: Point = None,
    normal: Normal = "0,0,1",
    depth: Depth = 0.005,
    extent: Annotated[float | None, typer.Option("--extent", help="How wide the motion becomes, scene m.")] = None,
    flat: Annotated[bool, typer.Option("--flat", help="Turn the motion's own plane into the surface.")] = False,
    speed: Annotated[float, typer.Option("--speed", min=0.001, help="1 is as recorded.")] = 1.0,
    loop: Annotated[bool, typer.Option("--loop", help="There and back until stopped.")] = False,
    device_frame: Annotated[
        bool, typer.Option("--device-frame", help="Take the poses as they stand, as the device's own.")
    ] = False,
    reanchor: Reanchor = False,
    as_json: Json = False,
) -> int:
    """A recorded motion, scaled and laid into the scene so that it presses into a surface.

    Examples:

        hapticd hand recorded motion.bag --body duck --depth 0.004

        hapticd hand recorded motion.csv --point 0,0,0.1 --extent 0.05 --loop
    """
    return _feel(
        "recorded",
        name,
        duration,
        reanchor,
        as_json,
        recording=file,
        topic=topic,
        body=body,
        point=_vector("--point", point),
        normal=_vector("--normal", normal),
        depth=depth,
        extent=extent,
        flat=flat,
        speed=speed,
        loop=loop,
        device_frame=device_frame,
    )


@command(to=hand_app)
def scripted(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="TOML with [[step]] tables, or CSV.", autocompletion=_files(".toml", ".csv")
        ),
    ],
    name: Name = "default",
    duration: Duration = None,
    loop: Annotated[bool, typer.Option("--loop", help="There and back until stopped.")] = False,
    device_frame: Annotated[
        bool, typer.Option("--device-frame", help="Way points are poses of the device, not of the tip in the scene.")
    ] = False,
    reanchor: Reanchor = False,
    as_json: Json = False,
) -> int:
    """Way points from a file, joined by smooth reaches.

    A step in TOML: `[[step]]`, `to = [0.0, 0.0, 0.1]`, `seconds = 1.5`.

    Examples:

        hapticd hand scripted press.toml

        hapticd hand scripted press.toml --loop --duration 60
    """
    return _feel("scripted", name, duration, reanchor, as_json, script=file, loop=loop, device_frame=device_frame)


@command(to=hand_app)
def mouse(name: Name = "default", duration: Duration = None) -> int:
    """The mouse in the PyBullet window, with three degrees of freedom.

    Drag with the left button; wheel, or drag with the right button, for depth; Ctrl and drag turns the camera.

    Examples:

        hapticd hand mouse
    """
    from bridge.mouse_hand import run_mouse

    run_mouse(name, duration)
    return ExitCode.OK


@command(rich_help_panel=RUN)
def view(
    name: Name = "default",
    log: Annotated[
        Path | None, typer.Option("--log", "-l", help="Play this log instead.", autocompletion=_files(".mcap"))
    ] = None,
    speed: Annotated[float, typer.Option("--speed", min=0.001, help="Of a log; 1 is real time.")] = 1.0,
) -> int:
    """Open the PyBullet window on a running daemon, or on a log.

    In a log, space pauses and the arrow keys move by a second. Without a display, see `snapshot` and `plot`.

    Examples:

        hapticd view

        hapticd view --log out/demo.mcap --speed 0.2
    """
    from bridge.view import main as open_window

    arguments = ["--name", name, "--speed", str(speed)]
    return open_window([*arguments, "--log", str(log)] if log else arguments)


@command(rich_help_panel=LOGS)
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
        from bridge.moment import moment

        dt = float(player.log.settings[0]["dt"])
        shown = -1

        def show(records: Any) -> None:
            nonlocal shown
            if int(player.position_s * 4) != shown:
                shown = int(player.position_s * 4)
                print(moment(records[-1], dt).text, flush=True)

        player.play(show)
    return ExitCode.OK


@command(rich_help_panel=LOGS)
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
        _print_json({**result.to_dict(), "same": result.same})
    else:
        print(result)
    return ExitCode.OK if result.same else ExitCode.DIFFERENT


@command(rich_help_panel=LOGS)
def diff(
    first: Annotated[Path, typer.Argument(metavar="A", autocompletion=_files(".mcap"))],
    second: Annotated[Path, typer.Argument(metavar="B", autocompletion=_files(".mcap"))],
    as_json: Json = False,
) -> int:
    """Compare two logs: the first tick and field that differ, and what it means for the force. Exit code 10 if any.

    Examples:

        hapticd diff before.mcap after.mcap
    """
    from bridge.log.diff import compare

    result = compare(first, second)
    if as_json:
        _print_json(result.to_dict())
    else:
        print(result)
    return ExitCode.OK if result.same else ExitCode.DIFFERENT


@command(rich_help_panel=LOGS)
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


@command(rich_help_panel=LOGS)
def snapshot(
    log: LogPath,
    at: Annotated[
        float | None, typer.Option("--at", "-t", min=0.0, help="Seconds from the first tick; the end when absent.")
    ] = None,
    output: Output = None,
    way: Annotated[float | None, typer.Option("--way", min=0.0, help="Draw the tip's last so many s only.")] = None,
    yaw: Annotated[float | None, typer.Option("--yaw", help="Look from this angle around the vertical, deg.")] = None,
    pitch: Annotated[float | None, typer.Option("--pitch", help="Look from so far above the horizon, deg.")] = None,
    size: Annotated[str, typer.Option("--size", help="Width x height, pixels.")] = "1280x720",
) -> int:
    """Draw the scene at one moment of a log as a PNG: the way of the tip, contacts and force. Needs no display.

    Examples:

        hapticd snapshot out/demo.mcap --at 4.2

        hapticd snapshot out/demo.mcap --at 4.2 --yaw 120 --pitch 30 --size 1920x1080 -o view.png
    """
    import math

    from bridge.picture import draw_log

    width, _, height = size.partition("x")
    if not (width.isdigit() and height.isdigit() and 64 <= int(width) <= 8192 and 64 <= int(height) <= 8192):
        fail(f"--size {size!r} is not a width and a height from 64 to 8192 pixels, such as 1280x720", ExitCode.USAGE)
    print(
        draw_log(
            log,
            output,
            at=at,
            way=way,
            width=int(width),
            height=int(height),
            yaw=None if yaw is None else math.radians(yaw),
            pitch=None if pitch is None else math.radians(pitch),
        )
    )
    return ExitCode.OK


@command(rich_help_panel=SCENE)
def inspect(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MESH|URDF|CONFIG",
            help="File, or `pybullet_data:FILE`.",
            autocompletion=_files(".toml", ".obj", ".stl", ".dae", ".ply", ".glb", ".urdf", ".sdf", ".xml"),
        ),
    ],
    scale: Annotated[float, typer.Option("--scale", help="Of a mesh or robot: its units to m.")] = 1.0,
    density: Annotated[float, typer.Option("--density", help="For its mass, kg/m3.")] = 1000.0,
    as_json: Json = False,
) -> int:
    """Report what a mesh, robot or scene holds, what is wrong with it, and what the daemon will do about each.

    Examples:

        hapticd inspect part.stl --scale 0.001

        hapticd inspect pybullet_data:duck.obj

        hapticd inspect configs/demo.toml --json
    """
    from bridge.scene.inspect import inspect_path

    report = inspect_path(target, scale=scale, density=density)
    if as_json:
        _print_json(report.to_dict())
    else:
        print("\n".join(report.lines()))
    return ExitCode.OK


@command(rich_help_panel=SCENE)
def schema() -> int:
    """Print the JSON Schema of configuration files, for editors that check and complete TOML.

    Examples:

        hapticd schema > hapticd.schema.json
    """
    from bridge.config import json_schema

    _print_json(json_schema())
    return ExitCode.OK


@command(rich_help_panel=SCENE)
def doctor(
    seconds: Annotated[
        float, typer.Option("--seconds", "-s", min=0.1, max=60.0, help="Measure lateness so long.")
    ] = 2.0,
    as_json: Json = False,
) -> int:
    """Look at what makes ticks late or a start fail on this machine, and say what to do about each.

    Exit code 1 when something will not run or will be felt.

    Examples:

        hapticd doctor

        hapticd doctor --json
    """
    from dataclasses import asdict

    from bridge.doctor import examine

    checks = examine(seconds)
    if as_json:
        _print_json([asdict(check) for check in checks])
    else:
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=True)
        width = max(len(check.name) for check in checks)
        colours = {"ok": "green", "warn": "yellow", "bad": "bold red"}
        for check in checks:
            console.print(
                Text(f"{check.status:<4}  ", colours[check.status]) + f"{check.name:<{width}}  {check.finding}"
            )
            if check.advice:
                console.print(Text(f"{'':<{width + 8}}{check.advice}", "dim"))
    return ExitCode.FAILURE if any(check.status == "bad" for check in checks) else ExitCode.OK


@command("compile", rich_help_panel=SCENE)
def compile_kernels() -> int:
    """Compile the kernels into their on-disk cache now, so that nothing has to wait for it later.

    Examples:

        hapticd compile
    """
    import time

    from bridge import kernel_cache
    from bridge.daemon import warm_kernels

    began = time.monotonic()
    warm_kernels()
    kernel_cache.remove_old()
    print(f"kernels are ready ({time.monotonic() - began:.1f} s)")
    return ExitCode.OK


@command(rich_help_panel=RUN)
def status(name: Name = "default", as_json: Json = False) -> int:
    """Tell what a running daemon does now. Exit code 8 when none runs.

    Examples:

        hapticd status

        hapticd status --name left --json
    """
    from bridge.client import Client

    with Client(name, "status") as client:
        answer = {k: v for k, v in client.status().items() if k not in ("v", "id", "ok")}
    if as_json:
        _print_json({"name": name, **answer})
    else:
        _show({"daemon": name, **answer})
    return ExitCode.OK


def _show(values: dict[str, Any], indent: str = "") -> None:
    """A map for people: one entry a line, maps inside indented below their names."""
    width = max((len(key) for key in values), default=0)
    for key, value in values.items():
        if isinstance(value, dict):
            print(f"{indent}{key.replace('_', ' ')}")
            _show(value, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            print(f"{indent}{key.replace('_', ' ')}")
            for entry in value:
                print(f"{indent}  {_human(entry)}")
        else:
            print(f"{indent}{key.replace('_', ' '):<{width}}  {_human(value)}")


def _human(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_human(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return " ".join(_human(v) for v in value)
    return str(value)


@command(rich_help_panel=RUN)
def stop(
    name: Name = "default",
    forces: Annotated[
        bool, typer.Option("--forces", help="Only ramp forces down; the daemon goes on, in FAULT.")
    ] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Wait so many s for the daemon to end.")] = 10.0,
) -> int:
    """Ramp forces down and end a running daemon. Anybody may.

    Examples:

        hapticd stop

        hapticd stop --forces      (then `hapticd reset`)
    """
    import time

    from bridge.client import Client
    from bridge.runtime import RuntimeDirectory

    with Client(name, "stop") as client:
        if forces:
            client.stop()
            print(f"forces of {name} are off; `hapticd reset` allows them again")
            return ExitCode.OK
        client.shutdown()
    runtime = RuntimeDirectory(name)
    deadline = time.monotonic() + timeout
    while runtime.is_running():
        if time.monotonic() > deadline:
            fail(f"{name} was told to stop but still runs after {timeout:g} s", ExitCode.FAILURE)
        time.sleep(0.02)
    print(f"{name} has stopped")
    return ExitCode.OK


@command(rich_help_panel=RUN)
def reset(name: Name = "default") -> int:
    """Leave FAULT after a stop or a fault, so that forces may be asked for again.

    Examples:

        hapticd reset
    """
    from bridge.client import Client

    with Client(name, "reset") as client:
        client.reset()
    print(f"{name} accepts forces again")
    return ExitCode.OK


@command(rich_help_panel=RUN)
def demo(
    seconds: Annotated[float, typer.Option("--seconds", "-s", min=2.0, help="How long the hand is at it.")] = 10.0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for log and pictures.")] = Path("out"),
    window: Annotated[bool, typer.Option("--window/--no-window", help="Open the PyBullet window if possible.")] = True,
    as_json: Json = False,
) -> int:
    """See it work: a simulated hand presses and drags a probe over a real mesh at 1 kHz. No device needed.

    Leaves a log, a picture of the scene and a plot, executes the log again, and prints what was measured.

    Examples:

        hapticd demo

        hapticd demo --seconds 30 --no-window
    """
    from bridge.demo import run_demo

    return run_demo(seconds=seconds, out=out, window=window, as_json=as_json)


def main() -> None:
    """Entry point of ``hapticd``."""
    app(prog_name="hapticd")


if __name__ == "__main__":
    main()
