"""Velocity by least squares over a window of time-stamped samples.

The slope of a line fitted to the samples of the last ``velocity_window_s`` is exact for constant velocity whatever the
jitter of the time stamps. For a changing velocity it is the velocity at the samples' mean time, so its delay is the
newest time minus the mean time, which is published with every tick.

The window is fixed, or adapts: then it is the longest one, up to the same length, in which no position is farther than
an encoder step from the straight line between its oldest and its newest (Janabi-Sharifi, Hayward and Chen 2000). Fast
motion gets a short delay, slow motion the long window that its rounding needs.

Device and tool are fitted over the same samples: their difference, which the damper acts on, has one delay and is
exactly zero while the tool follows freely.
"""

from haptics.codes import GOOD
from haptics.degrees import sensed_turning
from haptics.tables import VELOCITY_SAMPLES, Record
from haptics.workspace import tool_position
from rtcore.kernels import inner, kernel
from rtcore.spatial import Vector, length, put_vector, quaternion, scaled, vector

SHORTEST_SPAN = 0.25
"""Part of a tick: samples closer together than this say nothing about velocity."""


@kernel
def forget(touch: Record) -> None:
    """Start over: no samples, no velocity."""
    touch.velocity_count = 0
    touch.velocity_head = 0
    touch.velocity_delay_s = 0.0
    put_vector(touch.velocity, (0.0, 0.0, 0.0))
    put_vector(touch.proxy_velocity, (0.0, 0.0, 0.0))
    put_vector(touch.angular_velocity, (0.0, 0.0, 0.0))


@kernel
def push(settings: Record, touch: Record, time: int, position: Vector, tool: Vector) -> None:
    """Take one sample: time (ns), device position (device frame) and the tool's (scene), coupling points.

    A repeated time stamp replaces the newest sample. Time that goes back, or a gap beyond the stale horizon, starts
    over.
    """
    head = touch.velocity_head
    if touch.velocity_count > 0:
        elapsed = time - touch.velocity_times[head]
        if elapsed < 0 or elapsed > settings.stale_after_ns:
            forget(touch)
        elif elapsed > 0:
            head = (head + 1) % VELOCITY_SAMPLES
    if touch.velocity_count == 0:
        head = 0
        touch.velocity_count = 1
    elif head != touch.velocity_head and touch.velocity_count < VELOCITY_SAMPLES:
        touch.velocity_count += 1
    touch.velocity_head = head
    touch.velocity_times[head] = time
    for k in range(3):
        touch.velocity_positions[head, k] = position[k]
        touch.proxy_positions[head, k] = tool[k]


@inner
def is_straight(settings: Record, touch: Record, last: int) -> bool:
    """Whether the positions from the newest to the ``last``-th before it are on a line, within the encoder's step."""
    head = touch.velocity_head
    oldest = (head - last) % VELOCITY_SAMPLES
    span = touch.velocity_times[head] - touch.velocity_times[oldest]
    if span <= 0:
        return False
    for k in range(1, last):
        row = (head - k) % VELOCITY_SAMPLES
        share = (touch.velocity_times[head] - touch.velocity_times[row]) / span
        for c in range(3):
            way = touch.velocity_positions[oldest, c] - touch.velocity_positions[head, c]
            off = touch.velocity_positions[row, c] - touch.velocity_positions[head, c] - share * way
            if abs(off) > settings.velocity_step * (1.0 + 1e-9):
                return False
    return True


@kernel
def fit(settings: Record, touch: Record) -> None:
    """Fit device and tool velocity over the window; the two newest samples always count."""
    count = touch.velocity_count
    if count < 2:
        return
    head = touch.velocity_head
    newest = touch.velocity_times[head]
    used = 0
    total = 0.0
    for k in range(count):
        if k >= 2 and settings.velocity_step > 0.0 and not is_straight(settings, touch, k):
            break
        age = 1e-9 * (newest - touch.velocity_times[(head - k) % VELOCITY_SAMPLES])
        # Half a nanosecond of slack keeps the sample that stands on the edge of the window.
        if k >= 2 and age > settings.velocity_window_s + 0.5e-9:
            break
        used += 1
        total += age
    span = 1e-9 * (newest - touch.velocity_times[(head - used + 1) % VELOCITY_SAMPLES])
    if span < SHORTEST_SPAN * settings.dt:
        return
    mean = total / used
    square = 0.0
    vx = vy = vz = wx = wy = wz = 0.0
    for k in range(used):
        row = (head - k) % VELOCITY_SAMPLES
        # Time from the mean, and positions from the newest: small numbers, so nothing is lost to cancellation.
        late = mean - 1e-9 * (newest - touch.velocity_times[row])
        square += late * late
        vx += late * (touch.velocity_positions[row, 0] - touch.velocity_positions[head, 0])
        vy += late * (touch.velocity_positions[row, 1] - touch.velocity_positions[head, 1])
        vz += late * (touch.velocity_positions[row, 2] - touch.velocity_positions[head, 2])
        wx += late * (touch.proxy_positions[row, 0] - touch.proxy_positions[head, 0])
        wy += late * (touch.proxy_positions[row, 1] - touch.proxy_positions[head, 1])
        wz += late * (touch.proxy_positions[row, 2] - touch.proxy_positions[head, 2])
    put_vector(touch.velocity, bounded((vx / square, vy / square, vz / square), settings.speed_max))
    put_vector(
        touch.proxy_velocity,
        bounded((wx / square, wy / square, wz / square), settings.speed_max * touch.scale),
    )
    touch.velocity_delay_s = mean


@inner
def bounded(v: Vector, largest: float) -> Vector:
    """v, no longer than ``largest``: bad time stamps must not become a huge damping force."""
    size = length(v)
    if size > largest:
        return scaled(v, largest / size)
    return v


@kernel
def observe(world: Record, proxy: Record, settings: Record, touch: Record, sample: Record) -> None:
    """The stage: on a new good sample, update the velocities of device and tool."""
    if touch.sample_kind != GOOD:
        return
    push(settings, touch, sample.t_sample, vector(sample.position), tool_position(world, proxy))
    fit(settings, touch)
    if sample.has_twist != 0:
        given = (sample.twist[0], sample.twist[1], sample.twist[2])
        put_vector(touch.velocity, bounded(given, settings.speed_max))
        turning = (sample.twist[3], sample.twist[4], sample.twist[5])
        put_vector(touch.angular_velocity, sensed_turning(settings, quaternion(touch.device_orientation), turning))
        touch.velocity_delay_s = 0.0
    else:
        put_vector(touch.angular_velocity, (0.0, 0.0, 0.0))
