"""Commands: what the control channel can ask of a tick, who may, and when.

One command at most is taken per tick. A refusal has changed nothing and says why; a command that changes the state
makes the tick's one transition.
"""

import math

import numpy as np

from haptics import bursts, workspace
from haptics.cards import LEAST_STIFFNESS
from haptics.codes import (
    ARMED,
    BAD_VALUE,
    CLUTCHED,
    COMMAND,
    ENGAGING,
    FAULT,
    HANDED_OVER,
    IDLE,
    IF_FAR,
    LEASE_RELEASED,
    LEASE_TAKEN,
    NEAR_ONLY,
    NOBODY,
    NOT_OWNER,
    OK,
    OUTSIDE_WORKSPACE,
    RELEASING,
    SHUT_DOWN,
    STOPPED,
    TOO_FAR,
    WAS_RESET,
    WRONG_STATE,
)
from haptics.posing import UNIT_TOLERANCE, pose_body
from haptics.samples import hand_is_on
from haptics.settings import MAX_SCALE, MIN_SCALE
from haptics.states import CommandKind, CommandResult
from haptics.tables import Record
from haptics.transitions import (
    begin_lease,
    begin_release,
    drop_owner,
    engaged,
    hasten_release,
    redirect_release,
    transition,
)
from rtcore.kernels import inner, kernel
from rtcore.model import Model
from rtcore.spatial import length, scaled
from rtcore.state import State

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
VIBRATE = int(CommandKind.VIBRATE)
HAND_OVER = int(CommandKind.HAND_OVER)

DONE = int(CommandResult.DONE)
REFUSED = int(CommandResult.REFUSED)

HALF_SESSION = 1 << 32
"""A session number is named in two values below this."""

LARGEST_GAIN = 1e6
"""N/m or N·s/m: no device means more than this; smaller values above the card's limit are capped instead."""


@inner
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


@kernel
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
    if kind < RENEW or kind > HAND_OVER:
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
    if kind == HAND_OVER:
        return hand_over(settings, touch, command, output)
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
    if kind == VIBRATE:
        return vibrate(settings, touch, command)
    return reset(touch, output)


@inner
def is_flag(value: float) -> bool:
    """Whether a command value is exactly 0 or 1."""
    return value == 0.0 or value == 1.0


@kernel
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
    begin_lease(settings, touch, command.session)
    return OK


@kernel
def session_named(command: Record) -> np.uint64:
    """Session that a command names in its first two values, upper and lower 32 bits; NOBODY when they name none."""
    for k in range(2):
        half = command.values[k]
        # Written so that NaN fails.
        if not (half >= 0.0 and half < HALF_SESSION and half == math.floor(half)):
            return NOBODY
    return np.uint64(command.values[0]) * np.uint64(HALF_SESSION) + np.uint64(command.values[1])


@kernel
def hand_over(settings: Record, touch: Record, command: Record, output: Record) -> int:
    """HAND_OVER: the lease goes to another session, forces first.

    When forces are on they ramp down for the old owner, and come back for the new one from zero: the first pose of its
    device is anchored to where the tool is. Otherwise the lease changes hands in this tick.
    """
    heir = session_named(command)
    if heir == NOBODY or heir == touch.owner:
        return BAD_VALUE
    if touch.stopping != 0 or touch.state == RELEASING:
        return WRONG_STATE
    if engaged(touch):
        touch.heir = heir
        begin_release(touch, output, ARMED, HANDED_OVER, settings.ramp_down_ticks)
        return OK
    if touch.state == ARMED:
        transition(touch, output, IDLE, HANDED_OVER)
    begin_lease(settings, touch, heir)
    return OK


@kernel
def release(settings: Record, touch: Record, output: Record) -> int:
    """RELEASE: give the device back, forces first."""
    if touch.state == ARMED:
        drop_owner(touch)
        transition(touch, output, IDLE, LEASE_RELEASED)
    elif engaged(touch):
        touch.drop_owner = 1
        begin_release(touch, output, IDLE, LEASE_RELEASED, settings.ramp_down_ticks)
    elif touch.state == RELEASING:
        # A hand-over under way gives the device back as well, and leads to where it does.
        if touch.heir == NOBODY:
            touch.drop_owner = 1
            redirect_release(touch, IDLE, LEASE_RELEASED)
    else:
        drop_owner(touch)
    return OK


@kernel
def arm(world: Record, proxy: Record, settings: Record, touch: Record, command: Record, output: Record) -> int:
    """ARM: from IDLE, near the tool or with leave to re-anchor; again while ARMED to change that leave."""
    if not is_flag(command.values[0]):
        return BAD_VALUE
    if touch.stopping != 0 or touch.clutched != 0 or (touch.state != IDLE and touch.state != ARMED):
        return WRONG_STATE
    if touch.unusable_ticks > 0 and touch.unusable_reason == OUTSIDE_WORKSPACE:
        return OUTSIDE_WORKSPACE
    reanchor = IF_FAR if command.values[0] == 1.0 else NEAR_ONLY
    if reanchor == NEAR_ONLY and touch.has_pose != 0 and workspace.too_far_from_tool(world, proxy, settings, touch):
        return TOO_FAR
    touch.reanchor = reanchor
    if touch.state == IDLE:
        transition(touch, output, ARMED, COMMAND)
    return OK


