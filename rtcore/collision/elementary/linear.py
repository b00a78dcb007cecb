"""Continuous tests of vertices that move on straight lines at constant rate (deformable meshes).

Two lower bounds on the time of contact push each other on; both hold in exact arithmetic, and neither is tuned:

* a fixed direction n that separates the features at one time: along n every vertex moves linearly, so the first time
  at which the least gap of a pair of vertices along n is down to the separation has a closed form (the directional
  form of conservative advancement, Zhang et al. 2006, without its bound on the speed);
* the cubic of coplanarity c(t) = w . (e x f) (Provot 1997): |c| / |e x f| is the distance of the lines, or of the point
  and the plane, so no contact is possible while c(t) > separation |e x f|. A norm is convex: |e x f| lies below the
  Bernstein polynomial of the norms of its coefficients, and the condition is a sign of a cubic, clipped by its hull.

Where the planes meet beside the features the first bound jumps over the root of the second; where the features only
graze or turn, the second is exact and the first would creep. All rounding is bounded beforehand (see the constants).
"""

import math

from rtcore.collision.features import FACE, along, point_triangle, segment_segment
from rtcore.kernels import inner, kernel
from rtcore.spatial import Vector, add, cross, dot, length, scaled, subtract

ULP = 2.0**-52
LINEAR_PAD = 8.0 * ULP
"""Times |n|.(|w| + |e| + |f|): above the rounding of a gap along n at any time. The scalar products lose 2 ulp of it,
with the rounding of their input, their sums 1, and the line between the ends 2."""
CUBIC_PAD = 10.0 * ULP
"""Times |w|.(|e| x |f|), all products added: above the rounding of a coefficient of the cubic, 7 ulp. The components of
the cross product lose 3 ulp, with the rounding of their input; the scalar product with w 3 more, and the mean 1."""
NORMAL_PAD = 10.0 * ULP
"""Times separation and the sum of the components of |e| x |f|: above the rounding of separation |e x f|, 7 ulp."""
CLIP_PAD = 16.0 * ULP
"""Times the largest coefficient: above the rounding of a cubic restricted to a part of 0..1 (5 ulp) and of the time at
which it is clipped (4 ulp)."""
FLOOR = 1e-300
"""Above what underflow can take from any of these."""
SMALL = 1e-150
"""Above a length whose square may underflow."""
PARALLEL = 1e-28
"""Square of the sine below which the cross product of two edges points anywhere."""
CLIPS = 24
"""Rounds of clipping; each halves the time in question or better."""


@kernel
def larger(a: Vector, b: Vector) -> Vector:
    """The larger of the absolute values of each component."""
    return max(abs(a[0]), abs(b[0])), max(abs(a[1]), abs(b[1])), max(abs(a[2]), abs(b[2]))


@inner
def summed_products(a: Vector, b: Vector) -> Vector:
    """The cross product with all terms added: bounds the terms of a x b for |components| below those of a and b."""
    return a[1] * b[2] + a[2] * b[1], a[2] * b[0] + a[0] * b[2], a[0] * b[1] + a[1] * b[0]


@kernel
def across(v: Vector, edge: Vector) -> Vector:
    """The part of v square to `edge`, projected twice for full precision; v itself for an edge of no length."""
    square = dot(edge, edge)
    if not square > 0.0:
        return v
    v = along(v, edge, -dot(v, edge) / square)
    return along(v, edge, -dot(v, edge) / square)


@inner
def plane_direction(w: Vector, e: Vector, f: Vector) -> Vector:
    """The normal of e and f on the side of w; where they are parallel, the part of w square to the longer one."""
    normal = cross(e, f)
    square_e = dot(e, e)
    square_f = dot(f, f)
    if not dot(normal, normal) > PARALLEL * square_e * square_f:
        return across(w, e) if square_e > square_f else across(w, f)
    return normal if dot(normal, w) > 0.0 else scaled(normal, -1.0)


