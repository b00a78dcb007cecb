"""Linear vertex paths: no contact is ever missed, and little is said in vain; judged by exact arithmetic."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtcore.collision.elementary import linear
from rtcore.collision.features import point_triangle, segment_segment
from tools.bench.ccd_queries import BARS, CAP, KINDS, ask, read_queries
from tools.exact.linear import first_contact, meets

DATA = Path(__file__).parents[4] / "../shared/data/ccd"
ROUNDING = 2e-13
"""Times the largest coordinate: above 32 ulp of the sum of the 9 components of three differences, the pads that the
kernel puts on what starts too near; what it says in vain is nearer than that."""
NEEDLE = 1e-10
"""The same for features flattened a million times: their plane is known a million times worse, at worst."""


def distance(face: bool, query: np.ndarray, time: float) -> float:
    """Distance of the two features of a query at a time, by the closest-point functions."""
    rows = [tuple(row) for row in (1.0 - time) * query[:4] + time * query[4:]]
    return np.sqrt(point_triangle(*rows)[2] if face else segment_segment(*rows)[2])


def whole_numbers(generator: np.random.Generator) -> np.ndarray:
    """Small whole coordinates: coplanar, parallel, touching, degenerate and identically zero by themselves."""
    return generator.integers(-2, 3, (8, 3)).astype(float)


def nearly_whole(generator: np.random.Generator) -> np.ndarray:
    """The same, a few coordinates off by one bit anywhere."""
    return whole_numbers(generator) + generator.choice([0, 0, 0, 1, -1], (8, 3)) * 2.0 ** -generator.integers(5, 54)


def in_one_plane(generator: np.random.Generator) -> np.ndarray:
    """All in one plane for all time, or off it by one bit."""
    query = (generator.integers(-3, 4, (8, 2)) @ generator.integers(-2, 3, (2, 3))).astype(float)
    if generator.random() < 0.5:
        query += generator.choice([0, 0, 0, 1, -1], (8, 3)) * 2.0 ** -generator.integers(20, 54)
    return query


def grazing(generator: np.random.Generator) -> np.ndarray:
    """Vertex 0 is on the line 2-3 at some time, or off it by anything from 1e-6 to 1e-18."""
    query = generator.uniform(-1, 1, (8, 3))
    time, share = generator.random(2)
    at = (1 - time) * query[:4] + time * query[4:]
    off = at[0] - (1 - share) * at[2] - share * at[3]
    query[[0, 4]] -= off
    query[generator.integers(8)] += generator.normal(size=3) * 10.0 ** -generator.integers(6, 18)
    return query


def carried(generator: np.random.Generator) -> np.ndarray:
    """One feature at rest, the other carried along a straight line through or just past it."""
    query = generator.uniform(-1, 1, (8, 3))
    motion = generator.normal(size=3)
    query[:2] += (query[2] + query[3]) / 2 - query[0] - generator.random() * motion
    query[4:] = query[:4]
    query[4:6] += motion
    query[4] += generator.normal(size=3) * 10.0 ** -generator.integers(3, 18)
    return query


def shared(generator: np.random.Generator) -> np.ndarray:
    """Neighbours of one mesh: a vertex in common at both ends, or off it by one bit."""
    query = whole_numbers(generator)
    query[[0, 4]] = query[[2, 6]]
    if generator.random() < 0.5:
        query[generator.integers(8)] += 2.0 ** -generator.integers(20, 54)
    return query


def slender(generator: np.random.Generator) -> np.ndarray:
    """Nearly parallel edges and needles, at times flattened a million times."""
    query = grazing(generator)
    for i in (0, 4):
        query[i + 1] = query[i] + (query[i + 3] - query[i + 2]) * generator.uniform(-1, 1)
        query[i + 1] += generator.normal(size=3) * 10.0 ** -generator.integers(2, 17)
    if generator.random() < 0.5:
        query[:, 0] *= 1e-6
    return query


def far_and_stretched(generator: np.random.Generator) -> np.ndarray:
    """Whole numbers stretched by powers of two along the axes, far from the origin."""
    return whole_numbers(generator) * 2.0 ** generator.integers(-30, 30, (1, 3)) + 1024.0 * generator.integers(-5, 6, 3)


def turning(generator: np.random.Generator) -> np.ndarray:
    """Vertices of features that turn by large angles past one another."""
    query = generator.normal(size=(8, 3))
    query[:2] *= 0.2
    query[4:6] = -query[:2][::-1] + generator.normal(size=3) * 0.3
    return query


FAMILIES = (
    whole_numbers,
    nearly_whole,
    in_one_plane,
    grazing,
    carried,
    shared,
    slender,
    far_and_stretched,
    turning,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_contact_is_missed_and_no_time_is_late(family, kind):
    """Against the exact decision: found wherever there is a contact, never later than it; in vain only at a touch."""
    face = KINDS[kind]
    generator = np.random.default_rng(FAMILIES.index(family))
    contacts = 0
    for _ in range(150):
        query = family(generator)
        truth = first_contact(face, query)
        vain = (NEEDLE if family is slender else ROUNDING) * (np.abs(query).max() + 1e-300)
        for cap in (CAP, 3):  # the cap may cost precision, not safety
            time, found, iterations = ask(face, query, 0.0, 0.0, cap, 1)
            assert 1 <= iterations <= cap
            if truth is not None:
                contacts += 1
                assert found
                assert time <= truth[1]
            elif found and iterations < cap:
                assert distance(face, query, time) <= vain
            else:
                assert found or time == 1.0
    assert contacts > 0


coordinate = st.integers(-3, 3).map(float) | st.floats(-1, 1)
queries = st.lists(coordinate, min_size=24, max_size=24).map(lambda values: np.reshape(values, (8, 3)))


@settings(max_examples=250, deadline=None)
@given(st.booleans(), queries)
def test_no_contact_is_missed_whatever_the_coordinates(face, query):
    truth = first_contact(face, query)
    time, found, _ = ask(face, query, 0.0, 0.0, CAP, 1)
    if truth is not None:
        assert found
        assert time <= truth[1]


@settings(max_examples=100, deadline=None)
@given(st.booleans(), queries, st.sampled_from([1e-9, 1e-3, 0.1, 1.0]), st.sampled_from([0.0, 1e-6, 1e-3]))
def test_the_separation_is_kept_until_the_time_that_is_told(face, query, separation, tolerance):
    """No distance on the way is below the separation, or below the start's if that is less; a contact is at it."""
    time, found, iterations = ask(face, query, separation, tolerance, CAP, 1)
    kept = min(separation, distance(face, query, 0.0))
    rounding = ROUNDING * max(1.0, np.abs(query).max())
    for at in np.linspace(0.0, time, 40):
        assert distance(face, query, at) >= kept - rounding
    if not found:
        assert time == 1.0
    elif iterations < CAP:
        assert distance(face, query, time) <= kept + tolerance + rounding


