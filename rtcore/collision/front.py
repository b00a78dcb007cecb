"""The same question tick after tick: a query that starts where the last one of its pair of bodies ended.

The front is the set of node pairs at which the search ended: node pairs that are far enough apart, and pairs of
triangles. Every pair of triangles is below exactly one entry. All entries are compared with one number, the path
M that any point of the second body can have run in the first's frame since the front was made. An entry that was found
to be g apart when M was m needs no test as long as M, with what lies ahead, is below its expiry m + g.

Entries whose time has come are looked at again at the present pose, and opened where they are too near; pairs of
triangles that may touch are then tested continuously, in the order of their earliest possible contact. Where two
entries with much slack are all that is below a pair of nodes, that pair takes their place.

What the units do not suffice for keeps its expiry, and expiry - M is still a proven distance: the motion may go on as
far as the smallest of them allows. What was opened stays so, hence a pause ends after a number of ticks.

Source: front tracking (Li and Chen 1998; Klosowski et al. 1998), here with path lengths as expiry (Mirtich 1996) and in
bounded memory; Redon 2002, 3.3.5 and 5 (temporal coherence left open there).
"""

import math
from typing import Any

from rtcore.collision.first_contact import clear_hit, culled, opens_first, prepare_culling, speed_of
from rtcore.collision.leaf import crossing, describe, leaf_pair
from rtcore.collision.overlap import box_gap, box_gap_to, place_pair
from rtcore.collision.pair_state import ROUNDING, reset_front
from rtcore.kernels import inner, kernel
from rtcore.motion import ALGEBRAIC
from rtcore.spatial import vector
from rtcore.tables import QUERY_CULL

DRIFT = 64.0 * 2.0**-52
"""Times the lengths that a pose is computed from: by how much a point may move besides, by rounding, when the bodies
are put at the end of a motion."""
COARSE = 8.0
"""Queries like this one that a pair of nodes must be good for to take the place of two entries."""
CALMING = 0.999
"""By which the pace that joining goes by falls in each query at rest: a short rest does not close the front."""
AHEAD = 4.0
"""Times the path that the last motion was free for: a query first looks as far as that, and only where that is free at
all that was asked for. What is pressed together has all of its goal in front of it, and meets within
that distance what stops it."""
LASTING = 16.0
"""Queries like this one after which an entry may be looked at again: a gap good for that need not be known better."""
WINDOW = 128
"""Entries per query that are looked at for joining."""
JOINS = 16
"""Box tests per query that joining may cost."""
CROWDED = 16
"""By which both are more when the front is nearly full."""


@inner
def opened_last(nodes: Any, front: Any, first: int, second: int) -> int:
    """Which side was opened last to arrive at a pair of nodes: 0 the first, 1 the second, -1 for the pair of roots.

    nodes: BOX_NODE table; front: FRONT record (its roots); first, second: rows of nodes. The one whose parent is the
    smaller was opened last, the second where both are equal: had a larger parent been opened after a smaller one,
    `opens_first` would have been wrong, since the size of a node is never above that of its parent.
    """
    if first == front.first_root:
        return -1 if second == front.second_root else 1
    if second == front.second_root:
        return 0
    return 0 if nodes[nodes[first].parent].size < nodes[nodes[second].parent].size else 1


@inner
def _write(target: Any, count: int, first: int, second: int, expiry: float) -> int:
    entry = target[count]
    entry.first = first
    entry.second = second
    entry.expiry = expiry
    return count + 1


