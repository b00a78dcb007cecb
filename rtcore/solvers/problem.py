"""The contact problem that every solver of this folder is given, and how good an answer to it is.

Relative velocities u and impulses r of all contacts, three rows each (normal first): u = W r + q with the Delassus
operator W = J M^-1 J^T + C. Coulomb's law in de Saxce's form: r in the cone K = {|r_t| <= mu r_n}, u + mu |u_t| n in
the dual cone, both orthogonal.
Source: Acary and Brogliato 2008; natural-map residual as in Siconos (Acary, Brémond and Huber 2018).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.kernels import inner, kernel
from rtcore.tables import CONTACT_EQUATION, DELASSUS_BLOCK, MOVER, PROBLEM_SIZE


@by_reference
class ContactProblem(NamedTuple):
    """Tables of one contact problem; rows in use are counted in `size`."""

    size: np.ndarray
    """(1,) PROBLEM_SIZE."""
    movers: np.ndarray
    """(max_movers,) MOVER."""
    equations: np.ndarray
    """(max_contacts,) CONTACT_EQUATION; those of one island follow one another."""
    blocks: np.ndarray
    """(max_blocks,) DELASSUS_BLOCK."""
    links: np.ndarray
    """(max_movers + 2 max_contacts,) work memory of `assemble`: lists of the contacts of each mover."""


def make_problem(movers: int, contacts: int, blocks: int) -> ContactProblem:
    """Make the tables of a problem of at most so many movers, contacts and blocks; ValueError for negative numbers."""
    if min(movers, contacts, blocks) < 0:
        raise ValueError("a contact problem cannot have fewer than no movers, contacts or blocks")
    equations = np.zeros(contacts, CONTACT_EQUATION)
    equations["parent"] = -1
    return ContactProblem(
        size=np.zeros(1, PROBLEM_SIZE),
        movers=np.zeros(movers, MOVER),
        equations=equations,
        blocks=np.zeros(blocks, DELASSUS_BLOCK),
        links=np.zeros(movers + 2 * contacts, np.int32),
    )


def load_matrix(matrix: np.ndarray, free: np.ndarray, friction: np.ndarray) -> ContactProblem:
    """Make a problem without movers from a Delassus operator as a matrix.

    matrix: (3n, 3n) W, of which the symmetric part is taken; free: (3n,) q; friction: (n,) mu; rows normal first.
    Blocks that are zero throughout are left out, those of the diagonal excepted. ValueError for shapes that do not fit.
    """
    count = len(friction)
    if matrix.shape != (3 * count, 3 * count) or free.shape != (3 * count,):
        raise ValueError(f"{count} contacts need W of {3 * count} rows, not {matrix.shape}, and as many q")
    square = (0.5 * (matrix + matrix.T)).reshape(count, 3, count, 3).transpose(0, 2, 1, 3)
    filled = np.any(square != 0.0, axis=(2, 3)) | np.eye(count, dtype=bool)
    rows, columns = np.nonzero(filled)
    problem = make_problem(0, count, len(rows))
    problem.size["contacts"] = count
    problem.size["blocks"] = len(rows)
    problem.blocks["values"] = square[rows, columns]
    problem.blocks["column"] = columns
    equations = problem.equations
    equations["free"] = free.reshape(count, 3)
    equations["friction"] = friction
    equations["first"] = -1
    equations["second"] = -1
    equations["block_first"] = np.searchsorted(rows, np.arange(count))
    equations["block_count"] = filled.sum(axis=1)
    equations["diagonal"] = np.flatnonzero(rows == columns)
    return problem


def delassus(problem: ContactProblem) -> np.ndarray:
    """The Delassus operator of all contacts in use, (3n, 3n), from the blocks."""
    count = int(problem.size["contacts"][0])
    matrix = np.zeros((count, 3, count, 3))
    for i, equation in enumerate(problem.equations[:count]):
        start = equation["block_first"]
        for block in problem.blocks[start : start + equation["block_count"]]:
            matrix[i, :, block["column"], :] = block["values"]
    return matrix.reshape(3 * count, 3 * count)


@inner
def _link(problem: ContactProblem) -> None:
    """List the contacts of each mover in rising order.

    An entry is twice the contact, plus 1 where the mover is its second; -1 ends a list. The heads of the lists come
    first in the links, then what follows each entry.
    """
    links = problem.links
    heads = len(problem.movers)
    for m in range(problem.size[0].movers):
        links[m] = -1
    for i in range(problem.size[0].contacts - 1, -1, -1):
        equation = problem.equations[i]
        if equation.first >= 0:
            links[heads + 2 * i] = links[equation.first]
            links[equation.first] = 2 * i
        if equation.second >= 0:
            links[heads + 2 * i + 1] = links[equation.second]
            links[equation.second] = 2 * i + 1


@inner
def _heads(problem: ContactProblem, i: int) -> tuple[int, int]:
    """The first entries of the lists of both movers of contact i."""
    equation = problem.equations[i]
    first = problem.links[equation.first] if equation.first >= 0 else -1
    second = problem.links[equation.second] if equation.second >= 0 else -1
    return first, second


@inner
def _lower(a: int, b: int, end: int) -> int:
    """The lower of the contacts of two entries; `end` where there is neither."""
    first = end if a < 0 else a >> 1
    second = end if b < 0 else b >> 1
    return min(first, second)


@inner
def _layout(problem: ContactProblem) -> None:
    """Give each contact its row of blocks; where there is no room for all, as many contacts as fit, from the first."""
    size = problem.size[0]
    equations = problem.equations
    heads = len(problem.movers)
    links = problem.links
    size.incomplete = 0
    total = 0
    count = size.contacts
    for i in range(size.contacts):
        a, b = _heads(problem, i)
        below = 0
        j = _lower(a, b, i)
        while j < i:
            below += 1
            if a >= 0 and a >> 1 == j:
                a = links[heads + a]
            if b >= 0 and b >> 1 == j:
                b = links[heads + b]
            j = _lower(a, b, i)
        total += 2 * below + 1
        if total > len(problem.blocks):
            total -= 2 * below + 1
            count = i
            size.incomplete = 1
            break
        equations[i].block_count = below + 1
        a, b = _heads(problem, i)
        j = _lower(a, b, i)
        while j < i:
            equations[j].block_count += 1
            if a >= 0 and a >> 1 == j:
                a = links[heads + a]
            if b >= 0 and b >> 1 == j:
                b = links[heads + b]
            j = _lower(a, b, i)
    size.contacts = count
    size.blocks = total
    start = 0
    for i in range(count):
        equations[i].block_first = start
        start += equations[i].block_count
        equations[i].block_count = 0


@inner
def _couple(values: np.ndarray, row: np.ndarray, column: np.ndarray, mover: Any) -> None:
    """Add J_i M^-1 J_j^T of one mover to a (3, 3) block; row, column: the (3, 6) Jacobians of both contacts."""
    mass = mover.inverse_mass
    inverse = mover.inverse_inertia
    for m in range(3):
        x = mass * column[m, 0]
        y = mass * column[m, 1]
        z = mass * column[m, 2]
        a = column[m, 3]
        b = column[m, 4]
        c = column[m, 5]
        u = inverse[0, 0] * a + inverse[0, 1] * b + inverse[0, 2] * c
        v = inverse[1, 0] * a + inverse[1, 1] * b + inverse[1, 2] * c
        w = inverse[2, 0] * a + inverse[2, 1] * b + inverse[2, 2] * c
        first = row[0, 0] * x + row[0, 1] * y + row[0, 2] * z + row[0, 3] * u + row[0, 4] * v + row[0, 5] * w
        second = row[1, 0] * x + row[1, 1] * y + row[1, 2] * z + row[1, 3] * u + row[1, 4] * v + row[1, 5] * w
        third = row[2, 0] * x + row[2, 1] * y + row[2, 2] * z + row[2, 3] * u + row[2, 4] * v + row[2, 5] * w
        values[0, m] += first
        values[1, m] += second
        values[2, m] += third


@inner
def _couple_side(values: np.ndarray, row: np.ndarray, equation: Any, entry: int, mover: Any) -> None:
    """Add what one mover couples; entry: tells which Jacobian of the other contact it is that belongs to the mover."""
    if entry & 1:
        _couple(values, row, equation.jacobian_second, mover)
    else:
        _couple(values, row, equation.jacobian_first, mover)


@kernel
def assemble(problem: ContactProblem) -> None:
    """Write the blocks of the Delassus operator W = J M^-1 J^T + C of all contacts, each row in the order of columns.

    W is symmetric to the bit. Where the table has no room for all blocks the last contacts are left out, which can
    only weaken what the others push: size.incomplete is 1 then and size.contacts how many are left.
    """
    size = problem.size[0]
    equations = problem.equations
    blocks = problem.blocks
    links = problem.links
    heads = len(problem.movers)
    _link(problem)
    _layout(problem)
    for i in range(size.contacts):
        equation = equations[i]
        a, b = _heads(problem, i)
        j = _lower(a, b, i)
        while j <= i:
            place = equation.block_first + equation.block_count
            equation.block_count += 1
            block = blocks[place]
            block.column = j
            values = block.values
            for k in range(3):
                for m in range(3):
                    values[k, m] = 0.0
            if a >= 0 and a >> 1 == j:
                _couple_side(values, equation.jacobian_first, equations[j], a, problem.movers[equation.first])
                a = links[heads + a]
            if b >= 0 and b >> 1 == j:
                _couple_side(values, equation.jacobian_second, equations[j], b, problem.movers[equation.second])
                b = links[heads + b]
            if j == i:
                equation.diagonal = place
                for k in range(3):
                    values[k, k] += equation.compliance[k]
                    for m in range(k):
                        values[m, k] = values[k, m]
                break
            other = equations[j]
            mirror = blocks[other.block_first + other.block_count]
            other.block_count += 1
            mirror.column = i
            for k in range(3):
                for m in range(3):
                    mirror.values[m, k] = values[k, m]
            j = _lower(a, b, i)


@inner
def _add_motion(target: np.ndarray, jacobian: np.ndarray, velocity: np.ndarray) -> None:
    for k in range(3):
        for m in range(6):
            target[k] += jacobian[k, m] * velocity[m]


@kernel
def free_velocity(problem: ContactProblem) -> None:
    """Add the relative velocities that the movers have, J v in m/s, to the free ones of all contacts."""
    for i in range(problem.size[0].contacts):
        equation = problem.equations[i]
        if equation.first >= 0:
            _add_motion(equation.free, equation.jacobian_first, problem.movers[equation.first].velocity)
        if equation.second >= 0:
            _add_motion(equation.free, equation.jacobian_second, problem.movers[equation.second].velocity)


@inner
def _push(mover: Any, jacobian: np.ndarray, impulse: np.ndarray) -> None:
    """Give a mover the impulse (3,), N s, of a contact whose Jacobian (3, 6) is its."""
    inverse = mover.inverse_inertia
    velocity = mover.velocity
    for m in range(3):
        velocity[m] += mover.inverse_mass * (
            jacobian[0, m] * impulse[0] + jacobian[1, m] * impulse[1] + jacobian[2, m] * impulse[2]
        )
    x = jacobian[0, 3] * impulse[0] + jacobian[1, 3] * impulse[1] + jacobian[2, 3] * impulse[2]
    y = jacobian[0, 4] * impulse[0] + jacobian[1, 4] * impulse[1] + jacobian[2, 4] * impulse[2]
    z = jacobian[0, 5] * impulse[0] + jacobian[1, 5] * impulse[1] + jacobian[2, 5] * impulse[2]
    for m in range(3):
        velocity[3 + m] += inverse[m, 0] * x + inverse[m, 1] * y + inverse[m, 2] * z


@kernel
def apply_impulses(problem: ContactProblem, first: int, last: int) -> None:
    """Add what the impulses of the contacts first .. last - 1 make of the movers' velocities, M^-1 J^T r."""
    for i in range(first, last):
        equation = problem.equations[i]
        if equation.first >= 0:
            _push(problem.movers[equation.first], equation.jacobian_first, equation.impulse)
        if equation.second >= 0:
            _push(problem.movers[equation.second], equation.jacobian_second, equation.impulse)