def test_a_contact_at_a_known_time():
    """A vertex falls from height 1 to -1 on a face: at the separation h its time is (1 - h) / 2."""
    query = np.array(
        [[0.0, 0, 1], [-1, -1, 0], [1, -1, 0], [0, 1, 0]] + [[0.0, 0, -1], [-1, -1, 0], [1, -1, 0], [0, 1, 0]]
    )
    for separation in (0.0, 0.25):
        time, found, _ = ask(True, query, separation, 0.0, CAP, 1)
        assert found
        assert (1.0 - separation) / 2 - 1e-14 <= time <= (1.0 - separation) / 2
    # Two crossed edges, the upper one falling and turning its ends: coplanar half way.
    query = np.array(
        [[-1.0, 0, 0], [1, 0, 0], [0, -1, 2], [0, 1, 1]] + [[-1.0, 0, 0], [1, 0, 0], [0, -1, -1], [0, 1, -2]]
    )
    time, found, _ = ask(False, query, 0.0, 0.0, CAP, 1)
    assert found
    assert 0.5 - 1e-14 <= time <= 0.5


def test_what_starts_too_near_may_leave_or_slide_but_not_approach():
    triangle = [[-9.0, -9, 0], [9, -9, 0], [0, 9, 0]]
    for motion, free in (((0, 0, 1), True), ((1, 0, 0), True), ((0, 0, 0), True), ((0, 0, -1e-3), False)):
        start = np.array([0.0, 0, 0.005])
        query = np.array([start, *triangle, start + motion, *triangle])
        time, found, _ = ask(True, query, 0.01, 1e-6, CAP, 1)
        assert found is not free
        assert time == (1.0 if free else pytest.approx(0.0, abs=1e-9))


def test_features_that_touch_at_the_start_are_in_contact_at_time_zero():
    """Whatever the motion: one that parts at once too."""
    triangle = [[-9.0, -9, 0], [9, -9, 0], [0, 9, 0]]
    for separation in (0.0, 0.01):
        for motion in ((0, 0, 1), (0, 0, -1), (1, 0, 0)):
            query = np.array([(0, 0, 0), *triangle, motion, *triangle], dtype=float)
            assert ask(True, query, separation, 0.0, CAP, 1)[:2] == (0.0, True)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_cannot_be_judged_are_a_contact_at_once(bad):
    generator = np.random.default_rng(3)
    for face in (False, True):
        query = generator.uniform(-1, 1, (8, 3))
        query[:, 2] = bad
        time, found, _ = ask(face, query, 0.0, 0.0, CAP, 1)
        assert (time, found) == (0.0, True)


def test_only_contacts_up_to_the_limit_are_told():
    rows = [(0.0, 0.0, 1.0), (-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (0.0, 1.0, 0.0)]
    later = [(0.0, 0.0, -1.0), *rows[1:]]
    assert linear.vertex_face(*rows, *later, 0.0, 0.4, 0.0, CAP)[:2] == (0.4, False)
    assert linear.vertex_face(*rows, *later, 0.0, 0.6, 0.0, CAP)[1]


@pytest.mark.data
@pytest.mark.parametrize("kind", KINDS)
def test_public_queries(kind):
    """No false negative, false positives at most in the proportion of Tight-Inclusion's; part of the truth redone."""
    if not DATA.is_dir():
        pytest.skip(f"no queries in {DATA.resolve()}")
    face = KINDS[kind]
    queries = read_queries(DATA, kind)
    assert queries.inexact == 0
    found = np.array([ask(face, query, 0.0, 0.0, CAP, 1)[1] for query in queries.vertices])
    assert np.sum(queries.truth & ~found) == 0
    assert np.sum(found & ~queries.truth) * BARS[kind][1] <= BARS[kind][0] * len(found)
    some = np.random.default_rng(1).choice(len(found), 400, replace=False)
    some = np.union1d(some, np.flatnonzero(found))
    assert [meets(face, queries.vertices[i]) for i in some] == list(queries.truth[some])
