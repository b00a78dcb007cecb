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


class CommandResult(IntEnum):
    NONE = 0
    DONE = 1
    REFUSED = 2