@inner
def corner_direction(corner: Vector, e: Vector, f: Vector, along_e: bool, along_f: bool) -> Vector:
    """The direction, of any length, from the origin to the point nearest to it of what `corner`, e and f span.

    along_e, along_f: whether that point lies inside the side e, or f, or the face. Where it was taken for the corner
    or for one side by rounding, and the rest is nearer along that direction, the direction is made square to the rest.
    """
    if not (along_e or along_f):
        along_e = dot(corner, e) < 0.0
        along_f = dot(corner, f) < 0.0
    direction = corner
    if along_e and not along_f:
        direction = across(corner, e)
        along_f = dot(direction, f) < 0.0
    elif along_f and not along_e:
        direction = across(corner, f)
        along_e = dot(direction, e) < 0.0
    return plane_direction(corner, e, f) if along_e and along_f else direction


@inner
def face_direction(w: Vector, e: Vector, f: Vector) -> tuple[Vector, float]:
    """Return (direction, distance) from the origin to the triangle w, w + e, w + f; the direction is of any length."""
    b = add(w, e)
    c = add(w, f)
    share_e, share_f, square, feature = point_triangle((0.0, 0.0, 0.0), w, b, c)
    distance = math.sqrt(square)
    if feature == FACE:
        direction = plane_direction(w, e, f)
        if dot(direction, w) < 0.5 * distance * length(direction):  # the plane of a needle may be anywhere
            longest = f if dot(f, f) > dot(e, e) else e
            direction = across(along(along(w, e, share_e), f, share_f), longest)
    elif feature == 1 or feature == 4:
        direction = corner_direction(b, subtract(f, e), scaled(e, -1.0), feature == 4, False)
    elif feature == 2 or feature == 5:
        direction = corner_direction(c, scaled(f, -1.0), subtract(e, f), feature == 5, False)
    else:
        direction = corner_direction(w, e, f, feature == 3, False)
    return direction, distance


@inner
def edge_direction(w: Vector, e: Vector, f: Vector) -> tuple[Vector, float]:
    """Return (direction, distance) from the edge 0, e to the edge w, w + f; the direction is of any length."""
    s, t, square = segment_segment((0.0, 0.0, 0.0), e, w, add(w, f))
    # The gap of the nearest ends, and the edges as they lead away from those; -e: their difference is what counts.
    gap = w
    if s == 1.0:
        gap = subtract(gap, e)
    else:
        e = scaled(e, -1.0)
    if t == 1.0:
        gap = add(gap, f)
        f = scaled(f, -1.0)
    return corner_direction(gap, e, f, 0.0 < s < 1.0, 0.0 < t < 1.0), math.sqrt(square)


@inner
def last_above(start: float, end: float, margin: float, time: float) -> float:
    """Return until when, at most 1, the line from `start` at 0 to `end` at 1 stays above `margin` from `time` on."""
    if not (1.0 - time) * start + time * end > margin:
        return time
    if end > margin:
        return 1.0
    crossing = (start - margin) / (start - end) * (1.0 - 4.0 * ULP)
    return crossing if crossing > time else time


@inner
def restricted(c: tuple[float, float, float, float], low: float, high: float) -> tuple[float, float, float, float]:
    """The Bernstein coefficients on low..high of a cubic given by those on 0..1 (by its blossom)."""
    p = 1.0 - low
    q = 1.0 - high
    l0 = p * c[0] + low * c[1]
    l1 = p * c[1] + low * c[2]
    l2 = p * c[2] + low * c[3]
    h0 = q * c[0] + high * c[1]
    h1 = q * c[1] + high * c[2]
    h2 = q * c[2] + high * c[3]
    ll0 = p * l0 + low * l1
    ll1 = p * l1 + low * l2
    lh0 = q * l0 + high * l1
    lh1 = q * l1 + high * l2
    hh0 = q * h0 + high * h1
    hh1 = q * h1 + high * h2
    return p * ll0 + low * ll1, q * ll0 + high * ll1, q * lh0 + high * lh1, q * hh0 + high * hh1


