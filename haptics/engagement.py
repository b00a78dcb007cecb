"""Who may feel the scene, and when: lease, commands, watchdog and the engagement state machine.

Every decision is taken here, inside the tick, from recorded input, so a log replays it. At most one transition happens
per tick; conditions that call for another one persist and are met in the next.

    IDLE --ARM--> ARMED --good sample near the tool--> ENGAGING --gain 1--> ACTIVE <--> HOLD
      ^             ^                                      |                  |          |
      |             '--------- deadman let go -------------+------------------+----------+
      '---- RELEASING (gain ramps to 0) <------------------'                               --> FAULT --RESET--> IDLE

A good sample is finite, of unit orientation, of sensible size and marked valid by the client. The age that the watchdog
looks at is the sample's own or, when newer ones keep coming but are not usable, the time for which that has been so.
"""

import math

import numpy as np
from numba import njit

from haptics import velocity, workspace
from haptics.limits import observe_energy
from haptics.posing import LARGEST_COORDINATE, UNIT_TOLERANCE, pose_body
from haptics.rotation import length, put_quaternion, put_vector, quaternion, rotate, subtract, vector
from haptics.settings import MAX_SCALE, MIN_SCALE
from haptics.states import CommandKind, CommandResult, EngagementState, Reason
from haptics.tables import Record
from rtcore.model import Model
from rtcore.state import State

IDLE = int(EngagementState.IDLE)
ARMED = int(EngagementState.ARMED)
ENGAGING = int(EngagementState.ENGAGING)
ACTIVE = int(EngagementState.ACTIVE)
HOLD = int(EngagementState.HOLD)
RELEASING = int(EngagementState.RELEASING)
FAULT = int(EngagementState.FAULT)

LEASE = int(CommandKind.LEASE)
RENEW = int(CommandKind.RENEW)
RELEASE = int(CommandKind.RELEASE)
ARM = int(CommandKind.ARM)
DISARM = int(CommandKind.DISARM)
CLUTCH = int(CommandKind.CLUTCH)
SET_GAINS = int(CommandKind.SET_GAINS)
SET_SCALE = int(CommandKind.SET_SCALE)
STOP = int(CommandKind.STOP)
RESET = int(CommandKind.RESET)
SHUTDOWN = int(CommandKind.SHUTDOWN)
POSE_BODY = int(CommandKind.POSE_BODY)

DONE = int(CommandResult.DONE)
REFUSED = int(CommandResult.REFUSED)

OK = int(Reason.NONE)
"""What a command handler returns when it has done what was asked; any other reason is a refusal."""
COMMAND = int(Reason.COMMAND)
STOPPED = int(Reason.STOP)
DEADMAN_RELEASED = int(Reason.DEADMAN_RELEASED)
SAMPLE_LATE = int(Reason.SAMPLE_LATE)
SAMPLE_STALE = int(Reason.SAMPLE_STALE)
SAMPLE_FRESH = int(Reason.SAMPLE_FRESH)
SAMPLE_REJECTED = int(Reason.SAMPLE_REJECTED)
SAMPLE_INVALID = int(Reason.SAMPLE_INVALID)
DEVICE_JUMP = int(Reason.DEVICE_JUMP)
RAMP_DONE = int(Reason.RAMP_DONE)
CLUTCHED = int(Reason.CLUTCH)
LEASE_RELEASED = int(Reason.LEASE_RELEASED)
LEASE_EXPIRED = int(Reason.LEASE_EXPIRED)
SHUT_DOWN = int(Reason.SHUTDOWN)
WAS_RESET = int(Reason.RESET)
TOO_FAR = int(Reason.TOO_FAR)
NOT_OWNER = int(Reason.NOT_OWNER)
LEASE_TAKEN = int(Reason.LEASE_TAKEN)
WRONG_STATE = int(Reason.WRONG_STATE)
BAD_VALUE = int(Reason.BAD_VALUE)
NOT_FINITE = int(Reason.NOT_FINITE)
SUPERVISOR_LOST = int(Reason.SUPERVISOR_LOST)

NOTHING_NEW = 0
GOOD = 1
UNUSABLE = 2
JUMPED = 3

NOBODY = np.uint64(0)
ONE = np.uint64(1)

LARGEST_GAIN = 1e6
"""N/m or N·s/m: no device means more than this; smaller values above the card's limit are capped instead."""


