"""Virtual coupling: a spring-damper between the device's image and the tool, in SI units at the device.

    stretch d = R^T (x_tool - x_image) / scale              (device axes, m at the device)
    force     = (K |d| + damper) d / |d|,    damper = B (v_tool - v_image) . d / |d|   held within +-K |d|

The force is the same in scene and device, so the spring felt in the scene is K / scale (the rule of CHAI3D's device
limits). The damper acts along the stretch only. Held within the spring's force it can never make the total pull (a
wall is not sticky), it fades in from zero at touch-down, and it does nothing while the tool follows freely (d = 0).
The stretch includes the tangential part that friction holds back, and so does the force.

The damped law is for who wants a calmer hand (Redon 2002, 6.5): ``force = K d - B v_image``, in all directions and
always, within slew limit and saturation only. It drags in free motion, by B newtons per m/s, and walls hold a little.

The constraint law feels of d only what contacts and hard fixtures hold (:mod:`haptics.constraint`): that takes the
place of d in force, damper and the lever's torque. A tool at rest feels the same as by the spring; one that lags, the
less.

The tip's force on its lever about the coupling point makes the torque. A tool mesh, which surfaces keep from turning
too, adds a rotational spring between its orientation and the image's: a torque of K_r times the angle about the axis of
the turn from the image to the tool (the logarithm of the rotation), which is the spring that the mechanics balance. At
half a turn the shorter way changes sides, so the torque goes to zero before it: it grows up to the card's torque_max at
most, and falls linearly over the last 20 degrees. It is a function of the angle alone, hence has a potential, and a
turn all the way round gives back what it took. Angles are the same in scene and device. A torque is no spring of the
rendered impedance but its feed-forward, which is the torque that may be sent (:mod:`haptics.limits`). In HOLD torque
and damper decay, linearly, to zero at the stale horizon; the spring of the force stays.

A device gets what it drives (:mod:`haptics.degrees`): of five degrees the torque across its handle's axis, of three no
torque, but when asked a force in its place (:mod:`haptics.sphere`), and an input device nothing, though the spring
pulls the tool after it as ever.

An adapter that closes the loop itself gets K (the ramp included), the place that is by the stretch away from the device
(by the law "spring" that of the tool's coupling point, if the tool is turned as its image is), the tool's orientation
and twist in the device frame, and B only while a contact or a fixture holds the tool back; a diagonal cannot say "along
the stretch", so it should hold the damper within the spring's force as above.
"""

import math

from haptics.codes import CONSTRAINT, DAMPED
from haptics.constraint import held_stretch
from haptics.degrees import driven_torque
from haptics.sphere import sphere_force
from haptics.tables import Record
from haptics.workspace import (
    orientation_to_device,
    position_to_device,
    tip_lever,
    torque_to_device,
    vector_to_device,
)
from rtcore.collision.gather import pushes
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Vector,
    add,
    conjugate,
    cross,
    dot,
    length,
    multiply,
    put_quaternion,
    put_vector,
    quaternion,
    rotate,
    rotation_vector,
    scaled,
    subtract,
    vector,
)
from rtcore.tables import DEGRADED_NUMBERS

TAPER = math.radians(20.0)
"""Before half a turn: where the rotational spring lets go. Shorter would make a steeper, unstable fall."""


@kernel
def damper(stiffness: float, damping: float, stretch: float, rate: float) -> float:
    """Damping force (N) along a stretch (m, >= 0) that grows at ``rate`` (m/s): within the spring's force."""
    spring = stiffness * stretch
    return min(max(damping * rate, -spring), spring)


@inner
def image_velocity(settings: Record, touch: Record) -> Vector:
    """Velocity of the image's coupling point (scene, m/s): zero while clutched, since the image stands still."""
    if touch.clutched != 0 or touch.has_pose == 0:
        return 0.0, 0.0, 0.0
    return scaled(rotate(quaternion(settings.workspace_orientation), vector(touch.velocity)), touch.scale)