@kernel
def spread(equations: np.ndarray, blocks: np.ndarray, equation: Any, n: float, t1: float, t2: float) -> None:
    """Add what a change (n, t1, t2) of the impulse of an equation makes of all velocities.

    equations: CONTACT_EQUATION, blocks: DELASSUS_BLOCK of a problem; equation: one of them.
    """
    for k in range(equation.block_first, equation.block_first + equation.block_count):
        block = blocks[k]
        w = block.values
        v = equations[block.column].velocity
        v[0] += w[0, 0] * n + w[1, 0] * t1 + w[2, 0] * t2
        v[1] += w[0, 1] * n + w[1, 1] * t1 + w[2, 1] * t2
        v[2] += w[0, 2] * n + w[1, 2] * t1 + w[2, 2] * t2


@kernel
def relative_velocity(problem: ContactProblem, first: int, last: int) -> None:
    """Write the relative velocities u = W r + q, m/s, of the contacts first .. last - 1."""
    equations = problem.equations
    for i in range(first, last):
        equation = equations[i]
        x = equation.free[0]
        y = equation.free[1]
        z = equation.free[2]
        for k in range(equation.block_first, equation.block_first + equation.block_count):
            block = problem.blocks[k]
            impulse = equations[block.column].impulse
            w = block.values
            x += w[0, 0] * impulse[0] + w[0, 1] * impulse[1] + w[0, 2] * impulse[2]
            y += w[1, 0] * impulse[0] + w[1, 1] * impulse[1] + w[1, 2] * impulse[2]
            z += w[2, 0] * impulse[0] + w[2, 1] * impulse[1] + w[2, 2] * impulse[2]
        equation.velocity[0] = x
        equation.velocity[1] = y
        equation.velocity[2] = z


