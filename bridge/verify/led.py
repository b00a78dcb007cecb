"""Certificate of the goal of the mechanics: the device's image, or where hard fixtures lead it.

By :mod:`haptics.fixtures`' definitions of what is allowed, in numpy. Where one that is convex is alone the goal is the
nearest allowed place to the image; of several it is judged that the last one holds, which it does in any case.
"""

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.verify.certificate import Certificate
from bridge.verify.history import History
from haptics.fixtures import BALL, BOX, CONE, HALF_SPACE, LINE, PLANE, TUBE

ROUNDING = 1e-12
"""m per m."""


def certificates(history: History) -> list[Certificate]:
    """Of all ticks."""
    found = Certificate("goal", "the mechanics are asked for the image, or for where hard fixtures allow it", "m")
    output, settings = history.output, history.settings
    goal, image = output["goal_position"], output["device_position"]
    turned = np.abs(output["goal_orientation"] - output["device_orientation"]).max(axis=1)
    asked = ~history.stands
    found.leave("asked to stay where it is", int(np.sum(history.stands)))
    found.judge_all(history.ticks[asked], turned[asked], 0.0, "orientation")
    fixtures = settings["fixtures"][: int(settings["fixture_count"])]
    hard = fixtures[fixtures["stiffness"] == 0.0]
    led = history.pull > 0.0
    if len(hard) == 0:
        led[:] = False
    free = ~led & asked
    found.judge_all(history.ticks[free], np.linalg.norm(goal[free] - image[free], axis=1), 0.0)
    if not led.any():
        return [found]
    last = hard[-1]
    goal, image, ticks = goal[led], image[led], history.ticks[led]
    size = np.abs(goal).max(axis=1) + np.abs(image).max(axis=1) + float(np.abs(last["position"]).max())
    bars = ROUNDING * (size + float(last["radius"]) + float(last["half"].max()))
    found.judge_all(ticks, beyond(last, goal), bars, "allowed")
    if len(hard) > 1:
        found.leave("several fixtures: the nearest place", len(ticks))
    elif last["kind"] in (BALL, BOX):
        found.leave("no convex fixture: the nearest place", len(ticks))
    else:
        off = np.abs(np.linalg.norm(goal - image, axis=1) - beyond(last, image))
        found.judge_all(ticks, off, bars, "nearest")
    return [found]


def beyond(fixture: Any, places: np.ndarray) -> np.ndarray:
    """(n,) m that (n, 3) places are away from what a FIXTURE row allows; how deep they are in a ball or box."""
    kind = int(fixture["kind"])
    offset = places - fixture["position"]
    along = offset @ fixture["direction"]
    away = np.linalg.norm(offset - along[:, None] * fixture["direction"], axis=1)
    if kind == PLANE:
        return np.abs(along)
    if kind == HALF_SPACE:
        return np.maximum(-along, 0.0)
    if kind in (LINE, TUBE):
        return np.maximum(away - fixture["radius"], 0.0)
    if kind == CONE:
        sine, cosine = np.sin(fixture["angle"]), np.cos(fixture["angle"])
        side = np.maximum(away * cosine - along * sine, 0.0)
        return np.where(along * cosine + away * sine > 0.0, side, np.hypot(along, away))
    if kind == BALL:
        return np.maximum(fixture["radius"] - np.linalg.norm(offset, axis=1), 0.0)
    local = Rotation.from_quat(fixture["orientation"]).inv().apply(offset)
    return np.maximum((fixture["half"] - np.abs(local)).min(axis=1), 0.0)
