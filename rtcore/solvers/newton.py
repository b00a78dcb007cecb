"""Newton's method in the space of velocities, on proximal steps towards the true Coulomb law.

With the impulses p of the step before and their slips, a step minimises over the movers' velocities v

    |v - v*|_M^2 / 2 + sum over contacts of l(J v - wanted + mu |u_t| n - S p),        l convex,

whose gradient -dl is the impulse that minimises r' D r / 2 + w' r over the friction cone, in closed form where
D = diag(D_n, D_t, D_t). D = C + S: the physical compliance C of the contact, in 1/kg, and a proximal part S that is
felt only while the impulses still change. Where the steps settle, r = p, S drops out, and de Saxce's term mu |u_t|
belongs to the slip that results: the answer obeys Coulomb's law for the compliance given, 0 included, whatever S was.
S is not physical, so it is measured by the mean of the diagonal of W. Newton pays for a small S with iterations where
contacts slip and open, the proximal steps pay for a large one with steps where masses differ; it is chosen by how many
iterations the last step took.

Moments that resist spinning and rolling (see rtcore.solvers.rolling) belong to the potential of their contact: their
limits are shares of the same normal impulse, which is then the root of a piecewise linear function, and their slips
lift the normal velocity as that of friction does. The Hessian of a potential is that of what holds, of what slides
across its slip, and one dyad g g' / s for all that goes with the normal impulse.

Velocities are scaled by sqrt(M): the Hessian is I + J' G J, bounded below by 1 at any mass ratio, and no inertia has to
be inverted. Its factor has an envelope (see rtcore.solvers.cholesky), narrow for stacks. After each step some
Gauss-Seidel sweeps put right what one contact can alone. Proximal steps with a lagged slip are not proven to converge;
each one does, its objective never rises, and the best impulses by the natural-map residual are kept. Near the answer
they gain a constant factor each: where contacts are few, rounds of rtcore.solvers.semismooth do the rest.
Source: Castro, Permenter and Han 2022 (convex primal contact); Todorov 2014 (exact line search); Acary et al. 2011
(fixed point on de Saxce's term); Acary and Bourrier 2021 (the same for rolling); Rockafellar 1976 (proximal point).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.solvers import best, cholesky, semismooth
from rtcore.solvers.cholesky import BLOCK
from rtcore.solvers.gauss_seidel import prepare_sweeps, sweep, sweep_with_moments
from rtcore.solvers.local import FACTORS, UNIT, prepare
from rtcore.solvers.potential import Laws, Second, Six, curvature, curvature_together, respond, respond_together
from rtcore.solvers.problem import (
    ContactProblem,
    delassus,
    has_moments,
    project_cone,
    project_moments,
    relative_velocity,
    scale,
)

SOFTEST = 1e-1
"""Largest proximal compliance, as a share of the mean of W's diagonal."""
START = 1e-2
"""That of the first step that is not a trial."""
TRIAL = 1e-9
"""That of the first step, which is dropped unless EASY iterations are enough: at rest one is."""
STIFFEST = 1e-7
"""The least of those after the first step: impulses lose to rounding what is divided by it."""
EASY = 2
"""Iterations of a step up to which the next has STIFFEN times its S."""
STIFFEN = 0.3
HARD = 8
"""Iterations of a step from which the next has SOFTEN times its S."""
SOFTEN = 3.0
LONGEST = 20
"""Iterations after which a step is given up and begun again with SOFTER times its S."""
SOFTER = 10.0
ENOUGH = 1e-1
"""Gradient that ends a step, as a share of the larger of the velocities made and those to be stopped."""
TIGHT = 10.0
"""The same as a multiple of the best residual so far, if that is less: what a step leaves, a small S magnifies."""
SWEEPS = 10
"""Gauss-Seidel sweeps after each step."""
VAIN = 6
"""Steps in a row after which the solve ends if none took the best residual to PROGRESS of what it was, and it is CLOSE
to an answer: what is left is rounding, or contacts that wedge."""
PROGRESS = 0.9
CLOSE = 1e-5
FEW = 24
"""Contacts of an island up to which Newton's method on the law itself is tried, first of all and after each step."""
LINE = 1e-2
"""Slope that ends a line search, as a share of that at its start."""
LINE_ROUNDS = 60
"""Most evaluations of a line search; a stiff contact may end the way at a tiny part of the step."""
RANK = 1e-13
"""Share of W's largest eigenvalue below which one is rounding."""

