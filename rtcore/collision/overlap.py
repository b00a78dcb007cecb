"""Do two oriented boxes meet during an interval of the motion: one separating-axis test of the pose in the middle.

A box test is made many times over one interval, so what depends on the interval alone is computed once, into a
PLACEMENT record (`place_pair`). `boxes_meet` is the default test, OVERLAP_INFLATED, and the only one that the daemon
compiles; `rtcore.collision.overlap_modes.boxes_meet_by` answers in the same form and obeys QUERY.overlap.

Source: Gottschalk, Lin, Manocha 1996 (the fifteen axes); Redon 2002, 3.3 (boxes in motion), with the interval
arithmetic replaced by bounds on the motion about the middle. Per axis: a point of the second body leaves the line that
it runs along in the middle of the interval by at most half the square of the time times a bound on its acceleration,
and the speeds of two points of a body differ by at most its spin times their distance. Hence, along an axis n with the
gap g in the middle, m the speed of the box centre along n, w the spin, r the radius of the node's ball:
gap(u) >= g + (u - middle) m - |u - middle| w r - bow. That is concave in u, so it lies above its chord over [u0, u1].
"""

import math
from typing import Any

from rtcore.kernels import inner, kernel
from rtcore.motion import ALGEBRAIC, path_bound, pose, relative_bounds, relative_pose, relative_twist
from rtcore.spatial import Vector, add, conjugate, length, put_vector, quaternion, rotate, subtract, vector

OVERLAP_INFLATED = 0
"""Fifteen axes in the middle of the interval, padded by what the motion can do in half of it; the default."""
OVERLAP_INTERVAL = 1
"""Fifteen axes in interval arithmetic over the whole interval, which is halved where that may help."""
OVERLAP_SPHERE = 2
"""The nodes' balls along their path."""
OVERLAP_START = 3
"""Fifteen axes at the start of the interval only: blind to what comes later."""
OVERLAP_END = 4
"""Fifteen axes at the end of the interval only: blind to what comes before."""
OVERLAP_KINDS = 15
"""Mask of the bits of QUERY.overlap that hold one of the above; the others choose among forms of OVERLAP_INTERVAL."""
OVERLAP_TEST_END = 16
"""Ask at the end of the interval first; where the boxes overlap there, there is no need of interval arithmetic."""
OVERLAP_TEST_START = 32
"""The same with the start, after the end."""
OVERLAP_SIX_DISCRETE = 64
"""Only the six face axes in tests of one pose (of OVERLAP_START and OVERLAP_END as well)."""
OVERLAP_SIX_CONTINUOUS = 128
"""Only the six face axes in interval tests."""
OVERLAP_UNDIVIDED = 256
"""Never halve the interval."""

_ROUNDING = 32.0 * 2.0**-52
_PARALLEL = 1e-6  # square of the sine of the angle of two edges below which their cross product is no axis worth trying
_BEHIND = 1.0 - 2.0**-50


@kernel
def place_pair(relative: Any, centre: Vector, radius: float, u0: float, u1: float, placement: Any) -> None:
    """Fill a PLACEMENT record for box tests over [u0, u1].

    relative: RELATIVE record; (centre, radius): a ball in the second's body frame, m, that holds all of the second body
    (its root node's). Where one of the two moves by ALGEBRAIC, whose speed has no bound, the velocity and the spin are
    written as 0 and the bow is a bound on the whole path over [u0, u1].
    """
    middle = 0.5 * (u0 + u1)
    half = 0.5 * (u1 - u0)
    position, turn = relative_pose(relative, middle)
    for k in range(3):
        column = rotate(turn, (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0))
        placement.rotation[0, k] = column[0]
        placement.rotation[1, k] = column[1]
        placement.rotation[2, k] = column[2]
    put_vector(placement.translation, position)
    if relative.first.kind == ALGEBRAIC or relative.second.kind == ALGEBRAIC:
        # The rate of rotation has no bound at the start: the whole path takes the place of a path along a line.
        velocity = (0.0, 0.0, 0.0)
        spin = (0.0, 0.0, 0.0)
        bow = _either_path(relative, centre, radius, u0, u1)
    else:
        velocity, spin = relative_twist(relative, middle, position)
        _, acceleration = relative_bounds(relative, centre, radius, u0, u1)
        bow = 0.5 * half * half * acceleration
    put_vector(placement.velocity, velocity)
    put_vector(placement.spin, spin)
    placement.spin_speed = length(spin) * (1.0 + _ROUNDING)
    placement.half = half
    placement.bow = bow * (1.0 + _ROUNDING)
    placement.u0 = u0
    placement.u1 = u1


