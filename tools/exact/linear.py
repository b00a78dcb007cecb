"""Do two features whose vertices move on straight lines meet in 0 <= t <= 1? Decided in exact integer arithmetic.

Every finite double is an integer times a power of two, so a query becomes polynomials in t with integer coefficients.
Whether the features meet at a given t is a Boolean function of signs of such polynomials; it can change only at their
roots, and the set of times of contact is closed. So it is enough to look at t = 0, at t = 1 and at the roots, and a
root is an isolating interval that can be halved for ever. Roots in common are found by greatest common divisors.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import gcd

import numpy as np

Polynomial = list[int]
"""Coefficients of 1, t, t^2, ...; the last one is not zero; [] is the zero polynomial."""
PolynomialVector = tuple[Polynomial, Polynomial, Polynomial]


def _trim(p: Polynomial) -> Polynomial:
    while p and p[-1] == 0:
        p = p[:-1]
    return p


def _plus(p: Polynomial, q: Polynomial, factor: int = 1) -> Polynomial:
    size = max(len(p), len(q))
    return _trim([(p[i] if i < len(p) else 0) + factor * (q[i] if i < len(q) else 0) for i in range(size)])


def _times(p: Polynomial, q: Polynomial) -> Polynomial:
    if not p or not q:
        return []
    product = [0] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            product[i + j] += x * y
    return _trim(product)


def _value(p: Polynomial, t: Fraction) -> int:
    """p(t) times a positive number: its sign is what counts."""
    value, power = 0, 1
    for coefficient in reversed(p):
        value = value * t.numerator + coefficient * power
        power *= t.denominator
    return value


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _primitive(p: Polynomial) -> Polynomial:
    common = gcd(*p) if p else 1
    return [c // common for c in p]


def _remainder(p: Polynomial, q: Polynomial) -> Polynomial:
    """A positive multiple of p modulo q."""
    p = list(p)
    while len(p) >= len(q):
        lead, scale = p[-1], abs(q[-1])
        factor = lead if q[-1] > 0 else -lead
        shift = len(p) - len(q)
        p = [c * scale for c in p]
        for i, c in enumerate(q):
            p[shift + i] -= factor * c
        p = _trim(p)
    return _primitive(p)


def _common_divisor(p: Polynomial, q: Polynomial) -> Polynomial:
    while q:
        p, q = q, _remainder(p, q)
    return _primitive(p)


def _quotient(p: Polynomial, q: Polynomial) -> Polynomial:
    """p / q for a divisor q, up to a constant factor."""
    left = [Fraction(c) for c in p]
    out = [Fraction(0)] * (len(p) - len(q) + 1)
    for shift in reversed(range(len(out))):
        out[shift] = left[shift + len(q) - 1] / q[-1]
        for i, c in enumerate(q):
            left[shift + i] -= out[shift] * c
    scale = 1
    for c in out:
        scale = scale * c.denominator
    return _primitive([int(c * scale) for c in out])


def _derivative(p: Polynomial) -> Polynomial:
    return [i * c for i, c in enumerate(p)][1:]


def _square_free(p: Polynomial) -> Polynomial:
    divisor = _common_divisor(p, _derivative(p))
    return _quotient(p, divisor) if len(divisor) > 1 else _primitive(p)


def _sturm(p: Polynomial) -> list[Polynomial]:
    chain = [p, _derivative(p)]
    while len(chain[-1]) > 1:
        chain.append([-c for c in _remainder(chain[-2], chain[-1])])
    return [q for q in chain if q]


def _changes(chain: list[Polynomial], t: Fraction) -> int:
    signs = [s for s in (_sign(_value(q, t)) for q in chain) if s]
    return sum(a != b for a, b in pairwise(signs))


@dataclass
class Root:
    """The only root of a square-free polynomial in the open interval (low, high), or the number low == high."""

    polynomial: Polynomial
    low: Fraction
    high: Fraction

    def halve(self) -> None:
        """Halve the interval."""
        if self.low == self.high:
            return
        middle = (self.low + self.high) / 2
        at = _sign(_value(self.polynomial, middle))
        if at == 0:
            self.low = self.high = middle
        elif at == _sign(_value(self.polynomial, self.high)):
            self.high = middle
        else:
            self.low = middle

    def sign_of(self, p: Polynomial) -> int:
        """The sign of another polynomial at this root."""
        if not p:
            return 0
        if self.low == self.high:
            return _sign(_value(p, self.low))
        common = _common_divisor(self.polynomial, p)
        # Simple roots only: the divisor has this root exactly if it changes sign over the interval.
        if len(common) > 1 and _value(common, self.low) * _value(common, self.high) < 0:
            return 0
        chain = _sturm(_square_free(p)) if len(p) > 1 else []
        while self.low < self.high:
            ends = _sign(_value(p, self.low)), _sign(_value(p, self.high))
            if ends[0] == ends[1] != 0 and (not chain or _changes(chain, self.low) == _changes(chain, self.high)):
                return ends[0]
            self.halve()
        return _sign(_value(p, self.low))


def roots(p: Polynomial) -> list[Root]:
    """The roots of a polynomial in 0 <= t <= 1, each in an interval of its own, in order; none for a constant."""
    if len(p) < 2:
        return []
    p = _square_free(p)
    chain = _sturm(p)
    found = []
    for end in (Fraction(0), Fraction(1)):
        if _value(p, end) == 0:
            found.append(Root(p, end, end))

    def search(low: Fraction, high: Fraction, count: int) -> None:
        """`count` roots lie in the open interval."""
        if count == 0:
            return
        if count == 1 and _value(p, low) * _value(p, high) < 0:
            found.append(Root(p, low, high))
            return
        middle = (low + high) / 2
        exact = _value(p, middle) == 0
        if exact:
            found.append(Root(p, middle, middle))
        # The chain counts the roots of (low, middle].
        left = _changes(chain, low) - _changes(chain, middle) - exact
        search(low, middle, left)
        search(middle, high, count - left - exact)

    inside = _changes(chain, Fraction(0)) - _changes(chain, Fraction(1)) - (_value(p, Fraction(1)) == 0)
    search(Fraction(0), Fraction(1), inside)
    return sorted(found, key=lambda root: root.low)


def _minus(a: PolynomialVector, b: PolynomialVector) -> PolynomialVector:
    return tuple(_plus(x, y, -1) for x, y in zip(a, b, strict=True))  # type: ignore[return-value]


def _dot(a: PolynomialVector, b: PolynomialVector) -> Polynomial:
    total: Polynomial = []
    for x, y in zip(a, b, strict=True):
        total = _plus(total, _times(x, y))
    return total


def _cross(a: PolynomialVector, b: PolynomialVector) -> PolynomialVector:
    return tuple(  # type: ignore[return-value]
        _plus(_times(a[i], b[j]), _times(a[j], b[i]), -1) for i, j in ((1, 2), (2, 0), (0, 1))
    )


def _paths(query: np.ndarray) -> list[PolynomialVector]:
    """The four vertices of a query (8, 3) as polynomials, all scaled by one power of two."""
    ratios = [[float(x).as_integer_ratio() for x in row] for row in query]
    scale = max(denominator for row in ratios for _, denominator in row)
    whole = [[n * (scale // d) for n, d in row] for row in ratios]
    return [
        tuple(_trim([whole[i][k], whole[i + 4][k] - whole[i][k]]) for k in range(3))  # type: ignore[misc]
        for i in range(4)
    ]


class _Feature:
    """Signs that tell at any time whether two features meet."""

    def __init__(self, coplanar: Polynomial, normal: PolynomialVector, inside: list[Polynomial], ends: list):
        self.coplanar = coplanar
        self.normal = normal
        self.inside = inside  # all >= 0 where they meet, if the normal is not zero
        self.ends = [(_cross(x, y), _dot(x, y)) for x, y in ends]  # from a point to both ends of a segment

    def polynomials(self) -> Iterable[Polynomial]:
        yield self.coplanar
        yield from self.normal
        yield from self.inside
        for cross, dot in self.ends:
            yield from cross
            yield dot

    def meets(self, root: Root) -> bool:
        """Whether the features share a point at this time."""
        if root.sign_of(self.coplanar) != 0:
            return False
        if any(root.sign_of(p) != 0 for p in self.normal):
            return all(root.sign_of(p) >= 0 for p in self.inside)
        # Without a plane the features are segments on one line or parallel: an end of one lies on the other.
        return any(all(root.sign_of(p) == 0 for p in cross) and root.sign_of(dot) <= 0 for cross, dot in self.ends)


def _vertex_face(p: PolynomialVector, a: PolynomialVector, b: PolynomialVector, c: PolynomialVector) -> _Feature:
    a, b, c = _minus(a, p), _minus(b, p), _minus(c, p)
    normal = _cross(_minus(b, a), _minus(c, a))
    inside = [_dot(normal, _cross(x, y)) for x, y in ((a, b), (b, c), (c, a))]
    return _Feature(_dot(a, normal), normal, inside, [(a, b), (b, c), (c, a)])


def _edge_edge(a: PolynomialVector, b: PolynomialVector, c: PolynomialVector, d: PolynomialVector) -> _Feature:
    e, f, w = _minus(b, a), _minus(d, c), _minus(c, a)
    normal = _cross(e, f)
    square = _dot(normal, normal)
    s, t = _dot(_cross(w, f), normal), _dot(_cross(w, e), normal)
    ends = [
        (w, _minus(d, a)),
        (_minus(c, b), _minus(d, b)),
        (_minus(a, c), _minus(b, c)),
        (_minus(a, d), _minus(b, d)),
    ]
    return _Feature(_dot(w, normal), normal, [s, _plus(square, s, -1), t, _plus(square, t, -1)], ends)


def first_contact(face: bool, query: np.ndarray, bits: int = 60) -> tuple[Fraction, Fraction] | None:
    """Return an interval (low, high), about 2^-bits wide, that holds the first time of contact; None if there is none.

    query: (8, 3), finite doubles: rows 0..3 are the vertices at t = 0, rows 4..7 at t = 1; point and triangle where
    `face`, else the edges 0-1 and 2-3. Closed features, closed interval of time.
    """
    feature = (_vertex_face if face else _edge_edge)(*_paths(query))
    if feature.coplanar:
        candidates = roots(feature.coplanar)
    else:
        candidates = [Root([], Fraction(end), Fraction(end)) for end in (0, 1)]
        for p in feature.polynomials():
            candidates += roots(p)
    contacts = [root for root in candidates if feature.meets(root)]
    for root in contacts:
        while root.high - root.low > Fraction(1, 2**bits):
            root.halve()
    if not contacts:
        return None
    return min(root.low for root in contacts), min(root.high for root in contacts)


def meets(face: bool, query: np.ndarray) -> bool:
    """Whether the two features of a query meet at some time 0 <= t <= 1; see `first_contact`."""
    return first_contact(face, query, bits=0) is not None
