"""State and working memory: everything that changes while ticking, allocated once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rtcore.model import Model, unit_quaternion
from rtcore.tables import POSE, PROXY, SCRATCH


class State(NamedTuple):
    """What survives from tick to tick, and the memory that a step works in."""

    proxy: np.ndarray
    """(1,) PROXY."""
    poses: np.ndarray
    """(n_bodies,) POSE; only POSE_BODY changes one, and only while nobody is engaged."""
    scratch: np.ndarray
    """(1,) SCRATCH; nothing in it survives a step, so it belongs to no snapshot."""


def make_state(
    model: Model,
    start_position: Sequence[float],
    start_orientation: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
) -> State:
    """Make the state before the first tick: bodies at their poses of load, the tool at its start.

    start_position: tip centre, scene, m. start_orientation: xyzw, tool to scene, normalised here.
    Raises ValueError for values that are not finite or for a quaternion without length. Whether the start is free of
    surfaces is for the caller to check (:func:`rtcore.collision.clearance.clearance`).
    """
    position = np.asarray(start_position, dtype=np.float64)
    if position.shape != (3,) or not np.isfinite(position).all():
        raise ValueError(f"start position must be three finite numbers, not {start_position!r}")
    state = State(
        proxy=np.zeros(1, PROXY),
        poses=np.zeros(len(model.bodies), POSE),
        scratch=np.zeros(1, SCRATCH),
    )
    state.proxy["position"][0] = position
    state.proxy["orientation"][0] = unit_quaternion(start_orientation, "start orientation")
    state.poses["position"] = model.bodies["position"]
    state.poses["orientation"] = model.bodies["orientation"]
    return state
