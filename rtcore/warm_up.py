"""Compile, or load from the cache, every kernel that a tick of the mechanics can reach."""

from collections.abc import Callable

import numpy as np

from rtcore import spatial
from rtcore.collision.nearest import clearance
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.state import make_state
from rtcore.step import step
from rtcore.tables import BUDGET, POSE, STEP_INPUT, STEP_REPORT


def warm_up(progress: Callable[[str, int, int], None] | None = None) -> None:
    """Run every kernel of the mechanics once on a small scene; `progress` gets (what, done, of)."""
    stages = (("bounding trees", _trees), ("quaternions", _spatial), ("clearance", _clearance), ("step", _step))
    for done, (what, stage) in enumerate(stages):
        if progress is not None:
            progress(what, done, len(stages))
        stage()
    if progress is not None:
        progress("mechanics", len(stages), len(stages))


def _scene() -> tuple:
    nodes, triangles = build_tree(np.array([[-1.0, -1, 0], [1, -1, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))
    builder = ModelBuilder()
    builder.add_body(builder.add_mesh(nodes, triangles))
    model = builder.build(0.01, (0.0, 0.0, 0.0), 1e-4, 2e-4, 4e-4)
    return model, make_state(model, (0.0, 0.0, 0.02))


def _trees() -> None:
    _scene()


def _spatial() -> None:
    pose = np.zeros(1, POSE)[0]
    pose["orientation"][3] = 1.0
    q = spatial.quaternion(pose["orientation"])
    v = spatial.vector(pose["position"])
    spatial.put_vector(pose["position"], spatial.cross(v, spatial.subtract(spatial.add(v, v), spatial.scaled(v, 2.0))))
    spatial.put_quaternion(pose["orientation"], spatial.normalise(spatial.multiply(q, spatial.conjugate(q))))
    spatial.length(spatial.rotate(spatial.from_rotation_vector(v), spatial.rotation_vector(q)))
    spatial.to_scene(pose, spatial.to_body(pose, v))


def _clearance() -> None:
    model, state = _scene()
    clearance(model, state, state.proxy["position"][0])


def _step() -> None:
    model, state = _scene()
    step_input = np.zeros(1, STEP_INPUT)
    step_input["goal_position"][0] = (0.001, 0.0, -0.01)
    step_input["goal_orientation"][0, 3] = 1.0
    budget = np.zeros(1, BUDGET)
    budget[0] = (1000, 8, 50, 0)
    report = np.zeros(1, STEP_REPORT)
    step(model, state, step_input[0], budget[0], report[0])
