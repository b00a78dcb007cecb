"""A picture of two hands on a link: where they are, what they feel, and who has put in or got how much energy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bridge.log.plot import AXES, INK, LATE, QUIET, STYLE, label, legend, line
from haptics.link_codes import UP

COLOURS = (AXES[2], AXES[0])


class Together(NamedTuple):
    """Two runs on one clock: arrays (2, n, ...) by end, at the first one's ticks."""

    seconds: np.ndarray
    """(n,) since both began."""
    place: np.ndarray
    """(2, n, 3) m, of the hands' images."""
    force: np.ndarray
    """(2, n, 3) N, of the link, device axes."""
    energy: np.ndarray
    """(2, n) J handed to each hand by the link."""
    credit: np.ndarray
    """(2, n) J left at each end."""
    state: np.ndarray
    """(2, n) LinkState."""

    @property
    def up(self) -> np.ndarray:
        """(n,) whether both ends were."""
        return np.asarray((self.state == UP).all(axis=0))


def together(records: Sequence[np.ndarray]) -> Together:
    """Bring two runs (n,) RECORD of one machine's clock onto the ticks of the first. Raises ValueError: no overlap."""
    started = [each["timing"]["started_ns"] for each in records]
    begin, end = max(int(each[0]) for each in started), min(int(each[-1]) for each in started)
    inside = (started[0] >= begin) & (started[0] <= end)
    if not inside.any():
        raise ValueError("the two logs do not overlap in time")
    at = [np.flatnonzero(inside), np.searchsorted(started[1], started[0][inside])]
    outputs = [each["output"][rows] for each, rows in zip(records, at, strict=True)]
    return Together(
        (started[0][inside] - begin) * 1e-9,
        np.stack([each["device_position"] for each in outputs]),
        np.stack([each["link"]["wrench"][:, :3] for each in outputs]),
        np.stack([each["link"]["energy"] for each in outputs]),
        np.stack([each["link"]["credit"] for each in outputs]),
        np.stack([each["link"]["state"] for each in outputs]),
    )


def plot_link(logs: Sequence[Any], path: Path, *, names: Sequence[str], title: str) -> Path:
    """Write a PNG of two logs (:class:`bridge.log.reader.Log`) of the ends of a link; returns its path."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib.figure import Figure

    run = together([log.records for log in logs])
    settings = [log.settings[0]["link"] for log in logs]
    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(12, 9.6), dpi=130, layout="constrained")
        figure.get_layout_engine().set(h_pad=0.07, w_pad=0.08, hspace=0.02)  # type: ignore[union-attr,call-arg]
        along, up, force, energy = figure.subplots(4, 1, sharex=True)
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
        for axes, axis, text in ((along, 0, "Where the hands are, sideways"), (up, 2, "Where they are, upwards")):
            for k in range(2):
                line(axes, run.seconds, 1e3 * run.place[k, :, axis], color=COLOURS[k], lw=1.4, label=names[k])
            label(axes, text, "mm (scene)")
            legend(axes)
        for k in range(2):
            size = np.linalg.norm(run.force[k], axis=1)
            line(force, run.seconds, size, color=COLOURS[k], lw=1.2, label=names[k])
        label(force, "What each feels of the other", "N")
        legend(force)
        _energy(energy, run, names, sum(float(each["tank"]) for each in settings))
        energy.set_xlabel("time, s")
        began = float(run.seconds[int(np.argmax(run.up))])
        energy.set_xlim(max(began - 0.5, 0.0), float(run.seconds[-1]) or 1.0)
        figure.savefig(path, format="png")
    return path


def _energy(axes: Any, run: Together, names: Sequence[str], begun: float) -> None:
    for k in range(2):
        line(axes, run.seconds, 1e3 * run.energy[k], color=COLOURS[k], lw=1.2, label=f"to the {names[k]} hand")
    line(axes, run.seconds, 1e3 * run.energy.sum(axis=0), color=INK, lw=1.8, label="to both")
    axes.axhline(1e3 * begun, color=LATE, lw=1.0, ls=(0, (4, 3)), label="the most a passive link can give")
    axes.axhline(0.0, color=QUIET, lw=0.8)
    label(axes, "Energy that the link has given", "mJ")
    legend(axes)
