"""The motion nearest to the free one that the contacts allow, exactly: Gauss' principle solved in motion space.

Of all motions x of the movers with J x >= c, row by row, the one wanted is nearest to the free motion x_u in the norm
of the inertia M. With M^-1 = L L^T per mover, rows g = J L and what the free motion lacks, b = c - J x_u, the change
z = L^-1 (x - x_u) is sum of lambda g, lambda >= 0: a point of the cone that the rows make, and lambda the impulses.

An active set finds it: the row violated most is held too, and rows that would pull are let go on the way. A row that
depends on those held replaces one of them, which the ratio of impulses chooses; where none can give way no motion
satisfies all rows, and that row is set aside. So is one whose coming does not raise the dual objective, which only
rounding can bring about, until another raises it: every pass makes progress or leaves a row fewer to try.

b is made without a motion that holds all rows as equations, which need not exist with more rows than velocities.
Compliance e of a row softens it to g z + e lambda >= b, and then every problem has an answer.
Source: Redon 2002, 5.1-5.4 (after Wilhelmsen 1976, Lawson and Hanson 1974); step past dependent rows as in Goldfarb and
Idnani 1983.
"""

import math
from typing import NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.solvers import normal_rows
from rtcore.solvers.active_set import ActiveSet, append, make_active_set, remove
from rtcore.solvers.cholesky import solve as solve_factored
from rtcore.solvers.problem import ContactProblem

ROUNDING = 1e-13
"""Distance of the answer from a violated row, as a share of the way from the free motion, that counts as none."""
GIVES_WAY = 1e-10
"""Share of a dependent row along a row held below which the latter is not what it depends on."""

ROW = np.dtype(
    [
        ("jacobian_first", "f8", 6),  # velocity along the row by the velocity of each mover
        ("jacobian_second", "f8", 6),
        ("bound", "f8"),  # least change of that velocity from the free motion, c - J x_u, m/s
        ("compliance", "f8"),  # velocity that each unit of the impulse makes besides, 1/kg
        ("impulse", "f8"),  # N s, >= 0: warm start, then the answer
        ("first", "i4"),  # rows of the movers; -1: nothing that moves
        ("second", "i4"),
    ],
    align=True,
)
"""One one-sided condition on the motion of at most two movers."""


@by_reference
class MotionWork(NamedTuple):
    """Work memory of a projection."""

    roots: np.ndarray
    """(movers, 6, 6) L with M^-1 = L L^T."""
    motion: np.ndarray
    """(6 movers,) z, change of the motion in units of the root of energy."""
    rows: np.ndarray
    """(rows, 12) g = J L, of both movers."""
    sides: np.ndarray
    """(rows, 2) the movers, -1 where there is none."""
    whole: np.ndarray
    """(rows, 6 movers) g in full, or (0, 0) where the rows are used as they are."""
    bound: np.ndarray
    """(rows,) b."""
    compliance: np.ndarray
    """(rows,) e."""
    size: np.ndarray
    """(rows,) 1 / sqrt(g g + e), 0 for a row that nothing moves."""
    impulse: np.ndarray
    """(rows,) lambda."""
    best: np.ndarray
    """(rows,) the best of them met."""
    state: np.ndarray
    """(rows,) FREE, HELD, RELEASED in the pass under way, or ASIDE."""
    lacking: np.ndarray
    """(rows,) b - g z - e lambda."""
    target: np.ndarray
    """(rows,) impulses with the rows held as equations."""
    kept: np.ndarray
    """(rows,) the warm start."""
    held: ActiveSet


class Projection(NamedTuple):
    """How a projection ended."""

    passes: int
    """Passes over all rows."""
    residual: float
    """Norm of lambda - max(0, lambda - rho w), w the velocity in excess of the bound, by that of lambda or rho b."""
    aside: int
    """Rows left violated: no motion satisfies them with the others, or rounding."""


FREE, HELD, RELEASED, ASIDE = range(4)


