"""The contact set of a tool mesh: where the tool and the bodies are near each other, as few points as tell it all.

1. Every pair of features within reach is looked at where it is: unless its normal lies in the normal cones of both
   features (up to a tolerance), one of the surfaces comes nearer beside it. It is then no local minimum of the distance
   but the ghost of one that is listed as well, and its normal would hold up motions that are free. What is seen through
   a solid is no contact either, so that there are none where the tool is inside of one. Where a triangle without area
   or an edge of more than two faces hides what is beside it, a ghost may stay.
2. A pair that was listed several times, for each face around a feature or in several turns, is merged.
3. What is left is put into groups of one body and much the same normal. Of each group the deepest contact is kept,
   then the one that is the deepest halfway through the step where bodies roll, then those that span most of its area in
   the plane square to the normal (all that matters for the forces and torques that a group of parallel contacts can
   carry), then those that a small tilt would make the deepest.

What was in the table before is preferred throughout, so that noise or even sliding does not make contacts flicker.
Source: ghost contacts as local minima that fail: Lin and Canny 1991 (Voronoi regions of features); hull by distance:
quickhull (Barber, Dobkin and Huhdanpaa 1996), stopped early.
"""

import math
from typing import Any

import numpy as np

from rtcore.collision.contact_filter import is_contact
from rtcore.collision.features import FACE
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Quaternion,
    Vector,
    add,
    conjugate,
    cross,
    dot,
    multiply,
    put_vector,
    quaternion,
    rotate,
    scaled,
    subtract,
    tangents,
    to_scene,
    vector,
)
from rtcore.tables import DEGRADED_CONTACTS, MAX_CONTACTS, MAX_REMEMBERED

ENTRY = 0.75
"""A contact enters the table below this share of the way from eps_safety to eps_break, and leaves at eps_break."""
SAME_GAP = 1e-4
"""Share of eps_safety by which a contact must be nearer to be deeper than a known one, or than the corners around."""
BETTER = 0.1
"""Share by which a new contact must reach farther out than a known one to take its place."""
GROUP = math.cos(math.radians(20.0))
"""Least cosine between the normals of a group and that of its deepest contact."""
SAME_NORMAL = 0.95
"""Least cosine between the normals of contacts that follow one another on neighbouring features."""
SLENDER = 2e-3
"""A contact that reaches out of the polygon of the others by less than this share of its width adds nothing..."""
ARM = 1e-2
"""... nor does one that does so by less than this share of eps_safety. A known one may fall to half of either."""
LEVEL = 1e-2
"""Share of eps_safety within which all contacts of a group are of one depth."""
FIRST_CORNERS = 4
"""Corners of the polygon that come before contacts inside of it."""
TILTS = tuple((math.cos(k * math.pi / 4), math.sin(k * math.pi / 4)) for k in range(8))
"""Directions of the small tilts."""


@inner
def _same(a: Any, b: Any) -> bool:
    # Is it the same pair of features, told by the same triangles?
    return (
        a.first_triangle == b.first_triangle
        and a.second_triangle == b.second_triangle
        and a.first_feature == b.first_feature
        and a.second_feature == b.second_feature
        and a.body_id == b.body_id
    )


@inner
def _before(a: Any, b: Any) -> bool:
    # A total order, so that it does not matter in which order the pairs were found.
    if a.body_id != b.body_id:
        return a.body_id < b.body_id
    if a.first_triangle != b.first_triangle:
        return a.first_triangle < b.first_triangle
    if a.second_triangle != b.second_triangle:
        return a.second_triangle < b.second_triangle
    if a.first_feature != b.first_feature:
        return a.first_feature < b.first_feature
    return a.second_feature < b.second_feature