@njit(cache=True, nogil=True, error_model="numpy")
def decide(model: Model, state: State, settings: Record, touch: Record, taken: Record, output: Record) -> int:
    """The stage: sample, lease, command, transitions, gain, from the tick's INPUT. Returns the age in force, ns."""
    output.event_from = touch.state
    output.event_to = touch.state
    touch.state_ticks += 1
    take_sample(model.world[0], settings, touch, taken)
    count_lease(touch, settings, taken)
    take_command(model, state, settings, touch, taken, output)
    age = age_in_force(settings, touch, taken)
    if output.event_from == output.event_to:
        move_on(model.world[0], state.proxy[0], settings, touch, taken, output, age)
    advance_gain(settings, touch)
    if output.event_from == output.event_to and touch.state == RELEASING and touch.gain == 0.0:
        finish_release(model.world[0], state.proxy[0], settings, touch, taken, output, age)
    report(touch, taken, output)
    return age


@njit(cache=True, nogil=True, error_model="numpy")
def engaged(touch: Record) -> bool:
    """Whether forces are on and not on their way out."""
    return touch.state == ENGAGING or touch.state == ACTIVE or touch.state == HOLD


@njit(cache=True, nogil=True, error_model="numpy")
def transition(touch: Record, output: Record, to: int, reason: int) -> None:
    """Change state: one event."""
    output.event_from = touch.state
    output.event_to = to
    touch.state = to
    touch.reason = reason
    touch.state_ticks = 0
    touch.event_seq += ONE


@njit(cache=True, nogil=True, error_model="numpy")
def begin_release(touch: Record, output: Record, after: int, reason: int, ticks: int) -> None:
    """Leave the engaged states: the gain goes to zero in so many ticks, this one included, then ``after`` follows."""
    touch.gain_step = touch.gain / ticks
    touch.after_release = after
    touch.release_reason = reason
    transition(touch, output, RELEASING, reason)


@njit(cache=True, nogil=True, error_model="numpy")
def hasten_release(settings: Record, touch: Record) -> None:
    """Make a ramp under way end within the fault ramp, counted from now; never slower than it was."""
    touch.gain_step = max(touch.gain_step, touch.gain / settings.ramp_fault_ticks)


@njit(cache=True, nogil=True, error_model="numpy")
def redirect_release(touch: Record, after: int, reason: int) -> None:
    """Let a ramp under way lead to ``after``, unless it already leads to FAULT."""
    if touch.after_release != FAULT:
        touch.after_release = after
        touch.release_reason = reason


@njit(cache=True, nogil=True, error_model="numpy")
def drop_owner(touch: Record) -> None:
    """Nobody holds the device any more; the tool stays where it is."""
    touch.owner = NOBODY
    touch.last_seq = NOBODY
    touch.lease_left = 0
    touch.drop_owner = 0
    touch.has_pose = 0
    touch.clutched = 0
    touch.reanchor = 0
    touch.rejected = NOBODY
    touch.unusable_ticks = 0
    velocity.forget(touch)


# ---------------------------------------------------------------------------------------------------- samples


@njit(cache=True, nogil=True, error_model="numpy")
def usable(sample: Record) -> bool:
    """Whether a sample may move anything: marked valid, finite, unit orientation, sensible size."""
    if sample.valid == 0:
        return False
    for k in range(3):
        # Written so that NaN fails.
        if not abs(sample.position[k]) <= LARGEST_COORDINATE:
            return False
    square = 0.0
    for k in range(4):
        square += sample.orientation[k] * sample.orientation[k]
    if not abs(math.sqrt(square) - 1.0) <= UNIT_TOLERANCE:
        return False
    if sample.has_twist != 0:
        for k in range(6):
            if not abs(sample.twist[k]) <= LARGEST_COORDINATE:
                return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def jumps(world: Record, settings: Record, touch: Record, sample: Record) -> bool:
    """Whether the device went farther since its last good sample than it can, by translation or by the tip's turning.

    The elapsed time is the client's, but no longer than the stale horizon: forces do not outlive a longer gap.
    """
    elapsed = min(max(sample.t_sample - touch.last_t_sample, 0), settings.stale_after_ns)
    allowed = settings.speed_max * 1e-9 * elapsed + settings.jump_margin
    if length(subtract(vector(sample.position), vector(touch.device_position))) > allowed:
        return True
    offset = vector(world.tip_offset)
    turned = subtract(
        rotate(quaternion(sample.orientation), offset), rotate(quaternion(touch.device_orientation), offset)
    )
    return length(turned) > allowed * touch.scale


