"""Where the other end of a link is: in this end's axes and scale, and offset to where the two count as together.

With the reflection M and the scale s a place of the other end is x = s M x_other + o. When the link comes up the offset
o makes that this end's own place, so that there is no step; it goes away at the larger ``align_speed``, or stays.

What is heard is old. Two ends that each took an offset of their own would disagree by the way that hands make
meanwhile, and push both for ever. So one of them decides (``peer.decides``) and comes up first; it tells its offset,
and the other one follows with the same, seen from there,

    o = -s M o_other        turns, from the right:  R_o = (M R_o_other M)^-1

and begins, by its ramp, with what its hand has moved meanwhile.
"""

from haptics.link_codes import UP, WAVES
from haptics.tables import Record
from rtcore.kernels import inner
from rtcore.spatial import (
    Quaternion,
    Vector,
    add,
    conjugate,
    from_rotation_vector,
    length,
    multiply,
    normalise,
    put_quaternion,
    put_vector,
    quaternion,
    rotation_vector,
    scaled,
    subtract,
    vector,
)

ARM = 0.1
"""m: at the end of such an arm turns are compared with ways."""


@inner
def reflected(settings: Record, v: Vector) -> Vector:
    """M v, of a way, a velocity or a force."""
    m = settings.mirror
    return m[0] * v[0], m[1] * v[1], m[2] * v[2]


@inner
def turned_over(settings: Record, v: Vector) -> Vector:
    """det(M) M v, of a rotation vector, an angular velocity or a torque."""
    m = settings.mirror
    sign = m[0] * m[1] * m[2]
    return sign * m[0] * v[0], sign * m[1] * v[1], sign * m[2] * v[2]


@inner
def reflected_turn(settings: Record, q: Quaternion) -> Quaternion:
    """M R M of the rotation R."""
    x, y, z = turned_over(settings, (q[0], q[1], q[2]))
    return x, y, z, q[3]


@inner
def mirror_axis(settings: Record) -> int:
    """Axis of the reflection: 1 x, 2 y, 3 z; 0: none."""
    axis = 0
    for k in range(3):
        if settings.mirror[k] < 0.0:
            axis = k + 1
    return axis


@inner
def map_other(settings: Record, link: Record, message: Record) -> None:
    """What the other end says, in this end's axes, without the offset."""
    put_vector(link.other_position, scaled(reflected(settings, vector(message.position)), settings.scale))
    put_quaternion(link.other_orientation, reflected_turn(settings, quaternion(message.orientation)))
    put_vector(link.other_twist[:3], scaled(reflected(settings, vector(message.twist[:3])), settings.scale))
    put_vector(link.other_twist[3:], turned_over(settings, vector(message.twist[3:])))
    put_vector(link.other_wrench[:3], scaled(reflected(settings, vector(message.wrench[:3])), 1.0 / settings.scale))
    put_vector(link.other_wrench[3:], turned_over(settings, vector(message.wrench[3:])))
    put_vector(link.wave_heard[:3], reflected(settings, vector(message.wave[:3])))
    put_vector(link.wave_heard[3:], turned_over(settings, vector(message.wave[3:])))


@inner
def shorter(v: Vector, by: float) -> Vector:
    """The vector, shortened by a length, to nothing at most."""
    size = length(v)
    return scaled(v, max(size - by, 0.0) / size) if size > 0.0 else v


@inner
def begin_offset(link: Record, port: Record) -> None:
    """The end that decides counts as being where the other one is."""
    put_vector(link.offset_position, subtract(vector(port.position), vector(link.other_position)))
    turn = multiply(conjugate(quaternion(link.other_orientation)), quaternion(port.orientation))
    put_quaternion(link.offset_orientation, normalise(turn))


@inner
def shrink_offset(settings: Record, link: Record, message: Record) -> None:
    """The ends come together, as fast as either wants. Waves draw nobody: with them the offset stays."""
    wanted = max(settings.align_speed, settings.scale * message.align_speed)
    closer = 0.0 if settings.method == WAVES else wanted * settings.dt
    put_vector(link.offset_position, shorter(vector(link.offset_position), closer))
    turn = shorter(rotation_vector(quaternion(link.offset_orientation)), closer / ARM)
    put_quaternion(link.offset_orientation, from_rotation_vector(turn))


@inner
def follow_offset(settings: Record, link: Record, message: Record) -> None:
    """The offset that the other end has told, seen from here."""
    told = reflected(settings, vector(message.offset_position))
    put_vector(link.offset_position, scaled(told, -settings.scale))
    turn = reflected_turn(settings, quaternion(message.offset_orientation))
    put_quaternion(link.offset_orientation, normalise(conjugate(turn)))


@inner
def add_offset(link: Record) -> None:
    """The offset of the other end, added to where it is."""
    put_vector(link.other_position, add(vector(link.other_position), vector(link.offset_position)))
    # From the right: a turn of the other end about an axis of the scene stays one about that axis.
    turn = quaternion(link.offset_orientation)
    put_quaternion(link.other_orientation, normalise(multiply(quaternion(link.other_orientation), turn)))


@inner
def lead_on(settings: Record, link: Record) -> None:
    """With a dead-band, where the other end has got to since it said something, at the velocity that it told."""
    ahead = min(link.silent_ticks, settings.keep_alive_ticks) * settings.dt
    way = scaled(vector(link.other_twist[:3]), ahead)
    put_vector(link.other_position, add(vector(link.other_position), way))


@inner
def place_other(settings: Record, link: Record, peer: Record, port: Record) -> None:
    """Write ``link.other_*``: what the other end says, as it counts here; and the offset, for as long as it is up."""
    message = peer.message
    map_other(settings, link, message)
    if peer.decides == 0:
        follow_offset(settings, link, message)
    elif link.state == UP:
        shrink_offset(settings, link, message)
    else:
        begin_offset(link, port)
    add_offset(link)
    if settings.dead_band > 0.0:
        lead_on(settings, link)