@inner
def _recall(memory: Any, row: Any, normal: Vector) -> tuple[int, int, int]:
    """(known, age, row in the memory or -1) of a PROXIMITY: known as in CONTACT_CANDIDATE; age: as in CONTACT.

    The neighbour of a contact has its corner, or for two edges the tool's edge, in common with it, and its normal.
    """
    known = 0
    at = -1
    for m in range(memory.count):
        key = memory.rows[m]
        if _same(key, row):
            return 2, min(key.age, 2**31 - 2) + 1, m
        second = key.second_triangle == row.second_triangle and key.second_feature == row.second_feature
        first = key.first_triangle == row.first_triangle and key.first_feature == row.first_feature
        crossing = 3 <= key.first_feature < FACE and 3 <= row.first_feature < FACE and 3 <= row.second_feature < FACE
        if (
            key.body_id == row.body_id
            and ((second and (row.second_feature < 3 or crossing)) or (first and row.first_feature < 3))
            and dot(vector(key.normal), normal) > SAME_NORMAL
        ):
            known = 1
            at = m
    return known, 0, at


@inner
def _slipping(memory: Any, body_id: int) -> int:
    """Ticks until a new contact counts as stuck, where others of the same body slip: it comes into their motion."""
    ticks = 0
    for m in range(memory.count):
        if memory.rows[m].body_id == body_id:
            ticks = max(ticks, memory.rows[m].slipped)
    return ticks


@inner
def _bits(memory: Any) -> tuple[int, int]:
    """Masks of the numbers, modulo 64, of the body's and of the tool's triangles in the last table."""
    first = 0
    second = 0
    for m in range(memory.count):
        first |= 1 << (memory.rows[m].first_triangle & 63)
        second |= 1 << (memory.rows[m].second_triangle & 63)
    return first, second


@inner
def _place(work: Any, row: Any, count: int, mask: int) -> int:
    """Where the candidate of a PROXIMITY belongs among `count` ones: at `count`, in place of a merged one, or -1.

    Of those that are merged the first one in the total order stays. mask: size of the hash table less 1.
    """
    first_kind = row.first_feature // 3
    second_kind = row.second_feature // 3
    mixed = (2 * row.first_id + first_kind) * 19349663 ^ (2 * row.second_id + second_kind) * 83492791
    place = ((mixed ^ row.body_id * 73856093) >> 3) & mask
    while work.places[place] != 0:
        at = work.places[place] - 1
        other = work.candidates[at]
        if (
            other.first_id == row.first_id
            and other.second_id == row.second_id
            and other.body_id == row.body_id
            and other.first_feature // 3 == first_kind
            and other.second_feature // 3 == second_kind
        ):
            return at if _before(row, other) else -1
        place = (place + 1) & mask
    work.places[place] = count + 1
    return count


@inner
def _touching_normal(triangles: Any, row: Any, tool: Quaternion, turn: Quaternion) -> Vector:
    # The scene normal of features at distance 0: that of the face, if there is one.
    if row.first_feature < 3 and row.second_feature == FACE:
        return scaled(rotate(tool, vector(triangles[row.second_triangle].normal)), -1.0)
    return rotate(turn, vector(triangles[row.first_triangle].normal))


@inner
def _collect(world: Any, triangles: Any, poses: Any, tool: Quaternion, proximities: Any, memory: Any, work: Any) -> int:
    """Write what is a contact of its own to the candidates of the working memory and return how many there are."""
    mask = 1
    while mask < 2 * proximities.count:
        mask *= 2
    work.places[:mask] = 0
    mask -= 1
    first_bits, second_bits = _bits(memory)
    entry = world.eps_safety + ENTRY * (world.eps_break - world.eps_safety)
    count = 0
    body_id = -1
    turn = to_tool = tool
    for i in range(proximities.count):
        row = proximities.rows[i]
        pose = poses[row.body_id]
        if row.body_id != body_id:
            body_id = row.body_id
            turn = quaternion(pose.orientation)
            to_tool = multiply(conjugate(tool), turn)
        hint = (first_bits >> (row.first_triangle & 63) | second_bits >> (row.second_triangle & 63)) & 1
        if row.distance >= entry and (hint == 0 or _recall(memory, row, rotate(turn, vector(row.normal)))[0] == 0):
            continue
        if not is_contact(triangles, row, to_tool):
            continue
        at = _place(work, row, count, mask)
        if at < 0:
            continue
        if at == count:
            count += 1
        normal = rotate(turn, vector(row.normal))
        if row.distance <= 0.0:
            normal = _touching_normal(triangles, row, tool, turn)
        candidate = work.candidates[at]
        put_vector(candidate.point, to_scene(pose, vector(row.point_first)))
        put_vector(candidate.normal, normal)
        candidate.gap = row.distance
        candidate.body_id = row.body_id
        candidate.first_triangle = row.first_triangle
        candidate.second_triangle = row.second_triangle
        candidate.first_feature = row.first_feature
        candidate.second_feature = row.second_feature
        candidate.first_id = row.first_id
        candidate.second_id = row.second_id
        candidate.picked = 0
        candidate.known, candidate.age, before = _recall(memory, row, normal)
        put_vector(candidate.push, vector(memory.rows[before].push) if before >= 0 else (0.0, 0.0, 0.0))
        put_vector(candidate.moment, vector(memory.rows[before].moment) if before >= 0 else (0.0, 0.0, 0.0))
        candidate.slipped = memory.rows[before].slipped if before >= 0 else _slipping(memory, row.body_id)
        candidate.rank = row.distance - (SAME_GAP * world.eps_safety if candidate.known > 0 else 0.0)
    return count


