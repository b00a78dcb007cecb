"""The stages of a tick that belong to a link (:mod:`haptics.link`): its port is the device's image.

The port's frame has the scene's axes and the device's metres. So what it does is what the hand does, whatever scene its
tool touches; what surroundings do to the hand is the coupling's wrench, effects included. The link's wrench is added to
it before passivity controller, slew limit and saturation, and goes ahead of a local impedance.

Shared tool: the place that the tool is wanted at lies between the two hands, ``share`` of the way to the other. What
the scene does there is felt by each in proportion, as by two who hold a lever at its ends, so that no energy is made,
and the link's own law holds the hands together.
"""

from haptics.codes import ACTIVE, ENGAGING, GOOD, HOLD
from haptics.coupling import freshness, image_velocity
from haptics.degrees import driven_torque
from haptics.link import hear, render
from haptics.tables import Record
from haptics.workspace import torque_to_device, vector_to_device
from rtcore.kernels import inner, kernel
from rtcore.spatial import Vector, put_quaternion, put_vector, quaternion, rotate, scaled, vector


@inner
def vector_to_scene(settings: Record, v: Vector) -> Vector:
    """A direction in device axes (force, way) in scene axes."""
    return rotate(quaternion(settings.workspace_orientation), v)


@inner
def torque_to_scene(settings: Record, touch: Record, torque: Vector) -> Vector:
    """A torque, or a rotation vector, in device axes in scene axes."""
    return rotate(quaternion(touch.anchor_orientation), vector_to_scene(settings, torque))


@kernel
def hear_other(settings: Record, touch: Record, taken: Record) -> None:
    """The stage before the mechanics: where the other end is."""
    if settings.link.on == 0:
        return
    port = touch.port
    engaged = touch.state == ENGAGING or touch.state == ACTIVE or touch.state == HOLD
    port.engaged = 1 if engaged and touch.clutched == 0 and touch.has_pose != 0 else 0
    put_vector(port.position, scaled(vector(touch.image_position), 1.0 / touch.scale))
    put_quaternion(port.orientation, quaternion(touch.image_orientation))
    hear(settings.link, touch.link, taken.peer, port)


@kernel
def feel_other(settings: Record, touch: Record, output: Record) -> None:
    """The stage behind the coupling: the link's wrench, and what the other end is told."""
    if settings.link.on == 0:
        return
    port = touch.port
    port.fresh = freshness(settings, touch.age_ns)
    put_vector(port.twist[:3], scaled(image_velocity(settings, touch), 1.0 / touch.scale))
    turning = (0.0, 0.0, 0.0)
    if touch.clutched == 0:
        turning = torque_to_scene(settings, touch, vector(touch.angular_velocity))
    put_vector(port.twist[3:], turning)
    moved = touch.sample_kind == GOOD
    for k in range(6):
        port.moved[k] = touch.moved[k] if moved else 0.0
    put_vector(port.moved[:3], vector_to_scene(settings, vector(port.moved[:3])))
    put_vector(port.moved[3:], torque_to_scene(settings, touch, vector(port.moved[3:])))
    put_vector(port.applied[:3], vector_to_scene(settings, vector(touch.link_sent[:3])))
    put_vector(port.applied[3:], torque_to_scene(settings, touch, vector(touch.link_sent[3:])))
    put_vector(port.wrench[:3], vector_to_scene(settings, vector(output.coupling_wrench[:3])))
    put_vector(port.wrench[3:], torque_to_scene(settings, touch, vector(output.coupling_wrench[3:])))
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
    for k in range(6):
        output.coupling_wrench[k] += output.link.wrench[k]
        touch.conservative[k] += output.link.wrench[k]
        if k < 3:
            output.feed_forward[k] += output.link.wrench[k]
