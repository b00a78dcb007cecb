"""In-between motions: screws by the matrix exponential, end poses, bounds against dense sampling, pairs and chains."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from rtcore import motion as m
from rtcore.tables import MOTION, POSE, RELATIVE

KINDS = [m.SCREW, m.TAN_HALF, m.ALGEBRAIC]
STEPS = np.linspace(0.0, 1.0, 11)

examples = settings(max_examples=60, deadline=None)  # the first call of a kernel may compile it

numbers = st.floats(-2.0, 2.0, allow_nan=False, width=32)
vectors = st.tuples(numbers, numbers, numbers)
angles = st.one_of(
    st.sampled_from([0.0, 1e-300, 1e-16, 1e-12, 1e-9, 1e-6, math.pi / 2, 3.0, math.pi - 1e-9, math.pi]),
    st.floats(0.0, math.pi),
)
directions = vectors.filter(lambda v: np.linalg.norm(v) > 1e-2).map(lambda v: np.array(v) / np.linalg.norm(v))
turns = st.builds(lambda n, w: tuple(float(x) for x in w * n), directions, angles)
orientations = turns.map(lambda w: tuple(float(x) for x in Rotation.from_rotvec(w).as_quat()))


def close(actual, truth, atol):
    np.testing.assert_allclose(actual, truth, rtol=0.0, atol=atol)


def record():
    return np.zeros(1, MOTION)[0]


def pair():
    return np.zeros(1, RELATIVE)[0]


def homogeneous(position, orientation):
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_quat(orientation).as_matrix()
    matrix[:3, 3] = position
    return matrix


def placed(motion, u):
    return homogeneous(*m.pose(motion, u))


@st.composite
def motions(draw, kinds=KINDS, turns=turns):
    motion = record()
    m.from_twist(
        motion,
        draw(st.sampled_from(kinds)),
        draw(vectors),
        draw(orientations),
        draw(vectors),
        draw(turns),
        draw(vectors),
    )
    return motion


@st.composite
def pairs(draw, kinds):
    relative = pair()
    relative["first"] = draw(motions(kinds))
    relative["second"] = draw(motions(kinds))
    return relative


def test_the_screw_of_the_reference_example():
    """Digest vector TV1, to the digits printed there; its axis is the set of points that only move along it."""
    motion = record()
    m.from_twist(motion, m.SCREW, (0.0,) * 3, (0.0, 0.0, 0.0, 1.0), (0.3, -0.2, 0.5), (0.1, 0.2, -0.4), (1.0, 2.0, 3.0))
    axis = (0.218217890, 0.436435780, -0.872871561)
    assert motion["angle"] == pytest.approx(0.458257569, abs=5e-10)
    close(motion["axis"], axis, atol=6e-10)
    close(m.point(motion, 1.0, (2.0, 0.0, 1.0)), (1.062951435, -0.137591403, 1.221942157), atol=6e-10)
    on_axis = (1.293565566, 1.204692690, 2.675737736)
    moved = np.subtract(m.point(motion, 1.0, on_axis), on_axis)
    close(moved, np.multiply(-0.458257569, axis), atol=2e-9)


def test_the_tan_half_law_of_the_reference_examples():
    """Digest vectors TV2 and TV3: a screw about z, 0.6 rad and 0.2 m; features meet at the times printed there."""
    motion = record()
    m.from_twist(motion, m.TAN_HALF, (0.0,) * 3, (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.2), (0.0, 0.0, 0.6), (0.0,) * 3)
    a = np.array(m.point(motion, 0.276871939, (1.0, 0.0, 0.0)))
    b = np.array(m.point(motion, 0.276871939, (1.5, 0.2, 0.3)))
    contact = (1.078498531, 0.221501469, 0.113994123)
    close(a + 0.200557251 * (b - a), contact, atol=2e-9)
    c, d = np.array((1.0, 0.3, -0.2)), np.array((1.2, 0.1, 0.6))
    close(c + 0.392492654 * (d - c), contact, atol=2e-9)
    contact = (0.979449581, 0.225118899, 0.190867460)
    close(m.point(motion, 0.210416516, (1.0, 0.1, 0.15)), contact, atol=2e-9)


@examples
@given(vectors, orientations, vectors, turns, vectors, vectors)
def test_constant_rate_screws_are_matrix_exponentials(position, orientation, shift, turn, pivot, x):
    """The twist of the whole step, by which exp(u xi) has to move the body, is the logarithm's closed form."""
    motion = record()
    m.from_twist(motion, m.SCREW, position, orientation, shift, turn, pivot)
    turn = np.array(turn)
    angle = np.linalg.norm(turn)
    skew = np.cross(np.eye(3), turn)
    # p + d = R p + V v with V the left Jacobian of the rotation, so v follows by a linear solve.
    series = np.zeros((3, 3))
    term = np.eye(3)
    for k in range(1, 60):
        series = series + term
        term = term @ skew / (k + 1)
    velocity = np.linalg.solve(
        series, np.add(pivot, shift) - Rotation.from_rotvec(turn).apply(np.array(pivot, dtype=float))
    )
    generator = np.zeros((4, 4))
    generator[:3, :3] = skew
    generator[:3, 3] = velocity
    for u in (0.0, 0.25, 0.7, 1.0):
        truth = expm(u * generator)
        close(m.point(motion, u, x), (truth @ np.append(x, 1.0))[:3], atol=3e-13)
        close(placed(motion, u), truth @ homogeneous(position, orientation), atol=3e-13)
    assert motion["angle"] == pytest.approx(angle, rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("kind", KINDS)
@examples
@given(first=st.tuples(vectors, orientations), second=st.tuples(vectors, orientations), pivot=vectors)
def test_both_end_poses_are_met(kind, first, second, pivot):
    motion = record()
    m.between(motion, kind, *first, *second, pivot)
    close(placed(motion, 0.0), homogeneous(*first), atol=1e-14)
    close(placed(motion, 1.0), homogeneous(*second), atol=2e-14)
    assert 0.0 <= motion["angle"] <= math.pi


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-200, 1e-16, 1e-12, 1e-9, 1.1e-9, 1e-6, 1e-3, 1.0])
def test_small_turns_go_over_into_translations(kind, angle):
    """No jump on the way to angle 0: the constant-rate screw is the straight line but for half the angle times d."""
    motion = record()
    turn = np.array((0.6, 0.0, 0.8)) * angle
    position, orientation = (0.1, 0.2, 0.3), (0.0, 0.0, 0.0, 1.0)
    shift = np.array((0.3, -0.1, 0.2))
    end = Rotation.from_rotvec(turn).as_quat()
    m.between(motion, kind, position, orientation, tuple(position + shift), tuple(end), position)
    close(m.pose(motion, 1.0)[0], position + shift, atol=1e-15)
    assert np.isfinite([m.pose(motion, u)[0] for u in STEPS]).all()
    if kind != m.ALGEBRAIC:
        for u in STEPS:
            assert np.linalg.norm(np.subtract(m.pose(motion, u)[0], position + u * shift)) <= 0.5 * angle + 1e-15


