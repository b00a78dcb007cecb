"""A robot's process at a real daemon's link: the wall is felt, and a follower that stops answering is let go."""

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from daemons import CONFIG, ROOT, DaemonProcess, RawClient, records_until
from waiting import wait_until

from bridge.ring import RingReader
from haptics.link_codes import LinkReason, LinkState
from haptics.robot_models import RobotModel
from haptics.states import EngagementState

STALE_MS, RAMP_MS = 200, 50
LINK = f"""
[safety]
hold_after_ms = 500.0
stale_after_ms = 1000.0
lease_ms = 5000.0

[link]
law = "position-force"
role = "leader"
method = "tank"
tank = 1.0
stale_after_ms = {STALE_MS}.0
ramp_up_ms = 100.0
ramp_down_ms = {RAMP_MS}.0
"""
SCENE = CONFIG.replace("start = [0.0, 0.0, 0.02]", "start = [0.0, 0.0, 0.05]")

ABOVE = np.array((0.0, 0.0, 0.05))
DOWN = ABOVE - (0.0, 0.0, 0.01)
"""1 cm lower, and nothing of the daemon's own scene is touched there."""

WALL, WALL_STIFFNESS, BANDWIDTH = -0.003, 300.0, 8.0

ROBOT = """
from pathlib import Path
from bridge.follower_robots import SimulatedRobot

class Faulty(SimulatedRobot):
    def __init__(self, fault):
        super().__init__(wall="{wall}", wall_stiffness="{stiffness}", bandwidth="{bandwidth}", coulomb="0", noise="0",
                         quantum="0")
        self._fault = Path(fault)

    def read(self):
        reading = super().read()
        fault = self._fault.read_text() if self._fault.exists() else ""
        if fault == "silent":
            return None
        return reading._replace(wrench=[float("nan")] * 6) if fault == "nan" else reading
"""


class Leading(threading.Thread):
    """A hand that goes slowly to where it is asked to be, and takes hold again whenever it has lost it."""

    def __init__(self, endpoints):
        super().__init__(daemon=True)
        self.place = ABOVE.copy()
        self.at = ABOVE.copy()
        self.done = threading.Event()
        self.error = None
        self._endpoints = endpoints

    def run(self):
        try:
            with RawClient(self._endpoints) as client:
                client.hello()
                client.own("lease")
                client.feed([self.at] * 20)
                client.own("arm", reanchor=False)
                while not self.done.is_set():
                    place = self.place
                    way = place - self.at
                    far = np.linalg.norm(way)
                    self.at = place if far <= 5e-5 else self.at + way * (5e-5 / far)
                    renders = client.feed([self.at])
                    if renders and renders[-1]["state"] == EngagementState.IDLE:
                        client.own("arm", reanchor=False)
        except Exception as error:
            self.error = error

    def stop(self):
        self.done.set()
        self.join(10.0)