@inner
def _either_path(relative: Any, centre: Vector, radius: float, u0: float, u1: float) -> float:
    # Bound on the path, as seen from the first, of any point of the second's ball. A screw's field of velocities stands
    # in the scene but for its rate, so the first's part is that of a ball of it where the second's points are.
    own = path_bound(relative.second, centre, radius, u0, u1)
    position, turn = pose(relative.second, 0.5 * (u0 + u1))
    place = add(position, rotate(turn, centre))
    back = conjugate(quaternion(relative.first.orientation))
    there = rotate(back, subtract(place, vector(relative.first.position)))
    return own + path_bound(relative.first, there, radius + own, u0, u1)


@inner
def _cross_axis(
    distance: float, rate: float, radius: float, square: float, pad: float, rounding: float, separation: float
) -> tuple[float, float]:
    # Along an axis of length sqrt(square), 0..1: (lower bound of the distance over the interval, share of the interval
    # that is free for certain). Lengths are normalised only where the axis helps at all, which is rare.
    signed = rate if distance >= 0.0 else -rate
    middle = abs(distance) - radius - rounding
    if middle + abs(rate) <= 0.0 or square < _PARALLEL:
        return -math.inf, 0.0
    norm = math.sqrt(square)
    start = (middle - signed) / norm - pad
    end = (middle + signed) / norm - pad
    share = (start - separation) / (start - end) if start > separation and end <= separation else 0.0
    return min(start, end), share


@inner
def _face_axis(distance: float, rate: float, radius: float, pad: float, separation: float) -> tuple[float, float]:
    # The same along a unit axis; `pad` includes the rounding.
    signed = rate if distance >= 0.0 else -rate
    middle = abs(distance) - radius - pad
    start = middle - signed
    end = middle + signed
    share = (start - separation) / (start - end) if start > separation and end <= separation else 0.0
    return min(start, end), share


@inner
def _cross_row(
    tp: float,
    tq: float,
    vp: float,
    vq: float,
    ap: float,
    aq: float,
    own: Vector,
    cp: Vector,
    cq: Vector,
    b: Vector,
    pad: float,
    rounding: float,
    separation: float,
) -> tuple[float, float]:
    # The three axes e_i x f_j of one i; p, q: the rows after i, cyclic; own, cp, cq: rows i, p, q of the cosines.
    g0, s0 = _cross_axis(
        tq * cp[0] - tp * cq[0],
        vq * cp[0] - vp * cq[0],
        ap * abs(cq[0]) + aq * abs(cp[0]) + b[1] * abs(own[2]) + b[2] * abs(own[1]),
        cp[0] * cp[0] + cq[0] * cq[0],
        pad,
        rounding,
        separation,
    )
    g1, s1 = _cross_axis(
        tq * cp[1] - tp * cq[1],
        vq * cp[1] - vp * cq[1],
        ap * abs(cq[1]) + aq * abs(cp[1]) + b[2] * abs(own[0]) + b[0] * abs(own[2]),
        cp[1] * cp[1] + cq[1] * cq[1],
        pad,
        rounding,
        separation,
    )
    g2, s2 = _cross_axis(
        tq * cp[2] - tp * cq[2],
        vq * cp[2] - vp * cq[2],
        ap * abs(cq[2]) + aq * abs(cp[2]) + b[0] * abs(own[1]) + b[1] * abs(own[0]),
        cp[2] * cp[2] + cq[2] * cq[2],
        pad,
        rounding,
        separation,
    )
    return max(g0, g1, g2), max(s0, s1, s2)