@kernel
def project_cone(n: float, t1: float, t2: float, mu: float) -> tuple[float, float, float]:
    """The point of the cone |t| <= mu n that is nearest to (n, t1, t2)."""
    t = math.sqrt(t1 * t1 + t2 * t2)
    if n >= 0.0 and t <= mu * n:
        return n, t1, t2
    reach = n + mu * t
    if reach <= 0.0:
        return 0.0, 0.0, 0.0
    height = reach / (1.0 + mu * mu)
    share = mu * height / t
    return height, share * t1, share * t2


@inner
def project_moments(n: float, t1: float, t2: float, torsional: float, rolling: float) -> tuple[float, float, float]:
    """The nearest point with |n| <= torsional, |t| <= rolling."""
    n = min(max(n, -torsional), torsional)
    t = math.sqrt(t1 * t1 + t2 * t2)
    if t <= rolling:
        return n, t1, t2
    share = rolling / t
    return n, share * t1, share * t2


@inner
def lever_square(contact: np.ndarray, moments: np.ndarray) -> float:
    """The square of the length by which moments compare with their contact's forces, m^2; 0: nothing turns.

    contact, moments: their own blocks (3, 3) of W, whose diagonals' ratio it is: over this length a moment moves things
    as much as a force, and an angular velocity counts as much as a velocity (the radius, or nearly so, for a ball).
    """
    own = moments[0, 0] + moments[1, 1] + moments[2, 2]
    return (contact[0, 0] + contact[1, 1] + contact[2, 2]) / own if own > 0.0 else 0.0