class Setup:
    def __init__(self, daemon, ring):
        self.daemon, self.ring = daemon, ring
        self.hand = Leading(daemon.facts["endpoints"])
        self.fault = daemon.base / "fault"
        robot = daemon.base / "faulty.py"
        robot.write_text(ROBOT.format(wall=WALL, stiffness=WALL_STIFFNESS, bandwidth=BANDWIDTH))
        self.robot = f"{robot}:Faulty"
        self.process = None

    def follow(self):
        """Start a follower."""
        self.fault.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bridge", "follow", "--robot", self.robot, "--set", f"fault={self.fault}"]
            + ["--json", "--tank", "1", "--stale-after-ms", "300"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.daemon.environment,
            cwd=ROOT,
        )

    @property
    def newest(self):
        return self.ring.newest()

    @property
    def link(self):
        return self.newest["output"]["link"]

    def felt(self):
        assert self.hand.error is None, self.hand.error
        return float(self.link["wrench"][2])

    def come_up(self):
        """With the hand at the height where a new robot begins."""
        self.hand.place = ABOVE.copy()
        up = lambda link: link["state"] == LinkState.UP and link["gain"] == 1.0  # noqa: E731
        wait_until(lambda: self.still() and up(self.link), "the link does not come up")

    def still(self):
        assert self.hand.error is None, self.hand.error
        return np.array_equal(self.hand.at, self.hand.place)

    def press(self):
        """Come up, and go down onto the robot's wall; farther down where the link came up anew on the way."""
        self.come_up()
        for deeper in range(4):
            self.hand.place = DOWN - (0.0, 0.0, 0.01 * deeper)
            if self.comes(lambda: self.still() and self.felt() > 1.0):
                return
        raise AssertionError("the wall is not felt")

    def comes(self, condition, seconds=10.0):
        """Whether it comes about within so long."""
        with contextlib.suppress(AssertionError):
            return wait_until(condition, seconds=seconds)
        return False

    def ends(self, seconds=20.0):
        """Exit code of the follower, its report, and what it said on stderr."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, json.loads(out), err


@pytest.fixture(scope="module")
def running():
    with DaemonProcess(LINK, scene=SCENE) as daemon:
        daemon.wait_ready()
        with RingReader(daemon.runtime.ring_path) as ring:
            setup = Setup(daemon, ring)
            setup.hand.start()
            yield setup
            setup.hand.stop()
        assert setup.hand.error is None


@pytest.fixture
def setup(running):
    yield running
    if running.process is not None and running.process.poll() is None:
        running.process.send_signal(signal.SIGCONT)
        running.process.kill()
        running.process.communicate()


def lost_silent(records):
    link = records["output"]["link"]
    return np.any((link["state"] == LinkState.LOST) & (link["gain"] == 0.0))


def check_letting_go(records):
    """What records of a link that fell silent say, tick by tick."""
    link, peer = records["output"]["link"], records["input"]["peer"]
    first = int(np.argmax(link["state"] == LinkState.LOST))
    assert link["state"][first - 1] == LinkState.UP
    assert link["reason"][first] == LinkReason.SILENT
    stale = STALE_MS * 1_000_000
    assert peer["age_ns"][first - 1] <= stale < peer["age_ns"][first]
    assert abs(link["wrench"][first - 1, 2]) > 0.05, "nothing was felt that could be let go"
    after = first + RAMP_MS
    assert np.all(link["wrench"][after:] == 0.0) and np.all(link["gain"][after:] == 0.0)
    steps = np.abs(np.diff(link["wrench"][first - 1 : after + 1, 2]))
    # A ramp: each tick takes its share of what was felt, and little more for what the law did meanwhile.
    assert steps.max() <= 2.0 * abs(link["wrench"][first - 1, 2]) / RAMP_MS
    assert np.all(np.diff(records["tick"]) == 1)


def test_the_hand_feels_the_wall_that_the_robot_touches(setup):
    """Springs in series: the hand is where it is put, so f = d / (1 / K + 1 / k_e)."""
    deep = WALL - (DOWN - ABOVE)[2]
    wanted = deep / (1.0 / RobotModel(bandwidth=BANDWIDTH).stiffness + 1.0 / WALL_STIFFNESS)
    for _ in range(5):
        setup.follow()
        setup.come_up()
        setup.hand.place = DOWN.copy()
        # 5 %: the link came up within a few hundredths of a mm of where the robot was.
        right = setup.comes(lambda: setup.still() and abs(setup.felt() - wanted) < 0.05 * wanted)
        felt, output, pressed = setup.felt(), setup.newest["output"], setup.newest["tick"]
        wait_until(lambda since=pressed: setup.newest["tick"] > since + 400, "the daemon stands still")
        setup.hand.place = ABOVE.copy()
        gone = setup.comes(lambda: setup.still() and abs(setup.felt()) < 0.05)
        setup.process.send_signal(signal.SIGTERM)
        code, report, err = setup.ends()
        assert (code, err) == (0, "")
        # A link that a busy machine has let go meanwhile begins anew, elsewhere.
        if report["transitions"].count("UP: NONE") == 1:
            break
    assert right, f"{felt} N is felt, not {wanted}"
    assert output["coupling_wrench"][2] == output["link"]["wrench"][2], "nothing of the own scene is touched"
    assert gone, "the wall is still felt"
    assert report["ended"] == "left" and report["method"] == "tank"
    assert report["force_peak"] >= 0.95 * wanted
    assert report["up_seconds"] > 0.2 and report["sent"] > 200 and report["rejected"] == 0
    wait_until(lambda: setup.link["state"] == LinkState.LOST, "the daemon is not told")
    assert setup.link["reason"] in (LinkReason.OTHER_NOT_ENGAGED, LinkReason.SILENT)


def test_a_follower_that_is_stopped_is_let_go_by_the_ramp_and_comes_back(setup):
    setup.follow()
    setup.press()
    setup.ring.seek_newest()
    setup.process.send_signal(signal.SIGSTOP)
    records = records_until(setup.ring, lost_silent)
    records = np.concatenate([records, records_until(setup.ring, lambda more: len(more) > 50)])
    check_letting_go(records)
    tick = setup.newest["tick"]
    wait_until(lambda: setup.newest["tick"] > tick + 50, "the daemon stands still")
    assert setup.newest["output"]["state"] == EngagementState.ACTIVE
    setup.process.send_signal(signal.SIGCONT)
    setup.press()
    setup.process.send_signal(signal.SIGINT)
    code, report, _ = setup.ends()
    assert code == 0
    assert report["transitions"].count("UP: NONE") >= 2


def test_a_robot_that_stops_answering_is_let_go_by_the_ramp_and_comes_back(setup):
    setup.follow()
    setup.press()
    setup.ring.seek_newest()
    setup.fault.write_text("silent")
    records = records_until(setup.ring, lost_silent)
    records = np.concatenate([records, records_until(setup.ring, lambda more: len(more) > 50)])
    check_letting_go(records)
    setup.fault.unlink()
    setup.press()
    setup.process.send_signal(signal.SIGTERM)
    assert setup.ends()[0] == 0


def test_a_robot_that_says_nan_ends_the_follower_and_lets_the_hand_go_at_once(setup):
    setup.follow()
    setup.press()
    setup.ring.seek_newest()
    setup.fault.write_text("nan")
    code, report, err = setup.ends()
    assert code == 11
    assert err.startswith("hapticd: the robot says wrench = [nan") and err.count("\n") == 1
    assert report["ended"] in err
    link = records_until(setup.ring, lost_silent)["output"]["link"]
    first = int(np.argmax(link["state"] == LinkState.LOST))
    assert link["reason"][first] == LinkReason.OTHER_NOT_ENGAGED
    assert np.isfinite(link["wrench"]).all()


def test_a_daemon_that_ends_leaves_a_robot_that_holds(setup):
    """The last one: it ends the daemon."""
    setup.follow()
    setup.press()
    setup.hand.stop()
    assert setup.daemon.stop() == 0
    time.sleep(0.3)
    assert setup.process.poll() is None, "it waits for the daemon"
    setup.process.send_signal(signal.SIGTERM)
    code, report, _ = setup.ends()
    assert code == 0 and report["ended"] == "left"
    assert report["transitions"][-2].startswith("LOST: ")