@kernel
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


@kernel
def clutch(world: Record, proxy: Record, settings: Record, touch: Record, taken: Record, output: Record) -> int:
    """CLUTCH: pressed, the tool stays and forces ramp down; let go, re-anchor and engage again if forces were on."""
    command = taken.command
    if not is_flag(command.values[0]):
        return BAD_VALUE
    if touch.stopping != 0:
        return WRONG_STATE
    if command.values[0] == 1.0:
        return press_clutch(settings, touch, output)
    if touch.clutched == 0 or touch.clutched == 3:
        return WRONG_STATE
    if touch.state == RELEASING:
        # Still ramping down: what is left to do follows when the ramp has ended.
        touch.clutched = 3
    elif touch.clutched == 1:
        if touch.has_pose != 0:
            workspace.anchor_to_tool(world, proxy, settings, touch)
        touch.clutched = 0
    else:
        unclutch(world, proxy, settings, touch, taken, output)
    return OK


@inner
def press_clutch(settings: Record, touch: Record, output: Record) -> int:
    """The pressed half of CLUTCH."""
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


@inner
def unclutch(world: Record, proxy: Record, settings: Record, touch: Record, taken: Record, output: Record) -> None:
    """Let go of a clutch that was pressed while engaged: the device's image goes to the tool, forces come back."""
    touch.clutched = 0
    touch.reanchor = IF_FAR
    if touch.has_pose != 0:
        workspace.anchor_to_tool(world, proxy, settings, touch)
    if touch.has_pose != 0 and touch.age_ns <= settings.hold_after_ns and hand_is_on(settings, taken):
        transition(touch, output, ENGAGING, CLUTCHED)
    else:
        transition(touch, output, ARMED, CLUTCHED)


@kernel
def set_gains(settings: Record, touch: Record, command: Record) -> int:
    """SET_GAINS: above the card's limit they are capped; what no device could mean is refused, as is an input device,
    which renders nothing. While forces are on the gains in force go there by a ramp (engagement.ramp_gains)."""
    if settings.actuated == 0:
        return BAD_VALUE
    stiffness = command.values[0]
    damping = command.values[1]
    # Written so that NaN fails.
    if not (LEAST_STIFFNESS <= stiffness <= LARGEST_GAIN and 0.0 <= damping <= LARGEST_GAIN):
        return BAD_VALUE
    touch.stiffness_goal = min(stiffness, settings.stiffness_max)
    touch.damping_goal = min(damping, settings.damping_max)
    return OK


@kernel
def set_scale(world: Record, proxy: Record, settings: Record, touch: Record, command: Record) -> int:
    """SET_SCALE: only while clutched or idle; the tool stays where it is."""
    scale = command.values[0]
    if not (scale >= MIN_SCALE and scale <= MAX_SCALE):
        return BAD_VALUE
    if touch.state != IDLE and touch.clutched == 0:
        return WRONG_STATE
    workspace.change_scale(world, proxy, settings, touch, scale)
    return OK


@kernel
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


@kernel
def reset(touch: Record, output: Record) -> int:
    """RESET: the only way out of FAULT."""
    if touch.state != FAULT:
        return WRONG_STATE
    transition(touch, output, IDLE, WAS_RESET)
    return OK


@inner
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


@kernel
def pose(model: Model, state: State, touch: Record, command: Record) -> int:
    """POSE_BODY: in IDLE, by the owner, or by anybody while there is none."""
    if touch.owner != NOBODY and command.session != touch.owner:
        return NOT_OWNER
    if touch.state != IDLE:
        return WRONG_STATE
    return pose_body(model, state, command.values)


@kernel
def vibrate(settings: Record, touch: Record, command: Record) -> int:
    """VIBRATE: while forces are on; what is stronger or faster than a burst may be is capped."""
    values = command.values
    if settings.actuated == 0:
        return BAD_VALUE
    # Written so that NaN fails.
    if not (values[0] > 0.0 and values[0] <= LARGEST_GAIN and values[1] > 0.0 and values[1] <= LARGEST_GAIN):
        return BAD_VALUE
    if not (values[2] > 0.0 and values[2] <= bursts.LONGEST_S and values[3] >= 0.0 and values[3] <= LARGEST_GAIN):
        return BAD_VALUE
    direction = (values[4], values[5], values[6])
    size = length(direction)
    if not abs(size - 1.0) <= UNIT_TOLERANCE:
        return BAD_VALUE
    if not engaged(touch):
        return WRONG_STATE
    decay = values[3] if values[3] > 0.0 else math.inf
    bursts.begin(settings, touch, scaled(direction, values[0] / size), values[1], decay, values[2])
    return OK
