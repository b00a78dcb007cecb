"""Where a point tip comes to rest among half spaces with Coulomb friction, quasi-static.

The hand pulls the tip from `start` to `goal` with a spring of unit stiffness; contact i keeps it in the half space
``n_i . (x - start) >= offset_i`` and pushes it with a displacement in its friction cone, so that
``x = goal + sum of pushes`` wherever the tip rests or slips slowly.

The tip is moved along its true quasi-static path through these half spaces, event by event:

1. restore: the shortest displacement that puts right all gaps that are too small (exact, by active sets);
2. fly: straight towards the goal until the first plane is met;
3. hold or slip: either all touching contacts stick, and the tip stays where it is to the bit, or it slips along one
   plane or along the edge of two, all contacts that push it slipping with it (it has one velocity, which is no normal
   of a plane that it stays on). Slip under kinetic friction ends at the border of the cone, or at the next plane.

All of it is in closed form, except whether static friction of several contacts together holds the tip in the general
case: there the exact-cone block Gauss-Seidel iteration decides, with bounded sweeps. What is not proven to hold slips,
and a sum of pushes found by a truncated iteration is cut to what the hand pulls: too few sweeps can only make forces
weaker.
Source: friction by cones on local half spaces after Harwin and Melder (2002); restoring step after Redon (2002),
eq. 6.2; exact-cone Gauss-Seidel as in the contact literature (Jourdan 1998).
"""

import math

import numpy as np

from rtcore.kernels import inner, kernel
from rtcore.tables import DEADBAND, DEGRADED_SOLVER

HOLD_RESIDUAL = 1e-7
"""Share of the pull that may be left unexplained by pushes when static friction is said to hold."""
BORDER = 1e-9
"""Share by which a pull may be outside a cone and still be held, so that a slip that ends on the border stays there."""
RESIDUAL_TOLERANCE = 1e-5
"""Residual above which the solve is reported as degraded, as a share of eps_safety plus the pull."""
PARALLEL = 1e-12
"""Squared sine of the angle below which two normals do not make an edge."""


@inner
def _dot(a: np.ndarray, x: float, y: float, z: float) -> float:
    return a[0] * x + a[1] * y + a[2] * z


@inner
def _allowed(report: np.void, scratch: np.void, x: float, y: float, z: float, tolerance: float) -> bool:
    """Is the displacement in all half spaces?"""
    for i in range(report.contact_count):
        if _dot(report.contacts[i].normal, x, y, z) < scratch.offset[i] - tolerance:
            return False
    return True


@inner
def _combine(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, ra: float, rb: float, rc: float
) -> tuple[float, float, float, float, float, float, float]:
    """Solve v.a = ra, v.b = rb, v.c = rc for v = l_a a + l_b b + l_c c; returns (determinant, v, l).

    The determinant of (a, b, c) is 0 when they are dependent; then the rest means nothing.
    """
    ux = b[1] * c[2] - b[2] * c[1]
    uy = b[2] * c[0] - b[0] * c[2]
    uz = b[0] * c[1] - b[1] * c[0]
    vx = c[1] * a[2] - c[2] * a[1]
    vy = c[2] * a[0] - c[0] * a[2]
    vz = c[0] * a[1] - c[1] * a[0]
    wx = a[1] * b[2] - a[2] * b[1]
    wy = a[2] * b[0] - a[0] * b[2]
    wz = a[0] * b[1] - a[1] * b[0]
    volume = a[0] * ux + a[1] * uy + a[2] * uz
    if volume * volume <= PARALLEL:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    x = (ra * ux + rb * vx + rc * wx) / volume
    y = (ra * uy + rb * vy + rc * wy) / volume
    z = (ra * uz + rb * vz + rc * wz) / volume
    return (
        volume,
        x,
        y,
        z,
        (x * ux + y * uy + z * uz) / volume,
        (x * vx + y * vy + z * vz) / volume,
        (x * wx + y * wy + z * wz) / volume,
    )


