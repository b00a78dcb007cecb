"""Close the spring at the device's own rate, 4 kHz here, from the impedance in the 1 kHz renders.

A daemon's wrench is one round trip old when it is applied. The impedance behind it (tool pose, K, B, and planes of what
is near) stays good for longer, so an adapter that reads its encoders faster can compute the force from its own newest
pose. The device is imagined: it swings 2 mm around the surface at 1.7 Hz. First, in another shell:
hapticd run configs/plane.toml
"""

import math
import time

from bridge import Client
from bridge.wire import Render

RATE = 4000
RAMP_S = 0.015  # from a render that has become too old down to nothing


def device(t: float) -> tuple[float, float]:
    """Height (m) and speed (m/s): down to the surface 25 mm below the start, then around it."""
    if t < 2.0:
        return -0.0125 * t, -0.0125
    swing = 2.0 * math.pi * 1.7
    return -0.025 - 0.002 * math.sin(swing * (t - 2.0)), -0.002 * swing * math.cos(swing * (t - 2.0))


def tool(render: Render, z: float) -> float:
    """Height of the tool, m: it goes along with the device, but stays in front of the planes. This device only moves
    along z; docs/protocol.md has the general case, bridge/adapters/spring.py the code."""
    if render.pinned:
        return render.proxy_position[2]
    height = z + render.slack[2]
    for k in range(render.plane_count):
        upwards, offset = render.planes[4 * k + 2 : 4 * k + 4]
        if upwards > 0.9:
            height = max(height, offset / upwards)
    return height


def spring(render: Render, age_s: float, z: float, speed: float) -> float:
    """Force along z, N: K d and a damper that never exceeds it; ramps out when the render is too old."""
    d = tool(render, z) - z
    damper = render.damping[2] * (render.proxy_twist[2] - speed) * math.copysign(1.0, d)
    limit = render.stiffness[2] * abs(d)
    force = math.copysign(limit + min(max(damper, -limit), limit), d) + render.feed_forward[2]
    too_old = max(age_s - render.valid_for * 1e-9, 0.0)
    return force * max(1.0 - too_old / RAMP_S, 0.0)


def limited(force: float, last: float) -> float:
    """What the daemon's limits, which act on its own wrench, would make of a force that is closed here."""
    low, high = max(-force_max, last - force_slew), min(force_max, last + force_slew)
    return min(max(force, low), high)


with Client() as client:
    client.lease()
    force_max = client.greeting["limits"]["force_max"]
    force_slew = client.greeting["limits"]["force_slew"] / (client.tick_s * RATE)  # per step of this loop
    force = 0.0
    render = client.exchange((0.0, 0.0, 0.0))
    client.arm()
    began = time.monotonic()
    worst = 0.0
    for step in range(5 * RATE):
        t = time.monotonic() - began
        z, speed = device(t)
        if step % 4 == 0:  # the daemon's rate
            render = client.exchange((0.0, 0.0, z), twist=(0.0, 0.0, speed, 0.0, 0.0, 0.0))
        age = (time.monotonic_ns() + client.clock_offset_ns - render.t_sent) * 1e-9
        force = limited(spring(render, age, z, speed), force)
        worst = max(worst, abs(force - render.force[2]))
        if step % (RATE // 4) == 0:
            print(f"{t:4.1f} s   own spring {force:6.3f} N   wrench {render.force[2]:6.3f} N   {render.state_name}")
        time.sleep(max(0.0, began + (step + 1) / RATE - time.monotonic()))
    print(f"largest difference {worst:.3f} N: what one round trip of delay is worth at this speed")