@kernel
def scale(problem: ContactProblem, first: int, last: int) -> float:
    """1 / mean of the diagonal of W over the contacts first .. last - 1, in kg; 1 where there is none.

    Rows of moments do not count: measured by `lever_square`, they are as their contacts.
    """
    total = 0.0
    contacts = 0
    for i in range(first, last):
        if problem.equations[i].parent < 0:
            values = problem.blocks[problem.equations[i].diagonal].values
            total += values[0, 0] + values[1, 1] + values[2, 2]
            contacts += 1
    return 3.0 * contacts / total if total > 0.0 else 1.0


@kernel
def natural_map(problem: ContactProblem, first: int, last: int, rho: float, friction: float, lift: float) -> float:
    """As `residual`, of a law with mu times `friction`, and with de Saxce's term times `lift`.

    1, 1: Coulomb's law; 1, 0: its convex relaxation; 0, 0: friction left out. There must be no rows of moments.
    """
    error = 0.0
    free = 0.0
    impulses = 0.0
    velocities = 0.0
    for i in range(first, last):
        equation = problem.equations[i]
        q = equation.free
        r = equation.impulse
        u = equation.velocity
        mu = friction * equation.friction
        rise = lift * mu * math.sqrt(u[1] * u[1] + u[2] * u[2])
        n, t1, t2 = project_cone(r[0] - rho * (u[0] + rise), r[1] - rho * u[1], r[2] - rho * u[2], mu)
        error += (r[0] - n) ** 2 + (r[1] - t1) ** 2 + (r[2] - t2) ** 2
        free += q[0] * q[0] + q[1] * q[1] + q[2] * q[2]
        impulses += r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
        velocities += u[0] * u[0] + u[1] * u[1] + u[2] * u[2]
    most = max(impulses, rho * rho * max(free, velocities))
    if not error + most < math.inf:
        return math.inf
    return math.sqrt(error / most) if most > 0.0 else 0.0