@inner
def _restore(report: np.void, scratch: np.void, tolerance: float) -> tuple[bool, float, float, float]:
    """Return whether all half spaces have a common point, and the one nearest to the origin.

    The nearest point lies on one, two or three planes and is a non-negative combination of their normals; all such
    sets are tried.
    """
    count = report.contact_count
    for i in range(count):
        a = report.contacts[i].normal
        ra = scratch.offset[i]
        if ra > 0.0 and _allowed(report, scratch, ra * a[0], ra * a[1], ra * a[2], tolerance):
            return True, ra * a[0], ra * a[1], ra * a[2]
    for i in range(count):
        a = report.contacts[i].normal
        ra = scratch.offset[i]
        for j in range(i):
            b = report.contacts[j].normal
            rb = scratch.offset[j]
            cosine = _dot(a, b[0], b[1], b[2])
            sine = 1.0 - cosine * cosine
            la = ra - cosine * rb
            lb = rb - cosine * ra
            if sine > PARALLEL and la >= 0.0 and lb >= 0.0:
                x = (la * a[0] + lb * b[0]) / sine
                y = (la * a[1] + lb * b[1]) / sine
                z = (la * a[2] + lb * b[2]) / sine
                if _allowed(report, scratch, x, y, z, tolerance):
                    return True, x, y, z
    for i in range(count):
        for j in range(i):
            for k in range(j):
                volume, x, y, z, la, lb, lc = _combine(
                    report.contacts[i].normal,
                    report.contacts[j].normal,
                    report.contacts[k].normal,
                    scratch.offset[i],
                    scratch.offset[j],
                    scratch.offset[k],
                )
                if volume != 0.0 and min(la, lb, lc) >= 0.0 and _allowed(report, scratch, x, y, z, tolerance):
                    return True, x, y, z
    return False, 0.0, 0.0, 0.0


@inner
def _clear_pushes(report: np.void) -> None:
    for i in range(report.contact_count):
        for k in range(3):
            report.contacts[i].displacement[k] = 0.0


@inner
def _set_push(report: np.void, i: int, x: float, y: float, z: float) -> None:
    push = report.contacts[i].displacement
    push[0] = x
    push[1] = y
    push[2] = z


@inner
def _brake(report: np.void, i: int, depth: float, friction: float, ux: float, uy: float, uz: float) -> None:
    """Let contact i push along its normal by `depth`, and against the unit direction u by `friction`."""
    n = report.contacts[i].normal
    _set_push(report, i, depth * n[0] - friction * ux, depth * n[1] - friction * uy, depth * n[2] - friction * uz)


@inner
def _slip(
    report: np.void, scratch: np.void, active: int, wx: float, wy: float, wz: float
) -> tuple[bool, float, float, float]:
    """Find the slip (a displacement) that the pull w causes under kinetic friction, and write its pushes.

    Returns whether there is one. Touching contacts are scratch.active[:active].
    """
    for s in range(active):
        i = scratch.active[s]
        n = report.contacts[i].normal
        depth = -_dot(n, wx, wy, wz)
        if depth < 0.0:
            continue
        tx = wx + depth * n[0]
        ty = wy + depth * n[1]
        tz = wz + depth * n[2]
        along = math.sqrt(tx * tx + ty * ty + tz * tz)
        length = along - scratch.slide[i] * depth
        if length <= 0.0:
            continue
        share = length / along
        tx *= share
        ty *= share
        tz *= share
        if _stays(report, scratch, active, tx, ty, tz, length, i, i):
            _clear_pushes(report)
            _set_push(report, i, tx - wx, ty - wy, tz - wz)
            return True, tx, ty, tz
    for s in range(active):
        i = scratch.active[s]
        for r in range(s):
            j = scratch.active[r]
            found, ux, uy, uz, along, la, lb = _edge(report, i, j, wx, wy, wz)
            length = along - scratch.slide[i] * la - scratch.slide[j] * lb
            if not found or length <= 0.0:
                continue
            if _stays(report, scratch, active, ux, uy, uz, 1.0, i, j):
                _clear_pushes(report)
                _brake(report, i, la, scratch.slide[i] * la, ux, uy, uz)
                _brake(report, j, lb, scratch.slide[j] * lb, ux, uy, uz)
                return True, length * ux, length * uy, length * uz
    return False, 0.0, 0.0, 0.0


