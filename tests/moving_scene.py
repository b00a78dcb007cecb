"""Bodies that fall, lie on one another and are pushed by a tool and by one another: small scenes for whole ticks."""

from __future__ import annotations

import numpy as np
import trimesh

from rtcore.dynamics.inertia import body_inertia, mesh_inertia
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder
from rtcore.state import State, make_input
from rtcore.step import step
from rtcore.tables import BUDGET, FREE, HELD, KINEMATIC, STEP_REPORT

EPS = (2e-5, 5e-5, 1e-4)
"""Alert, safety and break distance, m."""
EDGE = 0.03
"""Of the boxes and the tool, m."""
START = (-0.06, 0.0, 0.0165)
"""Where the tool begins, just above the table."""
MOVING = (1, 3, 4, 5)
"""Ids of the bodies of :func:`scene` that move."""
CONFIG = """
[scene]
eps_alert = 2e-5
eps_safety = 5e-5
eps_break = 1e-4

[[scene.body]]
name = "table"
primitive = "box"
size = [0.4, 0.4, 0.04]
pose = { position = [0.0, 0.0, -0.02] }

[tool]
primitive = "box"
size = [0.03, 0.03, 0.03]
start = [-0.06, 0.0, 0.0165]

[coupling]
ramp_up_ms = 50.0
"""
"""The table and the tool of :func:`scene` and :func:`round_scene`, for a daemon; bodies may follow."""
TURNING = 1e-3
"""Stiffness of the spring that turns the tool by that of the one that pulls it, m^2."""


def box(*size: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of a box about the origin."""
    mesh = trimesh.creation.box(size)
    return np.asarray(mesh.vertices, float), np.asarray(mesh.faces)


def scene(torsional: float = 0.0, rolling: float = 0.0) -> Model:
    """A table, three free boxes (two on each other, one that falls onto them), a sled that pushes, a held plate.

    The top of the table is z = 0; the tool is a box too. What moves is in between what does not. torsional, rolling:
    friction moments of the table and of the free boxes, m.
    """
    builder = ModelBuilder()
    table, cube = box(0.4, 0.4, 0.04), box(EDGE, EDGE, EDGE)
    table_id, cube_id = (builder.add_mesh(*build_tree(*mesh)) for mesh in (table, cube))
    inertia = mesh_inertia(*cube, 600.0, restitution=0.3)
    half = 0.5 * EDGE + EPS[1]
    resists = {"torsional_friction": torsional, "rolling_friction": rolling}
    builder.add_body(table_id, (0.0, 0.0, -0.02), friction_static=0.5, friction_kinetic=0.4, **resists)
    builder.add_body(cube_id, (0.0, 0.0, half), kind=FREE, inertia=inertia, **resists)
    builder.add_body(cube_id, (0.15, 0.15, 0.2), kind=HELD)
    builder.add_body(cube_id, (0.004, 0.002, 3.0 * half), kind=FREE, inertia=inertia, **resists)
    builder.add_body(cube_id, (0.12, 0.0, half + 1e-4), kind=KINEMATIC, velocity=(-0.05, 0.0, 0.0, 0.0, 0.0, 0.1))
    tilted = (0.2, 0.1, 0.0, 0.97)
    spun = (0, 0, 0, 3, 1, 2)
    builder.add_body(cube_id, (0.01, -0.005, 0.12), tilted, kind=FREE, inertia=inertia, velocity=spun, **resists)
    return builder.build(0.0, (0.0, 0.0, 0.0), *EPS, tool_mesh_id=cube_id, turning=TURNING, gravity=(0.0, 0.0, -9.81))


def round_scene(torsional: float = 0.0, rolling: float = 0.0) -> Model:
    """A table, a free ball and capsule that lie on it, a free ball that bounces, a ball that stands, one that pushes.

    The tool is a box; it pushes the first ball along :func:`push_goal`. torsional, rolling: friction moments of all, m.
    """
    builder = ModelBuilder()
    table_id, cube_id = (builder.add_mesh(*build_tree(*box(*size))) for size in ((0.4, 0.4, 0.04), (EDGE, EDGE, EDGE)))
    point_id = builder.add_mesh(*build_tree(np.zeros((1, 3)), np.zeros((1, 3), np.int64)))
    axis = np.array([(0.0, 0.0, -0.02), (0.0, 0.0, 0.02)])
    segment_id = builder.add_mesh(*build_tree(axis, np.array([[0, 1, 1]])))
    radius, half = 0.5 * EDGE, np.sqrt(0.5)
    ball = body_inertia(0.05, np.diag([0.4 * 0.05 * radius**2] * 3), restitution=0.6)
    pill = body_inertia(0.05, np.diag([1.4e-5, 1.4e-5, 5e-6]))
    low = radius + EPS[1]
    resists = {"torsional_friction": torsional, "rolling_friction": rolling}
    pills = {"inertia": pill, "rounding": radius, **resists}
    thrown = {"inertia": ball, "velocity": (0, -0.3, 0, 0, 40, 9), "rounding": 0.01, **resists}
    carried = {"velocity": (-0.05, 0.0, 0.0, 0.0, -5.0, 0.0), "rounding": radius, **resists}
    builder.add_body(table_id, (0.0, 0.0, -0.02), friction_static=0.5, friction_kinetic=0.4, **resists)
    builder.add_body(point_id, (0.0, 0.0, low), kind=FREE, inertia=ball, rounding=radius, **resists)
    builder.add_body(segment_id, (0.06, 0.005, low), (half, 0.0, 0.0, half), kind=FREE, **pills)
    builder.add_body(point_id, (0.04, 0.06, 0.03), kind=FREE, **thrown)
    builder.add_body(point_id, (0.1, 0.0, 0.015), rounding=0.02, **resists)
    builder.add_body(point_id, (0.12, 0.1, low), kind=KINEMATIC, **carried)
    return builder.build(0.0, (0.0, 0.0, 0.0), *EPS, tool_mesh_id=cube_id, turning=TURNING, gravity=(0.0, 0.0, -9.81))


def push_goal(k: int) -> tuple[tuple[float, float, float], tuple[float, float, float, float]]:
    """Where a hand that pushes the lower box along the table is in its tick k: position (m) and orientation."""
    place = (START[0] + min(2e-4 * k, 0.08), 1e-3 * float(np.sin(0.05 * k)), START[2])
    return place, (0.0, 0.0, float(np.sin(0.001 * k)), float(np.cos(0.001 * k)))


def push(model: Model, state: State, first: int, last: int) -> list[bytes]:
    """The reports of steps in which the tool pushes the lower box along the table, among all that falls and lies."""
    asked, budget, report = make_input(400.0, 0.4), np.zeros(1, BUDGET), np.zeros(1, STEP_REPORT)
    budget[0] = (20000, 8, 50, 20000)
    kept = []
    for k in range(first, last):
        asked["goal_position"], asked["goal_orientation"] = push_goal(k)
        step(model, state, asked[0], budget[0], report[0])
        kept.append(report.tobytes())
    return kept