def make_motion_work(movers: int, rows: int, whole: bool = False) -> MotionWork:
    """Make work memory for so many movers and rows; whole: rows are taken with all movers' columns, zeros and all."""
    return MotionWork(
        roots=np.zeros((movers, 6, 6)),
        motion=np.zeros(6 * movers),
        rows=np.zeros((rows, 12)),
        sides=np.zeros((rows, 2), np.int32),
        whole=np.zeros((rows, 6 * movers) if whole else (0, 0)),
        bound=np.zeros(rows),
        compliance=np.zeros(rows),
        size=np.zeros(rows),
        impulse=np.zeros(rows),
        best=np.zeros(rows),
        state=np.zeros(rows, np.int32),
        lacking=np.zeros(rows),
        target=np.zeros(rows),
        kept=np.zeros(rows),
        held=make_active_set(rows),
    )


def make_work(problem: ContactProblem) -> MotionWork:
    """Make the work memory for a problem's tables."""
    return make_motion_work(len(problem.movers), len(problem.equations))


@inner
def _root(root: np.ndarray, mover: np.void) -> None:
    """Write L (6, 6), lower, with M^-1 = L L^T; an axis about which nothing turns leaves a column of 0."""
    for k in range(6):
        for m in range(6):
            root[k, m] = 0.0
    line = math.sqrt(max(0.0, mover.inverse_mass))
    for k in range(3):
        root[k, k] = line
        for m in range(k + 1):
            value = mover.inverse_inertia[k, m]
            for p in range(m):
                value -= root[3 + k, 3 + p] * root[3 + m, 3 + p]
            if m < k:
                pivot = root[3 + m, 3 + m]
                root[3 + k, 3 + m] = value / pivot if pivot > 0.0 else 0.0
            else:
                root[3 + k, 3 + k] = math.sqrt(value) if value > 1e-15 * mover.inverse_inertia[k, k] else 0.0


@kernel
def prepare(movers: np.ndarray, count: int, work: MotionWork) -> None:
    """Take the inertia of the first `count` movers."""
    for m in range(count):
        _root(work.roots[m], movers[m])


@inner
def _side(rows: np.ndarray, i: int, at: int, jacobian: np.ndarray, roots: np.ndarray, mover: int) -> float:
    """Write J L of one mover into a row from column `at` on; return its square."""
    square = 0.0
    line = roots[mover, 0, 0]
    for k in range(3):
        move = jacobian[k] * line
        turn = 0.0
        for m in range(k, 3):
            turn += jacobian[3 + m] * roots[mover, 3 + m, 3 + k]
        rows[i, at + k] = move
        rows[i, at + 3 + k] = turn
        square += move * move + turn * turn
    return square


@inner
def _load_jacobian(
    rows: np.ndarray,
    sides: np.ndarray,
    whole: np.ndarray,
    roots: np.ndarray,
    i: int,
    jacobian_first: np.ndarray,
    first: int,
    jacobian_second: np.ndarray,
    second: int,
) -> float:
    """Take the Jacobians and movers of row i; return the square of g."""
    square = 0.0
    if first >= 0:
        square += _side(rows, i, 0, jacobian_first, roots, first)
    if second >= 0:
        square += _side(rows, i, 6, jacobian_second, roots, second)
    sides[i, 0] = first
    sides[i, 1] = second
    if len(whole) > 0:
        for k in range(whole.shape[1]):
            whole[i, k] = 0.0
        for k in range(6):
            if first >= 0:
                whole[i, 6 * first + k] += rows[i, k]
            if second >= 0:
                whole[i, 6 * second + k] += rows[i, 6 + k]
    return square


@inner
def _open(work: MotionWork, count: int) -> None:
    """Complete rows of which `size` is the square of g: nothing held, and impulses only where something can move."""
    work.held.used[0] = 0
    for i in range(count):
        square = work.size[i] + work.compliance[i]
        work.size[i] = 1.0 / math.sqrt(square) if square > 0.0 else 0.0
        work.impulse[i] = max(0.0, work.impulse[i]) if square > 0.0 else 0.0
        work.state[i] = FREE


# Work memory is many arrays: what is done for every row is given those it needs, since all of them cost more to pass
# than the row to compute.