ALONE, WITH_MOMENTS, MOMENTS = range(3)
"""What a row is: a contact, a contact with moments in the row behind, these moments."""


@by_reference
class NewtonWork(NamedTuple):
    """Work memory of the solver; rows count from the first contact of the island, movers in the order of `local`."""

    basis: np.ndarray
    """(3 contacts, dof) scaled Jacobian of a problem without movers, see `make_work`; (0, 0) with movers."""
    rows: np.ndarray
    """(contacts, 2, 3, BLOCK) scaled Jacobians of both movers."""
    kinds: np.ndarray
    """(contacts,) ALONE, WITH_MOMENTS or MOMENTS."""
    dyad: np.ndarray
    """(2, 3, BLOCK) g J of both movers of a contact with moments, in the first row; 0 in the others."""
    places: np.ndarray
    """(contacts, 2) their numbers in the island; -1: nothing that moves."""
    local: np.ndarray
    """(movers,) number in the island of each mover that is in it."""
    roots: np.ndarray
    """(movers, 3, 3) Cholesky factors of the inverse inertia, by number in the island."""
    starts: np.ndarray
    """(movers,) envelope of the Hessian."""
    hessian: np.ndarray
    """(dof, dof), then its factor."""
    state: np.ndarray
    """(dof,) scaled velocities that the impulses have made."""
    direction: np.ndarray
    """(dof,) Newton's step."""
    soft: np.ndarray
    """(contacts, 2) compliance of normal and tangents, proximal term included, 1/kg; of moments in 1/(kg m^2), 0 where
    nothing turns."""
    offset: np.ndarray
    """(contacts, 3) what is added to J v in the potential's argument, m/s."""
    argument: np.ndarray
    """(contacts, 3) the potential's argument, m/s."""
    change: np.ndarray
    """(contacts, 3) what Newton's step changes of it."""
    best: np.ndarray
    """(contacts, 3) impulses of the best answer."""
    factors: np.ndarray
    """(contacts, FACTORS) of each contact's own block, for the sweeps."""
    ends: semismooth.SemismoothWork
    """Of what each step ends with."""


def make_work(problem: ContactProblem) -> NewtonWork:
    """Make the work memory for any island of the problem.

    A problem without movers is taken to have its compliance in W, which must not change afterwards, and no moments.
    W = B B' is split here, off-line, by its eigenvectors: its velocities are as many as W has eigenvalues that are not
    0, its Hessian is dense.
    """
    contacts = len(problem.equations)
    movers = len(problem.movers)
    basis = np.zeros((0, 0))
    if movers == 0 and contacts:
        values, vectors = np.linalg.eigh(delassus(problem))
        kept = values > RANK * values[-1]
        basis = np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
    dof = basis.shape[1] if movers == 0 else BLOCK * movers
    return NewtonWork(
        basis=basis,
        rows=np.zeros((contacts, 2, 3, BLOCK)),
        kinds=np.zeros(contacts, np.int32),
        dyad=np.zeros((2, 3, BLOCK)),
        places=np.zeros((contacts, 2), np.int32),
        local=np.zeros(movers, np.int32),
        roots=np.zeros((movers, 3, 3)),
        starts=np.zeros(movers, np.int32),
        hessian=np.zeros((dof, dof)),
        state=np.zeros(dof),
        direction=np.zeros(dof),
        soft=np.zeros((contacts, 2)),
        offset=np.zeros((contacts, 3)),
        argument=np.zeros((contacts, 3)),
        change=np.zeros((contacts, 3)),
        best=np.zeros((contacts, 3)),
        factors=np.zeros((contacts, FACTORS)),
        ends=semismooth.make_work(problem, semismooth.MOST),
    )