@pytest.mark.parametrize("below", [0.0, 1e-16, 1e-15, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, -0.6, 0.8), (0.36, 0.48, -0.8)])
def test_near_half_a_turn_both_ends_are_met_and_the_axis_is_right(axis, below):
    motion = record()
    half = 0.5 * (math.pi - below)
    end = tuple(math.sin(half) * np.array(axis)) + (math.sin(0.5 * below),)
    start = (0.0, 0.0, 0.0, 1.0)
    m.between(motion, m.SCREW, (0.0, 0.0, 0.0), start, (0.1, 0.2, 0.3), end, (0.5, 0.0, 0.0))
    close(placed(motion, 1.0), homogeneous((0.1, 0.2, 0.3), end), atol=1e-15)
    assert motion["angle"] == pytest.approx(math.pi - below, abs=1e-15)
    assert abs(np.dot(motion["axis"], axis)) == pytest.approx(1.0, abs=1e-15)
    if below >= 1e-15:
        assert np.dot(motion["axis"], axis) > 0.0


def test_half_a_turn_takes_one_axis_whatever_the_sign_of_the_quaternion():
    for q in [(0.6, -0.8, 0.0, 0.0), (0.0, -1.0, 0.0, 0.0), (0.0, 0.0, -1.0, 0.0), (-0.48, 0.6, 0.64, 0.0)]:
        axes = []
        for end in (q, tuple(-x for x in q)):
            motion = record()
            m.between(motion, m.SCREW, (0.0,) * 3, (0.0, 0.0, 0.0, 1.0), (0.0,) * 3, end, (0.0,) * 3)
            axes.append(motion["axis"].copy())
        np.testing.assert_array_equal(axes[0], axes[1])
        leading = next(x for x in axes[0] if abs(x) > 1e-6)
        assert leading > 0.0


