"""A certificate: what was measured at which ticks, against which bar, and where it does not hold."""

from collections import Counter
from typing import Any

import numpy as np

SHOWN = 5
"""Violations that are told one by one."""


class Certificate:
    """Collects measurements of one property. A tick is judged, or left out for a reason that is told."""

    def __init__(self, name: str, says: str, unit: str, *, least: bool = False) -> None:
        """``says``: what passes, in words; ``least``: values below their bar fail, else those above."""
        self.name = name
        self.says = says
        self.unit = unit
        self.least = least
        self.judged = 0
        """Measurements; a tick may have several."""
        self._ticks: set[int] = set()
        self.failed = 0
        self.worst: dict[str, Any] | None = None
        """The measurement that is nearest to its bar, or farthest beyond it."""
        self.violations: list[dict[str, Any]] = []
        """The first few."""
        self.left_out: Counter[str] = Counter()
        """Measurements not made, by why."""
        self._excess = -np.inf

    def judge(self, tick: int, value: float, bar: float, where: str = "") -> None:
        """One measurement; one that is no number fails."""
        self.judged += 1
        self._ticks.add(int(tick))
        found = {"tick": int(tick), "value": float(value), "bar": float(bar), "where": where}
        excess = bar - value if self.least else value - bar
        if not self.least:
            excess = excess / abs(bar) if bar else (np.inf if value > 0.0 else excess - 1.0)
        if not excess <= 0.0:
            self.failed += 1
            if len(self.violations) < SHOWN:
                self.violations.append(found)
        if np.isnan(excess):
            excess = np.inf
        if self.worst is None or excess > self._excess:
            self._excess = excess
            self.worst = found

    def judge_all(self, ticks: np.ndarray, values: np.ndarray, bars: np.ndarray | float, where: str = "") -> None:
        """Many measurements, (n,) each."""
        bars = np.broadcast_to(np.asarray(bars, dtype=float), np.shape(values))
        for tick, value, bar in zip(
            ticks.tolist(), np.asarray(values, dtype=float).tolist(), bars.tolist(), strict=True
        ):
            self.judge(tick, value, bar, where)

    def leave(self, why: str, count: int = 1) -> None:
        """Note what was not judged."""
        if count:
            self.left_out[why] += int(count)

    @property
    def ticks(self) -> int:
        """In which something was judged."""
        return len(self._ticks)

    @property
    def passed(self) -> bool | None:
        """None: nothing could be judged."""
        return self.failed == 0 if self.judged else None

    @property
    def verdict(self) -> str:
        """One word."""
        return {True: "pass", False: "FAIL", None: "not judged"}[self.passed]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "name": self.name,
            "says": self.says,
            "unit": self.unit,
            "verdict": self.verdict,
            "ticks": self.ticks,
            "judged": self.judged,
            "failed": self.failed,
            "worst": _finite(self.worst),
            "violations": [_finite(each) for each in self.violations],
            "not_judged": dict(self.left_out),
        }


def _finite(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """JSON has no NaN and no infinity."""
    if found is None:
        return None
    return {key: None if isinstance(x, float) and not np.isfinite(x) else x for key, x in found.items()}