@inner
def _number(problem: ContactProblem, m: int, count: int, work: NewtonWork) -> int:
    """Give mover m its number in the island if it has none; returns how many have one."""
    if m < 0 or work.local[m] >= 0:
        return count
    work.local[m] = count
    work.starts[count] = count
    root = work.roots[count]
    for i in range(3):
        for j in range(3):
            root[i, j] = problem.movers[m].inverse_inertia[i, j]
    cholesky.factor(root, 3)
    return count + 1


@inner
def _scale_rows(rows: np.ndarray, jacobian: np.ndarray, inverse_mass: float, root: np.ndarray) -> None:
    """Write the Jacobian (3, 6) for velocities in units of sqrt(M^-1)."""
    share = math.sqrt(inverse_mass)
    for k in range(3):
        x = jacobian[k, 3]
        y = jacobian[k, 4]
        z = jacobian[k, 5]
        rows[k, 0] = share * jacobian[k, 0]
        rows[k, 1] = share * jacobian[k, 1]
        rows[k, 2] = share * jacobian[k, 2]
        rows[k, 3] = x * root[0, 0] + y * root[1, 0] + z * root[2, 0]
        rows[k, 4] = y * root[1, 1] + z * root[2, 1]
        rows[k, 5] = z * root[2, 2]


@kernel
def _prepare(problem: ContactProblem, first: int, last: int, work: NewtonWork) -> int:
    """Number the movers of the island and scale the Jacobians; returns the number of its velocities."""
    equations = problem.equations
    moments = False
    for i in range(first, last):
        equation = equations[i]
        if equation.parent < 0:
            work.kinds[i - first] = ALONE
            prepare(problem.blocks[equation.diagonal].values, work.factors[i - first])
        else:
            work.kinds[i - first] = MOMENTS
            work.kinds[i - 1 - first] = WITH_MOMENTS
            moments = True
        if equation.first >= 0:
            work.local[equation.first] = -1
        if equation.second >= 0:
            work.local[equation.second] = -1
    if moments:
        prepare_sweeps(problem, first, last, work.factors)
    count = 0
    for i in range(first, last):
        count = _number(problem, equations[i].first, count, work)
        count = _number(problem, equations[i].second, count, work)
    for i in range(first, last):
        equation = equations[i]
        rows = work.rows[i - first]
        places = work.places[i - first]
        places[0] = -1
        places[1] = -1
        if equation.first >= 0:
            a = work.local[equation.first]
            places[0] = a
            _scale_rows(rows[0], equation.jacobian_first, problem.movers[equation.first].inverse_mass, work.roots[a])
        if equation.second >= 0:
            b = work.local[equation.second]
            places[1] = b
            _scale_rows(rows[1], equation.jacobian_second, problem.movers[equation.second].inverse_mass, work.roots[b])
        if places[0] >= 0 and places[1] >= 0:
            low = min(places[0], places[1])
            high = max(places[0], places[1])
            work.starts[high] = min(work.starts[high], low)
    if len(problem.movers) == 0:
        return work.basis.shape[1]
    return BLOCK * count


@inner
def _relative(problem: ContactProblem, first: int, last: int, work: NewtonWork, z: np.ndarray, out: np.ndarray) -> None:
    """Write the relative velocities J z, (contacts, 3), of scaled velocities z."""
    dense = len(problem.movers) == 0
    for i in range(last - first):
        if dense:
            for k in range(3):
                row = work.basis[3 * (first + i) + k]
                even = 0.0
                odd = 0.0
                size = len(row)
                for m in range(0, size - 1, 2):
                    even += row[m] * z[m]
                    odd += row[m + 1] * z[m + 1]
                if size % 2 == 1:
                    even += row[size - 1] * z[size - 1]
                out[i, k] = even + odd
            continue
        x = 0.0
        y = 0.0
        w = 0.0
        for side in range(2):
            place = work.places[i, side]
            if place >= 0:
                rows = work.rows[i, side]
                for m in range(BLOCK):
                    value = z[BLOCK * place + m]
                    x += rows[0, m] * value
                    y += rows[1, m] * value
                    w += rows[2, m] * value
        out[i, 0] = x
        out[i, 1] = y
        out[i, 2] = w