@inner
def _stays(
    report: np.void, scratch: np.void, active: int, x: float, y: float, z: float, length: float, i: int, j: int
) -> bool:
    """Does the displacement enter none of the touching half spaces (but those of i and j, along which it goes)?"""
    for s in range(active):
        k = scratch.active[s]
        if k != i and k != j and _dot(report.contacts[k].normal, x, y, z) < -1e-9 * length:
            return False
    return True


@inner
def _edge(
    report: np.void, i: int, j: int, wx: float, wy: float, wz: float
) -> tuple[bool, float, float, float, float, float, float]:
    """Split the pull w = along u - l_a a - l_b b, u the unit direction of the edge of two planes, along >= 0.

    a and b are the normals of contacts i and j. Returns (whether both push: l_a, l_b >= 0, u, along, l_a, l_b).
    """
    a = report.contacts[i].normal
    b = report.contacts[j].normal
    cosine = _dot(a, b[0], b[1], b[2])
    ux = a[1] * b[2] - a[2] * b[1]
    uy = a[2] * b[0] - a[0] * b[2]
    uz = a[0] * b[1] - a[1] * b[0]
    square = ux * ux + uy * uy + uz * uz
    if square <= PARALLEL:
        return False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    da = -_dot(a, wx, wy, wz)
    db = -_dot(b, wx, wy, wz)
    la = (da - cosine * db) / square
    lb = (db - cosine * da) / square
    along = (wx * ux + wy * uy + wz * uz) / math.sqrt(square)
    scale = (1.0 if along >= 0.0 else -1.0) / math.sqrt(square)
    return la >= 0.0 and lb >= 0.0, ux * scale, uy * scale, uz * scale, abs(along), la, lb


@inner
def _hold(
    report: np.void, scratch: np.void, active: int, wx: float, wy: float, wz: float, sweeps: int
) -> tuple[bool, int]:
    """Can the touching contacts hold the tip against the pull w by sticking? Writes their pushes.

    Returns (whether it is proven, sweeps left). One contact, two contacts on their edge and three in their corner are
    tried in closed form, then all together by Gauss-Seidel; what that leaves in the table never adds up to more than
    the pull.
    """
    _clear_pushes(report)
    for s in range(active):
        i = scratch.active[s]
        n = report.contacts[i].normal
        depth = -_dot(n, wx, wy, wz)
        if depth >= 0.0:
            tx = wx + depth * n[0]
            ty = wy + depth * n[1]
            tz = wz + depth * n[2]
            limit = scratch.hold[i] * depth * (1.0 + BORDER)
            if tx * tx + ty * ty + tz * tz <= limit * limit:
                _set_push(report, i, -wx, -wy, -wz)
                return True, sweeps
    if active < 2:
        return False, sweeps
    for s in range(active):
        i = scratch.active[s]
        for r in range(s):
            j = scratch.active[r]
            found, ux, uy, uz, along, la, lb = _edge(report, i, j, wx, wy, wz)
            limit = scratch.hold[i] * la + scratch.hold[j] * lb
            if found and along <= limit * (1.0 + BORDER):
                share = along / limit if limit > 0.0 else 0.0
                _brake(report, i, la, share * scratch.hold[i] * la, ux, uy, uz)
                _brake(report, j, lb, share * scratch.hold[j] * lb, ux, uy, uz)
                return True, sweeps
    for s in range(active):
        i = scratch.active[s]
        a = report.contacts[i].normal
        for r in range(s):
            j = scratch.active[r]
            b = report.contacts[j].normal
            for q in range(r):
                k = scratch.active[q]
                c = report.contacts[k].normal
                volume, _, _, _, la, lb, lc = _combine(
                    a, b, c, -_dot(a, wx, wy, wz), -_dot(b, wx, wy, wz), -_dot(c, wx, wy, wz)
                )
                if volume != 0.0 and min(la, lb, lc) >= 0.0:
                    _set_push(report, i, la * a[0], la * a[1], la * a[2])
                    _set_push(report, j, lb * b[0], lb * b[1], lb * b[2])
                    _set_push(report, k, lc * c[0], lc * c[1], lc * c[2])
                    return True, sweeps
    return _hold_together(report, scratch, active, wx, wy, wz, sweeps)