@inner
def _axes(
    first: Any,
    second: Any,
    placement: Any,
    t: Vector,
    v: Vector,
    pad: float,
    rounding: float,
    separation: float,
) -> tuple[float, float]:
    # (lower bound of the distance of the boxes over the interval, free share of it); ends at the first group of axes
    # that keeps the boxes further apart than `separation`. t: from centre to centre; v: motion of the second's centre
    # during half of the interval; both in the first's frame.
    e = first.axes
    f = second.axes
    m = placement.rotation
    a = (first.half[0], first.half[1], first.half[2])
    b = (second.half[0], second.half[1], second.half[2])
    te = (
        e[0, 0] * t[0] + e[0, 1] * t[1] + e[0, 2] * t[2],
        e[1, 0] * t[0] + e[1, 1] * t[1] + e[1, 2] * t[2],
        e[2, 0] * t[0] + e[2, 1] * t[1] + e[2, 2] * t[2],
    )
    ve = (
        e[0, 0] * v[0] + e[0, 1] * v[1] + e[0, 2] * v[2],
        e[1, 0] * v[0] + e[1, 1] * v[1] + e[1, 2] * v[2],
        e[2, 0] * v[0] + e[2, 1] * v[1] + e[2, 2] * v[2],
    )
    # Rows of (axes of the first) x rotation, then its products with the second's axes: cosines c_i[j] = e_i . f_j.
    r0 = _turned(e[0, 0], e[0, 1], e[0, 2], m)
    r1 = _turned(e[1, 0], e[1, 1], e[1, 2], m)
    r2 = _turned(e[2, 0], e[2, 1], e[2, 2], m)
    c0 = _cosines(f, r0)
    c1 = _cosines(f, r1)
    c2 = _cosines(f, r2)
    own = pad + rounding

    g0, s0 = _face_axis(te[0], ve[0], a[0] + _reach(b, c0[0], c0[1], c0[2]), own, separation)
    g1, s1 = _face_axis(te[1], ve[1], a[1] + _reach(b, c1[0], c1[1], c1[2]), own, separation)
    g2, s2 = _face_axis(te[2], ve[2], a[2] + _reach(b, c2[0], c2[1], c2[2]), own, separation)
    gap = max(g0, g1, g2)
    share = max(s0, s1, s2)
    if gap > separation:
        return gap, 1.0

    tf = _combined(te, c0, c1, c2)
    vf = _combined(ve, c0, c1, c2)
    g0, s0 = _face_axis(tf[0], vf[0], b[0] + _reach(a, c0[0], c1[0], c2[0]), own, separation)
    g1, s1 = _face_axis(tf[1], vf[1], b[1] + _reach(a, c0[1], c1[1], c2[1]), own, separation)
    g2, s2 = _face_axis(tf[2], vf[2], b[2] + _reach(a, c0[2], c1[2], c2[2]), own, separation)
    gap = max(gap, g0, g1, g2)
    share = max(share, s0, s1, s2)
    if gap > separation:
        return gap, 1.0

    g0, s0 = _cross_row(te[1], te[2], ve[1], ve[2], a[1], a[2], c0, c1, c2, b, pad, rounding, separation)
    gap = max(gap, g0)
    share = max(share, s0)
    if gap > separation:
        return gap, 1.0
    g1, s1 = _cross_row(te[2], te[0], ve[2], ve[0], a[2], a[0], c1, c2, c0, b, pad, rounding, separation)
    gap = max(gap, g1)
    share = max(share, s1)
    if gap > separation:
        return gap, 1.0
    g2, s2 = _cross_row(te[0], te[1], ve[0], ve[1], a[0], a[1], c2, c0, c1, b, pad, rounding, separation)
    gap = max(gap, g2)
    share = max(share, s2)
    return gap, 1.0 if gap > separation else share


@inner
def _turned(x: float, y: float, z: float, m: Any) -> Vector:
    # The row vector (x, y, z) times a (3, 3) matrix.
    return (
        x * m[0, 0] + y * m[1, 0] + z * m[2, 0],
        x * m[0, 1] + y * m[1, 1] + z * m[2, 1],
        x * m[0, 2] + y * m[1, 2] + z * m[2, 2],
    )


@inner
def _cosines(f: Any, r: Vector) -> Vector:
    # A (3, 3) matrix times a vector.
    return (
        f[0, 0] * r[0] + f[0, 1] * r[1] + f[0, 2] * r[2],
        f[1, 0] * r[0] + f[1, 1] * r[1] + f[1, 2] * r[2],
        f[2, 0] * r[0] + f[2, 1] * r[1] + f[2, 2] * r[2],
    )


@inner
def _combined(x: Vector, c0: Vector, c1: Vector, c2: Vector) -> Vector:
    # The row vector x times the matrix with rows c0, c1, c2.
    return (
        x[0] * c0[0] + x[1] * c1[0] + x[2] * c2[0],
        x[0] * c0[1] + x[1] * c1[1] + x[2] * c2[1],
        x[0] * c0[2] + x[1] * c1[2] + x[2] * c2[2],
    )


@inner
def _reach(half: Vector, x: float, y: float, z: float) -> float:
    # Half the width of a box along a direction with the given cosines to its axes.
    return half[0] * abs(x) + half[1] * abs(y) + half[2] * abs(z)


