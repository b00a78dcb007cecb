"""Who may feel the scene, and when: the engagement state machine and its watchdog.

Every decision is taken inside the tick, from recorded input, so a log replays it. At most one transition happens
per tick; conditions that call for another one persist and are met in the next.

    IDLE --ARM--> ARMED --good sample near the tool--> ENGAGING --gain 1--> ACTIVE <--> HOLD
      ^             ^                                      |                  |          |
      |             '--------- deadman let go -------------+------------------+----------+
      '---- RELEASING (gain ramps to 0) <------------------'                               --> FAULT --RESET--> IDLE

Samples are judged in :mod:`haptics.samples`, commands carried out in :mod:`haptics.commands`.
"""

from haptics import bursts, workspace
from haptics.codes import (
    ACTIVE,
    ARMED,
    AT_ONCE,
    DEADMAN_RELEASED,
    DEVICE_JUMP,
    ENGAGING,
    FAULT,
    GOOD,
    HOLD,
    IDLE,
    IF_FAR,
    LEASE_EXPIRED,
    NEAR_ONLY,
    NOBODY,
    NOT_FINITE,
    RAMP_DONE,
    RELEASING,
    SAMPLE_FRESH,
    SAMPLE_LATE,
    SUPERVISOR_LOST,
)
from haptics.commands import take_command, unclutch
from haptics.samples import age_in_force, count_lease, hand_is_on, stale_reason, take_sample
from haptics.tables import Record
from haptics.transitions import (
    begin_lease,
    begin_release,
    drop_owner,
    engaged,
    force_release,
    hasten_release,
    transition,
)
from rtcore.kernels import inner, kernel
from rtcore.model import Model
from rtcore.state import State


@kernel
def decide(model: Model, state: State, settings: Record, touch: Record, taken: Record, output: Record) -> None:
    """The stage: sample, lease, command, transitions, gain, from the tick's INPUT."""
    output.event_from = touch.state
    output.event_to = touch.state
    touch.state_ticks += 1
    if taken.supervisor_lost != 0:
        touch.stopping = 1
    take_sample(model.world[0], settings, touch, taken)
    count_lease(touch, settings, taken)
    touch.age_ns = age_in_force(settings, touch, taken)
    take_command(model, state, settings, touch, taken, output)
    if output.event_from == output.event_to or touch.state == RELEASING:
        # A release that a command has begun must not keep an urgent one waiting; it makes no second transition.
        move_on(model.world[0], state.proxy[0], settings, touch, taken, output)
    advance_gain(settings, touch)
    ramp_gains(settings, touch)
    if output.event_from == output.event_to and touch.state == RELEASING and touch.gain == 0.0:
        finish_release(model.world[0], state.proxy[0], settings, touch, taken, output)
    report(touch, taken, output)


@kernel
def move_on(world: Record, proxy: Record, settings: Record, touch: Record, taken: Record, output: Record) -> None:
    """Transitions that nobody asks for, the most urgent first."""
    if taken.supervisor_lost != 0 and force_release(settings, touch, output, IDLE, SUPERVISOR_LOST):
        return
    if touch.not_finite != 0 and force_release(settings, touch, output, FAULT, NOT_FINITE):
        return
    if touch.frozen != 0 and force_release(settings, touch, output, FAULT, DEVICE_JUMP):
        return
    if touch.owner != NOBODY and touch.lease_left == 0:
        expire_lease(settings, touch, output)
        if output.event_from != output.event_to:
            return
    if touch.state == ARMED:
        wait_armed(world, proxy, settings, touch, taken, output)
    elif engaged(touch):
        watch(settings, touch, taken, output)
    elif touch.state == RELEASING and touch.age_ns > settings.stale_after_ns:
        hasten_release(settings, touch)


@inner
def expire_lease(settings: Record, touch: Record, output: Record) -> None:
    """Neither samples nor renewals: the device becomes free."""
    if touch.state == IDLE or touch.state == FAULT:
        drop_owner(touch)
    elif touch.state == ARMED:
        drop_owner(touch)
        transition(touch, output, IDLE, LEASE_EXPIRED)
    else:
        touch.drop_owner = 1
        force_release(settings, touch, output, IDLE, LEASE_EXPIRED)


