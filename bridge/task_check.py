"""Whether the run of a task scene, read from its log, did what it should.

The goals of the script were reached in their order, the last one at the end, and what turns together kept its ratio;
no two bodies came to touch, measured by :mod:`bridge.separation`, which shares nothing with the engine; what was sent
never stepped by more than the slew limit; free bodies got no energy but what the hand put in (:mod:`bridge.energy`);
and the log, executed again, gives the same bits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.energy import energy_gain
from bridge.moment import placed_triangles, tool_triangles
from bridge.scripts import Goal, Ratio, read_script
from bridge.separation import is_closed, triangles_distance, winding
from bridge.tasks import script_of
from haptics.states import EngagementState
from rtcore.model import Model
from rtcore.tables import FREE

CHECKED_MOMENTS = 60
"""Moments of a run at which distances are measured again; half of them those at which the engine saw the least gap."""

REACH = 3.0
"""Times eps_break: farther distances are not measured."""

ROUNDING = 1e-9
"""Share of the slew limit by which a difference of two forces may exceed it."""


@dataclass(frozen=True)
class Reached:
    """How one goal went."""

    what: str
    seconds: float | None
    """From the first tick to when it was reached, in its turn; None: it was not."""
    off_mm: list[float]
    """How far from it, x y z: then, or at the end."""
    off_deg: float | None
    """As an angle, where the goal says one."""


class Bodies:
    """Where bodies are during a run: those that move where the log has them, the others where they were at load."""

    def __init__(self, model: Model, states: Any = None) -> None:
        """``states``: :attr:`bridge.log.reader.Log.bodies`; None: nothing moves."""
        self._model = model
        self.moving: list[int] = [] if states is None else list(states.ids)
        self._states = None if states is None else states[:]

    def along(self, body: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions and orientations of a body, (n, 3) and (n, 4) after each tick, or (3,) and (4,) of one at rest."""
        if self._states is None or body not in self.moving:
            return self._model.bodies["position"][body], self._model.bodies["orientation"][body]
        states = self._states[:, self.moving.index(body)]
        return states["position"], states["orientation"]

    @property
    def states(self) -> np.ndarray | None:
        """(n, m) BODY_SAMPLE after each tick of those that move; None: nothing does."""
        return self._states

    def at(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions (bodies, 3) and orientations (bodies, 4) of all after the tick of this row."""
        positions, orientations = self._model.bodies["position"].copy(), self._model.bodies["orientation"].copy()
        if self._states is not None:
            states = self._states[row]
            positions[self.moving], orientations[self.moving] = states["position"], states["orientation"]
        return positions, orientations


def reached(goals: list[Goal], records: np.ndarray, bodies: Bodies, names: list[str]) -> list[Reached]:
    """How the goals went in (n,) RECORD: one after the other while forces were on, the last one at their end.

    So do those that say so.

    Raises ValueError for a goal about a body that there is not.
    """
    active = np.flatnonzero(records["output"]["state"] == EngagementState.ACTIVE)
    told: list[Reached] = []
    first = 0
    for number, goal in enumerate(goals):
        positions, orientations = _poses(goal, records, bodies, names)
        away = np.abs(positions - goal.position)
        good = (away <= goal.within).all(axis=1)
        angles = None
        if goal.orientation is not None:
            turns = Rotation.from_quat(orientations) * Rotation.from_quat(goal.orientation).inv()
            angles = np.degrees(turns.magnitude())
            good &= angles <= goal.within_deg
        rows = active[active >= first]
        if goal.at_end or number == len(goals) - 1:
            rows = rows[-1:]
        found = rows[good[rows]]
        row = int(found[0]) if len(found) else int(active[-1]) if len(active) else -1
        seconds = float((records["timing"]["started_ns"][row] - records["timing"]["started_ns"][0]) * 1e-9)
        told.append(
            Reached(
                goal.what,
                seconds if len(found) else None,
                [round(1e3 * float(c), 4) for c in positions[row] - goal.position],
                None if angles is None else round(float(angles[row]), 3),
            )
        )
        # what comes after a goal that was not reached is not reached either
        first = row if len(found) else len(records)
    return told


def _poses(goal: Goal, records: np.ndarray, bodies: Bodies, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n, 3) and orientations (n, 4) of what a goal is about."""
    if goal.body is None:
        return records["output"]["proxy_position"], records["output"]["proxy_orientation"]
    positions, orientations = bodies.along(_named(f"goal {goal.what!r}", goal.body, names))
    return np.broadcast_to(positions, (len(records), 3)), np.broadcast_to(orientations, (len(records), 4))


def _named(where: str, name: str, names: list[str]) -> int:
    if name not in names:
        raise ValueError(f"{where}: the scene has no body {name!r}; there are: {', '.join(names)}")
    return names.index(name)


def play(ratio: Ratio, records: np.ndarray, bodies: Bodies, names: list[str]) -> float:
    """By how much (rad) a body went ahead of its ratio to another one or fell back, at most, while forces were on.

    From the angles about the axis in (n,) RECORD; turns are counted. Raises ValueError as :func:`reached`.
    """

    def angles(body: str | None) -> np.ndarray:
        if body is None:
            return _angles(records["output"]["proxy_orientation"], ratio.axis)
        _, orientations = bodies.along(_named(f"ratio {ratio.what!r}", body, names))
        return _angles(np.broadcast_to(orientations, (len(records), 4)), ratio.axis)

    ahead = angles(ratio.body) - ratio.ratio * angles(ratio.to)
    return float(np.ptp(ahead[records["output"]["state"] == EngagementState.ACTIVE]))


def _angles(orientations: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """(n,) angle about an axis (3,), scene, of orientations (n, 4), rad; not folded."""
    return np.unwrap(2.0 * np.arctan2(orientations[:, :3] @ axis, orientations[:, 3]))


@dataclass(frozen=True)
class Separation:
    """What measuring distances again found."""

    moments: int
    smallest: float | None
    """m; None: nothing was within reach at any of the moments"""
    crossing: int
    """Moments at which surfaces met"""
    inside: int
    """Moments at which a body was inside another one"""


def separation(model: Model, records: np.ndarray, bodies: Bodies, most: int = CHECKED_MOMENTS) -> Separation:
    """Measure the distances of the tool mesh and of moving bodies to all others at up to ``most`` moments of a run."""
    tool = tool_triangles(model)
    if tool is None:
        raise ValueError("a task is judged with a mesh as tool, not with a sphere tip")
    shapes = [_shape(model, int(body["mesh_id"])) for body in model.bodies]
    rounding = [float(each) for each in model.bodies["rounding"]]
    # what is in a rounded body is near to what that is rounded about
    closed = [is_closed(shape) and radius == 0.0 for shape, radius in zip(shapes, rounding, strict=True)]
    tool_closed = is_closed(tool)
    reach = REACH * float(model.world[0]["eps_break"])
    smallest, crossing, inside = np.inf, 0, 0
    rows = checked_rows(records, most)
    for row in rows:
        placed = [placed_triangles(*each) for each in zip(shapes, *bodies.at(row), strict=True)]
        output = records["output"][row]
        here = placed_triangles(tool, output["proxy_position"], output["proxy_orientation"])
        pairs = [(here, tool_closed, placed[i], closed[i], rounding[i]) for i in range(len(shapes))]
        for i in bodies.moving:
            pairs += [
                (placed[i], closed[i], placed[k], closed[k], rounding[i] + rounding[k])
                for k in range(len(shapes))
                if k < i or (k not in bodies.moving and k != i)
            ]
        distances = [triangles_distance(one, other, reach, radii) for one, _, other, _, radii in pairs]
        smallest = min(smallest, *distances)
        crossing += any(distance <= 0.0 for distance in distances)
        inside += any(
            (other_closed and abs(winding(one[0, 0], other)) > 0.5)
            or (one_closed and abs(winding(other[0, 0], one)) > 0.5)
            for one, one_closed, other, other_closed, _ in pairs
        )
    return Separation(len(rows), float(smallest) if np.isfinite(smallest) else None, crossing, inside)


def checked_rows(records: np.ndarray, most: int) -> list[int]:
    """Rows of (n,) RECORD at which distances are measured: half where gaps are least, the others evenly."""
    report = records["output"]["report"]
    gaps = np.stack([report["smallest_gap"], report["body_gap"]])
    least = np.where(gaps < 0.0, np.inf, gaps).min(axis=0)
    touching = np.flatnonzero(np.isfinite(least))
    nearest = touching[np.argsort(least[touching], kind="stable")[: most // 2]]
    evenly = np.linspace(0, len(records) - 1, most - len(nearest)).astype(int)
    return sorted({*nearest.tolist(), *evenly.tolist()})


def _shape(model: Model, mesh_id: int) -> np.ndarray:
    mesh = model.meshes[mesh_id]
    first, count = int(mesh["triangle_first"]), int(mesh["triangle_count"])
    return model.triangles["vertices"][first : first + count]


def force_steps(records: np.ndarray) -> dict[str, float]:
    """Largest change from one tick to the next of the wrench sent, and of what the spring wanted while forces were on.

    N and N·m; only over ticks that follow one another in (n,) RECORD.
    """
    output = records["output"]
    following = np.diff(records["tick"].astype(np.int64)) == 1
    active = output["state"] == EngagementState.ACTIVE
    both = following & active[1:] & active[:-1]

    def largest(name: str, columns: slice, where: np.ndarray) -> float:
        steps = np.linalg.norm(np.diff(output[name][:, columns], axis=0), axis=1)[where]
        return float(steps.max()) if len(steps) else 0.0

    force, torque = slice(0, 3), slice(3, 6)
    return {
        "force_step_N": largest("wrench", force, following),
        "torque_step_Nm": largest("wrench", torque, following),
        "wanted_force_step_N": largest("coupling_wrench", force, both),
        "wanted_torque_step_Nm": largest("coupling_wrench", torque, both),
    }


def gained(model: Model, settings: np.void, records: np.ndarray, bodies: Bodies) -> tuple[float, float] | None:
    """Energy (J) of free bodies that came from nowhere in (n,) RECORD, and how much may; None where that is not told.

    What opens gaps without a force may lift all weights, against the hand, by one gap at rest. Not told where a body is
    kinematic or the tool has a mass.
    """
    if bodies.states is None or (model.bodies["kind"][bodies.moving] != FREE).any() or model.inertias["mass"][-1] > 0.0:
        return None
    weight = model.inertias["mass"][bodies.moving].sum() * np.linalg.norm(model.world[0]["gravity"])
    pull = np.linalg.norm(records["output"]["coupling_wrench"][:, :3], axis=1).max()
    gain = energy_gain(model, settings, records, bodies.states, bodies.moving)
    return gain, float((weight + pull) * model.world[0]["eps_safety"])


def judge(task: str, log: Any, progress: Callable[[str, int, int], None] | None = None) -> tuple[dict[str, Any], Any]:
    """Figures about the run of a task in a log (:class:`bridge.log.reader.Log`), and its re-execution.

    ``figures["failures"]`` holds a sentence for each thing that is not as it should be.
    """
    from bridge.log.reexec import reexecute

    def say(what: str, done: int) -> None:
        if progress is not None:
            progress(what, done, 3)

    records, row = log.records, log.settings[0]
    bodies = Bodies(log.model, log.bodies if log.body_ids else None)
    say("executing the log again", 0)
    again = reexecute(log)
    say("measuring distances again", 1)
    apart = separation(log.model, records, bodies)
    names = [body["name"] for body in log.config["scene"]["body"]]
    script = read_script(script_of(task))
    if not script.goals:
        raise ValueError(f"{script_of(task)} says no goal, so that nothing tells whether the task was done")
    goals = reached(script.goals, records, bodies, names)
    plays = {ratio.what: play(ratio, records, bodies, names) for ratio in script.ratios}
    energy = gained(log.model, row, records, bodies)
    steps = force_steps(records)
    bounds = {"force_slew_N": float(row["force_slew"]), "torque_slew_Nm": float(row["torque_slew"])}
    failures = [f"not reached: {goal.what} (off by {goal.off_mm} mm)" for goal in goals if goal.seconds is None]
    if apart.crossing or apart.inside:
        failures.append(
            f"bodies penetrate: surfaces meet at {apart.crossing} and one is inside another at {apart.inside} of "
            f"{apart.moments} moments"
        )
    for kind, step, bound in (
        ("force", steps["force_step_N"], bounds["force_slew_N"]),
        ("torque", steps["torque_step_Nm"], bounds["torque_slew_Nm"]),
    ):
        if step > bound * (1.0 + ROUNDING):
            failures.append(f"the {kind} stepped by {step:g}, above its bound of {bound:g} per tick")
    for ratio in script.ratios:
        if plays[ratio.what] > ratio.within:
            failures.append(
                f"not so: {ratio.what} (off by {np.degrees(plays[ratio.what]):.3f} degrees of "
                f"{np.degrees(ratio.within):g} allowed)"
            )
    if energy is not None and energy[0] > energy[1]:
        failures.append(f"bodies gained {energy[0]:g} J that the hand did not put in, above {energy[1]:g} J")
    if not again.same:
        failures.append(
            f"{again.ticks_differing} of {again.ticks} ticks differ when executed again; first {again.first}"
        )
    figures = {
        "task": task,
        "goals": [vars(goal) for goal in goals],
        "completed": all(goal.seconds is not None for goal in goals),
        "independent_moments": apart.moments,
        "independent_gap_min_mm": None if apart.smallest is None else 1e3 * apart.smallest,
        "penetrations": apart.crossing + apart.inside,
        **steps,
        **bounds,
        "play_deg": {what: float(np.degrees(angle)) for what, angle in plays.items()},
        "energy_gain_J": None if energy is None else energy[0],
        "energy_gain_allowed_J": None if energy is None else energy[1],
        "ticks_differing": again.ticks_differing,
        "ticks_executed_again": again.ticks,
        "failures": failures,
    }
    return figures, again
