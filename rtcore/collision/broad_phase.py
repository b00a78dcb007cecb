"""Which pairs of bodies can come near each other within a tick: sweep and prune over boxes that hold the motions.

Each body gets a box along the scene's axes that holds it over the whole tick: the box of its root at half time, grown
by the bound on its path from there and by half of the reach. The lower ends are kept sorted along all three axes from
tick to tick, where at small motions next to nothing has to be moved; the pass over them is made along the axis on which
the boxes are spread most. Pairs come out sorted by their numbers, so the result depends on the motions alone and not
on the ticks before.

Running out of room or units is safe: a pair that was not reached is one of two bodies that are both marked as blocked.
Pairs of bodies that are not both blocked are complete.

Source: sweep and prune, Cohen, Lin, Manocha and Ponamgi 1995 (I-COLLIDE).
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.motion import SCREW, STILL, path_bound, pose
from rtcore.spatial import add, length, rotate, scaled, vector

MAX_BODIES = 4096
"""Most bodies of one broad phase."""
PAD = 64.0 * 2.0**-52
"""Boxes are grown by this share of the lengths that enter, for rounding."""

BROAD_BODY = np.dtype(
    [
        ("centre", "f8", 3),  # of an oriented box that holds the body, body frame, m
        ("axes", "f8", (3, 3)),  # one unit axis per row
        ("half", "f8", 3),  # half lengths, m
        ("radius", "f8"),  # of a ball about the centre that holds the body, m; inf for a body without end
        ("group", "u4"),  # bits: what the body is
        ("mask", "u4"),  # bits: what it meets; a pair needs group & mask both ways
        ("fixed", "i4"),  # 1: two such bodies are never a pair
        ("excluded_first", "i4"),  # own part of the table of excluded partners
        ("excluded_count", "i4"),
        ("blocked", "i4"),  # result: 1 when some of its pairs may be missing
    ],
    align=True,
)
"""A body as the broad phase knows it."""

BROAD_REPORT = np.dtype(
    [
        ("pair_count", "i4"),  # rows of the table of pairs that were filled
        ("blocked_count", "i4"),  # bodies marked as blocked; 0: the pairs are complete
        ("axis", "i4"),  # the axis that the pass was made along
        ("shifts", "i4"),  # units: entries moved while sorting
        ("box_tests", "i4"),  # units: pairs of boxes tested
        ("units_used", "i4"),
    ],
    align=True,
)
"""Work and result of one broad phase."""


@by_reference
class BroadPhase(NamedTuple):
    """Tables of the broad phase; `bodies` (but for `blocked`) and `excluded` stay as they were made."""

    bodies: np.ndarray
    """(n,) BROAD_BODY."""
    excluded: np.ndarray
    """(m,) i4: for each body its partners that it is never a pair with, rising."""
    bounds: np.ndarray
    """(n, 6) least and largest x, y, z of the boxes of this tick, scene, m."""
    order: np.ndarray
    """(3, n) i4: bodies by their lower ends along each axis; the only thing kept between ticks, and only for speed."""
    pairs: np.ndarray
    """(capacity, 2) i4: rows of bodies, the smaller first, rising."""
    scratch: np.ndarray
    """(capacity, 2) i4: pairs while they are sorted."""
    starts: np.ndarray
    """(n + 1,) i4: sorting by counting."""
    report: np.ndarray
    """(1,) BROAD_REPORT."""


def make_broad_phase(
    roots: np.ndarray,
    fixed: Sequence[bool],
    groups: Sequence[int] | None = None,
    masks: Sequence[int] | None = None,
    excluded: Iterable[tuple[int, int]] = (),
    capacity: int = 0,
) -> BroadPhase:
    """Make the tables for n bodies.

    roots: (n,) BOX_NODE, root nodes of the bodies' trees, body frame (for others a record with centre, axes, half and
    radius filled; inf for what has no end); fixed: for each body, whether it never moves; groups, masks: bit sets
    below 2^32 (default: everything meets everything); excluded: pairs of rows that are never tested, in any order;
    capacity: most pairs listed (default 8 per body and 64 more). ValueError for what does not fit together.
    """
    n = len(roots)
    if not 0 < n <= MAX_BODIES:
        raise ValueError(f"a broad phase needs 1 .. {MAX_BODIES} bodies, not {n}")
    bodies = np.zeros(n, BROAD_BODY)
    for field in ("centre", "axes", "half", "radius"):
        bodies[field] = roots[field]
    sizes_good = (bodies["half"] >= 0.0).all() and (bodies["radius"] >= 0.0).all()
    if not (np.isfinite(bodies["centre"]).all() and sizes_good):
        raise ValueError("boxes of bodies need finite centres, and half lengths and radii that are not negative")
    for field, given in (("group", groups), ("mask", masks), ("fixed", fixed)):
        values = [0xFFFFFFFF] * n if given is None else list(given)
        if len(values) != n:
            raise ValueError(f"there are {n} bodies, but {len(values)} values for '{field}'")
        if not all(0 <= int(value) <= 0xFFFFFFFF for value in values):
            raise ValueError(f"every value for '{field}' must fit into 32 bits")
        bodies[field] = values
    partners: list[set[int]] = [set() for _ in range(n)]
    for a, b in excluded:
        if not (0 <= a < n and 0 <= b < n) or a == b:
            raise ValueError(f"an excluded pair must be two different rows of 0 .. {n - 1}, not {(a, b)}")
        partners[min(a, b)].add(max(a, b))
    counts = np.array([len(p) for p in partners])
    bodies["excluded_count"] = counts
    bodies["excluded_first"] = np.cumsum(counts) - counts
    room = capacity if capacity > 0 else 8 * n + 64
    return BroadPhase(
        bodies,
        np.array([b for p in partners for b in sorted(p)] or [-1], dtype=np.int32),
        np.zeros((n, 6)),
        np.tile(np.arange(n, dtype=np.int32), (3, 1)),
        np.zeros((room, 2), dtype=np.int32),
        np.zeros((room, 2), dtype=np.int32),
        np.zeros(n + 1, dtype=np.int32),
        np.zeros(1, BROAD_REPORT),
    )


@kernel
def find_pairs(broad: BroadPhase, motions: np.ndarray, reach: float, units: int) -> None:
    """List in `broad.pairs` all pairs of bodies that may come within `reach` of each other on u in 0..1.

    motions: (n,) MOTION, one per body; reach: m, scene; units: work allowed: entries moved while sorting, and pairs of
    boxes tested. The first call has everything to sort, up to 3 n^2 / 2 entries moved, and belongs outside the tick.

    A body whose `blocked` is set afterwards may have pairs with other blocked ones that are not listed. The caller has
    to leave all blocked bodies where they are in this tick, which is free whatever else they would have met; their
    pairs with other bodies are listed. Which bodies get blocked depends on `broad.order` too, so that is part of the
    state that a repetition starts from. Pairs of two fixed bodies, excluded pairs and pairs whose groups and masks do
    not meet are never listed.
    """
    report = broad.report[0]
    report.pair_count = 0
    report.blocked_count = 0
    report.shifts = 0
    report.box_tests = 0
    for i in range(len(broad.bodies)):
        broad.bodies[i].blocked = 0
        _bound(broad.bodies[i], motions[i], 0.5 * reach, broad.bounds[i])
    axis = _widest(broad.bounds)
    report.axis = axis
    left, done = _sort(broad.order[axis], broad.bounds, axis, units)
    if done:
        left = _sweep(broad, axis, left)
    else:
        _block(broad, broad.order[axis], 0)
    for k in range(1, 3):  # the other axes are only kept ready for the day when the bodies spread along them
        other = (axis + k) % 3
        left, done = _sort(broad.order[other], broad.bounds, other, left)
    report.shifts = units - left - report.box_tests
    report.units_used = units - left
    _order_pairs(broad)


@inner
def _bound(body: np.void, motion: np.void, inflation: float, bounds: np.ndarray) -> None:
    """Write the box (least and largest x, y, z) that holds the body over the tick, grown by `inflation`.

    Padded by PAD. A body without end may be anywhere.
    """
    centre = vector(body.centre)
    radius = body.radius
    place, turn = pose(motion, 0.5)
    middle = add(place, rotate(turn, centre))
    path = path_bound(motion, centre, radius, 0.0, 0.5)
    if motion.kind not in (STILL, SCREW):  # these go as far in the second half
        path = max(path, path_bound(motion, centre, radius, 0.5, 1.0))
    extent = (0.0, 0.0, 0.0)
    for k in range(3):
        axis = rotate(turn, vector(body.axes[k]))
        extent = add(extent, scaled((abs(axis[0]), abs(axis[1]), abs(axis[2])), body.half[k]))
    pad = PAD * (length(place) + length(centre))
    for k in range(3):
        grown = min(extent[k], radius) * (1.0 + PAD) + path + inflation + pad
        if not (radius < math.inf and grown < math.inf and abs(middle[k]) < math.inf):
            grown = math.inf  # a body without end, or numbers that mean nothing: anywhere
        centre_k = middle[k] if grown < math.inf else 0.0
        bounds[k] = centre_k - grown
        bounds[3 + k] = centre_k + grown


@inner
def _widest(bounds: np.ndarray) -> int:
    """The axis along which the centres of the finite boxes are spread most, as a multiple of their mean width."""
    best = 0
    widest = -1.0
    for k in range(3):
        count = 0
        mean = 0.0
        square = 0.0
        width = 0.0
        for i in range(bounds.shape[0]):
            size = bounds[i, 3 + k] - bounds[i, k]
            if size < math.inf:
                count += 1
                centre = 0.5 * (bounds[i, k] + bounds[i, 3 + k])
                step = centre - mean
                mean += step / count
                square += step * (centre - mean)
                width += size
        if count > 0:
            width /= count
            spread = square / count / max(width * width, 1e-300)
            if spread > widest:
                widest = spread
                best = k
    return best


@inner
def _sort(order: np.ndarray, bounds: np.ndarray, axis: int, units: int) -> tuple[int, bool]:
    """Sort by (lower end, number) by insertion: (units left, True when sorted). Stops short without disorder."""
    for i in range(1, len(order)):
        body = order[i]
        key = bounds[body, axis]
        k = i
        while k > 0:
            other = order[k - 1]
            if bounds[other, axis] < key or (bounds[other, axis] == key and other < body):
                break
            if units == 0:
                order[k] = body
                return 0, False
            units -= 1
            order[k] = other
            k -= 1
        order[k] = body
    return units, True


@inner
def _sweep(broad: BroadPhase, axis: int, units: int) -> int:
    """Test each body against those whose lower end lies within it, and list the pairs; return the units left."""
    order = broad.order[axis]
    bounds = broad.bounds
    second = (axis + 1) % 3
    third = (axis + 2) % 3
    count = 0
    capacity = len(broad.pairs)
    start = units
    for i in range(len(order)):
        a = order[i]
        upper = bounds[a, 3 + axis]
        for k in range(i + 1, len(order)):
            b = order[k]
            if bounds[b, axis] > upper:
                break
            if units == 0 or count == capacity:
                _block(broad, order, i)
                broad.report[0].pair_count = count
                broad.report[0].box_tests = start - units
                return units
            units -= 1
            if (
                bounds[a, second] <= bounds[b, 3 + second]
                and bounds[b, second] <= bounds[a, 3 + second]
                and bounds[a, third] <= bounds[b, 3 + third]
                and bounds[b, third] <= bounds[a, 3 + third]
                and _meet(broad, min(a, b), max(a, b))
            ):
                broad.pairs[count, 0] = min(a, b)
                broad.pairs[count, 1] = max(a, b)
                count += 1
    broad.report[0].pair_count = count
    broad.report[0].box_tests = start - units
    return units


@inner
def _block(broad: BroadPhase, order: np.ndarray, first: int) -> None:
    """Mark all bodies from a place in the order on: a pair that was not reached is one of two of these."""
    for k in range(first, len(order)):
        broad.bodies[order[k]].blocked = 1
    broad.report[0].blocked_count = len(order) - first


@inner
def _meet(broad: BroadPhase, a: int, b: int) -> bool:
    """May the bodies a < b be a pair at all?"""
    first = broad.bodies[a]
    second = broad.bodies[b]
    if first.fixed != 0 and second.fixed != 0:
        return False
    if (first.group & second.mask) == 0 or (second.group & first.mask) == 0:
        return False
    low = first.excluded_first
    high = low + first.excluded_count
    while low < high:
        middle = (low + high) // 2
        if broad.excluded[middle] < b:
            low = middle + 1
        else:
            high = middle
    return low >= first.excluded_first + first.excluded_count or broad.excluded[low] != b


@inner
def _order_pairs(broad: BroadPhase) -> None:
    """Sort the pairs by first, then second body: counted by the second, then, keeping that order, by the first."""
    count = broad.report[0].pair_count
    _counted(broad.pairs, broad.scratch, count, 1, broad.starts)
    _counted(broad.scratch, broad.pairs, count, 0, broad.starts)


@inner
def _counted(source: np.ndarray, target: np.ndarray, count: int, column: int, starts: np.ndarray) -> None:
    for i in range(len(starts)):
        starts[i] = 0
    for k in range(count):
        starts[source[k, column] + 1] += 1
    for i in range(1, len(starts)):
        starts[i] += starts[i - 1]
    for k in range(count):
        row = source[k, column]
        place = starts[row]
        starts[row] += 1
        target[place, 0] = source[k, 0]
        target[place, 1] = source[k, 1]


def pair_table(broad: BroadPhase) -> np.ndarray:
    """Return the pairs of the last call as a new (k, 2) array."""
    return broad.pairs[: int(broad.report[0]["pair_count"])].copy()
