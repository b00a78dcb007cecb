"""One contact with Coulomb's law alone, solved exactly: open, stick or slip.

With u = W r + b of the one contact (normal first, W 3x3 and positive definite) a slipping contact has u_n = 0 and
u_t = -alpha r_t with some alpha > 0. Its normal row taken out, S = W_tt - W_tn W_nt / W_nn and
c = b_t - W_tn b_n / W_nn give r_t = -(S + alpha)^-1 c, so that |r_t| = mu r_n is one equation for alpha:

    mu P(alpha) = sqrt(Q(alpha)),    P and Q polynomials of second degree, Q = |adj(S) c + alpha c|^2.

sqrt(Q) is at most |adj(S) c| + alpha |c|, which makes the positive root of a quadratic a bound above the root, however
strong the coupling of normal and tangents; it is the root itself where S has no preferred direction. From there Newton
on mu P / sqrt(Q) - 1, linear in that case and nearly so in others, is kept between the bound and 0.
Source: de Saxce's form of Coulomb's law, Acary and Brogliato 2008; own root-finding, after that of trust regions (Moré
and Sorensen 1983).
"""

import math

import numpy as np

from rtcore.kernels import inner, kernel

FACTORS = 17
"""Room for factors per row of equations; `prepare` writes the first 8, see also rtcore.solvers.rolling."""
UNIT = 16
"""Where it is kept what impulses of a row are multiplied by to compare: 1, of moments 1 / their length, 1/m."""
ROUNDS = 64
"""Most steps of the root-finding, all of which only a nearly double root takes."""
SINGULAR = 1e-17
"""Share of its squared trace that the determinant of S has at least, since less than that is rounding."""
CLOSE = 1e-9
"""Newton's last step as a share of alpha plus the trace of S; its square is below rounding."""


@kernel
def prepare(values: np.ndarray, factors: np.ndarray) -> None:
    """Write what `solve_contact` needs of a contact's own block W (3, 3), normal first, to factors (FACTORS,)."""
    factorise(values[0, 0], values[0, 1], values[0, 2], values[1, 1], values[1, 2], values[2, 2], factors)


@inner
def factorise(nn: float, n1: float, n2: float, w11: float, w12: float, w22: float, factors: np.ndarray) -> None:
    """As `prepare`, of the elements of the block; only the first half of the factors is written."""
    inverse = 1.0 / nn if nn > 0.0 else 0.0
    d1 = n1 * inverse
    d2 = n2 * inverse
    s11 = w11 - n1 * d1
    s12 = w12 - n1 * d2
    s22 = w22 - n2 * d2
    factors[0] = inverse
    factors[1] = d1
    factors[2] = d2
    factors[3] = s11
    factors[4] = s12
    factors[5] = s22
    trace = s11 + s22
    factors[6] = max(s11 * s22 - s12 * s12, SINGULAR * trace * trace)
    factors[7] = trace


@inner
def _slip(mu: float, p0: float, p1: float, p2: float, aa: float, ac: float, cc: float, trace: float) -> float:
    """The alpha > 0 with mu (p0 + p1 alpha + p2 alpha^2) = sqrt(aa + 2 ac alpha + cc alpha^2); the left less at 0."""
    square = mu * p2
    linear = mu * p1 - math.sqrt(cc)
    constant = mu * p0 - math.sqrt(aa)
    root = math.sqrt(max(linear * linear - 4.0 * square * constant, 0.0))
    high = -2.0 * constant / (linear + root) if linear >= 0.0 else (root - linear) / (2.0 * square)
    low = 0.0
    alpha = high
    for _ in range(ROUNDS):
        p = p0 + alpha * (p1 + alpha * p2)
        q = aa + alpha * (2.0 * ac + alpha * cc)
        gap = mu * p - math.sqrt(q)
        if gap > 0.0:
            high = alpha
        elif gap < 0.0:
            low = alpha
        else:
            return alpha
        slope = mu * ((p1 + 2.0 * alpha * p2) * q - p * (ac + alpha * cc))
        step = gap * q / slope
        if slope > 0.0 and low <= alpha - step <= high:
            alpha -= step
            if abs(step) <= CLOSE * (alpha + trace):
                return alpha
        else:
            middle = 0.5 * (low + high)
            if middle == alpha:
                return alpha
            alpha = middle
    return alpha


@inner
def solve_disc(s11: float, s12: float, s22: float, c1: float, c2: float, limit: float) -> tuple[float, float]:
    """The t that minimises t' S t / 2 + c' t over the disc |t| <= limit; S symmetric, not negative."""
    trace = s11 + s22
    if not (limit > 0.0 and trace > 0.0):
        return 0.0, 0.0
    determinant = max(s11 * s22 - s12 * s12, SINGULAR * trace * trace)
    a1 = s22 * c1 - s12 * c2
    a2 = s11 * c2 - s12 * c1
    p0 = limit * determinant
    aa = a1 * a1 + a2 * a2
    if aa <= p0 * p0:
        return -a1 / determinant, -a2 / determinant
    alpha = _slip(1.0, p0, limit * trace, limit, aa, a1 * c1 + a2 * c2, c1 * c1 + c2 * c2, trace)
    e1 = a1 + alpha * c1
    e2 = a2 + alpha * c2
    share = -limit / math.sqrt(e1 * e1 + e2 * e2)
    return share * e1, share * e2


@kernel
def solve_contact(factors: np.ndarray, bn: float, b1: float, b2: float, mu: float) -> tuple[float, float, float]:
    """The impulse (normal, two tangents) of a contact with velocity b at no impulse of its own, friction mu >= 0.

    factors: of its block, see `prepare`. A contact with b_n >= 0 opens, whatever else its law would allow.
    """
    g = -bn * factors[0]
    if not g > 0.0:
        return 0.0, 0.0, 0.0
    if mu == 0.0:
        return g, 0.0, 0.0
    d1 = factors[1]
    d2 = factors[2]
    determinant = factors[6]
    c1 = b1 - d1 * bn
    c2 = b2 - d2 * bn
    a1 = factors[5] * c1 - factors[4] * c2
    a2 = factors[3] * c2 - factors[4] * c1
    p0 = g * determinant + d1 * a1 + d2 * a2
    aa = a1 * a1 + a2 * a2
    if p0 > 0.0 and aa <= mu * mu * p0 * p0:
        inverse = 1.0 / determinant
        return p0 * inverse, -a1 * inverse, -a2 * inverse
    cc = c1 * c1 + c2 * c2
    if cc == 0.0:
        return g, 0.0, 0.0
    p1 = g * factors[7] + d1 * c1 + d2 * c2
    alpha = _slip(mu, p0, p1, g, aa, a1 * c1 + a2 * c2, cc, factors[7])
    e1 = a1 + alpha * c1
    e2 = a2 + alpha * c2
    n = max(p0 + alpha * (p1 + alpha * g), 0.0) / (determinant + alpha * (factors[7] + alpha))
    share = -mu * n / math.sqrt(e1 * e1 + e2 * e2)
    return n, share * e1, share * e2