@inner
def _join(
    nodes: Any,
    front: Any,
    target: Any,
    count: int,
    margin: float,
    work: Any,
    counters: Any,
    attempts: int,
) -> tuple[int, int]:
    # Join the last two entries, and what that makes with those before, as long as it pays: (entries, attempts left).
    while count >= 2 and attempts > 0:
        last = target[count - 1]
        before = target[count - 2]
        if min(last.expiry, before.expiry) <= front.travelled + margin:
            return count, attempts
        side = opened_last(nodes, front, last.first, last.second)
        first = last.first
        second = last.second
        if side == 0:
            first = nodes[first].parent
            if nodes[first].right != last.first or before.first != first + 1 or before.second != second:
                return count, attempts
        elif side == 1:
            second = nodes[second].parent
            if nodes[second].right != last.second or before.second != second + 1 or before.first != first:
                return count, attempts
        else:
            return count, attempts
        attempts -= 1
        counters.box_tests += 1
        gap = box_gap(nodes[first], nodes[second], work.start)
        if gap <= margin:
            return count, attempts
        _write(target, count - 2, first, second, (front.travelled + gap) * (1.0 - ROUNDING))
        count -= 1
    return count, attempts


@inner
def _activate(work: Any, active: int, first: int, second: int, entry: int, slack: float, speed: float) -> int:
    row = work.active[active]
    row.first = first
    row.second = second
    row.entry = entry
    row.slack = slack
    row.speed = speed
    return active + 1


@inner
def _push(work: Any, top: int, first: int, second: int, expiry: float, kept: int, fresh: int) -> int:
    item = work.stack[top]
    item.first = first
    item.second = second
    item.expiry = expiry
    item.kept = kept
    item.fresh = fresh
    return top + 1


@inner
def _refine(
    nodes: Any,
    front: Any,
    target: Any,
    count: int,
    room: int,
    active: int,
    limit: float,
    query: Any,
    work: Any,
    counters: Any,
    left: int,
) -> tuple[int, int, int, float]:
    # Look at the pair on the stack again and at what is below it: (entries, active pairs, units left, time open).
    # room: entries that may be in the target when this is done. The time that is left open is infinite if all was done.
    open_time = math.inf
    travelled = front.travelled
    top = 1
    while top > 0:
        top -= 1
        item = work.stack[top]
        first, second, expiry, kept, fresh = item.first, item.second, item.expiry, item.kept, item.fresh
        a = nodes[first]
        b = nodes[second]
        leaf = a.count > 0 and b.count > 0
        speed = speed_of(b, work.whole)
        slack = max(expiry - travelled, 0.0) * (1.0 - ROUNDING)
        needed = query.separation + speed * limit
        near = slack <= needed
        tested = False
        if not near:
            counters.reused += 1
        elif (fresh or not leaf) and left > 0:
            left -= 1
            counters.box_tests += 1
            tested = True
            gap = box_gap_to(a, b, work.start, needed + LASTING * front.pace)
            if gap > slack:
                slack = gap
                expiry = (travelled + gap) * (1.0 - ROUNDING)
                near = slack <= needed
        if near and leaf and active < work.active_limit:
            active = _activate(work, active, first, second, count if kept else -1, slack, speed)
            near = False
        if near and (leaf or not tested or top + 2 > len(work.stack)):
            # Out of units, or of room: of what is below this pair, no more is known than its slack.
            open_time = min(open_time, _time_for(slack, speed, query))
            near = False
        full = kept and count + top + 2 > room
        if kept and (full or not near):
            count = _write(target, count, first, second, expiry)
            kept = 0
        if not near:
            continue
        if opens_first(a, b):
            top = _push(work, top, a.right, second, expiry, kept, 1)
            top = _push(work, top, first + 1, second, expiry, kept, 1)
        else:
            top = _push(work, top, first, b.right, expiry, kept, 1)
            top = _push(work, top, first, second + 1, expiry, kept, 1)
    return count, active, left, open_time


@inner
def _time_for(slack: float, speed: float, query: Any) -> float:
    # A time before which a pair that is `slack` apart cannot come down to the separation.
    free = slack - query.separation
    if free <= 0.0:
        return 0.0
    return (1.0 - ROUNDING) * free / speed if speed > 0.0 else math.inf


@inner
def _earlier(active: Any, i: int, j: int) -> bool:
    a = active[i]
    b = active[j]
    if a.key != b.key:
        return a.key < b.key
    if a.first != b.first:
        return a.first < b.first
    return a.second < b.second