@njit(cache=True, nogil=True, error_model="numpy")
def take_sample(world: Record, settings: Record, touch: Record, taken: Record) -> None:
    """Judge the sample of this tick and take over its pose when it is good."""
    touch.sample_kind = NOTHING_NEW
    touch.rejected += np.uint64(taken.rejected)
    if touch.owner == NOBODY or taken.has_sample == 0:
        return
    sample = taken.sample
    if taken.fresh != 0 and sample.session == touch.owner:
        touch.last_seq = sample.seq
        if not usable(sample):
            touch.sample_kind = UNUSABLE
        elif touch.frozen != 0:
            touch.sample_kind = JUMPED
        elif (engaged(touch) or touch.state == RELEASING) and jumps(world, settings, touch, sample):
            touch.sample_kind = JUMPED
            touch.frozen = 1
        else:
            accept_pose(touch, sample)
    if touch.sample_kind == UNUSABLE or (touch.sample_kind == NOTHING_NEW and touch.unusable_ticks > 0):
        touch.unusable_ticks += 1


@njit(cache=True, nogil=True, error_model="numpy")
def accept_pose(touch: Record, sample: Record) -> None:
    """The device is where this sample says."""
    orientation = quaternion(sample.orientation)
    if touch.has_pose != 0:
        observe_energy(touch, vector(sample.position), orientation)
    put_vector(touch.device_position, vector(sample.position))
    put_quaternion(touch.device_orientation, orientation)
    touch.last_t_sample = sample.t_sample
    touch.has_pose = 1
    touch.unusable_ticks = 0
    touch.rejected = NOBODY
    touch.sample_kind = GOOD


@njit(cache=True, nogil=True, error_model="numpy")
def age_in_force(settings: Record, touch: Record, taken: Record) -> int:
    """Age of the newest good sample as far as the watchdog is concerned, ns."""
    if taken.has_sample == 0 or touch.owner == NOBODY:
        return settings.stale_after_ns + 1
    unusable = np.int64(touch.unusable_ticks * settings.dt * 1e9)
    return max(taken.age_ns, unusable)


@njit(cache=True, nogil=True, error_model="numpy")
def stale_reason(touch: Record) -> int:
    """Why there is no good sample."""
    if touch.unusable_ticks > 0:
        return SAMPLE_INVALID
    if touch.rejected > NOBODY:
        return SAMPLE_REJECTED
    return SAMPLE_STALE


@njit(cache=True, nogil=True, error_model="numpy")
def hand_is_on(settings: Record, taken: Record) -> bool:
    """Whether the deadman, where one is required, is pressed in the newest sample."""
    return settings.require_deadman == 0 or taken.sample.deadman != 0


@njit(cache=True, nogil=True, error_model="numpy")
def count_lease(touch: Record, settings: Record, taken: Record) -> None:
    """Accepted samples renew the lease; otherwise it runs out."""
    if touch.owner == NOBODY:
        return
    if touch.sample_kind != NOTHING_NEW:
        touch.lease_left = settings.lease_ticks
    elif touch.lease_left > 0:
        touch.lease_left -= 1


# --------------------------------------------------------------------------------------------------- commands


@njit(cache=True, nogil=True, error_model="numpy")
def take_command(model: Model, state: State, settings: Record, touch: Record, taken: Record, output: Record) -> None:
    """Carry out or refuse the command of this tick."""
    command = taken.command
    output.command_id = command.id
    output.command_result = 0
    output.command_reason = OK
    if command.id == NOBODY:
        return
    refusal = carry_out(model, state, settings, touch, taken, output)
    output.command_reason = refusal
    output.command_result = DONE if refusal == OK else REFUSED


