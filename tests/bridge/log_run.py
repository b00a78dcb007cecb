"""Real runs without processes, and the parts of a log: a hand that presses and drags over a wavy surface, and one whose
tool pushes boxes about."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from log_samples import ListRing, attachments
from moving_scene import START, push_goal, round_scene, scene

from bridge.log.recorder import Recorder
from bridge.model_file import save_model
from haptics.bodies import sample_bodies
from haptics.cards import load_card
from haptics.fixtures import set_fixtures
from haptics.settings import make_settings
from haptics.snapshot import pack_snapshot
from haptics.states import CommandKind
from haptics.tables import RECORD, record_type
from haptics.tick import tick
from haptics.touch import make_touch
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder, moving_bodies
from rtcore.state import make_state

SESSION = 2**62 + 987654321
SAVED_EVERY = 200


@dataclass
class Run:
    """What the servo would have left."""

    model: Model
    settings: np.ndarray
    records: np.ndarray
    snapshots: dict[int, bytes]

    @property
    def body_ids(self) -> list[int]:
        """Of the bodies that move."""
        return moving_bodies(self.model.bodies)

    def attachments(self) -> dict[str, bytes]:
        """Attachments of a log of this run."""
        model, settings = io.BytesIO(), io.BytesIO()
        save_model(model, self.model)
        np.save(settings, self.settings.view(np.uint8))
        return {**attachments(), "model.npz": model.getvalue(), "settings.npy": settings.getvalue()}


def log_of(
    path: Path,
    run: Run,
    items: list[np.ndarray | int] | None = None,
    snapshots: list[int] | None = None,
    chunk: int = 40,
) -> Path:
    """Write a log in chunks of so many ticks; `snapshots` are the ticks of the ring's snapshot for each item."""
    recorder = Recorder(path, run.attachments(), body_ids=run.body_ids)
    ring = ListRing([])
    recorder.attach(ring)
    items = [run.records] if items is None else items
    for item, snapshot in zip(items, snapshots or [0] * len(items), strict=True):
        ring.kept = (snapshot, run.snapshots[snapshot])
        pieces = [item] if isinstance(item, int) else [item[k : k + chunk] for k in range(0, len(item), chunk)]
        for piece in pieces:
            ring.items.append(piece)
            recorder.step()
    recorder.finish()
    return path


