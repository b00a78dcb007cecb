"""Engagement states, reason codes and command kinds: the vocabulary shared by tick, wire, log and documents."""

from enum import IntEnum


class EngagementState(IntEnum):
    """Where the owner's device stands between "read only" and "feels the scene"."""

    IDLE = 0
    """Nobody is engaged: the proxy follows the device, the wrench is zero."""
    ARMED = 1
    """The owner has asked for forces; waiting for a good sample (and the deadman when one is required)."""
    ENGAGING = 2
    """Gains ramp up."""
    ACTIVE = 3
    """Full gains."""
    HOLD = 4
    """The newest sample is late: the impedance stays, feed-forward decays."""
    RELEASING = 5
    """Gains ramp down to zero."""
    FAULT = 6
    """Forces are off until an explicit reset."""


_S = EngagementState

TRANSITIONS: dict[tuple[EngagementState, EngagementState], str] = {
    (_S.IDLE, _S.ARMED): "arm; or a clutch is let go before the device can engage again",
    (_S.IDLE, _S.ENGAGING): "a clutch that was pressed while engaged is let go",
    (_S.IDLE, _S.FAULT): "stop",
    (_S.ARMED, _S.IDLE): "disarm, release, clutch, hand-over, shutdown, lease expired, supervisor lost, or no good "
    "sample in time",
    (_S.ARMED, _S.ENGAGING): "a good sample near the tool or re-anchored, and the deadman where it is required",
    (_S.ARMED, _S.FAULT): "stop, or a wrench that was not finite",
    (_S.ENGAGING, _S.ACTIVE): "the ramp has ended",
    (_S.ENGAGING, _S.HOLD): "the newest good sample is late",
    (_S.ENGAGING, _S.RELEASING): "asked to: disarm, release, clutch, hand-over, stop, shutdown; let go: deadman; "
    "forced: stale, jump, not finite, lease expired, supervisor lost",
    (_S.ACTIVE, _S.HOLD): "the newest good sample is late",
    (_S.ACTIVE, _S.RELEASING): "as from ENGAGING",
    (_S.HOLD, _S.ENGAGING): "samples are back before the ramp has ended",
    (_S.HOLD, _S.ACTIVE): "samples are back",
    (_S.HOLD, _S.RELEASING): "as from ENGAGING",
    (_S.RELEASING, _S.IDLE): "the forces are off",
    (_S.RELEASING, _S.ARMED): "the same after the deadman was let go, after a hand-over, or after a tap on the clutch "
    "whose device cannot engage again at once",
    (_S.RELEASING, _S.ENGAGING): "the same after a tap on the clutch",
    (_S.RELEASING, _S.FAULT): "the same after stop, a jump or a wrench that was not finite",
    (_S.FAULT, _S.IDLE): "reset",
}
"""Every transition that there is, and what makes it."""


class Reason(IntEnum):
    """Why the engagement state changed, or why a command was refused."""

    NONE = 0
    COMMAND = 1
    """The owner asked for it."""
    STOP = 2
    """Somebody pressed stop."""
    DEADMAN_RELEASED = 3
    SAMPLE_LATE = 4
    """Older than the hold threshold."""
    SAMPLE_STALE = 5
    """Older than the stale horizon: the client is lost."""
    SAMPLE_FRESH = 6
    """Samples came back in time."""
    SAMPLE_REJECTED = 7
    """Stale, and what arrived meanwhile was malformed (NaN, non-unit quaternion, wrong version...)."""
    SAMPLE_INVALID = 8
    """The client itself marked the sample as not valid."""
    DEVICE_JUMP = 9
    """The device pose moved farther in one sample than the device can."""
    RAMP_DONE = 10
    CLUTCH = 11
    LEASE_RELEASED = 12
    LEASE_EXPIRED = 13
    SHUTDOWN = 14
    RESET = 15
    TOO_FAR = 16
    """Refused: the device is too far from the tool to engage without re-anchoring."""
    NOT_OWNER = 17
    """Refused: another session holds the lease, or none does."""
    LEASE_TAKEN = 18
    """Refused: another session holds the lease."""
    WRONG_STATE = 19
    """Refused: not possible in the present state."""
    BAD_VALUE = 20
    """Refused: a value is out of range."""
    NOT_FINITE = 21
    """A computed wrench was not finite; it was replaced by zero."""
    SUPERVISOR_LOST = 22
    HANDED_OVER = 23
    """The owner gave the lease to another session."""
    OUTSIDE_WORKSPACE = 24
    """The device is where its workspace does not reach; refused: it has to come back first."""


class CommandKind(IntEnum):
    """What the control channel can ask of a tick. One command at most is taken per tick."""

    NONE = 0
    LEASE = 1
    """Take the device: ``session`` becomes the owner."""
    RENEW = 2
    RELEASE = 3
    """Give the device back (releases forces first)."""
    ARM = 4
    """``values[0]``: 1 to re-anchor when the device is far from the tool, 0 to refuse."""
    DISARM = 5
    CLUTCH = 6
    """``values[0]``: 1 pressed (forces ramp down, the tool stays), 0 released (re-anchor and engage)."""
    SET_GAINS = 7
    """``values``: stiffness N/m, damping N·s/m at the device; capped by the card."""
    SET_SCALE = 8
    """``values[0]``: scene metres per device metre; only while clutched or idle."""
    STOP = 9
    """From anyone: release forces, then FAULT until RESET."""
    RESET = 10
    SHUTDOWN = 11
    """Release forces; the servo exits once IDLE or FAULT is reached."""
    POSE_BODY = 12
    """``values``: body id, position (3), orientation xyzw (4); held bodies only, only in IDLE."""
    VIBRATE = 13
    """``values``: amplitude N, frequency Hz, duration s, decay s (0: none), direction (3), device frame; while forces
    are on."""
    HAND_OVER = 14
    """``values``: the new owner's session, upper and lower 32 bits: no float holds all 64."""


class CommandResult(IntEnum):
    NONE = 0
    DONE = 1
    REFUSED = 2
