"""Ways to go through the pairs of nodes: what passing the time on, order, owners, culling and the front are worth.

Source: Redon 2002, table 3.4 (passing the current contact time on) and 3.3.5 (coherence tables, dropped there).
"""

from rtcore.tables import QUERY_CULL, QUERY_ORDER, QUERY_OWNED, QUERY_PASS_TIME
from tools.ablation.replay import USUAL, Answers, MeshPair, Moves, make_query, replay, replay_with_front

SWITCHES = {
    "pass_time": (USUAL, USUAL & ~QUERY_PASS_TIME),
    "order": (USUAL, USUAL & ~QUERY_ORDER),
    "owners": (USUAL, USUAL & ~QUERY_OWNED),
    "cones": (USUAL | QUERY_CULL, USUAL),
}
"""Flags of a query from the roots with the switch on and off."""

DEPTH_FIRST = {
    "without": QUERY_OWNED,
    "with": QUERY_OWNED | QUERY_PASS_TIME,
    "with, in order of earliest contact": USUAL,
}
"""Table 3.4, and the order that the thesis does not have."""


def passing_time(pair: MeshPair, moves: Moves, rounds: int = 1) -> dict[str, Answers]:
    """Table 3.4."""
    return {
        name: replay(pair, moves, make_query(moves.separation, flags), rounds=rounds)
        for name, flags in DEPTH_FIRST.items()
    }


def owner_masks(pair: MeshPair, moves: Moves, rounds: int = 1) -> dict[str, Answers]:
    """Each feature tested with the triangle that stands for it only, and with every triangle."""
    return {
        name: replay(pair, moves, make_query(moves.separation, flags), rounds=rounds)
        for name, flags in (("without", USUAL & ~QUERY_OWNED), ("with", USUAL))
    }


def coherence(pair: MeshPair, paths: list[Moves], rounds: int = 1) -> dict[str, list[Answers]]:
    """From the roots each time and from the front of the time before; paths: unbroken ones, one front each."""
    return {
        "without": [replay(pair, path, make_query(path.separation), rounds=rounds) for path in paths],
        "with": [replay_with_front(pair, path, make_query(path.separation), rounds) for path in paths],
    }


def switches(pair: MeshPair, moves: Moves, rounds: int = 1) -> dict[str, tuple[Answers, Answers]]:
    """Each switch of the query from the roots by itself: (on, off)."""
    rows = {}
    for name, (on, off) in SWITCHES.items():
        rows[name] = (
            replay(pair, moves, make_query(moves.separation, on), rounds=rounds),
            replay(pair, moves, make_query(moves.separation, off), rounds=rounds),
        )
    return rows
