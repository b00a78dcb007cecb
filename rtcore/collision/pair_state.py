"""Memory of collision queries: the working memory that all pairs share, and the front that each pair keeps."""

from typing import Any

import numpy as np

from rtcore.kernels import kernel
from rtcore.tables import (
    FRONT,
    FRONT_ENTRY,
    MAX_ACTIVE_PAIRS,
    MAX_QUERY_PAIRS,
    QUERY_WORK,
)

FRONT_CAPACITY = 16384
"""Entries that a front has room for, unless told otherwise."""
ROUNDING = 16.0 * 2.0**-52
"""Relative pad of sums of paths and distances."""


def make_query_work(pairs: int = MAX_QUERY_PAIRS, active: int = MAX_ACTIVE_PAIRS) -> np.ndarray:
    """Make the working memory of collision queries, (1,) QUERY_WORK.

    pairs: of nodes that a query may keep for later; active: pairs of triangles that may be within reach. Less than the
    table has room for makes queries end sooner, never wrong. Raises ValueError for numbers out of range.
    """
    if not 1 <= pairs <= MAX_QUERY_PAIRS:
        raise ValueError(f"pairs must be 1 .. {MAX_QUERY_PAIRS}, not {pairs}")
    if not 1 <= active <= MAX_ACTIVE_PAIRS:
        raise ValueError(f"active must be 1 .. {MAX_ACTIVE_PAIRS}, not {active}")
    work = np.zeros(1, QUERY_WORK)
    work["pair_limit"] = pairs
    work["active_limit"] = active
    return work


def make_front(first_root: int, second_root: int, capacity: int = FRONT_CAPACITY) -> tuple[np.ndarray, np.ndarray]:
    """Make the front of a pair of bodies: (head (1,) FRONT, entries (2, capacity) FRONT_ENTRY), at the roots.

    first_root, second_root: rows of the node table. Raises ValueError for a capacity below 1.
    """
    if capacity < 1:
        raise ValueError(f"a front needs room for at least one entry, not {capacity}")
    head = np.zeros(1, FRONT)
    head["first_root"] = first_root
    head["second_root"] = second_root
    entries = np.zeros((2, capacity), FRONT_ENTRY)
    reset_front(head[0], entries)
    return head, entries


@kernel
def reset_front(front: Any, entries: Any) -> None:
    """Forget what is known of a pair: needed when a body was put elsewhere by anything but the motion of a query.

    front: FRONT record; entries: its (2, capacity) FRONT_ENTRY table.
    """
    front.travelled = 0.0
    front.ahead = 0.0
    front.drift = 0.0
    front.speed = 0.0
    front.pace = 0.0
    front.count = 1
    front.current = 0
    front.cursor = 0
    front.walk = 0
    front.walk_top = 0
    entry = entries[0, 0]
    entry.first = front.first_root
    entry.second = front.second_root
    entry.expiry = 0.0


@kernel
def move_on(front: Any) -> None:
    """Tell a front of a step in which neither of its bodies moves, in the place of a query."""
    front.travelled += front.ahead
    front.ahead = 0.0
    front.speed = 0.0
    front.drift = 0.0


@kernel
def move_front(front: Any, time: float) -> None:
    """Tell a front how far the motion of its last query was carried out: up to `time` (u, at most the time allowed).

    Without this call the next query takes it that all that was allowed was carried out, which is safe as well. The pads
    for rounding stay: of the path, and of the poses that the bodies get unless they stay where they are (time 0).
    """
    if time > 0.0:
        front.ahead = min(front.ahead, front.speed * time * (1.0 + ROUNDING) + front.drift)
    else:
        front.ahead = 0.0
