"""Clients that press into the ground until they are killed, stopped or told to misbehave.

``python -m tools.bench.presser NAME`` reads lines ``hold SEED`` or ``work SEED`` and forks a client of the daemon NAME
for each, which costs no start of an interpreter; the client says ``pressing PID`` once it presses with all that its
card allows. A client that works goes on through clutches (RELEASING, then ENGAGING) and pauses (HOLD), at times of its
seed. Signals make it misbehave: USR1 sends NaN, USR2 a jump, HUP a clock put back. The scene is that of the faults
figure.
"""

import math
import os
import random
import signal
import sys
import time

from bridge.client import Client, HapticdError, NoReplyError, Question
from haptics.states import EngagementState

DEPTH = 0.04
"""m below where the tip rests: saturates the card even where uneven samples leave a fifth of its stiffness."""
LIFT = 0.01
"""m that a clutch takes the device back up: it presses as deep as that afterwards."""
SPEED = 0.5e-3
"""m per sample: as fast as a hand touches."""
PERIOD_NS = 1_000_000
PRESS_MS = 30
CLOCK_STEP_NS = 10_000_000_000
BEGIN_S = 10.0

SIGNALS = {signal.SIGUSR1: "nan", signal.SIGUSR2: "jump", signal.SIGHUP: "clock"}


class Presser:
    """One client at 1 kHz; ``z`` is where its device is."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.mode = ""
        self.x, self.y, self.z = client.greeting["scene"]["start"]
        self.due = time.monotonic_ns()
        self.state = EngagementState.IDLE
        for number, mode in SIGNALS.items():
            signal.signal(number, lambda *_, mode=mode: setattr(self, "mode", mode))

    def begin(self) -> None:
        """Engage and press, again where a busy machine made this client late."""
        until = time.monotonic() + BEGIN_S
        while True:
            try:
                self.engage()
                self.press()
            except HapticdError as error:
                if error.code not in ("not_owner", "wrong_state") or time.monotonic() > until:
                    raise
            else:
                if self.state == EngagementState.ACTIVE:
                    return

    def engage(self) -> None:
        """Take the device, whatever state the last client has left it in, and engage if that goes well."""
        until = time.monotonic() + BEGIN_S
        while True:
            try:
                self.client.lease()
                break
            except HapticdError as error:
                if error.code != "lease_taken" or time.monotonic() > until:
                    raise
                time.sleep(0.01)
        self.let_go()
        self.z = self.client.greeting["scene"]["start"][2]
        self.client.set_gains(1e5, 0.0)  # the card caps it: the most that this device is allowed
        self.due = time.monotonic_ns()
        for _ in range(20):
            self.send()
        self.client.arm(reanchor=True)
        for _ in range(500):
            if self.state == EngagementState.ACTIVE:
                break
            self.send()

    def let_go(self) -> None:
        """Stay where the device is until nothing pushes it: it is engaged where this client was late the last time."""
        state = self.client.status()["state_name"]
        if state not in ("IDLE", "FAULT"):
            self.client.disarm()
        until = time.monotonic() + BEGIN_S
        while state not in ("IDLE", "FAULT") and time.monotonic() < until:
            self.send(5)
            state = self.client.status()["state_name"]
        if state == "FAULT":
            self.client.reset()

    def send(self, ticks: int = 1) -> None:
        """So many samples at the device's place, misbehaving when told to."""
        for _ in range(ticks):
            # Never two at once: by the times of its samples it shows for how long a busy machine has kept it silent.
            self.due = max(self.due + PERIOD_NS, time.monotonic_ns())
            time.sleep(max(self.due - time.monotonic_ns(), 0) * 1e-9)
            z = math.nan if self.mode == "nan" else self.z + (0.2 if self.mode == "jump" else 0.0)
            late = CLOCK_STEP_NS if self.mode == "clock" else 0
            self.client.send((self.x, self.y, z), t_sample=time.monotonic_ns() - late)
            render = self.client.receive()
            if render is not None:
                self.state = render.state

    def go(self, z: float) -> None:
        """Move straight down or up; who misbehaves stays where it is."""
        while self.z != z and not self.mode:
            self.z += max(min(z - self.z, SPEED), -SPEED)
            self.send()

    def press(self) -> None:
        """From where the tool is free down to the ground and into it."""
        bottom = 0.005 - DEPTH
        self.go(bottom)
        self.send(PRESS_MS)

    def answered(self, question: Question) -> None:
        """Go on sending until a request is answered."""
        while question.reply() is None:
            self.send()

    def work(self, draw: random.Random) -> None:
        """Clutches and pauses in turn; forces are on but for the instant in which a clutch takes up again."""
        bottom = self.z
        while True:
            self.send(draw.randrange(10, 60))
            time.sleep(draw.uniform(0.006, 0.015))
            self.send(draw.randrange(10, 60))
            self.answered(self.client.ask("clutch", pressed=True))
            self.go(bottom + LIFT)
            self.send(draw.randrange(1, 15))
            self.answered(self.client.ask("clutch", pressed=False))
            while self.state == EngagementState.RELEASING and not self.mode:
                self.send()
            self.go(bottom)


def press(name: str, mode: str, seed: int) -> None:
    """The life of one client."""
    with Client(name) as client:
        presser = Presser(client)
        presser.begin()
        print(f"pressing {os.getpid()}", flush=True)
        if mode == "work":
            try:
                presser.work(random.Random(seed))
            except HapticdError:
                # Whoever misbehaves is refused what the work would need; it goes on misbehaving.
                if not presser.mode:
                    raise
        while True:
            presser.send()


def main(name: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        mode, seed = line.split()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                press(name, mode, int(seed))
            except NoReplyError:
                pass  # the daemon was killed
            except HapticdError as error:
                print(f"{error}", file=sys.stderr, flush=True)
            finally:
                os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
