"""Continuous collision of the tip sphere: how far may it go straight on?"""

import math

import numpy as np

from rtcore.collision.nearest import nearest_on_triangle, push, push_both
from rtcore.kernels import inner, kernel
from rtcore.spatial import conjugate, quaternion, rotate, to_body
from rtcore.tables import DEGRADED_SWEEP

FLOOR = 5e-7
"""Share of eps_alert by which a tip that is squeezed may come nearer than eps_alert in total, for rounding's sake."""
SLACK = 5e-9
"""Share of eps_alert by which it may do so in one sweep; without it, rounding could stop a motion along a surface."""
RESOLUTION = 5e-10
"""Share of eps_alert to which the time of impact is refined, on the early side."""
MAX_REFINEMENTS = 40


@inner
def _entry_time(
    node: np.void, margin: float, x: float, y: float, z: float, dx: float, dy: float, dz: float, end: float
) -> float:
    """Return when the point x + t d enters the box of `node` grown by `margin`, t in 0..end; inf if it does not."""
    axes = node.axes
    enter = 0.0
    leave = end
    x -= node.centre[0]
    y -= node.centre[1]
    z -= node.centre[2]
    for k in range(3):
        start = axes[k, 0] * x + axes[k, 1] * y + axes[k, 2] * z
        rate = axes[k, 0] * dx + axes[k, 1] * dy + axes[k, 2] * dz
        low = -node.half[k] - margin - start
        high = node.half[k] + margin - start
        if rate > 0.0:
            enter = max(enter, low / rate)
            leave = min(leave, high / rate)
        elif rate < 0.0:
            enter = max(enter, high / rate)
            leave = min(leave, low / rate)
        elif low > 0.0 or high < 0.0:
            return math.inf
    return enter if enter <= leave else math.inf


@kernel
def impact_time(
    triangle: np.void,
    radius: float,
    resolution: float,
    x: float,
    y: float,
    z: float,
    dx: float,
    dy: float,
    dz: float,
    end: float,
) -> float:
    """Return a time in 0..end up to which the point x + t d is proven to stay `radius` away from the triangle.

    The time is early by the motion over a distance of `resolution` at most where the path meets the surface at an
    angle. A triangle that is nearer than `radius` at the start lets go of every motion that does not come nearer, and
    stops every other at once.

    The distance f(t) of a point on a straight line to a convex set is a convex function of t, and its tangent at t lies
    below it. So Newton's iteration from the left steps to times that are still free, each one proven; where the slope
    is not negative the distance will never fall again.
    Source: convex ray cast in the spirit of van den Bergh (2004), with the exact point-triangle distance.
    """
    normal = triangle.normal
    corner = triangle.vertices
    if triangle.degenerate == 0:  # far on one side of the plane from start to end
        height = normal[0] * (x - corner[0, 0]) + normal[1] * (y - corner[0, 1]) + normal[2] * (z - corner[0, 2])
        final = height + end * (normal[0] * dx + normal[1] * dy + normal[2] * dz)
        limit = radius + resolution
        if (height > limit and final > limit) or (height < -limit and final < -limit):
            return end
    time = 0.0
    for _ in range(MAX_REFINEMENTS):
        px = x + time * dx
        py = y + time * dy
        pz = z + time * dz
        qx, qy, qz, square, _ = nearest_on_triangle(triangle, px, py, pz)
        distance = math.sqrt(square)
        descent = -((px - qx) * dx + (py - qy) * dy + (pz - qz) * dz)  # minus slope, times distance
        if descent <= 0.0:
            return end
        above = distance - radius
        if above <= resolution:
            return time
        time += above * distance / descent
        if time >= end:
            return end
    return time


@kernel
def sweep(
    model: tuple,
    state: tuple,
    nearest: float,
    x: float,
    y: float,
    z: float,
    dx: float,
    dy: float,
    dz: float,
    units: int,
    report: np.void,
) -> tuple[float, int]:
    """Return (t, units left): the tip centre may go from (x, y, z) to (x, y, z) + t d, scene, with t in 0..1.

    All the way no surface comes nearer to the tip sphere than eps_alert (1 - FLOOR), or nearer at all where one is so
    near already. nearest: smallest gap known at the start, m (inf if none); a tip that is squeezed below eps_alert may
    go on along surfaces.

    When the units run out, t is the first time at which the tip enters a box that was not searched, which is proven
    free as well, and DEGRADED_SWEEP is set. Nodes are visited by entry time, so the answer gets better with each unit.
    """
    world = model.world[0]
    scratch = state.scratch[0]
    floor = world.tip_radius + world.eps_alert * (1.0 - FLOOR)
    radius = min(world.tip_radius + world.eps_alert, world.tip_radius + nearest - SLACK * world.eps_alert)
    radius = max(radius, floor)
    resolution = RESOLUTION * world.eps_alert
    margin = radius + 400.0 * resolution  # boxes are met earlier than their triangles, rounding included
    best = 1.0
    for body_id in range(len(model.bodies)):
        pose = state.poses[body_id]
        px, py, pz = to_body(pose, (x, y, z))
        vx, vy, vz = rotate(conjugate(quaternion(pose.orientation)), (dx, dy, dz))
        root = model.meshes[model.bodies[body_id].mesh_id].node_first
        top = push(scratch, 0, root, _entry_time(model.nodes[root], margin, px, py, pz, vx, vy, vz, best), best)
        while top > 0:
            top -= 1
            if scratch.stack_key[top] >= best:
                continue
            node_id = scratch.stack_node[top]
            node = model.nodes[node_id]
            cost = 1 + node.count
            if units < cost:
                best = scratch.stack_key[top]
                report.degraded |= DEGRADED_SWEEP
                continue
            units -= cost
            for i in range(node.first, node.first + node.count):
                best = min(best, impact_time(model.triangles[i], radius, resolution, px, py, pz, vx, vy, vz, best))
            if node.count == 0:
                left = node_id + 1
                left_key = _entry_time(model.nodes[left], margin, px, py, pz, vx, vy, vz, best)
                right_key = _entry_time(model.nodes[node.right], margin, px, py, pz, vx, vy, vz, best)
                top = push_both(scratch, top, left, left_key, node.right, right_key, best)
    return best, units
