"""The spring of a render, closed with the device's newest position and velocity (docs/protocol.md, Using a render)."""

import math
from collections.abc import Sequence

from bridge.wire import Render
from haptics.last_line import Triple, Wrench

FEASIBLE = 1e-9
"""m: by which a place may be behind a plane and count as on it."""
PARALLEL = 1e-12
"""Square of the sine of the angle (of the volume, of three) below which planes have no line (no point) in common."""


def local_wrench(render: Render, position: Sequence[float], velocity: Sequence[float]) -> Wrench:
    """Wrench (6,) [N, N·m], device frame, at a position (3,) m with a velocity (3,) m/s: not limited yet.

    force = (K |d| + damper) d / |d| + feed-forward with d = y - x, y of `local_proxy`; the damper
    B (v_proxy - v) . d / |d| is held within the spring's force. The torque is the feed-forward's: no spring stands
    behind it.
    """
    proxy = local_proxy(render, position)
    way = [proxy[k] - position[k] for k in range(3)]
    force = list(render.feed_forward[:3])
    stretch = math.sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2])
    if stretch > 0.0:
        rate = sum((render.proxy_twist[k] - velocity[k]) * way[k] for k in range(3)) / stretch
        spring = render.stiffness[0] * stretch
        pull = spring + min(max(render.damping[0] * rate, -spring), spring)
        for k in range(3):
            force[k] += pull * way[k] / stretch
    x, y, z = force
    about_x, about_y, about_z = render.feed_forward[3:]
    return (x, y, z, about_x, about_y, about_z)


def local_proxy(render: Render, position: Sequence[float]) -> Triple:
    """Where the tool is by the time the device is at a position (3,) m, device frame: see haptics/contact_planes.py."""
    stood: Triple = (render.proxy_position[0], render.proxy_position[1], render.proxy_position[2])
    if render.pinned:
        return stood
    x, y, z = (position[k] + render.slack[k] for k in range(3))
    numbers = render.planes
    planes = [(numbers[k], numbers[k + 1], numbers[k + 2], numbers[k + 3]) for k in range(0, 4 * render.plane_count, 4)]
    return nearest_place(planes, (x, y, z), stood)


def nearest_place(planes: Sequence[tuple[float, float, float, float]], goal: Triple, otherwise: Triple) -> Triple:
    """The place nearest to a goal in front of all planes (unit normal n, c: n . y >= c), ``otherwise`` without any.

    It is the nearest place of what some planes, three at most, have in common, so of all such places that are in front
    of all planes it is the nearest. For m planes there are m + m (m - 1) / 2 + m (m - 1) (m - 2) / 6 of them.
    """
    if _in_front(planes, goal):
        return goal
    best, least = otherwise, math.inf
    for i, first in enumerate(planes):
        places: list[Triple | None] = [_on_plane(first, goal)]
        for j in range(i):
            places.append(_on_line(first, planes[j], goal))
            places.extend(_at_point(first, planes[j], planes[k]) for k in range(j))
        for place in places:
            if place is None:
                continue
            far = sum((place[k] - goal[k]) ** 2 for k in range(3))
            if far < least and _in_front(planes, place):
                best, least = place, far
    return best


def _in_front(planes: Sequence[tuple[float, float, float, float]], place: Triple) -> bool:
    return all(n[0] * place[0] + n[1] * place[1] + n[2] * place[2] >= n[3] - FEASIBLE for n in planes)


def _on_plane(n: tuple[float, float, float, float], goal: Triple) -> Triple:
    deep = n[3] - (n[0] * goal[0] + n[1] * goal[1] + n[2] * goal[2])
    return goal[0] + deep * n[0], goal[1] + deep * n[1], goal[2] + deep * n[2]


def _on_line(a: Sequence[float], b: Sequence[float], goal: Triple) -> Triple | None:
    """Along the normals, each by what makes up for both depths."""
    cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    square = 1.0 - cosine * cosine
    if square < PARALLEL:
        return None
    deep_a = a[3] - (a[0] * goal[0] + a[1] * goal[1] + a[2] * goal[2])
    deep_b = b[3] - (b[0] * goal[0] + b[1] * goal[1] + b[2] * goal[2])
    along_a, along_b = (deep_a - cosine * deep_b) / square, (deep_b - cosine * deep_a) / square
    x, y, z = (goal[k] + along_a * a[k] + along_b * b[k] for k in range(3))
    return x, y, z


def _at_point(a: Sequence[float], b: Sequence[float], c: Sequence[float]) -> Triple | None:
    """Where three planes meet (Cramer)."""
    bc = (b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0])
    ca = (c[1] * a[2] - c[2] * a[1], c[2] * a[0] - c[0] * a[2], c[0] * a[1] - c[1] * a[0])
    ab = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    volume = a[0] * bc[0] + a[1] * bc[1] + a[2] * bc[2]
    if volume * volume < PARALLEL:
        return None
    x, y, z = ((a[3] * bc[k] + b[3] * ca[k] + c[3] * ab[k]) / volume for k in range(3))
    return x, y, z