def test_a_turn_past_pi_ends_where_it_should():
    motion = record()
    turn = 5.0 * np.array((0.6, 0.0, 0.8))
    m.from_twist(motion, m.SCREW, (0.0,) * 3, (0.0, 0.0, 0.0, 1.0), (0.0,) * 3, tuple(turn), (0.0,) * 3)
    assert motion["angle"] == pytest.approx(2.0 * math.pi - 5.0, abs=1e-14)
    close(placed(motion, 1.0)[:3, :3], Rotation.from_rotvec(turn).as_matrix(), atol=1e-14)


def test_kinds_that_cannot_turn_so_far_become_screws():
    for kind, angle, kept in [
        (m.TAN_HALF, 2.99, True),
        (m.TAN_HALF, 3.01, False),
        (m.ALGEBRAIC, 1.57, True),
        (m.ALGEBRAIC, 1.58, False),
        (m.ALGEBRAIC, 0.0, False),
    ]:
        motion = record()
        m.from_twist(motion, kind, (0.0,) * 3, (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.1), (angle, 0.0, 0.0), (0.0,) * 3)
        assert motion["kind"] == (kind if kept else m.SCREW)
    m.from_twist(motion, m.SCREW, (0.0,) * 3, (0.0, 0.0, 0.0, 1.0), (0.0,) * 3, (0.0,) * 3, (0.0,) * 3)
    assert motion["kind"] == m.STILL


@pytest.mark.parametrize("angle", [1e-7, 0.3, 1.5])
def test_the_laws_are_those_printed(angle):
    """(2.24) and the corrected (3.6), read off the motion of a point at distance 1 from the axis."""
    for kind in (m.TAN_HALF, m.ALGEBRAIC):
        motion = record()
        m.from_twist(motion, kind, (0.0,) * 3, (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.2), (0.0, 0.0, angle), (0.0,) * 3)
        for u in STEPS:
            x, y, z = m.point(motion, u, (1.0, 0.0, 0.0))
            if kind == m.TAN_HALF:
                cosine, sine = math.cos(angle * u), math.sin(angle * u)
                assert z == pytest.approx(0.2 * math.tan(angle * u / 2) / math.tan(angle / 2), abs=1e-15)
            else:
                cosine = 1.0 - 2.0 * math.sin(angle / 2) ** 2 * u
                sine = math.sqrt(max(0.0, 1.0 - cosine)) * math.sqrt(1.0 + cosine)
                assert z == pytest.approx(0.2 * u, abs=1e-15)
            # 1 - C has lost digits in the printed form, so its square root is good to sqrt(2^-52) only.
            assert x == pytest.approx(cosine, abs=1e-15)
            assert y == pytest.approx(sine, abs=1e-15 if kind == m.TAN_HALF else 3e-8)


@examples
@given(motions(), st.floats(0.05, 0.95), vectors)
def test_points_go_with_the_pose_and_velocities_are_derivatives(motion, u, x):
    start = np.linalg.inv(placed(motion, 0.0)) @ np.append(x, 1.0)
    close(m.point(motion, u, x), (placed(motion, u) @ start)[:3], atol=1e-14)

    step = 1e-4
    ends = [np.array(m.point(motion, u + k * step, x)) for k in (-2, -1, 1, 2)]
    numeric = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)
    velocity, angular = m.twist(motion, u)
    analytic = velocity + np.cross(angular, np.subtract(m.point(motion, u, x), m.pose(motion, u)[0]))
    # Fourth-order differences; the laws' fifth derivatives reach some 1e9 near the ends of ALGEBRAIC and TAN_HALF.
    close(analytic, numeric, atol=1e-7)


