"""What contacts answer in Newton's method: the impulse that belongs to an argument, and how it changes with it.

The impulse is minus the gradient of a convex potential of the argument w: the r in the friction cone at which
r' D r / 2 + w' r is least, in closed form for D = diag(D_n, D_t, D_t). With moments the limits of all slips are shares
of one normal impulse, which is then the root of a piecewise linear function.
Source: Castro, Permenter and Han 2022; for moments Acary and Bourrier 2021, the root and its derivatives own work.
"""

import math

from rtcore.kernels import inner

Second = tuple[float, float, float, float, float, float]
"""Elements nn, n1, n2, 11, 12, 22 of a symmetric 3x3 matrix."""
Six = tuple[float, float, float, float, float, float]
"""A vector of a contact and its moments."""
Laws = tuple[float, float, float, float, float, float]
"""Compliance of the normal, of the tangents and of the moments; coefficients of friction, spinning and rolling."""


@inner
def respond(w0: float, w1: float, w2: float, soft_n: float, soft_t: float, mu: float) -> tuple[float, float, float]:
    """The impulse that a contact answers the argument w with, minus the gradient of its potential r' D r / 2."""
    t = math.sqrt(w1 * w1 + w2 * w2)
    if mu > 0.0 and t * soft_n <= -mu * w0 * soft_t:
        return -w0 / soft_n, -w1 / soft_t, -w2 / soft_t
    reach = mu * t - w0
    if reach <= 0.0:
        return 0.0, 0.0, 0.0
    n = reach / (soft_n + mu * mu * soft_t)
    share = -mu * n / t if t > 0.0 else 0.0
    return n, share * w1, share * w2


@inner
def curvature(w0: float, w1: float, w2: float, soft_n: float, soft_t: float, mu: float) -> Second:
    """Second derivatives of the potential at w; one of those that meet where it has several."""
    t = math.sqrt(w1 * w1 + w2 * w2)
    if mu > 0.0 and t * soft_n <= -mu * w0 * soft_t:
        return 1.0 / soft_n, 0.0, 0.0, 1.0 / soft_t, 0.0, 1.0 / soft_t
    reach = mu * t - w0
    if reach <= 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    inverse = 1.0 / (soft_n + mu * mu * soft_t)
    if t == 0.0:
        return inverse, 0.0, 0.0, 0.0, 0.0, 0.0
    c = w1 / t
    s = w2 / t
    along = mu * mu * inverse
    across = mu * reach * inverse / t
    return (
        inverse,
        -mu * inverse * c,
        -mu * inverse * s,
        along * c * c + across * s * s,
        (along - across) * c * s,
        along * s * s + across * c * c,
    )


@inner
def _press(w: Six, laws: Laws) -> tuple[float, float]:
    """(normal impulse with which a contact with moments answers the argument w, slope s of what it is the root of).

    D_n n + w_n = sum of mu_k (|w_k| - D_k mu_k n) over what slides, where that is above 0, rises in n and bends
    downwards: Newton's method from 0 ends after each part has come to hold at most once.
    """
    t = math.sqrt(w[1] * w[1] + w[2] * w[2])
    spin = abs(w[3])
    roll = math.sqrt(w[4] * w[4] + w[5] * w[5])
    n = 0.0
    slope = laws[0]
    for _ in range(4):
        slope = laws[0]
        reach = -w[0]
        if t >= laws[1] * laws[3] * n:
            slope += laws[1] * laws[3] * laws[3]
            reach += laws[3] * t
        if spin >= laws[2] * laws[4] * n:
            slope += laws[2] * laws[4] * laws[4]
            reach += laws[4] * spin
        if roll >= laws[2] * laws[5] * n:
            slope += laws[2] * laws[5] * laws[5]
            reach += laws[5] * roll
        if reach <= slope * n:
            break
        n = reach / slope
    return n, slope


@inner
def _hold(size: float, soft: float, limit: float) -> float:
    """By how much an impulse within a limit is against an argument of this size, per unit of it."""
    if size >= soft * limit:
        return limit / size if size > 0.0 else 0.0
    return 1.0 / soft


@inner
def respond_together(w: Six, laws: Laws) -> Six:
    """As `respond`, of a contact with moments."""
    n, _ = _press(w, laws)
    t = -_hold(math.sqrt(w[1] * w[1] + w[2] * w[2]), laws[1], laws[3] * n)
    spin = -_hold(abs(w[3]), laws[2], laws[4] * n)
    roll = -_hold(math.sqrt(w[4] * w[4] + w[5] * w[5]), laws[2], laws[5] * n)
    return n, t * w[1], t * w[2], spin * w[3], roll * w[4], roll * w[5]


@inner
def _bend_disc(w1: float, w2: float, soft: float, mu: float, n: float) -> tuple[float, float, float, float, float]:
    """Of two rows with one limit mu n: second derivatives 11, 12, 22 at this n, and what g has there."""
    size = math.sqrt(w1 * w1 + w2 * w2)
    if size < soft * mu * n:
        return 1.0 / soft, 0.0, 1.0 / soft, 0.0, 0.0
    if not size > 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    c = w1 / size
    s = w2 / size
    across = mu * n / size
    return across * s * s, -across * c * s, across * c * c, -mu * c, -mu * s


@inner
def curvature_together(w: Six, laws: Laws) -> tuple[float, Second, Second, Six]:
    """(1 / s or 0 for none, derivatives of the contact's rows without the dyad, those of the moments', g)."""
    n, slope = _press(w, laws)
    none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if not n > 0.0:
        if w[0] < 0.0 or w[0] > 0.0 or w[1] != 0.0 or w[2] != 0.0 or w[3] != 0.0 or w[4] != 0.0 or w[5] != 0.0:
            return 0.0, none, none, none
        # At rest without a push, as all of a stack is that only its lowest contact stops: there it counts as holding.
        t = 1.0 / laws[1] if laws[3] > 0.0 else 0.0
        spin = 1.0 / laws[2] if laws[4] > 0.0 else 0.0
        roll = 1.0 / laws[2] if laws[5] > 0.0 else 0.0
        return 1.0 / laws[0], (0.0, 0.0, 0.0, t, 0.0, t), (spin, 0.0, 0.0, roll, 0.0, roll), (1.0, *none[1:])
    t11, t12, t22, g1, g2 = _bend_disc(w[1], w[2], laws[1], laws[3], n)
    spin, _, _, g3, _ = _bend_disc(w[3], 0.0, laws[2], laws[4], n)
    r11, r12, r22, g4, g5 = _bend_disc(w[4], w[5], laws[2], laws[5], n)
    return 1.0 / slope, (0.0, 0.0, 0.0, t11, t12, t22), (spin, 0.0, 0.0, r11, r12, r22), (1.0, g1, g2, g3, g4, g5)
