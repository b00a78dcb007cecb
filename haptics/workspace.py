"""Device frame and scene: where the device's pose puts the tool, and how that changes without a jump.

    x_scene = p + R (scale * x_device) + anchor        q_scene = q_anchor * q_workspace * q_device

The pose that is mapped is that of the coupling point (the tool's origin); the tip centre, which the mechanics move, is
``tip_offset`` away from it in tool coordinates. The image is the mapped pose. While clutched the image stands still and
the anchor follows the device instead, so a moving device neither moves the tool nor changes the force that ramps down.
"""

from haptics.codes import GOOD
from haptics.tables import Record
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Quaternion,
    Vector,
    add,
    conjugate,
    cross,
    length,
    multiply,
    normalise,
    put_quaternion,
    put_vector,
    quaternion,
    rotate,
    scaled,
    subtract,
    vector,
)

FREE = 1e-6
"""Device m: a tool that is nearer than this to the image is taken to follow it freely."""


@inner
def mapped_position(settings: Record, touch: Record) -> Vector:
    """Image of the device's coupling point by the map in force (scene, m)."""
    turned = rotate(quaternion(settings.workspace_orientation), vector(touch.device_position))
    placed = add(vector(settings.workspace_position), scaled(turned, touch.scale))
    return add(placed, vector(touch.anchor_position))


@inner
def mapped_orientation(settings: Record, touch: Record) -> Quaternion:
    """Image of the device's orientation by the map in force."""
    turned = multiply(quaternion(settings.workspace_orientation), quaternion(touch.device_orientation))
    return normalise(multiply(quaternion(touch.anchor_orientation), turned))


@inner
def tip_lever(world: Record, orientation: Quaternion) -> Vector:
    """From the coupling point to the tip centre (scene axes, m) for a tool of that orientation."""
    return rotate(orientation, vector(world.tip_offset))


@inner
def tool_position(world: Record, proxy: Record) -> Vector:
    """Coupling point of the proxy (scene, m)."""
    return subtract(vector(proxy.position), tip_lever(world, quaternion(proxy.orientation)))


@inner
def distance_to_tool(world: Record, proxy: Record, settings: Record, touch: Record) -> float:
    """How far from where it is the map in force would put any point of the tool (scene, m; a bound).

    A sphere tip turns without moving its surface; a mesh also by the chord of its turn at its reach.
    """
    orientation = mapped_orientation(settings, touch)
    tip = add(mapped_position(settings, touch), tip_lever(world, orientation))
    turn = multiply(orientation, conjugate(quaternion(proxy.orientation)))
    chord = 2.0 * length((turn[0], turn[1], turn[2]))
    return length(subtract(tip, vector(proxy.position))) + settings.tool_reach * chord


@inner
def too_far_from_tool(world: Record, proxy: Record, settings: Record, touch: Record) -> bool:
    """Whether the map in force puts the tool farther from the proxy than ``engage_distance``, in the scene or at the
    device: a millimetre of a scene that is scaled down is a long and strong spring at the hand."""
    return distance_to_tool(world, proxy, settings, touch) > settings.engage_distance * min(1.0, touch.scale)


@inner
def anchor_to(settings: Record, touch: Record, position: Vector, orientation: Quaternion) -> None:
    """Choose the anchor that maps the present device pose to this one (coupling point, scene).

    Neither the image nor anything computed from it jumps, because the image is set to the same pose.
    """
    turned = rotate(quaternion(settings.workspace_orientation), vector(touch.device_position))
    placed = add(vector(settings.workspace_position), scaled(turned, touch.scale))
    put_vector(touch.anchor_position, subtract(position, placed))
    unanchored = multiply(quaternion(settings.workspace_orientation), quaternion(touch.device_orientation))
    put_quaternion(touch.anchor_orientation, normalise(multiply(orientation, conjugate(unanchored))))
    put_vector(touch.image_position, position)
    put_quaternion(touch.image_orientation, orientation)


@inner
def anchor_to_tool(world: Record, proxy: Record, settings: Record, touch: Record) -> None:
    """Re-anchor so that the device's image is where the tool is now: no stretch, no force."""
    anchor_to(settings, touch, tool_position(world, proxy), quaternion(proxy.orientation))


@inner
def change_scale(world: Record, proxy: Record, settings: Record, touch: Record, scale: float) -> None:
    """Change the scale; the tool stays where it is and the force stays what it is.

    The coupling force is K times the stretch divided by the scale, so the image's distance from the tool grows with the
    scale, along the same line: the nearest reachable place to the image, where the tool rests, remains the same.
    """
    if touch.has_pose != 0:
        tool = tool_position(world, proxy)
        stretch = subtract(vector(touch.image_position), tool)
        touch_scale = touch.scale
        touch.scale = scale
        image = add(tool, scaled(stretch, scale / touch_scale))
        anchor_to(settings, touch, image, quaternion(touch.image_orientation))
    else:
        touch.scale = scale


