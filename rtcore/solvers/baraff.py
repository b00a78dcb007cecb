"""Contacts with friction in contact space, row after row by Dantzig's pivots, as Baraff: the reference of the family.

Each row is driven to rest by its own impulse while all rows dealt with before keep their law: a normal pushes or comes
apart, a tangent holds within |t| <= mu n or slides at that bound. On the way every event (a push comes to 0, a tangent
to its bound, a velocity to 0) changes what is held. Friction makes the matrix of what is held unsymmetric and, where
the bounds are reached, possibly not definite: termination is not proven, and for sliding with strong coupling there may
be nothing to find. Then, and when pivots run out, the best answer met stays, which may be the warm start.

Bounds for each tangent by itself are a square, not Coulomb's disc. So passes follow. A contact that slides, or that
holds outside the disc, slides against its friction, u = -alpha t: its tangents are held without bounds, softer by
alpha, and secants of log |t| / (mu n) by log alpha take them to the disc. What the passes settle on is Coulomb's law.
(Friction in a direction given beforehand, as Baraff's dynamic friction, does not settle where contacts slide slowly.)
One pivot costs a dense factorisation: for few contacts.
Source: Baraff 1994, sections 4 and 5; the passes are own.
"""

import math
from typing import NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.solvers import best
from rtcore.solvers.problem import ContactProblem, relative_velocity, residual

PASSES = 100
"""Most passes."""
VISITS = 3
"""Times that a pass comes by a row that is not, or no longer, dealt with."""
MOST = 30
"""Most pivots of a pass, by rows: more is a cycle."""
DEPENDENT = 1e-11
"""Share of its largest element below which a pivot of the elimination is rounding: the row depends on those held."""
ROUNDING = 1e-12
"""Share of what impulses do to a row that counts as no velocity, and as no change of it."""
SOFTEST = -0.05
STEEPEST = -3.0
"""Slopes of the secants are kept between these; -1 is that of a fast slide without coupling."""
LITTLE = 1e-3
"""Least alpha to begin with, as a share of a row's diagonal element."""
STOPPED = 1e-11
"""Alpha, as a share of a row's diagonal element, below which a contact is tried as one that holds."""
IDLE, HELD, APART, BOUND = range(4)
"""IDLE: not dealt with, or at rest by itself; APART: no impulse; BOUND: at +-mu n."""


@by_reference
class BaraffWork(NamedTuple):
    """Work memory of a solve; rows are three per contact, normal first."""

    matrix: np.ndarray
    """(rows, rows) W, 1/kg."""
    diagonal: np.ndarray
    """(rows,) of W; that of the matrix has alphas added."""
    free: np.ndarray
    """(rows,) velocities without impulses, m/s."""
    vectors: np.ndarray
    """(6, rows) impulse, velocity, change of both per unit of the one driven, ratio t / (mu n) at a bound, size of
    what makes the change of a velocity."""
    system: np.ndarray
    """(rows, rows + 1) equations of what is held, right side last."""
    states: np.ndarray
    """(2, rows) what each row does; the rows held."""
    friction: np.ndarray
    """(contacts,) mu."""
    slide: np.ndarray
    """(contacts, 3) alpha, 1/kg, 0 for one that holds; log alpha and log |t| / (mu n) of the pass before."""
    best: np.ndarray
    """(contacts, 3) impulses of the best answer."""


def make_work(problem: ContactProblem) -> BaraffWork:
    """Make the work memory for a problem's tables."""
    contacts = len(problem.equations)
    rows = 3 * contacts
    return BaraffWork(
        matrix=np.zeros((rows, rows)),
        diagonal=np.zeros(rows),
        free=np.zeros(rows),
        vectors=np.zeros((6, rows)),
        system=np.zeros((rows, rows + 1)),
        states=np.zeros((2, rows), np.int32),
        friction=np.zeros(contacts),
        slide=np.zeros((contacts, 3)),
        best=np.zeros((contacts, 3)),
    )


