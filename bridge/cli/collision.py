"""``hapticd ccd``: ask the continuous collision test about two meshes and a motion."""

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridge.cli.errors import fail
from bridge.cli.options import Json, Size, check_output, files, pixels
from bridge.cli.printing import print_json
from bridge.exit_codes import ExitCode

if TYPE_CHECKING:
    from bridge.scene.frames import Pose


class Motion(StrEnum):
    """Law of the screw from one pose to the other."""

    screw = "screw"
    tan_half = "tan-half"
    algebraic = "algebraic"


class Overlap(StrEnum):
    """How boxes are tested."""

    inflated = "inflated"
    interval = "interval"
    sphere = "sphere"
    start = "start"
    end = "end"


class Elementary(StrEnum):
    """How two features are tested."""

    advance = "advance"
    cubic = "cubic"
    interval = "interval"


SHAPE_HELP = (
    "Mesh file, `pybullet_data:FILE`, or primitive with sizes in m: box:X,Y,Z, sphere:R, cylinder:R,L, capsule:R,L, "
    "plane:X,Y."
)
Scale = "Multiply the lengths of {} by this."


def ccd(
    first: Annotated[
        str, typer.Argument(metavar="A", help=SHAPE_HELP, autocompletion=files(".obj", ".stl", ".dae", ".ply", ".glb"))
    ],
    second: Annotated[
        str,
        typer.Argument(
            metavar="B", help="The same; this one moves.", autocompletion=files(".obj", ".stl", ".dae", ".ply", ".glb")
        ),
    ],
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="POSE",
            help="Where B begins, in A's frame: x,y,z in m; x,y,z,rx,ry,rz with a rotation vector in degrees; or "
            "x,y,z,qx,qy,qz,qw.",
        ),
    ],
    end: Annotated[str, typer.Option("--to", metavar="POSE", help="Where B would end, written the same way.")],
    separation: Annotated[
        float, typer.Option("--separation", "-s", min=0.0, help="Distance that counts as contact, m.")
    ] = 0.0,
    motion: Annotated[
        Motion,
        typer.Option("--motion", help="screw: constant rates; tan-half and algebraic: the same screw at other rates."),
    ] = Motion.screw,
    overlap: Annotated[
        Overlap,
        typer.Option("--overlap", help="Test of boxes. start and end look at one end only and miss contacts."),
    ] = Overlap.inflated,
    elementary: Annotated[
        Elementary, typer.Option("--elementary", help="Test of two features. cubic is for --motion tan-half.")
    ] = Elementary.advance,
    cull: Annotated[
        bool,
        typer.Option("--cull/--no-cull", help="Leave out what recedes; A and B must begin apart."),
    ] = False,
    units: Annotated[int, typer.Option("--units", min=1, max=2_000_000_000, help="Work allowed.")] = 10_000_000,
    scale_a: Annotated[float, typer.Option("--scale-a", help=Scale.format("A"))] = 1.0,
    scale_b: Annotated[float, typer.Option("--scale-b", help=Scale.format("B"))] = 1.0,
    png: Annotated[
        Path | None,
        typer.Option("--png", help="Draw the poses and the contact into this PNG; no display needed."),
    ] = None,
    yaw: Annotated[
        float | None, typer.Option("--yaw", help="PNG: look from this side, deg around the vertical.")
    ] = None,
    pitch: Annotated[
        float | None, typer.Option("--pitch", help="PNG: look from so far above the horizon, deg.")
    ] = None,
    size: Size = "1280x720",
    as_json: Json = False,
) -> int:
    """Find when two meshes first touch while B moves from one pose to another, and what that takes.

    A stands still in its own frame; B goes along a screw, the motion that joins any two poses. Printed are the time of
    the first contact (0 to 1), B's pose then, the two features, point, normal and gap, and the work done by kind. The
    motion is proven free before that time, however thin the parts and however fast B is.

    Other box and elementary tests than the usual ones are compiled anew each time, which takes a minute.

    Exit codes: 0 answered (contact or none), 1 the work allowed ran out first, 2 a pose or option that cannot be read,
    4 a mesh or size that cannot be used.

    Examples:

        hapticd ccd box:0.1,0.1,0.1 box:0.1,0.1,0.1 --from 0.3,0,0 --to -0.3,0,0

        hapticd ccd pybullet_data:duck.obj sphere:0.01 --scale-a 0.1 --from 0,0.08,0.3 --to 0,0.08,-0.3 --png hit.png

        hapticd ccd part.stl tool.stl --scale-a 0.001 --scale-b 0.001 --from 0,0,0.2 --to 0,0.05,0,0,90,0 --json
    """
    from bridge.ccd import first_time, lines, load_shape, save_picture

    width, height = pixels(size)
    begin, finish = _pose("--from", start), _pose("--to", end)
    if png is not None:
        check_output("--png", png, folders_are_made=True)
    first_name, first_mesh = load_shape(first, scale_a)
    second_name, second_mesh = load_shape(second, scale_b)
    # fmt: off
    answer = first_time(
        first_mesh, second_mesh, begin, finish, separation=separation, motion=motion.value, overlap=overlap.value,
        elementary=elementary.value, units=units, cull=cull,
    )
    # fmt: on
    if as_json:
        print_json({"first": first, "second": second, "separation": separation, **answer.to_dict()})
    else:
        print("\n".join(lines(first_name, second_name, separation, answer)))
    if png is not None:
        view = {"yaw": yaw, "pitch": pitch}
        angles = {key: None if degrees is None else math.radians(degrees) for key, degrees in view.items()}
        # fmt: off
        path = save_picture(
            png, (first_name, second_name), (first_mesh, second_mesh), begin, finish, motion.value, answer,
            width=width, height=height, **angles,
        )
        # fmt: on
        if not as_json:
            print(f"  picture           {path}")
    return ExitCode.FAILURE if answer.truncated else ExitCode.OK


def _pose(option: str, text: str) -> "Pose":
    from bridge.ccd import parse_pose

    try:
        return parse_pose(text)
    except ValueError as error:
        fail(f"{option} {error}", ExitCode.USAGE)