@inner
def _collect(
    problem: ContactProblem, first: int, i: int, work: NewtonWork, n: float, t1: float, t2: float, z: np.ndarray
) -> None:
    """Add to the scaled velocities z what an impulse of contact first + i makes of them."""
    if len(problem.movers) == 0:
        a = work.basis[3 * (first + i)]
        b = work.basis[3 * (first + i) + 1]
        c = work.basis[3 * (first + i) + 2]
        for m in range(len(a)):
            z[m] += n * a[m] + t1 * b[m] + t2 * c[m]
        return
    for side in range(2):
        place = work.places[i, side]
        if place >= 0:
            rows = work.rows[i, side]
            for m in range(BLOCK):
                z[BLOCK * place + m] += rows[0, m] * n + rows[1, m] * t1 + rows[2, m] * t2


@inner
def _laws(problem: ContactProblem, first: int, i: int, work: NewtonWork) -> Laws:
    """Those of contact first + i, with moments in the row behind it."""
    mu = problem.equations[first + i].friction
    soft_m = work.soft[i + 1, 0]
    if not soft_m > 0.0:
        return work.soft[i, 0], work.soft[i, 1], 1.0, mu, 0.0, 0.0
    equation = problem.equations[first + i + 1]
    return work.soft[i, 0], work.soft[i, 1], soft_m, mu, equation.friction, equation.rolling


@inner
def _six(rows: np.ndarray, i: int) -> Six:
    """Two rows of three numbers."""
    return rows[i, 0], rows[i, 1], rows[i, 2], rows[i + 1, 0], rows[i + 1, 1], rows[i + 1, 2]


@inner
def _along_together(
    problem: ContactProblem, first: int, i: int, work: NewtonWork, alpha: float
) -> tuple[float, float, float]:
    """The part of a contact with moments in `_along`."""
    laws = _laws(problem, first, i, work)
    a = _six(work.argument, i)
    d = _six(work.change, i)
    w = (
        a[0] + alpha * d[0],
        a[1] + alpha * d[1],
        a[2] + alpha * d[2],
        a[3] + alpha * d[3],
        a[4] + alpha * d[4],
        a[5] + alpha * d[5],
    )
    r = respond_together(w, laws)
    value = laws[0] * r[0] * r[0] + laws[1] * (r[1] * r[1] + r[2] * r[2])
    value += laws[2] * (r[3] * r[3] + r[4] * r[4] + r[5] * r[5])
    slope = -(r[0] * d[0] + r[1] * d[1] + r[2] * d[2] + r[3] * d[3] + r[4] * d[4] + r[5] * d[5])
    share, p, q, g = curvature_together(w, laws)
    along = g[0] * d[0] + g[1] * d[1] + g[2] * d[2] + g[3] * d[3] + g[4] * d[4] + g[5] * d[5]
    bend = share * along * along + p[3] * d[1] * d[1] + 2.0 * p[4] * d[1] * d[2] + p[5] * d[2] * d[2]
    bend += q[0] * d[3] * d[3] + q[3] * d[4] * d[4] + 2.0 * q[4] * d[4] * d[5] + q[5] * d[5] * d[5]
    return 0.5 * value, slope, bend


