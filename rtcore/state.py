"""State and Workspace: everything that changes while ticking, allocated once."""

from typing import NamedTuple

import numpy as np


class State(NamedTuple):
    """What survives from tick to tick."""

    proxy: np.ndarray
    """(1,) PROXY."""
    poses: np.ndarray
    """(n_bodies,) POSE; only POSE_BODY changes one, and only while nobody is engaged."""