@inner
def _group(work: Any, first: int, last: int) -> int:
    """Bring the deepest candidate of order[first:last] to its start, then what is of its group; return where that ends.

    Places in the plane of the group are counted from the deepest one.
    """
    order = work.order
    deepest = first
    for i in range(first + 1, last):
        a = work.candidates[order[i]]
        b = work.candidates[order[deepest]]
        if a.rank < b.rank or (a.rank == b.rank and _before(a, b)):
            deepest = i
    order[first], order[deepest] = order[deepest], order[first]
    seed = work.candidates[order[first]]
    normal = vector(seed.normal)
    origin = vector(seed.point)
    across, back = tangents(normal)
    along = scaled(back, -1.0)
    seed.x = 0.0
    seed.y = 0.0
    end = first + 1
    for i in range(first + 1, last):
        candidate = work.candidates[order[i]]
        if candidate.body_id == seed.body_id and dot(vector(candidate.normal), normal) >= GROUP:
            arm = subtract(vector(candidate.point), origin)
            candidate.x = dot(arm, along)
            candidate.y = dot(arm, across)
            order[i], order[end] = order[end], order[i]
            end += 1
    return end


@inner
def _worth(candidate: Any, reach: float, depth: float, least: float) -> float:
    """What it is worth (m) to keep a candidate that reaches out so far: nothing if not above zero.

    depth: gap of the deepest of its group; a nearer contact is worth more. least: reach below which it adds nothing.
    """
    if candidate.known > 0:
        return (1.0 + BETTER) * reach - 0.5 * least - (candidate.gap - depth)
    return reach - least - (candidate.gap - depth)


@inner
def _farthest(work: Any, first: int, last: int, origin: int, depth: float, least: float) -> int:
    """The candidate of order[first:last] that is worth most for its distance from another one; -1: none is."""
    centre = work.candidates[origin]
    best = -1
    most = 0.0
    for i in range(first, last):
        candidate = work.candidates[work.order[i]]
        x = candidate.x - centre.x
        y = candidate.y - centre.y
        worth = _worth(candidate, math.sqrt(x * x + y * y), depth, least)
        if worth > most or (best >= 0 and worth == most and _before(candidate, work.candidates[best])):
            most = worth
            best = work.order[i]
    return best


@inner
def _open_edge(work: Any, edge: Any, start: int, end: int, first: int, last: int, depth: float, least: float) -> int:
    """Make an edge of the polygon with those of order[first:last] beyond it that are worth anything; return their end.

    What is worth nothing now never will be: the polygon only grows.
    """
    a = work.candidates[start]
    b = work.candidates[end]
    order = work.order
    span = math.hypot(b.x - a.x, b.y - a.y)
    x = (b.x - a.x) / span
    y = (b.y - a.y) / span
    edge.start = start
    edge.end = end
    edge.first = first
    edge.worth = 0.0
    edge.best = -1
    for i in range(first, last):
        candidate = work.candidates[order[i]]
        height = x * (candidate.y - a.y) - y * (candidate.x - a.x)  # over the edge, on its left
        if height <= 0.0 or order[i] == start or order[i] == end:
            continue
        worth = _worth(candidate, height, depth, least)
        if worth <= 0.0:
            continue
        if worth > edge.worth or (
            edge.best >= 0 and worth == edge.worth and _before(candidate, work.candidates[edge.best])
        ):
            edge.worth = worth
            edge.best = order[i]
        order[i], order[first] = order[first], order[i]
        first += 1
    edge.last = first
    return first