@inner
def has_moments(problem: ContactProblem, first: int, last: int) -> bool:
    """Are there rows of moments among first .. last - 1?"""
    found = False
    for i in range(first, last):
        found |= problem.equations[i].parent >= 0
    return found


@inner
def _residual_with_moments(problem: ContactProblem, first: int, last: int, rho: float) -> float:
    """As `residual`, where there are rows of moments."""
    error = 0.0
    free = 0.0
    impulses = 0.0
    velocities = 0.0
    for i in range(first, last):
        equation = problem.equations[i]
        q = equation.free
        r = equation.impulse
        u = equation.velocity
        square = 1.0
        if equation.parent < 0:
            mu = equation.friction
            rise = mu * math.sqrt(u[1] * u[1] + u[2] * u[2])
            n, t1, t2 = project_cone(r[0] - rho * (u[0] + rise), r[1] - rho * u[1], r[2] - rho * u[2], mu)
        else:
            contact = problem.equations[equation.parent]
            square = lever_square(problem.blocks[contact.diagonal].values, problem.blocks[equation.diagonal].values)
            if not square > 0.0 or max(equation.friction, equation.rolling) <= 0.0:
                continue
            limit = max(contact.impulse[0], 0.0)
            step = rho * square
            n, t1, t2 = project_moments(
                r[0] - step * u[0],
                r[1] - step * u[1],
                r[2] - step * u[2],
                limit * equation.friction,
                limit * equation.rolling,
            )
        error += ((r[0] - n) ** 2 + (r[1] - t1) ** 2 + (r[2] - t2) ** 2) / square
        free += square * (q[0] * q[0] + q[1] * q[1] + q[2] * q[2])
        impulses += (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]) / square
        velocities += square * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2])
    most = max(impulses, rho * rho * max(free, velocities))
    if not error + most < math.inf:
        return math.inf
    return math.sqrt(error / most) if most > 0.0 else 0.0


@kernel
def residual(problem: ContactProblem, first: int, last: int, rho: float) -> float:
    """How far the impulses and velocities that the contacts first .. last - 1 hold are from Coulomb's law.

    The norm of r - P_K(r - rho (u + mu |u_t| n)) by the largest of those of rho q, r and rho u; rho in kg, 1 / mean of
    the diagonal of W (see `scale`) where the units shall agree, 1 as in Siconos. The velocities must belong to the
    impulses, see `relative_velocity`. 0 for no contacts, and where nothing pushes or moves; infinite where numbers are
    not finite or their squares too large. Moments are projected on what the present normal impulse of their contact
    allows; they count as forces, and angular velocities as velocities, at the length whose square `lever_square` is.
    Rows that allow none do not count.
    """
    if has_moments(problem, first, last):
        return _residual_with_moments(problem, first, last, rho)
    return natural_map(problem, first, last, rho, 1.0, 1.0)