@inner
def centre_offset(first: Any, second: Any, placement: Any) -> tuple[Vector, Vector, float]:
    """Where the second's centre is: (from the first's centre, from the second's origin, a pad for rounding).

    first, second: BOX_NODE records; placement: PLACEMENT record. First's frame, middle of the interval, m. The pad is
    32 units in the last place of the sum of all lengths that enter a test of the two nodes.
    """
    m = placement.rotation
    x = second.centre[0]
    y = second.centre[1]
    z = second.centre[2]
    arm = (
        m[0, 0] * x + m[0, 1] * y + m[0, 2] * z,
        m[1, 0] * x + m[1, 1] * y + m[1, 2] * z,
        m[2, 0] * x + m[2, 1] * y + m[2, 2] * z,
    )
    p = placement.translation
    c = first.centre
    offset = (arm[0] + p[0] - c[0], arm[1] + p[1] - c[1], arm[2] + p[2] - c[2])
    scale = abs(x) + abs(y) + abs(z) + abs(p[0]) + abs(p[1]) + abs(p[2]) + abs(c[0]) + abs(c[1]) + abs(c[2])
    a = first.half
    b = second.half
    return offset, arm, _ROUNDING * (scale + a[0] + a[1] + a[2] + b[0] + b[1] + b[2])


@kernel
def boxes_meet(first: Any, second: Any, placement: Any, separation: float) -> tuple[bool, float, float]:
    """May the triangles of two nodes come within `separation` (m) of each other: (may, earliest time, gap).

    first, second: BOX_NODE records; placement: PLACEMENT record of `place_pair` for the interval. Never answers no
    where they do. When they may, [u0, earliest) is proven free; when not, earliest is u1 and the distance is at least
    `gap` (m, above `separation`) during the whole interval: a front may keep the pair closed until the path bounds of
    later motions have used up gap - separation. Otherwise the gap is some lower bound, of either sign.
    All that is compared is padded by 32 units in the last place of the lengths involved.
    """
    t, arm, rounding = centre_offset(first, second, placement)
    w = placement.spin
    half = placement.half
    velocity = placement.velocity
    v = (
        half * (velocity[0] + w[1] * arm[2] - w[2] * arm[1]),
        half * (velocity[1] + w[2] * arm[0] - w[0] * arm[2]),
        half * (velocity[2] + w[0] * arm[1] - w[1] * arm[0]),
    )
    pad = half * placement.spin_speed * second.radius + placement.bow
    rounding += _ROUNDING * (abs(v[0]) + abs(v[1]) + abs(v[2]) + pad)
    u0 = placement.u0
    u1 = placement.u1

    # The balls first, by the distance of the centres less the path, which needs two square roots and no axes.
    apart = t[0] * t[0] + t[1] * t[1] + t[2] * t[2]
    reach = first.radius + second.radius + pad + rounding
    if apart > (reach + separation) * (reach + separation):
        gap = math.sqrt(apart) - math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) - reach
        if gap > separation:
            return False, u1, gap

    gap, share = _axes(first, second, placement, t, v, pad, rounding, separation)
    if gap > separation:
        return False, u1, gap
    return True, u0 + share * _BEHIND * (u1 - u0), gap


@kernel
def box_gap(first: Any, second: Any, placement: Any) -> float:
    """A lower bound on the distance (m) of two boxes in the middle of the interval; never positive where they overlap.

    first, second: BOX_NODE records; placement: PLACEMENT record. The largest gap along the fifteen normalised axes,
    less the rounding pad of `centre_offset`.
    """
    t, _, rounding = centre_offset(first, second, placement)
    gap, _ = _axes(first, second, placement, t, (0.0, 0.0, 0.0), 0.0, rounding, math.inf)
    return gap


@kernel
def box_gap_to(first: Any, second: Any, placement: Any, enough: float) -> float:
    """The same as `box_gap`, less exact where the gap is above `enough` (m, not negative), and cheaper there.

    The balls are asked first, then the axes in groups, until one shows a gap above `enough`.
    """
    t, _, rounding = centre_offset(first, second, placement)
    apart = t[0] * t[0] + t[1] * t[1] + t[2] * t[2]
    reach = first.radius + second.radius + rounding
    if apart > (reach + enough) * (reach + enough):
        return math.sqrt(apart) * _BEHIND - reach
    gap, _ = _axes(first, second, placement, t, (0.0, 0.0, 0.0), 0.0, rounding, enough)
    return gap
