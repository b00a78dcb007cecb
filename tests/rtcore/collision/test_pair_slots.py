"""The table of pairs against a dictionary that is kept beside it."""

import numpy as np
import pytest
from bodies_rig import Bodies
from closed_meshes import box

from rtcore.collision.pair_slots import match_pairs

COUNT = 12


def scene() -> Bodies:
    rig = Bodies()
    for k in range(COUNT):
        rig.add(box((0.01,) * 3), (0.1 * k, 0.0, 0.0), mass=1.0)
    return rig.build()


def show(rig: Bodies, pairs: list[tuple[int, int]]) -> bool:
    """Let the broad phase have found these pairs."""
    broad = rig.state.broad
    broad.report["pair_count"] = len(pairs)
    for k, pair in enumerate(pairs):
        broad.pairs[k] = pair
    return match_pairs(rig.model, rig.state.pairs, broad)


@pytest.mark.parametrize("seed", range(5))
def test_a_pair_keeps_its_row_while_it_is_near_and_leaves_no_trace(seed):
    generator = np.random.default_rng(seed)
    rig = scene()
    table = rig.state.pairs
    everything = [(a, b) for a in range(COUNT) for b in range(a + 1, COUNT + 1)]
    rows: dict[tuple[int, int], int] = {}
    for _ in range(200):
        chosen = sorted(everything[i] for i in generator.choice(len(everything), 40, replace=False))
        assert show(rig, chosen)
        wanted = [pair for pair in chosen if pair[1] < COUNT]
        assert table.table["count"][0] == len(wanted)
        order = table.order[: len(wanted)]
        assert [(int(table.rows[r]["first"]), int(table.rows[r]["second"])) for r in order] == wanted
        now = dict(zip(wanted, order.tolist(), strict=True))
        assert all(now[pair] == row for pair, row in rows.items() if pair in now)
        rows = now
        free = np.setdiff1d(np.arange(len(table.rows)), order)
        assert (table.rows["first"][free] == -1).all() and (table.rows["count"][free] == 0).all()


def test_pairs_beyond_the_room_block_their_bodies():
    rig = scene()
    table = rig.state.pairs
    capacity = len(table.rows)
    pairs = [(a, b) for a in range(COUNT) for b in range(a + 1, COUNT)] * 3
    many = sorted(pairs)[: capacity + 2]
    assert len(many) == capacity + 2
    rig.state.broad.bodies["blocked"] = 0
    assert not show(rig, many)
    blocked = np.flatnonzero(rig.state.broad.bodies["blocked"])
    assert set(blocked.tolist()) == {body for pair in many[capacity:] for body in pair}
