"""What a governor chooses who sees nothing but records, and a scene that takes several periods per tick."""

import numpy as np

from bridge.governor import Governor
from rtcore.tables import MAX_CONTACTS

SCENE = """
[[scene.body]]
name = "sheet"
primitive = "plate"
size = [0.2, 0.2, 0.002]
subdivisions = 5
pose.position = [0.0, 0.0, -0.001]

[tool]
primitive = "plate"
size = [0.15, 0.15, 0.002]
subdivisions = 5
start = [0.0, 0.0, 0.003]

[workspace]
pose.position = [0.0, 0.0, 0.003]

[coupling]
ramp_up_ms = 20.0

[rates]
clocking = "triggered"

[budget]
units = 1_000_000
"""
"""Two sheets of 12 k triangles along one another, and a million units: near features alone take 1.5 ms."""

PERIOD_NS = 1_000_000


def path(hold):
    """(400 + hold, 3): presses the tool on the sheet, drags it along, stays; m, device."""
    press = np.linspace((0.0, 0.0, 0.0), (0.0, 0.0, -0.006), 100)
    return np.concatenate(
        [press, np.linspace(press[-1], (0.03, 0.0, -0.006), 300), np.full((hold, 3), (0.03, 0.0, -0.006))]
    )


def make_governor(budget, model):
    """As the servo makes one for one body at rest."""
    configured = (int(budget[key]) for key in ("units", "sweeps", "visits"))
    return Governor(*configured, period_ns=PERIOD_NS, bodies=len(model.bodies), contacts=MAX_CONTACTS)


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