@njit(cache=True, nogil=True, error_model="numpy")
def carry_out(model: Model, state: State, settings: Record, touch: Record, taken: Record, output: Record) -> int:
    """Dispatch one command; returns OK or the reason of the refusal, which has changed nothing."""
    command = taken.command
    kind = command.kind
    # From anyone.
    if kind == STOP:
        return stop(settings, touch, output)
    if kind == SHUTDOWN:
        return shut_down(settings, touch, output)
    if kind == LEASE:
        return lease(settings, touch, command)
    if kind == POSE_BODY:
        return pose(model, state, touch, command)
    if kind < RENEW or kind > POSE_BODY:
        return BAD_VALUE
    if kind == RESET and touch.owner == NOBODY:
        return reset(touch, output)
    # From the owner.
    if touch.owner == NOBODY or command.session != touch.owner:
        return NOT_OWNER
    if kind == RENEW:
        touch.lease_left = settings.lease_ticks
        return OK
    if kind == RELEASE:
        return release(settings, touch, output)
    if kind == ARM:
        return arm(model.world[0], state.proxy[0], settings, touch, command, output)
    if kind == DISARM:
        return disarm(settings, touch, output)
    if kind == CLUTCH:
        return clutch(model.world[0], state.proxy[0], settings, touch, taken, output)
    if kind == SET_GAINS:
        return set_gains(settings, touch, command)
    if kind == SET_SCALE:
        return set_scale(model.world[0], state.proxy[0], settings, touch, command)
    return reset(touch, output)


@njit(cache=True, nogil=True, error_model="numpy")
def is_flag(value: float) -> bool:
    """Whether a command value is exactly 0 or 1."""
    return value == 0.0 or value == 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def lease(settings: Record, touch: Record, command: Record) -> int:
    """LEASE: a new owner starts from the configured map and gains; the present one renews."""
    if command.session == NOBODY:
        return BAD_VALUE
    if touch.owner == command.session:
        touch.lease_left = settings.lease_ticks
        touch.drop_owner = 0
        return OK
    if touch.owner != NOBODY:
        return LEASE_TAKEN
    if touch.stopping != 0:
        return WRONG_STATE
    drop_owner(touch)
    touch.owner = command.session
    touch.lease_left = settings.lease_ticks
    touch.stiffness = settings.stiffness
    touch.damping = settings.damping
    touch.scale = settings.scale
    put_vector(touch.anchor_position, (0.0, 0.0, 0.0))
    put_quaternion(touch.anchor_orientation, (0.0, 0.0, 0.0, 1.0))
    touch.energy = 0.0
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def release(settings: Record, touch: Record, output: Record) -> int:
    """RELEASE: give the device back, forces first."""
    if touch.state == ARMED:
        drop_owner(touch)
        transition(touch, output, IDLE, LEASE_RELEASED)
    elif engaged(touch):
        touch.drop_owner = 1
        begin_release(touch, output, IDLE, LEASE_RELEASED, settings.ramp_down_ticks)
    elif touch.state == RELEASING:
        touch.drop_owner = 1
        redirect_release(touch, IDLE, LEASE_RELEASED)
    else:
        drop_owner(touch)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def arm(world: Record, proxy: Record, settings: Record, touch: Record, command: Record, output: Record) -> int:
    """ARM: from IDLE, near the tool or with leave to re-anchor; again while ARMED to change that leave."""
    if not is_flag(command.values[0]):
        return BAD_VALUE
    if touch.stopping != 0 or touch.clutched != 0 or (touch.state != IDLE and touch.state != ARMED):
        return WRONG_STATE
    reanchor = 1 if command.values[0] == 1.0 else 0
    if (
        reanchor == 0
        and touch.has_pose != 0
        and workspace.distance_to_tool(world, proxy, settings, touch) > settings.engage_distance
    ):
        return TOO_FAR
    touch.reanchor = reanchor
    if touch.state == IDLE:
        transition(touch, output, ARMED, COMMAND)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def disarm(settings: Record, touch: Record, output: Record) -> int:
    """DISARM: forces off by ramp; nothing to do in IDLE."""
    if touch.state == FAULT:
        return WRONG_STATE
    touch.clutched = 0
    if touch.state == ARMED:
        transition(touch, output, IDLE, COMMAND)
    elif touch.state == RELEASING:
        redirect_release(touch, IDLE, COMMAND)
    elif engaged(touch):
        begin_release(touch, output, IDLE, COMMAND, settings.ramp_down_ticks)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def clutch(world: Record, proxy: Record, settings: Record, touch: Record, taken: Record, output: Record) -> int:
    """CLUTCH: pressed, the tool stays and forces ramp down; let go, re-anchor and engage again if forces were on."""
    command = taken.command
    if not is_flag(command.values[0]):
        return BAD_VALUE
    if command.values[0] == 1.0:
        return press_clutch(settings, touch, output)
    if touch.clutched == 0 or touch.clutched == 3:
        return WRONG_STATE
    if touch.state == RELEASING:
        # Still ramping down: what is left to do follows when the ramp has ended.
        touch.clutched = 3
    elif touch.clutched == 1:
        workspace.anchor_to_tool(world, proxy, settings, touch)
        touch.clutched = 0
    else:
        unclutch(world, proxy, settings, touch, taken, output, age_in_force(settings, touch, taken))
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def press_clutch(settings: Record, touch: Record, output: Record) -> int:
    """The pressed half of CLUTCH."""
    if touch.stopping != 0:
        return WRONG_STATE
    if touch.clutched == 3:
        touch.clutched = 2
        return OK
    if touch.clutched != 0:
        return OK
    if touch.state == IDLE:
        touch.clutched = 1
    elif touch.state == ARMED:
        touch.clutched = 2
        transition(touch, output, IDLE, CLUTCHED)
    elif engaged(touch):
        touch.clutched = 2
        begin_release(touch, output, IDLE, CLUTCHED, settings.ramp_down_ticks)
    else:
        return WRONG_STATE
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def unclutch(
    world: Record, proxy: Record, settings: Record, touch: Record, taken: Record, output: Record, age: int
) -> None:
    """Let go of a clutch that was pressed while engaged: the device's image goes to the tool, forces come back."""
    touch.clutched = 0
    touch.reanchor = 1
    if touch.has_pose != 0:
        workspace.anchor_to_tool(world, proxy, settings, touch)
    if touch.has_pose != 0 and age <= settings.hold_after_ns and hand_is_on(settings, taken):
        transition(touch, output, ENGAGING, CLUTCHED)
    else:
        transition(touch, output, ARMED, CLUTCHED)