@inner
def _column(work: BaraffWork, row: int, j: int, driven: int) -> float:
    """What a unit of impulse j does to a row, friction that is bound to a normal j included."""
    value = work.matrix[row, j]
    if j % 3 == 0:
        for t in (j + 1, j + 2):
            if t != driven and work.states[0, t] == BOUND:
                value += work.friction[j // 3] * work.vectors[4, t] * work.matrix[row, t]
    return value


@inner
def _eliminate(work: BaraffWork, n: int) -> bool:
    """Solve the equations of what is held in place, with pivoting; False where they are singular."""
    a = work.system
    for p in range(n):
        largest = p
        scale = 0.0
        for i in range(p, n):
            if abs(a[i, p]) > abs(a[largest, p]):
                largest = i
        for i in range(n):
            scale = max(scale, abs(work.matrix[work.states[1, p], work.states[1, i]]))
        if not abs(a[largest, p]) > DEPENDENT * scale:
            return False
        if largest != p:
            for k in range(p, n + 1):
                a[p, k], a[largest, k] = a[largest, k], a[p, k]
        for i in range(p + 1, n):
            factor = a[i, p] / a[p, p]
            if factor != 0.0:
                for k in range(p, n + 1):
                    a[i, k] -= factor * a[p, k]
    for p in range(n - 1, -1, -1):
        for k in range(p + 1, n):
            a[p, n] -= a[p, k] * a[k, n]
        a[p, n] /= a[p, p]
    return True


@inner
def _direct(work: BaraffWork, rows: int, d: int, sign: float) -> bool:
    """Find how impulses and velocities change while impulse d changes by `sign`; False: what is held is singular."""
    state = work.states[0]
    held = work.states[1]
    n = 0
    for i in range(rows):
        if state[i] == HELD and i != d:
            held[n] = i
            n += 1
    for p in range(n):
        for k in range(n):
            work.system[p, k] = _column(work, held[p], held[k], d)
        work.system[p, n] = -sign * _column(work, held[p], d, d)
    if not _eliminate(work, n):
        return False
    change = work.vectors[2]
    for i in range(rows):
        change[i] = 0.0
    for p in range(n):
        change[held[p]] = work.system[p, n]
    change[d] = sign
    for i in range(rows):
        if state[i] == BOUND and i != d:
            change[i] = work.friction[i // 3] * work.vectors[4, i] * change[i - i % 3]
    for i in range(rows):
        total = 0.0
        size = 0.0
        for k in range(rows):
            part = work.matrix[i, k] * change[k]
            total += part
            size += abs(part)
        work.vectors[3, i] = total
        work.vectors[5, i] = size
    return True


@inner
def _joins(work: BaraffWork, rows: int, i: int) -> bool:
    """Hold a row that is at rest, unless it depends on those held: then it rests with them."""
    before = work.states[0, i]
    work.states[0, i] = HELD
    n = 0
    for k in range(rows):
        if work.states[0, k] == HELD:
            work.states[1, n] = k
            n += 1
    for p in range(n):
        for k in range(n):
            work.system[p, k] = _column(work, work.states[1, p], work.states[1, k], -1)
        work.system[p, n] = 0.0
    if _eliminate(work, n):
        return True
    work.states[0, i] = before
    return False


@inner
def _update(work: BaraffWork, rows: int) -> None:
    """Make the friction at bounds that of its normal, and velocities those of the impulses."""
    impulse = work.vectors[0]
    for i in range(rows):
        if work.states[0, i] == BOUND:
            impulse[i] = work.friction[i // 3] * work.vectors[4, i] * impulse[i - i % 3]
    for i in range(rows):
        total = work.free[i]
        for k in range(rows):
            total += work.matrix[i, k] * impulse[k]
        work.vectors[1, i] = total if work.states[0, i] != HELD else 0.0


@inner
def _bind(work: BaraffWork, t: int, ratio: float) -> None:
    work.states[0, t] = BOUND
    work.vectors[4, t] = ratio


@inner
def _press(work: BaraffWork, rows: int, i: int) -> None:
    """A normal that was apart pushes again: its tangents are at their bounds, or have to be driven again."""
    if not _joins(work, rows, i):
        return
    for t in (i + 1, i + 2):
        if work.states[0, t] == APART:
            if work.slide[i // 3, 0] > 0.0:
                work.states[0, t] = IDLE
            else:
                _bind(work, t, -1.0 if work.vectors[1, t] > 0.0 else 1.0)


@inner
def _pivot(work: BaraffWork, rows: int, d: int, sign: float, small: float) -> int:
    """Drive row d up to the next event and do what it asks. 0: go on, 1: the row is dealt with, 2: no way."""
    if not _direct(work, rows, d, sign):
        return 2
    state = work.states[0]
    impulse = work.vectors[0]
    velocity = work.vectors[1]
    change = work.vectors[2]
    rate = work.vectors[3]
    step = math.inf
    event = -1
    ratio = 0.0
    if rate[d] * velocity[d] < 0.0 and abs(rate[d]) > ROUNDING * work.vectors[5, d]:
        step = -velocity[d] / rate[d]
        event = d
    for i in range(rows):
        normal = i - i % 3
        mu = work.friction[i // 3]
        changes = abs(rate[i]) > ROUNDING * work.vectors[5, i]
        until = math.inf
        to = 0.0
        if i % 3 == 0:
            if state[i] == HELD and change[i] < 0.0:
                until = max(0.0, -impulse[i] / change[i])
            elif state[i] == APART and changes and rate[i] < 0.0:
                until = max(0.0, -velocity[i] / rate[i])
        elif (i == d or state[i] == HELD) and not work.slide[i // 3, 0] > 0.0:
            for s in (-1.0, 1.0):
                # s t grows to mu n
                closing = s * change[i] - mu * change[normal]
                if closing > 0.0:
                    left = max(0.0, (mu * impulse[normal] - s * impulse[i]) / closing)
                    if left < until:
                        until = left
                        to = s
        elif state[i] == BOUND and changes and work.vectors[4, i] * rate[i] > 0.0:
            until = max(0.0, -velocity[i] / rate[i])
        if until < step:
            step = until
            event = i
            ratio = to
    if event < 0:
        return 2
    for i in range(rows):
        impulse[i] += step * change[i]
        velocity[i] += step * rate[i]
    if event % 3 == 0 and event != d and state[event] == HELD:
        impulse[event] = 0.0
        state[event] = APART
        for t in (event + 1, event + 2):
            state[t] = APART
            impulse[t] = 0.0
        if d // 3 == event // 3:
            impulse[d] = 0.0
            state[d] = APART
            return 1
    elif event % 3 == 0 and event != d:
        velocity[event] = 0.0
        _press(work, rows, event)
    elif ratio != 0.0:
        _bind(work, event, ratio)
        if event == d:
            return 1
    else:
        velocity[event] = 0.0
        _joins(work, rows, event)
        if event == d:
            return 1
    if abs(velocity[d]) <= small:
        return 1
    return 0


@inner
def _pass(work: BaraffWork, rows: int, pivots: int) -> int:
    """Solve with the alphas of the contacts; returns the pivots used, negative (less 1) where there was no way."""
    state = work.states[0]
    impulse = work.vectors[0]
    velocity = work.vectors[1]
    speed = 0.0
    for i in range(rows):
        impulse[i] = 0.0
        speed = max(speed, abs(work.free[i]))
        state[i] = IDLE
    small = ROUNDING * speed
    _update(work, rows)
    used = 0
    most = min(pivots, MOST * rows)
    for visit in range(VISITS * rows):
        d = visit % rows
        if state[d] != IDLE:
            continue
        if d % 3 == 0:
            if velocity[d] >= -small:
                state[d] = APART
                continue
        elif state[d - d % 3] == APART:
            state[d] = APART
            continue
        elif not work.friction[d // 3] > 0.0:
            _bind(work, d, 0.0)
            continue
        outcome = 0
        if abs(velocity[d]) <= small:
            _joins(work, rows, d)
            outcome = 1
        while outcome == 0:
            if used >= most:
                return used
            outcome = _pivot(work, rows, d, -1.0 if velocity[d] > 0.0 else 1.0, small)
            used += 1
            if outcome == 2:
                return -used - 1
            _update(work, rows)
    return used


@inner
def _give(problem: ContactProblem, first: int, last: int, work: BaraffWork) -> None:
    """Write the impulses found, tangents shortened to the disc, and their velocities."""
    for i in range(first, last):
        row = 3 * (i - first)
        r = problem.equations[i].impulse
        r[0] = max(0.0, work.vectors[0, row])
        t1 = work.vectors[0, row + 1]
        t2 = work.vectors[0, row + 2]
        size = math.sqrt(t1 * t1 + t2 * t2)
        limit = work.friction[i - first] * r[0]
        share = limit / size if size > limit else 1.0
        r[1] = share * t1
        r[2] = share * t2
    relative_velocity(problem, first, last)


@inner
def _soften(work: BaraffWork, contacts: int) -> bool:
    """Choose what slides, and its alphas for the next pass; is there nothing to change?"""
    settled = True
    for c in range(contacts):
        n = 3 * c
        t1 = work.vectors[0, n + 1]
        t2 = work.vectors[0, n + 2]
        size = math.sqrt(t1 * t1 + t2 * t2)
        limit = work.friction[c] * work.vectors[0, n]
        alpha = work.slide[c, 0]
        if not (limit > 0.0 and size > 0.0):
            work.slide[c, 0] = 0.0
            continue
        own = work.diagonal[n + 1] + work.diagonal[n + 2]
        if alpha > 0.0:
            x = math.log(alpha)
            y = math.log(size / limit)
            slope = -1.0
            if work.slide[c, 1] != 0.0 and x != work.slide[c, 1]:
                slope = min(max((y - work.slide[c, 2]) / (x - work.slide[c, 1]), STEEPEST), SOFTEST)
            work.slide[c, 1] = x
            work.slide[c, 2] = y
            alpha = math.exp(x - min(max(y / slope, -5.0), 5.0))
            settled &= abs(y) <= ROUNDING
            if alpha < STOPPED * own:
                alpha = 0.0 if y < 0.0 else STOPPED * own
                settled = False
        else:
            bound = work.states[0, n + 1] == BOUND or work.states[0, n + 2] == BOUND
            if not bound and size <= limit * (1.0 + ROUNDING):
                continue
            u1 = work.vectors[1, n + 1] if work.states[0, n + 1] == BOUND else 0.0
            u2 = work.vectors[1, n + 2] if work.states[0, n + 2] == BOUND else 0.0
            alpha = max(math.sqrt(u1 * u1 + u2 * u2) / limit, LITTLE * own)
            work.slide[c, 1] = 0.0
            settled = False
        work.slide[c, 0] = alpha
    return settled


@kernel
def solve(problem: ContactProblem, first: int, last: int, settings: np.void, work: BaraffWork, report: np.void) -> None:
    """Solve contacts first..last-1, friction included; a unit of work is one pivot, a factorisation of what is held.

    The equations' impulse and velocity are those of the best answer by the natural-map residual, among the passes and
    the start, which is projected onto the cones first.
    """
    rho = best.start(problem, first, last, report)
    least = report.start_residual
    best.keep(problem, first, last, work.best)
    contacts = last - first
    rows = 3 * contacts
    for i in range(first, last):
        equation = problem.equations[i]
        work.friction[i - first] = equation.friction
        work.slide[i - first, 0] = 0.0
        for k in range(3):
            row = 3 * (i - first) + k
            work.free[row] = equation.free[k]
            work.states[0, row] = IDLE
            for j in range(rows):
                work.matrix[row, j] = 0.0
            for b in range(equation.block_first, equation.block_first + equation.block_count):
                block = problem.blocks[b]
                if first <= block.column < last:
                    for m in range(3):
                        work.matrix[row, 3 * (block.column - first) + m] = block.values[k, m]
            work.diagonal[row] = work.matrix[row, row]
    used = 0
    for _ in range(PASSES):
        if least <= settings.tolerance or used >= settings.sweeps:
            break
        for row in range(rows):
            work.matrix[row, row] = work.diagonal[row] + (work.slide[row // 3, 0] if row % 3 > 0 else 0.0)
        spent = _pass(work, rows, settings.sweeps - used)
        used += spent if spent >= 0 else -spent - 1
        _give(problem, first, last, work)
        now = residual(problem, first, last, rho)
        if now < least:
            least = now
            best.keep(problem, first, last, work.best)
        if spent < 0 or _soften(work, contacts):
            break
    best.finish(problem, first, last, settings, rho, work.best, used, report)