@inner
def _sort(work: Any, count: int) -> None:
    # Heap sort of work.order by the keys of the active pairs.
    order = work.order
    active = work.active
    for i in range(count):
        order[i] = i
    for start in range(count // 2 - 1, -1, -1):
        _settle(order, active, start, count)
    for end in range(count - 1, 0, -1):
        order[0], order[end] = order[end], order[0]
        _settle(order, active, 0, end)


@inner
def _settle(order: Any, active: Any, i: int, count: int) -> None:
    while True:
        child = 2 * i + 1
        if child >= count:
            return
        if child + 1 < count and _earlier(active, order[child], order[child + 1]):
            child += 1
        if not _earlier(active, order[i], order[child]):
            return
        order[i], order[child] = order[child], order[i]
        i = child


@inner
def _copy(source: Any, target: Any, start: int, end: int, place: int, enough: float) -> int:
    # Copy entries from `start` on to `place`, up to `end` or the first that is due: how many.
    stop = start
    while stop < end and source[stop].expiry > enough:
        stop += 1
    for k in range(stop - start):
        target[place + k].expiry = source[start + k].expiry
        target[place + k].first = source[start + k].first
        target[place + k].second = source[start + k].second
    return stop - start


@inner
def _scan(
    nodes: Any,
    front: Any,
    entries: Any,
    limit: float,
    query: Any,
    work: Any,
    counters: Any,
    left: int,
) -> tuple[int, int, float]:
    # Write the front anew into the other row of entries: (active pairs, units left, time that is left open).
    source = entries[front.current]
    target = entries[1 - front.current]
    capacity = len(target)
    travelled = front.travelled
    path = front.speed * limit
    enough = (travelled + query.separation + path) * (1.0 + ROUNDING)
    front.pace = max(path, CALMING * front.pace)
    margin = query.separation + COARSE * front.pace
    crowded = 4 * front.count > 3 * capacity
    attempts = CROWDED * JOINS if crowded else JOINS
    window = CROWDED * WINDOW if crowded else WINDOW
    cursor = front.cursor if front.cursor < front.count else 0
    walk = 0  # where the entry is now at which the search for near features goes on
    count = 0
    active = 0
    open_time = math.inf
    i = 0
    while i < front.count:
        # Most entries are but copied.
        part = front.count
        if i < cursor:
            part = min(part, cursor)
        elif i < cursor + window:
            part = i + 1 if attempts > 0 else min(part, cursor + window)
        kept = _copy(source, target, i, part, count, enough)
        if i <= front.walk < i + kept:
            walk = count + front.walk - i
        i += kept
        count += kept
        counters.reused += kept
        if kept > 0 and cursor < i <= cursor + window:
            allowed = min(attempts, left - query.units // 2)
            if allowed > 0:
                count, rest = _join(nodes, front, target, count, margin, work, counters, allowed)
                attempts -= allowed - rest
                left -= allowed - rest
                walk = min(walk, count - 1)
        if i == part:
            continue
        entry = source[i]
        if i == front.walk:
            walk = count
        _push(work, 0, entry.first, entry.second, entry.expiry, 1, 0)
        room = capacity - (front.count - 1 - i)
        count, active, left, time = _refine(
            nodes, front, target, count, room, active, limit, query, work, counters, left
        )
        open_time = min(open_time, time)
        i += 1
    front.cursor = cursor + window if cursor + window < count else 0
    front.count = count
    front.walk = walk
    front.current = 1 - front.current
    return active, left, open_time


@inner
def _test_active(
    nodes: Any,
    triangles: Any,
    relative: Any,
    front: Any,
    entries: Any,
    active: int,
    limit: float,
    query: Any,
    work: Any,
    counters: Any,
    hit: Any,
    left: int,
) -> tuple[int, float]:
    # Test the active pairs of triangles in the order of earliest contact: (units left, time that is left open).
    rows = work.active
    target = entries[front.current]
    for i in range(active):
        row = rows[i]
        row.key = _time_for(row.slack, row.speed, query)
    _sort(work, active)
    open_time = math.inf
    best = limit
    cull = query.flags & QUERY_CULL != 0
    if cull and active > 0:
        prepare_culling(nodes, front.first_root, front.second_root, relative, limit, work)
    for i in range(active):
        row = rows[work.order[i]]
        if row.key >= best:
            continue
        if cull and (
            culled(nodes[row.first], work.first_approach, counters)
            or culled(nodes[row.second], work.second_approach, counters)
        ):
            continue
        if left <= 0:
            open_time = min(open_time, row.key)
            continue
        a = nodes[row.first].first
        b = nodes[row.second].first
        if row.slack <= 0.0 and crossing(triangles, a, b, work.start, hit):
            left -= 1
            best = 0.0
            continue
        best, nearest, units = leaf_pair(
            triangles,
            a,
            b,
            relative,
            work.start,
            row.speed,
            query,
            best,
            counters,
            hit,
        )
        left -= units
        if row.entry >= 0 and nearest > row.slack:
            target[row.entry].expiry = (front.travelled + nearest) * (1.0 - ROUNDING)
    return left, open_time


@kernel
def coherent_contact(
    nodes: Any,
    triangles: Any,
    relative: Any,
    query: Any,
    front: Any,
    entries: Any,
    work: Any,
    counters: Any,
    hit: Any,
) -> None:
    """Find the first time at which two bodies come within query.separation of each other, from the front of the pair.

    nodes: BOX_NODE table and triangles: TRIANGLE table of both bodies; relative: RELATIVE record, which begins where
    the motion of the last query was left; query: QUERY; front: FRONT record and entries: its (2, capacity) FRONT_ENTRY
    table, both carried on; work: QUERY_WORK; counters: COUNTERS, added to; hit: HIT, written.

    The motion is proven free for u < hit.time. When units or memory run out before all earlier contacts are excluded,
    hit.truncated is 1 and hit.time is as far as the distances known allow. The last pair of triangles may take a few
    units (14 at most) more than allowed. Motions that start with infinite speed (ALGEBRAIC), and what is asked up to no
    finite time, are refused: hit.time is 0 and hit.truncated 1.
    """
    last = front.ahead
    front.travelled += front.ahead
    front.ahead = 0.0
    if relative.first.kind == ALGEBRAIC or relative.second.kind == ALGEBRAIC or not math.isfinite(query.limit):
        clear_hit(hit, 0.0)
        hit.truncated = 1
        return
    root = nodes[front.second_root]
    centre = vector(root.centre)
    place_pair(relative, centre, root.radius, 0.0, 0.0, work.start)
    if not front.travelled < math.inf:
        reset_front(front, entries)
    limit = query.limit
    left = query.units
    done = 0.0
    while True:
        place_pair(relative, centre, root.radius, 0.0, limit, work.whole)
        front.speed = speed_of(root, work.whole)
        look = AHEAD * last + query.separation
        if done == 0.0 and look < front.speed * limit:
            limit = look / front.speed
        clear_hit(hit, limit)
        active, left, open_time = _scan(nodes, front, entries, limit, query, work, counters, left)
        # fmt: off
        left, time = _test_active(
            nodes, triangles, relative, front, entries, active, limit, query, work, counters, hit, left,
        )
        # fmt: on
        open_time = min(open_time, time)
        if open_time < hit.time:
            clear_hit(hit, max(open_time, done))
            hit.truncated = 1
        # Written so that NaN ends it.
        if hit.found or hit.truncated or not limit < query.limit:
            break
        if left <= 0:
            hit.truncated = 1
            break
        done = limit
        limit = query.limit
    if hit.found:
        describe(triangles, relative, hit)
    hit.units_used = query.units - left
    if hit.time > 0.0:
        one = relative.first
        two = relative.second
        scale = root.radius
        for k in range(3):
            scale += abs(root.centre[k]) + abs(one.position[k]) + abs(one.pivot[k]) + abs(one.shift[k])
            scale += abs(two.position[k]) + abs(two.pivot[k]) + abs(two.shift[k])
        front.drift = DRIFT * scale
        front.ahead = front.speed * hit.time * (1.0 + ROUNDING) + front.drift