@njit(cache=True, nogil=True, error_model="numpy")
def set_gains(settings: Record, touch: Record, command: Record) -> int:
    """SET_GAINS: above the card's limit they are capped; what no device could mean is refused."""
    stiffness = command.values[0]
    damping = command.values[1]
    # Written so that NaN fails.
    if not (stiffness > 0.0 and stiffness <= LARGEST_GAIN and damping >= 0.0 and damping <= LARGEST_GAIN):
        return BAD_VALUE
    touch.stiffness = min(stiffness, settings.stiffness_max)
    touch.damping = min(damping, settings.damping_max)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def set_scale(world: Record, proxy: Record, settings: Record, touch: Record, command: Record) -> int:
    """SET_SCALE: only while clutched or idle; the tool stays where it is."""
    scale = command.values[0]
    if not (scale >= MIN_SCALE and scale <= MAX_SCALE):
        return BAD_VALUE
    if touch.state != IDLE and touch.clutched == 0:
        return WRONG_STATE
    workspace.change_scale(world, proxy, settings, touch, scale)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def stop(settings: Record, touch: Record, output: Record) -> int:
    """STOP: never refused. Forces off by the fault ramp, then FAULT."""
    touch.clutched = 0
    if engaged(touch):
        begin_release(touch, output, FAULT, STOPPED, settings.ramp_fault_ticks)
    elif touch.state == RELEASING:
        redirect_release(touch, FAULT, STOPPED)
        hasten_release(settings, touch)
    elif touch.state != FAULT:
        transition(touch, output, FAULT, STOPPED)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def reset(touch: Record, output: Record) -> int:
    """RESET: the only way out of FAULT."""
    if touch.state != FAULT:
        return WRONG_STATE
    transition(touch, output, IDLE, WAS_RESET)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def shut_down(settings: Record, touch: Record, output: Record) -> int:
    """SHUTDOWN: forces off by ramp; ``output.stopped`` tells when the servo may exit."""
    touch.stopping = 1
    touch.clutched = 0
    if touch.state == ARMED:
        transition(touch, output, IDLE, SHUT_DOWN)
    elif engaged(touch):
        begin_release(touch, output, IDLE, SHUT_DOWN, settings.ramp_down_ticks)
    elif touch.state == RELEASING:
        redirect_release(touch, IDLE, SHUT_DOWN)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def pose(model: Model, state: State, touch: Record, command: Record) -> int:
    """POSE_BODY: in IDLE, by the owner, or by anybody while there is none."""
    if touch.owner != NOBODY and command.session != touch.owner:
        return NOT_OWNER
    if touch.state != IDLE:
        return WRONG_STATE
    return pose_body(model, state, command.values)


