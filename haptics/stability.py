"""How stiff a sampled spring may be: published bounds, and the exact closed loop of a device that presses on a wall.

A device of mass m with viscous friction b, in a hand or alone, feels a force that is computed from its position once
per period T and held:

    F_k = -K x_k - B v_k,  held from t_k + d T to t_k+1 + d T,  v_k the slope of a line fitted to the last positions

Three answers, from the strictest to the most exact:

* passive with any passive hand whatsoever, Colgate and Schenkel 1994 (1997, eq. 10): ``b > K T / 2 + |B|``;
* stable alone or with a hand that only adds to m and b, Gil, Sánchez, Hulin, Preusche and Hirzinger 2009:
  ``K < (b + B) / (T / 2 + t_d)``. A linear condition of small numbers, which holds where the loop is slow against its
  delays: no dry friction, ``K (T / 2 + t_d)^2``, ``b T``, ``B T`` and the delay of v times B all far below m;
* stable or not by the spectral radius of the loop's own matrix, for this mass, this hand, this window, this delay.

All are about one degree of freedom, a contact that is kept, and no dry friction, whose rest hides small oscillations
(Diolaiti et al. 2006): real devices are often used above them. Off-line: nothing here runs in a tick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from haptics.cards import DeviceCard
from haptics.hands import DeviceDynamics, Grip

STIFFEST = 1e7
"""N/m: where the search for a limit ends; nothing is felt as softer beyond."""

RELATIVE = 1e-6
"""Of a stiffness that is searched for."""

CONTACT_SPEED = 0.5
"""m/s: fast contact of a hand."""


def passive_stiffness(friction: float, damping: float, period: float) -> float:
    """Largest K (N/m) that is passive by ``b > K T / 2 + |B|``, 0 when none is (Colgate and Schenkel 1994).

    ``friction``: b of the device, N·s/m; ``damping``: B of the coupling; ``period``: T, s.
    """
    return max(0.0, 2.0 * (friction - abs(damping)) / period)


def delayed_stiffness(friction: float, damping: float, period: float, delay: float) -> float:
    """K (N/m) below ``(b + B) / (T / 2 + t_d)`` (Gil et al. 2009), under the conditions at the head of this module.

    ``friction``: b, of device and hand together, N·s/m; ``delay``: t_d, from sample to force beside the hold, s.
    """
    return max(0.0, (friction + damping) / (0.5 * period + delay))


def controlled_stiffness(friction: float, most: float, period: float) -> float:
    """Largest K (N/m) whose sampling term ``K T / 2`` friction and passivity controller can take back together.

    ``most``: what the controller may add, N·s/m. Its damping is late by about a period: with the delay of the link the
    exact limit is lower, see :func:`largest_stiffness`.
    """
    return 2.0 * (friction + most) / period


def energy_floor(stiffness: float, period: float, *, speed: float = CONTACT_SPEED, resolution: float = 0.0) -> float:
    """Energy (J) that the port may have given in excess of what it got though all is in order.

    Holding the force makes ``1/2 K dx^2`` of each step dx (m). The controller sees it when the step is over and takes
    it back during the next one, which makes as much again before that is seen: two steps, of a hand at ``speed`` (m/s)
    whose encoder adds a step of ``resolution`` (m). `OUTPUT.energy` stays below it while a device presses a scene that
    stands still, from the beginning of a lease without force; benchmarks give its negative as ``energy_min``.
    """
    step = speed * period + resolution
    return stiffness * step * step


@dataclass(frozen=True)
class Loop:
    """One degree of freedom of a device on a wall, in a hand that holds it at a point."""

    mass: float
    """kg, of device and hand."""
    friction: float
    """N·s/m, viscous, of the device."""
    grip_stiffness: float = 0.0
    """N/m, of the hand towards its point."""
    grip_damping: float = 0.0
    """N·s/m, of the hand."""
    period: float = 1e-3
    """s"""
    samples: int = 13
    """Positions in the velocity fit."""
    delay_ticks: int = 0
    """Whole periods from the sample to the begin of its force."""

    @classmethod
    def of(
        cls, device: DeviceDynamics, grip: Grip, period: float = 1e-3, window: float = 12e-3, delay_ticks: int = 0
    ) -> Loop:
        """Put a mechanism and a hand together; ``window`` (s) of the velocity estimator."""
        return cls(
            mass=device.mass + grip.mass,
            friction=device.viscous_friction,
            grip_stiffness=grip.stiffness,
            grip_damping=grip.damping,
            period=period,
            samples=max(2, math.floor(window / period + 1e-6) + 1),
            delay_ticks=delay_ticks,
        )


def slope_weights(samples: int, period: float) -> np.ndarray:
    """(samples,) 1/s: weights of the positions, newest first, in the slope of their least-squares line."""
    late = 0.5 * (samples - 1) - np.arange(samples)
    return late / (period * float(late @ late))


def closed_loop(loop: Loop, stiffness: float, damping: float) -> np.ndarray:
    """Matrix (n, n) of one period: (x, v, older positions, forces on their way) to the next, exact for the held force.

    ``stiffness`` N/m and ``damping`` N·s/m are those of the coupling.
    """
    from scipy.linalg import expm

    # The device between samples, driven by a constant force: x, v, and the force as a third state.
    flow = np.zeros((3, 3))
    flow[0, 1] = 1.0
    flow[1] = (-loop.grip_stiffness, -(loop.friction + loop.grip_damping), 1.0)
    flow[1] /= loop.mass
    step = expm(flow * loop.period)
    older, late = loop.samples - 1, loop.delay_ticks
    matrix = np.zeros((2 + older + late, 2 + older + late))
    weights = slope_weights(loop.samples, loop.period)
    force = np.zeros(len(matrix))
    force[0] = -stiffness - damping * weights[0]
    force[2 : 2 + older] = -damping * weights[1:]
    felt = force
    if late > 0:
        felt = np.zeros(len(matrix))
        felt[-1] = 1.0
        matrix[2 + older] = force
        for k in range(1, late):
            matrix[2 + older + k, 1 + older + k] = 1.0
    matrix[:2, :2] += step[:2, :2]
    matrix[:2] += np.outer(step[:2, 2], felt)
    matrix[2, 0] = 1.0
    for k in range(1, older):
        matrix[2 + k, 1 + k] = 1.0
    return matrix


def spectral_radius(loop: Loop, stiffness: float, damping: float) -> float:
    """Largest magnitude among the eigenvalues of the closed loop: below 1 it comes to rest."""
    return float(np.abs(np.linalg.eigvals(closed_loop(loop, stiffness, damping))).max())


def largest_stiffness(loop: Loop, damping: float) -> float:
    """Largest K (N/m) up to which the loop with this B is stable, by bisection; 0 when a soft spring is not either, and
    STIFFEST when all are."""
    # A free device drifts: a spring that is too soft to be told from none is no instability.
    low = 1e-3
    if spectral_radius(loop, low, damping) >= 1.0:
        return 0.0
    high = low
    while spectral_radius(loop, high, damping) < 1.0:
        low, high = high, 1.25 * high
        if low > STIFFEST:
            return STIFFEST
    while high - low > RELATIVE * high:
        middle = 0.5 * (low + high)
        if spectral_radius(loop, middle, damping) < 1.0:
            low = middle
        else:
            high = middle
    return low


class Bounds(NamedTuple):
    """Stiffnesses (N/m) that one device bears in one hand."""

    passive: float
    """By Colgate and Schenkel, whatever the hand."""
    delayed: float
    """By Gil et al., with the hand's damping."""
    exact: float
    """Where the closed loop becomes unstable."""
    controlled: float
    """Whose sampling term the passivity controller can take back, without delay."""


def bounds(
    card: DeviceCard,
    grip: Grip,
    damping: float,
    *,
    period: float = 1e-3,
    window: float = 12e-3,
    delay_ticks: int = 0,
    controller: float = 0.0,
) -> Bounds:
    """Compute all bounds of a device, a hand and the coupling's B; what a card does not tell is the reference device's.

    ``controller``: most that the passivity controller may add, N·s/m. The dry friction of the card counts for nothing.
    """
    device = DeviceDynamics.from_card(card)
    loop = Loop.of(device, grip, period, window, delay_ticks)
    held = device.viscous_friction + grip.damping
    return Bounds(
        passive=passive_stiffness(device.viscous_friction, damping, period),
        delayed=delayed_stiffness(held, damping, period, delay_ticks * period),
        exact=largest_stiffness(loop, damping),
        controlled=controlled_stiffness(device.viscous_friction, controller, period),
    )