@inner
def hull_crossing(r: tuple[float, float, float, float], margin: float) -> tuple[float, float]:
    """Return the (first, last) place, 0..1, where the hull of a cubic's control points meets the level `margin`."""
    first = 1.0
    last = 0.0
    for i in range(3):
        for j in range(i + 1, 4):
            if (r[i] > margin) != (r[j] > margin):
                at = (i + (j - i) * ((r[i] - margin) / (r[i] - r[j]))) / 3.0
                first = min(first, at)
                last = max(last, at)
    if not r[3] > margin:
        last = 1.0
    return first * (1.0 - 8.0 * ULP), last


@inner
def cubic_above(c: tuple[float, float, float, float], margin: float, time: float, limit: float) -> float:
    """Return a time up to which a cubic (Bernstein coefficients on 0..1) is proven to stay above `margin`.

    From `time` on, at most `limit`; `time` itself where it is not above the margin. Bezier clipping from both sides
    (Sederberg and Nishita 1990), halving where that does not shrink the interval.
    """
    end = limit
    for _ in range(CLIPS):
        r = restricted(c, time, end)
        if not r[0] > margin:
            return time
        if r[1] > margin and r[2] > margin and r[3] > margin:
            if end >= limit:
                return limit
            time = end
            end = limit
            continue
        first, last = hull_crossing(r, margin)
        width = end - time
        if last - first > 0.5:
            last = 0.5 * (first + last)
        start = time
        time = start + first * width
        end = min(start + last * width, end)
        if not end > time:
            return time
    return time


@inner
def first_contact_linear(
    face: bool,
    w0: Vector,
    e0: Vector,
    f0: Vector,
    w1: Vector,
    e1: Vector,
    f1: Vector,
    separation: float,
    limit: float,
    tolerance: float,
    cap: int,
) -> tuple[float, bool, int]:
    """Return (time, found, iterations) for the origin and the triangle w, w + e, w + f, or the edges 0, e and w, w + f.

    Index 0: at time 0, index 1: at time 1; the rest as in `edge_edge`.
    """
    size_w = larger(w0, w1)
    size_n = summed_products(larger(e0, e1), larger(f0, f1))
    size = add(size_w, add(larger(e0, e1), larger(f0, f1)))

    n0 = cross(e0, f0)
    n1 = scaled(add(cross(e0, f1), cross(e1, f0)), 0.5)
    n2 = cross(e1, f1)
    c0 = dot(w0, n0)
    c1 = (dot(w1, n0) + 2.0 * dot(w0, n1)) / 3.0
    c2 = (2.0 * dot(w1, n1) + dot(w0, n2)) / 3.0
    c3 = dot(w1, n2)
    q0 = length(n0) + SMALL
    q1 = length(n1) + SMALL
    q2 = length(n2) + SMALL
    floor = CUBIC_PAD * dot(size_w, size_n) + NORMAL_PAD * separation * (size_n[0] + size_n[1] + size_n[2]) + FLOOR

    time = 0.0
    for iteration in range(cap):
        w = along(scaled(w0, 1.0 - time), w1, time)
        e = along(scaled(e0, 1.0 - time), e1, time)
        f = along(scaled(f0, 1.0 - time), f1, time)
        direction, distance = face_direction(w, e, f) if face else edge_direction(w, e, f)
        if iteration == 0:
            # What starts too near may leave or slide, but not approach; what starts near may use half of the rest.
            if separation > 0.0:
                separation = min(separation, distance - 4.0 * LINEAR_PAD * (size[0] + size[1] + size[2]))
                if not separation > 0.0:
                    return 0.0, True, 1
            tolerance = min(tolerance, 0.5 * (distance - separation))

        passed = time
        norm = length(direction)
        if norm > 0.0:
            direction = scaled(direction, 1.0 / norm)
            margin = separation * length(direction) * (1.0 + 8.0 * ULP)
            margin += LINEAR_PAD * dot(larger(direction, direction), size) + FLOOR
            gap0 = dot(direction, w0)
            gap1 = dot(direction, w1)
            along_e0 = dot(direction, e0)
            along_e1 = dot(direction, e1)
            along_f0 = dot(direction, f0)
            along_f1 = dot(direction, f1)
            passed = last_above(gap0, gap1, margin, time)
            passed = min(passed, last_above(gap0 + along_f0, gap1 + along_f1, margin, time))
            if face:
                passed = min(passed, last_above(gap0 + along_e0, gap1 + along_e1, margin, time))
            else:
                passed = min(passed, last_above(gap0 - along_e0, gap1 - along_e1, margin, time))
                passed = min(passed, last_above(gap0 - along_e0 + along_f0, gap1 - along_e1 + along_f1, margin, time))
            if passed >= limit:
                return limit, False, iteration + 1

        side = 1.0 if dot(w, cross(e, f)) > 0.0 else -1.0
        r0 = side * c0 - separation * q0
        r1 = side * c1 - separation * (q0 + 2.0 * q1) / 3.0
        r2 = side * c2 - separation * (2.0 * q1 + q2) / 3.0
        r3 = side * c3 - separation * q2
        margin = floor + CLIP_PAD * max(abs(r0), abs(r1), abs(r2), abs(r3))
        passed = max(passed, cubic_above((r0, r1, r2, r3), margin, time, limit))
        if passed >= limit:
            return limit, False, iteration + 1
        if distance - separation <= tolerance or not passed > time:
            return time, True, iteration + 1
        time = passed
    return time, True, cap


