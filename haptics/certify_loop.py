"""A hand at the tick, both in one kernel: a device pressed to a wall or held between two, for so many ticks.

Nothing here reads a clock or a random source, so a run is the same to the last bit. The tool is a sphere tip whose
centre is the coupling point: forces and lengths only, no torque.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core.types import WrapperAddressProtocol

from haptics.codes import ACTIVE, ENGAGING
from haptics.hands import DeviceDynamics, Grip, advance
from haptics.states import CommandKind
from haptics.tables import RECORD, SETTINGS, TOUCH
from haptics.tick import tick
from haptics.touch import make_touch
from rtcore.geometry.tree import build_tree
from rtcore.kernels import kernel
from rtcore.model import Model, ModelBuilder
from rtcore.state import State, make_state
from rtcore.warm_up import empty_tables

OWNER = 1
TIP_RADIUS = 0.005
EPS_ALERT, EPS_SAFETY, EPS_BREAK = 1e-4, 2.5e-4, 6e-4
REST = TIP_RADIUS + EPS_SAFETY
"""Height of the tip's centre over a wall that it rests on, m."""

SCENES = ("wall", "clamp")
SUBSTEPS = 8
"""Of the hand within one tick."""
SURELY_STILL = 100
"""Ticks without the least motion after which there will be none: windows and rings are shorter, all else is a function
of where the device is. The rest of the course need not be run."""
BUDGET = (20000, 8, 50, 0)

EXCITATION, OBSERVER, POSITION, FORCE = range(4)
"""Columns of a course: energy of device and springs above that at rest (J), the energy observer (J), height of the
device over where the tip rests (m), rendered force away from the wall (N)."""


class Body(NamedTuple):
    """Device and hand as one mass with a spring-damper to a point that stands still."""

    mass: float
    """kg"""
    stiffness: float
    """N/m"""
    damping: float
    """N·s/m"""
    viscous: float
    """N·s/m"""
    coulomb: float
    """N"""
    resolution: float
    """m; 0 for no grid"""

    @classmethod
    def of(cls, grip: Grip, device: DeviceDynamics) -> Body:
        """A device in a grip."""
        return cls(
            grip.mass + device.mass,
            grip.stiffness,
            grip.damping,
            device.viscous_friction,
            device.coulomb_friction,
            device.resolution,
        )


@dataclass(frozen=True)
class Course:
    """What happened in a run."""

    rows: np.ndarray
    """(ticks, 4): see the columns above."""
    engaged: bool
    """Whether forces stayed on; False when the watchdog took the motion for a fault."""


class _Compiled(WrapperAddressProtocol):
    """The tick as it was compiled for daemons, to be called by its address and not compiled into its caller again."""

    def __init__(self) -> None:
        kinds = [numba.typeof(table) for table in empty_tables()]
        kinds += [numba.typeof(np.zeros(1, dtype)) for dtype in (SETTINGS, TOUCH, RECORD)]
        tick.compile(tuple(kinds))
        self._made = tick.overloads[tuple(kinds)]

    def __wrapper_address__(self) -> int:
        return self._made.library.get_pointer_to_function(self._made.fndesc.llvm_cfunc_wrapper_name)

    def signature(self) -> Any:
        return self._made.signature


@cache
def compiled_tick() -> _Compiled:
    """Compile the tick or load it, once."""
    return _Compiled()


