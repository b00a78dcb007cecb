"""Certified rows of a device card: the largest stable stiffness by damping, for a hand in a scene."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from itertools import pairwise
from typing import Any

WORDS = {"by": ("simulated", "measured"), "hand": ("held", "light", "none"), "scene": ("wall", "clamp")}
MOST_DELAY = 100
"""Ticks."""


@dataclass(frozen=True)
class CertifiedRow:
    """One boundary in the plane of stiffness and damping, and what it holds for."""

    by: str
    """``simulated``: a hand of the project at the card's mechanism; ``measured``: a device at a running daemon."""
    hand: str
    """``held``, ``light`` or ``none``: nobody touches the device."""
    scene: str
    """``wall``: pressed against a plane; ``clamp``: held between two."""
    passivity: bool
    """Whether the passivity controller was on."""
    rate: float
    """Hz, of the tick."""
    delay_ticks: int
    """By which a wrench reaches the motors late, on top of being held for a tick."""
    damping: tuple[float, ...]
    """N·s/m at the device, rising."""
    stiffness_limit: tuple[float, ...]
    """N/m at the device, one per damping: up to here it was stable at all that was tried; 0 where nothing was."""

    @property
    def key(self) -> tuple[str, str, str, bool, float, int]:
        """What makes a row another one than the others of its card."""
        return (self.by, self.hand, self.scene, self.passivity, self.rate, self.delay_ticks)

    @property
    def title(self) -> str:
        """The row in words, for a sentence."""
        passivity = f"passivity {'on' if self.passivity else 'off'}"
        return f"{self.by}, {self.hand}, {self.scene}, {passivity}, {self.rate:g} Hz, delay {self.delay_ticks}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for TOML, JSON or msgpack."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def read_rows(where: str, values: Any) -> tuple[CertifiedRow, ...]:
    """Rows from plain values as TOML or JSON gives them. Raises ValueError whose text starts with ``where``."""
    if not isinstance(values, list | tuple) or not all(isinstance(each, Mapping) for each in values):
        raise ValueError(f"{where}: certified = {values!r} will not do; tables [[certified]] are needed")
    rows: list[CertifiedRow] = []
    for number, each in enumerate(values, start=1):
        row = _row(f"{where}: certified row {number}", each)
        if row.key in [other.key for other in rows]:
            raise ValueError(f"{where}: certified row {number} repeats an earlier one ({row.title}); one is enough")
        rows.append(row)
    return tuple(rows)


def limit_at(row: CertifiedRow, damping: float) -> float | None:
    """The row's limit (N/m) at a damping (N·s/m): the smaller one of the neighbours between which it lies.

    None outside of the row's dampings: nothing was tried there, and less damping may be stable to much less.
    """
    if not row.damping[0] <= damping <= row.damping[-1]:
        return None
    below = [limit for at, limit in zip(row.damping, row.stiffness_limit, strict=True) if at <= damping]
    above = [limit for at, limit in zip(row.damping, row.stiffness_limit, strict=True) if at >= damping]
    return min([*below[-1:], *above[:1]])


def rows_for(
    rows: Iterable[CertifiedRow], *, hand: str, delay_ticks: int, passivity: bool, rate: float = 1000.0
) -> list[CertifiedRow]:
    """The rows that hold for that, simulated or measured, in any scene."""
    wanted = (hand, passivity, rate, delay_ticks)
    return [row for row in rows if (row.hand, row.passivity, row.rate, row.delay_ticks) == wanted]


def lowest_limit(rows: Iterable[CertifiedRow], damping: float) -> float | None:
    """The lowest limit (N/m) that any of the rows says at a damping (N·s/m); None where none says one."""
    limits = [limit_at(row, damping) for row in rows]
    return min((limit for limit in limits if limit is not None), default=None)


def certified_stiffness(
    rows: Iterable[CertifiedRow],
    damping: float,
    *,
    hand: str,
    delay_ticks: int,
    passivity: bool,
    rate: float = 1000.0,
) -> float | None:
    """The lowest limit (N/m) at a damping (N·s/m) among the rows for that; None where no row says one."""
    for_that = rows_for(rows, hand=hand, delay_ticks=delay_ticks, passivity=passivity, rate=rate)
    return lowest_limit(for_that, damping)


def _row(where: str, values: Mapping[str, Any]) -> CertifiedRow:
    known = [field.name for field in fields(CertifiedRow) if field.default is MISSING]
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"{where}: unknown key {key!r}{hint}")
    for key in known:
        if key not in values:
            raise ValueError(f"{where}: key {key!r} is missing; {_wanted(key)} is needed")
        if not _good(key, values[key]):
            raise ValueError(f"{where}: {key} = {values[key]!r} will not do; {_wanted(key)} is needed")
    damping, limits = values["damping"], values["stiffness_limit"]
    if len(damping) != len(limits):
        raise ValueError(
            f"{where}: damping has {len(damping)} numbers and stiffness_limit {len(limits)}; "
            f"each damping needs one stiffness_limit"
        )
    return CertifiedRow(
        by=values["by"],
        hand=values["hand"],
        scene=values["scene"],
        passivity=values["passivity"],
        rate=float(values["rate"]),
        delay_ticks=values["delay_ticks"],
        damping=tuple(float(each) for each in damping),
        stiffness_limit=tuple(float(each) for each in limits),
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max


def _good(key: str, value: Any) -> bool:
    if key in WORDS:
        return isinstance(value, str) and value in WORDS[key]
    if key == "passivity":
        return isinstance(value, bool)
    if key == "delay_ticks":
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_DELAY
    if key == "rate":
        return _number(value) and value > 0
    if not isinstance(value, list | tuple) or not value or not all(_number(each) for each in value):
        return False
    return key != "damping" or all(a < b for a, b in pairwise(value))


def _wanted(key: str) -> str:
    if key in WORDS:
        *some, last = (repr(word) for word in WORDS[key])
        return f"{', '.join(some)} or {last}"
    return {
        "passivity": "true or false",
        "delay_ticks": f"a whole number from 0 to {MOST_DELAY}",
        "rate": "a finite number above 0",
        "damping": "a list of rising numbers, 0 or more",
        "stiffness_limit": "a list of numbers, 0 or more",
    }[key]
