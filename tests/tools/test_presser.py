"""The client that presses in the faults figure takes hold again however late it is, and never by a jump of its own."""

import contextlib
import random
import signal
import time

import pytest
from daemons import DaemonProcess
from waiting import wait_until

from bridge.client import Client, HapticdError
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
    for number, handler in before.items():
        signal.signal(number, handler)


def presses(presser) -> bool:
    return presser.state == EngagementState.ACTIVE and presser.z == pytest.approx(0.005 - DEPTH)


def test_it_takes_hold_again_from_where_it_was_late(daemon, presser):
    """Late by more than the stale horizon now and then, also with the device deep in the ground."""
    random_numbers = random.Random(3)
    send, reasons = presser.send, set()
    with RingReader(daemon.runtime.ring_path) as ring:
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
            assert presses(presser)
    assert Reason.SAMPLE_STALE in reasons
    assert Reason.DEVICE_JUMP not in reasons


@pytest.mark.parametrize("left", ["ACTIVE", "HOLD", "RELEASING", "FAULT"])
def test_it_takes_hold_of_a_device_left_in_any_state(presser, left):
    presser.begin()
    if left == "HOLD":
        time.sleep(0.008)
    elif left == "RELEASING":
        with contextlib.suppress(HapticdError):  # where it is late, it is let go already
            presser.client.disarm()
    elif left == "FAULT":
        presser.client.stop()
        wait_until(lambda: presser.client.status()["state_name"] == "FAULT", meanwhile=presser.send)
    presser.begin()
    assert presses(presser)
