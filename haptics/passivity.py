"""Passivity observer and controller of the device port: damping that takes back what sampling has produced.

The wrench w is held from one sample to the next, while the device goes dx. A spring that knew no time would render s,
the coupling's own wrench without its damper, ramped and saturated, all along the way; in the middle of it that is the
mean of its two ends. What holding has produced since the sample before is the difference of the two works,

    e = (w - (s_before + s_now) / 2) . dx            owed = max(0, owed + e)

where samples come every few ticks with the mean of w - s over the ticks between them, each of which was rendered,

    e = (mean(w - s) - (s_now - s_last) / 2) . dx

which is 1/2 K dx^2 for a spring against a wall (the sampling term of Colgate and Schenkel 1994), whatever a slew limit
that lags behind has added, and less what dampers took. Since only the device's way counts, what the scene does to the
tool, a door that pushes the hand or friction that tires it, is neither produced nor a credit. Dissipation beyond what
is owed is forgotten at once: a credit from long ago would let an oscillation grow until it is used up.

The controller (Hannaford and Ryu 2002, in impedance causality) asks for the damping that would take all that is owed
back if the device went on as it went since the last sample,

    alpha = min(alpha_max, owed / (max(|v_s|, v_min)^2 T))          force = -alpha v_s

with v_s the part of dx / T along the spring's force: not the fitted velocity, which is late by half its window, at the
frequencies that matter by up to a quarter of a period or more. ``v_min`` is the speed of one encoder step per tick,
below which dx / T is mostly rounding; ``alpha_max`` is a share of what the card allows. Damping never makes the total
pull: in free motion, and where the hand leaves a wall, it adds nothing, and what is still owed waits for the next
contact. What is owed ends with the forces, and begins at nothing.

Force and torque have an account each. The controller acts before ramp, slew limit and saturation, and counts what is
left of its wrench after them. Without a new sample it keeps its wrench and fades with the age of the last one.
"""

import math

from haptics.codes import ENGAGING, GOOD, RELEASING
from haptics.coupling import freshness
from haptics.limits import saturate
from haptics.tables import Record
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Quaternion,
    Vector,
    conjugate,
    dot,
    length,
    multiply,
    quaternion,
    rotation_vector,
    scaled,
    subtract,
    vector,
)

LEAST_OWED = 1e-15
"""J: less is rounding."""


@inner
def observe(settings: Record, touch: Record, position: Vector, orientation: Quaternion, elapsed_ns: int) -> None:
    """Take note of the way from the device's last good pose to this one, and of the work that was done on it.

    Each tick since that pose has rendered a wrench, and the device held it until the next: their mean did the work.
    """
    moved = subtract(position, vector(touch.device_position))
    turned = rotation_vector(multiply(orientation, conjugate(quaternion(touch.device_orientation))))
    for k in range(3):
        touch.moved[k] = moved[k]
        touch.moved[3 + k] = turned[k]
        touch.energy[0] += touch.held_wrench[k] * moved[k]
        touch.energy[1] += touch.held_wrench[3 + k] * turned[k]
    # No shorter than a tick: the wrench is held so long, and time stamps may lie.
    touch.moved_s = max(1e-9 * min(max(elapsed_ns, 0), settings.stale_after_ns), settings.dt)


@inner
def clear(touch: Record) -> None:
    """Nothing is owed, and nothing moves."""
    touch.moved_s = 0.0
    for k in range(6):
        touch.moved[k] = 0.0
        touch.ideal[k] = 0.0
        touch.damped[k] = 0.0
    for k in range(2):
        touch.owed[k] = 0.0


@inner
def begin(touch: Record) -> None:
    """A lease begins: the accounts start at zero."""
    clear(touch)
    for k in range(2):
        touch.energy[k] = 0.0
        touch.dissipated[k] = 0.0


@inner
def damp(
    spring: Vector, whole: Vector, velocity: Vector, owed: float, most: float, slowest: float, time: float
) -> tuple[Vector, float]:
    """Force (N) that takes ``owed`` (J) back within ``time`` (s) at a velocity, along the spring's force; its damping.

    ``whole``: the coupling's force, damper included; the sum with it never pulls. ``most``: largest damping, N·s/m;
    ``slowest``: v_min. Likewise for torques.
    """
    size = length(spring)
    if size == 0.0 or owed <= LEAST_OWED:
        return (0.0, 0.0, 0.0), 0.0
    along = scaled(spring, 1.0 / size)
    speed = dot(velocity, along)
    counted = max(abs(speed), slowest)
    damping = min(most, owed / (counted * counted * time))
    return scaled(along, max(-damping * speed, min(-dot(whole, along), 0.0))), damping


@inner
def account(touch: Record, port: int, ideal: Vector, fresh: bool) -> None:
    """Bring what is owed by force (port 0) or torque (1) up to this tick's sample."""
    first = 3 * port
    if fresh:
        produced = taken = 0.0
        for k in range(3):
            moved = touch.moved[first + k]
            excess = touch.held_wrench[first + k] - touch.held_ideal[first + k]
            produced += (excess - 0.5 * (ideal[k] - touch.ideal[first + k])) * moved
            taken -= touch.held_damped[first + k] * moved
        touch.dissipated[port] += taken
        touch.owed[port] = max(touch.owed[port] + produced, 0.0)
    for k in range(3):
        touch.ideal[first + k] = ideal[k]


@kernel
def control(settings: Record, touch: Record, output: Record) -> None:
    """The stage: what is owed, and the damping wrench that takes it back (``output.passivity_wrench``)."""
    finite = True
    for k in range(6):
        output.passivity_wrench[k] = 0.0
        if not (math.isfinite(output.coupling_wrench[k]) and math.isfinite(touch.conservative[k])):
            finite = False
    on = finite and touch.state >= ENGAGING and touch.state <= RELEASING
    if not on:
        clear(touch)
    fresh = freshness(settings, touch.age_ns)
    for port in range(2):
        output.passivity_damping[port] = 0.0
        if on:
            control_port(settings, touch, output, port, fresh)
    output.owed_linear = touch.owed[0]
    output.owed_angular = touch.owed[1]
    output.dissipated_linear = touch.dissipated[0]
    output.dissipated_angular = touch.dissipated[1]


@kernel
def control_port(settings: Record, touch: Record, output: Record, port: int, fresh: float) -> None:
    """Account and damping of force (port 0) or torque (port 1), faded to the share ``fresh``."""
    first = 3 * port
    spring = (touch.conservative[first], touch.conservative[first + 1], touch.conservative[first + 2])
    largest = settings.force_max if port == 0 else settings.torque_max
    account(touch, port, scaled(saturate(spring, largest), touch.gain), touch.sample_kind == GOOD)
    if settings.passivity == 0 or touch.moved_s == 0.0 or touch.gain == 0.0:
        return
    moved = (touch.moved[first], touch.moved[first + 1], touch.moved[first + 2])
    whole = (output.coupling_wrench[first], output.coupling_wrench[first + 1], output.coupling_wrench[first + 2])
    added, damping = damp(
        spring,
        whole,
        scaled(moved, 1.0 / touch.moved_s),
        # The ramp will take its share of the wrench.
        touch.owed[port] / touch.gain,
        settings.passivity_damping[port],
        settings.passivity_speed[port],
        touch.moved_s,
    )
    for k in range(3):
        output.passivity_wrench[first + k] = fresh * added[k]
    output.passivity_damping[port] = fresh * touch.gain * damping
    if port == 0:
        # Who closes the spring damps as well; torque goes ahead as a whole, damping included.
        for k in range(3):
            output.damping[k] += output.passivity_damping[0]