@inner
def _pick(work: Any, group: int, candidate: int) -> bool:
    """Add a candidate to the picks of its group unless it is there; return whether there is room for more."""
    if work.candidates[candidate].picked == 0:
        work.candidates[candidate].picked = 1
        work.picks[group, work.pick_count[group]] = candidate
        work.pick_count[group] += 1
    else:
        work.candidates[candidate].picked = 2
    return work.pick_count[group] <= MAX_CONTACTS


@inner
def _pick_corners(work: Any, group: int, edges: int, until: int, depth: float, least: float) -> int:
    """Take corners of the polygon that are worth most, until it has `until` of them; return how many it has."""
    while edges < until:
        best = -1
        for m in range(edges):
            edge = work.edges[m]
            if edge.best >= 0 and (best < 0 or edge.worth > work.edges[best].worth):
                best = m
        if best < 0:
            break
        edge = work.edges[best]
        corner = edge.best
        end = edge.end
        last = edge.last
        middle = _open_edge(work, edge, edge.start, corner, edge.first, last, depth, least)
        _open_edge(work, work.edges[edges], corner, end, middle, last, depth, least)
        edges += 1
        if not _pick(work, group, corner):
            break
    return edges


@inner
def _pick_inside(work: Any, group: int, first: int, last: int, seed: int, span: float, level: float) -> None:
    """Pick those of order[first:last] that would be the deepest after a small tilt of the tool one way or another.

    seed: the deepest as it is; span: width of the group, m; level: depth that counts as none, m. These are contacts
    that carry load although others of larger gap lie around them.
    """
    depth = work.candidates[work.order[first]].gap
    most = depth
    for i in range(first, last):
        gap = work.candidates[work.order[i]].gap
        depth = min(depth, gap)
        most = max(most, gap)
    if most - depth <= level:
        return
    slope = (most - depth) / span
    bonus = BETTER * (most - depth)
    for tilt in TILTS:
        x = slope * tilt[0]
        y = slope * tilt[1]
        best = -1
        least = math.inf
        for i in range(first, last):
            candidate = work.candidates[work.order[i]]
            height = candidate.gap + x * candidate.x + y * candidate.y
            if candidate.known > 0:
                height -= bonus
            if candidate.picked > 0 and work.order[i] != seed:
                height -= level
            if height < least or (height == least and _before(candidate, work.candidates[best])):
                least = height
                best = work.order[i]
        if not _pick(work, group, best):
            return


@inner
def _width(work: Any, first: int, last: int, start: int, end: int) -> float:
    """How far those of order[first:last] are from the line through two candidates on both sides together, m."""
    a = work.candidates[start]
    b = work.candidates[end]
    span = math.hypot(b.x - a.x, b.y - a.y)
    x = (b.x - a.x) / span
    y = (b.y - a.y) / span
    left = 0.0
    right = 0.0
    for i in range(first, last):
        candidate = work.candidates[work.order[i]]
        height = x * (candidate.y - a.y) - y * (candidate.x - a.x)
        left = max(left, height)
        right = min(right, height)
    return left - right


