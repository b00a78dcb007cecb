"""All certificates of a log."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.log.reader import Log, read_log
from bridge.verify import force, led, planes, told
from bridge.verify.bodies import BodyCertificates
from bridge.verify.certificate import Certificate
from bridge.verify.gaps import GapCertificates
from bridge.verify.history import History
from bridge.verify.near import Neighbours
from bridge.verify.tool import ToolCertificates

WORK = 60_000_000
"""us of work on distances and motions by default, roughly; of longer logs only every so manyth tick is judged."""
PAIR, TRIANGLE = 4_000, 10
"""The same for a pair of bodies, and for each of their triangles."""


TIGHTEST = 20
"""Ticks of each kind that are judged in any case."""


@dataclass(frozen=True)
class Verification:
    """Result of :func:`verify`."""

    path: str
    first: int
    last: int
    ticks: int
    every: int
    """Ticks per tick at which distances and motions were judged; forces and reports were in all."""
    certificates: list[Certificate]
    explanation: str
    """Where a damaged log was left; empty for a complete one."""

    @property
    def passed(self) -> bool:
        """No certificate failed."""
        return all(each.passed is not False for each in self.certificates)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "log": self.path,
            "ticks": self.ticks,
            "first_tick": self.first,
            "last_tick": self.last,
            "every": self.every,
            "passed": self.passed,
            "certificates": [each.to_dict() for each in self.certificates],
            "explanation": self.explanation,
        }

    def __str__(self) -> str:
        head = f"{self.path}: ticks {self.first} to {self.last}"
        if self.every > 1:
            head += f"; distances and motions every {self.every} ticks and at the tightest ones (--every 1: all)"
        lines = [head, "", _ROW.format("certificate", "ticks", "worst", "bar", "at tick", "")]
        for each in self.certificates:
            lines += _lines(each)
        if self.explanation:
            lines += ["", self.explanation]
        return "\n".join(lines)


_ROW = "{:<17} {:>8}  {:>11} {:>11} {:>9}  {}"


def _lines(each: Certificate) -> list[str]:
    if each.worst is None:
        lines = [_ROW.format(each.name, 0, "", "", "", each.verdict)]
    else:
        worst, unit = each.worst, f" {each.unit}" if each.unit else ""
        value, bar = f"{worst['value'] + 0.0:.3g}", f"{worst['bar']:.3g}{unit}"
        lines = [_ROW.format(each.name, each.ticks, value, bar, worst["tick"], each.verdict)]
    if each.passed is False:
        lines.append(f"    not so: {each.says}; {each.failed} of {each.judged} are beyond the bar")
        for found in each.violations:
            where = f" ({found['where']})" if found["where"] else ""
            lines.append(f"    tick {found['tick']}: {found['value']:.6g}, bar {found['bar']:.6g}{where}")
    if each.left_out:
        lines.append("    not judged: " + ", ".join(f"{count} {why}" for why, count in each.left_out.items()))
    return lines


def verify(
    log: Log | str | os.PathLike[str],
    *,
    every: int | None = None,
    first: int | None = None,
    last: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Verification:
    """Judge a log, or its ticks from ``first`` to ``last``.

    ``every``: judge distances and motions at ticks so far apart; None: as many as :data:`WORK` allows. Forces and
    reports are judged in all ticks. Raises LogError when the log cannot be read or has no tick in that span.
    """
    log = log if isinstance(log, Log) else read_log(log)
    history = History(log, first, last)
    neighbours = Neighbours(history)
    gaps, bodies, tool = GapCertificates(history), BodyCertificates(history), ToolCertificates(history)
    step = every or _step(history, neighbours)
    rows = sorted({*range(0, len(history), step), *_tightest(history)})
    for done, row in enumerate(rows):
        if progress is not None:
            progress("judging ticks", done, len(rows))
        if not history.known[row]:
            continue
        if history.follows[row] and history.known[row - 1]:
            meetings = neighbours.moving(row, points=bool(history.free))
            gaps.judge(row, meetings)
            bodies.judge(row, meetings)
            tool.judge(row, bodies.bounced)
        else:
            gaps.judge_standing(row, neighbours.standing(row))
    certificates = gaps.certificates()
    if history.moving:
        certificates += bodies.certificates()
    certificates += [*tool.certificates(), *led.certificates(history)]
    certificates += [*force.certificates(history), *planes.certificates(history), *told.certificates(history)]
    first_tick, last_tick = int(history.ticks[0]), int(history.ticks[-1])
    return Verification(str(log.path), first_tick, last_tick, len(history), step, certificates, log.explanation)


def _tightest(history: History) -> list[int]:
    """Rows at which the engine itself saw the least gaps and left most undone, or stopped bodies."""
    report = history.report
    found: list[int] = []
    for values in (
        np.where(report["contact_count"] > 0, report["smallest_gap"], np.inf),
        np.where(report["body_contacts"] > 0, report["body_gap"], np.inf),
        np.where(report["body_residual"] > 0.0, -report["body_residual"], np.inf),
        np.where(report["stopped"] > 0, -report["stopped"], np.inf),
    ):
        some = np.flatnonzero(np.isfinite(values))
        found += some[np.argsort(values[some], kind="stable")[:TIGHTEST]].tolist()
    return found


def _step(history: History, neighbours: Neighbours) -> int:
    """Ticks from one that is judged to the next, by the work that there is."""
    sizes = [len(shape.triangles) for shape in history.shapes]
    work = len(history) * sum(PAIR + TRIANGLE * (sizes[i] + sizes[k]) for i, k in neighbours.pairs)
    return max(1, -(-work // WORK))
