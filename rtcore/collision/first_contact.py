"""When do two bodies that move first come within a distance of each other: one query from the roots of their trees.

Pairs of nodes wait in a heap of fixed size, keyed by a time before which each is proven free. The first key of the heap
is therefore proven free for all of them: the query may end after any unit of work and still tell how far to go.

Source: Redon 2002, 2.5 and 3.3.5 (passing the current contact time on), here in the order of earliest contact.
"""

import math
from typing import Any

from rtcore.collision.leaf import crossing, describe, leaf_pair
from rtcore.collision.overlap import boxes_meet, place_pair
from rtcore.collision.receding import approach, recedes
from rtcore.kernels import inner, kernel
from rtcore.spatial import put_vector, vector
from rtcore.tables import QUERY_CULL, QUERY_ORDER, QUERY_PASS_TIME

LONG_PATH = 4.0
"""Times the radii of a pair: a longer path is looked at in two halves before the boxes are opened."""
SHORTEST_INTERVAL = 1.0 / 1024.0
"""Part of u below which time is not halved any more."""


@kernel
def speed_of(node: Any, placement: Any) -> float:
    """A speed (m per unit of u) that no point of the ball of a node of the second body exceeds in the first's frame.

    node: BOX_NODE record; placement: PLACEMENT record of the interval. The speed at the middle of the interval, plus
    what the bound on the acceleration may add during half of it.
    """
    m = placement.rotation
    c = node.centre
    x = m[0, 0] * c[0] + m[0, 1] * c[1] + m[0, 2] * c[2]
    y = m[1, 0] * c[0] + m[1, 1] * c[1] + m[1, 2] * c[2]
    z = m[2, 0] * c[0] + m[2, 1] * c[1] + m[2, 2] * c[2]
    w = placement.spin
    v = placement.velocity
    vx = v[0] + w[1] * z - w[2] * y
    vy = v[1] + w[2] * x - w[0] * z
    vz = v[2] + w[0] * y - w[1] * x
    speed = math.sqrt(vx * vx + vy * vy + vz * vz) + placement.spin_speed * node.radius
    if placement.half > 0.0:
        speed += 2.0 * placement.bow / placement.half
    scale = abs(c[0]) + abs(c[1]) + abs(c[2])
    size = abs(v[0]) + abs(v[1]) + abs(v[2]) + placement.spin_speed * scale
    return speed + 32.0 * 2.0**-52 * (size + speed)


@inner
def opens_first(first: Any, second: Any) -> bool:
    """Which of two BOX_NODE records is opened: True for the first. One of them at least must be an inner node."""
    return first.count == 0 and (second.count > 0 or first.size >= second.size)


@inner
def _approach(own: Any, other: Any, root: Any, limit: float, record: Any) -> None:
    velocity, spin, slack = approach(own, other, vector(root.centre), root.radius, limit)
    put_vector(record.velocity, velocity)
    put_vector(record.spin, spin)
    record.slack = slack


@inner
def prepare_culling(nodes: Any, first_root: int, second_root: int, relative: Any, limit: float, work: Any) -> None:
    """Fill work.first_approach and work.second_approach for `culled` over [0, limit].

    nodes: BOX_NODE table; first_root, second_root: rows of it; relative: RELATIVE record; work: QUERY_WORK.
    """
    _approach(relative.first, relative.second, nodes[first_root], limit, work.first_approach)
    _approach(relative.second, relative.first, nodes[second_root], limit, work.second_approach)


@kernel
def culled(node: Any, record: Any, counters: Any) -> bool:
    """May a node be left out because all of it recedes? node: BOX_NODE; record: APPROACH of its body; COUNTERS."""
    counters.receding_tests += 1
    if recedes(node, vector(record.velocity), vector(record.spin), record.slack):
        counters.receding += 1
        return True
    return False


@inner
def clear_hit(hit: Any, time: float) -> None:
    """Make a HIT record say that nothing was found up to `time`."""
    hit.time = time
    hit.gap = -1.0
    for k in range(3):
        hit.point[k] = 0.0
        hit.normal[k] = 0.0
    hit.found = 0
    hit.truncated = 0
    hit.first_triangle = -1
    hit.second_triangle = -1
    hit.first_feature = -1
    hit.second_feature = -1
    hit.units_used = 0


@inner
def _before(pairs: Any, i: int, j: int) -> bool:
    # Deeper pairs have later starts and larger indices; the order is total, so the result does not depend on history.
    a = pairs[i]
    b = pairs[j]
    if a.key != b.key:
        return a.key < b.key
    if a.first != b.first:
        return a.first > b.first
    if a.second != b.second:
        return a.second > b.second
    return a.start < b.start


@inner
def _copy(pairs: Any, i: int, j: int) -> None:
    a = pairs[i]
    b = pairs[j]
    b.key = a.key
    b.start = a.start
    b.end = a.end
    b.first = a.first
    b.second = a.second


@inner
def _swap(pairs: Any, i: int, j: int) -> None:
    a = pairs[i]
    b = pairs[j]
    key, start, end, first, second = a.key, a.start, a.end, a.first, a.second
    _copy(pairs, j, i)
    b.key, b.start, b.end, b.first, b.second = key, start, end, first, second


@inner
def _rise(pairs: Any, i: int) -> None:
    while i > 0:
        above = (i - 1) // 2
        if not _before(pairs, i, above):
            return
        _swap(pairs, i, above)
        i = above


@inner
def _sink(pairs: Any, size: int) -> None:
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            return
        if child + 1 < size and _before(pairs, child + 1, child):
            child += 1
        if not _before(pairs, child, i):
            return
        _swap(pairs, i, child)
        i = child


