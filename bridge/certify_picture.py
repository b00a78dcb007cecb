"""The plane of damping and stiffness of a certified device as a PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from haptics.cards import DeviceCard
from haptics.certified import CertifiedRow
from haptics.certify import HANDS, HIGHEST, LOWEST
from haptics.certify_loop import Body
from haptics.hands import DeviceDynamics
from haptics.stability import delayed_stiffness, passive_stiffness

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_COLOURS = {"held": "#2f6fb5", "light": "#3a8f5c", "none": "#d1495b"}
_INK = "#1f2933"
_STROKE: dict[bool, Any] = {True: "-", False: "--"}
_DELAYED: Any = ":"
_PASSIVE: Any = (0, (6, 2, 1, 2))
_WORDS = {"held": "held", "light": "held lightly", "none": "hands off"}
_TITLES = {"wall": "pressed against a wall", "clamp": "held between two walls"}
_STYLE: dict[str, Any] = {
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dfe5ec",
    "savefig.facecolor": "white",
}


def draw(card: DeviceCard, rows: Sequence[CertifiedRow], path: Path) -> None:
    """Write a PNG: per scene the stable region of each hand, the bounds by theory and what the card allows.

    Of several delays a row of panels each.

    Raises OSError.
    """
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):  # type: ignore[arg-type]
        scenes = list(dict.fromkeys(row.scene for row in rows))
        delays = sorted({row.delay_ticks for row in rows})
        figure = Figure(figsize=(10, 1.3 + 3.1 * len(delays)), dpi=90, layout="constrained")
        grid = figure.subplots(len(delays), len(scenes), sharex=True, sharey=True, squeeze=False)
        for delay, line in zip(delays, grid, strict=True):
            for scene, axes in zip(scenes, line, strict=True):
                _panel(axes, card, [row for row in rows if row.scene == scene and row.delay_ticks == delay])
                axes.set_title(f"{_TITLES[scene]}, delay of {delay} {'tick' if delay == 1 else 'ticks'}", loc="left")
            line[0].set_ylabel("stiffness K, N/m")
        for axes in grid[-1]:
            axes.set_xlabel("damping B, N·s/m")
        figure.legend(handles=_legend(card, rows), loc="outside lower center", ncols=4, frameon=False, fontsize=8.5)
        figure.suptitle(f"{card.model}: stable stiffness at {rows[0].rate:g} Hz", x=0.01, ha="left")
        figure.savefig(path, format="png")


def _legend(card: DeviceCard, rows: Sequence[CertifiedRow]) -> list[Artist]:
    """Colours are hands, strokes are what a line is."""
    from matplotlib.lines import Line2D

    hands = [
        Line2D([], [], color=colour, linewidth=5, alpha=0.6, label=_WORDS[hand])
        for hand, colour in _COLOURS.items()
        if hand in {row.hand for row in rows}
    ]
    strokes = {_STROKE[row.passivity]: f"limit, passivity {'on' if row.passivity else 'off'}" for row in rows}
    strokes |= {_DELAYED: "(b + B) / (T/2 + delay), Gil et al.", _PASSIVE: "passive, Colgate and Schenkel"}
    lines = [Line2D([], [], color=_INK, linestyle=stroke, label=name) for stroke, name in strokes.items()]
    star = Line2D([], [], color=_INK, marker="*", markersize=11, linestyle="none", label="the card's limits")
    return [*hands, *lines, *([star] if card.stiffness_max is not None else [])]


def _panel(axes: Axes, card: DeviceCard, rows: Sequence[CertifiedRow]) -> None:
    floor, ceiling = 10.0**LOWEST, 10.0**HIGHEST
    widest = max(row.damping[-1] for row in rows)
    for row in rows:
        limit = np.maximum(row.stiffness_limit, floor)
        if row.passivity:
            axes.fill_between(row.damping, floor, limit, color=_COLOURS[row.hand], alpha=0.1, linewidth=0)
        axes.plot(
            row.damping, limit, color=_COLOURS[row.hand], linestyle=_STROKE[row.passivity], marker="o", markersize=3
        )
    damping = np.linspace(0.0, widest, 400)
    for hand in dict.fromkeys(row.hand for row in rows):
        body = Body.of(HANDS[hand], DeviceDynamics.from_card(card))
        friction = body.damping + body.viscous
        period, delay = 1.0 / rows[0].rate, rows[0].delay_ticks / rows[0].rate
        delayed = np.array([delayed_stiffness(friction, each, period, delay) for each in damping])
        passive = np.array([passive_stiffness(friction, each, period) for each in damping])
        axes.plot(damping, delayed, color=_COLOURS[hand], linewidth=1.0, linestyle=_DELAYED)
        axes.plot(damping, np.maximum(passive, 1e-3), color=_COLOURS[hand], linewidth=1.0, linestyle=_PASSIVE)
    if card.stiffness_max is not None:
        at = card.damping_max if card.damping_max is not None else widest
        axes.plot([at], [card.stiffness_max], marker="*", markersize=13, color=_INK, linestyle="none", clip_on=False)
    axes.set_yscale("log")
    axes.set_ylim(floor, ceiling)
    axes.set_xlim(0.0, widest)