@inner
def _reduce(work: Any, group: int, first: int, last: int, safety: float) -> None:
    """Write the picks of the group order[first:last], whose deepest one is its first; safety: eps_safety."""
    seed = work.order[first]
    depth = work.candidates[seed].gap
    work.pick_count[group] = 0
    _pick(work, group, seed)
    _pick_next(work, group, first, last, SAME_GAP * safety)
    start = _farthest(work, first, last, seed, depth, ARM * safety)
    if start < 0:
        return
    end = _farthest(work, first, last, start, depth, ARM * safety)
    if end < 0:
        end = seed
    _pick(work, group, start)
    _pick(work, group, end)
    a = work.candidates[start]
    b = work.candidates[end]
    span = math.hypot(b.x - a.x, b.y - a.y)
    least = max(ARM * safety, SLENDER * _width(work, first, last, start, end))
    middle = _open_edge(work, work.edges[0], start, end, first, last, depth, least)
    _open_edge(work, work.edges[1], end, start, middle, last, depth, least)
    corners = _pick_corners(work, group, 2, FIRST_CORNERS, depth, least)
    if work.pick_count[group] <= MAX_CONTACTS:
        _pick_inside(work, group, first, last, seed, span, LEVEL * safety)
    if work.pick_count[group] <= MAX_CONTACTS:
        _pick_corners(work, group, corners, MAX_CONTACTS + 2, depth, least)
    if work.candidates[seed].picked == 1:
        _drop_seed(work, group, depth + SAME_GAP * safety)


@inner
def _gap_halfway(work: Any, candidate: Any) -> float:
    """The gap of a candidate, m, after half of the motion that the work memory holds, to first order."""
    turned = cross(vector(work.turn), vector(candidate.point))
    return candidate.gap + 0.5 * dot(vector(candidate.normal), add(vector(work.shift), turned))


@inner
def _pick_next(work: Any, group: int, first: int, last: int, least: float) -> None:
    """Pick the candidate of order[first:last] that is the deepest halfway, if it is so by least, m.

    A wheel of triangles pivots about one corner after the other. Where only the one counts that is the deepest as the
    step begins it sinks, and what lifts it again is energy from nothing; the one at the end would brake it.
    """
    best = work.order[first]
    depth = _gap_halfway(work, work.candidates[best]) - least
    for i in range(first + 1, last):
        candidate = work.candidates[work.order[i]]
        gap = _gap_halfway(work, candidate)
        if gap < depth or (gap == depth and _before(candidate, work.candidates[best])):
            depth = gap
            best = work.order[i]
    if best != work.order[first]:
        _pick(work, group, best)


@inner
def _drop_seed(work: Any, group: int, depth: float) -> None:
    """Let another pick of no more than a gap stand for the first one of a group, which is inside of the polygon."""
    for turn in range(1, work.pick_count[group]):
        pick = work.picks[group, turn]
        if work.candidates[pick].gap <= depth:
            for i in range(turn, work.pick_count[group] - 1):
                work.picks[group, i] = work.picks[group, i + 1]
            work.pick_count[group] -= 1
            work.picks[group, 0] = pick
            return


@inner
def _share_out(work: Any, groups: int, most: int) -> int:
    """Choose among the picks of the groups: one of each in turn, in each turn known ones first; return how many."""
    count = 0
    for turn in range(most):
        for fresh in range(2):
            for group in range(groups):
                if turn >= work.pick_count[group] or count == most:
                    continue
                pick = work.picks[group, turn]
                if (work.candidates[pick].known == 0) == (fresh == 1):
                    work.chosen[count] = pick
                    count += 1
    return count


@inner
def _sort_chosen(work: Any, count: int) -> None:
    for i in range(1, count):
        pick = work.chosen[i]
        a = work.candidates[pick]
        j = i
        while j > 0:
            b = work.candidates[work.chosen[j - 1]]
            if b.gap < a.gap or (b.gap == a.gap and _before(b, a)):
                break
            work.chosen[j] = work.chosen[j - 1]
            j -= 1
        work.chosen[j] = pick


@inner
def _remember(memory: Any, work: Any, count: int, groups: int) -> None:
    """Keep the chosen candidates until the next tick, and after them other picks of the groups while there is room."""
    known = 0
    for i in range(count):
        _put_key(memory.rows[known], work.candidates[work.chosen[i]])
        work.candidates[work.chosen[i]].picked = -1
        known += 1
    for turn in range(MAX_CONTACTS + 1):
        for group in range(groups):
            if turn >= work.pick_count[group] or known == MAX_REMEMBERED:
                continue
            candidate = work.candidates[work.picks[group, turn]]
            if candidate.picked >= 0:
                _put_key(memory.rows[known], candidate)
                known += 1
    for i in range(known, memory.known):
        key = memory.rows[i]
        put_vector(key.normal, (0.0, 0.0, 0.0))
        put_vector(key.push, (0.0, 0.0, 0.0))
        put_vector(key.moment, (0.0, 0.0, 0.0))
        key.body_id = key.first_triangle = key.second_triangle = 0
        key.first_feature = key.second_feature = key.age = key.slipped = 0
    memory.count = count
    memory.known = known