@inner
def _lacks(
    rows: np.ndarray,
    sides: np.ndarray,
    whole: np.ndarray,
    motion: np.ndarray,
    bound: np.ndarray,
    compliance: np.ndarray,
    impulse: np.ndarray,
    count: int,
    lacking: np.ndarray,
) -> None:
    """Write what each row lacks, b - g z - e lambda."""
    dense = len(whole) > 0
    for i in range(count):
        total = bound[i] - compliance[i] * impulse[i]
        if dense:
            for k in range(len(motion)):
                total -= whole[i, k] * motion[k]
        else:
            first = sides[i, 0]
            if first >= 0:
                for k in range(6):
                    total -= rows[i, k] * motion[6 * first + k]
            second = sides[i, 1]
            if second >= 0:
                for k in range(6):
                    total -= rows[i, 6 + k] * motion[6 * second + k]
        lacking[i] = total


@inner
def _motion(
    rows: np.ndarray, sides: np.ndarray, whole: np.ndarray, impulse: np.ndarray, count: int, motion: np.ndarray
) -> None:
    """Write z of the impulses, for the movers that the rows have."""
    dense = len(whole) > 0
    for i in range(count):
        for side in range(2):
            mover = sides[i, side]
            if mover >= 0:
                for k in range(6):
                    motion[6 * mover + k] = 0.0
    for i in range(count):
        push = impulse[i]
        if push == 0.0:
            continue
        if dense:
            for k in range(len(motion)):
                motion[k] += whole[i, k] * push
            continue
        for side in range(2):
            mover = sides[i, side]
            if mover >= 0:
                for k in range(6):
                    motion[6 * mover + k] += rows[i, 6 * side + k] * push


@inner
def _products(
    rows: np.ndarray, sides: np.ndarray, whole: np.ndarray, members: np.ndarray, n: int, i: int, products: np.ndarray
) -> None:
    """Write g_i g_j for the first n members into row n of `products`, and g_i g_i after them."""
    dense = len(whole) > 0
    for p in range(n + 1):
        j = members[p] if p < n else i
        total = 0.0
        if dense:
            for k in range(whole.shape[1]):
                total += whole[i, k] * whole[j, k]
        else:
            for a in range(2):
                for b in range(2):
                    if sides[i, a] >= 0 and sides[i, a] == sides[j, b]:
                        for k in range(6):
                            total += rows[i, 6 * a + k] * rows[j, 6 * b + k]
        products[n, p] = total


@inner
def _hold(
    rows: np.ndarray,
    sides: np.ndarray,
    whole: np.ndarray,
    compliance: np.ndarray,
    state: np.ndarray,
    held: ActiveSet,
    i: int,
) -> bool:
    """Hold a row; False, with its products in place, where it depends on those held."""
    n = held.used[0]
    _products(rows, sides, whole, held.members, n, i, held.matrix)
    held.matrix[n, n] += compliance[i]
    if not append(held, i):
        return False
    state[i] = HELD
    return True


@inner
def _release(work: MotionWork, place: int) -> None:
    i = work.held.members[place]
    work.impulse[i] = 0.0
    work.state[i] = RELEASED
    remove(work.held, place)


@inner
def _settle(work: MotionWork) -> float:
    """Go to where the rows held are equations, letting go those that would pull; returns the dual objective there."""
    held = work.held
    target = work.target
    while True:
        n = held.used[0]
        for p in range(n):
            target[p] = work.bound[held.members[p]]
        solve_factored(held.factor, n, target)
        step = 1.0
        at = -1
        for p in range(n):
            if target[p] <= 0.0:
                now = work.impulse[held.members[p]]
                ratio = now / (now - target[p]) if now > 0.0 else 0.0
                if at < 0 or ratio < step:
                    step = ratio
                    at = p
        if at < 0:
            break
        for p in range(n):
            i = held.members[p]
            work.impulse[i] = max(0.0, work.impulse[i] + step * (target[p] - work.impulse[i]))
        _release(work, at)
    objective = 0.0
    for p in range(n):
        i = held.members[p]
        work.impulse[i] = target[p]
        objective += 0.5 * work.bound[i] * target[p]
    return objective


