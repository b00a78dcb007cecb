"""First contact of a moving and a resting body by their trees of balls, kept to repeat published comparisons.

Pairs of balls are tested over the part of the step before the first contact found so far; pairs of leaves hand their
features to the elementary tests. The test of two balls asks, in this order: do they overlap at the start or at the end;
is one beyond what the other can reach (a pipe around the axis of the screw, cut off at both ends); and does the
polynomial of their distance reach zero in between, which is quadratic for pure translations and rotations.

Labels: two leaves that hold the same features as a pair tested before need no test, nor do two inner nodes all of whose
leaves do. A pair of features that belongs to many pairs of leaves is tested once. Both are remembered in tables of
fixed size with open addressing; an entry counts only if it bears the stamp of the present query, so that nothing is
ever cleared, and when a place is not to be had the pair is merely tested again. What was tested up to some time holds
for all of the query, because later tests only look at earlier times.

Source: Redon 2002, 2.3 (balls), 2.5 (bounds, special cases, end poses, labels).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from rtcore.collision.elementary.advance import edge_edge, face_vertex, vertex_face
from rtcore.collision.overlap_modes import quartic_falls_to
from rtcore.geometry.sphere_tree import SphereTree
from rtcore.kernels import inner, kernel
from rtcore.motion import STILL, TAN_HALF
from rtcore.spatial import Vector, add, conjugate, cross, dot, length, quaternion, rotate, scaled, subtract, vector

REMEMBER_BALLS = 1
"""Leave out pairs of nodes whose labels have been tested."""
REMEMBER_FEATURES = 2
"""Leave out pairs of features that have been tested."""

EDGE_EDGE = 0
VERTEX_FACE = 1
FACE_VERTEX = 2

_BALLS = 3  # row of the tables for pairs of labels, after those for pairs of features
_PROBES = 32
_CAP = 64
_STACK = 512  # four pairs are put on it for one taken off, on each of at most 64 levels of both trees

_MEMORY = np.dtype([("key", "i8"), ("stamp", "i8")], align=True)
BALL_SCREW = np.dtype(
    [
        ("axis", "f8", 3),
        ("pivot", "f8", 3),
        ("across", "f8", 3),  # velocity of the pivot at the start by x = tan(W u / 2) / tan(W / 2), across the axis, m
        ("advance", "f8"),  # m
        ("tangent", "f8"),  # of half the angle
        ("pad", "f8"),  # rounding of a value of the polynomial of the distance, m^2
    ],
    align=True,
)
"""The motion of the second body in the frame of the resting first one, as `balls_overlap` wants it."""


class SphereContact(NamedTuple):
    """What `first_contact` found."""

    time: float
    """Proven free on 0 <= u < time; the query's limit if nothing was found."""
    found: bool
    kind: int
    """EDGE_EDGE, VERTEX_FACE or FACE_VERTEX; -1 if nothing was found."""
    first: int
    """Number of the feature in the first body's tree; -1 if nothing was found."""
    second: int


class PairMemory:
    """Tables of pairs tested: three for pairs of features and one for pairs of labels."""

    def __init__(self, bits: int = 16) -> None:
        """Make tables of 2**bits places each."""
        self.rows = np.zeros((4, 1 << bits), _MEMORY)
        self.stamp = 0


def first_contact(
    first: SphereTree,
    second: SphereTree,
    relative: Any,
    query: Any,
    counters: Any,
    memory: PairMemory,
    remember: int = REMEMBER_BALLS | REMEMBER_FEATURES,
) -> SphereContact:
    """The first time at which the second body comes within query.separation of the resting first one.

    relative: RELATIVE record, the first STILL, the second STILL, TAN_HALF or without rotation; query: QUERY record, of
    which separation, limit and the tolerances are used; counters: COUNTERS record (sphere_tests, leaf_pairs, edge_edge,
    vertex_face, face_vertex, iterations); remember: REMEMBER_* bits. Features that begin nearer than the separation may
    slide or leave, as in the elementary tests. Not made to be stopped: it takes the work it takes.
    Raises ValueError for other motions.
    """
    moving = relative["second"]
    if relative["first"]["kind"] != STILL:
        raise ValueError("the first body must rest")
    if moving["kind"] not in (STILL, TAN_HALF) and moving["angle"] > 0.0:
        raise ValueError("the second body must be on a TAN_HALF motion")
    memory.stamp += 1
    screw = np.zeros(1, BALL_SCREW)[0]
    fill_ball_screw(relative, first.nodes[0], second.nodes[0], screw)
    found = _search(first, second, relative, screw, query, counters, memory.rows, memory.stamp, remember)
    return SphereContact(*found)


@inner
def _in_first(relative: Any, x: Vector) -> Vector:
    """A scene point in the frame of the resting first body."""
    still = relative.first
    return rotate(conjugate(quaternion(still.orientation)), subtract(x, vector(still.position)))


