"""A client that presses into the ground until it is killed, stopped or told to misbehave.

``python -m tools.bench.presser NAME MODE`` with MODE hold, nan, jump or clock; the scene is that of the faults figure.
"""

import math
import sys
import time

from bridge.client import Client
from haptics.states import EngagementState

DEPTH = 0.03
SPEED = 0.1
PERIOD_NS = 1_000_000
PRESS_S = 0.3
CLOCK_STEP_NS = 10_000_000_000


def main(name: str, mode: str) -> None:
    with Client(name) as client:
        client.lease()
        client.set_gains(1e5, 0.0)  # the card caps it: the most that this device is allowed
        position = list(client.greeting["scene"]["start"])
        due = time.monotonic_ns()

        def send(z: float, clock_step_ns: int = 0) -> None:
            nonlocal due
            due += PERIOD_NS
            time.sleep(max(due - time.monotonic_ns(), 0) * 1e-9)
            client.send((position[0], position[1], z), t_sample=time.monotonic_ns() - clock_step_ns)
            client.receive()

        top = position[2]
        for _ in range(50):
            send(top)
        client.arm()
        while client.exchange((position[0], position[1], top)).state != EngagementState.ACTIVE:
            time.sleep(PERIOD_NS * 1e-9)
        due = time.monotonic_ns()
        z = top
        while z > top - DEPTH:
            z -= SPEED * 1e-3
            send(z)
        for _ in range(int(PRESS_S * 1000)):
            send(z)
        print("pressing", flush=True)
        while True:
            if mode == "nan":
                send(math.nan)
            elif mode == "jump":
                send(z + 0.2)
            elif mode == "clock":
                send(z, CLOCK_STEP_NS)
            else:
                send(z)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
