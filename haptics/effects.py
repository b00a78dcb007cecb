"""Effects: what is felt beside the coupling's spring, added to it before ramp, slew limit and saturation.

Surfaces (:mod:`haptics.surfaces`), regions (:mod:`haptics.regions`), soft fixtures (:mod:`haptics.fixtures`) and bursts
(:mod:`haptics.bursts`). They change what the hand feels, not what the tool does.

A local impedance carries them in its feed-forward, which fades with the sample's age, but for the softness of surfaces:
that lowers the stiffness which is told, to the one in series with the softest surface that pushes. An adapter that goes
out of a soft surface between two renders so comes to zero where the surface is. Were the softness a constant force, it
would pull there. What contacts with harder surfaces push beyond that is fed forward, and is a push.

The coupling's damper stays within the softened spring as it does within the hard one, and what surfaces damp on the way
out stays within what it leaves of that: no wall is sticky, soft or hard.
"""

from haptics.bursts import begin, burst_force
from haptics.codes import ACTIVE, DAMPED, ENGAGING, HOLD
from haptics.coupling import damper as damper_force
from haptics.coupling import felt_stretch, freshness, image_velocity, stretching, tool_velocity
from haptics.degrees import driven_torque
from haptics.fixtures import fixtures_force
from haptics.regions import regions_force
from haptics.surfaces import softness, surface_force
from haptics.tables import Record
from haptics.workspace import tool_position, torque_to_device, vector_to_device
from rtcore.kernels import inner, kernel
from rtcore.model import Model
from rtcore.spatial import Vector, add, cross, dot, length, quaternion, rotate, scaled, subtract, vector
from rtcore.state import State

LEFT_MS = 20.0
"""A surface that was not touched for so long is hit when it is touched again."""


@kernel
def add_effects(model: Model, state: State, settings: Record, touch: Record, output: Record) -> None:
    """The stage: effects in ``output.effects``, in the coupling wrench, and in the impedance that is told."""
    for k in range(6):
        output.effects[k] = 0.0
    if settings.actuated == 0:
        return
    none = settings.surface_count == 0 and settings.region_count == 0 and settings.fixture_count == 0
    if none and touch.burst_ticks == 0:
        return
    fresh = freshness(settings, touch.age_ns)
    hand = scaled(image_velocity(settings, touch), fresh / touch.scale)
    spring = damper = moment = damping = softer = calmer = (0.0, 0.0, 0.0)
    if settings.region_count > 0 and touch.has_pose != 0:
        spring, damper = regions_force(settings, touch, vector(touch.image_tip), hand)
    if settings.fixture_count > 0 and touch.has_pose != 0:
        spring = add(spring, fixtures_force(settings, touch, vector(touch.image_tip)))
    if settings.surface_count > 0:
        count_untouched(settings, touch)
        world, proxy = model.world[0], state.proxy[0]
        at = tool_position(world, proxy)
        deep, soft = pressed_on(model, settings, touch, output.report)
        softer, calmer, room = soften(world, proxy, settings, touch, output, soft, fresh)
        arm = scaled(subtract(vector(proxy.position), at), 1.0 / touch.scale)
        damping = cross(arm, rotate(quaternion(settings.workspace_orientation), calmer))
        for k in range(output.report.contact_count):
            contact = output.report.contacts[k]
            surface_id = model.bodies[contact.body_id].surface_id
            if surface_id <= 0:
                continue
            pushed, damped = touched(state, settings, touch, contact, surface_id, hand, deep, room)
            # What a sphere tip feels acts in its centre, as the coupling's force does.
            where = vector(contact.point) if world.tool_mesh_id >= 0 else vector(proxy.position)
            arm = scaled(subtract(where, at), 1.0 / touch.scale)
            spring, damper = add(spring, pushed), add(damper, damped)
            moment, damping = add(moment, cross(arm, pushed)), add(damping, cross(arm, damped))
    # A burst is meant to shake: no account counts its work as that of sampling.
    rest = add(subtract(vector_to_device(settings, spring), softer), burst_force(touch))
    put(settings, touch, output, softer, scaled(rest, fresh), moment, fresh, True)
    put(settings, touch, output, calmer, vector_to_device(settings, damper), damping, fresh, False)


@inner
def put(
    settings: Record,
    touch: Record,
    output: Record,
    told: Vector,
    ahead: Vector,
    moment: Vector,
    fresh: float,
    springs: bool,
) -> None:
    """Add two forces (device frame, N) and a moment (scene, N·m); ``springs``: by place, not by velocity.

    told: what stands in the spring and the damper that are told; ahead: what goes into the feed-forward.
    """
    torque = (0.0, 0.0, 0.0)
    if settings.torque_free == 0:
        turned = quaternion(touch.device_orientation)
        torque = driven_torque(settings, turned, scaled(torque_to_device(settings, touch, moment), fresh))
    force = add(told, ahead)
    for k in range(3):
        output.effects[k] += force[k]
        output.effects[3 + k] += torque[k]
        output.coupling_wrench[k] += force[k]
        output.coupling_wrench[3 + k] += torque[k]
        output.feed_forward[k] += ahead[k]
        if springs:
            touch.conservative[k] += force[k]
            touch.conservative[3 + k] += torque[k]


@inner
def pressed_on(model: Model, settings: Record, touch: Record, report: Record) -> tuple[float, float]:
    """The depths of all contacts together (scene, m), and the share of the coupling's stiffness that the softest of
    those that push leaves."""
    deep, soft = 0.0, 1.0
    for k in range(report.contact_count):
        contact = report.contacts[k]
        deep += depth(contact)
        surface_id = model.bodies[contact.body_id].surface_id
        if surface_id > 0 and depth(contact) > 0.0:
            soft = min(soft, softness(settings.surfaces[surface_id - 1], touch.stiffness * touch.rate_share))
    return deep, soft


@inner
def soften(
    world: Record, proxy: Record, settings: Record, touch: Record, output: Record, soft: float, fresh: float
) -> tuple[Vector, Vector, float]:
    """Tell the share ``soft`` of the coupling's stiffness, and what changes by that (device frame, N): of the spring,
    and of the damper, which stays within the spring; and the share of the spring that the damper leaves to others.
    """
    none = (0.0, 0.0, 0.0)
    apart = felt_stretch(world, proxy, settings, touch, output.report)
    stretch = scaled(vector_to_device(settings, apart), 1.0 / touch.scale)
    size = length(stretch)
    if size == 0.0:
        return none, none, 1.0
    stiffness = touch.stiffness * touch.rate_share
    softer = scaled(stretch, (soft - 1.0) * stiffness)
    for k in range(3):
        output.stiffness[k] *= soft
    if settings.law == DAMPED:
        return softer, none, 1.0
    rate = stretching(settings, touch, stretch, size)
    before = fresh * damper_force(stiffness, touch.damping, size, rate)
    now = fresh * damper_force(soft * stiffness, touch.damping, size, rate)
    most = soft * stiffness * size
    room = 1.0 + min(now / most, 0.0) if most > 0.0 else 0.0
    return softer, scaled(stretch, (now - before) / size), room


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
    state: State,
    settings: Record,
    touch: Record,
    contact: Record,
    surface_id: int,
    hand: Vector,
    deep: float,
    room: float,
) -> tuple[Vector, Vector]:
    """Forces of one contact's surface, by place and by velocity (scene axes, N); where it is hit a burst begins.

    deep: the depths of all contacts together (scene, m); room: share of the spring that the coupling's damper leaves.
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
        room,
    )