@inner
def _refine(work: MotionWork) -> bool:
    """Correct the impulses held by what their rows lack at z, which knows it better than their matrix does.

    False, and nothing changed, where one would pull.
    """
    held = work.held
    n = held.used[0]
    for p in range(n):
        work.target[p] = work.lacking[held.members[p]]
    solve_factored(held.factor, n, work.target)
    for p in range(n):
        if work.impulse[held.members[p]] + work.target[p] < 0.0:
            return False
    for p in range(n):
        work.impulse[held.members[p]] += work.target[p]
    return n > 0


@inner
def _exchange(work: MotionWork, i: int) -> bool:
    """Hold a row that depends on those held in place of one of them; False where none can give way.

    Its products are still in place. Impulses go along the dependence, which moves nothing, until one comes to 0.
    """
    held = work.held
    n = held.used[0]
    share = work.target
    for p in range(n):
        share[p] = held.matrix[n, p]
    solve_factored(held.factor, n, share)
    least = np.inf
    at = -1
    for p in range(n):
        j = held.members[p]
        # 1 / size is the length of a row: shares are compared as those of rows of one length.
        if share[p] * work.size[i] > GIVES_WAY * work.size[j]:
            ratio = work.impulse[j] / share[p]
            if ratio < least:
                least = ratio
                at = p
    if at < 0:
        return False
    for p in range(n):
        j = held.members[p]
        work.impulse[j] = max(0.0, work.impulse[j] - least * share[p])
    _release(work, at)
    if not _hold(work.rows, work.sides, work.whole, work.compliance, work.state, held, i):
        return False
    work.impulse[i] = least
    return True


@inner
def _review(work: MotionWork, count: int, progress: bool) -> None:
    """After a pass: with progress every row may be tried again, without it those let go stay aside."""
    for i in range(count):
        if work.state[i] == RELEASED or (progress and work.state[i] == ASIDE):
            work.state[i] = FREE if progress else ASIDE


@inner
def _begin(work: MotionWork, count: int) -> float:
    """Hold the rows that the warm start pushes, as far as they do not depend on one another."""
    rows, sides, whole, compliance, state, held = (
        work.rows,
        work.sides,
        work.whole,
        work.compliance,
        work.state,
        work.held,
    )
    for i in range(count):
        if work.impulse[i] > 0.0 and not _hold(rows, sides, whole, compliance, state, held, i):
            work.impulse[i] = 0.0
    objective = _settle(work)
    _review(work, count, True)
    return objective


@inner
def _scales(bound: np.ndarray, size: np.ndarray, count: int) -> tuple[float, float]:
    """Return 1 / mean square of the rows, and the distance of the free motion from the row that it violates most."""
    total = 0.0
    reach = 0.0
    for i in range(count):
        if size[i] > 0.0:
            total += 1.0 / (size[i] * size[i])
            reach = max(reach, bound[i] * size[i])
    return (count / total if total > 0.0 else 1.0), reach


@inner
def _look(
    lacking: np.ndarray,
    bound: np.ndarray,
    size: np.ndarray,
    impulse: np.ndarray,
    state: np.ndarray,
    count: int,
    rho: float,
    limit: float,
) -> tuple[float, int, int]:
    """Return the residual, the free row that is violated most (-1: none by more than `limit`), how many are aside."""
    error = 0.0
    impulses = 0.0
    bounds = 0.0
    aside = 0
    worst = limit
    row = -1
    for i in range(count):
        off = min(impulse[i], -rho * lacking[i])
        error += off * off
        impulses += impulse[i] * impulse[i]
        bounds += bound[i] * bound[i]
        if state[i] == HELD or lacking[i] <= 0.0:
            continue
        if size[i] == 0.0 or state[i] == ASIDE:
            aside += size[i] == 0.0 or lacking[i] * size[i] > limit
        elif lacking[i] * size[i] > worst:
            worst = lacking[i] * size[i]
            row = i
    most = max(impulses, rho * rho * bounds)
    return (math.sqrt(error / most) if most > 0.0 else 0.0), row, aside


