"""What a governor chooses who sees nothing but records."""

import numpy as np

from bridge.governor import Governor


def learn(one: Governor, spent_ns: int, report: np.void) -> None:
    """Tell a governor of a tick, by its STEP_REPORT."""
    one.learn(
        spent_ns,
        int(report["units_used"]),
        int(report["sweeps_used"]),
        int(report["contact_count"] + report["body_contacts"] - report["asleep"]),
        int(report["islands"]),
    )


def budgets(one: Governor, records: np.ndarray) -> np.ndarray:
    """(n, 3): units, sweeps and visits for each of (n,) RECORD, chosen from what the ones before took."""
    chosen = []
    for timing, report in zip(records["timing"], records["output"]["report"], strict=True):
        chosen.append((one.units, one.sweeps, one.visits))
        learn(one, int(timing["sent_ns"] - timing["started_ns"]), report)
    return np.array(chosen)


def recorded(records: np.ndarray) -> np.ndarray:
    """(n, 3): units, sweeps and visits of (n,) RECORD."""
    return np.stack([records["budget"][key] for key in ("units", "sweeps", "visits")], axis=1)
