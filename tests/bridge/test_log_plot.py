"""The picture of a run shows every peak and is written for odd runs too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from log_samples import plausible_records, random_records, write_log
from matplotlib.image import imread

from bridge.log.plot import _thin, plot_log, plot_records
from bridge.log.reader import LogError


def test_a_log_becomes_a_picture_with_something_on_it(tmp_path: Path):
    log = write_log(tmp_path / "a.mcap", plausible_records(2000))
    picture = imread(plot_log(log, tmp_path / "a.png"))
    assert picture.shape[0] > 1000 and picture.shape[1] > 1400
    inked = (picture[..., :3] < 0.9).any(axis=2)
    for row in np.array_split(inked, 6):  # every panel has drawn something
        assert row.mean() > 0.003


@pytest.mark.parametrize("count", [1, 2])
def test_short_runs_are_drawn_too(tmp_path: Path, count: int):
    plot_records(plausible_records(count), tmp_path / "a.png", title="short")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_a_wild_run_is_drawn_too(tmp_path: Path):
    wild = plausible_records(50)
    wild["output"]["state"] = 77
    wild["output"]["wrench"] = 1e300
    wild["output"]["wrench"][20:30] = np.nan
    wild["output"]["wrench"][30:40] = -np.inf
    wild["timing"]["missed"] = 1
    plot_records(wild, tmp_path / "a.png", title="wild", remark="read up to tick 3")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_bodies_that_move_get_a_panel(tmp_path: Path):
    records = plausible_records(500)
    report = records["output"]["report"]
    report["energy"] = np.cos(np.arange(500) * 0.02)
    report["body_contacts"][100:] = 7
    report["stopped"][200:220] = 1
    plot_records(records, tmp_path / "without.png", title="a")
    plot_records(records, tmp_path / "with.png", title="a", moving=True)
    without, picture = imread(tmp_path / "without.png"), imread(tmp_path / "with.png")
    assert picture.shape[0] > without.shape[0] + 150
    inked = (picture[..., :3] < 0.9).any(axis=2)
    for row in np.array_split(inked, 7):
        assert row.mean() > 0.003


def test_thinning_keeps_every_extreme():
    generator = np.random.default_rng(0)
    x = np.arange(100_003.0)
    y = generator.standard_normal(len(x))
    y[[777, 50_000]] = 100.0, -100.0
    xs, ys = _thin(x, y)
    assert len(xs) <= 4000
    assert (ys.max(), ys.min()) == (100.0, -100.0)
    assert (np.diff(xs) >= 0).all()
    assert set(ys) <= set(y)


def test_an_empty_log_has_no_picture(tmp_path: Path):
    log = write_log(tmp_path / "a.mcap", random_records(0, 0))
    with pytest.raises(LogError, match="no tick"):
        plot_log(log, tmp_path / "a.png")
