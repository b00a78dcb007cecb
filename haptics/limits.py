"""What stands between the coupling and the hand: finite check, gain ramp, slew limit, saturation by norm.

Order: finite check; ramp (gain in 0..1); then slew limit and saturation together. The largest allowed force is ramped
as well (force_max * gain), and the rendered force is the farthest point towards the wanted one that is both within the
slew limit of the last and within the allowed norm. Taken one after the other, either limit could break the other one:
a spring stretched far beyond saturation would keep its full force through most of a ramp, then have to drop. Together
they make every ramp monotone, end exactly at zero, and never step by more than the slew limit. Force and torque are
treated separately, each with its direction preserved by its saturation.
"""

import math

from haptics.codes import ENGAGING, RELEASING
from haptics.tables import Record
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Vector,
    add,
    length,
    scaled,
    subtract,
    vector,
)

SATURATED = 1
SLEW_LIMITED = 2
NOT_FINITE = 4
NOT_SENT = 8
DAMPED = 16
"""The passivity controller adds damping."""
SLOWED = 32
"""Samples come so slowly that the stiffness is lowered."""


@inner
def saturate(wanted: Vector, largest: float) -> Vector:
    """The vector, shortened to the largest norm when it is longer; its direction stays."""
    size = length(wanted)
    if size > largest:
        return scaled(wanted, largest / size)
    return wanted


@kernel
def approach(last: Vector, wanted: Vector, largest: float, slew: float) -> tuple[Vector, bool]:
    """The next vector: towards ``wanted``, of norm at most ``largest``, at most ``slew`` away from ``last``.

    ``last`` is first pulled back to the allowed norm, which the caller guarantees to be within the slew limit; from
    there the straight line to the saturated goal stays within the norm (a ball is convex), and is followed until the
    slew limit. Returns the vector and whether the slew limit stopped it.
    """
    goal = saturate(wanted, largest)
    start = saturate(last, largest)
    to_start = subtract(start, last)
    way = subtract(goal, start)
    whole = subtract(goal, last)
    if length(whole) <= slew:
        return goal, False
    # Largest t in [0, 1] with |to_start + t way| = slew.
    a = way[0] * way[0] + way[1] * way[1] + way[2] * way[2]
    if a == 0.0:
        return start, True
    b = to_start[0] * way[0] + to_start[1] * way[1] + to_start[2] * way[2]
    c = to_start[0] * to_start[0] + to_start[1] * to_start[1] + to_start[2] * to_start[2] - slew * slew
    root = math.sqrt(max(b * b - a * c, 0.0))
    # The form that adds numbers of one sign, so that nothing cancels.
    t = -c / (b + root) if b > 0.0 else (root - b) / a
    return add(start, scaled(way, min(max(t, 0.0), 1.0))), True


@inner
def sent(size: float, wanted: float) -> float:
    """Share of a wanted norm that one of ``size`` is, 1 at most."""
    return min(1.0, size / wanted) if wanted > 0.0 else 1.0


@kernel
def limit(settings: Record, touch: Record, output: Record) -> None:
    """The stage: from coupling wrench to the wrench that may be sent (``output.wrench``, device frame)."""
    limited = SLOWED if touch.rate_share < 1.0 else 0
    touch.not_finite = 0
    for k in range(6):
        if not math.isfinite(output.coupling_wrench[k]):
            touch.not_finite = 1
    if touch.not_finite != 0:
        limited |= NOT_FINITE
        for k in range(6):
            output.coupling_wrench[k] = 0.0
            output.passivity_wrench[k] = 0.0
            output.render_twist[k] = 0.0
            output.stiffness[k] = 0.0
            output.damping[k] = 0.0
            output.feed_forward[k] = 0.0
            output.effects[k] = 0.0
            output.link.wrench[k] = 0.0

    if touch.state < ENGAGING or touch.state > RELEASING:
        # Forces are off, and were off before: every way here leads through a ramp that ended at zero.
        for k in range(6):
            output.wrench[k] = 0.0
            output.feed_forward[k] = 0.0
            touch.damped[k] = 0.0
            touch.link_sent[k] = 0.0
        limited |= NOT_SENT
    else:
        damping, turning = output.passivity_wrench[:3], output.passivity_wrench[3:]
        force = add(vector(output.coupling_wrench[:3]), vector(damping))
        torque = add(vector(output.coupling_wrench[3:]), vector(turning))
        if output.passivity_damping[0] > 0.0 or output.passivity_damping[1] > 0.0:
            limited |= DAMPED
        gain = touch.gain
        if length(force) > settings.force_max or length(torque) > settings.torque_max:
            limited |= SATURATED
        last_force = (touch.wrench[0], touch.wrench[1], touch.wrench[2])
        last_torque = (touch.wrench[3], touch.wrench[4], touch.wrench[5])
        largest_force = settings.force_max * gain
        largest_torque = settings.torque_max * gain
        if touch.state == RELEASING:
            # Releasing only ever takes away, even from a force that was still catching up with its spring.
            largest_force = min(largest_force, length(last_force))
            largest_torque = min(largest_torque, length(last_torque))
        wanted, wanted_torque = gain * length(force), gain * length(torque)
        force, slow = approach(last_force, scaled(force, gain), largest_force, settings.force_slew)
        torque, slow_torque = approach(last_torque, scaled(torque, gain), largest_torque, settings.torque_slew)
        # What stands in place of a torque is no spring either: it goes ahead in the share that is sent of it all.
        share = gain * sent(length(force), wanted)
        share_torque = gain * sent(length(torque), wanted_torque)
        if slow or slow_torque:
            limited |= SLEW_LIMITED
        for k in range(3):
            output.wrench[k] = force[k]
            output.wrench[3 + k] = torque[k]
            output.feed_forward[k] *= share
            # No spring stands behind the torque: who closes the impedance gets all of it this way, limited like here.
            output.feed_forward[3 + k] = torque[k]
            touch.damped[k] = share * damping[k]
            touch.damped[3 + k] = share_torque * turning[k]
            touch.link_sent[k] = share * output.link.wrench[k]
            touch.link_sent[3 + k] = share_torque * output.link.wrench[3 + k]
    for k in range(6):
        touch.wrench[k] = output.wrench[k]
    output.limited = limited
    output.gain = touch.gain
    output.energy_linear = touch.energy[0]
    output.energy_angular = touch.energy[1]
    output.energy = touch.energy[0] + touch.energy[1]
