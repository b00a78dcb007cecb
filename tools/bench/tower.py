"""A tower of boxes with ever heavier tops, and a tall one: sink, creep, residual and time, beside other engines."""

import argparse
import gc
from typing import Any

import numpy as np

from rtcore.tables import DEGRADED_SOLVER
from tools.bench.common import Figure, Progress, Result, percentiles
from tools.bench.tower_peers import PEERS, Course, Tower, watch
from tools.scenes.bodies import EPS, FULL, Solid, World, block, floor

RATIOS = (1, 10, 100, 1000)
BOXES = 10
TALL = 100
EDGE = 0.1
FRICTION = 0.5
GRAVITY = 9.81
DT = 1e-3
SINK_MM = 0.02
"""Largest sink of the top of the tower with the heaviest top."""
STEP_US = 200.0
"""Largest median time of a step."""
CREEP = 1e-9
"""Largest horizontal speed at rest, m/s."""
SETTLE = 20
"""First steps, in which fronts are made; they belong to no time."""


def tower_world(masses: tuple[float, ...], budget: tuple[int, int, int, int] = FULL) -> World:
    """Boxes of these masses (kg) one on the other, each at the gap at rest."""
    gap = EPS[1]
    shape = block(EDGE, EDGE, EDGE)
    solids = [floor(FRICTION, 2.0)]
    for i, mass in enumerate(masses):
        place = (0.0, 0.0, gap + 0.5 * EDGE + i * (EDGE + gap))
        solids.append(Solid(shape, place, mass=mass, friction=FRICTION))
    return World(solids, (0.0, 0.0, -GRAVITY), budget=budget)


def stand(masses: tuple[float, ...], steps: int, awake: bool = False) -> tuple[dict[str, Any], Course, World]:
    """Let a tower stand: what became of it, its course and its world at the end; awake: it may not fall asleep."""
    world = tower_world(masses)
    residuals = np.zeros(steps)
    sweeps = np.zeros(steps, int)
    flags = 0
    top = len(masses)

    def note() -> np.ndarray:
        nonlocal flags
        if awake:
            world.state.velocities["quiet"] = 0
        if world.ticks > 0:
            residuals[world.ticks - 1] = world.report["body_residual"]
            sweeps[world.ticks - 1] = world.report["sweeps_used"]
            flags |= int(world.report["degraded"])
        return world.state.poses["position"][top].copy()

    half = steps // 2
    gc.collect()
    gc.disable()
    try:
        first = watch(world.step, note, half)
        before = world.positions
        second = watch(world.step, note, steps - half)
    finally:
        gc.enable()
    course = Course(np.concatenate([first.us, second.us]), np.concatenate([first.top, second.top[1:]]))
    span = DT * (steps - half)
    return (
        {
            "sink_mm": float(f"{1e3 * (course.top[0, 2] - course.top[-1, 2]):.3g}"),
            "step_us": percentiles(course.us[SETTLE:], 1),
            "creep_m_s": float(f"{np.abs(world.positions - before)[:, :2].max() / span:.2g}"),
            "residual": float(f"{residuals[SETTLE:].max():.2g}"),
            "sweeps": int(np.median(sweeps)),
            "solver_ended_early": bool(flags & DEGRADED_SOLVER),
            "degraded": flags,
        },
        course,
        world,
    )


def masses_of(boxes: int, ratio: float) -> tuple[float, ...]:
    """Boxes of 1 kg, the last one of so many kg."""
    return (1.0,) * (boxes - 1) + (float(ratio),)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=2.0, help="simulated time of each tower")
    parser.add_argument("--tall", type=int, default=TALL, help="boxes of the tall tower; 0: none")
    parser.add_argument("--no-peers", action="store_true", help="leave the other engines out")


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    steps = round(arguments.seconds / DT)
    stand(masses_of(2, 1), 2 * SETTLE)  # compiled before anything is timed
    figures: dict[str, Any] = {key: {} for key in ("sink_mm", "step_us", "creep_m_s", "residual", "sweeps")}
    figures["awake_us"] = {}
    peers: dict[str, Any] = {name: {} if module else "absent" for name, (module, _) in PEERS.items()}
    notes = []
    for ratio in RATIOS:
        masses = masses_of(BOXES, ratio)
        told, _, _ = stand(masses, steps)
        for key in figures:
            if key in told:
                figures[key][f"R{ratio}"] = told[key]
        figures["awake_us"][f"R{ratio}"] = stand(masses, steps // 2, awake=True)[0]["step_us"]
        if told["degraded"]:
            notes.append(f"R = {ratio}: some steps were degraded (bits {told['degraded']}).")
        if not arguments.no_peers:
            tower = Tower(EDGE, masses, FRICTION, GRAVITY)
            for name, (module, course) in PEERS.items():
                if module is not None:
                    peers[name][f"R{ratio}"] = course(tower, steps, DT).summary(DT)
        progress(f"R = {ratio} done")
    # fmt: off
    ok = (
        figures["sink_mm"][f"R{RATIOS[-1]}"] <= SINK_MM
        and max(figures["creep_m_s"].values()) <= CREEP
        and max(times["p50"] for times in figures["awake_us"].values()) < STEP_US
    )
    # fmt: on
    if arguments.tall > 0:
        told, course, _ = stand(masses_of(arguments.tall, 1), steps)
        figures["tall"] = {"boxes": arguments.tall, **told}
        progress(f"{arguments.tall} boxes done")
    return Result(
        figures=figures,
        ok=ok,
        peers={} if arguments.no_peers else peers,
        notes=[
            f"{BOXES} boxes of {EDGE:g} m and 1 kg, the top one of R kg, friction {FRICTION:g}, {arguments.seconds:g} "
            f"simulated s at {DT * 1e3:g} ms, contacts found between the meshes. Sink is that of the top box since the "
            "start; creep is the largest horizontal speed of any box over the second half. Targets: sink <= "
            f"{SINK_MM:g} mm at R = {RATIOS[-1]}, median step < {STEP_US:g} us, creep <= {CREEP:g} m/s.",
            "Times are of the call from Python, with the budget of a daemon. A tower at rest sleeps (step_us); "
            "awake_us, for which the target is, is of one kept from that. residual: the worst of a step, natural map. "
            "The tall tower has more contacts than that budget is for: the first tick does not find all.",
            "mujoco_tuned: solref .002, dmin = dmax = .9999, elliptic cones; the number behind pybullet is that of its "
            "iterations; rapier3d has contacts of 400 Hz. Their boxes are primitives with contact rules of their own.",
            *notes,
        ],
    )


FIGURE = Figure(
    name="tower",
    summary="Ten boxes with a top of up to 1000 times their mass, and a hundred boxes, beside other engines.",
    add_arguments=_arguments,
    run=run,
)