@inner
def wait_armed(world: Record, proxy: Record, settings: Record, touch: Record, taken: Record, output: Record) -> None:
    """ARMED: engage on a good sample near the tool. The watchdog runs from the moment of arming."""
    if touch.age_ns > settings.stale_after_ns and touch.state_ticks * settings.dt * 1e9 > settings.stale_after_ns:
        transition(touch, output, IDLE, stale_reason(touch))
        return
    if touch.reanchor == AT_ONCE and touch.sample_kind == GOOD:
        # A new owner's device, wherever it is: the tool stays where the old one left it.
        workspace.anchor_to_tool(world, proxy, settings, touch)
        touch.reanchor = IF_FAR
    if touch.sample_kind != GOOD or touch.age_ns > settings.hold_after_ns or not hand_is_on(settings, taken):
        return
    if workspace.too_far_from_tool(world, proxy, settings, touch):
        if touch.reanchor == NEAR_ONLY:
            return
        workspace.anchor_to_tool(world, proxy, settings, touch)
    transition(touch, output, ENGAGING, SAMPLE_FRESH)


@kernel
def watch(settings: Record, touch: Record, taken: Record, output: Record) -> None:
    """ENGAGING, ACTIVE, HOLD: the watchdog, the deadman, the end of the ramp."""
    if touch.age_ns > settings.stale_after_ns:
        begin_release(touch, output, IDLE, stale_reason(touch), settings.ramp_fault_ticks)
    elif touch.sample_kind == GOOD and not hand_is_on(settings, taken):
        begin_release(touch, output, ARMED, DEADMAN_RELEASED, settings.ramp_down_ticks)
    elif touch.age_ns > settings.hold_after_ns:
        if touch.state != HOLD:
            transition(touch, output, HOLD, touch.unusable_reason if touch.unusable_ticks > 0 else SAMPLE_LATE)
    elif touch.state == HOLD:
        transition(touch, output, ACTIVE if touch.gain == 1.0 else ENGAGING, SAMPLE_FRESH)
    elif touch.state == ENGAGING and touch.gain == 1.0:
        transition(touch, output, ACTIVE, RAMP_DONE)


@inner
def advance_gain(settings: Record, touch: Record) -> None:
    """Ramp: up while ENGAGING, down while RELEASING; the ends are reached exactly."""
    if touch.state == ENGAGING:
        step = 1.0 / settings.ramp_up_ticks
        touch.gain += step
        if touch.gain > 1.0 - 0.5 * step:
            touch.gain = 1.0
    elif touch.state == RELEASING:
        touch.gain -= touch.gain_step
        if touch.gain <= 0.5 * touch.gain_step:
            touch.gain = 0.0
    elif touch.state != ACTIVE and touch.state != HOLD:
        touch.gain = 0.0


@inner
def ramp_gains(settings: Record, touch: Record) -> None:
    """Gains that were asked for come into force: by a ramp over the whole range while forces are on, else at once."""
    if engaged(touch) or touch.state == RELEASING:
        share = 1.0 / settings.ramp_up_ticks
        touch.stiffness = towards(touch.stiffness, touch.stiffness_goal, settings.stiffness_max * share)
        touch.damping = towards(touch.damping, touch.damping_goal, settings.damping_max * share)
    else:
        touch.stiffness = touch.stiffness_goal
        touch.damping = touch.damping_goal


@inner
def towards(value: float, goal: float, step: float) -> float:
    """The value, at most so much nearer to its goal; the goal itself when it is within reach."""
    if abs(goal - value) <= step:
        return goal
    return value + step if goal > value else value - step


@inner
def finish_release(
    world: Record, proxy: Record, settings: Record, touch: Record, taken: Record, output: Record
) -> None:
    """The forces are off: go where the ramp was to lead."""
    touch.frozen = 0
    touch.gain_step = 0.0
    bursts.end(touch)
    if touch.heir != NOBODY and touch.stopping == 0:
        begin_lease(settings, touch, touch.heir)
        touch.reanchor = AT_ONCE
    elif touch.drop_owner != 0:
        drop_owner(touch)
    touch.heir = NOBODY
    if touch.after_release == IDLE and touch.clutched == 3:
        unclutch(world, proxy, settings, touch, taken, output)
    else:
        transition(touch, output, touch.after_release, touch.release_reason)


@kernel
def report(touch: Record, taken: Record, output: Record) -> None:
    """What the record says about this stage."""
    output.state = touch.state
    output.reason = touch.reason
    output.event_seq = touch.event_seq
    output.owner = touch.owner
    output.seq = taken.sample.seq if taken.has_sample != 0 else NOBODY
    output.stopped = 1 if touch.stopping != 0 and (touch.state == IDLE or touch.state == FAULT) else 0