@inner
def wanted_velocity(settings: Record, touch: Record) -> Vector:
    """Velocity of where the tool is wanted (scene, m/s): the image's, or what lies between two hands that share it."""
    own = image_velocity(settings, touch)
    if touch.shared == 0.0:
        return own
    other = scaled(vector(touch.link.other_twist[:3]), touch.scale)
    return add(own, scaled(subtract(other, own), touch.shared))


@inner
def tool_velocity(touch: Record) -> Vector:
    """Velocity of the tool's coupling point (scene, m/s): zero while clutched, without waiting for the estimator."""
    if touch.clutched != 0:
        return 0.0, 0.0, 0.0
    return vector(touch.proxy_velocity)


@kernel
def turning_torque(stiffness: float, largest: float, angle: float) -> float:
    """Torque (N·m) of the rotational spring at an angle (rad, 0..pi).

    K_r angle up to ``largest`` (0: no limit), then constant, and linear to zero within TAPER of half a turn.
    """
    top = stiffness * (math.pi - TAPER)
    if largest > 0.0:
        top = min(top, largest)
    return min(stiffness * angle, top, top * max(math.pi - angle, 0.0) / TAPER)


@inner
def turning_back(proxy: Record, settings: Record, touch: Record) -> Vector:
    """Torque (scene, N·m) of the rotational spring between a tool mesh and the image of the device."""
    turn = multiply(quaternion(proxy.orientation), conjugate(quaternion(touch.tip_orientation)))
    way = rotation_vector(turn)
    angle = length(way)
    rotational = settings.rotational_stiffness * touch.rate_share
    if angle == 0.0:
        return 0.0, 0.0, 0.0
    return scaled(way, turning_torque(rotational, settings.torque_max, angle) / angle)


@kernel
def held_back(world: Record, report: Record) -> bool:
    """Whether any contact pushes the tool, or something is in the way of a tool mesh."""
    held = world.tool_mesh_id >= 0 and report.fraction < 1.0
    for i in range(report.contact_count):
        held = held or pushes(report.contacts[i])
    return held


@inner
def freshness(settings: Record, age_ns: int) -> float:
    """1 for a sample in time, falling to 0 at the stale horizon."""
    if age_ns <= settings.hold_after_ns:
        return 1.0
    if age_ns >= settings.stale_after_ns:
        return 0.0
    return (settings.stale_after_ns - age_ns) / (settings.stale_after_ns - settings.hold_after_ns)


@inner
def felt_stretch(world: Record, proxy: Record, settings: Record, touch: Record, report: Record) -> Vector:
    """The way (scene, m) from the image to the tool, or by the constraint law what constraints hold of it."""
    apart = subtract(vector(proxy.position), vector(touch.image_tip))
    if settings.law == CONSTRAINT and touch.clutched == 0:
        return held_stretch(world, touch, report, apart)
    return apart


@inner
def stretching(settings: Record, touch: Record, stretch: Vector, size: float) -> float:
    """Rate (device m/s) at which a stretch (device frame, m) of that size > 0 grows."""
    relative = vector_to_device(settings, subtract(tool_velocity(touch), wanted_velocity(settings, touch)))
    return dot(relative, stretch) / (size * touch.scale)


