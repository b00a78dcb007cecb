"""The one schema table of the 1 kHz messages, and the constants of the wire.

Codec (:mod:`bridge.wire`), client library and ``docs/protocol.md`` are all made from what stands here.
"""

from dataclasses import dataclass

from haptics.tables import MAX_PLANES

PROTOCOL_VERSION = 1

STRUCT_MARK = 0xC1
"""First byte of a fixed-struct message: the one byte that msgpack never uses."""

MAX_MESSAGE_BYTES = 4096
"""Anything longer is refused before decoding."""

MAX_NESTING = 4
MAX_ITEMS = 64
"""Entries of one map or array in a message."""

MAX_TEXT = 256
"""Bytes of one text."""

REPLY_MAX_BYTES = 1 << 20
"""What a daemon sends on the control, state and events sockets may be larger: lists of bodies, tick records."""

REPLY_MAX_ITEMS = 1 << 16
REPLY_MAX_NESTING = 8
REPLY_MAX_TEXT = 1 << 16

QUATERNION_TOLERANCE = 1e-3
"""A quaternion's norm may differ from 1 by this much; it is normalised on receipt."""

MAX_COORDINATE = 1e3
"""Largest magnitude of a position coordinate in a sample, m: no device is so large, and its square cannot overflow."""

MAX_RATE = 1e3
"""Largest magnitude of a twist component in a sample, m/s or rad/s."""

MAX_TIME = 1 << 62
"""``t_sample`` is below this, so that differences of times never overflow, ns."""

MAX_WRENCH = 1e4
"""Largest magnitude of a wrench component in a peer message, N or N·m."""

MAX_CARRIED = 1e9
"""Largest magnitude of what adds up over a link's session: integrals of waves, sqrt(W) s, and energies, J."""

MAX_IMPEDANCE = 1e6
"""Largest impedance of waves, N·s/m or N·m·s/rad."""

MAX_SCALE = 1e3
"""Largest scale in a peer message."""

MAX_OFFSET = MAX_COORDINATE * (1.0 + MAX_SCALE)
"""Largest magnitude of an offset between two places, one of them scaled, m."""

MAX_LAW = 4
"""Largest code of a law in a peer message."""

MAX_MIRROR = 3
"""Largest code of an axis in a peer message."""

MAX_METHOD = 2
"""Largest code of a method in a peer message."""

MAX_ACTIVE = 4
"""Largest code of what an end says of itself in a peer message."""


@dataclass(frozen=True)
class Field:
    """One field of a 1 kHz message."""

    name: str
    """Key in the msgpack map."""
    kind: str
    """Little-endian numpy code of one item in the fixed struct: ``u1 u2 u4 u8 i8 f8``."""
    count: int
    """Items: 1 is a scalar, more is an array."""
    unit: str
    doc: str
    optional: bool = False
    """May be absent from the map; the struct has a bit for it in its ``present`` word."""


SAMPLE_FIELDS: tuple[Field, ...] = (
    Field("session", "u8", 1, "", "session id from the `hello` reply; must be the lease owner's"),
    Field("seq", "u8", 1, "", "strictly increasing within a session"),
    Field("t_sample", "i8", 1, "ns", "when the pose was measured, client's monotonic clock"),
    Field("position", "f8", 3, "m", "device pose, position of the coupling point"),
    Field("orientation", "f8", 4, "", "device pose, quaternion [x, y, z, w]; norm within 1e-3 of 1"),
    Field("twist", "f8", 6, "m/s, rad/s", "[linear, angular]; the servo estimates it when absent", optional=True),
    Field("buttons", "u4", 1, "", "bit mask, bit 0 is the main button", optional=True),
    Field("deadman", "u1", 1, "", "1 while the hand is known to be on the device", optional=True),
    Field("valid", "u1", 1, "", "0: the device says that this pose must not be used", optional=True),
)
"""client -> servo, message kind 1. Absent `valid` means 1; absent `deadman` and `buttons` mean not pressed."""

RENDER_FIELDS: tuple[Field, ...] = (
    Field("seq", "u8", 1, "", "the sample this render answers"),
    Field("tick", "u8", 1, "", "number of the tick"),
    Field("t_received", "i8", 1, "ns", "arrival of that sample, servo clock"),
    Field("t_sent", "i8", 1, "ns", "departure of this render, servo clock"),
    Field("wrench", "f8", 6, "N, N·m", "what a plain client applies: saturated, slew-limited"),
    Field("proxy_position", "f8", 3, "m", "impedance: where the spring pulls the coupling point"),
    Field("proxy_orientation", "f8", 4, "", "impedance: proxy pose, [x, y, z, w]"),
    Field("proxy_twist", "f8", 6, "m/s, rad/s", "impedance: proxy twist"),
    Field("stiffness", "f8", 6, "N/m, N·m/rad", "impedance: diagonal K, ramp included"),
    Field("damping", "f8", 6, "N·s/m, N·m·s/rad", "impedance: diagonal B, ramp included"),
    Field("feed_forward", "f8", 6, "N, N·m", "impedance: added to the spring"),
    Field("valid_for", "i8", 1, "ns", "use the impedance no longer than this after t_sent"),
    Field("gap", "f8", 1, "m", "smallest distance from the tip to a surface; -1 when none is near"),
    Field("state", "u1", 1, "", "engagement state, see the table of states"),
    Field("reason", "u1", 1, "", "reason of the last transition, see the table of reasons"),
    Field("degraded", "u1", 1, "", "bits: what of the tick was cut short"),
    Field(
        "limited",
        "u1",
        1,
        "",
        "bits: 1 saturated, 2 slew-limited, 4 not finite, 8 not engaged, 16 passivity damps, 32 slow samples",
    ),
    Field("slack", "f8", 3, "m", "impedance: part of the spring's stretch that no plane holds"),
    Field("planes", "f8", 4 * MAX_PLANES, "m", "impedance: n, c of each plane of the contacts; unused ones are zero"),
    Field("plane_count", "u1", 1, "", "impedance: planes that are there"),
    Field("pinned", "u1", 1, "", "impedance: 1 where the proxy is to be taken at proxy_position, without planes"),
)
"""servo -> client, message kind 2."""