@inner
def _hold_together(
    report: np.void, scratch: np.void, active: int, wx: float, wy: float, wz: float, sweeps: int
) -> tuple[bool, int]:
    """Exact-cone block Gauss-Seidel for sticking contacts: each in turn takes what its cone can of what is left.

    Returns (whether all of the pull is taken, sweeps left); gives up when it cannot be with the sweeps left at the rate
    of the last sweep, so that there are some left to slip with.
    """
    pull = math.sqrt(wx * wx + wy * wy + wz * wz)
    rx = -wx  # what is left to explain
    ry = -wy
    rz = -wz
    goal = HOLD_RESIDUAL * pull
    left = pull
    settling = 3
    while sweeps > 0:
        sweeps -= 1
        for s in range(active):
            i = scratch.active[s]
            n = report.contacts[i].normal
            push = report.contacts[i].displacement
            rx += push[0]
            ry += push[1]
            rz += push[2]
            depth = _dot(n, rx, ry, rz)
            if depth <= 0.0:
                _set_push(report, i, 0.0, 0.0, 0.0)
                continue
            tx = rx - depth * n[0]
            ty = ry - depth * n[1]
            tz = rz - depth * n[2]
            along = math.sqrt(tx * tx + ty * ty + tz * tz)
            limit = scratch.hold[i] * depth
            share = 1.0 if along <= limit else limit / along
            _set_push(report, i, depth * n[0] + share * tx, depth * n[1] + share * ty, depth * n[2] + share * tz)
            rx -= push[0]
            ry -= push[1]
            rz -= push[2]
        before = left
        left = math.sqrt(rx * rx + ry * ry + rz * rz)
        if left <= goal:
            return True, sweeps
        settling -= 1
        if settling < 0 and left * (left / before) ** sweeps > goal:
            break
    # Not proven. The sum of the pushes is shortened to the part of the pull that it explains, if it is longer.
    sx = -wx - rx
    sy = -wy - ry
    sz = -wz - rz
    square = sx * sx + sy * sy + sz * sz
    share = -(wx * sx + wy * sy + wz * sz)
    if share < square:
        share = max(0.0, share / square)
        for s in range(active):
            push = report.contacts[scratch.active[s]].displacement
            _set_push(report, scratch.active[s], share * push[0], share * push[1], share * push[2])
    return False, sweeps


@inner
def _touching(
    report: np.void, scratch: np.void, x: float, y: float, z: float, wx: float, wy: float, wz: float, deadband: float
) -> tuple[int, bool]:
    """Write how far the displacement is inside each half space, and list the contacts that touch.

    Returns (how many touch, whether the pull w presses into one of them).
    """
    active = 0
    pressed = False
    for i in range(report.contact_count):
        n = report.contacts[i].normal
        scratch.slack[i] = _dot(n, x, y, z) - scratch.offset[i]
        if scratch.slack[i] <= deadband:
            scratch.active[active] = i
            active += 1
            pressed |= _dot(n, wx, wy, wz) < 0.0
    return active, pressed


@inner
def _free_share(report: np.void, scratch: np.void, dx: float, dy: float, dz: float, deadband: float) -> float:
    """Return the share of the displacement that reaches no plane but those that touch already."""
    share = 1.0
    for i in range(report.contact_count):
        rate = _dot(report.contacts[i].normal, dx, dy, dz)
        if scratch.slack[i] > deadband and rate < 0.0:
            share = min(share, scratch.slack[i] / -rate)
    return share


