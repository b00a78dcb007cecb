"""``hapticd hand ...``: be the hand at a running daemon."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from bridge.cli.errors import fail
from bridge.cli.options import Json, Name, above_zero, files
from bridge.cli.printing import print_json
from bridge.exit_codes import ExitCode


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
Loop = Annotated[bool, typer.Option("--loop", help="There and back until stopped.")]


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
    what = {"path": path.value, "radius": radius, "period": period, "rate": rate, "seed": seed, "grip": grip.value}
    return _feel("sim", {**what, **_place(point, normal, depth)}, name, duration, reanchor, as_json)


def recorded(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="ROS 1 or 2 bag, MCAP, CSV, or a log of hapticd.",
            autocompletion=files(".bag", ".mcap", ".csv", ".db3"),
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
    loop: Loop = False,
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
    what = {"recording": file, "topic": topic, "speed": speed, "loop": loop, "device_frame": device_frame}
    where = {"body": body, "extent": extent, "flat": flat, **_place(point, normal, depth)}
    return _feel("recorded", {**what, **where}, name, duration, reanchor, as_json)


def scripted(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="TOML with [[step]] tables, or CSV.", autocompletion=files(".toml", ".csv")
        ),
    ],
    name: Name = "default",
    duration: Duration = None,
    loop: Loop = False,
    device_frame: Annotated[
        bool, typer.Option("--device-frame", help="Way points are poses of the device, not of the tip in the scene.")
    ] = False,
    reanchor: Reanchor = False,
    as_json: Json = False,
) -> int:
    """Way points from a file, joined by smooth reaches.

    A step in TOML: `[[step]]`, `to = [0.0, 0.0, 0.1]`, `seconds = 1.5`. With a table `[hand]` in the file the
    hand errs and feels its way: steps may end at a force (`until_force`) or go on from there (`by`); see
    configs/scripts.

    Examples:

        hapticd hand scripted press.toml

        hapticd hand scripted press.toml --loop --duration 60
    """
    what = {"script": file, "loop": loop, "device_frame": device_frame}
    return _feel("scripted", what, name, duration, reanchor, as_json)


def mouse(name: Name = "default", duration: Duration = None) -> int:
    """The mouse in the PyBullet window, with three degrees of freedom.

    Drag with the left button; wheel, or drag with the right button, for depth; Ctrl and drag turns the camera.

    Examples:

        hapticd hand mouse
    """
    from bridge.mouse_hand import run_mouse

    run_mouse(name, duration)
    return ExitCode.OK


def _place(point: str | None, normal: str, depth: float) -> dict[str, Any]:
    """The options that say where on a surface a hand works."""
    where = None if point is None else _vector("--point", point)
    up = _vector("--normal", normal)
    if not any(up):
        fail(f"--normal {normal!r} must have a length above 0, such as 0,0,1", ExitCode.USAGE)
    size = max(map(abs, up))  # first by the largest, so that no square is too large or too small for a number
    up = tuple(value / size for value in up)
    return {"point": where, "normal": up, "depth": above_zero("--depth", "depth", depth)}


def _vector(option: str, text: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) != 3:
        fail(f"{option} {text!r} is not three numbers with commas between them, such as 0,0,0.1", ExitCode.USAGE)
    if not all(map(math.isfinite, values)):
        fail(f"{option} {text!r} is not finite", ExitCode.USAGE)
    return values


def _feel(
    kind: str, motion: dict[str, Any], name: str, duration: float | None, reanchor: bool, as_json: bool
) -> ExitCode:
    """Run a hand, and tell how it went."""
    from bridge.hands import run_hand

    report = run_hand(
        kind,
        daemon=name,
        client_name=f"hand {kind}",
        duration_s=duration,
        reanchor=reanchor,
        on_line=None if as_json else lambda line: print(line, flush=True),
        **motion,
    )
    if as_json:
        print_json(report.to_dict())
    else:
        answer = f", answer p50 {report.answer_us['p50']:.0f} us" if report.answer_us else ""
        print(
            f"{report.ended}: {report.seconds:.1f} s with forces on, in contact {100 * report.contact_fraction:.0f} %, "
            f"peak {report.force_peak:.2f} N{answer}"
        )
    return ExitCode.OK if report.ok else ExitCode.REFUSED