@kernel
def edge_edge(
    a0: Vector,
    b0: Vector,
    c0: Vector,
    d0: Vector,
    a1: Vector,
    b1: Vector,
    c1: Vector,
    d1: Vector,
    separation: float,
    limit: float,
    tolerance: float,
    cap: int,
) -> tuple[float, bool, int]:
    """Return (time, found, iterations) of the first time at which the edges a b and c d are within `separation`.

    Each vertex goes straight from where it is at t = 0 to where it is at t = 1, m. No distance is down to `separation`
    on 0 <= t < time, in exact arithmetic; without `found`, time is `limit` and that holds there too. With `found`, the
    distance at `time` is above it by `tolerance` (m) at most, by a rounding (some 10 ulp of the coordinate differences;
    more where the features are needles), or the iterations are at `cap` and time is what was proven so far.

    Edges that start nearer than `separation` may leave or slide but not approach: their own distance, less a rounding,
    takes its place. Edges that touch at t = 0 are in contact at time 0, whatever the motion; coordinates that are not
    finite are answered in the same way. Edges may be parallel, in one plane, or of no length.
    """
    return first_contact_linear(
        False,
        subtract(c0, a0),
        subtract(b0, a0),
        subtract(d0, c0),
        subtract(c1, a1),
        subtract(b1, a1),
        subtract(d1, c1),
        separation,
        limit,
        tolerance,
        cap,
    )


@kernel
def vertex_face(
    p0: Vector,
    a0: Vector,
    b0: Vector,
    c0: Vector,
    p1: Vector,
    a1: Vector,
    b1: Vector,
    c1: Vector,
    separation: float,
    limit: float,
    tolerance: float,
    cap: int,
) -> tuple[float, bool, int]:
    """Return (time, found, iterations) of the first time at which p and the triangle a b c are within `separation`.

    As `edge_edge`; the triangle may be a needle or without area.
    """
    return first_contact_linear(
        True,
        subtract(a0, p0),
        subtract(b0, a0),
        subtract(c0, a0),
        subtract(a1, p1),
        subtract(b1, a1),
        subtract(c1, a1),
        separation,
        limit,
        tolerance,
        cap,
    )
