"""Vocabulary of links between two ends (:mod:`haptics.link`): laws, methods, states and reasons.

The numbers stand in LINK_SETTINGS, in PEER messages, in records and in logs. Kernels take them as plain integers, which
is what stands below the classes.
"""

from enum import IntEnum

POSITION_POSITION = 1
"""Each end pulls its hand towards the other's; what a hand feels is that spring."""
POSITION_FORCE_LEADER = 2
"""This end leads the other and feels what the other's surroundings do to it."""
POSITION_FORCE_FOLLOWER = 3
"""This end is pulled after the other, which gets its wrench."""
FOUR_CHANNEL = 4
"""Poses and wrenches in both directions."""

LAWS = {
    "position-position": POSITION_POSITION,
    "position-force": POSITION_FORCE_LEADER,
    "four-channel": FOUR_CHANNEL,
}
"""By what the configuration calls them; the follower's end of position-force is POSITION_FORCE_FOLLOWER."""

ROLES = {"leader": POSITION_FORCE_LEADER, "follower": POSITION_FORCE_FOLLOWER}
"""The two ends of position-force."""

COUNTERPART = (0, POSITION_POSITION, POSITION_FORCE_FOLLOWER, POSITION_FORCE_LEADER, FOUR_CHANNEL)
"""The law that belongs at the other end, by the number of one's own; 0 is none."""

MISFIT = 1e-3
"""By how much the product of two scales, and the sum of two shares, may differ from 1: people write 0.333 and 3."""

NONE = 0
"""Nothing keeps the link passive."""
WAVES = 1
"""Wave variables: whatever the delay, no end gives more than the other has sent."""
TANK = 2
"""Energy tanks: an end gives what its tank holds and no more."""

METHODS = {"none": NONE, "waves": WAVES, "tank": TANK}
"""By what the configuration calls them."""


LET_GO = 0
"""What an end says of itself (PEER.active): there are no forces at it."""
FELT = 1
"""Its hand is felt, or would be as far as it is concerned."""
KEPT_APART = 2
"""It has forces, but the two were too far apart, and neither has let go of them since."""
KEPT_BACK = 3
"""It has forces, but cannot be up for another reason: silence, a mismatch, a number that is none."""
LINKED = 4
"""Its hand is felt, and the link is up at it: by the offset that it tells."""


class LinkState(IntEnum):
    """Whether the two ends feel each other."""

    OFF = 0
    """No link is configured."""
    WAITING = 1
    """Nothing has come from the other end yet, or one of the two is not engaged."""
    UP = 2
    """Both ends feel each other."""
    LOST = 3
    """It was up and has been let go."""


class LinkReason(IntEnum):
    """Why a link is not up."""

    NONE = 0
    """It is up."""
    NOT_ENGAGED = 1
    """No forces at this end."""
    OTHER_NOT_ENGAGED = 2
    """No forces at the other end, or the link is not up there yet."""
    SILENT = 3
    """Nothing has come for the stale time."""
    APART = 4
    """The two ends were farther apart than distance_max, and neither has let go of its forces since."""
    MISMATCH = 5
    """The ends are configured with methods, impedances, laws, scales, mirrors or shares that do not belong together."""
    NOT_FINITE = 6
    """A number of the other end, or of the link's own force, was not finite."""


OFF = int(LinkState.OFF)
WAITING = int(LinkState.WAITING)
UP = int(LinkState.UP)
LOST = int(LinkState.LOST)

NO_REASON = int(LinkReason.NONE)
NOT_ENGAGED = int(LinkReason.NOT_ENGAGED)
OTHER_NOT_ENGAGED = int(LinkReason.OTHER_NOT_ENGAGED)
SILENT = int(LinkReason.SILENT)
APART = int(LinkReason.APART)
MISMATCH = int(LinkReason.MISMATCH)
NOT_FINITE = int(LinkReason.NOT_FINITE)