@inner
def _put_key(key: Any, candidate: Any) -> None:
    put_vector(key.normal, vector(candidate.normal))
    put_vector(key.push, vector(candidate.push))
    put_vector(key.moment, vector(candidate.moment))
    key.body_id = candidate.body_id
    key.first_triangle = candidate.first_triangle
    key.second_triangle = candidate.second_triangle
    key.first_feature = candidate.first_feature
    key.second_feature = candidate.second_feature
    key.age = candidate.age
    key.slipped = candidate.slipped


@inner
def _write(model: tuple, work: Any, count: int, report: np.void) -> None:
    """Write the chosen candidates to the report."""
    for i in range(count):
        candidate = work.candidates[work.chosen[i]]
        contact = report.contacts[i]
        put_vector(contact.point, vector(candidate.point))
        put_vector(contact.normal, vector(candidate.normal))
        put_vector(contact.displacement, (0.0, 0.0, 0.0))
        contact.gap = candidate.gap
        contact.body_id = candidate.body_id
        contact.face_id = model.triangles[candidate.first_triangle].face_id
        contact.feature = candidate.first_feature
        contact.sliding = 0
        contact.tool_face_id = model.triangles[candidate.second_triangle].face_id
        contact.tool_feature = candidate.second_feature
        contact.age = candidate.age
    report.contact_count = count


@inner
def choose_contacts(
    world: Any, triangles: Any, poses: Any, tool: Quaternion, proximities: Any, memory: Any, work: Any, most: int
) -> tuple[int, int]:
    """Choose the contacts among some proximities: (how many, of how many groups they are picks).

    world: WORLD; triangles: TRIANGLE table; poses: POSE table with the first body of each proximity in its row; tool:
    orientation of the second one; proximities: PROXIMITIES, memory: CONTACT_MEMORY and work: CONTACT_WORK records, this
    with the motion of the step; most: contacts wanted. They are work.candidates[work.chosen[i]], nearest first. The
    result is a function of the motion, of the memory and of the set of proximities, whatever the order in which these
    are listed.
    """
    last = _collect(world, triangles, poses, tool, proximities, memory, work)
    for i in range(last):
        work.order[i] = i
    first = 0
    groups = 0
    while first < last and groups < MAX_CONTACTS:
        end = _group(work, first, last)
        _reduce(work, groups, first, end, world.eps_safety)
        groups += 1
        first = end
    count = _share_out(work, groups, most)
    _sort_chosen(work, count)
    return count, groups


@kernel
def update_contacts(model: tuple, state: tuple, report: np.void) -> None:
    """Fill report.contacts with the contacts of a tool mesh among the proximities of this step, nearest first.

    model: Model; state: State, with the bodies and the tool still where the proximities were found; report: STEP_REPORT
    record. A contact is there from a gap of eps_safety + ENTRY (eps_break - eps_safety) on until it reaches eps_break.
    The first row has the least gap of all, or one that differs from it by no more than 2 SAME_GAP eps_safety.
    DEGRADED_CONTACTS is set when the proximities are incomplete, and not for what is left out here: corners that add
    little to the area of their group, or groups beyond the MAX_CONTACTS nearest ones.
    Work: each candidate is looked at a bounded number of times per group and pick.
    """
    if state.query_work[0].proximities.incomplete != 0:
        report.degraded |= DEGRADED_CONTACTS
    work = state.contact_work[0]
    memory = state.contact_memory[0]
    tool = quaternion(state.proxy[0].orientation)
    put_vector(work.shift, (0.0, 0.0, 0.0))
    put_vector(work.turn, (0.0, 0.0, 0.0))
    # fmt: off
    count, groups = choose_contacts(
        model.world[0], model.triangles, state.poses, tool, state.query_work[0].proximities, memory, work, MAX_CONTACTS,
    )
    # fmt: on
    _remember(memory, work, count, groups)
    _write(model, work, count, report)
