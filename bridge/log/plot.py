"""A picture of a run: engagement, force, penetration, tick time and lateness over time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.log.reader import Log, LogError, read_log
from haptics.states import EngagementState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1f2933"
QUIET = "#8a97a6"
RULE = "#e3e8ee"
NORM = "#1f2933"
AXES = ("#d1495b", "#3a8f5c", "#2f6fb5")
CONTACT = "#7b5ea7"
TIME = "#2f6fb5"
LATE = "#c77d18"

STATE_COLOURS = {
    EngagementState.IDLE: "#dfe5ec",
    EngagementState.ARMED: "#f2d98b",
    EngagementState.ENGAGING: "#a9d5b5",
    EngagementState.ACTIVE: "#3a8f5c",
    EngagementState.HOLD: "#e79a4b",
    EngagementState.RELEASING: "#a5b8dc",
    EngagementState.FAULT: "#c9394a",
}

STYLE: dict[str, Any] = {
    "font.size": 9.5,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": "white",
    "path.simplify": True,
}

_POINTS = 4000
"""Points drawn per line: above that, the smallest and largest of each bin, so that no peak is lost."""


def plot_log(log: Log | str | os.PathLike[str], path: str | os.PathLike[str], *, title: str | None = None) -> Path:
    """Write a PNG of a run and return its path.

    Raises LogError when the log cannot be read or holds no tick, OSError when the file cannot be written.
    """
    log = log if isinstance(log, Log) else read_log(log)
    if not len(log.records):
        raise LogError(log.explanation or f"{log.path} holds no ticks")
    path = Path(path)
    plot_records(log.records, path, title=title or log.path.name, remark=log.explanation, moving=bool(log.body_ids))
    return path


def plot_records(records: np.ndarray, path: Path, *, title: str, remark: str = "", moving: bool = False) -> None:
    """Write a PNG of records (n,) RECORD, n >= 1; ``remark`` is printed below the title.

    ``moving``: there are bodies that move, whose energy and contacts are drawn too.
    """
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib.figure import Figure

    # Forces that are not finite, or too large to square, are drawn as far as they can be.
    with matplotlib.rc_context(STYLE), np.errstate(over="ignore", invalid="ignore"):  # type: ignore[arg-type]
        figure = Figure(figsize=(12, 11.4 if moving else 9.6), dpi=130, layout="constrained")
        figure.get_layout_engine().set(h_pad=0.07, w_pad=0.08, hspace=0.02)  # type: ignore[union-attr,call-arg]
        heights = [0.16, 1.25, 1.0, *([0.95] if moving else []), 0.95, 0.85]
        grid = figure.add_gridspec(len(heights), 2, height_ratios=heights)
        band = figure.add_subplot(grid[0, :])
        force, depth, *bodies, spent = (
            figure.add_subplot(grid[row, :], sharex=band) for row in range(1, len(heights) - 1)
        )
        late, times = figure.add_subplot(grid[-1, 0]), figure.add_subplot(grid[-1, 1])
        seconds = _seconds(records)
        _heading(figure, records, title, remark)
        _band(band, records, seconds)
        _force(force, records, seconds)
        _depth(depth, records, seconds)
        for axes in bodies:
            _bodies(axes, records, seconds)
        _tick_time(spent, records, seconds)
        for axes in (band, force, depth, *bodies):
            axes.tick_params(labelbottom=False, bottom=False)
        end = float(seconds[-1]) if seconds[-1] > 0 else 1.0
        band.set_xlim(0.0, end)
        spent.set_xlabel("time, s")
        _histogram(late, _lateness_us(records), "lateness of the tick's start, µs", LATE)
        _histogram(times, _spent_us(records), "tick time, µs", TIME)
        late.set_ylabel("ticks")
        figure.savefig(path, format="png")


def _seconds(records: np.ndarray) -> np.ndarray:
    started = records["timing"]["started_ns"]
    return (started - started[0]) * 1e-9


def _lateness_us(records: np.ndarray) -> np.ndarray:
    return (records["timing"]["started_ns"] - records["timing"]["planned_ns"]) * 1e-3


def _spent_us(records: np.ndarray) -> np.ndarray:
    return (records["timing"]["computed_ns"] - records["timing"]["started_ns"]) * 1e-3


def _heading(figure: Any, records: np.ndarray, title: str, remark: str) -> None:
    ticks, force = records["tick"], np.linalg.norm(records["output"]["wrench"][:, :3], axis=1)
    facts = (
        f"ticks {ticks[0]} to {ticks[-1]}  ·  {_seconds(records)[-1]:.2f} s  ·  "
        f"largest force {force.max():.2f} N  ·  periods missed {int(records['timing']['missed'].sum())}"
    )
    figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold")
    figure.text(0.988, 0.985, facts, ha="right", va="top", color=QUIET, fontsize=9.5)
    if remark:
        figure.supxlabel(remark, x=0.012, ha="left", fontsize=9, color=STATE_COLOURS[EngagementState.FAULT])


def _thin(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points to draw: all, or the smallest and the largest of each of many bins, in their order."""
    if len(x) <= _POINTS:
        return x, y
    edges = np.linspace(0, len(x), _POINTS // 2 + 1).astype(np.int64)[:-1]
    size = np.diff(np.append(edges, len(x)))
    low, high = np.minimum.reduceat(y, edges), np.maximum.reduceat(y, edges)
    rising = y[edges] <= y[edges + size - 1]
    xs = np.column_stack((x[edges], x[edges + size // 2])).ravel()
    ys = np.where(rising[:, None], np.column_stack((low, high)), np.column_stack((high, low))).ravel()
    return xs, ys


def line(axes: Axes, x: np.ndarray, y: np.ndarray, **style: Any) -> None:
    axes.plot(*_thin(x, y), solid_joinstyle="round", **style)


def label(axes: Axes, text: str, unit: str) -> None:
    axes.set_ylabel(unit)
    axes.set_title(text, loc="left", fontsize=10.5, fontweight="bold", pad=5)


def legend(axes: Axes) -> None:
    axes.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=6, frameon=False, fontsize=9, borderaxespad=0.1,
        handlelength=1.4, columnspacing=1.3,
    )  # fmt: skip


def _band(axes: Axes, records: np.ndarray, seconds: np.ndarray) -> None:
    from matplotlib.patches import Patch

    states = records["output"]["state"]
    starts = np.concatenate(([0], np.flatnonzero(np.diff(states)) + 1))
    end = seconds[-1] + (seconds[-1] - seconds[-2] if len(seconds) > 1 else 1.0)
    edges = np.append(seconds[starts], end)
    known = {int(state): state for state in EngagementState}
    colours = [STATE_COLOURS[known[number]] if number in known else INK for number in states[starts].tolist()]
    axes.broken_barh(list(zip(edges[:-1], np.diff(edges), strict=True)), (0.0, 1.0), facecolors=colours, lw=0)
    axes.set_ylim(0.0, 1.0)
    seen = [known[number] for number in dict.fromkeys(states[starts].tolist()) if number in known]
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    label(axes, "Engagement", "")
    handles = [Patch(color=STATE_COLOURS[state], label=state.name.lower()) for state in seen]
    axes.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=7, frameon=False, fontsize=9,
        borderaxespad=0.1, handlelength=1.0, handleheight=0.9, columnspacing=1.2,
    )  # fmt: skip


def _force(axes: Axes, records: np.ndarray, seconds: np.ndarray) -> None:
    force = records["output"]["wrench"][:, :3]
    for index, (name, colour) in enumerate(zip("xyz", AXES, strict=True)):
        line(axes, seconds, force[:, index], color=colour, lw=1.0, label=name)
    line(axes, seconds, np.linalg.norm(force, axis=1), color=NORM, lw=1.5, label="norm")
    saturated = (records["output"]["limited"] & 1) != 0
    if saturated.any():
        _shade(axes, seconds, saturated, "saturated", STATE_COLOURS[EngagementState.FAULT])
    label(axes, "Force at the device", "N")
    legend(axes)


def _shade(axes: Axes, seconds: np.ndarray, where: np.ndarray, label: str, colour: str) -> None:
    """Shade the spans of ticks where ``where`` holds, over the whole height."""
    edges = np.diff(np.concatenate(([0], where.astype(np.int8), [0])))
    first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    spans = list(zip(seconds[first], seconds[last] - seconds[first], strict=True))
    if spans:
        height = axes.get_xaxis_transform()
        axes.broken_barh(spans, (0.0, 1.0), transform=height, color=colour, alpha=0.12, lw=0, label=label)


def _depth(axes: Axes, records: np.ndarray, seconds: np.ndarray) -> None:
    output = records["output"]
    apart = np.linalg.norm(output["device_position"] - output["proxy_position"], axis=1) * 1e3
    # Before the first sample there is no device to be apart from.
    apart = np.where(records["input"]["has_sample"] != 0, apart, np.nan)
    line(axes, seconds, apart, color=INK, lw=1.3, label="device image to proxy")
    _shade(axes, seconds, output["report"]["contact_count"] > 0, "tip in contact", CONTACT)
    axes.set_ylim(bottom=0.0)
    label(axes, "Penetration of the device image", "mm (scene)")
    legend(axes)


def _bodies(axes: Axes, records: np.ndarray, seconds: np.ndarray) -> None:
    """Energy of the free bodies, and on the right how many contacts bodies have with each other."""
    report = records["output"]["report"]
    right = axes.twinx()
    right.spines[:].set_visible(False)
    right.grid(visible=False)
    right.set_ylabel("contacts")
    line(right, seconds, report["body_contacts"].astype(float), color=CONTACT, lw=0.9, alpha=0.8)
    top = max(float(report["body_contacts"].max()), 1.0)
    right.set_ylim(0.0, 1.15 * top)
    line(axes, seconds, report["energy"], color=INK, lw=1.3, label="energy, J")
    axes.plot([], [], color=CONTACT, lw=0.9, label="contacts with each other")
    _shade(axes, seconds, report["stopped"] > 0, "some stopped early", LATE)
    label(axes, "Bodies that move", "J")
    legend(axes)


def _tick_time(axes: Axes, records: np.ndarray, seconds: np.ndarray) -> None:
    spent = _spent_us(records)
    p50, p99 = np.percentile(spent, (50, 99))
    line(axes, seconds, spent, color=TIME, lw=0.8, alpha=0.85, label="started to computed")
    axes.axhline(p50, color=INK, lw=1.0, ls=(0, (4, 3)), label=f"p50 {p50:.0f}")
    axes.axhline(p99, color=LATE, lw=1.0, ls=(0, (4, 3)), label=f"p99 {p99:.0f}")
    missed = np.flatnonzero(records["timing"]["missed"])
    # One outlier must not flatten everything else: what is beyond the axis is told.
    top = max(1.4 * float(np.percentile(spent, 99.9)), 1.1 * float(p99), 1.0)
    axes.set_ylim(0.0, top)
    if missed.size:
        colour = STATE_COLOURS[EngagementState.FAULT]
        axes.plot(seconds[missed], np.full(missed.size, 0.97 * top), "v", ms=5, color=colour, label="period missed")
    label(axes, f"Tick time (largest {spent.max():.0f} µs)", "µs")
    legend(axes)


def _histogram(axes: Axes, values: np.ndarray, label: str, colour: str) -> None:
    p50, p99, p999, top = np.percentile(values, (50, 99, 99.9, 100))
    low = min(float(values.min()), 0.0)
    high = max(float(p999) * 1.15, low + 1.0)
    axes.hist(np.clip(values, low, high), bins=60, range=(low, high), color=colour, alpha=0.85, lw=0)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7)
    axes.set_xlim(low, high)
    axes.grid(visible=False, axis="x")
    axes.set_title(
        f"p50 {p50:.1f}   p99 {p99:.1f}   p99.9 {p999:.1f}   max {top:.1f}", loc="right", fontsize=9, color=QUIET
    )
    axes.set_xlabel(label + (" (last bar: all beyond)" if top > high else ""))
