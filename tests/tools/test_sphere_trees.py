"""The comparisons of trees of balls run, and point where the published ones do."""

import numpy as np
import pytest
import trimesh

from tools.ablation.sphere_trees import LEAF_RADIUS, l_block, label_tables, leaf_mismatch, leaf_radius_sweep


def test_block_is_closed():
    vertices, faces = l_block(1.0)
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    assert mesh.is_volume
    assert mesh.volume == pytest.approx(0.4 * (1.0 * 0.4 + 0.6 * 0.4))


def test_tables_save_what_they_are_for():
    """Labels save ball tests and some elementary ones, the other tables elementary ones only; the answers agree."""
    result = label_tables(steps=8, leaf_radius=2 * LEAF_RADIUS)
    none, balls, features, both = (
        result[name] for name in ("no tables", "S/S table only", "AA+PF+FP tables only", "all four tables")
    )
    assert balls["S/S"] < none["S/S"] == features["S/S"]
    assert both["S/S"] == balls["S/S"]
    for kind in ("A/A", "P/F", "F/P"):
        assert both[kind] == features[kind] < balls[kind] < none[kind]
    assert {row["contacts"] for row in (none, balls, features, both)} == {0}
    assert result["memory"]["entries shared"] < result["memory"]["entries of own lists"]


def test_unequal_leaves_cost_elementary_tests():
    rows = leaf_mismatch(ratios=(2.0, 8.0), steps=8)
    assert rows[1]["leaves"] < rows[0]["leaves"]
    assert rows[1]["A/A"] > 2 * rows[0]["A/A"]


def test_smaller_leaves_are_more_and_closer():
    rows = leaf_radius_sweep(shares=(0.2, 0.1), steps=8)
    assert rows[1]["leaves"] > 2 * rows[0]["leaves"]
    assert rows[1]["A/A"] <= rows[0]["A/A"]
    assert np.isfinite([row["seconds"] for row in rows]).all()
