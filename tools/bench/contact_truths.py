"""Scenes of moving bodies with an analytic course: value, truth, error and bar of each, through the daemon's step."""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

from tools.bench.common import Figure, Progress, Result
from tools.truths import friction, holding, impacts, moments, spinning
from tools.truths.truth import Truth

SCENES: dict[str, Callable[[], Truth]] = {
    "incline_creep": lambda: friction.incline_creep(60.0),
    "incline_slide": friction.incline_slide,
    "slip_to_roll_cylinder": friction.slip_to_roll_cylinder,
    "slip_to_roll_sphere": friction.slip_to_roll_sphere,
    "zeno": impacts.zeno,
    "cradle": impacts.cradle,
    "cradle_in_touch": impacts.cradle_in_touch,
    "cradle_in_a_box": impacts.cradle_in_a_box,
    "heavy_top": spinning.heavy_top,
    "sleeping_top": lambda: spinning.sleeping_top(1.1),
    "waking_top": lambda: spinning.sleeping_top(0.9),
    "dzhanibekov": spinning.dzhanibekov,
    "spin_on_a_patch": moments.spin_on_a_patch,
    "spin_on_a_point": moments.spin_on_a_point,
    "roll_out": moments.roll_out,
    "roll_on_slope_rests": lambda: moments.roll_on_slope(0.99),
    "roll_on_slope": lambda: moments.roll_on_slope(1.5),
    "twisted_tool_holds": lambda: moments.twisted_tool(0.99),
    "twisted_tool": lambda: moments.twisted_tool(4.0),
    "rolling_x": lambda: friction.rolling(4.0),
    "rolling_xy": lambda: friction.rolling(4.0, math.pi / 3.0),
    "bouncing": impacts.bouncing,
    "666": impacts.heap,
    "elastic_666": lambda: impacts.heap(restitution=1.0),
    "arch_stands": lambda: friction.arch(1.05),
    "arch_falls": lambda: friction.arch(0.95),
    "card_house_stands": lambda: friction.card_house(1.01),
    "card_house_falls": lambda: friction.card_house(0.99),
    "box_on_box": holding.box_on_box,
    "box_on_box_with_mass": lambda: holding.box_on_box(tool_mass=0.2),
}
"""By name, in the order in which they run."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenes", help="names of scenes with commas between them; all without")
    parser.add_argument("--list-scenes", action="store_true", help="name the scenes and run none")


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    names = arguments.scenes.split(",") if arguments.scenes else list(SCENES)
    unknown = [name for name in names if name not in SCENES]
    if unknown:
        raise SystemExit(f"there is no scene {unknown[0]!r}; there are {', '.join(SCENES)}")
    if arguments.list_scenes:
        return Result(figures={"scenes": names}, ok=True)
    scenes: dict[str, Any] = {}
    for name in names:
        began = time.perf_counter()
        truth = SCENES[name]()
        scenes[name] = {**truth.row(), "took_s": round(time.perf_counter() - began, 1)}
        progress(f"{name}: {'ok' if truth.ok else 'missed'}, error {truth.error:.2g}, bar {truth.bar:g}")
    failed = [name for name, row in scenes.items() if not row["ok"]]
    return Result(
        figures={"scenes": scenes, "failed": failed},
        ok=not failed,
        notes=[
            "Boxes, wheels and tops are triangle meshes, balls exact; steps 1 ms; the tool is parked far off except in "
            "box_on_box and twisted_tool. "
            "Rows have the ledger of their run: gain and drift of energy and momentum of the free bodies, worst "
            "residual of a solve.",
            "Wheels are polyhedra: each edge that one rolls over is a small impact and takes its energy.",
        ],
    )


FIGURE = Figure(
    name="contact_truths",
    summary="Moving bodies against analytic values: friction, impacts, rotation, an arch, a hand.",
    add_arguments=_arguments,
    run=run,
)
