"""Impacts: Newton's restitution at contacts, several at once, and no energy from nothing.

Of contact i, which comes together at the normal velocity a_i < 0, is wanted u_i >= -e a_i after the impact, with
equality where it pushes. A contact that comes together slower than its rest speed, or that opens, is held to u_i >= 0
and no more: -e a_i as a bound would let an opening contact close again, and a bounce that is smaller in every tick
would never end.

Newton's rule with friction, or at several contacts of one body, can add energy (Kane and Levinson 1985): it prescribes
velocities and never asks what work the impulses do. The island is therefore solved twice:

1. :func:`begin_impacts` notes how contacts come together; where it finds a bounce,
2. the contacts are solved without restitution. With u_n r_n = 0 and friction against the slip no energy is added;
3. :func:`want_rebound` keeps this answer and asks for the rebound, and the contacts are solved again from there;
4. :func:`limit_rebound` takes the largest share s in 0..1 of the way from the first answer to the second at which the
   kinetic energy is not above what it was.

On this way impulses stay in their friction cones and contacts do not close, because both ends are so and the cones and
bounds are convex. The energy is a parabola of s, so s is a root in closed form. Where even the first answer adds
energy, since its solver was stopped early, that one is scaled down instead; forces get weaker, and what then still
closes is left to the continuous collision test.

Between calls 1 and 4 the movers keep their velocities from before the impact: energies are measured against them. What
is moved from outside, like a held body, takes part as a mover with no inverse mass: energy is then counted as seen from
it, and the work that it does is no gain.

Source: Redon 2002, (5.14), with the bound for opening contacts put right; Faure 1997, 6.1.4 (impacts of a step put off
to its end and treated together); the energy of impulses 1/2 r . (u+ + u-) is Thomson and Tait's; the limit is own work.
"""

import math
from typing import Any

import numpy as np

from rtcore.kernels import inner, kernel
from rtcore.solvers.problem import ContactProblem, relative_velocity

SHY = 1.0 - 2.0**-46
"""By so much shares stay below the root of the energy, more than the rounding of the sums that it is made of."""

SLIGHT = 2.0**-46
"""Share of the work that contacts exchange by which their sum may seem to be a gain: rounding."""

IMPACT = np.dtype(
    [
        ("restitution", "f8"),  # Newton's coefficient of the pair, 0..1
        ("rest_speed", "f8"),  # of the pair, m/s
        ("instant", "f8"),  # share of the step after which they touch; above 1: not in this step
        ("wanted", "f8"),  # normal velocity after the impact, >= 0, m/s
        ("inelastic", "f8", 3),  # impulse without restitution, as CONTACT_EQUATION.impulse
        ("effect", "f8", 3),  # by which it and those of the other contacts change the relative velocity, m/s
    ],
    align=True,
)
"""One impact, in the same row as its CONTACT_EQUATION. The caller fills in the first three fields."""


@kernel
def pair_restitution(first: float, second: float) -> float:
    """Coefficient of restitution of two bodies: the larger one, as in Box2D and Jolt.

    A ball so bounces on whatever it is dropped on without the scene being told; PhysX and Rapier take the mean and
    Bullet the product, by which a scene that says nothing makes everything dead. Of the rest speeds the larger one is
    taken, too: a body that is said to come to rest does.
    """
    return max(first, second)


@inner
def _work(jacobian: np.ndarray, velocity: np.ndarray, impulse: np.ndarray) -> float:
    """impulse . J velocity."""
    total = 0.0
    for k in range(3):
        for m in range(6):
            total += impulse[k] * jacobian[k, m] * velocity[m]
    return total


@inner
def normal_velocity(problem: ContactProblem, i: int) -> float:
    """Of contact i of a ContactProblem with the velocities that the movers have, m/s; apart is positive."""
    equation = problem.equations[i]
    speed = 0.0
    if equation.first >= 0:
        for m in range(6):
            speed += equation.jacobian_first[0, m] * problem.movers[equation.first].velocity[m]
    if equation.second >= 0:
        for m in range(6):
            speed += equation.jacobian_second[0, m] * problem.movers[equation.second].velocity[m]
    return speed


@inner
def _power(problem: ContactProblem, i: int, impulse: np.ndarray) -> float:
    """An impulse (3,), N s, times the relative velocity of contact i that the movers have, J."""
    equation = problem.equations[i]
    total = 0.0
    if equation.first >= 0:
        total += _work(equation.jacobian_first, problem.movers[equation.first].velocity, impulse)
    if equation.second >= 0:
        total += _work(equation.jacobian_second, problem.movers[equation.second].velocity, impulse)
    return total


@inner
def _effect(equation: Any, k: int) -> float:
    """Component k of the change of relative velocity by all impulses of the island, compliance left out, m/s."""
    return equation.velocity[k] - equation.free[k] - equation.compliance[k] * equation.impulse[k]


