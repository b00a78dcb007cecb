"""Back-face culling: which features of a moving body cannot be the ones that reach the other body next.

What is left out, and why nothing is lost. Take a solid with a closed surface, its normals outwards, that does not
overlap the other body at u = 0. Let two points, one on each body, be locally nearest at a time when their distance
comes down to some value (zero or not), and n be the unit vector from the first to the second. Then the first one
approaches along n: its velocity v relative to the other body has v.n >= 0 (the turning of the other body adds nothing:
it moves the second point's surroundings across n). As no point of the solid near the first is nearer, n makes no acute
angle with any direction into the solid. Were v.m < 0 for the outward normals m of *all* triangles at the point, v
would point into the solid's inside (a ray along v that starts inside could leave it through none of them), so that
v.n < 0. Hence at every such approach at least one triangle at each of the two features does not recede, and:

* a vertex or an edge may be left out only if all triangles at it recede, a face if it recedes itself;
* either body may be culled by itself; a pair of features is tested if neither is culled;
* a separation > 0 changes nothing. The search stops where the distance of the *bodies* comes down to it; a pair whose
  nearest points lie behind the surface may come nearer unseen, because other features of the bodies are nearer still.
  So with and without culling the bodies come to the same least distance, and neither ever comes below it first.

Features are tested with the triangle that owns them, which may recede while its neighbour does not. The cones of
:mod:`rtcore.geometry.cones` therefore hold the normals of all triangles at owned features, and a whole node may be
culled without another look. The same cones are right where every triangle tests all of its features. Open and inverted
surfaces, and triangles without area, are never culled (cone angle pi).

The velocity of a body relative to another, in its own frame, is a constant field while one of them moves by SCREW and
the other is STILL (or both only translate): then the test holds at once for the whole step. For all other motions it is
made at half time, and `slack` bounds by how much any velocity differs from that within the step.

Culling concerns the time of contact only. Pairs for a contact set (near, at rest or leaving) are gathered without it.

Source: Vanecek 1994; Redon 2002, sections 4.1-4.3 and 4.5, (4.1)-(4.9), (4.13); cones by axis and angle: Johnson,
Willemsen and Cohen 2005. The argument for features and separations is own work.
"""

import math
from typing import Any

from rtcore.kernels import kernel
from rtcore.motion import PAD, SCREW, STILL, pair_bounds, pose, spin_bound, velocity_field
from rtcore.spatial import Vector, add, conjugate, cross, length, rotate, scaled, subtract, vector

ROUNDING = 1e-13
"""Share of the velocities by which a feature has to recede at least."""


@kernel
def approach(own: Any, other: Any, centre: Vector, radius: float, limit: float) -> tuple[Vector, Vector, float]:
    """(velocity of the own frame's origin, angular velocity, slack) of a body relative to another over [0, limit].

    own, other: MOTION of the two bodies; centre, radius: a ball about the whole own body (that of its root), own frame,
    m. Results in the own frame, per unit of u; a point x of the body moves, relative to the other body and seen from
    itself, with velocity + angular velocity x x to within `slack` (m per unit of u) at any time of [0, limit]. One call
    per body and query is enough. Infinite slack (nothing recedes) for ALGEBRAIC.
    """
    middle = 0.5 * limit
    position, orientation = pose(own, middle)
    back = conjugate(orientation)
    own_velocity, own_angular = velocity_field(own, middle, position)
    other_velocity, other_angular = velocity_field(other, middle, position)
    velocity = rotate(back, subtract(own_velocity, other_velocity))
    angular = rotate(back, subtract(own_angular, other_angular))
    reach = length(position) + length(centre) + radius + length(vector(own.pivot)) + length(vector(other.pivot))
    slack = PAD * (length(vector(own.shift)) + length(vector(other.shift)) + (own.angle + other.angle) * reach)
    one_moves = (own.kind == STILL and other.kind == SCREW) or (own.kind == SCREW and other.kind == STILL)
    none_turns = own.angle == 0.0 and other.angle == 0.0
    if not (one_moves or none_turns):
        # In the own frame the velocity changes as it does in the other's, and by the turning of one frame to the other.
        speed, acceleration = pair_bounds(other, own, centre, radius, 0.0, limit)
        slack += middle * (acceleration + spin_bound(own, other, 0.0, limit) * speed)
    return velocity, angular, slack