def wavy_surface(cells: int = 40, size: float = 0.2, depth: float = 0.008) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of a square surface with hills and hollows around z = 0."""
    axis = np.linspace(-size / 2, size / 2, cells + 1)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    z = depth * np.sin(x * 2 * np.pi / 0.05) * np.cos(y * 2 * np.pi / 0.07)
    corner = np.arange((cells + 1) ** 2).reshape(cells + 1, cells + 1)
    a, b, c, d = corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]
    faces = np.concatenate([np.stack((a, b, c), axis=-1).reshape(-1, 3), np.stack((a, c, d), axis=-1).reshape(-1, 3)])
    return np.column_stack((x.ravel(), y.ravel(), z.ravel())), faces


def wavy_model() -> Model:
    """The surface as a static body under a 5 mm tip."""
    builder = ModelBuilder()
    builder.add_body(builder.add_mesh(*build_tree(*wavy_surface())))
    return builder.build(0.005, (0.0, 0.0, 0.0), 2e-5, 5e-5, 1.2e-4)


def inputs(count: int, start_ns: int = 10_000_000_000) -> Iterator[np.ndarray]:
    """(1,) RECORD with tick, input, budget and planned time: lease, arm, press and drag, clutch on the way."""
    record = np.zeros(1, RECORD)
    entered = record["input"][0]
    commands = {
        5: (CommandKind.LEASE, 0.0),
        15: (CommandKind.ARM, 1.0),
        count // 2: (CommandKind.CLUTCH, 1.0),
        count // 2 + 150: (CommandKind.CLUTCH, 0.0),
    }
    number = 0
    for n in range(1, count + 1):
        record["tick"] = n
        record["budget"] = (20000 if n % 7 else 150, 8, 50, 0)  # now and then a tight one
        t = n * 1e-3
        entered["fresh"] = entered["has_sample"] = n > 8
        entered["command"] = np.zeros(1, entered["command"].dtype)[0]
        if n in commands:
            number += 1
            kind, value = commands[n]
            entered["command"]["id"], entered["command"]["kind"] = number, kind
            entered["command"]["session"], entered["command"]["values"][0] = SESSION, value
        if n > 8:
            sample = entered["sample"]
            sample["session"], sample["seq"], sample["t_sample"] = SESSION, n, start_ns + n * 1_000_000
            height = 0.02 - 0.028 * min(1.0, max(0.0, (t - 0.1) / 0.3))
            sample["position"] = 0.03 * np.sin(3 * t), 0.03 * np.cos(2.3 * t) - 0.03, height + 0.004 * np.sin(11 * t)
            sample["orientation"] = 0.0, 0.0, np.sin(0.1 * t), np.cos(0.1 * t)
            sample["valid"] = sample["deadman"] = 1
        entered["age_ns"] = 0 if n % 50 else 7_000_000  # late once in a while: HOLD and back
        record["timing"]["planned_ns"] = start_ns + n * 1_000_000
        record["timing"]["started_ns"] = start_ns + n * 1_000_000 + 5_000
        record["timing"]["computed_ns"] = start_ns + n * 1_000_000 + 90_000
        yield record


def run_ticks(count: int, fixtures: Sequence[np.ndarray] = (), law: str = "spring") -> Run:
    """Ticks over the wavy surface, among fixtures, (1,) FIXTURE each, by a law of the coupling."""
    return _run(wavy_model(), (0.0, 0.0, 0.02), inputs(count), count, fixtures, law)


def run_moving(count: int, torsional: float = 0.0, rolling: float = 0.0) -> Run:
    """Ticks in which a tool pushes one box of a heap; torsional, rolling: friction moments, m."""
    return run_pushed(scene(torsional, rolling), count)


def run_rounded(count: int, torsional: float = 0.0, rolling: float = 0.0) -> Run:
    """Ticks in which a tool pushes a ball among capsules and balls; torsional, rolling: friction moments, m."""
    return run_pushed(round_scene(torsional, rolling), count)


def run_pushed(model: Model, count: int) -> Run:
    """Ticks in which the tool of a scene goes along :func:`moving_scene.push_goal`."""
    return _run(model, START, _pushes(count), count)


def _pushes(count: int) -> Iterator[np.ndarray]:
    for record in inputs(count):
        if record["input"]["command"]["kind"] == CommandKind.CLUTCH:
            record["input"]["command"] = np.zeros(1, record["input"]["command"].dtype)
        position, orientation = push_goal(int(record["tick"][0]))
        record["input"]["sample"]["position"], record["input"]["sample"]["orientation"] = position, orientation
        record["budget"]["units"] = 20000 if record["tick"] % 7 else 400
        record["budget"]["visits"] = 20000
        yield record


def _run(
    model: Model,
    start: tuple[float, float, float],
    entering: Iterator[np.ndarray],
    count: int,
    fixtures: Sequence[np.ndarray] = (),
    law: str = "spring",
) -> Run:
    """Execute `count` ticks as the servo does: one record used again and again, snapshots every so many ticks."""
    settings = make_settings(load_card("simulated"), ramp_up_ms=50.0, law=law)
    set_fixtures(settings, fixtures)
    state, touch = make_state(model, start), make_touch(settings)
    work = np.zeros(1, RECORD)
    records = np.zeros(count, record_type(len(moving_bodies(model.bodies))))
    snapshots = {0: pack_snapshot(state, touch).tobytes()}
    for row, entered in enumerate(entering):
        for name in ("tick", "input", "budget", "timing"):
            work[name] = entered[name]
        tick(model, state, settings, touch, work)
        for name in RECORD.names or ():
            records[name][row] = work[name][0]
        if "bodies" in (records.dtype.names or ()):
            sample_bodies(state.poses, state.velocities, state.pairs.movers, records["bodies"][row])
        if (row + 1) % SAVED_EVERY == 0:
            snapshots[row + 1] = pack_snapshot(state, touch).tobytes()
    return Run(model, settings, records, snapshots)
