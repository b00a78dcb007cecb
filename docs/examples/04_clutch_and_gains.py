"""Reach farther than the device can, with the clutch, and change gains. First: hapticd run configs/plane.toml"""

import time
from collections.abc import Iterator

from bridge import Client, HapticdError
from haptics.states import EngagementState


def sweep(first: float, last: float, seconds: float, period: float) -> Iterator[float]:
    """Values from first to last, one per period."""
    steps = round(seconds / period)
    return (first + (last - first) * (step + 1) / steps for step in range(steps))


with Client() as client:

    def go(first: float, last: float, seconds: float) -> None:
        """Move the device along x at constant height, until the daemon has taken its last position."""
        for x in sweep(first, last, seconds, client.tick_s):
            client.exchange((x, 0.0, 0.0))
            time.sleep(client.tick_s)
        arrived = client.seq
        while client.exchange((last, 0.0, 0.0)).seq < arrived:
            time.sleep(client.tick_s)

    def where() -> str:
        """Where the tool is in the scene."""
        x, y, z = client.status()["newest"]["proxy_position"]
        return f"tool at {1e3 * x:5.1f} {1e3 * y:5.1f} {1e3 * z:5.1f} mm"

    client.lease()
    client.set_gains(stiffness=200.0, damping=1.0)
    client.exchange((0.0, 0.0, 0.0))
    client.arm()
    go(0.0, 0.0, 0.7)
    for stroke in range(3):
        go(0.0, 0.03, 0.5)
        client.clutch(True)  # the tool stays, the device goes back
        go(0.03, 0.0, 0.5)
        client.clutch(False)
        go(0.0, 0.0, 0.7)
        print(f"stroke {stroke + 1}: {where()}")
    try:
        client.set_scale(2.0)
    except HapticdError as error:
        print(f"refused while engaged: {error.text} ({error.code})")
    client.disarm()
    while client.exchange((0.0, 0.0, 0.0)).state != EngagementState.IDLE:
        time.sleep(client.tick_s)
    client.set_scale(2.0)
    print("scale 2 now: each mm of the device moves the tool 2 mm")
    client.arm(reanchor=True)
    go(0.0, -0.02, 0.5)
    print(where())
