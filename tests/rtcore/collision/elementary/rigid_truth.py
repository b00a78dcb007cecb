"""Independent truth for the elementary tests on rigid motions: slow, in plain numpy, many cases at a time.

Nothing here uses the kernels, but for filling the records that they read. Motions are evaluated about the screw's line
(large angles) or by the rational form in tan(a / 2) (small ones), distances by formulas of their own; free times are
proven by stepping on with a bound on the speed.
"""

import numpy as np

from rtcore import motion
from rtcore.collision.elementary.advance import prepared
from rtcore.tables import RELATIVE

EDGE_EDGE, VERTEX_FACE, FACE_VERTEX = 0, 1, 2
CORNERS = {EDGE_EDGE: (2, 2), VERTEX_FACE: (1, 3), FACE_VERTEX: (3, 1)}
"""Points of the first and of the second feature."""


def rows_dot(a, b):
    return np.einsum("...i,...i->...", a, b)


def matrices(quaternions):
    """(n, 3, 3) rotation matrices of (n, 4) unit quaternions."""
    x, y, z, w = np.moveaxis(quaternions, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


class Body:
    """One body in each of n cases: its motion, and the points of its feature in the scene at u = 0."""

    def __init__(self, records, points):
        self.p = records["pivot"].copy()
        self.d = records["shift"].copy()
        self.n = records["axis"].copy()
        self.angle = records["angle"].copy()
        self.kind = records["kind"].copy()
        turn = matrices(records["orientation"])
        self.start = np.einsum("nij,nkj->nki", turn, points) + records["position"][:, None]

    def places(self, u):
        """Points (n, k, 3) at the times u (n,)."""
        n = self.n[:, None]
        r = self.start - self.p[:, None]
        s = rows_dot(self.d, self.n)
        across = (self.d - s[:, None] * self.n)[:, None]
        r_across = r - rows_dot(r, n)[..., None] * n
        turned = self.angle * u
        lift = u * s
        tan_half = (self.kind == motion.TAN_HALF) & (self.angle > 0)
        half = np.where(tan_half, self.angle, 1.0) / 2
        lift = np.where(tan_half, s * np.tan(half * u) / np.tan(half), lift)
        algebraic = self.kind == motion.ALGEBRAIC
        share = np.sin(self.angle / 2) ** 2 * u  # half of 1 - cos a, which is linear in u
        turned = np.where(algebraic, 2 * np.arctan2(np.sqrt(share), np.sqrt(1 - share)), turned)
        small = self.angle < 1.5
        # Small angles: no division but by 1 + T^2 v^2.
        big_t = np.tan(np.where(small, self.angle, 1.0) / 2)
        v = np.where(self.angle > 0, np.tan(np.where(small, turned, 1.0) / 2) / np.where(big_t > 0, big_t, 1.0), u)
        t, v = big_t[:, None, None], v[:, None, None]
        below = 1 + t * t * v * v
        rational = (
            (1 - t * t * v * v) * r_across
            + 2 * t * v * np.cross(n, r)
            + v * (1 + t * t * v) * across
            - t * v * (1 - v) * np.cross(n, across)
        ) / below
        # Large angles: about the line itself.
        cot = 1 / np.tan(np.where(small, 1.0, self.angle) / 2)
        o = self.p[:, None] + 0.5 * (across + cot[:, None, None] * np.cross(n, across))
        q = self.start - o
        q_across = q - rows_dot(q, n)[..., None] * n
        c, s_ = np.cos(turned)[:, None, None], np.sin(turned)[:, None, None]
        about = c * q_across + s_ * np.cross(n, q) + (o - self.p[:, None])
        about = about - rows_dot(about, n)[..., None] * n
        moved = self.p[:, None] + (rows_dot(r, n) + lift[:, None])[..., None] * n
        moved = moved + np.where(small[:, None, None], rational, about)
        return np.where((self.kind == motion.STILL)[:, None, None], self.start, moved)

    def speeds(self):
        """(n,) bounds on the speed of all points over 0..1 (not for ALGEBRAIC)."""
        half = np.maximum(self.angle, 1e-12) / 2
        s = rows_dot(self.d, self.n)
        across = np.linalg.norm(self.d - s[:, None] * self.n, axis=1)
        steep = np.where(self.kind == motion.TAN_HALF, half / np.maximum(np.sin(half) * np.cos(half), 1e-300), 1.0)
        reach = np.linalg.norm(self.start - self.p[:, None], axis=2).max(axis=1)
        speed = np.abs(s) * steep + across * half / np.sin(half) + self.angle * reach
        return np.where(self.kind == motion.STILL, 0.0, speed)


def point_segment(p, a, b):
    d = b - a
    square = rows_dot(d, d)
    t = np.clip(rows_dot(p - a, d) / np.where(square > 0, square, 1.0), 0, 1)
    return np.linalg.norm(p - a - t[..., None] * d, axis=-1)


def segment_distance(a, b):
    """Distances of segments a (n, 2, 3) and b (n, 2, 3)."""
    a0, a1, b0, b1 = a[:, 0], a[:, 1], b[:, 0], b[:, 1]
    best = np.minimum(point_segment(a0, b0, b1), point_segment(a1, b0, b1))
    best = np.minimum(best, np.minimum(point_segment(b0, a0, a1), point_segment(b1, a0, a1)))
    d, e, r = a1 - a0, b1 - b0, b0 - a0
    normal = np.cross(d, e)
    square = rows_dot(normal, normal)
    solid = square > 1e-24 * rows_dot(d, d) * rows_dot(e, e)
    with np.errstate(all="ignore"):
        s = rows_dot(np.cross(r, e), normal) / square
        t = rows_dot(np.cross(r, d), normal) / square
        height = np.abs(rows_dot(r, normal)) / np.sqrt(square)
    inside = solid & (s > 0) & (s < 1) & (t > 0) & (t < 1)
    return np.where(inside, np.minimum(best, height), best)


def triangle_distance(p, t):
    """Distances of points p (n, 3) and triangles t (n, 3, 3)."""
    a, b, c = t[:, 0], t[:, 1], t[:, 2]
    best = np.minimum(np.minimum(point_segment(p, a, b), point_segment(p, b, c)), point_segment(p, c, a))
    normal = np.cross(b - a, c - a)
    inside = np.ones(len(p), dtype=bool)
    for x, y in ((a, b), (b, c), (c, a)):
        inside &= rows_dot(np.cross(normal, y - x), p - x) > 0
    with np.errstate(all="ignore"):
        height = np.abs(rows_dot(p - a, normal)) / np.linalg.norm(normal, axis=1)
    return np.where(inside, np.minimum(best, height), best)


class Cases:
    """n pairs of features of one shape on rigid motions: RELATIVE records; points a (n, i, 3) and b (n, j, 3)."""

    def __init__(self, shape, relative, a, b):
        self.shape, self.relative = shape, relative
        self.a, self.b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        self.first = Body(relative["first"], self.a)
        self.second = Body(relative["second"], self.b)
        self.speed = 1.0000001 * (self.first.speeds() + self.second.speeds())
        size = [np.abs(body.start).max(axis=(1, 2)) + np.abs(body.d).max(axis=1) for body in (self.first, self.second)]
        self.scale = size[0] + size[1] + np.abs(self.first.p).max(axis=1) + np.abs(self.second.p).max(axis=1)

    def __len__(self):
        return len(self.a)

    def distances(self, u):
        a, b = self.first.places(u), self.second.places(u)
        if self.shape == EDGE_EDGE:
            return segment_distance(a, b)
        if self.shape == VERTEX_FACE:
            return triangle_distance(a[:, 0], b)
        return triangle_distance(b[:, 0], a)

    def at(self, u):
        return self.distances(np.full(len(self), float(u)))

    def first_time(self, level, slack, end, steps=300):
        """(free, reached) (n,): the distance is above `level` on [0, free); reached: within `slack` of it at `free`.

        Stepping on by (distance - level) / speed, which proves [0, free) exactly as far as the distances are exact.
        Cases that are neither at `end` nor there after so many steps have free < end and reached False.
        """
        end = np.broadcast_to(np.asarray(end, dtype=float), (len(self),))
        u = np.zeros(len(self))
        reached = np.zeros(len(self), dtype=bool)
        for _ in range(steps):
            room = self.distances(u) - level
            reached |= (room <= slack) & (u < end)
            going = ~reached & (u < end)
            if not going.any():
                break
            with np.errstate(all="ignore"):
                step = np.where(self.speed > 0, room / self.speed, np.inf)
            u = np.where(going, np.minimum(u + step, end), u)
        return u, reached

    def run(self, test, separation, limit=1.0, time_tolerance=1e-9, position_tolerance=1e-9, cap=200):
        """Results (time, found, iterations) (n,) of one of the tests under trial."""
        rows = []
        options = (time_tolerance, position_tolerance, cap)
        separations = np.broadcast_to(separation, (len(self),))
        limits = np.broadcast_to(limit, (len(self),))
        for i in range(len(self)):
            points = [tuple(p) for p in self.a[i].tolist()] + [tuple(p) for p in self.b[i].tolist()]
            rows.append(test(self.relative[i], *points, float(separations[i]), float(limits[i]), *options))
        time, found, iterations = zip(*rows, strict=True)
        return np.array(time), np.array(found), np.array(iterations)


def one_pair(back_end, shape):
    """The test of one pair of features by itself, by any back-end: takes the points, then the options."""
    first, second = CORNERS[shape]

    def test(relative, *arguments):
        a, b, options = arguments[:first], arguments[first : first + second], arguments[first + second :]
        a, b = (points + points[-1:] * (3 - len(points)) for points in (a, b))
        c, bounds = prepared(relative, a, b, options[1])
        return back_end.first_approach(relative, shape, a, b, c, bounds, *options)

    return test


def unit_quaternions(rng, n):
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def fill(record, kind, position, orientation, shift, turn, pivot):
    """Fill a MOTION record; arrays in place of tuples."""
    if kind == motion.STILL:
        motion.still(record, tuple(position.tolist()), tuple(orientation.tolist()))
        return
    vectors = [tuple(np.asarray(v, dtype=float).tolist()) for v in (position, orientation, shift, turn, pivot)]
    motion.from_twist(record, kind, *vectors)


def random_cases(rng, n, shape, kinds, turn=1.0, size=1.0, offset=0.0, flat=False, aimed=True):
    """n cases of features of about `size` (m) in which nothing else is special.

    kinds: list of (first, second), taken in turn; turn: largest angle, rad, or one for each entry of kinds; offset:
    distance of the scene's origin, m; flat: both features and both motions stay in one plane; aimed: two points of the
    features meet, for most before the end.
    """
    kinds = np.resize(kinds, (n, 2))
    turn = np.resize(turn, n)[:, None]
    counts = CORNERS[shape]
    a, b = (rng.normal(size=(n, count, 3)) * 0.5 * size for count in counts)
    frame = unit_quaternions(rng, 2 * n)
    position, shift, pivot, axis = rng.normal(size=(4, n, 2, 3)) * size
    if flat:
        a[..., 2] = b[..., 2] = position[..., 2] = shift[..., 2] = 0
        frame[:, :2] = 0
        frame /= np.linalg.norm(frame, axis=1)[:, None]
        axis[..., :2] = 0
    axis *= (rng.uniform(0, turn, (n, 2)) / np.linalg.norm(axis, axis=2))[..., None]

    def filled(shift):
        relative = np.zeros(n, RELATIVE)
        for i in range(n):
            for k, name in enumerate(("first", "second")):
                place, centre = position[i, k] + offset, pivot[i, k] + offset
                fill(relative[i][name], kinds[i, k], place, frame[2 * i + k], shift[i, k], axis[i, k], centre)
        return Cases(shape, relative, a, b)

    cases = filled(shift)
    if not aimed:
        return cases
    # A point's place is linear in the displacement of the pivot: solve for the one that brings two points together.
    u = np.minimum(rng.uniform(0.1, 1.2, n), 1.0)
    bodies = (cases.first, cases.second)
    share = [rng.dirichlet(np.ones(body.start.shape[1]), n) for body in bodies]
    for k in (0, 1):
        chosen = (kinds[:, k] != motion.STILL) & ((k == 1) | (kinds[:, 1] == motion.STILL))
        target = np.einsum("nk,nki->ni", share[1 - k], bodies[1 - k].places(u))
        columns = []
        kept = bodies[k].d
        for d in (np.zeros(3), *np.eye(3)):
            bodies[k].d = np.broadcast_to(d, (n, 3))
            columns.append(np.einsum("nk,nki->ni", share[k], bodies[k].places(u)))
        bodies[k].d = kept
        matrix = np.stack([c - columns[0] for c in columns[1:]], axis=2)
        matrix[~chosen] = np.eye(3)
        solution = np.linalg.solve(matrix, (target - columns[0])[..., None])[..., 0]
        chosen &= np.linalg.norm(solution, axis=1) < 20 * size
        shift[chosen, k] = solution[chosen]
    if flat:
        shift[..., 2] = 0
    return filled(shift)


def check(cases, test, separation, position_tolerance=1e-7, time_tolerance=1e-9, limit=1.0, early=None, **options):
    """Assert the promise of a test on all cases that begin above the separation; returns (time, found, iterations).

    Never late and never a miss: the distance is above the separation on [0, time), or [0, limit] where nothing was
    found. Never a false alarm: a time that was found has a distance within `early` (default: the tolerances) of it.
    """
    time, found, iterations = cases.run(test, separation, limit, time_tolerance, position_tolerance, **options)
    rounding = 1e-13 * cases.scale.max()
    level = np.broadcast_to(separation, (len(cases),))
    above = cases.at(0.0) > level + rounding
    assert above.mean() > 0.3
    assert np.all(time[~found] == np.broadcast_to(limit, time.shape)[~found])
    assert np.all((time >= 0) & (time <= limit))
    slack = 1e-7 * cases.scale.max()
    free, reached = cases.first_time(level - slack, slack - rounding, time)
    assert not (above & reached).any(), np.flatnonzero(above & reached)
    # Where the proof would take too many steps (long grazing), its rest is sampled.
    for share in np.linspace(0, 1, 150) if np.any(above & (free < time)) else ():
        late = above & (cases.distances(free + share * (time - free)) < level - rounding)
        assert not late.any(), np.flatnonzero(late)
    if early is None:
        early = position_tolerance + cases.speed * time_tolerance
    gap = cases.distances(time) - level
    assert np.all(gap[found & above] <= (early + np.zeros(len(cases)))[found & above] + rounding), gap[found].max()
    return time, found, iterations


def one_case(shape, a, b, shift, turn=(0, 0, 0), pivot=(0, 0, 0), kind=motion.SCREW):
    """One case: the second's points b, given where they begin, go by `shift` while they turn; the first's stand still.

    shift: of the point that begins at `pivot`.
    """
    relative = np.zeros(1, RELATIVE)
    zero = np.zeros(3)
    unit = np.array([0.0, 0.0, 0.0, 1.0])
    fill(relative[0]["first"], motion.STILL, zero, unit, zero, zero, zero)
    fill(relative[0]["second"], kind, zero, unit, np.asarray(shift), np.asarray(turn), np.asarray(pivot))
    return Cases(shape, relative, np.asarray(a, dtype=float)[None], np.asarray(b, dtype=float)[None])
