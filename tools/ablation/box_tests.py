"""Tests of boxes in motion: what end poses first, fewer axes and halving the interval are worth, beside the default.

Scene: the motor of a window lifter in a door. Source: Redon 2002, tables 3.2, 3.3, 3.5 and 3.6, and the constant k of
3.3.4, the curve of which is lost.
"""

from collections.abc import Callable
from types import ModuleType

from rtcore.collision.elementary import advance
from rtcore.collision.overlap import (
    OVERLAP_INFLATED,
    OVERLAP_INTERVAL,
    OVERLAP_SIX_CONTINUOUS,
    OVERLAP_SIX_DISCRETE,
    OVERLAP_SPHERE,
    OVERLAP_TEST_END,
    OVERLAP_TEST_START,
    OVERLAP_UNDIVIDED,
)
from rtcore.collision.variants import first_contact_by, rebuilt
from rtcore.tables import QUERY_OWNED, QUERY_PASS_TIME
from tools.ablation.replay import Answers, MeshPair, Moves, ask_from_roots, make_query, replay

BOTH = OVERLAP_INTERVAL | OVERLAP_TEST_END | OVERLAP_TEST_START

DISCRETE_FIRST = {
    "none": OVERLAP_INTERVAL,
    "final only": OVERLAP_INTERVAL | OVERLAP_TEST_END,
    "initial only": OVERLAP_INTERVAL | OVERLAP_TEST_START,
    "both, final first": BOTH,
    "inflated at mid-pose (default)": OVERLAP_INFLATED,
    "balls": OVERLAP_SPHERE,
}
"""Tables 3.2 and 3.3, and the tests beside them that the thesis does not have."""

PARTIAL = {
    "partial discrete, partial continuous": BOTH | OVERLAP_SIX_DISCRETE | OVERLAP_SIX_CONTINUOUS,
    "complete discrete, partial continuous": BOTH | OVERLAP_SIX_CONTINUOUS,
    "partial discrete, complete continuous": BOTH | OVERLAP_SIX_DISCRETE,
    "complete both": BOTH,
    "complete discrete, partial continuous, undivided": BOTH | OVERLAP_SIX_CONTINUOUS | OVERLAP_UNDIVIDED,
    "complete both, undivided": BOTH | OVERLAP_UNDIVIDED,
}
"""Tables 3.5 and 3.6."""

CONSTANTS = (0.02, 0.05, 0.15, 0.5, 1.5, 5.0, 15.0)
"""Values of k looked at."""

FLAGS = QUERY_PASS_TIME | QUERY_OWNED
"""Depth first, as the thesis goes."""


def make_kernel(elementary: ModuleType = advance) -> Callable:
    """`replay.ask_from_roots` on a query that obeys QUERY.overlap and takes its elementary tests from a module."""
    return rebuilt(ask_from_roots, first_contact=first_contact_by(elementary))


def discrete_first(pair: MeshPair, moves: Moves, kernel: Callable, rounds: int = 1) -> dict[str, Answers]:
    """Tables 3.2 and 3.3; kernel: of `make_kernel`."""
    return _each(pair, moves, kernel, DISCRETE_FIRST, rounds)


def partial_axes(pair: MeshPair, moves: Moves, kernel: Callable, rounds: int = 1) -> dict[str, Answers]:
    """Tables 3.5 and 3.6."""
    return _each(pair, moves, kernel, PARTIAL, rounds)


def subdivision_constant(pair: MeshPair, moves: Moves, kernel: Callable, rounds: int = 1) -> dict[str, Answers]:
    """The constant k of the subdivision test, with both tests of end poses."""
    rows = {}
    for k in CONSTANTS:
        query = make_query(moves.separation, FLAGS, BOTH, k)
        rows[f"k = {k:g}"] = replay(pair, moves, query, kernel, rounds)
    rows["never halved"] = replay(
        pair, moves, make_query(moves.separation, FLAGS, BOTH | OVERLAP_UNDIVIDED), kernel, rounds
    )
    return rows


def _each(pair: MeshPair, moves: Moves, kernel: Callable, overlaps: dict[str, int], rounds: int) -> dict[str, Answers]:
    rows = {}
    for name, overlap in overlaps.items():
        # Balls about thin boxes are so much dearer that one round of them tells enough.
        often = 1 if overlap == OVERLAP_SPHERE else rounds
        rows[name] = replay(pair, moves, make_query(moves.separation, FLAGS, overlap), kernel, often)
    return rows


def elementary_tests(
    pair: MeshPair, moves: Moves, advancing: Callable, bisecting: Callable, rounds: int = 1
) -> dict[str, Answers]:
    """Bisection in interval arithmetic against conservative advancement, in the usual query."""
    query = make_query(moves.separation)
    return {
        "bisection": replay(pair, moves, query, bisecting, rounds),
        "advancement (default)": replay(pair, moves, query, advancing, rounds),
    }