PEER_FIELDS: tuple[Field, ...] = (
    Field("session", "u8", 1, "", "random, of the sender's start"),
    Field("seq", "u8", 1, "", "counts what was sent, from 1: gaps are losses"),
    Field("t_sent", "i8", 1, "ns", "when it left, sender's monotonic clock"),
    Field("t_echo", "i8", 1, "ns", "`t_sent` of the newest message that the sender had got, 0 for none"),
    Field("t_held", "i8", 1, "ns", "how long the sender had had it"),
    Field("begun", "u8", 1, "", "how often the link has come up at the sender"),
    Field("position", "f8", 3, "m", "of the sender's hand: its image, scene axes, device metres"),
    Field("orientation", "f8", 4, "", "of the same, quaternion [x, y, z, w]; norm within 1e-3 of 1"),
    Field("twist", "f8", 6, "m/s, rad/s", "[linear, angular], scene axes, device metres"),
    Field("wrench", "f8", 6, "N, N·m", "what the sender's surroundings do to its hand, scene axes"),
    Field("wave", "f8", 6, "sqrt(W) s", "integral of the wave that it sends, scene axes"),
    Field("wave_energy", "f8", 1, "J", "what that wave has carried since the session began"),
    Field("energy", "f8", 1, "J", "what the sender's tank has handed over since the session began"),
    Field("impedance", "f8", 2, "N·s/m, N·m·s/rad", "of its waves"),
    Field("scale", "f8", 1, "", "metres at the sender per metre at the receiver"),
    Field("share", "f8", 1, "", "of the receiver's hand in where the sender's tool is to go"),
    Field(
        "offset_position", "f8", 3, "m", "what the sender adds to the receiver's place, in the sender's axes and scale"
    ),
    Field("offset_orientation", "f8", 4, "", "the same of its orientation, from the right; norm within 1e-3 of 1"),
    Field("align_speed", "f8", 1, "m/s", "at which the sender would have the two come together"),
    Field("method", "u1", 1, "", "0 none, 1 waves, 2 tank"),
    Field(
        "active",
        "u1",
        1,
        "",
        "0 no forces at the sender, 1 its hand is felt, 2 it was too far away, 3 it cannot be up otherwise, 4 it is up",
    ),
    Field("law", "u1", 1, "", "1 position-position, 2 leader and 3 follower of position-force, 4 four-channel"),
    Field("mirror", "u1", 1, "", "axis of the reflection: 1 x, 2 y, 3 z; 0 none"),
)
"""end of a link -> other end, message kind 3; only as a struct."""

KIND_SAMPLE = 1
KIND_RENDER = 2
KIND_PEER = 3
KIND_PEER_HELLO = 4
"""A header and nothing else: whoever sends it asks for the peer messages of an end that has not heard of it."""


class Reject:
    """Why a message on the device or peer socket was refused. Refused messages change nothing and are counted."""

    NONE = 0
    TOO_LONG = 1
    MALFORMED = 2
    """Neither a known struct nor a msgpack map within the caps."""
    VERSION = 3
    KIND = 4
    MISSING_FIELD = 5
    WRONG_TYPE = 6
    NOT_FINITE = 7
    NOT_UNIT = 8
    NOT_OWNER = 9
    SEQUENCE = 10
    """seq did not increase."""
    OUT_OF_RANGE = 11
    UNKNOWN_FIELD = 12
    """A key that the table does not have: a misspelt optional field must not pass as absent."""
    SECOND_PEER = 13
    """Another end is linked already, and has not been silent for the stale time."""
    OWN_MESSAGE = 14
    """An end got what it had sent itself: it is linked to itself."""


CONTROL_ERRORS: dict[str, str] = {
    "too_large": "the message, a map, an array or a text is larger than allowed",
    "too_deep": "maps and arrays are nested too deep",
    "malformed": "not a msgpack map with text keys, each key once, and nothing after it",
    "not_finite": "a number is NaN or infinite",
    "version": "`v` is absent or a version that this daemon does not speak",
    "unknown_op": "`op` is absent or not an operation",
    "bad_request": "a field is absent, unknown or of the wrong type",
    "bad_value": "a value is out of range",
    "bad_session": "`session` was not given out by `hello` of this daemon",
    "not_owner": "another session holds the lease, or none does",
    "lease_taken": "another session holds the lease",
    "wrong_state": "not possible in the present engagement state",
    "too_far": "the device is too far from the tool to engage without re-anchoring",
    "outside_workspace": "the device says that it is where its workspace does not reach",
    "busy": "too many requests wait; try again",
    "timeout": "the servo did not take the command in time",
    "stopping": "the daemon is shutting down",
}
"""Codes in the ``error`` of a refused control request."""

CONTROL_OPERATIONS = (
    "hello",
    "describe",
    "status",
    "lease",
    "renew",
    "release",
    "hand_over",
    "arm",
    "disarm",
    "clutch",
    "set",
    "vibrate",
    "pose_body",
    "stop",
    "reset",
    "shutdown",
)