@kernel
def meet(
    first: Any, second: Any, relative: Any, placement: Any, query: Any, counters: Any
) -> tuple[bool, float, float]:
    """The box test of these queries, boxes_meet, in the form of boxes_meet_by, which may stand in for it."""
    return boxes_meet(first, second, placement, query.separation)


@inner
def _offer(
    nodes: Any,
    first: int,
    second: int,
    known: float,
    relative: Any,
    query: Any,
    work: Any,
    counters: Any,
    size: int,
) -> tuple[int, float]:
    # Test a pair over the interval of work.middle and keep it if it may meet: (pairs kept, time that is left open).
    # That time is infinite unless there was no room.
    counters.box_tests += 1
    may, earliest, _ = meet(nodes[first], nodes[second], relative, work.middle, query, counters)
    if not may:
        return size, math.inf
    key = max(known, earliest)
    if size >= work.pair_limit:
        return size, key
    pair = work.pairs[size]
    pair.key = key
    pair.start = work.middle.u0
    pair.end = work.middle.u1
    pair.first = first
    pair.second = second
    if query.flags & QUERY_ORDER:
        _rise(work.pairs, size)
    return size + 1, math.inf


@inner
def _place(placement: Any, relative: Any, root: Any, start: float, end: float) -> None:
    # Make the PLACEMENT of an interval unless it is there already.
    if placement.u0 != start or placement.u1 != end:
        place_pair(relative, vector(root.centre), root.radius, start, end, placement)


@kernel
def first_contact(
    nodes: Any,
    triangles: Any,
    first_root: int,
    second_root: int,
    relative: Any,
    query: Any,
    work: Any,
    counters: Any,
    hit: Any,
) -> None:
    """Find the first time at which two bodies come within query.separation of each other.

    nodes: BOX_NODE table and triangles: TRIANGLE table of both; first_root, second_root: rows of nodes; relative:
    RELATIVE record; query: QUERY; work: QUERY_WORK; counters: COUNTERS, added to; hit: HIT, written. Features that are
    nearer than the separation at u = 0 may not come nearer still; triangles that cross answer time 0.

    The motion is proven free for u < hit.time in any case. When the units or the memory run out before all earlier
    contacts are excluded, hit.truncated is 1 and hit.time is the earliest time at which something not looked at might
    touch. The last pair of triangles may take a few units (14 at most) more than allowed.
    """
    limit = query.limit
    clear_hit(hit, limit)
    best = limit
    open_time = math.inf  # the earliest time at which a pair that was left out might touch
    pass_time = query.flags & QUERY_PASS_TIME != 0
    ordered = query.flags & QUERY_ORDER != 0
    root = nodes[second_root]
    pairs = work.pairs
    place_pair(relative, vector(root.centre), root.radius, 0.0, limit, work.whole)
    place_pair(relative, vector(root.centre), root.radius, 0.0, limit, work.middle)
    place_pair(relative, vector(root.centre), root.radius, 0.0, 0.0, work.start)
    cull = query.flags & QUERY_CULL != 0
    if cull:
        prepare_culling(nodes, first_root, second_root, relative, limit, work)
    size, open_time = _offer(nodes, first_root, second_root, 0.0, relative, query, work, counters, 0)
    left = query.units - 1
    while size > 0:
        if left <= 0:
            break
        if ordered:
            _swap(pairs, 0, size - 1)
            size -= 1
            _sink(pairs, size)
        else:
            size -= 1
        pair = pairs[size]
        key, start, end, first, second = pair.key, pair.start, pair.end, pair.first, pair.second
        if pass_time:
            if key >= best:
                if ordered:
                    break
                continue
            end = min(end, best)
        a = nodes[first]
        b = nodes[second]
        if a.count > 0 and b.count > 0:
            _place(work.start, relative, root, start, start)
            if start == 0.0 and crossing(triangles, a.first, b.first, work.start, hit):
                left -= 1
            else:
                # fmt: off
                _, _, units = leaf_pair(
                    triangles, a.first, b.first, relative, work.start, speed_of(b, work.whole), query,
                    end if pass_time else limit, counters, hit,
                )
                # fmt: on
                left -= units
            best = hit.time
            continue
        if key > 0.5 * (start + end):
            start = key
        _place(work.middle, relative, root, start, end)
        path = speed_of(b, work.middle) * (end - start)
        left -= 2
        if path > LONG_PATH * (a.radius + b.radius) and end - start > SHORTEST_INTERVAL:
            middle = 0.5 * (start + end)
            _place(work.middle, relative, root, middle, end)
            size, open1 = _offer(nodes, first, second, max(key, middle), relative, query, work, counters, size)
            _place(work.middle, relative, root, start, middle)
            size, open0 = _offer(nodes, first, second, key, relative, query, work, counters, size)
        elif opens_first(a, b):
            open0 = open1 = math.inf
            if not (cull and culled(nodes[a.right], work.first_approach, counters)):
                size, open1 = _offer(nodes, a.right, second, key, relative, query, work, counters, size)
            if not (cull and culled(nodes[first + 1], work.first_approach, counters)):
                size, open0 = _offer(nodes, first + 1, second, key, relative, query, work, counters, size)
        else:
            open0 = open1 = math.inf
            if not (cull and culled(nodes[b.right], work.second_approach, counters)):
                size, open1 = _offer(nodes, first, b.right, key, relative, query, work, counters, size)
            if not (cull and culled(nodes[second + 1], work.second_approach, counters)):
                size, open0 = _offer(nodes, first, second + 1, key, relative, query, work, counters, size)
        open_time = min(open_time, open0, open1)
    for i in range(size):
        open_time = min(open_time, pairs[i].key)
    hit.units_used = query.units - left
    if open_time < best:
        clear_hit(hit, open_time)
        hit.truncated = 1
        hit.units_used = query.units - left
    elif hit.found:
        describe(triangles, relative, hit)
