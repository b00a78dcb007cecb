"""The spring of a render, closed with the device's newest position and velocity (docs/protocol.md, Using a render)."""

import math
from collections.abc import Sequence

from bridge.wire import Render
from haptics.last_line import Wrench


def local_wrench(render: Render, position: Sequence[float], velocity: Sequence[float]) -> Wrench:
    """Wrench (6,) [N, N·m], device frame, at a position (3,) m with a velocity (3,) m/s: not limited yet.

    force = (K |d| + damper) d / |d| + feed-forward with d = proxy - x; the damper B (v_proxy - v) . d / |d| is held
    within the spring's force. The torque is the feed-forward's: no spring stands behind it.
    """
    way = [render.proxy_position[k] - position[k] for k in range(3)]
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