@kernel
def run_ticks(
    one_tick: Any,
    model: Model,
    state: State,
    settings: np.ndarray,
    touch: np.ndarray,
    record: np.ndarray,
    x: np.ndarray,
    v: np.ndarray,
    target: np.ndarray,
    zero: np.ndarray,
    late: np.ndarray,
    body: tuple,
    hold: int,
    at_rest: float,
    giving_up: float,
    course: np.ndarray,
) -> int:
    """Run ``one_tick`` until the course (n, 4) is full or forces go off; return how many ticks of it were run.

    It ends early when dry friction holds the device for good, the rest of the course being the same, and when the
    excitation is above ``giving_up`` (J). x, v, target, zero: (3,), scene and device frame, m and m/s; v is that of
    the moment of letting go. late: (d + 1, 3) N, zeros: d is by how many ticks the wrench reaches the motors late. For
    ``hold`` ticks before the course begins the device is kept where it is. at_rest: energy of the springs at rest, J.
    """
    mass, stiffness, damping, viscous, coulomb, resolution = body
    chosen = settings[0]
    dt_ns = np.int64(round(chosen.dt * 1e9))
    depth = late.shape[0]
    still = 0
    for k in range(hold + course.shape[0]):
        now = record[0]
        slot = k % depth
        for i in range(3):
            late[slot, i] = now.output.wrench[i]
        before = (x[0], x[1], x[2])
        if k >= hold:
            # Ring of d + 1: the slot after the newest is the oldest, d ticks old.
            advance(
                x, v, target, zero, late[(slot + 1) % depth], mass, stiffness, damping, viscous, coulomb,
                chosen.dt / SUBSTEPS, SUBSTEPS,
            )  # fmt: skip
        sample = now.input.sample
        for i in range(3):
            read = x[i]
            if resolution > 0.0:
                read = round(read / resolution) * resolution
            sample.position[i] = read
        sample.seq += np.uint64(1)
        sample.t_sample += dt_ns
        now.input.fresh = 1
        now.tick += np.uint64(1)
        one_tick(model, state, settings, touch, record)
        if touch[0].state != ACTIVE and not (k < hold and touch[0].state == ENGAGING):
            return k - hold
        if k >= hold:
            row = course[k - hold]
            energy = 0.0
            for i in range(3):
                away = target[i] - x[i]
                stretch = state.proxy[0].position[i] - x[i]
                energy += mass * v[i] * v[i] + stiffness * away * away + touch[0].stiffness * stretch * stretch
            row[0] = 0.5 * energy - at_rest
            row[1] = now.output.energy
            row[2] = x[2] - REST
            row[3] = now.output.wrench[2]
            if not row[0] <= giving_up:
                return k - hold + 1
            same = x[0] == before[0] and x[1] == before[1] and x[2] == before[2]
            still = still + 1 if same else 0
            if still == SURELY_STILL:
                for later in range(k - hold + 1, course.shape[0]):
                    for i in range(4):
                        course[later, i] = row[i]
                break
    return course.shape[0]


@cache
def scene(name: str) -> Model:
    """A wall in z = 0 facing up, or with another one above it that leaves the tip no play."""
    builder = ModelBuilder()
    corners = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    wall = builder.add_mesh(*build_tree(corners, faces))
    builder.add_body(wall, friction_static=0.0, friction_kinetic=0.0)
    if name == "clamp":
        builder.add_body(wall, (0.0, 0.0, 2.0 * REST), (1.0, 0.0, 0.0, 0.0), friction_static=0.0, friction_kinetic=0.0)
    return builder.build(TIP_RADIUS, (0.0, 0.0, 0.0), EPS_ALERT, EPS_SAFETY, EPS_BREAK)


def run(
    where: str,
    body: Body,
    settings: np.ndarray,
    *,
    delay_ticks: int,
    position: tuple[float, float, float],
    velocity: tuple[float, float, float],
    target: tuple[float, float, float],
    at_rest: float,
    ticks: int,
    giving_up: float,
    hold: int = 40,
) -> Course:
    """Let a device go at a position (m, heights over where the tip rests) with a velocity (m/s), forces fully on.

    where: of SCENES. settings: (1,) SETTINGS with an identity workspace. Raises RuntimeError where forces do not come
    on, which these settings never refuse.
    """
    model = scene(where)
    state = make_state(model, (0.0, 0.0, REST))
    touch = make_touch(settings)
    record = np.zeros(1, RECORD)
    record["budget"] = BUDGET
    row = record[0]
    entry = row["input"]
    x = np.array(position) + (0.0, 0.0, REST)
    sample = entry["sample"]
    sample["session"], sample["valid"], sample["deadman"], sample["orientation"] = OWNER, 1, 1, (0.0, 0.0, 0.0, 1.0)
    entry["has_sample"] = 1
    entry["command"]["session"] = OWNER
    for number, kind in enumerate((CommandKind.LEASE, CommandKind.ARM), start=1):
        entry["command"]["id"], entry["command"]["kind"] = number, kind
        row["tick"] += 1
        sample["seq"] += 1
        sample["t_sample"] += round(float(settings[0]["dt"]) * 1e9)
        sample["position"] = x
        entry["fresh"] = 1
        tick(model, state, settings, touch, record)
    entry["command"]["id"], entry["command"]["kind"] = 0, CommandKind.NONE
    course = np.zeros((ticks, 4))
    done = run_ticks(
        compiled_tick(), model, state, settings, touch, record,
        x, np.array(velocity), np.array(target) + (0.0, 0.0, REST), np.zeros(3), np.zeros((delay_ticks + 1, 3)),
        body, hold, at_rest, giving_up, course,
    )  # fmt: skip
    if done < 0:
        raise RuntimeError(f"forces did not come on: state {int(touch[0]['state'])}")
    return Course(course[:done], done == ticks or int(touch[0]["state"]) == ACTIVE)