@examples
@given(motions([m.SCREW]), vectors)
def test_constant_rate_points_keep_their_speed(motion, x):
    """dp/du at 0 plus W n x (c - p): the speed stays so all along, and the bound of a ball of radius 0 equals it."""
    position0 = placed(motion, 0.0)
    body = tuple((np.linalg.inv(position0) @ np.append(x, 1.0))[:3])
    speeds = []
    for u in STEPS:
        velocity, angular = m.twist(motion, u)
        speeds.append(
            np.linalg.norm(velocity + np.cross(angular, np.subtract(m.point(motion, u, x), m.pose(motion, u)[0])))
        )
    close(speeds, speeds[0], atol=1e-13)
    assert m.speed_bound(motion, body, 0.0, 0.0, 1.0) == pytest.approx(speeds[0], rel=1e-13, abs=1e-12)


def ball_points(centre, radius, rng, count=24):
    directions = rng.normal(size=(count, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return centre + radius * np.vstack([directions, np.zeros(3)])


intervals = (
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)).map(sorted).filter(lambda ends: ends[1] - ends[0] > 1e-3)
)


@examples
@given(motions(), vectors, st.floats(0.0, 1.0), intervals, st.integers(0, 10**6))
def test_no_point_of_the_ball_outruns_its_bounds(motion, centre, radius, interval, seed):
    u0, u1 = interval
    speed = m.speed_bound(motion, centre, radius, u0, u1)
    length = m.path_bound(motion, centre, radius, u0, u1)
    body = ball_points(centre, radius, np.random.default_rng(seed))
    body = np.hstack([body, np.ones((len(body), 1))])
    times = np.linspace(u0, u1, 41)
    tracks = np.array([(body @ placed(motion, u).T)[:, :3] for u in times])
    chords = np.linalg.norm(np.diff(tracks, axis=0), axis=2)
    rounding = 1e-14  # of the sampled positions
    assert (chords <= speed * np.diff(times)[:, None] + rounding).all()
    assert (chords.sum(axis=0) <= length + 41 * rounding).all()
    for u in times:
        velocity, angular = m.twist(motion, u)
        position = np.array(m.pose(motion, u)[0])
        points = (body @ placed(motion, u).T)[:, :3]
        if np.abs([velocity, angular]).max() < 1e100:  # not at the start of ALGEBRAIC
            fastest = np.linalg.norm(velocity + np.cross(angular, points - position), axis=1).max()
            assert fastest <= speed * (1.0 + 1e-14) + 1e-13 * (1.0 + np.linalg.norm(angular))


def test_bounds_hold_where_a_rate_without_limit_makes_rounding_large():
    # At u = 1e-17 the circling part is 1.6e8 times what is left of it by rounding, and that lies along the axis.
    motion = np.zeros(1, MOTION)[0]
    m.from_twist(
        motion,
        m.ALGEBRAIC,
        (0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 1.0),
        (1.0, 1.25, 0.0),
        (6.25e-17, 7.8e-17, 0.0),
        (0.0,) * 3,
    )
    assert motion["kind"] == m.ALGEBRAIC
    velocity, _ = m.twist(motion, 1e-17)
    assert np.linalg.norm(velocity) > np.sqrt(2.5625)
    assert np.linalg.norm(velocity) <= m.speed_bound(motion, (0.0, 0.0, 0.0), 0.0, 1e-17, 1.0)
    assert np.linalg.norm(velocity) <= m.pair_bounds(still_motion(), motion, (0.0, 0.0, 0.0), 0.0, 1e-17, 1.0)[0]


