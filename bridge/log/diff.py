"""Comparing two logs, aligned by tick: where they part, and what that means for the force."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bridge.log.fields import describe_value, differing_bytes, first_difference
from bridge.log.reader import Log, LogError, read_log
from haptics.states import EngagementState

ONSET_N = 0.05
"""Norm of the force from which the hand counts as feeling something, N."""

_COMPARED = ("input", "budget", "output")
"""In the order of a tick; timing is measured and always differs."""


@dataclass(frozen=True)
class FieldDifference:
    """The first place where two logs differ."""

    tick: int
    field: str
    """Path in RECORD, such as ``input.sample.position[0]``."""
    first: Any
    second: Any

    def __str__(self) -> str:
        return f"tick {self.tick}, {self.field}: {describe_value(self.first)} and {describe_value(self.second)}"


@dataclass(frozen=True)
class Pair:
    """One figure of both logs."""

    first: float | None
    second: float | None

    @property
    def difference(self) -> float | None:
        """Second minus first; None where one has no such figure."""
        return None if self.first is None or self.second is None else self.second - self.first


@dataclass(frozen=True)
class Comparison:
    """Result of :func:`compare`; figures are over the ticks that both logs hold."""

    ticks: int
    ticks_only_first: int
    ticks_only_second: int
    ticks_differing: int
    """Ticks whose input, budget or output differs in any bit."""
    difference: FieldDifference | None
    force_rms_difference: float
    """Root mean square of the norm of the force difference, N."""
    force_max_difference: float
    """Largest norm of the force difference, N."""
    force_rms: Pair
    force_peak: Pair
    onset_s: Pair
    """First time, from the first common tick, at which the force reaches the threshold; None when it never does."""
    contacts_mean: Pair
    """Contacts per tick."""
    ticks_with_other_contact_count: int
    body_energy: Pair
    """Mean energy of the free bodies, J; None without bodies that move."""
    body_energy_max_difference: float | None
    """Largest difference of it in a tick, J."""
    body_contacts_mean: Pair
    """Contacts of bodies with each other, per tick."""
    states_first: list[tuple[int, str]]
    """(tick, state) at the start and at every change."""
    states_second: list[tuple[int, str]]

    @property
    def same(self) -> bool:
        """True when both logs hold the same ticks and these are the same to the bit, timing excluded."""
        return not (self.ticks_differing or self.ticks_only_first or self.ticks_only_second)

    @property
    def same_states(self) -> bool:
        """True when both went through the same states at the same ticks."""
        return self.states_first == self.states_second

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        values = asdict(self)
        for name in ("force_rms", "force_peak", "onset_s", "contacts_mean", "body_energy", "body_contacts_mean"):
            values[name]["difference"] = getattr(self, name).difference
        return {**values, "same": self.same, "same_states": self.same_states}

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the result as lines for a terminal."""
        only = f" ({self.ticks_only_first} only in the first, {self.ticks_only_second} only in the second)"
        lines = [f"{self.ticks} common ticks{only if self.ticks_only_first or self.ticks_only_second else ''}"]
        if self.difference is None:
            return [*lines, "inputs, budgets and outputs are the same to the bit"]
        lines.append(f"{self.ticks_differing} ticks differ; first {self.difference}")
        lines.append(
            f"force          rms of the difference {self.force_rms_difference:.4g} N, "
            f"largest {self.force_max_difference:.4g} N"
        )
        for label, pair, unit in (
            ("force rms", self.force_rms, "N"),
            ("force peak", self.force_peak, "N"),
            ("force onset", self.onset_s, "s"),
            ("contacts", self.contacts_mean, "per tick"),
        ):
            lines.append(f"{label:<14} {_figure(pair.first)} and {_figure(pair.second)} {unit}{_delta(pair)}")
        lines.append(f"contact count  differs in {self.ticks_with_other_contact_count} ticks")
        for label, pair, unit in (
            ("body energy", self.body_energy, "J"),
            ("body contacts", self.body_contacts_mean, "per tick"),
        ):
            if pair.difference is not None:
                lines.append(f"{label:<14} {_figure(pair.first)} and {_figure(pair.second)} {unit}{_delta(pair)}")
        if self.body_energy_max_difference is not None:
            lines.append(f"body energy    largest difference in a tick {self.body_energy_max_difference:.4g} J")
        if self.same_states:
            lines.append(f"states         the same: {_states(self.states_first)}")
        else:
            lines.append(f"states         first: {_states(self.states_first)}")
            lines.append(f"               second: {_states(self.states_second)}")
        return lines


def _figure(value: float | None) -> str:
    return "never" if value is None else f"{value:.4g}"


def _delta(pair: Pair) -> str:
    return "" if pair.difference is None else f" ({pair.difference:+.4g})"


def _states(states: list[tuple[int, str]], most: int = 12) -> str:
    text = ", ".join(f"{name} at {tick}" for tick, name in states[:most])
    return text + (f", and {len(states) - most} more" if len(states) > most else "")