@inner
def _along(
    problem: ContactProblem, first: int, last: int, work: NewtonWork, alpha: float
) -> tuple[float, float, float]:
    """Sum of the potentials at argument + alpha change, with first and second derivative by alpha."""
    value = 0.0
    slope = 0.0
    bend = 0.0
    for i in range(last - first):
        if work.kinds[i] != ALONE:
            if work.kinds[i] == WITH_MOMENTS:
                more = _along_together(problem, first, i, work, alpha)
                value += more[0]
                slope += more[1]
                bend += more[2]
            continue
        mu = problem.equations[first + i].friction
        soft_n = work.soft[i, 0]
        soft_t = work.soft[i, 1]
        d0 = work.change[i, 0]
        d1 = work.change[i, 1]
        d2 = work.change[i, 2]
        w0 = work.argument[i, 0] + alpha * d0
        w1 = work.argument[i, 1] + alpha * d1
        w2 = work.argument[i, 2] + alpha * d2
        n, t1, t2 = respond(w0, w1, w2, soft_n, soft_t, mu)
        value += 0.5 * (soft_n * n * n + soft_t * (t1 * t1 + t2 * t2))
        slope -= n * d0 + t1 * d1 + t2 * d2
        nn, n1, n2, g11, g12, g22 = curvature(w0, w1, w2, soft_n, soft_t, mu)
        bend += d0 * (nn * d0 + 2.0 * (n1 * d1 + n2 * d2)) + d1 * (g11 * d1 + 2.0 * g12 * d2) + g22 * d2 * d2
    return value, slope, bend


@inner
def _search(problem: ContactProblem, first: int, last: int, work: NewtonWork, dof: int) -> float:
    """The step along the direction that minimises the objective."""
    zz = 0.0
    zd = 0.0
    dd = 0.0
    for m in range(dof):
        zz += work.state[m] * work.state[m]
        zd += work.state[m] * work.direction[m]
        dd += work.direction[m] * work.direction[m]
    value, slope, _ = _along(problem, first, last, work, 0.0)
    start = value
    slope0 = slope + zd
    if not slope0 < 0.0:
        return 0.0
    low = 0.0
    high = math.inf
    alpha = 1.0
    for _ in range(LINE_ROUNDS):
        value, slope, bend = _along(problem, first, last, work, alpha)
        slope += zd + alpha * dd
        bend += dd
        lower = value - start + alpha * (zd + 0.5 * alpha * dd) <= 0.0
        if lower and abs(slope) <= -LINE * slope0:
            return alpha
        if slope > 0.0:
            high = alpha
        else:
            low = alpha
        alpha -= slope / bend
        if not low < alpha < high:
            if high == math.inf:  # the step is below rounding
                return low
            alpha = 0.5 * (low + high)
    return low


@inner
def _couple_blocks(h: np.ndarray, row: int, column: int, a: np.ndarray, b: np.ndarray, p: Second) -> None:
    """Add a' G b to a block of the matrix h; a, b: (3, BLOCK), p: the elements of G, see `curvature`."""
    for k in range(BLOCK):
        x = p[0] * a[0, k] + p[1] * a[1, k] + p[2] * a[2, k]
        y = p[1] * a[0, k] + p[3] * a[1, k] + p[4] * a[2, k]
        z = p[2] * a[0, k] + p[4] * a[1, k] + p[5] * a[2, k]
        line = h[BLOCK * row + k]
        for m in range(BLOCK):
            line[BLOCK * column + m] += x * b[0, m] + y * b[1, m] + z * b[2, m]


@inner
def _couple_movers(h: np.ndarray, one: int, two: int, rows: np.ndarray, p: Second) -> None:
    """Add J' G J of one row of equations; one, two: its movers in the island; rows: (2, 3, BLOCK)."""
    if one >= 0:
        _couple_blocks(h, one, one, rows[0], rows[0], p)
    if two >= 0:
        _couple_blocks(h, two, two, rows[1], rows[1], p)
    if one >= 0 and two >= 0:
        if one > two:
            _couple_blocks(h, one, two, rows[0], rows[1], p)
        else:
            _couple_blocks(h, two, one, rows[1], rows[0], p)