def still_motion():
    motion = np.zeros(1, MOTION)[0]
    m.still(motion, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    return motion


def tracks_seen_from_the_first(relative, body, times):
    """Paths of points of the second body in the first's frame by composing homogeneous matrices."""
    body = np.hstack([body, np.ones((len(body), 1))])
    return np.array(
        [(body @ (np.linalg.inv(placed(relative["first"], u)) @ placed(relative["second"], u)).T)[:, :3] for u in times]
    )


@examples
@given(pairs([m.STILL, *KINDS]), st.floats(0.02, 0.98), vectors)
def test_relative_pose_and_velocity_are_those_of_matrices(relative, u, x):
    body = np.array([x])
    position, orientation = m.relative_pose(relative, u)
    truth = np.linalg.inv(placed(relative["first"], u)) @ placed(relative["second"], u)
    close(homogeneous(position, orientation), truth, atol=1e-13)
    step = 1e-4
    around = tracks_seen_from_the_first(relative, body, [u + k * step for k in (-2, -1, 0, 1, 2)])[:, 0]
    numeric = (around[0] - 8 * around[1] + 8 * around[3] - around[4]) / (12 * step)
    close(m.relative_velocity(relative, u, tuple(around[2])), numeric, atol=2e-6)


@examples
@given(pairs([m.STILL, *KINDS]), vectors, st.floats(0.0, 1.0), intervals, st.integers(0, 10**6))
def test_relative_bounds_hold(relative, centre, radius, interval, seed):
    """Chords stay below the speed, second differences below the acceleration (mean values of the derivatives)."""
    u0, u1 = interval
    speed, acceleration = m.relative_bounds(relative, centre, radius, u0, u1)
    assert speed >= 0.0 and acceleration >= 0.0
    times = np.linspace(u0, u1, 41)
    step = (u1 - u0) / 40
    tracks = tracks_seen_from_the_first(relative, ball_points(centre, radius, np.random.default_rng(seed)), times)
    rounding = 4e-14
    assert (np.linalg.norm(np.diff(tracks, axis=0), axis=2) <= speed * step + rounding).all()
    bends = np.linalg.norm(np.diff(tracks, 2, axis=0), axis=2)
    assert (bends <= acceleration * step * step + 4 * rounding).all()


@examples
@given(motions([m.SCREW]), orientations, vectors, vectors)
def test_bounds_are_attained_where_the_first_is_still(motion, orientation, position, centre):
    relative = pair()
    m.still(relative["first"], position, orientation)
    relative["second"] = motion
    speed, acceleration = m.relative_bounds(relative, centre, 0.0, 0.0, 1.0)
    track = tracks_seen_from_the_first(relative, np.array([centre]), np.linspace(0.0, 1.0, 201))[:, 0]
    fastest = np.linalg.norm(np.diff(track, axis=0), axis=1).max() * 200
    sharpest = np.linalg.norm(np.diff(track, 2, axis=0), axis=1).max() * 200**2
    assert speed == pytest.approx(fastest, rel=1e-4, abs=1e-10)
    assert acceleration == pytest.approx(sharpest, rel=1e-3, abs=1e-8)


@examples
@given(motions([m.SCREW]), vectors)
def test_bodies_that_ride_together_hardly_move_apart(carrier, centre):
    """A body fixed to a moving one has no relative speed, and the bound on it is small, not the sum of two."""
    relative = pair()
    relative["first"] = carrier
    relative["second"] = carrier
    speed, acceleration = m.relative_bounds(relative, centre, 0.1, 0.0, 1e-3)
    assert speed < 1e-10
    assert acceleration < 1e-9


@examples
@given(motions([m.STILL, *KINDS]), motions([m.STILL, *KINDS]), st.sampled_from(["first", "second", "none", "all"]))
def test_the_screw_of_a_pair(first, second, fixed):
    relative = pair()
    relative["first"] = first
    relative["second"] = second
    for name in ("first", "second"):
        body = relative[name]
        if name == fixed or fixed == "all":
            m.still(body, tuple(body["position"]), tuple(body["orientation"]))
    out = record()
    exact = m.relative_screw(relative, out)
    times = STEPS if exact else (0.0, 1.0)
    for u in times:
        close(placed(out, u), homogeneous(*m.relative_pose(relative, u)), atol=1e-13)
    if fixed != "none":
        assert exact


def test_two_translations_make_one_translation():
    relative = pair()
    zero, identity = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)
    turned = (0.6, 0.0, 0.0, 0.8)
    m.from_twist(relative["first"], m.SCREW, zero, turned, (0.1, 0.2, 0.0), zero, zero)
    m.from_twist(relative["second"], m.SCREW, (1.0, 0.0, 0.0), identity, (0.0, 0.2, 0.3), zero, zero)
    out = record()
    assert m.relative_screw(relative, out)
    assert out["angle"] == 0.0
    for u in STEPS:
        close(placed(out, u), homogeneous(*m.relative_pose(relative, u)), atol=1e-15)


