"""The moves of the engagement state machine: one event each, and the ramps that lead out of the engaged states.

They are shared by commands (:mod:`haptics.commands`) and by what happens unasked (:mod:`haptics.engagement`).
"""

import numpy as np

from haptics import bursts, passivity, velocity
from haptics.codes import ACTIVE, ARMED, ENGAGING, FAULT, HOLD, NOBODY, RELEASING
from haptics.tables import Record
from rtcore.kernels import inner, kernel
from rtcore.spatial import put_quaternion, put_vector

ONE = np.uint64(1)


@kernel
def engaged(touch: Record) -> bool:
    """Whether forces are on and not on their way out."""
    return touch.state == ENGAGING or touch.state == ACTIVE or touch.state == HOLD


@kernel
def transition(touch: Record, output: Record, to: int, reason: int) -> None:
    """Change state: one event."""
    output.event_from = touch.state
    output.event_to = to
    touch.state = to
    touch.reason = reason
    touch.state_ticks = 0
    touch.event_seq += ONE


@inner
def begin_release(touch: Record, output: Record, after: int, reason: int, ticks: int) -> None:
    """Leave the engaged states: the gain goes to zero in so many ticks, this one included, then ``after`` follows."""
    touch.gain_step = touch.gain / ticks
    touch.after_release = after
    touch.release_reason = reason
    transition(touch, output, RELEASING, reason)


@inner
def hasten_release(settings: Record, touch: Record) -> None:
    """Make a ramp under way end within the fault ramp, counted from now; never slower than it was."""
    touch.gain_step = max(touch.gain_step, touch.gain / settings.ramp_fault_ticks)


@inner
def redirect_release(touch: Record, after: int, reason: int) -> None:
    """Let a ramp under way lead to ``after``, unless it already leads to FAULT."""
    if touch.after_release != FAULT:
        touch.after_release = after
        touch.release_reason = reason


@inner
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


@inner
def drop_owner(touch: Record) -> None:
    """Nobody holds the device any more, and nothing that was asked for is left; the tool stays where it is."""
    touch.owner = NOBODY
    touch.last_seq = NOBODY
    touch.lease_left = 0
    touch.drop_owner = 0
    touch.heir = NOBODY
    touch.has_pose = 0
    touch.clutched = 0
    touch.reanchor = 0
    touch.rejected = NOBODY
    touch.unusable_ticks = 0
    bursts.end(touch)
    velocity.forget(touch)


@kernel
def begin_lease(settings: Record, touch: Record, session: int) -> None:
    """A session holds the device from now on, with the configured map and gains; the tool stays where it is."""
    drop_owner(touch)
    touch.owner = session
    touch.lease_left = settings.lease_ticks
    touch.stiffness = touch.stiffness_goal = settings.stiffness
    touch.damping = touch.damping_goal = settings.damping
    touch.scale = settings.scale
    put_vector(touch.anchor_position, (0.0, 0.0, 0.0))
    put_quaternion(touch.anchor_orientation, (0.0, 0.0, 0.0, 1.0))
    touch.rate_share = 1.0
    passivity.begin(touch)