# ------------------------------------------------------------------------------------------------ transitions


@njit(cache=True, nogil=True, error_model="numpy")
def move_on(
    world: Record, proxy: Record, settings: Record, touch: Record, taken: Record, output: Record, age: int
) -> None:
    """Transitions that nobody asks for, the most urgent first."""
    if taken.supervisor_lost != 0:
        touch.stopping = 1
        if force_release(settings, touch, output, IDLE, SUPERVISOR_LOST):
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
        wait_armed(world, proxy, settings, touch, taken, output, age)
    elif engaged(touch):
        watch(settings, touch, taken, output, age)
    elif touch.state == RELEASING and age > settings.stale_after_ns:
        hasten_release(settings, touch)


@njit(cache=True, nogil=True, error_model="numpy")
def force_release(settings: Record, touch: Record, output: Record, after: int, reason: int) -> bool:
    """Forces off by the fault ramp, whatever else goes on; returns whether that was a transition."""
    if engaged(touch):
        touch.clutched = 0
        begin_release(touch, output, after, reason, settings.ramp_fault_ticks)
        return True
    if touch.state == RELEASING:
        touch.clutched = 0
        redirect_release(touch, after, reason)
        hasten_release(settings, touch)
    elif touch.state == ARMED:
        transition(touch, output, after, reason)
        return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def wait_armed(
    world: Record, proxy: Record, settings: Record, touch: Record, taken: Record, output: Record, age: int
) -> None:
    """ARMED: engage on a good sample near the tool. The watchdog runs from the moment of arming."""
    if age > settings.stale_after_ns and touch.state_ticks * settings.dt * 1e9 > settings.stale_after_ns:
        transition(touch, output, IDLE, stale_reason(touch))
        return
    if touch.sample_kind != GOOD or age > settings.hold_after_ns or not hand_is_on(settings, taken):
        return
    if workspace.distance_to_tool(world, proxy, settings, touch) > settings.engage_distance:
        if touch.reanchor == 0:
            return
        workspace.anchor_to_tool(world, proxy, settings, touch)
    transition(touch, output, ENGAGING, SAMPLE_FRESH)


@njit(cache=True, nogil=True, error_model="numpy")
def watch(settings: Record, touch: Record, taken: Record, output: Record, age: int) -> None:
    """ENGAGING, ACTIVE, HOLD: the watchdog, the deadman, the end of the ramp."""
    if age > settings.stale_after_ns:
        begin_release(touch, output, IDLE, stale_reason(touch), settings.ramp_fault_ticks)
    elif touch.sample_kind == GOOD and not hand_is_on(settings, taken):
        begin_release(touch, output, ARMED, DEADMAN_RELEASED, settings.ramp_down_ticks)
    elif age > settings.hold_after_ns:
        if touch.state != HOLD:
            transition(touch, output, HOLD, SAMPLE_INVALID if touch.unusable_ticks > 0 else SAMPLE_LATE)
    elif touch.state == HOLD:
        transition(touch, output, ACTIVE if touch.gain == 1.0 else ENGAGING, SAMPLE_FRESH)
    elif touch.state == ENGAGING and touch.gain == 1.0:
        transition(touch, output, ACTIVE, RAMP_DONE)


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def finish_release(
    world: Record, proxy: Record, settings: Record, touch: Record, taken: Record, output: Record, age: int
) -> None:
    """The forces are off: go where the ramp was to lead."""
    touch.frozen = 0
    touch.gain_step = 0.0
    if touch.drop_owner != 0:
        drop_owner(touch)
    if touch.after_release == IDLE and touch.clutched == 3:
        unclutch(world, proxy, settings, touch, taken, output, age)
    else:
        transition(touch, output, touch.after_release, touch.release_reason)


@njit(cache=True, nogil=True, error_model="numpy")
def report(touch: Record, taken: Record, output: Record) -> None:
    """What the record says about this stage."""
    output.state = touch.state
    output.reason = touch.reason
    output.event_seq = touch.event_seq
    output.owner = touch.owner
    output.seq = taken.sample.seq if taken.has_sample != 0 else NOBODY
    output.stopped = 1 if touch.stopping != 0 and (touch.state == IDLE or touch.state == FAULT) else 0
