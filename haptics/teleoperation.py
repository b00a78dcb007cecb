"""The stages of a tick that belong to a link (:mod:`haptics.link`): its port is the device's image.

The port's frame has the scene's axes and the device's metres. So what it does is what the hand does, whatever scene its
tool touches; what surroundings do to the hand is the coupling's wrench, effects included. The link's wrench is added to
it before passivity controller, slew limit and saturation, and goes ahead of a local impedance.

Shared tool: the place that the tool is wanted at lies between the two hands, ``share`` of the way to the other. What
the scene does there is felt by each in proportion, as by two who hold a lever at its ends, so that no energy is made,
and the link's own law holds the hands together. None of that is in the ledger of waves or tanks: with delay the tool's
goal is partly where the other hand was, which they do not make passive.
"""

from haptics.codes import ACTIVE, ENGAGING, GOOD, HOLD
from haptics.coupling import freshness, image_velocity
from haptics.degrees import driven_torque
from haptics.link import hear, render, say_nothing
from haptics.link_codes import UP, WAVES
from haptics.tables import Record
from haptics.workspace import tip_lever, torque_to_device, vector_to_device
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Vector,
    add,
    conjugate,
    from_rotation_vector,
    multiply,
    normalise,
    put_quaternion,
    put_vector,
    quaternion,
    rotate,
    rotation_vector,
    scaled,
    subtract,
    vector,
)


@inner
def vector_to_scene(settings: Record, v: Vector) -> Vector:
    """A direction in device axes (force, way) in scene axes."""
    return rotate(quaternion(settings.workspace_orientation), v)


@inner
def torque_to_scene(settings: Record, touch: Record, torque: Vector) -> Vector:
    """A torque, or a rotation vector, in device axes in scene axes."""
    return rotate(quaternion(touch.anchor_orientation), vector_to_scene(settings, torque))


@inner
def told_turn(settings: Record, touch: Record, turn: Vector) -> Vector:
    """What the link is told of an angular velocity or a rotation vector (device axes), in scene axes.

    A line of waves is told of turns that the device can oppose by a torque. The others would take energy from the line
    that no hand has put in; what comes for them is sent back, as by a handle that stands still.
    """
    if settings.link.method == WAVES:
        if settings.torque_free != 0:
            return 0.0, 0.0, 0.0
        turn = driven_torque(settings, quaternion(touch.device_orientation), turn)
    return torque_to_scene(settings, touch, turn)


@inner
def book_rest(link: Record, port: Record) -> None:
    """Book the work of what the slew limit still held, or the last sample tells of, when the link's ramp has ended."""
    if link.state != UP and link.gain == 0.0:
        for k in range(6):
            link.credit -= port.applied[k] * port.moved[k]


@kernel
def hear_other(world: Record, settings: Record, touch: Record, taken: Record) -> None:
    """The stage before the mechanics: where the other end is, and where a shared tool is wanted."""
    if settings.link.on == 0:
        return
    port = touch.port
    engaged = touch.state == ENGAGING or touch.state == ACTIVE or touch.state == HOLD
    port.engaged = 1 if engaged and touch.clutched == 0 and touch.has_pose != 0 else 0
    put_vector(port.position, scaled(vector(touch.image_position), 1.0 / touch.scale))
    put_quaternion(port.orientation, quaternion(touch.image_orientation))
    hear(settings.link, touch.link, taken.peer, port)
    touch.shared = settings.link.share * touch.link.gain
    if touch.shared > 0.0:
        share_tool(world, touch)


@inner
def share_tool(world: Record, touch: Record) -> None:
    """Put the goal, and what the hand is coupled to, on the way from this hand to the other one."""
    here, there = quaternion(touch.image_orientation), quaternion(touch.link.other_orientation)
    turn = scaled(rotation_vector(multiply(there, conjugate(here))), touch.shared)
    orientation = normalise(multiply(from_rotation_vector(turn), here))
    way = subtract(vector(touch.link.other_position), vector(touch.port.position))
    place = add(vector(touch.image_position), scaled(way, touch.shared * touch.scale))
    tip = add(place, tip_lever(world, orientation))
    put_vector(touch.image_tip, tip)
    put_quaternion(touch.tip_orientation, orientation)
    put_vector(touch.goal.goal_position, tip)
    put_quaternion(touch.goal.goal_orientation, orientation)


@inner
def share_wrench(touch: Record, output: Record) -> None:
    """Leave to the other hand its share of what the scene does to the tool.

    The spring stands between tool and the place between the hands, which no adapter knows: all of it goes ahead.
    """
    own = 1.0 - touch.shared
    for k in range(6):
        output.coupling_wrench[k] *= own
        output.effects[k] *= own
        touch.conservative[k] *= own
        output.stiffness[k] = 0.0
        output.damping[k] = 0.0
        output.feed_forward[k] = output.coupling_wrench[k] if k < 3 else 0.0


@kernel
def feel_other(settings: Record, touch: Record, output: Record) -> None:
    """The stage behind the coupling: the link's wrench, and what the other end is told."""
    if settings.link.on == 0:
        say_nothing(output.link)
        return
    if touch.shared > 0.0:
        share_wrench(touch, output)
    port = touch.port
    port.fresh = freshness(settings, touch.age_ns)
    put_vector(port.twist[:3], scaled(image_velocity(settings, touch), 1.0 / touch.scale))
    turning = (0.0, 0.0, 0.0)
    if touch.clutched == 0:
        turning = told_turn(settings, touch, vector(touch.angular_velocity))
    put_vector(port.twist[3:], turning)
    moved = touch.sample_kind == GOOD
    for k in range(6):
        port.moved[k] = touch.moved[k] if moved else 0.0
    put_vector(port.moved[:3], vector_to_scene(settings, vector(port.moved[:3])))
    put_vector(port.moved[3:], told_turn(settings, touch, vector(port.moved[3:])))
    put_vector(port.applied[:3], vector_to_scene(settings, vector(touch.held_link[:3])))
    put_vector(port.applied[3:], torque_to_scene(settings, touch, vector(touch.held_link[3:])))
    put_vector(port.wrench[:3], vector_to_scene(settings, vector(output.coupling_wrench[:3])))
    put_vector(port.wrench[3:], torque_to_scene(settings, touch, vector(output.coupling_wrench[3:])))
    book_rest(touch.link, port)
    render(settings.link, touch.link, port, output.link)
    force = vector_to_device(settings, vector(output.link.wrench[:3]))
    torque = (0.0, 0.0, 0.0)
    if settings.torque_free == 0:
        turned = quaternion(touch.device_orientation)
        torque = driven_torque(settings, turned, torque_to_device(settings, touch, vector(output.link.wrench[3:])))
    if settings.actuated == 0:
        force = (0.0, 0.0, 0.0)
    put_vector(output.link.wrench[:3], force)
    put_vector(output.link.wrench[3:], torque)
    output.link.shared = touch.shared
    for k in range(6):
        output.coupling_wrench[k] += output.link.wrench[k]
        touch.conservative[k] += output.link.wrench[k]
        if k < 3:
            output.feed_forward[k] += output.link.wrench[k]
