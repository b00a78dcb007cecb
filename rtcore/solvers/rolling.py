"""Torsional and rolling friction: a contact and the moments that resist spinning and rolling at it, solved together.

The row of equations behind a contact, its parent, may hold moments m (N m s) about the contact's normal and tangents,
with the relative angular velocities w (rad/s). They are limited by the parent's normal impulse,

    |m_n| <= torsional r_n,    |m_t| <= rolling r_n    (coefficients in m),

and dissipate the most: w is 0 where the moment is inside its limit, and against the moment where it is at the limit.
Solved in turn with its contact a moment would take dozens of sweeps to hold a ball, and the ball would creep meanwhile.
So both are solved as one. Moments that hold are eliminated (they are linear in the rest), which leaves one contact with
the Schur complement of its block for `local.solve_contact`, exactly; for a free ball that is its mass as a point. One
that slides is eliminated too, since w = -alpha m makes it a moment that yields; alpha is what takes it to its limit, a
root for each, found on limit / |m| = 1, which is nearly linear in alpha (as the secular equation of trust regions), by
Broyden's method.
Source: rolling resistance as maximum dissipation, Acary and Bourrier 2021 (their cone is the same set, their lift of
u_n is avoided by projecting on what the present r_n allows); secular equation, Moré and Sorensen 1983; Broyden 1965.
"""

import math

import numpy as np

from rtcore.kernels import inner, kernel
from rtcore.solvers.local import UNIT, factorise, solve_contact, solve_disc
from rtcore.solvers.problem import project_moments, spread

HALF = 8
"""Factors of one block."""
ROUNDS = 16
"""Most rounds of a pair, of which 3 to 5 are usual; after them contact and moments are solved in turn."""
CLOSE = 1e-13
"""By how much a sliding moment may miss its limit, as a share of it; it is put there afterwards."""
LOW = 0.1
HIGH = 20.0
"""Slopes that are learnt are kept between these multiples of those that leave out what the contact answers."""
LEAST = 0.05
"""Share of itself to which a round may bring alpha."""
LITTLE = 1e-3
"""Least alpha to begin with, as a share of the moments' own block."""
HOLDS = 6
"""Rounds in which a moment may come to hold again."""
DEPENDENT = 1e-10
"""Share of a diagonal element below which what elimination leaves of it is rounding."""
NONE, HOLD, SLIDE = range(3)
"""What a moment does; NONE: nothing allows it any."""

Six = tuple[float, float, float, float, float, float]
"""A vector of a contact and its moments, or elements nn, n1, n2, 11, 12, 22 of a symmetric matrix."""


@kernel
def write_moments(equations: np.ndarray, contact: int, torsional: float, rolling: float) -> None:
    """Write the row of moments of a contact, which is written already, to the row behind it: axes, movers, no impulse.

    equations: (max_contacts,) CONTACT_EQUATION; torsional, rolling: coefficients in m. Its `free` is 0, and is what
    things that are not movers turn by, as with contacts.
    """
    parent = equations[contact]
    equation = equations[contact + 1]
    for k in range(3):
        for m in range(3):
            equation.jacobian_first[k, m] = 0.0
            equation.jacobian_second[k, m] = 0.0
            equation.jacobian_first[k, 3 + m] = parent.jacobian_first[k, m]
            equation.jacobian_second[k, 3 + m] = parent.jacobian_second[k, m]
        equation.free[k] = 0.0
        equation.impulse[k] = 0.0
        equation.velocity[k] = 0.0
        equation.compliance[k] = 0.0
    equation.friction = torsional
    equation.rolling = rolling
    equation.first = parent.first
    equation.second = parent.second
    equation.parent = contact


