"""The state of the touch layer at rest."""

import numpy as np

from haptics.states import EngagementState
from haptics.tables import TOUCH


def make_touch(settings: np.ndarray) -> np.ndarray:
    """Make the (1,) TOUCH table of a touch layer that nobody owns yet, from a (1,) SETTINGS table."""
    touch = np.zeros(1, TOUCH)
    row = touch[0]
    row["stiffness"] = settings[0]["stiffness"]
    row["damping"] = settings[0]["damping"]
    row["stiffness_goal"] = settings[0]["stiffness"]
    row["damping_goal"] = settings[0]["damping"]
    row["rate_share"] = 1.0
    row["scale"] = settings[0]["scale"]
    for name in ("anchor_orientation", "device_orientation", "image_orientation", "tip_orientation"):
        row[name][3] = 1.0
    row["goal"]["goal_orientation"][3] = 1.0
    row["untouched"] = 1 << 30
    row["state"] = row["after_release"] = EngagementState.IDLE
    return touch
