"""Degrees of freedom: what a device senses of a pose and of a turning, and what it can render of a torque.

    3   position; force
    5   position and where its handle points; force, and torque across the handle's own axis. The roll about that axis
        is neither sensed nor driven: a pen without a roll encoder, or a rod whose two ends are held by strings (Redon
        2002, 6.4: no turning about the line through the two points)
    6   all of it
    0   (driven only) nothing: an input device

What a device does not sense stays as it was: of three degrees the orientation, of five the roll. The roll is carried
along without spin, each time by the shortest turn that takes the old pointing to the new one, so that the tool never
turns about the one axis about which no torque is rendered. Before the first pose of a lease "as it was" is the
orientation of the tool, so taking the device turns nothing by more than it points elsewhere.

The torque that the coupling wants has no part about the axis. In what is sent the slew limit may leave a trace of one
where the axis has turned since the last tick; it does no work, as the device does not turn about the axis.

Force needs no mask: whoever drives anything drives three degrees of it.
"""

from haptics.tables import Record
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Quaternion,
    Vector,
    cross,
    dot,
    multiply,
    normalise,
    rotate,
    scaled,
    subtract,
    tangents,
    vector,
)

SENSED = (3, 5, 6)
"""What a device may sense."""
DRIVEN = (0, 3, 5, 6)
"""What a device may drive, never more than it senses."""

OPPOSITE = 1e-12
"""1 plus the cosine of the angle between two directions that count as opposite: there is no shortest turn then."""


@kernel
def across(axis: Vector, v: Vector) -> Vector:
    """The part of v that is square to a unit axis."""
    return subtract(v, scaled(axis, dot(axis, v)))


@kernel
def pointed(orientation: Quaternion, axis: Vector, direction: Vector) -> Quaternion:
    """An orientation turned by the shortest turn that makes its own ``axis`` point along ``direction`` (both unit).

    The turn has no part about the axis itself. Half a turn, for the opposite direction, is about any axis across.
    """
    now = rotate(orientation, axis)
    turn = cross(now, direction)
    share = 1.0 + dot(now, direction)
    if share < OPPOSITE:
        turn, share = tangents(now)[0], 0.0
    return normalise(multiply(normalise((turn[0], turn[1], turn[2], share)), orientation))


@kernel
def sensed_orientation(settings: Record, before: Quaternion, sent: Quaternion) -> Quaternion:
    """What the device's orientation is, from what it was and what a sample says (device frame)."""
    if settings.sensed == 6:
        return sent
    if settings.sensed == 5:
        axis = vector(settings.axis)
        return pointed(before, axis, rotate(sent, axis))
    return before


@inner
def _left(degrees: int, settings: Record, orientation: Quaternion, v: Vector) -> Vector:
    """What so many degrees of freedom leave of an angular velocity or a torque (device frame)."""
    if degrees == 6:
        return v
    if degrees == 5:
        return across(rotate(orientation, vector(settings.axis)), v)
    return 0.0, 0.0, 0.0


@kernel
def sensed_turning(settings: Record, orientation: Quaternion, turning: Vector) -> Vector:
    """What the device senses of an angular velocity (device frame, rad/s)."""
    return _left(settings.sensed, settings, orientation, turning)


@kernel
def driven_torque(settings: Record, orientation: Quaternion, torque: Vector) -> Vector:
    """What the device can render of a torque (device frame, N·m)."""
    return _left(settings.actuated, settings, orientation, torque)


def without_roll(orientation: Quaternion, axis: Vector) -> Quaternion:
    """What is left of an orientation for whoever sees only where its unit ``axis`` points: the shortest turn there."""
    return pointed((0.0, 0.0, 0.0, 1.0), axis, rotate(orientation, axis))