@kernel
def recedes(node: Any, velocity: Vector, angular: Vector, slack: float) -> bool:
    """Do all triangles that count for a node recede from the other body, at each of their points?

    node: BOX_NODE with its cone; velocity (of the mesh frame's origin), angular, slack: from :func:`approach`. True:
    no feature that a triangle below owns, and none of its faces, can be the one that reaches the other body next.
    Source: Redon 2002, section 4.5, for the cone of axis and angle: the largest v.n over all n in the cone and all v in
    the ball of the node is below zero.
    """
    if node.cone_angle >= 0.5 * math.pi:
        return False
    centre = vector(node.centre)
    axis = vector(node.cone_axis)
    spin = length(angular)
    v = add(velocity, cross(angular, centre))
    along = v[0] * axis[0] + v[1] * axis[1] + v[2] * axis[2]
    turning = spin * node.radius
    if not along + turning + slack < 0.0:
        return False
    across = length(subtract(v, scaled(axis, along)))
    pad = ROUNDING * (length(velocity) + spin * (length(centre) + node.radius))
    return along * math.cos(node.cone_angle) + across * math.sin(node.cone_angle) + turning + slack + pad < 0.0


@kernel
def recedes_by_vectors(node: Any, recoil: Any, velocity: Vector, angular: Vector, slack: float) -> bool:
    """The same as :func:`recedes` by recoil vectors: the corners of the box move backwards along every one of them.

    node: BOX_NODE; recoil: its RECOIL record; velocity, angular, slack: from :func:`approach`. Tighter for long narrow
    sets of normals, some four times dearer. Source: Redon 2002, (4.9) with lemmas 1 and 2.
    """
    if recoil.count == 0:
        return False
    pad = ROUNDING * (length(velocity) + length(angular) * (length(vector(node.centre)) + node.radius))
    for corner in range(8):
        x, y, z = node.centre[0], node.centre[1], node.centre[2]
        for j in range(3):
            reach = node.half[j] if corner >> j & 1 else -node.half[j]
            x += reach * node.axes[j, 0]
            y += reach * node.axes[j, 1]
            z += reach * node.axes[j, 2]
        v = add(velocity, cross(angular, (x, y, z)))
        bound = -(recoil.margin * length(v) + slack + pad)
        for k in range(recoil.count):
            along = v[0] * recoil.vectors[k, 0] + v[1] * recoil.vectors[k, 1] + v[2] * recoil.vectors[k, 2]
            if not along < bound:
                return False
    return True


@kernel
def triangle_recedes(triangle: Any, velocity: Vector, angular: Vector, slack: float) -> bool:
    """Does every point of one triangle move to the back of it?

    triangle: TRIANGLE; velocity, angular, slack: from :func:`approach`. Velocities are affine in the point, so the
    three vertices speak for the whole. It says that the *face* may be left out; its edges and vertices belong to other
    triangles as well. Source: Vanecek 1994; Redon 2002, (4.4) and (4.5).
    """
    if triangle.open != 0 or triangle.degenerate != 0:
        return False
    normal = vector(triangle.normal)
    a, b, c = vector(triangle.vertices[0]), vector(triangle.vertices[1]), vector(triangle.vertices[2])
    edge1, edge2, edge3 = subtract(b, a), subtract(c, b), subtract(a, c)
    longest = max(length(edge1), length(edge2), length(edge3))
    # As for the cones: rounding has turned the normal by this share at most.
    tilt = 8.0 * 2.0**-52 * longest * longest / length(cross(edge1, edge2))
    size = length(velocity) + length(angular) * max(length(a), length(b), length(c))
    bound = -((tilt + ROUNDING) * size + slack)
    for k in range(3):
        v = add(velocity, cross(angular, vector(triangle.vertices[k])))
        if not v[0] * normal[0] + v[1] * normal[1] + v[2] * normal[2] < bound:
            return False
    return True