@kernel
def kinetic_energy_change(problem: ContactProblem, first: int, last: int) -> float:
    """Change of the movers' kinetic energy by the impulses of an island, contacts first .. last - 1, J.

    It is 1/2 r . (u+ + u-), with u- the relative velocities that the movers have now, before the impulses are applied,
    whatever is wanted besides. Velocities must belong to impulses, as solvers leave them.
    """
    total = 0.0
    for i in range(first, last):
        equation = problem.equations[i]
        total += _power(problem, i, equation.impulse)
        for k in range(3):
            total += 0.5 * equation.impulse[k] * _effect(equation, k)
    return total


@inner
def limit_gain(problem: ContactProblem, first: int, last: int) -> float:
    """Scale the impulses of an island down where they would add kinetic energy: the factor, 1 where they do not.

    Those of contacts that do not bounce never add any, in the norm of the movers, if they obey Coulomb's law; those of
    a solver that was stopped early may. Velocities must belong to impulses, and belong to them afterwards.
    """
    power = 0.0
    curvature = 0.0
    exchanged = 0.0
    for i in range(first, last):
        equation = problem.equations[i]
        work = _power(problem, i, equation.impulse)
        power += work
        exchanged += abs(work)
        for k in range(3):
            curvature += equation.impulse[k] * _effect(equation, k)
    if power + 0.5 * curvature <= SLIGHT * exchanged:
        return 1.0
    factor = _root(0.0, power, curvature) if curvature > 0.0 else 0.0
    for i in range(first, last):
        for k in range(3):
            problem.equations[i].impulse[k] *= factor
    relative_velocity(problem, first, last)
    return factor


@kernel
def begin_impacts(problem: ContactProblem, impacts: np.ndarray, first: int, last: int) -> int:
    """Write the rebounds wanted at the contacts first .. last - 1 and return how many there are.

    impacts: (max_contacts,) IMPACT. The movers have the velocities of before the impact. With none wanted the island
    needs one solve and none of the functions below. What touches later than in this step does not bounce.
    """
    count = 0
    for i in range(first, last):
        impact = impacts[i]
        speed = normal_velocity(problem, i)
        impact.wanted = 0.0
        bounces = impact.restitution > 0.0 and impact.instant <= 1.0
        if bounces and speed < 0.0 and -speed >= impact.rest_speed:
            impact.wanted = -impact.restitution * speed
            count += 1
    return count


@kernel
def want_rebound(problem: ContactProblem, impacts: np.ndarray, first: int, last: int) -> None:
    """Keep the answer without restitution and ask for the rebounds: less the wanted velocities in `free`.

    The impulses stay as they are, a warm start for the second solve, and the velocities are made to belong to them.
    """
    for i in range(first, last):
        equation = problem.equations[i]
        impact = impacts[i]
        for k in range(3):
            impact.inelastic[k] = equation.impulse[k]
            impact.effect[k] = _effect(equation, k)
        equation.free[0] -= impact.wanted
        equation.velocity[0] -= impact.wanted


@inner
def _root(start: float, slope: float, curvature: float) -> float:
    """The largest s in 0..1 with start + slope s + curvature s^2 / 2 <= 0, for start <= 0 <= curvature."""
    if start + slope + 0.5 * curvature <= 0.0:
        return 1.0
    reach = math.sqrt(slope * slope - 2.0 * curvature * start)
    root = (reach - slope) / curvature if slope <= 0.0 else -2.0 * start / (slope + reach)
    return SHY * min(root, 1.0)


@kernel
def limit_rebound(problem: ContactProblem, impacts: np.ndarray, first: int, last: int) -> tuple[float, float]:
    """Cut the rebounds of an island so that its kinetic energy does not grow.

    impacts: (max_contacts,) IMPACT after :func:`want_rebound` and the second solve. The impulses of the contacts
    first .. last - 1 and the velocities that belong to them are changed. Returns (share of the way from the first
    answer to the second, factor of the first answer), (1, 1) where nothing was cut.
    """
    base_power = 0.0
    base_curvature = 0.0
    way_power = 0.0
    way_slope = 0.0
    way_curvature = 0.0
    for i in range(first, last):
        equation = problem.equations[i]
        impact = impacts[i]
        power = _power(problem, i, impact.inelastic)
        base_power += power
        way_power += _power(problem, i, equation.impulse) - power
        for k in range(3):
            way = equation.impulse[k] - impact.inelastic[k]
            base_curvature += impact.inelastic[k] * impact.effect[k]
            way_slope += way * impact.effect[k]
            way_curvature += way * (_effect(equation, k) - impact.effect[k])
    base = base_power + 0.5 * base_curvature
    slope = way_power + way_slope
    if base + slope + 0.5 * way_curvature <= 0.0:
        return 1.0, 1.0
    share = 0.0
    factor = 1.0
    if base <= 0.0:
        share = _root(base, slope, way_curvature)
    else:
        factor = _root(0.0, base_power, base_curvature)
    for i in range(first, last):
        equation = problem.equations[i]
        inelastic = impacts[i].inelastic
        for k in range(3):
            equation.impulse[k] = factor * inelastic[k] + share * (equation.impulse[k] - inelastic[k])
    relative_velocity(problem, first, last)
    return share, factor
