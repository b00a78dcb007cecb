"""Samples: which ones move the device, how old the newest is for the watchdog, and whether they keep the lease.

A good sample is finite, of unit orientation, of sensible size, within the device's workspace where that is known, and
marked valid by the client. The watchdog looks at the age of the newest good one: what comes after it and is not usable
neither renews it nor hides how old it was.
"""

import math

import numpy as np

from haptics.codes import (
    GOOD,
    JUMPED,
    NOBODY,
    NOTHING_NEW,
    OUTSIDE_WORKSPACE,
    RELEASING,
    SAMPLE_INVALID,
    SAMPLE_REJECTED,
    SAMPLE_STALE,
    UNUSABLE,
)
from haptics.degrees import sensed_orientation
from haptics.passivity import observe
from haptics.posing import LARGEST_COORDINATE, UNIT_TOLERANCE
from haptics.tables import Record
from haptics.transitions import engaged
from haptics.workspace import orientation_to_device
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Quaternion,
    conjugate,
    length,
    multiply,
    normalise,
    put_quaternion,
    put_vector,
    quaternion,
    rotate,
    rotation_vector,
    subtract,
    vector,
)

TURN_SPEED = 60.0
"""rad/s: no hand turns a device faster than this..."""
TURN_MARGIN = 0.2
"""... by more than this between samples, rad."""


@inner
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


@inner
def within_workspace(settings: Record, sample: Record) -> bool:
    """Whether a device can be where a sample says, as far as the box that its handle cannot leave is known."""
    for k in range(3):
        half = settings.workspace_half[k]
        if half > 0.0 and abs(sample.position[k] - settings.workspace_centre[k]) > half:
            return False
    return True


@kernel
def orientation_of(settings: Record, touch: Record, sample: Record) -> Quaternion:
    """The device's orientation by a sample: what its device does not sense stays, at first as the tool is turned."""
    if touch.has_pose != 0:
        before = quaternion(touch.device_orientation)
    else:
        before = orientation_to_device(settings, touch, quaternion(touch.image_orientation))
    return sensed_orientation(settings, before, quaternion(sample.orientation))


@kernel
def jumps(world: Record, settings: Record, touch: Record, sample: Record) -> bool:
    """Whether the device went farther since its last good sample than it can, by translation or by the tip's turning;
    with a tool mesh, whose turning is felt, also whether it turned faster than a hand can.

    The elapsed time is the client's, but no longer than the stale horizon: forces do not outlive a longer gap. Of a
    clock that was put back it is the servo's: the age that the last good sample had in the tick before, and a tick.
    """
    elapsed = sample.t_sample - touch.last_t_sample
    if elapsed < 0:
        elapsed = touch.age_ns + np.int64(round(settings.dt * 1e9))
    elapsed = min(max(elapsed, 0), settings.stale_after_ns)
    allowed = settings.speed_max * 1e-9 * elapsed + settings.jump_margin
    if length(subtract(vector(sample.position), vector(touch.device_position))) > allowed:
        return True
    offset = vector(world.tip_offset)
    orientation = orientation_of(settings, touch, sample)
    turned = subtract(rotate(orientation, offset), rotate(quaternion(touch.device_orientation), offset))
    if length(turned) > allowed * touch.scale:
        return True
    if settings.tool_reach == 0.0:
        return False
    turn = multiply(orientation, conjugate(quaternion(touch.device_orientation)))
    return length(rotation_vector(normalise(turn))) > TURN_SPEED * 1e-9 * elapsed + TURN_MARGIN


@kernel
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
            refuse(touch, SAMPLE_INVALID)
        elif touch.frozen != 0:
            touch.sample_kind = JUMPED
        elif (engaged(touch) or touch.state == RELEASING) and jumps(world, settings, touch, sample):
            touch.sample_kind = JUMPED
            touch.frozen = 1
        elif not within_workspace(settings, sample):
            refuse(touch, OUTSIDE_WORKSPACE)
        else:
            accept_pose(settings, touch, sample)
    if touch.sample_kind == UNUSABLE or (touch.sample_kind == NOTHING_NEW and touch.unusable_ticks > 0):
        touch.unusable_ticks += 1


@inner
def refuse(touch: Record, reason: int) -> None:
    """The newest sample moves nothing."""
    touch.sample_kind = UNUSABLE
    touch.unusable_reason = reason


@inner
def accept_pose(settings: Record, touch: Record, sample: Record) -> None:
    """The device is where this sample says."""
    orientation = orientation_of(settings, touch, sample)
    if touch.has_pose != 0:
        observe(settings, touch, vector(sample.position), orientation, sample.t_sample - touch.last_t_sample)
    put_vector(touch.device_position, vector(sample.position))
    put_quaternion(touch.device_orientation, orientation)
    touch.last_t_sample = sample.t_sample
    touch.has_pose = 1
    touch.unusable_ticks = 0
    touch.rejected = NOBODY
    touch.sample_kind = GOOD


@inner
def age_in_force(settings: Record, touch: Record, taken: Record) -> int:
    """Age of the newest good sample as far as the watchdog is concerned, ns; once per tick, before any command."""
    if taken.has_sample == 0 or touch.owner == NOBODY or taken.sample.session != touch.owner:
        return settings.stale_after_ns + 1
    if touch.unusable_ticks == 0:
        return taken.age_ns
    # The input tells the age of the newest sample only, and that one is of no use: count on from the last good one.
    period = np.int64(round(settings.dt * 1e9))
    return max(taken.age_ns, min(touch.age_ns, settings.stale_after_ns) + period)


@inner
def stale_reason(touch: Record) -> int:
    """Why there is no good sample."""
    if touch.unusable_ticks > 0:
        return touch.unusable_reason
    if touch.rejected > NOBODY:
        return SAMPLE_REJECTED
    return SAMPLE_STALE


@inner
def hand_is_on(settings: Record, taken: Record) -> bool:
    """Whether the deadman, where one is required, is pressed in the newest sample."""
    return settings.require_deadman == 0 or taken.sample.deadman != 0


@inner
def count_lease(touch: Record, settings: Record, taken: Record) -> None:
    """Accepted samples renew the lease; otherwise it runs out."""
    if touch.owner == NOBODY:
        return
    if touch.sample_kind != NOTHING_NEW:
        touch.lease_left = settings.lease_ticks
    elif touch.lease_left > 0:
        touch.lease_left -= 1
