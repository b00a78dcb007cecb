"""Two simulated devices through a delayed, lossy link: tracking, energy and stability by law, method and link."""

import argparse
from typing import Any

import numpy as np

from haptics.hands import HELD, LIGHT, WayPoints
from tools.bench.common import Figure, Progress, Result
from tools.two_ends import REST, Channel, Course, End, Pair, floor, hand_on

STIFFNESS, DAMPING, IMPEDANCE, TANK = 400.0, 2.0, 10.0, 0.1
DELAYS = (0, 20, 50, 100, 200)
LOSSES = (0.0, 0.05, 0.2)
WAYS = (
    ("position-position", "none"),
    ("position-position", "waves"),
    ("position-position", "tank"),
    ("position-force", "tank"),
    ("four-channel", "tank"),
)
HEIGHT = 0.05
REACH, DEPTH = 0.03, 0.02
SECONDS = 9.0
AT_REST = 0.3
"""s at the end in which nothing may move."""
MOVES = 2e-3
"""m: by more than that, and hands are not at rest."""
FRICTION = 0.1
"""N of the device's dry friction: within it a hand rests anywhere."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--delays", default=",".join(map(str, DELAYS)), help="ms one way, with commas between them")
    parser.add_argument("--losses", default=",".join(f"{100 * x:g}" for x in LOSSES), help="per cent of messages lost")


def pair(law: str, method: str, scene: str, delay: int, loss: float, grip: Any) -> Pair:
    """Who leads is held firmly; the other device is held by ``grip``, over a floor in the scene "floor"."""
    begin = (0.0, 0.0, HEIGHT)
    to = (REACH, 0.0, HEIGHT) if scene == "free" else (0.0, 0.0, HEIGHT - DEPTH)
    moving = WayPoints([1.2, 1.9, 2.6, 3.3, 4.0], [begin, to, begin, begin, to])
    resting = WayPoints([0.0, 1.0], [begin, begin])
    below = HEIGHT - REST - 0.005 if scene == "floor" else -1.0
    ends = []
    for k, (path, held) in enumerate(((moving, HELD), (resting, grip))):
        role = {"role": ("leader", "follower")[k]} if law == "position-force" else {}
        ends.append(
            End(
                hand_on(path, held),
                11 + k,
                model=floor(below if k else -1.0),
                law=law,
                method=method,
                stiffness=STIFFNESS,
                damping=DAMPING,
                impedance=IMPEDANCE,
                tank=TANK,
                distance_max=0.5,
                **role,
            )
        )
    jitter = delay // 10
    return Pair(ends[0], ends[1], (Channel(delay, jitter, loss, 1), Channel(delay, jitter, loss, 2)))


def error_at_rest(course: Course, law: str, method: str, delay: int) -> float:
    """m by which the ends in free space are farther apart than the analytic two-port says.

    At rest the forces of both ends are those of springs in series: the arms', the link's, and of waves the line's.
    """
    soft = 1.0 / STIFFNESS
    if method == "waves":
        soft = max(soft, 0.01 / IMPEDANCE) + (delay + 1) * 1e-3 / IMPEDANCE
    arms = 1.0 / LIGHT.stiffness if law == "position-force" else 1.0 / HELD.stiffness + 1.0 / LIGHT.stiffness
    wanted = REACH / (arms + soft) * soft
    return abs(float(course.position[-1, 0, 0] - course.position[-1, 1, 0]) - wanted)


def case(law: str, method: str, delay: int, loss: float) -> dict[str, Any]:
    """Both scenes: one row of the figure."""
    free = pair(law, method, "free", delay, loss, LIGHT).run(round(1e3 * SECONDS))
    felt = pair(law, method, "floor", delay, loss, LIGHT)
    pressed = felt.run(round(1e3 * SECONDS))
    given = max(float(course.energy.sum(axis=1).max()) for course in (free, pressed))
    still = max(float(np.ptp(course.position[-round(1e3 * AT_REST) :], axis=0).max()) for course in (free, pressed))
    # While it moves: the other hand where the first one was, a delay ago.
    late = delay + 1
    moved = free.position[1200:6000, 1, 0] - free.position[1200 - late : 6000 - late, 0, 0]
    touched = float(felt.ends[1].output["coupling_wrench"][2] - felt.ends[1].output["link"]["wrench"][2])
    force = float(pressed.force[-1, 0, 2])
    bound = 2.0 * TANK if method != "none" else 0.0
    return {
        "stable": still <= MOVES and (method == "none" or given <= bound + 1e-9),
        "position_error_mm": round(1e3 * error_at_rest(free, law, method, delay), 3),
        "tracking_rms_mm": round(1e3 * float(np.sqrt(np.mean(moved**2))), 2),
        "force_felt_N": round(force, 3),
        "force_touched_N": round(touched, 3),
        "energy_min_J": round(min(0.0, -given), 4),
        "energy_floor_J": -bound,
        "still_moving_mm": round(1e3 * still, 3),
    }


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    delays = [int(text) for text in arguments.delays.split(",")]
    losses = [float(text) / 100.0 for text in arguments.losses.split(",")]
    rows: dict[str, dict[str, Any]] = {}
    unstable, failing = [], []
    for law, method in WAYS:
        progress(f"{law}, {method}")
        for delay in delays:
            for loss in losses:
                name = f"{law}, {method}, {delay} ms, {100 * loss:g} %"
                row = rows[name] = case(law, method, delay, loss)
                if not row["stable"]:
                    (failing if method == "none" else unstable).append(name)
    at_once = [row["position_error_mm"] for name, row in rows.items() if ", 0 ms, 0 %" in name]
    figures = {
        "rows": rows,
        "passive_methods_unstable": unstable,
        "without_method_unstable": failing,
        "position_error_at_no_delay_mm": max(at_once, default=None),
    }
    notes = [
        f"Simulated reference devices, the first held, the second held lightly, {SECONDS:g} s each, in free space and "
        "with a floor under the second; delays one way, scattered by a tenth.",
        "position_error: of the distance at rest against springs in series. tracking: to the first, a delay ago.",
        "energy_min: what both hands got by the rendered force over the ways of their handles, beyond what it took; "
        "the floor is what the link's ends begin with.",
    ]
    ok = not unstable and bool(failing) and all(error <= 2.0 for error in at_once)
    return Result(figures, ok, notes=notes)


FIGURE = Figure(
    "teleop",
    "Two simulated devices through a delayed, lossy link: tracking, energy, stable or not, per law and method.",
    _arguments,
    run,
)
