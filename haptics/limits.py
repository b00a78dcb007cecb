"""What stands between the coupling and the hand: finite check, gain ramp, slew limit, saturation by norm.

Order: finite check; ramp (gain in 0..1); then slew limit and saturation together. The largest allowed force is ramped
as well (force_max * gain), and the rendered force is the farthest point towards the wanted one that is both within the
slew limit of the last and within the allowed norm. Taken one after the other, either limit could break the other one:
a spring stretched far beyond saturation would keep its full force through most of a ramp, then have to drop. Together
they make every ramp monotone, end exactly at zero, and never step by more than the slew limit. Force and torque are
treated separately, each with its direction preserved by its saturation.

A link's part of the rendered wrench is told as a vector: the wrench less what would have been rendered without the link
in every tick so far, by the same limits. In free space that is all of it, in whatever direction the slew limit still
holds it. What the passivity controller adds is divided between the two by the norms of what they want.

Between two samples the hand goes with what was held in all the ticks between them: their means are kept.
"""

import math

from haptics.codes import ENGAGING, GOOD, RELEASING
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


@inner
def next_part(touch: Record, last: Vector, wanted: Vector, most: float, slew: float) -> tuple[Vector, bool]:
    """What follows ``last`` of a force (N) or torque that is wanted, by ramp, slew limit and saturation."""
    largest = most * touch.gain
    if touch.state == RELEASING:
        # Releasing only ever takes away, even from a force that was still catching up with its spring.
        largest = min(largest, length(last))
    return approach(last, scaled(wanted, touch.gain), largest, slew)


@inner
def scenes_share(scene: Vector, link: Vector) -> float:
    """Share of the passivity controller's force that is the scene's: in free space none, without a link all of it."""
    pulls = length(link)
    if pulls == 0.0:
        return 1.0
    size = length(scene)
    return size / (size + pulls)


@kernel
def limit_port(touch: Record, output: Record, first: int, most: float, slew: float) -> int:
    """Force (``first`` 0) or torque (3): what is rendered, and whose it is; bits of ``output.limited``."""
    limited = 0
    damping = vector(output.passivity_wrench[first : first + 3])
    coupled = vector(output.coupling_wrench[first : first + 3])
    link = vector(output.link.wrench[first : first + 3])
    wanted = add(coupled, damping)
    if length(wanted) > most:
        limited |= SATURATED
    got, slow = next_part(touch, vector(touch.wrench[first : first + 3]), wanted, most, slew)
    if slow:
        limited |= SLEW_LIMITED
    scene = subtract(coupled, link)
    scene = add(scene, scaled(damping, scenes_share(scene, link)))
    alone, _ = next_part(touch, vector(touch.scene_sent[first : first + 3]), scene, most, slew)
    # What stands in place of a torque is no spring either: it goes ahead in the share that is sent of it all.
    told = sent(length(got), touch.gain * length(wanted))
    share = touch.gain * told
    for k in range(3):
        output.wrench[first + k] = got[k]
        touch.scene_sent[first + k] = alone[k]
        touch.link_sent[first + k] = got[k] - alone[k]
        touch.damped[first + k] = share * damping[k]
        if first == 0:
            output.feed_forward[k] = share * (output.feed_forward[k] - link[k]) + touch.link_sent[k]
            if touch.state == RELEASING:
                # Whoever closes the spring is told as much less of it as the wrench is less: that only falls, too.
                output.stiffness[k] *= told
                output.damping[k] *= told
        else:
            # No spring stands behind the torque: who closes the impedance gets all of it this way, limited like here.
            output.feed_forward[3 + k] = got[k]
    return limited


@inner
def put_mean(mean: Record, value: Record, ticks: int) -> None:
    """Take ``value`` (6,) into the mean (6,) of ``ticks`` of them, itself counted."""
    for k in range(6):
        before = mean[k] if ticks > 1 else 0.0
        mean[k] = before + (value[k] - before) / ticks


@inner
def keep_means(touch: Record) -> None:
    """Add this tick to the means of what has been held since the last good sample; a good one begins them anew."""
    touch.held_ticks = 1 if touch.sample_kind == GOOD else touch.held_ticks + 1
    put_mean(touch.held_wrench, touch.wrench, touch.held_ticks)
    put_mean(touch.held_ideal, touch.ideal, touch.held_ticks)
    put_mean(touch.held_damped, touch.damped, touch.held_ticks)
    put_mean(touch.held_link, touch.link_sent, touch.held_ticks)


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
            touch.scene_sent[k] = 0.0
            touch.link_sent[k] = 0.0
        limited |= NOT_SENT
    else:
        if output.passivity_damping[0] > 0.0 or output.passivity_damping[1] > 0.0:
            limited |= DAMPED
        limited |= limit_port(touch, output, 0, settings.force_max, settings.force_slew)
        limited |= limit_port(touch, output, 3, settings.torque_max, settings.torque_slew)
    for k in range(6):
        touch.wrench[k] = output.wrench[k]
    keep_means(touch)
    output.limited = limited
    output.gain = touch.gain
    output.energy_linear = touch.energy[0]
    output.energy_angular = touch.energy[1]
    output.energy = touch.energy[0] + touch.energy[1]
