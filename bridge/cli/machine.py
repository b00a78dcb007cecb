"""Commands on what a daemon will run with: files of the scene, the configuration's schema, the machine, the kernels."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bridge.cli.options import Json, above_zero, files
from bridge.cli.printing import print_json
from bridge.exit_codes import ExitCode

if TYPE_CHECKING:
    from bridge.doctor import Check


def inspect(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MESH|URDF|CONFIG",
            help="File, or `pybullet_data:FILE`.",
            autocompletion=files(".toml", ".obj", ".stl", ".dae", ".ply", ".glb", ".urdf", ".sdf", ".xml"),
        ),
    ],
    scale: Annotated[float, typer.Option("--scale", help="Of a mesh or robot: its units to m.")] = 1.0,
    density: Annotated[float, typer.Option("--density", help="For its mass, kg/m3.")] = 1000.0,
    resolve: Annotated[
        bool, typer.Option("--resolve", help="CONFIG: move the tool's start, where it is not free, as `run` would.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Report what a mesh, robot or scene holds, what is wrong with it, and what the daemon will do about each.

    Examples:

        hapticd inspect part.stl --scale 0.001

        hapticd inspect pybullet_data:duck.obj

        hapticd inspect configs/demo.toml --json

        hapticd inspect scene.toml --resolve
    """
    from bridge.scene.inspect import inspect_path

    above_zero("--scale", "scale", scale)
    above_zero("--density", "density", density)
    report = inspect_path(target, scale=scale, density=density, resolve=resolve)
    if as_json:
        print_json(report.to_dict())
    else:
        print("\n".join(report.lines()))
    return ExitCode.OK


def schema() -> int:
    """Print the JSON Schema of configuration files, for editors that check and complete TOML.

    Examples:

        hapticd schema > hapticd.schema.json
    """
    from bridge.config import json_schema

    print_json(json_schema())
    return ExitCode.OK


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
    from bridge.doctor import examine

    checks = examine(seconds)
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        _print_checks(checks)
    return ExitCode.FAILURE if any(check.status == "bad" for check in checks) else ExitCode.OK


def _print_checks(checks: "list[Check]") -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    width = max(len(check.name) for check in checks)
    colours = {"ok": "green", "warn": "yellow", "bad": "bold red"}
    for check in checks:
        console.print(Text(f"{check.status:<4}  ", colours[check.status]) + f"{check.name:<{width}}  {check.finding}")
        if check.advice:
            console.print(Text(f"{'':<{width + 8}}{check.advice}", "dim"))


def compile_kernels() -> int:
    """Compile the kernels into their on-disk cache now, so that nothing has to wait for it later.

    Examples:

        hapticd compile
    """
    from bridge import kernel_cache
    from bridge.daemon import warm_kernels
    from haptics import follower

    began = time.monotonic()
    warm_kernels()
    follower.warm_up()
    kernel_cache.remove_old()
    print(f"kernels are ready ({time.monotonic() - began:.1f} s)")
    return ExitCode.OK