@kernel
def couple(world: Record, proxy: Record, settings: Record, touch: Record, output: Record) -> None:
    """The stage: coupling wrench (device frame, about the coupling point) and the impedance behind it."""
    tip = vector(proxy.position)
    apart = felt_stretch(world, proxy, settings, touch, output.report)
    # The image's coupling point and the stretch: a tool that is turned off its image has its own elsewhere.
    reached = add(subtract(vector(touch.image_tip), tip_lever(world, quaternion(touch.tip_orientation))), apart)
    stretch = scaled(vector_to_device(settings, apart), 1.0 / touch.scale)
    fresh = freshness(settings, touch.age_ns)
    velocity = wanted_velocity(settings, touch)
    tool = tool_velocity(touch)
    size = length(stretch)
    stiffness = touch.stiffness * touch.rate_share
    spring = scaled(stretch, stiffness)
    drag = (0.0, 0.0, 0.0)
    damping = 0.0
    if settings.law == DAMPED:
        drag = scaled(vector_to_device(settings, velocity), -fresh * touch.damping / touch.scale)
    elif size > 0.0:
        rate = stretching(settings, touch, stretch, size)
        drag = scaled(stretch, fresh * damper(stiffness, touch.damping, size, rate) / size)
    force = add(spring, drag)
    blocked = held_back(world, output.report)
    if blocked or touch.led != 0 or settings.law == DAMPED:
        damping = fresh * touch.damping
    torque = (0.0, 0.0, 0.0)
    springing = (0.0, 0.0, 0.0)
    instead = (0.0, 0.0, 0.0)
    if settings.torque_free == 0 or settings.sphere > 0.0:
        # Work at the device counts device metres, so the lever is divided by the scale like every length.
        orientation = quaternion(touch.tip_orientation)
        lever = scaled(tip_lever(world, orientation), 1.0 / touch.scale)
        frame = quaternion(settings.workspace_orientation)
        sprung, levered = cross(lever, rotate(frame, spring)), cross(lever, rotate(frame, force))
        back = (0.0, 0.0, 0.0)
        if world.tool_mesh_id >= 0:
            back = turning_back(proxy, settings, touch)
        turned = quaternion(touch.device_orientation)
        springing = scaled(torque_to_device(settings, touch, add(sprung, back)), fresh)
        torque = scaled(torque_to_device(settings, touch, add(levered, back)), fresh)
        if settings.torque_free == 0:
            springing = driven_torque(settings, turned, springing)
            torque = driven_torque(settings, turned, torque)
        else:
            spring = add(spring, sphere_force(settings, touch.scale, turned, springing))
            instead = sphere_force(settings, touch.scale, turned, torque)
            force = add(force, instead)
            springing = torque = (0.0, 0.0, 0.0)
    if settings.actuated == 0:
        force = spring = (0.0, 0.0, 0.0)
        stiffness = 0.0
        damping = 0.0

    put_vector(output.device_position, vector(touch.image_tip))
    put_quaternion(output.device_orientation, quaternion(touch.tip_orientation))
    put_vector(output.device_velocity, velocity)
    output.velocity_delay_s = touch.velocity_delay_s
    put_vector(output.proxy_position, tip)
    put_quaternion(output.proxy_orientation, quaternion(proxy.orientation))
    put_vector(output.render_position, position_to_device(settings, touch, reached))
    put_quaternion(output.render_orientation, orientation_to_device(settings, touch, quaternion(proxy.orientation)))
    moving = scaled(vector_to_device(settings, tool), 1.0 / touch.scale)
    if settings.law == DAMPED:
        moving = (0.0, 0.0, 0.0)
    turning = vector(touch.angular_velocity)
    if touch.clutched != 0:
        # The anchor follows the device, so in the device frame the standing tool moves with it.
        moving = add(moving, vector(touch.velocity))
    elif blocked and world.tool_mesh_id >= 0:
        turning = (0.0, 0.0, 0.0)
    if output.report.degraded & DEGRADED_NUMBERS != 0:
        # What the mechanics have no number for has no force either, which ends in FAULT.
        force = (math.nan, math.nan, math.nan)
    for k in range(3):
        touch.conservative[k] = spring[k]
        touch.conservative[3 + k] = springing[k]
        output.coupling_wrench[k] = force[k]
        output.coupling_wrench[3 + k] = torque[k]
        output.render_twist[k] = moving[k]
        output.render_twist[3 + k] = turning[k]
        output.stiffness[k] = touch.gain * stiffness
        output.stiffness[3 + k] = 0.0
        output.damping[k] = touch.gain * damping
        output.damping[3 + k] = 0.0
        output.feed_forward[k] = instead[k]
        output.feed_forward[3 + k] = 0.0