@inner
def drift(world: Record, proxy: Record, settings: Record, touch: Record) -> None:
    """Move the map so that a hand that follows what it sees comes back to the middle of its workspace.

    Conti and Khatib 2005: outwards, by a share of the way that the device itself has just gone, which grows from zero
    in the centre to ``drift`` at the radius. So nothing moves while the hand rests, and the tool goes at most by that
    share farther than the hand. Only while image and tool are one: in contact, where the difference is felt, the map
    stands still.
    """
    if settings.drift == 0.0 or touch.sample_kind != GOOD:
        return
    stretch = subtract(vector(touch.image_position), tool_position(world, proxy))
    if length(stretch) > FREE * touch.scale:
        return
    away = subtract(vector(touch.device_position), vector(settings.workspace_centre))
    distance = length(away)
    if distance == 0.0:
        return
    way = settings.drift * length(vector(touch.moved[:3])) * min(distance / settings.workspace_reach, 1.0)
    turned = rotate(quaternion(settings.workspace_orientation), scaled(away, touch.scale * way / distance))
    put_vector(touch.anchor_position, add(vector(touch.anchor_position), turned))


@kernel
def map_device(world: Record, proxy: Record, settings: Record, touch: Record) -> None:
    """The stage: image of the device, and the goal of the mechanics, the same unless fixtures (:mod:`haptics.fixtures`)
    lead it elsewhere. Without a pose the tool stays."""
    if touch.has_pose == 0:
        put_vector(touch.image_position, tool_position(world, proxy))
        put_quaternion(touch.image_orientation, quaternion(proxy.orientation))
        put_vector(touch.image_tip, vector(proxy.position))
        put_quaternion(touch.tip_orientation, quaternion(proxy.orientation))
        put_vector(touch.goal.goal_position, vector(proxy.position))
        put_quaternion(touch.goal.goal_orientation, quaternion(proxy.orientation))
        touch.goal.stiffness = 0.0
        return
    if touch.clutched != 0:
        anchor_to(settings, touch, vector(touch.image_position), quaternion(touch.image_orientation))
    else:
        drift(world, proxy, settings, touch)
        put_vector(touch.image_position, mapped_position(settings, touch))
        put_quaternion(touch.image_orientation, mapped_orientation(settings, touch))
    orientation = quaternion(touch.image_orientation)
    tip = add(vector(touch.image_position), tip_lever(world, orientation))
    put_vector(touch.image_tip, tip)
    put_quaternion(touch.tip_orientation, orientation)
    put_vector(touch.goal.goal_position, tip)
    put_quaternion(touch.goal.goal_orientation, orientation)
    _pull(world, settings, touch)


@kernel
def stand(proxy: Record, touch: Record, output: Record) -> None:
    """The stage, after fixtures: while clutched nobody pulls the tool, so that it stays wherever it was.

    What was stretched then is what the force that ramps down is made of: another scale, or a device that moves, changes
    neither the tool nor that.
    """
    if touch.clutched == 0:
        return
    goal = touch.goal
    put_vector(goal.goal_position, vector(proxy.position))
    put_quaternion(goal.goal_orientation, quaternion(proxy.orientation))
    goal.stiffness = 0.0
    put_vector(output.goal_position, vector(proxy.position))
    put_quaternion(output.goal_orientation, quaternion(proxy.orientation))


@inner
def _pull(world: Record, settings: Record, touch: Record) -> None:
    """Springs and dampers of the hand as the scene feels them: forces are the same, lengths are those of the scene.

    Unless the world side has gains of its own, as in the coupling of Colgate, Stanley and Brown 1995, they are those
    that the hand feels.

    The damper that turns has the ratio to the one that pulls that the springs have. The velocity is that of the tip's
    centre, where the spring acts.
    """
    goal = touch.goal
    stiffness = settings.world_stiffness if settings.world_stiffness > 0.0 else touch.stiffness
    damping = settings.world_damping if settings.world_damping >= 0.0 else touch.damping
    goal.stiffness = stiffness / touch.scale
    goal.rotational_stiffness = settings.rotational_stiffness * touch.scale
    goal.damping = damping / touch.scale
    goal.rotational_damping = goal.damping * goal.rotational_stiffness / goal.stiffness
    velocity = turning = (0.0, 0.0, 0.0)
    if touch.clutched == 0:
        frame = quaternion(settings.workspace_orientation)
        velocity = scaled(rotate(frame, vector(touch.velocity)), touch.scale)
        turning = rotate(quaternion(touch.anchor_orientation), rotate(frame, vector(touch.angular_velocity)))
        velocity = add(velocity, cross(turning, tip_lever(world, quaternion(touch.tip_orientation))))
    put_vector(goal.goal_velocity, velocity)
    put_vector(goal.goal_angular_velocity, turning)


@inner
def vector_to_device(settings: Record, v: Vector) -> Vector:
    """A scene direction (force, scaled length) in device axes."""
    return rotate(conjugate(quaternion(settings.workspace_orientation)), v)


@inner
def position_to_device(settings: Record, touch: Record, position: Vector) -> Vector:
    """A scene position in the device frame (m at the device)."""
    placed = subtract(subtract(position, vector(touch.anchor_position)), vector(settings.workspace_position))
    return scaled(vector_to_device(settings, placed), 1.0 / touch.scale)


@inner
def orientation_to_device(settings: Record, touch: Record, orientation: Quaternion) -> Quaternion:
    """A tool orientation in the scene, as the device would have to be turned for it."""
    unanchored = multiply(conjugate(quaternion(touch.anchor_orientation)), orientation)
    return normalise(multiply(conjugate(quaternion(settings.workspace_orientation)), unanchored))


@inner
def torque_to_device(settings: Record, touch: Record, torque: Vector) -> Vector:
    """A scene torque in device axes: it turns the tool, so the anchor's rotation comes off as well."""
    unanchored = rotate(conjugate(quaternion(touch.anchor_orientation)), torque)
    return vector_to_device(settings, unanchored)
