"""The exact judge of linear paths against answers known by hand, its own symmetries, and dense samples."""

from fractions import Fraction

import numpy as np
import pytest

from tools.exact.linear import Root, first_contact, meets, roots


def test_roots_are_isolated_with_multiple_and_rational_ones():
    """(2 t - 1)^2 (3 t - 1) (t - 2): 1/3 and 1/2 once each, 2 is outside."""
    p = [1]
    for q in ([-1, 2], [-1, 2], [-1, 3], [-2, 1]):
        p = [sum(p[i] * q[k - i] for i in range(len(p)) if 0 <= k - i < 2) for k in range(len(p) + 1)]
    found = roots(p)
    assert len(found) == 2
    for root, value in zip(found, (Fraction(1, 3), Fraction(1, 2)), strict=True):
        assert root.low <= value <= root.high
        assert root.sign_of([-value.numerator, value.denominator]) == 0
        assert root.sign_of([1 - 2 * value.numerator, 2 * value.denominator]) == 1
    assert [(root.low, root.high) for root in roots([0, 1])] == [(0, 0)]
    assert [(root.low, root.high) for root in roots([-1, 1])] == [(1, 1)]
    assert roots([5]) == [] == roots([])


def test_signs_at_an_irrational_root():
    """At sqrt(1/2): 2 t^2 - 1 is zero, and 99 t - 70 is positive by 5e-3 only."""
    (root,) = roots([-1, 0, 2])
    assert root.sign_of([-1, 0, 2]) == 0
    assert root.sign_of([-3, 1, 6, -2]) == 0  # (2 t^2 - 1)(3 - t)
    assert root.sign_of([-70, 99]) == 1
    assert root.sign_of([70, -99]) == -1
    assert root.sign_of([1, -2, 1]) == 1
    assert Root([], Fraction(0), Fraction(0)).sign_of([0, 1]) == 0


TRIANGLE = [[-1.0, -1, 0], [1, -1, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ((0, 0, 1), (0, 0, -1), Fraction(1, 2)),
        ((0, 0, 1), (0, 0, 2.0**-1074), None),  # the smallest double above the face
        ((0, 0, 1), (0, 0, 0), Fraction(1)),
        ((0, 0, 0), (0, 0, 1), Fraction(0)),
        ((1, -1, 1), (1, -1, -3), Fraction(1, 4)),  # on a vertex
        ((1 + 2.0**-52, -1, 1), (1 + 2.0**-52, -1, -3), None),  # one rounding beside it
        ((0, -3, 0), (0, 3, 0), Fraction(1, 3)),  # in the plane all the time
        ((2, -3, 0), (2, 3, 0), None),
        ((0, 0, 0), (0, 0, 0), Fraction(0)),
    ],
)
def test_vertex_on_a_face_at_rest(start, end, expected):
    contact = first_contact(True, np.array([start, *TRIANGLE, end, *TRIANGLE], dtype=float))
    if expected is None:
        assert contact is None
    else:
        assert contact[0] <= expected <= contact[1]
        assert contact[1] - contact[0] <= Fraction(1, 2**60)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[0, -1, 1], [0, 1, 1], [0, -1, -1], [0, 1, -1]], Fraction(1, 2)),  # crossed
        ([[2, -1, 1], [2, 1, 1], [2, -1, -1], [2, 1, -1]], None),
        ([[1, -1, 1], [1, 1, 1], [1, -1, -1], [1, 1, -1]], Fraction(1, 2)),  # through an end
        ([[0, 0, 1], [3, 0, 1], [0, 0, -1], [3, 0, -1]], Fraction(1, 2)),  # parallel, lands on it
        ([[2, 0, 1], [3, 0, 1], [2, 0, -1], [3, 0, -1]], None),  # parallel, lands beside it
        ([[3, 0, 0], [4, 0, 0], [-1, 0, 0], [0, 0, 0]], Fraction(1, 2)),  # slides along the same line
        ([[0, 1, 0], [0, 1, 0], [0, -1, 0], [0, -1, 0]], Fraction(1, 2)),  # an edge of no length
        ([[0, 2, 0], [0, 2, 0], [0, 1, 0], [0, 1, 0]], None),
    ],
)
def test_edge_on_an_edge_at_rest(rows, expected):
    rest = [[-1, 0, 0], [1, 0, 0]]
    contact = first_contact(False, np.array([*rest, *rows[:2], *rest, *rows[2:]], dtype=float))
    assert (contact is None) if expected is None else (contact[0] <= expected <= contact[1])


def test_the_order_of_vertices_and_of_time_does_not_matter():
    generator = np.random.default_rng(11)
    contacts = 0
    for _ in range(300):
        query = generator.integers(-2, 3, (8, 3)).astype(float)
        answers = {meets(False, query[list(order)]) for order in ((0, 1, 2, 3, 4, 5, 6, 7), (1, 0, 2, 3, 5, 4, 6, 7))}
        answers |= {meets(False, query[list(order)]) for order in ((2, 3, 1, 0, 6, 7, 5, 4), (4, 5, 6, 7, 0, 1, 2, 3))}
        assert len(answers) == 1
        faces = {meets(True, query[list(order)]) for order in ((0, 1, 2, 3, 4, 5, 6, 7), (0, 2, 3, 1, 4, 6, 7, 5))}
        faces |= {meets(True, query[list(order)]) for order in ((0, 3, 2, 1, 4, 7, 6, 5), (4, 5, 6, 7, 0, 1, 2, 3))}
        assert len(faces) == 1
        contacts += answers.pop() + faces.pop()
    assert contacts > 100


def test_a_passage_that_samples_see_is_seen():
    """The signed volume changes sign between two samples while the point is over the face: they meet in between."""
    generator = np.random.default_rng(12)
    times = np.linspace(0.0, 1.0, 41)
    seen = 0
    for _ in range(200):
        query = generator.uniform(-1, 1, (8, 3))
        at = query[None, :4] * (1 - times)[:, None, None] + query[None, 4:] * times[:, None, None]
        p, a, b, c = at.transpose(1, 0, 2)
        normal = np.cross(b - a, c - a)
        height = np.einsum("ij,ij->i", p - a, normal)
        over = np.all(
            [np.einsum("ij,ij->i", np.cross(y - x, p - x), normal) > 0 for x, y in ((a, b), (b, c), (c, a))], axis=0
        )
        passes = (height[:-1] * height[1:] < 0) & over[:-1] & over[1:]
        if passes.any():
            seen += 1
            contact = first_contact(True, query)
            assert contact is not None
            assert contact[0] <= times[np.flatnonzero(passes)[0] + 1]
    assert seen > 5
