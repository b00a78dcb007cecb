"""A generated scene with its moving part as tool mesh, carried along scripted poses by the daemon's own step."""

import gc
import time
from dataclasses import dataclass

import numpy as np
from numba import njit

from bridge.assemble import EPS_SHARES
from bridge.config import Budget
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder
from rtcore.state import State, make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, COUNTERS, STEP_REPORT
from tools.scenes import Phase, Scene
from tools.scenes.clearance import placed

SETTLE = 100
"""Ticks at rest at most before a phase is measured, in which the fronts are made."""


@dataclass(frozen=True)
class Loaded:
    """A scene ready to tick."""

    scene: Scene
    model: Model
    eps: dict[str, float]
    """eps_alert, eps_safety and eps_break in force, m."""
    tree_seconds: dict[str, tuple[int, float]]
    """(triangles, s to build tree and cones) by part."""


@dataclass(frozen=True)
class Ride:
    """One phase as it went, one row per tick."""

    wall_us: np.ndarray
    """Time of the call of the step by the clock."""
    cpu_us: np.ndarray
    """And by the processor time of the thread, which others on the machine do not add to."""
    units: np.ndarray
    before: np.ndarray
    """(n, 7) pose of the tool before each tick."""
    after: np.ndarray
    goals: np.ndarray
    gaps: np.ndarray
    """Smallest gap reported, m; -1 for none."""
    truncated: np.ndarray
    """The motion was cut short because units or memory ran out."""
    incomplete: np.ndarray
    """Some contacts were left out."""
    counters: dict[str, int]
    settled: int
    """Ticks at rest before."""


def distances(scene: Scene) -> dict[str, float]:
    """The daemon's default distances for a scene, all scaled down alike where eps_safety is above its clearance, m."""
    points = np.concatenate([placed(part).reshape(-1, 3) for part in scene.parts])
    diagonal = float(np.linalg.norm(np.ptp(points, axis=0)))
    scale = min(1.0, scene.clearance / (EPS_SHARES["eps_safety"] * diagonal))
    return {name: share * diagonal * scale for name, share in EPS_SHARES.items()}


def load(scene: Scene) -> Loaded:
    """Build trees and model of a scene."""
    builder = ModelBuilder()
    seconds = {}
    tool_mesh_id = -1
    for part in scene.parts:
        began = time.perf_counter()
        tables = build_tree(part.vertices, part.faces)
        seconds[part.name] = (len(part.faces), round(time.perf_counter() - began, 3))
        mesh_id = builder.add_mesh(*tables)
        if part.moving:
            tool_mesh_id = mesh_id
        else:
            builder.add_body(mesh_id, position=part.position.tolist(), orientation=part.orientation.tolist())
    eps = distances(scene)
    return Loaded(scene, builder.build(0.0, (0.0, 0.0, 0.0), **eps, tool_mesh_id=tool_mesh_id), eps, seconds)


@njit(cache=True, nogil=True, error_model="numpy")
def _nothing(model: tuple, state: tuple, step_input: np.void, budget: np.void, report: np.void) -> None:
    report.degraded = 0


class Carrier:
    """Carries the tool of a scene one tick at a time."""

    def __init__(self, loaded: Loaded, phase: Phase, units: int | None = None) -> None:
        self.model = loaded.model
        self.state: State = make_state(self.model, phase.poses[0, :3].tolist(), phase.poses[0, 3:].tolist())
        self.entry, self.budget, self.report = make_input(), np.zeros(1, BUDGET), np.zeros(1, STEP_REPORT)
        usual = Budget()
        self.budget[0] = (usual.units if units is None else units, usual.passes, usual.sweeps, 0)
        self.settled = 0
        # The first query starts from the roots and may take more than one tick's units.
        while self.settled < SETTLE:
            self.tick(phase.poses[0])
            self.settled += 1
            if self.report["degraded"][0] == 0 and self.settled > 1:
                break

    def tick(self, goal: np.ndarray) -> tuple[float, float]:
        """Carry the tool towards a pose (7,): us of the call by the clock and by the thread's processor time."""
        self.entry["goal_position"][0] = goal[:3]
        self.entry["goal_orientation"][0] = goal[3:]
        rows = self.entry[0], self.budget[0], self.report[0]
        used, began = time.thread_time_ns(), time.perf_counter_ns()
        step(self.model, self.state, *rows)
        wall, cpu = time.perf_counter_ns() - began, time.thread_time_ns() - used
        return wall * 1e-3, cpu * 1e-3

    def pose(self) -> np.ndarray:
        """Where the tool is, (7,)."""
        proxy = self.state.proxy[0]
        return np.concatenate([proxy["position"], proxy["orientation"]])

    def overhead_us(self, calls: int = 2000) -> tuple[float, float]:
        """What a call like that of the step takes that does nothing, (clock, processor time), medians."""
        spent = np.zeros((calls, 2))
        for row in spent:
            rows = self.entry[0], self.budget[0], self.report[0]
            used, began = time.thread_time_ns(), time.perf_counter_ns()
            _nothing(self.model, self.state, *rows)
            row[:] = time.perf_counter_ns() - began, time.thread_time_ns() - used
        wall, cpu = np.median(spent, axis=0) * 1e-3
        return round(float(wall), 2), round(float(cpu), 2)


def ride(loaded: Loaded, phase: Phase, units: int | None = None, every: int = 1) -> Ride:
    """Carry the tool along a phase, placed at the time proven free in each tick; goals are every so many'th pose."""
    carrier = Carrier(loaded, phase, units)
    goals = phase.poses[every::every]
    n = len(goals)
    wall, cpu, used, gaps = np.zeros(n), np.zeros(n), np.zeros(n, int), np.zeros(n)
    degraded, incomplete = np.zeros(n, int), np.zeros(n, bool)
    poses = np.zeros((n + 1, 7))
    poses[0] = carrier.pose()
    counters = carrier.state.scratch["counters"]
    began = {name: int(counters[name][0]) for name in COUNTERS.names or ()}
    gc.collect()
    gc.disable()
    try:
        for i, goal in enumerate(goals):
            wall[i], cpu[i] = carrier.tick(goal)
            report = carrier.report[0]
            used[i], gaps[i], degraded[i] = report["units_used"], report["smallest_gap"], report["degraded"]
            incomplete[i] = carrier.state.query_work["proximities"]["incomplete"][0] != 0
            poses[i + 1] = carrier.pose()
    finally:
        gc.enable()
    counted = {name: int(counters[name][0]) - before for name, before in began.items()}
    return Ride(
        wall, cpu, used, poses[:-1], poses[1:], goals, gaps, degraded & 1 != 0, incomplete, counted, carrier.settled
    )
