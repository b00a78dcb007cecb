"""The client that presses in the faults figure takes hold again however late it is, and never by a jump of its own."""

import random
import signal
import time

import numpy as np
import pytest
from daemons import DaemonProcess

from bridge.client import Client
from bridge.ring import RingReader
from haptics.states import EngagementState, Reason
from tools.bench.faults import CONFIG
from tools.bench.presser import DEPTH, SIGNALS, Presser

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
        if client.status()["state_name"] == "FAULT":
            client.reset()
        client.release()
    for number, handler in before.items():
        signal.signal(number, handler)


def presses(presser) -> bool:
    return presser.state == EngagementState.ACTIVE and presser.z == pytest.approx(0.005 - DEPTH)


def test_it_takes_hold_again_from_where_it_was_late(daemon, presser):
    """Late by more than the stale horizon at any time, also with the device deep in the ground."""
    random_numbers = random.Random(3)
    send, late = presser.send, 0

    def send_late(ticks=1):
        nonlocal late
        for _ in range(ticks):
            if random_numbers.random() < 0.01:
                late += 1
                time.sleep(random_numbers.uniform(0.01, 0.04))
            send()

    presser.send = send_late
    reasons = set()
    with RingReader(daemon.runtime.ring_path) as ring:
        for _ in range(5):
            ring.seek_newest()
            presser.begin()
            assert presses(presser)
            records, lost = ring.read(4096)
            assert lost == 0
            reasons |= set(records["output"]["reason"].tolist())
    assert late > 5 and Reason.SAMPLE_STALE in reasons
    assert Reason.DEVICE_JUMP not in reasons


@pytest.mark.parametrize("left", ["ACTIVE", "HOLD", "RELEASING", "FAULT"])
def test_it_takes_hold_of_a_device_left_in_any_state(presser, left):
    presser.begin()
    if left == "HOLD":
        time.sleep(0.008)
    elif left == "RELEASING":
        presser.client.disarm()
    elif left == "FAULT":
        presser.mode = "jump"
        while presser.state != EngagementState.FAULT:
            presser.send()
        presser.mode = ""
    presser.begin()
    assert presses(presser)
    presser.client.disarm()
    while presser.state != EngagementState.IDLE:
        presser.send()
    assert not np.any(presser.client.status()["newest"]["wrench"])