def compare(first: Log | str | os.PathLike[str], second: Log | str | os.PathLike[str]) -> Comparison:
    """Compare two logs tick by tick.

    Raises LogError when one cannot be read or they have no tick in common.
    """
    a = first if isinstance(first, Log) else read_log(first)
    b = second if isinstance(second, Log) else read_log(second)
    moving = bool(a.body_ids or b.body_ids)
    result = compare_records(a.records, b.records, period_s=_configured_period_s(a), moving=moving)
    if result is None:
        raise LogError(f"{a.path} and {b.path} have no tick in common: {_range(a)}, {_range(b)}")
    return result


def _range(log: Log) -> str:
    ticks = log.records["tick"]
    return f"{log.path.name} holds ticks {ticks[0]} to {ticks[-1]}" if len(ticks) else f"{log.path.name} holds no tick"


def compare_records(
    first: np.ndarray, second: np.ndarray, period_s: float | None = None, *, moving: bool = False
) -> Comparison | None:
    """Compare two arrays of RECORD by tick; None when they have no tick in common.

    ``period_s`` is the tick period that onset times are counted in; without it the median of the planned times serves.
    ``moving``: there are bodies that move, whose states are compared by their digest.
    """
    _, in_a, in_b = np.intersect1d(first["tick"], second["tick"], assume_unique=False, return_indices=True)
    if not len(in_a):
        return None
    a, b = first[in_a], second[in_b]
    differs = np.zeros(len(a), dtype=bool)
    for part in _COMPARED:
        differs |= differing_bytes(a[part], b[part]).any(axis=1)
    difference = None
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        for part in _COMPARED:
            found = first_difference(a[part][row : row + 1], b[part][row : row + 1], part)
            if found is not None:
                difference = FieldDifference(int(a["tick"][row]), *found)
                break
    with np.errstate(all="ignore"):  # forces that are not finite give figures that are not; the bits are compared above
        return _figures(first, second, a, b, differs, difference, period_s, moving)


def _figures(
    first: np.ndarray,
    second: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    differs: np.ndarray,
    difference: FieldDifference | None,
    period_s: float | None,
    moving: bool,
) -> Comparison:
    """Work out the figures over the common ticks ``a`` and ``b``."""
    force_a, force_b = a["output"]["wrench"][:, :3], b["output"]["wrench"][:, :3]
    norm_a, norm_b = np.linalg.norm(force_a, axis=1), np.linalg.norm(force_b, axis=1)
    apart = np.linalg.norm(force_b - force_a, axis=1)
    contacts_a, contacts_b = (x["output"]["report"]["contact_count"] for x in (a, b))
    energy_a, energy_b = (x["output"]["report"]["energy"] for x in (a, b))
    touching_a, touching_b = (x["output"]["report"]["body_contacts"] for x in (a, b))
    none = Pair(None, None)
    return Comparison(
        ticks=len(a),
        ticks_only_first=len(first) - len(a),
        ticks_only_second=len(second) - len(b),
        ticks_differing=int(np.count_nonzero(differs)),
        difference=difference,
        force_rms_difference=_rms(apart),
        force_max_difference=float(apart.max()),
        force_rms=Pair(_rms(norm_a), _rms(norm_b)),
        force_peak=Pair(float(norm_a.max()), float(norm_b.max())),
        onset_s=Pair(_onset(a, norm_a, period_s), _onset(b, norm_b, period_s)),
        contacts_mean=Pair(float(contacts_a.mean()), float(contacts_b.mean())),
        ticks_with_other_contact_count=int(np.count_nonzero(contacts_a != contacts_b)),
        body_energy=Pair(float(energy_a.mean()), float(energy_b.mean())) if moving else none,
        body_energy_max_difference=float(np.abs(energy_b - energy_a).max()) if moving else None,
        body_contacts_mean=Pair(float(touching_a.mean()), float(touching_b.mean())) if moving else none,
        states_first=state_sequence(a),
        states_second=state_sequence(b),
    )


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _onset(records: np.ndarray, force: np.ndarray, period_s: float | None) -> float | None:
    """Time of the first force, counted in ticks: the lateness of a clock is not part of what the tick did."""
    felt = np.flatnonzero(force >= ONSET_N)
    if not felt.size:
        return None
    ticks = records["tick"].astype(np.int64)
    if period_s is None:
        steps = np.diff(records["timing"]["planned_ns"]) / np.diff(ticks)
        period_s = float(np.median(steps)) * 1e-9 if len(steps) else 0.0
    return float(ticks[felt[0]] - ticks[0]) * period_s


def _configured_period_s(log: Log) -> float | None:
    try:
        return float(log.settings["dt"][0])
    except LogError:
        return None  # a log cut off before its settings still has planned times


def state_sequence(records: np.ndarray) -> list[tuple[int, str]]:
    """Return (tick, name of the state) for the first record and for every change of state."""
    states = records["output"]["state"]
    known = {int(state): state.name for state in EngagementState}
    changes = [0, *(np.flatnonzero(np.diff(states)) + 1).tolist()] if len(states) else []
    return [(int(records["tick"][row]), known.get(int(states[row]), str(states[row]))) for row in changes]