@kernel
def project(work: MotionWork, count: int, passes: int, tolerance: float) -> Projection:
    """Find the impulses of the first `count` rows loaded, and z, in at most so many passes over the rows.

    tolerance: see ROUNDING, which is the least. Impulses are never below 0; where the passes do not suffice they are
    the best met.
    """
    rows, sides, whole, motion = work.rows, work.sides, work.whole, work.motion
    impulse, compliance, state = work.impulse, work.compliance, work.state
    rho, reach = _scales(work.bound, work.size, count)
    tolerance = max(tolerance, ROUNDING)
    for i in range(count):
        work.best[i] = work.impulse[i]
    top = _begin(work, count)
    least = np.inf
    used = 0
    refined = False
    while True:
        _motion(rows, sides, whole, impulse, count, motion)
        _lacks(rows, sides, whole, motion, work.bound, compliance, impulse, count, work.lacking)
        limit = tolerance * max(math.sqrt(2.0 * max(0.0, top)), reach)
        error, row, aside = _look(work.lacking, work.bound, work.size, impulse, state, count, rho, limit)
        if error < least:
            least = error
            for i in range(count):
                work.best[i] = work.impulse[i]
        if row < 0 or used >= passes:
            if refined or not _refine(work):
                break
            refined = True
            continue
        used += 1
        refined = False
        if not (_hold(rows, sides, whole, compliance, state, work.held, row) or _exchange(work, row)):
            state[row] = ASIDE
        objective = _settle(work)
        _review(work, count, objective > top)
        top = max(top, objective)
    if error > least:
        for i in range(count):
            impulse[i] = work.best[i]
        _motion(rows, sides, whole, impulse, count, motion)
    return Projection(used, least, aside)


@kernel
def add_motion(movers: np.ndarray, count: int, work: MotionWork) -> None:
    """Add the change found, L z, to the velocities of the first `count` movers."""
    for m in range(count):
        velocity = movers[m].velocity
        root = work.roots[m]
        for k in range(6):
            for p in range(k + 1):
                velocity[k] += root[k, p] * work.motion[6 * m + p]


@kernel
def project_rows(
    movers: np.ndarray, mover_count: int, rows: np.ndarray, count: int, work: MotionWork, passes: int, tolerance: float
) -> Projection:
    """Find the impulses of a table of ROW with its first `count` rows; see `project`. `add_motion` moves the movers."""
    prepare(movers, mover_count, work)
    for k in range(6 * mover_count):
        work.motion[k] = 0.0
    kinetic, sides, whole, roots, size = work.rows, work.sides, work.whole, work.roots, work.size
    for i in range(count):
        row = rows[i]
        size[i] = _load_jacobian(
            kinetic, sides, whole, roots, i, row.jacobian_first, row.first, row.jacobian_second, row.second
        )
        work.bound[i] = row.bound
        work.compliance[i] = row.compliance
        work.impulse[i] = row.impulse
    _open(work, count)
    answer = project(work, count, passes, tolerance)
    for i in range(count):
        rows[i].impulse = work.impulse[i]
    return answer


@kernel
def solve(problem: ContactProblem, first: int, last: int, settings: np.void, work: MotionWork, report: np.void) -> None:
    """Solve the normal rows of contacts first..last-1, friction left out; a unit of work is one pass over the rows.

    Contacts of which nothing that moves is known, as in a problem given by its matrix, keep their warm start: motion
    space has no room for them, and the residual says so.
    """
    count = last - first
    normal_rows.start(problem, first, last, work.kept, report)
    if report.start_residual <= settings.tolerance:
        normal_rows.finish(problem, first, last, settings, work.kept, work.kept, 0, report)
        return
    prepare(problem.movers, problem.size[0].movers, work)
    rows, sides, whole, roots, size = work.rows, work.sides, work.whole, work.roots, work.size
    for i in range(count):
        row = problem.equations[first + i]
        size[i] = _load_jacobian(
            rows, sides, whole, roots, i, row.jacobian_first[0], row.first, row.jacobian_second[0], row.second
        )
        work.bound[i] = -row.free[0]
        work.compliance[i] = row.compliance[0]
        work.impulse[i] = row.impulse[0]
    _open(work, count)
    answer = project(work, count, settings.sweeps, 0.0)
    normal_rows.finish(problem, first, last, settings, work.kept, work.impulse, answer.passes, report)