@kernel
def solve(
    model: tuple,
    scratch: np.void,
    proxy: np.void,
    goal: np.ndarray,
    sweeps: int,
    report: np.void,
) -> tuple[bool, int]:
    """Find where the tip goes from proxy.position on its way to `goal` (3,), scene, among report.contacts.

    Writes the place to scratch.wanted, what each contact pushes to its displacement, report.residual and the
    DEGRADED_SOLVER bit. Static friction holds a body whose contact slipped neither in this tick nor for some ticks
    before (scratch.slid, proxy.sliding); kinetic friction brakes the others. Depth is measured from the surface at
    eps_safety.
    Returns (whether the tip slips, sweeps left).
    """
    safety = model.world[0].eps_safety
    deadband = DEADBAND * safety
    goal_x = goal[0] - proxy.position[0]  # everything below is relative to the start
    goal_y = goal[1] - proxy.position[1]
    goal_z = goal[2] - proxy.position[2]
    memory = False
    for i in range(report.contact_count):
        contact = report.contacts[i]
        body = model.bodies[contact.body_id]
        moving = proxy.sliding[contact.body_id % 64] != 0 or scratch.slid[contact.body_id % 64] != 0
        memory |= moving
        scratch.hold[i] = body.friction_kinetic if moving else body.friction_static
        scratch.slide[i] = body.friction_kinetic
        scratch.offset[i] = safety - contact.gap
        if abs(scratch.offset[i]) <= deadband:
            scratch.offset[i] = 0.0
    _clear_pushes(report)

    x = 0.0
    y = 0.0
    z = 0.0
    if not _allowed(report, scratch, 0.0, 0.0, 0.0, 0.0):
        found, x, y, z = _restore(report, scratch, 1e-9 * safety)
        if not found:  # wedged between surfaces: come no nearer to any
            for i in range(report.contact_count):
                scratch.offset[i] = min(scratch.offset[i], 0.0)

    slips = False
    at_goal = False
    settled = False
    while sweeps > 0 and not settled:
        sweeps -= 1
        wx = goal_x - x
        wy = goal_y - y
        wz = goal_z - z
        active, pressed = _touching(report, scratch, x, y, z, wx, wy, wz, deadband)
        if not pressed:
            _clear_pushes(report)
            share = _free_share(report, scratch, wx, wy, wz, deadband)
            if share >= 1.0:
                at_goal = True
                settled = True
                continue
            x += share * wx
            y += share * wy
            z += share * wz
            wx = goal_x - x
            wy = goal_y - y
            wz = goal_z - z
            active, pressed = _touching(report, scratch, x, y, z, wx, wy, wz, deadband)
        held = False
        moved = False
        dx = 0.0
        dy = 0.0
        dz = 0.0
        if not memory and not slips:
            held, sweeps = _hold(report, scratch, active, wx, wy, wz, sweeps)
        if not held:
            moved, dx, dy, dz = _slip(report, scratch, active, wx, wy, wz)
        if not held and not moved:
            if memory or slips:
                _, sweeps = _hold(report, scratch, active, wx, wy, wz, sweeps)
            settled = True
        elif held:
            settled = True
        else:
            slips = True
            share = _free_share(report, scratch, dx, dy, dz, deadband)
            x += share * dx
            y += share * dy
            z += share * dz
            settled = share >= 1.0

    residual = 0.0
    rx = 0.0 if at_goal else goal_x - x
    ry = 0.0 if at_goal else goal_y - y
    rz = 0.0 if at_goal else goal_z - z
    pull = math.sqrt(rx * rx + ry * ry + rz * rz)
    for i in range(report.contact_count):
        contact = report.contacts[i]
        rx += contact.displacement[0]
        ry += contact.displacement[1]
        rz += contact.displacement[2]
        if not at_goal:
            residual = max(residual, safety - contact.gap - _dot(contact.normal, x, y, z))
    residual = max(residual, math.sqrt(rx * rx + ry * ry + rz * rz))
    report.residual = residual
    report.degraded &= ~DEGRADED_SOLVER  # what earlier passes left is settled by this one
    if residual > RESIDUAL_TOLERANCE * (safety + pull):
        report.degraded |= DEGRADED_SOLVER
    if at_goal:
        for k in range(3):
            scratch.wanted[k] = goal[k]
    else:
        scratch.wanted[0] = proxy.position[0] + x
        scratch.wanted[1] = proxy.position[1] + y
        scratch.wanted[2] = proxy.position[2] + z
    return slips, sweeps