@inner
def _at_start(relative: Any, centre: Vector) -> Vector:
    """A point of the second body at u = 0, in the frame of the first."""
    moving = relative.second
    return _in_first(relative, add(vector(moving.position), rotate(quaternion(moving.orientation), centre)))


@kernel
def fill_ball_screw(relative: Any, first_root: Any, second_root: Any, screw: Any) -> None:
    """Fill a BALL_SCREW record.

    relative: RELATIVE record, motions as of `first_contact`; first_root, second_root: SPHERE_NODE records that hold all
    balls to be tested.
    """
    moving = relative.second
    back = conjugate(quaternion(relative.first.orientation))
    axis = rotate(back, vector(moving.axis))
    shift = rotate(back, vector(moving.shift))
    pivot = _in_first(relative, vector(moving.pivot))
    tangent = math.tan(0.5 * moving.angle)
    advance = axis[0] * shift[0] + axis[1] * shift[1] + axis[2] * shift[2]
    across = subtract(shift, scaled(axis, advance))
    side = cross(axis, across)
    for k in range(3):
        screw.axis[k] = axis[k]
        screw.pivot[k] = pivot[k]
        screw.across[k] = across[k] - tangent * side[k]
    screw.advance = advance
    screw.tangent = tangent
    start = _at_start(relative, vector(second_root.centre))
    reach = length(vector(first_root.centre)) + first_root.radius + length(start) + second_root.radius
    scene = length(vector(moving.position)) + length(vector(relative.first.position)) + length(vector(moving.pivot))
    sizes = (1.0 + tangent) * (reach + scene + length(shift) + length(vector(second_root.centre)))
    screw.pad = 2.0**-44 * sizes * sizes


@kernel
def balls_overlap(screw: Any, fixed: Vector, start: Vector, reach: float, end: float) -> bool:
    """Do a fixed ball and one that moves on a screw overlap at some x in 0..end?

    fixed, start: centres, the moving one's at the start, m, first's frame; reach: sum of the radii, m;
    x = tan(W u / 2) / tan(W / 2). The coefficients are those of `overlap_modes.ball_quartic`. Values within the pad of
    the screw count as an overlap.
    """
    n = vector(screw.axis)
    m = subtract(start, fixed)
    pad = screw.pad
    c0 = dot(m, m) - reach * reach
    if c0 <= pad:
        return True
    tangent = screw.tangent
    advance = screw.advance
    # Velocities across the axis by x of the moving centre and of a point where the fixed one is: 2 tangent times their
    # distances from the axis.
    arm = cross(n, subtract(start, vector(screw.pivot)))
    v = add(vector(screw.across), scaled(arm, 2.0 * tangent))
    along = dot(m, n)
    square = dot(v, v)
    c1 = 2.0 * (dot(m, v) + advance * along)
    c2 = tangent * tangent * c0 + square + 2.0 * tangent * dot(cross(n, v), m) + advance * advance
    c3 = 2.0 * advance * tangent * tangent * along
    c4 = advance * advance * tangent * tangent
    if c0 + end * (c1 + end * (c2 + end * (c3 + end * c4))) <= pad:
        return True

    slack = reach + math.sqrt(pad)
    if along + max(advance, 0.0) < -slack or along + min(advance, 0.0) > slack:
        return False
    w = add(vector(screw.across), scaled(cross(n, subtract(fixed, vector(screw.pivot))), 2.0 * tangent))
    if tangent > 0.0 and abs(length(w) - math.sqrt(square)) > 2.0 * tangent * slack:
        return False

    if c3 == 0.0 and c4 == 0.0:
        # Only a quadratic: its least value lies in between if its slope changes sign there.
        if c1 >= 0.0 or c1 + 2.0 * c2 * end <= 0.0:
            return False
        return 4.0 * c2 * (c0 - pad) <= c1 * c1
    return quartic_falls_to(c0, c1, c2, c3, c4, 0.0, end, pad)


@inner
def _known(rows: Any, table: int, stamp: int, key: int, keep: bool) -> bool:
    """Is the pair in the table? If not and `keep`, put it there, or leave it if there is no place."""
    mask = rows.shape[1] - 1
    # Multiplicative hashing (Knuth, 6.4): an odd number near 2^64 / golden ratio, here as a signed one.
    place = ((key * -7046029254386353131) >> 20) & mask
    for _ in range(_PROBES):
        row = rows[table, place]
        if row.stamp != stamp:
            if keep:
                row.key = key
                row.stamp = stamp
            return False
        if row.key == key:
            return True
        place = (place + 1) & mask
    return False


@inner
def _point(points: np.ndarray, i: int) -> Vector:
    return points[i, 0], points[i, 1], points[i, 2]


