"""Certificate of what the mechanics say about themselves: finite, in range, and below the bars of a complete solve."""

import numpy as np

from bridge.log.fields import column, leaves
from bridge.verify.certificate import Certificate
from bridge.verify.history import History
from rtcore.tables import DEGRADED_SOLVER

CONVERGED = 1e-8
"""Natural-map residual at which every solver ends, or says that it did not."""
TIP = 1e-5
"""The same for a sphere tip, as a share of eps_safety plus the pull."""


def certificates(history: History) -> list[Certificate]:
    """Of all ticks."""
    return [_residual(history), _ranges(history)]


def _residual(history: History) -> Certificate:
    found = Certificate("residual told", "the reported residual is below the solver's tolerance", "")
    report = history.report
    whole = (report["degraded"] & DEGRADED_SOLVER) == 0
    rows = np.flatnonzero(whole)
    found.leave("work was cut short", len(history) - len(rows))
    if history.has_mesh:
        found.judge_all(history.ticks[rows], report["body_residual"][rows], CONVERGED)
    else:
        output = history.output[rows]
        pull = np.linalg.norm(output["goal_position"] - output["proxy_position"], axis=1)
        size = pull + float(history.world["eps_safety"])
        found.judge_all(history.ticks[rows], report["residual"][rows] / size, TIP)
    return found


def _ranges(history: History) -> Certificate:
    found = Certificate("numbers", "all that a tick gives out is finite, and shares are within 0..1", "")
    report = history.report
    good = np.ones(len(history), dtype=bool)
    for leaf in leaves(history.output.dtype):
        if leaf.base.kind == "f":
            good &= np.isfinite(column(history.output, leaf.path)).reshape(len(history), -1).all(axis=1)
    for name in ("fraction", "body_fraction"):
        good &= (report[name] >= 0.0) & (report[name] <= 1.0)
    gain = history.output["gain"]
    good &= (gain >= 0.0) & (gain <= 1.0)
    found.judge_all(history.ticks, np.where(good, 0.0, 1.0), 0.0)
    return found
