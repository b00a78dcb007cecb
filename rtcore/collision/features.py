"""Closest points of two segments, and of a point and a triangle, for input of any shape.

The functions find the least distance to within a few ulp of the largest coordinate difference, also for parallel or
zero edges, needles and triangles without area; where the nearest point is not unique, it is one of the nearest.
Coordinates in one frame, m. Method: Ericson 2005 (Real-Time Collision Detection, 5.1.5 and 5.1.9), with all cross
products formed explicitly and the boundary searched edge by edge, since his clamping in turn loses half of the digits
for nearly parallel edges.
"""

from rtcore.kernels import inner, kernel
from rtcore.spatial import Vector, add, cross, dot, scaled, subtract

FACE = 6
"""Feature code of a face interior; 0..2 are vertices, 3..5 the edges (feature - 3) -> (feature - 2)."""

SLENDER = 1e-6
"""Square of height / longest edge below which the plane of a triangle is not trusted to tell inside from outside."""


@kernel
def along(origin: Vector, direction: Vector, share: float) -> Vector:
    """The point origin + share direction."""
    return origin[0] + share * direction[0], origin[1] + share * direction[1], origin[2] + share * direction[2]


@kernel
def point_segment(offset: Vector, edge: Vector) -> tuple[float, float]:
    """Return (share, square distance) of the point of the segment 0..edge nearest to `offset` (from its start).

    share: 0..1 along the edge; exactly 0 or 1 at an end; 0 for an edge of no length.
    """
    reach = dot(offset, edge)
    square = dot(edge, edge)
    if reach <= 0.0 or not square > 0.0:
        share = 0.0
    elif reach >= square:
        share = 1.0
    else:
        share = reach / square
    gap = subtract(offset, scaled(edge, share))
    if share == 1.0:  # one rounding, not two: a point on the end is at distance 0
        gap = subtract(offset, edge)
    return share, dot(gap, gap)


@kernel
def segment_segment(a0: Vector, a1: Vector, b0: Vector, b1: Vector) -> tuple[float, float, float]:
    """Return (s, t, square distance) of the nearest points a0 + s (a1 - a0) and b0 + t (b1 - b0), s and t in 0..1."""
    a = subtract(a1, a0)
    b = subtract(b1, b0)
    gap = subtract(b0, a0)
    normal = cross(a, b)
    square = dot(normal, normal)
    if square > 0.0:
        s = dot(cross(gap, b), normal) / square
        t = dot(cross(gap, a), normal) / square
        if 0.0 < s < 1.0 and 0.0 < t < 1.0:
            # For nearly parallel edges s is only known to (ulp / sine), but the valley of the distance rises as slowly
            # as the sine; with t taken anew for that s, nothing is lost.
            t, distance = point_segment(subtract(scaled(a, s), gap), b)
            if 0.0 < t < 1.0:
                return s, t, distance

    # An end of one edge against the other edge.
    t, best = point_segment(scaled(gap, -1.0), b)
    s = 0.0
    share, distance = point_segment(subtract(a1, b0), b)
    if distance < best:
        s, t, best = 1.0, share, distance
    share, distance = point_segment(gap, a)
    if distance < best:
        s, t, best = share, 0.0, distance
    share, distance = point_segment(subtract(b1, a0), a)
    if distance < best:
        s, t, best = share, 1.0, distance
    return s, t, best


@kernel
def point_triangle(p: Vector, a: Vector, b: Vector, c: Vector) -> tuple[float, float, float, int]:
    """Return (v, w, square distance, feature) of the point a + v (b - a) + w (c - a) of the triangle nearest to p.

    feature: 0..2 vertices a, b, c; 3..5 edges ab, bc, ca; 6 face interior.
    """
    ab = subtract(b, a)
    ac = subtract(c, a)
    bc = subtract(c, b)
    ap = subtract(p, a)
    normal = cross(ab, ac)
    square = dot(normal, normal)
    longest = max(dot(ab, ab), dot(ac, ac), dot(bc, bc))
    slender = not square > SLENDER * longest * longest
    v = 0.0
    w = 0.0
    if not slender:
        v = dot(cross(ap, ac), normal) / square
        w = dot(cross(ab, ap), normal) / square
        if v > 0.0 and w > 0.0 and v + w < 1.0:
            height = dot(ap, normal)
            return v, w, height * height / square, FACE

    # The nearest point is on an edge that p lies outside of; of a slender triangle every edge may be one.
    outside_ab = slender or w <= 0.0
    outside_ca = slender or v <= 0.0
    outside_bc = slender or v + w >= 1.0
    found_v, found_w, best, feature = 0.0, 0.0, dot(ap, ap), 0
    if outside_ab:
        share, best = point_segment(ap, ab)
        found_v = share
        if share > 0.0:
            feature = 3 if share < 1.0 else 1
    if outside_ca:
        share, distance = point_segment(ap, ac)
        if distance < best:
            found_v, found_w, best = 0.0, share, distance
            feature = 0
            if share > 0.0:
                feature = 5 if share < 1.0 else 2
    if outside_bc:
        share, distance = point_segment(subtract(p, b), bc)
        if distance < best:
            found_v, found_w, best = 1.0 - share, share, distance
            feature = 1
            if share > 0.0:
                feature = 4 if share < 1.0 else 2
    if slender and square > 0.0:
        v, w, distance = slender_face(ap, ab, ac, normal, square)
        if distance < best:
            return v, w, distance, FACE
    return found_v, found_w, best, feature


@inner
def slender_face(ap: Vector, ab: Vector, ac: Vector, normal: Vector, square: float) -> tuple[float, float, float]:
    """Return (v, w, square distance) of a point inside a needle, the nearest one if that is not on the boundary.

    The coordinate across the needle is poorly known, but the needle is thin; the one along it is found by projection
    on the longest edge and costs no digits. The result is a point of the triangle, whatever is lost.
    """
    bc = subtract(ac, ab)
    square_ab = dot(ab, ab)
    square_ac = dot(ac, ac)
    square_bc = dot(bc, bc)
    if square_ab >= square_ac and square_ab >= square_bc:
        w = min(max(dot(cross(ab, ap), normal) / square, 0.0), 1.0)
        v = dot(subtract(ap, scaled(ac, w)), ab) / square_ab
        v = min(max(v, 0.0), 1.0 - w)
    elif square_ac >= square_bc:
        v = min(max(dot(cross(ap, ac), normal) / square, 0.0), 1.0)
        w = dot(subtract(ap, scaled(ab, v)), ac) / square_ac
        w = min(max(w, 0.0), 1.0 - v)
    else:
        rest = min(max(1.0 - dot(cross(ap, ac), normal) / square - dot(cross(ab, ap), normal) / square, 0.0), 1.0)
        start = scaled(ab, 1.0 - rest)
        w = dot(subtract(ap, start), bc) / square_bc
        w = min(max(w, 0.0), 1.0 - rest)
        v = 1.0 - rest - w
    gap = subtract(ap, add(scaled(ab, v), scaled(ac, w)))
    return v, w, dot(gap, gap)
