"""Bodies that belong together because contacts join them, or because they may meet: disjoint sets.

The number of a set is that of its smallest body, whatever the order in which bodies were joined.
Source: union by smallest root with path halving, Tarjan and van Leeuwen 1984.
"""

import numpy as np

from rtcore.kernels import inner, kernel


@kernel
def separate(groups: np.ndarray) -> None:
    """Make each body a set of its own; groups: (n,) i4."""
    for i in range(len(groups)):
        groups[i] = i


@kernel
def group_of(groups: np.ndarray, body_id: int) -> int:
    """The smallest body of the set of a body."""
    while groups[body_id] != body_id:
        groups[body_id] = groups[groups[body_id]]
        body_id = groups[body_id]
    return body_id


@kernel
def join(groups: np.ndarray, first: int, second: int) -> None:
    """Make one set of the sets of two bodies."""
    a = group_of(groups, first)
    b = group_of(groups, second)
    groups[max(a, b)] = min(a, b)


@inner
def join_near(pairs: tuple, broad: tuple) -> None:
    """Make groups of the bodies that move and that the broad phase finds near; pairs: Pairs; broad: BroadPhase."""
    separate(pairs.groups)
    for k in range(broad.report[0].pair_count):
        first = broad.pairs[k, 0]
        second = broad.pairs[k, 1]
        if pairs.movers[first] >= 0 and pairs.movers[second] >= 0:
            join(pairs.groups, first, second)
