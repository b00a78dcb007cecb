"""What the probe feels like: recorded hands pressed into shapes whose right answer is known in closed form."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bridge.adapters.spring import local_proxy
from bridge.config import Config
from bridge.recordings import read_recording
from bridge.scene.mesh import read_mesh
from bridge.scene.paths import resolve
from bridge.scene.primitives import make_primitive
from bridge.wire import decode_render, encode_render
from rtcore.state import make_input
from rtcore.step import step
from rtcore.tables import BUDGET, STEP_REPORT
from tools.bench.common import Figure, Progress, Result, percentiles
from tools.bench.session import Session
from tools.passage import passages, tip_path

RADIUS = 0.005
DEPTH = 0.003  # less than the tip radius: the hand stays outside the solid and the nearest point is unique
STIFFNESS = 400.0
WALL = 0.0005
SPEEDS = (0.1, 0.2, 0.5, 1.0, 2.0)

BUSY_MESHES = ("pybullet_data:quadruped/microtaur/channel.stl", "pybullet_data:a1/meshes/trunk.obj")


def _config(body: dict, start: tuple[float, float, float], friction: float = 0.0, radius: float = RADIUS) -> Config:
    body = {"name": "thing", "friction_static": friction, "friction_kinetic": friction, **body}
    return Config.model_validate(
        {
            "scene": {"body": [body]},
            "tool": {"tip_radius": radius, "start": start},
            "coupling": {"stiffness": STIFFNESS, "damping": 0.0, "ramp_up_ms": 20.0},
        }
    )


def _box_push(half: np.ndarray, goal: np.ndarray, reach: float) -> np.ndarray:
    """Where a frictionless tip rests when the hand is at goal (n, 3): the nearest point of the rounded box."""
    nearest = np.clip(goal, -half, half)
    away = goal - nearest
    distance = np.linalg.norm(away, axis=1)
    push = (distance > 0) & (distance < reach)
    rest = goal.copy()
    rest[push] = nearest[push] + away[push] * (reach / distance[push])[:, None]
    return rest


def _sphere_push(radius: float, goal: np.ndarray, reach: float) -> np.ndarray:
    distance = np.linalg.norm(goal, axis=1)
    scale = np.where(distance < radius + reach, (radius + reach) / np.maximum(distance, 1e-12), 1.0)
    return goal * scale[:, None]


Rest = Callable[[np.ndarray, float], np.ndarray]

SHAPES: dict[str, tuple[dict, Rest]] = {
    "plane": (
        {"primitive": "plane", "size": (0.6, 0.6)},
        lambda goal, reach: np.column_stack([goal[:, :2], np.maximum(goal[:, 2], reach)]),
    ),
    "sphere": (
        {"primitive": "sphere", "size": (0.06,), "subdivisions": 3},
        lambda goal, reach: _sphere_push(0.06, goal, reach),
    ),
    "edge": (
        {"primitive": "box", "size": (0.05, 0.6, 0.05)},
        lambda goal, reach: _box_push(np.array([0.025, 0.3, 0.025]), goal, reach),
    ),
    "wall_0.5mm": (
        {"primitive": "plate", "size": (0.6, 0.6, WALL)},
        lambda goal, reach: _box_push(np.array([0.3, 0.3, WALL / 2]), goal, reach),
    ),
}


def recorded_motions(directory: Path) -> dict[str, np.ndarray]:
    """Recordings resampled to 1 kHz and centred, (n, 3) in m, by name; empty where there are none."""
    motions = {}
    for path in sorted(directory.glob("*.bag")):
        recording = read_recording(path)
        seconds = (recording.times_ns - recording.times_ns[0]) * 1e-9
        at = np.arange(0.0, seconds[-1], 1e-3)
        motion = np.column_stack([np.interp(at, seconds, recording.positions[:, k]) for k in range(3)])
        motions[path.stem] = motion - (motion.min(axis=0) + motion.max(axis=0)) / 2
    return motions


def made_motion(seconds: float = 8.0) -> np.ndarray:
    """A hand that wanders and taps, when no recording is at hand, (n, 3), m."""
    t = np.arange(0.0, seconds, 1e-3)
    return np.column_stack([0.06 * np.sin(1.7 * t), 0.05 * np.sin(2.3 * t + 1), 0.03 * np.sin(3.1 * t)])


def _press(motion: np.ndarray, name: str) -> np.ndarray:
    """Scale a motion into the shape's size so that the hand dips DEPTH below what stops the tip, and no deeper.

    Where it would go deeper it is moved out again: upwards, from the centre of the sphere, or from the edge of the box.
    """
    goal = motion * (0.1 / np.ptp(motion, axis=0).max())
    inside = RADIUS - DEPTH
    if name == "sphere":
        goal = goal + np.array([0.0, 0.0, 0.06])
        distance = np.linalg.norm(goal, axis=1)
        return goal * (np.maximum(distance, 0.06 + inside) / np.maximum(distance, 1e-9))[:, None]
    if name == "edge":
        goal = goal + np.array([0.025, 0.0, 0.025])
        out = np.maximum(inside - np.maximum(goal[:, 0], goal[:, 2]) + 0.025, 0.0)
        return goal + out[:, None] * np.array([1.0, 0.0, 1.0])
    top = 0.0 if name == "plane" else WALL / 2
    return goal + np.array([0.0, 0.0, top + inside - goal[:, 2].min()])


def _approach(start: np.ndarray, goal: np.ndarray, speed: float = 0.2) -> np.ndarray:
    count = max(int(np.linalg.norm(goal - start) / (speed * 1e-3)), 1)
    return start + (goal - start) * (np.arange(1, count + 1) / count)[:, None]


def shape_figure(name: str, motion: np.ndarray) -> dict:
    body, rest = SHAPES[name]
    start = np.array([0.0, 0.0, 0.2])
    session = Session(_config(body, tuple(start)))
    reach = RADIUS + float(session.model.world["eps_safety"][0])
    session.engage(start)
    goal = _press(motion, name)
    approach = session.run(_approach(start, goal[0]))
    records = session.run(goal)
    expected = STIFFNESS * (rest(goal, reach) - goal)
    error = np.linalg.norm(records["output"]["coupling_wrench"][:, :3] - expected, axis=1)
    wrench = records["output"]["wrench"][:, :3]
    path, _ = tip_path(np.concatenate([approach, records]))
    mesh = make_primitive(body["primitive"], tuple(body["size"]), body.get("subdivisions", 0))
    return {
        "force_rms_error_N": round(float(np.sqrt(np.mean(error**2))), 6),
        "force_worst_error_N": round(float(error.max()), 6),
        "force_peak_N": round(float(np.linalg.norm(wrench, axis=1).max()), 4),
        "force_step_max_N": round(float(np.linalg.norm(np.diff(wrench, axis=0), axis=1).max()), 5),
        "pop_through": len(passages(path, mesh.vertices[mesh.faces])),
        "touching_fraction": round(float(np.mean(np.linalg.norm(expected, axis=1) > 0)), 3),
        **between_ticks(records, goal, rest, reach),
    }


def between_ticks(records: np.ndarray, goal: np.ndarray, rest: Rest, reach: float) -> dict:
    """Force error (N) of an adapter at 4 kHz that has each render at once, beside the closed form: with the render's
    planes, and with the tool left where it was in the tick."""
    shares = np.array([0.25, 0.5, 0.75])
    hands = goal[:-1, None] + shares[:, None] * (goal[1:] - goal[:-1])[:, None]
    wanted = rest(hands.reshape(-1, 3), reach).reshape(hands.shape)
    found = np.empty_like(hands)
    for i, ways in enumerate(hands):
        render = decode_render(encode_render(records[i : i + 1], 0))
        found[i] = [local_proxy(render, hand) for hand in ways]
    stood = records["output"]["render_position"][:-1, None]
    errors = {name: STIFFNESS * np.linalg.norm(y - wanted, axis=2) for name, y in (("", found), ("standing_", stood))}
    return {
        f"between_ticks_{name}{kind}_error_N": round(float(value(error)), 6)
        for name, error in errors.items()
        for kind, value in (("rms", lambda e: np.sqrt(np.mean(e**2))), ("worst", np.max))
    }


def wall_strokes(speed: float, radius: float, strokes: int, seed: int = 7) -> int:
    """Straight strokes through a 0.5 mm plate from random sides and angles; how many went through (exact check)."""
    generator = np.random.default_rng(seed)
    body = {"primitive": "plate", "size": (0.6, 0.6, WALL)}
    mesh = make_primitive("plate", (0.6, 0.6, WALL))
    through = 0
    for _ in range(strokes):
        side = generator.choice([-1.0, 1.0])
        start = np.append(generator.uniform(-0.1, 0.1, 2), side * 0.02)
        end = np.append(generator.uniform(-0.1, 0.1, 2), -side * 0.02)
        session = Session(_config(body, tuple(start), friction=0.3, radius=radius))
        records = session.run(np.concatenate([[start], _approach(start, end, speed), _approach(end, start, speed)]))
        through += bool(passages(tip_path(records)[0], mesh.vertices[mesh.faces]))
    return through


def contact_cost(mesh_name: str, ticks: int = 4000) -> dict:
    """Time of the contact part alone (rtcore.step) while pressing and dragging over a large mesh."""
    mesh = read_mesh(resolve(mesh_name, Path.cwd()))
    size = np.ptp(mesh.vertices, axis=0)
    scale = 0.2 / size.max()
    low, high = mesh.vertices.min(axis=0) * scale, mesh.vertices.max(axis=0) * scale
    centre = (low + high) / 2
    start = centre + [0.0, 0.0, (high - low)[2] / 2 + 0.02]
    session = Session(_config({"mesh": mesh_name, "scale": scale}, tuple(start), friction=0.3, radius=0.002))
    t = np.arange(ticks) * 1e-3
    wide = (high - low) * 0.45
    goal = centre + np.column_stack(
        [wide[0] * np.sin(1.9 * t), wide[1] * np.sin(2.7 * t), (high - low)[2] * (0.5 - 0.1 * np.minimum(t, 1.0))]
    )
    goal = np.concatenate([_approach(start, goal[0]), goal])
    entry, report, budget = make_input(), np.zeros(1, STEP_REPORT), np.zeros(1, BUDGET)
    budget[0] = session.assembly.budget[0]
    entry["goal_orientation"] = (0.0, 0.0, 0.0, 1.0)
    entry["goal_position"] = start
    step(session.model, session.state, entry[0], budget[0], report[0])  # loads the kernel
    spent, units, touching = np.zeros(len(goal)), np.zeros(len(goal)), np.zeros(len(goal), dtype=bool)
    for i, position in enumerate(goal):
        entry["goal_position"] = position
        began = time.perf_counter_ns()
        step(session.model, session.state, entry[0], budget[0], report[0])
        spent[i] = (time.perf_counter_ns() - began) * 1e-3
        units[i] = report["units_used"][0]
        touching[i] = report["contact_count"][0] > 0
    return {
        "triangles": len(mesh.faces),
        "contact_us": percentiles(spent),
        "units": percentiles(units, 0),
        "touching_fraction": round(float(touching.mean()), 3),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data/virtuose"), help="folder with recorded hands (*.bag)"
    )
    parser.add_argument("--strokes", type=int, default=8, help="strokes per speed and tip radius through the thin wall")


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    motions = recorded_motions(arguments.data)
    notes = []
    if not motions:
        notes.append(f"no recording in {arguments.data}: a made-up motion stands in")
        motions = {"made": made_motion()}
    scenes = {}
    for shape in SHAPES:
        for name, motion in motions.items():
            progress(f"{shape} felt by {name}")
            scenes[f"{shape}/{name}"] = shape_figure(shape, motion)
    strokes = {}
    for speed in SPEEDS:
        progress(f"0.5 mm wall at {speed} m/s")
        strokes[str(speed)] = sum(wall_strokes(speed, radius, arguments.strokes) for radius in (0.0, 0.001, RADIUS))
    cost = {}
    for mesh in BUSY_MESHES:
        progress(f"contact cost on {mesh}")
        cost[mesh] = contact_cost(mesh)
    pop_through = sum(scene["pop_through"] for scene in scenes.values()) + sum(strokes.values())
    squares = [scene["force_rms_error_N"] ** 2 for scene in scenes.values()]
    between = {
        name: [scene[name] ** 2 for scene in scenes.values()]
        for name in ("between_ticks_rms_error_N", "between_ticks_standing_rms_error_N")
    }
    figures = {
        "pop_through": pop_through,
        "force_rms_error_N": round(float(np.sqrt(np.mean(squares))), 6),
        **{name: round(float(np.sqrt(np.mean(values))), 6) for name, values in between.items()},
        "force_step_max_N": max(scene["force_step_max_N"] for scene in scenes.values()),
        "scenes": scenes,
        "wall_pop_through_by_speed_m_s": strokes,
        "contact_cost": cost,
    }
    worst = max(item["contact_us"]["p99"] for item in cost.values())
    return Result(figures, pop_through == 0 and worst <= 150.0, notes=notes)


FIGURE = Figure(
    "feel",
    "Recorded hands pressed into plane, sphere, edge and 0.5 mm wall, beside closed forms; passages decided exactly.",
    add_arguments,
    run,
)
