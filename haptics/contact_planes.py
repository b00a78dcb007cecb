"""What holds the tool, as planes for an adapter that closes the spring faster than the daemon ticks.

Between two renders the tool does not wait: it follows the hand wherever no surface is in the way. An adapter that pulls
towards the place where the tool was in the last tick feels a drag, of K times what the hand has gone since, and a wall
only a tick after it was hit. With the nearest planes of the contacts it moves the tool itself (device frame, m):

    y = nearest place to x + slack with n_k . y >= c_k for all planes k,        force = K (y - x)

Of a contact with the unit normal n, c = n . p at a contact that pushes, p the tool's place in the tick, and lower by
the gap that is left over the resting one elsewhere. With d the stretch in the tick, slack = d - P(d), where P is the
nearest vector in the cone of those planes that push: what friction and lag hold, kept until the next tick. In the tick
itself p - x = d, and y = p: x + slack = p - P(d), and P(d) is a push along normals, so p is its nearest place.

Where that is not how the tool moves, `pinned` says that y = p is the better guess: a contact that friction holds; a
fixture, another hand, the clutch or a mass between hand and tool; a spring of the law "damped"; and a tick that was cut
short, unless only the tool's way was. More than `MAX_PLANES` different planes that push pin the tool too; of the others
the nearest ones are told.

Flat surfaces, their edges inwards and corners are exact. On a convex one of radius R (the tip's centre goes on it) and
pressed d deep the tool goes R / (R - d) times the hand's way along it, by the plane once: the error is d / R of that of
a tool that stands.

Source: the plane of Adachi, Kumagai and Sakaguchi 1995 and Mark et al. 1996, here several, with a place for friction.
"""

import numpy as np

from haptics.codes import DAMPED
from haptics.constraint import on_cone, row
from haptics.tables import MAX_PLANES, Record
from haptics.workspace import position_to_device, vector_to_device
from rtcore.collision.gather import pushes
from rtcore.kernels import inner, kernel
from rtcore.model import Model
from rtcore.spatial import Vector, dot, put_vector, subtract, vector
from rtcore.tables import DEGRADED_PASSES

ALIKE = 1e-6
"""1 - cosine of the angle of two normals up to which their planes are one: 1.4 mrad."""


@inner
def led_otherwise(model: Model, settings: Record, touch: Record, report: Record) -> bool:
    """Whether something else than spring and surfaces says where the tool goes, or what it met may not be known."""
    return (
        touch.clutched != 0
        or touch.led != 0
        or touch.shared != 0.0
        or settings.law == DAMPED
        or model.inertias[model.inertias.shape[0] - 1].mass > 0.0
        or report.fraction < 1.0
        or report.degraded & ~DEGRADED_PASSES != 0
    )


@inner
def is_told(planes: np.ndarray, count: int, normal: Vector, offset: float) -> bool:
    """Whether a plane that is there already holds at least as much."""
    told = False
    for k in range(count):
        told = told or (dot(normal, row(planes, k)) > 1.0 - ALIKE and planes[k, 3] >= offset)
    return told


@inner
def put_plane(planes: np.ndarray, k: int, normal: Vector, offset: float) -> None:
    """Write a plane to its row."""
    planes[k, 0], planes[k, 1], planes[k, 2] = normal
    planes[k, 3] = offset


@kernel
def describe(model: Model, settings: Record, touch: Record, output: Record) -> None:
    """The stage: planes, their number, slack and `pinned` of the output, after the coupling. (device frame, m)"""
    world, report, planes = model.world[0], output.report, output.planes
    place = vector(output.render_position)
    pinned = led_otherwise(model, settings, touch, report)
    count = 0
    for i in range(report.contact_count):
        contact = report.contacts[i]
        if not pushes(contact):
            continue
        body = model.bodies[contact.body_id]
        if contact.sliding == 0 and body.friction_static > 0.0:
            pinned = True
        normal = vector_to_device(settings, vector(contact.normal))
        offset = dot(normal, place)
        if is_told(planes, count, normal, offset):
            continue
        if count == MAX_PLANES:
            pinned = True
            break
        put_plane(planes, count, normal, offset)
        count += 1
    stretch = subtract(place, position_to_device(settings, touch, vector(touch.image_position)))
    put_vector(output.slack, subtract(stretch, on_cone(planes, count, stretch)))

    # The table goes by distance, so what there is no room for is farther away.
    for i in range(report.contact_count):
        contact = report.contacts[i]
        if count == MAX_PLANES or pushes(contact):
            continue
        normal = vector_to_device(settings, vector(contact.normal))
        room = max(contact.gap - world.eps_safety, 0.0) / touch.scale
        offset = dot(normal, place) - room
        if not is_told(planes, count, normal, offset):
            put_plane(planes, count, normal, offset)
            count += 1
    for k in range(count, MAX_PLANES):
        put_plane(planes, k, (0.0, 0.0, 0.0), 0.0)
    output.plane_count = count
    output.pinned = 1 if pinned else 0
