"""The client that presses in the faults figure takes hold again however late it is, and never by a jump of its own."""

import contextlib
import random
import signal
import time

import numpy as np
import pytest
from daemons import DaemonProcess
from waiting import wait_until

from bridge.client import Client, HapticdError
from bridge.ring import RingReader
from haptics.states import EngagementState, Reason
from tools.bench.fault_site import CONFIG
from tools.bench.presser import SIGNALS, Presser

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def daemon():
    with DaemonProcess(scene=CONFIG) as running:
        running.wait_ready()
        yield running


@pytest.fixture
def presser(daemon):
    before = {number: signal.getsignal(number) for number in SIGNALS}
    with Client(daemon.facts["endpoints"]) as client:
        yield Presser(client)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def ring(daemon):
    with RingReader(daemon.runtime.ring_path) as reader:
        yield reader


def test_it_takes_hold_again_from_where_it_was_late(presser, ring):
    """Late by more than the stale horizon now and then, also with the device deep in the ground."""
    random_numbers = random.Random(3)
    send, reasons = presser.send, set()
    ring.seek_newest()

    def send_late(ticks=1):
        for _ in range(ticks):
            if random_numbers.random() < 0.01:
                time.sleep(random_numbers.uniform(0.01, 0.04))
            send()
            records, lost = ring.read(4096)
            assert lost == 0
            reasons.update(records["output"]["reason"].tolist())

    presser.send = send_late
    for _ in range(5):
        presser.begin()
    assert Reason.SAMPLE_STALE in reasons
    assert Reason.DEVICE_JUMP not in reasons


@pytest.mark.parametrize("left", ["ACTIVE", "HOLD", "RELEASING", "FAULT"])
def test_it_presses_with_a_device_left_in_any_state(presser, ring, left):
    presser.begin()
    if left == "HOLD":
        time.sleep(0.008)
    elif left == "RELEASING":
        with contextlib.suppress(HapticdError):  # where it is late, it is let go already
            presser.client.disarm()
    elif left == "FAULT":
        presser.client.stop()
        wait_until(lambda: presser.client.status()["state_name"] == "FAULT", meanwhile=presser.send)
    ring.seek_newest()
    presser.begin()
    output = ring.read(4096)[0]["output"]
    engaged = np.flatnonzero(
        (output["event_from"] == EngagementState.ENGAGING) & (output["state"] == EngagementState.ACTIVE)
    )
    felt = (output["wrench"][:, 2] / output["rate_share"])[engaged[-1] :]  # as if the samples had come evenly
    assert felt.max() > 1.0, "it was engaged anew, and felt the ground"
    assert Reason.DEVICE_JUMP not in output["reason"]