@inner
def _inverse(moments: np.ndarray, torsion: int, rolling: int, alpha_n: float, alpha_t: float) -> tuple[bool, Six]:
    """The inverse of the block of the moments that hold or slide, these softer by alpha, 0 elsewhere; False: none."""
    nn = moments[0, 0] + alpha_n
    n1 = moments[0, 1]
    n2 = moments[0, 2]
    w11 = moments[1, 1] + alpha_t
    w12 = moments[1, 2]
    w22 = moments[2, 2] + alpha_t
    plane = w11 * w22 - w12 * w12
    zero = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if torsion == NONE and rolling == NONE:
        return True, zero
    if rolling != NONE and not plane > DEPENDENT * w11 * w22:
        return False, zero
    if torsion != NONE and not nn > 0.0:
        return False, zero
    if torsion == NONE:
        return True, (0.0, 0.0, 0.0, w22 / plane, -w12 / plane, w11 / plane)
    if rolling == NONE:
        return True, (1.0 / nn, 0.0, 0.0, 0.0, 0.0, 0.0)
    a1 = w12 * n2 - n1 * w22
    a2 = n1 * w12 - w11 * n2
    determinant = nn * plane + n1 * a1 + n2 * a2
    if not determinant > DEPENDENT * nn * plane:
        return False, zero
    share = 1.0 / determinant
    return True, (
        share * plane,
        share * a1,
        share * a2,
        share * (nn * w22 - n2 * n2),
        share * (n1 * n2 - nn * w12),
        share * (nn * w11 - n1 * n1),
    )


@inner
def _times(g: Six, n: float, t1: float, t2: float) -> tuple[float, float, float]:
    return (
        g[0] * n + g[1] * t1 + g[2] * t2,
        g[1] * n + g[3] * t1 + g[4] * t2,
        g[2] * n + g[4] * t1 + g[5] * t2,
    )


@inner
def _reduce(contact: np.ndarray, coupling: np.ndarray, g: Six, factors: np.ndarray) -> bool:
    """Factor what the contact's block is while some moments hold; g: their inverse. False where nothing is left."""
    c = coupling
    a0, a1, a2 = _times(g, c[0, 0], c[0, 1], c[0, 2])
    b0, b1, b2 = _times(g, c[1, 0], c[1, 1], c[1, 2])
    d0, d1, d2 = _times(g, c[2, 0], c[2, 1], c[2, 2])
    nn = contact[0, 0] - (c[0, 0] * a0 + c[0, 1] * a1 + c[0, 2] * a2)
    n1 = contact[0, 1] - (c[1, 0] * a0 + c[1, 1] * a1 + c[1, 2] * a2)
    n2 = contact[0, 2] - (c[2, 0] * a0 + c[2, 1] * a1 + c[2, 2] * a2)
    w11 = contact[1, 1] - (c[1, 0] * b0 + c[1, 1] * b1 + c[1, 2] * b2)
    w12 = contact[1, 2] - (c[2, 0] * b0 + c[2, 1] * b1 + c[2, 2] * b2)
    w22 = contact[2, 2] - (c[2, 0] * d0 + c[2, 1] * d1 + c[2, 2] * d2)
    factorise(nn, n1, n2, w11, w12, w22, factors)
    return nn > DEPENDENT * contact[0, 0] and w11 > DEPENDENT * contact[1, 1] and w22 > DEPENDENT * contact[2, 2]


@inner
def prepare_pair(contact: np.ndarray, coupling: np.ndarray, moments: np.ndarray, pair: np.ndarray) -> None:
    """Write what `solve_with_moments` needs of a contact with moments to the factors (FACTORS,) of the moments' row.

    The blocks (3, 3) of W: the contact's own, row of the contact and column of the moments, the moments' own.
    """
    held, g = _inverse(moments, HOLD, HOLD, 0.0, 0.0)
    for k in range(6):
        pair[HALF + k] = g[k]
    if not (held and _reduce(contact, coupling, g, pair)):
        pair[0] = 0.0


@inner
def _start_torsion(moments: np.ndarray, velocity: float, limit: float) -> float:
    """The alpha with which a moment about the normal at its limit leaves what is left of this velocity."""
    return max(abs(velocity) / limit - moments[0, 0], LITTLE * moments[0, 0])


