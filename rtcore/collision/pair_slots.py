"""Which pairs of bodies are near: each has a row of its own for as long as it is, and is forgotten when it is not.

The broad phase lists pairs by first, then second body; so does the table of pairs. Both are gone through side by side:
what is in both keeps its row, what is only in the table leaves its row free, what is new takes the first free row.
"""

from typing import Any

from rtcore.collision.pair_state import reset_front
from rtcore.kernels import inner, kernel


@kernel
def forget(pair: Any) -> None:
    """Leave a PAIR without a trace, so that the table depends on nothing but the pairs that are in it."""
    pair.first = -1
    pair.second = -1
    pair.listed = 0.0
    pair.complete = 0
    pair.fresh = 0
    pair.padding = 0
    front = pair.front
    front.first_root = front.second_root = 0
    front.travelled = front.ahead = front.drift = front.speed = front.pace = 0.0
    front.count = front.current = front.cursor = front.walk = front.walk_top = 0
    drop_contacts(pair, 0)


@inner
def drop_contacts(pair: Any, count: int) -> None:
    """Keep the first `count` contacts of a PAIR and leave no trace of the others."""
    for i in range(count, pair.count):
        contact = pair.contacts[i]
        for k in range(3):
            contact.point_first[k] = contact.point_second[k] = contact.normal[k] = 0.0
            contact.push[k] = contact.moment[k] = 0.0
        contact.gap = 0.0
        contact.first_triangle = contact.second_triangle = contact.first_feature = contact.second_feature = 0
        contact.age = contact.slipped = 0
    pair.count = min(count, pair.count)


@inner
def rounding_of(model: tuple, first: int, second: int) -> float:
    """By how much the surfaces of two bodies are nearer than their meshes, m; the tool, behind the bodies, has none."""
    rounding = model.bodies[first].rounding
    return rounding + model.bodies[second].rounding if second < len(model.bodies) else rounding


@kernel
def match_pairs(model: tuple, pairs: tuple, broad: tuple) -> bool:
    """Bring the table of pairs up to date with what the broad phase found; False where it has no room for all.

    model: Model; pairs: Pairs of the State; broad: its BroadPhase. Pairs without a row are marked as blocked on both
    sides, as the broad phase does with those that it did not reach: nobody may move then who could meet unseen.
    """
    rows = pairs.rows
    order = pairs.order
    before = pairs.before
    table = pairs.table[0]
    tool = len(model.bodies)
    old = table.count
    for i in range(old):
        before[i] = order[i]
    count = 0
    at = 0
    for k in range(broad.report[0].pair_count):
        first = broad.pairs[k, 0]
        second = broad.pairs[k, 1]
        if second == tool:
            continue
        while at < old and _comes_before(rows[before[at]], first, second):
            forget(rows[before[at]])
            at += 1
        if count == len(order):
            continue
        if at < old and rows[before[at]].first == first and rows[before[at]].second == second:
            order[count] = before[at]
            at += 1
        else:
            order[count] = -1
        count += 1
    while at < old:
        forget(rows[before[at]])
        at += 1
    return _seat(model, pairs, broad, count)


@inner
def _comes_before(pair: Any, first: int, second: int) -> bool:
    return pair.first < first or (pair.first == first and pair.second < second)


@inner
def _seat(model: tuple, pairs: tuple, broad: tuple, count: int) -> bool:
    """Give the first `count` pairs of the broad phase that have none a free row; mark those beyond as blocked."""
    tool = len(model.bodies)
    free = 0
    at = 0
    seated = True
    for k in range(broad.report[0].pair_count):
        first = broad.pairs[k, 0]
        second = broad.pairs[k, 1]
        if second == tool:
            continue
        if at == count:
            broad.bodies[first].blocked = 1
            broad.bodies[second].blocked = 1
            seated = False
            continue
        if pairs.order[at] < 0:
            while pairs.rows[free].first >= 0:
                free += 1
            pair = pairs.rows[free]
            pair.first = first
            pair.second = second
            pair.front.first_root = model.meshes[model.bodies[first].mesh_id].node_first
            pair.front.second_root = model.meshes[model.bodies[second].mesh_id].node_first
            reset_front(pair.front, pairs.entries[free])
            pairs.order[at] = free
        at += 1
    pairs.table[0].count = count
    return seated
