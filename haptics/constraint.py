"""The part of the stretch that constraints hold: what is felt by the law "constraint" of the coupling.

A contact pushes the tool off its goal along its outward unit normal n_i, and along its tangents where friction holds; a
hard fixture puts the goal off the image. Whatever else is between tool and image is lag: work that was cut short, a
stride that was too short, a tool with mass that is still coming. With d the stretch, t_i the part of each contact's
displacement across its normal, and f the way from the image to the goal,

    felt = T + P(d - T),      T = f + sum of t_i,      P: projection on the cone { sum of l_i n_i, l_i >= 0 }

over the contacts that push. So lag that no normal holds is not felt, free motion has no force, and a tool at rest feels
all of d: there d - T is a sum of pushes along normals, and in the cone. Friction is what the mechanics' contacts hold,
in their cones. Where a mesh tool is stopped on its way, what stops it may not push yet: then all contacts that are
listed hold, and all of d is felt where none is.

The projection is in closed form for any number of normals. It lies on a ray, on a face spanned by two normals, or is d
itself, in the cone of some three of them (Carathéodory); of all these candidates that lie in the cone it is the nearest
one, told by squares of distances: to 1e-8 of d. Nothing is iterated: for m normals there are m + m (m - 1) / 2 of the
first and m (m - 1) (m - 2) / 6 of the last, 696 in all for the most contacts that a tool can have.

Source: Ortega, Redon and Coquillart 2007 (Redon 2002 feels the coupling's spring); friction is added as it is held, and
the spring that turns a tool mesh stays as it is.
"""

import math

import numpy as np

from haptics.tables import Record
from rtcore.collision.gather import pushes
from rtcore.kernels import inner, kernel
from rtcore.spatial import Vector, add, cross, dot, put_vector, scaled, subtract, vector

ALIKE = 1e-8
"""Sine of the angle of two normals below which they span no face: they are one, or two walls of a gap."""
FLAT = 1e-14
"""Volume of three normals by the area of two, below which its sign is rounding and they make no cone."""


@inner
def row(normals: np.ndarray, k: int) -> Vector:
    """The k-th normal."""
    return normals[k, 0], normals[k, 1], normals[k, 2]


@inner
def axis_of(a: Vector, b: Vector) -> Vector:
    """Cross product of two unit vectors, to rounding of itself where they nearly agree or oppose each other: what is
    left of a difference of numbers that are near is exact."""
    if dot(a, b) > 0.0:
        return cross(a, subtract(b, a))
    return cross(a, add(b, a))


@inner
def on_face(a: Vector, b: Vector, d: Vector) -> tuple[bool, Vector]:
    """Projection of d on the plane of two unit vectors, where it is within their cone."""
    axis = axis_of(a, b)
    square = dot(axis, axis)
    if square <= ALIKE * ALIKE:
        return False, d
    under = subtract(d, scaled(axis, dot(d, axis) / square))
    if dot(cross(b, axis), under) < 0.0 or dot(cross(axis, a), under) < 0.0:
        return False, d
    return True, under


@inner
def is_within(a: Vector, b: Vector, c: Vector, d: Vector) -> bool:
    """Whether d is a sum of positive multiples of three unit vectors."""
    ab, bc, ca = axis_of(a, b), axis_of(b, c), axis_of(c, a)
    volume = dot(ab, c)
    if abs(volume) <= FLAT * math.sqrt(dot(ab, ab)):
        return False
    sign = 1.0 if volume > 0.0 else -1.0
    return sign * dot(ab, d) >= 0.0 and sign * dot(bc, d) >= 0.0 and sign * dot(ca, d) >= 0.0


@inner
def nearer(d: Vector, best: Vector, other: Vector) -> Vector:
    """The one of two that is nearer to d, by the difference of the squares of their distances."""
    both = add(best, other)
    if dot(subtract(other, best), subtract(add(d, d), both)) > 0.0:
        return other
    return best


@kernel
def on_cone(normals: np.ndarray, count: int, d: Vector) -> Vector:
    """Nearest vector to d in the cone of the first ``count`` rows of (n, 3) unit vectors; of what is not finite, d."""
    if not math.isfinite(dot(d, d)):
        return d
    best = (0.0, 0.0, 0.0)
    for i in range(count):
        a = row(normals, i)
        along = dot(d, a) / dot(a, a)
        if along > 0.0:
            best = nearer(d, best, scaled(a, along))
        for j in range(i):
            found, under = on_face(row(normals, j), a, d)
            if found:
                best = nearer(d, best, under)
    for i in range(count):
        for j in range(i):
            for k in range(j):
                if is_within(row(normals, i), row(normals, j), row(normals, k), d):
                    return d
    return best


@inner
def held_stretch(world: Record, touch: Record, report: Record, stretch: Vector) -> Vector:
    """What constraints hold of a stretch (scene, m), the way from the image to the tool."""
    stopped = world.tool_mesh_id >= 0 and report.fraction < 1.0
    known = (0.0, 0.0, 0.0)
    if touch.led != 0:
        known = subtract(vector(touch.goal.goal_position), vector(touch.image_tip))
    count = 0
    for i in range(report.contact_count):
        contact = report.contacts[i]
        push, normal = vector(contact.displacement), vector(contact.normal)
        if stopped or pushes(contact):
            known = add(known, subtract(push, scaled(normal, dot(push, normal))))
            put_vector(touch.held_normals[count], normal)
            count += 1
    if stopped and count == 0:
        return stretch
    return add(known, on_cone(touch.held_normals, count, subtract(stretch, known)))