@inner
def _start_rolling(moments: np.ndarray, w1: float, w2: float, limit: float) -> float:
    """The same of the moments about the tangents."""
    s1, s2 = solve_disc(moments[1, 1], moments[1, 2], moments[2, 2], w1, w2, limit)
    w1 += moments[1, 1] * s1 + moments[1, 2] * s2
    w2 += moments[2, 1] * s1 + moments[2, 2] * s2
    return max(math.sqrt(w1 * w1 + w2 * w2) / limit, LITTLE * (moments[1, 1] + moments[2, 2]))


@inner
def _solve_pair(
    contact: np.ndarray,
    coupling: np.ndarray,
    moments: np.ndarray,
    own: np.ndarray,
    pair: np.ndarray,
    free: Six,
    laws: tuple[float, float, float],
    start: tuple[float, float, float],
    slides: tuple[float, float],
) -> Six:
    """The impulse of a contact and its moments, whose velocities without both are `free`.

    Blocks and pair: see `prepare_pair`; own: the factors (FACTORS,) of the contact, whose second half is work memory;
    laws: friction of the contact, torsional and rolling friction, m; start: moments that there were; slides: guesses of
    alpha about the normal and the tangents, 0 for none. A contact that does not close without its moments opens.
    """
    if free[0] >= 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    c = coupling
    torsion = HOLD if laws[1] > 0.0 and moments[0, 0] > 0.0 else NONE
    rolling = HOLD if laws[2] > 0.0 and moments[1, 1] + moments[2, 2] > 0.0 else NONE
    spins = torsion == HOLD
    rolls = rolling == HOLD
    may_hold = True
    guess_n = slides[0] if spins and slides[0] > LITTLE * moments[0, 0] else 0.0
    guess_t = slides[1] if rolls and slides[1] > LITTLE * (moments[1, 1] + moments[2, 2]) else 0.0
    alpha_n = alpha_t = step_n = step_t = miss_n = miss_t = 0.0
    slope_nn = slope_nt = slope_tn = slope_tt = 0.0
    fresh = True
    for k in range(ROUNDS):
        whole = torsion == HOLD and rolling == HOLD and pair[0] > 0.0
        if whole:
            g = (pair[HALF], pair[HALF + 1], pair[HALF + 2], pair[HALF + 3], pair[HALF + 4], pair[HALF + 5])
        else:
            able, g = _inverse(moments, torsion, rolling, alpha_n, alpha_t)
            if not (able and _reduce(contact, c, g, own[HALF:UNIT])):
                # While they hold, nothing is left that the contact could move.
                may_hold = False
                torsion = rolling = NONE
                _, g = _inverse(moments, torsion, rolling, 0.0, 0.0)
                _reduce(contact, c, g, own[HALF:UNIT])
        an, a1, a2 = _times(g, free[3], free[4], free[5])
        r = solve_contact(
            pair if whole else own[HALF:UNIT],
            free[0] - c[0, 0] * an - c[0, 1] * a1 - c[0, 2] * a2,
            free[1] - c[1, 0] * an - c[1, 1] * a1 - c[1, 2] * a2,
            free[2] - c[2, 0] * an - c[2, 1] * a1 - c[2, 2] * a2,
            laws[0],
        )
        en = free[3] + c[0, 0] * r[0] + c[1, 0] * r[1] + c[2, 0] * r[2]
        e1 = free[4] + c[0, 1] * r[0] + c[1, 1] * r[1] + c[2, 1] * r[2]
        e2 = free[5] + c[0, 2] * r[0] + c[1, 2] * r[1] + c[2, 2] * r[2]
        n, t1, t2 = _times(g, -en, -e1, -e2)
        limit_n = laws[1] * r[0]
        limit_t = laws[2] * r[0]
        if not r[0] > 0.0:
            if torsion == NONE and rolling == NONE:
                return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            torsion = rolling = NONE  # without moments it closes
            continue
        may_hold &= k < HOLDS
        size_n = abs(n)
        size_t = math.sqrt(t1 * t1 + t2 * t2)
        starts_n = spins and (torsion == NONE or (torsion == HOLD and size_n > limit_n))
        starts_t = rolls and (rolling == NONE or (rolling == HOLD and size_t > limit_t))
        if starts_n or starts_t:
            starts_n |= guess_n > 0.0
            starts_t |= guess_t > 0.0
            if starts_n:
                torsion = SLIDE
                alpha_n = guess_n
                if not guess_n > 0.0:
                    alpha_n = _start_torsion(moments, en + moments[0, 1] * t1 + moments[0, 2] * t2, limit_n)
            if starts_t:
                rolling = SLIDE
                alpha_t = guess_t
                if not guess_t > 0.0:
                    alpha_t = _start_rolling(moments, e1 + moments[1, 0] * n, e2 + moments[2, 0] * n, limit_t)
            guess_n = guess_t = 0.0
            fresh = True
            continue
        # limit / |m| - 1 of what slides, and its slopes by alpha if the contact did not answer.
        before_n = miss_n
        before_t = miss_t
        miss_n = miss_t = 0.0
        hebden_n = hebden_t = 1.0
        if torsion == SLIDE:
            if not size_n > 0.0:
                torsion = HOLD
                alpha_n = 0.0
                fresh = True
                continue
            miss_n = (limit_n - size_n) / size_n
            hebden_n = (1.0 + miss_n) * g[0]
        if rolling == SLIDE:
            if not size_t > 0.0:
                rolling = HOLD
                alpha_t = 0.0
                fresh = True
                continue
            miss_t = (limit_t - size_t) / size_t
            bend = t1 * (g[3] * t1 + g[4] * t2) + t2 * (g[4] * t1 + g[5] * t2)
            hebden_t = (1.0 + miss_t) * bend / (size_t * size_t)
        if abs(miss_n) <= CLOSE and abs(miss_t) <= CLOSE:
            n, t1, t2 = project_moments(n, t1, t2, limit_n, limit_t)
            return r[0], r[1], r[2], n, t1, t2
        square = step_n * step_n + step_t * step_t
        if not fresh and square > 0.0:
            # Broyden's update, so that what the contact answers, and one moment to the other, is learnt.
            e_n = (miss_n - before_n - slope_nn * step_n - slope_nt * step_t) / square
            e_t = (miss_t - before_t - slope_tn * step_n - slope_tt * step_t) / square
            slope_nn += e_n * step_n
            slope_nt += e_n * step_t
            slope_tn += e_t * step_n
            slope_tt += e_t * step_t
            fresh = not (
                LOW * hebden_n < slope_nn < HIGH * hebden_n
                and LOW * hebden_t < slope_tt < HIGH * hebden_t
                and slope_nn * slope_tt - slope_nt * slope_tn > LOW * slope_nn * slope_tt
            )
        else:
            fresh = True
        if fresh:
            slope_nn = hebden_n
            slope_tt = hebden_t
            slope_nt = slope_tn = 0.0
        fresh = False
        inverse = 1.0 / (slope_nn * slope_tt - slope_nt * slope_tn)
        step_n = inverse * (slope_nt * miss_t - slope_tt * miss_n)
        step_t = inverse * (slope_tn * miss_n - slope_nn * miss_t)
        if torsion != SLIDE:
            step_n = 0.0
        elif not alpha_n + step_n > 0.0:
            step_n = (LEAST - 1.0) * alpha_n
            if may_hold:
                torsion = HOLD
                step_n = -alpha_n
                fresh = True
        if rolling != SLIDE:
            step_t = 0.0
        elif not alpha_t + step_t > 0.0:
            step_t = (LEAST - 1.0) * alpha_t
            if may_hold:
                rolling = HOLD
                step_t = -alpha_t
                fresh = True
        alpha_n += step_n
        alpha_t += step_t
    # Not found: the contact with the moments there were, then these one after the other, which adds up over sweeps.
    n, t1, t2 = start
    r = solve_contact(
        own,
        free[0] + c[0, 0] * n + c[0, 1] * t1 + c[0, 2] * t2,
        free[1] + c[1, 0] * n + c[1, 1] * t1 + c[1, 2] * t2,
        free[2] + c[2, 0] * n + c[2, 1] * t1 + c[2, 2] * t2,
        laws[0],
    )
    limit_n = laws[1] * r[0]
    en = free[3] + c[0, 0] * r[0] + c[1, 0] * r[1] + c[2, 0] * r[2]
    e1 = free[4] + c[0, 1] * r[0] + c[1, 1] * r[1] + c[2, 1] * r[2]
    e2 = free[5] + c[0, 2] * r[0] + c[1, 2] * r[1] + c[2, 2] * r[2]
    n = 0.0
    if moments[0, 0] > 0.0:
        n = -(en + moments[0, 1] * t1 + moments[0, 2] * t2) / moments[0, 0]
        n = min(max(n, -limit_n), limit_n)
    e1 += moments[1, 0] * n
    e2 += moments[2, 0] * n
    t1, t2 = solve_disc(moments[1, 1], moments[1, 2], moments[2, 2], e1, e2, laws[2] * r[0])
    return r[0], r[1], r[2], n, t1, t2


