"""Effects: what is felt beside the coupling's spring, added to it before ramp, slew limit and saturation.

Surfaces (:mod:`haptics.surfaces`), regions (:mod:`haptics.regions`), soft fixtures (:mod:`haptics.fixtures`) and bursts
(:mod:`haptics.bursts`). They change what the hand feels, not what the tool does. A local impedance carries them in its
feed-forward. Parts that follow a velocity fade with the sample's age, as the coupling's damper does.
"""

from haptics.bursts import begin, burst_force
from haptics.codes import ACTIVE, ENGAGING, HOLD
from haptics.coupling import freshness, image_velocity, tool_velocity
from haptics.degrees import driven_torque
from haptics.fixtures import fixtures_force
from haptics.regions import regions_force
from haptics.surfaces import surface_force
from haptics.tables import Record
from haptics.workspace import tool_position, torque_to_device, vector_to_device
from rtcore.kernels import inner, kernel
from rtcore.model import Model
from rtcore.spatial import Vector, add, cross, dot, quaternion, scaled, subtract, vector
from rtcore.state import State

LEFT_MS = 20.0
"""A surface that was not touched for so long is hit when it is touched again."""


@kernel
def add_effects(model: Model, state: State, settings: Record, touch: Record, output: Record) -> None:
    """The stage: effects in ``output.effects``, in the coupling wrench and in the feed-forward."""
    for k in range(6):
        output.effects[k] = 0.0
    if settings.actuated == 0:
        return
    none = settings.surface_count == 0 and settings.region_count == 0 and settings.fixture_count == 0
    if none and touch.burst_ticks == 0:
        return
    fresh = freshness(settings, touch.age_ns)
    hand = scaled(image_velocity(settings, touch), fresh / touch.scale)
    spring = damper = moment = damping = (0.0, 0.0, 0.0)
    if settings.region_count > 0 and touch.has_pose != 0:
        spring, damper = regions_force(settings, touch, vector(touch.image_tip), hand)
    if settings.fixture_count > 0 and touch.has_pose != 0:
        spring = add(spring, fixtures_force(settings, touch, vector(touch.image_tip)))
    if settings.surface_count > 0:
        count_untouched(settings, touch)
        world, proxy = model.world[0], state.proxy[0]
        at = tool_position(world, proxy)
        deep = 0.0
        for k in range(output.report.contact_count):
            deep += depth(output.report.contacts[k])
        for k in range(output.report.contact_count):
            contact = output.report.contacts[k]
            surface_id = model.bodies[contact.body_id].surface_id
            if surface_id <= 0:
                continue
            pushed, damped = touched(state, settings, touch, contact, surface_id, hand, deep)
            # What a sphere tip feels acts in its centre, as the coupling's force does.
            where = vector(contact.point) if world.tool_mesh_id >= 0 else vector(proxy.position)
            arm = scaled(subtract(where, at), 1.0 / touch.scale)
            spring, damper = add(spring, pushed), add(damper, damped)
            moment, damping = add(moment, cross(arm, pushed)), add(damping, cross(arm, damped))
    # A burst is meant to shake: no account counts its work as that of sampling.
    put(settings, touch, output, add(vector_to_device(settings, spring), burst_force(touch)), moment, fresh, True)
    put(settings, touch, output, vector_to_device(settings, damper), damping, fresh, False)


@inner
def put(
    settings: Record, touch: Record, output: Record, force: Vector, moment: Vector, fresh: float, springs: bool
) -> None:
    """Add a force (device frame, N) and a moment (scene, N·m); ``springs``: by place, not by velocity."""
    torque = (0.0, 0.0, 0.0)
    if settings.torque_free == 0:
        turned = quaternion(touch.device_orientation)
        torque = driven_torque(settings, turned, scaled(torque_to_device(settings, touch, moment), fresh))
    for k in range(3):
        output.effects[k] += force[k]
        output.effects[3 + k] += torque[k]
        output.coupling_wrench[k] += force[k]
        output.coupling_wrench[3 + k] += torque[k]
        output.feed_forward[k] += force[k]
        if springs:
            touch.conservative[k] += force[k]
            touch.conservative[3 + k] += torque[k]


@inner
def depth(contact: Record) -> float:
    """How far a contact pushes the tool along its normal (scene, m); 0 where it does not."""
    return max(dot(vector(contact.displacement), vector(contact.normal)), 0.0)


@inner
def count_untouched(settings: Record, touch: Record) -> None:
    """One more tick without a touch, for every surface; who is touched now is set back."""
    for k in range(settings.surface_count):
        touch.untouched[k] = min(touch.untouched[k] + 1, 1 << 30)


@inner
def touched(
    state: State, settings: Record, touch: Record, contact: Record, surface_id: int, hand: Vector, deep: float
) -> tuple[Vector, Vector]:
    """Forces of one contact's surface, by place and by velocity (scene axes, N); where it is hit a burst begins.

    deep: the depths of all contacts together (scene, m).
    """
    surface = settings.surfaces[surface_id - 1]
    normal = vector(contact.normal)
    if depth(contact) <= 0.0:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if touch.untouched[surface_id - 1] * settings.dt * 1e3 > LEFT_MS and surface.burst > 0.0:
        speed = -dot(hand, normal)
        engaged = touch.state == ENGAGING or touch.state == ACTIVE or touch.state == HOLD
        if engaged and speed > 0.0:
            knock = vector_to_device(settings, scaled(normal, surface.burst * speed))
            lasts = surface.burst_decay_s * 5.0
            begin(settings, touch, knock, surface.burst_frequency, surface.burst_decay_s, lasts)
    touch.untouched[surface_id - 1] = 0
    return surface_force(
        surface,
        contact,
        state.poses[contact.body_id],
        touch.stiffness * touch.rate_share,
        touch.scale,
        settings.dt,
        hand,
        tool_velocity(touch),
        depth(contact) / deep,
    )