@examples
@given(motions([m.STILL, m.SCREW]), vectors)
def test_two_halves_make_the_whole(motion, x):
    halves = [record(), record()]
    for part in (0, 1):
        m.halve(motion, part, halves[part])
        for u in STEPS:
            whole = 0.5 * (part + u)
            close(placed(halves[part], u), placed(motion, whole), atol=2e-14)


@examples
@given(motions([m.TAN_HALF, m.ALGEBRAIC]))
def test_halves_of_other_laws_meet_the_same_three_poses(motion):
    for part in (0, 1):
        half = record()
        m.halve(motion, part, half)
        for u in (0.0, 1.0):
            close(placed(half, u), placed(motion, 0.5 * (part + u)), atol=5e-14)


def test_all_bodies_are_placed_at_one_time():
    rng = np.random.default_rng(4)
    table = np.zeros(5, MOTION)
    for row in table:
        m.from_twist(
            row,
            m.SCREW,
            tuple(rng.normal(size=3)),
            tuple(Rotation.random(random_state=rng).as_quat()),
            *(tuple(rng.normal(size=3)) for _ in range(3)),
        )
    poses = np.zeros(5, POSE)
    m.place(table, 0.3, poses)
    for row, placed_pose in zip(table, poses, strict=True):
        truth = placed(row, 0.3)
        close(homogeneous(placed_pose["position"], placed_pose["orientation"]), truth, atol=1e-14)


@examples
@given(st.lists(motions(), min_size=4, max_size=4), vectors, st.floats(0.0, 0.5), intervals, st.integers(0, 10**6))
def test_chains_compose_and_their_paths_stay_within_bounds(links, centre, radius, interval, seed):
    table = np.zeros(4, MOTION)
    for row, link in enumerate(links):
        table[row] = link
    parents = np.array([-1, 0, 1, 1])
    u0, u1 = interval
    body = ball_points(centre, radius, np.random.default_rng(seed), 8)
    body = np.hstack([body, np.ones((len(body), 1))])
    tracks = []
    poses = np.zeros(4, POSE)
    for u in np.linspace(u0, u1, 31):
        m.place_chain(table, parents, u, poses)
        truth = placed(table[0], u) @ placed(table[1], u) @ placed(table[3], u)
        close(homogeneous(poses[3]["position"], poses[3]["orientation"]), truth, atol=1e-13)
        tracks.append((body @ truth.T)[:, :3])
    travelled = np.linalg.norm(np.diff(tracks, axis=0), axis=2).sum(axis=0)
    assert (travelled <= m.chain_path_bound(table, parents, 3, centre, radius, u0, u1) + 1e-12).all()


@examples
@given(vectors, vectors, vectors, vectors, st.floats(0.0, 1.0), intervals)
def test_straight_vertex_paths(a0, a1, b0, b1, share, interval):
    """Exact at both ends; points between two vertices travel no farther than the longer of the two bounds."""
    assert m.linear_point(a0, a1, 0.0) == a0
    assert m.linear_point(a0, a1, 1.0) == a1
    u0, u1 = interval
    ends = [
        (1.0 - share) * np.array(m.linear_point(a0, a1, u)) + share * np.array(m.linear_point(b0, b1, u))
        for u in (u0, u1)
    ]
    longest = max(m.linear_path_bound(a0, a1, u0, u1), m.linear_path_bound(b0, b1, u0, u1))
    assert np.linalg.norm(ends[1] - ends[0]) <= longest + 1e-15