@inner
def _couple_together(problem: ContactProblem, first: int, i: int, work: NewtonWork) -> None:
    """Add what a contact with moments has to the Hessian."""
    share, p, q, g = curvature_together(_six(work.argument, i), _laws(problem, first, i, work))
    if share == 0.0:
        return
    one = work.places[i, 0]
    two = work.places[i, 1]
    for side in range(2):
        a = work.rows[i, side]
        b = work.rows[i + 1, side]
        for m in range(BLOCK):
            x = g[0] * a[0, m] + g[1] * a[1, m] + g[2] * a[2, m]
            work.dyad[side, 0, m] = x + g[3] * b[0, m] + g[4] * b[1, m] + g[5] * b[2, m]
    _couple_movers(work.hessian, one, two, work.dyad, (share, 0.0, 0.0, 0.0, 0.0, 0.0))
    _couple_movers(work.hessian, one, two, work.rows[i], p)
    _couple_movers(work.hessian, one, two, work.rows[i + 1], q)


@kernel
def _hessian(problem: ContactProblem, first: int, last: int, work: NewtonWork, dof: int) -> None:
    """Write the Hessian I + J' G J at the arguments, inside its envelope."""
    h = work.hessian
    dense = len(problem.movers) == 0
    for i in range(dof):
        start = 0 if dense else BLOCK * work.starts[i // BLOCK]
        for j in range(start, i):
            h[i, j] = 0.0
        h[i, i] = 1.0
        if not dense:
            for j in range(i + 1, BLOCK * (i // BLOCK + 1)):
                h[i, j] = 0.0
    for i in range(last - first):
        if work.kinds[i] != ALONE:
            if work.kinds[i] == WITH_MOMENTS:
                _couple_together(problem, first, i, work)
            continue
        w = work.argument[i]
        p = curvature(w[0], w[1], w[2], work.soft[i, 0], work.soft[i, 1], problem.equations[first + i].friction)
        if p[0] == 0.0:
            continue
        if dense:
            a = work.basis[3 * (first + i)]
            b = work.basis[3 * (first + i) + 1]
            c = work.basis[3 * (first + i) + 2]
            for k in range(dof):
                x = p[0] * a[k] + p[1] * b[k] + p[2] * c[k]
                y = p[1] * a[k] + p[3] * b[k] + p[4] * c[k]
                z = p[2] * a[k] + p[4] * b[k] + p[5] * c[k]
                line = h[k]
                for m in range(k + 1):
                    line[m] += x * a[m] + y * b[m] + z * c[m]
            continue
        _couple_movers(h, work.places[i, 0], work.places[i, 1], work.rows[i], p)


@inner
def _centre(problem: ContactProblem, first: int, last: int, work: NewtonWork, dof: int, soft: float) -> None:
    """Begin a proximal step about the impulses and slips that the contacts hold; soft: proximal compliance, 1/kg."""
    for m in range(dof):
        work.state[m] = 0.0
    for i in range(last - first):
        equation = problem.equations[first + i]
        c = equation.compliance
        r = equation.impulse
        u = equation.velocity
        added = soft
        work.soft[i, 0] = c[0] + soft
        work.soft[i, 1] = max(c[1], c[2]) + soft
        if work.kinds[i] == MOMENTS:
            added *= work.factors[i, UNIT] ** 2
            work.soft[i, 0] = work.soft[i, 1] = max(c[0], c[1], c[2]) + added
        for k in range(3):
            work.offset[i, k] = equation.free[k] - (work.soft[i, min(k, 1)] - c[k]) * r[k]
        slip = math.sqrt(u[1] * u[1] + u[2] * u[2])
        if work.kinds[i] == MOMENTS:
            work.offset[i - 1, 0] += equation.friction * abs(u[0]) + equation.rolling * slip
        else:
            work.offset[i, 0] += equation.friction * slip
        _collect(problem, first, i, work, r[0], r[1], r[2], work.state)


@kernel
def _slope(problem: ContactProblem, first: int, last: int, work: NewtonWork, dof: int) -> tuple[float, float]:
    """Write arguments and the negative gradient (to the direction); returns the squares of gradient and state."""
    _relative(problem, first, last, work, work.state, work.argument)
    for m in range(dof):
        work.direction[m] = -work.state[m]
    for i in range(last - first):
        w = work.argument[i]
        for k in range(3):
            w[k] += work.offset[i, k]
    for i in range(last - first):
        w = work.argument[i]
        if work.kinds[i] != ALONE:
            if work.kinds[i] == WITH_MOMENTS:
                r = respond_together(_six(work.argument, i), _laws(problem, first, i, work))
                if r[0] > 0.0:
                    _collect(problem, first, i, work, r[0], r[1], r[2], work.direction)
                    _collect(problem, first, i + 1, work, r[3], r[4], r[5], work.direction)
            continue
        mu = problem.equations[first + i].friction
        n, t1, t2 = respond(w[0], w[1], w[2], work.soft[i, 0], work.soft[i, 1], mu)
        if n > 0.0:
            _collect(problem, first, i, work, n, t1, t2, work.direction)
    gradient = 0.0
    state = 0.0
    for m in range(dof):
        gradient += work.direction[m] * work.direction[m]
        state += work.state[m] * work.state[m]
    return gradient, state


@kernel
def _descend(
    problem: ContactProblem, first: int, last: int, work: NewtonWork, dof: int, energy: float, enough: float, limit: int
) -> tuple[int, bool]:
    """Newton's iterations of one proximal step, at least one and at most `limit`; leaves the arguments.

    energy: square of the scaled velocities that are to be stopped; enough: see ENOUGH. Returns (iterations, whether the
    step is complete).
    """
    used = 0
    while True:
        gradient, state = _slope(problem, first, last, work, dof)
        if used > 0 and gradient <= enough * enough * max(state, energy):
            return used, True
        if used == limit:
            return used, False
        _hessian(problem, first, last, work, dof)
        if len(problem.movers) == 0:
            cholesky.factor(work.hessian, dof)
            cholesky.solve(work.hessian, dof, work.direction)
        else:
            cholesky.factor_envelope(work.hessian, work.starts, dof // BLOCK)
            cholesky.solve_envelope(work.hessian, work.starts, dof // BLOCK, work.direction)
        _relative(problem, first, last, work, work.direction, work.change)
        alpha = _search(problem, first, last, work, dof)
        used += 1
        if alpha == 0.0:
            return used, False
        for m in range(dof):
            work.state[m] += alpha * work.direction[m]


@inner
def _take_together(problem: ContactProblem, first: int, i: int, work: NewtonWork) -> None:
    """Take the impulse that answers the argument of a contact with moments."""
    laws = _laws(problem, first, i, work)
    n, t1, t2, spin, roll1, roll2 = respond_together(_six(work.argument, i), laws)
    r = problem.equations[first + i].impulse
    r[0], r[1], r[2] = project_cone(n, t1, t2, laws[3])
    m = problem.equations[first + i + 1].impulse
    m[0], m[1], m[2] = project_moments(spin, roll1, roll2, laws[4] * r[0], laws[5] * r[0])


@inner
def _answer(problem: ContactProblem, first: int, last: int, work: NewtonWork, rho: float) -> float:
    """Take the impulses that answer the arguments, and return their residual, see `best.judge`."""
    for i in range(last - first):
        w = work.argument[i]
        equation = problem.equations[first + i]
        if work.kinds[i] != ALONE:
            if work.kinds[i] == WITH_MOMENTS:
                _take_together(problem, first, i, work)
            continue
        mu = equation.friction
        n, t1, t2 = respond(w[0], w[1], w[2], work.soft[i, 0], work.soft[i, 1], mu)
        r = equation.impulse
        r[0], r[1], r[2] = project_cone(n, t1, t2, mu)
    relative_velocity(problem, first, last)
    return best.judge(problem, first, last, rho)


@kernel
def solve(problem: ContactProblem, first: int, last: int, settings: Any, work: NewtonWork, report: Any) -> None:
    """Solve the contacts first .. last - 1, an island, from the impulses they hold; W must be assembled.

    settings: SOLVER_SETTINGS record; report: SOLVER_REPORT record; work: see `make_work`. One unit of work is an
    iteration of Newton's; the sweeps, at most SWEEPS per iteration, are not counted, rounds at the ends are (see
    `semismooth.improve`). It may end before its units do, see VAIN.
    """
    rho = scale(problem, first, last)
    dof = _prepare(problem, first, last, work)
    energy = 0.0
    for i in range(first, last):
        equation = problem.equations[i]
        r = equation.impulse
        share = rho
        if equation.parent < 0:
            r[0], r[1], r[2] = project_cone(r[0], r[1], r[2], equation.friction)
        else:
            limit = problem.equations[equation.parent].impulse[0]
            r[0], r[1], r[2] = project_moments(r[0], r[1], r[2], limit * equation.friction, limit * equation.rolling)
            unit = work.factors[i - first, UNIT]
            share = rho / (unit * unit) if unit > 0.0 else 0.0
        for k in range(3 if equation.parent >= 0 or equation.friction > 0.0 else 1):
            energy += share * equation.free[k] * equation.free[k]
    moments = has_moments(problem, first, last)
    relative_velocity(problem, first, last)
    report.start_residual = best.judge(problem, first, last, rho)
    report.residual = report.start_residual
    report.sweeps_used = 0
    best.keep(problem, first, last, work.best)
    few = not moments and last - first <= FEW
    if few:
        semismooth.improve(problem, first, last, settings, rho, work.ends, work.best, report)
    soft = TRIAL if report.sweeps_used == 0 else START
    care = 1.0
    vain = 0
    while report.residual > settings.tolerance and report.sweeps_used < settings.sweeps and vain < VAIN:
        trial = soft == TRIAL
        before = report.residual
        left = settings.sweeps - report.sweeps_used
        enough = care * min(ENOUGH, TIGHT * report.residual)
        _centre(problem, first, last, work, dof, soft / rho)
        used, complete = _descend(
            problem, first, last, work, dof, energy, enough, min(left, EASY if trial else LONGEST)
        )
        report.sweeps_used += used
        if not complete and used < left:
            soft = START if trial else min(SOFTEST, SOFTER * soft)
            continue
        error = _answer(problem, first, last, work, rho)
        if error < report.residual:
            report.residual = error
            best.keep(problem, first, last, work.best)
        if error > settings.tolerance and error < math.inf:
            for _ in range(SWEEPS):
                if moments:
                    sweep_with_moments(problem, first, last, work.factors)
                else:
                    sweep(problem, first, last, work.factors)
            relative_velocity(problem, first, last)
            swept = best.judge(problem, first, last, rho)
            if swept < report.residual:
                report.residual = swept
                best.keep(problem, first, last, work.best)
            elif error == report.residual:
                best.give(problem, first, last, work.best)
        if few and error < math.inf and semismooth.fits(problem, first, last, work.ends):
            best.give(problem, first, last, work.best)
            semismooth.improve(problem, first, last, settings, rho, work.ends, work.best, report)
        vain = 0 if report.residual > CLOSE or report.residual < PROGRESS * before else vain + 1
        if not error < math.inf:
            best.give(problem, first, last, work.best)
            soft = max(STIFFEST, care * SOFTEST)
            care *= ENOUGH  # the same again would be no answer again
        elif used <= EASY:
            soft = max(STIFFEST, STIFFEN * soft)
        elif used >= HARD:
            soft = min(SOFTEST, SOFTEN * soft)
    best.give(problem, first, last, work.best)
    report.converged = 1 if report.residual <= settings.tolerance else 0
