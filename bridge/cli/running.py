"""Commands around a running daemon: start it, look at it, stop it; and the demonstration."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.errors import fail
from bridge.cli.options import Json, Name, files
from bridge.cli.printing import print_json, print_map
from bridge.exit_codes import ExitCode
from bridge.tasks import SCENES, TELEOP

ConfigPath = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="Scene to run (TOML).", autocompletion=files(".toml"))
]


class Clocking(StrEnum):
    """Who gives the beat."""

    free = "free"
    triggered = "triggered"


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
    resolve: Annotated[
        bool,
        typer.Option("--resolve", help="Move the tool's start, where it is not free, by the shortest way found."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line about start and end.")] = False,
) -> int:
    """Run the daemon on a scene until it is stopped (Ctrl-C, `hapticd stop`) or the duration is over.

    Forces ramp down before it ends. Clients find it by its name.

    Examples:

        hapticd run configs/demo.toml

        hapticd run configs/demo.toml --duration 10 --log out/run.mcap

        hapticd run configs/demo.toml --name left --clocking triggered

        hapticd run scene.toml --resolve
    """
    from bridge.daemon import run_config
    from bridge.runtime import RuntimeDirectory, RuntimeDirectoryError

    try:
        RuntimeDirectory(name)
    except RuntimeDirectoryError as error:  # told before scene and kernels are prepared, which takes a while
        fail(str(error), ExitCode.USAGE)
    return run_config(
        config,
        name=name,
        duration=duration,
        log=log,
        view=view,
        clocking=clocking.value if clocking else None,
        resolve=resolve,
        as_json=as_json,
    )


def view(
    name: Name = "default",
    log: Annotated[
        Path | None, typer.Option("--log", "-l", help="Play this log instead.", autocompletion=files(".mcap"))
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
        print_json({"name": name, **answer})
    else:
        print_map({"daemon": name, **answer})
    return ExitCode.OK


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
    from bridge.client import Client

    with Client(name, "stop") as client:
        if forces:
            client.stop()
            print(f"forces of {name} are off; `hapticd reset` allows them again")
            return ExitCode.OK
        client.shutdown()
    _wait_for_end(name, timeout)
    print(f"{name} has stopped")
    return ExitCode.OK


def _wait_for_end(name: str, timeout: float) -> None:
    from bridge.runtime import RuntimeDirectory

    runtime = RuntimeDirectory(name)
    deadline = time.monotonic() + timeout
    while runtime.is_running():
        if time.monotonic() > deadline:
            fail(f"{name} was told to stop but still runs after {timeout:g} s", ExitCode.FAILURE)
        time.sleep(0.02)


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


def demo(
    scene: Annotated[
        str | None,
        typer.Option(
            "--scene",
            metavar="NAME",
            help=f"Do a task instead, or show two hands on a link: {', '.join(SCENES)}.",
            autocompletion=lambda incomplete: [name for name in SCENES if name.startswith(incomplete)],
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Only tell which scenes there are.")] = False,
    seconds: Annotated[
        float, typer.Option("--seconds", "-s", min=2.0, help="How long the hand is at it (without --scene).")
    ] = 10.0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for log and pictures.")] = Path("out"),
    window: Annotated[bool, typer.Option("--window/--no-window", help="Open the PyBullet window if possible.")] = True,
    as_json: Json = False,
) -> int:
    """See it work: a simulated hand presses and drags a probe over a real mesh at 1 kHz. No device needed.

    Leaves a log, a picture of the scene and a plot, executes the log again, and prints what was measured. With a scene,
    a hand does a task with a whole tool; the exit code is 0 only if the task was done, nothing penetrated, no force
    stepped above its bound, and the log gave the same bits again. The scene teleop has two hands, each at a daemon of
    its own, and a link that delays and loses; its exit code is 0 only if they came to rest and the link gave no energy.

    Examples:

        hapticd demo

        hapticd demo --seconds 30 --no-window

        hapticd demo --list

        hapticd demo --scene peg

        hapticd demo --scene teleop
    """
    if listed:
        for name, what in SCENES.items():
            print(f"{name:<10} {what}")
        return ExitCode.OK
    if scene is not None and scene not in SCENES:
        fail(f"--scene {scene!r}: there is no such scene; there are: {', '.join(SCENES)}", ExitCode.USAGE)
    if scene == TELEOP:
        from bridge.demo_link import run_link_demo

        return run_link_demo(out=out, as_json=as_json)
    from bridge.demo import run_demo

    return run_demo(task=scene, seconds=seconds, out=out, window=window, as_json=as_json)