@inner
def _elementary(
    kind: int, first: SphereTree, second: SphereTree, i: int, j: int, relative: Any, query: Any, limit: float
) -> tuple[float, bool, int]:
    """The elementary test of feature i of the first and j of the second: (time, found, iterations)."""
    a = first.vertices
    b = second.vertices
    sep = query.separation
    soon = query.time_tolerance
    near = query.position_tolerance
    if kind == EDGE_EDGE:
        a0 = _point(a, first.edges[i, 0])
        a1 = _point(a, first.edges[i, 1])
        b0 = _point(b, second.edges[j, 0])
        return edge_edge(relative, a0, a1, b0, _point(b, second.edges[j, 1]), sep, limit, soon, near, _CAP)
    if kind == VERTEX_FACE:
        b0 = _point(b, second.faces[j, 0])
        b1 = _point(b, second.faces[j, 1])
        b2 = _point(b, second.faces[j, 2])
        return vertex_face(relative, _point(a, i), b0, b1, b2, sep, limit, soon, near, _CAP)
    a0 = _point(a, first.faces[i, 0])
    a1 = _point(a, first.faces[i, 1])
    a2 = _point(a, first.faces[i, 2])
    return face_vertex(relative, a0, a1, a2, _point(b, j), sep, limit, soon, near, _CAP)


@inner
def _count(counters: Any, kind: int, iterations: int) -> None:
    counters.iterations += iterations
    if kind == EDGE_EDGE:
        counters.edge_edge += 1
    elif kind == VERTEX_FACE:
        counters.vertex_face += 1
    else:
        counters.face_vertex += 1


@inner
def _section(row: Any, part: int) -> tuple[int, int]:
    """Where the vertices (0), edges (1) or faces (2) of a list begin and end in the table of items."""
    if part == 0:
        return row.vertices, row.edges
    if part == 1:
        return row.edges, row.faces
    return row.faces, row.end


@njit(cache=True, nogil=True, error_model="numpy")
def _search(
    first: SphereTree,
    second: SphereTree,
    relative: Any,
    screw: Any,
    query: Any,
    counters: Any,
    rows: Any,
    stamp: int,
    remember: int,
) -> tuple[float, bool, int, int, int]:
    """The query itself, as of `first_contact`: (time, found, kind, first feature, second feature)."""
    stack = np.empty((_STACK, 2), dtype=np.int64)
    stack[0, 0] = 0
    stack[0, 1] = 0
    size = 1
    best = (query.limit, False, -1, -1, -1)
    end = _share(relative, query.limit)
    while size > 0:
        size -= 1
        p = stack[size, 0]
        q = stack[size, 1]
        a = first.nodes[p]
        b = second.nodes[q]
        labels = (int(a.label) << 32) | int(b.label)
        if remember & REMEMBER_BALLS and _known(rows, _BALLS, stamp, labels, False):
            continue
        counters.sphere_tests += 1
        start = _at_start(relative, vector(b.centre))
        if not balls_overlap(screw, vector(a.centre), start, a.radius + b.radius + query.separation, end):
            continue
        if a.right == 0 and b.right == 0:
            found = _leaves(first, second, a.label, b.label, relative, query, counters, rows, stamp, remember, best)
            if found[0] < best[0]:
                end = _share(relative, found[0])
            best = found
            if remember & REMEMBER_BALLS:
                _known(rows, _BALLS, stamp, labels, True)
            continue
        for i in range(1 if a.right == 0 else 2):
            for j in range(1 if b.right == 0 else 2):
                stack[size, 0] = p if a.right == 0 else a.right if i == 1 else p + 1
                stack[size, 1] = q if b.right == 0 else b.right if j == 1 else q + 1
                size += 1
    return best


@inner
def _share(relative: Any, u: float) -> float:
    """x = tan(W u / 2) / tan(W / 2) at u, rounded up."""
    angle = relative.second.angle
    if angle < 1e-9:
        return u
    return min(math.tan(0.5 * angle * u) / math.tan(0.5 * angle) * (1.0 + 2.0**-48), 1.0)


@inner
def _leaves(
    first: SphereTree,
    second: SphereTree,
    label_a: int,
    label_b: int,
    relative: Any,
    query: Any,
    counters: Any,
    rows: Any,
    stamp: int,
    remember: int,
    best: tuple[float, bool, int, int, int],
) -> tuple[float, bool, int, int, int]:
    """Test the features of two leaves that have not been tested: the earlier contact of these and `best`."""
    counters.leaf_pairs += 1
    for kind in range(3):
        a0, a1 = _section(first.lists[label_a], 1 if kind == EDGE_EDGE else 0 if kind == VERTEX_FACE else 2)
        b0, b1 = _section(second.lists[label_b], 1 if kind == EDGE_EDGE else 2 if kind == VERTEX_FACE else 0)
        for m in range(a0, a1):
            i = int(first.items[m])
            for n in range(b0, b1):
                j = int(second.items[n])
                if remember & REMEMBER_FEATURES and _known(rows, kind, stamp, (i << 32) | j, True):
                    continue
                time, found, iterations = _elementary(kind, first, second, i, j, relative, query, best[0])
                _count(counters, kind, iterations)
                # What is not proven free at the cap counts as a contact: nothing here tells the two apart.
                if time < best[0] or (found and not best[1]):
                    best = (time, True, kind, i, j)
    return best