@inner
def solve_with_moments(equations: np.ndarray, blocks: np.ndarray, i: int, own: np.ndarray, pair: np.ndarray) -> None:
    """Solve contact i with the moments in the row behind it; velocities must and will belong to impulses.

    equations: CONTACT_EQUATION, blocks: DELASSUS_BLOCK of a problem; own, pair: factors (FACTORS,) of both rows, see
    `prepare_pair`. The block of both must be there, which it is if they share a mover.
    """
    contact = equations[i]
    moments = equations[i + 1]
    w = blocks[contact.diagonal].values
    c = blocks[contact.diagonal + 1].values
    m = blocks[moments.diagonal].values
    r = contact.impulse
    u = contact.velocity
    n = r[0]
    t1 = r[1]
    t2 = r[2]
    s = moments.impulse
    v = moments.velocity
    sn = s[0]
    s1 = s[1]
    s2 = s[2]
    free = (
        u[0] - w[0, 0] * n - w[0, 1] * t1 - w[0, 2] * t2 - c[0, 0] * sn - c[0, 1] * s1 - c[0, 2] * s2,
        u[1] - w[1, 0] * n - w[1, 1] * t1 - w[1, 2] * t2 - c[1, 0] * sn - c[1, 1] * s1 - c[1, 2] * s2,
        u[2] - w[2, 0] * n - w[2, 1] * t1 - w[2, 2] * t2 - c[2, 0] * sn - c[2, 1] * s1 - c[2, 2] * s2,
        v[0] - c[0, 0] * n - c[1, 0] * t1 - c[2, 0] * t2 - m[0, 0] * sn - m[0, 1] * s1 - m[0, 2] * s2,
        v[1] - c[0, 1] * n - c[1, 1] * t1 - c[2, 1] * t2 - m[1, 0] * sn - m[1, 1] * s1 - m[1, 2] * s2,
        v[2] - c[0, 2] * n - c[1, 2] * t1 - c[2, 2] * t2 - m[2, 0] * sn - m[2, 1] * s1 - m[2, 2] * s2,
    )
    laws = (contact.friction, moments.friction, moments.rolling)
    size = math.sqrt(s1 * s1 + s2 * s2)
    slides = (
        abs(v[0] / sn) if sn != 0.0 else 0.0,
        math.sqrt(v[1] * v[1] + v[2] * v[2]) / size if size > 0.0 else 0.0,
    )
    r[0], r[1], r[2], s[0], s[1], s[2] = _solve_pair(w, c, m, own, pair, free, laws, (sn, s1, s2), slides)
    n = r[0] - n
    t1 = r[1] - t1
    t2 = r[2] - t2
    if n != 0.0 or t1 != 0.0 or t2 != 0.0:
        spread(equations, blocks, contact, n, t1, t2)
    sn = s[0] - sn
    s1 = s[1] - s1
    s2 = s[2] - s2
    if sn != 0.0 or s1 != 0.0 or s2 != 0.0:
        spread(equations, blocks, moments, sn, s1, s2)
